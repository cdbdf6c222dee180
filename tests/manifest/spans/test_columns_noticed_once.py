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


def test_a_notice_that_proposes_an_option_for_one_column_does_not_hide_the_notice_on_another(import_files):
    """A table has levels, a column "speaker" whose cells are spelled like levels, and AB's remarks.

    For "speaker" a notice proposes the option that would read it as levels. A second notice says that the
    remarks, for which no option is proposed, are kept and read as no labels.
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
