"""A film of two hours from the file to its page: CPU seconds, frames decoded, memory.

Six minutes of cuts from real videos (640x272, H.264, as in decode.py) are encoded once; the film is their
packets again and again. A linear probe is trained on windows of the six minutes, as six movies, with labels
that follow a feature. Then `obygaze film run` makes the film's page. CPU seconds are user and system time of
all processes.

    python benchmarks/film.py [--minutes 120] [--workers 2] [--videos FOLDER]
"""

import json
import tempfile
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from decode_clips import VIDEOS, make, repeat
from measure import arguments, obygaze, show

from obygaze_features.store import open_store
from obygaze_features.video import probe

SECONDS, WINDOW_S, HOP_S = 360, 46.0, 4.0


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


def main() -> None:
    """Print the table."""
    asked = arguments(__doc__, minutes=120, workers=2, videos=VIDEOS)
    with tempfile.TemporaryDirectory(prefix="obygaze-film-") as name:
        folder = Path(name)
        clip, film = folder / "h264.mp4", folder / "film.mkv"
        # In a process of its own: peak memory of later children would start at that of this one.
        maker = get_context("spawn").Process(target=make, args=(folder, ["h264.mp4"], asked.videos, SECONDS))
        maker.start()
        maker.join()
        repeat(clip, film, asked.minutes * 60 // SECONDS)
        model, length = train(clip, folder), probe(film)
        whole = folder / "whole"
        words = ["film", "run", film, "--model", model, "--workers", asked.workers, "--out", whole]
        cpu_s = obygaze(*words).cpu_s
        kept = (whole / "features.staging" / "reports").glob("*.json")
        reports = [json.loads(path.read_text()) for path in kept]
        decoded = sum(report["n_decoded"] for report in reports)
        rows = [
            ("the film", f"{length.duration_s:.0f} s, {length.frames:,} frames, {length.bytes / 1e6:.0f} MB"),
            ("film run, CPU s", f"{cpu_s:.0f} ({length.duration_s / cpu_s:.1f} times real time)"),
            ("frames decoded", f"{decoded:,} ({decoded / length.frames:.3f} of the film's)"),
            ("peak memory, MB", max(report["peak_memory_mb"] for report in reports)),
        ]
        shots, page = ("--shots", whole / "windows.shots.csv"), folder / "page.html"
        scored = folder / "scored"
        scoring = obygaze("film", "score", model, whole / "features-1.0.0", *shots, "--out", scored)
        rows += [
            ("film score, CPU s", scoring.cpu_s),
            ("film report, CPU s", obygaze("film", "report", scored, "--out", page).cpu_s),
            ("the page, kB", page.stat().st_size / 1e3),
        ]
        show(rows, ("what", "seen"))


if __name__ == "__main__":
    main()
