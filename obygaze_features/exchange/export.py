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
from obygaze_features.store.records import WITHOUT_PICTURES, format_gaps
from obygaze_features.store.store import Store

NUMBER_COLUMNS = ("start_s", "end_s")
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
    columns = _clip_columns(store, group, rows, labels)  # such as "clip", with the ids
    with _new_file(Path(path)) as (file, raw_file):
        for name, text in _origin(store, group).items():
            file.attrs[name] = text

        values_by_array = [rows_of(group, array, rows) for array in arrays]  # iterators over the clips
        for position, clip_values in enumerate(zip(*values_by_array, strict=True)):
            node = file.create_group(_group_name(columns["clip"][position]))
            for name, column in columns.items():
                if column[position] is not None:
                    node.attrs[name] = column[position]
            for array, value in zip(arrays, clip_values, strict=True):
                node.create_dataset(array, data=value)
            raw_file.raise_write_error()  # HDF5 is not told of write errors, with which it might crash
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
    with _new_file(Path(path)) as (file, raw_file):
        _mark_encoding(file, "anndata", "0.1.0")
        x = file.create_dataset("X", (len(rows), n_features), np.float32)
        _mark_encoding(x, "array", "0.2.0")
        for position, values in enumerate(rows_of(group, "pooled", rows)):
            x[position] = values
            raw_file.raise_write_error()  # HDF5 is not told of write errors, with which it might crash

        clip_ids = columns.pop("clip")
        feature_names = [f"{backbone}-{feature}" for feature in range(n_features)]
        _write_dataframe(file, "obs", clip_ids, columns)
        _write_dataframe(file, "var", feature_names, {})
        for name in ("layers", "obsm", "obsp", "varm", "varp"):  # other parts of the format, here empty
            _write_element(file, name, {})
        _write_element(file, "uns", _origin(store, group))
    return len(rows), len(group) - len(rows)


def _usable_rows(group: Group) -> list[int]:
    """List the rows of a group that have features: those of clips whose status is ok or partial."""
    return [int(row) for row in np.flatnonzero(group.usable)]


def _clip_columns(
    store: Store, group: Group, rows: Sequence[int], labels: ClipTexts | None
) -> dict[str, list[Any]]:
    """Return what is written about the clips besides their features: name -> a value for each row.

    They are id, movie, status, reason, text, labels, span and, if any clip has some, stretches without
    pictures; None where a clip has no such value.

    `labels` is name -> clip id -> text, of further columns; None for none.
    """
    clips = [store.clips[row] for row in rows]
    columns: dict[str, list[Any]] = {
        "clip": [clip.clip_id for clip in clips],
        "movie": [clip.movie for clip in clips],
        "status": [clip.status for clip in clips],
        "reason": [clip.reason for clip in clips],
    }
    if group.text:
        columns["text"] = [clip.text for clip in clips]
    if labels is not None:
        for name, text_of_clip in labels.items():
            columns[name] = [text_of_clip.get(clip.clip_id, "") for clip in clips]
    columns["start_s"] = [clip.start_s for clip in clips]
    columns["end_s"] = [clip.end_s for clip in clips]
    if any(clip.without_pictures_s for clip in clips):
        columns[WITHOUT_PICTURES] = [format_gaps(clip.without_pictures_s) for clip in clips]
    return columns


def _origin(store: Store, group: Group) -> dict[str, str]:
    """Return texts on where the features come from: name of an attribute of the file -> text.

    Fields that sealing adds to the provenance are left out.
    """
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


def _mark_encoding(node: h5py.HLObject, kind: str, version: str) -> None:
    """Mark a group or dataset of HDF5 with AnnData's name and version of its encoding, for readers."""
    node.attrs["encoding-type"] = kind
    node.attrs["encoding-version"] = version


