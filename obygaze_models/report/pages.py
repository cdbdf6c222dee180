"""Write reports as self-contained HTML pages in a common style."""

import base64
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from obygaze_features.arguments import checked
from obygaze_features.io import local_path, refuse_existing, write_whole
from obygaze_models.report.blocks import Block, Picture, Report
from obygaze_models.report.write import is_numeric

if TYPE_CHECKING:
    from jinja2 import Environment

OUR_PACKAGE = "obygaze_models.report"
"""The package that templates and assets are taken from unless another is named."""

TICK_DISTANCES = tuple(digit * 10.0**power for power in range(-3, 6) for digit in (1, 2, 5))
"""Distances that the ticks of an axis may have, from small to large."""

MAX_TICKS = 6
"""Most distances between ticks that an axis has."""

MARGIN_PERCENT = 4
"""Percent of a chart's width that the axis leaves free on either side."""

FOLDER = "assets"
"""Folder of a package with its templates, style sheets and scripts."""


# --- parts of every page
# ---------------------------------------------------------------------------
@checked
def asset(name: str, package: str = OUR_PACKAGE) -> str:
    """Read a style sheet, script or other text from the folder `assets` of a package."""
    return (files(package) / FOLDER / name).read_text(encoding="utf-8")


@checked
def page(
    template: str,
    style: str = "",
    script: str = "",
    package: str = OUR_PACKAGE,
    sources: Mapping[str, str] | None = None,
    **values: object,
) -> str:
    """Render an HTML page from a template, with style, script and security policy inside; texts are escaped.

    Parameters
    ----------
    template
        Name of a template that extends `page.html.j2`.
    style
        The page's own style, after the common one.
    script
        The page's script; the content security policy blocks all others.
    package
        Package with the template in its folder `assets`.
    sources
        Further sources that the policy allows, such as those of a server that sends the page: kind -> source.
    values
        Values of the template, including `title` and `language`.
    """
    whole_style = asset("page.css")
    if style:
        whole_style += f"\n{style}"
    return (
        _environment(package)
        .get_template(template)
        .render(
            style=Markup(whole_style),  # noqa: S704 - from this package, not from a user
            script=Markup(script),  # noqa: S704 - from this package, not from a user
            policy=_content_security_policy(whole_style, script, sources or {}),
            version=version("obygaze"),
            **values,
        )
    )


@cache
def _environment(package: str) -> "Environment":
    """Make the Jinja environment that finds templates in the assets of a package, and then in those of ours.

    Texts are escaped, and a template that uses a value it was not given raises an error.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - slow

    return Environment(
        loader=ChoiceLoader([PackageLoader(name, FOLDER) for name in (package, OUR_PACKAGE)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _content_security_policy(style: str, script: str, sources: Mapping[str, str]) -> str:
    """Write a content security policy for a page, so that a browser runs and loads nothing else.

    Allowed are this style, this script, embedded pictures, and `sources` (kind of source -> what is allowed).
    Style and script are named by their digests; an empty script allows none.
    """
    allowed = {"default-src": "'none'", "style-src": _digest_source(style), "img-src": "data:"}
    if script:
        allowed["script-src"] = _digest_source(script)
    allowed |= sources
    rules = [f"{kind} {source}" for kind, source in allowed.items()]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _digest_source(text: str) -> str:
    """Return the source expression of a style sheet or script in a security policy: its SHA-256."""
    digest = sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@checked
def json_data(value: object) -> Markup:
    """Write JSON for <script type="application/json">, escaped so that no text closes the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # In JSON, a character may be written as its code, such as \u003c for "<".
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - every character special to HTML is escaped


# --- reports
# ---------------------------------------------------------------------------
@checked
def to_html(reports: Report | Sequence[Report], title: str = "") -> str:
    """Write reports as one page.

    Parameters
    ----------
    reports
        One or several.
    title
        Title of the page; by default that of the first report.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> report = om.run_report(om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s"))
    >>> from obygaze_models.report import to_html
    >>> "<h1>HN vs S, tested on HN vs S</h1>" in to_html(report)
    True
    """
    shown = [reports] if isinstance(reports, Report) else list(reports)
    return page(
        "report.html.j2",
        title=title or shown[0].title,
        language="en",
        reports=shown,
        known={},  # the template notes here which tables it wrote, so that none is written twice
        chart=_chart,
        embedded=_embedded,
        numbers=_numeric_columns,
        dumps=partial(json.dumps, indent=2, ensure_ascii=False),
    )


