"""What runs on clusters need: an environment with a lab's own backbone, and films in folders."""

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from obygaze.demo_corpus import write_video
from obygaze_features.manifest import Clip, Manifest, write_manifest
from tests.lab_package import describe
from tests.process import python


def until(done: Callable[[], object], exit_code: Callable[[], object] = lambda: None) -> None:
    """Wait until something is so, which a process with an exit code can no longer bring about."""
    deadline = time.monotonic() + 1800
    while not done():
        assert exit_code() is None, "it ended before"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def below(pid: int) -> list[int]:
    """List the processes below one."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            words = entry.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            children.setdefault(int(words[1]), []).append(int(entry.parent.name))
    found, waiting = [], [pid]
    while waiting:
        some = children.get(waiting.pop(), [])
        found += some
        waiting += some
    return found


def with_backbone(site: Path, name: str) -> dict[str, str]:
    """Install a backbone that lies beside this file; return an environment that finds it, and no cluster."""
    for file in (f"{name}.py", "stopping.py"):
        shutil.copy(Path(__file__).with_name(file), site)
    describe(site, name, f"[obygaze.backbones]\n{name} = {name}:{name}\n")
    others = {key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "SLURM"))}
    paths = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return others | {"PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0"}


def write_films(folder: Path, n_clips: int, gated: int | None = None) -> Path:
    """Write clips in the folders tt1 to tt3, one that is nowhere, and one whose file is empty; films.csv.

    The clip `gated` is 66 pixels wide: it is decoded only when the file that NAP_GATE names is gone.
    """
    clips = []
    for i in range(n_clips):
        movie = f"tt{1 + i % 3}"
        (folder / movie).mkdir(exist_ok=True)
        width = 66 if i == gated else 64
        frames = (np.full((48, width, 3), (7 * i + t) % 256, np.uint8) for t in range(12 + i % 24))
        write_video(folder / movie / f"clip-{i:02d}.mp4", frames, 24)
        clips.append(Clip(f"{movie}-{i:03d}", movie, f"{movie}/clip-{i:02d}.mp4"))
    (folder / "tt1" / "empty.mp4").touch()
    clips += [Clip("tt1-900", "tt1", "tt1/empty.mp4"), Clip("tt1-901", "tt1", "tt1/absent.mp4")]
    write_manifest(Manifest(tuple(clips), folder), folder / "films.csv")
    return folder


def run_locally(folder: Path, environment: dict[str, str], *words: str) -> Path:
    """Return the store films-1.0.0 that the local engine makes, in which some clips have failed."""
    python("-m", "obygaze", *words, "--workers", "2", code=3, cwd=folder, env=environment)
    return folder / "films-1.0.0"
