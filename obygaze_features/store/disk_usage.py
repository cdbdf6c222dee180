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

from obygaze_features.io import PARTIAL_SUFFIX, files_below
from obygaze_features.lines import json_bytes
from obygaze_features.store.format import PIECE_ROWS
from obygaze_features.store.journal import SHA256_HEX
from obygaze_features.store.pieces import StageLayout, StoredArray
from obygaze_features.store.records import GroupSpec, PlannedClip

PAGE = 4096
"""Block size in bytes in which file systems allocate space."""
_METADATA_BYTES = 4200
"""Bytes of an array's metadata in a store, which has three copies of it, and in its list of digests."""
_CLIP_BYTES = 300
"""Bytes of a clip in the plan and in a line of the journal, without its id and text."""
_TABLE_CLIP_BYTES = 150
"""Bytes of a clip in the table of a store, without its id, text and digests."""
_OTHER_NODES_OF_GROUP = 3
"""Zarr nodes (each with a file of metadata) of a group besides its arrays of features and times: the group
itself, its ids and its statuses."""
_COPIES_OF_PROVENANCE = 3
"""Number of times that a store has the provenance of its groups."""
_OTHER_FILES_OF_GROUP = 5
"""Files of a group besides those of its features and times: its metadata; metadata and chunk of ids and of
statuses."""
_OTHER_FILES_OF_STAGE = 3
"""Files of a stage besides those of its pieces: stage.json, the plan and a journal."""
_FILES_OF_ROOT = 8
"""Files of a store besides those of its groups: the root's metadata, the table of clips and the tag files."""

_CANNOT_RESERVE_ERRORS = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINTR)
"""Errors of a file system that cannot reserve space; they say nothing of a quota."""


