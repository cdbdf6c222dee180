"""Standardise the same clips for many fits at once: each fit by the moments of its own training clips.

All fits read one matrix, the shared features: the features standardised by the moments of *all* clips. A
fit's own standardisation differs from it by a shift and a factor for each feature, which are applied to the
fit's weights instead. It also clips values at other limits: the few values that differ for this reason are
listed (`LimitCorrections`), and logits and gradients are corrected for them.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from obygaze_models.models.scaling import (
    MeanAndScale,
    as_mean_and_scale,
    is_constant,
    mean_and_scale,
    mean_and_scale_of_subsets,
    standardise,
)

Floats = NDArray[np.float64]
Numbers = NDArray[np.floating[Any]]
"""Of float32 on the way to a minimum, of float64 at its end."""
Masks = NDArray[np.bool_]


class SharedFeatures:
    """Features of all clips, standardised by the moments of all clips and clipped at a limit.

    Parameters
    ----------
    X : ndarray, shape [N, D]
        Finite features.
    limit : float
        Number of deviations at which standardised features are clipped.

    Attributes
    ----------
    mean_and_scale : MeanAndScale
        Of all clips, [D].
    float64 : ndarray, shape [N, D]
        The standardised features in double precision.
    float32 : ndarray, shape [N, D]
        The same in single precision, which is enough for the first steps of a fit.
    """

    def __init__(self, X: NDArray[np.floating[Any]], limit: float) -> None:
        """Standardise features X [N, D] by all clips, clip them at `limit` deviations, and keep them.

        The fits on all subsets of the clips use them. Most of their steps are in single precision, which is
        faster, and the last ones in double precision.
        """
        self.X = X
        self.limit = limit
        self.mean_and_scale = mean_and_scale(X)
        mean, scale = self.mean_and_scale
        self.float64: Floats = np.empty(X.shape)
        standardise(X, mean, scale, limit, out=self.float64)
        self.float32 = self.float64.astype(np.float32)

    def find_beyond(self, low: Floats, high: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Find the values that would differ if features were clipped at `low` and `high` instead.

        A fit that standardises by other moments clips at other limits. At present the features are clipped at
        ``-limit`` and ``limit``. Two kinds of values may differ:

        - values beyond the other limits, which would be clipped at these;
        - values that are clipped now: wider limits would clip them less, or not at all.

        Parameters
        ----------
        low, high : ndarray, shape [D]
            The other limits of each feature, as values of the shared features.

        Returns
        -------
        rows, columns : ndarray of int
            Positions of these values in the shared features.
        """
        # A value that is clipped now is equal to `-limit` or `limit`. Of both ranges, the values that lie
        # within, and not at an end of either, are clipped by neither: all others may change.
        common_low = np.maximum(low, -self.limit)
        common_high = np.minimum(high, self.limit)
        may_change = (self.float64 <= common_low) | (self.float64 >= common_high)
        rows, columns = np.nonzero(may_change)
        return rows, columns


