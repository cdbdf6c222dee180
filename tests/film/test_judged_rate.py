"""A corrected rate covers what it should, and is narrower than judgements alone."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binomtest, hypergeom

from obygaze_film.cells import Cells
from obygaze_film.judged_rate import _n_needed_without_model, kappa_interval
from obygaze_film.judged_windows import least_sure
from obygaze_film.rate_estimates import Estimates, difference_estimate, estimate_rate
from tests.film.films import planted_cells

PREVALENCES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
SIZES = (30, 60, 100, 200)
N_ROWS, N_FILMS, N_EACH = 1000, 500, 4


def draws(rng, prevalence, quality, *, n_films=N_FILMS, bias=0.0, sharpness=1.0, noise=0.0):
    """Seconds, y, p of films, [F, 1000]: positives score `quality` deviations above negatives."""
    seconds = 1 + 5 * rng.gamma(3, 1 / 3, (n_films, N_ROWS))
    n_positive = max(1, round(prevalence * N_ROWS))
    y = rng.permuted(np.tile(np.arange(N_ROWS) < n_positive, (n_films, 1)), axis=1).astype(float)
    score = quality * (y - 0.5) + rng.normal(size=y.shape)
    return seconds, y, expit((sharpness * quality + noise) * score + logit(n_positive / N_ROWS) + bias)


def cover(prevalence, quality, n, *, n_films=N_FILMS, seed=0, **model):
    """2,000 draws of n windows, 4 from each of 500 films: coverage, mean width, width of judgements alone."""
    rng = np.random.default_rng([round(1000 * prevalence), round(10 * quality), n, seed])
    films = draws(rng, prevalence, quality, n_films=n_films, **model)
    seconds, y, p = (np.repeat(values, N_EACH, axis=0) for values in films)
    drawn = np.argpartition(rng.random(y.shape) / seconds, n, axis=1)[:, :n]
    chances = n * seconds / seconds.sum(axis=1, keepdims=True)
    judged = (np.take_along_axis(values, drawn, axis=1) for values in (y, p, np.ones_like(y), chances))
    mean = np.average(p, weights=seconds, axis=1)
    variance = np.average((p - mean[:, None]) ** 2, weights=seconds, axis=1)
    found = difference_estimate(*judged, film_p=mean, film_variance=variance)
    truth = np.average(y, weights=seconds, axis=1)
    holds = (found.low <= truth) & (truth <= found.high)
    return holds.mean(), (found.high - found.low).mean(), (found.alone_high - found.alone_low).mean()


@pytest.mark.long
@pytest.mark.parametrize("prevalence", [0.02, 0.1, 0.35, 0.5])
def test_it_covers_from_useless_models_to_good_ones_and_is_narrower_than_judgements_alone(prevalence):
    """Rare to common, all sizes and qualities: alone it finds the corner in which an interval is too short.

    2,000 draws leave a coverage uncertain by .005 (one standard error).
    """
    for n in SIZES:
        for quality in (0, 0.5, 1, 2):  # AUC .5, .64, .76, .92
            coverage, width, alone = cover(prevalence, quality, n)
            assert 0.93 <= coverage <= 0.975, (quality, n, coverage)
            assert width < alone if quality else width == pytest.approx(alone, rel=1e-6), (quality, n)
        coverage, width, alone = cover(prevalence, 0, n, noise=1.0)  # probabilities that say nothing
        assert 0.93 <= coverage <= 0.975, (n, coverage)
        assert width == pytest.approx(alone, rel=0.015)


@pytest.mark.parametrize("model", [{}, {"bias": 1.5}, {"bias": -1.5}, {"sharpness": 2.5}, {"sharpness": 0.4}])
def test_it_needs_no_trust_in_the_model(model):
    """Biased, overconfident and timid probabilities cost width, never coverage."""
    for prevalence, n in ((0.05, 30), (0.2, 100), (0.5, 30)):
        coverage, width, alone = cover(prevalence, 1, n, n_films=250, **model)
        assert coverage >= 0.92  # 1,000 draws: .007
        assert width < alone


def test_a_timid_model_is_not_counted_more_than_once():
    y = np.tile([[0.0, 1.0]], (1, 10))
    found = difference_estimate(y, 0.49 + 0.02 * y, np.ones_like(y), 0 * y, film_p=0.5, film_variance=1e-4)
    assert found.gain == 1


def test_the_estimate_of_four_judgements_by_hand():
    """The share of positives, .5, less the gain times how much higher p is here than in the whole film.

    Mean p is .55 of the four judged windows and .5 of the film. The gain is R (1 - R) D / film_variance, with
    D = .65 - .45: mean p of positives and of negatives, each with one p of .55 more. The fifth has no weight.
    """
    y, p, weights = [[1, 0, 1, 0, 0]], [[0.8, 0.3, 0.6, 0.5, 0.9]], [[1, 1, 1, 1, 0]]
    found = difference_estimate(y, p, weights, np.zeros((1, 5)), film_p=0.5, film_variance=0.1)
    (rate,) = found.value
    gain = 2 * rate * (1 - rate)
    assert rate == pytest.approx(0.5 - (0.55 - 0.5) * gain, abs=1e-6)
    assert found.gain == pytest.approx(gain, abs=1e-6)


def test_a_cell_without_content_is_neither_found_nor_drawn():
    edges = np.arange(0.0, 25, 8)
    cells = Cells(np.column_stack([edges[:-1], edges[1:]]), np.array([0, 0.5, 8]), np.ones(3), np.ones(3))
    assert [cells.index_with_content(start, start + 8) for start in (0.0, 8.0, 16.0, 20.0)] == [
        None,
        1,
        2,
        None,
    ]
    assert sorted(cells.order_of_draw("m", 0)) == [1, 2]


def test_a_model_that_is_too_sure_counts_by_half():
    """Probabilities .1 and .9 of windows of which .3 and .7 are positive: the slope of y on p is .5."""
    rng = np.random.default_rng(0)
    high = rng.permutation(np.arange(4000) < 2000)
    y, p = (rng.random(4000) < np.where(high, 0.7, 0.3)).astype(float)[None], np.where(high, 0.9, 0.1)[None]
    found = difference_estimate(y, p, np.ones_like(y), 0 * y, film_p=0.5, film_variance=0.16)
    assert found.gain == pytest.approx(0.5, abs=0.05)


def exact_coverage(positives, n):
    """Coverage over all samples of n of 1,000 equal windows by a model that says the same of each."""
    counts = np.arange(n + 1)
    chances = hypergeom(N_ROWS, positives, n).pmf(counts)
    labels = np.arange(n)[None] < counts[:, None]
    found = difference_estimate(
        labels, np.full((n + 1, n), 0.2), np.ones((n + 1, n)), np.full((n + 1, n), n / N_ROWS),
        film_p=0.2, film_variance=0.0,
    )  # fmt: skip
    truth = positives / N_ROWS
    return chances[(found.low <= truth) & (truth <= found.high)].sum()


def test_equal_windows_and_a_useless_model_are_covered_by_93_to_97_percent_but_for_five_cells():
    """Then only the count of positives is known: coverage is the sum of the chances of some counts.

    Of 20 positives in 1,000, a draw of 30 has 3 or more with chance .020 and 2 with .098, and fewer even more
    often: whichever counts an interval leaves out, that is at most .020 or at least .098, and never .03 to
    .07. In the same way with 60. (Unequal durations, or a better model, tell draws of equal count apart.)
    """
    values = {(p, n): exact_coverage(round(p * N_ROWS), n) for p in PREVALENCES for n in SIZES}
    above = {cell: round(coverage, 3) for cell, coverage in values.items() if coverage > 0.97}
    assert above == {
        (0.02, 30): 0.980, (0.02, 60): 0.972, (0.05, 60): 0.975, (0.05, 100): 0.974, (0.1, 30): 0.976,
    }  # fmt: skip
    assert min(values.values()) >= 0.93


def test_without_a_model_it_is_wilsons_interval():
    for k in (0, 1, 7, 30):
        y = np.array([[1.0] * k + [0.0] * (30 - k)])
        found = difference_estimate(
            y, np.full((1, 30), 0.3), np.ones((1, 30)), np.zeros((1, 30)), film_p=0.3, film_variance=0.0
        )
        expected = binomtest(k, 30).proportion_ci(method="wilson")
        assert (found.low[0], found.high[0]) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_all_windows_judged_leave_nothing_open():
    rng = np.random.default_rng(0)
    seconds, y, p = (values[0] for values in draws(rng, 0.2, 1, n_films=1))
    order = rng.permutation(N_ROWS)
    found = estimate_rate(planted_cells(content_s=seconds, p=p), order[None], y[order][None])
    truth = np.average(y, weights=seconds)
    assert (found.value[0], found.low[0], found.high[0]) == pytest.approx((truth, truth, truth))


@pytest.mark.parametrize("judged", [range(9), [*range(8), 15]])
def test_a_window_certain_to_be_drawn_counts_only_where_it_was_judged(judged):
    """The last is long enough for that; without its judgement, all that is known is positive."""
    judged = np.array([judged])
    found = estimate_rate(planted_cells(content_s=[46] * 15 + [100]), judged, np.ones(judged.shape))
    assert (found.value[0], found.high[0]) == (1, 1)
    assert 0.5 < found.low[0] < 1


def drawn_and_judged(seconds, y, p, n):
    """Coverage, mean width and mean error of 60 draws of n from each film [F, N]."""
    held, width, errors = [], [], []
    for film in range(len(y)):
        cells = planted_cells(content_s=seconds[film], p=p[film])
        truth = np.average(y[film], weights=seconds[film])
        drawn = np.array([cells.order_of_draw(str(film), seed)[:n] for seed in range(60)])
        found = estimate_rate(cells, drawn, y[film][drawn])
        held.append((found.low <= truth) & (truth <= found.high))
        width.append(found.high - found.low)
        errors.append(found.value - truth)
    return np.mean(held), np.mean(width), np.mean(errors)


@pytest.mark.long  # simulates
@pytest.mark.parametrize("n", [30, 60])
def test_it_covers_where_positive_rows_are_longer_and_where_one_in_twenty_is_very_long(n):
    """Rows drawn with equal chances cover .87 to .91."""
    rng = np.random.default_rng(n)
    seconds, y, p = (values[:, :600] for values in draws(rng, 0.2, 1, n_films=16))
    coverage, _, error = drawn_and_judged(np.where(y > 0, 3, 1) * seconds, y, p, n)
    assert 0.93 <= coverage <= 0.975  # 960 draws: .007
    assert abs(error) < 0.01
    very_long = np.where(rng.random((16, 60)) < 0.05, 120.0, 5.0)
    coverage, width, _ = drawn_and_judged(very_long, y[:, :60], p[:, :60], n // 2)
    assert coverage >= 0.92
    assert width < 0.3


@pytest.mark.long  # simulates
def test_the_interval_of_kappa_knows_that_rare_calls_tell_little():
    marked = np.arange(20) < 2
    none = kappa_interval(marked, np.zeros(20, np.bool_))  # whatever window is left out: 0
    assert (none.low < -0.05, none.kappa, none.high > 0.3) == (True, 0.0, True)
    rng, truth, held = np.random.default_rng(0), 0.605, []
    for _ in range(300):
        y = rng.random(20) < 0.1
        a, b = (y ^ (rng.random(20) < 0.05) for _ in range(2))
        found = kappa_interval(a, b)
        held += [found.low <= truth <= found.high] * (not np.isnan(found.kappa))
    assert np.mean(held) > 0.92


def test_cells_without_content_need_no_judgement():
    content = np.array([5.0, 0.0, 5.0, 5.0])
    assert least_sure(planted_cells(content_s=content)) == 3


def test_a_cell_is_known_where_more_than_half_of_it_counts():
    spans = np.array([[0.0, 10], [10, 20], [20, 30]])
    cells = Cells(spans, np.full(3, 10.0), np.array([4.0, 5, 6]), np.full(3, 0.5))
    assert cells.is_known.tolist() == [False, False, True]


def test_the_worth_of_a_model_is_rounded_once():
    """15.46 windows are 15; rounded to 15.5 first they would be 16."""
    n, n_windows, worth = 10, 40, 15.46
    ratio = np.sqrt((1 / worth - 1 / n_windows) / (1 / n - 1 / n_windows))
    one = np.ones(1)
    estimates = Estimates(one, 0 * one, ratio * one, one, one, 0 * one, one)
    assert round(_n_needed_without_model(estimates, n, n_windows)) == 15
