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
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from obygaze_features.arguments import checked
from obygaze_features.io import local_path, refuse_existing, write_whole
from obygaze_models.report.blocks import Block, Picture, Report
from obygaze_models.report.write import is_numeric

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = "obygaze_models.report"

STEPS = tuple(digit * 10.0**power for power in range(-3, 6) for digit in (1, 2, 5))
"""Distances between the ticks of an axis."""

MOST_TICKS = 6
"""An axis spans at most so many steps."""

MARGIN = 4
"""Percent of a chart's width that the axis leaves free on either side."""

FOLDER = "assets"
"""Folder of a package with its templates, style sheets and scripts."""


# --- parts of every page
# ---------------------------------------------------------------------------
@checked
def asset(name: str, package: str = HERE) -> str:
    """Read a style sheet, script or other text from the folder `assets` of a package."""
    return (files(package) / FOLDER / name).read_text(encoding="utf-8")


@checked
def page(
    template: str,
    style: str = "",
    script: str = "",
    package: str = HERE,
    sources: Mapping[str, str] | None = None,
    **values: object,
) -> str:
    """Fill a template; every text is escaped.

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
        Further sources that the policy allows, for a page that a server sends.
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
            style=Markup(whole_style),  # noqa: S704 - ours
            script=Markup(script),  # noqa: S704 - ours
            policy=_policy(whole_style, script, sources or {}),
            version=version("obygaze"),
            **values,
        )
    )


@cache
def _environment(package: str) -> "Environment":
    """Make the environment that finds templates of a package, and of this one."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - slow

    return Environment(
        loader=ChoiceLoader([PackageLoader(name, FOLDER) for name in (package, HERE)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _policy(style: str, script: str, sources: Mapping[str, str]) -> str:
    """Write a content security policy: only this style, this script, embedded pictures, and `sources`."""
    allowed = {"default-src": "'none'", "style-src": _source(style), "img-src": "data:"}
    if script:
        allowed["script-src"] = _source(script)
    allowed |= sources
    rules = [f"{kind} {source}" for kind, source in allowed.items()]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _source(text: str) -> str:
    """Name a style sheet or script by its digest, as policies do."""
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


@checked
def json_data(value: object) -> Markup:
    """Write JSON for <script type="application/json">, escaped so that no text closes the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
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
        known={},
        chart=_chart,
        embedded=_embedded,
        numbers=_numbers,
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


def _numbers(block: Block) -> list[bool]:
    """Mark the columns that hold numbers, which a page aligns to the right."""
    if not block.rows:
        return [False] * len(block.headers)
    return [is_numeric(cells) for cells in zip(*block.rows, strict=True)]


def _chart(block: Block) -> Mapping[str, Any] | None:
    """Place the values of a table and their intervals on a common axis.

    Returns
    -------
    mapping or None
        Rows (name, value, low, high), reference and ticks, their positions in percent of the chart's width.
        None where fewer than two rows have an interval.
    """
    rows = [(name, value, low, high) for name, value, low, high in block.dots if not math.isnan(low)]
    if len(rows) < 2:
        return None
    references = []
    if block.reference is not None and not math.isnan(block.reference):
        references.append(block.reference)
    shown = list(references)
    for _, value, low, high in rows:
        shown += [value, low, high]
    step = _step(max(shown) - min(shown))
    # The axis goes from one tick to another, both numbered in steps from 0.
    first = math.floor(min(shown) / step)
    last = max(math.ceil(max(shown) / step), first + 1)
    n_digits = max(0, -math.floor(math.log10(step)))

    def position(value: float) -> str:
        width = 100 - 2 * MARGIN
        return f"{MARGIN + width * (value / step - first) / (last - first):.2f}%"

    ticks = [tick * step for tick in range(first, last + 1)]
    return {
        "rows": [(name, position(value), position(low), position(high)) for name, value, low, high in rows],
        "reference": [
            (position(value), f"chance {value:.2f}" if value else "no difference") for value in references
        ],
        "ticks": [(position(tick), f"{tick:.{n_digits}f}") for tick in ticks],
    }


def _step(span: float) -> float:
    """Choose the least distance between ticks with which an axis of this length has few enough."""
    for step in STEPS:
        if span <= step * MOST_TICKS:
            return step
    return STEPS[-1]


def _embedded(picture: Picture) -> str:
    """Draw a figure as a data URL, in which scripts of SVG files cannot run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{picture.name}.svg")
        picture.draw(path)
        return f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode()}"
