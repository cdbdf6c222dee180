"""Estimate the disk space of a stage and its store."""

import ctypes
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from obygaze_features.io import PARTIAL_SUFFIX
from obygaze_features.lines import json_bytes
from obygaze_features.store.format import PIECE_ROWS
from obygaze_features.store.journal import SHA256_HEX
from obygaze_features.store.pieces import StageLayout, StoredArray
from obygaze_features.store.records import GroupSpec, PlannedClip

PAGE = 4096
"""Block size in bytes in which file systems allocate space."""
_METADATA = 4200
"""Bytes of an array's metadata in a store, which has three copies of it, and in its list of digests."""
_CLIP = 300
"""Bytes of a clip in the plan and in a line of the journal; half as many in the table of a store."""

_NOT_OFFERED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINTR)
"""Errors of a file system that cannot reserve space."""


@dataclass(frozen=True)
class DiskEstimate:
    """Disk space of a stage and its store.

    Attributes
    ----------
    stage_bytes, store_bytes
        Size of the stage when every clip is done, and of the sealed store.
    peak_bytes
        Size of both together; shards that the store shares with the stage count once.
    stage_files, store_files
        Number of files of each.
    links
        Whether the file system has hard links; without them, shards are copied.
    """

    stage_bytes: int
    store_bytes: int
    peak_bytes: int
    stage_files: int
    store_files: int
    links: bool

    @property
    def files(self) -> int:
        """Number of files of both."""
        return self.stage_files + self.store_files


def estimate_disk(
    clips: Sequence[PlannedClip], groups: Sequence[GroupSpec], *, links: bool = True
) -> DiskEstimate:
    """Estimate the disk space of a stage in which all these clips are ok, and of its sealed store.

    Parameters
    ----------
    links
        Whether the file system has hard links; without them, shards are copied.
    """
    layout = StageLayout(sorted(groups, key=lambda group: group.name), len(clips))
    ragged = _ragged_bytes(layout, groups, clips)

    def sizes_on_disk(arrays: Sequence[StoredArray]) -> list[int]:
        """Round the sizes of all blocks of arrays up to whole pages."""
        return [-(-size // PAGE) * PAGE for array in arrays for _, size in array.blocks()]

    shards = sizes_on_disk(layout.shards)
    chunks = sizes_on_disk(layout.small)
    texts = sum(len(f"{clip.clip_id}{clip.text or ''}".encode()) for clip in clips)
    digests = len(clips) * len(layout.names) * SHA256_HEX
    about = len(json_bytes([dict(group.provenance) for group in groups]))
    record = PIECE_ROWS * layout.record_bytes
    rows = layout.n_pieces * -(-record // PAGE) * PAGE
    stage = sum(shards) + rows + ragged + len(clips) * _CLIP + 2 * texts + digests + about
    listed = len(layout.names) + 3 * len(groups)  # arrays, with ids, statuses and groups
    # Each group with its clips and statuses; the root and the files of the bag.
    files = len(shards) + len(chunks) + len(layout.names) + 5 * len(groups) + 8
    table = len(clips) * _CLIP // 2 + texts + digests
    store = sum(shards) + sum(chunks) + ragged + table + listed * (_METADATA + PAGE) + 3 * about
    peak = stage + store - (sum(shards) if links else 0)
    return DiskEstimate(stage, store, peak, layout.n_pieces * (1 + len(layout.shards)) + 3, files, links)


UNKNOWN_S = 60.0
"""Length in seconds that a clip is taken for, if those of all clips are unknown."""


def _ragged_bytes(layout: StageLayout, groups: Sequence[GroupSpec], clips: Sequence[PlannedClip]) -> int:
    """Estimate the bytes of frames of any number, from the lengths of spans and the rate of each group.

    A clip without a span is taken to be as long as those with one.
    """
    lengths = [
        clip.end_s - clip.start_s for clip in clips if clip.start_s is not None and clip.end_s is not None
    ]
    length_s = sum(lengths) / len(lengths) if lengths else UNKNOWN_S
    sampling = {group.name: group.provenance["sampling"] for group in groups}
    total = 0.0
    for group in layout.ragged:
        record = sampling[group.name]
        rate = record.get("rate") if isinstance(record, dict) else None
        if isinstance(rate, int | float):
            total += len(clips) * max(1.0, length_s * rate) * group.frame_bytes
    return int(total)


@dataclass(frozen=True)
class FreeSpace:
    """Free bytes and files of a disk (files: None if the file system does not count them)."""

    bytes: int
    files: int | None


def free_space(path: Path) -> FreeSpace:
    """Return the free space of the disk of an existing or future file or folder."""
    folder = existing_folder(path)
    files = None
    if hasattr(os, "statvfs") and (disk := os.statvfs(folder)).f_files:  # not on Windows
        files = disk.f_favail
    return FreeSpace(shutil.disk_usage(folder).free, files)


def existing_folder(path: Path) -> Path:
    """Return an existing or future file or folder, or the nearest folder above it that exists."""
    path = path.absolute()
    return next(filter(os.path.lexists, (path, *path.parents)))


def links_work(folder: Path) -> bool:
    """Return whether the file system of a folder has hard links."""
    probe = folder / f".link.{os.getpid()}{PARTIAL_SUFFIX}"
    linked = probe.with_name(f"{probe.name}.too")
    try:
        probe.touch()
        os.link(probe, linked)
    except OSError:
        return False
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)
            linked.unlink(missing_ok=True)
    return True


def refused_reservation(folder: Path, size: int) -> OSError | None:
    """Try to reserve space as a quota would count it; return why the system refused, None if it did not.

    The file has no name, nothing is written to it, and it is gone at once. None also where space cannot be
    reserved without writing it: outside of Linux, and on file systems such as ZFS.

    Parameters
    ----------
    folder
        Folder of the disk.
    size
        In bytes.

    Raises
    ------
    OSError
        If no file can be made there.
    """
    if sys.platform != "linux" or size < 1:
        return None
    fallocate = ctypes.CDLL(None, use_errno=True).fallocate  # Python's writes where it cannot reserve
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    with tempfile.TemporaryFile(dir=folder) as file:
        if fallocate(file.fileno(), 0, 0, size) == 0:
            return None
        number = ctypes.get_errno()
    if number in _NOT_OFFERED:
        return None
    return OSError(number, os.strerror(number), str(folder))
