"""`camera`: measure how the camera moves between neighbouring frames, without weights.

Corners (Shi and Tomasi 1994) are taken from each cell of a grid, equally many so that no object has most of
them, and tracked forwards and back (Lucas and Kanade 1981; Bouguet 2001). A similarity transform between the
pictures, by RANSAC (Fischler and Bolles 1981), gives the motion at the picture's centre. There is none if
less than `LEAST_INLIERS` of the corners agree, as across a cut. The motion of something that fills more than
a tenth of the picture may be taken for the camera's.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.backbone import Backbone, descriptor
from obygaze_features.errors import BackboneError, install_command
from obygaze_features.pixels import opencv

N_PAIRS = 2
"""Most pairs of frames of a clip."""
GAP_S = 0.3
"""Seconds between the frames of a pair."""
MOST_GAP_S = 1.0
"""Seconds between the frames of a pair, beyond which motion is not read."""

WIDTH = 320
"""Most pixels of a picture's width."""
GRID = (8, 6)
"""Cells across and down."""
MOST_CORNERS = 4
"""Most corners of a cell."""
CORNER_QUALITY = 0.05
"""Least strength of a corner, as a share of the strongest one of its cell."""
CORNER_DISTANCE = 4
"""Least pixels between two corners."""

BAR_LEVEL = 24
"""Largest grey level of the black bars beside a film's picture."""
BACKWARD_MISS = 1.0
"""Pixels by which a corner, tracked forwards and back, may miss its place."""
FIT_MISS = 1.5
"""Pixels by which a corner may miss the place that the fitted motion gives it."""

LEAST_CORNERS = 8
"""Fewest corners from which a motion is fitted."""
LEAST_INLIERS = 0.25
"""Least share of the corners that must agree with the fitted motion."""

FEATURES = ("pan", "tilt", "zoom", "roll", "inliers")
"""Motion to the right and up in widths of the picture with its bars, logarithm of growth, radians clockwise;
share of corners that agree."""

MEAN_SQUARE_DISTANCE = (1 + (9 / 16) ** 2) / 12
"""Mean square of the distance of a 16:9 picture's points from its centre, in widths of the picture."""

Motion = tuple[float, float, float, float, float]
Grey = NDArray[np.uint8]
Points = NDArray[np.float32]


def camera(n_frames: int = 2 * N_PAIRS) -> Backbone:
    """Build the backbone of camera motion, for clips of at most `n_frames` frames, in one or two pairs.

    `frames` [F, 5] has a pair's motion in the row of its second frame, and zeros where no motion is known.

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
    """Convert an RGB frame `[H, W, 3]` to grey and shrink it to at most `WIDTH` pixels wide, `[h, w, 1]`.

    Parameters
    ----------
    frame
        The frame, uint8.
    shape
        Width of a pixel divided by its height.
    """
    cv2 = opencv()
    grey = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)
    height, width = grey.shape
    new_width = min(width * shape, WIDTH)
    new_height = height * new_width / (width * shape)
    new_size = (max(round(new_width), 1), max(round(new_height), 1))
    small = cv2.resize(grey, new_size, interpolation=cv2.INTER_AREA)
    return np.asarray(small[..., None], np.uint8)


def encode(batch: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Measure the camera motion of each pair of frames of clips `[B, F, h, w, 1]`: `frames`, `[B, F, 5]`."""
    frames = np.zeros((*batch.shape[:2], len(FEATURES)), np.float32)
    for index, clip in enumerate(batch):
        for second in range(1, len(clip), 2):
            motion = camera_motion(clip[second - 1, ..., 0], clip[second, ..., 0])
            if motion is not None:
                frames[index, second] = motion
    return {"frames": frames}


def camera_motion(before: Grey, after: Grey) -> Motion | None:
    """Measure how the camera moves from one grey picture `[h, w]` to another.

    Returns
    -------
    tuple or None
        The values named by `FEATURES`; None if too few corners agree on one motion.
    """
    cv2 = opencv()
    rows, columns = _between_bars(before, after)
    corners = _corners(before[rows, columns]) + np.array((columns.start, rows.start), np.float32)
    motion = _motion(before, after, corners, np.zeros(2, np.float32))
    if motion is None and len(corners):
        # A fast motion loses the corners: they are tracked again, from the shift of the whole picture on.
        window = cv2.createHanningWindow(before.shape[::-1], cv2.CV_32F)
        shift, _ = cv2.phaseCorrelate(np.float32(before), np.float32(after), window)
        motion = _motion(before, after, corners, np.array(shift, np.float32))
    return motion


