"""Files, memory and CPU of stage, seal, open, read and evaluate at 1,000, 10,000 and 100,000 synthetic clips.

Two backbones with pooled vectors (512 and 768 float32) and frames (8 x 512, 4 x 768 float16); films of 40
clips, labels and concepts drawn. Each step is a process of its own, so that its peak memory is its own. The
exponent is that of a power of the number of clips between the two largest sizes; the smallest has what any
size costs. With `--repeats 3` all sizes are measured in turn, three times, for a machine may be a third
faster in one minute than in the next; medians count, of the exponents too. `disk` is the most that stage and
store take together, as a multiple of the store; files with two links count once.

`--films 500` measures windows of so many films instead, with pooled vectors of one backbone alone, and the
scoring of one of the films. `--tokens` gives clips ViViT's tokens (4.8 MB a clip).

    python benchmarks/scale.py [--clips 1000 10000 100000] [--repeats 1] [--folder FOLDER] [--check]
    python benchmarks/scale.py --films 500 --clips 100000 1000000
    python benchmarks/scale.py --tokens --clips 384

With --check, exit code 1 if an exponent is above 1.05, or at one of the two largest sizes the stage has more
than .2 files a clip or the disk's multiple is above 2.1 (with --tokens, 1.1), or (with --tokens) sealing
costs more than 8 ms CPU a clip.
"""

import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
from measure import arguments, peak_mb, show, timed, verdict

from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import (
    ClipFeatures,
    ClipResult,
    GroupSpec,
    PlannedClip,
    Stage,
    open_store,
    seal,
    staging_path,
    verify,
)
from obygaze_features.store.testing import seal_arrays, toy_group

BATCH = 8
LARGEST = 1.05
MAX_DISK = 2.1
MAX_DISK_OF_TOKENS = 1.1
MAX_MS_OF_TOKENS = 8
FILM = 40
WINDOW_S = 4.0
CONCEPTS = ("Look", "Body", "Posture", "Clothing", "Voice")
VECTORS = {
    "xclip": {"pooled": np.zeros((1, 512), np.float32), "frames": np.zeros((1, 8, 512), np.float16)},
    "vivit": {"pooled": np.zeros((1, 768), np.float32), "frames": np.zeros((1, 4, 768), np.float16)},
}
POOLED = np.zeros((1, 768), np.float32)
TOKENS = np.zeros((1, 3137, 768), np.float16)
KINDS = {
    "vectors": (VECTORS, ("stage", "resume", "seal", "open", "read", "verify", "evaluate")),
    "films": (
        {"xclip": {"pooled": VECTORS["xclip"]["pooled"]}},
        ("stage", "resume", "seal", "open", "verify", "model", "score"),
    ),
    "tokens": ({"vivit": {"pooled": POOLED, "tokens": TOKENS}}, ("stage", "seal", "verify")),
}
"""What a clip has in each kind of corpus, and the steps that are measured."""


@dataclass(frozen=True)
class Corpus:
    """What is measured: which arrays clips have, how many there are, and how many of them a film has."""

    kind: str
    n_clips: int
    of_a_film: int = FILM

    def groups(self) -> list[GroupSpec]:
        """Declare what a clip has."""
        return [toy_group(name, arrays, n_frames=8) for name, arrays in KINDS[self.kind][0].items()]

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


# --- steps, each of a process of its own
# ---------------------------------------------------------------------------
def open_stage(folder: Path, corpus: Corpus) -> Stage:
    """Make the stage, or resume it."""
    return Stage.open(staging_path(folder / "s"), corpus.planned(), corpus.groups(), {"name": "scale"})


def stage(folder: Path, corpus: Corpus) -> None:
    """Commit all clips, as many at once as a batch has."""
    opened = open_stage(folder, corpus)
    rng = np.random.default_rng(0)
    moments = np.arange(8.0), np.arange(8)
    source = {"bytes": 10**7, "duration_s": 9.5}
    drawn = {
        (kind.name, spec.name): rng.standard_normal((BATCH, *spec.shape), np.float32).astype(spec.dtype)
        for kind in opened.groups
        for spec in kind.arrays
    }
    todo = opened.missing()
    with opened.writer(todo) as writer:
        for start in range(0, len(todo), BATCH):
            results = []
            for index, name in enumerate(todo[start : start + BATCH]):
                for values in drawn.values():
                    values[index, ..., 0] = (start + index) % 2048  # no two neighbours have the same
                features = {}
                for kind in opened.groups:
                    values_of = {spec.name: drawn[kind.name, spec.name][index] for spec in kind.arrays}
                    features[kind.name] = ClipFeatures(*moments, values_of)
                results.append(ClipResult(name, "ok", source=source, groups=features))
            writer.commit(results)


def resume(folder: Path, corpus: Corpus) -> None:
    """Begin a stage again that is done: the plan and the journals are read."""
    before = open_stage(folder, corpus)
    assert not before.missing()
    assert not before.damage()
    before.writer([]).close()


def evaluate(folder: Path, corpus: Corpus) -> None:
    """Leave movies out, or twentieths of them: a linear probe on 512 numbers, and the baselines.

    Levels and concepts are drawn; the first vector has a little to do with them.
    """
    import obygaze_models as om

    rng = np.random.default_rng(1)
    clips = []
    for clip in corpus.planned():
        level = ("EN", "HN", "S", "S")[int(rng.integers(4))]
        marked = frozenset(name for name in CONCEPTS if rng.random() < (0.5 if level == "S" else 0.2))
        clips.append(Clip(clip.clip_id, clip.movie, level=level, concepts=marked))
    data = om.load_dataset(open_store(folder / "s"), Manifest(tuple(clips), folder), backbone="xclip")
    om.evaluate(data, ["linear"], task="enhn_s")


