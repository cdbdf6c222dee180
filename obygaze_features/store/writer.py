"""Write the pieces of a stage: rows at their offsets in any order, then one line in the writer's journal.

The files of an attempt at a piece are created exclusively and never opened for writing again. Without its
line in the journal an attempt does not count, so that a killed writer loses only its open pieces. A complete
shard is just as the store will have it: sealing links it.
"""

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from msgspec import structs
from numpy.typing import NDArray

from obygaze_features.door import open_regular
from obygaze_features.errors import StoreError
from obygaze_features.io import force_to_disk, naming, open_binary, sync, write_all
from obygaze_features.store.arrays import CRC_BYTES, all_finite, row_view
from obygaze_features.store.format import ARRAYS, JOURNALS, PIECE_ROWS, PIECES, RAGGED_ARRAYS
from obygaze_features.store.journal import NO_ROW, Journal, JournalEntry, JournalLine, PieceAttempt, is_done
from obygaze_features.store.pieces import (
    RaggedArray,
    RaggedGroup,
    StagedRows,
    StageLayout,
    StoredArray,
    attempt_file,
)
from obygaze_features.store.records import (
    MOST_NUMBERS,
    ClipFeatures,
    ClipResult,
    GroupSpec,
    PlannedClip,
)

BLOCK = 1 << 18
"""Bytes of a row that are checked and digested together, while they are in the processor's cache."""

WRITE_BLOCK = 1 << 20
"""Bytes of each write (4.8 MB of tokens take 1.6 ms; in a single write 3.2 ms)."""


@dataclass(frozen=True, slots=True)
class _CheckedRow:
    """The bytes of a checked row.

    Parameters
    ----------
    data
        The bytes.
    sha256
        Their SHA-256; None if it is computed after they are written.
    crc32c
        Their checksum.
    """

    data: memoryview | bytes
    sha256: str | None
    crc32c: int


_NO_FRAMES = _CheckedRow(b"", NO_ROW, 0)
"""The rows of a clip that is absent in a ragged group."""

DigestLater = Callable[[str, int, int], Callable[[], str]]
"""Begins to digest a part of a file (path, offset, bytes); returns a function that waits for the SHA-256."""


