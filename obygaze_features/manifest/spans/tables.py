"""Read tables of spans: our own, and those of BORIS, ELAN, VIAN and VIA, by the names of their columns.

Sources: BORIS user guide, "Export events" (tabular, aggregated); ELAN manual, "Export as tab-delimited text";
VIAN's segmentation and project exporters; VIA 3, `project_export_csv`.
"""

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile
from typing import TypeVar

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.given import Given, RawSpan, number
from obygaze_features.manifest.spans.instant import CLOCK, instants, time_code
from obygaze_features.manifest.spans.names import path_of
from obygaze_features.manifest.spans.subtitles import one_line
from obygaze_features.manifest.spans.workbook import Records, is_workbook
from obygaze_features.manifest.text_tables import HEADER_ROWS, Row, Table, split_records, table_of

BORIS_EVENT = ("Behavior", "Time")
BORIS_BOUT = ("Behavior", "Start (s)", "Stop (s)")
VIAN_SEGMENTS = ("segmentation_name",)
VIAN_PROJECT = ("START_MS", "END_MS", "SELECTOR_TYPE")
VIA_HEADER = "# CSV_HEADER = metadata_id,"
_ELAN_TIME = re.compile(r"(Begin|End) Time - (hh:mm:ss\.ms|ss\.msec|msec|hh:mm:ss:ff.*)")
_FILM = ("movie", "movie_name", "film", "video", "MOVIE", "MOVIE_NAME", "FILM")
"""Columns in which exports of several films name each."""
_TITLE = re.compile(r"(?!.* Time - )(?:[^\t]*$|\"?sep=)", re.IGNORECASE)
"""What stands above ELAN's annotations: lines without tabs, and a spreadsheet's own."""
_OFFSET = re.compile(r"#.*offset: *(-?\d+)", re.IGNORECASE)

J = TypeVar("J")


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


@dataclass(frozen=True)
class _Times:
    """Columns of starts and ends, how many of their units a second has, and whether they are frames."""

    start: str
    end: str
    per_second: float = 1.0
    are_frames: bool = False


def _timed(given: Given, rows: Sequence[Row], times: _Times) -> Iterator[tuple[Row, str, float, float]]:
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


def _first(cells: Mapping[str, str], *names: str) -> str:
    return next((one_line(cells[name]) for name in names if cells.get(name, "").strip()), "")


# --- BORIS
# ---------------------------------------------------------------------------
MEDIA = ("Media file name", "Media file path", "Media file", "Source")
OFFSET, OBSERVATION, TYPE = "Time offset (s)", "Observation id", "Behavior type"


def read_boris(given: Given) -> Iterator[RawSpan]:
    """Yield the state events of BORIS: aggregated ones, or tabular ones whose START and STOP are paired."""
    records = records_of(given, ("Behavior",))
    bouts = any(set(BORIS_BOUT) <= {cell.strip() for cell in cells} for _, cells in records[0][:HEADER_ROWS])
    head = list(takewhile(lambda record: "Behavior" not in record[1], records[0]))
    events = table(given, BORIS_BOUT if bouts else BORIS_EVENT, records)
    rows = [row for row in events.rows if not row.is_empty]
    _refuse_shifted(given, rows, head)
    if bouts:
        for row, where, start, end in _timed(given, rows, _Times("Start (s)", "Stop (s)")):
            if row.cells.get(TYPE, "").strip().upper() == "POINT":
                given.account.leave(where, "a point event, which has no end")
            else:
                yield _behaviour(row, where, start, end)
        return
    status = next((name for name in (TYPE, "Status") if name in events.columns), None)
    if status is None:
        raise given.error(f"no column {TYPE} or Status says which events start and stop")
    yield from _paired(given, rows, status)


def _paired(given: Given, rows: Sequence[Row], status: str) -> Iterator[RawSpan]:
    """Pair each START with the next STOP of the same observation, subject, behaviour and modifiers."""
    begun: dict[tuple[str, ...], tuple[Row, str, float]] = {}
    for row, where, start, _ in _timed(given, rows, _Times("Time", "Time")):
        kind = row.cells[status].strip().upper()
        names = (OBSERVATION, "Subject", "Behavior", *(n for n in row.cells if n.startswith("Modifier")))
        key = tuple(row.cells.get(name, "") for name in names)
        if kind == "START":
            if key in begun:
                given.account.leave(begun[key][1], "START without STOP")
            begun[key] = row, where, start
        elif kind == "STOP" and key in begun:
            first, at, from_s = begun.pop(key)
            given.account.seen -= 1  # a START and its STOP are one span
            yield _behaviour(first, at, from_s, start)
        else:
            point = "a point event, which has no end" if kind == "POINT" else "STOP without START"
            given.account.leave(
                where, point if kind in {"POINT", "STOP"} else f"{kind or 'nothing'} is no START or STOP"
            )
    for _, where, _ in begun.values():
        given.account.leave(where, "START without STOP")


