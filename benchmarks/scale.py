"""Files, memory and CPU of stage, seal, open, read and evaluate at 1,000, 10,000 and 100,000 synthetic clips.

Two backbones with pooled vectors (512 and 768 float32) and frames (8 x 512, 4 x 768 float16); films of 40
clips, labels and concepts drawn. Each step is a process of its own, so that its peak memory is its own. The
exponent is that of a power of the number of clips between the two largest sizes; the smallest has what any
size costs. With `--repeats 3` all sizes are measured in turn, three times, for a machine may be a third
faster in one minute than in the next; medians count, of the exponents too. `disk` is the most that stage and
store take while sealing with --consume, as a multiple of the store. `--tokens N` measures the
sealing of N clips with ViViT's tokens (4.8 MB a clip) instead, `--kills 20` kills the sealing of the largest
number of clips so many times, and compares its bytes and its work with an undisturbed one's.

    python benchmarks/scale.py [--clips 1000 10000 100000] [--repeats 1] [--folder FOLDER] [--check]
    python benchmarks/scale.py --tokens 384
    python benchmarks/scale.py --clips 20000 --kills 20

With --check, exit code 1 if an exponent is above 1.05, or at one of the two largest sizes the stage has more
than .2 files a clip or the disk's multiple is above 1.1, or (with --tokens) sealing costs more than 8 ms CPU
a clip.
"""

import argparse
import json
import math
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scale_seals
from tabulate import tabulate

from obygaze_features.manifest import Manifest, read_manifest
from obygaze_features.store import (
    ClipFeatures,
    ClipResult,
    PlannedClip,
    Stage,
    open_store,
    seal,
    staging_path,
)
from obygaze_features.store.testing import toy_group

STEPS = ("stage", "resume", "disk", "seal", "open", "read", "verify", "evaluate")
BATCH = 64
LARGEST, MOST_DISK = 1.05, 1.1
FILM = 40
CONCEPTS = "Look;Body;Posture;Clothing;Voice"


def groups(tokens: bool) -> list[Any]:
    """Declare what a clip has."""
    arrays = {
        "xclip": {"pooled": np.zeros((1, 512), np.float32), "frames": np.zeros((1, 8, 512), np.float16)},
        "vivit": {"pooled": np.zeros((1, 768), np.float32), "frames": np.zeros((1, 4, 768), np.float16)},
    }
    if tokens:
        arrays = {
            "vivit": {"pooled": arrays["vivit"]["pooled"], "tokens": np.zeros((1, 3137, 768), np.float16)}
        }
    return [toy_group(name, some, n_frames=8) for name, some in arrays.items()]


def clip_id(number: int) -> str:
    """Name a clip; clips of a film follow each other."""
    return f"tt{number // FILM:07d}-{number % FILM:03d}"


def stage(folder: Path, n_clips: int, *, tokens: bool = False) -> None:
    """Commit all clips; the time that drawing them takes is not counted."""
    kinds = groups(tokens)
    planned = [PlannedClip(clip_id(number), clip_id(number)[:9], 0.0, 9.5) for number in range(n_clips)]
    made = Stage.open(staging_path(folder / "s"), planned, kinds, {"name": "scale"})
    rng = np.random.default_rng(0)
    moments = np.arange(8.0), np.arange(8)
    source = {"bytes": 10**7, "duration_s": 9.5}
    drawn = {}
    for kind in kinds:
        for spec in kind.arrays:
            values = rng.standard_normal((BATCH if not tokens else 4, *spec.shape), np.float32)
            drawn[kind.name, spec.name] = values.astype(spec.dtype)
    todo = made.missing()
    with made.writer() as writer:
        for start in range(0, n_clips, BATCH):
            some = todo[start : start + BATCH]
            results = []
            for place, name in enumerate(some):
                features = {}
                for kind in kinds:
                    arrays = {}
                    for spec in kind.arrays:
                        values = drawn[kind.name, spec.name][place % len(drawn[kind.name, spec.name])]
                        values[..., 0] = (start + place) % 2048  # no two clips have the same
                        arrays[spec.name] = values if not tokens else values.copy()
                    features[kind.name] = ClipFeatures(*moments, arrays)
                results.append(ClipResult(name, "ok", source=source, groups=features))
            writer.commit(results)


