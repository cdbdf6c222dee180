"""Rates, differences and trends of groups of films are held as often as said, whatever the model knows."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from obygaze_film import comparison
from obygaze_film.comparison import FilmSample, estimate_contrast, estimate_groups, sample_of
from obygaze_film.draws import SEQUENTIAL_POISSON, inclusion_chances
from tests.film.films import planted_cells


def equal_cells(p):
    """Plant cells of one second of content each, with these probabilities."""
    return planted_cells(content_s=np.ones(len(p)), p=p)


ALWAYS, NOTHING, OPPOSITE = 1.0, 0.0, -1.0
"""Whether a planted model says which windows are positive, but for noise: always, never, or reversed."""


class PlantedFilms(NamedTuple):
    """Films of 60 windows: what is known of each, and the share of its windows that is positive in truth."""

    samples: list[FilmSample]
    rates: np.ndarray


def planted_films(seed, *, n_films=30, n_judged=12, n_windows=15, model_says=ALWAYS, more_positive=0.0):
    """Plant films of 60 windows, of which the first `n_judged` films have `n_windows` judged windows each.

    The share of a film's windows that are positive varies around 1/4 (beta with mean 2 / (2 + 6)), and is
    `more_positive` larger. A model of `model_says` 1 gives about .18 to negatives and .58 to positives, one
    of 0 about .3 to all, and one of -1 about .42 to negatives and .02 to positives.
    """
    rng = np.random.default_rng(seed)
    films, rates = [], []
    for film in range(n_films):
        uniform = rng.random(60)
        positive_share = np.clip(rng.beta(2, 6) + more_positive, 0, 1)
        y = (uniform < positive_share).astype(float)
        noise = 0.1 * rng.normal(size=60)
        p = np.clip(0.3 + model_says * 0.4 * (y - 0.3) + noise, 0, 1)
        n_judged_windows = n_windows if film < n_judged else 0
        judged = rng.permutation(60)[:n_judged_windows]
        films.append(sample_of(equal_cells(p), judged, y[judged]))
        rates.append(y.mean())
    return PlantedFilms(films, np.array(rates))


def judged_film(*, expected, judged, drawn=None, variance=0.0, covariance=0.0):
    """Plant a film of which ten windows are judged, `judged` of them positive.

    The model's mean probability is `expected` in the whole film and `drawn` in the judged windows; the same
    if `drawn` is not given.
    """
    if drawn is None:
        drawn = expected
    return FilmSample(
        expected=expected, judged=judged, drawn=drawn, covariance=covariance, variance=variance, n=10
    )


def alternating(n):
    """Put films into two groups in turn: 0, 1, 0, 1, ..."""
    return np.arange(n) % 2


def numbers_of(estimate):
    """Return value, low and high."""
    return np.array([estimate.value, estimate.low, estimate.high])


@pytest.mark.parametrize("model_says", [ALWAYS, NOTHING, OPPOSITE])
def test_no_model_matters_if_every_window_is_judged(model_says):
    """All 60 windows of eleven films are judged, a film a year, with a good, a useless or a wrong model.

    Whatever it says, the trend along the years is the least-squares slope of the films' true shares, and the
    share of all films together is their mean. The model saves no judgement: without it as many are needed
    (ratio 1).
    """
    films, true_shares = planted_films(seed=3, n_films=11, n_judged=11, n_windows=60, model_says=model_says)
    years = np.arange(11.0)
    slope_of_true_shares, _intercept = np.polyfit(years, true_shares, deg=1)

    trend = estimate_contrast(films, years)
    (share_of_all,) = estimate_groups([films])

    assert trend.value == pytest.approx(slope_of_true_shares)
    assert share_of_all.value == pytest.approx(true_shares.mean())
    assert share_of_all.sample_size_ratio == pytest.approx(1)


class Simulated(NamedTuple):
    """Estimates of one mean rate, .25, from 200 data sets."""

    coverage: float  # in which share of data sets the interval holds the rate
    mean_width: float
    mean_sample_size_ratio: float  # how many times as many judgements are needed without the model


def simulated_estimates(model_says):
    """Estimate the mean rate of planted films, .25, from 200 data sets."""
    estimates = []
    for seed in range(200):
        estimates += estimate_groups([planted_films(seed, model_says=model_says).samples])
    return Simulated(
        coverage=np.mean([estimate.low <= 0.25 <= estimate.high for estimate in estimates]),
        mean_width=np.mean([estimate.high - estimate.low for estimate in estimates]),
        mean_sample_size_ratio=np.mean([estimate.sample_size_ratio for estimate in estimates]),
    )


@pytest.mark.long  # simulates
@pytest.mark.nightly
def test_intervals_of_a_rate_hold_it_whatever_the_model():
    """A 95 % interval must hold the true rate in about 95 % of data sets, even with a useless or wrong model.

    The model is always right, knows nothing, or says the opposite. A good model saves a third of the
    judgements or more: 1.5 times as many would be needed without it. A bad one costs next to nothing. 200
    data sets leave a coverage uncertain by .015 (one standard error). `benchmarks/planted/films.py` has all
    designs.
    """
    good = simulated_estimates(ALWAYS)
    useless = simulated_estimates(NOTHING)
    wrong = simulated_estimates(OPPOSITE)

    for simulated in (good, useless, wrong):
        assert 0.92 <= simulated.coverage <= 0.985
    assert good.mean_sample_size_ratio > 1.5
    assert useless.mean_sample_size_ratio > 0.9
    assert wrong.mean_sample_size_ratio > 0.9
    assert good.mean_width < 0.8 * useless.mean_width
    assert wrong.mean_width == pytest.approx(useless.mean_width, rel=0.05)


@pytest.mark.long  # simulates
@pytest.mark.nightly
def test_intervals_of_a_difference_of_two_groups_contain_the_true_difference():
    """Planted: the share of positive windows is .2 larger in one group of 30 films than in another.

    Of 200 such pairs of groups, 95 % of the intervals should contain .2. 200 pairs leave this coverage
    uncertain by .015 (one standard error): .92 is two of these below .95. No single estimate may be further
    off than by as much again as the difference itself.
    """
    true_difference = 0.2
    is_in_interval = []
    for seed in range(200):
        other_seed = seed + 1000  # so that the films of the two groups are drawn independently
        fewer = planted_films(seed).samples
        more = planted_films(other_seed, more_positive=true_difference).samples
        estimate = estimate_contrast([*more, *fewer], np.repeat([1.0, 0.0], 30))
        is_in_interval.append(estimate.low <= true_difference <= estimate.high)
        assert abs(estimate.value - true_difference) <= 0.2

    assert np.mean(is_in_interval) >= 0.92


class Slope(NamedTuple):
    """A slope and half of its 95 % interval."""

    value: float
    half_interval: float


def least_squares_slope(x, y):
    """Compute the simple regression of textbooks, with Student's t for the interval."""
    x_from_mean = x - x.mean()
    sum_of_squares = x_from_mean @ x_from_mean
    slope = x_from_mean @ y / sum_of_squares
    residuals = y - y.mean() - slope * x_from_mean
    n_free = len(x) - 2  # mean and slope are estimated
    standard_error = np.sqrt(residuals @ residuals / n_free / sum_of_squares)
    return Slope(slope, stdtrit(n_free, 0.975) * standard_error)


