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
from obygaze_features.manifest.judgements import MODEL, Judgement, Judgements, blind_labels, judgements_of
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.unmarked_time import in_common_stretches

Floats = NDArray[np.float64]

Metric = Literal["nominal", "ordinal", "interval"]

METRICS: Final[tuple[Metric, ...]] = get_args(Metric)
"""How two values are compared: as names, by how many values lie between them, or by their distance."""

GAP: Final = 0
"""Value of what an annotator left unmarked."""

MARKED: Final = slice(GAP + 1, None)
"""Rows or columns of the values of segments, in arrays that have one for each value and for `GAP`."""


@checked
def krippendorff_alpha(values: ArrayLike, metric: Metric = "nominal") -> float | None:
    """Measure the agreement of annotators on clips that each of them may have labelled.

    Alpha is 1 - D_o / D_e: the observed disagreement over the one expected by chance. Each is the sum, over
    all pairs of values, of how often the pair occurs (its coincidences) times how much its values differ.

    Parameters
    ----------
    values : array-like, shape [n_annotators, n_clips]
        Numbers; NaN where an annotator gave none.
    metric : str
        How two values are compared. "nominal": they are equal or not. "ordinal": by the number of given
        values that lie between them. "interval": by their squared distance.

    Returns
    -------
    float or None
        None if it is undefined: no clip has two labels, or all labels of such clips are equal, so that
        random labels would not disagree either.

    Examples
    --------
    >>> nan = float("nan")
    >>> labels = [[1, 2, 3, 3, 2, nan], [1, 2, 3, 3, 2, 2], [nan, 3, 3, 3, 2, 3]]
    >>> round(krippendorff_alpha(labels), 3), round(krippendorff_alpha(labels, "interval"), 3)
    (0.605, 0.758)
    """
    table = np.asarray(values, dtype=np.float64)
    different_values, counts = _counts_of_values(table)
    counts = counts[counts.sum(axis=1) >= 2]  # clips with labels to compare
    if not len(counts):
        return None
    coincidences = _observed_coincidences(counts)

    # By chance, each of the n labels of all clips is paired with every other one, but not with itself:
    # n_a * n_b / (n - 1) coincidences of two values a and b, and n_a * (n_a - 1) / (n - 1) of a with itself.
    totals = coincidences.sum(axis=1)  # labels of each value, [n_values]
    n = totals.sum()
    by_chance = (np.outer(totals, totals) - np.diag(totals)) / (n - 1)

    differences = _differences(different_values, totals, metric)
    observed_disagreement = float((coincidences * differences).sum())
    expected_disagreement = float((by_chance * differences).sum())
    return _alpha(observed_disagreement, expected_disagreement)


def _counts_of_values(table: Floats) -> tuple[Floats, Floats]:
    """Count the labels of each value that each clip has.

    Parameters
    ----------
    table
        The labels, [n_annotators, n_clips]; NaN where an annotator gave none.

    Returns
    -------
    different_values
        The values that annotators gave, in rising order, [n_values].
    counts
        How many annotators gave each value, [n_clips, n_values].
    """
    is_labelled = ~np.isnan(table)
    _, clips = np.nonzero(is_labelled)  # clip of each label, in the order of `table[is_labelled]`
    different_values, indices = np.unique(table[is_labelled], return_inverse=True)
    counts = np.zeros((table.shape[1], len(different_values)))
    np.add.at(counts, (clips, indices), 1)
    return different_values, counts


def _observed_coincidences(counts: Floats) -> Floats:
    """Count how often two annotators gave two values to the same clip, [n_values, n_values].

    A label is paired with the n - 1 other labels of its clip, and each of these pairs counts 1 / (n - 1), so
    that every label has the same weight.

    Parameters
    ----------
    counts
        How many annotators gave each value, [n_clips, n_values]; two or more in each clip.
    """
    n_labels = counts.sum(axis=1)
    weighted = counts / (n_labels - 1)[:, None]
    pairs = weighted.T @ counts
    pairs_with_itself = weighted.sum(0)  # a label with the same label, which is no pair of two annotators
    return np.asarray(pairs - np.diag(pairs_with_itself))


