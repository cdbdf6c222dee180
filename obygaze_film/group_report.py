"""Lay out compared films as a report: groups, differences and the trend, and the films by year."""

import math
from collections.abc import Hashable, Mapping
from typing import Any, Final

import pandas as pd

from obygaze_features.manifest import counted
from obygaze_film.claims import Words, document, group_claims
from obygaze_film.claims.kinds import JudgedShare
from obygaze_film.claims.of_groups import compared_share, expected_share_of
from obygaze_film.claims.phrases import groups_sentence, no_share_phrase, panel_doubts
from obygaze_film.film_groups import ALL, ComparedFilm, FilmComparison
from obygaze_film.notes import Message, judge_name, message
from obygaze_models.report import NOTHING, Block, Column, Report, block, interval, number, signed


def _group_share(value: float, low: float, high: float) -> str:
    """Write a group's share with its interval, or that it has none: the column "no rate" says why."""
    return NO_RATE if math.isnan(value) else interval(value, low, high)


def _change(value: float, low: float, high: float) -> str:
    """Write a difference or a trend with its interval, or that it has none: the note says why."""
    return NO_RATE if math.isnan(value) else signed(value, low, high)


NO_RATE: Final = "no rate"
"""Cell of a share that a table has not; its reason stands beside it."""

# A column is its heading, the cell or cells of a row that it shows, and the function that writes them.
SHARE: Final[Column] = ("share of time [95%]", ("value", "low", "high"), _group_share)
"""Column of a group's share."""

CHANGE: Final[Column] = ("change of the share [95%]", ("value", "low", "high"), _change)
"""Column of a difference or a trend."""

WINDOWS: Final[Column] = ("windows counted", "n_windows", str)
COUNTS: Final[tuple[Column, ...]] = (
    ("films", "n_films", str),
    ("with enough judged", "n_judged", str),
    ("by", "judges", str),
)
"""Columns that groups and changes have in common."""


def _film_share(value: float, low: float, high: float, why_none: str) -> str:
    """Write a film's share with its interval, or why it has no share.

    A share that was counted over all windows of the film has no interval: `low` is NaN.

    Examples
    --------
    >>> _film_share(0.4, 0.3, 0.5, "")
    '0.400 [0.300, 0.500]'
    >>> _film_share(0.4, math.nan, math.nan, "")
    '0.400'
    >>> _film_share(math.nan, math.nan, math.nan, "too few windows are judged")
    'too few windows are judged'
    """
    if math.isnan(value):
        return why_none
    is_counted = math.isnan(low)
    return number(value) if is_counted else interval(value, low, high)


FILM_SHARE: Final[Column] = ("share of time [95%]", ("value", "low", "high", "why_none"), _film_share)
"""Column of a film's own share."""


def notes_of_shares(compared: FilmComparison) -> list[Message]:
    """Explain the shares of a comparison: what time they cover, and how to read the columns beside them.

    A note is only there if the tables have what it explains: shares of groups, changes, intervals of films.
    Two notes explain how a film's own share differs from its part in the share of its group: by its windows,
    and by its judges.
    """
    # Some notes have another text if a concept is positive, and not a level.
    suffix = "_concept" if compared.positive.is_concept else ""
    notes = [message(f"note_share{suffix}")]

    # On shares of groups
    if _has_value(compared.groups):
        notes.append(message("note_group_interval"))
        notes.append(_note_on_judged_shares(compared))
        if _has_value(compared.changes):
            notes.append(message("note_changes"))
        notes.append(_note_on_worth(compared))  # how many judgements the model saves

    # On shares of films. One that was counted over all windows of a film (a census) has no interval.
    any_film_has_interval = any(film.rate is not None and not film.rate.is_census for film in compared.films)
    if any_film_has_interval:
        notes.append(message("note_film_interval"))
    notes.append(_note_on_expected_shares(compared))

    # A film's share is from windows that all its judges judged, that of its group from windows of any judge.
    have_films_other_windows = any(film.windows_of_share != film.windows_of_group for film in compared.films)
    if have_films_other_windows:
        notes.append(message(f"note_windows{suffix}"))
    if any(film.judges_left_out for film in compared.films):
        notes.append(message(f"note_judges{suffix}"))
    return notes


def _has_value(table: pd.DataFrame) -> bool:
    """Whether any row of the table of groups or of changes has a value; an empty table has no columns."""
    return len(table) > 0 and bool(table["value"].notna().any())


def _note_on_judged_shares(compared: FilmComparison) -> Message:
    """Explain how shares are estimated: from judgements, together with a model or an annotator's labels."""
    if compared.is_of_labels:
        return message("note_together_labels", who=judge_name(compared.model))
    return message("note_together")


