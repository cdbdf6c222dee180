"""Read tables of spans by the names of their columns: what all have in common, and VIAN's.

Source: VIAN's segmentation and project exporters.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from obygaze_features.manifest.spans.given import KINDS, Given, RawSpan, number
from obygaze_features.manifest.spans.instant import instants, is_clock
from obygaze_features.manifest.spans.subtitles import one_line
from obygaze_features.manifest.text_tables import Row, Table, placed, table_of
from obygaze_features.workbook import Records

VIAN = KINDS["vian"]


def table(
    given: Given, needed: Sequence[str], records: tuple[Records, str] | None = None, read: str = ""
) -> Table:
    """Read a table with these columns, and those that are known of its kind.

    Rows of nothing do not count. What stands above its header is noted, and which columns hold something
    and are none that are `read`.
    """
    facts = KINDS[given.account.kind]
    split, sign = records or given.records(needed)
    filled = [each for each in split if any(each[1])]
    made = table_of(given.path, filled, sign, needed, known=facts["known"], named=False)
    given.account.note(*made.notes)
    given.usual *= made.delimiter != ";"  # which no tool writes, but a spreadsheet
    are_read = re.compile(read or facts["read"], re.IGNORECASE)
    rest = [name for name in made.columns if name and not are_read.fullmatch(name)]
    told = (name for name in rest if any(row.cells[name].strip() for row in made.rows))
    given.account.unread("column", told)
    return made


def timed(
    given: Given, rows: Sequence[Row], start: str, end: str, per_second: float = 1.0
) -> Iterator[tuple[Row, tuple[str, float, float], str]]:
    """Yield the rows of a tool's table with their place, start and end, and why one is missing.

    Parameters
    ----------
    start, end
        Columns of times.
    per_second
        How many of their units a second has; 0 for frames, at the rate that the person gives.
    """
    cells = [row.cells[name] for name in (start, end) for row in rows]
    with placed(f"{given.path}: columns {start} and {end}"):
        values = instants(cells, given.usual, given.rate, 2)
    for row, *ends in zip(rows, values[: len(rows)], values[len(rows) :], strict=True):
        where, why, found = f"line {row.line}", "", []
        for name, column, value in zip(("start", "end"), (start, end), ends, strict=True):
            if not isinstance(value, float):
                why = why or (f"no {name}" if value is None else f"no time ({value})")
            elif is_clock(row.cells[column]):
                found.append(value)  # a clock, whatever its column is called
            else:
                found.append(value / per_second if per_second else given.frames(value, where))
        yield row, (where, *((found[0], found[1]) if not why else (math.nan, math.nan))), why


def first_of(cells: Mapping[str, str], *names: str) -> str:
    """Return the first of some cells that is not empty."""
    return next((one_line(cells[name]) for name in names if cells.get(name, "").strip()), "")


# --- VIAN
# ---------------------------------------------------------------------------
def read_vian(given: Given) -> Iterator[RawSpan]:
    """Yield the segments of VIAN: of its segmentation exporter, or of its project as CSV."""
    segments, project = VIAN["columns"]
    made = table(given, project if given.has_columns(project) else segments)
    columns = next((each for each in VIAN["times"] if {*each[:2]} <= set(made.columns)), None)
    if columns is None:
        raise given.error("no start and end of segments: export both from VIAN, as milliseconds")
    bodies = [name for name in made.columns if name.lower().startswith("annotation_")]
    keywords = [name for name in made.columns if ":" in name]
    said = [(name, one_line(row.cells[name])) for row in made.rows for name in keywords]
    given.account.unread("keyword", (f"{n} {c:.40}" for n, c in said if number(c or 0) not in {0, 1}))
    rows = [*made.rows]
    if columns[0] == "start_ts":  # milliseconds stand behind a colon, frames are of 24 a second in any film
        given.rate = Fraction(24)
        ends = [{name: row.cells[name] for name in columns[:2]} for row in rows]
        ends = [{name: re.sub(r":(\d{3})\s*$", r".\1", cell) for name, cell in each.items()} for each in ends]
        rows = [Row(row.line, {**row.cells, **each}) for row, each in zip(rows, ends, strict=True)]
    for row, at, no_time in timed(given, rows, *columns):
        kind = row.cells.get("SELECTOR_TYPE", "segment").strip().lower()
        odd = "" if kind == "segment" else f"of a {kind or 'record without type'}, no segment"
        marked = (name.rpartition(":")[2] for name in keywords if number(row.cells[name]) == 1)
        text = "; ".join(filter(None, [*(one_line(row.cells[name]) for name in bodies), *marked]))
        cells = {"movie": first_of(row.cells, *VIAN["film"])}
        tier = one_line(row.cells.get("segmentation_name", ""))
        yield RawSpan(*at, text, tier, cells, why=no_time or odd)
