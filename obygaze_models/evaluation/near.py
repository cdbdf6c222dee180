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

    Pairs that are connected by common items form a component. Components do not limit each other, so each is
    solved as a small assignment problem of its own, which is far faster than one problem of all items.

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
    chosen = []
    for rows in _components(pairs, shape):
        chosen_in_component = _solve_assignment(pairs.first[rows], pairs.second[rows], gains[rows])
        chosen.append(rows[chosen_in_component])
    return np.sort(np.concatenate(chosen))


def _components(pairs: Pairs, shape: tuple[int, int]) -> list[NDArray[np.intp]]:
    """Split pairs into components: two pairs are in the same one if a chain of common items connects them.

    Parameters
    ----------
    pairs : Pairs
        At least one.
    shape : tuple of int
        Numbers of items in the two lists.

    Returns
    -------
    list of ndarray of int
        Indices of the pairs of each component, rising.
    """
    # The items of both lists are the nodes of a graph, and the pairs are its links. Items of the second list
    # are numbered after those of the first.
    n_first, n_second = shape
    n_items = n_first + n_second
    nodes_of_second = n_first + pairs.second
    is_linked = np.ones(len(pairs.first))
    links = coo_array((is_linked, (pairs.first, nodes_of_second)), shape=(n_items, n_items))
    _, component_of_item = connected_components(links, directed=False)
    component_of_pair = component_of_item[pairs.first]

    # Sort the pairs by component, and split them where the component changes.
    order = np.argsort(component_of_pair, kind="stable")
    first_of_next_component = np.flatnonzero(np.diff(component_of_pair[order])) + 1
    return np.split(order, first_of_next_component)


def _solve_assignment(first: NDArray[np.intp], second: NDArray[np.intp], gains: Floats) -> NDArray[np.intp]:
    """Choose pairs with the largest sum of gains such that no item is in two pairs.

    Parameters
    ----------
    first, second : ndarray of int, shape [P]
        The two items of each pair.
    gains : ndarray, shape [P]
        Gain of each pair.

    Returns
    -------
    ndarray of int
        Indices of the chosen pairs among the P.
    """
    if len(gains) == 1:
        return np.zeros(1, dtype=np.intp)
    # The place of each pair in matrices of all first items by all second items.
    first_items, row = np.unique(first, return_inverse=True)
    second_items, column = np.unique(second, return_inverse=True)
    shape = (len(first_items), len(second_items))
    # Two items that are no pair can be assigned to each other, and gain nothing by it.
    no_pair = -1
    gain_matrix = np.zeros(shape)
    gain_matrix[row, column] = gains
    pair_at = np.full(shape, no_pair)  # the index of the pair at each place of the matrix
    pair_at[row, column] = np.arange(len(gains))
    assigned_rows, assigned_columns = linear_sum_assignment(gain_matrix, maximize=True)
    assigned_pairs = pair_at[assigned_rows, assigned_columns]
    return np.asarray(assigned_pairs[assigned_pairs != no_pair])
