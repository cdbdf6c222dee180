"""Fit logistic regression with an L2 penalty on many subsets of the same clips, all in one product.

Folds of movies are subsets of the same clips. Fitted one after the other, each of them reads the features
anew in every step. Here a step reads them once for all: the logits of K fits are X W with W of K columns, and
their gradients X' R. `fold_scaling` says how each fit standardises its clips by their own moments although
all read the same matrix, `fold_losses` what is computed of each clip, and `fold_descent` how the minima are
found.

Every fit begins with the weights of the fit on all clips. Figures: benchmarks/README.md, zoo.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from obygaze_models.models.fold_descent import PAIRS, FoldDescent, FoldProblem, PrincipalAxes, StepHistory
from obygaze_models.models.fold_scaling import Base, Floats, Masks, Numbers, scale_folds
from obygaze_models.models.ridge_path import RidgePath
from obygaze_models.models.scaling import Moments

WIDTH = 16
"""Fits are handled in multiples of this number, filled up with repeats: the kernels of a product then treat
every fit alike."""

MOST_FITS = 128
"""Fits of a block, where memory allows it."""

MOST_BYTES = 200_000_000
"""Bytes of a block's logits, residuals and steps."""

START_TOLERANCE = 1e-4
"""Where the fit on all clips ends: it is a start, which each fit goes on from."""

NARROW_TOLERANCE = 2e-6
"""Steps in float32, at half the cost or less, end with one that changes logits by at most this share of their
own deviation. Penalties can be compared there."""

TOLERANCE = 1e-7
"""The same of the last steps, whose gradients are computed in float64."""

MOST_STEPS = 1000
"""Steps after which a fit is given up."""


class PathFits(NamedTuple):
    """Fits of one penalty on several subsets of the clips, near enough to their minima to compare penalties.

    Attributes
    ----------
    subsets : ndarray of int, shape [K]
        Which of the subsets asked for, by their columns.
    penalty : int
        Which of the penalties asked for.
    logits : ndarray of float32, shape [N, K]
        Of all clips, standardised as the subset's clips are.
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
        Which of the subsets asked for, by their columns.
    logits : ndarray, shape [N, K]
        Of all clips, standardised as the subset's clips are.
    weights : ndarray, shape [D, K]
        For features standardised by the subset's moments.
    intercepts : ndarray, shape [K]
    moments : Moments
        Of each subset, [K, D].
    n_steps : ndarray of int, shape [K]
        Steps that each fit took.
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
        """Standardise all clips and find the principal axes that the fits on subsets share."""
        self.y = y.astype(np.float64)
        self.base = Base(X, limit)
        self.axes = PrincipalAxes.from_features(self.base.wide)
        self._fit_on_all = RidgePath(self.base.wide, self.y)
        self._starts: dict[float, Floats] = {}

    def path(self, subsets: Masks, strengths: Sequence[float]) -> Iterator[PathFits]:
        """Fit every penalty on every subset of the clips, block by block, to `NARROW_TOLERANCE`.

        Parameters
        ----------
        subsets : ndarray of bool, shape [N, K]
            Each with clips of both classes.
        strengths : sequence of float
            C of each penalty, the strongest penalty (the smallest C) first.

        Yields
        ------
        PathFits
            Of each block and penalty.

        Warns
        -----
        ConvergenceWarning
            A fit was given up.
        """
        for columns in self._blocks(subsets.shape[1]):
            block = _Block(self, subsets[:, columns])
            last_start = np.zeros(self.base.X.shape[1] + 1)
            for penalty, C in enumerate(strengths):
                # From one penalty to the next, all fits are moved as the fit on all clips moves.
                start = self._start(C)
                block.shift_coefficients((start - last_start)[:, None])
                last_start = start
                block.clear_history()
                block.descend(np.full(len(columns), C), self.base.narrow, NARROW_TOLERANCE)
                yield PathFits(columns, penalty, block.logits_of_fits(), block.coefficients_of_fits())

    def minima(
        self, subsets: Masks, strengths: Sequence[float], coefficients: Floats | None = None
    ) -> Iterator[FoldFits]:
        """Fit each subset of the clips with a penalty of its own, block by block, to `TOLERANCE`.

        Parameters
        ----------
        subsets : ndarray of bool, shape [N, K]
            Each with clips of both classes.
        strengths : sequence of float, length K
            C of each fit.
        coefficients : ndarray, shape [D + 1, K], optional
            To go on from, as `path` gave them for the same subsets; by default those of the fit on all clips.

        Yields
        ------
        FoldFits
            Of each block.

        Warns
        -----
        ConvergenceWarning
            A fit was given up.
        """
        for columns in self._blocks(subsets.shape[1]):
            block = _Block(self, subsets[:, columns])
            C_of_fits = np.array([strengths[column] for column in columns])
            if coefficients is None:
                block.shift_coefficients(np.stack([self._start(C) for C in C_of_fits.tolist()], axis=1))
                block.descend(C_of_fits, self.base.narrow, NARROW_TOLERANCE)
            else:
                block.shift_coefficients(coefficients[:, columns])
            block.descend(C_of_fits, self.base.wide, TOLERANCE)
            yield block.fits(columns)

    def _blocks(self, n_subsets: int) -> Iterator[NDArray[np.intp]]:
        """Split the subsets into blocks, and yield the indices of each block's subsets."""
        width = block_width(*self.base.X.shape)
        for first in range(0, n_subsets, width):
            yield np.arange(first, min(first + width, n_subsets))

    def _start(self, C: float) -> Floats:
        """Return weights and intercept [D + 1] of the fit on all clips, from which the fits of subsets start.

        C is the inverse strength of the penalty, as scikit-learn has it.
        """
        if C not in self._starts:
            # C multiplies the sum of losses, while the path minimises their mean.
            strength = 1 / (C * len(self.y))
            self._fit_on_all.advance(strength, START_TOLERANCE, MOST_STEPS)
            weights, intercept = self._fit_on_all.solution()
            self._starts[C] = np.append(weights, intercept)
        return self._starts[C]


