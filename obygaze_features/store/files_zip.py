"""Read a sealed store in one zip file, local or remote, by byte ranges.

There is one way to pack a store (`publish.pack`), so that the same store gives the same bytes: members
stored, one after another without a gap, root metadata first, no times, no modes but 0644. A reader refuses
every other zip: what is contiguous and stored can neither overlap nor swell, and the directory says where a
member lies.

`zipfile` reads a directory leniently: lengths in its last record may promise more than there is. So the
directory is written anew from what was read of it; any other byte in it is foreign. Structures: APPNOTE.TXT
6.3.10 (PKWARE), 4.3.12 to 4.3.16.
"""

import io
import stat
import struct
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from obygaze_features.errors import StoreError
from obygaze_features.store.format import FEATURES, ZARR_METADATA
from obygaze_features.store.store_files import BLOCK, OnPiece, is_safe, pour

ZIP_SUFFIX = ".zip"
ROOT = f"{FEATURES}/{ZARR_METADATA}"
TIME, MODE = (1980, 1, 1, 0, 0, 0), stat.S_IFREG | 0o644
"""The first member, and every member's time and mode."""
_ZIP64, _ZIP64_LENGTHS = b"\x01\x00", (12, 20, 28)
_UTF8 = 0x800
_IN_EXTRA = 0xFFFFFFFF
"""Marks a number that is stored in the extra field."""
_DATE = 33  # 1 January 1980; the time is 0
_TAIL = 1 << 16
_LARGEST_DIRECTORY = 1 << 26


class Ranges(Protocol):
    """A file of known size that any range of bytes can be read of."""

    @property
    def size(self) -> int:
        """Its size in bytes."""

    def read(self, start: int, stop: int) -> bytes:
        """Read the bytes from `start` to `stop`; fewer where it ends before."""

    def fill(self, start: int, stop: int, buffer: memoryview, seen: OnPiece) -> tuple[int, bytes]:
        """Read a range into a buffer, passing each part to `seen`; return the bytes read, and the rest."""


@dataclass(frozen=True)
class LocalFile:
    """A file on this machine; it is opened for every read, so that threads and forks share nothing."""

    path: Path

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self.path.stat().st_size

    def read(self, start: int, stop: int) -> bytes:
        """Read a range of bytes."""
        with self.path.open("rb", buffering=0) as file:
            file.seek(start)
            return file.read(stop - start)

    def fill(self, start: int, stop: int, buffer: memoryview, seen: OnPiece) -> tuple[int, bytes]:
        """Read a range straight into a buffer, and the rest of it."""
        with io.FileIO(str(self.path)) as file:
            file.seek(start)
            filled = pour(file, buffer[: stop - start], seen)
            return filled, file.read(stop - start - filled) or b""


