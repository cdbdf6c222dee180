"""What `obygaze extract --dry-run` estimates, against the run itself: processor time, duration, peak disk.

Three cases, through the backbone `descriptors`: 200 spans of films, windows of a film that share passes,
and the real videos ten times. Both are whole commands, each dry run directly followed by its run, so that
what else the machine does hits both alike. Processor seconds are of all processes of a command, with imports.

The films are the packets of real videos, over and over, so that nothing is encoded. The duration says little
on a machine that others use: the load changes between a dry run and its run.

    python benchmarks/dryrun.py VIDEOS [--repeats 3] [--workers 2] [--only spans windows] [--check]

With --check, exit code 1 if the median of a ratio of processor times is not within 25 %, or of peak disk
space not within 5 %.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from decode_clips import repeat
from scale_seals import room
from tabulate import tabulate

from obygaze_features.manifest import Clip, Manifest, write_manifest

SPANS, TIMES, FILM_S = 200, 10, 180.0
FILMED = ("arm_wrestling.mp4", "flipping_a_pancake.mkv", "v_GGSY1Qvo990.mp4")
TIME, DISK = 0.25, 0.05
LOOK_S = 0.02


def films(videos: Path, folder: Path) -> dict[str, float]:
    """Make films of about three minutes; return their seconds."""
    from obygaze_features.video import probe

    made = {}
    for name in FILMED:
        seconds = probe(videos / name).duration_s
        film = folder / f"film-{Path(name).stem}.mkv"
        repeat(videos / name, film, round(FILM_S / seconds))
        made[film.name] = probe(film).duration_s
    return made


def spans(videos: Path, folder: Path) -> list[Clip]:
    """Draw spans of 2 to 12 s of the films; those of a film lie anywhere and may overlap."""
    rng = np.random.default_rng(0)
    there = films(videos, folder)
    clips = []
    for number in range(SPANS):
        name = sorted(there)[number * len(there) // SPANS]
        length = float(rng.uniform(2, 12))
        start = round(float(rng.uniform(0, there[name] - length - 1)), 3)
        clips.append(Clip(f"{Path(name).stem}-{number:03d}", Path(name).stem, name, start, start + length))
    return clips


def windows(videos: Path, folder: Path) -> list[Clip]:
    """Cut a film into windows of 8 s every 2 s."""
    name, seconds = min(films(videos, folder).items())
    starts = np.arange(0, seconds - 8, 2.0)
    return [
        Clip(f"w{number:03d}", "film", name, float(start), float(start) + 8)
        for number, start in enumerate(starts)
    ]


def whole(videos: Path, folder: Path) -> list[Clip]:
    """Copy the real videos ten times."""
    clips = []
    for video in sorted(path for path in videos.iterdir() if path.suffix in (".mp4", ".mkv", ".avi", ".mov")):
        for number in range(TIMES):
            copy = folder / f"{video.stem}-{number}{video.suffix}"
            shutil.copy(video, copy)
            clips.append(Clip(copy.stem, video.stem, copy.name))
    return clips


CASES: dict[str, Callable[[Path, Path], list[Clip]]] = {"spans": spans, "windows": windows, "videos": whole}


def command(words: list[str], place: Path) -> tuple[float, float, int, str]:
    """Run obygaze; return CPU and wall seconds, the most bytes taken at a place meanwhile, and its output."""
    most, over = 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.wait(LOOK_S):
            most = max(most, room(place))

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    watcher = threading.Thread(target=watch)
    watcher.start()
    before, began = spent(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "obygaze", *words], capture_output=True, text=True, check=False
    )
    wall = time.perf_counter() - began
    over.set()
    watcher.join()
    if done.returncode not in (0, 3):
        sys.exit(done.stderr)
    return spent() - before, wall, max(most, room(place)), done.stdout


def once(clips: list[Clip], folder: Path, workers: int) -> dict[str, float]:
    """Estimate and run one case; return ratios of estimated to real, and the real figures."""
    manifest, place = folder / "clips.csv", folder / "out"
    write_manifest(Manifest(tuple(clips), folder), manifest)
    place.mkdir()
    words = [
        "extract",
        str(manifest),
        str(place / "s"),
        "--workers",
        str(workers),
        "--licence",
        "CC0-1.0",
    ]
    *_, told = command([*words, "--dry-run", "--json"], place)
    found: dict[str, Any] = json.loads(told)
    cpu, wall, disk, _ = command(words, place)
    shutil.rmtree(place)
    return {
        "CPU s": cpu,
        "CPU": found["cpu_s"] / cpu,
        "duration": found["seconds"] / wall,
        "peak MB": disk / 1e6,
        "peak": found["room"]["peak_bytes"] / disk,
    }


def main() -> None:
    """Measure the cases and print a table of medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("videos", type=Path, help="folder of the real videos")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    table, wrong = [], []
    with tempfile.TemporaryDirectory() as name:
        for case in asked.only:
            folder = Path(name) / case
            folder.mkdir()
            clips = CASES[case](asked.videos, folder)
            runs = [once(clips, folder, asked.workers) for _ in range(asked.repeats)]
            found = {what: median(run[what] for run in runs) for what in runs[0]}
            spread = ", ".join(f"{run['CPU']:.2f}" for run in runs)
            table.append([case, len(clips), *(f"{value:.2f}" for value in found.values()), spread])
            print(table[-1], file=sys.stderr, flush=True)
            if abs(found["CPU"] - 1) > TIME or abs(found["peak"] - 1) > DISK:
                wrong.append(f"{case}: processor time {found['CPU']:.2f}, peak disk {found['peak']:.2f}")
    headers = ["case", "clips", *found, "CPU, all"]
    print(tabulate(table, headers=headers, tablefmt="github", disable_numparse=True))
    if asked.check and wrong:
        sys.exit("; ".join(wrong))


if __name__ == "__main__":
    main()
