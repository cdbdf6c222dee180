"""Compute intervals over movies: clips of one movie are similar, so the movie is the sampling unit.

Each interval says what it covers. Read for something else it covers less than its level.

``models``
    *These trained models on movies like these.* The models are given and only the tested movies were drawn.
    It says nothing of models trained on other movies, so it is too narrow for "how good is this method".
``method``
    *This method, retrained, on movies like these.* Every fold learns from nearly the same movies, so that the
    values of different folds move together. The variance of their mean is taken as 1/K + 1/(K - 1) of the
    variance between movies in place of 1/K, the ratio of movies tested to movies trained on being 1 to K - 1
    (Nadeau and Bengio 2003, section 3, with leave-one-movie-out for their random splits).

Both are Student's t of K - 1 degrees of freedom with the delete-one jackknife's standard error over movies
(Efron and Stein 1981), as for clustered data (MacKinnon, Nielsen and Webb 2023, arXiv 2301.04527). For a mean
over movies without bounds that is the textbook t interval. A metric with bounds has standard error and
interval on the logit scale (the log scale with one bound), transformed back: it stays between the bounds, and
near them it covers where a symmetric one does not. Nothing is drawn.

Values that are equal in all movies have no interval: its width would be 0, which is no certainty, as a metric
of few clips has few possible values. They have one only if it is known how they vary or which are possible.

A statistic that is no mean over movies has to be computed anew without each movie. Of more than 500 movies,
500 groups of movies are left out, one at a time, in place of movies (the delete-a-group jackknife, Kott 2001,
Journal of Official Statistics 17(4)): the work then grows with the clips, and t has 499 degrees of freedom.

Measured coverages stand in ``docs/evaluation.md`` and are repeated by ``benchmarks/planted/scores.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtri, stdtrit

from obygaze_features.arguments import checked

Covers = Literal["models", "method"]
Bounds = tuple[float, float]

NAN = float("nan")
LEVEL = 0.95
"""Coverage of an interval."""

CAPTIONS: dict[str, str] = {
    "models": "95 % intervals of these trained models on movies like these",
    "method": "95 % intervals of this method, retrained, on movies like these (Nadeau and Bengio 2003)",
    "near bound": "of a by-movie AP above .9, 90 to 95 % of these intervals hold the true value",
    "p": "p and intervals of these trained models call two equally good methods different in .03 to .13 of "
    "corpora at .05 (docs/evaluation.md): the second table compares methods",
}
"""Notes to print under a table about its kinds of interval, and about p of trained models."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate from several movies and its confidence interval.

    Attributes
    ----------
    mean, low, high : float
        NaN where too few movies define them: an interval needs three.
    n_movies : int
        Movies in the estimate: those whose value is defined.
    n_undefined : int
        Movies left out because their value is undefined (NaN).
    """

    mean: float
    low: float
    high: float
    n_movies: int
    n_undefined: int


MAX_TIMES_CLOSER = 4
"""The estimate without one movie is taken to be at most this many times closer to a bound than the estimate.

If one movie has all the errors, the estimate without it is at the bound, which is infinite on the logit
scale: the interval would be infinite too."""

ROUNDING = 1e-9
"""Metrics that differ by less are equal."""

LARGEST_EXPONENT = 700.0
"""The exponential of a larger number would overflow a float."""

FEWEST_MOVIES = 3
"""Movies that an interval needs: of two, Student's t has one degree of freedom and holds nearly anything."""

MAX_GROUPS = 500
"""Groups of movies that `jackknife_interval` leaves out at most; each is one movie up to that many movies."""


def variance_factor(n_movies: int, covers: Covers) -> float:
    """Return the variance of a mean over movies, divided by the variance between movies.

    It is 1 / K for K movies. For the method's interval (``covers="method"``), 1 / (K - 1) is added, as models
    of different folds learn from nearly the same movies (Nadeau and Bengio 2003).
    """
    factor = 1 / n_movies
    if covers == "method":
        factor += 1 / (n_movies - 1)
    return factor


