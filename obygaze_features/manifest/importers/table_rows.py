"""Tell the rows of a person's table that are clips from those that are none: sums, legends, remarks."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Final, NamedTuple

from obygaze_features.cells import is_unreadable
from obygaze_features.identity import plain
from obygaze_features.manifest.importers.column_contents import (
    NO,
    are_ranges,
    are_times,
    count_labels,
    is_of_marks,
    is_time,
    label_of_heading,
    range_in,
    readable_cells,
    says_yes,
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
from obygaze_features.manifest.spans.names import without_zeros
from obygaze_features.manifest.text_tables import TIMES, Row, Table, counted

SUMS: Final = {
    "total", "totals", "sum", "mean", "average", "avg", "median", "sd", "std", "n", "count", "min", "max",
    "grand total", "total duration", "variance", "summe", "gesamt", "gesamtsumme", "gesamtdauer", "insgesamt",
    "mittelwert", "mittel", "durchschnitt", "anzahl", "standardabweichung", "varianz", "somme", "moyenne",
    "médiane", "total général", "durée totale", "écart type", "suma", "media", "promedio", "somma", "totale",
    "soma", "média", "σ", "∑", "subtotal", "sub total", "std dev", "std. dev", "stdev", "standard deviation",
    "zwischensumme", "teilsumme", "endsumme", "gesamtergebnis", "sous total", "sous-total", "total general",
    "total geral", "totale generale", "subtotale", "totaal", "subtotaal", "eindtotaal", "gemiddelde", "summa",
    "razem", "średnia", "celkem", "součet", "průměr", "toplam", "genel toplam", "ara toplam", "ortalama",
    "итого", "всего", "сумма", "среднее", "общий итог", "промежуточный итог", "σύνολο", "المجموع", "الإجمالي",
    "المتوسط", "合計", "小計", "総計", "平均", "合计", "小计", "总计", "总和", "平均值", "합계", "소계",
    "총계", "평균",
}  # fmt: skip
"""Words that people and programs write in front of a sum, as names are compared (`plain`)."""

LABELLED_SUMS: Final = {
    *SUMS, "mode", "modus", "modalwert", "modalité", "moda", "modo", "modaal", "мода", "最頻値", "众数",
    "최빈값", "majority", "majority vote", "mehrheit", "majorité", "mayoría", "maggioranza", "maioria",
}  # fmt: skip
"""Words in front of a row that sums labels up, which may have a label itself."""

EXAMPLES: Final = {
    "example", "e.g.", "eg", "beispiel", "z.b.", "musterzeile", "exemple", "p.ex.", "ejemplo", "p.ej.",
    "esempio", "p.es.", "exemplo", "voorbeeld", "bijv.", "przykład", "пример", "příklad", "örnek",
    "παράδειγμα", "مثال", "例", "例如", "示例", "예", "예시",
}  # fmt: skip
"""Words in front of a row that a template shows as an example of what to type."""

SUM_SIGNS: Final = ("n =", "n=", "ø")
"""Signs that begin a number of cases or a mean, with other text behind them: `n = 12`, `ø 3.4`."""

COMMENT_SIGNS: Final = ("#", "//")
"""Signs that programs and people write in front of a row that does not count."""

MAX_CELLS_OF_SUM: Final = 3
"""A row that begins with a word for a sum and goes on, such as `Total of film 2`, is a sum with at most so
many filled cells."""

MAX_KINDS: Final = 12
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
    """Leave out the rows of a table that are no clips: comments, sums, remarks, rows that cannot be read.

    Each step looks at the rows that the steps before it left: comments (`commented_out`), then sums, remarks
    and unreadable rows (`_rows_beside_clips`), then rows that say something else than a label
    (`_rows_of_other_kinds`).
    """
    comments = commented_out(table)
    table = _without_rows(table, comments)
    beside_clips = _rows_beside_clips(table, headings, words)
    table = _without_rows(table, beside_clips)
    of_other_kinds = _rows_of_other_kinds(table, words)
    table = _without_rows(table, of_other_kinds)
    return ClipRows(table, (*comments, *beside_clips, *of_other_kinds))


def _rows_beside_clips(table: Table, headings: Headings, words: LabelWords) -> list[LeftOut]:
    """Return the sums, remarks and unreadable rows that stand between and below the clips of a table.

    - Where some rows have a start, a row without one may be any of these (`_why_no_clip`).
    - Other rows may only be sums: a sum may have numbers in the place of times. Among the last rows, a row
      called like a sum is one if it has no label and other rows have labels. Further up, where a film may be
      called so, all other rows must have labels.
    """
    rows = [row for row in table.rows if not row.is_empty]
    # Sums do not count when the content of columns is told, as a sum may have numbers in all of them.
    rows_but_sums = tuple(row for row in rows if not _is_sum(row))
    columns = _columns_of_spans(replace(table, rows=rows_but_sums), headings, words)
    have_labels = [_has_label(row, columns.labels, words) for row in rows_but_sums]
    have_some_labels = any(have_labels)
    have_all_labels = have_some_labels and all(have_labels)

    have_start = [_has_time(row, columns.starts) for row in rows]
    indices_with_start = [index for index, has_start in enumerate(have_start) if has_start]
    first_of_last_rows = len(rows) - LAST_ROWS
    left_out = []
    for index, row in enumerate(rows):
        reason = ""
        if indices_with_start and not have_start[index]:
            reason = _why_no_clip(row, columns, is_after_last_clip=index > indices_with_start[-1])
        else:
            is_among_last = index >= first_of_last_rows
            may_be_sum = have_all_labels or (have_some_labels and is_among_last)
            if may_be_sum and _is_sum(row) and not _has_label(row, columns.labels, words):
                reason = "a sum"
        if reason:
            left_out.append(LeftOut(row, reason))
    return left_out


def commented_out(table: Table) -> list[LeftOut]:
    """Return the rows that somebody commented out, by a sign in front of their first cell: `# f` or `//f`.

    A blank follows the sign (`# Vertigo`), or another row has the same first cell without it (`#Vertigo` in a
    table with rows of `Vertigo`). Otherwise the sign may belong to a name, as of the film #Alive;
    `maybe_commented_out` returns such rows.
    """
    first_cells = {plain(_first_cell(row)) for row in table.rows}
    comments = []
    for row in _rows_with_comment_sign(table):
        text = _first_cell(row)
        text_without_sign = text.lstrip("#/")
        has_blank_after_sign = text_without_sign[:1].isspace()
        is_like_another_row = plain(text_without_sign) in first_cells
        if has_blank_after_sign or is_like_another_row:
            sign = text.removesuffix(text_without_sign)
            comments.append(LeftOut(row, f"commented out by {sign!r}"))
    return comments


def maybe_commented_out(table: Table) -> list[Row]:
    """Return the rows whose sign of comments may as well belong to a name, as in the film #Alive.

    They are the rows with such a sign but without the proof that they are comments (`commented_out`).
    """
    rows_of_comments = [comment.row for comment in commented_out(table)]
    ids_of_comments = set(map(id, rows_of_comments))  # of the rows themselves, as two may have equal cells
    return [row for row in _rows_with_comment_sign(table) if id(row) not in ids_of_comments]


def maybe_no_clips(table: Table) -> list[Row]:
    """Return the rows that are called like sums or like examples of templates, such as `Mode` or `Example`.

    A film may have such a name, so that the rows are read, and only noticed. A name that several rows have is
    a film's. A sum is one of the last rows, and not the first.
    """
    rows = [row for row in table.rows if not row.is_empty]
    names_of_rows = [_names_of_row(row) for row in rows]
    n_rows_of_name = Counter(chain.from_iterable(names_of_rows))
    first_of_last_rows = max(len(rows) - LAST_ROWS, 1)
    rows_to_notice = []
    for index, (row, names) in enumerate(zip(rows, names_of_rows, strict=True)):
        is_among_last = index >= first_of_last_rows
        for name in names:
            is_called_like_sum = name.rstrip(" :.") in LABELLED_SUMS
            may_be_no_clip = (is_called_like_sum and is_among_last) or _begins_as_example(name)
            if may_be_no_clip and n_rows_of_name[name] == 1:
                rows_to_notice.append(row)
                break
    return rows_to_notice


def _names_of_row(row: Row) -> set[str]:
    """Return the cells that may be a row's name: its first filled cell, and those of films."""
    names = {plain(cell) for column, cell in row.cells.items() if cell.strip() and _is_film_column(column)}
    filled_cells = _filled_cells(row)
    return names | {plain(filled_cells[0])}


