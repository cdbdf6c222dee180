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
    movies = np.repeat([f"m{index}" for index in range(8)], 30)
    y = rng.integers(0, 4, movies.size)
    X = rng.normal(size=(movies.size, 6))
    X[:, 2] += 1.5 * y
    return X, y, movies


@pytest.fixture(scope="module")
def ordinal_model(clips):
    """Linear probes of ordered levels, trained on the movies m0 to m5."""
    X, y, movies = clips
    train = movies < "m6"
    return fit_ordinal(
        BUILTIN_MODELS["linear"], seed=0, X=X[train], y=y[train], n_levels=4, movies=movies[train]
    )


def test_a_planted_order_is_learnt_and_holds_in_movies_not_seen(clips, ordinal_model):
    """Levels 0 to 3 lie along one direction. The model was trained on m0 to m5, and m6 and m7 are new.

    A score lies between the lowest level and the highest, and is rounded to the nearest level.
    """
    X, levels, movies = clips
    is_new = movies >= "m6"

    scores = ordinal_model.scores(X[is_new], movies[is_new])

    assert ((scores >= 0) & (scores <= 3)).all()
    assert spearman(levels[is_new], scores) > 0.7
    nearest_levels = np.clip(np.floor(scores + 0.5), 0, 3)
    assert quadratic_kappa(levels[is_new], nearest_levels) > 0.6


def test_a_score_is_the_sum_of_the_probabilities_of_being_above_each_level(clips, ordinal_model):
    """For each of the levels 0, 1 and 2 there is a linear model of whether a clip is above it.

    The model was trained on the movies m0 to m5.
    """
    X, levels, movies = clips
    train = movies < "m6"
    assert isinstance(ordinal_model, OrdinalModel)
    expected = np.zeros(len(levels))
    for level in (0, 1, 2):
        is_above = (levels[train] > level).astype(np.int64)
        model_of_level = fit(BUILTIN_MODELS["linear"], seed=0, X=X[train], y=is_above, movies=movies[train])
        expected += expit(model_of_level.scores(X, movies))

    scores = ordinal_model.scores(X, movies)

    np.testing.assert_array_equal(scores, expected)


def test_a_level_that_a_single_movie_has_is_refused(clips):
    """Level 3 is in m1 alone: other clips of level 3 get level 2.

    Where m1 is held out, the model of "above level 2" has no positive clip to learn from.
    """
    X, levels, movies = clips
    is_3_elsewhere = (levels == 3) & (movies != "m1")
    changed_levels = np.where(is_3_elsewhere, 2, levels)

    with pytest.raises(ProtocolError, match="no positive clip"):
        fit_ordinal(BUILTIN_MODELS["linear"], seed=0, X=X, y=changed_levels, n_levels=4, movies=movies)


BASELINES_OF_LEVELS = [spec for spec in SPECS if "ordinal" in spec.kinds]


@pytest.mark.parametrize("spec", BASELINES_OF_LEVELS, ids=lambda spec: spec.name)
def test_baselines_of_levels_look_at_no_feature(clips, spec):
    """Features of the opposite sign give the same scores."""
    X, levels, movies = clips

    model = fit_ordinal(spec, seed=0, X=X, y=levels, n_levels=4, movies=movies)
    model_of_other_features = fit_ordinal(spec, seed=0, X=-X, y=levels, n_levels=4, movies=movies)

    scores = model.scores(X, movies)
    scores_of_other_features = model_of_other_features.scores(-X, movies)
    np.testing.assert_array_equal(scores, scores_of_other_features)


def test_there_are_baselines_of_levels():
    """Tests with a case for each baseline of levels would be skipped if there were none."""
    assert BASELINES_OF_LEVELS


def test_a_baseline_of_levels_gives_the_lower_median_of_training_clips():
    """Of the levels 0, 1, 2 and 3 the middle two are 1 and 2: the lower one is taken."""
    no_features = np.zeros((4, 1))

    model = MedianLevel().fit(no_features, [0, 1, 2, 3])

    assert model.level_ == 1


def test_a_baseline_of_levels_draws_at_the_shares_of_training_clips():
    """Of 100 training clips, 40 have level 0, 30 level 1, 20 level 2 and 10 level 3."""
    levels = [0] * 40 + [1] * 30 + [2] * 20 + [3] * 10
    model = RandomLevel(random_state=3).fit(np.zeros((100, 6)), levels)

    drawn_levels = model.decision_function(np.zeros((20_000, 6))).astype(int)

    shares = np.bincount(drawn_levels) / 20_000
    assert shares == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=0.02)
