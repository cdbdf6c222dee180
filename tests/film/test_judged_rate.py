"""A corrected rate covers what it should, and is narrower than judgements alone."""

import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binomtest, hypergeom

from obygaze_film.cells import Cells
from obygaze_film.draws import SEQUENTIAL_POISSON, SUCCESSIVE
from obygaze_film.judged_rate import (
    _cut_at_mean_of_judges,
    _Estimator,
    _method,
    _n_needed_without_model,
    _rate_of_panel,
    _too_few,
    _with_agreement,
    agreement_of_judges,
    alpha_of_judges,
    counted_windows,
    main_rate,
    notes_of_pairs,
    read_rates,
)
from obygaze_film.judged_windows import JudgedFilm, JudgedWindows, WindowCounts, least_sure, votes
from obygaze_film.positive import Meaning, Positive
from obygaze_film.rate_estimates import Estimates, difference_estimate, estimate_rate
from obygaze_film.schema import CorrectedRate
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
    """A model gives probabilities that vary at random (noise 1), and knows nothing (quality 0).

    An interval that uses its probabilities must hold the true rate as often as one without them: .93 to .975
    of 2,000 do. It is wider by 1.5 % at most.
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

    The rate is the share of positives among the judged windows, corrected by how much the model's mean p in
    the whole film differs from that in the judged windows. The gain says how far this correction is trusted:

        rate = mean y + gain (mean p of film - mean p of judged windows)
        gain = rate (1 - rate) (mean p of positives - mean p of negatives) / variance of p in the film

    Each hangs on the other; the test puts the estimated rate into the second equation, and that gain into
    the first.
    """
    estimates = difference_estimate(
        y=[[1, 0, 1, 0, 0]],
        p=[[0.8, 0.3, 0.6, 0.5, 0.9]],
        weights=[[1, 1, 1, 1, 0]],
        chances=np.zeros((1, 5)),  # of a window to be drawn: almost 0 in a very long film
        film_p=0.5,
        film_variance=0.1,
    )
    (rate,) = estimates.value

    mean_y = (1 + 0 + 1 + 0) / 4
    mean_p = (0.8 + 0.3 + 0.6 + 0.5) / 4
    # Either mean has one window more, of the mean p: so a mean of few windows is not taken at its word.
    mean_p_of_positives = (0.8 + 0.6 + mean_p) / 3
    mean_p_of_negatives = (0.3 + 0.5 + mean_p) / 3
    gain = rate * (1 - rate) * (mean_p_of_positives - mean_p_of_negatives) / 0.1
    assert rate == pytest.approx(mean_y + gain * (0.5 - mean_p), abs=1e-6)
    assert estimates.gain == pytest.approx(gain, abs=1e-6)


def test_a_cell_without_content_is_neither_found_nor_drawn():
    """A film has three cells (windows) of 8 s. The first is all black, without content; the others have some.

    A cell is found by its exact start and end, and only those with content are drawn for judges.
    """
    cells = Cells(
        spans=np.array([[0.0, 8.0], [8.0, 16.0], [16.0, 24.0]]),
        content_s=np.array([0.0, 0.5, 8.0]),
        counted_s=np.ones(3),
        p=np.ones(3),
    )

    drawn = cells.order_of_draw("m", seed=0)

    assert cells.index_with_content(0.0, 8.0) is None
    assert cells.index_with_content(8.0, 16.0) == 1
    assert cells.index_with_content(16.0, 24.0) == 2
    assert cells.index_with_content(20.0, 28.0) is None  # no cell begins there
    assert sorted(drawn) == [1, 2]


def test_the_gain_of_a_model_that_is_too_sure_is_below_1():
    """The model gives p = .1 to 2,000 windows of which .3 are positive, and .9 to 2,000 of which .7 are.

    The gain is how far its p are to be trusted: the slope of what is positive on p, (.7 - .3) / (.9 - .1). In
    the whole film the mean of p is .5, and its variance .4² = .16, as .1 and .9 are .4 from the mean.
    """
    rng = np.random.default_rng(0)
    is_high = rng.permutation(np.arange(4000) < 2000)
    chance_of_positive = np.where(is_high, 0.7, 0.3)
    is_positive = rng.random(4000) < chance_of_positive
    p = np.where(is_high, 0.9, 0.1)

    gain = gain_of(is_positive, p, film_p=0.5, film_variance=0.16)

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


