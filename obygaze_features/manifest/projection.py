"""Project free annotations onto clips and merge annotators (Tores et al., CVPR 2024, App. 7.2)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import Clip, grouped, numbered_ids
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.judgements import HOW_JUDGED, how_judged, judgements_of
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.near import overlapping
from obygaze_features.manifest.spans.names import suggestion
from obygaze_features.manifest.text_tables import error_context
from obygaze_features.manifest.unmarked_time import marks_every_answer
from obygaze_features.text import composed

Merge = Literal["highest", "any", "both", "expert"]

DEFAULT_THRESHOLD = 0.2
"""The paper's smallest overlap."""

SLACK_S = 1e-9
"""Overlaps are compared to the nanosecond: 128.2 - 126.2 must count as two seconds."""


@dataclass(frozen=True)
class Projection:
    """Labelled clips, and the annotations that match no clip.

    Parameters
    ----------
    manifest
        The clips with their projected labels.
    unwatched
        Movies without any annotation: their clips have no level.
    elsewhere
        Movies that were annotated and have no clip.
    unanswered
        Ids of clips of annotated movies for which no annotator has an answer: they have no level.
    without_row
        With a row for each annotator: annotator -> number of clips without a row of theirs, where somebody
        else has an answer; only of annotators who have such clips.
    columns_left_out
        Columns of the annotations that say nothing of how a label was given, so that clips do not get them.
    """

    manifest: Manifest
    unwatched: tuple[str, ...]
    elsewhere: tuple[str, ...]
    unanswered: tuple[str, ...] = ()
    without_row: Mapping[str, int] = field(default_factory=dict)
    columns_left_out: tuple[str, ...] = ()


@checked
def merge(
    clip: Clip, marks: Iterable[Clip], codebook: Codebook, how: Merge = "highest", annotator: str = ""
) -> Clip:
    """Label a clip by the annotations of its span.

    If no annotation has a level, the clip gets the lowest one: an annotator watched it and marked nothing.
    The result depends neither on the order of the annotations nor on repeats.

    Columns that say how a label was given (`HOW_JUDGED`) come from the annotations that gave it: if one of
    these was made in sight of a model's score, so was the label, and the name of a machine stays.

    Parameters
    ----------
    clip
        The clip, whose own labels are replaced, with what says how these were given.
    marks
        Annotations of the clip's span; those without a level are ignored.
    codebook
        Gives the order of levels and concepts.
    how
        The rule by which labels are merged, as `merge_annotators` lists them.
    annotator
        Annotator of the labelled clip; "" for merged labels.
    """
    annotations = []
    levels = []
    for annotation in marks:
        if annotation.level is not None:
            annotations.append(annotation)
            levels.append(annotation.level)

    lowest_level = codebook.level_names[0]  # of a clip without annotations
    if how == "both":
        # Both annotators see at least the lower level, and only the concepts that both gave.
        level = min(levels, key=codebook.rank, default=lowest_level)
        concepts = _concepts_of_every(annotations)
    else:
        level = max(levels, key=codebook.rank, default=lowest_level)
        if how == "highest":  # only the concepts that were given at that level
            annotations = [annotation for annotation in annotations if annotation.level == level]
        concepts = _concepts_of_any(annotations)

    concepts_in_order = codebook.in_order(concepts)
    extras = how_judged(annotations, clip.extras)
    return replace(clip, level=level, concepts=concepts_in_order, annotator=annotator, extras=extras)


def _concepts_of_every(marks: Sequence[Clip]) -> set[str]:
    """Return the concepts that every mark has; none if there are no marks."""
    if not marks:
        return set()
    return set.intersection(*(set(mark.concepts) for mark in marks))


def _concepts_of_any(marks: Sequence[Clip]) -> set[str]:
    """Return the concepts that at least one mark has."""
    concepts = set[str]()
    for mark in marks:
        concepts.update(mark.concepts)
    return concepts


