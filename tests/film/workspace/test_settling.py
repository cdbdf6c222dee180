"""What people differ on, and what they agreed: who may settle, what counts, and how long."""

import pytest

from obygaze_film.errors import FilmError
from obygaze_film.exchange import Decided
from obygaze_film.scored_files import JUDGEMENTS, PASSAGES, SETTLED
from obygaze_film.workspace.decisions import read_decided
from obygaze_film.workspace.judged_tables import read_judged
from tests.files import rows_of
from tests.film.workspace.deciding import ROW_OF_AB, judge, judge_blindly, reopen


@pytest.fixture
def judged_by_ab_and_cd(decisions):
    """AB and CD judged three windows blindly, and differ on the second and the third."""
    judge_blindly(decisions, "calm", "violent", "calm", annotator="AB")
    judge_blindly(decisions, "calm", "calm", "violent", annotator="CD")
    return decisions


def settle(decisions, disagreement, level="violent", annotator="AB", **fields):
    """Keep what somebody wrote down as agreed on a disagreement; return its id."""
    span = disagreement.start_s, disagreement.end_s
    return decisions.keep("agreed", *span, annotator, level=level, parents=disagreement.decisions, **fields)


def open_or_settled(decisions):
    """Tell of each disagreement, in the order of time, whether it is still open or settled."""
    return ["settled" if disagreement.agreed else "open" for disagreement in decisions.disagreements()]


def agreed_ids(decisions):
    """Return the ids of the agreed decisions that stand."""
    return [clip.clip_id for clip in decisions.clips_by_kind["agreed"]]


@pytest.mark.long
def test_people_differ_on_windows_that_they_judged_differently(judged_by_ab_and_cd):
    """AB called three windows calm, violent, calm, and CD calm, calm, violent.

    They differ on the second and the third, on which nothing is agreed yet. A disagreement has the ids of the
    two judgements.
    """
    decisions = judged_by_ab_and_cd

    assert open_or_settled(decisions) == ["open", "open"]
    for disagreement in decisions.disagreements():
        levels = {decisions.lines[line_id].row["level"] for line_id in disagreement.decisions}
        assert levels == {"calm", "violent"}


def test_a_blind_judgement_is_not_compared_with_one_in_sight_of_the_score(decisions):
    """AB judged the first window blindly as calm. CD saw the model's score, and found it violent."""
    start_s, end_s = decisions.windows[0]
    judge_blindly(decisions, "calm", annotator="AB")
    judge(decisions, start=start_s, end=end_s, level="violent", annotator="CD")
    assert decisions.disagreements() == []


def test_judgements_in_sight_of_the_score_are_compared_with_each_other(decisions):
    """AB and CD saw the model's score when they judged the first window, as calm and as violent."""
    start_s, end_s = decisions.windows[0]
    judge(decisions, start=start_s, end=end_s, level="calm", annotator="AB")
    judge(decisions, start=start_s, end=end_s, level="violent", annotator="CD")
    assert len(decisions.disagreements()) == 1


def test_a_judgement_that_does_not_say_how_it_was_made_is_compared_with_those_in_sight(decisions):
    """AB saw the score. CD's judgement, kept by another program, has a blank cell: it is not a blind one."""
    judge(decisions, start=0.0, end=8.0, level="calm", annotator="AB")
    row_of_cd = {**ROW_OF_AB, "annotator": "CD", "level": "violent", "seen_score": " "}
    decisions.ledger.add("judgement", row_of_cd, [])

    assert open_or_settled(reopen(decisions)) == ["open"]


def test_each_disagreement_is_settled_on_its_own(judged_by_ab_and_cd):
    """AB and CD differ on two windows. What is agreed on one says nothing of the other.

    Deleting an agreement opens its window again.
    """
    decisions = judged_by_ab_and_cd
    first, second = decisions.disagreements()

    first_id = settle(decisions, first, "violent")
    assert open_or_settled(decisions) == ["settled", "open"]

    second_id = settle(decisions, second, "calm")
    assert open_or_settled(decisions) == ["settled", "settled"]
    assert agreed_ids(decisions) == [first_id, second_id]

    deleted = decisions.delete(first_id, "AB")
    assert deleted.id == first_id
    assert open_or_settled(decisions) == ["open", "settled"]


