"""Fit ridge CAVs with the penalty of each concept tuned by leave-one-movie-out.

A concept's penalty is the one of `PENALTIES` with the least squared error on the clips of movies left out
(PRESS, Allen 1974, with movies for single clips). One eigendecomposition serves all penalties, concepts and
movies: in the axes of the features' covariance, T = centred X V, the hat matrix at penalty r is
H = 1/n + T diag(1 / (l + r)) T', and the errors on the rows of movie g of a fit without them are
``inv(I - H_gg) (y_g - yhat_g)``.

Only training clips are passed in, so that nothing depends on a test movie.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg.lapack import dpotrf, dpotrs

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.cav_fitting import Floats, Hyperplanes, refuse_constant
from obygaze_models.errors import ConceptError
from obygaze_models.models.scaling import ClippedScaler

Made = TypeVar("Made")

PENALTIES = (100.0, 10.0, 1.0, 0.1, 0.01)
"""In mean variances of the features' directions; of equal losses the strongest is chosen."""


@dataclass(frozen=True, eq=False, slots=True)
class Tuned:
    """Ridge CAVs of K concepts, each at its own penalty.

    Attributes
    ----------
    losses : ndarray, shape [len(PENALTIES), K]
        Mean squared error on the clips of the movies left out.
    chosen : ndarray of int, shape [K]
        Places in `PENALTIES`.
    planes : Hyperplanes
        Fitted on all clips.
    distances : ndarray, shape [N, K]
        Signed distance of each clip to the CAVs fitted without its movie, at the same penalties.
    scaler : ClippedScaler or None
        What standardised the features first.
    """

    losses: NDArray[np.float64]
    chosen: NDArray[np.intp]
    planes: Hyperplanes
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
) -> Tuned:
    """Tune each concept's penalty by leave-one-movie-out, and fit its CAV with and without each movie.

    The fits are those of `ridge_hyperplanes`, on all clips and on those of the other movies, to rounding.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    present : ndarray of bool, shape [N, K]
    movies : ndarray, shape [N]
    clip : float, optional
        Standardise features first, cut off at so many deviations; CAVs are then of standardised features.
    names : sequence of str, optional
        The concepts, for messages; by default their places.

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
    # One thread: the rounding of a product, and so the bytes of a result, would depend on their number.
    with one_blas_thread():
        known = _axes_of(X, clip)
        key = movie_of.tobytes() + np.packbits(present).tobytes() + str(present.shape).encode()
        return _recalled(known.tuned, key, N_TUNED, lambda: _tuned(known, present, movie_of))


def _recalled(kept: OrderedDict[bytes, Made], key: bytes, most: int, make: Callable[[], Made]) -> Made:
    """Return what was kept under a key, or make it; of more than `most` the least recent ones are dropped."""
    if key not in kept:
        kept[key] = make()
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
    return kept[key]


def _tuned(known: "_Axes", present: NDArray[np.bool_], movie_of: NDArray[np.intp]) -> Tuned:
    y = present.astype(np.float64)
    centre, axes, spread, T = known.centre, known.axes, known.spread, known.T
    shrink = 1 / (spread + known.unit * np.array(PENALTIES)[:, None])
    moments, share = T.T @ y, y.mean(axis=0)
    whole = shrink[:, :, None] * moments
    errors = np.empty((len(PENALTIES), *y.shape))
    rows = [movie_of == movie for movie in range(movie_of.max() + 1)]
    parts = [T[out] for out in rows]
    for out, part in zip(rows, parts, strict=True):
        rest = np.eye(len(part)) - 1 / len(T)
        for index, factors in enumerate(shrink):
            left = y[out] - share - part @ whole[index]
            errors[index, out] = dpotrs(_root(part * np.sqrt(factors), rest), left)[0]
    losses = np.mean(errors * errors, axis=1)
    chosen = np.argmin(losses, axis=0)
    each = np.arange(y.shape[1])
    factors, weights = shrink[chosen].T, whole[chosen, :, each].T
    error = errors[chosen, :, each].T
    distances = np.empty_like(y)
    for out, part in zip(rows, parts, strict=True):
        left_out = weights - factors * (part.T @ error[out])
        offsets = _midway(left_out, moments - part.T @ y[out], -part.sum(axis=0), y[~out])
        lengths = np.sqrt(np.einsum("rk,rk->k", left_out, left_out))
        distances[out] = (part @ left_out + offsets) / np.where(lengths > 0, lengths, 1.0)
    offsets = _midway(weights, moments, np.zeros(len(spread)), y)
    directions = np.ascontiguousarray((axes @ weights).T)
    return Tuned(
        losses, chosen, Hyperplanes(directions, offsets - directions @ centre), distances, known.scaler
    )


@dataclass(eq=False, slots=True)
class _Axes:
    """X's scaler, if there is one; the scaled X's mean [D], axes V [D, R], and X in them, T [N, R].

    `spread` [R] is the sum of squares along each axis.

    `unit` is that of the penalties. `tuned` are results for presences and movies.
    """

    scaler: ClippedScaler | None
    unit: float
    centre: NDArray[np.float64]
    axes: NDArray[np.float64]
    spread: NDArray[np.float64]
    T: NDArray[np.float64]
    tuned: OrderedDict[bytes, Tuned] = field(default_factory=OrderedDict)


def _root(scaled: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Factor rest - scaled scaled' by LAPACK itself: scipy's checks take as long on a movie's few clips."""
    hat = scaled @ scaled.T
    np.subtract(rest, hat, out=hat)
    root: NDArray[np.float64]
    # Symmetric: its transpose is the same in LAPACK's order.
    root, failed = dpotrf(hat.T, overwrite_a=True, clean=False)
    if failed:
        raise linalg.LinAlgError("I - H_gg is not positive definite")
    return root