def test_a_rate_of_a_short_film_needs_a_sure_judgement_of_each_window_with_content_and_of_no_other():
    """A rate is estimated from ten judgements or more, by judges who were sure; of a shorter film from all.

    This film has four windows. One has no content, as it is black: nobody need judge it, so that three sure
    judgements are enough.
    """
    cells = planted_cells(content_s=[5.0, 0.0, 5.0, 5.0])
    n_needed = least_sure(cells)
    assert n_needed == 3


def test_a_cell_is_known_where_more_than_half_of_its_time_counts():
    """A film has three cells of 10 s. 4, 5 and 6 s of them have a probability that counts.

    The model says enough of a cell, so that it is "known", only where that is more than a half: of the third.
    """
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


@pytest.mark.parametrize(
    ("judged", "sure", "written_numbers"),
    [
        pytest.param(0, 0, [], id="none, said in a word"),
        pytest.param(1, 1, [1], id="one, surely"),
        pytest.param(1, 0, [1], id="one, not surely, said in words"),
        pytest.param(2, 2, [2], id="two, all surely"),
        pytest.param(2, 1, [2, 1], id="two, one of them surely"),
        pytest.param(2, 0, [2, 0], id="two, none of them surely"),
        pytest.param(3, 3, [3], id="three, all surely"),
        pytest.param(21, 20, [21, 20], id="many, all but one surely"),
    ],
)
def test_a_film_without_a_share_says_how_many_windows_were_judged_and_of_how_many_surely(
    judged, sure, written_numbers
):
    """As in "21 windows judged blindly, 20 of them surely".

    The second number is left out where the judges were sure of all. Texts on no window and on one have words
    in place of numbers.
    """
    text = str(counted_windows(WindowCounts(judged, sure, left=9, least=10)))

    assert [int(number) for number in re.findall("[0-9]+", text)] == written_numbers


def three_of_five_windows_judged(*, n_positive, sampling):
    """Let AB judge three of a film's five windows, and call the first `n_positive` of them positive."""
    cells = planted_cells(content_s=np.full(5, 6.0))
    answers = {cell: {"AB": cell < n_positive} for cell in range(3)}
    return JudgedWindows(cells, answers, unsure=(), sampling=sampling)


@pytest.mark.parametrize("sampling", [SUCCESSIVE, SEQUENTIAL_POISSON])
@pytest.mark.parametrize("n_positive", [0, 1, 2, 3])
def test_the_interval_is_exact_if_windows_of_a_successive_draw_were_judged_all_alike(sampling, n_positive):
    """AB judged three of five windows, drawn one after the other (successive) or by sequential Poisson.

    The interval, without a model, is exact if the draw is successive and AB called all three positive or all
    three negative. Else it is Wilson's.
    """
    windows = three_of_five_windows_judged(n_positive=n_positive, sampling=sampling)

    method = _method(windows, votes(windows.by_cell).positive_shares, uses_model=False)

    are_judged_alike = n_positive in {0, 3}
    is_exact = are_judged_alike and sampling == SUCCESSIVE
    assert method == ("exact" if is_exact else "wilson")


@pytest.mark.parametrize("sampling", [SUCCESSIVE, SEQUENTIAL_POISSON])
@pytest.mark.parametrize("n_positive", [0, 1, 2, 3])
def test_the_interval_is_of_the_difference_from_the_model_wherever_a_model_is_used(sampling, n_positive):
    """AB judged three of five windows, drawn in one of two ways, and called none to all of them positive.

    Without a model the kind of interval would depend on both. With one it is always "difference": that of the
    rate as the model's share, corrected by how much it is wrong in the judged windows.
    """
    windows = three_of_five_windows_judged(n_positive=n_positive, sampling=sampling)
    assert _method(windows, votes(windows.by_cell).positive_shares, uses_model=True) == "difference"


@pytest.mark.parametrize(("n_positive", "n_unsure"), [(0, 0), (5, 0), (2, 0), (0, 1), (4, 1)])
def test_a_share_is_counted_and_not_estimated_if_all_windows_of_the_film_were_judged(n_positive, n_unsure):
    """AB judged all five windows: `n_positive` positive, `n_unsure` unsure, and the rest negative.

    No window is left to estimate, so that the method is "census", even with a model, and whatever AB
    answered. Windows of which AB was not sure are left out of the share.
    """
    n_sure = 5 - n_unsure
    answers = {cell: {"AB": cell < n_positive} for cell in range(n_sure)}
    unsure = tuple(range(n_sure, 5))
    windows = JudgedWindows(planted_cells(content_s=np.full(5, 6.0)), answers, unsure, SUCCESSIVE)

    assert _method(windows, votes(windows.by_cell).positive_shares, uses_model=True) == "census"


