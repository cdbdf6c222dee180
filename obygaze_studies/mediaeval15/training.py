"""Train a model of the zoo on the dev clips, and predict the test clips."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import obygaze_models.models as zoo
from obygaze_features.io import refuse_existing
from obygaze_features.manifest import Manifest
from obygaze_features.options import Answer
from obygaze_features.store import Group, Store
from obygaze_features.text import counted
from obygaze_models.dataset import Dataset, load_dataset
from obygaze_models.errors import ProtocolError
from obygaze_models.protocol import NOT_ASKED, Target, find_target
from obygaze_studies.errors import TaskError
from obygaze_studies.mediaeval15.annotations import AXES, of_manifest, refuse_leak
from obygaze_studies.mediaeval15.run_files import Calls, RunFile, Subtask, affect_lines, trec_lines, write_run

CODEBOOK = "mediaeval15"
"""The codebook that has the task and the scales of both subtasks."""

Rows = NDArray[np.intp]

Selection = dict[str, Any]
"""What was selected in a training: the candidates of the inner folds, and how many dev clips and movies."""


@dataclass(frozen=True, eq=False)
class DevAndTest:
    """The clips that have features: dev clips to train on, and test clips to predict.

    Attributes
    ----------
    data : Dataset
        All clips with features, labelled or not.
    dev, test : ndarray of int
        Rows of the dev and of the test clips in `data`.
    excluded : mapping of str to list of dict
        Side -> its clips without features, each with the reason.
    pretrained : bool or None
        Whether the backbone has trained weights, and so has seen external data; None if that is unknown.
    """

    data: Dataset
    dev: Rows
    test: Rows
    excluded: Mapping[str, list[dict[str, str]]]
    pretrained: bool | None


def load_sides(store: Store, manifest: Manifest, *, backbone: str | None = None) -> DevAndTest:
    """Load the features and labels of the dev and the test clips.

    Parameters
    ----------
    store, backbone
        As `load_dataset` takes them.
    manifest : Manifest
        A manifest with the codebook mediaeval15 and a column split.

    Raises
    ------
    TaskError
        The manifest has another codebook, a movie is on both sides of the split, or a side has no clip with
        features.
    DatasetError
        The store does not have the backbone.
    """
    if manifest.codebook.name != CODEBOOK:
        raise TaskError(
            f"the manifest's codebook is {manifest.codebook.name}, expected {CODEBOOK}; "
            "make it with: obygaze manifest import mediaeval15"
        )
    clips = of_manifest(manifest)
    refuse_leak(clips)
    data = load_dataset(store, manifest, backbone=backbone, unlabelled=True)
    split_of = {clip.clip_id: clip.split for clip in clips}
    excluded = _excluded_by_side(data, split_of)

    splits = np.array([split_of[clip_id] for clip_id in data.clip_ids.tolist()])
    rows = {side: np.flatnonzero(splits == side) for side in excluded}
    for side, rows_of_side in rows.items():
        if not len(rows_of_side):
            raise _error_of_empty_side(side, store.name, excluded[side])
    return DevAndTest(
        data=data,
        dev=rows["dev"],
        test=rows["test"],
        excluded=excluded,
        pretrained=is_pretrained(store[data.backbone]),
    )


def _excluded_by_side(data: Dataset, split_of: Mapping[str, str]) -> dict[str, list[dict[str, str]]]:
    """Return the dev and the test clips without features: side -> their ids, each with the reason.

    `split_of` is clip id -> "dev", "test", or "" for a clip on no side, which is not listed.
    """
    excluded: dict[str, list[dict[str, str]]] = {"dev": [], "test": []}
    for clip in data.excluded:
        side = split_of[clip.clip_id]
        if side in excluded:
            excluded[side].append({"clip_id": clip.clip_id, "reason": clip.reason})
    return excluded


def _error_of_empty_side(side: str, store: str, excluded: Sequence[Mapping[str, str]]) -> TaskError:
    """Make the error for a side of the split of which no clip has features.

    Parameters
    ----------
    side
        "dev" or "test".
    store
        Name of the store.
    excluded
        The clips of the side, each with the reason why it has no features.
    """
    example = ""
    if excluded:
        first = excluded[0]
        example = f" (the first: {first['clip_id']}, {first['reason']})"
    return TaskError(
        f"no {side} clip has features in store {store}, {len(excluded)} have none{example}: "
        "is it the store of this manifest, whose column split is filled in?"
    )


def is_pretrained(group: Group) -> bool | None:
    """Return whether a group's features were made with trained weights; None if that is unknown.

    It is unknown for imported features whose provenance does not name the weights.
    """
    provenance = group.provenance
    if provenance.get("untrained"):
        return False
    names_weights = bool(provenance.get("weights_sha256") or provenance.get("hub"))
    if names_weights:
        return True
    if provenance.get("imported"):
        return None
    # Features that were extracted here name their weights, if they have any: these have none.
    return False


def call_test_clips(
    sides: DevAndTest, subtask: Subtask, spec: zoo.ModelSpec, *, seed: int = 0
) -> tuple[Any, dict[str, Selection]]:
    """Predict the test clips with a model that is trained on the dev clips.

    For violence, a clip gets a score. For affect, a class of valence and one of arousal are called. The
    classes of an axis are ordered, and there is one model for each step between them; the most probable class
    is called, because the official measure is accuracy.

    Parameters
    ----------
    sides
        The features and labels of the dev and the test clips.
    subtask
        "violence" or "affect".
    spec, seed
        The model, and its random seed.

    Returns
    -------
    predictions
        For violence: clip id -> score. For affect: the called classes, as `Calls`.
    selections
        "violence", or each axis -> what was selected in its training.

    Raises
    ------
    TaskError
        Dev lacks labels, or the model is not for this task.
    ModelError
        The model can't be trained.
    """
    codebook = sides.data.codebook
    if subtask == "violence":
        predicted = _train_and_predict(sides, find_target("violence", codebook), spec, seed)
        return predicted.values, {"violence": predicted.selection}
    calls: Calls = {}
    selections: dict[str, Selection] = {}
    for axis in AXES:
        target = find_target(f"scale:{axis}", codebook)  # the axis' ordered classes
        predicted = _train_and_predict(sides, target, spec, seed)
        calls[axis] = {clip_id: target.levels[int(rank)] for clip_id, rank in predicted.values.items()}
        selections[axis] = predicted.selection
    return calls, selections


def called_ranks(
    model: zoo.Fitted | zoo.OrdinalModel, X: NDArray[Any], movies: NDArray[np.str_], *, n_classes: int
) -> NDArray[np.intp]:
    """Predict the rank of the most probable class of each clip, [N], from 0 for the lowest class.

    This is the method of Frank and Hall (ECML 2001).

    The model of a step gives the probability that the class is at least the one above the step. The
    probability of a class is the difference of two of these; it may be slightly negative, as the models are
    trained apart. A baseline has no model for each step: the class nearest to its score is called.

    Parameters
    ----------
    model
        The trained model.
    X : ndarray, shape [N, D]
        Features of the clips.
    movies : ndarray of str, shape [N]
        Their movies.
    n_classes
        Number of classes.
    """
    if not isinstance(model, zoo.OrdinalModel):
        # A baseline's score is a rank with decimals; this rounds it.
        nearest = np.floor(model.scores(X, movies) + zoo.NEAREST_THRESHOLD)
        return np.clip(nearest, 0, n_classes - 1).astype(np.intp)

    # Probability that a clip's class is at least that of each rank, [n_classes + 1, N]: 1 for the lowest
    # class, and 0 beyond the highest.
    p_at_steps = [expit(step.scores(X, movies)) for step in model.steps]
    p_at_least = np.stack([np.ones(len(X)), *p_at_steps, np.zeros(len(X))])
    p_of_class = -np.diff(p_at_least, axis=0)  # [n_classes, N]
    ranks: NDArray[np.intp] = np.argmax(p_of_class, axis=0)
    return ranks


def train(
    manifest: Manifest,
    store: Store,
    subtask: Subtask,
    name: str,
    *,
    model: str,
    out: Path,
    backbone: str | None,
    force: bool,
    external: bool = False,
    seed: int = 0,
) -> Answer:
    """Train a model of the zoo by its name, and write a run and its record.

    Parameters
    ----------
    manifest, store, backbone
        As `load_sides` takes them.
    subtask
        What is predicted.
    name
        Name of the run.
    model
        Name of the model.
    out
        Folder of runs.
    force
        Whether an existing run is replaced.
    external
        Whether the run is marked as using external data.
    seed
        Random seed of the model.

    Raises
    ------
    TaskError
        The features may have seen external data and the run is not marked, or as `call_test_clips` raises.
    """
    file = RunFile(out, subtask, name)
    refuse_existing(file.path, force=force)  # before the work, so that nobody waits for a refusal
    spec = zoo.find_model(model)
    sides = load_sides(store, manifest, backbone=backbone)
    if not external:
        _refuse_external_data(sides)

    predictions, selections = call_test_clips(sides, subtask, spec, seed=seed)

    record: dict[str, Any] = {
        "run": name,
        "subtask": subtask,
        "external_data": external,
        "model": {"name": spec.name, **spec.settings()},
        "seed": seed,
        **_record_of_data(sides, manifest),
        "selection": selections,
    }
    run_text = trec_lines(predictions, name) if subtask == "violence" else affect_lines(predictions)
    write_run(file, run_text, record)

    return _answer_of_training(file, sides, record)


def _answer_of_training(file: RunFile, sides: DevAndTest, record: dict[str, Any]) -> Answer:
    """Report a run that was written: what was selected, how many test clips it has, which clips are excluded.

    Parameters
    ----------
    file
        The run's file.
    sides
        The dev and the test clips.
    record
        The run's record.
    """
    lines = _selection_lines(record["selection"])
    n_missing = len(sides.excluded["test"])
    missing = f", {n_missing} missing" if n_missing else ""
    lines.append(f"{file.path}: {counted(len(sides.test), 'test clip')}{missing}")
    excluded_clips = chain.from_iterable(sides.excluded.values())
    remarks = [f"excluded {clip['clip_id']}: {clip['reason']}" for clip in excluded_clips]
    return Answer(record, text="\n".join(lines), remarks=remarks)


def _refuse_external_data(sides: DevAndTest) -> None:
    """Raise a TaskError if the backbone of the features has, or may have, seen external data.

    The task allows external data only in runs that are marked as such.
    """
    if sides.pretrained is False:
        return
    origin = "were made with pretrained weights, which have seen external data"
    if sides.pretrained is None:
        origin = "were imported, and their provenance does not exclude external data"
    raise TaskError(f"features of {sides.data.backbone} {origin}: mark the run with --external")


def _record_of_data(sides: DevAndTest, manifest: Manifest) -> dict[str, Any]:
    """Return the fields of a run's record that say which features and clips it used."""
    data = sides.data
    return {
        "pretrained": sides.pretrained,
        "store": data.store,
        "backbone": data.backbone,
        "features": data.features,
        "pool": data.pool,
        "manifest_sha256": manifest.digest(),
        "codebook": {"name": data.codebook.name, "digest": data.codebook.digest()},
        "dev_movies": sorted(set(data.movies[sides.dev].tolist())),
        "dev_clips": len(sides.dev),
        "test_clips": len(sides.test),
        "excluded": sides.excluded,
    }


