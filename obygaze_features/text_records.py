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

MOST_SHARED = 1 << 12
"""Different cells that are remembered, so that equal ones are one text in memory."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

_SEPARATOR = re.compile(r'"?sep=([^"\r\n])"?(?:\r\n|\r|\n)', re.IGNORECASE)
"""Excel's own first line, which says what stands between cells."""

MARKS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""Byte order marks; those of UTF-32 first, which begin as those of UTF-16 do."""


def marked_encoding(content: bytes) -> str:
    """Return the encoding that a byte order mark names; "" if there is none."""
    return next((name for mark, name in MARKS.items() if content.startswith(mark)), "")


def unmarked_encoding(content: bytes) -> str:
    """Return the encoding that a text without a mark shows: UTF-16 by its zeros, Japanese by its escapes."""
    if b"\x1b$B" in content or b"\x1b$@" in content:  # escapes to Japanese letters, all in ASCII
        return "iso2022_jp"
    head = content[:4096]
    even, odd = head[::2].count(0), head[1::2].count(0)
    few, many = sorted((even, odd))  # of letters such as U+4E00; of digits and line ends
    name, line_end = ("utf-16-le", rb"[\r\n]\0") if odd > even else ("utf-16-be", rb"\0[\r\n]")
    is_wide = many >= 0.3 * len(head) or re.search(line_end, head)
    return name if many >= max(0.02 * len(head), 2 * few, 8) and is_wide else ""


def decoded_text(path: Path, content: bytes, refusal: type[ObygazeError]) -> str:
    """Decode a text: UTF-8, or UTF-16 or 32 with their marks; the error names what is wrong."""
    if why := no_text(content):
        raise refusal(f"{path}: {why}")
    if not marked_encoding(content) and (name := unmarked_encoding(content)):
        raise refusal(f"{path}: {name} without its mark; save the file as UTF-8 (in Excel: CSV UTF-8)")
    try:
        # utf-8-sig: spreadsheets write a byte order mark, which is no part of the first column's name.
        return content.decode(marked_encoding(content) or "utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise refusal(
            f"{path}: line {line}: not UTF-8; save the file as UTF-8 (in Excel: CSV UTF-8)"
        ) from None


def read_records(
    path: Path, content: bytes, refusal: type[ObygazeError], is_header: Callable[[Sequence[str]], bool]
) -> tuple[Records, str, tuple[str, ...]]:
    """Read the records of a workbook's sheet or of a text, what stands between its cells, and notes."""
    if is_workbook(content):
        records, notes = read_sheet(path, content, refusal, is_header)
        return records, "", notes
    return *split_records(path, decoded_text(path, content, refusal), refusal, is_header), ()


def split_records(
    path: Path,
    text: str,
    refusal: type[ObygazeError],
    is_header: Callable[[Sequence[str]], bool],
    *,
    delimiter: str = "",
) -> tuple[Records, str]:
    """Split a text into the records that are not empty, by a delimiter that it names, or that is found.

    Parameters
    ----------
    is_header
        Whether cells are those of the header that is expected.
    delimiter
        What stands between cells, where the text does not name it and it is not to be found.
    """
    line, text = 1, text.replace("\ufeff", "")  # byte order marks of parts that were joined
    if said := _SEPARATOR.match(text):
        delimiter, line, text = said[1], 2, text[said.end() :]
    delimiter = delimiter or _delimiter(text[:SAMPLE], is_header)
    offset = line - 1
    problem = ""
    # Where tabs are between cells, quotes may be letters, as in IMDb's tables.
    for quotes in ('"', None)[: 1 + (delimiter == "\t")]:
        reader = csv.reader(_lines(text), delimiter=delimiter, strict=True, quotechar=quotes)
        records: Records = []
        known: dict[str, str] = {}
        line = offset + 1
        try:
            for record in reader:
                if len(record) > 1 or "".join(record).strip():
                    records.append((line, shared_cells(record, known)))
                line = reader.line_num + 1 + offset
        except csv.Error as error:
            problem = _problem(error)
            continue
        return records, delimiter
    raise refusal(f"{path}: line {line}: {problem}")


def _problem(error: csv.Error) -> str:
    """Say what is wrong with a table that its reader gives up."""
    if "field limit" in str(error):
        most = csv.field_size_limit()
        return f"a cell of more than {most:,} characters: is a quote before it never closed?"
    return "not a well-formed table: a quote is never closed, or one inside a cell is not doubled"


def shared_cells(cells: Sequence[str], known: dict[str, str]) -> list[str]:
    """Return cells, those that are known as the same texts in memory; remember the others.

    Names of films, people and labels are on most lines of a table, which may be large.
    """
    if len(known) > MOST_SHARED:
        known.clear()
    return [known.setdefault(cell, cell) for cell in cells]


def _lines(text: str) -> Iterator[str]:
    """Yield lines with their ends, one at a time: tables may be large."""
    return (found[0] for found in _LINE.finditer(text))


def header_row(records: Records, is_header: Callable[[Sequence[str]], bool]) -> int:
    """Find the row that is the header; the first one if none is."""
    return next((at for at, (_, cells) in enumerate(records[:HEADER_ROWS]) if is_header(cells)), 0)


def first_rows(head: str) -> dict[str, Records]:
    """Split the first rows of a text by the sign that it says is between cells, or by each that may be."""
    said = _SEPARATOR.match(head)
    return {
        sign: [(0, row) for row in islice(csv.reader(_lines(head), delimiter=sign), HEADER_ROWS) if row]
        for sign in (said[1] if said else DELIMITERS)
    }


def even_delimiter(text: str, signs: str, is_header: Callable[[Sequence[str]], bool]) -> str:
    """Find what stands between the cells of a table of any header: what divides most rows into equally many.

    Parameters
    ----------
    signs
        Those that may stand between cells.
    is_header
        Whether cells are those of a header that is known: the sign that gives one comes first.
    """
    best, best_score = ",", (False, 0.0, 0)
    for sign in signs:
        rows = list(islice(csv.reader(_lines(text[:SAMPLE]), delimiter=sign), HEADER_ROWS))
        widths = Counter(len(row) for row in rows if any(row))
        if not widths:
            continue
        width, n_rows = widths.most_common(1)[0]
        if width > 1:
            score = (any(map(is_header, rows)), n_rows / widths.total(), width)
            if score > best_score:
                best, best_score = sign, score
    return best


def _delimiter(head: str, is_header: Callable[[Sequence[str]], bool]) -> str:
    """Find what stands between cells: what gives the header expected, else most cells in the first line."""
    best, most = ",", 0
    for sign, first in first_rows(head).items():
        cells = first[header_row(first, is_header)][1] if first else []
        if (have := is_header(cells) * 1000 + len(cells)) > most:
            best, most = sign, have
    return best