# --- what is said of judges together
# ---------------------------------------------------------------------------
SURE, NOT_SURE, NOT_JUDGED = "s", "u", "-"
NAMELESS = "_"


def film_judged(**windows_by_judge):
    """Plant a film that was judged: a letter for each window of its draw, from the first on.

    `AB="ssu-"`: AB was sure of the first two windows and calls them positive in turns (the first is), was not
    sure of the third, and did not judge the fourth. `NAMELESS` stands for a judge without a name.
    """
    n_windows = max(len(windows) for windows in windows_by_judge.values())
    answers = {}
    for judge, windows in windows_by_judge.items():
        answers_of_judge = {}
        for place, window in enumerate(windows, start=1):
            if window == NOT_SURE:
                answers_of_judge[place] = None
            elif window == SURE:
                answers_of_judge[place] = place % 2 == 1
        answers["" if judge == NAMELESS else judge] = answers_of_judge
    return JudgedFilm(
        movie="m",
        cells=planted_cells(content_s=np.full(n_windows, 6.0)),
        sampling=SUCCESSIVE,
        cell_of_place={place: place - 1 for place in range(1, n_windows + 1)},
        judged_places={judge: frozenset(of_judge) for judge, of_judge in answers.items()},
        answers=answers,
        notices=(),
    )


@pytest.mark.parametrize("n_common", [0, 1, 2, 9, 10, 11])
def test_two_judges_are_compared_on_the_windows_of_which_both_were_sure(n_common):
    """AB and CD judged three windows more, of which AB was sure of one, and CD of none.

    They always agree. From ten common windows on they have a kappa, which is 1; without any they are no pair.
    """
    film = film_judged(
        AB=SURE * n_common + NOT_SURE * 2 + SURE + NOT_JUDGED * 2,
        CD=SURE * n_common + NOT_SURE * 3 + NOT_JUDGED + SURE,
    )

    pairs = agreement_of_judges([film])

    if n_common == 0:
        assert pairs == ([], 0)
        return
    (pair,) = pairs.agreement
    assert pairs.n_pairs == 1
    assert pair.annotators == ["AB", "CD"]
    assert (pair.n, pair.alike) == (n_common, n_common)
    assert pair.n_unsure == 3
    has_kappa = n_common >= 10
    assert pair.kappa == (1.0 if has_kappa else None)
    assert (pair.low is not None) == has_kappa
    assert (pair.high is not None) == has_kappa


def film_of_eleven_windows_all_negative_by_cd_and_ef():
    """Plant a film of eleven windows: AB calls six positive (the first, the third, ...), CD and EF none."""
    film = film_judged(AB=SURE * 11, CD=SURE * 11, EF=SURE * 11)
    all_negative = dict.fromkeys(range(1, 12), False)
    return replace(film, answers={**film.answers, "CD": all_negative, "EF": all_negative})


def test_a_judge_who_calls_all_windows_negative_agrees_with_another_by_chance_alone():
    """AB calls six of eleven windows positive, and CD and EF none: each agrees with AB on five."""
    of_ab_and_cd, of_ab_and_ef, _of_cd_and_ef = agreement_of_judges(
        [film_of_eleven_windows_all_negative_by_cd_and_ef()]
    ).agreement

    for pair in (of_ab_and_cd, of_ab_and_ef):
        assert (pair.n, pair.alike) == (11, 5)
        assert pair.kappa == pytest.approx(0)


def test_two_judges_who_call_all_windows_negative_have_no_kappa():
    """CD and EF agree on all of eleven windows, but so they would by chance: kappa would be 0 / 0."""
    *_, of_cd_and_ef = agreement_of_judges([film_of_eleven_windows_all_negative_by_cd_and_ef()]).agreement

    assert (of_cd_and_ef.n, of_cd_and_ef.alike) == (11, 11)
    assert (of_cd_and_ef.kappa, of_cd_and_ef.low, of_cd_and_ef.high) == (None, None, None)


