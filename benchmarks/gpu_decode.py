"""`gpu.py --decode`: the bits of a GPU's decoder, its speed beside cores, its memory, and a death of it.

Four parts of together 450 seconds at most. Films are drawn and encoded here: nothing is fetched.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import av
import numpy as np
from av.bitstream import BitStreamFilterContext
from gpu_bench import Bench
from numpy.typing import NDArray

from obygaze_features.backbones.presets import choose_preset
from obygaze_features.cores import usable_cores
from obygaze_features.errors import VideoError
from obygaze_features.extraction import gpu_pool
from obygaze_features.extraction.decode_clips import DecodedClip, DecodeTask, Request
from obygaze_features.extraction.extract import prepare
from obygaze_features.extraction.gpu_pool import ON_GPU, GpuPool
from obygaze_features.extraction.job import Recipe
from obygaze_features.extraction.pool import DecodePool
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.video import read_frames, uniform
from obygaze_features.video.hardware import Gpu, GpuReader, NotOnGpu, NvidiaGpu, find_difference
from obygaze_features.video.index import index_packets

RATE = 24
N_FRAMES = 32
SPEED_S = 16.0
"""Seconds that each measurement of speed takes."""

TIMES_CORES = 2.0
"""What is asked of GPU and cores together at 1080p, in clips a second of the cores alone."""

X265 = "keyint=48:bframes=4:log-level=none:pools=none:frame-threads=1"


class Film(NamedTuple):
    """How a film is encoded: its size, codec, format of pixels and options."""

    wide: int
    high: int
    codec: str
    pixels: str = "yuv420p"
    options: dict[str, str] = {}  # noqa: RUF012 - never changed


KINDS = {
    "h264.mp4": Film(640, 360, "libx264"),
    "h264-odd-crop.mp4": Film(638, 358, "libx264"),
    "h264-interlaced.mkv": Film(720, 576, "libx264", options={"x264-params": "tff=1"}),
    "h264-full-range.mp4": Film(640, 360, "libx264", "yuvj420p"),
    "h264-10.mkv": Film(640, 360, "libx264", "yuv420p10le"),
    "h264-422.mkv": Film(640, 360, "libx264", "yuv422p"),
    "h264-444.mkv": Film(640, 360, "libx264", "yuv444p"),
    "hevc.mkv": Film(640, 360, "libx265", options={"x265-params": X265}),
    "hevc-10.mkv": Film(640, 360, "libx265", "yuv420p10le", {"x265-params": X265}),
    "vp9.webm": Film(640, 360, "libvpx-vp9", options={"cpu-used": "8"}),
    "av1.mkv": Film(640, 360, "libsvtav1", options={"preset": "10", "svtav1-params": "lp=1"}),
    "av1-grain.mkv": Film(
        640, 360, "libsvtav1", options={"preset": "10", "svtav1-params": "lp=1:film-grain=30"}
    ),
    "mpeg2.mkv": Film(640, 360, "mpeg2video", options={"b": "4000k"}),
    "mpeg4.mkv": Film(640, 360, "mpeg4", options={"b": "4000k"}),
}
"""Films whose bits are compared."""

SIZES = {
    "480p": Film(854, 480, "libx264", options={"preset": "veryfast"}),
    "1080p": Film(1920, 1080, "libx264", options={"preset": "veryfast"}),
    "4K": Film(3840, 2160, "libx265", options={"preset": "ultrafast", "x265-params": X265}),
}
"""Films whose clips are counted a second; clips of 10 s, those of 4K of 4 s."""


def pictures(wide: int, high: int, n: int) -> Iterator[NDArray[np.uint8]]:
    """Draw moving waves with grain, RGB [high, wide, 3]."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:high, :wide].astype(np.float32)
    waves = [120 + 90 * np.sin(x / 97 + y / 210), 120 + 80 * np.cos(y / 133), 90 + 70 * np.sin((x + y) / 150)]
    picture = np.stack(waves, axis=-1)
    grainy = []
    for _ in range(4):
        grain = rng.normal(0, 4, (high, wide, 1)).astype(np.float32)
        grainy.append((picture + grain).clip(0, 255).astype(np.uint8))
    for number in range(n):
        yield np.roll(grainy[number % 4], 5 * number, axis=1)


