"""`obygaze film score`, `evaluate`: score films and compare the scores with people."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import obygaze_features as of
import obygaze_film
from obygaze_features.errors import OutputError
from obygaze_features.io import refuse_existing
from obygaze_features.options import PROBLEMS_FOUND, Answer, Number, Output
from obygaze_features.signatures import Force, Json, argument, command, option
from obygaze_film.commands.film_options import YEARS, Folders, Html, ModelKey
from obygaze_models.commands import finish

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from obygaze_film.score import FilmFacts
    from obygaze_film.timeline import Timeline


@command()
def score(
    arguments: Annotated[tuple[str, ...], argument(type=click.STRING, metavar="MODEL... STORE")],
    *,
    shots: Annotated[
        Path | None,
        option("Table of shots, as `manifest import film` or `extract --shots` writes it."),
    ] = None,
    flags: Annotated[
        Path | None,
        option(
            "Table of black pictures and credits that a person marked (columns start_s, end_s, flags, and "
            "movie if there are several films). At these times it replaces the flags of --shots.",
            metavar="FILE.csv",
        ),
    ] = None,
    subtitles: Annotated[
        tuple[Path, ...],
        option(
            "Subtitles for the page and exports: a file (SRT, WebVTT, ASS, TTML), or the film itself if it "
            "has a text track. Repeatable: with several films give a file for each, named by the film's id.",
            metavar="FILE",
        ),
    ] = (),
    encoding: Annotated[str, option("Encoding of subtitles that are not UTF-8, such as cp1251.")] = "",
    films: Annotated[
        Path | None,
        option("Table of the films' titles and years: columns movie and, if known, title, year, sha256."),
    ] = None,
    variables: Annotated[
        Path | None,
        option("Table of 'film variables', to show on the page and to compare films by.", metavar="CSV"),
    ] = None,
    title: Annotated[str | None, option("Title of the film; for one film only.")] = None,
    year: Annotated[int | None, option("Year of the film; for one film only.", type=YEARS)] = None,
    out: Annotated[Path, option("Folder to write. Several films get a folder each in it.")],
    force: Force = False,
) -> Answer:
    """Score the films of STORE, whose clips are windows of films, with one or more saved models.

    Writes film.json (what is known of film and models), timeline.csv (the scores), segments.csv (the
    passages that the models mark) and shots.csv.

    A row of timeline.csv is a shot (long ones are divided), or without --shots the time between the starts
    of two windows. Its score is the mean logit of the windows that cover it. It gets no probability if it is
    unlike all clips that the model was trained on, could not be read, or is black or credits. If more than a
    fifth of a film's content is unlike these clips or could not be read, the film gets no rate (expected
    share of positive time).

    \b
    Exit codes: 0 done, 1 error, 2 usage, 3 done, but nothing of a film can
    be judged: all of it is unlike the films that a model was trained on,
    could not be read, or is black or credits.

    \b
    Examples:
      obygaze film score run/pcbm_lr.model stores/film --out scored
      obygaze film score pcbm_lr.model mlp.model stores/films \\
          --shots films.shots.csv --films films-facts.csv --out scored
    """
    from obygaze_film.rows import read_shots, read_subtitles_of, read_variables, windows_of
    from obygaze_film.scored_files import RECORD, folders_of, write_films
    from obygaze_models.prediction import refuse_wrong_order

    # --- check the arguments
    *models, store_path = arguments
    if not models:
        raise click.UsageError("give one or more MODEL files, then the STORE")
    if flags is not None and shots is None:
        raise click.UsageError("--flags replaces flags of shots: give --shots too")
    refuse_wrong_order(models[0], [*models[1:], store_path])
    store = of.open_store(store_path)
    windows = windows_of(store)
    movies = list(windows)
    if (title or year) and len(movies) > 1:
        raise click.UsageError(
            f"--title and --year are for one film, the store has {len(movies)}: use --films FILE.csv"
        )
    folder_of = folders_of(movies, out)
    refuse_existing(*(folder / RECORD for folder in folder_of.values()), force=force)
    if out.is_file():
        raise OutputError(f"{out} is a file: --out is a folder")

    # --- read what is known of the films, score them, and write the folders
    facts = _facts(films, movies) if films is not None else {}
    if title or year:
        facts[movies[0]] = _completed(facts.get(movies[0]), title, year)
    print_note = partial(click.echo, err=True)
    scored = obygaze_film.score_films(
        store,
        models,
        shots=read_shots(shots, movies, flags) if shots else None,
        subtitles=read_subtitles_of(subtitles, movies, encoding, print_note, windows),
        facts=facts,
        variables=read_variables(variables, windows, print_note) if variables else None,
    )
    write_films(scored, out)
    return _answer(scored, folder_of)


def _answer(films: "Sequence[Timeline]", folder_of: "Mapping[str, Path]") -> Answer:
    """Describe scored films, each with the folder that it was written to (movie -> folder)."""
    from msgspec import to_builtins

    from obygaze_film.claims import Words
    from obygaze_film.commands.film_lines import lines_of_film

    words = Words("en")
    claims: list[dict[str, Any]] = []
    lines: list[str] = []
    for film in films:
        claims += _claims(film)
        lines += [*lines_of_film(film, words), f"  in {folder_of[film.movie]}"]
    document = {
        "films": [to_builtins(film.record) for film in films],
        "folders": [str(folder_of[film.movie]) for film in films],
        "claims": claims,
    }
    has_problems = any(_cannot_be_judged(film) for film in films)
    return Answer(document, "\n".join(lines), code=PROBLEMS_FOUND if has_problems else 0)


def _cannot_be_judged(film: "Timeline") -> bool:
    """Whether there is a model that has no prediction of a film because nothing in the film can be judged.

    All of it is unlike the films that the model was trained on, could not be read, or is black or credits.
    The command then ends with an exit code of its own.
    """
    from obygaze_film.claims.of_film import NOTHING_JUDGED, why_no_prediction

    return any(
        why_no_prediction(model, film.time(model.key)) in NOTHING_JUDGED for model in film.record.models
    )


def _claims(film: "Timeline") -> "list[dict[str, Any]]":
    """Return what each model's scores claim of a film, such as its share and passages, as JSON values."""
    from obygaze_film.claims import document, film_claims

    claims = []
    for key in film.keys:
        claims += [{"movie": film.movie, **document(claim)} for claim in film_claims(film, key)]
    return claims


