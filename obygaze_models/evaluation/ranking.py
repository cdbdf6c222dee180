"""Rank items by pairwise judgements of many workers, some of whom answer at random.

Strengths and reliabilities are drawn from their posterior (`obygaze_models.evaluation.strengths`). Only
differences of strengths are known. In each draw, an item has strength 0 if it would be chosen over the others
half of the time. The mean strength would be no good zero: it depends on the farthest items, and how far an
item is that is always chosen cannot be known. The median would jump from one cluster to the next.
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

from obygaze_features.text import counted
from obygaze_models.blas import one_blas_thread
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.strengths import Comparisons, draw_posterior, n_burn_in_draws

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HALF: Final = 0.5
"""The median, the probability at which neither item is preferred, and the reliability below which a worker
counts as random."""
INTERVAL: Final = (0.025, 0.975)
"""Quantiles at which a 95 % interval ends."""
MIN_P_RANDOM: Final = 0.9
"""A worker counts as random if the probability that the reliability is below a half is at least this."""
N_DRAWS: Final = 1000
"""Draws of the posterior."""
N_HALVINGS: Final = 40
"""Steps of the bisection for the centre of strengths: far more than the precision of a draw needs."""
MAX_ITEMS: Final = 10_000
"""Items that can be ranked at once: memory holds a thousand draws of their strengths and ranks."""

SECONDS_PER_DRAW: Final = 0.8e-3
"""CPU seconds of a draw, without its comparisons (AMD EPYC, one core)."""
SECONDS_PER_COMPARISON: Final = 0.9e-6
"""CPU seconds of each comparison in a draw."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Strengths of items, their ranks, and how reliable the workers are.

    Attributes
    ----------
    items : tuple of str
    strength, low, high : ndarray, shape [N]
        Posterior median in logits, with its 95 % interval. An item of strength 0 would be chosen over the
        others half of the time, on average (`centre`). An item of strength s would be chosen over that item
        with probability 1 / (1 + exp(-s)).
    rank, rank_low, rank_high : ndarray, shape [N]
        From 1, the strongest, to N: the posterior median and its 95 % interval.
    workers : DataFrame
        A row for each worker: `worker`, the name; `comparisons`, their number; `reliability`, `low` and
        `high`, the share of judgements that are not random with its 95 % interval; and `random`, whether this
        worker answers at random.
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
    comparisons: Sequence[tuple[str, str, str]], *, masters: Sequence[str] = (), draws: int = N_DRAWS
) -> Ranking:
    """Estimate strengths and ranks of items from workers' choices between pairs of them.

    Parameters
    ----------
    comparisons : sequence of (worker, chosen, other)
        The worker, the item that this worker chose, and the other item.
    is_master : sequence of str
        Workers whose reliability is known to be 1.
    draws : int
        Draws of the posterior that are used. A fifth as many are made before these and discarded (burn-in).

    Raises
    ------
    ProtocolError
        The items fall into parts with no comparison between them; or there are too many items; or a master
        made no comparison.

    Examples
    --------
    >>> judgements = [("w", "b", "a"), ("w", "c", "b"), ("v", "c", "a"), ("v", "b", "a")]
    >>> ranking = rank_items(judgements)
    >>> [ranking.items[index] for index in ranking.strength.argsort()]
    ['a', 'b', 'c']
    """
    # --- number the workers and items
    ordered = sorted(comparisons)  # so that draws do not depend on the order of rows
    workers, worker_indices = np.unique([worker for worker, _, _ in ordered], return_inverse=True)
    items, item_indices = np.unique([[chosen, other] for _, chosen, other in ordered], return_inverse=True)
    pairs = item_indices.reshape(-1, 2)
    _refuse_many(items)
    _refuse_unknown_workers(masters, workers)
    _refuse_unconnected(items, pairs)
    compared = Comparisons(
        chosen=pairs[:, 0],
        other=pairs[:, 1],
        worker=worker_indices,
        is_master=np.isin(workers, masters),
        n_items=len(items),
    )

    # --- draw strengths and reliabilities from their posterior
    with one_blas_thread():
        posterior = draw_posterior(compared, draws, np.random.default_rng(0))
    # Only differences of strengths are known: in each draw they are counted from the centre of all items.
    centres = centre(posterior.strengths)  # [draws]
    strengths = posterior.strengths - centres[:, None]  # [draws, N]
    ranks = _ranks_of_items(strengths)

    # --- summarise the draws by their medians and 95 % intervals
    lower, upper = INTERVAL
    low, strength, high = np.quantile(strengths, (lower, HALF, upper), axis=0)
    # Ranks are whole numbers: an interval ends at ranks that were drawn.
    rank_low = np.quantile(ranks, lower, axis=0, method="lower")
    rank_high = np.quantile(ranks, upper, axis=0, method="higher")
    return Ranking(
        items=tuple(items.tolist()),
        strength=strength,
        low=low,
        high=high,
        rank=np.median(ranks, axis=0),
        rank_low=rank_low,
        rank_high=rank_high,
        workers=_table_of_workers(workers, np.bincount(worker_indices), posterior.reliabilities),
    )


