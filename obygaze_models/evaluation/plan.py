"""Plan an evaluation: what is trained, what is tested, and in which folds.

Everything that can be refused is refused here, before a model is trained.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.text import counted
from obygaze_models.dataset.dataset import Dataset, refuse_labels
from obygaze_models.errors import ConceptError, ProtocolError
from obygaze_models.evaluation.experts import Experts, LabelPlan, Tested, Variant, make_variants, plan_labels
from obygaze_models.evaluation.run import SeededFold
from obygaze_models.models.binary import Imbalance
from obygaze_models.models.registry import models_for
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.folds import GAP, FoldTable, Split, leave_movies_out, scene_blocks, splits
from obygaze_models.protocol.selection import inner_folds
from obygaze_models.protocol.targets import NOT_ASKED, Target, choose_targets, without_seen_scores

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Rows = NDArray[np.intp]


_CLASSES = {0: "negative", 1: "positive"}
"""Labels of two classes, and what they are called."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What an evaluation does.

    Attributes
    ----------
    target : Target
        The target that models learn.
    label_plan : LabelPlan
        Labels to train on and to test on, as annotators gave them.
    first_labels : dict of str to ndarray
        Suffix of the models' names -> one training label of each clip [N]: the first if a clip has several.
    tests : list of Tested
    folds : list of SeededFold
        Each fold under each seed.
    concepts : dict of str to list of str
        Name of a fold -> concepts that can be learnt from its training side.
    variants : list of Variant
        The models, one for each set of labels.
    models_left_out : dict of str to str
        Models that can't be trained here, or of which annotator's labels none can be -> why.
    tests_left_out : dict of str to str
        Tests of annotators' labels that lack a class -> which one.
    seeds : range
    is_in_sight : ndarray of bool, shape [N]
        Marks the clips that some test leaves out because annotators saw a score when they judged them.
    """

    target: Target
    label_plan: LabelPlan
    first_labels: Mapping[str, Ints]
    tests: Sequence[Tested]
    folds: Sequence[SeededFold]
    concepts: Mapping[str, Sequence[str]]
    variants: Sequence[Variant]
    models_left_out: Mapping[str, str]
    tests_left_out: Mapping[str, str]
    seeds: range
    is_in_sight: Bools


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
    _refuse_other_seeds(seeds)

    # --- targets and models
    target = _find_target(task, data)
    tested_targets = _tested_targets(test, target, data)
    for tested in tested_targets:
        _refuse_incomparable(target, tested)
    named_models = (models,) if isinstance(models, str) else models
    specs = models_for(target.kind, named_models, imbalance=imbalance)

    # --- labels: those to train on, by the suffix of the models that learn them, and those to test on
    label_plan = plan_labels(data, target, tested_targets, experts, test_seen_scores=test_seen_scores)
    usable = _usable_labels(data, target, label_plan, test_seen_scores=test_seen_scores)
    first_labels = usable.first_labels
    tests = usable.tests
    _refuse_labels_among_features(data, target, first_labels, tests)

    # --- folds; an annotator's labels that cannot be learnt in some fold are left out of all folds, which are
    # then made anew, as other clips are left to train on
    folds = _make_folds(data, first_labels, tests, seen=seen, n_folds=n_folds)
    needed = _needed_classes(target)
    why_not_learnt = _labels_not_learnable(folds, first_labels, data.movies, needed, seen=seen)
    if why_not_learnt:
        first_labels = _without_unlearnable(first_labels, why_not_learnt)
        folds = _make_folds(data, first_labels, tests, seen=seen, n_folds=n_folds)
    label_plan = _with_training_labels_of(label_plan, suffixes=first_labels.keys())

    # --- concepts, and the models that can be trained
    concepts = {fold.name: varying(data, fold.context_rows) for fold in folds}
    specs, models_left_out = _drop_concept_models(specs, concepts, named_by_user=models is not None)
    for suffix, reason in {**usable.why_not_trained, **why_not_learnt}.items():
        models_left_out[f"models trained{_by_annotator(suffix, 'on')}"] = reason
    return Plan(
        target=target,
        label_plan=label_plan,
        first_labels=first_labels,
        tests=tests,
        folds=_with_seeds(folds, seeds),
        concepts=concepts,
        variants=list(make_variants(specs, label_plan, data)),
        models_left_out=models_left_out,
        tests_left_out=usable.tests_left_out,
        seeds=seeds,
        is_in_sight=usable.is_in_sight,
    )


def _refuse_other_seeds(seeds: range) -> None:
    """Raise if there is no seed, or a negative one, with which no random numbers can be drawn."""
    if not seeds:
        raise ProtocolError("n_seeds: expected 1 or more")
    if seeds.start < 0:
        raise ProtocolError(f"seed {seeds.start}: expected 0 or more")


class _UsableLabels(NamedTuple):
    """The labels by which models can be trained and tested, as they have all classes that are needed.

    Attributes
    ----------
    first_labels : dict of str to ndarray
        Suffix of the models' names -> one training label of each clip [N].
    tests : list of Tested
    why_not_trained : dict of str to str
        Suffix of the models' names -> the class that these training labels lack, so that they are left out.
    tests_left_out : dict of str to str
        Name of a test's target -> the class that its labels lack, so that it is left out.
    is_in_sight : ndarray of bool, shape [N]
        Marks the clips that some test leaves out because annotators saw a score when they judged them.
    """

    first_labels: dict[str, Ints]
    tests: list[Tested]
    why_not_trained: dict[str, str]
    tests_left_out: dict[str, str]
    is_in_sight: Bools


def _usable_labels(
    data: Dataset, target: Target, label_plan: LabelPlan, *, test_seen_scores: bool
) -> _UsableLabels:
    """Leave out training labels and tests that lack a class, and clips that may not be tested.

    With `test_seen_scores` false, clips whose label was given in sight of a model's score may not be tested.
    Training labels are named by the suffix of the models that learn them: "@ANNOTATOR" for those of one
    annotator, "" for all others.

    Raises
    ------
    ProtocolError
        No training labels are left, or no test, or a test that was asked for lacks a class.
    """
    needed = _needed_classes(target)

    # --- training labels
    # A clip that several annotators labelled has a label in several arrays [N]. To see whether a class is
    # lacking, it is counted once, by the first of its labels.
    all_labels = {suffix: _first_label(arrays) for suffix, arrays in label_plan.training_labels.items()}
    why_not_trained = _labels_without_a_class(all_labels, needed, data.levels)
    first_labels = _without_unlearnable(all_labels, why_not_trained)

    # --- tests
    tests = label_plan.tests
    is_in_sight = np.zeros(len(data.clip_ids), dtype=np.bool_)
    if not test_seen_scores:
        tests, is_in_sight = _without_seen_scores(tests)
    tests_left_out = _tests_without_a_class(tests, needed, data.levels)
    tests = _without_tests(tests, tests_left_out, by_annotator=label_plan.by_annotator)
    return _UsableLabels(first_labels, tests, why_not_trained, tests_left_out, is_in_sight)


def _find_target(task: str | Target, data: Dataset) -> Target:
    """Find a target by its name, unless it is given as an object; "" stands for the codebook's only task."""
    if isinstance(task, Target):
        return task
    # The second target is that of the test, which is not asked for here.
    target, _ = choose_targets(data.codebook, task=task or None, test=None)
    return target


