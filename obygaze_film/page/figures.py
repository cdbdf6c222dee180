"""Draw figures as SVG, for pages and articles: films by year with groups and trend, and parts of one film."""

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from markupsafe import Markup

from obygaze_film.notes import LATER
from obygaze_film.page.html import template_page
from obygaze_film.page.phrases import Words
from obygaze_models.report import asset

if TYPE_CHECKING:
    from obygaze_film.film_groups import FilmComparison
    from obygaze_film.page.view import FilmView

LEFT, RIGHT, HIGH = 50, 735, 250
"""Ends of the axis of years, and height of the chart, in units of the figure."""

SCALES: Final = (0.1, 0.2, 0.4, 0.6, 0.8)
"""Possible ends of the axis of shares; the smallest that contains all intervals is used."""


def scale_of(highest: float) -> float:
    """Choose the end of an axis of shares."""
    return next((limit for limit in SCALES if highest <= limit), 1.0)


def years_figure(compared: "FilmComparison", words: Words, *, alone: bool = False) -> str:
    """Draw films' shares by year with their intervals, decades' means, and the trend with its band.

    Empty where fewer than two years are known. The band is that of the slope: lines through the films' mean
    point. A film that nobody judged is hollow, as its model alone expects it.

    Parameters
    ----------
    alone : bool
        Whether the figure is a file of its own and brings its style.
    """
    drawn = [film for film in compared.films if film.rate or not np.isnan(film.expected)]
    dated = [(float(film.facts["year"]), film) for film in drawn if film.facts["year"].isdecimal()]
    years = [year for year, _ in dated]
    if len(set(years)) < 2:
        return ""
    groups = [row for row in compared.groups.to_dict("records") if not row["reason"]]
    ends = [film.rate.high if film.rate else film.expected for _, film in dated]
    scale = scale_of(max([*ends, *(row["high"] for row in groups)]))
    begin, end = min(years) // 10 * 10, max(years) // 10 * 10 + 10
    trends = [row for row in compared.changes.to_dict("records") if row["change"] == LATER]
    trend = next((row for row in trends if not np.isnan(row["value"])), None)
    judged = [(year, film.rate.value) for year, film in dated if film.rate]
    middle, share = np.mean(judged, axis=0).tolist() if trend else (0.0, 0.0)

    def x(year: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * (year - begin) / (end - begin), 1)

    def y(share: float) -> float:
        return round(10 + HIGH * (1 - min(max(share / scale, 0.0), 1.0)), 1)

    def at(year: float | None, slope: str = "") -> str:
        """Place the trend with one of its slopes in a year; without one its middle."""
        away = 0.0 if year is None or trend is None else trend[slope] * (year - middle) / 10
        return f"{x(middle if year is None else year)} {y(share + away)}"

    axis = words.say("years_axis", positive=compared.positive)
    return _figure(
        "years", HIGH + 50, f"{words['years_title']}: {axis}", words, alone=alone, axis=axis,
        x=x, y=y, at=at, left=LEFT, right=RIGHT, dated=dated, trend=trend, ends=(min(years), max(years)),
        shares=np.linspace(0, scale, 5).tolist(), decades=range(int(begin), int(end) + 1, 10),
        blocks=groups if compared.by == "decade" else (),
    )  # fmt: skip


def film_figure(view: "FilmView", start_s: float, end_s: float) -> str:
    """Draw a part of a film as a figure of its own: passages, probability with band, concepts by weight."""
    title = f"{view.heading}: {view.words['probability']}"
    high = 188 + 16 * sum(concept.is_found for concept, _ in view.concepts)
    return _figure("film", high, title, view.words, alone=True, view=view, start=start_s, end=end_s)


def _figure(name: str, high: int, title: str, words: Words, *, alone: bool, **values: Any) -> str:
    own = Markup(asset("figures.css", "obygaze_film.page")) if alone else ""  # noqa: S704 - ours
    values |= {"high": high, "title": title, "own": own}
    return Markup(template_page(f"figure_{name}.svg.j2", words, (), **values))  # noqa: S704 - escaped
