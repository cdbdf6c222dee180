"""Seal a stage as an immutable store; the same clips always give the same bytes.

Shards of tokens are linked from the stage, which holds them as the store does. The small arrays of the pieces
are poured into chunks, which have more rows than a piece.
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
from itertools import repeat
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
    RAGGED_ARRAYS,
    ROW_CHUNK,
    ROW_SIZE,
    STAGING_SUFFIX,
    STATUSES,
    spec_version,
)
from obygaze_features.store.journal import Attempt, JournalEntry, is_done
from obygaze_features.store.metadata import write_all_but_parts
from obygaze_features.store.missing_videos import refuse_missing_videos
from obygaze_features.store.pieces import RaggedArray, RaggedGroup, Rows, StoredArray, attempt_file
from obygaze_features.store.provenance import plain, validate_licence
from obygaze_features.store.records import StoredClip, one_line
from obygaze_features.store.shares import number_of_shares, shown_shares
from obygaze_features.store.stage import Stage, read_stage

Best = Mapping[int, JournalEntry]
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
    licence
        SPDX expression or NOASSERTION.
    allow_missing
        Seal although clips are still to do; their rows get the status missing.
    max_failed
        Most failed clips allowed; None is any number.
    parent
        Fingerprint of the store that this one grew from; None is the stage's parent, if any.
    merged_with
        Fingerprints of the stores whose clips were added to the parent's.
    counted
        Attributes of stores all of whose clips are here: what they count is added. A stage that grows a store
        adds that one's.
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
    final = final_path(destination, version)
    stage = read_stage(stage_path or destination.with_name(destination.name + STAGING_SUFFIX))
    if parent is None and stage.grows is not None:
        parent = stage.grows.fingerprint
        counted = [stage.grows.attributes()]
    if parent is not None and not fits(parent, Hex64):
        raise StoreError(f"parent {parent!r}: expected a fingerprint, {expected(Hex64)}")
    best: Best = stage.best()
    _refuse_unready(stage, best, allow_missing=allow_missing, max_failed=max_failed)
    about: dict[str, object] = {
        "spec_version": "",  # known once the rows are
        "licence": validate_licence(licence),
        "citation": one_line(citation, "citation"),
        "corpus": stage.corpus,
        "parent": parent,
        **({"merged_with": list(merged_with)} if merged_with else {}),
    }
    plain(about, ATTRIBUTE)
    with alone_in(building, "sealing here"):
        final_path(destination, version)
        root = building / "store"
        try:
            best, parts = _seal_rows(root, stage, progress or (lambda *_: None), workers or usable_cores())
            clips = _stored_clips(stage, best)
            about |= _found(stage, best, counted)
            digests = _digests(stage, best)
            write_all_but_parts(
                root,
                clips,
                stage.groups,
                about,
                version=version,
                parts=parts,
                digests=digests,
                row_sizes=_row_sizes(stage, best),
            )
            sync_tree(root)
            root.rename(final)
            sync(final.parent)
        except MemoryError as error:
            raise StoreError(f"{stage.path}: its rows need more memory than there is ({error})") from error
        finally:
            remove_tree(building, ignore_errors=True)
    return final


def final_path(destination: Path, version: str) -> Path:
    """Return the path of a version of a store; refuse invalid versions and existing ones.

    Removes what a sealing left that was killed as the store had its name.
    """
    final = versioned(destination, version)
    if final.exists():
        building = destination.with_name(destination.name + BUILDING_SUFFIX)
        if building.is_dir():
            with locked(building, wait=False) as ours:
                if ours:
                    remove_tree(building, ignore_errors=True)
        raise StoreError(
            f"{final}: exists, and a sealed store never changes; "
            "choose another version (--store-version 1.0.1) or name"
        )
    return final


@contextmanager
def passing_stage(destination: Path, version: str, suffix: str) -> Iterator[Callable[..., Stage]]:
    """Yield what opens a stage beside a store to be sealed from it at once; it is removed in any case.

    What a killed process left of it is removed first: its rows may be of files that have changed since.

    Raises
    ------
    StoreError
        If the store exists, or another process makes it.
    """
    work = destination.with_name(f"{destination.name}-{version}{suffix}")
    try:
        final_path(destination, version)
    except StoreError:
        remove_tree(work, ignore_errors=True)
        raise
    with alone_in(work, "making this store"):
        try:
            empty(work)
            # Not in `work` itself: making a stage locks the folder that it is in.
            yield partial(Stage.open, work / "part" / "stage")
        finally:
            remove_tree(work, ignore_errors=True)


def versioned(destination: Path, version: str) -> Path:
    """Return the path of a version of a store; refuse invalid versions and folders of sealed stores."""
    if not VERSION.fullmatch(version):
        raise StoreError(f"store version {version!r}: expected three numbers such as 1.0.0")
    name, _, last = destination.name.rpartition("-")
    if name and VERSION.fullmatch(last) and (destination / BAGIT).is_file():
        raise StoreError(f"{destination} is sealed; the name is {destination.with_name(name)}")
    if destination.name.endswith(STAGING_SUFFIX):
        stem = destination.with_name(destination.name.removesuffix(STAGING_SUFFIX))
        raise StoreError(f"{destination} is a staging folder's name; the name is {stem}")
    return destination.with_name(f"{destination.name}-{version}")


def _shares_left(stage: Stage, missing: Sequence[str]) -> str:
    """Name the shares in which clips are still to do; empty where clips are not divided."""
    number = number_of_shares(stage.path)
    if number is None:
        return ""
    shares = shown_shares(sorted({stage.piece(clip_id) % number for clip_id in missing}))
    return f" (shares {shares} of {number}: --array={shares} does these again)"


def _refuse_unready(stage: Stage, best: Best, *, allow_missing: bool, max_failed: int | None) -> None:
    """Refuse a stage with missing clips, with clips that another machine could fill, or too many failed."""
    missing = [clip.clip_id for row, clip in enumerate(stage.clips) if row not in best]
    if len(missing) == len(stage.clips) > 0:
        raise StoreError(
            f"{stage.path}: none of its {len(stage.clips)} clips is done, so there is nothing to seal; "
            "'obygaze extract' does them"
        )
    if missing and not allow_missing:
        raise StoreError(
            f"{stage.path}: {len(missing)} of {len(stage.clips)} clips are still to do, "
            f"the first is {missing[0]}{_shares_left(stage, missing)}; extract again, or allow missing clips "
            "(--allow-missing)"
        )
    if not allow_missing:
        refuse_missing_videos(stage)
    failed = sum(entry.status == "failed" for entry in best.values())
    if max_failed is not None and failed > max_failed:
        raise StoreError(
            f"{stage.path}: {failed} clips have failed, and at most {max_failed} may (--max-failed); "
            "`obygaze extract` with --retry-failed tries them again"
        )


class _Counted(msgspec.Struct):
    clips: int


def _found(stage: Stage, best: Best, counted: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Return the attributes that depend on the clips: the format's version, GPUs' shares, and streams."""
    attributes: dict[str, object] = {"spec_version": _version_of(stage, best)}
    sources = [entry.source for entry in best.values() if is_done(entry)]
    devices = Counter(str(source["device"]) for source in sources if "device" in source)
    streams = Counter(str(source["stream"]) for source in sources if "stream" in source)  # as JSON
    for merged in counted:
        devices_of_store = merged.get("devices", {})
        streams_of_store = merged.get("streams", [])
        if not (fits(devices_of_store, dict[str, int]) and fits(streams_of_store, list[_Counted])):
            raise StoreError("devices or streams, attributes of a store, do not count its clips")
        devices.update(devices_of_store)
        for stream in streams_of_store:
            facts = {name: value for name, value in stream.items() if name != "clips"}
            streams[json.dumps(facts, sort_keys=True)] += stream["clips"]
    if devices:
        attributes["devices"] = dict(sorted(devices.items()))
    if streams:
        attributes["streams"] = [{**json.loads(text), "clips": n} for text, n in sorted(streams.items())]
    return attributes


