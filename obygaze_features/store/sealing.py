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
    next_patch,
    spec_version,
)
from obygaze_features.store.journal import JournalEntry, is_done
from obygaze_features.store.metadata import write_metadata_files
from obygaze_features.store.missing_videos import refuse_missing_videos
from obygaze_features.store.pieces import RaggedArray, RaggedGroup, StagedRows, StoredArray, attempt_file
from obygaze_features.store.provenance import checked_json, terms_of_next_version, validate_licence
from obygaze_features.store.records import StoredClip, checked_line
from obygaze_features.store.shares import number_of_shares, shown_shares
from obygaze_features.store.stage import Stage, read_stage
from obygaze_features.text import counted
from obygaze_features.untrusted import open_regular

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
        SPDX expression or NOASSERTION. A store that extends another one then keeps the licence of that store.
    citation
        How to cite the features; empty for none, or for that of the store that is extended.
    allow_missing
        Seal although clips are still to do; their rows get the status missing.
    max_failed
        Most failed clips allowed; None is any number.
    parent
        Fingerprint of the store that this one grew from; None is the stage's parent, if any.
    merged_with
        Fingerprints of the stores whose clips were added to the parent's.
    counted
        Attributes of the stores that were merged into this one with all their clips. Their counts of clips by
        GPU and by video stream are added to those of this store. Of a stage that extends a store, the counts
        of that store are added.
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

    # A stage that extends a store keeps the licence and citation of that store. Unless the caller names the
    # parent, that store is the parent, and the counts in its attributes (of clips by GPU and by video stream)
    # are added to those of the clips that are new here.
    counted_stores = counted
    extended_store = stage.parent_store
    if extended_store is not None:
        licence, citation = terms_of_next_version(licence, citation, extended_store.attributes())
    if parent is None and extended_store is not None:
        parent = extended_store.fingerprint
        counted_stores = [extended_store.attributes()]
    if parent is not None and not fits(parent, Hex64):
        raise StoreError(f"parent {parent!r}: expected a fingerprint, {expected(Hex64)}")

    _refuse_unready(stage, stage.best_entries(), allow_missing=allow_missing, max_failed=max_failed)
    attributes = _attributes_of_stage(stage, parent, merged_with, licence=licence, citation=citation)

    with alone_in(building, "sealing here"):
        new_store_path(destination, version)  # raises if another process has sealed it meanwhile
        root = building / "store"
        try:
            # Write features, then what describes them. The journals may have changed meanwhile: what counts
            # is the entry of each row whose bytes were written.
            sealed_rows = _seal_rows(root, stage, progress or _show_nothing, workers or usable_cores())
            entries = sealed_rows.best
            attributes |= _attributes_of_clips(stage, entries, counted_stores)
            write_metadata_files(
                root,
                _stored_clips(stage, entries),
                stage.groups,
                attributes,
                version=version,
                feature_files=sealed_rows.files,
                digests=_digests(stage, entries),
                row_sizes=_row_sizes(stage, entries),
            )
            # The store is complete and on the disk before it gets its name.
            sync_tree(root)
            root.rename(final)
            sync(final.parent)
        except MemoryError as error:
            raise StoreError(f"{stage.path}: its rows need more memory than there is ({error})") from error
        finally:
            remove_tree(building, ignore_errors=True)
    return final


def _attributes_of_stage(
    stage: Stage, parent: str | None, merged_with: Sequence[str], *, licence: str, citation: str
) -> dict[str, object]:
    """Return the attributes of a store that are known before its rows are written.

    Raises
    ------
    StoreError
        One of them is invalid.
    """
    attributes: dict[str, object] = {
        "spec_version": "",  # replaced when the rows are written: it depends on their best entries
        "licence": validate_licence(licence),
        "citation": checked_line(citation, "citation"),
        "corpus": stage.corpus,
        "parent": parent,
    }
    if merged_with:
        attributes["merged_with"] = list(merged_with)
    checked_json(attributes, ATTRIBUTE)
    return attributes


def _show_nothing(_n_done: int, _n_total: int) -> None:
    """Take the progress of sealing, and show nothing: the default where no progress is wanted."""


