"""Test whether annotators' calls change over the films of a round, against others' calls of these clips.

Of each film the mean difference of an annotator's calls and the others' on the same clips is taken, so that
what films show cancels out; its least-squares slope on the order of films is the drift. Its variance is that
of calls within films. Annotators may also be higher or lower in a film by chance: where films differ around
the lines of all annotators together by more than their calls explain (at .15), the variance is as many times
as large, with Student's t. That is the test of a trend against annotators by films (analysis of variance).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri, stdtrit

Floats = NDArray[np.float64]

LEVEL = 0.95
UNLIKE = 0.15
"""p of films that differ by more than their clips explain."""
FEWEST = 4
"""Films of a line."""
TINY = 1e-15
"""A variance that is 0."""


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


def drifts(
    annotators: Sequence[tuple[Sequence[Floats], Sequence[float]]], independent: float = 1.0
) -> list[Drift]:
    """Estimate the change of each annotator's mean over films.

    Parameters
    ----------
    annotators : sequence of (films, order)
        Of each film its clips' calls, or their differences from others' calls; and when it was annotated.
    independent : float
        Share of these that are: of differences among k annotators of a film 1 - 1 / k.
    """
    lines = np.array([_line(films, order) for films, order in annotators]).reshape(-1, 5)
    n, change, error, _, _ = lines.T
    n_fitted, _, _, expected, around = lines[np.isfinite(change)].T
    freedom = max(independent * float((n_fitted - 2).sum()), 1.0)
    times = around.sum() / max((n_fitted - 2) @ expected, TINY)
    unlike = chdtrc(freedom, times * freedom) < UNLIKE
    half = error * (stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(times) if unlike else ndtri((1 + LEVEL) / 2))
    ends = zip(n.tolist(), change.tolist(), (change - half).tolist(), (change + half).tolist(), strict=True)
    return [Drift(int(films), *values) for films, *values in ends]


def _line(films: Sequence[Floats], order: Sequence[float]) -> tuple[float, ...]:
    """Fit a line through films' means.

    Returns
    -------
    The number of films; the change over them and its error, were films alike; squares of a mean around the
    line, were films alike, and of all means around it. NaN of too few films.
    """
    own = [(values, place) for values, place in zip(films, order, strict=True) if len(values)]
    n = len(own)
    if n < FEWEST or len({place for _, place in own}) < FEWEST:
        return n, np.nan, np.nan, np.nan, np.nan
    means = np.array([values.mean() for values, _ in own])
    sizes = np.array([len(values) for values, _ in own])
    at = np.array([place for _, place in own], dtype=np.float64)
    x, span = at - at.mean(), float(np.ptp(at))
    slope = float(x @ means / (x @ x))
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values, _ in own)
    pooled = max(squares / max(sizes.sum() - n, 1), TINY)
    error = float(np.sqrt(pooled * (x**2 @ (1 / sizes))) / (x @ x)) * span
    around = float(np.sum((means - means.mean() - slope * x) ** 2))
    return n, slope * span, error, pooled * float((1 / sizes).mean()), around
