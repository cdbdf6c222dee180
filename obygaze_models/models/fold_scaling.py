"""Standardise the same clips for many fits at once: each fit by the moments of its own training clips.

All fits read one matrix, the `base`: the features standardised by the moments of *all* clips. What a fit's
own standardisation changes is a shift and a stretch of each feature, which moves into the fit's weights. Only
the few values that one of the two standardisations cuts off at the limit differ from fit to fit; those are
kept beside the base and added to logits and gradients.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from obygaze_models.models.scaling import (
    Moments,
    is_constant,
    moments,
    moments_of_subsets,
    safe_scale,
    standardise,
)

Floats = NDArray[np.float64]
Numbers = NDArray[np.floating[Any]]
"""Of float32 on the way to a minimum, of float64 at its end."""
Masks = NDArray[np.bool_]


class Base:
    """Features of all clips, standardised by the moments of all clips and cut off at a limit.

    Parameters
    ----------
    X : ndarray, shape [N, D]
        Finite features.
    limit : float
        Number of deviations at which standardised features are cut off.

    Attributes
    ----------
    moments : Moments
        Of all clips, [D].
    wide : ndarray of float64, shape [N, D]
        The standardised features.
    narrow : ndarray of float32, shape [N, D]
        The same, for steps that don't need more.
    """

    def __init__(self, X: NDArray[np.floating[Any]], limit: float) -> None:
        self.X = X
        self.limit = limit
        self.moments = moments(X)
        self.wide: Floats = np.empty(X.shape)
        standardise(X, *self.moments, limit, out=self.wide)
        self.narrow = self.wide.astype(np.float32)

    def cut_between(self, low: Floats, high: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Find the rows and columns of values that are at the limits `low` and `high` [D] or beyond.

        A value that the base itself has cut off stands at the base's own limit, so limits wider than that
        count as the base's own.
        """
        lowest = np.maximum(low, -self.limit)
        highest = np.minimum(high, self.limit)
        rows, columns = np.nonzero((self.wide <= lowest) | (self.wide >= highest))
        return rows, columns


