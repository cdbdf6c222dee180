"""Read features stored as one table: a matrix with one row per clip, and the row ids."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.door import open_regular
from obygaze_features.errors import StoreError
from obygaze_features.exchange.columns import ColumnKind, choose_columns
from obygaze_features.exchange.frame_rows import FrameColumns, frame_columns
from obygaze_features.exchange.import_arrays import hdf5_rows, npy_rows, npz_rows
from obygaze_features.exchange.import_files import walk
from obygaze_features.exchange.import_items import FileContent, TableOptions, read_apart
from obygaze_features.exchange.row_ids import (
    ID_NAMES,
    ids_of,
    open_parquet,
    rows_content,
    text_rows,
)
from obygaze_features.file_kinds import what, why_not
from obygaze_features.workbook import Records

NO_FEATURES = frozenset(
    {"movie", "video", "start_s", "end_s", "level", "concepts", "annotator", "status", "reason", "", "index"}
)
"""Columns of manifests, of our exports and of pandas's indexes: never features, though they hold numbers."""

INDEX = "__index_level_0__"
"""Column of a data frame's index in Parquet."""

TABLES = (".csv", ".tsv", ".parquet")
"""Suffixes of tables that may come in parts, in one folder."""


@contextmanager
def table_items(
    path: Path,
    ids: str | None,
    labels: Collection[str] = (),
    columns: Sequence[str] = (),
    *,
    of_frames: bool = False,
    times: str | None = None,
    at_a_rate: bool = False,
) -> Iterator[FileContent]:
    """Open a table of features; yield row id -> its features, and texts about the file itself.

    CSV (comma, semicolon or tab), the first sheet of a workbook (.xlsx) and Parquet have a column of ids and
    a numeric column per feature; Parquet may have one column of lists instead. `choose_columns` tells which
    are features. .npz, HDF5 and .npy hold arrays whose first axis is the clip. AnnData (.h5ad) has ids in
    `obs`. An HDF5 file with a group per clip, as `store export` writes it, is read too. Numbers in a CSV are
    text and are read as float32; other files keep their data type. HDF5 and Parquet are read in a subprocess.

    Parameters
    ----------
    ids
        A file of ids in the order of the rows (one per line, or a column of `ID_NAMES`), or the name
        of the column or array that holds them; by default one of `ID_NAMES`.
    labels
        Names of columns that hold labels of the clips, such as concepts, and so no features.
    columns
        Patterns of the columns that are features (`choose_columns`); of CSV and Parquet.
    of_frames
        Whether the features are frames: a row with one vector is then a frame, and a clip has several rows.
    times
        The column of the frames' times; None for one of the usual names, or none.
    at_a_rate
        Whether the frames' times are to follow from a rate, so that frames must be at even distances.

    Raises
    ------
    StoreError
        Naming the file and the column or array at fault.
    """
    never = NO_FEATURES | frozenset(labels)
    options = TableOptions(ids, tuple(columns), never, of_frames, times, at_a_rate)
    readers: Mapping[str, Callable[..., AbstractContextManager[FileContent]]] = {
        **dict.fromkeys((".csv", ".tsv", ".xlsx"), _cells),
        ".parquet": partial(read_apart, "Parquet", parquet_rows),
        ".npy": npy_rows,
        ".npz": npz_rows,
        **dict.fromkeys((".h5", ".hdf5", ".h5ad", ".mat"), partial(read_apart, "HDF5", hdf5_rows)),
    }
    parts = walk(path, TABLES) if path.is_dir() else [path]
    if not parts or parts[0].suffix.lower() not in readers:
        torch = "; --from pth reads a dict of clips" if path.suffix.lower() in {".pt", ".pth"} else ""
        office = f"; {why_not(path, 'one of them')}" if path.exists() and what(path).remedy else ""
        raise StoreError(
            f"{path}: --from table reads {', '.join(readers)}, or a folder of {' or '.join(TABLES)}"
            f"{torch or office}"
        )
    with ExitStack() as opened:
        contents = []
        for part in parts:
            open_regular(part).close()  # HDF5 and others open the name themselves, and would wait for a pipe
            contents.append(opened.enter_context(readers[part.suffix.lower()](part, options)))
        items = dict(contents[0][0])
        texts = contents[0][1]
        for part, (items_of_part, about) in zip(parts[1:], contents[1:], strict=True):
            if twice := next(iter(items.keys() & items_of_part.keys()), None):
                places = f"{items_of_part[twice].where} and {items[twice].where}"
                raise StoreError(f"{places}: both are of {twice!r}")
            if about["features"] != texts["features"]:
                raise StoreError(
                    f"{part}: its features are not those of {parts[0]}, or in another order: name them "
                    "(--columns), and give all parts one order"
                )
            items.update(items_of_part)
            _leave_out(texts, about.get("left_out", ""))
        yield items, texts


