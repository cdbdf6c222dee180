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
from obygaze_features.manifest.spans.tier_names import NAMED, matching_key, tier_key
from obygaze_features.manifest.text_tables import Row, Table, counted, error_context, table_of
from obygaze_features.workbook import Records


class TimedRow(NamedTuple):
    """A row of a tool's table, with its place in the file and its times.

    Attributes
    ----------
    start_s, end_s
        Times in seconds; NaN, both, if one cannot be read.
    reason
        Why a time cannot be read; "" if both can.
    """

    row: Row
    where: str
    start_s: float
    end_s: float
    reason: str


class CellTime(NamedTuple):
    """The time of a cell in seconds, or the reason why it has none; NaN and "" for the other."""

    time_s: float
    reason: str


def tool_table(file: SpanFile, needed: Sequence[str], records: tuple[Records, str] | None = None) -> Table:
    """Read a tool's table without its empty rows; lines above the header are noted in the file's account.

    Parameters
    ----------
    file
        The file, whose kind is known.
    needed
        Columns that the header must have.
    records
        The records of the file and the sign between their cells, if they were split before; None to split
        them here.
    """
    if records is None:
        records = file.records(needed)
    all_records, delimiter = records
    filled_records = [(line, cells) for line, cells in all_records if any(cells)]
    columns_of_tool = KINDS[file.account.kind]["known"]  # found whatever their case
    # Further columns may have no name, and are not refused for it.
    table = table_of(file.path, filled_records, delimiter, needed, known=columns_of_tool, named=False)
    file.account.note(*table.notes)
    return table


def added_label_columns(file: SpanFile, table: Table) -> list[str]:
    """Return the columns with labels that a person added to a tool's table.

    A column has labels if it has the name of a tier of labels, if --tier names it, or if all its cells are
    words of the codebook; cells of columns that the tool itself writes may be such words by chance. The
    file's account notes the other columns, and how to read one of which some cells are labels.
    """
    facts_of_kind = KINDS[file.account.kind]
    # Patterns of the columns that the tool writes: of those that the reader of this kind reads, and of the
    # others ("" if none are known).
    read_columns = re.compile(facts_of_kind["read"], re.IGNORECASE)
    unread_columns_of_tool = re.compile(facts_of_kind.get("own", ""), re.IGNORECASE)
    keys_of_label_tiers = {tier_key(tier) for tier in (*NAMED, *file.reading.tiers)}

    label_columns: list[str] = []
    other_columns: list[str] = []
    for name in table.columns:
        different_cells = {row.cells[name].strip() for row in table.rows} - {""}
        if not name or not different_cells or read_columns.fullmatch(name):
            continue
        is_of_the_tool = unread_columns_of_tool.fullmatch(name) is not None
        n_labels = 0 if is_of_the_tool else _n_labels(file, different_cells)
        is_named_as_labels = bool(matching_key(name, keys_of_label_tiers))
        if is_named_as_labels or n_labels == len(different_cells):
            label_columns.append(name)
        else:
            other_columns.append(name)
            file.account.note(_note_on_some_labels(name, n_labels, len(different_cells)))
    file.account.note_unread("column", other_columns)
    return label_columns


def _note_on_some_labels(column: str, n_labels: int, n_words: int) -> str:
    """Say that some words of a column are labels, and how to read it as labels; "" if none are."""
    if n_labels == 0:
        return ""
    typed = shlex.quote(f"{column}=labels")
    fact = f"{n_labels} of {counted(n_words, 'word')} of column {column!r:.60} are of the codebook"
    return f"{fact}: --tier {typed} reads them, if they are labels"


def _n_labels(file: SpanFile, cells: Iterable[str]) -> int:
    """Count the cells that are labels of the codebook."""
    if file.words is None:
        return 0
    return sum(file.words.labels_of(cell) is not None for cell in cells)


