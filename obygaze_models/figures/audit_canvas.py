"""A figure of an audit: made without a screen, and the same bytes every time."""

from collections.abc import Callable
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

OURS, GREY, PRINTED = "#4477aa", "#dddddd", "#ee6677"
"""Colours of our values, of the background, and of published values."""

SERIES = (OURS, "#ccbb44", "#228833", "#aa3377", "#66ccee", "#bbbbbb")


def draw(path: Path, size: tuple[float, float], fill: Callable[[Figure, Axes], None]) -> None:
    """Make a figure with one panel, let `fill` draw into it, and save it.

    Parameters
    ----------
    path
        A .png or .svg file.
    size
        Width and height in inches.
    """
    with rc_context({"svg.hashsalt": "obygaze", "font.family": "DejaVu Sans", "font.size": 9}):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        axes.spines[["top", "right"]].set_visible(False)
        fill(figure, axes)
        svg = path.suffix.lower() == ".svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=200, metadata={"Date": None, "Creator": None} if svg else {"Software": None})
