"""Intervals over movies: Student's, within the metric's bounds, of what they say, undefined ones counted."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import special, stats

from obygaze_models.evaluation import jackknife_interval, metrics, t_interval
from obygaze_models.evaluation.intervals import are_equal, difference_bounds, ratio_interval

UNIT = (0.0, 1.0)


def is_undefined(interval):
    """Say whether an interval has neither end."""
    return math.isnan(interval.low) and math.isnan(interval.high)


def test_the_interval_is_students():
    """Of four films, and so of three degrees of freedom, at the level .95."""
    values = [0.2, 0.4, 0.5, 0.3]
    low, high = stats.t.interval(0.95, df=3, loc=np.mean(values), scale=stats.sem(values))

    result = t_interval(values)

    assert result.low == pytest.approx(low)
    assert result.high == pytest.approx(high)
    assert result.mean == pytest.approx(0.35)
    assert result.n_movies == 4
    assert result.n_undefined == 0


def test_undefined_movies_are_left_out_and_counted():
    """One movie of three has no value (NaN)."""
    result = t_interval([0.2, math.nan, 0.4])
    assert result.mean == pytest.approx(0.3)
    assert result.n_movies == 2
    assert result.n_undefined == 1


def test_if_all_movies_are_undefined_so_is_the_mean():
    """The only movie has no value (NaN)."""
    result = t_interval([math.nan])
    assert math.isnan(result.mean)


@pytest.mark.parametrize("covers", ["models", "method"])
@pytest.mark.parametrize("bounds", [None, UNIT], ids=["without bounds", "from 0 to 1"])
@pytest.mark.parametrize(("values", "mean"), [([0.4], 0.4), ([0.4, 0.9], 0.65)], ids=["one", "two"])
def test_one_movie_or_two_have_a_mean_and_no_interval(values, mean, bounds, covers):
    """Two movies leave one degree of freedom, with which Student's interval would hold nearly anything.

    So the AP of two movies would be 1.000 [0.009, 1.000]. No interval is given, whatever it is to cover.
    """
    result = t_interval(values, covers=covers, bounds=bounds)
    assert result.mean == pytest.approx(mean)
    assert is_undefined(result)


def test_the_interval_of_a_mean_between_0_and_1_is_students_on_the_scale_of_logits():
    """Five movies have an AP each; the bounds of AP are 0 and 1, and so must be those of the interval.

    The interval is therefore made for the logit of the mean AP. The jackknife gives it a standard error: the
    pseudo-value of a movie is 5 times the logit of all five movies less 4 times the logit without the movie.
    """
    aps = np.array([0.7, 0.9, 0.95, 0.8, 0.99])
    logit_of_mean = special.logit(aps.mean())
    pseudo_values = []
    for movie in range(5):
        logit_without_movie = special.logit(np.delete(aps, movie).mean())
        pseudo_values.append(5 * logit_of_mean - 4 * logit_without_movie)
    half_width = stats.t.ppf(0.975, df=4) * stats.sem(pseudo_values)

    result = t_interval(aps, bounds=(0.0, 1.0))

    assert result.mean == aps.mean()
    assert result.low == pytest.approx(special.expit(logit_of_mean - half_width))
    assert result.high == pytest.approx(special.expit(logit_of_mean + half_width))


def test_between_minus_1_and_1_the_interval_is_that_between_0_and_1_stretched():
    """Kappa and correlations lie from -1 to 1. A value v from 0 to 1 is stretched to 2 v - 1."""
    values = np.array([0.7, 0.9, 0.95, 0.8, 0.99])

    between_0_and_1 = t_interval(values, bounds=(0.0, 1.0))
    between_minus_1_and_1 = t_interval(2 * values - 1, bounds=(-1.0, 1.0))

    assert between_minus_1_and_1.low == pytest.approx(2 * between_0_and_1.low - 1)
    assert between_minus_1_and_1.high == pytest.approx(2 * between_0_and_1.high - 1)


def test_above_a_lower_bound_alone_the_interval_is_symmetric_on_the_log_scale():
    """Errors of five films are above 0, without an upper bound: the ends have the mean as geometric mean."""
    errors = np.array([0.7, 0.9, 0.95, 0.8, 0.99])

    result = t_interval(errors, bounds=(0.0, math.inf))

    assert np.sqrt(result.low * result.high) == pytest.approx(errors.mean())


def test_below_an_upper_bound_alone_the_interval_is_the_mirror_image():
    """Five values are above 0, without an upper bound, and the same values with a minus are below 0.

    The interval of these has the same ends with a minus, in the other order.
    """
    values = np.array([0.7, 0.9, 0.95, 0.8, 0.99])

    above_0 = t_interval(values, bounds=(0.0, math.inf))
    below_0 = t_interval(-values, bounds=(-math.inf, 0.0))

    assert below_0.low == -above_0.high
    assert below_0.high == -above_0.low


def test_infinite_bounds_are_no_bounds():
    """A metric without a lower and an upper bound has Student's interval as it is."""
    values = [0.7, 0.9, 0.95, 0.8, 0.99]

    without_bounds = t_interval(values)
    with_infinite_bounds = t_interval(values, bounds=(-math.inf, math.inf))

    assert with_infinite_bounds == without_bounds


