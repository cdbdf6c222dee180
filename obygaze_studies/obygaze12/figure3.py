"""Reproduce Figure 3: detection of each concept, against EN clips without it and against all."""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke

from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import NAN, f1_pos, permutation_pvalues
from obygaze_models.protocol import NOT_ASKED
from obygaze_models.report import Picture, Report, block
from obygaze_studies.figure import BLUE, GREY, ORANGE, WIDTH, save
from obygaze_studies.obygaze12.corpus import CAPTIONS, VISUAL_CONCEPTS, by_source, columns
from obygaze_studies.obygaze12.paper_concepts import CAV_C, CONCEPT_TASKS, NEGATIVES, PaperConcepts
from obygaze_studies.obygaze12.paper_folds import Negatives, concept_folds, leak_caption
from obygaze_studies.obygaze12.printed_values import FIGURE3_HARD, trivial_f1
from obygaze_studies.obygaze12.protocol_results import PaperResults, StrictResults

N_PERMUTATIONS = 1000

SHOWS = {
    "paper": (
        "bars: the split elected on its own validation fold, one of nine",
        "whiskers: lowest and highest of the nine splits, all tested on the same clips",
    ),
    "strict": (
        "bars: held-out movies pooled; whiskers: 95 % jackknife interval over movies",
        "* p below .05, n.s. otherwise (permutation test, Holm over the concepts)",
    ),
}

ENDS = {"paper": ("f1_pos_min", "f1_pos_max"), "strict": ("f1_pos_low", "f1_pos_high")}
"""Columns of the ends of whiskers."""

ALPHA = 0.05

SIDES = {
    "en": "against EN clips",
    "all": "against EN clips, and HN and S clips without the concept",
}
"""Negatives of the solid and of the hatched bars, and what the legend says of them."""

AGAINST = {Negatives.EN: "EN (solid)", Negatives.ALL: "all (hatched)"}


def _against(negatives: str) -> str:
    return AGAINST[Negatives(negatives)]


def _printed(negatives: str, concept: str) -> str:
    hard = negatives == "all" and concept in FIGURE3_HARD
    return "no number; hard to separate" if hard else "no number"


HALO: Any = [Stroke(linewidth=2.4, foreground="white"), Normal()]


