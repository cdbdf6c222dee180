"""Files, memory and CPU of stage, seal, open, read and evaluate at 1,000, 10,000 and 100,000 synthetic clips.

Two backbones with pooled vectors (512 and 768 float32) and frames (8 x 512, 4 x 768 float16); films of 40
clips, labels and concepts drawn. Each step is a process of its own, so that its peak memory is its own. The
exponent is that of a power of the number of clips between the two largest sizes; the smallest has what any
size costs. With `--repeats 3` all sizes are measured in turn, three times, for a machine may be a third
faster in one minute than in the next; medians count, of the exponents too. `disk` is the most that stage and
store take together while sealing, as a multiple of the store; files with two links count once.

`--films 500` measures windows of so many films instead, with pooled vectors of one backbone alone, and the
scoring of one of the films. `--tokens N` measures N clips with ViViT's tokens (4.8 MB a clip). `--kills 20`
kills the sealing of the largest number of clips so many times, and compares its bytes.

    python benchmarks/scale.py [--clips 1000 10000 100000] [--repeats 1] [--folder FOLDER] [--check]
    python benchmarks/scale.py --films 500 --clips 100000 1000000
    python benchmarks/scale.py --tokens 384
    python benchmarks/scale.py --clips 20000 --kills 20

With --check, exit code 1 if an exponent is above 1.05, or at one of the two largest sizes the stage has more
than .2 files a clip or the disk's multiple is above 2.1 (with --tokens, 1.1), or (with --tokens) sealing
costs more than 8 ms CPU a clip.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
from tabulate import tabulate

from obygaze_features.manifest import Clip, Manifest, read_manifest
from obygaze_features.store import (
    ClipFeatures,
    ClipResult,
    GroupSpec,
    PlannedClip,
    Stage,
    open_store,
    seal,
    staging_path,
)
from obygaze_features.store.testing import seal_arrays, toy_group

STEPS = ("stage", "resume", "seal", "open", "read", "verify", "evaluate")
OF_FILMS = ("stage", "resume", "seal", "open", "verify", "model", "score")
OF_TOKENS = ("stage", "seal", "verify")
BATCH = 8
LARGEST, MOST_DISK, MOST_DISK_OF_TOKENS = 1.05, 2.1, 1.1
FILM = 40
WINDOW_S = 4.0
CONCEPTS = "Look;Body;Posture;Clothing;Voice"
VECTORS = {
    "xclip": {"pooled": np.zeros((1, 512), np.float32), "frames": np.zeros((1, 8, 512), np.float16)},
    "vivit": {"pooled": np.zeros((1, 768), np.float32), "frames": np.zeros((1, 4, 768), np.float16)},
}
ARRAYS = {
    "vectors": VECTORS,
    "films": {"xclip": {"pooled": VECTORS["xclip"]["pooled"]}},
    "tokens": {
        "vivit": {"pooled": VECTORS["vivit"]["pooled"], "tokens": np.zeros((1, 3137, 768), np.float16)}
    },
}
"""What a clip has in each corpus."""


@dataclass(frozen=True)
class Corpus:
    """What is measured: which arrays clips have, how many there are, and how many of them a film has."""

    kind: str
    n_clips: int
    of_a_film: int = FILM

    @classmethod
    def read(cls, folder: Path) -> "Corpus":
        """Read what `measure` wrote into a folder."""
        return cls(**json.loads((folder / "corpus.json").read_text(encoding="utf-8")))

    def groups(self) -> list[GroupSpec]:
        """Declare what a clip has."""
        return [toy_group(name, some, n_frames=8) for name, some in ARRAYS[self.kind].items()]

    def clip_id(self, number: int) -> str:
        """Name a clip; clips of a film follow each other."""
        return f"tt{number // self.of_a_film:07d}-{number % self.of_a_film:06d}"

    def planned(self) -> list[PlannedClip]:
        """List the clips: windows that overlap by half."""
        ids = map(self.clip_id, range(self.n_clips))
        starts = (number % self.of_a_film * WINDOW_S / 2 for number in range(self.n_clips))
        return [
            PlannedClip(clip, clip[:9], start, start + WINDOW_S)
            for clip, start in zip(ids, starts, strict=True)
        ]

    def open_stage(self, folder: Path) -> Stage:
        """Make the stage, or resume it."""
        return Stage.open(staging_path(folder / "s"), self.planned(), self.groups(), {"name": "scale"})


def stage(folder: Path) -> None:
    """Commit all clips, as many at once as a batch has."""
    corpus = Corpus.read(folder)
    made = corpus.open_stage(folder)
    rng = np.random.default_rng(0)
    moments = np.arange(8.0), np.arange(8)
    source = {"bytes": 10**7, "duration_s": 9.5}
    drawn = {
        (kind.name, spec.name): rng.standard_normal((BATCH, *spec.shape), np.float32).astype(spec.dtype)
        for kind in made.groups
        for spec in kind.arrays
    }
    todo = made.missing()
    with made.writer(todo) as writer:
        for start in range(0, len(todo), BATCH):
            results = []
            for place, name in enumerate(todo[start : start + BATCH]):
                for values in drawn.values():
                    values[place, ..., 0] = (start + place) % 2048  # no two neighbours have the same
                features = {
                    kind.name: ClipFeatures(
                        *moments, {spec.name: drawn[kind.name, spec.name][place] for spec in kind.arrays}
                    )
                    for kind in made.groups
                }
                results.append(ClipResult(name, "ok", source=source, groups=features))
            writer.commit(results)


def resume(folder: Path) -> None:
    """Begin a stage again that is done: the plan and the journals are read."""
    before = Corpus.read(folder).open_stage(folder)
    assert not before.missing()
    assert not before.damage()
    before.writer([]).close()


def manifest_of(folder: Path, corpus: Corpus) -> Manifest:
    """Write and read a manifest with levels and concepts that the first vector has a little to do with."""
    rng = np.random.default_rng(1)
    names = CONCEPTS.split(";")
    lines = ["clip_id,movie,video,start_s,end_s,level,concepts,annotator\n"]
    for clip in corpus.planned():
        level = ("EN", "HN", "S", "S")[int(rng.integers(4))]
        marked = [name for name in names if rng.random() < (0.5 if level == "S" else 0.2)]
        lines.append(f"{clip.clip_id},{clip.movie},x.mp4,,,{level},{';'.join(marked)},a\n")
    path = folder / "m.csv"
    path.write_text("".join(lines), encoding="utf-8")
    return read_manifest(path)


def evaluate(folder: Path) -> None:
    """Leave movies out, or twentieths of them: a linear probe on 512 numbers, and the baselines."""
    import obygaze_models as om

    store = open_store(folder / "s")
    data = om.load_dataset(store, manifest_of(folder, Corpus.read(folder)), backbone="xclip")
    om.evaluate(data, ["linear"], task="enhn_s")


def model(folder: Path) -> None:
    """Save a model of the same features of other films, for `score`."""
    import obygaze_models as om

    few = Corpus("films", 4 * FILM)
    movie_of = {f"other-{clip.clip_id}": f"other-{clip.movie}" for clip in few.planned()}
    rng = np.random.default_rng(2)
    vectors = rng.standard_normal((few.n_clips, 512), np.float32)
    arrays = {"xclip": {"pooled": vectors}}
    store = open_store(seal_arrays(folder / "others", movie_of, arrays, n_frames=8))
    clips = tuple(
        Clip(clip_id, movie, level="S" if vector[0] > 0 else "EN")
        for (clip_id, movie), vector in zip(movie_of.items(), vectors, strict=True)
    )
    data = om.load_dataset(store, Manifest(clips, folder), backbone="xclip")
    run = om.evaluate(data, ["linear"], task="en_s")
    om.save_models(run, data, ["linear"], folder)


def score(folder: Path) -> None:
    """Score one film of the store, as `obygaze film score` would."""
    from obygaze_film import score_film

    store, corpus = open_store(folder / "s"), Corpus.read(folder)
    film = score_film(store, [folder / "linear.model"], movie=corpus.planned()[0].movie)
    assert film.record.windows.n == min(corpus.of_a_film, corpus.n_clips)


def run(step: str, folder: Path) -> None:
    """Do one step in this process and print what it took as JSON."""
    work: dict[str, Callable[[], object]] = {
        "stage": lambda: stage(folder),
        "resume": lambda: resume(folder),
        "seal": lambda: seal(None, folder / "s", licence="NOASSERTION"),
        "open": lambda: open_store(folder / "s")["xclip"].clip_ids,
        "read": lambda: [
            group.pooled().sum() for group in map(open_store(folder / "s").__getitem__, VECTORS)
        ],
        "verify": lambda: _verified(folder),
        "evaluate": lambda: evaluate(folder),
        "model": lambda: model(folder),
        "score": lambda: score(folder),
    }
    before = time.process_time()
    work[step]()
    spent = time.process_time() - before
    print(json.dumps([spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3]))


def _verified(folder: Path) -> None:
    from obygaze_features.store import verify

    assert verify(folder / "s", "full").ok


def room(folder: Path) -> int:
    """Count the bytes that a folder takes on the disk; a file with two links counts once."""
    found = (path.lstat() for path in folder.rglob("*"))
    return sum({status.st_ino: 512 * status.st_blocks for status in found}.values())


def n_files(folder: Path) -> int:
    """Count the files of a folder."""
    return sum(path.is_file() for path in folder.rglob("*"))


def measured(step: str, folder: Path) -> tuple[float, float]:
    """Run a step in a process of its own; give CPU seconds and MB."""
    words = [sys.executable, __file__, "--step", step, str(folder)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    spent, memory = json.loads(done.stdout.splitlines()[-1])
    return spent, memory


def make(folder: Path, corpus: Corpus) -> None:
    """Make a folder for a corpus."""
    folder.mkdir()
    (folder / "corpus.json").write_text(json.dumps(asdict(corpus)), encoding="utf-8")


def measure(folder: Path, corpus: Corpus, steps: Sequence[str]) -> dict[str, float]:
    """Take some steps for a corpus."""
    make(folder, corpus)
    n_clips = corpus.n_clips
    found: dict[str, float] = {"clips": n_clips}
    for step in steps:
        spent, memory = measured(step, folder)
        if step == "model":
            continue
        found |= {f"{step} ms": 1e3 * spent / n_clips, f"{step} s": spent, f"{step} MB": memory}
        if step == "stage":
            found["files a clip"] = n_files(folder / "s.staging") / n_clips
        if step == "seal":
            found["store files"] = n_files(folder / "s-1.0.0")
            # Nothing is removed while a stage is sealed: what is there in the end is the most.
            found["disk"] = room(folder) / room(folder / "s-1.0.0")
    shutil.rmtree(folder)
    return found


def middle(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Join repeated measurements."""
    return {what: median([run[what] for run in runs]) for what in runs[0]}


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
    parser.add_argument("--films", type=int, default=0, help="windows of so many films")
    parser.add_argument("--tokens", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--kills", type=int, default=0, help="kill a seal so many times, and do nothing else")
    parser.add_argument("--folder", type=Path, help="where to write; the default is a temporary folder")
    parser.add_argument("--steps", nargs="+", choices=[*STEPS, "model", "score"], help="stage and seal first")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)  # of one process
    asked = parser.parse_args()
    if asked.step:
        run(asked.step[0], Path(asked.step[1]))
        return
    wrong = []
    if asked.folder:
        asked.folder.mkdir(parents=True, exist_ok=True)
    steps = asked.steps or (OF_FILMS if asked.films else STEPS)
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        if asked.tokens:
            found = measure(Path(name) / "tokens", Corpus("tokens", asked.tokens), OF_TOKENS)
            print(tabulate([(what, f"{value:.3g}") for what, value in found.items()], tablefmt="plain"))
            wrong += [f"seal {found['seal ms']:.1f} ms"] if found["seal ms"] > 8 else []
            wrong += (
                [f"disk {found['disk']:.2f} times the store"] if found["disk"] > MOST_DISK_OF_TOKENS else []
            )
        if asked.kills:
            from scale_seals import kills  # imports nearly all of obygaze

            folder = Path(name) / "kills"
            make(folder, Corpus("vectors", max(asked.clips)))
            measured("stage", folder)
            print(tabulate(kills(folder, asked.kills).items(), tablefmt="plain"))
        clips = [] if asked.tokens or asked.kills else asked.clips
        corpora = [
            Corpus("films", n, -(-n // asked.films)) if asked.films else Corpus("vectors", n) for n in clips
        ]
        turns = [
            [measure(Path(name) / str(each.n_clips), each, steps) for each in corpora]
            for _ in range(asked.repeats)
        ]
    if clips:
        sizes = [middle(runs) for runs in zip(*turns, strict=True)]
        rows = [
            [what, *(f"{size[what]:.3g}" for size in sizes)] for what in sizes[0] if not what.endswith(" s")
        ]
        if len(sizes) > 1:
            timed = [step for step in steps if step != "model"]
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
