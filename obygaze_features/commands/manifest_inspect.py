"""`obygaze manifest inspect | project | sheets`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import click

from obygaze_features import manifest as manifests
from obygaze_features.commands.manifest_file import NewManifest, folder_for, level_counts, write_imported
from obygaze_features.options import Answer, Number
from obygaze_features.screen import table
from obygaze_features.signatures import Force, argument, command, needed, option
from obygaze_features.text import counted, first_few

SHOWN_ROWS = 5
"""Number of clips, and of missing videos, that are listed."""

CLIPS_A_SHEET = 24
"""Largest number of clips on a contact sheet."""


@command()
def sheets(
    manifest: Annotated[Path, argument()],
    *,
    concepts: Annotated[
        tuple[str, ...],
        option(
            "Draw a sheet of this concept only; repeatable.  [default: every visual concept]",
            name="concept",
        ),
    ] = (),
    predictions: Annotated[
        Path | None,
        option(
            "predictions.csv of a run of `obygaze evaluate`: draw a sheet of a model's false "
            "alarms and a sheet of its misses instead."
        ),
    ] = None,
    model: Annotated[
        str | None, option("With --predictions: name of the model, if the run has several.")
    ] = None,
    task: Annotated[
        str | None,
        option("With --predictions: the task as TRAIN>TEST, such as 'hn_s>enhn_s', if the run has several."),
    ] = None,
    out: Annotated[
        Path,
        option(
            "Write the sheets to this folder. They show frames of the films, so that the films' "
            "rights apply to them."
        ),
    ],
    force: Annotated[bool, option("Replace earlier sheets.")] = False,
) -> Answer:
    """Draw contact sheets of clips: one per concept, or one per kind of error.

    A sheet shows up to 24 clips, each by its middle frame with a number; index.csv has the clip of each
    number. Clips of a concept are taken from the films in turn. Of errors, the clearest come first. Clips
    whose video is not on this machine are left out and counted. Frames of films are written only to the
    sheets.

    \b
    Examples:
      obygaze manifest sheets films.csv --out sheets
      obygaze manifest sheets films.csv --concept Body --concept Look --out two
      obygaze manifest sheets films.csv --predictions run/predictions.csv \\
          --model mlp --out errors
    """
    from obygaze_features.extraction.sheets import concept_groups, error_groups, write_sheets

    if predictions is not None and concepts:
        raise click.UsageError("--concept and --predictions are different sheets: ask for one at a time")
    if predictions is None and (model or task):
        raise click.UsageError("--model and --task go with --predictions")
    clips = manifests.read_manifest(manifest)
    if predictions is None:
        groups = concept_groups(clips, concepts)
    else:
        groups = error_groups(clips, predictions, model, task)
    drawn = write_sheets(clips, groups, out, n=CLIPS_A_SHEET, force=force)
    rows = [_row_of_sheet(sheet) for sheet in drawn]
    headers = ("sheet", "clips", "with video here", "drawn", "file")
    return Answer(drawn, table(rows, headers, right=range(1, 4)), [f"kept in {out}"])


def _row_of_sheet(sheet: Mapping[str, object]) -> list[object]:
    """Return the cells of a contact sheet in the printed table; "-" stands for 0, and for no file."""
    columns = ("name", "n_clips", "n_with_video", "n_drawn", "file")
    return [sheet[column] or "-" for column in columns]


@command()
def inspect(
    manifest: Annotated[Path, argument()],
) -> Answer:
    """Check a manifest; print what it contains and which of its videos are on this machine.

    \b
    Examples:
      obygaze manifest inspect films.csv
      obygaze manifest inspect films.csv --json
    """
    from obygaze_features.manifest.identity import check_identity

    clips = manifests.read_manifest(manifest)
    summary = _summarise(clips)
    lines = [*_summary_lines(summary), *_first_clips_lines(clips)]
    return Answer(
        document={"manifest": str(manifest), **summary},
        text="\n".join(lines),
        remarks=check_identity(clips, clips.root),  # such as films that may be one film under two names
    )


@command()
def project(
    annotations: Annotated[Path, argument()],
    *,
    onto: Annotated[Path | None, option("Manifest of the clips to label; or give --window.")] = None,
    window: Annotated[
        float | None,
        option(
            "Cut the films into windows of this length, in seconds, and label these; or give --onto.",
            type=Number(0, min_open=True),
        ),
    ] = None,
    per_annotator: Annotated[
        bool, option("Write a row for each annotator of a clip instead of one merged row.")
    ] = False,
    merge: Annotated[
        str | None,
        option(
            "How the labels of several annotators are merged into one. highest: the highest level, "
            "with the concepts given at that level. any: the highest level, with all concepts. "
            "both: the lowest level, with the concepts that all annotators gave. NAME: only the "
            "labels of annotator NAME.  [default: highest]",
            metavar="highest|any|both|NAME",
        ),
    ] = None,
    out: NewManifest,
    force: Force = False,
) -> Answer:
    """Project free annotations onto clips, or onto equal windows (Tores et al., CVPR 2024, App. 7.2).

    Give one of --onto and --window. An annotation counts for a clip if it covers at least a fifth of the
    clip. If several annotations count, the clip gets the highest of their levels, and the concepts given at
    that level, first for each annotator and then over annotators. A clip without an annotation gets the
    lowest level (EN), unless its annotators mark that level too, or judged drawn windows: then nobody
    answered for it. Clips that nobody answered for, and those of a movie that nobody annotated, get no level.

    How labels were given goes with them: a clip is in sight of a model's score (seen_score) if a label that
    it gets is, or, without an annotation, if any of its movie is. Names of machines and the definition stay.
    Other columns of the annotations are left out and named.

    \b
    Examples:
      obygaze manifest project segments.csv --onto scenes.csv --out labelled.csv
      obygaze manifest project segments.csv --window 46 --per-annotator \\
          --out windows.csv
    """
    if (onto is None) == (window is None):
        raise click.UsageError("say what to project onto: either --onto CLIPS or --window SECONDS")
    marks = manifests.read_manifest(annotations)
    folder_for(out, marks.codebook, force=force)
    if onto is not None:
        clips = manifests.read_manifest(onto)
    else:
        clips = manifests.windows(marks, needed(window, "window"))
    if per_annotator and merge:
        raise click.UsageError("--per-annotator keeps a row for each, and --merge makes one")

    is_merged_by_rule = merge in ("highest", "any", "both")
    annotator = "" if merge is None or is_merged_by_rule else merge  # the only one whose labels are wanted
    if annotator:
        marks = manifests.merge_annotators(marks, "expert", annotator)
    # To merge rows by a rule, or to name the annotator, each annotator needs a row first.
    needs_row_per_annotator = per_annotator or merge is not None
    result = manifests.project(marks, clips, per_annotator=needs_row_per_annotator)
    labelled = result.manifest
    if is_merged_by_rule:
        labelled = manifests.merge_annotators(labelled, merge)  # type: ignore[arg-type]  # one of its words

    n_replaced = sum(clip.level is not None for clip in clips)
    notices = _notices_on_projection(result, n_replaced, onto, annotator)
    return write_imported(manifests.Imported(labelled, tuple(notices)), out)


def _notices_on_projection(
    result: "manifests.Projection", n_replaced: int, clips_file: Path | None, only_annotator: str
) -> list[str]:
    """Return notices on replaced labels, movies without annotations, and what of annotations is left out.

    Parameters
    ----------
    result
        What `manifest.project` returned: the labelled clips, and which clips and movies got no label.
    n_replaced
        How many clips had labels before.
    clips_file
        The manifest of the clips; None if they are windows that were made now, which had no labels.
    only_annotator
        The only annotator whose labels are projected; empty if those of all are.
    """
    notices = []
    if n_replaced:
        notices.append(f"replaced the labels that {counted(n_replaced, 'clip')} of {clips_file} had")
    if result.unwatched:  # movies
        movies = ", ".join(result.unwatched)
        nobody_annotated = f"{only_annotator} did not annotate" if only_annotator else "nobody annotated"
        notices.append(f"{nobody_annotated} {movies}: no level for their clips")
    if result.unanswered:  # clips
        clips = counted(len(result.unanswered), "clip")
        notices.append(
            f"no level for {clips} ({first_few(result.unanswered, 3)}): the annotators, who mark the lowest "
            "level too, marked nothing there"
        )
    for annotator, n_clips in result.without_row.items():
        notices.append(
            f"{annotator}: no row for {counted(n_clips, 'clip')}: they mark the lowest level too, and marked "
            "nothing there"
        )
    if result.elsewhere:  # movies of the annotations that have no clips
        movies = ", ".join(result.elsewhere)
        notices.append(f"left out the annotations of {movies}: no clip of theirs to label")
    if result.columns_left_out:
        columns = ", ".join(result.columns_left_out)
        notices.append(f"columns of annotations that clips do not get: {columns}")
    return notices


def _summarise(manifest: "manifests.Manifest") -> dict[str, Any]:
    """Return fact -> value for a manifest: its numbers of clips, movies, levels, videos and the like.

    The values are plain, for the JSON document of the command.
    """
    from obygaze_features.video.file_facts import is_here

    paths = set[Path]()
    for clip in manifest:
        path = manifest.video_path(clip)
        if path is not None:
            paths.add(path)
    missing = sorted(str(path) for path in paths if not is_here(path))

    clips = manifest.clips_once  # each clip once, of those with a row for each annotator
    durations_s = [clip.duration_s for clip in clips if clip.duration_s is not None]

    codebook = manifest.codebook
    return {
        "clips": len(clips),
        "rows": len(manifest),
        "movies": len(manifest.movies),
        "levels": level_counts(manifest, "none"),
        "codebook": {"name": codebook.name, "version": codebook.version, "digest": codebook.digest()},
        "annotators": sorted({clip.annotator for clip in manifest if clip.annotator}),
        "extra_columns": list(manifest.clips[0].extras) if len(manifest) else [],
        "spans": {"clips": len(durations_s), "seconds": round(sum(durations_s), 3)},
        "videos": {
            "files": len(paths),
            "on_disk": len(paths) - len(missing),
            "missing": len(missing),
            "clips_without": sum(not clip.video for clip in clips),
        },
        "missing_videos": missing[:SHOWN_ROWS],
        "digest": manifest.digest(),
    }


def _summary_lines(summary: dict[str, Any]) -> list[str]:
    """Format the summary of a manifest (fact -> value) as a table, one fact per line."""
    codebook = summary["codebook"]
    facts = summary | {"codebook": f"{codebook['name']} {codebook['version']}"}
    rows = [[_as_words(name), _format_fact(value)] for name, value in facts.items()]
    return [table(rows)]


def _format_fact(value: str | int | list[str] | dict[str, int]) -> str:
    """Format the value of a fact: a text, a number, a list of texts, or numbers with their names."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return ", ".join(_number_of(number, _as_words(name)) for name, number in value.items())


