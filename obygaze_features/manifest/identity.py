"""Tell whether films, people and videos of a manifest are what they are named: one name, one film, one video.

Folds leave out movies, and agreement is between annotators: a film or a person of two names is trained on and
tested, or agrees with itself. What is surely one is refused; what may be one is said.
"""

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

from obygaze_features.arguments import checked
from obygaze_features.door import open_regular
from obygaze_features.errors import ManifestError
from obygaze_features.identity import SameNames, same_names
from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.spans.names import imdb_id, plain
from obygaze_features.text import first_few

_BEGINS = re.compile(r"tt\d{7,9}(?!\d)", re.ASCII)

SHOWN = 3
"""Names or files that a note lists."""

ENDS = 1 << 20
"""Bytes at the beginning and at the end of videos of one size that are compared."""

_Places = Mapping[str, tuple[object, str]]
"""A name, with the file and the place in it that name it first."""


@checked
def refuse_twins(column: str, names: _Places) -> None:
    """Refuse names that are one, as `same_names` tells, and films in `tt` or zeros of their id.

    Parameters
    ----------
    column
        What they name, for the message; "movie" has ids of IMDb, and an article in front or behind.
    names
        In the order in which they are read.

    Raises
    ------
    ManifestError
        Naming both, with their places.
    """
    _refuse_one(column, names, _same_names(column, names))


def _refuse_one(column: str, names: _Places, found: SameNames) -> None:
    """Refuse names that are found to be one."""
    for name, twin in found.one:
        file, place = names[name]
        at = f"{file}: {place}" if file else place
        raise ManifestError(
            f"{at}: {column} {name!r} and {twin!r} ({names[twin][1]}) are one name"
            f"{_strange_letter(name, twin)}: spell both alike",
            column,
        )


@checked
def same_films(names: Iterable[str]) -> list[tuple[str, str]]:
    """Find names of films that are one with a name before them.

    Examples
    --------
    >>> from obygaze_features.manifest.identity import same_films
    >>> same_films(["tt0054215", "Psycho", "54215", "PSYCHO"])
    [('54215', 'tt0054215'), ('PSYCHO', 'Psycho')]
    """
    return _same_names("movie", names).one


def check_identity(clips: Iterable[Clip], root: Path | None = None) -> list[str]:
    """Refuse films, people and videos that are surely one, and say which may be.

    Parameters
    ----------
    clips
        Of one manifest.
    root
        Folder that their videos are under; None compares no contents.

    Returns
    -------
    list of str
        Notes: names that look alike, movies of one id, a video of two movies, two videos of one content.

    Raises
    ------
    ManifestError
        Two names of films or annotators are one, or one video is of two movies at the same time.

    Examples
    --------
    >>> from obygaze_features import Clip
    >>> from obygaze_features.manifest.identity import check_identity
    >>> check_identity([Clip("a", "Alien", "a.mp4", 0, 60), Clip("b", "Aliens", "a.mp4", 90, 120)])
    ['one video of 2 movies (a.mp4: Alien, Aliens): where they are one film, name it once, as ...']
    """
    clips = tuple(clips)
    notes = []
    for column in ("movie", "annotator"):
        first = {getattr(clip, column): clip.clip_id for clip in reversed(clips)}
        first.pop("", None)
        in_order = {name: ("", f"clip {clip_id!r}") for name, clip_id in reversed(first.items())}
        found = _same_names(column, in_order)
        _refuse_one(column, in_order, found)
        notes += [
            f"{column} {name!r} and {twin!r} look alike: if they are one, spell both alike"
            for name, twin in found.doubtful
        ]
    notes += movies_of_one_id(clip.movie for clip in clips)
    notes += movies_of_one_video(clips)
    if root is not None:
        notes += videos_of_one_content(clips, root)
    return notes


def _same_names(column: str, names: Iterable[str]) -> SameNames:
    """Find names that are one; films also by an id of IMDb, however written, and an article behind."""
    if column != "movie":
        return same_names(names)
    first: dict[str, str] = {}
    respelled = []
    for name in dict.fromkeys(names):
        twin = first.setdefault(imdb_id(name) or plain(name), name)
        if twin != name:
            respelled.append((name, twin))
    pairs = same_names(first.values())
    return SameNames([*respelled, *pairs.one], pairs.doubtful)


