"""Divide the arrays of a sealed store into parts, and write the parts from the rows of a stage.

A part is one file of the store, a chunk or a shard. It is written under another name, fsynced and renamed.
Then its line is added to `parts.jsonl`, with its digest and those of its rows. Sealing therefore resumes part
by part, and does not write a part again whose rows did not change.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import local

import msgspec
import numpy as np
from fastcrc.crc32 import iscsi as crc32c

from obygaze_features.io import PARTIAL_SUFFIX, LineJournal, checked_entry, naming, sha256_of, sync, write_all
from obygaze_features.store.format import ARRAYS, FEATURES, block_rows
from obygaze_features.store.records import GroupSpec, StoredClip
from obygaze_features.store.stage_files import SHA256_HEX, UNREADABLE, JournalEntry
from obygaze_features.store.store_files import FolderFiles, listed
from obygaze_features.store.writer import read_at, rows_path

NO_ROW = "-" * SHA256_HEX
SHORT = 8

AT_ONCE = 20
"""While a stage is consumed, at most 1/20 of the store exists twice on the disk at a time."""
CRC_BYTES = 4

BATCH = 1 << 22
"""Bytes of rows that are read and checked together; at least one row."""

PIECE = 1 << 20
"""Bytes per write [4.8 MB of tokens: 1.6 ms; 3.2 ms in a single write]."""


@dataclass(frozen=True, slots=True)
class StoredArray:
    """Layout of an array's rows in the files of a sealed store.

    Attributes
    ----------
    name
        `group/array`.
    position
        Position of the array in the digests of a journal line.
    row_bytes
        Size of a clip's row, in bytes.
    fill
        Fill value of rows without features.
    n_clips
        Number of rows of the array.
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
        """Whether the array is sharded, with one checksum per row."""
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
        """Return the offset of a row in its part, in bytes."""
        return index * (self.row_bytes + CRC_BYTES * self.sharded)

    def size(self, n_rows: int) -> int:
        """Return the size in bytes of a part with `n_rows` rows."""
        if self.sharded:
            return self.offset(n_rows) + 16 * self.block + CRC_BYTES
        return self.row_bytes * self.block + CRC_BYTES

    def parts(self) -> Iterator["ArrayPart"]:
        """Yield the parts."""
        for number, start in enumerate(range(0, self.n_clips, self.block)):
            yield ArrayPart(self, number, range(start, min(start + self.block, self.n_clips)))


@dataclass(frozen=True, slots=True)
class ArrayPart:
    """One file of a sealed store, a chunk or shard: some rows of an array, by their positions."""

    array: StoredArray
    number: int
    rows: range

    @property
    def file(self) -> str:
        """Relative path of the part."""
        return self.array.file(self.number)

    @property
    def size(self) -> int:
        """Size of the part in bytes."""
        return self.array.size(len(self.rows))


def stored_arrays(groups: Sequence[GroupSpec], names: Sequence[str], n_clips: int) -> list[StoredArray]:
    """List the arrays of a store that have parts, sorted by row size, smallest first."""
    kinds = {group.name: group.clip_arrays() for group in groups}
    arrays = []
    for position, name in enumerate(names):
        group, _, array = name.partition("/")
        shape, dtype = kinds[group][array]
        fill = np.full(shape, ARRAYS[array].fill, dtype).tobytes()
        arrays.append(StoredArray(name, position, len(fill), fill, n_clips))
    return sorted(arrays, key=lambda array: (array.row_bytes, array.name))