def _version_of(stage: Stage, best: Best) -> str:
    """Return the version of the format, which follows from the arrays that there are."""
    arrays = {"clip", "status"}
    if stage.clips[0].text is not None:
        arrays.add("text")
    if stage.layout.ragged:
        arrays.add(ROW_SIZE)
    for group in stage.groups:
        arrays.update(group.clip_arrays())
    return spec_version(arrays, absent=any(entry.absent for entry in best.values()))


def _stored_clips(stage: Stage, best: Best) -> list[StoredClip]:
    unknown = JournalEntry(0, "", STATUSES[0])
    clips = []
    for row, plan in enumerate(stage.clips):
        entry = best.get(row, unknown)
        outcome = (entry.status, entry.reason)
        span = (plan.start_s, plan.end_s)
        clips.append(
            StoredClip(plan.clip_id, *outcome, plan.movie, *span, entry.source, {}, plan.text, entry.absent)
        )
    return clips


def _digests(stage: Stage, best: Best) -> Iterator[dict[str, str]]:
    """Yield the digests of every row; a million of these dictionaries at once take 0.5 GB."""
    names = stage.layout.names
    for row in range(len(stage.clips)):
        yield best[row].digests(names) if row in best else {}


def _row_sizes(stage: Stage, best: Best) -> dict[str, NDArray[np.int64]]:
    """Return the number of frames of every clip [N], by ragged group; 0 of clips without features."""
    sizes = {group.name: np.zeros(len(stage.clips), np.int64) for group in stage.layout.ragged}
    for row, entry in best.items():
        if is_done(entry):
            for name, (_, n_frames) in entry.frames.items():
                sizes[name][row] = n_frames
    return sizes


