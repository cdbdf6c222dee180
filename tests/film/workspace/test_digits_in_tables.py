"""A spreadsheet or data frame that saves a table writes its numbers in other digits: nobody decided anew."""

import pandas as pd
import pytest

from obygaze_film.workspace.decisions import JUDGEMENTS
from tests.film.workspace.deciding import judge, judge_blindly, reopen


@pytest.fixture
def judged_by_ab_and_01(decisions):
    """AB and "01" judged a window blindly, differ and agreed; AB also judged a span in sight of the score.

    That span has no place in the draw. So a data frame reads the places as numbers with gaps, and writes 1 as
    1.0; and it writes the annotator 01 as 1.
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


def test_a_table_that_a_data_frame_read_and_saved_is_no_edit(judged_by_ab_and_01):
    """A data frame writes the table's places 1 as 1.0, and nobody has changed anything.

    No judgement is taken for a new one, and so what AB and 01 agreed on still settles their difference.
    """
    table = judged_by_ab_and_01.folder / JUDGEMENTS
    pd.read_csv(table).to_csv(table, index=False)
    place_in_other_digits = ",1.0,"
    assert place_in_other_digits in table.read_text("utf-8")

    read_again = reopen(judged_by_ab_and_01)

    assert read_again.notices == []
    assert ids_of(read_again) == ids_of(judged_by_ab_and_01)
    (difference,) = read_again.disagreements()
    is_settled = difference.agreed != ""
    assert is_settled


def test_the_row_whose_level_was_changed_in_a_data_frame_is_the_only_new_judgement(judged_by_ab_and_01):
    """In a data frame AB's blind level is changed to unsure, and only the two blind rows are saved.

    The row of 01 is no new judgement, although the frame has written its annotator and place in other digits.
    AB's is one: it keeps its place, 1, and is blind (0), both in the digits in which the desk writes them.
    """
    table = judged_by_ab_and_01.folder / JUDGEMENTS
    frame = pd.read_csv(table)
    frame.loc[frame["annotator"] == "AB", "level"] = "unsure"
    frame[frame["seen_score"] == 0].to_csv(table, index=False)

    read_again = reopen(judged_by_ab_and_01)

    (of_01,) = read_again.blind_judgements()["01"].values()
    assert of_01.clip_id in ids_of(judged_by_ab_and_01)
    (of_ab,) = read_again.blind_judgements()["AB"].values()
    assert (of_ab.level, of_ab.extras["place"], of_ab.extras["seen_score"]) == ("unsure", "1", "0")


def test_rows_with_other_ids_and_places_in_other_digits_are_no_new_judgements(judged_by_ab_and_01):
    """A data frame gave all rows other ids ("row0", ...), and wrote their places 1 as 1.0.

    Film, annotator, times and labels are as they were: the rows are known by these as judgements that stand,
    with the ids that they had.
    """
    table = judged_by_ab_and_01.folder / JUDGEMENTS
    frame = pd.read_csv(table, dtype={"annotator": str})
    frame["clip_id"] = [f"row{number}" for number in range(len(frame))]
    frame.to_csv(table, index=False)

    read_again = reopen(judged_by_ab_and_01)

    assert ids_of(read_again) == ids_of(judged_by_ab_and_01)
