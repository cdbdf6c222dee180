"""Tell the rows of a person's table that are clips from those that are none: sums, legends, remarks."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from obygaze_features.cells import is_unreadable
from obygaze_features.manifest.importers.column_contents import (
    NO,
    YES,
    are_ranges,
    are_times,
    count_labels,
    is_of_marks,
    is_time,
    label_of_heading,
    range_in,
    readable_cells,
    whole_numbers,
)
from obygaze_features.manifest.spans.headings import (
    DURATION,
    FILM_COLUMNS,
    LABEL_COLUMNS,
    Headings,
    meanings_of_heading,
)
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.names import plain, without_zeros
from obygaze_features.manifest.text_tables import TIMES, Row, Table, counted

SUMS: Final = {
    "total", "totals", "sum", "mean", "average", "avg", "median", "sd", "std", "n", "count", "min", "max",
    "grand total", "total duration", "variance", "summe", "gesamt", "gesamtsumme", "gesamtdauer", "insgesamt",
    "mittelwert", "mittel", "durchschnitt", "anzahl", "standardabweichung", "varianz", "somme", "moyenne",
    "médiane", "total général", "durée totale", "écart type", "suma", "media", "promedio", "somma", "totale",
    "soma", "média", "σ", "∑",
}  # fmt: skip
"""Words that people and programs write in front of a sum, as names are compared (`plain`)."""

MOST_KINDS: Final = 12
"""A column of kinds of rows, such as level, concept, remark, has at most so many different words."""

LAST_ROWS: Final = 5
"""A row with numbers where times stand is taken as a sum only among so many last rows of a table."""


class LeftOut(NamedTuple):
    """A row that is no clip, and the reason: what it is instead."""

    row: Row
    reason: str


class ClipRows(NamedTuple):
    """A table without the rows that are no clips, and those rows."""

    table: Table
    left_out: tuple[LeftOut, ...]


def clip_rows(table: Table, headings: Headings, words: LabelWords) -> ClipRows:
    """Leave out the rows of a table that are no clips: sums, remarks, rows that cannot be read.

    In a table with starts, a row without a start is left out if it
    - has only cells that say no, such as checkboxes that were copied down;
    - has neither times nor a film that can be read;
    - is a sum;
    - is a remark: it has no label, and either is a single cell or comes after the last clip.
    A sum may also have numbers in the place of times. It is left out if it is one of the last rows, and has
    no label while other rows have labels.
    """
    rows = [row for row in table.rows if not row.is_empty]
    # Sums do not count when the content of columns is told, as a sum may have numbers in all of them.
    rows_but_sums = tuple(row for row in rows if not _is_sum(row))
    columns = _columns_of_spans(replace(table, rows=rows_but_sums), headings, words)
    have_labels = any(_has_label(row, columns.labels, words) for row in rows_but_sums)
    are_timed = [_has_time(row, columns.starts) for row in rows]
    timed_numbers = [number for number, is_timed in enumerate(are_timed) if is_timed]
    left_out = []
    for number, row in enumerate(rows):
        reason = ""
        if timed_numbers and not are_timed[number]:
            reason = _why_no_clip(row, columns, is_after_last_clip=number > timed_numbers[-1])
        else:
            is_one_of_the_last = number >= len(rows) - LAST_ROWS
            may_be_sum = have_labels and is_one_of_the_last and _is_sum(row)
            if may_be_sum and not _has_label(row, columns.labels, words):
                reason = "a sum"
        if reason:
            left_out.append(LeftOut(row, reason))
    table = _without_rows(table, left_out)
    others = _rows_of_other_kinds(table, words)
    return ClipRows(_without_rows(table, others), (*left_out, *others))


class _SpanColumns(NamedTuple):
    """The columns of a table that hold times, starts (some of those of times) and labels."""

    times: list[str]
    starts: list[str]
    labels: list[str]


def _columns_of_spans(table: Table, headings: Headings, words: LabelWords) -> _SpanColumns:
    """Find the columns of times, starts and labels of a table, by their headings or their cells."""
    times = _columns_of_times(table, words)
    return _SpanColumns(times, _columns_of_starts(times), _columns_of_labels(table, headings, words))


def _why_no_clip(row: Row, columns: _SpanColumns, *, is_after_last_clip: bool) -> str:
    """Return why a row without a start is no clip, in a table of rows with starts; "" if it may be one."""
    is_single_cell = len(_filled_cells(row)) == 1
    has_label_or_time = _has_cell(row, columns.labels) or _has_doubtful_time(row, columns.times)
    if _says_only_no(row):
        return "without times, and nothing but marks of no"
    if _is_unreadable_row(row, columns.starts):
        return "times and film cannot be read"
    if _is_sum(row):
        return "a sum"
    if (is_after_last_clip or is_single_cell) and not has_label_or_time:
        return "a remark, without times"
    return ""


def _without_rows(table: Table, left_out: Sequence[LeftOut]) -> Table:
    """Return a table without the rows that are left out."""
    left_out_ids = {id(entry.row) for entry in left_out}
    return replace(table, rows=tuple(row for row in table.rows if id(row) not in left_out_ids))


def _rows_of_other_kinds(table: Table, words: LabelWords) -> list[LeftOut]:
    """Return the rows of other kinds than labels, in a table in which each row says one thing about a span.

    Such a table has a column of kinds, such as `level`, `concept` and `remark`, and a column of values. The
    values are labels in all rows of some kinds, and in no row of the other kinds.
    """
    kind_columns = [column for column in table.columns if _is_column_of_kinds(table, column)]
    if not kind_columns:
        return []
    kind_column = kind_columns[0]
    for value_column in table.columns:
        other_kinds = _kinds_without_labels(table, kind_column, value_column, words)
        if other_kinds:
            rows = [row for row in table.rows if row.cells[kind_column].strip() in other_kinds]
            return [LeftOut(row, f"of {row.cells[kind_column].strip()!r}, not a label") for row in rows]
    return []


def _is_column_of_kinds(table: Table, column: str) -> bool:
    """Return whether a column names the kind of each row, such as `level` or `remark`, in a few words."""
    kinds = set(readable_cells(table, column))
    return 1 < len(kinds) <= MOST_KINDS and any(_means_labels(kind) for kind in kinds)


def _means_labels(kind: str) -> bool:
    """Return whether the name of a kind of rows is a word for levels or concepts."""
    return not {"level", "concepts"}.isdisjoint(meanings_of_heading(kind))


def _kinds_without_labels(table: Table, kind_column: str, value_column: str, words: LabelWords) -> set[str]:
    """Return the kinds whose rows have no label in the column of values.

    Empty if the column is no column of values: no kind has labels, or a kind has labels in some rows and
    other texts in others.
    """
    n_rows: Counter[str] = Counter()
    n_labels: Counter[str] = Counter()
    n_other_texts: Counter[str] = Counter()
    for row in table.rows:
        kind = row.cells[kind_column].strip()
        value = row.cells[value_column].strip()
        if not (kind and value):
            continue
        n_rows[kind] += 1
        if words.labels_of(value) is not None or words.level_of(value):
            n_labels[kind] += 1
        elif not words.is_no_concept(value):
            n_other_texts[kind] += 1
    without_labels = {kind for kind in n_rows if not n_labels[kind]}
    with_labels = n_rows.keys() - without_labels
    are_mixed = any(n_other_texts[kind] for kind in with_labels)
    if are_mixed or not with_labels:
        return set()
    return without_labels


def with_films_of_blocks(table: Table) -> Table:
    """Give each row without a film the film of the nearest row above that names one.

    This is done only if the table names each film once, above its rows (`_are_named_above_their_rows`).
    """
    columns = [name for name in FILM_COLUMNS if name in table.columns]
    rows = [row for row in table.rows if not row.is_empty]
    films = [_cells_naming_film(row, columns) for row in rows]
    n_filled = sum(not any(film) for film in films)
    if not n_filled or not any(films[0]) or not _are_named_above_their_rows(rows, films):
        return table
    filled_rows = []
    film_above = films[0]
    for row, film in zip(rows, films, strict=True):
        if any(film):
            film_above = film
        film_cells: dict[str, str] = dict(zip(columns, film_above, strict=True))
        filled_rows.append(Row(row.line, {**row.cells, **film_cells}))
    note = f"{counted(n_filled, 'row')} without a film taken as of the film above"
    return replace(table, rows=tuple(filled_rows), notes=(*table.notes, note))


def with_whole_names(table: Table) -> Table:
    """Remove the decimals of whole numbers that name films or annotators: 2.0 becomes 2.

    Programs add such decimals to a column of whole numbers that has an empty cell.
    """
    columns = [name for name in ("movie", "annotator") if name in table.columns]
    number_columns = [name for name in columns if whole_numbers(readable_cells(table, name)) is not None]
    if not number_columns:
        return table
    rows = []
    for row in table.rows:
        names: dict[str, str] = {name: without_zeros(row.cells[name]) for name in number_columns}
        rows.append(Row(row.line, {**row.cells, **names}))
    return replace(table, rows=tuple(rows))


def _cells_naming_film(row: Row, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the cells of a row that name its film, such as its title and its video."""
    return tuple(row.cells[column].strip() for column in columns)


