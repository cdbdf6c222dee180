"""Read ELAN's tab-delimited text: with a header or without, and as spreadsheets save it.

A tier is a tier of ELAN; where there is a column for each tier, its heading. Source: ELAN manual, "Export as
tab-delimited text".
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import mode
from typing import NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.instant import time_or_nan
from obygaze_features.manifest.spans.names import plain
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
from obygaze_features.manifest.text_tables import Row, counted
from obygaze_features.text_records import header_row, shared_cells, split_records
from obygaze_features.workbook import Records

HEADING = re.compile(r"(.+) - (hh:mm:ss\.ms|ss\.msec|msec|hh:mm:ss:ff.*)", re.IGNORECASE)
"""The heading of a column of times: what they are, and in which form."""

BEGIN = "Begin Time"
END = "End Time"
FORMS = ("hh:mm:ss.ms", "ss.msec", "msec")
"""Of times, the best first."""

REMEDY = "export them from ELAN with a header in English"
TOLD_BY = 200
"""Rows by which columns without names are told."""

SLACK_S = 0.002
"""Within which times in several forms, and durations, are equal."""

_READ = re.compile(KINDS["elan-text"]["read"])
_OFFSET = re.compile(r"#(?:(?!offset: *-?\d)[^#\n])*+offset: *+(-?\d{1,12})", re.IGNORECASE)


class Rows(NamedTuple):
    """Rows of a text, and what stands between their cells."""

    records: Records
    delimiter: str


class Layout(NamedTuple):
    """Columns without names: the first of begins, the first of ends, and the text."""

    begin: int
    end: int
    text: int


def read_elan_text(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the annotations of ELAN's tab-delimited text or CSV: with a header, or without."""
    records, delimiter = _rows(file)
    filled = (at for at, (_, cells) in enumerate(records) if sum(map(bool, cells)) > 2)
    first = header_row(records, _has_times) or next(filled, 0)
    above = "\n".join("\t".join(cells) for _, cells in records[:first])
    offsets = [offset for offset in _OFFSET.findall(above) if int(offset)]
    if offsets:
        raise file.error(f"its media are moved by {offsets[0]} ms: export without offsets, or give the .eaf")
    if first:
        file.account.note(f"{counted(first, 'line')} above the annotations left out")
    if not records:
        raise file.error("no annotation of ELAN's tab-delimited text")
    header = records[first][1]
    headings = [match.groups() for cell in header if (match := HEADING.fullmatch(cell.strip()))]
    if any(name in {BEGIN, END} for name, _ in headings):
        yield from _with_header(file, Rows(records[first:], delimiter))
    elif headings:
        file.account.note(f"header in another language left out: {', '.join(header)}")
        yield from _without_header(file, Rows(records[first + 1 :], delimiter), headings[0][1])
    else:
        yield from _without_header(file, Rows(records[first:], delimiter))


def _has_times(cells: Sequence[str]) -> bool:
    return any(HEADING.fullmatch(cell.strip()) for cell in cells)


def _rows(file: SpanFile) -> Rows:
    """Split a text into cells: at tabs, where ELAN quotes nothing, or as a spreadsheet does."""
    if file.sheet is not None:
        return Rows(file.sheet, "\t")
    known: dict[str, str] = {}
    records = [
        (at, shared_cells(line.split("\t"), known))
        for at, line in enumerate(file.lines, start=1)
        if line.strip()
    ]
    if any(len(cells) > 2 for _, cells in records):
        return Rows(records, "\t")
    return Rows(*split_records(file.path, file.text, ManifestError, _has_times))


def _with_header(file: SpanFile, rows: Rows) -> Iterator[RawSpan]:
    """Yield the annotations of a table whose columns have names in English."""
    line = rows.records[0][0]
    header = [cell.strip() for cell in rows.records[0][1]]
    headings = {(match[1], match[2]): cell for cell in header if (match := HEADING.fullmatch(cell))}
    form = _form(file, headings, line)
    even = [(line, header)]
    for at, cells in rows.records[1:]:
        if len(cells) == len(header):
            even.append((at, cells))
        else:
            yield RawSpan(f"line {at}", reason=f"{len(cells)} cells where others have {len(header)}")
    begin = headings[BEGIN, form]
    end = headings[END, form]
    # Else there is a column for each tier.
    has_tier_column = {"tier", "annotation"} <= set(map(plain, header))
    table = tool_table(file, (begin, end), (even, "\t"))
    values = ["Annotation"]
    beside = columns_beside(file, table) if has_tier_column else []
    if not has_tier_column:
        values = [name for name in table.columns if name == "Annotation" or not _READ.fullmatch(name)]
    timed_rows = timed(
        file,
        table.rows,
        begin,
        end,
        per_second=1000.0 if form == "msec" else 1.0,
        decimal=decimal_sign(rows.delimiter),
        rate=_rate(form),
    )
    for row, where, start_s, end_s, no_time in timed_rows:
        facts = {
            "subject": first_of(row.cells, "Participant"),
            "annotator": first_of(row.cells, "Annotator"),
            "media": first_of(row.cells, "File Path", "File Name"),
        }
        texts = _texts(row, values)
        if not texts:
            reason = no_time or "no text"
            yield RawSpan(where, start_s, end_s, "", row.cells.get("Tier", ""), facts, reason=reason)
        for name, text in texts.items():
            tier = row.cells.get("Tier", "") or name
            span = RawSpan(where, start_s, end_s, text, tier, facts, reason=no_time)
            yield from with_labels_beside(span, [row], beside)


