"""Draw the studies' figures: bars, stacked bars, timelines, decision trees, pictures with maps.

Drawing needs no screen, and the same numbers give files of the same bytes.
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
from obygaze_features.text import percentage
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
"""Metadata that matplotlib would write (version, date) and that would change the bytes: left out."""

OUR_COLOUR = "#4477aa"
"""Colour of our values."""

GREY = "#dddddd"
"""Colour of the background."""

PUBLISHED_COLOUR = "#ee6677"
"""Colour of published values."""

SERIES_LOOKS = (
    (OUR_COLOUR, ""),
    ("#ccbb44", "////"),
    ("#228833", "...."),
    ("#aa3377", "xxxx"),
    ("#66ccee", "||||"),
)
"""Colour and hatching of each condition, distinct in print without colours too."""

STACK_COLOURS = ("#77aadd", "#99ddff", "#44bb99", "#bbcc33", "#eedd88", "#ee8866", "#ffaabb", "#dddddd")
"""Colours of a stack, distinct for readers who do not see red or green; black is readable on all."""

MIN_SHARE_WITH_NUMBER = 0.035
"""Smallest share of a stacked bar that is wide enough for its number."""

PICTURE_PIXELS = 640
"""Longest side of a picture on a sheet of several."""

_GROUP_HEIGHT = 0.8
"""Part of the height of its row that the bars of a group take; the rest separates the groups."""

_LABEL_SIZE_BESIDE_BANDS = 6
"""Size in points of the groups' labels where chance bands are drawn: these labels have several lines."""

_MIN_END_OF_SCALE = 1e-30
"""Smallest upper end of a scale of colours: above 0, so that a scale exists where all maps are empty."""

Values = Mapping[str, Sequence[float | None]]


