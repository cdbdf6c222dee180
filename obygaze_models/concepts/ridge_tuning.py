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
from obygaze_models.concepts.feature_axes import FeatureAxes, axes_of_features, cached_result
from obygaze_models.models.scaling import ClippedScaler

PENALTIES = (100.0, 10.0, 1.0, 0.1, 0.01)
"""Penalties that are tried, in units of `mean_variance`; of equal losses the one of the largest is chosen."""

N_CACHED = 2
"""Results cached with a decomposition: for the concepts, and for the control with exchanged concepts."""


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
        """The penalty of each concept [K]."""
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

    The fits equal those of `ridge_hyperplanes` on the same clips, to rounding.

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
        The concepts, for messages; by default their numbers.

    Raises
    ------
    ConceptError
        Without some movie a concept has clips of one class only, or the features are constant.
    """
    for name, column in zip(names or range(present.shape[1]), present.T, strict=True):
        refuse_constant(f"{name}", column)
        for movie in np.unique(movies):
            refuse_constant(f"{name}, without movie {movie},", column[movies != movie])
    movie_of = np.unique(movies, return_inverse=True)[1]
    # One thread, since the rounding of products depends on the number of threads.
    with one_blas_thread():
        axes = axes_of_features(X, clip)
        # With the same features, the result depends on movies and presences only.
        key = movie_of.tobytes() + np.packbits(present).tobytes() + str(present.shape).encode()
        tuned: TunedCavs = cached_result(axes.results, key, N_CACHED, lambda: _tune(axes, present, movie_of))
    return tuned


class _Fits(NamedTuple):
    """Ridge regressions of presences y on the coordinates of all clips, by every penalty.

    Attributes
    ----------
    y : ndarray, shape [N, K]
        Presences, 0 or 1.
    moments : ndarray, shape [R, K]
        Sum of the coordinates of the clips with each concept.
    shrinkage : ndarray, shape [V, R]
        1 / (l + r) for each penalty r and sum of squares l along an axis.
    weights : ndarray, shape [V, R, K]
        Weights of the regressions: shrinkage times moments.
    """

    y: NDArray[np.float64]
    moments: NDArray[np.float64]
    shrinkage: NDArray[np.float64]
    weights: NDArray[np.float64]


class _BestFits(NamedTuple):
    """The fits on all clips, each concept's at its best penalty.

    Attributes
    ----------
    shrinkage, weights : ndarray, shape [R, K]
        As in `_Fits`, at the best penalty.
    errors : ndarray, shape [N, K]
        Error of the fit without the clip's movie on the clip's presence.
    """

    shrinkage: NDArray[np.float64]
    weights: NDArray[np.float64]
    errors: NDArray[np.float64]


def _tune(axes: FeatureAxes, present: NDArray[np.bool_], movie_of: NDArray[np.intp]) -> TunedCavs:
    """Choose penalties, and fit CAVs on all clips and without each movie, from decomposed features.

    `present` [N, K] is the presence of each concept, `movie_of` [N] the movie of each clip, numbered from 0.
    """
    y = present.astype(np.float64)
    penalties = axes.unit * np.array(PENALTIES)
    shrinkage = 1 / (axes.spread + penalties[:, None])
    moments = axes.coordinates.T @ y
    fits = _Fits(y, moments, shrinkage, shrinkage[:, :, None] * moments)
    clips_of_movies = [movie_of == movie for movie in range(movie_of.max() + 1)]
    errors = _errors_without_movie(axes, fits, clips_of_movies)
    losses = np.mean(errors * errors, axis=1)
    # For each concept, the index of its best penalty. Of equal losses argmin takes the first, the largest.
    chosen = np.argmin(losses, axis=0)
    concepts = np.arange(y.shape[1])
    best = _BestFits(
        shrinkage=shrinkage[chosen].T,
        weights=fits.weights[chosen, :, concepts].T,
        errors=errors[chosen, :, concepts].T,
    )
    distances = _distances_without_movie(axes, fits, best, clips_of_movies)
    # The coordinates of all clips add up to 0, since their mean was subtracted.
    sum_of_coordinates = np.zeros(len(axes.spread))
    offsets = _midway_offsets(best.weights, moments, sum_of_coordinates, y)
    # Coordinates are (x - centre) axes: with them w t + b is (axes w) x + b - (axes w) centre.
    directions = np.ascontiguousarray((axes.axes @ best.weights).T)
    hyperplanes = Hyperplanes(directions, offsets - directions @ axes.centre)
    return TunedCavs(losses, chosen, hyperplanes, distances, axes.scaler)


def _errors_without_movie(
    axes: FeatureAxes, fits: _Fits, clips_of_movies: Sequence[NDArray[np.bool_]]
) -> NDArray[np.float64]:
    """Compute the leave-one-movie-out errors of all penalties, [V, N, K].

    An error is a clip's presence less its prediction by the fit without the clip's movie.
    """
    share = fits.y.mean(axis=0)
    n_clips = len(axes.coordinates)
    errors = np.empty((len(PENALTIES), *fits.y.shape))
    for is_in_movie in clips_of_movies:
        coordinates = axes.coordinates[is_in_movie]
        # I - 1/n: the part of I - H_gg (module docstring) that does not depend on the penalty.
        without_mean = np.eye(len(coordinates)) - 1 / n_clips
        for index, shrinkage in enumerate(fits.shrinkage):
            # y_g - yhat_g, of the fit with the movie.
            residuals = fits.y[is_in_movie] - share - coordinates @ fits.weights[index]
            root = _factor_difference(without_mean, coordinates * np.sqrt(shrinkage))
            # dpotrs solves (I - H_gg) errors = residuals, given the Cholesky factor.
            errors[index, is_in_movie] = dpotrs(root, residuals)[0]
    return errors


def _factor_difference(without_mean: NDArray[np.float64], scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the Cholesky factor of ``without_mean - scaled scaled'``, [n, n], which is I - H_gg of a movie.

    I - H_gg is as in the module docstring. LAPACK is called directly, as scipy's checks take as long as the
    arithmetic on so few clips.
    """
    difference = scaled @ scaled.T
    np.subtract(without_mean, difference, out=difference)
    root: NDArray[np.float64]
    # LAPACK wants columns contiguous: the transpose of the symmetric matrix is so without a copy.
    root, failed = dpotrf(difference.T, overwrite_a=True, clean=False)
    if failed:
        raise linalg.LinAlgError("I - H_gg is not positive definite")
    return root


