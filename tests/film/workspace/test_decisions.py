"""What people decide: what stands, is undone, conflicts, and is hidden from whom."""

import errno
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from msgspec import structs

from obygaze_features import io
from obygaze_features.errors import ObygazeError
from obygaze_features.lines import encode_line
from obygaze_features.manifest import Level, builtin_codebook, import_spans
from obygaze_film.cells import cells_of
from obygaze_film.errors import FilmError
from obygaze_film.judged_windows import judged_film
from obygaze_film.windows_to_judge import choose_next
from obygaze_film.workspace import pages
from obygaze_film.workspace.decisions import JUDGEMENTS, NOTES, PASSAGES, Decisions, copy_decisions
from obygaze_film.workspace.ledger import Ledger
from obygaze_film.workspace.ledger_lines import Header
from obygaze_film.workspace.open_film import shown_judgements
from obygaze_film.workspace.pages import desk_page, next_window, shown_decisions, visible_decisions
from tests.files import rows_of
from tests.film.page.invented import ten_minute_film
from tests.film.workspace.deciding import (
    HEADER_OF_JUDGEMENTS,
    ROW_OF_AB,
    Standing,
    film_at_desk,
    judge,
    judge_blindly,
    judge_list,
    levels_in_force,
    lines_in_force,
    reopen,
    tabled_levels,
)


def clips_of_tables(decisions, *tables):
    """Import tables of decisions, with the codebook of the desk; return their clips."""
    paths = [decisions.folder / table for table in tables]
    return import_spans(paths, decisions.folder, "judgements", codebook=decisions.codebook).manifest


def test_a_blind_judgement_is_imported_with_its_place_in_the_draw(decisions):
    """A window that was drawn at random is judged without sight of the model's score (`seen_score` is 0).

    It is the first of the draw, of which 40 are planned. The table keeps this place, for only judgements of a
    draw estimate a share.
    """
    (window,) = choose_next([decisions.film], 1, blind=True)
    judge(
        decisions,
        start=window.start_s,
        end=window.end_s,
        level="violent",
        concepts=["Gun"],
        place=1,
        n_planned=40,
    )

    (clip,) = clips_of_tables(decisions, JUDGEMENTS)

    assert clip.start_s == window.start_s
    assert clip.end_s == window.end_s
    assert clip.level == "violent"
    assert clip.concepts == ("Gun",)
    assert clip.extras["seen_score"] == "0"
    assert clip.extras["place"] == "1"
    assert clip.extras["draw"] == "random"


def test_what_is_judged_in_sight_of_the_score_is_marked_so(decisions):
    """Whoever saw the model's score may be swayed by it, so `seen_score` is 1, and the span is of no draw.

    AB judges a span and marks a passage. The model finds violence, with which a calm judgement disagrees.
    """
    judge(decisions, start=10, end=20, level="calm")
    decisions.keep("passage", 30, 41.5, "AB", level="violent", origin="passage 2")

    judgement, passage = clips_of_tables(decisions, JUDGEMENTS, PASSAGES)

    assert judgement.level == "calm"
    assert judgement.extras["seen_score"] == "1"
    assert judgement.extras["draw"] == ""
    assert judgement.extras["judgement"] == "disagree"
    assert passage.level == "violent"
    assert passage.extras["seen_score"] == "1"


def test_white_space_in_a_name_becomes_one_space(decisions):
    """Somebody judges a window as " A  B " and asks for the next one as " A B": both are the person "A B".

    That person has judged one window of 99 planned.
    """
    judge_blindly(decisions, "calm", annotator=" A  B ", in_all=99)

    opened = film_at_desk(decisions)
    answer = next_window(opened, " A B", n_planned=99)

    assert levels_in_force(decisions) == [("A B", "calm")]
    assert answer["done"] == 1


def test_a_new_line_in_a_note_becomes_a_space(decisions):
    """A note of two lines is written in one row of the table of notes, on one line."""
    decisions.keep("note", 30, 41.5, "AB", note="why\nhere")
    (row,) = rows_of(decisions.folder / NOTES)
    assert row["note"] == "why here"


def test_a_name_that_begins_like_a_formula_comes_back_as_it_was(decisions):
    """A table quotes "=cmd()", which a spreadsheet would run, and the import takes the quote off again."""
    judge(decisions, start=10, end=20, annotator="=cmd()")
    (clip,) = clips_of_tables(decisions, JUDGEMENTS)
    assert clip.annotator == "=cmd()"


def test_reading_decisions_again_writes_nothing(decisions):
    """AB makes three decisions in one sitting; then the film's folder is opened again and only read.

    Reading is not deciding: no file is touched, and the ledger still has one file, of the one sitting.
    """
    judge(decisions, start=10, end=20)
    decisions.keep("passage", start_s=30, end_s=41.5, annotator="AB", level="violent")
    decisions.keep("note", start_s=30, end_s=41.5, annotator="AB", note="why here")

    def times_of_last_writing():
        files = [path for path in decisions.folder.rglob("*") if path.is_file()]
        return {path: path.stat().st_mtime_ns for path in files}

    times_before = times_of_last_writing()

    opened_again = reopen(decisions)

    assert lines_in_force(opened_again) == lines_in_force(decisions)
    assert opened_again.notices == []
    assert times_of_last_writing() == times_before
    files_of_ledger = list(decisions.folder.glob("ledger/*.jsonl"))
    assert len(files_of_ledger) == 1


def test_a_judgement_agrees_if_its_level_is_what_the_model_finds(scored_tt1):
    """The model finds the level "violent". AB judges four spans, each with another level.

    "violent" agrees with the model. "calm" disagrees, and so does "none", on which the model was not trained.
    "unsure", which is in no task, does neither. The table of judgements says the same as the desk.
    """
    codebook_with_none = replace(scored_tt1.codebook, levels=(Level("none"), *scored_tt1.codebook.levels))
    decisions = Decisions(scored_tt1.folder, scored_tt1.timeline, codebook_with_none)
    judge(decisions, start=0, end=1, level="none")
    judge(decisions, start=1, end=2, level="calm")
    judge(decisions, start=2, end=3, level="unsure")
    judge(decisions, start=3, end=4, level="violent")

    in_table = [row["judgement"] for row in rows_of(scored_tt1.folder / JUDGEMENTS)]
    on_desk = [decision["verdict"] for decision in shown_decisions(film_at_desk(decisions), "AB")]

    assert in_table == ["disagree", "disagree", "unsure", "agree"]
    assert on_desk == ["disagree", "disagree", "unsure", "agree"]


