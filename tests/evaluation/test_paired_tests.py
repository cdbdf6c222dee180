"""Two tests of two questions: the sign-flip test of trained models, the corrected t test of methods."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, ttest_1samp

from obygaze_models.evaluation import t_interval
from obygaze_models.evaluation.paired_tests import corrected_t, detectable, sign_flip


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=8))
def test_p_is_the_share_of_all_sign_patterns_that_reach_the_difference(values):
    sums = [abs(np.dot(signs, values)) for signs in itertools.product((1, -1), repeat=len(values))]
    expected = np.mean(np.array(sums) >= abs(sum(values)))
    # Tenths are not exact in binary: equal sums must still count as equal.
    result = sign_flip(np.array(values) / 10)
    assert result.p == pytest.approx(expected)
    assert result.exact
    assert result.n_patterns == 2 ** len(values)


def test_movies_that_do_not_define_the_metric_are_left_out_and_counted():
    result = sign_flip([0.1, np.nan, 0.2, np.nan])
    assert (result.n_pairs, result.p) == (2, 0.5)
    assert np.isnan(sign_flip([np.nan]).p)


def test_beyond_twenty_films_patterns_are_drawn_by_a_seed_and_p_is_never_0():
    values = np.random.default_rng(1).normal(0.3, 1.0, 24)
    first, again, other = (sign_flip(values, seed=seed) for seed in (0, 0, 1))
    assert not first.exact
    assert first == again
    assert other.p == pytest.approx(first.p, abs=0.01)
    assert first.p == pytest.approx(2 * norm.sf(abs(values.sum()) / np.sqrt((values**2).sum())), abs=0.02)
    assert 0 < sign_flip(np.ones(30)).p < 0.001


def test_under_the_null_p_below_5_percent_comes_in_5_percent():
    rng = np.random.default_rng(2)
    low = [sign_flip(rng.normal(size=9)).p <= 0.05 for _ in range(2000)]
    assert np.mean(low) == pytest.approx(0.05, abs=0.015)


def test_what_is_detectable_is_what_tables_of_power_say():
    """With 12 films a paired t test finds .89 SD four times of five: the tables' value."""
    assert detectable(12) == pytest.approx(0.889, abs=0.001)
    assert detectable(34) == pytest.approx(0.495, abs=0.01)
    assert np.isnan(detectable(2))


def test_the_corrected_t_is_students_with_the_variance_of_overlapping_training_sides():
    values = np.random.default_rng(3).normal(0.5, 1, 10)
    result, plain = corrected_t([*values, np.nan]), ttest_1samp(values, 0)
    assert result.t == pytest.approx(plain.statistic * np.sqrt((1 / 10) / (1 / 10 + 1 / 9)))
    assert result.p > plain.pvalue
    interval = t_interval(values, 1 - result.p, covers="method")
    assert interval.low == pytest.approx(0, abs=1e-12)


def test_the_corrected_t_of_equal_or_too_few_differences():
    assert corrected_t(np.zeros(5)).p == 1.0
    assert corrected_t(np.ones(5)).p == 0.0
    assert np.isnan([corrected_t([0.1]).p, corrected_t([0.5, 0.5]).p]).all()


def test_folds_that_move_together_deceive_the_sign_flip_but_not_the_corrected_t():
    """Two equally good methods: what their training sides share moves all differences of a data set."""
    rng = np.random.default_rng(4)
    flipped, corrected = [], []
    for _ in range(1000):
        differences = rng.normal(size=10) + rng.normal() * np.sqrt(1 / 9)
        flipped.append(sign_flip(differences).p <= 0.05)
        corrected.append(corrected_t(differences).p <= 0.05)
    assert np.mean(flipped) > 0.1
    assert np.mean(corrected) == pytest.approx(0.05, abs=0.02)