def _distances_without_movie(
    axes: FeatureAxes,
    fits: _Fits,
    best: _BestFits,
    clips_of_movies: Sequence[NDArray[np.bool_]],
) -> NDArray[np.float64]:
    """Compute the signed distance of each clip to the CAVs fitted without its movie, [N, K].

    The CAVs without a movie follow from those of all clips (`fits`, and `best` of the chosen penalties) and
    the errors on the movie's clips.
    """
    distances = np.empty_like(fits.y)
    for is_in_movie in clips_of_movies:
        coordinates = axes.coordinates[is_in_movie]
        # Leaving a movie out takes its clips' errors from the moments: w - shrinkage * (T_g' errors_g).
        weights_without = best.weights - best.shrinkage * (coordinates.T @ best.errors[is_in_movie])
        # The coordinates of all clips add up to 0, so those of the others add up to minus the movie's sum.
        moments_of_others = fits.moments - coordinates.T @ fits.y[is_in_movie]
        sum_of_others = -coordinates.sum(axis=0)
        offsets = _midway_offsets(weights_without, moments_of_others, sum_of_others, fits.y[~is_in_movie])
        lengths = np.sqrt(np.einsum("rk,rk->k", weights_without, weights_without))
        decisions = coordinates @ weights_without + offsets
        distances[is_in_movie] = decisions / np.where(lengths > 0, lengths, 1.0)
    return distances


def _midway_offsets(
    weights: NDArray[np.float64],
    moments: NDArray[np.float64],
    total: NDArray[np.float64],
    y: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Compute offsets [K] midway between the mean projections of clips with and without each concept.

    Parameters
    ----------
    weights : ndarray, shape [R, K]
        Directions of the hyperplanes.
    moments : ndarray, shape [R, K]
        Sum of the coordinates of the clips with each concept.
    total : ndarray, shape [R]
        Sum of the coordinates of all clips.
    y : ndarray, shape [N, K]
        Presences.
    """
    n_with = y.sum(axis=0)
    n_without = len(y) - n_with
    # Midway between the mean coordinates of both classes, [R, K].
    middle = (moments / n_with + (total[:, None] - moments) / n_without) / 2
    return np.asarray(-np.einsum("rk,rk->k", weights, middle))
