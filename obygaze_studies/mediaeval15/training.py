"""Train a model of the zoo on the dev clips and call the test clips."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import obygaze_models.models as zoo
from obygaze_features.io import refuse_existing
from obygaze_features.manifest import Manifest
from obygaze_features.options import Answer
from obygaze_features.store import Group, Store
from obygaze_models.dataset import Dataset, load_dataset
from obygaze_models.errors import ProtocolError
from obygaze_models.protocol import NOT_ASKED, Target, find_target
from obygaze_studies.errors import TaskError
from obygaze_studies.mediaeval15.annotations import AXES, of_manifest, refuse_leak
from obygaze_studies.mediaeval15.run_files import Calls, RunFile, Subtask, affect_lines, trec_lines, write_run

CODEBOOK = "mediaeval15"
"""The codebook whose task and scales are asked."""

Rows = NDArray[np.intp]
Selection = dict[str, Any]


@dataclass(frozen=True, eq=False)
class DevAndTest:
    """The clips of the task that have features: dev clips to learn from, test clips to call.

    Attributes
    ----------
    data : Dataset
        All of them, labelled or not.
    dev, test : ndarray of int
        Rows of `data`.
    excluded : mapping of str to list of dict
        The clips of each side that have no features, never replaced, and why.
    pretrained : bool or None
        Whether the backbone has trained weights, and so has seen external data; None where nobody knows.
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
        Of the codebook mediaeval15, with a column split.

    Raises
    ------
    TaskError
        The manifest is of something else, a movie is on both sides of the split, or a side has no clip with
        features.
    DatasetError
        Backbone or array are not there.
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
    excluded: dict[str, list[dict[str, str]]] = {"dev": [], "test": []}
    for clip in data.excluded:
        if (side := split_of[clip.clip_id]) in excluded:
            excluded[side].append({"clip_id": clip.clip_id, "reason": clip.reason})
    splits = np.array([split_of[clip_id] for clip_id in data.clip_ids.tolist()])
    for side, left_out in excluded.items():
        if not (splits == side).any():
            first = f" (the first: {left_out[0]['clip_id']}, {left_out[0]['reason']})" if left_out else ""
            raise TaskError(
                f"no {side} clip has features in store {store.name}, {len(left_out)} have none{first}: "
                "is it the store of this manifest, whose column split is filled in?"
            )
    dev = np.flatnonzero(splits == "dev")
    test = np.flatnonzero(splits == "test")
    return DevAndTest(data, dev, test, excluded, is_pretrained(store[data.backbone]))


def is_pretrained(group: Group) -> bool | None:
    """Whether a group's features were made with trained weights; None where that is unknown.

    Imported features that don't say which weights made them are of unknown origin.
    """
    if group.provenance.get("untrained"):
        return False
    if group.provenance.get("weights_sha256") or group.provenance.get("hub"):
        return True
    return None if group.provenance.get("imported") else False


def call_test_clips(
    sides: DevAndTest, subtask: Subtask, spec: zoo.ModelSpec, *, seed: int = 0
) -> tuple[Any, dict[str, Selection]]:
    """Score test clips by how violent they are, or call their classes on both axes; and what was selected.

    The classes are ordered: one model per step. The most probable class is called, as accuracy is measured.

    Raises
    ------
    TaskError
        Dev lacks labels, or the model is not for this task.
    ModelError
        The model can't be trained.
    """
    codebook = sides.data.codebook
    if subtask == "violence":
        scores, selection = _predicted(sides, find_target("violence", codebook), spec, seed)
        return scores, {"violence": selection}
    calls: Calls = {}
    selections: dict[str, Selection] = {}
    for axis in AXES:
        target = find_target(f"scale:{axis}", codebook)
        ranks, selections[axis] = _predicted(sides, target, spec, seed)
        calls[axis] = {clip_id: target.levels[int(rank)] for clip_id, rank in ranks.items()}
    return calls, selections


