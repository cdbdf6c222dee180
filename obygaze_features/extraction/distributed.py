"""Run extraction on several machines: a child process leads a Ray cluster, this process writes the stage.

Only the stage's journal, written by this process, records which clips are done. If a worker dies, the clips
it was processing are tried again, at most three times.
"""

import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from obygaze_features.errors import ExtractError
from obygaze_features.extraction.encode import uses_gpu
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.leader import Encoded, Note, Order, Pools, led, reach
from obygaze_features.extraction.recording import OnCommit, Recording
from obygaze_features.extraction.report import RunReport
from obygaze_features.io import NO_SUCH_FILE
from obygaze_features.store import ClipResult, Stage
from obygaze_features.store.missing_videos import missing_files

LONGEST_FOLDER = 40  # Ray's socket paths add up to 60 characters; AF_UNIX allows 107


def run_ray(
    job: Job,
    stage: Stage,
    clip_ids: Sequence[str],
    *,
    workers: int | None,
    batch_size: int,
    timeout_s: float,
    stopped: Callable[[], bool] = lambda: False,
    on_commit: OnCommit = lambda *_: None,
    note: Callable[[str], object] = warnings.warn,
) -> RunReport:
    """Extract some clips into a stage on the Ray cluster at RAY_ADDRESS, or on one started for the run.

    Results arrive in any order; only this process writes to the stage. Every node must have the videos, and
    weights given as files, under the same path.

    Parameters
    ----------
    workers
        Decoders, one core each; None, or a larger number, uses all cores of the cluster.
    batch_size
        Clips encoded together. Features do not depend on it.
    timeout_s
        Time limit for decoding one clip, in seconds.
    stopped
        Polled often; once true, nothing more is written and the run ends.
    on_commit
        Called with the report so far and the clips that were just written.
    note
        Called with messages for the user during the run: the nodes in use, a wait for cores.

    Raises
    ------
    ExtractError
        If the job has no recipes, no cluster is available, its head is lost, a node lacks a video that this
        process finds, a node would compute other features than this process, or the child ends.
    """
    if len(job.recipes) != len(job.backbones):
        raise ExtractError("the engine 'ray' needs a recipe for every backbone")
    report = RunReport(engine="ray")
    with Recording(stage, report, on_commit) as recording:
        if not clip_ids:
            return report
        tasks = [
            replace(
                task, path=task.path and task.path.absolute()
            )  # workers have a working folder of their own
            for task in job.tasks(clip_ids)
        ]
        absent = missing_files(task.path for task in tasks if task.path)
        here = [task for task in tasks if task.path not in absent]
        recording.commit(
            [ClipResult(task.clip_id, "failed", NO_SUCH_FILE) for task in tasks if task.path in absent]
        )
        if not here:
            return report
        address = os.environ.get("RAY_ADDRESS") or None
        if address:
            reach(address)
        with _folder(address) as folder:
            order = Order(
                job=job.without_backbones(),
                tasks=here,
                provenance={group.name: group.provenance for group in job.groups()},
                on_gpu=any(uses_gpu(backbone) for backbone in job.backbones),
                address=address,
                folder=folder,
                workers=workers,
                batch_size=batch_size,
                timeout_s=timeout_s,
            )
            with led(order, stopped) as messages:
                for message in messages:
                    if isinstance(message, Note):
                        note(message.text)
                    elif isinstance(message, Pools):
                        report.encoders = message.encoders
                    elif isinstance(message, Encoded):
                        _count(message, report)
                        report.waited_s = max(recording.elapsed_s() * report.encoders - report.infer_s, 0.0)
                        recording.commit(message.results)
    return report


def _count(encoded: Encoded, report: RunReport) -> None:
    report.infer_s += encoded.infer_s
    report.decode_cpu_s += encoded.decode_cpu_s
    report.n_decoded += encoded.n_decoded
    report.remarks.update(encoded.remarks)
    if encoded.gpu_busy_s is not None:
        report.gpu_busy_s = (report.gpu_busy_s or 0.0) + encoded.gpu_busy_s


@contextmanager
def _folder(address: str | None) -> Iterator[str | None]:
    """Make the folder of a cluster that is started for the run, and remove it afterwards."""
    if address:
        yield None
        return
    temporary = tempfile.gettempdir()
    short = temporary if len(temporary) <= LONGEST_FOLDER else "/tmp"  # noqa: S108 - private folder in it
    folder = Path(tempfile.mkdtemp(prefix="oby", dir=short))
    try:
        yield str(folder)
    finally:
        for _ in range(50):  # Ray's processes end soon after their leader, and write until then
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.1)
