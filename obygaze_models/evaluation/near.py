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
    by_component = np.argsort(component_of_pair, kind="stable")
    boundaries = np.flatnonzero(np.diff(component_of_pair[by_component])) + 1
    chosen = []
    for pairs_of_component in np.split(by_component, boundaries):
        chosen_in_component = _solve_assignment(
            pairs.first[pairs_of_component], pairs.second[pairs_of_component], gains[pairs_of_component]
        )
        chosen.append(pairs_of_component[chosen_in_component])
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
    first_items, row = np.unique(first, return_inverse=True)
    second_items, column = np.unique(second, return_inverse=True)
    # Matrices of all first items by all second items: the gain of each pair, and its index among the P. Items
    # that are no pair have the gain 0 and the index -1.
    gain_matrix = np.zeros((len(first_items), len(second_items)))
    gain_matrix[row, column] = gains
    index_matrix = np.full(gain_matrix.shape, -1)
    index_matrix[row, column] = np.arange(len(gains))
    assigned = index_matrix[linear_sum_assignment(gain_matrix, maximize=True)]
    return np.asarray(assigned[assigned >= 0])
