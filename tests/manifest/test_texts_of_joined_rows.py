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


@pytest.mark.parametrize(
    ("seen_scores", "concepts"),
    [(("0", "1"), ()), (("0", "0"), ("Body",)), (("0", ""), ("Body",))],
    ids=["in sight", "blindly too", "not said again"],
)
def test_concepts_that_were_seen_in_sight_of_a_score_join_no_blind_level(tmp_path, seen_scores, concepts):
    """A row says the level of the span, which was given blindly, and the next one a concept.

    A concept that joins no level stays a label of its own, as on tiers.
    """
    of_level, of_concept = seen_scores
    rows = [f"m,0,5,S,,A,{of_level}", f"m,0,5,,Body,A,{of_concept}", "m,5,9,EN,,A,0", "m,5,9,,Look,A,0"]
    path = tmp_path / "long.csv"
    path.write_text("\n".join(["movie,start_s,end_s,level,concepts,annotator,seen_score", *rows]) + "\n")

    first, *not_joined, second = import_spans([path], tmp_path).manifest

    assert (first.level, first.concepts, first.extras["seen_score"]) == ("S", concepts, "0")
    own_labels = [] if concepts else [(None, ("Body",), "1")]
    assert [(clip.level, clip.concepts, clip.extras["seen_score"]) for clip in not_joined] == own_labels
    assert (second.level, second.concepts) == ("EN", ("Look",))
