"""The desk, its files and exports agree on what a decision is: which there are, of which span and film."""

from dataclasses import replace

import pytest

from obygaze_features.manifest import Level, builtin_codebook
from obygaze_film.claims import Words
from obygaze_film.draws import SEQUENTIAL_POISSON, SUCCESSIVE
from obygaze_film.page.view_model import decisions_data, threshold_of
from obygaze_film.scored_files import JUDGEMENTS
from obygaze_film.windows_to_judge import choose_next
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.pages import next_window, shown_decisions
from tests.files import rows_of
from tests.film.page.invented import ten_minute_film, with_model
from tests.film.workspace.deciding import film_at_desk, judge, judge_blindly, levels_in_force, reopen

OBYGAZE12 = builtin_codebook("obygaze12")


def shown_levels(decisions, viewer="AB"):
    """Return the levels of the decisions that the desk shows to a person."""
    film = film_at_desk(decisions)
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
    """Append a decision to the ledger, as another program might; return its line.

    Unless cells say otherwise, it calls 4 to 12 s of the film tt1 calm, in sight of the score, on 1 January.
    """
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


def test_judgements_of_another_film_in_a_ledger_are_neither_disagreements_nor_conflicts(decisions):
    """AB judged 4 to 12 s of tt1. Its ledger has lines on the same seconds of tt2: one by CD, two by EF.

    CD's level differs from AB's, and EF's two from each other. In one film people would be asked to settle
    the former, and EF to decide again; a judgement of another film is not shown here, and nobody is asked.
    """
    judge(decisions, start=4.0, end=12.0, level="calm", annotator="AB")
    add_line(decisions, movie="tt2", annotator="CD", level="violent")
    add_line(decisions, movie="tt2", annotator="EF", level="violent")
    add_line(decisions, movie="tt2", annotator="EF", level="calm")

    read_again = reopen(decisions)

    assert read_again.disagreements() == []
    assert read_again.conflicts() == set()
    assert not any("decide again" in notice for notice in read_again.notices)


def test_settling_in_sight_in_another_film_makes_no_later_settling_of_the_same_seconds_unblind(decisions):
    """AB and CD differ on the first window of tt1, which AB settles without having seen a score.

    Before, AB settled the same seconds of tt2 in sight of the score, and that stands in this ledger, too. In
    one film AB would know the score then; that of another film says nothing of this one.
    """
    judge_blindly(decisions, "calm", annotator="AB")
    judge_blindly(decisions, "violent", annotator="CD")
    [difference] = decisions.disagreements()
    span = {"start_s": f"{difference.start_s:g}", "end_s": f"{difference.end_s:g}"}
    ids_in_tt2 = [add_line(decisions, movie="tt2", annotator=name, **span).id for name in ("AB", "CD")]
    settled_in_tt2 = {"movie": "tt2", "seen_score": "1", "parents": ";".join(ids_in_tt2), **span}
    add_line(decisions, "agreed", annotator="AB", **settled_in_tt2)
    decisions = reopen(decisions)

    decisions.keep(
        "agreed",
        difference.start_s,
        difference.end_s,
        "AB",
        level="calm",
        parents=difference.decisions,
        mode="blind",
    )

    [settled_in_tt1] = [decided for decided in decisions.decided() if decided.is_agreed]
    assert settled_in_tt1.is_blind


def test_a_judgement_replaces_the_same_persons_earlier_one_of_a_span_equal_to_the_millisecond(decisions):
    """AB judges 4 to 12 s calm, and then violent; the second time the passage begins at 4.0003 s.

    Starts may differ by so little if a film was scored again. It is the same span, and AB is not in conflict
    with AB: only the later judgement stands.
    """
    judge(decisions, start=4.0, end=12.0, level="calm")
    judge(decisions, start=4.0003, end=12.0, level="violent")

    assert levels_in_force(decisions) == [("AB", "violent")]
    assert decisions.conflicts() == set()


