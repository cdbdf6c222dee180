"""Read sheets of a spreadsheet's workbook (.xlsx, .ods) as tables of texts."""

import io
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from obygaze_features.errors import ObygazeError, install_command
from obygaze_features.text import first_few, number_of
from obygaze_features.workbook_parts import (
    NO_FACTS,
    Cell,
    DamagedPartError,
    Merged,
    Parts,
    SheetFacts,
    TooLargeError,
    read_document_parts,
    read_parts,
)

DAMAGED = "damaged, encrypted or of an unknown version: save it again, or its sheet as CSV (UTF-8)"
MAX_CHARACTERS = 1 << 17
"""Of a cell; spreadsheets take 32,767, and Python's reader of CSV no more than this."""
MAX_SHEETS_SHOWN = 10
"""Sheets that messages name."""
HEADER_ROWS = 40
"""Rows among which the header is looked for: tools and people write titles above it."""
DAMAGES = (zipfile.BadZipFile, zlib.error)
ZIP = b"PK\3\4"
"""How a zip archive begins: with its first member. Source: APPNOTE.TXT, 4.3.7."""
ZIP_NAME_LENGTH = slice(26, 28)
"""Bytes of a zip archive that hold the length of its first member's name."""
ZIP_NAME_START = 30
"""Byte of a zip archive at which the name of its first member begins."""
PARTS_OF_EXCEL = "xl/"
"""Folder of the parts of a workbook (.xlsx) in its archive."""
FIRST_PARTS = (b"[Content_Types].xml", b"xl/", b"docProps/", b"_rels/")
"""Parts that programs write first into a workbook (.xlsx)."""
Records = list[tuple[int, list[str]]]
"""Line (from 1) and cells of each record that is not empty."""
FIRST_DAYS = datetime(1899, 12, 31), datetime(1904, 1, 1)  # noqa: DTZ001 - cells have no time zone
"""Of the calendars of workbooks: a time beyond 24 hours is a date to them."""
FIRST_INEXACT_INTEGER = 2**53
"""From here on, a float may stand for several integers."""
SHEET = "sheet"
"""Heading of the column that names the sheet of each row, where several with one header are read."""

DURATION = re.compile(r"PT(\d{1,6})H(\d{1,2})M(\d{1,2}(?:\.\d{1,9})?)S")
"""A time of a day or more of OpenDocument, which the library returns as it is written there: PT25H00M01S."""
CLOCK_CELL = re.compile(r"\d\d+:\d\d:\d\d(?:\.\d+)?")
"""A time as cells of workbooks are written here."""


class Workbook(NamedTuple):
    """The sheets of a workbook that hold something, what is odd in their cells, and which are hidden."""

    sheets: dict[str, Records]
    notes: tuple[str, ...]
    hidden: frozenset[str]


def is_workbook(content: bytes) -> bool:
    """Return whether a file is a workbook of a spreadsheet (.xlsx, .ods)."""
    if is_open_document(content):
        return True
    if not content.startswith(ZIP):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    except (*DAMAGES, ValueError, OSError, NotImplementedError):
        return _begins_as_workbook(content)
    # This zip begins with a member. If the list of members that was found has none at the beginning, it is
    # the list of a zip inside of this one, whose own list is lost.
    has_list_of_inner_zip = all(member.header_offset > 0 for member in members)
    if has_list_of_inner_zip:
        return _begins_as_workbook(content)
    return any(member.filename.startswith(PARTS_OF_EXCEL) for member in members)


def _begins_as_workbook(content: bytes) -> bool:
    """Return whether a damaged zip, whose list of members is lost, is probably an Excel workbook.

    The name of its first member decides, and whether names of a workbook's parts occur at all. Zips of other
    tools may contain workbooks, in which these names occur too.
    """
    name_length = int.from_bytes(content[ZIP_NAME_LENGTH], "little")
    first_name = content[ZIP_NAME_START : ZIP_NAME_START + name_length]
    if first_name and not first_name.startswith(FIRST_PARTS):
        return False
    return b"[Content_Types]" in content or PARTS_OF_EXCEL.encode() in content


def is_open_document(content: bytes) -> bool:
    """Return whether a file is a spreadsheet of OpenDocument (.ods)."""
    return content.startswith(ZIP) and b"application/vnd.oasis.opendocument.spreadsheet" in content[:200]


