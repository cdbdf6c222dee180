"""What is learnt from held-out scores sees no shift between folds, and no movie's own level."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from obygaze_models.prediction.calibration import draw_sigmoids
from obygaze_models.protocol import HeldOut, best_threshold
from obygaze_models.protocol.slope import SlopeLikelihood


def planted(seed, strengths, n_movies=8, n_clips=40):
    """Scores of models that know `strengths` of the label, and movies of different shares of positives."""
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(n_movies), n_clips)
    y = (rng.random(movies.size) < rng.uniform(0.1, 0.6, n_movies)[movies]).astype(np.int64)
    return np.outer(y, strengths) + rng.normal(size=(movies.size, len(strengths))), y, movies


def draws(held_out):
    """Sigmoids of the scores, drawn from their posterior."""
    posterior = SlopeLikelihood.of_scores(held_out).posterior()
    return draw_sigmoids(held_out, posterior, 0.0, n_draws=20, seed=0)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 9), st.lists(st.floats(-50, 50), min_size=8, max_size=8))
def test_shifts_of_movies_change_no_slope_and_zeros_that_follow_them_no_sigmoid(seed, shifts):
    scores, y, movies = planted(seed, (0.6, -0.4))
    shift = np.array(shifts)[movies]
    plain = HeldOut(scores, y, movies, training_means=np.zeros(scores.shape))
    moved = HeldOut(
        scores + shift[:, None], y, movies, training_means=np.zeros(scores.shape) + shift[:, None]
    )
    weights, intercept = plain.fit_weights()
    np.testing.assert_allclose(moved.fit_weights()[0], weights, rtol=1e-4)
    assert moved.fit_weights()[1] == pytest.approx(intercept, abs=1e-3)
    one = HeldOut(scores[:, 0], y, movies, training_means=np.zeros(len(y)))
    shifted = HeldOut(scores[:, 0] + shift, y, movies, training_means=shift)
    np.testing.assert_allclose(draws(shifted), draws(one), atol=1e-5)


@pytest.mark.parametrize("unit", [2.0**-80, 2.0**80])
def test_the_unit_of_scores_changes_no_probability(unit):
    scores, y, movies = planted(0, (0.6, 0.4))
    weights, intercept = HeldOut(scores, y, movies).fit_weights()
    assert HeldOut(unit * scores, y, movies).fit_weights()[0] * unit == pytest.approx(weights)
    assert HeldOut(unit * scores, y, movies).fit_weights()[1] == pytest.approx(intercept)
    drawn = draws(HeldOut(unit * scores[:, 0], y, movies))
    np.testing.assert_allclose(drawn * [unit, 1], draws(HeldOut(scores[:, 0], y, movies)))


def test_a_movie_that_several_models_tested_is_centred_in_each_fold():
    scores, y, movies = planted(0, (1.0,))
    folds = np.arange(len(y)) % 2
    centred = HeldOut(scores[:, 0] + 100 * folds, y, movies, folds).centred()
    for movie in range(8):
        for fold in (0, 1):
            assert centred[(movies == movie) & (folds == fold)].mean() == pytest.approx(0)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 99), st.lists(st.floats(-1, 1), min_size=2, max_size=4))
def test_no_weight_is_below_0_and_without_any_the_best_one_decides_alone(seed, strengths):
    scores, y, movies = planted(seed, strengths, n_clips=15)
    held_out = HeldOut(scores, y, movies)
    weights, intercept = held_out.fit_weights()
    assert (weights >= 0).all()
    assert weights.any()
    centred = held_out.centred()
    rising = centred.T @ y / centred.std(axis=0)
    if rising.max() <= 0:
        assert weights.tolist() == (np.arange(len(strengths)) == rising.argmax()).tolist()
    p = 1 / (1 + np.exp(-(held_out.relative_scores @ weights + intercept)))
    assert p.mean() == pytest.approx(y.mean())


def test_weights_are_those_of_logistic_regression_where_all_are_above_0():
    scores, y, movies = planted(1, (0.8, 0.5))
    z = HeldOut(scores, y, movies).centred()
    spread = z.std(axis=0)
    oracle = LogisticRegression(C=1.0, tol=1e-12).fit(z / spread, y)
    np.testing.assert_allclose(
        HeldOut(scores, y, movies).fit_weights()[0], oracle.coef_[0] / spread, rtol=1e-4
    )


def test_a_threshold_is_of_the_scores_as_they_are():
    scores, y, movies = planted(3, (1.0,))
    assert HeldOut(scores[:, 0], y, movies).threshold() == best_threshold(y, scores[:, 0])