def test_two_judgements_by_one_person_of_spans_that_are_equal_to_the_millisecond_are_a_conflict(decisions):
    """AB called 4 to 12 s calm on one machine, and 4.0003 to 12 s violent on another.

    Neither ledger had the other's line. Times are told apart by milliseconds, so that these are two
    judgements of one span: AB is asked to choose, and until then one of them counts.
    """
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
        opened = film_at_desk(decisions)
        [at_desk] = shown_decisions(opened, "AB", words=Words(language))
        [on_page] = decisions_data([decided], opened.view(language))
        assert at_desk["title"] == on_page["title"] == called
        assert at_desk["cited"] == on_page["cited"]
        assert called in on_page["cited"]


def codebook_with_level_none():
    """Return obygaze12, the codebook of the model, under the name "own", with one more level: "none"."""
    level_none = Level("none", title="Nobody is there", position=len(OBYGAZE12.levels))
    return replace(OBYGAZE12, name="own", levels=(*OBYGAZE12.levels, level_none))


def test_the_mailed_page_gives_a_level_the_title_that_only_the_judges_codebook_has(tmp_path):
    """AB judges 120 to 150 s by a codebook with the level "none", which the model's codebook lacks.

    Its title, "Nobody is there", stands on the page that is mailed as at the desk.
    """
    film = ten_minute_film()
    decisions = Decisions(tmp_path, film, codebook_with_level_none())
    judge(decisions, start=120.0, end=150.0, level="none")
    [decided] = decisions.decided()
    opened = film_at_desk(decisions)

    [at_desk] = shown_decisions(opened, "AB")
    [on_page] = decisions_data([decided], opened.view())

    assert at_desk["title"] == "none (Nobody is there)"
    assert on_page["title"] == "none (Nobody is there)"


def test_desk_and_mailed_page_read_a_level_without_a_definition_by_the_desks_codebook(tmp_path):
    """The desk is opened with a codebook that has the level "none", which the model's codebook lacks.

    AB's judgement, made at the desk, names the definition of that codebook; CD's row, added to the table,
    names none. Desk and page read both rows alike: "none" is a level with a title, and not what the model
    finds.
    """
    film = ten_minute_film()
    decisions = Decisions(tmp_path, film, codebook_with_level_none())
    judge(decisions, start=120.0, end=150.0, level="none")
    table = tmp_path / JUDGEMENTS
    table.write_text(
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score\n"
        f",{film.movie},,120,150,none,,CD,1\n",
        "utf-8",
    )
    decisions = reopen(decisions)
    opened = film_at_desk(decisions)

    def title_and_verdict_by_judge(descriptions):
        return {one["who"]: (one["title"], one["verdict"]) for one in descriptions}

    at_desk = title_and_verdict_by_judge(shown_decisions(opened, "CD"))
    on_page = title_and_verdict_by_judge(decisions_data(decisions.decided(), opened.view()))

    names_definition = {decided.annotator: decided.definition != "" for decided in decisions.decided()}
    assert names_definition == {"AB": True, "CD": False}
    assert at_desk["CD"] == ("none (Nobody is there)", "disagree")
    assert on_page == at_desk


def test_what_several_agreed_on_is_cited_alike_at_the_desk_and_on_the_mailed_page(decisions):
    """AB and CD differed on a window, and AB wrote down what they agreed on."""
    judge_blindly(decisions, "calm", annotator="AB")
    judge_blindly(decisions, "violent", annotator="CD")
    [difference] = decisions.disagreements()
    span = difference.start_s, difference.end_s
    decisions.keep("agreed", *span, "AB", level="calm", parents=difference.decisions)
    opened = film_at_desk(decisions)

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
    film = film_at_desk(decisions)

    answer = next_window(film, "AB", n_planned=12)

    assert decisions.hides_others_from("AB")
    assert answer["window"]["place"] == 13
    assert "share" not in answer


@pytest.mark.parametrize(("threshold_p", "in_scripts"), [(0.0, 0.0), (0.3, 0.3), (None, 0.5)])
def test_the_scripts_of_a_page_get_the_models_threshold_even_if_it_is_zero(tmp_path, threshold_p, in_scripts):
    """The scripts in the browser mark what reaches the threshold: with 0, all that has a probability.

    0 must not be taken for no threshold (None), in whose place they get one half.
    """
    film = with_model(ten_minute_film(), threshold_p=threshold_p)
    opened = film_at_desk(Decisions(tmp_path, film, OBYGAZE12))
    assert threshold_of(opened.view()) == in_scripts


