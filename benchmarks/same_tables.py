# ruff: noqa: E501, PLR0915 - commands and tables are one a line
"""Keep every table of the studies, as JSON, and compare those of two commits.

    python benchmarks/same_tables.py CHECKOUT FOLDER [--only WORK...]   make the inputs once, then the tables
    python benchmarks/same_tables.py CHECKOUT FOLDER --against OTHER    compare: exit code 1 if one differs

All audits and tasks, on the samples and on the data that tests/README.md names; `mobygaze`; `paper all` of
both protocols. Features are drawn, so that nothing is downloaded. Five minutes of CPU.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from measure import arguments
from zoo import planted_features

from obygaze_features.manifest import read_manifest
from obygaze_features.store.testing import seal_arrays

DATA = Path(os.environ.get("OBYGAZE_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SAMPLES = "obygaze_studies/audit_common/samples"

TABLE = "--from table --backbone sample --declared SAMPLES/space.json --licence CC0-1.0"
BEFORE = f"""
manifest import obygaze12 DATA/obygaze12 --out obygaze12.csv
manifest import mobygaze DATA/mobygaze --out segments.csv --texts subtitles.csv
manifest project segments.csv --window 120 --per-annotator --out windows.csv
codebook texts obygaze12 --out thesaurus.csv
audit eat prompts --out prompts.csv
manifest import mediaeval15 clips.csv --out m15.csv
store import SAMPLES/eat-images.csv SAMPLES/eat-image-features.csv eat-images {TABLE}
store import SAMPLES/eat-texts.csv SAMPLES/eat-text-features.csv eat-texts {TABLE}
"""
"""Commands that make what the works read."""

WORKS = {
    "words-sample": "audit words --captions SAMPLES/captions.csv --items SAMPLES/items.csv --min-total 0",
    "words-lists": "audit words --captions SAMPLES/captions.csv --items SAMPLES/items.csv --min-total 0 "
    "--lists lists.json",
    "words": "audit words --captions DATA/audits/clip-gender-bias/captions_fixture_filtered.csv "
    "--items sobem.csv --min-total 1 --ratio O NO",
    "words-store": "audit words --captions told.csv --texts told-1.0.0 --items SAMPLES/items.csv --min-total 0",
    "alpha": "audit alpha --ratings SAMPLES/ratings.csv --pairs",
    "alpha-gaps": "audit alpha --ratings ratings.csv --pairs",
    "saliency": "audit saliency --maps SAMPLES/saliency-maps.zarr --roi SAMPLES/saliency-roi.csv",
    "saliency-whole": "audit saliency --maps SAMPLES/saliency-maps.zarr",
    "eat-sample": "audit eat --images eat-images-1.0.0 --texts eat-texts-1.0.0 --items SAMPLES/eat-items.csv "
    "--text-items SAMPLES/eat-text-items.csv --tests SAMPLES/eat-tests.json",
    "eat-table1": "audit eat --images sobem-1.0.0 --texts prompts-1.0.0 --published 'CLIP RN50'",
    "eat-table2": "audit eat --images jobs-1.0.0 --texts prompts-1.0.0 --items jobs.csv --tests table2",
    "gender-sample": "audit gender-score --captions SAMPLES/gender-captions.csv "
    "--objects SAMPLES/gender-objects.csv --lm SAMPLES/gender-lm.csv --sims SAMPLES/gender-sims.csv --mode ge",
    "gender-published": "audit gender-score --captions SAMPLES/gender-captions.csv "
    "--objects SAMPLES/gender-objects.csv --lm SAMPLES/gender-lm.csv --sims SAMPLES/gender-sims.csv --mode ge "
    "--published Vilbert --objects-list SAMPLES/objects.txt",
    "gender-joined": "audit gender-score --captions told.csv --objects objects.csv --lm lm.csv "
    "--texts genders-1.0.0 --labels joined",
    "gender-each": "audit gender-score --captions told.csv --objects objects.csv --lm lm.csv "
    "--texts genders-1.0.0 --mode ge",
    "cooc-sample": "audit cooc --captions SAMPLES/captions.csv --objects-list SAMPLES/objects.txt",
    "cooc": "audit cooc --captions karpathy.csv --objects-list objects.txt --published Vilbert",
    "objects": "audit objects --objects-list listed.txt --images sobem-1.0.0 --texts listed-1.0.0",
    "objects-least": "audit objects --objects-list listed.txt --images sobem-1.0.0 --texts listed-1.0.0 "
    "--least .9 --scale 3",
    "m15-score": "task mediaeval15 score --truth DATA/audits/mediaeval_synth/truth.csv "
    "--run violence.trec --run affect.csv",
    "m15-violence": "task mediaeval15 train m15.csv m15-1.0.0 --subtask violence --run a --external --out runs",
    "m15-affect": "task mediaeval15 train m15.csv m15-1.0.0 --subtask affect --run a --external --out runs",
    "m15-check": "task mediaeval15 check runs --truth m15.csv",
    "m15-trained": "task mediaeval15 score --truth m15.csv --run runs/violence-a.trec --run runs/affect-a.csv",
    "stats": "manifest stats obygaze12.csv",
    "stats-segments": "manifest stats segments.csv",
    "stats-genres": "manifest stats obygaze12.csv --by genres",
    "stats-annotator": "manifest stats segments.csv --by annotator",
    "stats-sets": "manifest stats obygaze12.csv --sets",
    "stats-segment-sets": "manifest stats segments.csv --sets",
    "stats-sweep": "manifest stats segments.csv --sweep 0.1,0.2,0.4",
    "folds": "folds obygaze12.csv --task hn_s --test enhn_s",
    "folds-paper": "folds obygaze12.csv --protocol paper --task hn_s --test enhn_s",
    "folds-movies": "folds obygaze12.csv --protocol paper --task hn_s --test enhn_s --movies",
    "folds-concept": "folds obygaze12.csv --protocol paper --task concept:Body --against EN",
    "figure2": "paper all obygaze12.csv --only figure2 --out figure2",
    "figure4": "paper figure4 segments.csv --movie tt0097576 --span 0 600 --out figure4",
    "mobygaze": "mobygaze windows.csv seen=windows-1.0.0 heard=heard-1.0.0 --model linear",
    "mobygaze-one": "mobygaze windows.csv heard=heard-1.0.0 --task concept:Speech --model linear --experts merged",
    "paper": "paper all obygaze12.csv twelve-1.0.0 --out paper",
    "paper-table2": "paper all obygaze12.csv plain-1.0.0 --only table2 --protocol strict --out table2",
    "claims": "paper claims obygaze12.csv segments.csv "
    "DATA/audits/clip-gender-bias/sobem_emotion_word_counts_280images.csv paper/predictions-strict-planted.csv",
    "claims-none": "paper claims",
}
"""Name -> the command, to which `--json` is added."""


def write_inputs(folder: Path, checkout: Path) -> None:
    """Write what the works read: tables, drawn features, and what commands make of the released annotations."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    axes = ("calm", "neutral", "active")
    clips = [
        f"ACCEDE{n:05}.mp4,film{n // 10:02},{('dev', 'test')[n >= 60]},{(n % 3 - 1) / 2},{axes[n % 3]},{n % 4 // 3}"
        for n in range(120)
    ]
    _lines(folder / "clips.csv", "clip,movie,split,valence,arousal,violence", clips)
    _lines(
        folder / "ratings.csv", "item_id,a,b,c", [f"i{n},{n % 5},{n % 3},{n % 4 or ''}" for n in range(30)]
    )
    _lines(
        folder / "lists.json", '{"anger": ["angry", "man"], "sadness": ["sad"], "happiness": ["smiling"]}', []
    )
    _lines(folder / "listed.txt", "shoe", ["cat", "tennis racket"])
    persons = [f"{s}_{e}_{w}_{h}" for s, e, w, h in product(range(1, 11), _EMOTIONS, ("NO", "O"), (1, 2))]
    sobem = [name for name in persons if "_NE_" not in name]
    named = {"AN": "anger", "SA": "sadness", "HA": "happiness"}
    captioned = {
        line.split(",")[0]
        for line in (DATA / "audits/clip-gender-bias/captions_fixture_filtered.csv")
        .read_text("utf-8")
        .split("\n")
    }
    rows = [
        f"{n},{named[n.split('_')[1][:2]]},{n.split('_')[1][2]},{n.split('_')[2]}"
        for n in sobem
        if n in captioned
    ]
    _lines(folder / "sobem.csv", "image_id,emotion,level,condition", rows)
    jobs = [
        (f"{job}-{g}-{n}", job, g)
        for job, g, n in product(("scientist", "doctor", "ceo"), ("woman", "man"), range(25))
    ]
    _lines(folder / "jobs.csv", "item_id,profession,gender", [",".join(row) for row in jobs])
    karpathy = (DATA / "audits/captions/karpathy_first800.csv").read_text("utf-8").splitlines()[1:]
    _lines(folder / "karpathy.csv", "caption_id,caption", [",".join(row.split(",")[:2]) for row in karpathy])
    _lines(folder / "objects.txt", "skateboard", ["kitchen", "motorcycle", "baseball", "street sign"])
    for name, kind in (("violence.trec", "run.trec"), ("affect.csv", "")):
        source = DATA / "audits/mediaeval_synth"
        text = (
            (source / kind).read_text("utf-8")
            if kind
            else "clip,valence,arousal\n"
            + "".join(
                ",".join(np.array(row.split(","))[[0, 2, 3]]) + "\n"
                for row in (source / "run.csv").read_text("utf-8").splitlines()[1:]
            )
        )
        (folder / name).write_text(text, "utf-8")
    captions = [
        line.split(",") for line in (checkout / SAMPLES / "captions.csv").read_text("utf-8").splitlines()
    ]
    at = {name: captions[0].index(name) for name in captions[0]}
    ids = [f"c{n}" for n in range(len(captions) - 1)]
    texts = {name: row[at["caption"]] for name, row in zip(ids, captions[1:], strict=True)}
    lines = [
        f"{name},{row[at['image_id']]},{texts[name]}" for name, row in zip(ids, captions[1:], strict=True)
    ]
    _lines(folder / "told.csv", "caption_id,image_id,caption", lines)
    images = list(dict.fromkeys(row[at["image_id"]] for row in captions[1:]))
    objects = [
        (image, thing, p) for image in images[1:] for thing, p in (("shoe", 0.5), ("tennis racket", 0.25))
    ]
    _lines(folder / "objects.csv", "image_id,object,p_c", [",".join(map(str, row)) for row in objects])
    said = {text: f"t{n}" for n, text in enumerate(dict.fromkeys(_both(texts.values())))}
    _lines(folder / "lm.csv", "text,lm_mean", [f"{text},{0.1 + 0.01 * n}" for n, text in enumerate(said)])
    for label in ("shoe", "tennis racket", "shoe tennis racket"):
        said[label] = f"l{len(said)}"
    for line in BEFORE.strip().splitlines():
        run(line, checkout, folder)

    def keep(
        name: str, ids: Mapping[str, str] | list[str], X: Any, backbone: str = "planted", **about: Any
    ) -> None:
        movie_of = ids if isinstance(ids, Mapping) else dict.fromkeys(ids, "none")
        seal_arrays(
            folder / name, movie_of, {backbone: {"pooled": np.asarray(X, np.float32)}}, space="toy", **about
        )

    keep("told", ids, rng.normal(size=(len(ids), 8)), texts=texts)
    keep(
        "genders", list(said.values()), rng.normal(size=(len(said), 8)), texts={n: t for t, n in said.items()}
    )
    twelve = read_manifest(folder / "obygaze12.csv")
    X = planted_features(twelve)
    keep("twelve", {clip.clip_id: clip.movie for clip in twelve}, X)
    keep("plain", {clip.clip_id: clip.movie for clip in twelve}, X[:, :16], backbone="xclip")
    for name, width in (("thesaurus", 512), ("prompts", 16)):
        texts = _texts(folder / f"{name}.csv")
        keep(name, list(texts), rng.normal(size=(len(texts), width)), texts=texts)
    keep("sobem", persons, rng.normal(size=(len(persons), 16)) + np.arange(len(persons))[:, None] % 7 / 5)
    keep("jobs", [row[0] for row in jobs], rng.normal(size=(len(jobs), 16)))
    listed = {f"l{n}": f"a photo of a {noun}" for n, noun in enumerate(("shoe", "cat", "tennis racket"))}
    keep("listed", list(listed), rng.normal(size=(3, 16)), texts=listed)
    X = rng.normal(size=(120, 4))
    X[:, 0] += np.arange(120) % 4 // 3
    X[:, 1] += np.arange(120) % 3
    keep("m15", {row.split(",")[0]: row.split(",")[1] for row in clips}, X)
    windows = {clip.clip_id: clip for clip in read_manifest(folder / "windows.csv")}
    sure = np.array([clip.level == "S" for clip in windows.values()])
    for name, weight in (("windows", 0.5), ("heard", 1.5)):
        X = rng.normal(size=(len(windows), 6))
        X[:, 0] += weight * sure
        keep(name, {clip_id: clip.movie for clip_id, clip in windows.items()}, X)


