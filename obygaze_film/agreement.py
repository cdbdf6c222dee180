"""Measure the agreement of spans in time: seconds, segments, boundaries, ranked lists."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from obygaze_features.manifest import Pairs, overlapping
from obygaze_film.schema import Spans

Floats = NDArray[np.float64]

SEARCH_SLACK = 1e-9
"""Candidates are searched this far beyond a tolerance, so that rounding loses none: as a part of the
tolerance (which may be long), and in seconds (as it may be 0)."""

HALF = 0.5
"""Part of a listed segment that must be marked if it is to be right."""

OFFSET_SHARE = 0.2
"""Tolerance of offsets as a share of the reference's length (sed_eval's default is 0.5)."""


def merged(spans: Iterable[tuple[float, float]]) -> Spans:
    """Sort spans by time and join those that overlap or touch; return [N, 2] starts and ends."""
    disjoint: list[list[float]] = []
    for start, end in sorted(spans):
        if disjoint and start <= disjoint[-1][1]:
            disjoint[-1][1] = max(disjoint[-1][1], end)
        else:
            disjoint.append([start, end])
    return np.array(disjoint, dtype=np.float64).reshape(-1, 2)


def seconds_in(spans: Spans, n: int) -> NDArray[np.bool_]:
    """Mark the seconds [n] whose middle lies in a span; spans are in time order and don't overlap."""
    is_marked: NDArray[np.bool_] = np.zeros(n, dtype=np.bool_)
    if not len(spans):
        return is_marked
    middles = np.arange(n) + 0.5
    n_begun = np.searchsorted(spans[:, 0], middles, side="right")
    has_begun = n_begun > 0
    last_begun = np.maximum(n_begun - 1, 0)  # index of a span; of the first where none has begun
    is_before_its_end = middles < spans[last_begun, 1]
    return np.asarray(has_begun & is_before_its_end)


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
    tiou : ndarray, shape [P]
        Their temporal intersection over union: common time / time of either.
    """

    pairs: Pairs
    tiou: Floats

    def reaching(self, threshold: float) -> "Overlaps":
        """Keep the pairs whose tIoU reaches a threshold."""
        reaches = self.tiou >= threshold
        return Overlaps(Pairs(self.pairs.first[reaches], self.pairs.second[reaches]), self.tiou[reaches])


def find_overlaps(reference: Spans, estimated: Spans) -> Overlaps:
    """Find the pairs of a reference span and an estimated one that have time in common."""
    candidates = overlapping(reference, estimated)  # also pairs that only touch
    reference_spans = reference[candidates.first]  # [pairs, 2]
    estimated_spans = estimated[candidates.second]  # [pairs, 2]
    common_s = _common_s(reference_spans, estimated_spans)
    lengths_s = _lengths_s(reference_spans) + _lengths_s(estimated_spans)
    union_s = lengths_s - common_s
    has_common_time = common_s > 0
    pairs = Pairs(candidates.first[has_common_time], candidates.second[has_common_time])
    return Overlaps(pairs, common_s[has_common_time] / union_s[has_common_time])


def _lengths_s(spans: Spans) -> Floats:
    """Compute the length of each span [N]."""
    return np.asarray(spans[:, 1] - spans[:, 0])


def _common_s(spans: Spans, others: Spans) -> Floats:
    """Compute how many seconds each span [N] has in common with the one in the same row; below 0 if apart."""
    return np.asarray(np.minimum(spans[:, 1], others[:, 1]) - np.maximum(spans[:, 0], others[:, 0]))


def boundaries_match(reference: Spans, estimated: Spans, collar_s: float) -> Pairs:
    """Find the pairs whose onsets and offsets agree by sed_eval's rule (Mesaros et al. 2016).

    Onsets are at most the collar apart, offsets at most the larger of the collar and 20 % of the reference's
    length.
    """
    # Candidates have an estimated onset within reach of the reference's. `overlapping` finds them if both are
    # written as spans: that within reach, and one of no length at the onset. The test below is exact.
    reach_s = collar_s * (1 + SEARCH_SLACK) + SEARCH_SLACK
    spans_within_reach = np.column_stack([reference[:, 0] - reach_s, reference[:, 0] + reach_s])
    onsets = np.column_stack([estimated[:, 0], estimated[:, 0]])
    candidates = overlapping(spans_within_reach, onsets)
    reference_spans = reference[candidates.first]  # [pairs, 2]
    estimated_spans = estimated[candidates.second]  # [pairs, 2]
    onsets_agree = np.abs(reference_spans[:, 0] - estimated_spans[:, 0]) <= collar_s
    offset_tolerance_s = np.maximum(collar_s, OFFSET_SHARE * _lengths_s(reference_spans))
    offsets_agree = np.abs(reference_spans[:, 1] - estimated_spans[:, 1]) <= offset_tolerance_s
    agree = onsets_agree & offsets_agree
    return Pairs(candidates.first[agree], candidates.second[agree])


def n_matched(pairs: Pairs, n_reference: int, n_estimated: int) -> int:
    """Compute the largest number of pairs that can be kept so that each span is in one pair at most."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow, and films are opened without it
    from scipy.sparse.csgraph import maximum_bipartite_matching  # noqa: PLC0415 - as above

    if not len(pairs.first):
        return 0
    rows_and_columns = (pairs.first, pairs.second)
    links = csr_array(
        (np.ones(len(pairs.first), np.int8), rows_and_columns), shape=(n_reference, n_estimated)
    )
    partner_of = maximum_bipartite_matching(links)  # -1: without a partner
    return int((partner_of >= 0).sum())