def read_sheet(
    path: Path, content: bytes, refusal: type[ObygazeError], is_header: Callable[[Sequence[str]], bool]
) -> tuple[Records, tuple[str, ...]]:
    """Read the first sheet that has the expected header, or else the largest sheet.

    Visible sheets with the same header are joined to it. Cells are read as the texts that people see.

    Parameters
    ----------
    path
        The workbook, for messages.
    content
        Its bytes.
    refusal
        Class of the error to raise, whose message names the file.
    is_header
        Returns whether cells are those of the expected header.

    Returns
    -------
    records : list
        Line (from 1) and cells of each row that is not empty.
    notes : tuple of str
        Which sheets were left out, and which cells look different to people.

    Raises
    ------
    ObygazeError
        It is no workbook, too large, or python-calamine is not installed.
    """
    book = read_workbook(path, content, refusal)
    read = sheets_together(book, _sheet_to_read(book, is_header))
    return read.records, sheet_notes(book, read)


def _sheet_to_read(book: Workbook, is_header: Callable[[Sequence[str]], bool]) -> str:
    """Return the name of the first sheet that has the expected header; else that of the largest sheet."""
    for name, records in book.sheets.items():
        if any(is_header(cells) for _, cells in records[:HEADER_ROWS]):
            return name
    return max(book.sheets, key=lambda name: n_filled(book.sheets[name]))


def read_workbook(path: Path, content: bytes, refusal: type[ObygazeError]) -> Workbook:
    """Read all sheets of a workbook that hold something; the visible ones come first.

    Parameters
    ----------
    path
        The workbook, for messages.
    content
        Its bytes.
    refusal
        Class of the error to raise, whose message names the file.

    Raises
    ------
    ObygazeError
        It is no workbook, too large, has no cells, or python-calamine is not installed.
    """
    try:
        import python_calamine as calamine  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise refusal(
            f"{path}: an Excel workbook; save the sheet as CSV (UTF-8), or install: "
            f"{install_command('obygaze[xlsx]')}"
        ) from None
    parts = _check_parts(path, content, refusal)

    try:
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        is_hidden = {}
        for sheet in book.sheets_metadata:
            is_hidden[sheet.name] = sheet.visible != calamine.SheetVisibleEnum.Visible
        visible_first = sorted(book.sheet_names, key=is_hidden.__getitem__)
        cells_of_sheet = {}
        for name in visible_first:
            # With the empty rows and columns before the cells, so that the numbers of lines are right.
            cells_of_sheet[name] = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
    except (calamine.CalamineError, OSError, ValueError):
        raise refusal(f"{path}: a workbook that is {DAMAGED}") from None

    sheets = {}
    for name, cells in cells_of_sheet.items():
        facts = parts.sheets.get(name, NO_FACTS)
        records = _visible_rows(path, cells, facts, refusal)
        if records:
            sheets[name] = records
    if not sheets:
        raise refusal(f"{path}: its sheets are empty")

    hidden_sheets = frozenset(name for name in sheets if is_hidden.get(name))
    return Workbook(sheets, tuple(parts.notes), hidden_sheets)


def clock_notes(records: Records) -> list[str]:
    """Return a note, in a list, if all times of a sheet are whole minutes; else an empty list.

    A spreadsheet takes 1:30 for an hour and a half, and the person may have meant a minute and a half.
    """
    times: list[str] = []
    for _, cells in records:
        times += filter(CLOCK_CELL.fullmatch, cells)
    if not times or not all(is_of_whole_minutes(cell) for cell in times):
        return []
    return [f"times are whole minutes ({times[-1]}): 1:30 in a cell is 1 h 30 min, 0:01:30 is 90 s"]


def is_of_whole_minutes(cell: str) -> bool:
    """Return whether a cell is a time as workbooks keep it, without seconds."""
    return CLOCK_CELL.fullmatch(cell) is not None and cell.endswith((":00", ":00.000"))


def _visible_rows(
    path: Path, cells: Sequence[Sequence[Any]], facts: SheetFacts, refusal: type[ObygazeError]
) -> Records:
    """Return the rows of a sheet that are not empty, with the texts that people see.

    A cell with an error has the text of the error; cells that are merged all have the text of the first one.

    Parameters
    ----------
    path
        The workbook, for messages.
    cells
        The values of the sheet by row, as the library reads them. Errors and merged cells are empty there.
    facts
        The errors, and which cells are merged, as read before (`_check_parts`).
    refusal
        Class of the error to raise.
    """
    rows = [_texts_of_row(row) for row in cells]
    for line, row in enumerate(rows, start=1):
        if any(len(cell) > MAX_CHARACTERS for cell in row):
            raise refusal(f"{path}: line {line}: a cell of more than {MAX_CHARACTERS:,} characters")

    # Both change `rows`. Errors come first, as the first of merged cells may be one, which is then copied.
    for cell in facts.unreadable:
        _set_cell(rows, cell)
    _fill_merged(rows, facts.merged)
    if facts.unreadable or facts.merged:
        # A row was lengthened if such a cell lies behind its end: all are made as long as the longest.
        width = max((len(row) for row in rows), default=0)
        for row in rows:
            n_missing = width - len(row)
            row.extend([""] * n_missing)

    return [(line, row) for line, row in enumerate(rows, start=1) if any(row)]