def test_one_movie_with_all_the_errors_leaves_the_interval_defined():
    """Of six movies five have the value 1, the best there is, and one has .9.

    An interval of such values is computed from the means that leave out one movie each, as logits. Without
    the sixth movie the mean is 1, whose logit is infinite. The interval must be defined all the same: it
    holds the mean, .98, and stays below 1.
    """
    result = t_interval([1, 1, 1, 1, 1, 0.9], bounds=(0.0, 1.0))
    assert 0 < result.low < 0.95
    assert result.mean < result.high < 1


@given(st.lists(st.floats(0, 1), min_size=3, max_size=12))
def test_an_interval_with_bounds_stays_between_them_around_the_mean_or_is_undefined(values):
    """The values are from 0 to 1. If all are equal, nothing says how far another may be from that."""
    rounding = 1e-12
    result = t_interval(values, bounds=(0.0, 1.0))
    if not are_equal(np.array(values)):
        assert 0 <= result.low <= result.mean + rounding
        assert result.mean - rounding <= result.high <= 1
    else:
        assert is_undefined(result)


def test_the_interval_of_the_method_is_wider_by_nadeau_and_bengios_factor():
    """Nadeau and Bengio (2003) add the ratio of tested to trained films to 1/n, as training sides overlap.

    With 12 films left out one at a time, that is 1/11.
    """
    values = np.random.default_rng(0).normal(size=12)

    of_models = t_interval(values, covers="models")
    of_method = t_interval(values, covers="method")

    assert of_method.mean == of_models.mean
    ratio_of_widths = (of_method.high - of_method.low) / (of_models.high - of_models.low)
    ratio_of_variances = (1 / 12 + 1 / 11) / (1 / 12)
    assert ratio_of_widths**2 == pytest.approx(ratio_of_variances)


def test_the_jackknife_of_a_mean_over_movies_is_the_t_interval():
    """Seven movies of four clips each; the clips of a movie have one value."""
    value_of_movie = np.random.default_rng(1).random(7)
    movies = np.repeat(["a", "b", "c", "d", "e", "f", "g"], 4)
    value_of_clip = np.repeat(value_of_movie, 4)

    def mean_of_clips(rows):
        return float(value_of_clip[rows].mean())

    by_jackknife = jackknife_interval(mean_of_clips, movies, bounds=(0.0, 1.0))
    by_t = t_interval(value_of_movie, bounds=(0.0, 1.0))

    assert by_jackknife.mean == pytest.approx(by_t.mean)
    assert by_jackknife.low == pytest.approx(by_t.low)
    assert by_jackknife.high == pytest.approx(by_t.high)


def test_above_500_movies_the_jackknife_leaves_out_groups():
    """The work grows with the clips then, not with clips times movies.

    1000 movies of 2 clips each are left out by twos, so in 500 groups of 4 clips; each movie is in one.
    """
    movies = np.repeat([f"film{number:04}" for number in range(1000)], 2)
    rows_of_each_call = []

    def record_rows(rows):
        rows_of_each_call.append(rows)
        return 0.5

    jackknife_interval(record_rows, movies)

    _of_all_movies, *without_a_group = rows_of_each_call
    assert len(without_a_group) == 500
    all_left_out = set()
    for rows in without_a_group:
        movies_of_clips_left_out = movies[~rows]
        assert len(movies_of_clips_left_out) == 4
        assert len(set(movies_of_clips_left_out)) == 2
        all_left_out.update(movies_of_clips_left_out)
    assert all_left_out == set(movies)


