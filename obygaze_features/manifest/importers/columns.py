"""Read the columns of a person's table as they are named: times, labels, marks, columns of annotators."""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import Final, NamedTuple

from obygaze_features.cells import is_unreadable
from obygaze_features.errors import ManifestError
from obygaze_features.identity import plain
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.importers.annotator_headings import label_columns_of
from obygaze_features.manifest.importers.column_contents import (
    NO,
    are_marks,
    cells_of,
    has_no_marks,
    is_of_marks,
    kinds_of_yes,
    label_of_heading,
    range_in,
    says_yes,
    texts_in_heading,
)
from obygaze_features.manifest.importers.last_frames import with_ends_after_last_frames
from obygaze_features.manifest.importers.whole_minutes import with_minutes_as_typed
from obygaze_features.manifest.spans.headings import (
    DURATION,
    LABEL_COLUMNS,
    Headings,
    meanings_of_heading,
    without_name,
)
from obygaze_features.manifest.spans.instant import (
    FRAME_CODE,
    has_own_unit,
    instants,
    is_clock,
    number_like_minutes,
    with_ascii_digits,
)
from obygaze_features.manifest.spans.label_words import Labels, LabelWords
from obygaze_features.manifest.spans.span_file import Reading, SpanFile
from obygaze_features.manifest.spans.units import (
    FRAMES,
    UnitOfHeading,
    doubt_of_minutes,
    has_time_unit,
    seconds_of_unit,
    unit_of_heading,
)
from obygaze_features.manifest.text_tables import CANNOT_BE_READ, TIMES, Row, Table, error_context
from obygaze_features.text import composed

SIGNS_WITH_COMMAS: Final = {";", "\t", "|"}
"""Separators of cells in tables whose decimal sign may be a comma."""

DIGITS = 6
"""Decimals of computed seconds: beyond a millionth, sums of decimal numbers show their rounding."""

START, END = TIMES

_SIGNS_OF_CLOCKS = re.compile("[:;]")


# --- columns of ours
# ---------------------------------------------------------------------------
def with_manifest_names(table: Table, file: SpanFile) -> Table:
    """Give the columns that the person's options name the manifest's names, and convert times to seconds.

    Columns of labels keep their headings. If the person names a column for a name that another column has
    already, that other column is left out with a note. Times become starts and ends in seconds, whether the
    table has other units, durations in place of ends, or both times in one cell.

    The file says what the person's options are; its account notes whether their unit and rate are used.
    """
    headings = file.reading.headings
    heading_of_time: dict[str, str] = {}  # manifest's column of times -> the heading that stands for it

    # 1. Name the columns: the steps below find times by the manifest's names.
    if headings.has_one_column_of_times:
        heading = headings.columns[START][0]
        heading_of_time = {START: heading, END: heading}
        table = _with_both_times(table, find_column(table, heading))

    new_names = _new_names(table, headings)
    for heading, name in new_names.items():
        if name in {*TIMES, DURATION}:
            heading_of_time[name] = heading
    table = _with_names(table, new_names)

    # 2. Mend or refuse times whose meaning is another than it seems, while cells are as they were written.
    is_of_a_workbook = file.sheet is not None
    if is_of_a_workbook:
        table = with_minutes_as_typed(table)
    _refuse_numbers_like_minutes(table, heading_of_time, file.reading)
    if _are_frames(table, heading_of_time, file.reading):
        table = with_ends_after_last_frames(table)

    # 3. Convert them to seconds. Ends are computed last, as starts and durations may have different units.
    for name, heading in heading_of_time.items():
        if name in table.columns:
            table = _in_seconds(table, name, heading, file)
    if any(_has_time_codes(table, name) for name in (*TIMES, DURATION)):
        file.account.uses_rate = True
    return with_ends(table, file.reading.rate)


def _are_frames(table: Table, heading_of_time: Mapping[str, str], reading: Reading) -> bool:
    """Return whether the numbers in the columns of starts and of ends are both numbers of frames.

    A heading such as `Start (frames)` says so, or the person's option `--unit frames`.

    `heading_of_time` is `start_s` or `end_s` -> the heading that the table has for it.
    """
    for name in TIMES:
        if name not in heading_of_time or name not in table.columns:
            return False
        unit_in_heading = unit_of_heading(heading_of_time[name])
        if unit_in_heading.unit_beside(reading.unit) != FRAMES:
            return False
    return True


