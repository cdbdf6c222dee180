"""Minimise the loss of logistic regression for one penalty after the other, on one set of clips.

The features of a network are strongly correlated. Solvers that follow gradients then pass over the clips
hundreds of times, and the weaker the penalty the more often. Here the loss is minimised in coordinates in
which all directions curve alike (the covariance of the features is factored once a penalty), penalties begin
where the next stronger one ended, and a pass reads the features once: the score of a block of clips and its
part of the gradient are computed while the block is in the processor's cache. Figures: benchmarks/README.md,
zoo.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, qr
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

Floats = NDArray[np.float64]

BLOCK = 2**17
"""Numbers in a block of clips: 1 MB, which stays in a core's second-level cache."""

FLATTER = 10
"""How many times flatter the loss may be at its minimum than in the coordinates it was found in."""

FLATTEST = 1e-12
"""Least mean curvature: with logits of 28 on the right side nothing is left to gain."""


class RidgePath:
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
