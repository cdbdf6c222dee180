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
from typing import Any, Final, NamedTuple

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
        p_not_random = reliability[self.worker]
        # A random judgement chooses either item with probability 1/2.
        p = p_not_random * expit(self.margin(strength)) + (1 - p_not_random) / 2
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
        """Precision of each item's strength around the centre of its component, [N].

        It is the precision of the component (1 over its variance) times the item's own factor.
        """
        return np.asarray(self.precision_factor / self.variances[self.component])

    def scaled(self, factor: float) -> "Mixture":
        """Return the mixture of strengths that are all multiplied by `factor`.

        Centres are multiplied by the factor too. Variances, and the scales from which variances and centres
        are drawn, are multiplied by its square; components and weights stay.
        """
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

        These two set the scale of all strengths. `rate` has a gamma prior of shape a = `RATE_SHAPE` and rate
        b = `RATE_RATE`: the density of log x is x^a exp(-b x), up to a constant. `centre_variance` has an
        inverse gamma prior of shape a = `CENTRE_SHAPE` and rate b = `CENTRE_RATE`: the density of log x is
        x^-a exp(-b / x).
        """
        log_prior_of_rate = RATE_SHAPE * np.log(self.rate) - RATE_RATE * self.rate
        log_prior_of_variance = (
            -CENTRE_SHAPE * np.log(self.centre_variance) - CENTRE_RATE / self.centre_variance
        )
        return float(log_prior_of_rate + log_prior_of_variance)


class Reliabilities(NamedTuple):
    """Reliabilities of workers, and how common each reliability is.

    Attributes
    ----------
    of_worker : ndarray, shape [W]
    share_of_each : ndarray, shape [len(RELIABILITIES)]
        Share of workers who have each of `RELIABILITIES`, in the population that workers come from.
    """

    of_worker: Floats
    share_of_each: Floats


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
    draw = _Draw(_initial_strengths(comparisons.n_items), _initial_reliabilities(len(comparisons.masters)))
    for _ in range(n_burn_in_draws(draws)):
        draw = _next_draw(comparisons, draw, rng)
    strengths = np.empty((draws, comparisons.n_items))
    reliabilities = np.empty((draws, len(comparisons.masters)))
    for number in range(draws):
        draw = _next_draw(comparisons, draw, rng)
        strengths[number] = draw.strengths.of_item
        reliabilities[number] = draw.reliabilities.of_worker
    return Draws(strengths, reliabilities)


class _Draw(NamedTuple):
    """One draw of everything that is unknown."""

    strengths: Strengths
    reliabilities: Reliabilities


def _next_draw(comparisons: Comparisons, before: _Draw, rng: np.random.Generator) -> _Draw:
    """Draw everything once more, one part after the other, each given the latest draw of the others."""
    strengths = _draw_strengths(comparisons, before.strengths, before.reliabilities, rng)
    for _ in range(N_SCALE_PROPOSALS):
        strengths = _propose_scale(comparisons, strengths, before.reliabilities, rng)
    reliabilities = _draw_reliabilities(comparisons, strengths, before.reliabilities, rng)
    mixture = _draw_mixture(strengths, rng)
    return _Draw(strengths._replace(mixture=mixture), reliabilities)


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
        centre_variance=CENTRE_RATE / CENTRE_SHAPE,  # 1 over the prior mean of the precision
        rate=RATE_SHAPE / RATE_RATE,  # the prior mean
    )
    return Strengths(np.zeros(n_items), mixture)


def _initial_reliabilities(n_workers: int) -> Reliabilities:
    """Make the sampler's initial reliabilities: the same for all workers, and equal shares of all values."""
    n_values = len(RELIABILITIES)
    return Reliabilities(
        of_worker=np.full(n_workers, FIRST_RELIABILITY), share_of_each=np.full(n_values, 1 / n_values)
    )


def _draw_strengths(
    comparisons: Comparisons, before: Strengths, reliabilities: Reliabilities, rng: np.random.Generator
) -> Strengths:
    """Draw strengths together with the centres of their components, given everything else.

    The N strengths and `N_COMPONENTS` centres are jointly normal, and are drawn as one vector, the centres
    last. Three things hold them: judgements that were not random link the strengths of two items, every
    strength is linked to the centre of its component, and every centre is held at 0 by its prior.

    Parameters
    ----------
    comparisons : Comparisons
    before : Strengths
        The previous draw.
    reliabilities : Reliabilities
    rng : Generator
    """
    n_items = comparisons.n_items
    mixture = before.mixture
    margin = comparisons.margin(before.of_item)
    is_not_random = _draw_not_random(margin, reliabilities.of_worker[comparisons.worker], rng)
    # Given its Polya-Gamma variable w, the likelihood of a judgement is a normal density of the margin, with
    # precision w and mean 1 / (2 w). A random judgement tells nothing: its precision is 0.
    judgement_precision = np.where(is_not_random, polya_gamma(margin, rng), 0.0)
    links = _link_strengths(comparisons, mixture, judgement_precision)
    # Precision times mean of a judgement is 1/2, in favour of the chosen item and against the other.
    n_won = np.bincount(comparisons.chosen, is_not_random, n_items)
    n_lost = np.bincount(comparisons.other, is_not_random, n_items)
    linear_term = np.concatenate([(n_won - n_lost) / 2, np.zeros(N_COMPONENTS)])
    # Only centres have a prior of their own; strengths have theirs by the links to the centres.
    prior_precision = np.concatenate([np.zeros(n_items), np.full(N_COMPONENTS, 1 / mixture.centre_variance)])
    start = np.concatenate([before.of_item, mixture.centres])
    drawn = links.draw(prior_precision, linear_term, start, rng)
    return Strengths(drawn[:n_items], replace(mixture, centres=drawn[n_items:]))


