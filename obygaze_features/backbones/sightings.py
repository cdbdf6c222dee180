"""Say what a detector finds in a picture, and bring pictures to the size that detectors take.

Sightings stay in memory: `people` keeps numbers of them, and nothing that tells whose face or body it is.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.presets import Geometry, Resample

OVERLAP: Final = 0.3
"""Shared area, of both together, from which on two boxes are one."""

NARROW: Final = 0.1
"""Least length of the axis of the eyes in widths of the face: shorter ones count as so long."""

N_JOINTS: Final = 17

Boxes = NDArray[np.float64]
"""Boxes [N, 5]: left, top, right, bottom as shares of the picture, and a score."""


class Faces(NamedTuple):
    """Faces of a picture.

    Attributes
    ----------
    boxes
        [N, 5]: left, top, right and bottom as shares of the picture, and a score.
    noses
        [N]: where the nose lies on the axis of the eyes, 0 at one and 1 at the other; NaN where unknown.
    """

    boxes: Boxes
    noses: NDArray[np.float64]


class Persons(NamedTuple):
    """Persons of a picture, by their joints.

    Attributes
    ----------
    boxes
        [N, 5], as those of faces.
    joints
        [N, 17, 3]: across and down as shares of the picture, and a score; nose, eyes, ears, shoulders,
        elbows, wrists, hips, knees, ankles, left before right.
    """

    boxes: Boxes
    joints: NDArray[np.float64]


def no_persons() -> Persons:
    """Return what is seen in a picture without persons."""
    return Persons(np.zeros((0, 5)), np.zeros((0, N_JOINTS, 3)))


def no_faces() -> Faces:
    """Return what is seen in a picture without faces."""
    return Faces(np.zeros((0, 5)), np.zeros(0))


def noses_of(boxes: Boxes, points: NDArray[np.float64], height_by_width: float) -> NDArray[np.float64]:
    """Find where noses lie on the axis between the eyes.

    Parameters
    ----------
    boxes
        [N, 5].
    points
        [N, 3, 2]: left eye, right eye and nose, across before down, as shares of the picture.
    height_by_width
        Of the picture.

    Returns
    -------
    NDArray
        [N]. How far the head is bent to a side does not change it.
    """
    scaled = points * np.array([1.0, height_by_width])
    axis = scaled[:, 1] - scaled[:, 0]
    width = boxes[:, 2] - boxes[:, 0]
    length = np.hypot(axis[:, 0], axis[:, 1])
    unit = axis / np.maximum(length, 1e-9)[:, None]
    middle = (scaled[:, 0] + scaled[:, 1]) / 2
    along = ((scaled[:, 2] - middle) * unit).sum(axis=1)
    noses: NDArray[np.float64] = 0.5 + along / np.maximum(length, NARROW * width)
    return noses


def each_once(boxes: Boxes) -> NDArray[np.intp]:
    """Choose boxes [N, 5]: of those that share `OVERLAP` of their area the surest; the surest first."""
    order = np.argsort(-boxes[:, 4], kind="stable")
    chosen: list[int] = []
    for index in order.tolist():
        if all(_shared_area(boxes[index], boxes[other]) <= OVERLAP for other in chosen):
            chosen.append(index)
    return np.array(chosen, np.intp)


def _shared_area(box: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the area in both of two boxes, as a share of that in one or both."""
    width = min(box[2], other[2]) - max(box[0], other[0])
    height = min(box[3], other[3]) - max(box[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    inside = width * height
    areas = (box[2] - box[0]) * (box[3] - box[1]) + (other[2] - other[0]) * (other[3] - other[1])
    return float(inside / (areas - inside))


class Padded(NamedTuple):
    """A picture with black below and on the right, and the shares of its height and width that are filled."""

    picture: NDArray[np.uint8]
    height: float
    width: float


def long_side_to(
    picture: NDArray[np.uint8], size: int, resample: Resample, shape: float = 1.0
) -> NDArray[np.uint8]:
    """Resize a picture, uint8 `[H, W, 3]`, of pixels `shape` as wide as high, to a long side of `size`."""
    height, width = picture.shape[0], picture.shape[1] * shape
    scale = size / max(height, width)
    sides = max(round(height * scale), 1), max(round(width * scale), 1)
    if sides == picture.shape[:2]:
        return picture
    return Geometry(resample, sides[0], width=sides[1])(picture)


def padded(picture: NDArray[np.uint8], step: int) -> Padded:
    """Add black below and on the right of a picture, up to multiples of `step` pixels."""
    height, width = picture.shape[:2]
    below, right = -height % step, -width % step
    larger = np.pad(picture, ((0, below), (0, right), (0, 0)))
    return Padded(larger, height / (height + below), width / (width + right))
