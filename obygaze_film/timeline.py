"""Represent, read and write a scored film: its rows in time, its shots, and its record."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from obygaze_features.arguments import checked, made_by
from obygaze_features.io import local_path
from obygaze_features.manifest import same_films
from obygaze_film.errors import FilmError
from obygaze_film.film_time import FilmTime, film_time
from obygaze_film.schema import NO_CLASSES, NO_TEXTS, NO_TRACES, NO_VARIABLES, FilmRecord, ModelRecord, Rate
from obygaze_film.scored_files import RECORD, read_scored, write_films
from obygaze_film.segments import find_segments


@made_by("read_films([FOLDER])[0]")
@dataclass(frozen=True, eq=False)
class Timeline:
    """A film scored by models over time.

    Attributes
    ----------
    record : FilmRecord
        Content of `film.json`.
    table : DataFrame
        Content of `timeline.csv`: for each model one row per shot (or step between windows), in the order
        of models and of time. Rows of a model do not overlap, and cover the film.
    shots : DataFrame
        Content of `shots.csv`; empty if no shots were detected.
    frames : DataFrame
        Content of `frames.csv`: values of models for frames, step by step (`score.traces_of`); empty
        if the store has no frames that they can read.
    subtitles : DataFrame
        Content of `subtitles.csv`: what is said, with its times; empty unless it was asked for.
    variables : DataFrame
        Content of `variables.csv`: how the film is staged, window by window; empty unless it was asked for.
    classes : DataFrame
        Content of `classes.csv`: which classes a classifier finds probable, window by window; empty unless
        the store has one's answers.

    Examples
    --------
    >>> from pathlib import Path
    >>> import obygaze_features as of
    >>> import obygaze_film
    >>> timeline = obygaze_film.score_film(of.open_store("stores/more"), ["kept/linear.model"], movie="film6")
    >>> timeline.rows().shape[0], timeline.rate().reason
    (16, '')
    >>> timeline.write(Path("scored"))
    >>> obygaze_film.Timeline.read("scored").rate() == timeline.rate()
    True
    """

    record: FilmRecord
    table: pd.DataFrame
    shots: pd.DataFrame
    frames: pd.DataFrame = field(default_factory=lambda: NO_TRACES)
    subtitles: pd.DataFrame = field(default_factory=lambda: NO_TEXTS)
    variables: pd.DataFrame = field(default_factory=lambda: NO_VARIABLES)
    classes: pd.DataFrame = field(default_factory=lambda: NO_CLASSES)

    @property
    def movie(self) -> str:
        """Name of the film in the manifest."""
        return self.record.movie

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Keys of the models in the tables."""
        return tuple(model.key for model in self.record.models)

    def model(self, key: str | None = None) -> ModelRecord:
        """Find a model by its key; by default the first that decides, or else the first.

        Raises
        ------
        FilmError
            No model has this key.
        """
        models = self.record.models
        if key is None:
            for model in models:
                if model.decides:
                    return model
            return models[0]
        if key in self.keys:
            return models[self.keys.index(key)]
        raise FilmError(f"film {self.movie} has no model {key!r}: it has {', '.join(self.keys)}")

    def rows(self, key: str | None = None) -> pd.DataFrame:
        """Return the rows of one model, in time order."""
        return self._rows_by_model[self.model(key).key].copy()

    @cached_property
    def _rows_by_model(self) -> dict[str, pd.DataFrame]:
        """Key of each model -> its rows, in time order; looked up only once."""
        return {key: self.table[self.table["model"] == key].reset_index(drop=True) for key in self.keys}

    def segments(self, key: str | None = None, top: int = 20) -> pd.DataFrame:
        """Find the segments of one model; columns as in `segments.csv`, best first.

        Parameters
        ----------
        key : str, optional
        top : int
            Minimum number of segments, if the film has as many: those that stay below the threshold have
            `reaches` 0. All that reach it are listed.
        """
        return find_segments(self.rows(key), self.model(key), top)

    def time(self, key: str | None = None) -> FilmTime:
        """Return how many seconds of the film a model judged (gave a probability), and how many it did not.

        Black pictures and credits are counted apart.
        """
        return self._time_by_model[self.model(key).key]

    @cached_property
    def _time_by_model(self) -> dict[str, FilmTime]:
        """Key of each model -> how much of the film's time it judged; computed only once."""
        return {key: film_time(self.rows(key)) for key in self.keys}

    def rate(self, key: str | None = None) -> Rate:
        """Return the share of the film's time that a model expects to be positive, or why it is refused."""
        return self.model(key).rate

    def write(self, folder: Path | str) -> None:
        """Write `film.json` and its tables into a folder, as `write_films` does."""
        write_films([self], folder)

    @classmethod
    def read(cls, folder: Path | str) -> "Timeline":
        """Read a folder that `obygaze film score` wrote.

        Raises
        ------
        FilmError
            It is not such a folder, or a file is damaged; names file and column.
        """
        record, tables = read_scored(local_path(folder))
        return cls(
            record=record,
            table=tables.timeline,
            shots=tables.shots,
            frames=tables.frames,
            subtitles=tables.subtitles,
            variables=tables.variables,
            classes=tables.classes,
        )


