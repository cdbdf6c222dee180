"""Count what a run does, write its clips in a separate thread, and leave a report in the stage."""

import json
import sys
import time
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from functools import reduce
from itertools import count
from operator import add, or_
from pathlib import Path
from typing import Any, Literal, NamedTuple

from obygaze_features.cores import usable_cores
from obygaze_features.extraction.row_digests import RowDigests
from obygaze_features.manifest import counted
from obygaze_features.store import ClipResult, Stage, StageWriter
from obygaze_features.text import visible

REPORTS_FOLDER = "reports"
"""Folder of a stage with a file for each run."""

BATCHES_AHEAD = 2
"""Most batches waiting to be written; a faster engine then waits for the disk."""


@dataclass
class RunReport:
    """Counts and seconds of one extraction run; updated by the engine during the run.

    Parameters
    ----------
    engine
        Name of the engine.
    encoders
        Processes that hold the backbones: one, or one per GPU or node.
    waited_s, infer_s
        Seconds that all encoders together waited for decoded clips, and spent in the backbones.
    write_s
        Seconds that all encoders together wrote, each in a separate thread that overlaps with its other work.
    decode_cpu_s
        Processor seconds of all decode workers together.
    n_decoded
        Frames decoded, including those needed only to reach the sampled frames.
    gpu_busy_s
        Seconds for which the GPUs were busy, summed over GPUs; None without a GPU. If two processes share a
        GPU, the seconds of both are added.
    gpus
        GPU model -> compute capability, memory, peak memory in use, libraries, and the final clips at once of
        each backbone; empty without a GPU.
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

    def count(self, result: ClipResult, n: int = 1) -> None:
        """Count a written clip by its status; `n` is -1 to subtract one that was lost."""
        if result.status == "ok":
            self.ok += n
        elif result.status == "partial":
            self.partial += n
        else:
            self.failed += n
        if result.status != "failed":
            device = str(result.source.get("device", "cpu"))
            self.devices[device] += n

    def time_percentages(self) -> dict[str, float]:
        """Return the percentages of an encoder's wall time for waiting for clips, inference and writing.

        An encoder waits and infers in turn: these two add up to at most 100. It writes in a thread beside
        both, so that the three may add up to more.
        """
        wall_s = max(self.wall_s, 1e-9)
        seconds_of = {
            "decode": self.waited_s / self.encoders,
            "infer": self.infer_s / self.encoders,
            "write": self.write_s / self.encoders,
        }
        return {name: round(100 * seconds / wall_s, 1) for name, seconds in seconds_of.items()}

    def gpu_busy_percent(self) -> float | None:
        """Return the percentage of the run in which the GPU was busy; None without a GPU."""
        if self.gpu_busy_s is None:
            return None
        return round(100 * self.gpu_busy_s / max(self.wall_s * self.encoders, 1e-9), 1)

    def cores_per_card(self) -> float | None:
        """Return how many decoding cores keep a card busy with these clips; None without either."""
        if not self.gpu_busy_s or not self.decode_cpu_s:
            return None
        return round(self.decode_cpu_s / self.gpu_busy_s, 1)

    def record(self) -> dict[str, object]:
        """Return all fields as plain values, for `--json`."""
        return {
            **asdict(self),
            "remarks": dict(sorted(self.remarks.items())),
            "clips": self.clips,
            "clips_per_s": round(self.clips / max(self.wall_s, 1e-9), 3),
            "decoded_frames_per_core_s": round(self.n_decoded / max(self.decode_cpu_s, 1e-9), 1),
            "shares_percent": self.time_percentages(),
            "gpu_busy_percent": self.gpu_busy_percent(),
            "cores_per_card": self.cores_per_card(),
            "devices": dict(sorted(self.devices.items())),
            "peak_memory_mb": round(peak_memory_mb(), 1),
        }

    def sentence(self, unit: str = "clip") -> str:
        """Return the report as one line; `unit` names a row: clip or text (texts are not decoded)."""
        facts = [_speed(self, unit), _shares(self, unit)]
        busy_percent = self.gpu_busy_percent()
        if busy_percent is not None:
            facts.append(_cards(self, busy_percent))
        cores = self.cores_per_card()
        if cores:
            facts.append(f"{cores:g} decoding cores keep a card busy, {usable_cores()} here")
        facts.append(f"peak memory {peak_memory_mb():.0f} MB")
        return f"{counted(self.clips, unit)} in {self.wall_s:.1f} s ({'; '.join(facts)})"


def _speed(report: RunReport, unit: str) -> str:
    """Return the rows per second in words and, for clips, the decoded frames per second and core."""
    speed = f"{report.clips / max(report.wall_s, 1e-9):.1f} {unit}s/s"
    if unit == "clip":
        frames = report.n_decoded / max(report.decode_cpu_s, 1e-9)
        speed += f", {frames:.0f} decoded frames/s per core"
    return speed


def _shares(report: RunReport, unit: str) -> str:
    """Return in words which shares of the time went into decoding (of clips), inference and writing.

    Writing is said to run beside the others, as its share does not add up with theirs.
    """
    shares = report.time_percentages()
    write = shares.pop("write")
    if unit != "clip":
        del shares["decode"]
    in_turn = ", ".join(f"{name} {percent:g} %" for name, percent in shares.items())
    return f"{in_turn}, and beside that write {write:g} %"


def _cards(report: RunReport, busy_percent: float) -> str:
    """Return in words how busy the GPUs were, with each GPU's peak memory."""
    text = f"GPU had work {busy_percent:g} %"
    for name, card in report.gpus.items():
        text += f", {visible(name, lines=False)}, peak {card['peak_memory_mb']:,} MB"
    return text


