"""Predict ordered levels with binary models: one per step, scored by the sum of their probabilities."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator

from obygaze_models.models.spec import Fitted, ModelSpec, fit

NEAREST_THRESHOLD = 0.5
"""The threshold of ordered levels: a score calls the level that it is nearest to, the higher of two."""


@dataclass(frozen=True, slots=True)
class OrdinalModel:
    """A binary model for each step between two levels (Frank and Hall, ECML 2001).

    Attributes
    ----------
    steps : tuple of Fitted
        The k-th separates levels above k from the others.
    """

    steps: tuple[Fitted, ...]

    threshold = NEAREST_THRESHOLD

    def scores(self, X: NDArray[Any], movies: NDArray[np.str_]) -> NDArray[np.float64]:
        """Compute each clip's expected level [N], 0 to the number of steps."""
        scores: NDArray[np.float64] = np.sum([expit(step.scores(X, movies)) for step in self.steps], axis=0)
        return scores


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
    """Fit a model on ordered levels y [N], 0 to `n_levels` - 1, as `fit` does on two classes.

    A baseline, which looks at no feature, is fitted on the levels themselves.

    Raises
    ------
    ModelError
        The estimator refuses its input.
    ProtocolError
        The movies don't hold clips on both sides of a step.
    """
    if not spec.looks_at_features:
        made = spec.make(seed).fit(X, y)
        return Fitted(spec, made, NEAREST_THRESHOLD)
    return OrdinalModel(
        tuple(
            fit(spec, seed, X, np.where(y < 0, -1, y > step), movies=movies, present=present)
            for step in range(n_levels - 1)
        )
    )


class MedianLevel(BaseEstimator):
    """Score every clip by the median level of the training clips."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the median, the lower of two, of the levels y [N]; X is not used."""
        del X
        levels = np.sort(np.asarray(y))
        self.level_ = float(levels[(len(levels) - 1) // 2])
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N]."""
        return np.full(len(np.asarray(X)), self.level_)


class RandomLevel(BaseEstimator):
    """Score every clip by a level drawn from those of the training clips.

    Parameters
    ----------
    random_state : int
        Seed of the draws, which are the same at every call.
    """

    def __init__(self, *, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Remember the levels y [N]; X is not used."""
        del X
        self.levels_ = np.asarray(y, dtype=np.float64)
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N]."""
        rng = np.random.default_rng(self.random_state)
        drawn: NDArray[np.float64] = rng.choice(self.levels_, len(np.asarray(X)))
        return drawn


def _spec(name: str, title: str, make: Any) -> ModelSpec:
    return ModelSpec(name, title, make, choose=None, looks_at_features=False, kinds=("ordinal",))


SPECS = (
    _spec("median_level", "Median level", lambda _: MedianLevel()),
    _spec("random_level", "Random, at the levels' shares", lambda seed: RandomLevel(random_state=seed)),
)
