"""Columns of speakers, languages, words and remarks, whose cells are spelled like labels of the codebook."""

import pytest

HEADER = "movie,start_s,end_s"


@pytest.mark.parametrize(
    ("heading", "cells"),
    [
        ("language", ("EN", "EN", "FR")),
        ("Sprache", ("EN", "EN", "FR")),
        ("speaker", ("S", "EN", "S")),
        ("text", ("look", "body", "look")),
        ("words", ("look", "at", "body")),
    ],
)
def test_what_is_said_and_who_speaks_are_no_labels(import_files, heading, cells):
    """A table has languages, speakers or spoken words, whose cells are spelled like labels: EN, S, look.

    English is not easy negative, the speaker S is not sure, and the word look is no concept. So they are
    kept as they are, and a notice names the option that reads them as labels.
    """
    rows = [f"f,{n},{n}.5,{cell}" for n, cell in enumerate(cells, start=1)]

    clips, notices = import_files({"t.csv": "\n".join([f"{HEADER},{heading}", *rows])})

    assert [(clip.level, clip.concepts) for clip in clips] == [(None, ())] * 3
    assert [clip.extras[heading] for clip in clips] == list(cells)
    assert f"--column level={heading} if they are labels" in notices


@pytest.mark.parametrize("heading", ["language", "speaker", "notes", "Bemerkung"])
def test_words_like_levels_beside_a_column_of_levels_are_no_second_annotators(import_files, heading):
    """A table has a column of levels, and one of languages, speakers or notes with the cells EN and S.

    These are spelled like levels. But by its heading the column is of something else, so that the clips have
    the levels of the column "level" alone.
    """
    content = f"{HEADER},level,{heading}\nf,1,2,S,EN\nf,3,4,EN,EN\nf,5,6,HN,S\n"

    clips, _ = import_files({"t.csv": content})

    assert [(clip.level, clip.annotator) for clip in clips] == [("S", ""), ("EN", ""), ("HN", "")]


def test_a_column_called_text_is_read_as_levels_where_the_person_says_so(import_files):
    """Below the heading "text", which usually is of what is said, are the levels S and EN."""
    content = f"{HEADER},text\nf,1,2,S\nf,3,4,EN\n"

    clips, _ = import_files({"t.csv": content}, columns={"level": ["text"]})

    assert [clip.level for clip in clips] == ["S", "EN"]
