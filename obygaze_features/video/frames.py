"""What reading a video gives."""

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


@dataclass(frozen=True)
class Frames(Generic[T]):
    """The frames of one clip, in sampling order, and how they were got.

    Parameters
    ----------
    images
        What `each` made of every frame; frames asked for twice are there twice.
    index
        Shape [F]: number of each frame in the whole video, in display order from 0.
    time_s
        Shape [F]: when it is shown, in seconds of the player's clock; NaN where the file doesn't say.
    status
        ``partial`` where something that should be there is missing or damaged; `notes` say what.
    notes
        Sentences for the reader of a store.
    method
        ``sparse``: only the packets needed were decoded. ``sequential``: everything up to the last frame was.
        ``still``: the file is a still image.
    why_sequential
        The reason, empty for the others.
    width, height
        Size of the upright pictures, in pixels.
    rotation
        Degrees clockwise by which stored pictures were turned.
    mirrored
        Whether they were mirrored after that.
    interlaced
        Whether frames were flagged interlaced; their colours were then converted field by field.
    total
        Frames in the whole video.
    decoded
        Frames that the decoder had to give for these.
    """

    images: list[T]
    index: NDArray[np.int64]
    time_s: NDArray[np.float64]
    status: Literal["ok", "partial"]
    notes: tuple[str, ...]
    method: Literal["sparse", "sequential", "still"]
    why_sequential: str
    width: int
    height: int
    rotation: int
    mirrored: bool
    interlaced: bool
    total: int
    decoded: int

    def __len__(self) -> int:
        return len(self.images)

    def record(self) -> dict[str, object]:
        """Say in JSON's types how the frames were got."""
        names = (
            "status",
            "method",
            "why_sequential",
            "width",
            "height",
            "rotation",
            "mirrored",
            "interlaced",
            "total",
            "decoded",
        )
        return {name: getattr(self, name) for name in names} | {"notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class Probe:
    """What a video holds, learnt without decoding.

    Parameters
    ----------
    bytes
        Size of the file.
    duration_s
        Seconds from the first frame (of the span) to the end of the last; NaN where the file doesn't say.
    frames
        Frames of the video, or of the span.
    damage
        What the container promises and the file lacks, in words; empty for a whole file.
    """

    bytes: int
    duration_s: float
    frames: int
    damage: str