@checked
def t_interval(
    values: ArrayLike,
    level: float = LEVEL,
    *,
    covers: Covers = "models",
    bounds: Bounds | None = None,
    possible: Bounds | None = None,
    variance_by_chance: float = NAN,
) -> Interval:
    """Compute the mean over movies and its Student's t interval.

    If all movies have one and the same value, they tell nothing of how movies differ: of few clips a movie's
    metric has few possible values. The interval is then undefined, or that of `variance_by_chance`.

    Parameters
    ----------
    values : array-like of float, shape [K]
        One value per movie; NaN where it is undefined.
    level : float
        Coverage of the interval.
    covers : {"models", "method"}
        What the interval is of: these trained models, or the method when retrained (module docstring).
    bounds : tuple of float, optional
        For metrics: smallest and largest value that the mean can have; either may be infinite. The interval
        is computed on the logit scale, so that it stays between them; it is undefined if the mean is equal to
        one of them. Without bounds, or if both are infinite, the interval is symmetric.
    possible : tuple of float, optional
        Smallest and largest value that the mean can have, such as that of a difference (`difference_bounds`).
        The interval is clipped to this range, beyond which no value is possible; if only one value is
        possible, such as an AUC of .5 of scores that do not vary, both ends are that value.
    variance_by_chance : float
        For differences of metrics: the variance of a movie's value if its clips were ranked by chance.

    Examples
    --------
    >>> interval = t_interval([0.95, 0.99, 0.97, 0.98], bounds=(0, 1))
    >>> f"{interval.mean:.4f} [{interval.low:.3f}, {interval.high:.3f}]"
    '0.9725 [0.923, 0.990]'
    """
    values_of_movies = np.asarray(values, dtype=np.float64)
    defined = values_of_movies[~np.isnan(values_of_movies)]
    n_defined = int(defined.size)
    n_undefined = int(values_of_movies.size) - n_defined
    mean = float(defined.mean()) if n_defined else NAN
    if n_defined < FEWEST_MOVIES:
        return Interval(mean, NAN, NAN, n_defined, n_undefined)
    # The variance of the mean is this factor times the variance between movies.
    factor = variance_factor(n_defined, covers)
    if are_equal(defined):
        # The variance between movies cannot be estimated. The ends are NaN if it is not known either.
        error = (variance_by_chance * factor) ** 0.5
        half_width = float(ndtri((1 + level) / 2)) * error
        low, high = mean - half_width, mean + half_width
    else:
        # The interval is that of the jackknife over movies, whose variance is 1 / n of the variance between
        # movies: it is scaled to the factor.
        means_without = (defined.sum() - defined) / (n_defined - 1)  # each movie
        low, high = _interval_ends(mean, means_without, level, bounds, n_defined * factor)
    if possible is not None:
        least, most = possible
        low = float(np.clip(low, least, most))
        high = float(np.clip(high, least, most))
        if least == most:
            low, high = possible
    return Interval(mean, low, high, n_defined, n_undefined)


def are_equal(values: NDArray[np.float64]) -> bool:
    """Tell whether the values of all movies are one number, but for rounding."""
    return bool(np.ptp(values) <= ROUNDING)


def difference_bounds(bounds: Bounds, *, first: float | None = None, second: float | None = None) -> Bounds:
    """Return the least and greatest possible difference of two numbers, the first less the second.

    Parameters
    ----------
    bounds : tuple of float
        Least and greatest value of both numbers.
    first, second : float, optional
        The number, if it is known in advance: the AUC of scores that do not vary is .5.

    Examples
    --------
    >>> difference_bounds((0.0, 1.0))
    (-1.0, 1.0)
    >>> difference_bounds((0.0, 1.0), second=0.5)
    (-0.5, 0.5)
    """
    least_first, most_first = bounds if first is None else (first, first)
    least_second, most_second = bounds if second is None else (second, second)
    return least_first - most_second, most_first - least_second