@checked
def write_html(
    reports: Report | Sequence[Report], path: str | Path, title: str = "", *, force: bool = False
) -> None:
    """Write reports into one HTML file.

    Raises
    ------
    OutputError
        The file exists, and `force` is not given.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> report = om.run_report(om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s"))
    >>> om.write_html(report, "evaluation.html")
    """
    path = local_path(path)
    refuse_existing(path, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, to_html(reports, title))


def _numeric_columns(block: Block) -> list[bool]:
    """Tell for each column of a table whether it holds numbers, which a page aligns to the right."""
    if not block.rows:
        return [False] * len(block.headers)
    return [is_numeric(cells) for cells in zip(*block.rows, strict=True)]


class _Chart(NamedTuple):
    """Where a chart draws the values of a table: positions are CSS texts, in percent of its width.

    Attributes
    ----------
    rows : list of (name, value, low, high)
        Name of each row, and the positions of its value and of its interval's ends.
    reference : list of (position, label)
        The line at chance or at no difference; empty if there is none.
    ticks : list of (position, label)
    """

    rows: list[tuple[str, str, str, str]]
    reference: list[tuple[str, str]]
    ticks: list[tuple[str, str]]


def _chart(block: Block) -> _Chart | None:
    """Lay out a chart of the values of a table with their intervals, on a common axis.

    Return None if fewer than two rows have an interval, as there is nothing to compare.
    """
    dots = [dot for dot in block.dots if not math.isnan(dot.low)]
    if len(dots) < 2:
        return None

    # The line at chance, or at no difference; None if there is none.
    reference = block.reference
    if reference is not None and math.isnan(reference):
        reference = None

    # All that is drawn must lie on the axis.
    numbers: list[float] = []
    for dot in dots:
        numbers += [dot.value, dot.low, dot.high]
    if reference is not None:
        numbers.append(reference)
    axis = _axis_around(numbers)

    rows = [
        (dot.name, axis.position(dot.value), axis.position(dot.low), axis.position(dot.high)) for dot in dots
    ]
    reference_lines = []
    if reference is not None:
        label = "no difference" if block.has_differences else f"chance {reference:.2f}"
        reference_lines.append((axis.position(reference), label))
    return _Chart(rows, reference_lines, axis.ticks())


class _Axis(NamedTuple):
    """An axis from one tick to another. Tick k is at the value k times the step; tick 0 is at 0.

    Attributes
    ----------
    step : float
        Distance between ticks.
    first, last : int
        Numbers of the ticks at its ends.
    """

    step: float
    first: int
    last: int

    def position(self, value: float) -> str:
        """Return the position of a value in percent of the chart's width, as CSS text."""
        width_between_ends = 100 - 2 * MARGIN_PERCENT
        steps_from_first = value / self.step - self.first
        n_steps = self.last - self.first
        percent = MARGIN_PERCENT + width_between_ends * steps_from_first / n_steps
        return f"{percent:.2f}%"

    def ticks(self) -> list[tuple[str, str]]:
        """List the position and the label of each tick, with as many decimals as the step needs."""
        n_decimals = max(0, -math.floor(math.log10(self.step)))
        ticks = []
        for number in range(self.first, self.last + 1):
            value = number * self.step
            ticks.append((self.position(value), f"{value:.{n_decimals}f}"))
        return ticks


def _axis_around(numbers: Sequence[float]) -> _Axis:
    """Make the shortest axis that has all of these numbers between its first and last tick."""
    lowest = min(numbers)
    highest = max(numbers)
    step = _tick_distance(highest - lowest)
    first = math.floor(lowest / step)
    last = math.ceil(highest / step)
    # If all numbers are equal and at a tick, the axis still needs a length.
    return _Axis(step, first, max(last, first + 1))


def _tick_distance(span: float) -> float:
    """Choose the distance between the ticks of an axis that is to be `span` long.

    It is the smallest of `TICK_DISTANCES` (1, 2 or 5 times a power of ten) with which the axis has no more
    than about `MAX_TICKS` ticks.
    """
    for distance in TICK_DISTANCES:
        if span <= distance * MAX_TICKS:
            return distance
    return TICK_DISTANCES[-1]


def _embedded(picture: Picture) -> str:
    """Draw a figure as SVG, and return it as a data URL; as an image, it can run no scripts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{picture.name}.svg")
        picture.draw(path)
        encoded = base64.b64encode(path.read_bytes()).decode()
    return f"data:image/svg+xml;base64,{encoded}"
