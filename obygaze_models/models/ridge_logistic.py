"""Fit logistic regression with an L2 penalty, one strength or several after each other.

The features of a network are strongly correlated. Solvers that follow gradients then pass over the clips
hundreds of times, and the weaker the penalty the more often. Here the loss is minimised in coordinates in
which all directions curve alike (the covariance of the features is factored once a penalty), penalties begin
where the next stronger one ended, and a pass reads the features once: the score of a block of clips and its
part of the gradient are computed while the block is in the processor's cache. Figures: benchmarks/README.md,
zoo.
"""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, qr
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from obygaze_models.blas import one_blas_thread
from obygaze_models.models.binary import LogitClassifier, encode_labels, rows_for
from obygaze_models.models.grouped_selection import ABOVE_ZERO
from obygaze_models.models.parameters import Count, Positive

Floats = NDArray[np.float64]

BLOCK = 2**17
"""Numbers in a block of clips: 1 MB, which stays in a core's second-level cache."""

FLATTER = 10
"""How many times flatter the loss may be at its minimum than in the coordinates it was found in."""

FLATTEST = 1e-12
"""Least mean curvature: with logits of 28 on the right side nothing is left to gain."""


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
        The solver ends where no component of the gradient is larger, in coordinates in which the Hessian is
        about the unit matrix there; the loss then is about D tol^2 / 2 above its minimum.
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
        Iterations that were needed.
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
        """Fit models of different penalties on the same clips, the strongest penalty first.

        The covariance of the features is computed once, and each model but the first begins with the weights
        of the one before.
        """
        features, labels = validate_data(models[0], X, y, dtype=np.float64)
        classes, index = encode_labels(labels, type(models[0]).__name__)
        for model in models:
            model._validate_params()
            model.n_features_in_ = features.shape[1]
        with one_blas_thread():
            path = _Path(features, index.astype(np.float64))
            for model in sorted(models, key=lambda model: model.C):
                model.n_iter_ = path.advance(1 / (model.C * len(index)), model.tol, model.max_iter)
                model.classes_ = classes
                weights, intercept = path.solution()
                model.coef_, model.intercept_ = weights[None], np.array([intercept])

    def decision_function(self, X: ArrayLike) -> Floats:
        """Compute the logit [N] of clips X [N, D]."""
        check_is_fitted(self)
        return np.asarray(rows_for(self, X, np.float64) @ self.coef_[0] + self.intercept_[0])


def soft_logits(X: Floats, y: Floats, other: Floats, strengths: Sequence[float]) -> Floats:
    """Fit on labels between 0 and 1, with penalties on the mean loss, strongest first; score other clips.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    y : ndarray, shape [N]
    other : ndarray, shape [M, D]
    strengths : sequence of float, length S

    Returns
    -------
    Logits, [S, M].
    """
    path = _Path(X, y)
    found = np.empty((len(strengths), len(other)))
    for row, strength in zip(found, strengths, strict=True):
        path.advance(strength, 1e-4, 1000)
        weights, intercept = path.solution()
        row[:] = other @ weights + intercept
    return found


