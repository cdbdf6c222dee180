"""Fit a model of two classes on ordered levels, by a model for each step between two levels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from obygaze_features.arguments import checked
from obygaze_models.models.fitted import Fitted, fit
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.targets import NOT_ASKED

NEAREST_THRESHOLD = 0.5
"""The threshold of ordered levels: a clip is called the level nearest to its score.

A score of 1.5 is as near to level 1 as to level 2, and is called 2: a half is rounded up."""


@dataclass(frozen=True, slots=True)
class OrdinalModel:
    """A binary model for each step between two levels (Frank and Hall, ECML 2001).

    Attributes
    ----------
    steps : tuple of Fitted
        The k-th model separates levels above k from the others.
    """

    steps: tuple[Fitted, ...]

    threshold = NEAREST_THRESHOLD

    def scores(self, X: NDArray[Any], movies: NDArray[np.str_]) -> NDArray[np.float64]:
        """Compute each clip's expected level [N], between 0 and the highest level.

        It is the sum, over steps, of the probability that the clip's level is above the step.
        """
        p_above_steps = [expit(step.scores(X, movies)) for step in self.steps]
        return np.asarray(np.sum(p_above_steps, axis=0))


def labels_of_step(levels: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Turn ordered levels [N] into labels of two classes, split at a step: 1 above level `step`, else 0.

    Levels 0, 1, 2 are 0, 1, 1 at step 0, and 0, 0, 1 at step 1. Clips that are not in the task, whose level
    is negative, get -1.
    """
    return np.where(levels < 0, NOT_ASKED, levels > step)


@checked
def fit_ordinal(
    spec: ModelSpec,
    seed: int,
    X: NDArray[Any],
    y: NDArray[np.int64],
    *,
    n_levels: int,
    movies: NDArray[np.str_],
    present: Any = None,
) -> OrdinalModel | Fitted:
    """Fit a model on ordered levels: one model of two classes for each step between two levels.

    A baseline, which reads no features, is one model, fitted on the levels themselves. Its score is a level,
    such as the mean level of the training clips. Scores of both are rounded to the nearest level
    (`NEAREST_THRESHOLD`).

    Parameters
    ----------
    spec, seed, X, movies, present
        As for `fit`.
    y : ndarray of int, shape [N]
        Levels, 0 to `n_levels` - 1; -1 for a clip that is not in the task.
    n_levels : int

    Raises
    ------
    ModelError
        The estimator refuses its input.
    ProtocolError
        The movies have too few clips above or below a step for inner folds.
    """
    is_baseline = not spec.looks_at_features
    if is_baseline:
        estimator = spec.make(seed).fit(X, y)
        return Fitted(spec, estimator, threshold=NEAREST_THRESHOLD)

    steps = []
    for step in range(n_levels - 1):
        is_above = labels_of_step(y, step)
        steps.append(fit(spec, seed, X, is_above, movies=movies, present=present))
    return OrdinalModel(tuple(steps))
