"""Rates, differences and trends of groups of films are held as often as said, whatever the model knows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from obygaze_film import comparison
from obygaze_film.cells import Cells
from obygaze_film.comparison import FilmSample, estimate_contrast, estimate_groups, sample_of
from obygaze_film.draws import SEQUENTIAL_POISSON, inclusion_chances


def cells(p):
    return Cells(np.zeros((len(p), 2)), np.ones(len(p)), np.ones(len(p)), p)


def samples(seed, *, n_films=30, n_judged=12, n=15, knows=1.0, shift=0.0):
    """Films of 60 windows, whose model says the label but for noise; and their true rates."""
    rng = np.random.default_rng(seed)
    found, rates = [], []
    for place in range(n_films):
        y = (rng.random(60) < np.clip(rng.beta(2, 6) + shift, 0, 1)).astype(float)
        p = np.clip(0.3 + knows * 0.4 * (y - 0.3) + 0.1 * rng.normal(size=60), 0, 1)
        own = rng.permutation(60)[: n if place < n_judged else 0]
        found.append(sample_of(cells(p), own, y[own]))
        rates.append(y.mean())
    return found, np.array(rates)


def ends(estimate):
    return np.array([estimate.value, estimate.low, estimate.high])


@pytest.mark.parametrize("knows", [1.0, 0.0, -1.0])
def test_where_every_window_is_judged_a_model_moves_nothing(knows):
    """The trend is the least-squares slope of the films' shares, a group's share their mean."""
    films, rates = samples(3, n_films=11, n_judged=11, n=60, knows=knows)
    years = np.arange(11.0)
    assert estimate_contrast(films, years).value == pytest.approx(np.polyfit(years, rates, 1)[0])
    (mean,) = estimate_groups([films])
    assert mean.value == pytest.approx(rates.mean())
    assert mean.worth == pytest.approx(1)


@pytest.mark.long  # simulates
def test_the_planted_rate_is_held_as_often_as_said_by_good_useless_and_wrong_models():
    """`benchmarks/planted/films.py` has all designs; 200 data sets are good to .015."""
    widths = {}
    for knows in (1.0, 0.0, -1.0):
        found = [estimate_groups([samples(seed, knows=knows)[0]])[0] for seed in range(200)]
        held = np.mean([estimate.low <= 0.25 <= estimate.high for estimate in found])
        assert 0.92 <= held <= 0.985, knows
        widths[knows] = np.mean([estimate.high - estimate.low for estimate in found])
        assert np.mean([estimate.worth for estimate in found]) > (1.5 if knows == 1 else 0.9)
    assert widths[1] < 0.8 * widths[0]
    assert widths[-1] == pytest.approx(widths[0], rel=0.05)


@pytest.mark.long  # simulates
def test_a_planted_difference_and_a_planted_trend_are_held():
    held = []
    for seed in range(200):
        low, high = samples(seed)[0], samples(seed + 1000, shift=0.2)[0]
        estimate = estimate_contrast([*high, *low], np.repeat([1.0, 0.0], 30))
        held.append(estimate.low <= 0.2 <= estimate.high)
        assert estimate.value == pytest.approx(0.2, abs=0.2)
    assert np.mean(held) >= 0.92


@pytest.mark.parametrize("knows", [0.0, 1.0])
def test_where_all_films_are_judged_a_trend_is_no_surer_than_least_squares_of_their_rates(knows):
    """The model then knows nothing that the judgements don't, however well it follows them."""
    rng = np.random.default_rng(0)
    x, rates = np.arange(20.0), rng.beta(0.2, 2, 20)
    films = []
    for rate in rates:
        by_model = 0.2 + knows * (rate - 0.2)
        films.append(FilmSample(by_model, judged=rate, drawn=by_model, covariance=0.0, variance=0.0, n=10))
    estimate = estimate_contrast(films, x)
    apart = x - x.mean()
    slope = apart @ rates / (apart @ apart)
    residuals = rates - rates.mean() - slope * apart
    n_free = 20 - 2  # of the mean and the slope
    error = np.sqrt(residuals @ residuals / n_free / (apart @ apart))
    assert estimate.value == pytest.approx(slope)
    assert estimate.high - slope >= 0.99 * stdtrit(n_free, 0.975) * error


def judged_by(films, of):
    """Name the judges of each judged film, and their shares of its judgements."""
    return [replace(film, judges=of(place)) if film.n else film for place, film in enumerate(films)]


