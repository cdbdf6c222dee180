"""Rankings by pairs (`obygaze manifest rank`): strengths of many shapes, and workers who answer at random."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import expit
from scipy.stats import spearmanr

from benchmarks.planted.row import Cell, Column, Draw, Floats, Row
from benchmarks.planted.worlds import STRENGTHS, Strengths
from obygaze_models.evaluation.ranking import centre, next_pairs, rank_items

PAGE: Final = "docs/annotators.md"
HOLDS: Final = Column(0.9)


@dataclass(frozen=True)
class Round:
    """Who compares what.

    Attributes
    ----------
    items, each, workers : int
        Number of items, comparisons of each, and workers.
    at_random : float
        Share of workers who toss coins.
    by_quicksort : bool
        Whether pairs are those of `next_pairs`, or drawn.
    """

    items: int
    each: int
    workers: int
    at_random: float = 0.0
    by_quicksort: bool = False

    @property
    def tosses(self) -> np.ndarray:
        """Mark the workers who toss coins [W]."""
        return np.arange(self.workers) < round(self.at_random * self.workers)

    def judge(self, rng: np.random.Generator, truth: Floats) -> list[tuple[str, str, str]]:
        """Draw comparisons of items of these strengths [N]: worker, chosen, other."""
        items = [f"{k:03}" for k in range(self.items)]
        names = [f"{k:02}" for k in range(self.workers)]
        answers: list[tuple[str, str, str]] = []
        while n_left := self.items * self.each // 2 - len(answers):
            if self.by_quicksort:
                sides = np.array(next_pairs(items, answers)[:n_left], dtype=np.int64)
            else:
                permuted = [rng.permutation(self.items).reshape(-1, 2) for _ in range(self.each)]
                sides = np.concatenate(permuted)
            worker = rng.integers(self.workers, size=len(sides))
            p = expit(truth[sides[:, 0]] - truth[sides[:, 1]])
            wins = rng.random(len(sides)) < np.where(self.tosses[worker], 0.5, p)
            sides = np.where(wins[:, None], sides, sides[:, ::-1])
            answers += [(names[w], items[a], items[b]) for w, (a, b) in zip(worker, sides, strict=True)]
        return answers


def ranked(rng: np.random.Generator, compared: Round, truth: Floats) -> Draw:
    """Rank items of known strengths."""
    ranking = rank_items(compared.judge(rng, truth))
    strength = truth - centre(truth)
    named = ranking.workers["random"].to_numpy()
    # Items of one strength share the ranks that they have together.
    n_stronger = (truth > truth[:, None]).sum(axis=1)
    n_as_strong = (truth >= truth[:, None]).sum(axis=1)
    is_given = np.isfinite(ranking.low) & np.isfinite(ranking.high)
    return {
        "Spearman": spearmanr(ranking.strength, truth).statistic,
        "interval given": is_given,
        "strength holds": (ranking.low <= strength) & (strength <= ranking.high),
        "rank holds": (ranking.rank_low <= n_as_strong) & (ranking.rank_high >= n_stronger + 1),
        "width, logits": ranking.high - ranking.low,
        "random workers named": named[compared.tosses] if compared.tosses.any() else np.nan,
        "others named": named[~compared.tosses],
    }


def ranked_normal(rng: np.random.Generator, compared: Round, spread: float) -> Draw:
    """Rank items whose strengths are normal with this deviation."""
    return ranked(rng, compared, spread * rng.normal(size=compared.items))


def ranked_world(rng: np.random.Generator, compared: Round, strengths: Strengths) -> Draw:
    """Rank items of a world of strengths."""
    return ranked(rng, compared, strengths(rng, compared.items))


SHOWN: Final = Column()
ROWS = [
    Row(
        "ranking", PAGE, "manifest rank",
        "100 items with normally distributed strengths (SD in logits), 30 workers: rank correlation with "
        "the truth, how often the 95 % intervals of an item's strength and rank contain the truth, and "
        "which share of workers is named as random.",
        ("pairs", "comparisons", "workers at random", "SD"),
        [Cell((pairs, str(each), name, f"{spread:g}"),
              (Round(100, each, 30, share, pairs == "quicksort"), spread), {"Spearman": Column(low=low)})
         for pairs, each, name, share, spread, low in (
             ("drawn", 20, "none", 0, 3.0, 0.95), ("drawn", 20, "a third", 1 / 3, 3.0, 0.9),
             ("drawn", 20, "none", 0, 1.0, 0.8), ("drawn", 20, "a third", 1 / 3, 1.0, 0.7),
             ("quicksort", 16, "none", 0, 3.0, 0.95), ("quicksort", 16, "a third", 1 / 3, 3.0, 0.9),
             ("quicksort", 12, "none", 0, 3.0, 0.9))],
        ranked_normal,
        {"Spearman": SHOWN, "strength holds": HOLDS, "rank holds": HOLDS, "random workers named": SHOWN,
         "others named": Column(high=0.02)},
        full=16, small=2, small_cells=1,
    ),
    Row(
        "ranking-worlds", PAGE, "manifest rank",
        "50 items with other distributions of strengths, 16 comparisons of each, 12 workers: how often "
        "intervals are given, and how often they contain the truth.",
        ("strengths",),
        [Cell((name,), (Round(50, 16, 12), strengths)) for name, strengths in STRENGTHS.items()],
        ranked_world,
        {"interval given": Column(low=1.0), "strength holds": HOLDS, "rank holds": HOLDS,
         "width, logits": Column(digits=1)},
        full=40, small=2, small_cells=2,
    ),
]  # fmt: skip
