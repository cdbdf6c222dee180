"""Compute a two-layer perceptron: initialisation, losses, gradient.

A model's parameters are one flat vector [P], P = D*H + H + H*K + K: the hidden layer's weights [D, H] and
biases [H], the output's weights [H, K] and biases [K]. K tells the loss:

- one output is the logit of binary cross-entropy;
- two outputs are the paper's: softmax, and then cross-entropy, which takes a softmax again, of the softmax's
  output. Only their difference counts: the logit of the softmax's second probability.

Everything is computed in the data's own precision.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from obygaze_models.models.binary import Floats
from obygaze_models.models.linear import moments, standardise


class PerceptronLayers(NamedTuple):
    """Views of a flat parameter vector [P]."""

    hidden_weight: Floats  # [D, H]
    hidden_bias: Floats  # [H]
    output_weight: Floats  # [H, K]
    output_bias: Floats  # [K]


def n_parameters(n_features: int, n_hidden: int, n_outputs: int = 1) -> int:
    """Count the parameters of a model."""
    return n_features * n_hidden + n_hidden + n_hidden * n_outputs + n_outputs


def layers(parameters: Floats, n_features: int, n_outputs: int = 1) -> PerceptronLayers:
    """Cut a flat parameter vector [P] into its layers, without copying."""
    n_hidden = (len(parameters) - n_outputs) // (n_features + 1 + n_outputs)
    first = n_features * n_hidden
    return PerceptronLayers(
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


def logits(layer: PerceptronLayers, X: Floats) -> Floats:
    """Compute a logit [B] for each row of X [B, D]: relu(X W + b) w + c."""
    return _forward(layer, X)[2]


def _forward(layer: PerceptronLayers, X: Floats) -> tuple[Floats, Floats, Floats]:
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


def backward(
    layer: PerceptronLayers, X: Floats, y: Floats, slope: PerceptronLayers, weights: Floats | float = 1.0
) -> Floats:
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
    slope.output_bias[-1] = np.add.reduce(pull)
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


@dataclass(frozen=True, slots=True)
class Perceptron:
    """A two-layer perceptron as a `Network`.

    Attributes
    ----------
    n_features, n_hidden, n_outputs : int
    standardised : bool
        Whether features are standardised by the moments of the clips trained on.
    clip : float, optional
        Deviations at which standardised features are cut off.
    """

    n_features: int
    n_hidden: int
    n_outputs: int
    standardised: bool
    clip: float | None

    @property
    def n_parameters(self) -> int:
        """Count the parameters, P."""
        return n_parameters(self.n_features, self.n_hidden, self.n_outputs)

    def moments(self, X: Floats) -> tuple[Floats, Floats]:
        """Compute the moments of X [N, D]; 0 and 1 where nothing is standardised."""
        if self.standardised:
            return moments(X)
        return np.zeros(X.shape[1], X.dtype), np.ones(X.shape[1], X.dtype)

    def prepare(self, X: Floats, mean: Floats, scale: Floats) -> Floats:
        """Standardise and cut features, where the model does."""
        return standardise(X, mean, scale, self.clip) if self.standardised else X

    def starts(self, rng: np.random.Generator, X: Floats, y: Floats) -> NDArray[np.float64]:
        """Draw one start [1, P], see `initial`; the clips trained on change nothing."""
        del X, y
        return initial(self.n_features, self.n_hidden, rng, self.n_outputs)[None]

    def views(self, parameters: Floats) -> PerceptronLayers:
        """Cut a vector into layers, see `layers`."""
        return layers(parameters, self.n_features, self.n_outputs)

    def logits(self, layer: PerceptronLayers, X: Floats) -> Floats:
        """Compute logits, see `logits`."""
        return logits(layer, X)

    def backward(
        self, layer: PerceptronLayers, X: Floats, y: Floats, slope: PerceptronLayers, weights: Floats
    ) -> Floats:
        """Compute logits and gradient, see `backward`."""
        return backward(layer, X, y, slope, weights)

    def loss(self, scores: Floats, y: Floats) -> float:
        """Compute the mean loss, see `log_loss`."""
        return log_loss(scores, y, self.n_outputs)