def test_decisions_are_copied_to_the_film_as_it_is_scored_anew(decisions):
    """A new model changes scores, and not what people decided. What AB took back is not brought back."""
    judgement_id = judge(decisions, start=10, end=20, level="violent", annotator="AB")
    judge_blindly(decisions, "calm", "violent", annotator="AB")
    decisions.undo("AB")
    folder_of_new_scores = decisions.folder.parent / "again"
    decisions.film.write(folder_of_new_scores)

    copy_decisions(decisions.folder, folder_of_new_scores)

    copied = Decisions(folder_of_new_scores, decisions.film, decisions.codebook)
    assert lines_in_force(copied) == lines_in_force(decisions)
    assert copied.notices == []
    assert copied.history(judgement_id) == []  # it replaces nothing


def test_copied_decisions_still_belong_to_who_made_them(decisions):
    """AB's judgement is copied to the film as it is scored anew. There AB can delete it and judge on."""
    judgement_id = judge(decisions, start=10, end=20, level="violent", annotator="AB")
    folder_of_new_scores = decisions.folder.parent / "again"
    decisions.film.write(folder_of_new_scores)
    copy_decisions(decisions.folder, folder_of_new_scores)
    copied = Decisions(folder_of_new_scores, decisions.film, decisions.codebook)

    added_id = judge(copied, start=30, end=40, annotator="AB")
    copied.delete(judgement_id, "AB")

    standing_ids = [clip.clip_id for clip in copied.clips_by_kind["judgement"]]
    assert standing_ids == [added_id]


def test_the_last_judgement_of_each_person_stands_until_they_undo_it(decisions):
    """AB judges one span twice, and can undo both; nobody, a person without a name included, undoes CD's."""
    judge(decisions, start=10, end=20, level="calm", annotator="AB")
    judge(decisions, start=10, end=20, level="violent", annotator="AB")
    judge(decisions, start=10, end=20, level="calm", annotator="CD")
    assert levels_in_force(decisions) == [("AB", "violent"), ("CD", "calm")]

    nothing_to_undo = None
    assert decisions.undo("AB") is not nothing_to_undo
    assert decisions.undo("AB") is not nothing_to_undo
    assert decisions.undo("AB") is nothing_to_undo
    assert decisions.undo("") is nothing_to_undo
    assert levels_in_force(decisions) == [("CD", "calm")]
    assert levels_in_force(reopen(decisions)) == [("CD", "calm")]


def test_decisions_of_an_earlier_sitting_are_not_undone(decisions):
    """Undo takes back what was decided since the desk was opened, and never yesterday's work.

    It returns what it took back, or None.
    """
    judge(decisions, start=10, end=20, level="calm", annotator="CD")

    next_sitting = reopen(decisions)

    assert next_sitting.undo("CD") is None
    assert levels_in_force(next_sitting) == [("CD", "calm")]


def act_at_random(decisions, rng, number):
    """Delete or change one of AB's decisions, judge a span or mark a passage.

    `number` counts the acts: it makes spans that no other act has.
    """
    ids = [clip.clip_id for clips in decisions.clips_by_kind.values() for clip in clips]
    acts = ["judge", "mark"]
    if ids:
        acts += ["delete", "change"]
    act = rng.choice(acts)
    level = "violent" if number % 2 else "calm"
    if act == "delete":
        decisions.delete(rng.choice(ids), "AB")
    elif act == "change":
        start_s = float(rng.integers(90)) + number / 100
        decisions.keep("passage", start_s, start_s + 3, "AB", level=level, changed_id=rng.choice(ids))
    elif act == "judge":
        start_s = 10.0 * int(rng.integers(3))  # one of three spans, which may be judged already
        judge(decisions, start=start_s, end=50, level=level)
    else:
        decisions.keep("passage", 30 + number, 40 + number, "AB", level=level)


def test_undo_and_redo_lead_through_every_earlier_state(decisions):
    """AB judges, marks, changes and deletes at random, 24 times; a state is what stands after an act.

    Each undo restores the state before an act, back to the first, and each redo the state after it. Where
    nothing is left to undo or redo, it returns None. The folder, read again, holds the last state.
    """
    rng = np.random.default_rng(0)
    states = [lines_in_force(decisions)]
    for number in range(24):
        act_at_random(decisions, rng, number)
        states.append(lines_in_force(decisions))
        assert decisions.conflicts() == set()

    states_before_acts = states[:-1]
    for state_before in reversed(states_before_acts):
        assert decisions.undo("AB")
        assert lines_in_force(decisions) == state_before
    assert decisions.undo("AB") is None

    states_after_acts = states[1:]
    for state_after in states_after_acts:
        assert decisions.redo("AB")
        assert lines_in_force(decisions) == state_after
    assert decisions.redo("AB") is None
    assert lines_in_force(reopen(decisions)) == states[-1]


def test_a_new_decision_ends_what_redo_could_bring_back(decisions):
    """AB judges a span, takes that back, and judges another one: nothing is left that redo could restore.

    As in any editor, redo is possible only right after undo.
    """
    judge(decisions, start=10, end=20, annotator="AB")
    decisions.undo("AB")
    judge(decisions, start=1, end=2, annotator="AB")

    assert decisions.redo("AB") is None


def test_nobody_edits_or_deletes_a_decision_that_is_not_theirs(decisions):
    """CD tries to delete AB's judgement, and to make a passage of it."""
    judgement_of_ab = judge(decisions, start=10, end=20, level="calm", annotator="AB")

    with pytest.raises(FilmError):
        decisions.delete(judgement_of_ab, "CD")
    with pytest.raises(FilmError):
        decisions.keep("passage", 10, 20, "CD", level="calm", changed_id=judgement_of_ab)

    assert levels_in_force(decisions) == [("AB", "calm")]


def test_a_decision_that_is_not_there_is_neither_edited_nor_deleted(decisions):
    """Nobody has decided anything on the film. CD names an id to delete, and to make a passage of."""
    id_of_nothing = "0000000000000000-1"
    with pytest.raises(FilmError):
        decisions.delete(id_of_nothing, "CD")
    with pytest.raises(FilmError):
        decisions.keep("passage", 10, 20, "CD", level="calm", changed_id=id_of_nothing)
    assert decisions.clips_by_kind["passage"] == []


