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
from obygaze_features.identity import plain
from obygaze_features.manifest.spans.account import SHOWN_NAMES
from obygaze_features.manifest.spans.instant import time_or_nan
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import KINDS, SpanFile
from obygaze_features.manifest.spans.tier_names import NAMED, matching_key, tier_key
from obygaze_features.manifest.spans.tool_tables import (
    TimedRow,
    added_label_columns,
    decimal_sign,
    first_filled_cell,
    timed,
    tool_table,
    with_added_labels,
)
from obygaze_features.manifest.text_tables import Row, Table, counted
from obygaze_features.text import first_few
from obygaze_features.text_records import header_row, shared_cells, split_records
from obygaze_features.workbook import Records

HEADING = re.compile(r"(?P<time>.+) - (?P<form>hh:mm:ss\.ms|ss\.msec|msec|hh:mm:ss:ff.*)", re.IGNORECASE)
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

_COLUMN_OF_ELAN = re.compile(KINDS["elan-text"]["read"])
"""Names that ELAN writes above columns, other than names of tiers."""
_OFFSET = re.compile(r"#(?:(?!offset: *-?\d)[^#\n])*+offset: *+(-?\d{1,12})", re.IGNORECASE)


class Rows(NamedTuple):
    """Rows of a text, each with the number of its line, and the sign between their cells."""

    records: Records
    delimiter: str


class Layout(NamedTuple):
    """Where columns without names stand: the first of begin times, the first of end times, and the text.

    With times in two forms and durations, the columns from `begin` on are: begin, begin, end, end, duration,
    duration, text.
    """

    begin: int
    end: int
    text: int