_EMOTIONS = ("AN1", "AN2", "SA1", "SA2", "HA1", "HA2", "NE")


def _both(texts: Any) -> list[str]:
    gendered = re.compile(r"\b(man|woman)\b")
    return [
        variant
        for text in texts
        for variant in (text, gendered.sub("man", text), gendered.sub("woman", text))
    ]


def _lines(path: Path, head: str, rows: list[str]) -> None:
    path.write_text("\n".join([head, *rows, ""]), encoding="utf-8")


def _texts(path: Path) -> dict[str, str]:
    import csv

    with path.open(encoding="utf-8", newline="") as file:
        return {row["text_id"]: row["text"] for row in csv.DictReader(file)}


def run(words: str, checkout: Path, folder: Path, *words_more: str) -> str:
    """Run a command of a checkout in a folder, and return what it prints."""
    filled = words.replace("DATA", str(DATA)).replace("SAMPLES", str(checkout / SAMPLES))
    fixed = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(checkout), "COLUMNS": "100"}
    command = [sys.executable, "-m", "obygaze", *shlex.split(filled), *words_more]
    process = subprocess.run(
        command, cwd=folder, env=os.environ | fixed, capture_output=True, text=True, check=False
    )
    if process.returncode not in (0, 3):
        sys.exit(f"exit code {process.returncode}: {words}\n{process.stderr}")
    return process.stdout


