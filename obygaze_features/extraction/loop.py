"""Do clips: decode workers fill batches, this process encodes, a thread writes the rows into the stage.

This is the only loop. A process per GPU (`gpus`) and an actor per node of a Ray cluster (`ray_nodes`) run it
on the pieces of the stage that `schedule` gives them; a task of a job array runs it on a shard of the pieces.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from obygaze_features.arguments import checked
from obygaze_features.cores import usable_cores
from obygaze_features.extraction.decode_clips import DecodedClip, DecodeTask
from obygaze_features.extraction.encode import encode_batches, gpu_busy_s, gpu_record, warm_up
from obygaze_features.extraction.films import Films
from obygaze_features.extraction.gpu_pool import decode_pool
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.report import BATCHES_AHEAD, Run, RunReport, recording_of
from obygaze_features.store import Stage

DecodeAll = Callable[[Sequence[DecodeTask], Callable[[], bool]], Iterator[DecodedClip]]
"""Decodes clips until it is asked to stop: in worker processes of this machine, or in tasks of a cluster."""


@checked
def run_local(
    job: Job,
    stage: Stage,
    clip_ids: Sequence[str],
    *,
    workers: int | None,
    batch_size: int,
    timeout_s: float,
    stopped: Callable[[], bool] = lambda: False,
    films: Films | None = None,
) -> Run:
    """Extract clips on this machine: decode workers decode them, and this process encodes them.

    Parameters
    ----------
    job
        The settings that determine the features.
    stage
        The unfinished store that the features are written to.
    clip_ids
        Clips to extract.
    workers
        Decode processes; None is one per usable core.
    timeout_s
        Time limit for decoding one clip, in seconds.
    batch_size
        Clips encoded together. Features do not depend on it.
    stopped
        Polled often; once true, the current clips are finished and the run ends.
    films
        Films whose shots are to be found: the parts of them that are not measured yet are measured on the
        way.
    """
    n_workers = workers or usable_cores()
    last_report = RunReport()
    with decode_pool(n_workers, timeout_s, job.decoder, batch_size, job.backbones) as pool:
        decode = partial(pool.decode, films=films)
        run = run_loop(job, stage, clip_ids, decode, batch_size=batch_size, stopped=stopped)
        for report, results in run:
            last_report = report
            yield report, results
    # What the shots have cost beyond the clips is known only now that nothing more is yielded. The caller
    # keeps the last report that was yielded, and reads it after the run: the costs are added to this object.
    if films is not None:
        last_report.n_decoded += films.n_decoded
        last_report.decode_cpu_s += films.cpu_s


def run_loop(
    job: Job,
    stage: Stage,
    clip_ids: Sequence[str],
    decode: DecodeAll,
    *,
    batch_size: int,
    stopped: Callable[[], bool],
) -> Run:
    """Extract clips: decode, encode in batches, and write, each step overlapping the others.

    Clips are encoded in the order in which they are decoded. Yields the report so far, and the results that
    were written since the last one.

    Parameters
    ----------
    job
        The settings that determine the features.
    stage
        The unfinished store that the features are written to.
    clip_ids
        Clips to extract.
    decode
        Decodes the clips.
    batch_size
        Clips encoded together. Features do not depend on it.
    stopped
        Polled often; once true, the current clips are finished and the run ends.
    """
    report = RunReport()
    if clip_ids:
        warm_up(job.backbones)
    busy_before_s = gpu_busy_s(job.backbones)  # in earlier calls; None without a GPU

    with recording_of(stage, clip_ids, report) as recording:
        decoded = _counted(decode(job.tasks(clip_ids), stopped), report)
        batches = _batches(decoded, batch_size)
        measure_inference = partial(_add_seconds, report, "infer_s")

        # `decoded` and `batches` are generators: asking for the next results decodes the next clips.
        for results in encode_batches(job.backbones, batches, measure_inference):
            if busy_before_s is not None:
                busy_s = gpu_busy_s(job.backbones) or 0.0
                report.gpu_busy_s = busy_s - busy_before_s

            # Before one more batch is queued, wait until at most `BATCHES_AHEAD` are left to write.
            written = recording.take_written(BATCHES_AHEAD)
            recording.queue(results)
            if written:
                yield report, written
        report.gpus = gpu_record(job.backbones)
    yield report, recording.take_written()


def _batches(clips: Iterator[DecodedClip], size: int) -> Iterator[list[DecodedClip]]:
    """Group decoded clips into batches of `size` readable clips, in their order.

    Clips that could not be read are in the batches too, but do not count, as the networks do not get them.
    """
    batch: list[DecodedClip] = []
    n_readable = 0
    for clip in clips:
        batch.append(clip)
        if clip.status != "failed":
            n_readable += 1
        if n_readable == size:
            yield batch
            batch = []
            n_readable = 0
    if batch:
        yield batch


def _counted(clips: Iterator[DecodedClip], report: RunReport) -> Iterator[DecodedClip]:
    """Yield decoded clips unchanged, and add to the report what each of them took.

    That is how long this process waited for it, the processor seconds of its decoding, and the number of
    frames that were decoded; also remarks on its file.
    """
    while True:
        with _add_seconds(report, "waited_s"):
            clip = next(clips, None)
        if clip is None:
            return
        report.decode_cpu_s += clip.cpu_s
        report.n_decoded += clip.n_decoded
        report.remarks.update(clip.remarks)
        yield clip


@contextmanager
def _add_seconds(report: RunReport, name: str) -> Iterator[None]:
    """Add the seconds that a `with` block takes to the field `name` of the report, such as `infer_s`."""
    before = time.perf_counter()
    yield
    seconds_before_block = getattr(report, name)
    setattr(report, name, seconds_before_block + time.perf_counter() - before)
