"""Labels in place of a model's probabilities: of all windows of a film, and not of those that were drawn."""

from dataclasses import replace

import pytest

from obygaze_film.errors import FilmError
from obygaze_film.judged_rate import correct_rate
from obygaze_film.windows_to_judge import choose_next
from tests.film.test_judge import judged_by_ab


@pytest.fixture
def thirty_by_ab(planted_timeline, tmp_path):
    """AB's blind judgements of the first 30 windows of a draw."""
    return judged_by_ab(choose_next([planted_timeline], 30, blind=True), tmp_path)


@pytest.fixture
def labels_of_all(planted_timeline, tmp_path):
    """Labels by a machine, vlm, of all windows in the order of the draw, all as AB would judge them."""
    by_ab = judged_by_ab(choose_next([planted_timeline], 600, blind=True), tmp_path)
    return by_ab.with_clips(replace(clip, annotator="vlm") for clip in by_ab)


def test_labels_of_the_judged_windows_alone_are_refused(planted_timeline, thirty_by_ab, labels_of_all):
    """The machine was asked about the 30 windows that AB judged, the first of the draw, and is right in all.

    A window without a label counts with the mean of all labels. So these labels would look like those of a
    model that errs nowhere in the film, and the interval would be far too narrow: it would hold the share in
    one of four draws. The message says that 0 of the 30 judged windows lack a label.
    """
    labels_of_judged_windows = labels_of_all.with_clips(labels_of_all.clips[:30])

    with pytest.raises(
        FilmError, match=r"of the windows that were drawn: 0 of 30 judged windows and .*label"
    ):
        correct_rate(planted_timeline, thirty_by_ab, labels=labels_of_judged_windows)


def test_labels_of_the_first_half_of_the_draw_are_refused_if_its_beginning_was_judged(
    planted_timeline, thirty_by_ab, labels_of_all
):
    """AB judged the first 30 windows of a draw, and the machine was asked about the first half of it.

    So it labelled all 30 and half of the others, and which ones depends on the draw.
    """
    n_half = len(labels_of_all) // 2
    labels_of_first_half = labels_of_all.with_clips(labels_of_all.clips[:n_half])

    with pytest.raises(FilmError, match="windows that were drawn"):
        correct_rate(planted_timeline, thirty_by_ab, labels=labels_of_first_half)


def test_labels_correct_a_share_even_if_a_machine_answered_for_no_window_in_the_middle_of_the_film(
    planted_timeline, thirty_by_ab, labels_of_all
):
    """The machine gave no label to any window that begins in the second third of the film.

    Which windows lack one has nothing to do with the order in which windows were drawn for AB: about a third
    of the judged ones do, as of all. So the labels are not refused, and correct AB's share.
    """
    end_s = max(clip.end_s for clip in labels_of_all)
    first_third_s, second_third_s = end_s / 3, 2 * end_s / 3
    labels_without_the_middle = labels_of_all.with_clips(
        clip for clip in labels_of_all if clip.start_s < first_third_s or clip.start_s >= second_third_s
    )

    rate, _notices = correct_rate(planted_timeline, thirty_by_ab, labels=labels_without_the_middle)

    assert rate.is_of_labels


def test_a_film_that_is_judged_whole_needs_no_labels(planted_timeline, labels_of_all):
    """AB judged all windows, so that the share is counted: a machine's labels of 30 of them change nothing.

    Elsewhere labels of windows of the draw alone are refused.
    """
    all_by_ab = labels_of_all.with_clips(replace(clip, annotator="AB") for clip in labels_of_all)
    labels_of_thirty = labels_of_all.with_clips(labels_of_all.clips[:30])

    rate, _notices = correct_rate(planted_timeline, all_by_ab, labels=labels_of_thirty)

    assert rate.low == rate.value == rate.high
