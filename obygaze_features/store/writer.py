"""Write the pieces of a stage: rows at their offsets in any order, then one line in the writer's journal.

The files of an attempt at a piece are created exclusively and never opened for writing again. Without its
line an attempt does not exist, so that a killed writer loses its open pieces alone. What is complete is what
the store will have: sealing links the shards.
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
from obygaze_features.store.journal import NO_ROW, Attempt, Journal, JournalEntry, Line, is_done
from obygaze_features.store.pieces import (
    RaggedArray,
    RaggedGroup,
    Rows,
    StageLayout,
    StoredArray,
    attempt_file,
)
from obygaze_features.store.records import MOST_NUMBERS, ClipFeatures, ClipResult, GroupSpec

BLOCK = 1 << 18
"""Bytes of a row that are checked and digested together, while they are in the processor's cache."""

WRITE_BLOCK = 1 << 20
"""Bytes per write [4.8 MB of tokens: 1.6 ms; 3.2 ms in a single write]."""


@dataclass(frozen=True, slots=True)
class _CheckedRow:
    """Bytes of a checked row, with their digests; `sha256` is None if it is computed after writing."""

    data: memoryview | bytes
    sha256: str | None
    crc32c: int


_NO_FRAMES = _CheckedRow(b"", NO_ROW, 0)
"""The rows of a clip that is absent in a ragged group."""

DigestLater = Callable[[str, int, int], Callable[[], str]]
"""Begins to digest a part of a file (path, offset, bytes), and returns what waits for the SHA-256."""