Run = Generator[tuple[RunReport, list[ClipResult]]]
"""What an engine yields: the report so far, and the clips that were just written, perhaps none."""


@contextmanager
def recording_of(stage: Stage, clip_ids: Iterable[str], report: RunReport) -> Iterator["Recording"]:
    """Open a writer for the clips of a run; yield a `Recording`, whose results a thread writes to the stage.

    All results are durable when the `with` block ends.
    """
    with (
        RowDigests() as digests,
        stage.writer(clip_ids, digests if usable_cores() > 1 else None) as writer,
        ThreadPoolExecutor(1, "writer") as thread,
    ):
        yield Recording(writer, thread, report)


class _WaitingBatch(NamedTuple):
    """Results that wait to be written by a thread; the future returns the seconds that writing took."""

    results: list[ClipResult]
    seconds: Future[float]


class Recording:
    """Write results of clips in a thread, and count them in a report once they are written.

    Parameters
    ----------
    writer
        Writer of the stage.
    thread
        Executor of one thread.
    report
        Report of the run, which has just started.
    """

    def __init__(self, writer: StageWriter, thread: ThreadPoolExecutor, report: RunReport) -> None:
        """Start the clock of the run; nothing is written yet."""
        self.report = report
        self._writer = writer
        self._thread = thread
        self._started = time.perf_counter()
        self._waiting: deque[_WaitingBatch] = deque()  # the oldest first

    def commit(self, results: list[ClipResult]) -> list[ClipResult]:
        """Queue clips to be written; return those that were written meanwhile.

        Raises
        ------
        StoreError, OSError
            As in `StageWriter.commit`, for these clips or earlier ones.
        """
        written = self.written(BATCHES_AHEAD)
        self._waiting.append(_WaitingBatch(results, self._thread.submit(self._write, results)))
        return written

    def written(self, most_waiting: int | None = None) -> list[ClipResult]:
        """Count and return the clips that were written since the last call.

        Parameters
        ----------
        most_waiting
            Most batches that may wait to be written on return; None is any number.
        """
        written: list[ClipResult] = []
        while self._waiting:
            oldest = self._waiting[0]
            are_too_many = most_waiting is not None and len(self._waiting) > most_waiting
            if not oldest.seconds.done() and not are_too_many:
                break
            self._waiting.popleft()
            self.report.write_s += oldest.seconds.result()
            for result in oldest.results:
                self.report.count(result)
            written += oldest.results
        self.report.wall_s = time.perf_counter() - self._started
        return written

    def _write(self, results: list[ClipResult]) -> float:
        """Write clips; return the seconds that it took. After an error the writer takes no more."""
        before = time.perf_counter()
        self._writer.commit(results)
        return time.perf_counter() - before


def sum_reports(reports: Sequence[RunReport]) -> RunReport:
    """Add up reports field by field.

    The wall time is the longest. Engine and encoders are left to the caller.
    """
    total = RunReport()
    for field_ in fields(RunReport):
        if field_.name in {"engine", "encoders"}:
            continue
        values = [getattr(report, field_.name) for report in reports]
        known = [value for value in values if value is not None]
        if not known:
            continue
        if field_.name == "wall_s":
            joined: Any = max(known)
        elif field_.name == "gpus":
            joined = reduce(or_, known, {})
        else:  # numbers and counters; beginning with an empty one, so that no report shares its counter
            empty = type(known[0])()
            joined = reduce(add, known, empty)
        setattr(total, field_.name, joined)
    return total


def write_report(report: RunReport, stage: Path) -> None:
    """Write the report of a run to `reports/NNNN.json` in its stage, numbered in the order of the runs.

    It is not sealed, because times do not affect the features.
    """
    folder = stage / REPORTS_FOLDER
    folder.mkdir(exist_ok=True)
    content = f"{json.dumps(report.record(), indent=2)}\n".encode()
    for number in count(len(list(folder.iterdir())) + 1):
        # A run of another shard may take the same number; then the next one is tried.
        with suppress(FileExistsError), (folder / f"{number:04d}.json").open("xb") as file:
            file.write(content)
            return


def peak_memory_mb() -> float:
    """Return the peak resident memory of this process plus that of its largest finished worker, in MB.

    It is 0 on Windows, which does not tell it.
    """
    if sys.platform == "win32":
        return 0.0
    import resource  # noqa: PLC0415 - not on Windows

    units_per_mb = 1e6 if sys.platform == "darwin" else 1e3  # `ru_maxrss` is in bytes on macOS, else in kB
    peak_here = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak_of_workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return (peak_here + peak_of_workers) / units_per_mb