def called_ranks(
    model: zoo.Fitted | zoo.OrdinalModel, X: NDArray[Any], movies: NDArray[np.str_], *, n_classes: int
) -> NDArray[np.intp]:
    """Call the rank of each clip's class [N], from 0: the most probable one (Frank and Hall, ECML 2001).

    Of a baseline, which has no model a step, the one nearest to its score.
    """
    if not isinstance(model, zoo.OrdinalModel):
        nearest = np.floor(model.scores(X, movies) + zoo.NEAREST_THRESHOLD)
        return np.clip(nearest, 0, n_classes - 1).astype(np.intp)
    above = [expit(step.scores(X, movies)) for step in model.steps]
    shares = -np.diff(np.stack([np.ones(len(X)), *above, np.zeros(len(X))]), axis=0)
    ranks: NDArray[np.intp] = np.argmax(shares, axis=0)
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

    Raises
    ------
    TaskError
        The features may have seen external data and the run is not marked; or as `call_test_clips` raises.
    """
    file = RunFile(out, subtask, name)
    refuse_existing(file.path, force=force)  # before the work, so that nobody waits for a refusal
    spec = zoo.find_model(model)
    sides = load_sides(store, manifest, backbone=backbone)
    data = sides.data
    pretrained = sides.pretrained
    if pretrained is not False and not external:
        origin = "were made with pretrained weights, which have seen external data"
        if not pretrained:
            origin = "were imported, and their provenance does not exclude external data"
        raise TaskError(f"features of {data.backbone} {origin}: mark the run with --external")
    called, selection = call_test_clips(sides, subtask, spec, seed=seed)
    excluded = sides.excluded
    record = {"run": name, "subtask": subtask, "external_data": external}
    record |= {"model": {"name": spec.name, **spec.settings()}, "seed": seed, "pretrained": pretrained}
    record |= {field: getattr(data, field) for field in ("store", "backbone", "features", "pool")}
    record |= {
        "manifest_sha256": manifest.digest(),
        "codebook": {"name": data.codebook.name, "digest": data.codebook.digest()},
        "dev_movies": sorted(set(data.movies[sides.dev].tolist())),
        "dev_clips": len(sides.dev),
        "test_clips": len(sides.test),
        "excluded": excluded,
        "selection": selection,
    }
    write_run(file, trec_lines(called, name) if subtask == "violence" else affect_lines(called), record)
    lines = []
    for label, selected in selection.items():
        chosen = "".join(f"{tried['name']}, " for tried in selected["candidates"] if tried["chosen"])
        lines.append(f"{label}: {chosen}of {selected['dev_clips']} labelled dev clips")
    missing = f", {len(excluded['test'])} missing" if excluded["test"] else ""
    lines.append(f"{file.path}: {len(sides.test)} test clips{missing}")
    remarks = [
        f"excluded {field['clip_id']}: {field['reason']}" for side in excluded.values() for field in side
    ]
    return Answer(record, text="\n".join(lines), remarks=remarks)


def _predicted(
    sides: DevAndTest, target: Target, spec: zoo.ModelSpec, seed: int
) -> tuple[dict[str, float], Selection]:
    """Fit on labelled dev clips; return each test clip's score, or rank of its class, and the selection."""
    data = sides.data
    requests = spec.requests()
    if target.kind not in spec.kinds:
        raise TaskError(f"model {spec.name} is not for {target.name}: it is for {', '.join(spec.kinds)}")
    if "present" in requests and not data.labels.concepts:
        raise TaskError(f"model {spec.name} reads concepts, and the codebook {CODEBOOK} has none")
    codes = target.of(data.labels)
    rows = sides.dev if "unlabelled" in requests else sides.dev[codes[sides.dev] != NOT_ASKED]
    y = codes[rows]
    X = data.read(spec.reads)
    n_classes = target.n_classes
    counts = [int((y == rank).sum()) for rank in range(n_classes)]
    if not all(counts):
        names = ["+".join(side) for side in target.classes]
        counted = ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))
        raise TaskError(
            f"{target.name} needs labelled dev clips of every class with features: found {counted}"
        )
    options: dict[str, Any] = {"movies": data.movies[rows]}
    if "present" in requests:
        options["present"] = data.present.loc[rows]
    tested = X[sides.test], data.movies[sides.test]
    model: zoo.Fitted | zoo.OrdinalModel
    scores: NDArray[Any]
    try:
        if target.kind == "ordinal":
            model = zoo.fit_ordinal(spec, seed, X[rows], y, n_levels=n_classes, **options)
            scores = called_ranks(model, *tested, n_classes=n_classes)
        else:
            model = zoo.fit(spec, seed, X[rows], y, **options)
            scores = model.scores(*tested)
    except ProtocolError as error:
        raise TaskError(f"{target.name}: {error}") from error
    labelled = rows[y != NOT_ASKED]
    return dict(zip(data.clip_ids[sides.test].tolist(), scores.tolist(), strict=True)), {
        "candidates": _candidates(model),
        "dev_clips": len(labelled),
        "dev_movies": len(np.unique(data.movies[labelled])),
    }


def _candidates(model: zoo.Fitted | zoo.OrdinalModel) -> list[dict[str, Any]]:
    """List what inner folds of movies tried; of ordered classes, step by step."""
    steps = model.steps if isinstance(model, zoo.OrdinalModel) else (model,)
    return [
        {
            "step": step,
            "name": candidate.name,
            "inner_loss": candidate.inner_loss if math.isfinite(candidate.inner_loss) else None,
            "chosen": candidate.chosen,
        }
        for step, fitted in enumerate(steps, start=1)
        for candidate in getattr(fitted.estimator, "candidates_", ())
    ]
