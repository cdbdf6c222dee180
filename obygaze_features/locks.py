"""Lock files and folders, so that two processes never write the same place.

Locks are the system's advisory ones (flock): they end with their process, so none is ever left behind. On
Windows, which locks no folder, a file in the user's temporary folder stands for one.
"""

import errno
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from obygaze_features.errors import StoreError
from obygaze_features.io import close_naming, make_folder, naming, open_binary, sha256_of

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP)
LOCKED_BYTE = 2**31 - 2
"""Of a file, on Windows, where a lock keeps others from reading: behind what any journal holds."""
POLL_S = 0.1


def hold(descriptor: int, path: Path, *, wait: bool = True, shared: bool = False) -> bool:
    """Lock an open file or folder until it is closed or the process ends.

    Parameters
    ----------
    descriptor
        Its file descriptor.
    path
        Its path, for messages.
    wait
        Whether to wait until no other process holds the lock.
    shared
        Whether other processes may hold shared locks at the same time.

    Returns
    -------
    bool
        Whether the lock was obtained; False only without `wait`.

    Raises
    ------
    StoreError
        Naming `path`, if its file system has no locks.
    """
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - on Windows alone

        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            except PermissionError:  # another process holds the lock
                if not wait:
                    return False
                time.sleep(POLL_S)
            else:
                return True

    import fcntl  # noqa: PLC0415 - not on Windows

    operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    if not wait:
        operation |= fcntl.LOCK_NB
    try:
        fcntl.flock(descriptor, operation)
    except OSError as error:
        if error.errno in NO_LOCKS:
            raise StoreError(
                f"{path}: this file system has no file locks ({os.strerror(error.errno)}): have it mounted "
                "with them (Lustre: -o flock), or choose a place on another file system"
            ) from None
        is_held_by_another = error.errno in (errno.EWOULDBLOCK, errno.EACCES)
        if not is_held_by_another:
            raise
        return False
    return True


def require_locks(path: Path) -> None:
    """Refuse a path that does not exist yet on a file system without locks, before anything is created.

    To find out, the nearest folder that exists is locked for a moment. The lock is a shared one, so that it
    disturbs nobody. Windows always has locks, and none on folders.

    Raises
    ------
    StoreError
        Naming the folder that would contain it: raised by `hold`, if the file system has no locks.
    OSError
        The folder cannot be opened; the error names it.
    """
    if path.exists() or sys.platform == "win32":
        return
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    with naming(folder):
        descriptor = open_binary(folder, os.O_RDONLY)
        try:
            hold(descriptor, folder, wait=False, shared=True)  # whether it is obtained does not matter
        finally:
            os.close(descriptor)  # which ends the lock


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold an exclusive lock on a file or folder within a `with` block; yield whether it was obtained.

    The lock ends with the process, so none is ever left behind.

    Parameters
    ----------
    path
        The file or folder.
    wait
        Whether to wait until no other process holds the lock.

    Yields
    ------
    bool
        False if another process holds the lock (only without `wait`), or if the file at `path` was replaced
        before the lock was obtained.
    """
    locks_file_for_folder = sys.platform == "win32" and path.is_dir()  # Windows locks no folders
    if locks_file_for_folder:
        locked_path = _file_for(path)
        descriptor = open_binary(locked_path, os.O_RDWR | os.O_CREAT)
    else:
        locked_path = path
        descriptor = open_binary(locked_path, os.O_RDONLY)
    try:
        is_obtained = hold(descriptor, path, wait=wait)
        if is_obtained:
            # The lock is on what was opened. Another file may have got its name while this process waited.
            locked_node = os.fstat(descriptor)
            is_obtained = path.exists() and os.path.samestat(locked_node, locked_path.stat())
        yield is_obtained
    finally:
        close_naming(descriptor, locked_path)


def _file_for(folder: Path) -> Path:
    """Return the file that is locked in place of a folder, on Windows, where case does not count."""
    name = os.path.normcase(folder.resolve())
    digest = sha256_of(name.encode())
    return Path(tempfile.gettempdir(), f"obygaze-{digest[:16]}.lock")


@contextmanager
def alone_in(folder: Path, work: str) -> Iterator[None]:
    """Lock a folder for unfinished work within a `with` block, and create it if it is missing.

    Parameters
    ----------
    folder
        The folder, which is not removed afterwards.
    work
        What is done in it, for messages: "sealing here".

    Raises
    ------
    StoreError
        If another process has it, or its file system has no locks.
    """
    require_locks(folder)
    with naming(folder):
        make_folder(folder)
        with locked(folder, wait=False) as is_locked:
            if not is_locked:
                raise StoreError(f"{folder}: another process is {work}; wait for it")
            yield
