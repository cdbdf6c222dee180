"""Estimate a rate from random judgements; a model, right or wrong, narrows the interval."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

Floats = NDArray[np.float64]


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
    film_p: float,
    film_variance: float,
    n_rows: int,
    level: float = 0.95,
) -> Estimates:
    """Estimate the share of a film's time that is positive from windows drawn at random without replacement.

    The difference estimate (Cassel, Särndal and Wretman, Biometrika 1976; prediction-powered inference:
    Angelopoulos et al., Science 2023) is the film's mean of g p plus the judged windows' mean of y - g p, all
    weighted by duration. It is unbiased for any model; g is 0 for a useless one and 1 for a
    calibrated one (Angelopoulos, Duchi and Zrnic 2023).

    Its interval is Wilson's: the rates R from which the estimate is at most z standard errors away, where the
    variance of y - g p under R is R - R^2 - 2 R g (m - P) + g^2 V, with P and V the film's mean and variance
    of p, and m the mean of p where y is 1. As Wilson's interval adds z^2 / 2 positives, m is taken from the
    judged positives and z^2 / 2 more with p = P. With g = 0 it is Wilson's interval, with duration weights
    and the finite-population correction in the number of windows. (Student's t of the plain difference
    estimate, with Wilson's interval below 5 positives, covers .917 to .998 in the simulation of
    tests/film/test_judge.py, and this interval .933 to .980.)

    Parameters
    ----------
    y : array-like, shape [B, n]
        Judgements, 0 to 1, of B draws of n windows.
    p : array-like, shape [B, n]
        The model's probabilities of the judged windows.
    seconds : array-like, shape [B, n]
        Their durations.
    film_p, film_variance : float
        Mean and variance of p over all windows of the film, weighted by duration.
    n_rows : int
        Windows of the film.
    level : float
    """
    labels, shares, weights = (np.asarray(values, dtype=np.float64) for values in (y, p, seconds))
    n = labels.shape[1]
    z2 = float(norm.ppf((1 + level) / 2)) ** 2
    total = weights.sum(axis=1)
    alone = (weights * labels).sum(axis=1) / total
    left = 1 - n / n_rows if n < n_rows else 1e-12
    c = z2 * left * (weights * weights).sum(axis=1) / (total * total)
    positives = (weights * labels).sum(axis=1) * n / total
    found = ((weights * labels * shares).sum(axis=1) * n / total + z2 / 2 * film_p) / (positives + z2 / 2)
    rate = (positives + z2 / 2) / (n + z2)
    useful = film_variance > 1e-12
    gain = np.clip(rate * (found - film_p) / film_variance, 0, 1) if useful else np.zeros(len(labels))
    value = alone - gain * ((weights * shares).sum(axis=1) / total - film_p)
    low, high = _score_interval(value, c, gain * (found - film_p), gain * gain * film_variance)
    zero = np.zeros(len(labels))
    alone_low, alone_high = _score_interval(alone, c, zero, zero)
    return Estimates(np.clip(value, low, high), low, high, gain, alone_low, alone_high)


def _score_interval(value: Floats, c: Floats, found: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Solve (value - R)^2 = c (R - R^2 - 2 R found + variance) for R, within 0 and 1."""
    a, b = 1 + c, -(2 * value + c * (1 - 2 * found))
    root = np.sqrt(np.maximum(b * b - 4 * a * (value * value - c * variance), 0))
    return np.clip((-b - root) / (2 * a), 0, 1), np.clip((-b + root) / (2 * a), 0, 1)
