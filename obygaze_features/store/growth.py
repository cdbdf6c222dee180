"""Grow a sealed store: plan a stage that adds clips to it, in the place of one that is sealed."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from obygaze_features.errors import StoreError
from obygaze_features.identity import same_movies
from obygaze_features.io import remove_tree
from obygaze_features.schema import joined_licences
from obygaze_features.store.format import (
    DIGESTS,
    FEATURES,
    FETCH,
    RAGGED_ARRAYS,
    STAGING_SUFFIX,
    is_newer,
)
from obygaze_features.store.group import Group, spec_of
from obygaze_features.store.provenance import NOT_NUMERICS, differing_fields, same_numerics
from obygaze_features.store.records import GroupSpec, PlannedClip
from obygaze_features.store.stage import ParentStore, Stage, read_stage
from obygaze_features.store.store import Store, open_store, sealed_versions
from obygaze_features.store.store_files import absent_files, parse_digests, read_required, read_undamaged
from obygaze_features.text import counted


class MovedFrames(NamedTuple):
    """How much of a ragged group changed its place from one version of a store to the next.

    The frames of the clips lie one behind the other, so an inserted clip moves those of all clips after it.

    Attributes
    ----------
    group
        Name of the group.
    first
        The first clip of the older version whose frames lie elsewhere now; "" if none do.
    clips
        Number of clips of the older version whose frames lie elsewhere.
    chunks
        Number of the group's chunks of frames, times and indices in the newer version.
    chunks_kept
        How many of them the older version has, too.
    """

    group: str
    first: str
    clips: int
    chunks: int
    chunks_kept: int


class StagePlan(NamedTuple):
    """What a stage is made for: arguments of `Stage.open`.

    Attributes
    ----------
    clips, groups
        The clips, and the declarations of the groups of features.
    corpus
        Description of the clips: the name of the corpus, and perhaps the digest of the manifest.
    """

    clips: Sequence[PlannedClip]
    groups: Sequence[GroupSpec]
    corpus: Mapping[str, object]


def plan_growth(
    parent: Store,
    version: str,
    clips: Sequence[PlannedClip],
    groups: Sequence[GroupSpec],
    corpus: Mapping[str, object],
) -> StagePlan:
    """Plan the next version of a store: its clips in their order, followed by the new ones.

    Provenance fields that may differ are joined. The next version keeps the name of the store's corpus. The
    other fields of `corpus`, such as the digest of the manifest, are taken only if the requested clips
    include all clips of the store: else they do not describe the new store.

    Parameters
    ----------
    parent
        The store.
    version
        Version of the new store.
    clips
        Requested clips; some may be in the store already.
    groups
        Groups that extracting the clips would store.
    corpus
        Description of the requested clips.

    Raises
    ------
    StoreError
        If the store is not a folder, or a partial copy; the version is not higher, or is a patch that adds
        clips; the backbones or settings that determine their features differ; a clip differs from the store's
        clip of that id; or the name of a movie is spelled otherwise than in the store.
    """
    if absent_files(parent.files):
        raise StoreError(
            f"{parent.where}: a partial copy ({FETCH}), and its next version has all of its rows; pull the "
            "rest into it first (obygaze store pull)"
        )
    requested = {clip.clip_id: clip for clip in clips}
    _refuse_changed_clips(parent, requested)
    _refuse_other_backbones(parent, groups)

    # A group of the store and that of the new clips become one.
    all_groups = [combine_specs(group, [spec_of(parent[group.name]), group]) for group in groups]
    old_clips = {clip.clip_id: clip.planned for clip in parent.clips}
    new_clips = [clip for clip_id, clip in requested.items() if clip_id not in old_clips]
    refuse_two_spellings(
        (clip.movie for clip in (*old_clips.values(), *new_clips)),
        f"write the name in the manifest as {parent.where} has it",
        sealed={clip.movie for clip in old_clips.values()},
    )
    refuse_version(parent, version, n_new_clips=len(new_clips))
    all_clips = [*old_clips.values(), *new_clips]

    # What is known of the corpus describes the new store only if it is of all clips in it.
    described_corpus = {"name": parent.attributes["corpus"]["name"]}
    are_all_requested = len(all_clips) == len(clips)
    if are_all_requested:
        described_corpus = {**corpus, **described_corpus}
    return StagePlan(all_clips, all_groups, described_corpus)


def refuse_version(parent: Store, version: str, n_new_clips: int) -> None:
    """Raise a StoreError unless a version may be that of a store with more clips than its parent.

    It must be higher. A patch, such as 1.0.1 of 1.0.0, adds no clip: whoever reads it relies on it that the
    rows are those of 1.0.0.

    Parameters
    ----------
    parent
        The store that grows.
    version
        The version of the grown store.
    n_new_clips
        Number of clips that the parent lacks.
    """
    if not read_undamaged(parent.where, lambda: is_newer(version, parent.version)):
        raise StoreError(
            f"{parent.where}: version {version} does not follow {parent.version}; "
            "choose a higher one (--store-version)"
        )
    major, minor, _ = parent.version.split(".")
    is_patch = version.startswith(f"{major}.{minor}.")
    if is_patch and n_new_clips:
        raise StoreError(
            f"{parent.where}: {version} would be the version of other metadata, and "
            f"{counted(n_new_clips, 'clip is', 'clips are')} added; choose {major}.{int(minor) + 1}.0 "
            "(--store-version)"
        )


def _refuse_other_backbones(parent: Store, groups: Sequence[GroupSpec]) -> None:
    """Raise a StoreError unless groups are of the same backbones as those of a store that is to grow."""
    names = {group.name for group in groups}
    if names != set(parent.names):
        raise StoreError(
            f"{parent.path} has features of {', '.join(parent.names)}, not of {', '.join(sorted(names))}: "
            "appending needs the same backbones"
        )


def _refuse_changed_clips(parent: Store, requested: Mapping[str, PlannedClip]) -> None:
    """Refuse a clip that differs from the store's clip of that id; clips missing there must be requested.

    Raises
    ------
    StoreError
        There is such a clip.
    """
    for clip in parent.clips:
        requested_clip = requested.get(clip.clip_id)
        if requested_clip is None:
            if clip.status == "missing":
                raise StoreError(
                    f"{parent.path}: clip {clip.clip_id} is missing in it: add it to the manifest"
                )
            continue
        changed_fields = differing_fields(asdict(clip.planned), asdict(requested_clip))
        if changed_fields:
            raise StoreError(
                f"clip {clip.clip_id}: {', '.join(changed_fields)} is not what it is in {parent.path}"
            )


def refuse_two_spellings(movies: Iterable[str], advice: str, sealed: Collection[str] = ()) -> None:
    """Raise a StoreError if the names of two movies are spellings of one (`same_movies`).

    They are one film, which would be two in a store of all these movies. Models that leave out one of them
    would be trained on the other.

    Parameters
    ----------
    movies
        The movies of the clips; "" for a clip without a movie, which is skipped.
    advice
        What to do about it, for the message.
    sealed
        The movies of a store that grows. Two of them are never refused: no manifest can change them.
    """
    named_movies = [movie for movie in movies if movie]
    for movie, other_spelling in same_movies(named_movies).same:
        if movie in sealed and other_spelling in sealed:
            continue
        raise StoreError(
            f"movies {other_spelling!r} and {movie!r} are one name: one film would be two in the store; "
            f"{advice}"
        )


def clips_under_two_ids(store: Store) -> list[tuple[str, str]]:
    """Return the clips of a store that are there twice: the id of each, and the first id of the same clip.

    Such clips have the film, the times and the features of another clip to the bit. They come of a manifest
    whose ids were renamed, by which the store grew, or of another store of the same clips.

    Parameters
    ----------
    store
        The store. Clips without a film, such as texts, and those without features are left out.
    """
    table = store.table
    first_id: dict[tuple[object, ...], str] = {}  # film, times and digests -> the first clip that has them
    repeated = []
    for row, clip_id in enumerate(table.clip_ids):
        digests = tuple(bytes(column[row]) for column in table.digests.values())  # empty without features
        if not table.movies[row] or not any(digests):
            continue
        # Times are compared as bytes, as NaN, which stands for a whole file, is equal to no number.
        times = (table.start_s[row].tobytes(), table.end_s[row].tobytes())
        first = first_id.setdefault((table.movies[row], *times, *digests), clip_id)
        if first != clip_id:
            repeated.append((clip_id, first))
    return repeated


def moved_frames(older: Store, newer: Store) -> list[MovedFrames]:
    """Compare where the frames of each ragged group lie in two versions of a store.

    In a ragged group the frames of all clips follow each other, so a clip added in the middle moves those
    behind it, and their chunks have to be copied again.

    Parameters
    ----------
    older, newer
        A store, and a later version that has all of its clips.

    Returns
    -------
    list of MovedFrames
        For each group that is ragged in both: how many clips moved, and how many chunks stayed the same.

    Examples
    --------
    >>> from obygaze_features import open_store
    >>> films = open_store("stores/films")
    >>> moved_frames(films, films)  # no group is ragged
    []
    """
    older_digests = parse_digests(read_required(older.files, DIGESTS)).digests
    newer_digests = parse_digests(read_required(newer.files, DIGESTS)).digests
    counts = []
    for name in older:
        are_both_ragged = older[name].ragged and newer[name].ragged
        if not are_both_ragged:
            continue

        # The files of the newer version with frames, and those of them that the older version has, too.
        folders_of_chunks = tuple(f"{FEATURES}/{name}/{array}/c/" for array in RAGGED_ARRAYS)
        chunks = [file for file in newer_digests if file.startswith(folders_of_chunks)]
        same_chunks = [file for file in chunks if older_digests.get(file) == newer_digests[file]]

        moved_clips = _moved_clips(older[name], newer[name])
        counts.append(
            MovedFrames(
                group=name,
                first=moved_clips[0] if moved_clips else "",
                clips=len(moved_clips),
                chunks=len(chunks),
                chunks_kept=len(same_chunks),
            )
        )
    return counts


def _moved_clips(older: Group, newer: Group) -> list[str]:
    """Return the clips whose frames lie at another place in the newer version of a ragged group.

    Clips without features have no frames and are left out. The newer version has all clips of the older one.
    """
    older_starts = _frame_starts(older)
    newer_starts = _frame_starts(newer)
    clips_with_features = np.array(older.clip_ids)[older.usable].tolist()
    return [clip for clip in clips_with_features if newer_starts[clip] != older_starts[clip]]


def _frame_starts(group: Group) -> dict[str, int]:
    """Return clip id -> number of the clip's first frame in a ragged group, counted over all clips."""
    starts = (group.frame_ends - group.row_size).tolist()
    return dict(zip(group.clip_ids, starts, strict=True))