def _refuse_numbers_like_minutes(table: Table, heading_of_time: Mapping[str, str], reading: Reading) -> None:
    """Refuse times that may be seconds, or minutes and seconds with a dot, if nothing says which.

    A unit says it, by the person or in a heading, as in `Start (s)`.

    `heading_of_time` is the manifest's name of a column of times -> the heading that the table has.

    Raises
    ------
    ManifestError
        All numbers of these columns have two decimals below .60 (`number_like_minutes`).
    """
    has_unit = bool(reading.unit) or any(has_time_unit(heading) for heading in heading_of_time.values())
    if has_unit:
        return
    cells: list[str] = []
    for name in heading_of_time:
        if name in table.columns:
            cells += cells_of(table, name)
    number = number_like_minutes(cells)
    if number:
        shown = ", ".join(map(repr, dict.fromkeys(heading_of_time.values())))
        raise ManifestError(f"{table.path}: {doubt_of_minutes(shown, number)}")


def _new_names(table: Table, headings: Headings) -> dict[str, str]:
    """Return heading of the table -> name of the manifest's column, as the person says by --column.

    `--column start_s=Beginn` gives {"Beginn": "start_s"}. Columns of labels are left out, as they are read
    in a way of their own, and headings that the table does not have.
    """
    new_names = {}
    for name, named_headings in headings.columns.items():
        if name in LABEL_COLUMNS:
            continue
        (named_heading,) = named_headings  # only labels may have several
        heading = find_column(table, named_heading)
        if heading is not None:
            new_names[heading] = name
    return new_names


def with_names_of_scales(table: Table, codebook: Codebook) -> Table:
    """Give columns that are headed by a scale of the codebook in another case the scale's name."""
    new_names = {}
    for scale in codebook.scales:
        heading = find_column(table, scale.name)
        if scale.name not in table.columns and heading is not None:
            new_names[heading] = scale.name
    return _with_names(table, new_names)


def _replacing_headings(table: Table, new_names: Mapping[str, str]) -> dict[str, str]:
    """Return each column that is left out -> the heading that is read in its place.

    A column that the person names as ends or durations replaces both `end_s` and `duration_s` of the table.
    `new_names` is heading -> the manifest's column that it is read as.
    """
    heading_in_place = {}
    for heading, name in new_names.items():
        replaced_columns = (END, DURATION) if name in {END, DURATION} else (name,)
        for column in replaced_columns:
            if column in table.columns and column not in new_names:
                heading_in_place[column] = heading
    return heading_in_place


def _with_names(table: Table, new_names: Mapping[str, str]) -> Table:
    """Rename columns of a table (heading -> new name).

    A column that has one of the new names already is left out, with a note.
    """
    if not new_names:
        return table
    heading_in_place = _replacing_headings(table, new_names)  # column that is left out -> what replaces it
    notes = list(table.notes)
    for column, heading in heading_in_place.items():
        notes.append(f"column {column!r} left out: {heading!r} is read as {new_names[heading]}")

    kept_columns = [column for column in table.columns if column not in heading_in_place]
    columns = [new_names.get(column, column) for column in kept_columns]
    rows = []
    for row in table.rows:
        cells = {}
        for column, cell in row.cells.items():
            if column not in heading_in_place:
                cells[new_names.get(column, column)] = cell
        rows.append(Row(row.line, cells))
    return replace(table, columns=tuple(columns), rows=tuple(rows), notes=tuple(notes))


def _with_both_times(table: Table, column: str | None) -> Table:
    """Split a column of ranges such as `12.5-18` into starts and ends; a cell with one time is a start.

    If `column` is None, as the table has no column of ranges, the table stays as it is.
    """
    if column is None:
        return table
    rows = []
    for row in table.rows:
        cells = dict(row.cells)
        cell = cells.pop(column)
        start, end = range_in(cell) or (cell, "")
        cells[START] = start
        cells[END] = end
        rows.append(Row(row.line, cells))
    other_columns = [name for name in table.columns if name not in {column, START, END}]
    return replace(table, columns=(*other_columns, START, END), rows=tuple(rows))


