"""Read the columns of a person's table as they are named: times, labels, marks, columns of annotators."""

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final, NamedTuple

from obygaze_features.cells import is_unreadable
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.importers.column_contents import (
    NO,
    YES,
    are_marks,
    cells_of,
    is_of_marks,
    label_of_heading,
    range_in,
)
from obygaze_features.manifest.importers.whole_minutes import with_minutes_as_typed
from obygaze_features.manifest.spans.headings import (
    DURATION,
    LABEL_COLUMNS,
    Headings,
    columns_headed_by,
    names_of_heading,
    seconds_of_unit,
    without_name,
)
from obygaze_features.manifest.spans.instant import instants, is_clock
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.names import plain
from obygaze_features.manifest.text_tables import CANNOT_BE_READ, TIMES, Row, Table, placed
from obygaze_features.text import composed

SIGNS_WITH_COMMAS: Final = {";", "\t", "|"}
"""Separators of cells in tables whose decimal sign may be a comma."""

DIGITS = 6
"""Decimals of computed seconds: beyond a millionth, sums of decimal numbers show their rounding."""

START, END = TIMES


# --- columns of ours
# ---------------------------------------------------------------------------
def renamed(
    table: Table, headings: Headings, rate: Fraction | None = None, *, is_of_a_workbook: bool = False
) -> Table:
    """Give columns a manifest's names, as the person's options say; columns of labels keep their headings.

    A column that has such a name already, while the person names another column for it, is left out with a
    note. Times become starts and ends in seconds, also where a heading has another unit, where a cell holds
    both times, and where a table has durations in place of ends.
    """
    if headings.has_one_column_of_times:
        table = _with_both_times(table, find_column(table, headings.columns[START][0]))
    new_names = _new_names(table, headings)
    table = _with_names(table, new_names)
    if is_of_a_workbook:
        table = with_minutes_as_typed(table)
    for column, name in new_names.items():
        unit = seconds_of_unit(column)
        if name in {START, END, DURATION} and unit is not None:
            table = _in_seconds(table, name, column, unit, rate)
    return with_ends(table, rate)


def _new_names(table: Table, headings: Headings) -> dict[str, str]:
    """Return column -> its new name, a manifest's; "" for a column that another one replaces."""
    new_names: dict[str, str] = {}
    for name, (heading, *_) in headings.columns.items():
        column = find_column(table, heading)
        if name not in LABEL_COLUMNS and column is not None:
            new_names[column] = name
    for name in list(new_names.values()):
        replaced = (END, DURATION) if name in {END, DURATION} else (name,)
        for other in replaced:
            if other in table.columns:
                new_names.setdefault(other, "")
    return new_names


def _with_names(table: Table, new_names: Mapping[str, str]) -> Table:
    """Give columns new names; leave out, and note, those whose new name is empty."""
    if not new_names:
        return table
    notes = list(table.notes)
    for column, name in new_names.items():
        if not name:
            other = next(heading for heading, new in new_names.items() if new in {column, END, DURATION})
            notes.append(f"column {column!r} left out: {other!r} is read as {new_names[other]}")
    columns = [new_names.get(column, column) for column in table.columns]
    rows = []
    for row in table.rows:
        cells = {new_names.get(column, column): cell for column, cell in row.cells.items()}
        cells.pop("", None)
        rows.append(Row(row.line, cells))
    return replace(table, columns=tuple(filter(None, columns)), rows=tuple(rows), notes=tuple(notes))


def _with_both_times(table: Table, column: str | None) -> Table:
    """Divide a column whose cells hold a start and an end; a cell of one time is a start."""
    if column is None:
        return table
    rows = []
    for row in table.rows:
        cells = dict(row.cells)
        cell = cells.pop(column)
        cells[START], cells[END] = range_in(cell) or (cell, "")
        rows.append(Row(row.line, cells))
    kept = [name for name in table.columns if name not in {column, START, END}]
    return replace(table, columns=(*kept, START, END), rows=tuple(rows))


