"""Inputs of sizes that nobody begins with: CPU seconds, memory and exponents.

Each case is made at two sizes, the second four times the first, and each of its steps is a process of its
own; the exponent is that of a power of the size. Quadratic work, such as a comparison of all clips with all,
is `alike.py`'s.

    python benchmarks/worst.py [--only film clips ...] [--scale 1.0] [--check]

film       one film of 40,000 windows, scored; its page
clips      100,000 clips of small videos: what `extract` does before it decodes
codebook   500 concepts, marked in 1,000 clips: reading and counting them, a bottleneck of all of them
backbones  a store of 300 backbones: sealing, opening each, verifying in full
csv        a table of 1,000,000 rows: as texts, as a manifest, as features
compare    500 films, scored and compared by decade and year
predict    a store of 200,000 clips: looking at it, and a model's predictions of 160 clips and of all
unlike     80,000 clips of 2,000 films: how unlike clips are from those of other films
segments   100,000 segments a side: F1, and one alignment of gamma
ranked     2,000 items, each in five comparisons: their ranks

With --check, exit code 1 if an exponent is above 1.1, but for the bottleneck's, whose logistic regression
takes products of concepts with concepts; or if predictions take 150 MB more than looking at the store, or
than predictions of 160 clips where these take more: scikit-learn and pandas alone take some 160 MB. Sizes at
which a step takes under half a second say nothing of exponents, and none is printed.
"""

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from feed import corpus
from measure import arguments, peak_mb, show, timed, verdict
from scale import Corpus, model

LARGEST = 1.1
MIN_S = 0.5
WINDOW_S = 8.0
MAX_MB = 150
OF_A_FILM = 40


def films(folder: Path, n_films: int, of_a_film: int) -> None:
    """Seal the windows of films, and save a model that reads them."""
    from obygaze_features.store.testing import seal_arrays

    ids = [(f"tt{film:07d}-{k:06d}", f"tt{film:07d}", k) for film in range(n_films) for k in range(of_a_film)]
    spans = {clip: (k * WINDOW_S / 2, k * WINDOW_S / 2 + WINDOW_S) for clip, _, k in ids}
    vectors = np.random.default_rng(3).standard_normal((len(ids), 512), np.float32)
    movies = {clip: movie for clip, movie, _ in ids}
    seal_arrays(folder / "films", movies, {"xclip": {"pooled": vectors}}, n_frames=8, spans=spans)
    model(folder, Corpus("films", 4 * OF_A_FILM))


def command(*words: object) -> None:
    """Run a command in this process."""
    from obygaze.cli import main

    try:
        main([str(word) for word in words])
    except SystemExit as left:
        if left.code not in {0, 3, None}:
            raise


def score(folder: Path, _: int) -> None:
    """Score the film."""
    command("film", "score", folder / "linear.model", folder / "films-1.0.0", "--out", folder / "scored")


def page(folder: Path, _: int) -> None:
    """Write its page."""
    command("film", "report", folder / "scored", "--out", folder / "page.html")


def many_clips(folder: Path, n: int) -> None:
    """Name a small video many times."""
    from obygaze_features.manifest import write_manifest

    write_manifest(corpus(folder, n), folder / "clips.csv")


def begin(folder: Path, _: int) -> None:
    """Do what `extract` does before it decodes."""
    from obygaze_features.extraction import prepare

    work = prepare(folder / "clips.csv", folder / "s", ("descriptors",), workers=1)
    work.run(stopped=lambda: True)


