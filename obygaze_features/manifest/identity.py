"""Find films, annotators and videos that a manifest has under two names.

Folds leave out movies, and agreement is between annotators: a film under two names would be trained on and
tested, and an annotator under two names would agree with itself. What is surely one is refused; what may be
one is noted.
"""

import hashlib
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.identity import SameNames, as_typed, imdb_id, same_movies, same_names
from obygaze_features.manifest.clip import Clip, video_key
from obygaze_features.manifest.spans.names import without_zeros
from obygaze_features.text import first_few
from obygaze_features.untrusted import open_regular

_LEADING_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
"""Zeros before the other digits of a number."""

_IMDB_ID = re.compile(r"tt\d{7,9}(?!\d)", re.ASCII | re.IGNORECASE)

PEOPLE = ("annotator", "worker")
"""Columns that name people."""

SHOWN = 3
"""Names or files that a note lists."""

N_COMPARED_BYTES = 1 << 20
"""Bytes at the beginning and at the end of videos of one size that are compared."""

_FirstPlaces = Mapping[str, tuple[object, str]]
"""Name -> the file in which it is read first ("" for none), and the place there, such as a line."""


@checked
def refuse_twins(column: str, names: _FirstPlaces) -> None:
    """Refuse two spellings of one name (`same_names`); for films, also two forms of one IMDb id.

    Two movies are also one if they have one IMDb id, or differ in where an article stands, as "The Birds" and
    "Birds, The" do. Two people who are called by numbers are also one if these differ in zeros, as 1 and 01.

    Parameters
    ----------
    column
        The column of the names: `movie`, or one of `PEOPLE`.
    names
        Each name, in the order of reading, with the file and place where it is first.

    Raises
    ------
    ManifestError
        Two spellings are one name; names both, with their places.
    """
    _refuse_one_name_in_two_spellings(column, names, _same_names(column, names))


def _refuse_one_name_in_two_spellings(column: str, names: _FirstPlaces, found: SameNames) -> None:
    """Refuse the first pair of names that were found to be one name; the message gives the place of each."""
    if not found.same:
        return
    name, twin = found.same[0]
    file, place = names[name]
    _, place_of_twin = names[twin]
    location = f"{file}: {place}" if file else place
    note = _note_on_foreign_letter(name, twin)  # why they look alike and are not
    raise ManifestError(
        f"{location}: {column} {name!r} and {twin!r} ({place_of_twin}) are one name{note}: spell both alike",
        column,
    )


