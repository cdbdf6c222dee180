"""Train one two-layer perceptron: Adam over shuffled batches, stopped early, the best epoch restored."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_models.probes.network import Adam, Floats, adam_step, initial, log_loss, logits, loss_and_grad


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and in which steps to train."""

    learning_rate: float
    batch_size: int
    min_epochs: int
    max_epochs: int
    patience: int


@dataclass(frozen=True, eq=False, slots=True)
class Curve:
    """What a training looked like, epoch by epoch.

    Attributes
    ----------
    fold : int
        The inner fold held out; -1 where there was none.
    train_loss : ndarray of float64, shape [E]
        Mean of the batches' losses while the epoch ran.
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

    def scores(self, X: Floats) -> Floats:
        """Compute the logit of each row of X [N, D]."""
        return logits(self.parameters, standardise(X, self.mean, self.scale))


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


def train(
    X: Floats,
    y: Floats,
    validation: tuple[Floats, Floats] | None,
    *,
    n_hidden: int,
    schedule: Schedule,
    rng: np.random.Generator,
    fold: int = -1,
) -> Trained:
    """Train a model on X [N, D] and y [N] (0. or 1.), choosing the epoch on the validation pair, if any.

    Training stops after `patience` epochs without a lower validation loss, not before `min_epochs`, and the
    epoch of the lowest loss (the first of equals) is kept. Without validation nothing can be chosen:
    `max_epochs` epochs are run and the last is kept. The features are standardised by the moments of X alone.
    """
    mean, scale = moments(X)
    standard = standardise(X, mean, scale)
    held_out = None if validation is None else (standardise(validation[0], mean, scale), validation[1])
    parameters: Floats = initial(X.shape[1], n_hidden, rng).astype(X.dtype)
    state, gradient = Adam.start(parameters), np.empty_like(parameters)
    best, best_loss, kept = parameters, np.inf, schedule.max_epochs
    train_loss, validation_loss = [], []
    for epoch in range(1, schedule.max_epochs + 1):
        order = rng.permutation(len(y))
        X_epoch, y_epoch = standard[order], y[order]
        total = 0.0
        for start in range(0, len(y), schedule.batch_size):
            batch = slice(start, start + schedule.batch_size)
            loss, _ = loss_and_grad(parameters, X_epoch[batch], y_epoch[batch], out=gradient)
            adam_step(parameters, gradient, state, schedule.learning_rate)
            total += float(loss) * len(y_epoch[batch])
        train_loss.append(total / len(y))
        if held_out is None:
            continue
        validation_loss.append(float(log_loss(logits(parameters, held_out[0]), held_out[1])))
        if validation_loss[-1] < best_loss:
            best, best_loss, kept = parameters.copy(), validation_loss[-1], epoch
        if epoch >= schedule.min_epochs and epoch - kept >= schedule.patience:
            break
    curve = Curve(fold, np.array(train_loss), np.array(validation_loss or [np.nan] * len(train_loss)), kept)
    return Trained(best, mean, scale, curve)
