"""Write the decisions of a ledger as tables, and take in what was edited in the tables elsewhere.

A table lists the decisions that stand. Each of its rows names the id of a line of the ledger. A row that says
what its line says is nothing new, also if its numbers have other digits (1.0 for 1), and then no other row of
the table replaces that line. Among the rows that name a line and say something else, the first one of the
line's own annotator replaces it, unless only one of them is a blind judgement. Every further one is a new
decision, and so is every row without an id.
"""

import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from obygaze_features.io import write_whole
from obygaze_features.lines import sheet_line
from obygaze_features.manifest import (
    CONTENT_S,
    DEFINITION,
    FIELDS,
    PLACE,
    SEEN_SCORE,
    Problems,
    find_film,
    read_table,
)
from obygaze_features.manifest import Row as FileRow
from obygaze_features.text import number_of
from obygaze_film.coverage import SLACK_S
from obygaze_film.draws import LAW, SEED
from obygaze_film.scored_files import JUDGEMENTS, PASSAGES, SETTLED
from obygaze_film.windows_to_judge import DRAW
from obygaze_film.workspace.authority import are_judged_likewise
from obygaze_film.workspace.definitions import Meanings
from obygaze_film.workspace.ledger import TableRow
from obygaze_film.workspace.ledger_lines import ID, PARENTS, Line
from obygaze_film.workspace.rules import PLANNED, REQUIRED, Cells, FilmRules

NOTES: Final = "notes.csv"

COLUMNS: Final = {
    JUDGEMENTS: (*FIELDS, SEEN_SCORE, "judgement", DRAW, PLACE, LAW, SEED, CONTENT_S, PLANNED, "judged_at"),
    PASSAGES: (*FIELDS, SEEN_SCORE, "origin", "judged_at"),
    NOTES: ("clip_id", "movie", "start_s", "end_s", "annotator", "note", "written_at"),
    SETTLED: (*FIELDS, SEEN_SCORE, PARENTS, "judged_at"),
}
"""Columns of each table in a scored film's folder; further columns that people add to a table are kept."""

KINDS: Final = {"judgement": JUDGEMENTS, "passage": PASSAGES, "note": NOTES, "agreed": SETTLED}
"""Kind of decision -> its table."""

COLUMNS_OF_DRAW: Final = (DRAW, PLACE, LAW, SEED, CONTENT_S, PLANNED)
"""Columns that say how the window of a blind judgement was drawn."""

State = tuple[int, int, int] | None

STATE_OF_NO_FILE: Final = (0, 0, 0)
"""A state that no file has: a table with this state counts as edited."""


