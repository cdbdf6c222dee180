"""List and read the files of a sealed store, wherever it is, and its BagIt bag.

Other modules read a store by the relative names of its files, independently of where they are. The two
manifests of digests are the only list of files that is trusted. In a partial copy, fetch.txt (RFC 8493,
2.2.3) lists the files that are left out; the manifests, and so the fingerprint, are those of the whole store.
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
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import quote

from obygaze_features.errors import LinkError, StoreError, first_line
from obygaze_features.file_kinds import no_text, why_not
from obygaze_features.io import PARTIAL_SUFFIX, digests_of, file_sha256, walk
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
from obygaze_features.text import is_address
from obygaze_features.untrusted import open_regular

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
    """Whether links are followed, because the reader checks digests, or a trusted library made them."""

    @property
    def where(self) -> str:
        """The path as it was given."""
        return str(self.path)

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.path.name

    def names(self) -> list[str]:
        """List every file, below `data/` and beside it; a link to a folder counts as a file."""
        names = [*payload_files(self.path), *tag_files(self.path)]
        if (self.path / TAG_DIGESTS).exists():
            names.append(TAG_DIGESTS)
        return sorted(names)

    def is_plain(self, name: str) -> bool:
        """Whether there is an ordinary file of this name: no folder, no link."""
        path = self.path / name
        return path.is_file() and not path.is_symlink()

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return (self.path / name).stat().st_size

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read a file, or the part from `start` to `stop`; a negative start counts from its end."""
        with self.open(name) as file:
            if start < 0:
                start = max(0, self.size(name) + start)
            file.seek(start)
            if stop is not None:
                return file.read(max(0, stop - start))
            size = os.fstat(file.fileno()).st_size
            refuse_larger(size, f"{self.path}/{name}")
            return file.read()

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file from `start` in blocks."""
        with self.open(name) as file:
            file.seek(start)
            while block := file.read(BLOCK):
                yield block

    def open(self, name: str) -> FileIO:
        """Open a file of the folder.

        A symbolic link, such as git-annex makes for a file, is followed only if `links` is set, or if the
        file that it points to has the digest that the store's manifest lists.

        Raises
        ------
        LinkError
            It is a link that is not followed. `TAG_DIGESTS` is never followed: no manifest lists its digest.
        """
        path = self.path / name
        folder_to_stay_in = None if self.links else self.path
        try:
            return open_regular(path, within=folder_to_stay_in)
        except LinkError:
            leads_to_file = path.is_file()  # not to a device, a folder or nothing
            if name == TAG_DIGESTS or not leads_to_file:
                raise
            status = path.stat()
            if not _has_listed_digest(self, name, status.st_mtime_ns, status.st_size):
                raise
            return open_regular(path)


@lru_cache(1 << 16)
def _has_listed_digest(files: FolderFiles, name: str, _changed_ns: int, _n_bytes: int) -> bool:
    """Return whether a file of a store has the digest that the store's manifest of digests lists.

    The result is remembered until the file changes. For this alone, its time and size are arguments.
    """
    manifest = DIGESTS if name.startswith(f"{PAYLOAD}/") else TAG_DIGESTS
    if not (files.path / manifest).exists():
        return False
    digests, _ = parse_digests(files.read(manifest))
    return name in digests and file_sha256(files.path / name) == digests[name]


def refuse_larger(size: int, location: str, maximum: int = LARGEST_READ) -> None:
    """Raise a StoreError if a size in bytes is above a limit, before memory is allocated for it.

    The default limit is above all that a file of a store, or the features of a clip, can have.
    """
    if size > maximum:
        raise StoreError(
            f"{location}: {size} bytes; expected at most {maximum}; is it damaged, or of many clips?"
        )


def digest_of(files: StoreFiles, name: str) -> str:
    """Return the SHA-256 of a file of a store; the file is read in blocks."""
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
"""Exceptions that zipfile and NumPy raise for damaged bytes. NumPy reads a header as Python text
(SystemError: by Python 3.12)."""


def read_required(files: StoreFiles, name: str) -> bytes:
    """Read a file that every store has; raise a StoreError if it is missing."""
    with required_file(files, name):
        return files.read(name)


@contextmanager
def required_file(files: StoreFiles, name: str) -> Iterator[None]:
    """Convert the error for a missing file within a `with` block to a StoreError: the store is not whole.

    Parameters
    ----------
    files
        The files of the store.
    name
        The file that is read in the block, which every store has.
    """
    try:
        yield
    except (FileNotFoundError, IsADirectoryError):
        hint = ""
        if is_address(files.where):
            hint = ", or not at this URL: its name ends in the version, as films-1.0.0"
        raise StoreError(f"{files.where}/{name}: missing; this is not a whole store{hint}") from None


def read_undamaged(location: str, read: Callable[[], T], *, store: str | None = None) -> T:
    """Return what `read` returns; an error that damaged bytes can cause becomes a StoreError.

    Parameters
    ----------
    location
        What is read, for the message.
    read
        Reads it.
    store
        Path or URL of the store, which the message advises to verify; `location` by default.
    """
    try:
        return read()
    except StoreError:
        raise
    except UNREADABLE as error:
        raise damaged(f"{location}: damaged ({first_line(error, longest=200)})", store or location) from error


ADVICE = "; run: obygaze store verify --full "
"""Stands at the end of an error about changed bytes, before the store."""


def damaged(reason: str, store: str) -> StoreError:
    """Return the error for a store whose bytes have changed; it names the command that checks all of it."""
    return StoreError(f"{reason}{ADVICE}{store}")


FETCH_LIST = "a list of files that a partial copy leaves out"
"""What messages call fetch.txt."""
_UNQUOTED_SIGNS = "!#$&'()*+,/:;=?@[]~"
"""Signs of a URL that are not percent-encoded."""
_UNKNOWN_LENGTH = f" - {PAYLOAD}/"
"""Stands in a line of fetch.txt between the URL and the file's name below `data/`."""