def test_settling_disagreements_leaves_all_judgements(judged_by_ab_and_cd):
    """AB and CD write down what they agree on; their three blind judgements each stay, as measurements."""
    decisions = judged_by_ab_and_cd
    for disagreement in decisions.disagreements():
        settle(decisions, disagreement, "violent")

    assert len(decisions.clips_by_kind["judgement"]) == 6
    assert len(rows_of(decisions.folder / JUDGEMENTS)) == 6
    blind_judgements = decisions.blind_judgements()
    assert set(blind_judgements) == {"AB", "CD"}
    assert len(blind_judgements["AB"]) == 3
    assert len(blind_judgements["CD"]) == 3


@pytest.mark.long
def test_a_new_agreement_replaces_the_former_until_undone(judged_by_ab_and_cd):
    """One disagreement is settled as violent, and then as calm. AB's undo takes back the latter."""
    decisions = judged_by_ab_and_cd
    disagreement, _other = decisions.disagreements()

    violent_id = settle(decisions, disagreement, "violent", annotator="AB")
    calm_id = settle(decisions, disagreement, "calm", annotator="AB")
    assert agreed_ids(decisions) == [calm_id]

    decisions.undo("AB")
    assert agreed_ids(decisions) == [violent_id]


def judge_window_again(decisions, line_id, level):
    """Let the judge of a window judge it again, blindly."""
    (clip,) = [clip for clip in decisions.clips_by_kind["judgement"] if clip.clip_id == line_id]
    place = decisions.place_of(clip)
    judge(decisions, clip.start_s, clip.end_s, level, clip.annotator, place=place, n_planned=99)


def test_judging_again_reopens_a_settled_disagreement(judged_by_ab_and_cd):
    """AB and CD differ on two windows, and settle the first: the agreement is on their two judgements of it.

    When AB judges the window again, one of the two is no more. So the agreement no longer stands, and a
    notice says so, until AB undoes the new judgement.
    """
    decisions = judged_by_ab_and_cd
    first, _ = decisions.disagreements()
    settle(decisions, first)
    assert open_or_settled(decisions) == ["settled", "open"]

    judgement_of_ab, _ = first.decisions
    judge_window_again(decisions, judgement_of_ab, "unsure")
    assert open_or_settled(decisions) == ["open", "open"]
    assert decisions.clips_by_kind["agreed"] == []
    assert any("agreed" in notice for notice in decisions.notices)

    decisions.undo("AB")
    assert open_or_settled(decisions) == ["settled", "open"]


@pytest.mark.long
def test_two_contrary_agreements_settle_nothing(judged_by_ab_and_cd):
    """AB and EF settle one disagreement at the same time, as violent and as calm.

    Both agreements stand, and the disagreement is open. EF's desk has read the ledger before AB wrote.
    """
    decisions_of_ab = judged_by_ab_and_cd
    decisions_of_ef = reopen(decisions_of_ab)
    disagreement, _other = decisions_of_ab.disagreements()

    settle(decisions_of_ab, disagreement, "violent", annotator="AB")
    settle(decisions_of_ef, disagreement, "calm", annotator="EF")
    decisions_of_ab.refresh()

    assert open_or_settled(decisions_of_ab) == ["open", "open"]
    assert len(decisions_of_ab.clips_by_kind["agreed"]) == 2


def test_an_agreement_on_judgements_of_two_spans_is_refused(judged_by_ab_and_cd):
    """AB and CD differ on two windows. An agreement joins the two judgements of one window."""
    decisions = judged_by_ab_and_cd
    first, second = decisions.disagreements()
    of_first_window, _ = first.decisions  # ids of judgements
    of_second_window, _ = second.decisions
    of_two_spans = first._replace(decisions=(of_first_window, of_second_window))
    with pytest.raises(FilmError):
        settle(decisions, of_two_spans)
    assert decisions.clips_by_kind["agreed"] == []


