"""Read features stored as one table: a matrix with one row per clip, and the row ids."""

import csv
import io
import json
import math
import re
import zipfile
from codecs import BOM_UTF32_BE, BOM_UTF32_LE
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from obygaze_features.door import open_regular, read_bytes
from obygaze_features.errors import StoreError, install_command
from obygaze_features.exchange.array_choice import ArrayChoice
from obygaze_features.exchange.columns import ColumnKind, choose_columns
from obygaze_features.exchange.import_files import map_npy
from obygaze_features.exchange.import_hdf5 import (
    groups_of_clips,
    is_plain,
    naming_damage,
    open_hdf5,
    plain_node,
    read_column,
    refuse_giant_chunks,
    text_of,
)
from obygaze_features.exchange.import_items import (
    NOT_NPY,
    Arrays,
    FileContent,
    ImportItem,
    read_apart,
    refuse_giants,
)
from obygaze_features.file_kinds import NPY, NPZ, PARQUET, TEXT, UTF16, what, why_not
from obygaze_features.workbook import read_sheet

ID_NAMES = ("clip_id", "clip_ids", "clip", "id", "ids")
"""Names of the column or array of ids if --ids is not given."""

NO_FEATURES = frozenset(
    {"movie", "video", "start_s", "end_s", "level", "concepts", "annotator", "status", "reason", "", "index"}
)
"""Columns of manifests, of our exports and of pandas's indexes: never features, though they hold numbers."""

MOST_TEXT = 2 << 30
"""Most bytes of a table of text, which is held in memory."""

TABLES = (".csv", ".tsv", ".parquet")
"""Suffixes of tables that may come in parts, in one folder."""

MOST_UNPACKED = 16 << 30
"""Most bytes of one array of a .npz, which is unpacked into memory as a whole."""


