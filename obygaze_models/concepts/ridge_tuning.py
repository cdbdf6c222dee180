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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.cav_fitting import Floats, Hyperplanes
from obygaze_models.errors import ConceptError

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
    """

    losses: NDArray[np.float64]
    chosen: NDArray[np.intp]
    planes: Hyperplanes
    distances: NDArray[np.float64]

    @property
    def penalties(self) -> NDArray[np.float64]:
        """The penalty of each concept [K]."""
        return np.array(PENALTIES)[self.chosen]


def mean_variance(X: Floats) -> float:
    """Return the mean variance, times N, of the directions that X [N, D] has: the unit of penalties.

    Raises
    ------
    ConceptError
        The features are constant.
    """
    centred = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    unit = float(np.sum(centred * centred)) / int(min(X.shape))
    if unit <= 0:
        raise ConceptError("the features are constant: no concept can be read from them")
    return unit


def tuned_ridge(X: Floats, present: NDArray[np.bool_], movies: NDArray[np.generic]) -> Tuned:
    """Tune each concept's penalty by leave-one-movie-out, and fit its CAV with and without each movie.

    The fits are those of `ridge_hyperplanes` and `ridge_leave_group_out`, to rounding.

    Parameters
    ----------
    X : ndarray, shape [N, D]
    present : ndarray of bool, shape [N, K]
    movies : ndarray, shape [N]

    Raises
    ------
    ConceptError
        Without some movie a concept has clips of one class only, or the features are constant.
    """
    unit, y = mean_variance(X), present.astype(np.float64)
    names, movie_of = np.unique(movies, return_inverse=True)
    # One thread: the rounding of a product, and so the bytes of a result, would depend on their number.
    with one_blas_thread():
        centre, axes, spread, T = _axes_of(X)
        shrink = 1 / (spread + unit * np.array(PENALTIES)[:, None])
        moments, share = T.T @ y, y.mean(axis=0)
        whole = shrink[:, :, None] * moments
        errors = np.empty((len(PENALTIES), *y.shape))
        for movie, name in enumerate(names):
            out = movie_of == movie
            _refuse_constant(present[~out], str(name))
            for index, factors in enumerate(shrink):
                scaled = T[out] * np.sqrt(factors)
                own = np.eye(len(scaled)) - 1 / len(y) - scaled @ scaled.T
                left = y[out] - share - T[out] @ whole[index]
                errors[index, out] = linalg.solve(own, left, assume_a="pos")
        losses = np.mean(errors * errors, axis=1)
        chosen = np.argmin(losses, axis=0)
        each = np.arange(y.shape[1])
        factors, weights = shrink[chosen].T, whole[chosen, :, each].T
        error = errors[chosen, :, each].T
        distances = np.empty_like(y)
        for movie in range(names.size):
            out = movie_of == movie
            left_out = weights - factors * (T[out].T @ error[out])
            offsets = _midway(left_out, moments - T[out].T @ y[out], -T[out].sum(axis=0), y[~out])
            lengths = np.sqrt(np.einsum("rk,rk->k", left_out, left_out))
            distances[out] = (T[out] @ left_out + offsets) / np.where(lengths > 0, lengths, 1.0)
        offsets = _midway(weights, moments, np.zeros(len(spread)), y)
        directions = np.ascontiguousarray((axes @ weights).T)
        planes = Hyperplanes(directions, offsets - directions @ centre)
    return Tuned(losses, chosen, planes, distances)


Axes = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]

_KEPT: OrderedDict[bytes, Axes] = OrderedDict()
N_KEPT = 16
"""Decompositions kept: each film left out has one, which all concepts and heads share."""


def _axes_of(X: Floats) -> Axes:
    """Decompose X, or give the decomposition of the same X from before."""
    key = hashlib.blake2b(np.ascontiguousarray(X).tobytes() + str((X.shape, X.dtype)).encode()).digest()
    if key not in _KEPT:
        _KEPT[key] = _axes(X)
    _KEPT.move_to_end(key)
    while len(_KEPT) > N_KEPT:
        _KEPT.popitem(last=False)
    return _KEPT[key]


def _axes(
    X: Floats,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Give X's mean [D], its axes V [D, R], the sum of squares along each [R], and X in them, T [N, R].

    From the smaller of the two matrices of products, with fewer clips than features that of the clips.
    """
    wide = np.asarray(X, dtype=np.float64)
    centre = wide.mean(axis=0)
    centred = wide - centre
    if len(centred) >= centred.shape[1]:
        spread, axes = linalg.eigh(centred.T @ centred)
        return centre, axes, np.maximum(spread, 0.0), centred @ axes
    spread, rotation = linalg.eigh(centred @ centred.T)
    # Rounding leaves directions without any spread a tiny one, or a negative.
    real = spread > 1e-12 * spread[-1]
    length = np.sqrt(spread[real])
    return centre, centred.T @ (rotation[:, real] / length), spread[real], rotation[:, real] * length


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
    offsets: NDArray[np.float64] = -np.einsum("rk,rk->k", weights, middle)
    return offsets


def _refuse_constant(present: NDArray[np.bool_], movie: str) -> None:
    constant = present.all(axis=0) | ~present.any(axis=0)
    if constant.any():
        raise ConceptError(
            f"without movie {movie} concept {int(np.argmax(constant))} has clips of one class only"
        )
