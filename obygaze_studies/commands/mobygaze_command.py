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
    task: Annotated[str, option("Task to evaluate, or concept:NAME.")] = "en_s",
    models: Annotated[
        tuple[str, ...],
        option(
            "Model to evaluate: one that reads a vector per clip, or attention, which reads the "
            "frames of each modality that has frames; repeatable.",
            name="model",
        ),
    ] = ("linear", "mlp"),
    experts: Annotated[
        tuple[Literal["merged", "each", "soft", "noisy"], ...],
        option("How to train on the labels of several annotators, as in `obygaze evaluate`; repeatable."),
    ] = ("merged", "each", "soft"),
    bags: Annotated[
        bool,
        option(
            "Treat a clip as a bag of the stores' windows whose middles lie in it. Models of "
            "vectors read the maximum over the bag; attention reads its windows (at most 32)."
        ),
    ] = False,
    explained_by: Annotated[
        bool,
        option(
            "Train and test each modality only on clips whose label is explained by a concept that "
            "the modality perceives, and combine the modalities by the largest score; --experts is "
            "not used."
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
    """Print MObyGaze's tables: each modality and all together, by how experts' labels are used.

    MANIFEST has a row for each annotator of a clip; clips are windows or segments. Give a store for each
    modality; its name is free, such as visual, speech or audio. AUC and AUC-PR are means over films that
    were left out of training. Beside them are those of the other expert's labels of the same clips.

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