def _differences(values: Floats, totals: Floats, metric: Metric) -> Floats:
    """Return the squared difference of every two values under a metric, [n_values, n_values].

    - nominal: 1, or 0 for the same value;
    - interval: the squared difference of the numbers;
    - ordinal: the square of how many labels are between the two values, with half of the labels at each of
      them.

    Parameters
    ----------
    values
        The different values in rising order, [n_values].
    totals
        How often each was given, [n_values].
    metric
        Of `METRICS`.
    """
    if metric == "nominal":
        return 1 - np.eye(len(values))
    if metric == "interval":
        return np.asarray((values[:, None] - values) ** 2)
    # Number of labels below each value, with half of those at it.
    middles = np.cumsum(totals) - totals / 2
    return np.asarray((middles[:, None] - middles) ** 2)


def _alpha(observed: float, expected: float) -> float | None:
    """Return 1 - observed / expected disagreement, of which only the ratio counts; None if expected is 0."""
    if expected <= 0:
        return None
    return 1 - observed / expected


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
        The share of the annotated time on which `values` is computed.

    A coefficient is None if it is undefined: chance has no disagreement.
    """

    segments: float | None
    marked: float | None
    values: float | None
    coverage: float


@checked
def unitised_alpha(
    annotations: Sequence[Sequence[Segment]], start: float, end: float, *, grain: float = 1.0
) -> UnitisedAlpha:
    """Measure the agreement of annotators on segments whose limits each of them chose freely.

    The result has three coefficients, of the segments with their values (`segments`), of what is marked,
    whatever its value (`marked`), and of the values alone, where both annotators marked a segment (`values`).
    Each is 1 - observed / expected disagreement; two annotators disagree where they give two values at the
    same time. Equations are those of Krippendorff et al. 2016.

    - Observed coincidences of two values: the length over which two annotators gave them at the same time
      (eq. 1).
    - Expected ones: every piece of the annotated time is paired with every other piece, but not with itself.
      A segment is one piece; what is unmarked has a piece for every `grain` (eq. 4). For `values`, the piece
      of a segment is the part of it that the other annotator marked too (eq. 10).

    Parameters
    ----------
    annotations : sequence of sequence of Segment
        The segments of each of two or more annotators; those of one annotator do not overlap.
    start, end : float
        Where the annotated continuum starts and ends.
    grain : float
        Length of the shortest segment that could be marked; 1 as in the paper, whose lengths are integers.

    Examples
    --------
    >>> first, second = [Segment(0, 4, 1), Segment(6, 9, 2)], [Segment(0, 5, 1), Segment(6, 9, 3)]
    >>> agreement = unitised_alpha([first, second], 0, 12)
    >>> round(agreement.segments, 3), round(agreement.marked, 3), round(agreement.values, 3)
    (0.572, 0.843, 0.451)
    """
    partitions = [_partition(segments, start, end) for segments in annotations]
    n_values = 1 + _highest_value(partitions)  # the values of segments, and GAP (0) for what is unmarked
    observed = _observed(partitions, n_values)
    squared_lengths = _squared_lengths(partitions, n_values, grain)
    expected = _coincidences_by_chance(observed.lengths, squared_lengths)

    # The same without the row and the column of GAP: only where both annotators marked a segment.
    observed_values = observed.lengths[MARKED, MARKED]
    expected_values = _coincidences_by_chance(observed_values, observed.squares_of_marked[MARKED])

    # Two different values at the same time are off the diagonal. Where one annotator marked what the other
    # did not, one of the two is GAP.
    observed_disagreement_on_marking = float(observed.lengths[GAP, MARKED].sum())
    expected_disagreement_on_marking = float(expected[GAP, MARKED].sum())
    return UnitisedAlpha(
        segments=_alpha(_off_diagonal(observed.lengths), _off_diagonal(expected)),
        marked=_alpha(observed_disagreement_on_marking, expected_disagreement_on_marking),
        values=_alpha(_off_diagonal(observed_values), _off_diagonal(expected_values)),
        coverage=float(observed_values.sum() / observed.lengths.sum()),
    )


class _Observed(NamedTuple):
    """What is observed over all ordered pairs of annotators.

    Attributes
    ----------
    lengths
        Coincidences: the length over which one annotator gave the row's value and another one the column's,
        [n_values, n_values].
    squares_of_marked
        For each value, the sum of the squared lengths of the parts of its segments that the other annotator
        marked too, [n_values].
    """

    lengths: Floats
    squares_of_marked: Floats


def _observed(partitions: Sequence[Sequence[Segment]], n_values: int) -> _Observed:
    """Add up what each annotator marked at the same time as each other one: lengths, and squares of lengths.

    The squares are needed for the chance coincidences of values (`_coincidences_by_chance`), whose pieces are
    the parts of segments that the other annotator marked too, with whatever value.

    `partitions` are the segments and gaps of each annotator, and `n_values` includes `GAP`.
    """
    lengths = np.zeros((n_values, n_values))
    squares_of_marked = np.zeros(n_values)
    # Each annotator is in a pair with every other one. With this weight, the coincidences of a value sum to
    # the length that all annotators gave it.
    weight = 1 / (len(partitions) - 1)
    for partition, other_partition in permutations(partitions, 2):
        for part in partition:
            shared_lengths = _shared_by_value(part, other_partition, n_values)  # [n_values]
            lengths[part.value] += weight * shared_lengths

            is_segment = part.value != GAP
            if is_segment:
                length_marked_by_both = shared_lengths[MARKED].sum()  # with any value but GAP
                squares_of_marked[part.value] += weight * length_marked_by_both**2
    return _Observed(lengths, squares_of_marked)


def _squared_lengths(partitions: Sequence[Sequence[Segment]], n_values: int, grain: float) -> Floats:
    """Return for each value the sum of the squared lengths of its pieces over all annotators, [n_values].

    `_coincidences_by_chance` takes them off, as chance pairs no piece with itself. A segment is one piece. A
    gap (value `GAP`) is many, as each of them could have been marked: length / grain pieces of the length
    grain, whose squares sum to length / grain * grain ** 2 = length * grain.

    `partitions` are the segments and gaps of each annotator, `n_values` includes `GAP`, and `grain` is the
    length of the shortest segment that could be marked.
    """
    sums_of_squares = np.zeros(n_values)
    for partition in partitions:
        for part in partition:
            length = part.end - part.start
            piece_length = grain if part.value == GAP else length
            sums_of_squares[part.value] += length * piece_length
    return sums_of_squares


def _highest_value(partitions: Sequence[Sequence[Segment]]) -> int:
    """Return the highest value that any annotator gave a segment; `GAP` if nobody marked anything."""
    highest = GAP
    for parts in partitions:
        highest = max([highest, *(part.value for part in parts)])
    return highest


def _partition(segments: Sequence[Segment], start: float, end: float) -> list[Segment]:
    """Return the segments of an annotator in the order of time, with segments of value `GAP` between them.

    Together they fill the time from `start` to `end` without a hole.

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
    """Return the length that a part shares with another annotator's segments of each value, [n_values]."""
    shared_lengths = np.zeros(n_values)
    for segment in segments:
        start = max(part.start, segment.start)
        end = min(part.end, segment.end)
        shared_lengths[segment.value] += max(0.0, end - start)  # 0 if they do not overlap
    return shared_lengths