def test_contrasts_of_films_that_are_all_alike_are_refused():
    none = [FilmSample(0.1 + 0.01 * k, 0.0, 0.1, 0.01, 0.01, 10) for k in range(12)]
    for x in (np.arange(12.0), np.arange(12.0) % 2):
        estimate = estimate_contrast(none, x)
        assert estimate.reason
        assert np.isnan(ends(estimate)).all()
    one = [*none[:-1], replace(none[-1], judged=0.4)]
    trend = estimate_contrast(one, np.arange(12.0))
    assert (trend.reason, trend.n_any) == ("", 1)
    assert trend.low < trend.value < trend.high
    assert estimate_contrast(one, np.arange(12.0) % 2).reason  # one of the groups is all alike
    full = [replace(film, judged=1 - film.judged) for film in one]
    assert estimate_contrast(full, np.arange(12.0)).n_any == 1


@pytest.mark.parametrize("apart", [1.0, 10.0])
def test_a_difference_of_two_shares_is_at_most_1(apart):
    """Three films a group say little: by Student's t alone the interval would end beyond 1."""
    shares = (0.3, 0.7, 1.0, 0.0, 0.2, 0.5)
    films = [FilmSample(share, share, share, 0.01, 0.01, 10) for share in shares]
    estimate = estimate_contrast(films, apart * np.repeat([1.0, 0.0], 3))
    assert estimate.high == pytest.approx(1 / apart)
    assert -1 / apart <= estimate.low < estimate.value < estimate.high


def test_a_judge_who_marks_less_is_no_difference_of_groups():
    """CD marks .15 less than AB, and judges 4 of the 20 films of group 0 and 16 of those of group 1."""
    found, _ = samples(0, n_films=40, n_judged=40)
    group = np.arange(40) % 2
    is_by_cd = np.where(np.arange(40) % 5 == 0, 1 - group, group)
    marked = [replace(film, judged=film.judged - 0.15 * cd) for film, cd in zip(found, is_by_cd, strict=True)]

    def who_judged(place):
        return {"AB": 1.0 - is_by_cd[place], "CD": float(is_by_cd[place])}

    def only_ab(_):
        return {"AB": 1.0}

    unmoved = estimate_contrast(judged_by(found, only_ab), group)
    known = estimate_contrast(judged_by(marked, who_judged), group)
    unknown = estimate_contrast(judged_by(marked, only_ab), group)
    assert abs(known.value - unmoved.value) < 0.05
    assert unknown.value < unmoved.value - 0.07
    assert known.high - known.low > unmoved.high - unmoved.low


@pytest.mark.parametrize("unit", [1e-9, 1e4, 1e9])
def test_a_trend_and_whether_judges_refuse_it_do_not_depend_on_the_units_of_its_number(unit):
    rng = np.random.default_rng(0)
    found, x = samples(1, n_films=20, n_judged=20)[0], rng.random(20)
    once = judged_by(found, lambda k: {"CD" if k == 3 else "AB": 0.6, "EF": 0.4})  # of CD one film
    apart = ends(estimate_contrast(once, x))
    np.testing.assert_allclose(ends(estimate_contrast(once, unit * x)) * unit, apart, rtol=1e-6)
    share = (x - x.min()) / np.ptp(x)  # the second judge's, the more the larger x
    films = judged_by(found, lambda k: {"AB": 1 - share[k], "CD": share[k]})
    assert estimate_contrast(films, unit * x).reason


@pytest.mark.parametrize(
    ("second", "refused"),
    [
        (lambda k: k % 2, True),  # each judges one group
        (lambda k: k % 2 if k else 1, True),  # one film alone tells judges and groups apart
        (lambda k: k % 2 if k > 3 else 1 - k % 2, False),
        (lambda _: 0.5, False),  # both judge all films
    ],
)
def test_groups_that_different_people_judged_are_refused(second, refused):
    found, _ = samples(1, n_films=12, n_judged=12)
    films = judged_by(found, lambda k: {"AB": 1.0 - second(k), "CD": float(second(k))})
    estimate = estimate_contrast(films, np.arange(12) % 2)
    assert bool(estimate.reason) == refused
    assert ("AB" in estimate.reason) == refused
    assert np.isnan(estimate.value) == refused


def test_all_windows_of_all_films_give_the_mean_itself():
    found, rates = samples(0, n_judged=30, n=60)
    assert estimate_groups([found])[0].value == pytest.approx(rates.mean(), abs=0.01)
    constant = [FilmSample(0.5, share, 0.5, 0.0, 0.0, 10) for share in (0.1, 0.2, 0.6, 0.3, 0.3)]
    assert estimate_groups([constant])[0].value == pytest.approx(0.3)