def test_a_decision_is_not_deleted_twice_by_two_sittings(decisions):
    """Two desks are open on one folder. The second one is told that the first has deleted it meanwhile."""
    judgement_id = judge(decisions, start=10, end=20, annotator="AB")
    first_desk, second_desk = reopen(decisions), decisions

    first_desk.delete(judgement_id, "AB")
    second_desk.refresh()

    with pytest.raises(FilmError, match="meanwhile"):
        second_desk.delete(judgement_id, "AB")
    assert reopen(decisions).notices == []


def test_a_judgement_in_sight_does_not_replace_a_blind_one(decisions):
    """A share is estimated from blind judgements, so a later look in sight of the score must not change it.

    AB judges the first window of the draw blindly, and then twice in sight of the score: the second of these
    replaces the first. So two judgements stand, and one window of the draw is done.
    """
    start_s, end_s = decisions.windows[0]
    judge_blindly(decisions, "violent", annotator="AB")
    judge(decisions, start=start_s, end=end_s, level="calm", annotator="AB")
    judge(decisions, start=start_s, end=end_s, level="unsure", annotator="AB")

    assert levels_in_force(decisions) == [("AB", "violent"), ("AB", "unsure")]
    blind, in_sight = clips_of_tables(decisions, JUDGEMENTS)
    assert blind.level == "violent"
    assert blind.extras["seen_score"] == "0"
    assert in_sight.level == "unsure"
    assert in_sight.extras["seen_score"] == "1"
    answer = next_window(film_at_desk(decisions), "AB", n_planned=99)
    assert answer["done"] == 1


@pytest.mark.parametrize(
    ("place", "seconds_later"),
    [(2, 0), (10**6, 0), (-1, 0), (1, 1)],
    ids=["the second place", "a place after the last", "a negative place", "an end a second later"],
)
def test_a_blind_judgement_must_have_the_place_and_the_end_of_its_window(decisions, place, seconds_later):
    """A window of the draw is judged blindly, which names its place: here it is the first.

    With a wrong place or end it would pass for another window.
    """
    start_s, end_s = decisions.windows[0]
    with pytest.raises(ObygazeError, match="place"):
        judge(decisions, start=start_s, end=end_s + seconds_later, place=place, n_planned=40)
    assert decisions.clips_by_kind["judgement"] == []


def test_a_decision_may_end_less_than_a_second_after_the_film(decisions):
    """The film lasts 120 s. Players round its end, so that .9 s more is no mistake of the judge."""
    assert decisions.film.record.duration_s == 120.0
    judge(decisions, start=100, end=120.9, level="calm", annotator="AB")
    assert levels_in_force(decisions) == [("AB", "calm")]


NONSENSE = {
    "a start that is no number": {"start_s": "nan"},
    "a start after the end": {"start_s": "9"},
    "an end after the film": {"end_s": "1e9"},
    "no end": {"end_s": ""},
    "a start of 400 digits": {"start_s": "9" * 400},
    "a level that the codebook does not have": {"level": "S"},
    "a concept that the codebook does not have": {"concepts": "Body"},
    "no annotator": {"annotator": ""},
    "an annotator that moves the terminal's cursor": {"annotator": "A\x1b[2J"},
    "neither blind nor in sight": {"seen_score": "2"},
    "a control character in another column": {"mine": "\x00"},
}
"""What no row of a ledger has, by what is wrong with it."""

NOT_OF_THE_DRAW = {
    "a place of 400 digits": {"seen_score": "0", "place": "9" * 400},
    "the place of another window": {"seen_score": "0", "place": "2"},
    "no place": {"seen_score": "0"},
}
"""Blind judgements of a window of the draw, which are of no such window: they count as judged in sight."""


def ledger_with_second_line(folder, wrong):
    """Write a ledger of two judgements, of which the second has these cells; return its path."""
    (folder / "ledger").mkdir()
    path = folder / "ledger" / "0123456789abcdef.jsonl"
    first = {"id": "0123456789abcdef-1", "clock": 1, "kind": "judgement", "row": ROW_OF_AB}
    second = first | {"id": "0123456789abcdef-2", "row": ROW_OF_AB | wrong}
    path.write_bytes(encode_line(first) + encode_line(second))
    return path


@pytest.mark.parametrize("wrong", NONSENSE.values(), ids=NONSENSE)
def test_a_wrong_line_of_the_ledger_is_named_once_and_not_shown(scored_tt1, wrong):
    """A file of the ledger has two judgements of AB, and a cell of the second is wrong, such as its start.

    The film is opened all the same: the desk's page can be made and shows the first judgement, and a notice
    names the file and line 2. A later decision does not repeat the notice.
    """
    path_of_ledger_file = ledger_with_second_line(scored_tt1.folder, wrong)

    decisions = Decisions(*scored_tt1)  # which reads the ledger

    notices = list(decisions.notices)
    assert str(path_of_ledger_file) in notices[0]
    assert "line 2" in notices[0]
    film = film_at_desk(decisions)
    assert len(shown_decisions(film, viewer="AB")) == 1
    assert "<html" in desk_page([film], film, mode="read", language="en")

    judge(decisions, start=10, end=20)
    assert decisions.notices == notices


def test_a_judgement_of_another_film_is_neither_shown_nor_exported(scored_tt1):
    """A file of the ledger has two judgements of AB, of which the second is of another film.

    A notice says that it is not shown here. An export has it no more than the desk.
    """
    ledger_with_second_line(scored_tt1.folder, {"movie": "tt2", "start_s": "40", "end_s": "48"})

    decisions = Decisions(*scored_tt1)
    shown = shown_decisions(film_at_desk(decisions), "AB")
    exported = decisions.decided()

    assert [decision["start"] for decision in shown] == [0.0]
    assert [decision.start_s for decision in exported] == [0.0]
    assert any("of another film" in notice for notice in decisions.notices)


