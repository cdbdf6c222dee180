"""Make the models of words that obygaze ships: MObyGaze's subtitles, both experts, a real sentence encoder.

It needs the data set's folder (https://github.com/husky-helen/MObyGaze), a copy of
sentence-transformers/all-MiniLM-L6-v2 and PyTorch, and takes six minutes of CPU. What needs no understanding
is measured on the same windows and stands first on each model's page.
Run it with: python examples/models_of_words.py MObyGaze --weights FOLDER --zoo obygaze_models/zoo
"""

import argparse
import tempfile
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from mobygaze_words import TARGETS, amount, expert_windows, window_rows

import obygaze_features as of
import obygaze_models as om
from obygaze_features.backbones import load_text_backbone
from obygaze_features.manifest import builtin_codebook
from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import auc, t_interval
from obygaze_studies.mobygaze import import_mobygaze

SECONDS = 30.0
LEVELS = ("EN", "HN", "S")
CITATION = (
    "Tores et al., MObyGaze, 2025 (segments and subtitles, CC-BY); Wang et al., MiniLM, 2020, as "
    "sentence-transformers/all-MiniLM-L6-v2 (the encoder)"
)
ANSWERS = {"S": "level S against EN", "Speech": "the concept Speech", "Body": "the concept Body"}

NOTES = """**Read this first.** In windows of 30 s of the film left out, this model finds {answers} with an
AUC of {value:.2f}. {verdict} The other expert, who saw the film, finds it with {expert:.2f}.

| what is known of a window | AUC within a film left out | 95 % |
| --- | --- | --- |
{rows}

Means over {films} films, of both experts' windows. Beyond the number of words the model finds {more}, beyond
the place {more_place}.

A window is 30 s of a film's subtitles in English, as one text, {what}. {silent} windows in which nothing is
said were left out, and a text of more than 256 pieces of words is cut. Cut the subtitles of your film the
same way (`examples/words_of_a_film.py`); one line, or a whole scene, is nothing that this model has seen.
Segments that annotators drew themselves are left aside, since their length tells their level
(docs/mobygaze-words.md)."""

LEVEL = "S where the expert marked at least a fifth of it so, EN where .95 or more is EN; others are left out"
CONCEPT = (
    "positive where the expert marked at least a fifth of it, negative where nothing; others are left out"
)


def labelled(windows: pd.DataFrame, target: str) -> tuple[pd.DataFrame, of.Manifest]:
    """Choose the windows that answer a target; as rows, and as the clips of a manifest."""
    rows = window_rows(windows[windows["words"] != ""], target)
    rows = rows[rows[list(LEVELS)].max(axis=1) > 0].reset_index(drop=True)  # else no level is known
    clips = [
        of.Clip(
            row.text_id,
            row.movie,
            start_s=SECONDS * row.number,
            end_s=SECONDS * (row.number + 1),
            level=("S" if row.y else "EN")
            if target == "S"
            else max(LEVELS, key=lambda level: getattr(row, level)),
            concepts=(target,) if target != "S" and row.y else (),
        )
        for row in rows.itertuples()
    ]
    return rows, of.Manifest(tuple(clips), Path(), codebook=builtin_codebook("mobygaze"))


def of_films(data: Dataset, task: str) -> pd.Series:
    """Compute the AUC within each film left out, of the linear model."""
    table = om.evaluate(data, ["linear"], task=task).predictions.table
    own = table[table["model"] == "linear"]
    found = {movie: auc(rows["label"], rows["score"]) for movie, rows in own.groupby("movie")}
    return pd.Series(found)


def notes(rows: pd.DataFrame, data: Dataset, target: str, task: str, silent: int) -> str:
    """Say what the model finds beyond what needs no understanding."""
    places = np.abs(rows[["place"]].to_numpy() - [[0.0, 0.5, 1.0]])
    share = rows[f"other {target}"].to_numpy()
    of_rows = rows.groupby("movie").indices
    found = {
        "what is said (this model)": of_films(data, task),
        "number of words": of_films(replace(data, X=amount(rows).astype(np.float32)), task),
        "place in the film": of_films(replace(data, X=places.astype(np.float32)), task),
        "what the other expert marked": pd.Series(
            {movie: auc(rows["y"].to_numpy()[own], share[own]) for movie, own in of_rows.items()}
        ),
    }
    words, number, place, expert = found.values()
    held = {name: t_interval(films, covers="method", bounds=(0, 1)) for name, films in found.items()}
    more = t_interval(words - number, covers="method", possible=(-1, 1))
    more_place = t_interval(words - place, covers="method", possible=(-1, 1))
    gains = {"how much is said": more, "how far into the film it is": more_place}
    less = [name for name, gain in gains.items() if gain.low > 0]
    as_well = [name for name in gains if name not in less]
    verdict = f"**Knowing only {' or only '.join(as_well)} may do as well.**" if as_well else ""
    verdict += f" It is surely better than knowing {' or '.join(less)}." if less else ""
    text = NOTES.format(
        answers=ANSWERS[target],
        value=words.mean(),
        verdict=verdict.strip(),
        expert=expert.mean(),
        rows="\n".join(
            f"| {name} | {at.mean:.3f} | {at.low:.3f} to {at.high:.3f} |" for name, at in held.items()
        ),
        films=len(words),
        more=f"{more.mean:+.3f} [{more.low:+.3f}, {more.high:+.3f}]",
        more_place=f"{more_place.mean:+.3f} [{more_place.low:+.3f}, {more_place.high:+.3f}]",
        what=LEVEL if target == "S" else CONCEPT,
        silent=silent,
    )
    parts = text.split("\n\n")
    return "\n\n".join(part if part.startswith("|") else textwrap.fill(part, 110) for part in parts)


def main() -> None:
    """Train, keep and list a model for each target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder of MObyGaze")
    parser.add_argument("--weights", required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--zoo", type=Path, required=True, help="folder of the list")
    parser.add_argument("--version", default="1.0.0")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        imported = import_mobygaze(asked.data, Path(place))
        windows = expert_windows(
            imported.manifest, dict(imported.texts), (*LEVELS, *TARGETS[1:]), seconds=SECONDS
        )
        windows["number"] = windows.groupby(["movie", "expert"]).cumcount()
        windows["text_id"] = [f"{row.movie}-{row.expert}-{row.number:04}" for row in windows.itertuples()]
        said = windows[windows["words"] != ""].rename(columns={"words": "text"})
        said[["text_id", "text"]].to_csv(Path(place, "windows.csv"), index=False)
        sentence = load_text_backbone("sentence", weights=asked.weights)
        store = of.extract(
            Path(place, "windows.csv"), Path(place, "windows"), [sentence], licence="CC-BY-4.0"
        )
        for target in TARGETS:
            rows, manifest = labelled(windows, target)
            data = om.load_dataset(store, manifest)
            task = "en_s" if target == "S" else f"concept:{target}"
            run = om.evaluate(data, ["linear"], task=task)
            kept = om.save_models(
                run, data, ["linear"], Path(place, target), licence="CC-BY-4.0", citation=CITATION
            )
            page = notes(rows, data, target, task, int((windows["words"] == "").sum()))
            entry = om.push_model(
                kept["linear"], asked.zoo, f"words-{target.lower()}", asked.version, notes=page
            )
            print(f"{entry.label}: {entry.clips} windows of {entry.films} films\n\n{page}\n")


if __name__ == "__main__":
    main()
