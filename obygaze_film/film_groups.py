"""Compare groups of scored films: match films with a table of facts, estimate means, differences, a trend."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.identity import same_names
from obygaze_features.io import local_path
from obygaze_features.manifest import (
    Manifest,
    Problems,
    find_film,
    name_hint,
    read_table,
    same_films,
)
from obygaze_features.manifest import Row as TableRow
from obygaze_features.text import composed, number_of, rounded, unsuitable
from obygaze_film.cells import Cells, annotator_of, cells_by, cells_of
from obygaze_film.comparison import (
    MIN_FILMS,
    MIN_FILMS_OF_TREND,
    Estimate,
    FilmSample,
    Floats,
    estimate_contrast,
    estimate_groups,
    sample_of,
)
from obygaze_film.errors import FilmError
from obygaze_film.film_time import BLACK_OR_CREDITS, MIN_SAID_S, staging_means
from obygaze_film.judged_rate import (
    agreement_of_judges,
    alpha_of_judges,
    correct_rates,
    counted_windows,
    main_rate,
    notes_of_pairs,
)
from obygaze_film.judged_windows import (
    JudgedFilm,
    JudgedWindows,
    WindowCounts,
    blind_judgements,
    judged_film,
    needed_windows,
    refuse_labels_of_drawn_windows,
    votes,
)
from obygaze_film.notes import LATER, Message, counted_message, judge_name, message
from obygaze_film.positive import Positive, positive_of
from obygaze_film.schema import CorrectedRate, JudgesAgreement, JudgesAlpha
from obygaze_film.timeline import Timeline, shared_model

ALL: Final = message("all_films_name")
"""Name of the only group, where no column is given."""

MIN_TREND_VALUES: Final = 3
"""Minimum number of values of a trend's column among judged films; two are a difference of groups."""

YEARS_OF_TREND: Final = 10
"""Years by which a trend gives the change of the share (`LATER` names them)."""

LARGEST_NUMBER: Final = 1e9
"""Largest number in a trend's column: in sums of larger ones, rounding errors would decide."""

FEW_FILMS: Final = 3
"""If fewer judged films have any positive window, or any negative one, a note says how few they are."""

FIRST_YEAR: Final = 1870
"""Earliest year of a film that a table may give; the first films are from the 1880s."""

LAST_YEAR: Final = 2100
"""Latest year of a film that a table may give."""

FILM_COLUMNS: Final = ("movie", "title")
"""Columns that say which film a row is of; the first of them that the table has is used."""

FACT_COLUMNS: Final = ("title", "year", "sha256")
"""Further columns with a meaning; any other column may be one of groups or of a trend."""

MAX_NAMES: Final = 50
"""Films that a note names; a table of all films there are has thousands that were not scored."""

_DATED: Final = re.compile(r"(.+?)(?:,? \((\d{4})\))", re.ASCII)
"""A title with its year: `Title (1999)` or `Title, (1999)`."""

NO_ESTIMATE: Final = Estimate()
"""Cells of groups and changes that have no value: NaN."""

Row = dict[str, Any]
"""Row of the table of groups or of changes: column -> cell (`FilmComparison`)."""

Facts = Mapping[str, Mapping[str, str]]
"""Cells of a table of films, by column, of each film."""


class ShareWindows(NamedTuple):
    """How many windows a share rests on.

    Attributes
    ----------
    n : int
        Judged windows that count, as judges were sure of them. `ComparedFilm` says whether one judge must be
        sure, or all.
    n_unsure : int
        Judged windows that do not count, as judges were not sure.
    """

    n: int
    n_unsure: int


@dataclass(frozen=True, eq=False, slots=True)
class ComparedFilm:
    """A film in a comparison.

    It has two shares, of different windows. Its part in the share of its group is of windows that any of its
    judges judged. Its own share is of windows that all of its judges judged, in the order of the draw up to
    the first window that one of them did not (the first gap).

    Attributes
    ----------
    timeline : Timeline
    facts : mapping
        Column -> cell; `title` and `year` among them.
    group : str
    x : float
        Its number in the trend's column; NaN without one.
    sample : FilmSample
        What the group's estimate is made of.
    rate : CorrectedRate or None
        Its own share; None if no judge, or panel, judged enough of it.
    expected : float
        The rate by the model alone; NaN if the model has none.
    counts : WindowCounts or None
        Of the windows that anybody judged, and those of which anybody was sure; None if nobody judged any.
    is_hidden : bool
        Whether it has judgements that are not shown yet.
    has_unsure : bool
        Whether one of its judges was not sure of a window, which then counts for the others alone.
    has_unread : bool
        Whether a part of it that is worth saying could not be read, and counts in no share.
    shared_counts : WindowCounts or None
        Of the windows that all of its judges judged; None if they are not several.
    """

    timeline: Timeline
    facts: Mapping[str, str]
    group: str
    x: float
    sample: FilmSample
    rate: CorrectedRate | None
    expected: float
    counts: WindowCounts | None = None
    is_hidden: bool = False
    has_unsure: bool = False
    has_unread: bool = False
    shared_counts: WindowCounts | None = None

    @property
    def n_after_gap(self) -> int:
        """Number of windows that all of its judges judged, but after the first gap of the draw.

        They do not count in the film's own share. 0 if it has one judge.
        """
        return 0 if self.shared_counts is None else self.shared_counts.after_gap

    @property
    def windows_of_group(self) -> ShareWindows:
        """The windows that count in its group's share: those of which at least one judge was sure.

        No window counts if too few were judged: then the sample is empty.
        """
        if self.counts is None or self.sample.n == 0:
            return ShareWindows(n=0, n_unsure=0)
        n_unsure = self.counts.judged - self.counts.sure  # no judge was sure
        return ShareWindows(n=self.sample.n, n_unsure=n_unsure)

    @property
    def windows_of_share(self) -> ShareWindows:
        """The windows that count in the film's own share: those of which each of its judges was sure.

        For a film without a share, as too few were judged, they are those that were judged for one so far.
        """
        if self.rate is not None:
            return ShareWindows(n=self.rate.n, n_unsure=self.rate.n_unsure)
        # If several people judged, `shared_counts` is of the windows that all of them judged. Of a single
        # judge there is none, and `counts`, of the windows that anybody judged, is of theirs.
        counts = self.counts if self.shared_counts is None else self.shared_counts
        if counts is None:  # nobody judged any
            return ShareWindows(n=0, n_unsure=0)
        return ShareWindows(n=counts.sure, n_unsure=counts.judged - counts.sure)

    @property
    def judges_left_out(self) -> tuple[str, ...]:
        """Names of the judges who count in the group's share, but not in the film's own share.

        There are such judges if all judges together judged too few windows: the film's own share is then that
        of one of them (`judged_rate.main_rate`).
        """
        if self.rate is None:
            return ()
        return tuple(name for name in self.sample.judges if name not in self.rate.annotators)


