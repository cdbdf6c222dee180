"""The desk, its files and exports agree on what a decision is: which there are, of which span and film."""

from obygaze_film.scored_files import JUDGEMENTS
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import shown_decisions
from tests.film.workspace.deciding import judge, reopen


def shown_levels(decisions, viewer="AB"):
    """Return the levels of the decisions that the desk shows to a person."""
    film = OpenFilm(0, decisions.film, decisions)
    return [described["level"] for described in shown_decisions(film, viewer)]


def test_a_judgement_whose_level_was_emptied_is_removed_with_its_note(decisions):
    """AB empties the level in the table, which is a way to remove a judgement: its note goes too.

    A note that AB wrote as a note stays.
    """
    judge(decisions, 4.0, 12.0, level="calm", note="first idea")
    decisions.keep("note", 20.0, 28.0, "AB", note="look here")
    table = decisions.folder / JUDGEMENTS
    table.write_text(table.read_text("utf-8").replace(",calm,", ",,"), "utf-8")

    decisions = reopen(decisions)

    assert shown_levels(decisions) == [""]
    assert [decision.note for decision in decisions.decided()] == ["look here"]
