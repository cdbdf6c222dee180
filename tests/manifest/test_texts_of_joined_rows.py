"""Rows of one span are joined, and a text that stands in several of them stands once in the clip."""

import pytest

from obygaze_features.manifest import builtin_codebook, import_spans


def note_of_joined_rows(folder, *notes):
    """Import a table with a row for each concept of one span, each with a note; return the clip's note."""
    concepts = ["Look", "Body", "Speech", "Voice"]
    rows = ["movie;start_s;end_s;level;concepts;annotator;note"]
    for number, note in enumerate(notes):
        level = "" if number else "HN"
        rows.append(f"m;0;5;{level};{concepts[number]};A;{note}")
    path = folder / "long.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    (clip,) = import_spans([path], folder, codebook=builtin_codebook("obygaze12")).manifest
    assert set(clip.concepts) == set(concepts[: len(notes)])  # the rows were joined
    return clip.extras["note"]


@pytest.mark.parametrize(
    ("notes", "joined"),
    [
        (("seen", "seen"), "seen"),
        (("seen", "seen "), "seen"),
        (("seen", "twice", "seen"), "seen; twice"),
        (("seen", "twice", "seen", "twice"), "seen; twice"),
        (("", "seen", " seen"), "seen"),
        (("seen", "Seen"), "seen; Seen"),  # people may mean something by it
    ],
)
def test_a_text_that_is_repeated_stands_once(tmp_path, notes, joined):
    """A span has a row for each of its concepts, and each row a note. The rows are joined to one clip.

    The clip has each of the notes once, in their order; blanks around them and empty notes do not count.
    """
    assert note_of_joined_rows(tmp_path, *notes) == joined


HEADINGS_OF_LABELS = "movie,start_s,end_s,level,concepts,annotator,seen_score"


def labels_of(path):
    """Import a table, and return level, concepts and seen_score of each clip."""
    clips = import_spans([path], path.parent).manifest
    return [(clip.level, clip.concepts, clip.extras["seen_score"]) for clip in clips]


@pytest.mark.parametrize("seen_score_of_concept", ["0", ""], ids=["blind too", "not said of the concept"])
def test_a_blind_level_and_a_concept_in_another_row_of_the_span_are_joined(tmp_path, seen_score_of_concept):
    """Annotator A gave a span the level S blindly (seen_score 0) in one row, and in another the concept Body.

    The row of the concept says that it was blind too, or nothing of it: then both rows are one clip.
    """
    path = tmp_path / "long.csv"
    rows = ["m,0,5,S,,A,0", f"m,0,5,,Body,A,{seen_score_of_concept}"]
    path.write_text("\n".join([HEADINGS_OF_LABELS, *rows]) + "\n")

    assert labels_of(path) == [("S", ("Body",), "0")]


def test_a_concept_that_was_marked_in_sight_of_a_score_joins_no_blind_level_of_its_span(tmp_path):
    """Annotator A gave the span from 0 to 5 s the level S blindly (seen_score 0), in one row.

    Another row has the concept Body, which A marked in sight of a model's score (1). Joined, it would be
    called blind too, so it becomes a clip without a level. The rows of the next span are both blind, and are
    joined.
    """
    path = tmp_path / "long.csv"
    rows = ["m,0,5,S,,A,0", "m,0,5,,Body,A,1", "m,5,9,EN,,A,0", "m,5,9,,Look,A,0"]
    path.write_text("\n".join([HEADINGS_OF_LABELS, *rows]) + "\n")

    assert labels_of(path) == [("S", (), "0"), (None, ("Body",), "1"), ("EN", ("Look",), "0")]
