"""`obygaze film open`: a workspace for scored films in the browser, served on this machine alone."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

import obygaze_film
from obygaze_features.options import declared
from obygaze_models.commands import read_inputs

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline
    from obygaze_film.workspace.pages import Tell


@declared(__package__, "film open", corpus={"nargs": 2})
def open_(
    folders: tuple[Path, ...],
    videos: tuple[Path, ...],
    films: Path | None,
    by: str | None,
    codebook: Path | None,
    corpus: tuple[Path, Path] | None,
    port: int,
    no_browser: bool,
) -> None:
    """Work on scored films in the browser: read and correct, judge blindly, compare.

    FOLDERs are what `obygaze film score` wrote. --film is matched by the file's name, which must be the
    film's in the manifest, unless there is one of each. What you decide is written into the FOLDERs at once:
    into ledger/, and from it into judgements.csv, passages.csv, notes.csv. Several people may work on a film,
    also on machines whose folders are synchronised. Only this machine can open the address, and only once.
    Stop with Ctrl-C.

    \b
    Examples:
      obygaze film open scored --film film.mkv
      obygaze film open scored --film film.mkv --learn clips.csv features
      obygaze film open scored/* --film a.mp4 --film b.mkv --films films.csv \\
          --by decade
    """
    from itertools import count
    from threading import Thread

    from obygaze_features.manifest import Manifest, counted
    from obygaze_film.film_groups import read_facts
    from obygaze_film.learning import learn_films
    from obygaze_film.page.side_by_side import comparison_page
    from obygaze_film.timeline import found_films, read_films
    from obygaze_film.workspace.decisions import Decisions, codebook_of
    from obygaze_film.workspace.pages import OpenFilm
    from obygaze_film.workspace.proxy import cache_folder, private_cache
    from obygaze_film.workspace.server import serve

    def tell(line: object) -> None:
        click.echo(line, err=True)

    known = corpus and read_inputs(corpus[0], corpus[1:])
    found = found_films(folders, tell=lambda folder: tell(f"reading {folder}"))
    timelines = [*found.values()]
    book = codebook_of(timelines[0].model().codebook, codebook)
    path_of = matched(videos, timelines)
    opened = [
        OpenFilm(number, film, Decisions(folder, film, book), path_of.get(film.movie))
        for number, (folder, film) in enumerate(found.items())
    ]
    for film in opened:
        for notice in film.decisions.notices:
            tell(notice)
        film.decisions.notices.clear()
        if film.path and not film.lost and film.played is None:
            tell(f"{film.path}: browsers don't play this; the page offers to make a copy")
    without = {
        film.path: film.timeline
        for film in opened
        if film.path is not None and film.media and not film.media["media.json"].is_file()
    }
    if kept := private_cache(cache_folder()):
        size = f"{counted(len(kept), 'file')} for the desk, {sum(kept.values()) / 1e6:,.0f} MB"
        tell(f"{cache_folder()}: {size}; delete them when you like")
    if without:
        tell(f"making stills, colours and sound of {counted(len(without), 'film')} in {cache_folder()}")
        Thread(target=make_all, args=(without, tell), daemon=True).start()
    facts = read_facts(films, timelines)[0] if films is not None else None
    years = {(facts or {}).get(film.movie, {}).get("year") or film.record.year for film in timelines}
    trend = "year" if len(years - {None}) > 2 else None
    addresses = {film.timeline.movie: f"film/{film.number}/read" for film in opened}

    def compared(language: str = "en") -> str:
        clips = [clip for film in opened[: len(found)] for clip in film.decisions.judgements()]
        judged = Manifest(tuple(clips), Path(), book)
        result = obygaze_film.compare_films(timelines, judged, facts, by=by, trend=trend)
        return comparison_page(result, addresses, language)

    def learn(tell_share: "Tell") -> list[str]:
        """Train anew, and open the films as the new model scores them, with the decisions that there are."""
        near = folders[0].absolute().parent
        out = next(path for n in count(1) if not (path := near / f"learnt-{n}").exists())
        assert known is not None  # noqa: S101 - else nobody is offered to learn
        report, _ = learn_films(found, known, out, progress=lambda done, total: tell_share(done / total))
        again = {film.movie: film for film in read_films([out / "scored"])}
        for folder, before in found.items():
            film = again[before.movie]
            opened.append(OpenFilm(len(opened), film, Decisions(folder, film, book), path_of.get(film.movie)))
        return [*report.answers, str(out)]

    compared()  # what can't be compared is said before anybody works
    serve(opened, compared, learn if known else None, port=port, browser=not no_browser, tell=click.echo)


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
    from obygaze_features.video import check_file
    from obygaze_film.rows import files_of

    for path in videos:
        check_file(path)
    return files_of([film.movie for film in films], videos)