def many_concepts(folder: Path, n: int) -> None:
    """Write a codebook of many concepts, and a manifest that marks a twentieth of them in each clip."""
    concepts = "".join(f'[[concepts]]\nname = "Concept {k}"\n' for k in range(n))
    levels = "".join(f'[[levels]]\nname = "{name}"\n' for name in ("calm", "violent"))
    task = '[tasks.calm_violent]\nnegative = ["calm"]\npositive = ["violent"]\n'
    (folder / "clips.codebook.toml").write_text(
        f'name = "mine"\nversion = "1"\n{levels}{concepts}{task}', encoding="utf-8"
    )
    rng = np.random.default_rng(4)
    lines = ["clip_id,movie,video,start_s,end_s,level,concepts,annotator"]
    for clip in range(1000):
        marked = ";".join(f"Concept {k}" for k in np.flatnonzero(rng.random(n) < 0.05))
        lines.append(f"tt{clip // 40}-{clip},tt{clip // 40},,,,{('calm', 'violent')[clip % 2]},{marked},AB")
    (folder / "clips.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def count(folder: Path, _: int) -> None:
    """Read both, and count levels and concepts."""
    command("manifest", "stats", folder / "clips.csv")


def bottleneck(folder: Path, _: int) -> None:
    """Evaluate a model that goes by all concepts, 25 films left out in turn."""
    import obygaze_models as om
    from obygaze_features.manifest import read_manifest
    from obygaze_features.store import open_store
    from obygaze_features.store.testing import seal_arrays

    manifest = read_manifest(folder / "clips.csv")
    vectors = np.random.default_rng(7).standard_normal((len(manifest.clips), 64), np.float32)
    movies = {clip.clip_id: clip.movie for clip in manifest}
    store = seal_arrays(folder / "drawn", movies, {"drawn": {"pooled": vectors}}, n_frames=2)
    data = om.load_dataset(open_store(store), manifest, backbone="drawn")
    om.evaluate(data, ["pcbm_lr"], task="calm_violent")


def many_backbones(folder: Path, n: int) -> None:
    """Seal a store of many backbones."""
    from obygaze_features.store.testing import seal_arrays

    groups = {f"backbone-{k:03d}": {"pooled": np.full((64, 16), k, np.float32)} for k in range(n)}
    seal_arrays(folder / "many", {f"c{row}": "m" for row in range(64)}, groups, n_frames=2)


def open_all(folder: Path, n: int) -> None:
    """Open and read every group."""
    from obygaze_features.store import open_store

    store = open_store(folder / "many")
    assert sum(int(store[name].pooled()[0, 0]) for name in store) == n * (n - 1) // 2


def check(folder: Path, _: int) -> None:
    """Verify it in full."""
    command("store", "verify", folder / "many", "--full")


def many_rows(folder: Path, n: int) -> None:
    """Write tables of many rows."""
    rng = np.random.default_rng(5)
    with (folder / "texts.csv").open("w", encoding="utf-8") as file:
        file.write("text_id,text\n")
        file.writelines(f"t{row},a person walks into room {row}\n" for row in range(n))
    with (folder / "clips.csv").open("w", encoding="utf-8") as file:
        file.write("clip_id,movie,video,start_s,end_s,level,concepts,annotator\n")
        file.writelines(f"tt{row // 40}-{row},tt{row // 40},{row}.mp4,,,,,\n" for row in range(n))
    values = rng.integers(0, 1000, (n, 4))
    with (folder / "features.csv").open("w", encoding="utf-8") as file:
        file.write("clip_id,f0,f1,f2,f3\n")
        file.writelines(
            f"tt{row // 40}-{row},{','.join(map(str, line))}\n" for row, line in enumerate(values.tolist())
        )


def texts(folder: Path, n: int) -> None:
    """Read a list of texts."""
    from obygaze_features.manifest import read_texts

    assert len(read_texts(folder / "texts.csv").rows) == n


def clips(folder: Path, n: int) -> None:
    """Read a manifest."""
    from obygaze_features.manifest import read_manifest

    assert len(read_manifest(folder / "clips.csv").clips) == n


def features(folder: Path, _: int) -> None:
    """Import a table of features."""
    words = ("--from", "table", "--ids", "clip_id", "--backbone", "lab", "--licence", "CC0-1.0")
    command("store", "import", folder / "clips.csv", folder / "features.csv", folder / "lab", *words)


def compare(folder: Path, _: int) -> None:
    """Score the films, draw windows, judge them by a coin, and compare by decade and year."""
    import obygaze_film
    from obygaze_features.manifest import Manifest
    from obygaze_features.store import open_store
    from obygaze_film.windows_to_judge import choose_next

    scored = obygaze_film.score_films(open_store(folder / "films"), [folder / "linear.model"])
    rng = np.random.default_rng(6)
    judged = [
        replace(clip, level=("EN", "S")[int(rng.random() < 0.3)], annotator="AB")
        for clip in choose_next(scored, 10, blind=True)
    ]
    facts = {film.movie: {"title": film.movie, "year": str(1950 + k % 70)} for k, film in enumerate(scored)}
    comparison = obygaze_film.compare_films(
        scored, Manifest(tuple(judged), folder), facts, by="decade", trend="year"
    )
    assert len(comparison.films) == len(scored)


def inspect(folder: Path, _: int) -> None:
    """Look at the store."""
    command("store", "inspect", folder / "films-1.0.0")


def predict_few(folder: Path, _: int) -> None:
    """Write the model's predictions of the 160 clips that it was trained on."""
    command("predict", folder / "linear.model", folder / "others-1.0.0", "--out", folder / "few.csv")


def predict(folder: Path, _: int) -> None:
    """Write the model's predictions of all clips."""
    command("predict", folder / "linear.model", folder / "films-1.0.0", "--out", folder / "predicted.csv")


def many_vectors(folder: Path, n_clips: int) -> None:
    """Write vectors of clips, 40 of a film."""
    np.save(folder / "X.npy", np.random.default_rng(0).standard_normal((n_clips, 512), np.float32))


def unlike(folder: Path, n_clips: int) -> None:
    """Measure how unlike each clip is from those of the other films."""
    from obygaze_models.prediction.out_of_distribution import OutOfDistribution

    movies = np.repeat(np.arange(-(-n_clips // OF_A_FILM)), OF_A_FILM)[:n_clips]
    OutOfDistribution.fit(np.load(folder / "X.npy"), movies.astype(str))


def many_segments(folder: Path, n: int) -> None:
    """Write segments of two annotators: [2, N, 2], starts and ends in seconds."""
    rng = np.random.default_rng(0)
    starts = np.sort(rng.random(n)) * 10 * n
    first = np.column_stack([starts, starts + 5])
    np.save(folder / "segments.npy", [first, first + rng.normal(size=(n, 1))])


def segments(folder: Path, n: int) -> None:
    """Compare the segments of two annotators."""
    from obygaze_film.agreement import segment_f1
    from obygaze_models.evaluation.unitising import Units, best_alignment

    first, second = np.load(folder / "segments.npy")
    ranks = np.zeros(n, np.int64)
    segment_f1(first, second, threshold=0.5)
    best_alignment(Units(first, ranks), Units(second, ranks), np.zeros((1, 1)))


def many_comparisons(folder: Path, n_items: int) -> None:
    """Write judgements of pairs: five for each item, by 20 workers who choose the higher number."""
    rng = np.random.default_rng(0)
    judgements = []
    for item in range(n_items):
        for other in [(item + 1) % n_items, *rng.choice(n_items, 4).tolist()]:
            if other != item:
                low, high = sorted((item, other))
                judgements.append((f"w{rng.integers(20)}", f"{high:05d}", f"{low:05d}"))
    (folder / "judgements.json").write_text(json.dumps(judgements), encoding="utf-8")


def ranked(folder: Path, _: int) -> None:
    """Rank the items."""
    from obygaze_models.evaluation.ranking import rank_items

    rank_items([tuple(row) for row in json.loads((folder / "judgements.json").read_text(encoding="utf-8"))])


Step = Callable[[Path, int], object]
CASES: dict[str, tuple[int, tuple[Step, ...]]] = {
    "film": (40_000, (lambda at, n: films(at, 1, n), score, page)),
    "clips": (100_000, (many_clips, begin)),
    "codebook": (500, (many_concepts, count, bottleneck)),
    "backbones": (300, (many_backbones, open_all, check)),
    "csv": (1_000_000, (many_rows, texts, clips, features)),
    "compare": (500, (lambda at, n: films(at, n, OF_A_FILM), compare)),
    "predict": (
        200_000,
        (lambda at, n: films(at, -(-n // OF_A_FILM), OF_A_FILM), inspect, predict_few, predict),
    ),
    "unlike": (80_000, (many_vectors, unlike)),
    "segments": (100_000, (many_segments, segments)),
    "ranked": (2_000, (many_comparisons, ranked)),
}
"""The size of a case, what makes it, and the steps that are measured; of a store that of making too."""


def main() -> None:
    """Measure every case, print a table, and judge it if asked to."""
    options = arguments(__doc__, only=list(CASES), scale=1.0, step="", folder=Path(), n=0, check=False)
    if options.step:
        name, index = options.step.split(":")
        took = timed(lambda: CASES[name][1][int(index)](options.folder, options.n))
        print("\n" + json.dumps([took.cpu_s, peak_mb()]))
        return
    rows = []
    wrong = []
    for name in options.only:
        largest, steps = CASES[name]
        sizes = [max(4, int(options.scale * largest / part)) for part in (4, 1)]
        taken: dict[int, list[list[float]]] = {}
        for n in sizes:
            with tempfile.TemporaryDirectory() as folder:
                for index in range(len(steps)):
                    words = [sys.executable, __file__, "--step", f"{name}:{index}", "--folder", folder]
                    process = subprocess.run(
                        [*words, "--n", str(n)], check=True, stdout=subprocess.PIPE, text=True
                    )
                    taken.setdefault(index, []).append(json.loads(process.stdout.splitlines()[-1]))
        for index, ((few, _), (many, mb)) in taken.items():
            if index == 0 and name != "backbones":
                continue
            step = steps[index].__name__
            power = math.log(many / few) / math.log(sizes[1] / sizes[0]) if many > MIN_S else math.nan
            rows.append((name, f"{sizes[1]:,}", step, few, many, f"{mb:.0f}", power))
            if power > LARGEST and step != bottleneck.__name__:
                wrong.append(f"{name}, {step}: exponent {power:.2f}")
        if name == "predict":
            _, mb_to_look = taken[1][-1]
            _, mb_of_few = taken[2][-1]
            _, mb_to_predict = taken[3][-1]
            more = mb_to_predict - max(mb_to_look, mb_of_few)
            if more > MAX_MB:
                wrong.append(f"predict: {more:.0f} MB more than store inspect and a few predictions")
    show(rows, ("case", "size", "step", "CPU s at a quarter", "CPU s", "MB", "exponent"))
    verdict(wrong, check=options.check)


if __name__ == "__main__":
    main()
