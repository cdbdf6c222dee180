"""Name, write, check and read the files of scored films, which strangers may have written."""

import io
import os
import shutil
import sys
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.errors import InputError, first_line
from obygaze_features.io import file_names, local_path, sha256_of, whole_folder, write_new
from obygaze_features.lines import json_bytes
from obygaze_features.text import unsuitable
from obygaze_features.untrusted import read_bytes
from obygaze_film.errors import FilmError
from obygaze_film.schema import (
    COLUMNS,
    LAST_COLUMNS,
    MAX_S,
    NO_CLASSES,
    NO_TEXTS,
    NO_TRACES,
    NO_VARIABLES,
    SHOT_COLUMNS,
    FilmRecord,
    read_record,
    refuse_texts,
)
from obygaze_film.segments import with_rounded_lists

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

RECORD, TIMELINE, SEGMENTS, SHOTS = "film.json", "timeline.csv", "segments.csv", "shots.csv"
FRAMES = "frames.csv"
"""Values of models for frames, if the store has frames that they can read."""

SUBTITLES = "subtitles.csv"
"""What is said, if it was asked for."""

VARIABLES = "variables.csv"
"""How the film is staged, window by window, if it was asked for."""

CLASSES = "classes.csv"
"""Which classes a classifier finds probable, window by window, if the store has one's answers."""

RATES = "rate.json"
"""Rates corrected by judgements."""

JUDGEMENTS, PASSAGES, SETTLED = "judgements.csv", "passages.csv", "agreed.csv"
"""What people judged: windows and segments, passages of their own, and what several agreed on."""

OPTIONAL = {FRAMES: NO_TRACES, SUBTITLES: NO_TEXTS, VARIABLES: NO_VARIABLES, CLASSES: NO_CLASSES}
"""Tables that a film may lack, as they are then."""

FILES = (RECORD, TIMELINE, SEGMENTS, SHOTS, RATES, *OPTIONAL)

MAX_BYTES = 1 << 26
"""Of a file of a scored film; three hours with ten models have half of that."""

WORDS_FOR_NUMBERS: Final = (b"nan", b"inf", b"true", b"false")
"""Words that pandas reads as numbers: a table that holds one is read cell by cell."""

PANDAS_VERSION: Final = int(pd.__version__.split(".")[0])

EXACT_NUMBERS: Final[dict[str, Any]] = {"float_precision": "round_trip"} if PANDAS_VERSION < 4 else {}
"""Arguments by which pandas reads numbers as Python does; from version 4 on it does so anyway."""

TIME_COLUMNS = ("start_s", "end_s")
WHOLE_COLUMNS = ("called", "n_windows", "n_frames")
"""Columns of whole numbers."""

PROBABILITY_COLUMNS = ("p", "p_low", "p_high")
TEXT_COLUMNS = (
    "movie", "level_task", "model", "flags", "status", "detector", "text", "classifier", "class",
)  # fmt: skip
"""Columns that hold text; all others hold numbers."""

LARGEST_FLOAT = sys.float_info.max
LARGEST_WHOLE = 2.0**53
"""Up to this each whole number is a float of its own."""


def folders_of(movies: Sequence[str], out: Path) -> dict[str, Path]:
    """Map films to their folders: one film has `out` itself, several have a folder in it each.

    Raises
    ------
    OutputError
        Two films would have one folder, also on a file system that does not tell case apart.
    """
    if len(movies) == 1:
        return {movies[0]: out}
    return {movie: out / name for movie, name in file_names(movies).items()}


