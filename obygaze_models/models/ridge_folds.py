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
from copy import copy
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
Numbers = NDArray[np.floating[Any]]
"""Of float32 on the way to a minimum, of float64 at its end."""
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

NARROW_TOLERANCE = 2e-6
"""Steps in float32, at half the cost or less, end with one that changes logits by at most this share of their
own deviation. Penalties can be compared there."""

TOLERANCE = 1e-7
"""The same of the last steps, whose gradients are computed in float64."""

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
"""Steps after which the size of logits is computed again."""

PATIENCE = 10
"""Steps without one that is `SMALLER` than before, after which, `NEAR` the end, only rounding is left."""

SMALLER = 0.9
"""What a step is at most, as a share of an earlier one, to count as smaller."""

NEAR = 1e-3
"""Size of a step that is near the end."""

ROWS = 256
"""Clips whose logits are handled at a time, which stay in a core's cache."""


class PathFits(NamedTuple):
    """Fits of one penalty on several subsets of the clips, near enough to their minima to compare penalties.

    Attributes
    ----------
    subsets : ndarray of int, shape [K]
        Places of the subsets among those asked for.
    penalty : int
        Place of the penalty among those asked for.
    logits : ndarray of float32, shape [N, K]
        Of all clips, each standardised as the subset's clips are.
    coefficients : ndarray, shape [D + 1, K]
        Weights and intercept, from which `FoldLogistic.minima` can go on.
    """

    subsets: NDArray[np.intp]
    penalty: int
    logits: Numbers
    coefficients: Floats


class FoldFits(NamedTuple):
    """Fits on several subsets of the clips.

    Attributes
    ----------
    subsets : ndarray of int, shape [K]
        Places of the subsets among those asked for.
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

    def path(self, subsets: Masks, strengths: Sequence[float]) -> Iterator[PathFits]:
        """Fit every penalty on every subset [N, K] of the clips, block by block, to `NARROW_TOLERANCE`.

        Parameters
        ----------
        subsets : ndarray of bool, shape [N, K]
            Each with clips of both classes.
        strengths : sequence of float
            C of each fit, the strongest penalty (the smallest C) first.

        Yields
        ------
        PathFits

        Warns
        -----
        ConvergenceWarning
            A fit was given up.
        """
        for places in self._blocks(subsets.shape[1]):
            block = _Block(self, subsets[:, places])
            last_start = np.zeros(self.base.shape[1] + 1)
            for penalty, C in enumerate(strengths):
                # Where the fit on all clips goes from one penalty to the next, its folds go first.
                start = self._start(C)
                block.move((start - last_start)[:, None])
                last_start = start
                block.forget_steps()
                block.descend(np.full(len(places), C), self.narrow, NARROW_TOLERANCE)
                yield PathFits(places, penalty, block.logits[:, : len(places)], block.coefficients_of_fits())

    def minima(
        self, subsets: Masks, strengths: Sequence[float], coefficients: Floats | None = None
    ) -> Iterator[FoldFits]:
        """Fit each subset [N, K] of the clips with a penalty of its own, block by block, to `TOLERANCE`.

        Parameters
        ----------
        subsets : ndarray of bool, shape [N, K]
            Each with clips of both classes.
        strengths : sequence of float, length K
            C of each fit.
        coefficients : ndarray, shape [D + 1, K], optional
            To go on from, as `path` gave them for the same subsets; by default those of all clips.

        Yields
        ------
        FoldFits

        Warns
        -----
        ConvergenceWarning
            A fit was given up.
        """
        for places in self._blocks(subsets.shape[1]):
            block = _Block(self, subsets[:, places])
            own = np.array([strengths[place] for place in places])
            if coefficients is None:
                block.move(np.stack([self._start(C) for C in own.tolist()], axis=1))
                block.descend(own, self.narrow, NARROW_TOLERANCE)
            else:
                block.move(coefficients[:, places])
            block.descend(own, self.base, TOLERANCE)
            yield block.fits(places)

    def cut_between(self, low: Floats, high: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Find the values that may be cut off where features [D] are cut at `low` and `high`, or beyond."""
        lowest, highest = np.maximum(low, -self.limit), np.minimum(high, self.limit)
        rows, columns = np.nonzero((self.base <= lowest) | (self.base >= highest))
        return rows, columns

    def _blocks(self, n_subsets: int) -> Iterator[NDArray[np.intp]]:
        """Deal subsets into blocks: the places of each block's."""
        width = block_width(*self.base.shape)
        for first in range(0, n_subsets, width):
            yield np.arange(first, min(first + width, n_subsets))

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
class _CutValues:
    """Values of the base that some of K fits cut off elsewhere.

    Attributes
    ----------
    rows, columns : ndarray of int, shape [E]
        Their places in the base; rows in order.
    change : ndarray, shape [E, K]
        What each fit adds to them.
    touched : ndarray of int, shape [R]
        The rows that have any.
    by_row, by_column : csr_array, shapes [R, E] and [D, E]
        Add up what belongs to one touched row, to one column.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    change: Floats
    touched: NDArray[np.intp]
    by_row: csr_array
    by_column: csr_array

    @classmethod
    def of(
        cls, rows: NDArray[np.intp], columns: NDArray[np.intp], change: Floats, n_features: int
    ) -> "_CutValues":
        """Note how values are added up."""
        touched, place_of = np.unique(rows, return_inverse=True)
        by_row = _sums_at(place_of, len(touched))
        by_column = _sums_at(columns, n_features)
        return cls(rows, columns, change, touched, by_row, by_column)

    def add_to_logits(self, logits: Numbers, stretched: Floats) -> None:
        """Add to logits [N, K] what the fits' values change in them, with weights of the base [D, K]."""
        if len(self.rows):
            logits[self.touched] += self.by_row @ (self.change * stretched[self.columns])

    def add_to_gradient(self, gradient: Floats, residuals: Numbers) -> None:
        """Add to gradients of the base [D, K] what the fits' values change in them."""
        if len(self.rows):
            gradient += self.by_column @ (self.change * residuals[self.rows])


