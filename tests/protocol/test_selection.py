"""Inner folds hold whole movies; the threshold is the best there is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.metrics import f1_pos
from obygaze_models.protocol import best_threshold, inner_folds


def test_whole_movies_are_dealt_so_that_positives_and_clips_even_out():
    movies = np.repeat(list("abcdefgh"), 10)
    y = np.zeros(80, dtype=int)
    for movie, positives in enumerate((8, 7, 6, 5, 4, 3, 2, 1)):
        y[movie * 10 : movie * 10 + positives] = 1
    folds = inner_folds(y, movies)
    assert all(len(set(folds[movies == movie])) == 1 for movie in "abcdefgh")
    assert [int(y[folds == fold].sum()) for fold in range(4)] == [9, 9, 9, 9]
    assert [int((folds == fold).sum()) for fold in range(4)] == [20, 20, 20, 20]


@pytest.mark.parametrize("size", [1, 10])
def test_movies_without_a_positive_clip_are_dealt_evenly(size):
    """All are equal in positives: by these alone one fold would get them all."""
    movies = np.repeat(np.arange(60), size)
    folds = inner_folds(np.repeat(np.arange(60) < 17, size), movies)
    assert np.bincount(folds).tolist() == [15 * size] * 4


def test_the_order_of_clips_does_not_matter():
    rng = np.random.default_rng(0)
    movies = rng.integers(0, 7, 90)
    y = rng.integers(0, 2, 90)
    order = rng.permutation(90)
    assert inner_folds(y[order], movies[order]).tolist() == inner_folds(y, movies)[order].tolist()


def test_two_movies_make_two_folds_and_one_is_refused():
    assert set(inner_folds([0, 1, 0, 1], ["a", "a", "b", "b"]).tolist()) == {0, 1}
    with pytest.raises(ProtocolError, match="2 training movies"):
        inner_folds([0, 1], ["a", "a"])


def test_positives_in_one_movie_alone_are_refused_by_name():
    with pytest.raises(ProtocolError, match="b, c"):
        inner_folds([0, 1, 0, 0], ["a", "a", "b", "c"])


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from([-2.0, -0.5, 0.0, 0.1, 0.3, 7.0]) | st.floats(-9, 9)),
        min_size=1,
        max_size=40,
    ).filter(lambda clips: any(label for label, _ in clips))
)
def test_no_threshold_beats_the_tuned_one(clips):
    y = np.array([label for label, _ in clips], dtype=int)
    scores = np.array([score for _, score in clips])
    tuned = f1_pos(y, scores >= best_threshold(y, scores))
    assert tuned == max(f1_pos(y, scores >= threshold) for threshold in scores)


def test_the_threshold_lies_midway_and_of_equals_is_the_highest():
    assert best_threshold([1, 0, 0], [3.0, 1.0, 0.0]) == 2.0
    assert best_threshold([1, 0, 1], [3.0, 2.0, 2.0]) == 2.0


def test_scores_next_to_each_other_are_still_parted():
    low = 1.0
    high = float(np.nextafter(low, 2))
    assert low < best_threshold([1, 0], [high, low]) <= high


def test_a_threshold_needs_a_positive_clip():
    with pytest.raises(ProtocolError):
        best_threshold([0, 0], [0.1, 0.2])
