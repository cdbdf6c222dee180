"""Posterior of the slope from scores to logits within films: do scores rise with the label, and how much.

Clips are compared with clips of their own film alone: the likelihood of a film is that of its labels given
how many of them are positive (conditional logistic regression: Breslow and Day 1980, chapter 7). A film of
two clips so counts as one comparison; with an intercept that is fitted beside the slope it would count
double, and few clips would look like much evidence.

The prior has two parts: with `P_UNSKILLED` the slope is 0, and else it is of half a Student's t of
`SLOPE_SCALE`. The numbers were chosen by the log loss of probabilities in planted corpora
(`benchmarks.planted`, rows ``calibration`` and ``no_skill``): those without any skill lose little beside the
training films' share, those with skill lose nothing that matters. A half-normal prior lost .007 nats a clip
with models of AUC .98, wider ones more than .01 with noise in 4 films of 4 clips.

Clips of a film may be alike, and slopes of films differ. The likelihood is therefore raised to a power of at
most 1, the ratio of its curvature to the variance of the films' scores at its mode (Pauli, Racugno and
Ventura 2011, Statistica Sinica 21): its spread is then that of the estimate over films.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline
from scipy.special import expit
from scipy.stats import t

from obygaze_models.protocol.held_out import HeldOut, find_intercepts

Floats = NDArray[np.float64]

P_UNSKILLED = 0.75
"""Prior probability that the slope is 0: most small corpora that are tried first hold no answer yet."""

SLOPE_SCALE = 0.4
SLOPE_FREEDOM = 3
"""Scale and degrees of freedom of Student's t, folded at 0, from which a slope above 0 comes: in logits a
deviation of the scores within films. Its tail leaves room for models that part the classes."""

STEEPEST = 16.0
"""Largest slope that is looked at: 8 logits of half a deviation."""

KNOTS: Floats = np.concatenate([[0.0], np.geomspace(0.04, STEEPEST, 30)])
"""Slopes at which a film's likelihood is computed; between them it is a cubic spline."""

GRID: Floats = np.concatenate([np.linspace(0.0, 2.0, 2001)[1:], np.geomspace(2.0, STEEPEST, 801)[1:]])
"""Slopes above 0 over which the posterior is summed."""

LEAST_POWER = 0.05
"""Least power of the likelihood."""


@dataclass(frozen=True, eq=False)
class SlopePosterior:
    """Posterior of the slope of one model's scores.

    Attributes
    ----------
    p_skilled : float
        Posterior probability that the slope is above 0, so that the AUC within films is above .5.
    cumulative : ndarray, shape [G]
        Posterior distribution over `GRID` of a slope above 0.
    unit : float
        Deviation of the scores within films; infinite where they are all equal.
    """

    p_skilled: float
    cumulative: Floats
    unit: float

    def quantiles(self, levels: ArrayLike) -> Floats:
        """Compute quantiles [B] of the slope, in logits a unit of the score."""
        above = (np.asarray(levels, np.float64) - (1 - self.p_skilled)) / max(self.p_skilled, 1e-12)
        return np.where(above > 0, np.interp(above, self.cumulative, GRID), 0.0) / self.unit


