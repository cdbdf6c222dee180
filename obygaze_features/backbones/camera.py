"""`camera`: measure how the camera moves between neighbouring frames, without weights.

Corners (Shi and Tomasi 1994) are taken from each cell of a grid, equally many so that no object has most of
them, and tracked forwards and back (Lucas and Kanade 1981; Bouguet 2001). A similarity transform between the
pictures, by RANSAC (Fischler and Bolles 1981), gives the motion at the picture's centre. There is none if
less than `MIN_INLIERS` of the corners agree, as across a cut. The motion of something that fills more than
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
MAX_GAP_S = 1.0
"""Seconds between the frames of a pair, beyond which motion is not read."""

WIDTH = 320
"""Most pixels of a picture's width."""
GRID_COLUMNS = 8
"""Cells across."""
GRID_ROWS = 6
"""Cells down."""
CORNERS_PER_CELL = 4
"""Most corners of a cell."""
MIN_STRENGTH = 0.05
"""Least strength of a corner, as a share of the strongest one of its cell."""
MIN_DISTANCE = 4
"""Least pixels between two corners."""

BAR_LEVEL = 24
"""Largest grey level of the black bars beside a film's picture."""
MAX_RETURN_ERROR = 1.0
"""Pixels by which a corner, tracked forwards and back, may miss where it was."""
MAX_FIT_ERROR = 1.5
"""Pixels by which a corner may miss the place that the fitted motion gives it."""

MIN_CORNERS = 8
"""Fewest corners from which a motion is fitted."""
MIN_INLIERS = 0.25
"""Least share of the corners that must agree with the fitted motion."""

FEATURES = ("pan", "tilt", "zoom", "roll", "inliers")
"""Motion to the right and up in widths of the picture with its bars, logarithm of growth, radians clockwise;
share of corners that agree."""

MEAN_SQUARE_DISTANCE = (1 + (9 / 16) ** 2) / 12
"""Mean square of the distance of a 16:9 picture's points from its centre, in widths of the picture.

A zoom or a roll moves a point in proportion to its distance from the centre.
"""

Motion = tuple[float, float, float, float, float]
Grey = NDArray[np.uint8]
Points = NDArray[np.float32]


