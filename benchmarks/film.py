"""A film of two hours from the file to its page: CPU seconds, frames decoded, the same bytes after kills.

Six minutes of cuts from real videos (640x272, H.264, as in decode.py) are encoded once; the film is their
packets again and again. A linear probe is trained on windows of the six minutes, as six movies, with labels
that follow a feature. Then `obygaze film run` makes the film's page, once in peace and once killed (SIGKILL
to all its processes, each time a share of the stretches is measured) and resumed. CPU seconds are user and
system time of all processes.

    python benchmarks/film.py [--minutes 120] [--kills 2] [--workers 2] [--videos FOLDER]
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from decode_clips import VIDEOS, make, repeat
from measure import arguments, obygaze, show

from obygaze_features.store import open_store
from obygaze_features.video import probe

SECONDS, WINDOW_S, HOP_S = 360, 46.0, 4.0
POLL_S = 0.2
KEPT = ("windows.csv", "windows.shots.csv", "features-1.0.0", "scored", "report.html")


def train(clip: Path, folder: Path) -> Path:
    """Train a model on windows of a clip: positive where one feature is high."""
    starts = np.arange(0, SECONDS - WINDOW_S, HOP_S).tolist()

    def write(name: str, levels: Sequence[str]) -> Path:
        lines = ["clip_id,movie,video,start_s,end_s,level,concepts,annotator"]
        lines += [
            f"w{number:03d},part{int(6 * start // SECONDS)},{clip.name},{start},{start + WINDOW_S},"
            f"{level},,AB"
            for number, (start, level) in enumerate(zip(starts, levels, strict=True))
        ]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return folder / name

    obygaze("extract", write("train.csv", ["EN"] * len(starts)), folder / "train", "--licence", "CC0-1.0")
    light = open_store(folder / "train-1.0.0")["descriptors"].pooled()[:, 0]
    labelled = write("labelled.csv", ["S" if value > np.median(light) else "EN" for value in light])
    how = ("--task", "en_s", "--model", "linear", "--save", "linear", "--out", folder / "run")
    obygaze("evaluate", labelled, folder / "train-1.0.0", *how)
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
    files = [path for name in KEPT for path in (out / name, *(out / name).rglob("*")) if path.is_file()]
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def main() -> None:
    """Print the table."""
    asked = arguments(__doc__, minutes=120, kills=2, workers=2, videos=VIDEOS)
    with tempfile.TemporaryDirectory(prefix="obygaze-film-") as name:
        folder = Path(name)
        clip, film = folder / "h264.mp4", folder / "film.mkv"
        # In a process of its own: peak memory of later children would start at that of this one.
        maker = get_context("spawn").Process(target=make, args=(folder, ["h264.mp4"], asked.videos, SECONDS))
        maker.start()
        maker.join()
        repeat(clip, film, asked.minutes * 60 // SECONDS)
        model, length = train(clip, folder), probe(film)
        whole, again = folder / "whole", folder / "again"
        words = ["film", "run", film, "--model", model, "--workers", asked.workers, "--out"]
        cpu_s = obygaze(*words, whole).cpu_s
        stage = whole / "features.staging"
        reports = [json.loads(path.read_text()) for path in (stage / "reports").glob("*.json")]
        decoded = sum(report["n_decoded"] for report in reports)
        rows = [
            ("the film", f"{length.duration_s:.0f} s, {length.frames:,} frames, {length.bytes / 1e6:.0f} MB"),
            ("film run, CPU s", f"{cpu_s:.0f} ({length.duration_s / cpu_s:.1f} times real time)"),
            ("frames decoded", f"{decoded:,} ({decoded / length.frames:.3f} of the film's)"),
            ("peak memory, MB", max(report["peak_memory_mb"] for report in reports)),
        ]
        shares = [(kill + 1) / (asked.kills + 1) for kill in range(asked.kills)]
        killed([*words, again], again, shares, len(list((stage / "shots").iterdir())))
        obygaze(*words, again)
        same = digests(whole) == digests(again)
        rows.append((f"killed {asked.kills} times and resumed", f"{'the same' if same else 'OTHER'} bytes"))
        shots, page = ("--shots", whole / "windows.shots.csv"), folder / "page.html"
        scored = folder / "scored"
        scoring = obygaze("film", "score", model, whole / "features-1.0.0", *shots, "--out", scored)
        rows += [
            ("film score, CPU s", scoring.cpu_s),
            ("film report, CPU s", obygaze("film", "report", scored, "--out", page).cpu_s),
            ("the page, kB", page.stat().st_size / 1e3),
        ]
        show(rows, ("what", "seen"))
        sys.exit(not same)


if __name__ == "__main__":
    main()
