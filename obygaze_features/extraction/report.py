"""Count what a run does, write its clips in a separate thread, and leave a report in the stage."""

import json
import sys
import time
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from obygaze_features.cores import usable_cores
from obygaze_features.extraction.row_digests import RowDigests
from obygaze_features.limits import peak_bytes
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
        """Count a written clip by its status, and by the GPU or CPU that computed it.

        Parameters
        ----------
        result
            The clip's result.
        n
            1 to count the clip, -1 to subtract it because it was lost after it was counted.
        """
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
        """Return which percentages of a run's wall time went into `decode`, `infer` and `write`.

        They are means over the processes that hold the networks. "decode" is the time that such a process
        waited for decoded clips. It waits and infers in turn, so these two add up to at most 100. It writes
        in a thread at the same time, so that the three may add up to more.
        """
        wall_s = max(self.wall_s, 1e-9)  # never 0, by which nothing can be divided
        mean_seconds = {
            "decode": self.waited_s / self.encoders,
            "infer": self.infer_s / self.encoders,
            "write": self.write_s / self.encoders,
        }
        return {name: round(100 * seconds / wall_s, 1) for name, seconds in mean_seconds.items()}

    def gpu_busy_percent(self) -> float | None:
        """Return for what percentage of the run a GPU was busy, as a mean over GPUs; None without a GPU."""
        if self.gpu_busy_s is None:
            return None
        available_s = max(self.wall_s * self.encoders, 1e-9)  # of all GPUs; never 0
        return round(100 * self.gpu_busy_s / available_s, 1)

    def cores_per_card(self) -> float | None:
        """Return how many decoding cores keep a GPU busy with these clips; None without decoding or a GPU.

        That many seconds of cores were spent on decoding for each second that a GPU was busy.
        """
        if not self.gpu_busy_s or not self.decode_cpu_s:
            return None
        return round(self.decode_cpu_s / self.gpu_busy_s, 1)

    def record(self) -> dict[str, object]:
        """Return all fields and what is computed from them as plain values, for the option `--json`."""
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
        """Return the report as one line for the user.

        Parameters
        ----------
        unit
            What was processed: "clip", or "text", which is not decoded.
        """
        facts = [_speed(self, unit), _times_in_words(self, unit)]
        busy_percent = self.gpu_busy_percent()
        if busy_percent is not None:
            facts.append(_gpus(self, busy_percent))
        cores = self.cores_per_card()
        if cores:
            facts.append(f"{cores:g} decoding cores keep a card busy, {usable_cores()} here")
        facts.append(f"peak memory {peak_memory_mb():.0f} MB")
        return f"{counted(self.clips, unit)} in {self.wall_s:.1f} s ({'; '.join(facts)})"


def _speed(report: RunReport, unit: str) -> str:
    """Return the rows per second in words and, for clips, the decoded frames per second and core.

    Parameters
    ----------
    report
        The report of a run.
    unit
        What was processed: "clip", or "text", which is not decoded.
    """
    speed = f"{report.clips / max(report.wall_s, 1e-9):.1f} {unit}s/s"
    if unit == "clip":
        frames = report.n_decoded / max(report.decode_cpu_s, 1e-9)
        speed += f", {frames:.0f} decoded frames/s per core"
    return speed


def _times_in_words(report: RunReport, unit: str) -> str:
    """Return in words which percentages of the time went into decoding (of clips), inference and writing.

    Writing stands apart, as it runs at the same time as the others, so that the percentages do not add up.

    Parameters
    ----------
    report
        The report of a run.
    unit
        What was processed: "clip", or "text", which is not decoded.
    """
    percentages = report.time_percentages()
    steps = ["decode", "infer"] if unit == "clip" else ["infer"]  # texts are not decoded
    in_turn = ", ".join(f"{step} {percentages[step]:g} %" for step in steps)
    return f"{in_turn}, and beside that write {percentages['write']:g} %"


def _gpus(report: RunReport, busy_percent: float) -> str:
    """Return in words how busy the GPUs were, as in "GPU had work 93 %", with each GPU's peak memory.

    Parameters
    ----------
    report
        The report of a run.
    busy_percent
        For what percentage of the run a GPU was busy, as a mean over GPUs.
    """
    text = f"GPU had work {busy_percent:g} %"
    for name, gpu in report.gpus.items():
        text += f", {visible(name, line_breaks=False)}, peak {gpu['peak_memory_mb']:,} MB"
    return text


