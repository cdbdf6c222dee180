"""Read tables with a row for each frame: find the columns of times, and gather the rows of each clip."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.exchange.columns import matching, patterns_to_leave_out
from obygaze_features.exchange.import_items import Arrays, ImportItem, TableOptions
from obygaze_features.store.format import TIME_ARRAYS

_TIMES = re.compile(r"t|(frame_?)?time(s|stamps?)?(_?(s|sec|seconds|ms))?|seconds?|secs?|ms")
"""Names of columns of times: of the format, of OpenFace (timestamp), openSMILE (frameTime) and others."""

_NUMBERS = re.compile(r"frame(_?(index|idx|id|no|nr|num|nb|number))?")
"""Names of columns that number the frames of a clip."""

FILE_INDEX: Final = "frame_index"
"""The column of numbers that is an index in the video file. Others may begin at 1, or count sampled
frames."""

SHOWN: Final = 8
"""Columns that a message names at most."""


class FrameColumns(NamedTuple):
    """Columns that tell which frame of its clip a row is; "" for none.

    Attributes
    ----------
    times
        Column of times: in seconds, or in milliseconds if its name ends in ms.
    numbers
        Column that numbers frames.
    """

    times: str = ""
    numbers: str = ""


def find_frame_columns(path: Path, names: Sequence[str], options: TableOptions) -> FrameColumns:
    """Find the columns of a table that hold the times or the numbers of frames, by their names.

    Parameters
    ----------
    path
        The table, for messages.
    names
        Names of its columns, or of its arrays with one number a row.
    options
        Options of the user: they may name the column of times, and patterns of columns to ignore.

    Raises
    ------
    StoreError
        If the named column of times is not there, or several columns may be meant.

    Examples
    --------
    >>> options = TableOptions(ids=None, columns=(), no_features=frozenset())
    >>> find_frame_columns(Path("a.csv"), ["clip_id", "frame", "Timestamp (ms)", "f0"], options)
    FrameColumns(times='Timestamp (ms)', numbers='frame')
    """
    left_out = matching(names, patterns_to_leave_out(options.columns))
    candidates = [name for name in names if name not in left_out]
    named_as_numbers = [name for name in candidates if _NUMBERS.fullmatch(_normalised(name))]
    number_column = _choose_one_column(path, named_as_numbers, "number the frames")

    if options.times is None:
        named_as_times = [name for name in candidates if _TIMES.fullmatch(_normalised(name))]
        time_column = _choose_one_column(path, named_as_times, "may be times of frames")
        return FrameColumns(times=time_column, numbers=number_column)

    if options.times not in names:
        shown_names = ", ".join(names[:SHOWN])
        raise StoreError(f"{path}: has no column {options.times} (--times); found {shown_names}")
    if number_column == options.times:  # the user says that its numbers are times
        number_column = ""
    return FrameColumns(times=options.times, numbers=number_column)


def _choose_one_column(path: Path, candidates: list[str], what_they_do: str) -> str:
    """Choose one of the columns that may be what is looked for, such as the times of frames.

    The only candidate is chosen, whatever its name. Of several, it is the one that is named as the array of a
    store is: `time_s`, or `frame_index`.

    Parameters
    ----------
    path
        The table, for messages.
    candidates
        Names of the columns that may be meant.
    what_they_do
        What the candidates do, as the verb of a message: "number the frames".

    Returns
    -------
    str
        The column; "" if there is no candidate.

    Raises
    ------
    StoreError
        There are several candidates, and none is named as the array of a store.
    """
    if not candidates:
        return ""
    if len(candidates) == 1:
        return candidates[0]
    for name_in_stores in TIME_ARRAYS:
        if candidates.count(name_in_stores) == 1:
            return name_in_stores
    raise StoreError(
        f"{path}: columns {', '.join(candidates)} {what_they_do}: leave out all but one "
        f"(--columns '!{candidates[1]}')"
    )


def _normalised(name: str) -> str:
    """Return a column's name for comparison: "Timestamp (ms)" becomes "timestamp_ms"."""
    return re.sub(r"[\W_]+", "_", name.casefold()).strip("_")


