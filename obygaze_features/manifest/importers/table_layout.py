"""Find the header of a person's table: below titles, in one row or in two, and what stands below it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.identity import plain
from obygaze_features.manifest.importers.column_contents import is_time
from obygaze_features.manifest.spans.headings import NAMED_COLUMNS, Headings, columns_meant
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.text_tables import Row, Table, counted, table_of
from obygaze_features.text_records import even_delimiter, split_records
from obygaze_features.workbook import HEADER_ROWS, Records

SEEN_BELOW = 20
"""So many rows below a row are looked at to tell whether it is the header."""

MIN_HEADED_SHARE = 0.6
"""A header has at least this share of the number of cells that the rows below it have."""

MAX_COLUMNS = 1000
"""A table of more columns is refused, as headings are compared pair by pair, which takes too long."""

MAX_HEADING = 1000
"""A longer heading, in characters, is refused, as the search for words inside it takes too long."""

DELIMITERS = ",;\t|"
"""Signs that may separate the cells of a text file."""

SECTION = "section"
"""Heading of a column that is made of rows of one cell: each row has the text of the last such row above."""

UNNAMED = "column {}"
"""Name of a column without a heading, with its number from 1."""


class TooManyColumnsError(ManifestError):
    """A person's table has more columns than are read."""


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
    """Divide a person's table into titles, header and rows; None if no row can be the header.

    All rows of the result are as wide as the widest one, and all columns have different names.

    Raises
    ------
    TooManyColumnsError
        The header or a row below it has more cells than are read.
    ManifestError
        A quote is never closed, or a heading is too long.
    """
    records, delimiter = _split(file)
    filled_rows = [(line, cells) for line, cells in records if any(cell.strip() for cell in cells)]
    header = find_header(filled_rows, file.reading.headings) or _header_of_numbers(filled_rows)
    if header is None:
        return None

    # The header takes the rows from `header.first` to before `header.end`: one, two, or none if columns are
    # named by numbers.
    titles = filled_rows[: header.first]
    body = _body_below(header, filled_rows[header.end :], file)
    names = _unique_names(header.names, body)
    # Messages name the header's last row; the table's first row if the header is in none.
    last_row_of_header = max(header.end - 1, 0)
    header_line, _ = filled_rows[last_row_of_header]
    _refuse_long_headings(file, header_line, names)

    def is_header(cells: Sequence[str]) -> bool:
        """Return whether a row is the header that was found: the very list, as another row may be equal."""
        return cells is names

    table = table_of(
        file.path,
        [*titles, (header_line, names), *body],
        delimiter,
        needed=(),
        known=NAMED_COLUMNS,  # headings such as `Start_S` become these
        named=False,  # empty columns have no name
        is_header=is_header,
    )
    table = _with_sections_as_column(table)
    return Layout(table, tuple(cells for _, cells in titles), table.columns)


def _body_below(header: Header, records: Records, file: SpanFile) -> Records:
    """Return the rows below a header, all with as many cells as the longest one, and blank cells empty.

    Raises
    ------
    TooManyColumnsError
        The header or a row has more cells than are read.
    """
    width = max([len(header.names), *(len(cells) for _, cells in records)])
    # This comes before short rows are filled up: one row of many cells would make all others as long.
    if width > MAX_COLUMNS:
        raise TooManyColumnsError(
            f"{file.path}: {counted(width, 'column')}, where at most {MAX_COLUMNS:,} are read: keep "
            "those that say the film, the times and the labels of a span"
        )
    body = []
    for line, cells in records:
        body.append((line, _padded_to_width(_with_blank_cells_empty(cells), width)))
    return body


def _split(file: SpanFile) -> tuple[Records, str]:
    """Return the (line, cells) of each row of a file, and the delimiter of its cells; "" for a workbook."""
    if file.sheet is not None:
        return file.sheet, ""
    is_header = file.reading.headings.is_header
    delimiter = even_delimiter(file.text, DELIMITERS, is_header)
    return split_records(file.path, file.text, ManifestError, is_header, delimiter=delimiter)


