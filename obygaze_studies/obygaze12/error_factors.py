"""Regress a model's errors on concepts and levels (logistic), with intervals and tests over movies."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import t as student

from obygaze_models.evaluation import holm, jackknife_error

Floats = NDArray[np.float64]

PRIOR_SD = 2.5
"""SD of the normal prior of every effect; it keeps separable factors finite, and hardly changes others."""

N_STEPS = 30


@dataclass(frozen=True, eq=False, slots=True)
class Factors:
    """Effects on the log odds of an error.

    Attributes
    ----------
    effects, low, high : ndarray, shape [K]
        NaN for a factor that does not vary.
    p, p_holm : ndarray, shape [K]
        Two-sided p-value of each effect, and the same adjusted for the K factors.
    n_clips, n_errors : int
    """

    effects: Floats
    low: Floats
    high: Floats
    p: Floats
    p_holm: Floats
    n_clips: int
    n_errors: int


def error_factors(
    factors: Floats, errors: NDArray[np.bool_], movies: NDArray[np.str_], *, level: float = 0.95
) -> Factors:
    """Fit errors [N] on factors [N, K] and an intercept for each movie; intervals and tests over movies.

    Fits are the posterior mode under independent normal priors of deviation `PRIOR_SD`. Standard errors are
    the delete-one jackknife's over movies, with Student's t of one degree of freedom fewer than movies
    (MacKinnon, Nielsen and Webb 2024, arXiv 2406.00650, on logistic regression): with 6 to 12 movies the
    percentiles of a bootstrap of movies cover too little. All are undefined with one movie.
    """
    names, number = np.unique(movies, return_inverse=True)
    varies = factors.max(axis=0) > factors.min(axis=0)
    design = np.column_stack([factors[:, varies], number[:, None] == np.arange(names.size)]).astype(
        np.float64
    )
    # Clips that are alike in all that counts are one row with a weight: many fits, few rows.
    rows, place = np.unique(np.column_stack([design, errors]), axis=0, return_inverse=True)
    counts = np.bincount(place.ravel()).astype(np.float64)
    movie_of = np.argmax(rows[:, -1 - names.size : -1], axis=1)
    kept = np.vstack([np.ones(names.size), 1.0 - np.eye(names.size)])
    found = _fit(rows[:, :-1], rows[:, -1], kept[:, movie_of] * counts)[:, : int(varies.sum())]
    effects, low, high, p = np.full((4, factors.shape[1]), np.nan)
    effects[varies] = found[0]
    if names.size > 1:
        error, freedom = jackknife_error(found[1:]), names.size - 1
        reach = student.ppf((1 + level) / 2, freedom) * error
        low[varies], high[varies] = found[0] - reach, found[0] + reach
        p[varies] = 2 * student.sf(np.abs(found[0]) / np.maximum(error, 1e-300), freedom)
    return Factors(effects, low, high, p, holm(p), len(errors), int(errors.sum()))


def _fit(X: Floats, y: Floats, weights: Floats) -> Floats:
    """Fit a logistic regression [R, P] of y [N] on X [N, P] for each row of weights [R, N] (Newton)."""
    n, p = X.shape
    theta = np.zeros((len(weights), p))
    products = (X[:, :, None] * X[:, None, :]).reshape(n, p * p)
    for _ in range(N_STEPS):
        mean = expit(theta @ X.T)
        gradient = (weights * (y - mean)) @ X - theta / PRIOR_SD**2
        curvature = (weights * mean * (1 - mean)) @ products
        step = np.linalg.solve(curvature.reshape(-1, p, p) + np.eye(p) / PRIOR_SD**2, gradient[..., None])[
            ..., 0
        ]
        # The mode is unique; a step that overshoots is cut short.
        step *= np.minimum(1.0, 4.0 / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
        theta += step
        if np.abs(step).max() < 1e-9:
            break
    return theta
