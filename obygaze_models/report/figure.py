"""How figures look and are saved: the same numbers, the same bytes."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#4477aa", "#ee8866", "#777777"


def mark_undefined(axes: Axes, values: Sequence[float]) -> None:
    """Say at 0, in the rows of a horizontal chart whose value is NaN, that there is none."""
    for place, value in enumerate(values):
        if math.isnan(value):
            axes.annotate(
                "undefined",
                (0, place),
                (3, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
                color=GREY,
            )


def save(path: Path, size: tuple[float, float], draw: Callable[[Figure], None]) -> None:
    """Make a figure of a size in inches, have it drawn, and save it as .png or .svg.

    No date, no version, no random ids.
    """
    style: Any = {
        "svg.hashsalt": "obygaze",
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "hatch.linewidth": 0.8,
    }
    with rc_context(style):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        svg = path.suffix.lower() == ".svg"
        figure.savefig(path, dpi=200, metadata={"Date": None, "Creator": None} if svg else {"Software": None})
