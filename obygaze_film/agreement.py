"""Measure the agreement of spans in time: seconds, segments, boundaries, ranked lists."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from obygaze_features.manifest import Pairs, overlapping
from obygaze_film.schema import Spans

Floats = NDArray[np.float64]

ROUNDING = 1e-9
"""Share of a tolerance, and seconds, by which it is exceeded where candidates are searched, so that rounding
loses none."""

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
    """Mark the seconds [n] whose middle lies in a span; spans are in time order and don't overlap."""
    middles = np.arange(n) + 0.5
    last_begun = np.searchsorted(spans[:, 0], middles, side="right") - 1  # -1 before the first span
    marked: NDArray[np.bool_] = np.zeros(n, dtype=np.bool_)
    has_begun = last_begun >= 0
    marked[has_begun] = middles[has_begun] < spans[last_begun[has_begun], 1]
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
    marked_in_reference, marked_in_estimate, alike = shares
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN that is promised
        return float(kappa_of(marked_in_reference, marked_in_estimate, alike))


def kappa_of(first: Floats, second: Floats, alike: Floats) -> Floats:
    """Compute Cohen's kappa from shares of all seconds or windows; NaN if the expected agreement is 1.

    Parameters
    ----------
    first, second : ndarray
        Share that the first annotator marks, and that the second does.
    alike : ndarray
        Share that both mark, or both do not.
    """
    expected = first * second + (1 - first) * (1 - second)
    return np.asarray((alike - expected) / (1 - expected))


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
        reaches = self.shares >= threshold
        return Overlaps(Pairs(self.pairs.first[reaches], self.pairs.second[reaches]), self.shares[reaches])


def find_overlaps(reference: Spans, estimated: Spans) -> Overlaps:
    """Find the pairs of a reference span and an estimated one that have time in common."""
    near = overlapping(reference, estimated)  # also pairs that only touch
    of_reference, of_estimate = reference[near.first], estimated[near.second]  # [pairs, 2] each
    common_s = _common_s(of_reference, of_estimate)
    lengths_s = (of_reference[:, 1] - of_reference[:, 0]) + (of_estimate[:, 1] - of_estimate[:, 0])
    union_s = lengths_s - common_s
    shares_time = common_s > 0
    pairs = Pairs(near.first[shares_time], near.second[shares_time])
    return Overlaps(pairs, common_s[shares_time] / union_s[shares_time])


def _common_s(spans: Spans, others: Spans) -> Floats:
    """Compute how many seconds each span [N] has in common with the one in the same row; below 0 if apart."""
    return np.asarray(np.minimum(spans[:, 1], others[:, 1]) - np.maximum(spans[:, 0], others[:, 0]))


def boundaries_match(reference: Spans, estimated: Spans, collar_s: float) -> Pairs:
    """Find the pairs whose onsets and offsets agree by sed_eval's rule (Mesaros et al. 2016).

    Onsets are at most the collar apart, offsets at most the larger of the collar and 20 % of the reference's
    length.
    """
    # Candidates have onsets apart by hardly more than the collar; those too far apart are left out below.
    reach_s = collar_s * (1 + ROUNDING) + ROUNDING
    around_onsets = np.column_stack([reference[:, 0] - reach_s, reference[:, 0] + reach_s])
    near = overlapping(around_onsets, estimated[:, [0, 0]])
    of_reference, of_estimate = reference[near.first], estimated[near.second]  # [pairs, 2] each
    onsets_agree = np.abs(of_reference[:, 0] - of_estimate[:, 0]) <= collar_s
    allowed_s = np.maximum(collar_s, OFFSET_SHARE * (of_reference[:, 1] - of_reference[:, 0]))
    offsets_agree = np.abs(of_reference[:, 1] - of_estimate[:, 1]) <= allowed_s
    agree = onsets_agree & offsets_agree
    return Pairs(near.first[agree], near.second[agree])


def n_matched(pairs: Pairs, n_reference: int, n_estimated: int) -> int:
    """Compute how many pairs can be kept at most so that each span is in one pair alone."""
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
    # Of each estimated segment, by rank: its references as (-tIoU, index), so that the largest sorts first.
    candidates: list[list[tuple[float, int]]] = [[] for _ in order]
    for index, rank, share in zip(pairs.first.tolist(), pairs.second.tolist(), shares.tolist(), strict=True):
        candidates[rank].append((-share, index))
    is_free = np.ones(len(reference), dtype=np.bool_)
    is_right = np.zeros(len(order), dtype=np.bool_)
    for rank, references_of_segment in enumerate(candidates):
        for _, index in sorted(references_of_segment):
            if is_free[index]:
                is_right[rank] = True
                is_free[index] = False
                break
    precision = np.cumsum(is_right) / np.arange(1, len(order) + 1)
    best_from_here_on = np.maximum.accumulate(precision[::-1])[::-1]
    return float((best_from_here_on * is_right).sum() / len(reference))


def top_precision(references: Sequence[Spans], estimated: Spans, k: int) -> float:
    """Compute the share of the first k segments of which any annotator marked at least half.

    NaN if the list is empty.
    """
    listed = estimated[:k]
    if not len(listed):
        return np.nan
    marked_s = _seconds_marked(listed, _marked_by_any(references))
    lengths_s = listed[:, 1] - listed[:, 0]
    return float((marked_s >= 0.5 * lengths_s).mean())


def _seconds_marked(listed: Spans, marked: Spans) -> Floats:
    """Compute how many seconds of each listed span [N] lie in marked ones, which don't overlap."""
    pairs = overlapping(listed, marked)
    common_s = _common_s(listed[pairs.first], marked[pairs.second])
    return np.asarray(np.bincount(pairs.first, common_s, len(listed)), np.float64)


def best_top_precision(references: Sequence[Spans], estimated: Spans, k: int) -> float:
    """Compute the highest `top_precision` that a list of this length can be expected to have.

    It is that of a list that begins with each segment that any annotator marked: below 1 if fewer are marked
    than listed. The list itself may have a higher one, if several of its segments lie in one marked segment:
    then it is that. NaN if the list is empty.
    """
    n_listed = min(k, len(estimated))
    if not n_listed:
        return np.nan
    precision_of_marked = min(len(_marked_by_any(references)) / n_listed, 1.0)
    return max(precision_of_marked, top_precision(references, estimated, k))


def _marked_by_any(references: Sequence[Spans]) -> Spans:
    """Merge the segments of all annotators."""
    return merged((float(start), float(end)) for spans in references for start, end in spans)
