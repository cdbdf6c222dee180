"""Reproduce Figure 4 of arXiv 2401.13296: annotations of a film, their projections, and the merge."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import DEFAULT_THRESHOLD, Clip, Manifest, project
from obygaze_features.text import counted
from obygaze_models.report import Picture, Report, block
from obygaze_studies.audit_common.findings import drawn_by
from obygaze_studies.obygaze12.corpus import CAPTIONS, refuse_other_codebook
from obygaze_studies.obygaze12.import_annotations import CODEBOOK

N_LISTED = 40
"""Largest number of clips for which there is a table of the clips."""

SHADES = {"EN": "#deebf7", "HN": "#9ecae1", "NS": "#4292c6", "S": "#08519c"}
"""Level -> its colour; the higher the level, the darker."""

Timelines = dict[str, tuple[Clip, ...]]
"""Name of a timeline -> its labelled spans, in order of time."""


def timelines(annotations: Manifest, clips: Manifest, movie: str, threshold: float) -> Timelines:
    """Make the timelines: each annotator's segments, their projection onto the clips, and the merge.

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
    names = sorted({clip.annotator for clip in segments_of_film})

    def timeline(manifest: Manifest, annotator: str | None = None) -> tuple[Clip, ...]:
        """Return the clips of an annotator, or all, in order of time."""
        spans = [clip for clip in manifest if annotator is None or clip.annotator == annotator]
        return tuple(sorted(spans, key=lambda clip: clip.start_s or 0.0))

    rows: Timelines = {}
    for number, name in enumerate(names, start=1):
        rows[f"Annotation {number}"] = timeline(segments_of_film, name)
    for number, name in enumerate(names, start=1):
        rows[f"Projection {number}"] = timeline(by_annotator, name)
    rows["Merged"] = timeline(merged)
    return rows


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
    rows = timelines(annotations, clips, movie, threshold)
    if span is not None:
        rows = {name: _overlapping(spans, span) for name, spans in rows.items()}
        if not rows["Merged"]:
            raise ManifestError(f"movie {movie!r} has no clip between {span[0]:g} s and {span[1]:g} s")
    counts = [_count_row(name, spans) for name, spans in rows.items()]
    blocks = [block("Spans of each timeline", [(name, name, str) for name in counts[0]], counts)]
    if len(rows["Merged"]) <= N_LISTED:
        clip_rows = _clip_rows(rows)
        blocks.append(block("Clips", [(name, name, str) for name in clip_rows[0]], clip_rows))
    segments_of_film = [clip for clip in annotations if clip.movie == movie]
    title = segments_of_film[0].extras.get("movie_title") or movie
    about = {"title": title, "threshold": threshold}
    captions = CAPTIONS["figure4"]
    draw = drawn_by("draw_timelines", rows=_spans_in_minutes(rows), shades=SHADES)
    merged = ", ".join(f"{counted(counts[-1][level], 'clip')} {level}" for level in CODEBOOK.level_names)
    return Report(
        name="figure4",
        title=captions["title"].format(**about),
        notes=tuple(note.format(**about) for note in captions["notes"]),
        blocks=tuple(blocks),
        data=pd.DataFrame(_span_rows(rows)),
        record={
            "annotations_sha256": annotations.digest(),
            "clips_sha256": clips.digest(),
            "movie": movie,
            "threshold": threshold,
            "span_s": list(span) if span else None,
        },
        answers=(f"merged: {merged}",),
        pictures=(Picture("figure4", captions["drawn"].format(**about), draw),),
    )


def _count_row(name: str, spans: Sequence[Clip]) -> dict[str, Any]:
    """Count the spans of a timeline, and those of each level."""
    row: dict[str, Any] = {"timeline": name, "spans": len(spans)}
    for level in CODEBOOK.level_names:
        row[level] = sum(clip.level == level for clip in spans)
    return row


def _clip_rows(rows: Timelines) -> list[dict[str, str]]:
    """List the clips with their level in each projection and in the merge of the projections."""
    names = [name for name in rows if name.startswith("Projection")]
    names.append("Merged")
    clip_rows = []
    for index, clip in enumerate(rows["Merged"]):
        row = {"clip": clip.clip_id, "seconds": f"{clip.start_s:.0f} to {clip.end_s:.0f}"}
        for name in names:
            row[name] = rows[name][index].level or ""
        row["concepts"] = ", ".join(clip.concepts) or "-"
        clip_rows.append(row)
    return clip_rows


def _span_rows(rows: Timelines) -> list[dict[str, Any]]:
    """List the spans of all timelines as rows: the data of the figure."""
    span_rows = []
    for name, spans in rows.items():
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
    """Return the clips that overlap a part of the film, from its start to its end in seconds."""
    start, end = span
    return tuple(clip for clip in clips if (clip.end_s or 0.0) > start and (clip.start_s or 0.0) < end)


def _spans_in_minutes(rows: Timelines) -> dict[str, list[tuple[float, float, str]]]:
    """Convert the spans to minutes: timeline -> start, end and level of each.

    Free segments of the lowest level are left out of the annotators' timelines: they only fill the gaps
    between what was marked.
    """
    unmarked = CODEBOOK.level_names[0]
    spans_of_movie: dict[str, list[tuple[float, float, str]]] = {}
    for name, clips in rows.items():
        spans_of_movie[name] = []
        for clip in clips:
            if clip.level is None or clip.start_s is None or clip.end_s is None:
                continue
            if clip.level == unmarked and name.startswith("Annotation"):
                continue
            spans_of_movie[name].append((clip.start_s / 60, clip.end_s / 60, clip.level))
    return spans_of_movie
