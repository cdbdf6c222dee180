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
from itertools import count
from math import ceil
from typing import Any, Protocol

from obygaze_features.errors import ExtractError
from obygaze_features.extraction.job import Job
from obygaze_features.extraction.loop import Decode, run_loop
from obygaze_features.extraction.pool import POLL_S
from obygaze_features.extraction.report import Run, RunReport, added
from obygaze_features.messages import pickled_for_workers
from obygaze_features.store import ClipResult, Stage, read_stage
from obygaze_features.store.provenance import clipped, contrasts
from obygaze_features.workers import Event

PARTS = 16
"""Parts into which the clips of a process that died are divided."""
ATTEMPTS = 3  # a machine may also kill a process: a clip fails after three deaths on it alone
MOST_DEATHS = 8
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
class _Share:
    """Clips that a process does, how often processes died on them, what was written, the report so far."""

    clip_ids: list[str]
    deaths: int = 0
    written: dict[str, ClipResult] = field(default_factory=dict)
    report: RunReport = field(default_factory=RunReport)


class LoopWorker:
    """Runs the loop in another process, which keeps the networks from one share to the next.

    Parameters
    ----------
    job
        With a recipe for every backbone.
    stage
        The stage that it writes to.
    batch_size
        As in `run_loop`.
    """

    def __init__(self, job: Job, stage: Stage, batch_size: int) -> None:
        if len(job.recipes) != len(job.backbones):
            raise ExtractError("several processes build the backbones: give their names, or a Recipe")
        manifest = replace(job.manifest, root=job.manifest.root.absolute())
        # Unpickled where its GPU is set: the settings of some networks initialise CUDA.
        self._pickled = pickled_for_workers(replace(job, backbones=(), manifest=manifest))
        self._provenance = {group.name: group.provenance for group in job.groups()}
        self._stage = stage.path.absolute()
        self._batch_size = batch_size
        self._begun: tuple[Job, Stage, threading.Event] | None = None

    def begin(self) -> tuple[Job, Stage, threading.Event]:
        """Build the networks and open the stage, if that was not done yet; return them and the wish to stop.

        Raises
        ------
        ExtractError
            The features would be others than those of the main process.
        BackboneError, StoreError
            A backbone cannot be built, or the stage cannot be opened.
        """
        if self._begun is None:
            job = pickle.loads(self._pickled)  # noqa: S301 - from the main process
            job = replace(job, backbones=tuple(recipe.build() for recipe in job.recipes))
            here = {group.name: group.provenance for group in job.groups()}
            if contrast := worded_contrast(here, self._provenance):
                raise ExtractError(f"gives other numbers than the main process: {contrast}")
            self._begun = job, read_stage(self._stage), threading.Event()
        return self._begun

    def do(self, clip_ids: Sequence[str], decode: Decode) -> Run:
        """Do clips, which are given without their features."""
        job, stage, stop = self.begin()
        how: dict[str, Any] = {"batch_size": self._batch_size, "stopped": stop.is_set}
        for report, results in run_loop(job, stage, clip_ids, decode, **how):
            yield report, [replace(result, groups={}) for result in results]

    def stop(self) -> None:
        """Finish the current clips and do no others."""
        if self._begun is not None:
            self._begun[2].set()


def worded_contrast(there: object, here: object) -> str:
    """Say in which fields of its record another process differs from the main one; empty if in none."""
    return "; ".join(
        f"{field} is {clipped(a)} there and {clipped(b)} here" for field, a, b in contrasts(there, here)[:3]
    )