# --- chunks and shards
# ---------------------------------------------------------------------------
@dataclass
class _Done:
    """What a run of rows came to: the digests of files, and the rows whose bytes are not what they were."""

    rows: range
    digests: dict[str, str] = field(default_factory=dict)
    bad: set[int] = field(default_factory=set)


def _seal_rows(root: Path, stage: Stage, progress: Progress, workers: int) -> tuple[Best, dict[str, str]]:
    """Write every chunk and link every shard, several at a time; return what is in them, and file -> SHA-256.

    Pieces whose rows lie in several attempts, and pieces with bytes that are not what they were, are written
    once more from what is good. A writer at work may add entries meanwhile: those returned are of the bytes.
    """
    layout = stage.layout
    total = layout.n_clips * (1 + len(layout.shards) + len(layout.ragged))
    had = {row for row, entry in stage.best().items() if is_done(entry)}
    while True:
        best = stage.best()
        if lost := sorted(row for row in had if row not in best or not is_done(best[row])):
            raise StoreError(
                f"{stage.path}: {len(lost)} clips are not what they were when committed, the first is "
                f"{stage.clips[lost[0]].clip_id}; they are marked missing now: extract again, then seal"
            )
        shards, scattered = _shards(stage, best)
        parts: list[_Done] = []
        if not scattered:
            empty(root.parent)
            files = [file for array in (*layout.small, *layout.shards) for file, _ in array.blocks()]
            for file in files:
                (root / file).parent.mkdir(parents=True, exist_ok=True)
            starts = range(0, layout.n_clips, ROW_CHUNK)
            reader = stage.reader()
            work = [partial(_pour, root, reader, best, start) for start in starts]
            work += [partial(_link, root, stage, shard) for shard in shards]
            sizes = _row_sizes(stage, best)
            for group in layout.ragged:
                ends = np.cumsum(sizes[group.name])
                pour = partial(_pour_frames, root, reader, best, _Frames(group, ends))
                work += [
                    partial(pour, range(start, start + FRAMES_AT_ONCE))
                    for start in range(0, int(ends[-1]), FRAMES_AT_ONCE)
                ]
            with ThreadPoolExecutor(workers) as threads:  # most of the work releases the GIL
                n_done = 0
                for part in threads.map(lambda task: task(), work):
                    parts.append(part)
                    n_done += len(part.rows)
                    progress(n_done, total)
        bad = {stage.piece(stage.clips[row].clip_id) for part in parts for row in part.bad}
        if not bad and not scattered:
            return best, {file: digest for part in parts for file, digest in part.digests.items()}
        with stage.writer([]) as writer:
            for piece in sorted(bad.union(scattered)):
                writer.join(piece)


