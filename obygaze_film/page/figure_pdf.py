"""Write the figure of a film as PDF: the elements of its SVG are drawn by matplotlib, with embedded fonts."""

import io
import re
import warnings
from base64 import b64decode
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from obygaze_models.report import asset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS: Final = 0.75
"""Points of a unit of a figure: units are those of screens, of which 96 are an inch."""

NO_DATE: Final = {"CreationDate": None, "Creator": None, "Producer": None}
"""Metadata that matplotlib leaves out, so that equal figures have equal bytes."""

ANCHORS: Final = {"c-end": "right", "c-middle": "center"}
"""Class of a text -> where its place is; on the left of others."""

NUMBER: Final = re.compile(r"-?[\d.]+")


class Viewport(NamedTuple):
    """The part of a figure that a nested SVG fills, and what its box is scaled by; in units of the figure."""

    left: float
    top: float
    width: float
    high: float
    box_left: float
    scale_x: float
    scale_y: float


def can_write_pdf() -> bool:
    """Whether matplotlib is installed (`obygaze[figures]`)."""
    return find_spec("matplotlib") is not None


def figure_pdf(svg: str) -> bytes:
    """Convert a figure of a film (`figures.film_figure`) to a PDF of the same size, by `obygaze[figures]`."""
    from matplotlib import rc_context  # noqa: PLC0415 - obygaze[figures], and slow
    from matplotlib.figure import Figure  # noqa: PLC0415 - obygaze[figures], and slow

    root = ET.fromstring(svg)  # noqa: S314 - ours
    width, high = (float(root.attrib[name]) for name in ("width", "height"))
    whole = Viewport(0.0, 0.0, width, high, 0.0, 1.0, 1.0)
    pdf = io.BytesIO()
    with rc_context({"pdf.fonttype": 42}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a sign that the font lacks is drawn as a box
        figure = Figure(figsize=(width * POINTS / 72, high * POINTS / 72))
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set(xlim=(0.0, width), ylim=(high, 0.0))
        axes.set_axis_off()
        _draw(root, axes, whole)
        figure.savefig(pdf, format="pdf", metadata=NO_DATE)
    return pdf.getvalue()


def _draw(parent: ET.Element, axes: "Axes", viewport: Viewport) -> None:
    """Draw the elements of an SVG, each above those before it."""
    for element in parent:
        name = element.tag.rpartition("}")[2]
        if name == "svg":
            _draw(element, axes, _viewport(element))
        elif name == "text":
            _draw_text(element, axes)
        elif name == "image":
            _draw_image(element, axes)
        elif name == "rect":
            left, top, width, high = _numbers(element, "x", "y", "width", "height")
            corners = [(left, top), (left + width, top), (left + width, top + high), (left, top + high)]
            _draw_path([np.array([*corners, corners[0]])], element.get("class", ""), axes, viewport)
        elif name == "path":
            lines = path_lines(element.get("d", ""))
            placed = [_placed(line, viewport) for line in lines]
            _draw_path(placed, element.get("class", ""), axes, viewport)


def _numbers(element: ET.Element, *names: str) -> list[float]:
    return [float(element.get(name, "0")) for name in names]


def _viewport(element: ET.Element) -> Viewport:
    """Read where a nested SVG is, and how its box is stretched over it."""
    left, top, width, high = _numbers(element, "x", "y", "width", "height")
    box_left, _, box_width, box_high = map(float, element.attrib["viewBox"].split())
    return Viewport(left, top, width, high, box_left, width / box_width, high / box_high)


def _placed(line: NDArray[np.float64], viewport: Viewport) -> NDArray[np.float64]:
    """Place the points [P, 2] of a line of a nested SVG in the figure."""
    x = viewport.left + (line[:, 0] - viewport.box_left) * viewport.scale_x
    y = viewport.top + line[:, 1] * viewport.scale_y
    return np.column_stack([x, y])


def path_lines(path: str) -> list[NDArray[np.float64]]:
    """Read the lines of a path, each as its points [P, 2]: all commands of straight lines, on either scale.

    Examples
    --------
    >>> from obygaze_film.page.figure_pdf import path_lines
    >>> [line.tolist() for line in path_lines("M0 5H20v3")]
    [[[0.0, 5.0], [20.0, 5.0], [20.0, 8.0]]]
    """
    lines: list[list[tuple[float, float]]] = []
    x = y = 0.0
    for command, text in re.findall(r"([MmLlHhVvZz])([^MmLlHhVvZz]*)", path):
        numbers = [float(number) for number in NUMBER.findall(text)]
        is_relative = command.islower()
        match command.upper():
            case "M" | "L":
                x, y = (numbers[0] + x, numbers[1] + y) if is_relative else numbers
            case "H":
                x = numbers[0] + x if is_relative else numbers[0]
            case "V":
                y = numbers[0] + y if is_relative else numbers[0]
            case _:
                x, y = lines[-1][0]
        if command in "Mm":
            lines.append([])
        lines[-1].append((x, y))
    return [np.array(line) for line in lines]


def _draw_path(lines: list[NDArray[np.float64]], name: str, axes: "Axes", viewport: Viewport) -> None:
    """Draw lines, or fill what they enclose, in the style of a class, inside a part of the figure."""
    from matplotlib.collections import LineCollection, PolyCollection  # noqa: PLC0415 - slow
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - slow

    style = styles()[name]
    drawn: LineCollection | PolyCollection
    if style.get("fill", "none") != "none":
        drawn = PolyCollection(lines, facecolors=style["fill"], edgecolors="none")
    else:
        scale = 1.0 if "vector-effect" in style else viewport.scale_y
        width = float(style.get("stroke-width", "1")) * scale * POINTS
        dashes = [float(length) for length in style.get("stroke-dasharray", "").split()]
        drawn = LineCollection(lines, colors=style["stroke"], linewidths=width, capstyle="butt")
        if dashes:
            drawn.set_linestyle((0.0, [length * POINTS / width for length in dashes]))
    drawn.set_zorder(len(axes.get_children()))  # above what was drawn before
    axes.add_collection(drawn, autolim=False)
    clip = Rectangle((viewport.left, viewport.top), viewport.width, viewport.high, transform=axes.transData)
    drawn.set_clip_path(clip)


def _draw_text(element: ET.Element, axes: "Axes") -> None:
    x, y = _numbers(element, "x", "y")
    anchor = ANCHORS.get(element.get("class", ""), "left")
    # Nothing of a title is a formula.
    text = axes.text(x, y, element.text or "", ha=anchor, va="baseline", fontsize=12 * POINTS)
    text.set(color=styles()["c-figure text"]["fill"], zorder=len(axes.get_children()), parse_math=False)


def _draw_image(element: ET.Element, axes: "Axes") -> None:
    """Draw a still, which is in the SVG as a data address."""
    from PIL import Image  # noqa: PLC0415 - comes with matplotlib

    left, top, width, high = _numbers(element, "x", "y", "width", "height")
    data = b64decode(element.attrib["href"].partition(",")[2])
    with Image.open(io.BytesIO(data)) as picture:
        extent = (left, left + width, top + high, top)
        drawn = axes.imshow(np.asarray(picture.convert("RGB")), extent=extent, aspect="auto")
    drawn.set_zorder(len(axes.get_children()))


def _without_comments(css: str) -> str:
    """Take the comments out of a style sheet."""
    kept, *commented = css.split("/*")
    return kept + "".join(after.partition("*/")[2] for after in commented)


@cache
def styles() -> Mapping[str, Mapping[str, Any]]:
    """Read the styles of figures on paper, by class: those of `figures.css` without what screens change."""
    text = _without_comments(asset("figures.css", "obygaze_film.page"))
    colours: dict[str, str] = {}  # var(--c-ink) -> its value, as a block further up defines it
    found: dict[str, dict[str, str]] = {}
    *blocks, _ = text.partition("@media")[0].split("}")
    for block in blocks:
        selectors, _, body = block.partition("{")
        rules = {}
        for rule in body.split(";"):
            name, _, value = rule.partition(":")
            rules[name.strip()] = value.strip()
        for name, value in rules.items():
            if name.startswith("--"):
                colours[f"var({name})"] = value
        for selector in selectors.split(","):
            known = found.setdefault(selector.strip().removeprefix("."), {})
            known.update({name: colours.get(value, value) for name, value in rules.items()})
    return found
