"""Define what a detector finds in a picture, and bring pictures to the size that detectors take.

Sightings stay in memory: `people` keeps numbers of them, and nothing that tells whose face or body it is.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.presets import Geometry, Resample

MAX_OVERLAP: Final = 0.3
"""Shared area of two boxes, as a share of their union, above which they are taken for one."""

MIN_EYE_AXIS: Final = 0.1
"""Least length of the axis of the eyes, in widths of the face. In profile it comes near 0, and a position on
it would have no bound."""

N_JOINTS: Final = 17
"""Joints of a person."""

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
    """Compute where noses lie on the axis between the eyes: 0 at the left eye and 1 at the right one.

    Parameters
    ----------
    boxes
        Boxes of the N faces, [N, 5]: left, top, right, bottom as shares of the picture, and a score.
    points
        [N, 3, 2]: left eye, right eye and nose, across before down, as shares of the picture.
    height_by_width
        Height of the picture divided by its width.

    Returns
    -------
    NDArray
        [N]. It does not change when the head is tilted to a side.
    """
    scaled = points * np.array([1.0, height_by_width])  # lengths in widths of the picture
    left_eye = scaled[:, 0]
    right_eye = scaled[:, 1]
    nose = scaled[:, 2]
    axis = right_eye - left_eye  # [N, 2]
    length = np.hypot(axis[:, 0], axis[:, 1])
    direction = axis / np.maximum(length, 1e-9)[:, None]  # of length 1, unless both eyes are at one point
    middle_of_eyes = (left_eye + right_eye) / 2
    nose_from_middle = ((nose - middle_of_eyes) * direction).sum(axis=1)  # projection on the axis

    # In profile the axis is so short that a position on it would have no bound.
    face_width = boxes[:, 2] - boxes[:, 0]
    usable_length = np.maximum(length, MIN_EYE_AXIS * face_width)
    noses: NDArray[np.float64] = 0.5 + nose_from_middle / usable_length
    return noses


def without_duplicates(boxes: Boxes) -> NDArray[np.intp]:
    """Return the rows of boxes that do not overlap a kept box of a higher score, highest score first.

    A detector may find a face several times. This is non-maximum suppression: two boxes overlap if the area
    they share is more than .3 of their union.

    Parameters
    ----------
    boxes
        [N, 5]: left, top, right, bottom as shares of the picture, and a score.
    """
    rows_by_score = np.argsort(-boxes[:, 4], kind="stable")
    kept_rows: list[int] = []
    for row in rows_by_score.tolist():
        overlaps = [_intersection_over_union(boxes[row], boxes[kept_row]) for kept_row in kept_rows]
        if all(overlap <= MAX_OVERLAP for overlap in overlaps):
            kept_rows.append(row)
    return np.array(kept_rows, np.intp)


def _intersection_over_union(box: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the area of the intersection of two boxes divided by that of their union, 0 to 1.

    A box begins with its left, top, right and bottom edge.
    """
    width = min(box[2], other[2]) - max(box[0], other[0])  # of the intersection
    height = min(box[3], other[3]) - max(box[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    intersection = width * height
    sum_of_areas = (box[2] - box[0]) * (box[3] - box[1]) + (other[2] - other[0]) * (other[3] - other[1])
    return float(intersection / (sum_of_areas - intersection))


class Padded(NamedTuple):
    """A picture with black added below and on the right.

    Attributes
    ----------
    picture
        uint8 `[H, W, 3]`, with the black.
    height_share, width_share
        Height and width before the black was added, as shares of the new height and width.
    """

    picture: NDArray[np.uint8]
    height_share: float
    width_share: float


def long_side_to(
    picture: NDArray[np.uint8], size: int, resample: Resample, shape: float = 1.0
) -> NDArray[np.uint8]:
    """Resize a picture, uint8 `[H, W, 3]`, so that its long side has `size` pixels.

    Parameters
    ----------
    picture
        The picture.
    size
        Pixels of the long side of the result.
    resample
        The filter.
    shape
        Width of the picture's pixels divided by their height; those of the result are square.
    """
    height = picture.shape[0]
    width = picture.shape[1] * shape
    scale = size / max(height, width)
    new_height = max(round(height * scale), 1)
    new_width = max(round(width * scale), 1)
    if (new_height, new_width) == picture.shape[:2]:
        return picture
    return Geometry(resample, new_height, width=new_width)(picture)


def padded(picture: NDArray[np.uint8], step: int) -> Padded:
    """Add black below and on the right of a picture, until its sides are multiples of `step` pixels."""
    height, width = picture.shape[:2]
    n_rows_below = -height % step  # rows that are missing to a multiple
    n_columns_right = -width % step
    larger = np.pad(picture, ((0, n_rows_below), (0, n_columns_right), (0, 0)))
    return Padded(larger, height / larger.shape[0], width / larger.shape[1])
