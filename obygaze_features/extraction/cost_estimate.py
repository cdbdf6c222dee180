"""Estimate the cost of an extraction from a few trial clips; nothing is written."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_features.cores import usable_cores
from obygaze_features.errors import VideoError
from obygaze_features.extraction.decode_clips import DecodedClip, decode_clips, passes
from obygaze_features.extraction.decoders import load_decoder
from obygaze_features.extraction.encode import clips_at_once, encode_batch, uses_gpu
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.keep_frames import keeping
from obygaze_features.store.disk_usage import DiskEstimate, FreeSpace
from obygaze_features.video import probe
from obygaze_features.video.file_facts import file_state, is_here

TRIALS = 8
"""Most trial passes, at equal distances in the order of the size of their files; trial clips to encode."""
LONGEST_S = 120.0
"""Seconds of decoding after which no further pass is tried."""
_BYTE_CPU_S = 3e-9
"""Cost of a byte from the network's output to the sealed store: four to five times its SHA-256."""


@dataclass(slots=True)
class Estimate:
    """Remaining work of an extraction and its expected cost.

    Parameters
    ----------
    clips, files, absent
        Clips to do, distinct video files they need, and how many of those files are absent.
    passes
        Passes of a decoder over a file; windows of a film share passes.
    feature_bytes
        Size of the features if every clip can be read.
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
    feature_bytes: int
    workers: int
    seconds: float | None = None
    cpu_s: float | None = None
    gpu_s: float | None = None
    cores_per_card: float | None = None
    tried: int = 0
    room: DiskEstimate | None = None
    free: FreeSpace | None = None

    def facts(self) -> list[tuple[str, object]]:
        """List the work to be done as pairs of name and value; the last three are about the disk."""
        facts: list[tuple[str, object]] = [
            ("clips to do", self.clips),
            ("video files", f"{self.files} ({self.absent} absent), read in {self.passes} passes"),
            ("CPU hours", "unknown" if self.cpu_s is None else _hours(self.cpu_s)),
        ]
        if self.gpu_s is not None and self.cores_per_card is not None:
            cores = f"{self.cores_per_card:.3g} keep a card busy; {usable_cores()} here"
            facts += [("GPU hours", _hours(self.gpu_s)), ("decoding cores", cores)]
        if self.room is not None and self.free is not None:
            facts += _disk_facts(self.room, self.free)
        return facts


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.3g}"


def _disk_facts(room: DiskEstimate, free: FreeSpace) -> list[tuple[str, object]]:
    """Say how much room a stage and its store need, and how much there is."""
    peak = f"{room.peak_bytes / 1e9:.3g} GB; {free.bytes / 1e9:.3g} GB free"
    if not room.links:
        peak += ", with shards twice: this file system has no hard links"
    files = f"{room.files:,}"
    if free.files is not None:
        files += f", {free.files:,} more fit"
    return [
        ("store on disk", f"{room.store_bytes / 1e9:.3g} GB"),
        ("peak disk", peak),
        ("files on disk", files),
    ]


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
    sizes = {path: file_state(path)[0] for path in paths if is_here(path)}
    every = passes(tasks, workers)
    feature_bytes = len(tasks) * job.bytes_per_clip()
    work = Estimate(len(tasks), len(paths), len(paths) - len(sizes), len(every), feature_bytes, workers)
    there = [(sizes[path], path, some) for some in every if (path := some[0].path) and path in sizes]
    there.sort(key=lambda trial: trial[0])
    step = -(-len(there) // TRIALS) or 1
    index, decode = np.zeros((2, 2))
    clips: list[DecodedClip] = []
    for n_passes, (_, path, some) in enumerate(there[step // 2 :: step], start=1):
        before = _now()
        with suppress(VideoError, OSError):
            probe(path)  # of a file that was tried already, the index is there
        indexed = _now()
        decoded = [clip for _, clip in decode_clips(some, keeping(load_decoder(job.decoder), writes=False))]
        index += (indexed - before - index) / n_passes
        decode += _now() - indexed
        work.tried += len(some)
        clips += decoded[: max(TRIALS, clips_at_once(job.backbones)) - len(clips)]
        if decode[0] > LONGEST_S:
            break
    if not work.tried:
        return work
    if not (on_card := any(uses_gpu(backbone) for backbone in job.backbones)):
        del clips[1:]  # of which each takes as long alone, and seconds
    encode_batch(job.backbones, clips)  # loads and compiles, which a run does once
    before = _now()
    encode_batch(job.backbones, clips)
    infer_s, infer_cpu_s = (_now() - before) * len(tasks) / len(clips)
    decode_s, decode_cpu_s = decode * len(tasks) / work.tried + index * len(sizes)
    busy = decode_cpu_s + feature_bytes * _BYTE_CPU_S + infer_cpu_s
    work.cpu_s = began + busy
    if on_card:
        work.gpu_s, work.cores_per_card = infer_s, decode_cpu_s / max(infer_s, 1e-9)
    cores = usable_cores()
    decoders = min(workers, len(every), cores)
    # Ratio for one decoder: above 1 if it waits for the disk, or if other processes use the cores.
    slowed = max(1.0, decode_s / max(decode_cpu_s, 1e-9))
    work.seconds = max(slowed * (began + max(decode_cpu_s / decoders, busy / cores)), infer_s)
    return work
