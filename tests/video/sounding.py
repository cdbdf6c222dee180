"""Write films that have sound: given samples, in given codecs and containers."""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, repeat
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from tests.priority import ordinary_priority

RATE = 44_100
FRAME_RATE = 25
PICTURES = {".avi": "mpeg4", ".vob": "mpeg2video"}
"""Codecs of pictures where H.264 isn't usual."""


def clicks(times_s: Sequence[float], seconds: float, rate: int = RATE) -> NDArray[np.float32]:
    """Make silence with one loud sample at each time."""
    samples = np.zeros(round(seconds * rate), np.float32)
    samples[[round(time_s * rate) for time_s in times_s]] = 0.9
    return samples


def time_of_click(samples: NDArray[np.float32], rate: int, about_s: float) -> float:
    """Find the loudest sample within .2 s of a time, and return its time."""
    first = round((about_s - 0.2) * rate)
    end = round((about_s + 0.2) * rate)
    return (first + int(np.abs(samples[first:end]).argmax())) / rate


def tone(hz: float, seconds: float, level: float = 0.1, rate: int = RATE) -> NDArray[np.float32]:
    """Make a sine of an amplitude."""
    return (level * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def write_film(
    path: Path,
    tracks: Mapping[str, NDArray[np.float32]],
    *,
    seconds: float,
    codec: str = "aac",
    rate: int = RATE,
    layout: str = "mono",
    gap: tuple[float, float] | None = None,  # start and end in seconds, between which there is no sound
    grey: int = 90,  # of all pictures, unless `pictures` are given
    pictures: Iterable[NDArray[np.uint8]] | None = None,
    wide_high: tuple[int, int] = (64, 48),
) -> Path:
    """Write a film at 25 frames a second with sound tracks: language -> samples [N] of all channels."""
    n_pictures = round(FRAME_RATE * seconds)
    with ordinary_priority(), av.open(str(path), "w") as output:
        video = output.add_stream(PICTURES.get(path.suffix, "libx264"), rate=FRAME_RATE)
        video.width, video.height = wide_high
        video.pix_fmt = "yuv420p"
        video.codec_context.thread_count = 1
        streams = []
        for language in tracks:
            stream = output.add_stream(codec, rate=rate, layout=layout)
            stream.metadata["language"] = language
            streams.append(stream)
        output.start_encoding()  # only then the encoders state the size of their frames
        unwritten = []  # of each track, the frames of sound that are not written yet
        for stream, samples in zip(streams, tracks.values(), strict=True):
            frame_size = stream.codec_context.frame_size or 1024
            frames = _sound_frames(samples, frame_size, rate, layout)
            unwritten.append(deque(frame for frame in frames if not _is_within(gap, frame)))
        if pictures is None:
            width, height = wide_high
            pictures = repeat(np.full((height, width, 3), grey, np.uint8))
        # Pictures and sound alternately, so that readers find both near each other.
        for number, picture in enumerate(islice(pictures, n_pictures)):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts = number
            frame.time_base = Fraction(1, FRAME_RATE)
            output.mux(video.encode(frame))
            time_s = Fraction(number, FRAME_RATE)
            for stream, frames in zip(streams, unwritten, strict=True):
                while frames and Fraction(frames[0].pts, rate) <= time_s:
                    output.mux(stream.encode(frames.popleft()))
        for stream, frames in zip(streams, unwritten, strict=True):
            for frame in frames:
                output.mux(stream.encode(frame))
        for stream in (video, *streams):
            output.mux(stream.encode(None))
    return path


def _sound_frames(samples: NDArray[np.float32], size: int, rate: int, layout: str) -> Iterator[av.AudioFrame]:
    """Yield frames of samples that all channels have; silence fills the last one."""
    n_channels = av.AudioLayout(layout).nb_channels
    for first in range(0, len(samples), size):
        block = samples[first : first + size]
        padded = np.pad(block, (0, size - len(block)))
        frame = av.AudioFrame.from_ndarray(np.tile(padded, (n_channels, 1)), format="fltp", layout=layout)
        frame.sample_rate = rate
        frame.pts = first
        frame.time_base = Fraction(1, rate)
        yield frame


def _is_within(gap: tuple[float, float] | None, frame: av.AudioFrame) -> bool:
    """Return whether a frame begins in a gap between two times in seconds."""
    if gap is None:
        return False
    start_s, end_s = gap
    return start_s * frame.sample_rate <= frame.pts < end_s * frame.sample_rate


def write_channels(
    path: Path, n_channels: int, samples: NDArray[np.int16], rate: int, codec: str = "pcm_s16le"
) -> Path:
    """Write a film with one sound track of channels without places, each with these samples."""
    layout = f"{n_channels} channels"
    with ordinary_priority(), av.open(str(path), "w") as output:
        video = output.add_stream("mpeg4", rate=1)
        video.width = 64
        video.height = 48
        video.pix_fmt = "yuv420p"
        sound = output.add_stream(codec, rate=rate, layout=layout)
        sound.format = "s16"
        n_seconds = math.ceil(len(samples) / rate)
        for number in range(n_seconds):  # a picture a second
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 90, np.uint8), format="rgb24")
            frame.pts = number
            frame.time_base = Fraction(1, 1)
            output.mux(video.encode(frame))
        size = sound.codec_context.frame_size or rate
        for first in range(0, len(samples), size):
            interleaved = np.repeat(samples[first : first + size], n_channels)[None]
            heard = av.AudioFrame.from_ndarray(interleaved, format="s16", layout=layout)
            heard.sample_rate = rate
            heard.pts = first
            heard.time_base = Fraction(1, rate)
            output.mux(sound.encode(heard))
        for stream in (sound, video):
            output.mux(stream.encode(None))
    return path
