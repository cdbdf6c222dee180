"""What is learnt from held-out scores sees no shift between folds, and no movie's own level."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from obygaze_models.prediction.calibration import draw_sigmoids
from obygaze_models.protocol import HeldOut, best_threshold
from obygaze_models.protocol.slope import SlopeLikelihood


def scores_labels_and_movies(seed, strengths, n_movies=8, n_clips=40):
    """Draw scores [N, M] of M models, which `strengths` move by the label, labels, and movies.

    The share of positive clips differs from movie to movie.
    """
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(n_movies), n_clips)
    y = (rng.random(movies.size) < rng.uniform(0.1, 0.6, n_movies)[movies]).astype(np.int64)
    return np.outer(y, strengths) + rng.normal(size=(movies.size, len(strengths))), y, movies


def drawn_sigmoids(held_out):
    """Draw twenty sigmoids of the scores from their posterior: slope and intercept of each, [20, 2]."""
    posterior = SlopeLikelihood.of_scores(held_out).posterior()
    return draw_sigmoids(held_out, posterior, 0.0, n_draws=20, seed=0)


SHIFT_OF_EACH_MOVIE = st.lists(st.floats(-50, 50), min_size=8, max_size=8)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 9), SHIFT_OF_EACH_MOVIE)
def test_nothing_changes_where_the_scores_and_training_means_of_a_movie_are_shifted(seed, shifts):
    """Each movie was scored by a model of its own, whose scores may have another zero than the others'."""
    scores, y, movies = scores_labels_and_movies(seed, (0.6, -0.4))
    shift = np.array(shifts)[movies][:, None]
    zeros = np.zeros(scores.shape)
    of_both = HeldOut(scores, y, movies, training_means=zeros)
    shifted = HeldOut(scores + shift, y, movies, training_means=zeros + shift)

    weights, intercept = of_both.fit_weights()
    weights_of_shifted, intercept_of_shifted = shifted.fit_weights()

    np.testing.assert_allclose(weights_of_shifted, weights, rtol=1e-4)
    assert intercept_of_shifted == pytest.approx(intercept, abs=1e-3)


@pytest.mark.long
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 9), SHIFT_OF_EACH_MOVIE)
def test_sigmoids_do_not_change_where_the_scores_and_training_means_of_a_movie_are_shifted(seed, shifts):
    scores, y, movies = scores_labels_and_movies(seed, (0.6,))
    shift = np.array(shifts)[movies]
    as_they_are = HeldOut(scores[:, 0], y, movies, training_means=np.zeros(len(y)))
    shifted = HeldOut(scores[:, 0] + shift, y, movies, training_means=shift)
    np.testing.assert_allclose(drawn_sigmoids(shifted), drawn_sigmoids(as_they_are), atol=1e-5)


@pytest.mark.parametrize("unit", [2.0**-80, 2.0**80])
def test_scores_in_another_unit_have_weights_and_slopes_that_are_smaller_by_this_unit(unit):
    scores, y, movies = scores_labels_and_movies(0, (0.6, 0.4))
    weights, intercept = HeldOut(scores, y, movies).fit_weights()
    weights_in_unit, intercept_in_unit = HeldOut(unit * scores, y, movies).fit_weights()
    assert weights_in_unit * unit == pytest.approx(weights)
    assert intercept_in_unit == pytest.approx(intercept)

    slopes, intercepts = drawn_sigmoids(HeldOut(scores[:, 0], y, movies)).T
    slopes_in_unit, intercepts_in_unit = drawn_sigmoids(HeldOut(unit * scores[:, 0], y, movies)).T
    np.testing.assert_allclose(slopes_in_unit * unit, slopes)
    np.testing.assert_allclose(intercepts_in_unit, intercepts)


def test_scores_of_a_movie_that_was_tested_in_two_folds_are_centred_in_each_of_them():
    scores, y, movies = scores_labels_and_movies(0, (1.0,))
    folds = np.arange(len(y)) % 2
    centred = HeldOut(scores[:, 0] + 100 * folds, y, movies, folds).centred()
    for movie in range(8):
        for fold in (0, 1):
            assert centred[(movies == movie) & (folds == fold)].mean() == pytest.approx(0)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 99), st.lists(st.floats(-1, 1), min_size=2, max_size=4))
def test_weights_are_not_negative_and_give_probabilities_whose_mean_is_the_share_of_positives(
    seed, strengths
):
    scores, y, movies = scores_labels_and_movies(seed, strengths, n_clips=15)
    held_out = HeldOut(scores, y, movies)
    weights, intercept = held_out.fit_weights()
    assert (weights >= 0).all()
    assert weights.any()
    probabilities = expit(held_out.relative_scores @ weights + intercept)
    assert probabilities.mean() == pytest.approx(y.mean())


def test_where_the_scores_of_all_models_fall_with_the_label_the_least_bad_model_decides_alone():
    scores, y, movies = scores_labels_and_movies(0, (-1.0, -0.3, -2.0))
    weights, _ = HeldOut(scores, y, movies).fit_weights()
    assert weights.tolist() == [0, 1, 0]


def test_weights_are_those_of_logistic_regression_where_these_are_positive():
    scores, y, movies = scores_labels_and_movies(1, (0.8, 0.5))
    held_out = HeldOut(scores, y, movies)
    deviations = held_out.centred().std(axis=0)
    regression = LogisticRegression(C=1.0, tol=1e-12).fit(held_out.centred() / deviations, y)
    expected = regression.coef_[0] / deviations
    assert (expected > 0).all()
    np.testing.assert_allclose(held_out.fit_weights()[0], expected, rtol=1e-4)


def test_the_threshold_is_chosen_for_the_scores_without_centring():
    scores, y, movies = scores_labels_and_movies(3, (1.0,))
    assert HeldOut(scores[:, 0], y, movies).threshold() == best_threshold(y, scores[:, 0])
