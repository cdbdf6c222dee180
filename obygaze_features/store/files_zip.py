"""Read a sealed store in one zip file, local or remote, by byte ranges.

`publish.pack` writes such zips: members stored, one after another without a gap, root metadata first. What is
stored can neither swell nor lie outside of the file; what the members hold is under the digests of the store.
"""

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from obygaze_features.errors import FileEndsError, StoreError
from obygaze_features.file_kinds import HEAD_BYTES, why_not
from obygaze_features.store.format import FEATURES, ZARR_METADATA
from obygaze_features.store.store_files import BLOCK, FolderFiles, StoreFiles, is_safe, refuse_larger

ZIP_SUFFIX = ".zip"
ROOT_METADATA = f"{FEATURES}/{ZARR_METADATA}"
"""The member that every store has."""
_ENCRYPTED = 1
"""Flag of an encrypted member."""
_LOCAL_HEADER_BYTES = 30
"""Bytes of the header before a member's bytes, without the member's name and what may follow it."""
TAIL_BYTES = (1 << 16, 1 << 20, 1 << 26)
"""Bytes at the end of a zip that are searched for its directory, one after the other; no store needs more."""


def is_zip_name(name: str) -> bool:
    """Return whether a file is a zip by its name; Windows also writes the suffix in capitals."""
    return name.lower().endswith(ZIP_SUFFIX)


@dataclass(frozen=True)
class ZipFiles:
    """A store that is a zip.

    Attributes
    ----------
    where
        What messages call the zip.
    name
        Name of the store: that of the folder in the zip.
    files
        The folder or server with the zip.
    file
        Name of the zip there.
    members
        Name of each file in the zip -> the byte of the zip at which its content begins, and its size.
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
        """Return whether there is such a member: members are never links or folders."""
        return name in self.members

    def size(self, name: str) -> int:
        """Return the size of a member in bytes."""
        return self._place(name)[1]

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read a member (a file in the zip), or the part from `start` to `stop`.

        A negative start counts from its end. Bytes behind its end are left out.
        """
        offset, size = self._place(name)  # of its content in the zip
        # First and end byte within the member, both cut to its size; a negative start counts from its end.
        first = max(0, size + start) if start < 0 else min(start, size)
        end = size if stop is None else max(first, min(stop, size))
        n_bytes = end - first
        if n_bytes == 0:
            return b""
        refuse_larger(n_bytes, f"{self.where}/{name}")
        data = self.files.read(self.file, offset + first, offset + end)
        if len(data) != n_bytes:
            raise FileEndsError(f"{self.where}: ends within {name}; it was cut short")
        return data

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a member (a file in the zip) from `start` in blocks of bounded size."""
        size = self.size(name)
        is_remote = self.readers > 1  # files on servers are read concurrently, those on a disk are not
        step = 8 * BLOCK if is_remote else BLOCK  # a request takes time, whatever its size
        for first in range(start, size, step):
            yield self.read(name, first, first + step)

    def _place(self, name: str) -> tuple[int, int]:
        """Return the byte of the zip at which a member begins, and the member's size."""
        if name not in self.members:
            raise FileNotFoundError(2, "no such member", f"{self.where}/{name}")
        return self.members[name]


def open_zip(path: Path) -> ZipFiles:
    """Open a store that is a local zip file."""
    if path.is_dir():
        raise StoreError(f"{path}: a folder; expected a zip that 'obygaze store pack' made")
    folder = FolderFiles(path.parent, links=True)  # the zip itself may be a symbolic link
    return open_zip_in(folder, path.name, str(path))