@dataclass(frozen=True, eq=False)
class CutValues:
    """The E values of the base for which some of K fits use another value, since they cut off elsewhere.

    Attributes
    ----------
    rows, columns : ndarray of int, shape [E]
        Where the values stand in the base; rows in order.
    change : ndarray, shape [E, K]
        What each fit adds to the base's value.
    touched_rows : ndarray of int, shape [R]
        The rows of the base that have any such value.
    sum_by_row : csr_array, shape [R, E]
        Multiplied by numbers [E, K], it adds up those of each touched row.
    sum_by_column : csr_array, shape [D, E]
        Multiplied by numbers [E, K], it adds up those of each column.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    change: Floats
    touched_rows: NDArray[np.intp]
    sum_by_row: csr_array
    sum_by_column: csr_array

    @classmethod
    def of(
        cls, rows: NDArray[np.intp], columns: NDArray[np.intp], change: Floats, n_features: int
    ) -> "CutValues":
        """Prepare the sums by row and by column of values at `rows` and `columns` [E]."""
        touched_rows, touched_row_of = np.unique(rows, return_inverse=True)
        sum_by_row = _sums_by(touched_row_of, len(touched_rows))
        sum_by_column = _sums_by(columns, n_features)
        return cls(rows, columns, change, touched_rows, sum_by_row, sum_by_column)

    def add_to_logits(self, logits: Numbers, weights: Floats) -> None:
        """Add to logits [N, K] what the changed values contribute, given weights of the base [D, K]."""
        if len(self.rows):
            logits[self.touched_rows] += self.sum_by_row @ (self.change * weights[self.columns])

    def add_to_gradient(self, gradient: Floats, residuals: Numbers) -> None:
        """Add to gradients by weights of the base [D, K] what the changed values contribute."""
        if len(self.rows):
            gradient += self.sum_by_column @ (self.change * residuals[self.rows])


def _sums_by(positions: NDArray[np.intp], n: int) -> csr_array:
    """Make the matrix [n, E] that adds up E values by the position of each among n."""
    ones = np.ones(len(positions))
    return csr_array((ones, (positions, np.arange(len(positions)))), shape=(n, len(positions)))


@dataclass(frozen=True, eq=False)
class FoldScaling:
    """What turns the base into the standardised features of each of K fits.

    A fit's feature is ``stretch * (value - centre)``, where the value is that of the base, or another where
    the fit cuts off elsewhere (`cut`).

    Attributes
    ----------
    centre, stretch : ndarray, shape [D, K]
        The stretch is 0 of a feature that is constant in the fit's training clips: it tells the fit nothing.
    cut : CutValues
    """

    centre: Floats
    stretch: Floats
    cut: CutValues

    def take(self, fits: NDArray[np.intp]) -> "FoldScaling":
        """Keep some of the fits, by their numbers."""
        cut = replace(self.cut, change=self.cut.change[:, fits])
        return FoldScaling(self.centre[:, fits], self.stretch[:, fits], cut)

    def logits(self, base: Numbers, coefficients: Floats) -> Numbers:
        """Compute the logits [N, K] of coefficients [D + 1, K], in the precision of the base [N, D]."""
        weights = self.stretch * coefficients[:-1]
        intercepts = coefficients[-1] - dot_columns(self.centre, weights)
        logits: Numbers = base @ weights.astype(base.dtype)
        logits += intercepts.astype(base.dtype)
        self.cut.add_to_logits(logits, weights)
        return logits

    def gradient(self, base: Numbers, residuals: Numbers) -> Floats:
        """Compute the gradient [D + 1, K] of summed losses from residuals [N, K].

        Base [N, D] and residuals are of one precision, in which their product is computed.
        """
        gradient = np.empty((base.shape[1] + 1, residuals.shape[1]))
        gradient[-1] = residuals.sum(axis=0, dtype=np.float64)
        gradient[:-1] = base.T @ residuals
        self.cut.add_to_gradient(gradient[:-1], residuals)
        gradient[:-1] -= self.centre * gradient[-1]
        gradient[:-1] *= self.stretch
        return gradient


class ScaledFolds(NamedTuple):
    """How K fits standardise.

    Attributes
    ----------
    scaling : FoldScaling
        From the base to each fit's features.
    moments : Moments
        Of each fit's training clips, [K, D]; scales of constant features are 1.
    """

    scaling: FoldScaling
    moments: Moments


def scale_folds(base: Base, inside: Masks) -> ScaledFolds:
    """Compare the moments of the training clips of K fits with those of all clips.

    Parameters
    ----------
    base : Base
        Features of all N clips.
    inside : ndarray of bool, shape [N, K]
        The training clips of each fit.
    """
    subset_moments = moments_of_subsets(base.X, inside)
    fold_moments = safe_scale(subset_moments.mean, subset_moments.scale, base.X.dtype)
    mean = base.moments.mean.astype(np.float64)
    scale = base.moments.scale.astype(np.float64)
    # From here on in deviations of all clips, as the base is; [K, D].
    centre = (fold_moments.mean - mean) / scale
    stretch = scale / fold_moments.scale
    cut = _cut_values(base, centre, stretch)
    stretch[is_constant(subset_moments.mean, subset_moments.scale, base.X.dtype)] = 0.0
    scaling = FoldScaling(np.ascontiguousarray(centre.T), np.ascontiguousarray(stretch.T), cut)
    return ScaledFolds(scaling, fold_moments)


def _cut_values(base: Base, centre: Floats, stretch: Floats) -> CutValues:
    """Find the values that the base or some of the fits cut off, where they differ.

    Centre and stretch [K, D] are those of the fits' features, as seen from the base.
    """
    reach = base.limit / stretch
    low = centre - reach
    high = centre + reach
    rows, columns = base.cut_between(low.max(axis=0), high.min(axis=0))
    mean = base.moments.mean.astype(np.float64)
    scale = base.moments.scale.astype(np.float64)
    # What the base would hold without its own limit, [E]; cut off where each fit cuts off, [K, E].
    uncut = (base.X[rows, columns] - mean[columns]) / scale[columns]
    cut_by_fit = np.clip(uncut, low[:, columns], high[:, columns])
    change = np.ascontiguousarray((cut_by_fit - base.wide[rows, columns]).T)
    return CutValues.of(rows, columns, change, base.X.shape[1])


def dot_columns(left: Numbers, right: Numbers) -> Any:
    """Multiply two matrices [D, K] number by number, and add up each column: [K]."""
    return np.einsum("dk,dk->k", left, right)