def _strange_letter(name: str, twin: str) -> str:
    """Name the first letter that makes two names differ, where it is of another script; else ""."""
    for letter, usual in zip(name, twin, strict=False):
        if letter != usual and not (letter.isascii() and usual.isascii()):
            strange = usual if letter.isascii() else letter
            return f" ({strange!r} is {unicodedata.name(strange, 'of another script')})"
    return ""


def movies_of_one_id(movies: Iterable[str]) -> list[str]:
    """Say which movies may be one: parts, copies and annotators' files of an id."""
    alike: dict[str, list[str]] = {}
    for movie in dict.fromkeys(movies):
        if match := _BEGINS.match(movie):
            alike.setdefault(match[0], []).append(movie)
    return [
        f"{len(movies_of_id)} movies begin with {imdb} ({first_few(movies_of_id, SHOWN)}): {NAME_ONCE}"
        for imdb, movies_of_id in alike.items()
        if len(movies_of_id) > 1
    ]


NAME_ONCE = "where they are one film, name it once, as in a column movie: folds leave out movies"


def movies_of_one_video(clips: Iterable[Clip]) -> list[str]:
    """Say which videos are of several movies, one after the other; refuse those of two at the same time.

    A tape may hold several films: then each lies before or behind the others.

    Raises
    ------
    ManifestError
        Naming video and movies whose spans lie between each other's, or are the whole file.
    """
    ranges: dict[str, dict[str, tuple[float, float]]] = {}
    normpath = cache(os.path.normpath)  # many clips are of few videos
    for clip in clips:
        if not clip.video:
            continue
        start = 0.0 if clip.start_s is None else clip.start_s
        end = float("inf") if clip.end_s is None else clip.end_s
        of_video = ranges.setdefault(normpath(clip.video), {})
        first, last = of_video.get(clip.movie, (start, end))
        of_video[clip.movie] = min(first, start), max(last, end)
    shared = {video: movies for video, movies in ranges.items() if len(movies) > 1}
    for video, movies in shared.items():
        in_time = sorted(movies, key=lambda movie: movies[movie])
        for before, behind in pairwise(in_time):
            if movies[behind][0] < movies[before][1]:
                raise ManifestError(
                    f"video {Path(video).name}: is of movies {before!r} and {behind!r} at the same time: "
                    "one film would be trained on and tested; name it once, or give each its own video",
                    "movie",
                )
    return [
        f"one video of {len(movies)} movies ({Path(video).name}: {first_few([*movies], SHOWN)}): {NAME_ONCE}"
        for video, movies in shared.items()
    ]


def videos_of_one_content(clips: Iterable[Clip], root: Path) -> list[str]:
    """Say which videos of different movies have the same bytes: of files of one size, at both ends."""
    by_size: dict[int, dict[Path, str]] = {}
    for video, movie in {clip.video: clip.movie for clip in clips if clip.video}.items():
        path = root / video
        if path.is_file() and path.stat().st_size:
            by_size.setdefault(path.stat().st_size, {})[path] = movie
    notes = []
    for same_size in by_size.values():
        if len(set(same_size.values())) == 1:
            continue
        copies: dict[str, list[Path]] = {}
        for path in same_size:
            copies.setdefault(_digest_of_ends(path), []).append(path)
        for paths in copies.values():
            movies = list(dict.fromkeys(same_size[path] for path in paths))
            if len(movies) > 1:
                files = first_few([path.name for path in paths], SHOWN)
                notes.append(
                    f"{len(movies)} movies of one video ({files}: {first_few(movies, SHOWN)}): {NAME_ONCE}"
                )
    return notes


def _digest_of_ends(path: Path) -> str:
    with open_regular(path) as file:
        digest = hashlib.sha256(file.read(ENDS))
        file.seek(max(path.stat().st_size - ENDS, 0))
        digest.update(file.read(ENDS))
    return digest.hexdigest()
