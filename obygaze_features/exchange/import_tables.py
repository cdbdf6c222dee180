"""Read features stored as one table: a matrix with one row per clip, and the row ids."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.exchange.columns import ColumnKind, choose_columns
from obygaze_features.exchange.frame_rows import FrameColumns, find_frame_columns
from obygaze_features.exchange.import_arrays import hdf5_rows, npy_rows, npz_rows
from obygaze_features.exchange.import_files import walk
from obygaze_features.exchange.import_items import FileContent, TableOptions, read_in_worker
from obygaze_features.exchange.row_ids import (
    ID_NAMES,
    group_rows_by_clip,
    open_parquet,
    read_row_ids,
    text_rows,
)
from obygaze_features.file_kinds import file_kind, why_not
from obygaze_features.store.records import WITHOUT_PICTURES
from obygaze_features.untrusted import open_regular
from obygaze_features.workbook import Records

NO_FEATURES = frozenset(
    {
        "movie",
        "video",
        "start_s",
        "end_s",
        "level",
        "concepts",
        "annotator",
        "status",
        "reason",
        WITHOUT_PICTURES,
        "",
        "index",
    }
)
"""Columns of manifests, of our exports and of pandas's indexes: never features, though they hold numbers."""

PANDAS_INDEX = "__index_level_0__"
"""Column of a data frame's index in Parquet."""

