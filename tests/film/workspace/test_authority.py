"""Who may replace or take back what: random ledgers held against the rules as they are asked of each line."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze_film.workspace.authority import in_force, refused_claims
from obygaze_film.workspace.ledger_lines import Line

# --- the rules, asked of all lines, by recursion
# ---------------------------------------------------------------------------
DECIDED = ("judgement", "passage", "note")


def is_valid(line):
    """Tell whether a line's level is one of the codebook; "nonsense" is the only one that is not."""
    return line.row["level"] != "nonsense"


def may_claim(line, target):
    """Tell whether a line may replace or take back another, which is older and of the same annotator.

    To replace it, it must also be of the same kind and of the same film.
    """
    if line.row["annotator"] != target.row["annotator"] or not line.clock > target.clock:
        return False
    if line.kind == "undo":
        return target.kind in (*DECIDED, "undo")
    return line.kind == target.kind and line.row["movie"] == target.row["movie"]


def is_taken_back(line, lines):
    """Tell whether an undo that is not taken back itself takes the line back."""
    for other in lines:
        claims_it = other.kind == "undo" and line.id in other.replaces
        if claims_it and may_claim(other, line) and not is_taken_back(other, lines):
            return True
    return False


def is_replaced(line, lines):
    """Tell whether a valid decision that is not taken back replaces the line."""
    for other in lines:
        claims_it = other.kind in DECIDED and line.id in other.replaces and is_valid(other)
        if claims_it and may_claim(other, line) and not is_taken_back(other, lines):
            return True
    return False


def ids_in_force_by_the_rules(lines):
    """Return the ids of what stands by the rules above, asked of every line."""
    ids = set()
    for line in lines:
        is_decision = line.kind in DECIDED and is_valid(line)
        if is_decision and not is_taken_back(line, lines) and not is_replaced(line, lines):
            ids.add(line.id)
    return ids


# --- random ledgers
# ---------------------------------------------------------------------------
SITTINGS = ("0" * 16, "9" * 16, "a" * 16)
IDS = [f"{sitting}-{number}" for sitting in SITTINGS for number in (1, 2, 9, 10)]


@st.composite
def random_ledgers(draw):
    """Draw up to ten lines of three people, hostile ones among them: any clock, any kind, any claim."""
    lines = []
    for line_id in draw(st.lists(st.sampled_from(IDS), unique=True, max_size=10)):
        row = {
            "annotator": draw(st.sampled_from(["ANNA", "BERT", "MALLORY"])),
            "movie": draw(st.sampled_from(["tt1", "tt1", "tt1", "tt2"])),
            "level": draw(st.sampled_from(["calm", "violent", "nonsense"])),
        }
        kind = draw(st.sampled_from([*DECIDED, "undo", "judgement", "undo", "table", "sitting"]))
        claims = tuple(draw(st.lists(st.sampled_from(IDS), unique=True, max_size=4)))
        lines.append(Line(line_id, draw(st.integers(1, 8)), kind, row, claims))
    return lines


@settings(max_examples=60, deadline=None)
@given(lines=random_ledgers(), rng=st.randoms(use_true_random=False))
def test_what_stands_does_not_depend_on_the_order_of_lines(lines, rng):
    """A random ledger has up to ten lines of three people, which synchronised folders deliver in any order.

    What stands is the same in each order: a valid decision, unless a later line that may do so takes it back
    or replaces it. A slow function of this test asks every line by these rules.
    """
    shuffled_lines = [*lines]
    rng.shuffle(shuffled_lines)

    standing_as_drawn = in_force(lines, is_valid)
    standing_if_shuffled = in_force(shuffled_lines, is_valid)

    assert {line.id for line in standing_if_shuffled} == ids_in_force_by_the_rules(lines)
    assert standing_if_shuffled == standing_as_drawn


@settings(max_examples=60, deadline=None)
@given(lines=random_ledgers(), annotator=st.sampled_from(["ANNA", "BERT", "MALLORY"]))
def test_nobodys_lines_change_what_stands_of_others(lines, annotator):
    """A random ledger has lines of three people, which claim to replace or take back lines of anybody.

    A person can do so with their own decisions only: what stands of the two others is the same with this
    annotator's lines and without them.
    """
    lines_of_others = [line for line in lines if line.annotator != annotator]

    standing_with_all_lines = in_force(lines, is_valid)
    standing_without_the_annotators = in_force(lines_of_others, is_valid)

    ids_of_others = {line.id for line in standing_with_all_lines if line.annotator != annotator}
    assert ids_of_others == {line.id for line in standing_without_the_annotators}


def is_decision_or_undo(line):
    return line.kind in (*DECIDED, "undo")


def claims_to_lines_of_others(lines):
    """Return the ids of each line that is not taken back, and of a line of somebody else that it claims."""
    line_by_id = {line.id: line for line in lines}
    claims = []
    for line in lines:
        if not is_decision_or_undo(line) or is_taken_back(line, lines):
            continue
        for target_id in line.replaces:
            target = line_by_id.get(target_id)
            if target is None or not is_decision_or_undo(target):
                continue
            if target.annotator != line.annotator:
                claims.append((line.id, target.id))
    return claims


