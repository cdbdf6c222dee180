"""`obygaze paper`: reproduce the tables and figures of Tores et al."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from obygaze_features.options import PATH
from obygaze_studies.commands.corpus_commands import clips_onto
from obygaze_studies.commands.declared import declared
from obygaze_studies.commands.output import ReportOutput, report_output

if TYPE_CHECKING:
    from obygaze_models.report import Report

TITLE = "Tores et al., CVPR 2024, reproduced"
OUTPUT = report_output(
    "Folder to write all results into; only a part of them is printed.", required=True, beside=False
)


def _command(*names: str, protocol: str = "strict") -> Callable[[Callable[[], None]], click.Command]:
    """Make a command of a function's name and docstring, which reproduces a part of the paper from stores."""

    def declare(part: Callable[[], None]) -> click.Command:
        name = part.__name__

        @click.command(name.rstrip("_"), help=part.__doc__)
        @declared(*names, "paper", f"paper {protocol}", "paper more")
        @OUTPUT
        def run(**options: Any) -> None:
            _run(name, **options)

        return run

    return declare


@_command(protocol="both")
def all_() -> None:
    """Reproduce all tables and figures of section 4 and its appendices from STOREs, with an index.md.

    The labels of MANIFEST must have the levels, visual concepts and tasks of ObyGaze12. The papers' printed
    numbers are shown beside ours if its clips are ObyGaze12's. The same command gives the same bytes, with
    any number of threads. Each table is written to OUT.partial when it is made; if the command is stopped,
    the same command resumes there.

    \b
    Examples:
      obygaze paper all obygaze12.csv stores/obygaze12-xclip --out paper
      obygaze paper all films.csv stores/films --protocol strict --policy raw \\
          --out paper
    """


@_command()
def table2() -> None:
    """Reproduce Table 2 from STOREs: models, bottlenecks and baselines, beside the published numbers.

    With the LSMDC store, also Table 5. Writes CSV, JSON, Markdown, LaTeX and the underlying predictions.

    \b
    Examples:
      obygaze paper table2 obygaze12.csv stores/obygaze12-xclip --out table2
      obygaze paper table2 obygaze12.csv stores/xclip stores/vivit \\
          --protocol paper --out table2-paper
    """


@_command()
def table4() -> None:
    """Reproduce Table 4 from STOREs: 90 pairs of films (paper) or each film left out once (strict).

    \b
    Examples:
      obygaze paper table4 obygaze12.csv stores/obygaze12-xclip --out table4
      obygaze paper table4 obygaze12.csv stores/obygaze12-xclip --protocol both \\
          --out table4
    """


@_command("paper figure3")
def figure3() -> None:
    """Reproduce Figure 3 from STOREs: detection of each concept against clips without it.

    \b
    Examples:
      obygaze paper figure3 obygaze12.csv stores/obygaze12-xclip --out figure3
      obygaze paper figure3 obygaze12.csv stores/obygaze12-xclip \\
          --protocol paper --out figure3-paper
      obygaze paper figure3 obygaze12.csv stores/obygaze12-xclip \\
          --protocol paper --choose-c --out figure3-chosen
    """


@_command("paper figure5")
def figure5() -> None:
    """Reproduce Figure 5 from STOREs: the decision tree on concepts, drawn to four levels.

    \b
    Examples:
      obygaze paper figure5 obygaze12.csv stores/obygaze12-xclip --out figure5
      obygaze paper figure5 obygaze12.csv stores/obygaze12-xclip \\
          --protocol paper --out figure5-paper
      obygaze paper figure5 obygaze12.csv stores/obygaze12-xclip \\
          --protocol paper --depth 10 --out figure5-depth10
    """


@_command()
def figure6() -> None:
    """Reproduce Figure 6 from STOREs: error analysis of the MLP by concept and level.

    \b
    Examples:
      obygaze paper figure6 obygaze12.csv stores/obygaze12-xclip --out figure6
      obygaze paper figure6 obygaze12.csv stores/obygaze12-xclip \\
          --protocol both --out figure6
    """


@click.command()
@click.argument("manifest", type=PATH)
@OUTPUT
def figure2(manifest: Path, output: ReportOutput) -> None:
    """Reproduce Figure 2 and section 3.4 from MANIFEST: levels and concepts, under each label policy.

    It needs no store; `obygaze manifest stats` prints the same numbers and more.

    \b
    Examples:
      obygaze paper figure2 obygaze12.csv --out figure2 --html figure2.html
    """
    from obygaze_models.commands import read_inputs
    from obygaze_studies.obygaze12 import paper

    output.check()
    clips, _ = read_inputs(manifest, [])
    _write(paper.figure2(clips), output)


@click.command()
@declared("paper figure4")
@OUTPUT
def figure4(
    segments: Path,
    movie: str,
    onto: Path | None,
    window: float | None,
    span: tuple[float, float] | None,
    output: ReportOutput,
) -> None:
    """Draw Figure 4 of arXiv 2401.13296: how the annotations of a film become labels of clips.

    One timeline for each annotator's free segments, one for each projection onto clips, one for the merge.
    SEGMENTS is a manifest of free annotations, such as MObyGaze's; those of ObyGaze12 are not public.

    \b
    Examples:
      obygaze paper figure4 segments.csv --movie tt0467406 --out figure4
      obygaze paper figure4 segments.csv --movie tt0467406 --onto scenes.csv \\
          --span 600 1200 --out figure4-part
    """
    from obygaze_features.manifest import read_manifest
    from obygaze_studies.obygaze12 import paper

    output.check()
    marks = read_manifest(segments)
    clips, _ = clips_onto(marks, onto, window)
    _write(paper.figure4(marks, clips, movie, span=span), output)


def _write(report: "Report", output: ReportOutput) -> None:
    from obygaze_models.report import new_folder

    with new_folder(output.path, force=output.force) as folder:
        output.made(report, folder=folder)
    _finish([report], output)


def _run(name: str, *, manifest: Path, stores: Sequence[Path], output: ReportOutput, **rest: Any) -> None:
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
    redo: Callable[..., paper.Redone] = getattr(paper, name)
    inputs = paper.inputs(name, clips, opened) | settings
    with output.unfinished(inputs) as folder, progress_bar("training", "model") as progress:
        made, kept = partial(output.made, folder=folder), folder / TRAINED  # type: ignore[operator]
        redone = redo(clips, opened, **settings, progress=progress, kept=kept, made=made)
        paper.write_tables(redone, folder)  # type: ignore[arg-type]
        if name == "all_":
            page = paper.index(redone, clips, opened, policy=policy, seed=settings["seed"])
            write_whole(folder / "index.md", page)  # type: ignore[operator]
    _finish(redone.reports, output, redone.notes)
    if name == "all_" and not output.as_json:
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
