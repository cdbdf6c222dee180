"""Name the films that spans are of; refuse two films of one name."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from obygaze_features.errors import ManifestError
from obygaze_features.identity import imdb_id
from obygaze_features.manifest.clip import Clip, absolute
from obygaze_features.manifest.importers.film_files import FilmFiles
from obygaze_features.manifest.spans.names import (
    are_different_files,
    film_by_file,
    film_named,
    is_place,
    path_of,
    stem_of,
)
from obygaze_features.manifest.spans.sources import SOURCES
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.text_tables import counted, error_context
from obygaze_features.text import composed, first_few

PERSON_TABLES: Final = ("judgements", "table")
"""Kinds of tables with the columns of a manifest: what is wrong in them is refused, not left out."""


class FilmNames:
    """The names of films, with the places (paths or web pages) where files say that each film lies.

    Attributes
    ----------
    files
        The videos on disk.
    places
        (movie, kind of annotation file) -> annotation file -> the first place that it gives for the movie.
    of_span
        `_film_of_span`, cached: it returns the name of a span's film.
    """

    def __init__(self, files: FilmFiles) -> None:
        """Start with no names; videos are looked up in `files`."""
        self.files = files
        # Such as ("Vertigo", "srt") -> {a.srt: "/films/vertigo.mp4", b.srt: "/disk/vertigo.mp4"}.
        self.places: dict[tuple[str, str], dict[Path, str]] = {}
        # Movie -> its two places, for the notice that asks whether these are two films of one name.
        self._two_places: dict[str, str] = {}
        self.of_span = cache(self._film_of_span)  # cached, as thousands of spans are of a few films

    def _film_of_span(self, file: SpanFile, movie: str, media: str) -> str:
        """Name the film of a span, and remember where the file says that the film lies.

        The film is the one that the span's row names, else that of the option `--movie`, else it is named by
        the media file, else by the annotation file.

        `movie` and `media` are the film and the media file as the span's row names them; "" where it does
        not.

        Raises
        ------
        ManifestError
            A document of ELAN, which always can name its media file, names none, and there is no --movie.
        """
        movie_option = file.reading.movie
        name = film_named(movie) or movie_option or stem_of(media)
        is_named_by_file = not name
        if is_named_by_file:
            if file.account.kind == "eaf":
                raise file.error("does not say which film it is of: give --movie")
            name = film_by_file(file.path)  # without suffixes such as `.en.srt`
            _note_film_by_file_name(file, name)

        # One form for names that differ only in blanks or in how accents are encoded.
        name = composed(" ".join(name.split()))

        place = self._place_of_film(file, name, movie, media, is_named_by_file=is_named_by_file)
        if place:
            with error_context(file.path):
                self.add_place(file, name, place)
        return name

    def _place_of_film(
        self, file: SpanFile, name: str, movie: str, media: str, *, is_named_by_file: bool
    ) -> str:
        """Return the place (path or web page) of a span's film; "" if none is known.

        Two films may have the same name. Their places tell them apart (`add_place`). A film that is named by
        its title has no place.

        `name` is the film's name. `movie` and `media` are the film and the media file as the span's row names
        them; "" where it does not. `is_named_by_file` is whether the annotation file's name is the film's.
        """
        if is_place(movie):
            return movie
        if media and not movie:
            has_movie_option = bool(file.reading.movie)
            # With --movie all media of one name are the same film, whatever their folders.
            return path_of(media).name if has_movie_option else media
        if is_named_by_file:
            # A film that is named after an annotation file is taken to lie beside it.
            return absolute(file.path).with_name(name).as_posix()
        return ""

    def add_place(self, file: SpanFile, movie: str, media_path: str, column: str = "") -> None:
        """Remember the place (path or web page) where a file says that a film lies.

        Places are compared within each kind of annotation file. Two files that give a film different places
        are noted as a doubt (`doubts`): they may be of two films.

        `column` is the table's column of the place, for messages.

        Raises
        ------
        ManifestError
            The same file gave another place for the film, or the two places are different videos on disk.
        """
        # Annotation file -> the place that it gave first. Files are in the order in which they are read.
        place_of_file = self.places.setdefault((movie, file.account.kind), {})
        if file.path not in place_of_file:
            place_of_file[file.path] = media_path
        earlier_place_in_this_file = place_of_file[file.path]
        if are_different_files(earlier_place_in_this_file, media_path):
            raise _two_places_error(movie, earlier_place_in_this_file, media_path, column)

        place_in_first_file = next(iter(place_of_file.values()))
        if not are_different_files(place_in_first_file, media_path):
            return

        # Two files differ. That is an error if both videos exist, as they are two films then; else it may be
        # one film that lies elsewhere on another computer.
        earlier_video = self.files.find(place_in_first_file)
        video = self.files.find(media_path)
        are_on_disk = earlier_video is not None and video is not None
        if are_on_disk and earlier_video != video:
            raise _two_places_error(movie, place_in_first_file, media_path, column)
        self._two_places.setdefault(movie, f"{movie}: {place_in_first_file} and {media_path}")

    def doubts(self, clips: Iterable[Clip]) -> list[str]:
        """Return a notice for each sign that several films are taken as one, or one film as several.

        `clips` are all clips of the import.
        """
        notices = self._several_videos_of_one_movie(list(clips))
        notices += self._several_movies_of_one_folder()
        if self._two_places:
            shown = first_few([*self._two_places.values()], maximum=3)
            notices.append(
                f"{counted(len(self._two_places), 'movie')} named by several files ({shown}): "
                "films of one name are imported apart, with --movie"
            )
        return notices

    def _several_videos_of_one_movie(self, clips: Sequence[Clip]) -> list[str]:
        """Return a notice if all clips are of one movie with several videos, which may be several films.

        There is no notice if a column `movie` names this movie by its title: then it is certainly one film.
        """
        movies = {clip.movie for clip in clips}
        videos = {clip.video for clip in clips if clip.video}
        if len(movies) != 1 or len(videos) < 2:
            return []
        (movie,) = movies
        # Only a movie that is named by a path has a place; one with a title has none.
        has_place = any(movie == movie_with_place for movie_with_place, _ in self.places)
        if not has_place:
            return []
        fact = f"all {len(videos)} videos are taken as of one movie, {movie!r}"
        return [f"{fact}: if they are several films, add a column movie"]

    def _several_movies_of_one_folder(self) -> list[str]:
        """Return a notice if tables name videos in several folders, and several in one of the folders.

        Each video is taken as a movie, but those in one folder may be parts of one film.
        """
        places: list[str] = []  # of the movies that tables of people name by paths
        for (_movie, kind), place_of_file in self.places.items():
            if kind in PERSON_TABLES:
                places += place_of_file.values()
        folders = {path_of(place).parent for place in places}
        has_several_folders = len(folders) > 1
        has_folder_of_several_places = len(folders) < len(places)
        if not (has_several_folders and has_folder_of_several_places):
            return []
        fact = f"videos of {len(folders)} folders are taken as of {len(places)} movies"
        return [f"{fact}: if a folder is a film, add a column movie, or give the folders by --videos"]


def _note_film_by_file_name(file: SpanFile, name: str) -> None:
    """Note in a file's account that its film is named after it, if the name may be wrong.

    It may be wrong if the file's format may hold several films, or if what was removed from the file's name,
    such as `.en` of `.en.srt`, may belong to the title.

    `name` is the film's, from `film_by_file`.
    """
    stem = file.path.stem
    # `Mr. Bean.srt` has a point in its title. Only behind an IMDb id, as in `tt0111161.en.srt`, nothing can
    # belong to the name.
    is_imdb_id = imdb_id(name) == name
    may_lack_a_part = "." in stem and not is_imdb_id
    source = SOURCES.get(file.account.kind)
    is_of_one_film = source is not None and (source.is_of_one_film or bool(source.subtitles))
    if is_of_one_film and not may_lack_a_part:
        return
    removed_end = stem[len(name) :]  # such as `.en`: the name is the beginning of the stem
    removed = f", without {removed_end!r}" if name != stem else ""
    file.account.note(f"film {name!r} by the file's name{removed}")


def _two_places_error(movie: str, earlier_place: str, media_path: str, column: str) -> ManifestError:
    """Return the error for a film whose name stands for two different places.

    `column` is the table's column of the places, for the message; "" if they are in no table.
    """
    return ManifestError(
        f"{earlier_place!r} and {media_path!r} would both be movie {movie!r}: "
        "name each in a column movie, or import them apart with --movie",
        column,
    )