def keep_tables(name: str, checkout: Path, folder: Path, out: Path) -> None:
    """Run a work, and keep what it prints as JSON and the tables behind it."""
    words = WORKS[name].split()
    # An audit keeps the same document beside its CSV.
    output = ["--out", f"{name}.out.csv"] if words[0] == "audit" else []
    printed = (
        run(WORKS[name], checkout, folder, *output, "--force", "--json")
        if output or "--out" in words
        else run(WORKS[name], checkout, folder, "--json")
    )
    document = json.loads(printed) if printed.strip() else None
    if output and json.loads((folder / f"{name}.out.json").read_text("utf-8")) != document:
        sys.exit(f"{name}: the file is not what is printed")
    tables = {}
    if "--out" in words and words[0] == "paper":
        place = folder / words[words.index("--out") + 1]
        tables = {path.name: path.read_text("utf-8") for path in sorted(place.glob("*.csv"))}
    (out / f"{name}.json").write_text(json.dumps([document, tables], indent=1), encoding="utf-8")


def main() -> None:
    """Keep the tables; compare them."""
    parser = arguments(__doc__, parse=False)
    parser.add_argument("checkout", type=Path)
    parser.add_argument(
        "folder", type=Path, help="where the tables go; its inputs are shared: FOLDER/../inputs"
    )
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", nargs="+", default=[])
    options = parser.parse_args()
    inputs = options.folder.resolve().parent / "inputs"
    checkout = options.checkout.resolve()
    if not inputs.is_dir():
        write_inputs(inputs, checkout)
    options.folder.mkdir(exist_ok=True)
    works = [name for name in WORKS if name.startswith(tuple(options.only or ("",)))]
    equal = True
    for name in works:
        keep_tables(name, checkout, inputs, options.folder.resolve())
        if options.against:
            ours = json.loads((options.folder / f"{name}.json").read_text("utf-8"))
            theirs = json.loads((options.against / f"{name}.json").read_text("utf-8"))
            print(f"{name}: {'equal' if ours == theirs else 'DIFFERS'}", flush=True)
            equal &= ours == theirs
    sys.exit(not equal)


if __name__ == "__main__":
    main()
