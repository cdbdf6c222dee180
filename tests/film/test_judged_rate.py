"""A corrected rate covers what it should, and is narrower than judgements alone."""

import re
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binomtest, hypergeom

from obygaze_film.cells import Cells
from obygaze_film.draws import SEQUENTIAL_POISSON, SUCCESSIVE
from obygaze_film.judged_rate import _method, _n_needed_without_model, counted_windows
from obygaze_film.judged_windows import JudgedWindows, WindowCounts, least_sure, votes
from obygaze_film.rate_estimates import Estimates, difference_estimate, estimate_rate
from tests.film.films import planted_cells

PREVALENCES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
SIZES = (30, 60, 100, 200)
N_ROWS, N_FILMS, DRAWS_A_FILM = 1000, 500, 4


class Windows(NamedTuple):
    """Windows of films, [F, 1000]: seconds, whether they are positive (y), and the model's probabilities."""

    seconds: np.ndarray
    y: np.ndarray
    p: np.ndarray


class Coverage(NamedTuple):
    """How often intervals hold the true rate, and how wide they are, with and without the model."""

    share: float
    width: float
    width_alone: float


def planted_windows(rng, prevalence, quality, *, n_films=N_FILMS, bias=0.0, sharpness=1.0, noise=0.0):
    """Plant windows of which `prevalence` are positive, and a model's probabilities for them.

    Windows last 1 s and more, 6 s on average. The model's scores have a standard deviation of 1, and those of
    positives lie `quality` above those of negatives. By default it is calibrated: its logits are quality *
    score + logit of the prevalence. A `bias` is added to them, a `sharpness` over 1 makes the model too sure
    and one under 1 timid, and `noise` makes a model without quality say something at random.
    """
    seconds = 1 + 5 * rng.gamma(3, 1 / 3, (n_films, N_ROWS))  # gamma's mean is 3 * 1/3 = 1
    n_positive = max(1, round(prevalence * N_ROWS))
    in_order = np.tile(np.arange(N_ROWS) < n_positive, (n_films, 1))
    y = rng.permuted(in_order, axis=1).astype(float)
    score = quality * (y - 0.5) + rng.normal(size=y.shape)
    slope = sharpness * quality + noise
    p = expit(slope * score + logit(n_positive / N_ROWS) + bias)
    return Windows(seconds, y, p)


def coverage_of(prevalence, quality, n, *, n_films=N_FILMS, seed=0, **model):
    """Estimate the rate from draws of n windows, 4 from each of `n_films` films.

    Windows and model are those of `planted_windows`.
    """
    rng = np.random.default_rng([round(1000 * prevalence), round(10 * quality), n, seed])
    films = planted_windows(rng, prevalence, quality, n_films=n_films, **model)
    # From here on one row a draw: [4 films, 1000 windows] has each film four times.
    seconds = np.repeat(films.seconds, DRAWS_A_FILM, axis=0)
    y = np.repeat(films.y, DRAWS_A_FILM, axis=0)
    p = np.repeat(films.p, DRAWS_A_FILM, axis=0)
    # The n windows with the lowest random number per second: longer ones are drawn more often.
    random_keys = rng.random(y.shape) / seconds
    drawn = np.argpartition(random_keys, n, axis=1)[:, :n]  # [draws, n]
    chances = n * seconds / seconds.sum(axis=1, keepdims=True)
    film_p = np.average(p, weights=seconds, axis=1)
    estimates = difference_estimate(
        y=np.take_along_axis(y, drawn, axis=1),
        p=np.take_along_axis(p, drawn, axis=1),
        weights=np.ones(drawn.shape),
        chances=np.take_along_axis(chances, drawn, axis=1),
        film_p=film_p,
        film_variance=np.average((p - film_p[:, None]) ** 2, weights=seconds, axis=1),
    )
    true_rate = np.average(y, weights=seconds, axis=1)
    is_held = (estimates.low <= true_rate) & (true_rate <= estimates.high)
    return Coverage(
        share=is_held.mean(),
        width=(estimates.high - estimates.low).mean(),
        width_alone=(estimates.high_without_model - estimates.low_without_model).mean(),
    )


