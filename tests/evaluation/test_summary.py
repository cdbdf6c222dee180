"""A summary of predictions: whole movies are the unit of its intervals, and chance stands beside."""

import numpy as np
import pandas as pd
import pytest

from obygaze_models.evaluation import Predictions, summarise
from obygaze_models.evaluation.summary import by_seed
from tests.evaluation.test_compare import rows


def table(film, n_movies=12, n_clips=60, seed=0):
    """Predictions whose scores vary from film to film by `film` SDs, which no clip of a film escapes."""
    lean = np.random.default_rng(seed).normal(size=n_movies).repeat(n_clips) * film
    return Predictions(rows(1 + lean, n_movies=n_movies, n_clips=n_clips, noise=seed).assign(threshold=0.5))


def width(predictions):
    row = summarise(predictions).set_index("metric").loc["auc"]
    assert row["pooled_low"] < row["pooled"] < row["pooled_high"]
    return row["pooled_high"] - row["pooled_low"]


def test_films_that_differ_widen_the_interval():
    assert width(table(film=1.0)) > 1.5 * width(table(film=0.0))


def test_rows_of_one_clip_tested_in_two_folds_are_drawn_together():
    once = table(film=0.5)
    again = once.table.assign(fold=once.table["fold"] + 100)
    twice = Predictions(pd.concat([once.table, again], ignore_index=True))
    assert width(twice) == pytest.approx(width(once), rel=1e-9)


def test_every_row_has_its_intervals_and_chance_levels():
    result = summarise(table(film=0.5)).set_index("metric")
    for row in result.to_dict(orient="index").values():
        assert 0 <= row["pooled_low"] < row["pooled"] < row["pooled_high"] <= 1
        assert 0 <= row["movie_low"] < row["movie_mean"] < row["movie_high"] <= 1
    assert (result["across_models"] == result.index.isin(["average_precision", "auc"])).all()
    assert result.loc["auc", "pooled_chance"] == result.loc["within_movie_auc", "movie_chance"] == 0.5
    assert result.loc["f1_pos", "pooled_chance"] == result.loc["f1_pos", "best_constant"]
    # A film's random ranking does better than its prevalence, by the more the fewer its clips.
    ap = result.loc["average_precision"]
    assert ap["movie_chance"] > ap["pooled_chance"] > ap["prevalence"]


def test_the_interval_of_the_method_is_wider_and_there_is_none_where_thresholds_decide():
    """Folds' thresholds move together: benchmarks/planted/scores.py measures .73 to .95 for these."""
    result = summarise(table(film=0.5)).set_index("metric")
    absent = ["f1_weighted", "f1_macro", "balanced_accuracy"]
    assert result.loc[absent, ["method_low", "method_high"]].isna().all(axis=None)
    rest = result.drop(absent)
    assert (rest["method_low"] < rest["movie_low"]).all()
    assert (rest["movie_high"] < rest["method_high"]).all()


def test_several_seeds_have_the_interval_of_their_mean():
    one = table(film=0.5)
    rng = np.random.default_rng(1)
    shaken = [
        one.table.assign(seed=seed, score=one.table["score"] + 0.3 * rng.normal(size=len(one.table)))
        for seed in range(3)
    ]
    both = Predictions(pd.concat(shaken, ignore_index=True))
    result, each = summarise(both).set_index("metric"), by_seed(both)
    seeds = each[each["metric"] == "auc"]["pooled"]
    assert result.loc["auc", "pooled"] == pytest.approx(seeds.mean())
    assert result.loc["auc", "seed_sd"] == pytest.approx(seeds.std())
    assert result.loc["auc", "pooled_low"] < seeds.min()


def test_perfect_predictions_have_no_interval_rather_than_one_of_width_0():
    perfect = table(film=0.0).table
    result = summarise(Predictions(perfect.assign(score=perfect["label"]))).set_index("metric")
    assert (result["pooled"] == 1).all()
    assert result[["pooled_low", "pooled_high", "movie_low", "method_high"]].isna().all(axis=None)
