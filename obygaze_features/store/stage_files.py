"""Create, extend and read the files of a stage except its rows: stage.json, the plan, the journals.

A clip is done only if a valid journal line records it. The line is written after the bytes are on the disk.
Every writer has its own journal. Order comes from `attempt`, not from the order of files or from clocks.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from obygaze_features.errors import StoreError
from obygaze_features.io import (
    PARTIAL_SUFFIX,
    checked_entry,
    encode_line,
    json_bytes,
    make_folder,
    remove_tree,
    sha256_of,
    sync,
    write_whole,
)
from obygaze_features.locks import locked, require_locks
from obygaze_features.store.format import DIGESTS, DONE, JOURNALS, LAYOUT, PLAN, ROWS, STAGE, TABLE
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

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""Exceptions raised by damaged or malicious JSON."""

SHA256_HEX, CRC32C_HEX = 64, 8


# --- stage.json and the plan
# ---------------------------------------------------------------------------
class _StageArray(msgspec.Struct):
    name: str
    shape: tuple[int, ...]
    dtype: str


class _StageGroup(msgspec.Struct):
    name: str
    n_frames: int
    arrays: list[_StageArray]
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


class _StageRecord(msgspec.Struct):
    layout: int
    groups: Annotated[list[_StageGroup], msgspec.Meta(min_length=1)]
    corpus: dict[str, Any]
    parent: Parent | None = None


class _LayoutRecord(msgspec.Struct):
    layout: int


class _PlanLine(msgspec.Struct):
    row: int
    clip_id: str
    movie: str
    start_s: float | None
    end_s: float | None
    text: str | None = None


_PLAN = msgspec.json.Decoder(_PlanLine)


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
            write_plan(draft, clips)  # also forces the names of the draft's files to the disk
            draft.rename(path)
        except BaseException:
            remove_tree(draft, ignore_errors=True)
            raise
        sync(path.parent)


def write_stage(
    path: Path, groups: tuple[GroupSpec, ...], corpus: Mapping[str, object], parent: Parent | None
) -> None:
    """Write stage.json."""
    records = [
        {
            "name": group.name,
            "n_frames": group.n_frames,
            "arrays": [asdict(spec) for spec in group.arrays],
            "provenance": dict(group.provenance),
        }
        for group in sorted(groups, key=lambda group: group.name)
    ]
    document = {"layout": LAYOUT, "groups": records, "corpus": dict(corpus)}
    if parent is not None:
        document["parent"] = msgspec.to_builtins(parent)
    write_whole(path / STAGE, json_bytes(document))


def write_plan(path: Path, clips: tuple[PlannedClip, ...]) -> None:
    """Write the plan: row -> clip."""
    lines = (encode_line({"row": row, **_plan_entry(clip)}) for row, clip in enumerate(clips))
    write_whole(path / PLAN, b"".join(lines))


def stored_array_names(clips: tuple[PlannedClip, ...], groups: tuple[GroupSpec, ...]) -> set[str]:
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
        layout = msgspec.json.decode(data, type=_LayoutRecord).layout
        if layout != LAYOUT:
            raise StoreError(
                f"{path}: a stage of layout {layout}, this obygaze writes {LAYOUT}: seal it with the obygaze "
                "that it is from, or remove it (obygaze store rm) and extract again"
            )
        stage = msgspec.json.decode(data, type=_StageRecord)
        groups = tuple(
            GroupSpec(
                group.name,
                tuple(ArraySpec(array.name, array.shape, array.dtype) for array in group.arrays),
                group.n_frames,
                group.provenance,
            )
            for group in stage.groups
        )
        corpus = validate_corpus(stage.corpus)
    except UNREADABLE as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{path / STAGE}: damaged; begin another stage") from error
    return _read_plan(path / PLAN), groups, corpus, stage.parent


def _read_plan(path: Path) -> tuple[PlannedClip, ...]:
    clips = []
    for row, line in enumerate(path.read_bytes().splitlines()):
        text = checked_entry(line)
        try:
            planned = None if text is None else _PLAN.decode(text)
        except UNREADABLE:
            planned = None
        if planned is None or planned.row != row:
            raise StoreError(
                f"{path}, line {row + 1}: damaged; rows can no longer be told apart: begin another stage"
            )
        clips.append(
            PlannedClip(planned.clip_id, planned.movie, planned.start_s, planned.end_s, planned.text)
        )
    if not clips:
        raise StoreError(f"{path}: no clips; begin another stage")
    return tuple(clips)


# --- journals: finished clips, the places of their rows, and the digests of their bytes
# ---------------------------------------------------------------------------
# gc=False: the garbage collector would visit all lines of a large stage again and again.
class _Line(msgspec.Struct, gc=False):
    row: int
    id: str
    status: Literal["ok", "partial", "failed", "missing"]
    reason: str
    attempt: int
    slot: int
    sha256: str
    crc32c: str
    source: dict[str, int | float | str]


_DECODER = msgspec.json.Decoder(_Line)
_HEX = re.compile("[0-9a-f]*")