def resume(folder: Path) -> None:
    """Begin a stage again that is done: the plan and the journals are read."""
    before = Stage.open(
        staging_path(folder / "s"),
        [PlannedClip(clip_id(number), clip_id(number)[:9], 0.0, 9.5) for number in range(_count(folder))],
        groups(tokens=False),
        {"name": "scale"},
    )
    assert not before.missing()
    assert not before.damage()
    before.writer().close()


def _count(folder: Path) -> int:
    return int((folder / "count").read_text(encoding="utf-8"))


def manifest_of(folder: Path, n_clips: int) -> Manifest:
    """Write and read a manifest with levels and concepts that the first vector has a little to do with."""
    rng = np.random.default_rng(1)
    names = CONCEPTS.split(";")
    lines = ["clip_id,movie,video,start_s,end_s,level,concepts,annotator\n"]
    for number in range(n_clips):
        level = ("EN", "HN", "S", "S")[int(rng.integers(4))]
        marked = [name for name in names if rng.random() < (0.5 if level == "S" else 0.2)]
        lines.append(f"{clip_id(number)},{clip_id(number)[:9]},x.mp4,,,{level},{';'.join(marked)},a\n")
    path = folder / "m.csv"
    path.write_text("".join(lines), encoding="utf-8")
    return read_manifest(path)


def evaluate(folder: Path) -> None:
    """Leave movies out, or twentieths of them: a linear probe on 512 numbers, and the baselines."""
    import obygaze_models as om

    store = open_store(folder / "s")
    data = om.load_dataset(store, manifest_of(folder, _count(folder)), backbone="xclip")
    om.evaluate(data, ["linear"], task="enhn_s")


def run(step: str, folder: Path) -> None:
    """Do one step in this process and print what it took as JSON."""
    work: dict[str, Callable[[], object]] = {
        "stage": lambda: stage(folder, _count(folder)),
        "tokens": lambda: stage(folder, _count(folder), tokens=True),
        "resume": lambda: resume(folder),
        "seal": lambda: seal(None, folder / "s", licence="NOASSERTION", consume=True),
        "disk": lambda: disk(folder),
        "open": lambda: open_store(folder / "s")["xclip"].clip_ids,
        "read": lambda: [open_store(folder / "s")[name].pooled().sum() for name in ("xclip", "vivit")],
        "verify": lambda: _verified(folder),
        "evaluate": lambda: evaluate(folder),
    }
    before = time.process_time()
    work[step]()
    spent = time.process_time() - before
    print(json.dumps([spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3]))


def disk(folder: Path) -> None:
    """Write down the most disk space that sealing takes, in stores."""
    most = scale_seals.disk(folder, folder / "copy", _count(folder))
    (folder / "disk").write_text(str(most), encoding="utf-8")


def _verified(folder: Path) -> None:
    from obygaze_features.store import verify

    assert verify(folder / "s", "full").ok


