"""Create, extend and read the metadata of a stage: stage.json and the plan (not its rows or journals)."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import msgspec

from obygaze_features.checked_lines import checked_entry, encode_line
from obygaze_features.errors import StoreError
from obygaze_features.io import (
    PARTIAL_SUFFIX,
    json_bytes,
    make_folder,
    remove_tree,
    sha256_of,
    sync,
    write_whole,
)
from obygaze_features.locks import locked, require_locks
from obygaze_features.store.format import DIGESTS, JOURNALS, LAYOUT, PLAN, ROWS, STAGE, TABLE
from obygaze_features.store.journal import UNREADABLE
from obygaze_features.store.provenance import validate_corpus
from obygaze_features.store.records import (
    ArraySpec,
    GroupSpec,
    PlannedClip,
    StoredClip,
    parse_clips_csv,
)
from obygaze_features.store.store_files import FolderFiles, whole

OLD_LAYOUT = "stage.zarr"
"""File that stages of the first layout have in place of stage.json."""


class _Array(msgspec.Struct):
    name: str
    shape: tuple[int, ...]
    dtype: str


class _Group(msgspec.Struct):
    name: str
    n_frames: int
    arrays: list[_Array]
    provenance: dict[str, Any]


class Parent(msgspec.Struct, frozen=True):
    """Sealed store that a stage grows: its folder and its fingerprint."""

    path: str
    fingerprint: str


def parent_of(folder: Path) -> Parent:
    """Return the stage's record of the sealed store in a folder."""
    return Parent(str(folder.resolve()), sha256_of(whole(FolderFiles(folder), DIGESTS)))


def parent_clips(parent: Parent) -> tuple[StoredClip, ...]:
    """Read the clips of a stage's parent store.

    Raises
    ------
    StoreError
        If the store is missing or has changed.
    """
    folder = Path(parent.path)
    if not (folder / DIGESTS).is_file() or parent_of(folder) != parent:
        raise StoreError(f"{folder}: gone, or no longer the store that a stage was begun to grow (--append)")
    return parse_clips_csv(whole(FolderFiles(folder), TABLE), f"{folder}/{TABLE}")


class _Stage(msgspec.Struct):
    layout: int
    groups: Annotated[list[_Group], msgspec.Meta(min_length=1)]
    corpus: dict[str, Any]
    parent: Parent | None = None


class _Layout(msgspec.Struct):
    layout: int


class _Planned(msgspec.Struct):
    row: int
    clip_id: str
    movie: str
    start_s: float | None
    end_s: float | None
    text: str | None = None


_PLAN = msgspec.json.Decoder(_Planned)


def create(
    path: Path,
    clips: tuple[PlannedClip, ...],
    groups: tuple[GroupSpec, ...],
    corpus: Mapping[str, object],
    parent: Parent | None,
) -> None:
    """Create a stage atomically: write it under another name, then rename it.

    Processes that create the same stage at the same time wait for each other; the first one creates it.
    """
    if path.exists() and not path.is_dir():
        raise StoreError(f"{path}: a file is in the way; choose another name")
    require_locks(path)
    make_folder(path.parent)
    with locked(path.parent, wait=True):
        if path.is_dir() and any(path.iterdir()):
            return
        draft = path.with_name(path.name + PARTIAL_SUFFIX)
        remove_tree(draft, ignore_errors=True)
        draft.mkdir()
        try:
            for folder in (JOURNALS, ROWS):
                (draft / folder).mkdir()
            write_stage(draft, groups, corpus, parent)
            write_plan(draft, clips)  # forces the names of all that is in the draft, too
            draft.rename(path)
        except BaseException:
            remove_tree(draft, ignore_errors=True)
            raise
        sync(path.parent)


