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


@settings(max_examples=60, deadline=None)
@given(lines=ledgers(), rng=st.randoms(use_true_random=False))
def test_what_stands_does_not_depend_on_the_order_of_lines(lines, rng):
    """A decision stands unless a permitted later line takes it back or replaces it.

    Synchronised folders deliver lines in any order: the result must equal that of the rules above each
    time.
    """
    shuffled = [*lines]
    rng.shuffle(shuffled)
    assert {line.id for line in standing(shuffled, is_valid)} == ids_that_stand(lines)
    assert standing(shuffled, is_valid) == standing(lines, is_valid)


@settings(max_examples=60, deadline=None)
@given(lines=ledgers(), annotator=st.sampled_from(["ANNA", "BERT", "MALLORY"]))
def test_nobodys_lines_change_what_stands_of_others(lines, annotator):
    """A person can replace or take back only their own decisions.

    So one person's decisions stand the same with and without the lines of everybody else.
    """
    of_others = [line for line in lines if line.row["annotator"] != annotator]
    with_all = {line.id for line in standing(lines, is_valid) if line.row["annotator"] != annotator}
    assert with_all == {line.id for line in standing(of_others, is_valid)}


@settings(max_examples=60, deadline=None)
@given(lines=ledgers())
def test_a_claim_to_somebody_elses_line_is_refused(lines):
    """A line that would replace or take back another person's line is listed as a refused claim.

    Claims of lines that were taken back themselves are not examined.
    """
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


def test_a_strangers_note_replaces_none_of_annas_judgements():
    """MALLORY's note names ANNA's judgements as replaced; they stand, as they are not MALLORY's."""
    note = line(ID_OF_ANOTHER_SITTING, "note", annotator="MALLORY", clock=99, claims=IDS_OF_ANNA)
    lines = [*LINES_OF_ANNA, note]
    assert {one.id for one in standing(lines)} == {*IDS_OF_ANNA, note.id}
    assert refused_of(lines) == {("MALLORY", "ANNA", "annotator")}


def test_an_invalid_judgement_replaces_nothing():
    """ANNA may replace her own judgements, but not by one whose level no codebook has."""
    invalid = line(ID_OF_ANOTHER_SITTING, annotator="ANNA", clock=99, claims=IDS_OF_ANNA, level="nonsense")
    lines = [*LINES_OF_ANNA, invalid]
    assert [one.id for one in standing(lines, is_valid)] == IDS_OF_ANNA
    assert refused_of(lines) == {("ANNA", "ANNA", "invalid")}


def test_one_judgement_can_replace_several_of_ones_own():
    """ANNA's later judgement names her three earlier ones as replaced, so that it alone stands."""
    newer = line(ID_OF_ANOTHER_SITTING, annotator="ANNA", clock=99, claims=IDS_OF_ANNA)
    assert [one.id for one in standing([*LINES_OF_ANNA, newer])] == [newer.id]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_line_does_not_replace_another_of_the_same_clock(is_first):
    """A line may replace only lines with an earlier clock (the ledger's counter, by which lines are ordered).

    With equal clocks neither is the later one, in whatever order the lines are read: both stand.
    """
    last_of_anna = LINES_OF_ANNA[-1]
    same_clock = line(ID_OF_ANOTHER_SITTING, clock=last_of_anna.clock, claims=[last_of_anna.id])
    lines = [same_clock, *LINES_OF_ANNA] if is_first else [*LINES_OF_ANNA, same_clock]
    assert {one.id for one in standing(lines)} == {*IDS_OF_ANNA, same_clock.id}
    assert refused_of(lines) == {("ANNA", "ANNA", "clock")}


def test_lines_of_one_clock_are_ordered_by_their_numbers():
    """Ids end in the line's number in its sitting: -9 comes before -10, though not as text."""
    lines = [line(f"{SITTINGS[0]}-{number}") for number in (10, 9, 100)]
    assert [one.number for one in standing(lines)] == [9, 10, 100]
