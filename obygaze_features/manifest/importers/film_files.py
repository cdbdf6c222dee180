"""Find the video files that other people's annotations name, however they spell them."""

import posixpath
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from stat import S_ISREG

from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import VIDEO_SUFFIXES
from obygaze_features.io import in_any_form, local_path
from obygaze_features.manifest.clip import stored_path
from obygaze_features.manifest.importers.folder import list_files
from obygaze_features.manifest.spans.names import find_film, imdb_id, is_foreign, path_of, plain, stem_of
from obygaze_features.manifest.text_tables import counted
from obygaze_features.text import composed, first_few, unsuitable


class FilmFiles:
    """The video files below a folder, found by any spelling of their paths; those that are missing."""

    def __init__(self, folder: Path | str | None, root: Path) -> None:
        self.root = root
        self.folder = None if folder is None else local_path(folder)
        self.files: list[PurePosixPath] = []
        self.notices: list[str] = []
        if self.folder is not None:
            self.files, self.notices = list_files(self.folder, VIDEO_SUFFIXES, "video")
        self._by_end = _by_end(self.files)
        self._by_name = _by_name(self.files)
        self._by_letters = {bare_name(file.stem): file for file in reversed(self.files)}
        self._named: set[PurePosixPath] = set()
        self._missing: dict[str, str] = {}
        self.find, self.video = cache(self._find), cache(self._video)  # many spans are of few films

    def _find(self, place: str) -> PurePosixPath | None:
        """Find the file that a path, a URL or a film's id names, by as much of the path as there is."""
        parts = path_of(composed(place.strip())).parts
        deepest = max((len(file.parts) for file in self.files), default=0)
        for n in range(min(len(parts), deepest), 0, -1):
            end = plain("/".join(parts[-n:]))
            found = [file for file in self._by_end.get(end, ()) if len(file.parts) >= n]
            exact = [file for file in found if composed("/".join(file.parts[-n:])) == "/".join(parts[-n:])]
            found = exact if len(exact) == 1 else found
            if found:
                break
        else:
            names = [name for form in _forms(place) for name in self._by_name.get(form, ())]
            stem = find_film(place, {file.stem for file in names})
            found = [file for file in dict.fromkeys(names) if file.stem == stem]
        if len(found) > 1:
            raise ManifestError(
                f"{place!r} could be {' or '.join(map(str, found))}: give more of its path", "video"
            )
        self._named.update(found)
        return found[0] if found else None

    def film_of(self, movie: str) -> str:
        """Return where the film of a name lies from the manifest; "" where that is not known."""
        file = self.find(movie) if self.files else None
        if self.files and file is None:
            self._missing.setdefault(movie, f"{movie}{self._hint(movie)}")
        return "" if file is None else stored_path((self.folder or Path()) / file, self.root)

    def _video(self, table: Path, written: str) -> tuple[PurePosixPath, str]:
        """Return the path that names a video's film, and where it lies; note one that is not there."""
        if what := unsuitable(written):
            raise ManifestError(f"{written!r} {what}", "video")
        folder, path, file = self.folder or table.absolute().parent, path_of(written), self.find(written)
        named = file or PurePosixPath(posixpath.normpath(path.as_posix()))
        if is_foreign(written) or named.is_absolute() or ".." in named.parts:
            named = PurePosixPath(named.name)
        at_home = local_path(written)  # which stays as it is where there is no such user
        is_home = file is None and written.startswith("~") and at_home.is_absolute()
        inside = str(file or (named if is_foreign(written) else path))
        place = at_home if is_home else in_any_form(folder, inside)
        try:
            is_there = S_ISREG(place.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            is_there = False
        except OSError as error:  # from Python 3.14 on is_file says False of names that are too long
            raise ManifestError(f"{written[:60]!r}...: {error.strerror}", "video") from None
        if not is_there:
            self._missing.setdefault(written, f"{place}{self._hint(written)}")
        return named, stored_path(place, self.root)

    def missing(self) -> list[str]:
        """Say which videos that were named are not there."""
        what = counted(len(self._missing), "named video is", "named videos are")
        shown = first_few([*self._missing.values()], 3)
        return [f"{what} missing on disk: {shown}"] if self._missing else []

    def unnamed(self) -> list[str]:
        """Say how many videos no span names."""
        n = len(set(self.files) - self._named)
        return [f"left out {counted(n, 'video')} that no span names"] if n else []

    def _hint(self, place: str) -> str:
        """Propose the video whose letters and digits are the same: clips' names differ by one."""
        near = self._by_letters.get(bare_name(stem_of(place)))
        return f" (did you mean '{near}'?)" if near else ""


def bare_name(name: str) -> str:
    """Return the letters and digits of a name, as names are compared."""
    return re.sub(r"[\W_]", "", plain(name))


def _by_end(files: Sequence[PurePosixPath]) -> dict[str, list[PurePosixPath]]:
    """Return files by each end of their paths, as names are compared."""
    by_end: dict[str, list[PurePosixPath]] = {}
    for file in files:
        for n in range(1, len(file.parts) + 1):
            by_end.setdefault(plain("/".join(file.parts[-n:])), []).append(file)
    return by_end


def _by_name(files: Sequence[PurePosixPath]) -> dict[str, list[PurePosixPath]]:
    """Return files by the forms of their names by which films are found."""
    by_name: dict[str, list[PurePosixPath]] = {}
    for file in files:
        for form in dict.fromkeys((plain(file.stem), composed(file.stem), imdb_id(file.stem))):
            if form:
                by_name.setdefault(form, []).append(file)
    return by_name


def _forms(place: str) -> list[str]:
    """List the forms of a place that a film can be named by; see `find_film`."""
    names = (place, path_of(place).name, stem_of(place))
    forms = [composed(place.strip()), *map(plain, names), imdb_id(place)]
    return [form for form in dict.fromkeys(forms) if form]