_KEPT: OrderedDict[bytes, _Axes] = OrderedDict()
MOST_BYTES = 200_000_000
"""Bytes of decompositions that are kept: each film left out has one, which all concepts and heads share."""

N_TUNED = 2
"""Results kept with a decomposition: of the concepts, and of the control whose concepts are exchanged."""


def _axes_of(X: Floats, clip: float | None) -> _Axes:
    """Scale and decompose X, or give the decomposition of the same X from before."""
    digest = hashlib.sha256(np.ascontiguousarray(X).data)
    digest.update(str((X.shape, X.dtype, clip)).encode())
    n_axes = min(X.shape)
    most = MOST_BYTES // (8 * n_axes * (len(X) + X.shape[1]))
    return _recalled(_KEPT, digest.digest(), max(most, 1), lambda: _axes(X, clip))


def _axes(X: Floats, clip: float | None) -> _Axes:
    """Decompose the smaller of the two matrices of products, with fewer clips than features the clips'."""
    scaler = None if clip is None else ClippedScaler(clip).fit(X)
    wide = np.asarray(X if scaler is None else scaler.transform(X), dtype=np.float64)
    centre = wide.mean(axis=0)
    centred = wide - centre
    unit = mean_variance(centred)
    if len(centred) >= centred.shape[1]:
        spread, axes = linalg.eigh(centred.T @ centred)
        return _Axes(scaler, unit, centre, axes, np.maximum(spread, 0.0), centred @ axes)
    spread, rotation = linalg.eigh(centred @ centred.T)
    # Rounding leaves directions without any spread a tiny one, or a negative.
    real = spread > 1e-12 * spread[-1]
    length = np.sqrt(spread[real])
    axes = centred.T @ (rotation[:, real] / length)
    return _Axes(scaler, unit, centre, axes, spread[real], rotation[:, real] * length)


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


def _midway(
    weights: NDArray[np.float64],
    moments: NDArray[np.float64],
    total: NDArray[np.float64],
    y: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Put the offsets [K] midway between the mean projections of clips with and without each concept.

    `moments` [R, K] sum the clips with it, `total` [R] all clips; y [N, K] are their presences.
    """
    n_with = y.sum(axis=0)
    middle = (moments / n_with + (total[:, None] - moments) / (len(y) - n_with)) / 2
    return np.asarray(-np.einsum("rk,rk->k", weights, middle))
