"""Read the clip ids of the rows of another tool's table, and name the rows by them."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError, install_command
from obygaze_features.exchange.frame_rows import FrameColumns, describe_rows, frame_items
from obygaze_features.exchange.import_files import map_npy
from obygaze_features.exchange.import_hdf5 import (
    explain_hdf5_damage,
    is_plain,
    refuse_unreadable,
    undo_matlab_order,
)
from obygaze_features.exchange.import_items import (
    Arrays,
    FileContent,
    ImportItem,
    TableOptions,
    read_in_worker,
)
from obygaze_features.file_kinds import NPY, PARQUET, TEXT, UNKNOWN, file_kind, why_not
from obygaze_features.store.store_files import refuse_larger
from obygaze_features.text import counted, first_few
from obygaze_features.text_records import read_records
from obygaze_features.untrusted import open_regular, read_bytes
from obygaze_features.workbook import Records

ID_NAMES = ("clip_id", "clip_ids", "clip", "id", "ids")
"""Names of the column or array of ids if --ids is not given."""

MAX_UNPACKED = 16 << 30
"""Most bytes of one array of a .npz, or of a column of Parquet, which is unpacked into memory as a whole."""

MAX_TEXT = 2 << 30
"""Most bytes of a table of text, which is held in memory."""

NUMBER_BYTES = 8
"""Bytes of the largest number of an array."""

SHOWN = 8
"""Columns that a message names at most."""


def read_ids(path: Path) -> list[str]:
    """Read clip ids from a file, in the order of its rows.

    It is a table (text, workbook or Parquet) with a column of a usual name, such as `clip_id`, a text with
    one id a line, or an array of a .npy.

    Raises
    ------
    StoreError
        It is no such file, has no id, or a row without one.
    """
    ids = _read_ids(path)
    if not ids:
        raise StoreError(f"{path}: there is no clip id in it; expected one a line")
    return ids


def _read_ids(path: Path) -> list[str]:
    """Read clip ids as `read_ids` does, whether or not there are any."""
    content = read_bytes(path)
    kind = file_kind(content).name
    if kind == NPY:
        return id_texts(map_npy(path), path)
    if kind == PARQUET:
        # The worker yields no items, only texts on the file; one of them is the list of ids as JSON.
        with read_in_worker("Parquet", parquet_ids, path) as (_, texts):
            return list(json.loads(texts["ids"]))
    # It is a text: a table with a column of ids, or a list of them.
    rows, delimiter, _ = text_rows(path)
    if not rows:
        return []
    (_, header), *rows_below = rows  # each with the number of its line
    for name in ID_NAMES:
        if name not in header:
            continue
        column = header.index(name)
        for line, cells in rows_below:
            has_id = len(cells) > column and cells[column] != ""
            if not has_id:
                raise StoreError(f"{path}: line {line}: no {name}; every row needs one")
        return [cells[column] for _, cells in rows_below]
    # Each line is an id. One with the delimiter in it was divided into cells, which are joined again.
    return [delimiter.join(cells) for _, cells in rows]


class TextRows(NamedTuple):
    """The rows of a text or a workbook.

    Parameters
    ----------
    rows
        Line number and cells of each row that is not empty.
    delimiter
        What stands between cells.
    notes
        Notes on how it was read.
    """

    rows: Records
    delimiter: str
    notes: tuple[str, ...]


def text_rows(path: Path) -> TextRows:
    """Read the rows of a text table or a workbook, without the blanks around cells that OpenFace writes.

    Raises
    ------
    StoreError
        It is no such file.
    """
    with open_regular(path, MAX_TEXT) as file:
        content = file.readall()
    if file_kind(content) == UNKNOWN:
        raise StoreError(f"{path}: {why_not(content, TEXT)}")
    # Tables of features have columns of any names.
    records, delimiter, notes = read_records(path, content, StoreError, is_header=lambda _: True)
    rows = []
    for line, row in records:
        cells = [cell.strip() for cell in row]
        if any(cells):
            rows.append((line, cells))
    return TextRows(rows, delimiter, notes)


@contextmanager
def parquet_ids(path: Path) -> Iterator[FileContent]:
    """Read the clip ids of a Parquet file, from the column of a usual name, such as `clip_id`.

    Without such a column they are in the only column of texts.

    The library may crash on a damaged file, so `read_in_worker` calls this in a process of its own. That is
    made for readers of features, which yield items and texts on the file. This yields no items, and the list
    of ids as a text: {"ids": JSON}.
    """
    type_of_column, read = open_parquet(path)
    candidates = [name for name in type_of_column if name in ID_NAMES]
    if not candidates:
        text_types = {"string", "large_string"}
        candidates = [name for name, kind in type_of_column.items() if str(kind) in text_types]
    if len(candidates) != 1:
        columns = ", ".join(type_of_column)
        raise StoreError(f"{path}: expected one column {', '.join(ID_NAMES)}; found {columns}")
    ids = id_texts(read(candidates[0]), path)
    no_items: dict[str, ImportItem] = {}
    yield no_items, {"ids": json.dumps(ids)}


def open_parquet(path: Path) -> tuple[dict[str, Any], Callable[[str], Any]]:
    """Open a Parquet file in this process: return the type of each column, and a function that reads one.

    Nothing is read of other columns, such as pictures.

    Raises
    ------
    StoreError
        The library is not installed, or the file is damaged. The function raises it for a column that would
        take too much memory.
    """
    if find_spec("pyarrow") is None:
        raise StoreError(f"{path}: Parquet needs pyarrow ({install_command('pyarrow')}); or save a CSV")
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415 - no dependency of ours
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # noqa: PLC0415 - the same

    # Each thread takes memory of its own, and there may be as many as there are cores.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)

    @contextmanager
    def explained_errors() -> Iterator[None]:
        """Replace the library's errors by one that says what is wrong with the file."""
        try:
            yield
        except (pa.ArrowException, OSError):
            raise StoreError(f"{path}: {why_not(path, PARQUET)}") from None

    with explained_errors():
        file = pq.ParquetFile(path)  # reads the metadata only
    schema = file.schema_arrow
    for name, n_columns in Counter(schema.names).items():
        if n_columns > 1:
            raise StoreError(f"{path}: two columns are called {name!r}; give each a name of its own")

    def read(name: str) -> Any:
        """Read a column, unless it would take too much memory."""
        n_values = _n_parquet_values(file.metadata, name)
        refuse_larger(NUMBER_BYTES * n_values, f"{path}, column {name!r}", MAX_UNPACKED)
        with explained_errors():
            return file.read(columns=[name]).column(name)

    return dict(zip(schema.names, schema.types, strict=True)), read


