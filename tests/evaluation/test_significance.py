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

LENGTHS = [60, 80, 40, 70, 50, 60]
"""Number of clips of each of six films."""
FILM_OF_CLIP = np.repeat(np.arange(6), LENGTHS)


@pytest.fixture(scope="module")
def noise_of_eight_movies():
    """Features of 25 clips of each of eight movies: noise, with a place of its own for each movie."""
    rng = np.random.default_rng(0)
    movies = np.repeat(np.arange(8), 25)
    X = rng.normal(size=(200, 16)) + 3 * rng.normal(size=(8, 16))[movies]
    return X, movies


def test_5_percent_of_concepts_that_are_not_in_the_features_are_significant_at_5_percent(
    noise_of_eight_movies,
):
    """200 clips of eight movies have features of noise, and 200 concepts drawn at random.

    How frequent a concept is depends on the movie, but nothing of it is in the features of a clip. So 5 % of
    the concepts should be significant at 5 %, give or take three standard errors of 1.5 % each (.01 to .095),
    and p should be .5 on average.
    """
    X, movies = noise_of_eight_movies
    rng = np.random.default_rng(1)
    share_of_movie = np.linspace(0.1, 0.6, 8)
    share_of_clip = share_of_movie[movies]
    present = rng.random((200, 200)) < share_of_clip[:, None]  # [clips, concepts]

    p = permutation_pvalues(X, present, movies, n_permutations=199).p

    share_significant = np.mean(p <= 0.05)
    assert 0.01 <= share_significant <= 0.095
    assert np.mean(p) == pytest.approx(0.5, abs=0.07)


def smooth(rng, *, correlation, columns):
    """Draw values of the clips of six films [N, columns] with variance 1, which change slowly along a film.

    They are a first-order autoregression; `correlation` is that of neighbouring clips.
    """
    films = []
    for length in LENGTHS:
        values = rng.normal(size=(length, columns))
        for clip in range(1, length):
            values[clip] = correlation * values[clip - 1] + np.sqrt(1 - correlation**2) * values[clip]
        films.append(values)
    return np.concatenate(films)


def drift_of_films(rng, *, columns):
    """Draw for each film and column whether it rises or falls by 2 along the film, [N, columns]."""
    sign = rng.choice([-1, 1], (6, columns))
    from_minus_1_to_1 = np.concatenate([np.linspace(-1, 1, length) for length in LENGTHS])
    return sign[FILM_OF_CLIP] * from_minus_1_to_1[:, None]


def test_smooth_concepts_that_are_not_in_smooth_features_are_rarely_significant():
    """Features and concepts change slowly along a film, independently of each other.

    In annotations neighbouring clips correlate by about .5 (`lag1`); a test that exchanged clips freely
    found 20 % of these concepts. This one finds at most 7 % of the 96, plus twice the standard error of .022.
    """
    p = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        present = smooth(rng, correlation=0.7, columns=8) > 0.6
        X = smooth(rng, correlation=0.9, columns=16)
        result = permutation_pvalues(X, present, FILM_OF_CLIP, n_permutations=199)
        p += result.p.tolist()
        assert 0.2 < np.mean(result.lag1) < 0.7

    share_significant = np.mean(np.array(p) <= 0.05)
    assert share_significant <= 0.07 + 0.044


@pytest.mark.long
def test_concepts_that_drift_through_films_independently_of_the_features_are_rarely_significant():
    """In each film the features rise or fall from its beginning to its end, and so do the concepts.

    A test must subtract the straight line of each film: without it 12 % of these concepts were found. At
    most 5 % of the 160 may be, plus the standard error of .017.
    """
    p = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        drift_of_features = drift_of_films(rng, columns=12)
        drift_of_concepts = drift_of_films(rng, columns=8)
        X = drift_of_features + smooth(rng, correlation=0.9, columns=12)
        present = smooth(rng, correlation=0.7, columns=8) + drift_of_concepts > 0.6
        p += permutation_pvalues(X, present, FILM_OF_CLIP, n_permutations=199).p.tolist()

    share_significant = np.mean(np.array(p) <= 0.05)
    assert share_significant <= 0.05 + 0.017


