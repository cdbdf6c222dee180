"""Read sheets of a spreadsheet's workbook (.xlsx, .ods) as tables of texts."""

import io
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, ParseError, fromstring

from obygaze_features.cells import NEVER_COMPUTED
from obygaze_features.errors import ObygazeError, install_command
from obygaze_features.text import first_few, number_of

MOST_CELLS = 20_000_000
DAMAGED = "damaged, encrypted or of an unknown version: save it again, or its sheet as CSV (UTF-8)"
MOST_BYTES = 1 << 28
HEADER_ROWS = 40
"""Rows among which the header is looked for: tools and people write titles above it."""
RELATIONS = "xl/_rels/workbook.xml.rels"
DAMAGES = (zipfile.BadZipFile, zlib.error)
Records = list[tuple[int, list[str]]]
"""Line (from 1) and cells of each record that is not empty."""

_ERROR = rb'<(?:\w+:)?c (?=[^<>]*\bt="e")[^<>]*\br="(\w+)"[^<>]*>(?:(?!</(?:\w+:)?c>).)*?<(?:\w+:)?v>([^<]*)<'
"""A cell of an error, and its text."""
_FORMULA = rb'\br="(\w+)"(?![^<>]*t="str")[^<>]*>\s*<f(?:[^<>]*/>|[^<>]*>[^<]*</f>)(?:<v\s*/>|<v></v>)?</c'
"""A cell of a formula that was never computed."""

_MERGED = re.compile(rb'mergeCell [^<>]*ref="(\w+):(\w+)"')
"""Cells that are merged: the first and the last."""

SHEET = "sheet"
"""Heading of the column that names the sheet of each row, where several with one header are read."""

ODD = {
    "that cannot be read, of an error": rb'\br="(\w+)"[^<>]*\bt="e"|\bt="e"[^<>]*\br="(\w+)"',
    "that cannot be read, of a formula never computed": _FORMULA,
    "merged across columns, of which the first alone has a value": (
        rb'mergeCell [^<>]*ref="(([A-Z]+)\d+:(?!\2\d)\w+)"'
    ),
    "of hidden rows or columns, read as the others": (
        rb'<(?:\w+:)?(?:row [^<>]*?r|col [^<>]*?min)="(\d+)"[^<>]*\bhidden="(?:1|true)"'
    ),
}
"""Cells that people see otherwise than they are read."""
STYLED = rb'<(?:\w+:)?c (?=[^<>]*\bs="(?:%s)")(?![^<>]*\bt="[^n])[^<>]*?\br="(\w+)"[^<>]*(?<!/)>'
"""Numbers of some styles."""
_MORE = re.compile(
    r'<(?:\w+:)?numFmt (?=[^<>]*\bnumFmtId="(\d+)")[^<>]*\bformatCode="'
    r'(?!(?>&quot;[^"]*?&quot;|\\.|\[[^\]]{,99}\]|[^"dhmsyDHMSY])*+[dhmsyDHMSY])'
    r'(?:00|[^"]*(?:%|(?:\\|&quot;[^"&]*)[^\W\d_]|[0#?],++[^0#?]))'
)
"""Formats, no dates, with zeros in front, per cent, words, or in thousands."""
_STYLE = re.compile(r'<(?:\w+:)?xf\b[^<>]*?(?:\bnumFmtId="(\d+)"[^<>]*)?>')
FIRST_DAYS = datetime(1899, 12, 31), datetime(1904, 1, 1)  # noqa: DTZ001 - cells have no time zone
"""Of the calendars of workbooks: a time beyond 24 hours is a date to them."""
CLOCK_CELL = re.compile(r"\d\d+:\d\d:\d\d(?:\.\d+)?")
"""A time as cells of workbooks are written here."""
_DOCUMENT_ROW = re.compile(
    rb'<table:table-row(?=[^<>]*?(?:number-rows-repeated="(\d+)"|>))[^<>]*>(.*?)</table:table-row>', re.DOTALL
)
_DOCUMENT_CELL = re.compile(rb'<table:table-cell(?=[^<>]*?(?:number-columns-repeated="(\d+)"|>))([^<>]*)>')
"""Rows and cells of a spreadsheet of OpenDocument, and how often each is repeated."""
_CELL = re.compile(rb'<(?:\w+:)?c [^>]*?r="([A-Z]{1,3})(\d{1,7})"')


class Workbook(NamedTuple):
    """The sheets of a workbook that hold something, what is odd in their cells, and which are hidden."""

    sheets: dict[str, Records]
    notes: tuple[str, ...]
    hidden: frozenset[str]


