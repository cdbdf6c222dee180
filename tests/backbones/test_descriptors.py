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


def frames_of_one_colour(colour, n_frames=1):
    return np.broadcast_to(np.array(colour, np.uint8), (n_frames, SIZE, SIZE, 3)).copy()


def values_of(features, name):
    """Return the descriptor of a name, the last axis of features."""
    return features[..., FEATURES.index(name)]


@pytest.mark.parametrize(
    ("rgb", "lab"),
    [
        ((255, 255, 255), (100.0, 0.0, 0.0)),
        ((0, 0, 0), (0.0, 0.0, 0.0)),
        ((255, 0, 0), (53.24, 80.09, 67.20)),
        ((0, 0, 255), (32.30, 79.19, -107.86)),
    ],
    ids=["white", "black", "red", "blue"],
)
def test_lab_of_known_colours_is_as_the_cie_tables_print_it(rgb, lab):
    """CIELAB has a lightness from 0 to 100 and two axes of colour."""
    channels = to_cielab(frames_of_one_colour(rgb))

    means = [float(channel.mean()) for channel in channels]
    assert means == pytest.approx(lab, abs=0.02)


def test_colourfulness_is_the_published_formula():
    """Hasler and Suesstrunk (2003) define colourfulness by rg = R - G and yb = (R + G) / 2 - B.

    It is the root of their summed variances plus 0.3 times the root of their summed squared means.
    """
    rng = np.random.default_rng(1)
    frame = rng.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
    red = frame[:, :, 0].astype(float)
    green = frame[:, :, 1].astype(float)
    blue = frame[:, :, 2].astype(float)
    rg = red - green
    yb = (red + green) / 2 - blue
    expected = np.sqrt(rg.var() + yb.var()) + 0.3 * np.sqrt(rg.mean() ** 2 + yb.mean() ** 2)

    (value,) = colourfulness(frame[None])

    assert value == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("rgb", "hue"),
    [((255, 0, 0), 0), ((0, 255, 0), 2), ((0, 0, 255), 5)],
    ids=["red", "green", "blue"],
)
def test_pure_hues_fall_in_their_own_bin(rgb, hue):
    """Red is at 0, green at 120 and blue at 240 degrees: bins 0, 2 and 5 of 8.

    Pure colours are in the highest of three bins of saturation, and of value.
    """
    (histogram,) = hsv_histogram(frames_of_one_colour(rgb))

    shares = histogram.reshape(8, 3, 3)  # hue, saturation, value
    assert shares[hue, 2, 2] == 1


def test_vertical_bars_have_their_gradient_across():
    """Brightness changes from left to right only, so all gradients point right (0 degrees) or left (180).

    These are the first and the last of eight bins of directions.
    """
    bars = np.zeros((1, SIZE, SIZE), np.float32)
    bars[:, :, ::8] = 100

    mean_gradient, _deviation, *shares_of_directions = edge_statistics(bars)[0]

    assert mean_gradient > 0
    assert shares_of_directions[0] + shares_of_directions[7] == pytest.approx(1)


def test_cube_roots_are_those_of_float64_rounded():
    """CIELAB takes cube roots of ratios above (6/29)^3 = 216/24389, about .009."""
    ratios = np.geomspace(216 / 24389, 1.1, 100_003)
    numbers = np.concatenate([ratios, [1 / 64, 1 / 8, 1.0]]).astype(np.float32)

    roots = cube_root(numbers)

    expected = np.cbrt(numbers.astype(np.float64)).astype(np.float32)
    assert np.array_equal(roots, expected)


