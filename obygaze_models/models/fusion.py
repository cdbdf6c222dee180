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
"""The columns of each modality in a row of features."""
Pattern = tuple[int, ...]
"""A set of modalities, by their indices among those that are read."""


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
    fused_specs = []
    for model in models:
        spec = model if isinstance(model, ModelSpec) else find_model(model)
        if not spec.looks_at_features:
            fused_specs.append(spec)
            continue
        if spec.reads != "pooled" or "present" in spec.requests():
            reads = "concepts" if spec.reads == "pooled" else spec.reads
            raise ModelError(f"model {spec.name} reads {reads}: models of vectors alone are fused")
        for suffix, set_title, pattern in sets:
            columns_of_set = tuple(columns[index] for index in pattern)
            title = f"{spec.title}, {set_title}"
            if len(pattern) > 1:
                title += f" ({how})"
            fused_spec = replace(
                spec,
                name=f"{spec.name}{suffix}",
                title=title,
                make=partial(_make, spec, columns_of_set, how),
                choose=None,
                uses=tuple(sorted({*spec.requests(), "groups"})),
                beside=(),
            )
            fused_specs.append(fused_spec)
    return fused_specs


def subsets(data: Dataset) -> list[tuple[str, str, Pattern]]:
    """List the sets of modalities that are compared: all, each alone and, of three or more, all but each.

    Returns
    -------
    list of (suffix, title, pattern)
        The end of the names of models of the set, the names of its modalities, and their indices.

    Raises
    ------
    ModelError
        There are not two modalities of different names.
    """
    names = [modality.name for modality in data.modalities]
    if len(names) < 2 or len(set(names)) < len(names):
        found = ", ".join(names) or "none"
        raise ModelError(f"to fuse takes two modalities of different names; found {found}")
    indices = range(len(names))
    sets = [("", tuple(indices))]
    for index, name in enumerate(names):
        sets.append((f":{name}", (index,)))
    if len(names) > 2:
        for left_out, name in enumerate(names):
            others = tuple(index for index in indices if index != left_out)
            sets.append((f":-{name}", others))
    titled_sets = []
    for suffix, pattern in sets:
        title = " + ".join(names[index] for index in pattern)
        titled_sets.append((suffix, title, pattern))
    return titled_sets


def _make(spec: ModelSpec, columns: Columns, how: How, seed: int) -> "FusedClassifier":
    """Make the fused classifier of a model; the joined linear probe has a penalty for each modality."""
    estimator = spec.estimator(seed)
    if how == "concat" and spec.name == "linear":
        estimator = PenaltyPerModality()
    return FusedClassifier(estimator, columns, how=how)


