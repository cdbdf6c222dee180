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

LEAST_DECAY = 1e-12
"""Adam's sums are multiplied by their decays when `decay_1` is below this: otherwise they would overflow."""


@dataclass(eq=False)
class Adam:
    """The state of Adam: decaying sums of gradients and of their squares.

    Adam's mean gradient is ``(1 - BETA_1) * decay_1 * first``, and its mean squared gradient
    ``(1 - BETA_2) * decay_2 * second``. A step multiplies the two numbers `decay_1` and `decay_2` by `BETA_1`
    and `BETA_2`, where the sums themselves would take another pass over memory.

    Attributes
    ----------
    first, second : ndarray, shape [P]
        Sums of gradients and of squared gradients, each divided by the decay at its step.
    n_steps : int
        Steps taken.
    decay_1, decay_2 : float
        `BETA_1` and `BETA_2` to the power of the steps since the sums were last multiplied by the decays.
    """

    first: Floats
    second: Floats
    n_steps: int = 0
    decay_1: float = 1.0
    decay_2: float = 1.0

    @classmethod
    def zeros_like(cls, parameters: Floats) -> "Adam":
        """Make the state before the first step of parameters [P]."""
        return cls(np.zeros_like(parameters), np.zeros_like(parameters))


def adam_step(parameters: Floats, gradient: Floats, state: Adam, learning_rate: float) -> None:
    """Take one step of Adam, with bias correction: update parameters, gradient and state in place.

    Parameters
    ----------
    parameters : ndarray, shape [P]
        Contiguous, as BLAS updates them in place.
    gradient : ndarray, shape [P]
        Overwritten with intermediate values: a further vector would not fit in a core's cache.
    state : Adam
    learning_rate : float
    """
    first = state.first
    second = state.second
    # add(x, y, a=a) is y += a x in one pass, in place as the vectors are contiguous.
    add = get_blas_funcs("axpy", dtype=parameters.dtype)
    if state.decay_1 < LEAST_DECAY:
        first *= state.decay_1
        second *= state.decay_2
        state.decay_1 = 1.0
        state.decay_2 = 1.0
    state.n_steps += 1
    state.decay_1 *= BETA_1
    state.decay_2 *= BETA_2
    # Adam's step is -learning_rate * m / (root(v) + EPSILON) with m = factor_1 * first and
    # root(v) = factor_2 * root(second): the unbiased mean gradient, and root mean squared gradient.
    factor_1 = state.decay_1 * (1 - BETA_1) / (1 - BETA_1**state.n_steps)
    factor_2 = (state.decay_2 * (1 - BETA_2) / (1 - BETA_2**state.n_steps)) ** 0.5
    add(gradient, first, a=1 / state.decay_1)
    # The gradient's memory is reused: for the squared gradient, then the divisor, then the update.
    squared_gradient = np.square(gradient, out=gradient)
    add(squared_gradient, second, a=1 / state.decay_2)
    divisor = np.sqrt(second, out=gradient)
    divisor += EPSILON / factor_2
    update = np.divide(first, divisor, out=gradient)
    add(update, parameters, a=-learning_rate * factor_1 / factor_2)