def _coincidences_by_chance(coincidences: Floats, squares: Floats) -> Floats:
    """Compute the coincidences that chance would give, [n_values, n_values].

    Chance pairs every piece of the continuum with every other one, but not with itself. With the length L of
    each value and the sum Q of the squared lengths of its pieces, values a and b have L_a * L_b pairs if they
    differ, and a value has L_a ** 2 - Q_a pairs with itself. All are scaled to the sum of the observed
    coincidences. If no pair of different pieces is possible, they are zeros.

    Parameters
    ----------
    coincidences
        The observed coincidences, [n_values, n_values].
    squares
        Q of each value, [n_values].
    """
    lengths = coincidences.sum(axis=1)  # of each value, [n_values]
    total_length = coincidences.sum()
    n_possible_pairs = total_length**2 - squares.sum()
    if n_possible_pairs <= 0:
        return np.zeros_like(coincidences)
    possible_pairs = np.outer(lengths, lengths) - np.diag(squares)
    return np.asarray(possible_pairs * total_length / n_possible_pairs)


def _off_diagonal(matrix: Floats) -> float:
    """Return the sum of a matrix without its diagonal."""
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
    machines : tuple of str
        Names of the annotators that are machines (column `model`).
    """

    annotators: int
    n_clips: int
    n_labels: int
    nominal: float | None
    ordinal: float | None
    interval: float | None
    machines: tuple[str, ...] = ()


@checked
def level_alphas(manifest: Manifest) -> tuple[LevelAlphas, LevelAlphas]:
    """Measure the agreement of all annotators of a manifest on the clips that at least two of them labelled.

    Labels that were given in sight of a model's score are left out (`blind_labels`).

    Returns
    -------
    all_levels, labels_only : LevelAlphas
        Over all levels, and without the levels that are in no task, such as NS.

    Raises
    ------
    ManifestError
        Labels were given under two definitions, or one annotator labelled a span twice.
    """
    blind = blind_labels(manifest)
    judged = judgements_of(blind.manifest).where(lambda judgement: bool(judgement.judge))
    judged.refuse_two_definitions()
    labels = manifest.codebook.labels
    with_labels = judged.where(lambda judgement: judgement.level in labels)
    return _level_alphas(judged, manifest.codebook), _level_alphas(with_labels, manifest.codebook)


def _level_alphas(judged: Judgements, codebook: Codebook) -> LevelAlphas:
    """Measure the agreement of all judges on the levels of the windows that at least two of them judged."""
    by_judge = judged.by_judge()
    windows = judged.windows
    # [n_judges, n_windows], NaN where a judge gave no level.
    ranks = np.full((len(by_judge), len(windows)), np.nan)
    level_positions = np.full_like(ranks, np.nan)
    position_of_rank = positions(codebook)
    for row, by_window in enumerate(by_judge.values()):
        for column, window in enumerate(windows):
            if window in by_window:
                rank = codebook.rank(by_window[window].level)
                ranks[row, column] = rank
                level_positions[row, column] = position_of_rank[rank]

    n_labels = (~np.isnan(ranks)).sum(axis=0)  # of each window
    machines = {judgement.judge for judgement in judged.every if judgement.clip.extras.get(MODEL)}
    return LevelAlphas(
        annotators=len(by_judge),
        n_clips=int((n_labels >= 2).sum()),
        n_labels=int(n_labels[n_labels >= 2].sum()),
        nominal=krippendorff_alpha(ranks, "nominal"),
        ordinal=krippendorff_alpha(ranks, "ordinal"),
        interval=krippendorff_alpha(level_positions, "interval"),
        machines=tuple(sorted(machines)),
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

    A span of the lowest level counts as unmarked, not as a segment. Where segments of one annotator overlap,
    the higher level counts. Annotators who saw a model's score in a film are left out of it (`blind_labels`),
    and only the time counts that all others answered for (`in_common_stretches`).

    Raises
    ------
    ManifestError
        A labelled segment has no times, no film has two annotators, or judgements were made under two
        definitions.
    """
    blind = blind_labels(manifest, whole_films=True)
    compared = in_common_stretches(blind.manifest)
    judged = judgements_of(compared).where(lambda judgement: bool(judgement.judge))
    judged.refuse_two_definitions()

    # Movie -> judge -> judgements. A judge of the film who marked nothing of the time that is compared has
    # an empty list, which says that nothing is there.
    judgements_of_film: dict[str, dict[str, list[Judgement]]] = {}
    for judgement in judgements_of(blind.manifest).every:
        if judgement.judge:
            of_judge = judgements_of_film.setdefault(judgement.clip.movie, {})
            of_judge.setdefault(judgement.judge, [])
    for judgement in judged.every:
        if judgement.window.start_s is None or judgement.window.end_s is None:
            raise ManifestError(f"clip {judgement.clip.clip_id!r} has no start_s and end_s", "start_s")
        judgements_of_film[judgement.clip.movie][judgement.judge].append(judgement)

    alphas = []
    for movie, by_judge in judgements_of_film.items():
        is_anything_marked = any(judgements for judgements in by_judge.values())
        if len(by_judge) > 1 and is_anything_marked:
            alphas.append(_film_alpha(movie, by_judge, manifest.codebook))
    if not alphas:
        raise ManifestError(
            "no movie has two annotators who answered for the same time, so there is nothing to "
            f"compare{blind.reason()}"
        )
    return tuple(alphas)


