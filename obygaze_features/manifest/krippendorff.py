"""Compute Krippendorff's alpha: agreement of any number of annotators, also where labels are missing.

alpha = 1 - observed / expected disagreement: 1 is perfect agreement, 0 what chance gives, below 0 worse.
Clips that all annotators label as wholes: Krippendorff 2019, Content Analysis, chapter 12. Segments that
annotators delimit as they like: the family of Krippendorff, Mathet, Bouvry and Widloecher, "On the
reliability of unitizing textual continua", Quality and Quantity 50, 2016.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.agreement import positions
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.judgements import Judgement, Judgements, judgements_of
from obygaze_features.manifest.manifest import Manifest

Floats = NDArray[np.float64]

Metric = Literal["nominal", "ordinal", "interval"]

METRICS: Final[tuple[Metric, ...]] = get_args(Metric)
"""What two values differ by: 1, how many values were given between them, or their distance."""

GAP: Final = 0
"""Value of what an annotator left unmarked."""


@checked
def krippendorff_alpha(values: ArrayLike, metric: Metric = "nominal") -> float | None:
    """Measure the agreement of annotators on clips that each of them may have labelled.

    Parameters
    ----------
    values : array-like, shape [n_annotators, n_clips]
        Numbers; NaN where an annotator gave none.
    metric : str
        "nominal": any two values differ as much. "ordinal": by how many values were given between them.
        "interval": by their distance, squared.

    Returns
    -------
    float or None
        None where it is undefined: no clip has two labels, or all of these are alike, so that chance has no
        disagreement.

    Examples
    --------
    >>> nan = float("nan")
    >>> labels = [[1, 2, 3, 3, 2, nan], [1, 2, 3, 3, 2, 2], [nan, 3, 3, 3, 2, 3]]
    >>> round(krippendorff_alpha(labels), 3), round(krippendorff_alpha(labels, "interval"), 3)
    (0.605, 0.758)
    """
    table = np.asarray(values, dtype=np.float64)
    known, ranks = np.unique(table[~np.isnan(table)], return_inverse=True)
    counts = np.zeros((table.shape[1], len(known)))
    _, clips = np.nonzero(~np.isnan(table))
    np.add.at(counts, (clips, ranks), 1)
    counts = counts[counts.sum(axis=1) >= 2]
    if not len(counts):
        return None
    n_labels = counts.sum(axis=1)
    # Each clip's pairs of labels of two annotators, over the number of annotators it could have agreed with.
    pairs = (counts / (n_labels - 1)[:, None]).T @ counts - np.diag((counts / (n_labels - 1)[:, None]).sum(0))
    totals = pairs.sum(axis=1)
    n = totals.sum()
    by_chance = (np.outer(totals, totals) - np.diag(totals)) / (n - 1)
    apart = _differences(known, totals, metric)
    return _alpha(float((pairs * apart).sum()), float((by_chance * apart).sum()))


def _differences(values: Floats, totals: Floats, metric: Metric) -> Floats:
    """Measure how much every two values differ, [n_values, n_values], given how often each was given."""
    if metric == "nominal":
        return 1 - np.eye(len(values))
    if metric == "interval":
        return np.asarray((values[:, None] - values) ** 2)
    # Half of both ends, and all between them: the middles of what was given up to each value.
    middles = np.cumsum(totals) - totals / 2
    return np.asarray((middles[:, None] - middles) ** 2)


def _alpha(observed: float, expected: float) -> float | None:
    return None if expected <= 0 else 1 - observed / expected


class Segment(NamedTuple):
    """What an annotator marked: a span in seconds, or in any other unit, and its value, above 0."""

    start: float
    end: float
    value: int


@dataclass(frozen=True, slots=True)
class UnitisedAlpha:
    """Agreement of annotators on segments that they delimited as they liked.

    Attributes
    ----------
    segments : float or None
        Of which segments there are and which value each has: the coefficient u-alpha, nominal.
    marked : float or None
        Of what is marked at all, whatever its value: |u-alpha.
    values : float or None
        Of the values where two annotators marked: cu-alpha, nominal.
    coverage : float
        The share of what was annotated that `values` rests on.

    None where a coefficient is undefined: chance has no disagreement.
    """

    segments: float | None
    marked: float | None
    values: float | None
    coverage: float


@checked
def unitised_alpha(
    annotations: Sequence[Sequence[Segment]], start: float, end: float, *, grain: float = 1.0
) -> UnitisedAlpha:
    """Measure the agreement of annotators on segments that they delimited as they liked.

    What two annotators marked at once coincides, by length (eq. 1 of Krippendorff et al. 2016). By chance
    each piece coincides with all others but itself, where a segment is one piece, and what is unmarked has
    as many pieces as it has grains (eq. 4). Where two annotators marked, a segment's piece is what of it the
    other marked too (eq. 10).

    Parameters
    ----------
    annotations : sequence of sequence of Segment
        Of each annotator, two or more; one annotator's do not overlap.
    start, end : float
        Of what was annotated.
    grain : float
        Length of the shortest piece that could be marked; 1 as in the paper, whose lengths are whole.

    Examples
    --------
    >>> first, second = [Segment(0, 4, 1), Segment(6, 9, 2)], [Segment(0, 5, 1), Segment(6, 9, 3)]
    >>> agreement = unitised_alpha([first, second], 0, 12)
    >>> round(agreement.segments, 3), round(agreement.marked, 3), round(agreement.values, 3)
    (0.572, 0.843, 0.451)
    """
    parts = [_partition(segments, start, end) for segments in annotations]
    n_values = 1 + max(
        (part.value for parts_of_annotator in parts for part in parts_of_annotator), default=GAP
    )
    together = np.zeros((n_values, n_values))
    own_pieces = np.zeros(n_values)
    own_marked = np.zeros(n_values)
    n_others = len(parts) - 1
    for parts_of_annotator in parts:
        for part in parts_of_annotator:
            length = part.end - part.start
            own_pieces[part.value] += length * (grain if part.value == GAP else length)
    for first, second in permutations(parts, 2):
        for part in first:
            shared = _shared_by_value(part, second, n_values) / n_others
            together[part.value] += shared
            if part.value != GAP:
                own_marked[part.value] += (shared[GAP + 1 :].sum() * n_others) ** 2 / n_others
    by_chance = _by_chance(together, own_pieces)
    marked = together[GAP + 1 :, GAP + 1 :]
    marked_by_chance = _by_chance(marked, own_marked[GAP + 1 :])
    return UnitisedAlpha(
        segments=_alpha(_off_diagonal(together), _off_diagonal(by_chance)),
        marked=_alpha(float(together[GAP, GAP + 1 :].sum()), float(by_chance[GAP, GAP + 1 :].sum())),
        values=_alpha(_off_diagonal(marked), _off_diagonal(marked_by_chance)),
        coverage=float(marked.sum() / together.sum()),
    )


def _partition(segments: Sequence[Segment], start: float, end: float) -> list[Segment]:
    """Fill in what an annotator left unmarked.

    Raises
    ------
    ValueError
        Two segments overlap.
    """
    parts = []
    reached = start
    for segment in sorted(segments):
        if segment.start < reached:
            raise ValueError(f"a segment begins at {segment.start:g}, before another ends at {reached:g}")
        if segment.start > reached:
            parts.append(Segment(reached, segment.start, GAP))
        parts.append(segment)
        reached = segment.end
    if reached < end:
        parts.append(Segment(reached, end, GAP))
    return parts


def _shared_by_value(part: Segment, segments: Sequence[Segment], n_values: int) -> Floats:
    """Measure how much of a part coincides with each value of another annotator's, [n_values]."""
    shared = np.zeros(n_values)
    for segment in segments:
        shared[segment.value] += max(0.0, min(part.end, segment.end) - max(part.start, segment.start))
    return shared


