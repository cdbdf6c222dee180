"""Decide what stands in a ledger: who may replace or take back what.

Lines only claim to replace others, and anybody can write a line. A claim counts if the line that makes it is
valid, and the line that it is about is older by clock, of the same annotator, of the same film, and, unless
it is taken back, of the same kind; a judgement was also made likewise, blindly or in sight of the model's
score. A claim that does not count changes nothing: both lines stand, and the refused claim is reported.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from obygaze_features.manifest import SEEN_SCORE
from obygaze_film.workspace.ledger_lines import DECISIONS, HEADERS, Line, in_order

Reason = Literal["annotator", "kind", "film", "sight", "clock", "invalid"]
"""Why a claim does not count: the two lines differ in annotator, kind or film, one of two judgements was made
blindly and the other in sight of the score, the line that is claimed is not older by clock, or the claiming
line is invalid."""

UNDO: Final = "undo"

Validity = Callable[[Line], bool]
"""Tells whether a decision is a valid one."""


@dataclass(frozen=True, slots=True)
class RefusedClaim:
    """A line that asks to replace, or to take back, what it may not.

    Attributes
    ----------
    line
        The line that makes the claim.
    target
        The line that it asks to replace or to take back. The refused claim removes neither line.
    reason
        Why the claim does not count.
    """

    line: Line
    target: Line
    reason: Reason


def in_force(lines: Iterable[Line], is_valid: Validity | None = None) -> list[Line]:
    """Return the decisions that are in force: valid ones that no other line replaces or takes back.

    Their order is the same on every machine (`in_order`).

    Parameters
    ----------
    lines
        All lines of a film's ledger, in any order.
    is_valid
        Tells whether a decision is a valid one about this film under its codebook; by default all are. An
        invalid decision neither stands nor replaces another.
    """
    return _Ruling(lines, is_valid).in_force


def refused_claims(lines: Iterable[Line], is_valid: Validity) -> list[RefusedClaim]:
    """List the claims that do not count, of lines that were not themselves taken back."""
    return _Ruling(lines, is_valid).refused


class _Ruling:
    """Works out which lines stand and which claims are refused.

    Attributes
    ----------
    in_force : list of Line
        The valid decisions that nothing replaces or takes back, in order (`in_order`).
    refused : list of RefusedClaim
        The claims that do not count.
    """

    def __init__(self, lines: Iterable[Line], is_valid: Validity | None) -> None:
        """Find which of a ledger's decisions stand, and which lines ask to remove others and may not.

        A line is a decision, or an undo: it takes other lines back. A decision may name lines that it
        replaces.
        """
        earliest_first = sorted(lines, key=in_order)
        self._line_of: Mapping[str, Line] = {line.id: line for line in earliest_first}

        # 1. Leave out the decisions that were taken back: they do not replace others.
        undos = self._undos_in_force(earliest_first)
        taken_back_ids = self._ids_removed_by(undos)
        decisions = [
            line for line in earliest_first if line.kind in DECISIONS and line.id not in taken_back_ids
        ]

        # 2. Leave out the invalid ones: they do not replace others either.
        valid, invalid = _split_by_validity(decisions, is_valid)

        # 3. What stands: valid decisions that no valid decision replaces
        replaced_ids = self._ids_removed_by(valid)
        self.in_force: list[Line] = [line for line in valid if line.id not in replaced_ids]

        # 4. Lines that ask to remove others and may not; all that invalid ones ask for is refused.
        self.refused: list[RefusedClaim] = [*self._refused_claims(undos), *self._refused_claims(valid)]
        for line in invalid:
            self.refused += [RefusedClaim(line, target, "invalid") for target in self._targets(line)]

    def _undos_in_force(self, earliest_first: Sequence[Line]) -> list[Line]:
        """Return the lines that take others back and are not taken back themselves, the latest first.

        Only a later line can take a line back. So all lines are looked at from the latest to the first: when
        a line is reached, it is known whether a line that is in force takes it back.
        """
        undos = []
        taken_back_ids: set[str] = set()
        for line in reversed(earliest_first):
            if line.kind == UNDO and line.id not in taken_back_ids:
                undos.append(line)
                taken_back_ids |= self._ids_removed_by([line])
        return undos

    def _ids_removed_by(self, lines: Iterable[Line]) -> set[str]:
        """Return the ids of the lines that these valid lines replace or take back, where they may do so."""
        ids = set()
        for line in lines:
            for target in self._targets(line):
                if reason_against(line, target) is None:
                    ids.add(target.id)
        return ids

    def _refused_claims(self, lines: Iterable[Line]) -> list[RefusedClaim]:
        """List the claims of valid lines that do not count, with the reasons."""
        refused = []
        for line in lines:
            for target in self._targets(line):
                reason = reason_against(line, target)
                if reason is not None:
                    refused.append(RefusedClaim(line, target, reason))
        return refused

    def _targets(self, line: Line) -> list[Line]:
        """Return the lines that a line asks to replace or to take back, of those that are in this ledger.

        Others may still come from another machine. Headers are left out: nobody can replace one.
        """
        targets = [self._line_of.get(target_id) for target_id in line.replaces]
        return [target for target in targets if target is not None and target.kind not in HEADERS]


def _split_by_validity(decisions: Iterable[Line], is_valid: Validity | None) -> tuple[list[Line], list[Line]]:
    """Return the valid decisions, and the invalid ones, each in their order.

    `is_valid` tells whether a decision is valid; None if all are.
    """
    valid = []
    invalid = []
    for line in decisions:
        if is_valid is None or is_valid(line):
            valid.append(line)
        else:
            invalid.append(line)
    return valid, invalid


def reason_against(line: Line, target: Line) -> Reason | None:
    """Return why a valid line may not replace, or take back, another one; None if it may.

    The reasons are explained at `Reason`. A line that is not later by clock can't replace another, so that no
    two lines replace each other.
    """
    if line.annotator != target.annotator:
        return "annotator"
    if line.kind not in {UNDO, target.kind}:
        return "kind"
    if line.kind != UNDO and line.row.get("movie", "") != target.row.get("movie", ""):
        return "film"
    if line.kind == "judgement" and not are_judged_likewise(line.row, target.row):
        return "sight"
    if line.clock <= target.clock:
        return "clock"
    return None


def are_judged_likewise(row: Mapping[str, str], other_row: Mapping[str, str]) -> bool:
    """Whether two judgements, given by their cells, were both made blindly or both in sight of the score.

    Only then may one replace the other. A share is estimated from blind judgements, and must not change by
    what a judge decides later, after seeing the score.
    """
    is_blind = row.get(SEEN_SCORE) == "0"
    is_other_blind = other_row.get(SEEN_SCORE) == "0"
    return is_blind == is_other_blind