def _film_alpha(
    movie: str, by_judge: Mapping[str, Sequence[Judgement]], codebook: Codebook
) -> FilmUnitisedAlpha:
    """Measure the agreement of a film's judges on segments, from the first judged second to the last one.

    A judge who marked nothing of the time that is compared has no judgements. The lowest level counts as
    unmarked.
    """
    names = tuple(sorted(by_judge))
    annotations = []
    all_segments: list[Segment] = []
    n_cut = 0  # segments that overlap others of the same judge
    for name in names:
        segments = [_segment_of(judgement, codebook) for judgement in by_judge[name]]
        all_segments += segments
        marked = without_overlaps([segment for segment in segments if segment.value != GAP])
        annotations.append(marked.segments)
        n_cut += marked.n_cut

    first_s = min(segment.start for segment in all_segments)
    last_s = max(segment.end for segment in all_segments)
    n_segments = tuple(len(segments) for segments in annotations)
    alpha = unitised_alpha(annotations, first_s, last_s)
    return FilmUnitisedAlpha(movie, names, n_segments, n_cut, alpha)


def _segment_of(judgement: Judgement, codebook: Codebook) -> Segment:
    """Return the span of a judgement as a segment whose value is the rank of its level.

    Every judgement has times here, as `unitised_alphas` refuses one of a whole file.
    """
    start_s = judgement.window.start_s or 0.0
    end_s = judgement.window.end_s or 0.0
    return Segment(start_s, end_s, codebook.rank(judgement.level))


