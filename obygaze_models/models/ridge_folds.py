"""Fit logistic regression with an L2 penalty on many subsets of the same clips, all in one product.

Folds of movies are subsets of the same clips. Fitted one after the other, each of them reads the features
anew in every step. Here a step reads them once for all fits: the logits of K fits are X W, and their
gradients X' R, with weights W and residuals R of K columns. Each fit standardises its clips by their own
moments although all read the same matrix (`fold_scaling`). `fold_losses` computes the losses, and
`fold_descent` finds the minima.

Every fit begins with the weights of the fit on all clips. Figures: benchmarks/README.md, zoo.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_models.models.convergence import warn_not_converged
from obygaze_models.models.fold_descent import (
    N_REMEMBERED_STEPS,
    FoldDescent,
    FoldProblem,
    PrincipalAxes,
    StepHistory,
)
from obygaze_models.models.fold_scaling import Floats, Masks, Numbers, SharedFeatures, scale_folds
from obygaze_models.models.ridge_path import RidgePath
from obygaze_models.models.scaling import MeanAndScale

WIDTH = 16
"""The number of fits in a block is a multiple of this; some fits are repeated to fill it up.

A matrix library handles columns in groups of about this many, and the last, smaller group by other kernels,
which round differently. With whole groups alone, a fit does not depend on its place in the block."""

MAX_FITS = 128
"""Largest number of fits in a block."""

MAX_BYTES = 200_000_000
"""Largest size of a block's logits, residuals and steps, in bytes."""

START_TOLERANCE = 1e-4
"""Tolerance of the fit on all clips, from which the fits on subsets start."""

FLOAT32_TOLERANCE = 2e-6
"""Tolerance of `FoldDescent` for steps in float32, which take at most half the time of those in float64.

It is small enough to compare penalties."""

FLOAT64_TOLERANCE = 1e-7
"""Tolerance of `FoldDescent` for the last steps, whose gradients are computed in float64."""

MAX_STEPS = 1000
"""Number of steps after which a fit that has not converged is given up, with a warning."""


class PathFits(NamedTuple):
    """Fits with one penalty on several subsets of the clips, precise enough to compare penalties.

    Attributes
    ----------
    subsets : ndarray of int, shape [K]
        Columns of these subsets in the argument of `FoldLogistic.path`.
    penalty : int
        Index of the penalty in the argument of `FoldLogistic.path`.
    logits : ndarray of float32, shape [N, K]
        Logits of all clips, standardised by the moments of the subset's clips.
    coefficients : ndarray, shape [D + 1, K]
        Weights and intercept, from which `FoldLogistic.minima` can go on.
    """

    subsets: NDArray[np.intp]
    penalty: int
    logits: Numbers
    coefficients: Floats


class FoldFits(NamedTuple):
    """Converged fits on several subsets of the clips.

    Attributes
    ----------
    subsets : ndarray of int, shape [K]
        Columns of these subsets in the argument of `FoldLogistic.minima`.
    logits : ndarray, shape [N, K]
        Logits of all clips, standardised by the moments of the subset's clips.
    weights : ndarray, shape [D, K]
        Weights of features that are standardised by the subset's moments.
    intercepts : ndarray, shape [K]
    mean_and_scale : MeanAndScale
        Moments of each subset's clips, [K, D].
    n_steps : ndarray of int, shape [K]
        Steps that each fit took.
    """

    subsets: NDArray[np.intp]
    logits: Floats
    weights: Floats
    intercepts: Floats
    mean_and_scale: MeanAndScale
    n_steps: NDArray[np.int64]


