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
"""Tolerance of the fit on all clips. It may be coarse, as each fit goes on from there."""

TOLERANCES = {np.float32: 2e-7, np.float64: 1e-7}
"""A fit ends with a step that changes logits by at most this share of their own deviation.

Most steps compute products with the features in float32, at half the cost. Weights and sums stay in float64,
so that less exact steps cost at most more steps. The last steps compute products in float64.
"""

MOST_STEPS = 1000
"""Steps after which a fit is given up."""

FLAT = 0.3
"""A step ends where the slope along it is at most this share of the slope where it began."""

MOST_TRIALS = 10
"""Lengths that are tried for a step, at most."""

MOST_GROWTH = 8.0
"""How many times as long as the last length the next one is, at most."""

FLATTEST = 1e-12
"""Least mean curvature. It is that of logits of 28 on the right side, where nothing is left to gain."""

NOTHING = 1e-6
"""Added to the deviation of logits, so that a step can be compared with it where logits hardly vary."""

LOOK_AGAIN = 8
"""Steps after which the deviation of logits is computed again."""

PATIENCE = 10
"""Steps in a row that are not `SMALLER` than the least one before, after which only rounding is left. This
ends a fit only if its least step was `NEAR` the end."""

SMALLER = 0.9
"""A step counts as smaller if it is below this share of the least step before."""

NEAR = 1e-3
"""Size of a step that is near the end."""

ROWS = 256
"""Clips whose logits are handled at a time, which stay in a core's cache."""


class FoldFits(NamedTuple):
    """Fits of one penalty on several subsets of the clips.

    Attributes
    ----------
    subsets : ndarray of int, shape [K]
        Indices of the subsets among the columns of the masks that were given.
    penalty : int
        Index of the penalty among the strengths that were given.
    logits : ndarray, shape [N, K]
        Logits of all clips, whose features are standardised by the subset's moments.
    weights : ndarray, shape [D, K]
        For features standardised by the subset's moments.
    intercepts : ndarray, shape [K]
    moments : Moments
        Means and deviations of the features in each subset, [K, D].
    n_steps : ndarray of int, shape [K]
        Steps that each fit took.
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
        Features, all finite.
    y : ndarray of int, shape [N]
    limit : float
        Number of deviations from the mean at which standardised features are cut off.

    Attributes
    ----------
    whole : Moments
        Means and deviations of the features over all clips [D].
    base : ndarray, shape [N, D]
        Features standardised by `whole` and cut off.
    narrow : ndarray of float32, shape [N, D]
        The same in single precision.
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
        n_subsets = subsets.shape[1]
        width = block_width(len(self.base), self.base.shape[1])
        for first in range(0, n_subsets, width):
            indices = np.arange(first, min(first + width, n_subsets))
            block = _Block(self, subsets[:, indices])
            for penalty, C in enumerate(strengths):
                block.advance(self._start(C), C)
                yield block.solution(indices, penalty)

    def cut_between(self, low: Floats, high: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Find the values of the base that some fit, or the base itself, cuts off.

        Parameters
        ----------
        low, high : ndarray, shape [D]
            The tightest limits of any fit for each feature, on the scale of the base.

        Returns
        -------
        rows, columns : ndarray of int, shape [E]
        """
        lowest = np.maximum(low, -self.limit)
        highest = np.minimum(high, self.limit)
        rows, columns = np.nonzero((self.base <= lowest) | (self.base >= highest))
        return rows, columns

    def _start(self, C: float) -> Floats:
        """Fit all clips with a penalty: their weights and, last, their intercept, [D + 1]."""
        if C not in self._starts:
            self._path.advance(1 / (C * len(self.y)), START_TOLERANCE, MOST_STEPS)
            weights, intercept = self._path.solution()
            self._starts[C] = np.append(weights, intercept)
        return self._starts[C]


