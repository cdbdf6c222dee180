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
    """Mark a span of the film tt1 with a level; the annotator is AB where none is named."""
    return Clip(
        f"{annotator}-{start_s}",
        "tt1",
        start_s=start_s,
        end_s=end_s,
        level=level,
        annotator=annotator,
        extras={name: str(value) for name, value in extras.items()},
    )


def marks_in_turn(levels, annotator, delay_s=0.0):
    """Mark spans of 10 s in turn with these levels, the first of them from `delay_s` on."""
    marks = []
    for n, level in enumerate(levels):
        start_s = 10.0 * n + delay_s
        marks.append(mark(start_s, start_s + 10.0, level, annotator))
    return marks


def manifest(*clips):
    return Manifest(clips, Path(), OBYGAZE12)


FOUR_WINDOWS_OF_10_S = manifest(
    Clip("w0", "tt1", start_s=0.0, end_s=10.0),
    Clip("w1", "tt1", start_s=10.0, end_s=20.0),
    Clip("w2", "tt1", start_s=20.0, end_s=30.0),
    Clip("w3", "tt1", start_s=30.0, end_s=40.0),
)


def levels_of_windows(projection):
    """Return the level of each row, in the order of the windows."""
    return [row.level for row in projection.manifest]


@pytest.mark.parametrize(
    ("marks", "is_every_answer_marked"),
    [
        pytest.param([mark(start_s=0, end_s=10, level="S")], False, id="S alone"),
        pytest.param(
            [mark(start_s=0, end_s=10, level="S"), mark(start_s=20, end_s=30, level="NS")],
            False,
            id="S and the doubtful NS",
        ),
        pytest.param(
            [mark(start_s=0, end_s=10, level="S"), mark(start_s=20, end_s=30, level="EN")],
            True,
            id="S and the lowest level EN",
        ),
        pytest.param(
            [mark(start_s=0, end_s=10, level="S", place=1)], True, id="S in a window that was drawn"
        ),
    ],
)
def test_unmarked_time_is_no_answer_of_who_marks_the_lowest_level_or_judges_drawn_windows(
    marks, is_every_answer_marked
):
    """Time of a film that an annotator left unmarked may mean "nothing is there", or that nobody answered.

    Whoever marks only what they find, S or the doubtful NS of ObyGaze12, means the first. Whoever marks
    "nothing is there" too, which is its lowest level EN, marks every answer. So does who judges windows that
    were drawn, as these have their place in the draw, here 1: other time was never asked about.
    """
    assert marks_every_answer(marks, OBYGAZE12) == is_every_answer_marked


def test_clips_get_the_lowest_level_from_who_marks_only_what_they_find():
    """AB marks the first of four windows with S. In the others AB found nothing, which is EN."""
    only_what_is_found = manifest(mark(start_s=0, end_s=10, level="S"))

    projection = project(only_what_is_found, FOUR_WINDOWS_OF_10_S)

    assert levels_of_windows(projection) == ["S", "EN", "EN", "EN"]
    assert projection.unanswered == ()


def test_clips_that_nobody_answered_for_have_no_level():
    """Windows w0 to w3 last 10 s each. AB marks what is S and what is EN up to 20 s, and stops there.

    So the last two windows, from 20 to 40 s, have no answer.
    """
    marks_up_to_20_s = manifest(mark(start_s=0, end_s=10, level="S"), mark(start_s=10, end_s=20, level="EN"))

    projection = project(marks_up_to_20_s, FOUR_WINDOWS_OF_10_S)

    assert levels_of_windows(projection) == ["S", "EN", None, None]
    assert projection.unanswered == ("w2", "w3")


def test_marks_that_cover_a_clip_together_answer_for_it():
    """AB's six marks of 1.5 s, HN and EN in turn, cover 9 of the 10 s of the first of four windows.

    A mark gives a window its level if it covers a fifth of it, 2 s. None does, so HN is not the level, but
    together they show that AB judged the window: it has the lowest level, EN, and the others have none.
    """
    short_marks = manifest(
        mark(start_s=0.0, end_s=1.5, level="HN"),
        mark(start_s=1.5, end_s=3.0, level="EN"),
        mark(start_s=3.0, end_s=4.5, level="HN"),
        mark(start_s=4.5, end_s=6.0, level="EN"),
        mark(start_s=6.0, end_s=7.5, level="HN"),
        mark(start_s=7.5, end_s=9.0, level="EN"),
    )

    projection = project(short_marks, FOUR_WINDOWS_OF_10_S)

    assert levels_of_windows(projection) == ["EN", None, None, None]


