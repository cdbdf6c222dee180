"""What is done in training about one class outnumbering the other; never to clips that choose or test."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from obygaze_models.models.network import Floats

Imbalance = Literal["none", "weights", "subsample"]
IMBALANCES: tuple[Imbalance, ...] = get_args(Imbalance)


def balanced_weights(y: Floats) -> Floats:
    """Weigh each clip of labels 0. and 1. [N] by n / (2 n_class): both classes together weigh the same.

    It is what scikit-learn calls ``class_weight="balanced"``, after King and Zeng (2001, Logistic regression
    in rare events data). The mean weight is 1.
    """
    n, n_positive = y.size, np.count_nonzero(y)
    weights: Floats = np.where(y == 1, n / (2 * n_positive), n / (2 * (n - n_positive))).astype(y.dtype)
    return weights


def even_rows(y: Floats, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw from the larger class of labels 0. and 1. [N] as many clips as the smaller one has.

    Returns
    -------
    ndarray of int
        Places in `y`, in order: those drawn, and all of the smaller class.
    """
    sides = [np.flatnonzero(y == label) for label in (0, 1)]
    n = min(side.size for side in sides)
    drawn = [side if side.size == n else rng.choice(side, n, replace=False) for side in sides]
    return np.sort(np.concatenate(drawn))