def is_workbook(content: bytes) -> bool:
    """Return whether a file is a workbook of a spreadsheet (.xlsx, .ods)."""
    if is_open_document(content):
        return True
    return content.startswith(b"PK\3\4") and (b"[Content_Types]" in content or b"xl/" in content)


def is_open_document(content: bytes) -> bool:
    """Return whether a file is a spreadsheet of OpenDocument (.ods)."""
    return (
        content.startswith(b"PK\3\4") and b"application/vnd.oasis.opendocument.spreadsheet" in content[:200]
    )


def read_sheet(
    path: Path, content: bytes, refusal: type[ObygazeError], is_header: Callable[[Sequence[str]], bool]
) -> tuple[Records, tuple[str, ...]]:
    """Read the first sheet with the header, or else the largest: values; times of day as hh:mm:ss.

    Parameters
    ----------
    refusal
        The error to raise, which names the file.
    is_header
        Whether cells are those of the header that is expected.

    Returns
    -------
    records : list
        Line (from 1) and cells of each row that is not empty.
    notes : tuple of str
        The sheets that are left out, and cells that people see otherwise.

    Raises
    ------
    ObygazeError
        It is no workbook, too large, or python-calamine is not installed.
    """
    book = read_workbook(path, content, refusal)
    sheets = book.sheets
    heads = {name: [cells for _, cells in records[:HEADER_ROWS]] for name, records in sheets.items()}
    largest = max(sheets, key=lambda name: n_filled(sheets[name]))
    own = next((name for name in sheets if any(map(is_header, heads[name]))), largest)
    read = sheets_together(book, own)
    return read.records, sheet_notes(book, read)


def read_workbook(path: Path, content: bytes, refusal: type[ObygazeError]) -> Workbook:
    """Read all sheets of a workbook that hold something; see `read_sheet`.

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
    sheets_xml: dict[str, bytes] = {}
    notes: list[str] = []
    if is_open_document(content):
        _refuse_large_document(path, content, refusal)
    else:
        sheets_xml, notes = _refuse_large(path, content, refusal)
    try:
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        hidden = {
            each.name: each.visible != calamine.SheetVisibleEnum.Visible for each in book.sheets_metadata
        }
        names = sorted(book.sheet_names, key=hidden.__getitem__)  # those that people see first
        values = {name: book.get_sheet_by_name(name).to_python(skip_empty_area=False) for name in names}
    except (calamine.CalamineError, OSError, ValueError):
        raise refusal(f"{path}: a workbook that is {DAMAGED}") from None
    sheets = {}
    for name, cells_of_sheet in values.items():
        records = _records(cells_of_sheet, sheets_xml.get(name, b""))
        if records:
            sheets[name] = records
    if not sheets:
        raise refusal(f"{path}: its sheets are empty")
    return Workbook(sheets, tuple(notes), frozenset(name for name in sheets if hidden.get(name)))


def clock_notes(records: Records) -> list[str]:
    """Say where the times of a sheet are whole minutes, as where 1:30 was meant as a minute and a half."""
    clocks = [cell for _, cells in records for cell in cells if CLOCK_CELL.fullmatch(cell)]
    if clocks and all(map(is_of_whole_minutes, clocks)):
        return [f"times are whole minutes ({clocks[-1]}): 1:30 in a cell is 1 h 30 min, 0:01:30 is 90 s"]
    return []


def is_of_whole_minutes(cell: str) -> bool:
    """Return whether a cell is a time as workbooks keep it, without seconds."""
    return CLOCK_CELL.fullmatch(cell) is not None and cell.endswith((":00", ":00.000"))


def _records(cells: Sequence[Sequence[Any]], xml: bytes) -> Records:
    """Write the rows of a sheet that are not empty, with errors and merged cells as people see them."""
    rows = [[_text(cell) for cell in row] for row in cells]
    for line, column, text in _unreadable_cells(xml):
        _put(rows, line, column, text)
    _fill_merged(rows, xml)
    return [(line, row) for line, row in enumerate(rows, start=1) if any(row)]


def _shared_header(records: Records, others: Iterable[Records]) -> list[str] | None:
    """Return the first row of several texts that a further sheet has too; None if there is none."""
    further = list(others)
    for _, cells in records[:HEADER_ROWS]:
        are_texts = sum(map(bool, cells)) > 1 and not any(map(_is_number, cells))
        if are_texts and any(_line_of(cells, rows) is not None for rows in further):
            return cells
    return None


def _line_of(header: Sequence[str], records: Records) -> int | None:
    """Return the index of the row that is a header; None if there is none."""
    wanted = _without_end(header)
    for at, (_, cells) in enumerate(records[:HEADER_ROWS]):
        if _without_end(cells) == wanted:
            return at
    return None


def _without_end(cells: Sequence[str]) -> list[str]:
    """Leave out the empty cells behind the last one that is filled; headings without case and blanks."""
    texts = [cell.strip().casefold() for cell in cells]
    while texts and not texts[-1]:
        texts.pop()
    return texts


def _is_number(cell: str) -> bool:
    return bool(cell) and not math.isnan(number_of(cell))


def _together(sheets: Mapping[str, Records], header: Sequence[str]) -> Records:
    """Put the rows below one header, of several sheets, into one table with a column of the sheets' names."""
    width = max(len(cells) for records in sheets.values() for _, cells in records)
    joined: Records = []
    for name, records in sheets.items():
        at = _line_of(header, records) or 0
        above = [] if joined else records[: at + 1]
        for place, (line, cells) in enumerate(above):
            padded = [*cells, *[""] * (width - len(cells))]
            joined.append((line, [*padded, SHEET if place == at else ""]))
        for line, cells in records[at + 1 :]:
            joined.append((line, [*cells, *[""] * (width - len(cells)), name]))
    return joined