@pytest.mark.parametrize("wrong", NOT_OF_THE_DRAW.values(), ids=NOT_OF_THE_DRAW)
def test_a_blind_judgement_with_a_wrong_place_does_not_count_in_the_draw(scored_tt1, wrong):
    """A file of the ledger has two judgements of AB: in sight of the score, and blind with a wrong place.

    The blind one names another place in the draw than its window has, or none, so no window counts as done.
    It may be honest, and so the desk's page shows it like the first, and a notice names the file and line 2.
    """
    path_of_ledger_file = ledger_with_second_line(scored_tt1.folder, wrong)

    decisions = Decisions(*scored_tt1)  # which reads the ledger

    first_notice = decisions.notices[0]
    assert str(path_of_ledger_file) in first_notice
    assert "line 2" in first_notice
    film = film_at_desk(decisions)
    assert len(shown_decisions(film, viewer="AB")) == 2
    assert "<html" in desk_page([film], film, mode="read", language="en")
    n_windows_done = next_window(film, "AB", n_planned=99)["done"]
    assert n_windows_done == 0


def judge_in_two_sittings_at_once(decisions, **fields_of_each):
    """Replace AB's judgement of 10 to 20 seconds in two sittings that do not see each other's line.

    Each field has two values: that of the other sitting, which is kept first, and that of this one.
    """
    judge(decisions, start=10, end=20)
    other = reopen(decisions)
    replaced_id = decisions.clips_by_kind["judgement"][0].clip_id
    row = dict(decisions.ledger.lines[replaced_id].row)
    for ledger, place in ((other.ledger, 0), (decisions.ledger, 1)):
        fields = {name: values[place] for name, values in fields_of_each.items()}
        ledger.add("judgement", row | fields, [replaced_id])
    decisions.refresh()


def test_two_judgements_made_at_once_stand_and_are_marked_until_one_decides_again(decisions):
    """AB judges 10 to 20 s in two sittings at once, as violent and as unsure.

    Neither sitting saw the other's judgement, so that neither replaces the other: both stand, marked as
    standing beside another. A third judgement is made in sight of both, and replaces both.
    """
    judge_in_two_sittings_at_once(decisions, level=("violent", "unsure"))
    assert sorted(levels_in_force(decisions)) == [("AB", "unsure"), ("AB", "violent")]
    assert len(decisions.conflicts()) == 2
    shown = shown_decisions(film_at_desk(decisions), "AB")
    assert len(shown) == 2
    assert all(decision["beside"] for decision in shown)
    assert any("beside" in notice for notice in decisions.notices)

    judge(decisions, start=10, end=20, level="violent", annotator="AB")
    assert levels_in_force(decisions) == [("AB", "violent")]
    assert decisions.conflicts() == set()


@pytest.mark.parametrize("is_later_kept_first", [False, True], ids=["later kept last", "later kept first"])
def test_of_two_judgements_made_at_once_the_later_one_counts(decisions, is_later_kept_first):
    """AB judged in two sittings at once: "violent", and 38 seconds later "unsure".

    Both stand in the table, but a share takes one judgement of a person: that with the later `judged_at`,
    whichever of the two was written into the ledger first.
    """
    levels = ("violent", "unsure")
    times = ("2026-11-29T02:16:43+00:00", "2026-11-29T02:17:21+00:00")
    if is_later_kept_first:
        levels = ("unsure", "violent")
        times = ("2026-11-29T02:17:21+00:00", "2026-11-29T02:16:43+00:00")
    judge_in_two_sittings_at_once(decisions, level=levels, judged_at=times)

    assert levels_in_force(decisions) == [("AB", "violent"), ("AB", "unsure")]
    assert tabled_levels(decisions) == ["violent", "unsure"]
    levels_that_count = [clip.level for clip in decisions.judgements()]
    assert levels_that_count == ["unsure"]


@pytest.mark.parametrize("kind", ["undo", "note", "judgement"])
def test_a_notice_names_who_tried_to_change_anothers_decision(decisions, kind):
    """XY writes a line into the ledger by hand that is to take the place of AB's judgement.

    It would undo the judgement, or put a note or a judgement by XY in its place. AB's judgement stands, and a
    notice names both people.
    """
    judgement_of_ab = judge(decisions, start=10, end=20, level="calm", annotator="AB")
    desk_of_xy = reopen(decisions)
    row_of_xy = ROW_OF_AB | {"annotator": "XY", "note": "hi", "start_s": "40", "end_s": "48"}
    desk_of_xy.ledger.add(kind, row_of_xy, replaces=[judgement_of_ab])

    decisions.refresh()

    assert ("AB", "calm") in levels_in_force(decisions)
    (notice,) = decisions.notices
    assert "XY" in notice
    assert "AB" in notice


def test_an_unknown_level_replaces_no_judgement(scored_tt1):
    """A newer codebook has the level "brutal", to which a judgement was changed.

    Read with the older codebook, that line cannot be understood: the judgement before it stands, with a
    notice.
    """
    newer_codebook = replace(scored_tt1.codebook, levels=(*scored_tt1.codebook.levels, Level("brutal")))
    newer = Decisions(scored_tt1.folder, scored_tt1.timeline, newer_codebook)
    judgement_id = judge(newer, start=10, end=20, level="violent")
    newer.keep("judgement", 10, 20, "AB", level="brutal", changed_id=judgement_id)
    assert levels_in_force(newer) == [("AB", "brutal")]

    decisions = Decisions(*scored_tt1)
    assert levels_in_force(decisions) == [("AB", "violent")]
    assert any("brutal" in notice for notice in decisions.notices)


@pytest.mark.parametrize("kind", ["passage", "judgement", "note"])
def test_a_changed_decision_stands_in_place_of_the_earlier_one(decisions, kind):
    """AB decides on 10 to 20 s, and then moves the beginning to 11 s: one decision stands, from 11 s on.

    Undo brings the earlier one back.
    """
    level_or_note = {"note": "hands"} if kind == "note" else {"level": "violent"}

    def spans_in_force(decisions):
        return [(decision.start_s, decision.end_s) for decision in lines_in_force(decisions)[kind]]

    earlier_id = decisions.keep(kind, start_s=10, end_s=20, annotator="AB", **level_or_note)
    decisions.keep(kind, start_s=11, end_s=20, annotator="AB", **level_or_note, changed_id=earlier_id)
    assert spans_in_force(decisions) == [(11.0, 20.0)]
    assert spans_in_force(reopen(decisions)) == [(11.0, 20.0)]

    decisions.undo("AB")
    assert spans_in_force(decisions) == [(10.0, 20.0)]


