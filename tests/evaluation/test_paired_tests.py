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
def test_p_is_the_share_of_all_sign_patterns_that_reach_the_difference(tenths):
    """If neither model is better, each film's difference could as well have the other sign.

    So p is the share of patterns of signs whose sum is as far from 0.
    """
    observed = abs(sum(tenths))
    n_patterns = 2 ** len(tenths)
    n_that_reach_it = 0
    for signs in itertools.product((1, -1), repeat=len(tenths)):
        if abs(np.dot(signs, tenths)) >= observed:
            n_that_reach_it += 1
    # Tenths are not exact in binary: equal sums must still count as equal.
    result = sign_flip(np.array(tenths) / 10)

    assert result.p == pytest.approx(n_that_reach_it / n_patterns)
    assert result.exact
    assert result.n_patterns == n_patterns


def test_movies_that_do_not_define_the_metric_are_left_out():
    """Two pairs are left, whose differences are both positive.

    Of the 4 patterns of signs (++, +-, -+, --), ++ and -- give a mean as far from 0.
    """
    result = sign_flip([0.1, np.nan, 0.2, np.nan])
    assert result.n_pairs == 2
    assert result.p == 2 / 4
    assert np.isnan(sign_flip([np.nan]).p)


def test_beyond_twenty_films_patterns_are_drawn_by_a_seed():
    """24 films have too many patterns to try all of them.

    With random signs the sum has a mean of 0, and the sum of squares as its variance.
    """
    differences = np.random.default_rng(1).normal(loc=0.3, scale=1.0, size=24)
    result = sign_flip(differences, seed=0)

    assert not result.exact
    assert sign_flip(differences, seed=0) == result
    assert sign_flip(differences, seed=1).p == pytest.approx(result.p, abs=0.01)
    sd_of_sum = np.sqrt(np.sum(differences**2))
    assert result.p == pytest.approx(2 * norm.sf(abs(differences.sum()) / sd_of_sum), abs=0.02)
    same_in_thirty_films = np.ones(30)
    assert 0 < sign_flip(same_in_thirty_films).p < 0.001


def test_the_detectable_difference_is_that_of_tables_of_power():
    """At 5 % a paired t test finds a difference of .889 SD in four of five samples of 12 films."""
    assert detectable(12) == pytest.approx(0.889, abs=0.001)
    assert detectable(34) == pytest.approx(0.495, abs=0.01)
    assert np.isnan(detectable(2))


@pytest.fixture
def differences_of_ten_films():
    """Differences of .5 SD on average."""
    return np.random.default_rng(3).normal(loc=0.5, scale=1, size=10)


def test_the_corrected_t_is_students_with_nadeau_and_bengios_larger_variance(differences_of_ten_films):
    """A film without a difference, NaN, does not count."""
    corrected = corrected_t([*differences_of_ten_films, np.nan])
    student = ttest_1samp(differences_of_ten_films, 0)
    variance_ratio = (1 / 10 + 1 / 9) / (1 / 10)
    assert corrected.t == pytest.approx(student.statistic / np.sqrt(variance_ratio))
    assert corrected.p > student.pvalue


def test_the_methods_interval_at_the_level_of_the_corrected_p_ends_at_0(differences_of_ten_films):
    """An interval at level 1 - p just touches 0, as test and interval are of one distribution."""
    p = corrected_t(differences_of_ten_films).p
    interval = t_interval(differences_of_ten_films, level=1 - p, covers="method")
    assert interval.low == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("differences", "p"),
    [([0.0] * 5, 1.0), ([1.0] * 5, 0.0), ([0.1], np.nan), ([0.5, 0.5], np.nan)],
    ids=["all are 0", "all are 1", "one film", "two films"],
)
def test_the_corrected_t_of_differences_that_do_not_vary_or_are_too_few(differences, p):
    np.testing.assert_equal(corrected_t(differences).p, p)  # NaN equals NaN


def test_what_folds_share_deceives_the_sign_flip_but_not_the_corrected_t():
    """Two equally good methods: their training sides overlap, which moves all differences of a data set."""
    rng = np.random.default_rng(4)
    significant_by_sign_flip = []
    significant_by_corrected_t = []
    for _ in range(1000):
        shared_by_folds = rng.normal() * np.sqrt(1 / 9)
        differences = rng.normal(size=10) + shared_by_folds
        significant_by_sign_flip.append(sign_flip(differences).p <= 0.05)
        significant_by_corrected_t.append(corrected_t(differences).p <= 0.05)

    assert np.mean(significant_by_sign_flip) > 0.1
    assert np.mean(significant_by_corrected_t) == pytest.approx(0.05, abs=0.02)
