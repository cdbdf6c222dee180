"""Draw figures as SVG, for pages and articles: films by year with groups and trend, and parts of one film."""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
from markupsafe import Markup

from obygaze_film.claims import phrases
from obygaze_film.claims.of_film import no_passage
from obygaze_film.claims.of_groups import compared_share
from obygaze_film.claims.words import Words, clock, clock_span
from obygaze_film.notes import LATER
from obygaze_film.page import charts
from obygaze_film.page.html import template_page
from obygaze_models.report import asset

if TYPE_CHECKING:
    from obygaze_film.film_groups import ComparedFilm, FilmComparison
    from obygaze_film.page.view import FilmView

YEARS_LEFT, YEARS_RIGHT, YEARS_TOP, YEARS_HEIGHT = 50, 735, 10, 250
"""Place and height of the chart of years, in units of the figure."""

WIDTH: Final = 760
"""Width of a figure, in units; one whose names are long is wider."""

LEAST_COLUMN: Final = 360
"""Minimum width of what a film's figure draws beside its names, in units."""

LINE_HEIGHT: Final = 14
"""Height of a line of text, in units."""

GAP: Final = 14
"""Room between a figure's edge, its names and its columns, in units."""

CONTEXT_S: Final = 30.0
"""Seconds before and after a span that its figure shows too."""

STILLS_HEIGHT: Final = 40
"""Height of the strip of stills, in units."""

ROW_HEIGHTS: Final = {
    "stills": STILLS_HEIGHT,
    "passages": 12,
    "decided": 12,
    "probability": 120,
    "concepts": 14,
}
"""Kind of rows of a film's figure -> their height, in units."""

ROW_GAP: Final = 4
"""Room below each row, in units."""

MOST_TIMES: Final = 7
"""Maximum number of times on the axis of a film's figure."""

TIME_GAP: Final = 8
"""Minimum room between two times on the axis, in units."""

NARROW_LETTERS: Final = frozenset("iljtfrI.,:;'’|!()[] ")
WIDE_LETTERS: Final = frozenset("mwMWœæŒÆ@%—…")
"""Characters that are narrower, and wider, than others in every sans-serif font."""

AXIS_ENDS: Final = (0.1, 0.2, 0.4, 0.6, 0.8)
"""Possible ends of an axis of shares below 1."""


def axis_end(highest: float) -> float:
    """Choose the end of an axis of shares, which begins at 0: the smallest possible one above `highest`."""
    return next((end for end in AXIS_ENDS if highest <= end), 1.0)


def years_figure(compared: "FilmComparison", words: Words, *, is_own_file: bool = False) -> str:
    """Draw films' shares by year with their intervals, decades' means, and the trend with its band, as SVG.

    The trend is a line through the films' mean point, that of the mean year and the mean share; its band is
    between the lines through that point with the lowest and the highest slope of the trend's interval. A film
    that nobody judged has a hollow dot at the share that its model expects.

    Parameters
    ----------
    compared : FilmComparison
    words : Words
        The language of the texts.
    is_own_file : bool
        Whether the figure is a file of its own, with style and legend, and no part of a page.

    Returns
    -------
    str
        Empty if films of fewer than two different years are known.
    """
    dots = [_dot(film, compared, words) for film in compared.films if _can_be_drawn(film)]
    years = [dot.year for dot in dots]
    if len(set(years)) < 2:
        return ""
    groups = _groups_with_share(compared)
    scale = _years_scale(dots, groups)
    trend = _trend(compared)
    key = "as_concept" if compared.positive.is_concept else "as_level"
    axis = words.say("years_axis", marked=words.say(key, positive=compared.positive.text))
    legend: list[str] = []
    if is_own_file:
        legend = [line for text in _legend(compared, words) for line in _wrapped(text, WIDTH)]
    return _figure(
        "years",
        width=WIDTH,
        height=YEARS_HEIGHT + 50 + LINE_HEIGHT * len(legend),
        title=f"{words['years_title']}: {axis}",
        words=words,
        is_own_file=is_own_file,
        axis=axis,
        legend=legend,
        bottom=YEARS_HEIGHT + 44,
        x=scale.x,
        y=scale.y,
        left=YEARS_LEFT,
        right=YEARS_RIGHT,
        dots=dots,
        trend=None if trend is None else _trend_paths(trend, dots, scale),
        shares=np.linspace(0, scale.highest_share, 5).tolist(),
        decades=range(int(scale.first_year), int(scale.last_year) + 1, 10),
        blocks=groups if compared.by == "decade" else (),
    )


