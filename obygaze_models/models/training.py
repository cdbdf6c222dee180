"""Train many small networks at once, by Adam over shuffled batches, each stopped early on its own.

Models are trained one after the other, so that what a step touches fits a core's cache, and those that differ
in their validation clips alone are one training. A model's bytes depend on its own clips and seed alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs
from sklearn.utils._param_validation import Interval

from obygaze_models.blas import one_blas_thread
from obygaze_models.models.binary import Floats, Imbalance, LogitClassifier, balanced_weights, even_rows
from obygaze_models.models.linear import CLIP, MOST

N_TRIAL_EPOCHS = 4
"""Epochs after which the starts of a network are compared by their training loss."""


class Network(Protocol):
    """What is trained: arithmetic on one flat vector of parameters [P].

    A layer is whatever `views` makes of the parameters, or of their gradient, without copying.
    """

    @property
    def n_parameters(self) -> int:
        """Count the parameters, P."""
        ...

    def moments(self, X: Floats) -> tuple[Floats, Floats]:
        """Compute the mean and scale [D] of the features trained on."""
        ...

    def prepare(self, X: Floats, mean: Floats, scale: Floats) -> Floats:
        """Make of clips' features what the other methods take for X."""
        ...

    def starts(self, rng: np.random.Generator, X: Floats, y: Floats) -> NDArray[np.float64]:
        """Draw initial parameters [K, P] of K starts, given the prepared clips trained on and labels."""
        ...

    def views(self, parameters: Floats) -> Any:
        """Cut a vector [P] into layers, without copying."""
        ...

    def logits(self, layer: Any, X: Floats) -> Floats:
        """Compute the logit of each clip [B]."""
        ...

    def backward(self, layer: Any, X: Floats, y: Floats, slope: Any, weights: Floats) -> Floats:
        """Compute logits [B], and write the gradient of their mean weighted loss into `slope`."""
        ...

    def loss(self, scores: Floats, y: Floats) -> float:
        """Compute the mean loss of logits [B] and labels 0 or 1 [B]."""
        ...


@dataclass(eq=False, repr=False, kw_only=True)
class TrainingLength:
    """How long and in which steps a network is trained: parameters of every neural classifier.

    Attributes
    ----------
    learning_rate : float
        Adam's step size.
    batch_size : int
        Clips a step; an epoch's last batch may be smaller.
    min_epochs, max_epochs : int
        Fewest and most epochs. `max_epochs` wins where it is the smaller.
    patience : int
        Epochs without a lower validation loss after which training stops.
    """

    learning_rate: float = 1e-3
    batch_size: int = 16
    min_epochs: int = 5
    max_epochs: int = 100
    patience: int = 5


@dataclass(eq=False, kw_only=True)
class TrainingSettings(TrainingLength):
    """What a model is, and how long and in which steps it is trained.

    Attributes
    ----------
    network : Network
        Its arithmetic.
    imbalance : {"none", "weights", "subsample"}
        What is done to the clips trained on, and to no others (`obygaze_models.models.binary`).
    keep : {"best", "last"}
        The epoch whose parameters are kept: that of the lowest validation loss, or the one training ended
        with.
    """

    network: Network
    imbalance: Imbalance
    keep: Literal["best", "last"]


@dataclass(frozen=True, eq=False, slots=True)
class TrainingJob:
    """One model to train.

    Attributes
    ----------
    train : ndarray of int, shape [N]
        Rows to learn from.
    validation : ndarray of int, shape [V], optional
        Rows that say when to stop.
    seed : tuple of int
        Of the model's own stream of random numbers.
    """

    train: NDArray[np.intp]
    validation: NDArray[np.intp] | None
    seed: tuple[int, ...]


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


@dataclass(frozen=True, eq=False, slots=True)
class Trained:
    """A trained model: parameters [P], and the mean and scale [D] that standardise features first."""

    parameters: Floats
    mean: Floats
    scale: Floats
    curve: LossCurve


# --- training
# ---------------------------------------------------------------------------