def _by_chance(together: Floats, alone: Floats) -> Floats:
    """Compute the coincidences by chance [V, V] of pieces that never coincide with themselves."""
    totals = together.sum(axis=1)
    total = together.sum()
    pairs = total**2 - alone.sum()
    if pairs <= 0:
        return np.zeros_like(together)
    return np.asarray((np.outer(totals, totals) - np.diag(alone)) * total / pairs)


def _off_diagonal(matrix: Floats) -> float:
    return float(matrix.sum() - np.trace(matrix))


@dataclass(frozen=True, slots=True)
class LevelAlphas:
    """Agreement of all annotators on the levels of the same clips.

    Attributes
    ----------
    annotators : int
    n_clips : int
        Clips that two annotators or more labelled.
    n_labels : int
        Their labels.
    nominal, ordinal, interval : float or None
        Krippendorff's alpha, of the levels as names, by their order, and by their positions in the codebook.
    """

    annotators: int
    n_clips: int
    n_labels: int
    nominal: float | None
    ordinal: float | None
    interval: float | None


@checked
def level_alphas(manifest: Manifest) -> tuple[LevelAlphas, LevelAlphas]:
    """Measure the agreement of all annotators of a manifest on the clips that two of them or more labelled.

    Returns
    -------
    all_levels, labels_only : LevelAlphas
        The second without levels that are in no task, such as NS.

    Raises
    ------
    ManifestError
        Judgements were made under two definitions, or somebody labelled one span twice.
    """
    judged = judgements_of(manifest).where(lambda judgement: bool(judgement.judge))
    judged.refuse_two_definitions()
    labels = manifest.codebook.labels
    sure = judged.where(lambda judgement: judgement.level in labels)
    return _level_alphas(judged, manifest.codebook), _level_alphas(sure, manifest.codebook)