@checked
def project(
    annotations: Manifest,
    clips: Manifest,
    threshold: float = DEFAULT_THRESHOLD,
    *,
    per_annotator: bool = False,
) -> Projection:
    """Label every clip from the annotations that overlap it enough.

    An annotation counts if it covers at least the share `threshold` of the clip. The clip gets the highest
    level of the annotations that count, and all concepts that were given at that level. A clip for which no
    annotation counts gets the lowest level (EN) from each annotator who marks only what they find. Who marks
    the lowest level too, or judged drawn windows, has no answer for a clip of which their annotations
    together cover less than this share (`marks_every_answer`).

    How labels were given is kept (`merge`). A clip for which no annotation counts was judged as the annotator
    judged the rest of the movie: in sight of a model's score if any of it was.

    Parameters
    ----------
    annotations
        Annotated spans of movies.
    clips
        The spans to label. Their own labels and codebook are replaced by those of the annotations, and their
        columns that say how labels were given.
    threshold
        Share of the clip's duration, 0 to 1.
    per_annotator
        Whether to give each annotator's labels a row of their own, in place of the labels merged over
        annotators. An annotator without an answer has no row.

    Returns
    -------
    Projection
        The labelled clips, the movies of clips that nobody annotated, and those of annotations without clips.

    Raises
    ------
    ManifestError
        If a clip has no span, an annotation no level, the threshold is not a share, or the annotations were
        made under two definitions.
    """
    if not 0 <= threshold <= 1:
        raise ManifestError(f"threshold {threshold}: expected a share of the clip between 0 and 1")
    for annotation in annotations:
        if annotation.level is None:
            raise ManifestError(f"clip {annotation.clip_id!r} has no level, so it is no annotation", "level")
    judgements_of(annotations).refuse_two_definitions()

    # Movies may be spelled differently in the annotations: they get the names that the clips have. The clips
    # get the columns that say how labels were given.
    annotations = annotations.spelled_as(clips.movies)
    columns = tuple(annotations.clips[0].extras) if len(annotations) else ()
    clips = _with_columns_of_judgements(clips, [name for name in HOW_JUDGED if name in columns])

    annotations_of_movie = grouped(annotations, "movie")
    rows_of_clip: dict[str, list[Clip]] = {}
    unanswered: list[str] = []  # ids of clips of annotated movies on which nobody has an answer
    n_without_row = Counter[str]()  # annotator -> clips on which others have a row, and they have none
    for movie, clips_of_movie in grouped(clips, "movie").items():
        marks = annotations_of_movie.get(movie, [])  # empty if nobody annotated the movie
        annotators = {mark.annotator for mark in marks}
        labelled_rows = _label_movie(clips_of_movie, marks, threshold, per_annotator, annotations.codebook)
        for clip, rows in zip(clips_of_movie, labelled_rows, strict=True):
            rows_of_clip[clip.clip_id] = rows
            has_answer = any(row.level is not None for row in rows)
            if marks and not has_answer:
                unanswered.append(clip.clip_id)
            elif per_annotator:
                annotators_with_row = {row.annotator for row in rows}
                n_without_row.update(annotators - annotators_with_row)

    all_rows: list[Clip] = []  # in the order of the clips
    for clip in clips:
        all_rows += rows_of_clip[clip.clip_id]
    movies_with_clips = set(clips.movies)
    return Projection(
        Manifest(tuple(all_rows), clips.root, annotations.codebook),
        unwatched=tuple(movie for movie in clips.movies if movie not in annotations_of_movie),
        elsewhere=tuple(movie for movie in annotations.movies if movie not in movies_with_clips),
        unanswered=tuple(unanswered),
        without_row=dict(sorted(n_without_row.items())),
        columns_left_out=tuple(name for name in columns if name not in HOW_JUDGED),
    )


def _with_columns_of_judgements(clips: Manifest, columns: Sequence[str]) -> Manifest:
    """Replace the columns that say how clips were judged (`HOW_JUDGED`) by empty ones, for new labels.

    What the clips' own columns say is of labels that are replaced. `columns` are those of `HOW_JUDGED` that
    the annotations have, which the new labels come from.
    """
    prepared_clips = []
    for clip in clips:
        extras = {name: cell for name, cell in clip.extras.items() if name not in HOW_JUDGED}
        for column in columns:
            extras[column] = ""
        prepared_clips.append(replace(clip, extras=extras))
    return clips.with_clips(prepared_clips)