@pytest.mark.parametrize("is_model_perfect", [False, True], ids=["a useless model", "a perfect model"])
def test_a_trend_of_films_that_are_all_judged_has_no_narrower_interval_than_least_squares(is_model_perfect):
    """20 films of 20 years are judged. A useless model expects .2 of each, a perfect one what was judged.

    No judgement is missing, so that even the perfect model adds nothing to them: the trend along the years is
    the slope of least squares, and its interval is no narrower than that of textbooks.
    """
    rng = np.random.default_rng(0)
    years = np.arange(20.0)
    judged_shares = rng.beta(0.2, 2, 20)
    films = []
    for share in judged_shares:
        expected_by_model = share if is_model_perfect else 0.2
        films.append(judged_film(expected=expected_by_model, judged=share))

    trend = estimate_contrast(films, years)

    textbook = least_squares_slope(years, judged_shares)
    assert trend.value == pytest.approx(textbook.value)
    half_interval = trend.high - trend.value
    assert half_interval >= 0.99 * textbook.half_interval  # .01 for rounding


def with_judges(films, judges_of):
    """Name the judges of each judged film: `judges_of(place)` gives each one's share of its judgements."""
    return [replace(film, judges=judges_of(index)) if film.n else film for index, film in enumerate(films)]


def film_judged_in_part_by_cd(*, share, part_of_cd):
    """Plant a film with this share of positives, of whose judgements a part is CD's and the rest AB's."""
    film = judged_film(expected=0.3, judged=share, variance=0.01, covariance=0.01)
    return replace(film, judges={"AB": 1 - part_of_cd, "CD": part_of_cd})


