"""Compute gamma of freely delimited segments: eq. 1 of App. 7.3 with alpha > 0 (Mathet et al. 2015).

The paper puts segments onto clips first, so that only their levels can differ. Here annotators may differ in
which segments they mark, where these begin and end, and which level they have. Segments of the two annotators
are aligned, one with one or with none, such that the disorder is least. The disorder of an alignment is the
mean dissimilarity over it, and gamma = 1 - observed / expected disorder. The expected disorder is that of
annotations that are shifted along the film, as Mathet et al. (section 5.2) draw them.

Segments of the lowest level do not count: that level is what annotators leave unmarked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    Clip,
    Codebook,
    Manifest,
    PairAgreement,
    blind_labels,
    in_common_stretches,
    judgements_of,
)
from obygaze_features.manifest.agreement import distances
from obygaze_features.manifest.near import Pairs, overlapping
from obygaze_models.evaluation.near import best_matching

Floats = NDArray[np.float64]

DISSIMILARITY_UNALIGNED = 1.0
"""Dissimilarity of a segment that is aligned with none (Mathet et al. 2015, delta of the empty unit)."""

RANGE_MARGIN = 1e-9
"""Share by which the range in which segments are looked for is widened, so that rounding loses none."""


@dataclass(frozen=True, eq=False, slots=True)
class Units:
    """The segments of one annotator: spans [N, 2] in seconds and ranks of their levels [N]."""

    spans: Floats
    ranks: NDArray[np.int64]

    def shifted(self, seconds: float, start: float, end: float) -> "Units":
        """Shift all segments by a number of seconds, in a circle along a film from `start` to `end`.

        A segment that would begin after the film's end is moved back by the film's duration. One that only
        ends after the film's end stays whole, and passes the end.
        """
        shifted = self.spans + seconds
        starts = shifted[:, 0]
        shifted[starts > end] -= end - start
        return Units(shifted, self.ranks)


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
        Disorder of the annotations, and its mean over chance annotations; None without a segment.
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
    first: Units, second: Units, pairs: Pairs, level_distances: Floats, *, alpha: float, beta: float
) -> Floats:
    """Compute the dissimilarity of the segments of P pairs, [P] (Mathet et al. 2015, eq. 1).

    It is alpha times the dissimilarity of their positions, plus beta times the distance of their levels. The
    dissimilarity of positions is (e / d)^2, where e is the sum of the distances between beginnings and
    between ends, and d the sum of the two durations (eq. 3). It is at most 1 for segments that overlap, and
    above 1 for others. The unit, `DISSIMILARITY_UNALIGNED`, is the dissimilarity of a segment that is aligned
    with none.

    Parameters
    ----------
    first, second
        Segments of the two annotators.
    pairs
        The pairs of segments to compare, by their rows.
    level_distances
        Distances of the levels, [n_levels, n_levels].
    alpha, beta
        Weights of position and level.
    """
    left = first.spans[pairs.first]
    right = second.spans[pairs.second]
    distances_of_ends = np.abs(left - right).sum(axis=1)
    durations = (left[:, 1] - left[:, 0]) + (right[:, 1] - right[:, 0])
    positional = (distances_of_ends / durations) ** 2 * DISSIMILARITY_UNALIGNED
    categorical = level_distances[first.ranks[pairs.first], second.ranks[pairs.second]]
    total: Floats = alpha * positional + beta * categorical
    return total


def _find_alignable_pairs(first: Units, second: Units, alpha: float) -> Pairs:
    """Find the pairs of segments near enough that aligning them may be better than leaving both unaligned.

    All such pairs are found, and some others with them, without comparing all segments with all
    (`overlapping`). Let e be the sum of the distances between the beginnings and between the ends of two
    segments, and d the sum of their durations.

    1. To align the segments is better only if alpha (e / d)^2 is below 2, the dissimilarity of two unaligned
       segments. That is e < r d, with r = sqrt(2 / alpha).
    2. The sum of beginning and end, which is twice a segment's middle, differs by at most e between the two.
    3. So in a pair worth aligning, these sums differ by less than r d, which is r times the first duration
       plus r times the second one. Intervals of r durations to either side of the two sums overlap.
    """
    if alpha <= 0:
        # Positions do not count: any pair may be worth aligning.
        rows, columns = np.indices((len(first.ranks), len(second.ranks)))
        return Pairs(rows.ravel(), columns.ravel())
    # r, a little larger, so that rounding loses no pair.
    n_durations = np.sqrt(2 / alpha) * (1 + RANGE_MARGIN)
    # For each segment, from its sum of beginning and end, r durations to either side.
    intervals_of_first = _intervals_around_sums(first, n_durations)
    intervals_of_second = _intervals_around_sums(second, n_durations)
    return overlapping(intervals_of_first, intervals_of_second)


def _intervals_around_sums(units: Units, n_durations: float) -> Floats:
    """Make an interval [N, 2] for each segment: those of segments that may be aligned overlap.

    Its centre is the sum of the segment's beginning and end, which changes as both of them do; it reaches
    `n_durations` times the segment's duration to either side. For a segment from 10 to 14 s and 2 durations,
    it is 24 - 8 to 24 + 8. `_find_alignable_pairs` derives it.
    """
    starts = units.spans[:, 0]
    ends = units.spans[:, 1]
    sums = starts + ends
    half_width = n_durations * (ends - starts)
    return np.column_stack([sums - half_width, sums + half_width])


def best_alignment(
    first: Units, second: Units, level_distances: Floats, *, alpha: float = 1.0, beta: float = 1.0
) -> tuple[NDArray[np.int64], float]:
    """Align the segments of two annotators such that the disorder is smallest (an assignment problem).

    The parameters are those of `dissimilarity`; at least one segment is needed.

    Returns
    -------
    pairs : ndarray of int, shape [K, 2]
        Rows of the aligned segments of the first and the second annotator; all others are unaligned.
    disorder : float
        Sum of the dissimilarities in the alignment, divided by the annotators' mean number of segments.

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

    # Pairs that are worth aligning.
    candidates = _find_alignable_pairs(first, second, alpha)
    dissimilarities = dissimilarity(first, second, candidates, level_distances, alpha=alpha, beta=beta)
    # What aligning a pair gains: the dissimilarity of two unaligned segments, less that of the pair.
    gains = 2 * DISSIMILARITY_UNALIGNED - dissimilarities
    is_gain = gains > 0
    pairs = Pairs(candidates.first[is_gain], candidates.second[is_gain])
    gains = gains[is_gain]

    # Of these, the ones whose gains add up to most, no segment being in two pairs.
    chosen = best_matching(pairs, gains, (n_first, n_second))
    aligned = np.stack([pairs.first[chosen], pairs.second[chosen]], axis=1)

    # The disorder without any alignment, less what the chosen pairs gain.
    n_units = n_first + n_second
    total_without_alignment = DISSIMILARITY_UNALIGNED * n_units
    total = total_without_alignment - float(gains[chosen].sum())
    mean_n_units = n_units / 2
    return aligned, total / mean_n_units


