"""`obygaze film report`, `export`: pages and exports of scored films."""

import textwrap
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from obygaze_features.errors import ManifestError
from obygaze_features.io import refuse_existing
from obygaze_features.plugins import EXPORTERS, points
from obygaze_features.signatures import Force, argument, command, option
from obygaze_features.templates import packaged
from obygaze_features.text import file_name
from obygaze_features.untrusted import STANDARD
from obygaze_film.commands.film_options import FILE_TO_WRITE, Folders, Language

if TYPE_CHECKING:
    from obygaze_features.store import Store
    from obygaze_film.exchange.decided import Decided
    from obygaze_film.exchange.registry import Format
    from obygaze_film.page import Owned, ScoredCopy
    from obygaze_film.timeline import Timeline

FORMATS: Mapping[str, Mapping[str, Any]] = packaged("obygaze_film.exchange", "formats.toml")["formats"]
"""Facts of formats by name; `exchange.FORMATS`, which is made of them, is slow to import."""
ADDED = tuple(point.name for point in points(EXPORTERS))
"""Names of the formats that installed packages add."""

DEFAULT_FPS = "24"
"""Frames per second where --fps is not given."""

NOTE_OF_DEFAULT_FPS = (
    f"time codes of {DEFAULT_FPS} frames a second; give --fps if the film has another rate: on a timeline of "
    "23.976 (--fps 24000/1001) these are 3.6 s late after an hour"
)
"""Note on the formats with time codes, which are read at the rate of the other tool's timeline."""

WIDTH_OF_NAMES = 11
"""Width of the column of names in the list of formats in the help."""


def _list_of_formats() -> str:
    """List the formats for the help: the name of each, and what it is for."""
    indent = " " * WIDTH_OF_NAMES
    lines = []
    for name, facts in FORMATS.items():
        lines.append(
            textwrap.fill(f"{name.ljust(WIDTH_OF_NAMES)}{facts['about']}", 74, subsequent_indent=indent)
        )
    return "\n".join(lines)


def _default_tiers() -> str:
    """Say for the help which tiers are written by default in which formats.

    Formats with the same tiers are named together, as in "segments for edl, markers; ...".
    """
    formats_by_tiers: dict[str, list[str]] = {}
    for name, facts in FORMATS.items():
        tiers = ", ".join(facts["tiers"])
        formats_by_tiers.setdefault(tiers, []).append(name)
    return "; ".join(f"{tiers} for {', '.join(names)}" for tiers, names in formats_by_tiers.items())


def _formats_with(used_option: str) -> str:
    """Name the formats that use an option of the command, such as "fps", for the help."""
    return ", ".join(name for name, facts in FORMATS.items() if used_option in facts.get("options", ()))


@command()
def report(
    folders: Folders,
    *,
    top: Annotated[int, option("Number of passages to list of each film.", type=click.IntRange(1))] = 20,
    language: Language = "en",
    people: Annotated[bool, option("Also show what people decided, with a tier for each person.")] = False,
    videos: Annotated[
        tuple[Path, ...],
        option(
            "Your copy of a film, so that the page can tell whether a reader's file is the same; repeatable.",
            name="film",
            metavar="FILE",
        ),
    ] = (),
    stills: Annotated[
        bool,
        option(
            "Put a small still of each shot into the page; needs --film. Check that you may publish them."
        ),
    ] = False,
    out: Annotated[
        Path | None, option("HTML file to write.  [default: report.html]", type=FILE_TO_WRITE)
    ] = None,
    force: Annotated[bool, option("Replace an earlier page.")] = False,
) -> None:
    """Write a page of scored films: one HTML file that anybody can open and that loads nothing else.

    FOLDERs are what `obygaze film score` wrote; each holds one film or several. Several films get an index.

    The page shows the timeline with its uncertainty band, the concepts, the passages with the reasons for
    them, and the same numbers as a table. A reader who has the film can open it in the page and play it;
    nothing is sent.

    The page is for reading. To correct and judge, use `obygaze film open`. To compare groups of films, use
    `obygaze film compare`.

    \b
    Examples:
      obygaze film report scored --out film.html
      obygaze film report scored --film film.mkv --people --out film.html
      obygaze film report scored/tt0118715 scored/tt0212338 --top 10 \\
          --out films.html
      obygaze film report scored --language fr --out film.html
    """
    from obygaze_film.claims import Words
    from obygaze_film.commands.film_lines import first_lines
    from obygaze_film.page import write_film_page
    from obygaze_film.timeline import found_films

    page = out or Path("report.html")
    words = Words("en")
    if stills and not videos:
        raise click.UsageError("--stills needs --film, the copy whose stills they are")
    refuse_existing(page, force=force)
    films_by_folder = found_films(folders)
    films = list(films_by_folder.values())
    owned = _owned_by_movie(films_by_folder, videos, has_people=people, has_stills=stills)
    write_film_page(films, page, force=force, top=top, language=language, owned=owned)
    for film in films:
        for line in first_lines(film, words):
            click.echo(line, err=True)
    click.echo(page, err=page == STANDARD)


