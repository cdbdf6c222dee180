"""Bars a condition."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from obygaze_models.figures.audit_canvas import OURS, PRINTED, draw

SERIES = ((OURS, ""), ("#ccbb44", "////"), ("#228833", "...."), ("#aa3377", "xxxx"), ("#66ccee", "||||"))
"""Colour and hatching of each condition: told apart in print without colours too."""


def draw_bars(
    labels: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    axis: str,
    path: Path,
    published: Mapping[str, Sequence[float | None]] | None = None,
) -> None:
    """Draw groups of horizontal bars, their values beside them; a dash where there is none.

    Parameters
    ----------
    labels
        Of the groups, from top to bottom.
    series
        Condition -> a value a group.
    axis
        What the bars measure.
    path
        A .png or .svg file.
    published
        Condition -> a published value a group, marked by a diamond.
    """
    height = 0.8 / len(series)

    def fill(figure: Figure, axes: Axes) -> None:
        marks = []
        for place, (name, values) in enumerate(series.items()):
            rows = [row + (place - (len(series) - 1) / 2) * height for row in range(len(values))]
            colour, hatch = SERIES[place % len(SERIES)]
            lengths = [value or 0.0 for value in values]
            axes.barh(rows, lengths, height=height, color=colour, hatch=hatch, edgecolor="white", label=name)
            for row, value in zip(rows, values, strict=True):
                # In a column of their own, where no diamond and no bar hides them.
                axes.text(
                    1.01, row, _shown(value), transform=axes.get_yaxis_transform(), va="center", fontsize=7
                )
            printed = (published or {}).get(name, ())
            marks += [(value, row) for value, row in zip(printed, rows, strict=False) if value is not None]
        if marks:
            axes.plot(
                *zip(*marks, strict=True), "d", color=PRINTED, markerfacecolor="white", label="published"
            )
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.set_xlabel(axis)
        if len(series) > 1 or marks:
            figure.legend(loc="outside upper right", ncols=4, frameon=False)

    draw(path, (7, 1.2 + 0.3 * len(labels) * max(1, len(series) / 2)), fill)


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