def unitised_gamma(
    first: Units,
    second: Units,
    level_distances: Floats,
    film: tuple[float, float],
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    samples: int = 62,
    seed: int | Sequence[int] = 0,
) -> UnitGamma:
    """Measure the agreement of two annotators on freely delimited segments: gamma = 1 - observed / expected.

    Parameters
    ----------
    first, second, level_distances, alpha, beta
        As those of `dissimilarity`.
    film
        Beginning and end of what was annotated, in seconds.
    samples
        Number of pairs of annotations that agree by chance only (`_draw_chance_pairs`), at least 2.
    seed
        Seed of these draws.
    """
    n_units = (len(first.ranks), len(second.ranks))
    nobody_marked_any = sum(n_units) == 0
    if nobody_marked_any:
        return UnitGamma(n_units)
    pairs, observed = best_alignment(first, second, level_distances, alpha=alpha, beta=beta)
    chance_disorders = []
    for left, right in _draw_chance_pairs(first, second, film, samples, np.random.default_rng(seed)):
        _, disorder = best_alignment(left, right, level_distances, alpha=alpha, beta=beta)
        chance_disorders.append(disorder)
    expected = float(np.mean(chance_disorders))

    # Gamma is undefined if annotations that agree by chance only have no disorder.
    value = None
    standard_error = None
    if expected != 0:
        value = 1 - observed / expected
        # The derivative of 1 - observed / expected by the expected disorder is observed / expected^2.
        error_of_expected = float(np.std(chance_disorders, ddof=1)) / len(chance_disorders) ** 0.5
        standard_error = observed / expected**2 * error_of_expected
    return UnitGamma(n_units, len(pairs), observed, expected, value, standard_error)


