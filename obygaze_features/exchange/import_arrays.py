"""Read features stored as arrays whose first axis is the clip: .npy, .npz, HDF5 and AnnData."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py

from obygaze_features.door import open_regular
from obygaze_features.errors import StoreError
from obygaze_features.exchange.array_choice import ArrayChoice
from obygaze_features.exchange.frame_rows import FrameColumns, frame_columns
from obygaze_features.exchange.import_files import map_npy, open_npz
from obygaze_features.exchange.import_hdf5 import (
    groups_of_clips,
    is_anndata,
    is_plain,
    naming_damage,
    open_hdf5,
    plain_node,
    read_column,
    text_of,
)
from obygaze_features.exchange.import_items import FileContent, TableOptions
from obygaze_features.exchange.row_ids import MOST_UNPACKED, id_texts, ids_of, row_items, rows_content
from obygaze_features.store.store_files import refuse_giants


@contextmanager
def npy_rows(path: Path, options: TableOptions) -> Iterator[FileContent]:
    """Read a matrix, whose ids a file holds."""
    matrix = map_npy(path)
    if {*options.columns} - {"*"}:
        raise StoreError(f"{path}: one matrix, whose columns have no names: --columns '*' takes all")
    labels, _ = ids_of(path, (), options.ids, list)
    yield rows_content(path, labels, {"": matrix}, options, columns=FrameColumns(), read=list, about={})


@contextmanager
def npz_rows(path: Path, options: TableOptions) -> Iterator[FileContent]:
    """Read the ids and the arrays of numpy.savez."""
    with open_regular(path) as file, open_npz(file, str(path), MOST_UNPACKED) as (headers, load):
        yield _rows(path, headers, options, load, load)


def _rows(
    path: Path,
    arrays: Mapping[str, Any],
    options: TableOptions,
    read: Callable[[str], Any],
    load: Callable[[str], Any],
) -> FileContent:
    """Take ids, of the array that `read` reads, and the arrays that have a row for each."""
    labels, column = ids_of(path, list(arrays), options.ids, read)
    of_frames = FrameColumns()
    if options.of_frames:
        numbers = [
            name for name, array in arrays.items() if name != column and getattr(array, "ndim", 0) == 1
        ]
        of_frames = frame_columns(path, numbers, options)
    choice = ArrayChoice(options.columns, axes=1)
    chosen = choice(path, {name: array for name, array in arrays.items() if name not in {column, *of_frames}})
    features = {name: load(name) for name in chosen}
    return rows_content(path, labels, features, options, columns=of_frames, read=load, about=choice.about)


@contextmanager
def hdf5_rows(path: Path, options: TableOptions) -> Iterator[FileContent]:
    """Open HDF5 or AnnData in this process, as `table_items` does in a subprocess."""
    with open_hdf5(path) as file:
        with naming_damage(str(path)):
            content = _hdf5_table(path, file, options)
        if content is not None:
            yield content
            return
    with groups_of_clips(path, options.columns, frozenset()) as groups:
        yield groups


def _hdf5_table(path: Path, file: h5py.File, options: TableOptions) -> FileContent | None:
    """Read AnnData or datasets at the top; None for a file that holds groups alone."""
    nodes = {name: plain_node(file, name) for name in file}
    if is_anndata(file):
        return _anndata(path, file, nodes["obs"], options)
    matrices = {name: node for name, node in nodes.items() if isinstance(node, h5py.Dataset)}
    if not matrices:
        return None
    return _rows(
        path, matrices, options, lambda name: read_column(matrices[name], path), matrices.__getitem__
    )


def _anndata(path: Path, file: h5py.File, obs: h5py.Group, options: TableOptions) -> FileContent:
    """Read AnnData's X, or what is asked for of obsm and layers, and obs. Source: https://anndata.readthedocs.io/en/stable/fileformat-prose.html."""
    uns = plain_node(file, "uns")
    arrays = {"X": plain_node(file, "X")} if "X" in file else {}
    for held in (plain_node(file, "obsm"), plain_node(file, "layers")):
        arrays |= {name: plain_node(held, name) for name in held} if isinstance(held, h5py.Group) else {}
    choice = ArrayChoice(options.columns or ("X",), axes=1)
    chosen = {name: arrays[name] for name in choice(path, arrays)}
    for name, x in chosen.items():
        if isinstance(x, h5py.Group):
            raise StoreError(f"{path}: {name} is sparse; write it dense (adata.X = adata.X.toarray())")
        if not isinstance(x, h5py.Dataset):
            raise StoreError(f"{path}: {name} is no matrix of this file; name one (--columns)")

    def read(name: str) -> Any:
        return read_column(plain_node(obs, name), path)

    labels, _ = ids_of(path, list(obs), options.ids or text_of(obs.attrs, "_index") or "_index", read)
    columns = {name: id_texts(read(name), path) for name in set(obs) & {"status", "reason"}}
    for name, cells in columns.items():
        if len(cells) != len(labels):
            raise StoreError(f"{path}: obs/{name} has {len(cells)} rows; expected {len(labels)}, one per id")
    about = choice.about
    for name in ("provenance", "backbone"):
        node = plain_node(uns, name) if isinstance(uns, h5py.Group) else None
        if is_plain(node) and node.shape == ():
            refuse_giants(node.dtype.itemsize, f"{path}, uns/{name}")
            about[name] = node.asstr()[()] if h5py.check_string_dtype(node.dtype) else ""
    return row_items(path, labels, chosen, **columns), about