class YearsScale(NamedTuple):
    """The axes of `years_figure`: years to the right, and shares from 0 up to the highest one."""

    first_year: float
    last_year: float
    highest_share: float

    def x(self, year: float) -> float:
        """Return the x of a year."""
        n_years = self.last_year - self.first_year
        return round(YEARS_LEFT + (YEARS_RIGHT - YEARS_LEFT) * (year - self.first_year) / n_years, 1)

    def y(self, share: float) -> float:
        """Return the y of a share, which points down; shares beyond the axis are drawn at its end."""
        height = min(max(share / self.highest_share, 0.0), 1.0)
        return round(YEARS_TOP + YEARS_HEIGHT * (1 - height), 1)


class TrendPaths(NamedTuple):
    """SVG paths of a trend: its line, and the two triangles of its band, which meet in the mean point."""

    line: str
    band: list[str]


def _years_scale(dots: "Sequence[Dot]", groups: Sequence[Mapping[Any, Any]]) -> YearsScale:
    """Choose the axes: full decades that have all films, and shares up to the highest that is drawn.

    The highest share is the upper end of an interval, of a film or of a group, or an expected share.
    """
    highest_shares = [dot.film.rate.high if dot.film.rate else dot.film.expected for dot in dots]
    highest_shares += [group["high"] for group in groups]
    years = [dot.year for dot in dots]
    return YearsScale(
        first_year=min(years) // 10 * 10,
        last_year=max(years) // 10 * 10 + 10,
        highest_share=axis_end(max(highest_shares)),
    )


def _trend_paths(trend: Mapping[Any, Any], dots: "Sequence[Dot]", scale: YearsScale) -> TrendPaths:
    """Draw a trend from the first year of the films to the last one, as a line and its band.

    The band is two triangles with a corner in the judged films' mean point: one on each side of it, between
    the lines with the lowest and the highest slope. `trend` has the change of the share in ten years as
    `value`, and the ends of its interval as `low` and `high`.
    """
    judged = [(dot.year, dot.film.rate.value) for dot in dots if dot.film.rate]
    mean_year, mean_share = np.mean(judged, axis=0).tolist()

    def point(year: float, change: float) -> str:
        """Return x and y, in a year, of the line through the mean point with this change in ten years."""
        return f"{scale.x(year)} {scale.y(mean_share + change * (year - mean_year) / 10)}"

    mean_point = point(mean_year, 0.0)
    first, last = min(dot.year for dot in dots), max(dot.year for dot in dots)
    line = f"M{point(first, trend['value'])}L{point(last, trend['value'])}"
    triangles = [
        f"M{point(year, trend['low'])}L{mean_point}L{point(year, trend['high'])}Z" for year in (first, last)
    ]
    return TrendPaths(line, triangles)


def years_legend(compared: "FilmComparison", words: Words) -> str:
    """Explain the dots, intervals, trend and blocks that `years_figure` draws, in one paragraph."""
    return " ".join(_legend(compared, words))


def _legend(compared: "FilmComparison", words: Words) -> list[str]:
    """Write a sentence for each kind of element that `years_figure` draws of these films."""
    drawn = [film for film in compared.films if _can_be_drawn(film)]
    trend = _trend(compared)
    note = words.translated(trend["note"]) if trend else ""
    dots_key = "years_dots_concept" if compared.positive.is_concept else "years_dots"
    hollow_key = "years_hollow_labels" if compared.is_of_labels else "years_hollow"
    line_key = "years_line_noted" if note else "years_line"
    keys = []
    if any(film.rate for film in drawn):
        keys.append(dots_key)
    if any(film.rate and not film.rate.is_census for film in drawn):
        keys.append("years_intervals")
    if any(film.rate is None for film in drawn):
        keys.append(hollow_key)
    if trend is not None:
        keys.append(line_key)
    if compared.by == "decade" and _groups_with_share(compared):
        keys.append("years_blocks")
    facts = {"who": words.judge(compared.model), "note": note}
    return [words.say(key, **facts) for key in keys]


