"""Compute gamma of freely delimited segments: eq. 1 of App. 7.3 with alpha > 0 (Mathet et al. 2015).

The paper puts segments onto clips first, so that only their levels can differ. Here annotators may differ in
which segments they mark, where these begin and end, and which level they have. Segments of the two annotators
are aligned, one with one or with none, such that the disorder is least. The disorder of an alignment is the
mean dissimilarity over it, and gamma = 1 - observed / expected disorder. The expected disorder is that of
annotations that are moved along the film, as Mathet et al. (section 5.2) draw them.

Segments of the lowest level do not count: that level is what annotators leave unmarked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Codebook, Manifest, PairAgreement
from obygaze_features.manifest.agreement import distances
from obygaze_features.manifest.near import Pairs, overlapping
from obygaze_models.evaluation.near import best_matching

Floats = NDArray[np.float64]

EMPTY = 1.0
"""Dissimilarity of a segment that is aligned with none (Mathet et al. 2015, delta of the empty unit)."""

ROUNDING = 1e-9
"""Segments are looked for further away by this share than can gain, so that rounding loses none."""


@dataclass(frozen=True, eq=False, slots=True)
class Units:
    """The segments of one annotator: spans [N, 2] in seconds and ranks of their levels [N]."""

    spans: Floats
    ranks: NDArray[np.int64]

    def moved(self, seconds: float, start: float, end: float) -> "Units":
        """Move all segments along a film, from `start` to `end`.

        A segment that would begin after the film's end goes on from the film's beginning.
        """
        moved = self.spans + seconds
        begins_after_end = moved[:, :1] > end
        return Units(np.where(begins_after_end, moved - (end - start), moved), self.ranks)


@dataclass(frozen=True, slots=True)
class UnitGamma:
    """Agreement of two annotators on the segments that they marked.

    Attributes
    ----------
    n_units : tuple of int
        Number of segments of each annotator.
    n_aligned : int
        Number of pairs of segments in the best alignment.
    observed, expected : float or None
        Disorder as annotated, and its mean over the chance annotations; None without a segment.
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

    d_a is the sum of the distances between beginnings and between ends, divided by the sum of the two
    durations, squared. It is at most 1 for segments that overlap, and above 1 for segments apart (Mathet et
    al. 2015, eq. 3). d_c is the distance of their levels.

    Parameters
    ----------
    first, second
        Segments of the two annotators.
    pairs
        The pairs of segments to compare, by their rows.
    apart
        Distances of the levels, [n_levels, n_levels].
    alpha, beta
        Weights of position and level.
    """
    left = first.spans[pairs.first]
    right = second.spans[pairs.second]
    ends = np.abs(left - right).sum(axis=1)
    durations = (left[:, 1] - left[:, 0]) + (right[:, 1] - right[:, 0])
    of_position = (ends / durations) ** 2 * EMPTY
    of_level = apart[first.ranks[pairs.first], second.ranks[pairs.second]]
    total: Floats = alpha * of_position + beta * of_level
    return total


def _near(first: Units, second: Units, alpha: float) -> Pairs:
    """Find the pairs whose positions alone do not make aligning them worse than aligning both with none.

    These have alpha (ends / durations)^2 <= 2, so that `ends` is at most sqrt(2 / alpha) times the sum of the
    durations. As `ends` is at least the distance of the two sums of beginning and end, intervals around these
    sums, each reaching that many of its own durations, then overlap.
    """
    n_first = len(first.ranks)
    n_second = len(second.ranks)
    if alpha <= 0:
        # Positions do not count: every pair is near.
        rows, columns = np.divmod(np.arange(n_first * n_second), n_second)
        return Pairs(rows, columns)
    reach = np.sqrt(2 / alpha) * (1 + ROUNDING)
    return overlapping(_around_sums(first, reach), _around_sums(second, reach))


def _around_sums(units: Units, reach: float) -> Floats:
    """Make an interval [N, 2] around the sum of each segment's ends, of `reach` durations to either side."""
    sums = units.spans.sum(axis=1)
    width = reach * (units.spans[:, 1] - units.spans[:, 0])
    return np.column_stack([sums - width, sums + width])


