"""Rank items by pairwise judgements of many workers, some of whom answer at random.

Strengths and reliabilities are drawn from their posterior (`obygaze_models.evaluation.strengths`). Only
differences of strengths are known. Their zero is an item that would be chosen over half of the others, in
each draw: a mean would hang on how far the farthest item lies, which nobody can know of one that is always
chosen, and a median jumps from one cluster to the next.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from obygaze_models.blas import one_blas_thread
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.strengths import Comparisons, draw_posterior, n_first_draws

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ENDS: Final = (0.025, 0.975)
HALF: Final = 0.5
SURE: Final = 0.9
"""A worker is named as random where the reliability is below a half with this probability."""
DRAWS: Final = 1000
HALVINGS: Final = 40
"""Of the span of strengths, until their centre is found."""
MOST: Final = 10_000
"""Items: a thousand draws of their strengths and ranks are held."""

DRAW_S, COMPARISON_S = 0.8e-3, 0.9e-6
"""CPU seconds of a draw, and of each comparison in it (AMD EPYC, one core)."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Strengths of items, their ranks, and the workers.

    Attributes
    ----------
    items : tuple of str
    strength, low, high : ndarray, shape [N]
        Posterior median in logits, with its 95 % interval. An item of 0 would be chosen over half of the
        others in the mean (`centre`), one of 1 over an item of 0 with the probability 1 / (1 + exp(-1)).
    rank, rank_low, rank_high : ndarray, shape [N]
        From 1, the strongest, to N: the posterior median and its 95 % interval.
    workers : DataFrame
        A row for each: `worker`, `comparisons`; `reliability`, `low` and `high`, the share of judgements that
        are not random with its 95 % interval; and `random`, whether this worker answers at random.
    """

    items: tuple[str, ...]
    strength: Floats
    low: Floats
    high: Floats
    rank: Floats
    rank_low: Floats
    rank_high: Floats
    workers: pd.DataFrame


def rank_items(
    comparisons: Sequence[tuple[str, str, str]], *, masters: Sequence[str] = (), draws: int = DRAWS
) -> Ranking:
    """Rank items.

    Parameters
    ----------
    comparisons : sequence of (worker, chosen, other)
        Of two items each.
    masters : sequence of str
        Workers whose reliability is known to be 1.
    draws : int
        Of the posterior, after a fifth as many to begin with.

    Raises
    ------
    ProtocolError
        The comparisons leave items in parts that nothing connects, there are too many items, or a master
        compared none.

    Examples
    --------
    >>> said = [("w", "b", "a"), ("w", "c", "b"), ("v", "c", "a"), ("v", "b", "a")]
    >>> ranking = rank_items(said)
    >>> [ranking.items[place] for place in ranking.strength.argsort()]
    ['a', 'b', 'c']
    """
    in_order = sorted(comparisons)  # so that draws do not depend on the order of rows
    workers, worker = np.unique([name for name, *_ in in_order], return_inverse=True)
    items, sides = np.unique([[chosen, other] for _, chosen, other in in_order], return_inverse=True)
    pairs = sides.reshape(-1, 2)
    _refuse_many(items)
    unknown = [name for name in masters if name not in workers]
    if unknown:
        raise ProtocolError(f"no worker {unknown[0]!r}: there are {', '.join(workers.tolist())}")
    _refuse_parts(items, pairs)
    compared = Comparisons(pairs[:, 0], pairs[:, 1], worker, np.isin(workers, masters), len(items))
    with one_blas_thread():
        drawn = draw_posterior(compared, draws, np.random.default_rng(0))
    strengths = drawn.strengths - centre(drawn.strengths)[:, None]
    ranks = (-strengths).argsort(axis=1).argsort(axis=1) + 1.0
    low, strength, high = np.quantile(strengths, (ENDS[0], HALF, ENDS[1]), axis=0)
    # Ranks are whole numbers: an interval ends at ranks that were drawn.
    rank_low = np.quantile(ranks, ENDS[0], axis=0, method="lower")
    rank_high = np.quantile(ranks, ENDS[1], axis=0, method="higher")
    people = pd.DataFrame({"worker": workers, "comparisons": np.bincount(worker)})
    people["reliability"] = drawn.reliabilities.mean(axis=0)
    people[["low", "high"]] = np.quantile(drawn.reliabilities, ENDS, axis=0).T
    people["random"] = (drawn.reliabilities < HALF).mean(axis=0) >= SURE
    return Ranking(
        items=tuple(items.tolist()),
        strength=strength,
        low=low,
        high=high,
        rank=np.median(ranks, axis=0),
        rank_low=rank_low,
        rank_high=rank_high,
        workers=people,
    )


def expected_s(n_comparisons: int, draws: int = DRAWS) -> float:
    """Estimate the CPU seconds of `rank_items`, before it begins."""
    n_draws = draws + n_first_draws(draws)
    return n_draws * (DRAW_S + COMPARISON_S * n_comparisons)


def centre(strengths: Floats) -> Floats:
    """Find the strength that would be chosen over half of the items: the mean of 1 / (1 + exp(c - s)) is 1/2.

    Parameters
    ----------
    strengths : ndarray, shape [..., N]

    Returns
    -------
    ndarray, shape [...]

    Examples
    --------
    >>> centre(np.array([1.0, 2.0, 3.0])).round(2).item()
    2.0
    >>> centre(np.array([1.0, 2.0, 40.0])).round(2).item()
    2.66
    """
    low, high = strengths.min(axis=-1), strengths.max(axis=-1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_below = expit(strengths - middle[..., None]).mean(axis=-1) > HALF
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray((low + high) / 2)


def next_pairs(
    items: Sequence[str], comparisons: Sequence[tuple[str, str, str]] = ()
) -> list[tuple[str, str]]:
    """Choose the pairs that workers judge next, by quicksort.

    An item of a part is drawn at random; others are compared with it, and make the parts below and above it
    once all are. Where as many workers said one thing as the other the pair is asked again. Sorted items are
    sorted anew by other draws, in which what was judged counts (Maystre and Grossglauser, ICML 2017: a sort
    alone is as wrong as its workers).

    Parameters
    ----------
    items : sequence of str
    comparisons : sequence of (worker, chosen, other)
        What was judged so far.

    Returns
    -------
    list of (left, right)
        All that can be judged at the same time; none once every pair was.

    Raises
    ------
    ProtocolError
        There are too many items to rank.

    Examples
    --------
    >>> next_pairs("abc")
    [('c', 'a'), ('c', 'b')]
    >>> next_pairs("abc", [("w", "c", "a"), ("w", "c", "b")])
    [('a', 'b')]
    """
    _refuse_many(items)
    above = Counter((chosen, other) for _, chosen, other in comparisons)
    above.subtract((other, chosen) for _, chosen, other in comparisons)
    for seed in range(len(items)):
        rng, asked = np.random.default_rng(seed), list[tuple[str, str]]()
        parts = [rng.permutation(sorted(items)).tolist()]
        while parts:
            pivot, *others = parts.pop()
            if unknown := [item for item in others if not above[item, pivot]]:
                asked += [(item, pivot) for item in unknown]
            else:
                halves = ([item for item in others if sign * above[item, pivot] > 0] for sign in (-1, 1))
                parts += filter(None, halves)
        if asked:
            kept = rng.choice([False, True], len(asked)).tolist()
            return [(a, b) if keep else (b, a) for (a, b), keep in zip(asked, kept, strict=True)]
    return []


def _refuse_many(items: Sequence[str] | NDArray[np.str_]) -> None:
    """Refuse items that are too many to rank."""
    if len(items) > MOST:
        raise ProtocolError(f"{len(items):,} items: at most {MOST:,} are ranked at once; rank parts of them")


def _refuse_parts(items: NDArray[np.str_], pairs: Ints) -> None:
    """Refuse items in parts that no comparison connects."""
    compared = coo_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(len(items), len(items)))
    n_parts, part = connected_components(compared, directed=False)
    if n_parts > 1:
        first, second = items[part == 0][0], items[part == 1][0]
        raise ProtocolError(
            f"{first} and {second} are in parts that no comparison connects: compare an item of one with one "
            "of the other"
        )
