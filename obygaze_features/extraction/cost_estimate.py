"""Estimate the cost of an extraction from a few trial clips; nothing is written."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from obygaze_features.cores import usable_cores
from obygaze_features.errors import VideoError
from obygaze_features.extraction.decode_clips import DecodedClip, DecodeTask, decode_clips, group_into_passes
from obygaze_features.extraction.decoders import load_decoder
from obygaze_features.extraction.encode import clips_at_once, encode_batch, uses_gpu
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.keep_frames import with_frame_cache
from obygaze_features.store.disk_usage import DiskEstimate, FreeSpace
from obygaze_features.store.missing_videos import missing_files
from obygaze_features.text import three_digits
from obygaze_features.video import probe
from obygaze_features.video.file_facts import file_state, is_here

MAX_TRIAL_PASSES = 8
"""Passes that are tried at most, at equal distances in the order of the size of their files; and clips of
them that are encoded at most, unless a backbone takes more at once."""
LONGEST_TRIAL_S = 120.0
"""Seconds of decoding after which no further pass is tried."""
CPU_S_PER_BYTE = 3e-9
"""Cost of a byte from the network's output to the sealed store: four to five times its SHA-256."""
MIN_S = 1e-9
"""Seconds by which is divided at least, so that nothing is divided by 0."""
MAX_LOADING_S = 60.0
"""Most seconds counted for imports and for loading networks: a process may have done other work before."""


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
        Decoding cores that keep a GPU busy; None as `gpu_s`.
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

    @property
    def n_to_do(self) -> int:
        """Number of rows that are left to do."""
        return self.clips

    def facts(self) -> list[tuple[str, object]]:
        """List the work to be done and the disk space as rows of a table: (name, value)."""
        cpu_hours = "unknown" if self.cpu_s is None else _hours(self.cpu_s)
        facts: list[tuple[str, object]] = [
            ("clips to do", self.clips),
            ("video files", f"{self.files} ({self.absent} absent), read in {self.passes} passes"),
            ("CPU hours", cpu_hours),
        ]
        # Where networks run on a GPU
        if self.gpu_s is not None and self.cores_per_card is not None:
            cores = f"{three_digits(self.cores_per_card)} keep a card busy; {usable_cores()} here"
            facts.append(("GPU hours", _hours(self.gpu_s)))
            facts.append(("decoding cores", cores))
        # Where the disk was asked for its space
        if self.room is not None and self.free is not None:
            facts += disk_facts(self.room, self.free)
        return facts


def _hours(seconds: float) -> str:
    """Format seconds as hours with three significant digits."""
    return three_digits(seconds / 3600)


def disk_facts(room: DiskEstimate, free: FreeSpace) -> list[tuple[str, object]]:
    """List the disk space that an extraction needs, and what is free, as rows of a table: (name, value).

    Parameters
    ----------
    room
        Expected size of the stage and of the store, in bytes and files.
    free
        Free bytes and files of the disk.
    """
    peak = f"{three_digits(room.peak_bytes / 1e9)} GB; {three_digits(free.bytes / 1e9)} GB free"
    if not room.links:  # shards are copied from the stage to the store
        peak += ", with shards twice: this file system has no hard links"
    files = f"{room.files:,}"
    if free.files is not None:
        files += f", {free.files:,} more fit"
    return [
        ("store on disk", f"{three_digits(room.store_bytes / 1e9)} GB"),
        ("peak disk", peak),
        ("files on disk", files),
    ]