def write(path: Path, film: Film, n: int) -> Path:
    """Encode a film of drawn pictures, in groups of at most 10 s."""
    with av.open(str(path), "w") as output:
        stream = output.add_stream(film.codec, rate=RATE, options={"g": str(10 * RATE), **film.options})
        stream.width, stream.height, stream.pix_fmt = film.wide, film.high, film.pixels
        stream.time_base = Fraction(1, RATE)
        for number, picture in enumerate(pictures(film.wide, film.high, n)):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts = number
            frame.time_base = Fraction(1, RATE)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path


def gpu_name(bench: Bench) -> Gpu:
    """Return the GPU; with `--tiny` a pretended one, which tries the code without a GPU.

    Raises
    ------
    SystemExit
        There is no GPU: it says what is missing.
    """
    if bench.tiny:
        sys.path.append(str(Path(__file__).parents[1]))
        from tests.extraction.pretended_gpus import PretendedGpu

        return PretendedGpu()
    gpu = NvidiaGpu(min_pixels=0)
    missing = gpu.missing()
    if missing:
        sys.exit(f"not run: {missing}")
    return gpu


# --- bits
# ---------------------------------------------------------------------------
def bits(bench: Bench, gpu: Gpu) -> None:
    """Compare every frame of the first groups, and what a clip gives, with the cores; damage, too."""
    n = 24 if bench.tiny else 120
    folder = bench.folder / "kinds"
    folder.mkdir()
    films = {}
    with ThreadPoolExecutor(usable_cores()) as threads:
        writing = {name: threads.submit(write, folder / name, film, n) for name, film in KINDS.items()}
    for name, written in writing.items():
        try:
            films[name] = written.result()
        except av.FFmpegError as error:
            bench.row("bits", film=name, gpu=f"not tried: it cannot be encoded here ({error.strerror})")
    films["h264-left-crop.ts"] = cropped_at_left(films["h264.mp4"])
    for (name,) in bench.plan("bits", "film", of=[(name,) for name in films], needed_s=2):
        path = films[name]
        table = index_packets(path)
        try:
            verdict = find_difference(path, range(len(table.shown)), gpu) or "equal in all bits"
        except NotOnGpu as reason:
            verdict = str(reason)
        bench.row("bits", film=name, pixels=table.stream.pixels, gpu=verdict)
        if verdict.startswith("equal"):
            bench.check(f"a clip of {name}", equal_clip(path, gpu))
    damage(bench, gpu, films["h264.mp4"])


def cropped_at_left(film: Path) -> Path:
    """Copy a film of H.264 whose settings leave out columns at the left, which FFmpeg ignores on a GPU."""
    target = film.with_name("h264-left-crop.ts")
    with av.open(str(film)) as source, av.open(str(target), "w") as output:
        stream = output.add_stream_from_template(source.streams.video[0])
        crop = BitStreamFilterContext("h264_metadata=crop_left=16", source.streams.video[0], stream)
        for packet in source.demux(video=0):
            for cropped in crop.filter(packet) if packet.size else ():
                cropped.stream = stream
                output.mux(cropped)
    return target


def equal_clip(path: Path, gpu: Gpu) -> bool:
    """Whether 8 frames of a clip are those of the cores."""
    by_cores = read_frames(path, uniform(8))
    ((_, on_gpu),) = GpuReader(path, [(uniform(8), np.array)], gpu).read_all([(None, None)])
    if isinstance(on_gpu, VideoError):
        return False
    return all(map(np.array_equal, by_cores.images, on_gpu[0].images))


