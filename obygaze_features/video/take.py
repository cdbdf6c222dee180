"""Turn decoded frames into what the caller wants of them, and note what their pictures had about them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from obygaze_features.video.errors import guarded
from obygaze_features.video.picture import Converter, Picture

T = TypeVar("T")


@dataclass(slots=True)
class Taken(Generic[T]):
    """Images by number of frame; the first picture's size and orientation; what was odd."""

    images: dict[int, T] = field(default_factory=dict)
    width: int = 0
    height: int = 0
    rotation: int = 0
    mirrored: bool = False
    interlaced: bool = False
    corrupt: list[int] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def has(self, wanted: Iterable[int]) -> bool:
        """Whether all of these frames are there."""
        return set(wanted) <= self.images.keys()

    def note(self, number: int, picture: Picture) -> None:
        """Remember everything about a picture but its pixels."""
        height, width, _ = picture.rgb.shape
        if not self.images:
            self.width, self.height = width, height
            self.rotation, self.mirrored = picture.rotation, picture.mirrored
        if picture.corrupt:
            self.corrupt.append(number)
        if picture.interlaced and not self.interlaced:
            self.interlaced = True
            self.remarks.append("interlaced: colours were converted field by field")
        remarks = (
            (
                (width, height) != (self.width, self.height),
                "the size of the pictures changes within the video",
            ),
            (picture.oblique, "the file asks for an oblique turn of its pictures, which was not done"),
        )
        self.remarks += [remark for applies, remark in remarks if applies and remark not in self.remarks]


def take(
    found: Iterable[tuple[int, VideoFrame]], each: Callable[[int, NDArray[np.uint8]], T], path: Path
) -> Taken[T]:
    """Convert each frame to upright RGB and hand it with its number to `each`, one at a time.

    Raises
    ------
    VideoError
        The decoder broke down. What `each` raises is passed on as it is.
    """
    convert = Converter()
    taken: Taken[T] = Taken()
    for number, picture in guarded(((number, convert(frame)) for number, frame in found), path):
        taken.note(number, picture)
        taken.images[number] = each(number, picture.rgb)
    return taken