def test_an_agreement_of_one_judgement_with_itself_is_refused(judged_by_ab_and_cd):
    """AB and CD differ on a window. An agreement joins the judgements of two people."""
    decisions = judged_by_ab_and_cd
    first, _ = decisions.disagreements()
    id_of_judgement, _ = first.decisions
    of_one_person = first._replace(decisions=(id_of_judgement, id_of_judgement))
    with pytest.raises(FilmError):
        settle(decisions, of_one_person)
    assert decisions.clips_by_kind["agreed"] == []


def test_an_agreement_on_a_deleted_judgement_is_refused(judged_by_ab_and_cd):
    """AB and CD differ on a window, until one of them deletes their judgement."""
    decisions = judged_by_ab_and_cd
    disagreement, _other = decisions.disagreements()
    judgement_id, _ = disagreement.decisions
    decisions.delete(judgement_id, decisions.lines[judgement_id].annotator)
    with pytest.raises(FilmError):
        settle(decisions, disagreement)
    assert decisions.clips_by_kind["agreed"] == []


def agreed_levels_and_seen_scores(decisions):
    """Return the level of each agreement that stands, and "1" if who agreed saw the score, else "0"."""
    return [(clip.level, clip.extras["seen_score"]) for clip in decisions.clips_by_kind["agreed"]]


def test_an_agreement_is_blind_only_where_the_desk_never_showed_the_scores(judged_by_ab_and_cd):
    """In the mode "blind" the desk shows no scores (`seen_score` is 0), in the mode "read" it does (1).

    Whoever has once agreed in sight of the score knows it, even if they agree anew without seeing it.
    """
    decisions = judged_by_ab_and_cd
    first, second = decisions.disagreements()
    settle(decisions, first, "violent", mode="blind")
    settle(decisions, second, "violent", mode="read")
    assert agreed_levels_and_seen_scores(decisions) == [("violent", "0"), ("violent", "1")]

    settle(decisions, second, "calm", mode="blind")
    assert agreed_levels_and_seen_scores(decisions) == [("violent", "0"), ("calm", "1")]


def test_the_table_of_agreements_names_both_judgements_of_each(judged_by_ab_and_cd):
    """A row is one agreement; its cell `parents` has the ids of the two judgements that it settles."""
    decisions = judged_by_ab_and_cd
    for disagreement in decisions.disagreements():
        settle(decisions, disagreement, "violent")

    first_row, second_row = rows_of(decisions.folder / SETTLED)
    for row in (first_row, second_row):
        assert row["level"] == "violent"
        assert len(row["parents"].split(";")) == 2


def test_reading_the_table_of_agreements_again_changes_nothing(judged_by_ab_and_cd):
    """AB and CD settle their two disagreements; a table lists what they agreed on. The film is reopened.

    The table is read again. If its rows were taken for new decisions, they would be written to a second file
    of the ledger. There must be one file, and the two agreements.
    """
    decisions = judged_by_ab_and_cd
    for disagreement in decisions.disagreements():
        settle(decisions, disagreement, "violent")

    again = reopen(decisions)

    assert [clip.level for clip in again.clips_by_kind["agreed"]] == ["violent", "violent"]
    assert len(list(decisions.folder.glob("ledger/*.jsonl"))) == 1


@pytest.mark.long
def test_models_learn_an_agreement_in_place_of_two_judgements(judged_by_ab_and_cd):
    """AB and CD made six judgements and differ on two spans. Of one they agree afterwards on "unsure".

    AB writes this down. A model is trained on 6 - 2 + 1 clips: what they agreed on takes the place of the two
    judgements that it settles. The other four, by AB and CD, stay as they are.
    """
    decisions = judged_by_ab_and_cd
    settled_disagreement, _open_disagreement = decisions.disagreements()
    settle(decisions, settled_disagreement, "unsure", annotator="AB")
    tables = (JUDGEMENTS, PASSAGES)
    folders = {decisions.folder: decisions.film}

    clips_as_judged = read_judged(folders, decisions.codebook, tables).manifest
    assert len(clips_as_judged) == 6

    clips_as_settled = list(read_judged(folders, decisions.codebook, tables, settled=True).manifest)
    assert len(clips_as_settled) == 5
    assert len({clip.clip_id for clip in clips_as_settled}) == 5
    start_s = settled_disagreement.start_s
    clips_of_settled_span = [clip for clip in clips_as_settled if clip.start_s == pytest.approx(start_s)]
    assert [clip.level for clip in clips_of_settled_span] == ["unsure"]
    assert {clip.annotator for clip in clips_as_settled} == {"AB", "CD"}


