"""Divide the arrays of a sealed store into parts, and list the parts that are on the disk.

A part is one file of the store, a chunk or a shard. `parts.jsonl` has a line for each, with its digest and
those of its rows. Sealing therefore resumes part by part, and a part whose rows did not change is not written
again.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import msgspec
import numpy as np

from obygaze_features.checked_lines import checked_entry, encode_line
from obygaze_features.io import naming, sha256_of, write_all
from obygaze_features.store.format import ARRAYS, FEATURES, block_rows
from obygaze_features.store.journal import SHA256_HEX, UNREADABLE, JournalEntry
from obygaze_features.store.records import GroupSpec

NO_ROW = "-" * SHA256_HEX
SHORT = 8
HELD = 20
"""While a stage is consumed, at most 1/20 of the store exists twice on the disk at a time."""
CRC_BYTES = 4


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

    def parts(self) -> Iterator["Part"]:
        """Yield the parts."""
        for number, start in enumerate(range(0, self.n_clips, self.block)):
            yield Part(self, number, range(start, min(start + self.block, self.n_clips)))


@dataclass(frozen=True, slots=True)
class Part:
    """File of a sealed store with some rows of an array, given by their positions in the store."""

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
    found = []
    for position, name in enumerate(names):
        group, _, array = name.partition("/")
        shape, dtype = kinds[group][array]
        fill = np.full(shape, ARRAYS[array].fill, dtype).tobytes()
        found.append(StoredArray(name, position, len(fill), fill, n_clips))
    return sorted(found, key=lambda array: (array.row_bytes, array.name))


class Sealed(msgspec.Struct, frozen=True):
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


class PartsFile:
    """List of the sealed parts on the disk; a line is appended for each new part."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self._failed: OSError | None = None
        self.known: dict[str, Sealed] = {}
        decoder = msgspec.json.Decoder(Sealed)
        with suppress(FileNotFoundError):
            data = path.read_bytes()
            for line in data.split(b"\n"):
                with suppress(*UNREADABLE):
                    if (text := checked_entry(line)) is not None:
                        part = decoder.decode(text)
                        self.known[part.file] = part
            if data and not data.endswith(b"\n"):  # an incomplete line: nothing may be appended to it
                with path.open("ab") as file:
                    file.write(b"\n")
        with naming(path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def add(self, part: Sealed) -> None:
        """Record durably that a part is on the disk; after a failure record nothing more.

        A line may be torn then, and one that followed it would be lost: of a part whose rows may be freed.
        """
        with self._lock:
            if self._failed is not None:
                raise self._failed
            with self._noticing():
                write_all(self._descriptor, encode_line(msgspec.to_builtins(part)))
            self.known[part.file] = part
        with self._noticing():
            os.fsync(self._descriptor)

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        with naming(self._path):
            try:
                yield
            except OSError as error:
                self._failed = error
                raise

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def part_rows(part: Part, lines: Sequence[JournalEntry | None]) -> str:
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


def workers_at_once(parts: Sequence[Part], workers: int) -> int:
    """Return how many parts may be written at a time if the disk has room for only one copy of the rows."""
    total = sum(part.size for part in parts)
    largest = max((part.size for part in parts), default=1)
    return max(1, min(workers, total // (HELD * largest)))
