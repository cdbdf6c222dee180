"""Read features stored as arrays whose first axis is the clip: .npy, .npz, HDF5 and AnnData."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import h5py

from obygaze_features.errors import StoreError
from obygaze_features.exchange.array_choice import ArrayChoice
from obygaze_features.exchange.frame_rows import FrameColumns, find_frame_columns
from obygaze_features.exchange.import_files import map_npy, open_npz
from obygaze_features.exchange.import_hdf5 import (
    explain_hdf5_damage,
    groups_of_clips,
    is_anndata,
    is_plain,
    open_hdf5,
    plain_node,
    read_column,
    text_of,
)
from obygaze_features.exchange.import_items import FileContent, TableOptions
from obygaze_features.exchange.row_ids import (
    MAX_UNPACKED,
    group_rows_by_clip,
    id_texts,
    read_row_ids,
    row_items,
)
from obygaze_features.store.records import WITHOUT_PICTURES
from obygaze_features.store.store_files import refuse_larger
from obygaze_features.text import counted
from obygaze_features.untrusted import open_regular


@contextmanager
def npy_rows(path: Path, options: TableOptions) -> Iterator[FileContent]:
    """Read features from the matrix of a .npy file; the ids of its rows are in another file.

    Yields clip -> its features, and texts on the file, of which there are none. Other files have named
    columns, such as one with ids or times of frames; here there are none.
    """
    matrix = map_npy(path)
    if any(pattern != "*" for pattern in options.columns):
        raise StoreError(f"{path}: one matrix, whose columns have no names: --columns '*' takes all")

    no_column_names = ()

    def read_no_column(name: str) -> NoReturn:
        """Raise the error for a column that a file does not have: a .npy file has none."""
        raise KeyError(name)

    ids, _ = read_row_ids(path, no_column_names, options.ids, read_no_column)
    only_array = ""  # the only array of a file needs no name
    no_frame_columns = FrameColumns()
    yield group_rows_by_clip(
        path,
        ids,
        {only_array: matrix},
        options,
        frame_columns=no_frame_columns,
        read_column=read_no_column,
        metadata={},
    )


@contextmanager
def npz_rows(path: Path, options: TableOptions) -> Iterator[FileContent]:
    """Open a .npz file with an array of ids and arrays of features, each with a row for each clip or frame.

    Yields clip -> its features, and texts on the file.
    """
    with open_regular(path) as file, open_npz(file, str(path), MAX_UNPACKED) as (headers, load):
        yield _rows_of_arrays(path, headers, options, read_ids=load, open_array=load)


def _rows_of_arrays(
    path: Path,
    arrays: Mapping[str, Any],
    options: TableOptions,
    *,
    read_ids: Callable[[str], Any],
    open_array: Callable[[str], Any],
) -> FileContent:
    """Choose the ids and the features among arrays that have a row for each clip, or each frame.

    Returns clip -> its features, and texts on the file.

    Parameters
    ----------
    path
        The file, for messages.
    arrays
        Name -> description of the array, with its `dtype` and `ndim`.
    options
        Which arrays are to be read, and how.
    read_ids
        Reads the array of ids, by its name.
    open_array
        Opens or reads another array, by its name: of features, or of times or numbers of frames.
    """
    ids, id_array = read_row_ids(path, list(arrays), options.ids, read_ids)
    arrays_without_ids = {name: array for name, array in arrays.items() if name != id_array}

    # If a row is a frame of a clip, there may be arrays with its time, or its number in the clip.
    frame_columns = FrameColumns()  # none; both names are then empty
    if options.of_frames:
        columns = [name for name, array in arrays_without_ids.items() if getattr(array, "ndim", 0) == 1]
        frame_columns = find_frame_columns(path, columns, options)
    arrays_on_frames = {frame_columns.times, frame_columns.numbers}

    # Features are chosen among all other arrays. Those that are left out are named in `choice.about`.
    candidates = {name: array for name, array in arrays_without_ids.items() if name not in arrays_on_frames}
    choice = ArrayChoice(options.columns, n_leading_axes=1)
    names_of_features = choice.choose(path, candidates)
    features = {name: open_array(name) for name in names_of_features}
    return group_rows_by_clip(
        path,
        ids,
        features,
        options,
        frame_columns=frame_columns,
        read_column=open_array,
        metadata=choice.about,
    )


@contextmanager
def hdf5_rows(path: Path, options: TableOptions) -> Iterator[FileContent]:
    """Open HDF5 or AnnData, and yield clip -> its features, and texts on the file.

    Datasets at the top of the file have a row for each clip. Without them, each clip has a group.

    The library may crash on damaged files. So this is called in a process of its own, whose end does no harm.
    """
    with open_hdf5(path) as file:
        with explain_hdf5_damage(str(path)):
            content = _hdf5_content(path, file, options)  # None: the file has groups only
        if content is not None:
            yield content
            return
    # Clips are known by the names of their groups, of which nothing is said before.
    no_clip_ids = frozenset[str]()
    with groups_of_clips(path, options.columns, no_clip_ids) as content_of_groups:
        yield content_of_groups


def _hdf5_content(path: Path, file: h5py.File, options: TableOptions) -> FileContent | None:
    """Read features of AnnData, or of datasets at the top of a file; None for a file of groups only.

    Returns clip -> its features, and texts on the file. `plain_node` follows no links to other files, since a
    stranger may have made this one.
    """
    nodes = {name: plain_node(file, name) for name in file}
    if is_anndata(file):
        return _anndata_content(path, file, nodes["obs"], options)
    datasets = {name: node for name, node in nodes.items() if isinstance(node, h5py.Dataset)}
    if not datasets:
        return None

    def read(name: str) -> Any:
        """Read a dataset as a column."""
        return read_column(datasets[name], path)

    return _rows_of_arrays(path, datasets, options, read_ids=read, open_array=datasets.__getitem__)


def _anndata_content(path: Path, file: h5py.File, obs: h5py.Group, options: TableOptions) -> FileContent:
    """Read features of AnnData: X, or the wanted matrices of obsm and layers, with the ids in obs.

    Source: https://anndata.readthedocs.io/en/stable/fileformat-prose.html.
    """
    choice = ArrayChoice(options.columns or ("X",), n_leading_axes=1)
    matrices = _anndata_matrices(file)
    features = {name: matrices[name] for name in choice.choose(path, matrices)}
    _refuse_sparse(path, features)

    columns = _ObsColumns(path, obs)
    index_name = text_of(obs.attrs, "_index") or "_index"  # of the column with the names of the rows
    ids, _ = read_row_ids(path, columns.names, options.ids or index_name, columns.read)
    items = row_items(
        path,
        ids,
        features,
        status=columns.texts("status", n_rows=len(ids)),
        reason=columns.texts("reason", n_rows=len(ids)),
        without_pictures_s=columns.texts(WITHOUT_PICTURES, n_rows=len(ids)),
    )
    texts = {**choice.about, **_anndata_texts(file, path)}  # `about` names arrays that were left out
    return items, texts


class _ObsColumns:
    """The columns of AnnData's group `obs`, which describe its rows."""

    def __init__(self, path: Path, obs: h5py.Group) -> None:
        """List the names of the columns; their cells are read when they are asked for."""
        self._path = path
        self._obs = obs
        self.names = list(obs)  # to look names up: `name in obs` would follow links to other files

    def read(self, name: str) -> Any:
        """Read the cells of a column by its name."""
        return read_column(plain_node(self._obs, name), self._path)

    def texts(self, name: str, n_rows: int) -> list[str]:
        """Read a column of texts, one for each row; empty if there is no column of this name.

        Raises
        ------
        StoreError
            The column has another number of rows than `n_rows`, or cannot be read.
        """
        if name not in self.names:
            return []
        cells = id_texts(self.read(name), self._path)
        if len(cells) != n_rows:
            raise StoreError(
                f"{self._path}: obs/{name} has {counted(len(cells), 'row')}; expected {n_rows}, one per id"
            )
        return cells