@dataclass(frozen=True, eq=False, slots=True)
class FilmComparison:
    """Rates of groups of films.

    Attributes
    ----------
    films : tuple of ComparedFilm
        By year and title, never by rate.
    groups : DataFrame
        A row for each group: `group`, `n_films`, `n_judged` (films), `judges` (in one text) and `judge_names`
        (a tuple), `n_windows` (of which anybody was sure: the share rests on these), `n_unsure` (judged and
        left out, as nobody was sure), `has_unsure` (whether one of the judges was not sure of a window),
        `has_unread` (whether a part of a film could not be read, and counts in no share), `value`, `low`,
        `high`, `worth` (judged windows that would be needed without the model; NaN where it does not
        help), `expected` (by the model alone, mean of the `n_expected` films of which it has a share),
        `is_mixed` (whether not all of its films were judged by the same people), `reason`: why there is
        no value, and `note`: on how few films it rests, as of a change.
    changes : DataFrame
        A row for every two groups with a value, and for the trend, by ten years or by a power of ten of
        another column (`_step`):
        `change`, `n_films`, `n_judged`, `judges`, `judge_names`, `value`, `low`, `high`, `reason` and `note`:
        on how few films it rests, if there are fewer than three that have any positive window, or lack any,
        and whether it accounts for who judged; and `has_unsure`, as of a group.
    notes : tuple of str
        What was left out, and why.
    by, model : str
        The column of groups; the model's key.
    positive : Positive
        What the model finds.
    agreement : tuple of JudgesAgreement
        Of every two judges, over the windows of these films that both judged.
    alpha : JudgesAlpha or None
        Of three judges or more together, each of whom shares a window with another.
    is_of_labels : bool
        Whether an annotator's labels stand in the model's place: `model` is then the annotator.
    """

    films: tuple[ComparedFilm, ...]
    groups: pd.DataFrame
    changes: pd.DataFrame
    notes: tuple[str, ...]
    by: str
    positive: Positive
    model: str
    agreement: tuple[JudgesAgreement, ...] = ()
    alpha: JudgesAlpha | None = None
    is_of_labels: bool = False


def read_facts(path: Path | str, films: Sequence[Timeline]) -> tuple[Facts, list[str]]:
    """Read a table of films, and match its rows with scored films (`match_rows`).

    Parameters
    ----------
    path : Path or str
    films : sequence of Timeline

    Returns
    -------
    facts : mapping
        Movie -> cells by column, of the films that have a row.
    notes : list of str
        Rows and films without a match.
    """
    titles = {film.movie: film.record.title for film in films}
    years = {film.movie: film.record.year for film in films}
    rows, notes = match_rows(path, titles, years)
    return {movie: row.cells for movie, row in rows.items()}, notes


def match_rows(
    path: Path | str, titles: Mapping[str, str], years: Mapping[str, int | None] | None = None
) -> tuple[dict[str, TableRow], list[str]]:
    """Read a table of films, and match its rows with known films by the column `movie`, or else by `title`.

    An id of IMDb also matches without `tt` and leading zeros. A movie may be a path or URL of its file. A
    title matches only if the row's `year` is at most one year off the film's: a remake is another film.

    Parameters
    ----------
    path : Path or str
    titles, years : mapping
        Of the films, by movie, where they are known.

    Returns
    -------
    rows : dict
        By movie.
    notes : list of str
        Rows and films without a match, and films whose title alone matches.

    Raises
    ------
    FilmError
        Two rows are of one film, a title is that of two films, or a film's filled cell `year` is no year.
    ManifestError
        It has neither column, or holds control characters.
    """
    path = local_path(path)
    years = years or {}

    # Read the table. The rows that `checked` yields raise the table's problems after the last one.
    table = read_table(path, (), any_of=FILM_COLUMNS, known=FACT_COLUMNS)
    film_column = _film_column(table.columns)
    _note_control_characters(table.checked(), table.problems)  # before any row is matched
    number_columns = [name for name in table.columns if name not in FILM_COLUMNS]
    with_decimal_points = table.pointed(number_columns)  # in place of decimal commas

    matched = _match_with_films(with_decimal_points.checked(), titles, years, path)

    # Note rows without a film, films without a row, and films that were found by the title although only one
    # of film and row has a year. A row without a film may be one whose name is spelled otherwise than that of
    # a film without a row: a hint then names this film.
    films_without_row = [movie for movie in titles if movie not in matched.rows]
    ids_for_hints = films_without_row if film_column == "movie" else []
    titles_for_hints = [_dated_title(titles[movie], years.get(movie)) for movie in films_without_row]
    not_scored = _labels_with_hints(matched.unmatched, ids_for_hints, titles_for_hints)
    notes = _note(message("films_not_scored", path=path.name), not_scored)
    notes += _note(message("films_not_there", path=path.name), films_without_row)
    notes += _note(message("films_by_title"), matched.undated)
    return matched.rows, notes


class _MatchedRows(NamedTuple):
    """The rows of a table of films, by whether their films are known.

    Attributes
    ----------
    rows : dict
        Movie -> its row.
    unmatched : list of _Unmatched
        Rows that are of none of the known films.
    undated : list of str
        Labels of rows whose film was found by its title alone, although its year is known.
    """

    rows: dict[str, TableRow]
    unmatched: "list[_Unmatched]"
    undated: list[str]


def _match_with_films(
    table_rows: Iterable[TableRow], titles: Mapping[str, str], years: Mapping[str, int | None], path: Path
) -> _MatchedRows:
    """Find the film of each row of a table.

    Parameters
    ----------
    table_rows : iterable of Row
    titles, years : mapping
        Of the known films, by movie.
    path : Path
        The table, for messages.

    Raises
    ------
    FilmError
        Two rows are of one film, a title is that of two films, or the cell `year` of a film's row is no year.
    """
    matched = _MatchedRows(rows={}, unmatched=[], undated=[])
    for row in table_rows:
        film_column = _film_column(row.cells)
        place = f"{path}: line {row.line}, column {film_column}"
        try:
            match = _film_of(row, titles, years)
        except ManifestError as error:
            raise FilmError(f"{place}: {error}") from None

        if not match.movie:
            cell = row.cells[film_column].strip()
            matched.unmatched.append(_Unmatched(label=match.label, cell=cell))
            continue
        if match.movie in matched.rows:
            raise FilmError(f"{place}: film {match.movie} has a row already")
        matched.rows[match.movie] = _with_year(row, path)
        if match.is_undated:
            matched.undated.append(match.label)
    return matched