@contextmanager
def table_items(
    path: Path, ids: str | None, labels: Collection[str] = (), columns: Sequence[str] = ()
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
        A file of ids in the order of the rows (one per line, or a table with a column clip_id), or the name
        of the column or array that holds them; by default one of `ID_NAMES`.
    labels
        Names of columns that hold labels of the clips, such as concepts, and so no features.
    columns
        Patterns of the columns that are features (`choose_columns`); of CSV and Parquet.

    Raises
    ------
    StoreError
        Naming the file and the column or array at fault.
    """
    never = NO_FEATURES | frozenset(labels)
    readers: Mapping[str, Callable[..., AbstractContextManager[FileContent]]] = {
        ".csv": _csv,
        ".tsv": _csv,
        ".xlsx": _xlsx,
        ".parquet": _parquet,
        ".npy": _npy,
        ".npz": _npz,
        ".h5": _hdf5,
        ".hdf5": _hdf5,
        ".h5ad": _hdf5,
    }
    parts = sorted(part for part in path.rglob("*") if part.suffix in TABLES) if path.is_dir() else [path]
    if not parts or parts[0].suffix.lower() not in readers:
        torch = "; --from pth reads a dict of clips" if path.suffix.lower() in {".pt", ".pth"} else ""
        office = f"; {why_not(path, 'one of them')}" if path.is_file() and what(path).remedy else ""
        raise StoreError(
            f"{path}: --from table reads {', '.join(readers)}, or a folder of {' or '.join(TABLES)}"
            f"{torch or office}"
        )
    items: dict[str, ImportItem] = {}
    texts: dict[str, str] = {}
    with ExitStack() as opened:
        for part in parts:
            open_regular(part).close()  # HDF5 and others open the name themselves, and would wait for a pipe
            read = readers[part.suffix.lower()]
            found, about = opened.enter_context(read(part, ids, asked=tuple(columns), never=never))
            if twice := next(iter(items.keys() & found.keys()), None):
                raise StoreError(f"{found[twice].where} and {items[twice].where}: both are of {twice!r}")
            items.update(found)
            texts |= about
        yield items, texts


def read_ids(path: Path) -> list[str]:
    """Read clip ids: the column clip_id of a CSV or Parquet, one id per line, or a .npy array of texts."""
    content = read_bytes(path)
    kind = what(content).name
    if kind == NPY:
        return _texts(map_npy(path), str(path))
    if kind == PARQUET:
        _need_pyarrow(path)
        with read_apart("Parquet", parquet_ids, path) as (_, texts):
            return list(json.loads(texts["ids"]))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = (
            "not UTF-8; save the list of ids as UTF-8 text"
            if kind == TEXT
            else why_not(content, "a list of ids")
        )
        raise StoreError(f"{path}: {reason}") from error
    lines = text.splitlines()
    delimiter = _delimiter(lines[0]) if lines else ","
    try:
        header, *rows = csv.reader(text.splitlines(keepends=True), delimiter=delimiter) if lines else [[]]
    except csv.Error as error:
        raise StoreError(f"{path}: not a table ({error})") from error
    if "clip_id" in header:
        column = header.index("clip_id")
        return [row[column] for row in rows if len(row) > column]
    return [line.strip() for line in lines if line.strip()]


# --- tables of text and columns
# ---------------------------------------------------------------------------
def _encoding(path: Path) -> str:
    """Tell UTF-8 from UTF-16, as Excel's Unicode text is, and UTF-32; refuse what is no text."""
    with open_regular(path) as file:
        head = file.read(4)
    kind = what(path)
    if head in (BOM_UTF32_LE, BOM_UTF32_BE):
        return "utf-32"
    if kind.remedy and kind.name != UTF16:
        raise StoreError(f"{path}: {why_not(path, TEXT)}")
    return "utf-16" if kind.name == UTF16 else "utf-8-sig"


def _csv_rows(path: Path) -> tuple[list[list[str]], str]:
    """Read the rows that are not empty, the header first, and what stands between their cells."""
    encoding = _encoding(path)
    opened = io.BufferedReader(open_regular(path, MOST_TEXT))
    with io.TextIOWrapper(opened, encoding=encoding, newline="") as file:
        try:
            first = file.readline()
            if not (said := re.match(r'"?sep=(.)', first)):  # Excel's own first line
                file.seek(0)
            delimiter = said[1] if said else _delimiter(first)
            return [row for row in csv.reader(file, delimiter=delimiter, strict=True) if row], delimiter
        except (csv.Error, UnicodeDecodeError) as error:
            raise StoreError(f"{path}: not a UTF-8 table ({error})") from error


@contextmanager
def _csv(path: Path, ids: str | None, asked: tuple[str, ...], never: frozenset[str]) -> Iterator[FileContent]:
    yield _cells(path, *_csv_rows(path), ids, asked=asked, never=never)


@contextmanager
def _xlsx(
    path: Path, ids: str | None, asked: tuple[str, ...], never: frozenset[str]
) -> Iterator[FileContent]:
    records, others = read_sheet(path, read_bytes(path), StoreError)
    items, about = _cells(path, [cells for _, cells in records], "", ids, asked=asked, never=never)
    said = [*filter(None, [about.get("left_out")]), *others]
    yield items, {"left_out": "; ".join(said)} if said else {}


def _cells(
    path: Path,
    lines: Sequence[Sequence[str]],
    delimiter: str,
    ids: str | None,
    *,
    asked: tuple[str, ...],
    never: frozenset[str],
) -> FileContent:
    """Take ids and features of rows of texts, the header first."""
    if not lines:
        raise StoreError(f"{path}: empty; expected a header and a row per clip")
    header, *rows = lines
    if short := next((n for n, row in enumerate(rows, 2) if len(row) != len(header)), None):
        raise StoreError(f"{path}: line {short}: another number of cells than the header's {len(header)}")

    def number(cell: str) -> float:
        if "_" in cell:  # of numbers in Python alone
            raise ValueError
        return float(cell.replace(",", ".") if delimiter == ";" else cell)

    def numbers(name: str) -> NDArray[Any]:
        cells = columns[name]
        values = np.empty(len(cells), np.float32)
        for n, cell in enumerate(cells):
            try:
                values[n] = number(cell)
            except ValueError:
                raise StoreError(
                    f"{path}: line {n + 2}, column {name!r}: {cell[:40]!r} is no number; mend it, or "
                    f"leave the column out (--columns '!{name}')"
                ) from None
        return values

    def kind_of(name: str) -> ColumnKind:
        try:
            given = [number(cell) for cell in columns[name] if cell.strip()]
        except ValueError:
            return "other"
        return "number" if given else "other"

    columns = {name: [row[n] for row in rows] for n, name in enumerate(header)}
    return _columns(path, header, columns, ids, asked=asked, never=never, kind_of=kind_of, numbers=numbers)


def _columns(
    path: Path,
    header: Sequence[str],
    columns: Mapping[str, Sequence[Any]],
    ids: str | None,
    *,
    asked: tuple[str, ...],
    never: frozenset[str],
    kind_of: Callable[[str], ColumnKind],
    numbers: Callable[[str], NDArray[Any]],
) -> FileContent:
    """Take a column of ids and columns of numbers, or one of vectors, which `numbers` makes of a column."""
    names, column = _ids_of(path, header, ids)
    labels = [*map(_text, columns[column])] if names is None else names
    own_index = {name for name in header if name.startswith("Unnamed: ")}
    features = choose_columns(path, header, kind_of, asked, {column, *never, *own_index})
    chosen = [numbers(name) for name in features]
    if len({values.shape for values in chosen}) != 1 or (len(chosen) > 1 and chosen[0].ndim > 1):
        raise StoreError(f"{path}: expected columns of numbers, or one of lists")
    others = [name for name in header if name not in {*features, column}]
    shown = ", ".join(name or "(without a name)" for name in others)
    about = {"left_out": f"columns that are no features: {shown}"} if others else {}
    matrix = chosen[0] if chosen[0].ndim > 1 else np.stack(chosen, axis=1)
    return _items(path, labels, {"": matrix}), about


def _parquet(
    path: Path, ids: str | None, asked: tuple[str, ...], never: frozenset[str]
) -> AbstractContextManager[FileContent]:
    _need_pyarrow(path)
    return read_apart("Parquet", parquet_rows, path, ids, asked, never)


def _need_pyarrow(path: Path) -> None:
    if find_spec("pyarrow") is None:
        raise StoreError(f"{path}: Parquet needs pyarrow ({install_command('pyarrow')}); or save a CSV")


@contextmanager
def parquet_ids(path: Path) -> Iterator[FileContent]:
    """Read the ids of a Parquet file in this process: a column of `ID_NAMES`, or the only one of texts."""
    table = _parquet_table(path)
    columns = {name: table.column(name) for name in table.column_names}
    named = [name for name in columns if name in ID_NAMES]
    named = named or [
        name for name, column in columns.items() if str(column.type) in {"string", "large_string"}
    ]
    if len(named) != 1:
        raise StoreError(f"{path}: expected one column {', '.join(ID_NAMES)}; found {', '.join(columns)}")
    yield {}, {"ids": json.dumps([*map(_text, columns[named[0]].to_pylist())])}


def _parquet_table(path: Path) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415 - no dependency of ours
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # noqa: PLC0415 - the same

    try:
        return pq.read_table(path)
    except (pa.ArrowException, OSError):
        raise StoreError(f"{path}: {why_not(path, PARQUET)}") from None


@contextmanager
def parquet_rows(
    path: Path, ids: str | None, asked: tuple[str, ...], never: frozenset[str]
) -> Iterator[FileContent]:
    """Open a Parquet file in this process, as `table_items` does in a subprocess."""
    import pyarrow as pa  # noqa: PLC0415 - no dependency of ours

    table = _parquet_table(path)
    header = [name for name in table.column_names if name != "__index_level_0__"]
    if "__index_level_0__" in table.column_names and not set(ID_NAMES) & set(header):
        header = table.column_names  # a data frame's index holds the ids
        ids = ids or "__index_level_0__"

    lists = (pa.types.is_list, pa.types.is_fixed_size_list, pa.types.is_large_list)

    def kind_of(name: str) -> ColumnKind:
        kind = columns[name].type
        if any(fits(kind) for fits in lists):
            return "list"
        plain = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal)
        return "number" if any(fits(kind) for fits in plain) else "other"

    def numbers(name: str) -> NDArray[Any]:
        values = columns[name]
        if pa.types.is_floating(values.type) or pa.types.is_integer(values.type):
            return np.asarray(values.to_numpy())
        vectors = values.to_numpy() if kind_of(name) == "list" else []
        if len({0 if vector is None else len(vector) for vector in vectors}) != 1:
            raise StoreError(
                f"{path}: column {name!r} holds {values.type}; expected numbers, or lists of one length"
            )
        return np.stack(list(vectors))

    columns = dict(zip(table.column_names, table.columns, strict=True))
    yield _columns(path, header, columns, ids, asked=asked, never=never, kind_of=kind_of, numbers=numbers)


