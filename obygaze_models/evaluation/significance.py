"""Test whether features encode a concept, by circular shifts of its presence within movies.

Statistic: the covariance, within movies, of the concept's presence with a held-out projection,

    T = sum over clips of z * s,

where z is the presence less its movie's mean, and s the clip's projection on the ridge CAV of z fitted on the
other movies. From the features each movie's mean is subtracted, so that nothing that tells movies apart
counts, and the straight line through its clips: where features and presence both drift through a film, or
change slowly, they share this line by chance. T is linear in s and s is linear in z, so that T = z' A z with
one matrix A for all draws and concepts, by the closed form of ridge regression without a group.

How large T gets by chance is measured with draws that shift a movie's presences by some number of clips, in a
circle. Neighbouring clips resemble each other, in labels as in features: exchanging clips freely would
destroy this in the labels, and call unrelated features significant in one of five tests. A shift keeps the
order except for one cut in each movie (Harris 2020, arXiv 2012.06862, on tests by shifts). It assumes that
features are about stationary within a movie, except for the line; `benchmarks/planted/scores.py` measures
what long memory and drift do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.signal import detrend
from scipy.stats import rankdata

from obygaze_features.arguments import checked
from obygaze_features.text import counted
from obygaze_models.blas import one_blas_thread
from obygaze_models.errors import ConceptError
from obygaze_models.evaluation.paired_tests import holm

SHIFTS_AT_ONCE = 250
"""Draws computed at a time, so that memory stays small."""

ROUNDING = 1e-9
"""Relative difference below which two statistics count as equal: it is from rounding alone.

A shift that changes nothing must count as a draw that is at least as large."""

ROUNDING_OF_PRESENCE = 1e-12
"""A centred presence whose absolute value is at most this is 0 but for rounding.

Then all clips of its movie have the concept, or none has."""


@dataclass(frozen=True, eq=False, slots=True)
class Significance:
    """Results of the test for K concepts.

    Attributes
    ----------
    statistic : ndarray, shape [K]
        T; about 0 for a concept that is not in the features.
    p : ndarray, shape [K]
        Share of draws whose T is at least as large as observed. The unshifted presences count as one of the
        draws, so that with n shifts p is at least 1 / (n + 1).
    p_holm : ndarray, shape [K]
        p adjusted for K concepts by Holm's method.
    lag1 : ndarray, shape [K]
        Correlation of a clip's presence with the next clip's, within movies. Near 0, clips are about
        independent; the larger it is, the fewer independent clips the test is based on.
    n_permutations : int
        Number of draws.
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
    """Test for each of K concepts whether the features encode it within movies, by circular shifts of labels.

    The clips of a movie must be in the order of the film, as they are in a manifest; clips of other movies
    may be between them. Apart from Holm's adjustment, a concept's result does not depend on the other
    concepts. It does not depend on the number of threads either.

    Parameters
    ----------
    X : array-like, shape [N, D]
    present : array-like, shape [N, K]
        1 for clips with the concept, 0 for clips without; NaN for clips that are not used for this concept.
    movies : array-like, shape [N]
    n_permutations : int
    seed : int

    Returns
    -------
    Significance
        The statistic T of each concept, its p, and the autocorrelation of its labels.

    Raises
    ------
    ConceptError
        Fewer than two movies have clips with and without a concept.
    """
    features = np.asarray(X, dtype=np.float64)
    labels = np.asarray(present, dtype=np.float64)
    movie_of_clip = np.unique(np.asarray(movies), return_inverse=True)[1]
    n_concepts = labels.shape[1]
    statistic = np.empty(n_concepts)
    p = np.empty(n_concepts)
    lag1 = np.empty(n_concepts)
    with one_blas_thread():
        # Concepts that are labelled on the same clips have one matrix of predictions, and the same shifts.
        for concepts, clips in _concepts_by_clips(labels):
            movie_of = movie_of_clip[clips]
            presence = centred_within(labels[np.ix_(clips, concepts)], movie_of)  # [clips, concepts]
            _refuse_unmixed(concepts, presence, movie_of)
            lag1[concepts] = lag_correlation(presence, movie_of)
            operator = leave_movie_out_operator(features[clips], movie_of)
            # Always with the same seed, so that a concept's result does not depend on other concepts.
            orders = circular_shifts(movie_of, n_permutations, np.random.default_rng(seed))
            for column, concept in enumerate(concepts):
                presence_of_concept = np.ascontiguousarray(presence[:, column])
                test = _shift_test(operator, presence_of_concept, orders)
                statistic[concept] = test.statistic
                p[concept] = test.p
    return Significance(statistic, p, holm(p), lag1, n_permutations)