def _sums_at(places: NDArray[np.intp], n: int) -> csr_array:
    """Make the matrix [n, E] that adds up E values by their places."""
    ones = np.ones(len(places))
    return csr_array((ones, (places, np.arange(len(places)))), shape=(n, len(places)))


@dataclass(frozen=True, eq=False)
class _Scaling:
    """What turns the base, standardised by all clips, into the features of each of K fits.

    A fit's feature is ``stretch * (value - centre)``, where the value is the base's but for the few that are
    cut off elsewhere.

    Attributes
    ----------
    centre, stretch : ndarray, shape [D, K]
        The stretch of a feature that is constant in a fit's clips is 0: it tells the fit nothing.
    cut : _CutValues
    """

    centre: Floats
    stretch: Floats
    cut: _CutValues

    @classmethod
    def of(cls, clips: FoldLogistic, inside: Masks) -> "tuple[_Scaling, Moments]":
        """Compare the moments of subsets [N, K] with those of all clips."""
        found = moments_of_subsets(clips.X, inside)
        constant = is_constant(found.mean, found.scale, clips.X.dtype)
        own = safe_scale(found.mean, found.scale, clips.X.dtype)
        mean = clips.whole.mean.astype(np.float64)
        scale = clips.whole.scale.astype(np.float64)
        centre = (own.mean - mean) / scale
        stretch = scale / own.scale
        reach = clips.limit / stretch
        low, high = centre - reach, centre + reach
        rows, columns = clips.cut_between(low.max(axis=0), high.min(axis=0))
        values = (clips.X[rows, columns] - mean[columns]) / scale[columns]
        kept = np.clip(values, low[:, columns], high[:, columns])
        change = np.ascontiguousarray((kept - clips.base[rows, columns]).T)
        cut = _CutValues.of(rows, columns, change, clips.X.shape[1])
        stretch[constant] = 0.0
        return cls(np.ascontiguousarray(centre.T), np.ascontiguousarray(stretch.T), cut), own

    def take(self, fits: NDArray[np.intp]) -> "_Scaling":
        """Keep some of the fits."""
        cut = replace(self.cut, change=self.cut.change[:, fits])
        return _Scaling(self.centre[:, fits], self.stretch[:, fits], cut)

    def logits(self, base: Numbers, coefficients: Floats) -> Numbers:
        """Compute the logits [N, K] of coefficients [D + 1, K], in the precision of the base [N, D]."""
        stretched = self.stretch * coefficients[:-1]
        intercepts = coefficients[-1] - _dot(self.centre, stretched)
        found: Numbers = base @ stretched.astype(base.dtype)
        found += intercepts.astype(base.dtype)
        self.cut.add_to_logits(found, stretched)
        return found

    def gradient(self, base: Numbers, residuals: Numbers) -> Floats:
        """Compute the gradient [D + 1, K] of residuals [N, K], both in the precision of the base [N, D]."""
        found = np.empty((base.shape[1] + 1, residuals.shape[1]))
        found[-1] = residuals.sum(axis=0, dtype=np.float64)
        found[:-1] = base.T @ residuals
        self.cut.add_to_gradient(found[:-1], residuals)
        found[:-1] -= self.centre * found[-1]
        found[:-1] *= self.stretch
        return found