def workers_at_once(parts: Sequence[ArrayPart], workers: int) -> int:
    """Return how many parts may be written at a time if the disk has room for only one copy of the rows."""
    total = sum(part.size for part in parts)
    largest = max((part.size for part in parts), default=1)
    return max(1, min(workers, total // (AT_ONCE * largest)))


# --- the list of the parts on the disk
# ---------------------------------------------------------------------------
class SealedPart(msgspec.Struct, frozen=True):
    """Line of `parts.jsonl`: a part that is on the disk.

    Attributes
    ----------
    sha256
        SHA-256 of the file.
    rows
        SHA-256 of the digests of its rows, then the first 8 digits of each; dashes mean no features.
    """

    file: str
    size: int
    sha256: str
    rows: str


class PartList:
    """List of the sealed parts on the disk; a line is appended for each new part."""

    def __init__(self, path: Path) -> None:
        self.known: dict[str, SealedPart] = {}
        decoder = msgspec.json.Decoder(SealedPart)
        with suppress(FileNotFoundError):
            for line in path.read_bytes().split(b"\n"):
                with suppress(*UNREADABLE):
                    if (text := checked_entry(line)) is not None:
                        part = decoder.decode(text)
                        self.known[part.file] = part
        self._journal = LineJournal(path)

    def add(self, part: SealedPart) -> None:
        """Record durably that a part is on the disk; after a failure record nothing more."""
        self._journal.append(msgspec.to_builtins(part))
        self.known[part.file] = part

    def close(self) -> None:
        """Close the file."""
        self._journal.close()


def rows_digest(part: ArrayPart, lines: Sequence[JournalEntry | None]) -> str:
    """Return what determines the bytes of a part: the shortened digests of its rows."""
    position = part.array.position
    return shortened([NO_ROW if line is None else line.sha256_of(position) for line in lines])


def shortened(digests: Sequence[str]) -> str:
    """Return the SHA-256 of the digests of rows, then the first 8 digits of each."""
    whole = sha256_of("".join(digests).encode())
    return whole + "".join(digest[:SHORT] for digest in digests)


def may_be(rows: str, index: int, digest: str) -> bool:
    """Return whether a row of a part may have this digest; only its bytes give certainty."""
    start = SHA256_HEX + SHORT * index
    return rows[start : start + SHORT] == digest[:SHORT]


# --- writing parts
# ---------------------------------------------------------------------------
class Inheritance:
    """Find rows in the parent store of a stage, and the parts that can be linked."""

    def __init__(self, folder: Path, clips: Sequence[StoredClip]) -> None:
        self._folder, self._clips = folder, clips
        self._digests = listed(FolderFiles(folder))

    def location(self, array: StoredArray, row: int) -> tuple[Path, int]:
        """Return the file and the offset of one of the parent's rows."""
        theirs = self._theirs(array)
        return self._folder / theirs.file(row // theirs.block), theirs.offset(row % theirs.block)

    def equal_part(self, part: ArrayPart, rows: str) -> tuple[Path, SealedPart] | None:
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
        return path, SealedPart(part.file, part.size, digest, rows)

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

    def __init__(self, root: Path, stage: Path, done: PartList, inheritance: Inheritance | None) -> None:
        self._root, self._stage, self._done, self._inheritance = root, stage, done, inheritance
        self._memory = local()
        self._rows_files: dict[tuple[str, str], str] = {}  # making a path per row would be a third of sealing

    def write(self, part: ArrayPart, lines: Sequence[JournalEntry | None]) -> list[int]:
        """Write a part and record it; return the indices of rows whose bytes differ from their journal line.

        If there is such a row, nothing is written.

        Parameters
        ----------
        lines
            Journal line of every row of the part; None for a row without features.
        """
        rows = rows_digest(part, lines)
        before = self._done.known.get(part.file)
        if before is not None and before.rows == rows:
            return []
        target = self._root / part.file
        if before is None and self._inheritance is not None:
            parent = self._inheritance.equal_part(part, rows)
            if parent is not None and _link(parent[0], target):
                self._done.add(parent[1])
                return []
        digest, bad = self._pour_into(part, lines)
        if not bad:
            self._done.add(SealedPart(part.file, part.size, digest, rows))
        return bad

    def _pour_into(self, part: ArrayPart, lines: Sequence[JournalEntry | None]) -> tuple[str, list[int]]:
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
        self, descriptor: int, part: ArrayPart, lines: Sequence[JournalEntry | None]
    ) -> tuple[str, list[int]]:
        """Copy checked rows of a part into an open file; return its digest and the indices of bad rows."""
        array = part.array
        digest, checksum, bad = hashlib.sha256(), 0, []
        stride = array.offset(1)
        step = max(1, BATCH // stride)
        buffer = self._buffer(min(step, len(lines)) * stride)

        def put(data: bytes | memoryview) -> None:
            for start in range(0, len(data), PIECE):  # hash and write while the bytes are in the cache
                piece = data[start : start + PIECE]
                digest.update(piece)
                write_all(descriptor, piece)

        for first in range(0, len(lines), step):
            batch = lines[first : first + step]
            filled = buffer[: len(batch) * stride]
            bad += self._fill(filled, part, first, batch)
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
        return digest.hexdigest(), []

    def _fill(
        self,
        buffer: memoryview,
        part: ArrayPart,
        first: int,
        lines: Sequence[JournalEntry | None],
    ) -> list[int]:
        """Read rows into a buffer, in a shard with their checksums; return the indices of bad rows."""
        array, stride = part.array, part.array.offset(1)
        wanted: dict[str, list[tuple[int, int, bool, memoryview]]] = {}
        before = self._done.known.get(part.file)
        for index, line in enumerate(lines, start=first):
            row = buffer[(index - first) * stride :][: array.row_bytes]
            if line is None:
                row[:] = array.fill
            else:
                path, offset, staged = self._location(part, index, line, before)
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
                buffer[end : end + CRC_BYTES] = checksum.to_bytes(CRC_BYTES, "little")
        return sorted(bad)

    def _location(
        self, part: ArrayPart, index: int, line: JournalEntry, before: SealedPart | None
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
        path, offset = self._inheritance.location(array, line.slot)
        return str(path), offset, False

    def _buffer(self, size: int) -> memoryview:
        """Return this thread's reusable buffer: allocating new memory costs more than the work on it."""
        buffer: memoryview = getattr(self._memory, "view", memoryview(b""))
        if len(buffer) < size:
            buffer = self._memory.view = np.empty(size, np.uint8).data
        return buffer[:size]


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