def save(path: Path, size: tuple[float, float], draw: Callable[[Figure], None]) -> None:
    """Draw a figure and save it as .pdf, .png (300 dpi) or .svg.

    If the path has none of these endings, the figure is saved in all three formats. It is laid out once for
    all of them, because the layout takes as long as the drawing. The files hold no date, version or random
    ids.

    Parameters
    ----------
    path
        File to write, with or without an ending.
    size
        Width and height in inches.
    draw
        Function that draws into the empty figure.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with as_file(_STYLE) as style, rc_context(fname=style):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        if path.suffix.lower() in _METADATA:
            image_files = [path]
        else:
            image_files = [path.with_name(path.name + suffix) for suffix in sorted(_METADATA)]
        for image_file in image_files:
            figure.savefig(image_file, dpi=300, metadata=_METADATA[image_file.suffix.lower()])
            # Removing the engine keeps the layout for the next format. The engine "none" would keep it too,
            # but matplotlib draws a figure twice if it has any engine.
            figure.set_layout_engine(None)


def draw_bars(
    labels: Sequence[str],
    series: Values,
    axis: str,
    path: Path,
    *,
    published: Values | None = None,
    published_label: str = "published",
    intervals: tuple[Values, Values] | None = None,
    chance_bands: Sequence[float] = (),
    starred: Mapping[str, Sequence[bool]] | None = None,
) -> None:
    """Draw groups of horizontal bars with their values to the right; a dash stands for None and NaN.

    Parameters
    ----------
    labels
        Labels of the groups, from top to bottom.
    series
        Condition -> one value per group.
    axis
        Label of the axis: what the bars measure.
    path
        A .pdf, .png or .svg file.
    published
        Condition -> one value per group to compare with, marked by a diamond; None or NaN marks none.
    published_label
        Label of the diamonds in the legend.
    intervals
        Lower and upper ends of the values' intervals, each as `series`, drawn as lines.
    chance_bands
        For each group, how far from 0 a value is not significant, drawn in grey.
    starred
        Condition -> for each group, whether its value has a star.
    """
    n_conditions = len(series)
    values_of_condition = {}
    for condition, values in series.items():
        values_of_condition[condition] = [_none_if_nan(value) for value in values]
    all_values = chain.from_iterable(values_of_condition.values())
    n_decimals = _n_decimals([value for value in all_values if value is not None])
    step_height = _GROUP_HEIGHT / n_conditions  # from one bar of a group to the next
    # Before a band a bar is thinner, so that the band can be seen.
    bar_height = step_height / 2 if chance_bands else step_height

    def fill(figure: Figure) -> None:
        """Draw the bars, and what belongs to them, into an empty figure."""
        axes = figure.subplots()
        if chance_bands:
            _draw_bands(axes, chance_bands)

        diamonds: list[tuple[float, float]] = []
        for index, (condition, values) in enumerate(values_of_condition.items()):
            rows = _rows_of_condition(index, n_conditions, len(values), step_height)
            lengths = [value or 0.0 for value in values]
            axes.barh(rows, lengths, height=bar_height, **_look_of_condition(condition, index))
            if intervals:
                lows, highs = intervals
                _draw_intervals(axes, rows, lows[condition], highs[condition])

            texts = [_format_value(value, n_decimals) for value in values]
            stars = (starred or {}).get(condition, [False] * len(rows))
            _write_values(axes, rows, texts, stars)

            published_values = (published or {}).get(condition, ())
            diamonds += _places_of_published(published_values, rows)
        if diamonds:
            _draw_diamonds(axes, diamonds, published_label)

        axes.axvline(0, color="black", linewidth=0.8)
        label_size = _LABEL_SIZE_BESIDE_BANDS if chance_bands else None
        axes.set_yticks(range(len(labels)), labels, fontsize=label_size)
        axes.set(ylim=_first_row_on_top(len(labels)), xlabel=axis)
        if n_conditions > 1 or diamonds or chance_bands:
            figure.legend(loc="outside upper right", ncols=4)

    save(path, (WIDTH, _height_of_bars(labels, n_conditions)), fill)


def _height_of_bars(labels: Sequence[str], n_conditions: int) -> float:
    """Compute the height in inches of a figure of bars: each group has room for its bars and its label.

    Parameters
    ----------
    labels
        Label of each group.
    n_conditions
        Number of bars of a group.
    """
    inches_of_axis_and_legend = 1.0
    inches_of_simple_groups = 0.28 * len(labels)  # if each had one bar, and a label of one line
    # How many times higher a group is than a simple one; a further bar, or line of a label, takes half of it.
    max_line_breaks = max(label.count("\n") for label in labels)
    factor_of_bars = n_conditions / 2
    factor_of_label = 1 + max_line_breaks / 2
    return inches_of_axis_and_legend + inches_of_simple_groups * max(factor_of_bars, factor_of_label)


def _first_row_on_top(n_rows: int) -> tuple[float, float]:
    """Return the limits of a vertical axis on which rows 0 .. n_rows - 1 follow from top to bottom."""
    return n_rows - 0.5, -0.5


def _rows_of_condition(index: int, n_conditions: int, n_groups: int, step_height: float) -> list[float]:
    """Return the vertical position of the bar of a condition in each group.

    Group k lies at position k. Its bars lie around it, one condition below the other.

    Parameters
    ----------
    index
        Index of the condition.
    n_conditions
        Number of bars of a group.
    n_groups
        Number of groups.
    step_height
        Distance from one bar of a group to the next.
    """
    offset = (index - (n_conditions - 1) / 2) * step_height
    return [group + offset for group in range(n_groups)]


def _look_of_condition(condition: str, index: int) -> dict[str, Any]:
    """Return matplotlib's options for the bars of a condition: its name in the legend, and its looks.

    Colour and hatching follow from the index of the condition, so that all charts show the first one alike.
    """
    colour, hatch = SERIES_LOOKS[index % len(SERIES_LOOKS)]
    return {"color": colour, "hatch": hatch, "edgecolor": "white", "label": condition}


def _draw_bands(axes: Axes, bands: Sequence[float]) -> None:
    """Draw the grey band of each row, from -band to +band: values inside it are not significant."""
    widths = [2 * band for band in bands]
    lefts = [-band for band in bands]
    axes.barh(range(len(bands)), widths, left=lefts, color=GREY, label="p ≥ .05")


def _draw_intervals(
    axes: Axes, rows: Sequence[float], lows: Sequence[float | None], highs: Sequence[float | None]
) -> None:
    """Draw the interval of each bar as a line from its lower to its upper end; no line for None and NaN.

    `rows` are the vertical positions of the bars, and `lows` and `highs` the ends of their intervals.
    """
    axes.hlines(
        rows,
        np.array(lows, dtype=np.float64),
        np.array(highs, dtype=np.float64),
        color="black",
        linewidth=1,
    )


def _draw_diamonds(axes: Axes, positions: Sequence[tuple[float, float]], label: str) -> None:
    """Draw a diamond at each position (value, row); `label` names the diamonds in the legend."""
    values, rows = zip(*positions, strict=True)
    look: dict[str, Any] = {"color": PUBLISHED_COLOUR, "markerfacecolor": "white", "label": label}
    axes.plot(values, rows, "d", **look)


def _places_of_published(values: Sequence[float | None], rows: Sequence[float]) -> list[tuple[float, float]]:
    """Return where the diamond of each published value is drawn: at the value, in the row of its bar.

    A value that is not published (None or NaN) has no diamond. `values` has a value for each of the `rows`,
    or is empty if nothing is published of these bars.
    """
    if not len(values):
        return []
    places = []
    for published_value, row in zip(values, rows, strict=False):
        value = _none_if_nan(published_value)
        if value is not None:
            places.append((value, row))
    return places


def _write_values(axes: Axes, rows: Sequence[float], texts: Sequence[str], stars: Sequence[bool]) -> None:
    """Write the values of the bars in a column to the right of the axes, where nothing covers them.

    `rows` are the vertical positions of the bars, `texts` their values, and `stars` whether a star follows.
    """
    right_of_axes = 1.01  # in widths of the axes
    for row, text, has_star in zip(rows, texts, stars, strict=True):
        label = f"{text} *" if has_star else text
        axes.text(right_of_axes, row, label, transform=axes.get_yaxis_transform(), va="center", fontsize=7)


def _none_if_nan(value: float | None) -> float | None:
    """Return the value, or None if it is NaN."""
    if value is None or math.isnan(value):
        return None
    return value


def _n_decimals(values: Sequence[float]) -> int:
    """Return the number of decimals to show of all values, so that the largest has three significant digits.

    For example 1 if the largest is 12.34 (12.3), 3 if it is 0.1234 (0.123), and 0 from 100 on. It is 2 if the
    largest is exactly 0 or 1, since such values are usually shares.
    """
    largest = max((abs(value) for value in values), default=0.0)
    if largest in {0.0, 1.0}:
        return 2
    exponent = math.floor(math.log10(largest))  # of the first digit: 1 for 12.34, -1 for 0.1234
    return max(0, 2 - exponent)


def _format_value(value: float | None, digits: int) -> str:
    """Format a value with a number of decimals and a true minus sign; a dash for None."""
    if value is None:
        return "–"
    return f"{value:,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def draw_stacks(panels: Mapping[str, Mapping[str, Mapping[str, float]]], axis: str, path: Path) -> None:
    """Draw panels of stacked bars, with the share of each part written in it if there is room.

    Parameters
    ----------
    panels
        Title of a panel -> label of a bar -> part -> its share; the bars of a panel have the same parts.
    axis
        Label of the axis: what the bars measure.
    path
        A .pdf, .png or .svg file.
    """

    def fill(figure: Figure) -> None:
        """Draw the panels of stacked bars into an empty figure, one below the other."""
        heights = [1 + len(bars) for bars in panels.values()]  # a panel's bars, and room for its axis
        axes_of_panels = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
        for axes, (title, bars) in zip(axes_of_panels, panels.items(), strict=True):
            _fill_stacks(axes, bars)
            axes.set_title(title, loc="left", fontsize=8)
            axes.set(xlim=(0, 1), xlabel=axis)
            axes.invert_yaxis()  # the first bar on top
            axes.legend(loc="upper left", bbox_to_anchor=(1, 1))

    n_bars = sum(map(len, panels.values()))
    save(path, (WIDTH, 1.0 + 0.5 * n_bars), fill)


def _fill_stacks(axes: Axes, bars: Mapping[str, Mapping[str, float]]) -> None:
    """Draw the stacked bars of a panel: label of a bar -> part -> its share."""
    table = pd.DataFrame(bars).T  # a row for each bar, a column for each part
    # A part begins where the parts before it end.
    lefts = table.cumsum(axis=1).shift(axis=1, fill_value=0.0)
    for part, colour in zip(table, STACK_COLOURS, strict=False):  # there are more colours than parts
        drawn_bars = axes.barh(
            table.index, table[part], left=lefts[part], color=colour, edgecolor="white", label=str(part)
        )
        shares = [f"{percentage(share)}%" if share >= MIN_SHARE_WITH_NUMBER else "" for share in table[part]]
        axes.bar_label(drawn_bars, shares, label_type="center", fontsize=7)


def draw_timelines(
    rows: Mapping[str, Sequence[tuple[float, float, str]]], shades: Mapping[str, str], path: Path
) -> None:
    """Draw timelines one below the other.

    Parameters
    ----------
    rows
        Name of a timeline -> start, end (in minutes) and label of each span.
    shades
        Label of a span -> its colour.
    path
        A .pdf, .png or .svg file.
    """

    def fill(figure: Figure) -> None:
        """Draw a row of coloured spans for each name into an empty figure."""
        axes = figure.subplots()
        edge: dict[str, Any] = {"edgecolor": "black", "linewidth": 0.3}
        half_height = 0.32  # of a timeline, whose neighbours are 1 away
        for row, spans in enumerate(rows.values()):
            starts_and_lengths = [(start, end - start) for start, end, _ in spans]
            colours = [shades[label] for *_, label in spans]
            bottom_and_height = (row - half_height, 2 * half_height)
            axes.broken_barh(starts_and_lengths, bottom_and_height, facecolors=colours, **edge)
        axes.set_yticks(range(len(rows)), list(rows))
        axes.set(ylim=_first_row_on_top(len(rows)), xlabel="minutes")
        keys = [Patch(facecolor=shade, label=label, **edge) for label, shade in shades.items()]
        figure.legend(handles=keys, loc="outside upper center", ncols=len(keys))

    save(path, (WIDTH, 0.9 + 0.42 * len(rows)), fill)


def draw_tree(
    tree: DecisionTreeClassifier, features: Sequence[str], classes: Sequence[str], n_levels: int, path: Path
) -> None:
    """Draw the first levels of a decision tree; a node has the colour of its most frequent class.

    Parameters
    ----------
    tree
        The fitted tree.
    features, classes
        Names of the features and of the classes.
    n_levels
        Number of levels to draw.
    path
        A .pdf, .png or .svg file.
    """

    def fill(figure: Figure) -> None:
        """Draw the decision tree into an empty figure."""
        # Long names such as "maximum of Look" are broken in two lines, to fit into the boxes of the nodes.
        names = [name.replace(" of ", "\nof ") for name in features]
        plot_tree(
            tree,
            ax=figure.subplots(),
            max_depth=n_levels - 1,
            feature_names=names,
            class_names=classes,
            filled=True,
            rounded=True,
            impurity=False,
            fontsize=5,
        )

    save(path, (WIDTH, 0.5 + n_levels), fill)


@dataclass(frozen=True, eq=False)
class Panel:
    """A picture uint8 [H, W, 3], a map [h, w] over it or alone, and the texts above and below."""

    picture: NDArray[np.uint8] | None = None
    saliency: NDArray[np.float32] | None = None
    title: str = ""
    text: str = ""


def draw_panels(
    columns: Sequence[Sequence[Panel]], size: tuple[float, float], path: Path, scale_label: str = ""
) -> None:
    """Draw columns of panels.

    Parameters
    ----------
    columns
        The panels of each column, from top to bottom.
    size
        Width and height of the figure in inches.
    path
        A .pdf, .png or .svg file.
    scale_label
        With a label, all panels have a map, the maps share one scale of colours, and a bar beside the panels
        shows it with this label. Without, every map has its own scale.
    """
    shares_scale = bool(scale_label)
    end_of_scale = _end_of_shared_scale(columns) if shares_scale else None

    def fill(figure: Figure) -> None:
        """Draw the columns of panels into an empty figure, and the bar of the maps' scale."""
        all_axes = figure.subplots(max(map(len, columns)), len(columns), squeeze=False)
        for axes in all_axes.flat:
            axes.set_axis_off()
        drawn_maps = []
        for column_index, column in enumerate(columns):
            for row, panel in enumerate(column):
                drawn_maps.append(_draw_panel(all_axes[row, column_index], panel, end_of_scale))
        if shares_scale:
            # All maps have one scale, so the bar of any one is right for all.
            figure.colorbar(drawn_maps[-1], ax=all_axes, shrink=0.8, label=scale_label)

    save(path, size, fill)


