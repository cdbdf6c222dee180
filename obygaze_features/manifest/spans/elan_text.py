"""Read ELAN's tab-delimited text: with a header or without, and as spreadsheets save it.

A tier is a tier of ELAN; where there is a column for each tier, its heading. Source: ELAN manual, "Export as
tab-delimited text".
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import mode
from typing import NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.account import SHOWN_NAMES
from obygaze_features.manifest.spans.instant import time_or_nan
from obygaze_features.manifest.spans.names import plain
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import KINDS, SpanFile
from obygaze_features.manifest.spans.tier_names import NAMED, key_among, tier_key
from obygaze_features.manifest.spans.tool_tables import (
    columns_beside,
    decimal_sign,
    first_of,
    timed,
    tool_table,
    with_labels_beside,
)
from obygaze_features.manifest.text_tables import Row, counted
from obygaze_features.text import first_few
from obygaze_features.text_records import header_row, shared_cells, split_records
from obygaze_features.workbook import Records

HEADING = re.compile(r"(.+) - (hh:mm:ss\.ms|ss\.msec|msec|hh:mm:ss:ff.*)", re.IGNORECASE)
"""The heading of a column of times, such as `Begin Time - msec`: which time, and in which form."""

BEGIN = "Begin Time"
END = "End Time"
FORMS = ("hh:mm:ss.ms", "ss.msec", "msec")
"""The forms in which ELAN writes times, the one to read first."""

NAMED_KEYS = frozenset(map(tier_key, NAMED))
"""Names of tiers that say what the tier holds, as they are compared."""

REMEDY = "export them from ELAN with a header in English"
TOLD_BY = 200
"""How many rows are looked at to tell what columns without names hold."""

SLACK_S = 0.002
"""Rounding, in seconds, by which one time in two forms may differ, or a duration from end minus begin."""

_READ = re.compile(KINDS["elan-text"]["read"])
_OFFSET = re.compile(r"#(?:(?!offset: *-?\d)[^#\n])*+offset: *+(-?\d{1,12})", re.IGNORECASE)


class Rows(NamedTuple):
    """Rows of a text, each with the number of its line, and the sign between their cells."""

    records: Records
    delimiter: str


class Layout(NamedTuple):
    """Where columns without names stand: the first of begin times, the first of end times, and the text."""

    begin: int
    end: int
    text: int


def read_elan_text(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the annotations of ELAN's tab-delimited text or CSV.

    A header in English names the columns. Without one, or below one in another language, the columns are told
    by what they hold.
    """
    records, delimiter = _rows(file)
    first_row = _first_row(records)
    _refuse_offsets(file, records[:first_row])
    if first_row:
        file.account.note(f"{counted(first_row, 'line')} above the annotations left out")
    if not records:
        raise file.error("no annotation of ELAN's tab-delimited text")
    header = records[first_row][1]
    heading_matches = [match for match in map(HEADING.fullmatch, map(str.strip, header)) if match]
    if any(match[1] in {BEGIN, END} for match in heading_matches):
        yield from _with_header(file, Rows(records[first_row:], delimiter))
    elif heading_matches:
        file.account.note(f"header in another language left out: {first_few(header, SHOWN_NAMES)}")
        form = heading_matches[0][2]
        yield from _without_header(file, Rows(records[first_row + 1 :], delimiter), form)
    else:
        yield from _without_header(file, Rows(records[first_row:], delimiter))


def is_headless(file: SpanFile) -> bool:
    """Return whether a file is ELAN's text without a header: tier, participant, begin, end, ... in tabs.

    Two times between tabs stand in tables of people too. So each row of cells needs times in its third and
    fourth cells and, in some later cell, the duration between them, or the times again in another form; or
    the first cells are names of tiers: they repeat, or they say what the tier holds.
    """
    rows = [cells for cells in file.first_rows_of_tabs if len(cells) > 2]
    times = [_two_times(cells) for cells in rows]
    if not rows or any(time is None for time in times):
        return False
    names = [cells[0].strip() for cells in rows]
    repeat = len(set(names)) < len(names) and all(_is_name(name) for name in names)
    say_role = all(key_among(name, NAMED_KEYS) for name in names)
    if repeat or say_role:
        return True
    return all(
        _has_third_time(cells, *time) for cells, time in zip(rows, times, strict=True) if time is not None
    )