def test_a_judge_without_a_name_is_compared_with_nobody():
    """AB, CD and somebody without a name judged twelve windows each: only AB and CD are compared.

    Judgements without a name may be of several people, so that nobody could say who agreed with AB.
    """
    windows_by_judge = {"AB": SURE * 12, "CD": SURE * 12, NAMELESS: SURE * 12}
    film = film_judged(**windows_by_judge)
    pairs = [pair.annotators for pair in agreement_of_judges([film]).agreement]
    assert pairs == [["AB", "CD"]]


def films_judged_by(*n_judges):
    """Plant films of one window each, each judged by so many judges of its own."""
    films = []
    for number, n in enumerate(n_judges):
        films.append(film_judged(**{f"J{number}of{judge}": SURE for judge in range(n)}))
    return films


def test_a_hundred_pairs_are_compared_and_of_more_a_hundred_that_are_drawn():
    """Films are judged by 14, 4 and 3 people of their own: 91, 6 and 3 pairs, together 100.

    A film of two has one more. Of 101 pairs a hundred are drawn, the same each time and none twice, and a
    note gives both numbers.
    """
    films_with_100_pairs = films_judged_by(14, 4, 3)
    films_with_101_pairs = films_judged_by(14, 4, 3, 2)

    all_pairs = agreement_of_judges(films_with_100_pairs)
    drawn_pairs = agreement_of_judges(films_with_101_pairs)
    drawn_again = agreement_of_judges(films_with_101_pairs)

    assert len(all_pairs.agreement) == 100
    assert all_pairs.n_pairs == 100
    assert notes_of_pairs(all_pairs) == []

    assert len(drawn_pairs.agreement) == 100
    assert drawn_pairs.n_pairs == 101
    names_of_pairs = {tuple(pair.annotators) for pair in drawn_pairs.agreement}
    assert len(names_of_pairs) == 100
    assert drawn_pairs == drawn_again
    (note,) = notes_of_pairs(drawn_pairs)
    assert re.findall("[0-9]+", str(note)) == ["100", "101"]


def film_with_windows_shared_by_three(*, n_shared):
    """Plant a film of which AB and CD judged `n_shared` windows surely, and EF the first of them.

    Four more windows follow: two that AB and CD judged, of which one or none of them was sure, and two that
    one person judged, GH surely and AB not.
    """
    return film_judged(
        AB=SURE * n_shared + SURE + NOT_SURE + NOT_JUDGED + NOT_SURE,
        CD=SURE * n_shared + NOT_SURE + NOT_SURE,
        EF=SURE,
        GH=NOT_JUDGED * (n_shared + 2) + SURE,
    )


def test_alpha_is_over_the_windows_that_two_judges_or_more_were_sure_of():
    """AB and CD were sure of ten windows and agree on them; so did EF, who judged only the first.

    The two other windows that two people judged, but not both surely, are counted as unsure. GH, who judged
    one window that nobody else was sure of, is not among the judges of alpha.
    """
    alpha = alpha_of_judges([film_with_windows_shared_by_three(n_shared=10)])

    assert alpha.annotators == ["AB", "CD", "EF"]
    assert alpha.n_windows == 10
    assert alpha.value == 1.0
    assert alpha.n_unsure == 2


def test_three_judges_who_share_nine_windows_have_no_alpha():
    """Nine windows were judged surely by two of three judges or more: an alpha needs ten of them."""
    assert alpha_of_judges([film_with_windows_shared_by_three(n_shared=9)]) is None


def test_two_judges_have_no_alpha():
    """AB and CD judged the same twelve windows. How far two agree is said by a kappa, and not by an alpha."""
    of_two = film_judged(AB=SURE * 12, CD=SURE * 12)
    assert alpha_of_judges([of_two]) is None


def test_three_judges_who_call_nothing_positive_have_no_alpha():
    """Three judged twelve windows, and agree on all. If they call some positive and some not, alpha is 1.

    If they call none positive, they would agree as well if they did not look: nothing can be said.
    """
    who_alternate = film_judged(AB=SURE * 12, CD=SURE * 12, EF=SURE * 12)
    no_to_all_windows = dict.fromkeys(range(1, 13), False)
    who_say_no = replace(who_alternate, answers=dict.fromkeys(who_alternate.answers, no_to_all_windows))
    assert alpha_of_judges([who_alternate]).value == 1.0
    assert alpha_of_judges([who_say_no]) is None


