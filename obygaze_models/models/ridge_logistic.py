"""Fit logistic regression with an L2 penalty, one strength or several after each other."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from obygaze_models.blas import one_blas_thread
from obygaze_models.models.binary import ABOVE_ZERO, LogitClassifier, encode_labels, validated_rows
from obygaze_models.models.parameters import Count, Positive
from obygaze_models.models.ridge_path import RidgePath

Floats = NDArray[np.float64]

SOFT_TOLERANCE = 1e-4
"""The `tol` of fits on soft labels, larger than the default to save time: scores need no more digits."""

SOFT_MAX_ITER = 1000
"""The `max_iter` of fits on soft labels."""


@dataclass(eq=False, repr=False)
class RidgeLogistic(LogitClassifier):
    """Logistic regression with an L2 penalty (ridge) and a free intercept, of two classes.

    The minimum of C sum_i log(1 + exp(-s_i (x_i w + b))) + |w|^2 / 2 with s_i = 1 for positive clips and -1
    for negative ones (le Cessie and van Houwelingen 1992, Ridge estimators in logistic regression), which is
    that of scikit-learn's ``LogisticRegression(C=C)``.

    Parameters
    ----------
    C : float
        Inverse strength of the penalty.
    tol : float
        The solver ends when no component of the gradient is larger than this, in coordinates in which the
        Hessian is about the identity; the loss then is at most about D tol^2 / 2 above its minimum.
    max_iter : int
        Most iterations of L-BFGS.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
        The negative and the positive label.
    coef_ : ndarray, shape [1, D]
    intercept_ : ndarray, shape [1]
    threshold_ : float
        A clip is called positive when its logit is more than 0.
    n_iter_ : int
        Iterations that the fit took.
    n_features_in_ : int
        D.

    Examples
    --------
    >>> import numpy as np
    >>> from obygaze_models.models import RidgeLogistic
    >>> model = RidgeLogistic(C=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.decision_function([[1.5]]).round(6) + 0.0
    array([0.])
    """

    threshold_ = ABOVE_ZERO

    C: Positive = 1.0
    _: KW_ONLY
    tol: Positive = 1e-6
    max_iter: Count = 10_000

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit on features X [N, D], computed in float64, and two labels y [N].

        Warns
        -----
        ConvergenceWarning
            `max_iter` was reached first.
        """
        self.fit_together([self], X, y)
        return self

    @staticmethod
    def fit_together(models: Sequence["RidgeLogistic"], X: ArrayLike, y: ArrayLike) -> None:
        """Fit models that differ in their penalty on the same features X [N, D] and labels y [N], in place.

        They are fitted in the order of rising C, which is the strongest penalty first. Each fit starts from
        the weights of the one before, which is quicker than to start from 0. The covariance of the features
        is computed once.
        """
        features, labels = validate_data(models[0], X, y, dtype=np.float64)
        classes, class_numbers = encode_labels(labels, type(models[0]).__name__)  # numbers 0 and 1
        for model in models:
            model._validate_params()
            model.n_features_in_ = features.shape[1]

        with one_blas_thread():
            path = RidgePath(features, class_numbers.astype(np.float64))
            for model in sorted(models, key=lambda model: model.C):
                # C multiplies the sum of losses, while the path minimises their mean.
                strength_of_penalty = 1 / (model.C * len(class_numbers))
                # From the minimum for the penalty before to the one for this penalty.
                model.n_iter_ = path.advance(strength_of_penalty, model.tol, model.max_iter)
                weights, intercept = path.solution()
                model.classes_ = classes
                model.coef_ = weights[None]
                model.intercept_ = np.array([intercept])

    def decision_function(self, X: ArrayLike) -> Floats:
        """Compute the logit [N] of clips X [N, D]."""
        check_is_fitted(self)
        features = validated_rows(self, X, np.float64)
        return np.asarray(features @ self.coef_[0] + self.intercept_[0])


def soft_logits(X: Floats, y: Floats, other: Floats, strengths: Sequence[float]) -> Floats:
    """Fit logistic regression on soft labels, once for each penalty, and return the logits of other clips.

    Parameters
    ----------
    X : ndarray, shape [N, D]
        Clips to fit on.
    y : ndarray, shape [N]
        Soft labels between 0 and 1, such as the share of annotators who call a clip positive.
    other : ndarray, shape [M, D]
        Clips to score.
    strengths : sequence of float, length S
        Strengths of the penalties, the strongest first: ``strength |w|^2 / 2`` is added to the mean loss.

    Returns
    -------
    ndarray, shape [S, M]
        Logits.
    """
    path = RidgePath(X, y)
    logits = np.empty((len(strengths), len(other)))
    for row, strength in enumerate(strengths):
        # Each fit starts from the one before.
        path.advance(strength, SOFT_TOLERANCE, SOFT_MAX_ITER)
        weights, intercept = path.solution()
        logits[row] = other @ weights + intercept
    return logits
