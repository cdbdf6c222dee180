"""Plan an evaluation: what is trained, what is tested, and in which folds.

Everything that can be refused is refused here, before a model is trained.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_models.dataset.dataset import Dataset, refuse_labels
from obygaze_models.errors import ConceptError, ProtocolError
from obygaze_models.evaluation.experts import Asked, Experts, Tested, asked_of, variants
from obygaze_models.evaluation.run import SeededFold
from obygaze_models.models.binary import Imbalance
from obygaze_models.models.registry import models_for
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.folds import GAP, FoldTable, Split, leave_movies_out, scene_blocks, splits
from obygaze_models.protocol.targets import NOT_ASKED, Target, choose_targets

Codes = NDArray[np.int64]


class Variant(NamedTuple):
    """A model, and whose labels it is trained on.

    Attributes
    ----------
    labels : str
        Key of `Asked.learnt`, which is the end of the model's name.
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
        What is trained.
    asked : Asked
        Labels to train on, and those that annotators gave.
    learnt : dict of str to ndarray
        A label of each clip [N], the first of several that it counts with.
    tests : list of Tested
    folds : list of SeededFold
        Each fold under each seed.
    concepts : dict of str to list of str
        Fold -> concepts that can be learnt without it.
    variants : list of Variant
    models_left_out : dict of str to str
        Models that can't be trained here, and why.
    seeds : range
    n_seen_scores : int
        Clips that are not tested, as they were judged with a model's score in sight.
    """

    target: Target
    asked: Asked
    learnt: Mapping[str, Codes]
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
    """Plan an evaluation; the arguments are those of `evaluate`.

    Raises
    ------
    ProtocolError, ModelError, ConceptError
        See `evaluate`.
    """
    target = _target(task, data)
    named_tests = (test,) if isinstance(test, str | Target) else test or ()
    tested_targets = [_target(name, data) for name in named_tests] or [target]
    for tested in tested_targets:
        _check_comparable(target, tested)
    specs = models_for(target.kind, (models,) if isinstance(models, str) else models, imbalance=imbalance)
    asked = asked_of(data, target, tested_targets, experts)
    tests, n_seen_scores = asked.tests, 0
    if not test_seen_scores:
        tests, n_seen_scores = _without_seen_scores(data, asked.tests)
    learnt = {end: _first_label(labels) for end, labels in asked.learnt.items()}
    _check_classes(data, target, learnt, tests)
    folds = list(_folds(data, learnt, tests, seeds, seen=seen, n_folds=n_folds))
    concepts = {fold.name: varying(data, fold.context_rows) for fold in folds}
    specs, models_left_out = _with_concepts(specs, concepts, explicit=models is not None)
    return Plan(
        target,
        asked,
        learnt,
        tests,
        folds,
        concepts,
        [Variant(labels, spec) for labels, spec in variants(specs, asked, data)],
        models_left_out,
        seeds,
        n_seen_scores,
    )


def _target(given: str | Target, data: Dataset) -> Target:
    return given if isinstance(given, Target) else choose_targets(data.codebook, given or None, None)[0]


def _check_comparable(trained: Target, tested: Target) -> None:
    """Refuse to test a model on a target of other classes, or with its sides exchanged."""
    if (tested.kind, tested.n_classes, tested.scale) != (trained.kind, trained.n_classes, trained.scale):
        raise ProtocolError(
            f"a model trained on {trained.name} ({trained.kind}) can't be tested on {tested.name} "
            f"({tested.kind})"
        )
    if trained.kind != "levels":
        return
    negative, positive = set(trained.classes[0]), set(trained.classes[1])
    exchanged = (negative & set(tested.classes[-1])) | (positive & set(tested.classes[0]))
    if exchanged:
        raise ProtocolError(
            f"{min(exchanged)!r} is on one side of {trained.name}, which is trained, and on the other of "
            f"{tested.name}, which is tested: the test would be upside down"
        )


def _first_label(labels: Sequence[Codes]) -> Codes:
    """Give a label of each clip [N], the first of several that it counts with."""
    return np.select([codes != NOT_ASKED for codes in labels], labels, NOT_ASKED)


def _without_seen_scores(data: Dataset, tests: list[Tested]) -> tuple[list[Tested], int]:
    """Leave out of all tests the clips that were judged with a model's score in sight; count them."""
    seen = data.labels.seen_score
    if seen is None:
        return tests, 0
    tested = np.any([test.codes != NOT_ASKED for test in tests], axis=0)
    without = [test._replace(codes=np.where(seen, NOT_ASKED, test.codes)) for test in tests]
    return without, int((seen & tested).sum())


# --- folds
# ---------------------------------------------------------------------------


def _folds(
    data: Dataset,
    learnt: Mapping[str, Codes],
    tests: Sequence[Tested],
    seeds: Sequence[int],
    *,
    seen: bool,
    n_folds: int | None,
) -> Iterator[SeededFold]:
    """Cut the clips into folds, each under each seed."""
    learnable = np.any([codes != NOT_ASKED for codes in learnt.values()], axis=0)
    testable = np.any([test.codes != NOT_ASKED for test in tests], axis=0)
    used = np.flatnonzero(learnable | testable)
    table = _fold_table(data, used, seen=seen, n_folds=n_folds)
    folds = []
    for split in splits(table, learnable[used], testable[used]):
        rows = Split(split.fold, used[split.train], used[split.test])
        folds.append(_named_fold(data, rows, learnt, seen=seen))
    for seed in seeds:
        for name, rows, context_rows in folds:
            yield SeededFold(name, rows, context_rows, seed)