def fetch_bytes(names: Iterable[str], source: str) -> bytes:
    """Return the bytes of fetch.txt, BagIt's list of files that a copy leaves out (RFC 8493, 2.2.3).

    A line is `URL LENGTH FILE`; URLs are percent-encoded, and lengths are not known (`-`).

    Parameters
    ----------
    names
        The files that a copy leaves out.
    source
        What the copy was made from: a URL, or a path. Of a path only the last name is kept, as `file:NAME`:
        the rest belongs to this machine, and may name people.
    """
    if is_address(source):
        # A "%" of the URL begins a sign that is percent-encoded already.
        base = quote(source, safe=f"{_UNQUOTED_SIGNS}%")
    else:
        folder_name = Path(source).absolute().name
        base = "file:" + quote(folder_name, safe="")
    lines = []
    for name in sorted(names):
        url = base + "/" + quote(name, safe=_UNQUOTED_SIGNS)
        lines.append(f"{url} - {name}\n")
    return "".join(lines).encode()


def absent_files(files: StoreFiles) -> dict[str, str]:
    """Return name -> URL of the files that a partial copy leaves out, as its fetch.txt lists them.

    Empty if the copy is whole, and so has no fetch.txt.

    Raises
    ------
    StoreError
        If fetch.txt is no text, or has a line that `fetch_bytes` does not write.
    """
    try:
        data = files.read(FETCH)
    except (FileNotFoundError, IsADirectoryError):
        return {}
    is_empty = len(data) == 0
    is_text = is_empty or not no_text(data)
    if not is_text:  # such as the page that some servers send for a missing file
        raise StoreError(f"{files.where}/{FETCH}: {why_not(data, FETCH_LIST)}")

    absent = {}
    for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), start=1):
        # `URL - data/NAME`; the separator includes `data/`, because a URL or a name may have " - " in it.
        url, _separator, name = line.rpartition(_UNKNOWN_LENGTH)
        if not url or not name:
            raise StoreError(
                f"{files.where}/{FETCH}, line {number}: expected 'URL - FILE'; found {line[:80]!r}"
            )
        absent[f"{PAYLOAD}/{name}"] = url
    return absent


def missing_chunk_error(files: StoreFiles, name: str) -> StoreError:
    """Return the error for a file with a part of an array that is not there.

    A partial copy of a store leaves such files out, and lists them. In a whole store the file is lost.

    Parameters
    ----------
    files
        The files of the store.
    name
        The file that is missing.
    """
    if name in absent_files(files):
        return StoreError(
            f"{files.where}/{name}: not in this partial copy ({FETCH} lists it); "
            "pull into it again, asking for more"
        )
    return damaged(f"{files.where}/{name}: this chunk is missing", files.where)


