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

MIN_COLUMN: Final = 360
"""Minimum width of what a film's figure draws beside its names, in units."""

LINE_HEIGHT: Final = 14
"""Height of a line of text, in units."""

GAP: Final = 14
"""Room between a figure's edge, its names and its columns, in units."""

AXIS_TITLE_BASELINE: Final = YEARS_HEIGHT + 44
"""Baseline of the title of the axis of years, in units from the top; the legend begins below it."""

LEGEND_TOP: Final = YEARS_HEIGHT + 50
"""Height of the figure of years without a legend, in units."""

ROOM_ABOVE_HEADING: Final = 12
ROOM_FOR_TIMES: Final = 24
"""Room above a film figure's heading, and room for the times of the axis below its rows, in units."""

LETTER_HEIGHT: Final = 12
"""Size of the font in figures, in units."""

N_GRID_LINES: Final = 5
"""Number of horizontal lines in the chart of years, from a share of 0 to the highest share."""

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

MAX_TIMES: Final = 7
"""Maximum number of times on the axis of a film's figure."""

TIME_GAP: Final = 8
"""Minimum room between two times on the axis, in units."""

NARROW_LETTERS: Final = frozenset("iljtfrI.,:;'’|!()[] ")
WIDE_LETTERS: Final = frozenset("mwMWœæŒÆ@%—…")
"""Characters that are narrower, and wider, than others in every sans-serif font."""

AXIS_ENDS: Final = (0.1, 0.2, 0.4, 0.6, 0.8)
"""Possible ends of an axis of shares below 1."""


def axis_end(highest: float) -> float:
    """Choose the end of an axis of shares from 0 on: .1, .2, .4, .6, .8 or 1, and not below `highest`."""
    for end in AXIS_ENDS:
        if highest <= end:
            return end
    return 1.0


