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
    content_of,
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
    names_of_heading,
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
"""What people and programs write before a sum, as names are compared."""

MOST_KINDS: Final = 12
"""Kinds of what is said of spans, such as level, concept, remark: a column of more is of something else."""

LAST_ROWS: Final = 5
"""In which a sum stands that has numbers in place of times."""


class LeftOut(NamedTuple):
    """A row that is no clip, and what it is."""

    row: Row
    reason: str


class ClipRows(NamedTuple):
    """A table without the rows that are no clips, and those rows."""

    table: Table
    left_out: tuple[LeftOut, ...]


def clip_rows(table: Table, headings: Headings, words: LabelWords) -> ClipRows:
    """Leave out the rows of a table that are no clips: sums, and remarks between and below the others.

    A sum is left out where it has no start and others have one, and among the last rows where it has no label
    and others have some. A remark has no start and no label, and is one cell alone, or below the last clip.
    Of a row whose times and film cannot be read nothing is known but its labels; of one that says only no,
    nothing at all.
    """
    rows = [row for row in table.rows if not row.is_empty]
    body = replace(table, rows=tuple(row for row in rows if not _is_sum(row)))
    times = _columns_of_times(body, words)
    starts = _columns_of_starts(times)
    labels = _columns_of_labels(body, headings, words)
    timed = [at for at, row in enumerate(rows) if _has_time(row, starts)]
    last_timed = timed[-1] if timed else len(rows)
    have_labels = any(_has_label(row, labels, words) for row in body.rows)
    left_out = []
    for at, row in enumerate(rows):
        is_untimed = bool(timed) and not _has_time(row, starts)
        is_unlabelled = have_labels and not _has_label(row, labels, words)
        if is_untimed and _says_only_no(row):
            left_out.append(LeftOut(row, "without times, and nothing but marks of no"))
            continue
        if is_untimed and _is_unreadable_row(row, starts):
            left_out.append(LeftOut(row, "times and film cannot be read"))
            continue
        if _is_sum(row):
            if is_untimed or (is_unlabelled and at >= len(rows) - LAST_ROWS):
                left_out.append(LeftOut(row, "a sum"))
            continue
        is_bare = not _has_cell(row, labels) and not _has_doubtful_time(row, times)
        if is_untimed and is_bare and (at > last_timed or len(_filled(row)) == 1):
            left_out.append(LeftOut(row, "a remark, without times"))
    table = _without(table, left_out)
    others = _rows_of_other_kinds(table, words)
    return ClipRows(_without(table, others), (*left_out, *others))


def _without(table: Table, left_out: Sequence[LeftOut]) -> Table:
    gone = {id(entry.row) for entry in left_out}
    return replace(table, rows=tuple(row for row in table.rows if id(row) not in gone))


def _rows_of_other_kinds(table: Table, words: LabelWords) -> list[LeftOut]:
    """Return the rows whose kind never has a label, in a table in which each row says one thing of a span.

    Such a table has a column of kinds, some called as people head columns of levels or concepts, and a column
    of what is said: labels in all rows of some kinds, and in no row of others.
    """
    kinds = next((column for column in table.columns if _is_of_kinds(table, column)), "")
    for column in table.columns if kinds else ():
        others = _kinds_without_labels(table, kinds, column, words)
        if others:
            rows = [row for row in table.rows if row.cells[kinds].strip() in others]
            return [LeftOut(row, f"of {row.cells[kinds].strip()!r}, not a label") for row in rows]
    return []


def _is_of_kinds(table: Table, column: str) -> bool:
    """Return whether a column says of each row of what kind it is: of labels, or of something else."""
    kinds = set(readable_cells(table, column))
    return 1 < len(kinds) <= MOST_KINDS and any(map(_is_of_labels, kinds))


def _is_of_labels(kind: str) -> bool:
    """Return whether a kind is called as people head columns of levels or concepts."""
    return not {"level", "concepts"}.isdisjoint(names_of_heading(kind))


def _kinds_without_labels(table: Table, kinds: str, column: str, words: LabelWords) -> set[str]:
    """Return the kinds of rows that have no label in a column; none where it does not divide kinds so."""
    n_rows: Counter[str] = Counter()
    n_labels: Counter[str] = Counter()
    n_read: Counter[str] = Counter()
    for row in table.rows:
        kind, cell = row.cells[kinds].strip(), row.cells[column].strip()
        if kind and cell:
            n_rows[kind] += 1
            is_label = words.labels_of(cell) is not None or bool(words.level_of(cell))
            n_labels[kind] += is_label
            n_read[kind] += is_label or words.is_no_concept(cell)
    without = {kind for kind in n_rows if not n_labels[kind]}
    are_whole = all(n_read[kind] == n_rows[kind] for kind in n_rows if kind not in without)
    return without if are_whole and len(without) < len(n_rows) else set()


def with_films_of_blocks(table: Table) -> Table:
    """Give rows without a film the film above them, where a table names each film once, above its rows.

    Only where no film is named in two rows that follow each other, and every row without a film has a time.
    """
    columns = [name for name in FILM_COLUMNS if name in table.columns]
    rows = [row for row in table.rows if not row.is_empty]
    films = [_films(row, columns) for row in rows]
    n_filled = sum(not any(film) for film in films)
    if not n_filled or not any(films[0]) or not _are_blocks(rows, films):
        return table
    filled_rows = []
    above = films[0]
    for row, film in zip(rows, films, strict=True):
        above = film if any(film) else above
        cells: dict[str, str] = dict(zip(columns, above, strict=True))
        filled_rows.append(Row(row.line, {**row.cells, **cells}))
    note = f"{counted(n_filled, 'row')} without a film taken as of the film above"
    return replace(table, rows=tuple(filled_rows), notes=(*table.notes, note))


