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
from typing import TYPE_CHECKING, Any, NamedTuple

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

        A share of the posterior, 1 - `p_skilled`, is at the slope 0. Quantiles up to this share are 0; the
        others are quantiles of the slopes above 0, which have the distribution `cumulative`.

        Parameters
        ----------
        probabilities : array-like, shape [B]
            Which quantiles: 0.5 is the median.
        """
        p_at_0 = 1 - self.p_skilled
        # From a probability in the whole posterior to one among the slopes above 0: if a share of .2 is at 0,
        # the quantile at .6 is that at .5 of the slopes above 0. 1e-12 keeps from dividing by 0.
        p_above_0 = (np.asarray(probabilities, np.float64) - p_at_0) / max(self.p_skilled, 1e-12)
        quantiles_above_0 = np.interp(p_above_0, self.cumulative, GRID)
        slopes = np.where(p_above_0 > 0, quantiles_above_0, 0.0)
        # `GRID` is in logits per standard deviation of the scores, which is the unit.
        return slopes / self.unit


@dataclass(frozen=True, eq=False)
class SlopeLikelihood:
    """Log likelihood of the slope in each film that has clips of both labels.

    Attributes
    ----------
    movies : ndarray, shape [M]
    log_likelihoods : ndarray, shape [M, K]
        Log likelihood at each of `KNOTS`, less that at a slope of 0.
    unit : float
        Deviation of the scores within films, as in `SlopePosterior`.
    """

    movies: NDArray[Any]
    log_likelihoods: Floats
    unit: float

    @classmethod
    def of_scores(cls, held_out: HeldOut) -> "SlopeLikelihood":
        """Compute the likelihood of each film, given one model's held-out scores [N].

        The clips of a film may be in several cells, such as the folds that scored them, whose scores are not
        comparable: each cell has its own intercept, and the film's log likelihood is their sum. Cells with
        one label say nothing of the slope.
        """
        standard, deviations = held_out.standardised()
        by_movie: dict[Any, Floats] = {}
        for rows in rows_of_groups(held_out.cells()):
            labels = held_out.y[rows].astype(np.float64)
            has_both_labels = np.ptp(labels) > 0
            if has_both_labels:
                movie = held_out.movies[rows[0]]
                log_likelihood = conditional_log_likelihood(standard[rows, 0], labels)
                by_movie[movie] = by_movie.get(movie, 0.0) + log_likelihood
        return cls(
            movies=np.array(list(by_movie)),
            log_likelihoods=np.array(list(by_movie.values())).reshape(-1, len(KNOTS)),
            unit=float(deviations[0]),
        )

    @cached_property
    def _film_splines(self) -> "CubicSpline":
        """Cubic splines of the films' log likelihoods through their values at the knots."""
        from scipy.interpolate import CubicSpline  # noqa: PLC0415 - slow, and films are opened without it

        return CubicSpline(KNOTS, self.log_likelihoods, axis=1)  # along the knots, for each film

    @cached_property
    def _sums_on_grid(self) -> tuple[Floats, Floats]:
        """Sums of the films' log likelihoods at `GRID`: of the films before each film, and from each film on.

        Both are of shape [M + 1, G]. The sum of all films but film m is the sum before m plus the sum from
        m + 1 on: without summing anew, and without the rounding errors of subtracting a film from the total.
        """
        films = self._film_splines(GRID)
        sums_before = np.zeros((len(films) + 1, len(GRID)))
        sums_from = np.zeros_like(sums_before)
        np.cumsum(films, axis=0, out=sums_before[1:])
        sums_from[:-1] = np.cumsum(films[::-1], axis=0)[::-1]
        return sums_before, sums_from

    def posterior(self, without: object = None) -> SlopePosterior:
        """Compute the posterior of the slope from all films, or from all but the movie `without`."""
        from scipy.stats import t  # noqa: PLC0415 - slow, and most read what was calibrated before

        log_likelihood = self._log_likelihood_on_grid(without)
        # The highest log likelihood, of the slopes above 0 and of slope 0, where it is 0, is subtracted so
        # that exp does not overflow: the shares below don't depend on it.
        highest = max(float(log_likelihood.max()), 0.0)
        # Half a Student's t has twice the density of the whole one.
        prior_density = 2 * t.pdf(GRID / SLOPE_SCALE, SLOPE_DEGREES_OF_FREEDOM) / SLOPE_SCALE
        # The posterior of a slope of the grid: prior density times the grid's step, times the likelihood.
        weights = prior_density * np.gradient(GRID) * np.exp(log_likelihood - highest)
        mass_above_0 = (1 - P_UNSKILLED) * float(weights.sum())
        mass_at_0 = P_UNSKILLED * float(np.exp(-highest))
        return SlopePosterior(
            p_skilled=mass_above_0 / (mass_above_0 + mass_at_0),
            cumulative=np.cumsum(weights) / weights.sum(),
            unit=self.unit,
        )

    def _log_likelihood_on_grid(self, without: object) -> Floats:
        """Compute the log likelihood [G] at `GRID`, raised to its power; `without` is as in `posterior`.

        It is 0 everywhere if no film is left.
        """
        is_used = np.ones(len(self.movies), dtype=np.bool_)
        if without is not None:
            is_used = self.movies != without
        if not is_used.any():
            return np.zeros(len(GRID))
        sums_before, sums_from = self._sums_on_grid
        log_likelihood = sums_before[-1]
        if not is_used.all():
            left_out = int(np.flatnonzero(~is_used)[0])
            log_likelihood = sums_before[left_out] + sums_from[left_out + 1]
        mode = float(GRID[np.argmax(log_likelihood)])
        first_derivatives = self._film_splines(mode, 1)[is_used]
        second_derivatives = self._film_splines(mode, 2)[is_used]
        power = _likelihood_power(first_derivatives, second_derivatives)
        return np.asarray(power * log_likelihood)


