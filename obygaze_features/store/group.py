"""Read one backbone's features in a sealed store; metadata that no sealed store has are refused."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.store.arrays import (
    LAYOUT,
    array_layout,
    lean,
    read_shards,
    read_strings,
)
from obygaze_features.store.format import (
    ARRAYS,
    DONE,
    FEATURE_ARRAYS,
    FEATURES,
    GROUP_STATUSES,
    PROVENANCE,
    TABLE,
    TIME_ARRAYS,
    block_rows,
    dimensions,
)
from obygaze_features.store.labelled import LabelledManifest, LazyArray, dataset_of, frame_of, html_table
from obygaze_features.store.records import COLUMNS, StoredClip, parse_clips_csv
from obygaze_features.store.store_files import FolderFiles, StoreFiles, gone, guarded, whole

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

HARMLESS = 2**26
"""Size of a chunk, in bytes, up to which the size of its file is not checked: a check costs a round trip."""

WARM = 2**22
"""Bytes of a block of tokens, whose memory is reused. Larger blocks are new pages, which cost more than
reading [16 clips of 4.8 MB at once: 1.6 ms per clip; one by one: 1.0]."""
_DONE_CODES = tuple(GROUP_STATUSES.index(status) for status in DONE)


class Group:
    """One backbone's features: row i of every array is the clip `clip_ids[i]`.

    Attributes
    ----------
    name
        Name of the backbone.
    clip_ids
        Ids of all clips, sorted.
    status
        uint8 [N]: 0 missing, 1 ok, 2 partial, 3 failed, 4 absent (other groups have features of the clip).
    usable
        bool [N]: the rows that hold features (ok or partial). The others are NaN in every array: leave them
        out.
    provenance
        Where the features came from.
    arrays
        Names of the feature arrays there are.
    n_frames
        Frames sampled from every clip, F; 1 in a store of texts, which have none.

    Examples
    --------
    >>> from obygaze_features import open_store
    >>> group = open_store("stores/films")["toy"]
    >>> group
    Group('toy', 96 clips, 95 usable, pooled, frames)
    >>> group.pooled()[group.usable].shape
    (95, 8)
    >>> group.read("film0-c000", "frames").shape
    (2, 8)
    """

    def __init__(self, files: StoreFiles, node: zarr.Group) -> None:
        self._files = files
        self.name = node.basename
        self.provenance: dict[str, Any] = dict(node.metadata.attributes[PROVENANCE])
        self._stored = GroupArrays(files, node)
        self.arrays = self._stored.features
        self.clip_ids = tuple(self.raw("clip").tolist())
        self.status: NDArray[np.uint8] = self.raw("status")
        self.usable: NDArray[np.bool_] = np.isin(self.status, _DONE_CODES)
        self.n_frames: int = self.shape("time_s")[1]

    def __repr__(self) -> str:
        usable = int(self.usable.sum())
        return f"Group({self.name!r}, {len(self)} clips, {usable} usable, {', '.join(self.arrays)})"

    def _repr_html_(self) -> str:
        usable = int(self.usable.sum())
        rows = [
            (name, " x ".join(self._dims(name)), " x ".join(map(str, self.shape(name))), self.dtype(name))
            for name in self.arrays
        ]
        title = f"{self.name}: {len(self)} clips, {usable} usable"
        return html_table(title, ("array", "dimensions", "shape", "data type"), rows)

    def __len__(self) -> int:
        return len(self.clip_ids)

    def to_frame(self, manifest: LabelledManifest | None = None) -> pd.DataFrame:
        """Make a pandas table of the pooled features, one row per clip that has features.

        Parameters
        ----------
        manifest
            A manifest, for the column `level` and one column per concept of its codebook.

        Returns
        -------
        DataFrame
            Columns clip, movie, start_s, end_s, then level and concepts, then the features f0, f1, ...
            (``frame.loc[:, "f0":]``). A concept is a nullable boolean: whether it is marked, missing (NA) for
            clips that nobody annotated. `attrs["left_out"]` counts the clips without a row, by reason.

        Raises
        ------
        StoreError
            If the group has no pooled features, or a concept has the name of another column.

        Examples
        --------
        >>> from obygaze_features import open_store, read_manifest
        >>> group = open_store("stores/films")["toy"]
        >>> frame = group.to_frame(read_manifest("films.csv"))
        >>> frame.columns[:6].tolist()
        ['clip', 'movie', 'start_s', 'end_s', 'level', 'Type of shot']
        >>> frame.loc[:, "f0":].shape
        (95, 8)
        >>> frame.attrs["left_out"]
        {'failed': 1}
        """
        return frame_of(self.pooled(), self._clips, manifest, f"{self._where}, group {self.name}")

    def to_xarray(self) -> xr.Dataset:
        """Make an xarray dataset of all arrays; features are read, and checked, when they are used.

        Returns
        -------
        Dataset
            Dimensions clip, frame, token, feature (and token_feature, tubelet); coordinates clip, movie,
            status, start_s, end_s. Rows of clips without features are NaN.

        Raises
        ------
        StoreError
            If xarray is not installed.

        Examples
        --------
        >>> from obygaze_features import open_store
        >>> data = open_store("stores/films")["toy"].to_xarray()
        >>> dict(data.sizes)
        {'clip': 96, 'feature': 8, 'frame': 2}
        >>> data.pooled.sel(clip="film0-c000").dims
        ('feature',)
        """
        arrays = {
            name: LazyArray(
                self._dims(name),
                self.shape(name),
                self.dtype(name),
                partial(self._features if name in FEATURE_ARRAYS else self.raw, name),
            )
            for name in (*self.arrays, *TIME_ARRAYS)
        }
        return dataset_of(arrays, self._clips, {"backbone": self.name, "store": self._where})

    def pooled(self) -> NDArray[np.float32]:
        """Read one vector per clip: float32 [N, D], contiguous, NaN where not `usable`."""
        return self._features("pooled")

    def frames(self) -> NDArray[np.float16 | np.float32]:
        """Read one vector per sampled frame: [N, F, D], NaN where not `usable`."""
        return self._features("frames")

    def tokens(self) -> NDArray[np.float16]:
        """Read all tokens of the backbone: [N, T, D]; large, so consider `blocks`."""
        return self._features("tokens")

    @cached_property
    def text(self) -> tuple[str, ...] | None:
        """The text of every row, whatever its status; None in a store of clips."""
        return tuple(str(text) for text in self.raw("text")) if "text" in self._stored else None

    @cached_property
    def time_s(self) -> NDArray[np.float64]:
        """Presentation times of the sampled frames in seconds, [N, F], NaN where not `usable`."""
        return self.raw("time_s")

    @cached_property
    def frame_index(self) -> NDArray[np.int64]:
        """Indices of the sampled frames in their files, [N, F], -1 where not `usable`."""
        return self.raw("frame_index")

    def shape(self, array: str) -> tuple[int, ...]:
        """Return the shape of an array without reading it."""
        shape: tuple[int, ...] = self._stored[array].shape
        return shape

    def dtype(self, array: str) -> np.dtype[Any]:
        """Return the data type of an array without reading it."""
        return np.dtype(self._stored[array].dtype)

    def read(self, clip_id: str, array: str) -> NDArray[Any]:
        """Read one clip's row of one array.

        Raises
        ------
        StoreError
            If there is no such clip, it has no features (the message says why), or its bytes are damaged.
        """
        row = self._rows.get(clip_id)
        if row is None:
            raise StoreError(f"{self._where}: no clip {clip_id}")
        if not self.usable[row]:
            reason = self._clips[row].reason if row < len(self._clips) else ""
            raise StoreError(
                f"{self._where}: clip {clip_id} is {GROUP_STATUSES[self.status[row]]}"
                f"{': ' if reason else ''}{reason}; it has no features of {self.name}"
            )
        values: NDArray[Any] = self._features(array, slice(row, row + 1))[0]
        return values

    def blocks(self, array: str, start: int = 0) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield (first row, rows) over a whole array, or from the block on that `start` is in.

        Memory stays bounded. A block is what is stored together: 1,024 clips' pooled vectors, 64 clips'
        frames, 16 clips' tokens; of large tokens in a folder 4 MB, or one clip.
        """
        size = block_rows(array, len(self.clip_ids))
        for first in range(start // size * size, len(self.clip_ids), size):
            for rows in self.pieces(array, range(first, min(first + size, len(self.clip_ids)))):
                yield rows.start, self._features(array, rows)

    def pieces(self, array: str, rows: range) -> Iterator[slice]:
        """Cut rows of one stored object into pieces that are cheap to read one after another."""
        return self._stored.pieces(array, rows)

    def raw(self, name: str, rows: slice = slice(None)) -> NDArray[Any]:
        """Read rows as they are stored, whatever their status."""
        return self._stored.read(name, rows)

    @property
    def _where(self) -> str:
        return self._files.where

    @cached_property
    def _clips(self) -> tuple[StoredClip, ...]:
        clips = parse_clips_csv(whole(self._files, TABLE), f"{self._where}/{TABLE}")
        return tuple(clip.within(self.name) for clip in clips)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {clip: row for row, clip in enumerate(self.clip_ids)}

    def _dims(self, name: str) -> tuple[str, ...]:
        return dimensions(name, self.shape(name), self.n_frames)

    def _features(self, name: str, rows: slice = slice(None)) -> NDArray[Any]:
        """Read rows; refuse NaN in usable rows, which is what zarr returns for a missing chunk."""
        values = self.raw(name, rows)
        start = rows.start or 0
        first = values.reshape(len(values), -1)[:, 0]
        holes = (first != first) & self.usable[start : start + len(values)]  # noqa: PLR0124 - NaN is not itself
        if holes.any():
            clip = self.clip_ids[start + int(np.flatnonzero(holes)[0])]
            raise StoreError(
                f"{self._where}, array {self.name}/{name}: "
                f"nothing is stored for {int(holes.sum())} clips that should have features, "
                f"the first is {clip}; run: obygaze store verify --full {self._where}"
            )
        return values


def rows_of(group: Group, array: str, rows: Sequence[int]) -> Iterator[NDArray[Any]]:
    """Yield some rows of an array, in rising order.

    Parameters
    ----------
    array
        A feature array, `time_s` or `frame_index`.
    rows
        Their numbers, rising.

    Raises
    ------
    StoreError
        If bytes are damaged or gone.
    """
    wanted = iter(rows)
    row = next(wanted, None)
    for start, block in _blocks(group, array):
        while row is not None and row < start + len(block):
            yield block[row - start]
            row = next(wanted, None)
        if row is None:
            return


def _blocks(group: Group, array: str) -> Iterator[tuple[int, NDArray[Any]]]:
    if array in FEATURE_ARRAYS:
        yield from group.blocks(array)
        return
    size = block_rows(array, len(group))  # times may be unknown, so NaN in them is no damage
    for start in range(0, len(group), size):
        yield start, group.raw(array, slice(start, start + size))


# --- arrays as they are stored
# ---------------------------------------------------------------------------
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

    def __init__(self, files: StoreFiles, node: zarr.Group) -> None:
        self._files, self._where, self._name = files, files.where, node.basename
        self._arrays = {name: array for name, array in node.arrays() if name in ARRAYS}
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
        if isinstance(self._files, FolderFiles) and array.shards:
            return read_shards(self._files, folder, array, array.shards[0], range(start, stop))
        return np.asarray(array[rows])

    def pieces(self, array: str, rows: range) -> Iterator[slice]:
        """Cut rows of one stored object into pieces that are cheap to read one after another."""
        size = len(rows)
        if isinstance(self._files, FolderFiles) and self[array].shards:
            size = min(size, max(1, WARM // self._row_bytes(array)))
        for start in range(rows.start, rows.stop, size):
            yield slice(start, min(start + size, rows.stop))

    def _row_bytes(self, name: str) -> int:
        return math.prod(self[name].shape[1:]) * np.dtype(self[name].dtype).itemsize

    def _check_rows_exist(self) -> None:
        """Refuse metadata that claim more clips than are stored, before memory is allocated for them."""
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
        """Refuse metadata that no sealed store has before a chunk is read: few bytes may decode to many."""
        where, dtype = f"{self._where}, array {self._name}/{name}", _dtype_name(array)
        if (
            array.shape[:1] != self["status"].shape[:1]
            or array.ndim != len(ARRAYS[name].dims)
            or dtype not in ARRAYS[name].dtypes
        ):
            raise StoreError(f"{where}: {array.dtype} {list(array.shape)} does not fit the format")
        expected, found = lean(array_layout(name, array.shape, dtype, ())), lean(array.metadata.to_dict())
        if wrong := [field for field in LAYOUT if found[field] != expected[field]]:
            raise StoreError(f"{where}: {wrong[0]}: not as the format demands, so it is not read")

    def _check_chunk(self, name: str, array: zarr.Array[Any], row: int) -> None:
        """Refuse metadata whose chunk is larger than the stored object."""
        block = (array.shards or array.chunks)[0]
        chunk = "/".join(["c", str(row // block), *["0"] * (array.ndim - 1)])
        needed = math.prod(array.chunks) * np.dtype(array.dtype).itemsize
        if needed <= HARMLESS:
            return
        try:
            size = self._files.size(f"{FEATURES}/{self._name}/{name}/{chunk}")
        except FileNotFoundError:
            return  # reading it raises a clearer error
        if needed > size:
            raise StoreError(
                f"{self._where}, array {self._name}/{name}: the metadata ask for chunks of {needed} bytes, "
                f"{chunk} has {size}; run: obygaze store verify {self._where}"
            )


def _dtype_name(array: zarr.Array[Any]) -> str:
    return "string" if array.dtype.kind == "T" else str(array.dtype.name)
