"""Measure the agreement of spans in time: seconds, segments, boundaries, ranked lists."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from obygaze_features.manifest import Pairs, overlapping
from obygaze_film.schema import Spans

Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""By how much further onsets are looked for than may match."""

OFFSET_SHARE = 0.2
"""Tolerance of offsets as a share of the reference's length (sed_eval's default is 0.5)."""


def merged(spans: Iterable[tuple[float, float]]) -> Spans:
    """Sort spans by time and merge those that overlap or touch."""
    disjoint: list[list[float]] = []
    for start, end in sorted(spans):
        if disjoint and start <= disjoint[-1][1]:
            disjoint[-1][1] = max(disjoint[-1][1], end)
        else:
            disjoint.append([start, end])
    return np.array(disjoint, dtype=np.float64).reshape(-1, 2)


def seconds_in(spans: Spans, n: int) -> NDArray[np.bool_]:
    """Mark the seconds [n] whose middle lies in a span; spans don't overlap."""
    middles = np.arange(n) + 0.5
    before = np.searchsorted(spans[:, 0], middles, side="right") - 1
    marked: NDArray[np.bool_] = np.zeros(n, dtype=np.bool_)
    after_start = before >= 0
    marked[after_start] = middles[after_start] < spans[before[after_start], 1]
    return marked


def f1(n_found: float, n_estimated: int, n_reference: int) -> float:
    """Compute 2 found / (estimated + reference); NaN if both are 0."""
    return 2 * n_found / (n_estimated + n_reference) if n_estimated + n_reference else np.nan


def second_f1(reference: NDArray[np.bool_], estimated: NDArray[np.bool_]) -> float:
    """Compute the F1 of marked seconds [n]; symmetric in its arguments."""
    return f1(float((reference & estimated).sum()), int(estimated.sum()), int(reference.sum()))


def kappa(reference: NDArray[np.bool_], estimated: NDArray[np.bool_]) -> float:
    """Compute Cohen's kappa of marked seconds [n]; NaN if the expected agreement is 1."""
    shares = np.stack([reference, estimated, reference == estimated]).mean(axis=1)
    with np.errstate(invalid="ignore"):
        return float(kappa_of(*shares))


def kappa_of(first: Floats, second: Floats, alike: Floats) -> Floats:
    """Compute Cohen's kappa from shares; NaN if the expected agreement is 1.

    `first` and `second` are the shares that each of two annotators marks, `alike` that of which both say the
    same.
    """
    chance = first * second + (1 - first) * (1 - second)
    return np.asarray((alike - chance) / (1 - chance))


class Overlaps(NamedTuple):
    """Pairs of spans that have time in common.

    Attributes
    ----------
    pairs : Pairs
        P of them.
    shares : ndarray, shape [P]
        The tIoU of each.
    """

    pairs: Pairs
    shares: Floats

    def reaching(self, threshold: float) -> "Overlaps":
        """Keep the pairs whose tIoU reaches a threshold."""
        enough = self.shares >= threshold
        return Overlaps(Pairs(self.pairs.first[enough], self.pairs.second[enough]), self.shares[enough])


def find_overlaps(reference: Spans, estimated: Spans) -> Overlaps:
    """Find the pairs of spans that have time in common."""
    near = overlapping(reference, estimated)
    one, other = reference[near.first], estimated[near.second]
    common = np.minimum(one[:, 1], other[:, 1]) - np.maximum(one[:, 0], other[:, 0])
    lengths = (one[:, 1] - one[:, 0]) + (other[:, 1] - other[:, 0])
    shared = common > 0
    shares = common[shared] / (lengths - common)[shared]
    return Overlaps(Pairs(near.first[shared], near.second[shared]), shares)


def boundaries_match(reference: Spans, estimated: Spans, collar_s: float) -> Pairs:
    """Find the pairs whose onsets and offsets agree by sed_eval's rule (Mesaros et al. 2016).

    Onsets are at most the collar apart, offsets at most the larger of the collar and 20 % of the reference's
    length.
    """
    # Slightly more than the collar: rounding loses no pair here, and `agree` leaves out the pairs too many.
    reach = collar_s * (1 + ROUNDING) + ROUNDING
    onsets = np.column_stack([reference[:, 0] - reach, reference[:, 0] + reach])
    near = overlapping(onsets, estimated[:, [0, 0]])
    one, other = reference[near.first], estimated[near.second]
    allowed = np.maximum(collar_s, OFFSET_SHARE * (one[:, 1] - one[:, 0]))
    agree = (np.abs(one[:, 0] - other[:, 0]) <= collar_s) & (np.abs(one[:, 1] - other[:, 1]) <= allowed)
    return Pairs(near.first[agree], near.second[agree])


