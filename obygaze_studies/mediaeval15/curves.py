"""Draw precision-recall curves and confusion matrices of runs of the MediaEval 2015 task."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from obygaze_studies.figure import GREY, WIDTH, save
from obygaze_studies.mediaeval15.labels import CLASSES
from obygaze_studies.mediaeval15.score import Confusion, Curve

LOOKS = (
    *(("#4477aa", "o", "-"), ("#ee6677", "s", "--"), ("#228833", "^", "-.")),
    *(("#ccbb44", "D", "-"), ("#66ccee", "v", "--"), ("#aa3377", "P", "-.")),
)
"""Colour, marker and line: told apart without colours too; used again from the seventh run on."""


def draw_curves(curves: Sequence[Curve], path: Path) -> None:
    """Draw precision at each relevant clip against recall, and the share of relevant clips, which is chance.

    The same curves give the same bytes.

    Parameters
    ----------
    curves
        One a run.
    path
        A .pdf, .png or .svg file.
    """

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for place, curve in enumerate(curves):
            colour, marker, line = LOOKS[place % len(LOOKS)]
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
    n_rows = (len(matrices) + 1) // 2

    def draw(figure: Figure) -> None:
        panels = figure.subplots(n_rows, 2, squeeze=False).ravel()
        for axes in panels[len(matrices) :]:
            axes.set_axis_off()
        for axes, matrix in zip(panels, matrices, strict=False):
            _draw_matrix(axes, matrix)

    save(path, (WIDTH, 0.4 + 3.1 * n_rows), draw)


def _draw_matrix(axes: Axes, matrix: Confusion) -> None:
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