def new_store_path(destination: Path, version: str) -> Path:
    """Return the path of a version of a store, `DESTINATION-VERSION`, which must not exist yet.

    Raises
    ------
    StoreError
        If the version is invalid or exists. In the second case, what a killed sealing of it has left behind
        is removed.
    """
    final = versioned_path(destination, version)
    if final.exists():
        remove_leftovers(destination)
        free_version = version
        while versioned_path(destination, free_version).exists():
            free_version = next_patch(free_version)
        raise StoreError(
            f"{final}: exists, and a sealed store never changes; "
            f"choose another version (--store-version {free_version}) or name"
        )
    return final


def remove_leftovers(destination: Path) -> None:
    """Remove the folder of a sealing that was killed right after it had renamed the finished store."""
    building = destination.with_name(destination.name + BUILDING_SUFFIX)
    if building.is_dir():
        with locked(building, wait=False) as has_got_lock:
            if has_got_lock:  # no sealing is at work there
                remove_tree(building, ignore_errors=True)


@contextmanager
def temporary_stage(destination: Path, version: str, suffix: str) -> Iterator[Callable[..., Stage]]:
    """Make a folder beside a store for a temporary stage, from which the store is sealed.

    If a killed process left the folder, it is emptied first: rows in it may be of files that have changed
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
            # Making a stage locks the folder around it. `work` is locked by this process already, so the
            # stage gets another folder around it.
            yield partial(Stage.open, work / "part" / "stage")
        finally:
            remove_tree(work, ignore_errors=True)


def versioned_path(destination: Path, version: str) -> Path:
    """Return the path of a version of a store: `DESTINATION-VERSION`.

    Raises
    ------
    StoreError
        If the version is not three numbers, or the destination is the path of a sealed store or has the name
        of a staging folder.
    """
    if not VERSION.fullmatch(version):
        raise StoreError(f"store version {version!r}: expected three numbers such as 1.0.0")

    name, _, ending = destination.name.rpartition("-")
    has_versioned_name = name != "" and VERSION.fullmatch(ending) is not None
    if has_versioned_name and (destination / BAGIT).is_file():
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
    # Share i of n has the pieces k with k % n == i.
    shares_of_missing = {stage.piece(clip_id) % n_shares for clip_id in missing}
    shares = shown_shares(sorted(shares_of_missing))
    return f" (shares {shares} of {n_shares}: --array={shares} does these again)"


def _refuse_unready(stage: Stage, best: BestEntries, *, allow_missing: bool, max_failed: int | None) -> None:
    """Refuse to seal a stage that is not complete.

    Raises
    ------
    StoreError
        If no clip is done; if clips are missing, or failed only because this machine lacks their videos
        (both unless `allow_missing`); or if more than `max_failed` clips failed.
    """
    n_clips = len(stage.clips)
    missing = [clip.clip_id for row, clip in enumerate(stage.clips) if row not in best]
    all_are_missing = len(missing) == n_clips
    if missing and all_are_missing:
        raise StoreError(
            f"{stage.path}: none of its {counted(n_clips, 'clip')} is done, so there "
            "is nothing to seal; "
            "'obygaze extract' does them"
        )

    if missing and not allow_missing:
        shares = _describe_missing_shares(stage, missing)
        raise StoreError(
            f"{stage.path}: {len(missing)} of {counted(n_clips, 'clip')} are still to do, "
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


def _attributes_of_clips(
    stage: Stage, best: BestEntries, counted_stores: Sequence[Mapping[str, Any]]
) -> dict[str, object]:
    """Return the store's attributes that depend on its clips.

    They are the version of the format that it needs, and, where these are known, the number of clips by GPU
    (`devices`, such as {"NVIDIA H200": 40}) and by properties of the video stream (`streams`, a list of these
    properties with the number of `clips`).
    """
    for attributes_of_other in counted_stores:
        other_devices = attributes_of_other.get("devices", {})
        other_streams = attributes_of_other.get("streams", [])
        if not fits(other_devices, dict[str, int]) or not fits(other_streams, list[_StreamCount]):
            raise StoreError("devices or streams, attributes of a store, do not count its clips")

    # What the journal records of each clip's video and of the device that computed its features.
    sources = [entry.source for entry in best.values() if is_done(entry)]
    attributes: dict[str, object] = {"spec_version": _needed_format_version(stage, best)}
    n_by_device = _count_devices(sources, counted_stores)
    if n_by_device:
        attributes["devices"] = n_by_device
    streams = _count_streams(sources, counted_stores)
    if streams:
        attributes["streams"] = streams
    return attributes


def _count_devices(
    sources: Sequence[Mapping[str, object]], counted_stores: Sequence[Mapping[str, Any]]
) -> dict[str, int]:
    """Count clips by the GPU that computed their features: name of the GPU -> number of clips.

    Parameters
    ----------
    sources
        What the journal records of each clip that was extracted for this store. Features that a CPU computed
        have no `device`.
    counted_stores
        Attributes of sealed stores whose clips this store has, too. Each has counted its own clips already,
        as `devices`; these counts are added.
    """
    n_by_device = Counter(str(source["device"]) for source in sources if "device" in source)
    for attributes_of_other in counted_stores:
        counted_there = attributes_of_other.get("devices", {})
        n_by_device.update(counted_there)  # adds the numbers
    return dict(sorted(n_by_device.items()))


def _count_streams(
    sources: Sequence[Mapping[str, object]], counted_stores: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Count clips by the properties of their video streams, such as codec and colours.

    An entry of the journal holds the properties of the stream as JSON with sorted keys. Equal properties are
    therefore equal texts, which a `Counter` can count, as it cannot count dictionaries.

    Parameters
    ----------
    sources
        For each clip with features, what is known of its file, with the properties as JSON (`stream`).
    counted_stores
        Attributes of other stores, whose counts (`streams`) are added.

    Returns
    -------
    list of dict
        Each set of properties, with the number of `clips` that have it.
    """
    n_by_json = Counter(str(source["stream"]) for source in sources if "stream" in source)
    for attributes_of_other in counted_stores:
        for stream in attributes_of_other.get("streams", []):
            properties = {name: value for name, value in stream.items() if name != "clips"}
            n_by_json[json.dumps(properties, sort_keys=True)] += stream["clips"]
    streams = []
    for properties_json, n_clips in sorted(n_by_json.items()):
        streams.append({**json.loads(properties_json), "clips": n_clips})
    return streams


