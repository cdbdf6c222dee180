"""Create, extend and read the metadata files of a stage (not its chunks or journals)."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from obygaze_features.errors import StoreError
from obygaze_features.io import PARTIAL_SUFFIX, encode_line, locked, read_lines, sync, sync_tree, write_whole
from obygaze_features.store.arrays import arrays_metadata, group_metadata
from obygaze_features.store.format import (
    ATTRIBUTE,
    FEATURE_ARRAYS,
    JOURNALS,
    KNOWN_VERSIONS,
    PARTIALS,
    PLAN,
    PROVENANCE,
    SPEC_VERSION,
    STAGE_ZARR,
    ZARR_METADATA,
    spec_version,
)
from obygaze_features.store.provenance import validate_corpus
from obygaze_features.store.records import ArraySpec, GroupSpec, PlannedClip


def create(
    path: Path, clips: tuple[PlannedClip, ...], groups: tuple[GroupSpec, ...], corpus: dict[str, object]
) -> None:
    """Create a stage atomically: write it under another name, then rename it.

    Processes that want the same stage at the same time wait for each other; the first one makes it.
    """
    if path.exists() and not path.is_dir():
        raise StoreError(f"{path}: a file is in the way; choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent, wait=True):
        if path.is_dir() and any(path.iterdir()):
            return
        draft = path.with_name(path.name + PARTIAL_SUFFIX)
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        try:
            for folder in (JOURNALS, PARTIALS):
                (draft / folder).mkdir()
            for group in groups:
                for name in group.clip_arrays():
                    (draft / STAGE_ZARR / group.name / name).mkdir(parents=True)
                attributes: dict[str, object] = {PROVENANCE: dict(group.provenance)}
                write_whole(draft / STAGE_ZARR / group.name / ZARR_METADATA, group_metadata(attributes))
            write_plan(draft, clips, groups, corpus)
            sync_tree(draft)
            draft.rename(path)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        sync(path.parent)


def write_plan(
    path: Path, clips: tuple[PlannedClip, ...], groups: tuple[GroupSpec, ...], corpus: dict[str, object]
) -> None:
    """Write all that depends on the plan, the plan last: rows without a plan do no harm, the reverse does."""
    version = spec_version(stored_arrays(clips, groups))
    about: dict[str, object] = {ATTRIBUTE: {"spec_version": version, "corpus": corpus}}
    metadata = {path / STAGE_ZARR / ZARR_METADATA: group_metadata(about)}
    metadata |= arrays_metadata(path / STAGE_ZARR, groups, len(clips))
    for file, data in metadata.items():
        write_whole(file, data)
    lines = (encode_line({"row": row, **_plan_entry(clip)}) for row, clip in enumerate(clips))
    write_whole(path / PLAN, b"".join(lines))


def stored_arrays(clips: tuple[PlannedClip, ...], groups: tuple[GroupSpec, ...]) -> set[str]:
    """Name the arrays that a store of these clips and groups has."""
    texts = {"text"} if any(clip.text is not None for clip in clips) else set()
    return {"clip", "status"}.union(texts, *(group.clip_arrays() for group in groups))


def _plan_entry(clip: PlannedClip) -> dict[str, object]:
    entry = asdict(clip)
    if clip.text is None:
        del entry["text"]
    return entry


def read_files(path: Path) -> tuple[tuple[PlannedClip, ...], tuple[GroupSpec, ...], dict[str, object]]:
    """Read the plan, the groups and the corpus of a stage.

    Raises
    ------
    StoreError
        If there is no stage, it is of another format, or its files are damaged.
    """
    if not path.exists():
        raise StoreError(f"{path}: there is no such stage; obygaze extract makes it")
    if not (path / PLAN).is_file() or not (path / STAGE_ZARR).is_dir():
        raise StoreError(f"{path}: not a staging folder (no {PLAN} or {STAGE_ZARR} in it)")
    try:
        about = _metadata(path / STAGE_ZARR)["attributes"][ATTRIBUTE]
        names = sorted(node.name for node in (path / STAGE_ZARR).iterdir() if node.is_dir())
        groups = tuple(_read_group(path / STAGE_ZARR / name) for name in names)
        version, corpus = about["spec_version"], validate_corpus(about["corpus"])
    except (KeyError, TypeError, IndexError, RecursionError) as error:
        raise StoreError(f"{path / STAGE_ZARR}: damaged metadata; begin another stage") from error
    if version not in KNOWN_VERSIONS:
        raise StoreError(
            f"{path}: a stage of format {version}, this obygaze writes {SPEC_VERSION}; "
            "seal it with the one it is from"
        )
    return _read_plan(path / PLAN), groups, corpus


def _read_plan(path: Path) -> tuple[PlannedClip, ...]:
    clips = []
    for number, entry in read_lines(path):
        match entry:
            case {
                "row": int(row),
                "clip_id": str(clip_id),
                "movie": str(movie),
                "start_s": start_s,
                "end_s": end_s,
                **rest,
            } if (
                row == number - 1
                and isinstance(start_s, float | None)
                and isinstance(end_s, float | None)
                and isinstance(text := rest.get("text"), str | None)
            ):
                clips.append(PlannedClip(clip_id, movie, start_s, end_s, text))
            case _:
                raise StoreError(
                    f"{path}, line {number}: damaged; rows can no longer be told apart: begin another stage"
                )
    return tuple(clips)


def _metadata(node: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((node / ZARR_METADATA).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{node / ZARR_METADATA}: damaged; begin another stage") from error
    return found


def _read_group(folder: Path) -> GroupSpec:
    arrays = {
        name: _metadata(folder / name) for name in (*FEATURE_ARRAYS, "time_s") if (folder / name).is_dir()
    }
    specs = tuple(
        ArraySpec(name, tuple(arrays[name]["shape"][1:]), arrays[name]["data_type"])
        for name in FEATURE_ARRAYS
        if name in arrays
    )
    provenance = _metadata(folder)["attributes"][PROVENANCE]
    return GroupSpec(folder.name, specs, arrays["time_s"]["shape"][1], provenance)
