"""Reproduce Figure 3: detection of each concept, against EN clips without it and against all."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke

from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import NAN, f1_pos, permutation_pvalues
from obygaze_models.protocol import NOT_ASKED
from obygaze_models.report import Column, Picture, Report, block, interval, number, p_value
from obygaze_studies.columns import of
from obygaze_studies.figure import BLUE, GREY, ORANGE, WIDTH, save
from obygaze_studies.obygaze12.corpus import VISUAL_CONCEPTS, by_source
from obygaze_studies.obygaze12.paper_concepts import CAV_C, CONCEPT_TASKS, NEGATIVES, PaperConcepts
from obygaze_studies.obygaze12.paper_folds import Negatives, concept_folds, leak_caption
from obygaze_studies.obygaze12.printed_values import FIGURE3_HARD, trivial_f1
from obygaze_studies.obygaze12.protocol_results import PaperResults, StrictResults

TITLE = "Figure 3"

N_PERMUTATIONS = 1000

PRINTED_NOTE = (
    "printed: bars without numbers; "
    f"the text calls the hatched bars of {', '.join(FIGURE3_HARD)} hard to separate"
)

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

AGAINST = {Negatives.EN: "EN (solid)", Negatives.ALL: "all (hatched)"}


def _printed(negatives: str, concept: str) -> str:
    hard = negatives == "all" and concept in FIGURE3_HARD
    return "no number; hard to separate" if hard else "no number"


CONCEPT: Sequence[Column] = (
    ("concept", "concept", str),
    ("against", "negatives", lambda negatives: AGAINST[Negatives(negatives)]),
)

PRINTED_COLUMN: Column = ("printed", ("negatives", "concept"), _printed)

CHOSEN: Sequence[Column] = (
    *CONCEPT,
    ("published C", "C", "{:g}".format),
    ("chosen C", "chosen_C", "{:g}".format),
    ("chosen C, draws", "drawn_C", "{:g}".format),
    ("validation F1, published C", "C_f1_validated", number),
    ("validation F1, chosen C", "chosen_f1_validated", number),
    ("validation F1, draws", "drawn_f1_validated", number),
    ("test F1, published C", "f1_pos", number),
    ("test F1, chosen C", "chosen_f1_pos", number),
)

CHOSEN_NOTES = (
    "validation F1: mean over folds 0 to 7, each held out in turn; the test fold is never used",
    "of equal means the smallest C is chosen",
    "classes are balanced by weights, as in the original code",
    "draws: by draws of negatives, others in each fold, as section 4.2 says",
)

HALO: Any = [Stroke(linewidth=2.4, foreground="white"), Normal()]


Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its height, the ends of its whisker, what a constant gives, and a mark above.

    A height of NaN is drawn as the word "undefined". `positives` of `n_clips` clips have the concept; both
    stand under the bar.
    """

    value: float
    low: float
    high: float
    constant: float
    mark: str = ""
    positives: int | None = None
    n_clips: int | None = None


