"""Read tables of spans by the names of their columns: what all have in common, and VIAN's.

Source: VIAN's segmentation and project exporters.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.given import Given, RawSpan
from obygaze_features.manifest.spans.instant import instants
from obygaze_features.manifest.spans.names import path_of
from obygaze_features.manifest.spans.subtitles import one_line
from obygaze_features.manifest.spans.workbook import Records, is_workbook
from obygaze_features.manifest.text_tables import HEADER_ROWS, Row, Table, split_records, table_of

VIAN_SEGMENTS = ("segmentation_name",)
VIAN_PROJECT = ("START_MS", "END_MS", "SELECTOR_TYPE")
_FILM = ("movie", "movie_name", "film", "video", "MOVIE", "MOVIE_NAME", "FILM")
"""Columns in which exports of several films name each."""


def records_of(given: Given, needed: Sequence[str], delimiter: str = "") -> tuple[Records, str]:
    """Split a file into records: a text by the delimiter that its header has, or a sheet of a workbook."""
    if is_workbook(given.content):
        return list(given.sheet), ""
    return split_records(given.path, given.text, needed, delimiter)


def table(given: Given, needed: Sequence[str], records: tuple[Records, str] | None = None) -> Table:
    """Read a table with these columns; what stands above its header is noted."""
    rows, delimiter = records_of(given, needed) if records is None else records
    made = table_of(given.path, rows, needed, delimiter, named=False)
    given.account.notes += made.notes
    return made


def has_columns(records: Records, names: Sequence[str]) -> bool:
    """Return whether one of the first rows has these names."""
    return any(set(names) <= {cell.strip() for cell in cells} for _, cells in records[:HEADER_ROWS])


@dataclass(frozen=True)
class Times:
    """Columns of starts and ends, how many of their units a second has, and whether they are frames."""

    start: str
    end: str
    per_second: float = 1.0
    are_frames: bool = False


def timed(given: Given, rows: Sequence[Row], times: Times) -> Iterator[tuple[Row, str, float, float]]:
    """Yield the rows of a tool's table with their start and end; leave out those without."""
    cells = [row.cells[name] for name in (times.start, times.end) for row in rows]
    try:
        values = instants(cells, ".", given.rate)
    except ManifestError as error:
        raise given.error(f"columns {times.start} and {times.end}: {error}") from None
    for row, start, end in zip(rows, values[: len(rows)], values[len(rows) :], strict=True):
        given.account.seen += 1
        where = f"line {row.line}"
        if isinstance(start, ManifestError) or isinstance(end, ManifestError):
            given.account.leave(where, f"no time ({start if isinstance(start, ManifestError) else end})")
        elif start is None or end is None:
            given.account.leave(where, f"no {'start' if start is None else 'end'}")
        elif times.are_frames:
            yield row, where, given.frames(start, where), given.frames(end, where)
        else:
            yield row, where, start / times.per_second, end / times.per_second


def first_of(cells: Mapping[str, str], *names: str) -> str:
    """Return the first of some cells that is not empty."""
    return next((one_line(cells[name]) for name in names if cells.get(name, "").strip()), "")


# --- VIAN
# ---------------------------------------------------------------------------
def read_vian(given: Given) -> Iterator[RawSpan]:
    """Yield the segments of VIAN: of its segmentation exporter, or of its project as CSV."""
    records = records_of(given, VIAN_SEGMENTS)
    if has_columns(records[0], VIAN_PROJECT):
        yield from _vian_project(given, table(given, VIAN_PROJECT, records))
        return
    made = table(given, VIAN_SEGMENTS, records)
    forms = (
        ("start_ms", "end_ms", 1000.0, False),
        ("start_ts", "end_ts", 1.0, False),
        ("start_frame", "end_frame", 1.0, True),
    )
    columns = next((Times(*form) for form in forms if {form[0], form[1]} <= set(made.columns)), None)
    if columns is None:
        raise given.error("no start and end of segments: export both from VIAN, as milliseconds")
    bodies = [name for name in made.columns if name.startswith("annotation_")]
    for row, where, start, end in timed(given, made.rows, columns):
        texts = [one_line(row.cells[name]) for name in bodies if row.cells[name].strip()]
        cells, tier = {"movie": first_of(row.cells, *_FILM)}, one_line(row.cells["segmentation_name"])
        yield RawSpan(where, start, end, "; ".join(texts), tier, cells)


def _vian_project(given: Given, made: Table) -> Iterator[RawSpan]:
    keywords = [name for name in made.columns[made.columns.index("END_MS") + 1 :] if ":" in name]
    for row, where, start, end in timed(given, made.rows, Times("START_MS", "END_MS", 1000.0)):
        kind = row.cells["SELECTOR_TYPE"].strip()
        if kind != "SEGMENT":
            given.account.leave(where, f"of a {kind.lower() or 'record without type'}, no segment")
            continue
        marked = [name.rpartition(":")[2] for name in keywords if row.cells[name].strip() in {"1", "1.0"}]
        texts = [one_line(row.cells.get("ANNOTATION_BODY", "")), *marked]
        cells = {"movie": first_of(row.cells, *_FILM)}
        yield RawSpan(where, start, end, "; ".join(filter(None, texts)), "", cells)


def media_name(place: str) -> str:
    """Name the film of a media file: its file's name without suffix; BORIS writes its player before it."""
    path = path_of(re.sub(r"^player #\d+ *: *", "", place.strip(), flags=re.IGNORECASE))
    return path.stem if re.fullmatch(r"\.\w{2,5}", path.suffix, re.ASCII) else path.name
