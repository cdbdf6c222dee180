"""Reproduce Figure 4 of 000: free annotations of a film, their projections onto clips, and the merge."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import DEFAULT_THRESHOLD, Clip, Manifest, project
from obygaze_models.report import Picture, Report, block
from obygaze_studies.audit_common.findings import drawn_by
from obygaze_studies.obygaze12.corpus import CAPTIONS, refuse_other_codebook
from obygaze_studies.obygaze12.import_annotations import CODEBOOK

N_LISTED = 40
"""Clips listed one by one, if there are no more."""

SHADES = {"EN": "#deebf7", "HN": "#9ecae1", "NS": "#4292c6", "S": "#08519c"}
"""One shade per level, darker from level to level."""

Timelines = dict[str, tuple[Clip, ...]]
"""Name of a row of the figure -> its labelled spans, in order of time."""


def timelines(annotations: Manifest, clips: Manifest, movie: str, threshold: float) -> Timelines:
    """Make the rows of the figure: each annotator's segments, each one's projection, and the merge.

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
        The film has no annotations or no clips, or something has no times.
    """
    marks = annotations.with_clips(clip for clip in annotations if clip.movie == movie)
    clips_of_film = clips.with_clips(clip for clip in clips if clip.movie == movie)
    for part, noun in ((marks, "annotations"), (clips_of_film, "clips")):
        if not len(part):
            raise ManifestError(f"movie {movie!r} has no {noun}; there are {', '.join(annotations.movies)}")
    by_annotator = project(marks, clips_of_film, threshold, per_annotator=True).manifest
    merged = project(marks, clips_of_film, threshold).manifest
    names = sorted({clip.annotator for clip in marks})

    def rows(manifest: Manifest, annotator: str | None = None) -> tuple[Clip, ...]:
        clips_of_row = [clip for clip in manifest if annotator is None or clip.annotator == annotator]
        return tuple(sorted(clips_of_row, key=lambda clip: clip.start_s or 0.0))

    return {
        **{f"Annotation {k}": rows(marks, name) for k, name in enumerate(names, start=1)},
        **{f"Projection {k}": rows(by_annotator, name) for k, name in enumerate(names, start=1)},
        "Merged": rows(merged),
    }


def figure4(
    annotations: Manifest,
    clips: Manifest,
    movie: str,
    *,
    threshold: float = DEFAULT_THRESHOLD,
    span: tuple[float, float] | None = None,
) -> Report:
    """Draw Figure 4 of 000: annotations, projections and merge of a film as timelines.

    Parameters
    ----------
    annotations, clips : Manifest
        Free segments with annotators, and the clips (or `windows`) to project them onto.
    movie : str
    threshold : float
        Share of a clip that a segment must cover.
    span : tuple of float, optional
        Part of the film to show, in seconds; by default all.

    Raises
    ------
    ManifestError
        The film has no annotations or clips, something has no times, or nothing is in the span.
    ProtocolError
        The levels are not those of the paper.
    """
    refuse_other_codebook(annotations.codebook, "Figure 4")
    rows = timelines(annotations, clips, movie, threshold)
    if span is not None:
        rows = {name: _within(spans, span) for name, spans in rows.items()}
        if not rows["Merged"]:
            raise ManifestError(f"movie {movie!r} has no clip between {span[0]:g} s and {span[1]:g} s")
    counts = [_count_row(name, spans) for name, spans in rows.items()]
    blocks = [block("Spans of each timeline", [(name, name, str) for name in counts[0]], counts)]
    if len(rows["Merged"]) <= N_LISTED:
        listed = _clip_rows(rows)
        blocks.append(block("Clips", [(name, name, str) for name in listed[0]], listed))
    title = next(clip for clip in annotations if clip.movie == movie).extras.get("movie_title") or movie
    about = {"title": title, "threshold": threshold}
    captions = CAPTIONS["figure4"]
    draw = drawn_by("draw_timelines", rows=_spans(rows), shades=SHADES)
    merged = ", ".join(f"{counts[-1][level]} clips {level}" for level in CODEBOOK.level_names)
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
    """List the clips with their level in each projection and in the merge of them."""
    names = [*(name for name in rows if name.startswith("Projection")), "Merged"]
    listed = []
    for place, clip in enumerate(rows["Merged"]):
        row = {"clip": clip.clip_id, "seconds": f"{clip.start_s:.0f} to {clip.end_s:.0f}"}
        row |= {name: rows[name][place].level or "" for name in names}
        listed.append(row | {"concepts": ", ".join(clip.concepts) or "-"})
    return listed


def _span_rows(rows: Timelines) -> list[dict[str, Any]]:
    """List the spans of all timelines: the data of the figure."""
    return [
        {
            "timeline": name,
            "clip_id": clip.clip_id,
            "start_s": clip.start_s,
            "end_s": clip.end_s,
            "level": clip.level,
            "concepts": ";".join(clip.concepts),
            "annotator": clip.annotator,
        }
        for name, spans in rows.items()
        for clip in spans
    ]


def _within(clips: Sequence[Clip], span: tuple[float, float]) -> tuple[Clip, ...]:
    start, end = span
    return tuple(clip for clip in clips if (clip.end_s or 0.0) > start and (clip.start_s or 0.0) < end)


def _spans(rows: Timelines) -> dict[str, list[tuple[float, float, str]]]:
    """Give spans in minutes; free segments of the lowest level are what was left unmarked, and left out."""
    unmarked = CODEBOOK.level_names[0]
    shown: dict[str, list[tuple[float, float, str]]] = {}
    for name, clips in rows.items():
        shown[name] = []
        for clip in clips:
            if clip.level is None or clip.start_s is None or clip.end_s is None:
                continue
            if clip.level == unmarked and name.startswith("Annotation"):
                continue
            shown[name].append((clip.start_s / 60, clip.end_s / 60, clip.level))
    return shown
