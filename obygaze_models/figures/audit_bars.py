"""Bars a condition."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from obygaze_models.figures.audit_canvas import PRINTED, SERIES, draw


def draw_bars(
    labels: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    axis: str,
    path: Path,
    published: Mapping[str, Sequence[float | None]] | None = None,
) -> None:
    """Draw groups of horizontal bars; a value that is None has none.

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
        Condition -> a published value a group, marked on the bar.
    """
    height = 0.8 / len(series)

    def fill(figure: Figure, axes: Axes) -> None:
        for place, (name, values) in enumerate(series.items()):
            shift = (place - (len(series) - 1) / 2) * height
            known = [(row + shift, value) for row, value in enumerate(values) if value is not None]
            rows, lengths = [row for row, _ in known], [value for _, value in known]
            axes.barh(rows, lengths, height=height, color=SERIES[place % len(SERIES)], label=name)
            for row, value in enumerate((published or {}).get(name, ())):
                if value is not None:
                    axes.plot(value, row + shift, "d", color=PRINTED, markerfacecolor="white")
        axes.set_yticks(range(len(labels)), labels)
        axes.invert_yaxis()
        axes.set_xlabel(f"{axis} (diamonds: published)" if published else axis)
        figure.legend(loc="outside upper right", ncols=4, frameon=False)

    draw(path, (7, 1.2 + 0.3 * len(labels) * max(1, len(series) / 2)), fill)
