"""Estimate the cost of an extraction from a few trial clips; nothing is written."""

import hashlib
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from obygaze_features.cores import usable_cores
from obygaze_features.errors import VideoError
from obygaze_features.extraction.decode import DecodedClip, DecodeTask, decode_clips, passes
from obygaze_features.extraction.decoders import load_decoder
from obygaze_features.extraction.encode import clips_at_once, encode_batch, uses_gpu, warm_up
from obygaze_features.extraction.job import Job
from obygaze_features.store.disk_usage import DiskEstimate, FreeSpace
from obygaze_features.video import probe

TRIALS = 8
"""Number of trial passes: one from each stratum of the work, stratified by bytes read."""
BATCH = 8
"""Clips encoded together in a trial."""
LONGEST_S = 120.0
"""Seconds after which no further pass is tried."""
_HASHED = 1 << 23
_TIMES_HASHED = 4.5
"""Cost of a byte from the network's output to the sealed store, relative to its SHA-256 [4.8 MB of tokens:
commit 2.2, seal 2.0 to 2.3]."""
_CLIP_CPU_S = 0.0015
"""Further cost of a clip from the network's output to the sealed store."""

_START_CPU_S = 0.6
"""Start of a decode worker, in processor seconds [0.58 to 0.64]."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Remaining work of an extraction and its expected cost.

    Parameters
    ----------
    clips, files, absent
        Clips to do, distinct video files they need, and how many of those files are absent.
    passes
        Passes of a decoder over a file; windows of a film share passes.
    source_bytes, feature_bytes
        Size of the video files, and size of the features if every clip can be read.
    workers
        Decode processes assumed.
    seconds
        Expected wall time, sealing included, or None if no clip could be tried.
    cpu_s, gpu_s
        Expected processor and GPU seconds; None if no clip could be tried, or without a GPU.
    tried
        Number of trial clips.
    room
        Disk space of the stage and the store, for all clips, not only those to do.
    free
        Free disk space.
    """

    clips: int
    files: int
    absent: int
    passes: int
    source_bytes: int
    feature_bytes: int
    workers: int
    seconds: float | None = None
    cpu_s: float | None = None
    gpu_s: float | None = None
    tried: int = 0
    room: DiskEstimate | None = None
    free: FreeSpace | None = None

    unit: ClassVar[str] = "clip"

    def facts(self) -> list[tuple[str, object]]:
        """List the work to be done as pairs of name and value; empty if there is none."""
        if not self.clips:
            return []
        lines: list[tuple[str, object]] = [
            ("clips to do", self.clips),
            ("video files", f"{self.files} ({self.absent} absent), read in {self.passes} passes"),
            ("video bytes", f"{self.source_bytes:,}"),
        ]
        if self.cpu_s is not None:
            lines.append(("CPU hours", f"{self.cpu_s / 3600:.3g}"))
        if self.gpu_s is not None:
            lines.append(("GPU hours", f"{self.gpu_s / 3600:.3g}"))
        if self.room is not None and self.free is not None:
            files = self.room.stage_files + self.room.store_files
            peak = _gigabytes(self.room.peak_bytes)
            if not self.room.links:
                peak += ", with shards twice: this file system has no hard links"
            left = "" if self.free.files is None else f", {self.free.files:,} more fit"
            lines += [
                ("store on disk", _gigabytes(self.room.store_bytes)),
                ("peak disk", f"{peak}; {_gigabytes(self.free.bytes)} free"),
                ("files on disk", f"{files:,}{left}"),
            ]
        return lines

    def obstacle(self) -> str | None:
        """Explain in one line why the disk is too small; None if it is large enough or unknown."""
        if self.room is None or self.free is None or not self.clips:
            return None
        if self.room.peak_bytes > self.free.bytes:
            return (
                f"the disk is too small: {_gigabytes(self.room.peak_bytes)} are needed at the peak, "
                f"{_gigabytes(self.free.bytes)} are free"
            )
        if self.free.files is not None and self.room.stage_files + self.room.store_files > self.free.files:
            return f"the disk takes {self.free.files:,} more files only"
        return None

    def record(self) -> dict[str, object]:
        """Return all fields as plain values, for `--json`."""
        return asdict(self)


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.3g} GB" if size >= 1e8 else f"{size / 1e6:.3g} MB"


def _now() -> NDArray[np.float64]:
    """Return wall-clock seconds, and processor seconds of all threads of this process."""
    return np.array([time.perf_counter(), time.process_time()])