def with_whole_names(table: Table) -> Table:
    """Write numbers that name films or annotators without decimals, as 2.0 beside an empty cell is 2."""
    columns = [name for name in ("movie", "annotator") if name in table.columns]
    whole = [name for name in columns if whole_numbers(readable_cells(table, name)) is not None]
    if not whole:
        return table
    rows = []
    for row in table.rows:
        names: dict[str, str] = {name: without_zeros(row.cells[name]) for name in whole}
        rows.append(Row(row.line, {**row.cells, **names}))
    return replace(table, rows=tuple(rows))


def _films(row: Row, columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(row.cells[column].strip() for column in columns)


def _are_blocks(rows: Sequence[Row], films: Sequence[tuple[str, ...]]) -> bool:
    """Return whether films are named once each, above their rows, and rows without one have a time."""
    named = [film for film in films if any(film)]
    are_apart = all(film != following for film, following in pairwise(named))
    return are_apart and all(
        any(film) or row.cells.get(TIMES[0], "").strip() for row, film in zip(rows, films, strict=True)
    )


# --- parts of rows
# ---------------------------------------------------------------------------
def _columns_of_times(table: Table, words: LabelWords) -> list[str]:
    """Return the columns of times: those that are named, and others whose cells are times."""
    columns = [name for name in (*TIMES, DURATION) if name in table.columns]
    for column in table.columns:
        cells = readable_cells(table, column)
        is_filled = 2 * len(cells) >= len(table.rows) and not is_of_marks(table, column, words)
        if column not in columns and is_filled and (are_times(cells) or are_ranges(cells)):
            columns.append(column)
    return columns


def _columns_of_starts(columns: Sequence[str]) -> list[str]:
    """Return which of some columns of times is of starts: by its name or heading; else all that can be."""
    named = [column for column in columns if column == TIMES[0]]
    headed = [column for column in columns if TIMES[0] in names_of_heading(column)]
    return named or headed[:1] or list(columns)


def _columns_of_labels(table: Table, headings: Headings, words: LabelWords) -> list[str]:
    """Return the columns that a person names for labels, that are ours, or whose cells are labels."""
    columns = []
    for column in table.columns:
        if column in {*TIMES, *FILM_COLUMNS, DURATION, "annotator"}:
            continue
        is_named = column in LABEL_COLUMNS or headings.are_of(column)
        if (
            is_named
            or content_of(readable_cells(table, column), words).are_labels
            or is_of_marks(table, column, words)
        ):
            columns.append(column)
    return columns


def _has_time(row: Row, columns: Sequence[str]) -> bool:
    """Return whether half of some columns hold times in a row."""
    cells = [row.cells[column].strip() for column in columns]
    n_times = sum(is_time(cell) or range_in(cell) is not None for cell in cells)
    return bool(columns) and 2 * n_times >= len(columns)


def _has_doubtful_time(row: Row, columns: Sequence[str]) -> bool:
    """Return whether a row has a time, what may be a mistyped one, or a cell that cannot be read."""
    cells = [row.cells[column] for column in columns]
    return any(is_unreadable(cell) or any(map(str.isdigit, cell)) for cell in cells)


def _says_only_no(row: Row) -> bool:
    """Return whether all cells of a row that are not empty say no, as copied checkboxes do."""
    cells = _filled(row)
    return len(cells) > 1 and all(plain(cell) in NO for cell in cells)


def _is_unreadable_row(row: Row, starts: Sequence[str]) -> bool:
    """Return whether the starts and the film of a row cannot be read: it looks up what is not there."""
    films = [name for name in row.cells if "movie" in names_of_heading(name)[:1] or name in FILM_COLUMNS]
    cells = [row.cells[name].strip() for name in (*starts, *films)]
    return bool(starts) and bool(films) and all(cell and is_unreadable(cell) for cell in cells)


def _has_label(row: Row, columns: Sequence[str], words: LabelWords) -> bool:
    """Return whether a row has a label in some columns, or a mark in one that is headed by a label."""
    for column in columns:
        cell = row.cells[column].strip()
        if not cell or is_unreadable(cell):
            continue
        is_mark = bool(label_of_heading(column, words)) and plain(cell) in YES
        if is_mark or words.level_of(cell) or words.labels_of(cell) is not None:
            return True
    return False


def _has_cell(row: Row, columns: Sequence[str]) -> bool:
    """Return whether any of some columns holds something in a row, other than an error."""
    cells = [row.cells[column].strip() for column in columns]
    return any(cell and not is_unreadable(cell) for cell in cells)


def _filled(row: Row) -> list[str]:
    return [cell.strip() for cell in row.cells.values() if cell.strip()]


def _is_sum(row: Row) -> bool:
    """Return whether the first cell of a row that is not empty begins a sum."""
    filled = _filled(row)
    first = plain(filled[0])
    is_short = len(filled) <= 3 and 2 * len(filled) < len(row.cells) + 1
    is_named = first.rstrip(" :.") in SUMS or (is_short and first.partition(" ")[0] in SUMS)
    return is_named or first.startswith(("n =", "n=", "ø"))
