"""Parts 0, 1, 3 and 4 of benchmarks/gpu.py: the GPU itself, and networks alone, plain and compiled."""

import os
import subprocess
import time
from typing import Any

import gpu_checks as checks
import numpy as np
import torch
from gpu_bench import NAMES, Bench
from torch.utils.flop_counter import FlopCounterMode

from obygaze_features.backbones import Layers, load_backbone
from obygaze_features.backbones.compute import Compute, card_record, gpu_name
from obygaze_features.extraction.encode import warm_up

FAMILIES = (
    ("image", "siglip"),
    ("image", "dinov3_vit"),
    ("video", "videomae"),
    ("video", "videoprism_vision_model"),
    ("video", "vjepa2"),
)
"""Backbone and type of the networks that part 8 runs."""


def gpu(bench: Bench) -> None:
    """Part 0: what the GPU is, and what it can do at most."""
    device = torch.device(bench.device)
    facts: dict[str, Any] = {"name": gpu_name(device), "torch": torch.__version__, "cores": os.cpu_count()}
    if bench.on_gpu:
        facts |= card_record(device)
        facts["kernels"] = " ".join(torch.cuda.get_arch_list())
        query = "driver_version,clocks.max.sm,mig.mode.current"
        command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
        try:
            process = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
            facts["driver, clock, MIG"] = process.stdout.strip()
        except OSError:
            facts["driver, clock, MIG"] = "no nvidia-smi"
    bench.row("card", **facts)
    side = 64 if bench.tiny else 8192
    from obygaze_features.backbones.compute import matmul_precision

    for label, dtype, tf32 in (
        ("fp32", torch.float32, False),
        ("tf32", torch.float32, True),
        ("bf16", torch.bfloat16, False),
    ):
        a, b = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
        with matmul_precision(tf32=tf32):
            taken = bench.timed(lambda a=a, b=b: a @ b)
        bench.row("ceiling", of=label, TFLOPS=round(2 * side**3 / taken / 1e12, 2))
    size = 1 << (16 if bench.tiny else 28)
    on_gpu = torch.zeros(size, dtype=torch.uint8, device=device)
    on_host = {"pageable": torch.zeros(size, dtype=torch.uint8)}
    if bench.on_gpu:
        on_host["pinned"] = on_host["pageable"].pin_memory()
    copied = on_gpu.clone()
    copies = {"on the card": (lambda: on_gpu.copy_(copied), 2)}
    for kind, host in on_host.items():
        copies[f"from {kind}"] = (lambda h=host: on_gpu.copy_(h), 1)
        copies[f"to {kind}"] = (lambda h=host: h.copy_(on_gpu), 1)
    for label, (copy, times) in copies.items():
        bench.row("ceiling", of=label, GBps=round(times * size / bench.timed(copy) / 1e9, 2))


def networks(bench: Bench) -> None:
    """Part 1: build, move, warm up."""
    for name in NAMES:
        began = time.perf_counter()
        backbone = bench.load(name)
        built = time.perf_counter()
        warm_up([backbone]) if bench.on_gpu else backbone.encode(checks.clips(backbone, 1))
        facts = {"peak_MB": round(torch.cuda.max_memory_allocated() / 1e6)} if bench.on_gpu else {}
        bench.row(
            "network",
            network=name,
            build_s=round(built - began, 1),
            warm_up_s=round(time.perf_counter() - built, 1),
            **facts,
        )


