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


@pytest.mark.parametrize("place", [0, 1])
def test_a_blind_judgement_that_is_changed_in_reading_stays(with_blind_judgement, place):
    """In the mode Read, AB goes to the blind judgement and presses another level.

    The desk names what is changed, and also its place in the draw if AB chose it in the list of decisions.
    """
    decisions = with_blind_judgement
    (blind,) = decisions.clips_by_kind["judgement"]

    judge(
        decisions, blind.start_s, blind.end_s, "violent", changed_id=blind.clip_id, place=place, mode="read"
    )

    assert blind_and_in_sight(decisions) == (["calm"], ["violent"])
    assert decisions.blind_judgements()["AB"][1].level == "calm"


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


def test_a_row_that_says_in_a_table_that_the_score_was_seen_is_a_judgement_of_its_own(with_blind_judgement):
    """In a spreadsheet AB changes level and `seen_score` of the blind judgement; a notice names its row."""
    decisions = with_blind_judgement
    table = decisions.folder / JUDGEMENTS
    table.write_text(table.read_text("utf-8").replace(",calm,,AB,0,", ",violent,,AB,1,"), "utf-8")

    again = reopen(decisions)

    assert blind_and_in_sight(again) == (["calm"], ["violent"])
    assert any("line 2: of AB" in notice and "a decision of its own" in notice for notice in again.notices)


def test_a_line_of_a_ledger_in_sight_does_not_replace_a_blind_judgement(with_blind_judgement):
    """A line that another program wrote asks for it: both stand, and the reason is said."""
    decisions = with_blind_judgement
    (blind,) = decisions.clips_by_kind["judgement"]
    row = {**decisions.lines[blind.clip_id].row, "level": "violent", "seen_score": "1"}
    decisions.ledger.add("judgement", row, [blind.clip_id])

    again = reopen(decisions)

    assert levels_in_force(again) == [("AB", "calm"), ("AB", "violent")]
    assert any("one was judged blindly" in notice for notice in again.notices)
