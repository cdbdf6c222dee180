"""Baselines look at no feature, and their numbers are those of the formulas."""

import numpy as np
import pandas as pd
import pytest

from obygaze_models.evaluation.metrics import auc, average_precision, f1_pos, f1_weighted, within_movie_auc
from obygaze_models.models import AlwaysNegative, AlwaysPositive, MoviePrior, RandomGuess

N = 20_000
RNG = np.random.default_rng(0)
X = np.zeros((N, 2))
MOVIES = RNG.integers(0, 10, N)
SHARE_OF_POSITIVES = 0.23
Y = (RNG.random(N) < SHARE_OF_POSITIVES).astype(np.int64)


def test_always_positive_has_f1_pos_2p_over_1_plus_p():
    """Its precision is the share p of positive clips and its recall is 1; F1 is their harmonic mean."""
    predicted = AlwaysPositive().fit(X, Y).predict(X)
    p = Y.mean()
    assert f1_pos(Y, predicted) == pytest.approx(2 * p / (1 + p))


def test_always_negative_has_a_high_weighted_f1_but_an_f1_of_positives_of_0():
    predicted = AlwaysNegative().fit(X, Y).predict(X)
    assert f1_pos(Y, predicted) == 0
    assert f1_weighted(Y, predicted) > 0.6


@pytest.mark.parametrize(("probability", "share"), [(None, SHARE_OF_POSITIVES), (0.5, 0.5), (0, 0), (1, 1)])
def test_a_random_guess_calls_its_probability_of_clips_positive_or_the_share_of_positives(probability, share):
    model = RandomGuess(probability).fit(X, Y)
    assert model.predict(X).mean() == pytest.approx(share, abs=0.01)
    assert auc(Y, model.decision_function(X)) == pytest.approx(0.5, abs=0.02)


def test_movie_prior_scores_a_seen_movie_by_its_own_share():
    movies = np.array(["a", "a", "a", "a", "b", "b", "b", "b"])
    y = np.array([1, 1, 1, 0, 0, 0, 0, 1])
    model = MoviePrior().fit(np.zeros((8, 1)), y, groups=movies)
    assert model.decision_function(np.zeros((2, 1)), groups=["a", "b"]).tolist() == [0.75, 0.25]
    assert model.predict(np.zeros((2, 1)), groups=["a", "b"]).tolist() == [1, 0]


def test_movie_prior_scores_an_unseen_movie_by_the_training_prevalence():
    model = MoviePrior().fit(X, Y, groups=MOVIES)
    assert model.decision_function(X[:3], groups=[99, 98, 97]).tolist() == [Y.mean()] * 3
    assert model.decision_function(X[:3]).tolist() == [Y.mean()] * 3


@pytest.fixture(scope="module")
def labels_of_unlike_movies():
    """Labels whose share of positives rises from movie to movie."""
    shares = np.linspace(0.05, 0.6, 10)
    return (np.random.default_rng(1).random(N) < shares[MOVIES]).astype(np.int64)


def test_movie_prior_is_at_chance_within_and_below_chance_across_movies(
    labels_of_unlike_movies,
):
    y = labels_of_unlike_movies
    scores = np.empty(N)
    for movie in range(10):
        held_out = movie == MOVIES
        model = MoviePrior().fit(X[~held_out], y[~held_out], groups=MOVIES[~held_out])
        scores[held_out] = model.decision_function(X[held_out], groups=MOVIES[held_out])

    assert within_movie_auc(y, scores, MOVIES) == 0.5
    # A movie rich in positives leaves fewer to train on: pooling turns that into an AUC below one half.
    assert auc(y, scores) < 0.4


def test_movie_prior_is_worth_a_lot_where_movies_are_seen(labels_of_unlike_movies):
    """Films differ in their share of positive clips.

    A model that was trained on other clips of the same film profits from knowing the film alone.
    """
    y = labels_of_unlike_movies
    scores = MoviePrior().fit(X, y, groups=MOVIES).decision_function(X, groups=MOVIES)
    assert auc(y, scores) > 0.7
    assert average_precision(y, scores) > y.mean() + 0.1


@pytest.mark.parametrize(("name", "expected"), [("EN_S", 0.76), ("HN_S", 0.68), ("ENHN_S", 0.71)])
def test_the_released_folds_let_the_movie_alone_be_recognised(shared_data, name, expected):
    """Mean AUC over the ten folds of a model that sees the movie's id and nothing else."""
    path = shared_data / "obygaze12" / "balanced_level" / f"02_{name}.csv"
    clips = pd.read_csv(path, sep=";")
    y = clips["label"].astype(str).isin(["Sure", "S"]).to_numpy(int)
    movies = clips["movie"].to_numpy()
    no_features = np.zeros((len(y), 1))
    aucs = []
    for fold in range(10):
        test = clips["fold"].to_numpy() == fold
        model = MoviePrior().fit(no_features[~test], y[~test], groups=movies[~test])
        aucs.append(auc(y[test], model.decision_function(no_features[test], groups=movies[test])))

    assert np.mean(aucs) == pytest.approx(expected, abs=0.005)
