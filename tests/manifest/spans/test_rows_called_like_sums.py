"""A row that is called like a sum or an example may be a film: it is read, and the person is told of it."""

import pytest


@pytest.mark.parametrize("name", ["Mode", "Modus", "Median:", "Moda", "众数"])
def test_last_row_called_like_a_sum_of_labels_is_told(import_files, name):
    """The last of three rows has the median or mode of the levels above it, or is a film of this name.

    It is read as a clip, and a message says which row may be none.
    """
    table = f"movie,start_s,end_s,level\nf,0,5,EN\nf,5,10,S\n{name},2,3,EN\n"

    clips, messages = import_files({"a.csv": table})

    assert len(clips) == 3
    assert f"called like a sum or an example, and read as a clip (line 4, '{name}')" in messages


@pytest.mark.parametrize(
    "name", ["Example", "e.g. Titanic", "z. B. Titanic", "Beispiel: Titanic", "(ejemplo)"]
)
def test_row_called_like_an_example_is_told(import_files, name):
    """The first row below the headings may be an example of how to fill in the table, or a film of this name.

    It is read as a clip, and a message says that it should be deleted if it is none.
    """
    table = f"movie,start_s,end_s,level\n{name},0,5,EN\nf,0,5,EN\nf,5,10,S\n"

    _, messages = import_files({"a.csv": table})

    assert f"(line 2, '{name}'): delete what is none" in messages


def test_film_of_several_rows_is_a_film_whatever_its_name(import_files):
    """Two rows are called Max, and two Example. A sum, or an example, would be one row."""
    table = "movie,start_s,end_s,level\nMax,0,5,EN\nMax,5,9,S\nExample,0,5,EN\nExample,5,9,S\n"

    _, messages = import_files({"a.csv": table})

    assert "called like" not in messages


def test_a_first_row_called_like_a_sum_gets_no_notice(import_files):
    """The film of the first row is called Max, as a row with the maximum of each column would be.

    Such a row would stand below the others, so that this is surely a film.
    """
    table = "movie,start_s,end_s,level\nMax,0,5,EN\nf,5,9,S\n"

    _, messages = import_files({"a.csv": table})

    assert "called like" not in messages


@pytest.mark.parametrize(("mark", "words"), [("x", {}), ("ok", {"ok": "yes"}), ("@", {"@": "yes"})])
def test_a_sum_below_marks_is_left_out_whatever_sign_says_yes(import_files, mark, words):
    """The sum has no mark, where all other rows have one: the usual sign, or one that the person explains."""
    table = f"movie,start_s,end_s,Look\nf,0,5,{mark}\nf,5,10,{mark}\nTotal,0,10,\n"

    clips, messages = import_files({"a.csv": table}, words=words, columns={"concepts": ["Look"]})

    assert [clip.movie for clip in clips] == ["f", "f"]
    assert "a sum, no clip" in messages