def _needed_format_version(stage: Stage, best: BestEntries) -> str:
    """Return the lowest version of the format that has all that a store needs.

    Later versions of the format added arrays, such as texts, and places for what a clip lacks: features in
    one group, or pictures in a part of it.
    """
    arrays = {"clip", "status"}
    is_store_of_texts = stage.clips[0].text is not None  # of all rows or of none
    if is_store_of_texts:
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
    """Return the clips of the store, without digests, for the table of clips."""
    entry_of_missing_clip = JournalEntry(0, "", "missing")
    clips = []
    for row, planned in enumerate(stage.clips):
        entry = best.get(row, entry_of_missing_clip)
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
    """Yield for each row array -> SHA-256 of the clip's row in it; empty for a missing clip.

    They are yielded one by one, because a million of these dictionaries take 0.5 GB.
    """
    names = stage.layout.names
    for row in range(len(stage.clips)):
        yield best[row].digests(names) if row in best else {}


def _row_sizes(stage: Stage, best: BestEntries) -> dict[str, NDArray[np.int64]]:
    """Return ragged group -> number of frames of every clip, int64 [N]; 0 of clips without features."""
    sizes = {group.name: np.zeros(len(stage.clips), np.int64) for group in stage.layout.ragged_groups}
    for row, entry in best.items():
        if is_done(entry):
            for name, frames in entry.frames.items():
                sizes[name][row] = frames.n_frames
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

    Shards can be linked only if all rows of a piece lie in one attempt, and are undamaged. If a piece is not
    like this, its good rows are rewritten as one attempt, and everything is tried again. Other writers may
    add entries meanwhile, so the entries are returned whose bytes were used.

    Raises
    ------
    StoreError
        Rows that had features at the beginning are damaged, and no other attempt has them.
    """
    done_at_start = {row for row, entry in stage.best_entries().items() if is_done(entry)}
    while True:  # until no piece has to be rewritten
        best = stage.best_entries()  # row -> its valid entry in the journals
        _refuse_lost_rows(stage, best, done_at_start)

        shards, scattered_pieces = _shards(stage, best)
        if scattered_pieces:  # their rows lie in several attempts
            _rewrite_pieces(stage, scattered_pieces)
            continue

        written = _write_all(root, stage, best, shards, progress=progress, workers=workers)
        damaged_pieces: set[int] = set()
        digest_of_file: dict[str, str] = {}
        for written_files in written:
            damaged_pieces.update(row // PIECE_ROWS for row in written_files.damaged_rows)
            digest_of_file |= written_files.digests
        if damaged_pieces:
            _rewrite_pieces(stage, sorted(damaged_pieces))
            continue

        return _SealedRows(best, digest_of_file)


def _rewrite_pieces(stage: Stage, pieces: Sequence[int]) -> None:
    """Write pieces, 16 neighbouring rows each, once more into new files; mark damaged rows as missing."""
    no_clips_to_do: list[str] = []
    with stage.writer(no_clips_to_do) as writer:
        for piece in pieces:
            writer.rewrite_piece(piece)


def _refuse_lost_rows(stage: Stage, best: BestEntries, done_at_start: set[int]) -> None:
    """Raise a StoreError if rows that had features when sealing began have none any more.

    Such a row was found damaged, and its piece was rewritten without it.
    """
    lost = sorted(row for row in done_at_start if row not in best or not is_done(best[row]))
    if lost:
        raise StoreError(
            f"{stage.path}: {counted(len(lost), 'clip is', 'clips are')} not what they "
            "were when committed, the first is "
            f"{stage.clips[lost[0]].clip_id}; they are marked missing now: extract again, then seal"
        )


def _write_all(
    root: Path,
    stage: Stage,
    best: BestEntries,
    shards: Sequence["_Shard"],
    *,
    progress: Progress,
    workers: int,
) -> list[_Written]:
    """Write all chunks and link all shards into the folder of a store, several at a time.

    The folder around it is emptied first, because an earlier try may have left files there.

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

    tasks = _write_tasks(root, stage, best, shards)
    n_times_counted = 1 + len(layout.sharded_arrays) + len(layout.ragged_groups)  # of each row
    n_total = layout.n_clips * n_times_counted
    n_done = 0
    written = []
    with ThreadPoolExecutor(workers) as threads:  # most of the work releases the GIL
        for written_files in threads.map(lambda task: task(), tasks):
            written.append(written_files)
            n_done += len(written_files.rows)
            progress(n_done, n_total)
    return written


