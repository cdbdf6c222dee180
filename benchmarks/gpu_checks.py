"""The checks of first contact with a GPU: values, bits, attention, memory, and what is said where it ends.

Each function gives findings: check, what was found, whether it is as expected (None: it could not be tried).
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray

from obygaze_features.backbones import Backbone
from obygaze_features.backbones.compute import Compute
from obygaze_features.errors import BackboneError

Finding = tuple[str, str, bool | None]
Load = Callable[..., Backbone]
Arrays = dict[str, NDArray[Any]]

# precision -> the largest difference allowed, as a share of the largest value, and the smallest cosine
ALLOWED = {
    "float32": (1e-5, 0.9999999),
    "tf32": (2e-3, 0.99999),
    "float16": (1.0, 0.99999),
    "bfloat16": (1.0, 0.9999),
    "bfloat16-weights": (1.0, 0.9995),
}
GUARD_S = 60


def clips(backbone: Backbone, n: int) -> NDArray[np.uint8]:
    """Draw clips of noise, the same ones for the same number."""
    shape = (n, *backbone.encode.shape)
    return np.random.default_rng(n).integers(0, 256, shape, dtype=np.uint8)


def furthest(a: Arrays, b: Arrays) -> tuple[float, float]:
    """Return the largest difference as a share of the largest value, and the smallest cosine of vectors."""
    worst = 0.0
    cosine = 1.0
    for name, values in a.items():
        x = values.reshape(-1, values.shape[-1]).astype(np.float64)
        y = b[name].reshape(-1, b[name].shape[-1]).astype(np.float64)
        worst = max(worst, float(np.abs(x - y).max() / np.abs(y).max()))
        norms = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
        cosine = min(cosine, float(((x * y).sum(axis=1) / norms).min()))
    return worst, cosine


def values(
    load: Load, name: str, reference: Arrays, frames: NDArray[np.uint8], *, tiny: bool
) -> Iterator[Finding]:
    """Check 1: every precision against the CPU's float32; narrow networks round more."""
    for precision, (far, near) in ALLOWED.items():
        settings: dict[str, Any] = {"tf32": True} if precision == "tf32" else {"precision": precision}
        try:
            features = load(name, storage="float32", **settings).encode(frames)
        except BackboneError as error:
            yield f"1 {name} {precision}", str(error), None
            continue
        worst, cosine = furthest(features, reference)
        finite = all(np.isfinite(array).all() for array in features.values())
        # tokens are stored in float16, whatever the precision
        limit = max(far, 1e-3) if "tokens" in features else far
        good = finite and worst <= limit and cosine >= (min(near, 0.999) if tiny else near)
        yield f"1 {name} {precision}", f"difference {worst:.1e}, cosine {cosine:.7f}", good


def bits(load: Load, name: str) -> Iterator[Finding]:
    """Check 2: the same bytes again, at other places, filled up, with look-ahead; how far without filling."""
    backbone = load(name, clips_at_once=8)
    runner: Any = backbone.encode
    frames = clips(backbone, 8)
    whole = runner(frames)

    def equal(arrays: Arrays, expected: Arrays) -> bool:
        return all(np.array_equal(arrays[array], expected[array]) for array in expected)

    yield f"2 {name} again", "", equal(runner(frames), whole)
    turned = {k: v[::-1] for k, v in runner(frames[::-1].copy()).items()}
    on_gpu = runner.device.type == "cuda"  # a CPU's products may hang on the place
    yield (
        f"2 {name} other places",
        f"difference {furthest(turned, whole)[0]:.1e}",
        not on_gpu or equal(turned, whole),
    )
    for n in (1, 3, 5, 7):
        yield f"2 {name} {n} filled up", "", equal(runner(frames[:n]), {k: v[:n] for k, v in whole.items()})
    ahead = [runner.start(list(frames)) for _ in range(3)]
    yield f"2 {name} three begun", "", all(equal(pending.result().arrays, whole) for pending in ahead)
    alone = load(name, clips_at_once=1).encode(frames)
    yield f"2 {name} one at once", f"difference {furthest(alone, whole)[0]:.1e}", True
    if on_gpu:
        named = load(name, clips_at_once=8, device="cuda:0").encode(frames)
        yield f"2 {name} cuda:0", "", equal(named, whole)


