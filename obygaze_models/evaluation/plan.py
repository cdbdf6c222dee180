"""Plan an evaluation: what is trained, what is tested, and in which folds.

Everything that can be refused is refused here, before a model is trained.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.text import counted
from obygaze_models.dataset.dataset import Dataset, refuse_labels
from obygaze_models.errors import ConceptError, ProtocolError
from obygaze_models.evaluation.experts import Experts, LabelPlan, Tested, plan_labels, variants
from obygaze_models.evaluation.run import SeededFold
from obygaze_models.models.binary import Imbalance
from obygaze_models.models.registry import models_for
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.folds import GAP, FoldTable, Split, leave_movies_out, scene_blocks, splits
from obygaze_models.protocol.targets import NOT_ASKED, Target, choose_targets

Codes = NDArray[np.int64]


class Variant(NamedTuple):
    """A model, and the labels that it is trained on.

    Attributes
    ----------
    labels : str
        Key of the labels in `LabelPlan.training_labels`, which is the suffix of the model's name.
    spec : ModelSpec
    """

    labels: str
    spec: ModelSpec


@dataclass(frozen=True, eq=False)
class Plan:
    """What an evaluation does.

    Attributes
    ----------
    target : Target
        The target that models learn.
    labels : LabelPlan
        Labels to train on and to test on, as annotators gave them.
    training_labels : dict of str to ndarray
        Suffix of the models' names -> one label of each clip [N]: the first if a clip has several.
    tests : list of Tested
    folds : list of SeededFold
        Each fold under each seed.
    concepts : dict of str to list of str
        Name of a fold -> concepts that can be learnt from its training side.
    variants : list of Variant
        The models, one for each set of labels.
    models_left_out : dict of str to str
        Models that can't be trained here -> why.
    seeds : range
    n_seen_scores : int
        Number of clips that are not tested because annotators saw a model's score when they judged them.
    """

    target: Target
    labels: LabelPlan
    training_labels: Mapping[str, Codes]
    tests: Sequence[Tested]
    folds: Sequence[SeededFold]
    concepts: Mapping[str, Sequence[str]]
    variants: Sequence[Variant]
    models_left_out: Mapping[str, str]
    seeds: range
    n_seen_scores: int


def make_plan(
    data: Dataset,
    models: str | Mapping[str, Any] | Sequence[str | ModelSpec] | None,
    task: str | Target,
    test: str | Target | Sequence[str | Target] | None,
    *,
    seeds: range,
    seen: bool,
    n_folds: int | None,
    imbalance: Imbalance,
    test_seen_scores: bool,
    experts: Experts | None,
) -> Plan:
    """Plan an evaluation: targets, labels, folds, concepts and models, checked before any training.

    The arguments are those of `evaluate`.

    Raises
    ------
    ProtocolError, ModelError, ConceptError
        See `evaluate`.
    """
    target = _find_target(task, data)
    tested_targets = _tested_targets(test, target, data)
    for tested in tested_targets:
        _refuse_incomparable(target, tested)
    named_models = (models,) if isinstance(models, str) else models
    specs = models_for(target.kind, named_models, imbalance=imbalance)
    label_plan = plan_labels(data, target, tested_targets, experts)
    tests = label_plan.tests
    n_seen_scores = 0
    if not test_seen_scores:
        tests, n_seen_scores = _without_seen_scores(data, label_plan.tests)
    training_labels = {suffix: _first_label(labels) for suffix, labels in label_plan.training_labels.items()}
    _check_classes(data, target, training_labels, tests)
    folds = list(_make_folds(data, training_labels, tests, seeds, seen=seen, n_folds=n_folds))
    concepts = {fold.name: varying(data, fold.context_rows) for fold in folds}
    specs, models_left_out = _with_concepts(specs, concepts, explicit=models is not None)
    return Plan(
        target=target,
        labels=label_plan,
        training_labels=training_labels,
        tests=tests,
        folds=folds,
        concepts=concepts,
        variants=[Variant(labels, spec) for labels, spec in variants(specs, label_plan, data)],
        models_left_out=models_left_out,
        seeds=seeds,
        n_seen_scores=n_seen_scores,
    )


def _find_target(task: str | Target, data: Dataset) -> Target:
    """Find a target by its name, unless it is given as an object; "" is the codebook's first task."""
    if isinstance(task, Target):
        return task
    return choose_targets(data.codebook, task or None, None)[0]


def _tested_targets(
    test: str | Target | Sequence[str | Target] | None, trained: Target, data: Dataset
) -> list[Target]:
    """List the targets to test on; by default the one that models are trained on."""
    if isinstance(test, str | Target):
        return [_find_target(test, data)]
    if not test:
        return [trained]
    return [_find_target(name, data) for name in test]