def _write_tasks(
    root: Path, stage: Stage, best: BestEntries, shards: Sequence["_Shard"]
) -> list[Callable[[], _Written]]:
    """Return functions to be called in threads, which together write all rows of a store.

    Some write chunks of small arrays, others link shards, or write frames of ragged groups.
    """
    layout = stage.layout
    reader = stage.reader()
    tasks: list[Callable[[], _Written]] = []

    # Small arrays: `ROW_CHUNK` clips at a time.
    for start in range(0, layout.n_clips, ROW_CHUNK):
        rows = range(start, min(start + ROW_CHUNK, layout.n_clips))
        tasks.append(partial(_write_chunks, root, reader, best, rows))

    tasks += [partial(_link_shard, root, stage, shard) for shard in shards]

    # Ragged groups: `FRAMES_AT_ONCE` frames at a time, whatever clips they are of.
    row_sizes = _row_sizes(stage, best)
    for group in layout.ragged_groups:
        clip_frames = _ClipFrames(group, np.cumsum(row_sizes[group.name]))
        for start in range(0, clip_frames.n_frames, FRAMES_AT_ONCE):
            frames = range(start, min(start + FRAMES_AT_ONCE, clip_frames.n_frames))
            tasks.append(partial(_write_frames, root, reader, best, clip_frames, frames))
    return tasks


