"""Fit logistic regression with an L2 penalty on many subsets of the same clips, all in one product.

Folds of movies are subsets of the same clips. Fitted one after the other, each of them reads the features
anew in every step. Here a step reads them once for all: the logits of K fits are X W with W of K columns, and
their gradients X' R. Each fit standardises its clips by the moments of its own training clips. That is a
shift and a stretch of each feature, which moves into the weights; only the few values that are cut off at the
limit differ from fit to fit.

Every fit begins with the weights of the fit on all clips. Directions are those of L-BFGS (Nocedal and Wright
2006, Numerical Optimization, algorithm 7.4), begun with the curvature of the fit on all clips; the length of
a step is found on logits alone, which are linear in it. Figures: benchmarks/README.md, zoo.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from obygaze_models.models.ridge_path import RidgePath
from obygaze_models.models.scaling import (
    Moments,
    is_constant,
    moments,
    moments_of_subsets,
    safe_scale,
    standardise,
)

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]

WIDTH = 16
"""Fits are handled in multiples of this number, filled up with repeats: the kernels of a product then treat
every fit alike."""

MOST_FITS = 128
"""Fits of a block, where memory allows it."""

MOST_BYTES = 200_000_000
"""Bytes of a block's logits, residuals and steps."""

PAIRS = 8
"""Steps that L-BFGS remembers."""

START_TOLERANCE = 1e-4
"""Where the fit on all clips ends: it is a start, which each fit goes on from."""

TOLERANCES = {np.float32: 2e-7, np.float64: 1e-7}
"""A fit ends with a step that changes logits by at most this share of their own deviation.

Most steps take products in float32, at half the cost: the weights and what is added up stay in float64, so
that a step less exact is one more step at most. The last ones are in float64.
"""

MOST_STEPS = 1000
"""Steps after which a fit is given up."""

FLAT = 0.3
"""A step is long enough where the slope along it is at most this share of the slope where it began."""

MOST_TRIALS = 10
"""Lengths of a step that are tried."""

MOST_GROWTH = 8.0
"""How many times longer the next length is at most."""

FLATTEST = 1e-12
"""Least mean curvature: with logits of 28 on the right side nothing is left to gain."""

NOTHING = 1e-6
"""Deviation that is added to that of logits: where they hardly vary, steps have nothing to compare with."""

LOOK_AGAIN = 8
"""Steps after which the deviation of logits is computed again."""

PATIENCE = 10
"""Steps without one that is `SMALLER` than before, after which, `NEAR` the end, only rounding is left."""

SMALLER = 0.9
"""What a step is at most, as a share of an earlier one, to count as smaller."""

NEAR = 1e-3
"""Size of a step that is near the end."""

ROWS = 256
"""Clips whose logits are handled at a time, which stay in a core's cache."""


class FoldFits(NamedTuple):
    """Fits of one penalty on several subsets of the clips.

    Attributes
    ----------
    subsets : ndarray of int, shape [K]
        Places of the subsets among those asked for.
    penalty : int
        Place of the penalty among those asked for.
    logits : ndarray, shape [N, K]
        Of all clips, each standardised as the subset's clips are.
    weights : ndarray, shape [D, K]
        For features standardised by the subset's moments.
    intercepts : ndarray, shape [K]
    moments : Moments
        Of each subset, [K, D].
    n_steps : ndarray of int, shape [K]
    """

    subsets: NDArray[np.intp]
    penalty: int
    logits: Floats
    weights: Floats
    intercepts: Floats
    moments: Moments
    n_steps: NDArray[np.int64]


