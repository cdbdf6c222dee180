"""Find the video files that other people's annotations name, whatever spelling they use."""

import posixpath
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from typing import NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import VIDEO_SUFFIXES
from obygaze_features.identity import imdb_id, looks_of_title, plain
from obygaze_features.io import in_any_form, local_path
from obygaze_features.manifest.clip import stored_path
from obygaze_features.manifest.importers.folder import list_files
from obygaze_features.manifest.spans.names import find_film, is_foreign, path_of, stem_of
from obygaze_features.manifest.text_tables import counted
from obygaze_features.text import composed, first_few, unsuitable

_NO_LETTER = re.compile(r"[\W_]")


class NamedVideo(NamedTuple):
    """A video that a table names.

    Attributes
    ----------
    path_in_folder
        Path of the video below its folder, or only its name if it lies elsewhere. Its film is named by it.
    path
        Path of the video as the manifest stores it.
    """

    path_in_folder: PurePosixPath
    path: str


class FilmFiles:
    """The video files below a folder, found by any spelling of their paths, and those that are missing.

    Parameters
    ----------
    folder
        Folder of the videos; None if the person gives none.
    root
        Folder of the manifest.

    Attributes
    ----------
    files
        The videos below the folder, by their paths in it.
    notices
        What was left out in the folder, a line each.
    """

    def __init__(self, folder: Path | str | None, root: Path) -> None:
        """List the videos below the folder, and index them by every form in which they may be named."""
        self.root = root
        self.folder = None if folder is None else local_path(folder)
        self.files: list[PurePosixPath] = []
        self.notices: list[str] = []
        if self.folder is not None:
            self.files, self.notices = list_files(self.folder, VIDEO_SUFFIXES, "video")

        # `psycho/a.mp4` is found by `psycho/a.mp4` and `a.mp4`; else by its name without suffix, `a`. Where
        # neither finds a file, one whose name has the same letters and digits is suggested: of several, the
        # first.
        self._files_by_end = _files_by_end(self.files)
        self._files_by_name = _files_by_name(self.files)
        self._first_file_of_bare_name: dict[str, PurePosixPath] = {}
        for file in self.files:
            self._first_file_of_bare_name.setdefault(bare_name(file.stem), file)

        self._named: set[PurePosixPath] = set()  # the files that were found so far
        self._missing: dict[str, str] = {}  # video or movie as it is named -> text of a notice
        # The methods that find a video, cached, as many spans are of few films.
        self.find = cache(self._find)
        self.video = cache(self._video)

    def _find(self, reference: str) -> PurePosixPath | None:
        """Return the video file that a path, a URL or a film's id names; None if there is no such file.

        Raises
        ------
        ManifestError
            Several files fit equally well.
        """
        files = self._files_with_longest_end(reference) or self._files_of_film(reference)
        if len(files) > 1:
            raise ManifestError(
                f"{reference!r} could be {' or '.join(map(str, files))}: give more of its path", "video"
            )
        self._named.update(files)
        return files[0] if files else None

    def _files_with_longest_end(self, reference: str) -> list[PurePosixPath]:
        """Return the files whose paths have the most last parts in common with a given path or URL.

        Of `a.mp4` and `psycho/a.mp4`, the path `/films/psycho/a.mp4` means the second. Case and blanks are
        ignored (`plain`). If several files fit and exactly one of them has the same case and blanks, it is
        the only one.
        """
        parts = path_of(composed(reference.strip())).parts
        max_parts_of_files = max((len(file.parts) for file in self.files), default=0)
        max_parts = min(len(parts), max_parts_of_files)
        for n_parts in range(max_parts, 0, -1):  # the longest end first
            end = "/".join(parts[-n_parts:])
            files_with_end = self._files_by_end.get(plain(end), ())
            files = [file for file in files_with_end if len(file.parts) >= n_parts]
            if not files:
                continue
            spelled_alike = [file for file in files if composed("/".join(file.parts[-n_parts:])) == end]
            return spelled_alike if len(spelled_alike) == 1 else files
        return []

    def _files_of_film(self, media_path: str) -> list[PurePosixPath]:
        """Return the files of the film that a path, a title or an IMDb id names.

        `films/Psycho.avi` and `psycho` both name the film of the file `Psycho.mp4`. Files in several folders
        may have the same name: all of them are returned.

        Few files have a name that is like the given one in some form. Which of these names is meant,
        `find_film` decides, by the rules that hold for films everywhere.
        """
        candidates: list[PurePosixPath] = []
        for form in _forms_of_name(media_path):
            candidates += self._files_by_name.get(form, ())
        stems = {file.stem for file in candidates}  # a film is called as its file without the suffix
        stem_of_film = find_film(media_path, stems)  # None if it names none of these
        return [file for file in dict.fromkeys(candidates) if file.stem == stem_of_film]

    def stored_path_of_movie(self, movie: str) -> str:
        """Return the path of a movie's video as the manifest stores it; "" if there is none.

        A movie without a video is remembered as missing if a folder of videos was given.
        """
        if not self.files:
            return ""
        file = self.find(movie)
        if file is None:
            self._missing.setdefault(movie, f"{movie}{self._hint(movie)}")
            return ""
        return stored_path((self.folder or Path()) / file, self.root)

    def _video(self, table: Path, reference: str) -> NamedVideo:
        """Return the video that a cell of a table names, and remember it as missing if it is not on disk.

        Parameters
        ----------
        table
            Path of the table. The video is looked for in its folder if the person gives no folder of videos.
        reference
            The cell: a path or a URL.
        """
        problem = unsuitable(reference)  # such as a control character
        if problem:
            raise ManifestError(f"{reference!r} {problem}", "video")
        found = self.find(reference)
        path_on_disk = self._path_on_disk(table, reference, found)
        if not _is_regular_file(path_on_disk, reference):
            self._missing.setdefault(reference, f"{path_on_disk}{self._hint(reference)}")

        # The film is named by the path below the folder. Of a path outside, of a URL and of a path of another
        # system, the folders say nothing of the film.
        path_in_folder = found or _normal_path(reference)
        is_outside = path_in_folder.is_absolute() or ".." in path_in_folder.parts
        if is_outside or is_foreign(reference):
            path_in_folder = PurePosixPath(path_in_folder.name)
        return NamedVideo(path_in_folder, stored_path(path_on_disk, self.root))

    def _path_on_disk(self, table: Path, reference: str, found: PurePosixPath | None) -> Path:
        """Return the path where the video should be that a cell names; it need not exist.

        - A video that was found (`found`) is in the folder of videos.
        - `~/a.mp4` is in the home of the user, if that is known.
        - Of a URL, or a path of another system such as `C:/films/a.mp4`, only the file's name is used.
        - Any other path is one below the folder of videos, or below the table's folder if the person gives
          none.
        """
        folder = self.folder or table.absolute().parent
        # `in_any_form` finds names whose accents the disk has in another form of Unicode.
        if found is not None:
            return in_any_form(folder, str(found))
        if reference.startswith("~"):
            path_at_home = local_path(reference)
            is_home_known = path_at_home.is_absolute()  # it stays relative if there is no such user
            if is_home_known:
                return path_at_home
        if is_foreign(reference):
            return in_any_form(folder, _normal_path(reference).name)
        return in_any_form(folder, str(path_of(reference)))

    def missing(self) -> list[str]:
        """Return a notice that says which named videos are not on disk; an empty list if all are."""
        if not self._missing:
            return []
        what = counted(len(self._missing), "named video is", "named videos are")
        shown = first_few([*self._missing.values()], maximum=3)
        return [f"{what} missing on disk: {shown}"]

    def unnamed(self) -> list[str]:
        """Return a notice that says how many videos no span names; an empty list if spans name all."""
        n_unnamed = len(set(self.files) - self._named)
        if not n_unnamed:
            return []
        return [f"left out {counted(n_unnamed, 'video')} that no span names"]

    def _hint(self, media_path: str) -> str:
        """Return a hint to the video whose name has the same letters and digits; "" if there is none."""
        near = self._first_file_of_bare_name.get(bare_name(stem_of(media_path)))
        if near is None:
            return ""
        return f" (did you mean '{near}'?)"