def test_a_judge_of_another_film_is_not_counted_for_an_alpha():
    """GH judged another film than AB, CD and EF: nothing says how far GH agrees with anybody.

    So two judges of a film stay two, who have no alpha, and the alpha of three is of these three.
    """
    of_two = film_judged(AB=SURE * 12, CD=SURE * 12)
    of_three = film_judged(AB=SURE * 12, CD=SURE * 12, EF=SURE * 12)
    another_film = film_judged(GH=SURE * 12)
    assert alpha_of_judges([of_two, another_film]) is None
    assert alpha_of_judges([of_three, another_film]).annotators == ["AB", "CD", "EF"]


# --- one rate of several
# ---------------------------------------------------------------------------
def rate_of(*judges, n=20, low=0.0, value=0.5, high=1.0):
    """Plant the rate of a judge, or of a panel, with its interval."""
    return CorrectedRate(
        model="m",
        value=value,
        low=low,
        high=high,
        level=0.95,
        method="wilson",
        n=n,
        n_positive_by_all=0,
        n_rows=40,
        worth=None,
        expected=None,
        annotators=[*judges],
        positives=[0] * len(judges),
        positive="S",
    )


@pytest.mark.parametrize(
    ("rates", "chosen"),
    [
        ([rate_of("AB", n=12), rate_of("CD", n=13)], ["CD"]),
        ([rate_of("AB", n=13), rate_of("CD", n=12)], ["AB"]),
        ([rate_of("AB", n=12), rate_of("CD", n=12)], ["AB"]),
        ([rate_of("AB", n=40), rate_of("CD", n=12), rate_of("AB", "CD", n=10)], ["AB", "CD"]),
    ],
    ids=["most windows", "most windows, first", "as many: the first", "the panel"],
)
def test_the_main_rate_of_a_film_is_its_panels_or_else_that_of_the_judge_of_most_windows(rates, chosen):
    """Each judge of a film may have a rate, and all of them together, the panel, one more.

    Where films are compared, one rate stands for each.
    """
    assert main_rate(rates).annotators == chosen


@pytest.mark.parametrize(
    ("of_ab", "of_cd", "share", "expected"),
    [
        pytest.param((0.2, 0.6), (0.4, 0.8), 0.5, (0.3, 0.7), id="both means, .3 and .7, are within"),
        pytest.param((0.0, 0.6), (0.0, 0.8), 0.5, (0.1, 0.7), id="mean 0 would widen it below"),
        pytest.param((0.4, 1.0), (0.4, 1.0), 0.5, (0.4, 0.9), id="mean 1 would widen it above"),
        pytest.param((0.2, 0.6), (0.4, 0.8), 0.8, (0.3, 0.8), id="mean .7 is below the share .8"),
        pytest.param((0.2, 0.6), (0.4, 0.8), 0.2, (0.2, 0.7), id="mean .3 is above the share .2"),
    ],
)
def test_a_panels_interval_is_cut_at_the_mean_ends_of_its_judges_but_holds_its_share(
    of_ab, of_cd, share, expected
):
    """The panel's interval is .1 to .9, and is cut to the means of AB's and CD's lower and upper ends.

    It becomes no wider than it was, and the panel's own share stays within.
    """
    panel = rate_of("AB", "CD", low=0.1, value=share, high=0.9)
    (low_of_ab, high_of_ab), (low_of_cd, high_of_cd) = of_ab, of_cd
    rates = [rate_of("AB", low=low_of_ab, high=high_of_ab), rate_of("CD", low=low_of_cd, high=high_of_cd)]

    cut = _cut_at_mean_of_judges(panel, rates)

    assert (cut.low, cut.high) == pytest.approx(expected)
    assert cut.value == share


class EstimatorOf0To1:
    """Gives a panel the interval 0 to 1, whatever it judged."""

    def rate(self, _windows, judges):
        """Return the rate of some judges."""
        return rate_of(*judges)


def windows_with_unsure(unsure):
    """Plant 20 windows, of some of which a judge or a panel was not sure."""
    return JudgedWindows(planted_cells(content_s=np.full(20, 6.0)), {}, unsure, SUCCESSIVE)


