"""Descend to the minima of many regularised logistic losses at once.

Directions are those of L-BFGS (Nocedal and Wright 2006, Numerical Optimization, algorithm 7.4), whose first
guess of the curvature is that of the fit on all clips. The length of a step is found on logits alone, which
are linear in it.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from obygaze_models.models.fold_losses import FoldLosses
from obygaze_models.models.fold_scaling import (
    Floats,
    FoldScaling,
    Masks,
    Numbers,
    SharedFeatures,
    dot_columns,
)

N_REMEMBERED_STEPS = 8
"""Number of steps that L-BFGS remembers."""

MIN_VARIANCE_SHARE = 1e-12
"""Share of the largest variance below which a variance is taken to be a rounding error."""

FLAT_SHARE = 0.3
"""A step is long enough if the slope at its end is at most this share of the slope at its beginning."""

MAX_TRIALS = 10
"""Number of lengths that are tried for a step."""

MAX_GROWTH = 8.0
"""Largest factor by which a trial of a step's length may exceed the one before."""

STEPS_BETWEEN_CHECKS = 8
"""Number of steps after which the deviation of the logits, to which the tolerance is relative, is updated."""

PATIENCE = 10
"""Number of steps without a smaller one after which a fit that is near its end counts as converged."""

SMALLER_SHARE = 0.9
"""A step counts as smaller than those before if it is less than this share of the smallest of them."""

NEAR_END_CHANGE = 1e-3
"""A fit is near its end if a step changed its logits by less than this share of their deviation."""

ALL_FITS = slice(None)
"""Index of all fits, which copies nothing."""


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """The principal axes of the features of all clips, in which the loss is nearly a sum of parabolas.

    Attributes
    ----------
    axes : ndarray of float32, shape [D, R]
        R is D, or fewer where there are fewer clips than features.
    variance : ndarray, shape [R]
        Of the features along each axis.
    """

    axes: NDArray[np.float32]
    variance: Floats

    @classmethod
    def from_features(cls, features: Floats) -> "PrincipalAxes":
        """Compute the principal axes of features [N, D], from the smaller of two matrices.

        These are the covariance of the features [D, D] and the products of the clips [N, N].
        """
        n_clips, n_features = features.shape
        centred = features - features.mean(axis=0)
        if n_clips >= n_features:
            return cls._from_covariance(centred)
        return cls._from_products_of_clips(centred)

    @classmethod
    def _from_covariance(cls, centred: Floats) -> "PrincipalAxes":
        """Compute all D axes as the eigenvectors of the covariance [D, D] of centred features [N, D]."""
        variance, axes = linalg.eigh(centred.T @ centred / len(centred), check_finite=False)
        # Eigenvalues rise. Those that are smaller than this are rounding errors, which may be negative. Such
        # axes are kept with this variance, so that all D axes span all directions.
        min_variance = MIN_VARIANCE_SHARE * variance[-1]
        return cls(axes.astype(np.float32), np.maximum(variance, min_variance))

    @classmethod
    def _from_products_of_clips(cls, centred: Floats) -> "PrincipalAxes":
        """Compute the axes along which N < D centred clips [N, D] vary, from the clips' products [N, N].

        If u is an eigenvector of centred @ centred.T / N with the eigenvalue v, then centred.T @ u is an
        eigenvector of the covariance. It has the same eigenvalue v, which is the variance along it, and the
        squared length N v.
        """
        n_clips = len(centred)
        variance, eigenvectors = linalg.eigh(centred @ centred.T / n_clips, check_finite=False)
        is_above_rounding = variance > MIN_VARIANCE_SHARE * variance[-1]
        variance = variance[is_above_rounding]
        lengths = np.sqrt(n_clips * variance)
        axes = centred.T @ (eigenvectors[:, is_above_rounding] / lengths)
        return cls(axes.astype(np.float32), variance)

    def divide_by_curvature(self, gradient: Floats, curvature: Floats, strength: Floats) -> Floats:
        """Multiply gradients by the inverse of an approximate Hessian of each fit's regularised loss.

        The Hessian is diagonal along the principal axes: curvature times variance, plus the strength of the
        penalty. Products with the axes are computed in float32, which is precise enough for an approximation.

        Parameters
        ----------
        gradient : ndarray, shape [D, K]
        curvature : ndarray, shape [K]
            Mean of p (1 - p) over a fit's clips.
        strength : ndarray, shape [K]
            Strength of the penalty, ``strength |w|^2 / 2``; this is also its second derivative.

        Returns
        -------
        ndarray, shape [D, K]
        """
        gradient_along_axes = (self.axes.T @ gradient.astype(np.float32)).astype(np.float64)  # [R, K]
        hessian = curvature * self.variance[:, None] + strength  # [R, K], its diagonal along the axes
        n_features, n_axes = self.axes.shape
        axes_span_all_directions = n_axes == n_features
        if axes_span_all_directions:
            return self._sum_along_axes(gradient_along_axes / hessian)

        # The gradient also has a part orthogonal to all axes. The features do not vary there, so that the
        # Hessian is the penalty's strength. First the whole gradient is divided by the strength; then the
        # part along the axes is corrected, which should have been divided by the Hessian.
        divided_by_strength = gradient / strength
        correction_along_axes = gradient_along_axes * (1 / hessian - 1 / strength)
        return divided_by_strength + self._sum_along_axes(correction_along_axes)

    def _sum_along_axes(self, coordinates: Floats) -> Floats:
        """Convert coordinates along the axes [R, K] to vectors [D, K]."""
        return np.asarray(self.axes @ coordinates.astype(np.float32), np.float64)