UNDEFINED = Bar(NAN, NAN, NAN, NAN)


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Figure 3 under the `paper` protocol: the elected SVM of each concept on fold 9."""
    corpus = results[0].corpus
    folds = [fold for task in CONCEPT_TASKS for fold in concept_folds(corpus.manifest, *task)]
    columns: list[Column] = [
        *CONCEPT,
        ("test clips with it", ("positives", "n_test"), of),
        ("F1", "f1_pos", number),
        ("of the nine splits", ("f1_pos_min", "f1_pos_max"), "{:.3f} to {:.3f}".format),
        ("elected split", "elected", str),
        ("all positive", "all_positive", number),
        *corpus.if_printed(PRINTED_COLUMN),
    ]
    leaks = leak_caption(folds)
    blocks, data, pictures = [], [], []
    for result in results:
        rows, title = _paper_rows(result.source, result.concepts), result.source.title
        if result.choose_c:
            rows = [row | more for row, more in zip(rows, _chosen_rows(result), strict=True)]
        data += rows
        blocks.append(block(title, columns, rows, (leaks,)))
        if result.choose_c:
            blocks.append(block(f"{title}: C chosen by eight folds", CHOSEN, rows, CHOSEN_NOTES))
        pictures.append(_picture(result.source, "paper", rows, f": {leaks}"))
    return corpus.report(
        TITLE,
        (
            (
                "linear SVMs with the published C of each concept; "
                "the split elected is the best on its validation fold; "
                "every split is tested on the same clips"
            ),
            *corpus.if_printed(PRINTED_NOTE),
        ),
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
    """Draw every concept, those without a row as undefined."""
    bars = {}
    for row in rows:
        value, low, high, constant = (row[name] for name in ("f1_pos", *ENDS[protocol], "all_positive"))
        n_clips = row.get("n_test", row.get("n_clips"))
        mark = "" if "p_holm" not in row else "*" if row["p_holm"] < ALPHA else "n.s."
        bar = Bar(value, low, high, constant, mark, row["positives"], n_clips)
        bars[row["negatives"], row["concept"]] = bar
    solid, hatched = (
        [bars.get((str(negatives), concept), UNDEFINED) for concept in VISUAL_CONCEPTS]
        for negatives in NEGATIVES
    )
    return Picture(
        f"figure3-{protocol}-{source.label}",
        f"{TITLE} under the {protocol} protocol, {source.title}{note}",
        partial(draw_figure3, VISUAL_CONCEPTS, solid, hatched, SHOWS[protocol]),
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
    columns: list[Column] = [
        *CONCEPT,
        ("clips with it", ("positives", "n_clips"), of),
        ("F1 [95 %]", ("f1_pos", "f1_pos_low", "f1_pos_high"), interval),
        ("all positive", "all_positive", number),
        ("within-movie AUC [95 %]", ("within_movie_auc", "auc_low", "auc_high"), interval),
        ("p", "p", p_value),
        ("p (Holm)", "p_holm", p_value),
        ("lag 1", "lag1", partial(number, digits=2)),
        *corpus.if_printed(PRINTED_COLUMN),
    ]
    blocks, data, pictures = [], [], []
    for result in results:
        rows = [row for negatives in NEGATIVES for row in _strict_rows(result, negatives)]
        data += rows
        blocks.append(block(result.source.title, columns, rows, ("no clip or movie is on two sides",)))
        pictures.append(_picture(result.source, "strict", rows))
    return corpus.report(
        TITLE,
        (
            (
                "ridge CAVs, each movie's by the other movies; each concept's penalty and threshold are "
                "chosen by leaving these out one by one (selection-*.csv)"
            ),
            (
                "F1: of the clips with the concept, pooled, with a jackknife interval over movies, "
                "of these trained models on movies like these"
            ),
            (
                f"p: {N_PERMUTATIONS} circular shifts of the concept within movies, "
                "of its covariance with the held-out projection of features without each movie's linear "
                "trend; lag 1: "
                "correlation of a clip's presence with the next clip's; "
                "Holm over the concepts, for each choice of negatives; significant is not accurate"
            ),
            *([f"undefined, in too few movies to leave one out: {', '.join(absent)}"] if absent else []),
            *corpus.if_printed(PRINTED_NOTE),
        ),
        blocks,
        data,
        {"n_permutations": N_PERMUTATIONS},
        answers=_above(data, "f1_pos_low", "the interval of their F1 lies"),
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


def draw_figure3(
    concepts: Sequence[str], solid: Sequence[Bar], hatched: Sequence[Bar], notes: Sequence[str], path: Path
) -> None:
    """Draw a pair of bars per concept: solid against EN clips, hatched against all, as printed.

    Parameters
    ----------
    notes : sequence of str
        The meaning of bars and whiskers, one line each.
    path
        A .pdf, .png or .svg file.
    """
    save(path, (WIDTH, 3.6), partial(_bars, concepts, solid, hatched, notes))


def _bars(
    concepts: Sequence[str],
    solid: Sequence[Bar],
    hatched: Sequence[Bar],
    notes: Sequence[str],
    figure: Figure,
) -> None:
    axes = figure.subplots()
    sides = (
        (-0.2, solid, "", "against EN clips"),
        (0.2, hatched, "////", "against EN clips, and HN and S clips without the concept"),
    )
    for shift, bars, hatch, label in sides:
        x = [position + shift for position in range(len(bars))]
        axes.bar(
            x,
            [bar.value for bar in bars],
            0.38,
            color=BLUE if not hatch else "white",
            edgecolor=BLUE,
            hatch=hatch,
            label=label,
        )
        low, high = [bar.low for bar in bars], [bar.high for bar in bars]
        axes.vlines(x, low, high, "black", linewidth=1, path_effects=HALO)
        axes.hlines(
            [bar.constant for bar in bars],
            [position - 0.19 for position in x],
            [position + 0.19 for position in x],
            ORANGE,
            linewidth=2,
            label="every clip called positive" if hatch else "_",
            path_effects=[Stroke(linewidth=3.4, foreground="black"), Normal()],
        )
        for position, bar in zip(x, bars, strict=True):
            _write_on(axes, position, bar)
    under: Any = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center", "fontsize": 6}
    axes.text(-0.006, -0.055, "with it", **under)
    axes.text(-0.006, -0.1, "clips", **under)
    axes.set_xticks(range(len(concepts)), [concept.replace(" of ", "\nof ") for concept in concepts])
    axes.tick_params(axis="x", length=0, pad=23)
    axes.set_xlim(-0.5, len(concepts) - 0.5)
    axes.set_ylim(0, 1)
    axes.set_ylabel("F1 of the clips with the concept")
    axes.set_title("\n".join(notes), loc="left", fontsize=7, pad=10)  # marks stand above whiskers
    axes.spines[["top", "right"]].set_visible(False)
    keys = zip(*axes.get_legend_handles_labels(), strict=True)
    handles, labels = zip(*sorted(keys, key=lambda key: isinstance(key[0], LineCollection)), strict=True)
    figure.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False)


def _write_on(axes: Axes, x: float, bar: Bar) -> None:
    """Write a bar's mark above it and its clips under it."""
    if math.isnan(bar.value):
        axes.text(x, 0.02, "undefined", rotation=90, ha="center", va="bottom", fontsize=7, color=GREY)
    else:
        top = max(value for value in (bar.value, bar.high, bar.constant) if not math.isnan(value))
        axes.text(x, top + 0.01, bar.mark, ha="center", va="bottom", fontsize=7)
    for y, count in ((-0.055, bar.positives), (-0.1, bar.n_clips)):
        if count is not None:
            axes.text(x, y, f"{count:,}", ha="center", va="center", fontsize=6)