def test_each_annotator_answers_for_what_they_marked():
    """There are four windows of 10 s, w0 to w3. AB marks only S in w0, and so says EN of the other three.

    CD marks EN too, and so answers for the two marked windows alone: of w2 and w3 CD has no row.
    """
    marks = manifest(
        mark(start_s=0, end_s=10, level="S", annotator="AB"),
        mark(start_s=0, end_s=10, level="S", annotator="CD"),
        mark(start_s=10, end_s=20, level="EN", annotator="CD"),
    )

    projection = project(marks, FOUR_WINDOWS_OF_10_S, per_annotator=True)

    level_of_row = {(row.clip_id, row.annotator): row.level for row in projection.manifest}
    assert level_of_row == {
        ("w0", "AB"): "S",
        ("w0", "CD"): "S",
        ("w1", "AB"): "EN",
        ("w1", "CD"): "EN",
        ("w2", "AB"): "EN",
        ("w3", "AB"): "EN",
    }
    windows_without_a_row = projection.without_row
    assert windows_without_a_row == {"CD": 2}


def test_agreement_of_two_annotators_is_measured_on_clips_that_both_answered_for():
    """AB judges eight spans of 10 s in turn; CD judges the first four of them, and alike.

    In what both judged they never differ, so Krippendorff's alpha is 1.
    """
    levels = ["S", "EN", "HN", "EN", "S", "HN", "EN", "S"]
    marks = manifest(*marks_in_turn(levels, "AB"), *marks_in_turn(levels[:4], "CD"))

    projected = project(marks, windows(marks, seconds=10.0), per_annotator=True)

    alpha_of_every_level, _ = level_alphas(projected.manifest)
    assert alpha_of_every_level.nominal == pytest.approx(1.0)


def test_free_segments_are_compared_where_both_annotators_answered():
    """AB marks eight segments of 10 s in turn, and CD the first four of them, half a second later.

    They are compared from .5 to 40.5 s, where they are nearly the same. Over the whole film, half of AB's
    segments would have no partner.
    """
    levels = ["S", "EN", "HN", "EN", "S", "HN", "EN", "S"]
    marks = manifest(*marks_in_turn(levels, "AB"), *marks_in_turn(levels[:4], "CD", delay_s=0.5))

    compared = in_common_stretches(marks)
    (alpha,) = unitised_alphas(marks)

    assert min(clip.start_s for clip in compared) == 0.5
    assert max(clip.end_s for clip in compared) == 40.5
    assert alpha.value.segments > 0.9


def test_annotations_are_not_cut_where_annotators_mark_only_what_they_find():
    """AB marks S from 0 to 10 s, and CD from 50 to 60 s. Neither marks time without the gaze.

    Annotators who mark every answer, EN too, are compared from their first mark to their last, as nobody
    knows their answer elsewhere. These two say by each time without a mark that nothing is there. So the
    whole film is compared, and no mark is cut or left out.
    """
    segments = manifest(
        mark(start_s=0, end_s=10, level="S", annotator="AB"),
        mark(start_s=50, end_s=60, level="S", annotator="CD"),
    )
    assert in_common_stretches(segments) == segments


def test_one_annotator_who_marks_every_answer_says_which_time_is_compared():
    """AB marks what is EN too, and stops at 50 s: up to there, AB and CD mark the same S, from 30 to 50 s.

    What CD finds from 100 s on says nothing of their agreement, so that alpha is 1.
    """
    by_ab = [
        mark(start_s=0, end_s=30, level="EN", annotator="AB"),
        mark(start_s=30, end_s=50, level="S", annotator="AB"),
    ]
    by_cd = [
        mark(start_s=30, end_s=50, level="S", annotator="CD"),
        mark(start_s=100, end_s=120, level="S", annotator="CD"),
    ]

    (alpha,) = unitised_alphas(manifest(*by_ab, *by_cd))

    assert alpha.value.segments == pytest.approx(1.0)


