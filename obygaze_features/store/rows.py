"""Append and read the rows of a stage: one file per writer and array, with rows of equal size.

The file is `rows/<writer>/<group>.<array>`; the row in slot k begins at k times the row's size. The journal
lists the valid slots. Bytes that a killed writer left after its last journal line are never read.
"""

import ctypes
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock

from obygaze_features.io import naming, sync, write_all
from obygaze_features.store.format import ROWS
from obygaze_features.store.journal import JournalEntry

JOINED = 1 << 16
"""Rows smaller than this many bytes are joined before they are written."""

Row = bytes | memoryview


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
        for name, some in rows.items():
            with naming(self._paths[name]):
                if len(some[0]) < JOINED:
                    write_all(self._files[name], b"".join(some))
                else:
                    for row in some:
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
            (writer, name): bytearray(max(some) + 1) for writer, some in slots.items() for name in row_bytes
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
