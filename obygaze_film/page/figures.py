"""Draw figures as SVG, for pages and articles: films by year with groups and trend, and parts of one film."""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
from markupsafe import Markup

from obygaze_film.claims import phrases
from obygaze_film.claims.of_groups import compared_share
from obygaze_film.claims.words import Words, clock
from obygaze_film.notes import LATER
from obygaze_film.page import charts
from obygaze_film.page.html import template_page
from obygaze_models.report import asset

if TYPE_CHECKING:
    from obygaze_film.film_groups import ComparedFilm, FilmComparison
    from obygaze_film.page.view import FilmView

LEFT, RIGHT, HIGH = 50, 735, 250
"""Ends of the axis of years, and height of the chart, in units of the figure."""

WIDTH: Final = 760
"""Width of a figure, in units; one whose names are long is wider."""

LEAST_COLUMN: Final = 360
"""Minimum width of what a film's figure draws beside its names, in units."""

LINE: Final = 14
"""Height of a line of text, in units."""

GAP: Final = 14
"""Room between a figure's edge, its names and its columns."""

CONTEXT_S: Final = 30.0
"""Seconds before and after a span that its figure shows too."""

STILLS_HIGH: Final = 40
"""Height of the strip of stills, in units."""

MOST_TIMES: Final = 7
"""Maximum number of times on the axis of a film's figure."""

TIME_GAP: Final = 8
"""Least room between two times on the axis, in units."""

NARROW: Final = frozenset("iljtfrI.,:;'’|!()[] ")
WIDE: Final = frozenset("mwMWœæŒÆ@%—…")
"""Signs that are narrower, and wider, than others in every sans-serif font."""

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
    dated = [_dated(film, compared, words) for film in compared.films if _has_place(film)]
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
        """Place the line of the trend with one of its slopes in a year; without a year, its middle."""
        away = 0.0 if year is None or trend is None else trend[slope] * (year - middle) / 10
        return f"{x(middle if year is None else year)} {y(share + away)}"

    key = "as_concept" if compared.positive.is_concept else "as_level"
    axis = words.say("years_axis", marked=words.say(key, positive=compared.positive.text))
    legend = [line for text in _legend(compared, words) for line in _wrapped(text, WIDTH)] if alone else []
    return _figure(
        "years", WIDTH, HIGH + 50 + LINE * len(legend), f"{words['years_title']}: {axis}", words,
        alone=alone, axis=axis, legend=legend, bottom=HIGH + 44,
        x=x, y=y, at=at, left=LEFT, right=RIGHT, dated=dated, trend=trend, ends=(min(years), max(years)),
        shares=np.linspace(0, scale, 5).tolist(), decades=range(int(begin), int(end) + 1, 10),
        blocks=groups if compared.by == "decade" else (),
    )  # fmt: skip


def years_legend(compared: "FilmComparison", words: Words) -> str:
    """Say what `years_figure` draws: those of dots, intervals, trend and blocks that are there."""
    return " ".join(_legend(compared, words))


def _legend(compared: "FilmComparison", words: Words) -> list[str]:
    dated = [film for film in compared.films if _has_place(film)]
    trend = _trend(compared)
    note = words.again(trend["note"]) if trend else ""
    hollow = "years_hollow_labels" if compared.is_of_labels else "years_hollow"
    is_drawn = {
        "years_dots": any(film.rate for film in dated),
        "years_intervals": any(film.rate and not film.rate.is_census for film in dated),
        hollow: any(film.rate is None for film in dated),
        "years_line_noted" if note else "years_line": trend is not None,
        "years_blocks": compared.by == "decade" and bool(_blocks(compared)),
    }
    known = {"who": words.judge(compared.model), "note": note}
    return [words.say(key, **known) for key, is_there in is_drawn.items() if is_there]


