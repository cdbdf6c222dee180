"""Two tests of two questions: the sign-flip test of trained models, the corrected t test of methods."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, ttest_1samp

from obygaze_models.evaluation import t_interval
from obygaze_models.evaluation.paired_tests import (
    N_DRAWS,
    corrected_t,
    detectable,
    sign_flip,
    smallest_p,
)


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=8))
def test_p_is_the_share_of_all_sign_patterns_that_reach_the_difference(tenths):
    """If neither model is better, each film's difference could as well have the other sign.

    So p is the share of patterns of signs whose sum is as far from 0. Differences are tenths, such as 3 for
    .3, which are not exact in binary: equal sums must still count as equal.
    """
    observed = abs(sum(tenths))
    patterns_of_signs = list(itertools.product((1, -1), repeat=len(tenths)))
    n_that_reach_it = 0
    for signs in patterns_of_signs:
        sum_with_signs = sum(sign * tenth for sign, tenth in zip(signs, tenths, strict=True))
        if abs(sum_with_signs) >= observed:
            n_that_reach_it += 1

    result = sign_flip(np.array(tenths) / 10)

    assert result.p == pytest.approx(n_that_reach_it / len(patterns_of_signs))
    assert result.exact
    assert result.n_patterns == len(patterns_of_signs)


def test_movies_that_do_not_define_the_metric_are_left_out():
    """Four movies, of which two have a difference: .1 and .2.

    Of the 4 patterns of signs (++, +-, -+, --), ++ and -- give a mean as far from 0.
    """
    result = sign_flip([0.1, np.nan, 0.2, np.nan])
    assert result.n_pairs == 2
    assert result.p == 2 / 4


def test_without_a_movie_that_defines_the_metric_there_is_no_p():
    """The only movie has no difference of the two models (NaN)."""
    result = sign_flip([np.nan])
    assert np.isnan(result.p)
    assert (result.n_pairs, result.n_patterns) == (0, 0)


@pytest.fixture
def differences_of_24_films():
    """Differences with a mean of .3 SD; 24 films have too many patterns of signs to try all of them."""
    return np.random.default_rng(1).normal(loc=0.3, scale=1.0, size=24)


def test_beyond_twenty_films_patterns_are_drawn_by_a_seed(differences_of_24_films):
    """The test of 24 films tries a random part of the 2^24 patterns of signs.

    One seed gives the same result each time, and another seed nearly the same p.
    """
    result = sign_flip(differences_of_24_films, seed=0)

    assert not result.exact
    assert sign_flip(differences_of_24_films, seed=0) == result
    assert sign_flip(differences_of_24_films, seed=1).p == pytest.approx(result.p, abs=0.01)


def test_the_p_of_drawn_patterns_is_near_that_of_a_normal_distribution(differences_of_24_films):
    """With random signs the sum has a mean of 0, and as its variance the sum of the squared differences."""
    observed_sum = differences_of_24_films.sum()
    sd_of_sum = np.sqrt(np.sum(differences_of_24_films**2))
    two_sided_p = 2 * norm.sf(abs(observed_sum) / sd_of_sum)

    result = sign_flip(differences_of_24_films, seed=0)

    assert result.p == pytest.approx(two_sided_p, abs=0.02)


def test_the_p_of_drawn_patterns_is_never_0():
    """Of 30 equal differences only 2 of 2^30 patterns reach the sum: no draw is likely to find one.

    The differences as they are count as one more draw (Phipson and Smyth 2010).
    """
    equal_differences = np.ones(30)
    assert sign_flip(equal_differences).p == 1 / (N_DRAWS + 1)


def test_the_detectable_difference_is_that_of_tables_of_power():
    """A paired t test at 5 % finds it in four of five samples: .889 SD with 12 films, .495 SD with 34.

    Three films show only one of 3.26 SD, and two films none.
    """
    assert detectable(n_pairs=3) == pytest.approx(3.26, abs=0.01)
    assert detectable(n_pairs=12) == pytest.approx(0.889, abs=0.001)
    assert detectable(n_pairs=34) == pytest.approx(0.495, abs=0.01)
    assert np.isnan(detectable(n_pairs=2))


@pytest.fixture
def differences_of_ten_films():
    """Differences of .5 SD on average."""
    return np.random.default_rng(3).normal(loc=0.5, scale=1, size=10)


def test_the_corrected_t_is_students_with_nadeau_and_bengios_larger_variance(differences_of_ten_films):
    """Student's variance of the mean of 10 folds has the factor 1/10.

    Nadeau and Bengio add the clips tested per clip trained on: 1/9, as each fold tests 1 film and trains
    on 9. A film without a difference, NaN, does not count.
    """
    corrected = corrected_t([*differences_of_ten_films, np.nan])

    student = ttest_1samp(differences_of_ten_films, 0)
    variance_ratio = (1 / 10 + 1 / 9) / (1 / 10)
    assert corrected.t == pytest.approx(student.statistic / np.sqrt(variance_ratio))
    assert corrected.p > student.pvalue


def test_the_methods_interval_at_the_level_of_the_corrected_p_ends_at_0(differences_of_ten_films):
    """The corrected t test and the interval of the method come of one distribution.

    So where the test gives p, the interval at level 1 - p just touches 0.
    """
    p = corrected_t(differences_of_ten_films).p
    interval = t_interval(differences_of_ten_films, level=1 - p, covers="method")
    assert interval.low == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("differences", "t", "p"),
    [
        ([0.0] * 5, 0.0, 1.0),
        ([1.0] * 5, np.nan, 1 / 16),
        ([0.1], np.nan, np.nan),
        ([0.5, 0.5], np.nan, np.nan),
    ],
    ids=["all are 0", "all are 1", "one film", "two films"],
)
def test_the_corrected_t_of_differences_that_do_not_vary_or_are_too_few(differences, t, p):
    """Differences that are all 0 show nothing (p = 1), and equal ones beside 0 no more than their signs.

    Five coins show one side in one of 16 throws. Of one or two films nothing can be said (NaN).
    """
    result = corrected_t(differences)
    np.testing.assert_equal((result.t, result.p), (t, p))  # takes NaN as equal to NaN


def test_what_folds_share_deceives_the_sign_flip_but_not_the_corrected_t():
    """1000 data sets of 10 films on which two methods are equally good.

    Folds share most of their training films, which moves all differences of a data set together. A test
    at .05 should find a difference in 5 % of the data sets: the corrected t does, the sign flip in more.

    The corrected t assumes that the common part has the variance of one film's difference, times the films
    tested over the films trained on in a fold: 1 / 9. So it is planted.
    """
    rng = np.random.default_rng(4)
    variance_of_common_part = 1 / 9
    significant_by_sign_flip = []
    significant_by_corrected_t = []
    for _ in range(1000):
        moved_together_by = rng.normal() * np.sqrt(variance_of_common_part)
        differences = rng.normal(size=10) + moved_together_by
        significant_by_sign_flip.append(sign_flip(differences).p <= 0.05)
        significant_by_corrected_t.append(corrected_t(differences).p <= 0.05)

    assert np.mean(significant_by_sign_flip) > 0.1
    assert np.mean(significant_by_corrected_t) == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize(("n_films", "is_exact"), [(20, True), (21, False)])
def test_up_to_twenty_films_all_patterns_of_signs_are_tried(n_films, is_exact):
    """A report says whether p is exact, and of how many patterns it is."""
    result = sign_flip(np.ones(n_films))
    assert result.exact == is_exact
    assert result.n_patterns == (2**20 if is_exact else N_DRAWS)


@pytest.mark.parametrize(("n_films", "p"), [(0, 1.0), (1, 1.0), (2, 0.5), (12, 2 / 4096)])
def test_the_smallest_p_is_that_of_two_patterns_of_all(n_films, p):
    """Of so few films no difference can be shown by a smaller p; of one film or none, by none below 1."""
    assert smallest_p(n_films) == p
