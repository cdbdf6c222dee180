"""Effects of what is in a clip on a model's errors: planted ones are found, and the fit is scikit-learn's.

`error_factors` fits a logistic regression of whether a model calls a clip wrongly. Its factors are what is in
the clip, such as a concept; films may differ in how many errors they have.
"""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tests.lazy_import import lazy_import

figure6 = lazy_import("obygaze_studies.obygaze12.figure6")
error_factors = lazy_import("obygaze_studies.obygaze12.figure6", "error_factors")


PLANTED, WITHOUT_EFFECT, CONSTANT = 0, 1, 2


def test_a_planted_effect_on_errors_is_found_beside_factors_without_effect_and_a_constant_one():
    """A model's errors on 60 clips of each of 12 films are drawn; films differ in how many they have.

    Of three factors of a clip, one adds 2 to the log odds of an error, one adds nothing, and one is in all
    clips, so that its effect can't be told.
    """
    planted_effect = 2.0
    rng = np.random.default_rng(0)
    film = np.repeat(np.arange(12), 60)
    factors = (rng.random((film.size, 3)) < 0.4).astype(float)
    factors[:, CONSTANT] = 1.0
    log_odds_of_films = rng.normal(size=12) - 1.5
    log_odds = planted_effect * factors[:, PLANTED] + log_odds_of_films[film]
    errors = rng.random(film.size) < expit(log_odds)

    result = error_factors(factors, errors, film.astype(str))

    assert 1 < result.low[PLANTED] < planted_effect < result.high[PLANTED]
    assert result.p_holm[PLANTED] < 0.001
    assert result.low[WITHOUT_EFFECT] < 0 < result.high[WITHOUT_EFFECT]
    assert result.p[WITHOUT_EFFECT] > 0.05
    assert result.loc[CONSTANT, ["effect", "low", "p", "p_holm"]].isna().all()


def test_effects_on_errors_are_the_coefficients_of_scikit_learns_regression():
    """Whether a model calls a clip wrongly depends on two factors of the clip and on its film, of three.

    The regression has a coefficient for each factor, its effect, and one for each film. Our normal prior of
    coefficients, with deviation `PRIOR_SD`, is a penalty with C = `PRIOR_SD`^2 in scikit-learn.
    """
    rng = np.random.default_rng(1)
    movies = np.repeat(["a", "b", "c"], 80)
    factors = (rng.random((240, 2)) < 0.5).astype(float)
    log_odds = factors[:, 0] - 1
    errors = rng.random(240) < expit(log_odds)

    ours = error_factors(factors, errors, movies)

    is_of_movie = movies[:, None] == np.array(["a", "b", "c"])
    model = LogisticRegression(C=figure6.PRIOR_SD**2, fit_intercept=False, tol=1e-10, max_iter=1000)
    model.fit(np.column_stack([factors, is_of_movie]), errors)
    coefficients_of_factors = model.coef_[0, :2]
    np.testing.assert_allclose(ours.effect, coefficients_of_factors, atol=1e-6)


def test_a_factor_of_errors_in_one_film_has_an_effect_and_no_interval():
    """A model's errors on 50 clips of a film are explained by one factor of the clips.

    Intervals say how effects vary from film to film, of which one film tells nothing.
    """
    rng = np.random.default_rng(2)
    factors = (rng.random((50, 1)) < 0.5).astype(float)
    errors = rng.random(50) < 0.4

    result = error_factors(factors, errors, np.full(50, "a"))

    (effect,) = result.effect
    assert np.isfinite(effect)
    assert np.isnan([result.low[0], result.high[0], result.p[0]]).all()


def effects_with_rare(rare, n_rare):
    """Explain the calls of 30 clips of three films, of which so many are errors, or are correct.

    The factor is in every second clip (1, 3, 5, ...), and the rare clips are among these, in all films.
    """
    factors = np.tile([[0.0], [1.0]], (15, 1))
    clips_with_the_factor = [1, 3, 11, 13, 21]
    is_rare = np.isin(np.arange(30), clips_with_the_factor[:n_rare])
    errors = is_rare if rare == "errors" else ~is_rare
    return error_factors(factors, errors, np.repeat(["a", "b", "c"], 10))


@pytest.mark.parametrize("n_rare", [0, 1, 4])
@pytest.mark.parametrize("rare", ["errors", "correct calls"])
def test_with_fewer_than_five_errors_or_correct_calls_all_effects_are_undefined(n_rare, rare):
    """The prior would give effects all the same, with narrow intervals, which say nothing of the clips."""
    result = effects_with_rare(rare, n_rare)

    assert result.isna().all(axis=None)


@pytest.mark.parametrize("rare", ["errors", "correct calls"])
def test_with_five_errors_or_correct_calls_effects_are_defined(rare):
    result = effects_with_rare(rare, n_rare=5)

    assert np.isfinite(result.effect).all()


@pytest.mark.parametrize(
    ("weight_of_success", "text"),
    [(0.5, "-0.50"), (-0.5, "+0.50"), (0.001, "+0.00")],
    ids=["for success, against errors", "against success, for errors", "rounded to 0, without a minus"],
)
def test_figure_6_writes_the_weight_of_a_factor_for_errors_with_the_opposite_sign_of_that_for_success(
    weight_of_success, text
):
    """The fit has weights by which a factor, such as a concept in the clip, makes the model's call correct.

    The table of Figure 6 has a column for each factor, which says how much it makes errors more frequent.
    """
    write_cell = {heading: write for heading, _key, write in figure6.WEIGHTS}
    first_factor = figure6.FACTORS[0]

    assert write_cell[first_factor](weight_of_success) == text
