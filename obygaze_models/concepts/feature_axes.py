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

MOST_BYTES = 200_000_000
"""Bytes of decompositions that are kept: each film left out has one, which all concepts and heads share."""


@dataclass(eq=False, slots=True)
class FeatureAxes:
    """Features of N clips in the axes of their covariance, of which there are R.

    Attributes
    ----------
    scaler : ClippedScaler or None
        What standardised the features first.
    unit : float
        The unit of penalties, see `mean_variance`.
    centre : ndarray, shape [D]
        Mean of the scaled features.
    axes : ndarray, shape [D, R]
    spread : ndarray, shape [R]
        Sum of squares along each axis.
    coordinates : ndarray, shape [N, R]
        The scaled features, less their mean, along each axis.
    results : ordered dict
        What was computed of these features lately, see `recalled`.
    """

    scaler: ClippedScaler | None
    unit: float
    centre: NDArray[np.float64]
    axes: NDArray[np.float64]
    spread: NDArray[np.float64]
    coordinates: NDArray[np.float64]
    results: OrderedDict[bytes, Any] = field(default_factory=OrderedDict)


_KEPT: OrderedDict[bytes, FeatureAxes] = OrderedDict()
"""Decompositions by the digest of the features, the least recent first."""


def axes_of(X: Floats, clip: float | None) -> FeatureAxes:
    """Scale and decompose features X [N, D], or recall the decomposition of the same features.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    clip : float or None
        Standardise features first, and cut them off at so many deviations; None to take them as they are.
    """
    digest = hashlib.sha256(np.ascontiguousarray(X).data)
    digest.update(str((X.shape, X.dtype, clip)).encode())
    n_axes = min(X.shape)
    # Axes and coordinates, of 8 bytes a number.
    n_bytes = 8 * n_axes * (len(X) + X.shape[1])
    most_kept = max(MOST_BYTES // n_bytes, 1)
    return recalled(_KEPT, digest.digest(), most_kept, lambda: _decompose(X, clip))


def recalled(
    kept: OrderedDict[bytes, Result], key: bytes, most_kept: int, compute: Callable[[], Result]
) -> Result:
    """Return the result that is kept under a key, or compute and keep it.

    Where more than `most_kept` are kept, the least recent are dropped.
    """
    if key not in kept:
        kept[key] = compute()
    kept.move_to_end(key)
    while len(kept) > most_kept:
        kept.popitem(last=False)
    return kept[key]


def _decompose(X: Floats, clip: float | None) -> FeatureAxes:
    """Decompose the smaller of the two matrices of products: of features, or of clips if they are fewer."""
    scaler = None if clip is None else ClippedScaler(clip).fit(X)
    scaled = np.asarray(X if scaler is None else scaler.transform(X), dtype=np.float64)
    centre = scaled.mean(axis=0)
    centred = scaled - centre
    unit = mean_variance(centred)
    if len(centred) >= centred.shape[1]:
        spread, axes = linalg.eigh(centred.T @ centred)
        # Rounding may leave an axis without any spread a negative one.
        return FeatureAxes(scaler, unit, centre, axes, np.maximum(spread, 0.0), centred @ axes)
    spread, rotation = linalg.eigh(centred @ centred.T)
    # Rounding leaves axes without any spread a tiny one, or a negative.
    is_real = spread > 1e-12 * spread[-1]
    length = np.sqrt(spread[is_real])
    axes = centred.T @ (rotation[:, is_real] / length)
    return FeatureAxes(scaler, unit, centre, axes, spread[is_real], rotation[:, is_real] * length)


def mean_variance(centred: NDArray[np.float64]) -> float:
    """Return the mean variance, times N, of the directions that centred features [N, D] have.

    It is the unit of penalties.

    Raises
    ------
    ConceptError
        The features are constant.
    """
    unit = float(np.sum(centred * centred)) / int(min(centred.shape))
    if unit <= 0:
        raise ConceptError("the features are constant: no concept can be read from them")
    return unit
