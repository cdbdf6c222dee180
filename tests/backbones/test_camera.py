"""The backbone `camera`: planted motions are read with sign and unit; what cannot be told is absent."""

import numpy as np
import pytest

from benchmarks.planted.staging import filmed, leaves
from obygaze_features.backbones import load_backbone
from obygaze_features.backbones.camera import camera_values, encode, prepare

STILL = leaves(np.random.default_rng(0))
BEFORE = filmed(STILL)


def read(*pairs, gap_s=0.5, shape=1.0):
    frames = np.stack([prepare(picture, shape) for pair in pairs for picture in pair])
    times = np.ravel([[2.0 * number, 2.0 * number + gap_s] for number in range(len(pairs))])
    return camera_values(encode(frames[None])["frames"][0], times)


def dots(places):
    y, x = np.mgrid[:180, :320]
    grey = sum(150 * np.exp(-((x - left) ** 2 + (y - top) ** 2) / 8) for left, top in places)
    return np.repeat(np.uint8(50 + grey)[..., None], 3, axis=2)


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ({"right": 32}, {"pan": 0.2}),
        ({"down": -16}, {"tilt": 0.1}),
        ({"growth": 1.1}, {"zoom": 2 * np.log(1.1)}),
        ({"turn": np.radians(5)}, {"roll": 10.0}),
    ],
)
@pytest.mark.parametrize("shape", [1, 2])
def test_a_motion_is_read_in_widths_growth_and_degrees_a_second(moved, expected, shape):
    pair = [
        picture.reshape(180, -1, shape, 3).mean(axis=2).astype(np.uint8)
        for picture in (BEFORE, filmed(STILL, **moved))
    ]
    values = read(pair, shape=shape)
    for name in ("pan", "tilt", "zoom", "roll"):
        tolerance = 0.21 if name == "roll" else 0.01
        assert values[name] == pytest.approx(expected.get(name, 0.0), rel=0.05, abs=tolerance)
    assert values["inliers"] > 0.5
    points = np.stack(np.meshgrid(np.linspace(-0.5, 0.5, 101), np.linspace(-9 / 32, 9 / 32, 101)), axis=-1)
    wide = {"pan": 1, "tilt": 1, "zoom": points, "roll": np.radians(1) * points}
    ((name, value),) = expected.items()
    moves = np.broadcast_to(value * wide[name], points.shape) / (1 if name in {"zoom", "roll"} else 2**0.5)
    assert values["camera"] == pytest.approx(np.sqrt((moves**2).sum(axis=-1).mean()), rel=0.06)


def test_a_camera_that_stands_still_does_not_move_and_bars_are_not_the_picture():
    assert read((BEFORE, BEFORE))["camera"] < 1e-3
    barred = [np.pad(each, ((40, 40), (0, 0), (0, 0))) for each in (BEFORE, filmed(STILL, down=-16))]
    assert read(barred)["tilt"] == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("dark", [np.s_[:, :140], np.s_[:, 180:], np.s_[:90]])
@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ({"right": 32}, {"pan": 0.2}),
        ({"growth": 1.1}, {"zoom": 2 * np.log(1.1)}),
        ({"turn": 0.1}, {"roll": 11.46}),
    ],
)
def test_what_is_dark_in_a_picture_is_of_its_width(dark, moved, expected):
    night = [picture.copy() for picture in (BEFORE, filmed(STILL, **moved))]
    for picture in night:
        picture[dark] //= 12
    values = read(night)
    for name in ("pan", "zoom", "roll"):
        tolerance = 0.21 if name == "roll" else 0.01
        assert values[name] == pytest.approx(expected.get(name, 0.0), rel=0.05, abs=tolerance)


def test_a_fast_motion_is_found_and_a_small_picture_stays_as_it_is():
    assert read((BEFORE, filmed(STILL, right=96)))["pan"] == pytest.approx(0.6, rel=0.05)
    wide = np.repeat(np.repeat(BEFORE, 2, axis=0), 2, axis=1)
    assert (prepare(wide).shape, prepare(wide[:, :200]).shape) == ((180, 320, 1), (360, 200, 1))


def test_what_cannot_be_told_is_absent():
    other = filmed(leaves(np.random.default_rng(1)))
    grey = np.full_like(BEFORE, 90)
    assert read((BEFORE, other)) == read((grey, grey)) == read((BEFORE, BEFORE), gap_s=1.2) == {}
    assert read((BEFORE, other), (BEFORE, BEFORE)) == read((BEFORE, BEFORE))
    strips = [filmed(STILL, right=16 * number) for number in range(-3, 4)]
    torn = np.hstack([strip[:, 45 * n : 45 * n + 45] for n, strip in enumerate(strips)])
    assert read((BEFORE, grey)) == read((0 * grey, 0 * grey)) == read((BEFORE[:, :315], torn)) == {}
    # A similarity fits some of few dots that move apart.
    places = np.array([(40 * (n % 8) + 20, 60 * (n // 8) + 22) for n in range(20)])
    apart = places + np.random.default_rng(1).integers(-6, 7, places.shape)
    assert read(tuple(dots(at) for at in (places, apart))) == {}


@pytest.mark.parametrize("sides", [(1, 90), (90, 1), (2, 900), (13, 17)])
def test_of_a_picture_of_few_pixels_nothing_is_told(sides):
    assert read(np.random.default_rng(0).integers(0, 256, (2, *sides, 3), dtype=np.uint8)) == {}


@pytest.mark.parametrize(("asked", "n_frames"), [(32, 4), (5, 4), (3, 2), (1, 2)])
def test_it_takes_one_or_two_pairs(asked, n_frames):
    backbone = load_backbone("camera", asked)
    assert backbone.n_frames == n_frames
    assert [output.shape for output in backbone.outputs] == [(n_frames, 5)]


def test_without_opencv_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("obygaze_features.backbones.camera.opencv", lambda: None)
    with pytest.raises(Exception, match=r"OpenCV.*obygaze\[extract\]"):
        load_backbone("camera")
