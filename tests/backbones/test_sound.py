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

    coefficients = k_weighting(rate=48_000)

    assert np.abs(coefficients - [shelf, high_pass]).max() < 1e-12


@pytest.mark.parametrize("level", [1.0, 0.1, 0.01])
def test_a_sine_of_997_hz_has_the_loudness_that_bs_1770_states(level):
    """By BS.1770-4, annex 1, it is -3.01 LKFS at full scale (level 1) in one channel.

    A tenth of the level is 20 dB less.
    """
    three_seconds = tone(hz=997, seconds=3.0, level=level, rate=RATE)

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
    samples = [tone(hz=997, seconds=seconds, level=10 ** (level / 20), rate=RATE) for level, seconds in tones]
    return np.concatenate(samples)


def test_a_tone_is_voiced_and_peaked():
    """It repeats, and has its power at one frequency."""
    descriptors = describe(tone(hz=220, seconds=3.0, level=0.1, rate=RATE))

    assert descriptors["harmonicity"] > 0.95
    assert descriptors["voiced"] == 1.0
    assert descriptors["flatness"] < 0.01


def test_white_noise_is_neither_voiced_nor_peaked():
    """It does not repeat, and has power at all frequencies.

    Its flatness, the geometric over the arithmetic mean of powers, is exp(-0.5772) = .56.
    """
    descriptors = describe(white_noise(seconds=3.0))

    assert descriptors["harmonicity"] < 0.3
    assert descriptors["voiced"] == 0.0
    assert 0.5 < descriptors["flatness"] < 0.65


def test_the_spectrum_of_noise_changes_more_from_step_to_step_than_that_of_a_tone():
    """The descriptor `flux` is that change. Both sounds last three seconds; the tone has 220 Hz."""
    flux_of_tone = describe(tone(hz=220, seconds=3.0, level=0.1, rate=RATE))["flux"]
    flux_of_noise = describe(white_noise(seconds=3.0))["flux"]

    assert flux_of_noise > flux_of_tone


@pytest.mark.parametrize(("hz", "band"), [(100, 1), (1000, 20), (4000, 48)])
def test_the_loudest_band_is_at_the_tone(hz, band):
    """The numbers are those of the 64 bands on the mel scale that hold 100, 1000 and 4000 Hz.

    A neighbouring band may be the loudest, as bands overlap.
    """
    descriptors = describe(tone(hz, seconds=3.0, level=0.1, rate=RATE))

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


SAMPLES_A_STEP = 320
"""The samples of 20 ms, in which sound is measured once."""


def pad_with_nan(parts):
    """Stack parts [steps, descriptors] of different lengths, the shorter ones filled up with NaN."""
    longest = max(len(part) for part in parts)
    n_descriptors = parts[0].shape[1]
    padded = np.full((len(parts), longest, n_descriptors), np.nan, np.float32)
    for number, part in enumerate(parts):
        padded[number, : len(part)] = part
    return padded


@given(n_steps_of_parts=st.lists(st.integers(1, 40), min_size=1, max_size=5), seed=st.integers(0, 2**32 - 1))
def test_descriptors_of_a_part_are_means_over_its_steps_alone(n_steps_of_parts, seed):
    """Noise is measured in steps of 20 ms, and `prepare` averages the steps of each part of a clip.

    Parts have different numbers of steps; the shorter ones are filled up with NaN, which must not count.
    Loudness is left out here, since it is the logarithm of a mean.
    """
    n_samples = sum(n_steps_of_parts) * SAMPLES_A_STEP
    noise = np.random.default_rng(seed).normal(0, 0.1, n_samples).astype(np.float32)
    steps = measure(noise)  # [steps, descriptors]
    ends_of_parts = np.cumsum(n_steps_of_parts)
    steps_of_parts = np.split(steps, ends_of_parts[:-1])

    parts = prepare(pad_with_nan(steps_of_parts))  # [parts, descriptors]

    is_mean_of_steps = np.array(FEATURES) != "loudness"
    for part, steps_of_part in zip(parts, steps_of_parts, strict=True):
        expected = steps_of_part.mean(axis=0)
        assert np.allclose(part[is_mean_of_steps], expected[is_mean_of_steps], atol=1e-4)


@given(n_parts=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_descriptors_of_a_clip_are_means_over_its_parts(n_parts, seed):
    """`encode` gets a batch of clips, here one, each with the descriptors of its parts."""
    descriptors_of_parts = np.random.default_rng(seed).normal(size=(n_parts, len(FEATURES)))
    parts = descriptors_of_parts.astype(np.float32)
    batch_of_one_clip = parts[np.newaxis]

    (clip,) = encode(batch_of_one_clip)["pooled"]

    assert np.allclose(clip, parts.mean(axis=0), atol=1e-4)


def test_the_backbone_sound_states_its_sampling_rate_and_track():
    """The decoder reads them to know what to deliver: here the French track, at 16 kHz."""
    backbone = load_backbone("sound", n_frames=4, track="fra")

    assert backbone.hears.rate == 16_000
    assert backbone.hears.track == "fra"
    assert backbone.provenance["preset"]["track"] == "fra"


def test_the_backbone_sound_gives_69_descriptors_of_each_part_and_of_the_clip():
    """A clip is heard in four parts: their descriptors are 4 x 69 numbers, and those of the clip 69."""
    backbone = load_backbone("sound", n_frames=4)

    assert [output.shape for output in backbone.outputs] == [(4, 69), (69,)]
