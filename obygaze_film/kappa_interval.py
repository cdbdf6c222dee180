"""Say how far Cohen's kappa of two judges is known: the interval of its posterior, by integration."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_film.agreement import kappa

Floats = NDArray[np.float64]

TAIL: Final = 0.025
"""Posterior probability that lies below the interval, and above it."""

N_NODES: Final = 24
"""Values of either share over which the posterior is integrated: the ends are right to about .001."""

PRIOR: Final = 0.5
"""Added to the count of each of the four pairs of answers: Jeffreys' prior."""


class KappaInterval(NamedTuple):
    """Cohen's kappa of two judges and the ends of its 95 % interval; all NaN where it is undefined."""

    kappa: float
    low: float
    high: float


NO_KAPPA: Final = KappaInterval(np.nan, np.nan, np.nan)
"""Of two judges who judged too few windows together, or whose answers define no kappa."""


def kappa_interval(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> KappaInterval:
    """Compute Cohen's kappa of two annotators of the same cells [n] and its 95 % interval.

    The interval is that of the posterior of kappa, with Jeffreys' prior of the shares of the four pairs of
    answers. A jackknife over cells would cover too seldom if positive answers are rare, and give no interval
    if the annotators agree on all cells.
    """
    value = kappa(first, second)
    if np.isnan(value):
        return NO_KAPPA
    posterior = _Posterior(
        both=int((first & second).sum()),
        neither=int((~first & ~second).sum()),
        only_first=int((first & ~second).sum()),
        only_second=int((~first & second).sum()),
    )
    low, high = posterior.quantile(TAIL), posterior.quantile(1 - TAIL)
    return KappaInterval(value, min(low, value), max(high, value))  # it contains the kappa


class _Posterior:
    """The posterior of kappa, given how many cells have each of the four pairs of answers.

    Let u be the share of cells that are answered unlike, x that of "both" among the cells answered alike, and
    y that of "only the first" among the unlike ones. With a prior of four shares that is a Dirichlet's, the
    three are independent, and each is a Beta's. Two answers that are drawn at random, one of each annotator,
    are unlike with chance u + 2 x (1 - x) (1 - u)² - 2 y (1 - y) u², and 1 - kappa is u divided by it.
    This grows with u, so that for each x and y kappa is at most k where u is at least a value that k gives.

    Attributes
    ----------
    mixed_alike, mixed_unlike : ndarray, shape [N, 1] and [N]
        2 x (1 - x) and 2 y (1 - y) of the nodes over which the posterior is integrated.
    weights : ndarray, shape [N, N]
        Weights of the pairs of nodes; their sum is 1.
    n_unlike, n_alike : float
        Parameters of the Beta distribution of u.
    """

    def __init__(self, both: int, neither: int, only_first: int, only_second: int) -> None:
        from scipy.special import betaincinv  # noqa: PLC0415 - slow, and films are opened without it

        nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
        probabilities = (nodes + 1) / 2
        both_of_alike = betaincinv(both + PRIOR, neither + PRIOR, probabilities)[:, None]
        first_of_unlike = betaincinv(only_first + PRIOR, only_second + PRIOR, probabilities)
        self.mixed_alike: Floats = 2 * both_of_alike * (1 - both_of_alike)
        self.mixed_unlike: Floats = 2 * first_of_unlike * (1 - first_of_unlike)
        self.weights: Floats = np.outer(weights, weights) / 4  # those of Gauss and Legendre add up to 2
        self.n_unlike = only_first + only_second + 2 * PRIOR
        self.n_alike = both + neither + 2 * PRIOR

    def probability_of_at_most(self, value: float) -> float:
        """Compute the probability that kappa is at most a value in [-1, 1]."""
        from scipy.special import betaincc  # noqa: PLC0415 - as above

        least_unlike = self._least_unlike(value)
        return float((self.weights * betaincc(self.n_unlike, self.n_alike, least_unlike)).sum())

    def _least_unlike(self, value: float) -> Floats:
        """Compute the share of unlike answers [N, N] from which on kappa is at most a value; 1 if never.

        With o = u / (1 - u), kappa is at most k where (k + (1 - k) 2 y (1 - y)) o² + k o is at least
        (1 - k) 2 x (1 - x): its positive root is sought, in a form that keeps its digits near 0.
        """
        square = value + (1 - value) * self.mixed_unlike
        constant = (1 - value) * self.mixed_alike
        root_of_discriminant = np.sqrt(np.maximum(value**2 + 4 * square * constant, 0))
        divisor = value + root_of_discriminant
        is_reached = divisor > 0
        odds = 2 * constant / np.where(is_reached, divisor, 1)
        return np.where(is_reached, odds / (1 + odds), 1.0)

    def quantile(self, probability: float) -> float:
        """Compute the value that kappa exceeds with probability 1 - `probability`."""
        from scipy.optimize import toms748  # noqa: PLC0415 - as above

        return float(
            toms748(lambda value: self.probability_of_at_most(value) - probability, -1, 1, xtol=1e-5)
        )
