"""Columns of levels that differ in a person's name, beside words that say that they are of no annotator."""

import pytest

from obygaze_features.errors import ManifestError

ROWS = "\nf,1,2,S,EN\nf,3,4,EN,EN\n"


def table_of(first, second):
    """Write a table of two clips with two columns of levels."""
    return f"movie,start_s,end_s,{first},{second}{ROWS}"


def test_whether_columns_of_one_round_are_of_two_people_is_asked(import_files):
    """Two columns of levels are called Round 1 AB and Round 1 CD: they may be of two people, AB and CD.

    Round says that a column is of no annotator, but the names differ. So the refusal asks, and names the
    option that reads both columns.
    """
    table = table_of("Round 1 AB", "Round 1 CD")

    with pytest.raises(ManifestError, match="different people, give --wide 'Round 1 AB,Round 1 CD'"):
        import_files({"t.csv": table})

    clips, _ = import_files({"t.csv": table}, wide=["Round 1 AB", "Round 1 CD"])
    assert [clip.annotator for clip in clips] == ["Round 1 AB", "Round 1 CD"] * 2


@pytest.mark.parametrize(
    ("first", "second"), [("Pass 1", "Pass 2"), ("old level", "new level"), ("final", "gold")]
)
def test_columns_that_name_no_person_are_not_asked_about(refusal_of, first, second):
    """A table has two columns of levels, whose headings name two times or ways to decide, and no person."""
    refusal = refusal_of({"t.csv": table_of(first, second)})

    assert "different people" not in str(refusal)
