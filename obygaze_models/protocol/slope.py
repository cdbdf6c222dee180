"""Posterior of the slope from scores to logits within films: whether and how much scores rise with labels.

Clips are compared with clips of their own film only. The likelihood of a film is that of its labels, given
how many of them are positive (conditional logistic regression: Breslow and Day 1980, chapter 7). A film of
two clips so counts as one comparison. With an intercept that is fitted along with the slope it would count
double, and few clips would look like much evidence.

The prior has two parts: with the probability `P_UNSKILLED` the slope is 0; otherwise it is from a half
Student's t with the scale `SLOPE_SCALE`. The numbers were chosen by the log loss of probabilities in planted
corpora (`benchmarks.planted`, rows ``calibration`` and ``no_skill``): models without any skill lose little
compared with the training films' share, and models with skill lose nothing that matters. A half-normal prior
lost .007 nats a clip with models of AUC .98; wider priors lost more than .01 with noise in 4 films of 4
clips.

Clips of a film may be alike, and slopes of films differ. The likelihood is therefore raised to a power of at
most 1: the ratio of its curvature to the variance of the films' score functions at its mode (Pauli, Racugno
and Ventura 2011, Statistica Sinica 21). Its spread is then that of the estimate over films.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from obygaze_models.protocol.held_out import HeldOut, find_intercepts

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

Floats = NDArray[np.float64]

P_UNSKILLED = 0.75
"""Prior probability that the slope is 0: most small corpora that are tried first hold no answer yet."""

SLOPE_SCALE = 0.4
SLOPE_DEGREES_OF_FREEDOM = 3
"""Scale and degrees of freedom of the half Student's t that slopes above 0 come from. A slope is in logits
for each deviation of the scores within films. The long tail leaves room for models that separate the
classes."""

STEEPEST = 16.0
"""Largest slope that is considered: half a deviation then makes 8 logits."""

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

    def quantiles(self, probabilities: ArrayLike) -> Floats:
        """Compute quantiles of the slope [B], in logits per unit of the score.

        `probabilities` [B] say which quantiles: 0.5 is the median.
        """
        p_unskilled = 1 - self.p_skilled
        # The share p_unskilled of the posterior is at a slope of 0, and the rest above 0.
        p_among_skilled = (np.asarray(probabilities, np.float64) - p_unskilled) / max(self.p_skilled, 1e-12)
        quantiles_above_0 = np.interp(p_among_skilled, self.cumulative, GRID)
        slopes = np.where(p_among_skilled > 0, quantiles_above_0, 0.0)
        return slopes / self.unit


@dataclass(frozen=True, eq=False)
class SlopeLikelihood:
    """Log likelihood of the slope in each film that has clips of both labels.

    Attributes
    ----------
    movies : ndarray, shape [M]
    logs : ndarray, shape [M, K]
        Log likelihood at each of `KNOTS`, less that at a slope of 0.
    unit : float
        Deviation of the scores within films, as in `SlopePosterior`.
    """

    movies: NDArray[Any]
    logs: Floats
    unit: float

    @classmethod
    def of_scores(cls, held_out: HeldOut) -> "SlopeLikelihood":
        """Compute the likelihood of each film, given one model's held-out scores [N]."""
        standard, deviations = held_out.standardised()
        log_of_movie: dict[Any, Floats] = {}
        for rows in rows_of_groups(held_out.cells()):
            labels = held_out.y[rows].astype(np.float64)
            has_both_labels = np.ptp(labels) > 0
            if has_both_labels:
                movie = held_out.movies[rows[0]]
                log = conditional_log_likelihood(standard[rows, 0], labels)
                log_of_movie[movie] = log_of_movie.get(movie, 0.0) + log
        logs = np.array(list(log_of_movie.values())).reshape(-1, len(KNOTS))
        return cls(np.array(list(log_of_movie)), logs, float(deviations[0]))

    @cached_property
    def _film_splines(self) -> "CubicSpline":
        """Cubic splines of the films' log likelihoods through their values at the knots."""
        from scipy.interpolate import CubicSpline  # noqa: PLC0415 - slow, and films are opened without it

        return CubicSpline(KNOTS, self.logs, axis=1)

    @cached_property
    def _sums_on_grid(self) -> tuple[Floats, Floats]:
        """Sums of the films' log likelihoods at `GRID`: of the films before each film, and from each film on.

        Both are of shape [M + 1, G]. From them the sum of all other films follows for each film, without
        summing anew, and without the rounding errors of subtracting a film from the total.
        """
        films = self._film_splines(GRID)
        before = np.zeros((len(films) + 1, len(GRID)))
        after = np.zeros_like(before)
        np.cumsum(films, axis=0, out=before[1:])
        after[:-1] = np.cumsum(films[::-1], axis=0)[::-1]
        return before, after

    def posterior(self, without: object = None) -> SlopePosterior:
        """Compute the posterior of the slope from all films, or from all but the movie `without`."""
        from scipy.stats import t  # noqa: PLC0415 - slow, and most read what was calibrated before

        is_used = np.ones(len(self.movies), dtype=np.bool_)
        if without is not None:
            is_used = self.movies != without
        log_likelihood = np.zeros(len(GRID))
        if is_used.any():
            before, after = self._sums_on_grid
            left_out = np.flatnonzero(~is_used)
            log_likelihood = before[-1]
            if len(left_out):
                log_likelihood = before[left_out[0]] + after[left_out[0] + 1]
            mode = float(GRID[np.argmax(log_likelihood)])
            first_derivatives = self._film_splines(mode, 1)[is_used]
            second_derivatives = self._film_splines(mode, 2)[is_used]
            power = _likelihood_power(first_derivatives, second_derivatives)
            log_likelihood = power * log_likelihood
        # The log likelihood at slope 0 is 0. The highest one is subtracted so that exp does not overflow.
        highest = max(float(log_likelihood.max()), 0.0)
        prior = 2 * t.pdf(GRID / SLOPE_SCALE, SLOPE_DEGREES_OF_FREEDOM) / SLOPE_SCALE
        weights = prior * np.gradient(GRID) * np.exp(log_likelihood - highest)
        skilled = (1 - P_UNSKILLED) * float(weights.sum())
        unskilled = P_UNSKILLED * float(np.exp(-highest))
        cumulative = np.cumsum(weights) / weights.sum()
        return SlopePosterior(skilled / (skilled + unskilled), cumulative, self.unit)


