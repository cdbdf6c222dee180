"""Effects of what is in a clip on a model's errors: planted ones are found, and the fit is scikit-learn's."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests.later import later

figure6 = later("obygaze_studies.obygaze12.figure6")
error_factors = later("obygaze_studies.obygaze12.figure6", "error_factors")


def test_error_factors_find_the_planted_one_with_its_sign_and_leave_the_null_one():
    rng = np.random.default_rng(0)
    movies = np.repeat([f"m{movie:02}" for movie in range(12)], 60)
    factors = (rng.random((movies.size, 3)) < 0.4).astype(float)
    factors[:, 2] = 1.0
    shift = rng.normal(size=12)[np.repeat(np.arange(12), 60)]
    errors = rng.random(movies.size) < 1 / (1 + np.exp(1.5 - 2 * factors[:, 0] - shift))
    result = error_factors(factors, errors, movies)
    assert result.low[0] < 2 < result.high[0]
    assert result.low[0] > 1
    assert result.low[1] < 0 < result.high[1]
    assert result.p_holm[0] < 0.001
    assert result.p[1] > 0.05
    assert np.isnan([result.effect[2], result.low[2], result.p[2], result.p_holm[2]]).all()


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


@pytest.mark.parametrize("n_events", [0, 1, 4])
@pytest.mark.parametrize("of_errors", [True, False])
def test_what_hardly_ever_happened_has_no_factors(n_events, of_errors):
    """With no misses at all the prior alone used to make effects with narrow intervals."""
    rng = np.random.default_rng(3)
    factors = (rng.random((33, 4)) < 0.5).astype(float)
    movies = np.repeat(["a", "b", "c"], 11)
    errors = (np.arange(33) % 7 == 0) & (np.arange(33) < 7 * n_events)
    errors = errors if of_errors else ~errors
    result = error_factors(factors, errors, movies)
    assert result.isna().all(axis=None)


def test_five_errors_have_factors():
    factors = np.tile([[0.0], [1.0]], (15, 1))
    errors = np.isin(np.arange(30), [1, 3, 11, 13, 21])
    assert np.isfinite(error_factors(factors, errors, np.repeat(["a", "b", "c"], 10)).effect).all()