def _behaviour(row: Row, where: str, start: float, end: float) -> RawSpan:
    media = _media(row)
    cells = {"media": media[0] if media else "", "subject": _first(row.cells, "Subject")}
    text, tier = _first(row.cells, "Behavior"), _first(row.cells, "Behavioral category")
    return RawSpan(where, start, end, text, tier, cells)


def _media(row: Row) -> list[str]:
    """Return the files of the first player, which follow one another; none of live observations (`NA`)."""
    said = next((row.cells[name] for name in MEDIA if row.cells.get(name, "").strip() not in {"", "NA"}), "")
    first = re.split(r";\s*player #\d+ *:", said, maxsplit=1, flags=re.IGNORECASE)[0]
    return [name for name in map(one_line, first.split("|")) if name]


def _refuse_shifted(given: Given, rows: Sequence[Row], head: Records) -> None:
    """Refuse observations whose times do not count from the start of one film."""
    offsets = [(row.line, row.cells.get(OFFSET, "")) for row in rows]
    offsets += [(line, cells[1]) for line, cells in head if cells[0].strip() == OFFSET and len(cells) > 1]
    for line, offset in offsets:
        with suppress(ManifestError):
            if offset.strip() in {"", "NA"} or time_code(offset.strip()) == 0:
                continue
        raise given.error(f"line {line}, {OFFSET}: {offset!r}: times are moved; set it to 0 in BORIS")
    media: dict[str, set[str]] = {}
    for row in rows:
        media.setdefault(row.cells.get(OBSERVATION, ""), set()).update(_media(row))
    for observation, names in media.items():
        if len(names) > 1 and any(OBSERVATION in row.cells for row in rows):
            raise given.error(
                f"observation {observation!r} has {len(names)} media one after the other; its times count "
                "from the start of the first: export each film as an observation of its own"
            )
        if len(names) > 1:
            raise given.error(
                f"no column {OBSERVATION} says whether its {len(names)} media are films of their own, or one "
                "after the other with times from the start of the first: keep that column"
            )


# --- ELAN's tab-delimited text
# ---------------------------------------------------------------------------
def read_elan_text(given: Given) -> Iterator[RawSpan]:
    """Yield the annotations of ELAN's tab-delimited text or CSV: with a header, or without."""
    if is_workbook(given.content):
        yield from _with_header(given, given.sheet)
        return
    lines = list(enumerate(re.split(r"\r\n|\r|\n", given.text.removeprefix("\ufeff")), start=1))
    titles = list(takewhile(lambda each: _TITLE.match(each[1]), lines))
    for _, line in titles:
        if (moved := _OFFSET.match(line.strip('"'))) and int(moved[1]):
            raise given.error(
                f"its media are moved by {moved[1]} ms: export without offsets, or give the .eaf"
            )
    body = [(at, line) for at, line in lines[len(titles) :] if line.strip()]
    if not body:
        raise given.error("no annotation of ELAN's tab-delimited text")
    if "\t" in body[0][1]:  # ELAN quotes nothing there
        rows = [(at, line.split("\t")) for at, line in body]
    else:
        sign = ";" if ";" in body[0][1] else ","
        rows = [(at, next(csv.reader([line], delimiter=sign))) for at, line in body]
    if any(_ELAN_TIME.fullmatch(cell.strip()) for cell in rows[0][1]):
        yield from _with_header(given, rows)
    else:
        yield from _without_header(given, rows)


