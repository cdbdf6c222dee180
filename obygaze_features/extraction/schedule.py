"""Give several processes the pieces of a stage that each does next, and go on when one of them dies.

A process gets some pieces at a time: half of an even share of what is left, so that all end together. What is
left of them when it dies is divided, down to single clips: a clip fails if processes die on it alone. The
features do not depend on which process does a clip.
"""

import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from math import ceil
from typing import Any, NamedTuple, Protocol

from obygaze_features.errors import ExtractError
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.loop import Decode, run_loop
from obygaze_features.extraction.pool import POLL_S
from obygaze_features.extraction.report import Run, RunReport, sum_reports
from obygaze_features.messages import pickled_for_workers
from obygaze_features.store import ClipResult, Stage, read_stage
from obygaze_features.store.provenance import clipped, contrasts
from obygaze_features.text import counted
from obygaze_features.workers import Event

PARTS_AFTER_DEATH = 16
"""Parts into which the clips of a process that died are divided."""
ATTEMPTS = 3
"""Processes that may die on a clip alone before it fails; the machine, too, may kill one."""
MOST_DEATHS_IN_A_ROW = 8
"""Deaths without a clip in between after which the run ends; a single clip at fault causes at most seven."""


class WorkerProcesses(Protocol):
    """What runs the loop in several processes: a `WorkerPool` of them, or a Ray cluster."""

    workers: int

    def put(self, key: Hashable, task: Any) -> None:
        """Queue clip ids. The process that does them gives items (report so far, results), then an event."""

    def get(self, timeout_s: float) -> Event | None:
        """Wait for the next event; None after the timeout."""

    def tell(self, key: Hashable, message: Any) -> None:
        """Ask the process that does a task to finish the current clips."""


@dataclass(slots=True)
class _Assignment:
    """Clips that are given to one process together.

    Attributes
    ----------
    clip_ids
        The clips.
    deaths
        How often processes died on just these clips.
    written
        Clip id -> its result, of the clips that are written.
    report
        The process's report so far.
    """

    clip_ids: list[str]
    deaths: int = 0
    written: dict[str, ClipResult] = field(default_factory=dict)
    report: RunReport = field(default_factory=RunReport)


class LoopWorker:
    """Runs `run_loop` in another process, which keeps its networks from one share of clips to the next.

    Parameters
    ----------
    job
        A job with a recipe for every backbone.
    stage
        The stage that it writes to.
    batch_size
        As in `run_loop`.

    Raises
    ------
    ExtractError
        A backbone of the job has no recipe.
    """

    def __init__(self, job: Job, stage: Stage, batch_size: int) -> None:
        """Pickle the job without its backbones, which `begin` builds in the other process."""
        if len(job.recipes) != len(job.backbones):
            raise ExtractError("several processes build the backbones: give their names, or a Recipe")
        manifest = replace(job.manifest, root=job.manifest.root.absolute())
        # Unpickled where its GPU is set: the settings of some networks initialise CUDA.
        self._pickled = pickled_for_workers(replace(job, backbones=(), manifest=manifest))
        self._provenance = {group.name: group.provenance for group in job.groups()}
        self._stage = stage.path.absolute()
        self._batch_size = batch_size
        self._begun: LoopState | None = None  # what `begin` has built in the other process

    def begin(self) -> "LoopState":
        """Build the networks and open the stage, if that was not done yet.

        Raises
        ------
        ExtractError
            The features would differ from those of the main process.
        BackboneError, StoreError
            A backbone cannot be built, or the stage cannot be opened.
        """
        if self._begun is None:
            job = pickle.loads(self._pickled)  # noqa: S301 - from the main process
            job = replace(job, backbones=tuple(recipe.build() for recipe in job.recipes))
            provenance = {group.name: group.provenance for group in job.groups()}
            differences = describe_differences(provenance, self._provenance)
            if differences:
                raise ExtractError(f"gives other numbers than the main process: {differences}")
            self._begun = LoopState(job, read_stage(self._stage), threading.Event())
        return self._begun

    def do(self, clip_ids: Sequence[str], decode: Decode) -> Run:
        """Extract clips; yield reports and results without the features, which are in the stage."""
        state = self.begin()
        run = run_loop(
            state.job,
            state.stage,
            clip_ids,
            decode,
            batch_size=self._batch_size,
            stopped=state.stop.is_set,
        )
        for report, results in run:
            yield report, [replace(result, groups={}) for result in results]

    def stop(self) -> None:
        """Finish the current clips and start no others."""
        if self._begun is not None:
            self._begun.stop.set()