def _draw_chance_pairs(
    first: Units, second: Units, film: tuple[float, float], samples: int, rng: np.random.Generator
) -> Iterator[tuple[Units, Units]]:
    """Yield `samples` pairs of annotations that agree by chance only, for the expected disorder.

    Gamma is 1 less the disorder observed, divided by the mean disorder of such pairs.
    Either side of a pair is one of the two annotations, drawn at random, and shifted in a circle along the
    film. The two shifts differ by at least half the mean duration of a segment, so that one annotation drawn
    twice does not agree with itself.
    """
    start, end = film
    duration = end - start
    spans = np.concatenate([first.spans, second.spans])
    mean_segment = float((spans[:, 1] - spans[:, 0]).mean())
    min_difference = min(mean_segment / 2, duration / 2)
    # Sorted by their segments, so that the draws do not depend on the order of the annotators.
    annotations = sorted((first, second), key=_sorted_segments)

    n_drawn = 0
    while n_drawn < samples:
        left_index, right_index = rng.integers(0, 2, size=2)
        left = annotations[left_index]
        right = annotations[right_index]
        has_segments = len(left.ranks) > 0 or len(right.ranks) > 0
        if not has_segments:
            # An annotator who marked nothing was drawn twice. That has no disorder: draw again.
            continue
        left_shift = rng.uniform(0, duration)
        # In a circle, shifts that differ by nearly the whole film are close in the other direction.
        difference = rng.uniform(min_difference, duration - min_difference)
        right_shift = (left_shift + difference) % duration
        yield left.shifted(left_shift % duration, start, end), right.shifted(right_shift, start, end)
        n_drawn += 1


def _sorted_segments(units: Units) -> list[list[float]]:
    """List an annotator's segments as [start, end, rank of the level], sorted."""
    segments: list[list[float]] = np.column_stack([units.spans, units.ranks]).tolist()
    return sorted(segments)