def _write_dataframe(file: h5py.File, name: str, index: list[str], columns: Mapping[str, list[Any]]) -> None:
    """Write columns as a data frame in AnnData's encoding: a group with an array for each column.

    `name` is `obs` for the clips and `var` for the features. Columns hold numbers for `NUMBER_COLUMNS`, else
    texts.
    """
    node = file.create_group(name)
    _mark_encoding(node, "dataframe", "0.2.0")
    node.attrs["_index"] = "_index"  # the name of the column of the index
    node.attrs.create("column-order", [*columns], (len(columns),), h5py.string_dtype())
    for column, values in {"_index": index, **columns}.items():
        if column in NUMBER_COLUMNS:
            _write_element(node, column, np.array(values, np.float64))
        else:
            _write_element(node, column, values)


def _write_element(parent: h5py.Group, name: str, element: object) -> None:
    """Write a dict, a list of texts, a text or an array into an HDF5 group, in AnnData's encoding.

    A dict becomes a group, into which its values are written in the same way; all others become datasets.
    """
    if isinstance(element, Mapping):
        node = parent.create_group(name)
        _mark_encoding(node, "dict", "0.1.0")
        for key, value in element.items():
            _write_element(node, key, value)
    elif isinstance(element, list):
        dataset = parent.create_dataset(name, (len(element),), h5py.string_dtype(), element)
        _mark_encoding(dataset, "string-array", "0.2.0")
    elif isinstance(element, str):
        dataset = parent.create_dataset(name, dtype=h5py.string_dtype(), data=element)
        _mark_encoding(dataset, "string", "0.2.0")
    else:
        dataset = parent.create_dataset(name, data=element)
        _mark_encoding(dataset, "array", "0.2.0")


class _ErrorKeepingFile(FileIO):
    """The file that HDF5 writes into; it keeps the first OSError, and hides it from HDF5.

    When a write fails, HDF5 loses its buffers, then crashes at the end of the process or reports nothing.
    """

    error: OSError | None = None

    def raise_write_error(self) -> None:
        """Raise the first error of a write, if there was one."""
        if self.error is not None:
            raise self.error

    def write(self, data: memoryview) -> int:  # type: ignore[override]  # what HDF5 gives
        """Write all bytes to the file, or nothing after an error; HDF5 is always told that all is written."""
        self._unless_failed(lambda: write_all(self.fileno(), data))
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        """Set the size of the file, unless a write has failed; return it, or 0 for None."""
        self._unless_failed(lambda: FileIO.truncate(self, size))
        return 0 if size is None else size

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what HDF5 gives
        """Fill a buffer with bytes of the file, for HDF5, which reads back some of what it has written.

        HDF5 is not told that a write has failed, as it can crash then. So it may read back bytes that never
        came into the file: it gets zeros for these. The file is thrown away anyway, as `raise_write_error`
        raises the error of the write when HDF5 is done.
        """
        zeros = bytes(len(buffer))
        memoryview(buffer)[:] = zeros
        # The bytes that there are replace the zeros.
        self._unless_failed(lambda: FileIO.readinto(self, buffer))
        return len(buffer)

    def _unless_failed(self, work: Callable[[], object]) -> None:
        """Call a function, and store an OSError that it raises; do nothing if an earlier call failed."""
        has_failed = self.error is not None
        if has_failed:
            return
        try:
            work()
        except OSError as error:
            self.error = error  # for `raise_write_error`


@contextmanager
def _new_file(path: Path) -> Iterator[tuple[h5py.File, _ErrorKeepingFile]]:
    """Create an HDF5 file, which gets its name only if the `with` block succeeds.

    The same data give the same bytes. Yields the open file, and the ordinary file with its bytes, whose
    `raise_write_error` raises errors that HDF5 itself would report late or not at all.
    """
    with new_file(path) as temporary_path, _ErrorKeepingFile(temporary_path, "w+") as raw_file:
        with h5py.File(raw_file, "w") as file:
            yield file, raw_file
        raw_file.raise_write_error()
