"""`camera`: measure how the camera moves between neighbouring frames, without weights.

Corners (Shi and Tomasi 1994), as many from each cell of a grid so that no object has most of them, are
tracked there and back (Lucas and Kanade 1981; Bouguet 2001). A similarity of picture to picture by RANSAC
(Fischler and Bolles 1981) gives the motion at the picture's centre. It is absent where under `LEAST_INLIERS`
of the corners agree, as across a cut. What fills more than a tenth of the picture may be taken for it.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.backbone import Backbone, descriptor
from obygaze_features.errors import BackboneError, install_command
from obygaze_features.pixels import opencv

N_PAIRS, GAP_S = 2, 0.3
MOST_GAP_S = 1.0
"""Seconds between the frames of a pair, beyond which motion is not read."""

WIDTH = 320
GRID, CORNERS = (8, 6), 4
"""Cells across and down, and most corners of each."""

BLACK, BACK, OFF = 24, 1.0, 1.5
"""Largest grey level of bars; pixels that a corner may miss its place by there and back, and in the fit."""

LEAST_CORNERS, LEAST_INLIERS = 8, 0.25

FEATURES = ("pan", "tilt", "zoom", "roll", "inliers")
"""To the right and up in widths of the picture with its bars, logarithm of growth, radians clockwise; share
of corners."""

POINT = (1 + (9 / 16) ** 2) / 12
"""Mean square of the distance of a 16:9 picture's points from its centre, in its width."""

Motion = tuple[float, float, float, float, float]
Grey = NDArray[np.uint8]
Points = NDArray[np.float32]


def camera(n_frames: int = 2 * N_PAIRS) -> Backbone:
    """Build the backbone for clips of at most `n_frames` frames, which are taken in one or two pairs.

    `frames` [F, 5] has the motion in the row of a pair's second frame; zeros where there is none.

    Raises
    ------
    BackboneError
        OpenCV is not installed.
    """
    if opencv() is None:
        raise BackboneError(f"backbone 'camera' needs OpenCV: {install_command('obygaze[extract]')}")
    n_frames = 2 * min(max(n_frames // 2, 1), N_PAIRS)
    return descriptor(
        "camera",
        n_frames,
        FEATURES,
        prepare,
        encode,
        resize=f"at most {WIDTH} wide, by OpenCV's area mean",
        crop=None,
        order="grey, resize",
        citation="Shi & Tomasi 1994; Bouguet 2001; Fischler & Bolles 1981",
        arrays=("frames",),
        libraries=("opencv-python-headless",),
        pair_gap_s=GAP_S,
    )


def prepare(frame: NDArray[np.uint8], shape: float = 1.0) -> NDArray[np.uint8]:
    """Make a frame `[H, W, 3]`, of pixels `shape` times as wide as high, grey and small, `[h, w, 1]`."""
    cv2 = opencv()
    grey = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)
    height, width = grey.shape
    wide = min(width * shape, WIDTH)
    size = max(round(wide), 1), max(round(height * wide / (width * shape)), 1)
    return np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA)[..., None], np.uint8)


