"""Intervals over movies: Student's, within the metric's bounds, of what they say, undefined ones counted."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from obygaze_models.evaluation import jackknife_interval, metrics, t_interval
from obygaze_models.evaluation.intervals import difference_bounds, ratio_interval

UNIT = (0.0, 1.0)


def test_the_interval_is_students():
    values = [0.2, 0.4, 0.5, 0.3]
    expected = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    result = t_interval(values)
    assert (result.low, result.high) == pytest.approx(expected)
    assert (result.mean, result.n_movies, result.n_undefined) == (pytest.approx(0.35), 4, 0)


def test_undefined_movies_are_left_out_and_counted():
    result = t_interval([0.2, math.nan, 0.4])
    assert (result.mean, result.n_movies, result.n_undefined) == (pytest.approx(0.3), 2, 1)


def test_one_movie_or_two_have_a_mean_and_no_interval_and_none_has_neither():
    """Of two, Student's t of one degree of freedom holds nearly anything: AP 1.000 [0.009, 1.000]."""
    for covers in ("models", "method"):
        assert math.isnan(t_interval([0.4, 0.9], covers=covers, bounds=UNIT).low)
    assert t_interval([0.4, 0.9]).mean == pytest.approx(0.65)
    two = jackknife_interval(lambda rows: float(rows.mean()), np.array(list("aabb")))
    assert math.isnan(two.low)
    assert math.isnan(t_interval([0.4]).low)
    assert t_interval([0.4]).mean == 0.4
    assert math.isnan(t_interval([math.nan]).mean)


def test_nineteen_of_twenty_intervals_hold_the_truth():
    draws = np.random.default_rng(0).normal(0.6, 0.1, size=(2000, 12))
    held = [interval.low <= 0.6 <= interval.high for interval in map(t_interval, draws)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_on_the_logit_scale_it_is_students_of_the_jackknifed_logit_of_the_mean():
    values = np.array([0.7, 0.9, 0.95, 0.8, 0.99])
    without = special.logit([np.delete(values, movie).mean() for movie in range(5)])
    pseudo = 5 * special.logit(values.mean()) - 4 * without
    reach = stats.t.ppf(0.975, 4) * stats.sem(pseudo)
    result = t_interval(values, bounds=UNIT)
    assert result.mean == values.mean()
    expected = special.expit(special.logit(values.mean()) + np.array([-reach, reach]))
    assert (result.low, result.high) == pytest.approx(tuple(expected))
    # Kappa and correlations: the same on -1 to 1.
    double = t_interval(2 * values - 1, bounds=(-1.0, 1.0))
    assert (double.low, double.high) == pytest.approx((2 * result.low - 1, 2 * result.high - 1))
    # Errors have one bound: the log scale, on which the mean of films' errors is in the middle.
    above = t_interval(values, bounds=(0.0, math.inf))
    assert above.low * above.high == pytest.approx(values.mean() ** 2)


def test_with_an_upper_bound_alone_it_mirrors_that_of_a_lower_bound_and_with_none_it_is_symmetric():
    values = np.array([0.7, 0.9, 0.95, 0.8, 0.99])
    below = t_interval(-values, bounds=(-math.inf, 0.0))
    above = t_interval(values, bounds=(0.0, math.inf))
    assert (below.low, below.high) == (-above.high, -above.low)
    unbounded = t_interval(values, bounds=(-math.inf, math.inf))
    assert unbounded == t_interval(values)


def test_one_movie_with_all_the_errors_leaves_the_interval_defined():
    result = t_interval([1, 1, 1, 1, 1, 0.9], bounds=UNIT)
    assert 0 < result.low < 0.95
    assert result.mean < result.high < 1


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=3, max_size=12))
def test_an_interval_with_bounds_stays_between_them_around_the_mean_or_is_undefined_at_them(values):
    result = t_interval(values, bounds=UNIT)
    if 0 < result.mean < 1:
        assert 0 <= result.low <= result.mean + 1e-12
        assert result.mean - 1e-12 <= result.high <= 1
    else:
        assert math.isnan(result.low)
        assert math.isnan(result.high)


def test_the_interval_of_the_method_is_wider_by_nadeau_and_bengios_factor():
    values = np.random.default_rng(0).normal(size=12)
    models, method = t_interval(values), t_interval(values, covers="method")
    assert method.mean == models.mean
    ratio = (method.high - method.low) / (models.high - models.low)
    assert ratio**2 == pytest.approx((1 / 12 + 1 / 11) / (1 / 12))