Row = dict[str, Any]


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Figure 3 under the `paper` protocol: the elected SVM of each concept on fold 9."""
    corpus = results[0].corpus
    folds = [fold for task in CONCEPT_TASKS for fold in concept_folds(corpus.manifest, *task)]
    headings = corpus.columns("figure3", "paper", against=_against, printed=_printed)
    leaks = leak_caption(folds)
    blocks, data, pictures = [], [], []
    for result in results:
        rows, title = _paper_rows(result.source, result.concepts), result.source.title
        if result.choose_c:
            rows = [row | more for row, more in zip(rows, _chosen_rows(result), strict=True)]
        data += rows
        blocks.append(block(title, headings, rows, (leaks,)))
        if result.choose_c:
            blocks.append(
                block(
                    f"{title}: C chosen by eight folds",
                    columns("figure3", "chosen", against=_against),
                    rows,
                    CAPTIONS["figure3"]["chosen"],
                )
            )
        pictures.append(_picture(result.source, "paper", rows, f": {leaks}"))
    return corpus.report(
        "figure3",
        blocks,
        data,
        {},
        answers=_above(data, "f1_pos", "their F1 is"),
        folds=folds,
        pictures=pictures,
    )


def _above(rows: Sequence[Row], value: str, what: str) -> list[str]:
    """Count the CAVs with a value above the F1 of calling every clip positive, source by source."""
    return [
        f"{source}: {sum(row[value] > row['all_positive'] for row in own)} of {len(own)} CAVs are better "
        f"than calling every clip positive ({what} higher)"
        for source, own in by_source(rows).items()
    ]


def _picture(source: Dataset, protocol: str, rows: Sequence[Row], note: str = "") -> Picture:
    return Picture(
        f"figure3-{protocol}-{source.label}",
        f"Figure 3 under the {protocol} protocol, {source.title}{note}",
        partial(draw_figure3, rows, protocol),
    )


def _paper_rows(source: Dataset, concepts: PaperConcepts) -> list[Row]:
    table = concepts.predictions.table.assign(called=concepts.predictions.called)
    rows: list[Row] = []
    for concept, negatives in CONCEPT_TASKS:
        part = table[table["task"] == f"{concept}|{negatives}"]
        values = [
            f1_pos(fold["label"].to_numpy(), fold["called"].to_numpy()) for _, fold in part.groupby("fold")
        ]
        elected = concepts.elected[concept, negatives]
        first = part[part["fold"] == elected]
        rows.append(
            {
                "features": source.title,
                "concept": concept,
                "negatives": str(negatives),
                "f1_pos": values[elected],
                "f1_pos_min": min(values),
                "f1_pos_max": max(values),
                "elected": elected,
                "n_test": len(first),
                "positives": int(first["label"].sum()),
                "all_positive": trivial_f1(float(first["label"].mean()), 1.0, "f1_pos"),
            }
        )
    return rows


def _chosen_rows(result: PaperResults) -> list[Row]:
    """Return what the choice of C by eight folds adds to each concept's row."""
    rows = []
    for task, row in zip(CONCEPT_TASKS, _paper_rows(result.source, result.concepts_chosen), strict=True):
        chosen, drawn, published = result.chosen_c[task], result.drawn_c[task], CAV_C[task[0]]
        rows.append(
            {"C": published, "C_f1_validated": chosen.validated[published]}
            | {"chosen_C": chosen.C, "chosen_f1_validated": chosen.validated[chosen.C]}
            | {"drawn_C": drawn.C, "drawn_f1_validated": drawn.validated[drawn.C]}
            | {"chosen_f1_pos": row["f1_pos"], "chosen_elected": row["elected"]}
        )
    return rows


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Reproduce Figure 3 under `strict`: pooled over movies, with intervals and permutation tests."""
    corpus = results[0].corpus
    targets = results[0].concept_targets
    absent = [
        f"{concept} against {AGAINST[negatives]}"
        for concept, negatives in CONCEPT_TASKS
        if (negatives, concept) not in targets
    ]
    headings = corpus.columns("figure3", "strict", against=_against, printed=_printed)
    blocks, data, pictures = [], [], []
    for result in results:
        rows = [row for negatives in NEGATIVES for row in _strict_rows(result, negatives)]
        data += rows
        blocks.append(block(result.source.title, headings, rows, ("no clip or movie is on two sides",)))
        pictures.append(_picture(result.source, "strict", rows))
    return corpus.report(
        "figure3",
        blocks,
        data,
        {"n_permutations": N_PERMUTATIONS},
        answers=_above(data, "f1_pos_low", "the interval of their F1 lies"),
        notes=[f"undefined, in too few movies to leave one out: {', '.join(absent)}"] if absent else [],
        pictures=pictures,
    )


def _strict_rows(result: StrictResults, negatives: Negatives) -> list[Row]:
    runs = {concept: run for (against, concept), run in result.concepts.items() if against is negatives}
    if not runs:
        return []
    codes = np.column_stack(
        [result.concept_targets[negatives, concept].of(result.source.labels) for concept in runs]
    )
    tested = permutation_pvalues(
        result.source.X,
        np.where(codes == NOT_ASKED, np.nan, codes),
        result.source.movies,
        n_permutations=N_PERMUTATIONS,
        seed=result.seed,
    )
    rows: list[Row] = []
    for index, (concept, run) in enumerate(runs.items()):
        metrics = run.metrics[run.metrics["model"] == "cav"].set_index("metric").to_dict(orient="index")
        f1, within = metrics["f1_pos"], metrics["within_movie_auc"]
        ends = ("", "_low", "_high")
        rows.append(
            {"features": result.source.title, "concept": concept, "negatives": str(negatives)}
            | {f"f1_pos{end}": f1[f"pooled{end}"] for end in ends}
            | {"auc": metrics["auc"]["pooled"], "within_movie_auc": within["pooled"]}
            | {f"auc{end}": within[f"pooled{end}"] for end in ends[1:]}
            | {"all_positive": trivial_f1(f1["prevalence"], 1.0, "f1_pos")}
            | {name: float(getattr(tested, name)[index]) for name in ("p", "p_holm", "lag1")}
            | {"n_clips": f1["n_clips"], "positives": int((codes[:, index] == 1).sum())}
        )
    return rows


def draw_figure3(rows: Sequence[Row], protocol: str, path: Path) -> None:
    """Draw a pair of bars per concept: solid against EN clips, hatched against all, as printed.

    A concept without a row is drawn as the word "undefined", as one whose F1 is NaN.
    """
    known = {(row["negatives"], row["concept"]): row for row in rows}
    low, high = ENDS[protocol]
    undefined = dict.fromkeys(("f1_pos", low, high, "all_positive"), NAN)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for (negatives, label), shift, hatch in zip(SIDES.items(), (-0.2, 0.2), ("", "////"), strict=True):
            own = [known.get((negatives, concept), undefined) for concept in VISUAL_CONCEPTS]
            x, bars = np.arange(len(own)) + shift, pd.DataFrame(own)
            colour = "white" if hatch else BLUE
            axes.bar(x, bars["f1_pos"], 0.38, color=colour, edgecolor=BLUE, hatch=hatch, label=label)
            axes.vlines(x, bars[low], bars[high], "black", linewidth=1, path_effects=HALO)
            axes.hlines(
                bars["all_positive"],
                x - 0.19,
                x + 0.19,
                ORANGE,
                linewidth=2,
                label="every clip called positive" if hatch else "_",
                path_effects=[Stroke(linewidth=3.4, foreground="black"), Normal()],
            )
            for position, row in zip(x.tolist(), own, strict=True):
                _write_on(axes, position, row, high)
        under: Any = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center", "fontsize": 6}
        axes.text(-0.006, -0.055, "with it", **under)
        axes.text(-0.006, -0.1, "clips", **under)
        names = [concept.replace(" of ", "\nof ") for concept in VISUAL_CONCEPTS]
        axes.set_xticks(range(len(names)), names)
        axes.tick_params(axis="x", length=0, pad=23)
        axes.set(xlim=(-0.5, len(names) - 0.5), ylim=(0, 1), ylabel="F1 of the clips with the concept")
        # Marks stand above whiskers.
        axes.set_title("\n".join(SHOWS[protocol]), loc="left", fontsize=7, pad=10)
        keys = zip(*axes.get_legend_handles_labels(), strict=True)
        handles, labels = zip(*sorted(keys, key=lambda key: isinstance(key[0], LineCollection)), strict=True)
        figure.legend(handles, labels, loc="outside upper left", ncols=3)

    save(path, (WIDTH, 3.6), draw)


def _write_on(axes: Axes, x: float, row: Row, high: str) -> None:
    """Write what a test says above a bar, and its clips under it."""
    if math.isnan(row["f1_pos"]):
        axes.text(x, 0.02, "undefined", rotation=90, ha="center", va="bottom", fontsize=7, color=GREY)
    else:
        top = max(row[name] for name in ("f1_pos", high, "all_positive") if not math.isnan(row[name]))
        mark = "" if "p_holm" not in row else "*" if row["p_holm"] < ALPHA else "n.s."
        axes.text(x, top + 0.01, mark, ha="center", va="bottom", fontsize=7)
    for y, column in ((-0.055, "positives"), (-0.1, "n_test" if "n_test" in row else "n_clips")):
        if column in row:
            axes.text(x, y, f"{row[column]:,}", ha="center", va="center", fontsize=6)
