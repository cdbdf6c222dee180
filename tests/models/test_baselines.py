"""Baselines look at no feature, and their numbers are those of the formulas."""

import numpy as np
import pandas as pd
import pytest

from obygaze_models.evaluation.metrics import auc, average_precision, f1_pos, f1_weighted, within_movie_auc
from obygaze_models.models import AlwaysNegative, AlwaysPositive, MoviePrior, RandomGuess

N = 20_000
RNG = np.random.default_rng(0)
NO_FEATURES = np.zeros((N, 2))
MOVIES = RNG.integers(0, 10, N)
SHARE_OF_POSITIVES = 0.23
Y = (RNG.random(N) < SHARE_OF_POSITIVES).astype(np.int64)


def test_always_positive_has_the_f1_of_the_share_of_positive_clips():
    """It has the share p of positive clips as precision and a recall of 1, so that F1 is 2 p / (1 + p).

    Of 20,000 clips about 23 % are positive.
    """
    p = Y.mean()

    calls = AlwaysPositive().fit(NO_FEATURES, Y).predict(NO_FEATURES)

    assert f1_pos(Y, calls) == pytest.approx(2 * p / (1 + p))


def test_always_negative_has_an_f1_of_0_and_a_high_weighted_f1():
    """The weighted F1 counts the larger class more, and a model of positive clips has to beat it."""
    calls = AlwaysNegative().fit(NO_FEATURES, Y).predict(NO_FEATURES)

    assert f1_pos(Y, calls) == 0
    assert f1_weighted(Y, calls) > 0.6


@pytest.mark.parametrize(("probability", "share"), [(None, SHARE_OF_POSITIVES), (0.5, 0.5), (0, 0), (1, 1)])
def test_a_random_guess_calls_its_probability_of_clips_positive_or_the_share_of_positives(probability, share):
    """Without a probability (None) it takes the share of positive training clips, here .23."""
    model = RandomGuess(probability).fit(NO_FEATURES, Y)

    calls = model.predict(NO_FEATURES)
    scores = model.decision_function(NO_FEATURES)

    assert calls.mean() == pytest.approx(share, abs=0.01)
    assert auc(Y, scores) == pytest.approx(0.5, abs=0.02)


@pytest.fixture
def prior_of_two_movies():
    """A movie prior of two movies: of a 3 of 4 clips are positive, and of b none of 4."""
    movies = ["a", "a", "a", "a", "b", "b", "b", "b"]
    y = np.array([1, 1, 1, 0, 0, 0, 0, 0])
    return MoviePrior().fit(np.zeros((8, 1)), y, groups=movies)


def test_movie_prior_scores_a_seen_movie_by_its_own_share_and_an_unseen_one_by_that_of_all(
    prior_of_two_movies,
):
    """Of movie a 3 of 4 training clips are positive, of b none of 4, and of all 3 of 8."""
    three_clips = np.zeros((3, 1))

    scores = prior_of_two_movies.decision_function(three_clips, groups=["a", "b", "new"])
    scores_without_movies = prior_of_two_movies.decision_function(three_clips)

    assert scores.tolist() == [3 / 4, 0, 3 / 8]
    assert scores_without_movies.tolist() == [3 / 8, 3 / 8, 3 / 8]


def test_movie_prior_calls_a_movie_positive_if_its_share_reaches_that_of_all_clips(prior_of_two_movies):
    """That of movie a is 3/4, of b 0, and of a new one 3/8, as of all."""
    three_clips = np.zeros((3, 1))

    calls = prior_of_two_movies.predict(three_clips, groups=["a", "b", "new"])

    assert calls.tolist() == [1, 0, 1]


def labels_whose_share_rises_from_movie_to_movie():
    """Draw labels of the clips of MOVIES, from .05 positive in movie 0 to .6 in movie 9."""
    shares = np.linspace(0.05, 0.6, 10)
    return (np.random.default_rng(1).random(N) < shares[MOVIES]).astype(np.int64)


def test_movie_prior_is_below_chance_in_unseen_movies():
    """Each of ten movies is scored by a prior of the others, the same score for all its clips.

    A movie rich in positives leaves fewer to train on: pooling turns that into an AUC below one half.
    """
    y = labels_whose_share_rises_from_movie_to_movie()

    scores = np.empty(N)
    for movie in range(10):
        held_out = movie == MOVIES
        prior = MoviePrior().fit(NO_FEATURES[~held_out], y[~held_out], groups=MOVIES[~held_out])
        scores[held_out] = prior.decision_function(NO_FEATURES[held_out], groups=MOVIES[held_out])

    assert within_movie_auc(y, scores, MOVIES) == 0.5
    assert auc(y, scores) < 0.4


def test_movie_prior_is_worth_a_lot_in_seen_movies():
    """A model that was trained on clips of the same film profits from knowing the film alone."""
    y = labels_whose_share_rises_from_movie_to_movie()

    prior = MoviePrior().fit(NO_FEATURES, y, groups=MOVIES)
    scores = prior.decision_function(NO_FEATURES, groups=MOVIES)

    assert auc(y, scores) > 0.7
    assert average_precision(y, scores) > y.mean() + 0.1


@pytest.mark.parametrize(("name", "expected"), [("EN_S", 0.76), ("HN_S", 0.68), ("ENHN_S", 0.71)])
def test_the_released_folds_let_the_movie_alone_be_recognised(shared_data, name, expected):
    """In the released folds of ObyGaze12, clips of a movie are on both sides.

    So a model that sees the movie's id and nothing else has a mean AUC over the ten folds far above .5.
    """
    path = shared_data / "obygaze12" / "balanced_level" / f"02_{name}.csv"
    clips = pd.read_csv(path, sep=";")
    y = clips["label"].astype(str).isin(["Sure", "S"]).to_numpy(int)
    movies = clips["movie"].to_numpy()
    no_features = np.zeros((len(y), 1))

    aucs = []
    for fold in range(10):
        is_tested = clips["fold"].to_numpy() == fold
        prior = MoviePrior().fit(no_features[~is_tested], y[~is_tested], groups=movies[~is_tested])
        scores = prior.decision_function(no_features[is_tested], groups=movies[is_tested])
        aucs.append(auc(y[is_tested], scores))

    assert np.mean(aucs) == pytest.approx(expected, abs=0.005)
