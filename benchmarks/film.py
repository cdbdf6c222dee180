"""A film of two hours from the file to its page: CPU seconds, frames decoded, the same bytes after kills.

Run by hand, with the dev extra: python benchmarks/film.py [--minutes 120] [--kills 2] [--folder FOLDER]

Six minutes of cuts from real videos (640x272, H.264, as in benchmarks/decode.py) are encoded once; the film
is their packets again and again. A linear probe is trained on windows of the six minutes, as six movies, with
labels that follow a feature. Then `obygaze film run` makes the film's page, once in peace and once killed
(SIGKILL to all its processes, each time a share of the stretches is measured) and resumed. CPU seconds are
user and system time of all processes.
"""

import argparse
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from decode import make, repeat
from tabulate import tabulate

from obygaze_features.store import open_store
from obygaze_features.video import probe

SECONDS, WINDOW_S, HOP_S = 360, 46.0, 4.0
VIDEOS = Path(__file__).parents[2] / "shared" / "data" / "videos"
POLL_S = 0.2
KEPT = ("windows.csv", "windows.shots.csv", "features-1.0.0", "scored", "report.html")


def run(*words: object, code: int = 0) -> float:
    """Run a command; return its CPU seconds, with those of its children."""
    before = spent()
    done = subprocess.run([sys.executable, "-m", "obygaze", *map(str, words)], check=False)
    if done.returncode != code:
        raise SystemExit(f"exit code {done.returncode}: {words}")
    return spent() - before


def spent() -> float:
    """CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def train(clip: Path, folder: Path) -> Path:
    """Train a model on windows of a clip: positive where one feature is high."""
    spans = [(start, start + WINDOW_S) for start in np.arange(0, SECONDS - WINDOW_S, HOP_S)]
    rows = [
        (f"w{number:03d}", f"part{int(6 * start // SECONDS)}", start, end)
        for number, (start, end) in enumerate(spans)
    ]
    manifest, labelled = folder / "train.csv", folder / "labelled.csv"

    def write(path: Path, levels: Sequence[str]) -> None:
        lines = ["clip_id,movie,video,start_s,end_s,level,concepts,annotator"]
        lines += [
            f"{clip_id},{movie},{clip.name},{start},{end},{level},,AB"
            for (clip_id, movie, start, end), level in zip(rows, levels, strict=True)
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    write(manifest, ["EN"] * len(rows))
    run("extract", manifest, folder / "train", "--licence", "CC0-1.0")
    features = open_store(folder / "train-1.0.0")["descriptors"]
    found = np.stack([features.read(clip_id, "pooled") for clip_id, *_ in rows])
    light = found[:, 0]
    write(labelled, ["S" if value > np.median(light) else "EN" for value in light])
    run(
        "evaluate",
        labelled,
        folder / "train-1.0.0",
        "--task",
        "en_s",
        "--model",
        "linear",
        "--save",
        "linear",
        "--out",
        folder / "run",
    )
    return folder / "run" / "linear.model"


def killed(words: Sequence[object], out: Path, shares: Sequence[float], stretches: int) -> None:
    """Start the command and kill it with all its processes whenever so many stretches are measured."""
    for share in shares:
        process = subprocess.Popen(
            [sys.executable, "-m", "obygaze", *map(str, words)], start_new_session=True
        )
        measured = out / "features.staging" / "shots"
        while process.poll() is None and len(list(measured.glob("*.npz"))) < share * stretches:
            time.sleep(POLL_S)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def digests(out: Path) -> dict[str, str]:
    """SHA-256 of every file that a run is for."""
    files = [
        path
        for name in KEPT
        for path in ([out / name] if (out / name).is_file() else (out / name).rglob("*"))
    ]
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.is_file()
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=int, default=120)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--videos", type=Path, default=VIDEOS)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="obygaze-film-"))
    clip, film = folder / "h264.mp4", folder / "film.mkv"
    if not film.exists():
        folder.mkdir(parents=True, exist_ok=True)
        videos = sorted(arguments.videos.glob("*"), key=lambda path: -path.stat().st_size)[:4]
        # In a process of its own: peak memory of later children would start at that of this one.
        maker = get_context("spawn").Process(target=make, args=(folder, ["h264.mp4"], videos, SECONDS))
        maker.start()
        maker.join()
        repeat(clip, film, arguments.minutes * 60 // SECONDS)
    model = folder / "run" / "linear.model"
    if not model.exists():
        train(clip, folder)
    length = probe(film)
    whole, again = folder / "whole", folder / "again"
    words = ["film", "run", film, "--model", model, "--workers", arguments.workers, "--out"]
    cpu_s = run(*words, whole)
    reports = [
        json.loads(path.read_text()) for path in (whole / "features.staging" / "reports").glob("*.json")
    ]
    decoded = sum(report["n_decoded"] for report in reports)
    stretches = len(list((whole / "features.staging" / "shots").iterdir()))
    rows = [
        ("the film", f"{length.duration_s:.0f} s, {length.frames:,} frames, {length.bytes / 1e6:.0f} MB"),
        ("film run, CPU s", f"{cpu_s:.0f} ({length.duration_s / cpu_s:.1f} times real time)"),
        ("frames decoded", f"{decoded:,} ({decoded / length.frames:.3f} of the film's)"),
        ("peak memory, MB", f"{max(report['peak_memory_mb'] for report in reports):.0f}"),
    ]
    if arguments.kills:
        shares = [(kill + 1) / (arguments.kills + 1) for kill in range(arguments.kills)]
        killed([*words, again], again, shares, stretches)
        run(*words, again)
        same = digests(whole) == digests(again)
        rows.append(
            (f"killed {arguments.kills} times and resumed", "the same bytes" if same else "OTHER BYTES")
        )
    shots = ["--shots", whole / "windows.shots.csv"]
    scoring = run(
        "film", "score", model, whole / "features-1.0.0", *shots, "--out", folder / "scored", "--force"
    )
    page = run("film", "report", folder / "scored", "--out", folder / "page.html", "--force")
    rows += [
        ("film score, CPU s", f"{scoring:.2f}"),
        ("film report, CPU s", f"{page:.2f}"),
        ("the page, kB", f"{(folder / 'page.html').stat().st_size / 1e3:.0f}"),
    ]
    print(tabulate(rows, ("what", "seen"), tablefmt="github"))


if __name__ == "__main__":
    main()
