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


@pytest.mark.parametrize("is_copy", [True, False])
def test_a_row_for_another_window_is_at_no_place_of_the_draw(decisions, is_copy):
    """AB gives the row of the first window, or a copy of it, the times of a span elsewhere.

    The row's place is that of the first window. If it were kept, two windows would be at one place, which
    `film rate` refuses.
    """
    judge_blindly(decisions, "calm", "violent", annotator="AB")

    def for_another_window(rows):
        row = dict(rows[0]) if is_copy else rows.pop(0)
        rows.append({**row, "start_s": "3", "end_s": "7", "level": "violent"})

    edit_table(decisions, for_another_window)
    again = reopen(decisions)

    assert len(levels_in_force(again)) == (3 if is_copy else 2)
    (moved,) = [row for row in rows_of(again.folder / JUDGEMENTS) if row["start_s"] == "3"]
    assert (moved["place"], moved[LAW], moved[SEED], moved["content_s"]) == ("", "", "", "")
    places = [row["place"] for row in rows_of(again.folder / JUDGEMENTS) if row["place"]]
    assert len(set(places)) == len(places)
    (notice,) = [notice for notice in again.notices if "column place" in notice]
    assert "no place in the draw: the judgement counts in no share" in notice


def test_a_row_whose_times_have_other_digits_keeps_its_place(decisions):
    """A spreadsheet writes 128 as 128.0004, and AB changes the level: it is the same window."""
    judge_blindly(decisions, "calm", annotator="AB")

    edit_table(decisions, lambda rows: rows[0].update(start_s=rows[0]["start_s"] + ".0004", level="violent"))
    again = reopen(decisions)

    assert {place: clip.level for place, clip in again.blind_judgements()["AB"].items()} == {1: "violent"}
