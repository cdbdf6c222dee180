"""Measure the agreement of a timeline with annotations: seconds, segments, boundaries, ranked lists."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

Spans = NDArray[np.float64]
"""Starts and ends in seconds, shape [N, 2]."""

THRESHOLDS = (0.1, 0.3, 0.5)
"""Temporal intersections over unions (tIoU) at which segments count as found."""

COLLARS_S = (5.0, 15.0)
"""Tolerances of onsets and offsets, in seconds."""

OFFSET_SHARE = 0.2
"""Tolerance of offsets as a share of the reference's length (sed_eval's default is 0.5)."""


def merged(spans: Iterable[tuple[float, float]]) -> Spans:
    """Sort spans by time and merge those that overlap or touch."""
    found: list[list[float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end])
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def seconds_in(spans: Spans, n: int) -> NDArray[np.bool_]:
    """Mark the seconds [n] whose middle lies in a span; spans don't overlap."""
    middles = np.arange(n) + 0.5
    before = np.searchsorted(spans[:, 0], middles, side="right") - 1
    found: NDArray[np.bool_] = np.zeros(n, dtype=np.bool_)
    some = before >= 0
    found[some] = middles[some] < spans[before[some], 1]
    return found


def f1(found: float, n_estimated: int, n_reference: int) -> float:
    """Compute 2 found / (estimated + reference); NaN if both are 0."""
    return 2 * found / (n_estimated + n_reference) if n_estimated + n_reference else np.nan


def second_f1(reference: NDArray[np.bool_], estimated: NDArray[np.bool_]) -> float:
    """Compute the F1 of marked seconds [n]; symmetric in its arguments."""
    return f1(float((reference & estimated).sum()), int(estimated.sum()), int(reference.sum()))


def kappa(reference: NDArray[np.bool_], estimated: NDArray[np.bool_]) -> float:
    """Compute Cohen's kappa of marked seconds [n]; NaN if the expected agreement is 1."""
    a, b = reference.mean(), estimated.mean()
    chance = a * b + (1 - a) * (1 - b)
    return float(((reference == estimated).mean() - chance) / (1 - chance)) if chance < 1 else np.nan


def overlap_matrix(reference: Spans, estimated: Spans) -> NDArray[np.float64]:
    """Compute the tIoU of each pair of spans [R, E]."""
    common = np.minimum(reference[:, None, 1], estimated[None, :, 1])
    common = np.clip(common - np.maximum(reference[:, None, 0], estimated[None, :, 0]), 0, None)
    lengths = (reference[:, 1] - reference[:, 0])[:, None] + (estimated[:, 1] - estimated[:, 0])[None]
    found: NDArray[np.float64] = common / (lengths - common)
    return found


def boundaries_match(reference: Spans, estimated: Spans, collar_s: float) -> NDArray[np.bool_]:
    """Mark the pairs [R, E] whose onsets and offsets agree by sed_eval's rule (Mesaros et al. 2016).

    Onsets are at most the collar apart, offsets at most the larger of the collar and 20 % of the reference's
    length.
    """
    onsets = np.abs(reference[:, None, 0] - estimated[None, :, 0]) <= collar_s
    allowed = np.maximum(collar_s, OFFSET_SHARE * (reference[:, 1] - reference[:, 0]))[:, None]
    found: NDArray[np.bool_] = onsets & (np.abs(reference[:, None, 1] - estimated[None, :, 1]) <= allowed)
    return found


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
    right = np.zeros(len(order), dtype=np.bool_)
    for place in range(len(order)):
        best = int(np.argmax(overlaps[:, place]))
        if overlaps[best, place] >= threshold:
            right[place] = True
            overlaps[best] = -1.0
    found = np.cumsum(right)
    precision = found / np.arange(1, len(order) + 1)
    best_after = np.maximum.accumulate(precision[::-1])[::-1]
    return float((best_after * right).sum() / len(reference))


def top_precision(references: Sequence[Spans], estimated: Spans, k: int) -> float:
    """Compute the share of the first k segments of which any annotator marked at least half.

    NaN if the list is empty.
    """
    listed = estimated[:k]
    if not len(listed):
        return np.nan
    every = merged((float(start), float(end)) for spans in references for start, end in spans)
    common = np.minimum(listed[:, None, 1], every[None, :, 1])
    common = np.clip(common - np.maximum(listed[:, None, 0], every[None, :, 0]), 0, None).sum(axis=1)
    return float((common >= 0.5 * (listed[:, 1] - listed[:, 0])).mean())
