"""Metrics equal scikit-learn's where defined, and are NaN, never 0, where the clips don't define them."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as reference

from obygaze_models.evaluation import METRICS, metrics

# Each clip's label, the class that a model calls it, and its score.
CLIPS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 1), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])),
    min_size=1,
    max_size=30,
)
reference_f1 = partial(reference.f1_score, zero_division=0)


def columns(clips):
    """Return the labels of clips, the classes that they are called, and their scores."""
    labels, called, scores = zip(*clips, strict=True)
    return np.array(labels), np.array(called), np.array(scores)


@pytest.mark.parametrize(
    ("metric", "expected_metric", "needed_labels"),
    [
        (metrics.f1_pos, partial(reference_f1, average="binary", labels=[1]), {1}),
        (metrics.f1_macro, partial(reference_f1, average="macro", labels=[0, 1]), {0, 1}),
        (metrics.f1_weighted, partial(reference_f1, average="weighted", labels=[0, 1]), {0, 1}),
        (metrics.balanced_accuracy, reference.balanced_accuracy_score, {0, 1}),
    ],
)
@given(clips=CLIPS)
def test_metrics_of_calls_are_scikit_learns_or_undefined(metric, expected_metric, needed_labels, clips):
    labels, called, _ = columns(clips)
    is_defined = needed_labels <= {*labels}
    expected = expected_metric(labels, called) if is_defined else math.nan
    assert metric(labels, called) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("metric", "expected_metric", "needed_labels"),
    [
        (metrics.average_precision, reference.average_precision_score, {1}),
        (metrics.auc, reference.roc_auc_score, {0, 1}),
    ],
)
@given(clips=CLIPS)
def test_metrics_of_rankings_are_scikit_learns_or_undefined(metric, expected_metric, needed_labels, clips):
    labels, _, scores = columns(clips)
    is_defined = needed_labels <= {*labels}
    expected = expected_metric(labels, scores) if is_defined else math.nan
    assert metric(labels, scores) == pytest.approx(expected, nan_ok=True)


def test_within_movie_auc_ignores_differences_between_movies_and_movies_with_one_class():
    """Movie a's clips are in the right order, b's in the wrong one, and c has positive clips only."""
    movies = np.array(list("aaaabbbbcc"))
    labels = np.array([1, 0, 1, 0, 1, 0, 0, 0, 1, 1])
    scores = np.array([0.9, 0.1, 0.8, 0.2, 100.1, 100.2, 100.3, 100.4, -5, -6])
    auc_of_a, auc_of_b = 1.0, 0.0
    assert metrics.within_movie_auc(labels, scores, movies) == pytest.approx((auc_of_a + auc_of_b) / 2)
    is_c = movies == "c"
    assert math.isnan(metrics.within_movie_auc(labels[is_c], scores[is_c], movies[is_c]))


def test_the_chance_level_of_by_movie_ap_is_that_of_random_rankings():
    """Three movies have 1 positive clip of 8, 3 of 20 and 12 of 30.

    Of few clips a random ranking has a higher AP than the share of positive ones.
    """
    labels_of_movies = [np.repeat([1, 0], [1, 7]), np.repeat([1, 0], [3, 17]), np.repeat([1, 0], [12, 18])]
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(1000):
        of_movies = [
            metrics.average_precision(labels, rng.random(len(labels))) for labels in labels_of_movies
        ]
        draws.append(np.mean(of_movies))
    standard_error = np.std(draws) / np.sqrt(len(draws))

    chance = METRICS["average_precision"].chance(labels_of_movies)

    assert chance == pytest.approx(np.mean(draws), abs=4 * standard_error)
    assert chance > np.mean([1 / 8, 3 / 20, 12 / 30]) + 0.03
    assert METRICS["average_precision"].chance([]) != 0


def test_the_chance_level_of_calls_is_that_of_the_better_constant_call():
    """The same call, positive or negative, is taken for all films. Any constant has an AUC of one half."""
    labels_of_movies = [np.array([1, 0, 0, 0]), np.array([1, 1, 1, 0])]
    always_positive = np.mean([metrics.f1_weighted(labels, np.ones(4)) for labels in labels_of_movies])
    always_negative = np.mean([metrics.f1_weighted(labels, np.zeros(4)) for labels in labels_of_movies])
    assert METRICS["f1_weighted"].chance(labels_of_movies) == max(always_positive, always_negative)
    assert METRICS["auc"].chance(labels_of_movies) == 0.5
    assert METRICS["balanced_accuracy"].chance(labels_of_movies) == 0.5

    precision, recall = 1 / 4, 1
    expected = 2 * precision * recall / (precision + recall)
    assert METRICS["f1_pos"].chance([np.array([1, 0, 0, 0])]) == pytest.approx(expected)
