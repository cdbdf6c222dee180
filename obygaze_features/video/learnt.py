"""Cache facts about large files (packets, digest) across the processes of a run."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path

# Below this size, recomputing costs less than a cache file: reading 32 MiB takes tens of milliseconds.
LARGE_BYTES = 1 << 25

_folder: Path | None = None


def share_in(folder: Path | None) -> None:
    """Share the cache with other processes through a folder; None caches in this process alone."""
    global _folder  # noqa: PLW0603 - a fact about the process, set once when it starts
    _folder = folder


def learnt(path: Path, what: str, learn: Callable[[], bytes]) -> bytes:
    """Return a fact about a file in its present state; compute it if it is not cached.

    Parameters
    ----------
    path
        The file; a changed size or modification time invalidates the cache.
    what
        Name of the fact.
    learn
        Computes the fact, which may take seconds; other processes wait meanwhile.
    """
    status = path.stat()
    if _folder is None or status.st_size < LARGE_BYTES:
        return learn()
    state = f"{path.absolute()}\0{status.st_size}\0{status.st_mtime_ns}\0{what}"
    place = _folder / hashlib.sha256(os.fsencode(state)).hexdigest()
    with _held(place.with_suffix(".lock")):
        with suppress(OSError):  # not cached yet
            return place.read_bytes()
        fact = learn()
        with suppress(OSError):  # with a full disk, other processes compute it again
            unfinished = place.with_suffix(f".{os.getpid()}")
            unfinished.write_bytes(fact)
            unfinished.replace(place)
        return fact


def file_digest(path: Path) -> str:
    """Compute the SHA-256 of a file, once for all processes that share a cache."""
    status = path.stat()
    return _digest(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=16)
def _digest(path: Path, _size: int, _modified_ns: int) -> str:
    def learn() -> bytes:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest().encode()

    return learnt(path, "sha256", learn).decode()


@contextmanager
def _held(place: Path) -> Iterator[None]:
    """Hold a lock during a computation; without locks, two processes may compute the same fact."""
    with ExitStack() as held:
        with suppress(ImportError, OSError):  # Windows, a full disk, a file system without locks
            import fcntl  # noqa: PLC0415 - not on Windows

            fcntl.flock(held.enter_context(place.open("wb")), fcntl.LOCK_EX)
        yield
