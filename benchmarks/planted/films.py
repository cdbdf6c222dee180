"""Worlds of scored films and of judgements, and what the commands of `obygaze film` say of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import expit, logit

from benchmarks.planted.row import Cell, Column, Draw, Floats, Row
from obygaze_film.comparison import FilmSample, estimate_groups, sample_of
from obygaze_film.judged_rate import Cells

Rates = Callable[[np.random.Generator, Floats], Floats]
"""Draws films' rates [N] of their numbers [N]."""


@dataclass(frozen=True)
class World:
    """Films with a number, their rates, and a model: logits between its classes."""

    rates: Rates
    knows: float = 2.0
    is_skewed: bool = False

    def numbers(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw the number of each film."""
        return 3 * rng.lognormal(size=n) - 4 if self.is_skewed else rng.integers(0, 10, n) - 4.5


def logits(
    share: float, spread: float, by: float = 0.0, none: Callable[[Floats], Floats] | float = 0.0
) -> Rates:
    """Draw rates on the logit scale, rising by `by` a unit; a share of films has none."""

    def rates(rng: np.random.Generator, x: Floats) -> Floats:
        empty = rng.random(len(x)) < (none if isinstance(none, float) else none(x))
        return np.where(empty, 0.0, expit(logit(share) + by * x + spread * rng.normal(size=len(x))))

    return rates


@lru_cache
def population(world: World) -> tuple[float, float, float]:
    """Compute the mean rate, the difference of the halves above and below 0, and the slope."""
    rng = np.random.default_rng(1)
    x = world.numbers(rng, 400_000)
    rates = world.rates(rng, x)
    return (
        float(rates.mean()),
        float(rates[x > 0].mean() - rates[x <= 0].mean()),
        float(np.polyfit(x, rates, 1)[0]),
    )


def judged_films(
    rng: np.random.Generator, world: World, n_films: int, n_judged: int, n_windows: int
) -> tuple[list[FilmSample], Floats]:
    """Draw films of 80 to 160 windows, and judgements of windows drawn at random in some of them."""
    x = world.numbers(rng, n_films)
    films = []
    for place, rate in enumerate(world.rates(rng, x)):
        n = int(rng.integers(80, 161))
        y = (rng.random(n) < rate).astype(float)
        score = world.knows * (world.knows * (y - 0.5) + rng.normal(size=n))
        cells = Cells(
            np.zeros((n, 2)), np.ones(n), np.ones(n), expit(score + logit(np.clip(rate, 0.02, 0.98)))
        )
        own = rng.permutation(n)[: n_windows if place < n_judged else 0]
        films.append(sample_of(cells, own, y[own]))
    return films, x


def compared(rng: np.random.Generator, world: World, *design: int) -> Draw:
    """Ask for the mean of a group."""
    films, _ = judged_films(rng, world, *design)
    (mean,) = estimate_groups([films])
    return {"mean": mean.low <= population(world)[0] <= mean.high}


COMPARED: Final[Sequence[tuple[str, World]]] = (
    ("fair", World(logits(0.25, 0.9))),
    ("useless model", World(logits(0.25, 0.9), knows=0.0)),
)
DESIGNS: Final = ((20, 10, 10), (20, 20, 10), (60, 20, 10))

ROWS = [
    Row(
        "compare", "docs/film-compare.md", "film compare",
        "How often the 95 % interval holds the truth.",
        ("films, judged, windows in each",),
        [Cell((f"{films}, {judged}, {windows}",), (world, films, judged, windows))
         for films, judged, windows in DESIGNS for _, world in COMPARED],
        compared,
        {"mean": Column(0.93)},
        full=300, small=2,
    ),
]  # fmt: skip
