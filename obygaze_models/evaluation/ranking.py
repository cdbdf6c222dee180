"""Rank items by pairwise judgements of many workers, some of whom answer at random.

Bradley and Terry (Biometrika 1952): an item with strength s is chosen over one with t with the probability
1 / (1 + exp(t - s)). A worker judges so in a share r of comparisons, the reliability (Chen et al., WSDM
2013), and at random in the others. Strengths have a normal prior whose variance is estimated with them,
so that an item that was always chosen has a finite one. All is drawn from the posterior by Gibbs sampling
with Polya-Gamma variables (Polson, Scott and Windle, JASA 2013): the mode and its curvature make intervals
too short, since strengths of items that nearly always win or lose are skewed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from obygaze_models.blas import one_blas_thread
from obygaze_models.errors import ProtocolError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ENDS: Final = (0.025, 0.975)
HALF: Final = 0.5
SURE: Final = 0.9
"""A worker is named as random where the reliability is below a half with this probability."""
DRAWS: Final = 1000
TERMS: Final = 24
SHARES: Final = np.linspace(0.0, 1.0, 11)
"""Reliabilities that workers may have; how common each is among workers is estimated with them."""
MOST: Final = 2000
"""Items: a draw takes time with their number cubed."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Strengths of items, and the workers.

    Attributes
    ----------
    items : tuple of str
    strength : ndarray, shape [N]
        In logits, around 0.
    place, low, high : ndarray, shape [N]
        Strengths over the largest, from -1 to 1, with 95 % intervals of draws, each over its own largest: of
        few items it is not known how far they are apart, and that is no matter of their places.
    workers : DataFrame
        A row for each: `worker`, `comparisons`; `reliability`, `low` and `high`, the share of judgements that
        are not random with its 95 % interval; and `random`, whether this worker answers at random.
    """

    items: tuple[str, ...]
    strength: Floats
    place: Floats
    low: Floats
    high: Floats
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
    comparisons = sorted(comparisons)  # so that draws do not depend on the order of rows
    workers, worker = np.unique([who for who, *_ in comparisons], return_inverse=True)
    items, sides = np.unique([[chosen, other] for _, chosen, other in comparisons], return_inverse=True)
    pairs = sides.reshape(-1, 2)
    _refuse_many(items)
    if unknown := [name for name in masters if name not in workers]:
        raise ProtocolError(f"no worker {unknown[0]!r}: there are {', '.join(workers.tolist())}")
    _refuse_parts(items, pairs)
    with one_blas_thread():
        known = np.isin(workers, masters)
        strengths, shares = _draws(pairs, worker, known, np.random.default_rng(0), draws)
    strength = strengths.mean(axis=0)
    place, places = (each / abs(each).max(axis=-1, keepdims=True) for each in (strength, strengths))
    low, high = np.quantile(places, ENDS, axis=0)
    people = pd.DataFrame({"worker": workers, "comparisons": np.bincount(worker)})
    people["reliability"] = shares.mean(axis=0)
    people[["low", "high"]] = np.quantile(shares, ENDS, axis=0).T
    people["random"] = (shares < HALF).mean(axis=0) >= SURE
    return Ranking(tuple(items.tolist()), strength, place, low, high, people)


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


def _draws(
    pairs: Ints, worker: Ints, masters: NDArray[np.bool_], rng: np.random.Generator, draws: int
) -> tuple[Floats, Floats]:
    """Draw strengths [draws, n], less their mean, and workers' reliabilities [draws, n_workers]."""
    chosen, other = pairs.T
    n, n_workers = int(pairs.max()) + 1, int(worker.max()) + 1
    strength, share = np.zeros(n), np.full(n_workers, 0.9)
    variance = 1.0
    common = np.full(len(SHARES), 1 / len(SHARES))
    kept: list[tuple[Floats, Floats]] = []
    for _ in range(draws + max(draws // 5, 1)):
        apart = strength[chosen] - strength[other]
        meant = share[worker] * expit(apart)
        is_meant = rng.random(len(apart)) * (meant + (1 - share[worker]) / 2) < meant
        weights = np.where(is_meant, _polya_gamma(apart, rng), 0.0)
        precision = np.zeros((n, n))
        np.add.at(precision, (chosen, other), -weights)
        precision += precision.T
        precision += np.diag(1 / variance - precision.sum(axis=1))
        towards = (np.bincount(chosen, is_meant, n) - np.bincount(other, is_meant, n)) / 2
        root = np.linalg.cholesky(precision)
        strength = solve_triangular(
            root, solve_triangular(root, towards, lower=True) + rng.normal(size=n), lower=True, trans=1
        )
        right = expit(strength[chosen] - strength[other])
        fit = np.log(common)[:, None] + np.array(
            [np.bincount(worker, np.log(r * right + (1 - r) / 2), n_workers) for r in SHARES]
        )
        fit[:-1, masters] = -np.inf
        drawn = (fit + rng.gumbel(size=fit.shape)).argmax(axis=0)
        share = SHARES[drawn]
        common = np.maximum(
            1e-300, rng.dirichlet(1 / len(SHARES) + np.bincount(drawn[~masters], minlength=len(SHARES)))
        )
        variance = float((1 + strength @ strength / 2) / rng.gamma(1 + n / 2))
        kept.append((strength - strength.mean(), share))
    strengths, shares = zip(*kept[-draws:], strict=True)
    return np.array(strengths), np.array(shares)


def _polya_gamma(apart: Floats, rng: np.random.Generator) -> Floats:
    """Draw PG(1, c) variables [C]: the first of their sum of exponentials, and the mean of the others."""
    terms = (np.arange(TERMS)[:, None] + 0.5) ** 2 + (apart / (2 * np.pi)) ** 2
    drawn: Floats = (rng.exponential(size=terms.shape) / terms).sum(axis=0) / (2 * np.pi**2)
    c = np.maximum(np.abs(apart), 1e-6)
    drawn += np.tanh(c / 2) / (2 * c) - (1 / terms).sum(axis=0) / (2 * np.pi**2)
    return drawn


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
