"""The posterior of a slope: exact likelihoods, planted slopes, and how little a few clips can prove."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logsumexp

from obygaze_models.protocol import HeldOut
from obygaze_models.protocol.slope import (
    GRID,
    KNOTS,
    P_UNSKILLED,
    SlopeLikelihood,
    SlopePosterior,
    _likelihood_power,
    conditional_log_likelihood,
)


def log_likelihood_by_enumeration(scores, labels, slope):
    """Compute the log probability of labels among all labels with as many positive clips."""
    n_positive = int(labels.sum())
    sums = [slope * scores[list(rows)].sum() for rows in combinations(range(len(scores)), n_positive)]
    return slope * scores[labels == 1].sum() - logsumexp(sums)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 9))
def test_a_films_likelihood_is_the_probability_of_its_labels_given_how_many_are_positive(seed, n):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    labels = (np.arange(n) < rng.integers(1, n)).astype(float)
    likelihood = conditional_log_likelihood(scores, labels)
    expected = np.array([log_likelihood_by_enumeration(scores, labels, slope) for slope in KNOTS])
    # Log likelihoods of the slopes `KNOTS` are relative to that of the first one.
    np.testing.assert_allclose(likelihood, expected - expected[0], atol=1e-6)


def test_the_likelihood_of_a_film_of_5000_clips_is_highest_near_the_slope_of_its_labels():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=5000)
    labels = (rng.random(5000) < expit(1.0 * scores - 1)).astype(float)
    likelihood = conditional_log_likelihood(scores, labels)
    assert KNOTS[np.argmax(likelihood)] == pytest.approx(1.0, abs=0.15)


def held_out_with_slope(slope, n_films, n_clips, seed=0):
    """Draw scores and labels, which are positive with the probability sigmoid(slope x score)."""
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(n_films), n_clips)
    scores = rng.normal(size=len(movies))
    y = (rng.random(len(movies)) < expit(slope * scores)).astype(int)
    return HeldOut(scores, y, movies)


@pytest.mark.parametrize("slope", [0.3, 1.0, 3.0])
def test_planted_slopes_are_found(slope):
    posterior = SlopeLikelihood.of_scores(held_out_with_slope(slope, 12, 200)).posterior()
    low, middle, high = posterior.quantiles([0.01, 0.5, 0.99])
    assert posterior.p_skilled > 0.99
    assert low < slope < high
    assert middle == pytest.approx(slope, rel=0.25)


def test_films_of_one_label_leave_the_prior_probability_of_skill_and_equal_scores_have_no_slope():
    movies = np.repeat(np.arange(4), 10)
    label_of_movie = (movies % 2).astype(int)
    of_one_label = HeldOut(np.random.default_rng(0).normal(size=40), label_of_movie, movies)
    prior = 1 - P_UNSKILLED
    assert SlopeLikelihood.of_scores(of_one_label).posterior().p_skilled == pytest.approx(prior, abs=0.001)

    of_equal_scores = HeldOut(np.ones(40), np.tile([0, 1], 20), movies)
    posterior = SlopeLikelihood.of_scores(of_equal_scores).posterior()
    assert posterior.quantiles([0.1, 0.9]).tolist() == [0.0, 0.0]


@pytest.mark.long  # simulates
def test_noise_seldom_looks_like_skill():
    p_skilled = []
    for n_films, n_clips in ((4, 4), (6, 20)):
        for seed in range(60):
            noise = held_out_with_slope(0.0, n_films, n_clips, seed)
            p_skilled.append(SlopeLikelihood.of_scores(noise).posterior().p_skilled)
    assert np.mean(np.array(p_skilled) >= 0.9) < 0.08


def test_skill_is_less_probable_where_two_of_six_films_contradict_the_others():
    agreeing = held_out_with_slope(0.8, 6, 40)
    sign_of_film = np.where(agreeing.movies < 2, -1, 1)
    disagreeing = HeldOut(agreeing.scores * sign_of_film, agreeing.y, agreeing.movies)
    p_of_agreeing = SlopeLikelihood.of_scores(agreeing).posterior().p_skilled
    p_of_disagreeing = SlopeLikelihood.of_scores(disagreeing).posterior().p_skilled
    assert p_of_disagreeing < p_of_agreeing


def test_the_posterior_without_a_film_is_that_of_the_other_films():
    likelihood = SlopeLikelihood.of_scores(held_out_with_slope(1.0, 5, 30))
    is_other = likelihood.movies != 2
    of_others = SlopeLikelihood(
        likelihood.movies[is_other], likelihood.log_likelihoods[is_other], likelihood.unit
    )
    quantiles_without = likelihood.posterior(without=2).quantiles([0.1, 0.5, 0.9])
    np.testing.assert_allclose(quantiles_without, of_others.posterior().quantiles([0.1, 0.5, 0.9]))


def test_quantiles_have_a_point_mass_at_0_and_the_quantiles_of_positive_slopes_beyond_it():
    """Slopes above 0 have a probability of .8 and are spread evenly up to the greatest of the grid."""
    even = SlopePosterior(p_skilled=0.8, cumulative=GRID / GRID[-1], unit=2.0)
    at_mass, within_mass, median_of_positive, greatest = even.quantiles([0.1, 0.19, 0.6, 1.0])
    assert at_mass == within_mass == 0.0
    assert median_of_positive == pytest.approx(0.5 * GRID[-1] / 2.0)
    assert greatest == pytest.approx(GRID[-1] / 2.0)


@pytest.mark.parametrize(
    ("first_derivatives", "second_derivatives", "power"),
    [
        # The sum of 3, -3, 3, -3 has the variance 4 / 3 * 36, and the curvature is 12.
        ([3.0, -3.0, 3.0, -3.0], [-3.0] * 4, 12 / 48),
        ([3.0], [-3.0], 1.0),
        ([0.1, -0.1], [-3.0, -3.0], 1.0),
        ([3.0, -3.0], [1.0, 1.0], 1.0),
    ],
    ids=["four films", "one film", "films alike", "no maximum"],
)
def test_the_likelihood_is_raised_to_curvature_by_variance_where_films_show_that_clips_depend(
    first_derivatives, second_derivatives, power
):
    result = _likelihood_power(np.array(first_derivatives), np.array(second_derivatives))
    assert result == pytest.approx(power)
