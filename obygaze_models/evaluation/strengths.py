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
would stick to each other. For the same reason each step proposes to reverse all of them.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit, logsumexp

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

MIN_VARIANCE: Final = 1e-3
"""Least variance of a component, in logits squared; below it matrices could not be solved."""

N_SCALE_PROPOSALS: Final = 2
"""How often each draw proposes to multiply all strengths by one factor."""
SCALE_PROPOSAL_SD: Final = 0.15
"""Standard deviation of the logarithm of that factor."""

MIN_LOG_RATIO: Final = -30.0
"""Proposals whose logarithm of the acceptance probability is lower are not accepted, without a draw."""

N_TERMS: Final = 24
"""Number of terms of a Polya-Gamma variable's infinite sum that are drawn; the others are replaced by their
mean."""

TOLERANCE: Final = 1e-9
"""Relative residual at which the linear system of the strengths counts as solved."""

MIN_PROBABILITY: Final = 1e-300
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
    is_master : ndarray of bool, shape [W]
        Marks the workers whose reliability is known to be 1.
    n_items : int
        Number of items, N.
    """

    chosen: Ints
    other: Ints
    worker: Ints
    is_master: Bools
    n_items: int

    def margin(self, strength: Floats) -> Floats:
        """Compute the strength of the chosen item less that of the other, for each judgement [C]."""
        return np.asarray(strength[self.chosen] - strength[self.other])

    def log_likelihood(self, strength: Floats, reliability: Floats) -> float:
        """Compute the log likelihood of the judgements, given strengths [N] and reliabilities [W].

        It is the sum over judgements of the log probability of the choice, for a worker who judges at random
        with the probability 1 - reliability.
        """
        p_not_random = reliability[self.worker]
        p_chosen = _probability_of_choice(expit(self.margin(strength)), p_not_random)
        return float(np.log(p_chosen).sum())


def _probability_of_choice(p_if_not_random: Floats, reliability: float | Floats) -> Floats:
    """Compute the probability [C] of each choice of an item by a worker who may judge at random.

    A judgement is not random with the probability `reliability`. A random one chooses either item with
    probability 1/2.

    Parameters
    ----------
    p_if_not_random : ndarray, shape [C]
        Probability of each choice if the judgement is not random.
    reliability : float or ndarray, shape [C]
        Reliability of the worker who judged.
    """
    p = reliability * p_if_not_random + (1 - reliability) / 2
    # A probability of 0 would have no finite logarithm.
    return np.asarray(np.maximum(p, MIN_PROBABILITY))


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
        """Return the prior that suits strengths that are all multiplied by `factor`.

        The centres of its components are strengths, and are multiplied by the factor. Variances are squared
        strengths, and are multiplied by its square. So is `rate`: the variances come from a distribution that
        becomes k times as wide if its rate is k times as large. Which items belong to which component stays,
        as do the components' weights.
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

        These two set the scale of all strengths. The density of log x is x times the density of x. With shape
        a and rate b, up to a constant:

        - a gamma variable x has the density x^(a - 1) exp(-b x), so that log x has x^a exp(-b x);
        - an inverse gamma variable x has x^(-a - 1) exp(-b / x), so that log x has x^-a exp(-b / x).

        `rate` has a gamma prior, `centre_variance` an inverse gamma prior.
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
        Each is one of `RELIABILITIES`.
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

    Before the `draws` that are returned, a fifth as many are drawn and discarded (burn-in).
    """
    state = _State(
        _initial_strengths(comparisons.n_items), _initial_reliabilities(len(comparisons.is_master))
    )
    for _ in range(n_burn_in_draws(draws)):
        state = _next_state(comparisons, state, rng)
    strengths = np.empty((draws, comparisons.n_items))
    reliabilities = np.empty((draws, len(comparisons.is_master)))
    for number in range(draws):
        state = _next_state(comparisons, state, rng)
        strengths[number] = state.strengths.of_item
        reliabilities[number] = state.reliabilities.of_worker
    return Draws(strengths, reliabilities)


class _State(NamedTuple):
    """The state of the sampler: one draw of everything that is unknown."""

    strengths: Strengths
    reliabilities: Reliabilities


def _next_state(comparisons: Comparisons, before: _State, rng: np.random.Generator) -> _State:
    """Draw everything once more: a step of Gibbs sampling.

    The parts (strengths, their scale, reliabilities, the mixture) are drawn one after the other, each given
    the latest draw of the others.
    """
    strengths = _draw_strengths(comparisons, before.strengths, before.reliabilities, rng)
    # A proposal may be rejected; with several, most draws change the scale of strengths.
    for _ in range(N_SCALE_PROPOSALS):
        strengths = _propose_scale(comparisons, strengths, before.reliabilities, rng)
    strengths = _propose_reversal(comparisons, strengths, before.reliabilities, rng)
    reliabilities = _draw_reliabilities(comparisons, strengths, before.reliabilities, rng)
    mixture = _draw_mixture(strengths, rng)
    return _State(strengths._replace(mixture=mixture), reliabilities)


def n_burn_in_draws(draws: int) -> int:
    """Return how many draws come first and are left out (burn-in), since they depend on the initial values.

    They are a fifth of the `draws` that are used.
    """
    return max(draws // 5, 1)


def _initial_strengths(n_items: int) -> Strengths:
    """Make the strengths with which the sampler starts: all are 0.

    The prior of strengths is a mixture of `N_COMPONENTS` distributions. At the start these are the same, and
    all items belong to the first one; the draws tell them apart. The two numbers that have priors themselves
    start from what these expect.
    """
    mixture = Mixture(
        component=np.zeros(n_items, np.int64),
        precision_factor=np.ones(n_items),
        weights=np.full(N_COMPONENTS, 1 / N_COMPONENTS),
        centres=np.zeros(N_COMPONENTS),
        variances=np.ones(N_COMPONENTS),
        # 1 / variance has a gamma prior, whose mean is shape / rate.
        centre_variance=CENTRE_RATE / CENTRE_SHAPE,
        rate=RATE_SHAPE / RATE_RATE,  # the mean of its gamma prior, shape / rate
    )
    return Strengths(np.zeros(n_items), mixture)


def _initial_reliabilities(n_workers: int) -> Reliabilities:
    """Make the sampler's initial reliabilities: the same for all workers, and each value equally common."""
    n_values = len(RELIABILITIES)
    return Reliabilities(
        of_worker=np.full(n_workers, FIRST_RELIABILITY), share_of_each=np.full(n_values, 1 / n_values)
    )