def read_elan_text(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the annotations of ELAN's tab-delimited text or CSV.

    The meaning of columns is taken from a header in English. Without one, or with one in another language, it
    is found from the cells of the columns.
    """
    records, delimiter = _rows(file)
    index_of_first = _index_of_first_row(records)
    _refuse_offsets(file, records[:index_of_first])
    if index_of_first:
        file.account.note(f"{counted(index_of_first, 'line')} above the annotations left out")
    if not records:
        raise file.error("no annotation of ELAN's tab-delimited text")

    rows = Rows(records[index_of_first:], delimiter)
    _, first_cells = records[index_of_first]  # the header, if there is one
    # (which time, its form) -> heading: empty if the first row is no header.
    headings_of_times = _headings_of_times([cell.strip() for cell in first_cells])
    if not headings_of_times:
        yield from _without_header(file, rows)
        return
    has_english_header = any(time in {BEGIN, END} for time, _ in headings_of_times)
    if has_english_header:
        yield from _with_header(file, rows)
        return
    # In another language, in which the forms of times are written alike, and begins come first too.
    file.account.note(f"header in another language left out: {first_few(first_cells, SHOWN_NAMES)}")
    (_begin, form_of_begins), *_ = headings_of_times
    rows_below_header = Rows(records[index_of_first + 1 :], delimiter)
    yield from _without_header(file, rows_below_header, form_of_begins)


def is_headless(file: SpanFile) -> bool:
    """Return whether a file is ELAN's text without a header: tier, participant, begin, end, ... with tabs.

    Each row must have times in its third and fourth cells. Tables of people may have these too, so that one
    of two further signs is needed. Either the first cells are names of tiers: they repeat, or say what a tier
    holds. Or each row has its times in another form too (`_has_third_time`).
    """
    rows = [cells for cells in file.first_rows_of_tabs if len(cells) > 2]
    if not rows:
        return False
    times_of_rows = []
    for cells in rows:
        times = _two_times(cells)
        if times is None:
            return False
        times_of_rows.append(times)

    names = [cells[0].strip() for cells in rows]
    are_repeated_names = len(set(names)) < len(names) and all(_is_name(name) for name in names)
    say_what_tiers_hold = all(matching_key(name, NAMED_KEYS) for name in names)
    if are_repeated_names or say_what_tiers_hold:
        return True

    for cells, (first_s, second_s) in zip(rows, times_of_rows, strict=True):
        if not _has_third_time(cells, first_s, second_s):
            return False
    return True


def _two_times(cells: Sequence[str]) -> tuple[float, float] | None:
    """Return the times in the third and fourth cell of a row, in seconds; None if either is no time."""
    if len(cells) < 4:
        return None
    first_s = time_or_nan(cells[2])
    second_s = time_or_nan(cells[3])
    if math.isnan(first_s) or math.isnan(second_s):
        return None
    return first_s, second_s


def _is_name(text: str) -> bool:
    """Return whether a text that is not empty is no time."""
    return bool(text) and math.isnan(time_or_nan(text))


def _has_third_time(cells: Sequence[str], first_s: float, second_s: float) -> bool:
    """Return whether a row has a time besides a begin and an end: ELAN writes one, and people do not.

    `first_s` and `second_s` are the times in its third and fourth cells. They are either

    - one time in two forms, as 00:00:01.5 and 1.5, or as 1.5 and 1500, its milliseconds; or
    - begin and end, and a cell behind them holds the duration between them.

    Examples
    --------
    >>> _has_third_time(["tier", "", "1.5", "1500", "4", "4000", "text"], first_s=1.5, second_s=1500.0)
    True
    >>> _has_third_time(["tier", "", "1", "4", "3", "text"], first_s=1.0, second_s=4.0)
    True
    >>> _has_third_time(["tier", "", "1", "4", "text"], first_s=1.0, second_s=4.0)
    False
    """
    is_one_time = abs(first_s - second_s) <= SLACK_S
    is_second_in_ms = abs(1000 * first_s - second_s) <= 1  # then `second_s` is in fact milliseconds
    if is_one_time or is_second_in_ms:
        return True
    duration_s = second_s - first_s
    times_behind = [time_or_nan(cell) for cell in cells[4:]]
    return any(abs(time_s - duration_s) <= SLACK_S for time_s in times_behind)


def _index_of_first_row(records: Records) -> int:
    """Return the index of the header, else of the first row with at least three filled cells, else 0.

    Rows above it are titles.
    """
    header_index = header_row(records, _has_times)
    if header_index:
        return header_index
    for index, (_, cells) in enumerate(records):
        n_filled = sum(map(bool, cells))
        # ELAN writes at least a tier, a time and a text; a title has fewer cells.
        if n_filled > 2:
            return index
    return 0


def _refuse_offsets(file: SpanFile, records_above: Records) -> None:
    """Refuse a text that states above its annotations that a medium has an offset: its times are shifted.

    `records_above` are the rows above the annotations.
    """
    text_above = "\n".join("\t".join(cells) for _, cells in records_above)
    offsets = [offset for offset in _OFFSET.findall(text_above) if int(offset)]
    if offsets:
        raise file.error(f"its media are moved by {offsets[0]} ms: export without offsets, or give the .eaf")


def _has_times(cells: Sequence[str]) -> bool:
    """Return whether a row has the heading of a column of times."""
    return any(HEADING.fullmatch(cell.strip()) for cell in cells)


def _rows(file: SpanFile) -> Rows:
    """Split a text into rows of cells, with the sign between them.

    ELAN writes tabs between cells, and no quotes. A spreadsheet may have saved the text as CSV, or as the
    sheet of a workbook, which counts as if it had tabs.
    """
    if file.sheet is not None:
        return Rows(file.sheet, "\t")
    known: dict[str, str] = {}  # each different cell once, to save memory
    records = []
    for number, line in enumerate(file.lines, start=1):
        if line.strip():
            records.append((number, shared_cells(line.split("\t"), known)))
    # Two tabs in a line or more, as one may be in a text; ELAN writes at least a tier, a time and a text.
    is_divided_by_tabs = any(len(cells) > 2 for _, cells in records)
    if is_divided_by_tabs:
        return Rows(records, "\t")
    records_of_csv, delimiter = split_records(file.path, file.text, ManifestError, _has_times)
    return Rows(records_of_csv, delimiter)


def _with_header(file: SpanFile, rows: Rows) -> Iterator[RawSpan]:
    """Yield the annotations of a table of ELAN whose columns have names in English, in its first row.

    If there is a column `Tier`, a row is one annotation. Otherwise each tier has a column of its own, and a
    row is an annotation of each tier whose cell is filled. A person may have added columns of labels to the
    former: their cells become further spans of the row's times.
    """
    header_line, header_cells = rows.records[0]
    header = [cell.strip() for cell in header_cells]
    headings = _headings_of_times(header)
    form = _form_to_read(file, headings, header_line)  # times may be there in several forms
    begin_column = headings[BEGIN, form]
    end_column = headings[END, form]

    records = [(header_line, header)]
    for line, cells in rows.records[1:]:
        if len(cells) == len(header):
            records.append((line, cells))
        else:
            yield RawSpan(f"line {line}", reason=f"{len(cells)} cells where others have {len(header)}")
    table = tool_table(file, needed=(begin_column, end_column), records=(records, "\t"))

    has_column_of_tiers = {"tier", "annotation"} <= set(map(plain, header))
    if has_column_of_tiers:
        text_columns = ["Annotation"]
        label_columns = added_label_columns(file, table)
    else:
        text_columns = _columns_of_tiers(table)
        label_columns = []

    timed_rows = timed(
        file,
        table.rows,
        begin_column,
        end_column,
        per_second=1000.0 if form == "msec" else 1.0,
        decimal=decimal_sign(rows.delimiter),
        rate=_rate(form),
    )
    for timed_row in timed_rows:
        for span in _spans_of_row(timed_row, text_columns):
            yield from with_added_labels(span, [timed_row.row], label_columns)


def _columns_of_tiers(table: Table) -> list[str]:
    """Return the columns of texts, in a table with a column for each tier: all but ELAN's other columns."""
    return [name for name in table.columns if name == "Annotation" or not _COLUMN_OF_ELAN.fullmatch(name)]


def _headings_of_times(header: Sequence[str]) -> dict[tuple[str, str], str]:
    """Return (which time, its form) -> heading, for the columns of times in a header."""
    headings = {}
    for heading in header:
        match = HEADING.fullmatch(heading)
        if match:
            headings[match["time"], match["form"]] = heading
    return headings


def _spans_of_row(timed_row: TimedRow, text_columns: Sequence[str]) -> Iterator[RawSpan]:
    """Yield a span for each text of a row; a row without texts is yielded as a record with the reason.

    If no column names the tier of a row, the name of the text's column does.
    """
    cells = timed_row.row.cells
    tier = cells.get("Tier", "")
    facts = {
        "subject": first_filled_cell(cells, "Participant"),
        "annotator": first_filled_cell(cells, "Annotator"),
        "media": first_filled_cell(cells, "File Path", "File Name"),
    }
    location = timed_row.where
    start_s = timed_row.start_s
    end_s = timed_row.end_s
    texts = _texts(timed_row.row, text_columns)
    if not texts:
        yield RawSpan(location, start_s, end_s, "", tier, facts, reason=timed_row.reason or "no text")
    for name, text in texts.items():
        yield RawSpan(location, start_s, end_s, text, tier or name, facts, reason=timed_row.reason)


def _texts(row: Row, columns: Sequence[str]) -> dict[str, str]:
    """Return the texts of a row in the given columns, by column, without the empty ones."""
    return {name: one_line(row.cells[name]) for name in columns if row.cells[name].strip()}


def _form_to_read(file: SpanFile, headings: dict[tuple[str, str], str], line: int) -> str:
    """Choose the form of times to read: one in which there are both begin and end times.

    PAL frames are chosen only if there is no other form.

    `headings` is (which time, form) -> heading of the column.

    Raises
    ------
    ManifestError
        No form has both.
    """
    pal_forms = [form for _, form in headings if "PAL" in form]
    for form in (*FORMS, *pal_forms):
        if (BEGIN, form) in headings and (END, form) in headings:
            return form
    raise file.error(
        f"line {line}: no begin and end times in one form: export them as hh:mm:ss.ms or ss.msec"
    )


def _rate(form: str) -> Fraction | None:
    """Return the frames per second of a form of times that counts PAL frames; None for the other forms.

    `form` is what ELAN writes behind "Begin Time - " in a heading.

    Examples
    --------
    >>> _rate("hh:mm:ss:ff PAL"), _rate("hh:mm:ss:ff PAL-50fps"), _rate("hh:mm:ss.ms")
    (Fraction(25, 1), Fraction(50, 1), None)
    """
    if "PAL" not in form:
        return None
    return Fraction(50 if "50" in form else 25)


def _without_header(file: SpanFile, rows: Rows, form: str = "") -> Iterator[RawSpan]:
    """Yield the annotations of a table without a header in English; the cells tell the columns apart.

    ELAN writes these columns: tier, participant (optional), begin times, end times, durations (optional),
    text, and names of files (optional). Each of the times may be there in up to three forms, side by side.

    Parameters
    ----------
    file
        The file.
    rows
        The rows of annotations.
    form
        The form of the first column of times, if a header in another language says it; "" without a header.

    Raises
    ------
    ManifestError
        The cells do not tell which columns are begins and ends, or columns after the text are no files.
    """
    columns = _columns_of_usual_rows(rows.records)
    first_cells_of_columns = [column[:TOLD_BY] for column in columns]
    # Below a header in another language only a layout with durations is taken, as it can be checked.
    layout = _layout(file, first_cells_of_columns, has_durations=bool(form))

    columns_after_text = columns[layout.text + 1 :]
    are_files = all(cell.lower().endswith(".eaf") for column in columns_after_text for cell in column)
    if not are_files:
        raise file.error(f"{counted(len(columns_after_text), 'column')} after the text: {REMEDY}")

    if not form:
        # Milliseconds are integers; all other forms, clocks too, are read as `ss.msec` is.
        are_integers = all(cell.strip().isdecimal() for cell in columns[layout.begin])
        form = "msec" if are_integers else "ss.msec"

    # Read on as if ELAN had written a header in English, in line 0.
    header = _english_header(layout, len(columns), form)
    yield from _with_header(file, Rows([(0, header), *rows.records], rows.delimiter))


def _columns_of_usual_rows(records: Records) -> list[tuple[str, ...]]:
    """Return the cells of each column, from the rows that have as many cells as most rows have.

    A row with more cells or fewer has a tab within its text, or is damaged: its cells would be in wrong
    columns.

    Examples
    --------
    >>> _columns_of_usual_rows([(1, ["a", "1"]), (2, ["b", "2"]), (3, ["c"])])
    [('a', 'b'), ('1', '2')]
    """
    if not records:
        return []
    n_rows_of_width = Counter(len(cells) for _, cells in records)
    [(usual_width, _)] = n_rows_of_width.most_common(1)
    usual_rows = [cells for _, cells in records if len(cells) == usual_width]
    return list(zip(*usual_rows, strict=True))


def _english_header(layout: Layout, n_columns: int, form: str) -> list[str]:
    """Return the header that ELAN would write in English above columns without names.

    The order of ELAN's columns is: tier, participant (optional), times, text, path of the file (optional).

    Parameters
    ----------
    layout
        Where the first begin times, the first end times and the text stand.
    n_columns
        How many columns there are.
    form
        The form of the times in the first columns of begin and end times.

    Examples
    --------
    >>> _english_header(Layout(begin=1, end=2, text=4), n_columns=5, form="msec")
    ['Tier', 'Begin Time - msec', 'End Time - msec', '3 - time', 'Annotation']
    """
    # A column that is not read needs a name that no other column has, and that is not taken for the name of a
    # tier. `_COLUMN_OF_ELAN` matches names that end in "- time".
    header = [f"{index} - time" for index in range(n_columns)]
    header[0] = "Tier"
    first_after_text = layout.text + 1
    if first_after_text < n_columns:
        header[first_after_text] = "File Path"
    has_participants = layout.begin > 1  # a column between the tier and the first time
    if has_participants:
        header[1] = "Participant"
    header[layout.begin] = f"{BEGIN} - {form}"
    header[layout.end] = f"{END} - {form}"
    header[layout.text] = "Annotation"
    return header


def _usual_form(cells: Sequence[str]) -> str:
    """Return the pattern that most cells have, with 0 for each number: `0:0:0.0` for clocks."""
    return mode(re.sub("[0-9]+", "0", cell) for cell in cells)


def _layout(file: SpanFile, columns: Sequence[Sequence[str]], *, has_durations: bool) -> Layout:
    """Find the first columns of begin times and of end times, and the column of the text behind all times.

    Layouts with durations are tried first, as they can be checked: a duration must be end minus begin. If
    none fits, and there need be no durations, layouts with begins and ends alone are tried.

    Parameters
    ----------
    file
        The file, whose account notes that there are no durations by which the columns are checked.
    columns
        The cells of each column.
    has_durations
        Whether there must be columns of durations; if not, there may be some.

    Raises
    ------
    ManifestError
        No layout fits, or several do.
    """
    layout = _only_layout(columns, n_groups=3)  # begins, ends and durations
    if layout is not None:
        return layout
    if not has_durations:
        layout = _only_layout(columns, n_groups=2)  # begins and ends
        if layout is not None:
            file.account.note("columns of times taken as begins and ends")
            return layout
    raise file.error(f"no columns of begin and end times that can be told: {REMEDY}")


def _only_layout(columns: Sequence[Sequence[str]], *, n_groups: int) -> Layout | None:
    """Return the only layout that fits: where begin times, end times and the text stand; None if none is.

    ELAN may write each time in up to three forms side by side, as in 00:00:01.500, 1.5, 1500. It is first
    tried whether every time is there in three forms, then in two, then in one. A number of forms with which
    several layouts fit tells nothing, so that the next number is tried.

    Parameters
    ----------
    columns
        The cells of each column.
    n_groups
        Which times each row has: 2 for begin and end; 3 for begin, end and duration.
    """
    for n_forms in (3, 2, 1):
        layouts = _possible_layouts(columns, n_groups=n_groups, n_forms=n_forms)
        if len(layouts) == 1:
            return layouts[0]
    return None


def _possible_layouts(columns: Sequence[Sequence[str]], *, n_groups: int, n_forms: int) -> list[Layout]:
    """Return the layouts of times in `n_groups` groups and `n_forms` forms that fit the cells of the columns.

    For three groups and two forms, a layout is (with the columns in the order of the file):

        begin | begin | end | end | duration | duration | text

    Parameters
    ----------
    columns
        The cells of each column.
    n_groups
        2 for begins and ends; 3 with durations.
    n_forms
        Number of forms, side by side, in which each time is there.
    """
    form_of_column = [_usual_form(column) for column in columns]  # such as `0:0:0.0`
    times_of_column = [list(map(time_or_nan, column)) for column in columns]
    n_columns_of_times = n_groups * n_forms
    layouts = []
    for begin in range(len(columns) - n_columns_of_times):  # the text stands behind the times
        end = begin + n_forms
        layout = Layout(begin, end, text=begin + n_columns_of_times)
        # The columns of begins have the same times in several forms; those of ends have the same forms.
        have_same_forms = form_of_column[begin:end] == form_of_column[end : end + n_forms]
        columns_of_begins = times_of_column[begin:end]
        if (
            have_same_forms
            and _fits(times_of_column, layout, n_groups=n_groups)
            and _are_one_time(columns_of_begins)
        ):
            layouts.append(layout)
    return layouts


def _fits(times_of_column: Sequence[Sequence[float]], layout: Layout, *, n_groups: int) -> bool:
    """Return whether most rows begin before they end, and have the right duration if they have one.

    Parameters
    ----------
    times_of_column
        The times in each column, in seconds.
    layout
        Which columns would be those of begins, of ends and of the text.
    n_groups
        2 for begins and ends; 3 with durations.
    """
    # With two forms, the columns are: begin | begin | end | end | duration | duration.
    n_forms = layout.end - layout.begin
    has_durations = n_groups == 3
    rows_fit = []  # whether each row, in each form of its times, fits
    for form in range(n_forms):
        begins = times_of_column[layout.begin + form]
        ends = times_of_column[layout.end + form]
        if not has_durations:
            rows_fit += [begin <= end for begin, end in zip(begins, ends, strict=True)]
            continue
        durations = times_of_column[layout.end + n_forms + form]
        for begin, end, duration in zip(begins, ends, durations, strict=True):
            # The tolerance is relative for durations above a second.
            tolerance = SLACK_S * max(1.0, duration)
            is_duration = abs(end - begin - duration) <= tolerance
            rows_fit.append(begin <= end and is_duration)
    return _are_most(rows_fit)


def _are_one_time(columns: Sequence[Sequence[float]]) -> bool:
    """Return whether neighbouring columns are the same times; the latter of two may be in milliseconds."""
    are_same = []
    for first, second in pairwise(columns):
        for time, other_time in zip(first, second, strict=True):
            difference_s = abs(time - other_time)
            difference_if_ms = abs(time - other_time / 1000)
            are_same.append(min(difference_s, difference_if_ms) <= SLACK_S)
    return _are_most(are_same)


def _are_most(facts: Sequence[bool]) -> bool:
    """Return whether at least three in four are true: a few rows may be wrong."""
    return 4 * sum(facts) >= 3 * len(facts)