@settings(max_examples=60, deadline=None)
@given(lines=random_ledgers())
def test_a_claim_to_somebody_elses_line_is_refused(lines):
    """A random ledger has decisions and undos of three people, some of which claim lines of somebody else.

    To claim is to want to replace a line or to take it back. Each such claim is listed as refused, but for
    those of lines that were taken back themselves.
    """
    refused = [(claim.line.id, claim.target.id) for claim in refused_claims(lines, is_valid)]

    for claim in claims_to_lines_of_others(lines):
        assert claim in refused


def line(line_id, kind="judgement", *, annotator="ANNA", clock=1, replaces=(), level="calm"):
    """Make a line of a ledger of the film tt1, which names other lines, by their ids, as replaced."""
    row = {"annotator": annotator, "movie": "tt1", "level": level}
    return Line(line_id, clock, kind, row, tuple(replaces))


def three_judgements_of_anna():
    """Make three judgements of ANNA in one sitting, at the clocks 1, 2 and 3."""
    return [line(f"{SITTINGS[0]}-{number}", annotator="ANNA", clock=number) for number in (1, 2, 3)]


ID_IN_ANOTHER_SITTING = f"{SITTINGS[1]}-1"


class Refused(NamedTuple):
    """Who would have replaced whose line, and what of the two lines forbids it."""

    by: str
    line_of: str
    reason: str


def refused_in(lines):
    """Return the refused claims of a ledger's lines."""
    return {
        Refused(claim.line.annotator, claim.target.annotator, claim.reason)
        for claim in refused_claims(lines, is_valid)
    }


def ids_of(lines):
    return {line.id for line in lines}


def test_a_strangers_note_replaces_none_of_annas_judgements():
    """MALLORY's note names ANNA's judgements as replaced; they stand, as they are not MALLORY's.

    A line may replace only lines of earlier clocks: 99 is later than those of ANNA's, so that nothing but
    the name forbids it.
    """
    judgements = three_judgements_of_anna()
    ids_of_judgements = [judgement.id for judgement in judgements]
    note = line(ID_IN_ANOTHER_SITTING, "note", annotator="MALLORY", clock=99, replaces=ids_of_judgements)
    lines = [*judgements, note]

    assert ids_of(in_force(lines)) == ids_of(lines)
    assert refused_in(lines) == {Refused(by="MALLORY", line_of="ANNA", reason="annotator")}


def test_an_invalid_judgement_replaces_nothing():
    """ANNA may replace her own judgements, but not by one whose level no codebook has.

    `is_valid` refuses the level "nonsense" alone, as a codebook without it would.
    """
    judgements = three_judgements_of_anna()
    ids_of_judgements = [judgement.id for judgement in judgements]
    invalid = line(
        ID_IN_ANOTHER_SITTING,
        annotator="ANNA",
        clock=99,  # later than the three
        level="nonsense",
        replaces=ids_of_judgements,
    )
    lines = [*judgements, invalid]

    assert in_force(lines, is_valid) == judgements
    assert refused_in(lines) == {Refused(by="ANNA", line_of="ANNA", reason="invalid")}


def test_one_judgement_can_replace_several_of_ones_own():
    """ANNA's later judgement names her three earlier ones as replaced, so that it alone stands."""
    judgements = three_judgements_of_anna()
    ids_of_judgements = [judgement.id for judgement in judgements]
    newer = line(ID_IN_ANOTHER_SITTING, annotator="ANNA", clock=99, replaces=ids_of_judgements)

    assert in_force([*judgements, newer]) == [newer]


@pytest.mark.parametrize("is_read_first", [True, False])
def test_a_line_does_not_replace_another_of_the_same_clock(is_read_first):
    """A line may replace only lines with an earlier clock (the ledger's counter, by which lines are ordered).

    With equal clocks neither is the later one, in whatever order the lines are read: both stand.
    """
    judgements = three_judgements_of_anna()  # at the clocks 1, 2 and 3
    third = judgements[2]
    same_clock = line(ID_IN_ANOTHER_SITTING, annotator="ANNA", clock=3, replaces=[third.id])
    lines = [same_clock, *judgements] if is_read_first else [*judgements, same_clock]

    assert ids_of(in_force(lines)) == ids_of(lines)
    assert refused_in(lines) == {Refused(by="ANNA", line_of="ANNA", reason="clock")}


def test_lines_of_one_clock_are_ordered_by_their_numbers():
    """An id is its sitting and the line's number in it: 9 comes before 10, which as texts they would not."""
    lines = [
        line("0000000000000000-10", clock=1),
        line("0000000000000000-9", clock=1),
        line("0000000000000000-100", clock=1),
    ]

    assert [one.number for one in in_force(lines)] == [9, 10, 100]
