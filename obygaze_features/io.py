"""Write files and folders so that they survive a kill, a full disk and a power cut; digests of files."""

import ctypes
import errno
import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from obygaze_features.door import STANDARD, open_regular
from obygaze_features.errors import OutputError
from obygaze_features.text import file_name

__all__ = [
    "NO_LICENCE",
    "NO_SUCH_FILE",
    "PARTIAL_SUFFIX",
    "digests_of",
    "empty",
    "file_names",
    "file_sha256",
    "force_to_disk",
    "is_temporary",
    "local_path",
    "make_folder",
    "naming",
    "open_binary",
    "refuse_existing",
    "remove_tree",
    "sha256_of",
    "sync",
    "sync_all",
    "sync_tree",
    "whole_file",
    "whole_folder",
    "write_all",
    "write_new",
    "write_together",
    "write_whole",
]


PARTIAL_SUFFIX: Final = ".partial"
"""Suffix of unfinished files and folders, which may be removed once their writer has ended."""

NO_LICENCE: Final = "NOASSERTION"
"""SPDX's value for an unstated licence, in all records."""

NO_SUCH_FILE: Final = "there is no such file"
"""Reason of a failed clip whose video is absent, or not visible from this machine."""

SYNC_THREADS = 16
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux, for renameat2
QUERY_LIMITED = 0x1000  # of Windows, for OpenProcess


# --- one file, one folder
# ---------------------------------------------------------------------------
@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield the path of a new file to write; it replaces `path` if the block succeeds.

    Whatever happens, the old or the new file is at `path`, whole and forced to the disk.

    Raises
    ------
    OSError
        Naming `path`.
    """
    if path == STANDARD:
        with tempfile.TemporaryDirectory() as folder:
            yield (partial := Path(folder, "out"))
            sys.stdout.flush()
            sys.stdout.buffer.write(partial.read_bytes())
            sys.stdout.buffer.flush()
        return
    partial = _temporary(path, "partial")
    try:
        partial.unlink(missing_ok=True)
        yield partial
        with suppress(FileNotFoundError, PermissionError):  # who may read the old one may read the new one
            shutil.copymode(path, partial)
        sync(partial)
        partial.replace(path)
    except OSError as error:
        if error.filename in (None, str(partial)):
            error.filename, error.filename2 = str(path), None  # the name that users know
        raise
    finally:
        with suppress(OSError):
            partial.unlink()
    sync(path.parent)


def write_whole(path: Path, data: bytes | str) -> None:
    """Write or replace a file atomically.

    Parameters
    ----------
    data
        Bytes, or text that is written as UTF-8 with its line ends as they are.

    Raises
    ------
    OSError
        Naming `path`.
    """
    with whole_file(path) as partial:
        write_new(partial, data.encode() if isinstance(data, str) else data)


def write_together(files: Mapping[Path, bytes]) -> None:
    """Write or replace files, each atomically and in their order; none is replaced before all are written.

    Raises
    ------
    OSError
        Naming the file.
    """
    with ExitStack() as stack:
        # Contexts are left, and files replaced, in reverse order.
        partials = {path: stack.enter_context(whole_file(path)) for path in reversed(list(files))}
        for path, data in files.items():
            write_new(partials[path], data)
            sync(partials[path])


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder to write into; it replaces `folder` if the block succeeds.

    Raises
    ------
    OSError
        Naming `folder`, which is then as it was.
    """
    folder = folder.absolute()
    make_folder(folder.parent)
    partial, old = _temporary(folder, "partial"), _temporary(folder, "old")
    remove_tree(partial, ignore_errors=True)
    try:
        partial.mkdir()
        yield partial
        sync_tree(partial)
        if not folder.exists():
            partial.replace(folder)
        elif not _exchange(partial, folder):
            folder.replace(old)
            try:
                partial.replace(folder)
            except OSError:
                old.replace(folder)
                raise
        sync(folder.parent)  # before the old one is removed: the removal may reach the disk first
    except OSError as error:
        if error.filename is None or Path(error.filename).is_relative_to(partial):
            error.filename, error.filename2 = str(folder), None  # the name that users know
        raise
    finally:
        remove_tree(partial, ignore_errors=True)
        if folder.exists():
            remove_tree(old, ignore_errors=True)