def _with_header(given: Given, rows: Records) -> Iterator[RawSpan]:
    header = [cell.strip() for cell in rows[0][1]]
    forms = {(m[1], m[2]): cell for cell in header if (m := _ELAN_TIME.fullmatch(cell))}
    known = ("hh:mm:ss.ms", "ss.msec", "msec", *(form for _, form in forms if "PAL" in form))
    form = next((form for form in known if {("Begin", form), ("End", form)} <= set(forms)), "")
    if not form:
        raise given.error("line 1: no begin and end times in one form: export them as hh:mm:ss.ms or ss.msec")
    if "PAL" in form:
        given.rate = Fraction(50 if "50" in form else 25)
    columns = _Times(forms["Begin", form], forms["End", form], 1000.0 if form == "msec" else 1.0)
    made = table(given, (columns.start, columns.end), (_even(given, rows, len(header)), "\t"))
    about = {"Tier", "Participant", "File Name", "File Path", ""}
    values = [name for name in made.columns if name not in about and " - " not in name]
    for row, where, start, end in _timed(given, made.rows, columns):
        said = {name: row.cells[name] for name in values if row.cells[name].strip()}
        given.account.seen += len(said) - 1
        if not said:
            given.account.seen += 1
            given.account.leave(where, "no text")
        cells = {
            "subject": _first(row.cells, "Participant"),
            "media": _first(row.cells, "File Path", "File Name"),
        }
        for name, text in said.items():
            yield RawSpan(where, start, end, one_line(text), row.cells.get("Tier", "") or name, cells)


def _even(given: Given, rows: Records, width: int) -> Records:
    """Leave out the rows that have another number of cells."""
    for at, cells in rows:
        if len(cells) != width:
            given.account.seen += 1
            given.account.leave(f"line {at}", f"{len(cells)} cells where others have {width}")
    return [(at, cells) for at, cells in rows if len(cells) == width]


TOLD_BY = 200
"""Rows by which columns without names are told."""


def _without_header(given: Given, rows: Records) -> Iterator[RawSpan]:
    """Tell columns by their forms: tier, participant, begins, ends, durations, text, names of files."""
    rows = _even(given, rows, Counter(len(cells) for _, cells in rows).most_common(1)[0][0])
    columns = list(zip(*(cells for _, cells in rows), strict=True))
    first, end, text = _layout(given, [column[:TOLD_BY] for column in columns])
    in_ms = all(cell.strip().isdecimal() for cell in columns[first])
    files = columns[text + 1 :]
    if any("." not in cell for column in files for cell in column):
        raise given.error(f"{len(files)} columns after the text: export them from ELAN with a header")
    names = [("0", first), ("1", end), ("tier", 0), ("text", text), *([("media", text + 1)] if files else [])]
    made = [Row(at, {name: cells[place] for name, place in names}) for at, cells in rows]
    for row, where, start, stop in _timed(given, made, _Times("0", "1", 1000.0 if in_ms else 1.0)):
        if said := one_line(row.cells["text"]):
            yield RawSpan(where, start, stop, said, row.cells["tier"], {"media": row.cells.get("media", "")})
        else:
            given.account.leave(where, "no text")


def _layout(given: Given, columns: Sequence[Sequence[str]]) -> tuple[int, int, int]:
    """Find the first column of begins and of ends, and the text: the latter less the former is the third."""
    forms = [_form(column) for column in columns]
    seconds = [[_seconds(cell) for cell in column] for column in columns]
    for groups, n in ((3, 3), (3, 2), (3, 1), (2, 3), (2, 2), (2, 1)):
        found = []
        for first in range(len(columns) - groups * n):
            parts = [forms[first + n * k : first + n * (k + 1)] for k in range(groups)]
            if "" in parts[0] or any(part != parts[0] for part in parts):
                continue
            begins, ends, lengths = (seconds[first + n * k] for k in (0, 1, groups - 1))
            fits = [
                (abs(e - b - d) <= 0.002 * max(1.0, d)) if groups == 3 else e >= b
                for b, e, d in zip(begins, ends, lengths, strict=True)
            ]
            if 4 * sum(fits) >= 3 * len(fits):
                found.append((first, first + n, first + groups * n))
        if len(found) == 1:
            return found[0]
    raise given.error("no columns of begin and end times that can be told: export them with a header")


def _form(column: Sequence[str]) -> str:
    """Return how most cells of a column write times; "" where they are none."""
    forms = ("clock" if CLOCK.fullmatch(c) else "." if "." in c else "whole" for c in map(str.strip, column))
    form, n = Counter(forms).most_common(1)[0]
    times = sum(_seconds(cell) == _seconds(cell) for cell in column)  # not NaN
    return form if 4 * min(n, times) >= 3 * len(column) else ""


def _seconds(cell: str) -> float:
    found = instants([cell], ".")[0]
    return found if isinstance(found, float) else math.nan


