"""Count what a run does, commit its clips in a thread of its own, and leave a report in the stage."""

import json
import queue
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from obygaze_features.io import write_whole
from obygaze_features.store import ClipResult, Stage

REPORTS = "reports"  # folder of a stage, one file per run

AHEAD = 2
"""Most batches waiting to be written; a faster engine then waits for the disk."""


@dataclass
class RunReport:
    """Counts and seconds of one extraction run; updated by the engine during the run.

    Parameters
    ----------
    engine
        Name of the engine.
    encoders
        Processes that hold the backbones: with the engine `ray` one per GPU, else 1.
    waited_s, infer_s
        Seconds that all encoders together waited for decoded clips, and spent in the backbones.
    write_s
        Seconds of writing, in a separate thread that overlaps with other work.
    decode_cpu_s
        Processor seconds of all decode workers together.
    n_decoded
        Frames decoded, including those needed only to reach the sampled frames.
    gpu_busy_s
        Seconds for which the GPUs were busy, summed over GPUs; None without a GPU. If two processes share a
        GPU, the seconds of both are added.
    gpus
        GPU model -> compute capability, memory, peak memory in use, libraries, and the final clips at once of
        each backbone; empty without a GPU, and with the engine `ray`.
    devices
        GPU model, or `cpu` -> number of clips computed on it.
    remarks
        Note about clips that are not at fault (HDR, bars, repeated key frames) -> number of clips.
    """

    engine: Literal["local", "ray"] = "local"
    encoders: int = 1
    ok: int = 0
    partial: int = 0
    failed: int = 0
    wall_s: float = 0.0
    waited_s: float = 0.0
    infer_s: float = 0.0
    write_s: float = 0.0
    decode_cpu_s: float = 0.0
    n_decoded: int = 0
    gpu_busy_s: float | None = None
    gpus: dict[str, dict[str, Any]] = field(default_factory=dict)
    devices: Counter[str] = field(default_factory=Counter)
    remarks: Counter[str] = field(default_factory=Counter)

    @property
    def clips(self) -> int:
        """Clips processed in this run, including failed ones."""
        return self.ok + self.partial + self.failed

    def shares(self) -> dict[str, float]:
        """Split the wall time of an encoder into waiting for decoding, inference and writing, in percent."""
        total = max(self.wall_s, 1e-9)
        waited, infer = self.waited_s / self.encoders, self.infer_s / self.encoders
        parts = {"decode": waited, "infer": infer, "write": self.write_s}
        return {name: round(100 * seconds / total, 1) for name, seconds in parts.items()}

    def gpu_busy_percent(self) -> float | None:
        """Return the percentage of the run in which the GPU was busy; None without a GPU."""
        if self.gpu_busy_s is None:
            return None
        return round(100 * self.gpu_busy_s / max(self.wall_s * self.encoders, 1e-9), 1)

    def record(self) -> dict[str, object]:
        """Return all fields as plain values, for `--json`."""
        return {
            **asdict(self),
            "remarks": dict(sorted(self.remarks.items())),
            "clips": self.clips,
            "clips_per_s": round(self.clips / max(self.wall_s, 1e-9), 3),
            "decoded_frames_per_core_s": round(self.n_decoded / max(self.decode_cpu_s, 1e-9), 1),
            "shares_percent": self.shares(),
            "gpu_busy_percent": self.gpu_busy_percent(),
            "devices": dict(sorted(self.devices.items())),
            "peak_memory_mb": round(peak_memory_mb(), 1),
        }

    def sentence(self, unit: str = "clip") -> str:
        """Format as one line; `unit` names a row: clip or text. Texts are not decoded."""
        speed = [f"{self.clips / max(self.wall_s, 1e-9):.1f} {unit}s/s"]
        shares = self.shares()
        if unit == "clip":
            speed.append(f"{self.n_decoded / max(self.decode_cpu_s, 1e-9):.0f} decoded frames/s per core")
        else:
            del shares["decode"]
        busy = self.gpu_busy_percent()
        cards = [f"{name}, peak {card['peak_memory_mb']:,} MB" for name, card in self.gpus.items()]
        facts = [
            ", ".join(speed),
            ", ".join(f"{name} {percent:g} %" for name, percent in shares.items()),
            *([] if busy is None else [", ".join([f"GPU had work {busy:g} %", *cards])]),
            f"peak memory {peak_memory_mb():.0f} MB",
        ]
        return f"{self.clips} {unit}s in {self.wall_s:.1f} s ({'; '.join(facts)})"


OnCommit = Callable[[RunReport, list[ClipResult]], None]


class Recording:
    """Write the results of an engine through one writer of the stage; used as a context manager.

    A thread writes the clips while the engine continues. All clips are durable when the context ends. Every
    run that ends, stopped or not, leaves `reports/NNNN.json` in the stage, where NNNN is the number of its
    journal. The report is not sealed, because times do not affect the features.

    Parameters
    ----------
    clip_ids
        The clips that this run will do.
    on_commit
        Called in the engine's thread with the report so far and the clips just written.

    Attributes
    ----------
    report
        Report to which the engine adds its seconds.
    """

    def __init__(self, stage: Stage, clip_ids: Iterable[str], report: RunReport, on_commit: OnCommit) -> None:
        self.report = report
        self._stage = stage
        self._writer = stage.writer(clip_ids)
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
        if kind is not None:
            with suppress(OSError):
                self._writer.close()
            return
        self._writer.close()
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
        """Queue clips to be written, and count those already written.

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


def peak_memory_mb() -> float:
    """Return the peak resident memory of this process plus that of its largest finished worker, in MB."""
    unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes on macOS, kilobytes on Linux
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(resource.getrusage(each).ru_maxrss for each in who) / unit
