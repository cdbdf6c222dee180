"""Read tables of VIAN: of its segmentation exporter, or its project as CSV; a tier is a segmentation.

Source: VIAN's segmentation and project exporters.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from obygaze_features.manifest.spans.json_values import number
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import KINDS, SpanFile
from obygaze_features.manifest.spans.tool_tables import (
    columns_beside,
    decimal_sign,
    first_of,
    timed,
    tool_table,
    with_labels_beside,
)
from obygaze_features.manifest.text_tables import Row

FACTS = KINDS["vian"]
CLOCK_RATE = Fraction(24)
"""Frames a second of VIAN's clocks, whatever film it is."""


def read_vian(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the segments of VIAN, with the keywords that are marked on them."""
    segments, project = FACTS["columns"]
    table = tool_table(file, project if file.has_columns(project) else segments)
    times = next((names for names in FACTS["times"] if {*names[:2]} <= set(table.columns)), None)
    if times is None:
        raise file.error("no start and end of segments: export both from VIAN, as milliseconds")
    start, end, per_second = times
    bodies = [name for name in table.columns if name.lower().startswith("annotation_")]
    keywords = [name for name in table.columns if ":" in name]
    file.account.unread("keyword", _odd_keywords(table.rows, keywords))
    beside = columns_beside(file, table)
    is_clock = start == "start_ts"
    rows = [_with_points(row, (start, end)) for row in table.rows] if is_clock else table.rows
    timed_rows = timed(
        file,
        rows,
        start,
        end,
        per_second=per_second,
        decimal=decimal_sign(table.delimiter),
        rate=CLOCK_RATE if is_clock else None,
    )
    for row, where, start_s, end_s, no_time in timed_rows:
        texts = [one_line(row.cells[name]) for name in bodies]
        texts += [name.rpartition(":")[2] for name in keywords if number(row.cells[name]) == 1]
        text = "; ".join(text for text in texts if text)
        tier = one_line(row.cells.get("segmentation_name", ""))
        cells = {"movie": first_of(row.cells, *FACTS["film"])}
        reason = no_time or _no_segment(row)
        span = RawSpan(where, start_s, end_s, text, tier, cells, reason=reason)
        yield from with_labels_beside(span, [row], beside)


def _odd_keywords(rows: Sequence[Row], keywords: Sequence[str]) -> Iterator[str]:
    """Yield the keywords with a cell that is neither 0 nor 1, and the cell."""
    for row in rows:
        for name in keywords:
            cell = one_line(row.cells[name])
            if number(cell or 0) not in {0, 1}:
                yield f"{name} {cell:.40}"


def _with_points(row: Row, columns: Sequence[str]) -> Row:
    """Write the milliseconds of clocks, which stand behind a colon, behind a point."""
    cells = dict(row.cells)
    for name in columns:
        cells[name] = re.sub(r":(\d{3})\s*$", r".\1", cells[name])
    return Row(row.line, cells)


def _no_segment(row: Row) -> str:
    """Say why a record is no segment; "" if it is one."""
    kind = row.cells.get("SELECTOR_TYPE", "segment").strip().lower()
    return "" if kind == "segment" else f"of a {kind or 'record without type'}, no segment"
