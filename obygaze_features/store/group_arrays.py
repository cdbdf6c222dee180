"""Read the arrays of a group as they are stored; metadata that no sealed store has are refused."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.store.arrays import (
    array_layout,
    codec_names,
    plain_chunk,
    read_chunks,
    read_shards,
    read_strings,
    shard_rows,
)
from obygaze_features.store.format import ARRAYS, FEATURE_ARRAYS, FEATURES, TABLE, block_rows
from obygaze_features.store.records import COLUMNS
from obygaze_features.store.store_files import FolderFiles, StoreFiles, gone, guarded

HARMLESS = 2**26
"""Bytes that a chunk may claim without being asked whether they are there: a question costs a round trip."""
WARM = 2**22
"""Bytes of a block of tokens: memory that is given back and taken again; larger pieces are new pages, and
those cost more than reading [16 clips of 4.8 MB at once: 1.6 ms a clip, one by one 1.0]."""


class GroupArrays:
    """The arrays of one backbone's group, by name.

    Attributes
    ----------
    features
        Names of the feature arrays there are.

    Raises
    ------
    StoreError
        If the metadata do not fit the format, or ask for more clips than are stored.
    """

    def __init__(self, files: StoreFiles, node: "zarr.Group") -> None:
        self._files, self._where, self._name = files, files.where, node.basename
        self._arrays = {name: array for name, array in node.arrays() if name in ARRAYS}
        self._chunks: dict[str, tuple[int, ...] | None] = {}
        self._shards: dict[str, int | None] = {}
        self.features = tuple(name for name in FEATURE_ARRAYS if name in self._arrays)
        self._check_rows_exist()
        for name, array in self._arrays.items():
            self._check_layout(name, array)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def __getitem__(self, name: str) -> zarr.Array[Any]:
        if name not in self._arrays:
            raise StoreError(
                f"{self._where}: group {self._name} has no {name}, but {', '.join(self.features)}"
            )
        return self._arrays[name]

    def read(self, name: str, rows: slice = slice(None)) -> NDArray[Any]:
        """Read rows as they are stored, whatever their status."""
        values: NDArray[Any] = guarded(
            f"{self._where}, array {self._name}/{name}", lambda: self._rows_of(name, rows), store=self._where
        )
        return values

    def _rows_of(self, name: str, rows: slice) -> NDArray[Any]:
        array = self[name]
        start, stop, _ = rows.indices(array.shape[0])
        folder = f"{FEATURES}/{self._name}/{name}"
        if array.dtype.kind == "T":
            return read_strings(self._files, folder, array.chunks[0], range(start, stop))
        if start < stop:
            self._check_chunk(name, array, start)
        if isinstance(self._files, FolderFiles) and (block := self._shard_rows(name)) and start < stop:
            return read_shards(self._files, folder, array, block, range(start, stop))
        chunk = self._plain_chunk(name)
        if chunk is None or not self.in_place(name, start, stop - start):
            return np.asarray(array[rows])
        return read_chunks(self._files, folder, chunk, np.dtype(array.dtype), range(start, stop))

    def in_place(self, name: str, start: int, n_rows: int) -> bool:
        """Return whether rows are read chunk by chunk into place, not by zarr."""
        chunk = self._plain_chunk(name)
        return chunk is not None and start % chunk[0] == 0 and n_rows != 1

    def pieces(self, array: str, rows: range) -> Iterator[slice]:
        """Cut rows of one stored object into pieces that are cheap to read one after another."""
        size = len(rows)
        if isinstance(self._files, FolderFiles) and self._shard_rows(array) is not None:
            size = min(size, max(1, WARM // self._row_bytes(array)))
        for start in range(rows.start, rows.stop, size):
            yield slice(start, min(start + size, rows.stop))

    def _row_bytes(self, name: str) -> int:
        return math.prod(self[name].shape[1:]) * np.dtype(self[name].dtype).itemsize

    def _plain_chunk(self, name: str) -> tuple[int, ...] | None:
        if name not in self._chunks:
            self._chunks[name] = plain_chunk(self._arrays[name].metadata.to_dict())
        return self._chunks[name]

    def _shard_rows(self, name: str) -> int | None:
        if name not in self._shards:
            self._shards[name] = shard_rows(self._arrays[name].metadata.to_dict())
        return self._shards[name]

    def _check_rows_exist(self) -> None:
        """Refuse metadata that claim more clips than are stored, before memory is asked for them."""
        n_clips = self["status"].shape[0]
        if n_clips > HARMLESS // 64 and n_clips > self._files.size(TABLE) // len(COLUMNS):
            raise StoreError(
                f"{self._where}, group {self._name}: the metadata ask for {n_clips} clips, "
                f"more than {TABLE} has"
            )
        last = max(n_clips - 1, 0) // block_rows("status", n_clips)
        name = f"{FEATURES}/{self._name}/status/c/{last}"
        try:
            self._files.size(name)
        except FileNotFoundError:
            raise gone(self._files, name) from None

    def _check_layout(self, name: str, array: zarr.Array[Any]) -> None:
        """Refuse metadata that no sealed store has before a chunk is read: codecs make much of few bytes."""
        where, dtype = f"{self._where}, array {self._name}/{name}", _dtype_name(array)
        if (
            array.shape[:1] != self["status"].shape[:1]
            or array.ndim != len(ARRAYS[name].dims)
            or array.chunks[1:] != array.shape[1:]
            or dtype not in ARRAYS[name].dtypes
        ):
            raise StoreError(f"{where}: {array.dtype} {list(array.shape)} does not fit the format")
        expected = array_layout(name, array.shape, dtype, ())
        if codec_names(array.metadata.to_dict()) != codec_names(expected):
            raise StoreError(f"{where}: codecs: not as the format demands, so it is not read")
        if dtype == "string" and array.chunks[0] != block_rows(name, array.shape[0]):
            raise StoreError(f"{where}: chunks of {array.chunks[0]} clips do not fit the format")

    def _check_chunk(self, name: str, array: zarr.Array[Any], row: int) -> None:
        """Refuse metadata whose chunk is larger than the stored object."""
        block = (array.shards or array.chunks)[0]
        place = "/".join(["c", str(row // block), *["0"] * (array.ndim - 1)])
        needed = math.prod(array.chunks) * np.dtype(array.dtype).itemsize
        if needed <= HARMLESS:
            return
        try:
            size = self._files.size(f"{FEATURES}/{self._name}/{name}/{place}")
        except FileNotFoundError:
            return  # reading it says so in better words
        if needed > size:
            raise StoreError(
                f"{self._where}, array {self._name}/{name}: the metadata ask for chunks of {needed} bytes, "
                f"{place} has {size}; run: obygaze store verify {self._where}"
            )


def _dtype_name(array: zarr.Array[Any]) -> str:
    return "string" if array.dtype.kind == "T" else str(array.dtype.name)
