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

SIDE = 0.025
"""A number is outside its null where fewer draws lie on its side of it: one side of a 95 % range."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Null:
    """The null of a number.

    Attributes
    ----------
    kind : str
        What is exchanged or planted, in words.
    data : Any
        What was observed: arrays whose meaning the other attributes know.
    number : callable
        From data to the number.
    exchange : callable
        From data and a random generator to data under which the sentence is untrue.
    planted : tuple of float
        The numbers that are planted, where it plants some. Draws of several lie in as many heaps: what is
        between these no draw gives.
    """

    kind: str
    data: Any
    number: Callable[[Any], float]
    exchange: Callable[[Any, np.random.Generator], Any]
    planted: tuple[float, ...] = ()

    @cached_property
    def draws(self) -> Numbers:
        """The number of `N_DRAWS` exchanges [R], from a fixed seed."""
        rng = np.random.default_rng(0)
        return np.array([self.number(self.exchange(self.data, rng)) for _ in range(N_DRAWS)])

    @property
    def middle(self) -> float:
        """What chance gives, the median of the draws; NaN where it gives no number."""
        defined = self.draws[np.isfinite(self.draws)]
        return float(np.median(defined)) if defined.size else math.nan

    @property
    def says(self) -> str:
        """What chance gives, in words: the median, or the numbers that are planted."""
        if self.planted:
            return f"{self.planted_text} planted gives as much"
        return f"chance gives {self.middle:.3g}"

    @property
    def planted_text(self) -> str:
        """The numbers that are planted; empty where none is."""
        return " or ".join(f"{number:.3g}" for number in self.planted)

    def p(self, least: float, most: float) -> float:
        """Return how often chance gives a number that is as far on the sentence's side, or farther.

        Parameters
        ----------
        least, most
            The range that makes the sentence true. Where it has one end, the sentence's side is beyond it;
            of two, nearer to their middle. Draws without a number count as beyond.
        """
        observed = self.number(self.data)
        reached = _toward(self.draws, least, most) >= _toward(np.array([observed]), least, most)
        undefined = ~np.isfinite(self.draws)
        return float((1 + np.count_nonzero(reached | undefined)) / (1 + len(self.draws)))


def _toward(values: Numbers, least: float, most: float) -> Numbers:
    """Measure how far values [N] are on the side of a range."""
    if math.isinf(most):
        return values
    if math.isinf(least):
        return -values
    return -np.abs(values - (least + most) / 2)


# --- exchanges
# ---------------------------------------------------------------------------
def permuted_within(labels: NDArray[Any], blocks: NDArray[np.intp], rng: np.random.Generator) -> NDArray[Any]:
    """Exchange labels [N] at random within blocks [N] of neighbouring rows: blocks must rise."""
    order = np.argsort(blocks + rng.random(len(blocks)))
    return np.asarray(labels[order])


def levels_within_films(
    labels: NDArray[Any], films: NDArray[np.intp], number: Callable[[NDArray[Any]], float]
) -> Null:
    """Exchange the labels [N] of clips within each film [N]; rows are sorted by film."""
    return Null(
        "levels within films", labels, number, lambda levels, rng: permuted_within(levels, films, rng)
    )


def signs_by_film(values: Numbers, kind: str = "signs by film") -> Null:
    """Exchange the sign of each film's value [M]; NaN is left out."""
    return Null(kind, _defined(values), _mean, _flipped)


def planted_beside(
    values: Numbers, centre: float, margin: float, sides: Sequence[float] = (-1.0, 1.0)
) -> Null:
    """Plant values of units [M] whose mean is twice the margin from the centre, on one of its sides.

    The values' distances from their mean stay, each with a sign of chance.
    """
    defined = _defined(values)

    def planted(own: Numbers, rng: np.random.Generator) -> Numbers:
        side = rng.choice(sides)
        return np.asarray(centre + side * 2 * margin + _flipped(own - _mean(own), rng))

    places = tuple(centre + side * 2 * margin for side in sides)
    return Null("a planted difference of twice the margin", defined, _mean, planted, places)


def _defined(values: Numbers) -> Numbers:
    return values[np.isfinite(values)]


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else math.nan


def _flipped(values: Numbers, rng: np.random.Generator) -> Numbers:
    return np.asarray(values * rng.choice([-1.0, 1.0], size=len(values)))
