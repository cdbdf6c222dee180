"""The local engine: decode workers feed batches across clip borders; a thread writes what is done."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from obygaze_features.extraction.decode import DecodedClip
from obygaze_features.extraction.encode import Encoder, gpu_busy_s, gpu_record, warm_up
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.pool import DecodePool
from obygaze_features.extraction.recording import OnCommit, Recording
from obygaze_features.extraction.report import RunReport
from obygaze_features.io import usable_cores
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
) -> RunReport:
    """Extract some clips into a stage; the first decoded are the first encoded.

    Memory holds at most `2 * workers + batch_size` prepared clips (of films, whose windows are decoded in one
    pass, up to `PIECE_CLIPS` for each worker) and, in each worker, one full-size frame.

    Parameters
    ----------
    workers
        Decoders, each a process; None is as many as there are cores to use.
    batch_size
        Clips that go through a backbone together. What a clip gets does not depend on it.
    timeout_s
        The longest that decoding one clip may take.
    stopped
        Asked often; once true, the clips at hand are finished and the run ends.
    on_commit
        Called with the report so far and the clips that were just written.
    """
    workers = workers or usable_cores()
    report = RunReport(engine="local")
    if clip_ids:
        warm_up(job.backbones)
    busy_before = gpu_busy_s(job.backbones)
    with (
        Recording(stage, report, on_commit) as recording,
        DecodePool(workers, timeout_s, job.decoder) as pool,
    ):
        decoded = pool.decode(job.tasks(clip_ids), 2 * workers + batch_size, stopped)
        batches = _batches(_timed(decoded, report), batch_size)
        for results in _encoded(Encoder(job.backbones), batches, report):
            if busy_before is not None:
                report.gpu_busy_s = (gpu_busy_s(job.backbones) or 0.0) - busy_before
            recording.commit(results)
        report.gpus = gpu_record(job.backbones)
    return report


def _batches(clips: Iterator[DecodedClip], size: int) -> Iterator[list[DecodedClip]]:
    """Group decoded clips so that each batch holds `size` readable ones; failed clips ride along."""
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
    """Encode batches; on a card the results come one batch later."""
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
    """Pass clips on, noting how long each was waited for and what it cost to decode."""
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
