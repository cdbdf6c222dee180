"""Record one run in a stage: commit clips, count them, and write a report."""

import json
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from obygaze_features.extraction.report import REPORTS, RunReport
from obygaze_features.io import write_whole
from obygaze_features.store import ClipResult, Stage

OnCommit = Callable[[RunReport, list[ClipResult]], None]


class Recording:
    """Everything that an engine writes, through one writer of the stage; used as a context manager.

    A run that ends, stopped or not, leaves `reports/NNNN.json` in the stage, NNNN being the number of its
    journal. It is no part of what is sealed: how long it took does not change what the features are.

    Parameters
    ----------
    on_commit
        Called with the report so far and the clips that were just written.

    Attributes
    ----------
    report
        The engine adds its seconds to it.
    """

    def __init__(self, stage: Stage, report: RunReport, on_commit: OnCommit) -> None:
        self.report = report
        self._stage = stage
        self._writer = stage.writer()
        self._on_commit = on_commit
        self._started = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        self.report.wall_s = self.elapsed_s()
        if kind is None and self.report.clips:
            folder = self._stage.path / REPORTS
            folder.mkdir(exist_ok=True)
            text = json.dumps(self.report.record(), indent=2) + "\n"
            write_whole(folder / f"{self._writer.name}.json", text)

    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self._started

    def commit(self, results: list[ClipResult]) -> None:
        """Make clips durable and count them."""
        before = time.perf_counter()
        self._writer.commit(results)
        self.report.write_s += time.perf_counter() - before
        for result in results:
            setattr(self.report, result.status, getattr(self.report, result.status) + 1)
            if result.groups:
                self.report.devices[str(result.source.get("device", "cpu"))] += 1
        self.report.wall_s = self.elapsed_s()
        self._on_commit(self.report, results)
