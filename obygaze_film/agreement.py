"""Measure the agreement of spans in time: seconds, segments, boundaries, ranked lists."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from obygaze_features.manifest import Pairs, overlapping
from obygaze_film.schema import Spans

Floats = NDArray[np.float64]

SEARCH_SLACK = 1e-9
"""How far candidates are searched beyond a tolerance, relative to it and in seconds."""

HALF = 0.5
"""Least share of a listed segment that annotators must have marked for the segment to be right."""

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


def span_of_each_second(spans: Spans, n: int) -> NDArray[np.intp]:
    """Find which span the middle of each of the first n seconds of a film lies in; returns its index [n].

    The index is -1 if it lies in none. The spans [S, 2] are in time order and don't overlap.
    """
    if not len(spans):
        return np.full(n, -1, dtype=np.intp)
    middles = np.arange(n) + 0.5
    n_begun = np.searchsorted(spans[:, 0], middles, side="right")  # spans that begin by each middle
    latest = np.maximum(n_begun - 1, 0)  # index of the span that began last; 0 where none has begun
    is_before_its_end = middles < spans[latest, 1]
    is_in_span = (n_begun > 0) & is_before_its_end
    return np.where(is_in_span, latest, -1)


def seconds_in(spans: Spans, n: int) -> NDArray[np.bool_]:
    """Mark which of the first n seconds of a film have their middle in a span; returns [n].

    The spans [S, 2] are in time order and don't overlap.
    """
    return np.asarray(span_of_each_second(spans, n) >= 0)


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
    with np.errstate(invalid="ignore"):  # 0 / 0 gives NaN
        return float(kappa_of(marked_in_reference, marked_in_estimate, alike))


def kappa_of(first: Floats, second: Floats, alike: Floats) -> Floats:
    """Compute Cohen's kappa from shares of all seconds or windows; NaN if the expected agreement is 1.

    Kappa is (agreement - expected) / (1 - expected). Expected is the agreement of two annotators who mark as
    much as these two, but independently of each other (Cohen, Educ. Psychol. Meas. 20, 1960).

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
        """Keep the pairs whose temporal intersection over union reaches a threshold."""
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
    candidates = _with_near_onsets(reference, estimated, collar_s)
    reference_spans = reference[candidates.first]  # [pairs, 2]
    estimated_spans = estimated[candidates.second]  # [pairs, 2]
    onsets_agree = np.abs(reference_spans[:, 0] - estimated_spans[:, 0]) <= collar_s
    offset_tolerance_s = np.maximum(collar_s, OFFSET_SHARE * _lengths_s(reference_spans))
    offsets_agree = np.abs(reference_spans[:, 1] - estimated_spans[:, 1]) <= offset_tolerance_s
    agree = onsets_agree & offsets_agree
    return Pairs(candidates.first[agree], candidates.second[agree])


def _with_near_onsets(reference: Spans, estimated: Spans, collar_s: float) -> Pairs:
    """Find all pairs whose onsets are at most the collar apart, and perhaps a few that are slightly more.

    This saves comparing every span with every other; the caller tests the pairs exactly.
    """
    # The relative slack covers the rounding of long times, the absolute one a collar of 0.
    reach_s = collar_s * (1 + SEARCH_SLACK) + SEARCH_SLACK
    around_reference = np.column_stack([reference[:, 0] - reach_s, reference[:, 0] + reach_s])
    onsets = np.column_stack([estimated[:, 0], estimated[:, 0]])  # spans of no length
    return overlapping(around_reference, onsets)


def n_matched(pairs: Pairs, n_reference: int, n_estimated: int) -> int:
    """Compute the largest number of pairs that can be kept so that each span is in one pair at most.

    It is a maximum matching of a bipartite graph, whose nodes are the reference spans and the estimated ones.
    """
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
    """Compute the F1 of segments, matched one to one if their tIoU reaches the threshold (> 0)."""
    pairs = find_overlaps(reference, estimated).reaching(threshold).pairs
    return _f1_of_pairs(pairs, n_reference=len(reference), n_estimated=len(estimated))


def boundary_f1(reference: Spans, estimated: Spans, collar_s: float) -> float:
    """Compute the F1 of segments, matched one to one if their boundaries agree (`boundaries_match`)."""
    pairs = boundaries_match(reference, estimated, collar_s)
    return _f1_of_pairs(pairs, n_reference=len(reference), n_estimated=len(estimated))


def _f1_of_pairs(pairs: Pairs, *, n_reference: int, n_estimated: int) -> float:
    """Compute the F1 of segments, if as many of these pairs as possible are matched one to one.

    Parameters
    ----------
    pairs : Pairs
        Pairs of a reference segment and an estimated one that may be matched.
    n_reference, n_estimated : int
        Number of all reference segments, and of all estimated ones.
    """
    n_found = n_matched(pairs, n_reference, n_estimated)
    return f1(n_found, n_estimated=n_estimated, n_reference=n_reference)