class LoopState(NamedTuple):
    """What a process builds once, for all its shares.

    Attributes
    ----------
    job
        With its backbones.
    stop
        Is set to finish the current clips and do no others.
    """

    job: Job
    stage: Stage
    stop: threading.Event


def describe_differences(there: object, here: object) -> str:
    """Describe up to three fields in which records of another process and of the main process differ.

    Parameters
    ----------
    there, here
        Records of the other and of the main process, made of dicts, lists and values.

    Returns
    -------
    str
        Empty if the records are equal.
    """
    phrases = []
    for field_name, value_there, value_here in contrasts(there, here)[:3]:
        phrases.append(f"{field_name} is {clipped(value_there)} there and {clipped(value_here)} here")
    return "; ".join(phrases)


def extract_in_processes(
    stage: Stage,
    clip_ids: Sequence[str],
    processes: WorkerProcesses,
    report: RunReport,
    *,
    stopped: Callable[[], bool],
) -> Run:
    """Extract some clips with several processes, and yield the sum of their reports and new results.

    Parameters
    ----------
    stage, clip_ids
        The stage, and the clips to extract into it.
    processes
        The processes, each of which runs the loop.
    report
        What was done before; its engine and number of encoders are those of the sum.
    stopped
        Polled often; once true, all processes finish their current clips and the run ends.

    Raises
    ------
    ExtractError
        If processes die again and again without finishing a clip.
    """
    shares = _Assignments(stage, clip_ids, report, divisor=2 * processes.workers)
    keys = count()
    while True:
        while len(shares.running) < processes.workers and not stopped():
            share = shares.take()
            if share is None:
                break
            key = next(keys)
            shares.running[key] = share
            processes.put(key, share.clip_ids)
        if not shares.running:
            yield shares.summed_report(), []
            return
        if stopped():
            for running_key in shares.running:
                processes.tell(running_key, "stop")
        event = processes.get(POLL_S)
        if event is None:
            continue
        if event.kind == "item":
            results = shares.record(event)
            yield shares.summed_report(), results
        else:
            failed = shares.end(event)
            if failed:
                yield shares.summed_report(), failed


