"""Find clips that are out of distribution: farther from the training clips than clips of films left out."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from obygaze_models.models.scaling import CLIP, mean_and_scale, mean_and_scale_without_groups, standardise

OUT_OF_DISTRIBUTION = "unlike"
"""Word for clips out of distribution in tables and files."""

LARGEST_SHARE = 0.99
"""A clip is out of distribution if more than this share of training clips is nearer to the training mean."""

N_CLIPS_AT_ONCE = 1024
"""Clips whose features are clipped at a time."""

QUANTILE_LEVELS = np.linspace(0, 1, 201)
"""The quantiles of distances that a model file holds."""

ROUNDING_OF_DISTANCE = 1e-9
"""Distances that differ by less count as equal: the difference may be rounding."""

WINSOR_DEVIATIONS = 3
"""Standard deviations from the mean at which features are winsorised before their moments are taken."""

N_WINSOR_ROUNDS = 3
"""How often features are winsorised, each time by the moments of the features winsorised before."""


@dataclass(frozen=True, eq=False, slots=True)
class OutOfDistribution:
    """Tells how unusual clips are, compared with training clips whose film is left out.

    The distance of a clip is the root mean square, over features, of deviations from the training mean, each
    limited to 5 standard deviations. The limit makes it robust to features that hardly vary: on the demo's
    descriptors, a quarter of which are nearly constant, the distance without it flags every clip of one of
    the six films left out, and with it at most 4 % of any film. Means and deviations are those of winsorised
    features, so that one odd training clip does not widen them. Features are winsorised at the same values
    whichever film is left out, so that sums of a film can be subtracted from those of all.

    Features are used one by one, so a combination of features that is unusual is missed. A clip that lacks a
    modality is measured by the features that it has; means and deviations are those of the clips that have
    all modalities.

    Attributes
    ----------
    mean, scale : ndarray, shape [D]
        Means and deviations of the training clips' winsorised features.
    distances : ndarray, shape [Q]
        Quantiles (`QUANTILE_LEVELS`) of the training clips' distances from the clips of all other films.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    distances: NDArray[np.float64]

    @classmethod
    def fit(cls, X: NDArray[Any], movies: NDArray[np.str_]) -> Self:
        """Measure the distances of training clips X [N, D], each from the clips of all other films.

        `movies` [N] is the film of each clip; there are at least two films.
        """
        # Means and deviations are those of complete clips, which have all modalities.
        is_complete = np.array([bool(np.isfinite(features).all()) for features in X])
        winsorised = _winsorise(X, np.flatnonzero(is_complete))  # [complete clips, D]

        # The distance of each clip is from the clips of the other films, as that of a new film's clips is.
        films, film_of_clip = np.unique(movies, return_inverse=True)
        rows_of_films = _rows_of_films(film_of_clip, len(films))  # in X
        rows_in_winsorised = _rows_of_films(film_of_clip[is_complete], len(films))
        without_film = mean_and_scale_without_groups(winsorised, rows_in_winsorised)
        distances = np.empty(len(X))
        for rows, mean, scale in zip(rows_of_films, without_film.mean, without_film.scale, strict=True):
            # An incomplete clip is measured by the features that it has.
            distances[rows] = _distances_from_mean(X[rows], mean, scale)

        # New clips are measured from the clips of all films.
        mean, scale = mean_and_scale(winsorised)
        return cls(mean.astype(np.float64), scale.astype(np.float64), np.quantile(distances, QUANTILE_LEVELS))

    def shares(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Compute for each clip of X [N, D] the share of training clips that are nearer to the training mean.

        A clip that is farther away than 99 % of them has a share above `LARGEST_SHARE`.
        """
        distances = _distances_from_mean(X, self.mean, self.scale)
        # A training clip at the same distance may seem nearer by a rounding error, and must not count.
        rounded_down = distances - ROUNDING_OF_DISTANCE
        return np.interp(rounded_down, self.distances, QUANTILE_LEVELS)


def _rows_of_films(film_of_clip: NDArray[np.intp], n_films: int) -> list[NDArray[np.intp]]:
    """Return the rows of each film, given the number of each clip's film [N], 0 to `n_films` - 1."""
    return [np.flatnonzero(film_of_clip == film) for film in range(n_films)]


def _winsorise(X: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Clip each feature of some rows of X at `WINSOR_DEVIATIONS` (3) standard deviations from its mean.

    Such features are called winsorised: their mean and deviation depend less on single odd clips. It is done
    `N_WINSOR_ROUNDS` times, as the mean and deviation change by it. X [N, D] is not copied as a whole, as it
    may take up most of the memory; the result is [rows, D].
    """
    clipped = np.empty((len(rows), X.shape[1]))
    # The first pass clips nothing: it only copies the features and measures them.
    low = np.full(X.shape[1], -np.inf)
    high = np.full(X.shape[1], np.inf)
    for _ in range(1 + N_WINSOR_ROUNDS):
        for first in range(0, len(rows), N_CLIPS_AT_ONCE):
            block = slice(first, first + N_CLIPS_AT_ONCE)
            np.clip(X[rows[block]].astype(np.float64), low, high, out=clipped[block])
        mean, scale = mean_and_scale(clipped)
        low = mean - WINSOR_DEVIATIONS * scale
        high = mean + WINSOR_DEVIATIONS * scale
    return clipped


def _distances_from_mean(X: NDArray[Any], mean: NDArray[Any], scale: NDArray[Any]) -> NDArray[np.float64]:
    """Compute the distance of each clip of X [N, D] from the mean: root mean square of standardised features.

    Mean and scale are of shape [D]. Standardised features are limited to 5 deviations (`CLIP`). Features that
    are NaN are left out.
    """
    standardised = standardise(X.astype(np.float64), mean, scale, CLIP)
    mean_squares = np.nanmean(standardised * standardised, axis=1)
    return np.asarray(np.sqrt(mean_squares))
