"""List the files of a film, and compute facts about them once for all processes of a run."""

import hashlib
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from obygaze_features.arguments import checked
from obygaze_features.errors import StoreError, VideoError
from obygaze_features.locks import hold
from obygaze_features.untrusted import open_regular, read_bytes

LARGE_BYTES = 1 << 25
"""Bytes from which on facts are cached: reading less takes tens of milliseconds, as long as a cache file."""
DIGESTED_BYTES = 1 << 20
"""Bytes of a file that are read at once to compute its digest."""
FIRST_PART = re.compile(r"(VTS_\d\d_)1(\.VOB)", re.IGNORECASE)
"""The file with which the film of a DVD's title begins; those of 1 GB that follow it are numbered from 2."""
T = TypeVar("T")
_folder: Path | None = None


def is_large(size: int) -> bool:
    """Return whether facts about a file of `size` bytes are cached."""
    return size >= LARGE_BYTES


@checked
def share_in(folder: Path | None) -> None:
    """Set the folder in which processes share what `cached_fact` computes; None turns its cache off."""
    global _folder  # noqa: PLW0603 - a fact about the process, set once when it starts
    _folder = folder


@checked
def files_of(path: Path) -> list[Path]:
    """List the files of a film: all parts of a DVD's title in order, or the file itself.

    A title is given by its first part, such as VTS_01_1.VOB, or by its folder.

    Raises
    ------
    VideoError
        A folder holds several titles, or none; or a part of a title is missing.
    """
    if path.is_dir():
        return files_of(_only_title_in(path))
    first_part = FIRST_PART.fullmatch(path.name)
    if first_part is None or not path.is_file():
        return [path]
    # As in VTS_01_2.VOB, which follows VTS_01_1.VOB.
    later_part = re.compile(rf"{first_part[1]}[2-9]{first_part[2]}", re.IGNORECASE)
    later_files = sorted(file for file in path.parent.iterdir() if later_part.fullmatch(file.name))
    files = [path, *later_files]
    for number, file in enumerate(files, start=1):
        if file.stem[-1] != str(number):
            raise VideoError(f"part {number} of the title is missing before {file.name}", path)
    return files


def _only_title_in(folder: Path) -> Path:
    """Return the first part of the only DVD title in a folder.

    Raises
    ------
    VideoError
        The folder holds several titles, or none.
    """
    first_parts = sorted(file for file in folder.iterdir() if FIRST_PART.fullmatch(file.name))
    if len(first_parts) == 1:
        return first_parts[0]
    kind = "a directory, not a video file"
    if first_parts:
        kind = f"a DVD of {len(first_parts)} titles: name one by its first file (VTS_01_1.VOB)"
    raise VideoError(f"this is {kind}", folder)


def is_here(path: Path) -> bool:
    """Return whether the files of a film are on this machine."""
    try:
        return all(file.is_file() for file in files_of(path))
    except VideoError:
        return False


def file_state(path: Path) -> tuple[int, int]:
    """Return the total size of a film's files in bytes, and the time of the last change in nanoseconds."""
    states = [file.stat() for file in files_of(path)]
    return sum(state.st_size for state in states), max(state.st_mtime_ns for state in states)


@checked
def file_digest(path: Path) -> str:
    """Compute the SHA-256 of a film's bytes, once for all processes that share a cache."""

    def compute() -> str:
        """Return the digest of the bytes of all files of the film, one after the other."""
        digest = hashlib.sha256()
        for file_path in files_of(path):
            with open_regular(file_path) as file:
                while block := file.read(DIGESTED_BYTES):
                    digest.update(block)
        return digest.hexdigest()

    return cached_fact(path, "sha256", compute, str)


def cached_fact(path: Path, name: str, compute: Callable[[], T], kind: type[T]) -> T:
    """Return a value that depends only on a file, such as its digest; compute it if it is not cached.

    The cache is a folder that processes share (`share_in`). Without it, and for small files, the value is
    computed each time.

    Parameters
    ----------
    path
        The file; a changed size or modification time invalidates the cache.
    name
        Name of the value, such as "sha256".
    compute
        Computes the value, which may take seconds; other processes wait meanwhile.
    kind
        Type of the value, one that `packed` can serialise.
    """
    size, changed_ns = file_state(path)
    if _folder is None or not is_large(size):
        return compute()

    # All that the value depends on is in the name of its cache file, so that a changed file has another one.
    state = f"{path.absolute()}\0{size}\0{changed_ns}\0{name}"
    cache_file = _folder / hashlib.sha256(os.fsencode(state)).hexdigest()
    with _locked_if_possible(cache_file.with_suffix(".lock")):
        with suppress(OSError, ValueError):  # not cached yet, or written by another version
            return unpacked(read_bytes(cache_file), kind)
        fact = compute()
        with suppress(OSError):  # with a full disk, other processes compute it again
            unfinished = cache_file.with_suffix(f".{os.getpid()}")
            unfinished.write_bytes(packed(fact))
            unfinished.replace(cache_file)
        return fact


@contextmanager
def _locked_if_possible(path: Path) -> Iterator[None]:
    """Wait for the lock of a file, and hold it within a `with` block.

    Where it cannot be locked (a full disk, a file system without locks), the block runs without the lock, and
    two processes may compute the same fact.
    """
    with ExitStack() as still_open:
        with suppress(StoreError, OSError):
            lock_file = still_open.enter_context(path.open("wb"))
            hold(lock_file.fileno(), path)  # until the file is closed
        yield


def packed(value: Any) -> bytes:
    """Serialise a plain value, an array, or a dataclass or tuple of such, to bytes, without pickle."""

    def as_plain(array: Any) -> Any:
        """Convert a numpy scalar to a plain number, and an array to the bytes of an npy file."""
        if not array.ndim:
            return array.item()
        file = io.BytesIO()
        np.save(file, array, allow_pickle=False)
        return file.getvalue()

    return msgspec.msgpack.encode(value, enc_hook=as_plain)


def unpacked(data: bytes, kind: type[T]) -> T:
    """Deserialise a value of a type from the bytes that `packed` returned for it.

    Raises
    ------
    ValueError
        The bytes hold no value of this type.
    """

    def as_array(_: type, stored: bytes) -> Any:
        """Read an array from the bytes of an npy file."""
        return np.load(io.BytesIO(stored), allow_pickle=False)

    return msgspec.msgpack.decode(data, type=kind, dec_hook=as_array)
