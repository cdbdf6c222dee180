"""Compute a two-layer perceptron: its logits, its loss, the gradient and initial parameters."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from obygaze_models.models.binary import Floats
from obygaze_models.models.choices import log_loss
from obygaze_models.models.scaling import mean_and_scale, standardise


class PerceptronLayers(NamedTuple):
    """Views of a flat parameter vector [P], or of its gradient.

    Attributes
    ----------
    hidden_weight : ndarray, shape [D, H]
    hidden_bias : ndarray, shape [H]
    output_weight : ndarray, shape [H, K]
    output_bias : ndarray, shape [K]
    """

    hidden_weight: Floats
    hidden_bias: Floats
    output_weight: Floats
    output_bias: Floats


class _Forward(NamedTuple):
    """What a perceptron computes on the way to its logits.

    Attributes
    ----------
    hidden : ndarray, shape [B, H]
        Activations of the hidden units.
    logit_weight : ndarray, shape [H]
        The weights of the hidden units in the logit.
    logits : ndarray, shape [B]
    """

    hidden: Floats
    logit_weight: Floats
    logits: Floats


@dataclass(frozen=True, slots=True)
class Perceptron:
    """A two-layer perceptron as a `TrainableNetwork`.

    A model's parameters are one flat vector [P], P = D*H + H + H*K + K: the hidden layer's weights [D, H] and
    biases [H], the output's weights [H, K] and biases [K]. The loss depends on K:

    - one output is a logit, whose loss is the binary cross-entropy;
    - two outputs are as in the paper: a softmax makes probabilities of them, and the loss is a cross-entropy
      that takes these probabilities for logits, and so applies a second softmax. Only the difference of the
      two outputs counts: it is the logit of the second probability.

    Everything is computed in the precision of the features.

    Attributes
    ----------
    n_features, n_hidden, n_outputs : int
        D, H and K.
    standardised : bool
        Whether features are standardised by the moments of the clips trained on.
    clip : float, optional
        Deviations at which standardised features are cut off.
    """

    n_features: int
    n_hidden: int
    n_outputs: int = 1
    standardised: bool = True
    clip: float | None = None

    @property
    def n_parameters(self) -> int:
        """The number of parameters, P: a weight of each input of a unit, and the unit's bias."""
        return (self.n_features + 1) * self.n_hidden + (self.n_hidden + 1) * self.n_outputs

    def mean_and_scale(self, X: Floats) -> tuple[Floats, Floats]:
        """Compute mean and scale [D] of X [N, D]; they are 0 and 1 if features are not standardised."""
        if self.standardised:
            return mean_and_scale(X)
        n_features = X.shape[1]
        return np.zeros(n_features, X.dtype), np.ones(n_features, X.dtype)

    def prepare(self, X: Floats, mean: Floats, scale: Floats) -> Floats:
        """Standardise and clip features X [N, D] by mean and scale [D]; unchanged if not `standardised`."""
        if not self.standardised:
            return X
        return standardise(X, mean, scale, self.clip)

    def initial_parameters(self, rng: np.random.Generator, X: Floats, y: Floats) -> NDArray[np.float64]:
        """Draw one set of initial parameters [1, P], between -1 and 1 over the root of their layer's inputs.

        Weights and biases are drawn uniformly, from the distribution of PyTorch's ``Linear`` (He et al. 2015
        with a = sqrt(5)). Other networks choose initial parameters by the training clips X and their labels
        y; this one does not use them.
        """
        del X, y
        # For each parameter the number of inputs of its layer, [P]. What is written to a layer's view is
        # written at the places of the layer's parameters.
        n_inputs = np.empty(self.n_parameters)
        layers = self.layers_of(n_inputs)
        layers.hidden_weight[:] = self.n_features
        layers.hidden_bias[:] = self.n_features
        layers.output_weight[:] = self.n_hidden
        layers.output_bias[:] = self.n_hidden
        drawn = rng.uniform(-1.0, 1.0, (1, self.n_parameters))
        return np.asarray(drawn / np.sqrt(n_inputs))

    def layers_of(self, parameters: Floats) -> PerceptronLayers:
        """Cut a flat parameter vector [P] into its layers, without copying.

        The vector holds hidden weights, hidden biases, output weights and output biases, in this order.
        """
        end_of_hidden_weight = self.n_features * self.n_hidden
        end_of_hidden_bias = end_of_hidden_weight + self.n_hidden
        end_of_output_weight = end_of_hidden_bias + self.n_hidden * self.n_outputs
        hidden_weight = parameters[:end_of_hidden_weight]
        output_weight = parameters[end_of_hidden_bias:end_of_output_weight]
        return PerceptronLayers(
            hidden_weight=hidden_weight.reshape(self.n_features, self.n_hidden),
            hidden_bias=parameters[end_of_hidden_weight:end_of_hidden_bias],
            output_weight=output_weight.reshape(self.n_hidden, self.n_outputs),
            output_bias=parameters[end_of_output_weight:],
        )

    def logits(self, layers: PerceptronLayers, X: Floats) -> Floats:
        """Compute a logit [B] for each row of X [B, D]: relu(X W + b) w + c."""
        return self._forward(layers, X).logits

    def _forward(self, layers: PerceptronLayers, X: Floats) -> _Forward:
        """Compute the logit of each row of X [B, D], and the intermediate values that the gradient needs."""
        hidden = X @ layers.hidden_weight
        hidden += layers.hidden_bias
        np.maximum(hidden, 0, out=hidden)  # relu
        # One output is the logit. Of two outputs, the logit is the second less the first.
        logit_weight = layers.output_weight[:, -1]
        logit_bias = layers.output_bias[-1]
        if self.n_outputs == 2:
            logit_weight = logit_weight - layers.output_weight[:, 0]
            logit_bias = logit_bias - layers.output_bias[0]
        logits = hidden @ logit_weight + logit_bias
        return _Forward(hidden, logit_weight, logits)

    def loss(self, scores: Floats, y: Floats) -> float:
        """Compute the mean log loss of logits, `scores` [B], and labels 0 or 1 [B].

        With one output the loss of a clip with the logit s is the binary cross-entropy,
        log(1 + exp(s)) - y s.

        With two outputs it is the paper's loss, which applies softmax twice. The first softmax makes the
        probabilities 1 - p and p of the outputs, with p = 1 / (1 + exp(-s)). The second one treats these as
        outputs, so that their difference, p - (1 - p) = tanh(s / 2), takes the place of s in the loss. As the
        difference is at most 1, the loss of a clip is never below log(1 + exp(-1)) = 0.313.
        """
        if self.n_outputs == 2:
            scores = np.tanh(scores / 2)
        return log_loss(y, scores)

    def _loss_by_logit(self, scores: Floats, y: Floats) -> Floats:
        """Compute the derivative [B] of the mean loss (`loss`) by each logit, `scores` [B].

        With one output, the derivative of a clip's loss by its logit s is expit(s) - y. With two outputs, the
        paper's loss reads d = tanh(s / 2) in place of s (`loss`), whose derivative by s is (1 - d²) / 2. By
        the chain rule, the derivative of the loss is then (expit(d) - y) (1 - d²) / 2.
        """
        if self.n_outputs == 1:
            return np.asarray((expit(scores) - y) / len(y))
        difference = np.tanh(scores / 2)
        return np.asarray((expit(difference) - y) * (1 - difference * difference) / (2 * len(y)))

    def backward(
        self,
        layers: PerceptronLayers,
        X: Floats,
        y: Floats,
        gradient: PerceptronLayers,
        weights: Floats | float = 1.0,
    ) -> Floats:
        """Compute the logits of a batch, and write into `gradient` the gradient of their mean weighted loss.

        Derivatives are computed from the output back to the input: first by the logits, which are
        ``hidden @ weight + bias``, then by the hidden units, which are ``relu(X @ weight + bias)``.

        Parameters
        ----------
        layers : PerceptronLayers
        X : ndarray, shape [B, D]
        y : ndarray, shape [B]
            Labels 0 or 1, as floats.
        gradient : PerceptronLayers
            Views of the gradient [P], which is overwritten.
        weights : ndarray, shape [B], or float
            Weight of each clip's loss. The weighted losses' sum is divided by B, not by the sum of weights.

        Returns
        -------
        ndarray, shape [B]
            The logits.
        """
        # With one output, it is the logit. With two, one for each class, the logit is the output of the
        # positive class less the other one: `logit_weight` [H] are the weights of that difference.
        hidden, logit_weight, logits = self._forward(layers, X)
        by_logit = self._loss_by_logit(logits, y)  # derivative of the loss by each logit, [B]
        by_logit *= weights

        # The last output is that of the positive class.
        gradient.output_weight[:, -1] = by_logit @ hidden
        gradient.output_bias[-1] = np.add.reduce(by_logit)
        if self.n_outputs == 2:
            # The other output is subtracted: its gradient is the opposite.
            gradient.output_weight[:, 0] = -gradient.output_weight[:, 1]
            gradient.output_bias[0] = -gradient.output_bias[1]

        # Derivative by each hidden unit before relu, [B, H]: 0 where relu has set it to 0.
        by_hidden = np.multiply.outer(by_logit, logit_weight)
        is_active = hidden > 0
        by_hidden *= is_active
        np.matmul(X.T, by_hidden, out=gradient.hidden_weight)
        np.add.reduce(by_hidden, axis=0, out=gradient.hidden_bias)
        return logits
