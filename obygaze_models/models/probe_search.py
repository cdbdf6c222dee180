"""Choose the linear probe's penalty in the inner folds of many sets of clips, all in one product.

`GroupedSelection` does the same for any estimator, one set after the other. Here many sets are fitted
together (`ridge_folds`). Their logits differ from those of each set alone by at most 1e-6 of the largest.

The sets are the training sets of an evaluation's folds. Each *inner fit* is a fit without one inner fold of
one training set; there are as many inner fits as inner folds of all training sets, and V candidates, the
penalties, for each.
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
from obygaze_models.models.choices import Choice, Chosen, Grid, candidates, log_loss, sample_evenly
from obygaze_models.models.ridge_folds import FoldFits, FoldLogistic, block_width
from obygaze_models.models.ridge_logistic import RidgeLogistic
from obygaze_models.models.scaling import ClippedScaler

STEPS_OF_FOLD = 110
"""Steps that all fits of an outer fold take together, measured (benchmarks/README.md, zoo)."""

NUMBERS_PER_SECOND = 5e9
"""Numbers of the features of which a core computes logits and gradient in a second, in one step of a fit."""

NEAR_BEST_SHARE = 2e-3
"""A candidate is fitted to convergence if its loss is above the lowest by at most this share.

The losses of approximate fits may be wrong by that much, so that any of these candidates may be the best.
"""


def expected_cpu_s(n_clips: int, n_features: int, n_folds: int) -> float:
    """Estimate the CPU seconds of choosing and fitting linear probes in `n_folds` outer folds.

    The number of steps of a fold and the speed of a core are measured constants.
    """
    return n_folds * STEPS_OF_FOLD * n_clips * n_features / NUMBERS_PER_SECOND


class TrainingSet(NamedTuple):
    """Training clips of one evaluation fold: the penalty is chosen and the probe fitted on them.

    Attributes
    ----------
    rows : ndarray of int, shape [n]
        Indices of the clips among all.
    inner : ndarray of int, shape [n]
        The inner fold in which each is held out.
    """

    rows: NDArray[np.intp]
    inner: NDArray[np.int64]


def is_probe_search(estimator: Any, choose: Choice | None) -> bool:
    """Tell whether an estimator is the zoo's linear probe and `choose` a grid of its penalty.

    For these, `search_probes` makes the choice faster than a selection fold by fold. The estimator may have
    further steps before the scaler, if they need no fitting.
    """
    if not isinstance(estimator, Pipeline) or not isinstance(choose, Grid) or len(estimator.steps) < 2:
        return False
    *first_steps, (_, scaler), (name, probe) = estimator.steps
    if type(scaler) is not ClippedScaler or type(probe) is not RidgeLogistic:
        return False

    # Steps that learn from clips would differ from fold to fold.
    learn_from_clips = [get_tags(step).requires_fit for _, step in first_steps]
    if any(learn_from_clips):
        return False

    # All parameters of the probe but C must be the defaults, which the search is written for.
    default_parameters = RidgeLogistic(C=probe.C).get_params()
    return choose.parameter == f"{name}__C" and probe.get_params() == default_parameters


def search_probes(
    estimator: Pipeline,
    choose: Grid,
    X: NDArray[Any],
    y: NDArray[np.int64],
    training_sets: Sequence[TrainingSet],
) -> Iterator[Chosen]:
    """Choose the penalty of the linear probe by inner folds and fit it, for each of several training sets.

    Parameters
    ----------
    estimator : Pipeline
        A linear probe, for which `is_probe_search` holds.
    choose : Grid
        Values of its penalty.
    X : ndarray, shape [N, ...]
    y : ndarray of int, shape [N]
        0 or 1 for the clips of the training sets; others are not used.
    training_sets : sequence of TrainingSet

    Yields
    ------
    Chosen
        One per training set, in order; its estimator is fitted on all clips of the set.

    Raises
    ------
    ValueError
        The features are refused: not finite, or of another shape.
    """
    # Clips that no set trains on are left out. The N clips of the search are the others, in order.
    used_rows = np.unique(np.concatenate([training_set.rows for training_set in training_sets]))
    renumbered_sets = []
    for training_set in training_sets:
        rows_among_used = np.searchsorted(used_rows, training_set.rows)
        renumbered_sets.append(TrainingSet(rows_among_used, training_set.inner))
    search = _start_search(estimator, choose, X[used_rows], y[used_rows])

    # As many training sets at a time as fit into one block of fits, one for each inner fold of a set.
    max_inner_folds = max(len(np.unique(training_set.inner)) for training_set in training_sets)
    n_fits_of_block = block_width(*search.logistic.shared.X.shape)
    n_sets = max(1, n_fits_of_block // max_inner_folds)
    for first in range(0, len(renumbered_sets), n_sets):
        with one_blas_thread():
            chosen = search.choose_and_fit(renumbered_sets[first : first + n_sets])
        yield from chosen


def _start_search(estimator: Pipeline, choose: Grid, X: NDArray[Any], y: NDArray[np.int64]) -> "_Search":
    """Check parameters and clips as fitting the pipeline would, and prepare the search on these N clips.

    Parameters
    ----------
    estimator : Pipeline
        A linear probe, for which `is_probe_search` holds.
    choose : Grid
    X : ndarray, shape [N, ...]
    y : ndarray of int, shape [N]
    """
    # The last two steps are scaler and probe. Those before it need no fitting, and are applied once.
    features = X
    first_steps = [(name, clone(step)) for name, step in estimator.steps[:-2]]
    for _, step in first_steps:
        features = step.fit_transform(features)

    scaler = clone(estimator[-2])
    probe = estimator[-1]
    scaler._validate_params()
    probe._validate_params()
    features = validate_data(scaler, features, dtype=(np.float64, np.float32))
    with one_blas_thread():
        logistic = FoldLogistic(features, y, scaler.limit)
    return _Search(clone(estimator), choose, first_steps, logistic, y)


class _HeldOutScores:
    """Scores of a training set's n clips by each of V candidates, fitted without the clip's inner fold.

    They are stored fit by fit (`store`).

    Attributes
    ----------
    training_set : TrainingSet
    scores : ndarray, shape [V, n]
    training_means : ndarray, shape [V, n]
        The mean score that the same model gives to the clips it was fitted on.
    """

    def __init__(self, training_set: TrainingSet, y: NDArray[np.int64], n_candidates: int) -> None:
        """Allocate arrays for the scores of a training set's clips; `y` [N] are the labels of all clips."""
        self.training_set = training_set
        self.scores = np.empty((n_candidates, len(training_set.rows)))
        self.training_means = np.empty((n_candidates, len(training_set.rows)))
        self._y = y[training_set.rows]

    def store(self, scores: "_ScoresOfFit") -> None:
        """Store the scores that one fit gives to the clips it holds out, in place of earlier ones."""
        is_held_out = self.training_set.inner == scores.inner_fit.fold
        self.scores[scores.candidate, is_held_out] = scores.held_out
        self.training_means[scores.candidate, is_held_out] = scores.training_mean

    def losses(self) -> NDArray[np.float64]:
        """Compute the log loss of each candidate [V]."""
        return np.array([log_loss(self._y, logits) for logits in self.scores])

    def near_best(self) -> list[int]:
        """Return the indices of the candidates whose loss is within `NEAR_BEST_SHARE` of the lowest.

        If the scores are approximate, any of these may be the best.
        """
        losses = self.losses()
        is_near = losses <= losses.min() * (1 + NEAR_BEST_SHARE)
        return np.flatnonzero(is_near).tolist()


