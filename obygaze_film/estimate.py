"""Estimate a rate from random judgements; a model, right or wrong, narrows the interval."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]

MIN_VARIANCE: Final = 1e-12
"""Variance of p below which a model says the same of every window."""

BISECTIONS: Final = 42


@dataclass(frozen=True, eq=False, slots=True)
class Estimates:
    """Corrected rates of B draws.

    Attributes
    ----------
    value, low, high : ndarray, shape [B]
    gain : ndarray, shape [B]
        Weight of the model's probabilities, 0 (unused) to 1.
    alone_low, alone_high : ndarray, shape [B]
        Wilson's interval of the judgements alone.
    """

    value: Floats
    low: Floats
    high: Floats
    gain: Floats
    alone_low: Floats
    alone_high: Floats


def difference_estimate(
    y: ArrayLike,
    p: ArrayLike,
    seconds: ArrayLike,
    *,
    film_p: float | Floats,
    film_variance: float | Floats,
    n_rows: int,
    level: float = 0.95,
) -> Estimates:
    """Estimate the share of a film's time that is positive from windows drawn at random without replacement.

    The difference estimate (Cassel, Särndal and Wretman, Biometrika 1976; prediction-powered inference:
    Angelopoulos et al., Science 2023) of a rate R is the judged windows' mean of y - g p plus g times the
    film's mean of p, all weighted by duration. It is unbiased for any model and any g; the g with the
    smallest variance is cov(y, p) / V (power tuning: Angelopoulos, Duchi and Zrnic 2023), here within 0 and
    1, where V is the film's variance of p. It is 0 for a useless model and 1 for a calibrated one.

    The interval is that of a score test: the rates R at most z standard errors from their estimate. A rate R
    gives cov(y, p) = R (1 - R) D, with D the difference of the mean p of judged positives and negatives, and
    the variance R (1 - R) - 2 g cov + g^2 V of y - g p. To each of the two means one window is added that has
    the mean p of all judged windows: D is 0 without a positive or without a negative. For a useless model
    this is Wilson's interval with duration weights and the finite-population correction in the number of
    windows. (Of film.md's rule, Student's t of the plain difference estimate, the coverage is .917 to .998 in
    the simulation of tests/film/test_judge.py, and of this interval .94 to .97.)

    Parameters
    ----------
    y : array-like, shape [B, n]
        Judgements, 0 to 1, of B draws of n windows.
    p : array-like, shape [B, n]
        The model's probabilities of the judged windows.
    seconds : array-like, shape [B, n]
        Their durations.
    film_p, film_variance : float or ndarray, shape [B]
        Mean and variance of p over all windows of the film, weighted by duration.
    n_rows : int
        Windows of the film.
    level : float
    """
    labels, shares, weights = (np.asarray(values, dtype=np.float64) for values in (y, p, seconds))
    n = labels.shape[1]
    total = weights.sum(axis=1)
    weights = weights / total[:, None]
    left = 1 - n / n_rows if n < n_rows else 1e-12
    c = float(ndtri((1 + level) / 2)) ** 2 * left * (weights * weights).sum(axis=1)
    alone = (weights * labels).sum(axis=1)
    mean_p = (weights * shares).sum(axis=1)
    above = (weights * labels * shares).sum(axis=1)
    of_positives = (n * above + mean_p) / (n * alone + 1)
    of_negatives = (n * (mean_p - above) + mean_p) / (n * (1 - alone) + 1)
    variance_p = np.maximum(film_variance, MIN_VARIANCE)
    apart = np.where(variance_p > MIN_VARIANCE, np.maximum(of_positives - of_negatives, 0), 0)

    def gain(rate: Floats) -> Floats:
        tuned: Floats = np.clip(rate * (1 - rate) * apart / variance_p, 0, 1)
        return tuned

    def distance(rate: Floats) -> Floats:
        away: Floats = rate - alone + gain(rate) * (mean_p - film_p)
        return away

    def error(rate: Floats) -> Floats:
        spread, g = rate * (1 - rate), gain(rate)
        variance = spread - 2 * g * spread * apart + g * g * variance_p
        found: Floats = np.sqrt(c * np.maximum(variance, 0))
        return found

    zero, one = np.zeros(len(labels)), np.ones(len(labels))
    value = _root(distance, zero, one)
    high = _root(lambda rate: distance(rate) - error(rate), value, one)
    low = _root(lambda rate: distance(rate) + error(rate), zero, value)
    # Wilson: (alone - R)^2 = c (R - R^2).
    half = np.sqrt(c * alone * (1 - alone) + c * c / 4)
    alone_low, alone_high = (alone + c / 2 - half) / (1 + c), (alone + c / 2 + half) / (1 + c)
    return Estimates(value, low, high, gain(value), np.maximum(alone_low, 0), np.minimum(alone_high, 1))


def _root(function: Callable[[Floats], Floats], below: Floats, above: Floats) -> Floats:
    """Bisect for the roots of a function that is at most 0 at `below` and at least 0 at `above`, [B]."""
    for _ in range(BISECTIONS):
        middle = (below + above) / 2
        is_below = function(middle) <= 0
        below, above = np.where(is_below, middle, below), np.where(is_below, above, middle)
    return np.round((below + above) / 2, 12)
