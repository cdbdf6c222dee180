"""Name the films that spans are of; refuse two films of one name."""

from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import Clip, absolute, grouped
from obygaze_features.manifest.importers.film_files import FilmFiles
from obygaze_features.manifest.spans.names import (
    are_apart,
    film_by_file,
    film_named,
    imdb_id,
    is_place,
    path_of,
    stem_of,
)
from obygaze_features.manifest.spans.sources import SUBTITLES
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.text_tables import counted, placed
from obygaze_features.text import composed, first_few

OF_ONE_FILM: Final = (*SUBTITLES, "textgrid", "elan-text")
"""Kinds whose files are of one film, which they are named by."""

OWN_TABLES: Final = ("judgements", "table")
"""Kinds of tables with the columns of a manifest: what is wrong in them is refused, not left out."""


class FilmNames:
    """The films that files name, with the places (paths, pages) that are said of each.

    Attributes
    ----------
    files
        The videos on disk.
    places
        (movie, kind of file) -> file -> the first place that it says of the movie.
    """

    def __init__(self, files: FilmFiles) -> None:
        self.files = files
        self.places: dict[tuple[str, str], dict[Path, str]] = {}
        self._doubtful: dict[str, str] = {}
        self.of_span = cache(self._of_span)  # many spans are of few films

    def _of_span(self, file: SpanFile, movie: str, media: str) -> str:
        """Name a span's film: as its file does, as the person does, by its media, or by the file's name."""
        name = film_named(movie) or file.reading.movie or stem_of(media)
        if not name and file.account.kind == "eaf":
            raise file.error("does not say which film it is of: give --movie")
        is_named_by_file = not name
        name = composed(" ".join((name or _film_by_name(file)).split()))
        if is_place(movie):
            place = movie
        elif media and not movie:
            # With --movie it is one film, wherever it lies.
            place = path_of(media).name if file.reading.movie else media
        elif is_named_by_file:
            place = absolute(file.path).with_name(name).as_posix()
        else:
            return name
        with placed(file.path):
            self.add_place(file, name, place)
        return name

    def add_place(self, file: SpanFile, movie: str, place: str, column: str = "") -> None:
        """Keep where a film is said to lie.

        Raises
        ------
        ManifestError
            The film was elsewhere in this file, or is two videos on disk.
        """
        by_file = self.places.setdefault((movie, file.account.kind), {file.path: place})
        first_here = by_file.setdefault(file.path, place)
        first_of_all = next(iter(by_file.values()))
        for other in dict.fromkeys((first_here, first_of_all)):
            if other == place or not are_apart(other, place):
                continue
            videos = {self.files.find(other), self.files.find(place)} - {None}
            if other == first_here or len(videos) > 1:
                raise ManifestError(
                    f"{other!r} and {place!r} would both be movie {movie!r}: "
                    "name each in a column movie, or import them apart with --movie",
                    column,
                )
            self._doubtful.setdefault(movie, f"{movie}: {other} and {place}")

    def doubts(self, clips: Iterable[Clip]) -> list[str]:
        """Say what makes it doubtful which videos are one film."""
        notices = []
        movies = grouped(clips, "movie")
        videos = {clip.video for own in movies.values() for clip in own} - {""}
        if len(movies) == 1 < len(videos) and movies.keys() <= {movie for movie, _ in self.places}:
            notices.append(
                f"all {len(videos)} videos are taken as of one movie, {min(movies)!r}: "
                "if they are several films, add a column movie"
            )
        in_tables = [
            place
            for (_, kind), by_file in self.places.items()
            if kind in OWN_TABLES
            for place in by_file.values()
        ]
        folders = Counter(path_of(place).parent for place in in_tables)
        if 1 < len(folders) < len(in_tables):
            notices.append(
                f"videos of {len(folders)} folders are taken as of {len(in_tables)} movies: "
                "if a folder is a film, add a column movie, or give the folders by --videos"
            )
        if self._doubtful:
            shown = first_few([*self._doubtful.values()], 3)
            notices.append(
                f"{counted(len(self._doubtful), 'movie')} named by several files ({shown}): "
                "films of one name are imported apart, with --movie"
            )
        return notices


def _film_by_name(file: SpanFile) -> str:
    """Name the film by the file, without suffixes and language; note one whose file may be of several."""
    name, stem = film_by_file(file.path), file.path.stem
    if file.account.kind not in OF_ONE_FILM or ("." in stem and imdb_id(name) != name):
        cut = f", without {stem[len(name) :]!r}" if name != stem else ""
        file.account.note(f"film {name!r} by the file's name{cut}")
    return name