def _in_seconds(table: Table, name: str, heading: str, unit: float, rate: Fraction | None) -> Table:
    """Write a column of numbers in another unit as seconds; clocks stay as they are."""
    if not unit and rate is None:
        raise ManifestError(
            f"{table.path}: column {heading!r}: times are in frames; give their rate, as in --rate 25"
        )
    values = _seconds(table, name, rate)
    rows = []
    for row, value in zip(table.rows, values, strict=True):
        cells = dict(row.cells)
        if isinstance(value, float) and not is_clock(cells[name]):
            cells[name] = _written(value * unit if unit else float(Fraction(value) / (rate or 1)))
        rows.append(Row(row.line, cells))
    spelled = f"{unit:g} s" if unit else f"1/{float(rate or 1):g} s"
    return replace(
        table, rows=tuple(rows), notes=(*table.notes, f"numbers in column {heading!r} are times of {spelled}")
    )


def with_ends(table: Table, rate: Fraction | None) -> Table:
    """Fill the column of ends, where a table has durations in place of it: start and duration, added."""
    if DURATION not in table.columns or END in table.columns or START not in table.columns:
        return table
    starts, durations = _seconds(table, START, rate), _seconds(table, DURATION, rate)
    rows = []
    for row, start, duration in zip(table.rows, starts, durations, strict=True):
        cells = dict(row.cells)
        end = cells.pop(DURATION)
        if isinstance(start, float) and isinstance(duration, float):
            cells[START], end = _written(start), _written(start + duration)
        cells[END] = end
        rows.append(Row(row.line, cells))
    columns = [END if column == DURATION else column for column in table.columns]
    return replace(table, columns=tuple(columns), rows=tuple(rows))


def _seconds(table: Table, name: str, rate: Fraction | None) -> list[float | ManifestError | None]:
    """Read a column of times as seconds; an error for a cell that is no time, and None for an empty one."""
    usual = "" if table.delimiter in SIGNS_WITH_COMMAS else "."
    with placed(f"{table.path}: column {name}"):
        return instants([row.cells[name] for row in table.rows], usual, rate)


def _written(time_s: float) -> str:
    """Write seconds for a cell, without the rounding error of a sum."""
    return repr(round(time_s, DIGITS))


def find_column(table: Table, heading: str) -> str | None:
    """Find a column by its heading, whatever its case and blanks (`plain`); None if there is none."""
    return next((column for column in table.columns if plain(column) == plain(heading)), None)


# --- labels
# ---------------------------------------------------------------------------
class Source(NamedTuple):
    """A column that labels are read from.

    Attributes
    ----------
    column
        Its heading.
    role
        What its cells are: `level` or `concepts`.
    label
        The label that its marks say yes or no to; "" where its cells are labels themselves.
    """

    column: str
    role: str
    label: str


class Place(NamedTuple):
    """The line and column of a cell."""

    line: int
    column: str


class LabelCells(NamedTuple):
    """The labels of a row as cells of a manifest, several of them divided by semicolons."""

    level: str
    concepts: str


def role_of_heading(heading: str) -> str:
    """Return what an annotator's column holds, `level` or `concepts`, by its heading without the name.

    Examples
    --------
    >>> role_of_heading("Konzepte"), role_of_heading("Stufe"), role_of_heading("")
    ('concepts', 'level', 'level')
    """
    roles = [name for name in names_of_heading(heading) if name in LABEL_COLUMNS]
    return roles[0] if roles else "level"