def damage(bench: Bench, gpu: Gpu, path: Path) -> None:
    """Change bytes inside of pictures, and count what the cores and the GPU tell of it."""
    rng = np.random.default_rng(0)
    n = 4 if bench.tiny else 40
    told_by_cores = told_by_gpu = silent = 0
    for number in range(n):
        damaged = path.with_name(f"damaged-{number}.mp4")
        content = bytearray(path.read_bytes())
        place = int(rng.integers(len(content) // 4, len(content) // 2))
        content[place : place + 8] = rng.bytes(8)
        damaged.write_bytes(content)
        try:
            by_cores = read_frames(damaged, uniform(8)).status
        except VideoError:
            by_cores = "partial"
        try:
            results = list(GpuReader(damaged, [(uniform(8), np.array)], gpu).read_all([(None, None)]))
            by_gpu = "partial" if isinstance(results[0][1], VideoError) else results[0][1][0].status
        except (NotOnGpu, VideoError):
            by_gpu = "handed to cores"
        told_by_cores += by_cores != "ok"
        told_by_gpu += by_gpu != "ok"
        silent += by_cores != "ok" and by_gpu == "ok"
    bench.row("bits", damaged=n, told_by_cores=told_by_cores, told_on_gpu=told_by_gpu, gpu_is_silent=silent)


# --- speed, memory, a killed process
# ---------------------------------------------------------------------------
def films_of_sizes(bench: Bench) -> dict[str, Path]:
    """Encode a clip of each size."""
    folder = bench.folder / "sizes"
    folder.mkdir()

    def one(name: str) -> Path:
        film = SIZES[name]
        if bench.tiny:
            return write(folder / f"{name}.mp4", film._replace(wide=96, high=64), 24)
        return write(folder / f"{name}.mp4", film, (4 if name == "4K" else 10) * RATE)

    with ThreadPoolExecutor(len(SIZES)) as threads:
        return dict(zip(SIZES, threads.map(one, SIZES), strict=True))


def tasks_of(film: Path, n: int) -> list[DecodeTask]:
    """Name a clip many times: each is a file of its own, as in a corpus of clips.

    Frames are prepared as for X-CLIP, by a module that does not import torch in every worker.
    """
    geometry = choose_preset("obygaze12", ("xclip", "obygaze12")).geometry
    requests = {"xclip": Request(uniform(N_FRAMES), geometry)}
    tasks = []
    for number in range(n):
        copy = film.with_name(f"{film.stem}-{number}.mp4")
        if not copy.exists():
            copy.symlink_to(film)
        tasks.append(DecodeTask(str(number), copy, start_s=None, end_s=None, requests=requests))
    return tasks


def wait_for_gpu(pool: DecodePool) -> DecodePool:
    """Wait until the process of a GPU is open, which is not counted."""
    while isinstance(pool, GpuPool) and not pool._is_open:
        event = pool._pool.get(1.0)
        if event is not None:
            pool._handle_gpu_event(event)
    return pool


def speed_of(pool: DecodePool, tasks: Sequence[DecodeTask], most_s: float) -> dict[str, Any]:
    """Count the clips a second, from the first one on, and those of the GPU."""
    began: list[float] = []
    clips: list[DecodedClip] = []
    for clip in pool.decode(tasks, lambda: bool(began) and time.monotonic() > began[0] + most_s):
        if not began:
            began.append(time.monotonic())
        clips.append(clip)
    seconds = time.monotonic() - began[0]
    on_gpu = sum(ON_GPU in clip.remarks for clip in clips)
    failed = sum(clip.status != "ok" for clip in clips)
    rate = (len(clips) - 1) / max(seconds, 1e-9)
    return {"clips_per_s": round(rate, 2), "clips": len(clips), "on_card": on_gpu, "failed": failed}


def speeds(bench: Bench, gpu: Gpu) -> None:
    """Measure clips a second with cores, the GPU (and one core), and both; with other numbers of threads."""
    films = films_of_sizes(bench)
    cores = usable_cores()
    hands: dict[str, Callable[[], DecodePool]] = {
        "cores": lambda: DecodePool(cores, timeout_s=600.0, batch_size=8),
        "card and a core": lambda: GpuPool(workers=1, timeout_s=600.0, batch_size=8, gpu=gpu),
        "card and cores": lambda: GpuPool(cores, timeout_s=600.0, batch_size=8, gpu=gpu),
    }
    n = 6 if bench.tiny else 4000
    most_s = 2.0 if bench.tiny else SPEED_S
    plans = [(size, hand, gpu_pool.GPU_THREADS) for size in films for hand in hands]
    plans += [("1080p", "card and a core", n_threads) for n_threads in (1, 8)]
    for size, hand, n_threads in bench.plan(
        "decode", "size", "hand", "threads", of=plans, needed_s=most_s + 4
    ):
        with (
            mock.patch.object(gpu_pool, "GPU_THREADS", n_threads),
            watched_memory() as peak,
            hands[hand]() as pool,
        ):
            speed = speed_of(wait_for_gpu(pool), tasks_of(films[size], n), most_s)
        facts = {"card_MB": peak["card"], "card_process_MB": peak["process"]}
        bench.row("decode", size=size, hand=hand, cores=cores, threads=n_threads, **speed, **facts)


@contextmanager
def watched_memory() -> Iterator[dict[str, int]]:
    """Note the most memory that the GPU has in use, in MB, and the most of a process of this one."""
    peak = {"card": 0, "process": 0}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            peak["card"] = max(peak["card"], gpu_memory_mb())
            peak["process"] = max(peak["process"], largest_child_mb())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def gpu_memory_mb() -> int:
    """Return the memory of the first GPU in use, in MB; 0 where that is not said."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return 0
    query = [command, "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]
    text = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    return int(text) if text.isdecimal() else 0


def largest_child_mb() -> int:
    """Return the resident memory of the largest process that this one has started, in MB."""
    largest_kb = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text(encoding="ascii").splitlines())
        except (OSError, ValueError):
            continue
        if int(lines["PPid"]) == os.getpid() and "VmRSS" in lines:
            largest_kb = max(largest_kb, int(lines["VmRSS"].split()[0]))
    return largest_kb // 1024


def killed(bench: Bench, gpu: Gpu) -> None:
    """Kill the process of the GPU while it works: no clip is lost, and its memory is given back."""
    film = bench.folder / "sizes" / "1080p.mp4"
    tasks = tasks_of(film, 20 if bench.tiny else 60)
    before_mb = gpu_memory_mb()
    clips: list[DecodedClip] = []
    kills = 0
    began = time.monotonic()
    with GpuPool(usable_cores(), timeout_s=600.0, batch_size=8, gpu=gpu) as pool:
        wait_for_gpu(pool)
        for clip in pool.decode(tasks):
            clips.append(clip)
            if kills < gpu_pool.MAX_STARTS - 1 and ON_GPU in clip.remarks:
                kills += 1
                os.kill(pool._process.pids()[0], signal.SIGKILL)
    good = sorted(clip.clip_id for clip in clips) == sorted(task.clip_id for task in tasks)
    good &= all(clip.status == "ok" for clip in clips)
    on_gpu = sum(ON_GPU in clip.remarks for clip in clips)
    seconds = time.monotonic() - began
    left = f"{gpu_memory_mb() - before_mb} MB more in use on the card"
    bench.check(
        "a killed process", good, f"{kills} kills, {on_gpu} clips on the card, {seconds:.0f} s, {left}"
    )


def end_to_end(bench: Bench, gpu: Gpu) -> None:
    """Extract a network's features of 1080p clips with cores, and with the GPU beside them: equal stores."""
    n = 4 if bench.tiny else 160
    tasks = tasks_of(bench.folder / "sizes" / "1080p.mp4", n)
    clips = [Clip(f"c-{task.clip_id}", "m", task.path.name) for task in tasks if task.path is not None]
    manifest = Manifest(tuple(clips), bench.folder / "sizes")
    weights = {"weights": bench.weights["xclip"]}
    stores = {}
    rates = {}
    for decoder in ("pyav", "cuda"):
        with mock.patch.object(gpu_pool, "MAKE_GPU", return_value=gpu):
            work = prepare(
                manifest,
                bench.folder / f"end-{decoder}",
                [Recipe("xclip", n_frames=None, options=weights)],
                licence="CC0-1.0",
                corpus="clips",
                decoder=decoder,
                note=print,
            )
            stage, report = work.run()
        stores[decoder] = work.seal(stage)
        rates[decoder] = report.clips / report.wall_s
        facts = {"clips_per_s": round(rates[decoder], 2), "shares": report.time_percentages()}
        bench.row("decode", size="1080p", hand=f"extract --decoder {decoder}", **facts)
    digests = [(path / "manifest-sha256.txt").read_bytes() for path in stores.values() if path is not None]
    bench.check("stores are equal", len(digests) == 2 and digests[0] == digests[1])
    times = rates["cuda"] / rates["pyav"]
    good = None if bench.tiny else times >= TIMES_CORES
    bench.check("1080p with the card, in times the cores", good, f"{times:.2f}, {TIMES_CORES:g} asked")


PARTS: tuple[tuple[str, int, Callable[[Bench, Gpu], None]], ...] = (
    ("bits", 90, bits),
    ("clips a second", 290, speeds),
    ("a killed process", 20, killed),
    ("end to end", 50, end_to_end),
)


def measure(bench: Bench) -> None:
    """Run all parts; a GPU must be there."""
    gpu = gpu_name(bench)
    for title, seconds, part in PARTS:
        print(f"\n{title} ({seconds} s)", flush=True)
        bench.ends = time.monotonic() + seconds * (100 if bench.tiny else 1)
        part(bench, gpu)