UNKNOWN_ROWS: Final = 0
"""Length of the second axis of a `RaggedColumn`, whose matrices have different numbers of rows."""

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

    These tables are read:

    - CSV (comma, semicolon or tab), the first sheet of a workbook (.xlsx), and Parquet, with a column of ids
      and a numeric column per feature. Parquet may have one column of lists instead. `choose_columns` chooses
      the columns of features. Numbers in a CSV are text, and are read as float32.
    - .npz, HDF5 and .npy, with arrays whose first axis is the clip. They keep their data type.
    - AnnData (.h5ad), with ids in `obs`; and HDF5 with a group per clip, as `store export` writes it.

    HDF5 and Parquet are read in a subprocess.

    Parameters
    ----------
    path
        The table, or a folder of tables that are parts of one.
    ids
        A file of ids in the order of the rows (one per line, or a column of `ID_NAMES`), or the name
        of the column or array that holds them; by default one of `ID_NAMES`.
    labels
        Names of columns that hold labels of the clips, such as concepts; they are not read as features.
    columns
        Patterns of the columns that are features (`choose_columns`); of CSV and Parquet.
    of_frames
        Whether the features are of frames: a row with one vector is then a frame of a clip.
    times
        The column of the frames' times; None for a column with a usual name, if there is one.
    at_a_rate
        Whether the caller computes the frames' times from a rate, so that frames must be evenly spaced.

    Raises
    ------
    StoreError
        Naming the file and the column or array at fault.
    """
    options = TableOptions(
        ids,
        tuple(columns),
        no_features=NO_FEATURES | frozenset(labels),
        of_frames=of_frames,
        times=times,
        at_a_rate=at_a_rate,
    )
    files = walk(path, TABLES) if path.is_dir() else [path]  # those of a folder are parts of one table
    is_table = len(files) > 0 and files[0].suffix.lower() in READERS
    if not is_table:
        raise _not_a_table(path)
    with ExitStack() as open_files:  # all parts stay open while their features are read
        contents = []
        for file in files:
            # Refuse a pipe, for which HDF5 and other libraries, that open the path themselves, would wait.
            open_regular(file).close()
            open_table = READERS[file.suffix.lower()]
            content = open_files.enter_context(open_table(file, options))
            contents.append(content)
        yield _join_parts(files, contents)


def _join_parts(files: Sequence[Path], contents: Sequence[FileContent]) -> FileContent:
    """Join the contents of files that are parts of one table: features by clip, and texts about the table.

    The files must have the same columns of features, in one order, and no clip in common. The content of a
    single file, of any kind, is returned as it is.

    Raises
    ------
    StoreError
        A clip is in two files, or the columns of features differ.
    """
    first_items, texts = contents[0]
    items = dict(first_items)
    for file, (items_of_file, texts_of_file) in zip(files[1:], contents[1:], strict=True):
        for clip in items_of_file:
            if clip in items:
                both = f"{items_of_file[clip].where} and {items[clip].where}"
                raise StoreError(f"{both}: both are of {clip!r}")
        has_same_features = texts_of_file["features"] == texts["features"]
        if not has_same_features:
            raise StoreError(
                f"{file}: its features are not those of {files[0]}, or in another order: name them "
                "(--columns), and give all parts one order"
            )
        items.update(items_of_file)
        _note_left_out(texts, texts_of_file.get("left_out", ""))
    return items, texts


def _not_a_table(path: Path) -> StoreError:
    """Return the error for a path that cannot be read as a table, with what to do instead."""
    hint = ""
    is_torch_file = path.suffix.lower() in {".pt", ".pth"}
    if is_torch_file:
        hint = "; --from pth reads a dict of clips"
    elif path.exists() and file_kind(path).remedy:  # a known kind of file that can be converted
        hint = f"; {why_not(path, 'one of them')}"
    return StoreError(
        f"{path}: --from table reads {', '.join(READERS)}, or a folder of {' or '.join(TABLES)}{hint}"
    )


def _note_left_out(texts: dict[str, str], *notes: str) -> None:
    """Add notes on what is not imported to `texts["left_out"]`; empty and repeated notes are skipped."""
    all_notes = [note for note in (texts.get("left_out"), *notes) if note]
    if all_notes:
        texts["left_out"] = "; ".join(dict.fromkeys(all_notes))


@contextmanager
def _open_text_table(path: Path, options: TableOptions) -> Iterator[FileContent]:
    """Open a CSV, a TSV or a workbook with a header row; yield clip -> its features, and texts on the file.

    Numbers may have decimal commas if cells are separated by semicolons or tabs.

    Raises
    ------
    StoreError
        The table is empty, a row has too few or too many cells, or a column cannot be read.
    """
    records, delimiter, notes = text_rows(path)
    if not records:
        raise StoreError(f"{path}: empty; expected a header and a row per clip")
    _, header = records[0]
    rows = records[1:]
    for line, row in rows:
        if len(row) != len(header):
            raise StoreError(f"{path}: line {line}: another number of cells than the header's {len(header)}")
    cells = _Cells(path, header, rows, has_decimal_commas=delimiter in {";", "\t"})
    # The functions by which `_read_content` reads columns of any table, here of texts. Times need more digits
    # than features.
    columns = _Columns(
        header=header,
        cells=cells.columns.__getitem__,
        kind_of=cells.kind_of,
        numbers=partial(cells.numbers, dtype=np.float32),
        times_and_numbers=partial(cells.numbers, dtype=np.float64),
    )
    items, texts = _read_content(path, columns, options)
    _note_left_out(texts, *notes)  # notes on rows that were not read
    yield items, texts


class _Cells:
    """The cells of a table of texts, read as numbers.

    Parameters
    ----------
    path
        The table.
    header, rows
        The names of the columns; line number and cells of each row.
    has_decimal_commas
        Whether a comma may stand before decimals, because it does not part cells.

    Attributes
    ----------
    columns
        Name of each column -> its cells.
    """

    def __init__(self, path: Path, header: Sequence[str], rows: Records, *, has_decimal_commas: bool) -> None:
        """Hold the cells of each column as text; they are converted to numbers when these are asked for."""
        self._path = path
        self._lines = [line for line, _ in rows]
        self._has_decimal_commas = has_decimal_commas
        self._decimal_marks = set[str]()  # commas and points in the columns that were read
        self.columns: dict[str, list[str]] = {}
        for position, name in enumerate(header):
            self.columns[name] = [cells[position] for _, cells in rows]

    def kind_of(self, name: str) -> ColumnKind:
        """Return "number" if a column has filled cells and all of these are numbers; else "other"."""
        filled_cells = [cell for cell in self.columns[name] if cell]
        try:
            for cell in filled_cells:
                self._number(cell)
        except ValueError:
            return "other"
        return "number" if filled_cells else "other"

    def numbers(self, name: str, dtype: type[np.floating[Any]]) -> NDArray[Any]:
        """Convert a column to an array of numbers, [rows].

        Raises
        ------
        StoreError
            Naming the line: a cell is no number. Or the table has decimal commas and decimal points.
        """
        cells = self.columns[name]
        self._refuse_mixed_decimal_marks(name)
        values = np.empty(len(cells), dtype)
        for row, cell in enumerate(cells):
            try:
                # A number too large for the type becomes infinite, and its clip is refused when it is read.
                with np.errstate(over="ignore"):
                    values[row] = self._number(cell)
            except ValueError:
                raise StoreError(
                    f"{self._path}: line {self._lines[row]}, column {name!r}: {cell[:40]!r} is no number; "
                    f"mend it, or leave the column out (--columns '!{name}')"
                ) from None
        return values

    def _number(self, cell: str) -> float:
        """Convert a cell to a number; raise ValueError if it is none.

        If the table has decimal commas, a comma or a point may come before the decimals.
        """
        if "_" in cell:  # Python reads 1_000 as 1000, but in a table it is no number
            raise ValueError
        if self._has_decimal_commas:
            cell = cell.replace(",", ".")
        return float(cell)

    def _refuse_mixed_decimal_marks(self, name: str) -> None:
        """Raise a StoreError if some numbers of the table have a comma and others a point.

        One of the marks may then separate thousands. The marks of the column are added to those of the
        columns that were read before.
        """
        for cell in self.columns[name]:
            for mark in (",", "."):
                if mark in cell:
                    self._decimal_marks.add(mark)
        if len(self._decimal_marks) > 1:
            location = f"{self._path}, column {name!r}"
            raise StoreError(
                f"{location}: numbers with ',' and numbers with '.': which one is before decimals?"
            )


class _Columns(NamedTuple):
    """The columns of a table, and functions that read one by its name.

    Attributes
    ----------
    header
        Names of the columns.
    cells
        Reads a column as it is, such as that of the ids.
    kind_of
        Returns what a column holds.
    numbers
        Reads a column of features: numbers [N], or vectors [N, D].
    times_and_numbers
        Reads a column of times or of numbers of frames, which tells which frame of its clip a row is, [N].
    """

    header: Sequence[str]
    cells: Callable[[str], Sequence[Any]]
    kind_of: Callable[[str], ColumnKind]
    numbers: Callable[[str], Any]
    times_and_numbers: Callable[[str], Any]


def _read_content(path: Path, columns: _Columns, options: TableOptions) -> FileContent:
    """Read the ids and the features of an open table; return the features by clip, and texts on the file.

    If the features are of frames, columns with the times or numbers of the frames are read too. The texts are
    the names of the columns of features (`features`) and of those that were not used (`left_out`).

    Parameters
    ----------
    path
        The table, for messages.
    columns
        The names of its columns, and functions that read them: of texts, or of Parquet.
    options
        Which columns are to be read, and how.
    """
    header = columns.header
    ids, id_column = read_row_ids(path, header, options.ids, columns.cells)
    frame_columns = FrameColumns()  # without columns of times and numbers: the names of both are empty
    if options.of_frames:
        names_without_ids = [name for name in header if name != id_column]
        frame_columns = find_frame_columns(path, names_without_ids, options)

    # pandas reads a CSV with an index that was saved without a name as a column `Unnamed: 0`.
    pandas_indices = {name for name in header if name.startswith("Unnamed: ")}
    names_of_frame_columns = {frame_columns.times, frame_columns.numbers}
    no_features = {id_column, *options.no_features, *pandas_indices, *names_of_frame_columns}
    features = choose_columns(path, header, columns.kind_of, options.columns, no_features)
    matrix = _feature_matrix(path, [columns.numbers(name) for name in features])

    texts = {"features": "\n".join(features)}
    used_columns = {*features, id_column, *names_of_frame_columns}
    unused_columns = _unused_columns(header, used_columns)
    if unused_columns:
        _note_left_out(texts, f"columns that are no features: {', '.join(unused_columns)}")
    only_array = ""  # an array that is the only one of a file needs no name
    return group_rows_by_clip(
        path,
        ids,
        {only_array: matrix},
        options,
        frame_columns=frame_columns,
        read_column=columns.times_and_numbers,
        metadata=texts,
    )


def _unused_columns(header: Sequence[str], used_columns: Collection[str]) -> list[str]:
    """Return the names of the columns that were not read, for a note.

    A column without a name is never read. An empty name among `used_columns` stands for no column at all,
    such as that of the times of frames if there is none.
    """
    unused = []
    for name in header:
        if name == "":
            unused.append("(without a name)")
        elif name not in used_columns:
            unused.append(name)
    return unused


def _feature_matrix(path: Path, columns: Sequence[Any]) -> Any:
    """Stack columns of features into an array with a row for each row of the table.

    N columns of numbers [rows] become [rows, N]; one column of vectors or matrices is returned as it is.

    Raises
    ------
    StoreError
        If it is a mixture, or several columns of vectors.
    """
    is_one_column_of_vectors = len(columns) == 1 and columns[0].ndim > 1
    if is_one_column_of_vectors:
        return columns[0]
    have_one_shape = len({column.shape for column in columns}) == 1
    are_columns_of_numbers = have_one_shape and columns[0].ndim == 1
    if are_columns_of_numbers:
        return np.stack(columns, axis=1)
    raise StoreError(f"{path}: expected columns of numbers, or one of lists")


@dataclass(frozen=True)
class RaggedColumn:
    """A column of matrices [T, D] whose T differ; it is read by rows like an array of three axes.

    Attributes
    ----------
    values
        The rows of all matrices, one matrix behind the other.
    ends
        Number of rows up to the end of each matrix, [N].
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
        """Shape as of an array of three axes: number of matrices N, 0 for the unknown T, length D of rows."""
        return (len(self.ends), UNKNOWN_ROWS, *self.values.shape[1:])

    def __len__(self) -> int:
        """Return the number of matrices."""
        return len(self.ends)

    def __getitem__(self, position: int) -> NDArray[Any]:
        """Return the matrix of a row of the table, [T, D]; `position` is counted from 0."""
        start = int(self.ends[position - 1]) if position > 0 else 0
        end = int(self.ends[position])
        return self.values[start:end]