def block_width(n_clips: int, n_features: int) -> int:
    """Compute how many fits to run in one block: as many as memory allows, in multiples of `WIDTH`.

    `n_clips` and `n_features` are those of the feature matrix.
    """
    # A fit holds about five float64 per clip and ten per feature, plus the history of its steps.
    bytes_of_one = 8 * (5 * n_clips + (2 * PAIRS + 10) * n_features)
    fits = MOST_BYTES // bytes_of_one // WIDTH * WIDTH
    return int(np.clip(fits, WIDTH, MOST_FITS))


class _Block:
    """Fits on some subsets of the clips, which go to their minima together.

    Their number is filled up to a multiple of `WIDTH` with repeats of them, whose results nobody reads. Below
    n_fits is the number of the subsets, and K that with the repeats.

    Attributes
    ----------
    coefficients : ndarray, shape [D + 1, K]
        Where each fit is: weights, then the intercept.
    logits : ndarray, shape [N, K]
        Of all clips; empty before the first descent.
    n_steps : ndarray of int, shape [K]
        Steps that each fit has taken.
    """

    def __init__(self, clips: FoldLogistic, subsets: Masks) -> None:
        """Scale the features by each subset; the last fits repeat the first to fill a multiple of `WIDTH`."""
        self.clips = clips
        self.n_fits = subsets.shape[1]
        n_filled = _round_up_to_width(self.n_fits)
        # The subset of each of the K fits.
        self.subset_of = np.arange(n_filled) % self.n_fits
        self.inside = subsets[:, self.subset_of]
        self.scaling, self.moments = scale_folds(clips.base, self.inside)
        n_coefficients = clips.base.X.shape[1] + 1
        self.coefficients = np.zeros((n_coefficients, n_filled))
        self.logits: Numbers = np.zeros((0, n_filled))
        self.n_steps = np.zeros(n_filled, np.int64)
        self._history = StepHistory.empty(n_coefficients, n_filled)

    def shift_coefficients(self, change: Floats) -> None:
        """Add a change to the coefficients, of each fit, [D + 1, n_fits], or the same of all, [D + 1, 1]."""
        if change.shape[1] > 1:
            # A column for each of the K fits, repeats included.
            change = change[:, self.subset_of]
        self.coefficients += change
        # A feature that is constant in a fit's clips keeps a weight of 0.
        self.coefficients[:-1][self.scaling.stretch == 0] = 0.0

    def clear_history(self) -> None:
        """Drop the history of steps, which tells the curvature for the previous penalty."""
        self._history = StepHistory.empty(*self.coefficients.shape)

    def logits_of_fits(self) -> Numbers:
        """Return the logits [N, n_fits], without those of the repeats."""
        return self.logits[:, : self.n_fits]

    def coefficients_of_fits(self) -> Floats:
        """Copy the coefficients [D + 1, n_fits], without those of the repeats."""
        return self.coefficients[:, : self.n_fits].copy()

    def fits(self, subsets: NDArray[np.intp]) -> FoldFits:
        """Return the results of the block, without the repeats.

        `subsets` [n_fits] are the indices of the block's subsets among all.
        """
        kept = slice(0, self.n_fits)
        return FoldFits(
            subsets=subsets,
            logits=self.logits[:, kept].astype(np.float64, copy=False),
            weights=self.coefficients[:-1, kept],
            intercepts=self.coefficients[-1, kept],
            moments=Moments(self.moments.mean[kept], self.moments.scale[kept]),
            n_steps=self.n_steps[kept],
        )

    def descend(self, strengths: Floats, features: Numbers, tolerance: float) -> None:
        """Minimise the losses of all fits; fits that have converged take no further steps.

        Parameters
        ----------
        strengths : ndarray, shape [n_fits]
            C of each fit.
        features : ndarray, shape [N, D]
            The base, in the precision of the steps.
        tolerance : float
            Of `FoldDescent`.
        """
        problem = FoldProblem(
            base=self.clips.base,
            axes=self.clips.axes,
            y=self.clips.y,
            scaling=self.scaling,
            inside=self.inside,
            C=strengths[self.subset_of],
        )
        # Indices of the fits that still take steps.
        running = np.arange(len(self.subset_of))
        descent = FoldDescent(problem, features, tolerance, self.coefficients.copy(), self._history.copy())
        # The logits of all K fits; those that converge early are written back by `_store`.
        self.logits = descent.losses.logits
        for _ in range(MOST_STEPS):
            has_converged = descent.step()
            self.n_steps[running] += 1
            n_running = int(np.count_nonzero(~has_converged))
            if not n_running:
                break
            width = _round_up_to_width(n_running)
            if width < len(running):
                self._store(running, descent)
                # Converged fits fill up the multiple of WIDTH.
                kept = np.sort(np.argsort(has_converged, kind="stable")[:width])
                running = running[kept]
                descent = descent.take(kept)
        else:
            warnings.warn(
                f"logistic regression did not converge in {MOST_STEPS} steps",
                ConvergenceWarning,
                stacklevel=4,
            )
        self._store(running, descent)

    def _store(self, fits: NDArray[np.intp], descent: FoldDescent) -> None:
        """Copy coefficients, logits and history of some fits, given their indices, from a descent."""
        self.coefficients[:, fits] = descent.coefficients
        if len(fits) < len(self.subset_of):
            self.logits[:, fits] = descent.losses.logits
        self._history.put(fits, descent.history)


def _round_up_to_width(n_fits: int) -> int:
    """Round a number of fits up to a multiple of `WIDTH`."""
    return math.ceil(n_fits / WIDTH) * WIDTH
