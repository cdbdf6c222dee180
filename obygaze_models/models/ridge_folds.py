"""Fit logistic regression with an L2 penalty on many subsets of the same clips, all in one product.

Folds of movies are subsets of the same clips. Fitted one after the other, each of them reads the features
anew in every step. Here a step reads them once for all: the logits of K fits are X W with W of K columns, and
their gradients X' R. `fold_scaling` says how each fit standardises its clips by their own moments although
all read the same matrix, `fold_losses` what is computed of each clip, and `fold_descent` how the minima are
found.

Every fit begins with the weights of the fit on all clips. Figures: benchmarks/README.md, zoo.
"""

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
        self.y = y.astype(np.float64)
        self.base = Base(X, limit)
        self.axes = PrincipalAxes.of(self.base.wide)
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
                # The fits of a block follow the fit on all clips from one penalty to the next.
                start = self._start(C)
                block.add((start - last_start)[:, None])
                last_start = start
                block.forget_steps()
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
                block.add(np.stack([self._start(C) for C in C_of_fits.tolist()], axis=1))
                block.descend(C_of_fits, self.base.narrow, NARROW_TOLERANCE)
            else:
                block.add(coefficients[:, columns])
            block.descend(C_of_fits, self.base.wide, TOLERANCE)
            yield block.fits(columns)

    def _blocks(self, n_subsets: int) -> Iterator[NDArray[np.intp]]:
        """Deal the columns of the subsets into blocks."""
        width = block_width(*self.base.X.shape)
        for first in range(0, n_subsets, width):
            yield np.arange(first, min(first + width, n_subsets))

    def _start(self, C: float) -> Floats:
        """Return weights and intercept [D + 1] of the fit on all clips with a penalty C."""
        if C not in self._starts:
            # C weighs the sum of losses, and the path minimises their mean.
            self._fit_on_all.advance(1 / (C * len(self.y)), START_TOLERANCE, MOST_STEPS)
            weights, intercept = self._fit_on_all.solution()
            self._starts[C] = np.append(weights, intercept)
        return self._starts[C]


def block_width(n_clips: int, n_features: int) -> int:
    """Count the fits of a block: as many as memory allows, a multiple of `WIDTH`."""
    # Of each fit some five numbers a clip and ten a feature are at hand, besides the steps remembered.
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
        self.clips = clips
        self.n_fits = subsets.shape[1]
        n_filled = _filled_up(self.n_fits)
        # The subset of each of the K fits.
        self.subset_of = np.arange(n_filled) % self.n_fits
        self.inside = subsets[:, self.subset_of]
        self.scaling, self.moments = scale_folds(clips.base, self.inside)
        n_coefficients = clips.base.X.shape[1] + 1
        self.coefficients = np.zeros((n_coefficients, n_filled))
        self.logits: Numbers = np.zeros((0, n_filled))
        self.n_steps = np.zeros(n_filled, np.int64)
        self._history = StepHistory.empty(n_coefficients, n_filled)

    def add(self, change: Floats) -> None:
        """Add to the coefficients a change of each fit, [D + 1, n_fits], or one for all fits, [D + 1, 1]."""
        if change.shape[1] > 1:
            # A column for each of the K fits, repeats included.
            change = change[:, self.subset_of]
        self.coefficients += change
        # A feature that is constant in a fit's clips has no weight.
        self.coefficients[:-1][self.scaling.stretch == 0] = 0.0

    def forget_steps(self) -> None:
        """Forget what steps told of the curvature, since the penalty is another now."""
        self._history = StepHistory.empty(*self.coefficients.shape)

    def logits_of_fits(self) -> Numbers:
        """Give the logits [N, n_fits]."""
        return self.logits[:, : self.n_fits]

    def coefficients_of_fits(self) -> Floats:
        """Copy the coefficients [D + 1, n_fits]."""
        return self.coefficients[:, : self.n_fits].copy()

    def fits(self, subsets: NDArray[np.intp]) -> FoldFits:
        """Give the fits as they are; `subsets` [n_fits] says which of those asked for they are."""
        kept = slice(0, self.n_fits)
        return FoldFits(
            subsets,
            self.logits[:, kept].astype(np.float64, copy=False),
            self.coefficients[:-1, kept],
            self.coefficients[-1, kept],
            Moments(self.moments.mean[kept], self.moments.scale[kept]),
            self.n_steps[kept],
        )

    def descend(self, strengths: Floats, features: Numbers, tolerance: float) -> None:
        """Minimise the losses of all fits, and drop those from the steps that have ended.

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
        # Which of the K fits take steps.
        running = np.arange(len(self.subset_of))
        descent = FoldDescent(problem, features, tolerance, self.coefficients.copy(), self._history.copy())
        # Logits of fits that end early are written into those of the first descent.
        self.logits = descent.losses.logits
        for _ in range(MOST_STEPS):
            has_ended = descent.step()
            self.n_steps[running] += 1
            n_running = int(np.count_nonzero(~has_ended))
            if not n_running:
                break
            width = _filled_up(n_running)
            if width < len(running):
                self._keep(running, descent)
                # Fits that have ended fill up the others.
                kept = np.sort(np.argsort(has_ended, kind="stable")[:width])
                running = running[kept]
                descent = descent.take(kept)
        else:
            warnings.warn(
                f"logistic regression did not converge in {MOST_STEPS} steps",
                ConvergenceWarning,
                stacklevel=4,
            )
        self._keep(running, descent)

    def _keep(self, fits: NDArray[np.intp], descent: FoldDescent) -> None:
        """Take over where some of the K fits are now."""
        self.coefficients[:, fits] = descent.coefficients
        if len(fits) < len(self.subset_of):
            self.logits[:, fits] = descent.losses.logits
        self._history.put(fits, descent.history)


def _filled_up(n_fits: int) -> int:
    """Round a number of fits up to a multiple of `WIDTH`."""
    return -(-n_fits // WIDTH) * WIDTH
