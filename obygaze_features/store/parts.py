"""Write the chunks and shards of a sealed store from the rows of a stage, each part alone and whole.

A part is one file of the store. It is written under another name, forced to the disk and renamed; then a
line of `parts.jsonl` says that it is there, with its digest and those of its rows. So sealing resumes part by
part, and a part whose rows did not change is never written again.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, local

import msgspec
import numpy as np
from fastcrc.crc32 import iscsi as crc32c

from obygaze_features.io import (
    PARTIAL_SUFFIX,
    checked_entry,
    encode_line,
    naming,
    sha256_of,
    sync,
    write_all,
)
from obygaze_features.store.format import ARRAYS, FEATURES, block_rows
from obygaze_features.store.journal import SHA256_HEX, UNREADABLE, JournalEntry
from obygaze_features.store.records import GroupSpec, StoredClip
from obygaze_features.store.rows import read_at, rows_path
from obygaze_features.store.store_files import FolderFiles, listed

BATCH = 1 << 22
"""Bytes of rows that are read and checked together, but at least one row."""
PIECE = 1 << 20
"""Bytes that are written at a time [4.8 MB of tokens: 1.6 ms, 3.2 at once]."""
NO_ROW = "-" * SHA256_HEX
SHORT = 8
HELD = 20
"""A twentieth of a store may be written twice at a time while its stage is consumed."""
CRC_BYTES = 4


@dataclass(frozen=True, slots=True)
class StoredArray:
    """How an array's rows lie in the files of a sealed store.

    Attributes
    ----------
    name
        `group/array`.
    position
        Of the array in the digests of a journal line.
    row_bytes
        Size of a clip's row.
    fill
        What a row without features holds.
    n_clips
        Rows of the whole array.
    """

    name: str
    position: int
    row_bytes: int
    fill: bytes
    n_clips: int

    @property
    def array(self) -> str:
        """Name of the array in its group."""
        return self.name.partition("/")[2]

    @property
    def sharded(self) -> bool:
        """Whether every row has a checksum of its own."""
        return ARRAYS[self.array].sharded

    @property
    def block(self) -> int:
        """Rows of one part."""
        return block_rows(self.array, self.n_clips)

    def file(self, number: int) -> str:
        """Return the relative path of a part."""
        zeros = ["0"] * (len(ARRAYS[self.array].dims) - 1)
        return "/".join([FEATURES, self.name, "c", str(number), *zeros])

    def offset(self, index: int) -> int:
        """Return where a row begins in its part."""
        return index * (self.row_bytes + CRC_BYTES * self.sharded)

    def size(self, n_rows: int) -> int:
        """Return the size of a part with so many rows."""
        if self.sharded:
            return self.offset(n_rows) + 16 * self.block + CRC_BYTES
        return self.row_bytes * self.block + CRC_BYTES

    def parts(self) -> Iterator["Part"]:
        """Yield the parts."""
        for number, start in enumerate(range(0, self.n_clips, self.block)):
            yield Part(self, number, range(start, min(start + self.block, self.n_clips)))


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a sealed store: some rows of an array, by their positions in the store."""

    array: StoredArray
    number: int
    rows: range

    @property
    def file(self) -> str:
        """Its relative path."""
        return self.array.file(self.number)

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self.array.size(len(self.rows))


def stored_arrays(groups: Sequence[GroupSpec], names: Sequence[str], n_clips: int) -> list[StoredArray]:
    """List the arrays of a store that have parts, the smallest rows first."""
    kinds = {group.name: group.clip_arrays() for group in groups}
    found = []
    for position, name in enumerate(names):
        group, _, array = name.partition("/")
        shape, dtype = kinds[group][array]
        fill = np.full(shape, ARRAYS[array].fill, dtype).tobytes()
        found.append(StoredArray(name, position, len(fill), fill, n_clips))
    return sorted(found, key=lambda array: (array.row_bytes, array.name))


