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
from obygaze_features.extraction.loop import DecodeAll, run_loop
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
MAX_DEATHS_IN_A_ROW = 8
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
    """Clips that are assigned to one process together.

    Attributes
    ----------
    clip_ids
        The clips.
    n_deaths
        How many processes died while they did just these clips.
    written
        Clip id -> its result, of the clips that are written.
    report
        The process's report so far.
    """

    clip_ids: list[str]
    n_deaths: int = 0
    written: dict[str, ClipResult] = field(default_factory=dict)
    report: RunReport = field(default_factory=RunReport)


class LoopWorker:
    """Runs `run_loop` in another process, which keeps its networks from one assignment to the next.

    It is made in the main process and pickled; its methods are called in the other process.

    Parameters
    ----------
    job
        A job with a recipe for every backbone.
    stage
        The stage that it writes to.
    batch_size
        Clips that are encoded together.

    Raises
    ------
    ExtractError
        A backbone of the job has no recipe.
    """

    def __init__(self, job: Job, stage: Stage, batch_size: int) -> None:
        """Pickle the job without its backbones, which `begin` builds in the other process.

        The provenance of the backbones here is kept, for a comparison with those that are built there.
        """
        if len(job.recipes) != len(job.backbones):
            raise ExtractError("several processes build the backbones: give their names, or a Recipe")
        manifest = replace(job.manifest, root=job.manifest.root.absolute())
        # Bytes, so that `begin` unpickles the job after its process has chosen a GPU: unpickling the settings
        # of some networks initialises CUDA.
        self._pickled_job = pickled_for_workers(replace(job, backbones=(), manifest=manifest))
        self._provenance = {group.name: group.provenance for group in job.groups()}
        self._stage = stage.path.absolute()
        self._batch_size = batch_size
        self._begun: LoopState | None = None  # what `begin` has built in the other process

    def begin(self) -> "LoopState":
        """Build the networks and open the unfinished store in this process, if that was not done yet.

        Raises
        ------
        ExtractError
            The features would differ from those of the main process.
        BackboneError, StoreError
            A backbone cannot be built, or the stage cannot be opened.
        """
        if self._begun is None:
            job = pickle.loads(self._pickled_job)  # noqa: S301 - from the main process
            job = replace(job, backbones=tuple(recipe.build() for recipe in job.recipes))
            provenance = {group.name: group.provenance for group in job.groups()}
            differences = describe_differences(provenance, self._provenance)
            if differences:
                # Callers put the name of the process before it.
                raise ExtractError(f"gives other numbers than the main process: {differences}")
            self._begun = LoopState(job, read_stage(self._stage), threading.Event())
        return self._begun

    def do(self, clip_ids: Sequence[str], decode: DecodeAll) -> Run:
        """Extract clips into the unfinished store; yield the report so far, and what was written since.

        The yielded results have no features, which are in the store and need not be sent to the main process.

        Parameters
        ----------
        clip_ids
            The clips.
        decode
            Decodes them.
        """
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
    """What a process builds once, for all its assignments.

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
    """Divide clips among several processes that extract them; yield the sum of reports, and new results.

    Parameters
    ----------
    stage, clip_ids
        The unfinished store, and the clips to extract into it.
    processes
        The processes, each of which decodes, encodes and writes the clips that it gets.
    report
        Report on the clips that were done before, which is added to the sums.
    stopped
        Polled often; once true, all processes finish their current clips and the run ends.

    Raises
    ------
    ExtractError
        If processes die again and again without finishing a clip.
    """
    assignments = _Assignments(stage, clip_ids, report, n_processes=processes.workers)
    keys = count()  # of assignments: 0, 1, ...
    while True:
        # Give clips to each process that has none.
        while len(assignments.running) < processes.workers and not stopped():
            assignment = assignments.take_next()
            if assignment is None:  # no clips are left to assign
                break
            key = next(keys)
            assignments.running[key] = assignment
            processes.put(key, assignment.clip_ids)
        if not assignments.running:
            yield assignments.summed_report(), []
            return
        if stopped():
            for running_key in assignments.running:
                processes.tell(running_key, "stop")

        # Wait for the next message of a process, or for its end.
        event = processes.get(POLL_S)
        if event is None:
            continue
        if event.kind == "item":  # a report, and results of clips
            results = assignments.record(event)
            yield assignments.summed_report(), results
        else:  # the process has done its assignment, or has died
            failed = assignments.end(event)
            if failed:
                yield assignments.summed_report(), failed


class _Assignments:
    """The clips that are assigned to processes now, and those that are still to be assigned.

    Parameters
    ----------
    stage, clip_ids
        The stage, and the clips to extract into it.
    report
        Report on the clips that were done before the run.
    n_processes
        Number of processes.

    Attributes
    ----------
    running
        Key -> assignment, of the assignments that processes do now.
    """

    def __init__(self, stage: Stage, clip_ids: Sequence[str], report: RunReport, *, n_processes: int) -> None:
        """Group the clips by pieces (16 neighbouring rows) of the stage; nothing is assigned yet."""
        self._stage = stage
        self._n_processes = n_processes
        self._started_s = time.perf_counter()
        # To do: the clip ids of each piece that was not assigned yet, and parts of assignments whose process
        # died
        self._pieces = deque(_pieces(stage, clip_ids))
        self._parts_to_retry = deque[_Assignment]()
        # In work, each with its key
        self.running: dict[Hashable, _Assignment] = {}
        # Done: reports on clips before the run, and on assignments that ended
        self._report_before = report
        self._reports_of_ended = [report]
        # Row -> its best journal entry when the run began. A row with another entry was written since.
        self._best_before = stage.best_entries()
        self._n_deaths_in_a_row = 0  # of processes, without a finished clip in between

    def take_next(self) -> _Assignment | None:
        """Take the clips to give to the process that is free next; None if no clips are left to give.

        It gets half of an even share of what remains. So assignments get smaller and smaller, and all
        processes end at about the same time. Clips are given by whole pieces (blocks of rows of the store).
        """
        if self._parts_to_retry:
            return self._parts_to_retry.popleft()
        if not self._pieces:
            return None
        even_share = len(self._pieces) / self._n_processes
        n_pieces = ceil(even_share / 2)
        pieces = [self._pieces.popleft() for _ in range(n_pieces)]
        clip_ids = list(chain.from_iterable(pieces))
        return _Assignment(clip_ids)

    def record(self, event: Event) -> list[ClipResult]:
        """Store the report and the results that a process has sent; return the results.

        Each report replaces the one before, as it is on all that the process did for its assignment.

        Parameters
        ----------
        event
            The message of the process: its report so far, and results of clips that it has written.
        """
        report: RunReport
        results: list[ClipResult]
        report, results = event.value
        assignment = self.running[event.key]
        assignment.report = report
        assignment.written |= {result.clip_id: result for result in results}
        self._n_deaths_in_a_row = 0
        return results

    def end(self, event: Event) -> list[ClipResult]:
        """Handle the end of an assignment; if its process died, queue the clips that are not done again.

        A clip fails if `ATTEMPTS` processes have died while they did it alone.

        Returns
        -------
        list
            Result of the clip that failed, if any.

        Raises
        ------
        ExtractError
            Too many processes in a row died without finishing a clip.
        """
        assignment = self.running.pop(event.key)
        self._reports_of_ended.append(assignment.report)
        has_died = event.kind == "died"
        if not has_died:
            return []

        self._count_death(event)  # raises after too many
        undone_ids = self._undone(assignment.clip_ids)
        # Some of these the process had counted in its report, but they were lost when it died.
        self._subtract_lost(assignment, undone_ids)
        is_single_clip = len(undone_ids) == 1
        is_last_attempt = assignment.n_deaths + 1 == ATTEMPTS  # with this death
        if is_single_clip and is_last_attempt:
            # Its process cannot report the failed clip any more, so that it is counted with what was before.
            reason = f"the process that held the networks died on this clip {ATTEMPTS} times"
            return write_failed(self._stage, undone_ids, reason, self._report_before)
        self._divide(assignment, undone_ids)
        return []

    def _count_death(self, event: Event) -> None:
        """Count the death of a process; raise an ExtractError if it is one too many in a row."""
        self._n_deaths_in_a_row += 1
        n_deaths = self._n_deaths_in_a_row
        if n_deaths == MAX_DEATHS_IN_A_ROW:
            raise ExtractError(
                f"the processes that held the networks died {n_deaths} times in a row ({event.value}); "
                f"{counted(len(self._stage.missing()), 'clip is', 'clips are')} left; the "
                "same command goes on"
            )

    def _subtract_lost(self, assignment: _Assignment, undone_ids: Sequence[str]) -> None:
        """Subtract clips that were lost when a process died from its report.

        A process reports a clip as soon as it has written it, but the clip is done only once its piece (a
        file of several clips) is closed. Clips of the piece that was open when the process died are reported
        and undone: they are lost.

        Parameters
        ----------
        assignment
            The clips that the process had to do, with its report.
        undone_ids
            Those that are not done.
        """
        lost_ids = assignment.written.keys() & set(undone_ids)
        for clip_id in lost_ids:
            assignment.report.count(assignment.written[clip_id], n=-1)

    def summed_report(self) -> RunReport:
        """Return the report of the whole run so far: the sum of the reports on all assignments.

        Not all of it is a sum. Which engine works, and with how many encoders, holds for the whole run, and
        was in the report that the run began with: processes do not know it. The time is that of the clock,
        as processes work at the same time.
        """
        reports_of_running = [assignment.report for assignment in self.running.values()]
        total = sum_reports([*self._reports_of_ended, *reports_of_running])
        first_report = self._report_before
        wall_s = time.perf_counter() - self._started_s
        return replace(total, engine=first_report.engine, encoders=first_report.encoders, wall_s=wall_s)

    def _divide(self, assignment: _Assignment, undone_ids: Sequence[str]) -> None:
        """Queue the clips that a dead process left undone again, in at most `PARTS_AFTER_DEATH` assignments.

        So a clip at which processes die is soon alone in its assignment. Clips of a piece (block of rows of
        the store) stay together, unless all are of one piece: then single clips are divided.

        Parameters
        ----------
        assignment
            What the process had to do.
        undone_ids
            Its clips that are not done.
        """
        units = _pieces(self._stage, undone_ids)  # lists of clips that stay together
        are_of_one_piece = len(units) == 1
        if are_of_one_piece:
            units = [[clip_id] for clip_id in undone_ids]

        units_per_part = max(ceil(len(units) / PARTS_AFTER_DEATH), 1)
        for first in range(0, len(units), units_per_part):
            clip_ids = list(chain.from_iterable(units[first : first + units_per_part]))
            # Deaths count for the same clips only: a smaller part need not have the clip that is at fault.
            has_same_clips = clip_ids == assignment.clip_ids
            n_deaths = assignment.n_deaths + 1 if has_same_clips else 0
            self._parts_to_retry.append(_Assignment(clip_ids, n_deaths))

    def _undone(self, clip_ids: Sequence[str]) -> list[str]:
        """Return which of some clips were not written since the run began.

        The store's journal has an entry for each written clip: it is not written if its row has the same best
        entry as at the beginning, or still none.
        """
        best_now = self._stage.best_entries()  # row -> its best entry
        undone_ids = []
        for clip_id in clip_ids:
            row = self._stage.rows[clip_id]
            was_written = best_now.get(row) != self._best_before.get(row)
            if not was_written:
                undone_ids.append(clip_id)
        return undone_ids


def write_failed(stage: Stage, clip_ids: Sequence[str], reason: str, report: RunReport) -> list[ClipResult]:
    """Record clips in the unfinished store as failed for one reason; return their results.

    Parameters
    ----------
    stage, clip_ids
        The store, and the clips.
    reason
        Why they failed.
    report
        Report of the run, in which they are counted.
    """
    results = [ClipResult(clip_id, "failed", reason) for clip_id in clip_ids]
    with stage.writer(clip_ids) as writer:
        writer.commit(results)
    for result in results:
        report.count(result)
    return results


def _pieces(stage: Stage, clip_ids: Sequence[str]) -> list[list[str]]:
    """Group clips by the piece (16 neighbouring rows) of the unfinished store that they belong to."""
    clips_of_piece: dict[int, list[str]] = {}
    for clip_id in clip_ids:
        clips_of_piece.setdefault(stage.piece(clip_id), []).append(clip_id)
    return list(clips_of_piece.values())
