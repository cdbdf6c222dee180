"""Tables with a row for each frame: which columns say when a frame is, and which rows are of one clip."""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.exchange.columns import LEAVE_OUT
from obygaze_features.exchange.import_items import Arrays, ImportItem, TableOptions

_TIMES = re.compile(r"t|(frame_?)?time(s|stamps?)?(_?(s|sec|seconds|ms))?|seconds?|secs?|ms")
"""Names of columns of times: of the format, of OpenFace (timestamp), openSMILE (frameTime) and others."""

_NUMBERS = re.compile(r"frame(_?(index|idx|id|no|nr|num|nb|number))?")
"""Names of columns that number the frames of a clip."""

KEPT_NUMBERS: Final = "frame_index"
"""The one of them that is an index in the video file; others may begin at 1, or count sampled frames."""


class FrameColumns(NamedTuple):
    """Columns that say where in its clip a row's frame is; "" for none.

    Attributes
    ----------
    times
        Column of times: in seconds, or in milliseconds if its name ends in ms.
    numbers
        Column that numbers frames.
    """

    times: str = ""
    numbers: str = ""


def frame_columns(path: Path, names: Sequence[str], options: TableOptions) -> FrameColumns:
    """Find the columns that say where in its clip a row's frame is.

    Parameters
    ----------
    path
        The table, for messages.
    names
        Its columns, or its arrays of one number a row.
    options
        Names the column of times, or none; what it leaves out is not looked at.

    Raises
    ------
    StoreError
        If the column that is asked for is not there, or several may be meant.

    Examples
    --------
    >>> options = TableOptions(None, (), frozenset())
    >>> frame_columns(Path("a.csv"), ["clip_id", "frame", "Timestamp (ms)", "f0"], options)
    FrameColumns(times='Timestamp (ms)', numbers='frame')
    """
    patterns = [
        pattern.removeprefix(LEAVE_OUT) for pattern in options.columns if pattern.startswith(LEAVE_OUT)
    ]
    others = [name for name in names if not any(fnmatchcase(name, pattern) for pattern in patterns)]
    numbers = _only(path, [name for name in others if _NUMBERS.fullmatch(_plain(name))], "number the frames")
    if options.times is None:
        times = _only(
            path, [name for name in others if _TIMES.fullmatch(_plain(name))], "may be times of frames"
        )
        return FrameColumns(times, numbers)
    if options.times not in names:
        raise StoreError(f"{path}: has no column {options.times} (--times); found {', '.join(names[:8])}")
    return FrameColumns(options.times, "" if numbers == options.times else numbers)


def _only(path: Path, names: list[str], meaning: str) -> str:
    """Return the name of the only column of a meaning, that of the format if it is there; "" for none."""
    for name in ("time_s", KEPT_NUMBERS):
        if names.count(name) == 1:
            return name
    if len(names) > 1:
        raise StoreError(
            f"{path}: columns {', '.join(names)} {meaning}: leave out all but one (--columns '!{names[1]}')"
        )
    return names[0] if names else ""


def _plain(name: str) -> str:
    """Write a name as names are compared: small letters, one `_` for what is no letter and no digit."""
    return re.sub(r"[\W_]+", "_", name.casefold()).strip("_")


def _is_in_ms(name: str) -> bool:
    return _plain(name).endswith("ms")