def state_of(path: Path) -> State:
    """Return a file's state, which differs once the file was changed or replaced; None without a file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


class ExportedTable:
    """The file of one kind of decisions, and its state when it was written or read last.

    Parameters
    ----------
    folder : Path
        The scored film's folder.
    kind : str
        Kind of the decisions.

    Attributes
    ----------
    path : Path
    text : str
        The file's text as it was written here; empty if somebody else wrote the file.
    is_unreadable : bool
        Whether the file can't be read; it is left as it is until somebody mends it.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        """Name the table's file; nothing is read or written yet.

        As no state of the file is known, a file that is there counts as edited and is read first.
        """
        self.kind = kind  # of the decisions in the table, such as "passage"
        self.path = folder / KINDS[kind]
        self.text = ""  # as it was written here last
        self.is_unreadable = False
        # State of the file (inode, size, time) when it was written or read last; None if there was no file.
        self._state: State = None

    def is_edited(self) -> bool:
        """Whether the file was changed or replaced since it was written or read last."""
        return state_of(self.path) != self._state

    def remember(self, state: State, text: str = "") -> None:
        """Remember the state in which the file was read, so that the same edits are not read again.

        Parameters
        ----------
        state : tuple of int or None
            State of the file (`state_of`); None if it was deleted.
        text : str
            The file's text if it is what would be written here, so that it need not be written again.
        """
        self._state = state
        self.text = text
        self.is_unreadable = False

    def mark_unreadable(self) -> None:
        """Remember that the file can't be read: it is left as it is, and tried again until it can be.

        It counts as edited (`is_edited`), as the state that is remembered of it is one that no file has.
        """
        self._state = STATE_OF_NO_FILE
        self.text = ""
        self.is_unreadable = True

    def write(self, text: str, *, is_empty: bool) -> None:
        """Write the table's text to the file, unless nothing is to be written now.

        Raises
        ------
        OSError
            The file could not be written; its former content is still there.
        """
        if self.is_unreadable:
            return  # the user is asked to mend it
        has_file = self._state is not None
        if has_file and self.text == text:
            return
        if not has_file and is_empty:
            return  # a table without decisions needs no file
        if self.is_edited():
            return  # the edits are read first
        write_whole(self.path, text, links=False)  # follows no links: the folder may come from a stranger
        self._state = state_of(self.path)
        self.text = text


class Decision(NamedTuple):
    """A line of the ledger, and the definition that it was decided under."""

    line: Line
    definition: str


def table_text(kind: str, decisions: Sequence[Decision]) -> str:
    """Write decisions of a kind as a table (CSV).

    Its columns are those of the kind, then those that people added to tables. The last column is that of the
    definitions; it is left out if no definition is known.
    """
    columns_of_kind = COLUMNS[KINDS[kind]]
    added_columns: set[str] = set()  # by people
    for decision in decisions:
        added_columns.update(decision.line.row)
    added_columns -= {*columns_of_kind, DEFINITION}
    columns = [*columns_of_kind, *sorted(added_columns)]
    if any(decision.definition for decision in decisions):
        columns.append(DEFINITION)

    lines = [sheet_line(columns)]
    for decision in decisions:
        cells = {**decision.line.row, "clip_id": decision.line.id, DEFINITION: decision.definition}
        lines.append(sheet_line([cells.get(name, "") for name in columns]))
    return "".join(lines)


class EditedTable(NamedTuple):
    """An edited table, compared with the ledger.

    Attributes
    ----------
    rows : list of FileRow
        All rows of the table.
    new_decisions : list of TableRow or None
        For each row the new decision that it gives; None if it gives none.
    further_rows : list of FurtherRow
        Rows that name a line and may not replace it.
    """

    rows: list[FileRow]
    new_decisions: list[TableRow | None]
    further_rows: "list[FurtherRow]"


class FurtherRow(NamedTuple):
    """A row that names a line which it may not replace: it becomes a further decision, and both stand.

    Attributes
    ----------
    number : int
        Number of the row's line in the table's file.
    annotator : str
        Who decided what the row says.
    line : Line
        The ledger's line that the row names.
    """

    number: int
    annotator: str
    line: Line


def read_edited(
    table: ExportedTable,
    rules: FilmRules,
    decisions: Mapping[str, Decision],
    standing_ids: Iterable[str],
    meanings: Meanings,
) -> EditedTable:
    """Read a table that was edited elsewhere, and find in it what the ledger does not say yet.

    A row may hold the id of a decision, which it names. There are four kinds of rows:

    - a row that repeats the decision that it names (or, without an id, any that stands) is nothing new;
    - a row that names no decision is a new one;
    - a row that differs from the decision that it names replaces it;
    - if it may not replace it, as it is by another person, was judged otherwise (blindly or not), or another
      row repeats or replaces the same decision, it is a new decision beside it.

    Parameters
    ----------
    table
    rules
        Rules that each new row is checked by.
    decisions
        Id -> decision, for all decisions of the table's kind in the ledger, whether they stand or not.
    standing_ids
        Ids of the decisions that stand.
    meanings
        Tells which definitions count as the same.

    Raises
    ------
    ManifestError
        The table lacks columns, or a row is no valid decision; the message names file and line.
    """
    # Read the table, and write its rows as the ledger would.
    kind = table.kind
    needed_columns = (*REQUIRED, "note") if kind == "note" else (*FIELDS, SEEN_SCORE)
    file = read_table(table.path, needed_columns)
    rows = list(file.timed())
    normalised_rows = []
    for row in rows:
        normalised = _normalised(row, rules, meanings)
        normalised_rows.append(_with_digits_of_line(normalised, decisions.get(normalised.line_id)))

    # Compare each row with the ledger. A decision is used up, and no row may replace it, if some row repeats
    # it unchanged, wherever that row stands, or an earlier row has replaced it.
    standing_cells = {_frozen(decisions[line_id].line.row) for line_id in standing_ids}
    used_up_ids = _ids_repeated(normalised_rows, decisions)
    new_decisions: list[TableRow | None] = []  # an entry for each row; None for one that says nothing new
    further_rows = []
    for row, normalised in zip(rows, normalised_rows, strict=True):
        named = decisions.get(normalised.line_id)  # the decision whose id the row has
        if _is_nothing_new(normalised.cells, named, standing_cells):
            new_decisions.append(None)
            continue

        cells = _checked(kind, normalised.cells, rules, file.problems, row.line)
        annotator = cells.get("annotator", "")
        if named is None:
            new_decisions.append(TableRow(cells))
            continue

        cells = _without_draw_of_other_span(cells, named.line)
        is_same_annotator = named.line.annotator == annotator
        is_judged_likewise = kind != "judgement" or are_judged_likewise(cells, named.line.row)
        may_replace = is_same_annotator and is_judged_likewise and named.line.id not in used_up_ids
        if may_replace:
            used_up_ids.add(named.line.id)
            new_decisions.append(TableRow(cells, replaces=named.line.id))
        else:  # both decisions stand
            further_rows.append(FurtherRow(row.line, annotator, named.line))
            new_decisions.append(TableRow(cells))

    file.problems.refuse()  # raises the problems that were found in rows, if there are any
    return EditedTable(rows, new_decisions, further_rows)


class _NormalisedRow(NamedTuple):
    """A row of a table, written as the ledger would write it.

    Attributes
    ----------
    line_id : str
        Id of the line that the row names; empty if it names none.
    cells : dict
        Column -> cell, without the id and without empty cells.
    """

    line_id: str
    cells: Cells


def _normalised(row: FileRow, rules: FilmRules, meanings: Meanings) -> _NormalisedRow:
    """Write a row of a table as the ledger would, so that the two can be compared.

    The rules have the film, whose name the row may spell otherwise. The meanings tell which digest stands for
    all definitions of one meaning.
    """
    # Text: single blanks between words
    cells = {name: " ".join(cell.split()) for name, cell in row.cells.items()}
    # Times: as many digits as a person's decision has (`FilmRules.row_of`)
    for column in ("start_s", "end_s"):
        if cells.get(column):
            cells[column] = f"{float(cells[column]):.10g}"
    # Film: the id as the scored film has it
    movie = cells.get("movie", "")
    cells["movie"] = find_film(movie, [rules.film.movie]) or movie
    # Definition: one digest for all that mean the same
    if cells.get(DEFINITION):
        cells[DEFINITION] = meanings.representative(cells[DEFINITION])
    named_id = cells.pop("clip_id", "")
    line_id = named_id if re.fullmatch(ID, named_id) else ""
    return _NormalisedRow(line_id, {column: cell for column, cell in cells.items() if cell})


def _with_digits_of_line(row: _NormalisedRow, named: Decision | None) -> _NormalisedRow:
    """Write the numbers of a row as the line that it names has them, where they are the same numbers.

    Spreadsheets and data frames write 1 as 1.0 or 1,0, and 01 as 1: such a row says what its line says.
    """
    if named is None:
        return row
    cells = {}
    for column, cell in row.cells.items():
        cell_of_line = named.line.row.get(column, "")
        is_same_number = _number_in(cell) == _number_in(cell_of_line)  # False for NaN
        cells[column] = cell_of_line if is_same_number else cell
    return _NormalisedRow(row.line_id, cells)


def _number_in(cell: str) -> float:
    """Return the number that a cell holds, with a decimal point or comma; NaN if it holds none."""
    return number_of(cell.replace(",", "."))


def _is_nothing_new(
    cells: Cells, named: Decision | None, standing_cells: Container[frozenset[tuple[str, str]]]
) -> bool:
    """Whether a row says what the ledger says already.

    It repeats the decision that it names. If it names none, as its id was lost, it repeats some decision that
    stands.

    Parameters
    ----------
    cells : dict
        The row's cells by column, without its id.
    named : Decision or None
        The decision that the row names; None if it names none.
    standing_cells : container
        Cells of all decisions that stand, in the form that `_frozen` gives them.
    """
    if named is not None:
        return _says_the_same(cells, named)
    return _frozen(_without_definition(cells)) in standing_cells


def _ids_repeated(rows: Iterable[_NormalisedRow], decisions: Mapping[str, Decision]) -> set[str]:
    """Return the ids of the decisions that some row names and repeats unchanged."""
    ids = set()
    for row in rows:
        named = decisions.get(row.line_id)
        if named is not None and _says_the_same(row.cells, named):
            ids.add(named.line.id)
    return ids


def _without_definition(cells: Mapping[str, str]) -> Cells:
    """Return a row's cells except that of the definition."""
    return {name: cell for name, cell in cells.items() if name != DEFINITION}


