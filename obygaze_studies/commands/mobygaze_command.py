"""`obygaze mobygaze`: evaluate modalities and experts of MObyGaze from stores."""

from pathlib import Path
from typing import Any

import click

from obygaze_features.options import PATH
from obygaze_features.screen import progress_bar
from obygaze_studies.commands.output import ReportOutput, report_output


@click.command()
@click.argument("manifest", type=PATH)
@click.argument("stores", nargs=-1, required=True, metavar="MODALITY=STORE[:BACKBONE]...")
@click.option("--task", default="", show_default=False, help="Task, or concept:NAME.  [default: en_s]")
@click.option(
    "--model",
    "models",
    multiple=True,
    default=("linear", "mlp"),
    help="Model of vectors, or attention, over the frames of each modality that has them; repeatable.",
)
@click.option(
    "--experts",
    "rules",
    type=click.Choice(["merged", "each", "soft"]),
    multiple=True,
    default=("merged", "each", "soft"),
    help="What is learnt of annotators' labels; repeatable.",
)
@click.option(
    "--bags",
    is_flag=True,
    help="Clips are bags of the stores' windows whose middles lie in them: models of vectors read the "
    "maximum over a bag, attention its windows (at most 32).",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Random seed.")
@report_output("Write the tables to this folder (CSV, JSON, Markdown, LaTeX).", beside=False)
def mobygaze(manifest: Path, stores: tuple[str, ...], task: str, output: ReportOutput, **how: Any) -> None:
    """Print MObyGaze's tables: each modality and all of them, labels of each expert, merged and shared.

    MANIFEST has a clip once for each annotator: windows or segments. A store is given for every modality, by
    any name: visual, speech, audio. AUC and AUC-PR are means over films left out, beside what the other
    expert says of the same clips.

    \b
    Examples:
      obygaze manifest project segments.csv --window 30 --per-annotator \\
          --out windows.csv
      obygaze mobygaze windows.csv visual=stores/films:xclip \\
          audio=stores/films:sound speech=stores/words
      obygaze mobygaze windows.csv audio=stores/heard --task concept:Speech
      obygaze mobygaze segments.csv visual=stores/windows --bags --model attention
    """
    from obygaze_models.commands import read_named
    from obygaze_studies.mobygaze.tables import mobygaze_report

    output.check()
    clips, named = read_named(manifest, stores)
    with progress_bar("training", "model") as progress:
        report = mobygaze_report(clips, named, task=task or "en_s", progress=progress, **how)
    output.finish(report)
