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


TWO_CLIPS = manifest(Clip("c1", "m", "", 0, 10), Clip("c2", "m", "", 10, 20))


def column(projection, name):
    return [clip.extras[name] for clip in projection.manifest]


def test_a_projected_clip_is_in_sight_if_the_label_it_gets_was_given_in_sight():
    """Otherwise models would be tested on labels that were copied from a model's score."""
    segments = manifest(
        segment(1, 0, 10, "S", "AB", seen_score="1"),
        segment(2, 10, 20, "EN", "AB", seen_score="0"),
        segment(3, 10, 20, "EN", "CD", seen_score="0"),
    )

    projection = project(segments, TWO_CLIPS)

    assert column(projection, "seen_score") == ["1", "0"]


def test_a_lower_label_in_sight_leaves_a_higher_blind_one_blind():
    """The clip gets the level S, which AB gave blindly; what CD gave in sight is not in the label."""
    segments = manifest(
        segment(1, 0, 10, "S", "AB", seen_score="0"), segment(2, 0, 10, "HN", "CD", seen_score="1")
    )
    assert column(project(segments, TWO_CLIPS), "seen_score")[0] == "0"


def test_one_label_in_sight_among_equal_ones_is_enough():
    """AB and CD both gave S, and CD had seen the score."""
    segments = manifest(
        segment(1, 0, 10, "S", "AB", seen_score="0"), segment(2, 0, 10, "S", "CD", seen_score="1")
    )
    assert column(project(segments, TWO_CLIPS), "seen_score")[0] == "1"


def test_a_label_of_which_nobody_knows_whether_it_is_blind_makes_no_clip_blind():
    """One of two equal labels has an empty cell: the clip's is empty too."""
    segments = manifest(
        segment(1, 0, 10, "S", "AB", seen_score="0"), segment(2, 0, 10, "S", "CD", seen_score="")
    )
    assert column(project(segments, TWO_CLIPS), "seen_score")[0] == ""


def test_each_annotators_row_keeps_how_this_annotator_judged():
    """AB judged c1 in sight of the score and CD blindly."""
    segments = manifest(
        segment(1, 0, 20, "S", "AB", seen_score="1"), segment(2, 0, 20, "HN", "CD", seen_score="0")
    )

    rows = project(segments, TWO_CLIPS, per_annotator=True).manifest

    assert [(row.clip_id, row.annotator, row.extras["seen_score"]) for row in rows] == [
        ("c1", "AB", "1"),
        ("c1", "CD", "0"),
        ("c2", "AB", "1"),
        ("c2", "CD", "0"),
    ]


def test_a_clip_without_a_mark_was_judged_as_the_rest_of_the_film():
    """AB went through the film with the score in sight, and marked nothing in c2."""
    segments = manifest(segment(1, 0, 10, "S", "AB", seen_score="1"))
    assert column(project(segments, TWO_CLIPS), "seen_score") == ["1", "1"]
    assert column(project(segments, TWO_CLIPS, per_annotator=True), "seen_score") == ["1", "1"]


def test_a_machines_mark_stays_on_the_labels_that_it_gave():
    """The machine alone gave c1 its level S; in c2 a person's level is the higher one."""
    segments = manifest(
        segment(1, 0, 20, "HN", "AB", model="", perceives=""),
        segment(2, 0, 10, "S", "gpt", model="gpt-9", perceives="visual;heard"),
        segment(3, 10, 20, "EN", "gpt", model="gpt-9", perceives="visual"),
    )

    projection = project(segments, TWO_CLIPS)

    assert column(projection, "model") == ["gpt-9", ""]
    assert column(projection, "perceives") == ["visual;heard", ""]


def test_the_definition_stays_so_that_two_of_them_are_refused_later_too():
    """Two tables of one definition each can be projected; their clips together are refused."""
    tables = []
    for definition, annotator in (("0123", "AB"), ("4567", "CD")):
        segments = manifest(segment(1, 0, 20, "S", annotator, definition=definition))
        tables += project(segments, TWO_CLIPS, per_annotator=True).manifest.clips

    with pytest.raises(ManifestError, match="2 judgements under 0123"):
        merge_annotators(manifest(*tables))


def test_columns_of_the_clips_own_labels_go_with_these_labels():
    """The clips were judged in sight before. The new labels do not say how they were given."""
    labelled = manifest(Clip("c1", "m", "", 0, 10, "HN", extras={"year": "1999", "seen_score": "1"}))
    projected = project(manifest(segment(1, 0, 10, "S", "AB")), labelled).manifest
    assert projected.clips[0].extras == {"year": "1999"}


def test_other_columns_of_annotations_are_left_out_and_named():
    """A note of a segment, or its place in a draw, is of the segment and not of a clip."""
    segments = manifest(segment(1, 0, 10, "S", "AB", note="fine", seen_score="0", place="3"))
    projection = project(segments, windows(segments, 10))
    assert projection.columns_left_out == ("note", "place")
    assert projection.manifest.clips[0].extras == {"seen_score": "0"}


def test_merged_rows_of_annotators_are_in_sight_whoever_comes_first():
    """The first row of c1 is blind, the second one, with the same level, is not."""
    rows = [
        Clip("c1", "m", "", 0, 10, "S", (), "AB", {"note": "a", "seen_score": "0"}),
        Clip("c1", "m", "", 0, 10, "S", (), "CD", {"note": "b", "seen_score": "1"}),
        Clip("c2", "m", "", 10, 20, None, (), "AB", {"note": "c", "seen_score": "0"}),
        Clip("c2", "m", "", 10, 20, None, (), "CD", {"note": "d", "seen_score": "0"}),
    ]

    merged = merge_annotators(manifest(*rows))

    assert [clip.extras["seen_score"] for clip in merged] == ["1", "0"]