def block_width(n_clips: int, n_features: int) -> int:
    """Count the fits of a block: as many as memory allows, a multiple of `WIDTH`."""
    # A fit has some 5 arrays of clips and 10 of features, beside its steps and what they changed.
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
        """Find the axes of features [N, D] by their covariance, or by products of clips if these are fewer.

        Both matrices have the same eigenvalues above 0, and the smaller one is decomposed faster.
        """
        n_clips, n_features = base.shape
        centred = base - base.mean(axis=0)
        if n_clips >= n_features:
            spread, axes = linalg.eigh(centred.T @ centred / n_clips, check_finite=False)
            # Smaller variances can't be told from rounding; one of 0 would be divided by.
            return cls(axes.astype(np.float32), np.maximum(spread, FLATTEST * spread[-1]))
        spread, clip_vectors = linalg.eigh(centred @ centred.T / n_clips, check_finite=False)
        is_real = spread > FLATTEST * spread[-1]
        # An eigenvector of clips becomes one of features by the centred features and its length.
        axes = centred.T @ (clip_vectors[:, is_real] / np.sqrt(n_clips * spread[is_real]))
        return cls(axes.astype(np.float32), spread[is_real])

    def over_curvature(self, gradient: Floats, curvature: Floats, strength: Floats) -> Floats:
        """Divide gradients by the curvature of the losses along each axis.

        Parameters
        ----------
        gradient : ndarray, shape [D, K]
        curvature : ndarray, shape [K]
            Mean over clips of p (1 - p), which stands in for the curvature of each clip.
        strength : ndarray, shape [K]
            Strength of each fit's penalty.

        Returns
        -------
        ndarray, shape [D, K]
        """
        along_axes = (self.axes.T @ gradient.astype(np.float32)).astype(np.float64)  # [R, K]
        loss_curvature = curvature * self.spread[:, None] + strength
        n_features = len(self.axes)
        n_axes = len(self.spread)
        if n_features == n_axes:
            return np.asarray(self.axes @ (along_axes / loss_curvature).astype(np.float32), np.float64)
        # In directions that are on no axis features do not vary: there the loss curves by its penalty alone.
        correction = along_axes * (1 / loss_curvature - 1 / strength)
        return gradient / strength + self.axes @ correction.astype(np.float32)


# --- how a fit standardises
# ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Scaling:
    """How each of K fits standardises, relative to the base, which is standardised by all clips.

    A fit's feature is ``stretch * (value - centre)``. The value is the base's, with a change of the few
    values that the fit and the base cut off at different limits.

    Attributes
    ----------
    centre, stretch : ndarray, shape [D, K]
        The stretch of a feature that is constant in a fit's clips is 0: it tells the fit nothing.
    rows, columns : ndarray of int, shape [E]
        Clip and feature of each value that the base or some fit cuts off.
    change : ndarray, shape [E, K]
        What each fit adds to these values of the base.
    """

    centre: Floats
    stretch: Floats
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    change: Floats

    @classmethod
    def of(cls, clips: FoldLogistic, inside: Masks) -> "tuple[_Scaling, Moments]":
        """Compare the moments of subsets [N, K] with those of all clips.

        Returns
        -------
        scaling : _Scaling
        moments : Moments
            Means and deviations of each subset [K, D], by which its fit standardises.
        """
        raw_moments = moments_of_subsets(clips.X, inside)
        is_flat = is_constant(raw_moments.mean, raw_moments.scale, clips.X.dtype)
        subset_moments = safe_scale(raw_moments.mean, raw_moments.scale, clips.X.dtype)
        mean = clips.whole.mean.astype(np.float64)
        scale = clips.whole.scale.astype(np.float64)
        centre = (subset_moments.mean - mean) / scale  # [K, D]
        stretch = scale / subset_moments.scale
        reach = clips.limit / stretch
        low = centre - reach
        high = centre + reach
        rows, columns = clips.cut_between(low.max(axis=0), high.min(axis=0))
        uncut = (clips.X[rows, columns] - mean[columns]) / scale[columns]
        cut = np.clip(uncut, low[:, columns], high[:, columns])  # [K, E]
        change = np.ascontiguousarray((cut - clips.base[rows, columns]).T)
        stretch[is_flat] = 0.0
        # From here on the last axis is the fit: [D, K].
        centre = np.ascontiguousarray(centre.T)
        stretch = np.ascontiguousarray(stretch.T)
        return cls(centre, stretch, rows, columns, change), subset_moments

    def take(self, fits: NDArray[np.intp]) -> "_Scaling":
        """Select some of the fits."""
        return replace(
            self, centre=self.centre[:, fits], stretch=self.stretch[:, fits], change=self.change[:, fits]
        )

    def logits(self, base: NDArray[np.floating[Any]], weights: Floats) -> Floats:
        """Compute the logits [N, K] that weights and intercepts [D + 1, K] give; the base is [N, D]."""
        stretched = self.stretch * weights[:-1]
        logits = (base @ stretched.astype(base.dtype)).astype(np.float64)
        logits += weights[-1] - np.einsum("dk,dk->k", self.centre, stretched)
        if len(self.rows):
            logits += _summing_matrix(self.rows, len(base)) @ (self.change * stretched[self.columns])
        return np.asarray(logits)

    def gradient(self, base: NDArray[np.floating[Any]], residuals: Floats) -> Floats:
        """Compute the gradient of summed losses [D + 1, K] from residuals [N, K]; the base is [N, D]."""
        n_features = base.shape[1]
        gradient = np.empty((n_features + 1, residuals.shape[1]))
        gradient[-1] = residuals.sum(axis=0)
        gradient[:-1] = base.T @ residuals.astype(base.dtype)
        if len(self.rows):
            changed = self.change * residuals[self.rows]
            gradient[:-1] += _summing_matrix(self.columns, n_features) @ changed
        gradient[:-1] -= self.centre * gradient[-1]
        gradient[:-1] *= self.stretch
        return gradient