@pytest.mark.nightly
@pytest.mark.long
@pytest.mark.parametrize("quality", [0, 0.5, 1, 2])  # AUC .5, .64, .76, .92
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("prevalence", [0.02, 0.1, 0.35, 0.5])
def test_intervals_hold_the_rate_and_a_model_narrows_them(prevalence, n, quality):
    """A 95 % interval holds the true rate in about 95 % of draws, with any model; a good one narrows it.

    `prevalence` is the share of positive windows, n the number of judged ones, and `quality` how far the
    model's scores of positive windows lie above those of others, in standard deviations. All combinations are
    tried, as intervals may be too short in a few of them alone. Coverage may be .93 to .975: 2,000 draws
    leave it uncertain by .005 (one standard error).
    """
    coverage = coverage_of(prevalence, quality, n)
    assert 0.93 <= coverage.share <= 0.975
    if quality > 0:
        assert coverage.width < coverage.width_alone
    else:
        assert coverage.width == pytest.approx(coverage.width_alone, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("prevalence", [0.02, 0.1, 0.35, 0.5])
def test_probabilities_at_random_cost_no_coverage_and_hardly_any_width(prevalence, n):
    """A model that knows nothing (quality 0) and is sure of it (noise 1) must not mislead.

    Of 2,000 intervals .93 to .975 hold the true rate, as without the model, and width grows by 1.5 % at most.
    """
    coverage = coverage_of(prevalence, quality=0, n=n, noise=1.0)
    assert 0.93 <= coverage.share <= 0.975
    assert coverage.width == pytest.approx(coverage.width_alone, rel=0.015)


@pytest.mark.parametrize(
    "model",
    [{}, {"bias": 1.5}, {"bias": -1.5}, {"sharpness": 2.5}, {"sharpness": 0.4}],
    ids=["calibrated", "too high", "too low", "too sure", "timid"],
)
def test_an_uncalibrated_model_costs_no_coverage_and_still_narrows_the_interval(model):
    """Probabilities that are too high, too low, too sure or timid still tell which windows are likelier.

    95 % intervals are tried where .05, .2 and .5 of the windows are positive, and 30 or 100 are judged.
    """
    for prevalence, n in ((0.05, 30), (0.2, 100), (0.5, 30)):
        coverage = coverage_of(prevalence, quality=1, n=n, n_films=250, **model)
        assert coverage.share >= 0.92  # 1,000 draws leave it uncertain by .007
        assert coverage.width < coverage.width_alone


def gain_of(y, p, *, film_p, film_variance):
    """Return the factor, 0 to 1, by which the estimate counts the model's probabilities, from one draw.

    `y` says of each judged window whether it is positive, and `p` is its probability by the model.
    """
    y = np.asarray(y, dtype=float)[None]  # [1 draw, n windows]
    p = np.asarray(p)[None]
    # As from a film of so many windows that the chance of each to be drawn is next to none.
    chances = np.zeros_like(y)
    estimates = difference_estimate(
        y, p, weights=np.ones_like(y), chances=chances, film_p=film_p, film_variance=film_variance
    )
    return estimates.gain


def test_the_gain_of_a_timid_model_is_at_most_1():
    """The gain is the factor by which the estimate counts the model's probabilities, from 0 to 1.

    The model says .49 of ten negatives and .51 of ten positives: the slope of y on p would be 1 / .02 = 50.
    In the whole film its mean is .5, and the variance of its probabilities .01² = 1e-4.
    """
    y = [0.0] * 10 + [1.0] * 10
    p = [0.49] * 10 + [0.51] * 10
    assert gain_of(y, p, film_p=0.5, film_variance=1e-4) == 1


def test_the_estimate_of_four_judgements_by_hand():
    """Two of four judged windows are positive; a fifth window of weight 0 must count for nothing.

    `difference_estimate` defines the rate R, the gain g, D and V:

    - R = mean(y) + g (film's p - mean(p)) = .5 + g (.5 - .55).
    - D = mean p of positives - mean p of negatives, to each of which one window of the mean p .55 is added:
      (.8 + .6 + .55) / 3 - (.3 + .5 + .55) / 3 = .65 - .45 = .2.
    - g = R (1 - R) D / V = R (1 - R) .2 / .1 = 2 R (1 - R).
    """
    estimates = difference_estimate(
        y=[[1, 0, 1, 0, 0]],
        p=[[0.8, 0.3, 0.6, 0.5, 0.9]],
        weights=[[1, 1, 1, 1, 0]],
        chances=np.zeros((1, 5)),
        film_p=0.5,
        film_variance=0.1,
    )
    (rate,) = estimates.value
    gain = 2 * rate * (1 - rate)

    assert rate == pytest.approx(0.5 + gain * (0.5 - 0.55), abs=1e-6)
    assert estimates.gain == pytest.approx(gain, abs=1e-6)


def test_a_cell_without_content_is_neither_found_nor_drawn():
    """Three cells of 8 s: the first has no content (black, credits or unread), the others have .5 and 8 s.

    A cell is found by its exact start and end.
    """
    cells = Cells(
        spans=np.array([[0.0, 8.0], [8.0, 16.0], [16.0, 24.0]]),
        content_s=np.array([0.0, 0.5, 8.0]),
        counted_s=np.ones(3),
        p=np.ones(3),
    )

    assert cells.index_with_content(0.0, 8.0) is None
    assert cells.index_with_content(8.0, 16.0) == 1
    assert cells.index_with_content(16.0, 24.0) == 2
    assert cells.index_with_content(20.0, 28.0) is None  # no cell begins there
    assert sorted(cells.order_of_draw("m", 0)) == [1, 2]


def test_the_gain_of_a_model_that_is_too_sure_is_below_1():
    """The model says .1 of 2,000 windows of which .3 are positive, and .9 of 2,000 of which .7 are.

    The slope of y on p is (.7 - .3) / (.9 - .1) = .5, and so is the gain. In the whole film the mean of p is
    .5, and its variance .4² = .16, as .1 and .9 are .4 from the mean.
    """
    rng = np.random.default_rng(0)
    is_high = rng.permutation(np.arange(4000) < 2000)
    chance_of_positive = np.where(is_high, 0.7, 0.3)
    y = rng.random(4000) < chance_of_positive
    p = np.where(is_high, 0.9, 0.1)

    gain = gain_of(y, p, film_p=0.5, film_variance=0.16)

    assert gain == pytest.approx(0.5, abs=0.05)


def exact_coverage(n_positive, n):
    """Compute how often the interval holds the rate, over all samples of n of 1,000 equal windows.

    The model always says .2, so that a sample is known by its count of positives, 0 to n.
    """
    counts = np.arange(n + 1)
    chances_of_counts = hypergeom(N_ROWS, n_positive, n).pmf(counts)
    # One sample a count, with the positives first.
    y = np.arange(n)[None, :] < counts[:, None]  # [n + 1 samples, n windows]
    estimates = difference_estimate(
        y=y,
        p=np.full(y.shape, 0.2),
        weights=np.ones(y.shape),
        chances=np.full(y.shape, n / N_ROWS),
        film_p=0.2,
        film_variance=0.0,
    )
    true_rate = n_positive / N_ROWS
    is_held = (estimates.low <= true_rate) & (true_rate <= estimates.high)
    return chances_of_counts[is_held].sum()


COVERAGES_OVER_97_PERCENT = {
    (0.02, 30): 0.980,
    (0.02, 60): 0.972,
    (0.05, 60): 0.975,
    (0.05, 100): 0.974,
    (0.1, 30): 0.976,
}
"""Prevalence and number of judged windows -> coverage, where no interval could have one nearer to .95.

Coverage jumps by the chance of a whole count. Of 20 positives in 1,000 (.02) a sample of 30 has 3 or more
with chance .020, and 2 with .098. If the interval leaves out the counts from 3 on, coverage is .980; if it
leaves out 2 as well, it is .882.
"""


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("prevalence", PREVALENCES)
def test_intervals_with_a_useless_model_hold_the_rate_exactly(prevalence, n):
    """Of 1,000 windows n are judged, and the model says .2 of each.

    How often a 95 % interval holds the rate is computed over all samples, without simulation: .93 to .97. A
    few cases are listed where no interval could come nearer to .95.
    """
    n_positive = round(prevalence * 1000)
    coverage = exact_coverage(n_positive, n)
    if (prevalence, n) in COVERAGES_OVER_97_PERCENT:
        assert round(coverage, 3) == COVERAGES_OVER_97_PERCENT[prevalence, n]
    else:
        assert 0.93 <= coverage <= 0.97


@pytest.mark.parametrize("n_positive", [0, 1, 7, 30])
def test_a_constant_model_leaves_wilsons_interval(n_positive):
    """Of 30 judged windows some are positive; the model says .3 of all.

    Such a model adds nothing, so that the textbook's interval for a share, Wilson's, must come out.
    """
    y = [1] * n_positive + [0] * (30 - n_positive)
    estimates = difference_estimate(
        y=[y],  # one draw
        p=[[0.3] * 30],
        weights=[[1] * 30],
        chances=np.zeros((1, 30)),
        film_p=0.3,
        film_variance=0.0,
    )
    wilson = binomtest(n_positive, 30).proportion_ci(method="wilson")

    assert estimates.low[0] == pytest.approx(wilson.low, abs=1e-6)
    assert estimates.high[0] == pytest.approx(wilson.high, abs=1e-6)


def test_where_all_windows_are_judged_the_rate_is_known():
    """All 1,000 windows of a film are judged, in any order.

    With nothing left to guess, value and both ends of the interval are the true rate.
    """
    rng = np.random.default_rng(0)
    films = planted_windows(rng, prevalence=0.2, quality=1, n_films=1)
    seconds, y, p = films.seconds[0], films.y[0], films.p[0]
    cells = planted_cells(content_s=seconds, p=p)
    judged_order = rng.permutation(1000)

    estimates = estimate_rate(cells, judged_order[None], y[judged_order][None])

    true_rate = np.average(y, weights=seconds)
    assert estimates.value[0] == pytest.approx(true_rate)
    assert estimates.low[0] == pytest.approx(true_rate)
    assert estimates.high[0] == pytest.approx(true_rate)


@pytest.mark.parametrize(
    "judged", [[*range(9)], [*range(8), 15]], ids=["without the long window", "with the long window"]
)
def test_nine_positive_windows_of_16_have_an_interval_up_to_1(judged):
    """All judged windows are positive, so that all of the film may be.

    Fifteen windows have 46 s, and the last, number 15, has 100 s: most draws of nine have it, but a list of
    judgements may not.
    """
    cells = planted_cells(content_s=[46] * 15 + [100])
    all_positive = np.ones((1, 9))  # [1 draw, 9 windows]

    estimates = estimate_rate(cells, np.array([judged]), all_positive)

    assert estimates.value[0] == 1
    assert estimates.high[0] == 1
    assert 0.5 < estimates.low[0] < 1


class Simulated(NamedTuple):
    """Means over simulated estimates: how often they hold the rate, their width, and value less rate."""

    coverage: float
    width: float
    error: float


def simulate(windows, n):
    """Estimate the rate of each film from 60 draws of n windows, with chances by content."""
    is_held, widths, errors = [], [], []
    for film, (seconds, y, p) in enumerate(zip(*windows, strict=True)):
        cells = planted_cells(content_s=seconds, p=p)
        true_rate = np.average(y, weights=seconds)
        drawn = np.array([cells.order_of_draw(str(film), seed)[:n] for seed in range(60)])
        estimates = estimate_rate(cells, drawn, y[drawn])
        is_held.append((estimates.low <= true_rate) & (true_rate <= estimates.high))
        widths.append(estimates.high - estimates.low)
        errors.append(estimates.value - true_rate)
    return Simulated(coverage=np.mean(is_held), width=np.mean(widths), error=np.mean(errors))


def sixteen_films(rng, n_windows):
    """Plant 16 films of so many windows, .2 of them positive."""
    windows = planted_windows(rng, prevalence=0.2, quality=1, n_films=16)
    return Windows(*(values[:, :n_windows] for values in windows))


@pytest.mark.long  # simulates
@pytest.mark.parametrize("n", [30, 60])
def test_intervals_hold_the_rate_if_positive_windows_are_longer(n):
    """Sixteen films are planted in which positive windows are three times as long as they would be.

    Each is judged in 60 random draws of n windows. The rate is of seconds, and windows are drawn by content,
    so that length is accounted for. Intervals from windows drawn with equal chances would hold the rate in
    .87 to .91 of draws only.
    """
    windows = sixteen_films(np.random.default_rng(n), n_windows=600)
    times_longer = np.where(windows.y > 0, 3, 1)
    windows = windows._replace(seconds=times_longer * windows.seconds)

    simulated = simulate(windows, n)

    assert 0.93 <= simulated.coverage <= 0.975  # 960 draws leave it uncertain by .007
    assert abs(simulated.error) < 0.01


@pytest.mark.long  # simulates
@pytest.mark.parametrize("n", [15, 30])
def test_intervals_hold_the_rate_where_one_window_in_twenty_lasts_two_minutes(n):
    """Sixteen films of 60 windows: 57 of 5 s, which are 285 s, and about three of 120 s, which are 360 s.

    Each film is judged in 60 random draws of n windows. Intervals hold the true rate nearly as often as they
    should, .95, and say something: they are below .3 wide.
    """
    rng = np.random.default_rng(2 * n)
    windows = sixteen_films(rng, n_windows=60)
    is_long = rng.random((16, 60)) < 0.05
    windows = windows._replace(seconds=np.where(is_long, 120.0, 5.0))

    simulated = simulate(windows, n)

    assert simulated.coverage >= 0.92
    assert simulated.width < 0.3


def test_cells_without_content_need_no_judgement():
    """A rate needs several windows that judges are sure of, or all of a film that has fewer.

    Of four cells one has no content: three judgements are the whole film.
    """
    cells = planted_cells(content_s=[5.0, 0.0, 5.0, 5.0])
    assert least_sure(cells) == 3


def test_a_cell_is_known_where_more_than_half_of_its_time_counts():
    """Three cells of 10 s, of which 4, 5 and 6 s count."""
    cells = Cells(
        spans=np.array([[0.0, 10.0], [10.0, 20.0], [20.0, 30.0]]),
        content_s=np.full(3, 10.0),
        counted_s=np.array([4.0, 5.0, 6.0]),
        p=np.full(3, 0.5),
    )
    assert cells.is_known.tolist() == [False, False, True]


def estimates_worth(worth, *, n, n_windows):
    """Plant estimates from n judged windows of a film of `n_windows`, which are worth `worth` windows.

    So many windows would give as narrow an interval without the model. The squared width of an interval from
    n windows is proportional to 1 / n - 1 / n_windows.
    """
    squared_width_without_model = 1 / n - 1 / n_windows
    squared_width = 1 / worth - 1 / n_windows
    zero, one = np.zeros(1), np.ones(1)
    return Estimates(
        value=one,
        low=zero,
        high=np.sqrt(squared_width / squared_width_without_model) * one,
        gain=one,
        value_without_model=one,
        low_without_model=zero,
        high_without_model=one,
    )


def test_the_worth_of_a_model_is_rounded_once():
    """A model and 10 judgements, of a film of 40 windows, are worth 15.46 judgements without the model.

    This is rounded to 15. If it were rounded to one decimal first, 15.5, it would become 16.
    """
    estimates = estimates_worth(15.46, n=10, n_windows=40)
    n_needed = _n_needed_without_model(estimates, 10, 40)
    assert round(n_needed) == 15


@pytest.mark.parametrize(
    ("judged", "sure", "expected_numbers"),
    [
        (0, 0, []),
        (1, 1, [1]),
        (1, 0, [1]),
        (2, 2, [2]),
        (2, 1, [2, 1]),
        (2, 0, [2, 0]),
        (3, 3, [3]),
        (21, 20, [21, 20]),
    ],
)
def test_a_film_without_a_share_says_how_many_windows_were_judged_and_of_how_many_surely(
    judged, sure, expected_numbers
):
    """Of any number of windows it says so, also of none, one and two."""
    text = str(counted_windows(WindowCounts(judged, sure, left=9, least=10)))

    assert [int(number) for number in re.findall("[0-9]+", text)] == expected_numbers


@pytest.mark.parametrize("sampling", [SUCCESSIVE, SEQUENTIAL_POISSON])
@pytest.mark.parametrize(("n_positive", "is_all_alike"), [(0, True), (1, False), (2, False), (3, True)])
def test_an_interval_of_windows_judged_all_alike_is_exact_unless_they_were_drawn_as_poisson(
    sampling, n_positive, is_all_alike
):
    """Three of five windows were judged, without a model. The method stands beside the interval."""
    answers = {cell: {"AB": cell < n_positive} for cell in range(3)}
    windows = JudgedWindows(planted_cells(content_s=np.full(5, 6.0)), answers, (), sampling)

    method = _method(windows, votes(windows.by_cell).positive_shares, uses_model=False)

    assert method == ("exact" if is_all_alike and sampling == SUCCESSIVE else "wilson")
    assert _method(windows, votes(windows.by_cell).positive_shares, uses_model=True) == "difference"


@pytest.mark.parametrize(("n_positive", "n_unsure"), [(0, 0), (5, 0), (2, 0), (0, 1), (4, 1)])
def test_a_share_of_all_windows_is_a_count_whatever_the_answers(n_positive, n_unsure):
    """All five windows are judged; a share leaves out those of which the judge is not sure."""
    n_sure = 5 - n_unsure
    answers = {cell: {"AB": cell < n_positive} for cell in range(n_sure)}
    unsure = tuple(range(n_sure, 5))
    windows = JudgedWindows(planted_cells(content_s=np.full(5, 6.0)), answers, unsure, SUCCESSIVE)

    assert _method(windows, votes(windows.by_cell).positive_shares, uses_model=True) == "census"