LONGEST_NAME = 150
"""Most characters of a file's name: while it is pulled its digest is added, and systems allow 255."""
_CHUNK = re.compile(rf"{FEATURES}/([^/]*)/([^/]*)/c/(\d+)(/.*)?")
"""The path of a chunk: group, array, and number along the clips."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+ -]{0,200}")
"""A name of a file or a folder of a store."""


ALWAYS_LISTED = {TAG_DIGESTS: {BAG_INFO, DIGESTS}, DIGESTS: {TABLE, f"{FEATURES}/{ZARR_METADATA}"}}
"""Manifest of digests -> files that it lists in every store, whatever its clips and groups."""


def is_safe(name: str) -> bool:
    """Return whether an untrusted relative path can be a file of a store, inside of the store's folder.

    Names of files and folders consist of letters, digits and a few other signs (`_NAME`).
    """
    *folders, file_name = name.split("/")
    if not all(_NAME.fullmatch(folder) for folder in folders):  # such as ".." or ""
        return False
    if not _NAME.fullmatch(file_name) or len(file_name) > LONGEST_NAME:
        return False

    is_temporary = name.endswith(PARTIAL_SUFFIX)
    if is_temporary or name == FETCH:  # files of a copy, not of the store
        return False
    is_beside_payload = not folders
    return is_beside_payload or folders[0] == PAYLOAD


def chunk_of(name: str) -> tuple[str, str, int] | None:
    """Parse the file name of a chunk to (group, array, number along the clips); None for other files."""
    match = _CHUNK.fullmatch(name)
    return (match[1], match[2], int(match[3])) if match else None


def read_digests(files: StoreFiles) -> dict[str, str]:
    """Return name -> SHA-256 of every file of a store except the manifest of the tag files.

    There are two manifests: one lists the files below `data/` (the payload), the other those beside it (the
    tag files), among which is the first manifest.

    Raises
    ------
    StoreError
        If a manifest is missing, was changed, or names what cannot be a file of a store.
    """
    tag_data = read_required(files, TAG_DIGESTS)
    tag_digests = _read_manifest(files, TAG_DIGESTS, tag_data)
    payload_data = read_required(files, DIGESTS)
    payload_digests = _read_manifest(files, DIGESTS, payload_data)
    if tag_digests[DIGESTS] != hashlib.sha256(payload_data).hexdigest():
        raise _changed_manifest_error(files, DIGESTS)
    return tag_digests | payload_digests


def refuse_other_kind(data: bytes, location: str) -> None:
    """Raise a StoreError if a text of a store is something else, and say what, and what to do.

    A server may answer with a page to log in, or send the file compressed; a copy by git may hold the pointer
    to a file in its place.

    Parameters
    ----------
    data
        The content.
    location
        The file, for the message.
    """
    reason = no_text(data)
    if reason:
        raise StoreError(f"{location}: {reason}")


def _read_manifest(files: StoreFiles, manifest: str, data: bytes) -> dict[str, str]:
    """Parse and check one of the two BagIt manifests of a store: return file -> SHA-256.

    One lists the files below `data/`, the other the files beside it.

    Raises
    ------
    StoreError
        It is not as the format demands.
    """
    digests, is_canonical = parse_digests(data)
    lacking = sorted(ALWAYS_LISTED[manifest] - digests.keys())
    if lacking:
        refuse_other_kind(data, f"{files.where}/{manifest}")
        raise StoreError(f"{files.where}/{manifest}: does not list {lacking[0]}, which every store has")
    if not is_canonical:  # not byte for byte as sealing writes it
        raise _changed_manifest_error(files, manifest)

    lists_payload = manifest == DIGESTS  # the files below `data/`
    for name, digest in digests.items():
        is_payload = name.startswith(f"{PAYLOAD}/")
        is_in_wrong_manifest = is_payload != lists_payload
        if is_in_wrong_manifest or not is_safe(name):
            raise _changed_manifest_error(files, manifest)
        if not fits(digest, Hex64):
            raise _changed_manifest_error(files, manifest)
    return digests


def _changed_manifest_error(files: StoreFiles, manifest: str) -> StoreError:
    """Return the error for a list of digests (BagIt manifest) that was changed since the store was sealed.

    It has lines that sealing does not write, such as a path outside of the store; or it is the list of the
    files below `data/`, and its digest in the list of the other files (`TAG_DIGESTS`) is another one.
    """
    return StoreError(
        f"{files.where}/{manifest}: was changed; it is not as the format or {TAG_DIGESTS} has it"
    )


def names_in_manifests(files: StoreFiles) -> list[str]:
    """Return the names of all files that the two manifests list, sorted, and the manifests themselves.

    For verification of stores that cannot be listed, such as those at a URL: damaged manifests are not
    refused.
    """
    names = {DIGESTS, TAG_DIGESTS}
    for manifest in (TAG_DIGESTS, DIGESTS):
        digests, _ = parse_digests(read_required(files, manifest))
        names.update(name for name in digests if is_safe(name))
    return sorted(names)


# --- the BagIt bag: which files there are, and the digest of each (RFC 8493)
# ---------------------------------------------------------------------------
REQUIRED_TAGS = (BAGIT, BAG_INFO, DIGESTS, CARD)
"""Files beside `data/` that every store has, besides the manifest that lists them."""


def payload_files(root: Path) -> list[str]:
    """Return the files below `data/`, relative to the store, sorted; a link to a folder counts as a file."""
    paths = []
    for folder, subfolders, file_names in walk(root / PAYLOAD):
        links = [name for name in subfolders if Path(folder, name).is_symlink()]
        for name in (*file_names, *links):
            path = Path(folder, name).relative_to(root)
            paths.append(path.as_posix())
    return sorted(paths)


def tag_files(root: Path) -> list[str]:
    """Return the files beside `data/`, except the manifest that lists them, sorted."""
    not_listed = (PAYLOAD, TAG_DIGESTS)
    return sorted(path.name for path in root.iterdir() if path.name not in not_listed)


def digests_bytes(digests: Mapping[str, str]) -> bytes:
    """Return the bytes of a manifest of digests, which `sha256sum -c` reads, sorted by path."""
    return "".join(f"{digests[path]}  {path}\n" for path in sorted(digests)).encode()


class ParsedDigests(NamedTuple):
    """A manifest of digests: path -> digest, and whether its bytes are those that sealing writes."""

    digests: dict[str, str]
    is_canonical: bool


def parse_digests(data: bytes) -> ParsedDigests:
    """Parse a manifest of digests, which has a line `DIGEST  PATH` for each file; other lines are ignored."""
    digests = {}
    for line in data.decode("utf-8", errors="replace").split("\n"):
        digest, _, path = line.partition("  ")
        if path:
            digests[path] = digest
    # Sealing writes nothing but these lines, sorted: other bytes were changed afterwards.
    is_canonical = data == digests_bytes(digests)
    return ParsedDigests(digests, is_canonical)


def parse_info(data: bytes) -> dict[str, str]:
    """Parse bag-info.txt: label -> value.

    Lines without a label are ignored. Sealing writes no such line; if the file was changed, its digest shows
    it.
    """
    info = {}
    for line in data.decode("utf-8", errors="replace").splitlines():
        label, colon, value = line.partition(": ")
        if colon:
            info[label] = value
    return info


MIN_LIMIT = 1 << 24
"""Bytes that a file of a store may always have, for small stores whose tag files are larger than the
payload."""
MAX_DIGITS = 18
"""Digits of the largest size of a payload that is believed."""


def largest_file_bytes(info: bytes) -> int:
    """Return a size in bytes that no file of a store exceeds, so that no more is read from a server.

    It is the size of the whole payload, all files below `data/`, that bag-info.txt states; but at least
    `MIN_LIMIT`, which is returned too if the stated size is missing or cannot be true.

    Parameters
    ----------
    info
        Content of bag-info.txt.
    """
    oxum = parse_info(info).get("Payload-Oxum", "")  # bytes and number of files, as in 12345.6
    payload_bytes, _, _n_files = oxum.partition(".")
    is_plausible = payload_bytes.isdecimal() and len(payload_bytes) <= MAX_DIGITS
    if not is_plausible:
        return MIN_LIMIT
    return max(MIN_LIMIT, int(payload_bytes))


def write_bag(root: Path, info: Mapping[str, str], card: str, digest_of: Mapping[str, str]) -> None:
    """Write the tag files of a store, those beside `data/`; the files below `data/` are complete.

    Parameters
    ----------
    root
        Folder of the store.
    info
        Fields of bag-info.txt.
    card
        Text of README.md.
    digest_of
        File -> SHA-256 of payload files whose digest is known; the others are read to compute it.
    """
    payload = payload_files(root)
    n_bytes = sum((root / path).stat().st_size for path in payload)

    # BagIt's "oxum" is the number of bytes and the number of files.
    fields = {**info, "Payload-Oxum": f"{n_bytes}.{len(payload)}"}
    info_lines = [f"{label}: {fields[label]}\n" for label in sorted(fields)]
    (root / BAGIT).write_bytes(BAGIT_TEXT.encode())
    (root / BAG_INFO).write_bytes("".join(info_lines).encode())
    (root / CARD).write_bytes(card.encode())

    payload_digests = {path: digest_of[path] for path in payload if digest_of.get(path)}
    to_compute = [path for path in payload if path not in payload_digests]
    payload_digests |= digests_of(root, to_compute)
    (root / DIGESTS).write_bytes(digests_bytes(payload_digests))

    # Last, because it lists the digests of all tag files, and so of the files above.
    tag_digests = digests_of(root, tag_files(root))
    (root / TAG_DIGESTS).write_bytes(digests_bytes(tag_digests))
