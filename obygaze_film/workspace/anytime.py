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

    Someone bets at each window that a share m is wrong; if m is right, the capital of such bets grows to
    1 / (1 - `LEVEL`) with at most that chance at any time (Ville's inequality). The interval has the shares
    against which the mean capital of all bets never did (betting confidence sequence: Waudby-Smith and
    Ramdas, JRSS B 86, 2024, here with a mixture of fixed stakes). Each next window is drawn in proportion to
    content among those left (`Cells.drawn`), so that of its judgement is expected what m leaves for them, by
    content (Shekhar, Xu, Lipton, Liang and Ramdas, UAI 2023). By sequential Poisson sampling, as films were
    drawn before, that is so of windows alike in content alone. Bets are on the judgements themselves, and on
    their differences from the model's probabilities, as in `correct_rate`: the capital is the mean of both.
    Where all shares are refuted, which happens with at most that chance, the least refuted is left.
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
    before = np.vstack([np.zeros(3), drawn[:-1]])
    total = float(cells.content.sum())
    left = np.maximum(total - before[:, :1], content[:, None])  # but for rounding, it is more
    mean_p = (float(cells.content @ cells.p) - before[:, 1:2]) / left
    capital = np.full((len(y) + 1, len(GRID)), 1.0)
    for sign in (1, -1):
        # A share of the grid is refuted by what refutes all that are nearer to it than to the next.
        expected = ((GRID + sign * GRID[1] / 2) * total - before[:, 2:]) / left
        capital[1:][expected < 0 if sign > 0 else expected > 1] = np.inf
        expected = np.clip(expected, 0, 1)
        for gain in (0.0, 1.0):
            away = sign * (y[:, None] - gain * (p[:, None] - mean_p) - expected)
            most = expected - gain * (mean_p - 1) if sign > 0 else 1 + gain * mean_p - expected
            for stake in STAKES:
                growth = np.log(np.maximum(1 + stake * away / np.maximum(most, 1e-9), 1e-12))
                path = np.cumsum(growth, axis=0)
                capital[1:] += (np.exp(np.minimum(path, 50)) - 1) / (4 * len(STAKES))
    highest_capital = capital.max(axis=0)
    kept = GRID[highest_capital < 1 / (1 - LEVEL)]
    if not len(kept):
        kept = GRID[[highest_capital.argmin()]]
    return float(kept[0]), float(kept[-1])
