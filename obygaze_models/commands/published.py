"""The papers redone from stores: `table2`, `table4`, `figure2`, `figure3`, `figure5`, `figure6`, `paper`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from obygaze_features.manifest import LabelPolicy, Manifest
    from obygaze_models.report import Report


def _options(protocol: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the arguments that all of these share."""
    parts = [
        click.argument(
            "stores", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="STORE..."
        ),
        click.option(
            "--manifest",
            required=True,
            type=click.Path(path_type=Path),
            help="Manifest with levels and concepts.",
        ),
        click.option(
            "--protocol",
            type=click.Choice(["strict", "paper", "both"]),
            default=protocol,
            show_default=True,
            help="strict: one film left out at a time. paper: the published folds, which leak; needs a "
            "manifest "
            "imported from ObyGaze12's folder.",
        ),
        click.option(
            "--out",
            required=True,
            type=click.Path(path_type=Path),
            help="Folder to make and write into. It has no default: what is printed is a part of what is "
            "written.",
        ),
        click.option(
            "--policy",
            type=click.Choice(["paper", "released", "raw"]),
            default="paper",
            show_default=True,
            help="How strict reads labels, as in `obygaze evaluate`; the paper protocol has the split "
            "files' own.",
        ),
        click.option(
            "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of every draw."
        ),
        click.option("--force", is_flag=True, help="Replace an earlier output in the folder."),
        click.option(
            "--json", "as_json", is_flag=True, help="Print one JSON document in place of the tables."
        ),
    ]

    def apply(command: Callable[..., Any]) -> Callable[..., Any]:
        for part in reversed(parts):
            command = part(command)
        return command

    return apply


@click.command()
@_options("strict")
def table2(**options: Any) -> None:
    """Redo Table 2 from STOREs: probe, bottlenecks and trivial rows, printed figures beside.

    With the LSMDC store it is Table 5 too. Writes CSV, JSON, Markdown, LaTeX and the predictions behind them.

    \b
    Examples:
      obygaze table2 stores/obygaze12-xclip --manifest obygaze12.csv --out table2
      obygaze table2 stores/xclip stores/vivit --manifest obygaze12.csv --protocol paper --out table2-paper
    """
    _run("table2", **options)


@click.command()
@_options("strict")
def table4(**options: Any) -> None:
    """Redo Table 4 from STOREs: film by film, 90 film pairs (paper) or each film left out once (strict).

    \b
    Examples:
      obygaze table4 stores/obygaze12-xclip --manifest obygaze12.csv --out table4
      obygaze table4 stores/obygaze12-xclip --manifest obygaze12.csv --protocol both --out table4
    """
    _run("table4", **options)


@click.command()
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to make and write into.")
@click.option("--force", is_flag=True, help="Replace an earlier output in the folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document in place of the tables.")
def figure2(manifest: Path, out: Path, *, force: bool, as_json: bool) -> None:
    """Redo Figure 2 and section 3.4 from MANIFEST: levels and concepts, under each label policy.

    It needs no store; `obygaze manifest stats` prints the same numbers and more.

    \b
    Examples:
      obygaze figure2 obygaze12.csv --out figure2
    """
    from obygaze_features.manifest import read_manifest
    from obygaze_models.experiments.figure2 import dataset_report
    from obygaze_models.report import new_folder, write_report

    report = dataset_report(read_manifest(manifest))
    with new_folder(out, force=force) as folder:
        write_report(report, folder)
    _print([report], as_json=as_json)
    click.echo(f"kept in {out}", err=True)


@click.command()
@_options("strict")
def figure3(**options: Any) -> None:
    """Redo Figure 3 from STOREs: how well each concept is told from clips without it.

    \b
    Examples:
      obygaze figure3 stores/obygaze12-xclip --manifest obygaze12.csv --out figure3
      obygaze figure3 stores/obygaze12-xclip --manifest obygaze12.csv --protocol paper --out figure3-paper
    """
    _run("figure3", **options)


