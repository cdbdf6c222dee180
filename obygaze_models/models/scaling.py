"""Standardise features, by moments of all clips or of subsets of them, and limit the values."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from obygaze_models.models.binary import validated_rows
from obygaze_models.models.parameters import Estimator

CLIP = 5.0
"""Standard deviations to which a standardised feature is limited.

If a feature hardly varies in training, an unusual clip could otherwise have a standardised value of
thousands, and as extreme a score. Measured in docs/evaluation.md.
"""

MAX_LIMIT = 1e6
"""Largest limit. It is wide enough to limit nothing; with larger ones float32 would overflow."""

Limit = Annotated[float, Interval(Real, 0, MAX_LIMIT, closed="right")]

N_ROWS_AT_ONCE = 256
"""Clips that are standardised at a time: their copies in float64 stay in the processor's cache."""

MIN_SHARE_LEFT = 1e-6
"""Least share of a sum of squares that a subtraction must leave for the variance to have enough digits.

A float64 has 16 digits, of which a subtraction that leaves a millionth loses 6. If less is left, the variance
is computed anew from the rows.
"""


class MeanAndScale(NamedTuple):
    """Mean and standard deviation of features.

    Attributes
    ----------
    mean, scale : ndarray, shape [D]
        Or [K, D], of K subsets of the clips. A constant feature's scale is 1.
    """

    mean: NDArray[Any]
    scale: NDArray[Any]


@dataclass(eq=False, repr=False)
class ClippedScaler(OneToOneFeatureMixin, TransformerMixin, Estimator):
    """Standardise features and clip them at a number of standard deviations.

    Parameters
    ----------
    limit : float
        Standardised values are clipped to [-limit, limit].

    Attributes
    ----------
    mean_, scale_ : ndarray, shape [D]
        Moments of the training clips; a constant feature's scale is 1.
    n_features_in_ : int
        D.

    Examples
    --------
    >>> import obygaze_models as om
    >>> om.ClippedScaler(limit=2).fit_transform([[0.0], [1.0], [100.0]]).round(2).tolist()
    [[-0.72], [-0.7], [1.41]]
    """

    limit: Limit = CLIP

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Compute mean and standard deviation of each feature of X [N, D]; y is not used."""
        del y
        self._validate_params()
        features = validate_data(self, X, dtype=(np.float64, np.float32))
        self.mean_, self.scale_ = mean_and_scale(features)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Standardise and clip X [N, D]; in float64, as solvers stop early on float32."""
        check_is_fitted(self)
        features = validated_rows(self, X, np.float64, np.float32)
        scaled = np.empty(features.shape)
        standardise(features, self.mean_, self.scale_, self.limit, out=scaled)
        return scaled


def standardise(
    X: NDArray[np.floating[Any]],
    mean: NDArray[np.floating[Any]],
    scale: NDArray[np.floating[Any]],
    limit: float | None,
    out: NDArray[np.floating[Any]] | None = None,
) -> NDArray[np.floating[Any]]:
    """Standardise features [N, ..., D]: subtract the mean [D], divide by the scale [D], and clip.

    Parameters
    ----------
    X, mean, scale : ndarray
    limit : float or None
        Number of deviations at which values are clipped; None for no limit.
    out : ndarray, optional
        Where the result is written; by default a new array of the common type of X and mean.
    """
    if out is None:
        out = np.empty(X.shape, np.result_type(X, mean))
    for start in range(0, len(X), N_ROWS_AT_ONCE):
        rows = out[start : start + N_ROWS_AT_ONCE]
        np.subtract(X[start : start + N_ROWS_AT_ONCE], mean, out=rows, dtype=out.dtype)
        rows /= scale
        if limit is not None:
            np.clip(rows, -limit, limit, out=rows)
    return out


# --- moments
# ---------------------------------------------------------------------------


def mean_and_scale(X: NDArray[np.floating[Any]]) -> MeanAndScale:
    """Compute mean and standard deviation of each column of X [N, D]; that of a constant column is 1."""
    mean = _column_means(X)
    deviation = np.sqrt(_column_sums(X, mean, power=2) / len(X))
    return as_mean_and_scale(mean, deviation, X.dtype)


