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
