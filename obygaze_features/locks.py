"""Lock files and folders, so that two processes never write the same place.

Locks are the system's advisory ones (flock): they end with their process, so none is ever left behind.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from obygaze_features.errors import StoreError
from obygaze_features.io import make_folder, naming

__all__ = ["NO_LOCKS", "alone_in", "hold", "locked", "require_locks"]


NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP)


def hold(descriptor: int, path: Path, *, wait: bool = True, shared: bool = False) -> bool:
    """Lock an open file or folder until it is closed or the process ends; return whether the lock was got.

    Raises
    ------
    StoreError
        Naming `path`, if its file system has no locks.
    """
    import fcntl  # noqa: PLC0415 - not on Windows, where stores can be read but not written

    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, how if wait else how | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in NO_LOCKS:
            raise StoreError(
                f"{path}: this file system has no file locks ({os.strerror(error.errno)}): have it mounted "
                "with them (Lustre: -o flock), or choose a place on another file system"
            ) from None
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return False
    return True


def require_locks(path: Path) -> None:
    """Refuse a path that does not exist yet on a file system without locks, before anything is created.

    Raises
    ------
    StoreError
        Naming the folder that would contain it.
    """
    if path.exists():
        return
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    with naming(folder):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            hold(descriptor, folder, wait=False, shared=True)
        finally:
            os.close(descriptor)


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold an exclusive lock on a file or folder; yield whether it was got.

    The lock dies with its process, so none is ever left behind. Without `wait`, False is yielded when another
    process holds it, or when what is at `path` was swapped for something else meanwhile.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        try:
            got = hold(descriptor, path, wait=wait)
        except StoreError:
            if path.is_dir():
                with suppress(OSError):  # created for this lock; kept if not empty
                    path.rmdir()
            raise
        yield got and path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())
    finally:
        os.close(descriptor)


@contextmanager
def alone_in(folder: Path, work: str) -> Iterator[None]:
    """Lock a folder for unfinished work; it is created if missing and kept.

    Raises
    ------
    StoreError
        If another process has it, or its file system has no locks.
    """
    require_locks(folder)
    with naming(folder):
        make_folder(folder)
        with locked(folder, wait=False) as ours:
            if not ours:
                raise StoreError(f"{folder}: another process is {work}; wait for it")
            yield
