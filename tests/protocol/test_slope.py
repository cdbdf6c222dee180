"""The posterior of a slope: exact likelihoods, planted slopes, and how little a few clips can prove."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logsumexp

from obygaze_models.protocol import HeldOut
from obygaze_models.protocol.slope import KNOTS, P_UNSKILLED, SlopeLikelihood, conditional_log_likelihood


def by_enumeration(scores, labels, slope):
    """The probability of labels among all labels with as many positives."""
    n_positive = int(labels.sum())
    sums = [slope * scores[list(rows)].sum() for rows in combinations(range(len(scores)), n_positive)]
    return slope * scores[labels == 1].sum() - logsumexp(sums)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 9))
def test_a_films_likelihood_is_that_of_its_labels_given_how_many_are_positive(seed, n):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    labels = (np.arange(n) < rng.integers(1, n)).astype(float)
    likelihood = conditional_log_likelihood(scores, labels)
    expected = [by_enumeration(scores, labels, slope) for slope in KNOTS]
    np.testing.assert_allclose(likelihood, np.array(expected) - expected[0], atol=1e-6)


def test_a_long_film_has_the_likelihood_of_the_sum_of_many_clips():
    """With many clips the likelihood is that of logistic regression, up to the share."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=5000)
    labels = (rng.random(5000) < expit(scores - 1)).astype(float)
    likelihood = conditional_log_likelihood(scores, labels)
    assert KNOTS[np.argmax(likelihood)] == pytest.approx(1.0, abs=0.15)


def planted(slope, n_films, n_clips, seed=0):
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(n_films), n_clips)
    scores = rng.normal(size=len(movies))
    y = (rng.random(len(movies)) < expit(slope * scores)).astype(int)
    return HeldOut(scores, y, movies)


@pytest.mark.parametrize("slope", [0.3, 1.0, 3.0])
def test_planted_slopes_are_found(slope):
    posterior = SlopeLikelihood.of_scores(planted(slope, 12, 200)).posterior()
    low, middle, high = posterior.quantiles([0.01, 0.5, 0.99])
    assert posterior.p_skilled > 0.99
    assert low < slope < high
    assert middle == pytest.approx(slope, rel=0.25)


def test_films_of_one_label_tell_nothing():
    movies = np.repeat(np.arange(4), 10)
    alone = HeldOut(np.random.default_rng(0).normal(size=40), (movies % 2).astype(int), movies)
    assert SlopeLikelihood.of_scores(alone).posterior().p_skilled == pytest.approx(1 - P_UNSKILLED, abs=0.001)


def test_equal_scores_have_no_slope():
    flat = HeldOut(np.ones(40), np.tile([0, 1], 20), np.repeat(np.arange(4), 10))
    assert SlopeLikelihood.of_scores(flat).posterior().quantiles([0.1, 0.9]).tolist() == [0.0, 0.0]


@pytest.mark.long  # simulates
def test_noise_seldom_looks_like_skill():
    seeming = [
        SlopeLikelihood.of_scores(planted(0.0, n_films, n_clips, seed)).posterior().p_skilled >= 0.9
        for n_films, n_clips in ((4, 4), (6, 20))
        for seed in range(60)
    ]
    assert np.mean(seeming) < 0.08


def test_films_that_disagree_count_for_less_than_films_that_agree():
    agreeing = planted(0.8, 6, 40)
    turned = np.where(agreeing.movies < 2, -1, 1)
    disagreeing = HeldOut(agreeing.scores * turned, agreeing.y, agreeing.movies)
    assert (
        SlopeLikelihood.of_scores(disagreeing).posterior().p_skilled
        < SlopeLikelihood.of_scores(agreeing).posterior().p_skilled
    )


def test_without_a_film_is_the_posterior_of_the_others():
    held_out = planted(1.0, 5, 30)
    likelihood = SlopeLikelihood.of_scores(held_out)
    others_alone = SlopeLikelihood(
        likelihood.movies[likelihood.movies != 2], likelihood.log_likelihoods[[0, 1, 3, 4]], likelihood.unit
    )
    levels = [0.1, 0.5, 0.9]
    np.testing.assert_allclose(
        likelihood.posterior(without=2).quantiles(levels), others_alone.posterior().quantiles(levels)
    )
