"""Choose the linear probe's penalty in the inner folds of many sets of clips, all in one product.

It is what `GroupedSelection` does for any estimator, one set after the other, by the fits of
`obygaze_models.models.ridge_folds`. Logits are those of each set alone to 1e-6 of the largest.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from obygaze_models.blas import one_blas_thread
from obygaze_models.models.choices import Candidate, Choice, Grid, candidates, log_loss, some_of
from obygaze_models.models.ridge_folds import FoldFits, FoldLogistic, block_width
from obygaze_models.models.ridge_logistic import RidgeLogistic
from obygaze_models.models.scaling import ClippedScaler

STEPS_OF_FOLD = 110
"""Steps that the fits of an outer fold take together, measured (benchmarks/README.md, zoo)."""

NUMBERS_A_SECOND = 5e9
"""Numbers of the features that a core goes through for one fit, forth and back, with what goes with them."""


def expected_cpu_s(n_clips: int, n_features: int, n_folds: int) -> float:
    """Estimate the CPU seconds of choosing and fitting linear probes in many outer folds."""
    return n_folds * STEPS_OF_FOLD * n_clips * n_features / NUMBERS_A_SECOND


CLOSE = 2e-3
"""Share of the least loss by which a candidate's, of a fit that has nearly ended, may be above it and be the
least in the end."""


class TrainingSide(NamedTuple):
    """Clips to choose and to fit on.

    Attributes
    ----------
    rows : ndarray of int, shape [n]
        Places of the clips among all.
    inner : ndarray of int, shape [n]
        The inner fold in which each is held out.
    """

    rows: NDArray[np.intp]
    inner: NDArray[np.int64]


class Chosen(NamedTuple):
    """What was chosen for one side.

    Attributes
    ----------
    estimator : Pipeline
        Fitted on all clips of the side.
    candidates : tuple of Candidate
    scores, zeros : ndarray, shape [n]
        Held-out score of each clip, and the mean score that its model gives to clips it was fitted on.
    """

    estimator: Pipeline
    candidates: tuple[Candidate, ...]
    scores: NDArray[np.float64]
    zeros: NDArray[np.float64]


def is_probe_search(estimator: Any, choose: Choice | None) -> bool:
    """Tell whether an estimator is a linear probe, as the zoo makes it, whose penalty is to be chosen."""
    if not isinstance(estimator, Pipeline) or not isinstance(choose, Grid) or len(estimator.steps) < 2:
        return False
    *before, (_, scaler), (name, last) = estimator.steps
    if type(scaler) is not ClippedScaler or type(last) is not RidgeLogistic:
        return False
    # Other steps may learn from clips too, which differ from fold to fold.
    if any(get_tags(step).requires_fit for _, step in before):
        return False
    as_made = RidgeLogistic(C=last.C).get_params()
    return choose.parameter == f"{name}__C" and last.get_params() == as_made


def search_probes(
    estimator: Pipeline, choose: Grid, X: NDArray[Any], y: NDArray[np.int64], sides: Sequence[TrainingSide]
) -> Iterator[Chosen]:
    """Choose the penalty and fit the probe for each side.

    Parameters
    ----------
    estimator : Pipeline
        For which `is_probe_search` holds.
    choose : Grid
    X : ndarray, shape [N, ...]
    y : ndarray of int, shape [N]
        0 or 1, of all clips that some side has.
    sides : sequence of TrainingSide

    Yields
    ------
    Chosen
        Side by side, in their order.

    Raises
    ------
    ValueError
        The features are refused: not finite, or of another shape.
    """
    used = np.unique(np.concatenate([side.rows for side in sides]))
    before = [(name, clone(step)) for name, step in estimator.steps[:-2]]
    features = X[used]
    for _, step in before:
        features = step.fit_transform(features)
    scaler, last = clone(estimator[-2]), estimator[-1]
    scaler._validate_params()
    last._validate_params()
    features = validate_data(scaler, features, dtype=(np.float64, np.float32))
    with one_blas_thread():
        probes = FoldLogistic(features, y[used], scaler.limit)
    search = _Search(clone(estimator), choose, before, probes, y[used])
    n_inner = max(len(np.unique(side.inner)) for side in sides)
    n_sides = max(1, block_width(*features.shape) // n_inner)
    for first in range(0, len(sides), n_sides):
        batch = [
            TrainingSide(np.searchsorted(used, side.rows), side.inner)
            for side in sides[first : first + n_sides]
        ]
        with one_blas_thread():
            chosen = search.choose_and_fit(batch)
        yield from chosen


class _HeldOutScores:
    """Scores [V, n] of a side's clips by each candidate, fitted without the clip's inner fold."""

    def __init__(self, side: TrainingSide, y: NDArray[np.int64], n_candidates: int) -> None:
        self.side = side
        self.y = y[side.rows]
        self.scores = np.empty((n_candidates, len(side.rows)))
        self.zeros = np.empty((n_candidates, len(side.rows)))

    def fill(self, candidate: int, fold: int, logits: NDArray[np.floating[Any]]) -> None:
        """Take the logits [N] of all clips by a candidate that was fitted without an inner fold."""
        own = logits[self.side.rows]
        out = self.side.inner == fold
        known = own[~out]
        self.scores[candidate, out] = own[out]
        self.zeros[candidate, out] = some_of(known).mean()

    def losses(self) -> NDArray[np.float64]:
        """Compute the log loss of each candidate [V]."""
        return np.array([log_loss(self.y, logits) for logits in self.scores])


class _InnerFit(NamedTuple):
    """A fit without one inner fold of a side.

    Attributes
    ----------
    scores : _HeldOutScores
        Of the side.
    fold : int
    known : ndarray of int
        The clips that it is fitted on.
    """

    scores: _HeldOutScores
    fold: int
    known: NDArray[np.intp]


class _Search:
    """The search for sides of the same clips, which share their products."""

    def __init__(
        self,
        estimator: Pipeline,
        choose: Grid,
        before: Sequence[tuple[str, Any]],
        probes: FoldLogistic,
        y: NDArray[np.int64],
    ) -> None:
        self.estimator, self.choose, self.before, self.probes, self.y = estimator, choose, before, probes, y
        # The strongest penalty first, whatever the order of preference.
        self.order = np.argsort(np.array(choose.values), kind="stable")
        self.strengths = [float(choose.values[place]) for place in self.order]

    def choose_and_fit(self, sides: Sequence[TrainingSide]) -> list[Chosen]:
        """Choose and fit for some sides, with rows among the clips that any side has."""
        held_out = [_HeldOutScores(side, self.y, len(self.strengths)) for side in sides]
        self._score_held_out(held_out)
        tried = [scores.losses() for scores in held_out]
        best = [int(np.argmin(losses)) for losses in tried]
        fitted = self._fitted(sides, best)
        name = self.choose.parameter.rsplit("__", maxsplit=1)[-1]
        return [
            Chosen(
                fitted[place],
                candidates(name, self.choose.values, losses, best[place]),
                scores.scores[best[place]].copy(),
                scores.zeros[best[place]].copy(),
            )
            for place, (scores, losses) in enumerate(zip(held_out, tried, strict=True))
        ]

    def _score_held_out(self, sides: Sequence[_HeldOutScores]) -> None:
        """Score the clips of each side by every candidate, fitted without the clips' inner folds.

        All candidates are fitted nearly to their minimum, and to the end those that are within `CLOSE` of the
        best.
        """
        inner = []
        for scores in sides:
            for fold in np.unique(scores.side.inner):
                known = scores.side.rows[scores.side.inner != fold]
                inner.append(_InnerFit(scores, int(fold), known))
        coefficients: dict[tuple[int, int], NDArray[np.float64]] = {}
        for fits in self.probes.path(self._masks([fit.known for fit in inner]), self.strengths):
            candidate = int(self.order[fits.penalty])
            by_fit = np.ascontiguousarray(fits.logits.T)
            for column, place in enumerate(fits.subsets.tolist()):
                inner[place].scores.fill(candidate, inner[place].fold, by_fit[column])
                coefficients[place, candidate] = fits.coefficients[:, column]
        near = {id(scores): _near_best(scores.losses()) for scores in sides}
        close = [
            (place, candidate)
            for place, fit in enumerate(inner)
            for candidate in near[id(fit.scores)].tolist()
        ]
        strengths = [float(self.choose.values[candidate]) for _, candidate in close]
        starts = np.stack([coefficients[one] for one in close], axis=1)
        masks = self._masks([inner[place].known for place, _ in close])
        for ended in self.probes.minima(masks, strengths, starts):
            by_fit = np.ascontiguousarray(ended.logits.T)
            for column, number in enumerate(ended.subsets.tolist()):
                place, candidate = close[number]
                inner[place].scores.fill(candidate, inner[place].fold, by_fit[column])

    def _fitted(self, sides: Sequence[TrainingSide], best: Sequence[int]) -> list[Pipeline]:
        """Fit each side's best candidate on all of its clips."""
        fitted = []
        chosen = [self.choose.values[candidate] for candidate in best]
        masks = self._masks([side.rows for side in sides])
        for fits in self.probes.minima(masks, [float(C) for C in chosen]):
            for column, place in enumerate(fits.subsets.tolist()):
                fitted.append(self._pipeline(chosen[place], fits, column))
        return fitted

    def _masks(self, subsets: Sequence[NDArray[np.intp]]) -> NDArray[np.bool_]:
        masks = np.zeros((len(self.y), len(subsets)), dtype=np.bool_)
        for column, rows in enumerate(subsets):
            masks[rows, column] = True
        return masks

    def _pipeline(self, C: float, fits: FoldFits, column: int) -> Pipeline:
        """Make the fitted estimator of one fit."""
        made = clone(self.estimator).set_params(**{self.choose.parameter: C})
        made.steps[: len(self.before)] = self.before
        scaler, probe = made[-2], made[-1]
        scaler.mean_ = fits.moments.mean[column].copy()
        scaler.scale_ = fits.moments.scale[column].copy()
        scaler.n_features_in_ = probe.n_features_in_ = len(scaler.mean_)
        probe.classes_ = np.array([0, 1])
        probe.coef_ = fits.weights[None, :, column].copy()
        probe.intercept_ = fits.intercepts[[column]].copy()
        probe.n_iter_ = int(fits.n_steps[column])
        return made


def _near_best(losses: NDArray[np.float64]) -> NDArray[np.intp]:
    """Find the candidates whose losses [V] are so close to the least that they may be the best."""
    return np.flatnonzero(losses <= losses.min() * (1 + CLOSE))
