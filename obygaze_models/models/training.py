"""Train many small networks at once: Adam over shuffled batches, each stopped early on its own.

Models are trained one after the other, so that what a step touches fits a core's cache, and those that differ
in their validation clips alone are one training. A model's bytes depend on its own clips and seed alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from obygaze_models.blas import one_blas_thread
from obygaze_models.models.labels import Imbalance, balanced_weights, even_rows
from obygaze_models.models.network import Adam, Floats, adam_step


class Network(Protocol):
    """What is trained: arithmetic on one flat vector of parameters [P].

    A layer is whatever `views` makes of the parameters, or of their gradient, without copying.
    """

    def moments(self, X: Floats) -> tuple[Floats, Floats]:
        """Compute the mean and scale [D] of the features trained on."""
        ...

    def prepare(self, X: Floats, mean: Floats, scale: Floats) -> Floats:
        """Make of clips' features what the other methods take for X."""
        ...

    def initial(self, rng: np.random.Generator, X: Floats, y: Floats) -> NDArray[np.float64]:
        """Draw parameters [P], knowing the prepared clips trained on and their labels."""
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


@dataclass(frozen=True, slots=True)
class Settings:
    """What a model is, and how long and in which steps it is trained.

    Attributes
    ----------
    network : Network
        Its arithmetic.
    imbalance : {"none", "weights", "subsample"}
        What is done to the clips trained on, and to no others (`obygaze_models.models.labels`).
    keep : {"best", "last"}
        The epoch whose parameters are kept: that of the lowest validation loss, or the one training ended
        with.
    """

    network: Network
    learning_rate: float
    batch_size: int
    min_epochs: int
    max_epochs: int
    patience: int
    imbalance: Imbalance
    keep: Literal["best", "last"]


@dataclass(frozen=True, eq=False, slots=True)
class Job:
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
class Curve:
    """What a training looked like, epoch by epoch.

    Attributes
    ----------
    train_loss : ndarray of float64, shape [E]
        Mean of the clips' losses while the epoch ran, none weighted.
    validation_loss : ndarray of float64, shape [E]
        Loss after the epoch; NaN where there was nothing to validate on.
    kept : int
        The epoch whose parameters were kept, counted from 1.
    """

    train_loss: NDArray[np.float64]
    validation_loss: NDArray[np.float64]
    kept: int


@dataclass(frozen=True, eq=False, slots=True)
class Trained:
    """A trained model: parameters [P], and the mean and scale [D] that standardise features first."""

    parameters: Floats
    mean: Floats
    scale: Floats
    curve: Curve


def scores(model: Trained, X: Floats, network: Network) -> Floats:
    """Compute a model's logit of each clip of X [N, ...]."""
    return network.logits(network.views(model.parameters), network.prepare(X, model.mean, model.scale))


def train_many(
    X: Floats,
    y: Floats,
    jobs: Sequence[Job],
    settings: Settings,
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
    for place, job in enumerate(jobs):
        alike.setdefault((job.train.tobytes(), job.seed), []).append(place)
    trained: dict[int, Trained] = {}
    # One after the other: threads pass the interpreter's lock to and fro at each of a step's thirty short
    # operations, which on two cores costs half as much CPU again and saves no time.
    with one_blas_thread():
        for places in alike.values():
            done = _train(X, y, [jobs[place] for place in places], settings)
            trained |= dict(zip(places, done, strict=True))
            if progress is not None:
                progress(len(places))
    return [trained[place] for place in range(len(jobs))]


@dataclass(eq=False)
class _Watcher:
    """Early stopping of one job: when training ends, and which epoch is kept."""

    job: Job
    held_out: tuple[Floats, Floats] | None
    kept: int = 0
    best: Floats | None = None
    best_loss: float = np.inf
    losses: list[float] = field(default_factory=list)
    ended: tuple[Floats, Curve] | None = None

    def look(self, parameters: Floats, layer: Any, train_loss: Sequence[float], settings: Settings) -> None:
        """Look at the validation clips after an epoch; at the end, take the parameters [P] to keep."""
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
            curve = Curve(
                np.array(train_loss),
                np.array(self.losses or [float("nan")] * epoch),
                epoch if self.best is None else self.kept,
            )
            self.ended = (parameters.copy() if self.best is None else self.best, curve)


def _train(X: Floats, y: Floats, jobs: Sequence[Job], settings: Settings) -> list[Trained]:
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
    watchers = []
    for one in jobs:
        seen = one.validation
        held_out = None if seen is None else (network.prepare(X[seen], mean, scale), y[seen])
        watchers.append(_Watcher(one, held_out))
    parameters: Floats = network.initial(rng, own, labels).astype(X.dtype)
    state, gradient = Adam.start(parameters), np.empty_like(parameters)
    layer, slope = network.views(parameters), network.views(gradient)
    shuffled = np.empty((min(settings.batch_size, len(own)), *own.shape[1:]), own.dtype)
    scores = np.empty_like(labels)
    train_loss: list[float] = []
    while any(watcher.ended is None for watcher in watchers):
        order = rng.permutation(len(labels))
        targets, shares = labels[order], weights[order]
        for start in range(0, len(order), settings.batch_size):
            batch = slice(start, start + settings.batch_size)
            # A batch at a time, which stays in a core's cache: frames of all clips do not.
            taken = order[batch]
            clips = np.take(own, taken, axis=0, out=shuffled[: len(taken)], mode="clip")
            scores[batch] = network.backward(layer, clips, targets[batch], slope, shares[batch])
            adam_step(parameters, gradient, state, settings.learning_rate)
        train_loss.append(network.loss(scores, targets))
        for watcher in watchers:
            if watcher.ended is None:
                watcher.look(parameters, layer, train_loss, settings)
    ends = [watcher.ended for watcher in watchers if watcher.ended is not None]
    return [Trained(kept, mean, scale, curve) for kept, curve in ends]
