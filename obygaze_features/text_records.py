"""Split the text of a table into records: by what stands between its cells, with the line of each."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from obygaze_features.errors import ObygazeError
from obygaze_features.file_kinds import no_text
from obygaze_features.workbook import HEADER_ROWS, Records, is_workbook, read_sheet

DELIMITERS = ",;\t"
SAMPLE = 1 << 16
"""Characters in which the delimiter is looked for."""

SCORE_OF_HEADER = 1000
"""What a sign that gives the expected header scores, in cells that it finds in the first row."""

MAX_SHARED = 1 << 12
"""Different cells that are remembered, so that equal ones are one text in memory."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

_STATED_DELIMITER = re.compile(r'"?sep=([^"\r\n])"?(?:\r\n|\r|\n)', re.IGNORECASE)
"""Excel's own first line, which says what stands between cells."""

MARKS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""Byte order marks; those of UTF-32 first, which begin as those of UTF-16 do."""


ENCODING_SAMPLE = 4096
"""Bytes at the beginning of a text by which its encoding is guessed."""

MIN_SHARE_OF_ZEROS = 0.02
"""Zero bytes in bytes of a text in UTF-16 at the least: those of its digits and line ends alone."""

MIN_ZEROS = 8
"""Zero bytes that a text in UTF-16 has at the least, however short it is."""

SHARE_OF_ZEROS_IN_LATIN = 0.3
"""Zero bytes in bytes from which on most letters are Latin; if all are, it is one half."""


def marked_encoding(content: bytes) -> str:
    """Return the encoding that a byte order mark names; "" if there is none."""
    for mark, encoding in MARKS.items():
        if content.startswith(mark):
            return encoding
    return ""


def unmarked_encoding(content: bytes) -> str:
    """Guess whether a text without a byte order mark is UTF-16 or Japanese (ISO 2022); "" if neither.

    UTF-16 is recognised by its zero bytes, ISO 2022 by its escape sequences.
    """
    has_japanese_escapes = b"\x1b$B" in content or b"\x1b$@" in content
    if has_japanese_escapes:
        return "iso2022_jp"
    # In UTF-16 a character has two bytes. The high byte of Latin letters, digits and line ends is zero; a low
    # byte is rarely zero. So the zeros are at every other place: at odd places if the low byte comes first.
    head = content[:ENCODING_SAMPLE]
    n_even_zeros = head[::2].count(0)
    n_odd_zeros = head[1::2].count(0)
    if n_odd_zeros > n_even_zeros:
        is_utf16 = _has_zeros_of_utf16(head, n_odd_zeros, n_even_zeros, line_end=rb"[\r\n]\0")
        return "utf-16-le" if is_utf16 else ""
    is_utf16 = _has_zeros_of_utf16(head, n_even_zeros, n_odd_zeros, line_end=rb"\0[\r\n]")
    return "utf-16-be" if is_utf16 else ""


def _has_zeros_of_utf16(head: bytes, n_high_zeros: int, n_low_zeros: int, *, line_end: bytes) -> bool:
    """Return whether bytes are zero where they are in UTF-16.

    A text in Latin letters has many zeros. A text in another script has them only in digits, blanks and line
    ends, so that it must have a line end.

    Parameters
    ----------
    head
        The first bytes of a text.
    n_high_zeros, n_low_zeros
        How many of the high and of the low bytes of characters are zero.
    line_end
        Pattern of a line end in this order of bytes.
    """
    has_zeros_of_text = n_high_zeros >= max(MIN_SHARE_OF_ZEROS * len(head), MIN_ZEROS)
    are_zeros_in_high_bytes = n_high_zeros >= 2 * n_low_zeros
    if not has_zeros_of_text or not are_zeros_in_high_bytes:
        return False
    is_mostly_latin = n_high_zeros >= SHARE_OF_ZEROS_IN_LATIN * len(head)
    return is_mostly_latin or re.search(line_end, head) is not None


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
    why_no_text = no_text(content)  # such as a picture; empty for a text
    if why_no_text:
        raise refusal(f"{path}: {why_no_text}")
    encoding = marked_encoding(content)
    if not encoding:
        # A guess is too uncertain to read the table by it, and enough to say what is wrong.
        guess = unmarked_encoding(content)
        if guess:
            raise refusal(f"{path}: {guess} without its mark; save the file as UTF-8 (in Excel: CSV UTF-8)")
        # utf-8-sig: spreadsheets write a byte order mark, which is no part of the first column's name.
        encoding = "utf-8-sig"
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
    first_line = 1
    stated = _STATED_DELIMITER.match(text)
    if stated is not None:
        delimiter = stated[1]
        text = text[stated.end() :]
        first_line = 2
    delimiter = delimiter or _find_delimiter(text[:SAMPLE], is_header)

    try:
        return _parse_records(text, delimiter, '"', first_line), delimiter
    except _DamagedTable as error:
        problem = error
    if delimiter == "\t":
        # Between tabs, quotes may be ordinary letters, as in IMDb's tables.
        try:
            return _parse_records(text, delimiter, quote=None, first_line=first_line), delimiter
        except _DamagedTable as error:
            problem = error

    raise refusal(f"{path}: line {problem.line}: {problem}")


class _DamagedTable(Exception):  # noqa: N818 - caught in this module, and no error of a user
    """A table that cannot be split into cells.

    Attributes
    ----------
    line
        The line at which the record begins that cannot be read.
    """

    def __init__(self, line: int, reason: str) -> None:
        """Hold the line and the reason, which is the message."""
        super().__init__(reason)
        self.line = line


def _parse_records(text: str, delimiter: str, quote: str | None, first_line: int) -> Records:
    """Split a text into records, without empty ones; raise a `_DamagedTable` if it is no well-formed table.

    `quote` is the sign around a cell that may have delimiters and line ends; None if there is none.
    """
    records: Records = []
    known_cells: dict[str, str] = {}  # text -> the object that stands for all cells with this text
    line = first_line  # where the next record begins: a cell may have several lines
    reader = csv.reader(_split_lines(text), delimiter=delimiter, strict=True, quotechar=quote)
    try:
        for cells in reader:
            is_empty = len(cells) < 2 and not "".join(cells).strip()
            if not is_empty:
                records.append((line, shared_cells(cells, known_cells)))
            line = first_line + reader.line_num
    except csv.Error as error:
        raise _DamagedTable(line, _explain_csv_error(error)) from error
    return records


def _explain_csv_error(error: csv.Error) -> str:
    """Return in plain words why a table cannot be split into cells."""
    if "field limit" in str(error):
        limit = csv.field_size_limit()
        return f"a cell of more than {limit:,} characters: is a quote before it never closed?"
    return "not a well-formed table: a quote is never closed, or one inside a cell is not doubled"


def shared_cells(cells: Sequence[str], known: dict[str, str]) -> list[str]:
    """Return cells in which equal texts are the same object, to save memory in large tables.

    Names of films, people and labels are on most lines of a table.

    Parameters
    ----------
    cells
        The cells of a row.
    known
        Each text that was seen in the rows before -> the object that stands for it. New texts are added here;
        all are forgotten when they become too many.
    """
    if len(known) > MAX_SHARED:
        known.clear()
    return [known.setdefault(cell, cell) for cell in cells]


def _split_lines(text: str) -> Iterator[str]:
    """Yield lines with their ends, one at a time: tables may be large."""
    for match in _LINE.finditer(text):
        yield match[0]


def header_row(records: Records, is_header: Callable[[Sequence[str]], bool]) -> int:
    """Return the index of the row that is the header, among the first rows of a table; 0 if none is."""
    for index, (_, cells) in enumerate(records[:HEADER_ROWS]):
        if is_header(cells):
            return index
    return 0


def first_rows(head: str) -> dict[str, Records]:
    """Split the first rows of a table by each possible delimiter: delimiter -> rows.

    They serve to see by which delimiter a table has a known header. If a first line such as `sep=;` names the
    delimiter, only that one is tried. A row is (number of its line, cells), as elsewhere. Nobody asks for the
    number of the line here, so that it is 0 for all rows.

    Parameters
    ----------
    head
        The beginning of the table.
    """
    delimiters = list(DELIMITERS)
    stated = _STATED_DELIMITER.match(head)
    if stated is not None:
        delimiters = [stated[1]]
    rows_of_delimiter: dict[str, Records] = {}
    for delimiter in delimiters:
        reader = csv.reader(_split_lines(head), delimiter=delimiter)
        unknown_line = 0
        rows = [(unknown_line, cells) for cells in islice(reader, HEADER_ROWS) if cells]
        rows_of_delimiter[delimiter] = rows
    return rows_of_delimiter


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
    score_of_sign = {}
    for sign in signs:
        reader = csv.reader(_split_lines(text[:SAMPLE]), delimiter=sign)
        rows = list(islice(reader, HEADER_ROWS))
        n_rows_by_width = Counter(len(row) for row in rows if any(row))  # without empty rows
        if not n_rows_by_width:
            continue
        ((width, n_even_rows),) = n_rows_by_width.most_common(1)
        if width < 2:  # the sign divides no row, or too few
            continue
        score_of_sign[sign] = _DelimiterScore(
            has_known_header=any(is_header(row) for row in rows),
            share_of_even_rows=n_even_rows / n_rows_by_width.total(),
            width=width,
        )
    return max(score_of_sign, key=score_of_sign.__getitem__, default=",")  # the first of equally good ones


class _DelimiterScore(NamedTuple):
    """How well a sign divides the rows of a table; scores are compared by the first field that differs.

    Parameters
    ----------
    has_known_header
        Whether one of the rows is a known header.
    share_of_even_rows
        Share of the rows that have the most frequent number of cells.
    width
        This number of cells.
    """

    has_known_header: bool
    share_of_even_rows: float
    width: int


def _find_delimiter(head: str, is_header: Callable[[Sequence[str]], bool]) -> str:
    """Find the delimiter of a table, given its beginning.

    It is the sign that gives the expected header, or else the one that gives most cells in the first row.
    """
    score_of_sign = {}
    for sign, rows in first_rows(head).items():
        if not rows:
            continue
        _line, cells = rows[header_row(rows, is_header)]  # the header, or the first row
        score_of_sign[sign] = len(cells)
        if is_header(cells):
            score_of_sign[sign] += SCORE_OF_HEADER  # more than any number of cells
    return max(score_of_sign, key=score_of_sign.__getitem__, default=",")  # the first of equally good ones
