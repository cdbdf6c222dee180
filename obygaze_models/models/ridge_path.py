"""Minimise the loss of logistic regression for a series of penalties, on one set of clips.

The features of a network are strongly correlated. Solvers that follow gradients then pass over the clips
hundreds of times, and the weaker the penalty the more often. Three things make it faster here. The loss is
minimised in coordinates in which its curvature is about the same in all directions (the covariance of the
features is factored once for each penalty). Each penalty starts from the minimum of the last. A pass reads
the features once: the scores of a block of clips and its part of the gradient are computed while the block is
in the processor's cache. Figures: benchmarks/README.md, zoo.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, qr
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

Floats = NDArray[np.float64]

NUMBERS_OF_BLOCK = 2**17
"""Numbers in a block of clips: 1 MB, which stays in a core's second-level cache."""

MOST_FLATTENING = 10
"""The descent is repeated if the curvature at the minimum is more than this many times below the assumed."""

LEAST_CURVATURE = 1e-12
"""Least mean curvature that is assumed, so that it can be divided by.

It is reached if all logits have the right sign and an absolute value of 28, where the loss is nearly 0."""


class _MeanLoss(NamedTuple):
    """The mean loss at some weights and intercept, without the penalty.

    Attributes
    ----------
    loss : float
    by_weights : ndarray, shape [R]
        Its gradient by the weights.
    by_intercept : float
        Its derivative by the intercept.
    curvature : float
        Mean of p (1 - p), where p is the probability of label 1, or `LEAST_CURVATURE` if that is larger.
    """

    loss: float
    by_weights: Floats
    by_intercept: float
    curvature: float


