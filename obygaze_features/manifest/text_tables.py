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
from typing import Any, ParamSpec, TypeVar

from obygaze_features.arguments import checked
from obygaze_features.cells import is_unreadable
from obygaze_features.door import read_bytes
from obygaze_features.errors import ManifestError
from obygaze_features.io import local_path
from obygaze_features.lines import csv_line
from obygaze_features.manifest.spans.instant import instants, pointed
from obygaze_features.manifest.spans.names import find_film, plain
from obygaze_features.text import as_written, composed, first_few, number_of, shortened, unsuitable
from obygaze_features.text_records import decoded_text, header_row, read_records
from obygaze_features.workbook import Records

FIELDS: tuple[str, ...] = ("clip_id", "movie", "video", "start_s", "end_s", "level", "concepts", "annotator")
"""The columns that every manifest has, in order; extras follow."""

CODEBOOK_COLUMN = "codebook"
"""The column after FIELDS that names the codebook, where it is not the default one."""

DEFINITION = "definition"
"""Extra column: digest of the definitions that a label was given under (`Codebook.definition`)."""

SEEN_SCORE = "seen_score"
"""Extra column: 1 where the annotator saw the model's score, 0 where not."""

OUR_COLUMNS = (*FIELDS, CODEBOOK_COLUMN, SEEN_SCORE)
"""The columns of a manifest that mean the same in every one."""

TEXT_COLUMNS = (("text_id", "text"), ("caption_id", "caption"))
"""The pairs of columns that a table of texts may have; what else it has is for others."""

LINE_DIGITS = 6
"""Digits of a line's number, so that ids stay the same when lines are added below."""

LARGEST = 1e30
"""Of a table's numbers: squares of larger ones have no place in what is computed of them."""

SHOWN_PROBLEMS = 3
MOST_SHOWN = 40
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

_SCENES = {"start time (seconds)": "start s", "end time (seconds)": "end s"}
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
        return not any(map(str.strip, self.cells.values()))

    def number(self, column: str, path: Path) -> float:
        """Read a cell as a finite number; NaN if it is empty.

        Raises
        ------
        ManifestError
            It is none; names the table's path, line and column.
        """
        text = self.cells[column].strip()
        number = number_of(text)
        if text and not abs(number) <= LARGEST:
            raise ManifestError(
                f"{path}: line {self.line}, column {column}: {text!r} is no number up to {LARGEST:g}; leave "
                "the column out"
            )
        return number

    def as_written(self) -> "Row":
        """Remove the apostrophes that keep a spreadsheet from running cells."""
        if "'" not in "".join((*self.cells, *self.cells.values())):
            return self
        return Row(self.line, {as_written(name): as_written(cell) for name, cell in self.cells.items()})


