"""Annotators' confusions: found with the model nearly as well as with true labels."""

import numpy as np
import pytest

from obygaze_models.evaluation.experts import annotators_noise
from obygaze_models.protocol.targets import NOT_ASKED

SKILLS = np.linspace(0.5, 0.9, 5)


def world(seed, n=300, apart=2.0, size=16, skills=SKILLS):
    """Plant clips of ten films whose first feature tells the label, and annotators of some skills.

    A skill is the probability that an annotator's call is right, whatever the label. The first feature of
    positive clips, 40 % of all, is higher by `apart` standard deviations.
    """
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    X = rng.normal(size=(n, size))
    X[:, 0] += apart * y
    is_right = rng.random((len(skills), n)) < skills[:, None]
    calls = np.where(is_right, y, ~y).astype(np.int64)
    movies = np.array([f"f{film}" for film in np.arange(n) * 10 // n])
    return y, X, movies, calls


def error_of(skills):
    """Compute the mean absolute error of estimated skills [annotator, label]."""
    return np.abs(skills - SKILLS[:, None]).mean()


def test_five_annotators_are_told_apart_nearly_as_well_as_with_labels_and_features_help():
    errors_by_labels = []
    errors_by_features = []
    errors_by_calls_alone = []
    for seed in range(6):
        y, X, movies, calls = world(seed)
        shares_right = [((of_one == 0)[~y].mean(), (of_one == 1)[y].mean()) for of_one in calls]
        by_features, _ = annotators_noise(calls, movies, X)
        by_calls_alone, _ = annotators_noise(calls, movies)
        errors_by_labels.append(error_of(np.array(shares_right)))
        errors_by_features.append(error_of(by_features))
        errors_by_calls_alone.append(error_of(by_calls_alone))
    assert np.mean(errors_by_features) < 1.4 * np.mean(errors_by_labels)
    assert np.mean(errors_by_features) < np.mean(errors_by_calls_alone)


def test_two_annotators_are_told_apart_by_features_alone():
    skills = np.array([0.6, 0.9])
    y, X, movies, calls = world(0, n=1200, apart=3.0, skills=skills)
    right, positive = annotators_noise(calls, movies, X)
    assert right == pytest.approx(np.repeat(skills[:, None], 2, axis=1), abs=0.05)
    assert np.mean((positive > 0.5) == y) > 0.93


def test_clips_that_few_judged_and_features_that_are_absent_count_as_far_as_they_go():
    y, X, movies, calls = world(1, n=600)
    calls[:, ::3] = NOT_ASKED
    calls[0, 1::3] = NOT_ASKED
    X[::4] = np.nan
    right, positive = annotators_noise(calls, movies, X)
    assert np.isfinite(positive).all()
    assert error_of(right) < 0.06
    assert np.mean((positive > 0.5) == y) > 0.85


def test_many_features_that_know_nothing_add_nothing():
    _, X, movies, calls = world(2, apart=0.0, size=400)
    by_features, _ = annotators_noise(calls, movies, X)
    by_calls_alone, _ = annotators_noise(calls, movies)
    assert by_features == pytest.approx(by_calls_alone, abs=0.04)


def test_features_of_a_single_film_that_know_nothing_add_nothing():
    y, X, movies, calls = world(2, apart=0.0, size=400)
    in_one_film, _ = annotators_noise(calls, np.full(len(y), "f"), X)
    by_calls_alone, _ = annotators_noise(calls, movies)
    assert in_one_film == pytest.approx(by_calls_alone, abs=0.05)