def model_only(bench: Bench) -> None:
    """Part 3: uint8 on the GPU to outputs on the GPU; every precision, and bf16 in several sizes."""
    ceilings = {
        row["of"]: row["TFLOPS"] for row in bench.rows if row["part"] == "ceiling" and "TFLOPS" in row
    }
    name_of = {"float32": "fp32", "tf32": "tf32"}
    plans = [(name, precision, 8) for name in NAMES for precision in checks.ALLOWED]
    plans += [(name, "bfloat16", n) for name in NAMES for n in (1, 4, 16, 32)]
    plans = plans[:6] if bench.tiny else plans
    names = ("network", "precision", "at_once")
    for name, precision, at_once in bench.plan("model", *names, of=plans, needed_s=3):
        settings: dict[str, Any] = {"tf32": True} if precision == "tf32" else {"precision": precision}
        runner: Any = bench.load(name, clips_at_once=at_once, **settings).encode
        runner.warm_up()
        if bench.on_gpu:
            torch.cuda.reset_peak_memory_stats()
        pixels = torch.from_numpy(np.zeros((at_once, *runner.shape), np.uint8)).to(runner.device)
        taken = bench.timed(lambda r=runner, p=pixels: r._forward(p))
        facts: dict[str, Any] = {"clips_per_s": round(at_once / taken, 1)}
        if ceiling := ceilings.get(name_of.get(precision, "bf16")):
            with FlopCounterMode(display=False) as counted:
                runner._forward(pixels)
            facts["percent_of_ceiling"] = round(100 * counted.get_total_flops() / taken / 1e12 / ceiling, 1)
        if bench.on_gpu:
            facts["peak_GB"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
            if at_once == 8:
                facts["kernels"] = _kernels(runner, pixels)
        bench.row("model", network=name, precision=precision, at_once=at_once, **facts)
        del runner, pixels
        if bench.on_gpu:
            torch.cuda.empty_cache()


def families(bench: Bench) -> None:
    """Part 8: networks of `image` and `video` in bf16, with their work and what goes up and down a clip."""
    families_run = [("image", "siglip")] if bench.tiny else FAMILIES
    for name, kind in bench.plan("family", "backbone", "type", of=families_run, needed_s=20):
        tokens = "patches" if name == "image" else "all"
        compute = Compute(bench.device, precision="bfloat16", clips_at_once=1 if bench.tiny else 8)
        frames = 1 if bench.tiny else None
        backbone = load_backbone(name, frames, weights=f"random:0:{kind}", tokens=tokens, compute=compute)
        runner: Any = backbone.encode
        runner.warm_up()
        at_once = runner.clips_at_once
        pixels = torch.from_numpy(np.zeros((at_once, *runner.shape), np.uint8)).to(runner.device)
        taken = bench.timed(lambda r=runner, p=pixels: r._forward(p))
        with FlopCounterMode(display=False) as counted:
            arrays = runner._forward(pixels)
        down = sum(values.numel() * values.element_size() for values in arrays.values())
        bench.row(
            "family",
            backbone=name,
            type=kind,
            at_once=at_once,
            GFLOP=round(counted.get_total_flops() / at_once / 1e9),
            up_MB=round(pixels.numel() / at_once / 1e6, 2),
            down_MB=round(down / at_once / 1e6, 2),
            clips_per_s=round(at_once / taken, 2),
            TFLOPS=round(counted.get_total_flops() / taken / 1e12, 1),
        )
        del backbone, runner, pixels, arrays
        if bench.on_gpu:
            torch.cuda.empty_cache()


def layers(bench: Bench) -> None:
    """Part 9: each network in bf16 without layers and with all of them: the same pass, a little longer."""
    for name in bench.plan("layers", "network", of=[(name,) for name in NAMES], needed_s=8):
        took = {}
        for label, more in (("last", {}), ("all", {"layers": Layers()})):
            runner: Any = bench.load(name[0], tokens="none", precision="bfloat16", **more).encode
            runner.warm_up()
            pixels = torch.from_numpy(np.zeros((runner.clips_at_once, *runner.shape), np.uint8))
            pixels = pixels.to(runner.device)
            took[label] = bench.timed(lambda r=runner, p=pixels: r._forward(p))
            del runner, pixels
        ratio = round(took["all"] / took["last"], 3)
        bench.row("layers", network=name[0], ratio=ratio, **{f"{k}_ms": v * 1e3 for k, v in took.items()})


def _kernels(runner: Any, pixels: torch.Tensor) -> int:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiled:
        runner._forward(pixels)
        torch.cuda.synchronize()
    on_gpu = [
        event for event in profiled.key_averages() if event.self_device_time_total
    ]  # not their launches
    return sum(event.count for event in on_gpu if "Mem" not in event.key)


def compiled(bench: Bench) -> None:
    """Part 4: torch.compile in bf16 at 8 clips."""
    names = zip(NAMES[:1] if bench.tiny else NAMES)
    for (name,) in bench.plan("compile", "network", of=names, needed_s=30):
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
