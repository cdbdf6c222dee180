"""Set the style of figures and save them: the same numbers give the same bytes."""

from collections.abc import Callable, Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#4477aa", "#ee8866", "#777777"

WIDTH = 7.2
"""Width in inches of a figure across both columns; letters are at least 6 points at this width."""

_STYLE = files(__package__).joinpath("figure.mplstyle")

_METADATA: Mapping[str, Any] = {
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}
"""Metadata of matplotlib (version, date) that is left out."""


def save(path: Path, size: tuple[float, float], draw: Callable[[Figure], None]) -> None:
    """Draw a figure of a size in inches, and save it as .pdf, .png (300 dpi) or .svg.

    Of a path that ends in none of these all three are saved, in one layout, for laying out takes as long as
    drawing. The files have no date, version or random ids.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with as_file(_STYLE) as style, rc_context(fname=style):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        suffixes = (path.suffix,) if path.suffix.lower() in _METADATA else sorted(_METADATA)
        for suffix in suffixes:
            file = path if suffix == path.suffix else path.with_name(path.name + suffix)
            figure.savefig(file, dpi=300, metadata=_METADATA[suffix.lower()])
            # None, not "none": with a layout engine of any kind matplotlib draws a figure twice.
            figure.set_layout_engine(None)
