"""Find the header of a person's table: below titles, in one row or in two, and what stands below it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.importers.column_contents import is_time
from obygaze_features.manifest.spans.headings import NAMED_COLUMNS, Headings, columns_meant
from obygaze_features.manifest.spans.names import plain
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.text_tables import Row, Table, counted, table_of
from obygaze_features.text_records import even_delimiter, split_records
from obygaze_features.workbook import HEADER_ROWS, Records

SEEN_BELOW = 20
"""So many rows below a row are looked at to tell whether it is the header."""

HEADED = 0.6
"""A header has at least this share of the number of cells that the rows below it have."""

MOST_HEADING = 1000
"""A longer heading, in characters, is refused, as the search for words inside it takes too long."""

SIGNS = ",;\t|"
"""Signs that may separate the cells of a text file."""

SECTION = "section"
"""Heading of a column that is made of rows of one cell: each row has the text of the last such row above."""

UNNAMED = "column {}"
"""Name of a column without a heading, with its number from 1."""


class Layout(NamedTuple):
    """A person's table, the rows of titles above its header, and its headings as they are written."""

    table: Table
    titles: tuple[Sequence[str], ...]
    headings: tuple[str, ...]


class Header(NamedTuple):
    """The rows of a header, from `first` up to `end`, and the headings that they say."""

    first: int
    end: int
    names: list[str]


def read_layout(file: SpanFile) -> Layout | None:
    """Read a file as a table of a person; None where no row can be its header.

    Raises
    ------
    ManifestError
        A row has more or fewer cells than the header, or a quote is never closed.
    """
    headings = file.reading.headings

    if file.sheet is not None:
        records, delimiter = file.sheet, ""
    else:
        sign = even_delimiter(file.text, SIGNS, headings.is_header)
        records, delimiter = split_records(
            file.path, file.text, ManifestError, headings.is_header, delimiter=sign
        )
    filled = [(line, cells) for line, cells in records if any(map(str.strip, cells))]
    header = find_header(filled, headings) or _numbered(filled)
    if header is None:
        return None
    width = max([len(header.names), *(len(cells) for _, cells in filled[header.end :])])
    body = [(line, _padded(_without_blanks(cells), width)) for line, cells in filled[header.end :]]
    line = filled[max(header.end - 1, 0)][0]
    names = _names(header.names, body)
    for number, name in enumerate(names, start=1):
        if len(name) > MOST_HEADING:
            raise file.error(
                f"line {line}, column {number}: a heading of {len(name):,} characters, where at most "
                f"{MOST_HEADING:,} are read: shorten it"
            )
    titles = [cells for _, cells in filled[: header.first]]
    records = [*filled[: header.first], (line, names), *body]
    table = table_of(
        file.path,
        records,
        delimiter,
        (),
        known=NAMED_COLUMNS,
        named=False,
        is_header=lambda cells: cells is names,
    )
    table = _with_sections(table)
    return Layout(table, tuple(titles), table.columns)


def _with_sections(table: Table) -> Table:
    """Give each row the text of the section that it stands in, such as a film or a scene.

    The title of a section is a row of a single cell. Its text fills that cell's column if no row of a clip
    has anything there, and else a new column of sections. Only where the table begins with a section, and
    each section has rows.
    """
    rows = [row for row in table.rows if not row.is_empty]
    are_sections = [len(_filled_columns(row)) == 1 for row in rows]
    is_divided = len(rows) > 2 and are_sections[0] and not are_sections[-1] and len(table.columns) > 2
    has_empty_section = any(section and following for section, following in pairwise(are_sections))
    if not is_divided or has_empty_section:
        return table
    title_column = _filled_columns(rows[0])[0]
    clips = [row for row, is_section in zip(rows, are_sections, strict=True) if not is_section]
    is_free = not any(row.cells[title_column].strip() for row in clips)
    name = title_column if is_free else SECTION
    divided = []
    title = ""
    for row, is_section in zip(rows, are_sections, strict=True):
        if is_section:
            title = row.cells[_filled_columns(row)[0]].strip()
        else:
            divided.append(Row(row.line, {**row.cells, name: title}))
    columns = table.columns if is_free else (*table.columns, SECTION)
    note = f"{counted(sum(are_sections), 'row')} of one cell read as column {name!r} of the rows below"
    return replace(table, columns=columns, rows=tuple(divided), notes=(*table.notes, note))


def _filled_columns(row: Row) -> list[str]:
    """Return the columns in which a row has a cell that is not empty."""
    return [column for column, cell in row.cells.items() if cell.strip()]


