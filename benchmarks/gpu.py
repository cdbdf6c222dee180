"""A card's first nine minutes: is it right, how fast is it, and what limits it.

Eight parts, each with its own seconds; together 530 on an H200 with 16 cores. Every part prints its rows at
once and appends them to a file of JSON lines, so that a time-out loses one part. Part 2 makes the checks of
first contact and ends the run with exit code 1 if one fails, before any speed is printed. Weights are random
(`random:0`) and clips are made here: nothing is fetched.

    python benchmarks/gpu.py --out gpu.jsonl
    python benchmarks/gpu.py --only 2,3
    python benchmarks/gpu.py --tiny --device cpu      tries the code, in tiny sizes, without a card
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import gpu_checks as checks
import numpy as np
import torch
from tabulate import tabulate

from obygaze_features.backbones import Backbone, load_backbone
from obygaze_features.backbones.compute import Compute, card_of, card_record
from obygaze_features.extraction.decode import DecodedClip, Prepared
from obygaze_features.extraction.encode import Encoder, warm_up
from obygaze_features.extraction.extract import prepare
from obygaze_features.extraction.job import Job, Recipe
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store import Stage, open_store, seal, staging_path

NAMES = ("xclip", "vivit", "xclip-lsmdc")
HERE = Path(__file__).resolve()


@dataclass
class Bench:
    """Settings and findings of one run.

    Parameters
    ----------
    tiny
        Tiny networks and few clips, to try the code.
    left_s
        The seconds that the part at hand has left, as a function.
    """

    device: str
    tiny: bool
    out: Path | None
    folder: Path
    ends: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def on_card(self) -> bool:
        """Whether there is a card at all."""
        return self.device.startswith("cuda")

    @cached_property
    def weights(self) -> dict[str, str]:
        """Weights of every network."""
        if not self.tiny:
            return dict.fromkeys(NAMES, "random:0")
        from obygaze_features.backbones.testing import tiny_checkpoint

        return {name: str(tiny_checkpoint(name, self.folder / name)) for name in NAMES}

    def load(
        self, name: str, *, tokens: str | None = None, device: str | None = None, **how: Any
    ) -> Backbone:
        """Build a backbone."""
        compute = Compute(device or self.device, **{"clips_at_once": 8, **how})
        extra = {} if tokens is None else {"tokens": tokens}
        return load_backbone(name, weights=self.weights[name], compute=compute, **extra)

    def late(self, needed_s: float = 0.0) -> bool:
        """Tell whether the part at hand has no time for so many seconds more."""
        return time.monotonic() + needed_s > self.ends

    def row(self, part: str, **facts: Any) -> None:
        """Print a row, keep it, and append it to the file."""
        found = {"part": part, **facts}
        self.rows.append(found)
        print("  ".join(f"{name} {value}" for name, value in facts.items()), flush=True)
        if self.out is not None:
            with self.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")

    def sync(self) -> None:
        """Wait for the card."""
        if self.on_card:
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


def card(bench: Bench) -> None:
    """Part 0: what the card is, and what it can do at most."""
    device = torch.device(bench.device)
    facts: dict[str, Any] = {"name": card_of(device), "torch": torch.__version__, "cores": os.cpu_count()}
    if bench.on_card:
        facts |= card_record(device)
        facts["kernels"] = " ".join(torch.cuda.get_arch_list())
        asked = "driver_version,clocks.max.sm,mig.mode.current"
        command = ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"]
        try:
            told = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
            facts["driver, clock, MIG"] = told.stdout.strip()
        except OSError:
            facts["driver, clock, MIG"] = "no nvidia-smi"
    bench.row("card", **facts)
    side = 64 if bench.tiny else 8192
    from obygaze_features.backbones.precision import products

    for label, dtype, tf32 in (
        ("fp32", torch.float32, False),
        ("tf32", torch.float32, True),
        ("bf16", torch.bfloat16, False),
    ):
        a, b = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
        with products(tf32=tf32):
            taken = bench.timed(lambda a=a, b=b: a @ b)
        bench.row("ceiling", of=label, TFLOPS=round(2 * side**3 / taken / 1e12, 2))
    size = 1 << (16 if bench.tiny else 28)
    there = torch.zeros(size, dtype=torch.uint8, device=device)
    copies = {"on the card": there.clone(), "from pageable": torch.zeros(size, dtype=torch.uint8)}
    if bench.on_card:
        copies["from pinned"] = torch.zeros(size, dtype=torch.uint8).pin_memory()
    for label, here in copies.items():
        both = 2 if label == "on the card" else 1
        bench.row(
            "ceiling", of=label, GBps=round(both * size / bench.timed(lambda h=here: there.copy_(h)) / 1e9, 2)
        )
        if label != "on the card":
            way = label.replace("from", "to")
            bench.row(
                "ceiling", of=way, GBps=round(size / bench.timed(lambda h=here: h.copy_(there)) / 1e9, 2)
            )


def networks(bench: Bench) -> None:
    """Part 1: build, move, warm up."""
    for name in NAMES:
        began = time.perf_counter()
        backbone = bench.load(name)
        built = time.perf_counter()
        warm_up([backbone]) if bench.on_card else backbone.encode(checks.clips(backbone, 1))
        facts = {"peak_MB": round(torch.cuda.max_memory_allocated() / 1e6)} if bench.on_card else {}
        bench.row(
            "network",
            network=name,
            build_s=round(built - began, 1),
            warm_up_s=round(time.perf_counter() - built, 1),
            **facts,
        )


def right(bench: Bench) -> None:
    """Part 2: the checks of first contact; a failure ends the run.

    Raises
    ------
    SystemExit
        If a check failed.
    """
    failed = 0
    for check, found, good in _findings(bench):
        verdict = {True: "ok", False: "FAILED", None: "not tried"}[good]
        bench.row("check", check=check, verdict=verdict, **({"found": found} if found else {}))
        failed += good is False
        if bench.late():
            bench.row("check", check="the rest", verdict="not tried", found="out of time")
            break
    if failed:
        print(f"{failed} checks failed: no speed is measured", flush=True)
        raise SystemExit(1)


def _findings(bench: Bench) -> Iterator[checks.Finding]:
    inner = [str(HERE), "--device", bench.device, "--inner", "digest", *(["--tiny"] if bench.tiny else [])]
    for name in NAMES:
        reference = bench.load(name, device="cpu", storage="float32", clips_at_once=1)
        frames = checks.clips(reference, 2)
        yield from checks.values(bench.load, name, reference.encode(frames), frames, tiny=bench.tiny)
        yield from checks.bits(bench.load, name)
    if not bench.on_card:
        yield "3, 4, 5, 9", "need a card", None
        return
    for precision in ("float32", "bfloat16"):
        yield from checks.attention(bench.load, "vivit", precision)
    yield from checks.memory(bench.load, "vivit", _activations("vivit", "float32"))
    yield from checks.sanitised(inner)
    films = _films(bench, 2)
    work = [
        "extract",
        str(films),
        str(bench.folder / "refused"),
        "--backbone",
        "clip",
        "--weights",
        "random:0",
    ]
    yield from checks.refusals(["-m", "obygaze"], work)


def _activations(name: str, precision: Any) -> float:
    import gpu_counts

    return gpu_counts.count(name, precision, 8).activations


def model_only(bench: Bench) -> None:
    """Part 3: uint8 on the card to outputs on the card; every precision, and bf16 in several sizes."""
    ceilings = {
        row["of"]: row["TFLOPS"] for row in bench.rows if row["part"] == "ceiling" and "TFLOPS" in row
    }
    of = {"float32": "fp32", "tf32": "tf32"}
    plans = [(name, precision, 8) for name in NAMES for precision in checks.ALLOWED]
    plans += [(name, "bfloat16", n) for name in NAMES for n in (1, 4, 16, 32)]
    for name, precision, at_once in plans[:6] if bench.tiny else plans:
        if bench.late(3):
            bench.row("model", network=name, precision=precision, left_out="out of time")
            continue
        way: dict[str, Any] = {"tf32": True} if precision == "tf32" else {"precision": precision}
        runner: Any = bench.load(name, clips_at_once=at_once, **way).encode
        runner.warm_up()
        if bench.on_card:
            torch.cuda.reset_peak_memory_stats()
        pixels = torch.from_numpy(np.zeros((at_once, *runner.shape), np.uint8)).to(runner.device)
        taken = bench.timed(lambda r=runner, p=pixels: r._forward(p))
        facts: dict[str, Any] = {"clips_per_s": round(at_once / taken, 1)}
        import gpu_counts

        counted = None if bench.tiny else gpu_counts.count(name, way.get("precision", "float32"), at_once)
        if counted is not None and (ceiling := ceilings.get(of.get(precision, "bf16"))):
            facts["percent_of_ceiling"] = round(100 * counted.flop * at_once / taken / 1e12 / ceiling, 1)
        if bench.on_card and counted is not None:
            peak = torch.cuda.max_memory_allocated()
            facts["peak_GB"] = round(peak / 1e9, 2)
            facts["counted_GB"] = round((counted.weights + counted.activations * at_once) / 1e9, 2)
            if at_once == 8:
                facts["kernels"], facts["counted_kernels"] = _kernels(runner, pixels), counted.kernels
        bench.row("model", network=name, precision=precision, at_once=at_once, **facts)
        del runner, pixels
        if bench.on_card:
            torch.cuda.empty_cache()


def _kernels(runner: Any, pixels: torch.Tensor) -> int:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiled:
        runner._forward(pixels)
        torch.cuda.synchronize()
    return sum(event.count for event in profiled.key_averages() if "Mem" not in event.key)


def compiled(bench: Bench) -> None:
    """Part 4: torch.compile in bf16 at 8 clips."""
    for name in NAMES[:1] if bench.tiny else NAMES:
        if bench.late(60 if name == NAMES[-1] else 30) and not bench.tiny:
            bench.row("compile", network=name, left_out="out of time")
            continue
        frames = checks.clips(bench.load(name), 8)
        plain = bench.load(name, precision="bfloat16", storage="float32").encode(frames)
        fast: Any = bench.load(name, precision="bfloat16", storage="float32", compiled=True).encode
        began = time.perf_counter()
        try:
            fast.warm_up()
        except Exception as error:  # noqa: BLE001 - whatever a compiler says is the finding
            bench.row("compile", network=name, failed=str(error).splitlines()[0])
            continue
        took = time.perf_counter() - began
        pixels = torch.from_numpy(frames).to(fast.device)
        rate = 8 / bench.timed(lambda f=fast, p=pixels: f._forward(p))
        _, cosine = checks.furthest(fast(frames), plain)
        bench.row(
            "compile",
            network=name,
            compile_s=round(took, 1),
            clips_per_s=round(rate, 1),
            cosine=f"{cosine:.6f}",
        )


def through_runner(bench: Bench) -> None:
    """Part 5: arrays in, arrays out, all networks, with look-ahead; memory that does not grow (check 8)."""
    for precision in ("float32", "bfloat16"):
        for tokens in ("none", None):
            for at_once in (8,) if bench.tiny else (8, 16, 32):
                if bench.late(4):
                    bench.row("runner", precision=precision, at_once=at_once, left_out="out of time")
                    continue
                some = [
                    bench.load(name, precision=precision, clips_at_once=at_once, tokens=tokens)
                    for name in NAMES
                ]
                bench.row(
                    "runner",
                    precision=precision,
                    tokens=tokens or "all",
                    at_once=at_once,
                    **_feed(bench, some, at_once),
                )
    if bench.on_card:
        runner: Any = bench.load("vivit", precision="bfloat16").encode
        frames = list(checks.clips(bench.load("vivit"), 8))
        for _ in range(5):
            runner.start(frames).result()
        before = torch.cuda.memory_allocated(), _memory_mb()
        n = 0
        while n < 200 and not bench.late(1):
            runner.start(frames).result()
            n += 1
        grown = torch.cuda.memory_allocated() - before[0]
        bench.row(
            "runner",
            batches=n,
            grown_on_the_card_bytes=grown,
            grown_on_the_host_MB=round(_memory_mb() - before[1]),
        )


def _feed(bench: Bench, some: list[Backbone], size: int, stage: Stage | None = None) -> dict[str, Any]:
    """Encode ready frames with look-ahead, and commit them if there is a stage."""
    for backbone in some:
        backbone.encode.warm_up()
    batches = 2 if bench.tiny else 12
    ready = {backbone.name: checks.clips(backbone, size) for backbone in some}
    times = {backbone.name: np.arange(backbone.n_frames) for backbone in some}
    encoder, done = Encoder(some), 0
    busy = sum(backbone.encode.busy_s for backbone in some)
    cpu, began = time.process_time(), time.perf_counter()
    writer = None if stage is None else stage.writer()
    for number in range(batches + 1):
        if number < batches:
            batch = [
                DecodedClip(
                    f"c-{number * size + i:06}",
                    "ok",
                    frames={name: Prepared(x[i], times[name], times[name] / 24) for name, x in ready.items()},
                )
                for i in range(size)
            ]
            results = encoder.push(batch)
        else:
            results = encoder.finish()
        done += len(results)
        if writer is not None and results:
            writer.commit(results)
    if writer is not None:
        writer.close()
    wall = time.perf_counter() - began
    busy = sum(backbone.encode.busy_s for backbone in some) - busy
    return {
        "clips_per_s": round(done / wall, 1),
        "GPU_had_work_percent": round(100 * busy / wall, 1) if bench.on_card else None,
        "host_CPU_ms_a_clip": round(1e3 * (time.process_time() - cpu) / done, 2),
    }


def _memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def end_to_end(bench: Bench) -> None:
    """Part 6: the local engine on small clips with all cores, and ready frames: the limit of feeding."""
    films = _films(bench, 4 if bench.tiny else 160)
    for precision in ("float32", "bfloat16"):
        if bench.late(20) and not bench.tiny:
            bench.row("end to end", precision=precision, left_out="out of time")
            continue
        compute = Compute(bench.device, precision=precision, clips_at_once=8)
        recipes = [
            Recipe(name, None, {"weights": self_weights, "compute": compute})
            for name, self_weights in bench.weights.items()
        ]
        work = prepare(films, bench.folder / f"end-{precision}", recipes, licence="CC0-1.0", note=print)
        before = _cpu_s()
        _, report = work.run()
        busy = report.gpu_busy_percent()
        bench.row(
            "end to end",
            what="small clips",
            precision=precision,
            clips_per_s=round(report.clips / report.wall_s, 1),
            GPU_had_work_percent=busy,
            host_CPU_ms_a_clip=round(1e3 * (_cpu_s() - before) / report.clips, 1),
            shares=report.shares(),
            gpus=report.gpus,
            limit=max(report.shares(), key=lambda name: report.shares()[name]),
        )
    for precision in ("float32", "bfloat16"):
        if bench.late(10) and not bench.tiny:
            break
        some = [bench.load(name, precision=precision) for name in NAMES]
        manifest = Manifest(tuple(Clip(f"c-{i:06}", "m", f"{i}.mp4") for i in range(12 * 8)), bench.folder)
        job = Job(manifest, "ready", tuple(some))
        place = staging_path(bench.folder / f"ready-{precision}")
        stage = Stage.open(place, job.planned_clips(), job.groups(), job.corpus_record())
        bench.row("end to end", what="ready frames", precision=precision, **_feed(bench, some, 8, stage))
    _idle(bench)


def _idle(bench: Bench) -> None:
    """Check 7: a host that sleeps as long as the card works leaves it idle for half of the time."""
    backbone = bench.load("xclip", precision="bfloat16")
    runner: Any = backbone.encode
    frames = list(checks.clips(backbone, 8))
    runner.start(frames).result()
    each = bench.timed(lambda: runner.start(frames).result())
    busy, began = runner.busy_s, time.perf_counter()
    for _ in range(3 if bench.tiny else 20):
        runner.start(frames).result()
        time.sleep(each)
    share = 100 * (runner.busy_s - busy) / (time.perf_counter() - began)
    bench.row(
        "check",
        check="7 half idle by design",
        verdict="ok" if 30 <= share <= 55 else "LOOK",
        found=f"{share:.0f} % at work",
    )


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _films(bench: Bench, n: int) -> Path:
    """Write small clips and their manifest."""
    from obygaze_features.demo.corpus import write_video

    folder = bench.folder / f"films-{n}"
    path = folder / "films.csv"
    if not path.exists():
        folder.mkdir()
        rng = np.random.default_rng(0)
        for i in range(min(n, 8)):
            base = rng.integers(0, 256, (17, 30, 3), dtype=np.uint8).repeat(16, axis=0).repeat(16, axis=1)
            write_video(
                folder / f"{i}.mp4", (np.roll(base, t, axis=1) for t in range(24 if bench.tiny else 240)), 24
            )
        found = tuple(Clip(f"c-{i:04}", f"m{i % 8}", f"{i % 8}.mp4") for i in range(n))
        write_manifest(Manifest(found, folder), path)
    return path


def two_on_one(bench: Bench) -> None:
    """Part 7: two shards on the card at once, killed at five moments and resumed (check 6)."""
    films = _films(bench, 6 if bench.tiny else 48)
    store, whole = bench.folder / "shards", bench.folder / "whole"
    words = [sys.executable, "-m", "obygaze", "extract", str(films)]
    how = ["--device", bench.device, "--clips-at-once", "8", "--backbone", "xclip", "--workers", "2"]
    how += ["--weights", bench.weights["xclip"], "--licence", "CC0-1.0"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*words, str(whole), *how], check=True, **quiet)
    began = time.perf_counter()
    rng = np.random.default_rng(0)
    kills = 0 if bench.tiny else 5
    for _ in range(kills + 1):
        shards = [
            subprocess.Popen([*words, str(store), *how, "--shard", f"{i}/2"], **quiet) for i in range(2)
        ]
        if kills and not bench.late(12):
            kills -= 1
            time.sleep(float(rng.uniform(3, 7)))
            shards[0].send_signal(signal.SIGKILL)
            for shard in shards:
                shard.wait()
            continue
        codes = [shard.wait() for shard in shards]
        break
    took = time.perf_counter() - began
    sealed = seal(None, store, licence="CC0-1.0")
    same = open_store(sealed).fingerprint == open_store(Path(f"{whole}-1.0.0")).fingerprint
    bench.row(
        "check",
        check="6 two shards, killed and resumed",
        verdict="ok" if same else "FAILED",
        codes=codes,
        seconds=round(took, 1),
    )
    if bench.on_card:
        free, total = torch.cuda.mem_get_info()
        bench.row(
            "check",
            check="7 memory after kills",
            verdict="look",
            found=f"{free / 1e9:.1f} of {total / 1e9:.1f} GB free",
        )


PARTS: tuple[tuple[str, int, Callable[[Bench], None]], ...] = (
    ("card", 10, card),
    ("networks", 30, networks),
    ("right?", 70, right),
    ("model only", 110, model_only),
    ("compile", 110, compiled),
    ("runner", 50, through_runner),
    ("end to end", 90, end_to_end),
    ("two on one", 40, two_on_one),
)
TABLES = (
    ("model", ("network", "precision", "at_once", "clips_per_s", "percent_of_ceiling", "peak_GB")),
    ("compile", ("network", "compile_s", "clips_per_s", "cosine")),
    (
        "runner",
        ("precision", "tokens", "at_once", "clips_per_s", "GPU_had_work_percent", "host_CPU_ms_a_clip"),
    ),
    (
        "end to end",
        ("what", "precision", "clips_per_s", "GPU_had_work_percent", "host_CPU_ms_a_clip", "limit"),
    ),
    ("check", ("check", "verdict", "found")),
)


def tables(bench: Bench) -> None:
    """Print the tables for benchmarks/README.md."""
    for part, columns in TABLES:
        rows = [[row.get(column, "") for column in columns] for row in bench.rows if row["part"] == part]
        if rows:
            print(f"\n{part}\n")
            headers = [column.replace("_", " ") for column in columns]
            print(tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True))


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="0,1,2,3,4,5,6,7", help="numbers of parts")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, help="file of JSON lines to append to")
    parser.add_argument("--tiny", action="store_true", help="tiny networks and few clips")
    parser.add_argument("--inner", choices=["digest"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(given.device, given.tiny, given.out, Path(folder))
        if given.inner:
            print(checks.digest(bench.load, "xclip-lsmdc"))
            return
        if bench.on_card and (reason := Compute("auto").fallback()):
            sys.exit(f"not run: {reason}")
        try:
            for number, (title, seconds, part) in enumerate(PARTS):
                if str(number) in given.only.split(","):
                    print(f"\n{number} {title} ({seconds} s)", flush=True)
                    bench.ends = time.monotonic() + seconds * (100 if given.tiny else 1)
                    part(bench)
        finally:
            tables(bench)


if __name__ == "__main__":
    main()
