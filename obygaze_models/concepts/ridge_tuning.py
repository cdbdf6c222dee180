"""Fit ridge CAVs with the penalty of each concept tuned by leave-one-movie-out.

A concept's penalty is the one of `PENALTIES` with the least squared error on the clips of movies left out
(PRESS, Allen 1974, with movies in place of single clips). One eigendecomposition serves all penalties,
concepts and movies. V are the axes of the features' covariance, T = centred X V the coordinates of clips, and
l the sums of squares along the axes. The hat matrix, which turns presences y into fitted values yhat = H y,
is H = 1/n + T diag(1 / (l + r)) T' at penalty r. H_gg is its block of rows and columns of movie g. The errors
of a fit without movie g on the clips of that movie are ``inv(I - H_gg) (y_g - yhat_g)``.

Only training clips are passed in, so that nothing depends on a test movie.

Letters of shapes: N clips, D features, R axes, K concepts, V penalties.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg.lapack import dpotrf, dpotrs

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.cav_fitting import Floats, Hyperplanes, refuse_constant
from obygaze_models.concepts.feature_axes import DecomposedFeatures, cached_result, decompose_features
from obygaze_models.models.scaling import ClippedScaler

PENALTIES = (100.0, 10.0, 1.0, 0.1, 0.01)
"""Penalties to choose from, in units of `variance_per_direction`; of equal losses the largest is chosen."""

N_CACHED_RESULTS = 2
"""Results cached with decomposed features: for the concepts, and for the control with exchanged concepts."""


@dataclass(frozen=True, eq=False, slots=True)
class TunedCavs:
    """Ridge CAVs of K concepts, each at its own penalty.

    Attributes
    ----------
    losses : ndarray, shape [len(PENALTIES), K]
        Mean squared error of the presence on the clips of movies left out.
    chosen : ndarray of int, shape [K]
        Indices in `PENALTIES`.
    hyperplanes : Hyperplanes
        CAVs fitted on all clips.
    distances : ndarray, shape [N, K]
        Signed distance of each clip to the CAVs fitted without its movie, at the same penalties.
    scaler : ClippedScaler or None
        Standardised the features before the fit; None if they were not standardised.
    """

    losses: NDArray[np.float64]
    chosen: NDArray[np.intp]
    hyperplanes: Hyperplanes
    distances: NDArray[np.float64]
    scaler: ClippedScaler | None

    @property
    def penalties(self) -> NDArray[np.float64]:
        """The penalty of each concept [K], in units of `variance_per_direction`."""
        return np.array(PENALTIES)[self.chosen]


def tuned_ridge(
    X: Floats,
    present: NDArray[np.bool_],
    movies: NDArray[np.generic],
    clip: float | None = None,
    *,
    names: Sequence[str] | None = None,
) -> TunedCavs:
    """Choose each concept's ridge penalty by leaving movies out, and fit its CAV with and without each movie.

    The fits equal those of `ridge_hyperplanes` on the same clips, to rounding. The result is cached, so that
    callers must not change its arrays.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    present : ndarray of bool, shape [N, K]
        Presence of each concept.
    movies : ndarray, shape [N]
        The movie of each clip.
    clip : float, optional
        Standardise features first, and limit them to this many deviations; CAVs are then of standardised
        features.
    names : sequence of str, optional
        The concepts, for messages; by default they are numbered from 0.

    Raises
    ------
    ConceptError
        Without some movie a concept has clips of one class only, or the features are constant.
    """
    _refuse_constant_concepts(present, movies, names or range(present.shape[1]))
    _, movie_of_clip = np.unique(movies, return_inverse=True)
    # One thread, since the rounding of products depends on the number of threads.
    with one_blas_thread():
        features = decompose_features(X, clip)

        def tune() -> TunedCavs:
            """Compute the result, if it is not cached."""
            return _tune(features, present, movie_of_clip)

        # Results are cached with the features they are computed from.
        key = _key_of_result(present, movie_of_clip)
        tuned: TunedCavs = cached_result(features.results, key, N_CACHED_RESULTS, tune)
    return tuned


def _key_of_result(present: NDArray[np.bool_], movie_of_clip: NDArray[np.intp]) -> bytes:
    """Make the key of a cached result: all that it depends on, except the features, as bytes."""
    return movie_of_clip.tobytes() + np.packbits(present).tobytes() + str(present.shape).encode()


def _refuse_constant_concepts(
    present: NDArray[np.bool_], movies: NDArray[np.generic], names: Sequence[str] | range
) -> None:
    """Raise ConceptError if a concept has clips of one class only, among all clips or without some movie.

    Parameters
    ----------
    present : ndarray of bool, shape [N, K]
    movies : ndarray, shape [N]
    names : sequence of length K
        The concepts, for messages.
    """
    for name, is_present in zip(names, present.T, strict=True):
        refuse_constant(f"{name}", is_present)
        for movie in np.unique(movies):
            refuse_constant(f"{name}, without movie {movie},", is_present[movies != movie])


class _Fits(NamedTuple):
    """Ridge regressions of presences y on the coordinates of all clips, by every penalty.

    Attributes
    ----------
    y : ndarray, shape [N, K]
        Presences, 0 or 1.
    sums_of_present : ndarray, shape [R, K]
        Sum of the coordinates of the clips with each concept, T' y.
    shrinkage : ndarray, shape [V, R]
        1 / (l + r) for each penalty r and sum of squares l along an axis.
    weights : ndarray, shape [V, R, K]
        Weights of the regressions on the coordinates: shrinkage times T' y.
    """

    y: NDArray[np.float64]
    sums_of_present: NDArray[np.float64]
    shrinkage: NDArray[np.float64]
    weights: NDArray[np.float64]


class _BestFits(NamedTuple):
    """The fits on all N clips of K concepts, each concept's at its best penalty.

    Attributes
    ----------
    shrinkage : ndarray, shape [R, K]
        1 / (l + r) for the concept's penalty r and the sum of squares l along each axis.
    weights : ndarray, shape [R, K]
        Weights of the concept's regression on the coordinates along the axes.
    errors : ndarray, shape [N, K]
        Error of the fit without the clip's movie on the clip's presence.
    """

    shrinkage: NDArray[np.float64]
    weights: NDArray[np.float64]
    errors: NDArray[np.float64]


def _tune(
    features: DecomposedFeatures, present: NDArray[np.bool_], movie_of_clip: NDArray[np.intp]
) -> TunedCavs:
    """Choose each concept's penalty, and fit its CAV on all clips and without each movie.

    `present` [N, K] is the presence of each concept, `movie_of_clip` [N] the clip's movie, numbered from 0.
    """
    fits = _fit_every_penalty(features, present)
    clips_of_movies = [movie_of_clip == movie for movie in range(movie_of_clip.max() + 1)]
    errors = _errors_without_movie(features, fits, clips_of_movies)  # for each of V penalties, [V, N, K]
    losses = np.mean(errors * errors, axis=1)  # [V, K]
    # Of equal losses argmin takes the first, that of the largest penalty.
    chosen = np.argmin(losses, axis=0)
    best = _select_best(fits, errors, chosen)
    return TunedCavs(
        losses=losses,
        chosen=chosen,
        hyperplanes=_hyperplanes_of_all_clips(features, fits, best),
        distances=_distances_without_movie(features, fits, best, clips_of_movies),
        scaler=features.scaler,
    )


def _fit_every_penalty(features: DecomposedFeatures, present: NDArray[np.bool_]) -> _Fits:
    """Fit ridge regressions of presences [N, K] on the coordinates of all clips, one for each penalty.

    The weights of ridge regression are inv(T' T + r) T' y, with the penalty r, the coordinates T [N, R] of
    the clips along R axes, and the presences y [N, K]. Coordinates along different axes are uncorrelated: T'
    T is the diagonal matrix of the sums of squares l along the axes. So each weight is the axis's element of
    T' y, divided by l + r.
    """
    y = present.astype(np.float64)
    penalties = features.penalty_unit * np.array(PENALTIES)  # those to choose from
    # A row for each of the V penalties: 1 / (l + r), [V, R].
    shrinkage = 1 / (features.sums_of_squares + penalties[:, None])
    sums_of_present = features.coordinates.T @ y  # T' y, [R, K]
    # For each penalty, every row of `sums_of_present` times the shrinkage of its axis, [V, R, K].
    weights = shrinkage[:, :, None] * sums_of_present
    return _Fits(y=y, sums_of_present=sums_of_present, shrinkage=shrinkage, weights=weights)


def _select_best(fits: _Fits, errors: NDArray[np.float64], chosen: NDArray[np.intp]) -> _BestFits:
    """Select for each of K concepts the fit at its chosen penalty.

    Parameters
    ----------
    fits : _Fits
        The fits at V penalties: R numbers of shrinkage each, and R weights for each concept.
    errors : ndarray, shape [V, N, K]
        Error of each clip at each penalty, by a model without the clip's movie.
    chosen : ndarray of int, shape [K]
        Index of each concept's penalty.
    """
    shrinkage = []
    weights = []
    best_errors = []
    for concept, penalty in enumerate(chosen):
        shrinkage.append(fits.shrinkage[penalty])  # [R]
        weights.append(fits.weights[penalty, :, concept])  # [R]
        best_errors.append(errors[penalty, :, concept])  # [N]

    # The lists have a row for each concept; the results a column.
    return _BestFits(
        shrinkage=np.array(shrinkage).T,
        weights=np.array(weights).T,
        errors=np.array(best_errors).T,
    )


def _hyperplanes_of_all_clips(features: DecomposedFeatures, fits: _Fits, best: _BestFits) -> Hyperplanes:
    """Convert the best fits on all clips to hyperplanes in the space of the scaled features.

    A clip x has the coordinates t = axes' (x - centre). A hyperplane w t + b = 0 of coordinates is therefore
    the hyperplane (axes w) x + b - (axes w) centre = 0 of features. Its offset b puts it midway between the
    mean of the clips with the concept and that of the clips without it.
    """
    # The coordinates of all clips add up to 0 along each axis, since their mean was subtracted.
    n_axes = len(features.sums_of_squares)
    sum_of_all = np.zeros(n_axes)
    offsets = _midway_offsets(best.weights, fits.sums_of_present, sum_of_all, fits.y)  # b, [K]
    directions = np.ascontiguousarray((features.axes @ best.weights).T)  # axes w, [K, D]
    return Hyperplanes(directions, offsets - directions @ features.centre)


def _errors_without_movie(
    features: DecomposedFeatures, fits: _Fits, clips_of_movies: Sequence[NDArray[np.bool_]]
) -> NDArray[np.float64]:
    """Compute for each penalty the error of each clip's presence by the fit without its movie, [V, N, K].

    No fit is repeated. The symbols, for the clips g of one movie, are:

    - y_g: their presences;
    - yhat_g: the values that the fit on all clips gives them;
    - e_g: the errors on them of the fit without them, which are wanted;
    - T_g: their coordinates;
    - H_gg: their block of the hat matrix, ``1/n + T_g diag(shrinkage) T_g'`` with n clips in all.

    The fit without the movie predicts y_g - e_g. If these were the movie's presences, that fit would remain
    the best one with the movie included, since it has no error there. The fit on all clips, which is linear
    in y, would then give the values ``yhat_g - H_gg e_g``. Both are the same predictions::

        y_g - e_g = yhat_g - H_gg e_g,    so that    (I - H_gg) e_g = y_g - yhat_g

    Parameters
    ----------
    features : DecomposedFeatures
    fits : _Fits
        On all clips.
    clips_of_movies : sequence of ndarray of bool, shape [N]
        For each movie, marks its clips.
    """
    mean_presence = fits.y.mean(axis=0)
    n_clips = len(features.coordinates)
    errors = np.empty((len(PENALTIES), *fits.y.shape))
    for is_in_movie in clips_of_movies:
        coordinates = features.coordinates[is_in_movie]  # T_g
        # I - H_gg is I - 1/n, the part without a penalty, less T_g diag(shrinkage) T_g'. The latter is S S',
        # with S = T_g diag(root of the shrinkage).
        identity_less_mean = np.eye(len(coordinates)) - 1 / n_clips
        for index, shrinkage in enumerate(fits.shrinkage):
            fitted_values = coordinates @ fits.weights[index]  # yhat_g less the mean presence
            residuals = fits.y[is_in_movie] - mean_presence - fitted_values  # y_g - yhat_g
            S = coordinates * np.sqrt(shrinkage)
            # Solves (identity_less_mean - S S') e_g = residuals.
            errors[index, is_in_movie] = _solve_difference(identity_less_mean, S, residuals)
    return errors


def _solve_difference(
    identity_less_mean: NDArray[np.float64], S: NDArray[np.float64], residuals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Solve ``(identity_less_mean - S S') errors = residuals`` for the n clips of one movie.

    This is ``scipy.linalg.solve(..., assume_a="pos")``, by a Cholesky decomposition. LAPACK is called
    directly, as the checks of ``scipy.linalg`` take as long as the arithmetic on so few clips.

    Parameters
    ----------
    identity_less_mean : ndarray, shape [n, n]
    S : ndarray, shape [n, R]
    residuals : ndarray, shape [n, K]

    Returns
    -------
    ndarray, shape [n, K]
    """
    difference = S @ S.T
    np.subtract(identity_less_mean, difference, out=difference)
    # LAPACK reads matrices column by column, numpy stores them row by row. As this matrix is symmetric, its
    # transpose is the same matrix in LAPACK's order, so that it can be overwritten without a copy.
    stored_by_columns = difference.T
    # The factor is a triangle; clean=False leaves the other one, which dpotrs does not read, as it is.
    factor, failed = dpotrf(stored_by_columns, overwrite_a=True, clean=False)
    if failed:
        raise linalg.LinAlgError("I - H_gg is not positive definite")
    errors: NDArray[np.float64]
    errors, _ = dpotrs(factor, residuals)
    return errors


def _distances_without_movie(
    features: DecomposedFeatures,
    fits: _Fits,
    best: _BestFits,
    clips_of_movies: Sequence[NDArray[np.bool_]],
) -> NDArray[np.float64]:
    """Compute the signed distance of each clip to the CAVs fitted without its movie, [N, K].

    No fit is repeated. With T the coordinates of clips and y the presences of a concept in them (1 or 0), the
    weights of a fit on all clips are ``shrinkage * (T' y)``. The fit without movie g is the fit on all clips
    in which the movie's presences y_g are replaced by y_g - e_g, where e_g are the errors of the fit without
    the movie, as `best` has them (`_errors_without_movie` says why). So its weights are
    ``weights - shrinkage * (T_g' e_g)``.

    Parameters
    ----------
    features : DecomposedFeatures
    fits, best : _Fits, _BestFits
        On all clips.
    clips_of_movies : sequence of ndarray of bool, shape [N]
        For each movie, marks its clips.
    """
    distances = np.empty_like(fits.y)
    for is_in_movie in clips_of_movies:
        coordinates = features.coordinates[is_in_movie]  # T_g
        errors = best.errors[is_in_movie]  # e_g
        weights = best.weights - best.shrinkage * (coordinates.T @ errors)  # without the movie, [R, K]

        # The offsets [K] without the movie put hyperplanes midway between the means of the other clips with
        # and without a concept. The coordinates of all clips add up to 0, so that those of the other clips
        # add up to minus the movie's sum.
        sum_of_others = -coordinates.sum(axis=0)
        sums_of_others_with_concept = fits.sums_of_present - coordinates.T @ fits.y[is_in_movie]
        offsets = _midway_offsets(weights, sums_of_others_with_concept, sum_of_others, fits.y[~is_in_movie])

        decisions = coordinates @ weights + offsets
        lengths = np.sqrt(np.einsum("rk,rk->k", weights, weights))
        # Weights of 0 have no direction: all distances to such a CAV are its offset.
        distances[is_in_movie] = decisions / np.where(lengths > 0, lengths, 1.0)
    return distances


def _midway_offsets(
    weights: NDArray[np.float64],
    sums_of_present: NDArray[np.float64],
    sum_of_all: NDArray[np.float64],
    y: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Compute the offsets [K] of hyperplanes midway between the clips with and without each concept.

    An offset is minus the projection, on the weights, of the point midway between the mean of the clips with
    the concept and the mean of those without. So this point has the decision value 0.

    Parameters
    ----------
    weights : ndarray, shape [R, K]
        Directions of the hyperplanes.
    sums_of_present : ndarray, shape [R, K]
        Sum of the coordinates of the clips with each concept.
    sum_of_all : ndarray, shape [R]
        Sum of the coordinates of all clips.
    y : ndarray, shape [N, K]
        Presences.
    """
    n_with = y.sum(axis=0)
    n_without = len(y) - n_with
    mean_with = sums_of_present / n_with
    mean_without = (sum_of_all[:, None] - sums_of_present) / n_without
    middle = (mean_with + mean_without) / 2  # [R, K]
    return np.asarray(-np.einsum("rk,rk->k", weights, middle))
