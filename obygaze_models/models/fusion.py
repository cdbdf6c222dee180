"""Fuse modalities: one model of several backbones' features, and one for every set of them that clips have.

The features of a clip are one row of X [N, D] in which every modality has its columns; a modality that a clip
lacks is NaN there. Nothing is put in its place: clips are scored by a model of the modalities that they have,
which was trained on the clips that have these.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import product
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from obygaze_features.arguments import checked
from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import ModelError, ProtocolError
from obygaze_models.models.binary import LogitClassifier, encode_labels
from obygaze_models.models.choices import Candidate
from obygaze_models.models.grouped_selection import GroupedSelection, mean_score, scores_of
from obygaze_models.models.linear import PENALTIES
from obygaze_models.models.registry import find_model
from obygaze_models.models.ridge_logistic import RidgeLogistic
from obygaze_models.models.scaling import CLIP, ClippedScaler, standardise
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.held_out import HeldOut
from obygaze_models.protocol.selection import inner_folds

How = Literal["concat", "late", "max", "mean"]
HOW: tuple[How, ...] = ("concat", "late", "max", "mean")

ALONE = "alone"
"""Begins the candidate of a late fusion in which one modality decides."""

RELATIVE = (1.0, 0.1, 10.0)
"""Penalties of further modalities, as multiples of the first's, in the order of preference."""

Columns = tuple[slice, ...]
"""Of the modalities that are read, in a row of features."""
Pattern = tuple[int, ...]
"""A set of modalities, by their places among those that are read."""


@checked
def fused(models: Sequence[str | ModelSpec], data: Dataset, how: How) -> list[ModelSpec]:
    """Make fused models of models of vectors, and those that show what each modality is worth in them.

    Parameters
    ----------
    models : sequence of str or ModelSpec
    data : Dataset
        Of several modalities.
    how : {"concat", "late", "max", "mean"}
        As `FusedClassifier` takes it.

    Returns
    -------
    list of ModelSpec
        For every model: all modalities; each alone (``NAME:MODALITY``); and of three or more, all but each
        (``NAME:-MODALITY``). Baselines, which look at no features, as they are.

    Raises
    ------
    ModelError
        There are not two modalities of different names, or a model reads no vectors.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> from obygaze_models.dataset import Modality
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> halves = (("seen", 0, 4), ("heard", 4, 8))  # as load_dataset([SEEN, HEARD], manifest) gives them
    >>> parts = [Modality(name, data.store, name, "pooled", "as stored", *own, 0) for name, *own in halves]
    >>> data = replace(data, modalities=tuple(parts))
    >>> [spec.name for spec in om.fused(["linear"], data, "late")]
    ['linear', 'linear:seen', 'linear:heard']
    """
    sets = subsets(data)
    if how not in HOW:
        raise ModelError(f"models are fused by one of {', '.join(HOW)}, not by {how!r}")
    columns = [slice(modality.start, modality.stop) for modality in data.modalities]
    made = []
    for given in models:
        spec = given if isinstance(given, ModelSpec) else find_model(given)
        if not spec.looks_at_features:
            made.append(spec)
            continue
        if spec.reads != "pooled" or "present" in spec.requests():
            reads = "concepts" if spec.reads == "pooled" else spec.reads
            raise ModelError(f"model {spec.name} reads {reads}: models of vectors alone are fused")
        for suffix, what, chosen in sets:
            own = tuple(columns[index] for index in chosen)
            name, title = f"{spec.name}{suffix}", f"{spec.title}, {what}" + f" ({how})" * (len(chosen) > 1)
            uses, make = tuple(sorted({*spec.requests(), "groups"})), partial(_make, spec, own, how)
            made.append(replace(spec, name=name, title=title, make=make, choose=None, uses=uses, beside=()))
    return made


def subsets(data: Dataset) -> list[tuple[str, str, Pattern]]:
    """List all modalities, each alone and, of three or more, all but each: suffix, title and places.

    Raises
    ------
    ModelError
        There are not two modalities of different names.
    """
    names = [modality.name for modality in data.modalities]
    if len(names) < 2 or len(set(names)) < len(names):
        found = ", ".join(names) or "none"
        raise ModelError(f"to fuse takes two modalities of different names; found {found}")
    every = tuple(range(len(names)))
    sets: list[tuple[str, Pattern]] = [("", every), *((f":{name}", (k,)) for k, name in enumerate(names))]
    if len(names) > 2:
        sets += [(f":-{name}", tuple({*every} - {k})) for k, name in enumerate(names)]
    return [(suffix, " + ".join(names[k] for k in chosen), chosen) for suffix, chosen in sets]