def test_a_smooth_concept_that_is_in_one_of_the_features_is_significant():
    """Feature 3 of 16 is higher by 1.5 standard deviations in clips that have the concept.

    Concept and features change slowly along each of six films, so that neighbouring clips tell little more
    than one. With 199 permutations, p is 1/200 at least.
    """
    rng = np.random.default_rng(9)
    present = smooth(rng, correlation=0.7, columns=1) > 0.6  # in about a quarter of the clips
    X = smooth(rng, correlation=0.9, columns=16)
    X[:, 3] += 1.5 * present[:, 0]

    (p,) = permutation_pvalues(X, present, FILM_OF_CLIP, n_permutations=199).p

    assert p < 0.02


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.tile([1.0, -1.0], 50), -1),
        (np.repeat([1.0, -1.0], 50), 1),
        (np.zeros(100), np.nan),
    ],
    ids=["neighbours are opposite", "only the two movies differ", "all clips are equal"],
)
def test_the_lag_correlation_is_that_of_neighbours_in_a_movie(values, expected):
    """100 values are of two movies of 50 clips each.

    The last clip of one movie and the first of the next are no neighbours. Values that are all equal have no
    correlation (NaN).
    """
    two_movies = np.repeat([0, 1], 50)
    correlation = lag_correlation(values[:, None], two_movies)
    assert correlation == pytest.approx(expected, nan_ok=True)


def test_the_one_concept_of_four_that_is_in_the_features_is_significant(noise_of_eight_movies):
    """Feature 3 is higher by 1.5 SDs in clips that have concept 0. The concepts 1, 2 and 3 are in no feature.

    With 999 permutations, none of which is as good, p is 1 / (999 + 1). Holm multiplies the smallest of four
    p by 4.
    """
    noise, movies = noise_of_eight_movies
    rng = np.random.default_rng(2)
    present = rng.random((200, 4)) < 0.3
    X = noise.copy()
    X[:, 3] += 1.5 * present[:, 0]

    result = permutation_pvalues(X, present, movies, n_permutations=999)

    p_of_concept, *p_of_others = result.p_holm
    assert p_of_concept == pytest.approx(4 / (999 + 1))
    assert min(p_of_others) > 0.05
    statistic_of_concept, *statistics_of_others = result.statistic
    assert statistic_of_concept > np.abs(statistics_of_others).max()


def test_a_concepts_result_does_not_depend_on_the_others(noise_of_eight_movies):
    """Three concepts are tested together, and then each alone.

    Of every fourth clip nobody knows whether it has concept 1 (NaN), which must not leave the clip out for
    the others.
    """
    X, movies = noise_of_eight_movies
    rng = np.random.default_rng(4)
    present = (rng.random((200, 3)) < 0.3).astype(float)
    present[::4, 1] = np.nan

    together = permutation_pvalues(X, present, movies, n_permutations=99)

    for concept in range(3):
        alone = permutation_pvalues(X, present[:, [concept]], movies, n_permutations=99)
        assert alone.p[0] == together.p[concept]
        assert alone.statistic[0] == together.statistic[concept]


def without_straight_line(X):
    """Subtract from the features of a movie's clips the straight line through them."""
    clip_number = np.arange(len(X))[:, None]
    return X - LinearRegression().fit(clip_number, X).predict(clip_number)


def test_the_operator_gives_each_movie_the_predictions_of_a_ridge_regression_on_the_others(
    noise_of_eight_movies,
):
    """The operator is a matrix [clips, clips] that turns the presence of a concept into predictions.

    Its regression reads features without the straight line of each movie, and has as its penalty the mean
    eigenvalue of their scatter: the sum of their squares over the number of features, 16.
    """
    X, movies = noise_of_eight_movies
    detrended = np.concatenate([without_straight_line(X[movies == movie]) for movie in range(8)])
    penalty = np.sum(detrended**2) / 16
    presence = np.random.default_rng(5).normal(size=200)

    predictions = leave_movie_out_operator(X, movies) @ presence

    for movie in range(8):
        is_of_movie = movies == movie
        regression = Ridge(alpha=penalty, fit_intercept=False)
        regression.fit(detrended[~is_of_movie], presence[~is_of_movie])
        assert np.allclose(predictions[is_of_movie], regression.predict(detrended[is_of_movie]))


def test_a_concept_that_varies_in_one_movie_only_is_refused(noise_of_eight_movies):
    """Three of the 25 clips of movie 0 have the concept, and no clip of the other seven movies."""
    X, movies = noise_of_eight_movies
    present = np.zeros((200, 1))
    present[:3] = 1
    with pytest.raises(ConceptError, match="concept 0"):
        permutation_pvalues(X, present, movies)


@pytest.mark.parametrize(
    ("p", "corrected"),
    [([0.01, 0.03, 0.04], [0.03, 0.06, 0.06]), ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06])],
    ids=["from the smallest to the largest", "in another order"],
)
def test_holm_multiplies_the_smallest_p_most_and_keeps_their_order(p, corrected):
    """Of three p .01 becomes 3 * .01, .03 becomes 2 * .03, and .04 stays, but may not be below that: .06."""
    assert holm(p) == pytest.approx(corrected)


def test_holm_does_not_count_an_undefined_p():
    """Of the two that are left the smaller, .5, is multiplied by 2, and the larger may not be below that."""
    assert holm([0.6, np.nan, 0.9]) == pytest.approx([1.0, np.nan, 1.0], nan_ok=True)
