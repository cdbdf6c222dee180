"""Match intervals of two lists where only near ones can gain: small assignments."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from obygaze_features.manifest.near import Pairs

Floats = NDArray[np.float64]


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