def _begins_as_example(name: str) -> bool:
    """Return whether a name begins with a word for an example: `Example`, `e.g. Titanic`, `z. B. Titanic`."""
    words = name.replace("(", " ").replace(")", " ").replace(":", " ").split()
    first_word = "".join(words[:1])
    first_two_words = "".join(words[:2])  # of an abbreviation with a blank in it, as `z. B.`
    return first_word in EXAMPLES or first_two_words in EXAMPLES


def _rows_with_comment_sign(table: Table) -> list[Row]:
    """Return the rows whose first cell begins with a sign of comments, unless all rows begin with one.

    An error of a spreadsheet, such as `#N/A`, is no comment.
    """
    rows = [row for row in table.rows if _first_cell(row)]
    with_sign = []
    for row in rows:
        text = _first_cell(row)
        if text.startswith(COMMENT_SIGNS) and not is_unreadable(text):
            with_sign.append(row)
    return with_sign if len(with_sign) < len(rows) else []


def _first_cell(row: Row) -> str:
    """Return the cell of a row in the table's first column, without outer blanks."""
    return next(iter(row.cells.values()), "").strip()


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
    """Return why a row without a start is no clip, in a table of rows with starts; "" if it may be one.

    It is none if

    - all its cells say no, as checkboxes do that were copied down;
    - its times and its film are errors of a spreadsheet;
    - it is a sum;
    - it is a remark: it has neither a label nor a time, and is a single cell or comes after the last clip.
    """
    if _says_only_no(row):
        return "without times, and nothing but marks of no"
    if _is_unreadable_row(row, columns.starts):
        return "times and film cannot be read"
    if _is_sum(row):
        return "a sum"
    has_label_or_time = _has_cell(row, columns.labels) or _has_doubtful_time(row, columns.times)
    is_single_cell = len(_filled_cells(row)) == 1
    if (is_after_last_clip or is_single_cell) and not has_label_or_time:
        return "a remark, without times"
    return ""


