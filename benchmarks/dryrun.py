"""What `obygaze extract --dry-run` estimates, against the run itself: processor time, duration, peak disk.

Three cases, through the backbone `descriptors`: 200 spans of films, windows of a film that share passes,
and the real videos ten times. Both are whole commands, each dry run directly followed by its run, so that
what else the machine does hits both alike. Processor seconds are of all processes of a command, with imports.

The films are the packets of real videos, over and over, so that nothing is encoded. The duration says little
on a machine that others use: the load changes between a dry run and its run.

    python benchmarks/dryrun.py [--videos FOLDER] [--repeats 3] [--workers 2] [--only spans windows] [--check]

With --check, exit code 1 if the median of a ratio of processor times is not within 25 %, or of peak disk
space not within 5 %.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from decode_clips import VIDEOS, repeat
from measure import Took, arguments, show, timed, verdict
from scale import room

from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.video import probe

SPANS, TIMES, FILM_S = 200, 10, 180.0
FILMED = ("arm_wrestling.mp4", "flipping_a_pancake.mkv", "v_GGSY1Qvo990.mp4")
TIME, DISK = 0.25, 0.05
LOOK_S = 0.02


def films(videos: Path, folder: Path) -> dict[str, float]:
    """Make films of about three minutes; return their seconds."""
    made = {}
    for name in FILMED:
        film = folder / f"film-{Path(name).stem}.mkv"
        repeat(videos / name, film, round(FILM_S / probe(videos / name).duration_s))
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
    starts = np.arange(0, seconds - 8, 2.0).tolist()
    return [Clip(f"w{number:03d}", "film", name, start, start + 8) for number, start in enumerate(starts)]


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


def command(words: list[str], place: Path) -> tuple[Took, int, str]:
    """Run obygaze; return the time it took, the most bytes taken at a place meanwhile, and its output."""
    most, over, said = 0, threading.Event(), ""

    def watch() -> None:
        nonlocal most
        while not over.wait(LOOK_S):
            most = max(most, room(place))

    def run() -> None:
        nonlocal said
        whole = [sys.executable, "-m", "obygaze", *words]
        done = subprocess.run(whole, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            sys.exit(done.stderr)
        said = done.stdout

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    took = timed(run, children_alone=True)
    over.set()
    watcher.join()
    return took, max(most, room(place)), said


def once(clips: list[Clip], folder: Path, workers: int) -> dict[str, float]:
    """Estimate and run one case; return ratios of estimated to real, and the real figures."""
    manifest, place = folder / "clips.csv", folder / "out"
    write_manifest(Manifest(tuple(clips), folder), manifest)
    place.mkdir()
    words = ["extract", str(manifest), str(place / "s"), "--workers", str(workers), "--licence", "CC0-1.0"]
    *_, told = command([*words, "--dry-run", "--json"], place)
    found: dict[str, Any] = json.loads(told)
    took, disk, _ = command(words, place)
    shutil.rmtree(place)
    return {
        "CPU s": took.cpu_s,
        "CPU": found["cpu_s"] / took.cpu_s,
        "duration": found["seconds"] / took.wall_s,
        "peak MB": disk / 1e6,
        "peak": found["room"]["peak_bytes"] / disk,
    }


def main() -> None:
    """Measure the cases and print a table of medians."""
    asked = arguments(__doc__, videos=VIDEOS, repeats=3, workers=2, only=[*CASES], check=False)
    table: list[dict[str, object]] = []
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        for case in asked.only:
            folder = Path(name) / case
            folder.mkdir()
            clips = CASES[case](asked.videos, folder)
            runs = [once(clips, folder, asked.workers) for _ in range(asked.repeats)]
            found = {what: median(run[what] for run in runs) for what in runs[0]}
            spread = ", ".join(f"{run['CPU']:.2f}" for run in runs)
            table.append({"case": case, "clips": len(clips), **found, "CPU, all": spread})
            if abs(found["CPU"] - 1) > TIME or abs(found["peak"] - 1) > DISK:
                wrong.append(f"{case}: processor time {found['CPU']:.2f}, peak disk {found['peak']:.2f}")
    show(table)
    verdict(wrong, check=asked.check)


if __name__ == "__main__":
    main()