class FlatSegments(NamedTuple):
    """Segments that do not overlap, and how many were cut or hidden for that."""

    segments: list[Segment]
    n_cut: int


def without_overlaps(segments: Sequence[Segment]) -> FlatSegments:
    """Cut segments that overlap: at every time only the segment of the highest value is left.

    Returns
    -------
    FlatSegments
        The remaining segments in the order of time, and how many of the given ones were cut or covered.

    Examples
    --------
    >>> without_overlaps([Segment(0, 10, 1), Segment(4, 6, 3)]).segments
    [Segment(start=0, end=4, value=1), Segment(start=4, end=6, value=3), Segment(start=6, end=10, value=1)]
    """
    placed: list[Segment] = []  # of the highest values first, which cut those that come later
    n_cut = 0
    highest_first = sorted(segments, key=lambda part: (-part.value, part.start, part.end))
    for segment in highest_first:
        pieces = [segment]  # what is left of it
        for higher_segment in placed:
            uncovered: list[Segment] = []
            for piece in pieces:
                uncovered += _without(piece, higher_segment)
            pieces = uncovered
        if pieces != [segment]:
            n_cut += 1
        placed += pieces
    return FlatSegments(sorted(placed), n_cut)


def _without(piece: Segment, segment: Segment) -> list[Segment]:
    """Return the parts of a piece that another segment does not cover: none, one or two."""
    if segment.end <= piece.start or segment.start >= piece.end:
        return [piece]
    before = Segment(piece.start, segment.start, piece.value)
    after = Segment(segment.end, piece.end, piece.value)
    # Where the segment covers an end of the piece, `before` or `after` would end before it starts.
    return [part for part in (before, after) if part.end > part.start]