def _link_strengths(comparisons: Comparisons, mixture: Mixture, judgement_precision: Floats) -> "Links":
    """Link the two items of every judgement, and every item with the centre of its component.

    `judgement_precision` [C] is that of the margin, by each judgement. The centre of component k has the
    number N + k.
    """
    n_items = comparisons.n_items
    every_item = np.arange(n_items)
    centre_of_item = n_items + mixture.component
    return Links(
        first=np.concatenate([comparisons.chosen, every_item]),
        second=np.concatenate([comparisons.other, centre_of_item]),
        weights=np.concatenate([judgement_precision, mixture.precision]),
        n=n_items + N_COMPONENTS,
    )


def _draw_not_random(margin: Floats, reliability: Floats, rng: np.random.Generator) -> Bools:
    """Draw which judgements were not random: a mask [C].

    By Bayes' rule, the probability is that of a choice that was not random, divided by that of the choice.

    Parameters
    ----------
    margin : ndarray, shape [C]
        Strength of the chosen item less that of the other.
    reliability : ndarray, shape [C]
        Reliability of the worker who judged.
    rng : Generator
    """
    p_chosen_not_random = reliability * expit(margin)
    p_chosen_random = (1 - reliability) / 2
    p_chosen = p_chosen_not_random + p_chosen_random
    return np.asarray(rng.random(len(margin)) * p_chosen < p_chosen_not_random)


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

        Q is the graph Laplacian of the links, plus `prior_precision` in the diagonal; b is `linear_term`. If
        noise has the covariance Q, then inv(Q) (b + noise) is such a draw (Papandreou and Yuille, NeurIPS
        2010). The system is solved by conjugate gradients: Q is sparse, while its factors are not.

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
        right_side = linear_term + self._noise(prior_precision, rng)
        # Dividing by the diagonal approximates inv(Q), which lets the conjugate gradients converge faster.
        preconditioner = LinearOperator(precision.shape, matvec=lambda values: values / diagonal)
        drawn, failure = cg(precision, right_side, x0=start, rtol=TOLERANCE, M=preconditioner)
        if failure:  # rounding can keep the residual above the tolerance
            drawn = np.linalg.solve(precision.toarray(), right_side)
        return np.asarray(drawn)

    def _noise(self, prior_precision: Floats, rng: np.random.Generator) -> Floats:
        """Draw n normal numbers with the covariance Q of `draw`.

        Each link adds one normal variable to its first number and subtracts it from its second; each number
        has one more for its prior.
        """
        link_noise = np.sqrt(self.weights) * rng.normal(size=len(self.weights))
        prior_noise = np.sqrt(prior_precision) * rng.normal(size=self.n)
        added = np.bincount(self.first, link_noise, self.n)
        subtracted = np.bincount(self.second, link_noise, self.n)
        return np.asarray(prior_noise + added - subtracted)

    def _precision(self, prior_precision: Floats) -> tuple[csr_array, Floats]:
        """Make the precision matrix Q [n, n] of `draw`, and its diagonal [n].

        Q is the graph Laplacian of the links, plus the prior precision in the diagonal: a link of weight w
        between i and j adds w to Q_ii and Q_jj, and -w to Q_ij and Q_ji.
        """
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

    If strengths and centres are multiplied by f, and variances by f^2, then their joint density given the
    mixture's two scales is divided by f for each strength and each centre, and by f^2 for each variance. The
    Jacobian of the step multiplies it by the same. The acceptance probability therefore depends only on the
    likelihood of the judgements and on the prior of the two scales (`Mixture.log_scale_prior`).
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
    """Draw the reliability of each worker, and the share of workers who have each reliability.

    Masters, whose reliability is known to be 1, are not counted for the shares.
    """
    masters = comparisons.masters
    p_chosen = expit(comparisons.margin(strengths.of_item))  # if the judgement is not random
    # Log density of each reliability, for each worker.
    log_density = np.empty((len(RELIABILITIES), len(masters)))
    for index, reliability in enumerate(RELIABILITIES):
        p = np.maximum(reliability * p_chosen + (1 - reliability) / 2, LEAST_PROBABILITY)
        log_likelihood = np.bincount(comparisons.worker, np.log(p), len(masters))
        log_density[index] = np.log(before.share_of_each[index]) + log_likelihood
    # A master's reliability is the last of RELIABILITIES, 1.
    log_density[:-1, masters] = -np.inf
    drawn = _draw_indices(log_density, axis=0, rng=rng)
    counts = np.bincount(drawn[~masters], minlength=len(RELIABILITIES))
    return Reliabilities(RELIABILITIES[drawn], _draw_shares(counts, rng))