def _refuse_long_headings(file: SpanFile, line: int, headings: Sequence[str]) -> None:
    """Refuse a table with a heading of more than `MAX_HEADING` characters; the header is on `line`."""
    for number, heading in enumerate(headings, start=1):
        if len(heading) > MAX_HEADING:
            raise file.error(
                f"line {line}, column {number}: a heading of {len(heading):,} characters, where at most "
                f"{MAX_HEADING:,} are read: shorten it"
            )


def _with_sections_as_column(table: Table) -> Table:
    """Write the title of each section, such as a film or a scene, into a column of the rows of that section.

    A title is a row with a single filled cell. A table is divided into sections if it begins with a title,
    has rows below each title, and has more than two columns. Any other table stays as it is. The column is
    that of the first title if no other row has a cell there, else a new column `section`, or `section (2)` if
    the table has a column of that name.
    """
    rows = [row for row in table.rows if not row.is_empty]
    are_titles = [len(_filled_columns(row)) == 1 for row in rows]  # for each row whether it is a title
    is_large_enough = len(rows) > 2 and len(table.columns) > 2
    if not is_large_enough or not _are_in_sections(are_titles):
        return table

    first_title_column = _filled_columns(rows[0])[0]
    other_rows = [row for row, is_title in zip(rows, are_titles, strict=True) if not is_title]
    holds_only_titles = not any(row.cells[first_title_column].strip() for row in other_rows)
    if holds_only_titles:
        section_column = first_title_column
        columns = table.columns
    else:
        *_, section_column = _unique_names([*table.columns, SECTION], [])
        columns = (*table.columns, section_column)

    rows_with_title = []
    title = ""  # of the section so far
    for row, is_title in zip(rows, are_titles, strict=True):
        if is_title:
            (title_column,) = _filled_columns(row)
            title = row.cells[title_column].strip()
        else:
            rows_with_title.append(Row(row.line, {**row.cells, section_column: title}))

    n_titles = counted(sum(are_titles), "row")
    note = f"{n_titles} of one cell read as column {section_column!r} of the rows below"
    return replace(table, columns=columns, rows=tuple(rows_with_title), notes=(*table.notes, note))


def _are_in_sections(are_titles: Sequence[bool]) -> bool:
    """Return whether rows begin with a title, and each title has other rows below it."""
    begin_with_title = are_titles[0]
    have_rows_below_last = not are_titles[-1]
    has_title_below_title = (True, True) in pairwise(are_titles)
    return begin_with_title and have_rows_below_last and not has_title_below_title


def _filled_columns(row: Row) -> list[str]:
    """Return the columns in which a row has a cell that is not empty."""
    return [column for column, cell in row.cells.items() if cell.strip()]


def find_header(records: Records, headings: Headings) -> Header | None:
    """Find the header of a table: one row, or two rows of which the upper one heads groups of columns.

    It is the first of these that exists, or None:

    1. the row with the most headings that the person names with options of the import;
    2. the first row with a manifest's headings;
    3. of the rows that look like a header, the one with the most known headings, if these are two or more;
    4. the first row that looks like a header.

    `records` are the rows of the table that are not empty.
    """
    rows = [[cell.strip() for cell in cells] for _, cells in records[: HEADER_ROWS + SEEN_BELOW]]
    candidates = _possible_headers(rows)

    n_named_of_candidates = [headings.n_in(header.names) for header in candidates]
    max_named = max(n_named_of_candidates, default=0)
    if max_named > 0:
        return candidates[n_named_of_candidates.index(max_named)]  # the first of equal ones

    for header in candidates:
        if headings.is_header(header.names):
            return header

    likely = [header for header in candidates if _looks_like_header(header, rows)]
    if not likely:
        return None
    n_known_of_likely = [len(columns_meant(header.names)) for header in likely]
    max_known = max(n_known_of_likely)
    if max_known < 2:  # a single known heading proves nothing, as it may be a word of a title
        return likely[0]
    return likely[n_known_of_likely.index(max_known)]