def _ranks_of_items(strengths: Floats) -> Floats:
    """Rank N items by strength in each draw [draws, N]: 1 is the strongest, N the weakest."""
    strongest_first = (-strengths).argsort(axis=1)
    # Sorting the order itself gives, for each item, its place in the order, from 0.
    places = strongest_first.argsort(axis=1)
    return places.astype(np.float64) + 1


def _table_of_workers(workers: NDArray[np.str_], n_comparisons: Ints, reliabilities: Floats) -> pd.DataFrame:
    """Make the table of workers: their comparisons, reliability with its 95 % interval, and who is random.

    A worker counts as random if the reliability is below a half in at least 90 % of the draws.

    Parameters
    ----------
    workers : ndarray of str, shape [W]
        Names of the workers.
    n_comparisons : ndarray of int, shape [W]
        Number of comparisons that each of them made.
    reliabilities : ndarray, shape [draws, W]
        Share of each worker's judgements that are not random, in draws of the posterior.
    """
    table = pd.DataFrame({"worker": workers, "comparisons": n_comparisons})
    table["reliability"] = reliabilities.mean(axis=0)
    table[["low", "high"]] = np.quantile(reliabilities, INTERVAL, axis=0).T
    table["random"] = (reliabilities < HALF).mean(axis=0) >= MIN_P_RANDOM
    return table


def expected_s(n_comparisons: int, draws: int = N_DRAWS) -> float:
    """Estimate the CPU seconds of `rank_items`, before it begins; a draw takes longer with more comparisons.

    Draws of the burn-in, which are discarded, count too.
    """
    n_draws = draws + n_burn_in_draws(draws)
    return n_draws * (SECONDS_PER_DRAW + SECONDS_PER_COMPARISON * n_comparisons)