def test_an_impossible_difference_of_groups_is_refused():
    """AB judged six films alone. Of six others CD judged about half of the windows, and AB the rest.

    Where two groups have different judges, it is estimated how the share depends on who judged, and that is
    taken out of the difference. In the second group the share is the higher the more CD judged: CD judged .50
    of the film with share .3, and .51 of that with .4. So .01 more of CD goes with .1 more positives, and by
    CD alone (.50 more) the first film would have a share of .3 + 50 * .1 = 5.3. No share is above 1: no
    difference is given, but the reason.
    """
    shares_of_first_group = [0.2, 0.3, 0.4, 0.5, 0.2, 0.4]
    shares_of_second_group = [0.3, 0.4, 0.5, 0.6, 0.35, 0.45]
    by_ab = [film_judged_in_part_by_cd(share=share, part_of_cd=0.0) for share in shares_of_first_group]
    by_both = [
        film_judged_in_part_by_cd(share=share, part_of_cd=0.47 + 0.1 * share)
        for share in shares_of_second_group
    ]
    group = [0] * 6 + [1] * 6

    difference = estimate_contrast([*by_ab, *by_both], np.array(group))

    assert "judges AB, CD" in difference.reason
    assert np.isnan(difference.value)


def films_of_which_none_is_positive():
    """Plant twelve films in which no judged window is positive."""
    return [
        judged_film(expected=0.1 + 0.01 * k, judged=0.0, drawn=0.1, variance=0.01, covariance=0.01)
        for k in range(12)
    ]


def films_of_which_one_has_positives():
    """Plant twelve films; only in the last one judged windows are positive, .4 of them."""
    *films, last = films_of_which_none_is_positive()
    return [*films, replace(last, judged=0.4)]


@pytest.mark.parametrize("x", [np.arange(12.0), alternating(12)], ids=["a trend", "a difference"])
def test_contrasts_of_films_without_positives_are_refused(x):
    """In none of twelve films a window is positive.

    Without any variation there is no interval for a trend or a difference.
    """
    estimate = estimate_contrast(films_of_which_none_is_positive(), x)
    assert estimate.reason != ""
    assert np.isnan(numbers_of(estimate)).all()


def test_a_difference_is_refused_if_the_films_of_one_group_are_all_alike():
    """Twelve films are in groups 0 and 1 in turn. The only one with positives is the last, in group 1."""
    difference = estimate_contrast(films_of_which_one_has_positives(), alternating(12))
    assert "of one group" in difference.reason


def test_a_difference_is_refused_if_the_films_of_each_group_are_all_alike():
    """Twelve films are in groups 0 and 1 in turn, and none has a positive window.

    Where nothing varies nothing can be said of how uncertain a difference is: a reason stands in its place.
    """
    difference = estimate_contrast(films_of_which_none_is_positive(), alternating(12))
    assert "of each group" in difference.reason


@pytest.mark.parametrize("rarer", ["positive", "negative"])
def test_a_trend_says_on_how_few_films_it_rests(rarer):
    """One film of twelve has positive windows, and the others have none; or one has negatives alone.

    A trend is estimated, but what it says hangs on that one film, and the number of such films is kept.
    """
    films = films_of_which_one_has_positives()
    if rarer == "negative":
        films = [replace(film, judged=1 - film.judged) for film in films]

    trend = estimate_contrast(films, np.arange(12.0))

    assert trend.reason == ""
    assert trend.low < trend.value < trend.high
    assert trend.n_with_rarer_answer == 1