def _selection_lines(selections: Mapping[str, Selection]) -> list[str]:
    """Write a line for each training: which candidates the inner folds chose, and on how many dev clips.

    `selections` is the label of a training, such as "valence" -> what was selected in it.
    """
    lines = []
    for label, selection in selections.items():
        chosen_names = [tried["name"] for tried in selection["candidates"] if tried["chosen"]]
        parts = [*chosen_names, f"of {selection['dev_clips']} labelled dev clips"]
        lines.append(f"{label}: {', '.join(parts)}")
    return lines


class _Predicted(NamedTuple):
    """Predictions of the test clips, and what was selected in the training.

    Attributes
    ----------
    values
        Clip id -> score or, of ordered classes, rank of the called class.
    selection
        What was selected.
    """

    values: dict[str, float]
    selection: Selection


def _train_and_predict(sides: DevAndTest, target: Target, spec: zoo.ModelSpec, seed: int) -> _Predicted:
    """Train a model on the dev clips, and predict the test clips.

    Models that ask for unlabelled clips are trained on all dev clips, others on the labelled ones.

    Parameters
    ----------
    sides
        The features and labels of the clips.
    target
        What is predicted: violence, or the ordered classes of an axis.
    spec
        The model.
    seed
        Its random seed.
    """
    data = sides.data
    _refuse_unfit_model(spec, target, has_concepts=bool(data.labels.concepts))

    # The dev clips to train on, and their classes.
    codes = target.of(data.labels)  # class of each clip, [N]; NOT_ASKED without a label
    labelled = sides.dev[codes[sides.dev] != NOT_ASKED]
    rows = sides.dev if "unlabelled" in spec.requests() else labelled
    y = codes[rows]
    X = data.read(spec.reads)
    _check_classes(target, y)
    options: dict[str, Any] = {"movies": data.movies[rows]}
    if "present" in spec.requests():  # the model reads which concepts are present
        options["present"] = data.present.loc[rows]

    test_X = X[sides.test]
    test_movies = data.movies[sides.test]
    model: zoo.Fitted | zoo.OrdinalModel
    scores: NDArray[Any]
    try:
        if target.kind == "ordinal":
            model = zoo.fit_ordinal(spec, seed, X[rows], y, n_levels=target.n_classes, **options)
            scores = called_ranks(model, test_X, test_movies, n_classes=target.n_classes)
        else:
            model = zoo.fit(spec, seed, X[rows], y, **options)
            scores = model.scores(test_X, test_movies)
    except ProtocolError as error:
        raise TaskError(f"{target.name}: {error}") from error

    selection = {
        "candidates": _tried_candidates(model),
        "dev_clips": len(labelled),
        "dev_movies": len(np.unique(data.movies[labelled])),
    }
    test_ids = data.clip_ids[sides.test].tolist()
    return _Predicted(dict(zip(test_ids, scores.tolist(), strict=True)), selection)


