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


def white_noise(seconds):
    return 0.1 * np.random.default_rng(0).standard_normal(round(seconds * RATE))


def test_the_filters_at_48_khz_are_those_that_bs_1770_prints():
    """ITU-R BS.1770, the standard of loudness, prints the coefficients of its two filters for 48 kHz."""
    shelf = [1.53512485958697, -2.69169618940638, 1.19839281085285, 1.0, -1.69065929318241, 0.73248077421585]
    high_pass = [1.0, -2.0, 1.0, 1.0, -1.99004745483398, 0.99007225036621]

    coefficients = k_weighting(48_000)

    assert np.abs(coefficients - [shelf, high_pass]).max() < 1e-12


@pytest.mark.parametrize("level", [1.0, 0.1, 0.01])
def test_a_sine_of_997_hz_has_the_loudness_that_bs_1770_states(level):
    """By BS.1770-4, annex 1, it is -3.01 LKFS at full scale (level 1) in one channel.

    A tenth of the level is 20 dB less.
    """
    three_seconds = tone(997, 3.0, level, RATE)

    loudness = describe(three_seconds)["loudness"]

    assert loudness == pytest.approx(20 * np.log10(level) - 3.01, abs=0.1)


@pytest.mark.parametrize(
    "tones",
    [
        pytest.param([(-36, 10), (-23, 60), (-36, 10)], id="EBU Tech 3341, case 3"),
        pytest.param([(-72, 10), (-36, 10), (-23, 60), (-36, 10), (-72, 10)], id="case 4"),
        pytest.param([(-26, 20), (-20, 20), (-26, 20)], id="case 5"),
    ],
)
def test_quiet_parts_around_a_louder_one_do_not_lower_the_loudness(tones):
    """Tones of 997 Hz, (dBFS, seconds) each, follow each other, as EBU Tech 3341 states them.

    The loudness is -23 LUFS for two channels, as there, and 3.01 less for one, as here.
    """
    sound = sound_of_tones(tones)

    loudness = gated_loudness(weighted_squares(sound))

    assert loudness == pytest.approx(-23 - 3.01, abs=0.1)


def test_a_sound_of_which_nothing_is_louder_than_the_gate_has_the_loudness_of_the_gate():
    """Parts below the gate, of -70 LUFS, do not count, and a tone of -90 dBFS is below it throughout."""
    three_seconds = sound_of_tones([(-90, 3)])

    assert GATE_LUFS == -70
    assert gated_loudness(weighted_squares(three_seconds)) == GATE_LUFS


def test_a_sound_shorter_than_a_block_has_the_loudness_of_a_long_one():
    """Loudness is measured in blocks of 0.4 s; a tone of -23 dBFS in one channel has -26.01 LUFS."""
    short = sound_of_tones([(-23, 0.2)])

    assert gated_loudness(weighted_squares(short)) == pytest.approx(-23 - 3.01, abs=0.5)


def sound_of_tones(tones):
    """Join tones of 997 Hz, each of a level in dBFS and a duration in seconds."""
    samples = [tone(997, seconds, 10 ** (level / 20), RATE) for level, seconds in tones]
    return np.concatenate(samples)


def test_a_tone_is_voiced_and_peaked():
    """It repeats, and has its power at one frequency."""
    descriptors = describe(tone(220, 3.0, 0.1, RATE))

    assert descriptors["harmonicity"] > 0.95
    assert descriptors["voiced"] == 1.0
    assert descriptors["flatness"] < 0.01


def test_white_noise_is_neither_voiced_nor_peaked():
    """It does not repeat, and has power at all frequencies.

    Its flatness, the geometric over the arithmetic mean of powers, is exp(-0.5772) = .56.
    """
    descriptors = describe(white_noise(3.0))

    assert descriptors["harmonicity"] < 0.3
    assert descriptors["voiced"] == 0.0
    assert 0.5 < descriptors["flatness"] < 0.65


def test_the_spectrum_of_noise_changes_more_from_step_to_step_than_that_of_a_tone():
    """The descriptor `flux` is that change. Both sounds last three seconds; the tone has 220 Hz."""
    flux_of_tone = describe(tone(220, 3.0, 0.1, RATE))["flux"]
    flux_of_noise = describe(white_noise(3.0))["flux"]

    assert flux_of_noise > flux_of_tone


@pytest.mark.parametrize(("hz", "band"), [(100, 1), (1000, 20), (4000, 48)])
def test_the_loudest_band_is_at_the_tone(hz, band):
    """The numbers are those of the 64 bands on the mel scale that hold 100, 1000 and 4000 Hz.

    A neighbouring band may be the loudest, as bands overlap.
    """
    descriptors = describe(tone(hz, 3.0, 0.1, RATE))

    loudness_of_bands = [descriptors[f"log_mel_{number}"] for number in range(64)]
    loudest_band = int(np.argmax(loudness_of_bands))
    assert abs(loudest_band - band) <= 1


def test_silence_is_a_floor_and_not_minus_infinity():
    """To each power 1e-10 (-100 dB) is added, and loudness is 0.7 dB below power."""
    three_seconds = np.zeros(3 * RATE)

    descriptors = describe(three_seconds)

    assert np.isfinite(list(descriptors.values())).all()
    assert descriptors["loudness"] == pytest.approx(-100 - 0.7, abs=0.1)
    assert descriptors["voiced"] == 0.0


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
def test_parts_are_means_of_steps_and_clips_are_means_of_parts(lengths, seed):
    """A step has 320 samples, 20 ms. A clip has one to five parts, each of so many steps (`lengths`).

    Parts are filled up with NaN to the same length. The loudness, column 0, stands for all columns.
    """
    n_steps = sum(lengths)
    samples = np.random.default_rng(seed).normal(0, 0.1, n_steps * 320).astype(np.float32)
    steps = measure(samples)  # [steps, descriptors]
    steps_of_parts = np.split(steps, np.cumsum(lengths)[:-1])
    padded_parts = np.full((len(lengths), max(lengths), steps.shape[1]), np.nan, np.float32)
    for padded_part, part in zip(padded_parts, steps_of_parts, strict=True):
        padded_part[: len(part)] = part

    parts = prepare(padded_parts)
    clip = encode(parts[None])["pooled"][0]

    expected_loudness = [part[:, 0].mean() for part in steps_of_parts]
    assert np.allclose(parts[:, 0], expected_loudness, atol=1e-4)
    assert np.allclose(clip, parts.mean(axis=0), atol=1e-4)


def test_the_backbone_sound_states_its_sampling_rate_and_track():
    """The decoder reads them to know what to deliver: here the French track, at 16 kHz."""
    backbone = load_backbone("sound", 4, track="fra")

    assert backbone.hears.rate == 16_000
    assert backbone.hears.track == "fra"
    assert backbone.provenance["preset"]["track"] == "fra"


def test_the_backbone_sound_gives_69_descriptors_of_each_part_and_of_the_clip():
    """A clip is heard in four parts: their descriptors are 4 x 69 numbers, and those of the clip 69."""
    backbone = load_backbone("sound", 4)

    assert [output.shape for output in backbone.outputs] == [(4, 69), (69,)]
