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
        """Standardise features X [N, D], and keep them in double and in single precision."""
        self.X = X
        self.limit = limit
        self.moments = moments(X)
        self.wide: Floats = np.empty(X.shape)
        standardise(X, *self.moments, limit, out=self.wide)
        self.narrow = self.wide.astype(np.float32)

    def cut_between(self, low: Floats, high: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Find the rows and columns of values that are outside the limits `low` and `high` [D] or at them.

        Values that the base has clipped stand at its own limit, so limits beyond that are reduced to it.
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
    def from_positions(
        cls, rows: NDArray[np.intp], columns: NDArray[np.intp], change: Floats, n_features: int
    ) -> "CutValues":
        """Make the record of E values of the base, with the matrices that sum them by row and by column.

        Parameters
        ----------
        rows, columns : ndarray of int, shape [E]
            Positions of the values in the base.
        change : ndarray, shape [E, K]
            The difference of each fit's value from the base's.
        n_features : int
            Columns of the base.
        """
        touched_rows, touched_row_of = np.unique(rows, return_inverse=True)
        sum_by_row = _sums_by(touched_row_of, len(touched_rows))
        sum_by_column = _sums_by(columns, n_features)
        return cls(rows, columns, change, touched_rows, sum_by_row, sum_by_column)

    def add_to_logits(self, logits: Numbers, weights: Floats) -> None:
        """Correct logits [N, K] in place for the changed values, given weights of the base [D, K]."""
        if len(self.rows):
            logits[self.touched_rows] += self.sum_by_row @ (self.change * weights[self.columns])

    def add_to_gradient(self, gradient: Floats, residuals: Numbers) -> None:
        """Correct gradients [D, K] in place for the changed values, given residuals [N, K]."""
        if len(self.rows):
            gradient += self.sum_by_column @ (self.change * residuals[self.rows])


def _sums_by(positions: NDArray[np.intp], n: int) -> csr_array:
    """Make the sparse matrix [n, E] that sums E values by group, given the group of each, 0 to n - 1."""
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
        """Copy the scaling of some of the fits, given their indices."""
        cut = replace(self.cut, change=self.cut.change[:, fits])
        return FoldScaling(self.centre[:, fits], self.stretch[:, fits], cut)

    def logits(self, base: Numbers, coefficients: Floats) -> Numbers:
        """Compute the logits [N, K] of all clips by K fits.

        Parameters
        ----------
        base : ndarray, shape [N, D]
            In the precision that logits are computed in.
        coefficients : ndarray, shape [D + 1, K]
            Weights of each fit's own standardised features, and intercepts.
        """
        weights = self.stretch * coefficients[:-1]
        intercepts = coefficients[-1] - dot_columns(self.centre, weights)
        logits: Numbers = base @ weights.astype(base.dtype)
        logits += intercepts.astype(base.dtype)
        self.cut.add_to_logits(logits, weights)
        return logits

    def gradient(self, base: Numbers, residuals: Numbers) -> Floats:
        """Compute the gradient [D + 1, K] of the summed losses by coefficients, from residuals [N, K].

        The base [N, D] and the residuals have the same precision, in which their product is computed.
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
    """Compute how K fits standardise their features, relative to a base of all clips.

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
    # In units of the base, which is standardised by all clips; [K, D].
    centre = (fold_moments.mean - mean) / scale
    stretch = scale / fold_moments.scale
    cut = _cut_values(base, centre, stretch)
    stretch[is_constant(subset_moments.mean, subset_moments.scale, base.X.dtype)] = 0.0
    scaling = FoldScaling(np.ascontiguousarray(centre.T), np.ascontiguousarray(stretch.T), cut)
    return ScaledFolds(scaling, fold_moments)


def _cut_values(base: Base, centre: Floats, stretch: Floats) -> CutValues:
    """Find the values of the base for which some fit has another value, since it clips at other limits.

    Parameters
    ----------
    base : Base
    centre, stretch : ndarray, shape [K, D]
        Each fit's feature is ``stretch * (value - centre)`` of the base's value.
    """
    half_range = base.limit / stretch
    low = centre - half_range
    high = centre + half_range
    rows, columns = base.cut_between(low.max(axis=0), high.min(axis=0))
    mean = base.moments.mean.astype(np.float64)
    scale = base.moments.scale.astype(np.float64)
    # The base's values without its own limit, [E], and clipped at each fit's limits, [K, E].
    uncut = (base.X[rows, columns] - mean[columns]) / scale[columns]
    cut_by_fit = np.clip(uncut, low[:, columns], high[:, columns])
    change = np.ascontiguousarray((cut_by_fit - base.wide[rows, columns]).T)
    return CutValues.from_positions(rows, columns, change, base.X.shape[1])


def dot_columns(left: Numbers, right: Numbers) -> Any:
    """Compute the dot product of each pair of columns of two matrices [D, K]: [K]."""
    return np.einsum("dk,dk->k", left, right)