def _draw_strengths(
    comparisons: Comparisons, before: Strengths, reliabilities: Reliabilities, rng: np.random.Generator
) -> Strengths:
    """Draw strengths together with the centres of their components, given everything else.

    Given a Polya-Gamma variable for each judgement, the N strengths and `N_COMPONENTS` centres are jointly
    normal. They are drawn as one vector [N + N_COMPONENTS], the centres last. Its density has three parts:

    - a judgement that was not random is a normal density of the difference of two strengths;
    - the prior of a strength is a normal density of its difference from the centre of its component;
    - the prior of a centre is a normal density around 0.

    Parameters
    ----------
    comparisons : Comparisons
    before : Strengths
        The previous draw.
    reliabilities : Reliabilities
        A worker's reliability is the share of the worker's judgements that are not random.
    rng : Generator
    """
    mixture = before.mixture

    # Which judgements count, and how precisely each tells the margin: the strength of the chosen item less
    # that of the other one. Given its Polya-Gamma variable w, the likelihood of a judgement is a normal
    # density of the margin, with the precision w and the mean 1 / (2 w). A random judgement is independent of
    # the margin: its precision is 0.
    margin = comparisons.margin(before.of_item)
    is_not_random = _draw_not_random(margin, reliabilities.of_worker[comparisons.worker], rng)
    judgement_precision = np.where(is_not_random, polya_gamma(margin, rng), 0.0)

    # Judgements and priors of strengths are densities of differences: links. Only centres have a prior
    # around 0.
    links = _link_strengths(comparisons, mixture, judgement_precision)
    no_prior_of_strengths = np.zeros(comparisons.n_items)
    prior_of_centres = np.full(N_COMPONENTS, 1 / mixture.centre_variance)

    # Strengths and centres are drawn as one vector.
    strengths_and_centres = links.draw(
        prior_precision=np.concatenate([no_prior_of_strengths, prior_of_centres]),
        linear_term=_linear_term(comparisons, is_not_random),
        start=np.concatenate([before.of_item, mixture.centres]),
        rng=rng,
    )
    strengths = strengths_and_centres[: comparisons.n_items]
    centres = strengths_and_centres[comparisons.n_items :]
    return Strengths(strengths, replace(mixture, centres=centres))


