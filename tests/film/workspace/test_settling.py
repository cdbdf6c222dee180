"""What people differ on, and what they agreed: who may settle, what counts, and how long."""

import pytest

from obygaze_features.manifest import import_spans
from obygaze_film.errors import FilmError
from obygaze_film.exchange import Decided
from obygaze_film.scored_files import JUDGEMENTS, PASSAGES, SETTLED
from obygaze_film.workspace.decisions import Decisions, read_decided
from obygaze_film.workspace.judged_tables import read_judged
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import visible_decisions
from tests.files import rows_of
from tests.film.workspace.deciding import judge, judge_blindly

THREE = ("calm", "violent", "calm")
OTHERS = ("calm", "calm", "violent")


@pytest.fixture
def judged(scored_tt1):
    """Two people judged three windows blindly, and differ on two of them."""
    made = Decisions(*scored_tt1)
    judge_blindly(made, *THREE)
    judge_blindly(made, *OTHERS, who="CD")
    return made


def settle(made, disagreement, level="violent", who="AB", **more):
    """Keep what the person AB agreed on about a disagreement, as the one that follows from both decisions."""
    return made.keep(
        "agreed",
        disagreement.start_s,
        disagreement.end_s,
        who,
        level=level,
        parents=disagreement.decisions,
        **more,
    )


def is_open(made):
    return [not one.agreed for one in made.disagreements()]


def test_people_differ_where_one_span_has_two_levels(judged):
    assert is_open(judged) == [True, True]
    for one in judged.disagreements():
        levels = {judged.lines[name].row["level"] for name in one.decisions}
        assert levels == {"calm", "violent"}


def test_what_was_judged_in_sight_differs_from_nothing_blind(scored_tt1):
    made = Decisions(*scored_tt1)
    judge_blindly(made, "calm")
    start_s, end_s = made.windows[0]
    judge(made, start_s, end_s, "violent", "CD")
    assert made.disagreements() == []
    judge(made, start_s, end_s, "calm", "AB")
    assert len(made.disagreements()) == 1


def test_an_agreed_decision_settles_and_the_two_stay(judged):
    first, _ = judged.disagreements()
    name = settle(judged, first)
    assert is_open(judged) == [False, True]
    assert [clip.clip_id for clip in judged.kept["agreed"]] == [name]
    assert len(judged.kept["judgement"]) == 6
    assert {who: len(places) for who, places in judged.blind_judgements().items()} == {"AB": 3, "CD": 3}
    again = settle(judged, first, "calm")
    assert [clip.clip_id for clip in judged.kept["agreed"]] == [again]
    judged.undo("AB")
    assert [clip.clip_id for clip in judged.kept["agreed"]] == [name]
    assert judged.delete(name, "AB").id == name
    assert is_open(judged) == [True, True]


def test_whoever_judges_again_opens_the_question_again(judged):
    first, _ = judged.disagreements()
    settle(judged, first)
    judge_again = {"place": judged.place_of(_clip(judged, first.decisions[0])), "n_planned": 99}
    judge(judged, first.start_s, first.end_s, "unsure", "AB", **judge_again)
    assert is_open(judged) == [True, True]
    assert judged.kept["agreed"] == []
    assert any("agreed" in notice for notice in judged.notices)
    judged.undo("AB")
    assert is_open(judged) == [False, True]


def _clip(made, name):
    return next(clip for clip in made.kept["judgement"] if clip.clip_id == name)


def test_two_who_settle_it_otherwise_settle_nothing(judged, scored_tt1):
    first, _ = judged.disagreements()
    settle(judged, first, "violent", "AB")
    elsewhere = Decisions(*scored_tt1)
    settle(elsewhere, first, "calm", "EF")
    judged.refresh()
    assert is_open(judged) == [True, True]
    assert len(judged.kept["agreed"]) == 2


@pytest.mark.parametrize("wrong", ["of another span", "of one person", "that is gone"])
def test_what_settles_nothing_is_refused(judged, wrong):
    first, second = judged.disagreements()
    parents = first.decisions
    if wrong == "of another span":
        parents = first.decisions[:1] + second.decisions[:1]
    elif wrong == "of one person":
        parents = first.decisions[:1] * 2
    else:
        judged.delete(first.decisions[0], judged.lines[first.decisions[0]].annotator)
    with pytest.raises(FilmError):
        settle(judged, first._replace(decisions=parents))
    assert judged.kept["agreed"] == []