def rows_of_groups(group_of: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the rows of each group, given the group of each row [N], numbered from 0."""
    order = np.argsort(group_of, kind="stable")
    ends = np.cumsum(np.bincount(group_of))
    return np.split(order, ends[:-1])


def _likelihood_power(first_derivatives: Floats, second_derivatives: Floats) -> float:
    """Compute the power, at most 1, to which the likelihood is raised because clips are not independent.

    The power is the ratio of two numbers at the slope where the likelihood is highest: the log likelihood's
    curvature, and the variance of its first derivative over draws of films. They are about equal if clips are
    independent and all films have the same slope; where clips of a film are alike, the variance is larger
    (the sandwich correction).

    Parameters
    ----------
    first_derivatives, second_derivatives : ndarray, shape [M]
        Of the films' log likelihoods at the mode.
    """
    curvature = -float(second_derivatives.sum())
    n_films = len(first_derivatives)
    if n_films < 2 or curvature <= 0:
        return 1.0
    # The variance of the sum of n derivatives is n times their variance, squares / (n - 1).
    squares = float(np.sum((first_derivatives - first_derivatives.mean()) ** 2))
    variance = n_films / (n_films - 1) * squares
    if variance <= curvature:
        return 1.0
    return max(curvature / variance, LEAST_POWER)


def conditional_log_likelihood(scores: Floats, labels: Floats) -> Floats:
    """Compute the log likelihood of a film's labels given how many are positive, at each slope of `KNOTS`.

    Clips are taken as independent. The conditional likelihood is
    ``P(these labels) / P(as many positive labels, on whichever clips)``; its logarithm at slope 0 is
    subtracted, so that the result is 0 there. The intercept cancels out of the ratio, so that any will do:
    the one that is used makes the expected number of positive clips the actual one.

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
    log_likelihood = log_p_of_labels - _log_probability_of_sum(expit(logits), n_positive)
    at_slope_0 = log_likelihood[0]
    return np.asarray(log_likelihood - at_slope_0)


def _log_probability_of_sum(p: Floats, n_positive: float) -> Floats:
    """Compute the log probability that exactly `n_positive` of N independent clips are positive, [K].

    The number of positive clips has a Poisson binomial distribution, which is computed by the discrete
    Fourier transform of its characteristic function (Hong 2013, Computational Statistics and Data Analysis
    59). The characteristic function at an angle a is the product over clips of

        (1 - p) + p exp(i a) = 1 + p (exp(i a) - 1)

    and the probability of s positive clips is the mean, over evenly spaced angles a around the circle, of
    this function times exp(-i s a).

    Parameters
    ----------
    p : ndarray, shape [K, N]
        Probability of each clip to be positive, for each of K slopes; the expected sum is `n_positive`.
    n_positive : float
    """
    nodes = _fourier_nodes(p)
    exp_minus_1 = np.exp(1j * nodes.angles) - 1
    weights = np.exp(-1j * n_positive * nodes.angles) * nodes.multiplicity / nodes.n_nodes
    p_of_sum = []
    for p_at_slope in p:
        characteristic = np.prod(1 + p_at_slope[:, None] * exp_minus_1, axis=0)
        p_of_sum.append(float((characteristic @ weights).real))
    return np.log(np.maximum(p_of_sum, 1e-300))


class _FourierNodes(NamedTuple):
    """Angles at which a characteristic function is computed.

    The function at -a is the conjugate of that at a, so that only half of the circle is computed.

    Attributes
    ----------
    angles : ndarray, shape [m // 2 + 1]
        From 0 to pi.
    multiplicity : ndarray, shape [m // 2 + 1]
        How many of the m angles around the circle each stands for: 2, or 1 for the angles 0 and pi.
    n_nodes : int
        m.
    """

    angles: Floats
    multiplicity: Floats
    n_nodes: int


def _fourier_nodes(p: Floats) -> _FourierNodes:
    """Choose the angles for sums of clips that are positive with probabilities p [K, N].

    m angles cannot distinguish sums that differ by m. Sums more than 7 standard deviations away from the
    expected one have a probability below 1e-10, so that it does no harm to confuse them with it. Angles of
    the lower half of the circle have conjugate values: only those from 0 to pi are kept, and count twice but
    for 0 and pi themselves.
    """
    n_clips = p.shape[1]
    deviation = float(np.sqrt(np.max(np.sum(p * (1 - p), axis=1))))
    n_nodes = min(n_clips + 1, int(np.ceil(7 * deviation)) + 8)
    angles = 2 * np.pi * np.arange(n_nodes // 2 + 1) / n_nodes
    multiplicity = np.full(len(angles), 2.0)
    multiplicity[0] = 1.0
    ends_at_pi = n_nodes % 2 == 0
    if ends_at_pi:
        multiplicity[-1] = 1.0
    return _FourierNodes(angles, multiplicity, n_nodes)
