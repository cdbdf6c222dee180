"""The backbone `camera`: planted motions are read with sign and unit; what cannot be told is absent."""

import numpy as np
import pytest

from benchmarks.planted.staging import filmed, leaves
from obygaze_features.backbones import load_backbone
from obygaze_features.backbones.camera import (
    _between_bars,
    _n_expected_inliers,
    camera_values,
    encode,
    prepare,
)
from obygaze_features.errors import BackboneError

SCENE = leaves(np.random.default_rng(0))
START = filmed(SCENE)
"""A picture of 320 x 180 pixels, as all here; `filmed(SCENE, right=32)` is it after the camera moved."""
GAP_S = 0.5
"""Seconds between the two pictures of a pair."""


def motion_between(*pairs, gap_s=GAP_S, pixel_width=1.0):
    """Return what is read in pairs of pictures, by name; `pixel_width` is in heights of a pixel."""
    frames = np.stack([prepare(picture, pixel_width) for pair in pairs for picture in pair])
    times = np.ravel([[2.0 * number, 2.0 * number + gap_s] for number in range(len(pairs))])
    return camera_values(encode(frames[None])["frames"][0], times)


def grey_picture(level):
    """Return a picture of one grey."""
    return np.full_like(START, level)


def squeezed(picture, pixel_width):
    """Average pixels side by side, so that each is several times as wide as high."""
    return picture.reshape(180, -1, pixel_width, 3).mean(axis=2).astype(np.uint8)


def assert_moves(values, **expected):
    """Compare pan, tilt, zoom and roll, of which those that are not named should be 0."""
    for name in ("pan", "tilt", "zoom", "roll"):
        tolerance = 0.21 if name == "roll" else 0.01  # roll is in degrees
        assert values[name] == pytest.approx(expected.get(name, 0.0), rel=0.05, abs=tolerance)


MOTIONS = {
    # Pan and tilt in widths of the picture a second, zoom in logarithms, roll in degrees.
    "pan": ({"right": 32}, 32 / 320 / GAP_S),
    "tilt": ({"down": -16}, 16 / 320 / GAP_S),
    "zoom": ({"growth": 1.1}, np.log(1.1) / GAP_S),
    "roll": ({"turn": np.radians(5)}, 5 / GAP_S),
}


@pytest.mark.parametrize(
    ("name", "move", "speed"), [(name, *case) for name, case in MOTIONS.items()], ids=MOTIONS
)
@pytest.mark.parametrize("pixel_width", [1, 2])
def test_planted_motions_are_read_with_sign_and_unit(name, move, speed, pixel_width):
    """The camera moves in one way (`move`) between two pictures of 320 x 180 pixels, half a second apart.

    So 32 pixels to the right are a pan of .2 widths a second (`speed`), and the other motions are 0. Pixels
    may be twice as wide as high; the motion explains how most points moved (`inliers`).
    """
    before = squeezed(START, pixel_width)
    after = squeezed(filmed(SCENE, **move), pixel_width)

    motion = motion_between((before, after), pixel_width=pixel_width)

    assert_moves(motion, **{name: speed})
    assert motion["inliers"] > 0.5


def root_mean_square_distance_from_centre(height):
    """Compute it from a grid of points of a picture, in widths; `height` is in widths too."""
    x = np.linspace(-0.5, 0.5, 101)
    y = np.linspace(-0.5, 0.5, 101) * height
    x_of_points, y_of_points = np.meshgrid(x, y)
    return np.sqrt((x_of_points**2 + y_of_points**2).mean())


@pytest.mark.parametrize(
    ("name", "move", "speed"), [(name, *case) for name, case in MOTIONS.items()], ids=MOTIONS
)
def test_camera_is_the_root_mean_square_speed_of_all_points(name, move, speed):
    """Between two pictures the camera makes one motion of MOTIONS: `move` is what `filmed` is told to do.

    A pan or tilt moves all points alike, with `speed` in widths of the picture a second. A zoom or roll moves
    a point the faster the further it is from the centre: its speed, in logarithms or degrees a second, counts
    times the root mean square distance of all points from the centre, in widths of the picture.
    """
    distance = root_mean_square_distance_from_centre(height=180 / 320)
    expected_of_motion = {
        "pan": speed,
        "tilt": speed,
        "zoom": speed * distance,
        "roll": np.radians(speed) * distance,
    }
    before = START
    after = filmed(SCENE, **move)

    motion = motion_between((before, after))

    assert motion["camera"] == pytest.approx(expected_of_motion[name], rel=0.06)


