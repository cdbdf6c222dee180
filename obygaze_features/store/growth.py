"""Grow a sealed store: plan a stage that adds clips to it, in the place of one that is sealed."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from obygaze_features.errors import StoreError
from obygaze_features.io import remove_tree
from obygaze_features.store.format import (
    DIGESTS,
    FEATURES,
    RAGGED_ARRAYS,
    STAGING_SUFFIX,
    STATUSES,
    is_newer,
)
from obygaze_features.store.group import spec_of
from obygaze_features.store.provenance import NOT_NUMERICS, differences, same_numerics
from obygaze_features.store.records import GroupSpec, PlannedClip
from obygaze_features.store.stage import ParentStore, read_stage
from obygaze_features.store.store import Store, open_store, sealed_versions
from obygaze_features.store.store_files import guarded, parse_digests, whole


class MovedFrames(NamedTuple):
    """What a store of the next version had to write anew of a ragged group.

    Its frames lie one behind the other: a clip that is inserted moves those of all clips after it.

    Attributes
    ----------
    group
        Name of the group.
    first
        The first clip of the older version whose frames lie elsewhere now; "" if none do.
    clips
        Number of clips of the older version whose frames lie elsewhere.
    chunks, chunks_kept
        Number of the group's chunks of frames, times and indices, and of those that the older version has.
    """

    group: str
    first: str
    clips: int
    chunks: int
    chunks_kept: int


Plan = tuple[Sequence[PlannedClip], Sequence[GroupSpec], Mapping[str, object]]
"""Clips, groups and corpus of a stage: arguments of `Stage.open`."""


def plan_growth(
    parent: Store,
    version: str,
    clips: Sequence[PlannedClip],
    groups: Sequence[GroupSpec],
    corpus: Mapping[str, object],
) -> Plan:
    """Plan the next version of a store, with new clips.

    Its clips come first, in their order. Provenance fields that may differ are joined, and the corpus is that
    of the manifest if this has all clips.

    Parameters
    ----------
    version
        Version of the new store.
    clips
        Requested clips; some may be in the store already.
    groups
        Groups that extracting the clips would store.

    Raises
    ------
    StoreError
        If the store is not a folder, the version is not higher, the backbones or settings that determine
        their features differ, or a clip differs from the store's clip of that id.
    """
    where = parent.path
    if not guarded(parent.where, lambda: is_newer(version, parent.version)):
        raise StoreError(
            f"{parent.where}: version {version} does not follow {parent.version}; "
            "choose a higher one (--store-version)"
        )
    requested = {clip.clip_id: clip for clip in clips}
    planned = []
    for clip in parent.clips:
        before = clip.planned
        now = requested.pop(clip.clip_id, None)
        if now is None and clip.status == STATUSES[0]:
            raise StoreError(f"{where}: clip {clip.clip_id} is missing in it: add it to the manifest")
        if now is not None and (apart := differences(asdict(before), asdict(now))):
            raise StoreError(f"clip {clip.clip_id}: {', '.join(apart)} is not what it is in {where}")
        planned.append(before)
    is_disjoint = len(planned) + len(requested) == len(clips)
    about = {"name": parent.attributes["corpus"]["name"]}
    names = {group.name for group in groups}
    if names != set(parent.names):
        raise StoreError(
            f"{where} has features of {', '.join(parent.names)}, not of {', '.join(sorted(names))}: "
            "appending needs the same backbones"
        )
    kinds = [combined(group, [spec_of(parent[group.name]), group]) for group in groups]
    return [*planned, *requested.values()], kinds, {**corpus, **about} if is_disjoint else about


def moved_frames(older: Store, newer: Store) -> list[MovedFrames]:
    """Count what the next version of a store shares with it of each ragged group, and what was written anew.

    Parameters
    ----------
    older, newer
        A store, and one that has all of its clips.

    Examples
    --------
    >>> from obygaze_features import open_store
    >>> films = open_store("stores/films")
    >>> moved_frames(films, films)  # no group is ragged
    []
    """
    was, _ = parse_digests(whole(older.files, DIGESTS))
    now, _ = parse_digests(whole(newer.files, DIGESTS))
    counts = []
    for name in older:
        before, after = older[name], newer[name]
        if not (before.ragged and after.ragged):
            continue
        starts = dict(zip(after.clip_ids, (after.frame_ends - after.row_size).tolist(), strict=True))
        begun = (before.frame_ends - before.row_size).tolist()
        moved = [
            clip
            for clip, start, usable in zip(before.clip_ids, begun, before.usable, strict=True)
            if usable and starts[clip] != start
        ]
        folders = tuple(f"{FEATURES}/{name}/{array}/c/" for array in RAGGED_ARRAYS)
        chunks = [file for file in now if file.startswith(folders)]
        n_kept = sum(was.get(file) == now[file] for file in chunks)
        counts.append(MovedFrames(name, moved[0] if moved else "", len(moved), len(chunks), n_kept))
    return counts


def is_outlived(path: Path, parent: Path) -> bool:
    """Whether a stage is not one that grows `parent`, and has no clip that is not sealed."""
    if not path.is_dir():
        return False
    stage = read_stage(path)
    return stage.grows != ParentStore.of(parent) and not stage.n_writers() and not still_needed(path)


def still_needed(path: Path) -> str:
    """Return why a stage is still needed; empty if a sealed store beside it has all its clips."""
    stage = read_stage(path)
    if n_missing := len(stage.missing()):
        return f"{n_missing} of {len(stage.clips)} clips are still to do"
    sealed = sealed_versions(path.with_name(path.name.removesuffix(STAGING_SUFFIX)))
    status = stage.status()
    for folder in sealed:
        try:
            store = open_store(folder)
        except (StoreError, OSError):
            continue
        clips = {clip.clip_id: clip for clip in store.clips}
        if all(
            (clip := clips.get(clip_id)) is not None
            and (clip.status, dict(clip.digests)) == (entry.status, dict(entry.digests(stage.layout.names)))
            for clip_id, entry in status.items()
        ):
            return ""
    return "no sealed store has all of its clips" if sealed else "it is not sealed"


def discard(folder: Path) -> None:
    """Remove a store or a stage; renamed first, so that what is partly removed is not read as one."""
    doomed = folder.absolute().with_name(f".{folder.name}.{os.getpid()}.removing")
    folder.rename(doomed)
    remove_tree(doomed)


def combined(base: GroupSpec, specs: Sequence[GroupSpec]) -> GroupSpec:
    """Return a group of the features of all `specs`; those of `base`, but for fields that may differ.

    Raises
    ------
    StoreError
        If such features must not be mixed; names the fields.
    """
    for spec in specs:
        if fields := same_numerics(base.provenance, spec.provenance):
            raise StoreError(
                f"features of {base.name}: provenance differs in {', '.join(fields)}: "
                "such features must not be mixed"
            )
        if {*spec.arrays} != {*base.arrays} or spec.n_frames != base.n_frames:
            raise StoreError(
                f"features of {base.name}: the shapes of their arrays differ; "
                "compare them: obygaze store diff"
            )
    provenance = dict(base.provenance)
    for field in NOT_NUMERICS:
        if any(field in spec.provenance for spec in specs):
            provenance[field] = _joined(field, [spec.provenance.get(field) for spec in specs])
    return replace(base, provenance=provenance)


def _joined(field: str, values: list[Any]) -> object:
    """Return one value for a field that may differ: texts are joined, other values become unknown."""
    if not any(differences(values[0], value) for value in values):
        return values[0]
    texts = sorted({value for value in values if isinstance(value, str) and value})
    joint = {"licence": " AND ", "citation": "; ", "contact": "; "}.get(field)
    return None if joint is None else joint.join(texts)
