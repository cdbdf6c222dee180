"""Fit logistic regression of a few features on many subsets of the same clips, by Newton's method.

Values of concepts are a dozen numbers a clip. Most of what scikit-learn's `newton-cholesky` takes for such
a fit are its checks; here all inner folds and penalties take each step together. The minimum is the same: a
penalty on the weights, none on the intercept, features as they are. Figures: benchmarks/README.md, zoo.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from obygaze_models.models.convergence import warn_not_converged

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]

MAX_BYTES = 100_000_000
"""Bytes of the logits, residuals and curvatures of the fits of a block."""

LARGEST_LAST_STEP = 1e-12
"""A fit ends with a step whose square, in the curvature of the loss, is at most this times 1 + loss.

Newton's method converges quadratically: the next step's square would be about the square of this one's.
"""

MAX_STEPS = 100
"""Steps after which a fit is given up."""

SHORTEST_LENGTH = 1e-6
"""A step is not halved further, even if it raises the loss, when its length is less than this of the full."""

ROUNDING_OF_LOSS = 1e-13
"""A loss may rise by this times 1 + loss from rounding alone."""

MIN_CURVATURE_OF_INTERCEPT = float(np.finfo(np.float64).tiny ** 0.5)
"""Added to the curvature of the loss along the intercept, which is 0 if all probabilities are 0 or 1."""


def logits_of_subsets(
    X: Floats, y: NDArray[np.int64], subsets: Masks, inverse_strengths: Sequence[float]
) -> Floats:
    """Fit logistic regression on each subset of the clips, and return the logits of all clips.

    The fits are made in blocks whose arrays take at most `MAX_BYTES`.

    Parameters
    ----------
    X : ndarray, shape [N, K]
    y : ndarray of int, shape [N]
        0 or 1.
    subsets : ndarray of bool, shape [N, F]
        Each of the F columns marks the clips of one fit, which are of both classes.
    inverse_strengths : sequence of float, length F
        C of each fit, as scikit-learn's ``LogisticRegression`` takes it.

    Returns
    -------
    ndarray, shape [F, N]

    Warns
    -----
    ConvergenceWarning
        A fit was given up.

    Examples
    --------
    >>> X, y = np.array([[-1.0], [0.0], [0.0], [1.0]]), np.array([0, 0, 1, 1])
    >>> logits = logits_of_subsets(X, y, np.ones((4, 1), dtype=np.bool_), [1.0])
    >>> float(logits[0, -1].round(3))
    0.675
    """
    design = np.column_stack([X, np.ones(len(X))])  # [N, K + 1]
    labels = y.astype(np.float64)
    C = np.array(inverse_strengths, dtype=np.float64)
    logits = np.empty((subsets.shape[1], len(X)))

    # Each fit holds four float64 arrays over clips: logits, residuals, curvatures and a product.
    bytes_of_fit = 4 * 8 * len(X)
    n_fits_of_block = max(1, MAX_BYTES // bytes_of_fit)
    for first in range(0, subsets.shape[1], n_fits_of_block):
        block = slice(first, first + n_fits_of_block)
        fits = _Fits(design, labels, subsets[:, block].astype(np.float64), C[block])
        logits[block] = fits.minimise().T
    return logits


class _FitState(NamedTuple):
    """Coefficients of F fits at some step, with their logits and losses.

    Attributes
    ----------
    coefficients : ndarray, shape [K + 1, F]
        Weights, then the intercept.
    logits : ndarray, shape [N, F]
        Of all clips.
    losses : ndarray, shape [F]
        C times the summed log losses, and half the squared weights.
    """

    coefficients: Floats
    logits: Floats
    losses: Floats


class _NewtonSteps(NamedTuple):
    """The steps of F fits by Newton's method.

    Attributes
    ----------
    direction : ndarray, shape [K + 1, F]
        The change of the coefficients by a full step.
    decrement : ndarray, shape [F]
        Newton's decrement d' H d of the step d and the Hessian H: about twice the loss to be gained.
    """

    direction: Floats
    decrement: Floats


class _Fits:
    """Fits of logistic regression on F subsets of N clips.

    Parameters
    ----------
    design : ndarray, shape [N, K + 1]
        Features, and a column of ones for the intercept.
    y : ndarray, shape [N]
        Labels, 0 or 1.
    in_subset : ndarray, shape [N, F]
        1 for the clips of a subset, 0 for others.
    C : ndarray, shape [F]
    """

    def __init__(self, design: Floats, y: Floats, in_subset: Floats, C: Floats) -> None:
        """Keep the clips and the penalties of the fits; nothing is fitted yet."""
        self.design = design
        self.y = y[:, None]
        self.in_subset = in_subset
        self.C = C
        # A clip's log loss is log(1 + exp(sign * logit)): the sign is 1 for negative clips, -1 for positive.
        self.sign_of_loss = 1 - 2 * self.y  # [N, 1]
        # The factor of the penalty of each coefficient, [K + 1]: 1 for weights, 0 for the intercept.
        self.penalty_factors = np.ones(design.shape[1])
        self.penalty_factors[-1] = 0.0

    def minimise(self) -> Floats:
        """Run Newton's method from 0 until all fits have converged; return their logits [N, F].

        The decrement of a step is about twice the loss that the step gains. The fits have converged once they
        have taken a step whose decrement is negligible for all of them (`LARGEST_LAST_STEP`). That step is
        still taken: near the minimum, a step of Newton's method leaves far less than it gains.
        """
        weights_of_0 = np.zeros((self.design.shape[1], len(self.C)))
        current = self._evaluate(weights_of_0)  # logits and losses of all fits there
        for _ in range(MAX_STEPS):
            steps = self._newton_steps(current)
            current = self._line_search(current, steps.direction)
            negligible = LARGEST_LAST_STEP * (1 + current.losses)
            if (steps.decrement <= negligible).all():
                return current.logits

        warn_not_converged(f"{MAX_STEPS} steps")
        return current.logits

    def _evaluate(self, coefficients: Floats) -> _FitState:
        """Compute the logits [N, F] and regularised losses [F] of coefficients [K + 1, F]."""
        logits = self.design @ coefficients
        log_losses = np.logaddexp(0.0, self.sign_of_loss * logits)  # [N, F]
        log_losses *= self.in_subset  # clips that are not in a subset do not count
        weights = coefficients * self.penalty_factors[:, None]  # 0 in place of the intercept
        losses = self.C * log_losses.sum(axis=0) + (weights * weights).sum(axis=0) / 2
        return _FitState(coefficients, logits, losses)

    def _newton_steps(self, current: _FitState) -> _NewtonSteps:
        """Compute the Newton step of each fit: minus the inverse Hessian of its loss times the gradient.

        The loss is C times the sum of the clips' log losses, plus the penalty, half the sum of the squared
        weights. Of a clip with the row x of the design, the label y and the probability p,

        - the gradient of the log loss is (p - y) x;
        - its Hessian is p (1 - p) times the outer product of x with itself.

        The gradient of the penalty are the weights, and its Hessian is 1 in the diagonal of each weight.
        """
        p = expit(current.logits)  # [N, F]
        residuals = (p - self.y) * self.in_subset
        gradient_of_penalty = self.penalty_factors[:, None] * current.coefficients
        gradient = self.C * (self.design.T @ residuals) + gradient_of_penalty  # [K + 1, F]

        curvatures = (1 - p) * self.in_subset * p  # [N, F]
        direction = np.empty_like(gradient)
        for fit, curvature in enumerate(np.ascontiguousarray(curvatures.T)):
            hessian_of_log_losses = (self.design * curvature[:, None]).T @ self.design
            hessian = self.C[fit] * hessian_of_log_losses + np.diag(self.penalty_factors)
            hessian[-1, -1] += MIN_CURVATURE_OF_INTERCEPT  # keeps it invertible
            direction[:, fit] = np.linalg.solve(hessian, -gradient[:, fit])

        # The decrement is d' H d. The step d solves H d = -gradient, so that this is -d' gradient.
        decrement = -(gradient * direction).sum(axis=0)
        return _NewtonSteps(direction, decrement)

    def _line_search(self, current: _FitState, direction: Floats) -> _FitState:
        """Halve the step of each fit until it no longer raises the fit's loss; return where the steps lead.

        A rise by rounding does not count. If the step of a fit has been halved to less than
        `SHORTEST_LENGTH`, the search ends for all fits, as they are evaluated together. `minimise` then
        computes new steps from where they are.

        Parameters
        ----------
        current : _FitState
        direction : ndarray, shape [K + 1, F]
            The full step of each fit.
        """
        largest_losses = current.losses + ROUNDING_OF_LOSS * (1 + current.losses)
        length = np.ones(len(self.C))  # as a share of the full step
        trial = self._evaluate(current.coefficients + direction)
        rises = trial.losses > largest_losses
        while rises.any() and length.min() >= SHORTEST_LENGTH:
            length[rises] /= 2
            trial = self._evaluate(current.coefficients + length * direction)
            rises = trial.losses > largest_losses
        return trial
