"""The desk, its files and exports agree on what a decision is: which there are, of which span and film."""

from dataclasses import replace

from obygaze_features.manifest import Level, builtin_codebook
from obygaze_film.claims import Words
from obygaze_film.draws import SEQUENTIAL_POISSON, SUCCESSIVE
from obygaze_film.page.view_model import decisions_data, threshold_of
from obygaze_film.scored_files import JUDGEMENTS
from obygaze_film.windows_to_judge import choose_next
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import next_window, shown_decisions
from tests.files import rows_of
from tests.film.page.invented import ten_minute_film, with_model
from tests.film.workspace.deciding import judge, judge_blindly, levels_in_force, reopen

OBYGAZE12 = builtin_codebook("obygaze12")


def shown_levels(decisions, viewer="AB"):
    """Return the levels of the decisions that the desk shows to a person."""
    film = OpenFilm(0, decisions.film, decisions)
    return [described["level"] for described in shown_decisions(film, viewer)]


def test_a_judgement_whose_level_was_emptied_is_removed_with_its_note(decisions):
    """AB empties the level in the table, which is a way to remove a judgement: its note goes too.

    A note that AB wrote as a note stays.
    """
    judge(decisions, start=4.0, end=12.0, level="calm", note="first idea")
    decisions.keep("note", 20.0, 28.0, "AB", note="look here")
    table = decisions.folder / JUDGEMENTS
    table.write_text(table.read_text("utf-8").replace(",calm,", ",,"), "utf-8")

    decisions = reopen(decisions)

    assert shown_levels(decisions) == [""]
    assert [decision.note for decision in decisions.decided()] == ["look here"]


def add_line(decisions, kind="judgement", **cells):
    """Append a decision on 4 to 12 s to the ledger, as another program might; return its line."""
    row = {
        "movie": "tt1",
        "start_s": "4",
        "end_s": "12",
        "level": "calm",
        "seen_score": "1",
        "judged_at": "2026-01-01T00:00:00+00:00",
        **cells,
    }
    return decisions.ledger.add(kind, row, [])


def test_what_is_of_another_film_differs_from_nothing_and_stands_beside_nothing(decisions):
    """AB judged this film. CD judged the same seconds of another one, and EF did twice.

    None of that is shown here, so that nobody is asked to settle it, or to decide again.
    """
    judge(decisions, start=4.0, end=12.0, level="calm")
    add_line(decisions, movie="tt2", annotator="CD", level="violent")
    add_line(decisions, movie="tt2", annotator="EF", level="violent")
    add_line(decisions, movie="tt2", annotator="EF", level="calm")

    decisions = reopen(decisions)

    assert decisions.disagreements() == []
    assert decisions.conflicts() == set()
    assert not any("decide again" in notice for notice in decisions.notices)


def test_who_settled_the_same_seconds_of_another_film_settles_these_blindly(decisions):
    """CD and AB differ on the first window. In another film the same seconds were settled with the score."""
    judge_blindly(decisions, "calm", annotator="AB")
    judge_blindly(decisions, "violent", annotator="CD")
    [here] = decisions.disagreements()
    span = {"start_s": f"{here.start_s:g}", "end_s": f"{here.end_s:g}"}
    there = [add_line(decisions, movie="tt2", annotator=name, **span).id for name in ("AB", "CD")]
    parents = ";".join(there)
    add_line(decisions, "agreed", movie="tt2", annotator="AB", parents=parents, **span)
    decisions = reopen(decisions)

    decisions.keep(
        "agreed", here.start_s, here.end_s, "AB", level="calm", parents=here.decisions, mode="blind"
    )

    assert [one.is_blind for one in decisions.decided() if one.is_agreed] == [True]


def test_spans_that_are_equal_to_the_millisecond_are_one_span(decisions):
    """AB judges a passage again that begins a third of a millisecond later, as of another scoring.

    The earlier judgement is replaced, as where people differ and settle.
    """
    judge(decisions, start=4.0, end=12.0, level="calm")
    judge(decisions, start=4.0003, end=12.0, level="violent")

    assert levels_in_force(decisions) == [("AB", "violent")]
    assert decisions.conflicts() == set()


def test_two_judgements_of_spans_that_are_equal_to_the_millisecond_stand_beside_each_other(decisions):
    """They are by two machines, neither of which had seen the other's: AB is asked to choose."""
    add_line(decisions, annotator="AB", level="calm")
    add_line(decisions, annotator="AB", level="violent", start_s="4.0003")

    decisions = reopen(decisions)

    assert len(decisions.conflicts()) == 2
    assert len(decisions.judgements()) == 1


