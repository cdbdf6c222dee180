"""Estimate the disk space and files of a stage and its store; refuse a disk that is too small."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from obygaze_features.cores import usable_cores
from obygaze_features.errors import StoreError
from obygaze_features.io import encode_line, json_bytes
from obygaze_features.store.format import ARRAYS, TEXTS
from obygaze_features.store.part_writer import SHORT, stored_arrays, workers_at_once
from obygaze_features.store.records import GroupSpec, PlannedClip, StoredClip, clips_csv_bytes
from obygaze_features.store.stage_files import CRC32C_HEX, SHA256_HEX, JournalEntry, array_names
from obygaze_features.store.writer import may_punch

PAGE = 4096
"""Block size in bytes in which file systems allocate space."""
_METADATA = 1400
"""Bytes of an array's metadata. A store has three copies: in the array, in its group and in the root."""
_CARD = 12_000


@dataclass(frozen=True)
class DiskEstimate:
    """Disk space of a stage and its store.

    Attributes
    ----------
    stage_bytes, store_bytes
        Size of the stage when every clip is done, and of the sealed store.
    peak_bytes
        Largest total size of both at any time while sealing.
    stage_files, store_files
        Number of files of each.
    """

    stage_bytes: int
    store_bytes: int
    peak_bytes: int
    stage_files: int
    store_files: int


def estimate_disk(
    clips: Sequence[PlannedClip], groups: Sequence[GroupSpec], *, n_writers: int = 1, consume: bool = False
) -> DiskEstimate:
    """Compute the disk space of a stage in which all these clips are ok, and of its sealed store.

    Parameters
    ----------
    n_writers
        Number of writers of the stage: processes, or successive runs of one process.
    consume
        Whether sealing frees the stage progressively.
    """
    groups = sorted(groups, key=lambda group: group.name)
    names = array_names(tuple(groups))
    arrays = stored_arrays(groups, names, len(clips))
    row_bytes = sum(array.row_bytes for array in arrays)
    lines = [_line_bytes(row, clip, names) for row, clip in ((0, clips[0]), (len(clips) - 1, clips[-1]))]
    journal = len(clips) * sum(lines) // 2
    plan = sum(len(f"{clip.clip_id}{clip.movie}{clip.text or ''}".encode()) + 110 for clip in clips)
    about = len(json_bytes([dict(group.provenance) for group in groups]))
    stage_files = n_writers * (len(names) + 1) + 3
    stage = len(clips) * row_bytes + journal + plan + about + stage_files * PAGE // 2
    made = [part for array in arrays for part in array.parts()]
    parts = [part.size for part in made]
    texts = any(group.provenance["sampling"]["policy"] == TEXTS for group in groups)  # type: ignore[index]  # checked JSON
    n_arrays = len(names) + len(groups) * (2 + texts)
    small = len(groups) * (2 + texts) * -(-len(clips) // ARRAYS["clip"].chunk)
    table = round(len(clips) * _table_bytes(clips, names))
    others = n_arrays + len(groups) + 1 + small + 7
    listed = 150 * (len(parts) + others)
    metadata = 3 * _METADATA * n_arrays + 3 * about + _CARD
    paged = sum(-(-size // PAGE) * PAGE for size in parts)
    store = paged + table + metadata + listed + others * PAGE // 2
    sealing = len(clips) * len(names) * SHORT + 300 * len(parts)  # parts.jsonl
    held = sum(sorted(parts, reverse=True)[: workers_at_once(made, usable_cores())])
    peak = max(stage + held, store + journal + plan) if consume else stage + store
    peak += sealing
    return DiskEstimate(stage, store, peak, stage_files, len(parts) + others)


def _line_bytes(row: int, clip: PlannedClip, names: tuple[str, ...]) -> int:
    digests = ("f" * SHA256_HEX * len(names), "f" * CRC32C_HEX * len(names))
    source = {"bytes": 10**8, "duration_s": 123.456789}
    entry = JournalEntry(row, clip.clip_id, "ok", "", 1, source, "0001", row, names, *digests)
    return len(encode_line({**entry.record(), "time": "2026-01-01T00:00:00+00:00"}))


def _table_bytes(clips: Sequence[PlannedClip], names: Sequence[str]) -> float:
    tried = clips[:: max(1, len(clips) // 64)]
    source: Mapping[str, object] = {"bytes": 10**8, "duration_s": 123.456789}
    rows = [
        StoredClip(
            clip.clip_id, "ok", "", clip.movie, clip.start_s, clip.end_s, source,
            dict.fromkeys(names, "f" * SHA256_HEX), clip.text,
        )
        for clip in tried
    ]  # fmt: skip
    return len(clips_csv_bytes(rows, names)) / len(rows)


@dataclass(frozen=True)
class FreeSpace:
    """Free bytes and files of a disk (files: None if the file system does not count them)."""

    bytes: int
    files: int | None


def free_space(path: Path) -> FreeSpace:
    """Return the free space of the disk of an existing or future file or folder."""
    nearest = path.absolute()
    while not os.path.lexists(nearest):
        nearest = nearest.parent
    disk = os.statvfs(nearest)
    return FreeSpace(disk.f_bavail * disk.f_frsize, disk.f_favail if disk.f_files else None)


def refuse_small_disk(sizes: Sequence[int], root: Path, stage: Path, workers: int, *, consume: bool) -> None:
    """Refuse to seal parts of these sizes where the disk of `root` has too little free space."""
    needed = sum(sizes)
    if consume and may_punch(stage):
        needed = sum(sorted(sizes, reverse=True)[:workers])
    disk = os.statvfs(root)
    free = disk.f_bavail * disk.f_frsize
    if disk.f_blocks and free < needed:
        remedy = "make room" if consume else "make room, or seal with --consume, which frees the stage"
        raise StoreError(
            f"{root.parent}: sealing needs {needed / 1e9:.3g} GB more, "
            f"and {free / 1e9:.3g} GB are free; {remedy}"
        )