@dataclass(frozen=True, eq=False)
class SlopeLikelihood:
    """Log likelihood of the slope in each film that has clips of both labels.

    Attributes
    ----------
    movies : ndarray, shape [M]
    logs : ndarray, shape [M, K]
        At `KNOTS`, less the one at 0.
    unit : float
        As in `SlopePosterior`.
    """

    movies: NDArray[Any]
    logs: Floats
    unit: float

    @classmethod
    def of_scores(cls, held_out: HeldOut) -> "SlopeLikelihood":
        """Compute it from held-out scores [N] of one model."""
        standard, units = held_out.standardised()
        of_movies: dict[Any, Floats] = {}
        for rows in rows_of_groups(held_out.cells()):
            labels = held_out.y[rows].astype(np.float64)
            if np.ptp(labels):
                movie = held_out.movies[rows[0]]
                log = conditional_log_likelihood(standard[rows, 0], labels)
                of_movies[movie] = of_movies.get(movie, 0.0) + log
        logs = np.array(list(of_movies.values())).reshape(-1, len(KNOTS))
        return cls(np.array(list(of_movies)), logs, float(units[0]))

    def posterior(self, without: object = None) -> SlopePosterior:
        """Combine likelihood and prior, of all films or without one movie."""
        logs = self.logs[self.movies != without] if without is not None else self.logs
        total = np.zeros(len(GRID))
        if len(logs):
            films = CubicSpline(KNOTS, logs, axis=1)
            total = films(GRID).sum(axis=0)
            total *= _power(films, float(GRID[np.argmax(total)]))
        highest = max(float(total.max()), 0.0)
        prior = 2 * t.pdf(GRID / SLOPE_SCALE, SLOPE_FREEDOM) / SLOPE_SCALE
        weights = prior * np.gradient(GRID) * np.exp(total - highest)
        skilled = (1 - P_UNSKILLED) * float(weights.sum())
        unskilled = P_UNSKILLED * float(np.exp(-highest))
        cumulative = np.cumsum(weights) / weights.sum()
        return SlopePosterior(skilled / (skilled + unskilled), cumulative, self.unit)


def rows_of_groups(group_of: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the rows of each group, from the groups [N] of rows, numbered from 0."""
    order = np.argsort(group_of, kind="stable")
    return np.split(order, np.cumsum(np.bincount(group_of))[:-1])


def _power(films: CubicSpline, mode: float) -> float:
    """Compute the power of the likelihood from the films' first and second derivatives at its mode."""
    scores = films(mode, 1)
    curvature = -float(films(mode, 2).sum())
    n_films = len(scores)
    if n_films < 2 or curvature <= 0:
        return 1.0
    variance = n_films / (n_films - 1) * float(np.sum((scores - scores.mean()) ** 2))
    if variance <= curvature:
        return 1.0
    return max(curvature / variance, LEAST_POWER)


def conditional_log_likelihood(scores: Floats, labels: Floats) -> Floats:
    """Compute the log likelihood of a film's labels given how many are positive, at `KNOTS`, less that at 0.

    The probability of the labels of independent clips is divided by that of their sum, which is the integral
    of its characteristic function; with the intercept at which the sum is expected a few nodes suffice.

    Parameters
    ----------
    scores, labels : ndarray, shape [N]
        Labels are 0 and 1, both of which occur.

    Returns
    -------
    ndarray, shape [K]

    Examples
    --------
    >>> one_pair = conditional_log_likelihood(np.array([-0.5, 0.5]), np.array([0.0, 1.0]))
    >>> bool(np.allclose(one_pair, np.log(2 * expit(KNOTS))))
    True
    """
    n = len(labels)
    n_positive = float(labels.sum())
    intercepts = find_intercepts(KNOTS, scores, np.ones((1, n)), np.full(len(KNOTS), n_positive / n))
    logits = KNOTS[:, None] * scores + intercepts[:, None]
    p = expit(logits)
    of_labels = np.sum(labels * logits - np.logaddexp(0, logits), axis=1)
    deviation = float(np.sqrt(np.max(np.sum(p * (1 - p), axis=1))))
    # Sums that lie a whole round apart are taken for one: with 7 deviations their share is below 1e-10.
    n_nodes = min(n + 1, int(np.ceil(7 * deviation)) + 8)
    angles = 2 * np.pi * np.arange(n_nodes // 2 + 1) / n_nodes
    twice = np.full(len(angles), 2.0)
    twice[0] = 1.0
    if n_nodes % 2 == 0:
        twice[-1] = 1.0
    turned = np.exp(1j * angles) - 1
    back = np.exp(-1j * n_positive * angles) * twice / n_nodes
    of_sum = [float((np.prod(1 + at_slope[:, None] * turned, axis=0) @ back).real) for at_slope in p]
    logs = of_labels - np.log(np.maximum(of_sum, 1e-300))
    return np.asarray(logs - logs[0])