def _in_seconds(table: Table, name: str, heading: str, file: SpanFile) -> Table:
    """Convert the times of a column in another unit to seconds; its heading, or the person, tells the unit.

    Clocks, such as 00:01:05, and times with units of their own, such as `1 min 5 s`, stay as they are, unless
    the heading shows that its clocks lack a part: 1:30 below `h:mm` is 1:30:00. The file's account notes
    whether the options --unit and --rate are used.

    `name` is the manifest's name, which the column has already, and `heading` is its own.

    Raises
    ------
    ManifestError
        The heading leaves the unit of numbers open, or shows clocks that are not read, or the unit is frames
        and no rate is given, or a number is no frame.
    """
    unit_in_heading = unit_of_heading(heading)
    person_unit = file.reading.unit
    if unit_in_heading.unread_clock and not person_unit and cells_of(table, name):
        raise ManifestError(
            f"{table.path}: column {heading!r}: clocks {unit_in_heading.unread_clock} are not read: write "
            f"hh:mm:ss.ms or mm:ss, and the heading without {unit_in_heading.unread_clock}"
        )

    table = _with_whole_clocks(table, name, unit_in_heading)
    unit = unit_in_heading.unit_beside(person_unit)
    # A number counts as so many seconds here, and is converted below. Of a cell that is no time it is None or
    # an error: the cell stays as it is, and is refused when the rows are read.
    times = _seconds(table, name, file.reading.rate)
    rows = []
    has_mere_numbers = False
    for row, time in zip(table.rows, times, strict=True):
        cell = row.cells[name]
        if not isinstance(time, float) or has_own_unit(cell):
            rows.append(row)
            continue
        has_mere_numbers = True
        place = f"{table.path}: line {row.line}, column {heading!r}"
        if unit_in_heading.doubt and not person_unit:
            raise ManifestError(
                f"{place}: {unit_in_heading.doubt!r} is no known unit of numbers such as {cell}: "
                "give --unit s; or ms, cs, us, ns, min, h; or frames, with --rate"
            )
        if unit == FRAMES:
            cell = _written(_seconds_of_frames(time, place, file.reading))
        elif unit:
            cell = _written(time * seconds_of_unit(unit))
        rows.append(Row(row.line, {**row.cells, name: cell}))

    if not has_mere_numbers:
        return table
    file.account.uses_unit = True
    if unit in {"", "s"}:
        return table
    if unit == FRAMES:
        file.account.uses_rate = True
        length = f"1/{float(file.reading.rate or 0):g} s"
    else:
        length = f"{seconds_of_unit(unit):g} s"
    note = f"numbers in column {heading!r} are times of {length}"
    return replace(table, rows=tuple(rows), notes=(*table.notes, note))


def _with_whole_clocks(table: Table, name: str, unit_in_heading: UnitOfHeading) -> Table:
    """Complete the clocks of a column whose heading shows that they lack a part.

    Below a heading `h:mm`, 1:30 becomes 1:30:00. Clocks with more parts stay as they are.
    """
    template = unit_in_heading.whole_clock  # such as `{}:00`
    if not template:
        return table
    rows = []
    for row in table.rows:
        cells = dict(row.cells)
        cell = with_ascii_digits(cells[name].strip())
        n_colons = len(_SIGNS_OF_CLOCKS.findall(cell))  # or semicolons
        lacks_a_part = n_colons == unit_in_heading.n_signs
        if is_clock(cell) and lacks_a_part:
            cells[name] = template.format(cell)
        rows.append(Row(row.line, cells))
    note = f"clocks in column {name} are read as {unit_in_heading.doubt}"
    return replace(table, rows=tuple(rows), notes=(*table.notes, note))