def test_nobody_is_settled_blindly_in_sight_of_the_score(judged):
    first, second = judged.disagreements()
    settle(judged, first, mode="blind")
    settle(judged, second, mode="read")
    assert [clip.extras["seen_score"] for clip in judged.kept["agreed"]] == ["0", "1"]


def test_what_one_settled_in_sight_is_settled_once_and_never_blind_again(judged):
    first, _ = judged.disagreements()
    settle(judged, first, "violent", mode="read")
    again = settle(judged, first, "calm", mode="blind")
    (clip,) = judged.kept["agreed"]
    assert (clip.clip_id, clip.level, clip.extras["seen_score"]) == (again, "calm", "1")


def test_a_desk_without_scores_says_that_a_difference_was_settled_and_not_how(scored_tt1):
    made = Decisions(*scored_tt1)
    judge_blindly(made, *THREE, in_all=3)  # both are finished, and see what the other judged
    judge_blindly(made, *OTHERS, who="CD", in_all=3)
    first, _ = made.disagreements()
    name = settle(made, first, mode="read")
    stands = visible_decisions(OpenFilm(0, made.film, made), "AB", blind=True)
    assert [one["agreed"] for one in stands["differ"]] == [name, ""]
    assert name not in {one["id"] for one in stands["you"]}


def test_it_is_a_table_that_comes_back_as_it_is(judged, scored_tt1):
    for one in judged.disagreements():
        settle(judged, one)
    folder = scored_tt1[0]
    rows = rows_of(folder / SETTLED)
    assert [row["level"] for row in rows] == ["violent", "violent"]
    assert all(len(row["parents"].split(";")) == 2 for row in rows)
    n_sittings = len([*folder.glob("ledger/*.jsonl")])
    again = Decisions(*scored_tt1)
    assert [clip.level for clip in again.kept["agreed"]] == ["violent", "violent"]
    assert len([*folder.glob("ledger/*.jsonl")]) == n_sittings


def test_what_is_agreed_trains_in_the_place_of_the_two(judged, scored_tt1):
    folder, timeline, book = scored_tt1
    first, _ = judged.disagreements()
    settle(judged, first, "unsure")
    names = (JUDGEMENTS, PASSAGES)
    apart = read_judged({folder: timeline}, book, names).manifest
    together = read_judged({folder: timeline}, book, names, settled=True).manifest
    assert (len(apart), len(together)) == (6, 5)
    levels = [clip.level for clip in together if clip.start_s == pytest.approx(first.start_s)]
    assert levels == ["unsure"]
    assert {clip.annotator for clip in together} == {"AB", "CD"}  # AB settled it, of both
    assert len({clip.clip_id for clip in together}) == 5


def test_exports_say_who_agreed(judged, scored_tt1):
    first, _ = judged.disagreements()
    settle(judged, first, note="seen twice", mode="blind")
    decided = read_decided(*scored_tt1[:2]).decided
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
        definition=scored_tt1[2].definition(),
    )
    assert [one.how for one in decided].count("blind") == 6


def test_a_stranger_can_settle_nothing_of_others_by_a_line(judged):
    """Whatever an agreed line names, decisions stand as they did."""
    before = {line.id for line in judged.lines.values()}
    row = {
        "movie": "tt1", "start_s": "0", "end_s": "8", "annotator": "EF", "level": "calm", "seen_score": "1",
        "parents": ";".join(sorted(before)[:2]),
    }  # fmt: skip
    judged.ledger.add("agreed", row, [*before])
    judged.refresh()
    judged._update()
    assert {line.id for line in judged.lines.values()} == before


def test_importing_all_tables_takes_no_agreed_one_for_a_persons(judged, scored_tt1, tmp_path):
    first, _ = judged.disagreements()
    settle(judged, first, "calm")
    manifest = import_spans(
        [scored_tt1[0] / JUDGEMENTS], tmp_path, "judgements", codebook=scored_tt1[2]
    ).manifest
    assert len(manifest) == 6