def ratio_interval(numerators: ArrayLike, denominators: ArrayLike, *, covers: Covers = "models") -> Interval:
    """Compute the ratio of two means over movies and its 95 % interval (Fieller 1954, JRSS B 16).

    The interval contains the ratios r for which the mean of numerator - r * denominator does not differ
    significantly from 0. It is undefined if the mean of the denominators does not differ significantly from
    0, as then any ratio is possible, and if all movies have the same ratio.

    With means N and D of the numerators and denominators, and the quantile t of Student's t, r is in the
    interval if (N - r D)^2 <= t^2 * variance of (N - r D), and that variance is
    variance(N) - 2 r covariance(N, D) + r^2 variance(D). Sorted by powers of r, this is
    a r^2 - 2 b r + c <= 0 with::

        a = D^2 - t^2 variance(D)    b = N D - t^2 covariance(N, D)    c = N^2 - t^2 variance(N)

    If a > 0, these are the ratios between the roots (b - sqrt(b^2 - a c)) / a and (b + sqrt(b^2 - a c)) / a.
    Otherwise the mean of the denominators does not differ significantly from 0.

    Parameters
    ----------
    numerators, denominators : array-like of float, shape [K]
        One value per movie, NaN where undefined. Movies are used that have both values.
    covers : {"models", "method"}
        As in `t_interval`.

    Examples
    --------
    >>> interval = ratio_interval([0.1, 0.2, 0.15, 0.2], [0.2, 0.4, 0.35, 0.35])
    >>> f"{interval.mean:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
    '0.50 [0.39, 0.61]'
    """
    pairs = np.column_stack([np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)])
    defined = pairs[~np.isnan(pairs).any(axis=1)]
    n = len(defined)
    n_undefined = len(pairs) - n
    if not n:
        return Interval(NAN, NAN, NAN, n_movies=0, n_undefined=n_undefined)
    numerator, denominator = defined.mean(axis=0).tolist()
    ratio = numerator / denominator if denominator else NAN
    distances = defined[:, 0] - ratio * defined[:, 1]  # of numerators from what the ratio predicts
    if n < FEWEST_MOVIES or are_equal(distances):
        return Interval(ratio, NAN, NAN, n, n_undefined)
    squared_t = float(stdtrit(n - 1, (1 + LEVEL) / 2)) ** 2
    # t^2 times the variances and the covariance of the two means.
    scaled = squared_t * variance_factor(n, covers) * np.cov(defined.T)  # [2, 2]
    a = denominator**2 - float(scaled[1, 1])
    b = numerator * denominator - float(scaled[0, 1])
    c = numerator**2 - float(scaled[0, 0])
    if a <= 0:
        return Interval(ratio, NAN, NAN, n, n_undefined)
    # Rounding can make the difference negative.
    root = float(np.sqrt(max(b**2 - a * c, 0.0)))
    return Interval(ratio, (b - root) / a, (b + root) / a, n, n_undefined)


def ends_of_equal_values(value: float, n_movies: int, minimum: float, maximum: float) -> tuple[float, float]:
    """Compute the ends of the 95 % interval of a mean over movies that all have one and the same value.

    Such movies tell nothing of how movies differ: a Student's t interval would have no width, though a metric
    of few clips has few possible values, and is equal in three or four movies by chance.

    A movie's value is at least this one with a probability of q, and is so in all K movies with probability
    q ** K. The q at which this is .025 is .025 ** (1 / K); a smaller q is too improbable. The mean is thus at
    least q * value + (1 - q) * least, with the least possible value. The upper end is its mirror image.

    Parameters
    ----------
    value : float
    n_movies : int
        K, at least 1.
    minimum, maximum : float
        The least and the greatest value that a movie can have.

    Examples
    --------
    >>> low, high = ends_of_equal_values(0.75, 3, 0.0, 1.0)
    >>> f"[{low:.2f}, {high:.2f}]"
    '[0.22, 0.93]'
    """
    p_of_either_tail = (1 - LEVEL) / 2
    q = p_of_either_tail ** (1 / n_movies)
    return q * value + (1 - q) * minimum, q * value + (1 - q) * maximum


