"""A spreadsheet or data frame that saves a table writes its numbers in other digits: nobody decided anew."""

import pandas as pd
import pytest

from obygaze_film.workspace.decisions import JUDGEMENTS
from tests.film.workspace.deciding import judge, judge_blindly, reopen


@pytest.fixture
def settled(decisions):
    """AB and "01" judged a window blindly, differ and agreed; AB also judged a span in sight of the score.

    That span has no place in the draw: so a data frame writes the places of the windows as 1.0.
    """
    judge_blindly(decisions, "calm", annotator="AB")
    judge_blindly(decisions, "violent", annotator="01")
    (difference,) = decisions.disagreements()
    decisions.keep(
        "agreed",
        difference.start_s,
        difference.end_s,
        "AB",
        level="violent",
        parents=difference.decisions,
        mode="blind",
    )
    judge(decisions, start=3, end=7, level="violent", annotator="AB")
    return decisions


def ids_of(decisions):
    """Return the ids of all judgements that stand."""
    return [clip.clip_id for clip in decisions.clips_by_kind["judgement"]]


def test_a_table_that_a_data_frame_saved_is_no_edit(settled):
    """What was agreed stays settled: the judgements that it settles were not made anew."""
    table = settled.folder / JUDGEMENTS
    pd.read_csv(table).to_csv(table, index=False)
    assert ",1.0," in table.read_text("utf-8")

    again = reopen(settled)

    assert again.notices == []
    assert ids_of(again) == ids_of(settled)
    assert [difference.agreed for difference in again.disagreements()] != [""]


def test_of_a_table_that_a_data_frame_saved_the_changed_row_alone_is_new(settled):
    """One level is changed: the row keeps its place of the draw, in the digits of the desk."""
    table = settled.folder / JUDGEMENTS
    frame = pd.read_csv(table)
    frame.loc[frame["annotator"] == "AB", "level"] = "unsure"
    frame[frame["seen_score"] == 0].to_csv(table, index=False)

    again = reopen(settled)

    (kept,) = again.blind_judgements()["01"].values()
    assert kept.clip_id in ids_of(settled)
    (changed,) = again.blind_judgements()["AB"].values()
    assert (changed.level, changed.extras["place"], changed.extras["seen_score"]) == ("unsure", "1", "0")


def test_rows_whose_ids_and_digits_are_lost_are_no_new_decisions(settled):
    table = settled.folder / JUDGEMENTS
    frame = pd.read_csv(table, dtype={"annotator": str})
    frame["clip_id"] = [f"row{number}" for number in range(len(frame))]
    frame.to_csv(table, index=False)

    again = reopen(settled)

    assert ids_of(again) == ids_of(settled)
