"""Who may replace or take back what: random ledgers held against a model that states the law slowly."""

from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze_film.workspace.authority import refused_claims, standing
from obygaze_film.workspace.ledger_lines import Line

# --- the model: each question asked of all lines, by recursion
# ---------------------------------------------------------------------------
DECIDED = ("judgement", "passage", "note")


def is_valid(line):
    return line.row["level"] != "nonsense"


def may(line, target):
    """Older, of the same annotator; and to stand in its place, also of the same kind and film."""
    if line.row["annotator"] != target.row["annotator"] or not line.clock > target.clock:
        return False
    if line.kind == "undo":
        return target.kind in (*DECIDED, "undo")
    return line.kind == target.kind and line.row["movie"] == target.row["movie"]


def is_taken_back(line, every):
    return any(
        other.kind == "undo"
        and line.id in other.replaces
        and may(other, line)
        and not is_taken_back(other, every)
        for other in every
    )


def is_replaced(line, every):
    return any(
        other.kind in DECIDED
        and line.id in other.replaces
        and may(other, line)
        and is_valid(other)
        and not is_taken_back(other, every)
        for other in every
    )


def model(every):
    decided = [line for line in every if line.kind in DECIDED and is_valid(line)]
    left = [line for line in decided if not is_taken_back(line, every) and not is_replaced(line, every)]
    return {line.id for line in left}


# --- random ledgers
# ---------------------------------------------------------------------------
SITTINGS = ("0" * 16, "9" * 16, "a" * 16)
IDS = [f"{sitting}-{number}" for sitting in SITTINGS for number in (1, 2, 9, 10)]


@st.composite
def ledgers(draw):
    """Lines of three people, hostile ones among them: any clock, any kind, any claim."""
    every = []
    for name in draw(st.lists(st.sampled_from(IDS), unique=True, max_size=10)):
        row = {
            "annotator": draw(st.sampled_from(["ANNA", "BERT", "MALLORY"])),
            "movie": draw(st.sampled_from(["tt1", "tt1", "tt1", "tt2"])),
            "level": draw(st.sampled_from(["calm", "violent", "nonsense"])),
        }
        kind = draw(st.sampled_from([*DECIDED, "undo", "judgement", "undo", "table", "sitting"]))
        claims = tuple(draw(st.lists(st.sampled_from(IDS), unique=True, max_size=4)))
        every.append(Line(name, draw(st.integers(1, 8)), kind, row, claims))
    return every


@settings(max_examples=300, deadline=None)
@given(every=ledgers(), seed=st.randoms(use_true_random=False))
def test_what_stands_is_what_the_model_says_in_whatever_order_lines_are_read(every, seed):
    mixed = [*every]
    seed.shuffle(mixed)
    found = standing(mixed, is_valid)
    assert {line.id for line in found} == model(every)
    assert found == standing(every, is_valid)


@settings(max_examples=300, deadline=None)
@given(every=ledgers())
def test_no_line_of_anybody_changes_what_stands_of_others_and_each_attempt_names_both(every):
    names = {line.row["annotator"] for line in every}
    for name in names:
        without = [line for line in every if line.row["annotator"] != name]
        others = {line.id for line in standing(every, is_valid) if line.row["annotator"] != name}
        assert others == {line.id for line in standing(without, is_valid)}
    lines = {line.id: line for line in every}
    told = {(claim.line.id, claim.target.id) for claim in refused_claims(every, is_valid)}
    attempts = {
        (line.id, target)
        for line in every
        for target in line.replaces
        if target in lines and lines[target].row["annotator"] != line.row["annotator"]
        if lines[target].kind in (*DECIDED, "undo")
        if line.kind in (*DECIDED, "undo") and not is_taken_back(line, every)
    }
    assert attempts <= told


def line(name, kind="judgement", who="ANNA", clock=1, claims=(), level="calm"):
    return Line(name, clock, kind, {"annotator": who, "movie": "tt1", "level": level}, tuple(claims))


ANNAS = [line(f"{SITTINGS[0]}-{number}", clock=number) for number in (1, 2, 3)]
HERS = [one.id for one in ANNAS]
STRANGE = f"{SITTINGS[1]}-1"


def told(every):
    return {
        (claim.line.annotator, claim.target.annotator, claim.reason)
        for claim in refused_claims(every, is_valid)
    }


def test_a_note_of_a_stranger_replaces_nothing_of_annas():
    hostile = line(STRANGE, "note", "M", 99, HERS)
    assert {one.id for one in standing([*ANNAS, hostile])} == {*HERS, STRANGE}
    assert told([*ANNAS, hostile]) == {("M", "ANNA", "annotator")}


def test_a_level_that_the_codebook_has_not_replaces_nothing_even_of_ones_own():
    newer = line(STRANGE, who="ANNA", clock=99, claims=HERS, level="nonsense")
    assert [one.id for one in standing([*ANNAS, newer], is_valid)] == HERS
    assert told([*ANNAS, newer]) == {("ANNA", "ANNA", "invalid")}


def test_all_lines_that_one_may_replace_are_replaced():
    newer = line(STRANGE, clock=99, claims=HERS)
    assert [one.id for one in standing([*ANNAS, newer])] == [STRANGE]


def test_lines_of_one_clock_replace_each_other_in_no_order():
    both = [line(STRANGE, clock=3, claims=HERS[2:]), *ANNAS]
    assert {one.id for one in standing(both)} == {*HERS, STRANGE}
    assert told(both) == {("ANNA", "ANNA", "clock")}


def test_of_lines_with_one_clock_the_tenth_of_a_sitting_comes_after_the_ninth():
    made = [line(f"{SITTINGS[0]}-{number}") for number in (10, 9, 100)]
    assert [one.number for one in standing(made)] == [9, 10, 100]
