"""Describe what inner folds of movies choose for an estimator, and the candidates that they tried."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Threshold:
    """Choose nothing but the threshold."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Choose a parameter's value by the lowest log loss on the movies held out; of equals, the first.

    The copies of the estimator that differ in the parameter are fitted in one of three ways. If the estimator
    has a method ``logits_of_subsets(models, X, y, subsets)`` that does not return None, it fits them on all
    inner folds at once and gives their logits of all clips. If the estimator, or the last step of a pipeline,
    has a method ``fit_together(models, X, y)``, it fits them on one inner fold. Otherwise they are fitted one
    after the other.

    Attributes
    ----------
    parameter : str
        As `set_params` takes it, e.g. ``logisticregression__C``.
    values : tuple
        In the order of preference.
    """

    parameter: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class EarlyStopping:
    """Choose the number of epochs: the median of those at which inner models stop early on held-out movies.

    The estimator's ``fit`` takes ``X_val`` and ``y_val``. It sets the attribute that `fitted` names to the
    number of epochs it kept and, if it has a `LossCurve`, ``curve_`` to that.

    Attributes
    ----------
    parameter : str
        The parameter that bounds the epochs of the final training.
    fitted : str
        The attribute that holds the number of epochs that an inner training kept.
    """

    parameter: str = "max_epochs"
    fitted: str = "n_epochs_"


Choice = Threshold | Grid | EarlyStopping

THRESHOLD = Threshold()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value that was tried in the inner folds.

    Attributes
    ----------
    name : str
        E.g. ``C=0.1``.
    inner_loss : float
        Log loss over the clips of all inner folds; NaN if candidates are not compared by it.
    chosen : bool
    """

    name: str
    inner_loss: float
    chosen: bool


class Chosen(NamedTuple):
    """The estimator that inner folds chose, and how it scored.

    Attributes
    ----------
    estimator : estimator
        The estimator with the chosen parameter.
    candidates : tuple of Candidate
        The values that were tried.
    scores, training_means : ndarray, shape [N]
        Held-out score of each training clip, and the mean score that the model that gave it gives to the
        clips it was fitted on.
    curves : tuple of LossCurve
        Loss curves of inner trainings that stopped early.
    """

    estimator: Any
    candidates: tuple[Candidate, ...]
    scores: NDArray[np.float64]
    training_means: NDArray[np.float64]
    curves: tuple[Any, ...] = ()


def candidates(
    parameter: str, values: Iterable[Any], losses: Iterable[float], best: int
) -> tuple[Candidate, ...]:
    """List the values of a parameter that were tried on inner folds, each with its loss.

    Parameters
    ----------
    parameter : str
        Name of the parameter. A candidate is named by parameter and value, such as ``C=0.1``.
    values : iterable
        Numbers are formatted by ``%g``.
    losses : iterable of float
        Log loss of each value on held-out clips of inner folds.
    best : int
        Index of the value that was chosen.
    """
    listed = []
    for index, (value, loss) in enumerate(zip(values, losses, strict=True)):
        text = f"{value:g}" if isinstance(value, int | float) else str(value)
        listed.append(Candidate(f"{parameter}={text}", float(loss), chosen=index == best))
    return tuple(listed)


def log_loss(y: NDArray[Any], logit: NDArray[Any]) -> float:
    """Compute the mean log loss of logits [N] for labels y [N], 0 or 1."""
    # log(1 + exp(s)) - y s, in a form that neither overflows nor loses small losses.
    return float(np.mean(np.logaddexp(0, logit) - y * logit))


SAMPLE_SIZE = 256
"""Clips that suffice for a mean score: scoring a sample of at least this many saves time."""


def sample_evenly(clips: Any) -> Any:
    """Return at least `SAMPLE_SIZE` clips of N, evenly spaced, or all if there are fewer: clips [N, ...].

    Every n-th clip is taken, where n is N // `SAMPLE_SIZE`.
    """
    step = max(1, len(clips) // SAMPLE_SIZE)
    return clips[::step]