Run = Generator[tuple[RunReport, list[ClipResult]]]
"""What an engine yields: the report so far, and the clips that were just written, perhaps none."""


@contextmanager
def recording_of(stage: Stage, clip_ids: Iterable[str], report: RunReport) -> Iterator["Recording"]:
    """Yield a `Recording`, by which a run queues results that a thread writes to the unfinished store.

    All results are durable when the `with` block ends.

    Parameters
    ----------
    stage
        The unfinished store.
    clip_ids
        Clips that the run will write.
    report
        Report of the run, in which written clips are counted.
    """
    has_second_core = usable_cores() > 1
    with (
        RowDigests() as digests,
        # With a second core, another process computes the digests of large rows.
        stage.writer(clip_ids, digests if has_second_core else None) as writer,
        ThreadPoolExecutor(1, "writer") as thread,
    ):
        yield Recording(writer, thread, report)


class _WaitingBatch(NamedTuple):
    """Results that a thread writes; `writing` is done when they are written, and returns the seconds."""

    results: list[ClipResult]
    writing: Future[float]


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

    def queue(self, results: list[ClipResult]) -> None:
        """Queue results of clips for the thread that writes them.

        Call `take_written` with a number before, so that few batches wait.
        """
        writing = self._thread.submit(self._write, results)
        self._waiting.append(_WaitingBatch(results, writing))

    def take_written(self, max_waiting: int | None = None) -> list[ClipResult]:
        """Count and return the clips that were written since the last call.

        Parameters
        ----------
        max_waiting
            Waits until at most this many batches are left to be written; None does not wait.

        Raises
        ------
        StoreError, OSError
            Results that were queued do not fit the store, or cannot be written.
        """
        written: list[ClipResult] = []
        while self._waiting:
            oldest = self._waiting[0]
            is_written = oldest.writing.done()
            must_wait = max_waiting is not None and len(self._waiting) > max_waiting
            if not is_written and not must_wait:
                break

            self._waiting.popleft()
            self.report.write_s += oldest.writing.result()  # waits, and raises an error of the thread
            for result in oldest.results:
                self.report.count(result)
            written += oldest.results
        self.report.wall_s = time.perf_counter() - self._started
        return written

    def _write(self, results: list[ClipResult]) -> float:
        """Write results of clips, and return the seconds that this took; it runs in the thread."""
        before = time.perf_counter()
        self._writer.commit(results)
        return time.perf_counter() - before


def sum_reports(reports: Sequence[RunReport]) -> RunReport:
    """Add up the counts and seconds of reports by several processes; the wall time is the longest.

    Engine and number of encoders are left as in a new report, for the caller to set.
    """
    total = RunReport()
    for report in reports:
        total.ok += report.ok
        total.partial += report.partial
        total.failed += report.failed
        total.wall_s = max(total.wall_s, report.wall_s)
        total.waited_s += report.waited_s
        total.infer_s += report.infer_s
        total.write_s += report.write_s
        total.decode_cpu_s += report.decode_cpu_s
        total.n_decoded += report.n_decoded
        if report.gpu_busy_s is not None:
            total.gpu_busy_s = (total.gpu_busy_s or 0.0) + report.gpu_busy_s
        total.gpus |= report.gpus
        total.devices += report.devices
        total.remarks += report.remarks
    return total


def write_report(report: RunReport, stage: Path) -> None:
    """Write the report of a run to `reports/NNNN.json` in its stage, numbered in the order of the runs.

    It is not sealed, because times do not affect the features.
    """
    folder = stage / REPORTS_FOLDER
    folder.mkdir(exist_ok=True)
    content = f"{json.dumps(report.record(), indent=2)}\n".encode()
    number = len(list(folder.iterdir())) + 1
    while True:
        try:
            with (folder / f"{number:04d}.json").open("xb") as file:
                file.write(content)
                return
        except FileExistsError:  # another run has taken the number meanwhile
            number += 1


def peak_memory_mb() -> float:
    """Return the peak memory (resident set) of this process plus that of its largest ended child, in MB.

    It is 0 on Windows, which does not report it.
    """
    if sys.platform == "win32":
        return 0.0
    import resource  # noqa: PLC0415 - not on Windows

    peak_here = peak_bytes(resource.getrusage(resource.RUSAGE_SELF))
    peak_of_workers = peak_bytes(resource.getrusage(resource.RUSAGE_CHILDREN))
    return (peak_here + peak_of_workers) / 1e6
