"""The interval at any time: it holds the share however often one looks."""

from typing import NamedTuple

import numpy as np
import pytest

from obygaze_film.workspace.anytime import STAKES, anytime_interval
from tests.film.films import planted_cells

EIGHT_SECONDS = 8.0
"""Content of a window, where all have the same."""


def judged_film(rng, share, n_windows=150):
    """Draw probabilities p around a share, and judgements y that are 1 with chance p: both [n_windows].

    The logits of p lie around twice that of the share, two thirds of them within 2 of it.
    """
    logit_of_share = np.log(share / (1 - share))
    logits = 2 * (rng.normal(size=n_windows) + logit_of_share)
    p = 1 / (1 + np.exp(-logits))
    y = (rng.random(n_windows) < p).astype(float)
    return p, y


class TwoIntervals(NamedTuple):
    """How one film's interval did after 10 and after 40 judgements of its 150 windows."""

    holds_share: bool  # after 40
    width_ratio: float  # width after 40 / width after 10


def two_intervals(seed, share, *, is_model_useful):
    """Judge 40 windows of a planted film; a model that is not useful gives probabilities at random."""
    rng = np.random.default_rng(seed)
    p, y = judged_film(rng, share)
    model_p = p if is_model_useful else rng.random(len(p))
    cells = planted_cells(content_s=np.full(len(p), EIGHT_SECONDS), p=model_p)
    order = rng.permutation(len(p))[:40]
    first_ten = order[:10]
    early_low, early_high = anytime_interval(cells, first_ten, y[first_ten])
    low, high = anytime_interval(cells, order, y[order])
    step = 1e-3  # of the shares that are tested
    return TwoIntervals(
        holds_share=low - step <= y.mean() <= high + step,
        width_ratio=(high - low) / (early_high - early_low),
    )


@pytest.mark.long  # simulates
@pytest.mark.parametrize(("share", "is_model_useful"), [(0.05, True), (0.2, False), (0.5, True)])
def test_the_anytime_interval_holds_the_share_and_narrows(share, is_model_useful):
    """Forty films are planted with a share of positive time, and 40 windows of each are judged.

    The interval misses the true share of at most 1 film in 20, and so of 2 of 40. Forty judgements make it
    clearly narrower than ten do, even with a model that knows nothing: `width_ratio` is its width after 40
    judgements over that after 10.
    """
    films = [two_intervals(seed, share, is_model_useful=is_model_useful) for seed in range(40)]

    n_missed = sum(not film.holds_share for film in films)
    assert n_missed <= 2
    width_after_40_to_width_after_10 = [film.width_ratio for film in films]
    assert np.median(width_after_40_to_width_after_10) < 0.7


def test_a_refuted_share_stays_refuted():
    """30 positive windows refute a share of .7. The 15 negative ones that follow do not bring it back.

    From all 45 together .7 would be possible: 30 of 45 is .67.
    """
    judgements = np.array([1.0] * 30 + [0.0] * 15)
    windows_of_8_s = planted_cells(content_s=np.full(450, 8.0), p=0.5)
    order = np.arange(45)  # the windows that were judged, in this order

    low_after_30, _ = anytime_interval(windows_of_8_s, order[:30], judgements[:30])
    low_after_45, high_after_45 = anytime_interval(windows_of_8_s, order, judgements)

    assert low_after_30 > 0.7
    assert low_after_30 <= low_after_45 < high_after_45


def test_a_wrong_model_widens_the_anytime_interval_only_a_little():
    """Of 150 windows 30 % are positive, and 40 are judged; a model's probabilities help to find the share.

    A model that gives .3 to all windows is of no use. The interval hedges: one that is wrong about every
    window makes it less than a quarter wider than this, and one that is always right makes it narrower.
    """
    rng = np.random.default_rng(0)
    is_positive = (rng.random(150) < 0.3).astype(float)
    judged_windows = rng.permutation(150)[:40]

    def width_with_probabilities(p):
        windows_of_8_s = planted_cells(content_s=np.full(150, 8.0), p=p)
        low, high = anytime_interval(windows_of_8_s, judged_windows, is_positive[judged_windows])
        return high - low

    width_with_constant = width_with_probabilities(0.3)
    width_with_wrong_model = width_with_probabilities(1 - is_positive)
    width_with_right_model = width_with_probabilities(is_positive)
    assert width_with_wrong_model < 1.25 * width_with_constant
    assert width_with_right_model < 0.9 * width_with_constant


