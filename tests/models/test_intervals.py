"""Intervals over movies: Student's, with the undefined ones counted."""

import math

import numpy as np
import pytest
from scipy import stats

from obygaze_models.evaluation import t_interval


def test_the_interval_is_students():
    values = [0.2, 0.4, 0.5, 0.3]
    expected = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    found = t_interval(values)
    assert (found.low, found.high) == pytest.approx(expected)
    assert (found.mean, found.n_movies, found.n_undefined) == (pytest.approx(0.35), 4, 0)


def test_undefined_movies_are_left_out_and_counted():
    found = t_interval([0.2, math.nan, 0.4])
    assert (found.mean, found.n_movies, found.n_undefined) == (pytest.approx(0.3), 2, 1)


def test_one_movie_has_a_mean_and_no_interval_and_none_has_neither():
    assert math.isnan(t_interval([0.4]).low)
    assert t_interval([0.4]).mean == 0.4
    assert math.isnan(t_interval([math.nan]).mean)


def test_nineteen_of_twenty_intervals_hold_the_truth():
    draws = np.random.default_rng(0).normal(0.6, 0.1, size=(2000, 12))
    held = [interval.low <= 0.6 <= interval.high for interval in map(t_interval, draws)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)