def _seconds_of_frames(frame: float, location: str, reading: Reading) -> float:
    """Convert the number of a frame to seconds; refuse it where no rate is given, or if it is not whole."""
    if reading.rate is None:
        raise ManifestError(
            f"{location}: times are in frames; give their rate, as in --rate 25, or --unit s if they are "
            "seconds"
        )
    if not frame.is_integer():
        remedy = "" if reading.unit else "; give --unit s if times are in seconds"
        raise ManifestError(f"{location}: {frame:g} is no whole number of frames{remedy}")
    return float(Fraction(frame) / reading.rate)  # as a fraction, so that frames are divided exactly


def _has_time_codes(table: Table, name: str) -> bool:
    """Return whether a column has times that end in frames, such as 00:01:05:12."""
    if name not in table.columns:
        return False
    return any(FRAME_CODE.fullmatch(with_ascii_digits(cell)) for cell in set(cells_of(table, name)))


def with_ends(table: Table, rate: Fraction | None) -> Table:
    """Replace the column of durations by one of ends (start plus duration), if the table has no ends.

    If a row's start or duration cannot be read, the duration is kept as it is written, in the place of the
    end, so that reading it is refused later.
    """
    if DURATION not in table.columns or END in table.columns or START not in table.columns:
        return table
    starts = _seconds(table, START, rate)
    durations = _seconds(table, DURATION, rate)
    rows = []
    for row, start, duration in zip(table.rows, starts, durations, strict=True):
        cells = dict(row.cells)
        duration_as_written = cells.pop(DURATION)
        if isinstance(start, float) and isinstance(duration, float):
            cells[START] = _written(start)
            cells[END] = _written(start + duration)
        else:
            cells[END] = duration_as_written
        rows.append(Row(row.line, cells))
    columns = [END if column == DURATION else column for column in table.columns]
    return replace(table, columns=tuple(columns), rows=tuple(rows))


def _seconds(table: Table, name: str, rate: Fraction | None) -> list[float | ManifestError | None]:
    """Read a column of times as seconds; None for an empty cell, an error for a cell that is no time.

    `rate` is frames per second, for time codes that end in frames; None if it is not known.
    """
    # If commas do not separate the cells, the decimal sign may be a comma: the cells themselves tell it then.
    decimal_sign = "" if table.delimiter in SIGNS_WITH_COMMAS else "."
    with error_context(f"{table.path}: column {name}"):
        return instants([row.cells[name] for row in table.rows], decimal_sign, rate)


def _written(time_s: float) -> str:
    """Write seconds for a cell, rounded so that a sum such as .1 + .2 shows no rounding error."""
    return repr(round(time_s, DIGITS))


def find_column(table: Table, heading: str) -> str | None:
    """Find a column by its heading, whatever its case and blanks (`plain`); None if there is none."""
    for column in table.columns:
        if plain(column) == plain(heading):
            return column
    return None


# --- labels
# ---------------------------------------------------------------------------
class LabelColumn(NamedTuple):
    """A column that labels are read from.

    Attributes
    ----------
    column
        Its heading.
    role
        What its cells are: `level` or `concepts`.
    marked_label
        The label that its marks say yes or no to; "" if its cells are labels themselves.
    """

    column: str
    role: str
    marked_label: str


class CellPosition(NamedTuple):
    """The line and column of a cell."""

    line: int
    column: str


class LabelCells(NamedTuple):
    """The labels of a row as cells of a manifest, several of them divided by semicolons."""

    level: str
    concepts: str