@contextmanager
def parquet_rows(path: Path, options: TableOptions) -> Iterator[FileContent]:
    """Open a Parquet file in this process; yield clip -> its features, and texts on the file.

    pandas saves the index of a data frame as one more column. It holds the ids if no other column has a usual
    name of ids. Else it is not read.
    """
    types, read = open_parquet(path)
    has_index = PANDAS_INDEX in types
    header = [name for name in types if name != PANDAS_INDEX]
    has_column_of_ids = not set(ID_NAMES).isdisjoint(header)
    if has_index and not has_column_of_ids:
        header = list(types)  # with the index
        if not options.ids:
            options = options._replace(ids=PANDAS_INDEX)
    table = _ParquetTable(path, types, read)
    # The functions by which `_read_content` reads columns of any table, here of Parquet.
    columns = _Columns(
        header=header,
        cells=read,
        kind_of=table.kind_of,
        numbers=table.numbers,
        times_and_numbers=table.numbers,
    )
    yield _read_content(path, columns, options)


@dataclass(frozen=True)
class _ParquetTable:
    """The columns of a Parquet file.

    Attributes
    ----------
    path
        The file, for messages.
    types
        Name of each column -> its type.
    read
        Reads a column, by its name.
    """

    path: Path
    types: Mapping[str, Any]
    read: Callable[[str], Any]

    def kind_of(self, name: str) -> ColumnKind:
        """Return what a column holds, by its type: "number", "list" or "other"."""
        import pyarrow.types as pt  # type: ignore[import-untyped]  # noqa: PLC0415 - no dependency of ours

        column_type = self.types[name]
        if _is_list(column_type):
            return "list"
        number_types = (pt.is_floating, pt.is_integer, pt.is_boolean, pt.is_decimal)
        return "number" if any(is_type(column_type) for is_type in number_types) else "other"

    def numbers(self, name: str) -> Any:
        """Read a column of numbers, of vectors (lists of numbers) or of matrices (lists of vectors).

        N numbers become [N], N vectors [N, D], and N matrices [N, T, D]. All vectors must have one length D.
        If the matrices have different numbers T of vectors, they become a `RaggedColumn`: for example, the
        cells `[[1, 2]]` and `[[3, 4], [5, 6]]`.
        """
        import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415 - no dependency of ours
        import pyarrow.types as pt  # noqa: PLC0415 - the same

        column = self.read(name)
        n_rows_of_matrices = _lengths_if_ragged(column)  # T of each matrix; None if all have one length
        if n_rows_of_matrices is not None:
            column = pc.list_flatten(column)  # the rows of all matrices, one below the other
        flat = _flatten(column)  # its numbers in one sequence, and the lengths of the lists around them
        if not (pt.is_floating(flat.values.type) or pt.is_integer(flat.values.type)):
            raise StoreError(
                f"{self.path}: column {name!r} holds {self.types[name]}; expected numbers, or lists of one "
                "length"
            )
        array = np.asarray(flat.values.to_numpy()).reshape(-1, *flat.lengths)
        if n_rows_of_matrices is None:
            return array
        ends_of_matrices = np.cumsum(n_rows_of_matrices)  # the row of `array` at which each one ends
        return RaggedColumn(array, ends=ends_of_matrices)


