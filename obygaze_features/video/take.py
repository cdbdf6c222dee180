"""Collect the caller's results for decoded frames, and remarks on unusual pictures."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video.av_errors import guarded
from obygaze_features.video.picture import Converter, Picture

T = TypeVar("T")
Bars = tuple[int, int, int, int]
NO_BARS: Bars = (0, 0, 0, 0)
# Players assume BT.709 for untagged pictures with at least this many lines.
HD_LINES = 720
# A bar of less than this share of the picture's side is an edge, not a bar.
LEAST_BAR = 0.02


@dataclass(slots=True)
class Taken(Generic[T]):
    """Images by frame number; size, orientation and colours of the first picture; remarks."""

    images: dict[int, T] = field(default_factory=dict)
    width: int = 0
    height: int = 0
    rotation: int = 0
    mirrored: bool = False
    interlaced: bool = False
    matrix: str = ""
    full_range: bool = False
    corrupt: list[int] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    _bars: Bars | None = None

    @property
    def bars(self) -> Bars:
        """Rows above and below and columns left and right that are black in all pictures but black ones."""
        return self._bars or NO_BARS

    def note(self, number: int, picture: Picture) -> None:
        """Record the properties of a picture, without its pixels."""
        height, width, _ = picture.rgb.shape
        if not self.images:
            self.width, self.height = width, height
            self.rotation, self.mirrored = picture.rotation, picture.mirrored
            self.matrix, self.full_range = picture.matrix, picture.full_range
        if picture.corrupt:
            self.corrupt.append(number)
        # Most pictures have none; after one of those the others need not be measured.
        if self._bars != NO_BARS and picture.bars is not None:
            above, below, left, right = map(min, picture.bars, self._bars or picture.bars)
            self._bars = above, below, left, right
        self.interlaced |= picture.interlaced
        untagged = picture.matrix.endswith("(untagged)") and min(width, height) >= HD_LINES
        remarks = (
            (picture.interlaced, "interlaced: colours were converted field by field"),
            (
                (width, height) != (self.width, self.height),
                "the size of the pictures changes within the video",
            ),
            (picture.oblique, "the file asks for an oblique turn of its pictures, which was not done"),
            (
                bool(picture.hdr),
                f"HDR ({picture.hdr}): its brightness was not mapped to an ordinary screen's",
            ),
            (picture.bits > 8, f"{picture.bits} bits a sample: rounded to 8"),
            (untagged, "no colour matrix is tagged: BT.601 was taken, and players take BT.709 at this size"),
        )
        self.remarks += [remark for applies, remark in remarks if applies and remark not in self.remarks]

    def all_remarks(self) -> list[str]:
        """Return all remarks, including those that need all pictures."""
        above, below, left, right = self.bars
        sides = (self.height, self.height, self.width, self.width)
        if not any(bar >= LEAST_BAR * side > 0 for bar, side in zip(self.bars, sides, strict=True)):
            return self.remarks
        share = 1 - (self.height - above - below) * (self.width - left - right) / (self.width * self.height)
        places = {"above": above, "below": below, "at the left": left, "at the right": right}
        where = ", ".join(f"{pixels} {place}" for place, pixels in places.items() if pixels)
        return [*self.remarks, f"black bars cover {share:.0%} of the pictures (pixels: {where})"]


def pictures(found: Iterable[tuple[int, VideoFrame]], path: Path) -> Iterator[tuple[int, Picture]]:
    """Convert each frame to an upright RGB picture, one at a time.

    Raises
    ------
    VideoError
        The decoder failed, or the colours cannot be converted.
    """
    convert = Converter()
    try:
        yield from guarded(((number, convert(frame)) for number, frame in found), path)
    except VideoError as error:
        raise VideoError(error.reason, path) from error


def once(each: Callable[[NDArray[np.uint8]], T], picture: Picture) -> Callable[[], T]:
    """Return a function that applies `each` to a picture on its first call and caches the result."""
    result: list[T] = []

    def apply() -> T:
        if not result:
            result.append(each(picture.rgb))
        return result[0]

    return apply