def _number_of(number: float, name: str) -> str:
    """Return a number with its name, such as "3 clips" or, with the noun in the singular, "1 file"."""
    noun, _, other_words = name.partition(" ")
    if number == 1 and noun in {"clips", "files", "seconds"}:
        noun = noun.removesuffix("s")
    return f"{number:,} {noun} {other_words}".rstrip()


def _as_words(name: str) -> str:
    """Replace the underscores of a name by blanks."""
    return name.replace("_", " ")


def _first_clips_lines(manifest: "manifests.Manifest") -> list[str]:
    """Write the first clips of a manifest as a table, without the columns that are empty in all of them."""
    clips = manifest.clips[:SHOWN_ROWS]
    columns: dict[str, list[str]] = {}  # name of a field -> its cell for each clip
    for name in manifests.FIELDS:
        cells = [_format_cell(getattr(clip, name)) for clip in clips]
        if any(cells):
            columns[name] = cells

    lines = []
    if columns:
        rows = list(zip(*columns.values(), strict=True))
        lines += ["", table(rows, list(columns))]
    n_more = len(manifest) - len(clips)
    if n_more:
        lines.append(f"... and {n_more:,} more")
    return lines


def _format_cell(value: str | float | tuple[str, ...] | None) -> str:
    """Format a value of a clip: seconds with three decimals, concepts separated by semicolons."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ";".join(value)
    return f"{value:.3f}"
