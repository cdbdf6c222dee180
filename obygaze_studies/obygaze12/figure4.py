"""Reproduce Figure 4 of 000: free annotations of a film, their projections onto clips, and the merge."""

from collections.abc import Sequence

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
    own = clips.with_clips(clip for clip in clips if clip.movie == movie)
    for part, what in ((marks, "annotations"), (own, "clips")):
        if not len(part):
            raise ManifestError(f"movie {movie!r} has no {what}; there are {', '.join(annotations.movies)}")
    each = project(marks, own, threshold, per_annotator=True).manifest
    merged = project(marks, own, threshold).manifest
    names = sorted({clip.annotator for clip in marks})

    def rows(manifest: Manifest, annotator: str | None = None) -> tuple[Clip, ...]:
        kept = [clip for clip in manifest if annotator is None or clip.annotator == annotator]
        return tuple(sorted(kept, key=lambda clip: clip.start_s or 0.0))

    return {
        **{f"Annotation {k}": rows(marks, name) for k, name in enumerate(names, start=1)},
        **{f"Projection {k}": rows(each, name) for k, name in enumerate(names, start=1)},
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
    counts = [
        {"timeline": name, "spans": len(spans)}
        | {level: sum(clip.level == level for clip in spans) for level in CODEBOOK.level_names}
        for name, spans in rows.items()
    ]
    blocks = [block("Spans of each timeline", [(name, name, str) for name in counts[0]], counts)]
    if len(rows["Merged"]) <= N_LISTED:
        projections = [name for name in rows if name.startswith("Projection")]
        listed = [
            {"clip": clip.clip_id, "seconds": f"{clip.start_s:.0f} to {clip.end_s:.0f}"}
            | {name: rows[name][place].level or "" for name in (*projections, "Merged")}
            | {"concepts": ", ".join(clip.concepts) or "-"}
            for place, clip in enumerate(rows["Merged"])
        ]
        blocks.append(block("Clips", [(name, name, str) for name in listed[0]], listed))
    title = next(clip for clip in annotations if clip.movie == movie).extras.get("movie_title") or movie
    told, said = CAPTIONS["figure4"], {"title": title, "threshold": threshold}
    draw = drawn_by("draw_timelines", rows=_spans(rows), shades=SHADES)
    return Report(
        name="figure4",
        title=told["title"].format(**said),
        notes=tuple(note.format(**said) for note in told["notes"]),
        blocks=tuple(blocks),
        data=pd.DataFrame(
            [
                {"timeline": name}
                | {column: getattr(clip, column) for column in ("clip_id", "start_s", "end_s", "level")}
                | {"concepts": ";".join(clip.concepts), "annotator": clip.annotator}
                for name, spans in rows.items()
                for clip in spans
            ]
        ),
        record={
            "annotations_sha256": annotations.digest(),
            "clips_sha256": clips.digest(),
            "movie": movie,
            "threshold": threshold,
            "span_s": list(span) if span else None,
        },
        answers=(
            "merged: " + ", ".join(f"{counts[-1][level]} clips {level}" for level in CODEBOOK.level_names),
        ),
        pictures=(Picture("figure4", told["drawn"].format(**said), draw),),
    )


def _within(clips: Sequence[Clip], span: tuple[float, float]) -> tuple[Clip, ...]:
    start, end = span
    return tuple(clip for clip in clips if (clip.end_s or 0.0) > start and (clip.start_s or 0.0) < end)


def _spans(rows: Timelines) -> dict[str, list[tuple[float, float, str]]]:
    """Give spans in minutes; free segments of the lowest level are what was left unmarked, and left out."""
    unmarked = CODEBOOK.level_names[0]
    return {
        name: [
            (clip.start_s / 60, clip.end_s / 60, clip.level)
            for clip in spans
            if clip.level is not None and clip.start_s is not None and clip.end_s is not None
            if clip.level != unmarked or not name.startswith("Annotation")
        ]
        for name, spans in rows.items()
    }