def test_a_camera_that_stands_still_does_not_move():
    """The same picture is seen twice. The speed `camera` is in widths of the picture a second."""
    motion = motion_between((START, START))

    assert motion["camera"] < 0.001


def test_black_bars_above_and_below_do_not_count_as_picture():
    """Two pictures of 320 x 180 pixels, half a second apart, get black bars of 40 pixels above and below.

    The camera moves up by 16 pixels between them (`down=-16`). The tilt is in widths of the picture a second,
    so the bars change nothing: it is 16 / 320 in half a second.
    """
    bars = ((40, 40), (0, 0), (0, 0))
    before = np.pad(START, bars)
    after = np.pad(filmed(SCENE, down=-16), bars)

    motion = motion_between((before, after))

    assert motion["tilt"] == pytest.approx(16 / 320 / 0.5, rel=0.05)


@pytest.mark.parametrize(
    "dark", [np.s_[:, :140], np.s_[:, 180:], np.s_[:90]], ids=["left of it", "right of it", "upper half"]
)
@pytest.mark.parametrize(
    ("name", "move", "speed"), [(name, *MOTIONS[name]) for name in ("pan", "zoom", "roll")]
)
def test_a_motion_is_measured_rightly_although_an_area_at_the_edge_of_both_pictures_is_dark(
    dark, name, move, speed
):
    """Black bars at the edge are no part of a picture, and are cut off. A dark area is no such bar.

    It is a twelfth as bright as it was, and still has the scene in it. The camera pans, zooms or rolls at a
    `speed`, and makes no other motion, so that the other two are measured as 0.
    """
    before = START.copy()
    after = filmed(SCENE, **move).copy()
    before[dark] //= 12
    after[dark] //= 12

    motion = motion_between((before, after))

    expected = {"pan": 0.0, "zoom": 0.0, "roll": 0.0}
    expected[name] = speed
    assert motion["pan"] == pytest.approx(expected["pan"], rel=0.05, abs=0.01)
    assert motion["zoom"] == pytest.approx(expected["zoom"], rel=0.05, abs=0.01)
    assert motion["roll"] == pytest.approx(expected["roll"], rel=0.05, abs=0.21)  # in degrees a second


def test_a_motion_of_three_tenths_of_the_width_is_found():
    """96 of 320 pixels in half a second is a fast pan."""
    before, after = START, filmed(SCENE, right=96)

    motion = motion_between((before, after))

    assert motion["pan"] == pytest.approx(96 / 320 / 0.5, rel=0.05)


def test_a_picture_is_shrunk_to_320_pixels_of_width_at_most():
    """A picture of 640 x 360 is halved, and one of 200 pixels of width keeps its size."""
    wide = np.repeat(np.repeat(START, 2, axis=0), 2, axis=1)
    narrow = wide[:, :200]
    assert wide.shape == (360, 640, 3)

    assert prepare(wide).shape == (180, 320, 1)
    assert prepare(narrow).shape == (360, 200, 1)


OTHER_SCENE = filmed(leaves(np.random.default_rng(1)))


def strips_that_move_differently():
    """Move seven strips of the picture by -48 to 48 pixels: things move, not the camera."""
    moved = [filmed(SCENE, right=16 * number) for number in range(-3, 4)]
    strips = [picture[:, 45 * index : 45 * index + 45] for index, picture in enumerate(moved)]
    joined = np.hstack(strips)
    return START[:, : joined.shape[1]], joined


