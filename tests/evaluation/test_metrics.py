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


def ap_of_random_scores(labels_of_movies, rng):
    """Draw random scores and return the mean of the movies' AP."""
    return np.mean([metrics.average_precision(y, rng.random(len(y))) for y in labels_of_movies])


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


@given(CLIPS)
def test_average_precision_is_scikit_learns_and_undefined_without_a_positive_clip(clips):
    labels, _, scores = columns(clips)
    expected = reference.average_precision_score(labels, scores) if 1 in labels else math.nan
    assert metrics.average_precision(labels, scores) == pytest.approx(expected, nan_ok=True)


@given(CLIPS)
def test_auc_is_scikit_learns_and_undefined_without_clips_of_both_classes(clips):
    labels, _, scores = columns(clips)
    has_both_classes = 0 in labels and 1 in labels
    expected = reference.roc_auc_score(labels, scores) if has_both_classes else math.nan
    assert metrics.auc(labels, scores) == pytest.approx(expected, nan_ok=True)


def test_within_movie_auc_ignores_differences_between_movies_and_movies_with_one_class():
    """Movie a's clips are in the right order, b's in the wrong one, and c has positive clips only."""
    movies = np.array(list("aaaabbbbcc"))
    labels = np.array([1, 0, 1, 0, 1, 0, 0, 0, 1, 1])
    scores = np.array([0.9, 0.1, 0.8, 0.2, 100.1, 100.2, 100.3, 100.4, -5, -6])
    auc_of_a, auc_of_b = 1.0, 0.0
    assert metrics.within_movie_auc(labels, scores, movies) == pytest.approx((auc_of_a + auc_of_b) / 2)


def test_within_movie_auc_is_undefined_where_no_movie_has_both_classes():
    movies = np.array(["c", "c"])
    labels = np.array([1, 1])
    scores = np.array([-5.0, -6.0])
    assert math.isnan(metrics.within_movie_auc(labels, scores, movies))


@pytest.fixture(scope="module")
def labels_of_movies():
    """Labels of three movies, which have 1 positive clip of 8, 3 of 20 and 12 of 30."""
    return [np.repeat([1, 0], [n_positive, n - n_positive]) for n_positive, n in ((1, 8), (3, 20), (12, 30))]


def test_the_chance_level_of_by_movie_ap_is_that_of_random_rankings(labels_of_movies):
    rng = np.random.default_rng(0)
    draws = [ap_of_random_scores(labels_of_movies, rng) for _ in range(2000)]
    standard_error = np.std(draws) / np.sqrt(2000)
    chance = METRICS["average_precision"].chance(labels_of_movies)
    assert chance == pytest.approx(np.mean(draws), abs=4 * standard_error)


def test_the_chance_level_of_by_movie_ap_is_above_the_prevalence(labels_of_movies):
    """Of few clips a random ranking has a higher AP than the share of positive ones."""
    mean_prevalence = np.mean([labels.mean() for labels in labels_of_movies])
    assert METRICS["average_precision"].chance(labels_of_movies) > mean_prevalence + 0.03


def test_the_chance_level_of_ap_without_a_movie_is_not_0():
    assert METRICS["average_precision"].chance([]) != 0


def test_the_chance_level_of_f1_is_that_of_the_better_constant_call():
    """The same call, positive or negative, is taken for all films."""
    labels_of_movies = [np.array([1, 0, 0, 0]), np.array([1, 1, 1, 0])]
    always_positive = np.mean([metrics.f1_weighted(labels, np.ones(4)) for labels in labels_of_movies])
    always_negative = np.mean([metrics.f1_weighted(labels, np.zeros(4)) for labels in labels_of_movies])
    assert METRICS["f1_weighted"].chance(labels_of_movies) == max(always_positive, always_negative)


def test_the_chance_level_of_the_positive_class_f1_is_that_of_always_calling_it():
    precision, recall = 1 / 4, 1
    expected = 2 * precision * recall / (precision + recall)
    assert METRICS["f1_pos"].chance([np.array([1, 0, 0, 0])]) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["auc", "balanced_accuracy"])
def test_the_chance_level_of_auc_and_balanced_accuracy_is_one_half(name):
    labels_of_movies = [np.array([1, 0, 0, 0]), np.array([1, 1, 1, 0])]
    assert METRICS[name].chance(labels_of_movies) == 0.5