def _film_column(columns: Collection[str]) -> str:
    """Return which of a table's columns says which film a row is of: `movie`, or else `title`."""
    return "movie" if "movie" in columns else "title"


class _Unmatched(NamedTuple):
    """A row of a table of films that is of none of the compared films.

    Attributes
    ----------
    label : str
        What a note calls it.
    cell : str
        Its cell of the column that says which film it is of.
    """

    label: str
    cell: str


def _labels_with_hints(
    unmatched: Sequence[_Unmatched], known_ids: Sequence[str], known_titles: Sequence[str]
) -> list[str]:
    """Return the label of each row without a film, with a hint ("did you mean ...?") if a film is similar.

    Only the first `MAX_NAMES` rows, which a note shows, get a hint: searching similar names takes time.
    """
    labels = []
    for index, row in enumerate(unmatched):
        hint = ""
        if index < MAX_NAMES:
            hint = name_hint(row.cell, known_ids) or name_hint(row.label, known_titles)
        labels.append(row.label + hint)
    return labels


def _note_control_characters(rows: Iterable[TableRow], problems: Problems) -> None:
    """Add cells with control characters to the problems of their table; names of columns may have none too.

    This function raises nothing itself. The rows come from `Table.checked`, which raises ManifestError after
    the last row if the table has problems by then.

    Parameters
    ----------
    rows : iterable of Row
        From `Table.checked`.
    problems : Problems
        Those of the table.
    """
    for row in rows:
        for column, cell in row.cells.items():
            # Line breaks are allowed in cells, and not in names of columns.
            problem = unsuitable(cell, line_breaks=True) or unsuitable(column)
            if problem:
                problems.add(row.line, f"{cell!r:.80} {problem}", column)


def _with_year(row: TableRow, path: Path) -> TableRow:
    """Return a film's row with its cell `year` written as a whole number, such as `1994` for `1994.0`.

    Raises
    ------
    FilmError
        The cell is filled, but holds no year.
    """
    text = row.cells.get("year", "").strip()
    if not text:
        return row
    year = _year(row)
    if math.isnan(year):
        place = f"{path}: line {row.line}, column year"
        raise FilmError(f"{place}: {text!r} is no year: write four digits, or leave it empty")
    return replace(row, cells={**row.cells, "year": str(round(year))})


def _dated_title(title: str, year: float | None) -> str:
    """Write a title with its year, `Title (1999)`; the title alone if that is not known (None, 0 or NaN)."""
    if not year or math.isnan(year):
        return title
    return f"{title} ({year:g})"


def _year(row: TableRow) -> float:
    """Read the year of a row; NaN if the cell is empty, or holds no year of a film.

    `_with_year` refuses a cell that holds anything else, but only in the row of a film that is compared.
    """
    year = number_of(row.cells.get("year", "").strip())  # NaN if it is no number
    is_year = year.is_integer() and FIRST_YEAR <= year <= LAST_YEAR
    return year if is_year else math.nan


class _Match(NamedTuple):
    """The film of a row of a table of films.

    Attributes
    ----------
    movie : str
        "" if the row is of none of the compared films.
    label : str
        What a note calls the row: its title, with the year if it gives one; or its film's id.
    is_undated : bool
        Whether the film was found by its title alone, without a year, although the film's year is known.
    """

    movie: str
    label: str
    is_undated: bool = False


class _Reading(NamedTuple):
    """A title and a year that a row may mean; the year is NaN if it is not known."""

    title: str
    year: float


def _film_of(row: TableRow, titles: Mapping[str, str], years: Mapping[str, int | None]) -> _Match:
    """Find the film of a row by its id, or else by its title and year.

    A title may also stand in the column `movie`. A text such as `Alien (1979)` has two readings: as a title,
    and as a title with its year; the first of them that a film has is used.

    Parameters
    ----------
    row : TableRow
        A row of a table of films.
    titles, years : mapping
        Of the known films, by movie.

    Returns
    -------
    _Match
        Its movie is empty if no film matches.
    """
    film_column = _film_column(row.cells)
    text = row.cells[film_column].strip()
    if film_column == "movie":
        movie = find_film(text, titles)
        if movie:
            return _Match(movie, label=text)

    readings = _readings(text, _year(row))
    for reading in readings:
        # A remake has the same title: only films whose year is near that of the row may match.
        titles_of_candidates = _titles_near(reading.year, titles, years)  # movie -> title
        movie = find_film(reading.title, movies=titles_of_candidates, titles=titles_of_candidates)
        if movie:
            row_has_no_year = math.isnan(reading.year)
            film_has_year = bool(years.get(movie))
            label = _dated_title(reading.title, reading.year)
            return _Match(movie, label, is_undated=row_has_no_year and film_has_year)

    # No film matches. The row is named by its last reading, which has the year apart if the text has one.
    last_reading = readings[-1]
    return _Match("", label=_dated_title(last_reading.title, last_reading.year))


def _readings(text: str, year: float) -> list[_Reading]:
    """List what a text may mean: a title, or if it ends with a year in brackets, a title and its year.

    The whole text comes first, as a title may itself end so. The year of the column `year` is used before one
    in brackets.

    Parameters
    ----------
    text : str
    year : float
        Of the row's column `year`; NaN if it gives none.
    """
    readings = [_Reading(text, year)]
    dated = _DATED.fullmatch(text)
    if dated:
        title, year_in_brackets = dated.groups()
        readings.append(_Reading(title, float(year_in_brackets) if math.isnan(year) else year))
    return readings


def _titles_near(year: float, titles: Mapping[str, str], years: Mapping[str, int | None]) -> dict[str, str]:
    """Return movie -> title of the films whose year is at most one off `year`, or is not known.

    If `year` is NaN, all films are returned.
    """
    titles_near = {}
    for movie, title in titles.items():
        known_year = years.get(movie)
        if math.isnan(year) or not known_year or abs(year - known_year) <= 1:
            titles_near[movie] = title
    return titles_near


