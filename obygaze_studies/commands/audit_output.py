"""Define the options and output shared by the audit commands."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from obygaze_features.options import Command, html_option, join_options
from obygaze_models.commands import write_page

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from obygaze_models.report import Report
    from obygaze_studies.audits.embeddings import Embeddings

SUFFIXES = (".csv", ".json", ".md", ".tex")
"""Endings of the files of a report, the one that --out names first."""

PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


def csv_file(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    """Refuse an output file that is not a CSV."""
    if value is not None and value.suffix.lower() != ".csv":
        raise click.BadParameter(
            f"'{value}' should end in .csv; .json, .md and .tex files are written beside it"
        )
    return value


def picture_file(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    """Refuse figure formats other than .pdf, .png and .svg."""
    if value is not None and value.suffix.lower() not in {".pdf", ".png", ".svg"}:
        raise click.BadParameter(f"'{value}' should end in .pdf, .png or .svg")
    return value


def _out(*, required: bool) -> "Callable[[Command], Command]":
    return click.option(
        "--out",
        type=PATH,
        callback=csv_file,
        required=required,
        help="CSV file of the results; JSON, Markdown and LaTeX go beside it.",
    )


TEXT_ITEMS = click.option(
    "--text-items",
    type=FILE,
    help="CSV of the text store's texts: text_id, text.  [default: the texts in the store]",
)
TEXTS_BACKBONE = click.option(
    "--texts-backbone", help="Backbone in the text store; needed if it has several."
)
FIGURE = click.option(
    "--figure", type=PATH, callback=picture_file, help="Figure of the results to draw (.pdf, .png or .svg)."
)
FORCE = click.option("--force", is_flag=True, help="Replace existing files.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON document.")
OUT = _out(required=True)
OUTPUT = join_options(_out(required=False), FIGURE, html_option, FORCE, JSON)
REQUIRED_OUTPUT = join_options(OUT, FIGURE, html_option, FORCE, JSON)


def check(out: Path, figure: Path | None, html: Path | None, *, force: bool) -> None:
    """Refuse to replace files before the work starts."""
    from obygaze_features.io import refuse_existing

    refuse_existing(*(out.with_suffix(suffix) for suffix in SUFFIXES), figure, html, force=force)
    if figure:
        import matplotlib as _  # noqa: F401, ICN001 - missing without the extra `figures`


def write_rows(rows: "Sequence[Mapping[str, str]]", path: Path, *, force: bool) -> None:
    """Write a table of texts as CSV."""
    from obygaze_features.io import csv_line, refuse_existing, write_whole

    refuse_existing(path, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(csv_line(list(cells)) for cells in (rows[0], *(row.values() for row in rows))))


def tell_partial(embedded: "Embeddings") -> None:
    """Print a note with the number of embeddings of partial rows, which are used."""
    if embedded.partial:
        name, reason = next(iter(embedded.partial.items()))
        n = f"{len(embedded.partial)} of {len(embedded.rows)} embeddings"
        click.echo(f"{embedded.where}: {n} are partial, such as {name}: {reason}", err=True)


def finish(
    report: "Report", out: Path, figure: Path | None, html: Path | None, *, force: bool, as_json: bool
) -> None:
    """Write a report's files, its figure and page if requested, and print it."""
    from obygaze_models.report import plain, to_json, write_beside

    write_beside(report, out.with_suffix(""))
    if figure:
        report.pictures[0].draw(figure)
    write_page(report, html, force=force)
    click.echo(to_json(report) if as_json else plain(report), nl=False)
    click.echo(f"results kept in {out}", err=True)