def _refuse_unfit_model(spec: zoo.ModelSpec, target: Target, *, has_concepts: bool) -> None:
    """Raise a TaskError if a model cannot learn the target, or needs concepts and there are none.

    Parameters
    ----------
    spec
        The model; its `kinds` are the kinds of targets that it can learn.
    target
        What is to be predicted.
    has_concepts
        Whether the clips have labels of concepts.
    """
    if target.kind not in spec.kinds:
        raise TaskError(f"model {spec.name} is not for {target.name}: it is for {', '.join(spec.kinds)}")
    needs_concepts = "present" in spec.requests()
    if needs_concepts and not has_concepts:
        raise TaskError(f"model {spec.name} reads concepts, and the codebook {CODEBOOK} has none")


def _check_classes(target: Target, y: NDArray[np.integer[Any]]) -> None:
    """Raise a TaskError if the labelled dev clips do not have every class of the target.

    `y` has the class of each such clip, [n], as a number from 0.
    """
    counts = [int((y == rank).sum()) for rank in range(target.n_classes)]
    if all(counts):
        return
    texts = []
    for count, levels_of_class in zip(counts, target.classes, strict=True):
        texts.append(f"{count} {'+'.join(levels_of_class)}")  # a class may join several levels
    raise TaskError(
        f"{target.name} needs labelled dev clips of every class with features: found {', '.join(texts)}"
    )


def _tried_candidates(model: zoo.Fitted | zoo.OrdinalModel) -> list[dict[str, Any]]:
    """List the candidates of hyperparameters that were tried on inner folds of movies, as plain rows.

    A row has the candidate's name, its loss on the inner folds (None if it is not finite), and whether it was
    chosen. Its step counts the models of ordered classes, of which there is one for each step between two
    classes; other models are step 1.
    """
    steps = model.steps if isinstance(model, zoo.OrdinalModel) else (model,)
    candidates = []
    for step, fitted in enumerate(steps, start=1):
        # Only estimators that choose among candidates have `candidates_`.
        for candidate in getattr(fitted.estimator, "candidates_", ()):
            loss = candidate.inner_loss if math.isfinite(candidate.inner_loss) else None
            row = {"step": step, "name": candidate.name, "inner_loss": loss, "chosen": candidate.chosen}
            candidates.append(row)
    return candidates
