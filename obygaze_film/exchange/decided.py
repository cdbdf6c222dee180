"""Hold what people decided about a film, for the tools that it is exported for."""

from dataclasses import dataclass

from obygaze_features.manifest import AGREED, BLIND, IN_SIGHT, Codebook


@dataclass(frozen=True, slots=True)
class Decided:
    """What somebody decided about a span: a level and concepts, a note, or both.

    Attributes
    ----------
    start_s, end_s : float
        Ends of the span, in seconds.
    judges : tuple of str
        Who decided it. Of an agreed decision: the people whose decisions it settles.
    level, note : str
        Empty if there is none.
    concepts : tuple of str
    is_blind : bool
        Whether the model's score was out of sight.
    is_agreed : bool
        Whether it settles what several people differed on.
    id : str
        Id of its line in the film's ledger; empty if unknown.
    definition : str
        Digest of the definitions that it was made under; empty if unknown.
    codebook : Codebook or None
        The codebook with these definitions, which need not be the model's; None if unknown.
    read_by : Codebook or None
        The codebook by which people read the level today, also where it is not stated under which one it was
        given; None if there is no such codebook, as the decision is of no ledger.
    """

    start_s: float
    end_s: float
    judges: tuple[str, ...]
    level: str = ""
    concepts: tuple[str, ...] = ()
    note: str = ""
    is_blind: bool = False
    is_agreed: bool = False
    id: str = ""
    definition: str = ""
    codebook: Codebook | None = None
    read_by: Codebook | None = None

    @property
    def annotator(self) -> str:
        """The names of all judges, joined by commas, in one text."""
        return ", ".join(self.judges)

    @property
    def how(self) -> str:
        """How it was decided.

        - `AGREED`: by several people, who settled what they differed on;
        - `BLIND`: without seeing the model's score;
        - `IN_SIGHT`: with the model's score in sight;
        - empty: it is a note without a level.
        """
        if self.is_agreed:
            return AGREED
        if not self.level:
            return ""
        return BLIND if self.is_blind else IN_SIGHT

    @property
    def facts(self) -> dict[str, object]:
        """The decision by field, without empty fields, for formats that hold structured data.

        Each level has the field `seen_score`, 0 or 1 as in the tables of judgements: `how` does not say
        whether the score was seen if the decision is agreed.
        """
        facts: dict[str, object] = {"annotator": self.annotator, "how": self.how}
        if self.level:
            facts["seen_score"] = 0 if self.is_blind else 1
        facts |= {
            "level": self.level,
            "concepts": list(self.concepts),
            "note": self.note,
            "decision": self.id,
            "definition": self.definition,
        }
        empty: tuple[object, ...] = ("", [])  # 0 is not empty
        return {name: fact for name, fact in facts.items() if fact not in empty}