def estimate_clips(job: Job, clip_ids: Sequence[str], workers: int) -> Estimate:
    """Estimate the cost of extracting clips, from a few of them that are decoded and encoded now.

    Clips are tried as a run decodes them: those of one film together, in one pass over its file. Indexing is
    counted once per file. Decoding and networks overlap on a GPU and share the processor on a CPU.

    Parameters
    ----------
    job
        The clips, the backbones and the other settings of the extraction.
    clip_ids
        Clips that are left to do.
    workers
        Number of decode processes.
    """
    # Until now this process has imported libraries and loaded networks, which the run will do again.
    loading_s = min(time.process_time(), MAX_LOADING_S)
    tasks = job.tasks(clip_ids)
    paths = {task.path for task in tasks if task.path is not None}
    size_of_file = {path: file_state(path)[0] for path in paths if is_here(path)}
    all_passes = group_into_passes(tasks, workers)
    estimate = Estimate(
        clips=len(tasks),
        files=len(paths),
        absent=len(missing_files(paths)),
        passes=len(all_passes),
        feature_bytes=len(tasks) * job.bytes_per_clip(),
        workers=workers,
    )

    trial = _try_decoding(job, _trial_passes(all_passes, size_of_file))
    estimate.tried = trial.n_clips
    if trial.n_clips == 0:  # such as where no file is on this machine
        return estimate

    # Arrays [2] of wall and processor seconds, for all clips and files of the run.
    on_gpu = any(uses_gpu(backbone) for backbone in job.backbones)
    decoding_s = trial.per_clip * len(tasks)
    indexing_s = trial.index_per_file * len(size_of_file)
    inference_s = _try_networks(job, trial.clips, on_gpu=on_gpu) * len(tasks)
    return _with_times(
        estimate,
        decoding=_Seconds.of(decoding_s + indexing_s),
        inference=_Seconds.of(inference_s),
        loading_s=loading_s,
        on_gpu=on_gpu,
    )


class _Seconds(NamedTuple):
    """Expected time of one kind of work on all clips."""

    wall: float
    cpu: float

    @classmethod
    def of(cls, seconds: NDArray[np.float64]) -> Self:
        """Return wall and processor seconds that are given as an array [2]."""
        wall, cpu = seconds.tolist()
        return cls(wall, cpu)


def _with_times(
    estimate: Estimate, *, decoding: _Seconds, inference: _Seconds, loading_s: float, on_gpu: bool
) -> Estimate:
    """Return an estimate with the expected wall-clock, processor and GPU seconds of the whole run.

    Parameters
    ----------
    estimate
        The estimate with its numbers of clips, passes and workers.
    decoding, inference
        Seconds that decoding all clips takes, and that the networks take for all of them, if the clips come
        one after the other.
    loading_s
        Processor seconds of imports and of loading networks.
    on_gpu
        Whether networks run on a GPU.
    """
    # All work of the processor, after libraries and networks are loaded
    writing_s = estimate.feature_bytes * CPU_S_PER_BYTE
    work_s = decoding.cpu + writing_s + inference.cpu

    # How long that takes if nothing waits. Decoding is divided among the decoders: these are at most as many
    # as the workers, and as the passes, since a pass is not divided. All work together is divided among all
    # cores. Both bounds hold, so that the larger one counts.
    n_cores = usable_cores()
    n_decoders = min(estimate.workers, estimate.passes, n_cores)
    decoding_among_decoders_s = decoding.cpu / n_decoders
    work_among_cores_s = work_s / n_cores
    without_waiting_s = loading_s + max(decoding_among_decoders_s, work_among_cores_s)

    # A decoder waits for the disk, or for other processes that use the cores: in the trial its wall-clock
    # time was then longer than its processor time, and so it will be in the run.
    slowdown = max(1.0, decoding.wall / max(decoding.cpu, MIN_S))
    with_waiting_s = slowdown * without_waiting_s

    # The networks run at the same time as the decoders, so that the slower of both sets the pace.
    wall_s = max(with_waiting_s, inference.wall)

    with_cpu_times = replace(estimate, seconds=wall_s, cpu_s=loading_s + work_s)
    if not on_gpu:
        return with_cpu_times
    # So many cores decode all clips in the time in which the GPU encodes them.
    cores_per_card = decoding.cpu / max(inference.wall, MIN_S)
    return replace(with_cpu_times, gpu_s=inference.wall, cores_per_card=cores_per_card)