class FoldLogistic:
    """Logistic regression on subsets of clips X [N, D] with labels y [N], 0 or 1.

    Parameters
    ----------
    X : ndarray, shape [N, D]
        Features; all are finite.
    y : ndarray of int, shape [N]
    limit : float
        Number of deviations at which standardised features are clipped.
    """

    def __init__(self, X: NDArray[np.floating[Any]], y: NDArray[np.int64], limit: float) -> None:
        """Prepare once what the fits on all subsets of the clips need.

        They share features that are standardised on all clips, cut off at `limit` deviations; their principal
        axes, along which curvature is known; and for each penalty a start, the fit on all clips.
        """
        self.y = y.astype(np.float64)
        self.shared = SharedFeatures(X, limit)
        self.axes = PrincipalAxes.from_features(self.shared.float64)
        self._path_on_all = RidgePath(self.shared.float64, self.y)
        self._fits_on_all: dict[float, Floats] = {}  # C -> coefficients, filled by `_fit_on_all`

    def path(self, subsets: Masks, strengths: Sequence[float]) -> Iterator[PathFits]:
        """Fit every subset of the clips with every penalty, to `FLOAT32_TOLERANCE` (a regularisation path).

        Each penalty's fits start from those of the stronger penalty before it, moved by as much as the fit on
        all clips changes from that penalty to this one.

        Parameters
        ----------
        subsets : ndarray of bool, shape [N, K]
            The clips of each subset, which has both classes.
        strengths : sequence of float
            C of each penalty, the strongest penalty (the smallest C) first.

        Yields
        ------
        PathFits
            One for each block of subsets and each penalty.

        Warns
        -----
        ConvergenceWarning
            A fit was given up.
        """
        n_coefficients = self.shared.X.shape[1] + 1
        for columns in self._blocks(subsets.shape[1]):
            # The fits of some subsets, which are minimised together.
            block = _Block(self, subsets[:, columns])
            fit_at_last_penalty = np.zeros(n_coefficients)  # on all clips
            for penalty, C in enumerate(strengths):
                # A good start: the fits on subsets differ little from the fit on all clips, and from one
                # penalty to the next they change by about as much. With the first penalty they start from the
                # fit on all clips itself, as all coefficients are 0 before.
                fit_on_all = self._fit_on_all(C)
                change = fit_on_all - fit_at_last_penalty
                fit_at_last_penalty = fit_on_all
                block.begin_penalty(change[:, None])

                C_of_fits = np.full(len(columns), C)
                # float32 is fast, and precise enough for this tolerance.
                block.descend(C_of_fits, self.shared.float32, FLOAT32_TOLERANCE)
                yield PathFits(
                    subsets=columns,
                    penalty=penalty,
                    logits=block.logits_of_fits(),
                    coefficients=block.coefficients_of_fits(),
                )

    def minima(
        self, subsets: Masks, strengths: Sequence[float], coefficients: Floats | None = None
    ) -> Iterator[FoldFits]:
        """Fit each subset of the clips with its own penalty, to `FLOAT64_TOLERANCE`.

        Steps on float32 features are faster, but cannot reach this tolerance: they come first, unless `path`
        has already taken them, and steps on float64 features last.

        Parameters
        ----------
        subsets : ndarray of bool, shape [N, K]
            The clips of each subset, which has both classes.
        strengths : sequence of float, length K
            C of each fit, the inverse strength of its penalty.
        coefficients : ndarray, shape [D + 1, K], optional
            Coefficients to start from, as `path` gave them for the same subsets; by default those of the fit
            on all clips.

        Yields
        ------
        FoldFits
            One for each block of subsets.

        Warns
        -----
        ConvergenceWarning
            A fit was given up.
        """
        for columns in self._blocks(subsets.shape[1]):
            block = _Block(self, subsets[:, columns])
            C_of_fits = np.array([strengths[column] for column in columns])
            if coefficients is None:
                # A block's coefficients are 0 at first. They are shifted to those of the fit on all clips
                # with the same penalty, which is near the fits on subsets.
                fits_on_all = np.stack([self._fit_on_all(C) for C in C_of_fits.tolist()], axis=1)
                block.shift_coefficients(fits_on_all)
                block.descend(C_of_fits, self.shared.float32, FLOAT32_TOLERANCE)
            else:
                # `path` has already taken the steps in float32.
                block.shift_coefficients(coefficients[:, columns])
            block.descend(C_of_fits, self.shared.float64, FLOAT64_TOLERANCE)
            yield block.fits(columns)

    def _blocks(self, n_subsets: int) -> Iterator[NDArray[np.intp]]:
        """Split the subsets into blocks as large as memory allows, and yield the indices of each block's."""
        width = block_width(*self.shared.X.shape)
        for first in range(0, n_subsets, width):
            yield np.arange(first, min(first + width, n_subsets))

    def _fit_on_all(self, C: float) -> Floats:
        """Return weights and intercept [D + 1] of the fit on all clips, from which the fits of subsets start.

        C is the inverse strength of the penalty, as in scikit-learn. Results are cached.
        """
        if C not in self._fits_on_all:
            # C multiplies the sum of losses, while the path minimises their mean.
            strength = 1 / (C * len(self.y))
            # The tolerance is coarse, as the fit is only a start for others.
            self._path_on_all.advance(strength, START_TOLERANCE, MAX_STEPS)
            weights, intercept = self._path_on_all.solution()
            self._fits_on_all[C] = np.append(weights, intercept)
        return self._fits_on_all[C]


