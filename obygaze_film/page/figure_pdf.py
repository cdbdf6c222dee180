"""Write the figure of a film as PDF: the elements of its SVG are drawn by matplotlib, with embedded fonts."""

import io
import re
import warnings
from base64 import b64decode
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from obygaze_models.report import asset

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection

POINTS: Final = 0.75
"""Points (1/72 inch) per unit of a figure. A unit is a pixel of CSS, 1/96 inch."""

POINTS_PER_INCH: Final = 72

FONT_SIZE: Final = 12
"""Size of texts, in units."""

NO_DATE: Final = {"CreationDate": None, "Creator": None, "Producer": None}
"""Metadata that matplotlib leaves out, so that equal figures have equal bytes."""

ALIGNMENTS: Final = {"c-end": "right", "c-middle": "center"}
"""Class of a text -> its alignment to its place; texts of other classes begin there."""

NUMBER: Final = re.compile(r"-?[\d.]+")


class Viewport(NamedTuple):
    """The part of a figure that a nested SVG fills, and how the SVG's own coordinates are scaled to it.

    Attributes
    ----------
    left, top, width, height : float
        The part, in units of the figure.
    box_left : float
        Lowest x of the SVG's own coordinates (`viewBox`); their lowest y is 0.
    scale_x, scale_y : float
        Units of the figure per unit of the SVG's own coordinates.
    """

    left: float
    top: float
    width: float
    height: float
    box_left: float
    scale_x: float
    scale_y: float


def can_write_pdf() -> bool:
    """Whether matplotlib is installed (`obygaze[figures]`)."""
    return find_spec("matplotlib") is not None


def figure_pdf(svg: str) -> bytes:
    """Convert a figure of a film (`figures.film_figure`) to a PDF of the same size, with matplotlib."""
    from matplotlib import rc_context  # noqa: PLC0415 - obygaze[figures], and slow
    from matplotlib.figure import Figure  # noqa: PLC0415 - obygaze[figures], and slow

    root = ET.fromstring(svg)  # noqa: S314 - we wrote it ourselves
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    whole_figure = Viewport(
        left=0.0, top=0.0, width=width, height=height, box_left=0.0, scale_x=1.0, scale_y=1.0
    )
    pdf = io.BytesIO()
    with rc_context({"pdf.fonttype": 42}), warnings.catch_warnings():  # 42: TrueType, embedded as text
        warnings.simplefilter("ignore")  # a sign that the font lacks is drawn as a box
        figure = Figure(figsize=(width * POINTS / POINTS_PER_INCH, height * POINTS / POINTS_PER_INCH))
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set(xlim=(0.0, width), ylim=(height, 0.0))  # y points down, as in SVG
        axes.set_axis_off()
        _draw(root, axes, whole_figure)
        figure.savefig(pdf, format="pdf", metadata=NO_DATE)
    return pdf.getvalue()


def _draw(parent: ET.Element, axes: "Axes", viewport: Viewport) -> None:
    """Draw the elements of an SVG with matplotlib, each above those before it; nested SVGs by recursion.

    `viewport` is the part of the figure that they are in. Paths are placed in it and cut off at its edges.
    Texts, rectangles and images are already in the coordinates of the whole figure.
    """
    for element in parent:
        name = element.tag.rpartition("}")[2]
        if name == "svg":
            _draw(element, axes, _viewport(element))
        elif name == "text":
            _draw_text(element, axes)
        elif name == "image":
            _draw_image(element, axes)
        elif name == "rect":
            _draw_path([_outline_of_rect(element)], element.get("class", ""), axes, viewport)
        elif name == "path":
            lines = [_to_figure(line, viewport) for line in path_lines(element.get("d", ""))]
            _draw_path(lines, element.get("class", ""), axes, viewport)


def _outline_of_rect(element: ET.Element) -> NDArray[np.float64]:
    """Return the corners of a rectangle as a closed line [5, 2], whose last point is the first one again."""
    left, top, width, height = _numbers(element, "x", "y", "width", "height")
    right = left + width
    bottom = top + height
    return np.array([(left, top), (right, top), (right, bottom), (left, bottom), (left, top)])


def _numbers(element: ET.Element, *names: str) -> list[float]:
    """Read attributes of an element as numbers; one that is missing is 0."""
    return [float(element.get(name, "0")) for name in names]


