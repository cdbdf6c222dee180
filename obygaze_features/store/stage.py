"""Create, resume and read staging folders, which collect features clip by clip until a store is sealed.

A stage can be killed at any time and resumed. It belongs to one job on one file system and is never shared.
Its plan is fixed when it is made: the clips in the order of the store's rows.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.door import MOST_LINES, parse_json, read_bytes
from obygaze_features.errors import StoreError
from obygaze_features.io import make_folder, sha256_of, store_path, whole_folder, write_new, write_whole
from obygaze_features.lines import UNREADABLE, checked_entry, encode_line, json_bytes
from obygaze_features.locks import locked, require_locks
from obygaze_features.store.arrays import SealedArray
from obygaze_features.store.format import (
    ATTRIBUTE,
    DIGESTS,
    FEATURES,
    JOURNALS,
    LAYOUT,
    PIECE_ROWS,
    PIECES,
    PLAN,
    RAGGED_LAYOUT,
    ROW_SIZE,
    STAGE,
    STAGING_SUFFIX,
    TABLE,
    ZARR_METADATA,
)
from obygaze_features.store.journal import (
    NO_ROW,
    JournalEntry,
    PieceAttempt,
    best_entries,
    has_ended,
    is_done,
    read_journals,
)
from obygaze_features.store.pieces import ParentRows, StagedRows, StageLayout
from obygaze_features.store.provenance import clipped, contrasts, validate_corpus
from obygaze_features.store.records import GroupSpec, PlannedClip, StoredClip, parse_clips_csv
from obygaze_features.store.store_files import FolderFiles, read_required, read_undamaged
from obygaze_features.store.writer import DigestLater, StageWriter
from obygaze_features.text import counted

MOST_SHOWN = 3
"""Settings that differ which a message names at most."""


@checked
def staging_path(destination: Path | str) -> Path:
    """Return the path of a future store's staging folder: `NAME.staging` beside it."""
    destination = store_path(destination)
    return destination.with_name(destination.name + STAGING_SUFFIX)


