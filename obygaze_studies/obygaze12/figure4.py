"""Reproduce Figure 4 of 000: free annotations of a film, their projections onto clips, and the merge."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, project
from obygaze_models.report import Block, Column, Picture, Report, block
from obygaze_studies.figure import GREY, WIDTH, save
from obygaze_studies.obygaze12.corpus import CODEBOOK, refuse_other_codebook
from obygaze_studies.obygaze12.figure2 import SHADES

N_LISTED = 40
"""Clips listed one by one, if there are no more."""


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


def figure4_report(
    annotations: Manifest,
    clips: Manifest,
    movie: str,
    threshold: float,
    span: tuple[float, float] | None = None,
) -> Report:
    """Draw a film's annotations, projections and merge as timelines (000, App. 7.2, Figure 4).

    Parameters
    ----------
    annotations, clips, movie, threshold
        As `timelines` takes them.
    span
        Part of the film to show, in seconds; by default all.

    Raises
    ------
    ManifestError
        As `timelines` raises, or nothing is in the span.
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
    columns: list[Column] = [(name, name, str) for name in counts[0]]
    blocks = [block("Spans of each timeline", columns, counts)]
    if len(rows["Merged"]) <= N_LISTED:
        blocks.append(_clip_block(rows))
    first = next(clip for clip in annotations if clip.movie == movie)
    title = first.extras.get("movie_title") or movie
    caption = (
        f"{title}: free annotations, their projections onto clips (dashed) by a smallest overlap of "
        f"{threshold:.0%}, and the merge, which keeps the highest level"
    )
    return Report(
        name="figure4",
        title=f"Figure 4 of 000: annotations, projections and merge of {title}",
        notes=(
            f"a segment counts for a clip if it covers {threshold:.0%} of it; the highest level is kept",
            "the merge keeps the highest level of the projections and unites the concepts given at it",
        ),
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
        pictures=(Picture("figure4", caption, partial(draw_figure4, rows)),),
    )


def _within(clips: Sequence[Clip], span: tuple[float, float]) -> tuple[Clip, ...]:
    start, end = span
    return tuple(clip for clip in clips if (clip.end_s or 0.0) > start and (clip.start_s or 0.0) < end)


def _clip_block(rows: Timelines) -> Block:
    projections = {name: spans for name, spans in rows.items() if name.startswith("Projection")}
    cells = tuple(
        (
            clip.clip_id,
            f"{clip.start_s:.0f} to {clip.end_s:.0f}",
            *(spans[index].level or "" for spans in projections.values()),
            clip.level or "",
            ", ".join(clip.concepts) or "-",
        )
        for index, clip in enumerate(rows["Merged"])
    )
    headers = ("clip", "seconds", *projections, "Merged", "concepts")
    return Block("Clips", headers, cells)


def draw_figure4(rows: Timelines, path: Path) -> None:
    """Draw the timelines one below the other, on one axis of minutes."""
    ends = {second for clip in rows["Merged"] for second in (clip.start_s, clip.end_s) if second is not None}
    edges = [second / 60 for second in sorted(ends)]
    free = [name.startswith("Annotation") for name in rows]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for index, spans in enumerate(rows.values()):
            _bars(axes, spans, index, lowest=not free[index])
        axes.vlines(edges, -0.5, len(rows) - 0.5, colors=GREY, linestyles="dashed", linewidth=0.4, zorder=0)
        for line in (sum(free) - 0.5, len(rows) - 1.5):
            axes.axhline(line, color="black", linewidth=0.7)
        axes.set_yticks(range(len(rows)), list(rows))
        axes.set(xlim=(edges[0], edges[-1]), ylim=(len(rows) - 0.5, -0.5), xlabel="minutes")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        shades = [Patch(facecolor=shade, edgecolor=GREY, label=level) for level, shade in SHADES.items()]
        figure.legend(handles=shades, loc="outside upper center", ncols=len(SHADES))

    save(path, (WIDTH, 0.9 + 0.42 * len(rows)), draw)


def _bars(axes: Axes, spans: Sequence[Clip], index: int, *, lowest: bool) -> None:
    """Draw a row's spans; free segments of the lowest level are what was left unmarked, and not drawn."""
    for level, shade in SHADES.items():
        if level == CODEBOOK.level_names[0] and not lowest:
            continue
        intervals = [
            (clip.start_s / 60, (clip.end_s - clip.start_s) / 60)
            for clip in spans
            if clip.level == level and clip.start_s is not None and clip.end_s is not None
        ]
        axes.broken_barh(intervals, (index - 0.32, 0.64), facecolors=shade, edgecolors=GREY, linewidth=0.3)