@checked
def compare_films(
    films: Sequence[Timeline],
    judgements: Manifest,
    facts: Facts | None = None,
    *,
    by: str | None = None,
    trend: str | None = None,
    key: str | None = None,
    labels: Manifest | None = None,
    hidden: Collection[str] = (),
) -> FilmComparison:
    """Estimate the mean rate of groups of films, their differences, and a trend.

    Parameters
    ----------
    films : sequence of Timeline
    judgements : Manifest
        Of windows that `film next --blind` drew, of all films; without clips if there are none.
    facts : mapping, optional
        Cells by movie, as `read_facts` reads them; films without any are left out. By default `title` and
        `year` of the scored films.
    by, trend : str, optional
        Columns of groups, and of the trend's number. `decade` is made of `year`. Variables of the films'
        staging are columns too; groups are then films above the median and the others.
    key : str, optional
        The model; by default the first that decides.
    labels : Manifest, optional
        Labels of all films by one annotator, such as a machine, in place of the model's probabilities.
    hidden : collection of str, optional
        Movies with judgements that are not among these, as they are hidden until their judges are finished.

    Raises
    ------
    FilmError
        A column is missing, a cell of the trend is no number, or different models scored the films.
    ManifestError
        The judgements were made under two definitions.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_film
    >>> from obygaze_film.windows_to_judge import choose_next
    >>> films = obygaze_film.score_films(of.open_store("stores/more"), ["kept/linear.model"])
    >>> truth = {(clip.movie, clip.start_s): clip.level for clip in of.read_manifest("more.csv")}
    >>> from dataclasses import replace
    >>> drawn = choose_next(films, 10, blind=True)
    >>> judged = [replace(clip, level=truth[clip.movie, clip.start_s], annotator="AB") for clip in drawn]
    >>> from pathlib import Path
    >>> compared = obygaze_film.compare_films(films, of.Manifest(tuple(judged), Path()))
    >>> compared.groups[["group", "n_films", "n_judged", "n_windows"]].values.tolist()
    [['all films', 6, 6, 60]]
    """
    # Check the inputs. A film is compared if the facts have it, such as its year.
    judgements = judgements.spelled_as(film.movie for film in films)
    _refuse_two_definitions(films, judgements)
    model = shared_model(films, key)
    group_of_movie = _groups_by_staging(films, by, facts)  # None if groups come from a column of the facts
    grouping = _Grouping(by, group_of_movie)
    known_facts = facts_of_films(films, facts)
    films_with_facts = [film for film in films if film.movie in known_facts]
    _refuse_unknown((grouping.column, trend), known_facts)
    _refuse_copies(films_with_facts)

    # Summarise each film, or leave it out.
    gathered = _gather_films(
        films_with_facts,
        known_facts,
        grouping,
        judgements,
        trend=trend,
        key=key,
        labels=labels,
        hidden=hidden,
    )

    # Estimate groups, their differences and the trend.
    compared = sorted(gathered.films, key=_year_and_title)
    estimated = _estimate_groups(compared)
    changes = estimated.changes
    if trend:
        films_with_value = [film for film in compared if not np.isnan(film.x)]
        changes.append(_trend(films_with_value, trend))

    # What is said beside the tables: of single films, of judges, and of films that are left out.
    pairs = agreement_of_judges(gathered.judged)
    notes = [
        *gathered.notes,
        *notes_of_pairs(pairs),
        *gathered.left_out.notes(),
        *_note_of_films_not_scored(films, judgements),
        *_notes_of_spellings(gathered.films),
    ]
    return FilmComparison(
        films=tuple(compared),
        groups=_table(estimated.groups),
        changes=_table(changes),
        notes=tuple(notes),
        by=by or ALL,
        positive=positive_of(model),
        model=model.key if labels is None else annotator_of(labels),
        agreement=tuple(pairs.agreement),
        alpha=alpha_of_judges(gathered.judged),
        is_of_labels=labels is not None,
    )


def _refuse_two_definitions(films: Sequence[Timeline], judgements: Manifest) -> None:
    """Raise ManifestError if these films were judged blindly under two definitions (`blind_judgements`)."""
    movies = {film.movie for film in films}
    of_films = judgements.with_clips(clip for clip in judgements if clip.movie in movies)
    blind_judgements(of_films).refuse_two_definitions()


def _why_without_content(film: Timeline, key: str | None) -> str:
    """Say why a film has no content that could be judged; "" if it has any.

    All of it is black pictures or credits, or could not be read.
    """
    time = film.time(key)
    if time.why_unjudged == BLACK_OR_CREDITS:
        return message("films_nothing")
    # Cells are cut only where something could not be read, as it takes time.
    if time.unread_s and not cells_of(film, key).content_s.any():
        return message("films_unread")
    return ""


class _LeftOut:
    """Collects the films that a comparison leaves out, by the reason that a note gives."""

    def __init__(self) -> None:
        """Begin with no film left out."""
        self._movies_by_reason: dict[str, list[str]] = {}

    def add(self, reason: str, movie: str) -> None:
        """Record that a film is left out for a reason, which is the text of its note."""
        self._movies_by_reason.setdefault(reason, []).append(movie)

    def notes(self) -> list[str]:
        """Write a note for each reason, in the order of each reason's first film."""
        notes = []
        for reason, movies in self._movies_by_reason.items():
            notes += _note(reason, movies)
        return notes


def _gather_films(
    films: Sequence[Timeline],
    known_facts: Mapping[str, Mapping[str, str]],
    grouping: "_Grouping",
    judgements: Manifest,
    *,
    trend: str | None,
    key: str | None,
    labels: Manifest | None,
    hidden: Collection[str],
) -> "_Gathered":
    """Summarise each film for a comparison, or leave it out with the reason.

    Parameters
    ----------
    films : sequence of Timeline
    known_facts : mapping
        Movie -> column -> cell, of each of the films.
    grouping : _Grouping
        Tells the group of a film.
    judgements, trend, key, labels, hidden
        As `compare_films` takes them.
    """
    gathered = _Gathered()
    for film in films:
        facts = known_facts[film.movie]
        group = grouping.group_of(film.movie, facts)
        trend_value = _number(facts, trend, film.movie) if trend else np.nan
        why_left_out = _why_left_out(film, group, grouping.by, key=key, has_labels=labels is not None)
        if why_left_out:
            gathered.left_out.add(why_left_out, film.movie)
            continue

        # A film without a value of the trend's column is left out of the trend alone, and a note says so.
        lacks_trend_value = bool(trend) and bool(np.isnan(trend_value))
        if lacks_trend_value:
            gathered.left_out.add(message("films_no_trend", column=trend), film.movie)
        gathered.add(
            film,
            _summary_of(film, judgements, key, labels),
            facts=facts,
            group=group,
            x=trend_value,
            is_hidden=film.movie in hidden,
        )
    return gathered


