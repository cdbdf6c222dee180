"""Write files so that they survive a kill, a full disk and a power cut; locks, digests, checked lines."""

import errno
import hashlib
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from obygaze_features.errors import OutputError, StoreError
from obygaze_features.text import not_a_formula

PARTIAL_SUFFIX: Final = ".partial"
"""Ends the name of everything that is not finished yet and may be swept once its writer is gone."""

NO_LICENCE: Final = "NOASSERTION"
"""SPDX's word where nobody stated a licence, in every record that is written."""

NO_SUCH_FILE: Final = "there is no such file"
"""Reason of a failed clip whose video is absent, or lies where this machine does not see it."""

SYNC_THREADS = 16


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
    partial = path.with_name(f"{path.name}.{os.getpid()}{PARTIAL_SUFFIX}")
    try:
        partial.unlink(missing_ok=True)
        yield partial
        sync(partial)
        partial.replace(path)
    except OSError as error:
        if error.filename in (None, str(partial)):
            error.filename, error.filename2 = str(path), None  # users know the file by this name
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
        # The last to be entered is the first to be left, and so replaced.
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
    partial, old = (folder.with_name(f".{folder.name}.{os.getpid()}.{state}") for state in ("partial", "old"))
    remove_tree(partial, ignore_errors=True)
    try:
        partial.mkdir()
        yield partial
        sync_tree(partial)
        if folder.exists():
            folder.replace(old)
        try:
            partial.replace(folder)
        except OSError:
            if old.exists():
                old.replace(folder)
            raise
        sync(folder.parent)  # before the old one is removed: the removal may reach the disk first
    except OSError as error:
        if error.filename is None or Path(error.filename).is_relative_to(partial):
            error.filename, error.filename2 = str(folder), None  # users know it by this name
        raise
    finally:
        remove_tree(partial, ignore_errors=True)
        if folder.exists():
            remove_tree(old, ignore_errors=True)


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


def refuse_existing(*paths: Path | None, force: bool = False) -> None:
    """Refuse to overwrite files or folders unless forced; None is no file.

    Raises
    ------
    OutputError
        Naming the first that exists.
    """
    for path in paths:
        if path is not None and path.exists() and not force:
            raise OutputError(f"{path} exists already: give --force to replace it, or choose another name")


def csv_line(cells: Sequence[str]) -> str:
    r"""Write one line of a CSV table, quoting only where needed.

    Written by hand: up to Python 3.12 the csv module leaves a lone carriage return bare, which ends a line.

    Examples
    --------
    >>> csv_line(["tt0108160-003", 'a "quoted", word'])
    'tt0108160-003,"a ""quoted"", word"\n'
    """
    quoted = ('"' + cell.replace('"', '""') + '"' if _QUOTED(cell) else cell for cell in cells)
    return ",".join(quoted) + "\n"


_QUOTED = re.compile(r'[,"\r\n]').search


def sheet_line(cells: Sequence[str]) -> str:
    r"""Write one line of a CSV table for people: no cell is one that a spreadsheet would run.

    Examples
    --------
    >>> sheet_line(["=1+1", "-0.5", "Body"])
    "'=1+1,-0.5,Body\n"
    """
    return csv_line([not_a_formula(cell) for cell in cells])


def json_bytes(document: object) -> bytes:
    """Write a JSON document for people to read, the same bytes every time."""
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


# --- digests
# ---------------------------------------------------------------------------
def sha256_of(data: bytes | memoryview) -> str:
    """Return the SHA-256 of bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- steps of which such writes are made
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
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            write_all(descriptor, data)
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise
        finally:
            os.close(descriptor)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write every byte, however many calls the system needs."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync(path: Path) -> None:
    """Force a file, or a folder's entries (new names, renames), to the disk."""
    with naming(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_name(path: Path) -> None:
    """Force the name of a finished file to the disk.

    Raises
    ------
    OutputError
        Saying that the file itself is whole.
    """
    try:
        sync(path.absolute().parent)
    except OSError as error:
        raise OutputError(
            f"{path}: is whole and in its place, but its folder could not be forced to the disk "
            f"({error.strerror}): only a power cut now could take it away"
        ) from error


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


NODE_GPUS = Path("/proc/driver/nvidia/gpus")  # of NVIDIA's driver: a folder each, whoever may use them


def usable_cores(shards: int = 1) -> int:
    """Count the cores that this process may use; of a Slurm task no more than were asked for.

    Slurm binds tasks to their cores only where its site has set that up.

    Parameters
    ----------
    shards
        Into how many the work is divided. One of several that is given some of the node's GPUs
        (CUDA_VISIBLE_DEVICES) takes the same share of its cores, unless a scheduler gave it cores: the others
        are taken to run beside it.
    """
    there = os.cpu_count() or 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    asked = os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("SLURM_CPUS_ON_NODE") or ""
    if asked.isdecimal():
        return min(cores, int(asked))
    gpus = len(list(NODE_GPUS.iterdir())) if NODE_GPUS.is_dir() else 0
    given = len([each for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each.strip()])
    if shards == 1 or cores < there or not 0 < given < gpus:
        return cores
    return max(cores * given // gpus, cores // shards, 1)


# --- locks
# ---------------------------------------------------------------------------
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


def require_locks(place: Path) -> None:
    """Refuse a place that is not there yet on a file system without locks, before anything is made.

    Raises
    ------
    StoreError
        Naming the folder that the place would be in.
    """
    if place.exists():
        return
    folder = place.absolute().parent
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
                with suppress(OSError):  # made for this lock; what is not empty stays
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


def empty(folder: Path) -> None:
    """Remove everything in a folder, such as the remains of a killed process."""
    for node in folder.iterdir():
        if node.is_dir():
            remove_tree(node)
        else:
            node.unlink()


# --- JSON lines with a checksum
# ---------------------------------------------------------------------------
_HEAD, _MIDDLE, _TAIL = b'{"crc32":"', b'","entry":', b"}"


def encode_line(entry: Mapping[str, object]) -> bytes:
    """Write one entry as one line: `{"crc32":"<8 hex digits>","entry":{...}}`."""
    text = json.dumps(
        entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()
    return b"%b%08x%b%b%b\n" % (_HEAD, zlib.crc32(text), _MIDDLE, text, _TAIL)


def checked_entry(line: bytes) -> bytes | None:
    """Return the JSON of an entry, of a line without its line break; None if a single bit of it is wrong."""
    start = len(_HEAD) + 8
    text = line[start + len(_MIDDLE) : -len(_TAIL)]
    return text if line == b"%b%08x%b%b%b" % (_HEAD, zlib.crc32(text), _MIDDLE, text, _TAIL) else None


def decode_line(line: bytes) -> dict[str, object] | None:
    """Read one line without its line break; None if a single bit of it is wrong."""
    text = checked_entry(line)
    if text is None:
        return None
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, object] | None]]:
    """Yield (line number from 1, entry or None if damaged); a torn last line is taken as never written."""
    *lines, last = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        yield number, decode_line(line)
    if last and (entry := decode_line(last)) is not None:
        yield len(lines) + 1, entry