def _concepts_by_clips(labels: NDArray[np.float64]) -> list[tuple[NDArray[np.intp], NDArray[np.bool_]]]:
    """Group the concepts that are labelled on the same clips, as these can share the matrix of the test.

    `labels` [N, K] are NaN where a clip is not labelled for a concept.

    Returns
    -------
    list of (ndarray of int, ndarray of bool, shape [N])
        The concepts of each group, and a mask of their clips.
    """
    is_labelled = ~np.isnan(labels)
    masks, group_of_concept = np.unique(is_labelled, axis=1, return_inverse=True)  # masks: [N, groups]
    groups = []
    for group, clips in enumerate(masks.T):
        concepts = np.flatnonzero(group_of_concept == group)
        groups.append((concepts, clips))
    return groups


def _refuse_unmixed(
    concepts: NDArray[np.intp], presence: NDArray[np.float64], movies: NDArray[np.intp]
) -> None:
    """Raise if one of the concepts varies within fewer than two movies, so that no shift can test it.

    A movie in which all clips have the concept, or none, is the same under every shift. Of the others there
    must be two: one to learn from, and one to be predicted.

    Parameters
    ----------
    concepts : ndarray of int, shape [K]
        Numbers of the concepts, for the message.
    presence : ndarray, shape [N, K]
        Presence of each concept less the mean of the clip's movie.
    movies : ndarray of int, shape [N]
    """
    for concept, presence_of_concept in zip(concepts, presence.T, strict=True):
        # In a movie in which the concept does not vary, each clip's presence is the mean: it differs by 0.
        differs_from_mean = np.abs(presence_of_concept) > ROUNDING_OF_PRESENCE
        n_mixed = np.unique(movies[differs_from_mean]).size
        if n_mixed < 2:
            raise ConceptError(
                f"concept {concept} varies within {counted(n_mixed, 'movie')}: shifts within "
                "movies need at least 2 movies that have clips with it and clips without it"
            )


def leave_movie_out_operator(X: NDArray[np.float64], groups: NDArray[np.intp]) -> NDArray[np.float64]:
    """Compute the matrix A [N, N] of leave-one-movie-out predictions: A @ z predicts labels z [N].

    The labels of each movie are predicted by ridge regression on the other movies. The labels must be centred
    within movies. From the features, the mean and the linear trend of each movie are removed: features and
    labels that drift slowly through a film share a trend by chance.

    The regression is fitted only once, on all movies. The symbols are:

    - H: its hat matrix, so that H z are its predictions;
    - g: the clips of one movie, and o: the clips of all others;
    - p: the predictions for g by the regression on o, which are wanted.

    If the labels z_g were p, then the regression on o would also be the best one on all movies, since it fits
    g without error. Its predictions for g, which are p, are therefore H_gg p + H_go z_o, so that::

        p = inv(I - H_gg) H_go z_o

    Parameters
    ----------
    X : ndarray, shape [N, D]
    groups : ndarray of int, shape [N]
        The movie of each clip; a movie's clips must be in the order of the film.
    """
    rows_of_movies = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    detrended = np.empty_like(X)
    for rows in rows_of_movies:
        detrended[rows] = detrend(X[rows], axis=0)

    hat = _ridge_hat_matrix(detrended)
    operator = np.empty_like(hat)
    for rows in rows_of_movies:
        within_movie = np.ix_(rows, rows)
        identity_less_hat = np.eye(rows.size) - hat[within_movie]  # I - H_gg
        operator[rows] = linalg.solve(identity_less_hat, hat[rows], assume_a="pos")
        # The predictions do not depend on the labels of the movie itself.
        operator[within_movie] = 0.0
    return operator


