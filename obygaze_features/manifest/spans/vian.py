"""Read tables of VIAN: of its segmentation exporter, or its project as CSV; a tier is a segmentation.

Source: VIAN's segmentation and project exporters.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from obygaze_features.manifest.spans.json_values import number
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import KINDS, SpanFile
from obygaze_features.manifest.spans.tool_tables import (
    TimedRow,
    added_label_columns,
    decimal_sign,
    first_filled_cell,
    timed,
    tool_table,
    with_added_labels,
)
from obygaze_features.manifest.text_tables import Row, Table

FACTS = KINDS["vian"]
CLOCK_RATE = Fraction(24)
"""Frames a second of VIAN's clocks, whatever film it is."""


def read_vian(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the segments of VIAN, with their annotations and the keywords that are marked on them.

    Columns with labels that a person added to the table become spans of their own. Cells of keywords that are
    neither 0 nor 1 are noted in the file's account as not read.
    """
    # VIAN exports the segments of a film, or of a whole project: tables with different columns.
    columns_of_segments, columns_of_project = FACTS["columns"]
    is_project = file.has_columns(columns_of_project)
    table = tool_table(file, needed=columns_of_project if is_project else columns_of_segments)
    annotation_columns = [name for name in table.columns if name.lower().startswith("annotation_")]
    keyword_columns = [name for name in table.columns if ":" in name]
    file.account.note_unread("keyword", _cells_that_are_no_marks(table.rows, keyword_columns))
    label_columns = added_label_columns(file, table)
    for timed_row in _rows_with_times(file, table):
        row = timed_row.row
        span = RawSpan(
            timed_row.where,
            timed_row.start_s,
            timed_row.end_s,
            text=_text_of_segment(row, annotation_columns, keyword_columns),
            tier=one_line(row.cells.get("segmentation_name", "")),
            cells={"movie": first_filled_cell(row.cells, *FACTS["film"])},
            reason=timed_row.reason or _why_no_segment(row),
        )
        yield from with_added_labels(span, [row], label_columns)


def _text_of_segment(row: Row, annotations: Sequence[str], keywords: Sequence[str]) -> str:
    """Return the annotations of a segment and the words of its keywords, separated by semicolons.

    A column of keywords has 1 in the rows of segments that have the keyword, which is the word behind the
    last colon of the heading.
    """
    texts = [one_line(row.cells[name]) for name in annotations]
    for name in keywords:
        if number(row.cells[name]) == 1:
            _, _, keyword = name.rpartition(":")
            texts.append(keyword)
    return "; ".join(text for text in texts if text)


def _rows_with_times(file: SpanFile, table: Table) -> Iterator[TimedRow]:
    """Return the rows of a table with their times in seconds.

    Some exports of VIAN write clocks (column `start_ts`), others numbers, mostly of milliseconds. Clocks end
    in milliseconds, 00:01:05:120, or in frames, 00:01:05:12, of which 24 are a second.
    """
    start, end, per_second = _columns_of_times(file, table)
    has_clocks = start == "start_ts"
    rows: Sequence[Row] = table.rows
    if has_clocks:
        # With a point before them, milliseconds are not taken for frames.
        rows = [_with_points_before_milliseconds(row, (start, end)) for row in rows]
    return timed(
        file,
        rows,
        start,
        end,
        per_second=per_second,
        decimal=decimal_sign(table.delimiter),
        rate=CLOCK_RATE if has_clocks else None,
    )


class TimeColumns(NamedTuple):
    """The columns of start and end, and how many of their units are in a second."""

    start: str
    end: str
    per_second: float


def _columns_of_times(file: SpanFile, table: Table) -> TimeColumns:
    """Return the columns of times to read; a table that has several forms of times has the most exact first.

    Raises
    ------
    ManifestError
        The table has no columns of starts and ends.
    """
    for start, end, per_second in FACTS["times"]:
        if start in table.columns and end in table.columns:
            return TimeColumns(start, end, per_second)
    raise file.error("no start and end of segments: export both from VIAN, as milliseconds")


def _cells_that_are_no_marks(rows: Sequence[Row], keywords: Sequence[str]) -> Iterator[str]:
    """Yield each cell of a keyword that is neither 0 nor 1, with the keyword, for a note in the account."""
    for row in rows:
        for name in keywords:
            cell = one_line(row.cells[name])
            if number(cell or 0) not in {0, 1}:
                yield f"{name} {cell:.40}"


def _with_points_before_milliseconds(row: Row, columns: Sequence[str]) -> Row:
    """Return a row in which the milliseconds of clocks are behind a point, not a colon: `00:01:05.120`."""
    cells = dict(row.cells)
    for name in columns:
        cells[name] = re.sub(r":(\d{3})\s*$", r".\1", cells[name])
    return Row(row.line, cells)


def _why_no_segment(row: Row) -> str:
    """Return the reason why a row is no segment; "" if it is one."""
    kind = row.cells.get("SELECTOR_TYPE", "segment").strip().lower()
    return "" if kind == "segment" else f"of a {kind or 'record without type'}, no segment"