def _wrapped(text: str, figure_width: int) -> list[str]:
    """Break a text into lines that a figure has room for."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer) > figure_width - 2 * GAP:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


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


def _dated(film: "ComparedFilm", compared: "FilmComparison", words: Words) -> Dot:
    title, year = film.facts["title"], film.facts["year"]
    label = phrases.film_share_sentence(title, year, compared_share(film, compared), words)
    return Dot(float(year), film, label)


class FigureRow(NamedTuple):
    """A row of the figure of a film: its name, and its place from the top, in units of the figure."""

    name: str
    top: int
    high: int

    @property
    def baseline(self) -> int:
        """Where the name stands, in the middle of the row."""
        return self.top + self.high // 2 + 4


class FigurePart(NamedTuple):
    """The part of a film that a figure draws, the span that it is about, and where its columns begin.

    Times are in seconds, `left` and `width` in units of the figure.
    """

    start_s: float
    end_s: float
    span_start_s: float
    span_end_s: float
    left: int
    width: int

    def x(self, seconds: float) -> float:
        """Place a time."""
        share = (seconds - self.start_s) / (self.end_s - self.start_s)
        return round(self.left + self.width * share, 1)


class FigureStill(NamedTuple):
    """A still in a figure: its left end and width, in units of the figure, and its data address."""

    x: float
    width: float
    picture: str


class Stills(Protocol):
    """Stills of a film, all of one size, by time (`workspace.media.StillSheet`)."""

    width: int
    height: int

    def address(self, at_s: float) -> str:
        """Return the still of a time as a data address."""
        ...


def film_figure(
    view: "FilmView",
    start_s: float,
    end_s: float,
    decisions: Sequence[Mapping[str, Any]] = (),
    stills: Stills | None = None,
) -> str:
    """Draw a span of a film as a figure of its own, with `CONTEXT_S` before and after it.

    The figure has the model's passages, what people decided, the probability with its band and the threshold,
    and the concepts that are found better than chance. Its left margin is as wide as its longest name, and
    the figure is wider than `WIDTH` where little room is left beside that.

    Parameters
    ----------
    view : FilmView
    start_s, end_s : float
        Ends of the span; a span that goes on behind the film ends with it.
    decisions : sequence of mapping
        What people decided, as the desk describes it to its script; those in the figure's part are drawn.
    stills : Stills, optional
        Of the user's copy of the film: a strip of them is drawn above all.
    """
    words, model = view.words, view.model
    part_start_s = max(0.0, start_s - CONTEXT_S)
    part_end_s = min(view.whole_s, end_s + CONTEXT_S)
    part_start_s = min(part_start_s, max(0.0, part_end_s - CONTEXT_S))  # of a span behind the film's end
    decided = _decided_rows(decisions, part_start_s, part_end_s, words)
    passages = [
        one
        for one in view.cards
        if one["start"] < part_end_s and one["end"] > part_start_s and not one["below"]
    ]
    concepts = [shown for shown in view.concepts if shown.concept.is_found]
    names = [words["segments"], words["probability"], *decided]
    names += [shown.name for shown in concepts]
    left = GAP + max(math.ceil(text_width(name)) for name in names)
    right = math.ceil(text_width(clock(part_end_s)) / 2)  # half of a time that stands at the column's end
    column = max(WIDTH - right - left, LEAST_COLUMN)
    width = left + column + right
    part = FigurePart(part_start_s, part_end_s, start_s, min(end_s, view.whole_s), left, column)
    ends = f"{clock(part.span_start_s)}–{clock(part.span_end_s)}"
    heading = _wrapped(f"{view.heading}, {ends}", width)
    top = 12 + LINE * len(heading)
    rows: dict[str, list[FigureRow]] = {}
    for kind, names_of_kind, high in (
        ("stills", [""] if stills else [], STILLS_HIGH),
        ("passages", [words["segments"]] if passages else [], 12),
        ("decided", [*decided], 12),
        ("probability", [words["probability"]], 120),
        ("concepts", [shown.name for shown in concepts], 14),
    ):
        rows[kind] = []
        for name in names_of_kind:
            rows[kind].append(FigureRow(name, top, high))
            top += high + 4
    sentences = phrases.figure_notes(view.positive, view.model_title, model.threshold_p, words)
    title = words.say("named", name=view.heading, what=" ".join(sentences))
    notes = [line for text in sentences for line in _wrapped(text, width)]
    high = top + 24 + LINE * len(notes)
    return _figure(
        "film", width, high, title, words, alone=True, view=view, part=part, heading=heading, notes=notes,
        bottom=top, rows=rows, strip=_strip(stills, part) if stills else (), passages=passages,
        decided=list(decided.values()), concepts=concepts, ticks=_tick_times(part),
    )  # fmt: skip


def _strip(stills: Stills, part: FigurePart) -> list[FigureStill]:
    """Lay stills side by side over a part of a film: each of the time where its middle is."""
    n = max(1, round(part.width * stills.height / stills.width / STILLS_HIGH))
    width = part.width / n
    strip = []
    for index in range(n):
        at_s = part.start_s + (part.end_s - part.start_s) * (index + 0.5) / n
        strip.append(
            FigureStill(round(part.left + index * width, 1), round(width - 1, 1), stills.address(at_s))
        )
    return strip


def _tick_times(part: FigurePart) -> list[float]:
    """Choose the times of the figure's axis: full multiples of a step, counted from the film's start.

    They are so few that their texts do not touch.
    """
    length_s = part.end_s - part.start_s
    most = min(MOST_TIMES, part.width / (text_width(clock(part.end_s)) + TIME_GAP))
    step = next((step for step in charts.TICKS_S if length_s / step <= most), charts.TICKS_S[-1])
    first = math.ceil(part.start_s / step) * step
    return [float(time) for time in range(first, int(part.end_s) + 1, step)]


def _decided_rows(
    decisions: Sequence[Mapping[str, Any]], start_s: float, end_s: float, words: Words
) -> dict[str, list[Mapping[str, Any]]]:
    """Group the decisions of a part of a film by who gave which level, and how; the group's name says it."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for one in decisions:
        if one["level"] and one["start"] < end_s and one["end"] > start_s:
            who = one["who"]
            if one["kind"] == "agreed":
                who = words.say("desk_agreed", judges=one["judges"])
            name = words.say("figure_decided", level=one["title"], who=who)
            if one["blind"]:
                name += f" ({words['desk_blindly']})"
            groups.setdefault(name, []).append(one)
    return groups


def text_width(text: str) -> float:
    """Estimate the width of a text of 12 units in common sans-serif fonts, from above.

    The widest of the usual ones, DejaVu Sans, has letters of .6 em on average.

    Examples
    --------
    >>> from obygaze_film.page.figures import text_width
    >>> text_width("ill") < text_width("Mmm")
    True
    """
    width = 0.0
    for sign in text:
        if sign in NARROW:
            width += 0.4
        elif sign in WIDE or unicodedata.east_asian_width(sign) in "WF":
            width += 1.0
        elif sign.isupper():
            width += 0.76
        else:
            width += 0.64
    return 12 * width


def _figure(name: str, width: int, high: int, title: str, words: Words, *, alone: bool, **values: Any) -> str:
    own = Markup(asset("figures.css", "obygaze_film.page")) if alone else ""  # noqa: S704 - ours
    values |= {"width": width, "high": high, "title": title, "own": own}
    return Markup(template_page(f"figure_{name}.svg.j2", words, (), **values))  # noqa: S704 - escaped
