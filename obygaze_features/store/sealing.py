"""Seal a stage as an immutable store; the same clips always give the same bytes.

Shards of tokens are linked from the stage, which holds them as the store does. Rows of the small arrays are
copied from the pieces into chunks, which have more rows than a piece.
"""

import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.cores import usable_cores
from obygaze_features.door import open_regular
from obygaze_features.errors import StoreError
from obygaze_features.io import empty, naming, remove_tree, store_path, sync, sync_tree, write_all
from obygaze_features.locks import alone_in, locked
from obygaze_features.schema import Hex64, expected, fits
from obygaze_features.screen import Progress
from obygaze_features.store.arrays import CRC_BYTES, with_checksum
from obygaze_features.store.format import (
    ATTRIBUTE,
    BAGIT,
    BUILDING_SUFFIX,
    PIECE_ROWS,
    RAGGED_ARRAYS,
    ROW_CHUNK,
    ROW_SIZE,
    STAGING_SUFFIX,
    spec_version,
)
from obygaze_features.store.journal import JournalEntry, PieceAttempt, is_done
from obygaze_features.store.metadata import write_metadata_files
from obygaze_features.store.missing_videos import refuse_missing_videos
from obygaze_features.store.pieces import RaggedArray, RaggedGroup, StagedRows, StoredArray, attempt_file
from obygaze_features.store.provenance import checked_json, validate_licence
from obygaze_features.store.records import StoredClip, checked_line
from obygaze_features.store.shares import number_of_shares, shown_shares
from obygaze_features.store.stage import Stage, read_stage
from obygaze_features.text import counted

BestEntries = Mapping[int, JournalEntry]
"""Row -> its best entry; rows without one are missing."""

VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")

BLOCK = 1 << 19
"""Bytes that are read, digested and written at a time, while they are in the processor's cache."""


