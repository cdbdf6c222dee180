"""`obygaze paper`: reproduce the tables and figures of Tores et al."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from obygaze_studies.commands.output import ReportOutput

if TYPE_CHECKING:
    from obygaze_models.report import Report

TITLE = "Tores et al., CVPR 2024, reproduced"


def figure2(_name: str, *, manifest: Path, output: ReportOutput) -> None:
    """Reproduce Figure 2 and keep it."""
    from obygaze_models.commands import read_inputs
    from obygaze_studies.obygaze12 import paper

    output.check()
    clips, _ = read_inputs(manifest, [])
    _write(paper.figure2(clips), output)


def figure4(
    _name: str,
    *,
    segments: Path,
    movie: str,
    onto: Path | None,
    window: float | None,
    span: tuple[float, float] | None,
    output: ReportOutput,
) -> None:
    """Draw Figure 4 and keep it."""
    from obygaze_features.manifest import read_manifest
    from obygaze_studies.obygaze12 import paper
    from obygaze_studies.obygaze12.statistics import clips_onto

    output.check()
    marks = read_manifest(segments)
    clips, _ = clips_onto(marks, onto, window)
    _write(paper.figure4(marks, clips, movie, span=span), output)


def _write(report: "Report", output: ReportOutput) -> None:
    from obygaze_models.report import new_folder

    with new_folder(output.path, force=output.force) as folder:
        output.made(report, folder=folder)
    _finish([report], output)


def part(name: str, *, manifest: Path, stores: Sequence[Path], output: ReportOutput, **rest: Any) -> None:
    """Reproduce a part of the paper, or all, from stores, and keep it."""
    from obygaze_features.io import refuse_existing, write_whole
    from obygaze_features.manifest import LabelPolicy
    from obygaze_features.screen import progress_bar
    from obygaze_models.commands import read_inputs, under_policy
    from obygaze_studies.obygaze12 import paper
    from obygaze_studies.obygaze12.corpus import refuse_other_codebook
    from obygaze_studies.unfinished import TRAINED

    policy = LabelPolicy(rest.pop("policy"))
    settings: dict[str, Any] = {"policy": policy, "depth": None, "choose_c": False} | rest
    protocol = settings["protocol"]
    own = "--depth" if settings["depth"] is not None else "--choose-c" if settings["choose_c"] else ""
    if own and protocol == "strict":
        raise click.UsageError(f"{own} is for --protocol paper: strict chooses by inner folds of movies")
    refuse_existing(output.html, force=output.force)
    clips, opened = read_inputs(manifest, stores)
    refuse_other_codebook(clips.codebook, "this table or figure")
    if protocol != "paper":
        for line in under_policy(clips, policy)[1]:
            click.echo(line, err=True)
    redo: Callable[..., paper.Redone] = getattr(paper, {"all": "all_"}.get(name, name))
    inputs = paper.inputs(name, clips, opened) | settings
    with output.unfinished(inputs) as folder, progress_bar("training", "model") as progress:
        made, kept = partial(output.made, folder=folder), folder / TRAINED  # type: ignore[operator]
        redone = redo(clips, opened, **settings, progress=progress, kept=kept, made=made)
        paper.write_tables(redone, folder)  # type: ignore[arg-type]
        if name == "all":
            page = paper.index(redone, clips, opened, policy=policy, seed=settings["seed"])
            write_whole(folder / "index.md", page)  # type: ignore[operator]
    _finish(redone.reports, output, redone.notes)
    if name == "all" and not output.as_json:
        click.echo(output.path / "index.md")


def _finish(reports: "Sequence[Report]", output: ReportOutput, notes: Sequence[str] = ()) -> None:
    """Write the page and print the JSON documents, if asked for, then notes."""
    import json

    from obygaze_models.commands import write_page
    from obygaze_models.report import document

    write_page(reports, output.html, TITLE if len(reports) > 1 else "", force=output.force)
    if output.as_json:
        documents = [{"name": report.name, **document(report)} for report in reports]
        click.echo(json.dumps(documents, indent=2, ensure_ascii=False, allow_nan=False))
    for note in (*notes, f"kept in {output.out}"):
        click.echo(note, err=True)
