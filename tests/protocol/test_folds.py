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


def test_fewer_than_three_movies_are_refused():
    with pytest.raises(ProtocolError, match=r"3 movies.*\(a, b\)"):
        leave_one_movie_out(["1", "2"], ["a", "b"])


def test_up_to_five_hundred_movies_each_is_a_fold_of_its_own():
    movies = [f"m{n:03d}" for n in range(MOST_SINGLE_MOVIE_FOLDS)] * 2
    ids = [str(n) for n in range(len(movies))]
    assert leave_movies_out(ids, movies).folds.tolist() == leave_one_movie_out(ids, movies).folds.tolist()
    assert leave_movies_out([*ids, "a"], [*movies, "m999"]).folds.max() == N_GROUPED_FOLDS - 1


def test_fewer_than_three_folds_are_refused():
    with pytest.raises(ProtocolError):
        leave_movies_out(list("abcd"), list("abcd"), 2)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, 9), min_size=N_GROUPED_FOLDS + 1, max_size=N_GROUPED_FOLDS + 80), st.randoms())
def test_movies_are_dealt_whole_into_twenty_folds_of_about_as_many_clips_in_any_order(sizes, random):
    movies = [f"m{n:03d}" for n, size in enumerate(sizes) for _ in range(size)]
    ids = [str(n) for n in range(len(movies))]
    table = leave_movies_out(ids, movies, N_GROUPED_FOLDS)
    clips = np.bincount(table.folds)
    assert len(clips) == N_GROUPED_FOLDS
    assert clips.max() - clips.min() <= max(sizes)
    assert len({(movie, fold) for movie, fold in zip(movies, table.folds, strict=True)}) == len(sizes)
    order = random.sample(range(len(movies)), len(movies))
    reordered = leave_movies_out([ids[row] for row in order], [movies[row] for row in order], N_GROUPED_FOLDS)
    assert reordered.folds.tolist() == table.folds[order].tolist()


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans(), st.booleans()), min_size=3, max_size=40))
def test_splits_filter_one_table_and_every_testable_clip_is_tested_exactly_once(clips):
    movies = [movie for movie, _, _ in clips]
    if len(set(movies)) < 3:
        return
    train = np.array([t for _, t, _ in clips])
    test = np.array([t for _, _, t in clips])
    tested = []
    for split in splits(leave_one_movie_out([str(n) for n in range(len(clips))], movies), train, test):
        assert train[split.train].all()
        assert test[split.test].all()
        assert not {movies[row] for row in split.train} & {movies[row] for row in split.test}
        tested.extend(split.test.tolist())
    assert sorted(tested) == np.flatnonzero(test).tolist()


def test_a_clip_in_two_folds_is_refused():
    with pytest.raises(ProtocolError, match=r"c1 .*fold 0 .* 1"):
        FoldTable(("c1", "c2", "c1"), ("a", "b", "c"), np.array([0, 0, 1]))


def test_a_movie_in_two_folds_is_refused_unless_the_protocol_says_so():
    with pytest.raises(ProtocolError, match=r"movie a .*0 and 1"):
        FoldTable(("c1", "c2"), ("a", "a"), np.array([0, 1]))
    assert not FoldTable(("c1", "c2"), ("a", "a"), np.array([0, 1]), by_movie=False).by_movie


def test_a_clip_without_a_fold_is_never_tested():
    table = FoldTable(("c1", "c2"), ("a", "b"), np.array([0, -1]))
    everything = np.ones(2, dtype=bool)
    assert [split.test.tolist() for split in splits(table, everything, everything)] == [[0]]


@pytest.mark.parametrize(
    ("split", "leak"),
    [
        (Split(4, rows(0, 1), rows(1, 2)), "clip c1 is in training and in test"),
        (Split(4, rows(0), rows(4)), "movie a is in training and in test"),
        (Split(4, rows(5), rows(0)), "clip c0 is in training and in test"),  # under two rows
    ],
)
def test_a_leak_is_refused_by_name(split, leak):
    with pytest.raises(ProtocolError, match=f"fold 4 leaks: {leak}"):
        check_split(split, ["c0", "c1", "c2", "c3", "c4", "c0"], ["a", "b", "c", "d", "a", "e"])


def test_a_protocol_with_seen_movies_checks_clips_only():
    check_split(Split(0, rows(0), rows(1)), ["c0", "c1"], ["a", "a"], by_movie=False)
