"""A figure of an audit: one panel, made without a screen, and the same bytes every time."""

from collections.abc import Callable
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from obygaze_models.figures.style import save

OURS, GREY, PRINTED = "#4477aa", "#dddddd", "#ee6677"
"""Colours of our values, of the background, and of published values."""


def draw(path: Path, size: tuple[float, float], fill: Callable[[Figure, Axes], None]) -> None:
    """Make a figure with one panel, let `fill` draw into it, and save it.

    Parameters
    ----------
    path
        A .png or .svg file.
    size
        Width and height in inches.
    """

    def panel(figure: Figure) -> None:
        axes = figure.subplots()
        axes.spines[["top", "right"]].set_visible(False)
        fill(figure, axes)

    path.parent.mkdir(parents=True, exist_ok=True)
    save(path, size, panel)