@checked
def merge_annotators(manifest: Manifest, how: Merge = "highest", expert: str = "") -> Manifest:
    """Merge the rows of each clip by several annotators into one row.

    Parameters
    ----------
    manifest
        Rows of annotators.
    how
        ``highest``: the highest level, with the concepts given at it (the paper's rule); ``any``: the highest
        level, with all concepts; ``both``: the lowest level, with the concepts that all gave; ``expert``:
        the labels of one annotator alone. Ranks on further scales of the codebook are merged like levels: the
        highest, or for ``both`` the lowest, of those that were given. Other columns are the first row's.
    expert
        Name of the annotator for the rule ``expert``.

    Raises
    ------
    ManifestError
        There is no such annotator, the labels were given under two definitions, or a cell is no level of its
        scale.
    """
    judgements_of(manifest).refuse_two_definitions()
    if how == "expert":
        name = composed(expert)  # as clips have it
        rows_of_expert = [clip for clip in manifest if clip.annotator == name]
        if not rows_of_expert:
            annotators = sorted({clip.annotator for clip in manifest if clip.annotator})
            names = suggestion(expert, annotators) or ": no row names one"
            raise ManifestError(f"no annotator {expert!r}{names}", "annotator")
        return manifest.with_clips(rows_of_expert)
    if not manifest.is_per_annotator:
        return manifest

    merged = []
    for rows in grouped(manifest, "clip_id").values():
        first_row = replace(rows[0], extras={**rows[0].extras, **_merged_ranks(rows, manifest.codebook, how)})
        if any(row.level for row in rows):
            merged.append(merge(first_row, rows, manifest.codebook, how))
        else:  # nobody labelled it; `merge` would give it the lowest level
            merged.append(replace(first_row, annotator=""))
    return manifest.with_clips(merged)


def _merged_ranks(rows: Sequence[Clip], codebook: Codebook, how: Merge) -> dict[str, str]:
    """Merge the ranks of a clip on each scale that has a column: scale -> the cell of the rank that counts.

    It is the lowest rank for `both`, and else the highest. Rows without a rank do not count.
    """
    cell_of_scale: dict[str, str] = {}
    for scale in codebook.scales:
        if scale.name not in rows[0].extras:
            continue
        cells_of_rank: dict[int, list[str]] = {}  # several, as 7 and 7.5 may be one level of the scale
        for row in rows:
            cell = row.extras[scale.name]
            with error_context(f"clip {row.clip_id!r}"):
                level = scale.level_of(cell)
            if level is not None:
                cells_of_rank.setdefault(scale.level_names.index(level), []).append(cell)
        if not cells_of_rank:
            cell_of_scale[scale.name] = ""
            continue
        rank = min(cells_of_rank) if how == "both" else max(cells_of_rank)
        # Of several cells the first by the alphabet, so that the order of the rows does not count.
        cell_of_scale[scale.name] = min(cells_of_rank[rank])
    return cell_of_scale


@checked
def sweep(annotations: Manifest, clips: Manifest, thresholds: Sequence[float]) -> dict[float, Projection]:
    """Project annotations onto clips at several thresholds, as Tores et al. (CVPR 2024, App. 7.2) do.

    Parameters
    ----------
    annotations
        Annotated spans of movies.
    clips
        The spans to label.
    thresholds
        Shares of a clip's duration that an annotation must cover to count, 0 to 1.

    Returns
    -------
    dict
        Threshold -> the projection, merged over annotators, in the order of `thresholds`.

    Raises
    ------
    ManifestError
        No threshold is given, one is given twice, or `project` refuses the annotations.
    """
    if not thresholds or len(set(thresholds)) < len(thresholds):
        raise ManifestError("a sweep needs thresholds that differ, such as 0.1, 0.2, 0.3, 0.4")
    return {threshold: project(annotations, clips, threshold) for threshold in thresholds}


