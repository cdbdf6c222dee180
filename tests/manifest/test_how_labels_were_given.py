"""Clips keep how their labels were given: in sight of a model's score, by a machine, under a definition."""

from pathlib import Path

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, merge_annotators, project, windows
from tests.manifest.judged_clips import judged_clip


def manifest(*clips):
    return Manifest(clips, Path())


CLIPS_OF_10_S = manifest(Clip("c1", "m", start_s=0, end_s=10), Clip("c2", "m", start_s=10, end_s=20))
"""Two clips without labels: c1 from 0 to 10 s, and c2 from 10 to 20 s."""


def column(rows, name):
    """Return the cells of a column, in the order of the rows."""
    return [row.extras[name] for row in rows]


def test_a_projected_clip_is_in_sight_if_the_label_it_gets_was_given_in_sight():
    """AB saw a model's score (seen_score 1) when they judged c1, from 0 to 10 s of the film.

    Nobody saw one (0) when they judged c2, from 10 to 20 s. If this were lost, models would be tested on
    labels that were copied from a model's score.
    """
    in_sight = judged_clip("S", by="AB", start_s=0, end_s=10, seen_score="1")
    blind = judged_clip("EN", by="AB", start_s=10, end_s=20, seen_score="0")
    blind_too = judged_clip("EN", by="CD", start_s=10, end_s=20, seen_score="0")

    c1, c2 = project(manifest(in_sight, blind, blind_too), CLIPS_OF_10_S).manifest

    assert c1.extras["seen_score"] == "1"
    assert c2.extras["seen_score"] == "0"


def test_a_lower_label_in_sight_leaves_a_higher_blind_one_blind():
    """The clip c1 gets the highest level, S, which AB gave blindly (seen_score 0).

    What CD gave in sight of a score (1), HN, is lower, and so is not in the label.
    """
    higher_and_blind = judged_clip("S", by="AB", start_s=0, end_s=10, seen_score="0")
    lower_in_sight = judged_clip("HN", by="CD", start_s=0, end_s=10, seen_score="1")

    c1, _ = project(manifest(higher_and_blind, lower_in_sight), CLIPS_OF_10_S).manifest

    assert c1.level == "S"
    assert c1.extras["seen_score"] == "0"


def test_a_projected_clip_is_in_sight_where_one_of_two_equal_labels_was_given_in_sight():
    """AB and CD both gave S to c1, AB blindly (seen_score 0), CD in sight of a score (1)."""
    blind = judged_clip("S", by="AB", start_s=0, end_s=10, seen_score="0")
    in_sight = judged_clip("S", by="CD", start_s=0, end_s=10, seen_score="1")

    c1, _ = project(manifest(blind, in_sight), CLIPS_OF_10_S).manifest

    assert c1.extras["seen_score"] == "1"


def test_a_label_of_which_nobody_knows_whether_it_is_blind_makes_no_clip_blind():
    """AB and CD both gave S to c1, AB blindly (seen_score 0). Of CD nobody knows: the cell is empty.

    So nobody knows of the clip's label either.
    """
    blind = judged_clip("S", by="AB", start_s=0, end_s=10, seen_score="0")
    unknown = judged_clip("S", by="CD", start_s=0, end_s=10, seen_score="")

    c1, _ = project(manifest(blind, unknown), CLIPS_OF_10_S).manifest

    assert c1.extras["seen_score"] == ""


def test_each_annotators_row_keeps_how_this_annotator_judged():
    """AB judged the first 20 s of a film in sight of a model's score (seen_score 1), and CD blindly (0).

    These 20 s are the clips c1 and c2. Each clip gets a row for each annotator.
    """
    in_sight = judged_clip("S", by="AB", start_s=0, end_s=20, seen_score="1")
    blind = judged_clip("HN", by="CD", start_s=0, end_s=20, seen_score="0")

    rows = project(manifest(in_sight, blind), CLIPS_OF_10_S, per_annotator=True).manifest

    assert [(row.clip_id, row.annotator, row.extras["seen_score"]) for row in rows] == [
        ("c1", "AB", "1"),
        ("c1", "CD", "0"),
        ("c2", "AB", "1"),
        ("c2", "CD", "0"),
    ]


def test_a_clip_without_a_mark_was_judged_as_the_rest_of_the_film():
    """AB went through the film with the score in sight (seen_score 1), marked c1, and nothing in c2."""
    marks = manifest(judged_clip("S", by="AB", start_s=0, end_s=10, seen_score="1"))

    merged = project(marks, CLIPS_OF_10_S).manifest
    by_annotator = project(marks, CLIPS_OF_10_S, per_annotator=True).manifest

    assert column(merged, "seen_score") == ["1", "1"]
    assert column(by_annotator, "seen_score") == ["1", "1"]