def write_stage(
    path: Path, groups: tuple[GroupSpec, ...], corpus: Mapping[str, object], parent: Parent | None
) -> None:
    """Write stage.json."""
    said = [
        {
            "name": group.name,
            "n_frames": group.n_frames,
            "arrays": [asdict(spec) for spec in group.arrays],
            "provenance": dict(group.provenance),
        }
        for group in sorted(groups, key=lambda group: group.name)
    ]
    document = {"layout": LAYOUT, "groups": said, "corpus": dict(corpus)}
    if parent is not None:
        document["parent"] = msgspec.to_builtins(parent)
    write_whole(path / STAGE, json_bytes(document))


def write_plan(path: Path, clips: tuple[PlannedClip, ...]) -> None:
    """Write the plan: row -> clip."""
    lines = (encode_line({"row": row, **_plan_entry(clip)}) for row, clip in enumerate(clips))
    write_whole(path / PLAN, b"".join(lines))


def stored_arrays(clips: tuple[PlannedClip, ...], groups: tuple[GroupSpec, ...]) -> set[str]:
    """Return the names of the arrays in a store of these clips and groups."""
    texts = {"text"} if any(clip.text is not None for clip in clips) else set()
    return {"clip", "status"}.union(texts, *(group.clip_arrays() for group in groups))


def array_names(groups: tuple[GroupSpec, ...]) -> tuple[str, ...]:
    """Return the names `group/array` of all arrays with rows, in the order of a journal's digests."""
    return tuple(f"{group.name}/{array}" for group in groups for array in sorted(group.clip_arrays()))


def _plan_entry(clip: PlannedClip) -> dict[str, object]:
    entry = asdict(clip)
    if clip.text is None:
        del entry["text"]
    return entry


def read_files(
    path: Path,
) -> tuple[tuple[PlannedClip, ...], tuple[GroupSpec, ...], dict[str, object], Parent | None]:
    """Read the plan, the groups, the corpus and the parent of a stage.

    Raises
    ------
    StoreError
        If there is no stage, it has another layout, or its files are damaged.
    """
    if not path.exists():
        raise StoreError(f"{path}: there is no such stage; obygaze extract makes it")
    if (path / OLD_LAYOUT).is_dir():
        raise StoreError(
            f"{path}: begun by an older obygaze, whose stages this one does not read: seal it with that one "
            "(obygaze store seal NAME --allow-missing), or remove it (obygaze store rm) and extract again"
        )
    if not (path / PLAN).is_file() or not (path / STAGE).is_file():
        raise StoreError(f"{path}: not a staging folder (no {PLAN} or {STAGE} in it)")
    data = (path / STAGE).read_bytes()
    try:
        layout = msgspec.json.decode(data, type=_Layout).layout
        if layout != LAYOUT:
            raise StoreError(
                f"{path}: a stage of layout {layout}, this obygaze writes {LAYOUT}: seal it with the obygaze "
                "that it is from, or remove it (obygaze store rm) and extract again"
            )
        said = msgspec.json.decode(data, type=_Stage)
        groups = tuple(
            GroupSpec(
                group.name,
                tuple(ArraySpec(array.name, array.shape, array.dtype) for array in group.arrays),
                group.n_frames,
                group.provenance,
            )
            for group in said.groups
        )
        corpus = validate_corpus(said.corpus)
    except UNREADABLE as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{path / STAGE}: damaged; begin another stage") from error
    return _read_plan(path / PLAN), groups, corpus, said.parent


def _read_plan(path: Path) -> tuple[PlannedClip, ...]:
    clips = []
    for row, line in enumerate(path.read_bytes().splitlines()):
        text = checked_entry(line)
        try:
            said = None if text is None else _PLAN.decode(text)
        except UNREADABLE:
            said = None
        if said is None or said.row != row:
            raise StoreError(
                f"{path}, line {row + 1}: damaged; rows can no longer be told apart: begin another stage"
            )
        clips.append(PlannedClip(said.clip_id, said.movie, said.start_s, said.end_s, said.text))
    if not clips:
        raise StoreError(f"{path}: no clips; begin another stage")
    return tuple(clips)
