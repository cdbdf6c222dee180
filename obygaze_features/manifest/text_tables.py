"""Read tables and lists of texts from text files; errors name the line and column."""

import gc
import hashlib
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from obygaze_features.arguments import checked
from obygaze_features.cells import is_unreadable
from obygaze_features.errors import ManifestError
from obygaze_features.identity import plain
from obygaze_features.io import local_path
from obygaze_features.lines import csv_line
from obygaze_features.manifest.spans.instant import instants, pointed
from obygaze_features.manifest.spans.names import find_film
from obygaze_features.text import as_written, composed, first_few, number_of, shortened, unsuitable
from obygaze_features.text import counted as number_with_noun
from obygaze_features.text_records import decoded_text, header_row, read_records
from obygaze_features.untrusted import read_bytes
from obygaze_features.workbook import Records

FIELDS: tuple[str, ...] = ("clip_id", "movie", "video", "start_s", "end_s", "level", "concepts", "annotator")
"""The columns that every manifest has, in order; extras follow."""

CODEBOOK_COLUMN = "codebook"
"""The column after FIELDS that names the codebook, where it is not the default one."""

DEFINITION = "definition"
"""Extra column: digest of the definitions that a label was given under (`Codebook.definition`)."""

SEEN_SCORE = "seen_score"
"""Extra column: 1 where the annotator saw the model's score, 0 where not."""

PLANTED = "planted"
"""The annotator of labels that a program planted, as those of the demo: nobody judged them."""

OUR_COLUMNS = (*FIELDS, CODEBOOK_COLUMN, SEEN_SCORE)
"""The columns of a manifest that mean the same in every one."""

TEXT_COLUMNS = (("text_id", "text"), ("caption_id", "caption"))
"""The pairs of columns that a table of texts may have; what else it has is for others."""

LINE_DIGITS = 6
"""Digits of a line's number, so that ids stay the same when lines are added below."""

LARGEST = 1e30
"""Of a table's numbers: squares of larger ones have no place in what is computed of them."""

SHOWN_PROBLEMS = 3
MAX_SHOWN = 40
"""Columns of a table that a message lists; of more it says how many there are."""

CANNOT_BE_READ = (
    "cannot be read: an error of a spreadsheet, or a formula that no spreadsheet has computed; mend it there "
    "(open and save the file), or leave the cell empty where there is no value"
)
P = ParamSpec("P")
T = TypeVar("T")


SLACK_S = 0.01
"""Times of a clip that differ by no more are equal: tables may have rounded them."""

TIMES = ("start_s", "end_s")
"""Columns of times, in every table of ours."""

_HEADINGS_OF_SCENES = {"start time (seconds)": "start s", "end time (seconds)": "end s"}
"""Headings of PySceneDetect's lists of scenes -> ours, as `plain` writes them."""


class CellsWarning(UserWarning):
    """Cells or sheets of a workbook are read otherwise than people see them, or not at all."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record: the line it starts on (from 1) and its cells by column."""

    line: int
    cells: Mapping[str, str]

    @property
    def is_empty(self) -> bool:
        """Whether every cell is empty, or blank."""
        return not any(cell.strip() for cell in self.cells.values())

    def number(self, column: str, path: Path) -> float:
        """Read the cell of a column as a finite number; NaN if it is empty.

        Parameters
        ----------
        column
            The column.
        path
            The table's file, for the message.

        Raises
        ------
        ManifestError
            The cell is no number, or one beyond 1e30.
        """
        text = self.cells[column].strip()
        number = number_of(text)  # NaN for a text that is no number, and for an empty one
        is_in_range = abs(number) <= LARGEST  # False for NaN
        if text and not is_in_range:
            raise ManifestError(
                f"{path}: line {self.line}, column {column}: {text!r} is no number up to {LARGEST:g}; leave "
                "the column out"
            )
        return number

    def as_written(self) -> "Row":
        """Return the row without the apostrophes that keep a spreadsheet from running cells as formulas."""
        has_apostrophe = "'" in "".join((*self.cells, *self.cells.values()))
        if not has_apostrophe:  # as most rows of a large table
            return self
        return Row(self.line, {as_written(name): as_written(cell) for name, cell in self.cells.items()})