def _refuse_sparse(path: Path, matrices: Mapping[str, object]) -> None:
    """Raise a StoreError if a chosen matrix is sparse (a group of arrays), or no plain dataset."""
    for name, matrix in matrices.items():
        if isinstance(matrix, h5py.Group):
            raise StoreError(f"{path}: {name} is sparse; write it dense (adata.X = adata.X.toarray())")
        if not isinstance(matrix, h5py.Dataset):
            raise StoreError(f"{path}: {name} is no matrix of this file; name one (--columns)")


def _anndata_matrices(file: h5py.File) -> dict[str, object]:
    """Return the nodes of AnnData that may be features: X, and those in the groups obsm and layers.

    Name -> an h5py dataset or group; None for a link to another file, which is not followed.
    """
    matrices: dict[str, object] = {}
    if "X" in file:
        matrices["X"] = plain_node(file, "X")
    for folder in (plain_node(file, "obsm"), plain_node(file, "layers")):
        if isinstance(folder, h5py.Group):
            matrices |= {name: plain_node(folder, name) for name in folder}
    return matrices


def _anndata_texts(file: h5py.File, path: Path) -> dict[str, str]:
    """Read the texts "provenance" and "backbone" from uns, where `export_anndata` writes them.

    The file may be a stranger's. In HDF5 a name may be a link to another file, and a dataset may have its
    bytes in one: neither is followed, as such a file could be anything. A file without these texts is fine.

    Returns
    -------
    Name -> text, of those that are there; "" for a value that is no text.

    Raises
    ------
    StoreError
        A text is larger than a file of a store may be.
    """
    texts: dict[str, str] = {}
    uns = plain_node(file, "uns")  # None if it is a link
    if not isinstance(uns, h5py.Group):
        return texts
    for name in ("provenance", "backbone"):
        node = plain_node(uns, name)
        if not is_plain(node) or node.shape != ():  # () is a single value
            continue
        # A text of fixed length has it in its type: a huge one is refused before it is read.
        refuse_larger(node.dtype.itemsize, f"{path}, uns/{name}")
        is_text = h5py.check_string_dtype(node.dtype) is not None
        texts[name] = node.asstr()[()] if is_text else ""
    return texts
