"""The arithmetic of a two-layer perceptron: initialisation, losses, gradient, Adam.

A model's parameters are one flat vector [P], P = D*H + H + H*K + K: the hidden layer's weights [D, H] and
biases [H], the output's weights [H, K] and biases [K]. K tells the loss:

- one output is the logit of binary cross-entropy;
- two outputs are the paper's: softmax, and then cross-entropy, which takes a softmax again, of the softmax's
  output.

Any leading axes stack models, which then are computed as if each were alone: a stacked product is one matrix
product a model. Everything is computed in the data's own precision.
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
    output_weight: Floats  # [..., H, K]
    output_bias: Floats  # [..., K]


def n_parameters(n_features: int, n_hidden: int, n_outputs: int = 1) -> int:
    """Count the parameters of a model."""
    return n_features * n_hidden + n_hidden + n_hidden * n_outputs + n_outputs


def layers(parameters: Floats, n_features: int, n_outputs: int = 1) -> Layers:
    """Cut a flat parameter vector [..., P] into its layers, without copying."""
    n_hidden = (parameters.shape[-1] - n_outputs) // (n_features + 1 + n_outputs)
    lead, first = parameters.shape[:-1], n_features * n_hidden
    return Layers(
        parameters[..., :first].reshape(*lead, n_features, n_hidden),
        parameters[..., first : first + n_hidden].reshape(*lead, 1, n_hidden),
        parameters[..., first + n_hidden : -n_outputs].reshape(*lead, n_hidden, n_outputs),
        parameters[..., -n_outputs:],
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


def logits(parameters: Floats, X: Floats, n_outputs: int = 1) -> Floats:
    """Compute a logit [..., B] for each row of X [..., B, D]: relu(X W + b) w + c.

    With two outputs it is their difference, the logit of the softmax's second probability.
    """
    return _forward(layers(parameters, X.shape[-1], n_outputs), X)[1]


def _forward(layer: Layers, X: Floats) -> tuple[Floats, Floats]:
    """Compute the hidden activations [..., B, H] and the logits [..., B]."""
    hidden = np.matmul(X, layer.hidden_weight)
    hidden += layer.hidden_bias
    np.maximum(hidden, 0, out=hidden)
    outputs = np.matmul(hidden, layer.output_weight) + layer.output_bias[..., None, :]
    scores: Floats = outputs[..., 0] if outputs.shape[-1] == 1 else outputs[..., 1] - outputs[..., 0]
    return hidden, scores


def log_loss(scores: Floats, y: Floats, n_outputs: int = 1) -> Floats:
    """Average over the last axis the loss of logits [..., B] and labels 0 or 1 [..., B].

    Binary cross-entropy is log(1 + exp(s)) - y s, in a form that neither overflows nor loses small losses.
    """
    mean: Floats = _losses(scores, y, n_outputs).mean(axis=-1)
    return mean


def _losses(scores: Floats, y: Floats, n_outputs: int) -> Floats:
    """Compute each row's loss.

    With two outputs, cross-entropy takes the softmax's probabilities (1 - p, p) for logits, whose difference
    is 2 p - 1 = tanh(s / 2): it can't leave [-1, 1], and so the loss can't fall below log(1 + 1/e) = 0.313.
    """
    if n_outputs == 2:
        scores = np.tanh(scores / 2)
    return np.logaddexp(0, scores) - y * scores


def loss_and_grad(
    parameters: Floats,
    X: Floats,
    y: Floats,
    out: Floats | None = None,
    *,
    weight: Floats | None = None,
    n_outputs: int = 1,
) -> tuple[Floats, Floats]:
    """Compute the mean loss of a batch and its gradient.

    Parameters
    ----------
    parameters : ndarray, shape [..., P]
    X : ndarray, shape [..., B, D]
    y : ndarray, shape [..., B]
        Labels 0 or 1, as floats.
    out : ndarray, shape [..., P], optional
        Where to write the gradient.
    weight : ndarray, shape [..., B], optional
        Each row's part of the mean, 1/B when not given; 0 for rows that only fill up a batch.
    n_outputs : {1, 2}
        One logit, or the paper's two softmax neurons.

    Returns
    -------
    loss : ndarray, shape [...]
    gradient : ndarray, shape [..., P]
    """
    gradient = np.empty_like(parameters) if out is None else out
    layer, slope = (layers(vector, X.shape[-1], n_outputs) for vector in (parameters, gradient))
    hidden, scores = _forward(layer, X)
    part = np.full_like(y, 1 / y.shape[-1]) if weight is None else weight
    if n_outputs == 1:
        error = ((expit(scores) - y) * part)[..., None]
    else:
        squashed = np.tanh(scores / 2)
        # d tanh(s / 2) / ds = (1 - tanh(s / 2)^2) / 2; the two outputs pull in opposite directions.
        pull = (expit(squashed) - y) * part * ((1 - squashed * squashed) / 2)
        error = np.stack([-pull, pull], axis=-1)
    np.matmul(np.swapaxes(hidden, -1, -2), error, out=slope.output_weight)
    slope.output_bias[...] = error.sum(axis=-2)
    hidden_error = np.matmul(error, np.swapaxes(layer.output_weight, -1, -2))
    # Through the rectifier: the slope is 0 where it gave 0.
    hidden_error *= hidden > 0
    np.matmul(np.swapaxes(X, -1, -2), hidden_error, out=slope.hidden_weight)
    slope.hidden_bias[...] = hidden_error.sum(axis=-2, keepdims=True)
    return (_losses(scores, y, n_outputs) * part).sum(axis=-1), gradient


BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Adam's constants, as its authors and PyTorch have them."""


@dataclass(eq=False)
class Adam:
    """Adam's state (Kingma and Ba 2015, Algorithm 1): decaying sums of gradients and of their squares.

    `powers` [..., 2] holds each model's beta_1^t and beta_2^t: stacked models need not have made the same
    number of steps.
    """

    first: Floats
    second: Floats
    scratch: Floats
    powers: NDArray[np.float64]

    @classmethod
    def start(cls, parameters: Floats) -> "Adam":
        """Start with empty sums."""
        return cls(
            np.zeros_like(parameters),
            np.zeros_like(parameters),
            np.empty_like(parameters),
            np.ones((*parameters.shape[:-1], 2)),
        )

    def __getitem__(self, models: "slice | NDArray[np.intp]") -> "Adam":
        """Take the state of some of the stacked models: a view for a slice, else a copy."""
        return Adam(self.first[models], self.second[models], self.scratch[models], self.powers[models])


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
    state.powers *= (BETA_1, BETA_2)
    unbias_first = (1 - BETA_1) / (1 - state.powers[..., :1])
    unbias_second = np.sqrt((1 - BETA_2) / (1 - state.powers[..., 1:]))
    first, second, scratch = state.first, state.second, state.scratch
    first *= BETA_1
    first += gradient
    second *= BETA_2
    np.multiply(gradient, gradient, out=scratch)
    second += scratch
    np.sqrt(second, out=scratch)
    scratch += (EPSILON / unbias_second).astype(scratch.dtype)
    np.divide(first, scratch, out=scratch)
    scratch *= (learning_rate * unbias_first / unbias_second).astype(scratch.dtype)
    parameters -= scratch