def _n_parquet_values(metadata: Any, name: str) -> int:
    """Return how many values a column of a Parquet file has, including those in lists.

    It is read from the metadata, so that a column that would fill the memory can be refused before.
    """
    # A column of lists or structures is stored as one or more columns, whose paths begin with its name.
    stored_columns = []
    for position in range(metadata.num_columns):
        path = f"{metadata.schema.column(position).path}."
        if path.startswith(f"{name}."):
            stored_columns.append(position)
    n_values = 0
    for number in range(metadata.num_row_groups):
        row_group = metadata.row_group(number)
        n_values += sum(row_group.column(position).num_values for position in stored_columns)
    return n_values


def read_row_ids(
    path: Path, names: Sequence[str], ids: str | None, read: Callable[[str], Any]
) -> tuple[list[str], str]:
    """Read the ids of the rows of a table from one of its columns or arrays, or from a file.

    Parameters
    ----------
    path
        The table, for messages.
    names
        Its columns or arrays.
    ids
        The column, array or file with the ids; None for the column or array with a name of `ID_NAMES`.
    read
        Reads a column or array, by its name.

    Returns
    -------
    list of str
        The ids.
    str
        The column or array that holds them; empty for a file.

    Raises
    ------
    StoreError
        It is not clear where the ids are.
    """
    found_names = first_few(names, SHOWN) or "one matrix, which does not say whose its rows are"
    if ids is None:
        candidates = [name for name in names if name in ID_NAMES]
        if len(candidates) != 1:
            how_many = "more than one" if candidates else "no"
            raise StoreError(
                f"{path}: {how_many} column or array of ids "
                f"({', '.join(ID_NAMES)}); give --ids NAME or --ids FILE; found {found_names}"
            )
        (ids,) = candidates
    is_name = ids in names  # of a column or array; else it is a file
    if is_name:
        return id_texts(read(ids), f"{path}, {ids}"), ids
    if not Path(ids).is_file():
        raise StoreError(f"--ids {ids}: no such file, nor a column or array of {path} ({found_names})")
    no_column = ""
    return read_ids(Path(ids)), no_column


