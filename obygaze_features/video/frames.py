"""Define the results of reading a video."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from obygaze_features.video.stream import Stream

T = TypeVar("T")
PER_FRAME = ("images", "index", "time_s")


@dataclass(frozen=True, kw_only=True)
class Frames(Generic[T]):
    """The frames of one clip, in sampling order, and how they were read.

    Parameters
    ----------
    images
        Result of `each` for every frame; a frame requested twice is present twice.
    index
        Shape [F]: number of each frame in the whole video, in display order from 0.
    time_s
        Shape [F]: presentation time in seconds of the player's clock; NaN where the file does not state it.
    status
        ``partial`` if expected frames are missing or damaged; `notes` describe them.
    notes
        Sentences about the reading, kept in the store.
    without_pictures_s
        Stretches of the span, whole ones and in the order of time, in which the file has no pictures: start
        and end in seconds. Empty where together they are too short for the clip to be partial.
    method
        ``sparse``: only the needed packets were decoded. ``sequential``: all up to the last frame were.
        ``still``: the file is a still image.
    why_sequential
        The reason for sequential decoding, else empty.
    width, height
        Size of the upright pictures, in pixels.
    rotation
        Degrees clockwise by which the stored pictures were rotated.
    mirrored
        Whether they were mirrored after that.
    interlaced
        Whether frames were flagged interlaced; their colours were then converted field by field.
    total
        Frames in the whole video.
    decoded
        Frames that the decoder returned for these; in a pass over many windows, the frames since the previous
        window.
    matrix
        Matrix used to convert to RGB, e.g. ``bt709``, or ``bt601 (untagged)`` where the file states none.
    full_range
        Whether samples were read as full range (0-255) rather than limited range (16-235).
    bars
        Black rows above and below, black columns left and right, common to all these frames.
    stream
        What the file states of its stream, as plain JSON (`Stream`); empty for a still image.
    """

    images: list[T]
    index: NDArray[np.int64]
    time_s: NDArray[np.float64]
    status: Literal["ok", "partial"]
    notes: tuple[str, ...]
    without_pictures_s: tuple[tuple[float, float], ...] = ()
    method: Literal["sparse", "sequential", "still"]
    why_sequential: str = ""
    width: int
    height: int
    rotation: int
    mirrored: bool
    interlaced: bool = False
    total: int
    decoded: int
    matrix: str = "rgb"
    full_range: bool = True
    bars: tuple[int, int, int, int] = (0, 0, 0, 0)
    stream: Mapping[str, object] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of frames, in which a frame that was asked for twice counts twice."""
        return len(self.images)

    @property
    def distinct(self) -> int:
        """Number of different frames: fewer than requested if some are repeated."""
        return len(np.unique(self.index))

    def record(self) -> dict[str, object]:
        """Return as plain JSON how the frames were read."""
        record = {name: value for name, value in vars(self).items() if name not in PER_FRAME}
        return record | {"distinct": self.distinct, "bars": list(self.bars), "notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class Probe:
    """Properties of a video, read without decoding.

    Parameters
    ----------
    bytes
        Size of the file.
    start_s
        Time of the first frame; NaN where the file does not state it.
    duration_s
        Seconds from the first frame to the end of the last; NaN if the file does not state it.
    frames
        Frames of the video.
    damage
        Description of what the file lacks of what its container declares, and of long stretches without
        pictures; empty for a complete file.
    besides
        What the file holds beside pictures: `sound`, `subtitles`.
    stream
        What the file states of its stream; None for a still image.
    stated_end_s
        Of a file that is cut off: when its pictures end by what its container states, in seconds of the
        player's clock; else NaN.
    """

    bytes: int
    start_s: float
    duration_s: float
    frames: int
    damage: str
    besides: tuple[str, ...] = ()
    stream: Stream | None = None
    stated_end_s: float = math.nan
