"""`obygaze film compare`: rates of groups of films, and thin timelines side by side."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import obygaze_film
from obygaze_features.commands import codebook_option
from obygaze_features.io import refuse_existing, write_whole
from obygaze_features.options import PATH, Output, output
from obygaze_film.commands.film_score import folders, judged_option, model_option
from obygaze_models.commands import finish


@click.command()
@folders
@click.option("--films", type=PATH, help="Table of the films: movie or title, and any other columns.")
@click.option("--by", help="Column of the groups; `decade` is made of `year`.  [default: one group]")
@click.option("--trend", metavar="COLUMN", help="Column of numbers, such as year.")
@judged_option
@model_option
@codebook_option
@output("Folder of the report.", html=True, json=True)
def compare(
    folders: tuple[Path, ...],
    films: Path | None,
    judged: tuple[Path, ...],
    codebook: str | None,
    output: Output,
    **how: Any,
) -> None:
    """Estimate mean rates of groups of films, their differences and a trend.

    Blind judgements of windows of some films (judgements.csv in their folders, or --judged) correct the model
    in all films. Draw the films to judge at random. The 95 % intervals contain both draws, of films and of
    windows. A group needs 5 judged films, a trend 10; a group with fewer gets no rate, and the films to judge
    next are drawn and named. Films that the model was trained on are left out. --html also shows each film's
    timeline, by year.

    \b
    Exit codes: 0 done, 1 error, 2 usage, 3 done, but a group or the trend
    has too few judged films.

    \b
    Examples:
      obygaze film compare scored --by decade --html decades.html
      obygaze film compare scored --films films.csv --by genre --trend year \\
          --out genres
    """
    from obygaze_features.manifest import Manifest, find_codebook
    from obygaze_film.film_groups import comparison_report, read_facts
    from obygaze_film.page.side_by_side import comparison_page
    from obygaze_film.scored_files import JUDGEMENTS, judged_files
    from obygaze_film.timeline import found_films
    from obygaze_models.report import check_folder

    if output.out is not None:
        check_folder(output.out, force=output.force)
    refuse_existing(output.html, force=output.force)
    by_folder = found_films(folders)
    timelines, facts = [*by_folder.values()], None
    files = judged_files(by_folder, JUDGEMENTS)
    judgements, notes = Manifest((), Path()), []
    if files or judged:
        labels = find_codebook(codebook) if codebook else None
        imported = obygaze_film.import_judgements([*files, *judged], Path(), labels)
        judgements, notes = imported.manifest, [*imported.notices]
    if films is not None:
        facts, unmatched = read_facts(films, timelines)
        notes += unmatched
    compared = obygaze_film.compare_films(timelines, judgements, facts, **how)
    compared = replace(compared, notes=(*notes, *compared.notes))
    finish(comparison_report(compared), replace(output, html=None))
    if output.html is not None:
        output.html.parent.mkdir(parents=True, exist_ok=True)
        write_whole(output.html, comparison_page(compared))
        click.echo(f"page kept in {output.html}", err=True)
    reasons = [reason for table in (compared.groups, compared.changes) for reason in table.get("reason", ())]
    click.get_current_context().exit(3 if any(reasons) else 0)