def test_turning_a_judgement_into_a_passage_is_one_act_to_undo(decisions):
    """AB judges 10 to 20 s, and then moves the beginning to 11 s, which makes it a passage of AB's own.

    The judgement goes and the passage comes in one act, which one undo takes back, and one redo does again.
    """
    judgement_id = judge(decisions, start=10, end=20, level="violent", annotator="AB")
    with_judgement = lines_in_force(decisions)
    assert with_judgement["judgement"] == [Standing("AB", start_s=10.0, end_s=20.0, level="violent")]
    assert with_judgement["passage"] == []

    decisions.keep("passage", start_s=11, end_s=20, annotator="AB", level="violent", changed_id=judgement_id)
    with_passage = lines_in_force(decisions)
    assert with_passage["judgement"] == []
    assert with_passage["passage"] == [Standing("AB", start_s=11.0, end_s=20.0, level="violent")]

    decisions.undo("AB")
    assert lines_in_force(decisions) == with_judgement
    decisions.redo("AB")
    assert lines_in_force(decisions) == with_passage
    assert lines_in_force(reopen(decisions)) == with_passage


@pytest.mark.parametrize(
    "wrong_fields",
    [
        pytest.param({"level": "S"}, id="a level of another codebook"),
        pytest.param({"concepts": ["Body"]}, id="a concept of another codebook"),
        pytest.param({"annotator": " "}, id="no name"),
        pytest.param({"start_s": 20.0}, id="no length"),
        pytest.param({"start_s": 20.5}, id="an end before the beginning"),
        pytest.param({"start_s": -0.1}, id="a beginning before the film"),
        pytest.param({"end_s": 121.1}, id="an end more than a second after the film"),
        pytest.param({"start_s": float("nan")}, id="no beginning"),
        pytest.param({"end_s": float("inf")}, id="no end"),
        pytest.param({"kind": "passage", "end_s": 10.05}, id="a passage of a twentieth of a second"),
        pytest.param({"kind": "note", "level": "", "note": " "}, id="an empty note"),
    ],
)
def test_a_wrong_decision_is_refused_and_nothing_is_written(decisions, wrong_fields):
    """A judgement from 10 to 20 s of a film of 120 s is made wrong in some fields."""
    decision = {"kind": "judgement", "start_s": 10.0, "end_s": 20.0, "annotator": "AB", "level": "calm"}
    decision |= wrong_fields

    with pytest.raises(ObygazeError):
        decisions.keep(**decision)

    assert not (decisions.folder / JUDGEMENTS).exists()
    assert not (decisions.folder / "ledger").exists()


def fail_as_on_a_full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_decision_is_kept_though_the_disk_is_full_for_its_table(decisions, monkeypatch):
    """A decision is written into the ledger, and then into the table: the ledger is what counts.

    On this disk there is space for the line of the ledger, and none for the table. So the table stays as it
    was, and a notice says where the decision is.
    """
    judge(decisions, start=10, end=20)
    table = decisions.folder / JUDGEMENTS
    table_before = table.read_bytes()

    with monkeypatch.context() as full_disk:
        full_disk.setattr(io, "write_all", fail_as_on_a_full_disk)  # which writes tables
        judge(decisions, start=20, end=30)

    assert table.read_bytes() == table_before
    assert len(levels_in_force(reopen(decisions))) == 2
    (notice,) = decisions.notices
    assert JUDGEMENTS in notice
    assert "ledger/" in notice


def test_a_full_disk_fails_a_decision_and_changes_nothing(decisions, monkeypatch):
    """What the ledger cannot keep was not decided: the error reaches the user, and deciding goes on later."""
    judge(decisions, start=10, end=20, level="calm", annotator="AB")
    before = lines_in_force(decisions)

    with monkeypatch.context() as full_disk:
        full_disk.setattr("obygaze_features.lines.write_all", fail_as_on_a_full_disk)  # lines of the ledger
        with pytest.raises(OSError, match="No space"):
            judge(decisions, start=30, end=40, level="violent", annotator="AB")
        with pytest.raises(OSError, match="No space"):
            decisions.undo("AB")
    assert lines_in_force(decisions) == before

    # Then there is space again: the first judgement is undone, and two others are made.
    assert decisions.undo("AB") is not None
    judge(decisions, start=40, end=50, level="violent", annotator="AB")
    judge(decisions, start=60, end=70, level="unsure", annotator="AB")
    assert tabled_levels(decisions) == ["violent", "unsure"]
    assert lines_in_force(reopen(decisions)) == lines_in_force(decisions)


def test_a_film_that_is_scored_again_keeps_its_ledger_and_must_be_opened_again(decisions):
    """The judge looks at the old scores, and must open the film again before deciding on the new ones.

    AB's judgement is there in the folder of the film as it is scored again.
    """
    judge(decisions, start=10, end=20, level="calm", annotator="AB")
    decisions.ledger.close()  # Windows replaces no folder that holds an open file
    decisions.film.write(decisions.folder)  # as if scored again

    with pytest.raises(ObygazeError, match="scored again"):
        judge(decisions, start=20, end=30, level="calm", annotator="AB")

    assert levels_in_force(reopen(decisions)) == [("AB", "calm")]


def judges_seen_by(decisions, viewer):
    """Return the names of those whose decisions somebody is shown."""
    film = film_at_desk(decisions)
    return {decision["who"] for decision in shown_decisions(film, viewer)}


def test_a_judge_who_plans_fewer_windows_later_does_not_see_others_judgements_sooner(decisions):
    """A judge says how many windows to judge blindly in all, and is shown others' judgements after the last.

    CD has finished ten. AB plans to judge all windows of the film, judges one, and then plans eleven in all.
    After the eleventh AB still sees none but AB's own: the highest number that a judge planned holds.
    """
    n_windows = len(decisions.windows)
    assert n_windows > 11  # else to plan all would be to plan no more than eleven
    judge_blindly(decisions, *["violent"] * 10, annotator="CD", in_all=10)

    judge_blindly(decisions, "calm", annotator="AB", in_all=n_windows)
    judge_blindly(decisions, *["calm"] * 10, annotator="AB", in_all=11)

    assert judges_seen_by(decisions, "AB") == {"AB"}