def _wrapped(text: str, figure_width: int) -> list[str]:
    """Break a text into lines that fit into a figure's width."""
    lines = [""]
    for word in text.split(" "):
        longer_line = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer_line) > figure_width - 2 * GAP:
            lines.append(word)
        else:
            lines[-1] = longer_line
    return lines


def _trend(compared: "FilmComparison") -> dict[Any, Any] | None:
    """Return the trend over the years, a row of `FilmComparison.changes`; None if there is none."""
    for row in compared.changes.to_dict("records"):
        if row["change"] == LATER and not np.isnan(row["value"]):
            return row
    return None


def _groups_with_share(compared: "FilmComparison") -> list[dict[Any, Any]]:
    """Return the rows of `FilmComparison.groups` that have a share: no reason is given against it."""
    return [row for row in compared.groups.to_dict("records") if not row["reason"]]


class Dot(NamedTuple):
    """A film in its year, and the label of its dot."""

    year: float
    film: "ComparedFilm"
    label: str


def _can_be_drawn(film: "ComparedFilm") -> bool:
    """Whether a film has a year, and a share by its judges or by its model."""
    has_share = film.rate is not None or not np.isnan(film.expected)
    return has_share and film.facts["year"].isdecimal()


def _dot(film: "ComparedFilm", compared: "FilmComparison", words: Words) -> Dot:
    """Make the dot of a film that can be drawn, labelled with its title, year and share."""
    title, year = film.facts["title"], film.facts["year"]
    label = phrases.film_share_sentence(title, year, compared_share(film, compared), words)
    return Dot(float(year), film, label)


class FigureRow(NamedTuple):
    """A row of the figure of a film: its name, its place from the top and its height, in units."""

    name: str
    top: int
    height: int

    @property
    def baseline(self) -> int:
        """Baseline of the name: 4 units below the row's middle, where letters of 12 units look centred."""
        return self.top + self.height // 2 + 4


class FigurePart(NamedTuple):
    """The part of a film that a figure draws, and the span in it that the figure is about.

    Attributes
    ----------
    start_s, end_s : float
        Ends of the part, in seconds.
    span_start_s, span_end_s : float
        Ends of the span.
    left, width : int
        Place of the part in the figure, in units.
    """

    start_s: float
    end_s: float
    span_start_s: float
    span_end_s: float
    left: int
    width: int

    def x(self, at_s: float) -> float:
        """Return the x of a time in the figure."""
        share = (at_s - self.start_s) / (self.end_s - self.start_s)
        return round(self.left + self.width * share, 1)


