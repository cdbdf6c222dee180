"""Move parameters by Adam (Kingma and Ba 2015, Algorithm 1), in few passes over memory.

The number of passes decides how long a step takes: the arithmetic is cheap, and memory is slow.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_blas_funcs

from obygaze_models.models.binary import Floats

BETA_1 = 0.9
"""Share of Adam's mean gradient that is left after a step, as in the paper and by default in PyTorch."""

BETA_2 = 0.999
"""Share of Adam's mean squared gradient that is left after a step."""

EPSILON = 1e-8
"""What Adam adds to the root of the mean squared gradient, so that nothing is divided by 0."""

MIN_DECAY = 1e-12
"""Below this `gradient_decay`, the sums are multiplied by their decays: otherwise they would overflow."""


@dataclass(eq=False)
class Adam:
    """The state of Adam: its mean gradient and mean squared gradient, each as a sum and a decay.

    At each step Adam multiplies its mean gradient m by `BETA_1`, and adds (1 - BETA_1) times the gradient. To
    save a pass over memory, m is kept as a number d and a sum S, with m = (1 - BETA_1) d S. A step multiplies
    only d by `BETA_1`, and adds the gradient divided by d to S. The mean squared gradient is kept in the same
    way, with `BETA_2`.

    Attributes
    ----------
    gradient_sum, square_sum : ndarray, shape [P]
        S: sums of the gradients and of their squares, each divided by the decay at its step.
    n_steps : int
        Steps taken.
    gradient_decay, square_decay : float
        d: `BETA_1` and `BETA_2` to the power of the number of steps since `apply_decays`, or since the first
        step.
    """

    gradient_sum: Floats
    square_sum: Floats
    n_steps: int = 0
    gradient_decay: float = 1.0
    square_decay: float = 1.0

    @classmethod
    def zeros_like(cls, parameters: Floats) -> "Adam":
        """Make the state before the first step of parameters [P]."""
        return cls(np.zeros_like(parameters), np.zeros_like(parameters))

    def apply_decays(self) -> None:
        """Multiply the sums of gradients and of squares by their decays, and set the decays to 1.

        The decaying means, which are in proportion to decay times sum, stay the same. This is done now and
        then: a gradient is divided by the decay before it is added to the sum (`_add_gradient`), and would
        overflow if the decay, which falls with every step, became too small.
        """
        self.gradient_sum *= self.gradient_decay
        self.square_sum *= self.square_decay
        self.gradient_decay = 1.0
        self.square_decay = 1.0


def adam_step(parameters: Floats, gradient: Floats, state: Adam, learning_rate: float) -> None:
    """Take one step of Adam, with bias correction: update parameters, gradient and state in place.

    Adam moves by -learning_rate * mean / (root + EPSILON): mean is the decaying mean of the gradients, root
    the square root of that of their squares. The state holds each of them as an array of P sums and a number,
    so that mean = mean_factor * gradient_sum and root = root_factor * sqrt(square_sum). Both factors are
    taken out of the fraction, so that the two arrays need not be multiplied by them::

        -learning_rate * mean_factor / root_factor * gradient_sum / (sqrt(square_sum) + EPSILON / root_factor)

    Parameters
    ----------
    parameters : ndarray, shape [P]
        Contiguous, as BLAS updates them in place.
    gradient : ndarray, shape [P]
        Overwritten with intermediate values: a further vector would not fit in a core's cache.
    state : Adam
    learning_rate : float
    """
    _add_gradient(gradient, state)
    # A mean is decay * (1 - BETA) * sum. It starts at 0; dividing by 1 - BETA**n_steps corrects this bias.
    mean_factor = state.gradient_decay * (1 - BETA_1) / (1 - BETA_1**state.n_steps)
    square_factor = state.square_decay * (1 - BETA_2) / (1 - BETA_2**state.n_steps)
    root_factor = square_factor**0.5

    buffer = gradient  # no longer needed: it holds the divisor, and then the update
    divisor = np.sqrt(state.square_sum, out=buffer)
    divisor += EPSILON / root_factor
    update = np.divide(state.gradient_sum, divisor, out=buffer)
    _add_multiple(update, -learning_rate * mean_factor / root_factor, parameters)


def _add_gradient(gradient: Floats, state: Adam) -> None:
    """Add a gradient [P] and its square to the sums of `state`; the gradient is overwritten by its square.

    The step is counted. The sums stand for the decaying means of Adam: a mean is in proportion to decay times
    sum. To make the share of all earlier gradients smaller, only the decay, a number, is multiplied by
    `BETA_1` or `BETA_2`, and not the array of sums.
    """
    # Gradients are divided by the decay below, which must not become too small.
    if state.gradient_decay < MIN_DECAY:
        state.apply_decays()

    state.n_steps += 1
    state.gradient_decay *= BETA_1
    state.square_decay *= BETA_2

    # Divided by the decay, the gradient enters decay times sum at full weight.
    _add_multiple(gradient, 1 / state.gradient_decay, state.gradient_sum)
    squared_gradient = np.square(gradient, out=gradient)
    _add_multiple(squared_gradient, 1 / state.square_decay, state.square_sum)


def _add_multiple(values: Floats, factor: float, total: Floats) -> None:
    """Add ``factor * values`` to `total` in place, in one pass over memory; both are contiguous vectors."""
    axpy = get_blas_funcs("axpy", dtype=total.dtype)  # BLAS: total += factor * values
    axpy(values, total, a=factor)