class _InnerFit(NamedTuple):
    """A fit without one inner fold of a training set.

    Attributes
    ----------
    set_index : int
        Index of the training set among all sets.
    training_set : TrainingSet
    fold : int
        The inner fold that is held out.
    rows : ndarray of int
        The clips that it is fitted on.
    """

    set_index: int
    training_set: TrainingSet
    fold: int
    rows: NDArray[np.intp]

    def scores(self, candidate: int, logits: NDArray[np.floating[Any]]) -> "_ScoresOfFit":
        """Pick the scores of the clips that this fit left out from a candidate's logits [N] of all clips.

        `candidate` is the candidate's index in the grid. The mean logit of the clips that it was fitted on is
        returned besides, so that scores of different fits can be compared.
        """
        logits_of_set = logits[self.training_set.rows]
        is_held_out = self.training_set.inner == self.fold
        # Over a sample of these clips, as the mean of all would take longer and hardly differ.
        training_mean = sample_evenly(logits_of_set[~is_held_out]).mean()
        return _ScoresOfFit(self, candidate, logits_of_set[is_held_out], training_mean)


def _list_inner_fits(training_sets: Sequence[TrainingSet]) -> list[_InnerFit]:
    """List the fits that training sets need: for each set and inner fold, one without the fold's clips."""
    inner_fits = []
    for set_index, training_set in enumerate(training_sets):
        for fold in np.unique(training_set.inner):
            rows = training_set.rows[training_set.inner != fold]
            inner_fits.append(_InnerFit(set_index, training_set, int(fold), rows))
    return inner_fits