def test_intervals_by_500_groups_are_as_wide_as_by_movies():
    """1000 movies of two clips each, drawn ten times: the jackknife takes them in 500 groups of two movies.

    It leaves out one group at a time, as leaving out 1000 movies one by one would take longer; an interval by
    movies is the standard. A standard error by 500 groups has 499 degrees of freedom, and so varies by
    1 / sqrt(2 * 499) = 3 % by chance, less as the mean of ten.
    """
    rng = np.random.default_rng(3)
    movies = np.repeat([f"film{number:04}" for number in range(1000)], 2)
    ratios_of_widths = []
    for _ in range(10):
        value_of_movie = rng.random(1000)
        value_of_clip = np.repeat(value_of_movie, 2)

        def mean_of_clips(rows, value_of_clip=value_of_clip):
            return float(value_of_clip[rows].mean())

        by_groups = jackknife_interval(mean_of_clips, movies)
        by_movies = t_interval(value_of_movie)
        ratios_of_widths.append((by_groups.high - by_groups.low) / (by_movies.high - by_movies.low))

    assert np.mean(ratios_of_widths) == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("movies", ["aabb", "aaaa"], ids=["undefined without movie a", "a single movie"])
def test_there_is_no_interval_where_the_metric_is_undefined_without_some_movie(movies):
    """The only positive clip is of movie a: without that movie there is no AUC.

    With all four clips it is 2/3, as two of three negative clips score lower than the positive one.
    """
    labels = np.array([1, 0, 0, 0])
    scores = np.array([0.4, 0.1, 0.5, 0.2])
    movie_of_clip = np.array(list(movies))

    def auc_of_rows(rows):
        return metrics.auc(labels[rows], scores[rows])

    result = jackknife_interval(auc_of_rows, movie_of_clip, bounds=(0.0, 1.0))

    assert result.mean == pytest.approx(2 / 3)
    assert is_undefined(result)


def test_two_movies_have_no_jackknife_interval():
    """The statistic, the share of clips that are not left out, is defined without either movie."""

    def share_of_clips(rows):
        return float(rows.mean())

    movies = np.array(["a", "a", "b", "b"])
    assert is_undefined(jackknife_interval(share_of_clips, movies))


@given(st.lists(st.floats(-0.5, 0.5), min_size=3, max_size=8))
def test_students_interval_of_differences_is_cut_off_at_the_differences_that_are_possible(differences):
    """An AUC less chance, .5, is between -.5 and .5. No possible value is cut off."""
    uncut = t_interval(differences)
    cut = t_interval(differences, possible=(-0.5, 0.5))

    assume(not are_equal(np.array(differences)))  # they have no interval
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
    """Each metric is within `bounds`: two AUCs, from 0 to 1, differ by -1 to 1.

    One may be known, as the AUC of chance is .5: then less is possible. Errors have no upper bound.
    """
    assert difference_bounds(bounds, **known) == expected


def test_nineteen_of_twenty_intervals_of_a_ratio_hold_the_ratio_of_the_true_means():
    """In each of 2000 draws 8 movies have a numerator of .16 and a denominator of .2 on average.

    Both rise together in a movie, as the AUCs of two models do.
    """
    rng = np.random.default_rng(0)
    n_draws, n_movies = 2000, 8
    common = rng.normal(size=(n_draws, n_movies))
    denominators = 0.2 + 0.05 * common + 0.03 * rng.normal(size=common.shape)
    numerators = 0.16 + 0.04 * common + 0.03 * rng.normal(size=common.shape)
    true_ratio = 0.16 / 0.2

    n_that_hold_it = 0
    for numerators_of_draw, denominators_of_draw in zip(numerators, denominators, strict=True):
        result = ratio_interval(numerators_of_draw, denominators_of_draw)
        if result.low <= true_ratio <= result.high:
            n_that_hold_it += 1

    assert n_that_hold_it / n_draws == pytest.approx(0.95, abs=0.015)


def test_a_ratio_whose_denominator_may_be_0_has_no_interval():
    """Denominators of .2, -.2 and .1 do not differ from 0 for sure."""
    result = ratio_interval([0.1, 0.2, 0.1], [0.2, -0.2, 0.1])
    assert result.mean == pytest.approx((0.1 + 0.2 + 0.1) / (0.2 - 0.2 + 0.1))
    assert math.isnan(result.low)


def test_a_ratio_of_two_movies_has_no_interval():
    """Two movies, with a numerator and a denominator each, leave one degree of freedom, which is too few."""
    result = ratio_interval([0.1, 0.2], [0.1, 0.2])
    assert math.isnan(result.low)


def test_movies_without_a_numerator_or_a_denominator_are_left_out_of_a_ratio():
    """Three movies have both. A fourth one has no numerator (NaN), and a fifth one no denominator."""
    of_three = ratio_interval([0.1, 0.2, 0.25], [0.2, 0.3, 0.4])
    of_five = ratio_interval([0.1, 0.2, 0.25, math.nan, 0.3], [0.2, 0.3, 0.4, 0.3, math.nan])

    assert of_five.mean == of_three.mean
    assert of_five.low == of_three.low
    assert of_five.high == of_three.high