def test_a_ledger_that_spells_the_films_name_otherwise_is_of_the_film(decisions):
    """CD scored the film as TT1 and called 4 to 12 s violent; AB, whose film is tt1, called them calm.

    Both folders are synchronised, so that CD's line stands in AB's ledger. Rates read it as one of tt1, and
    so does the desk: it shows the decision, counts it where people differ, and lets CD change it.
    """
    of_cd = add_line(decisions, movie="TT1", annotator="CD", level="violent")
    decisions = reopen(decisions)
    judge(decisions, start=4.0, end=12.0, level="calm", annotator="AB")

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


def test_a_row_that_spells_the_film_unlike_its_line_of_the_ledger_is_no_edit(decisions):
    """CD's line of the ledger says TT1; the table of judgements says tt1 in every row, as the film is called.

    Somebody edits the table: the row of AB, who called 4 to 12 s calm, gets the annotator EF. That is one new
    judgement, by EF. CD's row has another spelling than its line, but nobody edited it: the line stands.
    """
    of_cd = add_line(decisions, movie="TT1", annotator="CD", level="violent")
    with_both_judges = reopen(decisions)
    judge(with_both_judges, start=4.0, end=12.0, level="calm", annotator="AB")
    table = decisions.folder / JUDGEMENTS
    table.write_text(table.read_text("utf-8").replace(",AB,", ",EF,"), "utf-8")

    after_edit = reopen(with_both_judges)

    assert {row["movie"] for row in rows_of(table)} == {"tt1"}
    assert sorted(levels_in_force(after_edit)) == [("AB", "calm"), ("CD", "violent"), ("EF", "calm")]
    assert of_cd.id in after_edit.lines


def test_a_judgement_whose_level_was_emptied_does_not_decide_how_windows_are_drawn(decisions):
    """AB blindly called the first window calm that an earlier version drew, and then emptied the level.

    That version drew by sequential Poisson sampling and named no method. As long as the judgement has a level
    its draw goes on; with none, `film next --blind` and the desk draw windows by today's method.
    """
    [(start_s, end_s), *_others] = decisions.rules.windows[SEQUENTIAL_POISSON]
    span = {"start_s": f"{start_s:g}", "end_s": f"{end_s:g}"}
    add_line(decisions, annotator="AB", level="calm", seen_score="0", place="1", **span)
    with_level = reopen(decisions)
    assert with_level.draw.sampling == SEQUENTIAL_POISSON
    table = decisions.folder / JUDGEMENTS
    table.write_text(table.read_text("utf-8").replace(",calm,", ",,"), "utf-8")

    emptied = reopen(decisions)

    [next_window] = choose_next([emptied.film], 1, blind=True, judged=emptied.clips_by_kind["judgement"])
    assert emptied.draw.sampling == SUCCESSIVE
    assert emptied.windows[0] == (next_window.start_s, next_window.end_s)


def test_a_span_that_one_person_settled_on_two_machines_is_asked_for_again(decisions):
    """AB and CD differ on a window. AB settled it in January without the score, and in February with it.

    Only one settlement of a span by one person can hold, so that the two are a conflict, and AB is asked to
    decide again. Until then the later one counts: by its date, as in the ledger it stands first.
    """
    judge_blindly(decisions, "calm", annotator="AB")
    judge_blindly(decisions, "violent", annotator="CD")
    [difference] = decisions.disagreements()
    settled_by_ab = {
        "annotator": "AB",
        "start_s": f"{difference.start_s:g}",
        "end_s": f"{difference.end_s:g}",
        "parents": ";".join(difference.decisions),
    }
    january, february = "2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00"
    of_february = add_line(decisions, "agreed", seen_score="1", judged_at=february, **settled_by_ab)
    of_january = add_line(decisions, "agreed", seen_score="0", judged_at=january, **settled_by_ab)

    decisions = reopen(decisions)

    assert decisions.conflicts() == {of_february.id, of_january.id}
    [settled] = decisions.disagreements()
    assert settled.agreed == of_february.id
