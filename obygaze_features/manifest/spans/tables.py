"""Read tables of spans: our own, and those of BORIS, ELAN, VIAN and VIA, by the names of their columns.

Sources: BORIS user guide, "Export events" (tabular, aggregated); ELAN manual, "Export as tab-delimited text";
VIAN's segmentation and project exporters; VIA 3, `project_export_csv`.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.given import Given, RawSpan, number
from obygaze_features.manifest.spans.instant import CLOCK, instants
from obygaze_features.manifest.spans.names import path_of
from obygaze_features.manifest.spans.subtitles import one_line
from obygaze_features.manifest.spans.workbook import is_workbook, read_sheet
from obygaze_features.manifest.text_tables import Records, Row, Table, split_records, table_of

BORIS_EVENT = ("Behavior", "Time")
BORIS_BOUT = ("Behavior", "Start (s)", "Stop (s)")
VIAN_SEGMENTS = ("segmentation_name",)
VIAN_PROJECT = ("START_MS", "END_MS", "SELECTOR_TYPE")
VIA_HEADER = "# CSV_HEADER = metadata_id,"
_ELAN_TIME = re.compile(r"(Begin|End) Time - (hh:mm:ss\.ms|ss\.msec|msec|hh:mm:ss:ff.*)")
_OFFSET = re.compile(r"#.*offset: *(-?\d+)", re.IGNORECASE)


def records_of(given: Given, needed: Sequence[str], delimiter: str = "") -> tuple[Records, str]:
    """Split a file into records: a text by the delimiter that its header has, or a sheet of a workbook."""
    if is_workbook(given.content):
        records, notes = read_sheet(given.path, given.content)
        given.account.notes += notes
        return records, ""
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


def read_boris(given: Given) -> Iterator[RawSpan]:
    """Yield the state events of BORIS: aggregated ones, or tabular ones whose START and STOP are paired."""
    try:
        events = table(given, BORIS_BOUT)
        bouts = True
    except ManifestError:
        events, bouts = table(given, BORIS_EVENT), False
    _refuse_shifted(given, events)
    if bouts:
        points = {
            row.line for row in events.rows if row.cells.get("Behavior type", "").strip().upper() == "POINT"
        }
        spans = _timed(
            given, [row for row in events.rows if not row.is_empty], _Times("Start (s)", "Stop (s)")
        )
        for row, where, start, end in spans:
            if row.line in points:
                given.account.leave(where, "a point event, which has no end")
            else:
                yield _behaviour(row, where, start, end)
        return
    status = next((name for name in ("Behavior type", "Status") if name in events.columns), None)
    if status is None:
        raise given.error("no column Behavior type or Status says which events start and stop")
    yield from _paired(given, [row for row in events.rows if not row.is_empty], status)


def _paired(given: Given, rows: Sequence[Row], status: str) -> Iterator[RawSpan]:
    """Pair each START with the next STOP of the same observation, subject, behaviour and modifiers."""
    begun: dict[tuple[str, ...], tuple[Row, str, float]] = {}
    for row, where, start, _ in _timed(given, rows, _Times("Time", "Time")):
        kind = row.cells[status].strip().upper()
        names = ("Observation id", "Subject", "Behavior", *(n for n in row.cells if n.startswith("Modifier")))
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
    cells = {"media": _first(row.cells, *MEDIA), "subject": _first(row.cells, "Subject")}
    text, tier = _first(row.cells, "Behavior"), _first(row.cells, "Behavioral category")
    return RawSpan(where, start, end, text, tier, cells)


def _refuse_shifted(given: Given, events: Table) -> None:
    """Refuse observations whose times do not count from the start of one film."""
    media: dict[str, set[str]] = {}
    for row in events.rows:
        offset = row.cells.get("Time offset (s)", "").strip()
        if offset and number(offset) != 0.0:
            raise given.error(
                f"line {row.line}, column Time offset (s): {offset!r}: times are moved; set it to 0 in BORIS"
            )
        if name := _first(row.cells, *MEDIA[:3]):
            media.setdefault(row.cells.get("Observation id", ""), set()).add(name)
    for observation, names in media.items():
        if len(names) > 1:
            raise given.error(
                f"observation {observation!r} has {len(names)} media one after the other; its times count "
                "from the start of the first: export each film as an observation of its own"
            )


# --- ELAN's tab-delimited text
# ---------------------------------------------------------------------------
def read_elan_text(given: Given) -> Iterator[RawSpan]:
    """Yield the annotations of ELAN's tab-delimited text: with a header, or without."""
    lines = given.text.splitlines()
    for line in lines[:40]:
        if (moved := _OFFSET.match(line.strip('"'))) and int(moved[1]):
            raise given.error(
                f"its media are moved by {moved[1]} ms: export without offsets, or give the .eaf"
            )
    rows = [
        (at, line.split("\t"))
        for at, line in enumerate(lines, start=1)
        if line.strip() and line[0] not in '"#'
    ]
    if not rows:
        raise given.error("no annotation of ELAN's tab-delimited text")
    if any(_ELAN_TIME.fullmatch(cell.strip()) for cell in rows[0][1]):
        yield from _with_header(given, rows)
    else:
        yield from _without_header(given, rows)


