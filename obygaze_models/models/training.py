"""Train many small networks at once, by Adam over shuffled batches, each stopped early on its own.

Models are trained one after the other, so that what a step touches fits a core's cache, and those that differ
in their validation clips alone are one training. A model's bytes depend on its own clips and seed alone.

Folds side by side in one product would be slower. A step of a perceptron with 512 inputs and 128 hidden
units, by batches of 16 clips, takes 61 to 79 us in its products and 68 to 70 in Adam, one fold after another;
of 4, 16 and 48 folds at once the products take 61, 68 and 83 us a fold, Adam 67, 115 and 120: its sums of all
folds do not fit a cache, and no weights are shared (AMD EPYC, one core, 2026-11-28).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs
from sklearn.utils.validation import check_consistent_length

from obygaze_models.blas import one_blas_thread
from obygaze_models.models.binary import Floats, LogitClassifier, balanced_weights, even_rows
from obygaze_models.models.parameters import Count, Positive, Seed
from obygaze_models.models.scaling import CLIP, Limit

N_TRIAL_EPOCHS = 4
"""Epochs after which the starts of a network are compared by their training loss."""


class TrainableNetwork(Protocol):
    """What is trained: arithmetic on one flat vector of parameters [P].

    A layer is whatever `views` makes of the parameters, or of their gradient, without copying.
    """

    @property
    def n_parameters(self) -> int:
        """Count the parameters, P."""

    def moments(self, X: Floats) -> tuple[Floats, Floats]:
        """Compute the mean and scale [D] of the features trained on."""

    def prepare(self, X: Floats, mean: Floats, scale: Floats) -> Floats:
        """Make of clips' features what the other methods take for X."""

    def starts(self, rng: np.random.Generator, X: Floats, y: Floats) -> NDArray[np.float64]:
        """Draw initial parameters [K, P] of K starts, given the prepared clips trained on and labels."""

    def views(self, parameters: Floats) -> Any:
        """Cut a vector [P] into layers, without copying."""

    def logits(self, layer: Any, X: Floats) -> Floats:
        """Compute the logit of each clip [B]."""

    def backward(self, layer: Any, X: Floats, y: Floats, slope: Any, weights: Floats) -> Floats:
        """Compute logits [B], and write the gradient of their mean weighted loss into `slope`."""

    def loss(self, scores: Floats, y: Floats) -> float:
        """Compute the mean loss of logits [B] and labels 0 or 1 [B]."""


@dataclass(frozen=True, eq=False, slots=True)
class LossCurve:
    """What a training looked like, epoch by epoch.

    Attributes
    ----------
    train_loss : ndarray of float64, shape [E]
        Mean of the clips' losses while the epoch ran, none weighted.
    validation_loss : ndarray of float64, shape [E]
        Loss after the epoch; NaN where there was nothing to validate on.
    kept : int
        The epoch whose parameters were kept, counted from 1.
    start_losses : ndarray of float64, shape [K]
        Training loss of each start after `N_TRIAL_EPOCHS`, of which the lowest was trained on; empty where
        the network has one start.
    """

    train_loss: NDArray[np.float64]
    validation_loss: NDArray[np.float64]
    kept: int
    start_losses: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


# --- training
# ---------------------------------------------------------------------------


