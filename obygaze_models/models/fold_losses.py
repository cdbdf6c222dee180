"""The logistic losses of many fits, as functions of the logits of the same clips.

Logits are linear in the coefficients. Along a step of the coefficients they therefore change by a known
matrix times the length of the step, and a search for the best length need not read the features.

Clips are handled `N_CLIPS_AT_ONCE` at a time, whose numbers stay in a core's cache.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_models.models.fold_scaling import Floats, Masks, Numbers, dot_columns

MIN_CURVATURE = 1e-12
"""Least mean of p (1 - p) that is assumed, so that it can be divided by.

It is reached if all logits have the right sign and an absolute value of 28, where the loss is nearly 0."""

MIN_DEVIATION = 1e-6
"""Added to the deviation of the logits, to which the tolerance is relative: the deviation may be 0."""

N_CLIPS_AT_ONCE = 256
"""Number of clips whose logits are handled at a time: they fit in a core's cache."""


class StepMeasures(NamedTuple):
    """Size and slope of a step of length 1, measured before it is taken.

    Attributes
    ----------
    deviation : ndarray, shape [K]
        Root mean square of the changes in the logits of training clips.
    slope : ndarray, shape [K]
        Derivative of the mean loss by the length of the step, where it begins.
    """

    deviation: Floats
    slope: Floats


class DerivativesAlong(NamedTuple):
    """Derivatives of the summed losses of K fits at some length of a step.

    Attributes
    ----------
    slope : ndarray, shape [K]
        Derivative by the length.
    curvature : ndarray, shape [K]
        The sum of p (1 - p) over the training clips, where p is the probability of label 1.
    """

    slope: Floats
    curvature: Floats