@pytest.mark.parametrize("distance", [1.0, 10.0])
def test_a_difference_of_two_shares_is_at_most_1(distance):
    """With three films per group, Student's t alone would give an interval that ends beyond 1.

    The groups lie at 0 and `distance` on x, so that a difference of 1 is a slope of 1 / distance. The model
    expects of each film what was judged.
    """
    shares_of_first_group = [0.3, 0.7, 1.0]
    shares_of_second_group = [0.0, 0.2, 0.5]
    films = [
        judged_film(expected=share, judged=share, variance=0.01, covariance=0.01)
        for share in shares_of_first_group + shares_of_second_group
    ]
    x = np.array([distance, distance, distance, 0.0, 0.0, 0.0])

    slope = estimate_contrast(films, x)

    largest_slope = 1 / distance
    assert slope.high == pytest.approx(largest_slope)
    assert -largest_slope <= slope.low < slope.value < slope.high


class JudgedByAbAndCd(NamedTuple):
    """40 films in groups 0 and 1 in turn; CD, who marks .15 less than AB, judged more films of group 1."""

    group: np.ndarray  # of each film
    all_by_ab: list[FilmSample]  # as if AB had judged all films
    by_both: list[FilmSample]  # with the judge of each
    by_both_called_ab: list[FilmSample]  # as if nobody knew that some judgements are CD's


def judged_by_ab_and_strict_cd():
    """Let CD judge 4 of the 20 films of group 0 and 16 of those of group 1, and AB the others."""
    films = planted_films(seed=0, n_films=40, n_judged=40).samples
    group = alternating(40)
    # CD judges group 1, but for every fifth film, where it is the other way round.
    is_every_fifth = np.arange(40) % 5 == 0
    is_by_cd = np.where(is_every_fifth, group == 0, group == 1)
    assert is_by_cd[group == 0].sum() == 4
    assert is_by_cd[group == 1].sum() == 16

    def ab(_place):
        return {"AB": 1.0}

    def ab_or_cd(place):
        return {"AB": float(not is_by_cd[place]), "CD": float(is_by_cd[place])}

    marked_less_by_cd = []
    for film, by_cd in zip(films, is_by_cd, strict=True):
        marked_less_by_cd.append(replace(film, judged=film.judged - 0.15) if by_cd else film)
    return JudgedByAbAndCd(
        group=group,
        all_by_ab=with_judges(films, ab),
        by_both=with_judges(marked_less_by_cd, ab_or_cd),
        by_both_called_ab=with_judges(marked_less_by_cd, ab),
    )


def test_a_judge_who_marks_less_makes_no_difference_of_groups():
    """CD marks .15 less than AB, and judged 4 of the 20 films of group 0 and 16 of the 20 of group 1.

    This lowers group 1 by .15 * (16 - 4) / 20 = .09 on average, but must not look like a difference of the
    films: it is taken out, as who judged each film is known. It costs width, as CD's part is estimated too.
    """
    films = judged_by_ab_and_strict_cd()

    if_all_were_by_ab = estimate_contrast(films.all_by_ab, films.group)
    accounted_for = estimate_contrast(films.by_both, films.group)
    unaccounted_for = estimate_contrast(films.by_both_called_ab, films.group)

    assert accounted_for.value == pytest.approx(if_all_were_by_ab.value, abs=0.05)
    assert unaccounted_for.value < if_all_were_by_ab.value - 0.07
    width_if_all_were_by_ab = if_all_were_by_ab.high - if_all_were_by_ab.low
    assert accounted_for.high - accounted_for.low > width_if_all_were_by_ab


UNITS = pytest.mark.parametrize("unit", [1e-9, 1e4, 1e9])
"""Factors of a number that films are compared by, as from euros to cents."""


@UNITS
def test_a_trend_does_not_depend_on_the_units_of_its_number(unit):
    """20 films have a number each, such as their cost; the trend is the slope of their shares along it.

    In other units (cents for euros) all numbers are multiplied by `unit`, and the slope and its interval are
    divided by it. The films have different judges, so that what depends on these is taken out, which must not
    depend on units either: AB judged .6 of each film, but CD of the fourth, and EF the rest.
    """
    numbers = np.random.default_rng(0).random(20)
    films = planted_films(seed=1, n_films=20, n_judged=20).samples
    films = with_judges(films, lambda place: {"CD": 0.6, "EF": 0.4} if place == 3 else {"AB": 0.6, "EF": 0.4})

    value_low_high = numbers_of(estimate_contrast(films, numbers))
    in_other_units = numbers_of(estimate_contrast(films, unit * numbers))

    np.testing.assert_allclose(in_other_units * unit, value_low_high, rtol=1e-6)


