"""Planted logits come back from scores; what the training clips reach is known film by film."""

import numpy as np
import pytest
from scipy.special import expit

from obygaze_models.prediction.calibration import Calibration, calibration_error
from obygaze_models.prediction.out_of_distribution import LEVELS, LIMIT, OutOfDistribution
from obygaze_models.protocol import HeldOut


def planted(slope, intercept, *, n_films=12, per_film=1000, seed=0):
    """Scores whose true probability is sigmoid(slope * score + intercept)."""
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(n_films), per_film)
    scores = rng.normal(size=movies.size)
    return scores, (rng.random(movies.size) < expit(slope * scores + intercept)).astype(int), movies


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (2.0, -1.0), (0.5, 1.0)])
def test_planted_slope_and_intercept_are_recovered_and_films_left_out_are_calibrated(slope, intercept):
    scores, y, movies = planted(slope, intercept)
    found = Calibration.fit(HeldOut(scores, y, movies), n_draws=10)
    assert found.draws.mean(axis=0) == pytest.approx([slope, intercept], abs=0.1)
    assert found.p_skilled == pytest.approx(1.0)
    assert found.error < 0.05
    # A film that was not there at all.
    new, label, _ = planted(slope, intercept, n_films=1, seed=1)
    assert calibration_error(label, found.probability(new)) < 0.05


def test_scores_that_part_the_classes_leave_the_slope_finite_and_equal_scores_leave_it_flat():
    y, movies = np.tile([0, 1], 10), np.repeat(np.arange(4), 5)
    found = Calibration.fit(HeldOut(np.where(y == 1, 5.0, -5.0), y, movies))
    assert np.isfinite(found.draws).all()
    p = found.probability([5.0, -5.0])
    assert 0.8 < p[0] < 0.95  # ten comparisons of clips, all right, are no proof of more
    flat = Calibration.fit(HeldOut(np.ones(20), y, movies))
    assert flat.probability([1.0])[0] == pytest.approx(0.5, abs=0.01)


def test_the_order_of_clips_of_one_probability_does_not_decide_the_error():
    y = np.repeat([0, 1, 0, 1, 1, 0, 0, 0], 25)
    p = np.repeat([0.4, 0.5], 100)
    for order in (np.arange(200), np.random.default_rng(0).permutation(200)):
        assert calibration_error(y[order], p[order]) == pytest.approx((0.1 + 0.25) / 2)


def test_the_band_holds_the_probability_and_widens_where_films_differ():
    scores, y, movies = planted(1.0, 0.0, n_films=6, per_film=200)
    films_differ = (np.random.default_rng(1).random(len(y)) < expit(scores + 2 * (movies % 2) - 1)).astype(
        int
    )
    widths = []
    for labels in (y, films_differ):
        found = Calibration.fit(HeldOut(scores, labels, movies))
        low, high = found.band(scores)
        assert (low <= found.probability(scores)).all()
        assert (found.probability(scores) <= high).all()
        widths.append((high - low).mean())
    assert widths[1] > 1.5 * widths[0]


def test_a_shift_between_folds_does_not_turn_a_calibration_round():
    """Films rich in positives are scored by models of a lower intercept; within films scores rise."""
    rng = np.random.default_rng(3)
    movies = np.repeat(np.arange(8), 200)
    share = expit(np.linspace(-2, 1, 8))[movies]
    y = (rng.random(movies.size) < share).astype(int)
    zeros = -2.0 * share
    held_out = HeldOut(0.3 * (y - share) + rng.normal(scale=0.3, size=len(y)) + zeros, y, movies, zeros=zeros)
    assert np.corrcoef(held_out.scores, y)[0, 1] < -0.05
    found = Calibration.fit(held_out, zero=-0.8)
    assert (found.draws[:, 0] > 1).all()
    # What the model that is calibrated gives to a clip like the mean training clip has the mean share.
    assert found.probability([-0.8])[0] == pytest.approx(y.mean(), abs=0.06)