def _without_rows(table: Table, left_out: Sequence[LeftOut]) -> Table:
    """Return a table without the rows that are left out, which are found by identity: others may be equal."""
    left_out_ids = {id(entry.row) for entry in left_out}
    rows = tuple(row for row in table.rows if id(row) not in left_out_ids)
    return replace(table, rows=rows)


def _rows_of_other_kinds(table: Table, words: LabelWords) -> list[LeftOut]:
    """Return the rows that say something else than a label, in a table with a column of kinds of rows.

    In such a table each row says one thing about a span. An example, in which the remark is returned:

    | Start | Kind   | Value            |
    | 12.0  | level  | HN               |
    | 12.0  | remark | hard to see here |

    The values are labels in all rows of some kinds, and in no row of the other kinds.
    """
    kind_columns = [column for column in table.columns if _is_column_of_kinds(table, column, words)]
    if not kind_columns:
        return []
    kind_column = kind_columns[0]
    for value_column in table.columns:
        other_kinds = _kinds_without_labels(table, kind_column, value_column, words)
        if not other_kinds:  # this is not the column of values
            continue
        left_out = []
        for row in table.rows:
            kind = row.cells[kind_column].strip()
            if kind in other_kinds:
                left_out.append(LeftOut(row, f"of {kind!r}, not a label"))
        return left_out
    return []


def _is_column_of_kinds(table: Table, column: str, words: LabelWords) -> bool:
    """Return whether a column names the kind of each row, such as `level` or `remark`, in a few words.

    One of the words must mean labels, as `level` does. But a column of which a cell is itself a label, such
    as S, has the labels of rows and not their kinds.
    """
    kinds = set(readable_cells(table, column))
    are_few_words = 1 < len(kinds) <= MAX_KINDS
    if not are_few_words or any(_is_label(kind, words) for kind in kinds):
        return False
    return any(_is_word_for_labels(kind) for kind in kinds)


def _is_word_for_labels(kind: str) -> bool:
    """Return whether the name of a kind of rows means levels or concepts, as `level` or `Konzept` does."""
    return not set(LABEL_COLUMNS).isdisjoint(meanings_of_heading(kind))