@pytest.mark.parametrize(
    ("unsure_of_ab", "unsure_of_cd", "unsure_of_panel", "is_cut"),
    [
        pytest.param((), (), (), True, id="all are sure of all windows"),
        pytest.param((3, 4), (4, 3), (3, 4), True, id="all are unsure of windows 3 and 4"),
        pytest.param((3,), (), (3,), False, id="AB alone is unsure of window 3, and so is the panel"),
        pytest.param((), (3,), (3,), False, id="CD alone is unsure of window 3, and so is the panel"),
        pytest.param((3,), (3,), (), False, id="the judges are unsure of window 3, and the panel is not"),
    ],
)
def test_a_panels_interval_is_cut_only_if_its_judges_rates_leave_out_the_same_windows_as_its_own(
    unsure_of_ab, unsure_of_cd, unsure_of_panel, is_cut
):
    """The intervals of AB and CD are .2 to .8, and that of their panel 0 to 1: it is cut to .2 to .8.

    A rate leaves out the windows of which its judges were not sure. If not all three leave out the same ones,
    they are rates of different time, and the panel's interval stays 0 to 1.
    """
    rate_of_panel = _rate_of_panel(
        EstimatorOf0To1(),
        windows_with_unsure(unsure_of_panel),
        windows_of={"AB": windows_with_unsure(unsure_of_ab), "CD": windows_with_unsure(unsure_of_cd)},
        rates=[rate_of("AB", low=0.2, high=0.8), rate_of("CD", low=0.2, high=0.8)],
    )

    assert rate_of_panel.annotators == ["AB", "CD"]
    assert rate_of_panel.low == (0.2 if is_cut else 0.0)
    assert rate_of_panel.high == (0.8 if is_cut else 1.0)


def test_a_panels_interval_is_not_cut_if_one_of_its_judges_has_no_rate():
    """AB and CD were sure of all windows. AB's interval is .2 to .8, CD has none, the panel's is 0 to 1."""
    all_sure = windows_with_unsure(())

    rate_of_panel = _rate_of_panel(
        EstimatorOf0To1(),
        all_sure,
        windows_of={"AB": all_sure, "CD": all_sure},
        rates=[rate_of("AB", low=0.2, high=0.8)],
    )

    assert rate_of_panel.annotators == ["AB", "CD"]
    assert (rate_of_panel.low, rate_of_panel.high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("judges_of_rate", "expected_pairs"),
    [
        pytest.param(["AB"], [["AB", "CD"], ["AB", "EF"]], id="the pairs that AB is one of"),
        pytest.param(["CD"], [["AB", "CD"], ["CD", "EF"]], id="the pairs that CD is one of"),
        pytest.param(["GH"], [], id="GH was compared with nobody"),
        pytest.param(["AB", "CD"], [["AB", "CD"]], id="the pair within a panel of two"),
        pytest.param(
            ["AB", "CD", "EF"], [["AB", "CD"], ["AB", "EF"], ["CD", "EF"]], id="all pairs of a panel of three"
        ),
    ],
)
def test_a_rate_of_one_judge_has_all_their_agreements_and_a_panels_rate_those_among_its_judges(
    judges_of_rate, expected_pairs
):
    """AB, CD and EF judged three windows each, so that each of them was compared with the two others."""
    pairs = agreement_of_judges([film_judged(AB=SURE * 3, CD=SURE * 3, EF=SURE * 3)])

    rate = _with_agreement(rate_of(*judges_of_rate), pairs)

    assert [pair.annotators for pair in rate.agreement] == expected_pairs


@pytest.mark.parametrize(
    ("n_judged", "worth", "is_said"),
    [
        pytest.param(10, 9, False, id="10 judgements are worth fewer"),
        pytest.param(10, 10, False, id="10 are worth 10"),
        pytest.param(10, 10.4, False, id="10 are worth 10.4, which is written 10"),
        pytest.param(10, 10.6, True, id="10 are worth 10.6, which is written 11"),
        pytest.param(10, 11, True, id="10 are worth 11"),
        pytest.param(10, 39, True, id="10 are worth 39"),
        pytest.param(39, 39.99, True, id="39 of 40 windows are worth nearly all 40"),
    ],
)
def test_a_model_that_saves_no_whole_judgement_is_not_said_to_save_any(n_judged, worth, is_said):
    """Some of a film's 40 windows were judged, and corrected by a model.

    `worth` is how many judgements without the model would give as narrow an interval. It is said only if,
    rounded, it is more than were judged; else there is no number (None).
    """
    estimates = estimates_worth(worth, n=n_judged, n_windows=40)
    n_needed = _n_needed_without_model(estimates, n=n_judged, n_windows=40)
    assert n_needed == (pytest.approx(worth) if is_said else None)


