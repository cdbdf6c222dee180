"""Set the style of figures and save them: the same numbers give the same bytes."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#4477aa", "#ee8866", "#777777"

WIDTH = 7.2
"""Inches of a figure across both columns of a page; no letter is smaller than 6 points at that width."""

_STYLE: Any = {
    # Text stays text: editable and searchable, in SVG by name of the font, in PDF with the font embedded.
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "svg.hashsalt": "obygaze",
    # The first one comes with matplotlib, so that the layout is the same everywhere; an SVG names all.
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"],
    "font.size": 8,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "hatch.linewidth": 0.8,
}

_METADATA: Mapping[str, Any] = {
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}
"""What matplotlib would say of itself and of the day, left out."""

SUFFIXES = tuple(sorted(_METADATA))
"""Endings of the files that a figure is saved as."""


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
    """Make a figure of a size in inches, have it drawn, and save it as .pdf, .png (300 dpi) or .svg.

    No date, no version, no random ids.
    """
    with rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        figure.savefig(path, dpi=300, metadata=_METADATA[path.suffix.lower()])