class StageWriter:
    """Write results of clips to a stage; made by `Stage.writer`, a context manager, one per process.

    Parameters
    ----------
    reader
        Reads the rows of the stage.
    groups
        The arrays of every clip.
    clips
        The clips of the stage, in the order of its rows.
    row_of
        Clip id -> row.
    best
        Row -> its best valid entry.
    attempts
        Attempts that have a line in a journal.
    to_do
        Rows that this writer will do. A piece is finished when all of these that are in it are written.
    digest_later
        Digests rows of shards with `WRITE_BLOCK` bytes and more when they are written; None digests them
        here.
    """

    def __init__(
        self,
        reader: StagedRows,
        groups: Sequence[GroupSpec],
        clips: Sequence[PlannedClip],
        row_of: Mapping[str, int],
        *,
        best: Mapping[int, JournalEntry],
        attempts: Iterable[PieceAttempt],
        to_do: Iterable[int],
        digest_later: DigestLater | None = None,
    ) -> None:
        """Create and lock a new journal in the stage; no other file is written before `commit`."""
        self._reader = reader
        self._stage = reader.stage
        self._layout = reader.layout
        self._groups = {group.name: group for group in groups}
        self._clips = clips
        self._row_of = row_of
        self._best = dict(best)
        self.to_do = set(to_do)
        self._digest_later = digest_later
        self._attempts: defaultdict[int, set[PieceAttempt]] = defaultdict(set)  # by piece
        for attempt in attempts:
            self._attempts[attempt.piece].add(attempt)
        self._journal = Journal(self._stage / JOURNALS)
        self._open_pieces: dict[int, _OpenPiece] = {}
        self._is_open = True

    @property
    def name(self) -> str:
        """Stem of its journal's file name, unique among writers."""
        return self._journal.writer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the writer. If the `with` block raised an error, errors of closing are suppressed."""
        if error is None:
            self.close()
            return
        with suppress(OSError, StoreError):  # the error that is under way matters more
            self.close()

    def close(self) -> None:
        """Finish the open pieces with the rows that they have, and close the journal.

        Raises
        ------
        OSError, StoreError
            If a piece cannot be finished; names the path. The other pieces are finished.
        """
        self._is_open = False
        with ExitStack() as to_finish:  # calls all of them, whatever fails
            to_finish.callback(self._journal.close)
            for _, piece in sorted(self._open_pieces.items()):
                to_finish.callback(self._finish, piece)

    def commit(self, results: Sequence[ClipResult]) -> None:
        """Write the results of some clips; all are checked before any is written.

        A clip is durable when its piece is finished. That is when all clips of the piece that this writer is
        to do are written, or when the writer is closed.

        Raises
        ------
        StoreError
            If a result does not fit the stage, has NaN or inf, or its clip is already done; the message names
            clip and array.
        OSError
            If writing fails; names the path. Clips committed before are safe; this writer is closed.
        """
        if not self._is_open:
            raise StoreError(
                f"{self._journal.path}: this writer was closed, or stopped at an error: begin another"
            )
        checked_results: dict[int, tuple[ClipResult, dict[str, _CheckedRow]]] = {}  # by row of the clip
        for result in results:
            checked_rows = self._check(result)
            row = self._row_of[result.clip_id]
            if row in checked_results:
                raise StoreError(f"clip {result.clip_id}: committed twice at once")
            checked_results[row] = (result, checked_rows)
        try:
            for row in sorted(checked_results):
                result, checked_rows = checked_results[row]
                self._write(row, result, checked_rows)
        except BaseException:
            with suppress(OSError, StoreError):
                self.close()
            raise

    def _write(self, row: int, result: ClipResult, checked_rows: Mapping[str, _CheckedRow]) -> None:
        """Write the checked rows of a clip, and finish its piece if it was the last one to do."""
        entry = JournalEntry(
            row=row,
            clip_id=result.clip_id,
            status=result.status,
            reason=result.reason,
            source=result.source,
            absent=result.absent,
            without_pictures_s=result.without_pictures_s,
        )
        number = row // PIECE_ROWS
        piece = self._open_piece(number)
        piece.put(entry, checked_rows)
        self.to_do.discard(row)
        if self.to_do.isdisjoint(self._layout.rows(number)):
            self._finish(piece)

    def rewrite_piece(self, number: int) -> None:
        """Write a piece once more, as one attempt with the rows of all earlier attempts.

        Rows without features get fill values. A row whose bytes do not have its digests is marked as missing.
        """
        piece = self._open_piece(number)
        for damaged_entry in piece.copy_missing_rows(self._reader, self._best):
            reason = "its bytes are not what they were"
            entry = JournalEntry(damaged_entry.row, damaged_entry.clip_id, "missing", reason)
            piece.put(entry, {})
        piece.complete()
        self._record(piece, whole=True)

    def _open_piece(self, number: int) -> "_OpenPiece":
        """Return this writer's open attempt at the piece with a number; begin one if there is none."""
        if number not in self._open_pieces:
            last = max((attempt.number for attempt in self._attempts[number]), default=0)
            attempt = PieceAttempt(number, self.name, last + 1)
            self._open_pieces[number] = _OpenPiece(self._stage, self._layout, attempt, self._digest_later)
        return self._open_pieces[number]

    def _finish(self, piece: "_OpenPiece") -> None:
        """Make an open piece durable.

        If all its clips are done, rows of earlier attempts are copied into it first. Its shards are then
        whole, and sealing can link them.
        """
        rows = self._layout.rows(piece.attempt.piece)
        all_done = all(row in piece.entries or row in self._best for row in rows)
        is_whole = all_done and len(self._layout.sharded_arrays) > 0
        failure: Exception | None = None
        if is_whole:
            try:
                damaged_entries = piece.copy_missing_rows(self._reader, self._best)
                is_whole = not damaged_entries
                if is_whole:
                    piece.complete()
            except (OSError, StoreError) as error:  # such as a full disk: the rows that are there are kept
                failure = error
                is_whole = False
        self._record(piece, whole=is_whole)
        if failure is not None:
            raise failure

    def _record(self, piece: "_OpenPiece", *, whole: bool) -> None:
        """Flush the files of a piece to the disk, and then write its line into the journal.

        If the piece is whole, the files of earlier attempts are removed. These are only the attempts that
        were known when this writer began, because another writer may be working on the same piece.
        """
        number = piece.attempt.piece
        # Before anything can fail: after a failed fsync, another one proves nothing.
        del self._open_pieces[number]
        piece.flush()
        piece.add_digests()
        self._journal.append(JournalLine(list(piece.entries.values()), whole))
        self._best |= piece.entries
        if whole:
            for attempt in self._attempts[number]:
                for part in (None, *self._layout.sharded_arrays, *self._layout.ragged_groups):
                    Path(attempt_file(self._stage, attempt, part)).unlink(missing_ok=True)
        self._attempts[number].add(piece.attempt)

    def _check(self, result: ClipResult) -> dict[str, _CheckedRow]:
        """Check a result; return `group/array` -> its row as bytes, or an empty dict for a failed clip."""
        where = f"clip {result.clip_id}"
        row = self._row_of.get(result.clip_id)
        if row is None:
            raise StoreError(f"{where}: not in the plan of this stage")
        result.check_gaps(self._clips[row].start_s, self._clips[row].end_s)
        open_piece = self._open_pieces.get(row // PIECE_ROWS)
        # A clip of `to_do` that another process has done meanwhile is done again: both have the same
        # features.
        was_done = row in self._best and is_done(self._best[row]) and row not in self.to_do
        is_written = open_piece is not None and row in open_piece.entries
        if was_done or is_written:
            raise StoreError(f"{where}: already done; rows of a stage are written once")
        if result.status == "failed":
            return {}
        if result.groups.keys() | result.absent.keys() != self._groups.keys():
            raise StoreError(
                f"{where}: expected features of {', '.join(self._groups)}; "
                f"found {', '.join(result.groups) or 'none'}"
            )
        rows: dict[str, _CheckedRow] = {}
        least_later = WRITE_BLOCK if self._digest_later else inf
        for name, features in result.groups.items():
            checked = _check_features(features, self._groups[name], f"{where}, group {name}", least_later)
            for array_name, checked_row in checked.items():
                rows[f"{name}/{array_name}"] = checked_row
        self._add_absent(rows)
        return rows

    def _add_absent(self, rows: dict[str, _CheckedRow]) -> None:
        """Add to `rows` the rows of groups in which a clip is absent: fill values, or no frames."""
        for array in (*self._layout.small_arrays, *self._layout.sharded_arrays):
            if array.name not in rows:
                rows[array.name] = _CheckedRow(array.fill_row, NO_ROW, crc32c(array.fill_row))
        for group in self._layout.ragged_groups:
            for ragged_array in group.arrays:
                rows.setdefault(ragged_array.name, _NO_FRAMES)


class _OpenPiece:
    """An attempt at a piece that is being written.

    It keeps the entries of the clips, the open files, how many frames of each ragged group were written, and
    the digests of rows, some of which are still being computed.

    Parameters
    ----------
    stage
        The staging folder.
    layout
        Places of the rows in files.
    attempt
        The attempt, which names the files.
    digest_later
        As of `StageWriter`.
    """

    def __init__(
        self, stage: Path, layout: StageLayout, attempt: PieceAttempt, digest_later: DigestLater | None
    ) -> None:
        """Begin an attempt at a piece; its files are created when rows are written."""
        self._stage = stage
        self._layout = layout
        self.attempt = attempt
        self._digest_later = digest_later
        self.entries: dict[int, JournalEntry] = {}
        self._descriptors: dict[str, int] = {}  # by path
        self._digests: dict[int, list[str | Callable[[], str]]] = {}  # by row, in the order of arrays
        self._n_frames = dict.fromkeys((group.name for group in layout.ragged_groups), 0)
        ragged_arrays = [array for group in layout.ragged_groups for array in group.arrays]
        self._arrays: list[StoredArray | RaggedArray] = sorted(
            (*layout.small_arrays, *layout.sharded_arrays, *ragged_arrays), key=lambda array: array.position
        )

    def put(self, entry: JournalEntry, rows: Mapping[str, _CheckedRow]) -> None:
        """Write the rows of a clip to the files of the attempt, and add its journal entry.

        Parameters
        ----------
        entry
            The entry. Writer, attempt and places of frames are filled in here, and digests by `add_digests`.
        rows
            `group/array` -> the checked row; empty for a failed clip.
        """
        frames = {}
        if rows:
            record = b"".join(rows[array.name].data for array in self._layout.small_arrays)
            self._write(None, entry.row % PIECE_ROWS * len(record), record)
            for array in self._layout.sharded_arrays:
                self._put_in_shard(array, entry.row, rows[array.name].data, rows[array.name].crc32c)
            for group in self._layout.ragged_groups:
                n_frames = self._put_frames(group, rows)
                if n_frames:
                    frames[group.name] = (self._n_frames[group.name], n_frames)
                    self._n_frames[group.name] += n_frames
        self.entries[entry.row] = structs.replace(
            entry, writer=self.attempt.writer, attempt=self.attempt.number, frames=frames
        )
        if rows and not entry.sha256:
            self._digests[entry.row] = [
                self._digest(array, entry.row, rows[array.name]) for array in self._arrays
            ]

    def _put_frames(self, group: RaggedGroup, rows: Mapping[str, _CheckedRow]) -> int:
        """Append a clip's frames to the file of a ragged group; return the number of frames."""
        data = b"".join(rows[array.name].data for array in group.arrays)
        if data:
            self._write(group, self._n_frames[group.name] * group.frame_bytes, data)
        return len(data) // group.frame_bytes

    def _digest(
        self, array: StoredArray | RaggedArray, row: int, checked: _CheckedRow
    ) -> str | Callable[[], str]:
        """Return the SHA-256 of a row that was written, or a function that waits for it.

        The function is returned for large rows, whose digest another process computes from the file.
        """
        if checked.sha256 is not None or self._digest_later is None or isinstance(array, RaggedArray):
            return checked.sha256 or ""
        path = attempt_file(self._stage, self.attempt, array)
        return self._digest_later(path, array.offset(row % PIECE_ROWS), len(checked.data))

    def add_digests(self) -> None:
        """Add the digests of all rows to their entries, and wait for those that other processes compute."""
        for row, digests in self._digests.items():
            joined = ""
            for digest in digests:
                joined += digest if isinstance(digest, str) else digest()
            self.entries[row] = structs.replace(self.entries[row], sha256=joined)

    def copy_missing_rows(self, reader: StagedRows, best: Mapping[int, JournalEntry]) -> list[JournalEntry]:
        """Copy the rows with features that this attempt lacks from earlier attempts.

        Parameters
        ----------
        reader
            Reads the rows of the stage.
        best
            Row -> its best entry.

        Returns
        -------
        list of JournalEntry
            Entries of the rows that were not copied, because their bytes are damaged.
        """
        damaged_entries = []
        for row in self._layout.rows(self.attempt.piece):
            entry = best.get(row)
            if row in self.entries or entry is None or not is_done(entry):
                continue
            rows = _rows_of(reader, entry)
            if rows is None:
                damaged_entries.append(entry)
            else:
                self.put(entry, rows)
        return damaged_entries

    def complete(self) -> None:
        """Complete the shards of the attempt: write fill values for rows without features, and the index."""
        rows = self._layout.rows(self.attempt.piece)
        for array in self._layout.sharded_arrays:
            checksum = crc32c(array.fill_row)
            for row in rows:
                if row not in self.entries or not is_done(self.entries[row]):
                    self._put_in_shard(array, row, array.fill_row, checksum)
            self._write(array, array.offset(len(rows)), array.shard_index(len(rows)))

    def flush(self) -> None:
        """Flush the files of the attempt to the disk, and close them."""

        def flush_file(path: str, descriptor: int) -> None:
            """Flush one file to the disk."""
            with naming(Path(path)):
                force_to_disk(descriptor)

        try:
            if self._descriptors:
                # Several at a time, because file systems combine flushes.
                with ThreadPoolExecutor(len(self._descriptors)) as threads:
                    list(threads.map(flush_file, self._descriptors.keys(), self._descriptors.values()))
                sync(self._stage / PIECES)
        finally:
            for descriptor in self._descriptors.values():
                with suppress(OSError):
                    os.close(descriptor)

    def _put_in_shard(self, array: StoredArray, row: int, data: memoryview | bytes, checksum: int) -> None:
        """Write a row and its checksum into the shard of an array."""
        offset = array.offset(row % PIECE_ROWS)
        tail = checksum.to_bytes(CRC_BYTES, "little")
        if len(data) < WRITE_BLOCK:
            self._write(array, offset, b"".join((data, tail)))
        else:
            self._write(array, offset, data)
            self._write(array, offset + len(data), tail)

    def _write(self, part: StoredArray | RaggedGroup | None, offset: int, data: memoryview | bytes) -> None:
        """Write bytes at an offset of a file of the attempt (see `attempt_file`), which is created first."""
        path = attempt_file(self._stage, self.attempt, part)
        with naming(Path(path)):
            if path not in self._descriptors:
                self._descriptors[path] = open_binary(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            descriptor = self._descriptors[path]
            os.lseek(descriptor, offset, os.SEEK_SET)
            for start in range(0, len(data), WRITE_BLOCK):
                write_all(descriptor, memoryview(data)[start : start + WRITE_BLOCK])


def _rows_of(reader: StagedRows, entry: JournalEntry) -> dict[str, _CheckedRow] | None:
    """Read all rows of a clip, by `group/array`, from earlier attempts; None if a digest is wrong."""
    rows: list[tuple[StoredArray | RaggedArray, memoryview]] = []
    for array in reader.layout.sharded_arrays:
        row = reader.row(entry, array)
        if row is None:
            return None
        rows.append((array, row))
    for group in reader.layout.ragged_groups:
        frames = reader.frames(entry, group)
        if frames is None:
            return None
        rows += frames.items()
    record = reader.record(entry)
    if record is None:
        return None
    rows += reader.layout.split(record)
    return {array.name: _CheckedRow(row, entry.sha256_of(array.position), crc32c(row)) for array, row in rows}


# --- checking results
# ---------------------------------------------------------------------------
def digest_of_part(path: str, offset: int, size: int) -> str:
    """Compute the SHA-256 of a part of a file."""
    digest = hashlib.sha256()
    block = memoryview(bytearray(BLOCK))
    n_left = size
    with open_regular(path) as file:
        file.seek(offset)
        while n_left and (n_read := file.readinto(block[: min(n_left, BLOCK)])):
            digest.update(block[:n_read])
            n_left -= n_read
    return digest.hexdigest()


def _check_features(
    features: ClipFeatures, group: GroupSpec, where: str, least_later: float = inf
) -> dict[str, _CheckedRow]:
    """Check the arrays of a clip; return array -> its checked row.

    Parameters
    ----------
    features
        The features of the clip in the group.
    group
        What the group declares.
    where
        What messages call the clip and the group.
    least_later
        Size in bytes from which on the SHA-256 of a row of tokens is not computed here, but from the written
        file in another process (`digest_later`).

    Raises
    ------
    StoreError
        An array does not fit, or has NaN or inf.
    """
    expected = group.clip_arrays()
    arrays = {**features.arrays, "time_s": features.time_s, "frame_index": features.frame_index}
    if arrays.keys() != expected.keys():
        raise StoreError(f"{where}: expected arrays {', '.join(expected)}; found {', '.join(sorted(arrays))}")
    is_imported = group.provenance.get("imported") is True  # times and indices of frames may be unknown
    rows: dict[str, _CheckedRow] = {}
    for name, (shape, dtype) in expected.items():
        values = arrays[name]
        _check_type(values, dtype, f"{where}, array {name}")
        if group.ragged and name in RAGGED_ARRAYS:
            _check_frames(values, (len(features.time_s), *shape[1:]), f"{where}, array {name}")
        elif values.shape != shape:
            raise StoreError(
                f"{where}, array {name}: expected shape {list(shape)}, found {list(values.shape)}"
            )
        is_digested_later = ARRAYS[name].sharded and values.nbytes >= least_later
        rows[name], is_finite = _digest_row(values, hashes=not is_digested_later)
        is_unknown = is_imported and name == "time_s" and bool(np.isnan(values).all())
        if not is_finite and not is_unknown:
            raise StoreError(f"{where}, array {name}: {_not_finite(values)}")
    indices = features.frame_index
    are_unknown = is_imported and (indices == -1).all()
    if (indices < 0).any() and not are_unknown:
        raise StoreError(f"{where}, array frame_index: a negative index; -1 in all frames where unknown")
    return rows


def _check_type(values: object, dtype: np.dtype[Any], where: str) -> None:
    """Raise an error unless `values` is an array of a data type, in either byte order."""
    if not isinstance(values, np.ndarray):
        raise StoreError(f"{where}: expected a numpy array, found {type(values).__name__}")
    if values.dtype.newbyteorder("<") != dtype:
        raise StoreError(f"{where}: expected {dtype.name}, found {values.dtype}; convert it on purpose")


def _not_finite(values: NDArray[Any]) -> str:
    """Return in words how many values of an array are NaN or inf."""
    kind = "NaN" if np.isnan(values).any() else "inf"
    hint = " (float16 overflow?)" if kind == "inf" and values.dtype == np.float16 else ""
    n_wrong = int((~np.isfinite(values)).sum())
    return f"{n_wrong} values are not finite, {kind} among them{hint}"


def _check_frames(values: NDArray[Any], shape: tuple[int, ...], where: str) -> None:
    """Raise an error unless an array of a ragged group has the expected shape, a frame, and is not too large.

    Parameters
    ----------
    values
        The array of a clip.
    shape
        The expected shape, with as many rows as the clip has times.
    where
        Clip, group and array, for messages.
    """
    if values.shape != shape or not shape[0]:
        raise StoreError(
            f"{where}: expected shape {list(shape)}, a row for each of one frame or more; "
            f"found {list(values.shape)}"
        )
    if values.size > MOST_NUMBERS:
        raise StoreError(f"{where}: {list(shape)} is more than {MOST_NUMBERS} numbers of one clip")


def _digest_row(values: NDArray[Any], *, hashes: bool = True) -> tuple[_CheckedRow, bool]:
    """Return the bytes of a row with their digests, and whether all values are finite.

    This is done block by block, so that each block is still in the processor's cache for the next step.

    Parameters
    ----------
    values
        The row.
    hashes
        Whether to compute the SHA-256, which takes most of the time.
    """
    data = row_view(values)
    numbers = np.frombuffer(data, values.dtype.newbyteorder("<"))
    digest = hashlib.sha256()
    checksum = 0
    is_finite = True
    for start in range(0, len(data), BLOCK):
        end = start + BLOCK
        block = data[start:end]
        if hashes:
            digest.update(block)
        checksum = crc32c(block, checksum)
        block_numbers = numbers[start // numbers.itemsize : end // numbers.itemsize]
        is_finite = is_finite and all_finite(block_numbers)
    return _CheckedRow(data, digest.hexdigest() if hashes else None, checksum), is_finite
