"""Clips keep how their labels were given: in sight of a model's score, by a machine, under a definition."""

from pathlib import Path

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, merge_annotators, project, windows


def segment(number, start_s, end_s, level, annotator, **how):
    """Annotate a span of the film m; `how` are the columns that say how it was judged."""
    return Clip(f"s{number}", "m", "", start_s, end_s, level, (), annotator, how)


def manifest(*clips):
    return Manifest(clips, Path())


CLIPS_OF_10_S = manifest(Clip("c1", "m", "", start_s=0, end_s=10), Clip("c2", "m", "", start_s=10, end_s=20))
"""Two clips without labels: c1 from 0 to 10 s, and c2 from 10 to 20 s."""


def column(rows, name):
    """Return the cells of a column, in the order of the rows."""
    return [row.extras[name] for row in rows]


def test_a_projected_clip_is_in_sight_if_the_label_it_gets_was_given_in_sight():
    """AB saw a model's score (seen_score 1) when they judged c1, and nobody saw one when they judged c2.

    If this were lost, models would be tested on labels that were copied from a model's score.
    """
    segments = manifest(
        segment(1, start_s=0, end_s=10, level="S", annotator="AB", seen_score="1"),
        segment(2, start_s=10, end_s=20, level="EN", annotator="AB", seen_score="0"),
        segment(3, start_s=10, end_s=20, level="EN", annotator="CD", seen_score="0"),
    )

    c1, c2 = project(segments, CLIPS_OF_10_S).manifest

    assert c1.extras["seen_score"] == "1"
    assert c2.extras["seen_score"] == "0"


def test_a_lower_label_in_sight_leaves_a_higher_blind_one_blind():
    """The clip c1 gets the level S, which AB gave blindly (seen_score 0).

    What CD gave in sight of a score, HN, is lower, and so is not in the label.
    """
    segments = manifest(
        segment(1, start_s=0, end_s=10, level="S", annotator="AB", seen_score="0"),
        segment(2, start_s=0, end_s=10, level="HN", annotator="CD", seen_score="1"),
    )

    c1, _ = project(segments, CLIPS_OF_10_S).manifest

    assert c1.level == "S"
    assert c1.extras["seen_score"] == "0"


def test_one_label_in_sight_among_equal_ones_is_enough():
    """AB and CD both gave S to c1, AB blindly (seen_score 0), CD in sight of a score (1)."""
    segments = manifest(
        segment(1, start_s=0, end_s=10, level="S", annotator="AB", seen_score="0"),
        segment(2, start_s=0, end_s=10, level="S", annotator="CD", seen_score="1"),
    )

    c1, _ = project(segments, CLIPS_OF_10_S).manifest

    assert c1.extras["seen_score"] == "1"


def test_a_label_of_which_nobody_knows_whether_it_is_blind_makes_no_clip_blind():
    """AB and CD both gave S to c1, AB blindly (seen_score 0). Of CD nobody knows: the cell is empty.

    So nobody knows of the clip's label either.
    """
    segments = manifest(
        segment(1, start_s=0, end_s=10, level="S", annotator="AB", seen_score="0"),
        segment(2, start_s=0, end_s=10, level="S", annotator="CD", seen_score=""),
    )

    c1, _ = project(segments, CLIPS_OF_10_S).manifest

    assert c1.extras["seen_score"] == ""


def test_each_annotators_row_keeps_how_this_annotator_judged():
    """AB judged both clips, c1 and c2, in sight of a model's score (seen_score 1), and CD blindly (0)."""
    segments = manifest(
        segment(1, start_s=0, end_s=20, level="S", annotator="AB", seen_score="1"),
        segment(2, start_s=0, end_s=20, level="HN", annotator="CD", seen_score="0"),
    )

    rows = project(segments, CLIPS_OF_10_S, per_annotator=True).manifest

    assert [(row.clip_id, row.annotator, row.extras["seen_score"]) for row in rows] == [
        ("c1", "AB", "1"),
        ("c1", "CD", "0"),
        ("c2", "AB", "1"),
        ("c2", "CD", "0"),
    ]


def test_a_clip_without_a_mark_was_judged_as_the_rest_of_the_film():
    """AB went through the film with the score in sight (seen_score 1), marked c1, and nothing in c2."""
    segments = manifest(segment(1, start_s=0, end_s=10, level="S", annotator="AB", seen_score="1"))

    merged = project(segments, CLIPS_OF_10_S).manifest
    by_annotator = project(segments, CLIPS_OF_10_S, per_annotator=True).manifest

    assert column(merged, "seen_score") == ["1", "1"]
    assert column(by_annotator, "seen_score") == ["1", "1"]


