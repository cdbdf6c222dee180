"""Draw figures as SVG, for pages and articles: films by year with groups and trend, and parts of one film."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from markupsafe import Markup, escape

from obygaze_film.page import charts
from obygaze_film.page.phrases import LATER, Words, clock
from obygaze_film.schema import runs
from obygaze_models.report import asset

if TYPE_CHECKING:
    from obygaze_film.film_groups import FilmComparison
    from obygaze_film.page.view import FilmView

WIDE, HIGH, LEFT, ROW = 760, 250, 120, 16
"""Width of a figure, height of a chart, width of labels, height of a strip, in units of its own."""

SCALES: Final = (0.1, 0.2, 0.4, 0.6, 0.8)
"""Possible ends of the axis of shares; the smallest that contains all intervals is used."""


class _Axes:
    """Places of years and shares in a figure."""

    def __init__(self, years: Sequence[float], highest: float) -> None:
        self.first, self.last = min(years), max(years)
        self.begin, self.end = self.first // 10 * 10, self.last // 10 * 10 + 10
        self.scale = next((limit for limit in SCALES if highest <= limit), 1.0)

    def x(self, year: float) -> float:
        return 50 + (WIDE - 75) * (year - self.begin) / (self.end - self.begin)

    def y(self, share: float) -> float:
        return 10 + HIGH * (1 - min(max(share / self.scale, 0.0), 1.0))

    def at(self, year: float, share: float) -> str:
        return f"{self.x(year):.1f} {self.y(share):.1f}"


def years_figure(compared: "FilmComparison", words: Words, *, alone: bool = False) -> str:
    """Draw films' shares by year with their intervals, decades' means, and the trend with its band.

    Empty where fewer than two years are known. The band is that of the slope: lines through the films' mean
    point. A film that nobody judged is hollow, as its model alone expects it.

    Parameters
    ----------
    alone : bool
        Whether the figure is a file of its own and brings its style.
    """
    dated = [(float(film.facts["year"]), film) for film in compared.films if film.facts["year"].isdecimal()]
    if len({year for year, _ in dated}) < 2:
        return ""
    groups = [row for row in compared.groups.to_dict("records") if not row["reason"]]
    ends = [film.rate.high if film.rate else film.sample.expected for _, film in dated]
    axes = _Axes([year for year, _ in dated], max([*ends, *(row["high"] for row in groups)]))
    parts = []
    for share in np.linspace(0, axes.scale, 5).tolist():
        parts.append(_line("c-grid", 50, WIDE - 25, axes.y(share)))
        parts.append(_text("c-end", 44, axes.y(share) + 4, words.share(share)))
    decades = range(int(axes.begin), int(axes.end) + 1, 10)
    parts += [_text("c-middle", axes.x(decade), HIGH + 28, f"{decade}") for decade in decades]
    judged = [(year, film.rate.value) for year, film in dated if film.rate]
    for row in compared.changes.to_dict("records"):
        if row["change"] == LATER and not np.isnan(row["value"]):
            parts += _trend(row, judged, axes)
    for row in groups if compared.by == "decade" else ():
        low, high, left = axes.y(row["low"]), axes.y(row["high"]), axes.x(float(row["group"][:4])) + 3
        wide = axes.x(axes.begin + 10) - axes.x(axes.begin) - 6
        box = f'x="{left:.1f}" y="{high:.1f}" width="{wide:.1f}" height="{low - high:.1f}"'
        parts += [f'<rect class="c-reach" {box}/>', _line("c-mean", left, left + wide, axes.y(row["value"]))]
    for year, film in dated:
        value, kind = (film.rate.value, "") if film.rate else (film.sample.expected, " c-alone")
        name = escape(f"{film.facts['title']} ({year:.0f}): {words.share(value)}")
        if film.rate:
            top = f"V{axes.y(film.rate.high):.1f}"
            parts.append(f'<path class="c-interval" d="M{axes.at(year, film.rate.low)}{top}"/>')
        place = f'cx="{axes.x(year):.1f}" cy="{axes.y(value):.1f}" r="4"'
        parts.append(f'<circle class="c-film{kind}" {place}><title>{name}</title></circle>')
    return _svg(parts, HIGH + 36, words.say("years_figure", positive=compared.positive), alone=alone)


def _trend(row: Mapping[Any, Any], judged: Sequence[tuple[float, float]], axes: _Axes) -> list[str]:
    """Draw a line through the mean of the judged films, and its band between the ends of its slope."""
    year, share = np.mean(judged, axis=0).tolist()

    def at(when: float, name: str) -> str:
        return axes.at(when, share + row[name] * (when - year) / 10)

    middle, ends = axes.at(year, share), (axes.first, axes.last)
    return [
        *(f'<path class="c-band" d="M{at(end, "low")}L{middle}L{at(end, "high")}Z"/>' for end in ends),
        f'<path class="c-trend" d="M{at(axes.first, "value")}L{at(axes.last, "value")}"/>',
    ]


def film_figure(view: "FilmView", start_s: float, end_s: float) -> str:
    """Draw a part of a film as a figure of its own: passages, probability with band, concepts by weight."""
    words, high, whole_s = view.words, 120, end_s - start_s
    begin, across = charts.tenths(start_s), WIDE - LEFT - 10
    window = f'viewBox="{begin} 0 {charts.tenths(end_s) - begin} {{}}" preserveAspectRatio="none"'

    def strip(top: float, tall: float, box: int, inner: str) -> str:
        size = f'x="{LEFT}" y="{top}" width="{across}" height="{tall}"'
        return f"<svg {size} {window.format(box)}>{inner}</svg>"

    def label(top: float, name: str) -> str:
        return _text("c-end", LEFT - 8, top + 12, name)

    marked = view.segments[view.segments["reaches"] == 1]
    rows = view.rows[["start_s", "end_s"]].to_numpy(dtype=np.float64)
    without = [(rows[a, 0], rows[b - 1, 1]) for a, b in runs(view.rows["p"].isna().to_numpy())]
    curve = "".join(
        f'<path class="c-none" d="M{charts.tenths(a)} 0H{charts.tenths(b)}V100H{charts.tenths(a)}Z"/>'
        for a, b in without
    )
    curve += f'<path class="c-band" d="{charts.band(view.rows)}"/>'
    curve += f'<path class="c-trend" d="{charts.line(view.rows)}"/>'
    parts = [_text("c-start", LEFT, 14, f"{view.heading}, {clock(start_s)}–{clock(end_s)}")]
    parts += [
        label(22, words["segments"]),
        strip(24, 10, 10, f'<path class="c-passage" d="{charts.spans(marked)}"/>'),
    ]
    parts += [label(84, words["probability"]), strip(40, high, 100, curve)]
    parts += [_text("c-end", LEFT - 8, place, text) for place, text in ((46, "1"), (40 + high, "0"))]
    top = 46.0 + high
    for row in view.strips(found=True):
        inner = "".join(f'<path class="c-s{step}" d="{path}"/>' for step, path in row["paths"].items())
        parts += [label(top, row["name"]), strip(top, ROW - 2, 10, inner)]
        top += ROW
    for time in charts.ticks(whole_s):
        at = LEFT + across * time / whole_s
        parts.append(_text("c-middle", at, top + 14, clock(start_s + time)))
    return _svg(parts, top + 22, f"{view.heading}: {words['probability']}", alone=True)


def _line(kind: str, a: float, b: float, y: float) -> str:
    return f'<path class="{kind}" d="M{a:.1f} {y:.1f}H{b:.1f}"/>'


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _svg(parts: Iterable[str], high: float, title: str, *, alone: bool) -> str:
    style = f"<style>{asset('figures.css', 'obygaze_film.page')}</style>" if alone else ""
    size = f'width="{WIDE}" height="{high:.0f}"' if alone else ""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="c-figure" viewBox="0 0 {WIDE} {high:.0f}" {size}'
    label = f'role="img" aria-label="{escape(title)}"'
    return Markup(f"{head} {label}>{style}{''.join(parts)}</svg>")  # noqa: S704 - every text is escaped
