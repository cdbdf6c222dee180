"""Tell which clips are out of distribution: farther from the training clips than films left out."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from obygaze_models.models.scaling import CLIP, moments, moments_without_groups, standardise

OUT_OF_DISTRIBUTION = "unlike"
"""Word for such clips in tables and files."""

LIMIT = 0.99
"""Share of nearer training clips above which a clip gets no prediction."""

BLOCK = 1024
"""Clips whose features are clipped at a time."""

LEVELS = np.linspace(0, 1, 201)
"""Quantile levels of distances and of concept values in a model file."""


@dataclass(frozen=True, eq=False, slots=True)
class OutOfDistribution:
    """Measure the distance of clips from the training clips, relative to films left out.

    The distance is the root mean square, over features, of deviations from the training mean, each cut at 5
    standard deviations. The cut makes it robust to features that hardly vary: on the demo's descriptors, a
    quarter of which are nearly constant, the distance without it flags every clip of one of the six films
    left out, with it at most 4 % of any. Moments are those of winsorised features, so that one odd training
    clip does not widen them. Features are used one by one, so it misses clips that are unusual only in
    combination. Of a clip that lacks a modality the features that it has are measured; moments are those of
    the clips that have all. Features are winsorised at the same values whatever film is left out, so that
    sums of a film can be subtracted from those of all.

    Attributes
    ----------
    mean, scale : ndarray, shape [D]
        Winsorised moments of the training clips.
    distances : ndarray, shape [Q]
        Quantiles (`LEVELS`) of the training clips' distances from the clips of all other films.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    distances: NDArray[np.float64]

    @classmethod
    def fit(cls, X: NDArray[Any], movies: NDArray[np.str_]) -> Self:
        """Measure the training clips X [N, D] of `movies` [N], of which there are at least two."""
        whole = np.flatnonzero([bool(np.isfinite(features).all()) for features in X])
        winsorised = _winsorised(X, whole)
        films = _rows_of_films(movies)
        place = np.full(len(X), -1)
        place[whole] = np.arange(len(whole))
        of_films = [place[rows][place[rows] >= 0] for rows in films]
        without = moments_without_groups(winsorised, of_films)
        distances = np.empty(len(X))
        for rows, mean, scale in zip(films, without.mean, without.scale, strict=True):
            distances[rows] = _distances(X[rows], mean, scale)
        mean, scale = moments(winsorised)
        return cls(mean.astype(np.float64), scale.astype(np.float64), np.quantile(distances, LEVELS))

    def shares(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Compute the share of training clips nearer than each clip of X [N, D], 0 to 1.

        A clip farther than 99 % of them has a share above `LIMIT`, however small the difference.
        """
        # Clips as far as it are not nearer, whose distances are equal but for rounding.
        return np.interp(_distances(X, self.mean, self.scale) - 1e-9, self.distances, LEVELS)


def _rows_of_films(movies: NDArray[np.str_]) -> list[NDArray[np.intp]]:
    """Find the rows of each film."""
    film = np.unique(movies, return_inverse=True)[1]
    order = np.argsort(film, kind="stable")
    return np.split(order, np.cumsum(np.bincount(film))[:-1])


def _winsorised(X: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Clip each feature of some clips at 3 deviations from its mean, three times, each by the last's moments.

    X is not copied as a whole: beside it there is the result alone.
    """
    clipped = np.empty((len(rows), X.shape[1]))
    low: Any = -np.inf
    high: Any = np.inf
    for _ in range(4):
        for first in range(0, len(rows), BLOCK):
            part = slice(first, first + BLOCK)
            np.clip(X[rows[part]].astype(np.float64), low, high, out=clipped[part])
        mean, scale = moments(clipped)
        low, high = mean - 3 * scale, mean + 3 * scale
    return clipped


def _distances(X: NDArray[Any], mean: NDArray[Any], scale: NDArray[Any]) -> NDArray[np.float64]:
    standard = standardise(X.astype(np.float64), mean, scale, CLIP)
    return np.asarray(np.sqrt(np.nanmean(standard * standard, axis=1)))
