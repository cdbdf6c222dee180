"""Test whether an annotator's calls change over the films of a round, against others' calls of these clips.

Of each film the mean difference of an annotator's calls and the others' on the same clips is taken, so that
what films show cancels out; its least-squares slope on the order of films is the drift. Its variance is that
of calls within films, or that of films around the line if it is larger. Where films differ by more than their
calls explain (at .2), the latter counts alone, with Student's t.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri, stdtrit

Floats = NDArray[np.float64]

LEVEL = 0.95
UNLIKE = 0.2
"""p of films that differ by more than their clips explain."""
FEWEST = 4
"""Films of a line."""


@dataclass(frozen=True, slots=True)
class Drift:
    """A change from the first film to the last, with its 95 % interval; NaN of fewer than four films.

    Attributes
    ----------
    films : int
    value, low, high : float
    """

    films: int
    value: float = np.nan
    low: float = np.nan
    high: float = np.nan

    @property
    def is_found(self) -> bool:
        """Whether the interval is without 0."""
        return self.low > 0 or self.high < 0


def drift(films: Sequence[Floats], order: Sequence[float]) -> Drift:
    """Estimate the change of a mean over films.

    Parameters
    ----------
    films : sequence of ndarray
        Of each film its clips' calls, or their differences from others' calls.
    order : sequence of float
        When each was annotated.
    """
    own = [(values, place) for values, place in zip(films, order, strict=True) if len(values)]
    n = len(own)
    if n < FEWEST or len({place for _, place in own}) < FEWEST:
        return Drift(n)
    means = np.array([values.mean() for values, _ in own])
    sizes = np.array([len(values) for values, _ in own])
    at = np.array([place for _, place in own], dtype=np.float64)
    x = at - at.mean()
    slope = float(x @ means / (x @ x))
    rest = float(np.sum((means - means.mean() - slope * x) ** 2)) / (n - 2)
    pooled = sum(float(((values - values.mean()) ** 2).sum()) for values, _ in own) / max(sizes.sum() - n, 1)
    within, around = pooled * float(x**2 @ (1 / sizes)) / (x @ x) ** 2, rest / (x @ x)
    expected = pooled * float((1 / sizes).mean())
    unlike = expected <= 0 or chdtrc(n - 2, (n - 2) * rest / expected) < UNLIKE
    quantile = stdtrit(n - 2, (1 + LEVEL) / 2) if unlike else ndtri((1 + LEVEL) / 2)
    half = float(quantile * np.sqrt(around if unlike else max(within, around)) * np.ptp(at))
    value = slope * float(np.ptp(at))
    return Drift(n, value, value - half, value + half)