def train_many(
    X: Floats,
    y: Floats,
    jobs: Sequence[TrainingJob],
    settings: TrainingSettings,
    *,
    progress: Callable[[int], None] | None = None,
) -> list[Trained]:
    """Train a model for each job on rows of X [N, ...] and y [N] (0. or 1.).

    A model stops after `patience` epochs without a lower validation loss, not before `min_epochs`. Of equal
    losses the first is the lowest. Without validation rows nothing can be chosen: `max_epochs` epochs are run
    and the last is kept. Jobs that differ in their validation rows alone are one training, which goes on
    until the last of them stops.

    Parameters
    ----------
    progress : callable, optional
        Called now and then with the number of models trained since the last call.

    Returns
    -------
    list of Trained
        In the order of the jobs, and the same bytes as if each were trained alone.
    """
    alike: dict[tuple[bytes, tuple[int, ...]], list[int]] = {}
    for index, job in enumerate(jobs):
        alike.setdefault((job.train.tobytes(), job.seed), []).append(index)
    trained: dict[int, Trained] = {}
    # One after the other: threads pass the interpreter's lock to and fro at each of a step's thirty short
    # operations, which on two cores costs half as much CPU again and saves no time.
    with one_blas_thread():
        for indices in alike.values():
            done = _train(X, y, [jobs[index] for index in indices], settings)
            trained |= dict(zip(indices, done, strict=True))
            if progress is not None:
                progress(len(indices))
    return [trained[index] for index in range(len(jobs))]


@dataclass(eq=False)
class _StopState:
    """Early stopping of one job: when training ends, and which epoch is kept."""

    job: TrainingJob
    held_out: tuple[Floats, Floats] | None
    kept: int = 0
    best: Floats | None = None
    best_loss: float = np.inf
    losses: list[float] = field(default_factory=list)
    ended: tuple[Floats, LossCurve] | None = None

    def after_epoch(
        self, parameters: Floats, layer: Any, train_loss: Sequence[float], settings: TrainingSettings
    ) -> None:
        """Compute the validation loss after an epoch; at the end, take the parameters [P] to keep."""
        epoch = len(train_loss)
        done = epoch >= settings.max_epochs
        if self.held_out is not None:
            X, y = self.held_out
            loss = settings.network.loss(settings.network.logits(layer, X), y)
            self.losses.append(loss)
            if loss < self.best_loss:
                self.best_loss, self.kept = loss, epoch
                self.best = parameters.copy() if settings.keep == "best" else None
            done |= epoch >= settings.min_epochs and epoch - self.kept >= settings.patience
        if done:
            curve = LossCurve(
                np.array(train_loss),
                np.array(self.losses or [float("nan")] * epoch),
                epoch if self.best is None else self.kept,
            )
            self.ended = (parameters.copy() if self.best is None else self.best, curve)


def _train(X: Floats, y: Floats, jobs: Sequence[TrainingJob], settings: TrainingSettings) -> list[Trained]:
    """Train a model for jobs that differ only in their validation rows."""
    job = jobs[0]
    rng, rows = np.random.default_rng(job.seed), job.train
    if settings.imbalance == "subsample":
        # From a stream of its own: the rest is as if the clips drawn were all there are.
        rows = rows[even_rows(y[rows], rng.spawn(1)[0])]
    own, labels, network = X[rows], y[rows], settings.network
    weights = balanced_weights(labels) if settings.imbalance == "weights" else np.ones_like(labels)
    mean, scale = network.moments(own)
    own = network.prepare(own, mean, scale)
    stops = []
    for member in jobs:
        seen = member.validation
        held_out = None if seen is None else (network.prepare(X[seen], mean, scale), y[seen])
        stops.append(_StopState(member, held_out))
    starts: Floats = network.starts(rng, own, labels).astype(X.dtype)
    best, start_losses = 0, np.empty(0)
    if len(starts) > 1:
        trials = [_Learner(start.copy(), own, labels, weights, settings) for start in starts]
        start_losses = np.array([[trial.epoch(rng) for _ in range(N_TRIAL_EPOCHS)][-1] for trial in trials])
        best = int(start_losses.argmin())
    learner = _Learner(starts[best].copy(), own, labels, weights, settings)
    train_loss: list[float] = []
    while any(stop.ended is None for stop in stops):
        train_loss.append(learner.epoch(rng))
        for stop in stops:
            if stop.ended is None:
                stop.after_epoch(learner.parameters, learner.layer, train_loss, settings)
    ends = [stop.ended for stop in stops if stop.ended is not None]
    return [Trained(kept, mean, scale, replace(curve, start_losses=start_losses)) for kept, curve in ends]


