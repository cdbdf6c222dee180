"""Compute how many seconds spans of two lists have in common."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import overlapping
from obygaze_film.schema import Spans

SLACK_S: Final = 0.001
"""Times that differ by less are equal: manifests round to milliseconds."""

MIN_OVERLAP_S: Final = 1e-9
"""Spans that have less time in common only touch, but for rounding."""


class Coverage(NamedTuple):
    """The P pairs of one of R spans and one of N other spans that overlap.

    Attributes
    ----------
    n_spans : int
        R.
    span_index, other_index : ndarray of int, shape [P]
        Index of each pair's span among the R, and of its other span among the N. Pairs are sorted by
        `span_index`, then by `other_index`.
    seconds : ndarray, shape [P]
        How long the two overlap.
    """

    n_spans: int
    span_index: NDArray[np.intp]
    other_index: NDArray[np.intp]
    seconds: NDArray[np.float64]

    def marked_seconds(self, is_marked: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Compute how many seconds of each span the marked [N] other spans cover; returns [R]."""
        return self.weighted_sums(is_marked.astype(np.float64))

    def weighted_sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up for each span the values of the other spans that overlap it, times the seconds of overlap.

        A span that overlaps one with the value 0.5 for 4 s, and one with the value 1 for 2 s, has the sum 4.

        Parameters
        ----------
        values : ndarray, shape [N]
            A value of each of the other spans.

        Returns
        -------
        ndarray, shape [R]
        """
        products = self.seconds * values[self.other_index]
        sums = np.bincount(self.span_index, weights=products, minlength=self.n_spans)
        return sums.astype(np.float64, copy=False)


def find_coverage(spans: Spans, others: Spans) -> Coverage:
    """Find the pairs of one of `spans` and one of `others` that overlap, with their seconds of overlap.

    Parameters
    ----------
    spans : ndarray, shape [R, 2]
        Starts and ends in seconds.
    others : ndarray, shape [N, 2]
        Starts and ends of the other spans.

    Returns
    -------
    Coverage

    Examples
    --------
    >>> import numpy as np
    >>> from obygaze_film.coverage import find_coverage
    >>> coverage = find_coverage(np.array([[0.0, 4.0], [4.0, 8.0]]), np.array([[1.0, 3.0], [3.0, 6.0]]))
    >>> coverage.seconds.tolist(), coverage.weighted_sums(np.array([1.0, 10.0])).tolist()
    ([2.0, 1.0, 2.0], [12.0, 20.0])
    """
    pairs = overlapping(spans, others)  # also pairs that only touch
    span_of_pair = spans[pairs.first]  # [pairs, 2]
    other_of_pair = others[pairs.second]  # [pairs, 2]
    starts_s = np.maximum(span_of_pair[:, 0], other_of_pair[:, 0])
    ends_s = np.minimum(span_of_pair[:, 1], other_of_pair[:, 1])
    seconds = ends_s - starts_s

    order = np.lexsort((pairs.second, pairs.first))  # by span, then by the other span
    order = order[seconds[order] > MIN_OVERLAP_S]
    return Coverage(len(spans), pairs.first[order], pairs.second[order], seconds[order])
