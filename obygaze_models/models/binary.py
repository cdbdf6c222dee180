"""Encode two classes as 0 and 1, call clips by a threshold on their score, and handle class imbalance.

Imbalance is handled in the clips that a model is trained on, never in those that it is chosen by or tested
on.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from obygaze_models.models.parameters import Estimator

Floats = NDArray[np.floating[Any]]

Imbalance = Literal["none", "weights", "subsample"]
"""How class imbalance is handled: not, by `balanced_weights`, or by `undersample_rows`."""

ABOVE_ZERO = float(np.nextafter(0.0, 1.0))
"""The threshold that calls a clip positive when its score is more than 0."""


class BinaryClassifier(ClassifierMixin, Estimator):
    """Base class of classifiers of two classes that score clips and call them by a threshold.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
        The negative and the positive label.
    threshold_ : float
        A clip is called positive if its score is at least this.
    """

    classes_: NDArray[Any]
    threshold_: float

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that there are two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def decision_function(self, X: ArrayLike) -> Floats:
        """Score each clip [N] of X [N, ...]: higher for the positive class."""
        raise NotImplementedError

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label of each clip [N] of X [N, ...]: positive if its score reaches the threshold."""
        return self._labels_of(self.decision_function(X))

    def _labels_of(self, scores: Floats) -> NDArray[Any]:
        """Return the label of each clip [N]: the positive class if its score reaches the threshold."""
        # Compared in float64, as comparing with a float32 score would round the threshold.
        is_positive = scores.astype(np.float64, copy=False) >= self.threshold_
        return self.classes_[is_positive.astype(np.intp)]


class LogitClassifier(BinaryClassifier):
    """Base class of classifiers of two classes whose score is a logit."""

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Compute the probabilities [N, 2] of the negative and of the positive class."""
        positive: Floats = expit(self.decision_function(X))
        return np.stack([1 - positive, positive], axis=1)


def validated_rows(estimator: Any, X: ArrayLike, *dtypes: type[np.floating[Any]]) -> Floats:
    """Validate features X [N, D] for a fitted estimator, and return them as an array of an accepted type.

    Finite arrays of the right shape and type skip scikit-learn's validation, which takes longer than most
    scores. An estimator that was fitted on a data frame has names of features, and needs the validation to
    warn of data without names.

    Parameters
    ----------
    estimator : estimator
        Fitted; ``n_features_in_`` is its number of features.
    X : array-like, shape [N, D]
    *dtypes
        The data types that the estimator accepts.
    """
    has_feature_names = hasattr(estimator, "feature_names_in_")
    if type(X) is np.ndarray and X.dtype in dtypes and not has_feature_names:
        has_right_shape = len(X) > 0 and X.shape[1:] == (estimator.n_features_in_,)
        if has_right_shape and _has_finite_sum(X):
            return X
    return np.asarray(validate_data(estimator, X, dtype=dtypes, reset=False))


def _has_finite_sum(X: Floats) -> bool:
    """Tell whether the sum of an array is finite, which proves that all values are.

    The sum takes a fraction of the time of a check of each value. If it overflows, which finite values may
    cause too, it proves nothing, and the array has to be validated.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()))


def encode_labels(y: ArrayLike, estimator: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the two classes of y [N], in sorted order, and the index of each label in them [N].

    `estimator` is the name of the estimator's class, for messages.

    Raises
    ------
    ValueError
        There are not exactly two classes.
    """
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind != "binary":
        check_classification_targets(y)
        raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
    classes, index = np.unique(np.asarray(y), return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            f"{estimator} needs clips of two classes, but y has one class: {classes.tolist()[0]!r}"
        )
    return classes, index.astype(np.int64)


def check_two_classes(y: ArrayLike, estimator: str) -> None:
    """Raise a ValueError, as `encode_labels` does, if labels y [N] are not of exactly two classes."""
    encode_labels(y, estimator)


def balanced_weights(y: Floats) -> Floats:
    """Weigh each clip of labels 0. and 1. [N] by n / (2 n_class), so that both classes weigh the same.

    It is what scikit-learn calls ``class_weight="balanced"``, after King and Zeng (2001, Logistic regression
    in rare events data). The mean weight is 1.
    """
    n = y.size
    n_positive = np.count_nonzero(y)
    n_negative = n - n_positive
    return np.where(y == 1, n / (2 * n_positive), n / (2 * n_negative)).astype(y.dtype)


def undersample_rows(y: Floats, rng: np.random.Generator) -> NDArray[np.intp]:
    """Undersample the larger of two classes to the size of the smaller one, at random.

    Parameters
    ----------
    y : ndarray, shape [N]
        Labels 0. and 1.
    rng : Generator

    Returns
    -------
    ndarray of int
        Indices of the clips kept, in rising order; the smaller class is kept whole.
    """
    rows_of_classes = [np.flatnonzero(y == label) for label in (0, 1)]
    n_smaller = min(rows.size for rows in rows_of_classes)
    kept = []
    for rows in rows_of_classes:
        if rows.size > n_smaller:
            kept.append(rng.choice(rows, n_smaller, replace=False))
        else:
            kept.append(rows)
    return np.sort(np.concatenate(kept))