class FoldLogistic:
    """Logistic regression on subsets of clips X [N, D] with labels y [N], 0 or 1.

    Parameters
    ----------
    X : ndarray, shape [N, D]
        Finite.
    y : ndarray of int, shape [N]
    limit : float
        Deviations at which standardised features are cut off.
    """

    def __init__(self, X: NDArray[np.floating[Any]], y: NDArray[np.int64], limit: float) -> None:
        self.X = X
        self.y = y.astype(np.float64)
        self.limit = limit
        self.whole = moments(X)
        self.base: Floats = np.empty(X.shape)
        standardise(X, *self.whole, limit, out=self.base)
        self.narrow = self.base.astype(np.float32)
        self.axes = _Axes.of(self.base)
        self._path = RidgePath(self.base, self.y)
        self._starts: dict[float, Floats] = {}

    def fits(self, subsets: Masks, strengths: Sequence[float]) -> Iterator[FoldFits]:
        """Fit every penalty on every subset [N, K] of the clips, block by block.

        Parameters
        ----------
        subsets : ndarray of bool, shape [N, K]
            Each with clips of both classes.
        strengths : sequence of float
            C of each fit, the strongest penalty (the smallest C) first.

        Yields
        ------
        FoldFits

        Warns
        -----
        ConvergenceWarning
            A fit was given up.
        """
        width = block_width(len(self.base), self.base.shape[1])
        for first in range(0, subsets.shape[1], width):
            places = np.arange(first, min(first + width, subsets.shape[1]))
            block = _Block(self, subsets[:, places])
            for penalty, C in enumerate(strengths):
                block.advance(self._start(C), C)
                yield block.solution(places, penalty)

    def cut_between(self, low: Floats, high: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Find the values that may be cut off where features [D] are cut at `low` and `high`, or beyond."""
        lowest, highest = np.maximum(low, -self.limit), np.minimum(high, self.limit)
        rows, columns = np.nonzero((self.base <= lowest) | (self.base >= highest))
        return rows, columns

    def _start(self, C: float) -> Floats:
        """Give the weights [D] of all clips with a penalty, and their intercept."""
        if C not in self._starts:
            self._path.advance(1 / (C * len(self.y)), START_TOLERANCE, MOST_STEPS)
            weights, intercept = self._path.solution()
            self._starts[C] = np.append(weights, intercept)
        return self._starts[C]


def block_width(n_clips: int, n_features: int) -> int:
    """Count the fits of a block: as many as memory allows, a multiple of `WIDTH`."""
    bytes_of_one = 8 * (5 * n_clips + (2 * PAIRS + 10) * n_features)
    fits = MOST_BYTES // bytes_of_one // WIDTH * WIDTH
    return int(np.clip(fits, WIDTH, MOST_FITS))


# --- how the loss curves
# ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Axes:
    """The principal axes of the features of all clips.

    Attributes
    ----------
    axes : ndarray of float32, shape [D, R]
    spread : ndarray, shape [R]
        The variance along each.
    """

    axes: NDArray[np.float32]
    spread: Floats

    @classmethod
    def of(cls, base: Floats) -> "_Axes":
        """Decompose features [N, D], of which the smaller of two matrices of products is taken."""
        centred = base - base.mean(axis=0)
        if len(base) >= base.shape[1]:
            spread, axes = linalg.eigh(centred.T @ centred / len(base), check_finite=False)
            # What rounding leaves below this can't be told from nothing.
            return cls(axes.astype(np.float32), np.maximum(spread, FLATTEST * spread[-1]))
        spread, turned = linalg.eigh(centred @ centred.T / len(base), check_finite=False)
        real = spread > FLATTEST * spread[-1]
        axes = centred.T @ (turned[:, real] / np.sqrt(len(base) * spread[real]))
        return cls(axes.astype(np.float32), spread[real])

    def over_curvature(self, gradient: Floats, curvature: Floats, strength: Floats) -> Floats:
        """Divide gradients [D, K] by the curvature of losses.

        Clips' curvatures p (1 - p) are replaced by their mean [K]; penalties have strengths [K].
        """
        along = (self.axes.T @ gradient.astype(np.float32)).astype(np.float64)
        size = curvature * self.spread[:, None] + strength
        if len(self.axes) == len(self.spread):
            return np.asarray(self.axes @ (along / size).astype(np.float32), np.float64)
        # Across the axes only the penalty curves.
        across = along * (1 / size - 1 / strength)
        return gradient / strength + self.axes @ across.astype(np.float32)


# --- how a fit standardises
# ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Scaling:
    """What turns the base, standardised by all clips, into the features of each of K fits.

    A fit's feature is ``stretch * (value - centre)``, where the value is the base's but for the few that are
    cut off elsewhere.

    Attributes
    ----------
    centre, stretch : ndarray, shape [D, K]
        The stretch of a feature that is constant in a fit's clips is 0: it tells the fit nothing.
    rows, columns : ndarray of int, shape [E]
        Places of values of the base that some fit cuts off elsewhere.
    change : ndarray, shape [E, K]
        What each fit adds to them.
    """

    centre: Floats
    stretch: Floats
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    change: Floats

    @classmethod
    def of(cls, clips: FoldLogistic, inside: Masks) -> "tuple[_Scaling, Moments]":
        """Compare the moments of subsets [N, K] with those of all clips."""
        found = moments_of_subsets(clips.X, inside)
        constant = is_constant(found.mean, found.scale, clips.X.dtype)
        own = safe_scale(found.mean, found.scale, clips.X.dtype)
        mean, scale = (each.astype(np.float64) for each in clips.whole)
        centre = (own.mean - mean) / scale
        stretch = scale / own.scale
        reach = clips.limit / stretch
        low, high = centre - reach, centre + reach
        rows, columns = clips.cut_between(low.max(axis=0), high.min(axis=0))
        values = (clips.X[rows, columns] - mean[columns]) / scale[columns]
        kept = np.clip(values, low[:, columns], high[:, columns])
        change = np.ascontiguousarray((kept - clips.base[rows, columns]).T)
        stretch[constant] = 0.0
        centre, stretch = np.ascontiguousarray(centre.T), np.ascontiguousarray(stretch.T)
        return cls(centre, stretch, rows, columns, change), own

    def take(self, fits: NDArray[np.intp]) -> "_Scaling":
        """Keep some of the fits."""
        return replace(
            self, centre=self.centre[:, fits], stretch=self.stretch[:, fits], change=self.change[:, fits]
        )

    def logits(self, base: NDArray[np.floating[Any]], weights: Floats) -> Floats:
        """Compute the logits [N, K] of weights [D + 1, K]."""
        stretched = self.stretch * weights[:-1]
        found = (base @ stretched.astype(base.dtype)).astype(np.float64)
        found += weights[-1] - np.einsum("dk,dk->k", self.centre, stretched)
        if len(self.rows):
            found += _sums_at(self.rows, len(base)) @ (self.change * stretched[self.columns])
        return np.asarray(found)

    def gradient(self, base: NDArray[np.floating[Any]], residuals: Floats) -> Floats:
        """Compute the gradient [D + 1, K] of residuals [N, K]."""
        found = np.empty((base.shape[1] + 1, residuals.shape[1]))
        found[-1] = residuals.sum(axis=0)
        found[:-1] = base.T @ residuals.astype(base.dtype)
        if len(self.rows):
            found[:-1] += _sums_at(self.columns, base.shape[1]) @ (self.change * residuals[self.rows])
        found[:-1] -= self.centre * found[-1]
        found[:-1] *= self.stretch
        return found


def _sums_at(places: NDArray[np.intp], n: int) -> csr_array:
    """Make the matrix [n, E] that adds up E values by their places."""
    ones = np.ones(len(places))
    return csr_array((ones, (places, np.arange(len(places)))), shape=(n, len(places)))


# --- a block of fits
# ---------------------------------------------------------------------------


class _Block:
    """Fits on K subsets of the clips, for one penalty after the other."""

    def __init__(self, clips: FoldLogistic, subsets: Masks) -> None:
        self.clips = clips
        self.n_fits = subsets.shape[1]
        n_filled = -(-self.n_fits // WIDTH) * WIDTH
        self.inside = subsets[:, np.arange(n_filled) % self.n_fits]
        self.scaling, self.moments = _Scaling.of(clips, self.inside)
        self.weights = np.zeros((clips.X.shape[1] + 1, n_filled))
        self.logits = np.zeros(self.inside.shape)
        self.n_steps = np.zeros(n_filled, np.int64)
        self._last_start = np.zeros(len(self.weights))
        self._steps = np.zeros((PAIRS, *self.weights.shape))
        self._changes = np.zeros_like(self._steps)

    def solution(self, places: NDArray[np.intp], penalty: int) -> FoldFits:
        """Give the fits as they are."""
        fits = slice(0, self.n_fits)
        return FoldFits(
            places,
            penalty,
            self.logits[:, fits],
            self.weights[:-1, fits],
            self.weights[-1, fits],
            Moments(self.moments.mean[fits], self.moments.scale[fits]),
            self.n_steps[fits],
        )

    def advance(self, start: Floats, C: float) -> None:
        """Minimise the losses with a penalty, from the minima with the one before.

        Where the fit on all clips goes from one penalty to the next [D + 1], its folds go first.
        """
        self.weights += (start - self._last_start)[:, None]
        self.weights[:-1][self.scaling.stretch == 0] = 0.0
        self._last_start = start
        self._steps[:], self._changes[:] = 0.0, 0.0
        for base in (self.clips.narrow, self.clips.base):
            self._descend(base, C)

    def _descend(self, base: NDArray[np.floating[Any]], C: float) -> None:
        """Minimise the losses by products with the features in one precision."""
        fits = np.arange(self.inside.shape[1])
        descent = _Descent(self, base, C, self.scaling, self.inside)
        descent.begin(self.weights.copy(), list(self._steps), list(self._changes))
        for _ in range(MOST_STEPS):
            finished = descent.step()
            self.n_steps[fits] += 1
            n_running = np.count_nonzero(~finished)
            if not n_running:
                break
            width = -(-n_running // WIDTH) * WIDTH
            if width < len(fits):
                # Finished fits fill the rest up.
                kept = np.sort(np.argsort(finished, kind="stable")[:width])
                self._keep(fits, descent)
                fits, descent = fits[kept], descent.take(kept)
        else:
            warnings.warn(
                f"logistic regression did not converge in {MOST_STEPS} steps",
                ConvergenceWarning,
                stacklevel=4,
            )
        self._keep(fits, descent)

    def _keep(self, fits: NDArray[np.intp], descent: "_Descent") -> None:
        self.weights[:, fits] = descent.weights
        self.logits[:, fits] = descent.logits
        for place in range(PAIRS):
            self._steps[place][:, fits] = descent.steps[place]
            self._changes[place][:, fits] = descent.changes[place]


class _Descent:
    """The way of K fits to their minima; the last axis of all arrays is the fit.

    Attributes
    ----------
    weights, gradient : ndarray, shape [D + 1, K]
    logits : ndarray, shape [N, K]
    steps, changes : list of ndarray, shape [D + 1, K]
        The last steps, and what they changed in the gradient; 0 where there was none.
    """

    def __init__(
        self, block: _Block, base: NDArray[np.floating[Any]], C: float, scaling: _Scaling, inside: Masks
    ) -> None:
        self.clips, self.base, self.C = block.clips, base, C
        self.block, self.scaling, self.inside = block, scaling, inside
        self.sizes = inside.sum(axis=0).astype(np.float64)
        self.strengths = 1 / (C * self.sizes)
        self.tolerance = TOLERANCES[base.dtype.type]

    def begin(self, weights: Floats, steps: list[Floats], changes: list[Floats]) -> None:
        """Begin with weights, and with steps that were taken before."""
        self.weights, self.steps, self.changes = weights, steps, changes
        self.logits = self.scaling.logits(self.base, weights)
        here = _look_along(self.logits, self.logits, np.zeros(len(self.sizes)), self.clips.y, self.inside)
        self.curvature = here.curvature / self.sizes
        self.residuals = here.residuals
        self.gradient = self._gradient(here.residuals)
        self.n_steps = 0
        self.least = np.full(len(self.sizes), np.inf)
        self.since = np.zeros(len(self.sizes), np.int64)

    def take(self, fits: NDArray[np.intp]) -> "_Descent":
        """Go on with some of the fits."""
        some = _Descent(self.block, self.base, self.C, self.scaling.take(fits), self.inside[:, fits])
        some.weights, some.logits = self.weights[:, fits], self.logits[:, fits]
        some.residuals = self.residuals[:, fits]
        some.gradient, some.curvature = self.gradient[:, fits], self.curvature[fits]
        some.n_steps, some.deviations = self.n_steps, self.deviations[fits]
        some.least, some.since = self.least[fits], self.since[fits]
        some.steps = [step[:, fits] for step in self.steps]
        some.changes = [change[:, fits] for change in self.changes]
        return some

    def step(self) -> NDArray[np.bool_]:
        """Take a step; tell which fits [K] it leaves finished."""
        direction = self._direction()
        change = self.scaling.logits(self.base, direction)
        if self.n_steps % LOOK_AGAIN == 0:
            self.deviations = _deviations(self.logits, self.inside)
        self.n_steps += 1
        changed = np.sqrt(_dot(change, change * self.inside) / self.sizes)
        finished = self._is_finished(changed / (self.deviations + NOTHING))
        length = self._length(direction, change)
        direction *= length
        change *= length
        self.weights += direction
        self.logits += change
        gradient = self._gradient(self.residuals)
        self.steps = [*self.steps[1:], direction]
        self.changes = [*self.changes[1:], gradient - self.gradient]
        self.gradient = gradient
        return finished

    def _is_finished(self, size: Floats) -> NDArray[np.bool_]:
        """Tell whose steps [K] are small enough, or have become no smaller for long: the rest is rounding."""
        smaller = size < SMALLER * self.least
        self.since = np.where(smaller, 0, self.since + 1)
        self.least = np.where(smaller, size, self.least)
        return np.asarray((size <= self.tolerance) | ((self.since >= PATIENCE) & (self.least < NEAR)))

    def _gradient(self, residuals: Floats) -> Floats:
        """Compute the gradient [D + 1, K] of the mean loss and its penalty."""
        found = self.scaling.gradient(self.base, residuals)
        found /= self.sizes
        found[:-1] += self.strengths * self.weights[:-1]
        return found

    def _direction(self) -> Floats:
        """Compute the quasi-Newton directions [D + 1, K]."""
        found = -self.gradient
        past = []
        for step, change in zip(reversed(self.steps), reversed(self.changes), strict=True):
            product = _dot(step, change)
            if not product.any():
                break
            inverse = np.divide(1.0, product, out=np.zeros_like(product), where=product > 0)
            amount = _dot(step, found) * inverse
            found -= amount * change
            past.append((step, change, inverse, amount))
        found[-1] /= self.curvature
        found[:-1] = self.clips.axes.over_curvature(found[:-1], self.curvature, self.strengths)
        for step, change, inverse, amount in reversed(past):
            found += (amount - _dot(change, found) * inverse) * step
        found[:-1][self.scaling.stretch == 0] = 0.0
        return np.asarray(found)

    def _length(self, direction: Floats, change: Floats) -> Floats:
        """Find how far to go [K], and take the residuals there.

        Newton's method in one dimension, kept between lengths of which one is too short and one too long.
        Slopes are those of the logits as they are, which products in float32 do not quite give.
        """
        penalty_slope = self.strengths * _dot(self.weights[:-1], direction[:-1])
        penalty_bend = self.strengths * _dot(direction[:-1], direction[:-1])
        flat = FLAT * np.abs(_dot(self.residuals, change) / self.sizes + penalty_slope)
        length = np.ones(len(self.sizes))
        shortest, longest = np.zeros_like(length), np.full_like(length, np.inf)
        there = _look_along(self.logits, change, length, self.clips.y, self.inside)
        self.residuals, self.curvature = there.residuals, there.curvature / self.sizes
        tried = np.arange(len(self.sizes))
        for _ in range(MOST_TRIALS):
            penalty = penalty_slope[tried] + length[tried] * penalty_bend[tried]
            slope = there.slope / self.sizes[tried] + penalty
            steep = np.abs(slope) > flat[tried]
            if not steep.any():
                break
            bend = there.bend(change[:, tried]) / self.sizes[tried] + penalty_bend[tried]
            tried, slope, bend = tried[steep], slope[steep], bend[steep]
            short = slope < 0
            shortest[tried[short]] = length[tried[short]]
            longest[tried[~short]] = length[tried[~short]]
            length[tried] = _next_length(length[tried], slope, bend, shortest[tried], longest[tried])
            there = _look_along(
                self.logits[:, tried], change[:, tried], length[tried], self.clips.y, self.inside[:, tried]
            )
            self.residuals[:, tried] = there.residuals
            self.curvature[tried] = there.curvature / self.sizes[tried]
        return length


def _next_length(length: Floats, slope: Floats, bend: Floats, shortest: Floats, longest: Floats) -> Floats:
    """Try the length [K] where Newton's method sees the lowest loss, or one between those known."""
    newton = length - slope / np.maximum(bend, np.finfo(np.float64).tiny)
    between = (newton > shortest) & (newton < longest) & (newton < MOST_GROWTH * length)
    middle = np.where(np.isfinite(longest), (shortest + longest) / 2, MOST_GROWTH * length)
    return np.where(between, newton, middle)


class _Along(NamedTuple):
    """What is seen of the losses of K fits, summed over clips, somewhere along their steps.

    Attributes
    ----------
    slope : ndarray, shape [K]
        Derivative by the length of the step.
    curvature : ndarray, shape [K]
        The sum of p (1 - p).
    residuals : ndarray, shape [N, K]
        Probability less label; 0 for clips outside.
    """

    slope: Floats
    curvature: Floats
    residuals: Floats

    def bend(self, change: Floats) -> Floats:
        """Compute the second derivative [K] by the length of a step that changes logits [N, K] so."""
        size = np.abs(self.residuals)
        size -= self.residuals * self.residuals
        size *= change
        return _dot(size, change)


def _look_along(logits: Floats, change: Floats, length: Floats, y: Floats, inside: Masks) -> _Along:
    """Look a length [K] along changes of logits [N, K] of clips with labels y [N]."""
    slope, curvature = np.zeros(len(length)), np.zeros(len(length))
    residuals = np.empty_like(logits)
    for start in range(0, len(logits), ROWS):
        rows = slice(start, start + ROWS)
        # p = 1 / (1 + exp(-s)) = (1 + tanh(s / 2)) / 2, which numpy has three times as fast.
        residual = np.multiply(change[rows], length / 2, out=residuals[rows])
        residual += logits[rows] / 2
        np.tanh(residual, out=residual)
        residual /= 2
        residual += 0.5 - y[rows, None]
        residual *= inside[rows]
        slope += _dot(residual, change[rows])
        # The residual is p or p - 1, so that p (1 - p) is its size less its square.
        curvature += np.abs(residual).sum(axis=0) - _dot(residual, residual)
    return _Along(slope, np.maximum(curvature, FLATTEST * len(y)), residuals)


def _deviations(logits: Floats, inside: Masks) -> Floats:
    """Compute the deviation [K] of logits [N, K] over the clips inside."""
    n = inside.sum(axis=0)
    sums, squares = np.zeros(len(n)), np.zeros(len(n))
    for start in range(0, len(logits), ROWS):
        rows = slice(start, start + ROWS)
        own = logits[rows] * inside[rows]
        sums += own.sum(axis=0)
        squares += _dot(own, own)
    variance = squares / n - (sums / n) ** 2
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def _dot(left: Floats, right: Floats) -> Floats:
    """Multiply columns with columns [D, K], and add up: [K]."""
    return np.asarray(np.einsum("dk,dk->k", left, right))