@UNITS
def test_no_trend_along_a_number_is_given_if_one_judge_takes_over_from_another_along_it(unit):
    """20 films have a number each, such as their cost. The higher it is the more of the film CD judged.

    CD judged nothing of the film with the least and all of that with the most, and AB the rest. Whether the
    share rises with the number, or as CD sees more than AB, cannot be told: no trend is given, but the
    reason, in whatever units the numbers are.
    """
    numbers = np.random.default_rng(0).random(20)
    part_of_cd = (numbers - numbers.min()) / (numbers.max() - numbers.min())
    films = planted_films(seed=1, n_films=20, n_judged=20).samples
    films = with_judges(films, lambda place: {"AB": 1 - part_of_cd[place], "CD": part_of_cd[place]})

    trend = estimate_contrast(films, unit * numbers)

    assert trend.reason != ""


@pytest.mark.parametrize(
    ("part_of_cd", "is_refused"),
    [
        pytest.param([0, 1] * 6, True, id="CD judged group 1, AB group 0"),
        pytest.param([1, 1] + [0, 1] * 5, True, id="CD judged group 1 and one film of group 0"),
        pytest.param([1, 0, 1, 0] + [0, 1] * 4, False, id="each judged films of both groups"),
        pytest.param([0.5] * 12, False, id="both judged each film"),
    ],
)
def test_a_difference_of_groups_with_different_judges_is_refused(part_of_cd, is_refused):
    """Twelve films are in groups 0 and 1 in turn. `part_of_cd` is what CD judged of each, and AB the rest.

    If the groups were judged by different people, their difference may be one of these. It is given only if
    each judge judged two films or more of both groups, or a part of each film; else the reason names them.
    """
    films = planted_films(seed=1, n_films=12, n_judged=12).samples
    films = with_judges(films, lambda place: {"AB": 1.0 - part_of_cd[place], "CD": float(part_of_cd[place])})
    groups = np.array([0, 1] * 6)

    difference = estimate_contrast(films, groups)

    assert np.isnan(difference.value) == is_refused
    assert (difference.reason != "") == is_refused
    assert ("AB" in difference.reason) == is_refused


def test_a_model_that_expects_the_same_of_all_films_changes_nothing():
    """The mean of .1, .2, .6, .3 and .3 is .3: a model that does not tell films apart corrects nothing."""
    films = [judged_film(expected=0.5, judged=share) for share in (0.1, 0.2, 0.6, 0.3, 0.3)]
    (estimate,) = estimate_groups([films])
    assert estimate.value == pytest.approx(0.3)


def test_a_rate_of_films_that_would_be_corrected_to_above_1_is_1():
    """In eight judged films nearly all is positive (1 or .98), but the model expects .6 of judged windows.

    So the model's probabilities are corrected upwards. Of 40 films that nobody judged it expects 1 already:
    corrected by as much as in the judged films, the rate of all would be above 1, and is cut to 1.
    """
    judged = []
    for k in range(8):
        share = 1.0 if k % 2 == 0 else 0.98
        # The model's probabilities go with the judgements as 1 to 1 (covariance / variance).
        film = judged_film(expected=0.9 - 0.02 * k, judged=share, drawn=0.6, variance=0.05, covariance=0.05)
        judged.append(film)
    unjudged = [FilmSample(expected=1.0)] * 40
    (estimate,) = estimate_groups([[*judged, *unjudged]])

    assert 0 <= estimate.low <= estimate.value
    assert estimate.value == 1
    assert estimate.high == 1