@click.command()
@_options("strict")
def figure5(**options: Any) -> None:
    """Redo Figure 5 from STOREs: the decision tree over concepts, four levels of it drawn.

    \b
    Examples:
      obygaze figure5 stores/obygaze12-xclip --manifest obygaze12.csv --out figure5
      obygaze figure5 stores/obygaze12-xclip --manifest obygaze12.csv --protocol paper --out figure5-paper
    """
    _run("figure5", **options)


@click.command()
@_options("strict")
def figure6(**options: Any) -> None:
    """Redo Figure 6 from STOREs: which concepts and levels make the probe fail.

    \b
    Examples:
      obygaze figure6 stores/obygaze12-xclip --manifest obygaze12.csv --out figure6
      obygaze figure6 stores/obygaze12-xclip --manifest obygaze12.csv --protocol both --out figure6
    """
    _run("figure6", **options)


@click.command()
@_options("both")
def paper(**options: Any) -> None:
    """Redo all tables and figures of section 4 and its appendices from STOREs; leaves one index.md.

    The same command gives the same bytes, with any number of threads.

    \b
    Examples:
      obygaze paper stores/obygaze12-xclip --manifest obygaze12.csv --out paper
      obygaze paper stores/films --manifest films.csv --protocol strict --policy raw --out paper
    """
    _run(None, **options)


def _run(
    name: str | None,
    *,
    stores: tuple[Path, ...],
    manifest: Path,
    protocol: str,
    out: Path,
    policy: str,
    seed: int,
    force: bool,
    as_json: bool,
) -> None:
    from tqdm import tqdm

    from obygaze_features.manifest import LabelPolicy, read_manifest
    from obygaze_features.store import open_store
    from obygaze_models.experiments.paper import Protocol, Request, write_experiments, write_paper
    from obygaze_models.report import new_folder

    protocols: list[Protocol] = ["paper", "strict"] if protocol == "both" else [protocol]  # type: ignore[list-item]
    request = Request(
        tuple(open_store(store) for store in stores), read_manifest(manifest), LabelPolicy(policy), seed
    )
    if "strict" in protocols:
        _notice_policy(request.manifest, request.policy)
    notes: list[str] = []
    with (
        new_folder(out, force=force) as folder,
        tqdm(desc="training", unit="model", leave=False, disable=None) as bar,
    ):

        def progress(done: int, total: int) -> None:
            if total != bar.total:
                bar.reset(total)
            bar.update(done - bar.n)

        if name is None:
            reports = write_paper(request, protocols, folder, progress=progress)
        else:
            reports, notes = write_experiments(request, [name], protocols, folder, progress=progress)
    if name is None and not as_json:
        click.echo(out / "index.md")
    else:
        _print(reports, as_json=as_json)
    for note in notes:
        click.echo(note, err=True)
    click.echo(f"kept in {out}", err=True)


def _notice_policy(clips: "Manifest", policy: "LabelPolicy") -> None:
    """Say on stderr how many labels the strict protocol reads otherwise than they are annotated."""
    from obygaze_features.manifest import apply_policy

    labelled = apply_policy(clips, policy)
    changed = sum(clips.by_id[clip.clip_id].level != clip.level for clip in labelled)
    left_out = len(clips) - len(labelled)
    if changed or left_out:
        click.echo(
            f"label policy {policy}: {changed} of {len(clips)} clips changed level, {left_out} left out; "
            "--policy raw takes levels as annotated",
            err=True,
        )


def _print(reports: "Sequence[Report]", *, as_json: bool) -> None:
    import json

    from obygaze_models.report import plain
    from obygaze_models.report.write import document

    if as_json:
        documents = [{"name": report.name, **document(report)} for report in reports]
        click.echo(json.dumps(documents, indent=2, ensure_ascii=False, allow_nan=False))
        return
    for report in reports:
        click.echo(plain(report))
