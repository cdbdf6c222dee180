"""The arithmetic of a two-layer perceptron with one logit: initialisation, loss, gradient, Adam.

A model's parameters are one flat vector [P], P = D*H + 2*H + 1: the hidden layer's weights [D, H] and biases
[H], the output's weights [H] and bias. Any leading axes stack models, which then are computed as if each were
alone: a stacked product is one matrix product a model. Everything is computed in the data's own precision.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.floating[Any]]


class Layers(NamedTuple):
    """Views of a flat parameter vector [..., P]."""

    hidden_weight: Floats  # [..., D, H]
    hidden_bias: Floats  # [..., 1, H]
    output_weight: Floats  # [..., H, 1]
    output_bias: Floats  # [..., 1]


def n_parameters(n_features: int, n_hidden: int) -> int:
    """Count the parameters of a model."""
    return n_features * n_hidden + 2 * n_hidden + 1


def layers(parameters: Floats, n_features: int) -> Layers:
    """Cut a flat parameter vector [..., P] into its layers, without copying."""
    n_hidden = (parameters.shape[-1] - 1) // (n_features + 2)
    lead, first = parameters.shape[:-1], n_features * n_hidden
    return Layers(
        parameters[..., :first].reshape(*lead, n_features, n_hidden),
        parameters[..., first : first + n_hidden].reshape(*lead, 1, n_hidden),
        parameters[..., first + n_hidden : -1].reshape(*lead, n_hidden, 1),
        parameters[..., -1:],
    )


def initial(n_features: int, n_hidden: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw one model's parameters [P]: uniform within 1/sqrt(inputs) of zero, layer by layer.

    It is the law that PyTorch's ``Linear`` draws from (He et al. 2015 with a = sqrt(5)), for weights and
    biases.
    """
    parameters = rng.uniform(-1.0, 1.0, n_parameters(n_features, n_hidden))
    border = (n_features + 1) * n_hidden
    parameters[:border] /= np.sqrt(n_features)
    parameters[border:] /= np.sqrt(n_hidden)
    return parameters


def logits(parameters: Floats, X: Floats) -> Floats:
    """Compute a logit [..., B] for each row of X [..., B, D]: relu(X W + b) w + c."""
    layer = layers(parameters, X.shape[-1])
    hidden = np.matmul(X, layer.hidden_weight)
    hidden += layer.hidden_bias
    np.maximum(hidden, 0, out=hidden)
    scores: Floats = np.matmul(hidden, layer.output_weight)[..., 0] + layer.output_bias
    return scores


def log_loss(scores: Floats, y: Floats) -> Floats:
    """Average over the last axis the binary cross-entropy of logits [..., B] and labels 0 or 1 [..., B].

    It is log(1 + exp(s)) - y s, in a form that neither overflows nor loses small losses.
    """
    mean: Floats = (np.logaddexp(0, scores) - y * scores).mean(axis=-1)
    return mean


def loss_and_grad(
    parameters: Floats, X: Floats, y: Floats, out: Floats | None = None
) -> tuple[Floats, Floats]:
    """Compute the mean binary cross-entropy of a batch and its gradient.

    Parameters
    ----------
    parameters : ndarray, shape [..., P]
    X : ndarray, shape [..., B, D]
    y : ndarray, shape [..., B]
        Labels 0 or 1, as floats.
    out : ndarray, shape [..., P], optional
        Where to write the gradient.

    Returns
    -------
    loss : ndarray, shape [...]
    gradient : ndarray, shape [..., P]
    """
    gradient = np.empty_like(parameters) if out is None else out
    layer, slope = layers(parameters, X.shape[-1]), layers(gradient, X.shape[-1])
    hidden = np.matmul(X, layer.hidden_weight)
    hidden += layer.hidden_bias
    np.maximum(hidden, 0, out=hidden)
    scores = np.matmul(hidden, layer.output_weight)[..., 0] + layer.output_bias
    error = ((expit(scores) - y) / y.shape[-1])[..., None]
    np.matmul(np.swapaxes(hidden, -1, -2), error, out=slope.output_weight)
    slope.output_bias[...] = error.sum(axis=-2)
    # Through the rectifier: the slope is 0 where it gave 0.
    hidden_error = error * np.swapaxes(layer.output_weight, -1, -2)
    hidden_error *= hidden > 0
    np.matmul(np.swapaxes(X, -1, -2), hidden_error, out=slope.hidden_weight)
    slope.hidden_bias[...] = hidden_error.sum(axis=-2, keepdims=True)
    return log_loss(scores, y), gradient


BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Adam's constants, as its authors and PyTorch have them."""


@dataclass(eq=False)
class Adam:
    """Adam's state (Kingma and Ba 2015, Algorithm 1): decaying sums of gradients and of their squares."""

    first: Floats
    second: Floats
    scratch: Floats
    steps: int = 0

    @classmethod
    def start(cls, parameters: Floats) -> "Adam":
        """Start with empty sums."""
        return cls(np.zeros_like(parameters), np.zeros_like(parameters), np.empty_like(parameters))


def adam_step(
    parameters: Floats,
    gradient: Floats,
    state: Adam,
    learning_rate: float,
) -> None:
    """Move parameters [..., P] in place by one step of Adam with bias correction.

    The moments are kept without their factors 1 - beta, which go into the step's size and into epsilon
    together with the bias corrections: the same numbers in fewer passes over memory, and passes are what a
    step costs.
    """
    state.steps += 1
    unbias_first = (1 - BETA_1) / (1 - BETA_1**state.steps)
    unbias_second = ((1 - BETA_2) / (1 - BETA_2**state.steps)) ** 0.5
    first, second, scratch = state.first, state.second, state.scratch
    first *= BETA_1
    first += gradient
    second *= BETA_2
    np.multiply(gradient, gradient, out=scratch)
    second += scratch
    np.sqrt(second, out=scratch)
    scratch += EPSILON / unbias_second
    np.divide(first, scratch, out=scratch)
    scratch *= learning_rate * unbias_first / unbias_second
    parameters -= scratch
