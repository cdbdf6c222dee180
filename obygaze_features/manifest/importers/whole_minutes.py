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
"""Hardly a film lasts so long."""

BEYOND_S: Final = 12 * 3600.0
"""What no film lasts of which some times are of a few seconds more."""


def with_minutes_as_typed(table: Table) -> Table:
    """Read clocks of a workbook as minutes and seconds, where they cannot be hours and minutes; say so.

    Only columns whose clocks are all of whole minutes, of spans that would last half an hour or more, or of a
    film of more than five hours.

    Raises
    ------
    ManifestError
        Some times were typed as m:ss, and others as h:mm:ss: which is which is not known.
    """
    columns = [name for name in (START, END, DURATION) if name in table.columns]
    whole = [name for name in columns if _is_whole(cells_of(table, name))]
    if DURATION in whole and median(_seconds(table, DURATION)) >= LONG_SPAN_S:
        return _in_sixtieths(table, [name for name in whole if name != END])
    if START in whole and END in whole and (_median_length(table) >= LONG_SPAN_S or _is_too_long(table, END)):
        return _in_sixtieths(table, [START, END])
    if START in whole and END not in columns and _is_too_long(table, START):
        return _in_sixtieths(table, [START])
    for name in columns:
        _refuse_mixed(table, name)
    return table


def _is_whole(cells: Sequence[str]) -> bool:
    """Return whether a column has clocks of whole minutes alone, in several rows."""
    return len(cells) > 1 and len(set(cells)) > 1 and all(map(is_of_whole_minutes, cells))


def _seconds(table: Table, name: str) -> list[float]:
    """Return the times of a column in seconds, without the cells that are no times."""
    return [seconds for seconds in seconds_in(cells_of(table, name)) if not math.isnan(seconds)]


def _median_length(table: Table) -> float:
    """Return the median length of spans, whose starts and ends are clocks; 0 where no row has both."""
    rows = [row for row in table.rows if row.cells[START].strip() and row.cells[END].strip()]
    starts = seconds_in([row.cells[START].strip() for row in rows])
    ends = seconds_in([row.cells[END].strip() for row in rows])
    if not rows:
        return 0.0
    return median([end_s - start_s for start_s, end_s in zip(starts, ends, strict=True)])


def _is_too_long(table: Table, name: str) -> bool:
    """Return whether a column has a time that hardly a film lasts."""
    return max(_seconds(table, name), default=0.0) > LONG_FILM_S


def _in_sixtieths(table: Table, names: Sequence[str]) -> Table:
    """Read the clocks of some columns as minutes and seconds, where they were taken for hours and minutes.

    A spreadsheet writes 1:30, which may mean a minute and a half, as 1:30:00. A sixtieth of what it says is
    what was meant.
    """
    rows = []
    for row in table.rows:
        cells = dict(row.cells)
        for name in names:
            if cells[name].strip():
                cells[name] = f"{seconds_in([cells[name].strip()])[0] / 60:g}"
        rows.append(Row(row.line, cells))
    first = cells_of(table, names[0])[0]
    hours, minutes, _ = first.split(":")
    note = (
        f"{' and '.join(names)}: clocks of whole minutes read as minutes and seconds ({first} as "
        f"{int(hours)}:{minutes} min), as spans would last half an hour, or the film five; write 0:01:30 "
        "where 90 s are meant"
    )
    return replace(table, rows=tuple(rows), notes=(*table.notes, note))


def _refuse_mixed(table: Table, name: str) -> None:
    """Refuse a column in which some times are beyond any film and of whole minutes, and others are not."""
    cells = cells_of(table, name)
    late = [cell for cell in cells if is_of_whole_minutes(cell) and seconds_in([cell])[0] >= BEYOND_S]
    early = [cell for cell in cells if cell not in late and not is_of_whole_minutes(cell)]
    if late and early and all(cell.count(":") == 2 for cell in early):
        raise ManifestError(
            f"{table.path}: column {name}: {late[0]} beside {early[0]}: some times were typed as m:ss, which "
            "a workbook keeps as h:mm, and others as h:mm:ss; write all as h:mm:ss (0:01:30 is 90 s)"
        )