def auc_interval(values: ArrayLike) -> Interval:
    """Compute the mean AUC of movies [K], NaN where undefined, and its 95 % interval.

    It is the interval of `t_interval`, unless all movies have the same AUC: then it is that of
    `ends_of_equal_values`, such as [.025 ** (1 / K), 1] if all have 1. A single movie has such an interval
    only if its AUC is 1 or 0, and otherwise none.

    Examples
    --------
    >>> interval = auc_interval([1.0, 1.0, 1.0, 1.0])
    >>> f"{interval.mean:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
    '1.00 [0.40, 1.00]'
    """
    interval = t_interval(values, bounds=(0.0, 1.0))
    aucs = np.asarray(values, dtype=np.float64)
    defined = aucs[~np.isnan(aucs)]
    if not len(defined) or not are_equal(defined):
        return interval
    if len(defined) == 1 and interval.mean not in (0.0, 1.0):
        return interval
    low, high = ends_of_equal_values(interval.mean, len(defined), minimum=0.0, maximum=1.0)
    return replace(interval, low=low, high=high)


@checked
def jackknife_interval(
    statistic: Callable[[NDArray[np.bool_]], float], movies: NDArray[Any], *, bounds: Bounds | None = None
) -> Interval:
    """Compute a statistic of all clips and its jackknife interval over movies.

    The interval is of these trained models on movies like these (``models``). It is meant for statistics that
    are not means over movies, such as the AP of all clips. It is undefined with one or two movies, or if the
    statistic is undefined without some movie, or the same without each.

    With more than `MAX_GROUPS` (500) movies, groups are left out instead of single movies: in the order of
    names, movies 0, 500, 1000, ... are group 0, movies 1, 501, ... group 1.

    Parameters
    ----------
    statistic : callable
        Takes a mask of clips [N] and returns the value of these clips, NaN where undefined.
    movies : ndarray, shape [N]
        The movie of each clip.
    bounds : tuple of float, optional
        As in `t_interval`.

    Notes
    -----
    With 6 or 12 movies, the share of such intervals that hold the true value is nearer to 95 % than with the
    percentiles of a bootstrap of movies and clips.
    """
    names, movie_indices = np.unique(movies, return_inverse=True)
    value = statistic(np.ones(len(movies), dtype=np.bool_))
    n_movies = int(names.size)
    if n_movies < FEWEST_MOVIES or np.isnan(value):
        return Interval(value, NAN, NAN, n_movies, n_undefined=0)
    n_groups = min(n_movies, MAX_GROUPS)
    group_of_clip = movie_indices % MAX_GROUPS
    values_without = np.array([statistic(group_of_clip != group) for group in range(n_groups)])
    low, high = _interval_ends(value, values_without, LEVEL, bounds)
    return Interval(value, low, high, n_movies, n_undefined=0)


