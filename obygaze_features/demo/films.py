"""Writing real H.264 files."""

from collections.abc import Iterable
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray


def write_film(path: Path, frames: Iterable[NDArray[np.uint8]], rate: int) -> None:
    """Encode RGB frames, uint8 `[H, W, 3]` each, as H.264 with B-frames; the container follows the suffix.

    The same frames give the same bytes: with one encoder thread, without macroblock-tree rate control (x264's
    differs from run to run, measured), and without the random identifiers that Matroska otherwise gets.
    """
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("libx264", rate=rate)
        stream.pix_fmt = "yuv420p"
        stream.thread_count = 1
        stream.options = {"preset": "veryfast", "qp": "26", "g": str(2 * rate), "bf": "2"}
        for image in frames:
            if not stream.codec_context.is_open:
                stream.height, stream.width = image.shape[:2]
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())
