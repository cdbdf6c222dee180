"""Decompose features into the axes of their covariance, and keep the decompositions of recent features.

An evaluation fits CAVs on the same clips again and again: for levels, for concepts, for controls. The same
features are therefore decomposed once.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from obygaze_models.concepts.cav_fitting import Floats
from obygaze_models.errors import ConceptError
from obygaze_models.models.scaling import ClippedScaler

Result = TypeVar("Result")

SMALLEST_SHARE_OF_SQUARES = 1e-12
"""Share of the largest sum of squares below which a sum of squares is taken to be a rounding error."""

CACHE_BYTES = 200_000_000
"""Bytes of cached decompositions. There is one for each film left out, which concepts and heads share."""


@dataclass(eq=False, slots=True)
class DecomposedFeatures:
    """Features of N clips as coordinates along the R axes of their covariance.

    Attributes
    ----------
    scaler : ClippedScaler or None
        Standardised the features before; None if they were not standardised.
    penalty_unit : float
        The unit of penalties (`variance_per_direction`).
    centre : ndarray, shape [D]
        Mean of the scaled features.
    axes : ndarray, shape [D, R]
        Orthonormal directions.
    sums_of_squares : ndarray, shape [R]
        Sum of the squared coordinates of all clips along each axis.
    coordinates : ndarray, shape [N, R]
        The scaled features, less their mean, along each axis.
    results : ordered dict
        The latest results that were computed from these features (`cached_result`).
    """

    scaler: ClippedScaler | None
    penalty_unit: float
    centre: NDArray[np.float64]
    axes: NDArray[np.float64]
    sums_of_squares: NDArray[np.float64]
    coordinates: NDArray[np.float64]
    results: OrderedDict[bytes, Any] = field(default_factory=OrderedDict)


_CACHE: OrderedDict[bytes, DecomposedFeatures] = OrderedDict()
"""Decompositions by the digest of the features, the least recently used first."""


def decompose_features(X: Floats, clip: float | None) -> DecomposedFeatures:
    """Scale features X [N, D] and find the axes of their covariance; recent results are cached.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    clip : float or None
        Standardise features first, and limit them to this many deviations; None: features as they are.
    """
    # Equal features that are scaled alike have the same decomposition.
    digest = hashlib.sha256(np.ascontiguousarray(X).data)
    digest.update(str((X.shape, X.dtype, clip)).encode())
    key = digest.digest()
    # As many decompositions are kept as have a place in memory.
    n_to_keep = max(CACHE_BYTES // _bytes_of_decomposition(X), 1)
    return cached_result(_CACHE, key, n_to_keep, lambda: _decompose(X, clip))


def _bytes_of_decomposition(X: Floats) -> int:
    """Estimate the size of a decomposition of X [N, D]: axes [D, R] and coordinates [N, R] in float64."""
    n_clips, n_features = X.shape
    n_axes: int = min(n_clips, n_features)
    return 8 * n_axes * int(n_clips + n_features)


def cached_result(
    cache: OrderedDict[bytes, Result], key: bytes, n_to_keep: int, compute: Callable[[], Result]
) -> Result:
    """Return the cached result of a key, or compute and cache it.

    If the cache then holds more than `n_to_keep` results, the least recently used are dropped.
    """
    if key not in cache:
        cache[key] = compute()
    cache.move_to_end(key)
    while len(cache) > n_to_keep:
        cache.popitem(last=False)
    return cache[key]


def _decompose(X: Floats, clip: float | None) -> DecomposedFeatures:
    """Scale features X [N, D], and compute the axes of their covariance and the clips' coordinates.

    With `clip`, features are standardised and limited to this many deviations; None leaves them as they are.
    """
    if clip is None:
        scaler = None
        scaled = np.asarray(X, dtype=np.float64)
    else:
        scaler = ClippedScaler(clip).fit(X)
        scaled = scaler.transform(X)
    centre = scaled.mean(axis=0)
    centred = scaled - centre
    penalty_unit = variance_per_direction(centred)

    # Both ways give the same axes. The smaller of the two matrices of products is decomposed: that of
    # features [D, D] or that of clips [N, N].
    n_clips, n_features = centred.shape
    along_axes = _axes_by_features(centred) if n_clips >= n_features else _axes_by_clips(centred)

    return DecomposedFeatures(
        scaler=scaler,
        penalty_unit=penalty_unit,
        centre=centre,
        axes=along_axes.axes,
        sums_of_squares=along_axes.sums_of_squares,
        coordinates=along_axes.coordinates,
    )


class _AlongAxes(NamedTuple):
    """Axes of features, the sums of squares along them, and the clips' coordinates (`DecomposedFeatures`)."""

    axes: NDArray[np.float64]
    sums_of_squares: NDArray[np.float64]
    coordinates: NDArray[np.float64]


def _axes_by_features(centred: NDArray[np.float64]) -> _AlongAxes:
    """Find the axes of centred features [N, D] as eigenvectors of the products of features [D, D].

    The eigenvalues are the sums of squares of the clips' coordinates along the axes.
    """
    sums_of_squares, axes = linalg.eigh(centred.T @ centred)
    # Rounding can make a sum of squares slightly negative.
    sums_of_squares = np.maximum(sums_of_squares, 0.0)
    return _AlongAxes(axes, sums_of_squares, coordinates=centred @ axes)


def _axes_by_clips(centred: NDArray[np.float64]) -> _AlongAxes:
    """Find the axes of centred features [N, D] by way of the products of clips [N, N].

    The singular value decomposition is centred = U S V', with S diagonal. The products of clips are therefore
    U S^2 U': their eigenvectors are U, their eigenvalues the sums of squares S^2. The axes are
    V = centred' U / S, and the coordinates of the clips are centred V = U S.
    """
    squares, U = linalg.eigh(centred @ centred.T)
    # Eigenvalues rise; those that are tiny or negative are rounding errors.
    is_above_rounding = squares > SMALLEST_SHARE_OF_SQUARES * squares[-1]
    squares = squares[is_above_rounding]
    U = U[:, is_above_rounding]
    S = np.sqrt(squares)
    return _AlongAxes(axes=centred.T @ (U / S), sums_of_squares=squares, coordinates=U * S)


def variance_per_direction(centred: NDArray[np.float64]) -> float:
    """Divide the sum of squares of centred features [N, D] by the number of their directions, min(N, D).

    Ridge penalties are in this unit, so that they mean the same for features of any scale and number.

    Raises
    ------
    ConceptError
        The features are constant.
    """
    mean_square = float(np.sum(centred * centred)) / int(min(centred.shape))
    if mean_square <= 0:
        raise ConceptError("the features are constant: no concept can be read from them")
    return mean_square