def n_matched(pairs: Pairs, n_reference: int, n_estimated: int) -> int:
    """Compute the size of the largest one-to-one matching of pairs."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow, and films are opened without it
    from scipy.sparse.csgraph import maximum_bipartite_matching  # noqa: PLC0415 - as above

    if not len(pairs.first):
        return 0
    links = csr_array((np.ones(len(pairs.first), np.int8), pairs), shape=(n_reference, n_estimated))
    return int((maximum_bipartite_matching(links) >= 0).sum())


def segment_f1(reference: Spans, estimated: Spans, threshold: float) -> float:
    """Compute the F1 of segments, matched one to one if their tIoU reaches the threshold, above 0."""
    pairs = find_overlaps(reference, estimated).reaching(threshold).pairs
    matched = n_matched(pairs, len(reference), len(estimated))
    return f1(matched, len(estimated), len(reference))


def boundary_f1(reference: Spans, estimated: Spans, collar_s: float) -> float:
    """Compute the F1 of segments whose boundaries agree (`boundaries_match`)."""
    pairs = boundaries_match(reference, estimated, collar_s)
    return f1(n_matched(pairs, len(reference), len(estimated)), len(estimated), len(reference))


def segment_ap(reference: Spans, estimated: Spans, scores: ArrayLike, threshold: float) -> float:
    """Compute the average precision of a ranked list of segments, as ActivityNet does (Heilbron et al. 2015).

    From the highest score on, a segment is right if its tIoU with a reference that is still free reaches the
    threshold, which is above 0; it takes the one that it overlaps most. Precision is interpolated: at each
    recall, the best at that or a higher recall. NaN without a reference.
    """
    if not len(reference):
        return np.nan
    order = np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")
    pairs, shares = find_overlaps(reference, estimated[order]).reaching(threshold)
    candidates: list[list[tuple[float, int]]] = [[] for _ in order]
    for place, rank, share in zip(pairs.first.tolist(), pairs.second.tolist(), shares.tolist(), strict=True):
        candidates[rank].append((-share, place))
    free = np.ones(len(reference), dtype=np.bool_)
    right = np.zeros(len(order), dtype=np.bool_)
    for rank, of_segment in enumerate(candidates):
        for _, place in sorted(of_segment):
            if free[place]:
                right[rank] = True
                free[place] = False
                break
    n_right = np.cumsum(right)
    precision = n_right / np.arange(1, len(order) + 1)
    best_after = np.maximum.accumulate(precision[::-1])[::-1]
    return float((best_after * right).sum() / len(reference))


def top_precision(references: Sequence[Spans], estimated: Spans, k: int) -> float:
    """Compute the share of the first k segments of which any annotator marked at least half.

    NaN if the list is empty.
    """
    listed = estimated[:k]
    if not len(listed):
        return np.nan
    common = _seconds_marked(listed, _marked_by_any(references))
    return float((common >= 0.5 * (listed[:, 1] - listed[:, 0])).mean())


def _seconds_marked(listed: Spans, marked: Spans) -> Floats:
    """Compute how many seconds of each span lie in marked ones, which don't overlap."""
    pairs = overlapping(listed, marked)
    one, other = listed[pairs.first], marked[pairs.second]
    common = np.minimum(one[:, 1], other[:, 1]) - np.maximum(one[:, 0], other[:, 0])
    return np.asarray(np.bincount(pairs.first, common, len(listed)), np.float64)


def best_top_precision(references: Sequence[Spans], estimated: Spans, k: int) -> float:
    """Compute the highest `top_precision` that a list of this length can be expected to have.

    It is that of a list that begins with each segment that any annotator marked, and so is below 1 if fewer
    are marked than listed. Where the list itself has a higher one, as several of its segments lie in one that
    is marked, it is that. NaN if the list is empty.
    """
    n = min(k, len(estimated))
    if not n:
        return np.nan
    precision_of_marked = min(len(_marked_by_any(references)) / n, 1.0)
    return max(precision_of_marked, top_precision(references, estimated, k))


def _marked_by_any(references: Sequence[Spans]) -> Spans:
    """Merge the segments of all annotators."""
    return merged((float(start), float(end)) for spans in references for start, end in spans)
