"""Encode two classes as 0 and 1, and handle class imbalance.

Imbalance is handled in training alone, never on clips that choose or test.
"""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from obygaze_models.models.network import Floats

Imbalance = Literal["none", "weights", "subsample"]
IMBALANCES: tuple[Imbalance, ...] = get_args(Imbalance)


def encode_labels(y: ArrayLike, estimator: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Find the two classes of y [N], in sorted order, and the index of each label in them.

    Raises
    ------
    ValueError
        There are not exactly two classes.
    """
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
    classes, index = np.unique(np.asarray(y), return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            f"{estimator} needs clips of two classes, but y has one class: {classes.tolist()[0]!r}"
        )
    return classes, index.astype(np.int64)


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