class _Flattened(NamedTuple):
    """A column of nested lists whose innermost values stand one behind the other.

    Attributes
    ----------
    values
        The values, of pyarrow.
    lengths
        Length of the lists at each level, the outermost first.
    """

    values: Any
    lengths: tuple[int, ...]


def _flatten(column: Any) -> _Flattened:
    """Flatten nested lists, level by level, as long as all lists of a level have the same length.

    The values are still lists where lengths of a level differ, or lists are empty or missing.
    """
    import pyarrow.compute as pc  # noqa: PLC0415 - no dependency of ours

    lengths: list[int] = []
    while _is_list(column.type):
        lengths_of_level = pc.unique(pc.list_value_length(column)).to_pylist()
        if len(lengths_of_level) != 1:
            break
        length = lengths_of_level[0]
        if not length:  # 0, or None for missing lists
            break
        lengths.append(length)
        column = pc.list_flatten(column)
    return _Flattened(column, tuple(lengths))


def _is_list(column_type: Any) -> bool:
    """Return whether a type of pyarrow is one of its three types of lists."""
    import pyarrow.types as pt  # noqa: PLC0415 - no dependency of ours

    return bool(
        pt.is_list(column_type) or pt.is_fixed_size_list(column_type) or pt.is_large_list(column_type)
    )


