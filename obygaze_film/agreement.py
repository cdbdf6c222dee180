"""Measure the agreement of spans in time: seconds, segments, boundaries, ranked lists."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from obygaze_film.schema import Spans

Floats = NDArray[np.float64]

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
    """Compute Cohen's kappa of the shares that each marks and of what both call alike; NaN as `kappa`."""
    chance = first * second + (1 - first) * (1 - second)
    return np.asarray((alike - chance) / (1 - chance))


def overlap_matrix(reference: Spans, estimated: Spans) -> NDArray[np.float64]:
    """Compute the tIoU of each pair of spans [R, E]."""
    common = _common_s(reference, estimated)
    lengths = (reference[:, 1] - reference[:, 0])[:, None] + (estimated[:, 1] - estimated[:, 0])[None]
    return np.asarray(common / (lengths - common))


def _common_s(reference: Spans, estimated: Spans) -> NDArray[np.float64]:
    """Compute how many seconds each pair of spans [R, E] has in common."""
    common = np.minimum(reference[:, None, 1], estimated[None, :, 1])
    return np.asarray((common - np.maximum(reference[:, None, 0], estimated[None, :, 0])).clip(0))


def boundaries_match(reference: Spans, estimated: Spans, collar_s: float) -> NDArray[np.bool_]:
    """Mark the pairs [R, E] whose onsets and offsets agree by sed_eval's rule (Mesaros et al. 2016).

    Onsets are at most the collar apart, offsets at most the larger of the collar and 20 % of the reference's
    length.
    """
    onsets = np.abs(reference[:, None, 0] - estimated[None, :, 0]) <= collar_s
    allowed = np.maximum(collar_s, OFFSET_SHARE * (reference[:, 1] - reference[:, 0]))[:, None]
    return np.asarray(onsets & (np.abs(reference[:, None, 1] - estimated[None, :, 1]) <= allowed))


def n_matched(pairs: NDArray[np.bool_]) -> int:
    """Compute the size of the largest one-to-one matching of pairs [R, E]."""
    if not pairs.any():
        return 0
    rows, columns = linear_sum_assignment(pairs, maximize=True)
    return int(pairs[rows, columns].sum())


def segment_f1(reference: Spans, estimated: Spans, threshold: float) -> float:
    """Compute the F1 of segments, matched one to one if their tIoU reaches the threshold."""
    pairs = overlap_matrix(reference, estimated) >= threshold
    return f1(n_matched(pairs), len(estimated), len(reference))


def boundary_f1(reference: Spans, estimated: Spans, collar_s: float) -> float:
    """Compute the F1 of segments whose boundaries agree (`boundaries_match`)."""
    return f1(n_matched(boundaries_match(reference, estimated, collar_s)), len(estimated), len(reference))


def segment_ap(reference: Spans, estimated: Spans, scores: ArrayLike, threshold: float) -> float:
    """Compute the average precision of a ranked list of segments, as ActivityNet does (Heilbron et al. 2015).

    From the highest score on, a segment is right if its tIoU with a reference that is still free reaches the
    threshold; it takes the one that it overlaps most. Precision is interpolated: at each recall, the best at
    that or a higher recall. NaN without a reference.
    """
    if not len(reference):
        return np.nan
    order = np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")
    overlaps = overlap_matrix(reference, estimated[order])
    is_hit = np.zeros(len(order), dtype=np.bool_)
    for rank in range(len(order)):
        best = int(np.argmax(overlaps[:, rank]))
        if overlaps[best, rank] >= threshold:
            is_hit[rank] = True
            overlaps[best] = -1.0
    n_right = np.cumsum(is_hit)
    precision = n_right / np.arange(1, len(order) + 1)
    best_after = np.maximum.accumulate(precision[::-1])[::-1]
    return float((best_after * is_hit).sum() / len(reference))


def top_precision(references: Sequence[Spans], estimated: Spans, k: int) -> float:
    """Compute the share of the first k segments of which any annotator marked at least half.

    NaN if the list is empty.
    """
    listed = estimated[:k]
    if not len(listed):
        return np.nan
    common = _common_s(listed, _marked_by_any(references)).sum(axis=1)
    return float((common >= 0.5 * (listed[:, 1] - listed[:, 0])).mean())


def best_top_precision(references: Sequence[Spans], estimated: Spans, k: int) -> float:
    """Compute the `top_precision` of an equally long list that begins with all that any annotator marked.

    It is below 1 if fewer segments are marked than listed. If the list itself does better, since several of
    its segments lie in one that is marked, that is the best. NaN if the list is empty.
    """
    n = min(k, len(estimated))
    if not n:
        return np.nan
    return max(min(len(_marked_by_any(references)) / n, 1.0), top_precision(references, estimated, k))


def _marked_by_any(references: Sequence[Spans]) -> Spans:
    """Merge the segments of all annotators."""
    return merged((float(start), float(end)) for spans in references for start, end in spans)