def _write_chunks(root: Path, reader: StagedRows, best: BestEntries, rows: range) -> _Written:
    """Write the chunks of the small arrays that hold some rows, at most `ROW_CHUNK` of them.

    All rows are read, which checks them. Once one is damaged, nothing more is written: sealing will repair
    the row and begin again.

    Parameters
    ----------
    root
        Folder of the store.
    reader, best
        Reads rows of the stage; row -> its best entry.
    rows
        The rows to write; they begin with a chunk.
    """
    layout = reader.layout
    written = _Written(rows)
    chunks = [_Chunk(root, array) for array in layout.small_arrays]
    # What a row without features has in the small arrays, one after the other.
    fill_values = memoryview(b"".join(array.fill_row for array in layout.small_arrays))

    for row in rows:
        entry = _done_entry(best, row)  # None: the row has no features
        small_rows = fill_values if entry is None else reader.small_rows(entry)
        if small_rows is None:  # its bytes are not those of its digest
            written.damaged_rows.add(row)
            continue
        has_damage_before = len(written.damaged_rows) > 0
        if has_damage_before:  # reading has checked this row, and nothing is written any more
            continue
        is_last = row == rows[-1]
        for chunk, (_array, values) in zip(chunks, layout.split(small_rows), strict=True):
            chunk.put(row, values, is_last=is_last)

    for chunk in chunks:
        written.digests |= chunk.digests
    return written


class _Chunk:
    """The chunk of a small array that is being filled with rows, in order; it is written when it is full.

    Attributes
    ----------
    digests
        File -> SHA-256 of every chunk that was written.
    """

    def __init__(self, root: Path, array: StoredArray) -> None:
        """Begin with an empty chunk of an array, in a store whose folder is `root`; rows are put in later."""
        self._root = root
        self._array = array
        self._data = bytearray(array.rows_per_file * array.row_bytes)
        self.digests: dict[str, str] = {}

    def put(self, row: int, values: memoryview, *, is_last: bool) -> None:
        """Put a row into the chunk, and write the chunk if it is full or this is the last row to write.

        A chunk that is not full is filled up with fill values. The next row begins a new chunk, in the same
        memory.

        Parameters
        ----------
        row
            Row of the clip in the whole array.
        values
            The bytes of the row.
        is_last
            Whether no further row follows.
        """
        array = self._array
        chunk_number, index = divmod(row, array.rows_per_file)  # index: of the row in its chunk
        row_start = array.offset(index)
        row_end = array.offset(index + 1)
        self._data[row_start:row_end] = values

        n_unused = array.rows_per_file - (index + 1)
        is_full = n_unused == 0
        if is_full or is_last:
            self._data[row_end:] = array.fill_row * n_unused
            file = array.file(chunk_number)
            self.digests[file] = _write_file(self._root / file, [with_checksum(self._data)])


FRAMES_AT_ONCE = max(kind.chunk for kind in RAGGED_ARRAYS.values())
"""Frames of a ragged group that are written by one task: whole chunks of every array."""


class _ClipFrames(NamedTuple):
    """A ragged group, and which of its frames, counted over all clips, each clip has.

    Attributes
    ----------
    group
        The group.
    ends
        Number of frames up to the end of each clip, int64 [N]: clip k has the frames from ends[k - 1] (0 for
        the first clip) to ends[k], without the latter.
    """

    group: RaggedGroup
    ends: NDArray[np.int64]

    @property
    def n_frames(self) -> int:
        """Number of frames of all clips."""
        return int(self.ends[-1])

    def frames_of(self, row: int) -> range:
        """Return the frames of the clip in a row."""
        start = int(self.ends[row - 1]) if row else 0
        return range(start, int(self.ends[row]))

    def row_with(self, frame: int) -> int:
        """Return the row of the clip that has a frame: the first clip that ends after it."""
        return int(np.searchsorted(self.ends, frame, side="right"))


def _frames_in_clip(frames_of_clip: range, frames: range) -> range:
    """Return which frames of a clip are among some frames, counted from the clip's first frame.

    Parameters
    ----------
    frames_of_clip
        The frames of the clip, as the frames of all clips are numbered one after the other.
    frames
        The frames that are wanted, numbered in the same way.

    Examples
    --------
    A clip has the frames 10 to 19. Of the wanted frames 15 to 24 it has 15 to 19: its own frames 5 to 9.

    >>> _frames_in_clip(range(10, 20), frames=range(15, 25))
    range(5, 10)
    """
    start = max(frames.start, frames_of_clip.start)
    end = min(frames.stop, frames_of_clip.stop)
    return range(start - frames_of_clip.start, end - frames_of_clip.start)


