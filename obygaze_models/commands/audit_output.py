"""Options and output that the audits share."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from obygaze_models.audits.embeddings import Embeddings
    from obygaze_models.audits.results import Results

PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


def csv_file(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    """Refuse a file of results that is no CSV."""
    if value is not None and value.suffix.lower() != ".csv":
        raise click.BadParameter(f"'{value}' should end in .csv; a .json file is written beside it")
    return value


def picture_file(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    """Refuse a figure of another kind."""
    if value is not None and value.suffix.lower() not in {".png", ".svg"}:
        raise click.BadParameter(f"'{value}' should end in .png or .svg")
    return value


OUT = click.option(
    "--out",
    type=PATH,
    callback=csv_file,
    required=True,
    help="CSV file of the results; the JSON goes beside it.",
)
TEXTS_BACKBONE = click.option("--texts-backbone", help="Which of its groups; needed when it has several.")
FIGURE = click.option(
    "--figure", type=PATH, callback=picture_file, help="Draw the results: a .png or .svg file."
)
FORCE = click.option("--force", is_flag=True, help="Replace files that are there already.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON document.")


def check(out: Path, figure: Path | None, *, force: bool) -> None:
    """Refuse before the work, so that nobody waits for a refusal."""
    from obygaze_models.audits.results import beside, check_free

    check_free(out, beside(out), *([figure] if figure else []), force=force)
    if figure:
        import matplotlib as _  # noqa: F401, ICN001 - missing without the extra `figures`


def tell_partial(embedded: "Embeddings") -> None:
    """Say how many embeddings are of a part alone: they are used, and nobody should have to guess it."""
    if embedded.partial:
        name, reason = next(iter(embedded.partial.items()))
        n = f"{len(embedded.partial)} of {len(embedded.rows)} embeddings"
        click.echo(f"{embedded.where}: {n} are partial, such as {name}: {reason}", err=True)


def finish(
    results: "Results",
    columns: Sequence[str],
    out: Path,
    figure: Path | None,
    draw: Callable[["Results", Path], None],
    *,
    as_json: bool,
) -> None:
    """Write the results, draw them if asked, print them."""
    from tabulate import tabulate

    from obygaze_models.audits.results import write_results

    write_results(results, out)
    if figure:
        draw(results, figure)
    if as_json:
        click.echo(results.to_json(), nl=False)
    else:
        cells = [[row[column] for column in columns] for row in results.rows]
        click.echo(tabulate(cells, columns, tablefmt="simple", floatfmt=".4g", missingval="-"))
    click.echo(f"results kept in {out}", err=True)