class _Path:
    """The minimum of the mean loss, for one penalty after the other.

    The intercept is that of centred features, which the weights then don't move.
    """

    def __init__(self, X: Floats, y: Floats) -> None:
        self.basis = None
        if X.shape[1] > X.shape[0]:
            # The weights are sums of clips, so the solution is found in the N coordinates that they span.
            self.basis, corner = qr(X.T, mode="economic", check_finite=False)
            X = np.ascontiguousarray(corner.T)
        self.X, self.y = X, y
        self.mean = X.mean(axis=0)
        self.covariance = X.T @ X / len(X)
        self.floor = 1e-10 * float(np.trace(self.covariance)) / X.shape[1]
        self.covariance -= np.outer(self.mean, self.mean)
        positive = float(y.mean())
        self.weights, self.intercept = np.zeros(X.shape[1]), float(np.log(positive / (1 - positive)))
        self.curvature = positive * (1 - positive)

    def advance(self, strength: float, tol: float, max_iter: int) -> int:
        """Minimise the mean loss + `strength` |w|^2 / 2 from the last minimum; give the iterations."""
        done, assumed, converged = 0, np.inf, True
        # A weak penalty on separable clips ends at a hundredth or a millionth of the curvature it began with:
        # gradients look smaller there than they are. Each round takes the curvature that the last one found.
        while converged and self.curvature < assumed / FLATTER:
            assumed = self.curvature
            needed, converged = self._descend(strength, tol, max(max_iter - done, 1))
            done += needed
        if not converged:
            warnings.warn(
                f"logistic regression did not converge in max_iter={max_iter} iterations: raise it, or tol",
                ConvergenceWarning,
                stacklevel=4,
            )
        return done

    def _descend(self, strength: float, tol: float, max_iter: int) -> tuple[int, bool]:
        """Minimise in coordinates of the present curvature; give the iterations, and if they sufficed."""
        n_features = self.weights.size
        # About the Hessian: the clips' curvatures p (1 - p) are replaced with their mean, and rounding of the
        # covariance, which a tiny penalty would not cover, is lifted.
        hessian = self.curvature * self.covariance
        hessian[np.diag_indices(n_features)] += max(strength, self.floor)
        # Symmetric: its transpose is the same in LAPACK's order, and needs no copy.
        root, failed = dpotrf(hessian.T, lower=True, overwrite_a=True)
        if failed:
            raise LinAlgError("the covariance of the features is not positive definite")
        unit = np.sqrt(self.curvature)

        # LAPACK itself, for scipy's checks of a vector take as long as the arithmetic.
        def plain(scaled: Floats) -> tuple[Floats, float]:
            weights = dtrtrs(root, scaled[:-1], lower=True, trans=True)[0]
            return weights, scaled[-1] / unit

        def loss_and_gradient(scaled: Floats) -> tuple[float, Floats]:
            weights, intercept = plain(scaled)
            loss, slope, tilt, self.curvature = self._pass(weights, intercept)
            slope += strength * weights
            gradient = np.empty_like(scaled)
            gradient[:-1] = dtrtrs(root, slope, lower=True, overwrite_b=True)[0]
            gradient[-1] = tilt / unit
            return loss + strength / 2 * float(weights @ weights), gradient

        start = np.append(root.T @ self.weights, unit * self.intercept)
        options: Any = {"gtol": tol, "ftol": np.finfo(np.float64).eps, "maxls": 50}
        options |= {"maxiter": max_iter, "maxfun": 50 * max_iter}
        result = minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
        self.weights, self.intercept = plain(result.x)
        return int(result.nit), result.status != 1

    def solution(self) -> tuple[Floats, float]:
        """Give weights [D] and intercept for the features as they are."""
        intercept = self.intercept - float(self.mean @ self.weights)
        return (self.weights if self.basis is None else self.basis @ self.weights), intercept

    def _pass(self, weights: Floats, intercept: float) -> tuple[float, Floats, float, float]:
        """Compute the mean loss, its gradient by weights [D] and intercept, and the mean of p (1 - p)."""
        shift = intercept - float(self.mean @ weights)
        rows = max(1, BLOCK // weights.size)
        loss, slope, tilt, curvature = 0.0, np.zeros_like(weights), 0.0, 0.0
        for start in range(0, len(self.X), rows):
            block, y = self.X[start : start + rows], self.y[start : start + rows]
            logits = block @ weights + shift
            loss += float(np.sum(np.logaddexp(0, logits) - y * logits))
            positive = expit(logits)
            curvature += float(positive @ (1 - positive))
            positive -= y
            slope += positive @ block
            tilt += float(positive.sum())
        n = len(self.X)
        return loss / n, slope / n - self.mean * (tilt / n), tilt / n, max(curvature / n, FLATTEST)