def rows_of_groups(group_of: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the rows of each group, given the group of each row [N], numbered from 0."""
    order = np.argsort(group_of, kind="stable")
    ends = np.cumsum(np.bincount(group_of))
    return np.split(order, ends[:-1])


def _likelihood_power(first_derivatives: Floats, second_derivatives: Floats) -> float:
    """Compute the power, at most 1, to which the likelihood is raised because clips are not independent.

    It is the ratio of the likelihood's curvature at its mode to the variance of the films' score functions.
    Both are computed from the first and second derivatives [M] of the films' log likelihoods at the mode.
    """
    curvature = -float(second_derivatives.sum())
    n_films = len(first_derivatives)
    if n_films < 2 or curvature <= 0:
        return 1.0
    squares = float(np.sum((first_derivatives - first_derivatives.mean()) ** 2))
    variance = n_films / (n_films - 1) * squares
    if variance <= curvature:
        return 1.0
    return max(curvature / variance, LEAST_POWER)


def conditional_log_likelihood(scores: Floats, labels: Floats) -> Floats:
    """Compute the log likelihood of a film's labels given how many are positive, at each slope of `KNOTS`.

    Clips are taken as independent. The result is the log probability of the labels, minus the log probability
    of as many positive labels in any order, minus the same difference at slope 0. It does not depend on the
    intercept; the intercept that is used makes the expected number of positive clips equal to the actual one.

    Parameters
    ----------
    scores, labels : ndarray, shape [N]
        Labels are 0 and 1, and both occur.

    Returns
    -------
    ndarray, shape [K]

    Examples
    --------
    >>> one_pair = conditional_log_likelihood(np.array([-0.5, 0.5]), np.array([0.0, 1.0]))
    >>> bool(np.allclose(one_pair, np.log(2 * expit(KNOTS))))
    True
    """
    n_clips = len(labels)
    n_positive = float(labels.sum())
    shares = np.full(len(KNOTS), n_positive / n_clips)
    intercepts = find_intercepts(KNOTS, scores, np.ones((1, n_clips)), shares)
    logits = KNOTS[:, None] * scores + intercepts[:, None]  # [K, N]
    log_p_of_labels = np.sum(labels * logits - np.logaddexp(0, logits), axis=1)
    logs = log_p_of_labels - _log_probability_of_sum(expit(logits), n_positive)
    return np.asarray(logs - logs[0])


def _log_probability_of_sum(p: Floats, n_positive: float) -> Floats:
    """Compute the log probability that exactly `n_positive` of N independent clips are positive, [K].

    It is the inverse Fourier transform, at `n_positive`, of the characteristic function of their sum.

    Parameters
    ----------
    p : ndarray, shape [K, N]
        Probability of each clip to be positive, for each of K slopes; the expected sum is `n_positive`.
    n_positive : float
    """
    n_clips = p.shape[1]
    deviation = float(np.sqrt(np.max(np.sum(p * (1 - p), axis=1))))
    # m nodes cannot distinguish sums that differ by m. Sums more than 7 deviations away from the expected one
    # have a probability below 1e-10, so that it does no harm to confuse them with it.
    n_nodes = min(n_clips + 1, int(np.ceil(7 * deviation)) + 8)
    # The function at -angle is the conjugate of that at angle. So half of the nodes suffice, and each counts
    # twice, except those at the angles 0 and pi.
    angles = 2 * np.pi * np.arange(n_nodes // 2 + 1) / n_nodes
    multiplicity = np.full(len(angles), 2.0)
    multiplicity[0] = 1.0
    if n_nodes % 2 == 0:
        multiplicity[-1] = 1.0
    phase_minus_1 = np.exp(1j * angles) - 1
    weights = np.exp(-1j * n_positive * angles) * multiplicity / n_nodes
    p_of_sum = []
    for p_at_slope in p:
        characteristic = np.prod(1 + p_at_slope[:, None] * phase_minus_1, axis=0)
        p_of_sum.append(float((characteristic @ weights).real))
    return np.log(np.maximum(p_of_sum, 1e-300))