@dataclass(eq=False, repr=False)
class FusedClassifier(MetaEstimatorMixin, LogitClassifier):
    """Classify clips by several modalities; a clip is scored by a model of the modalities that it has.

    Parameters
    ----------
    estimator : estimator
        Model of one modality, or of all that are joined. Fitted with movies it has ``held_out_``.
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
        features = np.asarray(X)
        movies = np.asarray(groups)
        self.classes_, labels = encode_labels(np.asarray(y), type(self).__name__)
        present = _present(features, self.columns)
        everything = tuple(range(len(self.columns)))
        # The empty set is that of clips without any modality: no model can score them.
        patterns = {everything, *map(_indices, present)} - {()}
        self.models_: dict[Pattern, _Joined] = {}
        for pattern in sorted(patterns, key=len):
            self.models_[pattern] = self._fitted_on(pattern, features, labels, movies)
        self.held_out_ = self._joined_held_out(present, labels, movies)
        self.threshold_ = self.held_out_.threshold()
        self.candidates_ = self.models_[everything].candidates
        self.n_features_in_ = features.shape[1]
        return self

    def _fitted_on(
        self, pattern: Pattern, features: NDArray[Any], labels: NDArray[Any], movies: NDArray[Any]
    ) -> "_Joined":
        """Fit the model of a set of modalities on all clips of X [N, D] that have the whole set."""
        has_set = _has_all(_present(features, self.columns), pattern)
        try:
            inner_folds(labels[has_set], movies[has_set])
        except ProtocolError as error:
            owned = "all its modalities" if len(self.columns) > 1 else "its modality"
            raise ValueError(f"too few clips have {owned}: {error}") from None
        parts = [features[has_set][:, self.columns[index]] for index in pattern]
        joined = _Joined(self.estimator, self.how)
        joined.fit(parts, labels[has_set], movies[has_set])
        return joined

    def _joined_held_out(
        self, present: NDArray[np.bool_], labels: NDArray[Any], movies: NDArray[Any]
    ) -> HeldOut:
        """Gather each clip's out-of-fold score from the model of exactly the modalities that it has.

        Parameters
        ----------
        present : ndarray of bool, shape [N, M]
        labels, movies : ndarray, shape [N]
        """
        n_clips = len(labels)
        scores = np.full(n_clips, np.nan)
        zeros = np.full(n_clips, np.nan)
        folds = np.full(n_clips, np.nan)
        for number, (pattern, joined) in enumerate(self.models_.items()):
            has_set = np.flatnonzero(_has_all(present, pattern))
            has_no_more = present[has_set].sum(axis=1) == len(pattern)
            rows = has_set[has_no_more]
            scores[rows] = joined.held_out.scores[has_no_more]
            zeros[rows] = joined.held_out.zeros[has_no_more]
            # Folds of two sets were scored by different models, so that they get different numbers.
            folds[rows] = joined.held_out.folds[has_no_more] + number * n_clips
        # A clip without any modality was scored by no model: it is put at the mean of the others.
        has_score = np.isfinite(scores)
        of_clips = np.stack([scores, zeros, folds])  # [3, N]
        means = of_clips[:, has_score].mean(axis=1)
        scores, zeros, folds = np.where(has_score, of_clips, means[:, np.newaxis])
        return HeldOut(scores, labels, movies, folds.astype(np.int64), zeros)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N] by the model of the modalities that it has; without any as the mean clip."""
        check_is_fitted(self)
        features = np.asarray(X)
        everything = tuple(range(len(self.columns)))
        scores = np.full(len(features), self.models_[everything].base)
        for pattern, rows in _by_pattern(_present(features, self.columns), self.models_):
            parts = [features[rows][:, self.columns[index]] for index in pattern]
            scores[rows] = self.models_[pattern].scores(parts)
        return scores

    def linear(self) -> "LinearFusion":
        """Return the same as sums of features, which a file can keep; its models are linear probes."""
        check_is_fitted(self)
        return LinearFusion(
            self.columns,
            {pattern: joined.linear() for pattern, joined in self.models_.items()},
            largest=self.how == "max",
        )


def has_modality(features: NDArray[Any], columns: slice) -> NDArray[np.bool_]:
    """Mark the clips [N] that have a modality: its vector, or at least one frame of it.

    Parameters
    ----------
    features : ndarray, shape [N, D] or [N, F, D]
        A missing vector is NaN.
    columns : slice
        The modality's columns.
    """
    is_finite: NDArray[np.bool_] = np.isfinite(features[..., columns]).all(axis=-1)
    if is_finite.ndim == 1:
        return is_finite
    return np.asarray(is_finite.any(axis=1))


def _present(features: NDArray[Any], columns: Columns) -> NDArray[np.bool_]:
    """Mark the modalities that each clip has [N, M]."""
    return np.stack([has_modality(features, modality) for modality in columns], axis=1)


def _has_all(present: NDArray[np.bool_], pattern: Pattern) -> NDArray[np.bool_]:
    """Mark the clips [N] that have all modalities of a set; `present` is [N, M]."""
    return np.asarray(present[:, list(pattern)].all(axis=1))


def _by_pattern(
    present: NDArray[np.bool_], fitted: Iterable[Pattern]
) -> Iterator[tuple[Pattern, NDArray[np.bool_]]]:
    """Yield the clips that have the same modalities, with the model that scores them.

    Parameters
    ----------
    present : ndarray of bool, shape [N, M]
        Modalities of each clip.
    fitted : iterable of tuple of int
        Sets of modalities that have a model.

    Yields
    ------
    pattern : tuple of int
        The largest set with a model among the clips' modalities; clips without such a set are not yielded.
    rows : ndarray of bool, shape [N]
        Marks the clips.
    """
    patterns = list(fitted)
    for presence in np.unique(present, axis=0):
        owned = set(_indices(presence))
        usable = [pattern for pattern in patterns if owned.issuperset(pattern)]
        if usable:
            yield max(usable, key=len), (present == presence).all(axis=1)