def _refuse_incomparable(trained: Target, tested: Target) -> None:
    """Raise if models of one target cannot be tested on another: other classes, or classes exchanged."""
    is_same_kind = (tested.kind, tested.n_classes, tested.scale) == (
        trained.kind,
        trained.n_classes,
        trained.scale,
    )
    if not is_same_kind:
        raise ProtocolError(
            f"a model trained on {trained.name} ({trained.kind}) can't be tested on {tested.name} "
            f"({tested.kind})"
        )
    if trained.kind != "levels":
        return
    became_positive = set(trained.classes[0]) & set(tested.classes[-1])
    became_negative = set(trained.classes[1]) & set(tested.classes[0])
    exchanged = became_positive | became_negative
    if exchanged:
        raise ProtocolError(
            f"{min(exchanged)!r} is on one side of {trained.name}, which is trained, and on the other of "
            f"{tested.name}, which is tested: the test would be upside down"
        )


def _first_label(labels: Sequence[Codes]) -> Codes:
    """Merge several arrays of labels [N]: a clip gets the first label that it has, or -1 if it has none."""
    has_label = [codes != NOT_ASKED for codes in labels]
    return np.select(has_label, labels, NOT_ASKED)


def _without_seen_scores(data: Dataset, tests: list[Tested]) -> tuple[list[Tested], int]:
    """Remove from all tests the clips that were judged while a model's score was shown.

    Returns
    -------
    tests : list of Tested
    n_left_out : int
        Number of clips removed from some test.
    """
    seen_score = data.labels.seen_score
    if seen_score is None:
        return tests, 0
    is_tested = np.any([test.codes != NOT_ASKED for test in tests], axis=0)
    without = [test._replace(codes=np.where(seen_score, NOT_ASKED, test.codes)) for test in tests]
    return without, int((seen_score & is_tested).sum())


# --- folds
# ---------------------------------------------------------------------------


def _make_folds(
    data: Dataset,
    training_labels: Mapping[str, Codes],
    tests: Sequence[Tested],
    seeds: Sequence[int],
    *,
    seen: bool,
    n_folds: int | None,
) -> Iterator[SeededFold]:
    """Divide the clips into folds, and yield every fold with every seed.

    Parameters
    ----------
    data : Dataset
    training_labels : mapping of str to ndarray
        Sets of training labels [N], by the suffix of the models' names.
    tests : sequence of Tested
    seeds : sequence of int
    seen : bool
        Whether folds are blocks of scenes, instead of whole movies.
    n_folds : int, optional
        Number of folds of whole movies; by default one per movie.
    """
    is_learnable = np.any([codes != NOT_ASKED for codes in training_labels.values()], axis=0)
    is_testable = np.any([test.codes != NOT_ASKED for test in tests], axis=0)
    used = np.flatnonzero(is_learnable | is_testable)
    table = _fold_table(data, used, seen=seen, n_folds=n_folds)
    folds = []
    for split_of_used in splits(table, is_learnable[used], is_testable[used]):
        # From indices among the clips that are used to rows of the dataset.
        split = Split(split_of_used.fold, used[split_of_used.train], used[split_of_used.test])
        folds.append(_check_fold(data, split, training_labels, seen=seen))
    for seed in seeds:
        for fold in folds:
            yield SeededFold(fold.name, fold.split, fold.context_rows, seed)


def _fold_table(data: Dataset, used: NDArray[np.intp], *, seen: bool, n_folds: int | None) -> FoldTable:
    """Assign the clips `used` to folds: of whole movies, or of blocks of scenes if movies may be `seen`."""
    clip_ids = tuple(data.clip_ids[used].tolist())
    movies = tuple(data.movies[used].tolist())
    if seen:
        return scene_blocks(clip_ids, movies)
    return leave_movies_out(clip_ids, movies, n_folds)


class _Fold(NamedTuple):
    """A fold before it has a seed; the attributes are those of `SeededFold`."""

    name: str
    split: Split
    context_rows: NDArray[np.intp]


def _check_fold(data: Dataset, split: Split, training_labels: Mapping[str, Codes], *, seen: bool) -> _Fold:
    """Check that a fold's training side has both classes; name the fold and list its context rows.

    Raises
    ------
    ProtocolError
        Its training side lacks a class of some set of labels in `training_labels`.
    """
    tested_movies = np.unique(data.movies[split.test])
    if seen:
        name = f"block {split.fold}"
        left_out = name
    elif len(tested_movies) > 1:
        name = f"fold {split.fold}"
        left_out = name
    else:
        name = str(tested_movies[0])
        left_out = f"movie {name}"
    for suffix, codes in training_labels.items():
        _check_learnable(codes[split.train], left_out, suffix, seen=seen)
    if seen:
        return _Fold(name, split, split.train)
    in_training = np.isin(data.movies, np.unique(data.movies[split.train]))
    return _Fold(name, split, np.flatnonzero(in_training))


