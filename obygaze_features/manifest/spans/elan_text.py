"""Read ELAN's tab-delimited text: with a header or without, and as spreadsheets save it.

Source: ELAN manual, "Export as tab-delimited text".
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import mode

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.given import KINDS, Given, RawSpan
from obygaze_features.manifest.spans.instant import time_or_nan
from obygaze_features.manifest.spans.names import plain
from obygaze_features.manifest.spans.subtitles import one_line
from obygaze_features.manifest.spans.tables import first_of, table, timed
from obygaze_features.manifest.text_tables import counted
from obygaze_features.text_records import header_row, split_records
from obygaze_features.workbook import Records

TIME = re.compile(r"(.+) - (hh:mm:ss\.ms|ss\.msec|msec|hh:mm:ss:ff.*)", re.IGNORECASE)
TIMES = ("Begin Time", "End Time")
_REMEDY = "export them from ELAN with a header in English"
_READ = KINDS["elan-text"]["read"]
_OFFSET = re.compile(r"#.*offset: *(-?\d+)", re.IGNORECASE)


def read_elan_text(given: Given) -> Iterator[RawSpan]:
    """Yield the annotations of ELAN's tab-delimited text or CSV: with a header, or without."""
    rows = _rows(given) if given.sheet is None else given.sheet
    filled = (at for at, (_, cells) in enumerate(rows) if sum(map(bool, cells)) > 2)
    first = header_row(rows, _has_times) or next(filled, 0)
    above = "\n".join("\t".join(cells) for _, cells in rows[:first])
    if moved := [time for time in _OFFSET.findall(above) if int(time)]:
        raise given.error(f"its media are moved by {moved[0]} ms: export without offsets, or give the .eaf")
    given.account.note(f"{counted(first, 'line')} above the annotations left out" * bool(first))
    if not rows:
        raise given.error("no annotation of ELAN's tab-delimited text")
    header = rows[first][1]
    forms = [match.groups() for cell in header if (match := TIME.fullmatch(cell.strip()))]
    if any(name in TIMES for name, _ in forms):
        yield from _with_header(given, rows[first:])
    elif forms:
        given.account.note(f"header in another language left out: {', '.join(header)}")
        yield from _without_header(given, rows[first + 1 :], forms[0][1])
    else:
        yield from _without_header(given, rows[first:])


def _has_times(cells: Sequence[str]) -> bool:
    return any(TIME.fullmatch(cell.strip()) for cell in cells)


def _rows(given: Given) -> Records:
    """Split a text into cells: at tabs, where ELAN quotes nothing, or as a spreadsheet does."""
    rows = [(at, line.split("\t")) for at, line in enumerate(given.lines, start=1) if line.strip()]
    if not any(len(cells) > 2 for _, cells in rows):
        rows, sign = split_records(given.path, given.text, ManifestError, _has_times)
        given.usual *= sign != ";"  # a spreadsheet wrote it
    return rows


def _with_header(given: Given, rows: Records) -> Iterator[RawSpan]:
    header = [cell.strip() for cell in rows[0][1]]
    rows = [(rows[0][0], header), *rows[1:]]
    forms = {(m[1], m[2]): cell for cell in header if (m := TIME.fullmatch(cell))}
    known = ("hh:mm:ss.ms", "ss.msec", "msec", *(form for _, form in forms if "PAL" in form))
    form = next((form for form in known if {(name, form) for name in TIMES} <= set(forms)), "")
    if not form:
        raise given.error(
            f"line {rows[0][0]}: no begin and end times in one form: export them as hh:mm:ss.ms or ss.msec"
        )
    if "PAL" in form:
        given.rate = Fraction(50 if "50" in form else 25)
    start, end = (forms[name, form] for name in TIMES)
    for at, texts in rows:
        if len(texts) != len(header):
            yield RawSpan(f"line {at}", why=f"{len(texts)} cells where others have {len(header)}")
    even = [each for each in rows if len(each[1]) == len(header)]
    one = {"tier", "annotation"} <= set(map(plain, header))  # else there is a column for each tier
    made = table(given, (start, end), (even, "\t"), "" if one else ".*")
    rest = [name for name in made.columns if name == "Annotation" or not re.fullmatch(_READ, name)]
    values = ["Annotation"] if one else rest
    unit = 1000.0 if form == "msec" else 1.0
    for row, place, why in timed(given, made.rows, start, end, unit):
        said = {name: row.cells[name] for name in values if row.cells[name].strip()}
        cells = {
            "subject": first_of(row.cells, "Participant"),
            "annotator": first_of(row.cells, "Annotator"),
            "media": first_of(row.cells, "File Path", "File Name"),
        }
        for name, text in (said or {"": ""}).items():
            tier = row.cells.get("Tier", "") or name
            yield RawSpan(*place, one_line(text), tier, cells, why=why or "no text" * (not said))


TOLD_BY = 200
"""Rows by which columns without names are told."""


def _without_header(given: Given, rows: Records, form: str = "") -> Iterator[RawSpan]:
    """Tell columns by what they hold: tier, participant, begins, ends, durations, text, names of files.

    A header in another language, which is left out, says in which form its first times are.
    """
    width = Counter(len(cells) for _, cells in rows).most_common(1)[0][0] if rows else 0
    columns = list(zip(*(cells for _, cells in rows if len(cells) == width), strict=True))
    first, end, text = _layout(given, [column[:TOLD_BY] for column in columns], with_lengths=bool(form))
    files = columns[text + 1 :]
    if not all(cell.lower().endswith(".eaf") for column in files for cell in column):
        raise given.error(f"{len(files)} columns after the text: {_REMEDY}")
    form = form or ("msec" if all(cell.strip().isdecimal() for cell in columns[first]) else "ss.msec")
    named = {0: "Tier"} | ({1: "Participant"} if first > 1 else {}) | {text + 1: "File Path"}
    named |= {first: f"{TIMES[0]} - {form}", end: f"{TIMES[1]} - {form}", text: "Annotation"}
    header = [named.get(place, f"{place} - time") for place in range(len(columns))]
    yield from _with_header(given, [(0, header), *rows])


def _layout(given: Given, columns: Sequence[Sequence[str]], *, with_lengths: bool) -> tuple[int, int, int]:
    """Find the first columns of begins and ends, and the text behind them, and behind durations if any."""
    forms = [mode(re.sub("[0-9]+", "0", cell) for cell in column) for column in columns]
    seconds = [[time_or_nan(cell) for cell in column] for column in columns]
    for groups, n in ((3, 3), (3, 2), (3, 1), *((2, n) for n in (3, 2, 1) if not with_lengths)):
        found = []
        for first in range(len(columns) - groups * n):
            end, text = first + n, first + groups * n
            parts = (seconds[first + n * k : first + n * (k + 1)] for k in (0, 1, groups - 1))
            fits = [
                begin <= last and (groups == 2 or abs(last - begin - length) <= 0.002 * max(1.0, length))
                for each in zip(*parts, strict=True)
                for begin, last, length in zip(*each, strict=True)
            ]
            same = [  # columns of one time in several forms, the last may be milliseconds
                min(abs(time - other), abs(time - other / 1000)) <= 0.002
                for pair in pairwise(seconds[first:end])
                for time, other in zip(*pair, strict=True)
            ]
            is_told = all(4 * sum(each) >= 3 * len(each) for each in (fits, same))
            if is_told and forms[first:end] == forms[end : end + n]:
                found.append((first, end, text))
        if len(found) == 1:
            given.account.note("columns of times taken as begins and ends" * (groups == 2))
            return found[0]
    raise given.error(f"no columns of begin and end times that can be told: {_REMEDY}")