def _two_times(cells: Sequence[str]) -> tuple[float, float] | None:
    """Return the times of the third and the fourth cell of a row; None where they are no times."""
    if len(cells) < 4:
        return None
    first_s = time_or_nan(cells[2])
    second_s = time_or_nan(cells[3])
    return None if math.isnan(first_s + second_s) else (first_s, second_s)


def _is_name(text: str) -> bool:
    """Return whether a text that is not empty is no time."""
    return bool(text) and math.isnan(time_or_nan(text))


def _has_third_time(cells: Sequence[str], first_s: float, second_s: float) -> bool:
    """Return whether a later cell is the duration between two times, or both are one time in two forms."""
    if abs(first_s - second_s) <= SLACK_S or abs(1000 * first_s - second_s) <= 1:
        return True
    later = [time_or_nan(cell) for cell in cells[4:]]
    return any(abs(time_s - (second_s - first_s)) <= SLACK_S for time_s in later)


def _first_row(records: Records) -> int:
    """Return the place of the header; without one, of the first row with three filled cells; else 0."""
    header_place = header_row(records, _has_times)
    if header_place:
        return header_place
    for place, (_, cells) in enumerate(records):
        n_filled = sum(map(bool, cells))
        # ELAN writes at least a tier, a time and a text; a title has fewer cells.
        if n_filled > 2:
            return place
    return 0


def _refuse_offsets(file: SpanFile, records_above: Records) -> None:
    """Refuse a text that says, above its annotations, that a medium has an offset: its times are moved."""
    text_above = "\n".join("\t".join(cells) for _, cells in records_above)
    offsets = [offset for offset in _OFFSET.findall(text_above) if int(offset)]
    if offsets:
        raise file.error(f"its media are moved by {offsets[0]} ms: export without offsets, or give the .eaf")


def _has_times(cells: Sequence[str]) -> bool:
    """Return whether a row has the heading of a column of times."""
    return any(HEADING.fullmatch(cell.strip()) for cell in cells)


def _rows(file: SpanFile) -> Rows:
    """Split a text into cells: at tabs, as ELAN writes them without quotes, else as a spreadsheet does."""
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
    """Yield the annotations of a table whose columns have names in English.

    A row is one annotation where a column says its tier; else each tier has a column, and a row is one
    annotation of each tier whose cell is filled.

    Parameters
    ----------
    rows
        The header, and the rows below it.
    """
    line = rows.records[0][0]
    header = [cell.strip() for cell in rows.records[0][1]]
    headings = {(match[1], match[2]): cell for cell in header if (match := HEADING.fullmatch(cell))}
    form = _form(file, headings, line)
    records = [(line, header)]
    for at, cells in rows.records[1:]:
        if len(cells) == len(header):
            records.append((at, cells))
        else:
            yield RawSpan(f"line {at}", reason=f"{len(cells)} cells where others have {len(header)}")
    begin = headings[BEGIN, form]
    end = headings[END, form]
    has_tier_column = {"tier", "annotation"} <= set(map(plain, header))
    table = tool_table(file, (begin, end), (records, "\t"))
    if has_tier_column:
        text_columns = ["Annotation"]
        label_columns = columns_beside(file, table)
    else:
        text_columns = [name for name in table.columns if name == "Annotation" or not _READ.fullmatch(name)]
        label_columns = []
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
        texts = _texts(row, text_columns)
        if not texts:
            reason = no_time or "no text"
            yield RawSpan(where, start_s, end_s, "", row.cells.get("Tier", ""), facts, reason=reason)
        for name, text in texts.items():
            tier = row.cells.get("Tier", "") or name
            span = RawSpan(where, start_s, end_s, text, tier, facts, reason=no_time)
            yield from with_labels_beside(span, [row], label_columns)


def _texts(row: Row, columns: Sequence[str]) -> dict[str, str]:
    """Return the texts of a row in the given columns, by column, without the empty ones."""
    return {name: one_line(row.cells[name]) for name in columns if row.cells[name].strip()}