def _linear_term(comparisons: Comparisons, is_not_random: Bools) -> Floats:
    """Compute the linear term b of the normal density exp(-x' Q x / 2 + b' x) of strengths and centres x.

    There are N strengths and then `N_COMPONENTS` centres, and so has b. It is precision times mean, summed
    over judgements. Given its Polya-Gamma variable w, a judgement is a normal density of the margin, the
    chosen item's strength less the other's, with the precision w and the mean 1 / (2 w). The product is 1/2:
    it adds 1/2 to the chosen item and -1/2 to the other one. The priors have the mean 0, and add nothing.
    `is_not_random` [C] marks the judgements that count.
    """
    n_won = np.bincount(comparisons.chosen, is_not_random, comparisons.n_items)
    n_lost = np.bincount(comparisons.other, is_not_random, comparisons.n_items)
    linear_term_of_centres = np.zeros(N_COMPONENTS)
    return np.concatenate([(n_won - n_lost) / 2, linear_term_of_centres])


def _link_strengths(comparisons: Comparisons, mixture: Mixture, judgement_precision: Floats) -> "Links":
    """Link the two items of every judgement, and every item with the centre of its component.

    A link is a normal density of the difference of two numbers, whose precision is the link's weight. A
    judgement is one of the difference of two strengths, and the prior of a strength is one of its difference
    from the centre of its component of the mixture.

    The numbers are those that `_draw_strengths` draws: the strengths of items 0 to N - 1, and then the
    centres, so that the centre of component k is number N + k.

    Parameters
    ----------
    comparisons : Comparisons
    mixture : Mixture
    judgement_precision : ndarray, shape [C]
        Precision of the difference of strengths according to each judgement.
    """
    n_items = comparisons.n_items
    items = np.arange(n_items)
    centre_of_item = n_items + mixture.component
    return Links(
        first=np.concatenate([comparisons.chosen, items]),
        second=np.concatenate([comparisons.other, centre_of_item]),
        weights=np.concatenate([judgement_precision, mixture.precision]),
        n=n_items + N_COMPONENTS,
    )