def _with_header(given: Given, rows: Records) -> Iterator[RawSpan]:
    header = [cell.strip() for cell in rows[0][1]]
    forms = {(m[1], m[2]): cell for cell in header if (m := _ELAN_TIME.fullmatch(cell))}
    form = next(
        (f for f in ("hh:mm:ss.ms", "ss.msec", "msec") if {("Begin", f), ("End", f)} <= set(forms)), ""
    )
    if not form:
        form = next((f for _, f in forms if ("Begin", f) in forms and ("End", f) in forms), "")
    if not form:
        raise given.error("line 1: no columns of begin and end times in one form")
    columns = _Times(forms["Begin", form], forms["End", form], 1000.0 if form == "msec" else 1.0)
    made = table(given, (columns.start, columns.end), (rows, "\t"))
    known = {"Tier", "Participant", "File Name", "File Path", "Annotation"}
    values = [
        name
        for name in made.columns
        if name
        and name not in known
        and not _ELAN_TIME.fullmatch(name)
        and not name.startswith("Duration - ")
    ]
    for row, where, start, end in _timed(given, made.rows, columns):
        said = {name: row.cells[name] for name in ("Annotation", *values) if row.cells.get(name, "").strip()}
        given.account.seen += len(said) - 1
        if not said:
            given.account.seen += 1
            given.account.leave(where, "no text")
        for name, text in said.items():
            tier = row.cells.get("Tier", "") or name
            yield RawSpan(
                where, start, end, one_line(text), tier, {"participant": row.cells.get("Participant", "")}
            )


def _without_header(given: Given, rows: Records) -> Iterator[RawSpan]:
    """Tell columns by their forms: tier, participant, then begins, ends and durations in the same forms."""
    width = max(len(cells) for _, cells in rows)
    full = [cells for _, cells in rows if len(cells) == width]
    timed = [
        at
        for at in range(width)
        if all(CLOCK.fullmatch(cells[at]) or number(cells[at]) is not None for cells in full)
    ]
    if len(timed) < 2 or timed != list(range(timed[0], timed[0] + len(timed))):
        raise given.error("no columns of begin and end times: export them from ELAN, with a header")
    n = len(timed) // 3 if len(timed) % 3 == 0 and _have_durations(full, timed) else len(timed) // 2
    first, end = timed[0], timed[0] + n
    in_ms = ":" not in full[0][first] and "." not in "".join(cells[first] for cells in full)
    table_rows = [
        Row(at, {"0": cells[first], "1": cells[end], "tier": cells[0], "text": cells[-1]})
        for at, cells in rows
        if len(cells) == width
    ]
    for at, cells in rows:
        if len(cells) != width:
            given.account.seen += 1
            given.account.leave(f"line {at}", f"{len(cells)} cells where others have {width}")
    for row, where, start, stop in _timed(given, table_rows, _Times("0", "1", 1000.0 if in_ms else 1.0)):
        if row.cells["text"].strip():
            yield RawSpan(where, start, stop, one_line(row.cells["text"]), row.cells["tier"])
        else:
            given.account.leave(where, "no text")