def _texts(row: Row, columns: Sequence[str]) -> dict[str, str]:
    """Return the cells of a row that hold something, by their columns."""
    return {name: one_line(row.cells[name]) for name in columns if row.cells[name].strip()}


def _form(file: SpanFile, headings: dict[tuple[str, str], str], line: int) -> str:
    """Choose the form in which both times are there; frames of PAL last."""
    pal = [form for _, form in headings if "PAL" in form]
    for form in (*FORMS, *pal):
        if (BEGIN, form) in headings and (END, form) in headings:
            return form
    raise file.error(
        f"line {line}: no begin and end times in one form: export them as hh:mm:ss.ms or ss.msec"
    )


def _rate(form: str) -> Fraction | None:
    """Return the frames per second of a form in frames."""
    if "PAL" not in form:
        return None
    return Fraction(50 if "50" in form else 25)


def _without_header(file: SpanFile, rows: Rows, form: str = "") -> Iterator[RawSpan]:
    """Tell columns by what they hold: tier, participant, begins, ends, durations, text, names of files.

    A header in another language, which is left out, says in which form its first times are.
    """
    records = rows.records
    width = Counter(len(cells) for _, cells in records).most_common(1)[0][0] if records else 0
    columns = list(zip(*(cells for _, cells in records if len(cells) == width), strict=True))
    layout = _layout(file, [column[:TOLD_BY] for column in columns], with_lengths=bool(form))
    files = columns[layout.text + 1 :]
    if not all(cell.lower().endswith(".eaf") for column in files for cell in column):
        raise file.error(f"{len(files)} columns after the text: {REMEDY}")
    if not form:
        is_whole = all(cell.strip().isdecimal() for cell in columns[layout.begin])
        form = "msec" if is_whole else "ss.msec"
    names = {at: f"{at} - time" for at in range(len(columns))}
    names |= {0: "Tier", layout.text + 1: "File Path"}
    if layout.begin > 1:
        names[1] = "Participant"
    names |= {layout.begin: f"{BEGIN} - {form}", layout.end: f"{END} - {form}", layout.text: "Annotation"}
    header = [names[at] for at in range(len(columns))]
    yield from _with_header(file, Rows([(0, header), *records], rows.delimiter))


def _usual_form(cells: Sequence[str]) -> str:
    """Return how most cells are written, whatever their numbers."""
    return mode(re.sub("[0-9]+", "0", cell) for cell in cells)


def _layout(file: SpanFile, columns: Sequence[Sequence[str]], *, with_lengths: bool) -> Layout:
    """Find the first columns of begins and ends, and the text behind them, and behind durations if any."""
    forms = [*map(_usual_form, columns)]
    times = [list(map(time_or_nan, column)) for column in columns]
    with_durations = [(3, n) for n in (3, 2, 1)]
    without_durations = [] if with_lengths else [(2, n) for n in (3, 2, 1)]
    for n_groups, n_forms in with_durations + without_durations:
        layouts = []
        for begin in range(len(columns) - n_groups * n_forms):
            layout = Layout(begin, begin + n_forms, begin + n_groups * n_forms)
            are_alike = forms[begin : layout.end] == forms[layout.end : layout.end + n_forms]
            if are_alike and _fits(times, layout, n_groups) and _are_one_time(times[begin : layout.end]):
                layouts.append(layout)
        if len(layouts) == 1:
            if n_groups == 2:
                file.account.note("columns of times taken as begins and ends")
            return layouts[0]
    raise file.error(f"no columns of begin and end times that can be told: {REMEDY}")


def _fits(times: Sequence[Sequence[float]], layout: Layout, n_groups: int) -> bool:
    """Return whether in most rows ends are behind begins, and durations, if any, lie between them."""
    n_forms = layout.end - layout.begin
    fits = []
    for at in range(n_forms):
        begins = times[layout.begin + at]
        ends = times[layout.end + at]
        lengths = times[layout.begin + (n_groups - 1) * n_forms + at]
        for begin, end, length in zip(begins, ends, lengths, strict=True):
            has_length = n_groups == 2 or abs(end - begin - length) <= SLACK_S * max(1.0, length)
            fits.append(begin <= end and has_length)
    return _are_most(fits)


def _are_one_time(columns: Sequence[Sequence[float]]) -> bool:
    """Return whether columns are of one time in several forms, of which the last may be milliseconds."""
    same = []
    for first, second in pairwise(columns):
        for time, other_time in zip(first, second, strict=True):
            same.append(min(abs(time - other_time), abs(time - other_time / 1000)) <= SLACK_S)
    return _are_most(same)


def _are_most(facts: Sequence[bool]) -> bool:
    return 4 * sum(facts) >= 3 * len(facts)