def write_films(films: Sequence["Timeline"], out: Path | str) -> dict[str, Path]:
    """Write scored films: one into `out` itself, several into a folder each within `out`.

    Earlier films of these folders are replaced with all that belongs to them, rates from judgements too; what
    else is there stays. If writing fails, all earlier films are still there as they were.

    Returns
    -------
    dict of str to Path
        Film -> its folder.

    Raises
    ------
    FilmError
        Two films would have one folder, or a text has control characters.
    """
    out = local_path(out)
    folders = folders_of([film.movie for film in films], out)
    is_one_film = out in folders.values()
    replaced_names = FILES if is_one_film else {folder.name for folder in folders.values()}

    # `partial` is a new folder, which takes the place of `out` only once all is written.
    with whole_folder(out) as partial:
        if out.is_dir():
            _link_others(out, partial, replaced_names)  # what stays
        for film in films:
            folder = partial / folders[film.movie].relative_to(out)
            folder.mkdir(exist_ok=True)
            for name, data in files_of(film).items():
                write_new(folder / name, data)
    return folders


def _link_others(source: Path, target: Path, left_out: Collection[str]) -> None:
    """Link (or copy) all files and folders of a folder into another one, except those of some names."""
    for path in source.iterdir():
        if path.name in left_out:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, target / path.name, symlinks=True, copy_function=link)
        else:
            link(path, target / path.name)


def files_of(film: "Timeline") -> dict[str, bytes]:
    """Return the bytes of each file of a film's folder, by name; the record has the digests of the others.

    Raises
    ------
    FilmError
        A time is later than any film is long, or a text of the record has control characters.
    """
    tables = {TIMELINE: film.table, SEGMENTS: _segments_of_models(film), SHOTS: film.shots}
    optional_tables = {
        FRAMES: film.frames,
        SUBTITLES: film.subtitles,
        VARIABLES: film.variables,
        CLASSES: film.classes,
    }
    tables |= {name: table for name, table in optional_tables.items() if len(table)}

    bytes_of_table = {}
    for name, table in tables.items():
        has_possible_times = len(table) == 0 or bool(table["end_s"].max() <= MAX_S)
        if not has_possible_times:
            raise FilmError(
                f"film {film.movie}, {name}: a time of {table['end_s'].max():g} s: {MAX_S:g} s is the most"
            )
        bytes_of_table[name] = table.to_csv(index=False, lineterminator="\n").encode()

    digests = {name: sha256_of(data) for name, data in bytes_of_table.items()}
    record = msgspec.structs.replace(film.record, tables=digests)
    refuse_texts(record)  # control characters
    return {**bytes_of_table, RECORD: json_bytes(msgspec.to_builtins(record))}


def _segments_of_models(film: "Timeline") -> pd.DataFrame:
    """Return the segments of all models of a film as one table, as `segments.csv` has them."""
    tables = [with_rounded_lists(film.segments(model.key)) for model in film.record.models]
    with_rows = [table for table in tables if len(table)]
    # An empty table among others would change the types of their columns.
    return pd.concat(with_rows) if with_rows else tables[0]