def _possible_headers(rows: Sequence[list[str]]) -> list[Header]:
    """Return the candidates for the header among the first rows, in the order of the rows.

    They are single rows, and pairs of a row that heads groups of columns with the row below it
    (`_heads_groups_of_columns`). The lower row of a pair is no candidate by itself if it repeats a heading,
    such as `Level | Level`.
    """
    candidates: list[Header] = []
    for number in range(min(len(rows), HEADER_ROWS)):
        if _heads_groups_of_columns(rows, number):
            names = _joined_headings(rows[number], rows[number + 1])
            candidates.append(Header(number, number + 2, names))
        is_lower_row = any(header.first < number < header.end for header in candidates)
        if is_lower_row and _repeats_a_heading(rows[number]):
            continue
        candidates.append(Header(number, number + 1, rows[number]))
    return candidates


def _repeats_a_heading(names: Sequence[str]) -> bool:
    """Return whether two columns of a row have the same heading; empty cells do not count."""
    texts = [plain(name) for name in names if name]
    return len(set(texts)) < len(texts)


def _header_of_numbers(records: Records) -> Header | None:
    """Return the headings `column 1`, `column 2`, ... for a table without a header.

    None if the table has fewer than two rows or columns, or if its rows differ in length: it is no table.
    """
    widths = {len(cells) for _, cells in records}
    if len(records) < 2 or len(widths) > 1:
        return None
    width = widths.pop()
    if width == 1:
        return None
    names = [UNNAMED.format(number) for number in range(1, width + 1)]
    return Header(first=0, end=0, names=names)  # it takes no row of the table


