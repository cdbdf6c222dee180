"""A column that is not read is noticed once, with the option that reads it."""

import pytest

TWO_LEVELS_BY_AB = (
    "movie,start_s,end_s,level,annotator,{heading}\nf,0,1,S,AB,S\nf,1,2,EN,AB,EN\nf,2,3,S,AB,S\n"
)
"""A table of labels, with the same words below another heading as well."""


@pytest.mark.parametrize("heading", ["speaker", "Remarks AB", "Level of the model", "second opinion"])
def test_a_column_whose_cells_are_like_labels_is_noticed_once(import_files, heading):
    """Beside AB's levels, S, EN and S, the same words stand below another heading, such as speaker.

    They may be labels, or initials that are spelled like them, so the column is not read, and noticed in one
    notice.
    """
    clips, notices = import_files({"t.csv": TWO_LEVELS_BY_AB.format(heading=heading)})

    assert [clip.level for clip in clips] == ["S", "EN", "S"]
    assert notices.count(f"'{heading}' (") + notices.count(f"'{heading}':") == 1, notices
    assert "3 of its 3 cells are labels" not in notices


def test_a_column_that_no_option_is_proposed_for_is_noticed_as_well(import_files):
    """A table has levels, a column of speakers spelled like levels, and AB's remarks in other words.

    Of the speakers a notice proposes the option that reads them as levels. That must not hide the notice on
    the remarks.
    """
    table = "movie,start_s,end_s,level,speaker,Remarks AB\nf,0,1,S,S,see\nf,1,2,EN,EN,hear\nf,2,3,S,S,fine\n"

    _, notices = import_files({"t.csv": table})

    assert "--column level=speaker" in notices
    assert "kept as they are, and read as no labels: 'Remarks AB'" in notices


def test_columns_of_annotators_beside_one_of_remarks_are_read_and_the_remarks_noticed_once(import_files):
    """AB and CD have a column of levels each, and a third column has AB's remarks, which repeat the levels.

    Three rows of two annotators are six clips. One notice names the remarks twice: the column, and the
    option that reads it.
    """
    table = "movie,start_s,end_s,AB,CD,Remarks AB\nf,0,1,S,S,S\nf,1,2,EN,EN,EN\nf,2,3,S,S,S\n"

    clips, notices = import_files({"t.csv": table}, wide=["AB", "CD"])

    assert len(clips) == 6
    assert notices.count("Remarks AB'") == 2, "the column, and the option that reads it"
