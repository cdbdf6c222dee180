"""List and read the files of a sealed store, wherever it is stored, and its BagIt bag.

Other modules read a store by the relative names of its files, independently of where they are.
The two lists of digests are the only list of files that is trusted. In a partial copy, fetch.txt (RFC 8493,
2.2.3) lists the files that are left out; its digests, and so its fingerprint, are those of the whole store.
BagIt (RFC 8493, Kunze et al. 2018) is written in one canonical way, so that any changed bit shows.
"""

import hashlib
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from io import FileIO
from pathlib import Path
from tokenize import TokenError
from typing import Protocol, TypeVar
from urllib.parse import quote

from obygaze_features.door import open_regular
from obygaze_features.errors import LinkError, StoreError, first_line
from obygaze_features.file_kinds import no_text, why_not
from obygaze_features.io import PARTIAL_SUFFIX, digests_of, file_sha256
from obygaze_features.schema import Hex64, fits
from obygaze_features.store.format import (
    BAG_INFO,
    BAGIT,
    BAGIT_TEXT,
    CARD,
    DIGESTS,
    FEATURES,
    FETCH,
    PAYLOAD,
    TABLE,
    TAG_DIGESTS,
    ZARR_METADATA,
)

READ_AT_ONCE = 1 << 20
"""Bytes of a chunk that are read and checked together: they fit a core's cache."""
BLOCK = 1 << 20
"""Bytes of a file that are held at a time while it is digested or copied."""
LARGEST_READ = 1 << 30
"""Most bytes of one file that are held in memory."""


class StoreFiles(Protocol):
    """The files of one sealed store; all methods may be called from several threads.

    A name that is not there raises FileNotFoundError; a server or a zip that misbehaves raises StoreError.
    """

    @property
    def where(self) -> str:
        """Name of the store in messages."""

    @property
    def name(self) -> str:
        """Its name with its version, `NAME-X.Y.Z`."""

    @property
    def readers(self) -> int:
        """Number of files to read concurrently."""

    def names(self) -> list[str]:
        """List the files; where nothing can be listed, those that the lists of digests name."""

    def is_plain(self, name: str) -> bool:
        """Whether there is an ordinary file of this name: no folder, no link."""

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read a file, or the part from `start` to `stop`; a negative start counts from its end."""

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file from `start` in blocks of bounded size."""


@dataclass(frozen=True)
class FolderFiles:
    """A store that is a folder."""

    path: Path
    readers: int = 1
    links: bool = False
    """Whether links are followed: its reader checks digests, or a library of ours made them."""

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
        tags = [TAG_DIGESTS] if (self.path / TAG_DIGESTS).exists() else []
        return sorted([*payload_files(self.path), *tag_files(self.path), *tags])

    def is_plain(self, name: str) -> bool:
        """Whether there is an ordinary file of this name."""
        path = self.path / name
        return path.is_file() and not path.is_symlink()

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return (self.path / name).stat().st_size

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read a file or a part of it."""
        with self.open(name) as file:
            if start:
                file.seek(start if start > 0 else max(0, self.size(name) + start))
            if stop is not None:
                return file.read(max(0, stop - start))
            refuse_giants(os.fstat(file.fileno()).st_size, f"{self.path}/{name}")
            return file.read()

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file from `start` in blocks."""
        with self.open(name) as file:
            file.seek(start)
            while block := file.read(BLOCK):
                yield block

    def open(self, name: str) -> FileIO:
        """Open a file of the folder; a link, as git-annex makes, if it leads to what the bag lists."""
        path = self.path / name
        try:
            return open_regular(path, within=None if self.links else self.path)
        except LinkError:
            if not path.is_file():  # a device, a folder, nothing
                raise
            status = path.stat()
            if name == TAG_DIGESTS or not _is_listed(self, name, (status.st_mtime_ns, status.st_size)):
                raise
            return open_regular(path)


@lru_cache(1 << 16)
def _is_listed(files: FolderFiles, name: str, _state: tuple[int, int]) -> bool:
    """Whether a file, in its present state, has the digest that the bag lists."""
    listing = DIGESTS if name.startswith(f"{PAYLOAD}/") else TAG_DIGESTS
    if not (files.path / listing).exists():
        return False
    digests = parse_digests(files.read(listing))[0]
    return name in digests and file_sha256(files.path / name) == digests[name]


def refuse_giants(size: int, where: str, most: int = LARGEST_READ) -> None:
    """Refuse what is larger than any file of a store, or features of a clip, before it is held in memory."""
    if size > most:
        raise StoreError(f"{where}: {size} bytes; expected at most {most}; is it damaged, or of many clips?")


def digest_of(files: StoreFiles, name: str) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    for block in files.stream(name):
        digest.update(block)
    return digest.hexdigest()