def share_out(
    stage: Stage,
    clip_ids: Sequence[str],
    processes: WorkerProcesses,
    report: RunReport,
    *,
    stopped: Callable[[], bool],
) -> Run:
    """Extract some clips with several processes; the reports are the sum of theirs.

    Parameters
    ----------
    report
        What was done before; its engine and number of encoders are those of the sum.
    stopped
        Polled often; once true, all processes finish their current clips and the run ends.

    Raises
    ------
    ExtractError
        If processes die again and again without finishing a clip.
    """
    shares, keys = _Shares(stage, clip_ids, report, 2 * processes.workers), count()
    while True:
        while len(shares.running) < processes.workers and not stopped() and (share := shares.take()):
            key: Hashable = next(keys)
            shares.running[key] = share
            processes.put(key, share.clip_ids)
        if not shares.running:
            yield shares.together(), []
            return
        for key in shares.running if stopped() else ():
            processes.tell(key, "stop")
        event = processes.get(POLL_S)
        if event is not None and event.kind == "item":
            shares.deaths = 0
            share = shares.running[event.key]
            share.report, results = event.value
            share.written |= {result.clip_id: result for result in results}
            yield shares.together(), results
        elif event is not None:
            share = shares.running.pop(event.key)
            shares.ended.append(share.report)
            if event.kind == "died" and (failed := shares.divide(share, event.value)):
                yield shares.together(), failed


class _Shares:
    """The shares that are being done and are still to be done; deaths without a clip in between."""

    def __init__(self, stage: Stage, clip_ids: Sequence[str], report: RunReport, divisor: int) -> None:
        self.running: dict[Hashable, _Share] = {}
        self.ended = [report]
        self.deaths = 0
        self._report, self._started, self._divisor = report, time.perf_counter(), divisor
        self._stage, self._before = stage, stage.best()
        self._pieces = deque(_pieces(stage, clip_ids))
        self._again = deque[_Share]()

    def take(self) -> _Share | None:
        """Take the next share; None if there is none now."""
        if self._again:
            return self._again.popleft()
        n_pieces = ceil(len(self._pieces) / self._divisor)
        return _Share(_joined([self._pieces.popleft() for _ in range(n_pieces)])) if n_pieces else None

    def together(self) -> RunReport:
        """Sum the reports."""
        total = added([*self.ended, *(share.report for share in self.running.values())])
        spent = time.perf_counter() - self._started
        return replace(total, engine=self._report.engine, encoders=self._report.encoders, wall_s=spent)

    def divide(self, share: _Share, how: str) -> list[ClipResult]:
        """Queue what a process that died has left, in parts; a clip that was left alone may fail."""
        self.deaths += 1
        if self.deaths == MOST_DEATHS:
            raise ExtractError(
                f"the processes that held the networks died {self.deaths} times in a row ({how}); "
                f"{len(self._stage.missing())} clips are left; the same command goes on"
            )
        clips = self._left(share.clip_ids)
        for clip in share.written.keys() & set(clips):  # of a piece that was open
            share.report.count(share.written[clip], -1)
        if len(clips) == 1 and share.deaths + 1 == ATTEMPTS:
            reason = f"the process that held the networks died on this clip {ATTEMPTS} times"
            return fail(self._stage, clips, reason, self._report)
        units = _pieces(self._stage, clips)
        units = units if len(units) > 1 else [[clip] for clip in clips]
        size = ceil(len(units) / PARTS) or 1
        parts = [_joined(units[first : first + size]) for first in range(0, len(units), size)]
        self._again += [_Share(part, share.deaths + 1 if part == share.clip_ids else 0) for part in parts]
        return []

    def _left(self, clip_ids: Sequence[str]) -> list[str]:
        now, row = self._stage.best(), self._stage.rows
        return [clip for clip in clip_ids if now.get(row[clip]) == self._before.get(row[clip])]


def fail(stage: Stage, clip_ids: Sequence[str], reason: str, report: RunReport) -> list[ClipResult]:
    """Write and count clips that failed."""
    failed = [ClipResult(clip, "failed", reason) for clip in clip_ids]
    with stage.writer(clip_ids) as writer:
        writer.commit(failed)
    for result in failed:
        report.count(result)
    return failed


def _pieces(stage: Stage, clip_ids: Sequence[str]) -> list[list[str]]:
    pieces: dict[int, list[str]] = {}
    for clip in clip_ids:
        pieces.setdefault(stage.piece(clip), []).append(clip)
    return list(pieces.values())


def _joined(pieces: Sequence[Sequence[str]]) -> list[str]:
    return [clip for piece in pieces for clip in piece]
