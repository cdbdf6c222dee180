"""Rows of `judgements.csv` that people copy in a spreadsheet for another window."""

import csv
import io

import pytest

from obygaze_film.draws import LAW, SEED
from obygaze_film.workspace.decisions import JUDGEMENTS
from tests.files import rows_of
from tests.film.workspace.deciding import judge_blindly, levels_in_force, reopen


def edit_table(decisions, edit):
    """Rewrite the table of judgements after a function has changed the list of its rows."""
    table = decisions.folder / JUDGEMENTS
    rows = list(rows_of(table))
    edit(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    table.write_text(text.getvalue(), "utf-8")


@pytest.mark.parametrize("is_copy", [True, False], ids=["a copy of the row", "the row itself"])
def test_a_row_that_gets_the_times_of_another_span_loses_its_place_in_the_draw(decisions, is_copy):
    """AB judged two windows blindly. In the table the first row, or a copy of it, gets the times 3 to 7 s.

    Its place is that of the first window. If it were kept, two spans would be at one place, which `film rate`
    refuses. So the row is written anew without its place, law, seed and content, and a notice says that the
    judgement counts in no share.
    """
    judge_blindly(decisions, "calm", "violent", annotator="AB")

    def move_first_row_or_a_copy(rows):
        row = dict(rows[0]) if is_copy else rows.pop(0)
        rows.append({**row, "start_s": "3", "end_s": "7", "level": "violent"})

    edit_table(decisions, move_first_row_or_a_copy)
    read_again = reopen(decisions)

    assert len(levels_in_force(read_again)) == (2 + 1 if is_copy else 2)
    rows = rows_of(read_again.folder / JUDGEMENTS)
    (moved,) = [row for row in rows if row["start_s"] == "3"]
    assert (moved["place"], moved[LAW], moved[SEED], moved["content_s"]) == ("", "", "", "")
    places = [row["place"] for row in rows if row["place"]]
    assert len(set(places)) == len(places)
    (notice,) = [notice for notice in read_again.notices if "column place" in notice]
    assert "no place in the draw: the judgement counts in no share" in notice


def test_a_row_whose_start_differs_by_less_than_a_millisecond_keeps_its_place_in_the_draw(decisions):
    """AB judged the first window. A spreadsheet writes its start, such as 128, as 128.0004.

    AB also changes the level there. Times are told apart by milliseconds, so that it is the same window: the
    new level is the blind judgement at place 1.
    """
    judge_blindly(decisions, "calm", annotator="AB")

    def move_start_by_less_than_a_millisecond(rows):
        rows[0]["start_s"] += ".0004"
        rows[0]["level"] = "violent"

    edit_table(decisions, move_start_by_less_than_a_millisecond)
    blind_judgements_of_ab = reopen(decisions).blind_judgements()["AB"]

    assert {place: clip.level for place, clip in blind_judgements_of_ab.items()} == {1: "violent"}
