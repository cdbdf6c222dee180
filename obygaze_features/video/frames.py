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
        Frames that the decoder had to give for these; in a pass over many windows, those that it gave since
        the window before.
    matrix
        By which matrix colours became RGB, e.g. ``bt709``, or ``bt601 (untagged)`` where the file names none.
    full_range
        Whether samples were taken to use all values rather than those from 16 to 235.
    bars
        Rows above, rows below, columns at the left and at the right that are black in all these frames.
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
    matrix: str = "rgb"
    full_range: bool = True
    bars: tuple[int, int, int, int] = (0, 0, 0, 0)

    def __len__(self) -> int:
        return len(self.images)

    @property
    def distinct(self) -> int:
        """How many different frames these are: fewer than asked for where some are there twice."""
        return len(np.unique(self.index))

    def record(self) -> dict[str, object]:
        """Record as plain JSON how the frames were got."""
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
            "distinct",
            "matrix",
            "full_range",
        )
        return {name: getattr(self, name) for name in names} | {
            "bars": list(self.bars),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Probe:
    """What a video holds, learnt without decoding.

    Parameters
    ----------
    bytes
        Size of the file.
    start_s
        When the first frame (of the span) is shown; NaN where the file doesn't say.
    duration_s
        Seconds from the first frame (of the span) to the end of the last; NaN where the file doesn't say.
    frames
        Frames of the video, or of the span.
    damage
        What the container promises and the file lacks, in words; empty for a whole file.
    """

    bytes: int
    start_s: float
    duration_s: float
    frames: int
    damage: str