def test_a_share_is_given_once_ten_windows_are_judged(decisions):
    """Ten windows are the fewest from which a share is given: AB has judged nine of ten, and then all."""
    film = film_at_desk(decisions)
    judge_blindly(decisions, *["violent"] * 10, annotator="CD", in_all=10)
    judge_blindly(decisions, *["calm"] * 9, annotator="AB", in_all=10)
    after_nine = next_window(film, "AB", n_planned=10, tells_share=True)
    assert "9 windows" in after_nine["few"]
    assert "sofar" not in after_nine
    assert "share" not in after_nine

    judge_blindly(decisions, "calm", annotator="AB", in_all=10)
    after_ten = next_window(film, "AB", n_planned=10)
    assert "window" not in after_ten  # to judge next
    assert "from 10 windows" in after_ten["share"]
    assert "AB and CD: 0 windows of 10 alike" in after_ten["share"]  # CD called violent what is calm for AB
    assert "whenever you stop" in after_ten["sofar"]


class AskedInterval(NamedTuple):
    """What `anytime_interval` was asked for; content is in seconds."""

    starts_of_judged: list[float]
    is_positive: list[float]
    content_of_film_s: float
    content_of_judged_s: float


@pytest.fixture
def asked_intervals(monkeypatch):
    """Record what is asked of a stand-in for `anytime_interval`, which always answers 0 to 1."""
    asked = []

    def record_and_answer(cells, judged, y, unsure):
        starts = [cells.spans[cell][0] for cell in judged]
        content_s = cells.without(unsure).content_s
        asked.append(AskedInterval(starts, [*y], content_s.sum(), content_s[judged].sum()))
        return 0.0, 1.0

    monkeypatch.setattr(pages, "anytime_interval", record_and_answer)
    return asked


def test_the_anytime_interval_takes_windows_in_the_order_of_the_draw(decisions, asked_intervals):
    """The interval holds only for windows in random order, and so must not be given them sorted by time.

    A stand-in for `anytime_interval` records what it is asked for. Positive is "violent".
    """
    ten_levels = ["violent", "calm"] * 5
    judge_blindly(decisions, *ten_levels, in_all=10)
    starts_in_order_of_draw = [start for start, _ in decisions.windows[:10]]
    assert starts_in_order_of_draw != sorted(starts_in_order_of_draw)  # so the two orders can be told apart

    next_window(film_at_desk(decisions), "AB", n_planned=10, tells_share=True)

    (asked,) = asked_intervals
    assert asked.starts_of_judged == starts_in_order_of_draw
    assert asked.is_positive == [1.0, 0.0] * 5


def test_unsure_windows_are_left_out_of_the_anytime_share(decisions, asked_intervals):
    """AB calls the film's first window violent, is unsure of the second, calls others calm, leaves the last.

    After each judgement the desk says which share is positive so far, with an interval. It is a share of the
    seconds that are positive or negative: those of the unsure window are taken from the whole film, and from
    what was judged. A stand-in records for which numbers the desk asks an interval.
    """
    _first_window, unsure_window, *_calm_windows, unjudged_window = decisions.windows
    n_windows = len(decisions.windows)
    n_calm = n_windows - 3
    judge_blindly(decisions, "violent", "unsure", *["calm"] * n_calm, in_all=n_windows)
    film = film_at_desk(decisions)

    text_so_far = next_window(film, "AB", n_windows, tells_share=True)["sofar"]

    cells = cells_of(decisions.film)
    unsure_s = cells.content_s[cells.index_of(*unsure_window)]
    unjudged_s = cells.content_s[cells.index_of(*unjudged_window)]
    (asked_interval,) = asked_intervals
    assert asked_interval.content_of_film_s == pytest.approx(cells.content_s.sum() - unsure_s)
    content_of_judged_s = cells.content_s.sum() - unsure_s - unjudged_s
    assert asked_interval.content_of_judged_s == pytest.approx(content_of_judged_s)
    assert len(asked_interval.is_positive) == 1 + n_calm
    beginning_of_note_on_unsure = "1 window ("
    assert beginning_of_note_on_unsure in text_so_far
    note_on_draws_without_content = "earlier law"
    assert note_on_draws_without_content not in text_so_far


def test_nobody_is_asked_for_more_windows_than_there_are(decisions):
    """AB planned ten times as many windows as the film has. Somebody else planned none, and gets all."""
    n_windows = len(decisions.windows)

    judge_blindly(decisions, "violent", annotator="AB", in_all=10 * n_windows)

    assert decisions.n_planned_by("AB") == n_windows
    assert decisions.n_planned_by("somebody else") == n_windows


def test_a_share_of_all_windows_has_no_interval(decisions):
    """AB planned ten times as many windows as the film has, and has judged them all.

    Nothing is left to estimate: the share is counted. The answer of the desk says so, whether all windows are
    asked for or more than there are. It has no window to judge next (`window`) and no text with an interval
    (`sofar`).
    """
    n_windows = len(decisions.windows)
    levels = ["violent" if number % 2 else "calm" for number in range(n_windows)]
    judge_blindly(decisions, *levels, annotator="AB", in_all=10 * n_windows)
    film = film_at_desk(decisions)

    for n_asked_for in (n_windows, 10 * n_windows):
        answer = next_window(film, "AB", n_planned=n_asked_for, tells_share=True)
        assert answer["done"] == n_windows
        number_planned_that_may_not_change = answer["fixed"]
        assert number_planned_that_may_not_change == n_windows
        assert "window" not in answer
        assert "sofar" not in answer
        assert "no window is left" in answer["share"]


def test_who_judged_a_list_elsewhere_is_finished_with_it_and_sees_the_others_judgements(decisions):
    """AB judged five windows of a list, as in a spreadsheet, and so never stated a number at the desk.

    The five that AB judged count as what AB planned. Nobody waits for more: AB sees CD's judgements, and may
    still choose a number at the desk (the answer has no `fixed` one).
    """
    judge_list(decisions, "violent", annotator="AB", n=5)
    judge_blindly(decisions, *["calm"] * 3, annotator="CD", in_all=10)

    assert decisions.n_stated_by("AB") == 0
    assert decisions.n_planned_by("AB") == 5
    assert not decisions.hides_others_from("AB")
    assert "fixed" not in next_window(film_at_desk(decisions), "AB", n_planned=0)