@dataclass(frozen=True)
class DiskEstimate:
    """Expected disk space of a stage and its store.

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
        """Number of files of the stage and of the sealed store together."""
        return self.stage_files + self.store_files


def estimate_disk(
    clips: Sequence[PlannedClip], groups: Sequence[GroupSpec], *, links: bool = True
) -> DiskEstimate:
    """Estimate the disk space of a stage in which all these clips are ok, and of its sealed store.

    Parameters
    ----------
    clips, groups
        The clips, and the declarations of the groups of features.
    links
        Whether the file system has hard links; without them, shards are copied.
    """
    # What several parts of both are made of.
    layout = StageLayout(sorted(groups, key=lambda group: group.name), len(clips))
    shard_sizes = _sizes_on_disk(layout.sharded_arrays)
    shard_bytes = sum(shard_sizes)
    chunk_sizes = _sizes_on_disk(layout.small_arrays)
    ragged_bytes = _ragged_bytes(layout, groups, clips)
    text_bytes = sum(len(f"{clip.clip_id}{clip.text or ''}".encode()) for clip in clips)
    digest_bytes = len(clips) * len(layout.names) * SHA256_HEX
    provenance_bytes = len(json_bytes([dict(group.provenance) for group in groups]))

    # The stage has shards, rows of the other arrays, the plan and journals.
    rows_bytes = layout.n_pieces * _on_disk(PIECE_ROWS * layout.small_row_bytes)
    plan_and_journal_bytes = len(clips) * _CLIP_BYTES + 2 * text_bytes  # both have the ids and texts
    stage_bytes = (
        shard_bytes + rows_bytes + ragged_bytes + plan_and_journal_bytes + digest_bytes + provenance_bytes
    )

    # The store has shards, chunks, the table of clips, and metadata.
    n_nodes = len(layout.names) + _OTHER_NODES_OF_GROUP * len(groups)
    metadata_bytes = n_nodes * (_METADATA_BYTES + PAGE) + _COPIES_OF_PROVENANCE * provenance_bytes
    table_bytes = len(clips) * _TABLE_CLIP_BYTES + text_bytes + digest_bytes
    store_bytes = shard_bytes + sum(chunk_sizes) + ragged_bytes + table_bytes + metadata_bytes

    # Linked shards take space once, for the stage and the store together.
    shared_bytes = shard_bytes if links else 0

    files_per_piece = 1 + len(layout.sharded_arrays)  # a file of rows, and a shard of each sharded array
    stage_files = layout.n_pieces * files_per_piece + _OTHER_FILES_OF_STAGE
    metadata_files = len(layout.names) + _OTHER_FILES_OF_GROUP * len(groups)
    store_files = len(shard_sizes) + len(chunk_sizes) + metadata_files + _FILES_OF_ROOT
    return DiskEstimate(
        stage_bytes=stage_bytes,
        store_bytes=store_bytes,
        peak_bytes=stage_bytes + store_bytes - shared_bytes,
        stage_files=stage_files,
        store_files=store_files,
        links=links,
    )


def _on_disk(size: int) -> int:
    """Round the size of a file in bytes up to whole blocks of the file system (`PAGE` bytes each)."""
    n_pages = -(-size // PAGE)  # rounds up, exactly for any size
    return n_pages * PAGE


def _sizes_on_disk(arrays: Sequence[StoredArray]) -> list[int]:
    """Return the size on disk of every chunk or shard of some arrays, in bytes."""
    sizes = []
    for array in arrays:
        sizes += [_on_disk(size) for _file, size in array.blocks()]
    return sizes


UNKNOWN_S = 60.0
"""Seconds that each clip is taken to last if the lengths of all clips are unknown."""


def _ragged_bytes(layout: StageLayout, groups: Sequence[GroupSpec], clips: Sequence[PlannedClip]) -> int:
    """Estimate the bytes of the frames of ragged groups, in which each clip has its own number of frames.

    All clips are taken to have the average length; the number of frames of a clip is this length in seconds
    times the group's frames a second, but at least one. A group whose frame rate is not known is not counted.
    """
    group_of_name = {group.name: group for group in groups}
    n_bytes = 0.0
    for group in layout.ragged_groups:
        n_bytes += len(clips) * frames_per_clip(group_of_name[group.name], clips) * group.frame_bytes
    return int(n_bytes)


def frames_per_clip(group: GroupSpec, clips: Sequence[PlannedClip]) -> float:
    """Return the mean number of frames of some clips in a group; of a ragged one, by its frames a second.

    All clips are taken to have their average length. It is 0 if the group's frame rate is not known.
    """
    if not group.ragged:
        return group.n_frames
    sampling = group.provenance["sampling"]  # how frames were chosen
    frames_per_s = sampling.get("rate") if isinstance(sampling, dict) else None
    if not isinstance(frames_per_s, int | float):
        return 0.0
    return max(1.0, _average_length_s(clips) * frames_per_s)


def _average_length_s(clips: Sequence[PlannedClip]) -> float:
    """Return the mean length in seconds of the clips whose start and end are known; else `UNKNOWN_S`."""
    lengths_s = [
        clip.end_s - clip.start_s for clip in clips if clip.start_s is not None and clip.end_s is not None
    ]
    if not lengths_s:
        return UNKNOWN_S
    return sum(lengths_s) / len(lengths_s)


@dataclass(frozen=True)
class FreeSpace:
    """Free bytes and files of a disk (files: None if the file system does not count them)."""

    bytes: int
    files: int | None


def free_space(path: Path) -> FreeSpace:
    """Return the free space of the disk of an existing or future file or folder."""
    folder = existing_folder(path)
    files = None
    if hasattr(os, "statvfs"):  # not on Windows
        disk = os.statvfs(folder)
        counts_files = disk.f_files > 0
        if counts_files:
            files = disk.f_favail
    return FreeSpace(shutil.disk_usage(folder).free, files)


@dataclass(frozen=True)
class DiskRoom:
    """What a stage and its store need of a disk, and what is free there.

    Attributes
    ----------
    needed
        Size of both when every clip is done.
    left_bytes, left_files
        What of that is still to be written: without what the stage has already.
    free
        Free space of the disk.
    """

    needed: DiskEstimate
    left_bytes: int
    left_files: int
    free: FreeSpace

    @property
    def fits(self) -> bool:
        """Whether the disk has room for what is still to be written."""
        bytes_fit = self.left_bytes <= self.free.bytes
        files_fit = self.free.files is None or self.left_files <= self.free.files  # None: no limit
        return bytes_fit and files_fit


def disk_room(stage: Path, clips: Sequence[PlannedClip], groups: Sequence[GroupSpec]) -> DiskRoom:
    """Compare the disk space that a stage and its store need with what is free on their disk.

    Parameters
    ----------
    stage
        Folder of the stage, which may not exist yet.
    clips, groups
        All clips of the store, and the declarations of the groups of features.

    Raises
    ------
    OSError
        A folder of the stage can't be listed.
    """
    needed = estimate_disk(clips, groups, links=links_work(existing_folder(stage)))
    written_sizes = []  # none without a stage
    for path in files_below(stage):
        with suppress(FileNotFoundError):  # a task that writes there has removed it since
            written_sizes.append(path.stat().st_size)
    return DiskRoom(
        needed=needed,
        left_bytes=max(needed.peak_bytes - sum(written_sizes), 0),
        left_files=max(needed.files - len(written_sizes), 0),
        free=free_space(stage),
    )


def existing_folder(path: Path) -> Path:
    """Return the path itself if it exists, else the nearest folder above it that exists."""
    folder = path.absolute()
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    return folder


def links_work(folder: Path) -> bool:
    """Return whether hard links can be made in a folder, by making one there; it is removed again."""
    trial_file = folder / f".link.{os.getpid()}{PARTIAL_SUFFIX}"
    trial_link = trial_file.with_name(f"{trial_file.name}.too")
    try:
        trial_file.touch()
        os.link(trial_file, trial_link)
    except OSError:
        return False
    finally:
        with suppress(OSError):
            trial_file.unlink(missing_ok=True)
            trial_link.unlink(missing_ok=True)
    return True


def refused_reservation(folder: Path, size: int) -> OSError | None:
    """Try to reserve disk space, which counts for quotas; return the system's error, or None if it works.

    The file has no name, nothing is written to it, and it is gone at once. Outside of Linux, and on file
    systems such as ZFS, space cannot be reserved without writing it: then None is returned, too.

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

    # The function of the C library, and not os.posix_fallocate, which writes to the file where space cannot
    # be reserved.
    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    with tempfile.TemporaryFile(dir=folder) as file:
        mode = 0  # the file gets this size
        offset = 0
        if fallocate(file.fileno(), mode, offset, size) == 0:
            return None
        number = ctypes.get_errno()

    if number in _CANNOT_RESERVE_ERRORS:
        return None
    return OSError(number, os.strerror(number), str(folder))