def _column_means(X: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Compute the mean of each column of X [N, D]."""
    sums = _column_sums(X, np.zeros(X.shape[1]), power=1)
    return np.asarray(sums / len(X))


def _column_sums(
    X: NDArray[np.floating[Any]], centre: NDArray[np.float64], *, power: int
) -> NDArray[np.float64]:
    """Sum each column of ``(X - centre) ** power``, for power 1 or 2, block by block.

    X is of shape [N, D], `centre` [D]. The result is the same to the bit as that of ``np.add.reduce`` on the
    whole array, which adds one row after the other. To sum each block by itself, and then to add the sums of
    the blocks, would round differently. Here the sum of the blocks before is the first row of each block.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((2 * N_ROWS_AT_ONCE + 1, 3))
    >>> sums = _column_sums(X, np.zeros(3), power=1)
    >>> bool((sums == np.add.reduce(X, axis=0)).all())
    True
    >>> sums_of_squares = _column_sums(X, np.ones(3), power=2)
    >>> bool((sums_of_squares == np.add.reduce((X - 1) ** 2, axis=0)).all())
    True
    """
    sums_and_block = np.zeros((1 + N_ROWS_AT_ONCE, X.shape[1]))
    sums = sums_and_block[0]  # a view of the first row
    for start in range(0, len(X), N_ROWS_AT_ONCE):
        rows = X[start : start + N_ROWS_AT_ONCE]
        block = sums_and_block[1 : 1 + len(rows)]
        np.subtract(rows, centre, out=block)
        if power == 2:
            block *= block
        sums[:] = np.add.reduce(sums_and_block[: 1 + len(rows)], axis=0)
    return np.asarray(sums)


def as_mean_and_scale(
    mean: NDArray[np.float64], deviation: NDArray[np.float64], dtype: np.dtype[Any]
) -> MeanAndScale:
    """Convert means and deviations to the features' data type; the scale of a constant feature becomes 1.

    Means and deviations are of shape [D] or [K, D].
    """
    constant = is_constant(mean, deviation, dtype)
    return MeanAndScale(mean.astype(dtype), np.where(constant, 1.0, deviation).astype(dtype))


def is_constant(
    mean: NDArray[np.float64], scale: NDArray[np.float64], dtype: np.dtype[Any]
) -> NDArray[np.bool_]:
    """Tell which features of type `dtype` are constant, given their means and deviations."""
    # Rounding gives a constant column a deviation of a few units in the last digit, not 0. Dividing by it
    # would inflate the column.
    return np.asarray(scale <= 10 * np.finfo(dtype).eps * np.abs(mean))


def mean_and_scale_of_subsets(X: NDArray[np.floating[Any]], in_subset: NDArray[np.bool_]) -> MeanAndScale:
    """Compute means and standard deviations of K subsets of the rows of X, in one pass over X.

    They equal those of each subset's rows to rounding. The scale of a constant feature is about 0, not 1.

    The variance of a subset is its mean square less the square of its mean. If the two are nearly equal,
    their difference has lost its digits. Moments of such features are computed from the rows of the subset,
    in a second pass.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    in_subset : ndarray of bool, shape [N, K]
        The rows of each subset, one at least.

    Returns
    -------
    MeanAndScale
        Of shape [K, D], in float64.
    """
    # Values are taken relative to the mean of all rows. A subset's mean is then near 0, and the square that
    # is subtracted is small.
    centre = _column_means(X)
    sums, squares = _sums_of_subsets(X, centre, in_subset)
    n_rows = in_subset.sum(axis=0)[:, None]  # [K, 1]
    shift = sums / n_rows  # of a subset's mean from the mean of all rows
    variance = squares / n_rows - shift * shift
    moments = MeanAndScale(centre + shift, np.sqrt(np.maximum(variance, 0.0)))

    has_too_few_digits = variance <= MIN_SHARE_LEFT * shift * shift  # [K, D]
    for subset, columns in enumerate(has_too_few_digits):
        if columns.any():
            rows = X[in_subset[:, subset]][:, columns].astype(np.float64)
            _overwrite_moments(moments, subset, columns, rows)
    return moments


class _Sums(NamedTuple):
    """Sums over several sets of rows: of each column's values less a centre, and of their squares.

    Attributes
    ----------
    sums, squares : ndarray, shape [number of sets, D]
    """

    sums: NDArray[np.float64]
    squares: NDArray[np.float64]


def _sums_of_subsets(
    X: NDArray[np.floating[Any]], centre: NDArray[np.float64], in_subset: NDArray[np.bool_]
) -> _Sums:
    """Sum the columns of X [N, D], less a centre [D], and their squares, over each of K subsets of the rows.

    `in_subset` [N, K] marks the rows of each subset.
    """
    sums = np.zeros((in_subset.shape[1], X.shape[1]))
    squares = np.zeros_like(sums)
    for start in range(0, len(X), N_ROWS_AT_ONCE):
        block = slice(start, start + N_ROWS_AT_ONCE)
        rows = X[block] - centre
        is_in_subset = in_subset[block].T.astype(np.float64)  # [K, rows]
        sums += is_in_subset @ rows
        squares += is_in_subset @ (rows * rows)
    return _Sums(sums, squares)


def _sums_of_groups(
    X: NDArray[np.float64], centre: NDArray[np.float64], groups: Sequence[NDArray[np.intp]]
) -> _Sums:
    """Sum the columns of X [N, D], less a centre [D], and their squares, over each of G groups of rows."""
    sums = np.zeros((len(groups), X.shape[1]))
    squares = np.zeros_like(sums)
    for group, rows in enumerate(groups):
        centred = X[rows] - centre
        sums[group] = centred.sum(axis=0)
        squares[group] = (centred * centred).sum(axis=0)
    return _Sums(sums, squares)


def _overwrite_moments(
    moments: MeanAndScale, subset: int, columns: NDArray[np.bool_], rows: NDArray[np.float64]
) -> None:
    """Replace the moments of one subset in some columns by those of its rows, in place.

    Parameters
    ----------
    moments : MeanAndScale
        Of all K subsets, [K, D].
    subset : int
        Index of the subset.
    columns : ndarray of bool, shape [D]
        Marks the columns.
    rows : ndarray, shape [rows of the subset, marked columns]
    """
    moments.mean[subset, columns] = rows.mean(axis=0)
    moments.scale[subset, columns] = rows.std(axis=0)


def mean_and_scale_without_groups(X: NDArray[np.float64], groups: Sequence[NDArray[np.intp]]) -> MeanAndScale:
    """Compute means and deviations of X [N, D] without each of G groups of rows, in one pass over X.

    The sums of a group are subtracted from those of all rows. Where this cancels nearly all digits, the
    moments are computed from the other rows.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    groups : sequence of ndarray of int
        Rows of each group; no group has all rows.

    Returns
    -------
    MeanAndScale
        Of shape [G, D]; scales of constant features are 1.
    """
    # Sums are of values less the mean of all rows, so that they are small and lose few digits.
    n_rows = len(X)
    centre = _column_means(X)
    sums_of_all = _column_sums(X, centre, power=1)
    squares_of_all = _column_sums(X, centre, power=2)
    sums, squares = _sums_of_groups(X, centre, groups)

    sizes = np.array([len(rows) for rows in groups])
    n_others = (n_rows - sizes)[:, None]  # [G, 1]
    shift = (sums_of_all - sums) / n_others  # of the mean of the other rows from the mean of all rows
    variance = (squares_of_all - squares) / n_others - shift * shift
    moments = MeanAndScale(centre + shift, np.sqrt(np.maximum(variance, 0.0)))

    # If the other rows vary far less than all rows, nearly all of the sum of squares was subtracted, and the
    # difference has lost its digits. A feature that is constant in all rows has none to lose.
    deviation_of_all = np.sqrt(squares_of_all / n_rows)
    varies = ~is_constant(centre, deviation_of_all, X.dtype)
    min_variance = MIN_SHARE_LEFT * squares_of_all / n_rows
    has_too_few_digits = varies & (variance < min_variance)  # [G, D]
    # These moments, of some features without a group, are computed from the other rows themselves.
    for group, columns in enumerate(has_too_few_digits):
        if columns.any():
            others = np.delete(X[:, columns], groups[group], axis=0)
            _overwrite_moments(moments, group, columns, others)
    return as_mean_and_scale(moments.mean, moments.scale, X.dtype)
