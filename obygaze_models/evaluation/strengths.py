"""Draw strengths of items, and reliabilities of workers, from their posterior given judgements of pairs.

Bradley and Terry (Biometrika 1952): an item with strength s is chosen over one with t with the probability
1 / (1 + exp(t - s)). A worker judges so in a share r of comparisons, the reliability (Chen et al., WSDM
2013), and at random in the others.

Strengths may be spread evenly, lie in clusters, have a floor or a few far items: no one shape is right. Their
prior is a mixture of Student's t with two degrees of freedom, whose number of components, centres and widths
are drawn with them (Richardson and Green 1997, JRSS B 59(4), with Dirichlet weights below 1 in place of a
prior on the number of components: Rousseau and Mengersen 2011, JRSS B 73(5)). A normal prior pulls far items
in: its 95 % intervals hold .85 of strengths with heavy tails.

All is drawn by Gibbs sampling with Polya-Gamma variables (Polson, Scott and Windle, JASA 2013): the mode and
its curvature make intervals too short, since strengths of items that nearly always win or lose are skewed.
Strengths are drawn together with the centres of their components, and are scaled together: one by one they
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

RELIABILITIES: Final = np.linspace(0.0, 1.0, 11)
"""The reliabilities that a worker may have. How common each is among workers is drawn too."""

N_COMPONENTS: Final = 10
"""Most components of the mixture; the weights' prior leaves those empty that are not needed."""

DEGREES_OF_FREEDOM: Final = 2.0
"""Degrees of freedom of Student's t of a component."""

VARIANCE_SHAPE: Final = 3.0
"""Shape of the inverse gamma prior of a component's variance, in logits squared; all components share the
rate."""

RATE_SHAPE, RATE_RATE = 0.5, 0.5
"""Shape and rate of the gamma prior of the rate that the components' variances share."""

CENTRE_SHAPE, CENTRE_RATE = 2.0, 6.0
"""Shape and rate of the inverse gamma prior of the variance of the components' centres.

The centres are normal around 0, with a deviation of some 2.5 logits."""

LEAST_VARIANCE: Final = 1e-3
"""Least variance of a component, in logits squared; below it matrices could not be solved."""

N_SCALE_PROPOSALS: Final = 2
"""How often each draw proposes to multiply all strengths by one factor."""
SCALE_PROPOSAL_SD: Final = 0.15
"""Standard deviation of the logarithm of that factor."""

N_TERMS: Final = 24
"""Number of terms of a Polya-Gamma variable's infinite sum that are drawn; the others are replaced by their
mean."""

TOLERANCE: Final = 1e-9
"""Relative residual at which the linear system of the strengths counts as solved."""

LEAST_PROBABILITY: Final = 1e-300
"""In place of probabilities of 0, whose logarithm is not finite."""