def camera_values(
    motions: NDArray[Any], time_s: NDArray[np.float64], cuts_s: Sequence[float] = ()
) -> dict[str, float]:
    """Average the motions of a clip's pairs.

    Pairs across a cut, or more than `MOST_GAP_S` apart, are left out.

    Parameters
    ----------
    motions
        `frames` [F, 5] of `camera`.
    time_s
        Times of the frames in seconds, [F].
    cuts_s
        Times of cuts, sorted.

    Returns
    -------
    dict
        Values a second: `camera`, how far a point of a 16:9 picture moves (root mean square), `pan` and
        `tilt`, in widths of the picture; `zoom`, the logarithm of its growth; `roll` in degrees; and
        `inliers`. Empty if no pair has a motion.
    """
    pair_motions = motions[1::2]  # a pair's motion is in the row of its second frame
    gaps_s = time_s[1::2] - time_s[::2]
    shot = np.searchsorted(np.array(cuts_s), time_s, side="right")
    is_in_one_shot = shot[1::2] == shot[::2]
    is_known = (pair_motions[:, -1] > 0) & (gaps_s > 0) & (gaps_s <= MOST_GAP_S) & is_in_one_shot
    if not is_known.any():
        return {}
    speeds = pair_motions[is_known, :-1].astype(np.float64) / gaps_s[is_known, None]
    pan, tilt, zoom, roll = speeds.mean(axis=0).tolist()
    return {
        "camera": float(np.sqrt(speeds**2 @ (1, 1, MEAN_SQUARE_DISTANCE, MEAN_SQUARE_DISTANCE)).mean()),
        "pan": pan,
        "tilt": tilt,
        "zoom": zoom,
        "roll": float(np.degrees(roll)),
        "inliers": float(pair_motions[is_known, -1].mean()),
    }


def _motion(before: Grey, after: Grey, corners: Points, shift: Points) -> Motion | None:
    """Track corners from one picture to another, and fit one motion to them; None if too few agree.

    Parameters
    ----------
    before, after
        Grey pictures `[h, w]`.
    corners
        Corners of `before`, `[N, 1, 2]`, column before row.
    shift
        Expected shift of all corners, at which tracking starts, `[2]`.
    """
    if len(corners) < LEAST_CORNERS:
        return None
    tracked, is_tracked = _track(before, after, corners, shift)
    if is_tracked.sum() < LEAST_CORNERS:
        return None
    # [2, 3]: rotation and growth in the first two columns, translation in the last one.
    similarity, inliers = opencv().estimateAffinePartial2D(
        corners[is_tracked], tracked[is_tracked], method=opencv().RANSAC, ransacReprojThreshold=FIT_MISS
    )
    if similarity is None or inliers.sum() < LEAST_CORNERS:
        return None
    height, width = before.shape
    moved = corners[:, 0] @ similarity[:, :2].T + similarity[:, 2]
    # Corners that leave the picture could not agree; half of them at least are counted.
    stays = ((moved >= 0) & (moved < (width, height))).all(axis=1)
    share = min(float(inliers.sum() / max(stays.sum(), len(corners) / 2)), 1.0)
    if share < LEAST_INLIERS:
        return None
    return (*_camera_of(similarity, height, width), share)


def _track(before: Grey, after: Grey, corners: Points, shift: Points) -> tuple[Points, NDArray[np.bool_]]:
    """Track corners to the second picture and back, by Lucas and Kanade.

    Returns
    -------
    tuple
        The corners in the second picture, `[N, 1, 2]`; and `[N]`, True for those that come back to where they
        were.
    """
    cv2 = opencv()
    settings = {"winSize": (15, 15), "maxLevel": 4, "flags": cv2.OPTFLOW_USE_INITIAL_FLOW}
    tracked, has_forward, _ = cv2.calcOpticalFlowPyrLK(before, after, corners, corners + shift, **settings)
    returned, has_backward, _ = cv2.calcOpticalFlowPyrLK(after, before, tracked, tracked - shift, **settings)
    is_back = np.abs(returned - corners).max(axis=(1, 2)) < BACKWARD_MISS
    return tracked, is_back & (has_forward & has_backward).astype(bool)[:, 0]


def _camera_of(similarity: NDArray[Any], height: int, width: int) -> tuple[float, float, float, float]:
    """Convert how a picture moved, a similarity transform `[2, 3]`, to the camera's pan, tilt, zoom and roll.

    Pictures move against the camera: to the left as it pans to the right, down as it tilts up.
    """
    rotation = similarity[:, :2]  # times the growth
    translation = similarity[:, 2]
    centre = np.array([width - 1, height - 1]) / 2
    right, down = (rotation @ centre + translation - centre) / width
    growth = float(np.log(np.hypot(*rotation[:, 0])))
    turn = float(np.arctan2(rotation[1, 0], rotation[0, 0]))
    return -float(right), float(down), growth, -turn


def _between_bars(*pictures: Grey) -> tuple[slice, slice]:
    """Return the rows and columns between the black bars of pictures.

    All of them if a cell of the grid would have less than two pixels a side.
    """
    is_lit = np.max(pictures, axis=0) > BAR_LEVEL
    rows = np.flatnonzero(is_lit.any(axis=1))
    columns = np.flatnonzero(is_lit.any(axis=0))
    if len(rows) < 2 * GRID[1] or len(columns) < 2 * GRID[0]:
        return slice(0, None), slice(0, None)
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)


def _corners(picture: Grey) -> Points:
    """Find the strongest corners in each cell of a grid on a grey picture, `[N, 1, 2]`, column first."""
    corners = [np.zeros((0, 1, 2), np.float32)]
    height, width = picture.shape
    n_columns, n_rows = GRID
    for row, column in product(range(n_rows), range(n_columns)):
        top = height * row // n_rows
        bottom = height * (row + 1) // n_rows
        left = width * column // n_columns
        right = width * (column + 1) // n_columns
        in_cell = opencv().goodFeaturesToTrack(
            picture[top:bottom, left:right], MOST_CORNERS, CORNER_QUALITY, CORNER_DISTANCE
        )
        if in_cell is not None:
            corners.append(in_cell + np.array([left, top], np.float32))
    return np.concatenate(corners)
