"""Seen movies: blocks of scenes, a gap around what is tested, and a caption that says so."""

import numpy as np
import pytest

from obygaze_models.errors import CompareError
from obygaze_models.evaluation.compare import compare, side
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.run_folder import saved
from obygaze_models.protocol import scene_blocks, splits
from obygaze_models.protocol.folds import GAP


def test_every_clip_is_tested_once_and_its_neighbours_are_on_no_side():
    movies = np.repeat(["a", "b", "c"], [30, 42, 3])
    table = scene_blocks([f"{movie}-{place}" for place, movie in enumerate(movies)], movies.tolist())
    every = np.ones(75, dtype=bool)
    tested = []
    for split in splits(table, every, every):
        tested += split.test.tolist()
        for movie in "abc":
            rows = np.flatnonzero(movies == movie)
            block = split.test[movies[split.test] == movie]
            if not block.size:
                continue
            assert np.array_equal(block, np.arange(block[0], block[-1] + 1))
            near = {*range(block[0] - GAP, block[0]), *range(block[-1] + 1, block[-1] + 1 + GAP)}
            around = near & set(rows)
            far = set(rows) - set(block) - around
            assert set(split.train[movies[split.train] == movie]) == far
    assert sorted(tested) == list(range(75))


def test_a_task_is_a_filter_on_the_blocks():
    movies = ["a"] * 20
    table = scene_blocks([str(place) for place in range(20)], movies)
    train = np.arange(20) % 2 == 0
    test = np.arange(20) % 3 == 0
    for split in splits(table, train, test):
        assert train[split.train].all()
        assert test[split.test].all()


def test_of_films_alone_seen_movies_flatter_and_the_report_says_that_they_were_seen(make_planted):
    data = make_planted(film=6.0)
    runs = {seen: evaluate(data, ["linear"], "enhn_s", seen=seen) for seen in (True, False)}
    pooled = {
        seen: run.metrics.set_index(["model", "metric"])["pooled"].loc["movie_prior"]
        for seen, run in runs.items()
    }
    assert pooled[True]["auc"] > 0.55
    assert pooled[False]["auc"] < 0.5
    assert [fold["movie"] for fold in runs[True].record["folds"]] == [f"block {fold}" for fold in range(5)]
    assert runs[True].record["movies_tested"] == 6
    with pytest.raises(CompareError, match="protocol"):
        compare(*(side(saved(run, str(seen)), "linear") for seen, run in runs.items()))