class Sheets(NamedTuple):
    """The records of a sheet, with those of others below the same header, and the names of all of these."""

    records: Records
    names: list[str]


def sheets_together(book: Workbook, own: str) -> Sheets:
    """Put a sheet and those of its header into one table, each row with its sheet; a sheet alone stays so."""
    records = book.sheets[own]
    more = {name: rows for name, rows in book.sheets.items() if name != own and name not in book.hidden}
    header = _shared_header(records, more.values())
    if header is None:
        return Sheets(records, [own])
    alike = {name: rows for name, rows in more.items() if _line_of(header, rows) is not None}
    return Sheets(_together({own: records, **alike}, header), [own, *alike])


def sheet_notes(book: Workbook, read: Sheets) -> tuple[str, ...]:
    """Say which sheets are read together, which are left out, and what is odd in cells."""
    own = read.names[0]
    notes = [f"sheet {name!r} left out: {own!r} is read" for name in book.sheets if name not in read.names]
    notes += book.notes
    if len(read.names) > 1:
        shown = ", ".join(map(repr, read.names))
        notes.append(f"sheets {shown} read together, each row with its sheet and its line")
    return (*notes, *clock_notes(read.records))


def n_filled(records: Records) -> int:
    """Count the cells of a sheet that are not empty."""
    return sum(bool(cell) for _, cells in records for cell in cells)


def _refuse_large_document(path: Path, content: bytes, refusal: type[ObygazeError]) -> None:
    """Refuse a spreadsheet of OpenDocument that would need much memory: it repeats cells by a number."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            n_bytes = sum(member.file_size for member in archive.infolist())
            text = archive.read("content.xml") if n_bytes <= MOST_BYTES else b""
    except (*DAMAGES, KeyError, NotImplementedError, RuntimeError, EOFError, OSError, ValueError):
        raise refusal(f"{path}: a workbook that is {DAMAGED}") from None
    if n_bytes > MOST_BYTES:
        raise refusal(f"{path}: a workbook of more than {MOST_BYTES >> 20} MB; save the sheet as CSV")
    n_cells = 0
    for row, body in _DOCUMENT_ROW.findall(text):
        n_columns = sum(
            int(number or 1) for number, rest in _DOCUMENT_CELL.findall(body) if b"office:value-type" in rest
        )
        n_cells += n_columns * int(row or 1)
    if n_cells > MOST_CELLS:
        raise refusal(f"{path}: a workbook of {n_cells:,} cells; save its table as CSV")


def _unreadable_cells(sheet: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield the line (from 1), the column (from 0) and the text of each cell that cannot be read."""
    for match in re.finditer(_ERROR, sheet, re.DOTALL):
        yield *_line_and_column(match[1]), match[2].decode("utf-8", "replace")
    for match in re.finditer(_FORMULA, sheet):
        yield *_line_and_column(match[1]), NEVER_COMPUTED


def _fill_merged(rows: list[list[str]], sheet: bytes) -> None:
    """Give cells that are merged one below the other the text of the first, as people see it."""
    for match in _MERGED.finditer(sheet):
        first_line, column = _line_and_column(match[1])
        last_line, last_column = _line_and_column(match[2])
        if column != last_column or first_line > len(rows) or column >= len(rows[first_line - 1]):
            continue
        text = rows[first_line - 1][column]
        for line in range(first_line + 1, min(last_line, len(rows)) + 1):
            if column >= len(rows[line - 1]) or not rows[line - 1][column]:
                _put(rows, line, column, text)