def test_who_stated_a_number_at_the_desk_sees_the_others_judgements_once_so_many_are_judged(decisions):
    """CD stated ten windows at the desk and has judged three; AB judged five windows of a list.

    CD does not see AB's judgements yet. The number ten is fixed now, as CD has begun.
    """
    judge_list(decisions, "violent", annotator="AB", n=5)
    judge_blindly(decisions, *["calm"] * 3, annotator="CD", in_all=10)

    assert decisions.n_stated_by("CD") == 10
    assert decisions.n_planned_by("CD") == 10
    assert decisions.hides_others_from("CD")
    assert next_window(film_at_desk(decisions), "CD", n_planned=0)["fixed"] == 10


def test_a_judge_of_a_list_who_continues_at_the_desk_judges_blindly(decisions):
    """AB judged five windows in a list, then plans seven at the desk and judges one of them.

    From then on AB has a number to reach, and does not see CD's judgements.
    """
    judge_list(decisions, "violent", annotator="AB", n=5)
    judge_blindly(decisions, *["calm"] * 3, annotator="CD", in_all=10)
    judge_blindly(decisions, "violent", annotator="AB", in_all=7)
    assert decisions.n_stated_by("AB") == 7
    assert decisions.hides_others_from("AB")


def test_who_judged_a_list_elsewhere_sees_the_others_judgements_of_its_windows_alone(decisions):
    """AB judged the first five windows in a list. CD judged nine, as many as CD planned, and is finished.

    AB may go on to judge CD's other four, blindly, so that these stay hidden from AB. CD sees all: AB's five
    and CD's own nine.
    """
    judge_list(decisions, "violent", annotator="AB", n=5)
    judge_blindly(decisions, *["calm"] * 9, annotator="CD", in_all=9)
    film = film_at_desk(decisions)

    cds_shown_to_ab = [decision for decision in shown_decisions(film, "AB") if decision["who"] == "CD"]
    assert sorted(decision["place"] for decision in cds_shown_to_ab) == [1, 2, 3, 4, 5]
    assert visible_decisions(film, "AB")["hidden"] == 4

    assert len(shown_decisions(film, "CD")) == 5 + 9
    assert decisions.default_annotator == "CD"  # who judged last and so is taken to sit at the desk
    assert len(shown_judgements(film).clips) == 5 + 9


def test_a_viewer_without_a_name_sees_only_the_windows_of_the_shortest_list_that_somebody_judged(decisions):
    """AB judged the first five windows in a list, and CD all nine that CD planned at the desk.

    Who gives no name may be AB, and sees the judgements at AB's places alone. Once EF has judged three
    windows of a list, it may be EF.
    """
    judge_list(decisions, "violent", annotator="AB", n=5)
    judge_blindly(decisions, *["calm"] * 9, annotator="CD", in_all=9)
    assert decisions.places_shown_to_all() == {1, 2, 3, 4, 5}

    judge_list(decisions, "calm", annotator="EF", n=3)
    assert decisions.places_shown_to_all() == {1, 2, 3}


def test_windows_are_judged_in_the_order_of_the_draw(decisions):
    """Each judge gets the windows in the same random order; after the last one none is left."""
    film = film_at_desk(decisions)
    starts = [start for start, _ in decisions.windows]
    assert min(starts) == 0

    for number, (start, end) in enumerate(decisions.windows, start=1):
        answer = next_window(film, "AB", n_planned=99)
        assert answer["done"] == number - 1
        assert answer["window"] == {"start": start, "end": end, "place": number}
        judge(decisions, start=start, end=end, annotator="AB", place=number)

    assert "window" not in next_window(film, "AB", n_planned=99)


def test_a_window_judged_in_sight_of_the_score_is_still_to_be_judged_blindly(decisions):
    """AB judged the first window in sight, and CD judged it blindly: CD's next window is the second."""
    start_s, end_s = decisions.windows[0]
    judge(decisions, start=start_s, end=end_s, annotator="AB")
    judge_blindly(decisions, "calm", annotator="CD")
    film = film_at_desk(decisions)

    answer_to_ab = next_window(film, "AB", n_planned=10)
    answer_to_cd = next_window(film, "CD", n_planned=10)

    assert answer_to_ab["done"] == 0
    assert answer_to_ab["window"]["place"] == 1
    assert answer_to_cd["done"] == 1
    assert answer_to_cd["window"]["place"] == 2


@pytest.mark.parametrize(("name", "is_named"), [("obygaze12", False), ("mobygaze", True)])
def test_a_table_names_its_codebook_unless_it_is_obygaze12(tmp_path, name, is_named):
    """A table that names no codebook, as tables of earlier versions, is of obygaze12."""
    decisions = Decisions(tmp_path, ten_minute_film(), builtin_codebook(name))
    judge(decisions, start=0, end=10, level="S")

    (row,) = rows_of(tmp_path / JUDGEMENTS)

    has_column = "codebook" in row
    assert has_column == is_named


