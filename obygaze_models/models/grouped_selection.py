"""Select hyperparameters and the threshold by inner folds of movies."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d

from obygaze_models.blas import one_blas_thread
from obygaze_models.models.binary import ABOVE_ZERO, LogitClassifier, encode_labels
from obygaze_models.models.choices import (
    Candidate,
    Choice,
    EarlyStopping,
    Grid,
    candidates,
    log_loss,
    some_of,
)
from obygaze_models.models.probe_search import (
    Chosen,
    TrainingSide,
    is_probe_search,
    search_probes,
)
from obygaze_models.protocol.held_out import HeldOut
from obygaze_models.protocol.selection import inner_folds


@dataclass(eq=False, repr=False)
class GroupedSelection(MetaEstimatorMixin, LogitClassifier):
    """Choose what an estimator leaves open by inner folds of movies, and tune its threshold.

    Whole movies are held out in `inner_folds` folds. The choice is made on the scores of clips whose movie
    was not trained on; the threshold is the one with the highest f1_pos on the same scores; the estimator
    kept is then fitted on all clips. Without movies (``groups``) nothing is chosen: the estimator is fitted
    as it is, and clips with a positive score are called positive.

    Parameters
    ----------
    estimator : estimator
        Binary; has ``decision_function``, or ``predict_proba``, whose logit is then the score.
    choose : Threshold, Grid or EarlyStopping
        What is left open.
    inner_folds : int
        Fewer are made where there are fewer movies.
    pass_groups : bool
        Whether the estimator's own ``fit`` takes the movies too.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
        The negative and the positive label.
    estimator_ : estimator
        Fitted on all clips.
    threshold_ : float
        The score from which on a clip is called positive.
    candidates_ : tuple of Candidate
        What was tried; empty without movies.
    held_out_ : HeldOut
        The out-of-fold score of each training clip; with movies only.
    curves_ : tuple of Curve
        Of the inner trainings that stopped early.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> y = data.levels == "S"
    >>> model = om.GroupedSelection(LogisticRegression()).fit(data.X, y, groups=data.movies)
    >>> model.held_out_.scores.shape
    (95,)
    >>> bool(model.predict(data.X).any())
    True
    """

    estimator: Any
    choose: Choice | None = None
    _: KW_ONLY
    inner_folds: int = 4
    pass_groups: bool = False

    def get_metadata_routing(self) -> MetadataRouter:
        """Request movies for itself, and route what the estimator requests."""
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        )

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None, **params: Any) -> Self:
        """Choose, tune and fit.

        Parameters
        ----------
        X : array-like, shape [N, ...]
            Vectors [N, D], or whatever the estimator reads.
        y : array-like, shape [N]
            Two labels; the second in sorted order is the positive one.
        groups : array-like, shape [N], optional
            The movie of each clip.
        **params
            Arrays [N, ...] for the estimator's ``fit``, cut to the clips of each fold.

        Raises
        ------
        ProtocolError
            The movies don't allow an inner selection.
        ValueError
            The estimator gives no scores.
        """
        # What a model reads may have any number of dimensions; the model itself checks its values.
        features = check_array(X, dtype=None, ensure_2d=False, allow_nd=True, ensure_all_finite=False)
        y = check_array(column_or_1d(y, warn=True), dtype=None, ensure_2d=False, input_name="y")
        classes, labels = encode_labels(y, type(self.estimator).__name__)
        check_consistent_length(features, labels)
        refuse_without_scores(self.estimator)
        for name in ("held_out_", "curves_"):
            self.__dict__.pop(name, None)
        if groups is None:
            with one_blas_thread():
                estimator = clone(self.estimator).fit(features, labels, **params)
            return self._settle(classes, estimator, ())
        movies = check_array(groups, ensure_2d=False, dtype=None)
        check_consistent_length(features, movies)
        folds = inner_folds(labels, movies, self.inner_folds)
        if self.pass_groups:
            params["groups"] = movies
        if isinstance(self.choose, Grid) and is_probe_search(self.estimator, self.choose) and not params:
            side = TrainingSide(np.arange(len(labels)), folds)
            (chosen,) = search_probes(self.estimator, self.choose, features, labels, [side])
            return self.accept(chosen, classes, HeldOut(chosen.scores, labels, movies, folds, chosen.zeros))
        with one_blas_thread():
            unfitted, tried, (scores, zeros) = self._choose(_InnerFolds(features, labels, folds, params))
            estimator = unfitted.fit(features, labels, **params)
        return self._settle(classes, estimator, tried, HeldOut(scores, labels, movies, folds, zeros))

    def accept(self, chosen: Chosen, classes: NDArray[Any], held_out: HeldOut) -> Self:
        """Become fitted by what `search_probes` chose, with labels `classes` and the held-out scores."""
        return self._settle(classes, chosen.estimator, chosen.candidates, held_out)

    def _settle(
        self,
        classes: NDArray[Any],
        estimator: Any,
        tried: tuple[Candidate, ...],
        held_out: HeldOut | None = None,
    ) -> Self:
        """Set what `fit` learns."""
        self.classes_, self.estimator_, self.candidates_ = classes, estimator, tried
        self.threshold_ = ABOVE_ZERO
        if held_out is not None:
            self.held_out_ = held_out
            self.threshold_ = held_out.threshold()
        if hasattr(estimator, "n_features_in_"):
            self.n_features_in_ = estimator.n_features_in_
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N]: higher for the positive class."""
        check_is_fitted(self)
        with one_blas_thread():
            return scores_of(self.estimator_, np.asarray(X))

    def _choose(self, inner: "_InnerFolds") -> tuple[Any, tuple[Candidate, ...], NDArray[np.float64]]:
        """Give what to fit on all clips, what was tried, and held-out scores and zeros [2, N]."""
        match self.choose:
            case Grid(parameter, values):
                estimators = [clone(self.estimator).set_params(**{parameter: value}) for value in values]
                found = self._held_out(estimators, inner, parameter)
                losses = [log_loss(inner.y, logits) for logits in found[0]]
                best = int(np.argmin(losses))
                name = parameter.rsplit("__", maxsplit=1)[-1]
                return clone(estimators[best]), candidates(name, values, losses, best), found[:, best]
            case EarlyStopping(parameter, fitted):
                return self._stop_early(inner, parameter, fitted)
            case _:
                return clone(self.estimator), (), self._held_out([clone(self.estimator)], inner)[:, 0]

    def _held_out(
        self, tried: Sequence[Any], inner: "_InnerFolds", parameter: str = ""
    ) -> NDArray[np.float64]:
        """Score each clip by each estimator, fitted without its fold; they differ by `parameter`.

        The scores come first, then the estimators' mean scores of the clips they were fitted on [2, E, N].
        """
        if hasattr(self.estimator, "logits_of_subsets") and not inner.params:
            held_in = np.stack([~out for out in inner], axis=1)
            logits = self.estimator.logits_of_subsets(tried, inner.X, inner.y, held_in)
            if logits is not None:
                return _held_out_of(logits, held_in)
        first = None
        if isinstance(self.estimator, Pipeline) and not inner.params:
            *before, (last, _) = self.estimator.steps
            if before and parameter.startswith(f"{last}__"):
                # What comes before the last step learns the same whatever the parameter's value.
                first, tried = self.estimator[:-1], [estimator[-1] for estimator in tried]
        scores = np.empty((2, len(tried), len(inner.y)))
        for out in inner:
            known, held_out, labels = inner.X[~out], inner.X[out], inner.y[~out]
            if first is not None:
                learnt = clone(first)
                known, held_out = learnt.fit_transform(known, labels), learnt.transform(held_out)
            # Unfitted; to clone takes as long as small fits.
            models = [copy(estimator) for estimator in tried]
            if hasattr(models[0], "fit_together") and not inner.params:
                models[0].fit_together(models, known, labels)
            else:
                for model in models:
                    model.fit(known, labels, **inner.params_of(~out))
            for index, model in enumerate(models):
                scores[0, index, out] = scores_of(model, held_out)
                scores[1, index, out] = mean_score(model, known)
        return scores

    def _stop_early(
        self, inner: "_InnerFolds", parameter: str, fitted: str
    ) -> tuple[Any, tuple[Candidate, ...], NDArray[np.float64]]:
        X, y = inner.X, inner.y
        scores, kept, curves = np.empty((2, len(y))), [], []
        for fold, out in enumerate(inner):
            model = clone(self.estimator)
            # Each inner model draws from a stream of its own.
            if "random_state" in model.get_params():
                seeds = np.random.SeedSequence((model.get_params()["random_state"], fold + 1))
                model.set_params(random_state=int(seeds.generate_state(1)[0]))
            model.fit(X[~out], y[~out], X_val=X[out], y_val=y[out], **inner.params_of(~out))
            # The epoch was chosen on the clips scored, so their scores are slightly optimistic: that may move
            # the threshold, never a number of the test fold.
            scores[0, out], scores[1, out] = scores_of(model, X[out]), mean_score(model, X[~out])
            kept.append(int(getattr(model, fitted)))
            curves += [model.curve_] if hasattr(model, "curve_") else []
        # The later epoch where the median falls between two.
        epochs = int(np.ceil(np.median(kept)))
        self.curves_ = tuple(curves)
        tried = (Candidate(f"{parameter}={epochs}", log_loss(y, scores[0]), chosen=True),)
        return clone(self.estimator).set_params(**{parameter: epochs}), tried, scores