class StageWriter:
    """Write clips to a stage; created by `Stage.writer`, used as a context manager, one per process.

    Parameters
    ----------
    reader
        Reads the rows of the stage.
    groups
        The arrays of every clip.
    row_of
        Clip id -> row.
    best
        Row -> its best valid entry.
    attempts
        Those that have a line.
    to_do
        Rows that this writer will do: a piece is finished when all of them that are in it are there.
    digest_later
        Digests rows of `WRITE_BLOCK` bytes and more of shards, once they are written; None digests them here.
    """

    def __init__(
        self,
        reader: Rows,
        groups: Sequence[GroupSpec],
        row_of: Mapping[str, int],
        *,
        best: Mapping[int, JournalEntry],
        attempts: Iterable[Attempt],
        to_do: Iterable[int],
        digest_later: DigestLater | None = None,
    ) -> None:
        self._reader = reader
        self._stage = reader.stage
        self._layout = reader.layout
        self._groups = {group.name: group for group in groups}
        self._row_of = row_of
        self._best = dict(best)
        self.to_do = set(to_do)
        self._later = digest_later
        self._earlier: defaultdict[int, set[Attempt]] = defaultdict(set)
        for attempt in attempts:
            self._earlier[attempt.piece].add(attempt)
        self._journal = Journal(self._stage / JOURNALS)
        self._open: dict[int, _Piece] = {}
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
        with suppress(*([] if error is None else [OSError, StoreError])):
            self.close()

    def close(self) -> None:
        """Finish the open pieces with the rows that they have, and close the journal.

        Raises
        ------
        OSError, StoreError
            If a piece cannot be finished; names the path. The others are.
        """
        self._is_open = False
        with ExitStack() as stack:  # which does all of it, whatever fails
            stack.callback(self._journal.close)
            for _, piece in sorted(self._open.items()):
                stack.callback(self._finish, piece)

    def commit(self, results: Sequence[ClipResult]) -> None:
        """Write clips; all of them are checked before any is written.

        They are durable once the piece that they are in is finished: when all its clips that this writer will
        do are there, or when the writer is closed.

        Raises
        ------
        StoreError
            If a result does not fit the stage, has NaN or inf, or is already done; names clip and array.
        OSError
            If writing fails; names the path. Clips committed before are safe; this writer is closed.
        """
        if not self._is_open:
            raise StoreError(
                f"{self._journal.path}: this writer was closed, or stopped at an error: begin another"
            )
        checked: dict[int, tuple[ClipResult, dict[str, _CheckedRow]]] = {}
        for result in results:
            rows = self._check(result)
            if checked.setdefault(self._row_of[result.clip_id], (result, rows))[0] is not result:
                raise StoreError(f"clip {result.clip_id}: committed twice at once")
        try:
            for row, (result, rows) in sorted(checked.items()):
                piece = self._piece(row // PIECE_ROWS)
                outcome = (result.clip_id, result.status, result.reason, 0, "")
                piece.put(JournalEntry(row, *outcome, "", result.source, result.absent), rows)
                self.to_do.discard(row)
                if self.to_do.isdisjoint(self._layout.rows(row // PIECE_ROWS)):
                    self._finish(piece)
        except BaseException:
            with suppress(OSError, StoreError):
                self.close()
            raise

    def join(self, number: int) -> None:
        """Write an attempt at a piece that takes all rows from earlier ones, and has fill values in others.

        A row that is not what it was is marked as missing.
        """
        piece = self._piece(number)
        for bad in piece.take_over(self._reader, self._best):
            reason = "its bytes are not what they were"
            piece.put(JournalEntry(bad.row, bad.clip_id, "missing", reason), {})
        piece.complete()
        self._record(piece, whole=True)

    def _piece(self, number: int) -> "_Piece":
        if number not in self._open:
            last = max((attempt.number for attempt in self._earlier[number]), default=0)
            attempt = Attempt(number, self.name, last + 1)
            self._open[number] = _Piece(self._stage, self._layout, attempt, self._later)
        return self._open[number]

    def _finish(self, piece: "_Piece") -> None:
        """Make a piece durable; whole, with the rows of earlier attempts, if all its clips are done."""
        rows = self._layout.rows(piece.attempt.piece)
        is_whole = bool(self._layout.shards) and all(
            row in piece.entries or row in self._best for row in rows
        )
        failure: Exception | None = None
        if is_whole:
            try:
                is_whole = not piece.take_over(self._reader, self._best)
                if is_whole:
                    piece.complete()
            except (OSError, StoreError) as error:  # such as a full disk: the rows that are there are kept
                failure = error
                is_whole = False
        self._record(piece, whole=is_whole)
        if failure is not None:
            raise failure

    def _record(self, piece: "_Piece", *, whole: bool) -> None:
        """Force a piece to the disk, then its line; if it has all rows, remove the files of earlier ones.

        Not those of attempts that were made meanwhile, which removed the same ones.
        """
        number = piece.attempt.piece
        del self._open[number]  # first: after a failed fsync another one proves nothing
        piece.force()
        piece.settle()
        self._journal.append(Line(list(piece.entries.values()), whole))
        self._best |= piece.entries
        if whole:  # those of a writer at work on the same piece are left alone
            for attempt in self._earlier[number]:
                for part in (None, *self._layout.shards, *self._layout.ragged):
                    Path(attempt_file(self._stage, attempt, part)).unlink(missing_ok=True)
        self._earlier[number].add(piece.attempt)

    def _check(self, result: ClipResult) -> dict[str, _CheckedRow]:
        """Check a result; return `group/array` -> its row, nothing for a failed clip."""
        where = f"clip {result.clip_id}"
        row = self._row_of.get(result.clip_id)
        if row is None:
            raise StoreError(f"{where}: not in the plan of this stage")
        piece = self._open.get(row // PIECE_ROWS)
        # What another process did since this one was asked for it is done again: both have the same features.
        was_done = row in self._best and is_done(self._best[row]) and row not in self.to_do
        if was_done or (piece and row in piece.entries):
            raise StoreError(f"{where}: already done; rows of a stage are written once")
        if result.status == "failed":
            return {}
        if result.groups.keys() | result.absent.keys() != self._groups.keys():
            raise StoreError(
                f"{where}: expected features of {', '.join(self._groups)}; "
                f"found {', '.join(result.groups) or 'none'}"
            )
        rows: dict[str, _CheckedRow] = {}
        for name, features in result.groups.items():
            group = self._groups[name]
            large = WRITE_BLOCK if self._later else inf
            checked = _check_features(features, group, f"{where}, group {name}", large)
            rows |= {f"{name}/{array}": row for array, row in checked.items()}
        for array in (*self._layout.small, *self._layout.shards):
            if array.name not in rows:  # of a group that is absent
                rows[array.name] = _CheckedRow(array.fill, NO_ROW, crc32c(array.fill))
        for ragged in self._layout.ragged:
            for array_of_frames in ragged.arrays:
                rows.setdefault(array_of_frames.name, _NO_FRAMES)
        return rows


class _Piece:
    """An attempt at a piece that is being written."""

    def __init__(self, stage: Path, layout: StageLayout, attempt: Attempt, later: DigestLater | None) -> None:
        self._stage = stage
        self._layout = layout
        self.attempt = attempt
        self._later = later
        self.entries: dict[int, JournalEntry] = {}
        self._files: dict[str, int] = {}  # path -> descriptor
        self._owed: dict[int, list[str | Callable[[], str]]] = {}
        self._n_frames = dict.fromkeys((group.name for group in layout.ragged), 0)  # written so far
        of_frames = [array for group in layout.ragged for array in group.arrays]
        self._arrays: list[StoredArray | RaggedArray] = sorted(
            (*layout.small, *layout.shards, *of_frames), key=lambda array: array.position
        )

    def put(self, entry: JournalEntry, rows: Mapping[str, _CheckedRow]) -> None:
        """Write a clip's rows; a failed clip has none."""
        if rows:
            record = b"".join(rows[array.name].data for array in self._layout.small)
            self._write(None, entry.row % PIECE_ROWS * len(record), record)
            for array in self._layout.shards:
                self._put_in_shard(array, entry.row, rows[array.name].data, rows[array.name].crc32c)
        frames = {}
        for group in self._layout.ragged if rows else ():
            n_frames = self._put_frames(group, rows)
            if n_frames:
                frames[group.name] = (self._n_frames[group.name], n_frames)
                self._n_frames[group.name] += n_frames
        where = {"writer": self.attempt.writer, "attempt": self.attempt.number, "frames": frames}
        self.entries[entry.row] = structs.replace(entry, **where)
        if rows and not entry.sha256:
            self._owed[entry.row] = [
                self._digest(array, entry.row, rows[array.name]) for array in self._arrays
            ]

    def _put_frames(self, group: RaggedGroup, rows: Mapping[str, _CheckedRow]) -> int:
        """Write a clip's frames behind those of the clips before; return how many there are."""
        data = b"".join(rows[array.name].data for array in group.arrays)
        if data:
            self._write(group, self._n_frames[group.name] * group.frame_bytes, data)
        return len(data) // group.frame_bytes

    def _digest(
        self, array: StoredArray | RaggedArray, row: int, checked: _CheckedRow
    ) -> str | Callable[[], str]:
        if checked.sha256 is not None or self._later is None or isinstance(array, RaggedArray):
            return checked.sha256 or ""
        path = attempt_file(self._stage, self.attempt, array)
        return self._later(path, array.offset(row % PIECE_ROWS), len(checked.data))

    def settle(self) -> None:
        """Wait for the digests, without which the entries are not whole."""
        for row, digests in self._owed.items():
            hexdigests = "".join(digest if isinstance(digest, str) else digest() for digest in digests)
            self.entries[row] = structs.replace(self.entries[row], sha256=hexdigests)

    def take_over(self, reader: Rows, best: Mapping[int, JournalEntry]) -> list[JournalEntry]:
        """Copy the other rows from earlier attempts; return the entries whose bytes are others now."""
        bad = []
        for row in self._layout.rows(self.attempt.piece):
            entry = best.get(row)
            if row in self.entries or entry is None or not is_done(entry):
                continue
            rows = _rows_of(reader, entry)
            if rows is None:
                bad.append(entry)
            else:
                self.put(entry, rows)
        return bad

    def complete(self) -> None:
        """Make the shards those of a store: fill values for all rows without features, and the index."""
        rows = self._layout.rows(self.attempt.piece)
        for array in self._layout.shards:
            checksum = crc32c(array.fill)
            for row in rows:
                if row not in self.entries or not is_done(self.entries[row]):
                    self._put_in_shard(array, row, array.fill, checksum)
            self._write(array, array.offset(len(rows)), array.shard_index(len(rows)))

    def force(self) -> None:
        """Force the files to the disk, and close them."""

        def force(file: tuple[str, int]) -> None:
            with naming(Path(file[0])):
                force_to_disk(file[1])

        try:
            if self._files:
                with ThreadPoolExecutor(len(self._files)) as threads:  # file systems combine them
                    list(threads.map(force, self._files.items()))
                sync(self._stage / PIECES)
        finally:
            for descriptor in self._files.values():
                with suppress(OSError):
                    os.close(descriptor)

    def _put_in_shard(self, array: StoredArray, row: int, data: memoryview | bytes, checksum: int) -> None:
        offset = array.offset(row % PIECE_ROWS)
        tail = checksum.to_bytes(CRC_BYTES, "little")
        if len(data) < WRITE_BLOCK:
            self._write(array, offset, b"".join((data, tail)))
        else:
            self._write(array, offset, data)
            self._write(array, offset + len(data), tail)

    def _write(self, part: StoredArray | RaggedGroup | None, offset: int, data: memoryview | bytes) -> None:
        path = attempt_file(self._stage, self.attempt, part)
        with naming(Path(path)):
            if path not in self._files:
                self._files[path] = open_binary(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            os.lseek(self._files[path], offset, os.SEEK_SET)
            for start in range(0, len(data), WRITE_BLOCK):
                write_all(self._files[path], memoryview(data)[start : start + WRITE_BLOCK])


def _rows_of(reader: Rows, entry: JournalEntry) -> dict[str, _CheckedRow] | None:
    """Read a clip's rows; None if they are not what they were."""
    rows: dict[StoredArray | RaggedArray, memoryview | None] = dict.fromkeys(reader.layout.small)
    rows |= {array: reader.row(entry, array) for array in reader.layout.shards}
    for group in reader.layout.ragged:
        frames = reader.frames(entry, group)
        if frames is None:
            return None
        for array, part in frames.items():
            rows[array] = part
    record = reader.record(entry)
    if record is not None:
        rows |= dict(reader.layout.split(record))
    if any(row is None for row in rows.values()):
        return None
    return {
        array.name: _CheckedRow(row, entry.sha256_of(array.position), crc32c(row))
        for array, row in rows.items()
        if row is not None
    }


# --- checking results
# ---------------------------------------------------------------------------
def digest_of_part(path: str, offset: int, size: int) -> str:
    """Compute the SHA-256 of a part of a file."""
    digest = hashlib.sha256()
    block = bytearray(BLOCK)
    with open_regular(path) as file:
        file.seek(offset)
        while size and (n := file.readinto(memoryview(block)[: min(size, BLOCK)])):
            digest.update(memoryview(block)[:n])
            size -= n
    return digest.hexdigest()


def _check_features(
    features: ClipFeatures, group: GroupSpec, where: str, large: float = inf
) -> dict[str, _CheckedRow]:
    """Check the arrays of a clip; of tokens of `large` bytes and more without the SHA-256."""
    expected = group.clip_arrays()
    arrays = {**features.arrays, "time_s": features.time_s, "frame_index": features.frame_index}
    if arrays.keys() != expected.keys():
        raise StoreError(f"{where}: expected arrays {', '.join(expected)}; found {', '.join(sorted(arrays))}")
    rows: dict[str, _CheckedRow] = {}
    imported = group.provenance.get("imported") is True  # times and indices of frames may be unknown
    for name, (shape, dtype) in expected.items():
        values = arrays[name]
        if not isinstance(values, np.ndarray):
            raise StoreError(f"{where}, array {name}: expected a numpy array, found {type(values).__name__}")
        if values.dtype.newbyteorder("<") != dtype:
            raise StoreError(
                f"{where}, array {name}: expected {dtype.name}, found {values.dtype}; convert it on purpose"
            )
        if group.ragged and name in RAGGED_ARRAYS:
            _check_frames(values, (len(features.time_s), *shape[1:]), f"{where}, array {name}")
        elif values.shape != shape:
            raise StoreError(
                f"{where}, array {name}: expected shape {list(shape)}, found {list(values.shape)}"
            )
        later = ARRAYS[name].sharded and values.nbytes >= large
        rows[name], finite = _checked(values, hashes=not later)
        unknown = imported and name == "time_s" and bool(np.isnan(values).all())
        if not finite and not unknown:
            kinds = "NaN" if np.isnan(values).any() else "inf"
            hint = " (float16 overflow?)" if kinds == "inf" and dtype == np.float16 else ""
            count = int((~np.isfinite(values)).sum())
            raise StoreError(
                f"{where}, array {name}: {count} values are not finite, {kinds} among them{hint}"
            )
    indices = features.frame_index
    if (indices < 0).any() and not (imported and (indices == -1).all()):
        raise StoreError(f"{where}, array frame_index: a negative index; -1 in all frames where unknown")
    return rows


def _check_frames(values: NDArray[Any], shape: tuple[int, ...], where: str) -> None:
    """Refuse an array of a ragged group that has not a row for each frame, or too many numbers."""
    if values.shape != shape or not shape[0]:
        raise StoreError(
            f"{where}: expected shape {list(shape)}, a row for each of one frame or more; "
            f"found {list(values.shape)}"
        )
    if values.size > MOST_NUMBERS:
        raise StoreError(f"{where}: {list(shape)} is more than {MOST_NUMBERS} numbers of one clip")


def _checked(values: NDArray[Any], *, hashes: bool = True) -> tuple[_CheckedRow, bool]:
    """Return a row's bytes with their digests, and whether all values are finite; SHA-256 is dear."""
    data = row_view(values)
    numbers = np.frombuffer(data, values.dtype.newbyteorder("<"))
    digest = hashlib.sha256()
    checksum = 0
    finite = True
    for start in range(0, len(data), BLOCK):
        block = data[start : start + BLOCK]
        if hashes:
            digest.update(block)
        checksum = crc32c(block, checksum)
        first = start // numbers.itemsize
        last = (start + BLOCK) // numbers.itemsize
        finite = finite and all_finite(numbers[first:last])
    return _CheckedRow(data, digest.hexdigest() if hashes else None, checksum), finite
