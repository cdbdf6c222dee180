"""Read a sheet of a spreadsheet's workbook (.xlsx) as a table of texts."""

import io
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from obygaze_features.errors import ObygazeError, install_command
from obygaze_features.text import number_of
from obygaze_features.workbook_parts import (
    NO_FACTS,
    Cell,
    DamagedPartError,
    Merged,
    Parts,
    SheetFacts,
    TooLargeError,
    read_parts,
)

DAMAGED = "damaged, encrypted or of an unknown version: save it again, or its sheet as CSV (UTF-8)"
MOST_CHARACTERS = 1 << 17
"""Of a cell; spreadsheets take 32,767, and Python's reader of CSV no more than this."""
HEADER_ROWS = 40
"""Rows among which the header is looked for: tools and people write titles above it."""
DAMAGES = (zipfile.BadZipFile, zlib.error)
Records = list[tuple[int, list[str]]]
"""Line (from 1) and cells of each record that is not empty."""
FIRST_DAYS = datetime(1899, 12, 31), datetime(1904, 1, 1)  # noqa: DTZ001 - cells have no time zone
"""Of the calendars of workbooks: a time beyond 24 hours is a date to them."""
SHEET = "sheet"
"""Heading of the column that names the sheet of each row, where several with one header are read."""

_CLOCK = re.compile(r"\d\d+:\d\d:\d\d(?:\.\d+)?")


def is_workbook(content: bytes) -> bool:
    """Return whether a file is a workbook of a spreadsheet (.xlsx)."""
    return content.startswith(b"PK\3\4") and (b"[Content_Types]" in content or b"xl/" in content)


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
    try:
        import python_calamine as calamine  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise refusal(
            f"{path}: an Excel workbook; save the sheet as CSV (UTF-8), or install: "
            f"{install_command('obygaze[xlsx]')}"
        ) from None
    parts = _parts(path, content, refusal)
    notes = parts.notes
    try:
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        hidden = {
            each.name: each.visible != calamine.SheetVisibleEnum.Visible for each in book.sheets_metadata
        }
        names = sorted(book.sheet_names, key=hidden.__getitem__)  # those that people see first
        sheets = {name: book.get_sheet_by_name(name).to_python(skip_empty_area=False) for name in names}
    except (calamine.CalamineError, OSError, ValueError):
        raise refusal(f"{path}: an Excel workbook that is {DAMAGED}") from None
    filled = [name for name, rows in sheets.items() if rows]
    if not filled:
        raise refusal(f"{path}: its sheets are empty")
    heads = {name: ([*map(_text, row)] for row in sheets[name][:HEADER_ROWS]) for name in filled}
    largest = max(filled, key=lambda name: _n_filled(sheets[name]))
    own = next((name for name in filled if any(map(is_header, heads[name]))), largest)
    records = _records(path, sheets[own], parts.sheets.get(own, NO_FACTS), refusal)
    read = [own]
    visible = [name for name in filled if name != own and not hidden[name]]
    more = {name: _records(path, sheets[name], parts.sheets.get(name, NO_FACTS), refusal) for name in visible}
    header = _shared_header(records, more.values())
    if header is not None:
        alike = {name: others for name, others in more.items() if _line_of(header, others) is not None}
        records = _together({own: records, **alike}, header)
        read += alike
        notes.append(
            f"sheets {', '.join(map(repr, read))} read together, each row with its sheet and its line"
        )
    clocks = [cell for _, cells in records for cell in cells if _CLOCK.fullmatch(cell)]
    if clocks and all(cell.endswith((":00", ":00.000")) for cell in clocks):
        notes.append(f"times are whole minutes ({clocks[-1]}): 1:30 in a cell is 1 h 30 min, 0:01:30 is 90 s")
    others = [f"sheet {name!r} left out: {own!r} is read" for name in filled if name not in read]
    return records, (*others, *notes)


def _records(
    path: Path, cells: Sequence[Sequence[Any]], facts: SheetFacts, refusal: type[ObygazeError]
) -> Records:
    """Write the rows of a sheet that are not empty, with errors and merged cells as people see them."""
    rows = [[_text(cell) for cell in row] for row in cells]
    for line, row in enumerate(rows, start=1):
        if any(len(cell) > MOST_CHARACTERS for cell in row):
            raise refusal(f"{path}: line {line}: a cell of more than {MOST_CHARACTERS:,} characters")
    for cell in facts.unreadable:
        _put(rows, cell)
    _fill_merged(rows, facts.merged)
    if facts.unreadable or facts.merged:
        width = max(map(len, rows), default=0)
        for row in rows:
            row.extend([""] * (width - len(row)))
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


def _n_filled(rows: Sequence[Sequence[Any]]) -> int:
    """Count the cells of a sheet that are not empty."""
    return sum(cell not in {"", None} for row in rows for cell in row)


def _fill_merged(rows: list[list[str]], merged: Sequence[Merged]) -> None:
    """Give cells that are merged one below the other the text of the first, as people see it.

    Merged cells never share any: lines that one has filled are not gone through for another.
    """
    last_filled: dict[int, int] = {}
    for first_line, last_line, column in sorted(merged):
        if first_line > len(rows) or column >= len(rows[first_line - 1]):
            continue
        text = rows[first_line - 1][column]
        last = min(last_line, len(rows))
        for line in range(max(first_line, last_filled.get(column, 0)) + 1, last + 1):
            if column >= len(rows[line - 1]) or not rows[line - 1][column]:
                _put(rows, Cell(line, column, text))
        last_filled[column] = max(last, last_filled.get(column, 0))


def _put(rows: list[list[str]], cell: Cell) -> None:
    """Write a text into a cell, which may lie behind the last that has a value."""
    while len(rows) < cell.line:
        rows.append([])
    row = rows[cell.line - 1]
    row.extend([""] * (cell.column + 1 - len(row)))
    row[cell.column] = cell.text


def _parts(path: Path, content: bytes, refusal: type[ObygazeError]) -> Parts:
    """Go through the parts of a workbook, and refuse what is damaged or would need much memory."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return read_parts(archive, len(content))
    except TooLargeError as error:
        raise refusal(f"{path}: {error}") from None
    except (DamagedPartError, *DAMAGES, NotImplementedError, RuntimeError, EOFError, OSError, ValueError):
        raise refusal(f"{path}: an Excel workbook that is {DAMAGED}") from None


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