def _tested_targets(
    test: str | Target | Sequence[str | Target] | None, target: Target, data: Dataset
) -> list[Target]:
    """List the targets to test on, given by names or as objects; by default the one that is trained on."""
    if isinstance(test, str | Target):
        return [_find_target(test, data)]
    if not test:
        return [target]
    return [_find_target(name, data) for name in test]


def _refuse_incomparable(target: Target, tested: Target) -> None:
    """Raise if models of one target cannot be tested on another.

    They cannot if the targets have other classes, or if a level is negative in one and positive in the other.
    """
    trained_form = (target.kind, target.n_classes, target.scale)
    tested_form = (tested.kind, tested.n_classes, tested.scale)
    if tested_form != trained_form:
        raise ProtocolError(
            f"a model trained on {target.name} ({target.kind}) can't be tested on {tested.name} "
            f"({tested.kind})"
        )

    # Only targets of levels state which levels are negative and which are positive.
    if target.kind != "levels":
        return
    trained_negative, trained_positive = target.classes
    tested_negative, tested_positive = tested.classes
    became_positive = set(trained_negative) & set(tested_positive)
    became_negative = set(trained_positive) & set(tested_negative)
    exchanged = became_positive | became_negative
    if exchanged:
        raise ProtocolError(
            f"{min(exchanged)!r} is on one side of {target.name}, which is trained, and on the other of "
            f"{tested.name}, which is tested: the test would be upside down"
        )


