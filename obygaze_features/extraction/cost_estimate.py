"""Estimate the cost of an extraction from a few trial clips; nothing is written."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

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
    seconds
        Expected wall time, sealing included, or None if no clip could be tried.
    cpu_s, gpu_s
        Expected processor and GPU seconds; None if no clip could be tried, or without a GPU.
    tried
        Number of trial clips.
    workers
        Decode processes assumed.
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
    seconds: float | None
    cpu_s: float | None
    gpu_s: float | None
    tried: int
    workers: int
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


@dataclass
class _Spent:
    """Wall-clock and processor seconds of a trial."""

    wall: float = 0.0
    cpu: float = 0.0

    def __iadd__(self, other: "_Spent") -> "_Spent":
        self.wall += other.wall
        self.cpu += other.cpu
        return self

    def times(self, factor: float) -> "_Spent":
        return _Spent(self.wall * factor, self.cpu * factor)


class _Clock:
    """Measure a block: wall-clock seconds, and processor seconds of all threads of this process."""

    def __enter__(self) -> _Spent:
        self.spent = _Spent(-time.perf_counter(), -time.process_time())
        return self.spent

    def __exit__(self, *_: object) -> None:
        self.spent += _Spent(time.perf_counter(), time.process_time())


def estimate_clips(job: Job, clip_ids: Sequence[str], workers: int) -> Estimate:
    """Decode and encode a few trial passes, stratified by size, and scale up.

    The passes are those of the run: windows of a film are decoded together. Indexing is counted once per
    file. Networks are timed on whole batches, after one warm-up batch. Decoding and networks overlap on a GPU
    and share the processor on a CPU.
    """
    began = min(time.process_time(), 60.0)  # imports and loading of networks, which the run repeats
    tasks = job.tasks(clip_ids)
    paths = {task.path for task in tasks if task.path is not None}
    present = {path: path.stat().st_size for path in paths if path.is_file()}
    every = passes(tasks, workers)
    strata = _strata([each for each in every if each[0].path in present], present)
    decode, index, infer = _Spent(), _Spent(), _Spent()
    tried = weight = 0
    learnt: set[Path | None] = set()
    started = time.perf_counter()
    for stratum in strata:
        if time.perf_counter() - started > LONGEST_S:
            break
        piece = stratum[len(stratum) // 2]
        if piece[0].path not in learnt:
            with _Clock() as spent:
                _learn(piece[0].path)
            index += spent
            learnt.add(piece[0].path)
        with _Clock() as spent:
            clips = _decode(piece, job.decoder)
        n_clips = sum(map(len, stratum))
        share = n_clips / len(piece)
        decode += spent.times(share)
        infer += _encoding(job, clips, warm=tried == 0).times(share)
        tried += len(piece)
        weight += n_clips
    if not tried:
        return Estimate(
            len(tasks), len(paths), len(paths) - len(present), len(every), sum(present.values()),
            len(tasks) * job.bytes_per_clip(), None, None, None, 0, workers,
        )  # fmt: skip
    scale = sum(map(len, every)) / weight
    decode, infer = decode.times(scale), infer.times(scale)
    decode += index.times(len(present) / max(len(learnt), 1))
    on_gpu = any(uses_gpu(backbone) for backbone in job.backbones)
    write = len(tasks) * (_CLIP_CPU_S + job.bytes_per_clip() * _TIMES_HASHED * _hashing_s())
    cores = usable_cores()
    decoders = min(workers, len(every))
    decoding = decode.cpu + decoders * _START_CPU_S
    busy = decoding + write + (0.0 if on_gpu else infer.cpu)
    # Ratio for one decoder: above 1 if it waits for the disk, or if other processes use the cores.
    slowed = max(1.0, decode.wall / max(decode.cpu, 1e-9))
    seconds = max(slowed * (began + max(decoding / min(decoders, cores), busy / cores)), infer.wall)
    return Estimate(
        clips=len(tasks),
        files=len(paths),
        absent=len(paths) - len(present),
        passes=len(every),
        source_bytes=sum(present.values()),
        feature_bytes=len(tasks) * job.bytes_per_clip(),
        seconds=seconds,
        cpu_s=began + busy + (infer.cpu if on_gpu else 0.0),
        gpu_s=infer.wall if on_gpu else None,
        tried=tried,
        workers=workers,
    )


def _strata(every: Sequence[list[DecodeTask]], sizes: dict[Path, int]) -> list[list[list[DecodeTask]]]:
    """Sort every by bytes per clip, and cut them into strata with equal numbers of clips."""

    def cost(piece: list[DecodeTask]) -> tuple[float, str]:
        path = piece[0].path
        return (0.0 if path is None else float(sizes[path]), str(path))

    ordered = sorted(every, key=cost)
    total = sum(map(len, ordered))
    strata: list[list[list[DecodeTask]]] = [[] for _ in range(min(TRIALS, len(ordered)))]
    done = 0
    for piece in ordered:
        middle = done + len(piece) / 2
        strata[min(int(len(strata) * middle / total), len(strata) - 1)].append(piece)
        done += len(piece)
    return [stratum for stratum in strata if stratum]


def _learn(path: Path | None) -> None:
    """Build the index of a file."""
    with suppress(VideoError, OSError):
        if path is not None:
            probe(path)


def _decode(piece: Sequence[DecodeTask], decoder: str) -> list[DecodedClip]:
    return [clip for _, clip in decode_clips(piece, load_decoder(decoder))]


def _encoding(job: Job, clips: Sequence[DecodedClip], *, warm: bool) -> _Spent:
    """Encode decoded clips batch by batch; the very first batch runs twice, as a warm-up."""
    spent = _Spent()
    for batch in _batches(clips, max(BATCH, clips_at_once(job.backbones))):
        if warm:
            warm_up(job.backbones)  # a run loads and compiles only once
            encode_batch(job.backbones, batch)
            warm = False
        with _Clock() as clock:
            encode_batch(job.backbones, batch)
        spent += clock
    return spent


def _batches(clips: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for first in range(0, len(clips), size):
        yield clips[first : first + size]


def _hashing_s() -> float:
    """Measure the time of SHA-256 per byte on this machine, in seconds."""
    data = bytes(_HASHED)
    with _Clock() as spent:
        hashlib.sha256(data).digest()
    return spent.cpu / _HASHED