def estimate_clips(job: Job, clip_ids: Sequence[str], workers: int) -> Estimate:
    """Decode and encode a few trial passes, stratified by size, and scale up.

    The passes are those of the run: windows of a film are decoded together. Indexing is counted once per
    file. Networks are timed on whole batches, after one warm-up batch. Decoding and networks overlap on a GPU
    and share the processor on a CPU.
    """
    began = min(time.process_time(), 60.0)  # imports and loading of networks, which the run repeats
    tasks = job.tasks(clip_ids)
    paths = {task.path for task in tasks if task.path is not None}
    sizes = {path: path.stat().st_size for path in paths if path.is_file()}
    every = passes(tasks, workers)
    work = Estimate(
        clips=len(tasks),
        files=len(paths),
        absent=len(paths) - len(sizes),
        passes=len(every),
        source_bytes=sum(sizes.values()),
        feature_bytes=len(tasks) * job.bytes_per_clip(),
        workers=workers,
    )
    decode, index, infer = np.zeros((3, 2))
    tried = weight = 0
    indexed: set[Path | None] = set()
    started = time.perf_counter()
    for stratum in _strata([piece for piece in every if piece[0].path in sizes], sizes):
        if time.perf_counter() - started > LONGEST_S:
            break
        piece = stratum[len(stratum) // 2]
        path = piece[0].path
        if path is not None and path not in indexed:
            before = _now()
            with suppress(VideoError, OSError):
                probe(path)
            index += _now() - before
            indexed.add(path)
        before = _now()
        clips = [clip for _, clip in decode_clips(piece, load_decoder(job.decoder))]
        share = sum(map(len, stratum)) / len(piece)
        decode += share * (_now() - before)
        infer += share * _encode(job, clips, warm=tried == 0)
        tried += len(piece)
        weight += sum(map(len, stratum))
    if not tried:
        return work
    scale = sum(map(len, every)) / weight
    infer_s, infer_cpu_s = infer * scale
    decode_s, decode_cpu_s = decode * scale + index * len(sizes) / max(len(indexed), 1)
    on_gpu = any(uses_gpu(backbone) for backbone in job.backbones)
    write = len(tasks) * _CLIP_CPU_S + work.feature_bytes * _TIMES_HASHED * _hashing_s()
    cores = usable_cores()
    decoders = min(workers, len(every))
    decoding = decode_cpu_s + decoders * _START_CPU_S
    busy = decoding + write + (0.0 if on_gpu else infer_cpu_s)
    # Ratio for one decoder: above 1 if it waits for the disk, or if other processes use the cores.
    slowed = max(1.0, decode_s / max(decode_cpu_s, 1e-9))
    return replace(
        work,
        seconds=float(max(slowed * (began + max(decoding / min(decoders, cores), busy / cores)), infer_s)),
        cpu_s=float(began + busy + (infer_cpu_s if on_gpu else 0.0)),
        gpu_s=float(infer_s) if on_gpu else None,
        tried=tried,
    )


def _strata(passes: Sequence[list[DecodeTask]], sizes: dict[Path, int]) -> list[list[list[DecodeTask]]]:
    """Sort passes by the bytes of their files, and cut them into strata with equal numbers of clips."""
    ordered = sorted(passes, key=lambda piece: (sizes.get(piece[0].path or Path(), 0), str(piece[0].path)))
    strata: list[list[list[DecodeTask]]] = [[] for _ in range(min(TRIALS, len(ordered)))]
    middles = np.cumsum([len(piece) for piece in ordered]) - np.array([len(piece) / 2 for piece in ordered])
    for piece, middle in zip(ordered, middles, strict=True):
        strata[int(len(strata) * middle / sum(map(len, ordered)))].append(piece)
    return [stratum for stratum in strata if stratum]


def _encode(job: Job, clips: Sequence[DecodedClip], *, warm: bool) -> NDArray[np.float64]:
    """Time the encoding of decoded clips, batch by batch; the very first batch runs twice, as a warm-up."""
    size = max(BATCH, clips_at_once(job.backbones))
    batches = [clips[first : first + size] for first in range(0, len(clips), size)]
    if warm and batches:
        warm_up(job.backbones)  # a run loads and compiles only once
        encode_batch(job.backbones, batches[0])
    before = _now()
    for batch in batches:
        encode_batch(job.backbones, batch)
    return _now() - before


def _hashing_s() -> float:
    """Measure the time of SHA-256 per byte on this machine, in seconds."""
    data = bytes(_HASHED)
    started = time.process_time()
    hashlib.sha256(data).digest()
    return (time.process_time() - started) / _HASHED