def _texts_of_row(row: Sequence[Any]) -> list[str]:
    """Return the texts of a row's cells."""
    return [_cell_text(cell) for cell in row]


def _shared_header(records: Records, others: Sequence[Records]) -> list[str] | None:
    """Return the header that a sheet has in common with any other sheet; None if there is none.

    It is the first row that holds several texts and no number, and that another sheet has too.
    """
    for _, cells in records[:HEADER_ROWS]:
        n_filled_cells = len([cell for cell in cells if cell])
        has_number = any(_is_number(cell) for cell in cells)
        if n_filled_cells < 2 or has_number:
            continue
        is_in_another_sheet = any(_find_header(cells, rows) is not None for rows in others)
        if is_in_another_sheet:
            return cells
    return None


def _find_header(header: Sequence[str], records: Records) -> int | None:
    """Return the index of the row that equals a header, apart from case and blanks; None if no row does.

    Only the first rows are looked at (`HEADER_ROWS`).
    """
    wanted = _trimmed_headings(header)
    for index, (_, cells) in enumerate(records[:HEADER_ROWS]):
        if _trimmed_headings(cells) == wanted:
            return index
    return None


def _trimmed_headings(cells: Sequence[str]) -> list[str]:
    """Return headings to compare: in small letters, without blanks around them and empty ones at the end."""
    texts = [cell.strip().casefold() for cell in cells]
    while texts and not texts[-1]:
        texts.pop()
    return texts


def _is_number(cell: str) -> bool:
    """Return whether a cell holds a number."""
    return bool(cell) and not math.isnan(number_of(cell))


def _join_sheets(sheets: Mapping[str, Records], header: Sequence[str]) -> Records:
    """Join the rows of several sheets with the same header; a column behind its headings names the sheet.

    The header, and what stands above it, is taken from the first sheet. A row is not filled up beyond the
    headings: if one row has a thousand cells, the others stay short.
    """
    n_headings = len(_trimmed_headings(header))
    joined: Records = []
    for name, records in sheets.items():
        header_index = _find_header(header, records) or 0
        is_first_sheet = not joined
        if is_first_sheet:
            for line, cells in records[:header_index]:
                joined.append((line, _with_cell(cells, n_headings, "")))
            line_of_header, headings = records[header_index]
            joined.append((line_of_header, _with_cell(headings, n_headings, SHEET)))
        for line, cells in records[header_index + 1 :]:
            joined.append((line, _with_cell(cells, n_headings, name)))
    return joined


def _with_cell(cells: Sequence[str], index: int, cell: str) -> list[str]:
    """Return the cells of a row with a further cell at an index, behind empty ones if the row is shorter."""
    missing = [""] * (index - len(cells))
    return [*cells[:index], *missing, cell, *cells[index:]]


class Sheets(NamedTuple):
    """The records of a sheet, with those of others below the same header, and the names of all of these."""

    records: Records
    names: list[str]


def sheets_together(book: Workbook, main_sheet: str) -> Sheets:
    """Join a sheet with all visible sheets that have the same header.

    If there are none, its rows are returned unchanged.

    Parameters
    ----------
    book
        The workbook.
    main_sheet
        Name of the sheet.
    """
    records = book.sheets[main_sheet]
    not_joined = {main_sheet, *book.hidden}
    other_sheets = {name: rows for name, rows in book.sheets.items() if name not in not_joined}
    header = _shared_header(records, list(other_sheets.values()))
    if header is None:
        return Sheets(records, [main_sheet])

    sheets_to_join = {main_sheet: records}
    for name, rows in other_sheets.items():
        has_same_header = _find_header(header, rows) is not None
        if has_same_header:
            sheets_to_join[name] = rows
    return Sheets(_join_sheets(sheets_to_join, header), list(sheets_to_join))


def sheet_notes(book: Workbook, read: Sheets) -> tuple[str, ...]:
    """Return notes on which sheets were joined, which were left out, and which cells are doubtful."""
    main_sheet = read.names[0]
    names_read = set(read.names)
    left_out = [name for name in book.sheets if name not in names_read]
    notes = [f"sheet {name!r} left out: {main_sheet!r} is read" for name in left_out[:MAX_SHEETS_SHOWN]]
    if len(left_out) > MAX_SHEETS_SHOWN:
        notes.append(f"{len(left_out) - MAX_SHEETS_SHOWN:,} more sheets left out")

    notes += book.notes
    if len(read.names) > 1:
        quoted_names = [repr(name) for name in read.names]
        shown = first_few(quoted_names, MAX_SHEETS_SHOWN)
        notes.append(f"sheets {shown} read together, each row with its sheet and its line")
    return (*notes, *clock_notes(read.records))