@dataclass(eq=False)
class _Gathered:
    """The films of a comparison, as they are gathered one by one.

    Attributes
    ----------
    films : list of ComparedFilm
    judged : list of JudgedFilm
        The judgements of those of them of which enough windows are judged.
    notes : list of str
        On single films.
    left_out : _LeftOut
        Films that are left out, all or in part.
    """

    films: list[ComparedFilm] = field(default_factory=list)
    judged: list[JudgedFilm] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: _LeftOut = field(default_factory=_LeftOut)

    def add(
        self,
        film: Timeline,
        summary: "_FilmSummary",
        *,
        facts: Mapping[str, str],
        group: str,
        x: float,
        is_hidden: bool,
    ) -> None:
        """Add a film to those that are compared, and its notes and judgements to those of the comparison.

        Parameters
        ----------
        film : Timeline
        summary : _FilmSummary
            What was judged of the film, and what the model expects of it.
        facts : mapping
            Its cells by column.
        group : str
        x : float
            Its number in the column of the trend; NaN if it has none.
        is_hidden : bool
            Whether it has judgements that are hidden until their judges are finished.
        """
        self.notes += [message("note_of", movie=film.movie, notice=notice) for notice in summary.notices]

        # The film is compared, but without the part of it that could not be read. If this part is not very
        # short, a note lists the film.
        has_unread = summary.unread_s >= MIN_SAID_S
        if has_unread:
            self.left_out.add(message("films_part_unread"), film.movie)

        has_unsure = False
        if summary.judged is not None:
            self.judged.append(summary.judged)
            has_unsure = summary.judged.has_unsure

        compared_film = ComparedFilm(
            timeline=film,
            facts=facts,
            group=group,
            x=x,
            sample=summary.sample,
            rate=summary.rate,
            expected=summary.expected,
            counts=summary.counts,
            is_hidden=is_hidden,
            has_unsure=has_unsure,
            has_unread=has_unread,
            shared_counts=summary.shared_counts,
        )
        self.films.append(compared_film)


def _year_and_title(film: ComparedFilm) -> tuple[str, str, str]:
    """Return the key by which compared films are sorted; films without a year come last."""
    return film.facts["year"] or "9999", film.facts["title"], film.timeline.movie


def _why_left_out(film: Timeline, group: str, by: str | None, *, key: str | None, has_labels: bool) -> str:
    """Say why a film cannot be compared; "" if it can be.

    Parameters
    ----------
    film : Timeline
    group : str
        Of the film; "" if it has none.
    by : str or None
        Column of the groups.
    key : str or None
        The model.
    has_labels : bool
        Whether an annotator's labels take the place of the model's probabilities.
    """
    if film.model(key).is_trained_on and not has_labels:  # the model knows this film's labels
        return message("films_trained")
    without_content = _why_without_content(film, key)
    if without_content:
        return without_content
    if not group:
        return message("films_no_group", column=by)
    return ""


class _Grouping(NamedTuple):
    """How films are grouped.

    Attributes
    ----------
    by : str or None
        Column of the groups; without one all films are one group.
    by_staging : mapping or None
        Movie -> group, if `by` is a variable of staging; else None.
    """

    by: str | None
    by_staging: Mapping[str, str] | None

    @property
    def column(self) -> str | None:
        """The column of the films' facts that has the groups; None if groups are by staging, or all one."""
        return self.by if self.by_staging is None else None

    def group_of(self, movie: str, facts: Mapping[str, str]) -> str:
        """Return the group of a film with these facts (column -> cell); empty if it has none."""
        if self.by_staging is not None:
            return self.by_staging.get(movie, "")
        if not self.by:
            return ALL
        return facts.get(self.by, "")


def _refuse_copies(films: Sequence[Timeline]) -> None:
    """Refuse two of the films that are the same film, as it would count twice.

    Raises
    ------
    FilmError
        Two names are spellings of one, or two films have videos of the same digest.
    """
    pairs_of_spellings = same_films(film.movie for film in films)
    if pairs_of_spellings:
        movie, other = pairs_of_spellings[0]
        raise FilmError(f"films {other!r} and {movie!r} are one name: spell both alike, or leave one out")
    movie_by_digest: dict[str, str] = {}
    for film in films:
        digest = film.record.source_sha256
        if not digest:
            continue
        if digest in movie_by_digest:
            other = movie_by_digest[digest]
            raise FilmError(f"films {other!r} and {film.movie!r} are of one video: leave one out")
        movie_by_digest[digest] = film.movie


def _table(rows: Sequence[Row]) -> pd.DataFrame:
    """Make a table of rows (column -> cell) that have the same columns; an empty one without rows.

    Columns of texts keep their texts as `Message`, so that pages can translate them.
    """
    if not rows:
        return pd.DataFrame()
    columns = {}
    for name in rows[0]:
        # In a column of type `object`, texts stay `Message`. pandas' own type of texts would make them str,
        # which cannot be translated.
        is_text = name in ("group", "change", "reason", "note")
        columns[name] = pd.Series([row[name] for row in rows], dtype=object if is_text else None)
    return pd.DataFrame(columns)


def _note(what: str, names: Sequence[str]) -> list[str]:
    """Write a note on some films, as a list of one note; an empty list if there are no films.

    Parameters
    ----------
    what : str
        What the note says of the films.
    names : sequence of str
        The films, of which the note shows the first `MAX_NAMES`.
    """
    if not names:
        return []
    shown = ", ".join(names[:MAX_NAMES])
    if len(names) > MAX_NAMES:
        shown += ", …"
    return [message("note_films", what=what, n=len(names), names=shown)]


def _staging_of(film: Timeline) -> dict[str, float]:
    """Return variable -> mean of a film's staging (such as its loudness), the same as on its page."""
    # Shots know the share of black pictures better than windows do.
    rows_with_shots = film.rows() if len(film.shots) else None
    return staging_means(film.variables, rows_with_shots)


def _groups_by_staging(
    films: Sequence[Timeline], by: str | None, facts: Facts | None
) -> dict[str, str] | None:
    """Group films by a variable of their staging, `by`: films whose mean is above the median, and the others.

    Returns
    -------
    dict of str to str, or None
        Movie -> group; None if `by` is a column of the table of films, or no variable of staging.
    """
    is_column_of_table = any(by in cells for cells in (facts or {}).values())
    if by is None or is_column_of_table:
        return None
    mean_of_movie = {}
    for film in films:
        means_by_variable = _staging_of(film)
        if by in means_by_variable:
            mean_of_movie[film.movie] = means_by_variable[by]
    if not mean_of_movie:  # no film was measured for such a variable
        return None

    median = float(np.median([*mean_of_movie.values()]))
    above = message("group_above", column=by, middle=f"{median:.3g}")
    up_to = message("group_up_to", column=by, middle=f"{median:.3g}")
    return {movie: above if mean > median else up_to for movie, mean in mean_of_movie.items()}


