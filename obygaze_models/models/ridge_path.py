"""Minimise the loss of logistic regression for a series of penalties, on one set of clips.

The features of a network are strongly correlated. Solvers that follow gradients then pass over the clips
hundreds of times, and the weaker the penalty the more often. Three things make it faster here. The loss is
minimised in coordinates in which its curvature is about the same in all directions (the covariance of the
features is factored once for each penalty). Each penalty starts from the minimum of the last. A pass reads
the features once: the scores of a block of clips and its part of the gradient are computed while the block is
in the processor's cache. Figures: benchmarks/README.md, zoo.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, qr
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.optimize import minimize
from scipy.special import expit

from obygaze_models.models.convergence import warn_not_converged

Floats = NDArray[np.float64]

NUMBERS_OF_BLOCK = 2**17
"""Numbers in a block of clips: 1 MB, which stays in a core's second-level cache."""

FLOOR_SHARE = 1e-10
"""Least penalty, as a share of the mean square of the features: rounding errors of sums of squares are far
below it."""

MAX_FLATTENING = 10
"""The descent is repeated if the curvature at the minimum is more than this many times below the assumed."""

MIN_CURVATURE = 1e-12
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
        Mean of p (1 - p), where p is the probability of label 1, or `MIN_CURVATURE` if that is larger.
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
        """Compute the mean and covariance of features X [N, D], and start from weights of 0.

        With more features than clips (D > N), features are replaced by N coordinates of the space that clips
        span, and `basis` leads back from it. y [N] are the labels.
        """
        self.basis = None
        self.X = X
        self.y = y
        if X.shape[1] > X.shape[0]:
            # The best weights are sums of clips, so that they are found among the directions that clips span.
            self.basis, self.X = _span(X)

        n_clips, n_coordinates = self.X.shape
        self.mean = self.X.mean(axis=0)
        mean_products = self.X.T @ self.X / n_clips
        mean_square = float(np.trace(mean_products)) / n_coordinates
        # The least penalty that makes the covariance positive definite in spite of rounding.
        self.floor = FLOOR_SHARE * mean_square
        # The covariance is the mean of x x', less mean mean'.
        mean_products -= np.outer(self.mean, self.mean)
        self.covariance = mean_products

        # With weights of 0 the best probability is the same for all clips: the share of positive ones.
        positive_share = float(y.mean())
        self.weights = np.zeros(n_coordinates)
        self.intercept = float(np.log(positive_share / (1 - positive_share)))
        self.curvature = positive_share * (1 - positive_share)  # the mean of p (1 - p) over clips

    def advance(self, strength: float, tol: float, max_iter: int) -> int:
        """Minimise the mean loss plus ``strength |w|^2 / 2``, starting from the last minimum.

        A descent runs in coordinates that are scaled by the curvature of the loss at its start. If the
        curvature falls much on the way, as with a weak penalty on separable clips, the gradient in these
        coordinates becomes too small, and the descent ends before it reaches the minimum. Another descent,
        scaled anew, then starts from there.

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
        while True:
            curvature_before = self.curvature
            n_iterations_left = max(max_iter - n_iterations, 1)
            descent = self._descend(strength, tol, n_iterations_left)
            n_iterations += descent.n_iterations

            if not descent.has_converged:
                warn_not_converged(f"max_iter={max_iter} iterations", "raise it, or tol")
                return n_iterations

            has_flattened = self.curvature < curvature_before / MAX_FLATTENING
            if not has_flattened:
                return n_iterations

    def solution(self) -> tuple[Floats, float]:
        """Return the weights [D] and the intercept of the minimum found last, for features as they came.

        The descent works with other features: centred ones, so that their mean's part of the logit is taken
        from the intercept; and, of few clips, with coordinates in the directions that the clips span
        (`basis`), so that weights of coordinates are turned into weights of features.
        """
        intercept = self.intercept - float(self.mean @ self.weights)
        weights_of_coordinates = self.weights
        if self.basis is None:  # the coordinates are the features
            return weights_of_coordinates, intercept
        return self.basis @ weights_of_coordinates, intercept

    def _descend(self, strength: float, tol: float, max_iter: int) -> "_Descent":
        """Minimise the penalised loss by L-BFGS, and replace the object's weights, intercept and curvature.

        The descent starts at those of the penalty before. Its coordinates are the weights and the intercept,
        stretched such that the Hessian is nearly the identity: L-BFGS then takes few steps. The parameters
        are those of `advance`.
        """
        scaled = _ScaledCoordinates(
            root=self._root_of_hessian(strength), intercept_scale=float(np.sqrt(self.curvature))
        )
        curvatures: list[float] = []  # at each point that the solver tries

        def loss_and_gradient(coordinates: Floats) -> tuple[float, Floats]:
            """Compute the penalised loss and its gradient, both in the coordinates of the descent."""
            weights, intercept = scaled.to_weights(coordinates)
            mean_loss = self._mean_loss(weights, intercept)
            curvatures.append(mean_loss.curvature)

            # The penalty is strength / 2 |w|^2, and its derivative by the weights strength * w.
            penalty = strength / 2 * float(weights @ weights)
            by_weights = mean_loss.by_weights + strength * weights
            return mean_loss.loss + penalty, scaled.gradient(by_weights, mean_loss.by_intercept)

        start = scaled.from_weights(self.weights, self.intercept)
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

        self.weights, self.intercept = scaled.to_weights(result.x)
        # The last point that was tried is the minimum, or very near to it.
        self.curvature = curvatures[-1]
        has_too_many_iterations = result.status == 1  # or evaluations
        return _Descent(int(result.nit), has_converged=not has_too_many_iterations)

    def _root_of_hessian(self, strength: float) -> Floats:
        """Compute the lower Cholesky factor L [R, R] of an approximate Hessian L L' by the weights.

        The Hessian of the loss is the mean of p (1 - p) x x' over clips, of centred features x, plus the
        strength of the penalty in the diagonal. The approximation replaces each p (1 - p) with their mean, so
        that the covariance of the features has to be computed only once.
        """
        hessian = self.curvature * self.covariance
        # A penalty smaller than the covariance's rounding errors would not make the matrix positive definite.
        diagonal = np.diag_indices(len(hessian))
        hessian[diagonal] += max(strength, self.floor)
        return _cholesky_factor(hessian)

    def _mean_loss(self, weights: Floats, intercept: float) -> _MeanLoss:
        """Compute the mean loss without penalty and its derivatives, by blocks of clips.

        `intercept` is that for centred features: the logits are (X - mean) w + intercept. X is not centred:

        - the logits are computed as X w + (intercept - mean w);
        - with residuals r = p - y, the derivative by w is the mean of r (x - mean) over clips, which is
          computed as the mean of r x, less the mean of r times the mean.
        """
        intercept_of_X = intercept - float(self.mean @ weights)
        n_rows = max(1, NUMBERS_OF_BLOCK // weights.size)
        loss = 0.0
        by_weights = np.zeros_like(weights)
        by_intercept = 0.0
        curvature = 0.0
        for start in range(0, len(self.X), n_rows):
            block = self.X[start : start + n_rows]
            y = self.y[start : start + n_rows]
            logits = block @ weights + intercept_of_X
            # log(1 + exp(logit)) - y logit is the log loss of a label y.
            loss += float(np.sum(np.logaddexp(0, logits) - y * logits))
            p = expit(logits)
            curvature += float(p @ (1 - p))

            residuals = p - y
            by_weights += residuals @ block
            by_intercept += float(residuals.sum())

        n_clips = len(self.X)
        mean_by_intercept = by_intercept / n_clips
        return _MeanLoss(
            loss=loss / n_clips,
            by_weights=by_weights / n_clips - self.mean * mean_by_intercept,
            by_intercept=mean_by_intercept,
            curvature=max(curvature / n_clips, MIN_CURVATURE),
        )


def _cholesky_factor(matrix: Floats) -> Floats:
    """Compute the lower Cholesky factor L of a symmetric matrix L L' [R, R], whose memory is overwritten.

    Raises
    ------
    LinAlgError
        The matrix is not positive definite.
    """
    # LAPACK copies matrices that are stored by rows, as this one is. Its transpose is stored by columns, and
    # is the same matrix, as it is symmetric.
    stored_by_columns = matrix.T
    factor: Floats
    factor, has_failed = dpotrf(stored_by_columns, lower=True, overwrite_a=True)
    if has_failed:
        raise LinAlgError("the covariance of the features is not positive definite")
    return factor


def _span(X: Floats) -> tuple[Floats, Floats]:
    """Find orthonormal directions that N clips X [N, D] span, with fewer clips than features.

    Returns
    -------
    basis : ndarray, shape [D, N]
        The directions, as columns.
    coordinates : ndarray, shape [N, N]
        The clips as multiples of the directions: X is ``coordinates @ basis.T``.
    """
    factors: Any = qr(X.T, mode="economic", check_finite=False)
    # X.T is basis @ triangle.
    basis, triangle = factors
    return basis, np.ascontiguousarray(triangle.T)


class _ScaledCoordinates(NamedTuple):
    """Coordinates in which the Hessian is nearly the identity, and their conversion to weights and back.

    With the Cholesky factor L of the Hessian L L' by the weights w, the coordinates [R + 1] are L' w,
    followed by the intercept times the root of its own second derivative. LAPACK is called directly, as
    scipy's checks of a vector take as long as the arithmetic.

    Attributes
    ----------
    root : ndarray, shape [R, R]
        L, a lower triangle.
    intercept_scale : float
    """

    root: Floats
    intercept_scale: float

    def from_weights(self, weights: Floats, intercept: float) -> Floats:
        """Convert weights [R] and intercept to coordinates."""
        return np.append(self.root.T @ weights, self.intercept_scale * intercept)

    def to_weights(self, coordinates: Floats) -> tuple[Floats, float]:
        """Convert coordinates [R + 1] back to weights [R] and intercept, of which they are scaled forms.

        The first R coordinates are L' weights (L is `root`), and the last is the intercept, scaled.
        """
        # Solves L' weights = coordinates. `trans` says that it is L', and `lower` that L is a lower triangle.
        weights, _ = dtrtrs(self.root, coordinates[:-1], lower=True, trans=True)
        scaled_intercept = coordinates[-1]
        return weights, scaled_intercept / self.intercept_scale

    def gradient(self, by_weights: Floats, by_intercept: float) -> Floats:
        """Convert derivatives of the loss by weights and intercept to those by coordinates, [R + 1].

        With the lower triangle L (`root`), the weights are inv(L') times the coordinates. By the chain rule,
        the derivatives by coordinates are therefore inv(L) times those by weights. The array `by_weights` [R]
        serves as memory for them: its values are lost.
        """
        # Solves L x = by_weights, without an inverse.
        by_coordinates, _ = dtrtrs(self.root, by_weights, lower=True, overwrite_b=True)
        return np.append(by_coordinates, by_intercept / self.intercept_scale)


class _Descent(NamedTuple):
    """The number of iterations of a descent, and whether it converged within those allowed."""

    n_iterations: int
    has_converged: bool