class FoldLosses:
    """The logistic losses of K fits at their present logits, with the residuals that their gradients need.

    Parameters
    ----------
    y : ndarray, shape [N]
        Labels, 0 or 1.
    in_training : ndarray of bool, shape [N, K]
        The training clips of each fit.
    logits : ndarray, shape [N, K]
        Logits of all clips under each fit. Residuals have the same precision.

    Attributes
    ----------
    residuals : ndarray, shape [N, K]
        Probability of label 1 less the label, as last set by `update_residuals`; 0 for clips that the fit is
        not trained on.
    n_clips : ndarray, shape [K]
        Number of training clips.
    """

    def __init__(self, y: Floats, in_training: Masks, logits: Numbers) -> None:
        """Keep labels, training clips and logits; `residuals` have no values until `update_residuals`."""
        self.logits = logits
        self.residuals = np.empty_like(logits)
        self.in_training = in_training.astype(logits.dtype)
        # A probability p is 1/2 + tanh(logit / 2) / 2: every residual p - y has the term 1/2 - y. [N, 1]
        self.half_minus_y = (0.5 - y).astype(logits.dtype)[:, None]
        self.n_clips = in_training.sum(axis=0).astype(np.float64)

    def take(self, fits: NDArray[np.intp]) -> "FoldLosses":
        """Return the losses of some of the fits, given their indices, as an object of their own."""
        # Without `__init__`, which would allocate new residuals.
        some = FoldLosses.__new__(FoldLosses)
        some.logits = self.logits[:, fits]
        some.residuals = self.residuals[:, fits]
        some.in_training = self.in_training[:, fits]
        some.half_minus_y = self.half_minus_y
        some.n_clips = self.n_clips[fits]
        return some

    def update_residuals(
        self, change: Numbers, length: Floats, fits: "NDArray[np.intp] | slice"
    ) -> DerivativesAlong:
        """Set the residuals of k of the K fits to those after a step; return the losses' derivatives there.

        The logits after the step are ``logits + length * change``; `logits` itself is not changed. A residual
        is p - y: the clip's probability by its logit, less its label. The derivatives are those along the
        step, of the clips' losses without the penalty.

        Parameters
        ----------
        change : ndarray, shape [N, K]
            What a step of length 1 adds to the logits of all fits.
        length : ndarray, shape [k]
            Length of each step.
        fits : ndarray of int or slice
            Indices of the k fits.
        """
        slope = np.zeros(len(length))
        curvature = np.zeros(len(length))
        half_length = (length / 2).astype(change.dtype)
        for rows in self._row_blocks():
            change_of_rows = change[rows, fits]
            # Half of the logits after the step is what residuals are computed from, by tanh.
            half_logits = self.logits[rows, fits] / 2
            half_logits += change_of_rows * half_length
            residuals = self._residuals_in_place_of(half_logits, rows, fits)
            self.residuals[rows, fits] = residuals

            # The derivative of a clip's loss by its logit is the residual.
            slope += dot_columns(residuals, change_of_rows)
            # The sum of p (1 - p). With the residual r, |r| is p or 1 - p, and |r| - r^2 = p (1 - p).
            curvature += np.abs(residuals).sum(axis=0) - dot_columns(residuals, residuals)

        n_clips = len(change)
        min_curvature = MIN_CURVATURE * n_clips
        return DerivativesAlong(slope, np.maximum(curvature, min_curvature))

    def _residuals_in_place_of(
        self, half_logits: Numbers, rows: slice, fits: "NDArray[np.intp] | slice"
    ) -> Numbers:
        """Compute the residuals p - y of some clips in some fits from their half logits, in place.

        For the logit s, p = 1 / (1 + exp(-s)) = (1 + tanh(s / 2)) / 2, and so the residual is
        tanh(s / 2) / 2 + (1/2 - y). numpy computes tanh three times as fast as exp.

        Parameters
        ----------
        half_logits : ndarray, shape [n, number of fits]
            s / 2; overwritten.
        rows : slice
            The clips.
        fits : ndarray of int or slice
            Indices of the fits among the K.
        """
        residuals = np.tanh(half_logits, out=half_logits)
        residuals /= 2
        residuals += self.half_minus_y[rows]
        residuals *= self.in_training[rows, fits]  # 0 for clips that the fit is not trained on
        return residuals

    def second_derivative_along(self, change: Numbers, fits: NDArray[np.intp]) -> Floats:
        """Compute the second derivative of k fits' summed losses by the length of a step, [k].

        It is the sum over clips of p (1 - p) times the squared change of the logit. The probabilities p are
        those after the step that `update_residuals` was given last.

        Parameters
        ----------
        change : ndarray, shape [N, K]
            What a step of length 1 adds to the logits of all fits.
        fits : ndarray of int
            Indices of the k fits among the K.
        """
        second_derivative = np.zeros(len(fits))
        for rows in self._row_blocks():
            change_of_rows = change[rows, fits]
            curvature_of_clips = _curvature_of_clips(self.residuals[rows, fits])  # p (1 - p)
            weighted_change = curvature_of_clips * change_of_rows
            second_derivative += dot_columns(weighted_change, change_of_rows)
        return second_derivative

    def measure_step(self, change: Numbers) -> StepMeasures:
        """Measure the size and slope of a step that would add `change` [N, K] to the logits.

        Only the training clips of each fit count. The slope needs the residuals at the present logits.
        """
        squares = np.zeros(len(self.n_clips))
        slope = np.zeros(len(self.n_clips))
        for rows in self._row_blocks():
            # The residuals of clips that are not in training are 0.
            slope += dot_columns(self.residuals[rows], change[rows])
            change_of_training = change[rows] * self.in_training[rows]
            squares += dot_columns(change_of_training, change_of_training)
        return StepMeasures(deviation=np.sqrt(squares / self.n_clips), slope=slope / self.n_clips)

    def negligible_change(self, tolerance: float) -> Floats:
        """Compute for each fit [K] the largest change of its logits that is negligible.

        It is `tolerance` times the standard deviation of the training clips' logits, plus the rounding error
        of logits of this size, as changes do not become smaller than rounding errors.
        """
        sums = np.zeros(len(self.n_clips))
        squares = np.zeros(len(self.n_clips))
        for rows in self._row_blocks():
            logits_of_training = self.logits[rows] * self.in_training[rows]  # 0 for clips held out
            sums += logits_of_training.sum(axis=0)
            squares += dot_columns(logits_of_training, logits_of_training)

        mean = sums / self.n_clips
        mean_square = squares / self.n_clips
        # Rounding can make the difference negative.
        variance = np.maximum(mean_square - mean**2, 0.0)
        deviation = np.sqrt(variance) + MIN_DEVIATION

        rounding_error = np.finfo(self.logits.dtype).eps * np.sqrt(mean_square)
        return np.asarray(tolerance * deviation + rounding_error)

    def _row_blocks(self) -> Iterator[slice]:
        """Split the clips into blocks of `N_CLIPS_AT_ONCE`, which fit in a core's cache."""
        for start in range(0, len(self.logits), N_CLIPS_AT_ONCE):
            yield slice(start, start + N_CLIPS_AT_ONCE)


def _curvature_of_clips(residual: Numbers) -> Numbers:
    """Compute p (1 - p) from the residuals r [n, K], which are p or p - 1: it is ``|r| - r^2`` for both."""
    return np.asarray(np.abs(residual) - residual * residual)