def test_slopes_leave_each_film_out():
    """The slope for each film is computed from the others: a film's own judgement must not correct itself.

    A slope is a quotient of two sums over films. Of three films the terms are 1, 2, 3 and 4, 4, 4, with the
    sums 6 and 12. Without the first film's terms the slope is (6 - 1) / (12 - 4) = 5/8.
    """
    upper_terms = np.array([1.0, 2, 3])
    lower_terms = np.array([4.0, 4, 4])
    slopes = comparison._slopes_of_others(upper_terms, lower_terms, sum_of_products=6.0, sum_of_squares=12.0)
    assert slopes.tolist() == [5 / 8, 4 / 8, 3 / 8]


def test_the_degrees_of_freedom_of_a_mean_lie_within_welchs_bounds():
    """The mean share of 60 films is a sum of two means, of which either varies by itself.

    One is what the model expects of all 60 films, with 60 - 1 = 59 degrees of freedom. The other is by how
    much it was wrong in the 30 films that were judged, with 30 - 1 = 29. Of such a sum Welch's degrees of
    freedom lie between the smaller number and the sum of both.
    """
    one_group_of_60 = np.ones((60, 1))  # [films, coefficients]: only a mean is fitted
    for seed in range(20):
        films = planted_films(seed, n_films=60, n_judged=30, n_windows=40).samples
        (degrees_of_freedom,) = comparison._fit(one_group_of_60, films, use_model=True).robust_freedom
        assert 29 <= degrees_of_freedom <= 29 + 59


def all_positive_films(share):
    """Plant six films in which all judged windows are positive: `share` is 1, but for rounding."""
    return [judged_film(expected=0.6 + 0.05 * k, judged=share) for k in range(6)]


def mixed_films():
    """Plant six films of which the judged windows are positive in part."""
    return [judged_film(expected=0.3 + 0.05 * k, judged=0.1 * k) for k in range(6)]


def test_an_all_positive_group_has_an_interval_up_to_1():
    """In all six films of one group all judged windows are positive; those of another group are mixed.

    Where all is positive nothing varies, and an interval of variation alone would be [1, 1]. But six films
    are few. Were each one observation, Wilson's interval of 6 of 6 positives would be [.61, 1]: this one must
    begin about there, between .4 and .8.
    """
    all_positive, _mixed = estimate_groups([all_positive_films(share=1.0), mixed_films()])
    assert all_positive.high == pytest.approx(1, abs=1e-6)
    assert 0.4 < all_positive.low < 0.8


@pytest.mark.parametrize("share", [np.nextafter(1, 2), np.nextafter(1, 0)], ids=["above 1", "below 1"])
def test_a_share_that_rounding_moves_from_1_counts_as_1(share):
    """In all six films of a group all judged windows are positive.

    Weights of a film's windows may add up to a little more or less than one: a share is the next number above
    1, or the one below it.
    """
    exact, _ = estimate_groups([all_positive_films(share=1.0), mixed_films()])
    rounded, _ = estimate_groups([all_positive_films(share), mixed_films()])
    assert rounded.high == pytest.approx(1, abs=1e-6)
    assert rounded.low == pytest.approx(exact.low)


SEEDS = st.integers(0, 50)
ORDERS = st.permutations(range(30))


@given(SEEDS, ORDERS)
def test_the_order_of_films_does_not_change_a_groups_rate(seed, order):
    """Of 30 films twelve are judged. Rate and interval are of all, in whatever order films are given."""
    films = planted_films(seed).samples
    films_in_other_order = [films[place] for place in order]
    (rate,) = estimate_groups([films])
    (rate_in_other_order,) = estimate_groups([films_in_other_order])
    assert numbers_of(rate_in_other_order) == pytest.approx(numbers_of(rate), abs=1e-9)


@given(SEEDS, ORDERS, st.floats(0.01, 100), st.floats(-1e3, 1e3))
def test_neither_the_order_of_films_nor_the_scale_of_x_changes_a_trend(seed, order, factor, origin):
    """A trend is the slope of shares along a number x of each film, here 0 to 6 again and again for 30 films.

    Along x * factor + origin, as degrees Fahrenheit are of Celsius, the slope and its interval are those
    along x, divided by the factor. Nor does the order matter in which the films are given.
    """
    films = planted_films(seed).samples
    x = np.arange(30.0) % 7
    films_in_other_order = [films[place] for place in order]
    scaled_x_in_other_order = factor * x[list(order)] + origin

    slope = numbers_of(estimate_contrast(films, x))
    slope_along_scaled = numbers_of(estimate_contrast(films_in_other_order, scaled_x_in_other_order))

    assert slope_along_scaled * factor == pytest.approx(slope, abs=1e-6)


