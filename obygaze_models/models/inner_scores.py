"""Score training clips by models that were fitted without the inner fold of the clip.

The copies of an estimator that differ in one parameter, its *candidates*, are fitted on each inner fold, in
the cheapest way that the estimator offers (`Grid` says which there are).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from obygaze_models.models.choices import sample_evenly
from obygaze_models.models.estimator_scores import mean_score, scores_of


@dataclass(frozen=True, eq=False)
class InnerFolds:
    """Training clips with their inner folds.

    Attributes
    ----------
    X : ndarray, shape [N, ...]
    y : ndarray of int, shape [N]
        Labels, 0 or 1.
    folds : ndarray of int, shape [N]
        The fold that holds each clip out.
    params : mapping
        Further arguments of ``fit`` by name: arrays or data frames [N, ...]; an argument of None is left out.
    """

    X: NDArray[Any]
    y: NDArray[np.int64]
    folds: NDArray[np.int64]
    params: Mapping[str, Any]

    def held_out_clips(self) -> Iterator[NDArray[np.bool_]]:
        """Yield, for each inner fold, a mask [N] of the clips that it holds out."""
        for fold in np.unique(self.folds):
            yield self.folds == fold

    def params_of(self, clips: NDArray[np.bool_]) -> dict[str, Any]:
        """Return the further arguments of ``fit`` for some clips, which are marked in `clips` [N].

        Each argument is cut to its rows of these clips.
        """
        params = {}
        for name, value in self.params.items():
            if value is None:
                continue
            is_data_frame = hasattr(value, "loc")
            params[name] = value.loc[clips] if is_data_frame else np.asarray(value)[clips]
        return params


class InnerScores(NamedTuple):
    """Scores of N clips by E candidates, each fitted without the clip's fold.

    Attributes
    ----------
    scores : ndarray, shape [E, N]
    training_means : ndarray, shape [E, N]
        The mean score that the same model gives to the clips it was fitted on.
    """

    scores: NDArray[np.float64]
    training_means: NDArray[np.float64]

    @classmethod
    def empty(cls, n_candidates: int, n_clips: int) -> "InnerScores":
        """Allocate arrays for the scores, to be filled in."""
        shape = (n_candidates, n_clips)
        return cls(scores=np.empty(shape), training_means=np.empty(shape))


def score_candidates(candidates: Sequence[Any], inner: InnerFolds, parameter: str = "") -> InnerScores:
    """Score each training clip by each candidate, fitted without the clip's inner fold.

    There are three ways, of which the first that is possible is taken:

    - all candidates are fitted on all folds at once, if their class can do so (`logits_of_subsets`);
    - of pipelines that differ in their last step only, the earlier steps are fitted once for each fold;
    - all candidates are fitted on all folds, one by one.

    Parameters
    ----------
    candidates : sequence of estimator, length E
        Unfitted; they stay as they are.
    inner : InnerFolds
    parameter : str
        Name of the parameter in which they differ, as `set_params` takes it.
    """
    # The faster ways can't pass further arguments to ``fit``.
    has_no_arguments = not inner.params

    if has_no_arguments and hasattr(candidates[0], "logits_of_subsets"):
        scores = _score_by_subsets(candidates, inner)
        if scores is not None:
            return scores

    if has_no_arguments and _is_parameter_of_last_step(parameter, candidates[0]):
        last_steps = [candidate[-1] for candidate in candidates]
        return _score_folds(last_steps, inner, _after_earlier_steps(candidates[0], inner))

    return _score_folds(candidates, inner, _as_they_are(inner))


def _score_by_subsets(candidates: Sequence[Any], inner: InnerFolds) -> InnerScores | None:
    """Score training clips by candidates whose class fits them on all inner folds at once.

    Return None if the class cannot do so for these candidates, as for settings without a fast way.
    """
    in_training = np.stack([~is_held_out for is_held_out in inner.held_out_clips()], axis=1)  # [N, F]
    # A static method, which fits all candidates.
    logits = candidates[0].logits_of_subsets(candidates, inner.X, inner.y, in_training)
    if logits is None:
        return None
    return _pick_held_out(logits, in_training)


class _FoldFeatures(NamedTuple):
    """The features of the N training clips, divided by an inner fold.

    Attributes
    ----------
    is_held_out : ndarray of bool, shape [N]
        Marks the clips that the fold holds out.
    of_training : ndarray
        Features of the other clips, as the candidates read them.
    of_held_out : ndarray
        Features of the fold's clips.
    """

    is_held_out: NDArray[np.bool_]
    of_training: NDArray[Any]
    of_held_out: NDArray[Any]


def _as_they_are(inner: InnerFolds) -> Iterator[_FoldFeatures]:
    """Yield, for each inner fold, the features of its clips and of the others, unchanged."""
    for is_held_out in inner.held_out_clips():
        yield _FoldFeatures(is_held_out, of_training=inner.X[~is_held_out], of_held_out=inner.X[is_held_out])


def _after_earlier_steps(pipeline: Pipeline, inner: InnerFolds) -> Iterator[_FoldFeatures]:
    """Yield, for each inner fold, the features as a pipeline's last step reads them.

    The pipeline's earlier steps are fitted once on each fold. All candidates that differ in the last step
    only can share them.
    """
    for is_held_out in inner.held_out_clips():
        earlier_steps = clone(pipeline[:-1])
        of_training = earlier_steps.fit_transform(inner.X[~is_held_out], inner.y[~is_held_out])
        of_held_out = earlier_steps.transform(inner.X[is_held_out])
        yield _FoldFeatures(is_held_out, of_training, of_held_out)


def _score_folds(candidates: Sequence[Any], inner: InnerFolds, folds: Iterable[_FoldFeatures]) -> InnerScores:
    """Fit copies of the candidates without each inner fold, and score the fold's clips by them.

    With each score goes the mean score of the clips that the copy was fitted on: scores by the copies of
    different folds are comparable once each is taken relative to it.

    Parameters
    ----------
    candidates : sequence of estimator, length E
        Unfitted; they stay as they are.
    inner : InnerFolds
        The training clips.
    folds : iterable of _FoldFeatures
        The clips' features, divided by each inner fold, as the candidates read them.
    """
    result = InnerScores.empty(len(candidates), len(inner.y))
    for features in folds:
        is_held_out = features.is_held_out
        models = _fit_copies(candidates, features.of_training, inner, ~is_held_out)
        for index, model in enumerate(models):
            result.scores[index, is_held_out] = scores_of(model, features.of_held_out)
            result.training_means[index, is_held_out] = mean_score(model, features.of_training)
    return result


def _is_parameter_of_last_step(parameter: str, candidate: Any) -> bool:
    """Tell whether a parameter is one of the last step of a pipeline, such as "logistic__C".

    Candidates that differ in this parameter alone have the same earlier steps, such as a scaler: these are
    fitted once for all candidates. False for an estimator that has no earlier steps.
    """
    has_earlier_steps = isinstance(candidate, Pipeline) and len(candidate.steps) > 1
    if not has_earlier_steps:
        return False
    name_of_last, _ = candidate.steps[-1]
    return parameter.startswith(f"{name_of_last}__")


def _fit_copies(
    candidates: Sequence[Any], X: NDArray[Any], inner: InnerFolds, clips: NDArray[np.bool_]
) -> list[Any]:
    """Fit copies of the candidates on some clips, and return the copies.

    Parameters
    ----------
    candidates : sequence of estimator
        Unfitted, all of one class.
    X : ndarray, shape [n, ...]
        Features of those clips.
    inner : InnerFolds
        Labels of all N training clips, and what else estimators take in `fit`, such as movies.
    clips : ndarray of bool, shape [N]
        Marks the n clips to fit on.
    """
    # The candidates are unfitted, so a shallow copy is enough; scikit-learn's `clone` takes as long as a
    # small fit.
    models = [copy(candidate) for candidate in candidates]
    y = inner.y[clips]

    # Some classes have a static method that fits several models at once. It takes features and labels alone.
    estimator_class = type(models[0])
    if hasattr(estimator_class, "fit_together") and not inner.params:
        estimator_class.fit_together(models, X, y)
        return models

    for model in models:
        model.fit(X, y, **inner.params_of(clips))
    return models


def _pick_held_out(logits: NDArray[np.float64], in_training: NDArray[np.bool_]) -> InnerScores:
    """Collect the scores of held-out clips from the logits of all clips by all fits.

    With the score of a clip goes the mean score that the same fit gives to the clips it was fitted on: scores
    by the fits of different folds are comparable once each is taken relative to it.

    Parameters
    ----------
    logits : ndarray, shape [E, F, N]
        Logits of all N clips, by each of E candidates fitted without each of F folds.
    in_training : ndarray of bool, shape [N, F]
        Marks the clips that were fitted on in each fold; each clip is held out by one fold.
    """
    n_candidates, n_folds, n_clips = logits.shape
    result = InnerScores.empty(n_candidates, n_clips)
    for fold in range(n_folds):
        is_training = in_training[:, fold]
        is_held_out = ~is_training
        for candidate in range(n_candidates):
            logits_of_fit = logits[candidate, fold]
            # Over the same sample of the training clips as `mean_score` takes, which would score them anew.
            training_mean = sample_evenly(logits_of_fit[is_training]).mean()
            result.scores[candidate, is_held_out] = logits_of_fit[is_held_out]
            result.training_means[candidate, is_held_out] = training_mean
    return result