def _looks_like_header(header: Header, rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a row looks like a header.

    It has two texts or more, of which none is a time and most are different, and is about as wide as the rows
    below it.
    """
    texts = [name for name in header.names if name]
    if len(texts) < 2 or any(is_time(text) for text in texts):
        return False
    n_different = len({plain(text) for text in texts})
    are_mostly_different = 2 * n_different > len(texts)
    rows_below = rows[header.end : header.end + SEEN_BELOW]
    n_cells_below = [_n_filled(row) for row in rows_below]
    is_wide_enough = not rows_below or len(texts) >= MIN_HEADED_SHARE * median(n_cells_below)
    return are_mostly_different and is_wide_enough


def _n_filled(cells: Sequence[str]) -> int:
    """Count the cells of a row that are not empty."""
    return len([cell for cell in cells if cell])


def _heads_groups_of_columns(rows: Sequence[list[str]], number: int) -> bool:
    """Return whether a row heads groups of columns, with the headings of single columns in the row below.

    An example of two such rows, with a group of two columns for each annotator:

    | Film | Start | Ann   |         | Bob   |         |
    |      |       | Level | Remarks | Level | Remarks |

    A group has several columns, so the upper row must be empty above some headings of the lower row. One more
    sign is needed:

    - If there are columns that only the upper row heads (`Film`, `Start`), most rows of the body have a cell
      in one of them.
    - Otherwise, the lower row repeats a heading (`Level`).

    `number` is the place of the upper row among the first rows of a table, from 0.
    """
    body = rows[number + 2 :][:SEEN_BELOW]
    if not body:
        return False
    width = max(len(rows[number]), len(rows[number + 1]))
    upper = _padded_to_width(rows[number], width)
    lower = _padded_to_width(rows[number + 1], width)
    if not (_may_be_headings(upper) and _may_be_headings(lower)):
        return False
    if not _has_group_of_several(upper, lower):
        return False
    headed_only_above = [column for column in range(width) if upper[column] and not lower[column]]
    if headed_only_above:
        return _are_mostly_filled(body, headed_only_above)
    return _repeats_a_heading(lower)


def _may_be_headings(row: Sequence[str]) -> bool:
    """Return whether a row has two or more filled cells, of which none is a time."""
    texts = [text for text in row if text]
    return len(texts) >= 2 and not any(is_time(text) for text in texts)


def _has_group_of_several(upper: Sequence[str], lower: Sequence[str]) -> bool:
    """Return whether one heading of the upper row stands above several columns, as a merged cell does.

    A merged cell has its text in its first column: further columns of the group have a heading in the lower
    row and none in the upper. Columns before the first heading of the upper row are in no group.

    Examples
    --------
    >>> _has_group_of_several(upper=["", "Anna", ""], lower=["Film", "Level", "Concepts"])
    True
    >>> _has_group_of_several(upper=["", "Anna", "Ben"], lower=["Film", "Level", "Level"])
    False
    """
    is_in_a_group = False
    for heading_of_group, heading in zip(upper, lower, strict=True):
        if is_in_a_group and heading and not heading_of_group:
            return True
        if heading_of_group:
            is_in_a_group = True
    return False


def _are_mostly_filled(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> bool:
    """Return whether more than half of the rows have a cell in any of some columns, counted from 0."""
    n_filled_rows = 0
    for row in rows:
        if any(column < len(row) and row[column] for column in columns):
            n_filled_rows += 1
    return 2 * n_filled_rows > len(rows)


def _joined_headings(upper: Sequence[str], lower: Sequence[str]) -> list[str]:
    """Return one heading for each column, from a row of groups and the row of columns below it.

    A heading that is in the lower row once is used alone. One that is repeated is joined to its group, as in
    `Ann Level`. A column without a heading in the lower row has that of the upper row.

    The empty cells behind a heading of a group belong to its group.
    """
    width = max(len(upper), len(lower))
    padded_upper = _padded_to_width(upper, width)
    padded_lower = _padded_to_width(lower, width)
    n_columns_of_name = Counter(plain(text) for text in lower if text)
    names = []
    group = ""  # the last heading of a group so far
    for above, below in zip(padded_upper, padded_lower, strict=True):
        group = above or group
        is_repeated = n_columns_of_name[plain(below)] > 1
        if not below:
            names.append(above)
        elif is_repeated:
            names.append(f"{group} {below}".strip())
        else:
            names.append(below)
    return names


def _unique_names(header: Sequence[str], body: Records) -> list[str]:
    """Return a unique name for each column: its heading, with ` (2)` if an earlier column has the same.

    A column without a heading is named by its number, `column 3`. But empty columns, and the index that a
    data frame (pandas) wrote, keep an empty name, by which they are left out later.

    `header` are the headings, and `body` the rows below, which may be longer.
    """
    names = []
    n_columns_of_name = Counter[str]()  # of the columns so far, whatever the case of their headings
    width = max([len(header), *(len(cells) for _, cells in body)])
    for column, heading in enumerate(_padded_to_width(header, width)):
        name = heading or _name_without_heading(column, body)
        if name:
            n_columns_of_name[plain(name)] += 1
            number = n_columns_of_name[plain(name)]
            if number > 1:
                name = f"{name} ({number})"
        names.append(name)
    return names


def _name_without_heading(column: int, body: Records) -> str:
    """Return `column 3` for the third column; "" if it is empty, or the index of a data frame."""
    is_filled = any(cells[column].strip() for _, cells in body if column < len(cells))
    if not is_filled or _is_index_of_data_frame(column, body):
        return ""
    return UNNAMED.format(column + 1)


def _is_index_of_data_frame(column: int, body: Records) -> bool:
    """Return whether a column is a data frame's index: the first column, of different integers.

    pandas writes the index into a column without a heading; it says nothing about a row.
    """
    if column != 0:
        return False
    numbers = [cells[column] for _, cells in body if column < len(cells)]
    return all(number.isdecimal() for number in numbers) and len(set(numbers)) == len(numbers)


def _with_blank_cells_empty(cells: list[str]) -> list[str]:
    """Return a row in which cells of nothing but blanks are empty."""
    if not any(map(str.isspace, cells)):
        return cells  # not a copy, as a large table has many rows
    return [cell if cell.strip() else "" for cell in cells]


def _padded_to_width(cells: Sequence[str], width: int) -> list[str]:
    """Return a row with empty cells added at its end, so that it has at least `width` cells."""
    if isinstance(cells, list) and len(cells) == width:
        return cells  # not a copy, as a large table has many rows
    n_missing = width - len(cells)
    return [*cells, *([""] * n_missing)]
