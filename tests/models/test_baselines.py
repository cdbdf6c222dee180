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


def test_constant_calls_have_the_f1_of_the_formulas():
    """Always positive has the share p of positive clips as precision and a recall of 1.

    Always negative has a high weighted F1, which a model of positive clips has to beat.
    """
    p = Y.mean()
    assert f1_pos(Y, AlwaysPositive().fit(X, Y).predict(X)) == pytest.approx(2 * p / (1 + p))
    always_negative = AlwaysNegative().fit(X, Y).predict(X)
    assert f1_pos(Y, always_negative) == 0
    assert f1_weighted(Y, always_negative) > 0.6


@pytest.mark.parametrize(("probability", "share"), [(None, SHARE_OF_POSITIVES), (0.5, 0.5), (0, 0), (1, 1)])
def test_a_random_guess_calls_its_probability_of_clips_positive_or_the_share_of_positives(probability, share):
    model = RandomGuess(probability).fit(X, Y)
    assert model.predict(X).mean() == pytest.approx(share, abs=0.01)
    assert auc(Y, model.decision_function(X)) == pytest.approx(0.5, abs=0.02)


def test_movie_prior_scores_a_seen_movie_by_its_own_share_and_an_unseen_one_by_that_of_all():
    movies = np.array(["a", "a", "a", "a", "b", "b", "b", "b"])
    y = np.array([1, 1, 1, 0, 0, 0, 0, 0])
    model = MoviePrior().fit(np.zeros((8, 1)), y, groups=movies)
    new_clips = np.zeros((3, 1))
    assert model.decision_function(new_clips, groups=["a", "b", "new"]).tolist() == [3 / 4, 0, 3 / 8]
    assert model.decision_function(new_clips).tolist() == [3 / 8, 3 / 8, 3 / 8]
    # A movie is called positive if its share reaches that of all training clips.
    assert model.predict(new_clips, groups=["a", "b", "new"]).tolist() == [1, 0, 1]


def test_movie_prior_is_below_chance_in_unseen_movies_and_worth_a_lot_in_seen_ones():
    """The share of positives rises from movie to movie.

    A model that was trained on other clips of the same film profits from knowing the film alone.
    """
    shares = np.linspace(0.05, 0.6, 10)
    y = (np.random.default_rng(1).random(N) < shares[MOVIES]).astype(np.int64)

    scores_unseen = np.empty(N)
    for movie in range(10):
        held_out = movie == MOVIES
        model = MoviePrior().fit(X[~held_out], y[~held_out], groups=MOVIES[~held_out])
        scores_unseen[held_out] = model.decision_function(X[held_out], groups=MOVIES[held_out])
    assert within_movie_auc(y, scores_unseen, MOVIES) == 0.5
    # A movie rich in positives leaves fewer to train on: pooling turns that into an AUC below one half.
    assert auc(y, scores_unseen) < 0.4

    scores_seen = MoviePrior().fit(X, y, groups=MOVIES).decision_function(X, groups=MOVIES)
    assert auc(y, scores_seen) > 0.7
    assert average_precision(y, scores_seen) > y.mean() + 0.1


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