class LabelReader:
    """Reads the labels of rows, from the columns that the person names or that have a manifest's names.

    A column whose heading is a label, and whose cells are marks (1 and 0, x, yes and no), says in which rows
    that label holds. The cells of other columns are labels themselves; a cell of levels may hold concepts.

    Parameters
    ----------
    table
        The table, whose problems note what cannot be read.
    headings
        The headings that the person names for columns of labels and of annotators.
    words
        The words of labels that the codebook knows.

    Attributes
    ----------
    annotators
        Annotator -> the columns that hold this annotator's labels alone.
    notes
        What is to be said of columns that are left out.
    respelled
        (text of a cell, label of the codebook) -> how many cells were read so.
    has_single_labels
        Whether a cell of levels held concepts alone: then each row says one label, and a span has several.
    """

    def __init__(self, table: Table, headings: Headings, words: LabelWords) -> None:
        self._table = table
        self._words = words
        self.respelled: Counter[tuple[str, str]] = Counter()
        self.has_single_labels = False
        self.notes: list[str] = []
        self.annotators: dict[str, list[Source]] = {}
        for annotator in headings.wide:
            sources = self._of_annotator(annotator)
            if sources:
                self.annotators[annotator] = sources
        of_annotators = {source.column for source in self._annotator_sources()}
        self._shared: list[Source] = []  # the columns of all annotators
        for role in LABEL_COLUMNS:
            for source in self._sources(role, headings):
                if source.column not in of_annotators:
                    self._shared.append(source)
        self._refuse_double(headings)

    def _annotator_sources(self) -> list[Source]:
        """Return the columns that hold the labels of one annotator each."""
        all_sources = []
        for sources in self.annotators.values():
            all_sources += sources
        return all_sources

    def _sources(self, role: str, headings: Headings) -> list[Source]:
        """Return the columns of levels, or of concepts: those that the person names, else the manifest's."""
        named = [find_column(self._table, heading) for heading in headings.columns.get(role, ()) if heading]
        columns = [column for column in named if column is not None and not self._is_nothing(column)]
        if columns and role in self._table.columns and role not in columns:
            self.notes.append(f"column {role!r} left out: {', '.join(columns)} is read as {role}")
        if not columns and role in self._table.columns and not headings.has_none_of(role):
            columns = [role]
        return [self._source(column, column, role) for column in columns]

    def _is_nothing(self, column: str) -> bool:
        """Return whether a person says that the heading of a column of marks stands for no label."""
        return self._words.is_explained_as_nothing(column) and are_marks(cells_of(self._table, column))

    def _of_annotator(self, name: str) -> list[Source]:
        """Return the columns whose headings hold an annotator's name: of levels, of concepts, of marks."""
        sources = []
        for column in columns_headed_by(name, self._table.columns):
            heading = without_name(name, column)
            sources.append(self._source(column, heading, role_of_heading(heading)))
        return sources

    def _source(self, column: str, heading: str, role: str) -> Source:
        """Tell whether a column holds labels, or marks of one label.

        Parameters
        ----------
        column
            The whole heading.
        heading
            The heading without the annotator's name.
        role
            `level` or `concepts`.
        """
        label = ""
        if is_of_marks(self._table, column, self._words):
            label = label_of_heading(column, self._words)
        elif heading != column and label_of_heading(heading, self._words):
            label = label_of_heading(heading, self._words)
        return Source(column, role, label)

    def _refuse_double(self, headings: Headings) -> None:
        """Refuse columns of single annotators in a table that also has a column of levels or annotators.

        Raises
        ------
        ManifestError
            The table says in two ways what the levels are, or whose they are.
        """
        other_columns = [source.column for source in self._shared if source.role == "level"]
        if "annotator" in self._table.columns:
            other_columns.append("annotator")
        if self.annotators and other_columns:
            raise ManifestError(
                f"{self._table.path}: --wide {','.join(headings.wide)}: each is an annotator's labels, and "
                f"the table has a column {other_columns[0]} besides: leave one of them out"
            )

    @property
    def columns(self) -> list[str]:
        """The columns that labels are read from."""
        return [source.column for source in (*self._shared, *self._annotator_sources())]

    @property
    def is_of_marks(self) -> bool:
        """Whether any of the columns holds marks of a label."""
        return any(source.label for source in (*self._shared, *self._annotator_sources()))

    def labels(self, row: Row) -> LabelCells:
        """Read the labels of a row from the columns that belong to no single annotator."""
        return self._labels(row, self._shared)

    def labels_by(self, row: Row, annotator: str) -> LabelCells | None:
        """Read the labels of a row from an annotator's columns and the shared ones.

        None where all of the annotator's cells are empty.
        """
        sources = self.annotators[annotator]
        if not any(row.cells[source.column].strip() for source in sources):
            return None
        return self._labels(row, [*sources, *self._shared])

    def _labels(self, row: Row, sources: Sequence[Source]) -> LabelCells:
        """Join the labels that the cells of a row hold or mark; note the cells that cannot be read."""
        levels: list[str] = []
        concepts: list[str] = []
        for source in sources:
            cell = composed(row.cells[source.column].strip())
            at = Place(row.line, source.column)
            if is_unreadable(cell):
                self._table.problems.add(row.line, f"{cell!r} {CANNOT_BE_READ}", _column_at_fault(source))
            elif source.label:
                is_level = source.label in self._words.codebook.level_names
                marked_labels = levels if is_level else concepts
                if self._is_marked(at, cell, source.label):
                    marked_labels.append(source.label)
            elif source.role == "level":
                self._add_labels(at, cell, levels, concepts)
            else:
                concepts += self._concepts_in(at, cell)
        return LabelCells(";".join(levels), ";".join(concepts))

    def _is_marked(self, at: Place, cell: str, label: str) -> bool:
        """Return whether a cell marks its column's label; note a cell that says neither yes nor no."""
        mark = plain(cell)
        label_in_cell = self._words.level_of(cell) or self._words.concept_of(cell)
        if mark in YES or label_in_cell == label:
            return True
        if cell and mark not in NO and not self._words.is_no_concept(cell):
            typed = shlex.quote(f"{cell}={label}")
            remedy = f"--word {typed} where it is there, --word {shlex.quote(f'{cell}=')} where it is not"
            self._table.problems.add(at.line, f"{cell!r} is neither yes nor no: {remedy}", at.column)
        return False

    def _add_labels(self, at: Place, cell: str, levels: list[str], concepts: list[str]) -> None:
        """Add the labels of a cell of a column of levels to `levels` and `concepts`; note an unknown one."""
        words = self._words
        if not cell or words.is_no_level(cell):
            return
        level = words.level_of(cell)
        labels = words.labels_of(cell)
        if level:
            self._respell(cell, level)
            levels.append(level)
        elif labels is None:
            self._refuse(at, cell, words.codebook.level_spelled)
        else:
            if labels.level:
                levels.append(labels.level)
            else:
                self.has_single_labels = True
            concepts += labels.concepts

    def _concepts_in(self, at: Place, cell: str) -> list[str]:
        """Return the concepts that a cell lists, by the codebook's names; note unknown ones."""
        words = self._words
        if not cell or words.is_no_concept(cell):
            return []
        concepts = []
        for text in words.parts_of(cell):
            name = words.concept_of(text)
            if name:
                self._respell(text, name)
                concepts.append(name)
            elif not words.is_no_concept(text):
                self._refuse(at, text, words.codebook.concept_spelled)
        return concepts

    def _refuse(self, at: Place, text: str, spelled: Callable[[str], str]) -> None:
        """Note a word that the codebook does not have as a problem, with the option that says what it means.

        Parameters
        ----------
        at
            The cell of the word.
        text
            The word.
        spelled
            The codebook's look-up of a level or a concept, whose error names the labels nearest to the word.
        """
        try:
            spelled(text)
        except ManifestError as error:
            remedy = f"; or say what it stands for: --word {shlex.quote(f'{text}=LABEL')}"
            self._table.problems.add(at.line, f"{error}{remedy}", at.column)

    def _respell(self, text: str, name: str) -> None:
        """Count a text that was read as a label of another name."""
        if name != text:
            self.respelled[text, name] += 1


def _column_at_fault(source: Source) -> str:
    """Name the column of a problem: the manifest's, where columns of marks make it up, else the cell's."""
    return source.role if source.label else source.column
