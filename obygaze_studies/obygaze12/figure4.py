"""Reproduce Figure 4 of arXiv 2401.13296: annotations of a film, their projections, and the merge."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import DEFAULT_THRESHOLD, Clip, Manifest, project
from obygaze_features.text import counted
from obygaze_models.report import Block, Picture, Report, block
from obygaze_studies.audit_common.findings import drawn_by
from obygaze_studies.obygaze12.corpus import CAPTIONS, refuse_other_codebook
from obygaze_studies.obygaze12.import_annotations import CODEBOOK

N_LISTED = 40
"""Largest number of clips for which there is a table of the clips."""

SHADES = {"EN": "#deebf7", "HN": "#9ecae1", "NS": "#4292c6", "S": "#08519c"}
"""Level -> its colour; the higher the level, the darker."""

MERGED = "Merged"
"""Name of the timeline of the merged projections."""

Timelines = dict[str, tuple[Clip, ...]]
"""Name of a timeline -> its labelled spans, in order of time."""


def timelines(annotations: Manifest, clips: Manifest, movie: str, threshold: float) -> Timelines:
    """Make the timelines: each annotator's segments, their projection onto the clips, and the merge.

    A projection turns free segments into labels of given clips. The merge combines the projections of all
    annotators into one label for each clip.

    Parameters
    ----------
    annotations
        Free segments with annotators.
    clips
        The spans to label, with times.
    movie
        The film.
    threshold
        Share of a clip that a segment must cover.

    Raises
    ------
    ManifestError
        The film has no annotations or no clips, or one of them has no times.
    """
    segments_of_film = annotations.with_clips(clip for clip in annotations if clip.movie == movie)
    clips_of_film = clips.with_clips(clip for clip in clips if clip.movie == movie)
    for part, noun in ((segments_of_film, "annotations"), (clips_of_film, "clips")):
        if not len(part):
            raise ManifestError(f"movie {movie!r} has no {noun}; there are {', '.join(annotations.movies)}")

    by_annotator = project(segments_of_film, clips_of_film, threshold, per_annotator=True).manifest
    merged = project(segments_of_film, clips_of_film, threshold).manifest

    annotators = sorted({clip.annotator for clip in segments_of_film})
    annotations_of: Timelines = {}
    projections_of: Timelines = {}
    # Annotators are shown by numbers, without their names.
    for number, annotator in enumerate(annotators, start=1):
        annotations_of[f"Annotation {number}"] = _in_order_of_time(segments_of_film, annotator)
        projected = _with_unanswered(by_annotator, clips_of_film, annotator)
        projections_of[f"Projection {number}"] = _in_order_of_time(projected)

    return annotations_of | projections_of | {MERGED: _in_order_of_time(merged)}


def _with_unanswered(projected: Manifest, clips: Manifest, annotator: str) -> Manifest:
    """Return a projection with a row of one annotator for each clip.

    `projected` has only the clips that an annotator answered for. The others get a row without a level.
    """
    row_of_clip = {row.clip_id: row for row in projected if row.annotator == annotator}
    rows = []
    for clip in clips:
        unanswered = replace(clip, level=None, concepts=(), annotator=annotator)
        rows.append(row_of_clip.get(clip.clip_id, unanswered))
    return projected.with_clips(rows)


def _in_order_of_time(manifest: Manifest, annotator: str | None = None) -> tuple[Clip, ...]:
    """Return the clips of an annotator, or all clips if none is named, in order of time."""
    spans = [clip for clip in manifest if annotator is None or clip.annotator == annotator]
    return tuple(sorted(spans, key=lambda clip: clip.start_s or 0.0))


def figure4(
    annotations: Manifest,
    clips: Manifest,
    movie: str,
    *,
    threshold: float = DEFAULT_THRESHOLD,
    span: tuple[float, float] | None = None,
) -> Report:
    """Draw Figure 4 of arXiv 2401.13296: annotations, projections and merge of a film as timelines.

    Parameters
    ----------
    annotations : Manifest
        Free segments with annotators.
    clips : Manifest
        The clips, or `windows`, to project them onto.
    movie : str
        The film.
    threshold : float
        Share of a clip that a segment must cover.
    span : tuple of float, optional
        Part of the film to show, in seconds; by default all.

    Raises
    ------
    ManifestError
        The film has no annotations or no clips, one of them has no times, or no clip is in the span.
    ProtocolError
        The levels are not those of the paper.
    """
    refuse_other_codebook(annotations.codebook, "Figure 4")
    shown = timelines(annotations, clips, movie, threshold)
    if span is not None:
        shown = {name: _overlapping(spans, span) for name, spans in shown.items()}
        if not shown[MERGED]:
            raise ManifestError(f"movie {movie!r} has no clip between {span[0]:g} s and {span[1]:g} s")

    count_rows = [_count_row(name, spans) for name, spans in shown.items()]
    blocks = [_block_of_all_columns("Spans of each timeline", count_rows)]
    if len(shown[MERGED]) <= N_LISTED:
        blocks.append(_block_of_all_columns("Clips", _clip_rows(shown)))

    # The texts of captions.toml have these words as fields.
    words = {"title": _title_of(annotations, movie), "threshold": threshold}
    captions = CAPTIONS["figure4"]
    draw = drawn_by("draw_timelines", rows=_spans_in_minutes(shown), shades=SHADES)
    return Report(
        name="figure4",
        title=captions["title"].format(**words),
        notes=tuple(note.format(**words) for note in captions["notes"]),
        blocks=tuple(blocks),
        data=pd.DataFrame(_span_rows(shown)),
        record={
            "annotations_sha256": annotations.digest(),
            "clips_sha256": clips.digest(),
            "movie": movie,
            "threshold": threshold,
            "span_s": list(span) if span else None,
        },
        answers=(f"merged: {_count_levels(shown[MERGED])}",),
        pictures=(Picture("figure4", captions["drawn"].format(**words), draw),),
    )


def _block_of_all_columns(title: str, rows: Sequence[Mapping[str, Any]]) -> Block:
    """Make a table of all columns of some rows, under their own names; there must be a row."""
    return block(title, [(name, name, str) for name in rows[0]], rows)


def _title_of(annotations: Manifest, movie: str) -> str:
    """Return the title of a film in the annotations, or its id if they have none."""
    first_segment = next(clip for clip in annotations if clip.movie == movie)
    return first_segment.extras.get("movie_title") or movie


def _count_levels(spans: Sequence[Clip]) -> str:
    """Write how many clips have each level: `3 clips EN, 1 clip S`."""
    n_clips_of_level = _count_row("", spans)
    levels = CODEBOOK.level_names  # those of ObyGaze12
    return ", ".join(f"{counted(n_clips_of_level[level], 'clip')} {level}" for level in levels)


def _count_row(name: str, spans: Sequence[Clip]) -> dict[str, Any]:
    """Count the spans of a timeline, and those of each level: the row of the timeline in a table."""
    row: dict[str, Any] = {"timeline": name, "spans": len(spans)}
    for level in CODEBOOK.level_names:
        row[level] = sum(clip.level == level for clip in spans)
    return row


def _clip_rows(shown: Timelines) -> list[dict[str, str]]:
    """List the clips with their level in each projection and in the merge of the projections.

    All these timelines have the same clips in the same order.
    """
    names = [name for name in shown if name.startswith("Projection")]
    names.append(MERGED)
    clip_rows = []
    for index, clip in enumerate(shown[MERGED]):
        row = {"clip": clip.clip_id, "seconds": f"{clip.start_s:.0f} to {clip.end_s:.0f}"}
        for name in names:
            row[name] = shown[name][index].level or ""
        row["concepts"] = ", ".join(clip.concepts) or "-"
        clip_rows.append(row)
    return clip_rows


def _span_rows(shown: Timelines) -> list[dict[str, Any]]:
    """List the spans of all timelines as rows: the data of the figure."""
    span_rows = []
    for name, spans in shown.items():
        for clip in spans:
            row = {
                "timeline": name,
                "clip_id": clip.clip_id,
                "start_s": clip.start_s,
                "end_s": clip.end_s,
                "level": clip.level,
                "concepts": ";".join(clip.concepts),
                "annotator": clip.annotator,
            }
            span_rows.append(row)
    return span_rows


def _overlapping(clips: Sequence[Clip], span: tuple[float, float]) -> tuple[Clip, ...]:
    """Return the clips that overlap a part of the film, from its start to its end in seconds.

    All clips have times, as `timelines` refuses those without; the zeros only stand for the type's None.
    """
    start, end = span
    return tuple(clip for clip in clips if (clip.end_s or 0.0) > start and (clip.start_s or 0.0) < end)


def _spans_in_minutes(shown: Timelines) -> dict[str, list[tuple[float, float, str]]]:
    """Convert the labelled spans to minutes, for the figure: timeline -> start, end and level of each.

    Free segments of the lowest level are left out of the annotators' timelines: they only fill the gaps
    between what was marked.
    """
    lowest_level = CODEBOOK.level_names[0]
    spans_of_timeline: dict[str, list[tuple[float, float, str]]] = {}
    for name, clips in shown.items():
        spans_of_timeline[name] = []
        for clip in clips:
            if clip.level is None or clip.start_s is None or clip.end_s is None:
                continue
            only_fills_a_gap = clip.level == lowest_level and name.startswith("Annotation")
            if only_fills_a_gap:
                continue
            spans_of_timeline[name].append((clip.start_s / 60, clip.end_s / 60, clip.level))
    return spans_of_timeline