class ParentStore(msgspec.Struct, frozen=True):
    """Sealed store that a stage extends: its folder and its fingerprint."""

    path: str
    fingerprint: str

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Return the path and fingerprint of the sealed store in a folder, as a stage records them."""
        return cls(str(folder.resolve()), sha256_of(read_required(FolderFiles(folder), DIGESTS)))

    def clips(self) -> tuple[StoredClip, ...]:
        """Read the clips of the store.

        Raises
        ------
        StoreError
            If the store is missing or has changed.
        """
        folder = Path(self.path)
        if not (folder / DIGESTS).is_file() or ParentStore.of(folder) != self:
            raise StoreError(
                f"{folder}: gone, or no longer the store that a stage was begun to grow (--append)"
            )
        return parse_clips_csv([read_required(FolderFiles(folder), TABLE)], f"{folder}/{TABLE}")

    def row_sizes(self, groups: Iterable[str]) -> dict[str, NDArray[np.int64]]:
        """Read the number of frames of every clip, int64 [N], in some ragged groups of the store, by name.

        Call `clips` first, which checks that the store has not changed.
        """
        files = FolderFiles(Path(self.path))
        sizes = {}
        for name in groups:
            node = read_required(files, f"{FEATURES}/{name}/{ROW_SIZE}/{ZARR_METADATA}")
            metadata = read_undamaged(f"{self.path}, {name}/{ROW_SIZE}", partial(parse_json, node))
            sizes[name] = SealedArray(files, name, ROW_SIZE, metadata).read()
        return sizes

    def attributes(self) -> dict[str, Any]:
        """Read the attributes of the store; call `clips` first, which checks that it has not changed."""
        file = Path(self.path) / FEATURES / ZARR_METADATA
        return read_undamaged(str(file), lambda: dict(parse_json(read_bytes(file))["attributes"][ATTRIBUTE]))


class StageSettings(msgspec.Struct, omit_defaults=True):
    """What stage.json holds."""

    layout: int
    groups: Annotated[tuple[GroupSpec, ...], msgspec.Meta(min_length=1)]
    corpus: dict[str, Any]
    parent: ParentStore | None = None


class Stage:
    """An open stage. `Stage.open` creates or resumes one, `read_stage` opens an existing one unchanged.

    Attributes
    ----------
    path
        The staging folder.
    clips
        The plan, sorted by id: a clip's position is its row in the store.
    groups
        Arrays that every clip must have, one entry per backbone.
    corpus
        Name of the corpus and digest of the manifest.
    parent_store
        The parent store, whose clips count as done; None if the stage has no parent.
    rows
        Clip id -> row.
    layout
        The pieces, and the places of rows in them.
    attempts_with_whole_shards
        Attempts whose shards a store can have as they are; as of the last call of `best_entries`.
    """

    def __init__(self, path: Path, clips: tuple[PlannedClip, ...], record: StageSettings) -> None:
        """Hold the plan of a stage, and read the clips of its parent store; journals are not read yet."""
        self.path = path
        self.clips = clips
        self.groups = record.groups
        self.corpus = record.corpus
        self.parent_store = record.parent
        self.rows = {clip.clip_id: row for row, clip in enumerate(clips)}
        self.layout = StageLayout(record.groups, len(clips))
        # Sizes of the journals when `best_entries` read them last, by file name, and what they held then.
        self._journal_sizes: dict[str, int] | None = None
        self.attempts_with_whole_shards: set[PieceAttempt] = set()
        self._attempts: set[PieceAttempt] = set()  # all that have a line
        self._best: dict[int, JournalEntry] = {}  # by row
        self._damage: tuple[str, ...] = ()  # a sentence on each damaged line
        # Clips of the parent store, and by ragged group the number of frames of each.
        self._parent_clips: tuple[StoredClip, ...] = ()
        self._parent_sizes: dict[str, NDArray[np.int64]] = {}
        if self.parent_store is not None:
            self._parent_clips = self.parent_store.clips()
            self._parent_sizes = self.parent_store.row_sizes(
                [group.name for group in self.layout.ragged_groups]
            )

    @classmethod
    def open(
        cls,
        path: Path | str,
        clips: Sequence[PlannedClip],
        groups: Sequence[GroupSpec],
        corpus: Mapping[str, object],
        *,
        parent: Path | None = None,
        trial: bool = False,
    ) -> Self:
        """Create a stage, or resume the existing one.

        Parameters
        ----------
        clips
            The clips of the future store, in any order.
        parent
            Folder of the parent store. Its clips must be in the plan and count as done.
        trial
            Whether to write nothing: for a dry run on a stage that exists.

        Raises
        ------
        StoreError
            If the stage was created for other clips, spans, arrays, provenance, corpus or parent. The message
            names the field and the stage is not changed. Only `manifest_sha256` may differ: the newest is
            kept.
        """
        path = Path(path)
        sorted_clips = tuple(sorted(clips, key=lambda clip: clip.clip_id))
        sorted_groups = tuple(sorted(groups, key=lambda group: group.name))
        parent_store = None if parent is None else ParentStore.of(parent)
        layout = RAGGED_LAYOUT if any(group.ragged for group in sorted_groups) else LAYOUT
        record = StageSettings(layout, sorted_groups, validate_corpus(corpus), parent_store)
        _refuse_impossible_plan(path, sorted_clips, sorted_groups)
        if not path.is_dir() or not any(path.iterdir()):
            _create(path, sorted_clips, record)
        with locked(path, wait=True):  # another process may be resuming it at the same time
            stage = cls(path, *_read_files(path))
            refusal = stage._describe_other_clips(sorted_clips, record)
            if not refusal:
                refusal = stage._describe_other_settings(sorted_clips, record)
            if refusal:
                raise StoreError(f"{path}: {refusal}")
            if record.corpus != stage.corpus and not trial:
                write_whole(path / STAGE, json_bytes(msgspec.to_builtins(record)))
                stage.corpus = record.corpus
            return stage

    def has_groups(self, groups: Sequence[GroupSpec]) -> bool:
        """Return whether groups are those of the stage, by the same networks with the same sampling."""
        return not contrasts(_settings(self.groups, {}, None), _settings(groups, {}, None))

    def _describe_other_clips(self, clips: tuple[PlannedClip, ...], record: StageSettings) -> str:
        """Return in words how a list of clips differs from the stage's; empty if the ids are the same."""
        clip_ids = {clip.clip_id for clip in clips}
        only_here = sorted(self.rows.keys() - clip_ids)
        only_there = sorted(clip_ids - self.rows.keys())
        if not only_here and not only_there:
            return ""
        corpus = self.corpus.get("name")
        other_corpus = record.corpus.get("name")
        example = f"{only_here[0]} is in it alone" if only_here else f"{only_there[0]} is in yours alone"
        return (
            f"holds {counted(len(self.clips), 'clip')} of '{corpus}', {len(only_here)} of which your list "
            f"'{other_corpus}' of {len(clips)} lacks; {len(only_there)} of yours are not in it ({example}). "
            "Nothing was changed. "
            "Resume it with the list that it was begun with, or choose another name for STORE. To add clips, "
            "seal it (obygaze store seal; --allow-missing if clips are still to do), then extract the longer "
            "list with --append STORE"
        )

    def _describe_other_settings(self, clips: tuple[PlannedClip, ...], record: StageSettings) -> str:
        """Return in words which settings of another record differ from the stage's; empty if none do."""
        differing = contrasts(
            _settings(self.groups, self.corpus, self.parent_store),
            _settings(record.groups, record.corpus, record.parent),
        )
        if not differing and clips != self.clips:
            own_clips = {clip.clip_id: asdict(clip) for clip in self.clips}
            other_clips = {clip.clip_id: asdict(clip) for clip in clips}
            differing = contrasts(own_clips, other_clips)
        if not differing:
            return ""
        group_names = [group.name for group in self.groups]
        other_names = [group.name for group in record.groups]
        if set(group_names) != set(other_names):
            return (
                f"has the groups {', '.join(group_names)}, and {', '.join(other_names)} are asked for; "
                "nothing was changed: resume with what it was begun with, or choose another name for STORE"
            )
        shown = "; ".join(
            f"{field} is {clipped(own)}, not {clipped(other)}" for field, own, other in differing[:MOST_SHOWN]
        )
        if [contrast.field for contrast in differing] == ["corpus.name"]:
            remedy = f"--corpus {quote(str(self.corpus.get('name')))} resumes it"
        else:
            remedy = "resume with what it was begun with"
        return (
            f"was begun with other settings: {shown}; nothing was changed: {remedy}, or choose another "
            "name for STORE"
        )

    def n_writers(self) -> int:
        """Count the processes that are writing to this stage; each holds a lock on its journal."""
        journals = (self.path / JOURNALS).glob("*.jsonl")
        return len([journal for journal in journals if not has_ended(journal)])

    def best_entries(self) -> dict[int, JournalEntry]:
        """Return row -> its best entry, from the journals, which are read again if they have changed.

        Rows without an entry are missing.

        Raises
        ------
        StoreError
            If an entry and the plan name different clips, or the parent store is missing.
        """
        # Journals only grow: while their sizes are the same, so is their content.
        sizes = {path.name: path.stat().st_size for path in (self.path / JOURNALS).glob("*.jsonl")}
        if sizes != self._journal_sizes:
            lines, damage = read_journals(self.path / JOURNALS, len(self.layout.names))
            entries = [entry for line in lines for entry in line.rows]
            for entry in entries:
                if self.rows.get(entry.clip_id) != entry.row:
                    raise StoreError(
                        f"{self.path}: row {entry.row} is not clip {entry.clip_id} in {PLAN}, as a journal "
                        "says; the stage was tampered with: begin another"
                    )
            self._attempts = {line.rows[0].holding_attempt for line in lines if line.rows}
            self.attempts_with_whole_shards = {
                line.rows[0].holding_attempt for line in lines if line.rows and line.whole
            }
            self._best = best_entries([*self._parent_entries(), *entries])
            self._damage = tuple(damage)
            self._journal_sizes = sizes
        return self._best

    def _parent_entries(self) -> Iterable[JournalEntry]:
        """Yield an entry for each clip of the parent store that is in the plan and not missing there.

        Such an entry has no writer. For ragged groups it says where the clip's frames lie in the parent's
        arrays.
        """
        first_frame = dict.fromkeys(self._parent_sizes, 0)  # of the next clip, by ragged group
        for parent_row, clip in enumerate(self._parent_clips):
            frames = {}
            for name, sizes in self._parent_sizes.items():
                n_frames = int(sizes[parent_row])
                if n_frames:
                    frames[name] = (first_frame[name], n_frames)
                first_frame[name] += n_frames
            if clip.status != "missing" and clip.clip_id in self.rows:
                digests = "".join(clip.digests.get(name, NO_ROW) for name in self.layout.names)
                yield JournalEntry(
                    row=self.rows[clip.clip_id],
                    clip_id=clip.clip_id,
                    status=clip.status,  # type: ignore[arg-type]  # checked text
                    reason=clip.reason,
                    sha256=digests if clip.digests else "",
                    source=clip.source,
                    absent=clip.absent,
                    frames=frames,
                    without_pictures_s=clip.without_pictures_s,
                )

    def status(self) -> dict[str, JournalEntry]:
        """Return the current status of the clips, re-read from disk; clips without an entry are missing."""
        return {entry.clip_id: entry for _, entry in sorted(self.best_entries().items())}

    def piece(self, clip_id: str) -> int:
        """Return the number of the piece that a clip belongs to."""
        return self.rows[clip_id] // PIECE_ROWS

    def missing(
        self,
        shard: tuple[int, int] = (0, 1),
        *,
        retry_failed: bool = False,
        again: Callable[[JournalEntry], bool] = lambda _: False,
    ) -> list[str]:
        """Return the ids of the clips that are still to do in a shard, sorted.

        Parameters
        ----------
        shard
            (i, n): the pieces k with k % n == i.
        retry_failed
            Whether failed clips are done again.
        again
            Returns for a clip's best entry whether the clip is to be done again; by default never.
        """
        best = self.best_entries()
        clip_ids = []
        for row in rows_of_share(len(self.clips), shard):
            entry = best.get(row)
            if entry is None or (retry_failed and not is_done(entry)) or again(entry):
                clip_ids.append(self.clips[row].clip_id)
        return clip_ids

    def damage(self) -> tuple[str, ...]:
        """List the damaged lines of the journals; their clips count as missing."""
        self.best_entries()
        return self._damage

    def reader(self) -> StagedRows:
        """Return a reader of the rows that this stage, and its parent store, hold."""
        if self.parent_store is None:
            return StagedRows(self.path, self.layout, None)
        n_frames = {name: int(sizes.sum()) for name, sizes in self._parent_sizes.items()}
        return StagedRows(
            self.path, self.layout, ParentRows(Path(self.parent_store.path), self._parent_clips, n_frames)
        )

    def writer(
        self, clip_ids: Iterable[str] | None = None, digest_later: DigestLater | None = None
    ) -> StageWriter:
        """Create a writer with a new journal; one writer per process, used as a context manager.

        Parameters
        ----------
        clip_ids
            The clips that it will do; None for all that are missing. A piece is finished when all of these
            clips that are in it are written.
        digest_later
            Computes digests of large rows in another process, see `StageWriter`.
        """
        best = self.best_entries()
        if clip_ids is None:
            clip_ids = self.missing()
        return StageWriter(
            self.reader(),
            self.groups,
            self.clips,
            self.rows,
            best=best,
            attempts=self._attempts,
            to_do={self.rows[clip_id] for clip_id in clip_ids},
            digest_later=digest_later,
        )

    def sweep(self, keep: Collection[int] = ()) -> int:
        """Remove the files of pieces that killed writers left unfinished.

        Returns the number of clips that may be lost by that. It is not known which rows of such a piece were
        written, so all its clips that are still to do are counted.

        Parameters
        ----------
        keep
            Numbers of pieces whose files stay, because writers on other machines, whose locks cannot be seen
            here, work on them.
        """
        files_of_attempt = defaultdict(list)
        for path in (self.path / PIECES).iterdir():
            match = re.match(r"(\d+)\.(\d+)\.(\d+)\.", path.name)
            if match:  # not one of the hidden files that NFS makes
                attempt = PieceAttempt(int(match[1]), match[2], int(match[3]))
                files_of_attempt[attempt].append(path)
        writers = {attempt.writer for attempt in files_of_attempt}
        ended = {writer for writer in writers if has_ended(self.path / JOURNALS / f"{writer}.jsonl")}
        # The journals are read after that, so that they have all lines of the writers that have ended.
        to_do = {self.rows[clip_id] for clip_id in self.missing()}
        lost: set[int] = set()
        for attempt, paths in files_of_attempt.items():
            is_left_open = attempt not in self._attempts and attempt.writer in ended
            if is_left_open and attempt.piece not in keep:
                for path in paths:
                    path.unlink(missing_ok=True)  # another run may sweep too
                lost |= to_do.intersection(self.layout.rows(attempt.piece))
        return len(lost)