def test_the_worth_of_a_model_is_rounded_once():
    """A model and 10 judgements, of a film of 40 windows, are worth 15.46 judgements without the model.

    This is rounded to 15. If it were rounded to one decimal first, 15.5, it would become 16.
    """
    estimates = estimates_worth(15.46, n=10, n_windows=40)
    n_needed = _n_needed_without_model(estimates, 10, n_windows=40)
    assert round(n_needed) == 15


def test_a_model_saves_nothing_where_all_windows_are_judged():
    """All 40 windows of a film were judged, so that its share is counted, and no interval has a width.

    None says that without the model no more judgements would be needed.
    """
    share = np.array([1.0])
    counted = Estimates(
        value=share,
        low=share,
        high=share,
        gain=np.array([0.0]),
        value_without_model=share,
        low_without_model=share,
        high_without_model=share,
    )

    assert _n_needed_without_model(counted, n=40, n_windows=40) is None


def windows_of_ab_and_cd():
    """Plant twelve windows: one of 4 s, one without content and ten of 6 s; 7 s more were not read.

    AB and CD judged seven: of the first they were not both sure; of six of 6 s AB calls all positive, CD two.
    """
    cells = replace(planted_cells(content_s=[4, 0, *[6] * 10]), unread_s=7.0)
    answers = {cell: {"AB": True, "CD": cell < 4} for cell in range(2, 8)}
    return JudgedWindows(cells, answers, unsure=(0,), sampling=SUCCESSIVE)


def estimator_of_m(*, labelled):
    """Make an estimator of the level S by the model m, or by labels, which expects .3 of 64 seconds."""
    estimator = object.__new__(_Estimator)
    estimator.name = "m"
    estimator._movie = "tt1"
    estimator.expected = 0.3
    estimator.expected_s = 64.0
    estimator.positive = Positive((Meaning("S", "Sure", ""),), is_concept=False, task_title="")
    estimator.labelled = labelled
    return estimator


BY_MODEL_AND_BY_LABELS = pytest.mark.parametrize(
    "is_of_labels", [False, True], ids=["helped by a model", "helped by labels in its place"]
)


def rate_by_ab_and_cd(*, is_of_labels):
    """Estimate the rate from the windows of `windows_of_ab_and_cd`, with the help of a model or of labels."""
    windows = windows_of_ab_and_cd()
    estimator = estimator_of_m(labelled=windows.cells if is_of_labels else None)
    return estimator.rate(windows, ["AB", "CD"])


@BY_MODEL_AND_BY_LABELS
def test_a_rate_counts_the_windows_that_all_judges_were_sure_of(is_of_labels):
    """AB and CD are both sure of six windows. AB calls all six positive, CD two of them.

    So the share of positives is 6 / 6 by AB and 2 / 6 by CD, and the rate is their mean. The film has eleven
    windows with content; of one more that was judged AB and CD were not both sure.
    """
    rate = rate_by_ab_and_cd(is_of_labels=is_of_labels)

    n_sure = 6
    n_by_ab, n_by_cd = 6, 2
    assert rate.n == n_sure
    assert rate.positives == [n_by_ab, n_by_cd]
    assert rate.n_positive_by_all == 2
    assert rate.value == pytest.approx((n_by_ab / n_sure + n_by_cd / n_sure) / 2, abs=0.01)
    assert rate.n_unsure == 1
    assert rate.n_rows == 11  # windows of the film


@BY_MODEL_AND_BY_LABELS
def test_a_rate_is_of_the_seconds_without_doubtful_and_unread_ones(is_of_labels):
    """A film has ten windows of 6 s, and one of 4 s of which its judges are not both sure: it is left out.

    7 s more could not be read. The rate is of ten times 6 s.
    """
    rate = rate_by_ab_and_cd(is_of_labels=is_of_labels)

    assert rate.content_s == 10 * 6.0
    assert rate.unsure_s == 4.0
    assert rate.unread_s == 7.0


