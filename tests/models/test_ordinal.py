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
    """Features, levels 0 to 3 along one direction, and movies m0 to m7."""
    rng = np.random.default_rng(0)
    movies = np.repeat([f"m{place}" for place in range(8)], 30)
    y = rng.integers(0, 4, movies.size)
    X = rng.normal(size=(movies.size, 6))
    X[:, 2] += 1.5 * y
    return X, y, movies


@pytest.fixture(scope="module")
def ordinal_model(clips):
    """Linear probes of ordered levels, trained on the movies m0 to m5."""
    X, y, movies = clips
    train = movies < "m6"
    return fit_ordinal(BUILTIN_MODELS["linear"], 0, X[train], y[train], n_levels=4, movies=movies[train])


def test_a_planted_order_is_learnt_and_holds_in_movies_not_seen(clips, ordinal_model):
    X, y, movies = clips
    new = movies >= "m6"
    scores = ordinal_model.scores(X[new], movies[new])
    assert ((scores >= 0) & (scores <= 3)).all()
    assert spearman(y[new], scores) > 0.7
    nearest_levels = np.clip(np.floor(scores + 0.5), 0, 3)

    assert quadratic_kappa(y[new], nearest_levels) > 0.6


def test_a_score_is_the_sum_of_the_probabilities_of_being_above_each_level(clips, ordinal_model):
    X, y, movies = clips
    train = movies < "m6"
    assert isinstance(ordinal_model, OrdinalModel)
    expected = np.zeros(len(y))
    for level in range(3):
        is_above = (y[train] > level).astype(np.int64)
        model_of_level = fit(BUILTIN_MODELS["linear"], 0, X[train], is_above, movies=movies[train])
        expected += expit(model_of_level.scores(X, movies))
    np.testing.assert_array_equal(ordinal_model.scores(X, movies), expected)


def test_a_level_that_a_single_movie_has_is_refused(clips):
    """Where that movie is held out, the model of "above level 2" has no positive clip to learn from."""
    X, y, movies = clips
    level_3_in_m1_alone = np.where((y == 3) & (movies != "m1"), 2, y)
    with pytest.raises(ProtocolError, match="no positive clip"):
        fit_ordinal(BUILTIN_MODELS["linear"], 0, X, level_3_in_m1_alone, n_levels=4, movies=movies)


def test_baselines_of_levels_look_at_no_feature(clips):
    X, y, movies = clips
    other_X = -X
    baselines_of_levels = [spec for spec in SPECS if "ordinal" in spec.kinds]
    for spec in baselines_of_levels:
        scores = fit_ordinal(spec, 0, X, y, n_levels=4, movies=movies).scores(X, movies)
        scores_of_other_X = fit_ordinal(spec, 0, other_X, y, n_levels=4, movies=movies).scores(
            other_X, movies
        )
        np.testing.assert_array_equal(scores, scores_of_other_X)


def test_baselines_of_levels_give_the_median_or_draw_at_the_shares_of_training_clips():
    """Of the levels 0, 1, 2 and 3 the middle two are 1 and 2: the lower one is taken."""
    assert MedianLevel().fit(np.zeros((4, 1)), [0, 1, 2, 3]).level_ == 1

    levels = np.repeat([0, 1, 2, 3], [40, 30, 20, 10])
    model = RandomLevel(random_state=3).fit(np.zeros((100, 6)), levels)
    drawn = model.decision_function(np.zeros((20_000, 6))).astype(int)
    assert np.bincount(drawn) / len(drawn) == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=0.02)
