"""Bound a film's share at any number of blind judgements: an interval that is valid whenever one stops."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_film.cells import Cells
from obygaze_film.rate_estimates import LEVEL

Floats = NDArray[np.float64]

SHARES: Final = np.linspace(0, 1, 1001)
"""The shares that are tested."""

HALF_STEP: Final = float(SHARES[1]) / 2
"""Half of the distance between two tested shares."""

STAKES: Final = (0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
"""Sizes of the bets against a share, as parts of the largest bet that cannot lose more than everything."""

HIGHEST_LOG: Final = 50.0
"""Natural logarithm at which a capital is cut off: exp(50) refutes any share, and more could overflow."""


def anytime_interval(cells: Cells, judged: NDArray[np.int64], y: Floats) -> tuple[float, float]:
    """Find the shares that no bet on the judgements, in the order of the draw, has refuted so far.

    Somebody who holds that a share m is wrong bets against it on each next judgement, from a capital of 1. If
    m is right the bets are fair, and the capital ever reaches 20 with a chance of at most .05 (Ville's
    inequality): a share against which it has is refuted at the level .95 (betting confidence sequence:
    Waudby-Smith and Ramdas, JRSS B 86, 2024). The capital is the mean of several bets (`_bets`).

    Each next window is drawn in proportion to content among those left. If m is right, its
    judgement is expected to be the share that m leaves for them (Shekhar, Xu, Lipton, Liang and Ramdas, UAI
    2023). Of windows drawn by sequential Poisson sampling, as in earlier versions, this holds only if they
    have the same content.

    Where all shares are refuted, with a chance of at most 1 - `LEVEL`, the least refuted one is returned.
    `benchmarks/planted/rates.py` measures the coverage.

    Parameters
    ----------
    cells : Cells
    judged : ndarray of int, shape [n]
        Cells in the order of their draw (`Cells.order_of_draw`). Cells drawn before the last of these, of
        which nobody was sure, must have no content here: the share is of the others.
    y : ndarray, shape [n]
        Their judgements, 0 to 1.

    Returns
    -------
    tuple of float
        The lowest and the highest share that is not refuted.
    """
    before = _before_each_judgement(cells, judged, y)
    # A tested share stands for the step of shares around it: bets are against the ends of the step, so that
    # they refute all of it.
    expected_at_most = _expected_judgement(before, SHARES + HALF_STEP)
    expected_at_least = _expected_judgement(before, SHARES - HALF_STEP)
    is_impossible = (expected_at_most < 0) | (expected_at_least > 1)
    bets = _bets(before, y, np.clip(expected_at_most, 0, 1), np.clip(expected_at_least, 0, 1))
    # Rows: after 0, 1, ... n judgements. Columns: against each share of SHARES.
    capital = np.full((len(y) + 1, len(SHARES)), 1.0)
    for bet in bets:
        for stake in STAKES:
            capital[1:] += (_capital_of_bet(bet, stake) - 1) / (len(bets) * len(STAKES))
    capital[1:][is_impossible] = np.inf
    highest_capital = capital.max(axis=0)
    not_refuted = SHARES[highest_capital < 1 / (1 - LEVEL)]
    if not len(not_refuted):
        not_refuted = SHARES[[highest_capital.argmin()]]
    return float(not_refuted[0]), float(not_refuted[-1])


class _Before(NamedTuple):
    """What is known before each of n judgements; all arrays have the shape [n, 1].

    Attributes
    ----------
    p : ndarray
        The model's probability of the window that is judged next.
    positive_content : ndarray
        Content of the windows judged so far, each times its judgement.
    content_left : ndarray
        Content of the windows that are not yet judged.
    mean_p_left : ndarray
        Mean probability of these windows, weighted by their content.
    total : float
        Content of all windows.
    """

    p: Floats
    positive_content: Floats
    content_left: Floats
    mean_p_left: Floats
    total: float


def _before_each_judgement(cells: Cells, judged: NDArray[np.int64], y: Floats) -> _Before:
    """Sum up before each judgement what is judged, and what is left; parameters as of `anytime_interval`."""
    content, p = cells.content_s[judged], cells.p[judged]  # [n] each
    judged_content = _sums_before(content)
    judged_p = _sums_before(content * p)
    judged_positive = _sums_before(content * y)
    total = float(cells.content_s.sum())
    # What is left before a judgement holds at least the judged window; rounding may say less.
    content_left = np.maximum(total - judged_content, content[:, None])
    mean_p_left = (float(cells.content_s @ cells.p) - judged_p) / content_left
    return _Before(p[:, None], judged_positive, content_left, mean_p_left, total)


def _sums_before(values: Floats) -> Floats:
    """Sum the values [n] before each one: of 2, 3 and 4 s these are 0, 2 and 5 s; returns [n, 1]."""
    return np.concatenate([[0.0], np.cumsum(values)[:-1]])[:, None]


def _expected_judgement(before: _Before, shares: Floats) -> Floats:
    """Return what each judgement is expected to be if a share of the film is right [n, shares].

    It is the share that the film's share leaves for the windows that are not yet judged. Below 0 or above 1
    it is impossible, and so is the film's share.
    """
    expected: Floats = (shares * before.total - before.positive_content) / before.content_left
    return expected


class _Bet(NamedTuple):
    """A bet on each judgement, against each tested share; both arrays have the shape [n, shares].

    Attributes
    ----------
    gain : ndarray
        By how much the judgement is on the side of the expected one that the bet is on; negative on the other
        side.
    largest_loss : ndarray
        How negative the gain can become.
    """

    gain: Floats
    largest_loss: Floats


def _bets(
    before: _Before, y: Floats, expected_at_most: Floats, expected_at_least: Floats
) -> tuple[_Bet, ...]:
    """Bet against each tested share: that the film's share is above it, and that it is below.

    Both bets are made twice: on the judgements themselves, and on their differences from the model's
    probabilities (as in `correct_rate`), which a good model makes small. `expected_at_most` and
    `expected_at_least` [n, shares] bound what each judgement would be if the tested share were right.
    """
    # The order of the bets decides the rounding of the capital.
    return (
        _bet_that_share_is_above(before, y, expected_at_most, weight_of_p=0.0),
        _bet_that_share_is_above(before, y, expected_at_most, weight_of_p=1.0),
        _bet_that_share_is_below(before, y, expected_at_least, weight_of_p=0.0),
        _bet_that_share_is_below(before, y, expected_at_least, weight_of_p=1.0),
    )


def _bet_that_share_is_above(before: _Before, y: Floats, expected_y: Floats, weight_of_p: float) -> _Bet:
    """Bet that judgements are higher than those that the tested shares let expect [n, shares].

    The bet is on the judgements themselves if `weight_of_p` is 0, and on their differences from the model's
    probabilities if it is 1.
    """
    difference_of_p = weight_of_p * (before.p - before.mean_p_left)  # expected to be 0
    gain = y[:, None] - difference_of_p - expected_y
    # The gain is lowest where y is 0 and p is 1.
    largest_loss = expected_y - weight_of_p * (before.mean_p_left - 1)
    return _Bet(gain, largest_loss)


def _bet_that_share_is_below(before: _Before, y: Floats, expected_y: Floats, weight_of_p: float) -> _Bet:
    """Bet that judgements are lower than expected; parameters as of `_bet_that_share_is_above`."""
    difference_of_p = weight_of_p * (before.p - before.mean_p_left)
    gain = -(y[:, None] - difference_of_p - expected_y)
    # The gain is lowest where y is 1 and p is 0.
    largest_loss = 1 + weight_of_p * before.mean_p_left - expected_y
    return _Bet(gain, largest_loss)


def _capital_of_bet(bet: _Bet, stake: float) -> Floats:
    """Return the capital after each judgement, from a capital of 1 [n, shares].

    Each judgement multiplies it by 1 + stake * gain / largest loss: with a stake of 1 the largest loss would
    take all of it.
    """
    # The lower bounds 1e-9 and 1e-12 only keep rounding from dividing by 0 and from log(0).
    factor = 1 + stake * bet.gain / np.maximum(bet.largest_loss, 1e-9)
    log_capital = np.cumsum(np.log(np.maximum(factor, 1e-12)), axis=0)
    capital: Floats = np.exp(np.minimum(log_capital, HIGHEST_LOG))
    return capital