@dataclass(frozen=True)
class Table:
    """A table's columns and records; `delimiter` stands between its cells, and is empty in a workbook.

    Attributes
    ----------
    read
        Columns that are read beside those of a manifest: a cell of them that cannot be read is refused.
    """

    path: Path
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    delimiter: str = ","
    notes: tuple[str, ...] = ()
    read: frozenset[str] = frozenset()

    @cached_property
    def problems(self) -> "Problems":
        """What is wrong in its rows: refused behind the last one that `checked` or `timed` yields."""
        return Problems(self.path)

    def checked(self) -> Iterator[Row]:
        """Yield the rows that are not empty and can be read; then refuse what was noted."""
        yield from self._readable(self.rows)
        self.problems.refuse()

    def _readable(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows that are not empty; note each cell of a column that is read and cannot be."""
        read = [name for name in self.columns if name in self.read or name in OUR_COLUMNS]
        readable = []
        for row in rows:
            if row.is_empty:
                continue
            text = "".join(row.cells.values())
            if "#" not in text and "Err:" not in text:  # as in most rows of a large table
                readable.append(row)
                continue
            unreadable = [name for name in read if is_unreadable(row.cells[name])]
            for name in unreadable:
                self.problems.add(row.line, f"{row.cells[name].strip()!r} {CANNOT_BE_READ}", name)
            if not unreadable:
                readable.append(row)
        return readable

    def timed(self, *, rate: Fraction | None = None, verbatim: bool = False) -> Iterator[Row]:
        """Yield the rows that are not empty, times written as seconds; then refuse what was noted.

        Where semicolons or tabs are between cells, the decimal sign may be a comma.

        Parameters
        ----------
        rate
            Frames per second of times that end in frames.
        verbatim
            Whether apostrophes before cells belong to them: no spreadsheet wrote the table.
        """
        rows = [row if verbatim else row.as_written() for row in self._readable(self.rows)]
        usual = "" if self.delimiter in {";", "\t"} else "."
        with placed(f"{self.path}: column {' or '.join(TIMES)}"):
            cells = [row.cells[name] for name in TIMES for row in rows]
            values = instants(cells, usual, rate, len(TIMES))
        for row, *times in zip(rows, values, values[len(rows) :], strict=False):
            cells_read = dict(row.cells)
            before = len(self.problems.messages)
            for name, value in zip(TIMES, times, strict=True):
                if isinstance(value, ManifestError):
                    none = ": leave the cell empty where there is none" * row.cells[name].isalpha()  # R's NA
                    self.problems.add(row.line, f"{value}{none}", name)
                else:
                    cells_read[name] = "" if value is None else repr(value + 0.0)  # no minus zero
            if len(self.problems.messages) == before:
                yield Row(row.line, cells_read)
        self.problems.refuse()

    def numbers(self, names: Sequence[str], clips: Iterable[Any] = ()) -> dict[str, list[float]]:
        """Read columns of numbers by clip (`Row.number`), whose id may have blanks around it and any accents.

        Raises
        ------
        ManifestError
            A clip has two rows, or a cell is no number; or a row states another film or other times than its
            clip has, one of `clips`: it is of another window.
        """

        def agrees(cell: str, field: str | float) -> bool:
            if isinstance(field, str):
                return bool(find_film(cell, [field]))
            return abs(float(cell) - field) <= SLACK_S

        values_of: dict[str, list[float]] = {}
        clip_of = {clip.clip_id: clip for clip in clips}
        table = self.pointed(names)
        has_times = {*TIMES} <= {*self.columns}
        rows = table.timed() if has_times else table.checked()
        stated = ("movie", *TIMES) if has_times else ("movie",)
        for row in rows:
            clip_id = composed(row.cells["clip_id"].strip())
            if clip_id in values_of:
                raise ManifestError(f"{self.path}: line {row.line}: clip {clip_id} has a row already")
            for name in stated:
                cell = row.cells.get(name, "").strip()
                field = getattr(clip_of.get(clip_id), name, None)
                if cell and field is not None and not agrees(cell, field):
                    raise ManifestError(
                        f"{self.path}: line {row.line}, column {name}: {cell}, and clip {clip_id} has "
                        f"{field}: measure the clips themselves (obygaze film variables --windows)"
                    )
            values_of[clip_id] = [row.number(name, self.path) for name in names]
        return values_of

    def pointed(self, names: Sequence[str]) -> "Table":
        """Write numbers with points, where ; or tabs are between cells; each column decides its own sign."""
        if self.delimiter not in {";", "\t"}:
            return self
        cells_of_rows = [dict(row.cells) for row in self.rows]
        for name in names:
            with placed(f"{self.path}: column {name}"):
                for cells, number in zip(
                    cells_of_rows, pointed([cells[name] for cells in cells_of_rows]), strict=True
                ):
                    cells[name] = number
        return replace(self, rows=tuple(map(Row, (row.line for row in self.rows), cells_of_rows)))

    def as_csv(self, texts: Collection[str]) -> str:
        """Write it with commas between cells and points in numbers; the columns `texts` stay as they are."""
        rows = self.pointed([name for name in self.columns if name not in texts]).rows
        return "".join(map(csv_line, (self.columns, *(tuple(row.cells.values()) for row in rows))))


@contextmanager
def placed(where: object, remedy: str = "") -> Iterator[None]:
    """Name the place of a ManifestError, and what to do."""
    try:
        yield
    except ManifestError as error:
        raise ManifestError(f"{where}: {shortened(str(error))}{remedy}", error.column) from None


class Problems:
    """Collect the problems of a file; the error names the first few and counts the rest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.messages: list[str] = []

    def add(self, line: int, message: str, column: str = "") -> None:
        """Note one problem."""
        where = f"line {line}, column {column}" if column else f"line {line}"
        self.messages.append(f"{where}: {shortened(message)}")

    def attempt(
        self, line: int, column: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        """Call `read`; if it raises a ManifestError, note it and return None.

        An empty `column` stands for the one that the error itself names.
        """
        try:
            return read(*args, **kwargs)
        except ManifestError as error:
            self.add(line, str(error), column or error.column)
            return None

    def refuse(self) -> None:
        """Raise ManifestError if anything was noted."""
        if self.messages:
            hidden = len(self.messages) - SHOWN_PROBLEMS
            remainder = f"; and {counted(hidden, 'more problem')}" if hidden > 0 else ""
            raise ManifestError(f"{self.path}: {'; '.join(self.messages[:SHOWN_PROBLEMS])}{remainder}")


@checked
def read_table(path: Path, needed: Sequence[str], *, any_of: Sequence[str] = (), **how: Any) -> Table:
    """Read a table with a header: a text file in UTF-8 or UTF-16, or a sheet of a workbook (.xlsx).

    Spreadsheets' own forms are read: a line `sep=;`, title rows above the header, empty columns and cells at
    the right. Cells of a workbook that people see otherwise are warned of (`CellsWarning`).

    Parameters
    ----------
    path
        The file.
    needed
        Columns that must be there.
    any_of
        One of these must be there too.
    how
        As of `table_of`.

    Raises
    ------
    ManifestError
        If the file is a folder, empty, not UTF-8, holds a quote never closed, lacks a column,
        names one twice, or has a row of another length; with the line.
    """
    path = local_path(path)
    content = content_of(path)
    try:
        records, delimiter, notes = read_records(path, content, ManifestError, naming(needed, any_of))
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
    """Make a table of records; see `read_table`.

    Parameters
    ----------
    known
        Columns that get these spellings too.
    named
        Whether every column must have a name (a pandas index has none).
    advice
        What to do where a column is missing, for the message.
    is_header
        Whether cells are those of the header; by default, whether they name all columns that are needed.
    """
    if not records:
        raise ManifestError(f"{path}: nothing but empty lines; a header and rows were expected")
    first = header_row(records, is_header or naming(needed, any_of))
    (first_line, header), *body = records[first:]
    fields = FIELDS if set(TIMES) <= set(needed) else ()
    spelled = {plain(name): name for name in (*known, *fields, *needed, *any_of)}
    # A heading of several lines, as spreadsheets have them, is one name.
    written = [" ".join(cell.split()) if unsuitable(cell) else cell for cell in header]
    headings = [spelled.get(heading_name(cell), cell) for cell in written]
    left_out = {n for n, name in enumerate(headings) if _says_nothing(n, name, body)}
    columns = [name for n, name in enumerate(headings) if n not in left_out]
    missing = [column for column in needed if column not in columns]
    if any_of and {*any_of}.isdisjoint(columns):
        missing.append(" or ".join(any_of))
    if missing:
        found = first_few([*filter(None, written)], MOST_SHOWN)
        problem = f"{path}: line {first_line}: no column {', '.join(missing)}; found {found}"
        raise ManifestError("; ".join(filter(None, (problem, advice))))
    _refuse_unnamed_or_twice(columns, f"{path}: line {first_line}", named=named)
    problems = Problems(path)
    rows = []
    for line, cells in body:
        record = [cell for n, cell in enumerate(cells) if n not in left_out] if left_out else cells
        while len(record) > len(columns) and not record[-1].strip():
            record.pop()
        if len(record) == len(columns):
            rows.append(Row(line, dict(zip(columns, record, strict=True))))
        else:
            problems.add(line, f"{len(record)} cells where the header has {len(columns)}")
    problems.refuse()
    notes = (f"{counted(first, 'row')} above the header left out",) if first else ()
    return Table(path, tuple(columns), tuple(rows), delimiter, notes, frozenset((*needed, *any_of)))


@contextmanager
def uncollected() -> Iterator[None]:
    """Do without garbage collection while many records are made, which it would go through time and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def naming(needed: Iterable[str], any_of: Iterable[str] = ()) -> Callable[[Sequence[str]], bool]:
    """Return what tells a header: whether cells have all these names, and any of the others, if any."""
    needed_keys = set(map(plain, needed))
    optional_keys = set(map(plain, any_of))
    return lambda cells: (
        needed_keys <= (have := set(map(heading_name, cells)))
        and bool(not optional_keys or optional_keys & have)
    )


def _refuse_unnamed_or_twice(columns: Sequence[str], where: str, *, named: bool) -> None:
    """Refuse a header in which a name stands twice or, of columns that are to be `named`, is missing."""
    before = set[str]()
    for number, column in enumerate(columns, start=1):
        if named and not column:
            raise ManifestError(
                f"{where}: column {number} has no name (a data frame's index? write it without)"
            )
        if column in before:
            raise ManifestError(f"{where}: column {repr(column) if column else number} is there twice")
        before.add(column)


def _says_nothing(n: int, name: str, body: Records) -> bool:
    """Tell a column without name and cells, and a data frame's index, which pandas reads as `Unnamed: 0`."""
    if name and not name.startswith("Unnamed: "):
        return False
    cells = [record[n] if n < len(record) else "" for _, record in body if any(record)]
    may_be_index = n == 0 or name != ""
    if may_be_index and all(map(str.isdecimal, cells)) and len(set(cells)) == len(cells):
        return True
    return name == "" and not any(cells)


def heading_name(cell: str) -> str:
    """Write the heading of a column as headings are compared; those of PySceneDetect are ours."""
    name = plain(cell)
    return _SCENES.get(name, name)


@checked
def counted(number: int, singular: str, many: str = "") -> str:
    """Write a number with its noun."""
    return f"{number:,} {singular if number == 1 else many or singular + 's'}"


def content_of(path: Path) -> bytes:
    """Read the bytes of a file that is not empty."""
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
        lines = (csv_line(row) for row in (TEXT_COLUMNS[0], *self.rows))
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
        Naming file and line: not UTF-8, no such columns, an empty id or text, an id that is there twice, or
        a control or bidirectional character.
    """
    path = local_path(path)
    texts = _text_lines(path) if path.suffix.lower() == ".txt" else _text_cells(path)
    problems = Problems(path)
    first: dict[str, int] = {}
    for line, text_id, text in texts:
        if not text.strip():
            problems.add(line, "the text is empty")
        elif problem := unsuitable(text, lines=True):
            problems.add(line, f"the text {problem}")
        if not text_id.strip():
            problems.add(line, "the id is empty")
        elif problem := unsuitable(text_id):
            problems.add(line, f"the id {text_id!r} {problem}")
        elif text_id in first:
            problems.add(line, f"the id {text_id!r} is there twice, first in line {first[text_id]}")
        first.setdefault(text_id, line)
    problems.refuse()
    if not texts:
        raise ManifestError(f"{path}: there is no text in it")
    return TextList(tuple((text_id, text) for _, text_id, text in texts))


def _text_lines(path: Path) -> list[tuple[int, str, str]]:
    lines = enumerate(text_of(path).removesuffix("\n").split("\n"), start=1)
    return [(number, f"{number:0{LINE_DIGITS}}", line.removesuffix("\r")) for number, line in lines]


def _text_cells(path: Path) -> list[tuple[int, str, str]]:
    table = read_table(path, needed=(), named=False)
    pairs = [pair for pair in TEXT_COLUMNS if set(pair) <= set(table.columns)]
    if len(pairs) != 1:
        expected = " or ".join(" and ".join(pair) for pair in TEXT_COLUMNS)
        raise ManifestError(
            f"{path}: a table of texts has the columns {expected}, not both; found "
            f"{first_few(table.columns, MOST_SHOWN)}"
        )
    text_id, text = pairs[0]
    return [(row.line, row.cells[text_id], row.cells[text]) for row in table.rows]
