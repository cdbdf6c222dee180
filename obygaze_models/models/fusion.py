"""Fuse modalities: one model of several backbones' features, and one for every set of them that clips have.

The features of a clip are one row of X [N, D] in which every modality has its columns; a modality that a clip
lacks is NaN there. Nothing is put in its place: clips are scored by a model of the modalities that they have,
which was trained on the clips that have these.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from obygaze_features.arguments import checked
from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import ModelError, ProtocolError
from obygaze_models.models.binary import LogitClassifier, encode_labels
from obygaze_models.models.joined_model import WAYS_TO_FUSE, How, JoinedModel
from obygaze_models.models.linear_fusion import LinearFusion
from obygaze_models.models.modality_penalties import PenaltyPerModality
from obygaze_models.models.modality_sets import (
    Columns,
    Pattern,
    has_all,
    match_models,
    pattern_of,
    present_modalities,
)
from obygaze_models.models.registry import find_model
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.held_out import HeldOut
from obygaze_models.protocol.selection import inner_folds


@checked
def fused(models: Sequence[str | ModelSpec], data: Dataset, how: How) -> list[ModelSpec]:
    """Make a fused model of each given model, and the models that show how much each modality contributes.

    Parameters
    ----------
    models : sequence of str or ModelSpec
        Models that read vectors, or baselines.
    data : Dataset
        With the features of several modalities.
    how : {"concat", "late", "max", "mean"}
        As `FusedClassifier` takes it.

    Returns
    -------
    list of ModelSpec
        For every model: one of all modalities (``NAME``), one of each modality alone (``NAME:MODALITY``) and,
        with three or more modalities, one of all but one, for each (``NAME:-MODALITY``). Baselines are
        returned as they are.

    Raises
    ------
    ModelError
        There are fewer than two modalities, or two have the same name; or a model does not read vectors.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> from obygaze_models.dataset import Modality
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> # Two modalities, as load_dataset([SEEN, HEARD], manifest) gives them.
    >>> seen = Modality("seen", data.store, "seen", "pooled", "as stored", start=0, stop=4, missing=0)
    >>> heard = Modality("heard", data.store, "heard", "pooled", "as stored", start=4, stop=8, missing=0)
    >>> data = replace(data, modalities=(seen, heard))
    >>> [spec.name for spec in om.fused(["linear"], data, "late")]
    ['linear', 'linear:seen', 'linear:heard']
    """
    sets = sets_of_modalities(data)
    if how not in WAYS_TO_FUSE:
        raise ModelError(f"models are fused by one of {', '.join(WAYS_TO_FUSE)}, not by {how!r}")

    columns = tuple(slice(modality.start, modality.stop) for modality in data.modalities)
    fused_specs = []
    for model in models:
        spec = model if isinstance(model, ModelSpec) else find_model(model)
        if spec.looks_at_features:
            _refuse_other_inputs(spec)
            fused_specs += [_fused_spec(spec, modality_set, columns, how) for modality_set in sets]
        else:
            fused_specs.append(spec)
    return fused_specs


def _refuse_other_inputs(spec: ModelSpec) -> None:
    """Raise if a model reads anything but one vector a clip: only models of vectors alone can be fused.

    Such are models of frames, and models that are also trained on which concepts are present in clips.
    """
    if spec.reads != "pooled":
        raise ModelError(f"model {spec.name} reads {spec.reads}: models of vectors alone are fused")
    takes_concepts = "present" in spec.requests()
    if takes_concepts:
        raise ModelError(f"model {spec.name} reads concepts: models of vectors alone are fused")


class ModalitySet(NamedTuple):
    """A set of modalities for which models are made, to be compared with those of other sets.

    Attributes
    ----------
    suffix : str
        Ends the names of the set's models; empty for the set of all modalities.
    title : str
        The names of the set's modalities.
    pattern : tuple of int
        Indices of these modalities in the dataset.
    """

    suffix: str
    title: str
    pattern: Pattern


def sets_of_modalities(data: Dataset) -> list[ModalitySet]:
    """List the sets of modalities to compare: all, each alone and, if there are three or more, all but one.

    Raises
    ------
    ModelError
        There are fewer than two modalities, or two have the same name.
    """
    names = [modality.name for modality in data.modalities]
    if len(names) < 2 or len(set(names)) < len(names):
        listed = ", ".join(names) or "none"
        raise ModelError(f"to fuse takes two modalities of different names; found {listed}")

    def make_set(suffix: str, pattern: Pattern) -> ModalitySet:
        """Make a set of the modalities with these indices; the names of its models end with `suffix`."""
        title = " + ".join(names[index] for index in pattern)
        return ModalitySet(suffix, title, pattern)

    indices = range(len(names))
    sets = [make_set("", tuple(indices))]
    for index, name in enumerate(names):
        sets.append(make_set(f":{name}", (index,)))
    # All but one; with two modalities, that is the other alone, which is listed already.
    if len(names) > 2:
        for left_out, name in enumerate(names):
            others = tuple(index for index in indices if index != left_out)
            sets.append(make_set(f":-{name}", others))
    return sets


def _fused_spec(spec: ModelSpec, modality_set: ModalitySet, columns: Columns, how: How) -> ModelSpec:
    """Make the spec of a model that reads a set of modalities, from that of a model of vectors.

    Parameters
    ----------
    spec : ModelSpec
        The model of vectors.
    modality_set : ModalitySet
        The set: indices of its modalities, and what is added to the model's name and title.
    columns : tuple of slice
        Columns of all modalities of the dataset.
    how : {"concat", "late", "max", "mean"}
        How the modalities are fused.
    """
    columns_of_set = tuple(columns[index] for index in modality_set.pattern)
    title = f"{spec.title}, {modality_set.title}"
    if len(columns_of_set) > 1:
        title += f" ({how})"
    return replace(
        spec,
        name=f"{spec.name}{modality_set.suffix}",
        title=title,
        make=partial(_make_fused_classifier, spec, columns_of_set, how),
        # The fused classifier chooses parameters itself, by inner folds of movies: it needs the movies, even
        # if a single model of `spec` does not.
        choose=None,
        uses=tuple(sorted({*spec.requests(), "groups"})),
        # `spec` is compared with models of one modality, which these are not.
        compared_with=(),
    )


def _make_fused_classifier(spec: ModelSpec, columns: Columns, how: How, seed: int) -> "FusedClassifier":
    """Make the unfitted fused classifier of a model of vectors for a seed.

    The zoo's linear probe on joined features is replaced by one that has a penalty for each modality. Other
    models are used as they are.
    """
    if how == "concat" and spec.name == "linear":
        return FusedClassifier(PenaltyPerModality(), columns, how=how)
    return FusedClassifier(spec.estimator(seed), columns, how=how)


@dataclass(eq=False, repr=False)
class FusedClassifier(MetaEstimatorMixin, LogitClassifier):
    """Classify clips by several modalities; a clip is scored by a model of the modalities that it has.

    Parameters
    ----------
    estimator : estimator
        Model of one modality or, with ``concat``, of the joined ones. When it is fitted with movies, it must
        set ``held_out_``.
    columns : tuple of slice
        The modalities' columns in X.
    how : {"concat", "late", "max", "mean"}
        ``concat`` joins features. The others train a model for each modality, and combine the models' logits,
        each less its mean on training clips: ``late`` by a sum weighted by `HeldOut.fit_weights`, ``mean`` by
        their mean, and ``max`` by the largest.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
    models_ : dict
        Set of modalities -> its `JoinedModel`; the set of all modalities is always included.
    threshold_ : float
        A clip is called positive if its score is at least this.
    held_out_ : HeldOut
        The out-of-fold logit of each training clip, by the model of the modalities that it has. A clip
        without any modality has the mean of the others.
    candidates_ : tuple of Candidate
        With ``late``, how the logits of all modalities are joined: their weights, or the better one alone.
    """

    estimator: Any
    columns: Columns
    _: KW_ONLY
    how: How = "concat"

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike) -> Self:
        """Fit a model for every set of modalities that some clips have.

        Parameters
        ----------
        X : array-like, shape [N, D]
            Columns of a modality that a clip lacks are NaN.
        y, groups : array-like, shape [N]
            The label and the movie of each clip.

        Raises
        ------
        ValueError
            The clips that have all modalities are too few for inner folds.
        """
        features = np.asarray(X)
        movies = np.asarray(groups)
        self.classes_, labels = encode_labels(np.asarray(y), type(self).__name__)
        present = present_modalities(features, self.columns)  # [N, M]

        # The sets of modalities that some clip has, and the set of all modalities. A set is called a pattern,
        # the tuple of its modalities' indices: (0, 2) for the first and the third.
        patterns = {pattern_of(modalities_of_clip) for modalities_of_clip in present}
        patterns.add(self._all_modalities)
        # Clips without any modality have no features to fit a model on.
        patterns.discard(())

        self.models_: dict[Pattern, JoinedModel] = {}
        for pattern in sorted(patterns, key=len):
            self.models_[pattern] = self._fit_set(pattern, features, labels, movies)

        # Each clip's held-out score, by the model of the modalities that it has; what was chosen from is told
        # of the model of all modalities alone.
        self.held_out_ = self._gather_held_out(present, labels, movies)
        self.threshold_ = self.held_out_.threshold()
        self.candidates_ = self.models_[self._all_modalities].candidates
        self.n_features_in_ = features.shape[1]
        return self

    @property
    def _all_modalities(self) -> Pattern:
        """The set of all modalities."""
        return tuple(range(len(self.columns)))

    def _fit_set(
        self, pattern: Pattern, features: NDArray[Any], labels: NDArray[Any], movies: NDArray[Any]
    ) -> JoinedModel:
        """Fit the model of a set of modalities on all clips that have at least these modalities.

        `pattern` are the modalities' indices. Features [N, D], labels and movies [N] are of all clips.
        """
        is_used = has_all(present_modalities(features, self.columns), pattern)  # [N]
        self._refuse_too_few(labels[is_used], movies[is_used])
        features_of_modalities = [features[is_used][:, self.columns[index]] for index in pattern]
        return JoinedModel.fit(
            self.estimator, self.how, features_of_modalities, labels[is_used], movies[is_used]
        )

    def _refuse_too_few(self, labels: NDArray[Any], movies: NDArray[Any]) -> None:
        """Raise if the clips that have a set of modalities are too few to be divided into inner folds.

        `labels` and `movies` are those of these clips.
        """
        try:
            inner_folds(labels, movies)
        except ProtocolError as error:
            required = "all its modalities" if len(self.columns) > 1 else "its modality"
            raise ValueError(f"too few clips have {required}: {error}") from None

    def _gather_held_out(
        self, present: NDArray[np.bool_], labels: NDArray[Any], movies: NDArray[Any]
    ) -> HeldOut:
        """Collect each training clip's out-of-fold score, by the model of exactly the modalities that it has.

        There is a model for each combination of modalities (a pattern), such as picture, sound, and both. It
        was fitted on all clips that have these, so that a clip with picture and sound has a score of each of
        the three. Its score by the model of both is taken: by this one a new clip like it would be scored.

        Parameters
        ----------
        present : ndarray of bool, shape [N, M]
            The modalities of each clip.
        labels, movies : ndarray, shape [N]
        """
        n_clips = len(labels)
        n_modalities_of_clip = present.sum(axis=1)

        # NaN for clips without any modality, which no model scores. Folds are floats for that reason.
        scores = np.full(n_clips, np.nan)
        training_means = np.full(n_clips, np.nan)
        folds = np.full(n_clips, np.nan)
        for model_index, (pattern, model_of_pattern) in enumerate(self.models_.items()):
            # The model was fitted on the clips that have at least its modalities. Its held-out scores are of
            # these clips, in order.
            clips_of_model = np.flatnonzero(has_all(present, pattern))
            has_no_other = n_modalities_of_clip[clips_of_model] == len(pattern)
            clips = clips_of_model[has_no_other]
            held_out = model_of_pattern.held_out
            scores[clips] = held_out.scores[has_no_other]
            training_means[clips] = held_out.training_means[has_no_other]

            # Scores of one fold are compared with each other, and those of different models cannot be. So the
            # folds of each model are numbered from a number of its own on: model 0 from 0, model 1 from
            # n_clips. A model has fewer folds than there are clips, so that no number stands twice.
            first_fold = model_index * n_clips
            folds[clips] = first_fold + held_out.folds[has_no_other]

        # `HeldOut` takes no NaN: clips without any modality get the means of the others' scores. A mean of
        # their fold numbers means nothing, but some fold must stand there.
        scores, training_means, folds = _fill_with_means(np.stack([scores, training_means, folds]))
        return HeldOut(scores, labels, movies, folds.astype(np.int64), training_means)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N] of X [N, D] by the model of the modalities that it has.

        If there is no model of just these modalities, the model of the largest part of them scores the clip.
        A clip without any modality gets the mean score.
        """
        check_is_fitted(self)
        features = np.asarray(X)
        # The base of a joined model is its mean score.
        mean_score = self.models_[self._all_modalities].base
        scores = np.full(len(features), mean_score)
        for pattern, rows in match_models(present_modalities(features, self.columns), self.models_):
            features_of_modalities = [features[rows][:, self.columns[index]] for index in pattern]
            scores[rows] = self.models_[pattern].scores(features_of_modalities)
        return scores

    def linear(self) -> LinearFusion:
        """Convert the fitted model to the weights of its features, which a file can store.

        The model of each set of modalities must be a linear probe.
        """
        check_is_fitted(self)
        return LinearFusion(
            columns=self.columns,
            joins={pattern: joined.linear() for pattern, joined in self.models_.items()},
            fused_by_max=self.how == "max",
        )


def _fill_with_means(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replace the NaN of each row of numbers [R, N] by the mean of the row's other numbers.

    The same columns are NaN in all rows.
    """
    is_number = np.isfinite(numbers[0])
    means = numbers[:, is_number].mean(axis=1)
    return np.where(is_number, numbers, means[:, np.newaxis])