def attention(load: Load, name: str, precision: str) -> Iterator[Finding]:
    """Check 3: which attention kernels run, and that the one that needs most memory never does."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backbone = load(name, precision=precision)
    frames = clips(backbone, 1)
    backbone.encode(frames)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiled:
        backbone.encode(frames)
    words = ("flash", "fmha", "attention", "cutlassF")
    kernels = set[str]()
    for event in profiled.key_averages():
        if any(word in event.key for word in words):
            kernels.add(event.key.split("<")[0][:60])
    yield f"3 {name} {precision}", "; ".join(sorted(kernels)) or "no kernel of that name", bool(kernels)
    try:
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
            backbone.encode(frames)
        yield f"3 {name} {precision} without math", "", True
    except RuntimeError as error:
        yield f"3 {name} {precision} without math", str(error).splitlines()[0], False


def memory(load: Load, name: str, bytes_a_clip: float) -> Iterator[Finding]:
    """Check 4: out of memory for real, by a bound of our own and by a neighbour."""
    backbone = load(name, clips_at_once=16)
    runner: Any = backbone.encode
    frames = clips(backbone, 5)
    expected = load(name, clips_at_once=8).encode(frames)
    runner.warm_up()
    torch.cuda.empty_cache()
    held = torch.cuda.memory_allocated()
    for fit in (6, 1):
        with bounded(held + int(bytes_a_clip * (fit + 0.9))):
            try:
                features = runner(frames)
                worst, _ = furthest(features, expected)
                yield (
                    f"4 room for {fit}",
                    f"{runner.clips_at_once} at once, difference {worst:.1e}",
                    worst < 1e-5,
                )
            except BackboneError as error:
                yield f"4 room for {fit}", str(error), fit == 1
    with bounded(held + int(bytes_a_clip / 4)):
        try:
            load(name, clips_at_once=2).encode(frames)
            yield "4 room for none", "no error", False
        except BackboneError as error:
            yield "4 room for none", str(error), True
    free, _ = torch.cuda.mem_get_info()
    with neighbour(free - int(2 * bytes_a_clip)):
        try:
            features = load(name, clips_at_once=8).encode(frames)
            yield "4 a neighbour takes all", f"difference {furthest(features, expected)[0]:.1e}", True
        except BackboneError as error:
            yield "4 a neighbour takes all", str(error), True
        except RuntimeError as error:
            yield "4 a neighbour takes all", f"{type(error).__name__}: {error}".splitlines()[0], False
    yield (
        "4 after the neighbour",
        "",
        furthest(load(name, clips_at_once=8).encode(frames), expected)[0] < 1e-5,
    )


@contextmanager
def bounded(size: int) -> Iterator[None]:
    """Let torch's allocator take no more than some bytes."""
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(min(max(size / total, 1e-4), 1.0))
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@contextmanager
def neighbour(size: int) -> Iterator[None]:
    """Let another process hold some bytes of the GPU."""
    script = (
        "import sys, torch\n"
        "x = torch.zeros(max(int(sys.argv[1]), 1), dtype=torch.uint8, device='cuda')\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(max(size, 1))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as neighbour_process:
        try:
            assert neighbour_process.stdout is not None
            neighbour_process.stdout.readline()
            yield
        finally:
            neighbour_process.kill()


def sanitised(inner: list[str]) -> Iterator[Finding]:
    """Check 5: torch's stream sanitiser, blocking launches and, where it is installed, memcheck."""
    plain = run(inner, {})
    for label, extra in (
        ("CUDA_LAUNCH_BLOCKING", {"CUDA_LAUNCH_BLOCKING": "1"}),
        ("TORCH_CUDA_SANITIZER", {"TORCH_CUDA_SANITIZER": "1"}),
    ):
        process = run(inner, extra)
        last_line = (process.stderr.strip().splitlines() or [""])[-1]
        good = process.returncode == 0 and process.stdout == plain.stdout
        yield f"5 {label}", "" if good else last_line, good
    if which := next((p for p in os.get_exec_path() if (Path(p) / "compute-sanitizer").exists()), None):
        process = run(inner, {}, before=[str(Path(which) / "compute-sanitizer"), "--error-exitcode", "9"])
        yield "5 memcheck", (process.stdout.strip().splitlines() or [""])[-1], process.returncode == 0
    else:
        yield "5 memcheck", "compute-sanitizer is not installed", None


def run(
    inner: list[str], extra: dict[str, str], before: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run this benchmark's own command in another process."""
    command = [*(before or []), sys.executable, *inner]
    try:
        return subprocess.run(
            command, env={**os.environ, **extra}, capture_output=True, text=True, timeout=GUARD_S, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no end after {GUARD_S} s")


def digest(load: Load, name: str) -> str:
    """Return the SHA-256 of all arrays of twenty clips in batches of several sizes, some begun ahead."""
    backbone = load(name, clips_at_once=4)
    runner: Any = backbone.encode
    frames = clips(backbone, 20)
    begun = [runner.start(list(part)) for part in np.split(frames, [1, 6, 13])]
    sha = hashlib.sha256()
    for pending in begun:
        for array, values in sorted(pending.result().arrays.items()):
            sha.update(array.encode() + values.tobytes())
    return sha.hexdigest()


def refusals(obygaze: list[str], work: list[str]) -> Iterator[Finding]:
    """Check 9: what is said of an old GPU, of no GPU, and of `auto` without one."""
    with mock.patch("torch.cuda.get_device_capability", return_value=(7, 5)):
        try:
            Compute(device="cuda", precision="bfloat16").torch_device()
            yield "9 bf16 at capability 7.5", "no error", False
        except BackboneError as error:
            yield "9 bf16 at capability 7.5", str(error), True
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    process = run([*obygaze, *work, "--device", "cuda"], hidden)
    lines = process.stderr.strip().splitlines()
    yield "9 --device cuda without one", "; ".join(lines)[:200], process.returncode == 1 and len(lines) == 1
    process = run([*obygaze, *work, "--dry-run"], hidden)
    yield "9 auto without one", process.stderr.strip()[:200], "on cpu: no CUDA device" in process.stderr