def test_a_citation_names_the_level_alike_at_the_desk_and_on_the_mailed_page(tmp_path):
    """The level S of ObyGaze12 has the title Sure. In French both say Sûr."""
    film = ten_minute_film()
    decisions = Decisions(tmp_path, film, builtin_codebook("obygaze12"))
    judge(decisions, start=120.0, end=150.0, level="S")
    [decided] = decisions.decided()

    for language, called in (("en", "S (Sure)"), ("fr", "S (Sûr)")):
        opened = OpenFilm(0, film, decisions)
        [at_desk] = shown_decisions(opened, "AB", words=Words(language))
        [on_page] = decisions_data([decided], opened.view(language))
        assert at_desk["title"] == on_page["title"] == called
        assert at_desk["cited"] == on_page["cited"]
        assert called in on_page["cited"]


def test_the_mailed_page_names_a_level_by_the_codebook_of_who_decided(tmp_path):
    """Their codebook has the level "none", with a title, which that of the model lacks."""
    film = ten_minute_film()
    book = builtin_codebook("obygaze12")
    own_level = Level("none", title="Nobody is there", position=len(book.levels))
    decisions = Decisions(tmp_path, film, replace(book, name="own", levels=(*book.levels, own_level)))
    judge(decisions, start=120.0, end=150.0, level="none")
    [decided] = decisions.decided()
    opened = OpenFilm(0, film, decisions)

    [at_desk] = shown_decisions(opened, "AB")
    [on_page] = decisions_data([decided], opened.view())

    assert at_desk["title"] == on_page["title"] == "none (Nobody is there)"


def test_a_level_is_read_by_the_same_codebook_where_it_is_not_stated_under_which_it_was_given(tmp_path):
    """AB's row in a table names no definition. The desk reads it by the codebook of people's own.

    "none" is an answer by that codebook, and no level that the model's codebook has.
    """
    film = ten_minute_film()
    book = builtin_codebook("obygaze12")
    own_level = Level("none", title="Nobody is there", position=len(book.levels))
    decisions = Decisions(tmp_path, film, replace(book, name="own", levels=(*book.levels, own_level)))
    judge(decisions, start=120.0, end=150.0, level="none")
    table = tmp_path / JUDGEMENTS
    table.write_text(
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score\n"
        f",{film.movie},,120,150,none,,CD,1\n",
        "utf-8",
    )
    decisions = reopen(decisions)
    opened = OpenFilm(0, film, decisions)

    at_desk = {one["who"]: (one["title"], one["verdict"]) for one in shown_decisions(opened, "CD")}
    on_page = {
        one["who"]: (one["title"], one["verdict"])
        for one in decisions_data(decisions.decided(), opened.view())
    }

    states_none = {one.annotator: one.definition == "" for one in decisions.decided()}
    assert states_none == {"AB": False, "CD": True}
    assert at_desk == on_page
    assert at_desk["CD"] == ("none (Nobody is there)", "disagree")


def test_what_several_agreed_on_is_cited_alike_at_the_desk_and_on_the_mailed_page(decisions):
    """AB and CD differed on a window, and AB wrote down what they agreed on."""
    judge_blindly(decisions, "calm", annotator="AB")
    judge_blindly(decisions, "violent", annotator="CD")
    [difference] = decisions.disagreements()
    span = difference.start_s, difference.end_s
    decisions.keep("agreed", *span, "AB", level="calm", parents=difference.decisions)
    opened = OpenFilm(0, decisions.film, decisions)

    at_desk = [one["cited"] for one in shown_decisions(opened, "AB") if one["kind"] == "agreed"]
    of_page = decisions_data(decisions.decided(), opened.view())
    on_page = [one["cited"] for one in of_page if one["kind"] == "agreed"]

    assert at_desk == on_page == ["calm, settled between AB and CD, in sight of the model's score"]


def test_who_planned_more_windows_than_a_page_asks_for_is_not_finished(decisions):
    """AB said that they would judge 14 windows, and judged 12. A page that was opened earlier asks for 12.

    What AB said counts: others' judgements and the share stay hidden, and AB is asked for window 13.
    """
    judge_blindly(decisions, *["calm"] * 12, annotator="AB", in_all=14)
    judge_blindly(decisions, "violent", annotator="CD", in_all=14)
    film = OpenFilm(0, decisions.film, decisions)

    answer = next_window(film, "AB", n_planned=12)

    assert decisions.hides_others_from("AB")
    assert answer["window"]["place"] == 13
    assert "share" not in answer


