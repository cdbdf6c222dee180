"""Worlds of scored films and of judgements, and what the commands of `obygaze film` say of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from scipy.special import expit, logit

from benchmarks.planted.row import Cell, Column, Draw, Floats, Row
from obygaze_film.cells import Cells
from obygaze_film.comparison import Estimate, FilmSample, estimate_contrast, estimate_groups, sample_of

Rates = Callable[[np.random.Generator, Floats], Floats]
"""Draws films' rates [N] of their numbers [N]."""


@dataclass(frozen=True, eq=False)
class World:
    """Films with a number, of which their rates and a model's errors may depend, and who judges them.

    Attributes
    ----------
    rates : callable
    knows : float
        How far the model's scores of positives lie above the others, in SD; below 0 the other way round.
    bias : float
        How many logits the model is too high in films whose number is above 0.
    is_skewed : bool
        Whether the number is lognormal, in place of ten equally frequent ones.
    second : tuple of float
        The chance that the second judge, who overlooks half of the positives, judges a window: of films whose
        number is at most 0, and above.
    """

    rates: Rates
    knows: float = 1.35
    bias: float = 0.0
    is_skewed: bool = False
    second: tuple[float, float] = (0.0, 0.0)
    by_window: bool = False

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


class Population(NamedTuple):
    """What is true of a world's rates: their mean, the difference of halves above and below 0, the slope."""

    mean: float
    difference: float
    slope: float


@lru_cache
def population(world: World) -> Population:
    """Compute the truths of a world on many films."""
    rng = np.random.default_rng(1)
    x = world.numbers(rng, 400_000)
    rates = world.rates(rng, x)
    return Population(
        mean=float(rates.mean()),
        difference=float(rates[x > 0].mean() - rates[x <= 0].mean()),
        slope=float(np.polyfit(x, rates, 1)[0]),
    )


def judged_films(
    rng: np.random.Generator, world: World, design: tuple[int, ...], x: Floats
) -> list[FilmSample]:
    """Draw films of 80 to 160 windows, and judgements of windows drawn at random in some of them."""
    films = []
    _, n_judged, n_windows = design
    for index, (number, rate) in enumerate(zip(x, world.rates(rng, x), strict=True)):
        n = int(rng.integers(80, 161))
        y = (rng.random(n) < rate).astype(float)
        score = world.knows * (abs(world.knows) * (y - 0.5) + rng.normal(size=n))
        if number > 0:
            score += world.bias
        cells = Cells(
            np.zeros((n, 2)), np.ones(n), np.ones(n), expit(score + logit(np.clip(rate, 0.02, 0.98)))
        )
        drawn = rng.permutation(n)[: n_windows if index < n_judged else 0]
        chance = world.second[int(number > 0)]
        by_second = rng.random(len(drawn) if world.by_window else 1) < chance
        by_second = np.broadcast_to(by_second, len(drawn)).astype(float)
        is_overlooked = (by_second > 0) & (rng.random(len(drawn)) < 0.5)  # half is
        judged = np.where(is_overlooked, 0.0, y[drawn])
        judges = {"first": 1 - by_second}
        if any(world.second):
            judges["second"] = by_second
        films.append(
            sample_of(cells, drawn, judged, {name: number for name, number in judges.items() if number.any()})
        )
    return films


def compared(rng: np.random.Generator, world: World, *design: int) -> Draw:
    """Ask `film compare` for the mean of films, a difference of two groups, and a trend."""
    x = world.numbers(rng, design[0])
    if not world.is_skewed:  # above and below 0 in turn, so that both groups have judged films
        x = np.abs(x) * np.resize([-1.0, 1.0], design[0])
    films = judged_films(rng, world, design, x)
    side = (x > 0).astype(float)
    (mean,) = estimate_groups([films])
    trend = estimate_contrast(films, x)
    difference = estimate_contrast(films, side)
    truth = population(world)
    results = {
        "mean": mean.low <= truth.mean <= mean.high,
        "trend": held(trend, truth.slope),
        "trend refused": bool(trend.reason),
        "difference": held(difference, truth.difference),
        "difference refused": bool(difference.reason),
        "worth": mean.sample_size_ratio,
    }
    if any(world.second):
        unnamed = estimate_contrast([replace(film, judges={}) for film in films], side)
        results["difference, judges not known"] = held(unnamed, truth.difference)
    return results


def held(contrast: Estimate, truth: float) -> float:
    """Say whether an interval holds the truth; NaN if it is refused."""
    return np.nan if contrast.reason else float(contrast.low <= truth <= contrast.high)


