"""Settings, clock and findings of one run of benchmarks/gpu.py."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import torch

from obygaze_features.backbones import Backbone, Layers, load_backbone
from obygaze_features.backbones.compute import Compute

NAMES = ("xclip", "vivit", "xclip-lsmdc")


@dataclass
class Bench:
    """Settings and findings of one run.

    Parameters
    ----------
    tiny
        Tiny networks and few clips, to try the code.
    ends
        When the part at hand must end.
    """

    device: str
    tiny: bool
    out: Path
    folder: Path
    ends: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def on_gpu(self) -> bool:
        """Whether there is a GPU at all."""
        return self.device.startswith("cuda")

    @cached_property
    def weights(self) -> dict[str, str]:
        """Weights of every network."""
        if not self.tiny:
            return dict.fromkeys(NAMES, "random:0")
        sys.path.append(str(Path(__file__).parents[1]))
        from tests.tiny_checkpoints import tiny_checkpoint

        return {name: str(tiny_checkpoint(name, self.folder / name)) for name in NAMES}

    def load(
        self,
        name: str,
        *,
        tokens: str | None = None,
        layers: Layers | None = None,
        device: str | None = None,
        **settings: Any,
    ) -> Backbone:
        """Build a backbone."""
        compute = Compute(device or self.device, **{"clips_at_once": 8, **settings})
        extra: dict[str, Any] = {}
        if tokens is not None:
            extra["tokens"] = tokens
        if layers is not None:
            extra["layers"] = layers
        return load_backbone(name, weights=self.weights[name], compute=compute, **extra)

    def late(self, needed_s: float = 0.0) -> bool:
        """Tell whether the part at hand has no time for so many seconds more."""
        return time.monotonic() + needed_s > self.ends

    def plan(self, part: str, *names: str, of: Iterable[tuple[Any, ...]], needed_s: float) -> Iterator[Any]:
        """Yield what is planned while there is time for it; note what is left out."""
        for planned in of:
            if self.late(needed_s) and not self.tiny:
                self.row(part, **dict(zip(names, planned, strict=True)), left_out="out of time")
            else:
                yield planned

    def row(self, part: str, **facts: Any) -> None:
        """Print a row, keep it, and append it to the file."""
        row = {"part": part, **facts}
        self.rows.append(row)
        print("  ".join(f"{name} {value}" for name, value in facts.items()), flush=True)
        if self.out != Path():
            with self.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def check(self, check: str, good: bool | None, description: str = "") -> bool:
        """Print a row of a check; say whether it did not fail."""
        verdict = {True: "ok", False: "FAILED", None: "not tried"}[good]
        self.row("check", check=check, verdict=verdict, **({"found": description} if description else {}))
        return good is not False

    def sync(self) -> None:
        """Wait for the GPU."""
        if self.on_gpu:
            torch.cuda.synchronize()

    def timed(self, work: Callable[[], object], repeats: int = 5) -> float:
        """Return the median seconds of some calls, after one to warm up."""
        work()
        taken = []
        for _ in range(1 if self.tiny else repeats):
            self.sync()
            began = time.perf_counter()
            work()
            self.sync()
            taken.append(time.perf_counter() - began)
        return median(taken)