def test_a_threshold_of_zero_is_a_threshold_for_the_scripts_too(tmp_path):
    """All that the model gives a probability reaches it; without a threshold the scripts get one half."""
    for threshold_p, expected in ((0.0, 0.0), (0.3, 0.3), (None, 0.5)):
        film = with_model(ten_minute_film(), threshold_p=threshold_p)
        assert threshold_of(OpenFilm(0, film, Decisions(tmp_path, film, OBYGAZE12)).view()) == expected


def test_a_ledger_that_spells_the_films_name_otherwise_is_of_the_film(decisions):
    """A colleague scored the film as TT1, and the folders of both are synchronised.

    The rates read that decision as one of tt1. The desk shows it, counts it where people differ, and lets
    its judge change it.
    """
    of_cd = add_line(decisions, movie="TT1", annotator="CD", level="violent")
    decisions = reopen(decisions)
    judge(decisions, start=4.0, end=12.0, level="calm")

    assert shown_levels(decisions) == ["violent", "calm"]
    assert sorted(one.annotator for one in decisions.decided()) == ["AB", "CD"]
    [difference] = decisions.disagreements()
    span = difference.start_s, difference.end_s
    agreed_id = decisions.keep("agreed", *span, "AB", level="calm", parents=difference.decisions)
    assert agreed_id in decisions.lines

    changed_id = judge(decisions, start=4.0, end=12.0, level="calm", annotator="CD", changed_id=of_cd.id)
    assert levels_in_force(reopen(decisions)) == [("AB", "calm"), ("CD", "calm")]
    assert [line.id for line in decisions.history(changed_id)] == [of_cd.id]
    assert not any("another film" in notice for notice in decisions.notices)


def test_editing_a_table_changes_no_decision_that_spells_the_films_name_otherwise(decisions):
    """AB's row gets another name. CD's line of the ledger says TT1, and CD's row tt1, as all rows do."""
    of_cd = add_line(decisions, movie="TT1", annotator="CD", level="violent")
    decisions = reopen(decisions)
    judge(decisions, start=4.0, end=12.0, level="calm")
    table = decisions.folder / JUDGEMENTS
    table.write_text(table.read_text("utf-8").replace(",AB,", ",EF,"), "utf-8")

    decisions = reopen(decisions)

    assert {row["movie"] for row in rows_of(table)} == {"tt1"}
    assert sorted(levels_in_force(decisions)) == [("AB", "calm"), ("CD", "violent"), ("EF", "calm")]
    assert of_cd.id in decisions.lines


def test_a_judgement_whose_level_was_emptied_does_not_decide_how_windows_are_drawn(decisions):
    """AB judged a window of a list by an earlier version, which names no method, and emptied the level.

    The windows of `film next --blind` are then drawn by today's method, and so are those of the desk.
    """
    [first, *_] = decisions.rules.windows[SEQUENTIAL_POISSON]
    span = {"start_s": f"{first[0]:g}", "end_s": f"{first[1]:g}"}
    add_line(decisions, annotator="AB", seen_score="0", place="1", **span)
    of_list = reopen(decisions)
    assert of_list.draw.sampling == SEQUENTIAL_POISSON
    table = decisions.folder / JUDGEMENTS
    table.write_text(table.read_text("utf-8").replace(",calm,", ",,"), "utf-8")

    decisions = reopen(decisions)

    [next_of_list] = choose_next([decisions.film], 1, blind=True, judged=decisions.clips_by_kind["judgement"])
    assert decisions.draw.sampling == SUCCESSIVE
    assert decisions.windows[0] == (next_of_list.start_s, next_of_list.end_s)


def test_a_span_that_one_person_settled_on_two_machines_is_asked_for_again(decisions):
    """AB settled it without the score on one machine, and with it on another: a person settles a span once.

    Both stand until AB decides again, and the later one counts, although it was written to the ledger first.
    """
    judge_blindly(decisions, "calm", annotator="AB")
    judge_blindly(decisions, "violent", annotator="CD")
    [here] = decisions.disagreements()
    span = {"start_s": f"{here.start_s:g}", "end_s": f"{here.end_s:g}", "parents": ";".join(here.decisions)}
    later = "2026-02-01T00:00:00+00:00"
    of_later = add_line(decisions, "agreed", annotator="AB", seen_score="1", judged_at=later, **span)
    of_earlier = add_line(decisions, "agreed", annotator="AB", seen_score="0", **span)

    decisions = reopen(decisions)

    assert decisions.conflicts() == {of_later.id, of_earlier.id}
    [settled] = decisions.disagreements()
    assert settled.agreed == of_later.id
