"""Compare two models on the same movies: two paired tests, smallest detectable effects, Holm's adjustment.

`sign_flip` asks whether *these trained models* differ on movies like these. `corrected_t` asks whether *the
methods* differ (backbones, training sides), retrained on movies like these. Two equally good methods have
trained models that differ, so that the first test calls one of the methods better far more often than its
level says.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.stats import nct
from scipy.stats import t as student

from obygaze_features.arguments import checked
from obygaze_models.evaluation.intervals import FEWEST_MOVIES, are_equal, variance_factor

EXACT_UP_TO = 20
"""Up to this number of pairs all sign patterns are counted: 2^20 are a million."""

N_DRAWS = 100_000
"""Sign patterns drawn where there are too many to count."""

LEVEL = 0.05
"""Level of the tests whose power `detectable` computes."""
POWER = 0.8
"""How often such a test finds the difference that `detectable` returns."""

ROUNDING = 1e-10
"""Sums that are equal on paper differ by rounding, which is far below this share of the sum of sizes."""

EQUAL_TO_0 = 1e-9
"""Differences that are nearer to 0 are 0 but for rounding."""

FAMILIES: dict[str, tuple[str, ...]] = {
    "two classes": ("average_precision", "f1_pos", "f1_weighted", "f1_macro", "balanced_accuracy", "auc"),
    "levels": ("quadratic_kappa", "spearman", "mean_absolute_error"),
}
"""The metrics whose tests are one family. Fixed: a metric that is added later is in none, so that it moves no
adjusted p-value; to test it too, name a family of its own."""


@dataclass(frozen=True, slots=True)
class SignFlip:
    """Result of a sign-flip test.

    Attributes
    ----------
    p : float
        Two-sided; NaN without a pair.
    n_pairs : int
        Pairs whose difference is defined.
    n_patterns : int
        Number of sign patterns that were counted.
    exact : bool
        Whether these are all patterns.
    """

    p: float
    n_pairs: int
    n_patterns: int
    exact: bool


@checked
def sign_flip(differences: ArrayLike, *, seed: int = 0) -> SignFlip:
    """Test whether the paired differences [K] of two trained models are centred on zero (sign-flip test).

    If the two models were interchangeable, each movie's difference would be as likely with the opposite sign.
    The p-value is the share of the 2^K sign patterns whose mean is at least as far from 0 as the one found
    (Fisher 1935, chapter 21). Differences that are NaN (a movie that does not define the metric) are left
    out.

    Parameters
    ----------
    differences : array-like of float, shape [K]
    seed : int
        Seed of the patterns that are drawn when K is above `EXACT_UP_TO`. The pattern of the differences as
        they are then counts as drawn, so that p is never 0 (Phipson and Smyth 2010).
    """
    values = np.asarray(differences, dtype=np.float64)
    values = values[~np.isnan(values)]
    n = len(values)
    if not n:
        return SignFlip(float("nan"), n_pairs=0, n_patterns=0, exact=True)
    # A pattern counts if its sum is at least as far from 0 as the observed one. Sums that are equal but for
    # rounding count as equal.
    rounding_error = ROUNDING * np.abs(values).sum()
    min_distance = abs(values.sum()) - rounding_error

    if n <= EXACT_UP_TO:
        sums = _sums_of_all_sign_patterns(values)
        p = float(np.mean(np.abs(sums) >= min_distance))
        return SignFlip(p, n, len(sums), exact=True)

    sums = _sums_of_drawn_sign_patterns(values, seed)
    n_as_far = int(np.count_nonzero(np.abs(sums) >= min_distance))
    p = (n_as_far + 1) / (N_DRAWS + 1)  # the observed pattern counts as drawn
    return SignFlip(p, n, N_DRAWS, exact=False)


def _sums_of_all_sign_patterns(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the sum of K values under each of the 2^K patterns of signs, [2^K]."""
    sums = np.zeros(1)
    for value in values:
        # Every pattern of the values before goes on with this value's sign, or with the opposite one.
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _sums_of_drawn_sign_patterns(values: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Compute the sum of K values under each of `N_DRAWS` random patterns of signs, [N_DRAWS]."""
    rng = np.random.default_rng(seed)
    zeros_and_ones = rng.integers(0, 2, (N_DRAWS, len(values)), dtype=np.int8)
    signs = zeros_and_ones * 2 - 1  # -1 or 1
    sums: NDArray[np.float64] = signs @ values
    return sums


@dataclass(frozen=True, slots=True)
class CorrectedT:
    """Result of a corrected resampled t test.

    Attributes
    ----------
    t : float
        Student's statistic; its degrees of freedom are the number of pairs less 1. NaN if all differences are
        equal, and not 0.
    p : float
        Two-sided; NaN with fewer than three pairs: two may differ alike by chance.
    """

    t: float
    p: float


@checked
def corrected_t(differences: ArrayLike) -> CorrectedT:
    """Test whether two methods differ by the corrected paired t test of Nadeau and Bengio (2003).

    `differences` [K] are those of the two methods on each movie; those that are NaN are left out. The
    variance of the mean difference is corrected for models of different folds that learn from nearly the same
    movies: it is 1/K + 1/(K - 1) times the variance between movies (`t_interval` with ``covers="method"``
    gives the interval).

    If all differences are equal, their variance is unknown, and so is t: movies of few clips have few
    possible values. The p-value is then that of their signs (`smallest_p`).

    Examples
    --------
    >>> test = corrected_t([0.08, 0.11, 0.02, 0.07, 0.10, 0.04])
    >>> f"t = {test.t:.2f}, p = {test.p:.3f}"
    't = 3.34, p = 0.021'
    """
    values = np.asarray(differences, dtype=np.float64)
    values = values[~np.isnan(values)]
    n = len(values)
    if n < FEWEST_MOVIES:
        return CorrectedT(float("nan"), float("nan"))
    mean = float(values.mean())
    error = float(values.std(ddof=1)) * variance_factor(n, "method") ** 0.5
    if are_equal(values):
        has_difference = abs(mean) > EQUAL_TO_0
        return CorrectedT(float("nan"), smallest_p(n)) if has_difference else CorrectedT(0.0, p=1.0)
    t = mean / error
    return CorrectedT(t, float(2 * student.sf(abs(t), n - 1)))


@checked
def smallest_p(n_pairs: int) -> float:
    """Return the smallest p-value that the exact sign-flip test can give with K pairs.

    It is that of differences which all have the same sign. Of the 2^K patterns only that one, and the pattern
    with all signs reversed, are as far from 0: p is 2 / 2^K. Without a pair it is 1.
    """
    return min(1.0, 2.0 ** (1 - n_pairs))


def detectable(n_pairs: int) -> float:
    """Return the smallest mean difference that a paired t test detects with power `POWER`.

    The difference is in standard deviations between movies, and the test is two-sided at `LEVEL`. If the true
    difference is d, the test's t has a noncentral t distribution around d sqrt(n), and the power is the
    probability that it exceeds the critical value (Cohen 1988, chapter 2). NaN with fewer than 3 pairs.
    """
    if n_pairs < 3:
        return float("nan")
    degrees_of_freedom = n_pairs - 1
    critical_value = student.ppf(1 - LEVEL / 2, degrees_of_freedom)

    def power_above_target(effect: float) -> float:
        """Compute the test's power at a true difference of this size, less `POWER`."""
        # A significant difference of the wrong sign is left out: it is all but impossible at this power.
        power = nct.sf(critical_value, degrees_of_freedom, effect * np.sqrt(n_pairs))
        return float(power - POWER)

    # The power rises with the difference. At a thousandth it is about `LEVEL` / 2, below the target; at twice
    # the critical value it is above the target for any number of pairs.
    too_small = 1e-3
    large_enough = 2 * critical_value
    return float(brentq(power_above_target, too_small, large_enough))


# --- multiple testing
# ---------------------------------------------------------------------------


def in_family(metrics: Sequence[str], p_values: ArrayLike, family: str) -> NDArray[np.float64]:
    """Adjust the p-values [K] of those of K metrics that are in a family, by Holm's method.

    A family are the metrics whose tests answer one question together, such as which of two models is better.
    `family` is its key in `FAMILIES`. The result is NaN for metrics outside of the family.
    """
    is_in_family = np.isin(metrics, FAMILIES[family])
    p_of_family = np.where(is_in_family, np.asarray(p_values, np.float64), np.nan)
    return holm(p_of_family)


@checked
def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust the p-values [K] of a family of tests by Holm-Bonferroni (family-wise error rate).

    The i-th smallest is multiplied by K - i + 1. No adjusted value is below that of a smaller p-value, or
    above 1 (Holm 1979). The adjustment holds however the tests depend on each other. NaN stays NaN and is not
    in the family.
    """
    raw = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full_like(raw, np.nan)
    defined = np.flatnonzero(~np.isnan(raw))
    rising = np.argsort(raw[defined], kind="stable")
    order = defined[rising]  # indices of the tests, from the smallest p-value to the largest
    factors = np.arange(order.size, 0, -1)  # K for the smallest, 1 for the largest
    multiplied = raw[order] * factors
    never_falling = np.maximum.accumulate(multiplied)
    adjusted[order] = np.minimum(never_falling, 1.0)
    return adjusted