# --- files of arrays
# ---------------------------------------------------------------------------
@contextmanager
def _npy(path: Path, ids: str | None, asked: tuple[str, ...], **_: object) -> Iterator[FileContent]:
    matrix = map_npy(path)
    if asked:
        raise StoreError(f"{path}: one matrix, whose columns have no names: leave out --columns and --key")
    if ids is None:
        raise StoreError(f"{path}: a matrix does not say whose its rows are; give --ids FILE")
    yield _items(path, _ids_file(path, ids), {"": matrix}), {}


@contextmanager
def _npz(path: Path, ids: str | None, asked: tuple[str, ...], **_: object) -> Iterator[FileContent]:
    try:
        with open_regular(path) as opened, np.lib.npyio.NpzFile(opened, allow_pickle=False) as file:
            for member in file.zip.infolist() if file.zip else ():
                _refuse_bomb(member, path)
            arrays = {name: file[name] for name in file.files}
    except StoreError:
        raise
    except (*NOT_NPY, OSError, zipfile.BadZipFile) as error:
        text = "; ids are texts: save them with np.asarray(ids, str)" if "pickle" in str(error) else ""
        raise StoreError(f"{path}: {why_not(path, NPZ)}{text}") from error
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # numpy returns bytes for other files in the zip
            raise StoreError(f"{path}: {name} is no array; expected what numpy.savez writes")
    yield _rows(path, arrays, ids, asked, lambda column: _texts(arrays[column], f"{path}, {column}"))