def _viewport(element: ET.Element) -> Viewport:
    """Read which part of the figure a nested SVG fills, and how its own coordinates are scaled to it.

    The `viewBox` of our figures' SVGs begins at y = 0.
    """
    left, top, width, height = _numbers(element, "x", "y", "width", "height")
    box_left, _, box_width, box_height = map(float, element.attrib["viewBox"].split())
    return Viewport(
        left,
        top,
        width,
        height,
        box_left=box_left,
        scale_x=width / box_width,
        scale_y=height / box_height,
    )


def _to_figure(line: NDArray[np.float64], viewport: Viewport) -> NDArray[np.float64]:
    """Convert the points [P, 2] of a line from a nested SVG's own coordinates to those of the figure."""
    x = viewport.left + (line[:, 0] - viewport.box_left) * viewport.scale_x
    y = viewport.top + line[:, 1] * viewport.scale_y
    return np.column_stack([x, y])


def path_lines(path: str) -> list[NDArray[np.float64]]:
    """Read the lines of an SVG path, each as its points [P, 2] of x and y.

    A path is a series of letters with numbers. M begins a line at a point x y, L draws a straight line to
    one, H and V draw a horizontal or vertical line to an x or a y, and Z draws one back to the first point.
    After a small letter, coordinates are relative to the last point. One letter is followed by one point.

    Examples
    --------
    >>> from obygaze_film.page.figure_pdf import path_lines
    >>> [line.tolist() for line in path_lines("M0 5H20v3")]
    [[[0.0, 5.0], [20.0, 5.0], [20.0, 8.0]]]
    >>> [line.tolist() for line in path_lines("M0 5H20Z")]
    [[[0.0, 5.0], [20.0, 5.0], [0.0, 5.0]]]
    """
    lines: list[list[tuple[float, float]]] = []
    x = y = 0.0  # the last point
    for letter, text in re.findall(r"([MmLlHhVvZz])([^MmLlHhVvZz]*)", path):
        numbers = [float(number) for number in NUMBER.findall(text)]
        is_relative = letter.islower()
        origin_x, origin_y = (x, y) if is_relative else (0.0, 0.0)  # coordinates count from there
        command = letter.upper()
        match command:
            case "M" | "L":
                point_x, point_y = numbers
                x = point_x + origin_x
                y = point_y + origin_y
            case "H":
                x = numbers[0] + origin_x
            case "V":
                y = numbers[0] + origin_y
            case _:  # Z: back to the line's first point
                x, y = lines[-1][0]
        if command == "M":  # a new line begins
            lines.append([])
        lines[-1].append((x, y))  # Z too adds a point, the first one again
    return [np.array(line) for line in lines]


def _draw_path(lines: list[NDArray[np.float64]], css_class: str, axes: "Axes", viewport: Viewport) -> None:
    """Draw lines [P, 2], or fill what they enclose, in the style of a class.

    The points are in units of the figure; what is outside of `viewport` is cut off.
    """
    from matplotlib.collections import PolyCollection  # noqa: PLC0415 - slow
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - slow

    style = styles()[css_class]
    is_filled = style.get("fill", "none") != "none"
    collection: LineCollection | PolyCollection
    if is_filled:  # what is filled in a film's figure has no stroke
        collection = PolyCollection(lines, facecolors=style["fill"], edgecolors="none")
    else:
        collection = _strokes(lines, style, viewport)
    collection.set_zorder(len(axes.get_children()))  # above what was drawn before
    axes.add_collection(collection, autolim=False)
    clip = Rectangle((viewport.left, viewport.top), viewport.width, viewport.height, transform=axes.transData)
    collection.set_clip_path(clip)


def _strokes(
    lines: list[NDArray[np.float64]], style: Mapping[str, str], viewport: Viewport
) -> "LineCollection":
    """Make the strokes of lines [P, 2] for matplotlib, with the width, colour and dashes of a style.

    `style` has the CSS properties of the lines, whose lengths are in units of the figure: 3/4 point. Dashes
    are multiples of the line's width in matplotlib, and lengths in CSS.
    """
    from matplotlib.collections import LineCollection  # noqa: PLC0415 - slow

    # Strokes are scaled with the coordinates, unless the style says "vector-effect: non-scaling-stroke".
    # Those that are scaled are horizontal, so that their width is scaled as y.
    scale = 1.0 if "vector-effect" in style else viewport.scale_y
    width_points = float(style.get("stroke-width", "1")) * scale * POINTS
    strokes = LineCollection(lines, colors=style["stroke"], linewidths=width_points, capstyle="butt")
    dash_units = [float(length) for length in style.get("stroke-dasharray", "").split()]
    if dash_units:
        dashes_in_widths = [length * POINTS / width_points for length in dash_units]
        strokes.set_linestyle((0.0, dashes_in_widths))  # 0: the first dash begins at the line's beginning
    return strokes


