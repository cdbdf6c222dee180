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
    """Draw scores [N, M] of M models, labels, and movies.

    The noise of scores has an SD of 1; positive clips have scores that are higher by a model's strength. The
    share of positive clips differs from movie to movie.
    """
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(n_movies), n_clips)
    y = (rng.random(movies.size) < rng.uniform(0.1, 0.6, n_movies)[movies]).astype(np.int64)
    return np.outer(y, strengths) + rng.normal(size=(movies.size, len(strengths))), y, movies


def drawn_sigmoids(held_out):
    """Draw twenty sigmoids of the scores from their posterior: slope and intercept of each, [20, 2]."""
    posterior = SlopeLikelihood.of_scores(held_out).posterior()
    return draw_sigmoids(held_out, posterior, training_mean=0.0, n_draws=20, seed=0)


SHIFT_OF_EACH_MOVIE = st.lists(st.floats(-50, 50), min_size=8, max_size=8)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 9), SHIFT_OF_EACH_MOVIE)
def test_weights_do_not_depend_on_a_number_that_a_movies_model_adds_to_all_its_scores(seed, shifts):
    """The scores of two kinds of models are weighted together. Each movie was scored by models of its own.

    A model may add any number to all its scores: to those of its movie, and so to the mean of its scores of
    training clips, which was 0. The weights and the intercept must stay what they were.
    """
    scores, labels, movies = scores_labels_and_movies(seed, strengths=(0.6, -0.4))
    training_means = np.zeros(scores.shape)
    shift_of_clip = np.array(shifts)[movies][:, None]
    as_they_are = HeldOut(scores, labels, movies, training_means=training_means)
    shifted = HeldOut(scores + shift_of_clip, labels, movies, training_means=training_means + shift_of_clip)

    weights, intercept = as_they_are.fit_weights()
    weights_of_shifted, intercept_of_shifted = shifted.fit_weights()

    np.testing.assert_allclose(weights_of_shifted, weights, rtol=1e-4)
    assert intercept_of_shifted == pytest.approx(intercept, abs=1e-3)


@pytest.mark.long
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 9), SHIFT_OF_EACH_MOVIE)
def test_calibration_does_not_depend_on_a_number_that_a_movies_model_adds_to_all_its_scores(seed, shifts):
    """Each of eight movies was scored by a model of its own, which was trained on the other movies.

    A model may add any number to all its scores: to those of its movie, and so to the mean of its scores of
    training clips, which was 0. The sigmoids that turn scores into probabilities must stay what they were.
    The scores tell the label a little: those of positive clips are higher by .6 of the noise's deviation.
    """
    scores, labels, movies = scores_labels_and_movies(seed, strengths=(0.6,))
    scores = scores[:, 0]  # of the only kind of model
    shift_of_clip = np.array(shifts)[movies]
    as_they_are = HeldOut(scores, labels, movies, training_means=np.zeros(len(labels)))
    shifted = HeldOut(scores + shift_of_clip, labels, movies, training_means=shift_of_clip)

    np.testing.assert_allclose(drawn_sigmoids(shifted), drawn_sigmoids(as_they_are), atol=1e-5)


@pytest.mark.parametrize("unit", [2.0**-80, 2.0**80])
def test_scores_in_another_unit_have_weights_that_are_smaller_by_this_unit(unit):
    """The weighted scores stay: where scores are multiplied by a unit, weights are divided by it.

    The squares of scores in these units are far beyond what single precision holds.
    """
    scores, labels, movies = scores_labels_and_movies(seed=0, strengths=(0.6, 0.4))

    weights, intercept = HeldOut(scores, labels, movies).fit_weights()
    weights_in_unit, intercept_in_unit = HeldOut(unit * scores, labels, movies).fit_weights()

    assert weights_in_unit * unit == pytest.approx(weights)
    assert intercept_in_unit == pytest.approx(intercept)


