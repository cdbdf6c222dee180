"""Draw figures as SVG, for pages and articles: films by year with groups and trend, and parts of one film."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from markupsafe import Markup

from obygaze_film.claims import phrases
from obygaze_film.claims.of_groups import compared_share
from obygaze_film.claims.words import Words
from obygaze_film.notes import LATER
from obygaze_film.page.html import template_page
from obygaze_models.report import asset

if TYPE_CHECKING:
    from obygaze_film.film_groups import ComparedFilm, FilmComparison
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
    dated = [_dated(film, words) for film in compared.films if _has_place(film)]
    years = [dot.year for dot in dated]
    if len(set(years)) < 2:
        return ""
    groups = _blocks(compared)
    ends = [dot.film.rate.high if dot.film.rate else dot.film.expected for dot in dated]
    scale = scale_of(max([*ends, *(row["high"] for row in groups)]))
    begin, end = min(years) // 10 * 10, max(years) // 10 * 10 + 10
    trend = _trend(compared)
    judged = [(dot.year, dot.film.rate.value) for dot in dated if dot.film.rate]
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


def years_legend(compared: "FilmComparison", words: Words) -> str:
    """Say what `years_figure` draws: those of dots, intervals, trend and blocks that are there."""
    dated = [film for film in compared.films if _has_place(film)]
    is_drawn = {
        "years_dots": bool(dated),
        "years_intervals": any(film.rate and not film.rate.is_census for film in dated),
        "years_hollow": any(film.rate is None for film in dated),
        "years_line": _trend(compared) is not None,
        "years_blocks": compared.by == "decade" and bool(_blocks(compared)),
    }
    return " ".join(words[key] for key, is_there in is_drawn.items() if is_there)


def _trend(compared: "FilmComparison") -> dict[Any, Any] | None:
    """Return the row of the trend of years; None where there is none."""
    for row in compared.changes.to_dict("records"):
        if row["change"] == LATER and not np.isnan(row["value"]):
            return row
    return None


def _blocks(compared: "FilmComparison") -> list[dict[Any, Any]]:
    """Return the rows of groups that have a share."""
    return [row for row in compared.groups.to_dict("records") if not row["reason"]]


class Dot(NamedTuple):
    """A film in its year, and what its dot is labelled."""

    year: float
    film: "ComparedFilm"
    label: str


def _has_place(film: "ComparedFilm") -> bool:
    """Whether a film has a year, and a share by its judges or by its model."""
    has_share = film.rate is not None or not np.isnan(film.expected)
    return has_share and film.facts["year"].isdecimal()


def _dated(film: "ComparedFilm", words: Words) -> Dot:
    title, year = film.facts["title"], film.facts["year"]
    return Dot(float(year), film, phrases.film_share_sentence(title, year, compared_share(film), words))


def film_figure(view: "FilmView", start_s: float, end_s: float) -> str:
    """Draw a part of a film as a figure of its own: passages, probability with band, concepts by weight."""
    words, model = view.words, view.model
    notes = phrases.figure_notes(view.positive, model.title, model.threshold_p, words)
    title = words.say("named", name=view.heading, what=" ".join(notes))
    high = 218 + 16 * sum(concept.is_found for concept, _ in view.concepts)
    return _figure("film", high, title, words, alone=True, view=view, start=start_s, end=end_s, notes=notes)


def _figure(name: str, high: int, title: str, words: Words, *, alone: bool, **values: Any) -> str:
    own = Markup(asset("figures.css", "obygaze_film.page")) if alone else ""  # noqa: S704 - ours
    values |= {"high": high, "title": title, "own": own}
    return Markup(template_page(f"figure_{name}.svg.j2", words, (), **values))  # noqa: S704 - escaped