def block_width(n_clips: int, n_features: int) -> int:
    """Compute how many fits to run in one block: as many as memory allows, in multiples of `WIDTH`.

    `n_clips` and `n_features` are those of the feature matrix.
    """
    # A fit holds these arrays of one float64 per clip: logits twice, their change, residuals and the mask of
    # training clips.
    n_arrays_of_clips = 5
    # It holds these of one float64 per feature: coefficients, gradient, direction, moments and intermediate
    # results, about ten; and the steps of the history, each with its change of the gradient.
    n_arrays_of_features = 10 + 2 * N_REMEMBERED_STEPS
    bytes_of_fit = 8 * (n_arrays_of_clips * n_clips + n_arrays_of_features * n_features)
    n_fits_in_memory = MAX_BYTES // bytes_of_fit
    n_fits = n_fits_in_memory // WIDTH * WIDTH
    return int(np.clip(n_fits, WIDTH, MAX_FITS))


class _Block:
    """Fits on some subsets of the clips, which are minimised together.

    The fits are filled up to a multiple of `WIDTH` with repeats of the first ones, whose results are not
    used: a fit's rounding errors then do not depend on the number of fits beside it (`WIDTH`). Below, n_fits
    is the number of subsets, and K the number of fits with the repeats.

    Attributes
    ----------
    coefficients : ndarray, shape [D + 1, K]
        Present coefficients of each fit: weights, then the intercept.
    logits : ndarray, shape [N, K]
        Logits of all clips; empty before the first descent.
    n_steps : ndarray of int, shape [K]
        Steps that each fit has taken.
    """

    def __init__(self, logistic: FoldLogistic, subsets: Masks) -> None:
        """Repeat fits up to a multiple of `WIDTH`, and compute how each standardises features.

        A matrix library rounds differently in blocks of other widths. With repeats, every block has the same
        kind of width, and a fit does not depend on how many others are in its block.

        Parameters
        ----------
        logistic : FoldLogistic
            What fits on subsets share: features standardised on all clips, and labels.
        subsets : ndarray of bool, shape [N, n_fits]
            The training clips of each fit. Its coefficients start at 0.
        """
        self.logistic = logistic
        self.n_fits = subsets.shape[1]
        n_with_repeats = _round_up_to_width(self.n_fits)
        # The subset of each of the K fits: with 3 subsets 0, 1, 2, 0, 1, 2, 0, ...
        self.subset_of = np.arange(n_with_repeats) % self.n_fits
        self.in_training = subsets[:, self.subset_of]
        # `scaling` leads from the shared features to those that each fit standardises by its own clips, by
        # `mean_and_scale`.
        self.scaling, self.mean_and_scale = scale_folds(logistic.shared, self.in_training)

        n_coefficients = logistic.shared.X.shape[1] + 1
        self.coefficients = np.zeros((n_coefficients, n_with_repeats))
        self.logits: Numbers = np.zeros((0, n_with_repeats))  # of no clip, until a descent computes them
        self.n_steps = np.zeros(n_with_repeats, np.int64)
        self._history = StepHistory.empty(n_coefficients, n_with_repeats)

    def shift_coefficients(self, change: Floats) -> None:
        """Add a change to the coefficients [D + 1, K] of the block's fits.

        The change is the same for all fits [D + 1, 1], or there is one for each of `n_fits` [D + 1, n_fits].
        A block may have more columns than that: it is filled up to K by repeats of its fits (0, 1, 2, 0, 1,
        ...), which get the same changes as the fits that they repeat.
        """
        is_same_for_all = change.shape[1] == 1
        if is_same_for_all:
            self.coefficients += change
        else:
            change_of_column = change[:, self.subset_of]  # [D + 1, K]
            self.coefficients += change_of_column

        # `scale_ratio` is 0 for a feature that is constant in a fit's clips. Its weight stays 0.
        is_constant = self.scaling.scale_ratio == 0  # [D, K]
        weights = self.coefficients[:-1]  # a view: the last row has the intercepts
        weights[is_constant] = 0.0

    def begin_penalty(self, change: Floats) -> None:
        """Prepare the fits for another penalty: add a change [D + 1, 1] to coefficients, and drop history.

        Earlier steps describe the curvature of the loss with the previous penalty, and would mislead L-BFGS.
        """
        self.shift_coefficients(change)
        self._history = StepHistory.empty(*self.coefficients.shape)

    def logits_of_fits(self) -> Numbers:
        """Return the logits [N, n_fits], without those of the repeats."""
        return self.logits[:, : self.n_fits]

    def coefficients_of_fits(self) -> Floats:
        """Copy the coefficients [D + 1, n_fits], without those of the repeats."""
        return self.coefficients[:, : self.n_fits].copy()

    def fits(self, subsets: NDArray[np.intp]) -> FoldFits:
        """Return the results of the block, without the repeats.

        `subsets` [n_fits] are the indices of the block's subsets among all subsets that are fitted.
        """
        kept = slice(0, self.n_fits)
        return FoldFits(
            subsets=subsets,
            logits=self.logits[:, kept].astype(np.float64, copy=False),
            weights=self.coefficients[:-1, kept],
            intercepts=self.coefficients[-1, kept],
            mean_and_scale=MeanAndScale(self.mean_and_scale.mean[kept], self.mean_and_scale.scale[kept]),
            n_steps=self.n_steps[kept],
        )

    def descend(self, C: Floats, features: Numbers, tolerance: float) -> None:
        """Minimise the losses of all fits, from the block's coefficients; keep the results in the block.

        It warns if some fits have not converged after `MAX_STEPS` steps.

        Parameters
        ----------
        C : ndarray, shape [n_fits]
            The inverse strength of each fit's penalty, as in scikit-learn.
        features : ndarray, shape [N, D]
            The shared features, in the precision in which gradients are computed.
        tolerance : float
            As `FoldDescent` takes it.
        """
        problem = FoldProblem(
            shared=self.logistic.shared,
            axes=self.logistic.axes,
            y=self.logistic.y,
            scaling=self.scaling,
            in_training=self.in_training,
            C=C[self.subset_of],
        )

        descent = FoldDescent(problem, features, tolerance, self.coefficients.copy(), self._history.copy())
        all_have_converged = self._step_until_converged(descent)
        if not all_have_converged:
            warn_not_converged(f"{MAX_STEPS} steps")

    def _step_until_converged(self, descent: FoldDescent) -> bool:
        """Step until all fits have converged or `MAX_STEPS` are taken, and store the results in the block.

        Fits that have converged take no further steps, except for those that are needed to keep the number of
        running fits a multiple of `WIDTH`. Without this, a fit's rounding errors would depend on how many
        other fits are still running.

        Returns
        -------
        bool
            Whether all fits have converged.
        """
        self.logits = np.empty_like(descent.losses.logits)
        # The fits in the descent, as indices among the K: all at first, later those that still take steps.
        fits = np.arange(len(self.subset_of))
        for _ in range(MAX_STEPS):
            has_converged = descent.step()
            self.n_steps[fits] += 1
            if has_converged.all():
                self._store(fits, descent)
                return True

            running = _fits_to_run_on(has_converged)
            if len(running) < len(fits):
                self._store(fits, descent)
                descent = descent.take(running)
                fits = fits[running]
        self._store(fits, descent)
        return False

    def _store(self, fits: NDArray[np.intp], descent: FoldDescent) -> None:
        """Copy the coefficients, logits and history of a descent into the block.

        `fits` are the indices of the descent's fits among the K fits of the block.
        """
        self.coefficients[:, fits] = descent.coefficients
        self.logits[:, fits] = descent.losses.logits
        self._history.overwrite(fits, descent.history)


def _fits_to_run_on(has_converged: Masks) -> NDArray[np.intp]:
    """Return the indices of the fits that take further steps, in rising order.

    They are the fits that have not converged, and as many of the others as fill them up to a multiple of
    `WIDTH`. A matrix library rounds differently in the last columns if their number is no such multiple: then
    the result of a fit would depend on how many others are still running.

    `has_converged` [K] marks fits that have converged.
    """
    unconverged = np.flatnonzero(~has_converged)
    converged = np.flatnonzero(has_converged)
    n_to_fill_up = _round_up_to_width(len(unconverged)) - len(unconverged)
    fits_to_run = np.concatenate([unconverged, converged[:n_to_fill_up]])
    return np.sort(fits_to_run)


def _round_up_to_width(n_fits: int) -> int:
    """Round a number of fits up to a multiple of `WIDTH`."""
    return math.ceil(n_fits / WIDTH) * WIDTH