def test_scores_that_fall_with_the_label_tell_nothing_and_every_clip_has_the_films_rate():
    scores, y, movies = planted(-1.0, 0.5, n_films=6, per_film=100)
    found = Calibration.fit(HeldOut(scores, y, movies))
    assert found.p_skilled < 0.05
    np.testing.assert_allclose(found.probability([-5.0, 0.0, 5.0]), y.mean(), atol=0.03)


@pytest.mark.long  # simulates
def test_noise_of_a_few_clips_gives_every_clip_about_the_share_of_the_films():
    rng = np.random.default_rng(0)
    y, movies = np.tile([0, 1], 4), np.repeat(np.arange(4), 2)
    sure = []
    for _ in range(50):
        found = Calibration.fit(HeldOut(rng.normal(size=8), y, movies))
        p = found.probability(rng.normal(size=50))
        low, high = found.band(rng.normal(size=50))
        sure += [(p > 0.9).mean() + (p < 0.1).mean(), ((low > 0.5) | (high < 0.5)).mean()]
    assert np.mean(sure) < 0.02


def test_the_band_and_the_probability_are_of_the_same_draws():
    scores, y, movies = planted(1.0, 0.0, n_films=4, per_film=5)
    found = Calibration.fit(HeldOut(scores, y, movies))
    drawn = expit(np.outer(scores, found.draws[:, 0]) + found.draws[:, 1])
    np.testing.assert_allclose(found.probability(scores), drawn.mean(axis=1))
    low, high = found.band(scores)
    assert (low <= found.probability(scores)).all()
    np.testing.assert_allclose(np.minimum(np.quantile(drawn, 0.1, axis=1), drawn.mean(axis=1)), low)
    assert (high > low).all()


# What is like the training clips, and what is not.


def features(rng, n_films, per_film=50, n_features=40):
    """Films in places of their own; a quarter of the features hardly vary, but differ from film to film."""
    films = np.repeat(np.arange(n_films), per_film)
    X = rng.normal(size=(films.size, n_features)) + 0.5 * rng.normal(size=(n_films, n_features))[films]
    steady = slice(0, n_features // 4)
    X[:, steady] = 1e-3 * rng.normal(size=(n_films, n_features))[films][:, steady]
    X[:, steady] += 1e-6 * rng.normal(size=X[:, steady].shape)
    return X, films.astype(str)


def test_clips_of_a_film_like_the_others_are_hardly_ever_flagged_and_those_of_another_world_always():
    flagged = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, films = features(rng, 9)
        new, like = films == "8", np.isin(films, list("01234567"))
        fitted = OutOfDistribution.fit(X[like], films[like])
        flagged.append((fitted.shares(X[new]) > LIMIT).mean())
        strange = 4 * rng.normal(size=X[new].shape)
        assert (fitted.shares(strange) > LIMIT).all()
    assert np.mean(flagged) < 0.05


def test_one_training_clip_from_another_world_does_not_switch_the_flag_off():
    X, films = features(np.random.default_rng(0), 6)
    X[0] = 1000
    fitted = OutOfDistribution.fit(X, films)
    assert (fitted.shares(4 * np.random.default_rng(1).normal(size=(50, 40))) > LIMIT).all()


def test_shares_count_the_training_clips_that_are_nearer():
    X, films = features(np.random.default_rng(0), 6)
    fitted = OutOfDistribution.fit(X, films)
    assert np.all(np.diff(fitted.distances) >= 0)
    middle = np.interp(0.5, LEVELS, fitted.distances)
    standard = np.full((1, 40), middle)
    at_the_median = standard * fitted.scale + fitted.mean
    assert fitted.shares(at_the_median)[0] == pytest.approx(0.5, abs=1e-6)


def test_a_clip_as_far_as_half_of_the_training_clips_is_not_unlike_them():
    """Planted: answers yes and no, as often in every film, whose distances are all equal."""
    X = np.tile(np.array([[0.0, 1.0], [1.0, 0.0]], np.float32), (30, 1))
    measured = OutOfDistribution.fit(X, np.repeat([f"film{number}" for number in range(6)], 10))
    assert measured.shares(X[:2]).max() < LIMIT < measured.shares(2 * X[:2]).min()
