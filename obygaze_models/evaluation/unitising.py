"""Compute gamma of freely delimited segments: eq. 1 of App. 7.3 with alpha > 0 (Mathet et al. 2015).

The paper puts segments onto clips first, so that only their levels can differ. Here annotators may differ in
which segments they mark, where these begin and end, and which level they have. Segments of the two annotators
are aligned, one with one or with none, such that the disorder is least; the disorder of an alignment is the
mean over it, and gamma = 1 - observed / expected disorder. The expected disorder is that of annotations moved
along the film, as Mathet et al. (section 5.2) draw them.

The lowest level is no unit: it is what annotators leave unmarked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, PairAgreement
from obygaze_features.manifest.agreement import distances
from obygaze_features.manifest.near import Pairs, overlapping
from obygaze_models.evaluation.near import best_matching

Floats = NDArray[np.float64]

EMPTY = 1.0
"""Dissimilarity of a segment that is aligned with none (Mathet et al. 2015, delta of the empty unit)."""

ROUNDING = 1e-9
"""By how much further segments are looked for than can gain."""


@dataclass(frozen=True, eq=False, slots=True)
class Units:
    """The segments of one annotator: spans [N, 2] in seconds and ranks of their levels [N]."""

    spans: Floats
    ranks: NDArray[np.int64]

    def moved(self, seconds: float, start: float, end: float) -> "Units":
        """Move all segments along the film; one that would begin after its end goes to its beginning."""
        spans = self.spans + seconds
        return Units(spans - (end - start) * (spans[:, :1] > end), self.ranks)


@dataclass(frozen=True, slots=True)
class UnitGamma:
    """Agreement of two annotators on the segments that they marked.

    Attributes
    ----------
    n_units : tuple of int
        Segments of each.
    n_aligned : int
        Pairs in the best alignment.
    observed, expected : float or None
        Disorder as annotated, and its mean over the samples; None without a segment.
    value : float or None
        gamma; None without a segment, or where chance has no disorder.
    standard_error : float or None
        The error that the finite number of samples leaves in gamma.
    """

    n_units: tuple[int, int]
    n_aligned: int = 0
    observed: float | None = None
    expected: float | None = None
    value: float | None = None
    standard_error: float | None = None


def dissimilarity(
    first: Units, second: Units, pairs: Pairs, apart: Floats, *, alpha: float, beta: float
) -> Floats:
    """Measure how unlike the segments of P pairs are, [P]: alpha d_a + beta d_c (eq. 1).

    d_a is the sum of the distances between beginnings and between ends, over the sum of the two durations,
    squared: below 1 for segments that overlap wholly, above it for segments apart (Mathet et al. 2015,
    eq. 3). d_c is the distance of their levels.

    Parameters
    ----------
    first, second
        Segments.
    pairs
        Which of them to compare.
    apart
        Distances of the levels, [n_levels, n_levels].
    alpha, beta
        Weights of position and level.
    """
    left, right = first.spans[pairs.first], second.spans[pairs.second]
    ends = np.abs(left - right).sum(axis=1)
    durations = (left[:, 1] - left[:, 0]) + (right[:, 1] - right[:, 0])
    levels = apart[first.ranks[pairs.first], second.ranks[pairs.second]]
    unlike: Floats = alpha * (ends / durations) ** 2 * EMPTY + beta * levels
    return unlike


def _near(first: Units, second: Units, alpha: float) -> Pairs:
    """Find the pairs whose positions alone are not worse than to align both segments with none.

    That is alpha (ends / durations)^2 <= 2, where `ends` is at least the distance of the sums of beginning
    and end: intervals around these sums, of a width that goes with the duration, then overlap.
    """
    n, m = len(first.ranks), len(second.ranks)
    if alpha <= 0:
        rows, columns = np.divmod(np.arange(n * m), m)
        return Pairs(rows, columns)
    reach = np.sqrt(2 / alpha) * (1 + ROUNDING)
    around = []
    for units in (first, second):
        middle = units.spans.sum(axis=1)
        width = reach * (units.spans[:, 1] - units.spans[:, 0])
        around.append(np.column_stack([middle - width, middle + width]))
    return overlapping(*around)


def best_alignment(
    first: Units, second: Units, apart: Floats, *, alpha: float = 1.0, beta: float = 1.0
) -> tuple[NDArray[np.int64], float]:
    """Align the segments of two annotators such that the disorder is least (an assignment problem).

    Segments, distances of levels and weights as those of `dissimilarity`; at least one segment is needed.

    Returns
    -------
    pairs : ndarray of int, shape [K, 2]
        Rows of the first and of the second that are aligned; all others are aligned with none.
    disorder : float
        Sum of the dissimilarities over the alignment, over the mean number of segments of an annotator.

    Examples
    --------
    >>> import numpy as np
    >>> first = Units(np.array([[0.0, 10.0], [50.0, 60.0]]), np.array([0, 0]))
    >>> second = Units(np.array([[0.0, 10.0]]), np.array([0]))
    >>> pairs, disorder = best_alignment(first, second, np.zeros((1, 1)))
    >>> pairs.tolist(), round(disorder, 3)
    ([[0, 0]], 0.667)
    """
    n, m = len(first.ranks), len(second.ranks)
    near = _near(first, second, alpha)
    # Two segments are aligned with each other only if that is better than aligning both with none.
    gains = 2 * EMPTY - dissimilarity(first, second, near, apart, alpha=alpha, beta=beta)
    better = gains > 0
    pairs, gains = Pairs(near.first[better], near.second[better]), gains[better]
    chosen = best_matching(pairs, gains, (n, m))
    disorder = (EMPTY * (n + m) - float(gains[chosen].sum())) / ((n + m) / 2)
    return np.stack([pairs.first[chosen], pairs.second[chosen]], axis=1), disorder


def unitised_gamma(
    first: Units,
    second: Units,
    apart: Floats,
    film: tuple[float, float],
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    samples: int = 62,
    seed: int | Sequence[int] = 0,
) -> UnitGamma:
    """Measure the agreement of two annotators on freely delimited segments.

    Parameters
    ----------
    first, second, apart, alpha, beta
        As those of `dissimilarity`.
    film
        Beginning and end of what was annotated, in seconds.
    samples
        Chance annotations to draw, at least 2: of either annotator, moved along the film, two at a time and
        at least half a mean segment apart.
    seed
        Of these draws.
    """
    n, m = len(first.ranks), len(second.ranks)
    if not n + m:
        return UnitGamma((n, m))
    pairs, observed = best_alignment(first, second, apart, alpha=alpha, beta=beta)
    # In an order of their own: what annotators are named must change no draw.
    drawn = sorted((first, second), key=lambda own: sorted(np.c_[own.spans, own.ranks].tolist()))
    rng = np.random.default_rng(seed)
    start, end = film
    spans = np.concatenate([first.spans, second.spans])
    least = min(float((spans[:, 1] - spans[:, 0]).mean()) / 2, (end - start) / 2)
    chance: list[float] = []
    while len(chance) < samples:
        pair = [drawn[annotator] for annotator in rng.integers(0, 2, size=2)]
        if not any(len(units.ranks) for units in pair):
            continue  # an annotator who marked nothing, drawn twice
        offset = rng.uniform(0, end - start)
        offsets = (offset, offset + rng.uniform(least, end - start - least))
        left, right = (
            units.moved(by % (end - start), start, end) for units, by in zip(pair, offsets, strict=True)
        )
        chance.append(best_alignment(left, right, apart, alpha=alpha, beta=beta)[1])
    expected, n_aligned = float(np.mean(chance)), len(pairs)
    if expected == 0:
        return UnitGamma((n, m), n_aligned, observed, expected)
    # gamma = 1 - o/e, so an error of e is one of o/e^2 in gamma.
    error = observed / expected**2 * float(np.std(chance, ddof=1)) / len(chance) ** 0.5
    return UnitGamma((n, m), n_aligned, observed, expected, 1 - observed / expected, error)


def unitised_agreement(
    manifest: Manifest, *, alpha: float = 1.0, samples: int = 62
) -> tuple[PairAgreement[UnitGamma], ...]:
    """Compare every pair of annotators of every movie on the segments that they marked.

    Raises
    ------
    ManifestError
        A labelled segment has no times, or no movie has two annotators.
    """
    codebook = manifest.codebook
    apart, lowest = distances(codebook), codebook.level_names[0]
    marks: dict[str, dict[str, list[Clip]]] = {}
    for clip in manifest:
        if clip.level is not None and clip.annotator:
            if clip.start_s is None:
                raise ManifestError(
                    f"clip {clip.clip_id!r} has no start_s and end_s: "
                    "the alignment term compares segments in time",
                    "start_s",
                )
            marks.setdefault(clip.movie, {}).setdefault(clip.annotator, []).append(clip)

    def units(clips: Sequence[Clip], levels: Sequence[str]) -> Units:
        kept = [clip for clip in clips if clip.level in levels and clip.level != lowest]
        spans = np.array([(clip.start_s, clip.end_s) for clip in kept], dtype=np.float64).reshape(-1, 2)
        ranks = [codebook.rank(clip.level) for clip in kept if clip.level is not None]
        return Units(spans, np.array(ranks, dtype=np.int64))

    pairs: list[PairAgreement[UnitGamma]] = []
    for movie, annotated in marks.items():
        for first, second in combinations(sorted(annotated), 2):
            both = [*annotated[first], *annotated[second]]
            ends = np.array([(clip.start_s, clip.end_s) for clip in both])
            film = float(ends.min()), float(ends.max())
            gammas = []
            for view, levels in enumerate((codebook.level_names, codebook.labels)):
                sides = units(annotated[first], levels), units(annotated[second], levels)
                # Of what was marked: names of films would change draws, and one seed draw alike in all films.
                seed = (view, *np.sort(ends, axis=None).view(np.uint32).tolist())
                gammas.append(unitised_gamma(*sides, apart, film, alpha=alpha, samples=samples, seed=seed))
            pairs.append(PairAgreement(movie, (first, second), *gammas))
    if not pairs:
        raise ManifestError("no movie has two annotators, so there is nothing to compare")
    return tuple(pairs)