@checked
def windows(annotations: Manifest, seconds: float) -> Manifest:
    """Cut every annotated movie into windows of equal length; the last one ends with the last annotation.

    Parameters
    ----------
    annotations
        Annotated spans of movies.
    seconds
        Length of a window.

    Raises
    ------
    ManifestError
        If the length is not positive, or an annotation has no span.
    """
    if not 0 < seconds < float("inf"):
        raise ManifestError(f"window {seconds}: expected a positive number of seconds")
    clips = []
    for movie, marks in grouped(annotations, "movie").items():
        ends_s = _times_of_clips(marks)[:, 1]
        end_s = float(ends_s.max())
        videos = {mark.video for mark in marks}
        video = videos.pop() if len(videos) == 1 else ""
        # A last window of less than a nanosecond would come from rounding alone.
        n_windows = max(int(np.ceil((end_s - SLACK_S) / seconds)), 1)
        for number, clip_id in enumerate(numbered_ids(movie, n_windows)):
            window_end_s = min((number + 1) * seconds, end_s)
            clips.append(Clip(clip_id, movie, video, number * seconds, window_end_s))
    return annotations.with_clips(clips)


def _label_movie(
    clips: Sequence[Clip], marks: Sequence[Clip], threshold: float, per_annotator: bool, codebook: Codebook
) -> list[list[Clip]]:
    """Label the clips of one movie by its annotations: merged over annotators, or for each one separately.

    A clip's label is made of the annotations that cover enough of it. An annotator who marked nothing there,
    but watched the clip (`_is_answered`), gives it the lowest level. No annotation says how that level was
    judged, so it counts as judged like the rest of the movie: in sight of a model's score, for example.

    `marks` are the annotations of the movie, and `threshold` is the share of a clip's duration that an
    annotation must cover to count.

    Returns
    -------
    list
        The labelled rows of each clip: one, or with `per_annotator` one for each annotator of the movie who
        has an answer. A clip for which nobody has one gets a row without a level.
    """
    marks_of_clips = _marks_of_clips(clips, marks, threshold)
    has_answer_of: dict[str, NDArray[np.bool_]] = {}  # annotator -> for each clip, whether they have one
    how_each_judged: dict[str, dict[str, str]] = {}  # annotator -> how they judged the movie
    for annotator, marks_of_annotator in grouped(marks, "annotator").items():
        has_answer_of[annotator] = _is_answered(clips, marks_of_annotator, threshold, codebook)
        how_each_judged[annotator] = how_judged(marks_of_annotator, extras={})

    rows_of_clips: list[list[Clip]] = []
    for index, (clip, marks_of_clip) in enumerate(zip(clips, marks_of_clips, strict=True)):
        annotators = [name for name, has_answer in has_answer_of.items() if has_answer[index]]
        if not annotators:
            row_without_level = replace(clip, level=None, concepts=(), annotator="")
            rows_of_clips.append([row_without_level])
            continue

        # One row, merged over all annotators.
        if not per_annotator:
            row = merge(clip, marks_of_clip, codebook)
            if not marks_of_clip:  # the lowest level, of all who watched the clip and marked nothing
                marks_in_movie = [mark for mark in marks if mark.annotator in annotators]
                how_all_judged = how_judged(marks_in_movie, extras={})
                row = replace(row, extras={**row.extras, **how_all_judged})
            rows_of_clips.append([row])
            continue

        # A row for each annotator who has an answer.
        rows = []
        for annotator in annotators:
            marks_of_annotator = [mark for mark in marks_of_clip if mark.annotator == annotator]
            row = merge(clip, marks_of_annotator, codebook, annotator=annotator)
            if not marks_of_annotator:  # the lowest level
                row = replace(row, extras={**row.extras, **how_each_judged[annotator]})
            rows.append(row)
        rows_of_clips.append(rows)
    return rows_of_clips