def _facts(path: Path, movies: "Sequence[str]") -> "dict[str, FilmFacts]":
    """Read titles, years and digests of films from a table (--films): movie -> what the table says.

    Which rows of the table match no film is printed. `movies` are the ids of the films to score.
    """
    from obygaze_film.film_groups import match_rows
    from obygaze_film.score import FilmFacts

    no_titles = dict.fromkeys(movies, "")  # titles are not known yet: rows are matched by the film's id alone
    rows, notes = match_rows(path, no_titles)
    for note in notes:
        click.echo(note, err=True)
    facts = {}
    for movie, row in rows.items():
        year = row.cells.get("year")  # a whole number, if there is one
        facts[movie] = FilmFacts(
            title=row.cells.get("title", ""),
            year=int(year) if year else None,
            source_sha256=row.cells.get("sha256", ""),
        )
    return facts


def _completed(known: "FilmFacts | None", title: str | None, year: int | None) -> "FilmFacts":
    """Return the facts of a film with the title and the year of the command line, where these are given.

    `known` are the facts that a table has of the film; None if it has none.
    """
    from obygaze_film.score import FilmFacts

    known = known or FilmFacts()
    return FilmFacts(title or known.title, year or known.year, known.source_sha256)


@command()
def evaluate(
    folders: Folders,
    *,
    truth: Annotated[Path, option("Manifest of annotated spans of the same films.")],
    key: ModelKey = None,
    collars: Annotated[
        tuple[float, ...],
        option(
            "Seconds by which starts and ends may differ, ends also by 20 % of the true span; repeatable.",
            name="collar",
            type=Number(min=0, min_open=True),
        ),
    ] = (5.0, 15.0),
    out: Annotated[Path, option("Folder of the report.")],
    html: Html = None,
    force: Force = False,
    json: Json = False,
) -> Answer:
    """Compare scored films with annotations: seconds, segments, boundaries, rates.

    Each annotator of the manifest serves once as the truth, against which the model and the other annotators
    are measured. Beside them stand timelines that know nothing of the film: every second marked, no second,
    the other films' share, and the model's own timeline moved in time (circular shifts).

    Only the seconds are measured that the model can judge and the film's annotators answered for; the report
    says how many of each film. Left out are films that the model was trained on, labels that were given in
    sight of a model's score (column seen_score) and, of a model of a concept, annotators who name no concept.
    Metrics are means over films, with 95 % intervals.

    \b
    Examples:
      obygaze manifest import mobygaze MObyGaze --out segments.csv
      obygaze film evaluate scored --truth segments.csv --out agreement
      obygaze film evaluate scored/tt0108160 --truth segments.csv --collar 5 \\
          --out agreement
    """
    from obygaze_features.manifest import read_manifest
    from obygaze_film.evaluation import evaluation_report
    from obygaze_models.report import check_folder

    check_folder(out, force=force)
    refuse_existing(html, force=force)
    films = obygaze_film.read_films(folders)
    evaluated = obygaze_film.evaluate_films(films, read_manifest(truth), key=key, collars=collars)
    return finish(evaluation_report(evaluated), Output(out, html, force=force, json=json))