def _kinds_without_labels(table: Table, kind_column: str, value_column: str, words: LabelWords) -> set[str]:
    """Return the kinds of rows whose values are no labels, such as `remark`, in a table of kinds and values.

    Such a table has a row for each label or remark: one column names its kind, another has its value. The
    caller supposes that `value_column` has the values. That is so if the values of some kind are labels, and
    no kind has labels in some rows and other texts in others. If it is not so, the set is empty.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features.manifest import builtin_codebook
    >>> cells = [("level", "S"), ("remark", "dark"), ("level", "EN"), ("remark", "at night")]
    >>> rows = [Row(2, {"kind": kind, "value": value}) for kind, value in cells]
    >>> table = Table(Path("rows.csv"), ("kind", "value"), tuple(rows))
    >>> _kinds_without_labels(table, "kind", "value", LabelWords(builtin_codebook("obygaze12")))
    {'remark'}
    """
    kinds = set[str]()
    kinds_with_labels = set[str]()
    kinds_with_other_texts = set[str]()
    for row in table.rows:
        kind = row.cells[kind_column].strip()
        value = row.cells[value_column].strip()
        if not (kind and value):
            continue
        kinds.add(kind)
        says_no_concept = words.is_no_concept(value)  # such as `none`, which a kind of labels may have too
        if _is_label(value, words):
            kinds_with_labels.add(kind)
        elif not says_no_concept:
            kinds_with_other_texts.add(kind)

    mixed_kinds = kinds_with_labels & kinds_with_other_texts
    is_column_of_values = bool(kinds_with_labels) and not mixed_kinds
    return kinds - kinds_with_labels if is_column_of_values else set()


def _is_label(text: str, words: LabelWords) -> bool:
    """Return whether a text is a level, written as a word or a number, or names concepts."""
    return words.labels_of(text) is not None or bool(words.level_of(text))


def with_films_of_blocks(table: Table) -> Table:
    """Give each row without a film the film of the nearest row above that names one.

    This is done only if the table consists of blocks, the rows of one film each, of which the first row alone
    names the film (`_are_named_above_their_rows`).
    """
    columns = [name for name in FILM_COLUMNS if name in table.columns]
    rows = [row for row in table.rows if not row.is_empty]
    films = [_cells_naming_film(row, columns) for row in rows]  # of each row; all "" if it names none
    n_unnamed = sum(not any(film) for film in films)
    if n_unnamed == 0:
        return table
    begins_with_film = any(films[0])
    if not begins_with_film or not _are_named_above_their_rows(rows, films):
        return table

    filled_rows = []
    film_above = films[0]
    for row, film in zip(rows, films, strict=True):
        if any(film):
            film_above = film
        film_cells: dict[str, str] = dict(zip(columns, film_above, strict=True))
        filled_rows.append(Row(row.line, {**row.cells, **film_cells}))
    note = f"{counted(n_unnamed, 'row')} without a film taken as of the film above"
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
    """Return whether a table names each film once, in the first of its rows, so that it holds for the others.

    `films` are for each row the cells that name its film; they are empty if it names none.
    """
    # If Vertigo, "", Vertigo follow each other, the table names the film in every row, and the row between
    # them lacks it by mistake.
    named_films = [film for film in films if any(film)]
    is_film_repeated = any(film == next_film for film, next_film in pairwise(named_films))
    if is_film_repeated:
        return False
    # A row without a film and without a start may be a title or a remark.
    start_column, _ = TIMES
    for row, film in zip(rows, films, strict=True):
        names_film = any(film)
        has_start = row.cells.get(start_column, "").strip() != ""
        if not names_film and not has_start:
            return False
    return True


# --- parts of rows
# ---------------------------------------------------------------------------
def _columns_of_times(table: Table, words: LabelWords) -> list[str]:
    """Return the columns that hold times: those with a manifest's names, and others whose cells are times.

    Columns that are mostly empty, or that hold marks such as 1 and 0, do not count.
    """
    columns = [name for name in (*TIMES, DURATION) if name in table.columns]
    for column in table.columns:
        cells = readable_cells(table, column)
        is_mostly_empty = 2 * len(cells) < len(table.rows)
        if column in columns or is_mostly_empty or is_of_marks(table, column, words):
            continue
        if are_times(cells) or are_ranges(cells):
            columns.append(column)
    return columns