def _make(spec: ModelSpec, columns: Columns, how: How, seed: int) -> "FusedClassifier":
    estimator = spec.estimator(seed)
    weighted = how == "concat" and spec.name == "linear"
    return FusedClassifier(PenaltyPerModality() if weighted else estimator, columns, how=how)


@dataclass(eq=False, repr=False)
class FusedClassifier(MetaEstimatorMixin, LogitClassifier):
    """Classify clips by several modalities; those that a clip lacks are masked.

    Parameters
    ----------
    estimator : estimator
        Of one modality, or of all that are joined; it has ``held_out_`` when it was fitted with movies.
    columns : tuple of slice
        The modalities' columns in X.
    how : {"concat", "late", "max", "mean"}
        ``concat`` joins features. The others train a model for each modality and take each logit less its
        mean on training clips: ``late`` their sum by weights of `HeldOut.weights`, ``mean`` their mean,
        ``max`` the largest.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
    models_ : dict
        Set of modalities -> its model; the set of all is always there.
    threshold_ : float
        The score from which on a clip that has all modalities is called positive.
    held_out_ : HeldOut
        The out-of-fold logit of each training clip, by the model of the modalities that it has; of one that
        has none, the mean of the others.
    candidates_ : tuple of Candidate
        How `late` joins all modalities: the weights of their logits, or the better one alone.
    """

    estimator: Any
    columns: Columns
    _: KW_ONLY
    how: How = "concat"

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike) -> Self:
        """Fit a model for every set of modalities that clips of X [N, D] have.

        Raises
        ------
        ValueError
            The clips that have all modalities are too few for inner folds.
        """
        features, movies = np.asarray(X), np.asarray(groups)
        self.classes_, labels = encode_labels(np.asarray(y), type(self).__name__)
        there = _there(features, self.columns)
        self.models_: dict[Pattern, _Joined] = {}
        held_out = np.full((3, len(labels)), np.nan)
        everything = tuple(range(len(self.columns)))
        for pattern in sorted({everything, *map(_indices, there)} - {()}, key=len):
            rows = there[:, list(pattern)].all(axis=1)
            own = [features[rows][:, self.columns[index]] for index in pattern]
            joined = _Joined(self.estimator, self.how)
            try:
                inner_folds(labels[rows], movies[rows])
            except ProtocolError as error:
                has = "all its modalities" if len(everything) > 1 else "its modality"
                raise ValueError(f"too few clips have {has}: {error}") from None
            joined.fit(own, labels[rows], movies[rows])
            exactly = (there[rows] == np.isin(everything, pattern)).all(axis=1)
            own_scores = joined.held_out
            # A fold of one set of modalities is none of another.
            folds = own_scores.folds + len(self.models_) * len(labels)
            scored = np.stack([own_scores.scores, own_scores.zeros, folds])
            held_out[:, np.flatnonzero(rows)[exactly]] = scored[:, exactly]
            self.models_[pattern] = joined
        known = np.isfinite(held_out[0])
        scores, zeros, folds = np.where(known, held_out, held_out[:, known].mean(axis=1, keepdims=True))
        self.held_out_ = HeldOut(scores, labels, movies, folds.astype(np.int64), zeros)
        self.threshold_ = self.held_out_.threshold()
        self.candidates_ = self.models_[everything].candidates
        self.n_features_in_ = features.shape[1]
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N] by the model of the modalities that it has; without any as the mean clip."""
        check_is_fitted(self)
        features = np.asarray(X)
        scores = np.full(len(features), self.models_[tuple(range(len(self.columns)))].base)
        for own, rows in _by_pattern(_there(features, self.columns), self.models_):
            parts = [features[rows][:, self.columns[index]] for index in own]
            scores[rows] = self.models_[own].scores(parts)
        return scores

    def linear(self) -> "LinearFusion":
        """Return the same as sums of features, which a file can keep; its models are linear probes."""
        check_is_fitted(self)
        return LinearFusion(
            self.columns,
            {pattern: joined.linear() for pattern, joined in self.models_.items()},
            largest=self.how == "max",
        )


def has_modality(features: NDArray[Any], own: slice) -> NDArray[np.bool_]:
    """Mark the clips [N] that have a modality: its vector, or a frame of it."""
    there: NDArray[np.bool_] = np.isfinite(features[..., own]).all(axis=-1)
    return there if there.ndim == 1 else np.asarray(there.any(axis=1))


def _there(features: NDArray[Any], columns: Columns) -> NDArray[np.bool_]:
    """Mark the modalities that each clip has [N, M]."""
    return np.stack([has_modality(features, own) for own in columns], axis=1)


def _by_pattern(
    there: NDArray[np.bool_], fitted: Iterable[Pattern]
) -> Iterator[tuple[Pattern, NDArray[np.bool_]]]:
    """Yield the clips [N] that lack the same modalities, with the largest set of theirs that has a model."""
    known = list(fitted)
    for had in np.unique(there, axis=0):
        fitting = [own for own in known if {*own} <= {*_indices(had)}]
        if fitting:
            yield max(fitting, key=len), (there == had).all(axis=1)


class _Joined:
    """A model of one set of modalities."""

    def __init__(self, estimator: Any, how: How) -> None:
        self._estimator, self._how = estimator, how

    def fit(self, parts: list[NDArray[Any]], y: NDArray[Any], movies: NDArray[Any]) -> None:
        """Fit it on one array [N, D] a modality."""
        widths = tuple(part.shape[1] for part in parts)
        own = self._estimator
        if isinstance(own, PenaltyPerModality):
            own = PenaltyPerModality(widths)
        self._n_parts = len(parts)
        self._models = [clone(own).fit(given, y, groups=movies) for given in self._given(parts)]
        each = HeldOut.beside([_held_out(model) for model in self._models])
        n = len(self._models)
        both = zip(self._models, self._given(parts), strict=True)
        self._zeros = np.array([mean_score(model, given) for model, given in both])
        self._factors, self.base = np.ones(n), float(self._zeros.mean())
        self.candidates: tuple[Candidate, ...] = ()
        self.held_out = _held_out(self._models[0])
        if n == 1:
            return
        if self._how == "mean":
            self._factors /= n
        elif self._how == "late":
            self._factors, self.base = each.weights()
            alone = np.count_nonzero(self._factors) == 1
            weights = ", ".join(f"{weight:.3g}" for weight in self._factors)
            self.candidates = (
                Candidate(f"{ALONE if alone else 'weights'} {weights}", math.nan, chosen=True),
            )
        # The mean of training clips is the base of a sum; of a largest it is not known.
        zeros = None if self._how == "max" else np.full(len(y), self.base)
        self.held_out = HeldOut(self._join(each.levels), y, movies, self.held_out.folds, zeros)

    def scores(self, parts: list[NDArray[Any]]) -> NDArray[np.float64]:
        """Score clips."""
        both = zip(self._models, self._given(parts), strict=True)
        logits = np.stack([scores_of(model, given) for model, given in both], axis=1)
        return logits[:, 0] if len(self._models) == 1 else self._join(logits - self._zeros)

    def _given(self, parts: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return what each model is given."""
        return [np.concatenate(parts, axis=1)] if self._how == "concat" else parts

    def linear(self) -> "LinearJoin":
        """Return it as sums of standardised features."""
        probes = [_linear_probe(model) for model in self._models]
        mean, scale, weights = (np.concatenate(arrays) for arrays in list(zip(*probes, strict=True))[:3])
        intercepts = np.array([probe[3] for probe in probes])
        if self._how == "concat":
            n = self._n_parts
            return LinearJoin(mean, scale, weights, np.ones(n), np.zeros(n), intercepts)
        return LinearJoin(
            mean, scale, weights, self._factors, intercepts - self._zeros, np.array([self.base])
        )

    def _join(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        weighed = levels * self._factors
        return np.asarray(self.base + (weighed.max(axis=1) if self._how == "max" else weighed.sum(axis=1)))


@dataclass(eq=False, repr=False)
class PenaltyPerModality(LogitClassifier):
    """The linear probe with a penalty for each modality; all are standardised apart.

    Parameters
    ----------
    widths : tuple of int
        Features of each modality.

    Attributes
    ----------
    relative_ : tuple of float
        Inverse strengths of the modalities' penalties, as multiples of the first's.
    """

    widths: tuple[int, ...] = ()

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike) -> Self:
        """Choose the penalties by inner folds of movies, then fit all clips."""
        tried = {}
        for relative in product((1.0,), *[RELATIVE] * (len(self.widths) - 1)):
            weights = np.repeat(np.sqrt(relative), self.widths)
            weighing = FunctionTransformer(weigh, kw_args={"weights": weights})
            pipeline = make_pipeline(ClippedScaler(), weighing, RidgeLogistic())
            tried[relative] = GroupedSelection(pipeline, PENALTIES).fit(X, y, groups=groups)
        losses = {key: min(one.inner_loss for one in fit.candidates_) for key, fit in tried.items()}
        self.relative_ = min(losses, key=lambda key: losses[key])  # of equals the first
        best = self.selection_ = tried[self.relative_]
        self.classes_, self.threshold_ = best.classes_, best.threshold_
        self.held_out_, self.candidates_ = best.held_out_, best.candidates_
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N]."""
        check_is_fitted(self)
        return np.asarray(self.selection_.decision_function(X), np.float64)


def weigh(X: ArrayLike, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply standardised features [N, D] by weights [D], which makes their penalties differ."""
    return np.asarray(X) * weights