def train_many(
    models: Sequence["NetworkClassifier"],
    X: Floats,
    labels: NDArray[np.int64],
    train: Sequence[NDArray[np.intp]],
    validation: Sequence[NDArray[np.intp]] | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Train models, alike but for their seeds, each on its rows of X [N, ...] and labels [N], 0 or 1.

    A model stops after `patience` epochs without a lower loss on its validation rows, not before
    `min_epochs`. Of equal losses the first is the lowest. Without validation rows nothing can be chosen:
    `max_epochs` epochs are run and the last is kept. Models that differ in their validation rows alone are
    one training, which goes on until the last of them stops. Each has the same bytes as if trained alone.

    Parameters
    ----------
    progress : callable, optional
        Called now and then with the numbers of models trained and of all.
    """
    alike: dict[tuple[bytes, int], list[int]] = {}
    for index, (model, rows) in enumerate(zip(models, train, strict=True)):
        alike.setdefault((rows.tobytes(), int(model.random_state)), []).append(index)
    done, y = 0, labels.astype(X.dtype)
    # One after the other: threads pass the interpreter's lock to and fro at each of a step's thirty short
    # operations, which on two cores costs half as much CPU again and saves no time.
    with one_blas_thread():
        for indices in alike.values():
            held_out = [None if validation is None else validation[index] for index in indices]
            _train([models[index] for index in indices], X, y, train[indices[0]], held_out)
            done += len(indices)
            if progress is not None:
                progress(done, len(models))


@dataclass(eq=False)
class _Stopping:
    """Early stopping of one model: when its training ends, and which epoch is kept."""

    model: "NetworkClassifier"
    held_out: tuple[Floats, Floats] | None
    kept: int = 0
    best: Floats | None = None
    best_loss: float = np.inf
    losses: list[float] = field(default_factory=list)

    def ends(self, learner: "_Learner", epoch: int) -> bool:
        """Compute the validation loss after an epoch, and return whether training ends."""
        done = epoch >= self.model.max_epochs
        if self.held_out is None:
            self.losses.append(float("nan"))
            return done
        X, y = self.held_out
        loss = learner.network.loss(learner.network.logits(learner.layer, X), y)
        self.losses.append(loss)
        if loss < self.best_loss:
            self.best_loss, self.kept = loss, epoch
            self.best = learner.parameters.copy() if self.model._keeps_best() else None
        return done or (epoch >= self.model.min_epochs and epoch - self.kept >= self.model.patience)


def _train(
    models: Sequence["NetworkClassifier"],
    X: Floats,
    y: Floats,
    rows: NDArray[np.intp],
    validation: Sequence[NDArray[np.intp] | None],
) -> None:
    """Train models that differ only in their validation rows."""
    model = models[0]
    network, rng = model._network(X.shape[-1]), np.random.default_rng((int(model.random_state), 0))
    if model.imbalance == "subsample":
        # From a stream of its own: the rest is as if the clips drawn were all there are.
        rows = rows[even_rows(y[rows], rng.spawn(1)[0])]
    own, labels = X[rows], y[rows]
    weights = balanced_weights(labels) if model.imbalance == "weights" else np.ones_like(labels)
    mean, scale = network.moments(own)
    clips = network.prepare(own, mean, scale), labels, weights
    running = []
    for each, seen in zip(models, validation, strict=True):
        held_out = None if seen is None else (network.prepare(X[seen], mean, scale), y[seen])
        running.append(_Stopping(each, held_out))
    starts: Floats = network.starts(rng, clips[0], labels).astype(X.dtype)
    best, start_losses = 0, np.empty(0)
    if len(starts) > 1:
        trials = [_Learner(model, network, start.copy(), clips) for start in starts]
        start_losses = np.array([[trial.epoch(rng) for _ in range(N_TRIAL_EPOCHS)][-1] for trial in trials])
        best = int(start_losses.argmin())
    learner = _Learner(model, network, starts[best].copy(), clips)
    train_loss: list[float] = []
    while running:
        train_loss.append(learner.epoch(rng))
        for stopping in [each for each in running if each.ends(learner, len(train_loss))]:
            running.remove(stopping)
            each, kept = stopping.model, len(train_loss) if stopping.best is None else stopping.kept
            each.parameters_ = learner.parameters.copy() if stopping.best is None else stopping.best
            each.mean_, each.scale_, each.threshold_, each.n_epochs_ = mean, scale, 0.0, kept
            each.curve_ = LossCurve(np.array(train_loss), np.array(stopping.losses), kept, start_losses)


class _Learner:
    """Parameters [P] under training by Adam on `clips`: prepared X [N, ...], labels [N] and weights [N]."""

    def __init__(
        self,
        model: "NetworkClassifier",
        network: TrainableNetwork,
        parameters: Floats,
        clips: tuple[Floats, Floats, Floats],
    ) -> None:
        self.model, self.network, self.parameters, self._clips = model, network, parameters, clips
        self.layer = network.views(parameters)
        self._state, self._gradient = Adam.start(parameters), np.empty_like(parameters)
        self._slope = network.views(self._gradient)

    def epoch(self, rng: np.random.Generator) -> float:
        """Step once through the clips in random order; return their mean loss meanwhile."""
        (X, y, weights), size, network = self._clips, self.model.batch_size, self.network
        shuffled = np.empty((min(size, len(X)), *X.shape[1:]), X.dtype)
        order, scores = rng.permutation(len(y)), np.empty_like(y)
        targets, shares = y[order], weights[order]
        for start in range(0, len(order), size):
            batch = slice(start, start + size)
            # A batch at a time, which stays in a core's cache: frames of all clips do not.
            rows = order[batch]
            clips = X.take(rows, axis=0, out=shuffled[: len(rows)], mode="clip")
            scores[batch] = network.backward(self.layer, clips, targets[batch], self._slope, shares[batch])
            adam_step(self.parameters, self._gradient, self._state, self.model.learning_rate)
        return network.loss(scores, targets)


# --- Adam
# ---------------------------------------------------------------------------

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


# --- estimators
# ---------------------------------------------------------------------------
@dataclass(eq=False, repr=False, kw_only=True)
class NeuralClassifier(LogitClassifier):
    """Base class of the neural classifiers, which Adam trains in batches of clips, epoch by epoch.

    Parameters
    ----------
    learning_rate : float
        Adam's step size.
    batch_size : int
        Clips a step; an epoch's last batch may be smaller.
    max_epochs : int
        Most epochs.
    patience : int
        Epochs without a lower loss on clips held out after which training stops.
    random_state : int
        Seed of all that is drawn: the same seed gives the same bytes, whatever the number of threads
        (training and prediction hold BLAS to one; the products are too small to gain from more).

    Attributes
    ----------
    classes_ : ndarray, shape [2]
        The negative and the positive label.
    n_features_in_ : int
        D, of each vector.
    parameters_ : ndarray, shape [P]
        The kept parameters, which the network cuts into layers.
    mean_, scale_ : ndarray, shape [D]
        Moments by which features are standardised.
    threshold_ : float
        The logit from which on a clip is called positive.
    n_epochs_ : int
        Epochs that made the kept parameters.
    curve_ : LossCurve
        Losses epoch by epoch.
    """

    learning_rate: Positive = 1e-3
    batch_size: Count = 16
    max_epochs: Count = 100
    patience: Count = 5
    random_state: Seed = 0

    def _n_parameters(self, n_features: int) -> int:
        """Count the parameters, P, for vectors of so many features."""
        raise NotImplementedError


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkClassifier(NeuralClassifier):
    """Base class of the classifiers that train a `TrainableNetwork` by `train_many`.

    Parameters
    ----------
    learning_rate, batch_size, max_epochs, patience, random_state
        See `NeuralClassifier`.
    min_epochs : int
        Fewest epochs. `max_epochs` wins where it is the smaller.
    clip : float, optional
        Deviations at which standardised features are cut off; None for no limit.
    """

    min_epochs: Count = 5
    clip: Limit | None = CLIP

    imbalance = "none"

    def _network(self, n_features: int) -> Any:
        """Make the network for vectors of so many features."""
        raise NotImplementedError

    def _n_parameters(self, n_features: int) -> int:
        n_parameters: int = self._network(n_features).n_parameters
        return n_parameters

    def _keeps_best(self) -> bool:
        """Whether the epoch of the lowest validation loss is kept, and not the last."""
        return True

    def _fit(
        self, X: Floats, classes: NDArray[Any], labels: NDArray[np.int64], X_val: Any, y_val: Any
    ) -> Self:
        """Train on X [N, ...] and labels [N], 0 or 1; choose the epoch on X_val and y_val, if given."""
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: give both or neither")
        train, validation = np.arange(len(X)), None
        if X_val is not None:
            check_consistent_length(X_val, y_val)
            strange = np.setdiff1d(y_val, classes)
            if strange.size:
                raise ValueError(f"y_val holds the label {strange.tolist()[0]!r}, which y does not")
            X = np.concatenate([X, X_val])
            labels = np.concatenate([labels, (np.asarray(y_val) == classes[1]).astype(np.int64)])
            validation = [np.arange(len(train), len(X))]
        train_many([self], X, labels, [train], validation)
        self.classes_ = classes
        return self
