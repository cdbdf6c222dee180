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
    # Candidates of each first interval are the places start to stop in the sorted second list. The furthest
    # end so far only rises: before the place where it reaches the interval, every second one has ended.
    furthest_ends = np.maximum.accumulate(ends)
    start = np.searchsorted(furthest_ends, first[:, 0], side="left")  # [N]
    stop = np.searchsorted(beginnings, first[:, 1], side="right")  # [N]
    stop = np.maximum(stop, start)
    n_candidates = stop - start
    # One row a candidate: the place of its first interval, and how many candidates of that come before it.
    first_places = np.repeat(np.arange(len(first)), n_candidates)
    n_rows_before = np.repeat(np.cumsum(n_candidates) - n_candidates, n_candidates)
    n_before = np.arange(len(first_places)) - n_rows_before
    sorted_places = start[first_places] + n_before
    # Among the candidates, short ones may have ended before the interval begins.
    is_near = ends[sorted_places] >= first[first_places, 0]
    return Pairs(first_places[is_near], order[sorted_places[is_near]])
