"""`obygaze film open`: a workspace for scored films in the browser, served on this machine alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, NamedTuple

import click

import obygaze_film
from obygaze_features.signatures import command, option
from obygaze_film.commands.film_options import Folders

if TYPE_CHECKING:
    from obygaze_features.manifest import Codebook, Manifest
    from obygaze_features.store import Store
    from obygaze_film.film_groups import Facts, FilmComparison
    from obygaze_film.timeline import Timeline
    from obygaze_film.workspace.open_film import Note, OpenFilm, Tell


@command("open")
def open_(
    folders: Folders,
    *,
    videos: Annotated[
        tuple[Path, ...], option("Your copy of a film, to play it; repeatable.", name="film")
    ] = (),
    films: Annotated[
        Path | None,
        option("Table of the films, as for `film compare`, to compare them in the mode Films."),
    ] = None,
    by: Annotated[
        str | None, option("Column of --films that groups the films.  [default: one group]")
    ] = None,
    codebook: Annotated[
        Path | None,
        option("Codebook file to judge by.  [default: the models' codebook, if it is built in]"),
    ] = None,
    same_meaning: Annotated[
        bool,
        option(
            "Declare, and record, that the codebook's definitions mean the same as those under which the "
            "films were judged before. Then earlier decisions count."
        ),
    ] = False,
    corpus: Annotated[
        tuple[Path, Path] | None,
        option(
            "Corpus that the model was trained on, for the button Learn, which does what 'film learn' does.",
            name="learn",
            metavar="MANIFEST STORE",
        ),
    ] = None,
    port: Annotated[int, option("Port to listen on; 0: any free port.", type=click.IntRange(0, 65535))] = 0,
    no_browser: Annotated[bool, option("Print the address without opening a browser.")] = False,
) -> None:
    """Work on scored films in the browser: read and correct, judge blindly, compare.

    FOLDERs are what `obygaze film score` wrote. A file --film must be named like the film in the manifest; if
    there is one film and one file, it may have any name.

    What you decide is written into the FOLDERs at once: into ledger/, and from there into judgements.csv,
    passages.csv, notes.csv and agreed.csv. Several people may work on a film, also on machines whose folders
    are synchronised.

    Decisions made under other definitions of the codebook are kept, but do not count with today's unless you
    give --same-meaning.

    The printed address works once, and only on this machine. Stop with Ctrl-C.

    \b
    Examples:
      obygaze film open scored --film film.mkv
      obygaze film open scored --film film.mkv --learn clips.csv features
      obygaze film open scored/* --film a.mp4 --film b.mkv --films films.csv \\
          --by decade
    """
    from obygaze_film.film_groups import MIN_TREND_VALUES, read_facts
    from obygaze_film.film_videos import videos_of_films
    from obygaze_film.timeline import found_films
    from obygaze_film.workspace.address import refuse_missing, serve
    from obygaze_film.workspace.decisions import Decisions, codebook_of
    from obygaze_film.workspace.open_film import OpenFilm

    # --- read what was given
    refuse_missing()  # raises an error if a package is not installed that the desk imports later
    corpus_to_learn_from = None
    if corpus:
        from obygaze_models.commands import read_inputs

        manifest, store = corpus
        corpus_to_learn_from = read_inputs(manifest, [store])
    films_by_folder = found_films(folders, tell=lambda folder: print_note(f"reading {folder}"))
    timelines = list(films_by_folder.values())
    book = codebook_of(timelines[0].model().codebook, codebook)

    # --- open the films
    video_of = videos_of_films(videos, timelines)
    opened = []
    for number, (folder, timeline) in enumerate(films_by_folder.items()):
        decisions = Decisions(folder, timeline, book, same_meaning=same_meaning)
        opened.append(OpenFilm(number, timeline, decisions, video_of.get(timeline.movie)))
    for film in opened:
        print_notices(film)
    print_cache()
    make_missing_media(opened)

    # --- prepare the comparison of the films in the mode Films, and what the button Learn does
    facts = None  # of films, such as their year and the column that groups them
    if films is not None:
        facts, _ = read_facts(films, timelines)
    has_trend = len(years_of(timelines, facts)) >= MIN_TREND_VALUES
    # The films that are open now are compared. Later, the button Learn may add to the list `opened` the same
    # films, scored by a new model.
    compared_films = tuple(opened)
    comparison = _DeskComparison(
        compared_films,
        book,
        facts,
        by,
        trend="year" if has_trend else None,
    )
    # They are compared once at once: an error in the columns ends the command before anybody works.
    comparison.compare()
    learn = None
    if corpus_to_learn_from:
        folder_of_models = folders[0].absolute().parent
        learn = _Learner(corpus_to_learn_from, films_by_folder, opened, book, folder_of_models).learn

    # --- serve the desk until the user stops it
    serve(opened, comparison.page, learn, port=port, browser=not no_browser, tell=click.echo)


class _DeskComparison(NamedTuple):
    """The comparison of films on the desk, with the judgements of the moment when it is asked for.

    Attributes
    ----------
    films : tuple of OpenFilm
    codebook : Codebook
        Of the judgements.
    facts : mapping or None
        By movie, as `read_facts` reads them.
    by, trend : str or None
        Columns of the groups and of the trend.
    """

    films: "tuple[OpenFilm, ...]"
    codebook: "Codebook"
    facts: "Facts | None"
    by: str | None
    trend: str | None

    def compare(self) -> "FilmComparison":
        """Compare the films, with the judgements that they have at this moment.

        Judgements may have to stay hidden, so that they do not influence people who still judge blindly. The
        films that they are of are compared without them, and a note says so.
        """
        from obygaze_film.workspace.open_film import shown_judgements_of

        shown = shown_judgements_of(self.films, self.codebook)
        note_of_hidden = shown.notes  # film whose judgements are hidden -> a note that says so
        compared = obygaze_film.compare_films(
            [film.timeline for film in self.films],
            shown.judged,
            self.facts,
            by=self.by,
            trend=self.trend,
            hidden=list(note_of_hidden),
        )
        return replace(compared, notes=(*compared.notes, *note_of_hidden.values()))

    def page(self, language: str) -> str:
        """Write the page of the comparison in a language; films' titles link to their pages on the desk."""
        from obygaze_film.page.side_by_side import comparison_page

        addresses = {film.timeline.movie: f"film/{film.number}/read" for film in self.films}
        return comparison_page(self.compare(), addresses, language)


class _Learner(NamedTuple):
    """What the button Learn of the desk needs to train the model of the films anew.

    Attributes
    ----------
    corpus : (Manifest, sequence of Store)
        That the model was trained on.
    films : mapping of Path to Timeline
        Folder of a scored film -> film.
    opened : list of OpenFilm
        Films on the desk, to which those that are scored anew are added.
    codebook : Codebook
        Of the decisions.
    parent_folder : Path
        Folder in which the model gets a folder `learnt-1`, or the next number that is free.
    """

    corpus: "tuple[Manifest, Sequence[Store]]"
    films: "Mapping[Path, Timeline]"
    opened: "list[OpenFilm]"
    codebook: "Codebook"
    parent_folder: Path

    def learn(self, tell_share: "Tell") -> "list[Note]":
        """Train a model on the corpus and the films' judgements, and open the films as it scores them.

        Parameters
        ----------
        tell_share : callable
            Called with the share of the work that is done, such as 0.4.

        Returns
        -------
        list of Note
            What the desk shows at the end: claims of what changed, and the path of the model's folder.
        """
        from obygaze_film.learning import learn_films, learnt_claims
        from obygaze_film.timeline import read_films

        out = _free_folder(self.parent_folder)
        report, _ = learn_films(
            self.films, self.corpus, out, progress=lambda done, total: tell_share(done / total)
        )
        self._open(read_films([out / "scored"]))
        model = str(report.record["model"])
        return [*learnt_claims(model, report.data), str(out)]

    def _open(self, scored_anew: "Iterable[Timeline]") -> None:
        """Add the films that the new model scored to the films that are open (`opened`).

        Decisions about them are read from, and written to, the folders of the films as they were scored
        first, so that a film has one ledger whatever model scores it.
        """
        from obygaze_film.workspace.decisions import Decisions
        from obygaze_film.workspace.open_film import OpenFilm

        video_of = {film.timeline.movie: film.path for film in self.opened}
        film_of = {film.movie: film for film in scored_anew}
        for folder, film_before in self.films.items():
            film = film_of[film_before.movie]
            decisions = Decisions(folder, film, self.codebook)
            number = len(self.opened)
            self.opened.append(OpenFilm(number, film, decisions, video_of[film.movie]))


def _free_folder(parent_folder: Path) -> Path:
    """Return the first of `learnt-1`, `learnt-2`, ... that does not exist in a folder."""
    number = 1
    while (parent_folder / f"learnt-{number}").exists():
        number += 1
    return parent_folder / f"learnt-{number}"


def print_note(line: object) -> None:
    """Print a line on stderr: stdout has the address alone."""
    click.echo(line, err=True)


def print_notices(film: "OpenFilm") -> None:
    """Print the notices of a film's decisions once (they are removed), and those of the user's copy of it.

    The copy may not be as long as the film that was scored, or browsers can't play it.
    """
    for notice in film.decisions.notices:
        print_note(notice)
    film.decisions.notices.clear()
    if film.note_on_other_length:
        print_note(film.note_on_other_length)
    if film.is_unplayable:
        print_note(f"{film.path}: browsers don't play this; the page offers to make a copy")


def print_cache() -> None:
    """Prepare the folder where the desk keeps stills and sound, and print the size of what is in it."""
    from obygaze_features.manifest import counted
    from obygaze_film.workspace.cache import cache_folder, prepare_cache

    size_of = prepare_cache(cache_folder())  # file -> bytes
    if size_of:
        megabytes = sum(size_of.values()) / 1e6
        size = f"{counted(len(size_of), 'file')} for the desk, {megabytes:,.0f} MB"
        print_note(f"{cache_folder()}: {size}; delete them when you like")


def make_missing_media(films: "Sequence[OpenFilm]") -> None:
    """Begin to make the stills, colours and sound of films that have none yet, in the background.

    They are kept in the desk's cache. Only films whose video the user gave can have them. The thread is a
    daemon: it does not keep the desk from ending.
    """
    from obygaze_features.manifest import counted
    from obygaze_film.film_videos import make_media_of_films
    from obygaze_film.workspace.cache import cache_folder

    missing: dict[Path, Timeline] = {}  # by the path of the video
    for film in films:
        if film.path is not None and film.media and not film.has_media:
            missing[film.path] = film.timeline
    if missing:
        print_note(f"making stills, colours and sound of {counted(len(missing), 'film')} in {cache_folder()}")
        Thread(target=make_media_of_films, args=(missing, print_note), daemon=True).start()


def years_of(films: "Sequence[Timeline]", facts: "Facts | None") -> set[str]:
    """Return the different years of films, to tell whether there are enough for a trend.

    A film has the year that it has in comparisons (`facts_of_films`): that of the user's table, `facts`, or
    else of its record. Films without a year, and those that the table leaves out, are left out.
    """
    from obygaze_film.film_groups import facts_of_films

    years = {cells["year"] for cells in facts_of_films(films, facts).values()}
    return years - {""}