def _first_label(arrays: Sequence[Ints]) -> Ints:
    """Return the first label of each clip [N] in several arrays of labels; `NOT_ASKED` if it has none.

    By it a clip is counted once in checks and folds, even if it is trained on with several labels.
    """
    has_label = [labels != NOT_ASKED for labels in arrays]
    # For each clip, the entry of the first array in which it has a label.
    return np.select(has_label, arrays, default=NOT_ASKED)


def _without_seen_scores(tests: list[Tested]) -> tuple[list[Tested], Bools]:
    """Remove from each test the clips whose label was given in sight of a model's score.

    The clips stay in the arrays of labels, where `NOT_ASKED` marks what is not in a test.

    Returns
    -------
    tests : list of Tested
    is_left_out : ndarray of bool, shape [N]
        Marks the clips that were removed from some test.
    """
    remaining_tests = []
    is_left_out: Bools = np.zeros(len(tests[0].labels), dtype=np.bool_)
    for test in tests:
        if test.seen_score is None:
            remaining_tests.append(test)
            continue
        labels = without_seen_scores(test.labels, test.seen_score)
        remaining_tests.append(test._replace(labels=labels))
        is_left_out |= test.seen_score & (test.labels != NOT_ASKED)
    return remaining_tests, is_left_out


# --- folds
# ---------------------------------------------------------------------------


class _Fold(NamedTuple):
    """A fold before it has a seed.

    Attributes
    ----------
    name : str
        The movie, group of movies or block of scenes that is held out.
    split : Split
        The rows of training and test clips.
    context_rows : ndarray of int
        Rows from which concepts are learnt, clips that are not in the task among them (`SeededFold`).
    left_out : str
        What the fold tests, as a message names it.
    """

    name: str
    split: Split
    context_rows: Rows
    left_out: str


def _make_folds(
    data: Dataset,
    first_labels: Mapping[str, Ints],
    tests: Sequence[Tested],
    *,
    seen: bool,
    n_folds: int | None,
) -> list[_Fold]:
    """Divide the clips that are trained on or tested into folds, and name each fold after what it tests.

    Parameters
    ----------
    data : Dataset
    first_labels : mapping of str to ndarray
        Suffix of the models' names, such as that of an annotator -> the labels [N] that they are trained on.
    tests : sequence of Tested
    seen : bool
        Whether folds are blocks of scenes, instead of whole movies.
    n_folds : int, optional
        Number of folds of whole movies; by default one per movie.
    """
    # `NOT_ASKED` is the label of clips that are not in the task. A clip takes part if it is in some task.
    is_learnable = np.any([labels != NOT_ASKED for labels in first_labels.values()], axis=0)
    is_testable = np.any([test.labels != NOT_ASKED for test in tests], axis=0)
    rows_in_use = np.flatnonzero(is_learnable | is_testable)
    table = _fold_table(data, rows_in_use, seen=seen, n_folds=n_folds)
    folds = []
    for split in splits(table, is_learnable[rows_in_use], is_testable[rows_in_use]):
        # The split has indices among the clips in use, which are converted to rows of the dataset.
        split_of_rows = Split(split.fold, rows_in_use[split.train], rows_in_use[split.test])
        folds.append(_make_fold(data, split_of_rows, seen=seen))
    return folds


def _fold_table(data: Dataset, rows_in_use: Rows, *, seen: bool, n_folds: int | None) -> FoldTable:
    """Assign clips to folds: of whole movies or, with `seen`, of blocks of scenes."""
    clip_ids = tuple(data.clip_ids[rows_in_use].tolist())
    movies = tuple(data.movies[rows_in_use].tolist())
    if seen:
        return scene_blocks(clip_ids, movies)
    return leave_movies_out(clip_ids, movies, n_folds)