def _are_named_above_their_rows(rows: Sequence[Row], films: Sequence[tuple[str, ...]]) -> bool:
    """Return whether a table names each film once, in the first of its rows.

    No film is named again in the next row that names one, and every row without a film has a start.

    Parameters
    ----------
    rows
        The rows of a table.
    films
        For each row the cells that name its film; they are empty if it names none.
    """
    named_films = [film for film in films if any(film)]
    if any(film == following for film, following in pairwise(named_films)):
        return False
    unnamed_rows = [row for row, film in zip(rows, films, strict=True) if not any(film)]
    return all(row.cells.get(TIMES[0], "").strip() for row in unnamed_rows)


# --- parts of rows
# ---------------------------------------------------------------------------
def _columns_of_times(table: Table, words: LabelWords) -> list[str]:
    """Return the columns of times: those with a manifest's names, and others whose cells are times."""
    columns = [name for name in (*TIMES, DURATION) if name in table.columns]
    for column in table.columns:
        cells = readable_cells(table, column)
        is_half_empty = 2 * len(cells) < len(table.rows)
        if column in columns or is_half_empty or is_of_marks(table, column, words):
            continue
        if are_times(cells) or are_ranges(cells):
            columns.append(column)
    return columns


def _columns_of_starts(time_columns: Sequence[str]) -> list[str]:
    """Return the column of starts among columns of times, or all of these if no heading tells which it is."""
    start, _ = TIMES
    if start in time_columns:
        return [start]
    headed_as_starts = [column for column in time_columns if start in meanings_of_heading(column)]
    if headed_as_starts:
        return headed_as_starts[:1]
    return list(time_columns)