@checked
def read_stage(path: Path | str) -> Stage:
    """Open an existing stage unchanged, to inspect or seal it."""
    return Stage(Path(path), *_read_files(Path(path)))


def rows_of_share(n_clips: int, shard: tuple[int, int]) -> list[int]:
    """Return the rows of shard (i, n): those of the pieces k with k % n == i."""
    index, count = shard
    if not 0 <= index < count:
        raise StoreError(f"shard {index}/{count}: expected 0 <= i < n")
    return [row for row in range(n_clips) if row // PIECE_ROWS % count == index]


def _refuse_impossible_plan(
    path: Path, clips: tuple[PlannedClip, ...], groups: tuple[GroupSpec, ...]
) -> None:
    """Refuse clips or groups, sorted by name, that repeat, are none, or mix clips with texts."""
    _refuse_repeated([clip.clip_id for clip in clips], "clip")
    _refuse_repeated([group.name for group in groups], "group")
    if not clips or not groups:
        raise StoreError(f"{path}: a stage needs at least one clip and one group")
    if len({clip.text is None for clip in clips}) > 1:
        raise StoreError(f"{path}: some rows have a text and others none; a store has one kind of rows")


def _refuse_repeated(names: list[str], noun: str) -> None:
    """Raise an error if one of the sorted names occurs twice; `noun` says what they name."""
    for name, next_name in pairwise(names):
        if name == next_name:
            raise StoreError(f"{noun} {name}: given twice; ids are unique")


def _settings(
    groups: Sequence[GroupSpec], corpus: Mapping[str, object], parent: ParentStore | None
) -> dict[str, object]:
    """Return the settings of a stage that must not change when it is resumed, to compare field by field."""
    settings: dict[str, object] = {}
    for group in groups:
        arrays = {spec.name: {"shape": list(spec.shape), "dtype": spec.dtype} for spec in group.arrays}
        settings[group.name] = asdict(group) | {"arrays": arrays}
    settings["corpus"] = {**corpus, "manifest_sha256": ""}  # which may change
    settings["--append"] = None if parent is None else f"{parent.path} {parent.fingerprint}"
    return settings


# --- stage.json and the plan
# ---------------------------------------------------------------------------
def _create(path: Path, clips: tuple[PlannedClip, ...], record: StageSettings) -> None:
    """Create a stage, whole or not at all.

    Processes that create the same stage at the same time wait for each other; the first one creates it.
    """
    if path.exists() and not path.is_dir():
        raise StoreError(f"{path}: a file is in the way; choose another name")
    require_locks(path)
    make_folder(path.parent)
    with locked(path.parent, wait=True):
        if path.is_dir() and any(path.iterdir()):
            return
        with whole_folder(path) as draft:
            for folder in (JOURNALS, PIECES):
                (draft / folder).mkdir()
            write_new(draft / STAGE, json_bytes(msgspec.to_builtins(record)))
            lines = (encode_line({"row": row, **asdict(clip)}) for row, clip in enumerate(clips))
            write_new(draft / PLAN, b"".join(lines))


class _PlanLine(msgspec.Struct):
    """The number of a row in a line of the plan, beside the clip."""

    row: int


def _read_files(path: Path) -> tuple[tuple[PlannedClip, ...], StageSettings]:
    """Read the plan and the record of a stage.

    Raises
    ------
    StoreError
        If there is no stage, it has another layout, or its files are damaged.
    """
    if not path.exists():
        raise StoreError(f"{path}: there is no such stage; obygaze extract makes it")
    if not (path / PLAN).is_file() or not (path / STAGE).is_file():
        raise StoreError(f"{path}: not a staging folder (no {PLAN} or {STAGE} in it)")
    record = _read_record(path)
    return _read_plan(path), record


def _read_record(path: Path) -> StageSettings:
    """Read the stage.json of a stage; refuse another layout, and a damaged file."""
    try:
        document = msgspec.json.decode(read_bytes(path / STAGE))
        if document["layout"] not in (LAYOUT, RAGGED_LAYOUT):
            raise StoreError(
                f"{path}: a stage of layout {document['layout']}, this obygaze writes {LAYOUT} and "
                f"{RAGGED_LAYOUT}: seal it with "
                "the obygaze that it is from (obygaze store seal NAME --allow-missing), or remove it "
                "(obygaze store rm) and extract again"
            )
        record = msgspec.convert(document, StageSettings)
        validate_corpus(record.corpus)
    except (*UNREADABLE, KeyError, TypeError) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{path / STAGE}: damaged; begin another stage") from error
    return record


def _read_plan(path: Path) -> tuple[PlannedClip, ...]:
    """Read the plan of a stage: its clips in the order of their rows.

    A damaged line is refused, because it would shift the rows of all clips after it.
    """
    clips: list[PlannedClip] = []
    for row, line in enumerate(read_bytes(path / PLAN, MOST_LINES).splitlines()):
        clip = _decode_clip(line, row)
        if clip is None:
            raise StoreError(
                f"{path / PLAN}, line {row + 1}: damaged; rows can no longer be told apart: begin another "
                "stage"
            )
        clips.append(clip)
    if not clips:
        raise StoreError(f"{path / PLAN}: no clips; begin another stage")
    return tuple(clips)


_ROW_DECODER = msgspec.json.Decoder(_PlanLine)
_CLIP_DECODER = msgspec.json.Decoder(PlannedClip)


def _decode_clip(line: bytes, row: int) -> PlannedClip | None:
    """Decode the clip in a line of the plan; None if the line is damaged, or is that of another row."""
    entry = checked_entry(line)
    if entry is None:
        return None
    try:
        if _ROW_DECODER.decode(entry).row != row:
            return None
        return _CLIP_DECODER.decode(entry)
    except UNREADABLE:
        return None