@checked
def same_films(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return each name of a film that is another spelling of an earlier one, with the film's first name.

    Three spellings may be found one from the other, the last by the second and the second by the first.

    Examples
    --------
    >>> from obygaze_features.manifest.identity import same_films
    >>> same_films(["tt0054215", "Psycho", "54215", "PSYCHO"])
    [('54215', 'tt0054215'), ('PSYCHO', 'Psycho')]
    """
    earlier_of = dict(_same_names("movie", names).same)
    pairs = []
    for name, earlier in earlier_of.items():
        first = earlier
        while first in earlier_of:
            first = earlier_of[first]
        pairs.append((name, first))
    return pairs


def check_identity(clips: Iterable[Clip], root: Path | None = None) -> list[str]:
    """Refuse films and annotators with two spellings, and videos of two films at once; note what is doubtful.

    Parameters
    ----------
    clips
        The clips of one manifest.
    root
        Folder that their videos are under, to compare the contents of files; None if they are not compared.

    Returns
    -------
    list of str
        A note for each doubt: names that look alike, movies that share an IMDb id, a video that holds two
        movies, and videos of different movies with the same content.

    Raises
    ------
    ManifestError
        One film or annotator has two spellings, or one stretch of a video belongs to two movies.

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
        notes += _check_names(column, clips)
    notes += movies_of_one_id(clip.movie for clip in clips)
    notes += movies_of_one_video(clips)
    if root is not None:
        notes += videos_of_one_content(clips, root)
    return notes


def _check_names(column: str, clips: Iterable[Clip]) -> list[str]:
    """Refuse two spellings of one name in a column; return a note for each two names that look alike."""
    no_file = ""  # the clips need not be from a file
    first_places: dict[str, tuple[object, str]] = {}  # name -> file and place where it is first
    for clip in clips:
        name = getattr(clip, column)
        if name and name not in first_places:
            first_places[name] = (no_file, f"clip {clip.clip_id!r}")
    pairs_of_names = _same_names(column, first_places)  # those that are one name, and those that may be
    _refuse_one_name_in_two_spellings(column, first_places, pairs_of_names)
    notes = []
    for name, lookalike in pairs_of_names.doubtful:
        notes.append(f"{column} {name!r} and {lookalike!r} look alike: if they are one, spell both alike")
    return notes


def _same_names(column: str, names: Iterable[str]) -> SameNames:
    """Find names in a column of a manifest that are spellings of one name, or may be."""
    if column in PEOPLE:
        return _same_annotators(names)
    if column == "movie":
        return same_movies(names)
    return same_names(names)


def _same_annotators(names: Iterable[str]) -> SameNames:
    """Find names of annotators, or of other people, that are spellings of one, or may be.

    Two rules apply. By the first, zeros before and behind numbers do not count: 1, 01 and 1.0, which
    spreadsheets write for each other, are one name; R1 and R01 may be one. By the second, names are one or
    look alike as all other names do (`same_names`).
    """
    first_of_key: dict[str, str] = {}  # name in one form, without such zeros -> the first name that has it
    same = []  # pairs of a name and the first spelling of it
    doubtful = []
    for name in dict.fromkeys(names):
        without_decimals = as_typed(without_zeros(name))  # 1.0 as 1
        key = _LEADING_ZEROS.sub("", without_decimals)  # 01 as 1
        first = first_of_key.setdefault(key, name)
        if first == name:
            continue
        is_number = key.isdecimal()
        is_respelled = as_typed(first) == as_typed(name)  # they differ in more than zeros, such as in case
        if is_number or is_respelled:
            same.append((name, first))
        else:
            doubtful.append((name, first))

    # What the first rule found is not found again by the second.
    known_pairs = {*same, *doubtful}
    others = same_names(names)
    same += [pair for pair in others.same if pair not in known_pairs]
    doubtful += [pair for pair in others.doubtful if pair not in known_pairs]
    return SameNames(same, doubtful)


def _note_on_foreign_letter(name: str, twin: str) -> str:
    """Return a note on the first letter outside ASCII in which two names differ; "" if there is none."""
    for letter, lookalike_letter in zip(name, twin, strict=False):
        are_ascii = letter.isascii() and lookalike_letter.isascii()
        if letter != lookalike_letter and not are_ascii:
            not_ascii = lookalike_letter if letter.isascii() else letter
            return f" ({not_ascii!r} is {unicodedata.name(not_ascii, 'of another script')})"
    return ""


def movies_of_one_id(movies: Iterable[str]) -> list[str]:
    """Return a note for each IMDb id with which the names of several movies begin: they may be one film."""
    movies_of_id: dict[str, list[str]] = {}
    for movie in dict.fromkeys(movies):
        match = _IMDB_ID.match(movie)
        if match is not None:
            movies_of_id.setdefault(imdb_id(match[0]), []).append(movie)
    notes = []
    for film_id, names in movies_of_id.items():
        if len(names) > 1:
            shown = first_few(names, SHOWN)
            notes.append(f"{len(names)} movies begin with {film_id} ({shown}): {NAME_FILM_ONCE}")
    return notes


NAME_FILM_ONCE = "where they are one film, name it once, as in a column movie: folds leave out movies"


def movies_of_one_video(clips: Iterable[Clip]) -> list[str]:
    """Return a note for each video that holds several movies, as a tape may; refuse movies that overlap.

    A movie reaches from the start of its first clip in the video to the end of its last one. A clip without
    times is the whole video.

    Raises
    ------
    ManifestError
        Two movies of a video overlap in time; names the video and both.
    """
    notes = []
    for video, ranges in _ranges_of_movies(clips).items():
        if len(ranges) == 1:
            continue
        movies_by_start = sorted(ranges, key=lambda movie: ranges[movie])
        for movie, next_movie in pairwise(movies_by_start):
            if ranges[next_movie].start_s < ranges[movie].end_s:
                raise ManifestError(
                    f"video {Path(video).name}: is of movies {movie!r} and {next_movie!r} at the same time: "
                    "one film would be trained on and tested; name it once, or give each its own video",
                    "movie",
                )

        movies = first_few([*ranges], SHOWN)
        notes.append(f"one video of {len(ranges)} movies ({Path(video).name}: {movies}): {NAME_FILM_ONCE}")
    return notes


class _Range(NamedTuple):
    """The time of a video from the start of a movie's first clip to the end of its last one."""

    start_s: float
    end_s: float


def _ranges_of_movies(clips: Iterable[Clip]) -> dict[str, dict[str, _Range]]:
    """Return video -> movie -> the time from the first start to the last end of the movie's clips in it.

    A clip without times is the whole video, from 0 s to infinity.
    """
    ranges: dict[str, dict[str, _Range]] = {}
    for clip in clips:
        if not clip.video:
            continue
        start_s = 0.0 if clip.start_s is None else clip.start_s
        end_s = math.inf if clip.end_s is None else clip.end_s
        ranges_of_video = ranges.setdefault(video_key(clip.video), {})
        known = ranges_of_video.get(clip.movie, _Range(start_s, end_s))
        ranges_of_video[clip.movie] = _Range(min(known.start_s, start_s), max(known.end_s, end_s))
    return ranges


def videos_of_one_content(clips: Iterable[Clip], root: Path) -> list[str]:
    """Return a note for each group of videos of different movies that seem to be copies of one file.

    Files count as copies if they have the same size and the same first and last bytes (`N_COMPARED_BYTES`).
    """
    movie_of_video = {clip.video: clip.movie for clip in clips if clip.video}
    movies_by_size: dict[int, dict[Path, str]] = {}  # size of a file -> path -> movie
    for video, movie in movie_of_video.items():
        path = root / video
        if path.is_file() and path.stat().st_size:
            movies_by_size.setdefault(path.stat().st_size, {})[path] = movie

    notes = []
    for movie_of_path in movies_by_size.values():
        has_several_movies = len(set(movie_of_path.values())) > 1
        if not has_several_movies:
            continue
        for paths in _groups_of_copies(movie_of_path):
            movies = list(dict.fromkeys(movie_of_path[path] for path in paths))
            if len(movies) > 1:
                files = first_few([path.name for path in paths], SHOWN)
                shown = first_few(movies, SHOWN)
                notes.append(f"{len(movies)} movies of one video ({files}: {shown}): {NAME_FILM_ONCE}")
    return notes


def _groups_of_copies(paths: Iterable[Path]) -> list[list[Path]]:
    """Group files of one size by their first and last bytes: the files of a group seem to be copies."""
    copies: dict[str, list[Path]] = {}
    for path in paths:
        copies.setdefault(_digest_of_ends(path), []).append(path)
    return list(copies.values())


def _digest_of_ends(path: Path) -> str:
    """Return the SHA-256 of the first and last bytes of a file (`N_COMPARED_BYTES` each)."""
    with open_regular(path) as file:
        digest = hashlib.sha256(file.read(N_COMPARED_BYTES))
        file.seek(max(path.stat().st_size - N_COMPARED_BYTES, 0))
        digest.update(file.read(N_COMPARED_BYTES))
    return digest.hexdigest()