def with_added_labels(span: RawSpan, rows: Sequence[Row], columns: Sequence[str]) -> Iterator[RawSpan]:
    """Yield a span of a tool's table, and another of the same times for each label that a person added.

    A record that is no span is yielded alone.

    Parameters
    ----------
    span
        The span.
    rows
        The rows of the table that the span was read from.
    columns
        The columns with labels, from `added_label_columns`.
    """
    yield span
    is_no_span = bool(span.fault())
    if is_no_span:
        return
    for name in columns:
        texts = dict.fromkeys(one_line(row.cells[name]) for row in rows)  # each once, in order
        for text in texts:
            if text:
                yield replace(span, text=text, tier=name, span_id="", parent_ids=(), is_added_column=True)


def decimal_sign(delimiter: str) -> str:
    """Return the decimal sign of a table by the sign between its cells; "" if it may be a point or a comma.

    Spreadsheets separate cells by `;` in countries whose decimal sign is a comma, but not only there.
    """
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
    """Yield the rows of a tool's table with their times in seconds, or the reason why there are none.

    The reason is an error of a spreadsheet in a column that is read, else what is wrong with the start, else
    what is wrong with the end.

    Parameters
    ----------
    file
        The file, with the rate that the person gives.
    rows
        The rows.
    start, end
        The columns of times.
    per_second
        Units of the times in a second, such as 1000 for milliseconds; 0 if they are frames.
    decimal
        Decimal sign of the times; "" if it may be a point or a comma.
    rate
        Frames per second of time codes, if the tool has a fixed rate; else the person gives it.
    """
    start_cells = [row.cells[start] for row in rows]
    end_cells = [row.cells[end] for row in rows]
    with error_context(f"{file.path}: columns {start} and {end}"):
        # In one call, as starts and ends together tell the decimal sign.
        values = instants([*start_cells, *end_cells], decimal, rate or file.reading.rate, n_columns=2)
    start_values = values[: len(rows)]
    end_values = values[len(rows) :]

    pattern_of_read_columns = re.compile(KINDS[file.account.kind]["read"], re.IGNORECASE)
    all_columns = list(rows[0].cells) if rows else []
    read_columns = [name for name in all_columns if pattern_of_read_columns.fullmatch(name)]

    for row, start_value, end_value in zip(rows, start_values, end_values, strict=True):
        location = f"line {row.line}"
        start_time = _time_of_cell(
            file, row.cells[start], start_value, location, per_second=per_second, if_empty="no start"
        )
        end_time = _time_of_cell(
            file, row.cells[end], end_value, location, per_second=per_second, if_empty="no end"
        )
        reason = _unreadable_cell(row, read_columns) or start_time.reason or end_time.reason
        if reason:
            yield TimedRow(row, location, math.nan, math.nan, reason)
        else:
            yield TimedRow(row, location, start_time.time_s, end_time.time_s, "")


def _time_of_cell(
    file: SpanFile,
    cell: str,
    number: float | ManifestError | None,
    location: str,
    *,
    per_second: float,
    if_empty: str,
) -> CellTime:
    """Return the time in a cell in seconds, or the reason why it has none.

    Parameters
    ----------
    file
        The file, with the rate of times in frames.
    cell
        The text of the cell.
    number
        What `instants` read from it: a number; None if it is empty; an error if it is no time.
    location
        Place of the cell, for errors.
    per_second
        Units of the column's numbers in a second; 0 if they are frames.
    if_empty
        The reason if the cell is empty.
    """
    if number is None:
        return CellTime(math.nan, if_empty)
    if isinstance(number, ManifestError):
        return CellTime(math.nan, f"no time ({number})")
    if is_clock(cell):  # such as 1:05, which was read as seconds, whatever unit the column's numbers have
        return CellTime(number, "")
    are_frames = per_second == 0
    if are_frames:
        return CellTime(file.seconds(number, location), "")
    return CellTime(number / per_second, "")


def _unreadable_cell(row: Row, columns: Sequence[str]) -> str:
    """Return a reason if one of these cells of a row has a spreadsheet's error such as `#REF!`; else ""."""
    for name in columns:
        if is_unreadable(row.cells[name]):
            return f"a cell that cannot be read ({row.cells[name].strip()!r}, column {name})"
    return ""


def first_filled_cell(cells: Mapping[str, str], *names: str) -> str:
    """Return the first of the named cells that is not empty, on one line; "" if all are empty."""
    for name in names:
        if cells.get(name, "").strip():
            return one_line(cells[name])
    return ""