def model(folder: Path, _corpus: Corpus) -> None:
    """Save a model of the same features of other films, for `score`."""
    import obygaze_models as om

    few = Corpus("films", 4 * FILM)
    movie_of = {f"other-{clip.clip_id}": f"other-{clip.movie}" for clip in few.planned()}
    vectors = np.random.default_rng(2).standard_normal((few.n_clips, 512), np.float32)
    store = open_store(seal_arrays(folder / "others", movie_of, {"xclip": {"pooled": vectors}}, n_frames=8))
    clips = tuple(
        Clip(clip_id, movie, level="S" if vector[0] > 0 else "EN")
        for (clip_id, movie), vector in zip(movie_of.items(), vectors, strict=True)
    )
    data = om.load_dataset(store, Manifest(clips, folder), backbone="xclip")
    om.save_models(om.evaluate(data, ["linear"], task="en_s"), data, ["linear"], folder)


def score(folder: Path, corpus: Corpus) -> None:
    """Score one film of the store, as `obygaze film score` would."""
    from obygaze_film import score_film

    store = open_store(folder / "s")
    film = score_film(store, [folder / "linear.model"], movie=corpus.planned()[0].movie)
    assert film.record.windows.n == min(corpus.of_a_film, corpus.n_clips)


def check(folder: Path) -> None:
    """Verify the store in full."""
    assert verify(folder / "s", "full").ok


STEPS: dict[str, Callable[[Path, Corpus], object]] = {
    "stage": stage,
    "resume": resume,
    "seal": lambda at, _: seal(stage_path=None, destination=at / "s", licence="NOASSERTION"),
    "open": lambda at, _: open_store(at / "s")["xclip"].clip_ids,
    "read": lambda at, _: [open_store(at / "s")[name].pooled().sum() for name in VECTORS],
    "verify": lambda at, _: check(at),
    "evaluate": evaluate,
    "model": model,
    "score": score,
}


# --- measuring
# ---------------------------------------------------------------------------
def room(folder: Path) -> int:
    """Count the bytes that a folder takes on the disk; a file with two links counts once."""
    files = (path.lstat() for path in folder.rglob("*"))
    return sum({status.st_ino: 512 * status.st_blocks for status in files}.values())


def n_files(folder: Path) -> int:
    """Count the files of a folder."""
    return sum(path.is_file() for path in folder.rglob("*"))


def measure(folder: Path, corpus: Corpus) -> dict[str, float]:
    """Take the steps for a corpus, a process each."""
    folder.mkdir()
    (folder / "corpus.json").write_text(json.dumps(asdict(corpus)), encoding="utf-8")
    figures: dict[str, float] = {"clips": corpus.n_clips}
    for step in KINDS[corpus.kind][1]:
        words = [sys.executable, __file__, "--step", step, "--folder", str(folder)]
        process = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
        spent, memory = json.loads(process.stdout.splitlines()[-1])
        if step != "model":
            figures |= {f"{step} ms": 1e3 * spent / corpus.n_clips, f"{step} MB": memory}
        if step == "stage":
            figures["files a clip"] = n_files(folder / "s.staging") / corpus.n_clips
        if step == "seal":
            figures["store files"] = n_files(folder / "s-1.0.0")
            # Nothing is removed while a stage is sealed: what is there in the end is the most.
            figures["disk"] = room(folder) / room(folder / "s-1.0.0")
    shutil.rmtree(folder)
    return figures


def medians(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Give the median of each figure of several runs."""
    return {name: median(run[name] for run in runs) for name in runs[0]}


def exponent(turns: Sequence[Sequence[dict[str, float]]], measure: str) -> float:
    """Return the power of the number of clips with which a step's CPU time grows, the turns' median."""
    return 1 + median(
        math.log(many[measure] / few[measure]) / math.log(many["clips"] / few["clips"])
        for *_, few, many in turns
    )


def main() -> None:
    """Measure every size, print a table, and judge it if asked to."""
    options = arguments(
        __doc__,
        clips=[1000, 10_000, 100_000],
        films=0,
        tokens=False,
        repeats=1,
        folder=Path(),
        step="",
        check=False,
    )
    if options.step:
        corpus = Corpus(**json.loads((options.folder / "corpus.json").read_text(encoding="utf-8")))
        print(json.dumps([timed(lambda: STEPS[options.step](options.folder, corpus)).cpu_s, peak_mb()]))
        return
    kind = "tokens" if options.tokens else "vectors"
    if options.films:
        kind = "films"
    corpora = [Corpus(kind, n, -(-n // options.films) if options.films else FILM) for n in options.clips]
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder if options.folder != Path() else None) as name:

        def turn() -> list[dict[str, float]]:
            return [measure(Path(name) / str(size.n_clips), size) for size in corpora]

        turns = [turn() for _ in range(options.repeats)]
    sizes = [medians(runs) for runs in zip(*turns, strict=True)]
    rows = []
    wrong = []
    for what in list(sizes[0])[1:]:
        power = exponent(turns, what) if what.endswith(" ms") and len(sizes) > 1 else math.nan
        rows.append([what, *(f"{size[what]:.3g}" for size in sizes), power])
        wrong += [f"{what} grows with the power {power:.2f}"] if power > LARGEST else []
    show(rows, ["", *(str(each.n_clips) for each in corpora), "exponent"])
    most = {"files a clip": 0.2, "disk": MAX_DISK}
    if options.tokens:
        most = {"seal ms": MAX_MS_OF_TOKENS, "disk": MAX_DISK_OF_TOKENS}
    wrong += [f"{what} {size[what]:.2f}" for size in sizes[-2:] for what in most if size[what] > most[what]]
    verdict(wrong, check=options.check)


if __name__ == "__main__":
    main()