def group_rows_by_clip(
    path: Path,
    ids: Sequence[str],
    arrays: Mapping[str, Any],
    options: TableOptions,
    *,
    frame_columns: FrameColumns,
    read_column: Callable[[str], Any],
    metadata: Mapping[str, str],
) -> FileContent:
    """Return the features of each clip of a table by the clip's id, and texts about the file.

    Each row is a clip, or, if the options say so and a row is one vector, a frame of a clip.

    Parameters
    ----------
    path
        The table, for messages.
    ids
        The clip of each row.
    arrays
        Name -> array with a row for each id.
    options
        Whether rows are frames (`of_frames`), and whether their times follow from a rate (`at_a_rate`).
    frame_columns
        Names of the columns that tell which frame of its clip a row is, if rows are frames.
    read_column
        Reads one of these columns, by its name.
    metadata
        Texts about the file. If rows are frames, a sentence that says so is added as `rows`.

    Raises
    ------
    StoreError
        If rows are clips and a clip has several; if rows are to be frames and do not fit; or if `--times`
        names a column although a row is not one frame.
    """
    checked_arrays = _check_rows(path, arrays, len(ids))
    first_array = next(iter(checked_arrays.values()))
    rows_are_vectors = len(checked_arrays) == 1 and first_array.ndim == 2  # [rows, D]
    rows_are_frames = options.of_frames and rows_are_vectors
    if rows_are_frames:
        items = frame_items(
            path, ids, first_array, frame_columns, read_column, must_be_even=options.at_a_rate
        )
        return items, {**metadata, "rows": describe_rows(frame_columns)}
    # A row is a whole clip. A column of times, which the user has named, would be that of single frames.
    if options.times is not None:
        raise StoreError(
            f"{path}: a row has several frames of its own, whose times are in an array time_s; --times names "
            "a column of tables with a row for each frame"
        )
    return row_items(path, ids, checked_arrays), dict(metadata)


def row_items(
    path: Path,
    ids: Sequence[str],
    arrays: Mapping[str, Any],
    *,
    status: Sequence[str] = (),
    reason: Sequence[str] = (),
    without_pictures_s: Sequence[str] = (),
) -> dict[str, ImportItem]:
    """Return id -> the features of its row, which are read when they are needed.

    No two rows may have the same id.

    Parameters
    ----------
    path
        The table, for messages.
    ids
        The id of each row.
    arrays
        Name -> array with a row for each id.
    status, reason
        Status of each row, and why it is not ok. Without them all rows are ok.
    without_pictures_s
        For each row the stretches in which its file has no pictures, as a text.
    """
    checked_arrays = _check_rows(path, arrays, len(ids))
    items: dict[str, ImportItem] = {}
    for row, name in enumerate(ids):
        if name in items:
            raise StoreError(
                f"{path}: id {name!r} is there twice (row {row + 1}); ids are unique, unless a row is a "
                "frame (--array frames)"
            )
        items[name] = ImportItem(
            where=f"{path}, row {row + 1} ({name})",
            load=partial(_read_row, checked_arrays, row, str(path)),
            status=status[row] if status else "ok",
            reason=reason[row] if reason else "",
            without_pictures=without_pictures_s[row] if without_pictures_s else "",
        )
    if not items:
        raise StoreError(f"{path}: no row in it")
    return items


