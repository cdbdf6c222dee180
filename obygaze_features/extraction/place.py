"""Check the file system of a future store: writing, fsync, locks, space and inodes."""

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from obygaze_features.io import sync
from obygaze_features.locks import NO_LOCKS

GB = 1e9
LEAST_BYTES, LEAST_FILES = 1 * GB, 1_000  # less is too little even for a small corpus
FEW_BYTES, FEW_FILES = 20 * GB, 100_000
SLOW_SYNC_S = 0.05
LOCAL_LOCKS = re.compile(r"(?:^|,)(localflock|nolock|local_lock=(?:all|flock))(?:,|$)")

Level = Literal["ok", "note", "fault"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check.

    Parameters
    ----------
    about
        Subject of the check: `av`, `gpu`, `locks`, ...
    level
        `fault` if an extraction would fail, `note` if it would be slower or less safe.
    text
        One line with the result and the remedy.
    """

    about: str
    level: Level
    text: str


def examine_place(path: Path) -> list[Finding]:
    """Test what a stage needs of a file system: writing, fsync, renaming, locks, space and inodes."""
    folder = path.absolute()
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        return [Finding("path", "fault", f"{folder} is a file, so nothing can be written to {path}")]
    try:
        with tempfile.TemporaryDirectory(prefix=".obygaze-doctor-", dir=folder) as trial:
            kind, options = _mount(folder)
            found = [Finding("path", "ok", f"{folder} can be written to" + (f" ({kind})" if kind else ""))]
            return [*found, *_trial(Path(trial), kind, options), *space(folder)]
    except OSError as error:
        return [Finding("path", "fault", f"{folder} cannot be written to: {error.strerror or error}")]


def _trial(folder: Path, kind: str, options: str) -> Iterator[Finding]:
    for examination in (_fsync, lambda place: _locks(place, kind, options)):
        try:
            yield examination(folder)
        except OSError as error:
            yield Finding("path", "fault", f"a stage cannot be kept there: {error.strerror or error}")


def _fsync(folder: Path) -> Finding:
    started = time.perf_counter()
    partial = folder / "file.partial"
    with partial.open("wb") as file:
        file.write(b"a clip")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / "file")
    sync(folder)
    took = time.perf_counter() - started
    if (folder / "file").read_bytes() != b"a clip":
        return Finding("fsync", "fault", "a file read back is not what was written")
    text = f"a file is forced to the disk and renamed in {1000 * took:.0f} ms"
    return Finding("fsync", "note" if took > SLOW_SYNC_S else "ok", text)


def _locks(folder: Path, kind: str, options: str) -> Finding:
    """Take a lock twice; the second attempt must fail."""
    remedy = "write the stage to a file system that has them, or mount this one with them (Lustre: -o flock)"
    path = folder / "lock"
    path.touch()
    with path.open("rb") as first, path.open("rb") as second:
        try:
            _flock(first.fileno())
        except OSError as error:
            if error.errno in NO_LOCKS:
                return Finding("locks", "fault", f"the file system has no locks ({error.strerror}): {remedy}")
            raise
        try:
            _flock(second.fileno())
        except BlockingIOError:
            if local := LOCAL_LOCKS.search(options):
                return Finding(
                    "locks",
                    "fault",
                    f"{kind} is mounted with {local[1]}: other nodes do not see the locks of this one; "
                    "extract on one node only, or mount it with locks for the cluster",
                )
            return Finding("locks", "ok", "a file can be locked, and a second lock is refused")
        return Finding("locks", "fault", f"two locks on one file were both granted: {remedy}")


def _flock(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _mount(folder: Path) -> tuple[str, str]:
    """Return the type and the options of a folder's file system; empty if /proc does not list them."""
    best = ("", "", "")
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
            _, point, kind, options, *_ = line.split()
            point = point.replace("\\040", " ")
            if len(point) > len(best[0]) and (folder == Path(point) or Path(point) in folder.parents):
                best = (point, kind, options)
    return best[1], best[2]


def space(folder: Path, usage: Callable[[Path], tuple[int, int]] | None = None) -> list[Finding]:
    """Compare free bytes and inodes with what an extraction needs.

    Parameters
    ----------
    usage
        Returns free bytes and free inodes (-1: not counted) of a folder; None queries the file system.
    """
    free, inodes = (usage or _free)(folder)
    levels: list[Level] = [
        "fault" if free < LEAST_BYTES else "note" if free < FEW_BYTES else "ok",
        "fault" if 0 <= inodes < LEAST_FILES else "note" if 0 <= inodes < FEW_FILES else "ok",
    ]
    hint = "; `obygaze extract ... --dry-run` shows what is needed"
    texts = [f"{free / GB:,.1f} GB free", "not counted here" if inodes < 0 else f"{inodes:,} free"]
    return [
        Finding(about, level, text + (hint if level != "ok" else ""))
        for about, level, text in zip(("space", "inodes"), levels, texts, strict=True)
    ]


def _free(folder: Path) -> tuple[int, int]:
    if not hasattr(os, "statvfs"):
        return shutil.disk_usage(folder).free, -1
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize, found.f_favail if found.f_files else -1