FIRST_RELIABILITY: Final = 0.9
"""Reliability of every worker before the first draw."""


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Judgements of pairs.

    Attributes
    ----------
    chosen, other : ndarray of int, shape [C]
        Index of the item that was chosen, and of the one that was not.
    worker : ndarray of int, shape [C]
        Index of the worker who judged.
    masters : ndarray of bool, shape [W]
        Marks the workers whose reliability is known to be 1.
    n_items : int
        Number of items, N.
    """

    chosen: Ints
    other: Ints
    worker: Ints
    masters: Bools
    n_items: int

    def margin(self, strength: Floats) -> Floats:
        """Compute the strength of the chosen item less that of the other, for each judgement [C]."""
        return np.asarray(strength[self.chosen] - strength[self.other])

    def log_likelihood(self, strength: Floats, reliability: Floats) -> float:
        """Compute the log likelihood of the judgements, given strengths [N] and reliabilities [W]."""
        r = reliability[self.worker]
        # A random judgement chooses either item with probability 1/2.
        p = r * expit(self.margin(strength)) + (1 - r) / 2
        return float(np.log(np.maximum(p, LEAST_PROBABILITY)).sum())


@dataclass(frozen=True, eq=False)
class Mixture:
    """The prior of strengths: its components, and the component that each item belongs to.

    Attributes
    ----------
    component : ndarray of int, shape [N]
        Index of each item's component.
    precision_factor : ndarray, shape [N]
        Factor by which each item's precision differs from that of its component; its mean is 1. These gamma
        variables turn the normal distribution of a component into Student's t: small ones make its tails.
    weights, centres, variances : ndarray, shape [N_COMPONENTS]
        Weight, centre and variance of each component.
    centre_variance : float
        Variance of the components' centres.
    rate : float
        Rate of the inverse gamma distribution of the components' variances.
    """

    component: Ints
    precision_factor: Floats
    weights: Floats
    centres: Floats
    variances: Floats
    centre_variance: float
    rate: float

    @property
    def precision(self) -> Floats:
        """Precision of each item around the centre of its component [N]."""
        return np.asarray(self.precision_factor / self.variances[self.component])

    def scaled(self, factor: float) -> "Mixture":
        """Return the mixture of strengths that are all multiplied by `factor`."""
        squared = factor * factor
        return replace(
            self,
            centres=self.centres * factor,
            variances=self.variances * squared,
            centre_variance=self.centre_variance * squared,
            rate=self.rate * squared,
        )

    def log_scale_prior(self) -> float:
        """Compute the log prior density of log `rate` and log `centre_variance`, up to a constant.

        These two set the scale of all strengths. The densities are those of the logarithms, to which a change
        of scale adds a constant: a gamma density x^(a - 1) exp(-b x) of x becomes x^a exp(-b x) of log x, and
        an inverse gamma density x^(-a - 1) exp(-b / x) becomes x^-a exp(-b / x).
        """
        log_gamma = RATE_SHAPE * np.log(self.rate) - RATE_RATE * self.rate
        log_inverse_gamma = -CENTRE_SHAPE * np.log(self.centre_variance) - CENTRE_RATE / self.centre_variance
        return float(log_gamma + log_inverse_gamma)


class Reliabilities(NamedTuple):
    """Reliabilities of workers, and how common each reliability is.

    Attributes
    ----------
    of_worker : ndarray, shape [W]
    common : ndarray, shape [len(RELIABILITIES)]
        Probability of each of `RELIABILITIES` among workers.
    """

    of_worker: Floats
    common: Floats


class Strengths(NamedTuple):
    """Strengths of items [N], and the mixture that is their prior."""

    of_item: Floats
    mixture: Mixture


class Draws(NamedTuple):
    """Draws of the posterior.

    Attributes
    ----------
    strengths : ndarray, shape [draws, N]
        Only their differences are known.
    reliabilities : ndarray, shape [draws, W]
    """

    strengths: Floats
    reliabilities: Floats


def draw_posterior(comparisons: Comparisons, draws: int, rng: np.random.Generator) -> Draws:
    """Draw strengths of items and reliabilities of workers from their posterior, by Gibbs sampling.

    Before the `draws` that are returned, a fifth as many are drawn and dropped (burn-in).
    """
    strengths = _initial_strengths(comparisons.n_items)
    reliabilities = _initial_reliabilities(len(comparisons.masters))
    kept_strengths = np.empty((draws, comparisons.n_items))
    kept_reliabilities = np.empty((draws, len(comparisons.masters)))
    for number in range(-n_burn_in_draws(draws), draws):
        strengths = _draw_strengths(comparisons, strengths, reliabilities, rng)
        for _ in range(N_SCALE_PROPOSALS):
            strengths = _propose_scale(comparisons, strengths, reliabilities, rng)
        reliabilities = _draw_reliabilities(comparisons, strengths, reliabilities, rng)
        strengths = strengths._replace(mixture=_draw_mixture(strengths, rng))
        if number >= 0:
            kept_strengths[number] = strengths.of_item
            kept_reliabilities[number] = reliabilities.of_worker
    return Draws(kept_strengths, kept_reliabilities)


def n_burn_in_draws(draws: int) -> int:
    """Count the draws of the burn-in, which are left out since they depend on the initial values."""
    return max(draws // 5, 1)


def _initial_strengths(n_items: int) -> Strengths:
    """Make the sampler's initial strengths: all are 0, and belong to the first of equal components."""
    mixture = Mixture(
        component=np.zeros(n_items, np.int64),
        precision_factor=np.ones(n_items),
        weights=np.full(N_COMPONENTS, 1 / N_COMPONENTS),
        centres=np.zeros(N_COMPONENTS),
        variances=np.ones(N_COMPONENTS),
        centre_variance=CENTRE_RATE / CENTRE_SHAPE,
        rate=RATE_SHAPE / RATE_RATE,
    )
    return Strengths(np.zeros(n_items), mixture)