def _summing_matrix(rows: NDArray[np.intp], n_rows: int) -> csr_array:
    """Make the matrix [n_rows, E] that adds up E values, each into its row [E]."""
    n_values = len(rows)
    ones = np.ones(n_values)
    return csr_array((ones, (rows, np.arange(n_values))), shape=(n_rows, n_values))


# --- a block of fits
# ---------------------------------------------------------------------------


class _Block:
    """Fits on K subsets of the clips, for one penalty after the other.

    It keeps the weights [D + 1, K] and logits [N, K] of the last penalty, and the last steps of the descent.
    The fits are filled up to a multiple of `WIDTH` by repeats, which no solution shows.
    """

    def __init__(self, clips: FoldLogistic, subsets: Masks) -> None:
        self.clips = clips
        self.n_fits = subsets.shape[1]
        n_filled = _whole_widths(self.n_fits)
        self.inside = subsets[:, np.arange(n_filled) % self.n_fits]
        self.scaling, self.moments = _Scaling.of(clips, self.inside)
        self.weights = np.zeros((clips.X.shape[1] + 1, n_filled))
        self.logits = np.zeros(self.inside.shape)
        self.n_steps = np.zeros(n_filled, np.int64)
        self._last_start = np.zeros(len(self.weights))
        self._steps = np.zeros((PAIRS, *self.weights.shape))
        self._changes = np.zeros_like(self._steps)

    def solution(self, subsets: NDArray[np.intp], penalty: int) -> FoldFits:
        """Return the fits of the penalty that was last advanced to."""
        fits = slice(0, self.n_fits)
        return FoldFits(
            subsets=subsets,
            penalty=penalty,
            logits=self.logits[:, fits],
            weights=self.weights[:-1, fits],
            intercepts=self.weights[-1, fits],
            moments=Moments(self.moments.mean[fits], self.moments.scale[fits]),
            n_steps=self.n_steps[fits],
        )

    def advance(self, start: Floats, C: float) -> None:
        """Minimise the losses with a penalty, from the minima with the penalty before.

        Parameters
        ----------
        start : ndarray, shape [D + 1]
            Weights of the fit on all clips with this penalty. All fits are first moved as this one moved
            from the penalty before.
        C : float
            Inverse strength of the penalty.
        """
        self.weights += (start - self._last_start)[:, None]
        self.weights[:-1][self.scaling.stretch == 0] = 0.0
        self._last_start = start
        # What earlier steps told of the curvature does not hold for another penalty.
        self._steps[:] = 0.0
        self._changes[:] = 0.0
        for base in (self.clips.narrow, self.clips.base):
            self._descend(base, C)

    def _descend(self, base: NDArray[np.floating[Any]], C: float) -> None:
        """Minimise the losses by products with the features in one precision.

        Fits that are finished are left out of the products as soon as `WIDTH` of them can be.
        """
        fits = np.arange(self.inside.shape[1])
        descent = _Descent(self, base, C, self.scaling, self.inside)
        descent.begin(self.weights.copy(), list(self._steps), list(self._changes))
        for _ in range(MOST_STEPS):
            is_finished = descent.step()
            self.n_steps[fits] += 1
            n_running = np.count_nonzero(~is_finished)
            if not n_running:
                break
            width = _whole_widths(n_running)
            if width < len(fits):
                # Running fits come first; finished ones fill the last multiple of WIDTH.
                running_first = np.argsort(is_finished, kind="stable")
                selected = np.sort(running_first[:width])
                self._store(fits, descent)
                fits = fits[selected]
                descent = descent.take(selected)
        else:
            warnings.warn(
                f"logistic regression did not converge in {MOST_STEPS} steps",
                ConvergenceWarning,
                stacklevel=4,
            )
        self._store(fits, descent)

    def _store(self, fits: NDArray[np.intp], descent: "_Descent") -> None:
        """Copy the state of a descent into the columns of its fits."""
        self.weights[:, fits] = descent.weights
        self.logits[:, fits] = descent.logits
        for pair in range(PAIRS):
            self._steps[pair][:, fits] = descent.steps[pair]
            self._changes[pair][:, fits] = descent.changes[pair]


