"""Decide what stands in a ledger: who may replace or take back what.

Lines only claim to replace others, and anybody can write a line. A claim counts if the line that makes it is
valid, and the line that it is about is older by clock, of the same annotator, of the same film, and, unless
it is taken back, of the same kind. Whatever a line claims beyond that, both lines stand, and it is said.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from obygaze_film.workspace.ledger_lines import DECISIONS, HEADERS, Line, in_order

Reason = Literal["annotator", "kind", "film", "clock", "invalid"]
"""Why a claim does not count: whose the line is, what, of which film or when; or what claims is invalid."""

UNDO: Final = "undo"

Validity = Callable[[Line], bool]


@dataclass(frozen=True, slots=True)
class RefusedClaim:
    """A line that asks to replace, or to take back, what it may not.

    Attributes
    ----------
    line, target
        Both stand, if nothing else is against it.
    reason
    """

    line: Line
    target: Line
    reason: Reason


def standing(lines: Iterable[Line], is_valid: Validity | None = None) -> list[Line]:
    """Return the valid decisions that nothing replaces or takes back, in one order everywhere.

    Parameters
    ----------
    lines
        All lines of a film's ledger, in any order.
    is_valid
        Tells whether a decision is one of this film and codebook; by default all are. Nonsense neither
        stands nor replaces.
    """
    return _Ruling(lines, is_valid).standing


def refused_claims(lines: Iterable[Line], is_valid: Validity | None = None) -> list[RefusedClaim]:
    """List the claims of lines that were not taken back, and that do not count."""
    return _Ruling(lines, is_valid).refused


class _Ruling:
    """What stands, and which claims were refused."""

    def __init__(self, lines: Iterable[Line], is_valid: Validity | None) -> None:
        ordered = sorted(lines, key=in_order)
        self._line_of: Mapping[str, Line] = {line.id: line for line in ordered}
        self.refused: list[RefusedClaim] = []
        undone = self._taken_back(ordered)
        decisions = [line for line in ordered if line.kind in DECISIONS and line.id not in undone]
        valid = decisions if is_valid is None else [line for line in decisions if is_valid(line)]
        replaced: set[str] = set()
        for line in valid:
            replaced.update(self._granted(line))
        self.standing = [line for line in valid if line.id not in replaced]
        known = {line.id for line in valid}
        for line in decisions:
            if line.id not in known:
                self._refuse_all(line)

    def _taken_back(self, ordered: Collection[Line]) -> set[str]:
        """Find the lines that are taken back, by lines that are not."""
        undone: set[str] = set()
        for line in reversed([*ordered]):  # what takes back may be taken back later
            if line.kind == UNDO and line.id not in undone:
                undone.update(self._granted(line))
        return undone

    def _granted(self, line: Line) -> list[str]:
        """Return what a line may replace or take back of what it asks for; keep what it may not."""
        granted = []
        for name in line.replaces:
            target = self._line_of.get(name)
            if target is None or target.kind in HEADERS:  # it may come later, by another machine
                continue
            reason = reason_against(line, target)
            if reason is None:
                granted.append(name)
            else:
                self.refused.append(RefusedClaim(line, target, reason))
        return granted

    def _refuse_all(self, line: Line) -> None:
        for name in line.replaces:
            target = self._line_of.get(name)
            if target is not None and target.kind not in HEADERS:
                self.refused.append(RefusedClaim(line, target, "invalid"))


def reason_against(line: Line, target: Line) -> Reason | None:
    """Say why a valid line may not replace, or take back, another; None if it may."""
    if line.annotator != target.annotator:
        return "annotator"
    if line.kind not in {UNDO, target.kind}:
        return "kind"
    if line.kind != UNDO and line.row.get("movie", "") != target.row.get("movie", ""):
        return "film"
    if line.clock <= target.clock:
        return "clock"
    return None