@checked
def jackknife_error(without: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the jackknife's standard errors [...] of statistics (Efron and Stein 1981).

    `without` [K, ...] holds the values of the statistics without each of K movies. With their mean m, the
    variance is (K - 1) / K times the sum of (value - m)^2.
    """
    n = len(without)
    sum_of_squares = np.sum((without - without.mean(axis=0)) ** 2, axis=0)
    return np.asarray(np.sqrt((n - 1) / n * sum_of_squares))


def _interval_ends(
    estimate: float,
    without: NDArray[np.float64],
    level: float,
    bounds: Bounds | None,
    variance_scale: float = 1.0,
) -> tuple[float, float]:
    """Compute the lower and upper end of the jackknife interval of an estimate.

    Without bounds it is symmetric around the estimate. With bounds it is symmetric on another scale, and
    therefore stays between them: with one bound, on the scale of the logarithm of the distance from the
    bound; with two, on the scale of the logit of the share of the way from the lower to the upper bound.

    Parameters
    ----------
    estimate : float
    without : ndarray, shape [K]
        The estimate without each of K movies.
    level : float
        Coverage.
    bounds : tuple of float, optional
        Smallest and largest value that the estimate can have; either may be infinite.
    variance_scale : float
        Factor of the jackknife's variance.

    Returns
    -------
    low, high : float
        NaN if the estimate is at one of the bounds, or the same without each movie.
    """
    if are_equal(without):
        return NAN, NAN
    # The quantile of Student's t, with K - 1 degrees of freedom.
    half_width_in_errors = float(stdtrit(len(without) - 1, (1 + level) / 2)) * variance_scale**0.5

    lower_bound, upper_bound = bounds or (-np.inf, np.inf)
    has_lower_bound = not np.isinf(lower_bound)
    has_upper_bound = not np.isinf(upper_bound)
    if not has_lower_bound and not has_upper_bound:
        half_width = half_width_in_errors * float(jackknife_error(without))
        return estimate - half_width, estimate + half_width
    if not lower_bound < estimate < upper_bound:
        return NAN, NAN

    # On the scale of the distance from the only bound or, with both, of the share of the way between them.
    from_lower = _Distance(estimate - lower_bound, without - lower_bound)
    from_upper = _Distance(upper_bound - estimate, upper_bound - without)
    if not has_upper_bound:
        nearest, farthest = _distance_ends(from_lower, half_width_in_errors)
        return lower_bound + nearest, lower_bound + farthest
    if not has_lower_bound:
        nearest, farthest = _distance_ends(from_upper, half_width_in_errors)
        return upper_bound - farthest, upper_bound - nearest
    lowest_share, highest_share = _share_ends(from_lower, from_upper, half_width_in_errors)
    width = upper_bound - lower_bound
    return lower_bound + width * lowest_share, lower_bound + width * highest_share


class _Distance(NamedTuple):
    """The distance of an estimate from a bound, and the distances of the estimates without each movie.

    Attributes
    ----------
    value : float
    without : ndarray, shape [K]
    """

    value: float
    without: NDArray[np.float64]

    def logs_without(self) -> NDArray[np.float64]:
        """Compute the logarithms of the distances from the bound [K] that estimates without each movie have.

        If one movie has all the errors, the estimate without it is at the bound, such as an AUC of 1: its
        distance is 0, and the logarithm infinite. So that one movie cannot make the interval infinite,
        distances below a quarter of that of all movies (`MAX_TIMES_CLOSER`) are raised to this quarter.
        """
        min_distance = self.value / MAX_TIMES_CLOSER
        return np.asarray(np.log(np.maximum(self.without, min_distance)))


def _distance_ends(distance: _Distance, half_width_in_errors: float) -> tuple[float, float]:
    """Compute the ends of the interval of an estimate's distance from a bound that it cannot pass.

    The interval is symmetric on the scale of the distance's logarithm, on which the bound is infinitely far:
    so it never reaches past the bound, such as an AUC above 1. It is as long on either side as the
    logarithm's standard error, from estimates without one movie each (jackknife), times
    `half_width_in_errors`.
    """
    error_of_log = float(jackknife_error(distance.logs_without()))
    half_width = half_width_in_errors * error_of_log
    nearest = distance.value * float(np.exp(-half_width))
    farthest = distance.value * float(np.exp(min(half_width, LARGEST_EXPONENT)))  # never infinite
    return nearest, farthest


def _share_ends(
    from_lower: _Distance, from_upper: _Distance, half_width_in_errors: float
) -> tuple[float, float]:
    """Compute the interval of an estimate between two bounds, as a share of the way from lower to upper.

    An estimate of .8 between .5 and 1 is at .6 of the way. The interval is symmetric on the scale of the
    share's logit, on which both bounds are infinitely far: so it passes neither. With the distances a from
    the lower bound and b from the upper one, the share is a / (a + b), and

        logit = log(share / (1 - share)) = log(a / b) = log(a) - log(b)

    The standard error of the logit is from estimates without one movie each (jackknife).
    """
    logit = np.log(from_lower.value) - np.log(from_upper.value)
    logits_without = from_lower.logs_without() - from_upper.logs_without()  # without each movie
    half_width = half_width_in_errors * float(jackknife_error(logits_without))
    return float(expit(logit - half_width)), float(expit(logit + half_width))
