"""The demo's films under labels of another lab: every step of the open zoo, and no word of ObyGaze12."""

import csv
import json
import re
import shutil
import subprocess
import sys

import pytest

from tests.violence import GUN, LEVELS, TASK

pytestmark = pytest.mark.long

CODEBOOK = LEVELS + GUN + '[[concepts]]\nname = "Shout"\nvisual = true\n' + TASK

FOREIGN = re.compile(
    r"\b(EN|HN|NS|S|hn_s|en_s|enhn_s|ObyGaze12|obygaze12|Body|Posture|Clothing|objectif\w*|Tores)\b"
)
"""Words of ObyGaze12. The program's own name and the films' names are left out of the search."""


@pytest.fixture(scope="module")
def lab(demo_folder, obygaze, tmp_path_factory):
    """Four of the demo's films, twelve clips each, labelled in the lab's own words."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "violence.codebook.toml").write_text(CODEBOOK, encoding="utf-8")
    rows = []
    with (demo_folder / "planted.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            number = int(row["clip_id"][-3:])
            if row["movie"] not in {"tt9000001", "tt9000002", "tt9000003", "tt9000004"} or number > 12:
                continue
            video = f"{row['movie']}/{row['clip_id']}.mp4"
            if not (demo_folder / "films" / video).is_file():
                continue
            level = {"S": "violent", "NS": "unsure"}.get(row["level"], "calm")
            concepts = [
                name for name, sign in (("pistol", "Body"), ("Shout", "Look")) if sign in row["concepts"]
            ]
            rows.append([f"f{row['movie'][-1]}-{number:02}", f"f{row['movie'][-1]}", video, "", "", level])
            rows[-1].append(";".join(concepts))
            (folder / "films" / row["movie"]).mkdir(parents=True, exist_ok=True)
            shutil.copy(demo_folder / "films" / video, folder / "films" / video)
    with (folder / "spans.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["clip_id", "movie", "video", "start_s", "end_s", "level", "concepts"])
        table.writerows(rows)
    spans = ("--spans", "spans.csv", "--codebook", "violence.codebook.toml", "--out", "m.csv")
    obygaze(folder, 0, "manifest", "import", "folder", "films", *spans)
    return folder


def said_by(folder, *arguments, code=0):
    """Run a command and give what it prints."""
    command = [sys.executable, "-m", "obygaze", *map(str, arguments)]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert finished.returncode == code, finished.stdout + finished.stderr
    return finished.stdout + finished.stderr


def test_labels_of_another_codebook_go_through_every_step(lab):
    printed = [said_by(lab, "extract", "m.csv", "features", "--licence", "CC0-1.0", "--workers", 1, code=3)]
    run = ("evaluate", "m.csv", "features", "--model", "linear", "--model", "pcbm_lr")
    printed.append(said_by(lab, *run, "--save", "pcbm_lr", "--out", "run"))
    printed.append(said_by(lab, "compare", "run", "run", "--against", "pcbm_lr", "--out", "compared"))
    printed.append(said_by(lab, "predict", "run/pcbm_lr.model", "features", "--out", "p.csv"))
    options = ("--clip", "f1-01", "--set", "Gun=0.95")
    printed.append(said_by(lab, "explain", "run/pcbm_lr.model", "features", *options))
    printed.append(said_by(lab, "model", "inspect", "run/pcbm_lr.model"))
    printed += [said_by(lab, "manifest", what, "m.csv") for what in ("inspect", "stats")]
    printed.append(said_by(lab, "evaluate", "m.csv", "features", "--task", "concept:Gun", "--out", "gun"))
    printed.append(said_by(lab, "evaluate", "m.csv", "features", "--task", "levels", "--out", "levels"))
    written = [
        path.read_text("utf-8")
        for name in ("run", "compared", "gun", "levels")
        for path in sorted((lab / name).iterdir())
        if path.suffix != ".model"
    ]
    for text in (*printed, *written, (lab / "p.csv").read_text("utf-8")):
        assert not FOREIGN.search(text), FOREIGN.search(text)
    with (lab / "p.csv").open(encoding="utf-8") as file:
        row = next(csv.DictReader(file))
    assert {"Gun_value", "Gun_p", "Gun_contribution", "Shout_contribution"} <= set(row)


def test_the_demo_in_other_words_gives_the_same_numbers(demo_folder, obygaze, tmp_path):
    """Levels and concepts renamed one to one, in the same order: the same numbers to the bit."""
    named = builtin = json.loads(said_by(tmp_path, "codebook", "show", "obygaze12", "--json"))
    words = {level["name"]: f"degree{index}" for index, level in enumerate(named["levels"])}
    words |= {concept["name"]: f"sign{index}" for index, concept in enumerate(builtin["concepts"])}
    lines = ['name = "renamed"', 'version = "1"']
    for level in named["levels"]:
        lines += [
            "[[levels]]",
            f'name = "{words[level["name"]]}"',
            f"label = {str(level.get('label', True)).lower()}",
        ]
    for concept in named["concepts"]:
        visual = str(concept.get("visual", True)).lower()
        lines += ["[[concepts]]", f'name = "{words[concept["name"]]}"', f"visual = {visual}"]
    for task in ("hn_s", "enhn_s"):
        sides = named["tasks"][task]
        lines.append(f"[tasks.{task}]")
        lines += [
            f"{side} = {json.dumps([words[name] for name in sides[side]])}"
            for side in ("negative", "positive")
        ]
    (tmp_path / "renamed.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (demo_folder / "labels.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with (tmp_path / "spans.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        for row in rows:
            concepts = ";".join(words[name] for name in row["concepts"].split(";") if name)
            table.writerow(row | {"level": words.get(row["level"], ""), "concepts": concepts})
    spans = ("--spans", "spans.csv", "--codebook", "renamed.toml", "--out", "m.csv")
    obygaze(tmp_path, 0, "manifest", "import", "folder", demo_folder / "films", *spans)
    options = (demo_folder / "store-1.0.0", "--task", "hn_s", "--test", "enhn_s", "--model", "linear")
    for name, manifest in (("renamed", "m.csv"), ("own", demo_folder / "manifest.csv")):
        said_by(tmp_path, "evaluate", manifest, *options, "--model", "pcbm_lr", "--out", name)
    for file in ("metrics.csv", "predictions.csv", "selection.csv"):
        assert (tmp_path / "renamed" / file).read_bytes() == (tmp_path / "own" / file).read_bytes()
