"""Bound a film's share at any number of blind judgements: an interval that is valid whenever one stops."""

from collections.abc import Sequence
from dataclasses import replace
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

MIN_LOSS: Final = 1e-9
"""Least size of a largest loss by which is divided: rounding must not make it 0."""

MIN_FACTOR: Final = 1e-12
"""Least factor by which a bet changes a capital: rounding must not make it 0, which has no logarithm."""

STAKES: Final = (0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
"""Sizes of the bets against a share, as parts of the largest bet that cannot lose more than everything."""

HIGHEST_LOG: Final = 50.0
"""Natural logarithm at which a capital is cut off: exp(50) refutes any share, and more could overflow."""


def anytime_interval(
    cells: Cells, judged: NDArray[np.int64], y: Floats, unsure: Sequence[int] = ()
) -> tuple[float, float]:
    """Compute a confidence interval of a film's share that is valid whenever the judge stops.

    Each possible share is tested, after each judgement, by a bet against it: a gambler with a capital of 1
    bets before each judgement that it will differ from what is expected if the share is right. If the share
    is right, nobody can expect to win by this, and the capital ever reaches 20 with a chance of at most .05
    (Ville's inequality), however long the judge goes on. So a capital of 20 refutes a share. The interval has
    the shares that were never refuted.

    Sources: Waudby-Smith and Ramdas, JRSS B 86, 2024; for windows drawn in proportion to content, Shekhar,
    Xu, Lipton, Liang and Ramdas, UAI 2023. `benchmarks/planted/rates.py` measures the coverage.

    Parameters
    ----------
    cells : Cells
        All cells of the film, those of which nobody was sure among them.
    judged : ndarray of int, shape [n]
        Cells that judges were sure of, in the order of their draw (`Cells.order_of_draw`).
    y : ndarray, shape [n]
        Their judgements, 0 to 1.
    unsure : sequence of int
        Cells that were drawn before the last of these, and that judges were not sure of: the share is of the
        others. The model's mean probability over the cells left is then also over cells that no judge will be
        sure of, and says too little of the others: the model is not used.

    Returns
    -------
    tuple of float
        The lowest and the highest share that is not refuted.
    """
    cells_of_share = cells.without(unsure)
    if len(unsure):
        # A model that says the same of every cell tells nothing: bets that use it are as if they did not.
        cells_of_share = replace(cells_of_share, p=np.full_like(cells.p, 0.5))
    before = _before_each_judgement(cells_of_share, judged, y)

    # The next window is drawn among those left, in proportion to content. So if a share of the film is right,
    # the next judgement is expected to be the positive share of the windows left that follows from it. (Of
    # windows drawn by sequential Poisson sampling, as in earlier versions, this holds only if they have the
    # same content.) Not every share can be tested: each one on a grid stands for all shares within half a
    # step of it. If the film's share is one of these, each judgement is expected to be between the following
    # two [n judgements, shares].
    expected_at_most = _expected_judgement(before, SHARES + HALF_STEP)
    expected_at_least = _expected_judgement(before, SHARES - HALF_STEP)
    is_impossible = (expected_at_most < 0) | (expected_at_least > 1)  # no judgement is below 0 or above 1

    # A share is refuted if the capital of those who bet against it ever reached 20.
    bets = _bets(before, y, np.clip(expected_at_most, 0, 1), np.clip(expected_at_least, 0, 1))
    capital = _mean_capital(bets)  # [n + 1, shares]: at the start, and after each judgement
    # An impossible share is refuted, whatever the bets. The first row, before any judgement, stays as it is.
    capital[1:] = np.where(is_impossible, np.inf, capital[1:])
    highest_capital = capital.max(axis=0)  # [shares]: it counts if it was reached at any time

    refuting_capital = 1 / (1 - LEVEL)  # 20
    not_refuted = SHARES[highest_capital < refuting_capital]
    if not len(not_refuted):  # the chance of this is at most .05: the least refuted share is returned
        not_refuted = SHARES[[highest_capital.argmin()]]
    return float(not_refuted[0]), float(not_refuted[-1])


def _mean_capital(bets: Sequence["_Bet"]) -> Floats:
    """Average the capital over all bets and stakes, at the start and after each judgement [n + 1, shares].

    It starts from 1. What each bet with each stake has won or lost is added with an equal weight.
    """
    n_judgements, n_shares = bets[0].gain.shape
    n_gamblers = len(bets) * len(STAKES)  # each makes one bet with one stake, from a capital of 1
    mean_capital = np.full((n_judgements + 1, n_shares), 1.0)
    for bet in bets:
        for stake in STAKES:
            won = _capital_of_bet(bet, stake) - 1
            mean_capital[1:] += won / n_gamblers
    return mean_capital


class _Before(NamedTuple):
    """What is known before each of n judgements; all arrays have the shape [n, 1].

    Attributes
    ----------
    p : ndarray
        The model's probability of the window that is judged next.
    positive_s : ndarray
        Positive seconds so far: content of the windows judged before, each times its judgement.
    left_s : ndarray
        Content in seconds of the windows that are not yet judged.
    mean_p_left : ndarray
        Mean probability of these windows, weighted by their content.
    film_s : float
        Content in seconds of all windows.
    """

    p: Floats
    positive_s: Floats
    left_s: Floats
    mean_p_left: Floats
    film_s: float


def _before_each_judgement(cells: Cells, judged: NDArray[np.int64], y: Floats) -> _Before:
    """Sum up before each judgement what was judged so far, and what is left.

    A bet on a judgement is fair only if it uses nothing but what was known before it: so all sums leave out
    the judgement itself and those after it.

    The judgements y [n], from 0 to 1, are those of the film's cells `judged` [n], in the order of their draw.
    """
    content_s = cells.content_s[judged]  # [n]
    p = cells.p[judged]  # [n]
    film_s = float(cells.content_s.sum())
    judged_s = _sums_before(content_s)  # [n, 1]
    # The windows left include the one that is judged next; rounding may make their content less than its.
    left_s = np.maximum(film_s - judged_s, content_s[:, None])
    # The seconds that the model expects to be positive: of the film, of the windows judged before, and of
    # those left. Divided by the content left, the last are the mean p of the windows left.
    film_expected_s = float(cells.content_s @ cells.p)
    judged_expected_s = _sums_before(content_s * p)
    left_expected_s = film_expected_s - judged_expected_s
    return _Before(
        p=p[:, None],  # [n, 1], as all arrays of it
        positive_s=_sums_before(content_s * y),
        left_s=left_s,
        mean_p_left=left_expected_s / left_s,
        film_s=film_s,
    )


def _sums_before(values: Floats) -> Floats:
    """Sum the values [n] before each one: of 2, 3 and 4 s these are 0, 2 and 5 s; returns [n, 1]."""
    sums_with_each = np.cumsum(values)
    return np.concatenate([[0.0], sums_with_each[:-1]])[:, None]


def _expected_judgement(before: _Before, shares: Floats) -> Floats:
    """Return what each judgement is expected to be if a share of the film is right [n, shares].

    It is the positive share of the windows left: the film's positive seconds by the tested share, less those
    judged so far, divided by the content left. If that is below 0 or above 1, the tested share is impossible.
    """
    positive_left_s = shares * before.film_s - before.positive_s
    expected: Floats = positive_left_s / before.left_s
    return expected


class _Bet(NamedTuple):
    """A bet on each judgement, against each tested share; both arrays have the shape [n, shares].

    Attributes
    ----------
    gain : ndarray
        By how much the judgement differs from the expected one in the direction that was bet on; negative if
        it differs in the other direction.
    largest_loss : ndarray
        The size of the most negative gain that was possible.
    """

    gain: Floats
    largest_loss: Floats


def _bets(
    before: _Before, y: Floats, expected_at_most: Floats, expected_at_least: Floats
) -> tuple[_Bet, ...]:
    """Bet against each tested share that the film's share is higher, and that it is lower.

    Both bets are made twice: on the judgements y [n] themselves, and on their differences from the model's
    probabilities (as in `correct_rate`), which a good model makes small.

    If a tested share is right, each judgement is expected to be a number between `expected_at_least` and
    `expected_at_most` [n, shares]. Which one is not known, as a tested share stands for its neighbours on the
    grid too. So the bet on a higher share only wins by what judgements are above `expected_at_most`, and the
    bet on a lower share by what they are below `expected_at_least`: against a share that is right, neither
    wins on average.
    """
    # In a fixed order: the sum of what they win is rounded in this order.
    return (
        _bet_that_share_is_higher(before, y, expected_at_most, uses_model=False),
        _bet_that_share_is_higher(before, y, expected_at_most, uses_model=True),
        _bet_that_share_is_lower(before, y, expected_at_least, uses_model=False),
        _bet_that_share_is_lower(before, y, expected_at_least, uses_model=True),
    )


def _bet_that_share_is_higher(before: _Before, y: Floats, expected_y: Floats, *, uses_model: bool) -> _Bet:
    """Bet that judgements y [n] are higher than they are expected to be if a tested share is right.

    A bet is a game against a tested share: its gain at each judgement is 0 on average if the share is right,
    so that a gambler who wins much refutes the share (`anytime_interval`). Here the gain is by how much the
    judgement is above `expected_y` [n, shares], what it is expected to be if the share is right. A bet that
    uses the model takes from the judgement by how much p is above its mean (`_excess_p`).
    """
    gain = y[:, None] - _excess_p(before.p, before, uses_model=uses_model) - expected_y
    # It loses most if the judgement is 0 where the model is certain of the opposite, p = 1.
    largest_excess_p = _excess_p(1.0, before, uses_model=uses_model)
    largest_loss = expected_y + largest_excess_p  # - (0 - largest_excess_p - expected_y)
    return _Bet(gain, largest_loss)


def _bet_that_share_is_lower(before: _Before, y: Floats, expected_y: Floats, *, uses_model: bool) -> _Bet:
    """Bet that judgements y [n] are lower than they are expected to be if a tested share is right.

    A bet is a game against a tested share: its gain at each judgement is 0 on average if the share is right,
    so that a gambler who wins much refutes the share (`anytime_interval`). Here the gain is by how much the
    judgement is below `expected_y` [n, shares], what it is expected to be if the share is right. A bet that
    uses the model takes from the judgement by how much p is above its mean (`_excess_p`).
    """
    gain = -(y[:, None] - _excess_p(before.p, before, uses_model=uses_model) - expected_y)
    # It loses most if the judgement is 1 where the model is certain of the opposite, p = 0.
    least_excess_p = _excess_p(0.0, before, uses_model=uses_model)
    largest_loss = 1 - least_excess_p - expected_y
    return _Bet(gain, largest_loss)


def _excess_p(p: float | Floats, before: _Before, *, uses_model: bool) -> Floats:
    """Return by how much the model's p of each next window is above the mean p of the windows left [n, 1].

    A judgement of which it is subtracted varies less, if the model is good: a positive window mostly has a
    high p. And a bet stays fair: each window is drawn at random among those left, so that what is subtracted
    is 0 on average. It is 0 for bets that do not use the model.
    """
    if not uses_model:
        return np.zeros_like(before.mean_p_left)
    return p - before.mean_p_left


def _capital_of_bet(bet: _Bet, stake: float) -> Floats:
    """Return what a gambler who bets against a tested share owns after each judgement [n, shares].

    They begin with a capital of 1. Before each judgement they bet a part of what they own, the stake (0 to
    1): the judgement that is the worst for them takes this part. So each judgement multiplies the capital by

        1 + stake * gain / largest loss

    where a lost bet has a negative gain. A share that the judgements contradict makes the capital grow, and
    is refuted when it is large enough (`anytime_interval`).
    """
    largest_loss = np.maximum(bet.largest_loss, MIN_LOSS)  # not 0 by rounding
    factor = 1 + stake * bet.gain / largest_loss
    factor = np.maximum(factor, MIN_FACTOR)  # 0 has no logarithm
    log_capital = np.cumsum(np.log(factor), axis=0)  # of the product of all factors so far
    capital: Floats = np.exp(np.minimum(log_capital, HIGHEST_LOG))  # no overflow
    return capital
