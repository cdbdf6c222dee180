"""A GPU's first thirteen minutes: is it right, how fast is it, and what limits it.

Nine parts, each with its own seconds; together 795, so that slow hosts finish (an H200 with 16 cores takes
660). Every part prints its rows at once and appends them to a file of JSON lines, so that a time-out loses
one part. Part 2 makes the checks of first contact and ends the run with exit code 1 if one fails, before
any speed is printed. Weights are random (`random:0`) and clips are made here: nothing is fetched.

    python benchmarks/gpu.py --out gpu.jsonl
    python benchmarks/gpu.py --only 2,3
    python benchmarks/gpu.py --tiny --device cpu      tries the code, in tiny sizes, without a GPU
    python benchmarks/gpu.py --decode                 the GPU's decoder alone, in at most eight minutes
    python benchmarks/gpu.py --decode --tiny          tries that with a pretended GPU
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import gpu_checks as checks
import gpu_decode
from gpu_bench import NAMES, Bench
from gpu_engine import end_to_end, films_of, through_runner, two_on_one
from gpu_networks import compiled, families, gpu, layers, model_only, networks
from measure import arguments, show

from obygaze_features.backbones.compute import Compute

VIVIT_ACTIVATIONS = 140e6
"""Bytes of activations a clip in float32 that torch holds at most, counted on shapes alone."""


def right(bench: Bench) -> None:
    """Part 2: the checks of first contact; a failure ends the run.

    Raises
    ------
    SystemExit
        If a check failed.
    """
    failed = 0
    for check, finding, good in _findings(bench):
        failed += not bench.check(check, good, finding)
        if bench.late():
            bench.check("the rest", None, "out of time")
            break
    if failed:
        print(f"{failed} checks failed: no speed is measured", flush=True)
        raise SystemExit(1)


def _findings(bench: Bench) -> Iterator[checks.Finding]:
    inner = [str(Path(__file__).resolve()), "--device", bench.device, "--inner"]
    inner += ["--tiny"] if bench.tiny else []
    for name in NAMES:
        reference = bench.load(name, device="cpu", storage="float32", clips_at_once=1)
        frames = checks.clips(reference, 2)
        yield from checks.values(bench.load, name, reference.encode(frames), frames, tiny=bench.tiny)
        yield from checks.bits(bench.load, name)
    if not bench.on_gpu:
        yield "3, 4, 5, 9", "need a card", None
        return
    for precision in ("float32", "bfloat16"):
        yield from checks.attention(bench.load, "vivit", precision)
    yield from checks.memory(bench.load, "vivit", VIVIT_ACTIVATIONS)
    yield from checks.sanitised(inner)
    work = ["extract", str(films_of(bench, 2)), str(bench.folder / "refused")]
    work += ["--backbone", "clip", "--weights", "random:0"]
    yield from checks.refusals(["-m", "obygaze"], work)


PARTS: tuple[tuple[str, int, Callable[[Bench], None]], ...] = (
    ("card", 10, gpu),
    ("networks", 30, networks),
    ("right?", 200, right),
    ("model only", 110, model_only),
    ("compile", 120, compiled),
    ("runner", 85, through_runner),
    ("end to end", 110, end_to_end),
    ("two on one", 40, two_on_one),
    ("families", 60, families),
    ("layers", 30, layers),
)


def _decode(bench: Bench) -> None:
    """Measure the GPU's decoder, and show all rows at the end."""
    if bench.tiny:
        bench.device = "cpu"
    try:
        gpu_decode.measure(bench)
    finally:
        for part in ("bits", "decode", "check"):
            show([row for row in bench.rows if row["part"] == part], title=part)


def main() -> None:
    """Run the parts that were asked for."""
    options = arguments(
        __doc__,
        only="0,1,2,3,4,5,6,7,8,9",
        device="cuda",
        out=Path(),
        tiny=False,
        inner=False,
        decode=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.device, options.tiny, options.out, Path(folder))
        if options.inner:
            print(checks.digest(bench.load, "xclip-lsmdc"))
            return
        if options.decode:
            _decode(bench)
            return
        if bench.on_gpu and (reason := Compute("auto").fallback()):
            sys.exit(f"not run: {reason}")
        try:
            for number, (title, seconds, part) in enumerate(PARTS):
                if str(number) in options.only.split(","):
                    print(f"\n{number} {title} ({seconds} s)", flush=True)
                    bench.ends = time.monotonic() + seconds * (100 if options.tiny else 1)
                    part(bench)
        finally:
            for part in ("model", "compile", "runner", "end to end", "family", "layers", "check"):
                show([row for row in bench.rows if row["part"] == part], title=part)


if __name__ == "__main__":
    main()