def _write_frames(
    root: Path, reader: StagedRows, best: BestEntries, clip_frames: _ClipFrames, frames: range
) -> _Written:
    """Write the chunks of a ragged group's arrays that hold some frames.

    In such a group the frames of all clips stand one after the other, and chunks are cut without regard to
    clips. Each call gets some chunks, and reads the clips that have frames in them. A clip across the border
    of two calls is read and checked as a whole by both.

    Once a clip is damaged, the following ones are still read, which checks them, and nothing more is written:
    sealing will repair the clips and begin again.

    Parameters
    ----------
    root
        Folder of the store.
    reader, best
        Reads rows of the stage; the best entry of each row.
    clip_frames
        The group, and which frames each clip has.
    frames
        The frames to write, counted over all clips; they begin with a chunk.
    """
    group = clip_frames.group
    first_row = clip_frames.row_with(frames.start)
    last_row = clip_frames.row_with(frames.stop - 1)
    written = _Written(_finished_clips(clip_frames, frames))
    chunks_of_arrays = [
        _RaggedChunks(root, array, n_frames=clip_frames.n_frames, first_frame=frames.start)
        for array in group.arrays
    ]

    for row in range(first_row, last_row + 1):
        frames_of_clip = clip_frames.frames_of(row)
        if not frames_of_clip:
            continue
        arrays = reader.frames(best[row], group)
        if arrays is None:  # its bytes are not those of its digests
            written.damaged_rows.add(row)
            continue
        has_damage_before = len(written.damaged_rows) > 0
        if has_damage_before:
            continue
        frames_to_write = _frames_in_clip(frames_of_clip, frames)  # counted from the clip's first frame
        for chunks, (array, data) in zip(chunks_of_arrays, arrays.items(), strict=True):
            start_byte = frames_to_write.start * array.row_bytes
            end_byte = frames_to_write.stop * array.row_bytes
            chunks.add(data[start_byte:end_byte])

    for chunks in chunks_of_arrays:
        if not written.damaged_rows:
            chunks.close()  # writes the last chunk, which may not be full
        written.digests |= chunks.digests
    return written


def _finished_clips(clip_frames: _ClipFrames, frames: range) -> range:
    """Return the rows of the clips that count as done for the progress when some frames are written.

    Each clip must count once, although its frames may be written in several parts.

    These are the clips that end in the frames. A clip without frames ends where the clip before it does; at
    the very beginning, it counts with the first frames. If the clips end after 3, 3 and 8 frames, then the
    clips 0 and 1 count with the frames 0 to 5, and clip 2 with the frames 5 to 8.
    """
    # The row of the clip that goes on at a frame is the number of clips that have ended before it.
    first_done = clip_frames.row_with(frames.start) if frames.start > 0 else 0
    end_done = clip_frames.row_with(frames.stop)
    return range(first_done, end_done)


class _RaggedChunks:
    """Writer of the chunks of a ragged array: rows (frames) are added in order, and full chunks are written.

    Parameters
    ----------
    root
        Folder of the store.
    array
        The array.
    n_frames
        Number of all its rows, of all clips together, by which its chunks have their length.
    first_frame
        The first row that will be added, counted over all clips; a chunk begins with it.

    Attributes
    ----------
    digests
        File -> SHA-256 of every chunk that was written.
    """

    def __init__(self, root: Path, array: RaggedArray, *, n_frames: int, first_frame: int) -> None:
        """Begin with the chunk that `first_frame` begins; nothing is written yet."""
        self._root = root
        self._array = array
        self._rows_per_chunk = array.rows_per_chunk(n_frames)
        self._next_chunk = first_frame // self._rows_per_chunk  # number of the chunk to be written next
        self._waiting_bytes = bytearray()  # of rows that were added and not written yet
        self.digests: dict[str, str] = {}

    def add(self, rows: memoryview) -> None:
        """Add the bytes of rows, and write the chunks that are full."""
        self._waiting_bytes += rows
        chunk_bytes = self._rows_per_chunk * self._array.row_bytes
        while len(self._waiting_bytes) >= chunk_bytes:
            self._write_next(self._waiting_bytes[:chunk_bytes])
            del self._waiting_bytes[:chunk_bytes]

    def close(self) -> None:
        """Write the last chunk, filled up with fill values, if it has any row."""
        if self._waiting_bytes:
            n_rows = len(self._waiting_bytes) // self._array.row_bytes
            n_unused = self._rows_per_chunk - n_rows
            self._write_next(self._waiting_bytes + self._array.fill_row * n_unused)

    def _write_next(self, rows: bytearray) -> None:
        """Write the file of the next chunk, given the bytes of all its rows, and note the file's digest."""
        file = self._array.file(self._next_chunk)
        (self._root / file).parent.mkdir(parents=True, exist_ok=True)
        self.digests[file] = _write_file(self._root / file, [with_checksum(rows)])
        self._next_chunk += 1