def _owned_by_movie(
    films: "Mapping[Path, Timeline]", videos: Sequence[Path], *, has_people: bool, has_stills: bool
) -> "dict[str, Owned]":
    """Collect what the page of each film shows besides its scores: movie -> rates, decisions, and copy.

    Notices of reading the decisions are printed.

    Parameters
    ----------
    films
        Folder of a scored film -> film.
    videos
        The owner's copies of films, by which the page recognises a reader's file; may be empty.
    has_people
        Whether the page shows what people decided.
    has_stills
        Whether the page gets stills, of the films whose copies are given.
    """
    from obygaze_film.film_stores import stores_near
    from obygaze_film.film_videos import videos_of_films
    from obygaze_film.judged_rate import read_rates
    from obygaze_film.page import Owned

    video_of = videos_of_films(videos, list(films.values())) if videos else {}
    owned = {}
    for folder, film in films.items():
        people = _read_decided(folder, film) if has_people else []
        copy = None
        if film.movie in video_of:
            copy = _scored_copy(video_of[film.movie], film, stores_near(folder, film), has_stills=has_stills)
        owned[film.movie] = Owned(rates=read_rates(folder), people=people, copy=copy)
    return owned


def _read_decided(folder: Path, film: "Timeline") -> "Sequence[Decided]":
    """Read what people decided about a film, and print the notices of that."""
    from obygaze_film.workspace.decisions import read_decided

    decided, notices = read_decided(folder, film)
    for notice in notices:
        click.echo(notice, err=True)
    return decided


def _scored_copy(
    path: Path, film: "Timeline", stores: "Sequence[Store]", *, has_stills: bool
) -> "ScoredCopy":
    """Describe the owner's copy of a film, the video file at `path`, for the film's page.

    A reader's copy is recognised by its length, its frames per second and a key of its content. With
    `has_stills`, small stills of the film are made too.

    Raises
    ------
    FilmError
        It is not as long as the film that was scored: the page would call it that film. `stores` may have the
        store that tells how long that is.
    """
    from obygaze_features.video import probe
    from obygaze_film.errors import FilmError
    from obygaze_film.film_videos import why_other_film
    from obygaze_film.page import ScoredCopy
    from obygaze_film.workspace.media import still_sheet
    from obygaze_film.workspace.proxy import content_key

    if other := why_other_film(path, film, stores):
        raise FilmError(other)
    video = probe(path)
    fps = round(video.frames / video.duration_s, 4)
    stills = still_sheet(path, film) if has_stills else {}
    return ScoredCopy(video.duration_s, fps, content_key(path), stills)


