"""Compute a two-layer perceptron: initialisation, losses, gradient, Adam.

A model's parameters are one flat vector [P], P = D*H + H + H*K + K: the hidden layer's weights [D, H] and
biases [H], the output's weights [H, K] and biases [K]. K tells the loss:

- one output is the logit of binary cross-entropy;
- two outputs are the paper's: softmax, and then cross-entropy, which takes a softmax again, of the softmax's
  output. Only their difference counts: the logit of the softmax's second probability.

Everything is computed in the data's own precision.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs
from scipy.special import expit

Floats = NDArray[np.floating[Any]]


class Layers(NamedTuple):
    """Views of a flat parameter vector [P]."""

    hidden_weight: Floats  # [D, H]
    hidden_bias: Floats  # [H]
    output_weight: Floats  # [H, K]
    output_bias: Floats  # [K]


def n_parameters(n_features: int, n_hidden: int, n_outputs: int = 1) -> int:
    """Count the parameters of a model."""
    return n_features * n_hidden + n_hidden + n_hidden * n_outputs + n_outputs


def layers(parameters: Floats, n_features: int, n_outputs: int = 1) -> Layers:
    """Cut a flat parameter vector [P] into its layers, without copying."""
    n_hidden = (len(parameters) - n_outputs) // (n_features + 1 + n_outputs)
    first = n_features * n_hidden
    return Layers(
        parameters[:first].reshape(n_features, n_hidden),
        parameters[first : first + n_hidden],
        parameters[first + n_hidden : -n_outputs].reshape(n_hidden, n_outputs),
        parameters[-n_outputs:],
    )


def initial(
    n_features: int, n_hidden: int, rng: np.random.Generator, n_outputs: int = 1
) -> NDArray[np.float64]:
    """Draw one model's parameters [P]: uniform within 1/sqrt(inputs) of zero, layer by layer.

    It is the law that PyTorch's ``Linear`` draws from (He et al. 2015 with a = sqrt(5)), for weights and
    biases.
    """
    parameters = rng.uniform(-1.0, 1.0, n_parameters(n_features, n_hidden, n_outputs))
    border = (n_features + 1) * n_hidden
    parameters[:border] /= np.sqrt(n_features)
    parameters[border:] /= np.sqrt(n_hidden)
    return parameters


def logits(layer: Layers, X: Floats) -> Floats:
    """Compute a logit [B] for each row of X [B, D]: relu(X W + b) w + c."""
    return _forward(layer, X)[2]


def _forward(layer: Layers, X: Floats) -> tuple[Floats, Floats, Floats]:
    """Compute hidden activations [B, H], the weights [H] that make logits of them, and logits [B]."""
    hidden = X @ layer.hidden_weight
    hidden += layer.hidden_bias
    np.maximum(hidden, 0, out=hidden)
    weight, bias = layer.output_weight[:, -1], layer.output_bias[-1]
    if len(layer.output_bias) == 2:
        weight, bias = weight - layer.output_weight[:, 0], bias - layer.output_bias[0]
    return hidden, weight, hidden @ weight + bias


def log_loss(scores: Floats, y: Floats, n_outputs: int = 1) -> float:
    """Compute the mean log loss of logits [B] and labels 0 or 1 [B].

    Binary cross-entropy is log(1 + exp(s)) - y s, in a form that neither overflows nor loses small losses.
    With two outputs, cross-entropy takes the softmax's probabilities (1 - p, p) for logits, whose difference
    is 2 p - 1 = tanh(s / 2): it can't leave [-1, 1], and so the loss can't fall below log(1 + 1/e) = 0.313.
    """
    if n_outputs == 2:
        scores = np.tanh(scores / 2)
    return float((np.logaddexp(0, scores) - y * scores).mean())


def backward(layer: Layers, X: Floats, y: Floats, slope: Layers, weights: Floats | float = 1.0) -> Floats:
    """Compute the logits of a batch, and write into `slope` the gradient of their mean weighted loss.

    Parameters
    ----------
    layer : Layers
    X : ndarray, shape [B, D]
    y : ndarray, shape [B]
        Labels 0 or 1, as floats.
    slope : Layers
        Views of the gradient [P].
    weights : ndarray, shape [B], or float
        Of each clip's loss, whose sum is divided by B, not by the weights'.

    Returns
    -------
    ndarray, shape [B]
    """
    hidden, weight, scores = _forward(layer, X)
    if len(layer.output_bias) == 1:
        pull = (expit(scores) - y) / len(y)
    else:
        squashed = np.tanh(scores / 2)
        # d tanh(s / 2) / ds = (1 - tanh(s / 2)^2) / 2.
        pull = (expit(squashed) - y) * (1 - squashed * squashed) / (2 * len(y))
    pull *= weights
    slope.output_weight[:, -1] = pull @ hidden
    slope.output_bias[-1] = pull.sum()
    if len(layer.output_bias) == 2:
        # The two outputs pull in opposite directions.
        slope.output_weight[:, 0] = -slope.output_weight[:, 1]
        slope.output_bias[0] = -slope.output_bias[1]
    error = np.multiply.outer(pull, weight)
    # Through the rectifier: the slope is 0 where it gave 0.
    error *= hidden > 0
    np.matmul(X.T, error, out=slope.hidden_weight)
    np.add.reduce(error, axis=0, out=slope.hidden_bias)
    return scores


BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Adam's constants, as its authors and PyTorch have them."""

LEAST_DECAY = 1e-12
"""Adam's sums are brought back to scale when beta_1^t has come down to this."""


@dataclass(eq=False)
class Adam:
    """Adam's state (Kingma and Ba 2015, Algorithm 1): decaying sums of gradients and of their squares.

    The sums [P] are kept without their factors 1 - beta, and over `decay_1` and `decay_2`, the powers of beta
    since they were last brought to scale: so that neither costs a pass over memory. Passes are what a step
    costs.
    """

    first: Floats
    second: Floats
    n_steps: int = 0
    decay_1: float = 1.0
    decay_2: float = 1.0

    @classmethod
    def start(cls, parameters: Floats) -> "Adam":
        """Start with empty sums."""
        return cls(np.zeros_like(parameters), np.zeros_like(parameters))


def adam_step(parameters: Floats, gradient: Floats, state: Adam, learning_rate: float) -> None:
    """Move parameters [P], contiguous, in place by one step of Adam with bias correction.

    The gradient [P] is written over: a vector more would not fit a core's cache.
    """
    first, second = state.first, state.second
    # y += a x in one pass; in place, for the vectors are contiguous.
    add = get_blas_funcs("axpy", dtype=parameters.dtype)
    if state.decay_1 < LEAST_DECAY:
        first *= state.decay_1
        second *= state.decay_2
        state.decay_1 = state.decay_2 = 1.0
    state.n_steps += 1
    state.decay_1 *= BETA_1
    state.decay_2 *= BETA_2
    # What first and the root of second lack to be Adam's unbiased moments.
    unscale_1 = state.decay_1 * (1 - BETA_1) / (1 - BETA_1**state.n_steps)
    unscale_2 = (state.decay_2 * (1 - BETA_2) / (1 - BETA_2**state.n_steps)) ** 0.5
    add(gradient, first, a=1 / state.decay_1)
    move = np.square(gradient, out=gradient)
    add(move, second, a=1 / state.decay_2)
    np.sqrt(second, out=move)
    move += EPSILON / unscale_2
    np.divide(first, move, out=move)
    add(move, parameters, a=-learning_rate * unscale_1 / unscale_2)
