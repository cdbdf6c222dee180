"""Bound a film's share at any number of blind judgements: an interval that is valid whenever one stops."""

from typing import Final

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

    Somebody who holds that a share m is wrong bets on each next judgement, from a capital of 1. If m is
    right, the capital ever reaches 1 / (1 - `LEVEL`) with a chance of at most 1 - `LEVEL` (Ville's
    inequality). The interval holds the shares against which it has not (betting confidence sequence:
    Waudby-Smith and Ramdas, JRSS B 86, 2024). The capital is the mean of several bets: that the share is
    above m or below it, on the judgements themselves or on their differences from the model's probabilities
    (as in `correct_rate`), each with every stake of `STAKES`.

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
    content, p = cells.content_s[judged], cells.p[judged]  # [n] each
    sums = np.cumsum(np.column_stack([content, content * p, content * y]), axis=0)
    sums_before = np.vstack([np.zeros(3), sums[:-1]])  # [n, 3]: without the judgement itself
    content_before, p_before, y_before = np.split(sums_before, 3, axis=1)  # [n, 1] each
    total = float(cells.content_s.sum())
    # What is left before a judgement holds at least the judged window; rounding may say less.
    content_left = np.maximum(total - content_before, content[:, None])
    mean_p_left = (float(cells.content_s @ cells.p) - p_before) / content_left
    # Rows: after 0, 1, ... n judgements. Columns: against each share of SHARES.
    capital = np.full((len(y) + 1, len(SHARES)), 1.0)
    n_bets = 4 * len(STAKES)  # each stake on either side, with and without the model's probabilities
    for sign in (1, -1):  # bets that the true share is above the tested one, and bets that it is below
        # The bet is against the end of the step around a share, so that it refutes the whole step.
        expected_y = ((SHARES + sign * HALF_STEP) * total - y_before) / content_left  # [n, shares]
        is_impossible = expected_y < 0 if sign > 0 else expected_y > 1
        capital[1:][is_impossible] = np.inf
        expected_y = np.clip(expected_y, 0, 1)
        for weight_of_p in (0.0, 1.0):  # on the judgements themselves, or on their differences from p
            surplus = sign * (y[:, None] - weight_of_p * (p[:, None] - mean_p_left) - expected_y)
            # The largest possible deficit (y is 0 and p is 1, or y is 1 and p is 0): a stake of 1 would then
            # lose everything.
            if sign > 0:
                worst_deficit = expected_y - weight_of_p * (mean_p_left - 1)
            else:
                worst_deficit = 1 + weight_of_p * mean_p_left - expected_y
            for stake in STAKES:
                # The lower bounds 1e-9 and 1e-12 only keep rounding from dividing by 0 and from log(0).
                factor = 1 + stake * surplus / np.maximum(worst_deficit, 1e-9)
                log_capital = np.cumsum(np.log(np.maximum(factor, 1e-12)), axis=0)
                capital_of_bet = np.exp(np.minimum(log_capital, HIGHEST_LOG))
                capital[1:] += (capital_of_bet - 1) / n_bets
    highest_capital = capital.max(axis=0)
    not_refuted = SHARES[highest_capital < 1 / (1 - LEVEL)]
    if not len(not_refuted):
        not_refuted = SHARES[[highest_capital.argmin()]]
    return float(not_refuted[0]), float(not_refuted[-1])