def _initial_reliabilities(n_workers: int) -> Reliabilities:
    """Make the sampler's initial reliabilities: the same for all workers, and all values equally common."""
    common = np.full(len(RELIABILITIES), 1 / len(RELIABILITIES))
    return Reliabilities(np.full(n_workers, FIRST_RELIABILITY), common)


def _draw_strengths(
    comparisons: Comparisons, before: Strengths, reliabilities: Reliabilities, rng: np.random.Generator
) -> Strengths:
    """Draw strengths together with the centres of their components, given everything else.

    They are jointly normal: N strengths, then `N_COMPONENTS` centres. Every judgement that was not random
    links two strengths, and every item is linked to the centre of its component.

    Parameters
    ----------
    comparisons : Comparisons
    before : Strengths
        The previous draw.
    reliabilities : Reliabilities
    rng : Generator
    """
    n_items = comparisons.n_items
    n_numbers = n_items + N_COMPONENTS
    mixture = before.mixture
    chosen = comparisons.chosen
    other = comparisons.other
    margin = comparisons.margin(before.of_item)
    is_not_random = _draw_not_random(margin, reliabilities.of_worker[comparisons.worker], rng)
    # Given its Polya-Gamma variable w, the likelihood of a judgement is a normal density of the margin, with
    # precision w and mean 1 / (2 w). Random judgements have weight 0.
    comparison_weights = np.where(is_not_random, polya_gamma(margin, rng), 0.0)
    every_item = np.arange(n_items)
    links = Links(
        first=np.concatenate([chosen, every_item]),
        second=np.concatenate([other, n_items + mixture.component]),
        weights=np.concatenate([comparison_weights, mixture.precision]),
        n=n_numbers,
    )
    n_won = np.bincount(chosen, is_not_random, n_items)
    n_lost = np.bincount(other, is_not_random, n_items)
    linear_term = np.zeros(n_numbers)
    linear_term[:n_items] = (n_won - n_lost) / 2
    prior_precision = np.zeros(n_numbers)
    prior_precision[n_items:] = 1 / mixture.centre_variance
    start = np.concatenate([before.of_item, mixture.centres])
    drawn = links.draw(prior_precision, linear_term, start, rng)
    return Strengths(drawn[:n_items], replace(mixture, centres=drawn[n_items:]))


def _draw_not_random(margin: Floats, reliability: Floats, rng: np.random.Generator) -> Bools:
    """Draw which judgements were not random: a mask [C].

    Parameters
    ----------
    margin : ndarray, shape [C]
        Strength of the chosen item less that of the other.
    reliability : ndarray, shape [C]
        Reliability of the worker who judged.
    rng : Generator
    """
    p_not_random = reliability * expit(margin)
    p_random = (1 - reliability) / 2
    return np.asarray(rng.random(len(margin)) * (p_not_random + p_random) < p_not_random)