def segment_ap(reference: Spans, estimated: Spans, scores: ArrayLike, threshold: float) -> float:
    """Compute the average precision of a ranked list of segments, as ActivityNet does (Heilbron et al. 2015).

    Segments are ranked by score, the highest first, and matched with references one to one; a matched segment
    is right. Precision is interpolated: at each rank, it is the largest precision at that or a later rank.
    The average precision is the sum of the interpolated precision at the ranks of right segments, divided by
    the number of references. NaN without a reference.

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
    is_right = _has_match(reference, estimated[best_first], threshold)
    ranks = np.arange(1, len(is_right) + 1)
    precision = np.cumsum(is_right) / ranks
    # The largest at this or a later rank: accumulated from the last rank back.
    interpolated = np.maximum.accumulate(precision[::-1])[::-1]
    # Recall rises by 1 / len(reference) at each right segment.
    return float((interpolated * is_right).sum() / len(reference))


def _has_match(reference: Spans, ranked: Spans, threshold: float) -> NDArray[np.bool_]:
    """Match ranked segments [E, 2] with references [R, 2] greedily; return whether each has a match [E].

    The segments choose in the order of their ranks. Each takes the free reference of highest tIoU, if that
    tIoU reaches the threshold.
    """
    pairs, tiou = find_overlaps(reference, ranked).reaching(threshold)
    # Pairs by rank, and those of one rank by falling tIoU; of equal tIoU, the first reference comes first.
    order = np.lexsort((pairs.first, -tiou, pairs.second))  # sorts by its last key first
    references = pairs.first[order].tolist()
    ranks = pairs.second[order].tolist()

    is_free = np.ones(len(reference), dtype=np.bool_)
    has_match = np.zeros(len(ranked), dtype=np.bool_)
    for index, rank in zip(references, ranks, strict=True):
        if is_free[index] and not has_match[rank]:
            has_match[rank] = True
            is_free[index] = False
    return has_match


def top_precision(references: Sequence[Spans], estimated: Spans, k: int) -> float:
    """Compute the precision of the first k segments of a ranked list: the share of them that is right.

    A segment is right if at least half of it is marked. A second is marked if any annotator marked it.
    NaN if the list is empty.

    Parameters
    ----------
    references : sequence of ndarray, shape [S, 2]
        Spans that each annotator marked.
    estimated : ndarray, shape [E, 2]
        The ranked list, best first.
    k : int
    """
    first = estimated[:k]
    if not len(first):
        return np.nan
    return float(_is_mostly_marked(first, _marked_by_any(references)).mean())


def _is_mostly_marked(spans: Spans, marked: Spans) -> NDArray[np.bool_]:
    """Return whether at least half of each span [N] is marked; the marked spans don't overlap each other."""
    return np.asarray(_seconds_marked(spans, marked) >= HALF * _lengths_s(spans))


def _seconds_marked(spans: Spans, marked: Spans) -> Floats:
    """Compute how many seconds of each span [N] are marked; the marked spans don't overlap each other."""
    pairs = overlapping(spans, marked)
    common_s = _common_s(spans[pairs.first], marked[pairs.second])
    sums_s = np.bincount(pairs.first, weights=common_s, minlength=len(spans))
    return np.asarray(sums_s, np.float64)


def reachable_top_precision(
    references: Sequence[Spans], estimated: Spans, k: int, *, min_s: float = 0.0
) -> float:
    """Compute a `top_precision` that a list as long as a model's can reach, as a yardstick for the model's.

    It is n_right / n, at most 1. n is the smaller of k and the length of the model's list, and n_right is the
    larger of

    - the number of marked spans that are long enough to fill half of a segment: a list could have one right
      segment around each of them;
    - the number of the model's segments that are right, wherever they are in its list: several may lie in one
      marked span.

    A cleverer list could have more, with several segments in each long marked span; that one isn't sought.
    NaN if the model's list is empty.

    Parameters
    ----------
    references : sequence of ndarray, shape [S, 2]
        Spans that each annotator marked.
    estimated : ndarray, shape [E, 2]
        The model's list, in any order.
    k : int
    min_s : float
        Seconds of the shortest segment that can be listed.
    """
    n_listed = min(k, len(estimated))
    if not n_listed:
        return np.nan
    marked = _marked_by_any(references)
    n_long_enough = int((_lengths_s(marked) >= HALF * min_s).sum())
    n_right_in_list = int(_is_mostly_marked(estimated, marked).sum())
    n_right = max(n_long_enough, n_right_in_list)
    return min(n_right / n_listed, 1.0)


def _marked_by_any(references: Sequence[Spans]) -> Spans:
    """Return the spans that at least one annotator marked, in time order and without overlaps."""
    return merged((float(start), float(end)) for spans in references for start, end in spans)
