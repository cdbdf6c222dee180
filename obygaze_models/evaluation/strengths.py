"""Draw strengths of items, and reliabilities of workers, from their posterior given judgements of pairs.

Bradley and Terry (Biometrika 1952): an item with strength s is chosen over one with t with the probability
1 / (1 + exp(t - s)). A worker judges so in a share r of comparisons, the reliability (Chen et al., WSDM
2013), and at random in the others.

Strengths may be spread evenly, lie in clusters, have a floor or a few far items: no one shape is right. Their
prior is a mixture of Student's t with two degrees of freedom, whose number of parts, centres and widths are
drawn with them (Richardson and Green 1997, JRSS B 59(4), with Dirichlet weights below 1 in place of a prior
on the number of parts: Rousseau and Mengersen 2011, JRSS B 73(5)). A normal prior pulls far items in: its
95 % intervals hold .85 of strengths with heavy tails.

All is drawn by Gibbs sampling with Polya-Gamma variables (Polson, Scott and Windle, JASA 2013): the mode and
its curvature make intervals too short, since strengths of items that nearly always win or lose are skewed.
Strengths are drawn together with the centres of their parts, and are stretched together: one by one they
would stick to each other.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SHARES: Final = np.linspace(0.0, 1.0, 11)
"""Reliabilities that workers may have; how common each is among workers is drawn with them."""

N_PARTS: Final = 10
"""Parts that the mixture may have; the weights' prior leaves those that are not needed empty."""

FREEDOM: Final = 2.0
"""Degrees of freedom of Student's t of a part."""

VARIANCE_SHAPE: Final = 3.0
RATE_SHAPE, RATE_RATE = 0.5, 0.5
"""A part's variance is inverse gamma of `VARIANCE_SHAPE` and a rate, in logits squared, that all parts share
and that is gamma of these."""

CENTRE_SHAPE, CENTRE_RATE = 2.0, 6.0
"""Centres are normal; their variance is inverse gamma of these: some 2.5 logits apart from 0."""

LEAST_VARIANCE: Final = 1e-3
"""Of a part, in logits squared; below it matrices could not be solved."""

STRETCHES: Final = 2
"""How often a draw tries to stretch all strengths."""
STRETCH: Final = 0.15
"""Deviation of the logarithm of a stretch."""

TERMS: Final = 24
"""Exponentials of a Polya-Gamma variable that are drawn; the others are replaced by their mean."""

TOLERANCE: Final = 1e-9
"""Residual, as a share of what is solved for, with which strengths are drawn."""

