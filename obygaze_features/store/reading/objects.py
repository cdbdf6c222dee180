"""The files of one sealed store, wherever they lie: a folder, a zip, a server.

Everything above this module reads a store by the relative names of its files and never asks where they are.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Protocol

from obygaze_features.store.bag import payload_files, tag_files
from obygaze_features.store.layout import TAG_MANIFEST

Seen = Callable[[memoryview], None]
PIECE = 1 << 19
"""Bytes of a chunk that are read, and checked, at a time: they fit a processor's own cache."""
BLOCK = 1 << 20
"""Bytes of a file that are held at a time while it is digested or copied."""


class Objects(Protocol):
    """The files of one sealed store; all methods may be called from several threads.

    A name that is not there raises FileNotFoundError; a server or a zip that misbehaves raises StoreError.
    """

    @property
    def where(self) -> str:
        """What messages call the store."""

    @property
    def name(self) -> str:
        """Its name with its version, `NAME-X.Y.Z`."""

    @property
    def readers(self) -> int:
        """How many files are best read at a time."""

    def names(self) -> list[str]:
        """List the files; where nothing can be listed, those that the digest manifests name."""

    def is_plain(self, name: str) -> bool:
        """Whether there is an ordinary file of this name: no folder, no link."""

    def size(self, name: str) -> int:
        """Give the size of a file in bytes."""

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read a file, or the part from `start` to `stop`; a negative start counts from its end."""

    def fill(self, name: str, buffer: memoryview, seen: Seen) -> tuple[int, bytes]:
        """Read the beginning of a file into a buffer; give how much it was, and the rest, up to 5 bytes.

        `seen` gets every part of it in turn, while the processor's cache still holds it.
        """

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file from `start` in blocks of bounded size."""


@dataclass(frozen=True)
class Folder:
    """A store that is a folder."""

    path: Path
    readers: int = 1

    @property
    def where(self) -> str:
        """The path as it was given."""
        return str(self.path)

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.path.name

    def names(self) -> list[str]:
        """List every file; a link to a folder counts as a file."""
        own = [TAG_MANIFEST] if (self.path / TAG_MANIFEST).exists() else []
        return sorted([*payload_files(self.path), *tag_files(self.path), *own])

    def is_plain(self, name: str) -> bool:
        """Whether there is an ordinary file of this name."""
        path = self.path / name
        return path.is_file() and not path.is_symlink()

    def size(self, name: str) -> int:
        """Give the size of a file in bytes."""
        return (self.path / name).stat().st_size

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read a file or a part of it."""
        with (self.path / name).open("rb", buffering=0) as file:
            if start:
                file.seek(start if start > 0 else max(0, self.size(name) + start))
            return file.read() if stop is None else file.read(max(0, stop - start))

    def fill(self, name: str, buffer: memoryview, seen: Seen) -> tuple[int, bytes]:
        """Read the beginning of a file straight into a buffer."""
        with FileIO(f"{self.path}/{name}") as file:  # half the cost of Path.open
            return pour(file, buffer, seen), file.read(5) or b""

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file from `start` in blocks."""
        with (self.path / name).open("rb", buffering=0) as file:
            file.seek(start)
            while block := file.read(BLOCK):
                yield block


def pour(file: FileIO, buffer: memoryview, seen: Seen) -> int:
    """Read what comes next in a file straight into a buffer, piece by piece; give how much it was."""
    filled = 0
    while size := file.readinto(part := buffer[filled : filled + PIECE]):
        seen(part[:size])
        filled += size
    return filled


def digest_of(objects: Objects, name: str) -> str:
    """Give the SHA-256 of a file."""
    found = hashlib.sha256()
    for block in objects.stream(name):
        found.update(block)
    return found.hexdigest()
