"""Read a sealed store in one zip file, local or remote, by byte ranges.

`publish.pack` writes such zips: members stored, one after another without a gap, root metadata first. What is
stored can neither swell nor lie outside of the file; what the members hold is under the digests of the store.
"""

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from obygaze_features.errors import StoreError
from obygaze_features.file_kinds import HEAD_BYTES, why_not
from obygaze_features.store.format import FEATURES, ZARR_METADATA
from obygaze_features.store.store_files import BLOCK, FolderFiles, StoreFiles, is_safe, refuse_giants

ZIP_SUFFIX = ".zip"
ROOT = f"{FEATURES}/{ZARR_METADATA}"
"""The first member."""
_ENCRYPTED = 1
_LOCAL_HEADER = 30
"""Bytes before a member's own: the header, without the name and what may follow it."""
TAILS = (1 << 16, 1 << 20, 1 << 26)
"""Bytes from the end of a zip in which its directory is looked for; no store needs a larger one."""


@dataclass(frozen=True)
class ZipFiles:
    """A store that is a zip.

    Attributes
    ----------
    files, file
        Where the zip is: the files beside it, and its name among them.
    members
        Name -> (where its bytes begin, size).
    """

    where: str
    name: str
    files: StoreFiles
    file: str
    members: dict[str, tuple[int, int]]

    @property
    def readers(self) -> int:
        """Number of members to read concurrently."""
        return self.files.readers

    def names(self) -> list[str]:
        """List every member."""
        return sorted(self.members)

    def is_plain(self, name: str) -> bool:
        """Whether there is such a member; all are plain."""
        return name in self.members

    def size(self, name: str) -> int:
        """Return the size of a member in bytes."""
        return self._place(name)[1]

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read a member or a part of it."""
        offset, size = self._place(name)
        first = max(0, size + start) if start < 0 else min(start, size)
        last = size if stop is None else max(first, min(stop, size))
        refuse_giants(last - first, f"{self.where}/{name}")
        data = self.files.read(self.file, offset + first, offset + last) if last > first else b""
        if len(data) != last - first:
            raise StoreError(f"{self.where}: ends within {name}; it was cut short")
        return data

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a member from `start` in blocks."""
        size = self.size(name)
        step = 8 * BLOCK if self.readers > 1 else BLOCK
        for first in range(start, size, step):
            yield self.read(name, first, first + step)

    def _place(self, name: str) -> tuple[int, int]:
        if name not in self.members:
            raise FileNotFoundError(2, "no such member", f"{self.where}/{name}")
        return self.members[name]


def open_zip(path: Path) -> ZipFiles:
    """Open a store that is a local zip file."""
    if path.is_dir():
        raise StoreError(f"{path}: a folder; expected a zip that 'obygaze store pack' made")
    return open_within(FolderFiles(path.parent, links=True), path.name, str(path))


def open_within(files: StoreFiles, file: str, where: str) -> ZipFiles:
    """Open a zip among files by its directory, which lies at its end; its members are left alone.

    Raises
    ------
    StoreError
        If it is no zip, or not one of a store that `pack` made.
    """
    members, end = _directory(files, file, where)
    prefix = members[0].filename.partition("/")[0] if members else ""
    if not prefix.isprintable() or prefix.startswith(".") or set(prefix) & set("\\:"):
        raise StoreError(f"{where}: its folder {prefix[:80]!r} is no name of a store")
    places: dict[str, tuple[int, int]] = {}
    # A member's own bytes end where the next one's header begins.
    for member in sorted(members, key=lambda member: member.header_offset, reverse=True):
        name = member.filename.removeprefix(f"{prefix}/")
        start = end - member.file_size
        stored = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & _ENCRYPTED
        within = member.header_offset >= 0 and start >= member.header_offset + _LOCAL_HEADER + len(name)
        if not (stored and within and is_safe(name) and member.filename != name) or name in places:
            raise StoreError(
                f"{where}: member {member.filename[:200]!r} is compressed, is there twice, leads out of the "
                "store or overlaps another; a store's zip is what obygaze store pack made, unchanged"
            )
        places[name] = (start, member.file_size)
        end = member.header_offset
    if ROOT not in places:
        raise StoreError(f"{where}: not a store's zip; make one: obygaze store pack")
    return ZipFiles(where, prefix, files, file, places)


def _directory(files: StoreFiles, file: str, where: str) -> tuple[list[zipfile.ZipInfo], int]:
    """Read the directory of a zip from the end of the file; return it, and where it begins."""
    size = files.size(file)
    for tail in TAILS:
        start = max(0, size - tail)
        try:
            with zipfile.ZipFile(io.BytesIO(files.read(file, start, size))) as archive:
                members = archive.infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OverflowError) as error:
            if isinstance(error, StoreError):
                raise
            continue
        for member in members:  # zipfile counts from where it takes the file to begin
            member.header_offset += start
        return members, archive.start_dir + start
    head = files.read(file, 0, min(size, HEAD_BYTES))
    raise StoreError(f"{where}: {why_not(head, 'a zip archive')}")