def n_filled(records: Records) -> int:
    """Count the cells of a sheet that are not empty."""
    n_cells = 0
    for _, cells in records:
        n_cells += sum(cell != "" for cell in cells)
    return n_cells


def _fill_merged(rows: list[list[str]], merged: Sequence[Merged]) -> None:
    """Copy the text of vertically merged cells into each of them, unless a cell has a text already.

    Merged ranges of a column should not overlap. In a hostile file a million may overlap, each of a million
    lines. So they are gone through from above, and no line of a column twice, which takes little time.

    Parameters
    ----------
    rows
        The rows of a sheet, which are changed.
    merged
        The merged cells: the first and the last line, counted from 1, and the column, counted from 0.
    """
    first_unvisited: dict[int, int] = {}  # column -> the line behind its merged ranges so far
    for first_line, last_line, column in sorted(merged):
        has_first_cell = first_line <= len(rows) and column < len(rows[first_line - 1])
        if not has_first_cell:
            continue
        text = rows[first_line - 1][column]
        start = max(first_line + 1, first_unvisited.get(column, 1))
        end = min(last_line, len(rows)) + 1  # the line behind the range, or behind the sheet
        for line in range(start, end):
            row = rows[line - 1]
            is_filled = column < len(row) and row[column] != ""
            if not is_filled:
                _set_cell(rows, Cell(line, column, text))
        first_unvisited[column] = max(end, first_unvisited.get(column, 1))


def _set_cell(rows: list[list[str]], cell: Cell) -> None:
    """Write the text of a cell into the rows of a sheet, which are lengthened if it lies beyond them."""
    while len(rows) < cell.line:
        rows.append([])
    row = rows[cell.line - 1]
    row.extend([""] * (cell.column + 1 - len(row)))
    row[cell.column] = cell.text


def _check_parts(path: Path, content: bytes, refusal: type[ObygazeError]) -> Parts:
    """Check the parts of a workbook before its values are read; return what the values do not tell.

    The values tell nothing of errors, formulas that were never computed, and merged or hidden cells.

    Parameters
    ----------
    path
        The workbook, for messages.
    content
        Its bytes.
    refusal
        Class of the error to raise.

    Raises
    ------
    ObygazeError
        Of the class `refusal`: the workbook is too large or damaged.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if is_open_document(content):
                return read_document_parts(archive, len(content))
            return read_parts(archive, len(content))
    except TooLargeError as error:
        raise refusal(f"{path}: {error}") from None
    # Python's module for zips raises all of these for damaged, encrypted or unusual ones.
    except (DamagedPartError, *DAMAGES, NotImplementedError, RuntimeError, EOFError, OSError, ValueError):
        kind = "a workbook" if is_open_document(content) else "an Excel workbook"
        raise refusal(f"{path}: {kind} that is {DAMAGED}") from None


def _cell_text(cell: Any) -> str:
    """Return the text of a cell as a person would see it: numbers in full, times as hh:mm:ss.sss.

    `cell` has the type that the library gives it. A time may come as a `time` or a `timedelta`; beyond a day,
    also as a date of long ago or, from OpenDocument, as a text such as PT25H00M01S.
    """
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        # Workbooks store all numbers as float: 7.0 is written as 7.
        is_exact_integer = cell.is_integer() and abs(cell) < FIRST_INEXACT_INTEGER
        return str(int(cell)) if is_exact_integer else repr(cell)
    if isinstance(cell, timedelta):
        return _clock_text(cell)
    if isinstance(cell, datetime):
        long_time = _time_beyond_a_day(cell)
        return cell.isoformat() if long_time is None else _clock_text(long_time)
    if isinstance(cell, date | time):
        return cell.isoformat()
    return _clock_of_duration(str(cell))


def _clock_of_duration(text: str) -> str:
    """Return a duration of OpenDocument as hh:mm:ss.sss; any other text as it is."""
    duration = DURATION.fullmatch(text)
    if duration is None:
        return text
    hours, minutes, seconds = duration.groups()
    return _clock_text(timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds)))


def _time_beyond_a_day(moment: datetime) -> timedelta | None:
    """Return the time that a date in the first ten days of a workbook's calendar stands for; else None.

    A workbook stores a time as days since the first day of its calendar (in 1899 or 1904), so that 30:00:00
    is the second day at 6 o'clock. No film lasts ten days, and nobody means a date of these years.
    """
    for first_day in FIRST_DAYS:
        time_since = moment - first_day
        if 0 <= time_since.days < 10:
            return time_since
    return None


def _clock_text(duration: timedelta) -> str:
    """Write a time as hh:mm:ss.sss, rounded to milliseconds."""
    all_seconds, milliseconds = divmod(round(duration.total_seconds() * 1000), 1000)
    all_minutes, seconds = divmod(all_seconds, 60)
    hours, minutes = divmod(all_minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}.{milliseconds:03d}"