@BY_MODEL_AND_BY_LABELS
def test_a_rate_keeps_what_was_expected_before_anybody_judged_and_the_method_of_its_interval(is_of_labels):
    """AB and CD judged windows of a film. The model m, or labels in its place, expect .3 of 64 s to be S.

    A corrected rate has this expectation beside it, and says of whom it is. As all windows get the same
    probability, neither model nor labels help, and the interval is Wilson's, of the judgements alone.
    """
    rate = rate_by_ab_and_cd(is_of_labels=is_of_labels)

    assert rate.model == "m"
    assert rate.is_of_labels is is_of_labels
    assert rate.expected == 0.3
    assert rate.expected_s == 64.0
    assert rate.positive == "S"
    assert rate.method == "wilson"


# --- too few judgements
# ---------------------------------------------------------------------------
def numbers_of_refusal(*counts, notices=()):
    """Return the message that refuses a rate of a film of 60 windows, and the numbers in it, in their order.

    `counts` has the windows that each judge judged, too few for a rate.
    """
    message = str(_too_few(film_judged(AB=SURE * 60), counts, notices))
    return message, [int(number) for number in re.findall("[0-9]+", message)]


@pytest.mark.parametrize(
    ("judged", "left", "n_advised"),
    [
        pytest.param(0, 60, 30, id="thirty, of 60"),
        pytest.param(20, 40, 30, id="thirty, which are ten more than 20"),
        pytest.param(21, 39, 31, id="ten more than 21"),
        pytest.param(25, 35, 35, id="ten more than 25"),
        pytest.param(5, 10, 15, id="all 15 of a short film"),
        pytest.param(0, 10, 10, id="all ten of a shorter one"),
    ],
)
def test_who_judged_too_few_windows_for_a_share_is_advised_to_judge_thirty_or_ten_more(
    judged, left, n_advised
):
    """A judge was sure of none of `judged` windows, `left` others are left, and a share needs ten sure ones.

    The refusal ends with how many to judge in all: thirty, or ten more than before if that is more, as who
    follows the advice should not be refused again; and no more than the film has.
    """
    counts = WindowCounts(judged=judged, sure=0, left=left, least=10)

    message, numbers_in_message = numbers_of_refusal(counts)

    assert numbers_in_message[-1] == n_advised
    assert "--blind" in message


def test_a_refusal_has_the_numbers_of_who_was_sure_of_most_windows_and_then_judged_most():
    """No judge was sure of ten windows, as a rate needs: AB of 3 of 20, CD of 5 of 6, and EF of 5 of 8.

    The refusal tells the numbers of the judge who is nearest to a rate. CD and EF were sure of most windows,
    5 each, and EF judged more of them: it begins with EF's 8 judged windows and 5 sure ones.
    """
    by_ab = WindowCounts(judged=20, sure=3, left=40, least=10)
    by_cd = WindowCounts(judged=6, sure=5, left=54, least=10)
    by_ef = WindowCounts(judged=8, sure=5, left=52, least=10)

    _message, (n_judged, n_sure, *_) = numbers_of_refusal(by_ab, by_cd, by_ef)

    assert (n_judged, n_sure) == (8, 5)


def test_a_refusal_where_nobody_judged_says_how_many_of_all_windows_are_needed_and_advised():
    """Nobody judged a window of a film of 60: ten or all are needed for a rate, and 30 are advised."""
    by_nobody = ()
    _message, numbers = numbers_of_refusal(*by_nobody)

    n_needed, n_in_film, n_advised = 10, 60, 30
    assert numbers == [n_needed, n_in_film, n_advised]


def test_a_refusal_lists_what_judgements_were_left_out():
    """Nobody judged a window that counts: three judgements were left out, as two notices say."""
    message, _numbers = numbers_of_refusal(notices=["one of another film", "two that saw the score"])
    assert "one of another film; two that saw the score" in message


def test_nobody_is_sent_to_judge_windows_that_a_film_does_not_have():
    """All five windows of a film are judged, and the judge was sure of none."""
    message, _ = numbers_of_refusal(WindowCounts(judged=5, sure=0, left=0, least=5))
    assert "--blind" not in message


def test_a_folder_without_a_file_of_rates_has_no_rates(tmp_path):
    """Nobody judged the film: there is no file of rates, which is no error."""
    assert read_rates(tmp_path) == []