@dataclass(frozen=True)
class Table:
    """The columns and rows of a table file.

    Attributes
    ----------
    path
        The file.
    columns
        The headings, in the order of the file.
    rows
        The rows below the header.
    delimiter
        The sign between cells; "" for a workbook.
    notes
        What was left out of the file or changed, for people.
    read
        Columns that are read besides those of a manifest. A spreadsheet's error in one of them is refused.
    """

    path: Path
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    delimiter: str = ","
    notes: tuple[str, ...] = ()
    read: frozenset[str] = frozenset()

    @cached_property
    def problems(self) -> "Problems":
        """The problems of the rows so far; `checked` and `timed` raise them after the last row."""
        return Problems(self.path)

    def checked(self) -> Iterator[Row]:
        """Yield the rows that are not empty and can be read; then raise the table's problems, if any."""
        yield from self._readable_rows(self.rows)
        self.problems.refuse()

    def _readable_rows(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows that are not empty and have no error of a spreadsheet in a column that is read.

        An error, such as #N/A, in a column that is read is added to the table's problems, which the caller
        raises after the last row. In other columns it does not matter.
        """
        columns_read = [name for name in self.columns if name in self.read or name in OUR_COLUMNS]
        readable_rows = []
        for row in rows:
            if row.is_empty:
                continue

            text = "".join(row.cells.values())
            may_have_error = "#" in text or "Err:" in text  # such as #N/A or Err:502
            if not may_have_error:  # as most rows of a large table
                readable_rows.append(row)
                continue

            columns_with_error = [name for name in columns_read if is_unreadable(row.cells[name])]
            for name in columns_with_error:
                self.problems.add(row.line, f"{row.cells[name].strip()!r} {CANNOT_BE_READ}", name)
            if not columns_with_error:
                readable_rows.append(row)
        return readable_rows

    def timed(self, *, rate: Fraction | None = None, verbatim: bool = False) -> Iterator[Row]:
        """Yield the rows that are not empty, with times in seconds; then raise the table's problems, if any.

        A row with a time that cannot be read is not yielded, and is a problem. If semicolons or tabs separate
        the cells, the decimal sign may be a comma.

        Parameters
        ----------
        rate
            Frames per second of times that end in frames.
        verbatim
            Whether to keep an apostrophe before a cell, which spreadsheets write to mark a text.
        """
        rows = self._readable_rows(self.rows)
        if not verbatim:
            rows = [row.as_written() for row in rows]
        start_column, end_column = TIMES
        starts = [row.cells[start_column] for row in rows]
        ends = [row.cells[end_column] for row in rows]

        decimal_sign = "" if self._may_have_commas else "."
        with error_context(f"{self.path}: column {' or '.join(TIMES)}"):
            # In one call, as starts and ends together tell the decimal sign.
            times = instants([*starts, *ends], decimal_sign, rate, n_columns=2)
        start_times = times[: len(rows)]
        end_times = times[len(rows) :]

        for row, start, end in zip(rows, start_times, end_times, strict=True):
            timed_row = self._with_times(row, start, end)
            if timed_row is not None:
                yield timed_row
        self.problems.refuse()

    def _with_times(
        self, row: Row, start: float | ManifestError | None, end: float | ManifestError | None
    ) -> Row | None:
        """Return a row with its times in seconds; None, and a problem, if one of them cannot be read.

        `start` and `end` are the times, None for an empty cell, or the error of a cell that cannot be read.
        """
        cells = dict(row.cells)
        can_be_read = True
        for name, time in zip(TIMES, (start, end), strict=True):
            if isinstance(time, ManifestError):
                can_be_read = False
                is_word = row.cells[name].isalpha()  # such as R's NA
                remedy = ": leave the cell empty where there is none" if is_word else ""
                self.problems.add(row.line, f"{time}{remedy}", name)
            elif time is None:
                cells[name] = ""
            else:
                cells[name] = repr(time + 0.0)  # adding 0 makes 0.0 of -0.0
        return Row(row.line, cells) if can_be_read else None

    @property
    def _may_have_commas(self) -> bool:
        """Whether numbers may have a decimal comma: only if semicolons or tabs separate the cells."""
        return self.delimiter in {";", "\t"}

    def numbers(self, names: Sequence[str], clips: Iterable[Any] = ()) -> dict[str, list[float]]:
        """Read columns of numbers, with a row for each clip.

        Parameters
        ----------
        names
            The columns of numbers.
        clips
            The clips that the rows should be of. A row's movie and times, if it has them, must agree with its
            clip.

        Returns
        -------
        dict
            Clip id -> its number in each of `names`, [n_names]; NaN for an empty cell.

        Raises
        ------
        ManifestError
            A clip has two rows, a cell is no number, or a row has another movie or other times than its clip.
        """
        with_decimal_points = self.pointed(names)
        # Either yields the rows that can be read, and raises the problems of the others at the end. Times, if
        # the table has them, are compared with those of the clips in seconds.
        has_times = set(TIMES) <= set(self.columns)
        if has_times:
            rows = with_decimal_points.timed()
            columns_to_compare: tuple[str, ...] = ("movie", *TIMES)
        else:
            rows = with_decimal_points.checked()
            columns_to_compare = ("movie",)

        clip_of_id = {clip.clip_id: clip for clip in clips}
        numbers_of_clip: dict[str, list[float]] = {}
        for row in rows:
            clip_id = composed(row.cells["clip_id"].strip())
            if clip_id in numbers_of_clip:
                raise ManifestError(f"{self.path}: line {row.line}: clip {clip_id} has a row already")
            if clip_id in clip_of_id:
                self._refuse_row_of_other_span(row, clip_of_id[clip_id], columns_to_compare)
            numbers_of_clip[clip_id] = [row.number(name, self.path) for name in names]
        return numbers_of_clip

    def _refuse_row_of_other_span(self, row: Row, clip: Any, columns: Sequence[str]) -> None:
        """Refuse a row whose movie or times differ from those of `clip`, the clip with the row's id.

        Of the `columns` to compare, an empty cell, or a value that the clip does not have, is not compared.
        """
        for name in columns:
            cell = row.cells.get(name, "").strip()
            value = getattr(clip, name)
            if cell and value is not None and not _agrees(cell, value):
                raise ManifestError(
                    f"{self.path}: line {row.line}, column {name}: {cell}, and clip {clip.clip_id} has "
                    f"{value}: measure the clips themselves (obygaze film variables --windows)"
                )

    def pointed(self, names: Sequence[str]) -> "Table":
        """Return the table with decimal points in place of decimal commas in columns of numbers.

        There can be decimal commas only if semicolons or tabs separate the cells. The cells of each column
        together show which sign is its decimal sign.

        Parameters
        ----------
        names
            The columns of numbers.

        Raises
        ------
        ManifestError
            A column uses both points and commas as decimal signs, or its numbers may be read with either.
        """
        if not self._may_have_commas:
            return self

        cells_of_rows = [dict(row.cells) for row in self.rows]
        for name in names:
            column = [cells[name] for cells in cells_of_rows]
            with error_context(f"{self.path}: column {name}"):
                numbers = pointed(column)
            for cells, number in zip(cells_of_rows, numbers, strict=True):
                cells[name] = number

        rows = []
        for row, cells in zip(self.rows, cells_of_rows, strict=True):
            rows.append(Row(row.line, cells))
        return replace(self, rows=tuple(rows))

    def as_csv(self, texts: Collection[str]) -> str:
        """Write the table as CSV; numbers get decimal points, except in the columns `texts`."""
        number_columns = [name for name in self.columns if name not in texts]
        rows = self.pointed(number_columns).rows
        lines = [csv_line(tuple(row.cells.values())) for row in rows]
        return "".join([csv_line(self.columns), *lines])


def _agrees(cell: str, value: str | float) -> bool:
    """Return whether a cell agrees with a clip: the same film, however spelled; a time within 10 ms."""
    if isinstance(value, str):
        return bool(find_film(cell, [value]))
    return abs(float(cell) - value) <= SLACK_S


@contextmanager
def error_context(location: object, remedy: str = "") -> Iterator[None]:
    """Raise a ManifestError of the block again, with a place in front of its message and a remedy behind.

    `remedy` is text for the end of the message, with its separator.
    """
    try:
        yield
    except ManifestError as error:
        raise ManifestError(f"{location}: {shortened(str(error))}{remedy}", error.column) from None


class Problems:
    """Collect the problems of a file; the error names the first few and counts the rest."""

    def __init__(self, path: Path) -> None:
        """Start with no problem; `path` is the file that they are of."""
        self.path = path
        self.messages: list[str] = []  # one for each problem so far

    def add(self, line: int, message: str, column: str = "") -> None:
        """Add a problem, which `refuse` raises with the others.

        Parameters
        ----------
        line
            The line of the file.
        message
            What is wrong.
        column
            The column; "" for a problem of the whole line.
        """
        location = f"line {line}, column {column}" if column else f"line {line}"
        self.messages.append(f"{location}: {shortened(message)}")

    def attempt(
        self, line: int, column: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        """Return what `read` returns; if it raises a ManifestError, add that as a problem and return None.

        If `column` is empty, the problem is of the column that the error names.
        """
        try:
            return read(*args, **kwargs)
        except ManifestError as error:
            self.add(line, str(error), column or error.column)
            return None

    def refuse(self) -> None:
        """Raise a ManifestError if there are problems: with the first few, and the number of the others."""
        if not self.messages:
            return
        shown = "; ".join(self.messages[:SHOWN_PROBLEMS])
        n_hidden = len(self.messages) - SHOWN_PROBLEMS
        remainder = f"; and {counted(n_hidden, 'more problem')}" if n_hidden > 0 else ""
        raise ManifestError(f"{self.path}: {shown}{remainder}")


@checked
def read_table(path: Path, needed: Sequence[str], *, any_of: Sequence[str] = (), **how: Any) -> Table:
    """Read a table with a header: a text file in UTF-8 or UTF-16, or a sheet of a workbook (.xlsx).

    What spreadsheets add is skipped: a line `sep=;`, title rows above the header, empty columns, and empty
    cells at the right. A `CellsWarning` tells of cells that a spreadsheet shows differently.

    Parameters
    ----------
    path
        The file.
    needed
        Columns that must be there.
    any_of
        One of these must be there too.
    how
        Further arguments of `table_of`.

    Raises
    ------
    ManifestError
        If the file is a folder, empty, not UTF-8, holds a quote never closed, lacks a column,
        names one twice, or has a row of another length; with the line.
    """
    path = local_path(path)
    content = content_of(path)
    try:
        records, delimiter, notes = read_records(path, content, ManifestError, header_test(needed, any_of))
    except ManifestError as error:
        advice = how.get("advice")
        raise ManifestError(f"{error}; or {advice}" if advice else str(error)) from None
    for note in notes:
        warnings.warn(f"{path}: {note}", CellsWarning, stacklevel=2)
    return table_of(path, records, delimiter, needed, any_of=any_of, **how)


def table_of(
    path: Path,
    records: Records,
    delimiter: str,
    needed: Sequence[str],
    *,
    known: Iterable[str] = (),
    any_of: Sequence[str] = (),
    named: bool = True,
    advice: str = "",
    is_header: Callable[[Sequence[str]], bool] | None = None,
) -> Table:
    """Make a table of the records into which a file was split.

    Parameters
    ----------
    path
        The file, for messages.
    records
        Line and cells of each row, with rows of titles above the header.
    delimiter
        What stood between the cells.
    needed
        Columns that must be there.
    known
        Further names of columns. A heading that differs from one only in case or blanks is replaced by it.
    any_of
        One of these columns must be there too.
    named
        Whether to refuse a column without a name.
    advice
        What to do where a column is missing, for the message.
    is_header
        Test whether the cells of a row are the header; by default, whether they name all needed columns.
    """
    if not records:
        raise ManifestError(f"{path}: nothing but empty lines; a header and rows were expected")

    # 1. The header: below rows of titles, with known names in the spelling that we know.
    n_above_header = header_row(records, is_header or header_test(needed, any_of))
    header_line, header = records[n_above_header]
    body = records[n_above_header + 1 :]
    location = f"{path}: line {header_line}"
    written_headings = [_in_one_line(cell) for cell in header]
    is_table_of_clips = set(TIMES) <= set(needed)
    names_of_manifest = FIELDS if is_table_of_clips else ()
    headings = _known_headings(written_headings, (*known, *names_of_manifest, *needed, *any_of))

    # 2. The columns: without empty ones and without the index of a data frame.
    left_out = _empty_columns(headings, body) | _index_columns(headings, body)
    columns = _cells_left(headings, left_out)
    missing = _missing_columns(columns, needed, any_of)
    if missing:
        filled_headings = [heading for heading in written_headings if heading]
        problem = f"no column {', '.join(missing)}; found {first_few(filled_headings, MAX_SHOWN)}"
        raise ManifestError(f"{location}: {problem}; {advice}" if advice else f"{location}: {problem}")
    _refuse_bad_names(columns, location, named=named)

    # 3. The rows, and which columns a caller reads: a spreadsheet's error in one of them is refused.
    rows = _rows_of_records(path, body, columns, left_out)
    notes = []
    if n_above_header:
        notes.append(f"{counted(n_above_header, 'row')} above the header left out")
    read_columns = frozenset((*needed, *any_of))
    return Table(path, tuple(columns), tuple(rows), delimiter, tuple(notes), read_columns)


def _missing_columns(columns: Sequence[str], needed: Iterable[str], any_of: Sequence[str]) -> list[str]:
    """Return the needed columns that are missing, and `A or B` if all columns of `any_of` are missing."""
    missing = [column for column in needed if column not in columns]
    if any_of and set(any_of).isdisjoint(columns):
        missing.append(" or ".join(any_of))
    return missing


def _in_one_line(heading: str) -> str:
    """Return a heading in one line, as spreadsheets may break it; other headings stay as they are."""
    return " ".join(heading.split()) if unsuitable(heading) else heading


def _known_headings(headings: Iterable[str], names: Iterable[str]) -> list[str]:
    """Replace the headings that differ from a known name only in case or blanks by that name."""
    name_of_spelling = {plain(name): name for name in names}
    return [name_of_spelling.get(heading_name(heading), heading) for heading in headings]


def _cells_left(cells: list[str], left_out: Collection[int]) -> list[str]:
    """Return the cells of a row without those whose index (from 0) is in `left_out`."""
    if not left_out:
        return cells  # not a copy, as a large table has many rows
    return [cell for n, cell in enumerate(cells) if n not in left_out]


def _rows_of_records(
    path: Path, records: Records, columns: Sequence[str], left_out: Collection[int]
) -> list[Row]:
    """Make a row of each record below the header; refuse records with more or fewer cells than columns.

    Empty cells at the end beyond the header do not count. `left_out` are the columns that are not kept,
    counted from 0.
    """
    problems = Problems(path)
    rows = []
    for line, cells in records:
        kept_cells = _without_blanks_at_end(_cells_left(cells, left_out), len(columns))
        if len(kept_cells) == len(columns):
            rows.append(Row(line, dict(zip(columns, kept_cells, strict=True))))
        else:
            problems.add(line, f"{len(kept_cells)} cells where the header has {len(columns)}")
    problems.refuse()
    return rows


def _without_blanks_at_end(cells: list[str], width: int) -> list[str]:
    """Return a row without the blank cells at its end that are beyond a number of cells."""
    n_cells = len(cells)
    while n_cells > width and not cells[n_cells - 1].strip():
        n_cells -= 1
    if n_cells == len(cells):
        return cells  # not a copy, as a large table has many rows
    return cells[:n_cells]


@contextmanager
def without_gc() -> Iterator[None]:
    """Switch garbage collection off in a block that makes many objects, which it would scan repeatedly."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def header_test(needed: Iterable[str], any_of: Iterable[str] = ()) -> Callable[[Sequence[str]], bool]:
    """Return a function that tells whether the cells of a row are a header with certain names.

    One of `any_of` must be there too, unless it is empty.
    """
    needed_names = {plain(name) for name in needed}
    other_names = {plain(name) for name in any_of}

    def is_header(cells: Sequence[str]) -> bool:
        names = {heading_name(cell) for cell in cells}
        has_other = not other_names or not other_names.isdisjoint(names)
        return needed_names <= names and has_other

    return is_header


def _refuse_bad_names(columns: Sequence[str], location: str, *, named: bool) -> None:
    """Refuse a header with a repeated name; if `named` is true, also one in which a name is missing.

    `location` is the file and the line of the header, for the message.
    """
    names_before = set[str]()
    for number, column in enumerate(columns, start=1):
        if named and not column:
            raise ManifestError(
                f"{location}: column {number} has no name (a data frame's index? write it without)"
            )
        if column in names_before:
            raise ManifestError(f"{location}: column {repr(column) if column else number} is there twice")
        names_before.add(column)


def _empty_columns(headings: Sequence[str], body: Records) -> set[int]:
    """Return the columns, counted from 0, that have neither a heading nor a cell in any record."""
    without_heading = {column for column, heading in enumerate(headings) if not heading}
    if not without_heading:
        return set()
    filled = set[int]()
    # The cells are gone through, not the headings: a header may be much longer than the rows below it.
    for _, cells in body:
        filled.update(column for column, cell in enumerate(cells) if cell)
    return without_heading - filled


def _index_columns(headings: Sequence[str], body: Records) -> set[int]:
    """Return the columns, counted from 0, that hold only a data frame's index.

    Such a column is of different whole numbers. It is the first one and has no heading, or it has a heading
    that pandas makes when it reads an index, such as `Unnamed: 0`.
    """
    candidates = {column for column, heading in enumerate(headings) if heading.startswith("Unnamed: ")}
    if headings and not headings[0]:
        candidates.add(0)
    if not candidates:
        return set()
    rows = [cells for _, cells in body if any(cells)]  # rows without any text do not count
    length_of_shortest_row = min(map(len, rows), default=len(headings))
    index_columns = set[int]()
    for column in candidates:
        is_in_every_row = column < length_of_shortest_row
        if is_in_every_row and _is_index([cells[column] for cells in rows]):
            index_columns.add(column)
    return index_columns


def _is_index(cells: Sequence[str]) -> bool:
    """Return whether the cells of a column are whole numbers that all differ."""
    all_differ = len(set(cells)) == len(cells)
    return all_differ and all(map(str.isdecimal, cells))


def heading_name(cell: str) -> str:
    """Return the form in which headings are compared: `plain`, with PySceneDetect's times named as ours."""
    name = plain(cell)
    return _HEADINGS_OF_SCENES.get(name, name)


@checked
def counted(number: int, singular: str, many: str = "") -> str:
    """Write a number with its noun: `1 clip`, `2 clips`; `many` is a plural that does not end in s alone."""
    return number_with_noun(number, singular, many)


def content_of(path: Path) -> bytes:
    """Read the bytes of a file; refuse a folder, an empty file, and the lock file of an open spreadsheet."""
    if path.is_dir():
        raise ManifestError(f"{path}: is a folder, and a file was expected")
    if path.name.startswith(("~$", ".~lock.")):
        raise ManifestError(f"{path}: says only that a spreadsheet is open: give the spreadsheet itself")
    content = read_bytes(path)
    if not content:
        raise ManifestError(f"{path}: the file is empty (0 bytes)")
    return content


def text_of(path: Path) -> str:
    """Read a text file: UTF-8, or UTF-16 or 32 with their marks; a ManifestError names what is wrong."""
    return decoded_text(path, content_of(path), ManifestError)


@dataclass(frozen=True)
class TextList:
    """Texts in the order of their file.

    Attributes
    ----------
    rows
        (text id, text); ids are unique, texts need not be.
    """

    rows: tuple[tuple[str, str], ...]

    def digest(self) -> str:
        """Hash the rows as a CSV table of text_id and text, independent of the file's format: SHA-256."""
        lines = [csv_line(row) for row in (TEXT_COLUMNS[0], *self.rows)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()


@checked
def read_texts(path: str | Path) -> TextList:
    """Read a list of texts.

    Parameters
    ----------
    path
        A `.txt` with one text per line, whose ids are the line numbers (`000001`), or a CSV with the columns
        `text_id` and `text`, or `caption_id` and `caption`.

    Raises
    ------
    ManifestError
        Naming file and line: not UTF-8, no such columns, an empty id or text, an id that is there twice, a
        spreadsheet's error in a cell, or a control or bidirectional character.
    """
    path = local_path(path)
    is_of_lines = path.suffix.lower() == ".txt"
    texts = _text_lines(path) if is_of_lines else _text_cells(path)

    problems = Problems(path)
    first_line_of: dict[str, int] = {}
    for line, text_id, text in texts:
        if not text.strip():
            problems.add(line, "the text is empty")
        elif not is_of_lines and is_unreadable(text):
            problems.add(line, f"the text {text.strip()!r} {CANNOT_BE_READ}")
        else:
            problem = unsuitable(text, line_breaks=True)  # such as a control character; "" if there is none
            if problem:
                problems.add(line, f"the text {problem}")
        id_problem = _problem_of_id(text_id, first_line_of)
        if id_problem:
            problems.add(line, id_problem)
        first_line_of.setdefault(text_id, line)
    problems.refuse()

    if not texts:
        raise ManifestError(f"{path}: there is no text in it")
    return TextList(tuple((text_id, text) for _, text_id, text in texts))


def _problem_of_id(text_id: str, first_line_of: Mapping[str, int]) -> str:
    """Say what is wrong with the id of a text; "" if nothing is.

    `first_line_of` has the line of each id that was read before.
    """
    if not text_id.strip():
        return "the id is empty"
    if is_unreadable(text_id):
        return f"the id {text_id.strip()!r} {CANNOT_BE_READ}"
    problem = unsuitable(text_id)
    if problem:
        return f"the id {text_id!r} {problem}"
    if text_id in first_line_of:
        return f"the id {text_id!r} is there twice, first in line {first_line_of[text_id]}"
    return ""


class _TextRow(NamedTuple):
    """A text of a file, with the line where it begins and its id."""

    line: int
    text_id: str
    text: str


def _text_lines(path: Path) -> list[_TextRow]:
    """Read a text file with one text on each line; the ids are the numbers of the lines."""
    lines = text_of(path).removesuffix("\n").split("\n")
    rows = []
    for number, line in enumerate(lines, start=1):
        rows.append(_TextRow(number, f"{number:0{LINE_DIGITS}}", line.removesuffix("\r")))
    return rows


def _text_cells(path: Path) -> list[_TextRow]:
    """Read the ids and texts of a table that has the columns text_id and text, or caption_id and caption.

    A table with both pairs is refused, as it does not say which texts are meant.
    """
    table = read_table(path, needed=(), named=False)
    pairs = [pair for pair in TEXT_COLUMNS if set(pair) <= set(table.columns)]
    if len(pairs) != 1:
        expected = " or ".join(" and ".join(pair) for pair in TEXT_COLUMNS)
        raise ManifestError(
            f"{path}: a table of texts has the columns {expected}, not both; found "
            f"{first_few(table.columns, MAX_SHOWN)}"
        )
    id_column, text_column = pairs[0]
    rows = [row for row in table.rows if not row.is_empty]  # spreadsheets write empty rows
    return [_TextRow(row.line, row.cells[id_column], row.cells[text_column]) for row in rows]
