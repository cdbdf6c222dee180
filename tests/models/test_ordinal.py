"""Ordered levels by a ladder of binary models: one a step, and their probabilities summed."""

import numpy as np
import pytest
from scipy.special import expit

from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.metrics import quadratic_kappa, spearman
from obygaze_models.models.baselines import SPECS, MedianLevel, RandomLevel
from obygaze_models.models.fitted import fit
from obygaze_models.models.ordinal import OrdinalModel, fit_ordinal
from obygaze_models.models.registry import BUILTIN_MODELS


@pytest.fixture(scope="module")
def clips():
    """Four levels along one direction, in eight movies."""
    rng = np.random.default_rng(0)
    movies = np.repeat([f"m{place}" for place in range(8)], 30)
    y = rng.integers(0, 4, movies.size)
    X = rng.normal(size=(movies.size, 6))
    X[:, 2] += 1.5 * y
    return X, y, movies


@pytest.fixture(scope="module")
def ladder(clips):
    X, y, movies = clips
    train = movies < "m6"
    return fit_ordinal(BUILTIN_MODELS["linear"], 0, X[train], y[train], n_levels=4, movies=movies[train])


def test_a_planted_order_is_learnt_and_holds_in_movies_not_seen(clips, ladder):
    X, y, movies = clips
    new = movies >= "m6"
    scores = ladder.scores(X[new], movies[new])
    assert ((scores >= 0) & (scores <= 3)).all()
    assert spearman(y[new], scores) > 0.7
    assert quadratic_kappa(y[new], np.clip(np.floor(scores + 0.5), 0, 3)) > 0.6


def test_a_score_is_the_sum_of_the_steps_probabilities_each_a_model_of_its_own(clips, ladder):
    X, y, movies = clips
    train = movies < "m6"
    assert isinstance(ladder, OrdinalModel)
    expected = np.zeros(len(y))
    for step in range(3):
        is_above = (y[train] > step).astype(np.int64)
        model_of_step = fit(BUILTIN_MODELS["linear"], 0, X[train], is_above, movies=movies[train])
        expected += expit(model_of_step.scores(X, movies))
    np.testing.assert_array_equal(ladder.scores(X, movies), expected)


def test_a_level_that_no_other_movie_has_is_refused(clips):
    X, y, movies = clips
    rare = np.where((y == 3) & (movies != "m1"), 2, y)
    with pytest.raises(ProtocolError, match="no positive clip"):
        fit_ordinal(BUILTIN_MODELS["linear"], 0, X, rare, n_levels=4, movies=movies)


def test_baselines_of_levels_look_at_no_feature(clips):
    X, y, movies = clips
    for spec in SPECS:
        if "ordinal" in spec.kinds:
            scores = fit_ordinal(spec, 0, X, y, n_levels=4, movies=movies).scores(X, movies)
            scores_of_others = fit_ordinal(spec, 0, -X, y, n_levels=4, movies=movies).scores(-X, movies)
            np.testing.assert_array_equal(scores, scores_of_others)


def test_the_median_level_is_the_lower_of_two():
    assert MedianLevel().fit(np.zeros((4, 1)), [0, 1, 2, 3]).level_ == 1


def test_random_levels_are_drawn_at_the_shares_of_training_clips(clips):
    X, y, _ = clips
    levels = RandomLevel(random_state=3).fit(X, y).decision_function(np.zeros((20_000, 6)))
    assert levels.mean() == pytest.approx(y.mean(), abs=0.05)
    assert set(levels) == {0, 1, 2, 3}