def years_figure(compared: "FilmComparison", words: Words, *, is_own_file: bool = False) -> str:
    """Draw films' shares by year with their intervals, decades' means, and the trend with its band, as SVG.

    The trend is a line through the films' mean point, that of the mean year and the mean share; its band is
    between the lines through that point with the lowest and the highest slope of the trend's interval. A film
    that nobody judged has a hollow dot at the share that its model expects.

    Parameters
    ----------
    compared : FilmComparison
        The compared films, with their groups and the trend.
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
    years = {dot.year for dot in dots}
    if len(years) < 2:
        return ""

    groups = _groups_with_share(compared)
    scale = _years_scale(dots, groups)
    trend = _trend(compared)
    axis_title = _share_axis_title(compared, words)

    # On a page the legend is a paragraph of its own (`years_legend`).
    legend_lines: list[str] = []
    if is_own_file:
        for sentence in _legend(compared, words):
            legend_lines += _wrapped(sentence, WIDTH)
    return _figure(
        "years",
        width=WIDTH,
        height=LEGEND_TOP + LINE_HEIGHT * len(legend_lines),
        title=f"{words['years_title']}: {axis_title}",
        words=words,
        is_own_file=is_own_file,
        # The axes
        axis=axis_title,
        x=scale.x,
        y=scale.y,
        left=YEARS_LEFT,
        right=YEARS_RIGHT,
        shares=np.linspace(0, scale.highest_share, N_GRID_LINES).tolist(),
        decades=range(int(scale.first_year), int(scale.last_year) + 1, 10),
        # What is drawn between them
        dots=dots,
        trend=None if trend is None else _trend_paths(trend, dots, scale),
        blocks=groups if compared.by == "decade" else (),
        # What is written below
        legend=legend_lines,
        bottom=AXIS_TITLE_BASELINE,
    )


def _share_axis_title(compared: "FilmComparison", words: Words) -> str:
    """Return the title of the axis of shares, which names the level or concept whose time is measured."""
    key = "as_concept" if compared.positive.is_concept else "as_level"
    marked = words.say(key, positive=compared.positive.text)
    return words.say("years_axis", marked=marked)


class YearsScale(NamedTuple):
    """The axes of `years_figure`: years to the right, and shares from 0 up to the highest one."""

    first_year: float
    last_year: float
    highest_share: float

    def x(self, year: float) -> float:
        """Return the horizontal position of a year in the figure, in units from the left.

        The axis goes from `YEARS_LEFT` at the first year to `YEARS_RIGHT` at the last one.
        """
        n_years = self.last_year - self.first_year
        return round(YEARS_LEFT + (YEARS_RIGHT - YEARS_LEFT) * (year - self.first_year) / n_years, 1)

    def y(self, share: float) -> float:
        """Return the vertical position of a share in the figure, in units from the top.

        The axis begins at the bottom, with a share of 0, and rises over `YEARS_HEIGHT` units. Shares below 0
        or above the highest share of the axis are drawn at its ends.
        """
        share_of_axis = min(max(share / self.highest_share, 0.0), 1.0)
        return round(YEARS_TOP + YEARS_HEIGHT * (1 - share_of_axis), 1)


class TrendPaths(NamedTuple):
    """SVG paths of a trend: its line, and the two triangles of its band, which meet in the mean point."""

    line: str
    band: list[str]


def _years_scale(dots: "Sequence[Dot]", groups: Sequence[Mapping[Any, Any]]) -> YearsScale:
    """Choose the axes: whole decades around all films, and shares up to the highest that is drawn.

    `groups` are rows of `FilmComparison.groups`.
    """
    shares = []
    for dot in dots:
        rate = dot.film.rate
        # A judged film has an interval; any other film only has the share that its model expects.
        shares.append(rate.high if rate else dot.film.expected)
    shares += [group["high"] for group in groups]
    years = [dot.year for dot in dots]
    # From the beginning of the first decade to the end of the last one.
    return YearsScale(
        first_year=min(years) // 10 * 10,
        last_year=max(years) // 10 * 10 + 10,
        highest_share=axis_end(max(shares)),
    )


def _trend_paths(trend: Mapping[Any, Any], dots: "Sequence[Dot]", scale: YearsScale) -> TrendPaths:
    """Draw a trend from the first year of the films to the last one, as a line and its band.

    `trend` has the change of the share in ten years as `value`, and the ends of its interval as `low` and
    `high`. All three lines go through the mean point of the judged films. The band lies between the lines of
    `low` and `high`: a triangle before the mean point, and one after it.
    """
    judged = [(dot.year, dot.film.rate.value) for dot in dots if dot.film.rate]
    mean_year, mean_share = np.mean(judged, axis=0).tolist()

    def point(year: float, change: float) -> str:
        """Return where a line through the mean point is in a year, as x and y in units for an SVG path.

        `change` is by how much the share rises on the line in ten years.
        """
        share = mean_share + change * (year - mean_year) / 10
        return f"{scale.x(year)} {scale.y(share)}"

    mean_point = point(mean_year, 0.0)
    years = [dot.year for dot in dots]
    first_and_last = (min(years), max(years))
    start, end = (point(year, trend["value"]) for year in first_and_last)
    triangles = []
    for year in first_and_last:
        lowest, highest = point(year, trend["low"]), point(year, trend["high"])
        triangles.append(f"M{lowest}L{mean_point}L{highest}Z")
    return TrendPaths(f"M{start}L{end}", triangles)


def years_legend(compared: "FilmComparison", words: Words) -> str:
    """Explain the dots, intervals, trend and blocks that `years_figure` draws, in one paragraph."""
    return " ".join(_legend(compared, words))


def _legend(compared: "FilmComparison", words: Words) -> list[str]:
    """Write a sentence for each kind of element that `years_figure` draws of these films."""
    drawn = [film for film in compared.films if _can_be_drawn(film)]
    judged_rates = [film.rate for film in drawn if film.rate is not None]
    sentences = []
    # Full dots: films with a share by people's judgements.
    if judged_rates:
        key_of_dots = "years_dots_concept" if compared.positive.is_concept else "years_dots"
        sentences.append(words[key_of_dots])
    # Vertical lines: intervals. A film of which every window was judged (a census) has none.
    if any(not rate.is_census for rate in judged_rates):
        sentences.append(words["years_intervals"])
    # Hollow dots: films that nobody judged, at the share by their model, or by labels instead of a model.
    has_unjudged_films = len(judged_rates) < len(drawn)
    if has_unjudged_films:
        key_of_hollow = "years_hollow_labels" if compared.is_of_labels else "years_hollow"
        sentences.append(words.say(key_of_hollow, who=words.judge(compared.model)))
    # The line: the trend over the years.
    trend = _trend(compared)
    if trend is not None:
        note = words.translated(trend["note"])
        sentences.append(words.say("years_line_noted", note=note) if note else words["years_line"])
    # Rectangles: the decades' mean shares with their intervals.
    if compared.by == "decade" and _groups_with_share(compared):
        sentences.append(words["years_blocks"])
    return sentences


def _wrapped(text: str, figure_width: int) -> list[str]:
    """Break a text into lines that fit into a figure's width, in units.

    A word is broken only if it is wider than a line, as a long title in Japanese is, which has no blanks.
    """
    width_of_lines = figure_width - 2 * GAP  # there is room at either edge
    lines = [""]
    for word in text.split(" "):
        first_part, *other_parts = _parts_of_word(word, width_of_lines)
        longer_line = f"{lines[-1]} {first_part}".strip()
        is_first_word = not lines[-1]
        if is_first_word or text_width(longer_line) <= width_of_lines:
            lines[-1] = longer_line
        else:
            lines.append(first_part)
        lines += other_parts
    return lines


def _parts_of_word(word: str, width_of_lines: float) -> list[str]:
    """Break a word that is wider than a line, in units, into parts that fit; any other word is one part."""
    parts = [""]
    for letter in word:
        longer_part = parts[-1] + letter
        is_accent = unicodedata.combining(letter) > 0  # which stays with its letter
        if is_accent or text_width(longer_part) <= width_of_lines:
            parts[-1] = longer_part
        else:
            parts.append(letter)
    return parts


def _trend(compared: "FilmComparison") -> dict[Any, Any] | None:
    """Return the trend of the films' shares over the years; None if there is none.

    It is a row of `FilmComparison.changes`: `value`, `low` and `high` are the change of the share in ten
    years and the ends of its interval.
    """
    for row in compared.changes.to_dict("records"):
        is_trend = row["change"] == LATER  # the other rows compare two groups
        if is_trend and not np.isnan(row["value"]):
            return row
    return None


def _groups_with_share(compared: "FilmComparison") -> list[dict[Any, Any]]:
    """Return the rows of `FilmComparison.groups` that have a share: no reason is given against it.

    Examples
    --------
    >>> import pandas as pd
    >>> from types import SimpleNamespace
    >>> groups = pd.DataFrame({"group": ["noir", "western"], "reason": ["", "too few windows"]})
    >>> [row["group"] for row in _groups_with_share(SimpleNamespace(groups=groups))]
    ['noir']
    """
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
    """Make the dot of a film in the figure of years; its label is a sentence with title, year and share.

    The film can be drawn (`_can_be_drawn`): it has a year and a share. `words` is the language of the label.
    """
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
        """Return the horizontal position of a time of the film, in seconds, in the figure, in units."""
        share_of_part = (at_s - self.start_s) / (self.end_s - self.start_s)
        return round(self.left + self.width * share_of_part, 1)


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

    The figure has a row for the model's passages, rows for what people decided, one for the probability with
    its band and the threshold, and one for each concept that is found better than chance. The names of the
    rows are at the left. The column of the rows is at least `MIN_COLUMN` wide, so that a figure with long
    names is wider than `WIDTH`.

    Parameters
    ----------
    view : FilmView
        The film as its page shows it.
    start_s, end_s : float
        Ends of the span, in seconds; a span that goes on after the film ends with it.
    decisions : sequence of mapping
        What people decided, as the desk describes it to its script; those in the figure's part are drawn.
    stills : Stills, optional
        Stills of the user's copy of the film: a strip of them is drawn at the top.

    Returns
    -------
    str
        The figure as SVG.
    """
    words = view.words
    span_end_s = min(end_s, view.whole_s)
    part_start_s, part_end_s = _add_context(start_s, end_s, view.whole_s)

    # What is drawn, and the names of the rows of each kind: one row, several, or none
    passages = _passages_between(view, part_start_s, part_end_s)
    decisions_of_row = _decided_rows(decisions, part_start_s, part_end_s, words)
    concepts = [shown for shown in view.concepts if shown.concept.is_found]
    names_of_kind = {
        "stills": [""] if stills else [],
        "passages": [words["segments"]] if passages else [],
        "decided": list(decisions_of_row),
        "probability": [words["probability"]],
        "concepts": [shown.name for shown in concepts],
    }

    # Widths of the names at the left, of the column with the rows, and of the margin. The row of passages is
    # not drawn where there are none, but its name counts all the same, so that figures of a film look alike.
    names_that_count = [words["segments"]]
    for names_of_rows in names_of_kind.values():
        names_that_count += names_of_rows
    widths = _widths(names_that_count, part_end_s)
    width = widths.names + widths.column + widths.right_margin
    # Where in the figure a time lies
    part = FigurePart(part_start_s, part_end_s, start_s, span_end_s, left=widths.names, width=widths.column)

    # The heading above the rows, and the sentences below them
    heading = _wrapped(f"{view.heading}, {clock_span(start_s, span_end_s)}", width)
    layout = _layout(names_of_kind, top=ROOM_ABOVE_HEADING + LINE_HEIGHT * len(heading))
    sentences = _sentences_below(view, has_passages=bool(passages))
    notes: list[str] = []
    for sentence in sentences:
        notes += _wrapped(sentence, width)

    return _figure(
        "film",
        width=width,
        height=layout.bottom + ROOM_FOR_TIMES + LINE_HEIGHT * len(notes),
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


def _add_context(start_s: float, end_s: float, film_s: float) -> tuple[float, float]:
    """Return the ends of the part that a figure shows: a span, and `CONTEXT_S` around it within the film."""
    part_end_s = min(film_s, end_s + CONTEXT_S)
    part_start_s = max(0.0, start_s - CONTEXT_S)
    # If the span begins after the film's end, the part is the film's last seconds.
    latest_start_s = max(0.0, part_end_s - CONTEXT_S)
    return min(part_start_s, latest_start_s), part_end_s


def _passages_between(view: "FilmView", start_s: float, end_s: float) -> list[Mapping[str, Any]]:
    """Return the passages (`FilmView.cards`) that reach the threshold and overlap a span."""
    passages: list[Mapping[str, Any]] = []
    for card in view.cards:
        overlaps = card["start"] < end_s and card["end"] > start_s
        reaches_threshold = not card["below"]
        if overlaps and reaches_threshold:
            passages.append(card)
    return passages


class FigureWidths(NamedTuple):
    """Widths of the three columns of a film's figure, in units: row names, rows, and right margin."""

    names: int
    column: int
    right_margin: int


def _widths(names: Sequence[str], end_s: float) -> FigureWidths:
    """Choose the widths of a film's figure: the column of names, the column that is drawn, the right margin.

    `names` are those of the rows, and the axis of times ends at `end_s` seconds. The figure is `WIDTH` wide,
    unless long names leave the drawn column less than `MIN_COLUMN`.
    """
    names_width = GAP + max(math.ceil(text_width(name)) for name in names)
    # The last time on the axis is centred on the column's end: half of it is in the margin.
    right_margin = math.ceil(text_width(clock(end_s)) / 2)
    column = max(WIDTH - right_margin - names_width, MIN_COLUMN)
    return FigureWidths(names_width, column, right_margin)


def _sentences_below(view: "FilmView", *, has_passages: bool) -> list[str]:
    """Write the sentences below a figure of a film.

    They say what the model finds, whether its training labels were planted by a program, which threshold the
    passages reach, and which concepts are left out. `has_passages` tells whether the figure has any passage.
    """
    words = view.words
    sentences = [
        words.say("figure_note", positive=view.positive, model=view.model_title),
        phrases.planted_sentence(view.model, words),
        _threshold_sentence(view, has_passages=has_passages),
    ]
    # Tests do not show that these are found better than chance.
    left_out = [shown.name for shown in view.concepts if not shown.concept.is_found]
    if left_out:
        sentences.append(words.counted("figure_without", len(left_out), names=words.listed(left_out)))
    return [sentence for sentence in sentences if sentence]


def _threshold_sentence(view: "FilmView", *, has_passages: bool) -> str:
    """Write which threshold the passages of a figure reach, or that no passage of the film reaches it.

    The sentence is empty if there is no threshold, if the film has no probability, or if only passages
    outside of the figure reach it. `has_passages` tells whether the figure has any passage.
    """
    threshold_p = view.model.threshold_p
    has_probabilities = view.time.judged_s > 0
    if threshold_p is None or not has_probabilities:
        return ""  # no passage could reach it
    if has_passages:
        return phrases.figure_threshold_sentence(threshold_p, view.words)
    if view.segments["reaches"].any():
        return ""  # passages reach it in other parts of the film
    return phrases.no_passage_sentence(no_passage(view.model), view.words)


class FigureLayout(NamedTuple):
    """The rows of a film's figure by kind, and how far from the top the last one ends, in units."""

    rows: dict[str, list[FigureRow]]
    bottom: int


def _layout(names_of_kind: Mapping[str, Sequence[str]], top: int) -> FigureLayout:
    """Lay out a row for each name, from `top` down, in the order of `names_of_kind` (kind of rows -> names).

    Rows of a kind have the same height (`ROW_HEIGHTS`), and there is room of `ROW_GAP` below each.

    Examples
    --------
    >>> rows, bottom = _layout({"passages": ["model"], "concepts": ["Body", "Voice"]}, top=20)
    >>> rows["concepts"]
    [FigureRow(name='Body', top=36, height=14), FigureRow(name='Voice', top=54, height=14)]
    >>> bottom
    72
    """
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

    All are `STILLS_HEIGHT` high. Together they fill the width, so that each is a little wider or narrower
    than its proportions ask for.
    """
    # The width of the strip, divided by the width of a still that is `STILLS_HEIGHT` high.
    n_stills = max(1, round(part.width * stills.height / stills.width / STILLS_HEIGHT))
    width = part.width / n_stills
    gap = 1  # after each still
    strip = []
    for index in range(n_stills):
        middle_s = part.start_s + (part.end_s - part.start_s) * (index + 0.5) / n_stills
        left = round(part.left + index * width, 1)
        strip.append(FigureStill(left, round(width - gap, 1), stills.address(middle_s)))
    return strip


def _tick_times(part: FigurePart) -> list[float]:
    """Choose the times of the figure's axis, in seconds: multiples of a step, such as 10 or 60 s.

    The step is the smallest of `charts.TICKS_S` by which the texts of the times don't touch.
    """
    # How many times there is room for; the last time has the longest text.
    width_of_time = text_width(clock(part.end_s)) + TIME_GAP
    n_with_room = min(MAX_TIMES, part.width / width_of_time)

    length_s = part.end_s - part.start_s
    steps_with_room = [step for step in charts.TICKS_S if length_s / step <= n_with_room]
    step_s = steps_with_room[0] if steps_with_room else charts.TICKS_S[-1]

    # From the first multiple of the step in the part.
    first_s = math.ceil(part.start_s / step_s) * step_s
    return [float(time_s) for time_s in range(first_s, int(part.end_s) + 1, step_s)]


def _decided_rows(
    decisions: Sequence[Mapping[str, Any]], start_s: float, end_s: float, words: Words
) -> dict[str, list[Mapping[str, Any]]]:
    """Group the decisions of a part of a film into rows: by level, judge, and whether they were blind.

    Decisions are as `page.view_model.decisions_data` describes them. Those without a level are only notes,
    and are left out.

    Returns
    -------
    dict
        Name of the row, made of its level, its judge and "blindly" -> its decisions.
    """
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for decision in decisions:
        overlaps = decision["start"] < end_s and decision["end"] > start_s
        if not decision["level"] or not overlaps:
            continue
        judge = decision["who"]
        if decision["kind"] == "agreed":  # a decision on which several judges agreed
            judge = words.say("desk_agreed", judges=decision["judges"])
        name = words.say("figure_decided", level=decision["title"], who=judge)
        if decision["blind"]:
            name += f" ({words['desk_blindly']})"
        rows.setdefault(name, []).append(decision)
    return rows


def text_width(text: str) -> float:
    """Estimate the width of a text in units, in letters of `LETTER_HEIGHT` of a sans-serif font.

    The estimate is rather too large than too small: it is for the widest of the common fonts, DejaVu Sans,
    whose letters are 0.6 em wide on average. An em is the size of the font.

    Examples
    --------
    >>> from obygaze_film.page.figures import LETTER_HEIGHT, text_width
    >>> text_width("ill") < text_width("Mmm")
    True
    >>> text_width("夜") / LETTER_HEIGHT  # an em
    1.0
    """
    width_em = 0.0
    # Widths of four kinds of letters in DejaVu Sans, rather too large than too small.
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
    return LETTER_HEIGHT * width_em


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
    """Fill the template of a figure; a figure that is a file of its own contains its style sheet.

    `values` are the variables of the template that only this figure has.
    """
    own_style = Markup(asset("figures.css", "obygaze_film.page")) if is_own_file else ""  # noqa: S704 - ours
    figure = template_page(
        f"figure_{name}.svg.j2",
        words,
        styles=(),
        width=width,
        height=height,
        title=title,
        own_style=own_style,
        **values,
    )
    return Markup(figure)  # noqa: S704 - the template escaped it