LEAST: Final = 1e-300
"""In place of probabilities of 0, whose logarithm is not finite."""


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Judgements of pairs.

    Attributes
    ----------
    chosen, other : ndarray of int, shape [C]
        Numbers of the two items.
    worker : ndarray of int, shape [C]
    masters : ndarray of bool, shape [W]
        Workers whose reliability is known to be 1.
    n_items : int
        N.
    """

    chosen: Ints
    other: Ints
    worker: Ints
    masters: Bools
    n_items: int

    def apart(self, strength: Floats) -> Floats:
        """Compute how far the chosen item lies above the other [C]."""
        return np.asarray(strength[self.chosen] - strength[self.other])

    def log_likelihood(self, strength: Floats, reliability: Floats) -> float:
        """Compute the log likelihood of the judgements."""
        meant = reliability[self.worker]
        p = meant * expit(self.apart(strength)) + (1 - meant) / 2
        return float(np.log(np.maximum(p, LEAST)).sum())


@dataclass(frozen=True, eq=False)
class Mixture:
    """The prior of strengths: parts, and which of them items are of.

    Attributes
    ----------
    part : ndarray of int, shape [N]
    nearness : ndarray, shape [N]
        Precision of each item in its part, whose mean is 1: small ones make the tails of Student's t.
    weights, centres, variances : ndarray, shape [N_PARTS]
    centre_variance, rate : float
        Of the parts' centres, and of the inverse gamma of their variances.
    """

    part: Ints
    nearness: Floats
    weights: Floats
    centres: Floats
    variances: Floats
    centre_variance: float
    rate: float

    @property
    def precision(self) -> Floats:
        """Precision of each item around the centre of its part [N]."""
        return np.asarray(self.nearness / self.variances[self.part])

    def stretched(self, times: float) -> "Mixture":
        """Stretch it with the strengths."""
        squared = times * times
        return replace(
            self,
            centres=self.centres * times,
            variances=self.variances * squared,
            centre_variance=self.centre_variance * squared,
            rate=self.rate * squared,
        )

    def log_scale_prior(self) -> float:
        """Compute the log density of what sets the scale, on the scale of its logarithm."""
        of_rate = RATE_SHAPE * np.log(self.rate) - RATE_RATE * self.rate
        of_centres = -CENTRE_SHAPE * np.log(self.centre_variance) - CENTRE_RATE / self.centre_variance
        return float(of_rate + of_centres)


class Reliabilities(NamedTuple):
    """Reliabilities of workers [W], and how common each of `SHARES` is among workers."""

    of_worker: Floats
    common: Floats


class Strengths(NamedTuple):
    """Strengths of items [N] and the mixture that they are of."""

    of_item: Floats
    mixture: Mixture


class Draws(NamedTuple):
    """Draws of the posterior: strengths, of which only differences are known, and reliabilities.

    Attributes
    ----------
    strengths : ndarray, shape [draws, N]
    reliabilities : ndarray, shape [draws, W]
    """

    strengths: Floats
    reliabilities: Floats


def draw_posterior(comparisons: Comparisons, draws: int, rng: np.random.Generator) -> Draws:
    """Draw strengths and reliabilities, after a fifth as many draws to begin with."""
    strengths = _first_strengths(comparisons.n_items)
    reliabilities = _first_reliabilities(len(comparisons.masters))
    kept_strengths = np.empty((draws, comparisons.n_items))
    kept_reliabilities = np.empty((draws, len(comparisons.masters)))
    for number in range(-n_first_draws(draws), draws):
        strengths = _draw_strengths(comparisons, strengths, reliabilities, rng)
        for _ in range(STRETCHES):
            strengths = _stretch(comparisons, strengths, reliabilities, rng)
        reliabilities = _draw_reliabilities(comparisons, strengths, reliabilities, rng)
        strengths = strengths._replace(mixture=_draw_mixture(strengths, rng))
        if number >= 0:
            kept_strengths[number] = strengths.of_item
            kept_reliabilities[number] = reliabilities.of_worker
    return Draws(kept_strengths, kept_reliabilities)


def n_first_draws(draws: int) -> int:
    """Count the draws to begin with, which are not kept."""
    return max(draws // 5, 1)


def _first_strengths(n_items: int) -> Strengths:
    mixture = Mixture(
        part=np.zeros(n_items, np.int64),
        nearness=np.ones(n_items),
        weights=np.full(N_PARTS, 1 / N_PARTS),
        centres=np.zeros(N_PARTS),
        variances=np.ones(N_PARTS),
        centre_variance=CENTRE_RATE / CENTRE_SHAPE,
        rate=RATE_SHAPE / RATE_RATE,
    )
    return Strengths(np.zeros(n_items), mixture)


def _first_reliabilities(n_workers: int) -> Reliabilities:
    return Reliabilities(np.full(n_workers, 0.9), np.full(len(SHARES), 1 / len(SHARES)))


def _draw_strengths(
    comparisons: Comparisons, before: Strengths, reliabilities: Reliabilities, rng: np.random.Generator
) -> Strengths:
    """Draw strengths and the centres of their parts, which are normal together given all else."""
    n, mixture = comparisons.n_items, before.mixture
    chosen, other = comparisons.chosen, comparisons.other
    apart = comparisons.apart(before.of_item)
    reliability = reliabilities.of_worker[comparisons.worker]
    meant = reliability * expit(apart)
    is_meant = rng.random(len(apart)) * (meant + (1 - reliability) / 2) < meant
    weights = np.where(is_meant, polya_gamma(apart, rng), 0.0)
    centred = np.arange(n, n + N_PARTS)
    links = Links(
        np.concatenate([chosen, np.arange(n)]),
        np.concatenate([other, n + mixture.part]),
        np.concatenate([weights, mixture.precision]),
        n + N_PARTS,
    )
    towards = np.zeros(n + N_PARTS)
    towards[:n] = (np.bincount(chosen, is_meant, n) - np.bincount(other, is_meant, n)) / 2
    held = np.zeros(n + N_PARTS)
    held[centred] = 1 / mixture.centre_variance
    start = np.concatenate([before.of_item, mixture.centres])
    drawn = links.draw(held, towards, start, rng)
    return Strengths(drawn[:n], replace(mixture, centres=drawn[n:]))


class Links(NamedTuple):
    """What holds numbers near each other: a comparison two items, a part's width an item and the centre.

    Attributes
    ----------
    first, second : ndarray of int, shape [L]
    weights : ndarray, shape [L]
        Precision of the difference of the two, at least 0.
    n : int
        Numbers that may be linked.
    """

    first: Ints
    second: Ints
    weights: Floats
    n: int

    def draw(self, held: Floats, towards: Floats, start: Floats, rng: np.random.Generator) -> Floats:
        """Draw numbers [n] that are normal together, of precision Q and mean Q^-1 towards.

        Q is the sum over links of weight (e_i - e_j)(e_i - e_j)', and `held` in the diagonal. Noise of the
        covariance Q is the sum of one normal variable a link, and one a number; Q^-1 (towards + noise) is
        then a draw (Papandreou and Yuille, NeurIPS 2010), for which no factor of Q is needed: Q has a dozen
        numbers a row, its factor nearly all. Conjugate gradients solve for it, from `start` on.
        """
        precision, diagonal = self._precision(held)
        by_link = np.sqrt(self.weights) * rng.normal(size=len(self.weights))
        noise = np.sqrt(held) * rng.normal(size=self.n)
        noise = noise + np.bincount(self.first, by_link, self.n) - np.bincount(self.second, by_link, self.n)
        scaled = LinearOperator(precision.shape, matvec=lambda values: values / diagonal)
        drawn, n_missed = cg(precision, towards + noise, x0=start, rtol=TOLERANCE, M=scaled)
        if n_missed:  # rounding keeps it from the tolerance
            drawn = np.linalg.solve(precision.toarray(), towards + noise)
        return np.asarray(drawn)

    def _precision(self, held: Floats) -> tuple[csr_array, Floats]:
        """Make Q, and its diagonal [n]."""
        diagonal = held + np.bincount(self.first, self.weights, self.n)
        diagonal += np.bincount(self.second, self.weights, self.n)
        every = np.arange(self.n)
        rows = np.concatenate([self.first, self.second, every])
        columns = np.concatenate([self.second, self.first, every])
        values = np.concatenate([-self.weights, -self.weights, diagonal])
        return csr_array((values, (rows, columns)), shape=(self.n, self.n)), diagonal


def _stretch(
    comparisons: Comparisons, before: Strengths, reliabilities: Reliabilities, rng: np.random.Generator
) -> Strengths:
    """Stretch all strengths and their mixture by one factor, by a step of Metropolis and Hastings.

    The density of strengths and parts given the two scales is that of a family of scales, so that it cancels
    with the volume of the step; judgements and the scales' own prior remain.
    """
    times = float(np.exp(STRETCH * rng.normal()))
    after = Strengths(before.of_item * times, before.mixture.stretched(times))
    likelihoods = [
        comparisons.log_likelihood(strengths.of_item, reliabilities.of_worker)
        for strengths in (before, after)
    ]
    gain = likelihoods[1] - likelihoods[0]
    gain += after.mixture.log_scale_prior() - before.mixture.log_scale_prior()
    return after if np.log(rng.random()) < gain else before


def _draw_reliabilities(
    comparisons: Comparisons, strengths: Strengths, before: Reliabilities, rng: np.random.Generator
) -> Reliabilities:
    """Draw the reliability of each worker, and how common each is among those who are no masters."""
    masters = comparisons.masters
    right = expit(comparisons.apart(strengths.of_item))
    fit = np.empty((len(SHARES), len(masters)))
    for row, share in enumerate(SHARES):
        p = np.maximum(share * right + (1 - share) / 2, LEAST)
        fit[row] = np.log(before.common[row]) + np.bincount(comparisons.worker, np.log(p), len(masters))
    fit[:-1, masters] = -np.inf
    drawn = (fit + rng.gumbel(size=fit.shape)).argmax(axis=0)
    counts = np.bincount(drawn[~masters], minlength=len(SHARES))
    common = np.maximum(LEAST, rng.dirichlet(1 / len(SHARES) + counts))
    return Reliabilities(SHARES[drawn], common)


def _draw_mixture(strengths: Strengths, rng: np.random.Generator) -> Mixture:
    """Draw which part each item is of, and the parts' weights, variances and scales."""
    strength, before = strengths.of_item, strengths.mixture
    squared = (strength[:, None] - before.centres) ** 2 / before.variances
    fit = np.log(before.weights) - np.log(before.variances) / 2
    fit = fit - (FREEDOM + 1) / 2 * np.log1p(squared / FREEDOM)
    part = (fit + rng.gumbel(size=fit.shape)).argmax(axis=1)
    own = squared[np.arange(len(part)), part]
    nearness = rng.gamma((FREEDOM + 1) / 2, size=len(part)) / ((FREEDOM + own) / 2)
    counts = np.bincount(part, minlength=N_PARTS)
    weights = np.maximum(LEAST, rng.dirichlet(1 / N_PARTS + counts))
    squares = np.bincount(part, nearness * (strength - before.centres[part]) ** 2, N_PARTS)
    variances = (before.rate + squares / 2) / rng.gamma(VARIANCE_SHAPE + counts / 2)
    variances = np.maximum(variances, LEAST_VARIANCE)
    rate = rng.gamma(RATE_SHAPE + N_PARTS * VARIANCE_SHAPE) / (RATE_RATE + (1 / variances).sum())
    of_centres = CENTRE_RATE + before.centres @ before.centres / 2
    centre_variance = of_centres / rng.gamma(CENTRE_SHAPE + N_PARTS / 2)
    return Mixture(part, nearness, weights, before.centres, variances, float(centre_variance), float(rate))


def polya_gamma(apart: Floats, rng: np.random.Generator) -> Floats:
    """Draw PG(1, c) variables [C]: the first of their sum of exponentials, and the mean of the others."""
    terms = (np.arange(TERMS)[:, None] + 0.5) ** 2 + (apart / (2 * np.pi)) ** 2
    drawn: Floats = (rng.exponential(size=terms.shape) / terms).sum(axis=0) / (2 * np.pi**2)
    c = np.maximum(np.abs(apart), 1e-6)
    drawn += np.tanh(c / 2) / (2 * c) - (1 / terms).sum(axis=0) / (2 * np.pi**2)
    return drawn
