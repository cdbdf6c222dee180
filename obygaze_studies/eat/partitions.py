"""Compute the permutation null of the embedding association test: all partitions, or a random sample."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_studies.eat.effect_size import Associations

MOST_EXACT = 44
"""Most targets whose partitions are counted; the work grows with 2 to the half of it."""

BLOCK = 1 << 20
"""Numbers shuffled at a time."""

_GRID = 2.0**52


@dataclass(frozen=True)
class Exact:
    """All partitions of X u Y into sets of their sizes, counted.

    Attributes
    ----------
    n_ge, n_gt : int
        Partitions whose statistic is at least, or above, the observed one; a tie up to rounding is a tie.
    total : int
        Partitions, the observed one among them.
    """

    n_ge: int
    n_gt: int
    total: int

    @property
    def p(self) -> float:
        """Share of the partitions at least as extreme, upper tail."""
        return self.n_ge / self.total


@dataclass(frozen=True)
class Sampled:
    """Random partitions: `n_ge` of `n_perm` have a statistic of at least the observed one."""

    n_ge: int
    n_perm: int
    seed: int

    @property
    def p(self) -> float:
        """Estimate of the exact p, the observed partition counted in (Phipson & Smyth, 2010)."""
        return (1 + self.n_ge) / (1 + self.n_perm)


def exact(found: Associations) -> Exact:
    """Count all partitions by meeting in the middle.

    With sizes fixed, every statistic of the test grows with the sum over X alone. The targets are split in
    two halves; sums of all subsets of each half are grouped by size, and a sorted group answers for all sums
    of its counterpart at once: 2 * 2^(N/2) sums stand for C(N, n) partitions (138 billion for 20 + 20). Sums
    are of integers, the associations in units of 2^-52, so that their order does not depend on the order
    of addition; sums closer than a unit a target are ties, since they differ by rounding alone.

    Raises
    ------
    ValueError
        There are more than `MOST_EXACT` targets.
    """
    n, total = len(found.x), len(found.x) + len(found.y)
    if total > MOST_EXACT:
        raise ValueError(f"{total} targets have too many partitions to count; at most {MOST_EXACT}")
    units = np.rint(np.concatenate([found.x, found.y]) * _GRID).astype(np.int64)
    observed, rounding = int(units[:n].sum()), total
    left, right = _sums_by_size(units[: total // 2]), _sums_by_size(units[total // 2 :])
    n_ge = n_gt = 0
    for size, sums in enumerate(left):
        if 0 <= n - size < len(right):
            partners = right[n - size]
            # Sorted questions walk through the sorted answers in order, which the cache likes.
            questions = observed - sums[::-1]
            n_ge += partners.size * sums.size - int(np.searchsorted(partners, questions - rounding).sum())
            n_gt += partners.size * sums.size - int(
                np.searchsorted(partners, questions + rounding, side="right").sum()
            )
    return Exact(n_ge, n_gt, math.comb(total, n))


def _sums_by_size(units: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Sum every subset; sorted sums of the subsets of 0, 1, ... elements."""
    sums, sizes = np.zeros(1, np.int64), np.zeros(1, np.uint8)
    for one in units:
        sums, sizes = np.concatenate([sums, sums + one]), np.concatenate([sizes, sizes + np.uint8(1)])
    return [np.sort(sums[sizes == size]) for size in range(len(units) + 1)]


def sampled(found: Associations, *, n_perm: int, seed: int) -> Sampled:
    """Draw partitions at random, each as likely as any other, and count as `exact` does.

    Parameters
    ----------
    n_perm
        Partitions to draw.
    seed
        Of the draws; the same seed gives the same count.
    """
    pool = np.concatenate([found.x, found.y])
    n = len(found.x)
    least = float(found.x.sum()) - len(pool) / _GRID
    rng = np.random.default_rng(seed)
    rows = max(1, BLOCK // len(pool))
    n_ge = 0
    for start in range(0, n_perm, rows):
        shuffled = rng.permuted(np.tile(pool, (min(rows, n_perm - start), 1)), axis=1)
        n_ge += int((shuffled[:, :n].sum(axis=1) >= least).sum())
    return Sampled(n_ge, n_perm, seed)