def test_the_jackknife_of_a_mean_over_movies_is_the_t_interval():
    rng = np.random.default_rng(1)
    movies = np.repeat(list("abcdefg"), 4)
    values = rng.random(7)
    clips = np.repeat(values, 4)
    result = jackknife_interval(lambda rows: float(clips[rows].mean()), movies, bounds=UNIT)
    expected = t_interval(values, bounds=UNIT)
    assert (result.mean, result.low, result.high) == pytest.approx(
        (expected.mean, expected.low, expected.high)
    )


def test_of_many_movies_five_hundred_groups_are_left_out():
    """The work grows with the clips then, not with clips times movies: 1000 movies are left out by twos."""
    movies = np.repeat([f"film{number:04}" for number in range(1000)], 2)
    masks = []

    def statistic(rows):
        masks.append(rows)
        return 0.5

    jackknife_interval(statistic, movies)
    _of_all, *of_the_rest = masks
    left_out = [movies[~rows] for rows in of_the_rest]
    assert [len(set(movies_left_out)) for movies_left_out in left_out] == [2] * 500
    assert [len(movies_left_out) for movies_left_out in left_out] == [4] * 500  # whole movies of 2 clips
    assert set(np.concatenate(left_out)) == set(movies)


def test_intervals_by_five_hundred_groups_are_as_wide_as_those_by_movies():
    rng = np.random.default_rng(3)
    movies = np.repeat([f"film{number:04}" for number in range(1000)], 2)
    ratios_of_widths = []
    for _ in range(10):
        values = rng.random(1000)
        clips = np.repeat(values, 2)
        by_groups = jackknife_interval(lambda rows, clips=clips: float(clips[rows].mean()), movies)
        by_movies = t_interval(values)
        ratios_of_widths.append((by_groups.high - by_groups.low) / (by_movies.high - by_movies.low))
    # A standard error of 499 degrees of freedom varies by 3 %; t of 499 is as wide as t of 999 to .1 %.
    assert np.mean(ratios_of_widths) == pytest.approx(1.0, abs=0.03)


def test_a_jackknife_without_a_movie_that_the_metric_needs_is_undefined():
    y, movies = np.array([1, 0, 0, 0]), np.array(list("aabb"))
    score = np.array([0.4, 0.1, 0.5, 0.2])
    result = jackknife_interval(lambda rows: metrics.auc(y[rows], score[rows]), movies, bounds=UNIT)
    assert result.mean == pytest.approx(2 / 3)
    assert math.isnan(result.low)
    assert math.isnan(result.high)
    alone = jackknife_interval(lambda rows: metrics.auc(y[rows], score[rows]), np.full(4, "a"))
    assert math.isnan(alone.low)


@given(st.lists(st.floats(-0.5, 0.5), min_size=3, max_size=8))
def test_an_interval_of_differences_is_students_as_far_as_differences_go(values):
    """What is cut off cannot be: the interval holds 0, or any value that can be, as often as before."""
    possible = difference_bounds(UNIT, second=0.5)
    whole, cut = t_interval(values), t_interval(values, possible=possible)
    assert possible == (-0.5, 0.5)
    assert -0.5 <= cut.low <= cut.high <= 0.5
    assert cut.low == pytest.approx(max(whole.low, -0.5))
    assert cut.high == pytest.approx(min(whole.high, 0.5))


def test_differences_of_two_metrics_reach_from_one_end_to_the_other():
    assert difference_bounds(UNIT) == (-1.0, 1.0)
    assert difference_bounds(UNIT, first=0.5) == (-0.5, 0.5)
    assert difference_bounds((0.0, math.inf)) == (-math.inf, math.inf)


def test_the_interval_of_a_ratio_holds_the_ratio_of_means():
    """Tops and bottoms of a movie go together, as the AUCs of two models do."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(2000, 8))
    bottoms = 0.2 + 0.05 * common + 0.03 * rng.normal(size=common.shape)
    tops = 0.16 + 0.04 * common + 0.03 * rng.normal(size=common.shape)
    held = []
    for top, bottom in zip(tops, bottoms, strict=True):
        result = ratio_interval(top, bottom)
        held.append(result.low <= 0.8 <= result.high)
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_a_ratio_to_what_may_be_nothing_has_no_interval():
    result = ratio_interval([0.1, 0.2, 0.1], [0.2, -0.2, 0.1])
    assert result.mean == pytest.approx(4.0)
    assert math.isnan(result.low)
    assert math.isnan(ratio_interval([0.1, 0.2], [0.1, 0.2]).low)