def facts_of_films(films: Sequence[Timeline], table: Facts | None) -> dict[str, dict[str, str]]:
    """Collect movie -> column -> cell (`_facts`) of the films of a table; without a table, of all films."""
    if table is None:
        return {film.movie: _facts(film, cells={}) for film in films}
    return {film.movie: _facts(film, table[film.movie]) for film in films if film.movie in table}


def _facts(film: Timeline, cells: Mapping[str, str]) -> dict[str, str]:
    """Collect the facts of a film by column: cells of a table, its title and year, its decade, its staging.

    If several sources have a column, the table's cell stands, even if it is empty. Only an empty title or
    year in the table leaves the one that was recorded when the film was scored.
    """
    recorded = {"title": film.record.title, "year": str(film.record.year or "")}
    from_table = {}
    for name, cell in cells.items():
        # Names that look alike are one group: blanks and line breaks of any number, accents in either form.
        text = composed(" ".join(cell.split()))
        from_table[name] = text or recorded.get(name, "")
    recorded_or_in_table = {**recorded, **from_table}
    staging = {name: repr(mean) for name, mean in _staging_of(film).items()}
    decade = _decade(recorded_or_in_table["year"])
    # A later dictionary replaces what an earlier one has of the same name: the table comes last.
    return {**staging, "decade": decade, **recorded_or_in_table}


def _decade(year: str) -> str:
    """Name the decade of a year, such as `the 1990s` of 1994; "" if the text is no year of four digits."""
    if len(year) == 4 and year.isdecimal():
        return message("decade", year=f"{year[:3]}0")
    return ""


def _refuse_unknown(columns: Sequence[str | None], facts: Facts) -> None:
    """Raise an error if a column that the user named is in no film's facts.

    Parameters
    ----------
    columns : sequence of str or None
        The columns; None for one that the user did not name.
    facts : mapping
        Movie -> column -> cell.

    Raises
    ------
    FilmError
        There is no such column; the message lists those that there are.
    """
    if not facts:  # without any film, nothing is known of columns
        return
    known = dict.fromkeys(column for cells in facts.values() for column in cells)
    for column in columns:
        if column is not None and column not in known:
            raise FilmError(f"no column {column}: there are {', '.join(known)}")


def _number(cells: Mapping[str, str], column: str, movie: str) -> float:
    """Read a film's number in a trend's column; NaN if the cell is empty.

    Raises
    ------
    FilmError
        The cell holds no number, or one beyond `LARGEST_NUMBER`.
    """
    text = cells.get(column, "")
    if not text:
        return math.nan
    number = number_of(text)  # NaN if the text is no number
    if math.isnan(number) or abs(number) > LARGEST_NUMBER:
        raise FilmError(f"film {movie}, column {column}: {text!r} is no number")
    return number


def _note_of_films_not_scored(films: Sequence[Timeline], judgements: Manifest) -> list[str]:
    """Note which judged films are not scored, as a list of one note; an empty list if all are."""
    movies = [film.movie for film in films]
    not_scored = dict.fromkeys(clip.movie for clip in judgements if clip.movie not in movies)
    hinted = [f"{movie}{name_hint(movie, movies)}" for movie in not_scored]
    return _note(message("films_judged_only"), hinted)


def _notes_of_spellings(compared: Sequence[ComparedFilm]) -> list[str]:
    """Write a note for each set of groups whose names are spellings of one name (`same_names`)."""
    spellings_of: dict[str, list[str]] = {}  # by the first of them
    for spelling, first in same_names(film.group for film in compared).same:
        spellings_of.setdefault(first, [first]).append(spelling)
    return [message("note_case", names=", ".join(spellings)) for spellings in spellings_of.values()]


class _FilmSummary(NamedTuple):
    """A film, as the model and its judges see it.

    Attributes
    ----------
    expected : float
        Share by the model of all the time that it can judge (`ModelRecord.rate`), NaN if it has none; or by
        labels in its place.
    sample : FilmSample
        What the estimate of its group is made of; without judgements if these are too few.
    unread_s : float
        Seconds of the film that could not be read (`Cells.unread_s`).
    rate : CorrectedRate or None
        The film's own share; None if no judge, or panel, judged enough.
    counts : WindowCounts or None
        Of the windows that any judge judged; None without judgements.
    notices : list of str
        What was left out, and why.
    judged : JudgedFilm or None
        Its judgements; None if they are too few, so that the film counts as not judged.
    shared_counts : WindowCounts or None
        Of the windows that all judges judged, if there are several.
    """

    expected: float
    sample: FilmSample
    unread_s: float
    rate: CorrectedRate | None = None
    counts: WindowCounts | None = None
    notices: Sequence[str] = ()
    judged: JudgedFilm | None = None
    shared_counts: WindowCounts | None = None


def _summary_of(
    film: Timeline, judgements: Manifest, key: str | None, labels: Manifest | None
) -> _FilmSummary:
    """Summarise a film and its blind judgements for a comparison of films.

    Two kinds of judged windows are told apart. For the share of its group, windows count that any judge
    judged, as the comparison accounts for who judged what. For the film's own share, only windows count that
    all its judges judged. A film of which too few windows of the first kind were judged counts as not judged.

    Parameters
    ----------
    film : Timeline
    judgements : Manifest
        Of all films.
    key : str or None
        The model; None for the first that decides.
    labels : Manifest or None
        Labels by one annotator that take the place of the model's probabilities.
    """
    has_labels = labels is not None
    cells = cells_of(film, key) if labels is None else cells_by(labels, film, key)
    unjudged = _summary_without_judgements(film, cells, key, has_labels=has_labels)
    judgements_of_film = judgements.with_clips(clip for clip in judgements if clip.movie == film.movie)
    if not judgements_of_film.clips:
        return unjudged

    # The windows that any judge judged
    judged = judged_film(film, judgements_of_film, key, has_labels=has_labels, of_all_films=judgements)
    windows_of_any = judged.together()
    notices = [*judged.notices, *judged.notices_of_gaps(by_any=True)]
    if not windows_of_any.is_enough:
        notices.append(_why_not_counted(windows_of_any.counts))
        return unjudged._replace(counts=windows_of_any.counts, notices=notices)

    if labels is not None:
        refuse_labels_of_drawn_windows(cells, windows_of_any, film.movie)

    # The windows that all judges judged, if they are several. Such windows do not count behind the first
    # window of the draw that not all judged, the gap.
    shared_counts = None
    if len(judged.judges) > 1:
        shared_counts = judged.panel().counts
        if shared_counts.after_gap:
            notices.append(counted_message("note_after_gap", shared_counts.after_gap))
    return unjudged._replace(
        sample=_judged_sample(windows_of_any, p=cells.p),
        rate=_film_rate(film, judgements_of_film, key, labels, of_all_films=judgements),
        counts=windows_of_any.counts,
        notices=notices,
        judged=judged,
        shared_counts=shared_counts,
    )