def _note_on_worth(compared: FilmComparison) -> Message:
    """Explain the column that says what the model is worth, in judged windows.

    It says how many windows would have to be judged for the same interval without the model's probabilities,
    or without the labels of an annotator, if these help in the model's place.
    """
    if compared.is_of_labels:
        return message("note_worth_labels", who=judge_name(compared.model))
    return message("note_worth")


def _note_on_expected_shares(compared: FilmComparison) -> Message:
    """Explain the column of shares by the model alone, or by an annotator's labels alone."""
    if compared.is_of_labels:
        return message("note_labels_alone", who=judge_name(compared.model))
    return message("note_alone")


def comparison_report(compared: FilmComparison) -> Report:
    """Make a report: a table of groups, one of differences and the trend, and one of films by year.

    Its answer is a sentence. What the sentence claims is in the record too, for programs.
    """
    tables = {"Groups": compared.groups, "Changes": compared.changes, "Films": _films(compared)}
    columns = {
        "Groups": _columns_of_groups(compared),
        "Changes": _columns_of_changes(compared),
        "Films": _columns_of_films(compared),
    }
    title = counted(len(compared.films), "film")
    is_grouped = compared.by != ALL
    if is_grouped:
        title = f"{title} by {compared.by}"

    # Tables without rows are not printed.
    blocks: list[Block] = []
    for name, table in tables.items():
        if len(table) > 0:
            blocks.append(block(name, columns[name], _rows(name, table, compared)))

    claims = group_claims(compared)
    record = {
        "by": compared.by,
        "positive": str(compared.positive.text),
        "model": compared.model,
        "claims": [document(claim) for claim in claims],
    }
    return Report(
        name="film-compare",
        title=title,
        notes=(*notes_of_shares(compared), *_notes_of_films(compared), *compared.notes),
        blocks=tuple(blocks),
        data=_one_below_the_other(tables),
        record=record,
        answers=(groups_sentence(claims, Words("en")),),
    )


