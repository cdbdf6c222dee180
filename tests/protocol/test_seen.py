"""Seen movies: blocks of scenes, a gap around what is tested, and a caption that says so."""

import numpy as np
import pytest

from obygaze_models.errors import CompareError
from obygaze_models.evaluation.compare import compare, side
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.run_folder import saved
from obygaze_models.protocol import scene_blocks, splits


@pytest.fixture(scope="module")
def movies_and_splits():
    """The movies of 75 clips in their order (30 of a, 42 of b, 3 of c), and the splits of their blocks."""
    movies = np.repeat(["a", "b", "c"], [30, 42, 3])
    table = scene_blocks([f"{movie}-{index}" for index, movie in enumerate(movies)], movies.tolist())
    all_clips = np.ones(75, dtype=bool)
    return movies, list(splits(table, all_clips, all_clips))


def test_of_blocks_of_scenes_every_clip_is_tested_once(movies_and_splits):
    """75 clips of three films are divided into blocks of neighbouring clips; a split tests some blocks."""
    _, all_splits = movies_and_splits

    tested_rows = []
    for split in all_splits:
        tested_rows += split.test.tolist()

    assert sorted(tested_rows) == list(range(75))


@pytest.mark.parametrize("movie", ["a", "b", "c"])
def test_a_block_is_of_clips_in_a_row_and_clips_nearer_to_it_than_the_gap_are_not_trained_on(
    movies_and_splits, movie
):
    """A split tests a block of a movie, and trains on its other clips.

    Clips right before and after the block look like it, so that four of them on each side are left out.
    """
    gap = 4
    movies, all_splits = movies_and_splits
    rows_of_movie = set(np.flatnonzero(movies == movie))

    for split in all_splits:
        block = split.test[movies[split.test] == movie].tolist()
        if not block:
            continue  # a short movie has no block in some splits
        first, last = block[0], block[-1]
        assert block == list(range(first, last + 1))
        block_and_neighbours = set(range(first - gap, last + 1 + gap))
        trained_rows_of_movie = set(split.train[movies[split.train] == movie])
        assert trained_rows_of_movie == rows_of_movie - block_and_neighbours


def test_splits_of_blocks_train_and_test_only_the_clips_that_a_task_trains_and_tests():
    """A task may leave clips out. Of 20 clips, this one trains on every second and tests every third."""
    table = scene_blocks([str(index) for index in range(20)], ["a"] * 20)
    may_be_trained_on = np.arange(20) % 2 == 0
    may_be_tested = np.arange(20) % 3 == 0

    all_splits = list(splits(table, may_be_trained_on, may_be_tested))

    for split in all_splits:
        assert may_be_trained_on[split.train].all()
        assert may_be_tested[split.test].all()


@pytest.fixture(scope="module")
def run_of_seen_and_of_unseen(make_synthetic_data):
    """Evaluations of clips that only films tell apart: by blocks, with seen films; and by whole films."""
    data = make_synthetic_data(film=6.0)
    run_of_seen = evaluate(data, ["linear"], "enhn_s", seen=True)
    run_of_unseen = evaluate(data, ["linear"], "enhn_s")
    return run_of_seen, run_of_unseen


@pytest.mark.long
def test_the_share_of_positives_of_a_movie_tells_clips_where_the_movie_is_trained_on_and_misleads_where_not(
    run_of_seen_and_of_unseen,
):
    """Six films differ in their share of positive clips. The baseline `movie_prior` gives a clip that share.

    It computes it from training clips: of the same film, if the film is seen; else of all other films, whose
    share is the lower the more positive clips the tested film has.
    """
    run_of_seen, run_of_unseen = run_of_seen_and_of_unseen

    def auc_of_movie_prior(run):
        return run.metrics.set_index(["model", "metric"])["pooled"].loc["movie_prior", "auc"]

    assert auc_of_movie_prior(run_of_seen) > 0.55
    assert auc_of_movie_prior(run_of_unseen) < 0.5


def test_the_record_of_a_run_with_seen_movies_names_blocks_in_place_of_movies(run_of_seen_and_of_unseen):
    """Each of five folds tests a block of all six films, and not a film."""
    run_of_seen, _ = run_of_seen_and_of_unseen

    tested = [fold["movie"] for fold in run_of_seen.record["folds"]]
    assert tested == ["block 0", "block 1", "block 2", "block 3", "block 4"]
    assert run_of_seen.record["movies_tested"] == 6


def test_a_run_with_seen_movies_is_not_compared_with_one_of_unseen_movies(run_of_seen_and_of_unseen):
    """Results on films that a model knows in part are too good to be held against results on new films."""
    run_of_seen, run_of_unseen = run_of_seen_and_of_unseen
    linear_on_seen = side(saved(run_of_seen, "seen"), "linear")
    linear_on_unseen = side(saved(run_of_unseen, "unseen"), "linear")

    with pytest.raises(CompareError, match="protocol"):
        compare(linear_on_seen, linear_on_unseen)
