"""Compare a store of clips with any number of frames with one of as many frames, one number a clip.

Clips of 3 to 300 frames of D numbers, float16: sealed, verified at full depth, read as a whole, clip by clip
in order, and single clips at random. CPU seconds of all threads, the page cache warm, the least of runs in
turn.

    python benchmarks/ragged.py [--clips 5000 10000 20000] [--width 64] [--rounds 3] [--folder FOLDER]
        [--check]
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import Took, arguments, cpu_s, in_turn, show, verdict
from numpy.typing import NDArray

from obygaze_features.store import open_store, seal, verify
from obygaze_features.store.format import ANY_NUMBER
from obygaze_features.store.group import rows_of
from obygaze_features.store.records import ArraySpec, ClipFeatures, ClipResult, GroupSpec, PlannedClip
from obygaze_features.store.stage import Stage, staging_path
from obygaze_features.store.testing import toy_provenance

FEWEST = 3
MOST = 300
N_SINGLE = 200
LIMIT = 1.2
"""Most CPU seconds of a ragged store for one second of a fixed one, when it is verified or read."""


def clips(n_clips: int, width: int, *, ragged: bool) -> Iterator[NDArray[Any]]:
    """Yield the frames of clips: 3 to 300, or as many as these have on average."""
    rng = np.random.default_rng(0)
    for _ in range(n_clips):
        size = int(rng.integers(FEWEST, MOST + 1)) if ragged else (FEWEST + MOST) // 2
        yield rng.random((size, width), np.float32).astype(np.float16)


def make(folder: Path, n_clips: int, width: int, *, ragged: bool) -> Path:
    """Seal a store; nothing waits for the disk."""
    n_frames = ANY_NUMBER if ragged else (FEWEST + MOST) // 2
    kind = GroupSpec(
        "toy", (ArraySpec("frames", (n_frames, width), "float16"),), n_frames, toy_provenance("toy", n_frames)
    )
    place = folder / f"{'ragged' if ragged else 'fixed'}-{n_clips}"
    planned = [PlannedClip(f"c{number:06d}", "m") for number in range(n_clips)]
    stage = Stage.open(staging_path(place), planned, [kind], {"name": "toy"})
    with stage.writer() as writer:
        for clip, frames in zip(planned, clips(n_clips, width, ragged=ragged), strict=True):
            moments = np.arange(len(frames)) / 2.0, np.arange(len(frames))
            features = {"toy": ClipFeatures(*moments, {"frames": frames})}
            writer.commit([ClipResult(clip.clip_id, "ok", groups=features)])
    path = seal(stage_path=None, destination=place, licence="CC0-1.0", workers=1)
    shutil.rmtree(stage.path)
    return path


def check(path: Path) -> None:
    """Verify a store in full."""
    report = verify(path, "full")
    if not report.ok:
        sys.exit(str(report.problems))


def by_clip(path: Path) -> None:
    """Read the frames of every clip in order."""
    group = open_store(path)["toy"]
    for _ in rows_of(group, "frames", range(len(group))):
        pass


def single(path: Path) -> None:
    """Read some clips at random."""
    group = open_store(path)["toy"]
    for row in np.random.default_rng(1).integers(len(group), size=N_SINGLE).tolist():
        group.read(group.clip_ids[row], "frames")


WORKS: dict[str, Callable[[Path], object]] = {
    "verify --full": check,
    "all frames": lambda path: open_store(path)["toy"].frames(),
    "clip by clip": by_clip,
    f"{N_SINGLE} clips at random": single,
}


class Row(NamedTuple):
    """A row of the table: CPU seconds of both stores."""

    clips: int
    what: str
    fixed: float
    ragged: float
    ratio: float


def compared(n_clips: int, measure: str, taken: Mapping[str, Took]) -> Row:
    """Compare the two stores."""
    fixed = taken["fixed"].cpu_s
    ragged = taken["ragged"].cpu_s
    return Row(n_clips, measure, fixed, ragged, ragged / fixed)


def rows_of_table(folder: Path, n_clips: int, width: int, rounds: int) -> Iterator[Row]:
    """Make the two stores, and measure all works on them."""
    stores: dict[str, Path] = {}
    sealing: dict[str, Took] = {}
    for name in ("fixed", "ragged"):
        begun = cpu_s()
        stores[name] = make(folder, n_clips, width, ragged=name == "ragged")
        sealing[name] = Took(cpu_s() - begun, 0.0)
    yield compared(n_clips, "write and seal", sealing)
    for measure, work in WORKS.items():
        works = {name: partial(work, path) for name, path in stores.items()}
        yield compared(n_clips, measure, in_turn(works, rounds, least=True))
    for path in stores.values():
        shutil.rmtree(path)


def main() -> None:
    """Print a table; exit with 1 where a ragged store costs more than the limit."""
    options = arguments(__doc__, clips=[5000, 10000, 20000], width=64, rounds=3, folder="", check=False)
    os.fsync = lambda _descriptor: None
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="ragged-", dir=options.folder or None) as folder:
        for n_clips in options.clips:
            rows += rows_of_table(Path(folder), n_clips, options.width, options.rounds)
    show(rows, Row._fields)
    slow = [row for row in rows if row.what in WORKS and row.ratio > LIMIT]
    verdict([f"{row.what} of {row.clips} clips: {row.ratio:.2f}" for row in slow], check=options.check)


if __name__ == "__main__":
    main()