# --- VIAN and VIA
# ---------------------------------------------------------------------------
def read_vian(given: Given) -> Iterator[RawSpan]:
    """Yield the segments of VIAN: of its segmentation exporter, or of its project as CSV."""
    try:
        made = table(given, VIAN_SEGMENTS)
    except ManifestError:
        yield from _vian_project(given, table(given, VIAN_PROJECT))
        return
    forms = (
        ("start_ms", "end_ms", 1000.0, False),
        ("start_ts", "end_ts", 1.0, False),
        ("start_frame", "end_frame", 1.0, True),
    )
    columns = next((_Times(*form) for form in forms if {form[0], form[1]} <= set(made.columns)), None)
    if columns is None:
        raise given.error("no start and end of segments: export both from VIAN, as milliseconds")
    bodies = [name for name in made.columns if name.startswith("annotation_")]
    for row, where, start, end in _timed(given, made.rows, columns):
        texts = [one_line(row.cells[name]) for name in bodies if row.cells[name].strip()]
        cells, tier = {"movie": _first(row.cells, *_FILM)}, one_line(row.cells["segmentation_name"])
        yield RawSpan(where, start, end, "; ".join(texts), tier, cells)


def _vian_project(given: Given, made: Table) -> Iterator[RawSpan]:
    keywords = [name for name in made.columns[made.columns.index("END_MS") + 1 :] if ":" in name]
    for row, where, start, end in _timed(given, made.rows, _Times("START_MS", "END_MS", 1000.0)):
        kind = row.cells["SELECTOR_TYPE"].strip()
        if kind != "SEGMENT":
            given.account.leave(where, f"of a {kind.lower() or 'record without type'}, no segment")
            continue
        marked = [name.rpartition(":")[2] for name in keywords if row.cells[name].strip() in {"1", "1.0"}]
        texts = [one_line(row.cells.get("ANNOTATION_BODY", "")), *marked]
        cells = {"movie": _first(row.cells, *_FILM)}
        yield RawSpan(where, start, end, "; ".join(filter(None, texts)), "", cells)


def read_via(given: Given) -> Iterator[RawSpan]:
    """Yield the temporal segments of VIA 3, whose attributes and options are named by ids."""
    lines = given.text.splitlines()
    about = next((line for line in lines if re.match(r"# ATTRIBUTES? = ", line)), "# ATTRIBUTE = {}")
    attributes = _json(about.partition("=")[2], dict)
    if attributes is None:
        raise given.error("its line ATTRIBUTE, which names attributes and options, cannot be read")
    header = next((line for line in lines if line.startswith(VIA_HEADER)), VIA_HEADER)
    names = header.partition("=")[2].strip().split(",")
    for at, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        given.account.seen += 1
        where = f"line {at}"
        cells = dict(zip(names, next(csv.reader(io.StringIO(line)), []), strict=False))
        ends = [number(each) for each in _json(cells.get("temporal_coordinates", ""), list) or []]
        media, metadata = _json(cells.get("file_list", ""), list), _json(cells.get("metadata", ""), dict)
        if len(ends) != 2 or ends[0] is None or ends[1] is None:
            given.account.leave(where, "a frame, which is no span" if len(ends) == 1 else "no start and end")
        elif media is None or len(media) != 1:
            given.account.leave(where, "its file_list is not of one file")
        elif metadata is None:
            given.account.leave(where, "its metadata cannot be read")
        else:
            said = _via_texts(metadata, attributes) or [("", "")]
            given.account.seen += len(said) - 1
            for tier, text in said:
                yield RawSpan(where, ends[0], ends[1], text, tier, {"media": str(media[0])})


def _via_texts(metadata: Mapping[str, object], attributes: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return each attribute of a segment with its value, options in their words, several joined by `;`."""
    texts = []
    for key, value in metadata.items():
        about = attributes.get(key)
        name = about.get("aname", key) if isinstance(about, dict) else about or key
        options = about.get("options") if isinstance(about, dict) else {}
        options = options if isinstance(options, dict) else {}
        said = ",".join(key for key, on in value.items() if on) if isinstance(value, dict) else str(value)
        parts = [said] if said in options or not options else said.split(",")
        words = [one_line(str(options.get(part, part))) for part in parts]
        texts.append((one_line(str(name)), ";".join(filter(None, words))))
    return texts


def _json(text: str, kind: type[J]) -> J | None:
    """Read a document of JSON in a cell; None where it is no such."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, kind) else None


def media_name(place: str) -> str:
    """Name the film of a media file: its file's name without suffix; BORIS writes its player before it."""
    path = path_of(re.sub(r"^player #\d+ *: *", "", place.strip(), flags=re.IGNORECASE))
    return path.stem if re.fullmatch(r"\.\w{2,5}", path.suffix, re.ASCII) else path.name