class _Learner:
    """Parameters [P] under training by Adam on prepared clips X [N, ...], y [N] and their weights [N]."""

    def __init__(
        self, parameters: Floats, X: Floats, y: Floats, weights: Floats, settings: TrainingSettings
    ) -> None:
        self.parameters, self.settings = parameters, settings
        self.layer = settings.network.views(parameters)
        self._clips = X, y, weights
        self._state, self._gradient = Adam.start(parameters), np.empty_like(parameters)
        self._slope = settings.network.views(self._gradient)

    def epoch(self, rng: np.random.Generator) -> float:
        """Step once through the clips in random order; return their mean loss meanwhile."""
        (X, y, weights), size, network = self._clips, self.settings.batch_size, self.settings.network
        shuffled = np.empty((min(size, len(X)), *X.shape[1:]), X.dtype)
        order, scores = rng.permutation(len(y)), np.empty_like(y)
        targets, shares = y[order], weights[order]
        for start in range(0, len(order), size):
            batch = slice(start, start + size)
            # A batch at a time, which stays in a core's cache: frames of all clips do not.
            rows = order[batch]
            clips = X.take(rows, axis=0, out=shuffled[: len(rows)], mode="clip")
            scores[batch] = network.backward(self.layer, clips, targets[batch], self._slope, shares[batch])
            adam_step(self.parameters, self._gradient, self._state, self.settings.learning_rate)
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
class NeuralClassifier(LogitClassifier, TrainingLength):
    """Base class of the neural classifiers.

    Parameters
    ----------
    learning_rate, batch_size, min_epochs, max_epochs, patience
        Of the training, see `TrainingLength`.
    clip : float, optional
        Deviations at which standardised features are cut off; None for no limit.
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
        The logit from which on a clip is called positive: 0.
    n_epochs_ : int
        Epochs that made the kept parameters.
    curve_ : LossCurve
        Losses epoch by epoch.
    """

    clip: float | None = CLIP
    random_state: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "min_epochs": [Interval(Integral, 1, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "clip": [Interval(Real, 0, MOST, closed="right"), None],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    def _network(self, n_features: int) -> Network:
        """Make the network for vectors of so many features."""
        raise NotImplementedError

    def _train(
        self,
        X: Floats,
        y: NDArray[np.int64],
        jobs: Sequence[TrainingJob],
        *,
        imbalance: Imbalance = "none",
        keep: Literal["best", "last"] = "best",
        progress: Callable[[int], None] | None = None,
    ) -> list[Trained]:
        """Train the network by jobs on rows of X [N, ...] and y [N], 0 or 1."""
        length = {parameter.name: getattr(self, parameter.name) for parameter in fields(TrainingLength)}
        network = self._network(X.shape[-1])
        settings = TrainingSettings(network=network, imbalance=imbalance, keep=keep, **length)
        return train_many(X, y.astype(X.dtype), jobs, settings, progress=progress)

    def _take(self, model: Trained) -> None:
        self.parameters_, self.mean_, self.scale_ = model.parameters, model.mean, model.scale
        self.threshold_, self.curve_, self.n_epochs_ = 0.0, model.curve, model.curve.kept


def join_validation(
    X: Floats, labels: NDArray[np.int64], X_val: Any, y_val: Any, classes: NDArray[Any]
) -> tuple[Floats, NDArray[np.int64], NDArray[np.intp]]:
    """Append clips to choose the epoch on to those trained on; return both, and the rows of the former."""
    labels = np.concatenate([labels, (np.asarray(y_val) == classes[1]).astype(np.int64)])
    return np.concatenate([X, X_val]), labels, np.arange(len(X), len(labels))