def shared_model(films: Sequence[Timeline], key: str | None) -> ModelRecord:
    """Find the model that scored all of these films.

    `key` is its key; by default it is the first film's first classifier (`Timeline.model`).

    Raises
    ------
    FilmError
        The films were scored by different models, or a film has no model of this key.
    """
    models = [film.model(key) for film in films]
    if len({(model.key, model.sha256) for model in models}) > 1:
        raise FilmError("the films were scored by different models: score them by one")
    return models[0]


@checked
def read_films(folders: Sequence[Path | str]) -> list[Timeline]:
    """Read scored films from folders of one film, of several, or of a run (`obygaze film run`).

    Raises
    ------
    FilmError
        A folder contains no film, or a film occurs twice.

    Examples
    --------
    >>> from pathlib import Path
    >>> import obygaze_features as of
    >>> import obygaze_film
    >>> for film in obygaze_film.score_films(of.open_store("stores/more"), ["kept/linear.model"]):
    ...     film.write(Path("scored-films") / film.movie)
    >>> len(obygaze_film.read_films(["scored-films"]))
    6
    """
    return list(found_films([local_path(folder) for folder in folders]).values())


def found_films(
    folders: Sequence[Path], tell: Callable[[Path], object] | None = None
) -> dict[Path, Timeline]:
    """Read scored films like `read_films`, by the folder of each film.

    Parameters
    ----------
    folders : sequence of Path
        Each of one film, of several, or of a run.
    tell : callable, optional
        Called with the folder of each film before it is read.

    Raises
    ------
    FilmError
        A folder contains no film, or a film occurs twice, also under two spellings of its name
        (`same_films`).
    """
    folder_of: dict[str, Path] = {}  # movie -> folder
    films = {}
    for folder in folders:
        records = _records_in(folder)
        if not records:
            raise FilmError(
                f"{folder}: no {RECORD} here or one folder deeper: give what 'obygaze film score' wrote, or "
                "'obygaze film run'"
            )
        for record in records:
            path = record.parent
            if tell is not None:
                tell(path)
            film = Timeline.read(path)
            if film.movie in folder_of:
                raise FilmError(
                    f"film {film.movie} is there twice, in {folder_of[film.movie]} and {path}: give one"
                )
            folder_of[film.movie] = path
            films[path] = film
    for movie, other in same_films(folder_of):
        raise FilmError(
            f"films {other!r} and {movie!r} are one name, in {folder_of[other]} and {folder_of[movie]}: "
            "spell both alike, or give one"
        )
    return films


def _records_in(folder: Path) -> list[Path]:
    """List the records of films (`film.json`) in a folder.

    It may be the folder of one film, a folder with a folder for each film, or that of a run, where the films
    are in the folder `scored`. The first of these that has any record decides.

    Raises
    ------
    OSError
        A folder can't be read; the error names it. Path.glob would leave it out, with the film in it.
    """
    own_record = folder / RECORD
    if _is_there(own_record):
        return [own_record]
    return _records_one_deeper(folder) or _records_one_deeper(folder / "scored")


def _records_one_deeper(folder: Path) -> list[Path]:
    """List the records of films in the folders within a folder; none where there is no such folder."""
    try:
        paths = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    records = []
    for path in paths:
        record = path / RECORD
        try:
            is_film = _is_there(record)
        except PermissionError:
            if not _is_of_system(path.name):
                raise
            is_film = False
        if is_film:
            records.append(record)
    return records


def _is_of_system(folder_name: str) -> bool:
    """Whether a folder is one that systems put on a disk and close to users, such as `lost+found`."""
    return folder_name.startswith((".", "$")) or folder_name in {"lost+found", "System Volume Information"}


def _is_there(path: Path) -> bool:
    """Whether there is something at a path; other than by Path.exists, a denied look at it is an error."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
