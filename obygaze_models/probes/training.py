"""Train many two-layer perceptrons at once: Adam over shuffled batches, each stopped early on its own.

Models are trained in stacks that fit a core's cache, and stacks side by side on the cores there are. A
model's bytes depend on its own clips and seed alone: every product and sum is made model by model, and a
batch that an epoch's end leaves short is filled up with rows of weight 0, so that stacked models have batches
of one shape.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from obygaze_models.probes.network import Adam, Floats, adam_step, initial, log_loss, logits, loss_and_grad

STACK_BYTES = 4 << 20
"""Parameters, gradients and Adam's state of a stack take about this much: larger stacks leave the cache."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a model is, and how long and in which steps it is trained.

    Attributes
    ----------
    n_outputs : int
        1: a logit; 2: the paper's two softmax neurons (`obygaze_models.probes.network`).
    standardised : bool
        Whether features are standardised by the moments of the clips trained on.
    keep : {"best", "last"}
        The epoch whose parameters are kept: that of the lowest validation loss, or the one training ended
        with.
    """

    n_hidden: int
    n_outputs: Literal[1, 2]
    learning_rate: float
    batch_size: int
    min_epochs: int
    max_epochs: int
    patience: int
    standardised: bool
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
    fold : int
        The inner fold held out; -1 where there is none.
    max_epochs : int, optional
        In place of the settings'.
    """

    train: NDArray[np.intp]
    validation: NDArray[np.intp] | None
    seed: tuple[int, ...]
    fold: int = -1
    max_epochs: int | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Curve:
    """What a training looked like, epoch by epoch.

    Attributes
    ----------
    fold : int
        The inner fold held out; -1 where there was none.
    train_loss : ndarray of float64, shape [E]
        Mean of the clips' losses while the epoch ran.
    validation_loss : ndarray of float64, shape [E]
        Loss after the epoch; NaN where there was nothing to validate on.
    kept : int
        The epoch whose parameters were kept, counted from 1.
    """

    fold: int
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


def scores(parameters: Floats, mean: Floats, scale: Floats, X: Floats, n_outputs: int = 1) -> Floats:
    """Compute a model's logit of each row of X [N, D]."""
    return logits(parameters, standardise(X, mean, scale), n_outputs)


def moments(X: Floats) -> tuple[Floats, Floats]:
    """Take mean and standard deviation of each column of X [N, D]; a constant column's deviation is 1."""
    wide = X.astype(np.float64)
    mean, scale = wide.mean(axis=0), wide.std(axis=0)
    # Rounding leaves a constant column a tiny deviation, which would blow it up.
    scale[scale <= 10 * np.finfo(X.dtype).eps * np.abs(mean)] = 1.0
    return mean.astype(X.dtype), scale.astype(X.dtype)


def standardise(X: Floats, mean: Floats, scale: Floats) -> Floats:
    """Subtract the mean and divide by the scale."""
    centred: Floats = X - mean
    centred /= scale
    return centred


def train_many(
    X: Floats,
    y: Floats,
    jobs: Sequence[Job],
    settings: Settings,
    *,
    progress: Callable[[int], None] | None = None,
) -> list[Trained]:
    """Train a model for each job on rows of X [N, D] and y [N] (0. or 1.).

    A model stops after `patience` epochs without a lower validation loss, not before `min_epochs`; the rest
    of its stack goes on. Of equal losses the first is the lowest. Without validation rows nothing can be
    chosen: `max_epochs` epochs are run and the last is kept.

    Parameters
    ----------
    progress : callable, optional
        Called now and then with the number of models trained since the last call.

    Returns
    -------
    list of Trained
        In the order of the jobs, and the same bytes as if each were trained alone.
    """
    trained: dict[int, Trained] = {}
    with (
        threadpool_limits(limits=1, user_api="blas"),
        ThreadPoolExecutor(max_workers=_n_cores()) as pool,
    ):
        stacks = {
            pool.submit(_train_stack, X, y, [jobs[place] for place in stack], settings): stack
            for stack in _stacks(X, jobs, settings)
        }
        for done in as_completed(stacks):
            trained |= dict(zip(stacks[done], done.result(), strict=True))
            if progress is not None:
                progress(len(stacks[done]))
    return [trained[place] for place in range(len(jobs))]


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _batch_rows(job: Job, settings: Settings) -> int:
    return min(settings.batch_size, len(job.train))


