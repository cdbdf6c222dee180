"""Estimate the cost of an extraction from a few trial clips; nothing is written."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from obygaze_features.cores import usable_cores
from obygaze_features.errors import VideoError
from obygaze_features.extraction.decode import DecodedClip, DecodeTask, decode_clips, passes
from obygaze_features.extraction.decoders import load_decoder
from obygaze_features.extraction.encode import clips_at_once, encode_batch, uses_gpu
from obygaze_features.extraction.job import Job
from obygaze_features.store.disk_usage import DiskEstimate, FreeSpace
from obygaze_features.video import probe

TRIALS = 8
"""Most trial passes, from strata with equal numbers of clips, by the size of their files."""
BATCH = 8
"""Trial clips that are encoded, together."""
LONGEST_S = 120.0
"""Seconds after which no further pass is tried."""
_BYTE_CPU_S = 3e-9
"""Cost of a byte from the network's output to the sealed store: four to five times its SHA-256."""

_START_CPU_S = 0.6
"""Start of a decode worker, in processor seconds [0.58 to 0.64]."""

Pass = list[DecodeTask]


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
    cores_per_card
        Decoding cores that keep a card busy; None as `gpu_s`.
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
    cores_per_card: float | None = None
    tried: int = 0
    room: DiskEstimate | None = None
    free: FreeSpace | None = None

    unit: ClassVar[str] = "clip"

    def facts(self) -> list[tuple[str, object]]:
        """List the work to be done as pairs of name and value; empty if there is none."""
        if not self.clips:
            return []
        facts = [
            ("clips to do", f"{self.clips}"),
            ("video files", f"{self.files} ({self.absent} absent), read in {self.passes} passes"),
            ("video bytes", f"{self.source_bytes:,}"),
        ]
        hours = {"CPU hours": self.cpu_s, "GPU hours": self.gpu_s}
        facts += [(name, f"{seconds / 3600:.3g}") for name, seconds in hours.items() if seconds is not None]
        if self.cores_per_card is not None:
            facts.append(
                ("decoding cores", f"{self.cores_per_card:.3g} keep a card busy; {usable_cores()} here")
            )
        return [*facts, *self._disk().items()]

    def _disk(self) -> dict[str, str]:
        if self.room is None or self.free is None:
            return {}
        peak = f"{_gigabytes(self.room.peak_bytes)}; {_gigabytes(self.free.bytes)} free"
        links = "" if self.room.links else ", with shards twice: this file system has no hard links"
        left = "" if self.free.files is None else f", {self.free.files:,} more fit"
        return {
            "store on disk": _gigabytes(self.room.store_bytes),
            "peak disk": f"{peak}{links}",
            "files on disk": f"{self.room.files:,}{left}",
        }

    def obstacle(self) -> str | None:
        """Explain in one line why the disk is too small; None if it is large enough or unknown."""
        if self.room is None or self.free is None or not self.clips:
            return None
        fit = self.free.files is None or self.room.files <= self.free.files
        if fit and self.room.peak_bytes <= self.free.bytes:
            return None
        needs = ", ".join(f"{name} {amount}" for name, amount in self._disk().items())
        return f"the disk is too small: {needs}"


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.3g} GB" if size >= 1e8 else f"{size / 1e6:.3g} MB"


def _now() -> NDArray[np.float64]:
    """Return wall-clock seconds, and processor seconds of all threads of this process."""
    return np.array([time.perf_counter(), time.process_time()])


def estimate_clips(job: Job, clip_ids: Sequence[str], workers: int) -> Estimate:
    """Decode a few passes and encode some of their clips, and scale up.

    The passes are those of the run: windows of a film are decoded together. Indexing is counted once per
    file. Decoding and networks overlap on a GPU and share the processor on a CPU.
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
    decode, index = np.zeros((2, 2))
    indexed: set[Path] = set()
    clips: list[DecodedClip] = []
    tried = shares = 0
    started = time.perf_counter()
    for path, piece, n_strata in _sample(every, sizes):
        if time.perf_counter() - started > LONGEST_S:
            break
        before = _now()
        with suppress(VideoError, OSError):
            probe(path)  # of a file that was tried already, the index is there
        indexed.add(path)
        index += _now() - before
        before = _now()
        decoded = [clip for _, clip in decode_clips(piece, load_decoder(job.decoder))]
        decode += n_strata * (_now() - before) / len(piece)
        shares += n_strata
        tried += len(piece)
        clips += decoded[: max(BATCH, clips_at_once(job.backbones)) - len(clips)]
    if not tried:
        return work
    encode_batch(job.backbones, clips)  # loads and compiles, which a run does once
    before = _now()
    encode_batch(job.backbones, clips)
    infer_s, infer_cpu_s = (_now() - before) * len(tasks) / len(clips)
    decode_s, decode_cpu_s = decode * len(tasks) / shares + index * len(sizes) / len(indexed)
    on_gpu = any(uses_gpu(backbone) for backbone in job.backbones)
    cores = usable_cores()
    decoders = min(workers, len(every))
    decoding = decode_cpu_s + decoders * _START_CPU_S
    busy = decoding + work.feature_bytes * _BYTE_CPU_S + (0.0 if on_gpu else infer_cpu_s)
    # Ratio for one decoder: above 1 if it waits for the disk, or if other processes use the cores.
    slowed = max(1.0, decode_s / max(decode_cpu_s, 1e-9))
    return replace(
        work,
        seconds=float(max(slowed * (began + max(decoding / min(decoders, cores), busy / cores)), infer_s)),
        cpu_s=float(began + busy + (infer_cpu_s if on_gpu else 0.0)),
        gpu_s=float(infer_s) if on_gpu else None,
        cores_per_card=float(decode_cpu_s / max(infer_s, 1e-9)) if on_gpu else None,
        tried=tried,
    )


def _sample(every: Sequence[Pass], sizes: Mapping[Path, int]) -> Iterator[tuple[Path, Pass, int]]:
    """Choose passes by the bytes of their files: those at the middles of `TRIALS` equal numbers of clips.

    Yields the file, the pass, and how many of the middles lie in it.
    """
    there = [(sizes[path], path, piece) for piece in every if (path := piece[0].path) and path in sizes]
    by_clip = [piece for piece in sorted(there, key=itemgetter(0, 1)) for _ in piece[-1]]
    middles = [by_clip[(2 * k + 1) * len(by_clip) // (2 * TRIALS)] for k in range(TRIALS) if by_clip]
    for (_, path, piece), same in groupby(middles):
        yield path, piece, len(list(same))
