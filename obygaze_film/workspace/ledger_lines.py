"""Describe the lines of a ledger: what one of them says, and how lines are named and ordered."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from obygaze_film.draws import Draw

ID: Final = "[0-9a-f]{16}-[1-9][0-9]{0,8}"
"""Name of a sitting, and the number of a line in it."""

LATEST: Final = 2**53
"""Highest clock, which JSON's readers hold exactly."""

MOST_AHEAD: Final = 2**32
"""How far a clock may be above its line's number; no ledger has as many lines."""

HEADERS: Final = ("sitting", "table")
"""Kinds of a sitting's first line: of a person at the desk, or of a table that was edited elsewhere."""

DECISIONS: Final = ("judgement", "passage", "note", "agreed")
"""Kinds of what people decide; `agreed` settles what several people differed on."""

PARENTS: Final = "parents"
"""Column of what was agreed: the ids of the decisions that it settles, joined by semicolons."""

Id = Annotated[str, msgspec.Meta(pattern=f"^{ID}$")]


class StoredCodebook(msgspec.Struct, frozen=True):
    """The definitions under which a sitting's decisions were made.

    Attributes
    ----------
    definition
        Digest of what judges read (`Codebook.definition`). It is computed anew where it counts: a line may
        claim any.
    text
        The codebook as a codebook file.
    """

    definition: str
    text: str


class Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a sitting says of itself, once, in its first line.

    It is a record that grows: a further fact is a further field here, with a default that means "this sitting
    does not say". Readers pass over fields that they do not know. A sitting of an earlier version has no
    header, and says nothing.

    Attributes
    ----------
    codebook
        Of the sitting's decisions.
    same_meaning
        Digests of further definitions that mean the same, as the person declared who began the sitting.
    draw
        By which its windows were drawn: law, seed, and each window's content at the draw.
    """

    codebook: StoredCodebook | None = None
    same_meaning: tuple[str, ...] = ()
    draw: Draw | None = None


class Line(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A line of a ledger.

    Attributes
    ----------
    clock
        One above the highest that its sitting had read: what was decided in sight of a line comes after it.
    kind
        One of `DECISIONS`; `undo` takes back, even another; one of `HEADERS` begins a sitting.
    row
        Its columns, none empty: who (`annotator`), time for people, movie, span, level, concepts, whether
        the score was in sight, or a note.
    replaces
        Ids of the lines in whose place it asks to stand, or that it asks to take back: `standing` decides.
    header
        What the sitting says of itself; None in all lines but the first.
    """

    id: Id
    clock: Annotated[int, msgspec.Meta(ge=1, le=LATEST)]
    kind: Literal["judgement", "passage", "note", "agreed", "undo", "table", "sitting"]
    row: Mapping[str, str]
    replaces: tuple[Id, ...] = ()
    header: Header | None = None

    @property
    def sitting(self) -> str:
        """Name of its sitting."""
        return self.id.partition("-")[0]

    @property
    def number(self) -> int:
        """Its number in its sitting."""
        return int(self.id.partition("-")[2])

    @property
    def annotator(self) -> str:
        """Who decided it."""
        return self.row.get("annotator", "")

    @property
    def parents(self) -> tuple[str, ...]:
        """Ids of the decisions that it settles, if it is agreed."""
        return tuple(filter(None, self.row.get(PARENTS, "").split(";")))

    @property
    def has_reasonable_clock(self) -> bool:
        """Whether a sitting of so many lines could have come to its clock."""
        return self.clock <= self.number + MOST_AHEAD


def in_order(line: Line) -> tuple[int, str, int]:
    """Return what lines are sorted by: the clock, then the sitting's name and the number in it."""
    return line.clock, line.sitting, line.number