def _now() -> NDArray[np.float64]:
    """Return the present wall-clock time, and the processor seconds of this process so far, [2].

    The difference of two such arrays is what the work between them took.
    """
    return np.array([time.perf_counter(), time.process_time()])


def _trial_passes(
    all_passes: Sequence[Sequence[DecodeTask]], size_of_file: Mapping[Path, int]
) -> list[Sequence[DecodeTask]]:
    """Choose passes over small and large files, at most `MAX_TRIAL_PASSES`, to measure what decoding costs.

    They lie at equal distances in the order of file sizes.

    Parameters
    ----------
    all_passes
        All passes of the run; a pass is the tasks of the clips of one file that are decoded together.
    size_of_file
        Size in bytes of each file that exists on this machine; passes over others are not tried.
    """
    readable_passes = [tasks for tasks in all_passes if tasks[0].path in size_of_file]
    readable_passes.sort(key=lambda tasks: size_of_file[cast("Path", tasks[0].path)])

    step = max(ceil(len(readable_passes) / MAX_TRIAL_PASSES), 1)
    first = step // 2  # so that neither the smallest files nor the largest are preferred
    return readable_passes[first::step]


class _TriedDecoding(NamedTuple):
    """What trial passes cost.

    Attributes
    ----------
    n_clips
        Number of clips that were decoded.
    index_per_file, per_clip
        Wall and processor seconds of indexing a file, and then of decoding a clip, [2].
    clips
        Some of the decoded clips.
    """

    n_clips: int
    index_per_file: NDArray[np.float64]
    per_clip: NDArray[np.float64]
    clips: list[DecodedClip]


def _try_decoding(job: Job, trial_passes: Sequence[Sequence[DecodeTask]]) -> _TriedDecoding:
    """Decode clips and measure how long that takes; stop after `LONGEST_TRIAL_S` seconds of decoding.

    Only as many of the decoded clips are returned as `_try_networks` needs.

    Parameters
    ----------
    job
        The settings of the extraction.
    trial_passes
        Tasks of clips that are decoded together, because they are of one file.
    """
    decode = with_frame_cache(load_decoder(job.decoder), writes=False)  # reads kept frames, and keeps none
    max_clips = max(MAX_TRIAL_PASSES, clips_at_once(job.backbones))  # that are returned

    clips: list[DecodedClip] = []
    n_passes = 0
    n_clips = 0
    index_s = np.zeros(2)  # wall and processor seconds
    decode_s = np.zeros(2)
    for tasks in trial_passes:
        before = _now()
        with suppress(VideoError, OSError):  # the clips of a damaged file fail below, as they will in the run
            probe(cast("Path", tasks[0].path))  # indexes the file, unless its index is cached
        indexed = _now()
        decoded = [clip for _, clip in decode_clips(tasks, decode)]
        ended = _now()

        index_s += indexed - before
        decode_s += ended - indexed
        n_passes += 1
        n_clips += len(tasks)
        clips += decoded[: max_clips - len(clips)]
        decode_wall_s = decode_s[0]
        if decode_wall_s > LONGEST_TRIAL_S:
            break

    return _TriedDecoding(
        n_clips,
        index_per_file=index_s / max(n_passes, 1),
        per_clip=decode_s / max(n_clips, 1),
        clips=clips,
    )


def _try_networks(job: Job, clips: Sequence[DecodedClip], *, on_gpu: bool) -> NDArray[np.float64]:
    """Measure how long all backbones take for one clip: wall and processor seconds, [2].

    Parameters
    ----------
    job
        The extraction, with its backbones.
    clips
        Decoded clips to try, at least one.
    on_gpu
        Whether networks run on a GPU, which then gets all clips together, as in the run.
    """
    if not on_gpu:
        clips = clips[:1]  # one is enough: each takes seconds, and as long alone as with others
    encode_batch(job.backbones, clips)  # loads and compiles, which a run does once
    before = _now()
    encode_batch(job.backbones, clips)
    return (_now() - before) / len(clips)
