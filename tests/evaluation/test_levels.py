"""Metrics of ordered levels: the references' numbers, planted levels found, chance where nothing is known."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score
from sklearn.metrics import mean_absolute_error as reference_error

from obygaze_models.evaluation import LEVEL_METRICS, METRICS, Predictions, summarise
from obygaze_models.evaluation.metrics import mean_absolute_error, quadratic_kappa, spearman
from tests.evaluation.test_compare import rows

CLIPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


@settings(deadline=None)
@given(CLIPS)
def test_metrics_of_levels_equal_the_references_or_are_undefined(clips):
    y, called = (np.array(column) for column in zip(*clips, strict=True))
    kappa = rank = math.nan
    if len(set(y) | set(called)) > 1:
        kappa = cohen_kappa_score(y, called, weights="quadratic", labels=[0, 1, 2, 3])
    if len(set(y)) > 1 and len(set(called)) > 1:
        rank = spearmanr(y, called)[0]
    assert quadratic_kappa(y, called) == pytest.approx(kappa, abs=1e-12, nan_ok=True)
    assert spearman(y, called.astype(float)) == pytest.approx(rank, abs=1e-12, nan_ok=True)
    assert mean_absolute_error(y, called) == pytest.approx(reference_error(y, called))


def test_bounds_are_what_a_metric_reaches():
    for metrics, y in ((METRICS, np.array([0, 1])), (LEVEL_METRICS, np.array([0, 1, 2, 3]))):
        for metric in metrics.values():
            best = metric(y, y.astype(float), y)
            assert best == metric.bounds[1 if metric.higher_is_better else 0], metric.name
            if metric.bounds[0] < 0:
                assert metric(y, -y.astype(float), y[::-1]) == metric.bounds[0]


def summary(noise, seed=0):
    """12 films of 40 clips of four levels, of which each film has its own mix; scores are level + noise."""
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(12), 40)
    y = np.clip(np.round(1.2 + 0.5 * rng.normal(size=12)[movies] + rng.normal(size=480)), 0, 3).astype(int)
    score = 1.2 + rng.normal(size=480) if noise is None else y + noise * rng.normal(size=480)
    predictions = Predictions(rows(0.0, n_clips=40).assign(label=y, score=score), n_classes=4)
    return summarise(predictions, LEVEL_METRICS).set_index("metric"), y, movies


def test_a_planted_model_is_above_chance_with_its_whole_interval():
    result, y, _ = summary(noise=0.6)
    for name in ("quadratic_kappa", "spearman"):
        row = result.loc[name]
        assert row["pooled_chance"] == row["movie_chance"] == 0
        assert 0.5 < row["pooled_low"] < row["pooled"] < row["pooled_high"] < 1
        assert 0.5 < row["movie_low"] < row["movie_mean"] < row["movie_high"] < 1
    assert 0.5 < result.loc["spearman", "method_low"] < result.loc["spearman", "movie_low"]
    assert np.isnan(result.loc["quadratic_kappa", "method_low"])  # it held .60 to .80 with six films
    row = result.loc["mean_absolute_error"]
    assert 0 < row["pooled"] < row["pooled_high"] < row["pooled_chance"]
    assert row["pooled_chance"] == row["best_constant"] == np.mean(np.abs(y - np.median(y)))
    assert np.isnan(row["prevalence"])


def test_a_model_that_knows_nothing_is_at_chance():
    inside = np.zeros(2)
    for seed in range(20):
        result, _, _ = summary(noise=None, seed=seed)
        assert (
            result.loc["mean_absolute_error", "pooled"] > result.loc["mean_absolute_error", "pooled_chance"]
        )
        for place, name in enumerate(("quadratic_kappa", "spearman")):
            inside[place] += result.loc[name, "movie_low"] <= 0 <= result.loc[name, "movie_high"]
    assert (inside >= 16).all()


def test_no_clips_define_nothing():
    nothing = np.array([], dtype=int)
    assert all(math.isnan(metric(nothing, nothing, nothing)) for metric in LEVEL_METRICS.values())
    assert all(math.isnan(metric.chance([])) or metric.chance([]) == 0 for metric in LEVEL_METRICS.values())
