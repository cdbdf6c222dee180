"""Bound a film's share at any number of blind judgements: an interval that is valid whenever one stops."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from obygaze_film.cells import Cells
from obygaze_film.rate_estimates import LEVEL

Floats = NDArray[np.float64]

GRID: Final = np.linspace(0, 1, 1001)
"""Shares that are tested."""

STAKES: Final = (0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
"""Bets against a share, as parts of the largest that cannot lose more than everything."""


def anytime_interval(cells: Cells, judged: NDArray[np.int64], y: Floats) -> tuple[float, float]:
    """Find the shares that no bet on the judgements, in the order of the draw, has refuted so far.

    Somebody who holds that a share m is wrong bets on each next judgement, from a capital of 1. If m is
    right, the capital ever reaches 1 / (1 - `LEVEL`) with a chance of at most 1 - `LEVEL` (Ville's
    inequality). The interval holds the shares against which it has not (betting confidence sequence:
    Waudby-Smith and Ramdas, JRSS B 86, 2024). The capital is the mean of several bets: that the share is
    above m or below it, on the judgements themselves or on their differences from the model's probabilities
    (as in `correct_rate`), each with every stake of `STAKES`.

    Each next window is drawn in proportion to content among those left (`Cells.drawn`). If m is right, its
    judgement is expected to be the share that m leaves for them (Shekhar, Xu, Lipton, Liang and Ramdas, UAI
    2023). Of windows drawn by sequential Poisson sampling, as in earlier versions, this holds only if they
    have the same content.

    Where all shares are refuted, with a chance of at most 1 - `LEVEL`, the least refuted one is returned.
    `benchmarks/planted/rates.py` measures the coverage.

    Parameters
    ----------
    cells : Cells
    judged : ndarray of int, shape [n]
        Cells in the order of their draw (`Cells.drawn`). Others drawn before the last, of which nobody was
        sure, must have no content here: the share is of the others.
    y : ndarray, shape [n]
        Their judgements, 0 to 1.
    """
    content, p = cells.content[judged], cells.p[judged]
    drawn = np.cumsum(np.column_stack([content, content * p, content * y]), axis=0)
    before = np.vstack([np.zeros(3), drawn[:-1]])  # [n, 3]: the sums before each judgement
    total = float(cells.content.sum())
    left = np.maximum(total - before[:, :1], content[:, None])  # but for rounding, it is more
    mean_p = (float(cells.content @ cells.p) - before[:, 1:2]) / left
    capital = np.full((len(y) + 1, len(GRID)), 1.0)  # after 0, 1, ... n judgements, against each share
    n_bets = 4 * len(STAKES)  # two signs, two gains
    for sign in (1, -1):  # bets that the share is above, or below, that of the grid
        # A share of the grid is refuted only with all those around it, up to half of a step away.
        expected = ((GRID + sign * GRID[1] / 2) * total - before[:, 2:]) / left
        is_impossible = expected < 0 if sign > 0 else expected > 1
        capital[1:][is_impossible] = np.inf
        expected = np.clip(expected, 0, 1)
        for gain in (0.0, 1.0):
            away = sign * (y[:, None] - gain * (p[:, None] - mean_p) - expected)
            # By how much a judgement can lie on the other side at most: a stake of 1 would lose everything.
            worst = expected - gain * (mean_p - 1) if sign > 0 else 1 + gain * mean_p - expected
            for stake in STAKES:
                growth = np.log(np.maximum(1 + stake * away / np.maximum(worst, 1e-9), 1e-12))
                log_capital = np.cumsum(growth, axis=0)
                capital_of_bet = np.exp(np.minimum(log_capital, 50))  # no overflow: exp(50) refutes anything
                capital[1:] += (capital_of_bet - 1) / n_bets
    highest_capital = capital.max(axis=0)
    kept = GRID[highest_capital < 1 / (1 - LEVEL)]
    if not len(kept):
        kept = GRID[[highest_capital.argmin()]]
    return float(kept[0]), float(kept[-1])
