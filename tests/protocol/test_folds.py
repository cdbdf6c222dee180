"""One fold table keyed by clip, and no way to make it leak."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze_models.errors import ProtocolError
from obygaze_models.protocol import FoldTable, Split, check_split, leave_one_movie_out, splits
from obygaze_models.protocol.folds import MOST_SINGLE_MOVIE_FOLDS, N_GROUPED_FOLDS, leave_movies_out


def rows(*numbers):
    return np.array(numbers, dtype=np.intp)


def test_each_movie_is_tested_once_in_sorted_order():
    table = leave_one_movie_out(["x1", "a1", "m1", "a2"], ["x", "a", "m", "a"])
    assert table.folds.tolist() == [2, 0, 1, 0]


def test_fewer_than_three_movies_or_folds_are_refused():
    with pytest.raises(ProtocolError, match=r"3 movies.*\(a, b\)"):
        leave_one_movie_out(["1", "2"], ["a", "b"])
    with pytest.raises(ProtocolError):
        leave_movies_out(list("abcd"), list("abcd"), 2)


@pytest.mark.parametrize(
    ("n_movies", "n_folds"),
    [(MOST_SINGLE_MOVIE_FOLDS, MOST_SINGLE_MOVIE_FOLDS), (MOST_SINGLE_MOVIE_FOLDS + 1, N_GROUPED_FOLDS)],
    ids=["five hundred", "more"],
)
def test_up_to_five_hundred_movies_are_a_fold_each_and_more_are_grouped_into_twenty(n_movies, n_folds):
    movies = [f"m{n:03d}" for n in range(n_movies)] * 2
    folds = leave_movies_out([str(n) for n in range(len(movies))], movies).folds
    assert set(folds) == set(range(n_folds))


SIZES_OF_MANY_MOVIES = st.lists(
    st.integers(1, 9), min_size=N_GROUPED_FOLDS + 1, max_size=N_GROUPED_FOLDS + 80
)


def clips_of_sizes(sizes):
    """Name as many clips of each movie as its size says; return the names of clips and their movies."""
    movies = [f"m{n:03d}" for n, size in enumerate(sizes) for _ in range(size)]
    return [str(n) for n in range(len(movies))], movies


@settings(deadline=None, max_examples=20)
@given(SIZES_OF_MANY_MOVIES, st.randoms())
def test_folds_of_several_movies_hold_whole_movies_and_differ_by_no_more_clips_than_a_movie_has(
    sizes, random
):
    """They do not depend on the order of clips."""
    ids, movies = clips_of_sizes(sizes)
    folds = leave_movies_out(ids, movies, N_GROUPED_FOLDS).folds
    n_clips_of_fold = np.bincount(folds)
    assert len(n_clips_of_fold) == N_GROUPED_FOLDS
    assert n_clips_of_fold.max() - n_clips_of_fold.min() <= max(sizes)
    for movie in set(movies):
        assert len(set(folds[np.array(movies) == movie])) == 1

    order = random.sample(range(len(movies)), len(movies))
    reordered = leave_movies_out([ids[row] for row in order], [movies[row] for row in order], N_GROUPED_FOLDS)
    assert reordered.folds.tolist() == folds[order].tolist()


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans(), st.booleans()), min_size=3, max_size=40))
def test_of_clips_that_may_be_tested_each_is_tested_once_by_clips_of_other_movies_that_may_be_trained_on(
    movie_and_whether_to_train_and_test,
):
    movies = [movie for movie, _, _ in movie_and_whether_to_train_and_test]
    may_train = np.array([train for _, train, _ in movie_and_whether_to_train_and_test])
    may_test = np.array([test for _, _, test in movie_and_whether_to_train_and_test])
    if len(set(movies)) < 3:
        return
    table = leave_one_movie_out([str(n) for n in range(len(movies))], movies)
    tested = []
    for split in splits(table, may_train, may_test):
        assert may_train[split.train].all()
        assert may_test[split.test].all()
        assert {movies[row] for row in split.train}.isdisjoint(movies[row] for row in split.test)
        tested.extend(split.test.tolist())
    assert sorted(tested) == np.flatnonzero(may_test).tolist()


def test_a_clip_in_two_folds_is_refused():
    with pytest.raises(ProtocolError, match=r"c1 .*fold 0 .* 1"):
        FoldTable(("c1", "c2", "c1"), ("a", "b", "c"), np.array([0, 0, 1]))


def test_a_movie_in_two_folds_is_refused_only_where_folds_are_of_whole_movies():
    with pytest.raises(ProtocolError, match=r"movie a .*0 and 1"):
        FoldTable(("c1", "c2"), ("a", "a"), np.array([0, 1]))
    assert not FoldTable(("c1", "c2"), ("a", "a"), np.array([0, 1]), by_movie=False).by_movie
    check_split(Split(0, rows(0), rows(1)), ["c1", "c2"], ["a", "a"], by_movie=False)


def test_a_clip_without_a_fold_is_never_tested():
    no_fold = -1
    table = FoldTable(("c1", "c2"), ("a", "b"), np.array([0, no_fold]))
    all_clips = np.ones(2, dtype=bool)
    (split,) = splits(table, all_clips, all_clips)
    assert split.test.tolist() == [0]


@pytest.mark.parametrize(
    ("train", "test", "leak"),
    [
        (rows(0, 1), rows(1, 2), "clip c1 is in training and in test"),
        (rows(0), rows(3), "movie a is in training and in test"),
        (rows(0), rows(4), "clip c0 is in training and in test"),
    ],
    ids=["one row", "two clips of a movie", "two rows of a clip"],
)
def test_what_is_in_training_and_in_test_is_refused_by_name(train, test, leak):
    clip_ids = ["c0", "c1", "c2", "c3", "c0"]
    movies = ["a", "b", "c", "a", "e"]
    with pytest.raises(ProtocolError, match=f"fold 4 leaks: {leak}"):
        check_split(Split(4, train, test), clip_ids, movies)
