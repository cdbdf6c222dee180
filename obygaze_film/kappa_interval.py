"""Say how far Cohen's kappa of two judges is known: the interval of its posterior, by integration."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_film.agreement import kappa

Floats = NDArray[np.float64]

TAIL: Final = 0.025
"""Posterior probability that lies below the interval, and above it."""

N_NODES: Final = 24
"""Number of values of x, and of y, over which the posterior is integrated (`_Posterior`): the ends of the
interval are then right to about .001."""

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
    low = posterior.quantile(TAIL)
    high = posterior.quantile(1 - TAIL)
    # Both quantiles may lie on one side of the kappa. The interval is widened to contain it.
    return KappaInterval(value, min(low, value), max(high, value))


class _Posterior:
    """The posterior of kappa, given how many cells have each of the four pairs of answers.

    The shares of the four pairs are written as three numbers. With a Dirichlet prior of the shares, these are
    independent, and each has a Beta distribution:

    - u: the share of cells that the two annotators answer differently;
    - x: the share of "both positive" among the cells that they answer alike;
    - y: the share of "only the first positive" among the cells that they answer differently.

    Two answers that are drawn at random, one of each annotator, differ with the chance

        e = u + 2 x (1 - x) (1 - u)² - 2 y (1 - y) u²

    and kappa is 1 - u / e, which falls as u grows. So for given x and y, kappa is at most k if u is at least
    a limit that depends on k (`_least_u`). The probability that kappa is at most k is the mean, over the
    distributions of x and y, of the probability that u reaches this limit.

    Attributes
    ----------
    x_term : ndarray, shape [N, 1]
        2 x (1 - x) for N values of x.
    y_term : ndarray, shape [N]
        2 y (1 - y) for N values of y.
    weights : ndarray, shape [N, N]
        Weight of each pair of values of x and y in a mean; their sum is 1.
    u_first, u_second : float
        Parameters of the Beta distribution of u.
    """

    def __init__(self, both: int, neither: int, only_first: int, only_second: int) -> None:
        """Say what is believed of two annotators' answers to all cells, given their answers to some.

        Three unknown shares describe these answers: u is the share of cells that the two answer differently;
        x is the share of "both positive" among cells that they answer alike; y is the share of "only the
        first positive" among cells that they answer differently. Each has a Beta distribution. Those of x and
        y are replaced by N weighted values each, so that a mean over x and y is a sum over pairs of values.

        Parameters
        ----------
        both, neither, only_first, only_second : int
            Number of cells that both annotators, neither of them, or only one of them called positive.
        """
        from scipy.special import betaincinv  # noqa: PLC0415 - slow, and films are opened without it

        # Gauss-Legendre quadrature integrates over [-1, 1]. Its nodes are moved to probabilities in [0, 1],
        # and the quantiles at these probabilities are the values of x and of y.
        nodes, node_weights = np.polynomial.legendre.leggauss(N_NODES)
        probabilities = (nodes + 1) / 2
        x = betaincinv(both + PRIOR, neither + PRIOR, probabilities)[:, None]  # [N, 1]
        y = betaincinv(only_first + PRIOR, only_second + PRIOR, probabilities)  # [N]
        # Kappa depends on x and y by these two terms only (the formula of e, at the class).
        self.x_term: Floats = 2 * x * (1 - x)
        self.y_term: Floats = 2 * y * (1 - y)
        # The weights of the nodes add up to 2, the length of [-1, 1]; their products add up to 4, and are
        # divided by it: the weights of a mean add up to 1.
        self.weights: Floats = np.outer(node_weights, node_weights) / 4
        # The two parameters of u's Beta distribution are counts: of cells answered differently, and alike.
        # Each count is that of two of the four pairs of answers, and has the prior of both.
        self.u_first = only_first + only_second + 2 * PRIOR
        self.u_second = both + neither + 2 * PRIOR

    def probability_of_at_most(self, value: float) -> float:
        """Compute the probability that kappa is at most a value in [-1, 1].

        Kappa falls as u grows, the share of cells that the annotators answer differently. So for each pair of
        values of x and y (how they answer alike, and how differently: see the class), kappa is at most the
        value if u is at least a limit. The result is the mean over the pairs.
        """
        from scipy.special import betaincc  # noqa: PLC0415 - slow, and films are opened without it

        least_u = self._least_u(value)  # the limit for each pair, [N, N]
        # `betaincc` is the probability that u, which has a Beta distribution, is above a limit.
        probabilities = betaincc(self.u_first, self.u_second, least_u)
        return float((self.weights * probabilities).sum())

    def _least_u(self, k: float) -> Floats:
        """Compute how often two annotators must at least differ for kappa to be at most k; 1 if it never is.

        The result [N, N] is the least share u of cells that they answer differently, for each value of x and
        y (`_Posterior`, which also says what e is). "Kappa is at most k" is 1 - u / e <= k, which is

            u >= (1 - k) e,    with    e = u + 2 x (1 - x) (1 - u)² - 2 y (1 - y) u²

        With the odds o = u / (1 - u), and both sides divided by (1 - u)², it becomes a o² + b o - c >= 0,
        where u / (1 - u)² is o (1 + o), and

            a = k + (1 - k) 2 y (1 - y),    b = k,    c = (1 - k) 2 x (1 - x)

        The limit is the positive root of the left side, o = 2 c / (b + sqrt(b² + 4 a c)). In this form no two
        numbers that are nearly equal are subtracted where a is near 0.
        """
        a = k + (1 - k) * self.y_term
        b = k
        c = (1 - k) * self.x_term
        root_of_discriminant = np.sqrt(np.maximum(b**2 + 4 * a * c, 0))
        divisor = b + root_of_discriminant
        has_positive_root = divisor > 0
        odds = 2 * c / np.where(has_positive_root, divisor, 1)  # 1 only avoids a division by 0
        return np.where(has_positive_root, odds / (1 + odds), 1.0)

    def quantile(self, probability: float) -> float:
        """Compute the value below which kappa lies with a probability, such as 0.025."""
        from scipy.optimize import toms748  # noqa: PLC0415 - as above

        def excess(value: float) -> float:
            """Return the probability that kappa is at most a value, less the probability that is sought."""
            return self.probability_of_at_most(value) - probability

        return float(toms748(excess, -1, 1, xtol=1e-5))  # finer than the quadrature (`N_NODES`)