class Sealed(msgspec.Struct, frozen=True):
    """A line of `parts.jsonl`: a part that is on the disk.

    Attributes
    ----------
    sha256
        Of the file.
    rows
        The SHA-256 of the digests of its rows, then the first 8 digits of each; dashes without features.
    """

    file: str
    size: int
    sha256: str
    rows: str


class PartsFile:
    """The list of parts that are sealed already, appended to as they are."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self.known: dict[str, Sealed] = {}
        decoder = msgspec.json.Decoder(Sealed)
        with suppress(FileNotFoundError):
            data = path.read_bytes()
            for line in data.split(b"\n"):
                with suppress(*UNREADABLE):
                    if (text := checked_entry(line)) is not None:
                        part = decoder.decode(text)
                        self.known[part.file] = part
            if data and not data.endswith(b"\n"):  # a torn line: nothing may be appended to it
                with path.open("ab") as file:
                    file.write(b"\n")
        with naming(path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def add(self, part: Sealed) -> None:
        """Say durably that a part is on the disk."""
        with self._lock, naming(self._path):
            write_all(self._descriptor, encode_line(msgspec.to_builtins(part)))
            self.known[part.file] = part
        with naming(self._path):
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class Inheritance:
    """The parts of the store that a stage grows: where its rows are, and which parts can be linked."""

    def __init__(self, folder: Path, clips: Sequence[StoredClip]) -> None:
        self._folder, self._clips = folder, clips
        self._digests = listed(FolderFiles(folder))

    def place(self, array: StoredArray, row: int) -> tuple[Path, int]:
        """Return the file and the offset of one of its rows."""
        theirs = self._theirs(array)
        return self._folder / theirs.file(row // theirs.block), theirs.offset(row % theirs.block)

    def equal_part(self, part: Part, rows: str) -> tuple[Path, Sealed] | None:
        """Return the parent's file if it is this part to the byte; None if its rows differ."""
        theirs = self._theirs(part.array)
        clips = self._clips[part.rows.start : part.rows.start + theirs.block]
        if theirs.block != part.array.block or len(clips) != len(part.rows):
            return None
        if _in_short([clip.digests.get(part.array.name, NO_ROW) for clip in clips]) != rows:
            return None
        path = self._folder / part.file
        digest = self._digests.get(part.file)
        if digest is None or not path.is_file() or path.stat().st_size != part.size:
            return None
        return path, Sealed(part.file, part.size, digest, rows)

    def _theirs(self, array: StoredArray) -> StoredArray:
        return StoredArray(array.name, array.position, array.row_bytes, array.fill, len(self._clips))