N_WINDOWS, N_JUDGED = 50, 12


def capital_of_bet(share, side, stake, lowest, highest):
    """Return the capital of one bet against a share, from 1, after 12 positive judgements of 50 windows.

    The bet is that the true share is higher (side 1) or lower (side -1). In each round a judgement comes
    out above or below what the share lets expect of it, and the capital is multiplied by 1 + stake *
    (difference / largest possible loss), so that a stake of 1 could lose everything. `lowest` and `highest`
    are the bounds of an outcome. Source: Waudby-Smith and Ramdas, JRSS B 86, 2024.
    """
    # A tested share stands for the step of .001 around it, and the bet is against the step's far end.
    tested_share = share + side * 0.0005
    n_positive = tested_share * N_WINDOWS
    capital = 1.0
    for n_judged_before in range(N_JUDGED):  # all of them positive
        n_positive_left = n_positive - n_judged_before
        expected = n_positive_left / (N_WINDOWS - n_judged_before)
        gain = side * (1 - expected)
        largest_loss = expected - lowest if side > 0 else highest - expected
        capital *= 1 + stake * gain / largest_loss
    return capital


BOUNDS_OF_JUDGEMENT = (0, 1)
BOUNDS_OF_DIFFERENCE = (-0.5, 1.5)
"""Bounds of what is bet on: a judgement y, or y - p + .5, where p is from 0 to 1 and its mean is .5."""


def mean_capital(share):
    """Return the mean capital of bets on both sides, with all stakes, on judgements with and without p."""
    capitals = []
    for lowest, highest in (BOUNDS_OF_JUDGEMENT, BOUNDS_OF_DIFFERENCE):
        for side in (1, -1):
            capitals += [capital_of_bet(share, side, stake, lowest, highest) for stake in STAKES]
    return np.mean(capitals)


def test_a_share_is_refuted_once_bets_against_it_multiply_by_20():
    """Bets against the true share reach 20 times their start with a chance of 1 in 20 at most.

    This is Ville's inequality, and so a share is refuted, at the level .95, as soon as its bets reach 20.
    Of 50 windows 12 are judged, all positive, so that a share of 1 is not refuted. Shares are tested in steps
    of .001: the interval begins at the lowest one whose bets stay below 20. `mean_capital` computes what the
    bets against a share have become.
    """
    cells = planted_cells(content_s=np.ones(50), p=0.5)
    judged_windows = np.arange(12)

    low, high = anytime_interval(cells, judged_windows, np.ones(12))

    next_lower_share = low - 0.001
    assert mean_capital(low) < 20
    assert mean_capital(next_lower_share) >= 20
    assert high == 1


@pytest.mark.parametrize("seconds_of_negative", [1, 30])
@pytest.mark.parametrize("seed", range(10))
def test_when_all_windows_are_judged_the_share_of_seconds_is_known(seconds_of_negative, seed):
    """Once all 60 windows are judged, the interval shrinks to the true share of the film's positive seconds.

    Positive windows have 1 s, and negative ones as much or 30 s: the share is of seconds, not of windows.
    Shares are tested in steps of .001.
    """
    rng = np.random.default_rng(seed)
    is_positive = (rng.random(60) < 0.3).astype(float)
    seconds = np.where(is_positive > 0, 1.0, seconds_of_negative)
    seconds[rng.integers(60)] = 1e-13  # what rounding leaves of a black window
    cells = planted_cells(content_s=seconds, p=rng.random(60))
    order_of_all = np.array(cells.order_of_draw(f"{seed}", 0))

    low, high = anytime_interval(cells, order_of_all, is_positive[order_of_all])

    true_share = np.average(is_positive, weights=seconds)
    step = 0.001
    assert low - step <= true_share <= high + step
    assert high - low < 0.05


@pytest.mark.long
def test_judgements_that_refute_every_share_leave_the_least_refuted_one():
    """If judgements refute every share, the interval is the least refuted one, and not NaN.

    400 positives and then 400 negatives are no random order, and each share is refuted somewhere on the
    way.
    """
    cells = planted_cells(content_s=np.ones(800), p=0.5)
    judgements = np.array([1.0] * 400 + [0.0] * 400)

    low, high = anytime_interval(cells, np.arange(800), judgements)

    assert low == high
    assert 0 < low < 1
