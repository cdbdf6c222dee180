"""`obygaze mobygaze`: evaluate modalities and experts of MObyGaze."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import click

from obygaze_features.options import Answer
from obygaze_features.signatures import Json, argument, command, option
from obygaze_studies.commands.output import Html, Replace, ReportOutput


@command()
def mobygaze(
    manifest: Annotated[Path, argument()],
    stores: Annotated[tuple[str, ...], argument(metavar="MODALITY=STORE[:BACKBONE]...", type=click.STRING)],
    *,
    task: Annotated[str, option("Task, or concept:NAME.")] = "en_s",
    models: Annotated[
        tuple[str, ...],
        option(
            "Model of vectors, or attention, over the frames of each modality that has them; repeatable.",
            name="model",
        ),
    ] = ("linear", "mlp"),
    experts: Annotated[
        tuple[Literal["merged", "each", "soft", "noisy"], ...],
        option("What is learnt of annotators' labels; repeatable."),
    ] = ("merged", "each", "soft"),
    bags: Annotated[
        bool,
        option(
            "Clips are bags of the stores' windows whose middles lie in them: models of vectors read the "
            "maximum over a bag, attention its windows (at most 32)."
        ),
    ] = False,
    explained_by: Annotated[
        bool,
        option(
            "Train and test each modality on the clips whose label a concept explains that it perceives, and "
            "join them by the largest score; --experts is not used."
        ),
    ] = False,
    seed: Annotated[int, option("Random seed.", type=click.IntRange(0))] = 0,
    out: Annotated[
        Path | None, option("Write the tables to this folder (CSV, JSON, Markdown, LaTeX).")
    ] = None,
    html: Html = None,
    force: Replace = False,
    json: Json = False,
) -> Answer:
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
      obygaze mobygaze windows.csv visual=stores/films:xclip speech=stores/words \\
            audio=stores/heard --explained-by
    """
    from obygaze_studies.mobygaze import tables

    output = ReportOutput(out, html, force=force, json=json)
    prepare = partial(
        tables.prepare_study,
        manifest,
        stores,
        task=task,
        models=models,
        rules=experts,
        bags=bags,
        explained_by=explained_by,
        seed=seed,
    )
    return output.run_study(prepare)