@dataclass(frozen=True, eq=False)
class LimitCorrections:
    """The E shared values that differ from those of some of K fits, as the fits clip at other limits.

    Attributes
    ----------
    rows, columns : ndarray of int, shape [E]
        Positions of the values in the shared features, sorted by row.
    change : ndarray, shape [E, K]
        The fit's value less the shared value.
    changed_rows : ndarray of int, shape [R]
        The rows of the shared features that have any such value.
    sum_by_row : csr_array, shape [R, E]
        Multiplied by numbers [E, K], it sums those of each changed row.
    sum_by_column : csr_array, shape [D, E]
        Multiplied by numbers [E, K], it sums those of each column.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    change: Floats
    changed_rows: NDArray[np.intp]
    sum_by_row: csr_array
    sum_by_column: csr_array

    @classmethod
    def from_positions(
        cls, rows: NDArray[np.intp], columns: NDArray[np.intp], change: Floats, n_features: int
    ) -> "LimitCorrections":
        """Make the corrections of shared features for K fits, from the values that differ and their changes.

        All fits share one array of features, which are clipped at some limits. A fit that standardises by
        other moments would clip at other limits: a few values of the array are then not as it needs them, and
        what is computed from the array is corrected by them. Logits are sums over features, and gradients
        sums over clips: so corrections are summed by row (clip) and by column (feature).

        Parameters
        ----------
        rows, columns : ndarray of int, shape [E]
            Positions of the values in the shared features, sorted by row.
        change : ndarray, shape [E, K]
            Each fit's value less the shared value.
        n_features : int
            Number of columns of the shared features.
        """
        # `place_of_row` [E] is the place of each value's row in `changed_rows`, which lists every row once.
        changed_rows, place_of_row = np.unique(rows, return_inverse=True)
        return cls(
            rows=rows,
            columns=columns,
            change=change,
            changed_rows=changed_rows,
            sum_by_row=_indicator_matrix(place_of_row, len(changed_rows)),
            sum_by_column=_indicator_matrix(columns, n_features),
        )

    def add_to_logits(self, logits: Numbers, weights: Floats) -> None:
        """Correct the logits [N, K] of K fits, in place, for values that the fits clip at other limits.

        The logits were computed from the shared features, which are the same for all fits and are clipped at
        the same limits. If a fit's value of clip n and feature d differs by c, then its logit of clip n
        differs by c times the weight of feature d. E values differ in some fit: their columns are the
        features d, and `change` is c of each fit. `weights` [D, K] are those of the shared features.
        """
        has_no_corrections = not len(self.rows)
        if has_no_corrections:
            return
        change_of_logit = self.change * weights[self.columns]  # [E, K], by each value
        # Several values of a clip may differ: `sum_by_row` adds up their changes, one row for each such clip.
        logits[self.changed_rows] += self.sum_by_row @ change_of_logit

    def add_to_gradient(self, gradient: Floats, residuals: Numbers) -> None:
        """Correct the gradients [D, K] of K fits, in place, for values that the fits clip at other limits.

        The gradients, by weights, were computed from the shared features, which are the same for all fits. If
        a fit's value of clip n and feature d differs by c, then its derivative by the weight of feature d
        differs by c times the residual of clip n. `residuals` are [N, K].
        """
        has_no_corrections = not len(self.rows)
        if has_no_corrections:
            return
        change_of_derivative = self.change * residuals[self.rows]  # [E, K], by each value
        gradient += self.sum_by_column @ change_of_derivative


def _indicator_matrix(group_of: NDArray[np.intp], n_groups: int) -> csr_array:
    """Make the sparse matrix [n_groups, E] whose product with E values is their sum by group.

    `group_of` [E] is the group of each value: row of the 1 in the value's column.
    """
    n_values = len(group_of)
    ones = np.ones(n_values)
    rows_and_columns = (group_of, np.arange(n_values))
    return csr_array((ones, rows_and_columns), shape=(n_groups, n_values))


@dataclass(frozen=True, eq=False)
class FoldScaling:
    """Conversion of the shared features into the standardised features of each of K fits.

    A fit's feature is ``scale_ratio * (shared value + correction - centre)``.

    Attributes
    ----------
    centre : ndarray, shape [D, K]
        Mean of the shared features over the fit's training clips.
    scale_ratio : ndarray, shape [D, K]
        Deviation of all clips over that of the fit's training clips; 0 for a feature that is constant in
        these.
    corrections : LimitCorrections
        For values that the fit clips at other limits.
    """

    centre: Floats
    scale_ratio: Floats
    corrections: LimitCorrections

    def take(self, fits: NDArray[np.intp]) -> "FoldScaling":
        """Copy the scaling of some of the fits, given their indices."""
        corrections = replace(self.corrections, change=self.corrections.change[:, fits])
        return FoldScaling(self.centre[:, fits], self.scale_ratio[:, fits], corrections)

    def logits(self, features: Numbers, coefficients: Floats) -> Numbers:
        """Compute the logits [N, K] of all clips by K fits.

        Each fit standardises features by its own training clips. They are not computed: a fit's feature is
        scale_ratio * (shared value + correction - centre), and the logit is the sum of weight * feature, plus
        the intercept. With weight_of_shared = weight * scale_ratio, it has three parts::

            sum(weight_of_shared * shared value)
            + (intercept - sum(weight_of_shared * centre))
            + sum(weight_of_shared * correction)

        Parameters
        ----------
        features : ndarray, shape [N, D]
            The shared features, in the precision in which logits are computed.
        coefficients : ndarray, shape [D + 1, K]
            Weights of each fit's own standardised features, and intercepts.
        """
        weights_of_shared = self.scale_ratio * coefficients[:-1]
        # For each fit (a column), the sum over features of centre times weight.
        intercepts = coefficients[-1] - dot_columns(self.centre, weights_of_shared)
        logits: Numbers = features @ weights_of_shared.astype(features.dtype)
        logits += intercepts.astype(features.dtype)
        self.corrections.add_to_logits(logits, weights_of_shared)
        return logits

    def gradient(self, features: Numbers, residuals: Numbers) -> Floats:
        """Compute the gradient [D + 1, K] of the summed losses by coefficients, from residuals [N, K].

        A fit's own feature is scale_ratio * (shared value + correction - centre): the shared value is that of
        `features`, and the correction is of values that the fit clips at another limit. The derivative of the
        loss by a clip's logit is the residual r. The derivative by a weight is therefore, summed over clips::

            sum(r * feature) = scale_ratio * (sum(r * shared value) + sum(r * correction) - centre * sum(r))

        The shared features [N, D] and the residuals have the same precision, in which they are multiplied.
        """
        n_features = features.shape[1]
        n_fits = residuals.shape[1]
        gradient = np.empty((n_features + 1, n_fits))
        sum_of_residuals = residuals.sum(axis=0, dtype=np.float64)  # [K]

        by_weights = gradient[:-1]  # a view, [D, K], which is filled in place
        by_weights[:] = features.T @ residuals
        self.corrections.add_to_gradient(by_weights, residuals)
        by_weights -= self.centre * sum_of_residuals
        by_weights *= self.scale_ratio

        gradient[-1] = sum_of_residuals  # by the intercept
        return gradient


class ScaledFolds(NamedTuple):
    """How K fits standardise features.

    Attributes
    ----------
    scaling : FoldScaling
        Conversion of the shared features into each fit's features.
    mean_and_scale : MeanAndScale
        Of each fit's training clips, [K, D]; scales of constant features are 1.
    """

    scaling: FoldScaling
    mean_and_scale: MeanAndScale


def scale_folds(shared: SharedFeatures, in_training: Masks) -> ScaledFolds:
    """Compute how K fits standardise features by their own training clips, relative to the shared features.

    Shared features are standardised by the mean and scale of all clips. Those of a fit are
    ``scale_ratio * (shared value - centre)``, so that no fit needs a copy of its own; only values that the
    fit clips at other limits need a correction.

    Parameters
    ----------
    shared : SharedFeatures
        Features of all N clips.
    in_training : ndarray of bool, shape [N, K]
        The training clips of each fit.
    """
    dtype = shared.X.dtype
    mean, deviation = mean_and_scale_of_subsets(shared.X, in_training)  # [K, D]
    is_constant_in_fit = is_constant(mean, deviation, dtype)
    # What the fits standardise by; here the scale of a constant feature is 1.
    moments_of_fits = as_mean_and_scale(mean, deviation, dtype)

    mean_of_all = shared.mean_and_scale.mean.astype(np.float64)
    scale_of_all = shared.mean_and_scale.scale.astype(np.float64)
    # The mean of a fit's training clips, standardised as the shared features are.
    centre = (moments_of_fits.mean - mean_of_all) / scale_of_all  # [K, D]
    scale_ratio = scale_of_all / moments_of_fits.scale  # [K, D]
    corrections = _limit_corrections(shared, centre, scale_ratio)

    # The ratio 0 makes a feature 0 that is constant in a fit's training clips, whatever it is in other clips.
    ratio_or_0 = np.where(is_constant_in_fit, 0.0, scale_ratio)
    scaling = FoldScaling(
        centre=np.ascontiguousarray(centre.T),
        scale_ratio=np.ascontiguousarray(ratio_or_0.T),
        corrections=corrections,
    )
    return ScaledFolds(scaling, moments_of_fits)


def _limit_corrections(shared: SharedFeatures, centre: Floats, scale_ratio: Floats) -> LimitCorrections:
    """Find the shared values that some fit clips at another limit, and by how much its value differs.

    In units of the shared features, a fit clips at ``centre - limit / scale_ratio`` and at
    ``centre + limit / scale_ratio``. If all clips are clipped at 5 deviations, a fit with centre 0.5 and
    ratio 2 clips shared values at -2 and 3.

    Parameters
    ----------
    shared : SharedFeatures
    centre, scale_ratio : ndarray, shape [K, D]
        Each fit's feature is ``scale_ratio * (value - centre)``, where the value is the shared one.
    """
    # The limits of each fit, in units of the shared features. [K, D]
    half_range = shared.limit / scale_ratio
    low = centre - half_range
    high = centre + half_range
    # The narrowest range of all fits: values inside it are clipped by none of them.
    highest_low = low.max(axis=0)
    lowest_high = high.min(axis=0)
    rows, columns = shared.find_beyond(low=highest_low, high=lowest_high)

    # Each fit's value at these positions. A shared value may have been clipped already, to a narrower range
    # than the fit's: it is standardised anew, and then clipped as the fit does.
    mean = shared.mean_and_scale.mean.astype(np.float64)
    scale = shared.mean_and_scale.scale.astype(np.float64)
    unclipped = (shared.X[rows, columns] - mean[columns]) / scale[columns]  # [E]
    clipped_by_fit = np.clip(unclipped, low[:, columns], high[:, columns])  # [K, E]
    change = clipped_by_fit - shared.float64[rows, columns]
    return LimitCorrections.from_positions(
        rows, columns, np.ascontiguousarray(change.T), n_features=shared.X.shape[1]
    )


def dot_columns(left: Numbers, right: Numbers) -> Any:
    """Compute the dot product of each pair of columns of two matrices [D, K]: [K]."""
    return np.einsum("dk,dk->k", left, right)
