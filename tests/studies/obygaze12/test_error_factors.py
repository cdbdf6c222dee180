"""Effects of what is in a clip on a model's errors: planted ones are found, and the fit is scikit-learn's."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tests.later import later

figure6 = later("obygaze_studies.obygaze12.figure6")
error_factors = later("obygaze_studies.obygaze12.figure6", "error_factors")


PLANTED, WITHOUT_EFFECT, CONSTANT = 0, 1, 2
EFFECT = 2.0


@pytest.fixture(scope="module")
def result():
    """Effects, in log odds, of three factors on errors: a planted one, one without effect and a constant one.

    Films differ in how many errors they have.
    """
    rng = np.random.default_rng(0)
    film = np.repeat(np.arange(12), 60)
    factors = (rng.random((film.size, 3)) < 0.4).astype(float)
    factors[:, CONSTANT] = 1.0
    log_odds = EFFECT * factors[:, PLANTED] - 1.5 + rng.normal(size=12)[film]
    errors = rng.random(film.size) < expit(log_odds)
    return error_factors(factors, errors, film.astype(str))


def test_a_planted_effect_on_errors_is_found_with_its_sign_and_size(result):
    """The planted effect is 2 in log odds."""
    assert 1 < result.low[PLANTED] < EFFECT < result.high[PLANTED]
    assert result.p_holm[PLANTED] < 0.001


def test_a_factor_without_effect_on_errors_is_not_significant(result):
    assert result.low[WITHOUT_EFFECT] < 0 < result.high[WITHOUT_EFFECT]
    assert result.p[WITHOUT_EFFECT] > 0.05


def test_a_factor_that_does_not_vary_has_no_effect_interval_or_p(result):
    assert result.loc[CONSTANT, ["effect", "low", "p", "p_holm"]].isna().all()


def test_error_factors_are_scikit_learns_with_the_same_penalty():
    rng = np.random.default_rng(1)
    movies = np.repeat(["a", "b", "c"], 80)
    factors = (rng.random((240, 2)) < 0.5).astype(float)
    errors = rng.random(240) < 1 / (1 + np.exp(1 - factors[:, 0]))
    design = np.column_stack([factors, movies[:, None] == np.array(["a", "b", "c"])])
    model = LogisticRegression(C=figure6.PRIOR_SD**2, fit_intercept=False, tol=1e-10, max_iter=1000)
    model.fit(design, errors)
    np.testing.assert_allclose(error_factors(factors, errors, movies).effect, model.coef_[0, :2], atol=1e-6)


def test_error_factors_of_one_film_have_effects_and_no_interval():
    rng = np.random.default_rng(2)
    result = error_factors((rng.random((50, 1)) < 0.5).astype(float), rng.random(50) < 0.4, np.full(50, "a"))
    assert np.isfinite(result.effect[0])
    assert np.isnan([result.low[0], result.high[0], result.p[0]]).all()


@pytest.mark.parametrize("n_rare", [0, 1, 4])
@pytest.mark.parametrize("rare", ["errors", "correct calls"])
def test_fewer_than_five_errors_or_correct_calls_have_no_effects(n_rare, rare):
    """Of none, the prior alone would give effects with narrow intervals."""
    rng = np.random.default_rng(3)
    factors = (rng.random((33, 4)) < 0.5).astype(float)
    movies = np.repeat(["a", "b", "c"], 11)
    is_rare = np.isin(np.arange(33), [0, 7, 14, 21][:n_rare])
    errors = is_rare if rare == "errors" else ~is_rare
    assert error_factors(factors, errors, movies).isna().all(axis=None)


def test_five_errors_have_effects():
    factors = np.tile([[0.0], [1.0]], (15, 1))
    errors = np.isin(np.arange(30), [1, 3, 11, 13, 21])
    assert np.isfinite(error_factors(factors, errors, np.repeat(["a", "b", "c"], 10)).effect).all()
