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
    P_UNSKILLED,
    SlopeLikelihood,
    SlopePosterior,
    _likelihood_power,
    conditional_log_likelihood,
)
from obygaze_models.protocol.slope import (
    KNOTS as SLOPES_TRIED,
)


def log_likelihood_by_enumeration(scores, labels, slope):
    """Compute the log probability of labels among all labels with as many positive clips."""
    n_positive = int(labels.sum())
    sums = [slope * scores[list(rows)].sum() for rows in combinations(range(len(scores)), n_positive)]
    return slope * scores[labels == 1].sum() - logsumexp(sums)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 9))
def test_a_films_likelihood_is_the_probability_of_its_labels_given_how_many_are_positive(seed, n):
    """A slope is by how much a clip's log odds of being positive rise with its score.

    For each slope of a grid the log likelihood must be that by trying all labels with as many positive
    clips. It is given relative to that of the grid's first slope.
    """
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    n_positive = rng.integers(1, n)
    labels = np.where(np.arange(n) < n_positive, 1.0, 0.0)

    log_likelihoods = conditional_log_likelihood(scores, labels)

    expected = np.array([log_likelihood_by_enumeration(scores, labels, slope) for slope in SLOPES_TRIED])
    np.testing.assert_allclose(log_likelihoods, expected - expected[0], atol=1e-6)