class _ScoresOfFit(NamedTuple):
    """The scores that an inner fit with one of the candidates gives.

    Attributes
    ----------
    inner_fit : _InnerFit
    candidate : int
        Index of the candidate, which is a value of the grid.
    held_out : ndarray, shape [number of clips of the inner fold]
        Scores of the clips that are held out.
    training_mean : float
        The mean score of the clips that were fitted on.
    """

    inner_fit: _InnerFit
    candidate: int
    held_out: NDArray[np.floating[Any]]
    training_mean: float


class _ApproximateFit(NamedTuple):
    """An inner fit with one of the candidates, which has not been fitted to convergence yet.

    Attributes
    ----------
    inner_index : int
        Index of the inner fit among all inner fits.
    scores : _ScoresOfFit
    coefficients : ndarray, shape [D + 1]
        The approximate coefficients, from which the fit can go on.
    """

    inner_index: int
    scores: _ScoresOfFit
    coefficients: NDArray[np.float64]


class _Search:
    """The search for training sets of the same N clips, which share their products.

    Parameters
    ----------
    estimator : Pipeline
        An unfitted probe.
    choose : Grid
    first_steps : sequence of (str, estimator)
        The steps before scaler and probe, as they were applied to the features.
    logistic : FoldLogistic
        Of the N clips.
    y : ndarray of int, shape [N]
    """

    def __init__(
        self,
        estimator: Pipeline,
        choose: Grid,
        first_steps: Sequence[tuple[str, Any]],
        logistic: FoldLogistic,
        y: NDArray[np.int64],
    ) -> None:
        """Keep what all candidates and training sets share; nothing is fitted yet."""
        self.estimator = estimator
        self.choose = choose
        self.first_steps = first_steps
        self.logistic = logistic
        self.y = y
        # The inverse strengths of the penalties, as floats.
        self.C_of_candidates = [float(value) for value in choose.values]

    def choose_and_fit(self, training_sets: Sequence[TrainingSet]) -> list[Chosen]:
        """Choose the penalty by inner folds and fit the probe, for each training set of the N clips."""
        scores_of_sets = self._score_held_out(training_sets)
        losses_of_sets = [scores.losses() for scores in scores_of_sets]
        best_of_sets = [int(np.argmin(losses)) for losses in losses_of_sets]
        probes = self._fit_best(training_sets, best_of_sets)

        # The parameter's name without that of the pipeline's step.
        name = self.choose.parameter.rsplit("__", maxsplit=1)[-1]
        choices = []
        for held_out, losses, best, probe in zip(
            scores_of_sets, losses_of_sets, best_of_sets, probes, strict=True
        ):
            chosen = Chosen(
                estimator=probe,
                candidates=candidates(name, self.choose.values, losses, best),
                scores=held_out.scores[best].copy(),
                training_means=held_out.training_means[best].copy(),
            )
            choices.append(chosen)
        return choices

    def _score_held_out(self, training_sets: Sequence[TrainingSet]) -> list[_HeldOutScores]:
        """Score the clips of each training set by every candidate, fitted without a clip's inner fold.

        A candidate is a penalty of the grid. Fitting all of them to convergence would take long, so that this
        is done in two stages: all candidates are fitted approximately, and then those whose loss is near the
        lowest (`near_best`) are fitted to convergence, as only they can be chosen.

        Returns
        -------
        list of _HeldOutScores
            For each training set, its scores: those of near-best candidates are exact, others approximate.
        """
        n_candidates = len(self.C_of_candidates)
        scores_of_sets = [
            _HeldOutScores(training_set, self.y, n_candidates) for training_set in training_sets
        ]
        inner_fits = _list_inner_fits(training_sets)

        # First stage: the approximate scores of all candidates.
        fit_of: dict[tuple[int, int], _ApproximateFit] = {}  # index of the inner fit, candidate -> the fit
        for fit in self._fit_approximately(inner_fits):
            fit_of[fit.inner_index, fit.scores.candidate] = fit
            scores_of_sets[fit.scores.inner_fit.set_index].store(fit.scores)

        # Second stage: the exact scores of the candidates near the best, over those of the first stage.
        near_best_of_sets = [scores.near_best() for scores in scores_of_sets]
        near_best_fits = []
        for index, inner_fit in enumerate(inner_fits):
            near_best = near_best_of_sets[inner_fit.set_index]
            near_best_fits += [fit_of[index, candidate] for candidate in near_best]
        for exact_scores in self._fit_to_convergence(near_best_fits):
            scores_of_sets[exact_scores.inner_fit.set_index].store(exact_scores)
        return scores_of_sets

    def _fit_approximately(self, inner_fits: Sequence[_InnerFit]) -> Iterator[_ApproximateFit]:
        """Fit every candidate on the clips of every inner fit, in float32.

        That is precise enough to find the candidates that may be the best. Only those are worth the steps in
        float64 by which `_fit_to_convergence` goes on.
        """
        # The path begins with the strongest penalty, the smallest C, whatever the order of the grid.
        strongest_first = np.argsort(np.array(self.C_of_candidates), kind="stable").tolist()
        masks = self._subset_masks([inner_fit.rows for inner_fit in inner_fits])
        path = self.logistic.path(masks, [self.C_of_candidates[candidate] for candidate in strongest_first])
        for block in path:  # of some inner fits with one candidate
            candidate = strongest_first[block.penalty]
            logits_by_fit = _contiguous_columns(block.logits)
            for column, inner_index in enumerate(block.subsets.tolist()):
                scores = inner_fits[inner_index].scores(candidate, logits_by_fit[column])
                yield _ApproximateFit(inner_index, scores, block.coefficients[:, column])

    def _fit_to_convergence(self, approximate_fits: Sequence[_ApproximateFit]) -> Iterator[_ScoresOfFit]:
        """Continue some approximate fits until they have converged, and yield their exact scores.

        Each of them is of one candidate for C on the clips of one inner fit. They are continued in blocks of
        fits that share their products.
        """
        C_of_fits = [self.C_of_candidates[fit.scores.candidate] for fit in approximate_fits]
        starts = np.stack([fit.coefficients for fit in approximate_fits], axis=1)  # [D + 1, number of fits]
        masks = self._subset_masks([fit.scores.inner_fit.rows for fit in approximate_fits])
        for block in self.logistic.minima(masks, C_of_fits, starts):
            logits_by_fit = _contiguous_columns(block.logits)
            index_of_approximate = block.subsets.tolist()
            for logits, index in zip(logits_by_fit, index_of_approximate, strict=True):
                approximate = approximate_fits[index].scores
                # The same inner fit and candidate, with the logits after convergence.
                yield approximate.inner_fit.scores(approximate.candidate, logits)

    def _fit_best(self, training_sets: Sequence[TrainingSet], best_of_sets: Sequence[int]) -> list[Pipeline]:
        """Fit a probe on each training set with the set's best candidate, given by its index in the grid.

        They are fitted in blocks that share their products.
        """
        probes = []
        masks = self._subset_masks([training_set.rows for training_set in training_sets])
        C_of_sets = [self.C_of_candidates[best] for best in best_of_sets]
        # The fits come in the order of the training sets.
        for block in self.logistic.minima(masks, C_of_sets):
            for column, training_set in enumerate(block.subsets.tolist()):
                # As it stands in the grid, not as the float that the fit was made with.
                C = self.choose.values[best_of_sets[training_set]]
                probes.append(self._fitted_pipeline(C, block, column))
        return probes

    def _subset_masks(self, subsets: Sequence[NDArray[np.intp]]) -> NDArray[np.bool_]:
        """Turn K subsets of the N clips, given as rows, into a mask [N, K]."""
        masks = np.zeros((len(self.y), len(subsets)), dtype=np.bool_)
        for column, rows in enumerate(subsets):
            masks[rows, column] = True
        return masks

    def _fitted_pipeline(self, C: float, fits: FoldFits, column: int) -> Pipeline:
        """Make a fitted pipeline from the numbers of one of several fits.

        Parameters
        ----------
        C : float
            Inverse strength of its penalty.
        fits : FoldFits
        column : int
            Column of the fit in the arrays of `fits`.
        """
        pipeline = clone(self.estimator).set_params(**{self.choose.parameter: C})
        # The steps before the scaler learn nothing from the clips, so that all fits share them.
        pipeline.steps[: len(self.first_steps)] = self.first_steps

        # The attributes that `fit` would set.
        scaler = pipeline[-2]
        scaler.mean_ = fits.mean_and_scale.mean[column].copy()
        scaler.scale_ = fits.mean_and_scale.scale[column].copy()
        scaler.n_features_in_ = len(scaler.mean_)
        probe = pipeline[-1]
        probe.n_features_in_ = len(scaler.mean_)
        probe.classes_ = np.array([0, 1])
        probe.coef_ = fits.weights[None, :, column].copy()
        probe.intercept_ = fits.intercepts[[column]].copy()
        probe.n_iter_ = int(fits.n_steps[column])
        return pipeline


def _contiguous_columns(matrix: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Copy the columns of a matrix [N, K] to rows [K, N], each contiguous in memory.

    Picking many numbers out of each is faster then.
    """
    return np.ascontiguousarray(matrix.T)
