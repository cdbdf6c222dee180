"""Planted logits come back from scores; what the training clips reach is known film by film."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import expit

from obygaze_models.prediction.calibration import Calibration, calibration_error
from obygaze_models.prediction.out_of_distribution import LARGEST_SHARE, QUANTILE_LEVELS, OutOfDistribution
from obygaze_models.protocol import HeldOut


def plant_scores(*, slope, intercept, n_films=12, n_clips=1000, seed=0):
    """Draw scores whose true probability is sigmoid(slope * score + intercept), and labels by it."""
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(n_films), n_clips)
    scores = rng.normal(size=movies.size)
    is_positive = rng.random(movies.size) < expit(slope * scores + intercept)
    return HeldOut(scores, is_positive.astype(int), movies)


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (2.0, -1.0), (0.5, 1.0)])
def test_a_planted_slope_and_intercept_are_recovered_and_an_unseen_film_is_calibrated(slope, intercept):
    """Of 12,000 clips, each is positive with the probability sigmoid(slope * score + intercept).

    Each draw of a calibration is a pair of a slope and an intercept.
    """
    held_out = plant_scores(slope=slope, intercept=intercept, n_films=12, n_clips=1000)

    calibration = Calibration.fit(held_out, n_draws=10)

    assert calibration.draws.mean(axis=0) == pytest.approx([slope, intercept], abs=0.1)
    assert calibration.p_skilled == pytest.approx(1.0)
    assert calibration.error < 0.05

    unseen_film = plant_scores(slope=slope, intercept=intercept, n_films=1, seed=1)
    p = calibration.probability(unseen_film.scores)
    assert calibration_error(unseen_film.y, p) < 0.05


def test_twenty_clips_that_are_separated_get_no_probability_of_95_percent():
    """Ten positive clips have the score 5, ten negative ones -5: too few clips to be sure of more."""
    movies = np.repeat(["a", "b", "c", "d"], 5)
    y = np.tile([0, 1], 10)
    scores = np.where(y == 1, 5.0, -5.0)

    calibration = Calibration.fit(HeldOut(scores, y, movies))

    assert np.isfinite(calibration.draws).all()
    (p,) = calibration.probability([5.0])
    assert 0.8 < p < 0.95


def test_clips_of_equal_scores_get_the_share_of_positives_as_probability():
    """All of twenty clips have the score 1, and ten of them are positive."""
    movies = np.repeat(["a", "b", "c", "d"], 5)
    y = np.tile([0, 1], 10)
    scores = np.ones(20)

    calibration = Calibration.fit(HeldOut(scores, y, movies))

    assert calibration.probability([1.0])[0] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    "order", [np.arange(200), np.random.default_rng(0).permutation(200)], ids=["in order", "shuffled"]
)
def test_the_calibration_error_does_not_depend_on_the_order_of_clips_of_one_probability(order):
    """A model gives 100 clips the probability .4, of which half are positive, and 100 others .5, a quarter.

    The error is the mean difference between a probability and the share of positives among clips that have
    it.
    """
    p = np.repeat([0.4, 0.5], 100)
    half_positive = np.repeat([0, 1, 0, 1], 25)  # of the clips with p .4
    quarter_positive = np.repeat([1, 0, 0, 0], 25)  # of the clips with p .5
    y = np.concatenate([half_positive, quarter_positive])

    error = calibration_error(y[order], p[order])

    expected = (abs(0.5 - 0.4) + abs(0.25 - 0.5)) / 2
    assert error == pytest.approx(expected)


def test_the_band_holds_the_probability_and_is_wider_where_films_differ():
    """In six films that are alike, the log odds of a clip are its score.

    In films that differ, they are one higher than the score in every other film, and one lower in the rest.
    """
    alike = plant_scores(slope=1.0, intercept=0.0, n_films=6, n_clips=200)
    lower_or_higher = np.where(alike.movies % 2 == 1, 1, -1)
    p = expit(alike.scores + lower_or_higher)
    y = (np.random.default_rng(1).random(1200) < p).astype(int)
    different = HeldOut(alike.scores, y, alike.movies)

    widths = []
    for held_out in (alike, different):
        calibration = Calibration.fit(held_out)
        low, high = calibration.band(held_out.scores)
        p = calibration.probability(held_out.scores)
        assert (low <= p).all()
        assert (p <= high).all()
        widths.append((high - low).mean())
    width_where_alike, width_where_different = widths
    assert width_where_different > 1.5 * width_where_alike


TRAINING_MEAN_OF_KEPT_MODEL = -0.8
"""Mean score that the model of the calibration below gave its training clips."""


@pytest.fixture
def scores_that_fall_from_film_to_film():
    """Scores of eight films left out that rise with the label within a film, but fall with its positives.

    Each film is scored by a model that was trained on the others. The more positive clips a film has, the
    fewer the others have, and the lower are all scores of the model: by the mean of its training scores,
    which `HeldOut` has for each clip.
    """
    rng = np.random.default_rng(3)
    movies = np.repeat(np.arange(8), 200)
    share_of_film = expit(np.linspace(-2, 1, 8))[movies]  # from .12 to .73
    y = (rng.random(movies.size) < share_of_film).astype(int)
    training_means = -2.0 * share_of_film
    scores = 0.3 * (y - share_of_film) + rng.normal(scale=0.3, size=len(y)) + training_means
    return HeldOut(scores, y, movies, training_means=training_means)


@pytest.fixture
def calibration_of_scores_that_fall_from_film_to_film(scores_that_fall_from_film_to_film):
    """The calibration that is fitted to them, of a model with a training mean of its own."""
    return Calibration.fit(scores_that_fall_from_film_to_film, training_mean=TRAINING_MEAN_OF_KEPT_MODEL)


def test_the_slopes_of_a_calibration_are_positive_if_scores_rise_with_the_label_within_films(
    scores_that_fall_from_film_to_film, calibration_of_scores_that_fall_from_film_to_film
):
    """Over all films scores fall with the label, as films with more positives are scored by other models.

    The calibration takes the mean training score of its model off each score, so that only differences within
    films count. All draws of its slope are then positive.
    """
    held_out = scores_that_fall_from_film_to_film
    correlation_over_all_films = np.corrcoef(held_out.scores, held_out.y)[0, 1]
    assert correlation_over_all_films < -0.05

    slope_of_each_draw = calibration_of_scores_that_fall_from_film_to_film.draws[:, 0]

    assert (slope_of_each_draw > 1).all()


def test_a_clip_with_the_mean_training_score_has_the_share_of_positives_as_its_probability(
    scores_that_fall_from_film_to_film, calibration_of_scores_that_fall_from_film_to_film
):
    """A calibration takes the mean training score (-.8) off each score; what is left of this clip's is 0."""
    (p,) = calibration_of_scores_that_fall_from_film_to_film.probability([TRAINING_MEAN_OF_KEPT_MODEL])

    share_of_positives = scores_that_fall_from_film_to_film.y.mean()
    assert p == pytest.approx(share_of_positives, abs=0.06)