def _end_of_shared_scale(columns: Sequence[Sequence[Panel]]) -> float:
    """Return the upper end of a scale of colours for the maps of all panels: their largest value."""
    panels = chain.from_iterable(columns)
    peaks = [float(panel.saliency.max()) for panel in panels if panel.saliency is not None]
    return max([_MIN_END_OF_SCALE, *peaks])


def _draw_panel(axes: Axes, panel: Panel, end_of_scale: float | None) -> Any:
    """Draw a panel: its picture, its map over it, title and text; return the drawn map, or None without one.

    Parameters
    ----------
    axes
        The axes to draw into, without ticks.
    panel
        What is drawn.
    end_of_scale
        Value at the upper end of a scale of colours from 0; None to scale the map by its own values.
    """
    if panel.picture is not None:
        axes.imshow(panel.picture)
    drawn_map = None
    if panel.saliency is not None:
        drawn_map = _draw_map(axes, panel.saliency, panel.picture, end_of_scale)
    axes.set_title(panel.title, fontsize=8)
    text = panel.text.replace("$", r"\$")  # matplotlib reads $ as mathematics
    below_axes: Any = {"transform": axes.transAxes, "ha": "center", "va": "top", "fontsize": 6}
    axes.text(0.5, -0.03, text, **below_axes)
    return drawn_map


