"""Split the text of a table into records: by what stands between its cells, with the line of each."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from obygaze_features.errors import ObygazeError
from obygaze_features.file_kinds import no_text
from obygaze_features.workbook import HEADER_ROWS, Records, is_workbook, read_sheet

DELIMITERS = ",;\t"
SAMPLE = 1 << 16
"""Characters in which the delimiter is looked for."""

SCORE_OF_HEADER = 1000
"""What a sign that gives the expected header scores, in cells that it finds in the first row."""

MOST_SHARED = 1 << 12
"""Different cells that are remembered, so that equal ones are one text in memory."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

_STATED_DELIMITER = re.compile(r'"?sep=([^"\r\n])"?(?:\r\n|\r|\n)', re.IGNORECASE)
"""Excel's own first line, which says what stands between cells."""

MARKS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""Byte order marks; those of UTF-32 first, which begin as those of UTF-16 do."""


def marked_encoding(content: bytes) -> str:
    """Return the encoding that a byte order mark names; "" if there is none."""
    return next((name for mark, name in MARKS.items() if content.startswith(mark)), "")


def unmarked_encoding(content: bytes) -> str:
    """Guess whether a text without a byte order mark is UTF-16 or Japanese (ISO 2022); "" if neither.

    UTF-16 is recognised by its zero bytes, ISO 2022 by its escape sequences.
    """
    if b"\x1b$B" in content or b"\x1b$@" in content:  # escapes to Japanese letters, all in ASCII
        return "iso2022_jp"
    head = content[:4096]
    n_even_zeros = head[::2].count(0)
    n_odd_zeros = head[1::2].count(0)
    if n_odd_zeros > n_even_zeros:
        name, line_end = "utf-16-le", rb"[\r\n]\0"
    else:
        name, line_end = "utf-16-be", rb"\0[\r\n]"
    # Digits and line ends have a zero as their high byte. A zero low byte is rare: few letters, such as
    # U+4E00, have one. So most zeros are at even places, or most at odd ones.
    rarer, more_frequent = sorted((n_even_zeros, n_odd_zeros))
    has_enough_zeros = more_frequent >= max(0.02 * len(head), 8)  # those of digits and line ends alone
    is_one_sided = more_frequent >= 2 * rarer
    is_mostly_latin = more_frequent >= 0.3 * len(head)
    has_line_end = re.search(line_end, head) is not None
    is_utf16 = has_enough_zeros and is_one_sided and (is_mostly_latin or has_line_end)
    return name if is_utf16 else ""


def decoded_text(path: Path, content: bytes, refusal: type[ObygazeError]) -> str:
    """Decode the text of a table: UTF-8, or UTF-16 and UTF-32 with a byte order mark.

    Parameters
    ----------
    path
        The file, for messages.
    content
        Its bytes.
    refusal
        Class of the error to raise if it is none of these.
    """
    why_not = no_text(content)
    if why_not:
        raise refusal(f"{path}: {why_not}")
    # utf-8-sig: spreadsheets write a byte order mark, which is no part of the first column's name.
    encoding = marked_encoding(content) or "utf-8-sig"
    guessed = "" if marked_encoding(content) else unmarked_encoding(content)
    if guessed:
        raise refusal(f"{path}: {guessed} without its mark; save the file as UTF-8 (in Excel: CSV UTF-8)")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise refusal(
            f"{path}: line {line}: not UTF-8; save the file as UTF-8 (in Excel: CSV UTF-8)"
        ) from None


def read_records(
    path: Path, content: bytes, refusal: type[ObygazeError], is_header: Callable[[Sequence[str]], bool]
) -> tuple[Records, str, tuple[str, ...]]:
    """Read the records of a table: a sheet of a workbook, or a text with delimiters.

    Parameters
    ----------
    path
        The file, for messages.
    content
        Its bytes.
    refusal
        Class of the error to raise if it cannot be read.
    is_header
        Returns whether cells are those of the expected header.

    Returns
    -------
    Records
        Line (from 1) and cells of each record that is not empty.
    str
        The delimiter between cells; "" for a workbook.
    tuple of str
        Notes, such as on sheets that were left out.
    """
    if is_workbook(content):
        records, notes = read_sheet(path, content, refusal, is_header)
        return records, "", notes
    text = decoded_text(path, content, refusal)
    records, delimiter = split_records(path, text, refusal, is_header)
    return records, delimiter, ()


def split_records(
    path: Path,
    text: str,
    refusal: type[ObygazeError],
    is_header: Callable[[Sequence[str]], bool],
    *,
    delimiter: str = "",
) -> tuple[Records, str]:
    """Split the text of a table into records, without empty ones; return them and the delimiter.

    Parameters
    ----------
    path
        The file, for messages.
    text
        The text. A first line such as `sep=;` names the delimiter.
    refusal
        Class of the error to raise if the text is no well-formed table.
    is_header
        Returns whether cells are those of the expected header.
    delimiter
        The delimiter of a text that does not name it; "" to find it.
    """
    text = text.replace("\ufeff", "")  # byte order marks of parts that were joined
    n_lines_before = 0
    stated = _STATED_DELIMITER.match(text)
    if stated is not None:
        delimiter = stated[1]
        text = text[stated.end() :]
        n_lines_before = 1
    delimiter = delimiter or _find_delimiter(text[:SAMPLE], is_header)
    problem = ""
    line = 1
    # If cells are separated by tabs, quotes may be ordinary letters, as in IMDb's tables.
    quote_characters: tuple[str | None, ...] = ('"', None) if delimiter == "\t" else ('"',)
    for quote in quote_characters:
        reader = csv.reader(_split_lines(text), delimiter=delimiter, strict=True, quotechar=quote)
        records: Records = []
        known: dict[str, str] = {}
        line = n_lines_before + 1  # where the next record begins: a cell may have several lines
        try:
            for cells in reader:
                is_empty = len(cells) < 2 and not "".join(cells).strip()
                if not is_empty:
                    records.append((line, shared_cells(cells, known)))
                line = n_lines_before + reader.line_num + 1
        except csv.Error as error:
            problem = _explain_csv_error(error)
        else:
            return records, delimiter
    raise refusal(f"{path}: line {line}: {problem}")


def _explain_csv_error(error: csv.Error) -> str:
    """Return in plain words why a table cannot be split into cells."""
    if "field limit" in str(error):
        limit = csv.field_size_limit()
        return f"a cell of more than {limit:,} characters: is a quote before it never closed?"
    return "not a well-formed table: a quote is never closed, or one inside a cell is not doubled"


def shared_cells(cells: Sequence[str], known: dict[str, str]) -> list[str]:
    """Return cells in which equal texts are the same object, to save memory in large tables.

    Names of films, people and labels are on most lines of a table. New texts are added to `known`.
    """
    if len(known) > MOST_SHARED:
        known.clear()
    return [known.setdefault(cell, cell) for cell in cells]


def _split_lines(text: str) -> Iterator[str]:
    """Yield lines with their ends, one at a time: tables may be large."""
    return (found[0] for found in _LINE.finditer(text))


def header_row(records: Records, is_header: Callable[[Sequence[str]], bool]) -> int:
    """Return the index of the row that is the header, among the first rows of a table; 0 if none is."""
    for index, (_, cells) in enumerate(records[:HEADER_ROWS]):
        if is_header(cells):
            return index
    return 0


def first_rows(head: str) -> dict[str, Records]:
    """Split the first rows of a table by each possible delimiter: delimiter -> rows, all with the line 0.

    If a first line such as `sep=;` names the delimiter, only that one is tried.
    """
    stated = _STATED_DELIMITER.match(head)
    rows_of: dict[str, Records] = {}
    for delimiter in stated[1] if stated else DELIMITERS:
        reader = csv.reader(_split_lines(head), delimiter=delimiter)
        rows_of[delimiter] = [(0, cells) for cells in islice(reader, HEADER_ROWS) if cells]
    return rows_of


def even_delimiter(text: str, signs: str, is_header: Callable[[Sequence[str]], bool]) -> str:
    """Find the delimiter of a table whose header may be unknown.

    It is the sign that gives a known header, or else the one that splits most rows into the same number of
    cells.

    Parameters
    ----------
    text
        The table.
    signs
        The possible delimiters.
    is_header
        Returns whether cells are those of a known header.
    """
    best = ","
    best_score = (False, 0.0, 0)  # whether it gives a known header, share of rows of one width, that width
    for sign in signs:
        rows = list(islice(csv.reader(_split_lines(text[:SAMPLE]), delimiter=sign), HEADER_ROWS))
        widths = Counter(len(row) for row in rows if any(row))
        if not widths:
            continue
        width, n_rows = widths.most_common(1)[0]
        if width > 1:
            score = (any(map(is_header, rows)), n_rows / widths.total(), width)
            if score > best_score:
                best = sign
                best_score = score
    return best


def _find_delimiter(head: str, is_header: Callable[[Sequence[str]], bool]) -> str:
    """Find the delimiter of a table, given its beginning.

    It is the sign that gives the expected header, or else the one that gives most cells in the first row.
    """
    best = ","
    best_score = 0
    for sign, rows in first_rows(head).items():
        cells = rows[header_row(rows, is_header)][1] if rows else []
        score = len(cells)
        if is_header(cells):
            score += SCORE_OF_HEADER
        if score > best_score:
            best = sign
            best_score = score
    return best