class FigureStill(NamedTuple):
    """A still in a figure: its left end and width, in units, and the picture as a data address."""

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
    and the concepts that are found better than chance. Its left margin is as wide as its longest name. What
    is drawn beside it is at least `LEAST_COLUMN` wide: a figure with long names is wider than `WIDTH`.

    Parameters
    ----------
    view : FilmView
    start_s, end_s : float
        Ends of the span, in seconds; a span that goes on after the film ends with it.
    decisions : sequence of mapping
        What people decided, as the desk describes it to its script; those in the figure's part are drawn.
    stills : Stills, optional
        Stills of the user's copy of the film: a strip of them is drawn at the top.
    """
    words = view.words
    part_start_s, part_end_s = _ends_with_context(start_s, end_s, view.whole_s)
    decisions_of_row = _decided_rows(decisions, part_start_s, part_end_s, words)
    passages = _passages_between(view, part_start_s, part_end_s)
    concepts = [shown for shown in view.concepts if shown.concept.is_found]
    names_of_concepts = [shown.name for shown in concepts]
    names = [words["segments"], words["probability"], *decisions_of_row, *names_of_concepts]
    left, column, right = _widths(names, part_end_s)
    width = left + column + right
    span_end_s = min(end_s, view.whole_s)
    part = FigurePart(part_start_s, part_end_s, start_s, span_end_s, left=left, width=column)
    heading = _wrapped(f"{view.heading}, {clock_span(start_s, span_end_s)}", width)
    names_of_kind = {
        "stills": [""] if stills else [],
        "passages": [words["segments"]] if passages else [],
        "decided": [*decisions_of_row],
        "probability": [words["probability"]],
        "concepts": names_of_concepts,
    }
    layout = _layout(names_of_kind, top=12 + LINE_HEIGHT * len(heading))
    sentences = _sentences_below(view, has_passages=bool(passages))
    notes = [line for text in sentences for line in _wrapped(text, width)]
    return _figure(
        "film",
        width=width,
        height=layout.bottom + 24 + LINE_HEIGHT * len(notes),
        title=words.say("named", name=view.heading, what=" ".join(sentences)),
        words=words,
        is_own_file=True,
        view=view,
        part=part,
        heading=heading,
        notes=notes,
        bottom=layout.bottom,
        rows=layout.rows,
        strip=_strip(stills, part) if stills else (),
        passages=passages,
        decided=list(decisions_of_row.values()),
        concepts=concepts,
        ticks=_tick_times(part),
    )


def _ends_with_context(start_s: float, end_s: float, film_s: float) -> tuple[float, float]:
    """Return the ends of the part that a figure shows: a span with `CONTEXT_S` around it, within the film.

    Of a span that begins after the film's end, the figure shows the film's last seconds.
    """
    part_end_s = min(film_s, end_s + CONTEXT_S)
    last_start_s = max(0.0, part_end_s - CONTEXT_S)
    part_start_s = min(max(0.0, start_s - CONTEXT_S), last_start_s)
    return part_start_s, part_end_s


def _passages_between(view: "FilmView", start_s: float, end_s: float) -> list[Mapping[str, Any]]:
    """Return the cards of passages that reach the threshold and lie, in part at least, between two times."""
    return [
        card for card in view.cards if card["start"] < end_s and card["end"] > start_s and not card["below"]
    ]


def _widths(names: Sequence[str], end_s: float) -> tuple[int, int, int]:
    """Return the widths of the names, of the column in which things are drawn, and of the right margin.

    The right margin has half of the last time on the axis, which is centred on the column's end.
    """
    left = GAP + max(math.ceil(text_width(name)) for name in names)
    right = math.ceil(text_width(clock(end_s)) / 2)
    column = max(WIDTH - right - left, LEAST_COLUMN)
    return left, column, right


def _sentences_below(view: "FilmView", *, has_passages: bool) -> list[str]:
    """Write what stands below a figure of a film; `has_passages` tells whether any is drawn in it."""
    return phrases.figure_notes(
        view.positive,
        view.model_title,
        view.words,
        planted=phrases.planted_sentence(view.model, view.words),
        threshold=_threshold_sentence(view, has_passages=has_passages),
        concepts_left_out=[shown.name for shown in view.concepts if not shown.concept.is_found],
    )


def _threshold_sentence(view: "FilmView", *, has_passages: bool) -> str:
    """Say of a film's figure which threshold its passages reach, or that no passage of the film reaches it.

    Empty where the film has such passages, but none in the figure's part, or where no passage could reach it.
    """
    threshold_p = view.model.threshold_p
    if threshold_p is None or not view.time.judged_s:
        return ""
    if has_passages:
        return phrases.figure_threshold_sentence(threshold_p, view.words)
    if view.segments["reaches"].any():
        return ""
    return phrases.no_passage_sentence(no_passage(view.model), view.words)


class FigureLayout(NamedTuple):
    """The rows of a figure of a film, by kind, and the y below the last one."""

    rows: dict[str, list[FigureRow]]
    bottom: int


def _layout(names_of_kind: Mapping[str, Sequence[str]], top: int) -> FigureLayout:
    """Lay out a row for each name, from `top` down, in the order of the kinds (`ROW_HEIGHTS`)."""
    rows: dict[str, list[FigureRow]] = {}
    bottom = top
    for kind, names in names_of_kind.items():
        rows[kind] = []
        for name in names:
            rows[kind].append(FigureRow(name, bottom, ROW_HEIGHTS[kind]))
            bottom += ROW_HEIGHTS[kind] + ROW_GAP
    return FigureLayout(rows, bottom)


def _strip(stills: Stills, part: FigurePart) -> list[FigureStill]:
    """Lay stills side by side over a part of a film; each shows the film at its middle.

    There are about as many as fit with their proportions kept (a still is `STILLS_HEIGHT` high). Together
    they fill the width, so that each is stretched or narrowed a little; after each is a gap of one unit.
    """
    n_stills = max(1, round(part.width * stills.height / stills.width / STILLS_HEIGHT))
    width = part.width / n_stills
    strip = []
    for index in range(n_stills):
        middle_s = part.start_s + (part.end_s - part.start_s) * (index + 0.5) / n_stills
        left = round(part.left + index * width, 1)
        strip.append(FigureStill(left, round(width - 1, 1), stills.address(middle_s)))
    return strip


def _tick_times(part: FigurePart) -> list[float]:
    """Choose the times of the figure's axis, in seconds: multiples of a step, such as 10 or 60 s.

    It is the smallest step of `charts.TICKS_S` by which the texts of the times don't touch.
    """
    length_s = part.end_s - part.start_s
    width_of_time = text_width(clock(part.end_s)) + TIME_GAP
    most_times = min(MOST_TIMES, part.width / width_of_time)
    steps_with_room = [step for step in charts.TICKS_S if length_s / step <= most_times]
    step_s = steps_with_room[0] if steps_with_room else charts.TICKS_S[-1]
    first_s = math.ceil(part.start_s / step_s) * step_s
    return [float(time) for time in range(first_s, int(part.end_s) + 1, step_s)]


def _decided_rows(
    decisions: Sequence[Mapping[str, Any]], start_s: float, end_s: float, words: Words
) -> dict[str, list[Mapping[str, Any]]]:
    """Group the decisions of a part of a film by level, judge, and whether they were blind.

    Returns
    -------
    dict
        Name of the group, made of its level, its judge and "blindly" -> its decisions.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for decision in decisions:
        if decision["level"] and decision["start"] < end_s and decision["end"] > start_s:
            judge = decision["who"]
            if decision["kind"] == "agreed":
                judge = words.say("desk_agreed", judges=decision["judges"])
            name = words.say("figure_decided", level=decision["title"], who=judge)
            if decision["blind"]:
                name += f" ({words['desk_blindly']})"
            groups.setdefault(name, []).append(decision)
    return groups


