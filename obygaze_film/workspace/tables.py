"""Write the decisions of a ledger as tables, and take in what was edited in the tables elsewhere.

A table lists the decisions that stand. Each of its rows names the id of a line of the ledger. A row that says
what its line says is nothing new, and then no other row of the table replaces that line. Among the rows that
name a line and say something else, the first one of the line's own annotator replaces it. Every further one
is a new decision, and so is every row without an id.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
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
from obygaze_film.draws import LAW, SEED
from obygaze_film.scored_files import JUDGEMENTS, PASSAGES, SETTLED
from obygaze_film.windows_to_judge import DRAW
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
        self.kind = kind
        self.path = folder / KINDS[kind]
        self.text = ""
        self.is_unreadable = False
        self._state: State = None  # of the file when it was written or read last; None if there was none

    def is_edited(self) -> bool:
        """Whether the file was changed or replaced since it was written or read last."""
        return state_of(self.path) != self._state

    def remember(self, state: State, text: str = "") -> None:
        """Remember the state in which the file was read, and its text if that is as it was written here."""
        self._state = state
        self.text = text
        self.is_unreadable = False

    def mark_unreadable(self) -> None:
        """Remember that the file can't be read: it is not written, and `is_edited` lets it be read again."""
        self._state = STATE_OF_NO_FILE
        self.text = ""
        self.is_unreadable = True

    def write(self, text: str, *, is_empty: bool) -> None:
        """Write the table's text to the file.

        Nothing is written if the file has this text already, if it can't be read, or if somebody edited it
        just now: the edits are read first. A table without decisions (`is_empty`) makes no new file.

        Raises
        ------
        OSError
            The file could not be written; it is as it was.
        """
        has_file = self._state is not None
        is_up_to_date = has_file and self.text == text
        needs_no_file = not has_file and is_empty
        if self.is_unreadable or is_up_to_date or needs_no_file or self.is_edited():
            return
        write_whole(self.path, text, links=False)  # follows no links: the folder may come from a stranger
        self._state, self.text = state_of(self.path), text


class Decision(NamedTuple):
    """A line of the ledger, and the definition that it was decided under."""

    line: Line
    definition: str


def table_text(kind: str, decisions: Sequence[Decision]) -> str:
    """Write decisions as a table.

    Its columns are those of the kind, then those that people added to tables, and last that of the
    definitions, if any definition is known.
    """
    columns_of_kind = COLUMNS[KINDS[kind]]
    all_columns = {name for decision in decisions for name in decision.line.row}
    columns = [*columns_of_kind, *sorted(all_columns.difference(columns_of_kind, [DEFINITION]))]
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
    """Read a table that was edited elsewhere, and compare its rows with the ledger.

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
    kind = table.kind
    needed_columns = (*REQUIRED, "note") if kind == "note" else (*FIELDS, SEEN_SCORE)
    file = read_table(table.path, needed_columns)
    rows = list(file.timed())
    ids_and_cells = [_id_and_cells(row, rules, meanings) for row in rows]
    # Lines that no row may replace any more: first those that some row repeats unchanged (it may come after
    # a row that says something else), then also those that a row has replaced.
    unreplaceable_ids = _ids_repeated(ids_and_cells, decisions)
    cells_of_standing = {_frozen(decisions[line_id].line.row) for line_id in standing_ids}
    new_decisions: list[TableRow | None] = []
    further_rows = []
    for row, (line_id, cells) in zip(rows, ids_and_cells, strict=True):
        named = decisions.get(line_id)
        if named is not None:
            says_nothing_new = _says_the_same(cells, named)
        else:  # a row whose id was lost may still be one of a standing decision
            says_nothing_new = _frozen(_without_definition(cells)) in cells_of_standing
        if says_nothing_new:
            new_decisions.append(None)
            continue
        checked_cells = _checked(kind, cells, rules, file.problems, row.line)
        annotator = checked_cells.get("annotator", "")
        replaced_id = ""
        if named is not None:
            is_same_annotator = named.line.annotator == annotator
            if is_same_annotator and line_id not in unreplaceable_ids:
                replaced_id = line_id
                unreplaceable_ids.add(line_id)
            else:
                further_rows.append(FurtherRow(row.line, annotator, named.line))
        new_decisions.append(TableRow(checked_cells, replaces=replaced_id))
    file.problems.refuse()
    return EditedTable(rows, new_decisions, further_rows)


def _ids_repeated(ids_and_cells: Iterable[tuple[str, Cells]], decisions: Mapping[str, Decision]) -> set[str]:
    """Return the ids of the decisions that some row names and repeats unchanged."""
    ids = set()
    for line_id, cells in ids_and_cells:
        if line_id in decisions and _says_the_same(cells, decisions[line_id]):
            ids.add(line_id)
    return ids


def _id_and_cells(row: FileRow, rules: FilmRules, meanings: Meanings) -> tuple[str, Cells]:
    """Return the id that a row names, and its other cells as the ledger writes them, without empty ones.

    The id is empty if the row names none that could be a line's.
    """
    cells = {name: " ".join(cell.split()) for name, cell in row.cells.items() if cell.strip()}
    for column in ("start_s", "end_s"):
        if column in cells:
            cells[column] = f"{float(cells[column]):.10g}"
    movie = cells.get("movie", "")
    cells["movie"] = find_film(movie, [rules.film.movie]) or movie
    if DEFINITION in cells:
        cells[DEFINITION] = meanings.of(cells[DEFINITION])
    named_id = cells.pop("clip_id", "")
    line_id = named_id if re.fullmatch(ID, named_id) else ""
    return line_id, {column: cell for column, cell in cells.items() if cell}


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

    What is wrong with the row is added to `problems`, under the number of its line in the file.
    """
    clip = rules.checked(kind, cells, "new", problems, line)
    has_labels = kind != "note"
    if clip is None or not has_labels:
        return cells
    # A row may have synonyms of concepts, or "1.0" in the column `seen_score`: in `clip` they are spelled as
    # in the codebook and the ledger.
    spelled = {
        "level": clip.level or "",
        "concepts": ";".join(clip.concepts),
        SEEN_SCORE: clip.extras[SEEN_SCORE],
    }
    return {name: cell for name, cell in (cells | spelled).items() if cell}


def _frozen(cells: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return a row's cells in a form that can be an element of a set."""
    return frozenset(cells.items())
