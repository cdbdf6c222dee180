"""Sentences of papers, on released data made untrue: how often `obygaze paper claims` says that they hold."""

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from msgspec.structs import replace

from benchmarks.planted.row import ROOT, Cell, Column, Draw, Row
from obygaze_features.manifest import Manifest
from obygaze_studies.claims import measures
from obygaze_studies.claims.claims_report import (
    CLAIMS,
    CONSTANT_NULL,
    HOLDS,
    NO_NULL,
    Part,
    read_input,
    verdict,
)
from obygaze_studies.claims.measures import Measured
from obygaze_studies.mobygaze import import_mobygaze
from obygaze_studies.obygaze12.import_annotations import import_obygaze12

DATA: Final = Path(os.environ.get("OBYGAZE_TEST_DATA", ROOT.parent / "shared" / "data"))
"""Folder of the released data, as of the tests (tests/README.md)."""

WORDS: Final = DATA / "audits" / "clip-gender-bias" / "sobem_emotion_word_counts_280images.csv"

N_FILMS = 8
N_CLIPS = 80
"""Of planted predictions, which nobody released; nor did anybody how films are staged."""

Tested = dict[str, list[tuple[Part, Measured]]]


def planted_predictions(rng: np.random.Generator) -> pd.DataFrame:
    """Draw scores of films left out, better of models that were trained against HN."""
    rows = []
    for film in range(N_FILMS):
        labels = rng.random(N_CLIPS) < 0.3
        for train, signal in (("en", 0.5), ("hn", 2.0)):
            for test in ("en", "enhn"):
                task = {"model": "mlp", "task": f"{train}_s>{test}_s", "movie": f"film{film}"}
                scores = rng.normal(size=N_CLIPS) + signal * labels
                rows.append(pd.DataFrame({**task, "label": labels.astype(int), "score": scores}))
    return pd.concat(rows)


def planted_staging(manifest: Manifest, rng: np.random.Generator) -> pd.DataFrame:
    """Draw how clips are staged: the camera moves at S, tilts at Type of shot, and cuts at Look.

    Pictures are close at Type of shot.
    """
    rows = {}
    for clip in manifest:
        marked = manifest.codebook.visual(clip.concepts)
        rows[clip.clip_id] = {
            "camera": (0.05 if clip.level == "S" else 0.0) + 0.1 * rng.normal(),
            "tilt": (0.05 if "Type of shot" in marked else 0.0) + 0.1 * rng.normal(),
            "cuts": (12.0 if "Look" in marked else 10.0) + 4 * rng.normal(),
            "close": float(rng.random() < (0.4 if "Type of shot" in marked else 0.3)),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


@cache
def inputs() -> dict[str, Any]:
    """Read what claims are computed from."""
    with tempfile.TemporaryDirectory() as folder:
        contents: dict[str, Any] = {
            "printed": None,
            "words": read_input(WORDS)[1],
            "predictions": planted_predictions(np.random.default_rng(0)),
            "obygaze12": import_obygaze12(DATA / "obygaze12", Path(folder)).manifest,
            "mobygaze": import_mobygaze(DATA / "mobygaze", Path(folder)).manifest,
        }
    contents["staging"] = (
        contents["obygaze12"],
        planted_staging(contents["obygaze12"], np.random.default_rng(0)),
    )
    return contents


@cache
def tested() -> Tested:
    """Measure every part that has a null, by claim."""
    verdicts: Tested = {}
    for claim in CLAIMS:
        for part in claim.parts:
            if part.null not in {NO_NULL, CONSTANT_NULL}:
                finding = getattr(measures, part.measure)(inputs()[claim.needs], **part.arguments)
                verdicts.setdefault(claim.name, []).append((part, finding))
    return verdicts


def untrue(rng: np.random.Generator, name: str) -> Draw:
    """Make a sentence untrue by the null of each of its parts, and ask whether one of them holds."""
    return {"holds": held_of_exchanged(rng, name)}


def untrue_all(rng: np.random.Generator) -> Draw:
    """Make every sentence untrue, and pool their parts."""
    held: list[bool] = []
    for name in tested():
        held += held_of_exchanged(rng, name)
    return {"holds": held}


def held_of_exchanged(rng: np.random.Generator, name: str) -> list[bool]:
    """Tell of each part of a sentence whether it holds of data in which it is untrue."""
    held = []
    for part, finding in tested()[name]:
        null = finding.null
        measure_again = finding.measure_again
        if null is None or measure_again is None:
            raise ValueError(f"{name}: a part without a null")
        exchanged = measure_again(null.randomise(null.data, rng))
        held.append(verdict(replace(part, added_because=""), exchanged) == HOLDS)
    return held


def cells() -> list[Cell]:
    """Make a cell of each sentence, by its null, and one of all."""
    rows = []
    for claim in CLAIMS:
        kinds = dict.fromkeys(part.null for part in claim.parts if part.null not in {NO_NULL, CONSTANT_NULL})
        rows += [Cell((kind, claim.name), (claim.name,)) for kind in kinds]
    rows.sort(key=lambda cell: cell.name[0])
    return rows


ROWS = [
    Row(
        "sentences", "docs/corpora.md", "paper claims",
        "The parts of each sentence on released data that were made untrue by their own null: how often one "
        "holds (its interval and its null alone decide; the test beside it, which may only withhold a "
        "verdict, is left out). Predictions and staging, which are not released, are planted.",
        ("null", "sentence"),
        cells(),
        untrue,
        {"holds": Column(high=0.1)},
        full=200, small=10,
    ),
    Row(
        "sentences-pooled", "docs/corpora.md", "paper claims",
        "All of these parts pooled.",
        ("sentences",),
        [Cell(("all",))],
        untrue_all,
        {"holds": Column(high=0.05)},
        full=200, small=3,
    ),
]  # fmt: skip