def _form(file: SpanFile, headings: dict[tuple[str, str], str], line: int) -> str:
    """Choose a form that has a column of begin times and one of end times, PAL frames only if no other has.

    Parameters
    ----------
    headings
        The heading of a column, by which time it has and in which form.
    line
        The line of the header.
    """
    pal_forms = [form for _, form in headings if "PAL" in form]
    for form in (*FORMS, *pal_forms):
        if (BEGIN, form) in headings and (END, form) in headings:
            return form
    raise file.error(
        f"line {line}: no begin and end times in one form: export them as hh:mm:ss.ms or ss.msec"
    )


def _rate(form: str) -> Fraction | None:
    """Return the frames per second of a form that counts PAL frames; None for the other forms."""
    if "PAL" not in form:
        return None
    return Fraction(50 if "50" in form else 25)


def _without_header(file: SpanFile, rows: Rows, form: str = "") -> Iterator[RawSpan]:
    """Yield the annotations of a table without a header in English: tell its columns by what they hold.

    ELAN writes tier, participant (if asked for), begin times, end times, durations, text, and names of files;
    each of the times is in up to three forms, side by side.

    Parameters
    ----------
    form
        The form of the first column of times, by a header in another language; "" without a header.
    """
    records = rows.records
    width = 0
    if records:
        n_by_width = Counter(len(cells) for _, cells in records)
        width = n_by_width.most_common(1)[0][0]
    columns = list(zip(*(cells for _, cells in records if len(cells) == width), strict=True))
    layout = _layout(file, [column[:TOLD_BY] for column in columns], with_lengths=bool(form))
    files = columns[layout.text + 1 :]
    if not all(cell.lower().endswith(".eaf") for column in files for cell in column):
        raise file.error(f"{counted(len(files), 'column')} after the text: {REMEDY}")
    if not form:
        is_whole = all(cell.strip().isdecimal() for cell in columns[layout.begin])
        form = "msec" if is_whole else "ss.msec"
    # Columns that are not read have a name of their own, too.
    names = {place: f"{place} - time" for place in range(len(columns))}
    names[0] = "Tier"
    names[layout.text + 1] = "File Path"
    if layout.begin > 1:
        names[1] = "Participant"
    names[layout.begin] = f"{BEGIN} - {form}"
    names[layout.end] = f"{END} - {form}"
    names[layout.text] = "Annotation"
    header = [names[place] for place in range(len(columns))]
    yield from _with_header(file, Rows([(0, header), *records], rows.delimiter))


def _usual_form(cells: Sequence[str]) -> str:
    """Return the pattern that most cells have, with 0 for each number: `0:0:0.0` for clocks."""
    return mode(re.sub("[0-9]+", "0", cell) for cell in cells)


def _layout(file: SpanFile, columns: Sequence[Sequence[str]], *, with_lengths: bool) -> Layout:
    """Find the columns of begin times, of end times and, behind them and any durations, of the text.

    Durations are looked for first: as they must be end minus begin, they leave less room for a mistake.

    Parameters
    ----------
    with_lengths
        Whether there are columns of durations for sure.
    """
    forms = [_usual_form(column) for column in columns]
    times = [list(map(time_or_nan, column)) for column in columns]
    # How many kinds of times there are (begins and ends, or durations too), and each kind in how many forms.
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
    """Return whether in most rows the begin is before the end, and the duration, if any, lies between them.

    Parameters
    ----------
    times
        Columns of times in seconds.
    n_groups
        2 for begins and ends; 3 with durations.
    """
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
    """Return whether columns are the same times in several forms, of which the last may be milliseconds."""
    same = []
    for first, second in pairwise(columns):
        for time, other_time in zip(first, second, strict=True):
            same.append(min(abs(time - other_time), abs(time - other_time / 1000)) <= SLACK_S)
    return _are_most(same)


def _are_most(facts: Sequence[bool]) -> bool:
    """Return whether at least three in four are true: a few rows may be wrong."""
    return 4 * sum(facts) >= 3 * len(facts)
