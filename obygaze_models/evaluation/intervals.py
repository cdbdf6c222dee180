"""Intervals by movie: clips of one movie resemble each other, so movies are what was sampled."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over movies and its confidence interval.

    Attributes
    ----------
    mean, low, high : float
        NaN where too few movies define them.
    n_movies : int
        Movies whose value is defined, and which are in the mean.
    n_undefined : int
        Movies left out because their clips don't define the metric.
    """

    mean: float
    low: float
    high: float
    n_movies: int
    n_undefined: int


def t_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Take the mean of one value a movie [K], NaN where undefined, and Student's interval around it.

    With a dozen movies it is wide, and it leans on their values being about normal; it is not cut at 0 or 1.
    """
    every = np.asarray(values, dtype=np.float64)
    defined = every[~np.isnan(every)]
    n = int(defined.size)
    mean = float(defined.mean()) if n else float("nan")
    half = float("nan")
    if n > 1:
        half = float(student.ppf((1 + level) / 2, n - 1) * defined.std(ddof=1) / np.sqrt(n))
    return Interval(mean, mean - half, mean + half, n, int(every.size) - n)
