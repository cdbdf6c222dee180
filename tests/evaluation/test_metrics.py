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


def labels_calls_and_scores(clips):
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
    """A metric such as F1 compares labels, 0 or 1, with the classes that a model calls the clips.

    Without a clip of a label that the metric needs it is NaN, where scikit-learn gives 0 or a warning.
    """
    labels, called, _ = labels_calls_and_scores(clips)

    value = metric(labels, called)

    if needed_labels <= set(labels):
        assert value == pytest.approx(expected_metric(labels, called))
    else:
        assert math.isnan(value)


@pytest.mark.parametrize(
    ("metric", "expected_metric", "needed_labels"),
    [
        (metrics.average_precision, reference.average_precision_score, {1}),
        (metrics.auc, reference.roc_auc_score, {0, 1}),
    ],
)
@given(clips=CLIPS)
def test_metrics_of_rankings_are_scikit_learns_or_undefined(metric, expected_metric, needed_labels, clips):
    """A metric such as AUC asks whether positive clips (label 1) have higher scores than negative ones (0).

    Without a clip of a label that the metric needs it is NaN.
    """
    labels, _, scores = labels_calls_and_scores(clips)

    value = metric(labels, scores)

    if needed_labels <= set(labels):
        assert value == pytest.approx(expected_metric(labels, scores))
    else:
        assert math.isnan(value)


def test_within_movie_auc_ignores_differences_between_movies_and_movies_with_one_class():
    """Movie a's clips are in the right order (AUC 1), and b's in the wrong one (AUC 0): the mean is .5.

    All scores of b are far above those of a, which does not matter. c has positive clips only.
    """
    movies = np.array(["a", "a", "a", "a", "b", "b", "b", "b", "c", "c"])
    labels = np.array([1, 0, 1, 0, 1, 0, 0, 0, 1, 1])
    scores = np.array([0.9, 0.1, 0.8, 0.2, 100.1, 100.2, 100.3, 100.4, -5, -6])

    assert metrics.within_movie_auc(labels, scores, movies) == pytest.approx(0.5)


def test_within_movie_auc_is_nan_if_every_movie_has_one_class():
    """The only movie, c, has two positive clips and no negative one, so that there is no pair to rank."""
    labels = np.array([1, 1])
    scores = np.array([-5, -6])
    movies = np.array(["c", "c"])
    assert math.isnan(metrics.within_movie_auc(labels, scores, movies))


def test_the_chance_level_of_by_movie_ap_is_that_of_random_rankings():
    """Three movies have 1 positive clip of 8, 3 of 20 and 12 of 30.

    Of few clips a random ranking has a higher AP than the share of positive ones, here by more than .03.
    """
    labels_of_movies = [np.repeat([1, 0], [1, 7]), np.repeat([1, 0], [3, 17]), np.repeat([1, 0], [12, 18])]

    chance = METRICS["average_precision"].chance(labels_of_movies)

    rng = np.random.default_rng(0)
    mean_aps = []
    for _ in range(1000):
        aps = []
        for labels in labels_of_movies:
            random_scores = rng.random(len(labels))
            aps.append(metrics.average_precision(labels, random_scores))
        mean_aps.append(np.mean(aps))
    standard_error = np.std(mean_aps) / np.sqrt(1000)
    assert chance == pytest.approx(np.mean(mean_aps), abs=4 * standard_error)
    mean_share_of_positives = np.mean([1 / 8, 3 / 20, 12 / 30])
    assert chance > mean_share_of_positives + 0.03


def test_the_chance_level_of_ap_without_a_movie_is_not_0():
    """Nothing is known of the chance level of no movies, and 0 would be a statement."""
    no_movies = []
    assert np.isnan(METRICS["average_precision"].chance(no_movies))


def test_the_chance_level_of_calls_is_that_of_the_better_constant_call():
    """A constant call is the same, positive or negative, for all clips of both films.

    Of four clips one is positive in the first film, and three in the second one.
    """
    labels_of_movies = [np.array([1, 0, 0, 0]), np.array([1, 1, 1, 0])]
    always_positive = np.mean([metrics.f1_weighted(labels, np.ones(4)) for labels in labels_of_movies])
    always_negative = np.mean([metrics.f1_weighted(labels, np.zeros(4)) for labels in labels_of_movies])

    chance = METRICS["f1_weighted"].chance(labels_of_movies)

    assert chance == max(always_positive, always_negative)


def test_the_chance_level_of_f1_is_that_of_calling_every_clip_positive():
    """One clip of four is positive: then the precision is 1/4, and the recall 1."""
    precision, recall = 1 / 4, 1
    f1 = 2 * precision * recall / (precision + recall)
    assert METRICS["f1_pos"].chance([np.array([1, 0, 0, 0])]) == pytest.approx(f1)


def test_the_chance_level_of_auc_and_of_balanced_accuracy_is_one_half():
    """Whatever the shares of positive clips are, here 1 of 4 and 3 of 4."""
    labels_of_movies = [np.array([1, 0, 0, 0]), np.array([1, 1, 1, 0])]
    assert METRICS["auc"].chance(labels_of_movies) == 0.5
    assert METRICS["balanced_accuracy"].chance(labels_of_movies) == 0.5
