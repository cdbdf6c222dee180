"""Compute how many seconds of some spans of a film others cover."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import overlapping
from obygaze_film.schema import Spans

SLACK_S: Final = 0.001
"""Times that differ by less are equal: manifests round to milliseconds."""


class Coverage(NamedTuple):
    """The seconds of each of R spans that each of N others covers, as P pairs that share any time.

    Attributes
    ----------
    n_spans : int
        R.
    span, other : ndarray of int, shape [P]
        Places in the two lists; sorted by `span`, and of one span by `other`.
    seconds : ndarray, shape [P]
        The time that the two share.
    """

    n_spans: int
    span: NDArray[np.intp]
    other: NDArray[np.intp]
    seconds: NDArray[np.float64]

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up values [N] of the others over the time of each span, weighted by seconds; returns [R]."""
        weighted = self.seconds * values[self.other]
        return np.bincount(self.span, weights=weighted, minlength=self.n_spans).astype(np.float64, copy=False)


def find_coverage(spans: Spans, others: Spans) -> Coverage:
    """Compute how many seconds of each of R spans each of N others covers.

    Examples
    --------
    >>> import numpy as np
    >>> from obygaze_film.coverage import find_coverage
    >>> coverage = find_coverage(np.array([[0.0, 4.0], [4.0, 8.0]]), np.array([[1.0, 3.0], [3.0, 6.0]]))
    >>> coverage.seconds.tolist(), coverage.sums(np.array([1.0, 10.0])).tolist()
    ([2.0, 1.0, 2.0], [12.0, 20.0])
    """
    pairs = overlapping(spans, others)
    span, other = spans[pairs.first], others[pairs.second]
    seconds = np.minimum(span[:, 1], other[:, 1]) - np.maximum(span[:, 0], other[:, 0])
    order = np.lexsort((pairs.second, pairs.first))
    order = order[seconds[order] > 1e-9]
    return Coverage(len(spans), pairs.first[order], pairs.second[order], seconds[order])
