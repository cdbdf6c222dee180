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

from obygaze_models.protocol.held_out import HeldOut, find_intercepts, rows_of_groups

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

MIN_POWER = 0.05
"""Least power of the likelihood."""

N_DEVIATIONS_APART = 7
"""Numbers of positive clips that are more standard deviations from the expected number are neglected: their
probability is below 1e-10."""

N_SPARE_ANGLES = 8
"""Angles added to those that `N_DEVIATIONS_APART` asks for. If nearly all clips are certain, the deviation is
near 0, and the few sums next to the expected one need angles all the same."""

MIN_PROBABILITY = 1e-300
"""In place of probabilities of 0, whose logarithm is not finite."""


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

        The posterior has a point mass of 1 - `p_skilled` at the slope 0; the slopes above 0 have the
        distribution `cumulative`. If the point mass is .2, all quantiles up to the level .2 are 0. The level
        .6 is then the level (.6 - .2) / .8 = .5 among the slopes above 0, which is their median.

        Parameters
        ----------
        probabilities : array-like, shape [B]
            Levels of the quantiles: 0.5 is the median.
        """
        point_mass = 1 - self.p_skilled
        levels_above_mass = np.asarray(probabilities, np.float64) - point_mass
        # Without skill every quantile is 0; the maximum only avoids a division by 0.
        levels_among_positive = levels_above_mass / max(self.p_skilled, 1e-12)
        quantiles_among_positive = np.interp(levels_among_positive, self.cumulative, GRID)
        logits_per_deviation = np.where(levels_among_positive > 0, quantiles_among_positive, 0.0)
        return logits_per_deviation / self.unit

    @property
    def median_above_0(self) -> float:
        """Median of the slope, given that it is above 0, in logits per unit of the score.

        `cumulative` is the distribution of slopes above 0 alone (`GRID` holds no other): the median is where
        it reaches one half.
        """
        logits_per_deviation = float(np.interp(0.5, self.cumulative, GRID))
        return logits_per_deviation / self.unit  # `unit` is the scores' deviation


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
        """Compute the log likelihood of each film at `KNOTS`, given one model's held-out scores [N].

        A film's log likelihood is the sum over its cells. A cell is the clips of one film that one fold
        scored; scores of different cells are not comparable, so that each has its own intercept. Cells whose
        clips all have the same label are left out, as their likelihood does not depend on the slope.
        """
        standardised, deviations = held_out.standardised()
        scores = standardised[:, 0]
        log_likelihood_of_movie: dict[Any, Floats] = {}  # at each of K knots, [K]
        for rows in rows_of_groups(held_out.cells()):
            labels = held_out.y[rows].astype(np.float64)
            has_both_labels = labels.min() < labels.max()
            if not has_both_labels:
                continue
            movie = held_out.movies[rows[0]]  # all clips of a cell are of one movie
            sum_of_cells_before = log_likelihood_of_movie.get(movie, np.zeros(len(KNOTS)))
            log_likelihood_of_cell = conditional_log_likelihood(scores[rows], labels)
            log_likelihood_of_movie[movie] = sum_of_cells_before + log_likelihood_of_cell

        # The shape must be stated for the case that there are no movies.
        log_likelihoods = np.array(list(log_likelihood_of_movie.values())).reshape(-1, len(KNOTS))
        return cls(
            movies=np.array(list(log_likelihood_of_movie)),
            log_likelihoods=log_likelihoods,
            unit=float(deviations[0]),
        )

    @cached_property
    def _film_splines(self) -> "CubicSpline":
        """Interpolate each film's log likelihood between its values at `KNOTS`, by a cubic spline.

        The result maps slopes [G] to log likelihoods [M, G].
        """
        from scipy.interpolate import CubicSpline  # noqa: PLC0415 - slow, and films are opened without it

        return CubicSpline(KNOTS, self.log_likelihoods, axis=1)  # along the knots, for each film

    @cached_property
    def _sums_on_grid(self) -> "_SumsOnGrid":
        """Sum the films' log likelihoods at `GRID` such that any film can be left out of the sum.

        The sums are those of the first films, and those of the last films, for every number of films.
        """
        log_likelihoods = self._film_splines(GRID)  # [M, G]
        n_films = len(log_likelihoods)
        before = np.zeros((n_films + 1, len(GRID)))
        for film in range(n_films):
            before[film + 1] = before[film] + log_likelihoods[film]

        from_film_on = np.zeros((n_films + 1, len(GRID)))
        for film in reversed(range(n_films)):
            from_film_on[film] = from_film_on[film + 1] + log_likelihoods[film]
        return _SumsOnGrid(before, from_film_on)

    def posterior(self, without: object = None) -> SlopePosterior:
        """Compute the posterior of the slope from all films, or from all but the movie `without`.

        The prior has two cases. With the probability `P_UNSKILLED` the model knows nothing: its slope is 0.
        Otherwise its slope is above 0, one of `GRID`. The posterior of each case, and of each slope, is
        proportional to prior times likelihood.
        """
        log_likelihood = self._log_likelihood_on_grid(without)
        log_likelihood_at_0 = 0.0  # log likelihoods are relative to slope 0

        # All likelihoods are divided by the highest one, so that exp does not overflow. The factor cancels
        # in the quotients below.
        highest = max(float(log_likelihood.max()), log_likelihood_at_0)
        likelihood = np.exp(log_likelihood - highest)
        likelihood_at_0 = float(np.exp(log_likelihood_at_0 - highest))

        # Prior times likelihood: first of each slope of the grid, given that the slope is above 0; then of
        # the two cases.
        mass_on_grid = _prior_mass_on_grid() * likelihood
        mass_above_0 = (1 - P_UNSKILLED) * float(mass_on_grid.sum())
        mass_at_0 = P_UNSKILLED * likelihood_at_0
        return SlopePosterior(
            p_skilled=mass_above_0 / (mass_above_0 + mass_at_0),
            cumulative=np.cumsum(mass_on_grid) / mass_on_grid.sum(),
            unit=self.unit,
        )

    def _log_likelihood_on_grid(self, without: object) -> Floats:
        """Compute the logarithm [G] at `GRID` of the films' joint likelihood, raised to `_likelihood_power`.

        The likelihood takes clips for independent. If clips of a film are alike, or films differ, it is too
        narrow, and is flattened by a power below 1. This shows at its maximum: the films' first derivatives
        then vary by more than the second derivatives, its curvature, say. The movie `without` is left out,
        unless it is None. The result is 0 everywhere if no film is left.
        """
        is_used = np.ones(len(self.movies), dtype=np.bool_)
        if without is not None:
            is_used = self.movies != without
        if not is_used.any():
            return np.zeros(len(GRID))

        if is_used.all():
            log_likelihood = self._sums_on_grid.of_all()
        else:
            index_of_left_out = int(np.flatnonzero(~is_used)[0])
            log_likelihood = self._sums_on_grid.of_all_but(index_of_left_out)

        # Each film's log likelihood is a spline, whose second argument is the order of the derivative.
        slope_at_maximum = float(GRID[np.argmax(log_likelihood)])
        first_derivatives = self._film_splines(slope_at_maximum, 1)[is_used]
        second_derivatives = self._film_splines(slope_at_maximum, 2)[is_used]
        power = _likelihood_power(first_derivatives, second_derivatives)
        return np.asarray(power * log_likelihood)


class _SumsOnGrid(NamedTuple):
    """Sums of M films' log likelihoods at `GRID`, over the first films and over the last films.

    Leaving a film out by adding two of these sums is quicker than summing anew, and more exact than
    subtracting the film from the total.

    Attributes
    ----------
    before : ndarray, shape [M + 1, G]
        Sum of the films before film m, for m = 0 ... M.
    from_film_on : ndarray, shape [M + 1, G]
        Sum of film m and those after it, for m = 0 ... M.
    """

    before: Floats
    from_film_on: Floats

    def of_all(self) -> Floats:
        """Return the sum of all films, [G]."""
        return np.asarray(self.before[-1])

    def of_all_but(self, film: int) -> Floats:
        """Compute the sum of all films but one, [G]; `film` is its index."""
        return np.asarray(self.before[film] + self.from_film_on[film + 1])


def _prior_mass_on_grid() -> Floats:
    """Compute the prior probability [G] of the slopes around each slope of `GRID`, given a slope above 0.

    It is the density of half a Student's t, times the distance to the neighbouring slopes.
    """
    from scipy.stats import t  # noqa: PLC0415 - slow to import, and not needed to apply a model

    # Half a Student's t has twice the density of the whole one.
    density = 2 * t.pdf(GRID / SLOPE_SCALE, SLOPE_DEGREES_OF_FREEDOM) / SLOPE_SCALE
    width_of_step = np.gradient(GRID)
    return np.asarray(density * width_of_step)


def _likelihood_power(first_derivatives: Floats, second_derivatives: Floats) -> float:
    """Compute the power, at most 1, to which the likelihood is raised because clips are not independent.

    The power is ``curvature / variance`` (the sandwich correction; see the module). The curvature of the log
    likelihood at its maximum says how surely it tells the slope if clips are independent. The variance of its
    first derivative says how much it really varies between sets of films. The two are equal if clips are
    independent and all films have the same slope. If clips of a film are alike, the likelihood counts them as
    several observations, and the variance is larger. The power makes the posterior wider by as much.

    The power is 1 if there are fewer than two films, which have no variance, or if the likelihood has no
    maximum.

    Parameters
    ----------
    first_derivatives, second_derivatives : ndarray, shape [M]
        Of the films' log likelihoods at the slope where their sum is highest.
    """
    curvature = -float(second_derivatives.sum())
    n_films = len(first_derivatives)
    if n_films < 2 or curvature <= 0:
        return 1.0

    # The variance of a sum of n independent derivatives is n times that of one, which is estimated by the sum
    # of squares over n - 1.
    sum_of_squares = float(np.sum((first_derivatives - first_derivatives.mean()) ** 2))
    variance_of_sum = n_films / (n_films - 1) * sum_of_squares

    if variance_of_sum <= curvature:
        return 1.0
    return max(curvature / variance_of_sum, MIN_POWER)


def conditional_log_likelihood(scores: Floats, labels: Floats) -> Floats:
    """Compute the log likelihood of a film's labels given how many are positive, at each slope of `KNOTS`.

    It is ``log(P(these labels) / P(this number of positive labels))``, less its value at slope 0, where a
    clip is positive with probability expit(slope * score + intercept), independently of the others.

    Any intercept gives the same result: if a is added to all logits, both probabilities are multiplied by the
    same factor, which is exp(a * number of positive labels) over a product of normalising terms. The
    intercept used here makes the expected number of positive clips equal to the actual one, where the
    computation of the second probability is precise.

    Parameters
    ----------
    scores, labels : ndarray, shape [N]
        Labels are 0 and 1, and both occur.

    Returns
    -------
    ndarray, shape [K]

    Examples
    --------
    Of two clips with scores 1 apart, the positive one scores higher with probability expit(slope):

    >>> one_pair = conditional_log_likelihood(np.array([-0.5, 0.5]), np.array([0.0, 1.0]))
    >>> bool(np.allclose(one_pair, np.log(2 * expit(KNOTS))))
    True
    """
    n_clips = len(labels)
    n_positive = float(labels.sum())
    shares = np.full(len(KNOTS), n_positive / n_clips)
    equal_weights = np.ones((1, n_clips))
    intercepts = find_intercepts(KNOTS, scores, equal_weights, shares)
    logits = KNOTS[:, None] * scores + intercepts[:, None]  # [K, N]

    # log p of a positive clip is logit - log(1 + exp(logit)); log(1 - p) of a negative one has no first term.
    log_p_of_clips = labels * logits - np.logaddexp(0, logits)
    log_p_of_labels = np.sum(log_p_of_clips, axis=1)

    log_p_of_number = _log_probability_of_sum(expit(logits), n_positive)
    log_likelihood = log_p_of_labels - log_p_of_number
    at_slope_0 = log_likelihood[0]
    return np.asarray(log_likelihood - at_slope_0)


def _log_probability_of_sum(p: Floats, n_positive: float) -> Floats:
    """Compute the log probability that exactly `n_positive` of N independent clips are positive, [K].

    The number of positive clips, S, has a Poisson binomial distribution. Its probabilities follow from its
    characteristic function by a discrete Fourier transform (Hong 2013, Computational Statistics and Data
    Analysis 59). The characteristic function at the angle a is the expectation of exp(i * a * S), with the
    imaginary unit i. It is a product over clips::

        c(a) = product of ((1 - p) + p * exp(i * a)) = product of (1 + p * (exp(i * a) - 1))

    The probability of s positive clips is the mean of ``c(a) * exp(-i * s * a)`` over angles a that are
    evenly spaced around the circle.

    Parameters
    ----------
    p : ndarray, shape [K, N]
        Probability of each clip to be positive, for each of K slopes; the expected sum is `n_positive`.
    n_positive : float
        s.
    """
    circle = _half_circle(_count_angles(p))
    exp_minus_1 = np.exp(1j * circle.angles) - 1  # [A]
    # The mean over the circle as a weighted sum over its upper half.
    weights = np.exp(-1j * n_positive * circle.angles) * circle.multiplicity / circle.n_angles

    p_of_sum = []
    for p_at_slope in p:
        factors = 1 + p_at_slope[:, None] * exp_minus_1  # [N, A]
        characteristic_function = np.prod(factors, axis=0)  # [A]
        weighted_sum = characteristic_function @ weights
        # The lower half of the circle has conjugate values: the imaginary parts cancel.
        p_of_sum.append(float(weighted_sum.real))
    return np.log(np.maximum(p_of_sum, MIN_PROBABILITY))


class _HalfCircle(NamedTuple):
    """The upper half of m angles that are evenly spaced around a circle.

    A characteristic function at the angle -a is the conjugate of that at a, so that the lower half need not
    be computed.

    Attributes
    ----------
    angles : ndarray, shape [m // 2 + 1]
        From 0 to pi.
    multiplicity : ndarray, shape [m // 2 + 1]
        How many of the m angles each stands for: 2, itself and its mirror image, or 1 for the angles 0 and
        pi, which are their own mirror images.
    n_angles : int
        m.
    """

    angles: Floats
    multiplicity: Floats
    n_angles: int


def _half_circle(n_angles: int) -> _HalfCircle:
    """Space angles evenly around a circle, and return those of its upper half, 0 to pi.

    Each stands for itself and its mirror image below; 0 and pi are their own mirror images.
    """
    angles = 2 * np.pi * np.arange(n_angles // 2 + 1) / n_angles
    multiplicity = np.full(len(angles), 2.0)
    multiplicity[0] = 1.0
    ends_at_pi = n_angles % 2 == 0
    if ends_at_pi:
        multiplicity[-1] = 1.0
    return _HalfCircle(angles, multiplicity, n_angles)


def _count_angles(p: Floats) -> int:
    """Count the angles that a Fourier transform needs to compute the probability of the expected sum.

    N clips have N + 1 possible sums, for which N + 1 angles are always enough. Fewer angles, m, add the
    probabilities of the sums that are m, 2 m, ... away from the expected one (aliasing). These are negligible
    if m is `N_DEVIATIONS_APART` standard deviations of the sum.

    Parameters
    ----------
    p : ndarray, shape [K, N]
        Probability of each clip to be positive, for each of K slopes.
    """
    n_possible_sums = int(p.shape[1]) + 1
    variances = np.sum(p * (1 - p), axis=1)  # of the sum at each slope, [K]
    largest_deviation = float(np.sqrt(np.max(variances)))
    n_for_deviations = int(np.ceil(N_DEVIATIONS_APART * largest_deviation)) + N_SPARE_ANGLES
    return min(n_possible_sums, n_for_deviations)