def _draw_not_random(margin: Floats, reliability: Floats, rng: np.random.Generator) -> Bools:
    """Draw which judgements were not random: a mask [C].

    By Bayes' rule, the probability that a choice was not random is the probability of this choice by a
    judgement that is not random, divided by the probability of this choice by any judgement.

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
    uniform = rng.random(len(margin))
    # uniform < p_chosen_not_random / p_chosen, without a division by 0.
    return np.asarray(uniform * p_chosen < p_chosen_not_random)


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

        Q is made of the links and of `prior_precision` (`_precision`); b is `linear_term`. The draw is
        inv(Q) (b + noise), where the noise has the mean 0 and the covariance Q: its mean is inv(Q) b, and its
        covariance is inv(Q) Q inv(Q) = inv(Q) (Papandreou and Yuille, NeurIPS 2010). The linear system is
        solved by conjugate gradients: Q is sparse, while a Cholesky factor of it would not be.

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
        # Conjugate gradients converge faster with an approximation of inv(Q): dividing by Q's diagonal.
        preconditioner = LinearOperator(precision.shape, matvec=lambda values: values / diagonal)
        solution, failure = cg(precision, right_side, x0=start, rtol=TOLERANCE, M=preconditioner)
        if failure:  # rounding can keep the residual above the tolerance
            solution = np.linalg.solve(precision.toarray(), right_side)
        return np.asarray(solution)

    def _noise(self, prior_precision: Floats, rng: np.random.Generator) -> Floats:
        """Draw n normal numbers whose covariance is the matrix Q, the precision of the numbers to be drawn.

        `draw` solves Q x = b + noise, and x then has the covariance Q^-1 Q Q^-1 = Q^-1, as it must.

        A link of weight w between numbers i and j adds w to Q_ii and Q_jj, and -w to Q_ij. Noise gets the
        same covariance if a normal variable z of variance w is added to noise i and subtracted from noise j,
        as E[z (-z)] = -w. The prior precision of a number adds to Q_ii alone: a further variable of this
        variance.
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
        numbers = np.arange(self.n)
        # The entries are listed in three groups: Q_ij of every link, its mirror image Q_ji, and the diagonal.
        rows = np.concatenate([self.first, self.second, numbers])
        columns = np.concatenate([self.second, self.first, numbers])
        values = np.concatenate([-self.weights, -self.weights, diagonal])
        # Values that are listed for the same entry are added up.
        matrix = csr_array((values, (rows, columns)), shape=(self.n, self.n))
        return matrix, diagonal


def _propose_scale(
    comparisons: Comparisons, before: Strengths, reliabilities: Reliabilities, rng: np.random.Generator
) -> Strengths:
    """Propose to multiply all strengths and their mixture by one factor; accept by Metropolis-Hastings.

    Strengths are drawn given their scale, and the scale given the strengths, so that both would change in
    small steps only: this step changes them together. The previous draw is returned if the new one is not
    accepted.

    The acceptance probability is the ratio of the posterior densities after and before, times the Jacobian of
    the proposal. With the factor f, N strengths, K centres and K variances:

    - strengths and centres are multiplied by f and variances by f^2, so that the Jacobian of these numbers is
      f^(N + K + 2 K);
    - their priors have the scales `Mixture.rate` and `Mixture.centre_variance`, which grow along. Stretched
      in this way, each prior density falls by the factor of its number: by f^(N + K + 2 K) in all. The two
      cancel.

    What is left are the ratios of the likelihood of the judgements, and of the prior of the two scales
    (`Mixture.log_scale_prior`, of their logarithms, whose Jacobian is 1).
    """
    factor = float(np.exp(SCALE_PROPOSAL_SD * rng.normal()))
    after = Strengths(before.of_item * factor, before.mixture.scaled(factor))
    likelihood_before = comparisons.log_likelihood(before.of_item, reliabilities.of_worker)
    likelihood_after = comparisons.log_likelihood(after.of_item, reliabilities.of_worker)

    log_ratio = likelihood_after - likelihood_before
    log_ratio += after.mixture.log_scale_prior() - before.mixture.log_scale_prior()
    is_accepted = np.log(rng.random()) < log_ratio
    return after if is_accepted else before