def _pour(root: Path, reader: Rows, best: Best, start: int) -> _Done:
    """Write the chunks of the small arrays for `ROW_CHUNK` rows."""
    layout = reader.layout
    part = _Done(range(start, min(start + ROW_CHUNK, layout.n_clips)))
    chunks = [(array, bytearray(array.block * len(array.fill))) for array in layout.small]
    fill = memoryview(b"".join(array.fill for array in layout.small))
    for row in part.rows:
        entry = best.get(row)
        record = fill if entry is None or not is_done(entry) else reader.record(entry)
        if record is None:
            part.bad.add(row)
        if record is None or part.bad:
            continue  # the remaining rows are checked too
        for (array, chunk), (_, values) in zip(chunks, layout.split(record), strict=True):
            index = row % array.block
            size = len(array.fill)
            chunk[index * size : (index + 1) * size] = values
            if index + 1 == array.block or row == part.rows[-1]:
                chunk[(index + 1) * size :] = array.fill * (array.block - index - 1)
                file = array.file(row // array.block)
                part.digests[file] = _write(root / file, [with_checksum(chunk)])
    return part


FRAMES_AT_ONCE = max(kind.chunk for kind in RAGGED_ARRAYS.values())
"""Frames of a ragged group that are poured as one: whole chunks of every array."""


class _Frames(NamedTuple):
    """A ragged group, and the number of frames up to the end of each clip, int64 [N]."""

    group: RaggedGroup
    ends: NDArray[np.int64]


def _pour_frames(root: Path, reader: Rows, best: Best, of_clips: _Frames, frames: range) -> _Done:
    """Write the chunks of a ragged group's arrays for some frames, counted over all clips.

    A clip that goes on in the next chunks is read, and checked, for both.
    """
    group, ends = of_clips
    n_frames = int(ends[-1])
    stop = min(frames.stop, n_frames)
    first, last = np.searchsorted(ends, [frames.start, stop - 1], side="right").tolist()
    is_last = stop == n_frames
    part = _Done(range(first if frames.start else 0, len(ends) if is_last else last))
    chunks = [_Chunks(root, array, n_frames, frames.start) for array in group.arrays]
    for row in range(first, last + 1):
        start = int(ends[row - 1]) if row else 0
        if ends[row] == start:
            continue
        arrays = reader.frames(best[row], group)
        if arrays is None:
            part.bad.add(row)
        if arrays is None or part.bad:
            continue  # the remaining rows are checked too
        begin = max(frames.start, start) - start
        end = min(stop, int(ends[row])) - start
        for chunk, (array, data) in zip(chunks, arrays.items(), strict=True):
            size = len(array.fill)
            chunk.add(data[begin * size : end * size])
    for chunk in chunks:
        if not part.bad:
            chunk.close()
        part.digests |= chunk.digests
    return part


class _Chunks:
    """Chunks of a ragged array that are filled one after another, from the one with a given frame on.

    Attributes
    ----------
    digests
        File -> SHA-256 of every chunk that was written.
    """

    def __init__(self, root: Path, array: RaggedArray, n_frames: int, start: int) -> None:
        self._root = root
        self._array = array
        self._block = array.block(n_frames)
        self._number = start // self._block
        self._rows = bytearray()
        self.digests: dict[str, str] = {}

    def add(self, rows: memoryview) -> None:
        """Add rows, and write the chunks that are full."""
        self._rows += rows
        size = self._block * len(self._array.fill)
        while len(self._rows) >= size:
            self._write(self._rows[:size])
            del self._rows[:size]

    def close(self) -> None:
        """Fill up the last chunk, if it has any row."""
        if self._rows:
            lacking = self._block - len(self._rows) // len(self._array.fill)
            self._write(self._rows + self._array.fill * lacking)

    def _write(self, rows: bytearray) -> None:
        file = self._array.file(self._number)
        (self._root / file).parent.mkdir(parents=True, exist_ok=True)
        self.digests[file] = _write(self._root / file, [with_checksum(rows)])
        self._number += 1


def _write(path: Path, blocks: Iterable[bytes]) -> str:
    """Write a file; return its digest."""
    digest = hashlib.sha256()
    with naming(path), FileIO(path, "x") as file:
        for block in blocks:
            digest.update(block)
            write_all(file.fileno(), block)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Shard:
    """A shard of a piece, and where it is: nowhere, if it has no features.

    `digest` is what it must have, if it is one of the parent's.
    """

    array: StoredArray
    rows: range
    path: str
    digest: str = ""


def _shards(stage: Stage, best: Best) -> tuple[list[_Shard], list[int]]:
    """Find the shards of every piece; return them, and the pieces that no attempt and no parent has whole."""
    layout = stage.layout
    reader = stage.reader()
    shards: list[_Shard] = []
    scattered = []
    for piece in range(layout.n_pieces if layout.shards else 0):
        rows = layout.rows(piece)
        features = [
            entry if (entry := best.get(row)) is not None and is_done(entry) else None for row in rows
        ]
        attempts: set[Attempt] = {entry.written_in for entry in features if entry is not None}
        parents = [reader.parent_shard(array, rows, features) for array in layout.shards]
        if len(attempts) == 1 and attempts <= stage.whole:
            where = attempts.pop()
            shards += [
                _Shard(shard_array, rows, attempt_file(stage.path, where, shard_array))
                for shard_array in layout.shards
            ]
        elif None not in parents:
            pairs = zip(layout.shards, filter(None, parents), strict=True)
            shards += [_Shard(array, rows, str(path), digest) for array, (path, digest) in pairs]
        elif not attempts:
            shards += [_Shard(shard_array, rows, "") for shard_array in layout.shards]
        else:
            scattered.append(piece)
    return shards, scattered


def _link(root: Path, stage: Stage, shard: _Shard) -> _Done:
    """Link a shard into the store, or copy it where links do not work; its bytes are checked."""
    part = _Done(shard.rows)
    file = shard.array.file(shard.rows.start // shard.array.block)
    if not shard.path:
        fill = shard.array.fill
        n_rows = len(shard.rows)
        filler = repeat(with_checksum(fill), n_rows)
        part.digests[file] = _write(root / file, [*filler, shard.array.shard_index(n_rows)])
        return part
    try:
        part.digests[file], part.bad = _checked_shard(shard)
    except FileNotFoundError:
        part.bad = set(shard.rows)
    if shard.digest and part.digests.get(file) != shard.digest:
        row = min(part.bad or shard.rows)
        raise stage.reader().damaged_parent(stage.clips[row].clip_id, shard.array)
    if not part.bad:
        try:
            os.link(shard.path, root / file)
        except OSError:
            with naming(root / file):
                shutil.copyfile(shard.path, root / file)
    return part


def _checked_shard(shard: _Shard) -> tuple[str, set[int]]:
    """Return the digest of a shard, and the rows that do not have their checksum."""
    digest = hashlib.sha256()
    bad = set[int]()
    buffer = memoryview(bytearray(BLOCK))
    with open_regular(shard.path) as file:
        for row in shard.rows:
            checksum = 0
            fill_left = len(shard.array.fill)
            while fill_left and (size := file.readinto(buffer[: min(BLOCK, fill_left)])):
                checksum = crc32c(buffer[:size], checksum)
                digest.update(buffer[:size])
                fill_left -= size
            tail = file.read(CRC_BYTES) or b""
            digest.update(tail)
            if tail != checksum.to_bytes(CRC_BYTES, "little"):
                bad.add(row)
        tail = file.read() or b""
    digest.update(tail)
    if tail != shard.array.shard_index(len(shard.rows)):
        bad |= set(shard.rows)
    return digest.hexdigest(), bad