class _Assignments:
    """The shares of clips that processes extract now, and the pieces that are not shared out yet.

    Parameters
    ----------
    stage, clip_ids
        The stage, and the clips to extract into it.
    report
        Report on the clips that were done before the run.
    divisor
        A share has the remaining pieces divided by this number, rounded up. It is twice the number of
        processes, so that shares get smaller and all processes end at about the same time.

    Attributes
    ----------
    running
        Task's key -> its share, of the shares that processes extract now.
    """

    def __init__(self, stage: Stage, clip_ids: Sequence[str], report: RunReport, *, divisor: int) -> None:
        """Divide the clips into pieces; no process has a share yet."""
        self._stage = stage
        self._divisor = divisor
        self._started = time.perf_counter()
        # What is still to do: the clip ids of each piece that was in no share yet, and parts of the shares
        # whose process died.
        self._pieces = deque(_pieces(stage, clip_ids))
        self._parts_to_retry = deque[_Assignment]()
        # What is being done.
        self.running: dict[Hashable, _Assignment] = {}
        # What was done: before the run, and in the shares that ended.
        self._report = report
        self._reports_of_ended = [report]
        # Row -> its best journal entry when the run began, by which a clip that was written since shows.
        self._best_before = stage.best_entries()
        self._deaths_in_a_row = 0  # of processes, without a finished clip in between

    def take(self) -> _Assignment | None:
        """Return the next share to give to a process; None if no clips are left to give."""
        if self._parts_to_retry:
            return self._parts_to_retry.popleft()
        n_pieces = ceil(len(self._pieces) / self._divisor)
        if n_pieces == 0:
            return None
        pieces = [self._pieces.popleft() for _ in range(n_pieces)]
        return _Assignment(_joined(pieces))

    def record(self, event: Event) -> list[ClipResult]:
        """Store the report and results that a process has sent in its running share; return the results."""
        results: list[ClipResult]
        share = self.running[event.key]
        share.report, results = event.value
        share.written |= {result.clip_id: result for result in results}
        self._deaths_in_a_row = 0
        return results

    def end(self, event: Event) -> list[ClipResult]:
        """End a share; if its process died, queue the clips that are not done, or fail a single clip.

        Returns
        -------
        list
            The clip that failed, if any.

        Raises
        ------
        ExtractError
            Too many processes in a row died without finishing a clip.
        """
        share = self.running.pop(event.key)
        self._reports_of_ended.append(share.report)
        if event.kind != "died":
            return []
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row == MOST_DEATHS_IN_A_ROW:
            n_deaths = self._deaths_in_a_row
            raise ExtractError(
                f"the processes that held the networks died {n_deaths} times in a row ({event.value}); "
                f"{counted(len(self._stage.missing()), 'clip is', 'clips are')} left; the "
                "same command goes on"
            )
        undone = self._undone(share.clip_ids)
        self._subtract_lost(share, undone)
        is_last_attempt = share.deaths + 1 == ATTEMPTS
        if len(undone) == 1 and is_last_attempt:
            reason = f"the process that held the networks died on this clip {ATTEMPTS} times"
            return write_failed(self._stage, undone, reason, self._report)
        self._divide(share, undone)
        return []

    def _subtract_lost(self, share: _Assignment, undone: Sequence[str]) -> None:
        """Subtract from the report of a process that died the clips that it reported, and that are not done.

        They were written to a piece of the stage that was still open when the process died.
        """
        for clip in share.written.keys() & set(undone):
            share.report.count(share.written[clip], -1)

    def summed_report(self) -> RunReport:
        """Sum the reports of all shares and of what was done before."""
        total = sum_reports([*self._reports_of_ended, *(share.report for share in self.running.values())])
        wall_s = time.perf_counter() - self._started
        return replace(total, engine=self._report.engine, encoders=self._report.encoders, wall_s=wall_s)

    def _divide(self, share: _Assignment, undone: Sequence[str]) -> None:
        """Queue the undone clips of a process that died, in at most `PARTS_AFTER_DEATH` parts.

        If all are of one piece, the parts are of single clips.
        """
        units = _pieces(self._stage, undone)  # lists of clips that stay together
        if len(units) == 1:
            units = [[clip] for clip in undone]
        units_per_part = max(ceil(len(units) / PARTS_AFTER_DEATH), 1)
        for first in range(0, len(units), units_per_part):
            clip_ids = _joined(units[first : first + units_per_part])
            # Deaths are counted for the same clips: of a smaller part it is not known that it was at fault.
            is_same_share = clip_ids == share.clip_ids
            deaths = share.deaths + 1 if is_same_share else 0
            self._parts_to_retry.append(_Assignment(clip_ids, deaths))

    def _undone(self, clip_ids: Sequence[str]) -> list[str]:
        """Return the clips whose row in the stage is still the one from before the run."""
        best = self._stage.best_entries()
        rows = self._stage.rows
        return [clip for clip in clip_ids if best.get(rows[clip]) == self._best_before.get(rows[clip])]


def write_failed(stage: Stage, clip_ids: Sequence[str], reason: str, report: RunReport) -> list[ClipResult]:
    """Write clips to the stage as failed for one reason, count them, and return their results."""
    failed = [ClipResult(clip, "failed", reason) for clip in clip_ids]
    with stage.writer(clip_ids) as writer:
        writer.commit(failed)
    for result in failed:
        report.count(result)
    return failed


def _pieces(stage: Stage, clip_ids: Sequence[str]) -> list[list[str]]:
    """Group clips by the piece of the stage in which their rows are."""
    pieces: dict[int, list[str]] = {}
    for clip in clip_ids:
        pieces.setdefault(stage.piece(clip), []).append(clip)
    return list(pieces.values())


def _joined(pieces: Sequence[Sequence[str]]) -> list[str]:
    """Join the clips of some pieces into one list."""
    return list(chain.from_iterable(pieces))