def _summary_without_judgements(
    film: Timeline, cells: Cells, key: str | None, *, has_labels: bool
) -> _FilmSummary:
    """Summarise a film without judgements, by what the model, or labels in its place, say of its cells.

    Parameters
    ----------
    film : Timeline
    cells : Cells
        The film's windows with the probabilities, or the labels' shares.
    key : str or None
        The model; None for the first that decides.
    has_labels : bool
        Whether labels take the place of the model's probabilities: they always give a share.
    """
    no_cells = np.empty(0, np.int64)
    no_judgements = np.empty(0)
    sample = sample_of(cells, judged=no_cells, y=no_judgements)

    # The film has two expected shares. That of its sample is over windows that can be drawn, and estimates of
    # groups use it beside judgements of such windows. The one that is reported for the film is the one on its
    # page; labels have only the first.
    expected = sample.expected
    if not has_labels:
        rate = film.model(key).rate.value
        expected = np.nan if rate is None else rate
    return _FilmSummary(expected=expected, sample=sample, unread_s=cells.unread_s)


def _judged_sample(windows: JudgedWindows, p: Floats) -> FilmSample:
    """Summarise the judged windows of a film.

    Parameters
    ----------
    windows : JudgedWindows
        With the content that the film's cells had when they were drawn.
    p : ndarray, shape [cells]
        Probability of each cell by the model, or by labels in its place.
    """
    votes_of_cells = votes(windows.by_cell)
    return sample_of(
        replace(windows.cells, p=p),
        judged=votes_of_cells.cells,
        y=votes_of_cells.positive_shares,
        judges=votes_of_cells.judge_shares,
        unsure=windows.unsure,
        sampling=windows.sampling,
    )


def _why_not_counted(counts: WindowCounts) -> Message:
    """Say that a film does not count, as too few of its windows were judged: how many, and how many it needs.

    If the film has no window left to judge, nothing can be done, and the text says this in place of how many
    it needs.
    """
    counted = counted_windows(counts)
    is_any_left_to_judge = counts.left > 0
    if not is_any_left_to_judge:
        return message("note_none_left", counted=counted)
    needed = needed_windows(counts.judged, counts.left, counts.least)
    return message("note_few", counted=counted, needed=needed)


def _film_rate(
    film: Timeline, judgements: Manifest, key: str | None, labels: Manifest | None, of_all_films: Manifest
) -> CorrectedRate | None:
    """Estimate the share of one film by its judges; None if no judge, or panel, judged enough of it.

    Parameters
    ----------
    film : Timeline
        The scored film.
    judgements : Manifest
        Its judgements.
    key : str or None
        The model whose probabilities help; None for the first one that has any, or if labels help.
    labels : Manifest or None
        Labels of an annotator that take the place of a model's probabilities.
    of_all_films : Manifest
        The judgements of all compared films, which tell what each judge marks at all.
    """
    try:
        film_rates = correct_rates(film, judgements, key, labels=labels, of_all_films=of_all_films)
        return main_rate(film_rates.rates)
    except FilmError:
        # There are too few judgements. What else could be wrong with them, the caller has checked before, and
        # has refused the film with its reason.
        return None


class _EstimatedGroups(NamedTuple):
    """Rows of the groups, and of the differences between every two groups of which enough is judged."""

    groups: list[Row]
    changes: list[Row]


def _estimate_groups(films: Sequence[ComparedFilm]) -> _EstimatedGroups:
    """Estimate the mean rate of each group, and the difference between every two groups that have one."""
    films_of: dict[str, list[ComparedFilm]] = {}  # group -> its films
    for film in films:
        films_of.setdefault(film.group, []).append(film)
    counts_of = {name: _counts(films_of[name], MIN_FILMS, message("a_rate")) for name in sorted(films_of)}

    # Estimate the groups of which enough films are judged: the others have a reason why not.
    with_enough = [name for name, counts in counts_of.items() if not counts["reason"]]
    samples = [[film.sample for film in films_of[name]] for name in with_enough]
    estimates = estimate_groups(samples) if with_enough else []
    estimate_of = dict(zip(with_enough, estimates, strict=True))

    rows = []
    for name, counts in counts_of.items():
        estimate = estimate_of.get(name, NO_ESTIMATE)
        rows.append(_group_row(name, counts, films_of[name], estimate))
    changes = [_difference_row(films_of[one], films_of[other]) for one, other in combinations(with_enough, 2)]
    return _EstimatedGroups(rows, changes)


def _difference_row(films: Sequence[ComparedFilm], others: Sequence[ComparedFilm]) -> Row:
    """Make the row of the difference of two groups, each with enough judged films: the first less the other.

    It is the slope of the share on 1 for films of the first group, and 0 for those of the other.
    """
    both = [*films, *others]
    is_of_first = np.array([1.0] * len(films) + [0.0] * len(others))
    name = message("change_minus", one=films[0].group, other=others[0].group)
    # Enough films of each group are judged: no minimum is asked of both together.
    counts = _counts(both, minimum=0, what=message("a_rate"))
    row: Row = {"change": name, **counts}
    return _with_slope(row, both, is_of_first)


def _group_row(name: str, counts: Row, films: Sequence[ComparedFilm], estimate: Estimate) -> Row:
    """Make the row of a group in the table of groups (`FilmComparison.groups` describes its columns).

    Parameters
    ----------
    name : str
        Of the group.
    counts : dict
        Cells with the numbers of films and judged films, the judges, and the reason if there is no estimate.
    films : sequence of ComparedFilm
        Of the group.
    estimate : Estimate
        Of its share; one without values if too few films are judged.
    """
    n_windows = sum(film.windows_of_group.n for film in films)  # that judges were sure of
    expected = [film.expected for film in films if not np.isnan(film.expected)]
    sets_of_judges = {frozenset(film.sample.judges) for film in films if film.sample.n}

    # If few judged films have any positive window (or few have any negative one), a note says so.
    has_few_films = 0 < estimate.n_with_rarer_answer < FEW_FILMS
    note = _few_films_note(estimate.n_with_rarer_answer) if has_few_films else ""
    return {
        "group": name,
        **counts,
        "n_windows": n_windows,
        "n_unsure": sum(film.windows_of_group.n_unsure for film in films),
        "has_unsure": any(film.has_unsure for film in films),
        "has_unread": any(film.has_unread for film in films),
        "worth": _n_needed_without_model(n_windows, estimate),
        **_values(estimate),
        "expected": float(np.mean(expected)) if expected else np.nan,
        "n_expected": len(expected),
        "is_mixed": len(sets_of_judges) > 1,
        "note": note,
    }