def _make_fold(data: Dataset, split: Split, *, seen: bool) -> _Fold:
    """Name a fold after what it tests, and list its context rows: clips that models may know beside labels.

    These are all clips of the movies that are trained on, also those whose level is not in the task. With
    `seen`, where folds are blocks of scenes, they are the training clips only: other clips of these movies
    may be tested. A fold that tests one movie has its name; others have a number.
    """
    if seen:
        name = f"block {split.fold}"
        return _Fold(name, split, context_rows=split.train, left_out=name)
    in_training_movie = np.isin(data.movies, np.unique(data.movies[split.train]))
    context_rows = np.flatnonzero(in_training_movie)
    tested_movies = np.unique(data.movies[split.test]).tolist()
    if len(tested_movies) > 1:
        name = f"fold {split.fold}"
        return _Fold(name, split, context_rows, left_out=name)
    (movie,) = tested_movies
    return _Fold(movie, split, context_rows, left_out=f"movie {movie}")


def _with_seeds(folds: Sequence[_Fold], seeds: Sequence[int]) -> list[SeededFold]:
    """List every fold with every seed: all folds with the first seed, then all with the next."""
    return [SeededFold(fold.name, fold.split, fold.context_rows, seed) for seed in seeds for fold in folds]


def _labels_not_learnable(
    folds: Sequence[_Fold],
    first_labels: Mapping[str, Ints],
    movies: NDArray[np.str_],
    needed: Mapping[int, str],
    *,
    seen: bool,
) -> dict[str, str]:
    """Say which training labels no model can be trained on in some fold: suffix of the models' names -> why.

    Parameters
    ----------
    folds : sequence of _Fold
    first_labels : mapping of str to ndarray
        Suffix of the models' names ("@ANNOTATOR", or "" for labels of all) -> labels of all clips [N].
    movies : ndarray, shape [N]
    needed : mapping of int to str
        The classes that training labels must have, and their names.
    seen : bool
        Whether folds are blocks of scenes instead of movies.
    """
    reasons = {}
    for suffix, labels in first_labels.items():
        # Labels of one annotator are also left out if a fold cannot be divided into inner folds; with the
        # labels of all, the training itself then raises an error.
        is_of_one_annotator = suffix != ""
        for fold in folds:
            reason = _why_not_learnable(fold, labels, suffix, needed, seen=seen)
            if is_of_one_annotator and not reason:
                reason = _why_no_inner_folds(fold, labels, suffix, movies)
            if reason:
                reasons[suffix] = reason
                break  # the first fold with a problem is named
    return reasons


def _why_no_inner_folds(fold: _Fold, labels: Ints, suffix: str, movies: NDArray[np.str_]) -> str:
    """Say why the training clips of a fold cannot be divided into inner folds; "" if they can.

    `labels` and `movies` [N] are those of all clips, and `suffix` that of the labels' models.
    """
    has_label = labels[fold.split.train] != NOT_ASKED  # the others are not in the task
    rows = fold.split.train[has_label]
    try:
        inner_folds(labels[rows], movies[rows])
    except ProtocolError as error:
        return f"without {fold.left_out}, labels{_by_annotator(suffix)}: {error}"
    return ""


def _why_not_learnable(
    fold: _Fold, labels: Ints, suffix: str, needed: Mapping[int, str], *, seen: bool
) -> str:
    """Say that a fold has no training clips, or none of a class that is needed; "" if it has all of these.

    The message advises what would help.

    Parameters
    ----------
    fold : _Fold
    labels : ndarray of int, shape [N]
        Training labels of all clips.
    suffix : str
        Suffix of the names of the models that are trained on these labels: "@NAME" if they are those of one
        annotator, else "".
    needed : mapping of int to str
        The classes that are needed, label -> title (`_needed_classes`): negative and positive (`_CLASSES`),
        or of ordered levels the lowest and the highest one.
    seen : bool
        Whether folds are blocks of scenes. `GAP` clips on either side of a tested block are not trained on.
    """
    missing = _missing_class(labels[fold.split.train], needed)
    if not missing:
        return ""

    left_out = fold.left_out
    if seen:
        left_out += f" and the {GAP} clips on either side of it in each movie"
        advice = "movies are too short for blocks; leave whole movies out instead"
    elif needed == _CLASSES:
        advice = "both classes must be in at least 3 movies"
    else:  # of ordered levels
        lowest, highest = needed.values()
        advice = (
            f"{lowest} and {highest}, the lowest and the highest level, must be in at least 3 movies each"
        )
    by_annotator = _by_annotator(suffix)  # whose labels they are; "" for those of all annotators
    return f"without {left_out} there is {missing}{by_annotator} to learn from: {advice}"


