"""Cache facts about large files (packets, digest) across the processes of a run."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path

# Below this, learning it anew costs less than a file: reading 32 MiB takes tens of milliseconds.
LARGE_BYTES = 1 << 25

_folder: Path | None = None


def share_in(folder: Path | None) -> None:
    """Keep what this process learns in a folder that others use too; None keeps it in this process alone."""
    global _folder  # noqa: PLW0603 - a fact about the process, set once when it starts
    _folder = folder


def learnt(path: Path, what: str, learn: Callable[[], bytes]) -> bytes:
    """Return the facts about a file in its present state, computing them if not cached.

    Parameters
    ----------
    path
        The file; another size or time of change makes it another file.
    what
        Name of the fact.
    learn
        Finds it out, which may take seconds; while one process does, others wait for it.
    """
    status = path.stat()
    if _folder is None or status.st_size < LARGE_BYTES:
        return learn()
    state = f"{path.absolute()}\0{status.st_size}\0{status.st_mtime_ns}\0{what}"
    place = _folder / hashlib.sha256(os.fsencode(state)).hexdigest()
    with _held(place.with_suffix(".lock")):
        with suppress(OSError):  # not there yet
            return place.read_bytes()
        fact = learn()
        with suppress(OSError):  # a full disk costs the others time, and no clip
            unfinished = place.with_suffix(f".{os.getpid()}")
            unfinished.write_bytes(fact)
            unfinished.replace(place)
        return fact


def file_digest(path: Path) -> str:
    """Compute the SHA-256 of a file, once for all processes that share what they learn."""
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
    """Hold a lock while something is learnt; without locks, two processes may learn the same."""
    with ExitStack() as held:
        with suppress(ImportError, OSError):  # Windows, a full disk, a file system without locks
            import fcntl  # noqa: PLC0415 - not on Windows

            fcntl.flock(held.enter_context(place.open("wb")), fcntl.LOCK_EX)
        yield
