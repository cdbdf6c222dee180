"""Tell which clips are out of distribution: farther from the training clips than films left out."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from obygaze_models.models.linear import CLIP, moments, standardise

OUT_OF_DISTRIBUTION = "unlike"
"""Word for such clips in tables and files."""

LIMIT = 0.99
"""Share of nearer training clips above which a clip gets no prediction."""

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
    the clips that have all.

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
        distances = np.empty(len(X))
        for movie in np.unique(movies):
            out = movies == movie
            distances[out] = _distances(X[out], *_robust_moments(X[~out]))
        return cls(*_robust_moments(X), np.quantile(distances, LEVELS))

    def shares(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Compute the share of training clips nearer than each clip of X [N, D], 0 to 1.

        A clip farther than 99 % of them has a share above `LIMIT`, however small the difference.
        """
        # Clips as far as it are not nearer, whose distances are equal but for rounding.
        return np.interp(_distances(X, self.mean, self.scale) - 1e-9, self.distances, LEVELS)


def _robust_moments(X: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute moments after clipping each feature at 3 deviations from its mean, three times."""
    wide = X.astype(np.float64)
    wide = wide[np.isfinite(wide).all(axis=1)]
    mean, scale = moments(wide)
    for _ in range(3):
        mean, scale = moments(np.clip(wide, mean - 3 * scale, mean + 3 * scale))
    return mean.astype(np.float64), scale.astype(np.float64)


def _distances(X: NDArray[Any], mean: NDArray[Any], scale: NDArray[Any]) -> NDArray[np.float64]:
    standard = standardise(X.astype(np.float64), mean, scale, CLIP)
    return np.asarray(np.sqrt(np.nanmean(standard * standard, axis=1)))