def centre(strengths: Floats) -> Floats:
    """Find the strength of an item that would be chosen over the others half of the time, on average.

    An item of strength c is chosen over one of strength s with probability 1 / (1 + exp(s - c)). The c at
    which the mean of these over all items is 1/2 is found by bisection.

    Parameters
    ----------
    strengths : ndarray, shape [..., N]
        Strengths s of N items, in logits.

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
    low = strengths.min(axis=-1)
    high = strengths.max(axis=-1)
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2  # c
        p_others_are_chosen = expit(strengths - middle[..., None]).mean(axis=-1)
        # The others are chosen more often: c lies above the middle.
        is_too_low = p_others_are_chosen > HALF
        low = np.where(is_too_low, middle, low)
        high = np.where(is_too_low, high, middle)
    return np.asarray((low + high) / 2)


def next_pairs(
    items: Sequence[str], comparisons: Sequence[tuple[str, str, str]] = ()
) -> list[tuple[str, str]]:
    """Choose the pairs that workers judge next: the comparisons that a quicksort of the items needs.

    A quicksort compares all items with one of them, the pivot, and then sorts the items below and those above
    it in the same way. A comparison is decided by the item that more workers chose. If as many chose either
    item, or nobody judged the pair, it is undecided, and shown. When all items are sorted, they are sorted
    anew with other pivots, and earlier judgements count (Maystre and Grossglauser, ICML 2017: a single sort
    is as wrong as its workers).

    Parameters
    ----------
    items : sequence of str
    comparisons : sequence of (worker, chosen, other)
        What was judged so far.

    Returns
    -------
    list of (left, right)
        All pairs that can be judged at the same time; empty once every pair was judged.

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
    # Pair -> how many more workers chose the first item than the second.
    lead: Counter[tuple[str, str]] = Counter()
    for _, chosen, other in comparisons:
        lead[chosen, other] += 1
        lead[other, chosen] -= 1
    # Quicksorts with different orders of pivots, until one has undecided pairs.
    for seed in range(len(items)):
        rng = np.random.default_rng(seed)
        pivots_in_order = rng.permutation(sorted(items)).tolist()
        pairs = _undecided_pairs(pivots_in_order, lead)
        if pairs:
            return _draw_sides(pairs, rng)
    return []


def _draw_sides(pairs: list[tuple[str, str]], rng: np.random.Generator) -> list[tuple[str, str]]:
    """Draw which item of each pair is shown on the left: list the pairs as (left, right).

    Without that, workers who prefer a side would favour the items that quicksort puts there.
    """
    keeps_order = rng.choice([False, True], len(pairs)).tolist()
    shown = []
    for (first, second), is_kept in zip(pairs, keeps_order, strict=True):
        shown.append((first, second) if is_kept else (second, first))
    return shown


def _undecided_pairs(items: list[str], lead: Counter[tuple[str, str]]) -> list[tuple[str, str]]:
    """List the comparisons that a quicksort of items still needs; the first item of each part is its pivot.

    Quicksort compares every item with the pivot, and then sorts the items below the pivot and those above it
    in the same way. A part is divided only when all of its items are decided against the pivot.

    Parameters
    ----------
    items : list of str
        In the order in which they become pivots.
    lead : counter of (first, second)
        How many more workers chose the first item than the second; 0 if as many did, or nobody was asked.

    Returns
    -------
    list of (item, pivot)
    """
    undecided_pairs = []
    parts = [items]
    while parts:
        pivot, *others = parts.pop()
        undecided = [item for item in others if lead[item, pivot] == 0]
        if undecided:
            undecided_pairs += [(item, pivot) for item in undecided]
            continue
        below = [item for item in others if lead[item, pivot] < 0]
        above = [item for item in others if lead[item, pivot] > 0]
        parts += [part for part in (below, above) if part]
    return undecided_pairs


def _refuse_many(items: Sequence[str] | NDArray[np.str_]) -> None:
    """Raise if there are more items than can be ranked at once."""
    if len(items) > MAX_ITEMS:
        raise ProtocolError(
            f"{counted(len(items), 'item')}: at most {MAX_ITEMS:,} are ranked at once; rank parts of them"
        )


def _refuse_unknown_workers(names: Sequence[str], workers: NDArray[np.str_]) -> None:
    """Raise if one of the names is none of the workers."""
    for name in names:
        if name not in workers:
            raise ProtocolError(f"no worker {name!r}: there are {', '.join(workers.tolist())}")


def _refuse_unconnected(items: NDArray[np.str_], pairs: Ints) -> None:
    """Raise if the comparisons do not connect all items; `pairs` [C, 2] are indices of compared items.

    How strong the items of one part are, compared with those of another, would be unknown.
    """
    # Items are the nodes of a graph, and comparisons its links.
    graph = coo_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(len(items), len(items)))
    n_components, component = connected_components(graph, directed=False)
    if n_components > 1:
        first = items[component == 0][0]
        second = items[component == 1][0]
        raise ProtocolError(
            f"{first} and {second} are in parts that no comparison connects: compare an item of one with one "
            "of the other"
        )
