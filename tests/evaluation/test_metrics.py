"""Metrics equal scikit-learn's where defined, and are NaN, never 0, where the clips don't define them."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as reference

from obygaze_models.evaluation import METRICS, metrics

CLIPS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 1), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])),
    min_size=1,
    max_size=30,
)


def columns(clips):
    labels, called, scores = zip(*clips, strict=True)
    return np.array(labels), np.array(called), np.array(scores)


@given(CLIPS)
def test_metrics_equal_the_reference_or_are_undefined(clips):
    y, called, scores = columns(clips)
    both, f1 = 0 < y.sum() < len(y), partial(reference.f1_score, zero_division=0)
    for function, values, oracle, defined in (
        (metrics.f1_pos, called, partial(f1, average="binary", labels=[1]), y.any()),
        (metrics.f1_macro, called, partial(f1, average="macro", labels=[0, 1]), both),
        (metrics.f1_weighted, called, partial(f1, average="weighted", labels=[0, 1]), both),
        (metrics.balanced_accuracy, called, reference.balanced_accuracy_score, both),
        (metrics.average_precision, scores, reference.average_precision_score, y.any()),
        (metrics.auc, scores, reference.roc_auc_score, both),
    ):
        expected = oracle(y, values) if defined else math.nan
        assert function(y, values) == pytest.approx(expected, nan_ok=True), function


def test_within_movie_auc_ignores_differences_between_movies_and_movies_with_one_class():
    movies = np.array(list("aaaabbbbcc"))
    y = np.array([1, 0, 1, 0, 1, 0, 0, 0, 1, 1])
    scores = np.array([0.9, 0.1, 0.8, 0.2, 100.1, 100.2, 100.3, 100.4, -5, -6])
    assert metrics.within_movie_auc(y, scores, movies) == pytest.approx((1.0 + 0.0) / 2)
    assert math.isnan(metrics.within_movie_auc(y[8:], scores[8:], movies[8:]))


def test_the_chance_level_of_by_movie_ap_is_what_random_rankings_have_on_average():
    rng = np.random.default_rng(0)
    movies = [np.repeat([1, 0], [positives, n - positives]) for positives, n in ((1, 8), (3, 20), (12, 30))]
    draws = [np.mean([metrics.average_precision(y, rng.random(len(y))) for y in movies]) for _ in range(2000)]
    chance = METRICS["average_precision"].chance(movies)
    assert np.mean(draws) == pytest.approx(chance, abs=4 * np.std(draws) / np.sqrt(2000))
    # A model that knows nothing exceeds the prevalence: few clips flatter.
    assert chance > np.mean([y.mean() for y in movies]) + 0.03
    assert METRICS["average_precision"].chance([]) != 0


def test_the_chance_level_of_f1_is_one_constant_for_all_movies():
    movies = [np.array([1, 0, 0, 0]), np.array([1, 1, 1, 0])]
    always = np.mean([metrics.f1_weighted(y, np.ones(4)) for y in movies])
    never = np.mean([metrics.f1_weighted(y, np.zeros(4)) for y in movies])
    assert METRICS["f1_weighted"].chance(movies) == max(always, never)
    assert METRICS["f1_pos"].chance([np.array([1, 0, 0, 0])]) == pytest.approx(2 * 0.25 / 1.25)
    assert METRICS["auc"].chance(movies) == METRICS["balanced_accuracy"].chance(movies) == 0.5
