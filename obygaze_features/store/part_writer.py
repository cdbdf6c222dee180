"""Write the chunks and shards of a sealed store from the rows of a stage, one complete part at a time.

A part is written under another name, fsynced and renamed. Then its line is added to `parts.jsonl`.
"""

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import local

import numpy as np
from fastcrc.crc32 import iscsi as crc32c

from obygaze_features.io import PARTIAL_SUFFIX, naming, sha256_of, sync, write_all
from obygaze_features.store.journal import JournalEntry
from obygaze_features.store.parts import (
    CRC_BYTES,
    NO_ROW,
    Part,
    PartsFile,
    Sealed,
    StoredArray,
    may_be,
    part_rows,
    shortened,
)
from obygaze_features.store.records import StoredClip
from obygaze_features.store.rows import read_at, rows_path
from obygaze_features.store.store_files import FolderFiles, listed

BATCH = 1 << 22
"""Bytes of rows that are read and checked together; at least one row."""
PIECE = 1 << 20
"""Bytes per write [4.8 MB of tokens: 1.6 ms; 3.2 ms in a single write]."""


class Inheritance:
    """Find rows in the parent store of a stage, and the parts that can be linked."""

    def __init__(self, folder: Path, clips: Sequence[StoredClip]) -> None:
        self._folder, self._clips = folder, clips
        self._digests = listed(FolderFiles(folder))

    def place(self, array: StoredArray, row: int) -> tuple[Path, int]:
        """Return the file and the offset of one of the parent's rows."""
        theirs = self._theirs(array)
        return self._folder / theirs.file(row // theirs.block), theirs.offset(row % theirs.block)

    def equal_part(self, part: Part, rows: str) -> tuple[Path, Sealed] | None:
        """Return the parent's file if it is identical to this part; None if its rows differ."""
        theirs = self._theirs(part.array)
        clips = self._clips[part.rows.start : part.rows.start + theirs.block]
        if theirs.block != part.array.block or len(clips) != len(part.rows):
            return None
        if shortened([clip.digests.get(part.array.name, NO_ROW) for clip in clips]) != rows:
            return None
        path = self._folder / part.file
        digest = self._digests.get(part.file)
        if digest is None or not path.is_file() or path.stat().st_size != part.size:
            return None
        return path, Sealed(part.file, part.size, digest, rows)

    def _theirs(self, array: StoredArray) -> StoredArray:
        return StoredArray(array.name, array.position, array.row_bytes, array.fill, len(self._clips))


class PartWriter:
    """Write parts into the folder of a store that is being built; thread-safe.

    Parameters
    ----------
    root
        Folder of the store.
    stage
        The staging folder.
    done
        The parts already on the disk.
    """

    def __init__(self, root: Path, stage: Path, done: PartsFile, inheritance: Inheritance | None) -> None:
        self._root, self._stage, self._done, self._inheritance = root, stage, done, inheritance
        self._room = local()
        self._rows_files: dict[tuple[str, str], str] = {}  # a path a row would be a third of sealing

    def write(self, part: Part, lines: Sequence[JournalEntry | None]) -> list[int]:
        """Write a part and record it; return the indices of rows whose bytes differ from their journal line.

        If there is such a row, nothing is written.

        Parameters
        ----------
        lines
            Journal line of every row of the part; None for a row without features.
        """
        rows = part_rows(part, lines)
        before = self._done.known.get(part.file)
        if before is not None and before.rows == rows:
            return []
        target = self._root / part.file
        if before is None and self._inheritance is not None:
            found = self._inheritance.equal_part(part, rows)
            if found is not None and _link(found[0], target):
                self._done.add(found[1])
                return []
        digest, bad = self._pour_into(part, lines)
        if not bad:
            self._done.add(Sealed(part.file, part.size, digest, rows))
        return bad

    def _pour_into(self, part: Part, lines: Sequence[JournalEntry | None]) -> tuple[str, list[int]]:
        """Write a part durably and atomically; return its digest, or the indices of bad rows."""
        target = self._root / part.file
        partial = target.with_name(target.name + PARTIAL_SUFFIX)
        try:
            with naming(target):
                descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
                try:
                    with suppress(OSError, AttributeError):  # the file system may not support this call
                        os.posix_fallocate(descriptor, 0, part.size)
                    digest, bad = self._pour(descriptor, part, lines)
                    if bad:
                        return "", bad
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        sync(target.parent)
        return digest, []

    def _pour(
        self, descriptor: int, part: Part, lines: Sequence[JournalEntry | None]
    ) -> tuple[str, list[int]]:
        """Copy checked rows of a part into an open file; return its digest and the indices of bad rows."""
        array = part.array
        found, checksum, bad = hashlib.sha256(), 0, []
        stride = array.offset(1)
        step = max(1, BATCH // stride)
        room = self._buffer(min(step, len(lines)) * stride)

        def put(data: bytes | memoryview) -> None:
            for start in range(0, len(data), PIECE):  # hash and write while the bytes are in the cache
                piece = data[start : start + PIECE]
                found.update(piece)
                write_all(descriptor, piece)

        for first in range(0, len(lines), step):
            some = lines[first : first + step]
            filled = room[: len(some) * stride]
            bad += self._fill(filled, part, first, some)
            if bad:
                continue  # continue, to check the remaining rows
            if not array.sharded:
                checksum = crc32c(filled, checksum)
            put(filled)
        if bad:
            return "", bad
        if array.sharded:
            put(_shard_index(array, len(lines)))
        else:
            padding = array.fill * (array.block - len(lines))
            put(padding + crc32c(padding, checksum).to_bytes(CRC_BYTES, "little"))
        return found.hexdigest(), []

    def _fill(
        self,
        room: memoryview,
        part: Part,
        first: int,
        lines: Sequence[JournalEntry | None],
    ) -> list[int]:
        """Read rows into a buffer, in a shard with their checksums; return the indices of bad rows."""
        array, stride = part.array, part.array.offset(1)
        wanted: dict[str, list[tuple[int, int, bool, memoryview]]] = {}
        before = self._done.known.get(part.file)
        for index, line in enumerate(lines, start=first):
            row = room[(index - first) * stride :][: array.row_bytes]
            if line is None:
                row[:] = array.fill
            else:
                path, offset, staged = self._place(part, index, line, before)
                wanted.setdefault(path, []).append((index, offset, staged, row))
        bad = []
        checksums: dict[int, int] = {}
        for path, rows in wanted.items():
            whole = read_at(Path(path), [(offset, row) for _, offset, _, row in rows])
            for (index, _, staged, row), good in zip(rows, whole, strict=True):
                line = lines[index - first]
                checksums[index] = crc32c(row)
                if (
                    line is None
                    or not good
                    or (staged and checksums[index] != line.crc32c_of(array.position))
                ):
                    bad.append(index)
                elif not staged and sha256_of(row) != line.sha256_of(array.position):
                    bad.append(index)  # for rows in the parent store only the digest is known
        if array.sharded:
            for index in range(first, first + len(lines)):
                end = (index - first) * stride + array.row_bytes
                checksum = checksums[index] if index in checksums else crc32c(array.fill)
                room[end : end + CRC_BYTES] = checksum.to_bytes(CRC_BYTES, "little")
        return sorted(bad)

    def _place(
        self, part: Part, index: int, line: JournalEntry, before: Sealed | None
    ) -> tuple[str, int, bool]:
        """Return the file and the offset of a row, and whether the file belongs to the stage."""
        array = part.array
        if before is not None and may_be(before.rows, index, line.sha256_of(array.position)):
            return str(self._root / part.file), array.offset(index), False
        if line.writer or self._inheritance is None:
            key = line.writer, array.name
            if key not in self._rows_files:
                self._rows_files[key] = str(rows_path(self._stage, *key))
            return self._rows_files[key], line.slot * array.row_bytes, True
        path, offset = self._inheritance.place(array, line.slot)
        return str(path), offset, False

    def _buffer(self, size: int) -> memoryview:
        """Return this thread's reusable buffer: allocating new memory costs more than the work on it."""
        room: memoryview = getattr(self._room, "view", memoryview(b""))
        if len(room) < size:
            room = self._room.view = np.empty(size, np.uint8).data
        return room[:size]


def _shard_index(array: StoredArray, n_rows: int) -> bytes:
    """Return the index of a shard: offset and size of every row, all bits set in entries without a row."""
    index = np.full((array.block, 2), 2**64 - 1, "<u8")
    index[:n_rows, 0] = [array.offset(row) for row in range(n_rows)]
    index[:n_rows, 1] = array.row_bytes + CRC_BYTES
    data = index.tobytes()
    return data + crc32c(data).to_bytes(CRC_BYTES, "little")


def _link(source: Path, target: Path) -> bool:
    """Link a file durably; return whether the file systems support it."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        return False
    sync(target.parent)
    return True