def best_alignment(
    first: Units, second: Units, apart: Floats, *, alpha: float = 1.0, beta: float = 1.0
) -> tuple[NDArray[np.int64], float]:
    """Align the segments of two annotators such that the disorder is least (an assignment problem).

    The parameters are those of `dissimilarity`; at least one segment is needed.

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
    n_first = len(first.ranks)
    n_second = len(second.ranks)
    near = _near(first, second, alpha)
    # Two segments are aligned with each other only if that is better than aligning both with none.
    gains = 2 * EMPTY - dissimilarity(first, second, near, apart, alpha=alpha, beta=beta)
    is_better = gains > 0
    pairs = Pairs(near.first[is_better], near.second[is_better])
    gains = gains[is_better]
    chosen = best_matching(pairs, gains, (n_first, n_second))
    n_units = n_first + n_second
    total = EMPTY * n_units - float(gains[chosen].sum())
    disorder = total / (n_units / 2)
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
        Number of chance annotations, at least 2. Each is two annotations, of either annotator, which are
        moved along the film and stay at least half a mean segment apart.
    seed
        Seed of these draws.
    """
    n_units = (len(first.ranks), len(second.ranks))
    if sum(n_units) == 0:
        return UnitGamma(n_units)
    pairs, observed = best_alignment(first, second, apart, alpha=alpha, beta=beta)
    chance = []
    for left, right in _moved_pairs(first, second, film, samples, np.random.default_rng(seed)):
        _, disorder = best_alignment(left, right, apart, alpha=alpha, beta=beta)
        chance.append(disorder)
    expected = float(np.mean(chance))
    if expected == 0:
        return UnitGamma(n_units, len(pairs), observed, expected)
    error_of_expected = float(np.std(chance, ddof=1)) / len(chance) ** 0.5
    return UnitGamma(
        n_units=n_units,
        n_aligned=len(pairs),
        observed=observed,
        expected=expected,
        value=1 - observed / expected,
        # The derivative of gamma = 1 - o / e by e is o / e^2.
        standard_error=observed / expected**2 * error_of_expected,
    )


def _moved_pairs(
    first: Units, second: Units, film: tuple[float, float], samples: int, rng: np.random.Generator
) -> Iterator[tuple[Units, Units]]:
    """Yield pairs of annotations that agree by chance alone: drawn of the two, and moved along the film."""
    start, end = film
    duration = end - start
    spans = np.concatenate([first.spans, second.spans])
    mean_segment = float((spans[:, 1] - spans[:, 0]).mean())
    least = min(mean_segment / 2, duration / 2)
    # In an order by what was marked, so that the annotators' names change no draw.
    annotations = sorted((first, second), key=lambda units: sorted(np.c_[units.spans, units.ranks].tolist()))
    n_drawn = 0
    while n_drawn < samples:
        one, other = (annotations[annotator] for annotator in rng.integers(0, 2, size=2))
        if not len(one.ranks) and not len(other.ranks):
            continue  # an annotator who marked nothing, drawn twice
        offset = rng.uniform(0, duration)
        further = rng.uniform(least, duration - least)
        yield (
            one.moved(offset % duration, start, end),
            other.moved((offset + further) % duration, start, end),
        )
        n_drawn += 1


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
    apart = distances(codebook)
    pairs: list[PairAgreement[UnitGamma]] = []
    for movie, segments_of in _segments(manifest).items():
        for first, second in combinations(sorted(segments_of), 2):
            segments = [*segments_of[first], *segments_of[second]]
            ends = np.array([(clip.start_s, clip.end_s) for clip in segments])
            film = (float(ends.min()), float(ends.max()))
            gammas = []
            for view, levels in enumerate((codebook.level_names, codebook.labels)):
                # The seed is of what was marked: films then draw differently, whatever their names.
                seed = (view, *np.sort(ends, axis=None).view(np.uint32).tolist())
                gamma = unitised_gamma(
                    _units(segments_of[first], levels, codebook),
                    _units(segments_of[second], levels, codebook),
                    apart,
                    film,
                    alpha=alpha,
                    samples=samples,
                    seed=seed,
                )
                gammas.append(gamma)
            pairs.append(PairAgreement(movie, (first, second), *gammas))
    if not pairs:
        raise ManifestError("no movie has two annotators, so there is nothing to compare")
    return tuple(pairs)


def _segments(manifest: Manifest) -> dict[str, dict[str, list[Clip]]]:
    """Collect the labelled segments of people with a name: movie -> annotator -> segments.

    Raises
    ------
    ManifestError
        A labelled segment has no times.
    """
    segments: dict[str, dict[str, list[Clip]]] = {}
    for clip in manifest:
        if clip.level is None or not clip.annotator:
            continue
        if clip.start_s is None:
            raise ManifestError(
                f"clip {clip.clip_id!r} has no start_s and end_s: "
                "the alignment term compares segments in time",
                "start_s",
            )
        segments.setdefault(clip.movie, {}).setdefault(clip.annotator, []).append(clip)
    return segments


def _units(clips: Sequence[Clip], levels: Sequence[str], codebook: Codebook) -> Units:
    """Make units of the segments of some levels, without the lowest one."""
    lowest = codebook.level_names[0]
    spans = []
    ranks = []
    for clip in clips:
        if clip.level is not None and clip.level in levels and clip.level != lowest:
            spans.append((clip.start_s, clip.end_s))
            ranks.append(codebook.rank(clip.level))
    return Units(np.array(spans, dtype=np.float64).reshape(-1, 2), np.array(ranks, dtype=np.int64))
