"""Compute a two-layer perceptron, and fit the MLP probe on frozen features: one, or many at once."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from obygaze_features.arguments import checked
from obygaze_models.blas import one_blas_thread
from obygaze_models.models.binary import Floats, Imbalance, encode_labels, rows_for
from obygaze_models.models.choices import EarlyStopping, log_loss
from obygaze_models.models.parameters import Count
from obygaze_models.models.scaling import moments, standardise
from obygaze_models.models.spec import ModelSpec
from obygaze_models.models.training import NetworkClassifier, train_many


class PerceptronLayers(NamedTuple):
    """Views of a flat parameter vector [P]."""

    hidden_weight: Floats  # [D, H]
    hidden_bias: Floats  # [H]
    output_weight: Floats  # [H, K]
    output_bias: Floats  # [K]


@dataclass(frozen=True, slots=True)
class Perceptron:
    """A two-layer perceptron as a `obygaze_models.models.training.Network`.

    A model's parameters are one flat vector [P], P = D*H + H + H*K + K: the hidden layer's weights [D, H] and
    biases [H], the output's weights [H, K] and biases [K]. K tells the loss:

    - one output is the logit of binary cross-entropy;
    - two outputs are the paper's: softmax, and then cross-entropy, which takes a softmax again, of the
      softmax's output. Only their difference counts: the logit of the softmax's second probability.

    Everything is computed in the data's own precision.

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
    n_outputs: int = 1
    standardised: bool = True
    clip: float | None = None

    @property
    def n_parameters(self) -> int:
        """Count the parameters, P."""
        return (self.n_features + 1) * self.n_hidden + (self.n_hidden + 1) * self.n_outputs

    def moments(self, X: Floats) -> tuple[Floats, Floats]:
        """Compute the moments of X [N, D]; 0 and 1 where nothing is standardised."""
        if self.standardised:
            return moments(X)
        return np.zeros(X.shape[1], X.dtype), np.ones(X.shape[1], X.dtype)

    def prepare(self, X: Floats, mean: Floats, scale: Floats) -> Floats:
        """Standardise and cut features, where the model does."""
        return standardise(X, mean, scale, self.clip) if self.standardised else X

    def starts(self, rng: np.random.Generator, X: Floats, y: Floats) -> NDArray[np.float64]:
        """Draw one start [1, P]: uniform within 1/sqrt(inputs) of zero, layer by layer.

        It is the law that PyTorch's ``Linear`` draws from (He et al. 2015 with a = sqrt(5)), for weights and
        biases; the clips trained on change nothing.
        """
        del X, y
        sizes = (self.n_features + 1) * self.n_hidden, (self.n_hidden + 1) * self.n_outputs
        inputs = np.repeat((self.n_features, self.n_hidden), sizes)
        return np.asarray(rng.uniform(-1.0, 1.0, (1, self.n_parameters)) / np.sqrt(inputs))

    def views(self, parameters: Floats) -> PerceptronLayers:
        """Cut a flat parameter vector [P] into its layers, without copying."""
        first = self.n_features * self.n_hidden
        return PerceptronLayers(
            parameters[:first].reshape(self.n_features, self.n_hidden),
            parameters[first : first + self.n_hidden],
            parameters[first + self.n_hidden : -self.n_outputs].reshape(self.n_hidden, self.n_outputs),
            parameters[-self.n_outputs :],
        )

    def logits(self, layer: PerceptronLayers, X: Floats) -> Floats:
        """Compute a logit [B] for each row of X [B, D]: relu(X W + b) w + c."""
        return self._forward(layer, X)[2]

    def _forward(self, layer: PerceptronLayers, X: Floats) -> tuple[Floats, Floats, Floats]:
        """Compute hidden activations [B, H], the weights [H] that make logits of them, and logits [B]."""
        hidden = X @ layer.hidden_weight
        hidden += layer.hidden_bias
        np.maximum(hidden, 0, out=hidden)
        weight, bias = layer.output_weight[:, -1], layer.output_bias[-1]
        if self.n_outputs == 2:
            weight, bias = weight - layer.output_weight[:, 0], bias - layer.output_bias[0]
        return hidden, weight, hidden @ weight + bias

    def loss(self, scores: Floats, y: Floats) -> float:
        """Compute the mean log loss of logits [B] and labels 0 or 1 [B].

        Binary cross-entropy is log(1 + exp(s)) - y s, in a form that neither overflows nor loses small
        losses. With two outputs, cross-entropy takes the softmax's probabilities (1 - p, p) for logits, whose
        difference is 2 p - 1 = tanh(s / 2): it can't leave [-1, 1], and so the loss can't fall below
        log(1 + 1/e) = 0.313.
        """
        if self.n_outputs == 2:
            scores = np.tanh(scores / 2)
        return log_loss(y, scores)

    def backward(
        self,
        layer: PerceptronLayers,
        X: Floats,
        y: Floats,
        slope: PerceptronLayers,
        weights: Floats | float = 1.0,
    ) -> Floats:
        """Compute the logits of a batch, and write into `slope` the gradient of their mean weighted loss.

        Parameters
        ----------
        layer : PerceptronLayers
        X : ndarray, shape [B, D]
        y : ndarray, shape [B]
            Labels 0 or 1, as floats.
        slope : PerceptronLayers
            Views of the gradient [P].
        weights : ndarray, shape [B], or float
            Of each clip's loss, whose sum is divided by B, not by the weights'.

        Returns
        -------
        ndarray, shape [B]
        """
        hidden, weight, scores = self._forward(layer, X)
        if self.n_outputs == 1:
            pull = (expit(scores) - y) / len(y)
        else:
            squashed = np.tanh(scores / 2)
            # d tanh(s / 2) / ds = (1 - tanh(s / 2)^2) / 2.
            pull = (expit(squashed) - y) * (1 - squashed * squashed) / (2 * len(y))
        pull *= weights
        slope.output_weight[:, -1] = pull @ hidden
        slope.output_bias[-1] = np.add.reduce(pull)
        if self.n_outputs == 2:
            # The two outputs pull in opposite directions.
            slope.output_weight[:, 0] = -slope.output_weight[:, 1]
            slope.output_bias[0] = -slope.output_bias[1]
        error = np.multiply.outer(pull, weight)
        # Through the rectifier: the slope is 0 where it gave 0.
        error *= hidden > 0
        np.matmul(X.T, error, out=slope.hidden_weight)
        np.add.reduce(error, axis=0, out=slope.hidden_bias)
        return scores


