"""Record one run in a stage: commit clips in a separate thread, count them, and write a report."""

import json
import queue
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from obygaze_features.extraction.report import REPORTS, RunReport
from obygaze_features.io import write_whole
from obygaze_features.store import ClipResult, Stage

OnCommit = Callable[[RunReport, list[ClipResult]], None]


AHEAD = 2
"""Most batches waiting to be written; a faster engine then waits for the disk."""


class Recording:
    """Write the results of an engine through one writer of the stage; used as a context manager.

    A thread writes the clips while the engine continues. All clips are written when the context ends. Every
    run that ends, stopped or not, leaves `reports/NNNN.json` in the stage, where NNNN is the number of its
    journal. The report is not sealed, because times do not affect the features.

    Parameters
    ----------
    on_commit
        Called in the engine's thread with the report so far and the clips just written.

    Attributes
    ----------
    report
        Report to which the engine adds its seconds.
    """

    def __init__(self, stage: Stage, report: RunReport, on_commit: OnCommit) -> None:
        self.report = report
        self._stage = stage
        self._writer = stage.writer()
        self._on_commit = on_commit
        self._started = time.perf_counter()
        self._waiting: queue.Queue[list[ClipResult] | None] = queue.Queue(AHEAD)
        self._written: queue.SimpleQueue[tuple[list[ClipResult], float]] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write, name="writer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting.put(None)
        self._thread.join()
        self._writer.close()
        if kind is not None:
            return
        self._count_written()
        self.report.wall_s = self.elapsed_s()
        if self.report.clips:
            folder = self._stage.path / REPORTS
            folder.mkdir(exist_ok=True)
            text = json.dumps(self.report.record(), indent=2) + "\n"
            write_whole(folder / f"{self._writer.name}.json", text)

    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self._started

    def commit(self, results: list[ClipResult]) -> None:
        """Queue clips to be written durably, and count those already written.

        Raises
        ------
        StoreError, OSError
            As in `StageWriter.commit`, for these clips or earlier ones.
        """
        self._count_written()
        self._waiting.put(results)

    def _count_written(self) -> None:
        while not self._written.empty():
            results, seconds = self._written.get()
            self.report.write_s += seconds
            for result in results:
                setattr(self.report, result.status, getattr(self.report, result.status) + 1)
                if result.groups:
                    self.report.devices[str(result.source.get("device", "cpu"))] += 1
            self.report.wall_s = self.elapsed_s()
            self._on_commit(self.report, results)
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        """Write queued clips; after an error, only empty the queue, so that the engine does not wait."""
        while (results := self._waiting.get()) is not None:
            if self._error is not None:
                continue
            before = time.perf_counter()
            try:
                self._writer.commit(results)
            except BaseException as error:  # noqa: BLE001 - raised again in the engine's thread
                self._error = error
            else:
                self._written.put((results, time.perf_counter() - before))