def _whole_widths(n_fits: int) -> int:
    """Round a number of fits up to a multiple of `WIDTH`."""
    return -(-n_fits // WIDTH) * WIDTH


class _Descent:
    """The way of K fits to their minima; the last axis of all arrays is the fit.

    Attributes
    ----------
    weights, gradient : ndarray, shape [D + 1, K]
        Weights and, last, intercepts; and the gradient of the mean loss and its penalty by these.
    logits, residuals : ndarray, shape [N, K]
        Logits of all clips; probability less label of the clips inside, 0 for others.
    curvature : ndarray, shape [K]
        Mean over the clips inside of p (1 - p).
    steps, changes : list of ndarray, shape [D + 1, K]
        The last steps, and how each changed the gradient; 0 where there was no step.
    n_steps : int
        Steps taken.
    deviations : ndarray, shape [K]
        Deviation of the logits over the clips inside, every `LOOK_AGAIN` steps.
    least : ndarray, shape [K]
        Size of the least step that counted as smaller than those before.
    since : ndarray of int, shape [K]
        Steps taken since that one.
    """

    def __init__(
        self, block: _Block, base: NDArray[np.floating[Any]], C: float, scaling: _Scaling, inside: Masks
    ) -> None:
        self.block = block
        self.clips = block.clips
        self.base = base
        self.C = C
        self.scaling = scaling
        self.inside = inside
        self.sizes = inside.sum(axis=0).astype(np.float64)
        self.strengths = 1 / (C * self.sizes)
        self.tolerance = TOLERANCES[base.dtype.type]

    def begin(self, weights: Floats, steps: list[Floats], changes: list[Floats]) -> None:
        """Begin with weights, and with steps that were taken before."""
        n_fits = len(self.sizes)
        self.weights = weights
        self.steps = steps
        self.changes = changes
        self.logits = self.scaling.logits(self.base, weights)
        no_step = np.zeros(n_fits)
        losses = _losses_along(self.logits, self.logits, no_step, self.clips.y, self.inside)
        self.curvature = losses.curvature / self.sizes
        self.residuals = losses.residuals
        self.gradient = self._gradient(losses.residuals)
        self.n_steps = 0
        self.least = np.full(n_fits, np.inf)
        self.since = np.zeros(n_fits, np.int64)

    def take(self, fits: NDArray[np.intp]) -> "_Descent":
        """Return the descent of some of the fits, as far as it has come."""
        part = _Descent(self.block, self.base, self.C, self.scaling.take(fits), self.inside[:, fits])
        part.weights = self.weights[:, fits]
        part.logits = self.logits[:, fits]
        part.residuals = self.residuals[:, fits]
        part.gradient = self.gradient[:, fits]
        part.curvature = self.curvature[fits]
        part.n_steps = self.n_steps
        part.deviations = self.deviations[fits]
        part.least = self.least[fits]
        part.since = self.since[fits]
        part.steps = [step[:, fits] for step in self.steps]
        part.changes = [change[:, fits] for change in self.changes]
        return part

    def step(self) -> NDArray[np.bool_]:
        """Take a step, and mark the fits [K] that are finished with it."""
        direction = self._direction()
        change = self.scaling.logits(self.base, direction)
        if self.n_steps % LOOK_AGAIN == 0:
            self.deviations = _deviations(self.logits, self.inside)
        self.n_steps += 1
        changed = np.sqrt(_column_products(change, change * self.inside) / self.sizes)
        is_finished = self._is_finished(changed / (self.deviations + NOTHING))
        length = self._length(direction, change)
        direction *= length
        change *= length
        self.weights += direction
        self.logits += change
        gradient = self._gradient(self.residuals)
        self.steps = [*self.steps[1:], direction]
        self.changes = [*self.changes[1:], gradient - self.gradient]
        self.gradient = gradient
        return is_finished

    def _is_finished(self, size: Floats) -> NDArray[np.bool_]:
        """Mark the fits [K] whose step is small enough, or whose steps no longer become smaller.

        Near the end, steps that do not become smaller for long are rounding.
        """
        is_smaller = size < SMALLER * self.least
        self.since = np.where(is_smaller, 0, self.since + 1)
        self.least = np.where(is_smaller, size, self.least)
        is_rounding = (self.since >= PATIENCE) & (self.least < NEAR)
        return np.asarray((size <= self.tolerance) | is_rounding)

    def _gradient(self, residuals: Floats) -> Floats:
        """Compute the gradient [D + 1, K] of the mean loss and its penalty from residuals [N, K]."""
        gradient = self.scaling.gradient(self.base, residuals)
        gradient /= self.sizes
        gradient[:-1] += self.strengths * self.weights[:-1]  # no penalty on the intercept
        return gradient

    def _direction(self) -> Floats:
        """Compute the quasi-Newton directions [D + 1, K], by the two loops of L-BFGS."""
        direction = -self.gradient
        past = []
        for step, change in zip(reversed(self.steps), reversed(self.changes), strict=True):
            product = _column_products(step, change)
            if not product.any():
                break  # no step was taken there or earlier
            inverse = np.divide(1.0, product, out=np.zeros_like(product), where=product > 0)
            amount = _column_products(step, direction) * inverse
            direction -= amount * change
            past.append((step, change, inverse, amount))
        # Between the loops stands the inverse of a first guess of the curvature.
        direction[-1] /= self.curvature
        direction[:-1] = self.clips.axes.over_curvature(direction[:-1], self.curvature, self.strengths)
        for step, change, inverse, amount in reversed(past):
            direction += (amount - _column_products(change, direction) * inverse) * step
        direction[:-1][self.scaling.stretch == 0] = 0.0
        return np.asarray(direction)

    def _length(self, direction: Floats, change: Floats) -> Floats:
        """Find how far each fit goes along its direction [K], and take the residuals of the logits there.

        This is Newton's method in one dimension, kept between a length that is too short and one that is too
        long. Slopes are computed from the logits, which are exact; products in float32 are not quite.

        Parameters
        ----------
        direction : ndarray, shape [D + 1, K]
        change : ndarray, shape [N, K]
            How a step of length 1 changes the logits.
        """
        n_fits = len(self.sizes)
        penalty_slope = self.strengths * _column_products(self.weights[:-1], direction[:-1])
        penalty_bend = self.strengths * _column_products(direction[:-1], direction[:-1])
        first_slope = _column_products(self.residuals, change) / self.sizes + penalty_slope
        flat_enough = FLAT * np.abs(first_slope)
        length = np.ones(n_fits)
        shortest = np.zeros(n_fits)
        longest = np.full(n_fits, np.inf)
        losses = _losses_along(self.logits, change, length, self.clips.y, self.inside)
        self.residuals = losses.residuals
        self.curvature = losses.curvature / self.sizes
        fits = np.arange(n_fits)  # those whose length is still being looked for
        for _ in range(MOST_TRIALS):
            slope = losses.slope / self.sizes[fits] + (
                penalty_slope[fits] + length[fits] * penalty_bend[fits]
            )
            is_steep = np.abs(slope) > flat_enough[fits]
            if not is_steep.any():
                break
            bend = losses.bend(change[:, fits]) / self.sizes[fits] + penalty_bend[fits]
            fits = fits[is_steep]
            slope = slope[is_steep]
            bend = bend[is_steep]
            is_short = slope < 0
            shortest[fits[is_short]] = length[fits[is_short]]
            longest[fits[~is_short]] = length[fits[~is_short]]
            length[fits] = _next_length(length[fits], slope, bend, shortest[fits], longest[fits])
            losses = _losses_along(
                self.logits[:, fits], change[:, fits], length[fits], self.clips.y, self.inside[:, fits]
            )
            self.residuals[:, fits] = losses.residuals
            self.curvature[fits] = losses.curvature / self.sizes[fits]
        return length


def _next_length(length: Floats, slope: Floats, bend: Floats, shortest: Floats, longest: Floats) -> Floats:
    """Choose the next length [K]: where Newton's method sees the lowest loss, if that is within the limits.

    Otherwise it is the middle between the longest length known to be too short and the shortest known to be
    too long, or, without the latter, `MOST_GROWTH` times the last length.
    """
    newton = length - slope / np.maximum(bend, np.finfo(np.float64).tiny)
    is_between = (newton > shortest) & (newton < longest) & (newton < MOST_GROWTH * length)
    middle = np.where(np.isfinite(longest), (shortest + longest) / 2, MOST_GROWTH * length)
    return np.where(is_between, newton, middle)


class _Losses(NamedTuple):
    """Derivatives of the losses of K fits, summed over the clips inside, at one point along their steps.

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
        """Compute the second derivative by the length of the step [K], which changes logits by [N, K]."""
        # The residual is p or p - 1, so that p (1 - p) is its size less its square.
        weighted = np.abs(self.residuals)
        weighted -= self.residuals * self.residuals
        weighted *= change
        return _column_products(weighted, change)


def _losses_along(logits: Floats, change: Floats, length: Floats, y: Floats, inside: Masks) -> _Losses:
    """Compute the derivatives of the logistic losses of K fits after steps of some lengths.

    Parameters
    ----------
    logits : ndarray, shape [N, K]
        Logits before the step.
    change : ndarray, shape [N, K]
        How a step of length 1 changes them.
    length : ndarray, shape [K]
    y : ndarray, shape [N]
        Labels, 0 or 1.
    inside : ndarray of bool, shape [N, K]
        Clips that each fit is fitted on.
    """
    n_fits = len(length)
    slope = np.zeros(n_fits)
    curvature = np.zeros(n_fits)
    residuals = np.empty_like(logits)
    for start in range(0, len(logits), ROWS):
        rows = slice(start, start + ROWS)
        residual = residuals[rows]  # a view, which is filled in place
        # p = 1 / (1 + exp(-s)) = (1 + tanh(s / 2)) / 2, which numpy computes three times as fast.
        np.multiply(change[rows], length / 2, out=residual)
        residual += logits[rows] / 2
        np.tanh(residual, out=residual)
        residual /= 2
        residual += 0.5 - y[rows, None]
        residual *= inside[rows]
        slope += _column_products(residual, change[rows])
        # The residual is p or p - 1, so that p (1 - p) is its size less its square.
        curvature += np.abs(residual).sum(axis=0) - _column_products(residual, residual)
    return _Losses(slope, np.maximum(curvature, FLATTEST * len(y)), residuals)


def _deviations(logits: Floats, inside: Masks) -> Floats:
    """Compute the deviation [K] of logits [N, K] over the clips inside."""
    n_clips = inside.sum(axis=0)
    sums = np.zeros(len(n_clips))
    squares = np.zeros(len(n_clips))
    for start in range(0, len(logits), ROWS):
        rows = slice(start, start + ROWS)
        logits_inside = logits[rows] * inside[rows]
        sums += logits_inside.sum(axis=0)
        squares += _column_products(logits_inside, logits_inside)
    variance = squares / n_clips - (sums / n_clips) ** 2
    # Rounding can leave less than 0.
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def _column_products(left: Floats, right: Floats) -> Floats:
    """Compute the inner product of each column with the other's [K], of two arrays [D, K]."""
    return np.asarray(np.einsum("dk,dk->k", left, right))
