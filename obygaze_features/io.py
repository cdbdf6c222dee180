"""Write files and folders so that they survive a kill, a full disk and a power cut; digests of files."""

import ctypes
import errno
import hashlib
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from obygaze_features.errors import ObygazeError, OutputError
from obygaze_features.text import file_name, is_address, normalised
from obygaze_features.untrusted import STANDARD, open_regular

PARTIAL_SUFFIX: Final = ".partial"
"""Suffix of unfinished files and folders, which may be removed once their writer has ended."""

NO_LICENCE: Final = "NOASSERTION"
"""SPDX's value for an unstated licence, in all records."""

NO_SUCH_FILE: Final = "there is no such file"
"""Reason of a failed clip whose video is absent, or not visible from this machine."""

SYNC_THREADS = 16
AT_FDCWD, RENAME_NOREPLACE, RENAME_EXCHANGE = -100, 1, 2  # of Linux, for renameat2


# --- one file, one folder
# ---------------------------------------------------------------------------
@contextmanager
def whole_file(path: Path, *, once: bool = False, links: bool = True) -> Iterator[Path]:
    """Yield the path of a temporary file to write, which replaces `path` if the `with` block succeeds.

    So at any time, also after a crash, `path` is either the old or the new file, complete and on the disk.
    The new file has the mode and group of the old one.

    Parameters
    ----------
    path
        The file to write; standard output if it is `STANDARD`.
    once
        Whether to replace nothing: if there is a file at `path` in the end, a FileExistsError is raised.
    links
        Whether, if `path` is a symbolic link, the file that it points to is replaced. In untrusted folders it
        should not be; there the link itself is replaced.

    Raises
    ------
    OSError
        Naming `path`.
    """
    if path == STANDARD:
        with _file_for_standard_output() as file_to_copy:
            yield file_to_copy
        return
    target = path  # the file to replace
    if links and path.is_symlink() and path.is_file():
        target = Path(os.path.realpath(path))

    temporary: Path | None = None
    try:
        with _temporary(target) as temporary:
            yield temporary
            sync(temporary)
            if once:
                _rename_to_new(temporary, target)
            else:
                temporary.replace(target)
    except OSError as error:
        # The user knows this file as `path`; errors about other files keep their names.
        is_of_this_file = error.filename in (None, str(temporary), str(target))
        if is_of_this_file:
            _set_file_of_error(error, path)
        raise
    finally:
        if temporary is not None:
            with suppress(OSError):  # there is no file of this name if all went well, as it was renamed
                temporary.unlink()
    sync(target.parent)


@contextmanager
def _file_for_standard_output() -> Iterator[Path]:
    """Yield the path of a temporary file to write, which is copied to standard output after the block."""
    with tempfile.TemporaryDirectory() as folder:
        partial = Path(folder, "out")
        yield partial
        sys.stdout.flush()
        sys.stdout.buffer.write(partial.read_bytes())
        sys.stdout.buffer.flush()


def _rename_to_new(path: Path, target: Path) -> None:
    """Rename a file to a name that no file has; raise a FileExistsError if one has it."""
    if _rename(path, target, RENAME_NOREPLACE):
        return
    # The system cannot check and rename in one step. Between these two steps another process could create
    # the target, which would then be replaced.
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    path.rename(target)


def _set_file_of_error(error: OSError, path: Path) -> None:
    """Make an error name the file that the user knows, and not a temporary one."""
    error.filename, error.filename2 = str(path), None


def write_whole(path: Path, data: bytes | str, *, links: bool = True) -> None:
    """Write or replace a file atomically.

    Parameters
    ----------
    data
        Bytes; or text, which is written as UTF-8 with its line ends unchanged.
    links
        As for `whole_file`.

    Raises
    ------
    OSError
        Naming `path`.
    """
    content = data.encode() if isinstance(data, str) else data
    with whole_file(path, links=links) as partial:
        _fill(partial, content)