@dataclass(eq=False, repr=False)
class MLPProbe(NetworkClassifier):
    """A perceptron with one hidden layer of rectifiers and one logit, trained with Adam on cross-entropy.

    With ``X_val, y_val`` the epoch with the lowest loss on them is kept; without, `max_epochs` epochs are run
    and the last is kept. `GroupedSelection` with `EarlyStopping` chooses the epochs, and a threshold, by
    movies. Features are standardised inside `fit`, by the moments of the training clips, and cut off at
    `clip` deviations.

    The ``paper`` variant is the published model, including its known flaws: two softmax
    neurons whose probabilities cross-entropy takes for logits, so that the loss is flat wherever the model is
    sure; features as they are; and the epoch that training ended with, `patience` epochs past the best. It
    takes no `imbalance`: its classes are balanced by the folds drawn.

    Parameters
    ----------
    n_hidden : int
        Hidden units.
    variant : {"strict", "paper"}
        One logit, or the paper's model.
    learning_rate, batch_size, min_epochs, max_epochs, patience, clip, random_state
        Of the training, see `NetworkClassifier`.
    imbalance : {"none", "weights", "subsample"}
        What is done about the larger class, in the clips a model is trained on and in no others: nothing but
        the threshold; losses weighed by n / (2 n_class), scikit-learn's ``"balanced"``; or clips of the
        larger class drawn, as many as the smaller has, from `random_state`.

    Attributes
    ----------
    parameters_ : ndarray, shape [P]
        The kept parameters; `Perceptron.views` cuts them into layers.
    mean_, scale_ : ndarray, shape [D]
        Moments by which features are standardised; 0 and 1 in the paper variant.
    classes_, n_features_in_, threshold_, n_epochs_, curve_
        See `NeuralClassifier`.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> y = data.levels == "S"
    >>> probe = om.MLPProbe(n_hidden=8, max_epochs=5).fit(data.X, y)
    >>> probe.predict_proba(data.X).shape
    (95, 2)
    """

    n_hidden: Count = 128
    _: KW_ONLY
    variant: Literal["strict", "paper"] = "strict"
    imbalance: Imbalance = "none"

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, X_val: ArrayLike | None = None, y_val: ArrayLike | None = None
    ) -> Self:
        """Train on features X [N, D] and labels y [N].

        Parameters
        ----------
        X : array-like, shape [N, D]
            float32 or float64, and computed in that precision.
        y : array-like, shape [N]
            Two labels; the second in sorted order is the positive one.
        X_val, y_val : array-like, shapes [M, D] and [M], optional
            Clips to choose the epoch on, of movies that are not in X.

        Raises
        ------
        ValueError
            One of X_val and y_val is missing, or an imbalance is given to the paper variant.
        """
        self._check_settings()
        features, y = validate_data(self, X, y, dtype=(np.float64, np.float32))
        classes, labels = encode_labels(y, type(self).__name__)
        if X_val is not None:
            X_val = validate_data(self, X_val, dtype=features.dtype, reset=False)
        return self._fit(features, classes, labels, X_val, y_val)

    def decision_function(self, X: ArrayLike) -> Floats:
        """Compute the logit [N] of each clip of X [N, D]: positive when it leans to the positive class."""
        check_is_fitted(self)
        features = rows_for(self, X, np.float64, np.float32)
        features = features.astype(self.mean_.dtype, copy=False)
        network = self._network(features.shape[1])
        with one_blas_thread():
            ready = network.prepare(features, self.mean_, self.scale_)
            return network.logits(network.views(self.parameters_), ready)

    def _network(self, n_features: int) -> Perceptron:
        paper = self.variant == "paper"
        return Perceptron(n_features, self.n_hidden, 2 if paper else 1, not paper, self.clip)

    def _keeps_best(self) -> bool:
        return self.variant == "strict"

    def _check_settings(self) -> None:
        self._validate_params()
        if self.imbalance != "none" and self.variant == "paper":
            raise ValueError(
                "the paper variant balances classes by its folds: imbalance must be 'none', "
                f"not {self.imbalance!r}"
            )