def test_directions_fall_in_eight_bins_of_a_half_turn():
    """A direction and its opposite are in one bin. None is tried on an edge, where rounding decides."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 1, 300, 300)).astype(np.float32)
    angles = np.arctan2(y, x, dtype=np.float64) % np.pi
    angles_in_bins = angles * (8 / np.pi)  # from 0 to 8
    is_off_edges = np.abs(angles_in_bins - np.round(angles_in_bins)) > 1e-6

    bins = orientation_bins(x, y)

    expected = np.floor(angles_in_bins)
    assert np.array_equal(bins[is_off_edges], expected[is_off_edges])


@pytest.mark.parametrize("length", [1.0, 1e-6, 3.7e5])
def test_directions_on_the_edge_of_a_bin_fall_in_the_bin_it_begins(length):
    """A bin is 22.5 degrees wide, so that 0, 45, 90 and 135 degrees begin bins 0, 2, 4 and 6.

    The directions are every 45 degrees of a full turn; opposite ones are in one bin.
    """
    x = np.float32(length) * np.array([1, 1, 0, -1, -1, -1, 0, 1], np.float32)
    y = np.float32(length) * np.array([0, 1, 1, 1, 0, -1, -1, -1], np.float32)

    bins = orientation_bins(x, y)

    assert bins.tolist() == [0, 2, 4, 6, 0, 2, 4, 6]


def test_a_direction_just_below_an_axis_falls_in_the_last_bin():
    """Just below 0 degrees is just below 180, where the last of the eight bins (7) ends."""
    x = np.float32([1.0])
    y = np.float32([-1e-30])

    assert orientation_bins(x, y).tolist() == [7]


def test_the_bytes_of_a_clip_are_the_same_on_any_processor():
    """The clip is computed from integers alone, which no processor rounds.

    The digest is that of the bytes that were first computed.
    """
    t, y, x = np.mgrid[:8, :SIZE, :SIZE]  # 8 frames
    red_ramp = (3 * x + t * y) % 256
    green_texture = x * y // 7 % 256
    blue_stripes_that_fade = (x + y) // 5 % 2 * (200 - 10 * t)
    clip = np.stack([red_ramp, green_texture, blue_stripes_that_fade], axis=-1).astype(np.uint8)

    arrays = encode(clip[None])

    digest = hashlib.sha256(arrays["frames"].tobytes() + arrays["pooled"].tobytes()).hexdigest()
    assert digest[:16] == "740e8bff6e45b72e"


def test_a_flat_frame_has_no_edges_and_one_texture():
    """Every pixel has the pattern 8: all its 8 neighbours are as light as it is."""
    flat_frame = np.full((1, SIZE, SIZE), 50, np.float32)

    (edges,) = edge_statistics(flat_frame)
    (shares_of_patterns,) = lbp_histogram(flat_frame)

    assert edges.tolist() == [0.0] * 10
    assert shares_of_patterns[8] == 1


def test_a_still_has_no_motion_and_no_cut():
    """The clip has 8 frames of the same colour."""
    still = frames_of_one_colour((200, 40, 40), n_frames=8)

    arrays = encode(still[None])

    assert values_of(arrays["frames"][0], "motion").max() == 0
    assert values_of(arrays["frames"][0], "cut").sum() == 0
    assert values_of(arrays["pooled"][0], "cut") == 0


def test_a_cut_is_seen_in_the_first_frame_after_it():
    """A clip of 8 frames changes from red to blue at frame 4: one frame of eight is after a cut."""
    clip = frames_of_one_colour((200, 40, 40), n_frames=8)
    clip[4:] = (20, 40, 220)

    arrays = encode(clip[None])

    distances = values_of(arrays["frames"][0], "histogram_distance")
    assert np.flatnonzero(distances).tolist() == [4]
    assert values_of(arrays["frames"][0], "cut").sum() == 1
    assert values_of(arrays["pooled"][0], "cut") == 1 / 8


def test_descriptors_of_a_clip_are_the_same_bytes_in_any_batch():
    """Five clips of four frames of noise are encoded together and one by one.

    The descriptors are computed without a network, of frames of SIZE x SIZE pixels.
    """
    clips = np.random.default_rng(2).integers(0, 256, (5, 4, SIZE, SIZE, 3), dtype=np.uint8)

    arrays = encode(clips)

    for i, clip in enumerate(clips):
        arrays_alone = encode(clip[None])
        for name, array in arrays.items():
            assert np.array_equal(arrays_alone[name][0], array[i])


def test_descriptors_say_what_they_perceive_where_they_state_it():
    """A histogram of single frames sees pictures and no motion. Our own descriptors do not state it."""
    fields = {"resize": "none", "crop": None, "order": "none", "citation": "none"}

    histogram = descriptor(
        "histogram",
        n_frames=4,
        features=["dark", "light"],
        prepare=prepare,
        encode=encode,
        perceives=["visual"],
        **fields,
    )
    ours = descriptors()

    assert histogram.provenance["perceives"] == ["visual"]
    assert "perceives" not in ours.provenance