def link(source: str | Path, target: str | Path) -> None:
    """Give a file a second name, or copy it where that is not possible."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


class ScoredTables(NamedTuple):
    """The tables of a scored film, with the columns of its files; optional ones may be empty."""

    timeline: pd.DataFrame
    shots: pd.DataFrame
    frames: pd.DataFrame
    subtitles: pd.DataFrame
    variables: pd.DataFrame
    classes: pd.DataFrame


def read_scored(folder: Path) -> tuple[FilmRecord, ScoredTables]:
    """Read the files of a scored film.

    The record is returned without the digests of the tables, which are those of the files.

    Raises
    ------
    FilmError
        It is not such a folder, or a file is damaged; names file and column.
    """
    path = folder / RECORD
    if not path.is_file():
        raise FilmError(f"{folder}: no {RECORD} here: give a folder that 'obygaze film score' wrote")
    record = read_record(bytes_of(path), str(path))

    # The timeline has further columns for the concepts of each model.
    concept_columns = [name for model in record.models for name in model.columns]
    timeline_columns = (*COLUMNS, *concept_columns, *LAST_COLUMNS)
    timeline = _read_table(folder / TIMELINE, timeline_columns, record, end_s=record.duration_s)
    _check_rows(timeline, record, folder / TIMELINE)

    tables = ScoredTables(
        timeline=timeline,
        shots=_read_table(folder / SHOTS, SHOT_COLUMNS, record),
        frames=_read_optional(folder / FRAMES, record),
        subtitles=_read_optional(folder / SUBTITLES, record),
        variables=_read_optional(folder / VARIABLES, record),
        classes=_read_optional(folder / CLASSES, record),
    )
    return msgspec.structs.replace(record, tables={}), tables


def _read_optional(path: Path, record: FilmRecord) -> pd.DataFrame:
    """Read a table that a film may lack, such as its subtitles; an empty one if the record lacks it."""
    empty_table = OPTIONAL[path.name]
    if path.name not in record.tables:
        return empty_table
    return _read_table(path, [*empty_table], record)


def bytes_of(path: Path, *, is_listed: bool = False) -> bytes:
    """Read a file of a scored film; one that is larger than `MAX_BYTES` is refused.

    A link that leads out of the folder is refused too, unless the record lists the file (`is_listed`): then
    the caller checks its digest.
    """
    try:
        return read_bytes(path, MAX_BYTES, within=None if is_listed else path.parent)
    except OSError as error:
        raise FilmError(f"{path}: {error.strerror or error}: score the film again") from error
    except InputError as error:
        raise FilmError(f"{path}: {error}: score the film again") from error


def _read_table(path: Path, needed: Sequence[str], record: FilmRecord, end_s: float = MAX_S) -> pd.DataFrame:
    """Read one of the tables; check its digest, its columns, their numbers and texts.

    Parameters
    ----------
    path : Path
    needed : sequence of str
        Columns that it must have.
    record : FilmRecord
        Has the table's digest.
    end_s : float
        The latest time that it may have.

    Raises
    ------
    FilmError
        The table cannot be used; the message says what is wrong with it.
    """
    data = bytes_of(path, is_listed=path.name in record.tables)
    if record.tables.get(path.name) != sha256_of(data):
        raise FilmError(f"{path}: not the table that {RECORD} was written with: score the film again")

    # Read it fast if that is exact, else with all cells as text.
    try:
        table = _plain_table(data)
        if table is None:
            table = pd.read_csv(io.BytesIO(data), dtype=str, keep_default_na=False)
    except ValueError as error:
        raise FilmError(f"{path}: {first_line(error)}: score the film again") from error

    missing = [name for name in needed if name not in table.columns]
    if missing:
        raise FilmError(f"{path}: no column {', '.join(missing)}: score the film again")

    # Turn each column into texts or numbers.
    for name in table.columns:
        try:
            is_text = name in TEXT_COLUMNS
            table[name] = _texts(table[name]) if is_text else _checked_numbers(table[name], end_s)
        except ValueError as error:
            raise FilmError(f"{path}: column {name}: {error}: score the film again") from error

    all_end_after_start = bool((table["start_s"] < table["end_s"]).all())
    if not all_end_after_start:
        raise FilmError(f"{path}: columns start_s, end_s: a span that does not end after its start")
    return table


def _plain_table(data: bytes) -> pd.DataFrame | None:
    """Read a table by pandas alone, which is six times as fast as cell by cell and as exact.

    None if the table must be read cell by cell: it is damaged, or may hold words for numbers, such as `inf`.
    """
    lowered = data.lower()
    if any(word in lowered for word in WORDS_FOR_NUMBERS):
        return None
    try:
        columns = pd.read_csv(io.BytesIO(data), nrows=0, dtype=str, keep_default_na=False).columns
        types = {name: str if name in TEXT_COLUMNS else "float64" for name in columns}
        # pandas takes words such as "NA" and "null" for missing values. Here only an empty cell of a column
        # of numbers is one, and in columns of text every word is a text.
        missing = {name: [""] for name in columns if name not in TEXT_COLUMNS}
        with warnings.catch_warnings():
            # pandas warns of the option in `EXACT_NUMBERS` from some version before 4 on.
            warnings.simplefilter("ignore", DeprecationWarning)
            table: pd.DataFrame = pd.read_csv(
                io.BytesIO(data), dtype=types, keep_default_na=False, na_values=missing, **EXACT_NUMBERS
            )
            return table
    except (ValueError, OverflowError):
        return None


def _texts(cells: "pd.Series[str]") -> "pd.Series[str]":
    """Return a column of texts as it is; raise ValueError if one has control characters."""
    for text in cells.unique():
        problem = unsuitable(str(text))
        if problem:
            raise ValueError(f"{text!r:.80} {problem}")
    return cells


class _ReadNumbers(NamedTuple):
    """The numbers of a column [N], NaN for empty cells, and which cells are not empty [N]."""

    numbers: NDArray[np.float64]
    is_filled: NDArray[np.bool_]


def _read_numbers(cells: "pd.Series[Any]") -> _ReadNumbers:
    """Read a column of floats, or of texts that are numbers; raise ValueError on any other text."""
    if cells.dtype == np.float64:
        numbers = cells.to_numpy()
        return _ReadNumbers(numbers, is_filled=~np.isnan(numbers))
    # Python's float, cell by cell: every number is read exactly as it was written.
    texts = cells.tolist()
    numbers = np.array([float(text) if text else np.nan for text in texts], dtype=np.float64)
    return _ReadNumbers(numbers, is_filled=np.array([text != "" for text in texts], dtype=np.bool_))


def _checked_numbers(cells: "pd.Series[Any]", end_s: float) -> "NDArray[np.float64] | pd.Series[Any]":
    """Turn a column into numbers; raise ValueError if one is outside the bounds of its column (`_bounds`).

    Cells may be empty, except those of times. Whole numbers are returned as `Int64`, others as floats.
    """
    name = str(cells.name)
    numbers, is_filled = _read_numbers(cells)

    # An empty cell is NaN, which is within no bounds. Only in columns of times it is checked, and refused.
    may_be_empty = name not in TIME_COLUMNS
    checked = numbers[is_filled] if may_be_empty else numbers

    low, high = _bounds(name, end_s)
    is_wrong = ~((checked >= low) & (checked <= high))
    if name in WHOLE_COLUMNS:
        is_wrong |= checked != np.floor(checked)
    if is_wrong.any():
        raise ValueError(f"{checked[is_wrong][0]:g} is none of its numbers, from {low:g} to {high:g}")

    return pd.Series(numbers).astype("Int64") if name in WHOLE_COLUMNS else numbers


def _bounds(column: str, end_s: float) -> tuple[float, float]:
    """Return the least and the largest number of a column; times go up to `end_s`."""
    if column in TIME_COLUMNS:
        return 0.0, end_s
    if column in PROBABILITY_COLUMNS or column.endswith("_p"):
        return 0.0, 1.0
    if column in WHOLE_COLUMNS:
        return 0.0, LARGEST_WHOLE
    return -LARGEST_FLOAT, LARGEST_FLOAT


def _check_rows(table: pd.DataFrame, record: FilmRecord, path: Path) -> None:
    """Refuse a timeline of other models, with probabilities without bands, or with times out of order.

    Raises
    ------
    FilmError
        The timeline does not fit its film's record, or contradicts itself.
    """
    keys = set(table["model"])
    expected = {model.key for model in record.models}
    if keys != expected:
        raise FilmError(
            f"{path}: its models are {', '.join(sorted(keys))}; {RECORD} says {', '.join(sorted(expected))}"
        )

    is_filled = table[["p", "p_low", "p_high"]].notna().to_numpy()  # [rows, 3]
    is_filled_in_part = is_filled.any(axis=1) & ~is_filled.all(axis=1)
    if is_filled_in_part.any():
        raise FilmError(f"{path}: columns p, p_low, p_high: one is empty where another is not")

    for _, rows in table.groupby("model"):
        steps_s = rows["start_s"].diff().dropna()  # the first row has none
        if not (steps_s > 0).all():
            raise FilmError(f"{path}: column start_s: the times of a model do not rise")