def _rows(
    path: Path,
    arrays: Mapping[str, Any],
    ids: str | None,
    asked: tuple[str, ...],
    texts: Callable[[str], list[str]],
) -> FileContent:
    """Take ids and the arrays that have a row for each."""
    names, column = _ids_of(path, list(arrays), ids)
    labels = texts(column) if names is None else names
    choice = ArrayChoice(asked, axes=1)
    rest = {name: array for name, array in arrays.items() if name != column}
    return _items(path, labels, _by_row(path, rest, len(labels), choice)), choice.about


def _refuse_bomb(member: zipfile.ZipInfo, path: Path) -> None:
    if member.file_size > MOST_UNPACKED:
        raise StoreError(f"{path}: {member.filename} is too large to unpack; save it as .npy")
    if member.compress_size > path.stat().st_size:  # zipfile allocates that much before it reads
        raise StoreError(f"{path}: {member.filename} claims more bytes than the file has; it is damaged")


def _hdf5(
    path: Path, ids: str | None, asked: tuple[str, ...], **_: object
) -> AbstractContextManager[FileContent]:
    return read_apart("HDF5", hdf5_rows, path, ids, asked)


@contextmanager
def hdf5_rows(path: Path, ids: str | None, asked: tuple[str, ...]) -> Iterator[FileContent]:
    """Open HDF5 or AnnData in this process, as `table_items` does in a subprocess."""
    with open_hdf5(path) as file:
        with naming_damage(str(path)):
            content = _hdf5_table(path, file, ids, asked)
        if content is not None:
            yield content
            return
    with groups_of_clips(path, asked, frozenset()) as groups:
        yield groups


def _hdf5_table(path: Path, file: h5py.File, ids: str | None, asked: tuple[str, ...]) -> FileContent | None:
    """Read AnnData or datasets at the top; None for a file that holds groups alone."""
    nodes = {name: plain_node(file, name) for name in file}
    if "X" in nodes and isinstance(obs := nodes.get("obs"), h5py.Group):
        return _anndata(path, file, obs, ids, asked)
    matrices = {name: node for name, node in nodes.items() if isinstance(node, h5py.Dataset)}
    if not matrices:
        return None
    return _rows(path, matrices, ids, asked, lambda column: _texts(read_column(matrices[column], path), path))


def _anndata(
    path: Path, file: h5py.File, obs: h5py.Group, ids: str | None, asked: tuple[str, ...]
) -> FileContent:
    """Read AnnData's X, or what is asked for of obsm and layers, and obs. Source: https://anndata.readthedocs.io/en/stable/fileformat-prose.html."""
    x, uns = plain_node(file, "X"), plain_node(file, "uns")
    held = [
        node
        for node in (plain_node(file, "obsm"), plain_node(file, "layers"))
        if isinstance(node, h5py.Group)
    ]
    arrays = {"X": x} | {name: plain_node(group, name) for group in held for name in group}
    choice = ArrayChoice(asked or ("X",), axes=1)
    (chosen,) = choice(path, arrays)
    x = arrays[chosen]
    if not isinstance(x, h5py.Dataset):
        raise StoreError(f"{path}: {chosen} is sparse; write it dense (adata.X = adata.X.toarray())")
    if ids and Path(ids).is_file():
        labels = read_ids(Path(ids))
    else:
        name = ids or text_of(obs.attrs, "_index") or "_index"
        column = plain_node(obs, name)
        if column is None:
            raise StoreError(f"{path}: obs has no column {name!r} of its own; found {', '.join(obs)}")
        labels = _texts(read_column(column, path), path)
    known = set(obs) & {"status", "reason"}
    columns = {name: _texts(read_column(plain_node(obs, name), path), path) for name in known}
    for name, texts in columns.items():
        if len(texts) != len(labels):
            raise StoreError(f"{path}: obs/{name} has {len(texts)} rows; expected {len(labels)}, one per id")
    about = choice.about
    for name in ("provenance", "backbone"):
        node = plain_node(uns, name) if isinstance(uns, h5py.Group) else None
        if is_plain(node) and node.shape == ():
            refuse_giants(node.dtype.itemsize, f"{path}, uns/{name}")
            about[name] = node.asstr()[()] if h5py.check_string_dtype(node.dtype) else ""
    return _items(path, labels, _by_row(path, {"": x}, len(labels), ArrayChoice(axes=1)), **columns), about


