"""The classical descriptors measure what they say."""

import hashlib

import numpy as np
import pytest

from obygaze_features.backbones.backbone import descriptor
from obygaze_features.backbones.descriptors import (
    FEATURES,
    SIZE,
    colourfulness,
    cube_root,
    descriptors,
    edge_statistics,
    encode,
    hsv_histogram,
    lbp_histogram,
    orientation_bins,
    prepare,
    to_cielab,
)


def flat(colour, frames=1):
    """Return frames of one colour."""
    return np.broadcast_to(np.array(colour, np.uint8), (frames, SIZE, SIZE, 3)).copy()


def column(features, name):
    return features[..., FEATURES.index(name)]


def test_lab_of_known_colours_is_as_the_cie_tables_print_it():
    for rgb, expected in {
        (255, 255, 255): (100.0, 0.0, 0.0),
        (0, 0, 0): (0.0, 0.0, 0.0),
        (255, 0, 0): (53.24, 80.09, 67.20),
        (0, 0, 255): (32.30, 79.19, -107.86),
    }.items():
        result = [float(channel.mean()) for channel in to_cielab(flat(rgb))]
        assert result == pytest.approx(expected, abs=0.02)


def test_colourfulness_is_the_published_formula():
    """Hasler and Suesstrunk (2003) define colourfulness by rg = R - G and yb = (R + G) / 2 - B.

    It is the root of their summed variances plus 0.3 times the root of their summed squared means.
    """
    rng = np.random.default_rng(1)
    clip = rng.integers(0, 256, (1, SIZE, SIZE, 3), dtype=np.uint8)
    r, g, b = (clip[0, ..., c].astype(float) for c in range(3))
    rg, yb = r - g, 0.5 * (r + g) - b
    expected = np.hypot(rg.std(), yb.std()) + 0.3 * np.hypot(rg.mean(), yb.mean())
    assert colourfulness(clip)[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("rgb", "hue"), [((255, 0, 0), 0), ((0, 255, 0), 2), ((0, 0, 255), 5)])
def test_pure_hues_fall_in_their_own_bin(rgb, hue):
    """Red is at 0, green at 120 and blue at 240 degrees: bins 0, 2 and 5 of 8."""
    histogram = hsv_histogram(flat(rgb))[0].reshape(8, 3, 3)
    assert histogram[hue, 2, 2] == 1


def test_vertical_bars_have_their_gradient_across():
    """Brightness changes from left to right only, so all gradients point right (0 degrees) or left (180)."""
    bars = np.zeros((1, SIZE, SIZE), np.float32)
    bars[:, :, ::8] = 100
    mean_gradient, _deviation, *directions = edge_statistics(bars)[0]
    assert mean_gradient > 0
    assert directions[0] + directions[7] == pytest.approx(1)  # 0 and 180 degrees, the first and the last bin


def test_cube_roots_are_those_of_float64_rounded():
    """CIELAB takes cube roots of ratios above (6/29)^3 = 216/24389."""
    t = np.concatenate([np.geomspace(216 / 24389, 1.1, 100_003), [1 / 64, 1 / 8, 1.0]]).astype(np.float32)
    assert np.array_equal(cube_root(t), np.cbrt(t.astype(np.float64)).astype(np.float32))


def test_directions_fall_in_eight_bins_of_a_half_turn():
    """A direction and its opposite are in one bin. None is tried on an edge, where rounding decides."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 1, 300, 300)).astype(np.float32)
    half_turn = np.pi
    angles = np.arctan2(y, x, dtype=np.float64) % half_turn
    angles_in_bins = angles * (8 / half_turn)  # from 0 to 8
    is_off_edges = np.abs(angles_in_bins - np.round(angles_in_bins)) > 1e-6
    bins = orientation_bins(x, y)

    assert np.array_equal(bins[is_off_edges], np.floor(angles_in_bins[is_off_edges]))


@pytest.mark.parametrize("length", [1.0, 1e-6, 3.7e5])
def test_directions_on_the_edge_of_a_bin_fall_in_the_bin_it_begins(length):
    """A bin is 22.5 degrees wide, so that 0, 45, 90 and 135 degrees begin bins 0, 2, 4 and 6."""
    every_45_degrees = [[1, 1, 0, -1, -1, -1, 0, 1], [0, 1, 1, 1, 0, -1, -1, -1]]
    x, y = np.float32(length) * np.array(every_45_degrees, np.float32)
    half_turn = [0, 2, 4, 6]
    assert orientation_bins(x, y).tolist() == [*half_turn, *half_turn]


def test_a_direction_just_below_an_axis_falls_in_the_last_bin():
    """Just below 0 degrees is just below 180, where the last of the eight bins (7) ends."""
    assert orientation_bins(np.float32([1.0]), np.float32([-1e-30])).tolist() == [7]


def test_the_bytes_of_a_clip_are_the_same_on_any_processor():
    """The clip is computed from integers alone, which no processor rounds."""
    t, y, x = np.mgrid[:8, :SIZE, :SIZE]
    red_ramp = (3 * x + t * y) % 256
    green_texture = x * y // 7 % 256
    blue_stripes_that_fade = (x + y) // 5 % 2 * (200 - 10 * t)
    clip = np.stack([red_ramp, green_texture, blue_stripes_that_fade], axis=-1).astype(np.uint8)
    result = encode(clip[None])
    digest = hashlib.sha256(result["frames"].tobytes() + result["pooled"].tobytes()).hexdigest()

    assert digest[:16] == "740e8bff6e45b72e"


def test_a_flat_frame_has_no_edges_and_one_texture():
    """Every pixel has the pattern 8: all its 8 neighbours are as light as it is."""
    blank = np.full((1, SIZE, SIZE), 50, np.float32)
    (edges,) = edge_statistics(blank)
    (shares_of_patterns,) = lbp_histogram(blank)
    assert edges.tolist() == [0.0] * 10
    assert shares_of_patterns[8] == 1


def test_motion_and_cuts_are_seen_where_they_were_planted():
    """Of two clips of 8 frames, one is a still, and one changes colour at frame 4."""
    still = np.repeat(flat((200, 40, 40)), 8, axis=0)
    cut = still.copy()
    cut[4:] = (20, 40, 220)
    features = encode(np.stack([still, cut]))
    assert column(features["frames"][0], "motion").max() == 0
    distances = column(features["frames"][1], "histogram_distance")

    assert np.flatnonzero(distances).tolist() == [4]  # the first frame after the cut
    assert column(features["frames"], "cut").sum(axis=1).tolist() == [0, 1]
    assert column(features["pooled"], "cut").tolist() == [0, 1 / 8]


def test_a_clip_gets_the_same_bytes_in_any_batch():
    clips = np.random.default_rng(2).integers(0, 256, (5, 4, SIZE, SIZE, 3), dtype=np.uint8)
    together = encode(clips)
    for i, clip in enumerate(clips):
        alone = encode(clip[None])
        assert all(np.array_equal(alone[name][0], together[name][i]) for name in together)


def test_descriptors_say_what_they_perceive_where_they_state_it():
    """A histogram of single frames sees pictures and no motion."""
    fields = {"resize": "none", "crop": None, "order": "none", "citation": "none"}
    histogram = descriptor("histogram", 4, ["dark", "light"], prepare, encode, perceives=["visual"], **fields)
    assert histogram.provenance["perceives"] == ["visual"]
    assert "perceives" not in descriptors().provenance