def _stacks(X: Floats, jobs: Sequence[Job], settings: Settings) -> list[list[int]]:
    """Deal jobs into stacks; jobs of a stack have batches of one size, and about as many of them."""
    model_bytes = 5 * X.shape[1] * settings.n_hidden * X.dtype.itemsize
    size = max(1, STACK_BYTES // model_bytes)
    order = sorted(
        range(len(jobs)), key=lambda place: (_batch_rows(jobs[place], settings), -len(jobs[place].train))
    )
    stacks: list[list[int]] = []
    for place in order:
        rows = _batch_rows(jobs[place], settings)
        if stacks and len(stacks[-1]) < size and _batch_rows(jobs[stacks[-1][0]], settings) == rows:
            stacks[-1].append(place)
        else:
            stacks.append([place])
    return stacks


@dataclass(eq=False)
class _Learner:
    """What a model in training has for itself; its parameters are a row of the stack's."""

    X: Floats
    y: Floats
    held_out: tuple[Floats, Floats] | None
    mean: Floats
    scale: Floats
    rng: np.random.Generator
    fold: int
    max_epochs: int
    kept: int = 0
    best: Floats | None = None
    best_loss: float = np.inf
    train_loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, job: Job, X: Floats, y: Floats, settings: Settings) -> "_Learner":
        own = X[job.train]
        mean, scale = np.zeros(X.shape[1], X.dtype), np.ones(X.shape[1], X.dtype)
        if settings.standardised:
            mean, scale = moments(own)
            own = standardise(own, mean, scale)
        held_out = None
        if job.validation is not None:
            held_out = (standardise(X[job.validation], mean, scale), y[job.validation])
        rng = np.random.default_rng(job.seed)
        max_epochs = settings.max_epochs if job.max_epochs is None else job.max_epochs
        return cls(own, y[job.train], held_out, mean, scale, rng, job.fold, max_epochs)

    def end_epoch(self, parameters: Floats, settings: Settings) -> bool:
        """Look at the validation clips, and say whether the model is done."""
        epoch = len(self.train_loss)
        if self.held_out is not None:
            X, y = self.held_out
            outputs = settings.n_outputs
            loss = float(log_loss(logits(parameters, X, outputs), y, outputs))
            self.validation_loss.append(loss)
            if loss < self.best_loss:
                self.best_loss, self.kept = loss, epoch
                self.best = parameters.copy() if settings.keep == "best" else None
            if epoch >= settings.min_epochs and epoch - self.kept >= settings.patience:
                return True
        return epoch >= self.max_epochs

    def end(self, parameters: Floats) -> Trained:
        last = len(self.train_loss)
        nothing = [float("nan")] * last
        curve = Curve(
            self.fold,
            np.array(self.train_loss),
            np.array(self.validation_loss or nothing),
            last if self.best is None else self.kept,
        )
        return Trained(parameters.copy() if self.best is None else self.best, self.mean, self.scale, curve)


def _train_stack(X: Floats, y: Floats, jobs: Sequence[Job], settings: Settings) -> list[Trained]:
    """Train models together, those with most clips first, so that the models of a step are the first rows."""
    rows, outputs, n_features = _batch_rows(jobs[0], settings), settings.n_outputs, X.shape[1]
    learners = [_Learner.of(job, X, y, settings) for job in jobs]
    place = sorted(range(len(jobs)), key=lambda model: -len(jobs[model].train))
    parameters: Floats = np.stack(
        [initial(n_features, settings.n_hidden, learners[model].rng, outputs) for model in place]
    ).astype(X.dtype)
    state, gradient = Adam.start(parameters), np.empty_like(parameters)
    batch = np.zeros((len(jobs), rows, n_features), X.dtype)
    labels, weight = np.zeros((2, len(jobs), rows), X.dtype)
    trained: dict[int, Trained] = {}
    while place:
        live = [learners[model] for model in place]
        orders = [learner.rng.permutation(len(learner.y)) for learner in live]
        totals = np.zeros(len(live))
        for start in range(0, len(orders[0]), rows):
            k = sum(start < len(order) for order in orders)
            for model in range(k):
                own = orders[model][start : start + rows]
                n = len(own)
                np.take(live[model].X, own, axis=0, out=batch[model, :n], mode="clip")
                labels[model, :n], weight[model, :n] = live[model].y[own], 1 / n
                batch[model, n:], labels[model, n:], weight[model, n:] = 0, 0, 0
            losses, _ = loss_and_grad(
                parameters[:k],
                batch[:k],
                labels[:k],
                out=gradient[:k],
                weight=weight[:k],
                n_outputs=outputs,
            )
            adam_step(parameters[:k], gradient[:k], state[:k], settings.learning_rate)
            totals[:k] += losses.astype(np.float64) * [
                len(order[start : start + rows]) for order in orders[:k]
            ]
        going = []
        for model, learner in enumerate(live):
            learner.train_loss.append(float(totals[model] / len(learner.y)))
            if learner.end_epoch(parameters[model], settings):
                trained[place[model]] = learner.end(parameters[model])
            else:
                going.append(model)
        if len(going) < len(live):
            stay = np.array(going, dtype=np.intp)
            parameters, state = parameters[stay], state[stay]
            place = [place[model] for model in going]
    return [trained[model] for model in range(len(jobs))]
