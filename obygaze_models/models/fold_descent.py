"""Descend to the minima of many regularised logistic losses at once.

Directions are those of L-BFGS (Nocedal and Wright 2006, Numerical Optimization, algorithm 7.4), whose first
guess of the curvature is that of the fit on all clips. The length of a step is found on logits alone, which
are linear in it.
"""

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

LEAST_VARIANCE_SHARE = 1e-12
"""Share of the largest variance below which a variance is taken to be a rounding error."""

FLAT_SHARE = 0.3
"""A step is long enough if the slope at its end is at most this share of the slope at its beginning."""

MOST_TRIALS = 10
"""Number of lengths that are tried for a step."""

MOST_GROWTH = 8.0
"""Largest factor by which a trial of a step's length may exceed the one before."""

STEPS_BETWEEN_CHECKS = 8
"""Number of steps after which the deviation of the logits, to which the tolerance is relative, is updated."""

PATIENCE = 10
"""Number of steps without a smaller one after which a fit that is near its end counts as converged."""

SMALLER_SHARE = 0.9
"""A step counts as smaller than those before if it is less than this share of the smallest of them."""

NEAR_END_CHANGE = 1e-3
"""A fit is near its end if a step changed its logits by less than this share of their deviation."""


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
        """Compute the principal axes of features [N, D].

        They are eigenvectors of the covariance [D, D] or, with fewer clips than features, follow from those
        of the clips' products [N, N].
        """
        n_clips, n_features = features.shape
        centred = features - features.mean(axis=0)
        if n_clips >= n_features:
            variance, axes = linalg.eigh(centred.T @ centred / n_clips, check_finite=False)
            # A smaller variance is a rounding error.
            least_variance = LEAST_VARIANCE_SHARE * variance[-1]
            return cls(axes.astype(np.float32), np.maximum(variance, least_variance))
        # The singular value decomposition centred = U L V' gives the axes V = centred' U / L. The products of
        # clips have the eigenvectors U and, divided by the number of clips, the variances L^2 / n_clips.
        variance, U = linalg.eigh(centred @ centred.T / n_clips, check_finite=False)
        is_real = variance > LEAST_VARIANCE_SHARE * variance[-1]
        L = np.sqrt(n_clips * variance[is_real])
        axes = centred.T @ (U[:, is_real] / L)
        return cls(axes.astype(np.float32), variance[is_real])

    def divide_by_curvature(self, gradient: Floats, curvature: Floats, strength: Floats) -> Floats:
        """Multiply gradients by the inverse of an approximate Hessian of each fit's regularised loss.

        The Hessian is diagonal along the principal axes: curvature times variance, plus the penalty.

        Parameters
        ----------
        gradient : ndarray, shape [D, K]
        curvature : ndarray, shape [K]
            Mean of p (1 - p) over a fit's clips.
        strength : ndarray, shape [K]
            Strength of the penalty, which is its curvature too.

        Returns
        -------
        ndarray, shape [D, K]
        """
        along_axes = (self.axes.T @ gradient.astype(np.float32)).astype(np.float64)  # [R, K]
        hessian = curvature * self.variance[:, None] + strength  # [R, K], its diagonal along the axes
        n_features, n_axes = self.axes.shape
        if n_axes == n_features:
            return np.asarray(self.axes @ (along_axes / hessian).astype(np.float32), np.float64)
        # Features do not vary in directions that are orthogonal to all axes: there the penalty is the only
        # curvature. So the whole gradient is divided by the penalty. Along the axes this is then corrected to
        # a division by the Hessian: g / hessian = g / strength + g (1 / hessian - 1 / strength).
        correction = along_axes * (1 / hessian - 1 / strength)
        return gradient / strength + self.axes @ correction.astype(np.float32)


