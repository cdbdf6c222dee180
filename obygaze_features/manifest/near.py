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
    # Sort the second list by beginnings.
    order = np.argsort(second[:, 0], kind="stable")
    beginnings = second[order, 0]  # [M]
    ends = second[order, 1]  # [M]

    # An interval of the first list can only overlap those from place `start` up to place `stop` - 1: all
    # before have ended when it begins, and all from `stop` on begin after its end.
    latest_ends = np.maximum.accumulate(ends)  # of the interval at a place and all before it; rises
    start = np.searchsorted(latest_ends, first[:, 0], side="left")  # [N]
    stop = np.searchsorted(beginnings, first[:, 1], side="right")  # [N]
    n_candidates = np.maximum(stop - start, 0)

    # One item for each candidate: the two intervals that may overlap.
    first_index = np.repeat(np.arange(len(first)), n_candidates)
    sorted_place = _joined_ranges(start, n_candidates)
    # A candidate may have ended before the interval begins, although a longer one before it has not.
    is_near = ends[sorted_place] >= first[first_index, 0]
    return Pairs(first_index[is_near], order[sorted_place[is_near]])


def _joined_ranges(starts: NDArray[np.intp], lengths: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the integers of several ranges, one range after another.

    Examples
    --------
    >>> _joined_ranges(np.array([7, 30]), np.array([2, 3])).tolist()
    [7, 8, 30, 31, 32]
    """
    n_before = np.cumsum(lengths) - lengths  # integers in all ranges before this one: 0 and 2
    shifts = np.repeat(starts - n_before, lengths)  # 7 7 28 28 28
    positions = np.arange(len(shifts))  # 0 1 2 3 4
    return np.asarray(positions + shifts, dtype=np.intp)