def _fill(path: Path, data: bytes, mode: str = "wb") -> None:
    """Write bytes to a file; an OSError names the file.

    Parameters
    ----------
    path
        The file.
    data
        The bytes.
    mode
        As for `open`: "wb" replaces a file that exists, and "xb" refuses it.
    """
    with naming(path), path.open(mode, buffering=0) as file:
        write_all(file.fileno(), data)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet; if this fails in the middle, the part that was written stays.

    It is meant for files in a temporary folder, which is removed as a whole (`whole_folder`).
    """
    _fill(path, data, "xb")


def write_once(path: Path, data: bytes) -> None:
    """Write a new file atomically.

    Raises
    ------
    FileExistsError
        The file exists, also if another process has just created it.
    """
    with whole_file(path, once=True) as partial:
        _fill(partial, data)


def write_together(files: Mapping[Path, bytes]) -> None:
    """Write or replace files, each atomically and in their order; none is replaced before all are written.

    Raises
    ------
    OSError
        Naming the file.
    """
    with ExitStack() as stack:
        # Contexts are left in reverse order. They are entered in reverse order, so that they are left, and
        # files replaced, in the order of `files`.
        temporaries = {path: stack.enter_context(whole_file(path)) for path in reversed(list(files))}
        for path, data in files.items():
            _fill(temporaries[path], data)
            sync(temporaries[path])


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty temporary folder to write into, which replaces `folder` if the `with` block succeeds.

    Raises
    ------
    OSError
        Naming `folder`, which is then unchanged.
    """
    folder = Path(os.path.realpath(folder)) if folder.is_symlink() else folder.absolute()
    make_folder(folder.parent)
    temporary: Path | None = None
    left_over: Path | None = None  # what is removed in the end
    try:
        with _temporary(folder, is_folder=True) as temporary:
            left_over = temporary  # if the folder is not finished
            yield temporary
            sync_tree(temporary)
            left_over = _put_in_place(temporary, folder)  # the old folder, or None if there was none
            # The new names go to the disk before the old folder is removed. Else its removal might get there
            # first, and a power cut in between would leave neither folder.
            sync(folder.parent)
    except OSError as error:
        # The user knows the folder, and not the temporary one; errors about other files keep their names.
        is_of_temporary = temporary is not None and Path(error.filename or "").is_relative_to(temporary)
        if error.filename is None or is_of_temporary:
            _set_file_of_error(error, folder)
        raise
    finally:
        if left_over is not None:
            remove_tree(left_over, ignore_errors=True)


def _put_in_place(temporary: Path, folder: Path) -> Path | None:
    """Give a temporary folder its final name; return where the old folder of that name is now, None if none.

    On Linux the two folders exchange their names at once. Elsewhere the old folder is first renamed, to the
    temporary name with the suffix .old. If this process is killed in between, the next process that calls
    `_sweep` renames the old folder back.
    """
    if not folder.exists():
        temporary.replace(folder)
        return None
    if _rename(temporary, folder, RENAME_EXCHANGE):
        return temporary
    with _locked_node(folder):  # so that no other process renames the old folder back meanwhile
        old = temporary.with_suffix(".old")
        folder.replace(old)
        try:
            temporary.replace(folder)
        except OSError:
            old.replace(folder)
            raise
        return old


def _rename(path: Path, other: Path, flag: int) -> bool:
    """Rename a file to a new name, or exchange two files, atomically by a system call of Linux.

    Returns False, and changes nothing, if the system or the file system does not support this. With
    RENAME_NOREPLACE, a FileExistsError is raised if `other` exists.
    """
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:  # a C library older than glibc 2.28
        return False
    if rename(AT_FDCWD, os.fsencode(path), AT_FDCWD, os.fsencode(other), flag) == 0:
        return True
    number = ctypes.get_errno()
    is_unsupported = number in {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}
    if not is_unsupported:
        raise OSError(number, os.strerror(number), str(other))
    return False