def _propose_reversal(
    comparisons: Comparisons, before: Strengths, reliabilities: Reliabilities, rng: np.random.Generator
) -> Strengths:
    """Propose to reverse the ranking; accept by Metropolis-Hastings.

    If two workers contradict each other and nothing tells who is right, there are two likely rankings, each
    the reverse of the other. The other steps would stay in one of them: strengths are drawn given who is
    reliable, and who is reliable given strengths. So this step proposes the other ranking, and sums over all
    reliabilities, which are drawn next.

    The priors of strengths and centres are the same on both sides of 0, so that only the likelihoods differ.
    """
    mixture = replace(before.mixture, centres=-before.mixture.centres)
    after = Strengths(-before.of_item, mixture)
    log_ratio = _log_likelihood_over_reliabilities(comparisons, after, reliabilities)
    log_ratio -= _log_likelihood_over_reliabilities(comparisons, before, reliabilities)
    if log_ratio < MIN_LOG_RATIO:
        return before
    is_accepted = np.log(rng.random()) < log_ratio
    return after if is_accepted else before


def _log_likelihood_over_reliabilities(
    comparisons: Comparisons, strengths: Strengths, before: Reliabilities
) -> float:
    """Compute the log likelihood of strengths, averaged over the reliabilities that each worker may have.

    How reliable a worker is (`RELIABILITIES`, 0 to 1) is not known, except of masters, who are fully
    reliable. So a worker's likelihood is summed over all reliabilities, each weighted by how common it is
    among workers (`before.share_of_each`, of the previous draw).
    """
    log_density = _log_density_of_reliabilities(comparisons, strengths, before)  # [reliabilities, workers]
    # A master can only have the last reliability, 1: the others have the probability 0.
    log_density[:-1, comparisons.is_master] = -np.inf
    log_likelihood_of_worker = logsumexp(log_density, axis=0)
    return float(log_likelihood_of_worker.sum())


def _draw_reliabilities(
    comparisons: Comparisons, strengths: Strengths, before: Reliabilities, rng: np.random.Generator
) -> Reliabilities:
    """Draw the reliability of each worker, and the share of workers who have each reliability.

    A worker's reliability is the share of judgements that the worker does not make at random: one of
    `RELIABILITIES`, 0, .1, ... 1. Its posterior density is the share of workers who have it, times the
    likelihood of the worker's judgements. The reliability of masters (`Comparisons.is_master`) is known to
    be 1, so that they are not counted for the shares.
    """
    is_known_reliable = comparisons.is_master
    log_density = _log_density_of_reliabilities(comparisons, strengths, before)
    # A master can only have the last reliability, 1: the others have the probability 0.
    log_density[:-1, is_known_reliable] = -np.inf
    index_of_worker = _draw_indices(log_density, axis=0, rng=rng)
    n_workers_of_reliability = np.bincount(index_of_worker[~is_known_reliable], minlength=len(RELIABILITIES))
    return Reliabilities(
        of_worker=RELIABILITIES[index_of_worker],
        share_of_each=_draw_shares(n_workers_of_reliability, rng),
    )


def _log_density_of_reliabilities(
    comparisons: Comparisons, strengths: Strengths, before: Reliabilities
) -> Floats:
    """Compute the log posterior density of each of R `RELIABILITIES` for each of W workers, [R, W].

    It is known up to a constant, by Bayes' rule: the log prior, which is the same for all workers, plus the
    log likelihood of the worker's judgements. The prior of a reliability is the share of workers who have it
    (`before.share_of_each`). Workers whose reliability is known (`Comparisons.is_master`) are treated as the
    others.

    A worker of reliability r makes a share r of judgements by the items' strengths, and the others at random
    (Chen et al., WSDM 2013). By strengths, an item is chosen with the probability 1 / (1 + exp(-margin)),
    where the margin is its strength less that of the other item (Bradley and Terry 1952).
    """
    n_workers = len(comparisons.is_master)  # which has an element for each worker
    margin = comparisons.margin(strengths.of_item)
    p_if_not_random = expit(margin)  # 1 / (1 + exp(-margin)), for each judgement [C]
    log_density = np.empty((len(RELIABILITIES), n_workers))
    for index, reliability in enumerate(RELIABILITIES):
        log_prior = np.log(before.share_of_each[index])
        p_chosen = _probability_of_choice(p_if_not_random, reliability)
        # The logarithms of each worker's judgements are added up.
        log_likelihood = np.bincount(comparisons.worker, weights=np.log(p_chosen), minlength=n_workers)
        log_density[index] = log_prior + log_likelihood
    return log_density


