"""What people differ on, and what they agreed: who may settle, what counts, and how long."""

import pytest

from obygaze_film.errors import FilmError
from obygaze_film.exchange import Decided
from obygaze_film.scored_files import JUDGEMENTS, PASSAGES, SETTLED
from obygaze_film.workspace.decisions import read_decided
from obygaze_film.workspace.judged_tables import read_judged
from tests.files import rows_of
from tests.film.workspace.deciding import judge, judge_blindly, open_again

OF_AB = ("calm", "violent", "calm")
OF_CD = ("calm", "calm", "violent")


@pytest.fixture
def judged(decisions):
    """AB and CD judged three windows blindly, and differ on the second and the third."""
    judge_blindly(decisions, *OF_AB, who="AB")
    judge_blindly(decisions, *OF_CD, who="CD")
    return decisions


def settle(decisions, disagreement, level="violent", who="AB", **fields):
    """Keep what somebody wrote down as agreed on a disagreement; return its id."""
    span = disagreement.start_s, disagreement.end_s
    return decisions.keep("agreed", *span, who, level=level, parents=disagreement.decisions, **fields)


def are_open(decisions):
    """Tell of each disagreement, in the order of time, whether it is still to be settled."""
    return [not disagreement.agreed for disagreement in decisions.disagreements()]


def agreed_ids(decisions):
    """Return the ids of the agreed decisions that stand."""
    return [clip.clip_id for clip in decisions.kept["agreed"]]


@pytest.mark.long
def test_people_differ_on_windows_that_they_judged_differently(judged):
    """AB and CD judged three windows: alike the first, differently the second and the third."""
    assert are_open(judged) == [True, True]
    for disagreement in judged.disagreements():
        levels = {judged.lines[line_id].row["level"] for line_id in disagreement.decisions}
        assert levels == {"calm", "violent"}


@pytest.mark.parametrize(
    ("is_first_blind", "n_disagreements"),
    [(True, 0), (False, 1)],
    ids=["blind and in sight", "both in sight"],
)
def test_only_judgements_made_in_the_same_way_are_compared(decisions, is_first_blind, n_disagreements):
    """CD saw the model's score. AB judged the same window blindly, or saw it too."""
    if is_first_blind:
        judge_blindly(decisions, "calm", who="AB")
    else:
        judge(decisions, *decisions.windows[0], "calm", who="AB")
    judge(decisions, *decisions.windows[0], "violent", who="CD")
    assert len(decisions.disagreements()) == n_disagreements


def test_settling_a_disagreement_leaves_all_judgements(judged):
    """Both people write down what they agree on; their three judgements each stay, as measurements.

    What is agreed on one span says nothing of another one. Deleting an agreement opens its span again.
    """
    first, second = judged.disagreements()
    first_id = settle(judged, first, "violent")
    assert are_open(judged) == [False, True]
    second_id = settle(judged, second, "calm")
    assert are_open(judged) == [False, False]
    assert agreed_ids(judged) == [first_id, second_id]
    assert len(judged.kept["judgement"]) == 6  # three of each person
    assert len(rows_of(judged.folder / JUDGEMENTS)) == 6
    blind = judged.blind_judgements()
    assert {annotator: len(by_place) for annotator, by_place in blind.items()} == {"AB": 3, "CD": 3}

    assert judged.delete(first_id, "AB").id == first_id
    assert are_open(judged) == [True, False]


@pytest.mark.long
def test_a_new_agreement_replaces_the_former_until_undone(judged):
    first, _ = judged.disagreements()
    violent_id = settle(judged, first, "violent")
    calm_id = settle(judged, first, "calm")
    assert agreed_ids(judged) == [calm_id]
    judged.undo("AB")
    assert agreed_ids(judged) == [violent_id]


def judge_window_again(decisions, line_id, level):
    """Let the judge of a window judge it again, blindly."""
    (clip,) = [clip for clip in decisions.kept["judgement"] if clip.clip_id == line_id]
    place = decisions.place_of(clip)
    judge(decisions, clip.start_s, clip.end_s, level, clip.annotator, place=place, n_planned=99)


def test_judging_again_reopens_a_settled_disagreement(judged):
    """An agreement settles two judgements. When AB judges the window again, one of them is no more.

    So the agreement no longer stands, and a notice says so, until AB undoes the new judgement.
    """
    first, _ = judged.disagreements()
    settle(judged, first)
    decision_of_ab, _ = first.decisions
    judge_window_again(judged, decision_of_ab, "unsure")
    assert are_open(judged) == [True, True]
    assert judged.kept["agreed"] == []
    assert any("agreed" in notice for notice in judged.notices)

    judged.undo("AB")
    assert are_open(judged) == [False, True]


