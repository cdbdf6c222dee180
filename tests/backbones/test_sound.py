"""Descriptors of sound: known signals get the values that their definitions give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.backbones import load_backbone
from obygaze_features.backbones.sound_measures import (
    FEATURES,
    GATE_LUFS,
    RATE,
    encode,
    gated_loudness,
    k_weighting,
    measure,
    prepare,
    weighted_squares,
)
from tests.video.sounding import tone


def describe(samples):
    """Return the descriptors of a sound, without its first and last half second, by name."""
    steps = measure(samples.astype(np.float32))[25:-25]
    return dict(zip(FEATURES, prepare(steps[None])[0].tolist(), strict=True))


def noise(seconds, level=0.1):
    return level * np.random.default_rng(0).standard_normal(round(seconds * RATE))


def test_the_filters_at_48_khz_are_those_that_bs_1770_prints():
    """ITU-R BS.1770, the standard of loudness, prints the coefficients of its two filters for 48 kHz."""
    shelf = [1.53512485958697, -2.69169618940638, 1.19839281085285, 1.0, -1.69065929318241, 0.73248077421585]
    high_pass = [1.0, -2.0, 1.0, 1.0, -1.99004745483398, 0.99007225036621]
    assert np.abs(k_weighting(48_000) - [shelf, high_pass]).max() < 1e-12


@pytest.mark.parametrize("level", [1.0, 0.1, 0.01])
def test_a_sine_of_997_hz_has_the_loudness_that_bs_1770_states(level):
    expected = 20 * np.log10(level) - 3.01  # BS.1770-4, annex 1: -3.01 LKFS at full scale in one channel
    assert describe(tone(997, 3.0, level, RATE))["loudness"] == pytest.approx(expected, abs=0.1)


LOUDNESS_AT_23_DBFS = -23 - 3.01
"""In LUFS, of one channel; of two, as in EBU Tech 3341, it is -23."""


@pytest.mark.parametrize(
    ("tones", "loudness", "tolerance"),
    [
        pytest.param([(-36, 10), (-23, 60), (-36, 10)], LOUDNESS_AT_23_DBFS, 0.1, id="EBU Tech 3341, case 3"),
        pytest.param(
            [(-72, 10), (-36, 10), (-23, 60), (-36, 10), (-72, 10)], LOUDNESS_AT_23_DBFS, 0.1, id="case 4"
        ),
        pytest.param([(-26, 20), (-20, 20), (-26, 20)], LOUDNESS_AT_23_DBFS, 0.1, id="case 5"),
        pytest.param([(-90, 3)], GATE_LUFS, 0, id="nothing is louder than the gate"),
        pytest.param([(-23, 0.2)], LOUDNESS_AT_23_DBFS, 0.5, id="shorter than a block of 0.4 s"),
    ],
)
def test_quiet_parts_around_a_louder_one_do_not_lower_the_loudness(tones, loudness, tolerance):
    """Tones of 997 Hz, (dBFS, seconds) each, follow each other."""
    samples = [tone(997, seconds, 10 ** (level / 20), RATE) for level, seconds in tones]
    measured = gated_loudness(weighted_squares(np.concatenate(samples)))
    assert measured == pytest.approx(loudness, abs=tolerance)


def test_a_tone_is_voiced_and_peaked_and_noise_is_neither():
    """White noise does not repeat and has power at all frequencies."""
    sine, hiss = describe(tone(220, 3.0, 0.1, RATE)), describe(noise(3.0))
    assert sine["harmonicity"] > 0.95
    assert sine["voiced"] == 1.0
    assert sine["flatness"] < 0.01
    assert hiss["harmonicity"] < 0.3
    assert hiss["voiced"] == 0.0
    assert (
        0.5 < hiss["flatness"] < 0.65
    )  # white noise: geometric over arithmetic mean of powers is exp(-0.5772)
    assert hiss["flux"] > sine["flux"]


@pytest.mark.parametrize(("hz", "band"), [(100, 1), (1000, 20), (4000, 48)])
def test_the_loudest_band_is_at_the_tone(hz, band):
    """The numbers are those of the 64 bands on the mel scale that hold 100, 1000 and 4000 Hz."""
    described = describe(tone(hz, 3.0, 0.1, RATE))
    loudness_of_bands = [described[f"log_mel_{number}"] for number in range(64)]
    assert abs(int(np.argmax(loudness_of_bands)) - band) <= 1


def test_silence_is_a_floor_and_not_minus_infinity():
    """To each power 1e-10 (-100 dB) is added, and loudness is 0.7 dB below power."""
    silent = describe(np.zeros(3 * RATE))
    assert all(np.isfinite(value) for value in silent.values())

    assert silent["loudness"] == pytest.approx(-100.7, abs=0.1)
    assert silent["voiced"] == 0.0


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
def test_parts_are_means_of_steps_and_clips_are_means_of_parts(lengths, seed):
    """A step has 320 samples, 20 ms; the loudness, column 0, stands for all columns."""
    steps = measure(np.random.default_rng(seed).normal(0, 0.1, sum(lengths) * 320).astype(np.float32))
    steps_of_parts = np.split(steps, np.cumsum(lengths)[:-1])
    padded_parts = np.full((len(lengths), max(lengths), steps.shape[1]), np.nan, np.float32)
    for part, own_steps in zip(padded_parts, steps_of_parts, strict=True):
        part[: len(own_steps)] = own_steps
    frames = prepare(padded_parts)

    assert np.allclose(frames[:, 0], [own_steps[:, 0].mean() for own_steps in steps_of_parts], atol=1e-4)
    assert np.allclose(encode(frames[None])["pooled"][0], frames.mean(axis=0), atol=1e-4)


def test_the_backbone_sound_states_its_sampling_rate_and_track():
    """The decoder reads them to know what to deliver; there are 69 descriptors."""
    backbone = load_backbone("sound", 4, track="fra")
    assert (backbone.hears.rate, backbone.hears.track) == (RATE, "fra")
    assert backbone.provenance["preset"]["track"] == "fra"
    assert [output.shape for output in backbone.outputs] == [(4, 69), (69,)]
