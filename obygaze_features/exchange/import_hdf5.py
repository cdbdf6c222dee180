"""Read features stored as HDF5, a group per clip or columns of a table; links are not followed."""

import math
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

import h5py
import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.exchange.import_items import (
    MOST_BYTES,
    FileContent,
    ImportItem,
    read_apart,
    refuse_giants,
)

MOST_TEXT, TEXT_AT_ONCE = 1 << 27, 1 << 24
"""Most characters in a column of texts, and bytes read together: any text may be as long as the file."""


def hdf5_items(path: Path) -> AbstractContextManager[FileContent]:
    """Open an HDF5 file with one group per clip; yield path -> features, and the file's own texts.

    An exported group has its clip and status in its attributes. HDF5 runs in a subprocess.

    Raises
    ------
    StoreError
        If it is no such file, or HDF5 crashes. Links, and datasets in other files, are never followed.
    """
    return read_apart("HDF5", groups_of_clips, path)


@contextmanager
def groups_of_clips(path: Path) -> Iterator[FileContent]:
    """Open an HDF5 file in this process, as `hdf5_items` does in a subprocess."""
    with open_hdf5(path) as file:
        items: dict[str, ImportItem] = {}
        with naming_damage(str(path)):
            if {"X", "obs"} <= set(file):
                raise StoreError(f"{path}: is AnnData; --from table reads it")
            for group in _groups(file, str(path), {h5py.h5o.get_info(file.id).addr: "/"}):
                key = text_of(group.attrs, "clip") or group.name.strip("/")
                where = f"{path}, group {group.name}"
                if key in items:
                    raise StoreError(f"{where}: clip {key} is in the file twice")
                load = partial(_read_group, group, where)
                items[key] = ImportItem(
                    where, load, text_of(group.attrs, "status") or "ok", text_of(group.attrs, "reason")
                )
            texts = {name: text_of(file.attrs, name) for name in ("provenance", "backbone")}
        if not items:
            raise StoreError(
                f"{path}: expected a group for each clip, with a dataset in it (CLIP/pooled); "
                "found none. One matrix with a row per clip: --from table"
            )
        yield items, texts


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """Open an untrusted HDF5 file for reading.

    Raises
    ------
    StoreError
        If it is none.
    """
    with naming_damage(str(path)):
        file = h5py.File(path, "r")
    with file:
        yield file


