"""Turn scored runs into tables and figures: precision and recall, confusion matrices."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from obygaze_models.report import NOTHING, Column, Picture, Report, block, number
from obygaze_studies.mediaeval15.annotations import CLASSES
from obygaze_studies.mediaeval15.score import PUBLISHED, Confusion, PrecisionRecall, Scored

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = ("map", "P_10", "P_100", "recall_100", "Rprec", "accuracy_all", "accuracy_returned", "coverage")
"""Measures of the printed table; the CSV has all."""


def _known(value: float, digits: int = 3) -> str:
    return NOTHING if math.isnan(value) else number(value, digits)


COLUMNS: Sequence[Column] = (
    *((name, name, str) for name in ("run", "on", "measure")),
    ("value", "value", partial(number, digits=4)),
    ("chance", "chance", partial(_known, digits=4)),
    ("published", "published", _known),
)

LOOKS = (
    *(("#4477aa", "o", "-"), ("#ee6677", "s", "--"), ("#228833", "^", "-.")),
    *(("#ccbb44", "D", "-"), ("#66ccee", "v", "--"), ("#aa3377", "P", "-.")),
)
"""Colour, marker and line: told apart without colours too; used again from the seventh run on."""


def make_report(scored: Scored, record: Mapping[str, object]) -> Report:
    """Make the report of scored runs: a table, precision and recall, confusion matrices."""
    pictures = []
    if scored.curves:
        caption = "Precision and recall; dotted, the share of relevant clips"
        pictures.append(Picture("precision_recall", caption, partial(draw_curves, scored.curves)))
    if scored.confusions:
        caption = "Clips of each true class by the class they are called"
        pictures.append(Picture("confusion", caption, partial(draw_confusions, scored.confusions)))
    notes = [
        "map: average precision as trec_eval computes it, ties by file name; official for violence",
        "accuracy_all: share of all clips called correctly; official for affect where coverage is 1",
        "chance: mean AP over all orders of the clips; accuracy of the most frequent class",
    ]
    shown = scored.table.dropna(subset=["published"])[["on", "measure"]].itertuples(index=False, name=None)
    for on, measure in dict.fromkeys(shown):
        notes.append(f"published {measure} of {on}: {PUBLISHED[on, measure][1]}")
    rows = scored.table[scored.table["measure"].isin(SHOWN)].to_dict(orient="records")
    return Report(
        name="scores",
        title="MediaEval 2015 Affective Impact of Movies",
        notes=(*notes, *scored.notices),
        blocks=(block("Measures", COLUMNS, rows),),
        data=scored.table,
        record=record,
        pictures=tuple(pictures),
    )


def draw_curves(curves: Sequence[PrecisionRecall], path: Path) -> None:
    """Draw precision at each relevant clip against recall, and the share of relevant clips, which is chance.

    The same curves give the same bytes.

    Parameters
    ----------
    curves
        One a run.
    path
        A .pdf, .png or .svg file.
    """
    from obygaze_studies.figure import GREY, save  # noqa: PLC0415 - matplotlib is slow

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for index, curve in enumerate(curves):
            colour, marker, line = LOOKS[index % len(LOOKS)]
            axes.plot(
                *(curve.recall, curve.precision),
                color=colour,
                linestyle=line,
                marker=marker,
                markersize=4,
                markevery=max(1, len(curve.recall) // 12),
                label=curve.name,
            )
        for share in sorted({curve.prevalence for curve in curves}):
            label = f"share of relevant clips, {share:.3f}"
            axes.axhline(share, color=GREY, linestyle=":", linewidth=1, label=label)
        axes.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="recall", ylabel="precision")
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside upper left", frameon=False)  # above: a perfect run fills the corners

    save(path, (5.0, 4.0 + 0.2 * len(curves)), draw)


def draw_confusions(matrices: Sequence[Confusion], path: Path) -> None:
    """Draw confusion matrices side by side: counts, shaded by their share of the true class.

    The same counts give the same bytes.

    Parameters
    ----------
    matrices
        A panel each, two a row.
    path
        A .pdf, .png or .svg file.
    """
    from obygaze_studies.figure import WIDTH, save  # noqa: PLC0415 - matplotlib is slow

    n_rows = (len(matrices) + 1) // 2

    def draw(figure: "Figure") -> None:
        panels = figure.subplots(n_rows, 2, squeeze=False).ravel()
        for axes in panels[len(matrices) :]:
            axes.set_axis_off()
        for axes, matrix in zip(panels, matrices, strict=False):
            _draw_matrix(axes, matrix)

    save(path, (WIDTH, 0.4 + 3.1 * n_rows), draw)


def _draw_matrix(axes: "Axes", matrix: Confusion) -> None:
    names = CLASSES[matrix.axis]
    shares = matrix.counts / matrix.counts.sum(axis=1, keepdims=True).clip(min=1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for row in range(len(names)):
        for column in range(len(names)):
            axes.text(
                column,
                row,
                f"{matrix.counts[row, column]:,}\n{shares[row, column]:.0%}",
                ha="center",
                va="center",
                color="white" if shares[row, column] > 0.5 else "black",
            )
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="called class", ylabel="true class (clips, share of the class)")
    axes.set_title(f"{matrix.name}, {matrix.axis}", loc="left")