def _says_the_same(cells: Mapping[str, str], named: Decision) -> bool:
    """Whether a row has the cells of the decision that it names.

    A missing definition counts as the same, because a spreadsheet may have lost its column.
    """
    has_other_definition = DEFINITION in cells and cells[DEFINITION] != named.definition
    if has_other_definition:
        return False
    return _without_definition(cells) == _without_definition(named.line.row)


def _checked(kind: str, cells: Cells, rules: FilmRules, problems: Problems, line: int) -> Cells:
    """Check a row, and return its cells with the level and the concepts spelled as in the codebook.

    Problems of the row are added to `problems`, under the number of its line in the file; its cells are then
    returned as they are, and so are those of a note, which has no level and no concepts. Empty cells are left
    out, as the ledger writes none.
    """
    # The clip that the row describes; None if it has a problem. It has no id yet ("new").
    clip = rules.checked(kind, cells, "new", problems, line)
    if clip is None or kind == "note":
        return cells

    # A row may have synonyms of concepts, or "1.0" in the column `seen_score`: in `clip` they are spelled as
    # in the codebook and the ledger.
    spelled = {
        "level": clip.level or "",
        "concepts": ";".join(clip.concepts),
        SEEN_SCORE: clip.extras[SEEN_SCORE],
    }
    return {name: cell for name, cell in (cells | spelled).items() if cell}


