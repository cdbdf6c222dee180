"""Test whether features encode a concept, by circular shifts of its presence within movies.

Statistic: the covariance, within movies, of the concept's presence with a held-out projection,

    T = sum over clips of z * s,

where z is the presence less its movie's mean, and s the clip's projection on the ridge CAV of z fitted on the
other movies. Features lose each movie's mean, so nothing that tells movies apart counts, and the straight
line through its clips: where features and presence both drift through a film, or change slowly, the line is
what they share by chance. T is linear in s and s in z: T = z' A z with one matrix A for all draws and
concepts, by the closed form of ridge regression without a group.

How large T gets by chance is read from draws that shift a movie's presences by some number of clips, its end
going to its beginning. Neighbouring clips resemble each other, in labels as in features: exchanging clips
freely would destroy that in the labels, and call unrelated features significant in one of five tests. A
shift keeps the order but for one cut per movie (Harris 2020, arXiv 2012.06862, on tests by shifts). It
assumes that features are about stationary within a movie, but for the line; `benchmarks/planted/scores.py`
measures what long memory and drift do.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.signal import detrend
from scipy.stats import rankdata

from obygaze_features.arguments import checked
from obygaze_models.blas import one_blas_thread
from obygaze_models.errors import ConceptError
from obygaze_models.evaluation.paired_tests import holm

SHIFTS_AT_ONCE = 250
"""Draws computed at a time, so that memory stays small."""


@dataclass(frozen=True, eq=False, slots=True)
class Significance:
    """Results of the test for K concepts.

    Attributes
    ----------
    statistic : ndarray, shape [K]
        T; about 0 for a concept that is not in the features.
    p : ndarray, shape [K]
        Share of the draws, the presences as they are among them, whose T is no smaller; at least 1 / (n + 1).
    p_holm : ndarray, shape [K]
        The same adjusted for K concepts.
    lag1 : ndarray, shape [K]
        Correlation of a clip's presence with the next clip's, within movies: near 0, clips could have been
        exchanged freely; the larger, the fewer clips the test is worth.
    n_permutations : int
    """

    statistic: NDArray[np.float64]
    p: NDArray[np.float64]
    p_holm: NDArray[np.float64]
    lag1: NDArray[np.float64]
    n_permutations: int


@checked
def permutation_pvalues(
    X: ArrayLike, present: ArrayLike, movies: ArrayLike, *, n_permutations: int = 1000, seed: int = 0
) -> Significance:
    """Test for each of K concepts whether features predict it within movies, beside the place in the movie.

    The clips of a movie must be in the order of the film, as they are in a manifest; other movies' clips may
    stand between them. A concept's result depends neither on the other concepts (Holm's adjustment apart)
    nor on threads.

    Parameters
    ----------
    X : array-like, shape [N, D]
    present : array-like, shape [N, K]
        1 with the concept, 0 without, NaN for a clip that is not used for it.
    movies : array-like, shape [N]
    n_permutations : int
    seed : int

    Raises
    ------
    ConceptError
        Fewer than two movies have clips with and without a concept.
    """
    features = np.asarray(X, dtype=np.float64)
    labels = np.asarray(present, dtype=np.float64)
    groups = np.unique(np.asarray(movies), return_inverse=True)[1]
    statistic, p, lag1 = np.empty((3, labels.shape[1]))
    # Concepts that use the same clips share all but their labels.
    patterns, pattern_of = np.unique(~np.isnan(labels), axis=1, return_inverse=True)
    with one_blas_thread():
        for number, used in enumerate(patterns.T):
            which = np.flatnonzero(pattern_of == number)
            presence = centred_within(labels[np.ix_(used, which)], groups[used])
            for concept, column in zip(which, presence.T, strict=True):
                n_mixed = np.unique(groups[used][np.abs(column) > 1e-12]).size
                if n_mixed < 2:
                    raise ConceptError(
                        f"concept {concept} varies within {n_mixed} movies: shifts within "
                        "movies need at least 2 movies that have clips with it and clips without it"
                    )
            operator = leave_movie_out_operator(features[used], groups[used])
            orders = circular_shifts(groups[used], n_permutations, np.random.default_rng(seed))
            lag1[which] = lag_correlation(presence, groups[used])
            for concept, z in zip(which, np.ascontiguousarray(presence.T), strict=True):
                statistic[concept], p[concept] = _test(operator, z, orders)
    return Significance(statistic, p, holm(p), lag1, n_permutations)


def leave_movie_out_operator(X: NDArray[np.float64], groups: NDArray[np.intp]) -> NDArray[np.float64]:
    """Make the matrix A [N, N] that takes centred presences to held-out ridge projections.

    With H = X inv(X'X + l I) X' of the features without each movie's mean and linear trend, l their mean
    variance (trace over the number of directions), the rows of movie
    g are ``inv(I - H_gg) H_g.`` with their own movie's columns 0: the closed form of refitting without g.
    """
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    level = np.empty_like(X)
    for rows in members:
        level[rows] = detrend(X[rows], axis=0)
    n_clips, n_features = level.shape
    ridge = float(np.sum(level * level)) / min(n_clips, n_features)
    if ridge <= 0:
        raise ConceptError("the features are constant in every movie: nothing can be read from them")
    # Of the two ways to write H, the one that factors the smaller matrix.
    if n_features < n_clips:
        moments = level.T @ level + ridge * np.eye(n_features)
        hat = level @ linalg.solve(moments, level.T, assume_a="pos")
    else:
        gram = level @ level.T
        hat = linalg.solve(gram + ridge * np.eye(n_clips), gram, assume_a="pos")
    operator = np.empty_like(hat)
    for rows in members:
        own = hat[np.ix_(rows, rows)]
        operator[rows] = linalg.solve(np.eye(rows.size) - own, hat[rows], assume_a="pos")
        operator[np.ix_(rows, rows)] = 0.0
    return operator


def _test(
    operator: NDArray[np.float64], z: NDArray[np.float64], orders: NDArray[np.int32]
) -> tuple[float, float]:
    """Give T of the presences z [N], and the share of reordered ones [n, N], and of z, that reach it."""
    observed = float(z @ operator @ z)
    reached = 1
    # Rounding parts values that are equal in truth; a shift that changes nothing must count.
    least = observed - 1e-9 * float(np.abs(z) @ np.abs(operator) @ np.abs(z))
    for start in range(0, len(orders), SHIFTS_AT_ONCE):
        drawn = z[orders[start : start + SHIFTS_AT_ONCE]]
        reached += int(np.count_nonzero(np.einsum("pn,pn->p", drawn @ operator, drawn) >= least))
    return observed, reached / (len(orders) + 1)


def circular_shifts(groups: NDArray[np.intp], n: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw n orders of clips [n, N]: each group shifted by a number of its clips, in a circle."""
    orders = np.empty((n, len(groups)), np.int32)
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        shift = rng.integers(rows.size, size=(n, 1))
        orders[:, rows] = rows[(np.arange(rows.size) + shift) % rows.size]
    return orders


def lag_correlation(centred: NDArray[np.float64], groups: NDArray[np.intp]) -> NDArray[np.float64]:
    """Correlate values [N, K], centred within groups, with those of the next clip in the same group [K].

    The sum of the products of pairs over that of squares, each over its number; NaN where nothing varies.
    """
    total, pairs = np.zeros(centred.shape[1]), 0
    for group in np.unique(groups):
        own = centred[groups == group]
        total += np.sum(own[1:] * own[:-1], axis=0)
        pairs += len(own) - 1
    squares = np.mean(centred * centred, axis=0)
    correlation = np.full(centred.shape[1], np.nan)
    np.divide(total / max(pairs, 1), squares, out=correlation, where=squares > 0)
    return correlation


def centred_within(values: NDArray[np.float64], groups: NDArray[np.intp]) -> NDArray[np.float64]:
    """Subtract from each row of values [N, M] the mean of its group."""
    names, number = np.unique(groups, return_inverse=True)
    sums = np.zeros((names.size, values.shape[1]))
    np.add.at(sums, number, values)
    return values - (sums / np.bincount(number)[:, None])[number]


# --- units without labels
# ---------------------------------------------------------------------------
N_SHIFTS = 199


Association = tuple[NDArray[np.float64], NDArray[np.float64]]
"""AUC of units for concepts by film [M, H, K], and p [H, K]."""


def associate(
    values: NDArray[np.floating], present: NDArray[np.bool_], movies: NDArray[np.str_], *, seed: int = 0
) -> Association:
    """Compare units' activations with concepts, film by film.

    Units are ranked within films, and the largest deviation of a mean AUC from .5 is compared with that of
    labels shifted in a circle within each film, which keeps their course: of rare units tests of each, times
    their number, find too many.

    Parameters
    ----------
    values : ndarray, shape [N, H]
        The largest activation in each clip; a film's clips in the order of time.
    present : ndarray of bool, shape [N, K]
    movies : ndarray, shape [N]
    seed : int
        Of the shifts.

    Returns
    -------
    auc : ndarray, shape [M, H, K]
        By film, NaN where a film has no clips with, or none without the concept.
    p : ndarray, shape [H, K]
        Share of shifts of the labels in which some unit's mean AUC lies as far from .5 for some concept:
        corrected for the number of units and of concepts.
    """
    films = [np.flatnonzero(movies == movie) for movie in np.unique(movies)]
    ranks = [rankdata(values[rows], axis=0).astype(np.float32).T for rows in films]

    def areas(labels: NDArray[np.bool_]) -> NDArray[np.float64]:
        found = np.full((len(films), values.shape[1], labels.shape[1]), np.nan)
        for film, rows in enumerate(films):
            own = labels[rows].astype(np.float32)
            n, n_with = len(rows), own.sum(axis=0)
            kept = (n_with > 0) & (n_with < n)
            with_, without = n_with[kept], n - n_with[kept]
            found[film][:, kept] = (ranks[film] @ own[:, kept] - with_ * (with_ + 1) / 2) / (with_ * without)
        return found

    def mean(found: NDArray[np.float64]) -> NDArray[np.float64]:
        n = (~np.isnan(found)).sum(axis=0)
        return np.asarray(np.abs(np.nansum(found, axis=0) / np.maximum(n, 1) - 0.5 * (n > 0)))

    auc = areas(present)
    codes = np.unique(movies, return_inverse=True)[1]
    orders = circular_shifts(codes, N_SHIFTS, np.random.default_rng(seed))
    largest = np.array([mean(areas(present[order])).max(initial=0) for order in orders])
    reached = (largest[:, None, None] >= mean(auc) - 1e-9).sum(axis=0)
    return auc, (1 + reached) / (1 + N_SHIFTS)
