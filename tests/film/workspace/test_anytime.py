"""The interval at any time: it holds the share however often one looks."""

import numpy as np
import pytest

from obygaze_film.workspace.anytime import STAKES, anytime_interval
from tests.film.films import planted_cells

EIGHT_SECONDS = 8.0
"""Content of a window, where all have the same."""


def judged_film(rng, share, n_windows=150):
    """Draw probabilities around a share, and judgements by them: both [n_windows]."""
    p = 1 / (1 + np.exp(-2 * (rng.normal(size=n_windows) + np.log(share / (1 - share)))))
    return p, (rng.random(n_windows) < p).astype(float)


@pytest.mark.long  # simulates
@pytest.mark.parametrize(("share", "is_useful"), [(0.05, True), (0.2, False), (0.5, True)])
def test_the_interval_at_any_time_misses_the_share_of_few_films_and_narrows(share, is_useful):
    """It is held to miss at most 1 film in 20. A model that is not useful shows chance."""
    n_missed, shrinkages = 0, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p, y = judged_film(rng, share)
        shown_p = p if is_useful else rng.random(len(p))
        cells = planted_cells(content_s=np.full(len(p), EIGHT_SECONDS), p=shown_p)
        order = rng.permutation(len(p))[:40]
        early_low, early_high = anytime_interval(cells, order[:10], y[order[:10]])
        low, high = anytime_interval(cells, order, y[order])
        shrinkages.append((high - low) / (early_high - early_low))
        if not low - 1e-3 <= y.mean() <= high + 1e-3:  # shares are tested in steps of .001
            n_missed += 1
    assert n_missed <= 40 / 20
    assert np.median(shrinkages) < 0.7


def test_a_share_that_was_refuted_at_any_time_stays_refuted():
    """30 positive windows refute .7. By 15 negative ones after them alone it would be possible again."""
    y = np.repeat([1.0, 0.0], [30, 15])
    cells = planted_cells(content_s=np.full(450, EIGHT_SECONDS), p=0.5)
    low_after_30, _ = anytime_interval(cells, np.arange(30), y[:30])
    low_after_45, high = anytime_interval(cells, np.arange(45), y)
    assert 0.7 < low_after_30 <= low_after_45 < high


def test_a_wrong_model_costs_little_width_at_any_time():
    """The interval bets with the model's probabilities and without them."""
    rng = np.random.default_rng(0)
    y = (rng.random(150) < 0.3).astype(float)
    order = rng.permutation(150)[:40]

    def width_with(p):
        cells = planted_cells(content_s=np.full(150, EIGHT_SECONDS), p=p)
        low, high = anytime_interval(cells, order, y[order])
        return high - low

    width_with_constant = width_with(0.3)
    assert width_with(1 - y) < 1.25 * width_with_constant  # wrong of every window
    assert width_with(y) < 0.9 * width_with_constant  # right of every window


N_WINDOWS, N_JUDGED = 50, 12


def capital_of_bet(share, sign, stake, lowest, highest):
    """Return the capital of one bet against a share, from 1, after 12 positive judgements of 50 windows.

    The bet is that the true share is above (sign 1) or below it (-1). A round multiplies the capital by
    1 + stake * (gain / largest loss), so that a stake of 1 could lose everything. `lowest` and `highest` are
    what the outcome is bounded by. Source: Waudby-Smith and Ramdas, JRSS B 86, 2024.
    """
    capital = 1.0
    for n_before in range(N_JUDGED):
        # The bet is against the end of the step of .001 around the share. Positives that are left by it:
        n_positive_left = (share + sign * 0.0005) * N_WINDOWS - n_before
        expected = n_positive_left / (N_WINDOWS - n_before)
        gain = sign * (1 - expected)
        largest_loss = expected - lowest if sign > 0 else highest - expected
        capital *= 1 + stake * gain / largest_loss
    return capital


def mean_capital(share):
    """Return the mean over both sides, all stakes, and bets on judgements and on differences from p.

    p is .5 for all windows: a judgement differs from its own p and the mean p by -.5 to 1.5 at most.
    """
    capitals = []
    for lowest, highest in ((0, 1), (-0.5, 1.5)):
        for sign in (1, -1):
            capitals += [capital_of_bet(share, sign, stake, lowest, highest) for stake in STAKES]
    return np.mean(capitals)


def test_the_lowest_share_at_any_time_is_the_first_whose_bets_do_not_reach_a_capital_of_20():
    """A true share's bets reach 20 with a chance of 1 in 20 (Ville). All judgements are positive."""
    cells = planted_cells(content_s=np.ones(N_WINDOWS), p=0.5)
    low, high = anytime_interval(cells, np.arange(N_JUDGED), np.ones(N_JUDGED))
    assert high == 1
    assert mean_capital(low) < 20 <= mean_capital(low - 0.001)


@pytest.mark.parametrize("seconds_of_negative", [1, 30])
@pytest.mark.parametrize("seed", range(10))
def test_when_all_windows_are_judged_the_share_of_seconds_is_known(seconds_of_negative, seed):
    """Negative windows may be longer than positive ones: the share is of seconds, not of windows."""
    rng = np.random.default_rng(seed)
    y = (rng.random(60) < 0.3).astype(float)
    seconds = np.where(y > 0, 1.0, seconds_of_negative)
    seconds[rng.integers(60)] = 1e-13  # what rounding leaves of a black window
    cells = planted_cells(content_s=seconds, p=rng.random(60))
    order = np.array(cells.order_of_draw(f"{seed}", 0))
    low, high = anytime_interval(cells, order, y[order])
    assert low - 1e-3 <= np.average(y, weights=seconds) <= high + 1e-3
    assert high - low < 0.05


@pytest.mark.long
def test_judgements_that_refute_every_share_leave_the_least_refuted_one():
    """400 positives and then 400 negatives are no draw at random: a share is given, and not NaN."""
    cells = planted_cells(content_s=np.ones(800), p=0.5)
    low, high = anytime_interval(cells, np.arange(800), np.repeat([1.0, 0.0], 400))
    assert low == high
    assert 0 < low < 1