def _exchange(path: Path, other: Path) -> bool:
    """Exchange two names in one step; return False where the system or the file system cannot."""
    if sys.platform != "linux":
        return False
    with suppress(AttributeError):  # a C library older than glibc 2.28
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        if rename(AT_FDCWD, os.fsencode(path), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0:
            return True
        if ctypes.get_errno() not in {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(other))
    return False


def _temporary(path: Path, state: str) -> Path:
    """Return the name beside a path under which this process prepares what replaces it."""
    if path.parent not in _SWEPT:  # once a process: a folder may have as many files as there are clips
        _SWEPT.add(path.parent)
        with suppress(OSError):
            _sweep(path.parent)
    return path.with_name(f".{path.name}.{_HOST}.{os.getpid()}.{state}")


_TEMPORARY = re.compile(r"\.(.+)\.([0-9a-f]{8})\.(\d+)\.(partial|old)", re.DOTALL)
_HOST = f"{zlib.crc32(platform.node().encode()):08x}"
_SWEPT: set[Path] = set()


def is_temporary(path: Path) -> bool:
    """Return whether a file or folder has a name under which a process prepares another, or did."""
    return _TEMPORARY.fullmatch(path.name) is not None


def _sweep(folder: Path) -> None:
    """Remove what processes of this machine left that have ended; put back what one had moved away."""
    for node in list(folder.iterdir()):
        if (match := _TEMPORARY.fullmatch(node.name)) and match[2] == _HOST and not _runs(int(match[3])):
            if match[4] == "old" and not (target := folder / match[1]).exists():
                node.replace(target)
            elif node.is_dir() and not node.is_symlink():
                remove_tree(node, ignore_errors=True)
            else:
                node.unlink(missing_ok=True)


def _runs(pid: int) -> bool:
    if sys.platform == "win32":  # where os.kill would send Ctrl-C
        if handle := ctypes.windll.kernel32.OpenProcess(QUERY_LIMITED, False, pid):
            ctypes.windll.kernel32.CloseHandle(handle)
        return bool(handle)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        pass
    return True


def make_folder(folder: Path) -> None:
    """Create a folder and those above it that are missing, and force their names to the disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def remove_tree(folder: Path, *, ignore_errors: bool = False) -> None:
    """Remove a folder with all that is in it; without errors, as far as possible.

    Raises
    ------
    OSError
        Naming `folder`; `shutil.rmtree` names only the last part of a path, and lets some errors escape.
    """
    try:
        shutil.rmtree(folder)
    except OSError as error:
        if ignore_errors:
            with suppress(OSError):
                shutil.rmtree(folder, ignore_errors=True)
            return
        error.filename, error.filename2 = str(folder), None
        raise


def empty(folder: Path) -> None:
    """Remove everything in a folder, such as the remains of a killed process."""
    for node in folder.iterdir():
        if node.is_dir():
            remove_tree(node)
        else:
            node.unlink()


def local_path(path: Path | str) -> Path:
    """Return a path that a user gave, as text or not, with a ``~`` at its beginning replaced."""
    # Not Path.expanduser, which raises where there is no such user.
    return Path(os.path.expanduser(path))  # noqa: PTH111


def refuse_existing(*paths: Path | None, force: bool = False) -> None:
    """Refuse, before work is done, to overwrite unless forced, and what can't be written; None is no file.

    Raises
    ------
    OutputError
        Naming the first that exists.
    OSError
        Naming the first whose folder can't be written.
    """
    for path in filter(None, paths):
        if path.exists() and not force:
            raise OutputError(f"{path} exists already: give --force to replace it, or choose another name")
        try:
            TemporaryFile(dir=next(filter(Path.exists, path.absolute().parents))).close()
        except OSError as error:
            error.filename = str(path)
            raise


def file_names(texts: Iterable[str]) -> dict[str, str]:
    """Map texts to names of files that differ also where case does not count.

    Raises
    ------
    OutputError
        Two texts would have one name.
    """
    names: dict[str, str] = {}
    first: dict[str, str] = {}
    for text in texts:
        names[text] = file_name(text)
        other = first.setdefault(names[text].casefold(), text)
        if other != text:
            raise OutputError(f"{other!r} and {text!r} would both be called {names[text]!r}: rename one")
    return names


# --- digests
# ---------------------------------------------------------------------------
def sha256_of(data: bytes | memoryview) -> str:
    """Return the SHA-256 of bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, as 64 hexadecimal digits."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return name -> SHA-256 of files of a folder; names are relative, with '/'."""
    return {name: file_sha256(folder / name) for name in names}


# --- steps of such writes
# ---------------------------------------------------------------------------
@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file's name to an OSError that has none (such as a full disk while writing)."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet; one that could not be finished is removed."""
    with naming(path):
        descriptor = open_binary(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            try:
                write_all(descriptor, data)
            finally:
                os.close(descriptor)
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise


def open_binary(path: Path | str, flags: int) -> int:
    """Open a file as `os.open` does, without waiting; on Windows too, line ends stay as they are."""
    return os.open(path, flags | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0), 0o644)


def force_to_disk(descriptor: int) -> None:
    """Force an open file to the disk; fsync of macOS stops at the drive's cache."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - not on Windows

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError as error:  # of shares: their server has the drive
            if error.errno not in {errno.ENOTSUP, errno.EINVAL}:
                raise
        else:
            return
    os.fsync(descriptor)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write every byte, however many calls the system needs."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync(path: Path) -> None:
    """Force a file, or a folder's entries (new names, renames), to the disk."""
    windows = sys.platform == "win32"
    if windows and path.is_dir():
        return  # NTFS keeps a journal of names, and no folder can be opened
    with naming(path):
        descriptor = open_binary(path, os.O_RDWR if windows else os.O_RDONLY)
        try:
            force_to_disk(descriptor)
        finally:
            os.close(descriptor)


def sync_all(paths: Iterable[Path]) -> None:
    """Flush many files to disk together, which file systems combine.

    [A clip's three files on ext4: 9-15 ms one after another, 0.6-2 ms among 48 at once.] No thread outlives
    the call, so that the process may fork.
    """
    with ThreadPoolExecutor(SYNC_THREADS) as threads:
        for _ in threads.map(sync, paths):
            pass


def sync_tree(root: Path) -> None:
    """Force every file and folder below a root to the disk, files first."""
    folders = []
    files = []
    for folder, _, names in os.walk(root, topdown=False):
        folders.append(Path(folder))
        files += [Path(folder, name) for name in names]
    sync_all(files)
    sync_all(folders)
