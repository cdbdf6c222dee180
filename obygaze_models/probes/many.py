"""Select and train many models at once: all inner folds of all of them, then all the models to keep."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_models.probes.network import Floats
from obygaze_models.probes.training import Curve, Job, Settings, Trained, scores, train_many
from obygaze_models.protocol.selection import best_threshold, inner_folds


@dataclass(frozen=True, eq=False, slots=True)
class Sides:
    """What one model learns from.

    Attributes
    ----------
    train : ndarray of int, shape [N]
        Rows to train on.
    validation : ndarray of int, shape [V], optional
        Rows to choose the epoch on.
    movies : ndarray, shape [N], optional
        The movie of each training row: threshold and epoch are then chosen by inner folds of movies.
    seed : int
    """

    train: NDArray[np.intp]
    validation: NDArray[np.intp] | None
    movies: NDArray[Any] | None
    seed: int


@dataclass(frozen=True, eq=False, slots=True)
class Selected:
    """A model, its threshold, and how they were chosen."""

    model: Trained
    threshold: float
    curves: tuple[Curve, ...]
    inner_scores: Floats | None


def select_many(
    X: Floats,
    y: Floats,
    every: Sequence[Sides],
    settings: Settings,
    *,
    n_folds: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[Selected]:
    """Train a model for each of `every` on rows of X [N, D] and y [N] (0. or 1.).

    Parameters
    ----------
    n_folds : int
        Inner folds of those that come with movies.
    progress : callable, optional
        Called now and then with the numbers of trainings done and of all.

    Raises
    ------
    ProtocolError
        The movies of a model don't allow an inner selection.
    """
    folds = [None if one.movies is None else inner_folds(y[one.train], one.movies, n_folds) for one in every]
    first = [job for one, dealt in zip(every, folds, strict=True) for job in _first_jobs(one, dealt)]
    done, total = 0, len(first) + sum(dealt is not None for dealt in folds)

    def count(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done, total)

    trained = iter(train_many(X, y, first, settings, progress=count))
    chosen: list[Selected | _Choice] = []
    for one, dealt in zip(every, folds, strict=True):
        own = [next(trained) for _ in _first_jobs(one, dealt)]
        chosen.append(_choose(X, y, one, folds=dealt, trained=own, settings=settings))
    last = [choice for choice in chosen if isinstance(choice, _Choice)]
    kept = iter(train_many(X, y, [choice.job for choice in last], settings, progress=count))
    return [
        Selected(next(kept), choice.threshold, choice.curves, choice.inner_scores)
        if isinstance(choice, _Choice)
        else choice
        for choice in chosen
    ]


@dataclass(frozen=True, eq=False, slots=True)
class _Choice:
    """What inner folds chose, and the training that is left to do with it."""

    job: Job
    threshold: float
    curves: tuple[Curve, ...]
    inner_scores: Floats


def _first_jobs(one: Sides, folds: NDArray[np.int64] | None) -> list[Job]:
    """List a model's inner trainings, or its only one."""
    # A stream for each inner fold, so that none depends on how many there are or on their order.
    if folds is None:
        return [Job(one.train, one.validation, (one.seed, 0))]
    return [
        Job(one.train[folds != fold], one.train[folds == fold], (one.seed, fold + 1), fold)
        for fold in range(int(folds.max()) + 1)
    ]


def _choose(
    X: Floats,
    y: Floats,
    one: Sides,
    *,
    folds: NDArray[np.int64] | None,
    trained: list[Trained],
    settings: Settings,
) -> Selected | _Choice:
    curves = tuple(model.curve for model in trained)
    if folds is None:
        return Selected(trained[0], 0.0, curves, None)
    # Each inner model's epoch was chosen on the movies it scores, which flatters the scores a little:
    # that may move the threshold, never a number of the test fold.
    inner: Floats = np.empty(len(one.train), X.dtype)
    for model in trained:
        held_out = folds == model.curve.fold
        inner[held_out] = scores(
            model.parameters, model.mean, model.scale, X[one.train[held_out]], settings.n_outputs
        )
    # The median epoch, the later one of the middle two's mean where it falls between.
    epochs = int(np.ceil(np.median([curve.kept for curve in curves])))
    job = Job(one.train, None, (one.seed, 0), max_epochs=epochs)
    return _Choice(job, best_threshold(y[one.train], inner), curves, inner)