T = TypeVar("T")

UNREADABLE = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    RuntimeError,
    ArithmeticError,
    MemoryError,
)
"""Exceptions that zarr and JSON raise for damaged bytes."""

NOT_ARRAYS = (
    *(*UNREADABLE, OSError, EOFError, SyntaxError, SystemError, TokenError),
    *(struct.error, zlib.error, zipfile.BadZipFile),
)
"""What zipfile and NumPy raise for damaged bytes: a header is read as Python text (SystemError: by 3.12)."""


def whole(files: StoreFiles, name: str) -> bytes:
    """Read a file that every store has."""
    with needed(files, name):
        return files.read(name)


@contextmanager
def needed(files: StoreFiles, name: str) -> Iterator[None]:
    """Say what it means that a file is missing which every store has."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError):
        hint = ""
        if "://" in files.where:
            hint = ", or not at this URL: its name ends in the version, as films-1.0.0"
        raise StoreError(f"{files.where}/{name}: missing; this is not a whole store{hint}") from None


def guarded(where: str, read: Callable[[], T], *, store: str | None = None) -> T:
    """Call `read`; turn any error of damaged bytes into a StoreError that names `where`.

    `store` is what to verify, where it is not `where` itself.
    """
    try:
        return read()
    except StoreError:
        raise
    except UNREADABLE as error:
        raise damaged(f"{where}: damaged ({first_line(error, 200)})", store or where) from error


def damaged(reason: str, store: str) -> StoreError:
    """Return the error for a store that is not what it was, which says how to look at all of it."""
    return StoreError(f"{reason}; run: obygaze store verify --full {store}")


FETCH_LIST = "a list of files that a partial copy leaves out"
_URL_SIGNS = "!#$&'()*+,/:;=?@[]~"
_BETWEEN = f" - {PAYLOAD}/"


def fetch_bytes(names: Iterable[str], source: str) -> bytes:
    """Write fetch.txt (RFC 8493, 2.2.3), its URLs percent-encoded; the lengths are not known.

    Parameters
    ----------
    names
        The files that a copy leaves out.
    source
        What the copy was made from: a URL, or a path. Of a path only the last name is kept, as `file:NAME`:
        the rest belongs to this machine, and may name people.
    """
    local = f"file:{quote(Path(source).absolute().name, '')}"
    base = quote(source, f"{_URL_SIGNS}%") if "://" in source else local
    return "".join(f"{base}/{quote(name, _URL_SIGNS)} - {name}\n" for name in sorted(names)).encode()


def absent_files(files: StoreFiles) -> dict[str, str]:
    """Return name -> URL of the files that a partial copy leaves out; none if it is whole."""
    try:
        data = files.read(FETCH)
    except (FileNotFoundError, IsADirectoryError):
        return {}
    if data and no_text(data):  # such as the page that some servers give for what they have not
        raise StoreError(f"{files.where}/{FETCH}: {why_not(data, FETCH_LIST)}")
    absent = {}
    for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), start=1):
        url, between, place = line.rpartition(_BETWEEN)
        if not (url and between and place):
            raise StoreError(
                f"{files.where}/{FETCH}, line {number}: expected 'URL - FILE'; found {line[:80]!r}"
            )
        absent[f"{PAYLOAD}/{place}"] = url
    return absent


def gone(files: StoreFiles, name: str) -> StoreError:
    """Return the error for a missing file: left out of a partial copy, or lost."""
    if name in absent_files(files):
        return StoreError(
            f"{files.where}/{name}: not in this partial copy ({FETCH} lists it); "
            "pull into it again, asking for more"
        )
    return damaged(f"{files.where}/{name}: this chunk is missing", files.where)


LONGEST_FILE = 150
"""Most characters of a file's name: while it is pulled its digest is added, and systems allow 255."""
_CHUNK = re.compile(rf"{FEATURES}/([^/]*)/([^/]*)/c/(\d+)(/.*)?")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+ -]{0,200}")


ALWAYS = {TAG_DIGESTS: {BAG_INFO, DIGESTS}, DIGESTS: {TABLE, f"{FEATURES}/{ZARR_METADATA}"}}
"""What each manifest of digests must list."""


def is_safe(name: str) -> bool:
    """Return whether an untrusted relative name may be a file of a store, inside its folder."""
    parts = name.split("/")
    deep = parts[0] == PAYLOAD and len(parts) > 1
    return (
        all(_PART.fullmatch(part) for part in parts)
        and (deep or len(parts) == 1)
        and len(parts[-1]) <= LONGEST_FILE
        and not name.endswith(PARTIAL_SUFFIX)
        and name != FETCH
    )