class PartWriter:
    """Writes parts into the folder of a store that is being built; may be used by several threads.

    Parameters
    ----------
    root
        Folder of the store.
    stage
        The staging folder.
    done
        The parts that are there.
    """

    def __init__(self, root: Path, stage: Path, done: PartsFile, inheritance: Inheritance | None) -> None:
        self._root, self._stage, self._done, self._inheritance = root, stage, done, inheritance
        self._room = local()

    def write(self, part: Part, lines: Sequence[JournalEntry | None]) -> list[int]:
        """Write a part and say so; return the indices of rows whose bytes are not what their line says.

        Nothing is written if there is one.

        Parameters
        ----------
        lines
            Of every row of the part; None of one without features.
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
        """Write a part durably, whole or not at all; return its digest, or the rows that are bad."""
        target = self._root / part.file
        partial = target.with_name(target.name + PARTIAL_SUFFIX)
        try:
            with naming(target):
                descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
                try:
                    with suppress(OSError, AttributeError):  # the file system may have no such call
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
        """Copy checked rows of a part into an open file; return its digest, and the rows that are bad."""
        array = part.array
        found, checksum, bad = hashlib.sha256(), 0, []
        stride = array.offset(1)
        step = max(1, BATCH // stride)
        room = self._buffer(min(step, len(lines)) * stride)

        def put(data: bytes | memoryview) -> None:
            for start in range(0, len(data), PIECE):  # digested and written while the cache holds it
                piece = data[start : start + PIECE]
                found.update(piece)
                write_all(descriptor, piece)

        for first in range(0, len(lines), step):
            some = lines[first : first + step]
            filled = room[: len(some) * stride]
            bad += self._fill(filled, part, first, some)
            if bad:
                continue  # the others are still checked
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
        """Read rows into place, with their checksums in a shard; return the indices of those that are bad."""
        array, stride = part.array, part.array.offset(1)
        wanted: dict[Path, list[tuple[int, int, bool, memoryview]]] = {}
        for index, line in enumerate(lines, start=first):
            row = room[(index - first) * stride :][: array.row_bytes]
            if line is None:
                row[:] = array.fill
            else:
                path, offset, staged = self._place(part, index, line)
                wanted.setdefault(path, []).append((index, offset, staged, row))
        bad = []
        checksums: dict[int, int] = {}
        for path, rows in wanted.items():
            whole = read_at(path, [(offset, row) for _, offset, _, row in rows])
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
                    bad.append(index)  # of rows that are sealed only the digest is known
        if array.sharded:
            for index in range(first, first + len(lines)):
                end = (index - first) * stride + array.row_bytes
                checksum = checksums[index] if index in checksums else crc32c(array.fill)
                room[end : end + CRC_BYTES] = checksum.to_bytes(CRC_BYTES, "little")
        return sorted(bad)

    def _place(self, part: Part, index: int, line: JournalEntry) -> tuple[Path, int, bool]:
        """Return the file and the offset of a row, and whether they are the stage's."""
        array, before = part.array, self._done.known.get(part.file)
        if before is not None and _may_be(before.rows, index, line.sha256_of(array.position)):
            return self._root / part.file, array.offset(index), False
        if line.writer or self._inheritance is None:
            return rows_path(self._stage, line.writer, array.name), line.slot * array.row_bytes, True
        return *self._inheritance.place(array, line.slot), False

    def _buffer(self, size: int) -> memoryview:
        """Return room that a thread uses again and again: fresh memory costs more than what is done in it."""
        room: memoryview = getattr(self._room, "view", memoryview(b""))
        if len(room) < size:
            room = self._room.view = np.empty(size, np.uint8).data
        return room[:size]


def part_rows(part: Part, lines: Sequence[JournalEntry | None]) -> str:
    """Return what decides the bytes of a part: the digests of its rows, in short."""
    position = part.array.position
    return _in_short([NO_ROW if line is None else line.sha256_of(position) for line in lines])


def _in_short(digests: Sequence[str]) -> str:
    whole = sha256_of("".join(digests).encode())
    return whole + "".join(digest[:SHORT] for digest in digests)


def _may_be(rows: str, index: int, digest: str) -> bool:
    """Return whether a row of a part may be the one with a digest; its bytes then tell."""
    start = SHA256_HEX + SHORT * index
    return rows[start : start + SHORT] == digest[:SHORT]


def workers_at_once(parts: Sequence[Part], workers: int) -> int:
    """Return how many parts may be written at a time where the disk has room for one copy of the rows."""
    total = sum(part.size for part in parts)
    largest = max((part.size for part in parts), default=1)
    return max(1, min(workers, total // (HELD * largest)))


def _shard_index(array: StoredArray, n_rows: int) -> bytes:
    """Write the index of a shard: offset and size of every row, all bits set where there is none."""
    index = np.full((array.block, 2), 2**64 - 1, "<u8")
    index[:n_rows, 0] = [array.offset(row) for row in range(n_rows)]
    index[:n_rows, 1] = array.row_bytes + CRC_BYTES
    data = index.tobytes()
    return data + crc32c(data).to_bytes(CRC_BYTES, "little")


def _link(source: Path, target: Path) -> bool:
    """Link a file durably; return whether the file systems could."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        return False
    sync(target.parent)
    return True
