"""Intervals over movies: Student's, within the metric's bounds, of what they say, undefined ones counted."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from obygaze_models.evaluation import jackknife_interval, metrics, t_interval
from obygaze_models.evaluation.intervals import difference_bounds, ratio_interval

UNIT = (0.0, 1.0)
APS = np.array([0.7, 0.9, 0.95, 0.8, 0.99])  # one a movie


def ends(interval):
    """Return the lower and the upper end of an interval."""
    return interval.low, interval.high


def is_undefined(interval):
    """Say whether an interval has neither end."""
    return math.isnan(interval.low) and math.isnan(interval.high)


def test_the_interval_is_students():
    values = [0.2, 0.4, 0.5, 0.3]
    expected = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    result = t_interval(values)
    assert (result.low, result.high) == pytest.approx(expected)
    assert (result.mean, result.n_movies, result.n_undefined) == (pytest.approx(0.35), 4, 0)


def test_undefined_movies_are_left_out_and_counted():
    result = t_interval([0.2, math.nan, 0.4])
    assert (result.mean, result.n_movies, result.n_undefined) == (pytest.approx(0.3), 2, 1)
    assert math.isnan(t_interval([math.nan]).mean)


@pytest.mark.parametrize("covers", ["models", "method"])
@pytest.mark.parametrize("bounds", [None, UNIT], ids=["without bounds", "from 0 to 1"])
@pytest.mark.parametrize(("values", "mean"), [([0.4], 0.4), ([0.4, 0.9], 0.65)], ids=["one", "two"])
def test_one_movie_or_two_have_a_mean_and_no_interval(values, mean, bounds, covers):
    """Student's t of one degree of freedom would hold nearly anything: AP 1.000 [0.009, 1.000]."""
    result = t_interval(values, covers=covers, bounds=bounds)
    assert result.mean == pytest.approx(mean)
    assert is_undefined(result)


def test_between_0_and_1_it_is_students_interval_of_the_jackknifed_logit_of_the_mean():
    logit_of_mean = special.logit(APS.mean())
    logits_without_a_movie = special.logit([np.delete(APS, movie).mean() for movie in range(5)])
    pseudo_values = 5 * logit_of_mean - 4 * logits_without_a_movie
    half_width = stats.t.ppf(0.975, df=4) * stats.sem(pseudo_values)
    result = t_interval(APS, bounds=UNIT)

    assert result.mean == APS.mean()
    assert result.low == pytest.approx(special.expit(logit_of_mean - half_width))
    assert result.high == pytest.approx(special.expit(logit_of_mean + half_width))


def test_between_minus_1_and_1_the_interval_is_that_between_0_and_1_stretched():
    """Kappa and correlations lie there."""
    result = t_interval(2 * APS - 1, bounds=(-1.0, 1.0))
    between_0_and_1 = t_interval(APS, bounds=UNIT)
    assert result.low == pytest.approx(2 * between_0_and_1.low - 1)
    assert result.high == pytest.approx(2 * between_0_and_1.high - 1)


def test_above_a_lower_bound_alone_the_interval_is_symmetric_on_the_log_scale():
    """Errors have no upper bound: their mean is the geometric mean of the ends.

    Below an upper bound alone the interval is the mirror image, and infinite bounds are none.
    """
    errors = APS  # numbers above 0, taken as errors of as many films
    above_0 = t_interval(errors, bounds=(0.0, math.inf))
    below_0 = t_interval(-errors, bounds=(-math.inf, 0.0))
    assert above_0.low * above_0.high == pytest.approx(errors.mean() ** 2)
    assert ends(below_0) == (-above_0.high, -above_0.low)
    assert t_interval(errors, bounds=(-math.inf, math.inf)) == t_interval(errors)


def test_one_movie_with_all_the_errors_leaves_the_interval_defined():
    """Without the sixth film the mean is 1, where a logit is infinite."""
    result = t_interval([1, 1, 1, 1, 1, 0.9], bounds=UNIT)
    assert 0 < result.low < 0.95
    assert result.mean < result.high < 1


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
    """Nadeau and Bengio (2003) add the ratio of tested to trained films to 1/n, as training sides overlap.

    With 12 films left out one at a time, that is 1/11.
    """
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


