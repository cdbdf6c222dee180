"""Parts 5, 6 and 7 of benchmarks/gpu.py: networks as a run uses them, fed, written and killed."""

import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gpu_checks as checks
import numpy as np
import torch
from gpu_bench import NAMES, Bench
from measure import peak_mb

from obygaze_features.backbones import Backbone
from obygaze_features.backbones.compute import Compute
from obygaze_features.extraction.decode_clips import DecodedClip, Prepared
from obygaze_features.extraction.encode import encode_batches
from obygaze_features.extraction.extract import prepare
from obygaze_features.extraction.job import Job, Recipe
from obygaze_features.extraction.loop import run_loop
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store import Stage, open_store, seal, staging_path


def through_runner(bench: Bench) -> None:
    """Part 5: arrays in, arrays out, all networks, with look-ahead; memory that does not grow (check 8)."""
    plans = [
        *product(("bfloat16",), ("none", "all"), (8,) if bench.tiny else (8, 16, 32)),
        ("float32", "all", 8),
    ]
    names = ("precision", "tokens", "at_once")
    for precision, tokens, n in bench.plan("runner", *names, of=plans, needed_s=4):
        settings = {"precision": precision, "clips_at_once": n, "tokens": None if tokens == "all" else tokens}
        backbones = [bench.load(name, **settings) for name in NAMES]
        bench.row("runner", precision=precision, tokens=tokens, at_once=n, **_feed(bench, backbones, n))
    if bench.on_gpu:
        runner: Any = bench.load("vivit", precision="bfloat16").encode
        frames = list(checks.clips(bench.load("vivit"), 8))
        for _ in range(5):
            runner.start(frames).result()
        before = torch.cuda.memory_allocated(), peak_mb()
        n = 0
        while n < 200 and not bench.late(1):
            runner.start(frames).result()
            n += 1
        grown = torch.cuda.memory_allocated() - before[0]
        bench.row(
            "runner",
            batches=n,
            grown_on_the_gpu_bytes=grown,
            grown_on_the_host_MB=round(peak_mb() - before[1]),
        )


def _clips(backbones: list[Backbone], size: int, batches: int) -> Iterator[DecodedClip]:
    """Give clips whose frames are there."""
    ready = {backbone.name: checks.clips(backbone, size) for backbone in backbones}
    times = {backbone.name: np.arange(backbone.n_frames) for backbone in backbones}
    for number in range(batches * size):
        frames = {
            name: Prepared(x[number % size], times[name], times[name] / 24) for name, x in ready.items()
        }
        yield DecodedClip(f"c-{number:06}", "ok", frames=frames)


def _feed(bench: Bench, backbones: list[Backbone], size: int, stage: Stage | None = None) -> dict[str, Any]:
    """Encode ready frames with look-ahead; with a stage by the loop of every run, which writes them."""
    for backbone in backbones:
        backbone.encode.warm_up()
    batches = 2 if bench.tiny else 12
    clips = list(_clips(backbones, size, batches))
    busy = sum(backbone.encode.busy_s for backbone in backbones)
    cpu = time.process_time()
    began = time.perf_counter()
    if stage is None:
        batches = (clips[first : first + size] for first in range(0, len(clips), size))
        deque(encode_batches(backbones, batches), maxlen=0)
    else:
        names = [clip.clip_id for clip in clips]
        ready = SimpleNamespace(backbones=backbones, tasks=lambda _ids: [])
        options: dict[str, Any] = {"batch_size": size, "stopped": lambda: False}
        deque(run_loop(cast("Job", ready), stage, names, lambda *_: iter(clips), **options), maxlen=0)
    wall = time.perf_counter() - began
    busy = sum(backbone.encode.busy_s for backbone in backbones) - busy
    return {
        "clips_per_s": round(len(clips) / wall, 1),
        "GPU_had_work_percent": round(100 * busy / wall, 1) if bench.on_gpu else None,
        "host_CPU_ms_a_clip": round(1e3 * (time.process_time() - cpu) / len(clips), 2),
    }


