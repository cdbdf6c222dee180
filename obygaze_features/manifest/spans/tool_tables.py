"""Read the tables of other tools by the names of their columns: what BORIS, VIAN and ELAN have in common."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from obygaze_features.cells import is_unreadable
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.instant import instants, is_clock
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.span_file import KINDS, SpanFile
from obygaze_features.manifest.text_tables import Row, Table, placed, table_of
from obygaze_features.workbook import Records


class TimedRow(NamedTuple):
    """A row with its place, its times in seconds (NaN where they cannot be read), and why they cannot."""

    row: Row
    where: str
    start_s: float
    end_s: float
    reason: str


def tool_table(
    file: SpanFile, needed: Sequence[str], records: tuple[Records, str] | None = None, read: str = ""
) -> Table:
    """Read a table with these columns, and those that are known of its kind.

    Rows of nothing do not count. What stands above its header is noted, and which columns hold something
    and are none that are `read`.
    """
    facts = KINDS[file.account.kind]
    split, delimiter = records or file.records(needed)
    filled = [(line, cells) for line, cells in split if any(cells)]
    table = table_of(file.path, filled, delimiter, needed, known=facts["known"], named=False)
    file.account.note(*table.notes)
    are_read = re.compile(read or facts["read"], re.IGNORECASE)
    unread = [name for name in table.columns if name and not are_read.fullmatch(name)]
    file.account.unread("column", (name for name in unread if _holds_something(table, name)))
    return table


def _holds_something(table: Table, column: str) -> bool:
    return any(row.cells[column].strip() for row in table.rows)


def decimal_sign(delimiter: str) -> str:
    """Return the decimal sign of a table; "" where it may be either: a spreadsheet wrote its semicolons."""
    return "" if delimiter == ";" else "."


def timed(
    file: SpanFile,
    rows: Sequence[Row],
    start: str,
    end: str,
    *,
    per_second: float = 1.0,
    decimal: str = ".",
    rate: Fraction | None = None,
) -> Iterator[TimedRow]:
    """Yield the rows of a tool's table with their times, and why one is missing.

    Parameters
    ----------
    start, end
        Columns of times.
    per_second
        How many of their units a second has; 0 for frames, at the rate that the person gives.
    decimal
        Decimal sign of the times; "" where it may be either.
    rate
        Frames per second of clocks that end in frames, where the kind says it; else the person does.
    """
    cells = [row.cells[name] for name in (start, end) for row in rows]
    with placed(f"{file.path}: columns {start} and {end}"):
        values = instants(cells, decimal, rate or file.reading.rate, 2)
    are_read = re.compile(KINDS[file.account.kind]["read"], re.IGNORECASE)
    read = [name for name in (rows[0].cells if rows else ()) if are_read.fullmatch(name)]
    for at, row in enumerate(rows):
        where = f"line {row.line}"
        times = []
        reasons = _unreadable_cells(row, read)
        for name, column, value in (("start", start, values[at]), ("end", end, values[len(rows) + at])):
            if value is None:
                reasons.append(f"no {name}")
            elif isinstance(value, ManifestError):
                reasons.append(f"no time ({value})")
            elif is_clock(row.cells[column]):
                times.append(value)  # a clock, whatever its column is called
            else:
                times.append(value / per_second if per_second else file.seconds(value, where))
        start_s, end_s = times if not reasons else (math.nan, math.nan)
        yield TimedRow(row, where, start_s, end_s, reasons[0] if reasons else "")


def _unreadable_cells(row: Row, columns: Sequence[str]) -> list[str]:
    """Say which cells of a row are errors of a spreadsheet."""
    return [
        f"a cell that cannot be read ({row.cells[name].strip()!r}, column {name})"
        for name in columns
        if is_unreadable(row.cells[name])
    ]


def first_of(cells: Mapping[str, str], *names: str) -> str:
    """Return the first of some cells that is not empty."""
    for name in names:
        if cells.get(name, "").strip():
            return one_line(cells[name])
    return ""