def test_above_500_movies_the_jackknife_leaves_out_groups():
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


def test_intervals_by_500_groups_are_as_wide_as_by_movies():
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


@pytest.mark.parametrize("movies", ["aabb", "aaaa"], ids=["undefined without movie a", "a single movie"])
def test_there_is_no_interval_where_the_metric_is_undefined_without_some_movie(movies):
    """The only positive clip is of movie a: without that movie there is no AUC."""
    labels = np.array([1, 0, 0, 0])
    scores = np.array([0.4, 0.1, 0.5, 0.2])

    def auc(rows):
        return metrics.auc(labels[rows], scores[rows])

    result = jackknife_interval(auc, np.array(list(movies)), bounds=UNIT)
    assert result.mean == pytest.approx(2 / 3)  # two of three negatives score lower than the positive
    assert is_undefined(result)


def test_two_movies_have_no_jackknife_interval():
    def share_of_clips(rows):
        return float(rows.mean())

    assert is_undefined(jackknife_interval(share_of_clips, np.array(["a", "a", "b", "b"])))


@given(st.lists(st.floats(-0.5, 0.5), min_size=3, max_size=8))
def test_students_interval_of_differences_is_cut_off_at_the_differences_that_are_possible(differences):
    """An AUC less chance, .5, is between -.5 and .5. No possible value is cut off."""
    uncut = t_interval(differences)
    cut = t_interval(differences, possible=(-0.5, 0.5))
    assert -0.5 <= cut.low <= cut.high <= 0.5
    assert cut.low == pytest.approx(max(uncut.low, -0.5))
    assert cut.high == pytest.approx(min(uncut.high, 0.5))


@pytest.mark.parametrize(
    ("bounds", "known", "expected"),
    [
        (UNIT, {}, (-1.0, 1.0)),
        (UNIT, {"first": 0.5}, (-0.5, 0.5)),
        (UNIT, {"second": 0.5}, (-0.5, 0.5)),
        ((0.0, math.inf), {}, (-math.inf, math.inf)),
    ],
    ids=["two AUCs", "chance less an AUC", "an AUC less chance", "two errors"],
)
def test_a_difference_is_between_the_extremes_of_its_two_metrics(bounds, known, expected):
    assert difference_bounds(bounds, **known) == expected


def test_nineteen_of_twenty_intervals_of_a_ratio_hold_the_ratio_of_the_true_means():
    """Numerator and denominator of a movie rise together, as the AUCs of two models do."""
    rng = np.random.default_rng(0)
    n_draws, n_movies = 2000, 8
    common = rng.normal(size=(n_draws, n_movies))
    denominators = 0.2 + 0.05 * common + 0.03 * rng.normal(size=common.shape)
    numerators = 0.16 + 0.04 * common + 0.03 * rng.normal(size=common.shape)
    n_that_hold_it = 0
    for numerator, denominator in zip(numerators, denominators, strict=True):
        result = ratio_interval(numerator, denominator)
        if result.low <= 0.16 / 0.2 <= result.high:
            n_that_hold_it += 1

    assert n_that_hold_it / n_draws == pytest.approx(0.95, abs=0.015)


def test_a_ratio_of_two_movies_or_whose_denominator_may_be_0_has_no_interval():
    """Denominators of .2, -.2 and .1 do not differ from 0 for sure."""
    result = ratio_interval([0.1, 0.2, 0.1], [0.2, -0.2, 0.1])
    assert result.mean == pytest.approx((0.1 + 0.2 + 0.1) / (0.2 - 0.2 + 0.1))
    assert math.isnan(result.low)
    assert math.isnan(ratio_interval([0.1, 0.2], [0.1, 0.2]).low)


def test_movies_without_a_numerator_or_a_denominator_are_left_out_of_a_ratio():
    numerators, denominators = [0.1, 0.2, 0.25], [0.2, 0.3, 0.4]
    expected = ratio_interval(numerators, denominators)
    result = ratio_interval([*numerators, math.nan, 0.3], [*denominators, 0.3, math.nan])
    assert result.mean == expected.mean
    assert ends(result) == ends(expected)
