"""What a judge changes in sight of the model's score stands beside what they judged blindly.

A film's share is estimated from blind judgements. If a later look at the score could change one of them, the
share would be of judgements that nobody made blindly.
"""

import pytest

from obygaze_film.workspace.decisions import JUDGEMENTS
from tests.film.workspace.deciding import judge, judge_blindly, levels_in_force, reopen


@pytest.fixture
def with_blind_judgement(decisions):
    """The decisions on a film whose first window AB judged blindly: it is calm."""
    judge_blindly(decisions, "calm", annotator="AB")
    return decisions


def blind_and_in_sight(decisions):
    """Return the levels that AB gave blindly, and those given in sight of the score."""
    levels = {"0": [], "1": []}
    for clip in decisions.clips_by_kind["judgement"]:
        levels[clip.extras["seen_score"]].append(clip.level)
    return levels["0"], levels["1"]


@pytest.mark.parametrize(
    "place",
    [pytest.param(0, id="without its place"), pytest.param(1, id="with its place, from the list")],
)
def test_a_blind_judgement_stays_if_its_judge_gives_another_level_in_sight_of_the_score(
    with_blind_judgement, place
):
    """AB judged the first window of the draw blindly, as calm, and calls it violent in the mode Read.

    There the score is shown: AB's new level is a judgement in sight, beside the blind one, which stays at
    place 1 of the draw. The desk names which decision AB changes, and, if AB chose it in the list of
    decisions, also its place (else 0).
    """
    decisions = with_blind_judgement
    (blind,) = decisions.clips_by_kind["judgement"]

    judge(
        decisions, blind.start_s, blind.end_s, "violent", changed_id=blind.clip_id, place=place, mode="read"
    )

    assert blind_and_in_sight(decisions) == (["calm"], ["violent"])
    blind_judgements_of_ab = decisions.blind_judgements()["AB"]
    assert {place: clip.level for place, clip in blind_judgements_of_ab.items()} == {1: "calm"}


def test_a_change_in_reading_is_changed_again(with_blind_judgement):
    """AB changes the window twice in sight of the score: the second change replaces the first."""
    decisions = with_blind_judgement
    (blind,) = decisions.clips_by_kind["judgement"]
    changed_id = judge(
        decisions, blind.start_s, blind.end_s, "violent", changed_id=blind.clip_id, mode="read"
    )

    judge(decisions, blind.start_s, blind.end_s, "unsure", changed_id=changed_id, mode="read")

    assert blind_and_in_sight(decisions) == (["calm"], ["unsure"])


def test_a_blind_judgement_stays_if_its_ends_are_moved_in_reading(with_blind_judgement):
    """A window whose ends AB drags in the mode Read becomes a passage: the draw keeps its window."""
    decisions = with_blind_judgement
    (blind,) = decisions.clips_by_kind["judgement"]

    decisions.keep(
        "passage",
        blind.start_s,
        blind.end_s + 2,
        "AB",
        level="violent",
        changed_id=blind.clip_id,
        mode="read",
    )

    assert blind_and_in_sight(decisions) == (["calm"], [])
    assert [clip.level for clip in decisions.clips_by_kind["passage"]] == ["violent"]


def test_a_blind_judgement_is_corrected_in_the_blind_mode(with_blind_judgement):
    """AB pressed the wrong key, and corrects it before any score is shown."""
    decisions = with_blind_judgement
    (blind,) = decisions.clips_by_kind["judgement"]

    judge(decisions, blind.start_s, blind.end_s, "violent", changed_id=blind.clip_id, place=1, mode="blind")

    assert blind_and_in_sight(decisions) == (["violent"], [])


def test_a_blind_judgement_stays_if_its_row_in_a_table_becomes_one_in_sight_of_the_score(
    with_blind_judgement,
):
    """AB judged a window blindly, as calm. In a spreadsheet its row becomes violent, with `seen_score` 1.

    A judgement in sight never replaces a blind one: both are in force, and a notice on the row, line 2 of the
    table, says that it is a decision of its own.
    """
    decisions = with_blind_judgement
    table = decisions.folder / JUDGEMENTS
    blind_and_calm, in_sight_and_violent = ",calm,,AB,0,", ",violent,,AB,1,"
    table.write_text(table.read_text("utf-8").replace(blind_and_calm, in_sight_and_violent), "utf-8")

    read_again = reopen(decisions)

    assert blind_and_in_sight(read_again) == (["calm"], ["violent"])
    assert any(
        "line 2: of AB" in notice and "a decision of its own" in notice for notice in read_again.notices
    )


def test_a_blind_judgement_stays_if_a_line_of_the_ledger_in_sight_of_the_score_would_replace_it(
    with_blind_judgement,
):
    """AB judged a window blindly, as calm. Another program adds a line: violent, in sight, in its place.

    A judgement in sight never replaces a blind one: both are in force, and a notice says why.
    """
    decisions = with_blind_judgement
    (blind,) = decisions.clips_by_kind["judgement"]
    row_in_sight = {**decisions.lines[blind.clip_id].row, "level": "violent", "seen_score": "1"}
    decisions.ledger.add("judgement", row_in_sight, replaces=[blind.clip_id])

    read_again = reopen(decisions)

    assert levels_in_force(read_again) == [("AB", "calm"), ("AB", "violent")]
    assert any("one was judged blindly" in notice for notice in read_again.notices)