def _is_in_ms(name: str) -> bool:
    """Return whether a column holds milliseconds, by the end of its name."""
    return _normalised(name).endswith("ms")


def times_in_seconds(name: str, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the times of a column in seconds; they are milliseconds if its name ends in ms."""
    seconds = values.astype(np.float64)
    return seconds / 1000 if _is_in_ms(name) else seconds


def refuse_uneven(location: str, numbers: NDArray[Any]) -> None:
    """Raise an error if the frame numbers of a clip are not evenly spaced.

    Times that follow from a rate would be wrong.

    Parameters
    ----------
    location
        The table and the clip, for messages.
    numbers
        Numbers of the clip's frames, in order, [T].
    """
    steps = np.unique(np.diff(numbers))
    if len(steps) > 1:
        raise StoreError(
            f"{location}: its frames are {steps[0]:g} and {steps[-1]:g} apart, and --rate is for frames at "
            "even "
            "distances; give their times (--times)"
        )


def describe_rows(columns: FrameColumns) -> str:
    """Return in words what a row of a table is, so that users notice a column that was misread.

    Examples
    --------
    >>> describe_rows(FrameColumns("timestamp", "frame"))
    "a row is a frame, in the order of 'frame'; times of 'timestamp' in seconds"
    >>> describe_rows(FrameColumns())
    'a row is a frame, in the order of the table; its time is in no column'
    """
    order_column = columns.numbers or columns.times
    order = repr(order_column) if order_column else "the table"
    sentence = f"a row is a frame, in the order of {order}"
    if not columns.times:
        return f"{sentence}; its time is in no column"
    unit = "milliseconds" if _is_in_ms(columns.times) else "seconds"
    return f"{sentence}; times of {columns.times!r} in {unit}"


def frame_items(
    path: Path,
    ids: Sequence[str],
    vectors: Any,
    columns: FrameColumns,
    read_column: Callable[[str], NDArray[Any]],
    *,
    must_be_even: bool,
) -> dict[str, ImportItem]:
    """Gather the rows of each clip in a table with a row for each frame: clip id -> its features.

    Parameters
    ----------
    path
        The table, for messages.
    ids
        The clip of each row, [R].
    vectors
        A vector for each row, [R, D]: an array, or an object that is read by rows like one.
    columns
        Columns that order the rows of a clip: by the number of the frame, or else by its time. Without them,
        rows are in the order of the table.
    read_column
        Reads one of these columns, [R].
    must_be_even
        Whether frame numbers must be evenly spaced, because the times will follow from a rate.

    Raises
    ------
    StoreError
        If each clip has one row and no column orders rows, so that rows are probably no frames; or if a
        column lacks a number. Loading an item raises it if two rows of the clip are the same frame.
    """
    rows_of_clip: dict[str, list[int]] = {}
    for row, clip_id in enumerate(ids):
        rows_of_clip.setdefault(clip_id, []).append(row)
    if not rows_of_clip:
        raise StoreError(f"{path}: no row in it")
    has_one_row_per_clip = len(rows_of_clip) == len(ids)
    has_frame_columns = columns != FrameColumns()
    if has_one_row_per_clip and not has_frame_columns:
        raise StoreError(
            f"{path}: a row for each clip, and no column of times or of numbers of frames: these are no "
            "frames; import them with --array pooled"
        )
    # The numbers and times of all rows, by which those of a clip are put in order when it is loaded
    order = _FrameOrder(
        path,
        columns,
        numbers=_read_numbers(path, columns.numbers, read_column),
        times=_read_numbers(path, columns.times, read_column),
    )
    items = {}
    for clip_id, rows in rows_of_clip.items():
        load = partial(_load_clip, np.asarray(rows), clip_id, vectors, order, must_be_even=must_be_even)
        items[clip_id] = ImportItem(f"{path}, {clip_id}", load)
    return items


class _FrameOrder(NamedTuple):
    """The columns of a table that tell which frame of its clip a row is, and their values.

    Parameters
    ----------
    path
        The table.
    columns
        Names of the columns.
    numbers, times
        Shape [R]: values of all rows; None if there is no such column.
    """

    path: Path
    columns: FrameColumns
    numbers: NDArray[np.float64] | None
    times: NDArray[np.float64] | None


def _read_numbers(
    path: Path, name: str, read_column: Callable[[str], NDArray[Any]]
) -> NDArray[np.float64] | None:
    """Read a column of numbers, and refuse one with a missing number; None if `name` is "": there is none."""
    if not name:
        return None
    values = np.asarray(read_column(name))
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


def _load_clip(
    rows: NDArray[np.intp], clip: str, vectors: Any, order: _FrameOrder, *, must_be_even: bool
) -> Arrays:
    """Read the frames of one clip: their vectors in order, and their times and indices if these are known.

    Parameters
    ----------
    rows
        The rows of the table that are frames of the clip, in any order.
    clip
        Its id, for messages.
    vectors
        The vectors of all rows, [R, D].
    order
        The numbers or times of all rows, by which the frames of a clip are sorted; numbers if there are both.
    must_be_even
        Whether numbers must be evenly spaced, because the times will follow from a rate.

    Returns
    -------
    Arrays
        The vectors [T, D] under the name "" (that of the only array of features), and `time_s` and
        `frame_index`, each [T], if known.
    """
    location = f"{order.path}, {clip}"
    numbers_name = order.columns.numbers
    times_name = order.columns.times
    rows_in_order = rows
    if order.numbers is not None:
        rows_in_order = _sort_rows(rows, order.numbers, numbers_name, location)
    elif order.times is not None:
        rows_in_order = _sort_rows(rows, order.times, times_name, location)
    if must_be_even and order.numbers is not None:
        refuse_uneven(location, order.numbers[rows_in_order])

    only_array = ""
    arrays = {only_array: _read_rows(vectors, rows_in_order)}
    if order.times is not None:
        arrays["time_s"] = times_in_seconds(times_name, order.times[rows_in_order])
    # A column of one name numbers the frames of the file. Others may number those that were sampled.
    numbers_frames_of_file = _normalised(numbers_name) == FILE_INDEX
    if order.numbers is not None and numbers_frames_of_file:
        arrays["frame_index"] = _whole_indices(location, numbers_name, order.numbers[rows_in_order])
    return arrays


def _sort_rows(
    rows: NDArray[np.intp], order: NDArray[np.float64], name: str, location: str
) -> NDArray[np.intp]:
    """Sort the rows of a clip by a column; raise an error if two rows have the same value.

    `rows` are numbers of the clip's rows, [T], and `order` the column in all rows of the table, [R].
    """
    sorted_rows = rows[np.argsort(order[rows], kind="stable")]
    positions_of_equals = np.flatnonzero(np.diff(order[sorted_rows]) == 0)
    if len(positions_of_equals):
        first = positions_of_equals[0]
        equal_rows = sorted_rows[first : first + 2]
        row, other_row = sorted(equal_rows + 1)  # users count rows from 1
        raise StoreError(
            f"{location}: rows {row} and {other_row} have the same {name}, {order[sorted_rows[first]]:g}; "
            "expected a row for each frame"
        )
    return sorted_rows


def _whole_indices(location: str, name: str, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the indices of a clip's frames in the video file as integers, [T].

    Parameters
    ----------
    location, name
        The table and the clip, and the column, for messages.
    numbers
        The values of the column.

    Raises
    ------
    StoreError
        A number is negative or not whole.
    """
    if (numbers != np.rint(numbers)).any() or (numbers < 0).any():
        raise StoreError(f"{location}: {name} is an index in the file; expected whole numbers from 0 on")
    return numbers.astype(np.int64)


def _read_rows(vectors: Any, rows: NDArray[np.intp]) -> NDArray[Any]:
    """Read some rows of an array or of an HDF5 dataset, and return them in the order of `rows`.

    Rows are read in rising order, because HDF5 demands it; consecutive ones are read as one slice.
    """
    rising = np.sort(rows)
    are_neighbours = rising[-1] - rising[0] == len(rising) - 1
    if are_neighbours:
        values = np.asarray(vectors[int(rising[0]) : int(rising[-1]) + 1])
    else:
        values = np.asarray(vectors[rising])
    positions_of_rows = np.searchsorted(rising, rows)  # in `values`
    return values[positions_of_rows]
