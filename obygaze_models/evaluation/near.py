"""Match intervals of two lists where only near ones can gain: small assignments."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from obygaze_features.manifest.near import Pairs

Floats = NDArray[np.float64]


def best_matching(pairs: Pairs, gains: Floats, shape: tuple[int, int]) -> NDArray[np.intp]:
    """Choose pairs of items such that no item is in two pairs and the sum of their gains is largest.

    Pairs that are connected by common items form a component; each component is a small assignment problem.

    Parameters
    ----------
    pairs : Pairs
        The pairs that may be chosen, each once.
    gains : ndarray, shape [P]
        Gain of each pair, above 0.
    shape : tuple of int
        Numbers of items in the two lists.

    Returns
    -------
    ndarray of int
        Indices of the chosen pairs, rising.
    """
    if not len(gains):
        return np.zeros(0, dtype=np.intp)
    n_first, n_second = shape
    n_items = n_first + n_second
    # A graph of all items, in which those of the second list are numbered after those of the first.
    links = coo_array((np.ones(len(gains)), (pairs.first, n_first + pairs.second)), shape=(n_items, n_items))
    _, component_of_item = connected_components(links, directed=False)
    component_of_pair = component_of_item[pairs.first]
    order = np.argsort(component_of_pair, kind="stable")
    starts = np.flatnonzero(np.diff(component_of_pair[order])) + 1
    chosen = []
    for component in np.split(order, starts):
        in_component = _solve_assignment(pairs.first[component], pairs.second[component], gains[component])
        chosen.append(component[in_component])
    return np.sort(np.concatenate(chosen))


def _solve_assignment(first: NDArray[np.intp], second: NDArray[np.intp], gains: Floats) -> NDArray[np.intp]:
    """Choose pairs with the largest sum of gains such that no item is in two, given items and gains [P].

    Returns
    -------
    ndarray of int
        Indices of the chosen pairs among the P.
    """
    if len(gains) == 1:
        return np.zeros(1, dtype=np.intp)
    rows, row_of = np.unique(first, return_inverse=True)
    columns, column_of = np.unique(second, return_inverse=True)
    gain_of = np.zeros((len(rows), len(columns)))
    gain_of[row_of, column_of] = gains
    pair_of = np.full(gain_of.shape, -1)
    pair_of[row_of, column_of] = np.arange(len(gains))
    assigned = pair_of[linear_sum_assignment(gain_of, maximize=True)]
    # The solver may also assign items that are no pair, with a gain of 0: these are left out.
    return np.asarray(assigned[assigned >= 0])
