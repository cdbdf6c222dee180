"""Export features for tools that do not read Zarr: HDF5 with one group per clip, and AnnData."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from obygaze_features.exchange.transfer import new_file
from obygaze_features.io import write_all
from obygaze_features.store.format import TIME_ARRAYS
from obygaze_features.store.group import Group, rows_of
from obygaze_features.store.provenance import FILLED_IN
from obygaze_features.store.records import WITHOUT_PICTURES, format_stretches
from obygaze_features.store.store import Store

SPAN = ("start_s", "end_s")
"""Columns of numbers beside the features; the others hold texts."""
ClipTexts = Mapping[str, Mapping[str, str]]
"""Texts to write beside the features, such as level and concepts: name -> clip id -> text."""


def export_hdf5(
    store: Store, backbone: str, path: Path | str, labels: ClipTexts | None = None
) -> tuple[int, int]:
    """Write one backbone's features as HDF5: a group per clip, a dataset per array, bit for bit.

    Parameters
    ----------
    store, backbone
        The store, and the backbone.
    path
        The file to write.
    labels
        Name -> clip id -> text: further attributes of the clips' groups.

    Returns
    -------
    tuple
        Clips written, and clips left out because they have no features.

    Raises
    ------
    StoreError
        If the file exists, there is no such backbone, or the store's bytes are damaged.
    """
    group = store[backbone]
    rows = _usable_rows(group)
    arrays = (*group.arrays, *TIME_ARRAYS)
    columns = _clip_columns(store, group, rows, labels)
    with _new_file(Path(path)) as (file, sink):
        for name, text in _origin(store, group).items():
            file.attrs[name] = text
        streams = [rows_of(group, array, rows) for array in arrays]
        for position, values in enumerate(zip(*streams, strict=True)):
            node = file.create_group(_group_name(columns["clip"][position]))
            for name, column in columns.items():
                if column[position] is not None:
                    node.attrs[name] = column[position]
            for array, value in zip(arrays, values, strict=True):
                node.create_dataset(array, data=value)
            sink.check()
    return len(rows), len(group) - len(rows)


def export_anndata(
    store: Store, backbone: str, path: Path | str, labels: ClipTexts | None = None
) -> tuple[int, int]:
    """Write one backbone's pooled features as AnnData: X [clips, features], a line of `obs` per clip.

    The on-disk format of AnnData 0.8 and later, written without the library. Source:
    https://anndata.readthedocs.io/en/stable/fileformat-prose.html

    Parameters
    ----------
    store, backbone
        The store, and the backbone.
    path
        The file to write.
    labels
        Name -> clip id -> text: further columns of `obs`.

    Returns
    -------
    tuple
        Clips written, and clips left out because they have no features.

    Raises
    ------
    StoreError
        If the file exists, the backbone has no pooled features, or the store's bytes are damaged.
    """
    group = store[backbone]
    rows = _usable_rows(group)
    n_features = group.shape("pooled")[1]
    columns = _clip_columns(store, group, rows, labels)
    with _new_file(Path(path)) as (file, sink):
        _encode(file, "anndata", "0.1.0")
        x = file.create_dataset("X", (len(rows), n_features), np.float32)
        _encode(x, "array", "0.2.0")
        for position, values in enumerate(rows_of(group, "pooled", rows)):
            x[position] = values
            sink.check()
        _dataframe(file, "obs", columns.pop("clip"), columns)
        _dataframe(file, "var", [f"{backbone}-{feature}" for feature in range(n_features)], {})
        for name in ("layers", "obsm", "obsp", "varm", "varp"):
            _write(file, name, {})
        _write(file, "uns", _origin(store, group))
    return len(rows), len(group) - len(rows)


def _usable_rows(group: Group) -> list[int]:
    """List the rows that have features."""
    return [int(row) for row in np.flatnonzero(group.usable)]


def _clip_columns(
    store: Store, group: Group, rows: Sequence[int], labels: ClipTexts | None
) -> dict[str, list[Any]]:
    """Return what is written about the clips besides their features: name -> a value for each row.

    They are id, movie, status, reason, text, labels, span and, if any clip has some, stretches without
    pictures; None where a clip has no such value.
    """
    clips = [store.clips[row] for row in rows]

    def column(field: str) -> list[Any]:
        """Return a field of all clips."""
        return [getattr(clip, field) for clip in clips]

    columns = {"clip": column("clip_id")}
    for field in ("movie", "status", "reason"):
        columns[field] = column(field)
    if group.text:
        columns["text"] = column("text")
    for name, texts in (labels or {}).items():
        columns[name] = [texts.get(clip.clip_id, "") for clip in clips]
    for field in SPAN:
        columns[field] = column(field)
    if any(clip.without_pictures_s for clip in clips):
        columns[WITHOUT_PICTURES] = [format_stretches(clip.without_pictures_s) for clip in clips]
    return columns


def _origin(store: Store, group: Group) -> dict[str, str]:
    """Return texts on where the features come from: name of an attribute of the file -> text."""
    provenance = {name: value for name, value in group.provenance.items() if name not in FILLED_IN}
    return {
        "backbone": group.name,
        "provenance": json.dumps(provenance, sort_keys=True, ensure_ascii=False),
        "store": json.dumps(dict(store.attributes), sort_keys=True, ensure_ascii=False),
        "store_fingerprint": store.fingerprint,
    }


def _group_name(clip_id: str) -> str:
    """Return the name of a clip's group in HDF5; its attribute `clip` holds the id itself.

    A "/" and a first "." are escaped, because they have a meaning in HDF5.
    """
    name = clip_id.replace("%", "%25").replace("/", "%2F")
    if name.startswith("."):
        return "%2E" + name[1:]
    return name


def _encode(node: h5py.HLObject, kind: str, version: str) -> None:
    """Mark a node with AnnData's name and version of its encoding."""
    node.attrs["encoding-type"] = kind
    node.attrs["encoding-version"] = version


