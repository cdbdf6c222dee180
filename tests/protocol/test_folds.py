"""One fold table keyed by clip, and no way to make it leak."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from obygaze_models.errors import ProtocolError
from obygaze_models.protocol import (
    FoldTable,
    Split,
    check_split,
    leave_one_movie_out,
    scene_blocks,
    splits,
)
from obygaze_models.protocol.folds import leave_movies_out


def test_each_movie_is_tested_once_in_sorted_order():
    """Of four clips the first is of the movie x, the second and the fourth of a, and the third of m.

    The folds 0, 1 and 2 test a, m and x.
    """
    table = leave_one_movie_out(clip_ids=["x1", "a1", "m1", "a2"], movies=["x", "a", "m", "a"])

    assert table.folds.tolist() == [2, 0, 1, 0]


def test_fewer_than_three_movies_are_refused_with_their_names():
    """Where one of two movies is tested, one is left to train on, and none to choose a penalty by."""
    with pytest.raises(ProtocolError, match=r"3 movies.*\(a, b\)"):
        leave_one_movie_out(clip_ids=["1", "2"], movies=["a", "b"])


def test_fewer_than_three_folds_are_refused():
    """Four movies are to be grouped into two folds."""
    with pytest.raises(ProtocolError):
        leave_movies_out(["1", "2", "3", "4"], ["a", "b", "c", "d"], n_folds=2)


@pytest.mark.parametrize(("n_movies", "n_folds"), [(500, 500), (501, 20)])
def test_up_to_five_hundred_movies_are_a_fold_each_and_more_are_grouped_into_twenty(n_movies, n_folds):
    """Each movie has two clips."""
    names = [f"m{number:03d}" for number in range(n_movies)]
    movies = names + names
    clip_ids = [str(number) for number in range(len(movies))]

    folds = leave_movies_out(clip_ids, movies).folds

    assert set(folds) == set(range(n_folds))


SIZES_OF_MORE_THAN_TWENTY_MOVIES = st.lists(st.integers(1, 9), min_size=21, max_size=100)
"""How many clips each of 21 to 100 movies has."""


def clips_of_sizes(sizes):
    """Name as many clips of each movie as its size says; return the names of clips and their movies."""
    movies = []
    for number, size in enumerate(sizes):
        movies += [f"m{number:03d}"] * size
    return [str(number) for number in range(len(movies))], movies


@settings(deadline=None, max_examples=20)
@given(SIZES_OF_MORE_THAN_TWENTY_MOVIES)
def test_folds_of_several_movies_hold_whole_movies_and_differ_by_no_more_clips_than_a_movie_has(sizes):
    """`sizes` are the numbers of clips of 21 to 100 movies, which are grouped into 20 folds."""
    clip_ids, movies = clips_of_sizes(sizes)

    folds = leave_movies_out(clip_ids, movies, n_folds=20).folds

    n_clips_of_fold = np.bincount(folds)
    assert len(n_clips_of_fold) == 20
    assert n_clips_of_fold.max() - n_clips_of_fold.min() <= max(sizes)
    for movie in set(movies):
        folds_of_movie = set(folds[np.array(movies) == movie])
        assert len(folds_of_movie) == 1


@settings(deadline=None, max_examples=20)
@given(SIZES_OF_MORE_THAN_TWENTY_MOVIES, st.randoms())
def test_folds_of_several_movies_do_not_depend_on_the_order_of_clips(sizes, random):
    """The clips of 21 to 100 movies are shuffled: each is in the same fold as before."""
    clip_ids, movies = clips_of_sizes(sizes)
    order = random.sample(range(len(movies)), len(movies))
    shuffled_ids = [clip_ids[row] for row in order]
    shuffled_movies = [movies[row] for row in order]

    folds = leave_movies_out(clip_ids, movies, n_folds=20).folds
    folds_of_shuffled_clips = leave_movies_out(shuffled_ids, shuffled_movies, n_folds=20).folds

    assert folds_of_shuffled_clips.tolist() == folds[order].tolist()


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans(), st.booleans()), min_size=3, max_size=40))
def test_of_clips_that_may_be_tested_each_is_tested_once_by_clips_of_other_movies_that_may_be_trained_on(
    movie_and_whether_to_train_and_test,
):
    """Each of 3 to 40 clips is of a movie, a to f, and may be trained on, tested, both or neither."""
    movies = [movie for movie, _, _ in movie_and_whether_to_train_and_test]
    may_be_trained_on = np.array([train for _, train, _ in movie_and_whether_to_train_and_test])
    may_be_tested = np.array([test for _, _, test in movie_and_whether_to_train_and_test])
    assume(len(set(movies)) >= 3)  # fewer are refused
    table = leave_one_movie_out([str(number) for number in range(len(movies))], movies)

    all_splits = list(splits(table, may_be_trained_on, may_be_tested))

    tested_rows = []
    for split in all_splits:
        assert may_be_trained_on[split.train].all()
        assert may_be_tested[split.test].all()
        movies_trained_on = {movies[row] for row in split.train}
        movies_tested = {movies[row] for row in split.test}
        assert movies_trained_on.isdisjoint(movies_tested)
        tested_rows += split.test.tolist()
    assert sorted(tested_rows) == np.flatnonzero(may_be_tested).tolist()


def test_a_clip_in_two_folds_is_refused():
    """The clip c1 is in the folds 0 and 1."""
    with pytest.raises(ProtocolError, match=r"c1 .*fold 0 .* 1"):
        FoldTable(clip_ids=("c1", "c2", "c1"), movies=("a", "b", "c"), folds=np.array([0, 0, 1]))


def test_a_movie_in_two_folds_is_refused():
    """Two clips of the movie a are in the folds 0 and 1."""
    with pytest.raises(ProtocolError, match=r"movie a .*0 and 1"):
        FoldTable(clip_ids=("c1", "c2"), movies=("a", "a"), folds=np.array([0, 1]))


def test_a_movie_may_be_in_two_folds_where_folds_are_not_of_whole_movies():
    """So it is with seen films, of which some scenes are tested and others trained on.

    Two clips of the movie a are in the folds 0 and 1; one is trained on where the other is tested. Neither
    the table nor the check of the split raises an error.
    """
    table = FoldTable(("c1", "c2"), ("a", "a"), np.array([0, 1]), by_movie=False)
    one_trained_and_one_tested = Split(fold=0, train=np.array([0]), test=np.array([1]))

    check_split(one_trained_and_one_tested, ["c1", "c2"], ["a", "a"], by_movie=False)

    assert not table.by_movie


def test_a_clip_without_a_fold_is_never_tested():
    """Of two clips, the second has no fold (-1)."""
    table = FoldTable(clip_ids=("c1", "c2"), movies=("a", "b"), folds=np.array([0, -1]))
    all_clips = np.array([True, True])

    (split,) = splits(table, all_clips, all_clips)

    assert split.test.tolist() == [0]


@pytest.mark.parametrize(
    ("train", "test", "leak"),
    [
        ([0, 1], [1, 2], "clip c1 is in training and in test"),
        ([0], [3], "movie a is in training and in test"),
        ([0], [4], "clip c0 is in training and in test"),
    ],
    ids=["one row", "two clips of a movie", "two rows of a clip"],
)
def test_what_is_in_training_and_in_test_is_refused_by_name(train, test, leak):
    """Rows 0 and 3 are of one movie, and rows 0 and 4 are of one clip. The fold has the number 4."""
    clip_ids = ["c0", "c1", "c2", "c3", "c0"]
    movies = ["a", "b", "c", "a", "e"]
    split = Split(fold=4, train=np.array(train), test=np.array(test))

    with pytest.raises(ProtocolError, match=f"fold 4 leaks: {leak}"):
        check_split(split, clip_ids, movies)


@pytest.mark.parametrize(
    ("n_folds", "folds"),
    [(3, [0, 1, 2, 2]), (4, [1, 0, 3, 2]), (5, [1, 0, 3, 2])],
    ids=["grouped", "as many folds as movies", "more folds than movies"],
)
def test_movies_are_grouped_only_where_there_are_more_than_folds(n_folds, folds):
    """Movies that are a fold each are numbered by name, so that fold 0 is the first movie in every run.

    The movies have 6, 5, 2 and 3 clips. In three folds, those of 2 and 3 clips are one.
    """
    movies = ["b", "a", "d", "c"]
    sizes = [6, 5, 2, 3]

    table = leave_movies_out(
        [str(number) for number in range(16)], np.repeat(movies, sizes).tolist(), n_folds
    )

    assert table.folds.tolist() == np.repeat(folds, sizes).tolist()


def test_each_movie_is_divided_into_five_blocks_of_neighbours():
    """Fold k tests block k of every movie. Clips of three movies, of 10, 10 and 5 clips, stand mixed.

    The clips of a movie are in the order of the film.
    """
    movies = ["a", "b"] * 5 + ["c"] * 5 + ["a", "b"] * 5

    table = scene_blocks([str(number) for number in range(25)], movies)

    folds_of_movie = {movie: table.folds[np.array(movies) == movie].tolist() for movie in "abc"}
    assert folds_of_movie == {
        "a": [0, 0, 1, 1, 2, 2, 3, 3, 4, 4],
        "b": [0, 0, 1, 1, 2, 2, 3, 3, 4, 4],
        "c": [0, 1, 2, 3, 4],
    }