@pytest.fixture
def link_target(tmp_path):
    """A folder that links of a stranger's folder lead to."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def test_no_decision_is_written_through_a_link_to_a_ledger(decisions, link_target):
    """In a folder from a stranger, a link could lead writes to any file of the user.

    Here the folder of the ledger is a link to an empty folder, which stays empty.
    """
    (decisions.folder / "ledger").symlink_to(link_target)

    with pytest.raises(ObygazeError, match="link"):
        judge(decisions, start=10, end=20)

    assert [*link_target.iterdir()] == []


def test_a_table_that_is_a_link_is_not_read(scored_tt1, link_target):
    """In a folder from a stranger, a link could lead to any file of the user and show it.

    The file at the end of the link is a good table, so that nothing but the link is wrong.
    """
    (link_target / "secret.csv").write_text(HEADER_OF_JUDGEMENTS, "utf-8")
    (scored_tt1.folder / JUDGEMENTS).symlink_to(link_target / "secret.csv")

    with pytest.raises(ObygazeError, match="link"):
        Decisions(*scored_tt1)


def test_a_table_that_became_a_link_is_written_again_once_the_link_is_removed(decisions, link_target):
    """While the desk is open, a link to a file elsewhere takes the place of the table of judgements.

    The desk must not write through the link: the file stays as it was. The judgement made meanwhile, "calm",
    is in the ledger. When the link is gone, the next judgement writes the table, and it has both.
    """
    table = decisions.folder / JUDGEMENTS
    secret = link_target / "secret.csv"
    secret.write_text(HEADER_OF_JUDGEMENTS, "utf-8")
    table.symlink_to(secret)

    judge(decisions, start=10, end=20, level="calm")
    assert secret.read_text("utf-8") == HEADER_OF_JUDGEMENTS
    assert [path.name for path in link_target.iterdir()] == ["secret.csv"]

    table.unlink()
    judge(decisions, start=20, end=30, level="violent")
    assert tabled_levels(decisions) == ["calm", "violent"]


def test_a_link_to_nothing_is_replaced_by_the_table(scored_tt1, link_target):
    """In a stranger's folder of a film, its three tables are links to files elsewhere, which do not exist.

    Writing through the links would make these files: instead the tables take the links' place.
    """
    for name in (JUDGEMENTS, PASSAGES, NOTES):
        (scored_tt1.folder / name).symlink_to(link_target / name)
    decisions = Decisions(*scored_tt1)

    judge(decisions, start=10, end=20, level="calm", annotator="AB")
    decisions.keep("note", start_s=10, end_s=20, annotator="AB", note="here")

    files_elsewhere = [*link_target.iterdir()]
    assert files_elsewhere == []
    assert not (scored_tt1.folder / JUDGEMENTS).is_symlink()
    assert tabled_levels(decisions) == ["calm"]
    assert [row["note"] for row in rows_of(scored_tt1.folder / NOTES)] == ["here"]


def test_a_table_that_was_moved_and_linked_back_is_written_anew_in_place_of_the_link(decisions, link_target):
    """AB judged a span. Then the table of judgements was moved elsewhere, and a link to it took its place.

    The link leads to the very file that the desk wrote last, and even then nothing is written through it: at
    the next judgement the moved file stays as it was, and a table with both takes the link's place.
    """
    table = decisions.folder / JUDGEMENTS
    moved_table = link_target / "moved.csv"
    judge(decisions, start=10, end=20, level="calm")
    table.rename(moved_table)
    table.symlink_to(moved_table)
    before = moved_table.read_bytes()

    judge(decisions, start=20, end=30, level="violent")

    assert moved_table.read_bytes() == before
    assert not table.is_symlink()
    assert tabled_levels(decisions) == ["calm", "violent"]


def judge_as_many(decisions, n_judges):
    """Let judges J0, J1, ... judge the first ten windows; any two differ on some."""
    ledger = Ledger(decisions.folder, print)
    for judge_number in range(n_judges):
        for number, (start, end) in enumerate(decisions.windows[:10], start=1):
            row = ROW_OF_AB | {
                "start_s": f"{start:g}",
                "end_s": f"{end:g}",
                "annotator": f"J{judge_number}",
                "level": "violent" if (number + judge_number) % 3 else "calm",
                "seen_score": "0",
                "place": f"{number}",
                "windows": "10",
                "law": decisions.draw.sampling,
            }
            ledger.add("judgement", row)


@pytest.mark.long
def test_of_many_judges_a_hundred_pairs_are_compared(decisions, monkeypatch):
    """16 judges are 120 pairs (16 * 15 / 2), too many to compare and name all while a judge waits.

    Each has judged the first ten windows. A hundred pairs are compared; the desk names as many as
    `pages.MAX_NAMED` says, and gives the median of all hundred.
    """
    monkeypatch.setattr("obygaze_features.lines.force_to_disk", lambda _: None)  # which would take long
    judge_as_many(decisions, n_judges=16)

    share = next_window(film_at_desk(decisions), "J3", n_planned=10)["share"]

    assert "100 of 120 pairs" in share
    n_pairs_named = share.count(" alike as to violent (")
    assert n_pairs_named == pages.MAX_NAMED
    assert "median" in share


def with_black_from_60_to_90_s(film):
    """Return the film as scored anew, with half a minute of it found to be black."""
    table = film.table.copy()
    is_black = (table["start_s"] >= 60) & (table["end_s"] <= 90)
    table.loc[is_black, "flags"] = "black"
    return replace(film, table=table)


def test_a_begun_draw_goes_on_unchanged_if_part_of_the_film_is_found_to_be_black(decisions):
    """AB judged the first 12 windows of the draw; then 60 to 90 s of the film are found to be black.

    Windows are drawn by their content, which black changes: a notice says so. But the order of windows stays
    as it was, all 12 judgements keep their places, and with one more 13 count in AB's share.
    """
    judge_blindly(decisions, *["violent"] * 12, annotator="AB", in_all=40)
    film_with_black = with_black_from_60_to_90_s(decisions.film)

    scored_anew = Decisions(decisions.folder, film_with_black, decisions.codebook)

    assert scored_anew.windows == decisions.windows
    places_judged = list(scored_anew.blind_judgements()["AB"])
    assert places_judged == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    (notice,) = scored_anew.notices
    assert "content" in notice

    judge_blindly(scored_anew, "calm", annotator="AB", in_all=40)
    windows_of_ab = judged_film(film_with_black, scored_anew.judgements()).of("AB")
    assert len(windows_of_ab.by_cell) == 13


@pytest.mark.parametrize(
    "forge",
    [
        lambda draw: structs.replace(draw, movie="another"),
        lambda draw: structs.replace(draw, seed=3),
        lambda draw: structs.replace(draw, content=(1.0,)),
        lambda draw: structs.replace(draw, content=(1e6,) * len(draw.content)),
    ],
    ids=["another movie", "another seed", "another number of windows", "content longer than the windows"],
)
def test_a_forged_draw_in_a_sitting_is_ignored(decisions, forge):
    """A sitting is a file of a ledger. Its header holds the draw, the windows that its judgements are of.

    A stranger writes a sitting with a draw that is not of this film's windows, and in it a blind judgement of
    the film's first window. The film keeps its own draw.
    """
    draw = decisions.draw
    forged_header = Header(draw=forge(draw))
    sitting_of_stranger = Ledger(decisions.folder, print, lambda: forged_header)
    start_s, end_s = decisions.windows[0]
    cells_of_first_window = {"start_s": f"{start_s:g}", "end_s": f"{end_s:g}", "seen_score": "0"}
    cells_of_draw = {"place": "1", "law": draw.sampling, "seed": "0"}
    sitting_of_stranger.add("judgement", ROW_OF_AB | cells_of_first_window | cells_of_draw)

    opened_again = reopen(decisions)

    assert opened_again.draw == draw
    assert opened_again.windows == decisions.windows