def _write_file(path: Path, blocks: Iterable[bytes]) -> str:
    """Write blocks of bytes, one after the other, into a new file; return its SHA-256."""
    digest = hashlib.sha256()
    with naming(path), FileIO(path, "x") as file:  # "x": the file must not exist
        for block in blocks:
            digest.update(block)
            write_all(file.fileno(), block)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Shard:
    """A shard of the store: the rows of a piece in one sharded array.

    Attributes
    ----------
    array, rows
        The array and the rows.
    path
        The file to link, in the stage or the parent store; empty if no row has features.
    parent_digest
        SHA-256 that a file of the parent store must have; empty for a file of the stage.
    """

    array: StoredArray
    rows: range
    path: str
    parent_digest: str = ""


def _shards(stage: Stage, best: BestEntries) -> tuple[list[_Shard], list[int]]:
    """Find the file of every shard of a store, so that sealing only makes a hard link to it.

    A shard holds the 16 rows of a piece in one array of tokens. The writer of a piece makes its shards as the
    store will have them, if it can. If it could not, the rows are in files of several attempts, none of which
    has all, and the piece must be written anew.

    Returns
    -------
    list of _Shard
        The shards of all pieces (16 neighbouring rows) that lie in the files of one attempt, or in the store
        that is extended.
    list of int
        Numbers of the other pieces, whose rows are scattered over the files of several attempts.
    """
    layout = stage.layout
    if not layout.sharded_arrays:
        return [], []
    reader = stage.reader()
    shards: list[_Shard] = []
    scattered_pieces = []
    for piece in range(layout.n_pieces):
        rows = layout.rows(piece)
        entries = [_done_entry(best, row) for row in rows]
        shards_of_piece = _shards_of_piece(stage, reader, rows, entries)
        if shards_of_piece is None:  # no file has all rows of the piece
            scattered_pieces.append(piece)
        else:
            shards += shards_of_piece
    return shards, scattered_pieces


def _done_entry(best: BestEntries, row: int) -> JournalEntry | None:
    """Return the best entry of a row; None if the row has no features, as its clip is missing or failed."""
    entry = best.get(row)
    return entry if entry is not None and is_done(entry) else None


def _shards_of_piece(
    stage: Stage, reader: StagedRows, rows: range, entries: Sequence[JournalEntry | None]
) -> list[_Shard] | None:
    """Find the files of the shards with 16 neighbouring rows, one for each array that is stored in shards.

    None if the rows are scattered over several files.
    """
    arrays = stage.layout.sharded_arrays
    # Attempts are runs that have written these rows; each row with features is in the files of one of them.
    attempts = {entry.holding_attempt for entry in entries if entry is not None}

    # One attempt has all rows, in files that have nothing else: these are the shards.
    if len(attempts) == 1:
        (attempt,) = attempts
        if attempt in stage.attempts_with_whole_shards:
            return [_Shard(array, rows, attempt_file(stage.path, attempt, array)) for array in arrays]

    # The store that is extended has exactly these rows in its shards.
    parent_shards = _shards_of_parent(reader, arrays, rows, entries)
    if parent_shards is not None:
        return parent_shards

    # No row has features: there is no file to link, and fill values will be written.
    no_file = ""
    if not attempts:
        return [_Shard(array, rows, no_file) for array in arrays]
    return None