def _dataframe(file: h5py.File, name: str, index: list[str], columns: Mapping[str, list[Any]]) -> None:
    """Write columns as a data frame in AnnData's encoding."""
    node = file.create_group(name)
    _encode(node, "dataframe", "0.2.0")
    node.attrs["_index"] = "_index"
    node.attrs.create("column-order", [*columns], (len(columns),), h5py.string_dtype())
    for column, values in {"_index": index, **columns}.items():
        _write(node, column, np.array(values, np.float64) if column in SPAN else values)


def _write(parent: h5py.Group, name: str, element: object) -> None:
    """Write a dict, a list of texts, a text or an array into an HDF5 group, in AnnData's encoding."""
    if isinstance(element, Mapping):
        node = parent.create_group(name)
        _encode(node, "dict", "0.1.0")
        for key, value in element.items():
            _write(node, key, value)
    elif isinstance(element, list):
        dataset = parent.create_dataset(name, (len(element),), h5py.string_dtype(), element)
        _encode(dataset, "string-array", "0.2.0")
    elif isinstance(element, str):
        _encode(parent.create_dataset(name, None, h5py.string_dtype(), element), "string", "0.2.0")
    else:
        _encode(parent.create_dataset(name, None, None, element), "array", "0.2.0")


class _Sink(FileIO):
    """The file that HDF5 writes into; it keeps the first OSError, and hides it from HDF5.

    When a write fails, HDF5 loses its buffers, then crashes at the end of the process or reports nothing.
    """

    error: OSError | None = None

    def check(self) -> None:
        """Raise the first error of a write, if there was one."""
        if self.error is not None:
            raise self.error

    def write(self, data: memoryview) -> int:  # type: ignore[override]  # what HDF5 gives
        """Write all bytes to the file; after an error, do nothing. HDF5 always gets a success."""
        self._try(lambda: write_all(self.fileno(), data))
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        """Set the size of the file, unless a write has failed."""
        self._try(lambda: FileIO.truncate(self, size))
        return size or 0

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what HDF5 gives
        """Read back what was written; zeros replace what a failed write left out."""
        memoryview(buffer)[:] = bytes(len(buffer))
        self._try(lambda: FileIO.readinto(self, buffer))
        return len(buffer)

    def _try(self, work: Callable[[], object]) -> None:
        """Call a function, and store an OSError that it raises; do nothing if an earlier call failed."""
        if self.error is None:
            try:
                work()
            except OSError as error:
                self.error = error


@contextmanager
def _new_file(path: Path) -> Iterator[tuple[h5py.File, _Sink]]:
    """Create an HDF5 file atomically; the same data give the same bytes.

    Yields the open file, and the `_Sink` that writes its bytes. `check` of the latter raises errors of
    writing, which HDF5 itself would report late or not at all.
    """
    with new_file(path) as work, _Sink(work, "w+") as sink:
        with h5py.File(sink, "w") as file:
            yield file, sink
        sink.check()
