"""Ask what words alone tell of objectification, in films left out: MObyGaze, both experts, a real encoder.

It needs the data set's folder (https://github.com/husky-helen/MObyGaze), and for the encoder's rows a copy of
sentence-transformers/all-MiniLM-L6-v2 and PyTorch. docs/mobygaze-words.md shows and reads what it prints.
Run it with: python examples/words_of_mobygaze.py MObyGaze [--weights FOLDER] [--figure words.svg]
"""

import argparse
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from mobygaze_words import TARGETS, expert_windows, strongest_words, study_segments, study_windows

import obygaze_features as of
from obygaze_features.backbones import load_text_backbone
from obygaze_studies.audit_common.embeddings import read_embeddings
from obygaze_studies.mobygaze import import_mobygaze

NUMBERS = {"annotator1": "1", "annotator2": "2", "annotator1 and annotator2": "both"}


def encoded(texts: Sequence[str], weights: str) -> np.ndarray:
    """Encode texts [N, D] through a store; windows in which nothing is said are at 0."""
    said = sorted(set(filter(None, texts)))
    with tempfile.TemporaryDirectory() as place:
        table = pd.DataFrame({"text_id": [f"{number:06}" for number in range(len(said))], "text": said})
        table.to_csv(Path(place, "windows.csv"), index=False)
        sentence = load_text_backbone("sentence", weights=weights)
        of.extract(Path(place, "windows.csv"), Path(place, "windows"), [sentence], licence="CC0-1.0")
        embeddings = read_embeddings(Path(place, "windows-1.0.0"))
        vectors = embeddings.vectors_of(table["text_id"].tolist(), "window")
    row_of = {text: number for number, text in enumerate(said)}
    rows = np.array([row_of.get(text, len(said)) for text in texts])
    return np.vstack([vectors, np.zeros(vectors.shape[1])])[rows]


def shown(found: pd.DataFrame) -> str:
    """Lay out estimates as Markdown: a row a model, a column each expert learnt from and tested on."""
    learnt_from = [trained for trained in NUMBERS if trained in set(found["trained"])]
    columns = [(trained, tested) for trained in learnt_from for tested in sorted(set(found["tested"]))]
    titles = [f"{NUMBERS[trained]} on {NUMBERS[tested]}" for trained, tested in columns]
    lines = [f"| learnt from, tested on | {' | '.join(titles)} |", "| --- " * (len(columns) + 1) + "|"]
    for model, rows in found.groupby("model", sort=False):
        cells = dict.fromkeys(columns, "")
        for row in rows.itertuples():
            sign = "+" if " less " in model else ""
            text = f"{row.value:{sign}.3f} [{row.low:{sign}.3f}, {row.high:{sign}.3f}]"
            cells |= {(trained, row.tested): text for trained in learnt_from if row.trained in ("", trained)}
        lines.append(f"| {model} | {' | '.join(cells.values())} |")
    return "\n".join(lines)


def drawn(found: pd.DataFrame, path: Path) -> None:
    """Draw the AUC of each model on each expert, learnt from the same expert, with its interval."""
    from matplotlib.figure import Figure

    from obygaze_studies.audit_common.charts import WIDTH, save

    blue, orange, grey = "#4477aa", "#ee8866", "#777777"

    own = found[((found["trained"] == found["tested"]) | (found["trained"] == "")) & (found["low"] >= 0)]
    models = list(dict.fromkeys(own["model"]))[::-1]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for side, (tested, colour) in zip(
            (0.12, -0.12), (("annotator1", blue), ("annotator2", orange)), strict=True
        ):
            rows = own[own["tested"] == tested]
            places = [models.index(model) + side for model in rows["model"]]
            error = [rows["value"] - rows["low"], rows["high"] - rows["value"]]
            axes.errorbar(rows["value"], places, xerr=error, fmt="o", ms=4, color=colour, label=tested)
        axes.axvline(0.5, color=grey, lw=0.7)
        axes.set_yticks(range(len(models)), models)
        axes.set_xlabel("AUC within the film left out, mean of films, 95 %: windows of 30 s, S against EN")
        axes.legend(loc="center right", frameon=False)

    save(path, (WIDTH, 3.2), draw)


def main() -> None:
    """Print the tables; draw the figure where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder of MObyGaze")
    parser.add_argument("--weights", help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        imported = import_mobygaze(asked.data, Path(place))
    subtitles = dict(imported.texts)
    print(f"### Segments: S against EN\n\n{shown(study_segments(imported.manifest, subtitles))}\n")
    windows = expert_windows(imported.manifest, subtitles, ("EN", *TARGETS))
    embed = partial(encoded, weights=asked.weights) if asked.weights else None
    for target in TARGETS:
        found = study_windows(windows, target, embed if target == "S" else None)
        negative = "EN" if target == "S" else "none of it"
        print(f"### Windows of 30 s: {target} against {negative}\n\n{shown(found)}\n")
        if target == "S" and asked.figure:
            drawn(found, asked.figure)
    for side, words in strongest_words(windows, "S").items():
        print(f"Words that weigh most {side} S: {', '.join(words)}.")


if __name__ == "__main__":
    main()
