"""From a store and a manifest to what estimators learn from: features, labels, movies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import ObygazeError
from obygaze_features.manifest import Manifest
from obygaze_features.store import Group, Store
from obygaze_models.protocol import Task

Features = Literal["pooled", "frames", "tokens"]
Pool = Literal["max", "mean"]


class DatasetError(ObygazeError):
    """A store and a manifest don't give the clips of a task."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A clip of the task that no model sees, and why."""

    clip_id: str
    reason: str


@dataclass(frozen=True, eq=False)
class Dataset:
    """The clips of a task, in the manifest's order.

    Attributes
    ----------
    X : ndarray of float32, shape [N, D]
        One vector a clip.
    y : ndarray of int64, shape [N]
        1 for clips of a positive level, 0 for the others.
    clip_ids, movies, levels : ndarray of str, shape [N]
        `movies` are the groups of every split.
    backbone, features, pool : str
        The store's group and array, and how each clip's rows became one vector ("as stored" for pooled).
    store : str
        The store's fingerprint.
    n_manifest : int
        Clips of the manifest under its label policy.
    n_unlabelled, n_other_levels : int
        Clips of the manifest without a level, and with one that no task at hand has.
    excluded : tuple of Exclusion
        Clips of the task without usable features: the same for every model, never replaced.
    n_unknown : int
        Clips of the store that the manifest does not have.
    n_partial : int
        Clips kept though the store says that a part of their video could not be read.
    """

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    clip_ids: NDArray[np.str_]
    movies: NDArray[np.str_]
    levels: NDArray[np.str_]
    backbone: str
    features: Features
    pool: str
    store: str
    n_manifest: int
    n_unlabelled: int
    n_other_levels: int
    excluded: tuple[Exclusion, ...]
    n_unknown: int
    n_partial: int


def load_dataset(
    store: Store,
    manifest: Manifest,
    *tasks: Task,
    backbone: str | None = None,
    features: Features | None = None,
    pool: Pool = "max",
) -> Dataset:
    """Load the features and labels of every clip that belongs to one of the tasks.

    Parameters
    ----------
    store : Store
    manifest : Manifest
        Its levels are taken as they are: apply a label policy before.
    *tasks : Task
        One task, or those of training and of test; they must agree on the positive levels.
    backbone : str, optional
        The store's group; may be left out when there is one only.
    features : {"pooled", "frames", "tokens"}, optional
        The array to read; by default the first of them that is stored.
    pool : {"max", "mean"}
        How frames or tokens become one vector. The maximum of each feature over time is what the paper's
        adaptive max pooling to length 1 takes.

    Raises
    ------
    DatasetError
        The backbone or array is not in the store or not named, the tasks disagree, or no clip is left.
    """
    positives = set(tasks[0].positives)
    for task in tasks[1:]:
        if set(task.positives) != positives:
            raise DatasetError(f"tasks {tasks[0].name} and {task.name} have different positive levels")
    group = _find_group(store, backbone)
    array = _find_array(store, group, features)

    wanted = {level for task in tasks for level in task.levels}
    row_of = {clip_id: row for row, clip_id in enumerate(group.clip_ids)}
    reasons = {
        clip.clip_id: f"{clip.status}: {clip.reason}" if clip.reason else clip.status for clip in store.clips
    }
    usable = np.asarray(group.usable, dtype=bool)
    kept, rows, excluded = [], [], []
    for clip in manifest:
        if clip.level not in wanted:
            continue
        row = row_of.get(clip.clip_id)
        if row is None:
            excluded.append(Exclusion(clip.clip_id, "not in the store"))
        elif not usable[row]:
            excluded.append(Exclusion(clip.clip_id, reasons[clip.clip_id]))
        else:
            kept.append(clip)
            rows.append(row)
    if not kept:
        raise DatasetError(_nothing_left(store, manifest, sorted(wanted), excluded))

    known = {clip.clip_id for clip in manifest}
    unlabelled = sum(clip.level is None for clip in manifest)
    return Dataset(
        X=read_features(group, array, pool, np.array(rows, dtype=np.intp)),
        y=np.array([clip.level in positives for clip in kept], dtype=np.int64),
        clip_ids=np.array([clip.clip_id for clip in kept], dtype=str),
        movies=np.array([clip.movie for clip in kept], dtype=str),
        levels=np.array([str(clip.level) for clip in kept], dtype=str),
        backbone=group.name,
        features=array,
        pool="as stored" if array == "pooled" else pool,
        store=store.fingerprint,
        n_manifest=len(manifest),
        n_unlabelled=unlabelled,
        n_other_levels=len(manifest) - unlabelled - len(kept) - len(excluded),
        excluded=tuple(excluded),
        n_unknown=len(row_of.keys() - known),
        n_partial=sum(reasons[clip.clip_id].startswith("partial") for clip in kept),
    )


def _find_group(store: Store, backbone: str | None) -> Group:
    names = ", ".join(store.names)
    if backbone is None:
        if len(store.names) != 1:
            raise DatasetError(f"store {store.name} has several backbones ({names}): name one (--backbone)")
        return store[store.names[0]]
    if backbone not in store.names:
        raise DatasetError(f"store {store.name} has no backbone {backbone!r}: it has {names}")
    return store[backbone]


def _find_array(store: Store, group: Group, features: Features | None) -> Features:
    preferred: tuple[Features, ...] = ("pooled", "frames", "tokens")
    for array in preferred if features is None else (features,):
        if array in group.arrays:
            return array
    stored = ", ".join(group.arrays)
    raise DatasetError(
        f"backbone {group.name} of store {store.name} has no {features} features: it has {stored}"
    )


def _nothing_left(
    store: Store, manifest: Manifest, levels: Sequence[str], excluded: Sequence[Exclusion]
) -> str:
    """Say why no clip is left, which is nearly always a wrong pair of files or a manifest without levels."""
    if not excluded:
        return (
            f"the manifest has no clip of level {', '.join(levels)} among its {len(manifest)}: "
            "are its levels filled in?"
        )
    first = excluded[0]
    return (
        f"none of the manifest's {len(excluded)} clips of the task has features in store {store.name} "
        f"(the first: {first.clip_id}, {first.reason}): is this the store made from this manifest?"
    )


def read_features(group: Group, array: Features, pool: Pool, rows: NDArray[np.intp]) -> NDArray[np.float32]:
    """Read one vector for each of the rows [N, D], block by block, so that tokens need not fit in memory.

    Raises
    ------
    DatasetError
        A feature is not finite, which sealing refuses: something else wrote the store.
    """
    if array == "pooled":
        X = np.ascontiguousarray(group.pooled()[rows], dtype=np.float32)
    else:
        vectors = []
        for _, block in group.blocks(array):
            wide = block.astype(np.float32)
            vectors.append(wide.max(axis=1) if pool == "max" else wide.mean(axis=1))
        X = np.ascontiguousarray(np.concatenate(vectors)[rows])
    bad = ~np.isfinite(X).all(axis=1)
    if bad.any():
        clip = group.clip_ids[rows[int(np.flatnonzero(bad)[0])]]
        raise DatasetError(
            f"backbone {group.name}, {array} of clip {clip}: a feature is not finite ({int(bad.sum())} such "
            "clips); run: obygaze store verify --full"
        )
    return X