@given(SEEDS)
def test_two_groups_of_the_same_films_do_not_differ(seed):
    """30 films are in one group, and the same 30 in another one.

    Their difference is 0, with an interval that is symmetric around it.
    """
    films = planted_films(seed).samples
    difference = estimate_contrast([*films, *films], np.repeat([1.0, 0.0], 30))
    assert difference.value == pytest.approx(0, abs=1e-12)
    assert difference.low == pytest.approx(-difference.high)


def test_variances_of_equal_cells_are_those_of_a_draw_without_replacement():
    """Of 60 cells the first 12 are drawn and judged.

    By the formulas of survey sampling: 1/n of the variance, less by the share of cells that were drawn.
    """
    rng = np.random.default_rng(0)
    y = rng.random(12)
    p = rng.random(60)
    drawn = np.arange(12)

    sample = sample_of(equal_cells(p), drawn, y)

    factor = (1 - 12 / 60) / 12
    assert sample.judged == pytest.approx(y.mean())
    assert sample.covariance == pytest.approx(factor * np.cov(y, p[drawn])[0, 1])
    assert sample.variance == pytest.approx(factor * p.var())


def test_judgements_are_weighed_by_content_over_chance():
    """A rate is of a film's time. A cell that is long counts for more of it, but is drawn more often, too.

    So a judged cell has the weight content / chance to be drawn. Of a film with 30 cells of 1 s and 30 of
    .5 s two are drawn: one of 1 s, which is positive, and one of .5 s, which is not. The rate is the weight
    of the positive cell over that of both. Were chances in proportion to content, that would be a half; they
    are so nearly, but not quite, as a drawn cell cannot be drawn again.
    """
    content_s = np.repeat([1.0, 0.5], 30)
    cells = planted_cells(content_s=content_s, p=np.random.default_rng(0).random(60))
    first_long_one, last_short_one = 0, 59
    judged = np.array([first_long_one, last_short_one])
    is_positive = np.array([1.0, 0.0])

    sample = sample_of(cells, judged, is_positive)

    chance_of_long, chance_of_short = inclusion_chances(content_s, len(judged))[judged]
    weight_of_long = 1.0 / chance_of_long
    weight_of_short = 0.5 / chance_of_short
    assert sample.judged == pytest.approx(weight_of_long / (weight_of_long + weight_of_short))


def test_judgements_drawn_by_sequential_poisson_sampling_weigh_alike():
    """Sequential Poisson sampling draws a cell of twice the content twice as likely.

    A judged cell weighs its content over its chance of being drawn, so that all cells weigh the same. Of 30
    cells of 1 s and 30 of .5 s one each is judged; that of 1 s is positive, the other one is not: the rate is
    a half.
    """
    content_s = np.repeat([1.0, 0.5], 30)
    cells = planted_cells(content_s=content_s, p=np.random.default_rng(0).random(60))
    a_long_and_a_short_one = np.array([0, 59])
    is_positive = np.array([1.0, 0.0])

    sample = sample_of(cells, a_long_and_a_short_one, is_positive, sampling=SEQUENTIAL_POISSON)

    assert sample.judged == pytest.approx(0.5)


def test_films_that_are_judged_all_alike_count_as_one_judgement_each():
    """No judged window of eight films is positive, so nothing shows how far the films differ.

    The interval of their rate is then that of eight judgements, a film each, none of which is positive. It
    begins at 0. By Wilson's formula it ends at z² / n / (1 + z² / n), here with Student's t of 8 - 1 degrees
    of freedom in place of the normal's z.
    """
    (estimate,) = estimate_groups([[judged_film(expected=0.0, judged=0.0)] * 8])
    t = float(stdtrit(7, 0.975))
    upper_end = (t**2 / 8) / (1 + t**2 / 8)
    assert estimate.low == pytest.approx(0, abs=1e-6)
    assert estimate.high == pytest.approx(upper_end, abs=1e-6)