# --- what all of them share
# ---------------------------------------------------------------------------
def _ids_of(path: Path, names: Sequence[str], ids: str | None) -> tuple[list[str] | None, str]:
    """Return the ids of a file of ids, or the name of the column or array that holds them."""
    if ids is not None and ids not in names:
        return _ids_file(path, ids, names), ""
    if ids is not None:
        return None, ids
    candidates = [name for name in names if name in ID_NAMES]
    if len(candidates) != 1:
        found = [*names[:8], *(["..."] if names[8:] else [])]
        raise StoreError(
            f"{path}: {'no' if not candidates else 'more than one'} column or array of ids "
            f"({', '.join(ID_NAMES)}); give --ids NAME or --ids FILE; found {', '.join(found)}"
        )
    return None, candidates[0]


def _ids_file(path: Path, ids: str, names: Sequence[str] = ()) -> list[str]:
    if not Path(ids).is_file():
        within = f", nor a column or array of {path} ({', '.join(names[:8])})" if names else ""
        raise StoreError(f"--ids {ids}: no such file{within}")
    return read_ids(Path(ids))


def _by_row(path: Path, arrays: Mapping[str, Any], rows: int, choice: ArrayChoice) -> dict[str, Any]:
    """Choose the arrays that have a row per clip: those named as the format's, a single one, or columns."""
    for name, array in arrays.items():
        if isinstance(array, h5py.Dataset) and not is_plain(array):
            raise StoreError(f"{path}: {name} lies in another file; only plain datasets are read")
    chosen = {name: arrays[name] for name in choice(path, arrays)}
    for name, array in chosen.items():
        where = f"{path}, {name}" if name else str(path)
        if (found := array.shape[0] if array.ndim else 0) != rows:
            raise StoreError(f"{where}: {found} rows and {rows} ids")
        if isinstance(array, h5py.Dataset):
            refuse_giant_chunks(array, where)
    if all(array.ndim == 1 for array in chosen.values()):
        refuse_giants(rows * len(chosen) * 8, str(path))
        return {"": np.stack([array[:] for array in chosen.values()], axis=1)}
    return chosen


def _items(
    path: Path,
    ids: Sequence[str],
    arrays: Mapping[str, Any],
    status: Sequence[str] = (),
    reason: Sequence[str] = (),
) -> dict[str, ImportItem]:
    for array in arrays.values():
        if array.ndim < 2 or len(array) != len(ids):
            raise StoreError(
                f"{path}: expected a matrix with a row for each of {len(ids)} ids; found {list(array.shape)}"
            )
        if len(array):
            refuse_giants(math.prod(array.shape[1:]) * array.dtype.itemsize, str(path))
    items: dict[str, ImportItem] = {}
    for row, name in enumerate(ids):
        if name in items:
            raise StoreError(f"{path}: id {name!r} is there twice (row {row + 1}); ids are unique")
        items[name] = ImportItem(
            f"{path}, row {row + 1} ({name})",
            partial(_row, arrays, row, str(path)),
            status[row] if status else "ok",
            reason[row] if reason else "",
        )
    if not items:
        raise StoreError(f"{path}: no row in it")
    return items


def _row(arrays: Mapping[str, Any], row: int, where: str) -> Arrays:
    with naming_damage(where):
        return {name: np.asarray(array[row]) for name, array in arrays.items()}


def _texts(values: NDArray[Any], where: object) -> list[str]:
    if values.ndim != 1 or values.dtype.kind in "fcV":
        raise StoreError(f"{where}: expected a list of ids; found {values.dtype} {list(values.shape)}")
    try:
        return [*map(_text, values)]
    except SystemError as error:  # numpy accepts any number of 32 bits as a character
        raise StoreError(f"{where}: holds ids that are no text ({error}); the file is damaged") from error


def _text(value: Any) -> str:
    """Write an id, of NumPy, pyarrow or Python, as text."""
    value = value.as_py() if hasattr(value, "as_py") else value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _delimiter(header: str) -> str:
    """Find the delimiter: Excel writes semicolons in locales with a decimal comma."""
    return "," if "," in header else next((sign for sign in ";\t" if sign in header), ",")
