"""Seen movies: blocks of scenes, a gap around what is tested, and a caption that says so."""

import numpy as np
import pytest

from obygaze_models.errors import CompareError
from obygaze_models.evaluation.compare import compare, side
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.run_folder import saved
from obygaze_models.protocol import scene_blocks, splits
from obygaze_models.protocol.folds import GAP


@pytest.fixture(scope="module")
def splits_of_blocks():
    """The movies of 75 clips in their order, and the splits of their blocks of scenes."""
    movies = np.repeat(["a", "b", "c"], [30, 42, 3])
    table = scene_blocks([f"{movie}-{place}" for place, movie in enumerate(movies)], movies.tolist())
    all_clips = np.ones(75, dtype=bool)
    return movies, list(splits(table, all_clips, all_clips))


def test_of_blocks_of_scenes_every_clip_is_tested_once(splits_of_blocks):
    _, all_splits = splits_of_blocks
    assert sorted(row for split in all_splits for row in split.test.tolist()) == list(range(75))


@pytest.mark.parametrize("movie", ["a", "b", "c"])
def test_a_block_is_of_clips_in_a_row_and_clips_nearer_to_it_than_the_gap_are_not_trained_on(
    splits_of_blocks, movie
):
    movies, all_splits = splits_of_blocks
    rows_of_movie = set(np.flatnonzero(movies == movie))
    for split in all_splits:
        block = split.test[movies[split.test] == movie]
        if not block.size:
            continue
        first, last = block[0], block[-1]
        assert block.tolist() == list(range(first, last + 1))
        block_and_neighbours = set(range(first - GAP, last + 1 + GAP))
        trained_on = set(split.train[movies[split.train] == movie])
        assert trained_on == rows_of_movie - block_and_neighbours


def test_splits_of_blocks_train_and_test_only_the_clips_that_a_task_trains_and_tests():
    movies = ["a"] * 20
    table = scene_blocks([str(place) for place in range(20)], movies)
    train = np.arange(20) % 2 == 0
    test = np.arange(20) % 3 == 0
    for split in splits(table, train, test):
        assert train[split.train].all()
        assert test[split.test].all()


@pytest.fixture(scope="module")
def run_of_seen_and_of_unseen(make_planted):
    """Evaluations of clips that only films tell apart: by blocks, with seen films; and by whole films."""
    data = make_planted(film=6.0)
    return evaluate(data, ["linear"], "enhn_s", seen=True), evaluate(data, ["linear"], "enhn_s")


@pytest.mark.long
def test_the_share_of_positives_of_a_movie_tells_clips_where_the_movie_is_trained_on_and_misleads_where_not(
    run_of_seen_and_of_unseen,
):
    def auc_of_movie_prior(run):
        return run.metrics.set_index(["model", "metric"])["pooled"].loc["movie_prior", "auc"]

    seen, unseen = run_of_seen_and_of_unseen
    assert auc_of_movie_prior(seen) > 0.55
    assert auc_of_movie_prior(unseen) < 0.5


def test_the_record_of_a_run_with_seen_movies_names_blocks_in_place_of_movies(run_of_seen_and_of_unseen):
    seen, _ = run_of_seen_and_of_unseen
    assert [fold["movie"] for fold in seen.record["folds"]] == [f"block {fold}" for fold in range(5)]
    assert seen.record["movies_tested"] == 6


def test_a_run_with_seen_movies_is_not_compared_with_one_of_unseen_movies(run_of_seen_and_of_unseen):
    seen, unseen = run_of_seen_and_of_unseen
    with pytest.raises(CompareError, match="protocol"):
        compare(side(saved(seen, "seen"), "linear"), side(saved(unseen, "unseen"), "linear"))