@pytest.mark.long
def test_two_contrary_agreements_settle_nothing(judged):
    """AB and EF settle one disagreement at the same time, as violent and as calm.

    Both stand, and it is open.
    """
    first, _ = judged.disagreements()
    settle(judged, first, "violent", who="AB")
    settle(open_again(judged), first, "calm", who="EF")
    judged.refresh()
    assert are_open(judged) == [True, True]
    assert len(judged.kept["agreed"]) == 2


def test_an_agreement_joins_two_standing_judgements_of_one_span_by_two_people(judged):
    """It is refused on judgements of two spans, on one person's twice, and on one that was deleted."""
    first, second = judged.disagreements()
    one_of_first, *_ = first.decisions
    one_of_second, *_ = second.decisions
    for decisions in ((one_of_first, one_of_second), (one_of_first, one_of_first)):
        with pytest.raises(FilmError):
            settle(judged, first._replace(decisions=decisions))

    judged.delete(one_of_first, judged.lines[one_of_first].annotator)
    with pytest.raises(FilmError):
        settle(judged, first)
    assert judged.kept["agreed"] == []


def test_an_agreement_is_blind_only_where_the_desk_never_showed_the_scores(judged):
    """In the mode "blind" the desk shows no scores (`seen_score` is 0), in the mode "read" it does (1).

    Whoever has once agreed in sight of the score knows it, even if they agree anew without seeing it.
    """
    first, second = judged.disagreements()
    settle(judged, first, mode="blind")
    settle(judged, second, "violent", mode="read")
    assert [clip.extras["seen_score"] for clip in judged.kept["agreed"]] == ["0", "1"]

    settle(judged, second, "calm", mode="blind")
    assert [(clip.level, clip.extras["seen_score"]) for clip in judged.kept["agreed"]] == [
        ("violent", "0"),
        ("calm", "1"),
    ]


def test_the_table_of_agreements_names_both_judgements_of_each(judged):
    """Reading the table again changes nothing: the ledger has no further file."""
    for disagreement in judged.disagreements():
        settle(judged, disagreement, "violent")
    rows = rows_of(judged.folder / SETTLED)
    assert [row["level"] for row in rows] == ["violent", "violent"]
    assert all(len(row["parents"].split(";")) == 2 for row in rows)

    again = open_again(judged)
    assert [clip.level for clip in again.kept["agreed"]] == ["violent", "violent"]
    assert len([*judged.folder.glob("ledger/*.jsonl")]) == 1


@pytest.mark.long
def test_models_learn_an_agreement_in_place_of_two_judgements(judged):
    """Of six judgements two differ on one span, and AB writes down that both agree on "unsure".

    Models are trained on 6 - 2 + 1 clips: the agreed one takes the place of the two that it settles.
    """
    disagreement, _ = judged.disagreements()
    settle(judged, disagreement, "unsure", who="AB")
    tables, folders = (JUDGEMENTS, PASSAGES), {judged.folder: judged.film}
    as_judged = read_judged(folders, judged.codebook, tables).manifest
    assert len(as_judged) == 6

    clips = [*read_judged(folders, judged.codebook, tables, settled=True).manifest]
    assert len(clips) == 6 - 2 + 1
    assert len({clip.clip_id for clip in clips}) == len(clips)
    of_settled_span = [clip for clip in clips if clip.start_s == pytest.approx(disagreement.start_s)]
    assert [clip.level for clip in of_settled_span] == ["unsure"]
    assert {clip.annotator for clip in clips} == {"AB", "CD"}  # what is agreed is AB's, who wrote it down


def test_exports_say_who_agreed(judged):
    """An exported agreement names both people; the six blind judgements are exported beside it."""
    first, _ = judged.disagreements()
    settle(judged, first, note="seen twice", mode="blind")
    decided = read_decided(judged.folder, judged.film).decided
    (agreed,) = [one for one in decided if one.is_agreed]

    assert agreed == Decided(
        first.start_s,
        first.end_s,
        ("AB", "CD"),
        "violent",
        note="seen twice",
        is_blind=True,
        is_agreed=True,
        id=judged.kept["agreed"][0].clip_id,
        definition=judged.codebook.definition(),
    )
    assert [one.how for one in decided].count("blind") == 6


def test_a_strangers_agreement_removes_no_decision(judged):
    """EF, who judged nothing, writes that two decisions are settled, and that the line replaces all.

    `parents` are the two judgements that an agreed line settles, `replaces` the lines that it takes away.
    """
    ids = {line.id for line in judged.lines.values()}
    parents = sorted(ids)[:2]
    row = {
        "movie": "tt1",
        "start_s": "0",
        "end_s": "8",
        "annotator": "EF",
        "level": "calm",
        "seen_score": "1",
        "parents": ";".join(parents),
    }
    judged.ledger.add("agreed", row, replaces=[*ids])
    judged.refresh()
    judged._update()  # as after each act at the desk

    assert {line.id for line in judged.lines.values()} == ids