class _Joined:
    """The model of one set of modalities: one estimator of all (``concat``), or one for each modality.

    Attributes
    ----------
    base : float
        The score of a clip whose modalities are all at their mean over training clips.
    held_out : HeldOut
        Out-of-fold scores of the training clips.
    candidates : tuple of Candidate
        The weights that ``late`` chose; otherwise empty.
    """

    def __init__(self, estimator: Any, how: How) -> None:
        self._estimator = estimator
        self._how = how

    def fit(self, parts: list[NDArray[Any]], y: NDArray[Any], movies: NDArray[Any]) -> None:
        """Fit it on one array [N, D] for each modality."""
        estimator = self._estimator
        if isinstance(estimator, PenaltyPerModality):
            widths = tuple(part.shape[1] for part in parts)
            estimator = PenaltyPerModality(widths)
        self._n_parts = len(parts)
        inputs = self._inputs(parts)
        self._models = [clone(estimator).fit(features, y, groups=movies) for features in inputs]
        n_models = len(self._models)
        held_out = HeldOut.beside([_held_out(model) for model in self._models])
        mean_scores = [
            mean_score(model, features) for model, features in zip(self._models, inputs, strict=True)
        ]
        self._zeros = np.array(mean_scores)
        self._factors = np.ones(n_models)
        self.base = float(self._zeros.mean())
        self.candidates: tuple[Candidate, ...] = ()
        self.held_out = _held_out(self._models[0])
        if n_models == 1:
            return
        if self._how == "mean":
            self._factors /= n_models
        elif self._how == "late":
            self._factors, self.base = held_out.weights()
            self.candidates = (_candidate_of(self._factors),)
        # The mean score of training clips is the base of a sum; that of a largest logit is not known.
        zeros = None if self._how == "max" else np.full(len(y), self.base)
        self.held_out = HeldOut(self._join(held_out.levels), y, movies, self.held_out.folds, zeros)

    def scores(self, parts: list[NDArray[Any]]) -> NDArray[np.float64]:
        """Score clips [N], given one array [N, D] for each modality."""
        inputs = self._inputs(parts)
        if len(self._models) == 1:
            return scores_of(self._models[0], inputs[0])
        logits = [scores_of(model, features) for model, features in zip(self._models, inputs, strict=True)]
        return self._join(np.stack(logits, axis=1) - self._zeros)

    def _inputs(self, parts: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the features that each model reads: all modalities joined, or one modality each."""
        if self._how == "concat":
            return [np.concatenate(parts, axis=1)]
        return parts

    def linear(self) -> "LinearJoin":
        """Return it as sums of standardised features."""
        probes = [_linear_probe(model) for model in self._models]
        intercepts = np.array([probe.intercept for probe in probes])
        if self._how == "concat":
            factors = np.ones(self._n_parts)
            contribution_intercepts = np.zeros(self._n_parts)
            base = intercepts
        else:
            factors = self._factors
            contribution_intercepts = intercepts - self._zeros
            base = np.array([self.base])
        return LinearJoin(
            mean=np.concatenate([probe.mean for probe in probes]),
            scale=np.concatenate([probe.scale for probe in probes]),
            weights=np.concatenate([probe.weights for probe in probes]),
            factors=factors,
            intercepts=contribution_intercepts,
            base=base,
        )

    def _join(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Join logits [N, M], each less its mean on training clips, to one score a clip [N]."""
        contributions = levels * self._factors
        if self._how == "max":
            return np.asarray(self.base + contributions.max(axis=1))
        return np.asarray(self.base + contributions.sum(axis=1))


def _candidate_of(factors: NDArray[np.float64]) -> Candidate:
    """Name the weights of a late fusion; with one weight that is not 0, one modality decides alone."""
    n_used = np.count_nonzero(factors)
    kind = ALONE if n_used == 1 else "weights"
    weights = ", ".join(f"{weight:.3g}" for weight in factors)
    return Candidate(f"{kind} {weights}", math.nan, chosen=True)


@dataclass(eq=False, repr=False)
class PenaltyPerModality(LogitClassifier):
    """The linear probe with a penalty for each modality; the features are standardised one by one.

    Parameters
    ----------
    widths : tuple of int
        Number of features of each modality.

    Attributes
    ----------
    relative_ : tuple of float
        Inverse strengths of the modalities' penalties, as multiples of the first's.
    """

    widths: tuple[int, ...] = ()

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike) -> Self:
        """Choose the penalties by inner folds of movies, then fit all clips."""
        # Only the ratios of the penalties matter here: the selection tries strengths of all together.
        n_further = len(self.widths) - 1
        selections: dict[tuple[float, ...], GroupedSelection] = {}
        for further in product(RELATIVE, repeat=n_further):
            relative = (1.0, *further)
            weights = np.repeat(np.sqrt(relative), self.widths)
            weighing = FunctionTransformer(weigh, kw_args={"weights": weights})
            pipeline = make_pipeline(ClippedScaler(), weighing, RidgeLogistic())
            selections[relative] = GroupedSelection(pipeline, PENALTIES).fit(X, y, groups=groups)
        # Of equal losses min takes the first, as RELATIVE is in the order of preference.
        self.relative_ = min(selections, key=lambda relative: _least_loss(selections[relative]))
        best = selections[self.relative_]
        self.selection_ = best
        self.classes_ = best.classes_
        self.threshold_ = best.threshold_
        self.held_out_ = best.held_out_
        self.candidates_ = best.candidates_
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N]."""
        check_is_fitted(self)
        return np.asarray(self.selection_.decision_function(X), np.float64)


def weigh(X: ArrayLike, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply standardised features [N, D] by weights [D], which makes their penalties differ."""
    return np.asarray(X) * weights