def _one_below_the_other(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Join tables, by their names, into one, in which the column `table` has the name of each row's table.

    It is saved as text. The column `judge_names`, of tuples, is left out: the same names are in `judges`, as
    one text.
    """
    parts = []
    for name, table in tables.items():
        # The table of films, and empty tables, have no such column.
        without_tuples = table.drop(columns="judge_names", errors="ignore")
        parts.append(without_tuples.assign(table=name))
    return pd.concat(parts, ignore_index=True)


def _columns_of_groups(compared: FilmComparison) -> list[Column]:
    """List the columns of the table of groups.

    A column has a heading, the name of a cell of `compared.groups` (or several) that it shows, and a function
    that writes these as a text. The column of notes is only there if a group has a note.
    """
    columns: list[Column] = [
        (compared.by, "group", str),
        *COUNTS,  # films, films with enough judged, judges
        WINDOWS,  # how many windows count
        SHARE,  # the share with its interval
        ("worth", "worth", _worth),  # how many windows would have to be judged without the model
        (_expected_heading(compared), ("expected", "n_expected", "n_films"), _expected),
        ("no rate", "reason", str),
    ]
    has_notes = len(compared.groups) > 0 and compared.groups["note"].astype(bool).any()
    if has_notes:
        columns.append(("note", "note", str))
    return columns


def _columns_of_changes(compared: FilmComparison) -> list[Column]:
    """List the columns of the table of differences and the trend.

    A column has a heading, the name of a cell of `compared.changes` (or several) that it shows, and a
    function that writes these as a text. The column of notes is only there if a row has a note, or a reason
    why it has no value.
    """
    columns: list[Column] = [("change", "change", str), *COUNTS, CHANGE]
    changes = compared.changes
    if len(changes) > 0:  # an empty table has no columns
        has_reason = changes["reason"].astype(bool).any()
        has_note = changes["note"].astype(bool).any()
        if has_reason or has_note:
            columns.append(("note", ("reason", "note"), _note))
    return columns


def _columns_of_films(compared: FilmComparison) -> list[Column]:
    """List the columns of the table of films, each with its heading, its values, and what writes them.

    The values are one value of a film or several, such as "n_windows", or ("judges", "judges_left_out") for
    one text on both. The column of the group is there only if films are grouped.
    """
    columns: list[Column] = [("year", "year", str), ("film", "title", str)]
    is_grouped = compared.by != ALL
    if is_grouped:
        columns.append((compared.by, "group", str))
    columns += [
        ("by", ("judges", "judges_left_out"), _judges),  # who judged
        WINDOWS,
        FILM_SHARE,
        (_expected_heading(compared), "expected", _film_expected),
    ]
    return columns


def _expected_heading(compared: FilmComparison) -> str:
    """Name the column of the shares that a model, or an annotator's labels, give without judgements."""
    return f"{judge_name(compared.model)} alone" if compared.is_of_labels else "model alone"


def _rows(name: str, table: pd.DataFrame, compared: FilmComparison) -> list[dict[Hashable, Any]]:
    """Return the rows of a table as it is printed.

    Rows of the table of films get a further cell, `why_none`: why the film has no share by judges.

    Parameters
    ----------
    name : str
        Which table: "Groups", "Changes" or "Films".
    table : DataFrame
    compared : FilmComparison
    """
    rows = table.to_dict("records")
    if name == "Films":
        for row, film in zip(rows, compared.films, strict=True):
            row["why_none"] = _why_no_share(film)
    return rows


def _why_no_share(film: ComparedFilm) -> str:
    """Say in the place of a film's share by judges why it has none."""
    if film.counts is None:
        return "not judged"
    return "too few judged" if film.counts.judged else "no judgement counts"


def _notes_of_films(compared: FilmComparison) -> list[str]:
    """Write the notes of each film: that its judges may agree by chance, and why the model has no share."""
    words = Words("en")
    notes: list[str] = []
    for film in compared.films:
        notes += _note_on_agreement(film, compared, words)
        notes += _note_on_missing_share(film, compared, words)
    return notes


def _note_on_agreement(film: ComparedFilm, compared: FilmComparison, words: Words) -> list[str]:
    """Note that the judges of a film's share may agree no better than chance; empty if that is not so."""
    claim = compared_share(film, compared)
    if not isinstance(claim, JudgedShare):
        return []
    doubts = words["semicolon"].join(panel_doubts(claim, words))
    if not doubts:
        return []
    judges = words.listed([words.judge(name) for name in claim.who])
    return [message("note_of", movie=f"{film.facts['title']}, {judges}", notice=doubts)]


def _note_on_missing_share(film: ComparedFilm, compared: FilmComparison, words: Words) -> list[str]:
    """Note why the model expects no share of a film; empty if it expects one."""
    expected = expected_share_of(film, compared)
    if expected.number is not None:
        return []
    reason = no_share_phrase(expected, words)
    return [message("note_of", movie=f"{film.facts['title']}, model alone", notice=reason)]


def _film_expected(value: float) -> str:
    """Write the share that a model expects of a film, or that it has none: a note says why."""
    return NO_RATE if math.isnan(value) else number(value)


def _expected(value: float, n_expected: int, n_films: int) -> str:
    """Write the mean of the shares that a model expects, with the number of films if only some have one."""
    text = NO_RATE if math.isnan(value) else number(value)
    only_some_have_one = 0 < n_expected < n_films
    if only_some_have_one:
        text = f"{text} ({n_expected} of {n_films} films)"
    return text


def _judges(judges: str, left_out: str) -> str:
    """Write the names of the judges of a film's share, and of judges who are left out of it."""
    return f"{judges} (without {left_out})" if left_out else judges


def _note(reason: str, note: str) -> str:
    """Write why there is no estimate of a change; of an estimate, the note on how few films it rests."""
    return str(reason or note)


def _worth(value: float) -> str:
    """Write how many windows would be needed without the model; a dash (NaN) where no more than with it."""
    return NOTHING if math.isnan(value) else number(value, digits=0)


def _films(compared: FilmComparison) -> pd.DataFrame:
    """Make the table of films: a row for each, with its facts, its windows and its share if it has one."""
    rows = []
    for film in compared.films:
        row = {
            "movie": film.timeline.movie,
            "year": film.facts["year"],
            "title": film.facts["title"],
            "group": film.group,
            "judges": "",
            "judges_left_out": ", ".join(map(judge_name, film.judges_left_out)),
            "n_windows": film.windows_of_share.n,
            "n_unsure": film.windows_of_share.n_unsure,
            "n_after_gap": film.n_after_gap,
            "expected": film.expected,
            "value": float("nan"),
            "low": float("nan"),
            "high": float("nan"),
        }
        if film.rate is not None:
            row["value"] = film.rate.value
            row["judges"] = ", ".join(map(judge_name, film.rate.annotators))
            if not film.rate.is_census:  # a share that was counted has no interval
                row |= {"low": film.rate.low, "high": film.rate.high}
        rows.append(row)
    return pd.DataFrame(rows)