def _line_and_column(place: bytes) -> tuple[int, int]:
    """Read the place of a cell, such as B2: its line from 1 and its column from 0."""
    letters = place.rstrip(b"0123456789")
    column = reduce(lambda n, sign: 26 * n + sign - 64, letters, 0)
    return int(place[len(letters) :]), column - 1


def _put(rows: list[list[str]], line: int, column: int, text: str) -> None:
    """Write a text into a cell, which may lie behind the last that has a value."""
    while len(rows) < line:
        rows.append([])
    row = rows[line - 1]
    width = max(column + 1, *map(len, rows))
    row += [""] * (width - len(row))
    row[column] = text


def _parts_of_sheets(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return the part of an archive that each sheet is, by the sheets' names."""
    parts = {}
    sheets = _elements(archive, "xl/workbook.xml", "sheet")
    targets = {
        each.get("Id", ""): each.get("Target", "") for each in _elements(archive, RELATIONS, "Relationship")
    }
    for sheet in sheets:
        identity = next((value for name, value in sheet.attrib.items() if name.endswith("}id")), "")
        target = targets.get(identity, "")
        parts[sheet.get("name", "")] = target.removeprefix("/") if target.startswith("/") else f"xl/{target}"
    return parts


def _elements(archive: zipfile.ZipFile, part: str, tag: str) -> list[Element]:
    """Return the elements of a part with a tag, in any namespace; none where it declares entities."""
    if part not in archive.namelist():
        return []
    content = archive.read(part)
    if b"<!ENTITY" in content:
        return []
    try:
        root = fromstring(content)  # noqa: S314 - it has no entities
    except ParseError:
        return []
    return [node for node in root.iter() if node.tag.rpartition("}")[2] == tag]


def _refuse_large(
    path: Path, content: bytes, refusal: type[ObygazeError]
) -> tuple[dict[str, bytes], list[str]]:
    """Refuse what would need much memory: calamine makes room for every cell up to the last.

    Returns
    -------
    sheets : dict
        Name of each sheet -> its XML.
    notes : list of str
        Cells that people see otherwise.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            is_small = sum(member.file_size for member in members) <= MOST_BYTES
            names = [member.filename for member in members] if is_small else []
            read = {
                name: archive.read(name) for name in names if "worksheets/" in name or "styles.xml" in name
            }
            part_of_sheet = _parts_of_sheets(archive) if is_small else {}
    except (*DAMAGES, NotImplementedError, RuntimeError, EOFError, OSError, ValueError):
        raise refusal(f"{path}: an Excel workbook that is {DAMAGED}") from None
    if not is_small:
        raise refusal(f"{path}: a workbook of more than {MOST_BYTES >> 20} MB; save the sheet as CSV")
    sheets = [content for name, content in read.items() if "worksheets/" in name]
    styles = [content for name, content in read.items() if "styles.xml" in name]
    for cells in map(_CELL.findall, sheets):
        height = max((int(row) for _, row in cells), default=0)
        columns = (reduce(lambda n, sign: 26 * n + sign - 64, column, 0) for column, _ in cells)
        if height * (width := max(columns, default=0)) > MOST_CELLS:
            what = f"a sheet of {height:,} rows and {width:,} columns"
            raise refusal(f"{path}: {what}; save its table as CSV")
    text = b"".join(styles).decode("utf-8", "replace")
    formats, styled = {"9", "10", *_MORE.findall(text)}, _STYLE.findall(text.partition("cellXfs")[2])  # 9: 0%
    more = "|".join(str(at) for at, name in enumerate(styled) if name in formats) or "none"
    signs = {**ODD, "whose format shows more than their number, which is read": STYLED % more.encode()}
    where = "cells of any sheet" if len(sheets) > 1 else "cells"
    notes = []
    for what, sign in signs.items():
        matches = [match for sheet in sheets for match in re.finditer(sign, sheet)]
        places = [next(group for group in match.groups() if group).decode() for match in matches]
        if places:
            notes.append(f"{where} {what}: {first_few(places, 3)}")
    return {name: read[part] for name, part in part_of_sheet.items() if part in read}, notes


def _text(cell: Any) -> str:
    """Write a value as a person would see it; a number in full."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime):
        times = (cell - day for day in FIRST_DAYS)
        cell = next((time for time in times if 0 <= time.days < 10), cell)
    if isinstance(cell, timedelta):
        whole, rest = divmod(round(cell.total_seconds() * 1000), 1000)
        return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{rest:03d}"
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)
