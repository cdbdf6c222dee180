"""Say what inner folds of movies choose for an estimator, and what they tried."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Threshold:
    """Choose nothing but the threshold."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Choose a parameter's value by the lowest log loss on the movies held out; of equals, the first.

    Where the estimator has a method ``logits_of_subsets(models, X, y, subsets)`` that gives any, they are the
    logits of the copies that differ in the parameter, fitted on all inner folds at once. Where it, or a
    pipeline's last step, has a method ``fit_together(models, X, y)``, that fits the copies on an inner fold;
    else they are fitted one after the other.

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
    """Choose the length of training: each inner model stops on the movies held out, the median is kept.

    The estimator's ``fit`` takes ``X_val`` and ``y_val``, and leaves the epochs it kept in ``fitted`` and, if
    it has one, its `LossCurve` in ``curve_``.

    Attributes
    ----------
    parameter : str
        The parameter that bounds the epochs of the final training.
    fitted : str
        The attribute that holds the epochs an inner training kept.
    """

    parameter: str = "max_epochs"
    fitted: str = "n_epochs_"


Choice = Threshold | Grid | EarlyStopping

THRESHOLD = Threshold()


@dataclass(frozen=True, slots=True)
class Candidate:
    """What was tried in the inner folds.

    Attributes
    ----------
    name : str
        E.g. ``C=0.1``.
    inner_loss : float
        Log loss over the clips of all inner folds; NaN where scores are not compared by it.
    chosen : bool
    """

    name: str
    inner_loss: float
    chosen: bool


def candidates(
    parameter: str, values: Iterable[Any], losses: Iterable[float], best: int
) -> tuple[Candidate, ...]:
    """List what was tried of a parameter, numbers in short, and the place of the best."""
    names = [f"{value:g}" if isinstance(value, int | float) else str(value) for value in values]
    return tuple(
        Candidate(f"{parameter}={name}", float(loss), index == best)
        for index, (name, loss) in enumerate(zip(names, losses, strict=True))
    )


def log_loss(y: NDArray[Any], logit: NDArray[Any]) -> float:
    """Mean log loss of logits [N] for labels y [N], 0 or 1."""
    return float(np.mean(np.logaddexp(0, logit) - y * logit))


SOME = 256
"""Clips whose scores are averaged where there are more, so that a mean costs little."""


def some_of(clips: Any) -> Any:
    """Take some of many clips [N, ...], at equal steps."""
    return clips[:: max(1, len(clips) // SOME)]