class StepHistory:
    """The last `N_REMEMBERED_STEPS` steps of K fits and how each changed the gradient, the oldest first.

    Attributes
    ----------
    steps, changes : list of ndarray, shape [D + 1, K]
        Zeros where no step was taken yet. The arrays are replaced by new ones; only `overwrite` writes into
        them.
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
        """Copy the history of some of the fits, given their indices."""
        steps = [step[:, fits] for step in self.steps]
        changes = [change[:, fits] for change in self.changes]
        return StepHistory(steps, changes)

    def overwrite(self, fits: NDArray[np.intp], history: "StepHistory") -> None:
        """Replace the history of the fits with these indices by `history`, in place.

        `history` may have begun as a `copy` of this one, so that both share arrays: what is this history's
        newest step may be an older step there. Steps are copied from the oldest to the newest, so that a
        shared array is read before it is overwritten.
        """
        for position in range(N_REMEMBERED_STEPS):
            self.steps[position][:, fits] = history.steps[position]
            self.changes[position][:, fits] = history.changes[position]


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
        """Compute losses, gradients and curvatures at the initial coefficients."""
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
        all_fits = slice(None)
        at_start = self.losses.update_residuals(logits, np.zeros(n_fits), all_fits)
        self.curvature = at_start.curvature / self.losses.n_clips
        self.gradient = self._gradient()
        self.n_steps = 0
        # By these three a fit is found to have converged (`_update_convergence`): the largest change of its
        # logits that is negligible, which `step` computes; its smallest step so far, in multiples of that
        # change; and the number of steps since the smallest.
        self.negligible = np.zeros(n_fits)
        self.smallest_step = np.full(n_fits, np.inf)
        self.n_steps_since_smallest = np.zeros(n_fits, np.int64)

    def take(self, fits: NDArray[np.intp]) -> "FoldDescent":
        """Return a copy of this descent with only some of the fits, given their indices."""
        some = copy(self)
        some.scaling = self.scaling.take(fits)
        some.losses = self.losses.take(fits)
        some.history = self.history.take(fits)
        some.coefficients = self.coefficients[:, fits]
        some.gradient = self.gradient[:, fits]
        some.strengths = self.strengths[fits]
        some.curvature = self.curvature[fits]
        some.negligible = self.negligible[fits]
        some.smallest_step = self.smallest_step[fits]
        some.n_steps_since_smallest = self.n_steps_since_smallest[fits]
        return some

    def step(self) -> NDArray[np.bool_]:
        """Take one L-BFGS step with every fit; return which fits [K] have converged.

        Whether a fit has converged is judged before the step, by the change of its logits at length 1. The
        step is taken nevertheless, at the length that the line search finds.
        """
        step = self._quasi_newton_direction()
        # A step changes the logits little, so float32 is precise enough for the change.
        change = self.scaling.logits(self.features_float32, step)
        if self.n_steps % STEPS_BETWEEN_CHECKS == 0:
            self.negligible = self.losses.negligible_change(self.tolerance)
        self.n_steps += 1
        measures = self.losses.measure_step(change)
        has_converged = self._update_convergence(measures.deviation / self.negligible)
        length = self._line_search(step, change, measures.slope)
        step *= length
        change *= length.astype(change.dtype)
        self._move(step, change, is_last=bool(has_converged.all()))
        return has_converged

    def _move(self, step: Floats, change: Numbers, *, is_last: bool) -> None:
        """Add a step [D + 1, K] to the coefficients and its change [N, K] to the logits; update the gradient.

        After the last step the gradient is not needed any more. The residuals are those after the step
        already: the line search has set them.
        """
        self.coefficients += step
        self.losses.logits += change
        if is_last:
            return
        gradient = self._gradient()
        self.history.add(step, gradient - self.gradient)
        self.gradient = gradient

    def _update_convergence(self, size: Floats) -> NDArray[np.bool_]:
        """Record the size [K] of the fits' last steps, and return which fits have converged.

        `size` is the change of the logits by the step, in multiples of the negligible change. A fit has
        converged if its step is negligible. It has also converged if it is near its end, a step having
        changed its logits by less than `NEAR_END_CHANGE` of their deviation, and its steps have not become
        smaller for `PATIENCE` steps: only rounding errors are left then.
        """
        is_smaller = size < SMALLER_SHARE * self.smallest_step
        self.n_steps_since_smallest = np.where(is_smaller, 0, self.n_steps_since_smallest + 1)
        self.smallest_step = np.where(is_smaller, size, self.smallest_step)
        # From multiples of the negligible change to a share of the logits' deviation: the negligible change
        # is about `tolerance` times the deviation.
        smallest_change = self.smallest_step * self.tolerance
        is_near_end = smallest_change < NEAR_END_CHANGE
        is_rounding = (self.n_steps_since_smallest >= PATIENCE) & is_near_end
        is_negligible = size <= 1.0
        return np.asarray(is_negligible | is_rounding)

    def _gradient(self) -> Floats:
        """Compute the gradient [D + 1, K] of the mean loss with its penalty from the residuals."""
        gradient = self.scaling.gradient(self.features, self.losses.residuals)
        gradient /= self.losses.n_clips
        gradient[:-1] += self.strengths * self.coefficients[:-1]
        return gradient

    def _quasi_newton_direction(self) -> Floats:
        """Compute the descent directions [D + 1, K] by the two-loop recursion of L-BFGS."""
        direction = -self.gradient
        # The first loop, from the newest step to the oldest, with what the second loop needs of each.
        remembered = []
        for step, change in zip(reversed(self.history.steps), reversed(self.history.changes), strict=True):
            product = dot_columns(step, change)
            if not product.any():
                # Older entries of the history are empty for all fits.
                break
            inverse = np.divide(1.0, product, out=np.zeros_like(product), where=product > 0)
            coefficient = dot_columns(step, direction) * inverse
            direction -= coefficient * change
            remembered.append((step, change, inverse, coefficient))
        # In between, the inverse of the first guess of the Hessian.
        direction[-1] /= self.curvature
        direction[:-1] = self.axes.divide_by_curvature(direction[:-1], self.curvature, self.strengths)
        # The second loop, from the oldest step to the newest.
        for step, change, inverse, coefficient in reversed(remembered):
            direction += (coefficient - dot_columns(change, direction) * inverse) * step
        # A feature that is constant in a fit's clips, whose ratio is 0, keeps a weight of 0.
        direction[:-1][self.scaling.scale_ratio == 0] = 0.0
        return np.asarray(direction)

    def _line_search(self, step: Floats, change: Numbers, first_slope: Floats) -> Floats:
        """Find the length of each fit's step, and set residuals and curvatures to those after that step.

        The search is Newton's method in one dimension, safeguarded by a bracket. It ends for a fit when the
        slope along its step is at most `FLAT_SHARE` times the slope at its beginning, or after `MOST_TRIALS`
        lengths.

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
        # Half the squared weights are a parabola of the length. It has this slope at length 0, and this
        # curvature everywhere.
        penalty_slope = self.strengths * dot_columns(self.coefficients[:-1], step[:-1])
        penalty_curvature = self.strengths * dot_columns(step[:-1], step[:-1])
        flat_slope = FLAT_SHARE * np.abs(first_slope + penalty_slope)
        length = np.ones(n_fits)
        too_short = np.zeros(n_fits)
        too_long = np.full(n_fits, np.inf)
        fits = np.arange(n_fits)  # those whose length is still searched
        all_fits = slice(None)
        slope = self._try_length(change, length, all_fits) + (penalty_slope + length * penalty_curvature)
        for _ in range(MOST_TRIALS):
            is_steep = np.abs(slope) > flat_slope[fits]
            if not is_steep.any():
                break
            fits = fits[is_steep]
            slope = slope[is_steep]
            curvature_of_losses = (
                self.losses.second_derivative_along(change, fits) / self.losses.n_clips[fits]
            )
            second_derivative = curvature_of_losses + penalty_curvature[fits]
            # A length at which the loss still falls is too short, any other too long.
            falls = slope < 0
            too_short[fits[falls]] = length[fits[falls]]
            too_long[fits[~falls]] = length[fits[~falls]]
            length[fits] = _next_length(
                length[fits], slope, second_derivative, too_short[fits], too_long[fits]
            )
            slope_of_penalty = penalty_slope[fits] + length[fits] * penalty_curvature[fits]
            slope = self._try_length(change, length[fits], fits) + slope_of_penalty
        return length

    def _try_length(self, change: Numbers, length: Floats, fits: "NDArray[np.intp] | slice") -> Floats:
        """Set residuals and curvatures of some of the fits to those after a step of some length.

        Parameters
        ----------
        change : ndarray, shape [N, K]
            The change of the logits of all fits by a step of length 1.
        length : ndarray, shape [number of those fits]
        fits : ndarray of int or slice
            Indices of those fits among the K.

        Returns
        -------
        ndarray, shape [number of those fits]
            Derivative of the mean loss by the length, without the penalty.
        """
        derivatives = self.losses.update_residuals(change, length, fits)
        self.curvature[fits] = derivatives.curvature / self.losses.n_clips[fits]
        slope: Floats = derivatives.slope / self.losses.n_clips[fits]
        return slope


def _next_length(
    length: Floats, slope: Floats, second_derivative: Floats, too_short: Floats, too_long: Floats
) -> Floats:
    """Choose the next step length [K] to try in a line search.

    It is Newton's if that lies inside the bracket and is less than `MOST_GROWTH` times the present length.
    Otherwise it is the middle of the bracket or, while no upper end is known, `MOST_GROWTH` times the length.

    Parameters
    ----------
    length, slope, second_derivative : ndarray, shape [K]
        The present length, with the first and second derivative of the loss there.
    too_short, too_long : ndarray, shape [K]
        The ends of the bracket: lengths known to be too short and too long. `too_long` is infinite while
        none is known.
    """
    newton = length - slope / np.maximum(second_derivative, np.finfo(np.float64).tiny)
    is_between = (newton > too_short) & (newton < too_long) & (newton < MOST_GROWTH * length)
    middle = np.where(np.isfinite(too_long), (too_short + too_long) / 2, MOST_GROWTH * length)
    return np.where(is_between, newton, middle)