def find_header(records: Records, headings: Headings) -> Header | None:
    """Find the header of a table: the first row that has known headings, or that looks like one."""
    rows = [list(map(str.strip, cells)) for _, cells in records[: HEADER_ROWS + SEEN_BELOW]]
    candidates = []
    for at in range(min(len(rows), HEADER_ROWS)):
        if _is_of_groups(rows, at):
            candidates.append(Header(at, at + 2, _joined(rows[at], rows[at + 1])))
        is_below_groups = any(header.first < at < header.end for header in candidates)
        if not (is_below_groups and _repeats(rows[at])):
            candidates.append(Header(at, at + 1, rows[at]))
    named = [headings.n_in(header.names) for header in candidates]
    if any(named):
        return candidates[named.index(max(named))]
    for header in candidates:
        if headings.is_header(header.names):
            return header
    alike = [header for header in candidates if _looks_like_one(header, rows)]
    if not alike:
        return None
    n_known = [len(columns_meant(header.names)) for header in alike]
    best = max(n_known)
    return alike[n_known.index(best)] if best > 1 else alike[0]


def _repeats(names: Sequence[str]) -> bool:
    """Return whether a row repeats a heading, so that only the row of groups above it tells them apart."""
    texts = [plain(name) for name in names if name]
    return len(set(texts)) < len(texts)


def _numbered(records: Records) -> Header | None:
    """Give numbers to the columns of a table of rows of one width without a header; None for others."""
    widths = {len(cells) for _, cells in records}
    if len(records) < 2 or len(widths) > 1 or widths == {1}:
        return None
    return Header(0, 0, [UNNAMED.format(n + 1) for n in range(widths.pop())])


def _looks_like_one(header: Header, rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a row may be a header: words, mostly different, and about as many as rows below have."""
    texts = [name for name in header.names if name]
    n_cells_below = [sum(map(bool, row)) for row in rows[header.end :][:SEEN_BELOW]]
    if len(texts) < 2 or any(map(is_time, texts)):
        return False
    are_different = 2 * len(set(map(plain, texts))) > len(texts)
    if not n_cells_below:
        return are_different
    return are_different and len(texts) >= HEADED * median(n_cells_below)


def _is_of_groups(rows: Sequence[Sequence[str]], at: int) -> bool:
    """Return whether a row heads groups of columns, whose own headings the row below it has.

    Such a row has nothing above the further columns of a group, and the row below repeats headings, or has
    none where the upper row heads a single column.
    """
    below = rows[at + 2 :][:SEEN_BELOW]
    if not below:
        return False
    width = max(len(rows[at]), len(rows[at + 1]))
    upper = _padded(rows[at], width)
    lower = _padded(rows[at + 1], width)
    groups = [text for text in upper if text]
    headings = [text for text in lower if text]
    if len(groups) < 2 or len(headings) < 2 or any(map(is_time, [*groups, *headings])):
        return False
    first_group = next(n for n in range(width) if upper[n])
    has_further_members = any(lower[n] and not upper[n] for n in range(first_group + 1, width))
    alone = [n for n in range(width) if upper[n] and not lower[n]]
    repeats_headings = len({plain(text) for text in headings}) < len(headings)
    if not has_further_members or not (alone or repeats_headings):
        return False
    if not alone:
        return True
    has_cell = [any(n < len(row) and row[n] for n in alone) for row in below]
    return 2 * sum(has_cell) > len(has_cell)


def _joined(upper: Sequence[str], lower: Sequence[str]) -> list[str]:
    """Join two rows of headings: the lower one, with its group where it stands there more than once."""
    width = max(len(upper), len(lower))
    counts = Counter(plain(text) for text in lower if text)
    names = []
    group = ""
    for above, below in zip(_padded(upper, width), _padded(lower, width), strict=True):
        group = above or group
        if not below:
            names.append(above)
        elif counts[plain(below)] > 1:
            names.append(f"{group} {below}".strip())
        else:
            names.append(below)
    return names


def _names(header: Sequence[str], body: Records) -> list[str]:
    """Return a different name for each column: its heading, or a number if it has cells but no heading."""
    names = []
    counts = Counter[str]()
    width = max([len(header), *(len(cells) for _, cells in body)])
    for n, heading in enumerate(_padded(header, width)):
        is_filled = any(cells[n].strip() for _, cells in body if n < len(cells))
        name = heading
        if not heading and is_filled and not _is_index(n, body):
            name = UNNAMED.format(n + 1)
        if name:
            counts[plain(name)] += 1
            if counts[plain(name)] > 1:
                name = f"{name} ({counts[plain(name)]})"
        names.append(name)
    return names


def _is_index(n: int, body: Records) -> bool:
    """Return whether a column without a heading is a data frame's index: the first, of different numbers."""
    cells = [cells[n] for _, cells in body if n < len(cells)]
    return n == 0 and all(map(str.isdecimal, cells)) and len(set(cells)) == len(cells)


def _without_blanks(cells: list[str]) -> list[str]:
    """Empty the cells that hold blanks alone."""
    if not any(map(str.isspace, cells)):
        return cells  # the same: a large table has many
    return [cell if cell.strip() else "" for cell in cells]


def _padded(cells: Sequence[str], width: int) -> list[str]:
    """Return a row with empty cells added up to a width."""
    if isinstance(cells, list) and len(cells) == width:
        return cells  # the same list, as a large table has many rows
    return [*cells, *[""] * (width - len(cells))]
