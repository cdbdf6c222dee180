"""Read the tables of other tools by the names of their columns: what BORIS, VIAN and ELAN have in common."""

import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from msgspec.structs import replace

from obygaze_features.cells import is_unreadable
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.instant import instants, is_clock
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import KINDS, SpanFile
from obygaze_features.manifest.spans.tier_names import NAMED, key_among, tier_key
from obygaze_features.manifest.text_tables import Row, Table, counted, placed, table_of
from obygaze_features.workbook import Records


class TimedRow(NamedTuple):
    """A row with its place, its times in seconds (NaN where they cannot be read), and why they cannot."""

    row: Row
    where: str
    start_s: float
    end_s: float
    reason: str


def tool_table(file: SpanFile, needed: Sequence[str], records: tuple[Records, str] | None = None) -> Table:
    """Read a table with these columns, and those that are known of its kind.

    Rows of nothing do not count. What stands above its header is noted.
    """
    facts = KINDS[file.account.kind]
    split, delimiter = records or file.records(needed)
    filled = [(line, cells) for line, cells in split if any(cells)]
    table = table_of(file.path, filled, delimiter, needed, known=facts["known"], named=False)
    file.account.note(*table.notes)
    return table


def columns_beside(file: SpanFile, table: Table) -> list[str]:
    """Return the columns that a person added to a tool's and that may be of labels; note the others.

    These are called as tiers of labels are, are named as tiers, or have words of the codebook alone.
    """
    facts = KINDS[file.account.kind]
    are_read = re.compile(facts["read"], re.IGNORECASE)
    are_of_the_tool = re.compile(facts.get("own", ""), re.IGNORECASE)
    declared = {tier_key(tier) for tier in (*NAMED, *file.reading.tiers)}
    beside: list[str] = []
    unread: list[str] = []
    for name in table.columns:
        cells = {row.cells[name].strip() for row in table.rows} - {""}
        if not name or not cells or are_read.fullmatch(name):
            continue
        n_labels = 0 if are_of_the_tool.fullmatch(name) else _n_labels(file, cells)
        if key_among(name, declared) or n_labels == len(cells):
            beside.append(name)
            continue
        unread.append(name)
        if n_labels:
            typed = shlex.quote(f"{name}=labels")
            what = f"{n_labels} of {counted(len(cells), 'word')} of column {name!r:.60} are of the codebook"
            file.account.note(f"{what}: --tier {typed} reads them, if they are labels")
    file.account.unread("column", unread)
    return beside


def _n_labels(file: SpanFile, cells: Iterable[str]) -> int:
    """Count the cells that are labels of the codebook."""
    return 0 if file.words is None else sum(file.words.labels_of(cell) is not None for cell in cells)


def with_labels_beside(span: RawSpan, rows: Sequence[Row], columns: Sequence[str]) -> Iterator[RawSpan]:
    """Yield a span of a tool, and of its time what columns beside those of the tool say of it."""
    yield span
    if span.fault():
        return
    for name in columns:
        texts = [one_line(row.cells[name]) for row in rows]
        for text in dict.fromkeys(filter(None, texts)):
            yield replace(span, text=text, tier=name, span_id="", parent_ids=(), is_beside=True)


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