def _shards_of_parent(
    reader: StagedRows, arrays: Sequence[StoredArray], rows: range, entries: Sequence[JournalEntry | None]
) -> list[_Shard] | None:
    """Find the shards of the parent store with exactly the rows of a piece; None if one has others."""
    shards = []
    for array in arrays:
        parent_shard = reader.parent_shard(array, rows, entries)
        if parent_shard is None:
            return None
        file, digest = parent_shard
        shards.append(_Shard(array, rows, str(file), digest))
    return shards


def _link_shard(root: Path, stage: Stage, shard: _Shard) -> _Written:
    """Check the file of a shard, and link it into the store, or copy it where hard links do not work.

    A shard of rows without features has no file; it is written with fill values. If rows are damaged, nothing
    is linked.

    Raises
    ------
    StoreError
        A shard of the parent store has another digest than there: sealing cannot repair it.
    """
    piece = shard.rows.start // shard.array.rows_per_file  # a shard has the rows of one piece, and its number
    file = shard.array.file(piece)
    has_file = bool(shard.path)
    if not has_file:
        digest_of_empty = _write_empty_shard(root / file, shard)
        return _Written(shard.rows, {file: digest_of_empty})

    try:
        digest, damaged_rows = _checked_shard(shard)
    except FileNotFoundError:
        digest = ""
        damaged_rows = set(shard.rows)

    is_of_parent = shard.parent_digest != ""
    if is_of_parent and digest != shard.parent_digest:
        # Without a damaged row, only the whole file is known to differ: its first row is named.
        first_row = min(damaged_rows) if damaged_rows else shard.rows.start
        raise stage.reader().damaged_parent_error(stage.clips[first_row].clip_id, shard.array)
    if damaged_rows:
        return _Written(shard.rows, damaged_rows=damaged_rows)
    _link_or_copy(shard.path, root / file)
    return _Written(shard.rows, {file: digest})


def _link_or_copy(source: str, target: Path) -> None:
    """Make a hard link to a file, or copy the file if the file system does not allow that."""
    try:
        os.link(source, target)
    except OSError:
        with naming(target):
            shutil.copyfile(source, target)


def _write_empty_shard(path: Path, shard: _Shard) -> str:
    """Write a shard of rows without features: fill values with their checksums, then the index.

    Returns its SHA-256.
    """
    n_rows = len(shard.rows)
    fill_rows = [with_checksum(shard.array.fill_row)] * n_rows
    return _write_file(path, [*fill_rows, shard.array.shard_index(n_rows)])


def _checked_shard(shard: _Shard) -> tuple[str, set[int]]:
    """Return the SHA-256 of a shard's file, and the rows whose checksum is wrong.

    The file holds the rows, each with its checksum behind it, and then an index. If the index is wrong, all
    rows count as damaged. The file is read once, block by block, for the checksums and the digest.
    """
    n_rows = len(shard.rows)
    digest = hashlib.sha256()
    damaged_rows = set[int]()
    buffer = memoryview(bytearray(BLOCK))
    with open_regular(shard.path) as file:
        for row in shard.rows:
            checksum = _checksum_of_row(file, shard.array.row_bytes, digest, buffer)
            stored_checksum = file.read(CRC_BYTES) or b""
            digest.update(stored_checksum)
            if stored_checksum != checksum.to_bytes(CRC_BYTES, "little"):
                damaged_rows.add(row)
        index = file.read() or b""
    digest.update(index)
    if index != shard.array.shard_index(n_rows):
        damaged_rows |= set(shard.rows)
    return digest.hexdigest(), damaged_rows


def _checksum_of_row(file: FileIO, n_bytes: int, digest: "hashlib._Hash", buffer: memoryview) -> int:
    """Read the next row of a shard, block by block, and return its CRC-32C.

    Parameters
    ----------
    file
        The file, at the beginning of the row.
    n_bytes
        Length of the row. If the file ends before, the checksum is that of the bytes that are there.
    digest
        Digest of the file, to which the bytes are added.
    buffer
        Memory for a block.
    """
    checksum = 0
    n_left = n_bytes
    while n_left > 0:
        n_read = file.readinto(buffer[: min(len(buffer), n_left)])
        if not n_read:
            break
        checksum = crc32c(buffer[:n_read], checksum)
        digest.update(buffer[:n_read])
        n_left -= n_read
    return checksum