class StepHistory:
    """The last `N_REMEMBERED_STEPS` steps of K fits and how each changed the gradient, the oldest first.

    Attributes
    ----------
    steps, changes : list of ndarray, shape [D + 1, K]
        Zeros where no step was taken yet. Arrays are never written into, so that copies can share them.
    """

    def __init__(self, steps: list[Floats], changes: list[Floats]) -> None:
        self.steps = steps
        self.changes = changes

    @classmethod
    def empty(cls, n_coefficients: int, n_fits: int) -> "StepHistory":
        """Make a history of `n_fits` fits that have taken no steps yet."""
        shape = (n_coefficients, n_fits)
        steps = [np.zeros(shape) for _ in range(N_REMEMBERED_STEPS)]
        changes = [np.zeros(shape) for _ in range(N_REMEMBERED_STEPS)]
        return cls(steps, changes)

    def add(self, step: Floats, change: Floats) -> None:
        """Append a step and its change of the gradient, [D + 1, K] each, and drop the oldest."""
        self.steps = [*self.steps[1:], step]
        self.changes = [*self.changes[1:], change]

    def copy(self) -> "StepHistory":
        """Copy the lists but not the arrays: steps added to the copy do not appear here."""
        return StepHistory(list(self.steps), list(self.changes))

    def take(self, fits: NDArray[np.intp]) -> "StepHistory":
        """Return the history of some of the fits, given their indices, as a copy."""
        steps = [step[:, fits] for step in self.steps]
        changes = [change[:, fits] for change in self.changes]
        return StepHistory(steps, changes)

    def overwrite(self, fits: NDArray[np.intp], history: "StepHistory") -> None:
        """Replace the steps and changes of some fits, given their indices, by those of `history`."""
        self.steps = _overwrite_columns(self.steps, fits, history.steps)
        self.changes = _overwrite_columns(self.changes, fits, history.changes)

    def newest_first(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield each step with its change of the gradient, [D + 1, K] each, from the newest to the oldest."""
        return zip(reversed(self.steps), reversed(self.changes), strict=True)


def _overwrite_columns(arrays: list[Floats], columns: NDArray[np.intp], values: list[Floats]) -> list[Floats]:
    """Copy arrays [D + 1, K], and set some of their columns, given by index, to the columns of `values`."""
    overwritten = []
    for array, values_of_columns in zip(arrays, values, strict=True):
        copied = array.copy()
        copied[:, columns] = values_of_columns
        overwritten.append(copied)
    return overwritten


class FoldProblem(NamedTuple):
    """K regularised logistic losses of the same clips.

    Attributes
    ----------
    shared : SharedFeatures
        Features of all N clips.
    axes : PrincipalAxes
        Of the shared features.
    y : ndarray, shape [N]
        Labels, 0 or 1.
    scaling : FoldScaling
        How each fit standardises.
    in_training : ndarray of bool, shape [N, K]
        The training clips of each fit; their mean loss is minimised.
    C : ndarray, shape [K]
        As in scikit-learn: the penalty ``|w|^2 / (2 C n)`` is added to the mean loss of n clips.
    """

    shared: SharedFeatures
    axes: PrincipalAxes
    y: Floats
    scaling: FoldScaling
    in_training: Masks
    C: Floats


class FoldDescent:
    """Minimise the losses of K fits together by L-BFGS. The last axis of all arrays is the fit.

    Arrays with a row per clip have the precision of `features`, those with a row per feature are float64.

    Parameters
    ----------
    problem : FoldProblem
    features : ndarray, shape [N, D]
        The shared features, in the precision in which gradients are computed.
    tolerance : float
        A fit has converged if a step changes its logits by at most this share of their deviation.
    coefficients : ndarray, shape [D + 1, K]
        Initial coefficients: weights, then the intercept.
    history : StepHistory
        Earlier steps, which L-BFGS goes on from.

    Attributes
    ----------
    coefficients : ndarray, shape [D + 1, K]
        Present coefficients: weights, then the intercept.
    gradient : ndarray, shape [D + 1, K]
        Of the mean loss with its penalty, at the present coefficients.
    losses : FoldLosses
        At the present coefficients.
    curvature : ndarray, shape [K]
        Mean of p (1 - p) over a fit's clips.
    strengths : ndarray, shape [K]
        Strength of each fit's penalty, relative to the mean loss.
    n_steps : int
        Number of steps taken.
    """

    def __init__(
        self,
        problem: FoldProblem,
        features: Numbers,
        tolerance: float,
        coefficients: Floats,
        history: StepHistory,
    ) -> None:
        """Compute losses, gradients and curvatures of K fits at the coefficients from which steps begin."""
        self.scaling = problem.scaling
        self.axes = problem.axes
        self.features = features
        self.features_float32 = problem.shared.float32
        self.tolerance = tolerance
        self.coefficients = coefficients
        self.history = history

        logits = self.scaling.logits(features, coefficients)
        self.losses = FoldLosses(problem.y, problem.in_training, logits)
        n_fits = len(problem.C)
        self.strengths = 1 / (problem.C * self.losses.n_clips)
        self.curvature = np.empty(n_fits)
        # Residuals and curvatures at the initial coefficients are those after a step of length 0. Any change
        # of logits will do, as it is multiplied by 0: here the logits themselves.
        no_length = np.zeros(n_fits)
        self._set_residuals_after(logits, no_length, ALL_FITS)
        self.gradient = self._gradient()

        self.n_steps = 0
        # The largest change of each fit's logits that is negligible. `step` computes it before the first use.
        self.negligible = np.zeros(n_fits)
        # The size of each fit's smallest step so far, in multiples of the negligible change.
        self.smallest_step = np.full(n_fits, np.inf)
        self.n_steps_since_smallest = np.zeros(n_fits, np.int64)

    def take(self, fits: NDArray[np.intp]) -> "FoldDescent":
        """Return a copy of this descent with only some of the fits, given their indices.

        The features and their principal axes, which are the same for all fits, are shared by both.
        """
        descent = copy(self)
        descent.scaling = self.scaling.take(fits)
        descent.losses = self.losses.take(fits)
        descent.history = self.history.take(fits)
        descent.coefficients = self.coefficients[:, fits]
        descent.gradient = self.gradient[:, fits]
        descent.strengths = self.strengths[fits]
        descent.curvature = self.curvature[fits]
        descent.negligible = self.negligible[fits]
        descent.smallest_step = self.smallest_step[fits]
        descent.n_steps_since_smallest = self.n_steps_since_smallest[fits]
        return descent

    def step(self) -> NDArray[np.bool_]:
        """Take one L-BFGS step with every fit; return which fits [K] have converged.

        A fit has converged if a step of length 1 would change its logits by a negligible amount. The step is
        taken nevertheless, at the length that the line search finds.
        """
        direction = self._quasi_newton_direction()
        # How a step of length 1 changes the logits. It changes them little, so float32 is precise enough.
        change = self.scaling.logits(self.features_float32, direction)

        if self.n_steps % STEPS_BETWEEN_CHECKS == 0:
            self.negligible = self.losses.negligible_change(self.tolerance)
        self.n_steps += 1
        at_length_1 = self.losses.measure_step(change)
        has_converged = self._update_convergence(at_length_1.deviation / self.negligible)

        # The line search leaves residuals and curvatures as they are after the step.
        length = self._line_search(direction, change, at_length_1.slope)
        step = direction * length
        change *= length.astype(change.dtype)
        self.coefficients += step
        self.losses.logits += change

        # The gradient is needed only if another step follows.
        if not has_converged.all():
            self._update_gradient(step)
        return has_converged

    def _update_gradient(self, step: Floats) -> None:
        """Compute the gradient after a step [D + 1, K], and remember by how much the step changed it.

        From the history of these, L-BFGS learns how the loss is curved. The gradient is computed from the
        residuals in `losses`. The line search, which ended at this step, has left them as they are after it.
        """
        gradient = self._gradient()
        self.history.add(step, gradient - self.gradient)
        self.gradient = gradient

    def _update_convergence(self, size: Floats) -> NDArray[np.bool_]:
        """Record the size [K] of the fits' latest steps, and return which fits have converged.

        A fit has converged in either of two cases:

        - its latest step is negligible;
        - some step changed its logits by less than `NEAR_END_CHANGE` of their deviation, and for `PATIENCE`
          steps none was clearly smaller than the smallest before (`SMALLER_SHARE`). The steps then consist of
          rounding errors.

        Parameters
        ----------
        size : ndarray, shape [K]
            Change of the logits by the step, in multiples of the negligible change.
        """
        is_smaller = size < SMALLER_SHARE * self.smallest_step
        self.n_steps_since_smallest = np.where(is_smaller, 0, self.n_steps_since_smallest + 1)
        self.smallest_step = np.where(is_smaller, size, self.smallest_step)

        # A negligible change is about `tolerance` deviations of the logits: this converts multiples of
        # negligible changes to multiples of deviations.
        smallest_in_deviations = self.smallest_step * self.tolerance
        is_near_end = smallest_in_deviations < NEAR_END_CHANGE
        has_stalled = self.n_steps_since_smallest >= PATIENCE
        is_negligible = size <= 1.0
        return np.asarray(is_negligible | (has_stalled & is_near_end))

    def _gradient(self) -> Floats:
        """Compute the gradient [D + 1, K] of each fit's mean loss plus its penalty, by weights and intercept.

        It is that at the coefficients to which the residuals belong.
        """
        gradient = self.scaling.gradient(self.features, self.losses.residuals)
        gradient /= self.losses.n_clips
        # The last coefficient is the intercept, which has no penalty.
        gradient[:-1] += self.strengths * self.coefficients[:-1]
        return gradient

    def _quasi_newton_direction(self) -> Floats:
        """Compute the descent directions [D + 1, K], minus an inverse Hessian times the gradient.

        L-BFGS starts from a first guess of the inverse Hessian, here that of `PrincipalAxes`. It corrects the
        guess by each remembered step s, which changed the gradient by y, such that the inverse Hessian times
        y is s. The two-loop recursion computes the product of the corrected matrix with the gradient without
        forming the matrix (Nocedal and Wright 2006, algorithm 7.4, whose letters are used here). All K fits
        are computed together, a column each: s and y are [D + 1, K], and the products of a fit are numbers
        [K].
        """
        # First loop, from the newest step to the oldest.
        direction = -self.gradient
        remembered = []
        for s, y in self.history.newest_first():
            product = dot_columns(s, y)  # [K]
            if not product.any():
                # No fit has taken this step yet, nor older ones.
                break
            # A fit that has not taken the step has a product of 0. Its rho is set to 0, which corrects
            # nothing.
            rho = np.divide(1.0, product, out=np.zeros_like(product), where=product > 0)
            alpha = rho * dot_columns(s, direction)
            direction -= alpha * y
            remembered.append(_RememberedStep(s, y, rho, alpha))

        # The first guess of the inverse Hessian.
        direction[-1] /= self.curvature  # the intercept has no penalty
        direction[:-1] = self.axes.divide_by_curvature(direction[:-1], self.curvature, self.strengths)

        # Second loop, from the oldest step to the newest.
        oldest_first = reversed(remembered)
        for s, y, rho, alpha in oldest_first:
            beta = rho * dot_columns(y, direction)
            direction += (alpha - beta) * s

        # `scale_ratio` is 0 for a feature that is constant in a fit's clips. Its weight stays 0.
        is_constant = self.scaling.scale_ratio == 0  # [D, K]
        direction[:-1][is_constant] = 0.0
        return np.asarray(direction)

    def _line_search(self, step: Floats, change: Numbers, first_slope: Floats) -> Floats:
        """Find the length of each fit's step, and set residuals and curvatures to those after that step.

        The search is Newton's method in one dimension, kept inside a bracket: between a length that was too
        short and one that was too long. It ends for a fit when the slope along its step is at most
        `FLAT_SHARE` times the slope at its beginning, or after `MAX_TRIALS` lengths. Fits whose search has
        ended keep their length, residuals and curvatures.

        Parameters
        ----------
        step : ndarray, shape [D + 1, K]
        change : ndarray, shape [N, K]
            The change of the logits by a step of length 1.
        first_slope : ndarray, shape [K]
            Derivative of the mean loss along the step at its beginning, without the penalty.

        Returns
        -------
        ndarray, shape [K]
        """
        n_fits = len(self.losses.n_clips)
        penalty = self._penalty_along(step)
        # A fit's search ends where the slope is no steeper than this.
        flat_slope = FLAT_SHARE * np.abs(first_slope + penalty.first_slope)

        length = np.ones(n_fits)
        bracket = _Bracket(n_fits)
        # Slopes are those of the mean loss, plus those of the penalty. ALL_FITS is the index of all fits.
        slope = self._set_residuals_after(change, length, ALL_FITS) + penalty.slope(length, ALL_FITS)
        # The fits whose slope is not flat yet, as indices of all fits. `slope` is of these fits alone.
        searching = np.arange(n_fits)
        for _ in range(MAX_TRIALS):
            is_steep = np.abs(slope) > flat_slope[searching]
            if not is_steep.any():
                break
            searching = searching[is_steep]
            slope = slope[is_steep]
            bracket.narrow(searching, length[searching], slope)

            # The next length of each of these fits, and the slope there.
            curvature_of_losses = self.losses.second_derivative_along(change, searching)
            curvature_of_mean_loss = curvature_of_losses / self.losses.n_clips[searching]
            length[searching] = _next_length(
                length[searching],
                slope,
                curvature_of_mean_loss + penalty.curvature[searching],
                bracket.too_short[searching],
                bracket.too_long[searching],
            )
            slope_of_penalty = penalty.slope(length[searching], searching)
            slope = self._set_residuals_after(change, length[searching], searching) + slope_of_penalty
        return length

    def _penalty_along(self, step: Floats) -> "_PenaltyAlongStep":
        """Describe the penalty along a step [D + 1, K], as a function of the step's length."""
        # Without the intercepts, which have no penalty.
        weights = self.coefficients[:-1]
        change_of_weights = step[:-1]
        return _PenaltyAlongStep(
            first_slope=self.strengths * dot_columns(weights, change_of_weights),
            curvature=self.strengths * dot_columns(change_of_weights, change_of_weights),
        )

    def _set_residuals_after(
        self, change: Numbers, length: Floats, fits: "NDArray[np.intp] | slice"
    ) -> Floats:
        """Set residuals and curvatures of k of the K fits to those after a step, and return the slope there.

        Both are kept as attributes, of which those of the other fits stay. The logits stay as they are, so
        that another length can be tried.

        Parameters
        ----------
        change : ndarray, shape [N, K]
            The change of the logits of all fits by a step of length 1.
        length : ndarray, shape [k]
        fits : ndarray of int or slice
            Indices of the k fits.

        Returns
        -------
        ndarray, shape [k]
            Derivative of the mean loss by the length, without the penalty.
        """
        # Of the summed losses; `update_residuals` also sets `losses.residuals`.
        derivatives = self.losses.update_residuals(change, length, fits)
        self.curvature[fits] = derivatives.curvature / self.losses.n_clips[fits]
        slope: Floats = derivatives.slope / self.losses.n_clips[fits]
        return slope


class _RememberedStep(NamedTuple):
    """A step of K fits, with the numbers of the first loop of L-BFGS that its second loop needs.

    Attributes
    ----------
    s, y : ndarray, shape [D + 1, K]
        The step, and how it changed the gradient.
    rho : ndarray, shape [K]
        1 over the dot product of the two; 0 for a fit that has not taken the step.
    alpha : ndarray, shape [K]
        Multiple of y that the first loop subtracted.
    """

    s: Floats
    y: Floats
    rho: Floats
    alpha: Floats


class _Bracket:
    """Step lengths of K fits between which the loss has its minimum.

    Attributes
    ----------
    too_short, too_long : ndarray, shape [K]
        A length at which the loss still falls is too short, any other too long. Initially 0 and infinity.
    """

    def __init__(self, n_fits: int) -> None:
        """Begin with brackets in which every length of a step lies, as nothing is known of the fits' losses.

        A step of length 0 is too short for certain; no length is known to be too long.
        """
        self.too_short = np.zeros(n_fits)
        self.too_long = np.full(n_fits, np.inf)

    def narrow(self, fits: NDArray[np.intp], length: Floats, slope: Floats) -> None:
        """Narrow the brackets of k fits, given their indices, by lengths [k] that were tried.

        `slope` [k] is the derivative of the loss by the length, there.
        """
        still_falls = slope < 0
        self.too_short[fits[still_falls]] = length[still_falls]
        self.too_long[fits[~still_falls]] = length[~still_falls]


class _PenaltyAlongStep(NamedTuple):
    """The penalty as a function of the length of a step. It is a parabola, as it sums squared weights.

    Attributes
    ----------
    first_slope : ndarray, shape [K]
        Derivative by the length, at length 0.
    curvature : ndarray, shape [K]
        Second derivative, the same at all lengths.
    """

    first_slope: Floats
    curvature: Floats

    def slope(self, length: Floats, fits: "NDArray[np.intp] | slice") -> Floats:
        """Compute the derivative of the penalty at some length, for the fits with these indices."""
        return np.asarray(self.first_slope[fits] + length * self.curvature[fits])


def _next_length(
    length: Floats, slope: Floats, second_derivative: Floats, too_short: Floats, too_long: Floats
) -> Floats:
    """Choose the next step length [K] to try in a line search.

    It is the length that Newton's method gives, if that lies inside the bracket and is less than
    `MAX_GROWTH` times the present length. Otherwise it is the middle of the bracket or, while no length is
    known to be too long, `MAX_GROWTH` times the present length.

    Parameters
    ----------
    length, slope, second_derivative : ndarray, shape [K]
        The present length, with the first and second derivative of the loss there.
    too_short, too_long : ndarray, shape [K]
        The ends of the bracket: lengths known to be too short and too long. `too_long` is infinite while
        none is known.
    """
    newton = length - slope / np.maximum(second_derivative, np.finfo(np.float64).tiny)
    longest = MAX_GROWTH * length
    is_in_bracket = (newton > too_short) & (newton < too_long)
    is_usable = is_in_bracket & (newton < longest)
    has_upper_end = np.isfinite(too_long)
    otherwise = np.where(has_upper_end, (too_short + too_long) / 2, longest)
    return np.where(is_usable, newton, otherwise)