def test_scores_that_fall_with_the_label_give_every_clip_the_share_of_positives_as_probability():
    """Such a model has no skill, so that its scores say nothing: a calibration never turns them round."""
    held_out = plant_scores(slope=-1.0, intercept=0.5, n_films=6, n_clips=100)
    share_of_positives = held_out.y.mean()

    calibration = Calibration.fit(held_out)

    assert calibration.p_skilled < 0.05
    p_of_low_middle_and_high_score = calibration.probability([-5.0, 0.0, 5.0])
    np.testing.assert_allclose(p_of_low_middle_and_high_score, share_of_positives, atol=0.03)


@pytest.mark.long  # simulates
def test_with_random_scores_of_eight_clips_extreme_probabilities_and_bands_without_one_half_are_rare():
    """Four of eight clips are positive, and their scores are noise: the truth is one half for every clip.

    Of 50 such calibrations, clips with a probability beyond .9 or .1, or a band that leaves out .5, are
    fewer than 2 %.
    """
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 4)
    movies = np.repeat(np.arange(4), 2)

    shares_extreme = []
    shares_of_bands_without_half = []
    for _ in range(50):
        calibration = Calibration.fit(HeldOut(rng.normal(size=8), y, movies))
        p = calibration.probability(rng.normal(size=50))
        low, high = calibration.band(rng.normal(size=50))
        shares_extreme.append(((p > 0.9) | (p < 0.1)).mean())
        shares_of_bands_without_half.append(((low > 0.5) | (high < 0.5)).mean())

    assert np.mean([*shares_extreme, *shares_of_bands_without_half]) < 0.02


