"""Decompose features into the axes of their covariance, and keep the decompositions of recent features.

An evaluation fits CAVs on the same clips again and again: for levels, for concepts, for controls. The same
features are therefore decomposed once.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from obygaze_models.concepts.cav_fitting import Floats
from obygaze_models.errors import ConceptError
from obygaze_models.models.scaling import ClippedScaler

Result = TypeVar("Result")

CACHE_BYTES = 200_000_000
"""Bytes of cached decompositions. There is one for each film left out, which concepts and heads share."""


@dataclass(eq=False, slots=True)
class FeatureAxes:
    """Features of N clips as coordinates along the R axes of their covariance.

    Attributes
    ----------
    scaler : ClippedScaler or None
        Standardised the features before; None if they were not standardised.
    unit : float
        The unit of penalties (`mean_variance`).
    centre : ndarray, shape [D]
        Mean of the scaled features.
    axes : ndarray, shape [D, R]
        Orthonormal directions.
    spread : ndarray, shape [R]
        Sum of squares along each axis.
    coordinates : ndarray, shape [N, R]
        The scaled features, less their mean, along each axis.
    results : ordered dict
        The latest results that were computed from these features (`cached_result`).
    """

    scaler: ClippedScaler | None
    unit: float
    centre: NDArray[np.float64]
    axes: NDArray[np.float64]
    spread: NDArray[np.float64]
    coordinates: NDArray[np.float64]
    results: OrderedDict[bytes, Any] = field(default_factory=OrderedDict)


_CACHE: OrderedDict[bytes, FeatureAxes] = OrderedDict()
"""Decompositions by the digest of the features, the least recent first."""


def axes_of_features(X: Floats, clip: float | None) -> FeatureAxes:
    """Scale and decompose features X [N, D], or return the cached decomposition of the same features.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    clip : float or None
        Standardise features first, and limit them to this many deviations; None: features as they are.
    """
    digest = hashlib.sha256(np.ascontiguousarray(X).data)
    digest.update(str((X.shape, X.dtype, clip)).encode())
    n_axes = min(X.shape)
    # Axes and coordinates, of 8 bytes a number.
    n_bytes = 8 * n_axes * (len(X) + X.shape[1])
    cache_size = max(CACHE_BYTES // n_bytes, 1)
    return cached_result(_CACHE, digest.digest(), cache_size, lambda: _decompose(X, clip))


def cached_result(
    cache: OrderedDict[bytes, Result], key: bytes, cache_size: int, compute: Callable[[], Result]
) -> Result:
    """Return the cached result of a key, or compute and cache it.

    If the cache then holds more than `cache_size` results, the least recently used are dropped.
    """
    if key not in cache:
        cache[key] = compute()
    cache.move_to_end(key)
    while len(cache) > cache_size:
        cache.popitem(last=False)
    return cache[key]


def _decompose(X: Floats, clip: float | None) -> FeatureAxes:
    """Scale features X [N, D] and compute the axes of their covariance.

    The smaller of two matrices of products is decomposed: that of features [D, D], or that of clips [N, N].
    """
    scaler = None if clip is None else ClippedScaler(clip).fit(X)
    scaled = np.asarray(X if scaler is None else scaler.transform(X), dtype=np.float64)
    centre = scaled.mean(axis=0)
    centred = scaled - centre
    unit = mean_variance(centred)
    if len(centred) >= centred.shape[1]:
        spread, axes = linalg.eigh(centred.T @ centred)
        # Rounding can make the spread of an axis slightly negative.
        return FeatureAxes(scaler, unit, centre, axes, np.maximum(spread, 0.0), centred @ axes)
    # With centred = U L V': the products of clips have eigenvectors U and eigenvalues L^2, which rise.
    spread, rotation = linalg.eigh(centred @ centred.T)
    # Axes with a tiny or negative spread are rounding errors.
    is_real = spread > 1e-12 * spread[-1]
    length = np.sqrt(spread[is_real])
    axes = centred.T @ (rotation[:, is_real] / length)  # V = centred' U / L
    coordinates = rotation[:, is_real] * length  # centred V = U L
    return FeatureAxes(scaler, unit, centre, axes, spread[is_real], coordinates)


def mean_variance(centred: NDArray[np.float64]) -> float:
    """Return the mean sum of squares of centred features [N, D] per direction: the unit of penalties.

    Features have as many directions as the smaller of N and D.

    Raises
    ------
    ConceptError
        The features are constant.
    """
    unit = float(np.sum(centred * centred)) / int(min(centred.shape))
    if unit <= 0:
        raise ConceptError("the features are constant: no concept can be read from them")
    return unit