def segment_f1(reference: Spans, estimated: Spans, threshold: float) -> float:
    """Compute the F1 of segments, matched one to one if their tIoU reaches the threshold, above 0."""
    pairs = find_overlaps(reference, estimated).reaching(threshold).pairs
    return _f1_of_pairs(pairs, n_reference=len(reference), n_estimated=len(estimated))


def boundary_f1(reference: Spans, estimated: Spans, collar_s: float) -> float:
    """Compute the F1 of segments, matched one to one if their boundaries agree (`boundaries_match`)."""
    pairs = boundaries_match(reference, estimated, collar_s)
    return _f1_of_pairs(pairs, n_reference=len(reference), n_estimated=len(estimated))


def _f1_of_pairs(pairs: Pairs, *, n_reference: int, n_estimated: int) -> float:
    """Compute the F1 of segments that may be matched by these pairs, one to one."""
    n_found = n_matched(pairs, n_reference, n_estimated)
    return f1(n_found, n_estimated, n_reference)


def segment_ap(reference: Spans, estimated: Spans, scores: ArrayLike, threshold: float) -> float:
    """Compute the average precision of a ranked list of segments, as ActivityNet does (Heilbron et al. 2015).

    Segments are taken from the highest score on, and matched with references one to one (`_are_right`).
    Precision is interpolated: at each rank, it is the best at that or a later rank. The average is that over
    the right segments, divided by the number of references. NaN without a reference.

    Parameters
    ----------
    reference, estimated : ndarray, shape [R, 2] and [E, 2]
    scores : array-like, shape [E]
    threshold : float
        Above 0.
    """
    if not len(reference):
        return np.nan
    best_first = np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")
    is_right = _are_right(reference, estimated[best_first], threshold)
    ranks = np.arange(1, len(is_right) + 1)
    precision = np.cumsum(is_right) / ranks
    # The largest at this or a later rank: accumulated from the last rank back.
    interpolated = np.maximum.accumulate(precision[::-1])[::-1]
    # Recall rises by 1 / len(reference) at each right segment.
    return float((interpolated * is_right).sum() / len(reference))