def test_the_probability_is_the_mean_over_draws_and_the_band_begins_at_their_first_decile():
    """A calibration has draws of a slope and an intercept; each draw gives a clip a probability of its own.

    The mean of these is the clip's probability, and their first decile the lower end of its band. If few
    draws are very low, the mean may be below the decile. Then the band begins at the mean, as it must hold
    it.
    """
    held_out = plant_scores(slope=1.0, intercept=0.0, n_films=4, n_clips=5)
    calibration = Calibration.fit(held_out)

    p = calibration.probability(held_out.scores)
    low, high = calibration.band(held_out.scores)

    slopes = calibration.draws[:, 0]
    intercepts = calibration.draws[:, 1]
    p_of_draws = expit(np.outer(held_out.scores, slopes) + intercepts)  # [clips, draws]
    np.testing.assert_allclose(p, p_of_draws.mean(axis=1))
    first_decile = np.quantile(p_of_draws, 0.1, axis=1)
    np.testing.assert_allclose(low, np.minimum(first_decile, p))
    assert (high > low).all()


# What is like the training clips, and what is not.


@dataclass(frozen=True)
class Films:
    """Features of clips, [N, 40], and the film of each."""

    X: np.ndarray
    movies: np.ndarray


def draw_films(seed, n_films):
    """Draw 50 clips of each film, about a place of its own.

    The first ten features hardly vary within a film, but differ from film to film.
    """
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(n_films), 50)
    X = rng.normal(size=(movies.size, 40)) + 0.5 * rng.normal(size=(n_films, 40))[movies]
    X[:, :10] = 1e-3 * rng.normal(size=(n_films, 40))[movies][:, :10]
    X[:, :10] += 1e-6 * rng.normal(size=(movies.size, 10))
    return Films(X, movies.astype(str))


def strange_clips(seed):
    """Draw 50 clips unlike those of any film."""
    return 4 * np.random.default_rng(seed).normal(size=(50, 40))


def test_clips_of_a_film_like_the_others_are_hardly_ever_flagged_and_strange_ones_always():
    """Twenty times, nine films are drawn alike: eight to learn from, and one that is not seen.

    A share says how many of the training clips are nearer than a clip; above `LARGEST_SHARE` it is flagged.
    """
    shares_flagged = []
    for seed in range(20):
        films = draw_films(seed, n_films=9)
        is_unseen = films.movies == "8"
        training = OutOfDistribution.fit(films.X[~is_unseen], films.movies[~is_unseen])

        is_unseen_clip_flagged = training.shares(films.X[is_unseen]) > LARGEST_SHARE
        is_strange_clip_flagged = training.shares(strange_clips(seed)) > LARGEST_SHARE

        shares_flagged.append(is_unseen_clip_flagged.mean())
        assert is_strange_clip_flagged.all()
    assert np.mean(shares_flagged) < 0.05


def test_one_training_clip_that_is_stranger_still_keeps_no_strange_clip_from_being_flagged():
    """All features of one training clip are 1000. Those of strange clips are four times as spread as usual.

    Beside that one clip, strange clips are near to the others. They must be flagged all the same: a clip is
    compared with how far training clips usually are, not with the farthest.
    """
    films = draw_films(seed=19, n_films=9)
    films.X[0] = 1000

    training = OutOfDistribution.fit(films.X, films.movies)

    assert (training.shares(strange_clips(seed=1)) > LARGEST_SHARE).all()


