"""Draw the studies' figures: bars with other values beside them, stacks, timelines, trees, pictures.

Made without a screen; the same numbers give the same bytes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray
from PIL import Image
from sklearn.tree import DecisionTreeClassifier, plot_tree

from obygaze_features.manifest import read_manifest
from obygaze_features.video import read_frames, uniform
from obygaze_studies.errors import AuditError

WIDTH = 7.2
"""Width in inches of a figure across both columns; letters are at least 6 points at this width."""

_STYLE = files("obygaze_studies").joinpath("figure.mplstyle")

_METADATA: Mapping[str, Any] = {
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}
"""Metadata of matplotlib (version, date) that is left out."""

OURS = "#4477aa"
GREY = "#dddddd"
PRINTED = "#ee6677"
"""Colours of our values, of the background, and of published values."""

SERIES = ((OURS, ""), ("#ccbb44", "////"), ("#228833", "...."), ("#aa3377", "xxxx"), ("#66ccee", "||||"))
"""Colour and hatching of each condition, distinct in print without colours too."""

PARTS = ("#77aadd", "#99ddff", "#44bb99", "#bbcc33", "#eedd88", "#ee8866", "#ffaabb", "#dddddd")
"""Colours of a stack, distinct for readers who do not see red or green; black is readable on all."""

ROOM = 0.035
"""Share of a part that has room for its number."""

PICTURE_PIXELS = 640
"""Longest side of a picture on a sheet of several."""

Values = Mapping[str, Sequence[float | None]]


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


def draw_bars(
    labels: Sequence[str],
    series: Values,
    axis: str,
    path: Path,
    *,
    published: Values | None = None,
    marked: str = "published",
    ends: tuple[Values, Values] | None = None,
    bands: Sequence[float] = (),
    starred: Mapping[str, Sequence[bool]] | None = None,
) -> None:
    """Draw groups of horizontal bars, their values beside them; a dash where there is none, or NaN.

    Parameters
    ----------
    labels
        Of the groups, from top to bottom.
    series
        Condition -> one value per group.
    axis
        What the bars measure.
    path
        A .pdf, .png or .svg file.
    published
        Condition -> a value a group to compare with, marked by a diamond.
    marked
        What diamonds mark.
    ends
        The ends of each value's interval, drawn as a line.
    bands
        Of each group, how far from 0 a value may be by chance, drawn in grey.
    starred
        Condition -> whether a group's value has a star.
    """
    values_of = {name: list(map(_known, values)) for name, values in series.items()}
    digits = _digits([value for value in chain.from_iterable(values_of.values()) if value is not None])
    group_height = 0.8 / len(series)

    def fill(figure: Figure) -> None:
        axes = figure.subplots()
        diamonds: list[tuple[float, float]] = []
        if bands:
            widths = [2 * band for band in bands]
            lefts = [-band for band in bands]
            axes.barh(range(len(labels)), widths, left=lefts, color=GREY, label="p ≥ .05")
        bar_height = group_height / 2 if bands else group_height
        for index, (name, values) in enumerate(values_of.items()):
            offset = (index - (len(values_of) - 1) / 2) * group_height
            rows = [row + offset for row in range(len(values))]
            colour, hatch = SERIES[index % len(SERIES)]
            look: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "white", "label": name}
            axes.barh(rows, [value or 0.0 for value in values], height=bar_height, **look)
            if ends:
                low, high = (np.array(side[name], dtype=np.float64) for side in ends)
                axes.hlines(rows, low, high, color="black", linewidth=1)
            stars = (starred or {}).get(name, [False] * len(rows))
            _write_values(axes, rows, [_shown(value, digits) for value in values], stars)
            for value, row in zip((published or {}).get(name, ()), rows, strict=False):
                position = _known(value)
                if position is not None:
                    diamonds.append((position, row))
        if diamonds:
            mark: dict[str, Any] = {"color": PRINTED, "markerfacecolor": "white", "label": marked}
            axes.plot(*zip(*diamonds, strict=True), "d", **mark)
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_yticks(range(len(labels)), labels, fontsize=6 if bands else None)
        axes.set(ylim=(len(labels) - 0.5, -0.5), xlabel=axis)
        if len(series) > 1 or diamonds or bands:
            figure.legend(loc="outside upper right", ncols=4)

    most_breaks = max(label.count("\n") for label in labels)
    lines_a_group = max(len(series) / 2, 1 + most_breaks / 2)
    save(path, (WIDTH, 1.0 + 0.28 * len(labels) * lines_a_group), fill)


def _write_values(axes: Axes, rows: Sequence[float], texts: Sequence[str], stars: Sequence[bool]) -> None:
    """Write the values of bars in a column of their own, where no diamond and no bar hides them."""
    for row, text, has_star in zip(rows, texts, stars, strict=True):
        shown = f"{text} *" if has_star else text
        axes.text(1.01, row, shown, transform=axes.get_yaxis_transform(), va="center", fontsize=7)


def _known(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _digits(values: Sequence[float]) -> int:
    """Count the decimals of all values: three significant digits of the largest."""
    largest = max(map(abs, values), default=0.0)
    return 2 if largest in {0.0, 1.0} else max(0, 2 - math.floor(math.log10(largest)))


def _shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def draw_stacks(panels: Mapping[str, Mapping[str, Mapping[str, float]]], axis: str, path: Path) -> None:
    """Draw panels of stacked bars, and in each part the share that it has, if there is room.

    Parameters
    ----------
    panels
        Title -> label of a bar -> part -> its share; the bars of a panel have the same parts.
    axis
        What the bars measure.
    path
        A .pdf, .png or .svg file.
    """

    def fill(figure: Figure) -> None:
        heights = [1 + len(bars) for bars in panels.values()]
        every = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
        for axes, (title, bars) in zip(every, panels.items(), strict=True):
            table = pd.DataFrame(bars).T
            lefts = table.cumsum(axis=1).shift(axis=1, fill_value=0.0)
            for part, colour in zip(table, PARTS, strict=False):
                look = {"left": lefts[part], "color": colour, "edgecolor": "white", "label": part}
                drawn = axes.barh(table.index, table[part], **look)
                shown = [f"{share:.0%}" if share >= ROOM else "" for share in table[part]]
                axes.bar_label(drawn, shown, label_type="center", fontsize=7)
            axes.set_title(title, loc="left", fontsize=8)
            axes.set(xlim=(0, 1), xlabel=axis)
            axes.invert_yaxis()
            axes.legend(loc="upper left", bbox_to_anchor=(1, 1))

    save(path, (WIDTH, 1.0 + 0.5 * sum(map(len, panels.values()))), fill)


def draw_timelines(
    rows: Mapping[str, Sequence[tuple[float, float, str]]], shades: Mapping[str, str], path: Path
) -> None:
    """Draw timelines one below the other.

    Parameters
    ----------
    rows
        Name -> start and end of each span in minutes, and what it is.
    shades
        What a span may be -> its colour.
    path
        A .pdf, .png or .svg file.
    """

    def fill(figure: Figure) -> None:
        axes = figure.subplots()
        edge: dict[str, Any] = {"edgecolor": "black", "linewidth": 0.3}
        for place, spans in enumerate(rows.values()):
            lengths = [(start, end - start) for start, end, _ in spans]
            axes.broken_barh(
                lengths, (place - 0.32, 0.64), facecolors=[shades[label] for *_, label in spans], **edge
            )
        axes.set_yticks(range(len(rows)), list(rows))
        axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel="minutes")
        keys = [Patch(facecolor=shade, label=label, **edge) for label, shade in shades.items()]
        figure.legend(handles=keys, loc="outside upper center", ncols=len(keys))

    save(path, (WIDTH, 0.9 + 0.42 * len(rows)), fill)


def draw_tree(
    tree: DecisionTreeClassifier, features: Sequence[str], classes: Sequence[str], n_levels: int, path: Path
) -> None:
    """Draw the first levels of a decision tree: a node's colour is that of the class most of its clips have.

    Parameters
    ----------
    tree
        Fitted.
    features, classes
        Their names.
    n_levels
        How many levels are drawn.
    path
        A .pdf, .png or .svg file.
    """

    def fill(figure: Figure) -> None:
        look: dict[str, Any] = {"filled": True, "rounded": True, "impurity": False, "fontsize": 5}
        names = [name.replace(" of ", "\nof ") for name in features]
        look |= {"feature_names": names, "class_names": classes, "max_depth": n_levels - 1}
        plot_tree(tree, ax=figure.subplots(), **look)

    save(path, (WIDTH, 0.5 + n_levels), fill)


@dataclass(frozen=True, eq=False)
class Panel:
    """A picture uint8 [H, W, 3], a map [h, w] over it or alone, and the texts above and below."""

    picture: NDArray[np.uint8] | None = None
    saliency: NDArray[np.float32] | None = None
    title: str = ""
    text: str = ""


def draw_panels(
    columns: Sequence[Sequence[Panel]], size: tuple[float, float], path: Path, scale: str = ""
) -> None:
    """Draw columns of panels, their maps in one scale of colours, of which `scale` names the bar.

    Parameters
    ----------
    size
        Of the figure, in inches.
    path
        A .pdf, .png or .svg file.
    """
    maps = [panel.saliency for column in columns for panel in column if panel.saliency is not None]
    top = max([1e-30, *(float(axis.max()) for axis in maps)]) if scale else None

    def fill(figure: Figure) -> None:
        axes = figure.subplots(max(map(len, columns)), len(columns), squeeze=False)
        for axis in axes.flat:
            axis.set_axis_off()
        for place, column in enumerate(columns):
            for row, panel in enumerate(column):
                shown = _draw_panel(axes[row, place], panel, top)
        if scale:
            figure.colorbar(shown, ax=axes, shrink=0.8, label=scale)

    save(path, size, fill)


def _draw_panel(axes: Axes, panel: Panel, top: float | None) -> Any:
    shown: Any = None
    height, width = (0, 0) if panel.picture is None else panel.picture.shape[:2]
    extent = (0, width, height, 0) if panel.picture is not None else None
    if panel.picture is not None:
        axes.imshow(panel.picture)
    if panel.saliency is not None:
        look: dict[str, Any] = (
            {"cmap": "jet", "alpha": 0.45, "extent": extent} if extent else {"cmap": "viridis"}
        )
        shown = axes.imshow(panel.saliency, vmin=0 if top else None, vmax=top, **look)
    axes.set_title(panel.title, fontsize=8)
    below: Any = {"transform": axes.transAxes, "ha": "center", "va": "top", "fontsize": 6}
    axes.text(0.5, -0.03, panel.text.replace("$", r"\$"), **below)
    return shown


def find_pictures(images: Sequence[str], manifest: Path) -> dict[str, Path]:
    """Find the picture of every image, as a manifest of stills names them.

    Raises
    ------
    AuditError
        An image has none.
    """
    listed = read_manifest(manifest)
    files = {clip.clip_id: listed.video_path(clip) for clip in listed}
    pictures = {image: path for image in images if (path := files.get(image)) and path.is_file()}
    if missing := [image for image in images if image not in pictures]:
        raise AuditError(f"{manifest}: no picture of {missing[0]} that is there")
    return pictures


def read_picture(path: Path, most: int | None = None) -> NDArray[np.uint8]:
    """Read a picture as an extraction does, uint8 [H, W, 3], its longest side at `most` pixels.

    Raises
    ------
    VideoError
        It is none, or damaged.
    """
    picture: NDArray[np.uint8] = read_frames(path, uniform(1), strict=True).images[0]
    if most is None:
        return picture
    image = Image.fromarray(picture)
    image.thumbnail((most, most))
    return np.asarray(image)


def middle_square(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Cut the square in the middle of a picture, which the networks see."""
    side = min(picture.shape[:2])
    y, x = ((length - side) // 2 for length in picture.shape[:2])
    return picture[y : y + side, x : x + side]