def _missing_class(labels: Ints, needed: Mapping[int, str]) -> str:
    """Return what training clips with these labels lack, such as "no positive clip"; "" if they lack nothing.

    Of ordered levels each step between two levels is learnt. The lowest and the highest level, which are
    `needed`, are on either side of every step, so that levels between them may be missing.
    """
    if not len(labels):
        return "no clip"
    for label in sorted(needed, reverse=True):  # the rarer class, as a rule, is named first
        if not (labels == label).any():
            return f"no {needed[label]} clip"
    return ""


def _labels_without_a_class(
    labels_of_suffix: Mapping[str, Ints], needed: Mapping[int, str], levels: NDArray[np.str_]
) -> dict[str, str]:
    """Say which training labels lack a class: suffix of the models' names -> what is missing.

    Parameters
    ----------
    labels_of_suffix : mapping of str to ndarray
        Suffix of the models' names ("@ANNOTATOR", or "" for labels of all) -> their training labels [N].
    needed, levels
        As for `_why_class_missing`.
    """
    reasons = {}
    for suffix, labels in labels_of_suffix.items():
        purpose = f"trained on{_by_annotator(suffix)}"
        reason = _why_class_missing(labels, needed, levels, purpose=purpose)
        if reason:
            reasons[suffix] = reason
    return reasons


def _without_unlearnable(labels_of_suffix: Mapping[str, Ints], reasons: Mapping[str, str]) -> dict[str, Ints]:
    """Leave out the annotators on whose labels no model can be trained.

    Labels and reasons are by the suffix that the names of an annotator's models have, such as "@AB" of
    "linear@AB"; it is empty for merged labels. A suffix that has a reason is left out.

    Raises
    ------
    ProtocolError
        None are left.
    """
    remaining = {suffix: labels for suffix, labels in labels_of_suffix.items() if suffix not in reasons}
    if not remaining:
        raise ProtocolError(next(iter(reasons.values())))
    return remaining


def _with_training_labels_of(label_plan: LabelPlan, suffixes: Collection[str]) -> LabelPlan:
    """Return a plan of labels with the training labels of some annotators alone, by which models can learn.

    `suffixes` are those that the names of these annotators' models have, such as "@AB" of "linear@AB".
    """
    kept = {suffix: arrays for suffix, arrays in label_plan.training_labels.items() if suffix in suffixes}
    return replace(label_plan, training_labels=kept)


def _tests_without_a_class(
    tests: Sequence[Tested], needed: Mapping[int, str], levels: NDArray[np.str_]
) -> dict[str, str]:
    """Say which tests lack a class: name of the target -> what is missing (`_why_class_missing`)."""
    reasons = {}
    for test in tests:
        reason = _why_class_missing(test.labels, needed, levels, purpose="tested on")
        if reason:
            reasons[test.target.name] = reason
    return reasons


def _without_tests(
    tests: Sequence[Tested], reasons: Mapping[str, str], *, by_annotator: bool
) -> list[Tested]:
    """Leave out the tests for which there is a reason (name of the target -> reason).

    Only tests of single annotators' labels (`by_annotator`) may be left out, as the program makes them.
    Other tests were asked for by name.

    Raises
    ------
    ProtocolError
        A test may not be left out, or none would remain.
    """
    remaining = [test for test in tests if test.target.name not in reasons]
    if not reasons:
        return remaining
    may_leave_out = by_annotator and len(remaining) > 0
    if not may_leave_out:
        name, reason = next(iter(reasons.items()))
        raise ProtocolError(f"{name}: {reason}")
    return remaining