def test_rates_stay_within_0_and_1_where_the_model_would_correct_beyond():
    films = [FilmSample(0.9 - 0.02 * n, 1.0 - 0.02 * (n % 2), 0.6, 0.05, 0.05, 10) for n in range(8)]
    (estimate,) = estimate_groups([[*films, *(FilmSample(1.0) for _ in range(40))]])
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.value == 1


def test_slopes_leave_each_film_out():
    slopes = comparison._slopes_of_others(np.array([1.0, 2, 3]), np.array([4.0, 4, 4]))
    assert slopes.tolist() == [5 / 8, 4 / 8, 3 / 8]


def test_degrees_of_freedom_lie_between_the_fewer_and_the_sum():
    """Welch and Satterthwaite's bounds: 29 of the judged films, 59 of all."""
    for seed in range(20):
        films = samples(seed, n_films=60, n_judged=30, n=40)[0]
        (freedom,) = comparison._fit(np.ones((60, 1)), films, use_model=True).freedom
        assert 29 <= freedom <= 29 + 59


@pytest.mark.parametrize("share", [1.0, np.nextafter(1, 2), np.nextafter(1, 0)])
def test_films_that_were_judged_positive_throughout_leave_a_lower_limit(share):
    """Weights of a film's windows may add up to a little more than one."""
    positive = [FilmSample(0.6 + 0.05 * k, share, 0.6 + 0.05 * k, 0.0, 0.0, 10) for k in range(6)]
    mixed = [FilmSample(0.3 + 0.05 * k, 0.1 * k, 0.3 + 0.05 * k, 0.0, 0.0, 10) for k in range(6)]
    estimate, _ = estimate_groups([positive, mixed])
    assert estimate.high == pytest.approx(1, abs=1e-6)
    assert 0.4 < estimate.low < 0.8
    assert estimate.low == pytest.approx(
        estimate_groups([[replace(f, judged=1.0) for f in positive], mixed])[0].low
    )


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(30)), st.integers(0, 50), st.floats(0.01, 100), st.floats(-1e3, 1e3))
def test_neither_order_nor_units_matter_and_equal_groups_do_not_differ(order, seed, scale, origin):
    found, _ = samples(seed)
    moved = [found[place] for place in order]
    assert ends(estimate_groups([moved])[0]) == pytest.approx(ends(estimate_groups([found])[0]), abs=1e-9)
    x = np.arange(30.0) % 7
    slope = ends(estimate_contrast(found, x))
    assert ends(estimate_contrast(moved, scale * x[list(order)] + origin)) * scale == pytest.approx(
        slope, abs=1e-6
    )
    same = estimate_contrast([*found, *found], np.repeat([1.0, 0.0], 30))
    assert same.value == pytest.approx(0, abs=1e-12)
    assert same.low == pytest.approx(-same.high)


def test_what_equal_cells_tell_is_that_of_a_draw_without_return():
    """By the formulas of survey sampling: variances are less by the share of cells that were drawn."""
    rng = np.random.default_rng(0)
    y, p, drawn = rng.random(12), rng.random(60), np.arange(12)
    found = sample_of(cells(p), drawn, y)
    factor = (1 - 12 / 60) / 12
    assert found.judged == pytest.approx(y.mean())
    assert found.covariance == pytest.approx(factor * np.cov(y, p[drawn])[0, 1])
    assert found.variance == pytest.approx(factor * p.var())


def test_what_unequal_cells_tell_is_weighed_by_how_likely_each_was_drawn():
    """Of 30 cells with all their content and 30 with half of it, one of each is judged."""
    content = np.repeat([1.0, 0.5], 30)
    uneven = Cells(np.zeros((60, 2)), content, content, np.random.default_rng(0).random(60))
    drawn, y = np.array([0, 59]), np.array([1.0, 0.0])
    weights = content[drawn] / inclusion_chances(content, 2)[drawn]
    assert sample_of(uneven, drawn, y).judged == pytest.approx(weights[0] / weights.sum())
    # By the earlier law chances are proportional to content, so that both weigh the same.
    assert sample_of(uneven, drawn, y, sampling=SEQUENTIAL_POISSON).judged == pytest.approx(0.5)


def test_films_that_are_judged_all_alike_count_as_one_judgement_each():
    """Wilson's interval of 0 of 8, with Student's t of the 7 films that are free."""
    films = [FilmSample(0.0, 0.0, 0.0, 0.0, 0.0, 10) for _ in range(8)]
    estimate = estimate_groups([films])[0]
    k = float(stdtrit(7, 0.975)) ** 2 / 8
    assert (estimate.low, estimate.high) == pytest.approx((0, k / (1 + k)), abs=1e-6)