def _leave_out(texts: dict[str, str], *notes: str) -> None:
    """Add to what is said to be left out."""
    if all_notes := dict.fromkeys(filter(None, (texts.get("left_out"), *notes))):
        texts["left_out"] = "; ".join(all_notes)


@contextmanager
def _cells(path: Path, options: TableOptions) -> Iterator[FileContent]:
    """Take ids and features of rows of texts, the header first."""
    records, delimiter, notes = text_rows(path)
    if not records:
        raise StoreError(f"{path}: empty; expected a header and a row per clip")
    (_, header), *rows = records
    if short := next((line for line, row in rows if len(row) != len(header)), None):
        raise StoreError(f"{path}: line {short}: another number of cells than the header's {len(header)}")

    def number(cell: str) -> float:
        if "_" in cell:  # of numbers in Python alone
            raise ValueError
        return float(cell.replace(",", ".") if delimiter in {";", "\t"} else cell)

    def numbers(name: str, dtype: type[np.floating[Any]] = np.float32) -> NDArray[Any]:
        cells = columns[name]
        _refuse_both_signs(f"{path}, column {name!r}", cells, signs)
        values = np.empty(len(cells), dtype)
        for n, cell in enumerate(cells):
            try:
                with np.errstate(over="ignore"):  # what is not finite is refused with its clip
                    values[n] = number(cell)
            except ValueError:
                raise StoreError(
                    f"{path}: line {rows[n][0]}, column {name!r}: {cell[:40]!r} is no number; mend it, or "
                    f"leave the column out (--columns '!{name}')"
                ) from None
        return values

    def kind_of(name: str) -> ColumnKind:
        try:
            numbers_there = [number(cell) for cell in columns[name] if cell]
        except ValueError:
            return "other"
        return "number" if numbers_there else "other"

    signs = set[str]()
    columns = _by_column(header, rows)
    places = partial(numbers, dtype=np.float64)
    read = _Columns(header, columns.__getitem__, kind_of, numbers, places)
    items, about = _features_of(path, read, options)
    _leave_out(about, *notes)
    yield items, about


def _refuse_both_signs(where: str, cells: Sequence[str], signs: set[str]) -> None:
    """Refuse numbers of which some have a comma and some a point; `signs` has those of the columns so far."""
    signs.update(sign for cell in cells for sign in ",." if sign in cell)
    if len(signs) > 1:
        raise StoreError(f"{where}: numbers with ',' and numbers with '.': which one is before decimals?")


def _by_column(header: Sequence[str], rows: Records) -> dict[str, list[str]]:
    columns = {}
    for n, name in enumerate(header):
        columns[name] = [row[n] for _, row in rows]
    return columns


class _Columns(NamedTuple):
    """The columns of a table by name, and how each is read.

    Attributes
    ----------
    header
        Their names.
    cells
        Gives a column as it stands, such as that of the ids.
    kind_of
        Tells what a column holds.
    numbers
        Gives a column of features: numbers [N], or vectors [N, D].
    places
        Gives a column that says where in its clip a row's frame is, [N].
    """

    header: Sequence[str]
    cells: Callable[[str], Sequence[Any]]
    kind_of: Callable[[str], ColumnKind]
    numbers: Callable[[str], Any]
    places: Callable[[str], Any]