@dataclass(frozen=True, eq=False)
class _InnerFolds:
    """Clips X [N, ...] with labels y [N], dealt to folds [N], and further arguments of ``fit``."""

    X: NDArray[Any]
    y: NDArray[np.int64]
    folds: NDArray[np.int64]
    params: Mapping[str, Any]

    def __iter__(self) -> Iterator[NDArray[np.bool_]]:
        """Mark the clips that each fold holds out."""
        return (self.folds == fold for fold in np.unique(self.folds))

    def params_of(self, rows: NDArray[np.bool_]) -> dict[str, Any]:
        """Cut arrays and data frames to some clips."""
        return {
            name: value.loc[rows] if hasattr(value, "loc") else np.asarray(value)[rows]
            for name, value in self.params.items()
            if value is not None
        }


def _held_out_of(logits: NDArray[np.float64], held_in: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Take the scores of held-out clips, and the mean scores of clips fitted on, from logits of all clips.

    Parameters
    ----------
    logits : ndarray, shape [E, F, N]
        Of each estimator, fitted on each fold's clips.
    held_in : ndarray of bool, shape [N, F]
        The clips of each fold that are fitted on; each clip is held out by one.

    Returns
    -------
    ndarray, shape [2, E, N]
        Scores, then means.
    """
    scores = np.empty((2, len(logits), len(held_in)))
    for fold, known in enumerate(held_in.T):
        for estimator, own in enumerate(logits[:, fold]):
            scores[0, estimator, ~known] = own[~known]
            scores[1, estimator, ~known] = some_of(own[known]).mean()
    return scores


def refuse_without_scores(estimator: Any) -> None:
    """Refuse an estimator whose clips can't be ranked.

    Raises
    ------
    ValueError
        It has neither ``decision_function`` nor ``predict_proba``.
    """
    if not (hasattr(estimator, "decision_function") or hasattr(estimator, "predict_proba")):
        raise ValueError(
            f"{type(estimator).__name__} gives no scores: a model needs decision_function or predict_proba"
        )


def scores_of(estimator: Any, X: NDArray[Any], **params: Any) -> NDArray[np.float64]:
    """Score clips [N] by a fitted estimator: its decision function, or the logit of its probability.

    Raises
    ------
    ValueError
        The scores are not one finite number a clip.
    """
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X, **params), dtype=np.float64)
    else:
        positive = np.asarray(estimator.predict_proba(X, **params), dtype=np.float64)[:, 1]
        # In float32 a probability may be exactly 0 or 1.
        positive = np.clip(positive, 1e-12, 1 - 1e-12)
        scores = np.log(positive / (1 - positive))
    if scores.shape != (len(X),) or not np.isfinite(scores).all():
        raise ValueError(
            f"{type(estimator).__name__} must give one finite score a clip: "
            f"expected shape [{len(X)}], found {list(scores.shape)}"
            + ("" if np.isfinite(scores).all() else " with values that are not finite")
        )
    return scores


def mean_score(estimator: Any, X: Any) -> float:
    """Average scores over some clips of X that an estimator was fitted on: all known of its intercept."""
    return float(scores_of(estimator, some_of(X)).mean())