def end_to_end(bench: Bench) -> None:
    """Part 6: the local engine on small clips with all cores, and ready frames: the limit of feeding."""
    films = films_of(bench, 4 if bench.tiny else 400)
    precisions = [("float32",), ("bfloat16",)]
    for (precision,) in bench.plan("end to end", "precision", of=precisions, needed_s=20):
        compute = Compute(bench.device, precision=precision, clips_at_once=8)
        recipes = [
            Recipe(name, n_frames=None, options={"weights": weights, "compute": compute})
            for name, weights in bench.weights.items()
        ]
        work = prepare(films, bench.folder / f"end-{precision}", recipes, licence="CC0-1.0", note=print)
        before = time.process_time()
        _, report = work.run()
        bench.row(
            "end to end",
            what="small clips",
            precision=precision,
            clips_per_s=round(report.clips / report.wall_s, 1),
            GPU_had_work_percent=report.gpu_busy_percent(),
            host_CPU_ms_a_clip=round(1e3 * (time.process_time() - before) / report.clips, 1),
            shares=report.time_percentages(),
            gpus=report.gpus,
            limit=max(report.time_percentages(), key=lambda name: report.time_percentages()[name]),
        )
    for (precision,) in bench.plan("end to end", "precision", of=precisions, needed_s=10):
        backbones = [bench.load(name, precision=precision) for name in NAMES]
        manifest = Manifest(tuple(Clip(f"c-{i:06}", "m", f"{i}.mp4") for i in range(12 * 8)), bench.folder)
        job = Job(manifest, "ready", tuple(backbones))
        place = staging_path(bench.folder / f"ready-{precision}")
        stage = Stage.open(place, job.planned_clips(), job.groups(), job.corpus_record())
        bench.row("end to end", what="ready frames", precision=precision, **_feed(bench, backbones, 8, stage))
    _idle(bench)


def _idle(bench: Bench) -> None:
    """Check 7: a host that sleeps as long as the GPU works leaves it idle for half of the time."""
    backbone = bench.load("xclip", precision="bfloat16")
    runner: Any = backbone.encode
    frames = list(checks.clips(backbone, 8))
    runner.start(frames).result()
    taken = bench.timed(lambda: runner.start(frames).result())
    busy = runner.busy_s
    began = time.perf_counter()
    for _ in range(3 if bench.tiny else 20):
        runner.start(frames).result()
        time.sleep(taken)
    share = 100 * (runner.busy_s - busy) / (time.perf_counter() - began)
    good = 30 <= share <= 55 if bench.on_gpu else None
    bench.check("7 half idle by design", good, f"{share:.0f} % at work")


def films_of(bench: Bench, n: int) -> Path:
    """Write small clips and their manifest."""
    from obygaze.demo_corpus import write_video

    folder = bench.folder / f"films-{n}"
    path = folder / "films.csv"
    if not path.exists():
        folder.mkdir()
        rng = np.random.default_rng(0)
        for i in range(min(n, 8)):
            base = rng.integers(0, 256, (17, 30, 3), dtype=np.uint8).repeat(16, axis=0).repeat(16, axis=1)
            write_video(
                folder / f"{i}.mp4",
                (np.roll(base, t, axis=1) for t in range(24 if bench.tiny else 240)),
                rate=24,
            )
        clips = tuple(Clip(f"c-{i:04}", f"m{i % 8}", f"{i % 8}.mp4") for i in range(n))
        write_manifest(Manifest(clips, folder), path)
    return path


def two_on_one(bench: Bench) -> None:
    """Part 7: two shards on the GPU at once, killed at five moments and resumed (check 6)."""
    films = films_of(bench, 6 if bench.tiny else 48)
    store = bench.folder / "shards"
    single = bench.folder / "whole"
    words = [sys.executable, "-m", "obygaze", "extract", str(films)]
    options = ["--device", bench.device, "--clips-at-once", "8", "--backbone", "xclip", "--workers", "2"]
    options += ["--weights", bench.weights["xclip"], "--licence", "CC0-1.0"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*words, str(single), *options], check=True, **quiet)
    began = time.perf_counter()
    rng = np.random.default_rng(0)
    kills = 0 if bench.tiny else 5
    for _ in range(kills + 1):
        shards = [
            subprocess.Popen([*words, str(store), *options, "--shard", f"{i}/2"], **quiet) for i in range(2)
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
    sealed = seal(stage_path=None, destination=store, licence="CC0-1.0")
    same = open_store(sealed).fingerprint == open_store(Path(f"{single}-1.0.0")).fingerprint
    outcome = f"exit codes {codes}, {time.perf_counter() - began:.0f} s"
    bench.check("6 two shards, killed and resumed", same, outcome)
    if bench.on_gpu:
        free, total = torch.cuda.mem_get_info()
        bench.check("7 memory after kills", None, f"{free / 1e9:.1f} of {total / 1e9:.1f} GB free")