def _draw_indices(log_density: Floats, axis: int, rng: np.random.Generator) -> Ints:
    """Draw indices along an axis, with probabilities in proportion to the densities exp(log_density).

    Gumbel-max trick: Gumbel noise is added to every log density, and the index of the largest sum is such a
    draw. It needs no normalisation.
    """
    noise = rng.gumbel(size=log_density.shape)
    return np.asarray((log_density + noise).argmax(axis=axis))


def _draw_shares(counts: Ints, rng: np.random.Generator) -> Floats:
    """Draw the shares [n] of n groups in a population, given how many members of each were counted.

    The prior is a Dirichlet distribution with the parameter 1 / n for each group, which allows nearly empty
    groups. The posterior is a Dirichlet distribution too, with the counts added to the parameters.
    """
    prior_parameter = 1 / len(counts)
    shares = rng.dirichlet(prior_parameter + counts)
    return np.maximum(MIN_PROBABILITY, shares)  # their logarithms are used, which must be finite


def _draw_mixture(strengths: Strengths, rng: np.random.Generator) -> Mixture:
    """Draw anew the mixture that is the prior of strengths, given the strengths (a step of Gibbs sampling).

    Drawn are the component that each item belongs to, the components' weights and variances, and the two
    scales: the rate of the variances, and the variance of the centres. Each is drawn given the latest draw of
    the others. The centres themselves stay: they are drawn together with the strengths.
    """
    before = strengths.mixture
    # The component of each item, and the components' weights.
    members = _draw_members(strengths.of_item, before, rng)
    n_members = np.bincount(members.component, minlength=N_COMPONENTS)
    weights = _draw_shares(n_members, rng)
    # The components' variances, from the deviations of their items, and the rate of their distribution. A
    # component is Student's t: given its precision factor f, an item is normal with the variance v / f, and
    # so tells of the component's variance v by f times its squared deviation.
    deviations = strengths.of_item - before.centres[members.component]
    weighted_squares = members.precision_factor * deviations**2
    sums_of_squares = np.bincount(members.component, weighted_squares, N_COMPONENTS).astype(np.float64)
    variances = _draw_variances(VARIANCE_SHAPE, before.rate, n_members, sums_of_squares, rng)
    variances = np.maximum(variances, MIN_VARIANCE)
    rate = _draw_rate(variances, rng)
    # The variance of the centres around 0.
    squares_of_centres = before.centres @ before.centres
    centre_variance = _draw_variances(CENTRE_SHAPE, CENTRE_RATE, N_COMPONENTS, squares_of_centres, rng)
    return Mixture(
        component=members.component,
        precision_factor=members.precision_factor,
        weights=weights,
        centres=before.centres,
        variances=variances,
        centre_variance=float(centre_variance),
        rate=rate,
    )


def _draw_variances(
    shape: float, rate: float, n: "int | Ints", squares: "float | Floats", rng: np.random.Generator
) -> Floats:
    """Draw variances of normal values of mean 0, given how many values there are and their squares.

    The prior is an inverse gamma distribution. The posterior is an inverse gamma distribution too: n / 2 is
    added to its shape, and half of the sum of squares to its rate. An inverse gamma variable is drawn as its
    rate divided by a gamma variable of its shape.

    Parameters
    ----------
    shape, rate : float
        Shape and rate of the prior.
    n : int or ndarray of int, shape [K]
        Number of values, for one variance or for each of K.
    squares : float or ndarray, shape [K]
        Sum of the squares of these values.
    rng : Generator
    """
    posterior_shape = shape + n / 2
    posterior_rate = rate + squares / 2
    return np.asarray(posterior_rate / rng.gamma(posterior_shape))


