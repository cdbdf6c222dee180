"""Planted logits come back from scores; what the training clips reach is known film by film."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import expit

from obygaze_models.prediction.calibration import Calibration, calibration_error
from obygaze_models.prediction.out_of_distribution import LARGEST_SHARE, QUANTILE_LEVELS, OutOfDistribution
from obygaze_models.protocol import HeldOut


def planted(slope, intercept, *, n_films=12, n_clips=1000, seed=0):
    """Draw scores whose true probability is sigmoid(slope * score + intercept), and labels by it."""
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(n_films), n_clips)
    scores = rng.normal(size=movies.size)
    is_positive = rng.random(movies.size) < expit(slope * scores + intercept)
    return HeldOut(scores, is_positive.astype(int), movies)


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (2.0, -1.0), (0.5, 1.0)])
def test_a_planted_slope_and_intercept_are_recovered(slope, intercept):
    calibration = Calibration.fit(planted(slope, intercept), n_draws=10)
    assert calibration.draws.mean(axis=0) == pytest.approx([slope, intercept], abs=0.1)
    assert calibration.p_skilled == pytest.approx(1.0)
    assert calibration.error < 0.05
    unseen_film = planted(slope, intercept, n_films=1, seed=1)
    p = calibration.probability(unseen_film.scores)
    assert calibration_error(unseen_film.y, p) < 0.05


def test_scores_that_separate_the_classes_leave_the_slope_finite():
    """Ten comparisons of clips, all right, are no proof of more than some 90 %."""
    y = np.tile([0, 1], 10)
    movies = np.repeat(np.arange(4), 5)
    calibration = Calibration.fit(HeldOut(np.where(y == 1, 5.0, -5.0), y, movies))
    assert np.isfinite(calibration.draws).all()
    assert 0.8 < calibration.probability([5.0])[0] < 0.95


def test_equal_scores_have_the_share_of_positives():
    y = np.tile([0, 1], 10)
    movies = np.repeat(np.arange(4), 5)
    calibration = Calibration.fit(HeldOut(np.ones(20), y, movies))
    assert calibration.probability([1.0])[0] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    "order", [np.arange(200), np.random.default_rng(0).permutation(200)], ids=["in order", "shuffled"]
)
def test_the_order_of_clips_of_one_probability_does_not_decide_the_error(order):
    """Of 100 clips with p .4 half are positive, of 100 with p .5 a quarter."""
    y = np.repeat([0, 1, 0, 1, 1, 0, 0, 0], 25)
    p = np.repeat([0.4, 0.5], 100)
    assert calibration_error(y[order], p[order]) == pytest.approx((0.1 + 0.25) / 2)


def test_the_band_holds_the_probability():
    held_out = planted(1.0, 0.0, n_films=6, n_clips=200)
    calibration = Calibration.fit(held_out)
    low, high = calibration.band(held_out.scores)
    p = calibration.probability(held_out.scores)
    assert (low <= p).all()
    assert (p <= high).all()


def test_the_band_is_wider_where_films_differ():
    """The log odds of every second film are higher by two."""
    alike = planted(1.0, 0.0, n_films=6, n_clips=200)
    p = expit(alike.scores + 2 * (alike.movies % 2) - 1)
    y = (np.random.default_rng(1).random(1200) < p).astype(int)
    unlike = HeldOut(alike.scores, y, alike.movies)

    def mean_width(held_out):
        low, high = Calibration.fit(held_out).band(held_out.scores)
        return (high - low).mean()

    assert mean_width(unlike) > 1.5 * mean_width(alike)


def test_a_shift_between_folds_does_not_turn_a_calibration_round():
    """Films rich in positives are scored by models of a lower intercept; within films scores rise."""
    rng = np.random.default_rng(3)
    movies = np.repeat(np.arange(8), 200)
    share = expit(np.linspace(-2, 1, 8))[movies]
    y = (rng.random(movies.size) < share).astype(int)
    training_means = -2.0 * share
    scores = 0.3 * (y - share) + rng.normal(scale=0.3, size=len(y)) + training_means
    held_out = HeldOut(scores, y, movies, training_means=training_means)
    assert np.corrcoef(held_out.scores, y)[0, 1] < -0.05
    calibration = Calibration.fit(held_out, training_mean=-0.8)
    assert (calibration.draws[:, 0] > 1).all()
    # What the model that is calibrated gives to a clip like the mean training clip has the mean share.
    assert calibration.probability([-0.8])[0] == pytest.approx(y.mean(), abs=0.06)


def test_scores_that_fall_with_the_label_give_every_clip_the_share_of_positives():
    held_out = planted(-1.0, 0.5, n_films=6, n_clips=100)
    calibration = Calibration.fit(held_out)
    assert calibration.p_skilled < 0.05
    np.testing.assert_allclose(calibration.probability([-5.0, 0.0, 5.0]), held_out.y.mean(), atol=0.03)


@pytest.mark.long  # simulates
def test_noise_of_eight_clips_is_hardly_ever_sure():
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 4)
    movies = np.repeat(np.arange(4), 2)
    shares_sure = []
    for _ in range(50):
        calibration = Calibration.fit(HeldOut(rng.normal(size=8), y, movies))
        p = calibration.probability(rng.normal(size=50))
        low, high = calibration.band(rng.normal(size=50))
        shares_sure.append(((p > 0.9) | (p < 0.1)).mean())
        shares_sure.append(((low > 0.5) | (high < 0.5)).mean())
    assert np.mean(shares_sure) < 0.02


def test_the_band_and_the_probability_are_of_the_same_draws():
    held_out = planted(1.0, 0.0, n_films=4, n_clips=5)
    calibration = Calibration.fit(held_out)
    slopes = calibration.draws[:, 0]
    intercepts = calibration.draws[:, 1]
    p_of_draws = expit(np.outer(held_out.scores, slopes) + intercepts)
    p = calibration.probability(held_out.scores)
    np.testing.assert_allclose(p, p_of_draws.mean(axis=1))
    low, high = calibration.band(held_out.scores)
    np.testing.assert_allclose(low, np.minimum(np.quantile(p_of_draws, 0.1, axis=1), p))
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


def test_clips_of_a_film_like_the_others_are_hardly_ever_flagged():
    shares_flagged = []
    for seed in range(20):
        films = draw_films(seed, 9)
        is_unseen = films.movies == "8"
        training = OutOfDistribution.fit(films.X[~is_unseen], films.movies[~is_unseen])
        shares_flagged.append((training.shares(films.X[is_unseen]) > LARGEST_SHARE).mean())
    assert np.mean(shares_flagged) < 0.05


def test_strange_clips_are_always_flagged():
    for seed in range(20):
        films = draw_films(seed, 8)
        training = OutOfDistribution.fit(films.X, films.movies)
        assert (training.shares(strange_clips(seed)) > LARGEST_SHARE).all()


def test_a_strange_training_clip_does_not_switch_the_flag_off():
    films = draw_films(0, 6)
    films.X[0] = 1000
    training = OutOfDistribution.fit(films.X, films.movies)
    assert (training.shares(strange_clips(1)) > LARGEST_SHARE).all()


def test_a_share_counts_the_training_clips_that_are_nearer():
    films = draw_films(0, 6)
    training = OutOfDistribution.fit(films.X, films.movies)
    assert np.all(np.diff(training.distances) >= 0)
    median = np.interp(0.5, QUANTILE_LEVELS, training.distances)
    at_the_median = median * training.scale + training.mean
    assert training.shares(at_the_median[None])[0] == pytest.approx(0.5, abs=1e-6)


def test_a_clip_as_far_as_half_of_the_training_clips_is_not_unlike_them():
    """Planted: answers yes and no, as often in every film, whose distances are all equal."""
    X = np.tile(np.array([[0.0, 1.0], [1.0, 0.0]], np.float32), (30, 1))
    training = OutOfDistribution.fit(X, np.repeat([f"film{number}" for number in range(6)], 10))
    assert training.shares(X[:2]).max() < LARGEST_SHARE
    assert training.shares(2 * X[:2]).min() > LARGEST_SHARE
