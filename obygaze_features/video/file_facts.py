"""Compute what takes seconds of a large file once for all processes of a run: its digest, its packets."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from obygaze_features.door import open_regular, read_bytes
from obygaze_features.errors import InputError, StoreError
from obygaze_features.locks import hold

# Below this size, recomputing costs less than a cache file: reading 32 MiB takes tens of milliseconds.
LARGE_BYTES = 1 << 25
_folder: Path | None = None


def is_large(size: int) -> bool:
    """Tell whether facts about a file of so many bytes are cached."""
    return size >= LARGE_BYTES


def share_in(folder: Path | None) -> None:
    """Share the cache with other processes through a folder; None caches in this process alone."""
    global _folder  # noqa: PLW0603 - a fact about the process, set once when it starts
    _folder = folder


def file_digest(path: Path) -> str:
    """Compute the SHA-256 of a file, once for all processes that share a cache."""

    def compute() -> bytes:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest().encode()

    return cached_fact(path, "sha256", compute).decode()


def cached_fact(path: Path, what: str, compute: Callable[[], bytes]) -> bytes:
    """Return a fact about a file in its present state; compute it if it is not cached.

    Parameters
    ----------
    path
        The file; a changed size or modification time invalidates the cache.
    what
        Name of the fact.
    compute
        Computes the fact, which may take seconds; other processes wait meanwhile.
    """
    status = path.stat()
    if _folder is None or not is_large(status.st_size):
        return compute()
    state = f"{path.absolute()}\0{status.st_size}\0{status.st_mtime_ns}\0{what}"
    cache_file = _folder / hashlib.sha256(os.fsencode(state)).hexdigest()
    with _locked(cache_file.with_suffix(".lock")):
        with suppress(OSError, InputError):  # not cached yet
            return read_bytes(cache_file)
        fact = compute()
        with suppress(OSError):  # with a full disk, other processes compute it again
            unfinished = cache_file.with_suffix(f".{os.getpid()}")
            unfinished.write_bytes(fact)
            unfinished.replace(cache_file)
        return fact


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock during a computation; without locks, two processes may compute the same fact."""
    with ExitStack() as stack:
        with suppress(StoreError, OSError):  # a full disk, a file system without locks
            hold(stack.enter_context(path.open("wb")).fileno(), path)
        yield