def _draw_rate(variances: Floats, rng: np.random.Generator) -> float:
    """Draw the rate of the inverse gamma distribution that the components' variances come from.

    The prior is a gamma distribution, and so is the posterior: each variance v adds `VARIANCE_SHAPE` to its
    shape, and 1 / v to its rate. A gamma variable is drawn with rate 1, and divided by the rate.
    """
    posterior_shape = RATE_SHAPE + N_COMPONENTS * VARIANCE_SHAPE
    posterior_rate = RATE_RATE + (1 / variances).sum()
    return float(rng.gamma(posterior_shape) / posterior_rate)


class _Members(NamedTuple):
    """The component of each item [N], and its `Mixture.precision_factor` [N]."""

    component: Ints
    precision_factor: Floats


def _draw_members(strength: Floats, before: Mixture, rng: np.random.Generator) -> _Members:
    """Draw the component of the mixture that each item belongs to, and its precision factor.

    A component is Student's t around its centre. The density of an item's strength in it is, up to a
    constant::

        weight / sqrt(v) * (1 + q / d) ** (-(d + 1) / 2)

    where d is `DEGREES_OF_FREEDOM`, v the component's variance, and q the squared deviation from the centre,
    divided by v (`squared_deviation`).

    The same distribution results if the strength is normal with precision f / v, and f (`precision_factor`)
    is a gamma variable of shape d / 2 and rate d / 2. Given the strength, f is again a gamma variable: the
    strength is one normal value, which adds 1 / 2 to the shape and q / 2 to the rate.
    """
    # The component: drawn in proportion to the density of the item's strength in each.
    d = DEGREES_OF_FREEDOM
    squared_deviation = (strength[:, None] - before.centres) ** 2 / before.variances  # q, [N, N_COMPONENTS]
    log_of_factor = np.log(before.weights) - np.log(before.variances) / 2  # weight / sqrt(v)
    log_density = log_of_factor - (d + 1) / 2 * np.log1p(squared_deviation / d)
    component = _draw_indices(log_density, axis=1, rng=rng)

    # The precision factor: a gamma variable of shape (d + 1) / 2 and rate (d + q) / 2.
    items = np.arange(len(strength))
    shape = (d + 1) / 2
    rate = (d + squared_deviation[items, component]) / 2
    precision_factor = rng.gamma(shape, size=len(strength)) / rate
    return _Members(component, precision_factor)


def polya_gamma(margin: Floats, rng: np.random.Generator) -> Floats:
    """Draw Polya-Gamma variables PG(1, c) [C], where c is `margin`.

    Such a variable is an infinite sum (Polson, Scott and Windle 2013)::

        1 / (2 pi^2) * sum over k = 1, 2, ... of e_k / ((k - 1/2)^2 + (c / 2 pi)^2)

    where the e_k are exponential variables of mean 1. The first `N_TERMS` terms are drawn. The sum of the
    others varies little, and is replaced by its mean: that of the whole variable, tanh(c / 2) / (2 c), less
    that of the terms that are drawn.
    """
    k = np.arange(N_TERMS)[:, None] + 1
    divisors = (k - 0.5) ** 2 + (margin / (2 * np.pi)) ** 2  # [N_TERMS, C]
    exponentials = rng.exponential(size=divisors.shape)
    first_terms: Floats = (exponentials / divisors).sum(axis=0) / (2 * np.pi**2)
    mean_of_first_terms = (1 / divisors).sum(axis=0) / (2 * np.pi**2)

    # The mean is the same for c and -c, and 0 / 0 at 0, where it is replaced by that of a small c.
    c = np.maximum(np.abs(margin), 1e-6)
    mean_of_all_terms = np.tanh(c / 2) / (2 * c)
    mean_of_other_terms: Floats = mean_of_all_terms - mean_of_first_terms
    return first_terms + mean_of_other_terms
