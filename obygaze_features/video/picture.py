"""From a decoded frame to upright RGB pixels at full size."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from av.buffer import Buffer
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

# Display matrices, as the signs of (a, b, c, d) in x' = a x + c y, y' = b x + d y, to quarter turns clockwise
# and whether the picture is mirrored (left to right, after turning). ISO/IEC 14496-12, 6.2.2.
ORIENTATIONS = {
    (1, 0, 0, 1): (0, False),
    (0, 1, -1, 0): (1, False),
    (-1, 0, 0, -1): (2, False),
    (0, -1, 1, 0): (3, False),
    (-1, 0, 0, 1): (0, True),
    (0, 1, 1, 0): (1, True),
    (1, 0, 0, -1): (2, True),
    (0, -1, -1, 0): (3, True),
}


@dataclass(frozen=True, slots=True)
class Picture:
    """One frame's pixels, and what was done to them.

    Parameters
    ----------
    rgb
        uint8 [H, W, 3], upright.
    rotation
        Degrees clockwise by which the stored picture was turned: 0, 90, 180 or 270.
    mirrored
        Whether it was then mirrored left to right.
    oblique
        Whether the file asks for another turn, which was not done.
    interlaced
        Whether the frame is flagged interlaced: its colours were converted field by field.
    corrupt
        Whether the decoder flags it as damaged.
    """

    rgb: NDArray[np.uint8]
    rotation: int
    mirrored: bool
    oblique: bool
    interlaced: bool
    corrupt: bool


class Converter:
    """Turns frames into pictures; one for each stream, as it keeps its tables."""

    def __init__(self) -> None:
        self._reformatter = VideoReformatter()

    def __call__(self, frame: VideoFrame) -> Picture:
        """Convert to rgb24 at full size (rgba is wrong at some widths in PyAV 18.1), then turn upright."""
        stored = self._reformatter.reformat(frame, format="rgb24", threads=1).to_ndarray()
        turns, mirrored, oblique = orientation(frame)
        upright = np.rot90(stored, -turns)
        rgb = np.ascontiguousarray(upright[:, ::-1] if mirrored else upright, np.uint8)
        return Picture(rgb, 90 * turns, mirrored, oblique, frame.interlaced_frame, frame.is_corrupt)


def orientation(frame: VideoFrame) -> tuple[int, bool, bool]:
    """Quarter turns clockwise and mirroring that make a frame upright, and whether it asks for more."""
    # PyAV's frame.rotation takes a mirrored picture for a turned one, so the matrix itself is read.
    data = cast("Mapping[str, Buffer]", frame.side_data).get("DISPLAYMATRIX")
    if data is None:
        return 0, False, False
    a, b, _, c, d = np.frombuffer(bytes(data), np.int32)[:5].tolist()
    signs = (_sign(a), _sign(b), _sign(c), _sign(d))
    if signs in ORIENTATIONS:
        return *ORIENTATIONS[signs], False
    return 0, False, True


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)
