"""Write the decisions of a ledger as tables, and take in what was edited in the tables elsewhere.

A table states what stands. A row that is a line as it was written says nothing new, and no other row of the
table stands in that line's place. Of the rows that name a line and say otherwise the first one of the same
person stands in its place; every further one is a decision of its own, as every row without an id is.
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
from obygaze_film.workspace.rules import FIXED, SPAN, Cells, FilmRules

NOTES: Final = "notes.csv"

COLUMNS: Final = {
    JUDGEMENTS: (*FIELDS, SEEN_SCORE, "judgement", DRAW, PLACE, LAW, SEED, CONTENT_S, FIXED, "judged_at"),
    PASSAGES: (*FIELDS, SEEN_SCORE, "origin", "judged_at"),
    NOTES: ("clip_id", "movie", "start_s", "end_s", "annotator", "note", "written_at"),
    SETTLED: (*FIELDS, SEEN_SCORE, PARENTS, "judged_at"),
}
"""Of each table, in a scored film's folder; further columns that a table comes with are kept."""

KINDS: Final = {"judgement": JUDGEMENTS, "passage": PASSAGES, "note": NOTES, "agreed": SETTLED}
"""Kind of decision -> its table."""

State = tuple[int, int, int] | None

HELD_STATE: Final = (0, 0, 0)
"""State of a table that can't be read, so that it is tried again."""


def state_of(path: Path) -> State:
    """Return what tells whether a file was changed or replaced; None without one."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


class ExportedTable:
    """A table of one kind of decisions, as it was written or read last.

    Parameters
    ----------
    folder : Path
    kind : str

    Attributes
    ----------
    path : Path
    text : str
        As it was written here; empty where the file is another.
    is_held : bool
        Whether the file can't be read, and is left as it is until it is mended.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind = kind
        self.path = folder / KINDS[kind]
        self.text = ""
        self.is_held = False
        self._state: State = None

    def is_edited(self) -> bool:
        """Whether the file is another than the one that was written or read last."""
        return state_of(self.path) != self._state

    def was_read(self, state: State, text: str = "") -> None:
        """Remember the file as it was read."""
        self._state, self.text, self.is_held = state, text, False

    def hold(self) -> None:
        """Leave the file as it is, and try it again."""
        self._state, self.text, self.is_held = HELD_STATE, "", True

    def write(self, text: str, *, is_empty: bool) -> None:
        """Write the table, unless it is so already, is held, or was edited just now: that is read first.

        Raises
        ------
        OSError
            It is as it was.
        """
        is_written = self.text == text if self._state else is_empty
        if self.is_held or is_written or state_of(self.path) != self._state:
            return
        write_whole(self.path, text, links=False)  # a stranger's folder
        self._state, self.text = state_of(self.path), text


class Decision(NamedTuple):
    """A line that stands, and the definition that it was decided under."""

    line: Line
    definition: str


def table_text(kind: str, decisions: Sequence[Decision]) -> str:
    """Write decisions as a table; the last column is the definition, if any says under which it was made."""
    columns = [*COLUMNS[KINDS[kind]]]
    columns += sorted({name for line, _ in decisions for name in line.row}.difference(columns, [DEFINITION]))
    if any(definition for _, definition in decisions):
        columns.append(DEFINITION)
    lines = [sheet_line(columns)]
    for line, definition in decisions:
        cells = {**line.row, "clip_id": line.id, DEFINITION: definition}
        lines.append(sheet_line([cells.get(name, "") for name in columns]))
    return "".join(lines)


class TakenIn(NamedTuple):
    """What a table says that the ledger does not.

    Attributes
    ----------
    rows : list of FileRow
        All rows.
    new : list of TableRow or None
        Of each row what it says that is new.
    beside : list of RowBeside
    """

    rows: list[FileRow]
    new: list[TableRow | None]
    beside: "list[RowBeside]"


class RowBeside(NamedTuple):
    """A row that names a line in whose place it can't stand: a decision of its own."""

    number: int
    annotator: str
    line: Line


def read_edited(
    table: ExportedTable,
    rules: FilmRules,
    decisions: Mapping[str, Decision],
    standing: Iterable[str],
    meanings: Meanings,
) -> TakenIn:
    """Read a table that was edited elsewhere.

    Parameters
    ----------
    table
    rules
    decisions
        By id, all that the ledger has, whether they stand or not.
    standing
        Ids of those that stand.
    meanings
        By which the definitions of rows are compared.

    Raises
    ------
    ManifestError
        It has not the columns of such a table, or nonsense in a row; names file and line.
    """
    kind = table.kind
    file = read_table(table.path, (*SPAN, "note") if kind == "note" else (*FIELDS, SEEN_SCORE))
    rows = [*file.timed()]
    written = [_written(row, rules, meanings) for row in rows]
    stand = {_frozen(decisions[name].line.row) for name in standing}
    is_there = {
        name for name, cells in written if name in decisions and _says_the_same(cells, decisions[name])
    }
    new: list[TableRow | None] = []
    beside = []
    for row, (name, cells) in zip(rows, written, strict=True):
        known = decisions.get(name)
        if known is not None and _says_the_same(cells, known):
            new.append(None)
            continue
        if known is None and _frozen(_without_definition(cells)) in stand:  # a row that lost its id
            new.append(None)
            continue
        own = _checked(kind, cells, rules, file.problems, row.line)
        if known is None:
            new.append(TableRow(own))
        elif name in is_there or known.line.annotator != own.get("annotator", ""):
            beside.append(RowBeside(row.line, own.get("annotator", ""), known.line))
            new.append(TableRow(own))
        else:
            is_there.add(name)  # a second row with this id is a decision of its own
            new.append(TableRow(own, name))
    file.problems.refuse()
    return TakenIn(rows, new, beside)


def _written(row: FileRow, rules: FilmRules, meanings: Meanings) -> tuple[str, Cells]:
    """Return the id that a row names, and its cells as the ledger writes them, none empty."""
    cells = {name: " ".join(cell.split()) for name, cell in row.cells.items() if cell.strip()}
    for column in ("start_s", "end_s"):
        if column in cells:
            cells[column] = f"{float(cells[column]):.10g}"
    movie = cells.get("movie", "")
    cells["movie"] = find_film(movie, [rules.film.movie]) or movie
    if DEFINITION in cells:
        cells[DEFINITION] = meanings.of(cells[DEFINITION])
    name = cells.pop("clip_id", "")
    return name if re.fullmatch(ID, name) else "", {name: cell for name, cell in cells.items() if cell}


def _without_definition(cells: Mapping[str, str]) -> Cells:
    return {name: cell for name, cell in cells.items() if name != DEFINITION}


def _says_the_same(cells: Mapping[str, str], known: Decision) -> bool:
    """Whether a row is a line as it is exported; a spreadsheet may have lost the column of definitions."""
    if cells.get(DEFINITION, known.definition) != known.definition:
        return False
    return _without_definition(cells) == _without_definition(known.line.row)


def _checked(kind: str, cells: Cells, rules: FilmRules, problems: Problems, line: int) -> Cells:
    """Check a row, and write its labels as the codebook does."""
    clip = rules.checked(kind, cells, "new", problems, line)
    if clip is None or kind == "note":
        return cells
    labels = {"level": clip.level or "", "concepts": ";".join(clip.concepts)}
    labels[SEEN_SCORE] = clip.extras[SEEN_SCORE]
    return {name: cell for name, cell in (cells | labels).items() if cell}


def _frozen(cells: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(cells.items())