def _check_learnable(codes: NDArray[np.int64], left_out: str, suffix: str, *, seen: bool) -> None:
    """Raise if a fold has no training clips, or training clips of one class only.

    Parameters
    ----------
    codes : ndarray of int, shape [training clips]
        Labels of the training clips.
    left_out : str
        What the fold tests, as a message names it.
    suffix : str
        Suffix of the names of the models that are trained on these labels.
    seen : bool
        Whether folds are blocks of scenes.
    """
    missing = _missing_class(codes)
    if not missing:
        return
    advice = "both classes must be in at least 3 movies"
    if seen:
        left_out += f" and the {GAP} clips on either side of it in each movie"
        advice = "movies are too short for blocks; leave whole movies out instead"
    raise ProtocolError(
        f"without {left_out} there is {missing}{_by_annotator(suffix)} to learn from: {advice}"
    )


def _missing_class(codes: NDArray[np.int64]) -> str:
    """Return what training clips with these labels lack, for a message; "" if they lack nothing.

    Labels of two classes need both of them; ordered levels need one clip.
    """
    if not len(codes):
        return "no clip"
    has_two_classes = codes.max() <= 1
    if has_two_classes and not (codes == 1).any():
        return "no positive clip"
    if has_two_classes and not (codes == 0).any():
        return "no negative clip"
    return ""


def _check_classes(
    data: Dataset,
    train: Target,
    training_labels: Mapping[str, NDArray[np.int64]],
    tests: Sequence[Tested],
) -> None:
    """Raise if training or test labels lack a class, or if the dataset's features give them away.

    Parameters
    ----------
    data : Dataset
    train : Target
        The target that models learn.
    training_labels : mapping of str to ndarray
        Sets of training labels [N], by the suffix of the models' names.
    tests : sequence of Tested
    """
    sides = {f"trained on{_by_annotator(suffix)}": codes for suffix, codes in training_labels.items()}
    for test in tests:
        sides[f"tested on ({test.target.name})"] = test.codes
    if train.kind == "ordinal":
        # Only the lowest and the highest level need clips.
        lowest = 0
        highest = train.n_classes - 1
        needed = {lowest: train.classes[lowest][0], highest: train.classes[highest][0]}
    else:
        needed = {0: "negative", 1: "positive"}
    for side, codes in sides.items():
        has_label = codes != NOT_ASKED
        for rank, title in needed.items():
            if not (codes == rank).any():
                raise ProtocolError(
                    f"no {title} clip to be {side}: {counted(int(has_label.sum()), 'clip')} with features, "
                    f"of the levels {', '.join(np.unique(data.levels[has_label])) or 'none'}"
                )
    labels = {f"{train.name}{suffix}": codes for suffix, codes in training_labels.items()}
    for test in tests:
        labels[test.target.name] = test.codes
    refuse_labels(data, labels)


def _by_annotator(suffix: str) -> str:
    """Return " by NAME", for messages, from a suffix "@NAME" of models' names; "" from an empty suffix."""
    return f" by {suffix.removeprefix('@')}" if suffix else ""


# --- concepts
# ---------------------------------------------------------------------------


@checked
def varying(data: Dataset, rows: NDArray[np.intp]) -> list[str]:
    """List the concepts that can be learnt from the clips `rows`, also in inner folds.

    These are the concepts that vary whichever movie is left out: some clips of the other movies have them,
    and some do not.
    """
    _, movie = np.unique(data.movies[rows], return_inverse=True)
    present = data.labels.present[rows]  # [clips, concepts]
    n_clips = np.bincount(movie)
    n_present = np.empty((present.shape[1], len(n_clips)))  # [concepts, movies]
    for concept, column in enumerate(present.T):
        n_present[concept] = np.bincount(movie, weights=column, minlength=len(n_clips))
    # Over all movies but one, [concepts, movies] and [movies].
    n_present_in_others = n_present.sum(axis=1, keepdims=True) - n_present
    n_clips_of_others = n_clips.sum() - n_clips
    varies = ((n_present_in_others > 0) & (n_present_in_others < n_clips_of_others)).all(axis=1)
    return [name for name, is_learnable in zip(data.labels.concepts, varies, strict=True) if is_learnable]


def _with_concepts(
    specs: Sequence[ModelSpec], concepts: Mapping[str, list[str]], *, explicit: bool
) -> tuple[list[ModelSpec], dict[str, str]]:
    """Leave out the models that read concepts if no concept can be learnt in some fold.

    Parameters
    ----------
    specs : sequence of ModelSpec
    concepts : mapping of str to list of str
        Name of a fold -> the concepts that can be learnt in it.
    explicit : bool
        Whether the user named the models.

    Returns
    -------
    specs : list of ModelSpec
        The models that are kept.
    left_out : dict of str to str
        Name of a model that is left out -> the reason.

    Raises
    ------
    ConceptError
        Models that the user named would be left out.
    """
    concept_models = [spec for spec in specs if "present" in spec.requests()]
    folds_without = [name for name, learnable in concepts.items() if not learnable]
    if not concept_models or not folds_without:
        return list(specs), {}
    reason = f"no concept is marked in enough movies to be learnt without {folds_without[0]}"
    if explicit:
        raise ConceptError(f"model {concept_models[0].name}: {reason}")
    others = [spec for spec in specs if spec not in concept_models]
    return others, {spec.name: reason for spec in concept_models}