def text_width(text: str) -> float:
    """Estimate the width of a text in units, in letters of 12 units of a sans-serif font.

    The estimate is rather too large than too small: it is for the widest of the common fonts, DejaVu Sans,
    whose letters are 0.6 em wide on average. An em is the size of the font.

    Examples
    --------
    >>> from obygaze_film.page.figures import text_width
    >>> text_width("ill") < text_width("Mmm")
    True
    """
    width_em = 0.0
    for letter in text:
        is_full_width = unicodedata.east_asian_width(letter) in "WF"
        if letter in NARROW_LETTERS:
            width_em += 0.4
        elif letter in WIDE_LETTERS or is_full_width:
            width_em += 1.0
        elif letter.isupper():
            width_em += 0.76
        else:
            width_em += 0.64
    return 12 * width_em


def _figure(
    name: str,
    *,
    width: int,
    height: int,
    title: str,
    words: Words,
    is_own_file: bool,
    **values: Any,
) -> str:
    """Fill the template of a figure; a figure that is a file of its own contains its style sheet."""
    own_style = Markup(asset("figures.css", "obygaze_film.page")) if is_own_file else ""  # noqa: S704 - ours
    values |= {"width": width, "height": height, "title": title, "own_style": own_style}
    return Markup(template_page(f"figure_{name}.svg.j2", words, (), **values))  # noqa: S704 - escaped