def _needed_classes(target: Target) -> dict[int, str]:
    """Return the classes of a target that labels must have to be trained or tested on: label -> title.

    They are both classes, or of ordered levels the lowest and the highest one.
    """
    if target.kind != "ordinal":
        return _CLASSES
    lowest = 0
    highest = target.n_classes - 1
    return {lowest: target.classes[lowest][0], highest: target.classes[highest][0]}


def _why_class_missing(
    labels: Ints, needed: Mapping[int, str], levels: NDArray[np.str_], *, purpose: str
) -> str:
    """Say which of the `needed` classes (label -> title) labels [N] lack; "" if they lack none.

    Of ordered levels the lowest and the highest one are needed (`_needed_classes`). `purpose` says in the
    message what the clips are needed for, and `levels` [N] are those of the clips.
    """
    has_label = labels != NOT_ASKED  # the others are not in the task
    for label, title in needed.items():
        if not (labels == label).any():
            n_clips = int(has_label.sum())
            names_of_levels = ", ".join(np.unique(levels[has_label])) or "none"
            return (
                f"no {title} clip to be {purpose}: {counted(n_clips, 'clip')} with features, of the levels "
                f"{names_of_levels}"
            )
    return ""


def _refuse_labels_among_features(
    data: Dataset, target: Target, first_labels: Mapping[str, Ints], tests: Sequence[Tested]
) -> None:
    """Raise if a feature of the dataset equals the labels of training or of a test (`refuse_labels`).

    From such a feature a model would read the label that it should predict.
    """
    labels_by_name = {f"{target.name}{suffix}": labels for suffix, labels in first_labels.items()}
    for test in tests:
        labels_by_name[test.target.name] = test.labels
    refuse_labels(data, labels_by_name)


def _by_annotator(suffix: str, preposition: str = "by") -> str:
    """Write " by NAME", for messages, if a suffix of models' names names an annotator, as "@NAME"; else "".

    Models that are trained on the labels of one annotator have such a suffix in their names.
    """
    return f" {preposition} {suffix.removeprefix('@')}" if suffix else ""


# --- concepts
# ---------------------------------------------------------------------------


@checked
def varying(data: Dataset, rows: Rows) -> list[str]:
    """List the concepts that can be learnt from the clips `rows`, also in inner folds.

    Each inner fold leaves one movie out. A concept can be learnt in all of them if, without any single movie,
    there are still clips with the concept and clips without it.
    """
    _, movie_of_clip = np.unique(data.movies[rows], return_inverse=True)
    n_clips = np.bincount(movie_of_clip)  # of each movie
    n_clips_without_movie = n_clips.sum() - n_clips  # when this movie is left out
    learnable = []
    for concept, is_present in zip(data.labels.concepts, data.labels.present[rows].T, strict=True):
        n_present = np.bincount(movie_of_clip, weights=is_present, minlength=len(n_clips))
        n_present_without_movie = n_present.sum() - n_present
        has_positive = n_present_without_movie > 0
        has_negative = n_present_without_movie < n_clips_without_movie
        if (has_positive & has_negative).all():
            learnable.append(concept)
    return learnable


def _drop_concept_models(
    specs: Sequence[ModelSpec], concepts: Mapping[str, list[str]], *, named_by_user: bool
) -> tuple[list[ModelSpec], dict[str, str]]:
    """Leave out the models that read concepts, if no concept can be learnt in some fold.

    Parameters
    ----------
    specs : sequence of ModelSpec
    concepts : mapping of str to list of str
        Name of a fold -> the concepts that can be learnt in it.
    named_by_user : bool
        Whether the user named the models, so that leaving one out is an error.

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
    # These models request the presences of concepts.
    concept_models = [spec for spec in specs if "present" in spec.requests()]
    folds_without_concepts = [name for name, learnable in concepts.items() if not learnable]
    if not concept_models or not folds_without_concepts:
        return list(specs), {}
    reason = f"no concept is marked in enough movies to be learnt without {folds_without_concepts[0]}"
    if named_by_user:
        raise ConceptError(f"model {concept_models[0].name}: {reason}")
    others = [spec for spec in specs if spec not in concept_models]
    return others, {spec.name: reason for spec in concept_models}
