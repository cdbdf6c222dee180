"""Logistic regression of a model's errors on what is in a clip, with films drawn anew for its intervals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]

PRIOR_SD = 2.5
"""Deviation of every effect's normal prior: it keeps separable factors finite, hardly moves others."""

N_STEPS = 30


@dataclass(frozen=True, eq=False, slots=True)
class Factors:
    """Effects on the log odds of an error.

    Attributes
    ----------
    effects, low, high : ndarray, shape [K]
        NaN for a factor that does not vary.
    n_clips, n_errors : int
    """

    effects: Floats
    low: Floats
    high: Floats
    n_clips: int
    n_errors: int


def error_factors(
    factors: Floats,
    errors: NDArray[np.bool_],
    movies: NDArray[np.str_],
    *,
    n_draws: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Factors:
    """Fit errors [N] on factors [N, K] and an intercept for each movie; percentile intervals over movies.

    A draw takes as many movies as there are, with replacement, each with all its clips (the cluster
    bootstrap). All fits are the posterior mode under independent normal priors of deviation `PRIOR_SD`.
    """
    names, number = np.unique(movies, return_inverse=True)
    varies = factors.max(axis=0) > factors.min(axis=0)
    design = np.column_stack([factors[:, varies], number[:, None] == np.arange(names.size)]).astype(
        np.float64
    )
    # Clips that are alike in all that counts are one row with a weight: thousands of draws, few rows.
    rows, place = np.unique(np.column_stack([design, errors]), axis=0, return_inverse=True)
    counts = np.bincount(place.ravel()).astype(np.float64)
    movie_of = np.argmax(rows[:, -1 - names.size : -1], axis=1)
    rng = np.random.default_rng(seed)
    times = rng.multinomial(names.size, np.full(names.size, 1 / names.size), size=n_draws)
    weights = np.vstack([np.ones(names.size), times])[:, movie_of] * counts
    found = _fit(rows[:, :-1], rows[:, -1], weights)[:, : int(varies.sum())]
    effects, low, high = np.full((3, factors.shape[1]), np.nan)
    effects[varies] = found[0]
    low[varies], high[varies] = np.quantile(found[1:], [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Factors(effects, low, high, len(errors), int(errors.sum()))


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