# --- a block of fits
# ---------------------------------------------------------------------------


class _Block:
    """Fits on K subsets of the clips, filled up to a multiple of `WIDTH`."""

    def __init__(self, clips: FoldLogistic, subsets: Masks) -> None:
        self.clips = clips
        self.n_fits = subsets.shape[1]
        n_filled = -(-self.n_fits // WIDTH) * WIDTH
        self.filled = np.arange(n_filled) % self.n_fits
        self.inside = subsets[:, self.filled]
        self.scaling, self.moments = _Scaling.of(clips, self.inside)
        self.coefficients = np.zeros((clips.X.shape[1] + 1, n_filled))
        self.logits: Numbers = np.zeros((0, n_filled))
        self.n_steps = np.zeros(n_filled, np.int64)
        self._steps = np.zeros((PAIRS, *self.coefficients.shape))
        self._changes = np.zeros_like(self._steps)

    def move(self, by: Floats) -> None:
        """Move the coefficients by some [D + 1, n_fits] or [D + 1, 1]."""
        own = by if by.shape[1] == 1 else by[:, self.filled]
        self.coefficients += own
        self.coefficients[:-1][self.scaling.stretch == 0] = 0.0

    def forget_steps(self) -> None:
        """Forget what steps told of the curvature: the penalty is another."""
        self._steps[:] = 0.0
        self._changes[:] = 0.0

    def coefficients_of_fits(self) -> Floats:
        """Copy the coefficients [D + 1, n_fits]."""
        return self.coefficients[:, : self.n_fits].copy()

    def fits(self, places: NDArray[np.intp]) -> FoldFits:
        """Give the fits as they are."""
        own = slice(0, self.n_fits)
        return FoldFits(
            places,
            self.logits[:, own].astype(np.float64, copy=False),
            self.coefficients[:-1, own],
            self.coefficients[-1, own],
            Moments(self.moments.mean[own], self.moments.scale[own]),
            self.n_steps[own],
        )

    def descend(self, strengths: Floats, base: Numbers, tolerance: float) -> None:
        """Minimise the losses with penalties C [n_fits], in the precision of the base [N, D]."""
        fits = np.arange(len(self.filled))
        descent = _Descent(self, base, tolerance, strengths[self.filled])
        descent.begin(self.coefficients.copy(), list(self._steps), list(self._changes))
        # What all fits have is what the last of them has, in the end.
        self.logits = descent.logits
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
        """Take over where some fits are."""
        self.coefficients[:, fits] = descent.coefficients
        if len(fits) < len(self.filled):
            self.logits[:, fits] = descent.logits
        for place in range(PAIRS):
            self._steps[place][:, fits] = descent.steps[place]
            self._changes[place][:, fits] = descent.changes[place]


class _Descent:
    """The way of K fits to their minima; the last axis of all arrays is the fit.

    What all clips have is in the precision of the base, what features have in float64.

    Attributes
    ----------
    coefficients, gradient : ndarray, shape [D + 1, K]
    logits, residuals : ndarray, shape [N, K]
        A residual is the probability less the label; 0 for clips outside.
    steps, changes : list of ndarray, shape [D + 1, K]
        The last steps, and what they changed in the gradient; 0 where there was none.
    """

    def __init__(self, block: _Block, base: Numbers, tolerance: float, C: Floats) -> None:
        self.narrow, self.axes = block.clips.narrow, block.clips.axes
        self.base = base
        self.scaling = block.scaling
        self.inside = block.inside.astype(base.dtype)
        # 1/2 less the label: what is left of a residual where the logit is 0.
        self.at_zero = (0.5 - block.clips.y).astype(base.dtype)[:, None]
        self.sizes = block.inside.sum(axis=0).astype(np.float64)
        self.strengths = 1 / (C * self.sizes)
        self.tolerance = tolerance

    def begin(self, coefficients: Floats, steps: list[Floats], changes: list[Floats]) -> None:
        """Begin with coefficients, and with steps that were taken before."""
        self.coefficients, self.steps, self.changes = coefficients, steps, changes
        self.logits = self.scaling.logits(self.base, coefficients)
        self.residuals = np.empty_like(self.logits)
        here = self._look_along(self.logits, np.zeros(len(self.sizes)), slice(None))
        self.curvature = here.curvature / self.sizes
        self.gradient = self._gradient()
        self.n_steps = 0
        self.least = np.full(len(self.sizes), np.inf)
        self.since = np.zeros(len(self.sizes), np.int64)

    def take(self, fits: NDArray[np.intp]) -> "_Descent":
        """Go on with some of the fits."""
        some = copy(self)
        some.scaling, some.inside = self.scaling.take(fits), self.inside[:, fits]
        some.sizes, some.strengths = self.sizes[fits], self.strengths[fits]
        some.coefficients, some.gradient = self.coefficients[:, fits], self.gradient[:, fits]
        some.logits, some.residuals = self.logits[:, fits], self.residuals[:, fits]
        some.curvature, some.small = self.curvature[fits], self.small[fits]
        some.least, some.since = self.least[fits], self.since[fits]
        some.steps = [step[:, fits] for step in self.steps]
        some.changes = [change[:, fits] for change in self.changes]
        return some

    def step(self) -> NDArray[np.bool_]:
        """Take a step; tell which fits [K] it leaves finished."""
        direction = self._direction()
        # A step is small beside the logits: float32 does for it, to the precision of their sum.
        change = self.scaling.logits(self.narrow, direction)
        if self.n_steps % LOOK_AGAIN == 0:
            self.small = self._size_of_logits()
        self.n_steps += 1
        begun = self._look_at(change)
        finished = self._is_finished(begun.deviation / self.small)
        length = self._length(direction, change, begun.slope)
        direction *= length
        self.coefficients += direction
        change *= length.astype(change.dtype)
        self.logits += change
        if finished.all():
            return finished
        gradient = self._gradient()
        self.steps = [*self.steps[1:], direction]
        self.changes = [*self.changes[1:], gradient - self.gradient]
        self.gradient = gradient
        return finished

    def _is_finished(self, size: Floats) -> NDArray[np.bool_]:
        """Tell whose steps [K] are small enough, or have become no smaller for long: the rest is rounding."""
        smaller = size < SMALLER * self.least
        self.since = np.where(smaller, 0, self.since + 1)
        self.least = np.where(smaller, size, self.least)
        return np.asarray((size <= 1.0) | ((self.since >= PATIENCE) & (self.least * self.tolerance < NEAR)))

    def _gradient(self) -> Floats:
        """Compute the gradient [D + 1, K] of the mean loss and its penalty."""
        found = self.scaling.gradient(self.base, self.residuals)
        found /= self.sizes
        found[:-1] += self.strengths * self.coefficients[:-1]
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
        found[:-1] = self.axes.over_curvature(found[:-1], self.curvature, self.strengths)
        for step, change, inverse, amount in reversed(past):
            found += (amount - _dot(change, found) * inverse) * step
        found[:-1][self.scaling.stretch == 0] = 0.0
        return np.asarray(found)

    def _size_of_logits(self) -> Floats:
        """Compute which deviation [K] of a step's changes is small: the tolerance, or what rounding hides."""
        sums, squares = np.zeros(len(self.sizes)), np.zeros(len(self.sizes))
        for start in range(0, len(self.logits), ROWS):
            rows = slice(start, start + ROWS)
            own = self.logits[rows] * self.inside[rows]
            sums += own.sum(axis=0)
            squares += _dot(own, own)
        mean_square = squares / self.sizes
        variance = np.maximum(mean_square - (sums / self.sizes) ** 2, 0.0)
        rounding = np.finfo(self.base.dtype).eps * np.sqrt(mean_square)
        return np.asarray(self.tolerance * (np.sqrt(variance) + NOTHING) + rounding)

    def _look_at(self, change: Numbers) -> "_Begun":
        """Look at what a step of length 1 changes in logits [N, K], and at the slope along it."""
        squares, slope = np.zeros(len(self.sizes)), np.zeros(len(self.sizes))
        for start in range(0, len(change), ROWS):
            rows = slice(start, start + ROWS)
            slope += _dot(self.residuals[rows], change[rows])
            own = change[rows] * self.inside[rows]
            squares += _dot(own, own)
        return _Begun(np.sqrt(squares / self.sizes), slope / self.sizes)

    def _length(self, direction: Floats, change: Numbers, first_slope: Floats) -> Floats:
        """Find how far to go [K], and take the residuals there.

        Newton's method in one dimension, kept between lengths of which one is too short and one too long.
        Slopes are those of the logits as they are, which products in float32 do not quite give.
        """
        penalty_slope = self.strengths * _dot(self.coefficients[:-1], direction[:-1])
        penalty_bend = self.strengths * _dot(direction[:-1], direction[:-1])
        flat = FLAT * np.abs(first_slope + penalty_slope)
        length = np.ones(len(self.sizes))
        shortest, longest = np.zeros_like(length), np.full_like(length, np.inf)
        tried = np.arange(len(self.sizes))
        there = self._look_along(change, length, slice(None))
        for _ in range(MOST_TRIALS):
            self.curvature[tried] = there.curvature / self.sizes[tried]
            penalty = penalty_slope[tried] + length[tried] * penalty_bend[tried]
            slope = there.slope / self.sizes[tried] + penalty
            steep = np.abs(slope) > flat[tried]
            if not steep.any():
                break
            tried, slope = tried[steep], slope[steep]
            bend = self._bend_along(change, tried) / self.sizes[tried] + penalty_bend[tried]
            short = slope < 0
            shortest[tried[short]] = length[tried[short]]
            longest[tried[~short]] = length[tried[~short]]
            length[tried] = _next_length(length[tried], slope, bend, shortest[tried], longest[tried])
            there = self._look_along(change, length[tried], tried)
        else:
            self.curvature[tried] = there.curvature / self.sizes[tried]
        return length

    def _look_along(self, change: Numbers, length: Floats, fits: "NDArray[np.intp] | slice") -> "_Along":
        """Take the residuals of some of the fits a length [K] along changes of logits [N, K]."""
        slope, curvature = np.zeros(len(length)), np.zeros(len(length))
        half = (length / 2).astype(change.dtype)
        for start in range(0, len(change), ROWS):
            rows = slice(start, start + ROWS)
            own = change[rows, fits]
            # p = 1 / (1 + exp(-s)) = (1 + tanh(s / 2)) / 2, which numpy has three times as fast.
            residual = self.logits[rows, fits] / 2
            residual += own * half
            np.tanh(residual, out=residual)
            residual /= 2
            residual += self.at_zero[rows]
            residual *= self.inside[rows, fits]
            self.residuals[rows, fits] = residual
            slope += _dot(residual, own)
            # The residual is p or p - 1, so that p (1 - p) is its size less its square.
            curvature += np.abs(residual).sum(axis=0) - _dot(residual, residual)
        return _Along(slope, np.maximum(curvature, FLATTEST * len(change)))

    def _bend_along(self, change: Numbers, fits: NDArray[np.intp]) -> Floats:
        """Compute the second derivative [K] of the summed losses of some fits by the length of a step."""
        bend = np.zeros(len(fits))
        for start in range(0, len(change), ROWS):
            rows = slice(start, start + ROWS)
            residual, own = self.residuals[rows, fits], change[rows, fits]
            curvature = np.abs(residual) - residual * residual
            curvature *= own
            bend += _dot(curvature, own)
        return bend


class _Begun(NamedTuple):
    """What is seen of a step before it is taken.

    Attributes
    ----------
    deviation : ndarray, shape [K]
        Root of the mean square of what length 1 changes in the logits of clips inside.
    slope : ndarray, shape [K]
        Derivative of the mean loss by the length of the step.
    """

    deviation: Floats
    slope: Floats


class _Along(NamedTuple):
    """What is seen of the losses of K fits, summed over clips, somewhere along their steps.

    Attributes
    ----------
    slope : ndarray, shape [K]
        Derivative by the length of the step.
    curvature : ndarray, shape [K]
        The sum of p (1 - p).
    """

    slope: Floats
    curvature: Floats


def _next_length(length: Floats, slope: Floats, bend: Floats, shortest: Floats, longest: Floats) -> Floats:
    """Try the length [K] where Newton's method sees the lowest loss, or one between those known."""
    newton = length - slope / np.maximum(bend, np.finfo(np.float64).tiny)
    between = (newton > shortest) & (newton < longest) & (newton < MOST_GROWTH * length)
    middle = np.where(np.isfinite(longest), (shortest + longest) / 2, MOST_GROWTH * length)
    return np.where(between, newton, middle)


def _dot(left: Numbers, right: Numbers) -> Any:
    """Multiply columns with columns [D, K], and add up: [K]."""
    return np.einsum("dk,dk->k", left, right)
