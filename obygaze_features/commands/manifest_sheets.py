"""`obygaze manifest sheets`."""

import json
from pathlib import Path

import click

from obygaze_features.commands.manifest_output import PATH
from obygaze_features.screen import json_option, table


@click.command()
@click.argument("manifest", type=PATH)
@click.option(
    "--out",
    required=True,
    type=PATH,
    help="Folder to store the sheets in. They hold frames of the films, whose rights apply.",
)
@click.option(
    "--concept",
    "concepts",
    multiple=True,
    help="Draw a sheet of this concept only; may be repeated.  [default: every visual concept]",
)
@click.option(
    "--predictions",
    type=PATH,
    help="predictions.csv of a run: draw a sheet of a model's false alarms and one of its misses instead.",
)
@click.option("--model", help="With --predictions: the model, if the run has several.")
@click.option("--task", help="With --predictions: the task, such as 'hn_s>enhn_s', if the run has several.")
@click.option(
    "--n", type=click.IntRange(min=1), default=24, show_default=True, help="Number of clips per sheet."
)
@click.option("--force", is_flag=True, help="Replace earlier sheets.")
@json_option
def sheets(
    manifest: Path,
    out: Path,
    concepts: tuple[str, ...],
    predictions: Path | None,
    model: str | None,
    task: str | None,
    n: int,
    force: bool,
    as_json: bool,
) -> None:
    """Draw contact sheets of clips: one per concept, or one per kind of error.

    Each clip is shown by its middle frame, with a number; index.csv names the clips. Clips of a concept are
    taken from the films in turn; errors with the clearest first. Clips whose video is not on this machine are
    left out and counted. Frames of films are written to the sheets alone.

    \b
    Examples:
      obygaze manifest sheets films.csv --out sheets
      obygaze manifest sheets films.csv --concept Body --concept Look --out two
      obygaze manifest sheets films.csv --predictions run/predictions.csv \\
          --model mlp --out errors
    """
    from dataclasses import asdict

    from obygaze_features.extraction.sheets import concept_groups, error_groups, write_sheets
    from obygaze_features.manifest import read_manifest
    from obygaze_features.screen import progress_bar

    if predictions is not None and concepts:
        raise click.UsageError("--concept and --predictions are different sheets: ask for one at a time")
    alone = next((name for name, value in (("model", model), ("task", task)) if value), None)
    if predictions is None and alone:
        raise click.UsageError(f"--{alone} is for --predictions")
    clips = read_manifest(manifest)
    groups = (
        concept_groups(clips, concepts)
        if predictions is None
        else error_groups(clips, predictions, model, task)
    )
    with progress_bar("drawing", "sheet") as progress:
        drawn = write_sheets(clips, groups, out, n=n, force=force, progress=progress)
    if as_json:
        click.echo(json.dumps([asdict(one) for one in drawn], indent=2, ensure_ascii=False))
    else:
        rows = [(one.name, one.n_clips, one.n_with_video, one.n_drawn, one.file or "-") for one in drawn]
        click.echo(table(rows, ("sheet", "clips", "with video here", "drawn", "file"), right=range(1, 4)))
    for one in drawn:
        for problem in one.problems:
            click.echo(f"left out {problem}", err=True)
    click.echo(f"kept in {out}", err=True)