def _features_of(path: Path, columns: _Columns, options: TableOptions) -> FileContent:
    """Take the column of ids and the features: columns of numbers, or one column of vectors."""
    header = columns.header
    ids, id_column = ids_of(path, header, options.ids, columns.cells)
    indices_of_pandas = {name for name in header if name.startswith("Unnamed: ")}
    of_frames = FrameColumns()
    if options.of_frames:
        of_frames = frame_columns(path, [name for name in header if name != id_column], options)
    never = {id_column, *options.never, *indices_of_pandas, *of_frames}
    features = choose_columns(path, header, columns.kind_of, options.columns, never)
    values = [columns.numbers(name) for name in features]
    has_vectors = values[0].ndim > 1
    if len({column.shape for column in values}) != 1 or (has_vectors and len(values) > 1):
        raise StoreError(f"{path}: expected columns of numbers, or one of lists")
    about = {"features": "\n".join(features)}
    used = {*features, id_column, *filter(None, of_frames)}
    left_out = [name or "(without a name)" for name in header if name not in used]
    if left_out:
        _leave_out(about, f"columns that are no features: {', '.join(left_out)}")
    matrix = values[0] if has_vectors else np.stack(values, axis=1)
    return rows_content(path, ids, {"": matrix}, options, columns=of_frames, read=columns.places, about=about)


@dataclass(frozen=True)
class RaggedColumn:
    """A column of matrices [T, D], each with a T of its own, read as an array is by its rows.

    Attributes
    ----------
    values
        The rows of all matrices, one behind the other.
    ends
        Number of rows up to the end of each matrix.
    """

    values: NDArray[Any]
    ends: NDArray[Any]

    ndim = 3

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the numbers."""
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of matrices, no number of rows, and the number of numbers in a row."""
        return (len(self.ends), 0, *self.values.shape[1:])

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, row: int) -> NDArray[Any]:
        first = int(self.ends[row - 1]) if row else 0
        return self.values[first : int(self.ends[row])]


@contextmanager
def parquet_rows(path: Path, options: TableOptions) -> Iterator[FileContent]:
    """Open a Parquet file in this process, as `table_items` does in a subprocess."""
    types, read = open_parquet(path)
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415 - no dependency of ours
    import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415 - the same

    header = [name for name in types if name != INDEX]
    if INDEX in types and not set(ID_NAMES) & set(header):
        header = list(types)  # a data frame's index holds the ids
        options = options._replace(ids=options.ids or INDEX)

    def is_list(kind: Any) -> bool:
        return bool(
            pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind)
        )

    def kind_of(name: str) -> ColumnKind:
        kind = types[name]
        if is_list(kind):
            return "list"
        plain = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal)
        return "number" if any(fits(kind) for fits in plain) else "other"

    def numbers(name: str) -> Any:
        values = read(name)
        shape = [-1]
        lengths: NDArray[Any] | None = None
        while is_list(values.type):
            sizes = pc.unique(pc.list_value_length(values)).to_pylist()
            if len(sizes) != 1 and shape == [-1] and lengths is None and is_list(values.type.value_type):
                lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0).to_numpy())
            elif len(sizes) == 1 and sizes[0]:
                shape.append(sizes[0])
            else:
                break
            values = pc.list_flatten(values)
        if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
            raise StoreError(
                f"{path}: column {name!r} holds {types[name]}; expected numbers, or lists of one length"
            )
        numbers_of_lists = np.asarray(values.to_numpy()).reshape(shape)
        return numbers_of_lists if lengths is None else RaggedColumn(numbers_of_lists, np.cumsum(lengths))

    yield _features_of(path, _Columns(header, read, kind_of, numbers, numbers), options)
