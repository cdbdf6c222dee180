"""Find the pairs of intervals that are near each other, by sorting."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked

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


@checked
def overlapping(first: Floats, second: Floats) -> Pairs:
    """Find all pairs of an interval of one list and an interval of another that overlap or touch.

    Memory and time grow with the number of pairs, if few intervals are much longer than the others.

    Parameters
    ----------
    first, second : ndarray, shapes [N, 2] and [M, 2]
        Beginning and end of each interval.

    Returns
    -------
    Pairs
        The indices of both intervals of each pair, sorted by the index in the first list.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = overlapping(np.array([[0.0, 2.0], [5.0, 6.0]]), np.array([[1.0, 3.0], [5.5, 9.0]]))
    >>> pairs.first.tolist(), pairs.second.tolist()
    ([0, 1], [0, 1])
    """
    order = np.argsort(second[:, 0], kind="stable")
    beginnings = second[order, 0]  # [M]
    ends = second[order, 1]  # [M]
    # Candidates of an interval of the first list are those at the places start to stop - 1 of the sorted
    # second list: all before start have ended when it begins, and all from stop on begin after its end.
    latest_ends = np.maximum.accumulate(ends)  # of the interval at each place and all before it; rises
    start = np.searchsorted(latest_ends, first[:, 0], side="left")  # [N]
    stop = np.searchsorted(beginnings, first[:, 1], side="right")  # [N]
    stop = np.maximum(stop, start)
    n_candidates = stop - start
    # For each candidate: the index of its interval in the first list, and its number among the candidates of
    # that interval, from 0. With 2 and 3 candidates, these are 0 0 1 1 1 and 0 1 0 1 2.
    first_index = np.repeat(np.arange(len(first)), n_candidates)
    n_of_earlier_intervals = np.repeat(np.cumsum(n_candidates) - n_candidates, n_candidates)
    number_of_candidate = np.arange(len(first_index)) - n_of_earlier_intervals
    sorted_place = start[first_index] + number_of_candidate
    # A candidate may have ended before the interval begins, although a longer one before it has not.
    is_near = ends[sorted_place] >= first[first_index, 0]
    return Pairs(first_index[is_near], order[sorted_place[is_near]])