def open_zip_in(files: StoreFiles, file: str, location: str) -> ZipFiles:
    """Open a store's zip in a folder or on a server; only the directory at the end of the zip is read.

    Parameters
    ----------
    files
        The folder or server with the zip.
    file
        Name of the zip there.
    location
        Path or URL of the zip, for messages.

    Raises
    ------
    StoreError
        If it is no zip, or not one of a store that `pack` made.
    """
    directory = _directory(files, file, location)

    # All members lie in one folder, which has the name of the store.
    first_name = directory.members[0].filename if directory.members else ""
    folder, _, _ = first_name.partition("/")
    is_hidden_or_parent = folder.startswith(".")  # the folder ".." would lead out of where it is unpacked
    is_path_of_windows = "\\" in folder or ":" in folder
    may_be_name_of_store = folder.isprintable() and not is_hidden_or_parent and not is_path_of_windows
    if not may_be_name_of_store:
        raise StoreError(f"{location}: its folder {folder[:80]!r} is no name of a store")

    places = _places_of_members(directory, folder, location)
    if ROOT_METADATA not in places:
        raise StoreError(f"{location}: not a store's zip; make one: obygaze store pack")
    return ZipFiles(location, folder, files, file, places)


def _places_of_members(directory: "_Directory", folder: str, location: str) -> dict[str, tuple[int, int]]:
    """Find where the content of each member of a store's zip lies.

    The directory at the end of a zip says where the header of each member is, but not where its content
    begins. `pack` leaves no gaps: the content of a member ends where the next header begins, that of the last
    one where the directory begins. So the members are gone through from the last one to the first, and each
    content begins as many bytes before its end as it is long.

    Returns
    -------
    dict
        Name of a file in the store -> (place of its first byte in the zip, number of bytes).
    """
    places: dict[str, tuple[int, int]] = {}
    end = directory.start
    for member in sorted(directory.members, key=lambda member: member.header_offset, reverse=True):
        name = member.filename.removeprefix(f"{folder}/")
        start = end - member.file_size
        is_repeated = name in places
        had_prefix_of_folder = member.filename != name
        is_in_folder = had_prefix_of_folder and is_safe(name)  # no `..` leads out of it again
        if is_repeated or not is_in_folder or not _is_plain_member(member, start, name):
            raise StoreError(
                f"{location}: member {member.filename[:200]!r} is compressed, is there twice, leads out of "
                "the "
                "store or overlaps another; a store's zip is what obygaze store pack made, unchanged"
            )
        places[name] = (start, member.file_size)
        end = member.header_offset
    return places


def _is_plain_member(member: zipfile.ZipInfo, start: int, name: str) -> bool:
    """Return whether the bytes of a member lie in the zip as they are, behind the member's own header.

    They do not if the member is compressed or encrypted, or if the directory states a wrong size or offset:
    then the content would begin (`start`) before the end of the header, which has a fixed part and at least
    the name.
    """
    is_compressed = member.compress_type != zipfile.ZIP_STORED
    is_encrypted = member.flag_bits & _ENCRYPTED != 0
    if is_compressed or is_encrypted:
        return False
    min_header_end = member.header_offset + _LOCAL_HEADER_BYTES + len(name)
    return member.header_offset >= 0 and start >= min_header_end


class _Directory(NamedTuple):
    """The members of a zip as its directory lists them, and the byte at which the directory begins."""

    members: list[zipfile.ZipInfo]
    start: int


def _directory(files: StoreFiles, file: str, location: str) -> _Directory:
    """Read the directory of a zip, which is at the end of the file.

    How long the directory is shows only when it is read. So ever longer tails of the file, of `TAIL_BYTES`,
    are read until one holds all of it.

    Raises
    ------
    StoreError
        If there is none, so that the file is no zip.
    """
    size = files.size(file)
    for tail_bytes in TAIL_BYTES:
        start = max(0, size - tail_bytes)
        tail = files.read(file, start, size)
        try:
            with zipfile.ZipFile(io.BytesIO(tail)) as archive:
                members = archive.infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OverflowError):
            continue  # the tail does not hold all of the directory
        for member in members:
            member.header_offset += start  # zipfile counts from the start of the tail
        return _Directory(members, archive.start_dir + start)
    head = files.read(file, 0, min(size, HEAD_BYTES))
    raise StoreError(f"{location}: {why_not(head, 'a zip archive')}")