def _without_draw_of_other_span(cells: Cells, named: Line) -> Cells:
    """Drop from a row the columns on the draw of its window, if its times are not those of its decision.

    A row has the id of a decision, and with it the place in the draw of that decision's window. If its times
    are others, the row was copied for another window, or its times were changed, and so the place is wrong:
    two windows at one place would be refused by whatever reads the table.

    Parameters
    ----------
    cells
        The row's cells by column.
    named
        The line of the decision whose id the row has.
    """
    starts_there = _is_same_time(cells.get("start_s", ""), named.row.get("start_s", ""))
    ends_there = _is_same_time(cells.get("end_s", ""), named.row.get("end_s", ""))
    if starts_there and ends_there:
        return cells
    return {name: cell for name, cell in cells.items() if name not in COLUMNS_OF_DRAW}


def _is_same_time(cell: str, other_cell: str) -> bool:
    """Whether two cells are one time, to the precision of windows; False if one of them is no number."""
    return abs(number_of(cell) - number_of(other_cell)) <= SLACK_S  # False for NaN


def _frozen(cells: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return a row's cells in a form that can be an element of a set, in which equal numbers are one text."""
    frozen_cells = set()
    for column, cell in cells.items():
        number = _number_in(cell)
        frozen_cells.add((column, cell if math.isnan(number) else f"{number:.15g}"))
    return frozenset(frozen_cells)
