"""Train a small network by Adam over shuffled batches of clips, and stop early by clips that are held out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from obygaze_models.models.adam import Adam, adam_step
from obygaze_models.models.binary import Floats, Imbalance, balanced_weights, undersample_rows

N_TRIAL_EPOCHS = 4
"""Number of epochs after which initial parameters of a network are compared by their training loss."""


class TrainableNetwork(Protocol):
    """The arithmetic of a network, on one flat vector of parameters [P].

    `layers_of` returns the layers as views of a vector [P]: of the parameters, or of their gradient.
    """

    @property
    def n_parameters(self) -> int:
        """Count the parameters, P."""

    def mean_and_scale(self, X: Floats) -> tuple[Floats, Floats]:
        """Compute the mean and scale [D] of features X, those trained on, to standardise by."""

    def prepare(self, X: Floats, mean: Floats, scale: Floats) -> Floats:
        """Standardise features by the moments of the training clips; other methods take the result as X."""

    def initial_parameters(self, rng: np.random.Generator, X: Floats, y: Floats) -> NDArray[np.float64]:
        """Draw K sets of initial parameters [K, P], given the prepared training clips and their labels."""

    def layers_of(self, parameters: Floats) -> Any:
        """Split a vector [P] into the parameters of the layers, as views of the vector."""

    def logits(self, layers: Any, X: Floats) -> Floats:
        """Compute the logit of each clip [B]."""

    def backward(self, layers: Any, X: Floats, y: Floats, gradient: Any, weights: Floats) -> Floats:
        """Compute logits [B], and write the gradient of their mean weighted loss into `gradient`."""

    def loss(self, scores: Floats, y: Floats) -> float:
        """Compute the mean loss of logits [B] and labels 0 or 1 [B]."""


@dataclass(frozen=True, eq=False, slots=True)
class LossCurve:
    """The losses of a training, epoch by epoch.

    Attributes
    ----------
    train_loss : ndarray of float64, shape [E]
        Mean of the clips' unweighted losses while the epoch ran.
    validation_loss : ndarray of float64, shape [E]
        Loss on held-out clips after the epoch; NaN where there were none.
    kept : int
        The epoch whose parameters were kept, counted from 1.
    start_losses : ndarray of float64, shape [K]
        Training loss of each set of initial parameters after `N_TRIAL_EPOCHS`. Training went on from the set
        with the lowest; empty if the network draws one set.
    """

    train_loss: NDArray[np.float64]
    validation_loss: NDArray[np.float64]
    kept: int
    start_losses: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """How a network is trained.

    Attributes
    ----------
    learning_rate : float
        Adam's step size.
    batch_size : int
        Number of clips per step; the last batch of an epoch may be smaller.
    min_epochs, max_epochs : int
        Smallest and largest number of epochs; `max_epochs` has precedence if it is smaller.
    patience : int
        Training stops after this many epochs without a lower loss on held-out clips.
    keeps_best : bool
        Whether to keep the parameters of the epoch with the lowest loss on held-out clips, instead of the
        last epoch's.
    imbalance : {"none", "weights", "subsample"}
        How class imbalance of the training clips is handled.
    seed : int
        Seed of all random draws.
    """

    learning_rate: float
    batch_size: int
    min_epochs: int
    max_epochs: int
    patience: int
    keeps_best: bool
    imbalance: Imbalance
    seed: int


@dataclass(frozen=True, eq=False, slots=True)
class TrainedNetwork:
    """The result of a training.

    Attributes
    ----------
    parameters : ndarray, shape [P]
        Those that are kept.
    mean, scale : ndarray, shape [D]
        Moments of the features trained on.
    n_epochs : int
        Epochs that made the parameters.
    curve : LossCurve
    """

    parameters: Floats
    mean: Floats
    scale: Floats
    n_epochs: int
    curve: LossCurve


def train_network(
    network: TrainableNetwork,
    plan: TrainingPlan,
    X: Floats,
    y: Floats,
    rows: NDArray[np.intp],
    *,
    validation: Sequence[NDArray[np.intp] | None],
) -> list[TrainedNetwork]:
    """Train a network once, with a separate early stopping for each of several sets of held-out clips.

    Training goes on until the last of them has stopped. Each result is the same as if its set of held-out
    clips had been the only one.

    Parameters
    ----------
    network : TrainableNetwork
    plan : TrainingPlan
    X : ndarray, shape [N, ...]
        Features of all clips.
    y : ndarray, shape [N]
        Labels 0 or 1, of the data type of X.
    rows : ndarray of int
        The clips to train on.
    validation : sequence of (ndarray of int or None)
        The clips held out; None to run all epochs and keep the last, as there is nothing to choose by.

    Returns
    -------
    list of TrainedNetwork
        One for each set of held-out clips, in order.
    """
    rng = np.random.default_rng((plan.seed, 0))
    if plan.imbalance == "subsample":
        # Drawn from a child of `rng`, so that the draws of the training itself stay the same.
        (rng_of_sample,) = rng.spawn(1)
        rows = rows[undersample_rows(y[rows], rng_of_sample)]

    mean, scale = network.mean_and_scale(X[rows])

    def prepared(clips: NDArray[np.intp]) -> PreparedClips:
        """Standardise the features of some clips by the moments of the training clips."""
        return PreparedClips(network.prepare(X[clips], mean, scale), y[clips])

    clips = prepared(rows)
    weights = balanced_weights(clips.y) if plan.imbalance == "weights" else np.ones_like(clips.y)
    stoppings = []
    for held_out in validation:
        held_out_clips = None if held_out is None else prepared(held_out)
        stoppings.append(_EarlyStopping(plan, held_out_clips))

    start = _choose_start(network, plan, clips, weights, rng)
    learner = _Learner(network, plan, start.parameters, clips, weights)
    train_losses = _train_until_all_end(learner, stoppings, rng)

    results = []
    for stopping in stoppings:
        curve = _loss_curve(stopping, train_losses, start.losses)
        results.append(TrainedNetwork(stopping.parameters, mean, scale, stopping.kept_epoch, curve))
    return results


class _Start(NamedTuple):
    """Where a training begins.

    Attributes
    ----------
    parameters : ndarray, shape [P]
    losses : ndarray, shape [K]
        Training losses of all K initial parameters that were tried; empty if there was no choice.
    """

    parameters: Floats
    losses: NDArray[np.float64]


def _choose_start(
    network: TrainableNetwork,
    plan: TrainingPlan,
    clips: "PreparedClips",
    weights: Floats,
    rng: np.random.Generator,
) -> _Start:
    """Draw initial parameters; of several, choose those with the lowest loss after short trials.

    What the trials have learnt is dropped: the training begins anew at the initial parameters.

    Parameters
    ----------
    network : TrainableNetwork
    plan : TrainingPlan
    clips : PreparedClips
        The clips to train on.
    weights : ndarray, shape [number of clips]
    rng : Generator
    """
    candidates: Floats = network.initial_parameters(rng, clips.X, clips.y).astype(clips.X.dtype)  # [K, P]
    if len(candidates) == 1:
        no_losses = np.empty(0)
        return _Start(candidates[0].copy(), no_losses)

    # Learners change their parameters in place, so that each gets a copy.
    trials = [_Learner(network, plan, candidate.copy(), clips, weights) for candidate in candidates]
    losses = _run_trials(trials, rng)
    best = int(losses.argmin())
    return _Start(candidates[best].copy(), losses)


class PreparedClips(NamedTuple):
    """Clips as a network takes them.

    Attributes
    ----------
    X : ndarray, shape [N, ...]
        What `TrainableNetwork.prepare` made of their features.
    y : ndarray, shape [N]
        Labels 0 or 1.
    """

    X: Floats
    y: Floats


def _run_trials(trials: Sequence["_Learner"], rng: np.random.Generator) -> NDArray[np.float64]:
    """Train each of K learners for `N_TRIAL_EPOCHS` epochs, and return their last training losses [K]."""
    losses = []
    for trial in trials:
        losses_of_trial = [trial.epoch(rng) for _ in range(N_TRIAL_EPOCHS)]
        losses.append(losses_of_trial[-1])
    return np.array(losses)


def _train_until_all_end(
    learner: "_Learner", stoppings: Sequence["_EarlyStopping"], rng: np.random.Generator
) -> list[float]:
    """Train epoch by epoch until every early stopping has ended; return the training loss of each epoch.

    The learner's parameters move with every epoch. Each early stopping keeps those of its own end.
    """
    train_losses = []
    while any(not stopping.has_ended for stopping in stoppings):
        train_losses.append(learner.epoch(rng))
        for stopping in stoppings:
            if not stopping.has_ended:
                stopping.record_epoch(learner)
    return train_losses


class _Learner:
    """Parameters under training by Adam.

    Parameters
    ----------
    network : TrainableNetwork
    plan : TrainingPlan
    parameters : ndarray, shape [P]
        Where to begin; they are moved in place.
    clips : PreparedClips
        The clips trained on.
    weights : ndarray, shape [N]
        Of the clips' losses.

    Attributes
    ----------
    parameters : ndarray, shape [P]
    """

    def __init__(
        self,
        network: TrainableNetwork,
        plan: TrainingPlan,
        parameters: Floats,
        clips: PreparedClips,
        weights: Floats,
    ) -> None:
        """Begin a training at these parameters [P], with a gradient and Adam's state of the same shape."""
        self.parameters = parameters
        self._network = network
        self._plan = plan
        self._clips = clips
        self._weights = weights
        self._gradient = np.empty_like(parameters)
        # The layers are views of the two vectors, which change with them.
        self._layers = network.layers_of(parameters)
        self._gradient_layers = network.layers_of(self._gradient)
        self._adam = Adam.zeros_like(parameters)

    def epoch(self, rng: np.random.Generator) -> float:
        """Train for one pass over the clips in random order; return their mean loss before their own step."""
        n_clips = len(self._clips.X)
        size = self._plan.batch_size
        order = rng.permutation(n_clips)
        y = self._clips.y[order]
        weights = self._weights[order]
        scores = np.empty_like(y)

        # All batches are gathered in the same memory, which so stays in a core's cache.
        memory = np.empty((min(size, n_clips), *self._clips.X.shape[1:]), self._clips.X.dtype)
        for start in range(0, n_clips, size):
            batch = slice(start, start + size)
            features = _gather_rows(self._clips.X, order[batch], memory)
            # Writes the gradient into `self._gradient`, of which the layers are views.
            scores[batch] = self._network.backward(
                self._layers, features, y[batch], self._gradient_layers, weights[batch]
            )
            adam_step(self.parameters, self._gradient, self._adam, self._plan.learning_rate)

        return self._network.loss(scores, y)

    def loss_on(self, clips: PreparedClips) -> float:
        """Compute the mean loss of other clips with the present parameters."""
        return self._network.loss(self._network.logits(self._layers, clips.X), clips.y)