@command(inserted={"formats": _list_of_formats()})
def export(
    folder: Annotated[Path, argument()],
    *,
    kind: Annotated[
        str,
        option(
            f"Format: {', '.join((*FORMATS, *ADDED))}.",
            name="as",
            type=click.Choice((*FORMATS, *ADDED)),
            metavar="FORMAT",
        ),
    ],
    tiers: Annotated[
        str | None,
        option(
            "Tiers to write: any of segments, level, concepts, shots, subtitles, people, with commas.  "
            f"[default: {_default_tiers()}]",
            metavar="NAME,...",
        ),
    ] = None,
    people: Annotated[bool, option("Also write what people decided, with a tier for each person.")] = False,
    fps: Annotated[
        str | None,
        option(f"Frames per second of the film, for {_formats_with('fps')}.  [default: {DEFAULT_FPS}]"),
    ] = None,
    start: Annotated[
        str,
        option(f"Time code of the film's first frame, for {_formats_with('start')}.", metavar="hh:mm:ss:ff"),
    ] = "",
    model: Annotated[
        str | None,
        option("Name of the model, if the film has several.  [default: the first that classifies]"),
    ] = None,
    top: Annotated[
        int,
        option(
            "Least number of passages to write. If too few reach the threshold, the highest others are added "
            "and marked.",
            type=click.IntRange(0),
        ),
    ] = 0,
    out: Annotated[
        Path | None,
        option(
            "File to write.  [default: the film's name in this folder, with the format's suffix]",
            type=FILE_TO_WRITE,
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write a scored film for another tool.

    The file has the passages that reach the model's threshold, with the concepts that are seen in each.
    --people adds what people decided in `film open`: for each person a tier of blind decisions and one of
    decisions in sight of the score, and a tier of what they agreed on. --tiers people writes these without
    the model's scores, so that people who judge blindly may open the file.

    \b
    {formats}

    Each file names the model and the people, and says how far scores can be trusted. (csv and edl say it
    beside the first span; without a span it is printed.) Concepts that the model is not shown to find better
    than chance have no tier. They are printed on stderr, and so is what the format cannot hold.

    \b
    Examples:
      obygaze film export scored/tt0118715 --as eaf --out tt0118715.eaf
      obygaze film export scored/tt0118715 --as fcpxml7 --fps 24000/1001 \\
          --out tt0118715.xml
      obygaze film export scored/tt0118715 --as vtt --tiers segments,shots \\
          --out tt0118715.vtt
      obygaze film export scored/tt0118715 --as eaf --tiers people --out ab.eaf
    """
    from obygaze_film import exchange
    from obygaze_film.errors import FilmError
    from obygaze_film.exchange.tiers import PEOPLE
    from obygaze_film.timeline import found_films
    from obygaze_film.workspace.decisions import read_decided

    if start and "start" not in FORMATS.get(kind, {}).get("options", ()):
        raise click.UsageError(f"--start is for --as {_formats_with('start')}")
    rate = _rate(fps or DEFAULT_FPS)

    # --- find the film and the file to write
    films = found_films([folder])
    if len(films) > 1:
        raise FilmError(f"{folder}: {len(films)} films are there; give the folder of one")
    ((scored_folder, film),) = films.items()
    file_format = exchange.FORMATS[kind]
    path = out or Path(f"{file_name(film.movie)}{file_format.suffix}")
    refuse_existing(path, force=force)

    # --- choose the tiers, and read what people decided if there is a tier of it
    names_of_tiers = [name.strip() for name in tiers.split(",")] if tiers else []
    if people and names_of_tiers and PEOPLE not in names_of_tiers:
        names_of_tiers.append(PEOPLE)
    notes: list[str] = []
    decided = None  # the format's default tiers then have none of people
    if people or PEOPLE in names_of_tiers:
        decided, notes = read_decided(scored_folder, film)

    # --- write the file, and print what the user must know of it
    notice = exchange.write_export(
        film, kind, path, tiers=names_of_tiers, people=decided, rate=rate, top=top, model=model, start=start
    )
    if not fps and "start" in FORMATS.get(kind, {}).get("options", ()):
        notes.append(f"{kind}: {NOTE_OF_DEFAULT_FPS}")
    notes += [notice, *_notes_of_losses(kind, file_format, has_decisions=bool(decided))]
    for note in notes:
        if note:
            click.echo(note, err=True)
    export_is_on_stdout = path == STANDARD
    click.echo(path, err=export_is_on_stdout)


def _notes_of_losses(kind: str, file_format: "Format", *, has_decisions: bool) -> list[str]:
    """Write what a format, called `kind`, cannot hold of a scored film, and of people's decisions on it."""
    notes = []
    if file_format.loses:
        notes.append(f"{kind}: {file_format.loses}")
    if has_decisions and file_format.loses_of_people:
        notes.append(f"{kind}: {file_format.loses_of_people}")
    if has_decisions and not file_format.read_as:
        notes.append(f"{kind}: what people decided is not read back from it")
    return notes


def _rate(text: str) -> Fraction:
    """Read the frames per second of --fps, such as 24 or 24000/1001; other texts are usage errors."""
    from obygaze_features.manifest import frame_rate

    try:
        return frame_rate(text)
    except ManifestError as error:
        raise click.BadParameter(str(error), param_hint="--fps") from None
