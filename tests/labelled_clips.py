"""Clips as estimators take them."""

from typing import NamedTuple

import numpy as np


class LabelledClips(NamedTuple):
    """Features, labels and movies of clips."""

    X: np.ndarray
    """Features, [N, D]."""
    y: np.ndarray
    """Labels, [N]."""
    movies: np.ndarray
    """The movie of each clip, [N]."""
