"""`obygaze manifest inspect | project | sheets`."""

from pathlib import Path
from typing import Any

import click

from obygaze_features import manifest as manifests
from obygaze_features.commands.manifest_file import folder_for, level_counts, write_imported
from obygaze_features.manifest.spans.names import of_one_film
from obygaze_features.options import Answer, Output, declared
from obygaze_features.screen import table
from obygaze_features.templates import filled

SHOWN_ROWS, CLIPS_A_SHEET = 5, 24


@declared(__package__, "manifest sheets")
def sheets(
    manifest: Path,
    concepts: tuple[str, ...],
    predictions: Path | None,
    model: str | None,
    task: str | None,
    output: Output,
) -> Answer:
    """Draw contact sheets of clips: one per concept, or one per kind of error.

    Each of up to 24 clips is shown by its middle frame, with a number; index.csv names the clips. Clips of a
    concept are taken from the films in turn; errors with the clearest first. Clips whose video is not on this
    machine are left out and counted. Frames of films are written to the sheets alone.

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
    groups = (
        concept_groups(clips, concepts)
        if predictions is None
        else error_groups(clips, predictions, model, task)
    )
    drawn = write_sheets(clips, groups, output.path, n=CLIPS_A_SHEET, force=output.force)
    columns = ("name", "n_clips", "n_with_video", "n_drawn", "file")
    rows = [[sheet[column] or "-" for column in columns] for sheet in drawn]
    headers = ("sheet", "clips", "with video here", "drawn", "file")
    return Answer(drawn, table(rows, headers, right=range(1, 4)), [f"kept in {output.path}"])


@declared(__package__, "manifest inspect")
def inspect(manifest: Path) -> Answer:
    """Check a manifest; show its content and which videos are on this machine.

    \b
    Examples:
      obygaze manifest inspect films.csv
      obygaze manifest inspect films.csv --json
    """
    clips = manifests.read_manifest(manifest)
    summary = _summary(clips)
    values = {"summary": summary, "first": clips.clips[:SHOWN_ROWS], "columns": manifests.FIELDS, "zip": zip}
    text = filled(__package__, "inspect.txt.jinja", values).rstrip()
    return Answer({"manifest": str(manifest), **summary}, text, of_one_film(clips.movies))


@declared(__package__, "manifest project")
def project(
    annotations: Path,
    onto: Path | None,
    window: float | None,
    per_annotator: bool,
    merge: str | None,
    output: Output,
) -> Answer:
    """Project free annotations onto clips, or onto equal windows (Tores et al., CVPR 2024, App. 7.2).

    An annotation counts for a clip if it covers a fifth of it; the highest level wins, concepts given at that
    level are united, first for each annotator and then over annotators. A clip without annotations is
    at the lowest level (EN); clips of a movie without any annotation stay without a level.

    \b
    Examples:
      obygaze manifest project segments.csv --onto scenes.csv --out labelled.csv
      obygaze manifest project segments.csv --window 46 --per-annotator \\
          --out windows.csv
    """
    if (onto is None) == (window is None):
        raise click.UsageError("say what to project onto: either --onto CLIPS or --window SECONDS")
    marks = manifests.read_manifest(annotations)
    folder_for(output, marks.codebook)
    clips = manifests.read_manifest(onto) if onto is not None else manifests.windows(marks, window or 0.0)
    if per_annotator and merge:
        raise click.UsageError("--per-annotator keeps a row for each, and --merge makes one")
    result = manifests.project(marks, clips, per_annotator=per_annotator or merge is not None)
    labelled = result.manifest
    if merge is not None:
        how = merge if merge in ("highest", "any", "both") else "expert"
        labelled = manifests.merge_annotators(labelled, how, merge)  # type: ignore[arg-type]  # one of its words
    replaced = sum(clip.level is not None for clip in clips)
    unwatched, elsewhere = ", ".join(result.unwatched), ", ".join(result.elsewhere)
    notices = {
        f"replaced the labels that {replaced:,} clips of {onto} had": replaced,
        f"nobody annotated {unwatched}: no level for their clips": unwatched,
        f"left out the annotations of {elsewhere}: no clip of theirs to label": elsewhere,
    }
    told = tuple(notice for notice, holds in notices.items() if holds)
    return write_imported(manifests.Imported(labelled, told), output)


def _summary(manifest: "manifests.Manifest") -> dict[str, Any]:
    from obygaze_features.video.file_facts import is_here

    book = manifest.codebook
    paths = {path for clip in manifest if (path := manifest.video_path(clip)) is not None}
    missing = sorted(str(path) for path in paths if not is_here(path))
    spans = [clip.duration_s for clip in manifest if clip.duration_s is not None]
    return {
        "clips": len(manifest),
        "movies": len(manifest.movies),
        "levels": level_counts(manifest, "none"),
        "codebook": {"name": book.name, "version": book.version, "digest": book.digest()},
        "annotators": sorted({clip.annotator for clip in manifest if clip.annotator}),
        "extra_columns": list(manifest.clips[0].extras) if len(manifest) else [],
        "spans": {"clips": len(spans), "seconds": round(sum(spans), 3)},
        "videos": {
            "files": len(paths),
            "on_disk": len(paths) - len(missing),
            "missing": len(missing),
            "clips_without": sum(not clip.video for clip in manifest),
        },
        "missing_videos": missing[:SHOWN_ROWS],
        "digest": manifest.digest(),
    }
