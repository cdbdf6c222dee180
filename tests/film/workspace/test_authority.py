"""Who may replace or take back what: random ledgers held against the rules as they are asked of each line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze_film.workspace.authority import refused_claims, standing
from obygaze_film.workspace.ledger_lines import Line

# --- the rules, asked of all lines, by recursion
# ---------------------------------------------------------------------------
DECIDED = ("judgement", "passage", "note")


def is_valid(line):
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


def ids_that_stand(lines):
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
def ledgers(draw):
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


@settings(max_examples=300, deadline=None)
@given(lines=ledgers(), rng=st.randoms(use_true_random=False))
def test_what_stands_follows_the_rules_in_whatever_order_lines_are_read(lines, rng):
    shuffled = [*lines]
    rng.shuffle(shuffled)
    assert {line.id for line in standing(shuffled, is_valid)} == ids_that_stand(lines)
    assert standing(shuffled, is_valid) == standing(lines, is_valid)


@settings(max_examples=300, deadline=None)
@given(lines=ledgers(), annotator=st.sampled_from(["ANNA", "BERT", "MALLORY"]))
def test_no_line_of_anybody_changes_what_stands_of_others(lines, annotator):
    of_others = [line for line in lines if line.row["annotator"] != annotator]
    with_all = {line.id for line in standing(lines, is_valid) if line.row["annotator"] != annotator}
    assert with_all == {line.id for line in standing(of_others, is_valid)}


@settings(max_examples=300, deadline=None)
@given(lines=ledgers())
def test_every_claim_to_a_line_of_somebody_else_is_refused_and_names_both_lines(lines):
    """A decision or an undo claims it, and was not taken back itself."""
    line_of = {line.id: line for line in lines}
    refused = {(claim.line.id, claim.target.id) for claim in refused_claims(lines, is_valid)}
    for line in lines:
        if line.kind not in (*DECIDED, "undo") or is_taken_back(line, lines):
            continue
        for target_id in line.replaces:
            target = line_of.get(target_id)
            if target is None or target.kind not in (*DECIDED, "undo"):
                continue
            if target.row["annotator"] != line.row["annotator"]:
                assert (line.id, target.id) in refused


def line(line_id, kind="judgement", *, annotator="ANNA", clock=1, claims=(), level="calm"):
    """Make a line of a ledger of the film tt1, which claims to replace others by their ids."""
    return Line(line_id, clock, kind, {"annotator": annotator, "movie": "tt1", "level": level}, tuple(claims))


IDS_OF_ANNA = [f"{SITTINGS[0]}-{number}" for number in (1, 2, 3)]
LINES_OF_ANNA = [line(line_id, clock=clock) for clock, line_id in enumerate(IDS_OF_ANNA, start=1)]
"""Three judgements of ANNA, at the clocks 1, 2 and 3."""

ID_OF_ANOTHER_SITTING = f"{SITTINGS[1]}-1"


def refused_of(lines):
    """Return who claimed whose line in vain, and why."""
    return {
        (claim.line.annotator, claim.target.annotator, claim.reason)
        for claim in refused_claims(lines, is_valid)
    }


def test_a_note_of_a_stranger_replaces_nothing_of_annas():
    note = line(ID_OF_ANOTHER_SITTING, "note", annotator="MALLORY", clock=99, claims=IDS_OF_ANNA)
    lines = [*LINES_OF_ANNA, note]
    assert {one.id for one in standing(lines)} == {*IDS_OF_ANNA, note.id}
    assert refused_of(lines) == {("MALLORY", "ANNA", "annotator")}


def test_an_invalid_judgement_replaces_nothing_even_of_ones_own():
    invalid = line(ID_OF_ANOTHER_SITTING, annotator="ANNA", clock=99, claims=IDS_OF_ANNA, level="nonsense")
    lines = [*LINES_OF_ANNA, invalid]
    assert [one.id for one in standing(lines, is_valid)] == IDS_OF_ANNA
    assert refused_of(lines) == {("ANNA", "ANNA", "invalid")}


def test_one_judgement_replaces_all_of_ones_own_that_it_names():
    newer = line(ID_OF_ANOTHER_SITTING, annotator="ANNA", clock=99, claims=IDS_OF_ANNA)
    assert [one.id for one in standing([*LINES_OF_ANNA, newer])] == [newer.id]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_line_does_not_replace_another_of_the_same_clock(is_first):
    last_of_anna = LINES_OF_ANNA[-1]
    same_clock = line(ID_OF_ANOTHER_SITTING, clock=last_of_anna.clock, claims=[last_of_anna.id])
    lines = [same_clock, *LINES_OF_ANNA] if is_first else [*LINES_OF_ANNA, same_clock]
    assert {one.id for one in standing(lines)} == {*IDS_OF_ANNA, same_clock.id}
    assert refused_of(lines) == {("ANNA", "ANNA", "clock")}


def test_of_lines_with_one_clock_the_tenth_of_a_sitting_comes_after_the_ninth():
    lines = [line(f"{SITTINGS[0]}-{number}") for number in (10, 9, 100)]
    assert [one.number for one in standing(lines)] == [9, 10, 100]