def is_replaceable(path: Path, parent: Path) -> bool:
    """Return whether a stage at `path` may be replaced by a new stage that extends the store `parent`.

    It may if it extends another parent store, no process writes to it, and nothing in it would be lost: a
    sealed store holds all of its clips (`why_needed`).

    Parameters
    ----------
    path
        Folder of the stage, which may not exist.
    parent
        Folder of the store that the new stage would extend.
    """
    if not path.is_dir():
        return False
    stage = read_stage(path)
    has_other_parent = stage.parent_store != ParentStore.of(parent)
    is_written_to = stage.n_writers() > 0
    return has_other_parent and not is_written_to and not why_needed(path)


def why_needed(path: Path) -> str:
    """Return why a stage must not be removed; "" if a sealed store beside it has all of its clips.

    Parameters
    ----------
    path
        Folder of the stage, `NAME.staging`; the stores beside it are `NAME-VERSION`.
    """
    stage = read_stage(path)
    n_missing = len(stage.missing())
    if n_missing:
        return f"{n_missing} of {counted(len(stage.clips), 'clip')} are still to do"

    name = path.name.removesuffix(STAGING_SUFFIX)
    folders_of_stores = sealed_versions(path.with_name(name))
    for folder in folders_of_stores:
        try:
            has_clips = _has_clips_of(open_store(folder), stage)
        except (StoreError, OSError):
            continue
        if has_clips:
            return ""
    return "no sealed store has all of its clips" if folders_of_stores else "it is not sealed"