class JournalEntry(msgspec.Struct, frozen=True, gc=False):
    """Line of a journal.

    Attributes
    ----------
    status
        ok, partial or failed; `missing` annuls every line of this clip with the same or a lower attempt.
    attempt
        1 for the first try at this clip; 0 if its rows are in the parent store.
    writer, slot
        Writer whose files hold the clip's rows, and the position in these files; -1 for a clip without
        features.
    names
        The stage's arrays, `group/array`, in the order of `sha256` and `crc32c`.
    sha256, crc32c
        Concatenated SHA-256 (64 hexadecimal digits each) and CRC-32C (8 each) of the bytes of this clip's
        rows (little-endian, C order); empty without features.
    """

    row: int
    clip_id: str
    status: str
    reason: str = ""
    attempt: int = 1
    source: Mapping[str, object] = msgspec.field(default_factory=dict)
    writer: str = ""
    slot: int = -1
    names: tuple[str, ...] = ()
    sha256: str = ""
    crc32c: str = ""

    @property
    def digests(self) -> dict[str, str]:
        """`group/array` -> SHA-256 of the bytes of this clip's row."""
        if not self.sha256:
            return {}
        return {name: self.sha256_of(position) for position, name in enumerate(self.names)}

    def sha256_of(self, position: int) -> str:
        """Return the digest of the row of array `names[position]`."""
        return self.sha256[SHA256_HEX * position : SHA256_HEX * (position + 1)]

    def crc32c_of(self, position: int) -> int:
        """Return the checksum of the row of array `names[position]`."""
        return int(self.crc32c[CRC32C_HEX * position : CRC32C_HEX * (position + 1)], 16)

    def record(self) -> dict[str, object]:
        """Return the entry in the form written to the journal."""
        return {
            "row": self.row,
            "id": self.clip_id,
            "status": self.status,
            "reason": self.reason,
            "attempt": self.attempt,
            "slot": self.slot,
            "sha256": self.sha256,
            "crc32c": self.crc32c,
            "source": dict(self.source),
        }


def read_entry(line: bytes, names: tuple[str, ...], writer: str) -> JournalEntry | None:
    """Read a line of a writer's journal, without its line break; None if it is damaged."""
    text = checked_entry(line)
    if text is None:
        return None
    try:
        record = _DECODER.decode(text)
    except UNREADABLE:
        return None
    n_arrays = len(names) if record.status in DONE else 0
    if len(record.sha256) != SHA256_HEX * n_arrays or len(record.crc32c) != CRC32C_HEX * n_arrays:
        return None
    if (record.slot >= 0) != (n_arrays > 0) or not _HEX.fullmatch(record.sha256 + record.crc32c):
        return None
    where = (writer, record.slot, names, record.sha256, record.crc32c)
    return JournalEntry(
        record.row, record.id, record.status, record.reason, record.attempt, record.source, *where
    )


@dataclass(slots=True)
class _ReadState:
    """State of reading one journal."""

    end: int = 0  # end of the last complete line
    lines: int = 0
    seen: tuple[int, int] = (-1, -1)  # size and time of modification
    entries: list[JournalEntry] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    torn: JournalEntry | None = None  # last line, complete except for its line break


class Journals:
    """Read all journals of a stage; each byte is read once, however often `refresh` is called.

    Parameters
    ----------
    folder
        Folder of the journals.
    names
        The stage's arrays, in the order of a line's digests.
    """

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self._folder, self._names = folder, names
        self._read: dict[str, _ReadState] = {}
        self.version = 0
        """Increases whenever new lines were read."""

    def refresh(self) -> None:
        """Read new lines."""
        for path in sorted(self._folder.glob("*.jsonl")):
            stat = path.stat()
            read = self._read.setdefault(path.name, _ReadState())
            seen = (stat.st_size, stat.st_mtime_ns)
            if seen == read.seen:
                continue
            if stat.st_size <= read.seen[0]:  # shorter or rewritten: the file was edited by hand
                read = self._read[path.name] = _ReadState()
            self._follow(path, read)
            read.seen = seen
            self.version += 1

    def _follow(self, path: Path, read: _ReadState) -> None:
        with path.open("rb") as file:
            file.seek(read.end)
            *lines, last = file.read().split(b"\n")
        writer = path.stem
        for line in lines:
            read.lines += 1
            read.end += len(line) + 1
            entry = read_entry(line, self._names, writer)
            if entry is None:
                read.damage.append(
                    f"{path}, line {read.lines}: damaged and ignored; the clip it told of will be done again"
                )
            else:
                read.entries.append(entry)
        read.torn = read_entry(last, self._names, writer)

    def entries(self) -> Iterator[JournalEntry]:
        """Yield the entries read so far, journal by journal; the last line may lack its line break."""
        for _, read in sorted(self._read.items()):
            yield from read.entries
            if read.torn is not None:
                yield read.torn

    def damage(self) -> list[str]:
        """Describe the damaged lines read so far."""
        return [line for _, read in sorted(self._read.items()) for line in read.damage]


def valid_attempts(entries: Iterable[JournalEntry]) -> dict[int, tuple[JournalEntry, ...]]:
    """Return the valid lines of every row, best first: ok, partial, failed; later attempts before earlier.

    Several done lines of one row mean that two writers did the same shard. Sealing checks the bytes of each.
    """
    # Tuples: the garbage collector would visit a list for each clip of a large stage again and again.
    attempts: dict[int, tuple[JournalEntry, ...]] = {}
    contested: dict[int, list[JournalEntry]] = {}
    for entry in entries:
        if entry.row in contested:
            contested[entry.row].append(entry)
        elif entry.row in attempts or entry.status == "missing":
            contested[entry.row] = [*attempts.get(entry.row, ()), entry]
        else:
            attempts[entry.row] = (entry,)
    rank = {"ok": 0, "partial": 1, "failed": 2}
    for row, lines in contested.items():
        annulled = max((line.attempt for line in lines if line.status == "missing"), default=-1)
        live = [line for line in lines if line.attempt > annulled]
        live.sort(key=lambda e: (rank[e.status], -e.attempt, e.reason, e.sha256, e.writer))
        attempts[row] = tuple(live)
    return {row: lines for row, lines in attempts.items() if lines} if contested else attempts


def is_done(entry: JournalEntry) -> bool:
    """Return whether an entry's row has features."""
    return entry.status in DONE
