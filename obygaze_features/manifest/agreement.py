"""Compute the agreement gamma between annotators of the same clips (Tores et al., CVPR 2024, App. 7.3).

gamma = 1 - observed / expected disorder (eq. 4): 1 is perfect agreement, 0 what chance gives, below 0 worse.
Disorder is the mean distance between the two levels of a clip (eq. 2 and 3; the constant of eq. 3 cancels).
Expected disorder is that of one sequence against the other in random order: the paper averages N shuffles,
and the mean over all orders has a closed form, the distance averaged over the two marginals.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.judgements import Window, blind_labels, judgements_of, window_of
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.projection import project, windows

DEFAULT_WINDOW_S = 46.0
"""Length of the windows that free segments are projected onto, in seconds.

The mean MovieGraphs clip of ObyGaze12: its 11 films that MObyGaze also has last 80,973 s and hold 1,745
clips, 46.4 s each.
"""


@dataclass(frozen=True, slots=True)
class Gamma:
    """Agreement of two sequences of levels.

    Parameters
    ----------
    n_clips
        Clips compared.
    observed, expected
        Disorder as annotated, and by chance; None if there is no clip.
    value
        gamma; None if it is undefined: no clip, or one level everywhere, so that chance has no disorder.
    """

    n_clips: int
    observed: float | None
    expected: float | None
    value: float | None


Value_co = TypeVar("Value_co", covariant=True)


@dataclass(frozen=True, slots=True)
class PairAgreement(Generic[Value_co]):
    """Two annotators of one movie: their agreement on all clips, and on those where both gave a label.

    A level that is in no task, such as NS, is no label.
    """

    movie: str
    annotators: tuple[str, str]
    all_levels: Value_co
    labels_only: Value_co


@dataclass(frozen=True, slots=True)
class PairLevels:
    """How often two annotators of a movie gave each pair of levels to the spans that both labelled.

    Attributes
    ----------
    movie
    annotators
    counts
        (level by the first annotator, level by the second) -> number of spans.
    """

    movie: str
    annotators: tuple[str, str]
    counts: Mapping[tuple[str, str], int]

    def counts_by_outcome(self, lowest: str) -> dict[str, int]:
        """Count the spans by how the two annotators' levels compare.

        Parameters
        ----------
        lowest
            The lowest level, which annotators give to spans in which they mark nothing.

        Returns
        -------
        dict
            `spans`: the number of all spans. It is the sum of three numbers: `alike` (both gave the same
            level), `overlooked` (exactly one gave the lowest level) and `other readings` (two different
            levels, neither of them the lowest).
        """
        n_alike = 0
        n_overlooked = 0
        n_other = 0
        for (first, second), n_spans in self.counts.items():
            if first == second:
                n_alike += n_spans
            elif lowest in (first, second):
                n_overlooked += n_spans
            else:
                n_other += n_spans
        n_all = sum(self.counts.values())
        return {"spans": n_all, "alike": n_alike, "overlooked": n_overlooked, "other readings": n_other}


@checked
def distances(codebook: Codebook) -> NDArray[np.float64]:
    """Compute the distance between every two levels of a codebook.

    Returns
    -------
    Distances, [n_levels, n_levels]. Each is the difference of two levels' positions (`positions`), divided by
    the largest difference, so that the lowest and the highest level are 1 apart. For `obygaze12` they are
    those of eq. 2.
    """
    level_positions = positions(codebook)
    differences = np.abs(level_positions[:, None] - level_positions[None, :])
    largest = differences.max() or 1.0  # a codebook of one level has only the difference 0
    # Rounded, as .7 - .3 is not exactly .4 in floating point.
    return np.round(differences / largest, 12)


def positions(codebook: Codebook) -> NDArray[np.float64]:
    """Return the positions of a codebook's levels on their axis, [n_levels].

    A codebook that states no positions has its levels in equal steps: 0, 1, 2, ...
    """
    level_positions = []
    for rank, level in enumerate(codebook.levels):
        position = rank if level.position is None else level.position
        level_positions.append(float(position))
    return np.array(level_positions)


@checked
def gamma(first: Sequence[str], second: Sequence[str], codebook: Codebook) -> Gamma:
    """Measure the agreement of two annotators on the same clips: 1 - observed / expected disorder.

    The disorder of two labellings is the mean distance of their levels; the expected one is that of levels
    drawn by chance from those that both gave.

    Parameters
    ----------
    first, second
        Their levels of the same clips, in the same order, [n_clips] each.
    codebook
        Gives the order of the levels and their distances.

    Returns
    -------
    Gamma
        With the value None if there is no clip, or if chance has no disorder, as both gave one level only.

    Raises
    ------
    ValueError
        If the sequences differ in length.
    """
    if len(first) != len(second):
        raise ValueError(
            f"{len(first)} levels against {len(second)}: both annotators must label the same clips"
        )
    if not first:
        return Gamma(n_clips=0, observed=None, expected=None, value=None)
    first_ranks = np.array([codebook.rank(level) for level in first])
    second_ranks = np.array([codebook.rank(level) for level in second])
    distance = distances(codebook)
    observed = float(distance[first_ranks, second_ranks].mean())
    expected = expected_disorder(first_ranks, second_ranks, distance)
    value = None if expected == 0 else 1 - observed / expected
    return Gamma(len(first_ranks), observed, expected, value)


def expected_disorder(
    first_ranks: NDArray[np.int64], second_ranks: NDArray[np.int64], distance: NDArray[np.float64]
) -> float:
    """Compute the mean distance between the levels of two annotators if their clips were paired at random.

    It is the sum over all pairs of levels a and b of p_a * q_b * distance(a, b), where p and q are the shares
    of the levels among the first and the second annotator's clips.

    Parameters
    ----------
    first_ranks, second_ranks
        Rank of the level that the first and the second annotator gave each clip, [n_clips].
    distance
        Distance between every two levels, [n_levels, n_levels].
    """
    n_levels = len(distance)
    first_shares = np.bincount(first_ranks, minlength=n_levels) / len(first_ranks)  # share of each level
    second_shares = np.bincount(second_ranks, minlength=n_levels) / len(second_ranks)
    return float(first_shares @ distance @ second_shares)


@checked
def agreement(manifest: Manifest) -> tuple[PairAgreement[Gamma], ...]:
    """Compare every pair of annotators of every movie on the spans that both labelled.

    Labels that were given in sight of a model's score are left out (`blind_labels`).

    Raises
    ------
    ManifestError
        If no movie has two annotators with a span in common (free segments must be projected first), or an
        annotator labelled one span twice.
    """
    codebook = manifest.codebook
    levels_in_tasks = set(codebook.labels)
    agreements = []
    for pair in _pairs_of_annotators(manifest):
        both_in_tasks = [levels for levels in pair.levels if levels_in_tasks.issuperset(levels)]
        pair_agreement = PairAgreement(
            pair.movie,
            pair.annotators,
            all_levels=_gamma_of(pair.levels, codebook),
            labels_only=_gamma_of(both_in_tasks, codebook),
        )
        agreements.append(pair_agreement)
    return tuple(agreements)


@checked
def level_pairs(manifest: Manifest) -> tuple[PairLevels, ...]:
    """Count, for every pair of annotators of a movie, how often they gave a span the levels A and B.

    Only spans that both labelled are counted, and no labels in sight of a model's score (`blind_labels`).

    Raises
    ------
    ManifestError
        As `agreement`.
    """
    pairs = _pairs_of_annotators(manifest)
    return tuple(PairLevels(pair.movie, pair.annotators, Counter(pair.levels)) for pair in pairs)


class _AnnotatorPair(NamedTuple):
    """Two annotators of a movie, and the two levels that they gave to each span which both labelled."""

    movie: str
    annotators: tuple[str, str]
    levels: list[tuple[str, str]]


def _pairs_of_annotators(manifest: Manifest) -> list[_AnnotatorPair]:
    """Return every pair of annotators of every movie, with their levels of the spans that both labelled.

    Labels that were given in sight of a model's score are left out.

    Raises
    ------
    ManifestError
        No two annotators labelled the same span, or labels were given under two definitions.
    """
    blind = blind_labels(manifest)
    judged = judgements_of(blind.manifest).where(lambda judgement: bool(judgement.judge))
    judged.refuse_two_definitions()

    pairs = []
    for movie in manifest.movies:
        by_annotator = judged.of_movie(movie).by_judge()
        for first, second in combinations(by_annotator, 2):
            of_first = by_annotator[first]  # span -> judgement
            of_second = by_annotator[second]
            common_spans = [span for span in of_first if span in of_second]
            levels = [(of_first[span].level, of_second[span].level) for span in common_spans]
            pairs.append(_AnnotatorPair(movie, (first, second), levels))

    if not any(pair.levels for pair in pairs):
        raise ManifestError(
            "no movie has two annotators who labelled the same spans, so there is nothing to compare"
            f"{blind.reason()}"
        )
    return pairs


def on_common_clips(manifest: Manifest) -> tuple[Manifest, float | None]:
    """Give the rows of one span by several annotators the same clip id, so that they can be compared.

    Where annotators drew segments as they liked, their labels are projected onto equal windows first.

    Returns
    -------
    Manifest
        The rows, of windows if labels were projected.
    float or None
        Length of a window in seconds (`DEFAULT_WINDOW_S`); None if nothing was projected, because annotators
        were given the same clips or spans.
    """
    if manifest.is_per_annotator:
        return manifest, None
    if not _has_free_segments(manifest):
        return _with_one_id_per_span(manifest), None
    onto = windows(manifest, DEFAULT_WINDOW_S)
    return project(manifest, onto, per_annotator=True).manifest, DEFAULT_WINDOW_S


def _has_free_segments(manifest: Manifest) -> bool:
    """Return whether the annotators of any movie chose the bounds of their segments themselves."""
    spans_of_movies: dict[str, dict[str, set[Window]]] = {}  # movie -> annotator -> spans
    for clip in manifest:
        spans_of_annotators = spans_of_movies.setdefault(clip.movie, {})
        spans_of_annotators.setdefault(clip.annotator, set()).add(window_of(clip))
    return any(_are_drawn_freely(list(spans.values())) for spans in spans_of_movies.values())


def _with_one_id_per_span(manifest: Manifest) -> Manifest:
    """Give all rows of a span the clip id of the first; unchanged if an annotator labelled a span twice."""
    id_of_span: dict[Window, str] = {}
    clips = []
    for clip in manifest:
        clip_id = id_of_span.setdefault(window_of(clip), clip.clip_id)
        clips.append(replace(clip, clip_id=clip_id))
    rows = {(clip.clip_id, clip.annotator) for clip in clips}
    if len(rows) < len(clips):
        return manifest
    return manifest.with_clips(clips)


def _are_drawn_freely(spans_of_annotators: Sequence[set[Window]]) -> bool:
    """Return whether annotators of a movie drew their own segments, and were not given the same spans.

    There are two signs of that, if the annotators' spans differ:

    - Two spans overlap, such as 0-5 s of one annotator and 0-6 s of another. Spans that are given do not.
    - An annotator shares no span with anybody. One who skips some of the given spans still shares others.
    """
    all_spans = set[Window]().union(*spans_of_annotators)
    if all(spans == all_spans for spans in spans_of_annotators):
        return False
    return _do_any_overlap(all_spans) or _has_annotator_without_shared_span(spans_of_annotators)


def _do_any_overlap(spans: Iterable[Window]) -> bool:
    """Return whether two spans of the same video overlap; a file as a whole overlaps all its spans."""
    bounds = [(span.video, span.start_s or 0.0, span.end_s or math.inf) for span in spans]
    # If any spans of a video overlap, then also two of them that are neighbours in time.
    for (video, _, end_s), (next_video, next_start_s, _) in pairwise(sorted(bounds)):
        if video == next_video and end_s > next_start_s:
            return True
    return False


def _has_annotator_without_shared_span(spans_of_annotators: Sequence[set[Window]]) -> bool:
    """Return whether an annotator has no span that another one has too."""
    n_annotators: Counter[Window] = Counter()  # of each span
    for spans in spans_of_annotators:
        n_annotators.update(spans)
    for spans in spans_of_annotators:
        shares_a_span = any(n_annotators[span] > 1 for span in spans)
        if not shares_a_span:
            return True
    return False


def mean_defined(gammas: Iterable[float | None]) -> float | None:
    """Return the mean of the gammas that are not None; None if all are."""
    values = [value for value in gammas if value is not None]
    return sum(values) / len(values) if values else None


def _gamma_of(pairs: Sequence[tuple[str, str]], codebook: Codebook) -> Gamma:
    """Compute the agreement of two annotators from the pair of levels that they gave each span."""
    first_levels = [first for first, _ in pairs]
    second_levels = [second for _, second in pairs]
    return gamma(first_levels, second_levels, codebook)