@dataclass(frozen=True)
class ZipFiles:
    """A store that is a zip.

    Attributes
    ----------
    members
        Name -> (where its bytes begin, size).
    headers
        Name -> the bytes that should stand before the member's own; only verification reads them.
    """

    where: str
    name: str
    ranges: Ranges
    members: dict[str, tuple[int, int]]
    headers: dict[str, bytes]
    readers: int = 1

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
        data = self.ranges.read(offset + first, offset + last) if last > first else b""
        if len(data) != last - first:
            raise StoreError(f"{self.where}: ends within {name}; it was cut short")
        return data

    def fill(self, name: str, buffer: memoryview, seen: OnPiece) -> tuple[int, bytes]:
        """Read the beginning of a member into a buffer."""
        offset, size = self._place(name)
        wanted = min(size, len(buffer) + 5)
        filled, rest = self.ranges.fill(offset, offset + wanted, buffer, seen)
        if filled + len(rest) != wanted:
            raise StoreError(f"{self.where}: ends within {name}; it was cut short")
        return filled, rest

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a member from `start` in blocks."""
        size, step = self.size(name), 8 * BLOCK if self.readers > 1 else BLOCK
        for first in range(start, size, step):
            yield self.read(name, first, first + step)

    def torn_headers(self) -> list[str]:
        """List the members whose header differs from the directory."""
        places = {name: (self.members[name][0], header) for name, header in self.headers.items()}
        return sorted(
            name
            for name, (end, header) in places.items()
            if self.ranges.read(end - len(header), end) != header
        )

    def _place(self, name: str) -> tuple[int, int]:
        if name not in self.members:
            raise FileNotFoundError(2, "no such member", f"{self.where}/{name}")
        return self.members[name]


def open_zip(path: Path) -> ZipFiles:
    """Open a store that is a local zip file."""
    if path.is_dir():
        raise StoreError(f"{path}: a folder; expected a zip that 'obygaze store pack' made")
    return open_ranges(LocalFile(path), str(path))


def open_ranges(ranges: Ranges, where: str, readers: int = 1) -> ZipFiles:
    """Open a zip by its directory, which lies at its end; its members are left alone.

    Raises
    ------
    StoreError
        If it is not exactly what `pack` writes.
    """
    try:
        tail = _Tail(ranges, where)
        with zipfile.ZipFile(tail) as archive:
            members, end = archive.infolist(), archive.start_dir
        tail.seek(end)
        directory = tail.read()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OverflowError) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{where}: not a zip, or a torn one ({error})") from error
    prefix = members[0].filename.partition("/")[0] if members else ""
    if not prefix.isprintable() or prefix.startswith(".") or set(prefix) & set("\\:"):
        raise StoreError(f"{where}: its folder {prefix[:80]!r} is no name of a store")
    written = directory_bytes(members, end)
    places: dict[str, tuple[int, int]] = {}
    headers: dict[str, bytes] = {}
    position = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        name = member.filename.removeprefix(f"{prefix}/")
        if what := _foreign(member, name, prefix, name in places):
            raise StoreError(
                f"{where}: member {member.filename[:200]!r} {what}; "
                "a store's zip is what obygaze store pack made, unchanged"
            )
        # The directory has its own reasons for these; FileHeader sets what the member's header has.
        member.extra, member.extract_version = b"", zipfile.DEFAULT_VERSION
        header = member.FileHeader(zip64=member.file_size * 1.05 > zipfile.ZIP64_LIMIT)
        if member.header_offset != position:
            raise StoreError(f"{where}: something lies before member {member.filename!r}, or overlaps it")
        places[name], headers[name] = (position + len(header), member.file_size), header
        position += len(header) + member.file_size
    if position != end or ROOT not in places or directory != written:
        raise StoreError(
            f"{where}: not a store's zip, or something was added to it; make one: obygaze store pack"
        )
    return ZipFiles(where, prefix, ranges, places, headers, readers)


def _foreign(member: zipfile.ZipInfo, name: str, prefix: str, again: bool) -> str | None:
    """Return how a member differs from those that `pack` writes; None if it does not."""
    reasons = {
        "is there twice": again,
        "leads out of the store, or is no file of one": (
            member.orig_filename != f"{prefix}/{name}" or not is_safe(name)
        ),
        "is encrypted or has unknown flags": bool(member.flag_bits & ~_UTF8),
        "is compressed": member.compress_type != zipfile.ZIP_STORED
        or member.compress_size != member.file_size,
        "is a link, a folder or has another mode": member.external_attr != MODE << 16,
        "has another time, system or version, or a comment": (
            member.date_time != TIME
            or member.create_system != 3
            or (member.create_version, member.extract_version, member.reserved)
            not in ((20, 20, 0), (45, 45, 0))
            or bool(member.volume or member.internal_attr or member.comment)
            or (member.extra[:2] not in (b"", _ZIP64) or len(member.extra) not in (0, *_ZIP64_LENGTHS))
        ),
    }
    return next((what for what, so in reasons.items() if so), None)


class _Tail(io.RawIOBase):
    """The end of a file for zipfile to read the directory of, in one request or two."""

    def __init__(self, ranges: Ranges, where: str) -> None:
        self._ranges, self._where = ranges, where
        self._size = ranges.size
        self._start = max(0, self._size - _TAIL)
        self._data = ranges.read(self._start, self._size)
        self._at = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        stop = self._size if size < 0 else min(self._size, self._at + size)
        if stop - self._at > _LARGEST_DIRECTORY:
            raise StoreError(f"{self._where}: its directory is larger than any store needs")
        if self._at >= self._start:
            data = self._data[self._at - self._start : stop - self._start]
        else:
            self._data = self._ranges.read(self._at, self._size)
            self._start = self._at
            data = self._data[: stop - self._at]
        self._at += len(data)
        return data


def directory_bytes(members: Sequence[zipfile.ZipInfo], start: int) -> bytes:
    """Write the directory that begins at `start`, and the end of the file, as `zipfile` does.

    Nothing is given where what was read cannot be written: no such directory is right.
    """
    try:
        records = b"".join(map(_record, members))
    except (struct.error, UnicodeEncodeError):
        return b""
    numbers = (len(members), len(members), len(records), start)
    end = b""
    if len(members) > 0xFFFF or start > zipfile.ZIP64_LIMIT or len(records) > zipfile.ZIP64_LIMIT:
        end = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, *numbers)
        end += struct.pack("<4sLQL", b"PK\x06\x07", 0, start + len(records), 1)
    counts, places = (min(len(members), 0xFFFF),) * 2, (min(len(records), _IN_EXTRA), min(start, _IN_EXTRA))
    return records + end + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, *counts, *places, 0)


def _record(member: zipfile.ZipInfo) -> bytes:
    name = member.orig_filename.encode("utf-8" if member.flag_bits & _UTF8 else "cp437")
    sizes, offset = (member.compress_size, member.file_size), member.header_offset
    large: tuple[int, ...] = ()
    if max(sizes) > zipfile.ZIP64_LIMIT:
        large, sizes = sizes[::-1], (_IN_EXTRA, _IN_EXTRA)
    if offset > zipfile.ZIP64_LIMIT:
        large, offset = (*large, offset), _IN_EXTRA
    extra = struct.pack(f"<2H{len(large)}Q", 1, 8 * len(large), *large) if large else b""
    fields = (
        *(member.create_version, member.create_system, member.extract_version, member.reserved),
        *(member.flag_bits, member.compress_type, 0, _DATE, member.CRC, *sizes),
        *(len(name), len(extra), 0, member.volume, member.internal_attr, member.external_attr, offset),
    )
    return struct.pack("<4s4B4H3L5H2L", b"PK\x01\x02", *fields) + name + extra
