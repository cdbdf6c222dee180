"""Bound a film's share at any number of blind judgements: an interval that is valid whenever one stops."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from obygaze_film.cells import Cells
from obygaze_film.judged_rate import LEVEL

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
    Ramdas, JRSS B 86, 2024, here with a mixture of fixed stakes). Bets are on the judgements themselves, and
    on their differences from the model's probabilities, as in `correct_rate`: the capital is the mean of
    both. Where all shares are refuted, which happens with at most that chance, the least refuted is left.
    `benchmarks/planted/rates.py` measures the coverage.

    Parameters
    ----------
    cells : Cells
    judged : ndarray of int, shape [n]
        Cells in the order of their draw (`Cells.drawn`).
    y : ndarray, shape [n]
        Their judgements, 0 to 1.
    """
    mean_p = float(np.average(cells.p, weights=cells.content))
    capital = np.zeros((len(y) + 1, len(GRID)))
    for gain in (0.0, 1.0):
        values = y - gain * (cells.p[judged] - mean_p)
        lowest, highest = gain * (mean_p - 1), 1 + gain * mean_p
        away = values[:, None] - GRID
        for stake in STAKES:
            for largest in (1 / np.maximum(GRID - lowest, 1e-9), -1 / np.maximum(highest - GRID, 1e-9)):
                growth = np.log(np.maximum(1 + stake * largest * away, 1e-12))
                path = np.vstack([np.zeros(len(GRID)), np.cumsum(growth, axis=0)])
                capital += np.exp(np.minimum(path, 50)) / (4 * len(STAKES))
    highest_capital = capital.max(axis=0)
    kept = GRID[highest_capital < 1 / (1 - LEVEL)]
    if not len(kept):
        kept = GRID[[highest_capital.argmin()]]
    return float(kept[0]), float(kept[-1])