def _check_rows(path: Path, arrays: Mapping[str, Any], n_ids: int) -> Mapping[str, Any]:
    """Return arrays of features by name, once it is checked that they have a row for each id.

    If each of D arrays has one number a row, they are stacked into one array [N, D] with the name "".

    Raises
    ------
    StoreError
        An array has another number of rows, holds no numbers or single numbers, or takes too much memory.
    """
    checked_arrays: dict[str, Any] = {}
    for name, array in arrays.items():
        location = f"{path}, {name}" if name else str(path)
        checked_arrays[name] = _check_array(array, location, n_ids)
    # Arrays of single numbers, such as f0, f1, ..., are the columns of one matrix, which has no name.
    are_named = "" not in checked_arrays
    have_number_per_row = all(array.ndim == 1 for array in checked_arrays.values())
    if are_named and have_number_per_row:
        checked_arrays = {"": _stack_columns(path, checked_arrays, n_ids)}
    for array in checked_arrays.values():
        if array.ndim < 2:
            raise StoreError(f"{path}: expected a row of features for each id; found {list(array.shape)}")
        if len(array):
            row_bytes = math.prod(array.shape[1:]) * array.dtype.itemsize
            refuse_larger(row_bytes, str(path))
    return checked_arrays


def _stack_columns(path: Path, columns: Mapping[str, Any], n_rows: int) -> NDArray[Any]:
    """Stack D columns of one number a row, [N] each, into an array [N, D].

    Raises
    ------
    StoreError
        It would be too large.
    """
    refuse_larger(n_rows * len(columns) * NUMBER_BYTES, str(path))
    return np.stack([column[:] for column in columns.values()], axis=1)


def _check_array(array: Any, location: str, n_ids: int) -> Any:
    """Return an array, once it is checked that it holds numbers and has a row for each id.

    The axes of a dataset that MATLAB wrote, which reverses them, are put in order first.

    `array` may be a dataset of HDF5, or another object that is read by rows.

    Raises
    ------
    StoreError
        It holds no numbers, has another number of rows, or cannot be read.
    """
    if isinstance(array, h5py.Dataset):
        if not is_plain(array):
            raise StoreError(f"{location}: lies in another file; only plain datasets are read")
        refuse_unreadable(array, location)
    if array.dtype.kind not in "fiub":
        raise StoreError(f"{location}: holds {array.dtype}, expected numbers")
    ordered = undo_matlab_order(array, location, MAX_UNPACKED)
    n_rows = len(ordered) if array.ndim else 0
    if n_rows != n_ids:
        raise StoreError(f"{location}: {counted(n_rows, 'row')} and {n_ids} ids")
    return ordered


def _read_row(arrays: Mapping[str, Any], row: int, location: str) -> Arrays:
    """Read one row of every array, as the features of a clip; `location` is what messages call the table."""
    with explain_hdf5_damage(location):  # an array may be a dataset of an HDF5 file
        return {name: np.asarray(array[row]) for name, array in arrays.items()}


def id_texts(values: Any, location: object) -> list[str]:
    """Convert a column of ids to texts.

    Raises
    ------
    StoreError
        If it is an array of several axes or of real numbers, or holds damaged text.
    """
    if isinstance(values, np.ndarray):
        holds_no_ids = values.dtype.kind in "fcV"  # real, complex, structures
        if values.ndim != 1 or holds_no_ids:
            raise StoreError(f"{location}: expected a list of ids; found {values.dtype} {list(values.shape)}")
    try:
        return [id_text(value) for value in values]
    except SystemError as error:  # an array of texts may hold numbers that are no characters
        raise StoreError(f"{location}: holds ids that are no text; the file is damaged") from error


def id_text(value: Any) -> str:
    """Convert an id of NumPy, pyarrow or Python to text; bytes are read as UTF-8."""
    if hasattr(value, "as_py"):  # a value of pyarrow
        value = value.as_py()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)