def encode(batch: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Measure clips of pairs, `[B, F, h, w, 1]`: `frames`, `[B, F, 5]`."""
    found = np.zeros((*batch.shape[:2], len(FEATURES)), np.float32)
    for clip, after in product(range(len(batch)), range(1, batch.shape[1], 2)):
        found[clip, after] = camera_motion(*batch[clip, after - 1 : after + 1, ..., 0]) or 0.0
    return {"frames": found}


def camera_motion(before: Grey, after: Grey) -> Motion | None:
    """Measure how the camera moves from one grey picture `[h, w]` to another; None where it cannot be told.

    Returns
    -------
    tuple or None
        As `FEATURES`.
    """
    cv2 = opencv()
    rows, columns = inside = _between_bars(before, after)  # or within what is dark, so nothing is cropped
    corners = _corners(before[inside]) + np.array((columns.start, rows.start), np.float32)
    motion = _motion(before, after, corners, np.zeros(2, np.float32))
    if motion is None and len(corners):
        # Corners do not find their place over a fast motion: they begin near it.
        window = cv2.createHanningWindow(before.shape[::-1], cv2.CV_32F)
        shift, _ = cv2.phaseCorrelate(np.float32(before), np.float32(after), window)
        motion = _motion(before, after, corners, np.array(shift, np.float32))
    return motion


def camera_values(
    motions: NDArray[Any], time_s: NDArray[np.float64], cuts_s: Sequence[float] = ()
) -> dict[str, float]:
    """Average the motions of a clip's pairs, `frames` [F, 5] of `camera`, with their times [F].

    Between the frames of a pair there must be none of the cuts, whose times are sorted.

    Returns
    -------
    dict
        A second: `camera`, how far a point of a 16:9 picture moves (root mean square), `pan` and `tilt`, in
        widths of the picture; `zoom`, the logarithm of its growth; `roll` in degrees; and `inliers`. Empty
        if no pair at most `MOST_GAP_S` apart has a motion.
    """
    gaps = time_s[1::2] - time_s[::2]
    shot = np.searchsorted(np.array(cuts_s), time_s, side="right")
    known = (motions[1::2, -1] > 0) & (gaps > 0) & (gaps <= MOST_GAP_S) & (shot[1::2] == shot[::2])
    if not known.any():
        return {}
    speeds = motions[1::2][known, :-1].astype(np.float64) / gaps[known, None]
    size = np.sqrt(speeds**2 @ (1, 1, POINT, POINT)).mean()
    means = [*speeds.mean(axis=0).tolist(), float(motions[1::2][known, -1].mean())]
    found = {"camera": float(size), **dict(zip(FEATURES, means, strict=True))}
    return found | {"roll": float(np.degrees(found["roll"]))}


def _motion(before: Grey, after: Grey, corners: Points, shift: Points) -> Motion | None:
    """Track corners `[N, 1, 2]` from a shift on, and fit their motion."""
    cv2 = opencv()
    if len(corners) < LEAST_CORNERS:
        return None
    how = {"winSize": (15, 15), "maxLevel": 4, "flags": cv2.OPTFLOW_USE_INITIAL_FLOW}
    there, went, _ = cv2.calcOpticalFlowPyrLK(before, after, corners, corners + shift, **how)
    back, came, _ = cv2.calcOpticalFlowPyrLK(after, before, there, there - shift, **how)
    kept = (np.abs(back - corners).max(axis=(1, 2)) < BACK) & (went & came).astype(bool)[:, 0]
    if kept.sum() < LEAST_CORNERS:
        return None
    found, inliers = cv2.estimateAffinePartial2D(
        corners[kept], there[kept], method=cv2.RANSAC, ransacReprojThreshold=OFF
    )
    if found is None or inliers.sum() < LEAST_CORNERS:
        return None
    height, width = before.shape
    moved = corners[:, 0] @ found[:, :2].T + found[:, 2]
    # Those that leave the picture are not asked.
    stay = ((moved >= 0) & (moved < (width, height))).all(axis=1)
    share = min(float(inliers.sum() / max(stay.sum(), len(corners) / 2)), 1.0)
    if share < LEAST_INLIERS:
        return None
    centre = np.array([width - 1, height - 1]) / 2
    right, down = (found[:, :2] @ centre + found[:, 2] - centre) / width
    turned = float(np.arctan2(found[1, 0], found[0, 0]))
    # Pictures move against the camera.
    return -float(right), float(down), float(np.log(np.hypot(*found[:, 0]))), -turned, share


def _between_bars(*pictures: Grey) -> tuple[slice, slice]:
    """Find the part of pictures within black bars; whole pictures where they are dark."""
    lit = np.max(pictures, axis=0) > BLACK
    rows, columns = (np.flatnonzero(lit.any(axis=axis)) for axis in (1, 0))
    if len(rows) < 2 * GRID[1] or len(columns) < 2 * GRID[0]:
        return np.s_[0:, 0:]
    return np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _corners(picture: Grey) -> Points:
    """Find the corners of each cell, `[N, 1, 2]`, column before row."""
    found = [np.zeros((0, 1, 2), np.float32)]
    height, width = picture.shape
    for row, column in product(range(GRID[1]), range(GRID[0])):
        top, bottom = (height * n // GRID[1] for n in (row, row + 1))
        left, right = (width * n // GRID[0] for n in (column, column + 1))
        cell = opencv().goodFeaturesToTrack(picture[top:bottom, left:right], CORNERS, 0.05, 4)
        if cell is not None:
            found.append(cell + np.array([left, top], np.float32))
    return np.concatenate(found)
