"""Draw the numbers that a sentence's measure gives where the sentence is untrue by construction.

A number that agrees with a sentence says nothing where chance gives the same. Each sampled number therefore
has a null: the same measure of data whose labels are exchanged within what they share (levels within films,
conditions within persons, one annotator's labels within films, signs of films). A sentence that says that
things are alike has another: data in which they differ, by twice the margin that counts as alike.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

N_DRAWS = 400
"""Draws of a null."""

ONE_SIDED_LEVEL = 0.025
"""A number is outside its null if a smaller share of the draws is as extreme: one side of a 95 % range."""

RELATIVE_ROUNDING = 1e-12
"""Part of the observed number by which a draw may be below it and count as equal to it."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Null:
    """The distribution that a statistic has where the sentence is untrue, sampled by randomising data.

    Attributes
    ----------
    kind : str
        What is exchanged or planted, in words.
    data : Any
        What was observed: arrays whose meaning the other attributes know.
    statistic : callable
        From data to the statistic, a number.
    randomise : callable
        From data and a random generator to data under which the sentence is untrue.
    planted : tuple of float
        For a null that makes data with a given mean: the means, one of which each data set gets. If there are
        several, the draws lie around each of them and none lies between them.
    """

    kind: str
    data: Any
    statistic: Callable[[Any], float]
    randomise: Callable[[Any, np.random.Generator], Any]
    planted: tuple[float, ...] = ()

    @cached_property
    def draws(self) -> Numbers:
        """The statistic of each of `N_DRAWS` data sets in which the sentence is untrue, [R].

        The data sets are randomised from a fixed seed.
        """
        rng = np.random.default_rng(0)
        statistics = []
        for _ in range(N_DRAWS):
            untrue_data = self.randomise(self.data, rng)
            statistics.append(self.statistic(untrue_data))
        return np.array(statistics)

    @property
    def median(self) -> float:
        """The median of the draws that are finite: what chance gives; NaN if none is finite."""
        defined = _defined(self.draws)
        if not defined.size:
            return math.nan
        return float(np.median(defined))

    @property
    def as_clause(self) -> str:
        """A clause that explains a number that the null gives as well.

        It names the median of the draws, as `chance gives 0.52`, or the means of the null's data if these
        were planted, as `0.4 or 0.6 planted gives as much`.
        """
        if self.planted:
            return f"{self.planted_text} planted gives as much"
        return f"chance gives {self.median:.3g}"

    @property
    def planted_text(self) -> str:
        """The numbers that are planted; empty where none is."""
        return " or ".join(f"{number:.3g}" for number in self.planted)

    def p(self, minimum: float, maximum: float) -> float:
        """Return the one-sided p: the share of draws that support the sentence as clearly as the data do.

        Parameters
        ----------
        minimum, maximum
            The range of the statistic that makes the sentence true; -inf or inf where it has no end. A draw
            that is not finite counts as supporting the sentence.
        """
        observed = np.array([self.statistic(self.data)])
        depth_observed = _depth_in_range(observed, minimum, maximum)
        # A draw that is less clear by rounding alone is as clear: sums in another order differ in last bits.
        least_depth = depth_observed - RELATIVE_ROUNDING * np.abs(observed)
        is_as_clear = _depth_in_range(self.draws, minimum, maximum) >= least_depth
        is_undefined = ~np.isfinite(self.draws)
        n_as_clear = np.count_nonzero(is_as_clear | is_undefined)
        # The observed statistic counts as one more draw, so that p is never 0.
        return float((1 + n_as_clear) / (1 + len(self.draws)))


def _depth_in_range(values: Numbers, minimum: float, maximum: float) -> Numbers:
    """Return a score for each value [N]: the deeper the value lies in a range, the higher the score.

    In a range without an upper end (or without any), larger values are deeper; in one without a lower end,
    smaller values are; in a range with two ends, values nearer to its middle are.
    """
    if math.isinf(maximum):
        return values
    if math.isinf(minimum):
        return -values
    middle = (minimum + maximum) / 2
    return -np.abs(values - middle)


# --- exchanges
# ---------------------------------------------------------------------------
def permuted_within(labels: NDArray[Any], blocks: NDArray[np.intp], rng: np.random.Generator) -> NDArray[Any]:
    """Permute labels [N] at random within blocks of neighbouring rows, such as films.

    `blocks` [N] is the number of each row's block; the numbers must not fall from row to row.
    """
    # Numbers of blocks are whole. With a random number below 1 added, sorting puts the rows of a block in a
    # random order, and moves none to another block.
    sort_keys = blocks + rng.random(len(blocks))
    order = np.argsort(sort_keys)
    return np.asarray(labels[order])


def null_of_levels_within_films(
    labels: NDArray[Any], films: NDArray[np.intp], statistic: Callable[[NDArray[Any]], float]
) -> Null:
    """Return the null in which the labels of clips are permuted within each film.

    Parameters
    ----------
    labels : ndarray, shape [N]
        Labels of the clips, which are sorted by film.
    films : ndarray, shape [N]
        Number of each clip's film.
    statistic
        From labels to a number.
    """

    def permute(observed: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Permute the labels within each film."""
        return permuted_within(observed, films, rng)

    return Null("levels within films", labels, statistic, permute)


def null_of_signs_by_film(values: Numbers, kind: str = "signs by film") -> Null:
    """Return the null of a mean in which the sign of each film's value [M] is random; NaN is left out."""
    return Null(kind, _defined(values), _mean, _with_random_signs)


def planted_off_centre(
    values: Numbers, centre: float, margin: float, sides: Sequence[float] = (-1.0, 1.0)
) -> Null:
    """Return the null for the sentence that a mean is about `centre`: data whose mean is clearly elsewhere.

    Each of the null's data sets is made from the observed values. Their mean is moved to twice the margin
    from the centre, such as from 0.5 to 0.4 or 0.6 with a margin of 0.05; which of the two is random. Each
    value's distance from the mean keeps its size and gets a random sign, so that the data sets differ.

    Parameters
    ----------
    values : ndarray, shape [M]
        The value of each unit.
    centre
        The mean that the sentence names, such as 0.5.
    margin
        How far from it a mean may lie to count as alike.
    sides
        Sides on which the mean may be planted: -1 below the centre, 1 above it.
    """
    defined = _defined(values)

    def plant(observed: Numbers, rng: np.random.Generator) -> Numbers:
        """Move the mean to twice the margin from `centre`, with random signs of the distances from it."""
        side = rng.choice(sides)
        distances = _with_random_signs(observed - _mean(observed), rng)
        return np.asarray(centre + side * 2 * margin + distances)

    planted_means = tuple(centre + side * 2 * margin for side in sides)
    return Null(
        kind="a planted difference of twice the margin",
        data=defined,
        statistic=_mean,
        randomise=plant,
        planted=planted_means,
    )


def _defined(values: Numbers) -> Numbers:
    """Return the values that are finite numbers."""
    return values[np.isfinite(values)]


def _mean(values: NDArray[Any]) -> float:
    """Return the mean of values; NaN of none."""
    if not values.size:
        return math.nan
    return float(values.mean())


def _with_random_signs(values: Numbers, rng: np.random.Generator) -> Numbers:
    """Return the values, each with its sign kept or changed with equal probability."""
    return np.asarray(values * rng.choice([-1.0, 1.0], size=len(values)))