@pytest.mark.parametrize("unit", [2.0**-80, 2.0**80])
def test_scores_in_another_unit_have_sigmoids_whose_slopes_are_smaller_by_this_unit(unit):
    """The sigmoids turn scores into probabilities, which must stay: sigmoid(slope * score + intercept).

    So where scores are multiplied by a unit, slopes are divided by it.
    """
    scores, labels, movies = scores_labels_and_movies(seed=0, strengths=(0.6, 0.4))
    scores = scores[:, 0]

    slopes, intercepts = drawn_sigmoids(HeldOut(scores, labels, movies)).T
    slopes_in_unit, intercepts_in_unit = drawn_sigmoids(HeldOut(unit * scores, labels, movies)).T

    np.testing.assert_allclose(slopes_in_unit * unit, slopes)
    np.testing.assert_allclose(intercepts_in_unit, intercepts)


def test_scores_of_a_movie_that_was_tested_in_two_folds_are_centred_in_each_of_them():
    """Every second clip of eight movies was tested in fold 1, whose model gives scores higher by 100."""
    scores, labels, movies = scores_labels_and_movies(seed=0, strengths=(1.0,))
    folds = np.arange(len(labels)) % 2
    scores_of_folds = scores[:, 0] + 100 * folds

    centred = HeldOut(scores_of_folds, labels, movies, folds).centred()

    for movie in range(8):
        for fold in (0, 1):
            is_of_both = (movies == movie) & (folds == fold)
            assert centred[is_of_both].mean() == pytest.approx(0)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 99), st.lists(st.floats(-1, 1), min_size=2, max_size=4))
def test_weights_are_not_negative_and_give_probabilities_whose_mean_is_the_share_of_positives(
    seed, strengths
):
    """The scores of two to four models are added up with weights, and an intercept makes logits of the sum.

    A model's strength says by how much its scores of positive clips are higher, or lower if it is negative:
    also a model that tells the label the wrong way must not get a weight below 0. Scores are relative to the
    mean that their model gives to training clips.
    """
    scores, labels, movies = scores_labels_and_movies(seed, strengths, n_clips=15)
    held_out = HeldOut(scores, labels, movies)

    weights, intercept = held_out.fit_weights()

    assert (weights >= 0).all()
    assert weights.any()
    logits = held_out.relative_scores @ weights + intercept
    assert expit(logits).mean() == pytest.approx(labels.mean())


def test_where_the_scores_of_all_models_fall_with_the_label_the_least_bad_model_decides_alone():
    """Positive clips have lower scores by all three models, but by the second only by .3 SDs."""
    scores, labels, movies = scores_labels_and_movies(seed=0, strengths=(-1.0, -0.3, -2.0))

    weights, _ = HeldOut(scores, labels, movies).fit_weights()

    assert weights.tolist() == [0, 1, 0]


def test_weights_are_those_of_logistic_regression_where_these_are_positive():
    """The regression reads the scores of two models, less their means within movies, in units of their SD."""
    scores, labels, movies = scores_labels_and_movies(seed=1, strengths=(0.8, 0.5))
    held_out = HeldOut(scores, labels, movies)

    weights, _ = held_out.fit_weights()

    deviations = held_out.centred().std(axis=0)
    regression = LogisticRegression(C=1.0, tol=1e-12)
    regression.fit(held_out.centred() / deviations, labels)
    expected = regression.coef_[0] / deviations
    assert (expected > 0).all()
    np.testing.assert_allclose(weights, expected, rtol=1e-4)


def test_the_threshold_is_chosen_for_the_scores_without_centring():
    """Centring takes off the mean score of each movie. Of a new film this mean is unknown.

    A new film's scores are therefore compared with the threshold as they are, and so the threshold must be
    the best one (of the highest F1) for the scores as they are. For centred ones another would be best.
    """
    scores, labels, movies = scores_labels_and_movies(seed=3, strengths=(1.0,))
    (scores_of_one_model,) = scores.T
    held_out = HeldOut(scores_of_one_model, labels, movies)

    threshold = held_out.threshold()

    assert threshold == best_threshold(labels, scores_of_one_model)
    assert threshold != best_threshold(labels, held_out.centred())