FAIR: Final = logits(share=0.25, spread=0.9)
COMPARED: Final = (
    World(logits(share=0.25, spread=0.0)),
    World(FAIR),
    World(FAIR, knows=0.0),
    World(FAIR, knows=-2.4),
    World(FAIR, bias=2.0),
    World(logits(share=0.25, spread=1.6, none=0.1), knows=2.4),
    World(logits(share=0.9, spread=0.9, by=0.12)),
    World(logits(share=0.25, spread=0.9, by=0.12), knows=2.4),
)
RARE: Final = {
    "none in 80 % of films": World(logits(0.25, 0.9, none=0.8)),
    "share .02": World(logits(0.02, 0.9)),
    "share .98": World(logits(0.98, 0.9)),
    "none in 98 % of films, falling to 48 %": World(logits(0.25, 0.9, none=lambda x: 0.98 - (x + 4.5) / 18)),
    "share .004 rising to .036": World(logits(0.012, 0.5, by=0.25)),
}
SKEWED: Final = {
    "none in 98 % of films, falling to 48 %": World(
        logits(share=0.25, spread=0.9, none=lambda x: np.clip(0.98 - (x + 4.5) / 18, 0.48, 0.98)),
        is_skewed=True,
    ),
}
JUDGES: Final = {
    "each half of the films of both groups": World(FAIR, second=(0.5, 0.5)),
    "the second 20 % of one group, 80 % of the other": World(FAIR, second=(0.2, 0.8)),
    "the same, by windows": World(FAIR, second=(0.2, 0.8), by_window=True),
    "each one group": World(FAIR, second=(0.0, 1.0)),
}
MODELS: Final = {
    "useless": World(FAIR, knows=0.0),
    "fair: AUC .83": World(FAIR),
    "good: AUC .95": World(FAIR, knows=2.4),
}
DESIGNS: Final = ((20, 10, 10), (20, 20, 10), (60, 10, 20), (60, 20, 10), (200, 20, 10))
HEADS: Final = ("films, judged, windows in each",)


def by_design(worlds: Mapping[str, World], designs: Sequence[tuple[int, ...]] = DESIGNS) -> list[Cell]:
    """Make a cell of each world and design; worlds without a name share a line."""
    return [
        Cell((*([name] if name else []), f"{design[0]}, {design[1]}, {design[2]}"), (world, *design))
        for name, world in worlds.items()
        for design in designs
    ]


ROWS = [
    Row(
        "compare", "docs/film-compare.md", "film compare",
        "How often the 95 % interval holds the truth, in eight worlds: films alike and unlike, "
        "positives frequent or not, with and without a trend; useless, fair, good and reversed models, one "
        "that is too high in one group.",
        HEADS,
        [cell for world in COMPARED for cell in by_design({"": world})],
        compared,
        {"mean": Column(0.93), "difference": Column(0.93), "trend": Column(0.93)},
        full=150, small=2,
    ),
    Row(
        "compare-rare", "docs/film-compare.md", "film compare --trend",
        "Rare things: how often the interval holds the truth, and how often it is refused.",
        ("world", *HEADS), by_design(RARE), compared,
        {"trend": Column(0.93), "trend refused": Column(high=0.2), "difference": Column(0.93),
         "difference refused": Column()},
        full=200, small=2,
    ),
    Row(
        "compare-skewed", "docs/film-compare.md", "film compare --trend",
        "A few films' numbers far above the others: the interval of a rare thing's trend is then too narrow.",
        ("world", *HEADS), by_design(SKEWED), compared,
        {"trend": Column(0.8), "trend refused": Column(high=0.2)},
        full=300, small=2,
    ),
    Row(
        "compare-judges", "docs/film-compare.md", "film compare --by",
        "Two judges, of whom the second overlooks half of the positives, and groups that do not differ: how "
        "often the interval of the difference holds 0.",
        ("judged by", *HEADS), by_design(JUDGES, ((20, 20, 10), (60, 30, 10))), compared,
        {"difference": Column(0.93), "difference refused": Column(),
         "difference, judges not known": Column()},
        full=200, small=2, small_cells=6,
    ),
    Row(
        "compare-worth", "docs/film-compare.md", "film compare",
        "Without the model, a mean needs this many times the judged windows for the same interval.",
        ("model", *HEADS),
        by_design(MODELS, ((20, 10, 10), (60, 10, 20), (200, 20, 20))),
        compared, {"worth": Column(0.9, digits=2)},
        full=60, small=2,
    ),
]  # fmt: skip