class RidgePath:
    """Finds the minimum of the mean loss for a series of penalties, each from the minimum of the last.

    The intercept is for centred features, so that the best intercept hardly depends on the weights.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    y : ndarray, shape [N]
        Labels, 0 or 1, or shares between them.

    Attributes
    ----------
    basis : ndarray, shape [D, N], or None
        With more features than clips: the orthonormal directions that the clips span. Else None.
    X : ndarray, shape [N, R]
        The features, as coordinates in the basis if there is one; R is the smaller of N and D.
    weights : ndarray, shape [R]
        Weights of these coordinates at the last minimum; 0 at first.
    intercept : float
        Intercept at the last minimum, for centred features.
    curvature : float
        Mean of p (1 - p) at the last minimum.
    mean : ndarray, shape [R]
        Mean of X.
    covariance : ndarray, shape [R, R]
        Of X.
    floor : float
        The least penalty that makes the covariance numerically positive definite.
    """

    def __init__(self, X: Floats, y: Floats) -> None:
        """Centre the features X [N, D] of clips with labels y [N], in N coordinates if D is larger."""
        self.basis = None
        if X.shape[1] > X.shape[0]:
            # The weights are sums of clips, so the solution is found in the N coordinates that they span.
            self.basis, triangle = qr(X.T, mode="economic", check_finite=False)
            X = np.ascontiguousarray(triangle.T)
        self.X = X
        self.y = y
        self.mean = X.mean(axis=0)
        self.covariance = X.T @ X / len(X)
        # Rounding errors are far below this share of the mean of the diagonal.
        self.floor = 1e-10 * float(np.trace(self.covariance)) / X.shape[1]
        # From mean products to the covariance.
        self.covariance -= np.outer(self.mean, self.mean)
        # With weights of 0 the best probability is the same for all clips.
        positive_share = float(y.mean())
        self.weights = np.zeros(X.shape[1])
        self.intercept = float(np.log(positive_share / (1 - positive_share)))
        self.curvature = positive_share * (1 - positive_share)

    def advance(self, strength: float, tol: float, max_iter: int) -> int:
        """Minimise the mean loss plus ``strength |w|^2 / 2``, starting from the last minimum.

        Parameters
        ----------
        strength : float
            Strength of the penalty, half of which multiplies the squared weights.
        tol : float
            Largest component of the gradient at which a descent ends.
        max_iter : int
            Most iterations of L-BFGS, over all descents.

        Returns
        -------
        int
            The number of iterations.
        """
        n_iterations = 0
        assumed_curvature = np.inf
        has_converged = True
        # With a weak penalty on separable clips the curvature falls to a hundredth or a millionth of what it
        # was at the start: in coordinates scaled by that, gradients look smaller than they are. So the
        # descent is repeated, each time with the curvature that the last one found.
        while has_converged and self.curvature < assumed_curvature / MOST_FLATTENING:
            assumed_curvature = self.curvature
            descent = self._descend(strength, tol, max(max_iter - n_iterations, 1))
            n_iterations += descent.n_iterations
            has_converged = descent.has_converged
        if not has_converged:
            warnings.warn(
                f"logistic regression did not converge in max_iter={max_iter} iterations: raise it, or tol",
                ConvergenceWarning,
                stacklevel=4,
            )
        return n_iterations

    def solution(self) -> tuple[Floats, float]:
        """Return weights [D] and intercept of the last minimum, for features that are not centred."""
        intercept = self.intercept - float(self.mean @ self.weights)
        weights = self.weights if self.basis is None else self.basis @ self.weights
        return weights, intercept

    def _descend(self, strength: float, tol: float, max_iter: int) -> "_Descent":
        """Minimise the penalised loss by L-BFGS, in coordinates in which the Hessian is nearly the identity.

        With the Cholesky factor R of the Hessian R R' by the weights w, the coordinates are R' w, followed by
        the intercept times the square root of the curvature. Weights, intercept and curvature are updated.
        """
        root = self._root_of_hessian(strength)
        intercept_scale = np.sqrt(self.curvature)

        # LAPACK is called directly, as scipy's checks of a vector take as long as the arithmetic.
        def to_weights(coordinates: Floats) -> tuple[Floats, float]:
            """Convert the coordinates of the descent to weights [D] and intercept."""
            weights = dtrtrs(root, coordinates[:-1], lower=True, trans=True)[0]
            return weights, coordinates[-1] / intercept_scale

        def loss_and_gradient(coordinates: Floats) -> tuple[float, Floats]:
            """Compute the penalised loss and its gradient, both in the coordinates of the descent."""
            weights, intercept = to_weights(coordinates)
            mean_loss = self._mean_loss(weights, intercept)
            self.curvature = mean_loss.curvature
            by_weights = mean_loss.by_weights
            by_weights += strength * weights
            gradient = np.empty_like(coordinates)
            gradient[:-1] = dtrtrs(root, by_weights, lower=True, overwrite_b=True)[0]
            gradient[-1] = mean_loss.by_intercept / intercept_scale
            penalty = strength / 2 * float(weights @ weights)
            return mean_loss.loss + penalty, gradient

        start = np.append(root.T @ self.weights, intercept_scale * self.intercept)
        options: Any = {
            "gtol": tol,
            # Ends only when the loss falls by no more than rounding.
            "ftol": np.finfo(np.float64).eps,
            # Trials of a step's length; scipy's default is 20.
            "maxls": 50,
            "maxiter": max_iter,
            "maxfun": 50 * max_iter,
        }
        result = minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
        self.weights, self.intercept = to_weights(result.x)
        # Status 1: too many iterations or evaluations.
        return _Descent(int(result.nit), has_converged=result.status != 1)

    def _root_of_hessian(self, strength: float) -> Floats:
        """Compute the lower Cholesky factor [R, R] of an approximate Hessian by the weights.

        The approximation replaces each clip's curvature p (1 - p) with their mean. `strength` is that of the
        penalty.
        """
        hessian = self.curvature * self.covariance
        # A penalty smaller than the covariance's rounding errors would not make the matrix positive definite.
        hessian[np.diag_indices(self.weights.size)] += max(strength, self.floor)
        # LAPACK wants columns contiguous: the transpose of the symmetric matrix is so without a copy.
        root: Floats
        root, failed = dpotrf(hessian.T, lower=True, overwrite_a=True)
        if failed:
            raise LinAlgError("the covariance of the features is not positive definite")
        return root

    def _mean_loss(self, weights: Floats, intercept: float) -> _MeanLoss:
        """Compute the mean loss without penalty and its derivatives, by blocks of clips.

        `intercept` is that for centred features.
        """
        shift = intercept - float(self.mean @ weights)
        n_rows = max(1, NUMBERS_OF_BLOCK // weights.size)
        loss = 0.0
        by_weights = np.zeros_like(weights)
        by_shift = 0.0
        curvature = 0.0
        for start in range(0, len(self.X), n_rows):
            block = self.X[start : start + n_rows]
            y = self.y[start : start + n_rows]
            logits = block @ weights + shift
            loss += float(np.sum(np.logaddexp(0, logits) - y * logits))
            p = expit(logits)
            curvature += float(p @ (1 - p))
            # p - y, computed in the memory of p.
            residuals = p
            residuals -= y
            by_weights += residuals @ block
            by_shift += float(residuals.sum())
        n_clips = len(self.X)
        by_intercept = by_shift / n_clips
        # Logits are X w + (intercept - mean w): the derivative by w has a term of X and one of the mean.
        return _MeanLoss(
            loss=loss / n_clips,
            by_weights=by_weights / n_clips - self.mean * by_intercept,
            by_intercept=by_intercept,
            curvature=max(curvature / n_clips, LEAST_CURVATURE),
        )


class _Descent(NamedTuple):
    """The number of iterations of a descent, and whether it converged within those allowed."""

    n_iterations: int
    has_converged: bool
