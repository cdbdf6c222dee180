"""Write clips durably to a stage: rows to files, then their lines to a journal; read and free rows.

Every writer has one journal, and one file an array with rows of equal size, `rows/<writer>/<group>.<array>`:
the row in slot k begins at k times the row's size. The journal lists the valid slots. Bytes that a killed
writer left after its last journal line are never read.
"""

import ctypes
import hashlib
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from msgspec import structs
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.io import encode_line, naming, sync, write_all
from obygaze_features.locks import hold, require_locks
from obygaze_features.store.arrays import all_finite, row_view
from obygaze_features.store.format import COMMIT_GROUP, JOURNALS, ROWS
from obygaze_features.store.records import ClipFeatures, ClipResult, GroupSpec
from obygaze_features.store.stage_files import JournalEntry, array_names, is_done

PIECE = 1 << 18
"""Bytes of a row that are checked and digested together, while they are in the processor's cache."""

JOINED = 1 << 16
"""Rows smaller than this many bytes are joined before they are written."""
Row = bytes | memoryview


@dataclass(frozen=True, slots=True)
class _CheckedRow:
    """Bytes of a checked row, with their digests."""

    data: memoryview
    sha256: str
    crc32c: int


class StageWriter:
    """Commit clips to a stage; created by `Stage.writer`, used as a context manager, one per process.

    Attributes
    ----------
    name
        Stem of its journal's file name, unique among writers.
    """

    def __init__(
        self,
        stage: Path,
        rows: Mapping[str, int],
        groups: tuple[GroupSpec, ...],
        before: Iterable[JournalEntry],
    ) -> None:
        self._rows = rows
        self._groups = {group.name: group for group in groups}
        self._names = array_names(groups)
        self._attempts: dict[str, int] = {}
        self._done: set[str] = set()
        for entry in sorted(before, key=lambda entry: entry.attempt):
            self._remember(entry)
        self._journal, self._descriptor = _new_journal(stage / JOURNALS)
        self.name = self._journal.stem
        self._files = RowFiles(stage / ROWS / self.name)
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the journal; committed clips stay."""
        if self._open:
            self._open = False
            self._files.close()
            with suppress(OSError):  # committed rows are on the disk already
                os.close(self._descriptor)

    def commit(self, results: Sequence[ClipResult]) -> None:
        """Write clips durably; all of them are checked before any is written.

        Rows are appended to this writer's files and fsynced. Only then are their lines appended to the
        journal, which is fsynced too. Groups of 16 clips share one round of fsync.

        Raises
        ------
        StoreError
            If a result does not fit the stage, has NaN or inf, or is already done; names clip and array.
        OSError
            If writing fails; names the path. Clips committed before are safe; this writer is closed.
        """
        if not self._open:
            raise StoreError(
                f"{self._journal}: this writer was closed, or stopped at an error: begin another"
            )
        known: set[str] = set()
        checked = []
        for result in results:
            checked.append((result, self._check(result)))
            if result.clip_id in known:
                raise StoreError(f"clip {result.clip_id}: committed twice at once")
            known.add(result.clip_id)
        for start in range(0, len(checked), COMMIT_GROUP):
            try:
                self._commit_group(checked[start : start + COMMIT_GROUP])
            except BaseException:
                # The last journal line may be incomplete, so nothing may follow it.
                self.close()
                raise

    def _commit_group(self, checked: Sequence[tuple[ClipResult, Mapping[str, _CheckedRow]]]) -> None:
        entries = []
        waiting: dict[str, list[Row]] = {name: [] for name in self._names}
        slot = self._files.n_rows
        for result, rows in checked:
            row, attempt = self._rows[result.clip_id], self._attempts.get(result.clip_id, 0) + 1
            entry = JournalEntry(row, result.clip_id, result.status, result.reason, attempt, result.source)
            if rows:
                for name in self._names:
                    waiting[name].append(rows[name].data)
                entry = structs.replace(
                    entry,
                    writer=self.name,
                    slot=slot,
                    names=self._names,
                    sha256="".join(rows[name].sha256 for name in self._names),
                    crc32c="".join(f"{rows[name].crc32c:08x}" for name in self._names),
                )
                slot += 1
            entries.append(entry)
        if slot > self._files.n_rows:
            self._files.append(waiting)
        self._append(entries)

    def annul(self, reasons: Mapping[str, str]) -> None:
        """Mark clips as missing (clip id -> reason), so that they are extracted again."""
        self._append(
            [
                JournalEntry(self._rows[clip], clip, "missing", why, self._attempts[clip])
                for clip, why in reasons.items()
            ]
        )

    def _append(self, entries: Sequence[JournalEntry]) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")  # for people; not read by code
        with naming(self._journal):
            write_all(
                self._descriptor, b"".join(encode_line({**entry.record(), "time": now}) for entry in entries)
            )
            os.fsync(self._descriptor)
        for entry in entries:
            self._remember(entry)

    def _remember(self, entry: JournalEntry) -> None:
        self._attempts[entry.clip_id] = max(entry.attempt, self._attempts.get(entry.clip_id, 0))
        if is_done(entry):
            self._done.add(entry.clip_id)
        elif entry.status == "missing":
            self._done.discard(entry.clip_id)

    def _check(self, result: ClipResult) -> dict[str, _CheckedRow]:
        """Check a result; return `group/array` -> its row, nothing for a failed clip."""
        where = f"clip {result.clip_id}"
        if result.clip_id not in self._rows:
            raise StoreError(f"{where}: not in the plan of this stage")
        if result.clip_id in self._done:
            raise StoreError(f"{where}: already done; rows of a stage are written once")
        if result.status == "failed":
            return {}
        if result.groups.keys() != self._groups.keys():
            raise StoreError(
                f"{where}: expected features of {', '.join(self._groups)}; "
                f"found {', '.join(result.groups) or 'none'}"
            )
        rows: dict[str, _CheckedRow] = {}
        for name, features in result.groups.items():
            checked = _check_features(features, self._groups[name], f"{where}, group {name}")
            rows |= {f"{name}/{array}": row for array, row in checked.items()}
        return rows


def _check_features(features: ClipFeatures, group: GroupSpec, where: str) -> dict[str, _CheckedRow]:
    expected = group.clip_arrays()
    arrays = {**features.arrays, "time_s": features.time_s, "frame_index": features.frame_index}
    if arrays.keys() != expected.keys():
        raise StoreError(f"{where}: expected arrays {', '.join(expected)}; found {', '.join(sorted(arrays))}")
    rows: dict[str, _CheckedRow] = {}
    for name, (shape, dtype) in expected.items():
        values = arrays[name]
        if not isinstance(values, np.ndarray):
            raise StoreError(f"{where}, array {name}: expected a numpy array, found {type(values).__name__}")
        if values.dtype.newbyteorder("<") != dtype:
            raise StoreError(
                f"{where}, array {name}: expected {dtype.name}, found {values.dtype}; convert it on purpose"
            )
        if values.shape != shape:
            raise StoreError(
                f"{where}, array {name}: expected shape {list(shape)}, found {list(values.shape)}"
            )
        rows[name], finite = _checked(values)
        if not finite and not (name == "time_s" and _times_unknown(features, group)):
            kinds = "NaN" if np.isnan(values).any() else "inf"
            hint = " (float16 overflow?)" if kinds == "inf" and dtype == np.float16 else ""
            count = int((~np.isfinite(values)).sum())
            raise StoreError(
                f"{where}, array {name}: {count} values are not finite, {kinds} among them{hint}"
            )
    if (features.frame_index < 0).any() and not _times_unknown(features, group):
        raise StoreError(f"{where}, array frame_index: a negative index")
    return rows


def _checked(values: NDArray[Any]) -> tuple[_CheckedRow, bool]:
    """Return a row's bytes with their digests, and whether all values are finite."""
    data = row_view(values)
    numbers = np.frombuffer(data, values.dtype.newbyteorder("<"))
    digest, checksum, finite = hashlib.sha256(), 0, True
    for start in range(0, len(data), PIECE):
        piece = data[start : start + PIECE]
        digest.update(piece)
        checksum = crc32c(piece, checksum)
        first, last = (byte // numbers.itemsize for byte in (start, start + PIECE))
        finite = finite and all_finite(numbers[first:last])
    return _CheckedRow(data, digest.hexdigest(), checksum), finite


def _times_unknown(features: ClipFeatures, group: GroupSpec) -> bool:
    """Return whether the rows are imported features with unknown frame times."""
    imported = group.provenance.get("imported") is True
    return imported and bool(np.isnan(features.time_s).all()) and bool((features.frame_index == -1).all())


def _new_journal(folder: Path) -> tuple[Path, int]:
    """Create the next free journal and lock it; the lock shows that its writer is running."""
    number = len(list(folder.glob("*.jsonl")))
    require_locks(folder / f"{number + 1:04d}.jsonl")
    while True:
        number += 1
        path = folder / f"{number:04d}.jsonl"
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
            hold(descriptor, path)
            sync(folder)
            return path, descriptor


# --- files of rows
# ---------------------------------------------------------------------------
def rows_path(stage: Path, writer: str, name: str) -> Path:
    """Return the file with one writer's rows of an array `group/array`."""
    return stage / ROWS / writer / name.replace("/", ".")


class RowFiles:
    """Files to which one writer appends its rows; created with the first row.

    Parameters
    ----------
    folder
        The writer's folder, not shared with any other writer.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.n_rows = 0
        self._files: dict[str, int] = {}
        self._paths: dict[str, Path] = {}

    def append(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Append rows of some clips (`group/array` -> rows) to the arrays' files, and fsync these."""
        if not self._files:
            self._create(rows)
        for name, batch in rows.items():
            with naming(self._paths[name]):
                if len(batch[0]) < JOINED:
                    write_all(self._files[name], b"".join(batch))
                else:
                    for row in batch:
                        write_all(self._files[name], row)
        with ThreadPoolExecutor(len(self._files)) as threads:  # file systems combine concurrent fsyncs
            for _ in threads.map(self._force, self._files.items()):
                pass
        self.n_rows += len(next(iter(rows.values())))

    def close(self) -> None:
        """Close the files."""
        for descriptor in self._files.values():
            with suppress(OSError):
                os.close(descriptor)
        self._files = {}

    def _create(self, names: Iterable[str]) -> None:
        with naming(self.folder):
            self.folder.mkdir(parents=True)
            for name in names:
                self._paths[name] = path = rows_path(self.folder.parent.parent, self.folder.name, name)
                with naming(path):
                    self._files[name] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        sync(self.folder)
        sync(self.folder.parent)

    def _force(self, file: tuple[str, int]) -> None:
        with naming(self._paths[file[0]]):
            os.fsync(file[1])


def read_at(path: Path, places: Sequence[tuple[int, memoryview]]) -> list[bool]:
    """Fill buffers with bytes from offsets of a file; return which buffers were filled completely."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return [False] * len(places)
    with naming(path):
        try:
            return [_fill(descriptor, offset, buffer) for offset, buffer in places]
        finally:
            os.close(descriptor)


def _fill(descriptor: int, offset: int, buffer: memoryview) -> bool:
    try:
        filled = os.preadv(descriptor, [buffer], offset)
    except OverflowError:  # an offset that no file reaches
        return False
    while 0 < filled < len(buffer):
        n = os.preadv(descriptor, [buffer[filled:]], offset + filled)
        if n == 0:
            break
        filled += n
    return filled == len(buffer)


# --- freeing rows that are sealed
# ---------------------------------------------------------------------------
class Consumption:
    """Free the sealed rows of a stage, file by file.

    If the file system cannot free part of a file, the file is freed when all of its rows are sealed.

    Parameters
    ----------
    stage
        The staging folder.
    row_bytes
        `group/array` -> size of a row.
    lines
        Journal lines whose rows will be sealed.
    """

    def __init__(self, stage: Path, row_bytes: Mapping[str, int], lines: Iterable[JournalEntry]) -> None:
        self._stage, self._row_bytes = stage, row_bytes
        self._lock = Lock()
        slots: defaultdict[str, list[int]] = defaultdict(list)
        for line in lines:
            if line.slot >= 0 and line.writer:
                slots[line.writer].append(line.slot)
        # One byte per slot: 1 while its row is still needed. Slots without a line are free at once.
        self._needed = {
            (writer, name): bytearray(max(numbers) + 1)
            for writer, numbers in slots.items()
            for name in row_bytes
        }
        for (writer, _), needed in self._needed.items():
            for slot in slots[writer]:
                needed[slot] = 1

    def free(self, name: str, lines: Iterable[JournalEntry]) -> None:
        """Free the rows of an array that belong to some journal lines."""
        size = self._row_bytes[name]
        freed: defaultdict[str, list[int]] = defaultdict(list)
        for line in lines:
            if line.slot >= 0 and line.writer:
                freed[line.writer].append(line.slot)
        with self._lock:
            for writer, slots in freed.items():
                needed = self._needed[writer, name]
                for slot in slots:
                    needed[slot] = 0
                path = rows_path(self._stage, writer, name)
                if 1 not in needed:
                    path.unlink(missing_ok=True)
                    continue
                for first, last in _runs(needed, slots):
                    punch(path, first * size, (last - first) * size)


def _runs(needed: bytearray, slots: Sequence[int]) -> list[tuple[int, int]]:
    """Return the maximal runs of free slots around given slots: a page of a file is only freed as a whole."""
    runs: list[tuple[int, int]] = []
    for slot in sorted(slots):
        if runs and slot < runs[-1][1]:
            continue
        first = needed.rfind(1, 0, slot) + 1
        last = needed.find(1, slot)
        runs.append((first, len(needed) if last < 0 else last))
    return runs


_KEEP_SIZE, _PUNCH_HOLE = 1, 2


@cache
def _fallocate() -> "ctypes._NamedFuncPointer | None":
    if not sys.platform.startswith("linux"):
        return None
    function = ctypes.CDLL(None, use_errno=True).fallocate
    function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return function


def punch(path: Path, offset: int, size: int) -> bool:
    """Free a part of a file, whose bytes then read as zeros; return whether the file system supports it."""
    fallocate = _fallocate()
    if fallocate is None:
        return False
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        return bool(fallocate(descriptor, _PUNCH_HOLE | _KEEP_SIZE, offset, size) == 0)
    finally:
        os.close(descriptor)


def may_punch(folder: Path) -> bool:
    """Return whether the file system of a folder can free parts of files."""
    probe = folder / f".punch.{os.getpid()}"
    try:
        probe.write_bytes(bytes(8192))
        return punch(probe, 0, 4096)
    finally:
        probe.unlink(missing_ok=True)