def _level_alphas(judged: Judgements, codebook: Codebook) -> LevelAlphas:
    by_judge = judged.by_judge()
    ranks = np.full((len(by_judge), len(judged.windows)), np.nan)
    for row, by_window in enumerate(by_judge.values()):
        for column, window in enumerate(judged.windows):
            if window in by_window:
                ranks[row, column] = codebook.rank(by_window[window].level)
    n_labels = (~np.isnan(ranks)).sum(axis=0)
    places = positions(codebook)
    at = np.where(np.isnan(ranks), np.nan, places[np.nan_to_num(ranks).astype(np.int64)])
    return LevelAlphas(
        annotators=len(by_judge),
        n_clips=int((n_labels >= 2).sum()),
        n_labels=int(n_labels[n_labels >= 2].sum()),
        nominal=krippendorff_alpha(ranks, "nominal"),
        ordinal=krippendorff_alpha(ranks, "ordinal"),
        interval=krippendorff_alpha(at, "interval"),
    )


@dataclass(frozen=True, slots=True)
class FilmUnitisedAlpha:
    """Agreement of all annotators of a film on the segments that they marked.

    Attributes
    ----------
    movie : str
    annotators : tuple of str
    n_segments : tuple of int
        Segments of each.
    n_cut : int
        Segments that were cut, as another of the same annotator with a higher level lies on them.
    value : UnitisedAlpha
    """

    movie: str
    annotators: tuple[str, ...]
    n_segments: tuple[int, ...]
    n_cut: int
    value: UnitisedAlpha


@checked
def unitised_alphas(manifest: Manifest) -> tuple[FilmUnitisedAlpha, ...]:
    """Measure the agreement of all annotators of each film on freely delimited segments.

    The lowest level is no segment: it is what annotators leave unmarked. Where segments of one annotator
    overlap, the higher level counts.

    Raises
    ------
    ManifestError
        A labelled segment has no times, no film has two annotators, or judgements were made under two
        definitions.
    """
    judged = judgements_of(manifest).where(lambda judgement: bool(judgement.judge))
    judged.refuse_two_definitions()
    films: dict[str, dict[str, list[Judgement]]] = {}
    for judgement in judged.every:
        if judgement.window.start_s is None or judgement.window.end_s is None:
            raise ManifestError(f"clip {judgement.clip.clip_id!r} has no start_s and end_s", "start_s")
        films.setdefault(judgement.clip.movie, {}).setdefault(judgement.judge, []).append(judgement)
    measured = [
        _film_alpha(movie, by_judge, manifest.codebook)
        for movie, by_judge in films.items()
        if len(by_judge) > 1
    ]
    if not measured:
        raise ManifestError("no movie has two annotators, so there is nothing to compare")
    return tuple(measured)


def _film_alpha(
    movie: str, by_judge: Mapping[str, Sequence[Judgement]], codebook: Codebook
) -> FilmUnitisedAlpha:
    names = tuple(sorted(by_judge))
    annotations = []
    n_cut = 0
    for name in names:
        segments = [_segment_of(judgement, codebook) for judgement in by_judge[name]]
        flat = highest_of([segment for segment in segments if segment.value != GAP])
        annotations.append(flat.segments)
        n_cut += flat.n_cut
    ends = [_segment_of(judgement, codebook) for judgements in by_judge.values() for judgement in judgements]
    first = min(segment.start for segment in ends)
    last = max(segment.end for segment in ends)
    counts = tuple(len(segments) for segments in annotations)
    return FilmUnitisedAlpha(movie, names, counts, n_cut, unitised_alpha(annotations, first, last))


def _segment_of(judgement: Judgement, codebook: Codebook) -> Segment:
    return Segment(
        judgement.window.start_s or 0.0, judgement.window.end_s or 0.0, codebook.rank(judgement.level)
    )


class FlatSegments(NamedTuple):
    """Segments that do not overlap, and how many were cut or hidden for that."""

    segments: list[Segment]
    n_cut: int


def highest_of(segments: Sequence[Segment]) -> FlatSegments:
    """Cut segments that overlap, so that everywhere the one of the highest value is left, whole.

    Examples
    --------
    >>> highest_of([Segment(0, 10, 1), Segment(4, 6, 3)]).segments
    [Segment(start=0, end=4, value=1), Segment(start=4, end=6, value=3), Segment(start=6, end=10, value=1)]
    """
    placed: list[Segment] = []
    n_cut = 0
    for segment in sorted(segments, key=lambda part: (-part.value, part.start, part.end)):
        pieces = [segment]
        for placed_segment in placed:
            pieces = [left_over for piece in pieces for left_over in _without(piece, placed_segment)]
        if pieces != [segment]:
            n_cut += 1
        placed += pieces
    return FlatSegments(sorted(placed), n_cut)


def _without(piece: Segment, segment: Segment) -> list[Segment]:
    """Take from a segment what lies under another."""
    if segment.end <= piece.start or segment.start >= piece.end:
        return [piece]
    before = Segment(piece.start, segment.start, piece.value)
    after = Segment(segment.end, piece.end, piece.value)
    return [part for part in (before, after) if part.end > part.start]