def test_a_machines_mark_stays_on_the_labels_that_it_gave():
    """The machine gpt alone gave c1 its level: S is higher than HN, which AB gave to both clips.

    In c2 the machine says EN, so that AB's level is the higher one, and nothing of the machine stays.
    """
    segments = manifest(
        segment(1, start_s=0, end_s=20, level="HN", annotator="AB", model="", perceives=""),
        segment(2, start_s=0, end_s=10, level="S", annotator="gpt", model="gpt-9", perceives="visual;heard"),
        segment(3, start_s=10, end_s=20, level="EN", annotator="gpt", model="gpt-9", perceives="visual"),
    )

    c1, c2 = project(segments, CLIPS_OF_10_S).manifest

    assert (c1.extras["model"], c1.extras["perceives"]) == ("gpt-9", "visual;heard")
    assert (c2.extras["model"], c2.extras["perceives"]) == ("", "")


def test_the_definition_stays_so_that_two_of_them_are_refused_later_too():
    """AB and CD judged under two definitions, 0123 and 4567, which are in a table each.

    Each table alone can be projected on two clips. The four rows together cannot be merged: they answer two
    questions.
    """
    by_ab = manifest(segment(1, start_s=0, end_s=20, level="S", annotator="AB", definition="0123"))
    by_cd = manifest(segment(1, start_s=0, end_s=20, level="S", annotator="CD", definition="4567"))

    rows_of_ab = project(by_ab, CLIPS_OF_10_S, per_annotator=True).manifest.clips
    rows_of_cd = project(by_cd, CLIPS_OF_10_S, per_annotator=True).manifest.clips

    with pytest.raises(ManifestError, match="2 judgements under 0123"):
        merge_annotators(manifest(*rows_of_ab, *rows_of_cd))


def test_columns_of_the_clips_own_labels_go_with_these_labels():
    """The clip was labelled HN before, in sight of a score (seen_score 1). It gets the level S of AB.

    Of this label nobody knows how it was given, so the old column would be wrong. The year of the film stays.
    """
    labelled = manifest(
        Clip("c1", "m", "", start_s=0, end_s=10, level="HN", extras={"year": "1999", "seen_score": "1"})
    )
    by_ab = manifest(segment(1, start_s=0, end_s=10, level="S", annotator="AB"))

    (projected_clip,) = project(by_ab, labelled).manifest

    assert projected_clip.level == "S"
    assert projected_clip.extras == {"year": "1999"}


def test_other_columns_of_annotations_are_left_out_and_named():
    """A note of a segment, or its place in a draw, is of the segment and not of a clip.

    The film is 10 s long, as its one segment, and so has one window of 10 s.
    """
    segments = manifest(
        segment(1, start_s=0, end_s=10, level="S", annotator="AB", note="fine", seen_score="0", place="3")
    )
    window_of_10_s = windows(segments, seconds=10)

    projection = project(segments, window_of_10_s)

    assert projection.columns_left_out == ("note", "place")
    (clip,) = projection.manifest
    assert clip.extras == {"seen_score": "0"}


def test_merged_rows_of_annotators_are_in_sight_whoever_comes_first():
    """AB and CD both gave S to c1, AB blindly (seen_score 0), CD in sight of a score (1).

    The row of AB stands first. Nobody saw a score when they looked at c2.
    """
    rows = manifest(
        Clip(
            "c1",
            "m",
            "",
            start_s=0,
            end_s=10,
            level="S",
            annotator="AB",
            extras={"note": "a", "seen_score": "0"},
        ),
        Clip(
            "c1",
            "m",
            "",
            start_s=0,
            end_s=10,
            level="S",
            annotator="CD",
            extras={"note": "b", "seen_score": "1"},
        ),
        Clip(
            "c2",
            "m",
            "",
            start_s=10,
            end_s=20,
            level=None,
            annotator="AB",
            extras={"note": "c", "seen_score": "0"},
        ),
        Clip(
            "c2",
            "m",
            "",
            start_s=10,
            end_s=20,
            level=None,
            annotator="CD",
            extras={"note": "d", "seen_score": "0"},
        ),
    )

    c1, c2 = merge_annotators(rows)

    assert c1.extras["seen_score"] == "1"
    assert c2.extras["seen_score"] == "0"
