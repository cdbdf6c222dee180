"""`obygaze film open`: a workspace for scored films in the browser, served on this machine alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import click

import obygaze_film
from obygaze_features.signatures import command, option
from obygaze_film.commands.film_options import Folders

if TYPE_CHECKING:
    from obygaze_features.manifest import Clip, Codebook, Manifest
    from obygaze_features.store import Store
    from obygaze_film.film_groups import Facts, FilmComparison
    from obygaze_film.timeline import Timeline
    from obygaze_film.workspace.open_film import Note, OpenFilm, Tell

LEAST_YEARS = 3
"""Years of films from which on a comparison has a trend."""


@command("open")
def open_(
    folders: Folders,
    *,
    videos: Annotated[tuple[Path, ...], option("Your copy of a film; repeatable.", name="film")] = (),
    films: Annotated[
        Path | None, option("Table of the films for 'Compare films', as of `film compare`.")
    ] = None,
    by: Annotated[str | None, option("Column of its groups.  [default: one group]")] = None,
    codebook: Annotated[Path | None, option("Codebook file.  [default: the models', if built in]")] = None,
    same_meaning: Annotated[
        bool,
        option(
            "Declare that the codebook's words mean the same as those under which the films were judged "
            "before."
        ),
    ] = False,
    corpus: Annotated[
        tuple[Path, Path] | None,
        option("The model's corpus: to learn on the desk.", name="learn", metavar="MANIFEST STORE"),
    ] = None,
    port: Annotated[int, option("Port; 0 is any that is free.", type=click.IntRange(0, 65535))] = 0,
    no_browser: Annotated[bool, option("Print the address and open nothing.")] = False,
) -> None:
    """Work on scored films in the browser: read and correct, judge blindly, compare.

    FOLDERs are what `obygaze film score` wrote. --film is matched by the file's name, which must be the
    film's in the manifest, unless there is one of each. What you decide is written into the FOLDERs at once:
    into ledger/, and from it into judgements.csv, passages.csv, notes.csv. Several people may work on a film,
    also on machines whose folders are synchronised. What was decided when the codebook said otherwise is
    kept, and not counted with what is decided now, unless --same-meaning declares that the words mean the
    same, which is recorded. Only this machine can open the address, and only once. Stop with Ctrl-C.

    \b
    Examples:
      obygaze film open scored --film film.mkv
      obygaze film open scored --film film.mkv --learn clips.csv features
      obygaze film open scored/* --film a.mp4 --film b.mkv --films films.csv \\
          --by decade
    """
    from obygaze_features.manifest import Manifest
    from obygaze_film.film_groups import read_facts
    from obygaze_film.timeline import found_films
    from obygaze_film.workspace.address import refuse_missing, serve
    from obygaze_film.workspace.decisions import Decisions, codebook_of
    from obygaze_film.workspace.open_film import OpenFilm, shown_judgements

    refuse_missing()
    corpus_read = None
    if corpus:
        from obygaze_models.commands import read_inputs

        corpus_read = read_inputs(corpus[0], [corpus[1]])
    films_by_folder = found_films(folders, tell=lambda folder: print_note(f"reading {folder}"))
    timelines = list(films_by_folder.values())
    book = codebook_of(timelines[0].model().codebook, codebook)
    video_of = matched(videos, timelines)
    opened = []
    for number, (folder, timeline) in enumerate(films_by_folder.items()):
        decisions = Decisions(folder, timeline, book, same_meaning=same_meaning)
        opened.append(OpenFilm(number, timeline, decisions, video_of.get(timeline.movie)))
    for film in opened:
        print_notices(film)
    print_cache()
    make_missing(opened)
    facts = read_facts(films, timelines)[0] if films is not None else None
    trend = "year" if len(years_of(timelines, facts)) >= LEAST_YEARS else None
    addresses = {film.timeline.movie: f"film/{film.number}/read" for film in opened}
    opened_first = tuple(opened)

    def compare() -> "FilmComparison":
        """Compare the films, with the judgements of now."""
        clips: list[Clip] = []
        hidden: list[str] = []
        for film in opened_first:
            film.decisions.refresh()
            shown = shown_judgements(film)
            clips += shown.clips
            if shown.note:
                hidden.append(shown.note)
        judged = Manifest(tuple(clips), Path(), book)
        compared = obygaze_film.compare_films(timelines, judged, facts, by=by, trend=trend)
        return replace(compared, notes=(*compared.notes, *hidden))

    def compared(language: str) -> str:
        """Write the page of the comparison."""
        from obygaze_film.page.side_by_side import comparison_page

        return comparison_page(compare(), addresses, language)

    compare()  # what can't be compared is said before anybody works
    learn = (
        learner(corpus_read, films_by_folder, opened, book, folders[0].absolute().parent)
        if corpus_read
        else None
    )
    serve(opened, compared, learn, port=port, browser=not no_browser, tell=click.echo)


def learner(
    corpus: "tuple[Manifest, Sequence[Store]]",
    films: "Mapping[Path, Timeline]",
    opened: "list[OpenFilm]",
    codebook: "Codebook",
    near: Path,
) -> "Callable[[Tell], list[Note]]":
    """Make the work that trains anew, into a folder `near`, and opens the films as the model scores them."""

    def learn(tell_share: "Tell") -> "list[Note]":
        from obygaze_film.learning import learn_films, learnt_claims
        from obygaze_film.timeline import read_films
        from obygaze_film.workspace.decisions import Decisions
        from obygaze_film.workspace.open_film import OpenFilm

        video_of = {film.timeline.movie: film.path for film in opened}
        out = next(path for number in count(1) if not (path := near / f"learnt-{number}").exists())
        report, _ = learn_films(films, corpus, out, progress=lambda done, total: tell_share(done / total))
        scored_anew = {film.movie: film for film in read_films([out / "scored"])}
        # The decisions that there are stay in the folders of the films as they were scored first.
        for folder, before in films.items():
            film = scored_anew[before.movie]
            decisions = Decisions(folder, film, codebook)
            opened.append(OpenFilm(len(opened), film, decisions, video_of[film.movie]))
        return [*learnt_claims(str(report.record["model"]), report.data), str(out)]

    return learn


def print_note(line: object) -> None:
    """Print a line beside the address."""
    click.echo(line, err=True)


def print_notices(film: "OpenFilm") -> None:
    """Print what is to be said of a film's decisions, once, and of a copy that no browser plays."""
    for notice in film.decisions.notices:
        print_note(notice)
    film.decisions.notices.clear()
    if film.path and not film.lost and film.played is None:
        print_note(f"{film.path}: browsers don't play this; the page offers to make a copy")


def print_cache() -> None:
    """Print what the desk keeps of films, and where."""
    from obygaze_features.manifest import counted
    from obygaze_film.workspace.cache import cache_folder, private_cache

    size_of = private_cache(cache_folder())
    if size_of:
        megabytes = sum(size_of.values()) / 1e6
        size = f"{counted(len(size_of), 'file')} for the desk, {megabytes:,.0f} MB"
        print_note(f"{cache_folder()}: {size}; delete them when you like")


def make_missing(films: "Sequence[OpenFilm]") -> None:
    """Make stills, colours and sound of the films that have none, in a thread beside the desk."""
    from obygaze_features.manifest import counted
    from obygaze_film.workspace.cache import cache_folder

    missing: dict[Path, Timeline] = {}
    for film in films:
        if film.path is not None and film.media and not film.media["media.json"].is_file():
            missing[film.path] = film.timeline
    if missing:
        print_note(f"making stills, colours and sound of {counted(len(missing), 'film')} in {cache_folder()}")
        Thread(target=make_all, args=(missing, print_note), daemon=True).start()


def years_of(films: "Iterable[Timeline]", facts: "Facts | None") -> set[object]:
    """Return the years of films, by a table of facts or by their records."""
    years: set[object] = set()
    for film in films:
        cells = facts.get(film.movie, {}) if facts else {}
        years.add(cells.get("year") or film.record.year)
    return years - {None}


def make_all(films: "Mapping[Path, Timeline]", tell: Callable[[object], object]) -> None:
    """Make stills, colours and peaks of films that have none, by file; say where one can't be decoded."""
    from obygaze_features.errors import ObygazeError
    from obygaze_film.workspace.media import make_media

    for path, film in films.items():
        try:
            make_media(path, film)
        except (ObygazeError, OSError) as error:
            tell(error)


def matched(videos: Sequence[Path], films: "Sequence[Timeline]") -> Mapping[str, Path]:
    """Find the film that each file is a copy of."""
    if not videos:
        return {}
    from obygaze_features.video import check_file
    from obygaze_film.rows import files_of

    for path in videos:
        check_file(path)
    return files_of([film.movie for film in films], videos)