def in_seconds(name: str, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return times of an array or column in seconds: they are in milliseconds if its name ends in ms."""
    seconds = values.astype(np.float64)
    return seconds / 1000 if _is_in_ms(name) else seconds


def refuse_uneven(where: str, numbers: NDArray[Any]) -> None:
    """Refuse frames whose numbers do not rise evenly, where a rate is to say their times."""
    steps = np.unique(np.diff(numbers))
    if len(steps) > 1:
        raise StoreError(
            f"{where}: its frames are {steps[0]:g} and {steps[-1]:g} apart, and --rate is for frames at even "
            "distances; give their times (--times)"
        )


def said_of_rows(columns: FrameColumns) -> str:
    """Say what a row is, so that a column taken for another is seen.

    Examples
    --------
    >>> said_of_rows(FrameColumns("timestamp", "frame"))
    "a row is a frame, in the order of 'frame'; times of 'timestamp' in seconds"
    >>> said_of_rows(FrameColumns())
    'a row is a frame, in the order of the table; its time is in no column'
    """
    order = columns.numbers or columns.times
    said = (
        f"a row is a frame, in the order of {order!r}"
        if order
        else "a row is a frame, in the order of the table"
    )
    if not columns.times:
        return f"{said}; its time is in no column"
    unit = "milliseconds" if _is_in_ms(columns.times) else "seconds"
    return f"{said}; times of {columns.times!r} in {unit}"


def frame_items(
    path: Path,
    ids: Sequence[str],
    vectors: Any,
    columns: FrameColumns,
    read: Callable[[str], NDArray[Any]],
    *,
    evenly: bool,
) -> dict[str, ImportItem]:
    """Gather the rows of each clip, in the order of their frames: id -> its features.

    Parameters
    ----------
    ids
        The clip of each row, [R].
    vectors
        A vector for each row, [R, D]: an array, or what is read as one by its rows.
    columns
        What orders the rows of a clip: the number of the frame, else its time, else the table.
    read
        Reads one of these columns, [R].
    evenly
        Whether the times follow from a rate.

    Raises
    ------
    StoreError
        If no row says that it is a frame, or a column has no number in a row. Loading an item raises it where
        two rows are one frame.
    """
    rows_of_clip: dict[str, list[int]] = {}
    for row, clip in enumerate(ids):
        rows_of_clip.setdefault(clip, []).append(row)
    if not rows_of_clip:
        raise StoreError(f"{path}: no row in it")
    if len(rows_of_clip) == len(ids) and columns == FrameColumns():
        raise StoreError(
            f"{path}: a row for each clip, and no column of times or of numbers of frames: these are no "
            "frames; import them with --array pooled"
        )
    numbers = _finite(path, columns.numbers, read)
    moments = _finite(path, columns.times, read)
    places = _Places(path, columns, numbers, moments)
    return {
        clip: ImportItem(
            f"{path}, {clip}", partial(_load, np.asarray(rows), clip, vectors, places, evenly=evenly)
        )
        for clip, rows in rows_of_clip.items()
    }


class _Places(NamedTuple):
    """Where frames are: the numbers and times of all rows, None where no column has them."""

    path: Path
    columns: FrameColumns
    numbers: NDArray[np.float64] | None
    moments: NDArray[np.float64] | None


def _finite(path: Path, name: str, read: Callable[[str], NDArray[Any]]) -> NDArray[np.float64] | None:
    """Read a column of numbers, none of which may be missing; None for no column."""
    if not name:
        return None
    values = np.asarray(read(name))
    if values.ndim != 1 or values.dtype.kind not in "fiu":
        raise StoreError(f"{path}: column {name!r} holds {values.dtype}; expected a number for each row")
    values = values.astype(np.float64)
    missing = np.flatnonzero(~np.isfinite(values))
    if len(missing):
        raise StoreError(
            f"{path}: column {name!r} has no number in row {missing[0] + 1}; expected one for each frame, or "
            f"leave the column out (--columns '!{name}')"
        )
    return values


def _load(rows: NDArray[np.intp], clip: str, vectors: Any, places: _Places, *, evenly: bool) -> Arrays:
    """Read the frames of one clip in their order, with what is known of where they are."""
    where = f"{places.path}, {clip}"
    order_name, order = places.columns.numbers, places.numbers
    if order is None:
        order_name, order = places.columns.times, places.moments
    if order is not None:
        rows = rows[np.argsort(order[rows], kind="stable")]
        twice = np.flatnonzero(np.diff(order[rows]) == 0)
        if len(twice):
            one, other = sorted(rows[twice[0] : twice[0] + 2] + 1)
            raise StoreError(
                f"{where}: rows {one} and {other} have the same {order_name}, {order[rows[twice[0]]]:g}; "
                "expected a row for each frame"
            )
    if evenly and places.numbers is not None:
        refuse_uneven(where, places.numbers[rows])
    arrays = {"": _rows_of(vectors, rows)}
    if places.moments is not None:
        arrays["time_s"] = in_seconds(places.columns.times, places.moments[rows])
    if places.numbers is not None and _plain(places.columns.numbers) == KEPT_NUMBERS:
        arrays["frame_index"] = _whole(where, places.columns.numbers, places.numbers[rows])
    return arrays


def _whole(where: str, name: str, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return indices of frames as whole numbers."""
    if (numbers != np.rint(numbers)).any() or (numbers < 0).any():
        raise StoreError(f"{where}: {name} is an index in the file; expected whole numbers from 0 on")
    return numbers.astype(np.int64)


def _rows_of(vectors: Any, rows: NDArray[np.intp]) -> NDArray[Any]:
    """Read some rows, in any order; files are read in rising order, and at once where rows are neighbours."""
    rising = np.sort(rows)
    if rising[-1] - rising[0] == len(rising) - 1:
        values = np.asarray(vectors[int(rising[0]) : int(rising[-1]) + 1])
    else:
        values = np.asarray(vectors[rising])
    return values[np.searchsorted(rising, rows)]
