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
    """The machine was asked about the 30 windows that AB judged, and is right in all.

    With their mean in all other windows, they would look like a model that is right in the whole film, and
    the interval would hold the share in one of four draws.
    """
    of_drawn = labels_of_all.with_clips(labels_of_all.clips[:30])

    with pytest.raises(
        FilmError, match=r"of the windows that were drawn: 0 of 30 judged windows and .*label"
    ):
        correct_rate(planted_timeline, thirty_by_ab, labels=of_drawn)


def test_labels_of_more_of_the_same_draw_are_refused(planted_timeline, thirty_by_ab, labels_of_all):
    """The machine was asked about the first half of the windows in the order of the draw."""
    half = len(labels_of_all) // 2
    of_drawn = labels_of_all.with_clips(labels_of_all.clips[:half])

    with pytest.raises(FilmError, match="windows that were drawn"):
        correct_rate(planted_timeline, thirty_by_ab, labels=of_drawn)


def test_labels_may_miss_windows_that_do_not_depend_on_the_draw(
    planted_timeline, thirty_by_ab, labels_of_all
):
    """The machine refused every window that begins in the second third of the film."""
    end_s = max(clip.end_s for clip in labels_of_all)
    answered = labels_of_all.with_clips(
        clip for clip in labels_of_all if not end_s / 3 <= clip.start_s < 2 * end_s / 3
    )

    rate, _ = correct_rate(planted_timeline, thirty_by_ab, labels=answered)

    assert rate.is_of_labels


def test_a_film_that_is_judged_whole_needs_no_labels(planted_timeline, labels_of_all):
    """Its share is counted: labels of some windows change nothing."""
    whole = labels_of_all.with_clips(replace(clip, annotator="AB") for clip in labels_of_all)
    of_some = labels_of_all.with_clips(labels_of_all.clips[:30])

    rate, _ = correct_rate(planted_timeline, whole, labels=of_some)

    assert rate.low == rate.value == rate.high