def _least_loss(selection: GroupedSelection) -> float:
    """Return the lowest inner loss of a selection's candidates."""
    return min(candidate.inner_loss for candidate in selection.candidates_)


class _Probe(NamedTuple):
    """A fitted linear probe: mean, deviation and weight of each feature [D], and the intercept."""

    mean: NDArray[Any]
    scale: NDArray[Any]
    weights: NDArray[Any]
    intercept: float


def _linear_probe(model: Any) -> _Probe:
    """Read the numbers of a fitted linear probe."""
    selection = model.selection_ if isinstance(model, PenaltyPerModality) else model
    steps = [step for _, step in selection.estimator_.steps]
    scaler = steps[0]
    head = steps[-1]
    weights = head.coef_[0]
    if len(steps) == 3:
        # Between the two, `weigh` multiplies features.
        weights = weights * steps[1].kw_args["weights"]
    return _Probe(scaler.mean_, scaler.scale_, weights, float(head.intercept_[0]))


class LinearJoin(NamedTuple):
    """A linear fused model of one set of modalities.

    Attributes
    ----------
    mean, scale, weights : ndarray, shape [D]
        Mean, deviation and weight of each feature; the features of the modalities follow each other.
    factors, intercepts : ndarray, shape [M]
        A modality's contribution is its factor times the sum of its weighted features and its intercept. It
        is above 0 where its model scores a clip higher than the mean training clip.
    base : ndarray, shape [1]
        The score to which the contributions are added.
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
        """Decompose scores into a base and what each modality adds to it.

        Returns
        -------
        base : ndarray, shape [N]
        parts : ndarray, shape [N, M]
            The contribution of each modality; NaN of one that a clip lacks.
        """
        features = np.asarray(X)
        everything = tuple(range(len(self.columns)))
        base = np.repeat(self.joins[everything].base, len(features))
        parts = np.full((len(features), len(self.columns)), np.nan)
        for pattern, rows in _by_pattern(_present(features, self.columns), self.joins):
            join = self.joins[pattern]
            base[rows] = join.base
            start = 0
            for index, factor, intercept in zip(pattern, join.factors, join.intercepts, strict=True):
                values = features[rows][:, self.columns[index]]
                stop = start + values.shape[1]
                standard = standardise(values, join.mean[start:stop], join.scale[start:stop], CLIP)
                parts[rows, index] = factor * (standard @ join.weights[start:stop] + intercept)
                start = stop
        return base, parts

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N] by the model of the modalities that it has; one that has none has the base."""
        base, parts = self.contributions(X)
        has_part = np.isfinite(parts)
        joined = np.nansum(parts, axis=1)
        if self.largest:
            joined = np.where(has_part, parts, -np.inf).max(axis=1)
        return np.asarray(base + np.where(has_part.any(axis=1), joined, 0.0))


def _held_out(model: Any) -> HeldOut:
    """Return the out-of-fold scores of a fitted model."""
    if not hasattr(model, "held_out_"):
        raise ValueError(f"{type(model).__name__} keeps no out-of-fold scores, which fusion needs")
    scores: HeldOut = model.held_out_
    return scores


def _indices(presence: NDArray[np.bool_]) -> Pattern:
    """Return the indices of the modalities that are marked [M]."""
    return tuple(np.flatnonzero(presence).tolist())
