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
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.judgements import judgements_of
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.projection import project, windows

Span = tuple[str, float | None, float | None]
"""Video, start and end; without times of the whole file."""

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
        gamma; None where it is undefined: no clip, or one level everywhere, so that chance has no disorder.
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
    """Two annotators of one movie, and how many spans that both labelled have each two levels of theirs."""

    movie: str
    annotators: tuple[str, str]
    counts: Mapping[tuple[str, str], int]

    def parted(self, lowest: str) -> dict[str, int]:
        """Count spans, those of one level, those that one annotator left at the lowest, other readings."""
        n = sum(self.counts.values())
        alike = sum(n for levels, n in self.counts.items() if len(set(levels)) == 1)
        overlooked = sum(n for levels, n in self.counts.items() if len(set(levels)) == 2 and lowest in levels)
        n_other = n - alike - overlooked
        return {"spans": n, "alike": alike, "overlooked": overlooked, "other readings": n_other}


@checked
def distances(codebook: Codebook) -> NDArray[np.float64]:
    """Measure how far the levels of a codebook are apart, 0 to 1.

    Returns
    -------
    Distances, [n_levels, n_levels]: by the levels' positions, which are those of eq. 2 in `obygaze12`, or
    equal steps where the codebook has none; the lowest and the highest level are 1 apart.
    """
    at = positions(codebook)
    apart = np.abs(at[:, None] - at[None, :])
    # Rounded, so that .7 - .3 is .4.
    return np.round(apart / (apart.max() or 1.0), 12)


def positions(codebook: Codebook) -> NDArray[np.float64]:
    """Return the places of a codebook's levels on their axis, [n_levels]: equal steps where it has none."""
    places = []
    for rank, level in enumerate(codebook.levels):
        places.append(float(rank if level.position is None else level.position))
    return np.array(places)


@checked
def gamma(first: Sequence[str], second: Sequence[str], codebook: Codebook) -> Gamma:
    """Measure the agreement of two annotators on the same clips.

    Parameters
    ----------
    first, second
        Their levels of the same clips, in the same order, [n_clips] each.
    codebook
        Gives the order of the levels and their distances.

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
        return Gamma(0, None, None, None)
    a = np.array([codebook.rank(level) for level in first])
    b = np.array([codebook.rank(level) for level in second])
    apart = distances(codebook)
    observed = float(apart[a, b].mean())
    expected = expected_disorder(a, b, apart)
    return Gamma(len(a), observed, expected, None if expected == 0 else 1 - observed / expected)


def expected_disorder(a: NDArray[np.int64], b: NDArray[np.int64], apart: NDArray[np.float64]) -> float:
    """Average the distances [n_levels, n_levels] over the marginals of two sequences of ranks, [n_clips]."""
    p = np.bincount(a, minlength=len(apart)) / len(a)
    q = np.bincount(b, minlength=len(apart)) / len(b)
    return float(p @ apart @ q)


@checked
def agreement(manifest: Manifest) -> tuple[PairAgreement[Gamma], ...]:
    """Compare every pair of annotators of every movie on the spans that both labelled.

    Raises
    ------
    ManifestError
        If no movie has two annotators with a span in common (free segments must be projected first), or an
        annotator labelled one span twice.
    """
    codebook = manifest.codebook
    pairs = []
    for movie, names, shared in _shared(manifest):
        labels = [pair for pair in shared if set(pair) <= set(codebook.labels)]
        pairs.append(PairAgreement(movie, names, _gamma_of(shared, codebook), _gamma_of(labels, codebook)))
    return tuple(pairs)


@checked
def level_pairs(manifest: Manifest) -> tuple[PairLevels, ...]:
    """Count each two levels that every pair of annotators of every movie gave to spans that both labelled.

    Raises
    ------
    ManifestError
        As `agreement`.
    """
    return tuple(PairLevels(movie, names, Counter(shared)) for movie, names, shared in _shared(manifest))


def _shared(manifest: Manifest) -> list[tuple[str, tuple[str, str], list[tuple[str, str]]]]:
    """List every pair of annotators of every movie, and their levels of the spans that both labelled."""
    judged = judgements_of(manifest).where(lambda judgement: bool(judgement.judge))
    judged.refuse_two_definitions()
    pairs = []
    for movie in manifest.movies:
        by_judge = judged.of_movie(movie).by_judge()
        for first, second in combinations(by_judge, 2):
            of_first = by_judge[first]
            of_second = by_judge[second]
            windows = [window for window in of_first if window in of_second]
            shared = [(of_first[window].level, of_second[window].level) for window in windows]
            pairs.append((movie, (first, second), shared))
    if not any(shared for _, _, shared in pairs):
        raise ManifestError(
            "no movie has two annotators who labelled the same spans, so there is nothing to compare"
        )
    return pairs


def on_common_clips(manifest: Manifest) -> tuple[Manifest, float | None]:
    """Give what annotators labelled in common one id, and project free segments onto windows first.

    Returns
    -------
    Manifest
    float or None
        Seconds of a window, the mean clip of MovieGraphs; None where annotators of a movie labelled the same
        clips or spans, be it not all of them, so that nothing need be projected.
    """
    if manifest.is_per_annotator:
        return manifest, None
    if (same := _one_id_a_span(manifest)) is not None:
        return same, None
    onto = windows(manifest, DEFAULT_WINDOW_S)
    return project(manifest, onto, per_annotator=True).manifest, DEFAULT_WINDOW_S


def _one_id_a_span(manifest: Manifest) -> Manifest | None:
    spans: dict[str, dict[str, set[Span]]] = {}
    ids: dict[object, str] = {}
    clips = []
    for clip in manifest:
        spans.setdefault(clip.movie, {}).setdefault(clip.annotator, set()).add(_span(clip))
        clips.append(replace(clip, clip_id=ids.setdefault((clip.movie, _span(clip)), clip.clip_id)))
    if any(_are_free(list(annotated.values())) for annotated in spans.values()):
        return None
    is_once = len({(clip.clip_id, clip.annotator) for clip in clips}) == len(clips)
    return manifest.with_clips(clips) if is_once else manifest


def _are_free(annotated: Sequence[set[Span]]) -> bool:
    """Whether annotators drew segments of their own: not the same, and overlapping, or none in common."""
    every = set[Span]().union(*annotated)
    if all(spans == every for spans in annotated):
        return False
    placed = sorted((video, start or 0.0, end or math.inf) for video, start, end in every)
    for (video, _, end), (next_video, next_start, _) in pairwise(placed):
        if video == next_video and end > next_start:
            return True
    n_annotators = Counter(span for spans in annotated for span in spans)
    alone = {span for span, n in n_annotators.items() if n == 1}
    return any(spans <= alone for spans in annotated)


def mean_defined(gammas: Iterable[float | None]) -> float | None:
    """Average the gammas that are defined; None if none is."""
    values = [value for value in gammas if value is not None]
    return sum(values) / len(values) if values else None


def _gamma_of(pairs: Sequence[tuple[str, str]], codebook: Codebook) -> Gamma:
    return gamma([a for a, _ in pairs], [b for _, b in pairs], codebook)


def _span(clip: Clip) -> Span:
    # Clips that are files of another lab's, without times and video, are told apart by their ids.
    file = clip.video
    if not file and clip.start_s is None:
        file = clip.clip_id
    return file, clip.start_s, clip.end_s