def _linear_probe(model: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], float]:
    """Return mean, deviation and weight of each feature, and the intercept, of a fitted linear probe."""
    chosen = model.selection_ if isinstance(model, PenaltyPerModality) else model
    scaler, *between, head = (step for _, step in chosen.estimator_.steps)
    weights = head.coef_[0] * (between[0].kw_args["weights"] if between else 1)
    return scaler.mean_, scaler.scale_, weights, float(head.intercept_[0])


class LinearJoin(NamedTuple):
    """A linear fused model of one set of modalities.

    Attributes
    ----------
    mean, scale, weights : ndarray, shape [D]
        Of the features of these modalities, one after the other.
    factors, intercepts : ndarray, shape [M]
        A modality's contribution is its factor times (its weighted features and its intercept): above 0 where
        its model scores a clip higher than the mean training clip.
    base : ndarray, shape [1]
        What is added to the contributions.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    weights: NDArray[np.float64]
    factors: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    base: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearFusion:
    """A fitted `FusedClassifier` of linear probes, as a file keeps it.

    Attributes
    ----------
    columns : tuple of slice
        The modalities' columns in X.
    joins : mapping
        Set of modalities -> its model.
    largest : bool
        Whether the largest contribution is added to the base, and not their sum.
    """

    columns: Columns
    joins: Mapping[Pattern, LinearJoin]
    largest: bool

    def contributions(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Decompose scores into a base [N] and each modality's contribution [N, M], NaN where it lacks."""
        features = np.asarray(X)
        base = np.repeat(self.joins[tuple(range(len(self.columns)))].base, len(features))
        parts = np.full((len(features), len(self.columns)), np.nan)
        for pattern, rows in _by_pattern(_there(features, self.columns), self.joins):
            join, start = self.joins[pattern], 0
            base[rows] = join.base
            for index, factor, intercept in zip(pattern, join.factors, join.intercepts, strict=True):
                own = features[rows][:, self.columns[index]]
                here = slice(start, start := start + own.shape[1])
                wide = standardise(own, join.mean[here], join.scale[here], CLIP)
                parts[rows, index] = factor * (wide @ join.weights[here] + intercept)
        return base, parts

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N] by the model of the modalities that it has; one that has none has the base."""
        base, parts = self.contributions(X)
        known = np.isfinite(parts)
        joined = np.where(known, parts, -np.inf).max(axis=1) if self.largest else np.nansum(parts, axis=1)
        return np.asarray(base + np.where(known.any(axis=1), joined, 0.0))


def _held_out(model: Any) -> HeldOut:
    if not hasattr(model, "held_out_"):
        raise ValueError(f"{type(model).__name__} keeps no out-of-fold scores, which fusion needs")
    scores: HeldOut = model.held_out_
    return scores


def _indices(there: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(np.flatnonzero(there).tolist())