def _columns_of_starts(time_columns: Sequence[str]) -> list[str]:
    """Return the column of starts among columns of times, by its heading; all of them if no heading tells."""
    start, _ = TIMES
    if start in time_columns:
        return [start]
    for column in time_columns:
        if start in meanings_of_heading(column):
            return [column]
    return list(time_columns)


def _columns_of_labels(table: Table, headings: Headings, words: LabelWords) -> list[str]:
    """Return the columns that hold labels, in the order of the table.

    Of one of these kinds is each of them:

    - `level` or `concepts`, as a manifest names them;
    - a column whose heading the person's options name;
    - a column most of whose cells are labels, such as S;
    - a column headed by a label, such as Look, with marks for yes and no, such as `x` and `-`.
    """
    columns_of_other_meaning = {*TIMES, *FILM_COLUMNS, DURATION, "annotator"}
    columns = []
    for column in table.columns:
        if column in columns_of_other_meaning:
            continue
        is_named = column in LABEL_COLUMNS or headings.are_of(column)
        if (
            is_named
            or count_labels(readable_cells(table, column), words).are_labels
            or is_of_marks(table, column, words)
        ):
            columns.append(column)
    return columns


def _has_time(row: Row, columns: Sequence[str]) -> bool:
    """Return whether a row has times in at least half of some columns, which are those of starts."""
    if not columns:
        return False
    n_times = 0
    for column in columns:
        cell = row.cells[column].strip()
        if is_time(cell) or range_in(cell) is not None:
            n_times += 1
    return 2 * n_times >= len(columns)


def _has_doubtful_time(row: Row, columns: Sequence[str]) -> bool:
    """Return whether a row has a digit, or an error of a spreadsheet, in a column of times.

    Such a cell may be a mistyped time.
    """
    for column in columns:
        cell = row.cells[column]
        has_digit = any(letter.isdigit() for letter in cell)
        if has_digit or is_unreadable(cell):
            return True
    return False


def _says_only_no(row: Row) -> bool:
    """Return whether a row has several cells and all say no, as unchecked boxes do that were copied down."""
    cells = _filled_cells(row)
    return len(cells) > 1 and all(plain(cell) in NO for cell in cells)


def _is_unreadable_row(row: Row, starts: Sequence[str]) -> bool:
    """Return whether all starts and film names of a row are errors of a spreadsheet, such as `#N/A`.

    A spreadsheet's formulas write such a row where they look up a span that is not there.
    """
    film_columns = [column for column in row.cells if _is_film_column(column)]
    if not starts or not film_columns:
        return False
    cells = [row.cells[column].strip() for column in (*starts, *film_columns)]
    return all(cell and is_unreadable(cell) for cell in cells)


def _is_film_column(column: str) -> bool:
    """Return whether a heading is that of a film, or means one before anything else."""
    if column in FILM_COLUMNS:
        return True
    meanings = meanings_of_heading(column)  # the likeliest first
    return bool(meanings) and meanings[0] == "movie"


def _has_label(row: Row, columns: Sequence[str], words: LabelWords) -> bool:
    """Return whether a row has a label in some columns, or a mark of yes in a column headed by a label."""
    for column in columns:
        cell = row.cells[column].strip()
        if not cell or is_unreadable(cell):
            continue
        label_of_column = label_of_heading(column, words)
        is_mark = label_of_column != "" and says_yes(cell, label_of_column, words)
        if is_mark or _is_label(cell, words):
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
    many filled cells that begins with such a word is likely a clip.
    """
    filled_cells = _filled_cells(row)
    first_text = plain(filled_cells[0])
    if first_text.rstrip(" :.") in SUMS or first_text.startswith(SUM_SIGNS):
        return True
    first_word, *_ = first_text.split(" ")
    is_mostly_empty = 2 * len(filled_cells) <= len(row.cells)
    has_few_cells = len(filled_cells) <= MAX_CELLS_OF_SUM and is_mostly_empty
    return has_few_cells and first_word in SUMS
