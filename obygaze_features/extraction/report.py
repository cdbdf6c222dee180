"""Report how long the steps of an extraction took."""

import resource
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

REPORTS = "reports"  # folder of a stage, one file per run


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


def peak_memory_mb() -> float:
    """Return the peak resident memory of this process plus that of its largest finished worker, in MB."""
    unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes on macOS, kilobytes on Linux
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(resource.getrusage(each).ru_maxrss for each in who) / unit