def test_a_clip_at_the_median_distance_of_training_clips_has_a_share_of_one_half():
    """A distance is the root mean square of a clip's standardised features.

    Every standardised feature of the clip here is the median distance, and so is their root mean square.
    """
    films = draw_films(seed=0, n_films=6)
    training = OutOfDistribution.fit(films.X, films.movies)
    median_distance = np.interp(0.5, QUANTILE_LEVELS, training.distances)
    clip = training.mean + median_distance * training.scale

    (share,) = training.shares(clip[None])

    assert share == pytest.approx(0.5, abs=1e-6)


def test_where_all_training_clips_are_equally_far_only_a_clip_that_is_farther_is_flagged():
    """Each of six films has ten clips: five with the features (0, 1), and five with (1, 0).

    Their mean is (.5, .5), from which all clips are .5 away in each feature. So new clips at this distance
    are not flagged. The clips (0, 2) and (2, 0) are 1.5 away in one feature, farther than any training clip.
    """
    training_clips = np.array([[0.0, 1.0], [1.0, 0.0]], np.float32)
    clips_of_six_films = np.tile(training_clips, (30, 1))
    movies = np.repeat([f"film{number}" for number in range(6)], 10)
    farther_clips = np.array([[0.0, 2.0], [2.0, 0.0]], np.float32)

    training = OutOfDistribution.fit(clips_of_six_films, movies)

    assert (training.shares(training_clips) <= LARGEST_SHARE).all()
    assert (training.shares(farther_clips) > LARGEST_SHARE).all()


def winsorised_by_hand(X):
    """Clip each column three times at three standard deviations from its mean."""
    for _ in range(3):
        X = np.clip(X, X.mean(axis=0) - 3 * X.std(axis=0), X.mean(axis=0) + 3 * X.std(axis=0))
    return X


def distance_from(others, X):
    """Root mean square, over the features, of a clip's deviations from other clips; each counts at most 5."""
    deviations = np.clip((X - others.mean(axis=0)) / others.std(axis=0), -5, 5)
    return np.sqrt((deviations**2).mean(axis=1))


def three_films_with_two_odd_clips():
    """Films a, b and c of 7, 8 and 15 clips; the first clip of a and one of b are far from all others."""
    rng = np.random.default_rng(0)
    movies = np.repeat(["a", "b", "c"], [7, 8, 15])
    mean_of_film = np.repeat([2.0, 0.0, -1.0], [7, 8, 15])
    X = rng.normal(size=(30, 4)) + mean_of_film[:, None]
    X[0] = 40.0
    X[12] = -15.0
    return X, movies


def test_the_distance_of_a_training_clip_is_that_from_the_clips_of_all_other_films():
    """A clip of a new film is called odd if few training clips are as far from the others as it is from them.

    Its film is unseen, so the training clips are measured in the same way: each from the clips of other
    films. The model keeps quantiles of these distances, here of 30 clips of three films. Where mean and
    deviation are computed, features that are far out are first moved to three deviations (winsorised). The
    clip whose distance is measured keeps its own features, or it would not be found odd.
    """
    X, movies = three_films_with_two_odd_clips()

    kept = OutOfDistribution.fit(X, movies)

    winsorised = winsorised_by_hand(X)
    distances = np.empty(len(X))
    for movie in ("a", "b", "c"):
        is_of_film = movies == movie
        distances[is_of_film] = distance_from(winsorised[~is_of_film], X[is_of_film])
    assert kept.mean == pytest.approx(winsorised.mean(axis=0))
    assert kept.scale == pytest.approx(winsorised.std(axis=0))
    assert kept.distances == pytest.approx(np.quantile(distances, QUANTILE_LEVELS))
