"""Inner folds hold whole movies; the threshold is the best there is."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.metrics import f1_pos
from obygaze_models.protocol import best_threshold, inner_folds


def test_four_folds_of_whole_movies_have_as_many_positives_and_clips_where_that_is_possible():
    n_positives_of_movie = {"a": 8, "b": 7, "c": 6, "d": 5, "e": 4, "f": 3, "g": 2, "h": 1}
    movies = np.repeat(list(n_positives_of_movie), 10)
    y = np.concatenate([np.arange(10) < n_positives for n_positives in n_positives_of_movie.values()])
    folds = inner_folds(y, movies)
    for movie in n_positives_of_movie:
        assert len(set(folds[movies == movie])) == 1
    assert np.bincount(folds[y]).tolist() == [36 / 4] * 4
    assert np.bincount(folds).tolist() == [80 / 4] * 4


@pytest.mark.parametrize("n_clips", [1, 10])
def test_movies_without_a_positive_clip_are_dealt_evenly_too(n_clips):
    """The number of positives alone would not say which fold should get them."""
    is_positive_movie = np.arange(60) < 17
    movies = np.repeat(np.arange(60), n_clips)
    folds = inner_folds(is_positive_movie[movies], movies)
    assert np.bincount(folds).tolist() == [60 / 4 * n_clips] * 4


def test_inner_folds_do_not_depend_on_the_order_of_clips():
    rng = np.random.default_rng(0)
    movies = rng.integers(0, 7, 90)
    y = rng.integers(0, 2, 90)
    order = rng.permutation(90)
    assert inner_folds(y[order], movies[order]).tolist() == inner_folds(y, movies)[order].tolist()


def test_two_movies_make_two_folds_and_positives_in_one_movie_alone_are_refused():
    assert set(inner_folds([0, 1, 0, 1], ["a", "a", "b", "b"]).tolist()) == {0, 1}
    with pytest.raises(ProtocolError, match="2 training movies"):
        inner_folds([0, 1], ["a", "a"])
    with pytest.raises(ProtocolError, match="b, c"):
        inner_folds([0, 1, 0, 0], ["a", "a", "b", "c"])


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from([-2.0, -0.5, 0.0, 0.1, 0.3, 7.0]) | st.floats(-9, 9)),
        min_size=1,
        max_size=40,
    )
)
def test_no_score_taken_as_threshold_has_a_higher_f1_than_the_best_threshold(labels_and_scores):
    y = np.array([label for label, _ in labels_and_scores], dtype=int)
    scores = np.array([score for _, score in labels_and_scores])
    assume(y.any())
    best_f1 = f1_pos(y, scores >= best_threshold(y, scores))
    assert best_f1 == max(f1_pos(y, scores >= threshold) for threshold in scores)


def test_the_threshold_lies_midway_between_the_scores_that_it_parts():
    assert best_threshold([1, 0, 0], [3.0, 1.0, 0.0]) == 2.0
    calls_all_clips_positive = 2.0
    assert best_threshold([1, 0, 1], [3.0, 2.0, 2.0]) == calls_all_clips_positive
    with pytest.raises(ProtocolError):
        best_threshold([0, 0], [0.1, 0.2])  # without a positive clip


def test_two_scores_without_a_number_between_them_are_parted():
    low = 1.0
    high = float(np.nextafter(low, 2))
    assert low < best_threshold([1, 0], [high, low]) <= high
