"""What annotators say of time that they did not mark, where their annotations become labels of clips."""

from dataclasses import replace
from pathlib import Path

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    Clip,
    Manifest,
    builtin_codebook,
    in_common_stretches,
    level_alphas,
    marks_every_answer,
    project,
    unitised_alphas,
    windows,
)

OBYGAZE12 = builtin_codebook("obygaze12")


def mark(start_s, end_s, level, annotator="AB", **extras):
    return Clip(
        f"{annotator}-{start_s}",
        "tt1",
        start_s=start_s,
        end_s=end_s,
        level=level,
        annotator=annotator,
        extras={name: str(value) for name, value in extras.items()},
    )


def manifest(*clips):
    return Manifest(clips, Path(), OBYGAZE12)


WINDOWS_OF_10_S = manifest(*[Clip(f"w{n}", "tt1", start_s=10.0 * n, end_s=10.0 * (n + 1)) for n in range(4)])


def levels(projection):
    """Return the level of each row, with its clip and annotator."""
    return {(row.clip_id, row.annotator): row.level for row in projection.manifest}


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ([mark(0, 10, "S")], False),
        ([mark(0, 10, "S"), mark(20, 30, "NS")], False),
        ([mark(0, 10, "S"), mark(20, 30, "EN")], True),
        ([mark(0, 10, "S", place=1)], True),
    ],
    ids=["only what is found", "and what is not sure", "the lowest level too", "a window that was drawn"],
)
def test_who_marks_what_is_negative_says_nothing_of_other_time(marks, expected):
    assert marks_every_answer(marks, OBYGAZE12) == expected


def test_clips_get_the_lowest_level_from_who_marks_only_what_they_find():
    projection = project(manifest(mark(0, 10, "S")), WINDOWS_OF_10_S)
    assert [row.level for row in projection.manifest] == ["S", "EN", "EN", "EN"]
    assert projection.unanswered == ()


def test_clips_that_nobody_answered_for_have_no_level():
    """AB marks S and EN up to 20 s, and stops there."""
    projection = project(manifest(mark(0, 10, "S"), mark(10, 20, "EN")), WINDOWS_OF_10_S)
    assert [row.level for row in projection.manifest] == ["S", "EN", None, None]
    assert projection.unanswered == ("w2", "w3")


def test_marks_that_cover_a_clip_together_answer_for_it():
    """Six marks of 1.5 s cover 9 of the 10 s of the first window, each less than a fifth of it."""
    marks = [mark(1.5 * n, 1.5 * (n + 1), "EN" if n % 2 else "HN") for n in range(6)]
    projection = project(manifest(*marks), WINDOWS_OF_10_S)
    assert [row.level for row in projection.manifest] == ["EN", None, None, None]


def test_each_annotator_answers_for_what_they_marked():
    """AB marks only S, and so answers for all windows; CD marks EN too, and judged the first two."""
    marks = manifest(mark(0, 10, "S"), mark(0, 10, "S", "CD"), mark(10, 20, "EN", "CD"))
    projection = project(marks, WINDOWS_OF_10_S, per_annotator=True)
    assert levels(projection) == {
        ("w0", "AB"): "S",
        ("w0", "CD"): "S",
        ("w1", "AB"): "EN",
        ("w1", "CD"): "EN",
        ("w2", "AB"): "EN",
        ("w3", "AB"): "EN",
    }
    assert projection.without_row == {"CD": 2}


def test_agreement_is_of_what_both_answered_for():
    """CD judges the first half of what AB judges, and alike: alpha is 1."""
    level_of_window = ["S", "EN", "HN", "EN", "S", "HN", "EN", "S"]
    marks = [mark(10.0 * n, 10.0 * (n + 1), level) for n, level in enumerate(level_of_window)]
    marks += [mark(10.0 * n, 10.0 * (n + 1), level, "CD") for n, level in enumerate(level_of_window[:4])]
    projected = project(manifest(*marks), windows(manifest(*marks), 10.0), per_annotator=True)
    every_level, _ = level_alphas(projected.manifest)
    assert every_level.nominal == pytest.approx(1.0)


def test_free_segments_are_compared_where_both_annotators_answered():
    """AB marks 80 s. CD marks the same segments half a second later, and stops after 40 s.

    Over the whole film, half of AB's segments would have no partner.
    """
    level_of_segment = ["S", "EN", "HN", "EN", "S", "HN", "EN", "S"]
    marks = [mark(10.0 * n, 10.0 * (n + 1), level) for n, level in enumerate(level_of_segment)]
    marks += [
        mark(10.0 * n + 0.5, 10.0 * (n + 1) + 0.5, level, "CD")
        for n, level in enumerate(level_of_segment[:4])
    ]
    compared = in_common_stretches(manifest(*marks))
    assert min(clip.start_s for clip in compared) == 0.5
    assert max(clip.end_s for clip in compared) == 40.5

    (alpha,) = unitised_alphas(manifest(*marks))
    assert alpha.value.segments > 0.9


def test_a_film_stays_whole_where_annotators_mark_only_what_they_find():
    segments = manifest(mark(0, 10, "S"), mark(50, 60, "S", "CD"))
    assert in_common_stretches(segments) == segments


def test_one_annotator_who_marks_every_answer_says_which_time_is_compared():
    """AB marks EN too, and stops at 50 s. What CD finds at 100 s says nothing of their agreement."""
    marks = [mark(0, 30, "EN"), mark(30, 50, "S"), mark(30, 50, "S", "CD"), mark(100, 120, "S", "CD")]
    (alpha,) = unitised_alphas(manifest(*marks))
    assert alpha.value.segments == pytest.approx(1.0)


def test_who_marked_nothing_of_the_time_that_is_compared_answered_all_the_same():
    """CD marks S at 80 s alone, and so says of the first 60 s, in which AB marks S, that nothing is there."""
    marks = [mark(0, 30, "EN"), mark(30, 50, "S"), mark(50, 60, "EN"), mark(80, 90, "S", "CD")]
    (alpha,) = unitised_alphas(manifest(*marks))
    assert alpha.annotators == ("AB", "CD")
    assert alpha.value.segments <= 0


def test_annotators_without_time_in_common_are_not_compared():
    marks = [mark(0, 30, "EN"), mark(40, 61, "EN", "CD"), mark(61, 70, "S", "CD")]
    with pytest.raises(ManifestError, match="answered for the same time"):
        unitised_alphas(manifest(*marks))


def test_a_label_is_in_sight_only_if_who_gave_it_saw_a_score():
    """At 60 s the lowest level is AB's, who judged blindly: CD, who saw a score, has no answer there."""
    marks = manifest(mark(0, 20, "S", seen_score=0), mark(0, 30, "EN", "CD", seen_score=1))
    late_clip = manifest(Clip("late", "tt1", start_s=60.0, end_s=90.0))
    (row,) = project(marks, late_clip).manifest
    assert (row.level, row.extras["seen_score"]) == ("EN", "0")


def test_two_marks_of_one_second_cover_it_once():
    """Two spans mark the same second of ten: a tenth of the window, of which a fifth is needed."""
    same_second = replace(mark(0, 1, "S"), clip_id="another")
    marks = manifest(mark(0, 1, "S"), same_second, mark(20, 30, "EN"))
    projection = project(marks, WINDOWS_OF_10_S)
    assert [row.level for row in projection.manifest] == [None, None, "EN", None]