def _n_needed_without_model(n_windows: int, estimate: Estimate) -> float:
    """Compute how many judged windows would give as narrow an interval without the model.

    NaN if that is no more than `n_windows`, the number that was judged: the model does not help.
    """
    n_needed = n_windows * estimate.sample_size_ratio
    if np.isnan(n_needed) or float(rounded(n_needed)) <= n_windows:
        return np.nan
    return n_needed


def _trend(films: Sequence[ComparedFilm], column: str) -> Row:
    """Make the row of a trend: by how much the share changes in ten years, or by a step of another column.

    Parameters
    ----------
    films : sequence of ComparedFilm
        Films with a value of the column (`ComparedFilm.x`).
    column : str
        Column of the trend: `year`, or one whose step is chosen by its values (`_step`).
    """
    values = np.array([film.x for film in films])
    if column == "year":
        step = float(YEARS_OF_TREND)
        name: str = LATER
    else:
        step = _step(values)
        name = f"{column} + {_plain(step)}"

    # There is no trend if too few films are judged, or if these have too few different values. The cell
    # `reason` says so, and is empty if there is a trend.
    counts = _counts(films, MIN_FILMS_OF_TREND, message("a_trend"))
    judged_values = {film.x for film in films if film.sample.n}
    if not counts["reason"] and len(judged_values) < MIN_TREND_VALUES:
        too_few_values = counted_message(
            "reason_values", len(judged_values), column=column, least=MIN_TREND_VALUES
        )
        counts = {**counts, "reason": too_few_values}

    values_in_steps = values / step
    return _with_slope({"change": name, **counts}, films, values_in_steps)


def _step(values: Floats) -> float:
    """Choose the step of a trend: the largest power of ten that is no more than the range of the values [N].

    A larger step would give changes that no share can have. For example, values range over .02, and the share
    changes by .07 for each .01: for each 1, it would change by 7. A step far below the range would give
    changes that are printed as 0, such as the change for each dollar of a budget of millions.
    """
    extent = float(np.ptp(values)) if len(values) else 0.0
    if extent <= 0:
        return 1.0
    return 10.0 ** math.floor(math.log10(extent))


def _plain(step: float) -> str:
    """Write a power of ten without an exponent if it is 1 or more."""
    return f"{step:.0f}" if step >= 1 else f"{step:g}"


def _counts(films: Sequence[ComparedFilm], minimum: int, what: Message) -> Row:
    """Count films and judged films, and name their judges, for a row of a table.

    If fewer than `minimum` films are judged, the cell `reason` says that there is no estimate of `what` (such
    as "a rate"), and why. Else it is empty.
    """
    judges = sorted({name for film in films for name in film.sample.judges})
    return {
        "n_films": len(films),
        "n_judged": _n_judged(films),
        "judges": ", ".join(sorted(map(judge_name, judges))),
        "judge_names": tuple(judges),
        "reason": _why_too_few(films, minimum, what),
    }


def _n_judged(films: Sequence[ComparedFilm]) -> int:
    """Count the films of which enough windows are judged."""
    return sum(film.sample.n > 0 for film in films)


def _why_too_few(films: Sequence[ComparedFilm], minimum: int, what: Message) -> str:
    """Say that `what` needs `minimum` judged films, and what to do; "" if enough are judged."""
    n_judged = _n_judged(films)
    if n_judged >= minimum:
        return ""
    n_films = counted_message("films_n", len(films))
    n_hidden = sum(film.is_hidden and not film.sample.n for film in films)
    if n_hidden:  # these films are judged already: nobody is asked to judge others in their place
        return counted_message("reason_hidden", n_hidden, films=n_films, least=minimum, what=what)
    advice = _advice(films, n_more=minimum - n_judged)
    key = "reason_few_0" if n_judged == 0 else "reason_few"
    return counted_message(key, n_judged, films=n_films, least=minimum, advice=advice, what=what)


def _advice(films: Sequence[ComparedFilm], n_more: int) -> Message:
    """Advise which `n_more` films to judge next; if fewer of these films can be judged, to score others."""
    to_judge = []
    for film in films:
        is_judged = film.sample.n > 0
        has_windows_left = film.counts is None or film.counts.left > 0  # None: nobody judged any
        if not is_judged and has_windows_left:
            to_judge.append(film.timeline.movie)
    if len(to_judge) < n_more:
        return message("advice_score")
    # In random order: films that a person chose would not stand for the others.
    to_judge.sort(key=_random_number)
    return message("advice_judge", names=", ".join(to_judge[:n_more]))


def _random_number(movie: str) -> float:
    """Draw a number from 0 to 1 for a film; it is the same each time, as the film's name is the seed."""
    return float(np.random.default_rng([*movie.encode()]).random())


def _with_slope(row: Row, films: Sequence[ComparedFilm], x: Floats) -> Row:
    """Add the slope of the films' shares on x [N], and its interval, to a row of the table of changes.

    `x` is a number of each film, such as its year. If the row has a `reason` why there is no estimate, its
    numbers are NaN; else the reason is that of the estimate, if it gives none.
    """
    if row["reason"]:
        return {**row, "note": "", "has_unsure": False, **_values(NO_ESTIMATE)}
    slope = estimate_contrast([film.sample for film in films], x)
    return {
        **row,
        "note": _note_of_slope(slope),
        "reason": slope.reason,
        "has_unsure": any(film.has_unsure for film in films),
        **_values(slope),
    }


def _note_of_slope(slope: Estimate) -> str:
    """Say on how few films a slope rests, and that it accounts for who judged; "" if neither is so.

    It rests on few films if few have any positive window, or few have any negative one.
    """
    if slope.reason:
        return ""
    few_films = ""
    if slope.n_with_rarer_answer < FEW_FILMS:
        few_films = _few_films_note(slope.n_with_rarer_answer)
    accounts = message("note_accounts") if slope.accounts_for_judges else ""
    if few_films and accounts:
        return message("note_both", one=few_films, other=accounts)
    return few_films or accounts


def _few_films_note(n_films: int) -> Message:
    """Say on how few films a share or a change rests."""
    return message("note_rests", n=n_films, s="" if n_films == 1 else "s")


def _values(estimate: Estimate) -> dict[str, float]:
    """Return the cells of a table's row that hold an estimate and its interval."""
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}