def _ridge_hat_matrix(Z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the hat matrix H [N, N] of ridge regression on features Z [N, D]: H z are the fitted values.

    With the penalty l there are two equal forms::

        H = Z inv(Z' Z + l I) Z' = inv(Z Z' + l I) Z Z'

    The first solves a system of D equations, the second one of N: the smaller system is solved. The penalty
    is the mean of the min(N, D) largest eigenvalues of Z' Z, which are all but those that are always 0.
    """
    n_clips, n_features = Z.shape
    penalty = float(np.sum(Z * Z)) / min(n_clips, n_features)
    if penalty <= 0:
        raise ConceptError("the features are constant in every movie: nothing can be read from them")
    if n_features < n_clips:
        products_of_features = Z.T @ Z
        penalised = products_of_features + penalty * np.eye(n_features)
        return np.asarray(Z @ linalg.solve(penalised, Z.T, assume_a="pos"))
    products_of_clips = Z @ Z.T
    penalised = products_of_clips + penalty * np.eye(n_clips)
    return np.asarray(linalg.solve(penalised, products_of_clips, assume_a="pos"))


class _ShiftTest(NamedTuple):
    """The statistic T of a concept, and its p-value under shifts."""

    statistic: float
    p: float


def _shift_test(
    operator: NDArray[np.float64], presence: NDArray[np.float64], orders: NDArray[np.int32]
) -> _ShiftTest:
    """Compute the statistic T = z' A z of a concept, and its p-value under shifts.

    p is the share of draws with a statistic at least as large as observed. A statistic that is smaller by
    rounding alone counts as equal; rounding grows with the sum of the absolute values of the terms of T.

    Parameters
    ----------
    operator : ndarray, shape [N, N]
        The matrix A of `leave_movie_out_operator`.
    presence : ndarray, shape [N]
        The vector z: the concept's presence less the mean of each clip's movie.
    orders : ndarray of int, shape [n, N]
        Orders of the clips under n shifts.
    """
    observed = float(presence @ operator @ presence)
    sum_of_absolute_terms = float(np.abs(presence) @ np.abs(operator) @ np.abs(presence))
    min_statistic = observed - ROUNDING * sum_of_absolute_terms
    n_as_large = 1  # the unshifted labels count as one of the draws
    for start in range(0, len(orders), SHIFTS_AT_ONCE):
        shifted = presence[orders[start : start + SHIFTS_AT_ONCE]]  # [shifts, N]
        # z' A z of each row z: the row sums of (z' A) * z.
        statistics = np.einsum("pn,pn->p", shifted @ operator, shifted)
        n_as_large += int(np.count_nonzero(statistics >= min_statistic))
    return _ShiftTest(observed, n_as_large / (len(orders) + 1))


def circular_shifts(groups: NDArray[np.intp], n: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw n random orders of clips, in each of which the clips of every group are shifted in a circle.

    Labels in such orders keep how alike neighbouring clips are, but lose what they have to do with features.

    Parameters
    ----------
    groups : ndarray of int, shape [N]
        The group of each clip, within which it is shifted: its movie.
    n : int
        Number of orders.
    rng : Generator

    Returns
    -------
    ndarray of int, shape [n, N]
        Indices of clips. Each group has a shift of its own, from 0 to the number of its clips less 1.
    """
    orders = np.empty((n, len(groups)), np.int32)
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        shifts = rng.integers(rows.size, size=(n, 1))
        shifted_places = (np.arange(rows.size) + shifts) % rows.size  # [n, clips of the group]
        orders[:, rows] = rows[shifted_places]
    return orders


def lag_correlation(centred: NDArray[np.float64], groups: NDArray[np.intp]) -> NDArray[np.float64]:
    """Compute the lag-1 autocorrelation of each column of values within groups of clips, [K].

    It is the mean product of the values of neighbouring clips divided by the mean square of all values: near
    1 if neighbours are alike, about 0 if they are independent, and NaN for a column that does not vary.

    Parameters
    ----------
    centred : ndarray, shape [N, K]
        Values less their group's mean, in the order of time.
    groups : ndarray of int, shape [N]
    """
    n_columns = centred.shape[1]
    sum_of_products = np.zeros(n_columns)
    n_neighbours = 0
    for group in np.unique(groups):
        values = centred[groups == group]
        sum_of_products += np.sum(values[1:] * values[:-1], axis=0)
        n_neighbours += len(values) - 1

    mean_product = sum_of_products / max(n_neighbours, 1)
    mean_square = np.mean(centred * centred, axis=0)
    correlation = np.full(n_columns, np.nan)
    np.divide(mean_product, mean_square, out=correlation, where=mean_square > 0)
    return correlation


def centred_within(values: NDArray[np.float64], groups: NDArray[np.intp]) -> NDArray[np.float64]:
    """Subtract from each row of values [N, M] the mean of its group."""
    names, group_of_row = np.unique(groups, return_inverse=True)
    sums = np.zeros((names.size, values.shape[1]))
    np.add.at(sums, group_of_row, values)
    means = sums / np.bincount(group_of_row)[:, None]
    return values - means[group_of_row]


# --- units without labels
# ---------------------------------------------------------------------------
N_SHIFTS = 199
"""Shifts of labels that units are compared with."""


class Association(NamedTuple):
    """How well H units separate clips with K concepts from those without, in M films.

    Attributes
    ----------
    auc : ndarray, shape [M, H, K]
        AUC in each film; NaN where undefined.
    p : ndarray, shape [H, K]
        p of the mean over films, corrected for all units and concepts.
    """

    auc: NDArray[np.float64]
    p: NDArray[np.float64]


def associate(
    values: NDArray[np.floating], present: NDArray[np.bool_], movies: NDArray[np.str_], *, seed: int = 0
) -> Association:
    """Compute how well units of a dictionary separate clips with and without concepts, and test it by shifts.

    Units are the directions that were learnt without labels (`learn_dictionary`). The AUC of each unit for
    each concept is computed within films, and averaged over films. How far it is from .5 is compared with
    what shifts of the presences of concepts give by chance: under each shift, the farthest of all units and
    concepts counts, which corrects for their number (a max-statistic permutation test). Separate tests of
    units, adjusted for their number, call too many rare units significant.

    Parameters
    ----------
    values : ndarray, shape [N, H]
        The largest activation of each unit in each clip; a film's clips in the order of time.
    present : ndarray of bool, shape [N, K]
    movies : ndarray, shape [N]
    seed : int
        Seed of the shifts.

    Returns
    -------
    Association
        The AUC is NaN where a film has no clips with the concept, or none without it. p is the share of
        shifts in which the mean AUC of any unit for any concept lies as far from .5.
    """
    film_names, film_of_clip = np.unique(movies, return_inverse=True)
    films = [np.flatnonzero(movies == name) for name in film_names]  # rows of each film's clips
    # Shifts exchange labels and leave activations as they are, so that clips are ranked only once.
    ranks_of_films = []
    for rows in films:
        ranks = rankdata(values[rows], axis=0).astype(np.float32)
        ranks_of_films.append(ranks.T)  # [H, clips of the film]

    auc = _aucs_by_film(ranks_of_films, films, present)
    observed = _deviations_from_chance(auc)  # of the mean over films, [H, K]
    n_shifts_as_far = np.ones(observed.shape, np.int64)  # the unshifted labels count as one of the shifts
    for order in circular_shifts(film_of_clip, N_SHIFTS, np.random.default_rng(seed)):
        auc_of_shift = _aucs_by_film(ranks_of_films, films, present[order])
        farthest_of_shift = _deviations_from_chance(auc_of_shift).max(initial=0)  # of all units and concepts
        n_shifts_as_far += farthest_of_shift >= observed - ROUNDING
    return Association(auc, n_shifts_as_far / (1 + N_SHIFTS))


def _aucs_by_film(
    ranks: Sequence[NDArray[np.float32]], films: Sequence[NDArray[np.intp]], present: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Compute the AUC of each unit for each concept in each film, [M, H, K]; NaN if a film has one class.

    The sum of the positive clips' ranks, less the least that it can be, 1 + 2 + ... + n, is the number of
    pairs of a positive and a negative clip that are in the right order. The AUC is this number divided by
    that of all pairs.

    Parameters
    ----------
    ranks : sequence of ndarray, shape [H, clips]
        For each film, the ranks of its clips by each unit.
    films : sequence of ndarray of int
        Rows of each film's clips.
    present : ndarray of bool, shape [N, K]
        Whether each clip has each concept.
    """
    aucs = []
    for ranks_in_film, rows in zip(ranks, films, strict=True):
        is_positive = present[rows].astype(np.float32)  # 1 or 0, [clips, K]
        n_units, n_clips = ranks_in_film.shape
        n_with_concept = is_positive.sum(axis=0)
        has_both_classes = (n_with_concept > 0) & (n_with_concept < n_clips)  # [K]
        # From here on, of the concepts with both classes only.
        n_positive = n_with_concept[has_both_classes]
        n_negative = n_clips - n_positive
        rank_sums = ranks_in_film @ is_positive[:, has_both_classes]  # [H, concepts]
        min_rank_sums = n_positive * (n_positive + 1) / 2
        aucs_of_film = np.full((n_units, present.shape[1]), np.nan)
        aucs_of_film[:, has_both_classes] = (rank_sums - min_rank_sums) / (n_positive * n_negative)
        aucs.append(aucs_of_film)
    return np.stack(aucs)


def _deviations_from_chance(aucs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute how far the mean over films of AUCs [M, H, K] lies from .5, [H, K]; 0 if all are NaN."""
    n_films = (~np.isnan(aucs)).sum(axis=0)
    means = np.nansum(aucs, axis=0) / np.maximum(n_films, 1)
    return np.where(n_films > 0, np.abs(means - 0.5), 0.0)
