"""Describe the lines of a ledger: what one of them says, and how lines are named and ordered."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from obygaze_film.draws import Draw

ID: Final = "[0-9a-f]{16}-[1-9][0-9]{0,8}"
"""Pattern of a line's id: the name of its sitting (its file), and its number in it."""

LATEST: Final = 2**53
"""Highest possible clock: readers of JSON hold whole numbers up to this one exactly."""

MAX_CLOCK_LEAD: Final = 2**32
"""How far a line's clock may be above its number in its file: more lines than any ledger has."""

HEADERS: Final = ("sitting", "table")
"""Kinds of a file's first line: `sitting` of a person at the desk, `table` of a table edited elsewhere."""

DECISIONS: Final = ("judgement", "passage", "note", "agreed")
"""Kinds of decisions; `agreed` settles what several people differed on."""

PARENTS: Final = "parents"
"""Column of what was agreed: the ids of the decisions that it settles, joined by semicolons."""

Id = Annotated[str, msgspec.Meta(pattern=f"^{ID}$")]


class StoredCodebook(msgspec.Struct, frozen=True):
    """The codebook under which the decisions of a file of the ledger were made.

    Attributes
    ----------
    definition
        Digest of the definitions that judges read (`Codebook.definition`). Anybody may have written it: it is
        computed from `text` again where it counts (`definitions.codebook_in`).
    text
        Content of the codebook's file (TOML).
    """

    definition: str
    text: str


class Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """Facts about all lines of a file of the ledger, in its first line.

    Later versions may add fields here, with a default that means "not stated". Readers ignore fields that
    they do not know. Files of earlier versions have no header.

    Attributes
    ----------
    codebook
        The codebook of the file's decisions.
    same_meaning
        Digests of further definitions that mean the same, as the person declared who began the file.
    draw
        The draw of its windows: method of sampling, seed, and each window's content at the draw.
    """

    codebook: StoredCodebook | None = None
    same_meaning: tuple[str, ...] = ()
    draw: Draw | None = None


class Line(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A line of a ledger.

    Attributes
    ----------
    id
        Name of its file and number in it (`ID`).
    clock
        One above the highest clock that its process had read (Lamport clock): a decision has a higher clock
        than all those that its author could see.
    kind
        One of `DECISIONS`; `undo`, which takes lines back, also other `undo` lines; or one of `HEADERS`.
    row
        Column -> cell, none empty: `annotator`, time, movie, span, level, concepts, whether the score was in
        sight, note.
    replaces
        Ids of the lines that it asks to replace or to take back; `authority.in_force` decides whether it may.
    header
        Facts about all lines of its file; None in all lines but the first.
    """

    id: Id
    clock: Annotated[int, msgspec.Meta(ge=1, le=LATEST)]
    kind: Literal["judgement", "passage", "note", "agreed", "undo", "table", "sitting"]
    row: Mapping[str, str]
    replaces: tuple[Id, ...] = ()
    header: Header | None = None

    @property
    def sitting(self) -> str:
        """Name of the line's file without the suffix: the first part of the id."""
        return split_id(self.id).sitting

    @property
    def number(self) -> int:
        """The line's number in its file, from 1 on: the second part of the id."""
        return split_id(self.id).number

    @property
    def annotator(self) -> str:
        """Who decided it; empty in headers."""
        return self.row.get("annotator", "")

    @property
    def parents(self) -> tuple[str, ...]:
        """Ids of the decisions that an agreed decision settles; none for other kinds."""
        return parent_ids_of(self.row)

    @property
    def has_reasonable_clock(self) -> bool:
        """Whether the clock is at most `MAX_CLOCK_LEAD` above the number, as in lines that obygaze wrote.

        A line with an arbitrary clock must not raise the clocks of all later lines: there might be none left.
        """
        return self.clock <= self.number + MAX_CLOCK_LEAD


class IdParts(NamedTuple):
    """The parts of a line's id: the name of its file without the suffix, and its number in the file."""

    sitting: str
    number: int


def split_id(line_id: str) -> IdParts:
    """Split the id of a line.

    Examples
    --------
    >>> from obygaze_film.workspace.ledger_lines import split_id
    >>> split_id("0123456789abcdef-6")
    IdParts(sitting='0123456789abcdef', number=6)
    """
    sitting, _, number = line_id.partition("-")
    return IdParts(sitting, int(number))


def parent_ids_of(row: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ids of the decisions that an agreed decision settles; none for other kinds of decisions.

    `row` has the cells of a line of the ledger by column. The ids stand in one cell, joined by semicolons.
    """
    cell = row.get(PARENTS, "")
    return tuple(parent_id for parent_id in cell.split(";") if parent_id)


def in_order(line: Line) -> tuple[int, str, int]:
    """Return the key by which lines of several files are sorted, the earliest first.

    A line written after another was read has a higher clock. Lines of two files that were written at the same
    time may have equal clocks: they are sorted by file and number, so that every reader has the same order.
    """
    return line.clock, line.sitting, line.number
