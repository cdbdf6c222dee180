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
    alone = [
        fit(BUILTIN_MODELS["linear"], 0, X[train], (y[train] > step).astype(np.int64), movies=movies[train])
        for step in range(3)
    ]
    expected = sum(expit(step.scores(X, movies)) for step in alone)
    np.testing.assert_array_equal(ladder.scores(X, movies), expected)


def test_a_level_that_no_other_movie_has_is_refused(clips):
    X, y, movies = clips
    rare = np.where((y == 3) & (movies != "m1"), 2, y)
    with pytest.raises(ProtocolError, match="no positive clip"):
        fit_ordinal(BUILTIN_MODELS["linear"], 0, X, rare, n_levels=4, movies=movies)


def test_baselines_of_levels_look_at_no_feature(clips):
    X, y, movies = clips
    for spec in (spec for spec in SPECS if "ordinal" in spec.kinds):
        found = [
            fit_ordinal(spec, 0, given, y, n_levels=4, movies=movies).scores(given, movies)
            for given in (X, -X)
        ]
        np.testing.assert_array_equal(*found)
    assert MedianLevel().fit(X[:4], [0, 1, 2, 3]).level_ == 1
    drawn = RandomLevel(random_state=3).fit(X, y).decision_function(np.zeros((20_000, 6)))
    assert drawn.mean() == pytest.approx(y.mean(), abs=0.05)
    assert set(drawn) == {0, 1, 2, 3}