def test_a_machines_mark_stays_on_the_labels_that_it_gave():
    """AB gave HN to the clips c1 (0 to 10 s) and c2 (10 to 20 s), and the machine gpt gave them S and EN.

    The higher level counts, and levels rise from EN over HN to S. So c1 has the machine's label, with its
    model and what it perceives, and c2 has AB's, with nothing of the machine.
    """
    by_ab = judged_clip("HN", by="AB", start_s=0, end_s=20, model="", perceives="")
    higher = judged_clip("S", by="gpt", start_s=0, end_s=10, model="gpt-9", perceives="visual;heard")
    lower = judged_clip("EN", by="gpt", start_s=10, end_s=20, model="gpt-9", perceives="visual")

    c1, c2 = project(manifest(by_ab, higher, lower), CLIPS_OF_10_S).manifest

    assert c1.level == "S"
    assert c1.extras["model"] == "gpt-9"
    assert c1.extras["perceives"] == "visual;heard"
    assert c2.level == "HN"
    assert c2.extras["model"] == ""
    assert c2.extras["perceives"] == ""


def test_judgements_of_two_definitions_are_not_merged_even_if_each_was_projected_onto_clips_before():
    """A definition is the digest of the texts that annotators read: AB judged under 0123, CD under 4567.

    Judgements of two definitions answer two questions, and must not be merged. AB and CD judged a span from 0
    to 20 s, which is projected onto the clips c1 and c2: two rows for each annotator. These must keep the
    definition, or nobody could tell any more that they don't belong together.
    """
    by_ab = manifest(judged_clip("S", by="AB", start_s=0, end_s=20, definition="0123"))
    by_cd = manifest(judged_clip("S", by="CD", start_s=0, end_s=20, definition="4567"))

    rows_of_ab = project(by_ab, CLIPS_OF_10_S, per_annotator=True).manifest.clips
    rows_of_cd = project(by_cd, CLIPS_OF_10_S, per_annotator=True).manifest.clips

    with pytest.raises(ManifestError, match="2 judgements under 0123"):
        merge_annotators(manifest(*rows_of_ab, *rows_of_cd))


def test_how_a_clips_earlier_label_was_given_is_forgotten_when_the_clip_gets_a_new_label():
    """The clip was labelled HN before, in sight of a score (seen_score 1). It gets the level S of AB.

    Nobody knows how AB's label was given, so seen_score would be wrong and goes, and the film's year stays.
    """
    labelled_before = judged_clip("HN", by="", start_s=0, end_s=10, year="1999", seen_score="1")
    by_ab = judged_clip("S", by="AB", start_s=0, end_s=10)

    (projected_clip,) = project(manifest(by_ab), manifest(labelled_before)).manifest

    assert projected_clip.level == "S"
    assert projected_clip.extras == {"year": "1999"}


def test_other_columns_of_annotations_are_left_out_and_named():
    """A note of a segment, or its place in a draw, is of the segment and not of a clip.

    The film is 10 s long, as its one segment, and so has one window of 10 s.
    """
    segment = judged_clip("S", by="AB", start_s=0, end_s=10, note="fine", seen_score="0", place="3")
    window_of_10_s = windows(manifest(segment), seconds=10)

    projection = project(manifest(segment), window_of_10_s)

    assert projection.columns_left_out == ("note", "place")
    (clip,) = projection.manifest
    assert clip.extras == {"seen_score": "0"}


def test_merged_rows_of_annotators_are_in_sight_whoever_comes_first():
    """AB, whose row stands first, judged c1 blindly (seen_score 0), and CD in sight of a score (1).

    Both say S, so the label of c1 is in part one that was given in sight. Both looked at c2 blindly.
    """
    rows = manifest(
        judged_clip("S", by="AB", clip_id="c1", start_s=0, end_s=10, seen_score="0", note="a"),
        judged_clip("S", by="CD", clip_id="c1", start_s=0, end_s=10, seen_score="1", note="b"),
        judged_clip(None, by="AB", clip_id="c2", start_s=10, end_s=20, seen_score="0", note="c"),
        judged_clip(None, by="CD", clip_id="c2", start_s=10, end_s=20, seen_score="0", note="d"),
    )

    c1, c2 = merge_annotators(rows)

    assert c1.extras["seen_score"] == "1"
    assert c2.extras["seen_score"] == "0"