def camera(n_frames: int = 2 * N_PAIRS) -> Backbone:
    """Build the backbone of camera motion, for clips of one or two pairs of frames.

    The frames of a pair are .3 s apart. The array `frames` [F, 5] has a pair's motion in the row of its
    second frame, and zeros where no motion is known.

    Parameters
    ----------
    n_frames
        Frames per clip, rounded down to whole pairs: 2 or 4.

    Raises
    ------
    BackboneError
        OpenCV is not installed.
    """
    if opencv() is None:
        raise BackboneError(f"backbone 'camera' needs OpenCV: {install_command('obygaze[extract]')}")
    n_pairs = min(max(n_frames // 2, 1), N_PAIRS)
    return descriptor(
        "camera",
        2 * n_pairs,
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
    height, stored_width = grey.shape
    shown_width = stored_width * shape  # in square pixels
    new_width = min(shown_width, WIDTH)
    new_height = height * new_width / shown_width
    new_size = (max(round(new_width), 1), max(round(new_height), 1))
    small = cv2.resize(grey, new_size, interpolation=cv2.INTER_AREA)
    return np.asarray(small[..., None], np.uint8)


def encode(batch: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Measure the camera motion of each pair of frames of clips `[B, F, h, w, 1]`: `frames`, `[B, F, 5]`.

    The columns are `FEATURES`. The motion of a pair is in the row of its second frame. The other rows are 0,
    as are those of pairs whose motion is unknown.
    """
    frames = np.zeros((*batch.shape[:2], len(FEATURES)), np.float32)
    for clip_index, clip in enumerate(batch):
        pictures = clip[..., 0]
        for second in range(1, len(pictures), 2):
            motion = camera_motion(pictures[second - 1], pictures[second])
            if motion is not None:
                frames[clip_index, second] = motion
    return {"frames": frames}


def camera_motion(before: Grey, after: Grey) -> Motion | None:
    """Measure how the camera moves from one grey picture `[h, w]` to another.

    Corners of the first picture are looked for in the second; most of them move as the camera does.

    Returns
    -------
    tuple or None
        Pan, tilt, zoom, roll and the share of the corners that agree, as `FEATURES` has them; None if too few
        agree on one motion.
    """
    # Corners are taken within the black bars beside the picture, and numbered in the whole frame.
    rows, columns = _between_bars(before, after)
    top_left = np.array((columns.start, rows.start), np.float32)
    corners = _corners(before[rows, columns]) + top_left
    no_shift = np.zeros(2, np.float32)
    motion = _fitted_motion(before, after, corners, expected_shift=no_shift)
    if motion is None and len(corners):
        # A fast motion loses the corners: they are looked for again where the whole picture has moved to.
        shift = _shift_of_picture(before, after)
        motion = _fitted_motion(before, after, corners, expected_shift=shift)
    return motion


def _shift_of_picture(before: Grey, after: Grey) -> Points:
    """Estimate by how many pixels a picture moves as a whole, `[2]` (across, down), by phase correlation.

    Parameters
    ----------
    before, after
        Grey pictures `[h, w]`.
    """
    cv2 = opencv()
    height, width = before.shape
    # The window fades the picture's borders out, which would else look like edges of the scene.
    window = cv2.createHanningWindow((width, height), cv2.CV_32F)
    shift, _ = cv2.phaseCorrelate(np.float32(before), np.float32(after), window)
    return np.array(shift, np.float32)


def camera_values(
    motions: NDArray[Any], time_s: NDArray[np.float64], cuts_s: Sequence[float] = ()
) -> dict[str, float]:
    """Average the camera motions of a clip's pairs of frames, per second.

    Pairs are left out if there is a cut between their frames, or more than `MAX_GAP_S`.

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
        Empty if no pair has a motion. Else, each the mean over the pairs:

        - `pan` and `tilt`, in widths of the picture per second;
        - `zoom`, the logarithm of the picture's growth per second;
        - `roll`, in degrees per second;
        - `camera`, how fast all four together move the points of a 16:9 picture (root mean square over the
          points, in widths per second);
        - `inliers`, the share of corners that agree.
    """
    # Pairs are frames 0 and 1, frames 2 and 3, and so on.
    first_frames = slice(0, None, 2)
    second_frames = slice(1, None, 2)
    pair_motions = motions[second_frames]  # [pairs, 5]: a pair's motion is in the row of its second frame
    inliers = pair_motions[:, -1]  # 0 where the motion is unknown

    gaps_s = time_s[second_frames] - time_s[first_frames]
    shots = np.searchsorted(np.array(cuts_s), time_s, side="right")  # number of the shot of each frame
    is_in_one_shot = shots[second_frames] == shots[first_frames]
    has_short_gap = (gaps_s > 0) & (gaps_s <= MAX_GAP_S)
    is_usable = (inliers > 0) & has_short_gap & is_in_one_shot
    if not is_usable.any():
        return {}

    usable_motions = pair_motions[is_usable, :-1].astype(np.float64)  # [pairs, 4], without the inliers
    speeds = usable_motions / gaps_s[is_usable, None]
    pan, tilt, zoom, roll = speeds.mean(axis=0).tolist()
    return {
        "camera": float(_speed_of_points(speeds).mean()),
        "pan": pan,
        "tilt": tilt,
        "zoom": zoom,
        "roll": float(np.degrees(roll)),
        "inliers": float(inliers[is_usable].mean()),
    }


def _speed_of_points(speeds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute how fast a motion moves the points of a 16:9 picture: root mean square, in widths per second.

    The mean square of the speed is `pan^2 + tilt^2 + (zoom^2 + roll^2) * MEAN_SQUARE_DISTANCE`: a zoom or a
    roll moves a point in proportion to its distance from the picture's centre.

    Parameters
    ----------
    speeds
        Pan, tilt, zoom and roll (in radians) per second, [pairs, 4].

    Returns
    -------
    ndarray
        [pairs].
    """
    weights = (1, 1, MEAN_SQUARE_DISTANCE, MEAN_SQUARE_DISTANCE)
    mean_squares = speeds**2 @ weights
    return np.asarray(np.sqrt(mean_squares))


def _fitted_motion(before: Grey, after: Grey, corners: Points, expected_shift: Points) -> Motion | None:
    """Track corners from one picture to another, and fit one motion to them; None if too few agree.

    Parameters
    ----------
    before, after
        Grey pictures `[h, w]`.
    corners
        Corners of `before`, `[N, 1, 2]`, column before row.
    expected_shift
        Shift of all corners in pixels, at which tracking starts, `[2]`.

    Returns
    -------
    tuple or None
        Pan, tilt, zoom, roll, and the share of the corners that agree.
    """
    if len(corners) < MIN_CORNERS:
        return None
    cv2 = opencv()
    tracked, is_tracked = _track(before, after, corners, expected_shift)
    if is_tracked.sum() < MIN_CORNERS:
        return None

    # [2, 3]: rotation times growth in the first two columns, translation in the last one.
    similarity, inliers = cv2.estimateAffinePartial2D(
        corners[is_tracked],
        tracked[is_tracked],
        method=cv2.RANSAC,
        ransacReprojThreshold=MAX_FIT_ERROR,
    )
    if similarity is None or inliers.sum() < MIN_CORNERS:
        return None

    height, width = before.shape
    n_expected = _n_expected_inliers(corners, similarity, height, width)
    # At most 1: corners that leave the picture are not expected, and some of them may still be tracked.
    share_of_inliers = min(float(inliers.sum() / n_expected), 1.0)
    if share_of_inliers < MIN_INLIERS:
        return None
    pan, tilt, zoom, roll = _camera_of(similarity, height, width)
    return pan, tilt, zoom, roll, share_of_inliers


def _n_expected_inliers(corners: Points, similarity: NDArray[Any], height: int, width: int) -> float:
    """Return how many corners would agree with a motion if it were that of the whole picture.

    They are the corners that stay in the picture, as one that leaves it cannot be tracked. The number is at
    least half of all corners: else a few corners could confirm a wrong motion that takes the others out of
    the picture.

    Parameters
    ----------
    corners
        Corners of the first picture, `[N, 1, 2]`, column before row.
    similarity
        The motion, a similarity transform `[2, 3]`.
    height, width
        Of the picture, in pixels.
    """
    rotation_and_growth = similarity[:, :2]
    translation = similarity[:, 2]
    moved = corners[:, 0] @ rotation_and_growth.T + translation  # [N, 2]
    stays = ((moved >= 0) & (moved < (width, height))).all(axis=1)
    return float(max(stays.sum(), len(corners) / 2))


def _track(
    before: Grey, after: Grey, corners: Points, expected_shift: Points
) -> tuple[Points, NDArray[np.bool_]]:
    """Track corners from one picture to another and back, by the method of Lucas and Kanade.

    Parameters
    ----------
    before, after
        Grey pictures `[h, w]`.
    corners
        Corners of `before`, `[N, 1, 2]`, column before row.
    expected_shift
        Shift of all corners in pixels, `[2]`, at which the search for them starts.

    Returns
    -------
    tuple
        The corners in the second picture, `[N, 1, 2]`; and `[N]`, True for those that come back to where they
        were.
    """
    cv2 = opencv()
    settings = {"winSize": (15, 15), "maxLevel": 4, "flags": cv2.OPTFLOW_USE_INITIAL_FLOW}
    tracked, is_found, _ = cv2.calcOpticalFlowPyrLK(
        before, after, corners, corners + expected_shift, **settings
    )
    returned, is_found_back, _ = cv2.calcOpticalFlowPyrLK(
        after, before, tracked, tracked - expected_shift, **settings
    )
    is_near = np.abs(returned - corners).max(axis=(1, 2)) < MAX_RETURN_ERROR
    is_found_twice = (is_found & is_found_back).astype(bool)[:, 0]  # from [N, 1] of 0 and 1
    return tracked, is_near & is_found_twice


def _camera_of(similarity: NDArray[Any], height: int, width: int) -> tuple[float, float, float, float]:
    """Convert how a picture moved, a similarity transform `[2, 3]`, to the camera's pan, tilt, zoom and roll.

    A picture moves against the camera: to the left as the camera pans to the right, down as it tilts up, and
    anticlockwise as it rolls clockwise. Pan and tilt are in widths of the picture, to the right and up; zoom
    is the logarithm of the picture's growth; roll is in radians, clockwise.

    Parameters
    ----------
    similarity
        Rotation times growth in the first two columns, translation in the last one.
    height, width
        Of the picture, in pixels.
    """
    rotation_and_growth = similarity[:, :2]
    translation = similarity[:, 2]
    centre = np.array([width - 1, height - 1]) / 2
    moved_centre = rotation_and_growth @ centre + translation
    right, down = (moved_centre - centre) / width
    cosine, sine = rotation_and_growth[:, 0]  # of the angle, clockwise in the picture, times the growth
    log_growth = float(np.log(np.hypot(cosine, sine)))
    angle = float(np.arctan2(sine, cosine))
    return -float(right), float(down), log_growth, -angle


def _between_bars(*pictures: Grey) -> tuple[slice, slice]:
    """Return the rows and columns between the black bars that grey pictures `[h, w]` have in common.

    If the lit part is too small for the grid of corners (a cell would be less than two pixels high or wide),
    all rows and columns are returned.
    """
    is_lit = np.max(pictures, axis=0) > BAR_LEVEL
    lit_rows = np.flatnonzero(is_lit.any(axis=1))
    lit_columns = np.flatnonzero(is_lit.any(axis=0))
    if len(lit_rows) < 2 * GRID_ROWS or len(lit_columns) < 2 * GRID_COLUMNS:
        return slice(0, None), slice(0, None)
    return slice(lit_rows[0], lit_rows[-1] + 1), slice(lit_columns[0], lit_columns[-1] + 1)


def _corners(picture: Grey) -> Points:
    """Find the strongest corners of a grey picture `[h, w]`, up to `CORNERS_PER_CELL` in each cell of a grid.

    Returns
    -------
    NDArray
        Column and row of each corner, float32 `[N, 1, 2]`, as OpenCV takes points.
    """
    no_corners = np.zeros((0, 1, 2), np.float32)  # for a picture without any
    corners_of_cells = [no_corners]
    height, width = picture.shape
    for row, column in product(range(GRID_ROWS), range(GRID_COLUMNS)):
        top = height * row // GRID_ROWS
        bottom = height * (row + 1) // GRID_ROWS
        left = width * column // GRID_COLUMNS
        right = width * (column + 1) // GRID_COLUMNS
        corners_in_cell = opencv().goodFeaturesToTrack(
            picture[top:bottom, left:right],
            maxCorners=CORNERS_PER_CELL,
            qualityLevel=MIN_STRENGTH,
            minDistance=MIN_DISTANCE,
        )
        if corners_in_cell is not None:
            corners_of_cells.append(corners_in_cell + np.array([left, top], np.float32))
    return np.concatenate(corners_of_cells)