@checked
def fit_many(
    probes: Sequence[MLPProbe],
    X: ArrayLike,
    y: ArrayLike,
    train: Sequence[NDArray[np.intp]],
    *,
    validation: Sequence[NDArray[np.intp]] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Fit many probes in one computation; faster, with the same bytes as fitting each alone.

    Parameters
    ----------
    probes : sequence of MLPProbe
        Alike in every parameter but `random_state`.
    X : array-like, shape [N, D]
    y : array-like, shape [N]
        Two labels, both among every probe's training rows.
    train : sequence of ndarray of int
        The rows of X that each probe is trained on.
    validation : sequence of ndarray of int, optional
        The rows on which each probe's epoch is chosen.
    progress : callable, optional
        Called now and then with the numbers of trainings done and of all.

    Raises
    ------
    ValueError
        The probes differ, a probe has no or one class to learn from, or a probe would be validated on what it
        is trained on.
    """
    features, y = check_X_y(X, y, dtype=(np.float64, np.float32))
    classes, labels = encode_labels(y, MLPProbe.__name__)
    for rows in train:
        if np.unique(labels[rows]).size < 2:
            raise ValueError(
                f"a probe needs clips of two classes, but one has {len(rows)} of one class at most"
            )
    for number, rows in enumerate(validation or ()):
        if np.intersect1d(train[number], rows).size:
            raise ValueError("a probe's validation rows must not be among those it is trained on")
    for probe in probes:
        probe._check_settings()
        if probe.get_params() | {"random_state": 0} != probes[0].get_params() | {"random_state": 0}:
            raise ValueError("probes fitted together must be alike in every parameter but random_state")
        probe.classes_, probe.n_features_in_ = classes, features.shape[1]
    train_many(probes, features, labels, train, validation, progress=progress)


def make_mlp(seed: int, imbalance: Imbalance = "none") -> MLPProbe:
    """Make the zoo's MLP probe for a seed."""
    return MLPProbe(imbalance=imbalance, random_state=seed)


SPECS = (ModelSpec("mlp", "MLP", make_mlp, choose=EarlyStopping()),)