def chunk_of(name: str) -> tuple[str, str, int] | None:
    """Return (group, array, number along the clips) of a chunk's file; None for any other file."""
    match = _CHUNK.fullmatch(name)
    return (match[1], match[2], int(match[3])) if match else None


def listed(files: StoreFiles) -> dict[str, str]:
    """Return name -> SHA-256 of every file of a store but the list of digests of the tag files.

    Raises
    ------
    StoreError
        If a manifest is missing, was changed, or names what cannot be a file of a store.
    """
    digests_by_name: dict[str, str] = {}
    for manifest in (TAG_DIGESTS, DIGESTS):
        data = whole(files, manifest)
        digests, canonical = parse_digests(data)
        payload = {name for name in digests if name.startswith(f"{PAYLOAD}/")}
        fitting = payload == digests.keys() if manifest == DIGESTS else not payload
        fitting &= all(fits(digest, Hex64) for digest in digests.values())
        if manifest == DIGESTS:
            fitting &= digests_by_name.get(DIGESTS) == hashlib.sha256(data).hexdigest()
        if lacking := sorted(ALWAYS[manifest] - digests.keys()):
            raise StoreError(f"{files.where}/{manifest}: does not list {lacking[0]}, which every store has")
        if not canonical or not fitting or not all(map(is_safe, digests)):
            raise StoreError(
                f"{files.where}/{manifest}: was changed; it is not as the format or {TAG_DIGESTS} has it"
            )
        digests_by_name |= digests
    return digests_by_name


def named(files: StoreFiles) -> list[str]:
    """Return the files listed by manifests that may be damaged, for verification."""
    names = {DIGESTS, TAG_DIGESTS}
    for manifest in (TAG_DIGESTS, DIGESTS):
        digests, _ = parse_digests(whole(files, manifest))
        names.update(filter(is_safe, digests))
    return sorted(names)


# --- the BagIt bag: which files there are, and the digest of each (RFC 8493)
# ---------------------------------------------------------------------------
REQUIRED_TAGS = (BAGIT, BAG_INFO, DIGESTS, CARD)


def payload_files(root: Path) -> list[str]:
    """List the files below `data/`, relative to the store, sorted; a link to a folder counts as a file."""
    paths = []
    for folder, folders, names in os.walk(root / PAYLOAD):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        paths += [Path(folder, name).relative_to(root).as_posix() for name in (*names, *links)]
    return sorted(paths)


def tag_files(root: Path) -> list[str]:
    """List what lies beside `data/`, except the list of digests of these files, sorted."""
    return sorted(node.name for node in root.iterdir() if node.name not in (PAYLOAD, TAG_DIGESTS))


def digests_bytes(digests: Mapping[str, str]) -> bytes:
    """Write path -> digest as `sha256sum -c` reads it, sorted by path."""
    return "".join(f"{digests[path]}  {path}\n" for path in sorted(digests)).encode()


def parse_digests(data: bytes) -> tuple[dict[str, str], bool]:
    """Read a manifest of digests: path -> digest, and whether its bytes are canonical."""
    lines = data.decode("utf-8", errors="replace").split("\n")
    digests = {}
    for line in lines:
        digest, _, path = line.partition("  ")
        if path:
            digests[path] = digest
    return digests, digests_bytes(digests) == data


def parse_info(data: bytes) -> dict[str, str]:
    """Read bag-info.txt; lines without a label are ignored, the list of digests reveals them."""
    pairs = (line.partition(": ") for line in data.decode("utf-8", errors="replace").splitlines())
    return {label: value for label, colon, value in pairs if colon}


def most_bytes(info: bytes) -> int:
    """Return the largest possible size of a file of a store, by bag-info.txt: the payload, at least 16 MB."""
    octets = parse_info(info).get("Payload-Oxum", "").partition(".")[0]
    return max(1 << 24, int(octets) if octets.isdecimal() and len(octets) < 19 else 0)


def write_bag(root: Path, info: Mapping[str, str], card: str, digest_of: Mapping[str, str]) -> None:
    """Write the tag files of a store whose payload is complete; `digest_of` are digests computed already."""
    payload = payload_files(root)
    (root / BAGIT).write_bytes(BAGIT_TEXT.encode())
    octets = sum((root / path).stat().st_size for path in payload)
    fields = {**info, "Payload-Oxum": f"{octets}.{len(payload)}"}
    lines = (f"{label}: {fields[label]}\n" for label in sorted(fields))
    (root / BAG_INFO).write_bytes("".join(lines).encode())
    (root / CARD).write_bytes(card.encode())
    digests = digests_of(root, (path for path in payload if not digest_of.get(path)))
    (root / DIGESTS).write_bytes(
        digests_bytes({path: digests.get(path) or digest_of[path] for path in payload})
    )
    (root / TAG_DIGESTS).write_bytes(digests_bytes(digests_of(root, tag_files(root))))
