"""Tell which clip each row of another tool's table is about."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from obygaze_features.door import open_regular, read_bytes
from obygaze_features.errors import StoreError, install_command
from obygaze_features.exchange.frame_rows import FrameColumns, frame_items, said_of_rows
from obygaze_features.exchange.import_files import map_npy
from obygaze_features.exchange.import_hdf5 import in_rows, is_plain, naming_damage, refuse_unreadable
from obygaze_features.exchange.import_items import Arrays, FileContent, ImportItem, TableOptions, read_apart
from obygaze_features.file_kinds import NPY, PARQUET, TEXT, UNKNOWN, what, why_not
from obygaze_features.store.store_files import refuse_giants
from obygaze_features.text import first_few
from obygaze_features.text_records import read_records
from obygaze_features.workbook import Records

ID_NAMES = ("clip_id", "clip_ids", "clip", "id", "ids")
"""Names of the column or array of ids if --ids is not given."""

MOST_UNPACKED = 16 << 30
"""Most bytes of one array of a .npz, or of a column of Parquet, which is unpacked into memory as a whole."""

MOST_TEXT = 2 << 30
"""Most bytes of a table of text, which is held in memory."""


def read_ids(path: Path) -> list[str]:
    """Read clip ids: a column of `ID_NAMES` of a table, one id per line, or a .npy array of texts."""
    content = read_bytes(path)
    kind = what(content).name
    if kind == NPY:
        return id_texts(map_npy(path), path)
    if kind == PARQUET:
        with read_apart("Parquet", parquet_ids, path) as (_, texts):
            return list(json.loads(texts["ids"]))
    rows, delimiter, _ = text_rows(path)
    header = rows[0][1] if rows else []
    if (column := next((header.index(name) for name in ID_NAMES if name in header), -1)) >= 0:
        return [row[column] for _, row in rows[1:] if len(row) > column]
    return [delimiter.join(row) for _, row in rows]


def text_rows(path: Path) -> tuple[Records, str, tuple[str, ...]]:
    """Read the rows of a text or workbook that hold anything, what stands between their cells, and notes.

    Blanks around cells are left out, which OpenFace writes, also in its header.
    """
    with open_regular(path, MOST_TEXT) as file:
        content = file.readall()
    if what(content) == UNKNOWN:
        raise StoreError(f"{path}: {why_not(content, TEXT)}")
    records, delimiter, notes = read_records(path, content, StoreError, lambda _: True)
    rows = []
    for line, row in records:
        cells = [cell.strip() for cell in row]
        if any(cells):
            rows.append((line, cells))
    return rows, delimiter, notes


@contextmanager
def parquet_ids(path: Path) -> Iterator[FileContent]:
    """Read the ids of a Parquet file in this process: a column of `ID_NAMES`, or the only one of texts."""
    types, read = open_parquet(path)
    named = [name for name in types if name in ID_NAMES]
    named = named or [name for name, kind in types.items() if str(kind) in {"string", "large_string"}]
    if len(named) != 1:
        raise StoreError(f"{path}: expected one column {', '.join(ID_NAMES)}; found {', '.join(types)}")
    yield {}, {"ids": json.dumps(id_texts(read(named[0]), path))}


def open_parquet(path: Path) -> tuple[dict[str, Any], Callable[[str], Any]]:
    """Open a Parquet file in this process, if its reader is installed; return types, and what reads a column.

    Nothing is read of other columns, such as pictures; a column that swells is refused before it is read.
    """
    if find_spec("pyarrow") is None:
        raise StoreError(f"{path}: Parquet needs pyarrow ({install_command('pyarrow')}); or save a CSV")
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415 - no dependency of ours
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # noqa: PLC0415 - the same

    # Each thread takes memory of its own, and there may be as many as there are cores.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)

    @contextmanager
    def naming() -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError):
            raise StoreError(f"{path}: {why_not(path, PARQUET)}") from None

    def read(name: str) -> Any:
        paths = [f"{about.schema.column(at).path}." for at in range(about.num_columns)]
        columns = [at for at, path in enumerate(paths) if path.startswith(f"{name}.")]
        groups = (about.row_group(at) for at in range(about.num_row_groups))
        values = sum(group.column(at).num_values for group in groups for at in columns)
        refuse_giants(8 * values, f"{path}, column {name!r}", MOST_UNPACKED)
        with naming():
            return file.read(columns=[name]).column(name)

    with naming():
        file = pq.ParquetFile(path)
    about = file.metadata
    schema = file.schema_arrow
    if twice := next((name for name, n in Counter(schema.names).items() if n > 1), None):
        raise StoreError(f"{path}: two columns are called {twice!r}; give each a name of its own")
    return dict(zip(schema.names, schema.types, strict=True)), read


def ids_of(
    path: Path, names: Sequence[str], ids: str | None, read: Callable[[str], Any]
) -> tuple[list[str], str]:
    """Read ids from the column or array that holds them, whose name is returned too, or from a file."""
    description = first_few(names, 8) or "one matrix, which does not say whose its rows are"
    candidates = [name for name in names if name in ID_NAMES] if ids is None else [ids]
    if len(candidates) != 1:
        raise StoreError(
            f"{path}: {'no' if not candidates else 'more than one'} column or array of ids "
            f"({', '.join(ID_NAMES)}); give --ids NAME or --ids FILE; found {description}"
        )
    if candidates[0] in names:
        return id_texts(read(candidates[0]), f"{path}, {candidates[0]}"), candidates[0]
    if not Path(candidates[0]).is_file():
        raise StoreError(
            f"--ids {candidates[0]}: no such file, nor a column or array of {path} ({description})"
        )
    return read_ids(Path(candidates[0])), ""


def rows_content(
    path: Path,
    ids: Sequence[str],
    arrays: Mapping[str, Any],
    options: TableOptions,
    *,
    columns: FrameColumns,
    read: Callable[[str], Any],
    about: Mapping[str, str],
) -> FileContent:
    """Name rows by their clips; a row is a clip, or a frame where frames are asked for and it is one vector.

    Parameters
    ----------
    columns
        The columns that say where a frame is, and `read` reads.
    about
        Texts about the file, to which is added what a row is (`rows`) if it is a frame.

    Raises
    ------
    StoreError
        If a clip has several rows that are no frames, or rows can be no frames.
    """
    whole = _by_row(path, arrays, len(ids))
    vectors = next(iter(whole.values()))
    if options.of_frames and len(whole) == 1 and vectors.ndim == 2:
        items = frame_items(path, ids, vectors, columns, read, evenly=options.at_a_rate)
        return items, {**about, "rows": said_of_rows(columns)}
    if options.times is not None:
        raise StoreError(
            f"{path}: a row has several frames of its own, whose times are in an array time_s; --times names "
            "a column of tables with a row for each frame"
        )
    return row_items(path, ids, whole), dict(about)


def row_items(
    path: Path,
    ids: Sequence[str],
    arrays: Mapping[str, Any],
    status: Sequence[str] = (),
    reason: Sequence[str] = (),
) -> dict[str, ImportItem]:
    """Name each row by its id, which no other row has."""
    arrays_by_row = _by_row(path, arrays, len(ids))
    items: dict[str, ImportItem] = {}
    for row, name in enumerate(ids):
        if name in items:
            raise StoreError(
                f"{path}: id {name!r} is there twice (row {row + 1}); ids are unique, unless a row is a "
                "frame (--array frames)"
            )
        items[name] = ImportItem(
            f"{path}, row {row + 1} ({name})",
            partial(_row, arrays_by_row, row, str(path)),
            status[row] if status else "ok",
            reason[row] if reason else "",
        )
    if not items:
        raise StoreError(f"{path}: no row in it")
    return items


def _by_row(path: Path, arrays: Mapping[str, Any], rows: int) -> Mapping[str, Any]:
    """Check that arrays have a row for each id, and put columns side by side."""
    arrays_by_row: dict[str, Any] = {}
    for name, array in arrays.items():
        where = f"{path}, {name}" if name else str(path)
        if isinstance(array, h5py.Dataset):
            if not is_plain(array):
                raise StoreError(f"{where}: lies in another file; only plain datasets are read")
            refuse_unreadable(array, where)
        if array.dtype.kind not in "fiub":
            raise StoreError(f"{where}: holds {array.dtype}, expected numbers")
        arrays_by_row[name] = in_rows(array, where, MOST_UNPACKED)
        if (n_rows := len(arrays_by_row[name]) if array.ndim else 0) != rows:
            raise StoreError(f"{where}: {n_rows} rows and {rows} ids")
    if "" not in arrays_by_row and all(array.ndim == 1 for array in arrays_by_row.values()):
        refuse_giants(rows * len(arrays_by_row) * 8, str(path))
        arrays_by_row = {"": np.stack([array[:] for array in arrays_by_row.values()], axis=1)}
    for array in arrays_by_row.values():
        if array.ndim < 2:
            raise StoreError(f"{path}: expected a row of features for each id; found {list(array.shape)}")
        if len(array):
            refuse_giants(math.prod(array.shape[1:]) * array.dtype.itemsize, str(path))
    return arrays_by_row


def _row(arrays: Mapping[str, Any], row: int, where: str) -> Arrays:
    with naming_damage(where):
        return {name: np.asarray(array[row]) for name, array in arrays.items()}


def id_texts(values: Any, where: object) -> list[str]:
    """Write an array or a list of ids as texts."""
    if isinstance(values, np.ndarray) and (values.ndim != 1 or values.dtype.kind in "fcV"):
        raise StoreError(f"{where}: expected a list of ids; found {values.dtype} {list(values.shape)}")
    try:
        return [*map(id_text, values)]
    except SystemError as error:  # numpy accepts any number of 32 bits as a character
        raise StoreError(f"{where}: holds ids that are no text; the file is damaged") from error


def id_text(value: Any) -> str:
    """Write an id, of NumPy, pyarrow or Python, as text."""
    value = value.as_py() if hasattr(value, "as_py") else value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