def test_the_likelihood_of_a_film_of_5000_clips_is_highest_near_the_slope_of_its_labels():
    """A clip is positive with the log odds 1 * score - 1, so the slope is 1. The -1 must not matter."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=5000)
    p_positive = expit(1.0 * scores - 1)
    labels = (rng.random(5000) < p_positive).astype(float)

    log_likelihoods = conditional_log_likelihood(scores, labels)

    likeliest_slope = SLOPES_TRIED[np.argmax(log_likelihoods)]
    assert likeliest_slope == pytest.approx(1.0, abs=0.15)


def held_out_with_slope(slope, *, n_films, n_clips, seed=0):
    """Draw scores and labels, which are positive with the probability sigmoid(slope x score)."""
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(n_films), n_clips)
    scores = rng.normal(size=len(movies))
    y = (rng.random(len(movies)) < expit(slope * scores)).astype(int)
    return HeldOut(scores, y, movies)


@pytest.mark.parametrize("slope", [0.3, 1.0, 3.0])
def test_planted_slopes_are_found(slope):
    """In 12 films of 200 clips a clip is positive with the probability sigmoid(slope * score).

    That the slope is above 0 is called skill. The posterior's 98 % hold the slope, and its median is near it.
    """
    held_out = held_out_with_slope(slope, n_films=12, n_clips=200)

    posterior = SlopeLikelihood.of_scores(held_out).posterior()

    low, median, high = posterior.quantiles([0.01, 0.5, 0.99])
    assert posterior.p_skilled > 0.99
    assert low < slope < high
    assert median == pytest.approx(slope, rel=0.25)


def test_films_of_one_label_leave_the_prior_probability_of_skill():
    """In each of four films all clips have one label, so nothing says whether scores tell labels apart.

    Skill means a slope above 0; before any film is seen, a slope of 0 has the probability P_UNSKILLED.
    """
    movies = np.repeat([0, 1, 2, 3], 10)
    labels = np.repeat([0, 1, 0, 1], 10)
    scores = np.random.default_rng(0).normal(size=40)

    posterior = SlopeLikelihood.of_scores(HeldOut(scores, labels, movies)).posterior()

    prior = 1 - P_UNSKILLED
    assert posterior.p_skilled == pytest.approx(prior, abs=0.001)


def test_equal_scores_have_a_slope_of_0():
    """All 40 clips of four films have the score 1, which can tell nothing."""
    movies = np.repeat([0, 1, 2, 3], 10)
    labels = np.tile([0, 1], 20)
    scores = np.ones(40)

    posterior = SlopeLikelihood.of_scores(HeldOut(scores, labels, movies)).posterior()

    assert posterior.quantiles([0.1, 0.9]).tolist() == [0.0, 0.0]


@pytest.mark.long  # simulates
def test_noise_seldom_looks_like_skill():
    """With a slope of 0 the labels do not depend on the scores.

    Skill has a probability of .9 or more in less than 8 % of 120 such corpora, of 4 or 6 films.
    """
    p_skilled = []
    for n_films, n_clips in ((4, 4), (6, 20)):
        for seed in range(60):
            noise = held_out_with_slope(0.0, n_films=n_films, n_clips=n_clips, seed=seed)
            posterior = SlopeLikelihood.of_scores(noise).posterior()
            p_skilled.append(posterior.p_skilled)

    looks_skilled = np.array(p_skilled) >= 0.9
    assert np.mean(looks_skilled) < 0.08


def test_skill_is_less_probable_where_two_of_six_films_contradict_the_others():
    """Six films have a slope of .8. Then the scores of two of them get the other sign."""
    agreeing = held_out_with_slope(0.8, n_films=6, n_clips=40)
    is_of_first_two_films = agreeing.movies < 2
    scores = np.where(is_of_first_two_films, -agreeing.scores, agreeing.scores)
    disagreeing = HeldOut(scores, agreeing.y, agreeing.movies)

    p_of_agreeing = SlopeLikelihood.of_scores(agreeing).posterior().p_skilled
    p_of_disagreeing = SlopeLikelihood.of_scores(disagreeing).posterior().p_skilled

    assert p_of_disagreeing < p_of_agreeing


def test_the_posterior_without_a_film_is_that_of_the_other_films():
    """The likelihood has a row for each of five films, 0 to 4; film 2 is left out."""
    likelihood = SlopeLikelihood.of_scores(held_out_with_slope(1.0, n_films=5, n_clips=30))
    is_other = likelihood.movies != 2
    likelihood_of_others = SlopeLikelihood(
        likelihood.movies[is_other], likelihood.log_likelihoods[is_other], likelihood.unit
    )

    quantiles = likelihood.posterior(without=2).quantiles([0.1, 0.5, 0.9])
    quantiles_of_others = likelihood_of_others.posterior().quantiles([0.1, 0.5, 0.9])

    np.testing.assert_allclose(quantiles, quantiles_of_others)


def test_quantiles_have_a_point_mass_at_0_and_the_quantiles_of_positive_slopes_beyond_it():
    """The slope is 0 with a probability of .2, and else anywhere from 0 to the greatest of the grid.

    The quantile .6 is half way through the other .8. A unit of 2 halves all slopes.
    """
    greatest_slope = GRID[-1]
    spread_evenly = GRID / greatest_slope
    posterior = SlopePosterior(p_skilled=0.8, cumulative=spread_evenly, unit=2.0)

    assert posterior.quantiles([0.1, 0.19]).tolist() == [0.0, 0.0]
    median_of_positive, highest = posterior.quantiles([0.6, 1.0])
    assert median_of_positive == pytest.approx(0.5 * greatest_slope / 2.0)
    assert highest == pytest.approx(greatest_slope / 2.0)


@pytest.mark.parametrize(
    ("first_derivatives", "second_derivatives", "power"),
    [
        ([3.0, -3.0, 3.0, -3.0], [-3.0, -3.0, -3.0, -3.0], 12 / 48),
        ([3.0], [-3.0], 1.0),
        ([0.1, -0.1], [-3.0, -3.0], 1.0),
        ([3.0, -3.0], [1.0, 1.0], 1.0),
    ],
    ids=["four films", "one film", "films alike", "no maximum"],
)
def test_a_likelihood_of_films_whose_clips_depend_on_each_other_is_flattened(
    first_derivatives, second_derivatives, power
):
    """Each film has the first and the second derivative of its log likelihood by the slope, at the maximum.

    If clips are independent, the first derivatives of films vary as much as the second ones say: the variance
    of their sum is the curvature, minus the sum of second derivatives. In the four films they vary more: the
    variance is 4 / 3 * (9 + 9 + 9 + 9) = 48, the curvature 3 + 3 + 3 + 3 = 12. The likelihood is raised to
    the power curvature / variance, as if there were fewer clips.

    It stays as it is, with a power of 1, if one film shows no variance, if films vary less than they might
    by chance, or if the curvature is negative, so that there is no maximum.
    """
    result = _likelihood_power(np.array(first_derivatives), np.array(second_derivatives))

    assert result == pytest.approx(power)
