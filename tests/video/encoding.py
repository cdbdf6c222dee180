"""Encode films of given pictures."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from tests.priority import ordinary_priority


def encode(
    path: Path,
    pictures: Iterable[np.ndarray | av.VideoFrame],
    codec: str = "libx264",
    rate: int = 25,
    times: Sequence[int] | None = None,
    time_base: Fraction | None = None,
    pix_fmt: str = "yuv420p",
    options: Mapping[str, str] = {},
    container_options: Mapping[str, str] = {},
    **settings: object,
) -> Path:
    """Encode RGB pictures or frames, shown at `times` in ticks of `time_base` (`rate` a second)."""
    with ordinary_priority(), av.open(str(path), "w", options=dict(container_options)) as output:
        stream = output.add_stream(codec, rate=Fraction(rate), options=dict(options))
        time_base = time_base or Fraction(1, rate)
        stream.codec_context.time_base = stream.time_base = time_base
        stream.codec_context.thread_count = 1
        for name, value in settings.items():
            setattr(stream.codec_context, name, value)
        for number, picture in enumerate(pictures):
            is_frame = isinstance(picture, av.VideoFrame)
            frame = picture if is_frame else av.VideoFrame.from_ndarray(picture, format="rgb24")
            if not number:
                stream.width = frame.width
                stream.height = frame.height
                stream.pix_fmt = frame.format.name if is_frame else pix_fmt
            frame.pts = number if times is None else times[number]
            frame.time_base = time_base
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path