def unitised_agreement(
    manifest: Manifest, *, alpha: float = 1.0, samples: int = 62
) -> tuple[PairAgreement[UnitGamma], ...]:
    """Compute gamma for every pair of annotators of every movie, on the segments that they marked.

    It is computed twice: on all levels, and on those that are labels, with different seeds of chance
    annotations. The lowest level, what is not marked, is left out of both. An annotator who saw a model's
    score in a film is left out of it (`blind_labels`). Only the time counts that all others answered for
    (`in_common_stretches`).

    Parameters
    ----------
    manifest : Manifest
        Rows of annotators, with times.
    alpha : float
        Weight of positions in the dissimilarity of two segments.
    samples : int
        Number of chance annotations.

    Raises
    ------
    ManifestError
        A labelled segment has no times, no movie has two annotators, or labels were given under two
        definitions of the codebook.
    """
    judgements_of(manifest).refuse_two_definitions()
    codebook = manifest.codebook
    blind = blind_labels(manifest, whole_films=True)
    # Movie -> annotator -> segments: all of them, and those in the time that is compared.
    all_segments = _labelled_segments(blind.manifest)
    compared_segments = _labelled_segments(in_common_stretches(blind.manifest))
    pairs: list[PairAgreement[UnitGamma]] = []
    for movie, annotators in all_segments.items():
        compared = compared_segments.get(movie, {})
        # An annotator of the film who marked nothing in the time that is compared has no segment there, and
        # is compared all the same: marking nothing is an answer.
        segments_of = {annotator: compared.get(annotator, []) for annotator in annotators}
        for first, second in combinations(sorted(segments_of), 2):
            gamma_on_levels = partial(
                _gamma_on_levels,
                segments_of[first],
                segments_of[second],
                codebook=codebook,
                alpha=alpha,
                samples=samples,
            )
            on_all_levels = gamma_on_levels(codebook.level_names, seed=0)
            on_labels = gamma_on_levels(codebook.labels, seed=1)
            pairs.append(PairAgreement(movie, (first, second), on_all_levels, on_labels))
    if not pairs:
        raise ManifestError(f"no movie has two annotators, so there is nothing to compare{blind.reason()}")
    return tuple(pairs)


def _gamma_on_levels(
    first: Sequence[Clip],
    second: Sequence[Clip],
    levels: Sequence[str],
    *,
    codebook: Codebook,
    alpha: float,
    samples: int,
    seed: int,
) -> UnitGamma:
    """Compute gamma of two annotators' segments of a film, on some levels.

    The part of the film that was annotated is taken to be that from the earliest start to the latest end of
    all their segments, of any level. Draws depend on `seed` and on the times of the segments.
    """
    if not first and not second:
        return UnitGamma(n_units=(0, 0))
    times = np.array([(clip.start_s, clip.end_s) for clip in [*first, *second]])
    film = (float(times.min()), float(times.max()))
    return unitised_gamma(
        _units_of_levels(first, levels, codebook),
        _units_of_levels(second, levels, codebook),
        distances(codebook),
        film,
        alpha=alpha,
        samples=samples,
        seed=(seed, *_seed_of_times(times)),
    )


def _seed_of_times(times: Floats) -> list[int]:
    """Turn the times of segments [N, 2] into a seed.

    Each film then has its own draws, which do not change if films or annotators are renamed. The numbers are
    the bytes of the sorted times: of each float of 8 bytes, two integers of 4 bytes.
    """
    sorted_times = np.sort(times, axis=None)
    numbers: list[int] = sorted_times.view(np.uint32).tolist()
    return numbers


def _labelled_segments(manifest: Manifest) -> dict[str, dict[str, list[Clip]]]:
    """Group the labelled segments of named annotators: movie -> annotator -> segments.

    Raises
    ------
    ManifestError
        A labelled segment has no times.
    """
    segments: dict[str, dict[str, list[Clip]]] = {}
    for clip in manifest:
        if clip.level is None or not clip.annotator:
            continue
        if clip.start_s is None:  # then it has no end either
            raise ManifestError(
                f"clip {clip.clip_id!r} has no start_s and end_s: "
                "the alignment term compares segments in time",
                "start_s",
            )
        segments_of_movie = segments.setdefault(clip.movie, {})
        segments_of_movie.setdefault(clip.annotator, []).append(clip)
    return segments


def _units_of_levels(clips: Sequence[Clip], levels: Sequence[str], codebook: Codebook) -> Units:
    """Select the segments of some levels, but never of the lowest one, and return their spans and ranks.

    The lowest level stands for what annotators leave unmarked: a segment of it marks nothing.
    """
    lowest = codebook.level_names[0]
    spans = []
    ranks = []
    for clip in clips:
        if clip.level is not None and clip.level in levels and clip.level != lowest:
            spans.append((clip.start_s, clip.end_s))
            ranks.append(codebook.rank(clip.level))
    return Units(np.array(spans, dtype=np.float64).reshape(-1, 2), np.array(ranks, dtype=np.int64))