def dots_that_move_at_random():
    """Draw bright dots on grey. Some rotation, scale and shift fits a few of them."""
    places = np.array([(40 * (n % 8) + 20, 60 * (n // 8) + 22) for n in range(20)])
    moved_apart = places + np.random.default_rng(1).integers(-6, 7, places.shape)
    y, x = np.mgrid[:180, :320]
    pictures = []
    for dots in (places, moved_apart):
        levels = sum(150 * np.exp(-((x - left) ** 2 + (y - top) ** 2) / 8) for left, top in dots)
        pictures.append(np.repeat(np.uint8(50 + levels)[..., None], 3, axis=2))
    return pictures


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param((START, OTHER_SCENE), id="two shots"),
        pytest.param((grey_picture(90), grey_picture(90)), id="grey without texture"),
        pytest.param((grey_picture(0), grey_picture(0)), id="black"),
        pytest.param((START, grey_picture(90)), id="no point that is found again"),
        pytest.param(strips_that_move_differently(), id="strips that move differently"),
        pytest.param(dots_that_move_at_random(), id="dots that move at random"),
        pytest.param((START[:1, :90], START[:1, :90]), id="1 x 90 pixels"),
        pytest.param((START[:90, :1], START[:90, :1]), id="90 x 1 pixels"),
        pytest.param((START[:13, :17], START[:13, :17]), id="13 x 17 pixels"),
    ],
)
def test_pictures_that_do_not_show_how_the_camera_moved_have_no_motion(pair):
    """Two pictures half a second apart don't show by how much the camera moved between them.

    The motion is then unknown, not 0: the table of what is read stays empty.
    """
    assert motion_between(pair) == {}


def test_pictures_more_than_a_second_apart_have_no_motion():
    """In 1.2 s a camera may have moved and come back, so that nothing is read, also of two equal pictures."""
    motion = motion_between((START, START), gap_s=1.2)

    assert motion == {}


def test_a_pair_without_motion_does_not_change_the_other_pair():
    """In the first pair a cut lies between the pictures; in the second the camera stands still."""
    across_a_cut = (START, OTHER_SCENE)
    standing_still = (START, START)

    motion = motion_between(across_a_cut, standing_still)

    assert motion == motion_between(standing_still)


@pytest.mark.parametrize(("n_asked_for", "n_frames"), [(32, 4), (5, 4), (3, 2), (1, 2)])
def test_the_backbone_takes_two_pairs_of_frames_or_one(n_asked_for, n_frames):
    """It takes four frames where four or more are asked for, and two otherwise, with five numbers each."""
    backbone = load_backbone("camera", n_asked_for)

    assert backbone.n_frames == n_frames
    assert [output.shape for output in backbone.outputs] == [(n_frames, 5)]


def test_the_backbone_camera_without_opencv_says_what_to_install(monkeypatch):
    """OpenCV is pretended to be missing."""
    monkeypatch.setattr("obygaze_features.backbones.camera.opencv", lambda: None)

    with pytest.raises(BackboneError, match=r"OpenCV.*obygaze\[extract\]"):
        load_backbone("camera")


def test_the_part_of_two_pictures_between_black_bars_on_all_sides_is_found_to_the_pixel():
    """Two pictures of 100 x 200 pixels are nearly black (3) but for the rows 10 to 89, columns 30 to 159.

    Bars stay where they are however the camera moves: one row or column of them left in the picture would
    count as a part of it that stands still.
    """
    picture = np.full((100, 200), 3, np.uint8)
    picture[10:90, 30:160] = 200

    rows, columns = _between_bars(picture, picture)

    assert picture[rows, columns].shape == (80, 130)
    assert (picture[rows, columns] == 200).all()


@pytest.mark.parametrize("grey", [200, 0], ids=["light everywhere", "black everywhere"])
def test_nothing_is_cut_off_a_picture_without_bars(grey):
    """A light picture has no black bars. A black one has nothing between bars, and is kept as a whole."""
    picture = np.full((100, 200), grey, np.uint8)

    rows, columns = _between_bars(picture)

    assert picture[rows, columns].shape == (100, 200)


@pytest.mark.parametrize(
    ("right", "n_expected"),
    [
        pytest.param(0, 4, id="all stay"),
        pytest.param(1, 3, id="the corner in column 319 leaves"),
        pytest.param(160, 2, id="those in columns 160 and 319 leave"),
        pytest.param(319, 2, id="one stays, and half of four are expected"),
    ],
)
def test_corners_that_leave_the_picture_are_not_expected_to_agree(right, n_expected):
    """Four corners are in the columns 0, 159, 160 and 319 of a picture whose columns are 0 to 319.

    The camera moves all of them to the right by some pixels. Those that are still in the picture are expected
    to agree with this motion, or half of all corners if fewer are: else a wrong motion that takes nearly all
    corners out of the picture would be confirmed by a few.
    """
    corners = np.array([[[0, 0]], [[159, 90]], [[160, 90]], [[319, 179]]], np.float32)  # (column, row)
    shift_to_the_right = np.array([[1.0, 0, right], [0, 1, 0]])  # no rotation or growth, no shift downwards

    assert _n_expected_inliers(corners, shift_to_the_right, height=180, width=320) == n_expected