class Links(NamedTuple):
    """Links between two numbers whose difference is normal: two items, or an item and its component's centre.

    Attributes
    ----------
    first, second : ndarray of int, shape [L]
        Indices of the two numbers that each link connects.
    weights : ndarray, shape [L]
        Precision of the difference of the two, at least 0.
    n : int
        How many numbers there are.
    """

    first: Ints
    second: Ints
    weights: Floats
    n: int

    def draw(
        self, prior_precision: Floats, linear_term: Floats, start: Floats, rng: np.random.Generator
    ) -> Floats:
        """Draw n jointly normal numbers with precision matrix Q and mean inv(Q) b.

        Q is the sum over links of weight (e_i - e_j)(e_i - e_j)', plus `prior_precision` in the diagonal, and
        b is `linear_term`. If noise has the covariance Q, then inv(Q) (b + noise) is such a draw (Papandreou
        and Yuille, NeurIPS 2010); the noise is the sum of one normal variable for each link and one for each
        number. The system is solved by conjugate gradients: Q is sparse, while its factors are not.

        Parameters
        ----------
        prior_precision : ndarray, shape [n]
            Precision of each number around 0.
        linear_term : ndarray, shape [n]
            The vector b.
        start : ndarray, shape [n]
            Initial values of the conjugate gradients.
        rng : Generator
        """
        precision, diagonal = self._precision(prior_precision)
        link_noise = np.sqrt(self.weights) * rng.normal(size=len(self.weights))
        noise = np.sqrt(prior_precision) * rng.normal(size=self.n)
        noise = noise + np.bincount(self.first, link_noise, self.n)
        noise = noise - np.bincount(self.second, link_noise, self.n)
        preconditioner = LinearOperator(precision.shape, matvec=lambda values: values / diagonal)
        drawn, failure = cg(precision, linear_term + noise, x0=start, rtol=TOLERANCE, M=preconditioner)
        if failure:  # rounding can keep the residual above the tolerance
            drawn = np.linalg.solve(precision.toarray(), linear_term + noise)
        return np.asarray(drawn)

    def _precision(self, prior_precision: Floats) -> tuple[csr_array, Floats]:
        """Make the precision matrix Q [n, n] of `draw`, and its diagonal [n]."""
        diagonal = prior_precision + np.bincount(self.first, self.weights, self.n)
        diagonal += np.bincount(self.second, self.weights, self.n)
        indices = np.arange(self.n)
        rows = np.concatenate([self.first, self.second, indices])
        columns = np.concatenate([self.second, self.first, indices])
        values = np.concatenate([-self.weights, -self.weights, diagonal])
        return csr_array((values, (rows, columns)), shape=(self.n, self.n)), diagonal


def _propose_scale(
    comparisons: Comparisons, before: Strengths, reliabilities: Reliabilities, rng: np.random.Generator
) -> Strengths:
    """Propose to multiply all strengths and their mixture by one factor; accept by Metropolis-Hastings.

    The density of strengths and components, given the mixture's two scales, changes by a factor that the
    Jacobian of the step cancels. The acceptance probability therefore depends only on the likelihood of the
    judgements and on the prior of the two scales.
    """
    factor = float(np.exp(SCALE_PROPOSAL_SD * rng.normal()))
    after = Strengths(before.of_item * factor, before.mixture.scaled(factor))
    likelihood_before = comparisons.log_likelihood(before.of_item, reliabilities.of_worker)
    likelihood_after = comparisons.log_likelihood(after.of_item, reliabilities.of_worker)
    gain = likelihood_after - likelihood_before
    gain += after.mixture.log_scale_prior() - before.mixture.log_scale_prior()
    is_accepted = np.log(rng.random()) < gain
    return after if is_accepted else before


def _draw_reliabilities(
    comparisons: Comparisons, strengths: Strengths, before: Reliabilities, rng: np.random.Generator
) -> Reliabilities:
    """Draw the reliability of each worker, and how common each reliability is among workers.

    Masters, whose reliability is known to be 1, do not count for how common it is.
    """
    masters = comparisons.masters
    p_right = expit(comparisons.margin(strengths.of_item))
    log_density = np.empty((len(RELIABILITIES), len(masters)))
    for index, share in enumerate(RELIABILITIES):
        p = np.maximum(share * p_right + (1 - share) / 2, LEAST_PROBABILITY)
        log_likelihood = np.bincount(comparisons.worker, np.log(p), len(masters))
        log_density[index] = np.log(before.common[index]) + log_likelihood
    # A master's reliability is the last of RELIABILITIES, 1.
    log_density[:-1, masters] = -np.inf
    # The largest of log densities with Gumbel noise is a draw in proportion to the densities.
    drawn = (log_density + rng.gumbel(size=log_density.shape)).argmax(axis=0)
    counts = np.bincount(drawn[~masters], minlength=len(RELIABILITIES))
    common = np.maximum(LEAST_PROBABILITY, rng.dirichlet(1 / len(RELIABILITIES) + counts))
    return Reliabilities(RELIABILITIES[drawn], common)