def _lengths_if_ragged(column: Any) -> NDArray[Any] | None:
    """Return the number of vectors of each matrix in a column of matrices, if these numbers differ.

    Return None if all matrices have the same number, or the column does not hold matrices (lists of lists).

    Examples
    --------
    >>> import pyarrow as pa
    >>> one_vector = [[1.0, 2.0]]
    >>> two_vectors = [[1.0, 2.0], [3.0, 4.0]]
    >>> _lengths_if_ragged(pa.chunked_array([[one_vector, two_vectors, None]]))
    array([1, 2, 0]...)
    >>> _lengths_if_ragged(pa.chunked_array([[two_vectors, two_vectors]]))
    >>> _lengths_if_ragged(pa.chunked_array([[[1.0], [2.0, 3.0]]]))  # vectors, and no matrices
    """
    import pyarrow.compute as pc  # noqa: PLC0415 - no dependency of ours

    holds_matrices = _is_list(column.type) and _is_list(column.type.value_type)
    if not holds_matrices:
        return None
    lengths = pc.list_value_length(column)
    if len(pc.unique(lengths)) == 1:
        return None
    return np.asarray(pc.fill_null(lengths, 0).to_numpy())


READERS: Final[Mapping[str, Callable[..., AbstractContextManager[FileContent]]]] = {
    **dict.fromkeys((".csv", ".tsv", ".xlsx"), _open_text_table),
    ".parquet": partial(read_in_worker, "Parquet", parquet_rows),
    ".npy": npy_rows,
    ".npz": npz_rows,
    **dict.fromkeys((".h5", ".hdf5", ".h5ad", ".mat"), partial(read_in_worker, "HDF5", hdf5_rows)),
}
"""Suffix of a table -> what opens it."""