def test_exports_say_who_agreed(judged_by_ab_and_cd):
    """An exported agreement names both people; the six blind judgements are exported beside it."""
    decisions = judged_by_ab_and_cd
    disagreement, _other = decisions.disagreements()
    settle(decisions, disagreement, "violent", note="seen twice", mode="blind")

    decided = read_decided(decisions.folder, decisions.film).decided

    (agreed,) = [one for one in decided if one.is_agreed]
    assert agreed == Decided(
        disagreement.start_s,
        disagreement.end_s,
        ("AB", "CD"),
        "violent",
        note="seen twice",
        is_blind=True,
        is_agreed=True,
        id=decisions.clips_by_kind["agreed"][0].clip_id,
        definition=decisions.codebook.definition(),
        codebook=decisions.codebook,
        read_by=decisions.codebook,
    )
    assert [one.how for one in decided].count("blind") == 6


def test_a_strangers_agreement_removes_no_decision(judged_by_ab_and_cd):
    """AB and CD made six judgements. EF, who made none, writes a line of an agreement into the ledger.

    It claims to settle two of the judgements (`parents`), and to take all six away (`replaces`). All stand.
    """
    decisions = judged_by_ab_and_cd
    ids_before = {line.id for line in decisions.lines.values()}
    two_judgements = sorted(ids_before)[:2]
    row = {
        "movie": "tt1",
        "start_s": "0",
        "end_s": "8",
        "annotator": "EF",
        "level": "calm",
        "seen_score": "1",
        "parents": ";".join(two_judgements),
    }
    decisions.ledger.add("agreed", row, replaces=list(ids_before))

    decisions.refresh()
    decisions._find_standing_and_write_tables()  # as after each act at the desk

    assert {line.id for line in decisions.lines.values()} == ids_before


def test_what_is_agreed_on_a_judgement_with_seen_score_0_0_is_blind_as_with_0(judged_by_ab_and_cd):
    """EF judged the first window by another program, which writes 0.0 for "no score was shown", and not 0.

    The desk lists that judgement as blind. AB judged the same window blindly and differs: what AB and EF
    agree on, without having seen the score, must be blind, too.
    """
    [row_of_ab, *_] = [line.row for line in judged_by_ab_and_cd.lines.values() if line.annotator == "AB"]
    row_of_ef = {**row_of_ab, "annotator": "EF", "level": "violent", "seen_score": "0.0"}
    judged_by_ab_and_cd.ledger.add("judgement", row_of_ef, [])
    judged_by_ab_and_cd.refresh()
    decisions = reopen(judged_by_ab_and_cd)

    [difference_of_ab_and_ef, *_] = decisions.disagreements()
    settle(decisions, difference_of_ab_and_ef, mode="blind")

    [agreed] = [decided for decided in decisions.decided() if decided.is_agreed]
    assert agreed.is_blind


def test_models_learn_from_all_judgements_of_a_span_that_is_open_again(judged_by_ab_and_cd):
    """AB and CD settled the second window. Then EF judged it, otherwise: the desk asks to settle it again.

    Until then a model learns what each of the three says of it.
    """
    decisions = judged_by_ab_and_cd
    first, _ = decisions.disagreements()
    settle(decisions, first, "calm")
    judge_blindly(decisions, "calm", "violent", annotator="EF")
    assert open_or_settled(decisions) == ["open", "open"]

    folders = {decisions.folder: decisions.film}
    learnt = read_judged(folders, decisions.codebook, (JUDGEMENTS,), settled=True).manifest

    levels = {clip.annotator: clip.level for clip in learnt if clip.start_s == pytest.approx(first.start_s)}
    assert set(levels) == {"AB", "CD", "EF"}
    assert levels["EF"] == "violent"