def _draw_indices(log_density: Floats, axis: int, rng: np.random.Generator) -> Ints:
    """Draw indices along an axis, with probabilities in proportion to densities.

    The place of the largest log density with Gumbel noise is such a draw.
    """
    return np.asarray((log_density + rng.gumbel(size=log_density.shape)).argmax(axis=axis))


def _draw_shares(counts: Ints, rng: np.random.Generator) -> Floats:
    """Draw the shares of n groups, given how many members of each were counted.

    Their prior is Dirichlet's with 1 / n for each group, so that groups may be nearly empty.
    """
    return np.maximum(LEAST_PROBABILITY, rng.dirichlet(1 / len(counts) + counts))


def _draw_mixture(strengths: Strengths, rng: np.random.Generator) -> Mixture:
    """Draw the component that each item belongs to, and the components' weights, variances and scales.

    The centres stay: they are drawn together with the strengths.
    """
    strength = strengths.of_item
    before = strengths.mixture
    component, precision_factor = _draw_components(strength, before, rng)
    counts = np.bincount(component, minlength=N_COMPONENTS)
    weights = _draw_shares(counts, rng)
    squares = np.bincount(
        component, precision_factor * (strength - before.centres[component]) ** 2, N_COMPONENTS
    )
    variances = _draw_variances(VARIANCE_SHAPE, before.rate, counts, squares, rng)
    variances = np.maximum(variances, LEAST_VARIANCE)
    # The variances' rate has a gamma prior; each variance adds its shape, and its inverse to the rate.
    rate = rng.gamma(RATE_SHAPE + N_COMPONENTS * VARIANCE_SHAPE) / (RATE_RATE + (1 / variances).sum())
    centre_variance = _draw_variances(
        CENTRE_SHAPE, CENTRE_RATE, N_COMPONENTS, before.centres @ before.centres, rng
    )
    return Mixture(
        component=component,
        precision_factor=precision_factor,
        weights=weights,
        centres=before.centres,
        variances=variances,
        centre_variance=float(centre_variance),
        rate=float(rate),
    )


def _draw_variances(shape: float, rate: float, n: Any, squares: Any, rng: np.random.Generator) -> Floats:
    """Draw variances of normal values, given the number `n` of values and the sum of their squares.

    The prior is the inverse gamma distribution of this shape and rate. So is the posterior, to whose shape
    and rate n / 2 and half of the sum are added. Such a variable is its rate over a gamma variable.
    """
    return np.asarray((rate + squares / 2) / rng.gamma(shape + n / 2))


def _draw_components(strength: Floats, before: Mixture, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Draw each item's component of the mixture [N], and its `Mixture.precision_factor` [N].

    Strengths of a component have Student's t of `DEGREES_OF_FREEDOM`. That is a normal distribution whose
    precision is multiplied by a gamma variable, of which shape and rate are half of the degrees of freedom.
    """
    n_items = len(strength)
    squared = (strength[:, None] - before.centres) ** 2 / before.variances  # [N, N_COMPONENTS]
    # Log density of weight times Student's t, up to a constant.
    log_density = np.log(before.weights) - np.log(before.variances) / 2
    log_density = log_density - (DEGREES_OF_FREEDOM + 1) / 2 * np.log1p(squared / DEGREES_OF_FREEDOM)
    component = _draw_indices(log_density, axis=1, rng=rng)
    squared_in_component = squared[np.arange(n_items), component]
    # Given the strength, the factor is again a gamma variable: one more value, and its square.
    shape = (DEGREES_OF_FREEDOM + 1) / 2
    rate = (DEGREES_OF_FREEDOM + squared_in_component) / 2
    precision_factor = rng.gamma(shape, size=n_items) / rate
    return component, precision_factor


def polya_gamma(margin: Floats, rng: np.random.Generator) -> Floats:
    """Draw Polya-Gamma variables PG(1, c) [C], where c is `margin`.

    Such a variable is the sum over k = 1, 2, ... of e_k / ((k - 1/2)^2 + (c / 2 pi)^2), divided by 2 pi^2,
    where the e_k are exponential variables of mean 1 (Polson, Scott and Windle 2013). The first `N_TERMS` are
    drawn, and the others replaced by their mean: that of the whole variable, tanh(c / 2) / (2 c), less that
    of the terms drawn.
    """
    k = np.arange(N_TERMS)[:, None] + 1
    divisors = (k - 0.5) ** 2 + (margin / (2 * np.pi)) ** 2  # [N_TERMS, C]
    exponentials = rng.exponential(size=divisors.shape)
    drawn: Floats = (exponentials / divisors).sum(axis=0) / (2 * np.pi**2)
    mean_of_drawn = (1 / divisors).sum(axis=0) / (2 * np.pi**2)
    c = np.maximum(np.abs(margin), 1e-6)  # at 0 the mean would be 0 / 0
    mean_of_all = np.tanh(c / 2) / (2 * c)
    drawn += mean_of_all - mean_of_drawn
    return drawn