def measured(step: str, folder: Path) -> tuple[float, float]:
    """Run a step in a process of its own; give CPU seconds and MB."""
    words = [sys.executable, __file__, "--step", step, str(folder)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    spent, memory = json.loads(done.stdout.splitlines()[-1])
    return spent, memory


def measure(folder: Path, n_clips: int, steps: Sequence[str]) -> dict[str, float]:
    """Take some steps for so many clips."""
    folder.mkdir()
    (folder / "count").write_text(str(n_clips), encoding="utf-8")
    found: dict[str, float] = {"clips": n_clips}
    for step in steps:
        spent, memory = measured(step, folder)
        if step == "disk":
            found["disk"] = float((folder / "disk").read_text(encoding="utf-8"))
            continue
        found |= {f"{step} ms": 1e3 * spent / n_clips, f"{step} s": spent, f"{step} MB": memory}
        if step in ("stage", "tokens"):
            files = sum(path.is_file() for path in (folder / "s.staging").rglob("*"))
            found["files a clip"] = files / n_clips
        if step == "seal":
            found["store files"] = sum(path.is_file() for path in (folder / "s-1.0.0").rglob("*"))
    shutil.rmtree(folder)
    return found


def middle(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Join repeated measurements: medians, but the largest of the disk space."""
    return {
        what: (max if what == "disk" else median)([run[what] for run in runs if what in run])
        for what in runs[0]
    }


def exponent(turns: Sequence[Sequence[dict[str, float]]], step: str) -> float:
    """Return the power of the number of clips with which a step's CPU time grows, the turns' median."""
    return median(
        math.log(many[f"{step} s"] / few[f"{step} s"]) / math.log(many["clips"] / few["clips"])
        for *_, few, many in turns
    )


def main() -> None:
    """Measure every size, print a table, and judge it if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clips", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--tokens", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--kills", type=int, default=0, help="kill a seal so many times, and do nothing else")
    parser.add_argument("--folder", type=Path, help="where to write; the default is a temporary folder")
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS, help="stage and seal come first")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)  # of one process
    asked = parser.parse_args()
    if asked.step:
        run(asked.step[0], Path(asked.step[1]))
        return
    wrong = []
    if asked.folder:
        asked.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        if asked.tokens:
            found = measure(Path(name) / "tokens", asked.tokens, ("tokens", "disk", "seal", "verify"))
            print(tabulate([(what, f"{value:.3g}") for what, value in found.items()], tablefmt="plain"))
            wrong += [f"seal {found['seal ms']:.1f} ms"] if found["seal ms"] > 8 else []
            wrong += [f"disk {found['disk']:.2f} times the store"] if found["disk"] > MOST_DISK else []
        if asked.kills:
            folder = Path(name) / "kills"
            folder.mkdir()
            (folder / "count").write_text(str(max(asked.clips)), encoding="utf-8")
            measured("stage", folder)
            facts = scale_seals.kills(folder, folder / "copy", asked.kills)
            print(tabulate([(what, f"{value:.5g}") for what, value in facts.items()], tablefmt="plain"))
        clips = [] if asked.tokens or asked.kills else asked.clips
        turns = [[measure(Path(name) / str(n), n, asked.steps) for n in clips] for _ in range(asked.repeats)]
    if clips:
        sizes = [middle(runs) for runs in zip(*turns, strict=True)]
        rows = [
            [what, *(f"{size[what]:.3g}" for size in sizes)] for what in sizes[0] if not what.endswith(" s")
        ]
        if len(sizes) > 1:
            timed = [step for step in asked.steps if step != "disk"]
            powers = {step: exponent(turns, step) for step in timed}
            rows = [[*row, f"{powers[row[0][:-3]]:.2f}" if row[0].endswith(" ms") else ""] for row in rows]
            wrong += [
                f"{step} grows with the power {power:.2f}"
                for step, power in powers.items()
                if power > LARGEST
            ]
        print(
            tabulate(
                rows,
                headers=["", *(str(int(size["clips"])) for size in sizes), "exponent"],
                disable_numparse=True,
            )
        )
        wrong += [
            f"{size['files a clip']:.2f} files a clip" for size in sizes[-2:] if size["files a clip"] > 0.2
        ]
        wrong += [
            f"disk {size['disk']:.2f} times the store"
            for size in sizes[-2:]
            if size.get("disk", 0) > MOST_DISK
        ]
    if asked.check and wrong:
        sys.exit("; ".join(wrong))


if __name__ == "__main__":
    main()
