"""`obygaze manifest import eaf | judgements`: import ELAN annotations or judgements on clips."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from obygaze_features.commands.manifest_output import (
    PATH,
    folder_of,
    force_option,
    out_option,
    refuse_to_replace,
    write,
)

if TYPE_CHECKING:
    from obygaze_features.manifest import Imported

codebook_option = click.option(
    "--codebook",
    metavar="NAME|FILE",
    help="Codebook of the levels and concepts: a built-in name or your own file.  [default: the files' own]",
)


@click.command()
@click.argument("files", type=PATH, nargs=-1, required=True, metavar="FILE.eaf...")
@click.option("--tier", default="human: level", show_default=True, help="Tier of levels.")
@click.option(
    "--concept-tier", default="human: concepts", show_default=True, help="Tier of concepts, joined by ;"
)
@click.option("--movie", default="", help="The film, where a file does not say it.")
@click.option("--annotator", default="", help="Who wrote on tiers that do not say it.")
@codebook_option
@out_option
@force_option
def eaf(
    files: tuple[Path, ...],
    tier: str,
    concept_tier: str,
    movie: str,
    annotator: str,
    codebook: str | None,
    out: Path,
    force: bool,
) -> None:
    """Import annotations made in ELAN.

    Only tiers whose names begin with "human:" are read, so that a model's output never comes back as
    a label: an export of `obygaze film export --as eaf` that nobody wrote on gives no clips, and exit code 3.
    The annotator is the tier's attribute, or follows an @ in its name ("human: level@AB"). Annotations in
    a file with a model's tiers are marked seen_score=1: they were made with the score in sight.

    \b
    Examples:
      obygaze manifest import eaf film.eaf --annotator AB --out film.csv
      obygaze manifest import eaf film.eaf --tier "human: level" \\
          --movie tt0118715 --out film.csv
    """
    from obygaze_features.manifest import find_codebook, import_eaf

    labels = find_codebook(codebook) if codebook else None
    refuse_to_replace(out, force, labels)
    found = import_eaf(
        files,
        folder_of(out),
        level_tier=tier,
        concept_tier=concept_tier,
        movie=movie,
        annotator=annotator,
        codebook=labels,
    )
    _write_or_3(found, out)


@click.command()
@click.argument("files", type=PATH, nargs=-1, required=True, metavar="FILE.csv...")
@codebook_option
@out_option
@force_option
def judgements(files: tuple[Path, ...], codebook: str | None, out: Path, force: bool) -> None:
    """Import judgements of scored films, of one or more annotators.

    FILEs are what a film's page saved, or what `obygaze film next` wrote, filled in. Rows without a level are
    left out and counted; where somebody judged a span twice, the last judgement counts. Without any
    judgement the exit code is 3.

    \b
    Examples:
      obygaze manifest import judgements tt0118715-ab.csv --out judged.csv
      obygaze manifest import judgements blind-*.csv --out blind.csv
    """
    from obygaze_features.manifest import find_codebook, import_judgements

    labels = find_codebook(codebook) if codebook else None
    refuse_to_replace(out, force, labels)
    _write_or_3(import_judgements(files, folder_of(out), labels), out)


def _write_or_3(imported: "Imported", out: Path) -> None:
    """Write a manifest; exit with 3 if it has no clips."""
    write(imported, out)
    if not len(imported.manifest):
        click.get_current_context().exit(3)
