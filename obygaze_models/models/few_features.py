"""Fit logistic regression of a few features on many subsets of the same clips, by Newton's method.

Values of concepts are a dozen numbers a clip. Most of what scikit-learn's `newton-cholesky` takes for such
a fit are its checks; here all inner folds and penalties take each step together. The minimum is the same: a
penalty on the weights, none on the intercept, features as they are. Figures: benchmarks/README.md, zoo.
"""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]

MOST_BYTES = 100_000_000
"""Bytes of the logits, residuals and curvatures of the fits of a block."""

ENOUGH = 1e-12
"""A fit ends with a step whose square, in the curvature of the loss, is at most this: the next one's would be
about the square of it."""

MOST_STEPS = 100
"""Steps after which a fit is given up."""

SHORTEST = 1e-6
"""Share of a step that is tried last, where longer ones do not lower the loss."""

ROUNDING = 1e-13
"""Share of a loss by which it may rise without being said to."""


def logits_of_subsets(X: Floats, y: NDArray[np.int64], subsets: Masks, strengths: Sequence[float]) -> Floats:
    """Fit each subset of the clips with a penalty of its own, and give the logits of all clips.

    Parameters
    ----------
    X : ndarray, shape [N, K]
    y : ndarray of int, shape [N]
        0 or 1.
    subsets : ndarray of bool, shape [N, F]
        Each with clips of both classes.
    strengths : sequence of float, length F
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
    design = np.column_stack([X, np.ones(len(X))])
    C = np.array(strengths, dtype=np.float64)
    width = max(1, MOST_BYTES // (32 * len(X)))
    logits = np.empty((subsets.shape[1], len(X)))
    for first in range(0, subsets.shape[1], width):
        some = slice(first, first + width)
        fits = _Fits(design, y.astype(np.float64), subsets[:, some].astype(np.float64), C[some])
        logits[some] = fits.minimise().T
    return logits


class _Seen(NamedTuple):
    """What is seen of F fits at some coefficients.

    Attributes
    ----------
    logits : ndarray, shape [N, F]
    losses : ndarray, shape [F]
        C times the summed log losses, and half the squared weights.
    """

    logits: Floats
    losses: Floats


class _Fits:
    """Fits of F subsets [N, F], as 0 and 1, of clips with features and a column of ones [N, K + 1]."""

    def __init__(self, design: Floats, y: Floats, inside: Floats, C: Floats) -> None:
        self.design, self.y, self.inside, self.C = design, y[:, None], inside, C
        # A logit on the side of the label lowers the loss.
        self.away = 1 - 2 * self.y
        self.penalised = np.ones(design.shape[1])
        self.penalised[-1] = 0.0  # the intercept

    def minimise(self) -> Floats:
        """Step until all fits have ended; give their logits [N, F]."""
        coefficients = np.zeros((self.design.shape[1], len(self.C)))
        here = self._look(coefficients)
        for _ in range(MOST_STEPS):
            direction, size = self._newton(coefficients, here.logits)
            coefficients, here = self._go(coefficients, direction, here)
            if (size <= ENOUGH * (1 + here.losses)).all():
                return here.logits
        warnings.warn(
            f"logistic regression did not converge in {MOST_STEPS} steps", ConvergenceWarning, stacklevel=4
        )
        return here.logits

    def _look(self, coefficients: Floats) -> _Seen:
        """Compute logits and losses at coefficients [K + 1, F]."""
        logits = self.design @ coefficients
        misfit = np.logaddexp(0.0, self.away * logits)
        misfit *= self.inside
        weights = coefficients * self.penalised[:, None]
        return _Seen(logits, self.C * misfit.sum(axis=0) + (weights * weights).sum(axis=0) / 2)

    def _newton(self, coefficients: Floats, logits: Floats) -> tuple[Floats, Floats]:
        """Compute Newton's steps [K + 1, F], and their squares in the curvature of the losses [F]."""
        p = expit(logits)
        residuals = (p - self.y) * self.inside
        gradient = self.C * (self.design.T @ residuals) + self.penalised[:, None] * coefficients
        p *= (1 - p) * self.inside
        direction = np.empty_like(coefficients)
        for fit, curvature in enumerate(np.ascontiguousarray(p.T)):
            hessian = self.C[fit] * ((self.design * curvature[:, None]).T @ self.design)
            hessian[np.diag_indices(len(hessian))] += self.penalised
            # Where all probabilities are 0 or 1 nothing curves along the intercept.
            hessian[-1, -1] += np.finfo(np.float64).tiny ** 0.5
            direction[:, fit] = np.linalg.solve(hessian, -gradient[:, fit])
        return direction, -(gradient * direction).sum(axis=0)

    def _go(self, coefficients: Floats, direction: Floats, here: _Seen) -> tuple[Floats, _Seen]:
        """Go as far along the steps as lowers each fit's loss: all of it, or a half, a quarter and so on."""
        length = np.ones(len(self.C))
        while True:
            moved = coefficients + length * direction
            there = self._look(moved)
            rises = there.losses > here.losses + ROUNDING * (1 + here.losses)
            if not rises.any() or length.min() < SHORTEST:
                return moved, there
            length[rises] /= 2
