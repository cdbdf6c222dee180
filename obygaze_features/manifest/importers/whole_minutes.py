"""Read times that were typed as m:ss into a workbook, which keeps 1:30 as one hour and a half."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Final

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.importers.column_contents import cells_of, seconds_in
from obygaze_features.manifest.spans.headings import DURATION
from obygaze_features.manifest.text_tables import TIMES, Row, Table
from obygaze_features.workbook import is_of_whole_minutes

START, END = TIMES

LONG_SPAN_S: Final = 1800.0
"""Spans of half an hour or more are not what people judge, so that their times are read wrongly."""

LONG_FILM_S: Final = 5 * 3600.0
"""Hardly any film lasts so long: a longer one has minutes that were taken for hours."""

BEYOND_FILMS_S: Final = 12 * 3600.0
"""No film lasts so long, so that such a clock was typed as m:ss even if others in its column were not."""


def with_minutes_as_typed(table: Table) -> Table:
    """Read clocks of a workbook as minutes and seconds if they cannot be hours and minutes, and note it.

    A workbook stores 1:30, typed for a minute and a half, as 1:30:00. A column is read as minutes and seconds
    only if

    - all its clocks are whole minutes, and
    - read as hours and minutes, the median span would last half an hour or more, or a film more than five
      hours.

    Raises
    ------
    ManifestError
        Some times of a column were typed as m:ss and others as h:mm:ss, so that each is ambiguous.
    """
    time_columns = [name for name in (START, END, DURATION) if name in table.columns]
    of_whole_minutes = [name for name in time_columns if _has_whole_minutes_only(cells_of(table, name))]
    typed_as_minutes = _columns_typed_as_minutes(table, of_whole_minutes)
    if typed_as_minutes:
        return _as_minutes_and_seconds(table, typed_as_minutes)
    for name in time_columns:
        _refuse_both_ways_of_typing(table, name)
    return table


def _columns_typed_as_minutes(table: Table, of_whole_minutes: Sequence[str]) -> list[str]:
    """Return the columns that were typed as m:ss, as read as h:mm:ss spans or the film would be too long.

    `of_whole_minutes` are the columns of times in which all clocks are whole minutes.
    """
    # A duration of 1:30:00 would be an hour and a half. Starts and ends were typed as durations were.
    if DURATION in of_whole_minutes and median(_seconds(table, DURATION)) >= LONG_SPAN_S:
        return list(of_whole_minutes)
    # So would a span from 1:30:00 to 3:00:00; and an end at 95:00:00 would be in a film of four days.
    has_both = START in of_whole_minutes and END in of_whole_minutes
    if has_both and (_has_long_spans(table) or _is_longer_than_films(table, END)):
        return [START, END]
    # In a table without ends, starts tell how long the film is.
    has_only_starts = START in of_whole_minutes and END not in table.columns
    if has_only_starts and _is_longer_than_films(table, START):
        return [START]
    return []


def _has_whole_minutes_only(cells: Sequence[str]) -> bool:
    """Return whether cells are clocks of whole minutes alone, such as 1:30:00, of two values or more."""
    return len(set(cells)) > 1 and all(is_of_whole_minutes(cell) for cell in cells)


def _seconds(table: Table, name: str) -> list[float]:
    """Return the times of a column in seconds, without the cells that are no times."""
    return [seconds for seconds in seconds_in(cells_of(table, name)) if not math.isnan(seconds)]


def _has_long_spans(table: Table) -> bool:
    """Return whether spans last half an hour or more (median); False if no row has both a start and an end.

    The clocks are read as the workbook keeps them: 1:30:00 as an hour and a half.
    """
    rows = [row for row in table.rows if row.cells[START].strip() and row.cells[END].strip()]
    if not rows:
        return False
    starts = seconds_in([row.cells[START].strip() for row in rows])
    ends = seconds_in([row.cells[END].strip() for row in rows])
    lengths_s = [end_s - start_s for start_s, end_s in zip(starts, ends, strict=True)]
    return median(lengths_s) >= LONG_SPAN_S


def _is_longer_than_films(table: Table, name: str) -> bool:
    """Return whether a column has a time beyond the length of films (five hours)."""
    return max(_seconds(table, name), default=0.0) > LONG_FILM_S


def _as_minutes_and_seconds(table: Table, names: Sequence[str]) -> Table:
    """Read the clocks of some columns as minutes and seconds, and note it: 1:30:00 as 90 seconds.

    Returns
    -------
    The table with these times in seconds, and with a note for the person.
    """
    rows = []
    for row in table.rows:
        cells = dict(row.cells)
        for name in names:
            clock = cells[name].strip()
            if clock:
                [time_s] = seconds_in([clock])
                time_as_typed_s = time_s / 60  # the hours were minutes, and the minutes seconds
                cells[name] = f"{time_as_typed_s:g}"
        rows.append(Row(row.line, cells))

    example = cells_of(table, names[0])[0]
    hours, minutes, _ = example.split(":")
    note = (
        f"{' and '.join(names)}: clocks of whole minutes read as minutes and seconds ({example} as "
        f"{int(hours)}:{minutes} min), as spans would last half an hour, or the film five; write 0:01:30 "
        "where 90 s are meant"
    )
    return replace(table, rows=tuple(rows), notes=(*table.notes, note))


def _refuse_both_ways_of_typing(table: Table, name: str) -> None:
    """Refuse a column in which some times seem typed as m:ss and others as h:mm:ss.

    Both ways differ in what the workbook keeps:

    - 95:30, typed as m:ss, is kept as 95:30:00: whole minutes, and too late for any film;
    - 1:35:30, typed as h:mm:ss, is kept as it is, with seconds.
    """
    typed_without_hours = []
    typed_with_seconds = []
    for cell in cells_of(table, name):
        if not is_of_whole_minutes(cell):
            typed_with_seconds.append(cell)
        elif seconds_in([cell])[0] >= BEYOND_FILMS_S:
            typed_without_hours.append(cell)
    have_hours = all(cell.count(":") == 2 for cell in typed_with_seconds)  # h:mm:ss
    if typed_without_hours and typed_with_seconds and have_hours:
        raise ManifestError(
            f"{table.path}: column {name}: {typed_without_hours[0]} beside {typed_with_seconds[0]}: some "
            "times were typed as m:ss, which a workbook keeps as h:mm, and others as h:mm:ss; write all as "
            "h:mm:ss (0:01:30 is 90 s)"
        )