def test_time_in_which_one_annotator_marked_nothing_counts_as_said_to_be_empty():
    """AB marks all of the first 60 s, as S or as EN (nothing is there), so that this time is compared.

    CD marks only what they find, which is an S at 80 s: they watched the film, and say by leaving the first
    60 s unmarked that nothing is there. AB saw an S there, so they agree no more than by chance:
    Krippendorff's alpha of their segments is at most 0, and not undefined.
    """
    by_ab = [
        mark(start_s=0, end_s=30, level="EN", annotator="AB"),
        mark(start_s=30, end_s=50, level="S", annotator="AB"),
        mark(start_s=50, end_s=60, level="EN", annotator="AB"),
    ]
    by_cd = [mark(start_s=80, end_s=90, level="S", annotator="CD")]

    (alpha,) = unitised_alphas(manifest(*by_ab, *by_cd))

    assert alpha.annotators == ("AB", "CD")
    alpha_of_segments = alpha.value.segments
    assert alpha_of_segments <= 0


def test_annotators_without_time_in_common_are_not_compared():
    """AB and CD mark EN too, and so answer only for the time that they marked: AB to 30 s, CD from 40 s on.

    There is no second for which both answered, so nothing can be compared.
    """
    by_ab = [mark(start_s=0, end_s=30, level="EN", annotator="AB")]
    by_cd = [
        mark(start_s=40, end_s=61, level="EN", annotator="CD"),
        mark(start_s=61, end_s=70, level="S", annotator="CD"),
    ]

    with pytest.raises(ManifestError, match="answered for the same time"):
        unitised_alphas(manifest(*by_ab, *by_cd))


def test_a_label_is_in_sight_only_if_who_gave_it_saw_a_score():
    """AB judged blindly and marked what is S, so that what AB left unmarked is EN, as at 60 s.

    CD saw the model's score, and marked EN as well: what CD left unmarked has no answer. So the label of a
    clip at 60 s, EN, is AB's alone, and was given blindly.
    """
    marks = manifest(
        mark(start_s=0, end_s=20, level="S", annotator="AB", seen_score=0),
        mark(start_s=0, end_s=30, level="EN", annotator="CD", seen_score=1),
    )
    clip_at_60_s = manifest(Clip("late", "tt1", start_s=60.0, end_s=90.0))

    (row,) = project(marks, clip_at_60_s).manifest

    assert row.level == "EN"
    assert row.extras["seen_score"] == "0"


def test_two_marks_of_one_second_cover_it_once():
    """Two marks of the same second cover a tenth of the window w0, and a fifth is needed for an answer.

    Counted twice, the second would be a fifth. The mark with EN, on w2, shows that AB marks every answer.
    """
    first = mark(start_s=0, end_s=1, level="S")
    of_the_same_second = replace(first, clip_id="another")
    marks = manifest(first, of_the_same_second, mark(start_s=20, end_s=30, level="EN"))

    projection = project(marks, FOUR_WINDOWS_OF_10_S)

    assert levels_of_windows(projection) == [None, None, "EN", None]


def test_two_annotators_are_compared_only_in_time_that_both_gave_a_label():
    """AB labels 10 to 40 s, and CD 0 to 60 s, so that their labels are cut to 10 to 40 s.

    Of CD's label from 0 to 10 s nothing is left. Two other clips of AB make this time no longer: one at 70 s
    that AB was assigned but has not labelled yet, and a label of the whole film, which has no times.
    """
    by_ab = [mark(start_s=10, end_s=30, level="S"), mark(start_s=30, end_s=40, level="EN")]
    clip_without_label = mark(start_s=70, end_s=80, level=None)
    label_without_times = Clip("whole", "tt1", level="EN", annotator="AB")
    by_cd = [
        mark(start_s=0, end_s=10, level="EN", annotator="CD"),
        mark(start_s=10, end_s=35, level="S", annotator="CD"),
        mark(start_s=35, end_s=60, level="EN", annotator="CD"),
    ]

    compared = in_common_stretches(manifest(*by_ab, clip_without_label, label_without_times, *by_cd))

    spans = [(clip.annotator, clip.start_s, clip.end_s) for clip in compared if clip.start_s is not None]
    assert spans == [("AB", 10, 30), ("AB", 30, 40), ("CD", 10, 35), ("CD", 35, 40)]
