"""Circular shifts within movies find planted concepts, and find nothing as often as they should."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from obygaze_models.errors import ConceptError
from obygaze_models.evaluation.paired_tests import holm
from obygaze_models.evaluation.significance import (
    lag_correlation,
    leave_movie_out_operator,
    permutation_pvalues,
)


@pytest.fixture(scope="module")
def clips():
    """Features that are noise, and movies that move them far."""
    rng = np.random.default_rng(0)
    movies = np.repeat(np.arange(8), 25)
    X = rng.normal(size=(200, 16)) + 3 * rng.normal(size=(8, 16))[movies]
    return X, movies


def test_null_concepts_are_significant_at_5_percent_in_about_5_percent_of_200_draws(clips):
    """Presence depends on the movie, as the features do, and on nothing else."""
    X, movies = clips
    rng = np.random.default_rng(1)
    present = rng.random((200, 200)) < np.linspace(0.1, 0.6, 8)[movies][:, None]
    p = permutation_pvalues(X, present, movies, n_permutations=199).p
    # 5 % of 200 draws with a standard error of 1.5 %.
    assert 0.01 <= (p <= 0.05).mean() <= 0.095
    assert np.mean(p) == pytest.approx(0.5, abs=0.07)


def smooth(rng, lengths, rho, columns):
    """Draw what runs smoothly from clip to clip in each movie: first-order autoregression of variance 1."""
    parts = []
    for length in lengths:
        values = rng.normal(size=(length, columns))
        for place in range(1, length):
            values[place] = rho * values[place - 1] + np.sqrt(1 - rho**2) * values[place]
        parts.append(values)
    return np.concatenate(parts)


def test_smooth_features_that_know_nothing_of_smooth_concepts_are_no_finding():
    """Lag-1 correlation of presence about .5, as annotated; exchanging clips freely found .2 of these."""
    p = []
    lengths = [60, 80, 40, 70, 50, 60]
    movies = np.repeat(np.arange(6), lengths)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        present = smooth(rng, lengths, 0.7, 8) > 0.6
        result = permutation_pvalues(smooth(rng, lengths, 0.9, 16), present, movies, n_permutations=199)
        p += result.p.tolist()
        assert 0.2 < np.mean(result.lag1) < 0.7
    # At most 7 % of 96, plus twice the standard error of .022.
    assert np.mean(np.array(p) <= 0.05) <= 0.07 + 0.044


def test_features_and_concepts_that_drift_through_a_film_apart_from_each_other_are_no_finding():
    """Each movie's features and concepts rise or fall by 2 SD, whichever: .12 of these were found once."""
    p = []
    lengths = np.array([60, 80, 40, 70, 50, 60])
    movies = np.repeat(np.arange(6), lengths)
    through = np.concatenate([np.linspace(-1, 1, length) for length in lengths])[:, None]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        features, concepts = (rng.choice([-1, 1], (6, columns))[movies] * through for columns in (12, 8))
        features += smooth(rng, lengths, 0.9, 12)
        present = smooth(rng, lengths, 0.7, 8) + concepts > 0.6
        p += permutation_pvalues(features, present, movies, n_permutations=199).p.tolist()
    # At most 5 % of 160, plus the standard error of .017.
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 0.017


def test_a_planted_smooth_concept_is_found_all_the_same():
    lengths = [60, 80, 40, 70, 50, 60]
    rng = np.random.default_rng(9)
    present = smooth(rng, lengths, 0.7, 1) > 0.6
    X = smooth(rng, lengths, 0.9, 16) + 1.5 * present * np.eye(16)[3]
    assert permutation_pvalues(X, present, np.repeat(np.arange(6), lengths), n_permutations=199).p[0] < 0.02


def test_the_lag_correlation_is_of_neighbours_in_a_movie_and_of_no_others():
    alternating = np.tile([1.0, -1.0], 50)[:, None]
    assert lag_correlation(alternating, np.repeat([0, 1], 50)) == pytest.approx(-1)
    assert lag_correlation(np.repeat([1.0, -1.0], 50)[:, None], np.repeat([0, 1], 50)) == pytest.approx(1)
    assert np.isnan(lag_correlation(np.zeros((4, 1)), np.zeros(4)))


def test_a_planted_concept_is_significant_beside_null_ones(clips):
    X, movies = clips
    rng = np.random.default_rng(2)
    present = rng.random((200, 4)) < 0.3
    moved = X + 1.5 * present[:, :1] * np.eye(16)[3]
    result = permutation_pvalues(moved, present, movies, n_permutations=999)
    assert result.p_holm[0] == pytest.approx(4 / 1000)
    assert (result.p_holm[1:] > 0.05).all()
    assert result.statistic[0] > np.abs(result.statistic[1:]).max()


def test_a_concepts_result_does_not_depend_on_the_others(clips):
    X, movies = clips
    rng = np.random.default_rng(4)
    present = (rng.random((200, 3)) < 0.3).astype(float)
    present[::4, 1] = np.nan
    together = permutation_pvalues(X, present, movies, n_permutations=99)
    for concept in range(3):
        alone = permutation_pvalues(X, present[:, [concept]], movies, n_permutations=99)
        assert alone.p[0] == together.p[concept]
        assert alone.statistic[0] == together.statistic[concept]


def residues(X):
    """What a regression of features on the place in the movie leaves."""
    place = np.arange(len(X))[:, None]
    return X - LinearRegression().fit(place, X).predict(place)


def test_the_operator_gives_the_projection_of_a_refit_without_the_movie(clips):
    X, movies = clips
    centred = np.concatenate([residues(X[movies == movie]) for movie in range(8)])
    z = np.random.default_rng(5).normal(size=200)
    scores = leave_movie_out_operator(X, movies) @ z
    alpha = np.sum(centred**2) / 16
    for movie in range(8):
        out = movies == movie
        refit = Ridge(alpha=alpha, fit_intercept=False).fit(centred[~out], z[~out])
        assert np.allclose(scores[out], refit.predict(centred[out]))


def test_a_concept_that_varies_in_one_movie_only_is_refused(clips):
    X, movies = clips
    present = np.zeros((200, 1))
    present[:3] = 1
    with pytest.raises(ConceptError, match="concept 0"):
        permutation_pvalues(X, present, movies)


def test_holm_multiplies_the_smallest_most_and_keeps_order():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, np.nan, 0.9])[0] == 1.0
    assert np.isnan(holm([0.5, np.nan])[1])