def _normal_path(written: str) -> PurePosixPath:
    """Return the path that a cell names, without `.`, and without `..` but at its beginning."""
    return PurePosixPath(posixpath.normpath(path_of(written).as_posix()))


def _is_regular_file(path: Path, written: str) -> bool:
    """Return whether a path is that of a file; refuse a path that the system rejects, such as a too long one.

    `written` is the path as the table has it, for the message.
    """
    try:
        return S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:  # Path.is_file would hide this error from Python 3.14 on
        raise ManifestError(f"{written[:60]!r}...: {error.strerror}", "video") from None


def bare_name(name: str) -> str:
    """Return the letters and digits of a name, in the form in which names are compared (`plain`)."""
    return _NO_LETTER.sub("", plain(name))


def _files_by_end(files: Sequence[PurePosixPath]) -> dict[str, list[PurePosixPath]]:
    """Return end of a path -> the files with this end: `a/b.mp4` is there as `a/b.mp4` and as `b.mp4`.

    Ends are in the form in which names are compared (`plain`).
    """
    by_end: dict[str, list[PurePosixPath]] = {}
    for file in files:
        for n_parts in range(1, len(file.parts) + 1):
            end = plain("/".join(file.parts[-n_parts:]))
            by_end.setdefault(end, []).append(file)
    return by_end


def _files_by_name(files: Sequence[PurePosixPath]) -> dict[str, list[PurePosixPath]]:
    """Return name -> the files of this name, which is without suffix and in several forms.

    These are the name as it is written, as names are compared (`plain`), as an IMDb id in full, and the forms
    in which spellings of one title are equal (`is_one_title`).
    """
    by_name: dict[str, list[PurePosixPath]] = {}
    for file in files:
        forms = (plain(file.stem), composed(file.stem), imdb_id(file.stem))
        for form in dict.fromkeys((*forms, *looks_of_title(file.stem))):
            if form:
                by_name.setdefault(form, []).append(file)
    return by_name


def _forms_of_name(media_path: str) -> list[str]:
    """Return the forms of a path, a URL or a title by which a file is looked up in `_files_by_name`.

    They are its name without case and accents, with and without folders and suffix; the id of the Internet
    Movie Database in it; and other spellings of the same title, such as "The Wind" for "Wind, The".
    """
    names = (media_path, path_of(media_path).name, stem_of(media_path))
    forms = [composed(media_path.strip()), *map(plain, names), imdb_id(media_path)]
    for name in names:
        forms += looks_of_title(name)
    return [form for form in dict.fromkeys(forms) if form]