def _fold_table(data: Dataset, used: NDArray[np.intp], *, seen: bool, n_folds: int | None) -> FoldTable:
    """Deal the clips used to folds."""
    clip_ids = tuple(data.clip_ids[used].tolist())
    movies = tuple(data.movies[used].tolist())
    if seen:
        return scene_blocks(clip_ids, movies)
    return leave_movies_out(clip_ids, movies, n_folds)


def _named_fold(
    data: Dataset, split: Split, learnt: Mapping[str, Codes], *, seen: bool
) -> tuple[str, Split, NDArray[np.intp]]:
    """Name a fold, and find the clips that concepts are learnt from."""
    tested_movies = np.unique(data.movies[split.test])
    if seen:
        name = left_out = f"block {split.fold}"
    elif len(tested_movies) > 1:
        name = left_out = f"fold {split.fold}"
    else:
        name = str(tested_movies[0])
        left_out = f"movie {name}"
    for end, codes in learnt.items():
        _check_learnable(codes[split.train], left_out, end, seen=seen)
    if seen:
        return name, split, split.train
    in_training = np.isin(data.movies, np.unique(data.movies[split.train]))
    return name, split, np.flatnonzero(in_training)


def _check_learnable(codes: NDArray[np.int64], left_out: str, end: str, *, seen: bool) -> None:
    """Refuse a fold whose training clips, of these codes, are none or of one class alone."""
    missing = ""
    if not len(codes):
        missing = "no clip"
    elif codes.max() <= 1 and not (codes == 1).any():
        missing = "no positive clip"
    elif codes.max() <= 1 and not (codes == 0).any():
        missing = "no negative clip"
    if not missing:
        return
    advice = "both classes must be in at least 3 movies"
    if seen:
        left_out += f" and the {GAP} clips on either side of it in each movie"
        advice = "movies are too short for blocks; leave whole movies out instead"
    raise ProtocolError(f"without {left_out} there is {missing}{_by(end)} to learn from: {advice}")


def _check_classes(
    data: Dataset,
    train: Target,
    learnt: Mapping[str, NDArray[np.int64]],
    tests: Sequence[Tested],
) -> None:
    sides = {f"trained on{_by(end)}": codes for end, codes in learnt.items()}
    sides |= {f"tested on ({test.target.name})": test.codes for test in tests}
    for side, codes in sides.items():
        rows = codes != NOT_ASKED
        for rank in range(train.n_classes) if train.kind != "ordinal" else (0, train.n_classes - 1):
            if not (codes == rank).any():
                kind = ("negative", "positive")[rank] if train.kind != "ordinal" else train.classes[rank][0]
                raise ProtocolError(
                    f"no {kind} clip to be {side}: {int(rows.sum())} clips with features, "
                    f"of the levels {', '.join(np.unique(data.levels[rows])) or 'none'}"
                )
    labels = {f"{train.name}{end}": codes for end, codes in learnt.items()}
    refuse_labels(data, labels | {test.target.name: test.codes for test in tests})


def _by(end: str) -> str:
    """Name the annotator whose labels models with this end of their names are trained on."""
    return f" by {end.removeprefix('@')}" if end else ""


# --- concepts
# ---------------------------------------------------------------------------


@checked
def varying(data: Dataset, rows: NDArray[np.intp]) -> list[str]:
    """List the concepts that can be learnt from some clips: varying whatever movie of theirs is left out."""
    _, movie = np.unique(data.movies[rows], return_inverse=True)
    present = data.labels.present[rows]
    clips = np.bincount(movie)
    marked = np.empty((present.shape[1], len(clips)))
    for concept, column in enumerate(present.T):
        marked[concept] = np.bincount(movie, weights=column, minlength=len(clips))
    rest = marked.sum(axis=1, keepdims=True) - marked  # of the other movies, [concepts, movies]
    kept = ((rest > 0) & (rest < clips.sum() - clips)).all(axis=1)
    return [concept for concept, good in zip(data.labels.concepts, kept, strict=True) if good]


def _with_concepts(
    specs: Sequence[ModelSpec], concepts: Mapping[str, list[str]], *, explicit: bool
) -> tuple[list[ModelSpec], dict[str, str]]:
    """Leave out the models that read concepts where some fold has none to read.

    Raises
    ------
    ConceptError
        They were asked for by name.
    """
    reading = [spec for spec in specs if "present" in spec.requests()]
    if not reading or all(concepts.values()):
        return list(specs), {}
    fold = next(name for name, learnable in concepts.items() if not learnable)
    reason = f"no concept is marked in enough movies to be learnt without {fold}"
    if explicit:
        raise ConceptError(f"model {reading[0].name}: {reason}")
    return [spec for spec in specs if spec not in reading], {spec.name: reason for spec in reading}
