"""Rows of one span are joined, and a text that stands in several of them stands once in the clip."""

import pytest

from obygaze_features.manifest import builtin_codebook, import_spans


def note_of_clip(folder, *notes):
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
    assert note_of_clip(tmp_path, *notes) == joined