@checked
def seal(
    stage_path: Path | str | None,
    destination: Path | str,
    *,
    version: str = "1.0.0",
    licence: str,
    citation: str = "",
    allow_missing: bool = False,
    max_failed: int | None = None,
    parent: str | None = None,
    merged_with: Sequence[str] = (),
    counted: Sequence[Mapping[str, Any]] = (),
    workers: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Seal a stage into the folder `DESTINATION-VERSION` and return its path; the stage stays.

    Rows are sorted by clip id. The bytes of every row are checked. The store is built in
    `DESTINATION.building`, flushed to disk and renamed, so an incomplete store is never visible. A sealing
    that was killed begins again.

    Parameters
    ----------
    stage_path
        The staging folder; None for `DESTINATION.staging`.
    destination
        Path of the store, without the version.
    version
        Version of the store.
    licence
        SPDX expression or NOASSERTION.
    citation
        How to cite the features.
    allow_missing
        Seal although clips are still to do; their rows get the status missing.
    max_failed
        Most failed clips allowed; None is any number.
    parent
        Fingerprint of the store that this one grew from; None is the stage's parent, if any.
    merged_with
        Fingerprints of the stores whose clips were added to the parent's.
    counted
        Attributes of stores all of whose clips are in this one: their counts of GPUs and streams are added. A
        stage that extends a store adds the counts of that store.
    workers
        Files written at a time; None is one per usable core. The bytes do not depend on it.
    progress
        Called with (rows written, rows in total).

    Raises
    ------
    StoreError
        If clips are missing, too many have failed, clips failed for absent videos that some machine finds,
        or the destination exists. Also if bytes differ from their digests; these clips
        are then marked missing, so that another extraction repairs them.
    """
    destination = store_path(destination)
    building = destination.with_name(destination.name + BUILDING_SUFFIX)
    final = new_store_path(destination, version)
    stage = read_stage(stage_path or destination.with_name(destination.name + STAGING_SUFFIX))
    if parent is None and stage.parent_store is not None:
        parent = stage.parent_store.fingerprint
        counted = [stage.parent_store.attributes()]
    if parent is not None and not fits(parent, Hex64):
        raise StoreError(f"parent {parent!r}: expected a fingerprint, {expected(Hex64)}")
    _refuse_unready(stage, stage.best_entries(), allow_missing=allow_missing, max_failed=max_failed)
    attributes: dict[str, object] = {
        "spec_version": "",  # known when the rows are written
        "licence": validate_licence(licence),
        "citation": checked_line(citation, "citation"),
        "corpus": stage.corpus,
        "parent": parent,
    }
    if merged_with:
        attributes["merged_with"] = list(merged_with)
    checked_json(attributes, ATTRIBUTE)
    with alone_in(building, "sealing here"):
        new_store_path(destination, version)
        root = building / "store"
        try:
            rows = _seal_rows(root, stage, progress or (lambda *_: None), workers or usable_cores())
            attributes |= _counted_attributes(stage, rows.best, counted)
            write_metadata_files(
                root,
                _stored_clips(stage, rows.best),
                stage.groups,
                attributes,
                version=version,
                parts=rows.files,
                digests=_digests(stage, rows.best),
                row_sizes=_row_sizes(stage, rows.best),
            )
            sync_tree(root)
            root.rename(final)
            sync(final.parent)
        except MemoryError as error:
            raise StoreError(f"{stage.path}: its rows need more memory than there is ({error})") from error
        finally:
            remove_tree(building, ignore_errors=True)
    return final


def new_store_path(destination: Path, version: str) -> Path:
    """Return the path of a version of a store; refuse invalid versions and existing ones.

    If the version exists, a sealing may have been killed right after it renamed the store. The folder in
    which that sealing worked is then removed.
    """
    final = versioned_path(destination, version)
    if final.exists():
        building = destination.with_name(destination.name + BUILDING_SUFFIX)
        if building.is_dir():
            with locked(building, wait=False) as is_locked_here:
                if is_locked_here:  # no sealing is at work there
                    remove_tree(building, ignore_errors=True)
        raise StoreError(
            f"{final}: exists, and a sealed store never changes; "
            "choose another version (--store-version 1.0.1) or name"
        )
    return final


@contextmanager
def temporary_stage(destination: Path, version: str, suffix: str) -> Iterator[Callable[..., Stage]]:
    """Lend a folder beside a store for a temporary stage, from which the store is sealed.

    The folder is emptied first: rows that a killed process left there may be of files that have changed
    since. After the `with` block it is removed.

    Parameters
    ----------
    destination, version
        Path of the store without its version, and the version.
    suffix
        Suffix of the folder.

    Yields
    ------
    Callable
        Opens the stage; called with the arguments of `Stage.open` except the path.

    Raises
    ------
    StoreError
        If the store exists, or another process makes it.
    """
    work = destination.with_name(f"{destination.name}-{version}{suffix}")
    try:
        new_store_path(destination, version)
    except StoreError:
        remove_tree(work, ignore_errors=True)
        raise
    with alone_in(work, "making this store"):
        try:
            empty(work)
            # Two folders down, because making a stage locks the folder that it is in.
            yield partial(Stage.open, work / "part" / "stage")
        finally:
            remove_tree(work, ignore_errors=True)


def versioned_path(destination: Path, version: str) -> Path:
    """Return the path of a version of a store; refuse invalid versions and folders of sealed stores."""
    if not VERSION.fullmatch(version):
        raise StoreError(f"store version {version!r}: expected three numbers such as 1.0.0")
    name, _, ending = destination.name.rpartition("-")
    if name and VERSION.fullmatch(ending) and (destination / BAGIT).is_file():
        raise StoreError(f"{destination} is sealed; the name is {destination.with_name(name)}")
    if destination.name.endswith(STAGING_SUFFIX):
        stem = destination.with_name(destination.name.removesuffix(STAGING_SUFFIX))
        raise StoreError(f"{destination} is a staging folder's name; the name is {stem}")
    return destination.with_name(f"{destination.name}-{version}")


def _describe_missing_shares(stage: Stage, missing: Sequence[str]) -> str:
    """Return in words which shares of a job array have missing clips, and how to run these shares again.

    Empty if the clips are not divided into shares.
    """
    n_shares = number_of_shares(stage.path)
    if n_shares is None:
        return ""
    shares_of_missing = {stage.piece(clip_id) % n_shares for clip_id in missing}
    shares = shown_shares(sorted(shares_of_missing))
    return f" (shares {shares} of {n_shares}: --array={shares} does these again)"


def _refuse_unready(stage: Stage, best: BestEntries, *, allow_missing: bool, max_failed: int | None) -> None:
    """Refuse to seal a stage that is not complete.

    It is not if clips are missing, if clips failed here whose videos another machine finds (both unless
    `allow_missing`), or if more than `max_failed` clips failed.
    """
    missing = [clip.clip_id for row, clip in enumerate(stage.clips) if row not in best]
    if len(missing) == len(stage.clips) > 0:
        raise StoreError(
            f"{stage.path}: none of its {counted(len(stage.clips), 'clip')} is done, so there "
            "is nothing to seal; "
            "'obygaze extract' does them"
        )
    if missing and not allow_missing:
        shares = _describe_missing_shares(stage, missing)
        raise StoreError(
            f"{stage.path}: {len(missing)} of {counted(len(stage.clips), 'clip')} are still to do, "
            f"the first is {missing[0]}{shares}; extract again, or allow missing clips "
            "(--allow-missing)"
        )
    if not allow_missing:
        refuse_missing_videos(stage)
    n_failed = len([entry for entry in best.values() if entry.status == "failed"])
    if max_failed is not None and n_failed > max_failed:
        raise StoreError(
            f"{stage.path}: {counted(n_failed, 'clip has', 'clips have')} failed, and at most "
            f"{max_failed} may (--max-failed); "
            "`obygaze extract` with --retry-failed tries them again"
        )


class _StreamCount(msgspec.Struct):
    """An entry of the attribute `streams`: the facts of a stream, and the number of clips that have it."""

    clips: int


def _counted_attributes(
    stage: Stage, best: BestEntries, counted: Sequence[Mapping[str, Any]]
) -> dict[str, object]:
    """Return the store's attributes that depend on its clips.

    They are the version of the format that it needs, and, where these are known, the number of clips by GPU
    (`devices`) and by properties of the video stream (`streams`).

    Parameters
    ----------
    stage, best
        The stage, and the best entry of each row.
    counted
        Attributes of other stores, whose counts are added.
    """
    sources = [entry.source for entry in best.values() if is_done(entry)]
    devices = Counter(str(source["device"]) for source in sources if "device" in source)
    streams = Counter(str(source["stream"]) for source in sources if "stream" in source)  # facts as JSON
    for other_attributes in counted:
        other_devices = other_attributes.get("devices", {})
        other_streams = other_attributes.get("streams", [])
        if not fits(other_devices, dict[str, int]) or not fits(other_streams, list[_StreamCount]):
            raise StoreError("devices or streams, attributes of a store, do not count its clips")
        devices.update(other_devices)
        for stream in other_streams:
            facts = {name: value for name, value in stream.items() if name != "clips"}
            streams[json.dumps(facts, sort_keys=True)] += stream["clips"]
    attributes: dict[str, object] = {"spec_version": _version_of(stage, best)}
    if devices:
        attributes["devices"] = dict(sorted(devices.items()))
    if streams:
        attributes["streams"] = [
            {**json.loads(facts_json), "clips": n_clips} for facts_json, n_clips in sorted(streams.items())
        ]
    return attributes


def _version_of(stage: Stage, best: BestEntries) -> str:
    """Return the version of the format that the store needs, by its arrays and by what its clips lack."""
    arrays = {"clip", "status"}
    if stage.clips[0].text is not None:
        arrays.add("text")
    if stage.layout.ragged_groups:
        arrays.add(ROW_SIZE)
    for group in stage.groups:
        arrays.update(group.clip_arrays())
    return spec_version(
        arrays,
        absent=any(entry.absent for entry in best.values()),
        without_pictures=any(entry.without_pictures_s for entry in best.values()),
    )


def _stored_clips(stage: Stage, best: BestEntries) -> list[StoredClip]:
    """Return the clips of the store, without digests; those without an entry have the status missing."""
    missing = JournalEntry(0, "", "missing")
    clips = []
    for row, planned in enumerate(stage.clips):
        entry = best.get(row, missing)
        clip = StoredClip(
            clip_id=planned.clip_id,
            status=entry.status,
            reason=entry.reason,
            movie=planned.movie,
            start_s=planned.start_s,
            end_s=planned.end_s,
            source=entry.source,
            text=planned.text,
            absent=entry.absent,
            without_pictures_s=entry.without_pictures_s,
        )
        clips.append(clip)
    return clips


def _digests(stage: Stage, best: BestEntries) -> Iterator[dict[str, str]]:
    """Yield the digests of each row, one by one, because a million of these dictionaries take 0.5 GB."""
    names = stage.layout.names
    for row in range(len(stage.clips)):
        yield best[row].digests(names) if row in best else {}


def _row_sizes(stage: Stage, best: BestEntries) -> dict[str, NDArray[np.int64]]:
    """Return ragged group -> number of frames of every clip, int64 [N]; 0 of clips without features."""
    sizes = {group.name: np.zeros(len(stage.clips), np.int64) for group in stage.layout.ragged_groups}
    for row, entry in best.items():
        if is_done(entry):
            for name, (_, n_frames) in entry.frames.items():
                sizes[name][row] = n_frames
    return sizes


# --- chunks and shards
# ---------------------------------------------------------------------------
@dataclass
class _Written:
    """Result of writing the chunks or shards with some rows.

    Parameters
    ----------
    rows
        The rows that count as done.
    digests
        File -> SHA-256 of every chunk and shard.
    damaged_rows
        Rows whose bytes are not those of their digests; if there are any, not all files are written.
    """

    rows: range
    digests: dict[str, str] = field(default_factory=dict)
    damaged_rows: set[int] = field(default_factory=set)


class _SealedRows(NamedTuple):
    """All chunks and shards of a store.

    Parameters
    ----------
    best
        Row -> the entry whose bytes they hold.
    files
        File -> SHA-256.
    """

    best: BestEntries
    files: dict[str, str]


def _seal_rows(root: Path, stage: Stage, progress: Progress, workers: int) -> _SealedRows:
    """Write all chunks of a stage, and link its shards, into the folder of a store.

    A piece whose rows lie in several attempts, or some of whose bytes are damaged, is first rewritten as one
    attempt from its good rows; then all is written again. Another writer may add entries meanwhile, so the
    entries are returned whose bytes were used.

    Raises
    ------
    StoreError
        Rows that had features at the beginning are damaged, and no other attempt has them.
    """
    done_at_start = {row for row, entry in stage.best_entries().items() if is_done(entry)}
    while True:
        best = stage.best_entries()
        _refuse_lost_rows(stage, best, done_at_start)
        shards, scattered_pieces = _shards(stage, best)
        written: list[_Written] = []
        if not scattered_pieces:
            written = _write_parts(root, stage, best, shards, progress=progress, workers=workers)
        damaged_pieces = set[int]()
        files: dict[str, str] = {}
        for part in written:
            damaged_pieces.update(row // PIECE_ROWS for row in part.damaged_rows)
            files |= part.digests
        if not damaged_pieces and not scattered_pieces:
            return _SealedRows(best, files)
        with stage.writer([]) as writer:
            for piece in sorted(damaged_pieces.union(scattered_pieces)):
                writer.rewrite_piece(piece)


def _refuse_lost_rows(stage: Stage, best: BestEntries, done_at_start: set[int]) -> None:
    """Raise a StoreError if rows that had features when sealing began have none any more."""
    lost = sorted(row for row in done_at_start if row not in best or not is_done(best[row]))
    if lost:
        raise StoreError(
            f"{stage.path}: {counted(len(lost), 'clip is', 'clips are')} not what they "
            "were when committed, the first is "
            f"{stage.clips[lost[0]].clip_id}; they are marked missing now: extract again, then seal"
        )


def _write_parts(
    root: Path,
    stage: Stage,
    best: BestEntries,
    shards: Sequence["_Shard"],
    *,
    progress: Progress,
    workers: int,
) -> list[_Written]:
    """Write all chunks and link all shards into an empty folder, several at a time.

    Parameters
    ----------
    root
        Folder of the store.
    stage, best
        The stage, and the best entry of each row.
    shards
        The shards.
    progress
        Called with (rows written, rows in total). A row counts once for the chunks, once for each sharded
        array, and once for each ragged group.
    workers
        Number of files that are written at a time.
    """
    layout = stage.layout
    empty(root.parent)
    for array in (*layout.small_arrays, *layout.sharded_arrays):
        for file, _ in array.blocks():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
    reader = stage.reader()
    tasks = [
        partial(_write_chunks, root, reader, best, start) for start in range(0, layout.n_clips, ROW_CHUNK)
    ]
    tasks += [partial(_link_shard, root, stage, shard) for shard in shards]
    row_sizes = _row_sizes(stage, best)
    for group in layout.ragged_groups:
        ends = np.cumsum(row_sizes[group.name])
        n_frames = int(ends[-1])
        write_frames = partial(_write_frames, root, reader, best, _FrameEnds(group, ends))
        for start in range(0, n_frames, FRAMES_AT_ONCE):
            tasks.append(partial(write_frames, range(start, min(start + FRAMES_AT_ONCE, n_frames))))
    n_total = layout.n_clips * (1 + len(layout.sharded_arrays) + len(layout.ragged_groups))
    n_done = 0
    written = []
    with ThreadPoolExecutor(workers) as threads:  # most of the work releases the GIL
        for part in threads.map(lambda task: task(), tasks):
            written.append(part)
            n_done += len(part.rows)
            progress(n_done, n_total)
    return written


def _write_chunks(root: Path, reader: StagedRows, best: BestEntries, start: int) -> _Written:
    """Write the chunks of the small arrays for `ROW_CHUNK` rows from `start` on."""
    layout = reader.layout
    written = _Written(range(start, min(start + ROW_CHUNK, layout.n_clips)))
    chunks = [(array, bytearray(array.block * len(array.fill_row))) for array in layout.small_arrays]
    fill = memoryview(b"".join(array.fill_row for array in layout.small_arrays))
    for row in written.rows:
        entry = best.get(row)
        record = reader.record(entry) if entry is not None and is_done(entry) else fill
        if record is None:
            written.damaged_rows.add(row)
            continue
        if written.damaged_rows:  # nothing is written any more, but the remaining rows are checked, too
            continue
        for (array, chunk), (_, values) in zip(chunks, layout.split(record), strict=True):
            index = row % array.block  # of the row in its chunk
            row_start = array.offset(index)
            row_end = array.offset(index + 1)
            chunk[row_start:row_end] = values
            is_full = index + 1 == array.block
            if is_full or row == written.rows[-1]:
                n_unused = array.block - index - 1
                chunk[row_end:] = array.fill_row * n_unused
                file = array.file(row // array.block)
                written.digests[file] = _write_file(root / file, [with_checksum(chunk)])
    return written


FRAMES_AT_ONCE = max(kind.chunk for kind in RAGGED_ARRAYS.values())
"""Frames of a ragged group that are written by one task: whole chunks of every array."""


class _FrameEnds(NamedTuple):
    """A ragged group, and the number of frames up to the end of each clip, int64 [N]."""

    group: RaggedGroup
    ends: NDArray[np.int64]


def _write_frames(
    root: Path, reader: StagedRows, best: BestEntries, frame_ends: _FrameEnds, frames: range
) -> _Written:
    """Write the chunks of a ragged group's arrays that hold some frames.

    A clip that begins or ends outside of these frames is read and checked as a whole, so twice in total.

    Parameters
    ----------
    root
        Folder of the store.
    reader, best
        Reads rows of the stage; the best entry of each row.
    frame_ends
        The group, and where the frames of each clip end.
    frames
        The frames, counted over all clips; they begin with a chunk.
    """
    group, ends = frame_ends
    n_frames = int(ends[-1])
    first_clip, last_clip = np.searchsorted(ends, [frames.start, frames.stop - 1], side="right").tolist()
    # For the progress, each clip counts once: with its last frame, or, if it has none, with frames beside it.
    first_done = first_clip if frames.start else 0
    end_done = len(ends) if frames.stop == n_frames else last_clip
    written = _Written(range(first_done, end_done))
    chunks = [_Chunks(root, array, n_frames, frames.start) for array in group.arrays]
    for row in range(first_clip, last_clip + 1):
        clip_start = int(ends[row - 1]) if row else 0
        clip_end = int(ends[row])
        if clip_start == clip_end:
            continue
        arrays = reader.frames(best[row], group)
        if arrays is None:
            written.damaged_rows.add(row)
            continue
        if written.damaged_rows:  # nothing is written any more, but the remaining rows are checked, too
            continue
        start = max(frames.start, clip_start) - clip_start
        end = min(frames.stop, clip_end) - clip_start
        for chunk, (array, data) in zip(chunks, arrays.items(), strict=True):
            n_bytes = len(array.fill_row)
            chunk.add(data[start * n_bytes : end * n_bytes])
    for chunk in chunks:
        if not written.damaged_rows:
            chunk.close()
        written.digests |= chunk.digests
    return written


class _Chunks:
    """Writer of the chunks of a ragged array: rows are added in order, and full chunks are written.

    Parameters
    ----------
    root
        Folder of the store.
    array
        The array.
    n_frames
        Number of all its rows.
    start
        The row with which the first chunk begins.

    Attributes
    ----------
    digests
        File -> SHA-256 of every chunk that was written.
    """

    def __init__(self, root: Path, array: RaggedArray, n_frames: int, start: int) -> None:
        """Begin with the chunk whose first row is `start`; nothing is written yet."""
        self._root = root
        self._array = array
        self._block = array.block(n_frames)  # rows of a chunk
        self._number = start // self._block  # of the next chunk
        self._rows = bytearray()  # of the next chunk
        self.digests: dict[str, str] = {}

    def add(self, rows: memoryview) -> None:
        """Add rows, and write the chunks that are full."""
        self._rows += rows
        chunk_bytes = self._block * len(self._array.fill_row)
        while len(self._rows) >= chunk_bytes:
            self._write(self._rows[:chunk_bytes])
            del self._rows[:chunk_bytes]

    def close(self) -> None:
        """Write the last chunk, filled up with fill values, if it has any row."""
        if self._rows:
            n_unused = self._block - len(self._rows) // len(self._array.fill_row)
            self._write(self._rows + self._array.fill_row * n_unused)

    def _write(self, rows: bytearray) -> None:
        """Write the rows of the next chunk."""
        file = self._array.file(self._number)
        (self._root / file).parent.mkdir(parents=True, exist_ok=True)
        self.digests[file] = _write_file(self._root / file, [with_checksum(rows)])
        self._number += 1


def _write_file(path: Path, blocks: Iterable[bytes]) -> str:
    """Write a new file; return its SHA-256."""
    digest = hashlib.sha256()
    with naming(path), FileIO(path, "x") as file:
        for block in blocks:
            digest.update(block)
            write_all(file.fileno(), block)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Shard:
    """A shard of a piece.

    Attributes
    ----------
    array, rows
        Its array and rows.
    path
        The file in the stage or the parent store; empty if no row has features.
    digest
        SHA-256 that the file must have, if it is one of the parent store.
    """

    array: StoredArray
    rows: range
    path: str
    digest: str = ""


def _shards(stage: Stage, best: BestEntries) -> tuple[list[_Shard], list[int]]:
    """Find the file of every shard of a store.

    Returns
    -------
    list of _Shard
        The shards of all pieces whose rows lie in one attempt or in the parent store.
    list of int
        Numbers of the other pieces, whose rows are scattered over several attempts.
    """
    layout = stage.layout
    if not layout.sharded_arrays:
        return [], []
    reader = stage.reader()
    shards: list[_Shard] = []
    scattered_pieces = []
    for piece in range(layout.n_pieces):
        rows = layout.rows(piece)
        shards_of_piece = _shards_of_piece(stage, reader, rows, [_done_entry(best, row) for row in rows])
        if shards_of_piece is None:
            scattered_pieces.append(piece)
        else:
            shards += shards_of_piece
    return shards, scattered_pieces


def _done_entry(best: BestEntries, row: int) -> JournalEntry | None:
    """Return the best entry of a row if the row has features; None otherwise."""
    entry = best.get(row)
    return entry if entry is not None and is_done(entry) else None


def _shards_of_piece(
    stage: Stage, reader: StagedRows, rows: range, entries: Sequence[JournalEntry | None]
) -> list[_Shard] | None:
    """Find the shards of a piece in one attempt or in the parent store; None if its rows are scattered.

    Parameters
    ----------
    stage, reader
        The stage, and a reader of its rows.
    rows
        The rows of the piece.
    entries
        The entry of each row; None for a row without features.
    """
    arrays = stage.layout.sharded_arrays
    attempts: set[PieceAttempt] = {entry.holding_attempt for entry in entries if entry is not None}
    if len(attempts) == 1 and attempts <= stage.attempts_with_whole_shards:
        (attempt,) = attempts
        return [_Shard(array, rows, attempt_file(stage.path, attempt, array)) for array in arrays]
    parent_shards = []
    for array in arrays:
        parent_shard = reader.parent_shard(array, rows, entries)
        if parent_shard is not None:
            path, digest = parent_shard
            parent_shards.append(_Shard(array, rows, str(path), digest))
    if len(parent_shards) == len(arrays):
        return parent_shards
    if not attempts:
        return [_Shard(array, rows, "") for array in arrays]
    return None


def _link_shard(root: Path, stage: Stage, shard: _Shard) -> _Written:
    """Check the file of a shard, and link it into the store, or copy it where hard links do not work.

    A shard of rows without features has no file; it is written with fill values.
    """
    written = _Written(shard.rows)
    file = shard.array.file(shard.rows.start // shard.array.block)
    if not shard.path:
        written.digests[file] = _write_empty_shard(root / file, shard)
        return written
    try:
        written.digests[file], written.damaged_rows = _checked_shard(shard)
    except FileNotFoundError:
        written.damaged_rows = set(shard.rows)
    if shard.digest and written.digests.get(file) != shard.digest:
        row = min(written.damaged_rows or shard.rows)
        raise stage.reader().damaged_parent(stage.clips[row].clip_id, shard.array)
    if not written.damaged_rows:
        try:
            os.link(shard.path, root / file)
        except OSError:
            with naming(root / file):
                shutil.copyfile(shard.path, root / file)
    return written


def _write_empty_shard(path: Path, shard: _Shard) -> str:
    """Write a shard of rows without features, which have fill values; return its SHA-256."""
    n_rows = len(shard.rows)
    fill_rows = [with_checksum(shard.array.fill_row)] * n_rows
    return _write_file(path, [*fill_rows, shard.array.shard_index(n_rows)])


def _checked_shard(shard: _Shard) -> tuple[str, set[int]]:
    """Return the SHA-256 of a shard's file, and the rows whose checksum is wrong.

    If the index at its end is wrong, these are all its rows.
    """
    digest = hashlib.sha256()
    damaged_rows = set[int]()
    buffer = memoryview(bytearray(BLOCK))
    with open_regular(shard.path) as file:
        for row in shard.rows:
            checksum = 0
            n_left = len(shard.array.fill_row)
            while n_left and (n_read := file.readinto(buffer[: min(BLOCK, n_left)])):
                checksum = crc32c(buffer[:n_read], checksum)
                digest.update(buffer[:n_read])
                n_left -= n_read
            stored_checksum = file.read(CRC_BYTES) or b""
            digest.update(stored_checksum)
            if stored_checksum != checksum.to_bytes(CRC_BYTES, "little"):
                damaged_rows.add(row)
        index = file.read() or b""
    digest.update(index)
    if index != shard.array.shard_index(len(shard.rows)):
        damaged_rows |= set(shard.rows)
    return digest.hexdigest(), damaged_rows