def _columns_of_labels(table: Table, headings: Headings, words: LabelWords) -> list[str]:
    """Return the columns of labels: named so, or filled with labels or marks."""
    columns = []
    for column in table.columns:
        if column in {*TIMES, *FILM_COLUMNS, DURATION, "annotator"}:
            continue
        is_named = column in LABEL_COLUMNS or headings.are_of(column)
        has_labels = is_named or count_labels(readable_cells(table, column), words).are_labels
        if has_labels or is_of_marks(table, column, words):
            columns.append(column)
    return columns


def _has_time(row: Row, columns: Sequence[str]) -> bool:
    """Return whether a row has times in at least half of some columns."""
    if not columns:
        return False
    n_times = 0
    for column in columns:
        cell = row.cells[column].strip()
        if is_time(cell) or range_in(cell) is not None:
            n_times += 1
    return 2 * n_times >= len(columns)


def _has_doubtful_time(row: Row, columns: Sequence[str]) -> bool:
    """Return whether a row may have a mistyped time in some columns: a cell with a digit or an error."""
    for column in columns:
        cell = row.cells[column]
        has_digit = any(letter.isdigit() for letter in cell)
        if has_digit or is_unreadable(cell):
            return True
    return False


def _says_only_no(row: Row) -> bool:
    """Return whether all cells of a row that are not empty say no, as copied checkboxes do."""
    cells = _filled_cells(row)
    return len(cells) > 1 and all(plain(cell) in NO for cell in cells)


def _is_unreadable_row(row: Row, starts: Sequence[str]) -> bool:
    """Return whether all starts and film names of a row are errors of a spreadsheet, such as `#N/A`.

    A spreadsheet's formulas write such a row where they look up a span that is not there.

    Parameters
    ----------
    row
        Any row of a table.
    starts
        The table's columns of starts.
    """
    films = []
    for column in row.cells:
        is_headed_as_film = "movie" in meanings_of_heading(column)[:1]
        if is_headed_as_film or column in FILM_COLUMNS:
            films.append(column)
    if not starts or not films:
        return False
    cells = [row.cells[column].strip() for column in (*starts, *films)]
    return all(cell and is_unreadable(cell) for cell in cells)


def _has_label(row: Row, columns: Sequence[str], words: LabelWords) -> bool:
    """Return whether a row has a label in some columns, or a mark of yes in a column headed by a label."""
    for column in columns:
        cell = row.cells[column].strip()
        if not cell or is_unreadable(cell):
            continue
        is_mark = plain(cell) in YES and bool(label_of_heading(column, words))
        if is_mark or words.level_of(cell) or words.labels_of(cell) is not None:
            return True
    return False


def _has_cell(row: Row, columns: Sequence[str]) -> bool:
    """Return whether a row has a cell in some columns that is neither empty nor an error."""
    cells = [row.cells[column].strip() for column in columns]
    return any(cell and not is_unreadable(cell) for cell in cells)


def _filled_cells(row: Row) -> list[str]:
    """Return the cells of a row that are not empty."""
    return [cell.strip() for cell in row.cells.values() if cell.strip()]


def _is_sum(row: Row) -> bool:
    """Return whether a row is a sum of others: its first filled cell is a word for a sum, such as `Total`.

    In a row with few filled cells it may also begin with such a word, as in `Total of film 2`. A row with
    many cells that begins so is rather a clip.
    """
    filled = _filled_cells(row)
    first = plain(filled[0])
    if first.rstrip(" :.") in SUMS or first.startswith(("n =", "n=", "ø")):
        return True
    first_word, *_ = first.split(" ")
    has_few_cells = len(filled) <= 3 and 2 * len(filled) <= len(row.cells)
    return has_few_cells and first_word in SUMS