def _have_durations(rows: Sequence[Sequence[str]], timed: Sequence[int]) -> bool:
    """Return whether the last third of the columns of times is the second less the first."""
    n = len(timed) // 3
    for cells in rows[:20]:
        found = instants([cells[timed[place]] for place in (0, n, 2 * n)])
        begin, end, length = (value if isinstance(value, float) else -1.0 for value in found)
        if abs(end - begin - length) > 0.002 * max(1.0, length):
            return False
    return True


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
        yield RawSpan(where, start, end, "; ".join(texts), one_line(row.cells["segmentation_name"]))


def _vian_project(given: Given, made: Table) -> Iterator[RawSpan]:
    keywords = [name for name in made.columns[made.columns.index("END_MS") + 1 :] if ":" in name]
    for row, where, start, end in _timed(given, made.rows, _Times("START_MS", "END_MS", 1000.0)):
        kind = row.cells["SELECTOR_TYPE"].strip()
        if kind != "SEGMENT":
            given.account.leave(where, f"of a {kind.lower() or 'record without type'}, no segment")
            continue
        marked = [name.rpartition(":")[2] for name in keywords if row.cells[name].strip() in {"1", "1.0"}]
        texts = [one_line(row.cells.get("ANNOTATION_BODY", "")), *marked]
        yield RawSpan(where, start, end, "; ".join(filter(None, texts)))


def read_via(given: Given) -> Iterator[RawSpan]:
    """Yield the temporal segments of VIA 3, whose attributes and options are named by ids."""
    lines = given.text.splitlines()
    about = next((line for line in lines if re.match(r"# ATTRIBUTES? = ", line)), "# ATTRIBUTE = {}")
    attributes = _json_object(about.partition("=")[2])
    header = next((line for line in lines if line.startswith(VIA_HEADER)), VIA_HEADER)
    names = header.partition("=")[2].strip().split(",")
    for at, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        given.account.seen += 1
        where = f"line {at}"
        cells = dict(zip(names, next(csv.reader(io.StringIO(line)), []), strict=False))
        ends = [number(each) for each in _json_list(cells.get("temporal_coordinates", ""))]
        if len(ends) != 2 or ends[0] is None or ends[1] is None:
            given.account.leave(where, "a frame, which is no span" if len(ends) == 1 else "no start and end")
            continue
        media = [str(name) for name in _json_list(cells.get("file_list", ""))]
        said = _via_texts(_json_object(cells.get("metadata", "")), attributes) or [("", "")]
        given.account.seen += len(said) - 1
        for tier, text in said:
            yield RawSpan(where, ends[0], ends[1], text, tier, {"media": media[0] if media else ""})


def _via_texts(metadata: Mapping[str, object], attributes: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return each attribute of a segment with its value, options in their words, several joined by `;`."""
    texts = []
    for key, value in metadata.items():
        about = attributes.get(key)
        name = about.get("aname", key) if isinstance(about, dict) else about or key
        options = about.get("options") if isinstance(about, dict) else {}
        options = options if isinstance(options, dict) else {}
        parts = [str(value)] if str(value) in options or not options else str(value).split(",")
        words = [one_line(str(options.get(part, part))) for part in parts]
        texts.append((one_line(str(name)), ";".join(filter(None, words))))
    return texts


def _json_object(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _json_list(text: str) -> list[object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def media_name(place: str) -> str:
    """Name the film of a media file: its file's name without suffix; BORIS writes its player before it."""
    return path_of(re.sub(r"^player #\d+ *: *", "", place.strip(), flags=re.IGNORECASE)).stem
