"""Match intervals of two lists where only near ones can gain: a join by sorting, and small assignments."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Floats = NDArray[np.float64]


class Pairs(NamedTuple):
    """Pairs of a first list's items with a second's.

    Attributes
    ----------
    first, second : ndarray of int, shape [P]
        Places in the two lists.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]


def overlapping(first: Floats, second: Floats) -> Pairs:
    """Find the pairs of intervals that overlap or touch, in the order of the first list.

    Memory and time grow with the pairs, where long intervals are rare.

    Parameters
    ----------
    first, second : ndarray, shapes [N, 2] and [M, 2]
        Beginnings and ends.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = overlapping(np.array([[0.0, 2.0], [5.0, 6.0]]), np.array([[1.0, 3.0], [5.5, 9.0]]))
    >>> pairs.first.tolist(), pairs.second.tolist()
    ([0, 1], [0, 1])
    """
    order = np.argsort(second[:, 0], kind="stable")
    beginnings, ends = second[order, 0], second[order, 1]
    # The furthest end so far only rises: before the first place where it is reached, nothing overlaps.
    furthest = np.maximum.accumulate(ends)
    start = np.searchsorted(furthest, first[:, 0], side="left")
    stop = np.maximum(np.searchsorted(beginnings, first[:, 1], side="right"), start)
    counts = stop - start
    rows = np.repeat(np.arange(len(first)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    places = start[rows] + within
    near = ends[places] >= first[rows, 0]
    return Pairs(rows[near], order[places[near]])


def best_matching(pairs: Pairs, gains: Floats, shape: tuple[int, int]) -> NDArray[np.intp]:
    """Choose pairs, no item twice, such that their gains add up to the most.

    Each connected part of the pairs is an assignment problem of its own.

    Parameters
    ----------
    pairs : Pairs
        Each once.
    gains : ndarray, shape [P]
        Above 0.
    shape : tuple of int
        Items of the two lists.

    Returns
    -------
    ndarray of int
        Places of the chosen pairs, rising.
    """
    n, m = shape
    if not len(gains):
        return np.zeros(0, dtype=np.intp)
    links = coo_array((np.ones(len(gains)), (pairs.first, n + pairs.second)), shape=(n + m, n + m))
    part = connected_components(links, directed=False)[1][pairs.first]
    order = np.argsort(part, kind="stable")
    chosen = [
        members[_assigned(pairs.first[members], pairs.second[members], gains[members])]
        for members in np.split(order, np.flatnonzero(np.diff(part[order])) + 1)
    ]
    return np.sort(np.concatenate(chosen))


def _assigned(first: NDArray[np.intp], second: NDArray[np.intp], gains: Floats) -> NDArray[np.intp]:
    """Solve one part; give the places of the chosen pairs."""
    if len(gains) == 1:
        return np.zeros(1, dtype=np.intp)
    rows, row = np.unique(first, return_inverse=True)
    columns, column = np.unique(second, return_inverse=True)
    table = np.zeros((len(rows), len(columns)))
    table[row, column] = gains
    place = np.full(table.shape, -1)
    place[row, column] = np.arange(len(gains))
    taken = place[linear_sum_assignment(table, maximize=True)]
    return np.asarray(taken[taken >= 0])