def _draw_text(element: ET.Element, axes: "Axes") -> None:
    """Draw a text with matplotlib at its place, which is on its baseline, above what was drawn before.

    Its class says whether it ends, is centred or begins there.
    """
    x, y = _numbers(element, "x", "y")
    alignment = ALIGNMENTS.get(element.get("class", ""), "left")
    text = axes.text(x, y, element.text or "", ha=alignment, va="baseline", fontsize=FONT_SIZE * POINTS)
    # A film's title may hold dollar signs, between which matplotlib would read a formula.
    text.set(color=styles()["c-figure text"]["fill"], zorder=len(axes.get_children()), parse_math=False)


def _draw_image(element: ET.Element, axes: "Axes") -> None:
    """Draw a still, which is in the SVG as a data URL, with matplotlib, above what was drawn before."""
    from PIL import Image  # noqa: PLC0415 - comes with matplotlib

    left, top, width, height = _numbers(element, "x", "y", "width", "height")
    _, _, base64_data = element.attrib["href"].partition(",")  # "data:image/png;base64,..."
    with Image.open(io.BytesIO(b64decode(base64_data))) as picture:
        extent = (left, left + width, top + height, top)  # left, right, bottom, top: y points down
        image = axes.imshow(np.asarray(picture.convert("RGB")), extent=extent, aspect="auto")
    image.set_zorder(len(axes.get_children()))


def _without_comments(css: str) -> str:
    """Remove the comments from a style sheet; one that is never closed goes on to the end.

    Not by a pattern, which would search each of many comments that are never closed to the end.
    """
    before, *parts = css.split("/*")
    kept = before
    for part in parts:
        _comment, _end, after = part.partition("*/")
        kept += after
    return kept


@cache
def styles() -> Mapping[str, Mapping[str, Any]]:
    """Read the style of each class of `figures.css`: name of a property -> its value.

    Only the subset of CSS in that sheet is read: blocks such as `.c-mean, .c-trend { stroke: var(--c-ink);
    fill: none }`. What follows `@media` is for screens alone, and left out.
    """
    css = _without_comments(asset("figures.css", "obygaze_film.page"))
    blocks = _css_blocks(css.split("@media")[0])
    colours = _named_colours(blocks)
    style_of_class: dict[str, dict[str, str]] = {}
    for block in blocks:
        style = {name: colours.get(value, value) for name, value in block.properties.items()}
        for css_class in block.classes:
            style_of_class.setdefault(css_class, {}).update(style)
    return style_of_class


class _CssBlock(NamedTuple):
    """A block of CSS: the classes that it is for, and the value of each property."""

    classes: list[str]
    properties: dict[str, str]


def _css_blocks(css: str) -> list[_CssBlock]:
    """Read the blocks of a style sheet, such as `.c-mean, .c-trend { stroke: black; fill: none }`."""
    blocks = []
    for text in css.split("}")[:-1]:  # nothing follows the last one
        selectors, body = text.split("{")
        classes = [selector.strip().removeprefix(".") for selector in selectors.split(",")]
        blocks.append(_CssBlock(classes, _properties(body)))
    return blocks


def _named_colours(blocks: Sequence[_CssBlock]) -> dict[str, str]:
    """Collect the colours that blocks define, by the text that refers to them, such as "var(--c-ink)"."""
    colours = {}
    for block in blocks:
        for name, value in block.properties.items():
            if name.startswith("--"):
                colours[f"var({name})"] = value
    return colours


def _properties(body: str) -> dict[str, str]:
    """Read the declarations of a block of CSS, such as `stroke: black; fill: none`, as property -> value.

    A semicolon at the end gives an empty property, which nobody reads.
    """
    properties = {}
    for declaration in body.split(";"):
        name, _, value = declaration.partition(":")
        properties[name.strip()] = value.strip()
    return properties
