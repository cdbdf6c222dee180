"""Run extraction on one machine: decode workers fill batches, this process encodes, a thread writes."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from obygaze_features.cores import usable_cores
from obygaze_features.extraction.decode import DecodedClip
from obygaze_features.extraction.encode import Encoder, gpu_busy_s, gpu_record, warm_up
from obygaze_features.extraction.films import Films
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.pool import DecodePool
from obygaze_features.extraction.report import OnCommit, Recording, RunReport
from obygaze_features.store import ClipResult, Stage


def run_local(
    job: Job,
    stage: Stage,
    clip_ids: Sequence[str],
    *,
    workers: int | None,
    batch_size: int,
    timeout_s: float,
    stopped: Callable[[], bool] = lambda: False,
    on_commit: OnCommit = lambda *_: None,
    films: Films | None = None,
) -> RunReport:
    """Extract some clips into a stage; clips are encoded in the order in which they are decoded.

    Memory holds at most `2 * workers + batch_size` prepared clips, and one full-size frame per worker.
    Windows of a film are decoded in one pass: up to `PIECE_CLIPS` prepared clips per worker.

    Parameters
    ----------
    workers
        Decode processes; None is one per usable core.
    batch_size
        Clips encoded together. Features do not depend on it.
    timeout_s
        Time limit for decoding one clip, in seconds.
    stopped
        Polled often; once true, the current clips are finished and the run ends.
    on_commit
        Called with the report so far and the clips that were just written.
    films
        Measure the stretches of these films that are not measured yet.
    """
    workers = workers or usable_cores()
    report = RunReport(engine="local")
    if clip_ids:
        warm_up(job.backbones)
    busy_before = gpu_busy_s(job.backbones)
    with (
        Recording(stage, clip_ids, report, on_commit) as recording,
        DecodePool(workers, timeout_s, job.decoder) as pool,
    ):
        decoded = pool.decode(job.tasks(clip_ids), 2 * workers + batch_size, stopped, films)
        batches = _batches(_timed(decoded, report), batch_size)
        for results in _encoded(Encoder(job.backbones), batches, report):
            if busy_before is not None:
                report.gpu_busy_s = (gpu_busy_s(job.backbones) or 0.0) - busy_before
            recording.commit(results)
        report.gpus = gpu_record(job.backbones)
        if films is not None:
            report.n_decoded += films.n_decoded
            report.decode_cpu_s += films.cpu_s
    return report


def _batches(clips: Iterator[DecodedClip], size: int) -> Iterator[list[DecodedClip]]:
    """Group decoded clips into batches of `size` readable clips; failed clips are added, not counted."""
    batch: list[DecodedClip] = []
    readable = 0
    for clip in clips:
        batch.append(clip)
        readable += clip.status != "failed"
        if readable == size:
            yield batch
            batch, readable = [], 0
    if batch:
        yield batch


def _encoded(
    encoder: Encoder, batches: Iterator[list[DecodedClip]], report: RunReport
) -> Iterator[list[ClipResult]]:
    """Encode batches; on a GPU results arrive one batch later."""
    for batch in batches:
        with _clock(report, "infer_s"):
            results = encoder.push(batch)
        if results:
            yield results
    with _clock(report, "infer_s"):
        results = encoder.finish()
    if results:
        yield results


def _timed(clips: Iterator[DecodedClip], report: RunReport) -> Iterator[DecodedClip]:
    """Yield clips unchanged; add their waiting and decoding times to the report."""
    while True:
        with _clock(report, "waited_s"):
            clip = next(clips, None)
        if clip is None:
            return
        report.decode_cpu_s += clip.cpu_s
        report.n_decoded += clip.n_decoded
        report.remarks.update(clip.remarks)
        yield clip


@contextmanager
def _clock(report: RunReport, name: str) -> Iterator[None]:
    before = time.perf_counter()
    yield
    setattr(report, name, getattr(report, name) + time.perf_counter() - before)
