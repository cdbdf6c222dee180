"""How figures look and are saved: the same numbers, the same bytes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#4477aa", "#ee8866", "#777777"


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