class _EarlyStopping:
    """Decides when a training ends, and which epoch is kept.

    It ends after `patience` epochs without a lower loss on the held-out clips, not before `min_epochs`, and
    after `max_epochs` in any case. Of equal losses the first counts as the lowest.

    Attributes
    ----------
    losses : list of float
        Loss on the held-out clips after each epoch; NaN where there are none.
    has_ended : bool
    parameters : ndarray, shape [P]
        Those that are kept; empty until the training has ended.
    kept_epoch : int
        The epoch that they are of, counted from 1.
    """

    def __init__(self, plan: TrainingPlan, held_out: PreparedClips | None) -> None:
        """Begin before the first epoch; `held_out` are the clips that tell when to stop, if there are any."""
        self.losses: list[float] = []
        self.has_ended = False
        # What is kept is set when the training has ended.
        self.parameters: Floats = np.empty(0)
        self.kept_epoch = 0
        self._plan = plan
        self._held_out = held_out
        # The best epoch so far, and its parameters if the plan keeps those of the best epoch.
        self._lowest_loss = np.inf
        self._lowest_epoch = 0
        self._best_parameters: Floats | None = None

    def record_epoch(self, learner: _Learner) -> None:
        """Compute the loss on held-out clips after an epoch, and end the training if it is time to stop."""
        epoch = len(self.losses) + 1
        is_out_of_patience = False
        if self._held_out is None:
            self.losses.append(float("nan"))
        else:
            loss = learner.loss_on(self._held_out)
            self.losses.append(loss)
            if loss < self._lowest_loss:
                self._lowest_loss = loss
                self._lowest_epoch = epoch
                if self._plan.keeps_best:
                    self._best_parameters = learner.parameters.copy()

            n_epochs_since = epoch - self._lowest_epoch
            is_out_of_patience = epoch >= self._plan.min_epochs and n_epochs_since >= self._plan.patience

        if epoch >= self._plan.max_epochs or is_out_of_patience:
            self._end(learner, epoch)

    def _end(self, learner: _Learner, epoch: int) -> None:
        """Mark the training as ended; keep the parameters of the best epoch, or of this one if none is."""
        self.has_ended = True
        if self._best_parameters is None:
            self.parameters = learner.parameters.copy()
            self.kept_epoch = epoch
        else:
            self.parameters = self._best_parameters
            self.kept_epoch = self._lowest_epoch


def _loss_curve(
    stopping: _EarlyStopping, train_losses: Sequence[float], start_losses: NDArray[np.float64]
) -> LossCurve:
    """Collect the losses of a training up to the epoch at which an early stopping ended it.

    `train_losses` are those of all epochs, also of later ones, which other early stoppings needed.
    """
    n_epochs = len(stopping.losses)
    return LossCurve(
        train_loss=np.array(train_losses[:n_epochs]),
        validation_loss=np.array(stopping.losses),
        kept=stopping.kept_epoch,
        start_losses=start_losses,
    )


def _gather_rows(X: Floats, rows: NDArray[np.intp], memory: Floats) -> Floats:
    """Copy some rows of X [N, ...] into the first rows of `memory`, and return these."""
    # By default `take` checks that rows are in bounds, and makes a further copy for that. mode="clip" skips
    # the check; all rows are in bounds.
    return X.take(rows, axis=0, out=memory[: len(rows)], mode="clip")
