"""Inner folds hold whole movies; the threshold is the best there is."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.metrics import f1_pos
from obygaze_models.protocol import best_threshold, inner_folds


def test_four_folds_of_whole_movies_have_as_many_positives_and_clips_where_that_is_possible():
    """Eight movies of 10 clips, of which 8, 7, 6, ... 1 are positive: 80 clips, 36 of them positive.

    With 8 + 1, 7 + 2, 6 + 3 and 5 + 4 each of four folds gets two movies, with 9 positive clips of 20.
    """
    movies = []
    labels = []
    for movie, n_positives in {"a": 8, "b": 7, "c": 6, "d": 5, "e": 4, "f": 3, "g": 2, "h": 1}.items():
        movies += [movie] * 10
        labels += [True] * n_positives + [False] * (10 - n_positives)
    movies = np.array(movies)
    labels = np.array(labels)

    folds = inner_folds(labels, movies)

    for movie in "abcdefgh":
        folds_of_movie = set(folds[movies == movie])
        assert len(folds_of_movie) == 1
    assert np.bincount(folds[labels]).tolist() == [9, 9, 9, 9]
    assert np.bincount(folds).tolist() == [20, 20, 20, 20]


@pytest.mark.parametrize("n_clips", [1, 10])
def test_movies_without_a_positive_clip_are_dealt_evenly_too(n_clips):
    """Of 60 movies 17 have positive clips only, and 43 none: each of four folds gets 15 movies.

    The number of positives alone would not say which fold should get the 43.
    """
    movies = np.repeat(np.arange(60), n_clips)
    labels = movies < 17

    folds = inner_folds(labels, movies)

    assert np.bincount(folds).tolist() == [15 * n_clips] * 4


def test_inner_folds_do_not_depend_on_the_order_of_clips():
    """Clips of seven movies are shuffled: each is in the same fold as before."""
    rng = np.random.default_rng(0)
    movies = rng.integers(0, 7, 90)
    labels = rng.integers(0, 2, 90)
    order = rng.permutation(90)

    folds = inner_folds(labels, movies)
    folds_of_shuffled_clips = inner_folds(labels[order], movies[order])

    assert folds_of_shuffled_clips.tolist() == folds[order].tolist()


def test_two_movies_make_two_folds():
    """Inner folds are of whole movies. Here each of two movies has a negative and a positive clip."""
    labels = [0, 1, 0, 1]
    movies = ["a", "a", "b", "b"]

    folds = inner_folds(labels, movies)

    assert set(folds.tolist()) == {0, 1}


def test_one_movie_makes_no_folds():
    """Two clips of one movie cannot be divided into movies to train on and movies to hold out."""
    with pytest.raises(ProtocolError, match="2 training movies"):
        inner_folds([0, 1], ["a", "a"])


def test_positives_in_one_movie_alone_are_refused_with_the_movies_that_lack_them():
    """Where the movie a is left out, nothing positive is left to train on: b and c have no positive clip."""
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
    """Clips whose score reaches a threshold are called positive; the best one gives them the highest F1."""
    labels = np.array([label for label, _ in labels_and_scores], dtype=int)
    scores = np.array([score for _, score in labels_and_scores])
    assume(labels.any())

    def f1_of_threshold(threshold):
        called_positive = scores >= threshold
        return f1_pos(labels, called_positive)

    best_f1 = f1_of_threshold(best_threshold(labels, scores))

    assert best_f1 == max(f1_of_threshold(score) for score in scores)


def test_the_threshold_lies_midway_between_the_scores_that_it_parts():
    """The positive clip has a score of 3, and the next one, which is negative, 1: midway is 2."""
    labels = [1, 0, 0]
    scores = [3.0, 1.0, 0.0]

    assert best_threshold(labels, scores) == 2.0


def test_a_threshold_that_calls_all_clips_positive_is_their_lowest_score():
    """F1 is .8 if all are called (precision 2/3, recall 1), and .67 if only the first is (1, 1/2)."""
    labels = [1, 0, 1]
    scores = [3.0, 2.0, 2.0]

    assert best_threshold(labels, scores) == 2.0


def test_without_a_positive_clip_there_is_no_best_threshold():
    """The best threshold has the highest F1 of positive clips, which is not defined here."""
    both_negative = [0, 0]

    with pytest.raises(ProtocolError):
        best_threshold(both_negative, [0.1, 0.2])


def test_two_scores_without_a_number_between_them_are_parted():
    """The scores are 1 and the next larger number that the computer knows."""
    lower_score = 1.0
    next_number = float(np.nextafter(lower_score, 2))

    threshold = best_threshold([1, 0], [next_number, lower_score])

    assert lower_score < threshold <= next_number