def _draw_map(
    axes: Axes, saliency: NDArray[np.float32], picture: NDArray[np.uint8] | None, end_of_scale: float | None
) -> Any:
    """Draw a map over a picture, half transparent and stretched to its size, or alone; return the drawn map.

    Parameters
    ----------
    axes
        The axes to draw into.
    saliency
        The map, [h, w].
    picture
        The picture, [H, W, 3], which is drawn already; None if the map stands alone.
    end_of_scale
        Value at the upper end of a scale of colours from 0; None to scale the map by its own values.
    """
    look: dict[str, Any] = {"cmap": "viridis"}
    if picture is not None:
        height, width = picture.shape[:2]
        edges = (0, width, height, 0)  # left, right, bottom, top
        look = {"cmap": "jet", "alpha": 0.45, "extent": edges}
    if end_of_scale is not None:
        look |= {"vmin": 0, "vmax": end_of_scale}
    return axes.imshow(saliency, **look)


def find_pictures(images: Sequence[str], manifest: Path) -> dict[str, Path]:
    """Find the file of every image in a manifest of stills: image id -> path.

    Raises
    ------
    AuditError
        The manifest does not name the file of an image, or the file does not exist.
    """
    stills = read_manifest(manifest)
    files = {clip.clip_id: stills.video_path(clip) for clip in stills}
    pictures = {}
    for image in images:
        path = files.get(image)
        if path is None or not path.is_file():
            raise AuditError(f"{manifest}: no picture of {image} that is there")
        pictures[image] = path
    return pictures


def read_picture(path: Path, longest_side: int | None = None) -> NDArray[np.uint8]:
    """Read a picture, uint8 [H, W, 3], with the decoder that extractions use.

    Parameters
    ----------
    longest_side
        Pixels of the longest side, to which a larger picture is scaled down; None keeps its size.

    Raises
    ------
    VideoError
        The file is not a picture, or damaged.
    """
    # The decoder reads a picture as a video of one frame.
    frames = read_frames(path, uniform(1), strict=True)
    picture: NDArray[np.uint8] = frames.images[0]
    if longest_side is None:
        return picture
    image = Image.fromarray(picture)
    image.thumbnail((longest_side, longest_side))
    return np.asarray(image)


def middle_square(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Cut the square in the middle out of a picture [H, W, 3]: the part that the networks see."""
    height, width = picture.shape[:2]
    side = min(height, width)
    y = (height - side) // 2
    x = (width - side) // 2
    return picture[y : y + side, x : x + side]