def _has_clips_of(store: Store, stage: Stage) -> bool:
    """Return whether a store has all clips of a stage, with the same statuses and the same features.

    A partial copy does not: its table names clips whose features it leaves out.
    """
    if absent_files(store.files):
        return False
    clips = {clip.clip_id: clip for clip in store.clips}
    for clip_id, entry in stage.status().items():
        clip = clips.get(clip_id)
        if clip is None or clip.status != entry.status:
            return False
        digests_in_stage = entry.digests(stage.layout.names)
        features_differ = dict(clip.digests) != dict(digests_in_stage)
        if features_differ:
            return False
    return True


def discard(folder: Path) -> None:
    """Remove a store or a stage.

    It is renamed first, so that nobody opens one that is partly removed.
    """
    doomed = folder.absolute().with_name(f".{folder.name}.{os.getpid()}.removing")
    folder.rename(doomed)
    remove_tree(doomed)


def combine_specs(base: GroupSpec, specs: Sequence[GroupSpec]) -> GroupSpec:
    """Return the declaration of a group that holds the features of several: `base` with joined provenance.

    Provenance fields that determine the numbers must be equal; the others are joined field by field.

    Parameters
    ----------
    base
        The declaration whose name and arrays the result has.
    specs
        Declarations of all groups whose features are put together.

    Raises
    ------
    StoreError
        If provenance or shapes of the groups forbid this; the message names the fields.
    """
    for spec in specs:
        forbidding_fields = same_numerics(base.provenance, spec.provenance)  # those that differ
        if forbidding_fields:
            raise StoreError(
                f"features of {base.name}: provenance differs in {', '.join(forbidding_fields)}: "
                "such features must not be mixed"
            )
        if {*spec.arrays} != {*base.arrays} or spec.n_frames != base.n_frames:
            raise StoreError(
                f"features of {base.name}: the shapes of their arrays differ; "
                "compare them: obygaze store diff"
            )

    provenance = dict(base.provenance)
    for field in NOT_NUMERICS:  # such as licence, citation and contact
        if any(field in spec.provenance for spec in specs):
            provenance[field] = _joined(field, [spec.provenance.get(field) for spec in specs])
    return replace(base, provenance=provenance)


def _joined(field: str, values: list[Any]) -> object:
    """Join the values that several groups have in one provenance field.

    If all are equal, that value is returned. Otherwise licences all apply (`joined_licences`), and citations
    and contacts are joined by "; "; values of other fields become None, which means unknown.
    """
    all_equal = not any(differing_fields(values[0], value) for value in values)
    if all_equal:
        return values[0]

    texts = sorted({value for value in values if isinstance(value, str) and value})
    if field == "licence":
        return joined_licences(texts)
    return "; ".join(texts) if field in ("citation", "contact") else None