_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{12}\.(partial|old)", re.DOTALL)
_SWEPT: set[Path] = set()


@contextmanager
def _temporary(path: Path, *, is_folder: bool = False) -> Iterator[Path]:
    """Create a temporary file or folder beside a path, which is to replace what is at the path; yield it.

    It gets the mode and group of what is at the path. It is locked within the `with` block, so that other
    processes see that it is in use. Remains of killed processes in the same folder are removed first.
    """
    _sweep_once(path.parent)
    with ExitStack() as locks:
        node = _create_temporary(path, is_folder)
        # Between its creation and its lock, another process that removes remains may take it for one, and
        # remove it. Then another is created.
        while not _lock_if_there(node, locks):
            node = _create_temporary(path, is_folder)
        yield node


def _create_temporary(path: Path, is_folder: bool) -> Path:
    """Create the temporary file or folder of `_temporary`, and return it.

    Its name is random, because processes in two containers may have the same number and host name.
    """
    node = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
    if is_folder:
        node.mkdir()
    else:
        mode_of_new_file = 0o666  # as `open` does; the umask takes away from it
        only_for_owner = 0o600  # nobody else may read it before it has the old file's mode
        mode = only_for_owner if path.exists() else mode_of_new_file
        os.close(os.open(node, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    # Group and mode of what is at the path, if there is something, and if the system allows it.
    with suppress(OSError, AttributeError):  # Windows has no groups
        status = path.stat()
        os.chown(node, -1, status.st_gid)
    with suppress(OSError):
        shutil.copymode(path, node)
    return node


def _lock_if_there(node: Path, locks: ExitStack) -> bool:
    """Lock a new temporary file or folder until `locks` is closed; return whether it is still there.

    Before it is locked, another process or thread that sweeps the folder may take it for the remains of a
    killed process, and remove it.

    Parameters
    ----------
    node
        The file or folder.
    locks
        Closes what is opened here when it is closed itself, which ends the lock.
    """
    if sys.platform == "win32":  # nothing is locked, and nothing swept that is in use
        return True
    import fcntl  # noqa: PLC0415 - not on Windows

    try:
        descriptor = open_binary(node, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    locks.callback(close_naming, descriptor, node)
    # Wait for whoever is about to remove it. Where the file system has no locks, nobody sweeps.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return node.exists()


def _sweep_once(folder: Path) -> None:
    """Remove the remains of killed processes in a folder, once in the life of this process.

    Once is enough, and a folder may have as many files as there are clips.
    """
    if folder in _SWEPT:
        return
    _SWEPT.add(folder)
    with suppress(OSError):
        _sweep(folder)


@contextmanager
def _locked_node(node: Path) -> Iterator[bool]:
    """Lock a file or folder within a `with` block; yield whether it could be locked.

    On Windows nothing is locked. A file counts as locked by the caller, because the system itself refuses to
    remove or rename a file that another process has open. A folder cannot be opened there, so that its user
    is not known, and it counts as in use.
    """
    if sys.platform == "win32":
        yield not node.is_dir()
        return
    import fcntl  # noqa: PLC0415 - not on Windows

    descriptor = open_binary(node, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = True
        except OSError:  # another process has the lock, or the file system has no locks
            is_locked = False
        yield is_locked
    finally:
        close_naming(descriptor, node)


def is_temporary(path: Path) -> bool:
    """Return whether a file or folder has the name of a temporary one, which is to replace another.

    The process that made it may be running, or may have been killed.
    """
    return _TEMPORARY.fullmatch(path.name) is not None


def _sweep(folder: Path) -> None:
    """Remove the temporary files and folders in a folder whose process has ended.

    If such a process had moved an old folder away to replace it, and had not finished, the old folder is put
    back. Temporary files of running processes are locked, and are left alone.
    """
    for node in list(folder.iterdir()):
        match = _TEMPORARY.fullmatch(node.name)
        if match is None:
            continue
        with suppress(OSError), _locked_node(node) as is_locked:
            if not is_locked:  # its process is running
                continue
            name, suffix = match.groups()
            target = folder / name
            if suffix == "old" and not target.exists():
                node.replace(target)
            elif node.is_dir():
                remove_tree(node, ignore_errors=True)
            else:
                node.unlink(missing_ok=True)


def refuse_taken(
    folder: Path,
    there: Collection[str],
    foreign: Collection[str],
    description: str,
    *,
    force: bool,
    error: type[ObygazeError] = OutputError,
) -> None:
    """Raise an error unless a folder is new, or holds only earlier output that may be replaced.

    Parameters
    ----------
    folder
        The folder.
    there
        Names of files of earlier output in it.
    foreign
        Names of other files in it.
    description
        What is to be written, as in "a run".
    force
        Whether earlier output may be replaced.
    error
        The error to raise.
    """
    if folder.exists() and not folder.is_dir():
        raise error(f"{folder} is a file: {description} needs a folder of its own")
    if foreign:
        raise error(
            f"{folder} holds what is not {description} ({min(foreign)}): choose another folder with --out"
        )
    if there and not force:
        raise error(
            f"{folder} holds {description} already: give --force to replace it, or another folder with --out"
        )


def make_folder(folder: Path) -> None:
    """Create a folder, and missing folders above it, and flush their names to the disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def remove_tree(folder: Path, *, ignore_errors: bool = False) -> None:
    """Remove a folder with all that is in it.

    With `ignore_errors`, as much as possible is removed, and no error is raised.

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
        _set_file_of_error(error, folder)
        raise


def walk(folder: Path, *, topdown: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """Go through a folder and all folders below it like `os.walk`, which passes over what it can't list.

    Of each folder its path, the names of the folders in it and those of its files are yielded; nothing if
    there is no such folder. Path.rglob passes over such folders too.

    Raises
    ------
    OSError
        A folder can't be listed; the error names it.
    """
    return os.walk(folder, topdown, onerror=_raise_unless_missing)


def _raise_unless_missing(error: OSError) -> None:
    """Raise the error of a folder that can't be listed, but not of one that is not there."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def files_below(folder: Path) -> list[Path]:
    """List the files in a folder and all folders below it, sorted; errors are those of `walk`."""
    return sorted(Path(path, name) for path, _, names in walk(folder) for name in names)


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


def local_folder(path: Path | str) -> Path:
    """Return the path of a folder to write to, as `local_path` does, but refuse an address.

    A folder would be made that is called like the address: `gs:`, for gs://bucket/films.
    """
    if is_address(path):
        raise OutputError(
            f"{path}: expected a folder on this machine; only push writes elsewhere, to s3://BUCKET/NAME or "
            "hf://datasets/OWNER/NAME"
        )
    return local_path(path)


def store_path(path: Path | str) -> Path:
    """Return the path of a store to be made; refuse an address, and what does not end in a name (`..`)."""
    expanded = local_folder(path)
    if expanded.name in {"", ".."}:
        raise OutputError(f"{path}: expected the name of a store, a folder beside which others can be made")
    return expanded


def in_any_form(folder: Path, inside: str) -> Path:
    """Return the path of a file below a folder, in the Unicode form in which its name is stored there.

    macOS and some archives store accents decomposed (NFD), while manifests have them composed (NFC). A part
    of the path that does not exist is kept as it is.

    Parameters
    ----------
    folder
        The folder.
    inside
        Path of the file, relative to the folder.
    """
    if inside.isascii():
        return folder / inside
    path = folder
    for name in Path(inside).parts:
        stored_name = name
        for form in (name, normalised("NFC", name), normalised("NFD", name)):
            if os.path.lexists(path / form):
                stored_name = form
                break
        path /= stored_name
    return path


def refuse_existing(*paths: Path | None, force: bool = False) -> None:
    """Check, before any work is done, that files can be written.

    Parameters
    ----------
    paths
        The files; None stands for a file that is not wanted, and is skipped.
    force
        Whether files that exist may be replaced.

    Raises
    ------
    OutputError
        Naming the first that exists, unless `force` is set.
    OSError
        Naming the first whose folder can't be written.
    """
    for path in paths:
        if path is None:
            continue
        if path.exists() and not force:
            raise OutputError(f"{path} exists already: give --force to replace it, or choose another name")
        # Folders that do not exist yet are made later, in this one.
        nearest_folder = next(folder for folder in path.absolute().parents if folder.exists())
        try:
            TemporaryFile(dir=nearest_folder).close()
        except OSError as error:
            error.filename = str(path)
            raise


def file_names(texts: Iterable[str]) -> dict[str, str]:
    """Return text -> a valid file name made from it; names are distinct even if a file system ignores case.

    Raises
    ------
    OutputError
        Two texts would have one name.
    """
    name_of_text: dict[str, str] = {}
    text_of_name: dict[str, str] = {}  # name in small letters -> the first text that has it
    for text in texts:
        name = file_name(text)
        name_of_text[text] = name
        first_text = text_of_name.setdefault(name.casefold(), text)
        if first_text != text:
            raise OutputError(f"{first_text!r} and {text!r} would both be called {name!r}: rename one")
    return name_of_text


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
    """Add a file's path to an OSError of the `with` block that names no file, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def close_naming(descriptor: int, path: Path) -> None:
    """Close a file or folder as `os.close` does; an error, which some disks report only then, names it."""
    with naming(path):
        os.close(descriptor)


def open_binary(path: Path | str, flags: int) -> int:
    """Open a file as `os.open` does, without waiting; on Windows too, line ends stay as they are."""
    # Each system has only some of these flags.
    binary = getattr(os, "O_BINARY", 0)  # Windows would convert line ends
    without_waiting = getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait until somebody writes to it
    mode_of_new_file = 0o644
    return os.open(path, flags | binary | without_waiting, mode_of_new_file)


def force_to_disk(descriptor: int) -> None:
    """Flush an open file to the disk.

    On macOS this takes F_FULLFSYNC, because fsync leaves data in the drive's cache. File systems that do not
    support it, such as network shares, get fsync.
    """
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - not on Windows

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError as error:
            is_unsupported = error.errno in {errno.ENOTSUP, errno.EINVAL}
            if not is_unsupported:  # the flush itself failed
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
    """Flush a file, or the entries of a folder (after files were created or renamed), to the disk."""
    is_windows = sys.platform == "win32"
    if is_windows and path.is_dir():
        return  # NTFS keeps a journal of names, and no folder can be opened
    access = os.O_RDWR if is_windows else os.O_RDONLY  # Windows flushes only what may be written
    with naming(path):
        descriptor = open_binary(path, access)
        try:
            force_to_disk(descriptor)
        finally:
            os.close(descriptor)


def sync_all(paths: Iterable[Path]) -> None:
    """Flush many files and folders to the disk concurrently, because file systems combine such flushes.

    On ext4, the three files of a clip take 9-15 ms one after another, and 0.6-2 ms among 48 files at once. No
    thread outlives the call, so that the process may fork.
    """
    with ThreadPoolExecutor(SYNC_THREADS) as threads:
        for _ in threads.map(sync, paths):
            pass


def sync_tree(root: Path) -> None:
    """Flush the root folder, and every file and folder below it, to the disk: the files first."""
    files: list[Path] = []
    folders: list[Path] = []
    for folder, _, names in walk(root, topdown=False):
        folders.append(Path(folder))
        files += [Path(folder, name) for name in names]
    sync_all(files)
    sync_all(folders)