def _is_answered(
    clips: Sequence[Clip], marks: Sequence[Clip], threshold: float, codebook: Codebook
) -> NDArray[np.bool_]:
    """Return for which clips of a movie one annotator has an answer, bool [N].

    An annotator who marks only what they find has an answer for all clips: where they marked nothing, nothing
    is there. One who marks every answer has one only for clips of which their marks together cover at least
    the share `threshold`.
    """
    if not marks_every_answer(marks, codebook):
        return np.ones(len(clips), np.bool_)
    clip_spans = _times_of_clips(clips)
    marked_spans = _without_overlaps(_times_of_clips(marks))
    pairs = _overlaps(clip_spans, marked_spans)
    covered_s = np.bincount(pairs.clips, weights=pairs.shared_s, minlength=len(clips))
    needed_s = threshold * (clip_spans[:, 1] - clip_spans[:, 0])
    return (covered_s > 0) & (covered_s + SLACK_S >= needed_s)


def _without_overlaps(spans: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cut spans so that each second is in one of them alone.

    Parameters
    ----------
    spans
        Starts and ends in seconds, [N, 2].

    Returns
    -------
    ndarray
        [N, 2], sorted by start: each span begins where those before it have ended. A span that lies within
        them becomes empty.
    """
    by_start = spans[np.argsort(spans[:, 0], kind="stable")]
    latest_end_so_far = np.maximum.accumulate(by_start[:, 1])
    starts = by_start[:, 0].copy()
    starts[1:] = np.maximum(starts[1:], latest_end_so_far[:-1])
    ends = np.maximum(by_start[:, 1], starts)
    return np.column_stack([starts, ends])


class _Overlaps(NamedTuple):
    """The P pairs of a clip and an annotation that overlap: their places, and the seconds that they share."""

    clips: NDArray[np.intp]
    marks: NDArray[np.intp]
    shared_s: NDArray[np.float64]


def _overlaps(clip_spans: NDArray[np.float64], mark_spans: NDArray[np.float64]) -> _Overlaps:
    """Find all pairs of a clip and an annotation that overlap, and how many seconds they share.

    Parameters
    ----------
    clip_spans, mark_spans
        Starts and ends in seconds of the clips, [N, 2], and of the annotations, [M, 2].
    """
    pairs = overlapping(clip_spans, mark_spans)
    clip_starts_s, clip_ends_s = clip_spans[pairs.first].T
    mark_starts_s, mark_ends_s = mark_spans[pairs.second].T
    shared_s = np.minimum(clip_ends_s, mark_ends_s) - np.maximum(clip_starts_s, mark_starts_s)
    return _Overlaps(pairs.first, pairs.second, np.maximum(shared_s, 0.0))


def _marks_of_clips(clips: Sequence[Clip], marks: Sequence[Clip], threshold: float) -> list[list[Clip]]:
    """Return for each clip, in order, the annotations that cover at least the share `threshold` of it."""
    clip_spans = _times_of_clips(clips)
    pairs = _overlaps(clip_spans, _times_of_clips(marks))
    needed_s = threshold * (clip_spans[:, 1] - clip_spans[:, 0])  # of each clip
    covers_enough = (pairs.shared_s + SLACK_S >= needed_s[pairs.clips]) & (pairs.shared_s > 0)

    clip_places = pairs.clips[covers_enough].tolist()
    mark_places = pairs.marks[covers_enough].tolist()
    marks_of_clips: list[list[Clip]] = [[] for _ in clips]
    for clip_place, mark_place in sorted(zip(clip_places, mark_places, strict=True)):
        marks_of_clips[clip_place].append(marks[mark_place])
    return marks_of_clips


def _times_of_clips(clips: Sequence[Clip]) -> NDArray[np.float64]:
    """Return the start and end of each clip in seconds, [N, 2]; refuse a clip without times."""
    spans = []
    for clip in clips:
        if clip.start_s is None or clip.end_s is None:
            raise ManifestError(
                f"clip {clip.clip_id!r} has no start_s and end_s, so nothing overlaps it", "start_s"
            )
        spans.append((clip.start_s, clip.end_s))
    return np.array(spans, dtype=np.float64).reshape(-1, 2)