def _draw_mixture(strengths: Strengths, rng: np.random.Generator) -> Mixture:
    """Draw the component that each item belongs to, and the components' weights, variances and scales."""
    strength = strengths.of_item
    before = strengths.mixture
    component, precision_factor = _draw_components(strength, before, rng)
    counts = np.bincount(component, minlength=N_COMPONENTS)
    weights = np.maximum(LEAST_PROBABILITY, rng.dirichlet(1 / N_COMPONENTS + counts))
    squares = np.bincount(
        component, precision_factor * (strength - before.centres[component]) ** 2, N_COMPONENTS
    )
    # An inverse gamma variable is its rate over a gamma variable.
    variances = (before.rate + squares / 2) / rng.gamma(VARIANCE_SHAPE + counts / 2)
    variances = np.maximum(variances, LEAST_VARIANCE)
    rate = rng.gamma(RATE_SHAPE + N_COMPONENTS * VARIANCE_SHAPE) / (RATE_RATE + (1 / variances).sum())
    centre_rate = CENTRE_RATE + before.centres @ before.centres / 2
    centre_variance = centre_rate / rng.gamma(CENTRE_SHAPE + N_COMPONENTS / 2)
    return Mixture(
        component=component,
        precision_factor=precision_factor,
        weights=weights,
        centres=before.centres,
        variances=variances,
        centre_variance=float(centre_variance),
        rate=float(rate),
    )


def _draw_components(strength: Floats, before: Mixture, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Draw each item's component of the mixture [N], and its `Mixture.precision_factor` [N]."""
    n_items = len(strength)
    squared = (strength[:, None] - before.centres) ** 2 / before.variances  # [N, N_COMPONENTS]
    # Log density of Student's t, up to a constant.
    log_density = np.log(before.weights) - np.log(before.variances) / 2
    log_density = log_density - (DEGREES_OF_FREEDOM + 1) / 2 * np.log1p(squared / DEGREES_OF_FREEDOM)
    # The largest of log densities with Gumbel noise is a draw in proportion to the densities.
    component = (log_density + rng.gumbel(size=log_density.shape)).argmax(axis=1)
    squared_in_component = squared[np.arange(n_items), component]
    # Given component and strength, the factor has a gamma distribution of this shape and rate.
    shape = (DEGREES_OF_FREEDOM + 1) / 2
    rate = (DEGREES_OF_FREEDOM + squared_in_component) / 2
    precision_factor = rng.gamma(shape, size=n_items) / rate
    return component, precision_factor


def polya_gamma(margin: Floats, rng: np.random.Generator) -> Floats:
    """Draw Polya-Gamma variables PG(1, c) [C], where c is `margin`.

    Such a variable is an infinite sum of exponential variables, divided by 2 pi^2. The first `N_TERMS` are
    drawn, and the others replaced by their mean: that of the whole sum, tanh(c / 2) / (2 c), less that of the
    terms drawn.
    """
    # The k-th term is an exponential variable over (k - 1/2)^2 + (c / 2 pi)^2.
    divisors = (np.arange(N_TERMS)[:, None] + 0.5) ** 2 + (margin / (2 * np.pi)) ** 2  # [N_TERMS, C]
    drawn: Floats = (rng.exponential(size=divisors.shape) / divisors).sum(axis=0) / (2 * np.pi**2)
    c = np.maximum(np.abs(margin), 1e-6)  # at 0 the mean would be 0 / 0
    drawn += np.tanh(c / 2) / (2 * c) - (1 / divisors).sum(axis=0) / (2 * np.pi**2)
    return drawn