def _are_right(reference: Spans, ranked: Spans, threshold: float) -> NDArray[np.bool_]:
    """Match ranked segments [E, 2] with references [R, 2], and tell which find one [E].

    Each in turn takes the reference with which its tIoU is highest, among those that no segment before it
    took and with which its tIoU reaches the threshold.
    """
    pairs, tiou = find_overlaps(reference, ranked).reaching(threshold)
    candidates_by_rank: list[list[_Candidate]] = [[] for _ in ranked]
    for index, rank, tiou_of_pair in zip(
        pairs.first.tolist(), pairs.second.tolist(), tiou.tolist(), strict=True
    ):
        candidates_by_rank[rank].append(_Candidate(tiou_of_pair, index))
    is_free = np.ones(len(reference), dtype=np.bool_)
    is_right = np.zeros(len(ranked), dtype=np.bool_)
    for rank, candidates in enumerate(candidates_by_rank):
        # Of references with the same tIoU, the first one is taken.
        for candidate in sorted(candidates, key=lambda candidate: (-candidate.tiou, candidate.reference)):
            if is_free[candidate.reference]:
                is_right[rank] = True
                is_free[candidate.reference] = False
                break
    return is_right


class _Candidate(NamedTuple):
    """A reference that a segment may be matched with: their tIoU, and the reference's index."""

    tiou: float
    reference: int


def top_precision(references: Sequence[Spans], estimated: Spans, k: int) -> float:
    """Compute the share of the first k segments of which the annotators together marked at least half.

    A second counts as marked if any annotator marked it. NaN if the list is empty.
    """
    listed = estimated[:k]
    if not len(listed):
        return np.nan
    return float(_is_mostly_marked(listed, _marked_by_any(references)).mean())


def _is_mostly_marked(spans: Spans, marked: Spans) -> NDArray[np.bool_]:
    """Say of each span [N] whether at least half is marked; the marked spans don't overlap each other."""
    lengths_s = spans[:, 1] - spans[:, 0]
    return np.asarray(_seconds_marked(spans, marked) >= HALF * lengths_s)


def _seconds_marked(spans: Spans, marked: Spans) -> Floats:
    """Compute how many seconds of each span [N] are marked; the marked spans don't overlap each other."""
    pairs = overlapping(spans, marked)
    common_s = _common_s(spans[pairs.first], marked[pairs.second])
    sums_s = np.bincount(pairs.first, weights=common_s, minlength=len(spans))
    return np.asarray(sums_s, np.float64)


def reachable_top_precision(
    references: Sequence[Spans], estimated: Spans, k: int, *, least_s: float = 0.0
) -> float:
    """Compute a `top_precision` that a list of segments as long as this one can reach.

    A listed segment is right if at least half of it is marked. Two lists are tried, and the one with more
    right segments counts. It need not be the best: that may have several segments in a long marked one.

    - a list with one segment around each marked segment. It is right unless the marked one is shorter than
      half of the shortest segment that can be listed;
    - the estimated segments themselves, the right ones first. Several of them may lie in one marked segment,
      and so it may have more right ones than the first list.

    NaN if the list is empty.

    Parameters
    ----------
    references : sequence of ndarray, shape [S, 2]
    estimated : ndarray, shape [E, 2]
    k : int
    least_s : float
        Seconds of the shortest segment that can be listed.
    """
    n_listed = min(k, len(estimated))
    if not n_listed:
        return np.nan
    marked = _marked_by_any(references)
    n_right_around_marked = int((_lengths_s(marked) >= HALF * least_s).sum())
    n_right_estimated = int(_is_mostly_marked(estimated, marked).sum())
    n_right = max(n_right_around_marked, n_right_estimated)
    return min(n_right / n_listed, 1.0)


def _marked_by_any(references: Sequence[Spans]) -> Spans:
    """Return the spans that at least one annotator marked, in time order and without overlaps."""
    return merged((float(start), float(end)) for spans in references for start, end in spans)
