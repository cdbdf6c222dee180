"""Two labels, however they are spelled, as 0 and 1."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target


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