def role_of_heading(heading: str) -> str:
    """Return what a column of one annotator holds: `concepts` if its heading means these, else `level`.

    The heading is given without the annotator's name.

    Examples
    --------
    >>> role_of_heading("Konzepte"), role_of_heading("Stufe"), role_of_heading("")
    ('concepts', 'level', 'level')
    """
    roles = [name for name in meanings_of_heading(heading) if name in LABEL_COLUMNS]
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
        Notices on columns that are left out.
    respelled
        (text of a cell, label of the codebook) -> how many cells were read so.
    has_single_labels
        Whether a cell of levels held concepts alone: then each row says one label, and a span has several.
        It is known when the rows are read, as is `respelled`.
    """

    def __init__(self, table: Table, headings: Headings, words: LabelWords) -> None:
        """Find the columns of labels of each annotator, and those that all annotators share.

        Signs for yes that may mean no become problems of the table.
        """
        self._table = table
        self._words = words
        self.notes: list[str] = []
        # Filled while rows are read:
        self.respelled: Counter[tuple[str, str]] = Counter()
        self.has_single_labels = False

        self.annotators: dict[str, list[LabelColumn]] = {}
        for annotator in headings.wide:  # those who have columns of their own
            label_columns = self._columns_of_annotator(annotator)
            if label_columns:
                self.annotators[annotator] = label_columns
        columns_of_annotators = list(chain.from_iterable(self.annotators.values()))
        self._shared = self._shared_columns(headings, columns_of_annotators)
        self._all_columns = [*self._shared, *columns_of_annotators]
        self._refuse_levels_or_annotators_given_twice(headings)
        self._add_problems_of_doubtful_signs()

    def _shared_columns(
        self, headings: Headings, columns_of_annotators: Sequence[LabelColumn]
    ) -> list[LabelColumn]:
        """Return the columns of labels that belong to no single annotator."""
        names_of_others = {label_column.column for label_column in columns_of_annotators}
        label_columns = []
        for role in LABEL_COLUMNS:
            label_columns += self._label_columns(role, headings)
        return [label_column for label_column in label_columns if label_column.column not in names_of_others]

    def _label_columns(self, role: str, headings: Headings) -> list[LabelColumn]:
        """Return the columns of levels, or those of concepts: those the person names, else the one so called.

        If the person names others, the column that is called `level` or `concepts` is left out with a note.
        If the person says that there is none (`Headings.has_none_of`), it is left out too.

        `role` is `level` or `concepts`.
        """
        columns = []
        headings_of_person = [heading for heading in headings.columns.get(role, ()) if heading]
        for heading in headings_of_person:
            column = find_column(self._table, heading)
            if column is None:
                continue
            self._note_heading_read(column)
            if not self._is_explained_as_no_label(column):
                columns.append(column)
        column_has_name_of_role = role in self._table.columns
        if column_has_name_of_role and columns and role not in columns:
            self.notes.append(f"column {role!r} left out: {', '.join(columns)} is read as {role}")
        if column_has_name_of_role and not columns and not headings.has_none_of(role):
            columns = [role]
        return [LabelColumn(column, role, self._label_of_marks(column)) for column in columns]

    def _is_explained_as_no_label(self, column: str) -> bool:
        """Return whether a column holds marks, and the person says that its heading stands for no label."""
        return self._words.is_explained_as_nothing(column) and are_marks(cells_of(self._table, column))

    def _columns_of_annotator(self, name: str) -> list[LabelColumn]:
        """Return the columns that hold an annotator's labels (`label_columns_of`).

        Below a heading such as `Look (AB)`, which has a label beside the name, the cells are marks: they say
        yes or no to Look. So are those below a heading that is as a whole a label, if they look like marks.
        """
        label_columns = []
        for column in label_columns_of(name, self._table.columns, self._words):
            heading = without_name(name, column)  # `Look` of `Look (AB)`
            self._note_heading_read(heading)
            marked_label = self._label_of_marks(column)
            has_name_in_heading = heading != column
            if not marked_label and has_name_in_heading:
                marked_label = label_of_heading(heading, self._words)
            label_columns.append(LabelColumn(column, role_of_heading(heading), marked_label))
        return label_columns

    def _note_heading_read(self, heading: str) -> None:
        """Remember that a heading was read, which may be a label that the person explains."""
        for text in texts_in_heading(heading):
            self._words.note_read(text)

    def _label_of_marks(self, column: str) -> str:
        """Return the label in the heading of a column of marks; "" if the column holds no marks."""
        if not is_of_marks(self._table, column, self._words):
            return ""
        return label_of_heading(column, self._words)

    def _refuse_levels_or_annotators_given_twice(self, headings: Headings) -> None:
        """Refuse columns of single annotators beside a column of levels of all, or one of annotators.

        Raises
        ------
        ManifestError
            The table says in two ways what the levels are, or who gave them.
        """
        other_columns = [label_column.column for label_column in self._shared if label_column.role == "level"]
        if "annotator" in self._table.columns:
            other_columns.append("annotator")
        if self.annotators and other_columns:
            raise ManifestError(
                f"{self._table.path}: --wide {','.join(headings.wide)}: each is an annotator's labels, and "
                f"the table has a column {other_columns[0]} besides: leave one of them out"
            )

    def _add_problems_of_doubtful_signs(self) -> None:
        """Add a problem for a second sign for yes where there is none for no: it may mean no.

        Each sign below may be meant as yes: ✓, x, 1. But in a column of ✓ and x, or of 1 and x, people mean
        yes by one of them and no by the other, and which is which only they know. Ticks and crosses are
        doubtful even if they are in different columns of marks. The sign that comes first in the table is
        taken as yes, and each other one is asked about once.
        """
        marks_of_column = {column: self._unexplained_marks(column) for column in self._columns_of_marks()}
        all_marks = list(chain.from_iterable(marks_of_column.values()))
        first_mark_of_kind = kinds_of_yes(all_marks)

        doubtful_kinds = set[str]()
        for marks in marks_of_column.values():
            kinds_in_column = kinds_of_yes(marks).keys()
            has_sign_for_no = has_no_marks(marks)
            if len(kinds_in_column) > 1 and not has_sign_for_no:
                doubtful_kinds |= kinds_in_column
        has_ticks_and_crosses = {"tick", "cross"} <= first_mark_of_kind.keys()
        if has_ticks_and_crosses and not has_no_marks(all_marks):
            doubtful_kinds |= {"tick", "cross"}

        doubtful_marks = [mark for kind, mark in first_mark_of_kind.items() if kind in doubtful_kinds]
        for mark in doubtful_marks[1:]:
            self._add_problem_of_sign(mark, taken_as_yes=doubtful_marks[0], columns=list(marks_of_column))

    def _columns_of_marks(self) -> list[str]:
        """Return the columns of marks, each once."""
        names = [label_column.column for label_column in self._all_columns if label_column.marked_label]
        return list(dict.fromkeys(names))

    def _unexplained_marks(self, column: str) -> list[str]:
        """Return the filled cells of a column of marks whose meaning the person's options do not explain."""
        marks = []
        for cell in cells_of(self._table, column):
            is_explained = self._words.explained(cell) is not None or self._words.is_yes(cell)
            if not is_explained:
                marks.append(cell)
        return marks

    def _add_problem_of_sign(self, sign: str, *, taken_as_yes: str, columns: Sequence[str]) -> None:
        """Add a problem for the first cell with a sign that may mean yes or no, and no other for its others.

        `taken_as_yes` is another sign for yes in the table, and `columns` are the columns of marks.
        """
        # `--word x=` explains x as no label, which a mark says as no.
        option_for_no = f"--word {shlex.quote(f'{sign}=')}"
        option_for_yes = f"--word {shlex.quote(f'{sign}=yes')}"
        reason = (
            f"{sign!r} stands beside {taken_as_yes!r}, and no sign for no: {option_for_no} if it means no, "
            f"{option_for_yes} if it means yes"
        )
        for row in self._table.rows:
            for column in columns:
                if row.cells[column].strip() == sign:
                    self._table.problems.add(row.line, reason, column)
                    return  # one answer of the person explains all cells with this sign

    @property
    def columns(self) -> list[str]:
        """The columns that labels are read from."""
        return [label_column.column for label_column in self._all_columns]

    @property
    def is_of_marks(self) -> bool:
        """Whether any of the columns holds marks of a label."""
        return any(label_column.marked_label for label_column in self._all_columns)

    def shared_labels(self, row: Row) -> LabelCells:
        """Read the labels of a row from the columns that belong to no single annotator."""
        return self._read_labels(row, self._shared)

    def labels_by(self, row: Row, annotator: str) -> LabelCells | None:
        """Read the labels that an annotator gave in a row, from the annotator's columns and the shared ones.

        None if all of the annotator's cells are empty.
        """
        label_columns = self.annotators[annotator]
        if not any(row.cells[label_column.column].strip() for label_column in label_columns):
            return None
        return self._read_labels(row, [*label_columns, *self._shared])

    def _read_labels(self, row: Row, label_columns: Sequence[LabelColumn]) -> LabelCells:
        """Read the labels of a row from some columns; add cells that cannot be read to the problems."""
        levels: list[str] = []
        concepts: list[str] = []
        for label_column in label_columns:
            cell = composed(row.cells[label_column.column].strip())
            self._words.note_read(cell)
            place = CellPosition(row.line, label_column.column)
            if is_unreadable(cell):
                self._table.problems.add(
                    row.line, f"{cell!r} {CANNOT_BE_READ}", _column_of_problem(label_column)
                )
            elif label_column.marked_label:
                label = label_column.marked_label
                is_level = label in self._words.codebook.level_names
                labels_so_far = levels if is_level else concepts
                if self._is_marked(place, cell, label):
                    labels_so_far.append(label)
            elif label_column.role == "level":
                labels = self._labels_in(place, cell)
                if labels.level:
                    levels.append(labels.level)
                concepts += labels.concepts
            else:
                concepts += self._concepts_in(place, cell)
        return LabelCells(";".join(levels), ";".join(concepts))

    def _is_marked(self, position: CellPosition, cell: str, label: str) -> bool:
        """Return whether a cell says yes to the label in its heading; a cell that is no mark is a problem."""
        if says_yes(cell, label, self._words):
            return True
        if self._words.is_explained_as_nothing(cell):
            return False  # the person says so, even of a usual sign for yes
        says_no = plain(cell) in NO or self._words.is_no_concept(cell)
        if cell and not says_no:
            yes = shlex.quote(f"{cell}={label}")
            no = shlex.quote(f"{cell}=")
            remedy = f"--word {yes} where it is there, --word {no} where it is not"
            self._table.problems.add(
                position.line, f"{cell!r} is neither yes nor no: {remedy}", position.column
            )
        return False

    def _labels_in(self, position: CellPosition, cell: str) -> Labels:
        """Return the level and concepts that a cell of a column of levels holds.

        A cell that is as a whole one level, such as `not sure`, is that. Any other is divided into its
        labels, as it may hold concepts besides its level, or in place of it (`has_single_labels` is true
        then). Words that people write for no level are no label; an unknown word is a problem besides.
        """
        no_labels = Labels("", ())
        words = self._words
        if not cell or words.is_no_level(cell):
            return no_labels
        level = words.level_of(cell)
        if level:
            self._count_respelled(cell, level)
            return Labels(level, ())
        labels = words.labels_of(cell)
        if labels is None:
            self._note_unknown_word(position, cell, words.codebook.level_spelled)
            return no_labels
        if not labels.level:
            self.has_single_labels = True
        return labels

    def _concepts_in(self, position: CellPosition, cell: str) -> list[str]:
        """Return the concepts that a cell lists, by the codebook's names; an unknown word is a problem."""
        words = self._words
        if not cell or words.is_no_concept(cell):
            return []
        concepts = []
        for text in words.parts_of(cell):
            name = words.concept_of(text)
            if name:
                self._count_respelled(text, name)
                concepts.append(name)
            elif not words.is_no_concept(text):
                self._note_unknown_word(position, text, words.codebook.concept_spelled)
        return concepts

    def _note_unknown_word(self, position: CellPosition, text: str, look_up: Callable[[str], str]) -> None:
        """Add a problem for a word that the codebook does not have, with the option that explains it.

        `look_up` is the codebook's look-up of a level or a concept. It refuses the word, and its error names
        the labels nearest to it.
        """
        try:
            look_up(text)
        except ManifestError as refusal:
            remedy = f"; or say what it stands for: --word {shlex.quote(f'{text}=LABEL')}"
            self._table.problems.add(position.line, f"{refusal}{remedy}", position.column)

    def _count_respelled(self, text: str, name: str) -> None:
        """Count a text that was read as the label `name`, if the codebook spells that differently."""
        if name != text:
            self.respelled[text, name] += 1


def _column_of_problem(label_column: LabelColumn) -> str:
    """Return the column that a message names: `level` or `concepts` if it holds marks, else its heading."""
    if label_column.marked_label:
        return label_column.role
    return label_column.column