@contextmanager
def naming_damage(where: str) -> Iterator[None]:
    """Turn what h5py raises for damaged bytes into a StoreError that names `where`."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        if error.errno is not None:
            raise
        raise StoreError(f"{where}: not readable as HDF5 ({str(error)[:200]})") from error
    except (RuntimeError, LookupError, OverflowError, ValueError, TypeError) as error:
        raise StoreError(f"{where}: damaged HDF5 ({str(error)[:200]})") from error


def _groups(node: h5py.Group, where: str, seen: dict[int, str]) -> Iterator[h5py.Group]:
    """Yield every group below that holds a dataset; `seen` maps the address of a group to its first name.

    Hard links give a group many names: a few levels of such groups have too many paths to visit.
    """
    for name in node:
        called = f"{node.name.rstrip('/')}/{name}"
        child = plain_node(node, name)
        if child is None:
            raise StoreError(f"{where}: {called} is a link; only plain groups are read")
        if isinstance(child, h5py.Group):
            address = h5py.h5o.get_info(child.id).addr
            if address in seen:
                raise StoreError(
                    f"{where}: {called} is the same group as {seen[address]}; "
                    "expected one place for every group of clips"
                )
            seen[address] = called
            if any(isinstance(plain_node(child, key), h5py.Dataset) for key in child):
                yield child
            else:
                yield from _groups(child, where, seen)


def plain_node(group: h5py.Group, name: str | bytes) -> object:
    """Return what a group holds under a name; None if there is nothing, or a link.

    h5py's own `in` and `get` follow links, so they open whatever file an external link names.

    Raises
    ------
    StoreError
        If the name is bytes: h5py could not read it as UTF-8.
    """
    if isinstance(name, bytes):
        raise StoreError(f"{group.file.filename}: the name {name!r:.200} is not UTF-8")
    key, links = name.encode("utf-8", "surrogateescape"), group.id.links
    if "/" in name or name in ("", ".") or not links.exists(key):
        return None
    return group[name] if links.get_info(key).type == h5py.h5l.TYPE_HARD else None


def is_plain(node: object) -> TypeGuard[h5py.Dataset]:
    """Return whether a node is a dataset whose numbers are in its own file."""
    return isinstance(node, h5py.Dataset) and not node.external and not node.is_virtual


def refuse_giant_chunks(dataset: h5py.Dataset, where: str) -> None:
    """Refuse chunks larger than a clip may be: reading one row decompresses its whole chunk."""
    size = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
    if size > MOST_BYTES:
        raise StoreError(
            f"{where}: chunks of {size} bytes; expected at most {MOST_BYTES}; save it with smaller chunks"
        )


def _read_group(group: h5py.Group, where: str) -> dict[str, NDArray[Any]]:
    datasets = {}
    size = 0
    with naming_damage(where):
        for name in group:
            dataset = plain_node(group, name)
            if not is_plain(dataset):
                raise StoreError(f"{where}: {name} is not a plain dataset of this file")
            if dataset.dtype.kind not in "fiu" or dataset.shape is None:
                raise StoreError(f"{where}: {name} holds {dataset.dtype}, expected numbers")
            size += int(dataset.size) * dataset.dtype.itemsize
            refuse_giants(size, where)
            refuse_giant_chunks(dataset, where)
            datasets[name] = dataset
        return {name: np.asarray(dataset[()]) for name, dataset in datasets.items()}


def text_of(attributes: Mapping[str, Any], name: str) -> str:
    """Read an attribute that is a text; empty if there is none."""
    value = attributes.get(name, "")
    return value if isinstance(value, str) else ""


def read_column(node: object, path: Path) -> NDArray[Any]:
    """Read a column of texts or numbers, or AnnData's categorical column: codes of categories, -1 for none.

    Raises
    ------
    StoreError
        If it is anything else, lies in another file, or takes more memory than one clip may.
    """
    if not isinstance(node, h5py.Group):
        return _plain_column(node, path)
    codes = _plain_column(plain_node(node, "codes"), path)
    known = _plain_column(plain_node(node, "categories"), path).astype(object)
    if codes.dtype.kind not in "iu" or not ((codes >= -1) & (codes < len(known))).all():
        raise StoreError(f"{path}: {node.name}: its codes are not the numbers of its {len(known)} categories")
    return np.asarray(np.append(known, "")[codes])


def _plain_column(node: object, path: Path) -> NDArray[Any]:
    if not is_plain(node) or node.ndim != 1:
        raise StoreError(f"{path}: the ids are no plain list of texts")
    refuse_giants(int(node.size) * max(64, node.dtype.itemsize), str(path))
    refuse_giant_chunks(node, str(path))
    texts = h5py.check_string_dtype(node.dtype)
    if texts is None and node.dtype.kind == "O":
        raise StoreError(f"{path}: {node.name} holds lists or references; expected texts or numbers")
    if texts is None:
        return np.asarray(node[()])
    # Thousands of texts may all point to one text as long as the file.
    longest = texts.length or node.file.id.get_filesize()
    step = max(1, min(1 << 16, TEXT_AT_ONCE // longest))
    texts_read: list[str] = []
    size = 0
    for start in range(0, len(node), step):
        batch = node.asstr()[start : start + step].tolist()
        size += sum(map(len, batch))
        if size > MOST_TEXT:
            raise StoreError(f"{path}: {node.name} has more than {MOST_TEXT} characters; expected ids")
        texts_read += batch
    return np.array(texts_read, dtype=object)
