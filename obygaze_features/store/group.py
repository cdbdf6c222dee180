"""Read one backbone's features in a sealed store; metadata that no sealed store has are refused."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked, made_by
from obygaze_features.errors import StoreError
from obygaze_features.store.arrays import SealedArray
from obygaze_features.store.format import (
    ANY_NUMBER,
    ARRAYS,
    FEATURE_ARRAYS,
    GROUP_STATUSES,
    ROW_SIZE,
    STATUSES_WITH_FEATURES,
    TABLE,
    TIME_ARRAYS,
    block_rows,
    dimensions,
)
from obygaze_features.store.labelled import LabelledManifest, LazyArray, dataset_of, frame_of, html_table
from obygaze_features.store.provenance import FILLED_IN
from obygaze_features.store.records import MAX_NUMBERS, ArraySpec, GroupSpec
from obygaze_features.store.store_files import StoreFiles, damaged, required_file
from obygaze_features.text import counted, known_spelling

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from obygaze_features.store.records import StoredClip

_CODES_WITH_FEATURES = tuple(GROUP_STATUSES.index(status) for status in STATUSES_WITH_FEATURES)
"""Codes of the statuses whose rows hold features, in the array `status`."""


class StoreOfGroups(Protocol):
    """What a group needs of its store; `Store` has it, which cannot be imported here."""

    @property
    def files(self) -> StoreFiles:
        """Its files, wherever they are."""

    @property
    def files_as_opened(self) -> StoreFiles:
        """Its files; those of another store that was put at its address meanwhile are refused."""

    @property
    def where(self) -> str:
        """Its name in messages."""

    @property
    def clips(self) -> tuple[StoredClip, ...]:
        """Status and origin of every clip, in the order of the rows."""

    def __getitem__(self, name: str) -> Group:
        """Return a group by its name."""


@made_by("open_store(PATH)[BACKBONE]")
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
        Frames sampled from every clip, F; 1 in a store of texts, which have none; 0 in a ragged group, in
        which every clip has its own number.
    ragged
        Whether every clip has its own number of frames. `frames`, `time_s` and `frame_index` then have a row
        a frame, one clip's after another's, and `row_size` the number of each clip's.

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

    def __init__(
        self,
        store: StoreOfGroups,
        name: str,
        provenance: Mapping[str, Any],
        metadata: Mapping[str, Any],
    ) -> None:
        """Read the ids and statuses of the group's clips, and check that its arrays fit together.

        Parameters
        ----------
        store
            The store, for its files and its table of clips.
        name
            Name of the group.
        provenance
            How its features were made.
        metadata
            Zarr metadata of each of its arrays, by name.
        """
        self._store = store
        files = store.files_as_opened
        self.name = name
        self.provenance = dict(provenance)
        self.ragged = ROW_SIZE in metadata  # whether each clip has its own number of frames

        # The arrays that the group has, of those of the format: name -> array
        self._stored: dict[str, SealedArray] = {}
        for array in ARRAYS:
            if array in metadata:
                self._stored[array] = SealedArray(files, name, array, metadata[array], ragged=self.ragged)
        self.arrays = tuple(array for array in FEATURE_ARRAYS if array in self._stored)  # their names
        self._refuse_other_numbers_of_clips()

        # The clips, one a row: ids, status codes, and whether they have features here
        self.clip_ids = tuple(self.raw("clip").tolist())
        self.status: NDArray[np.uint8] = self.raw("status")
        self.usable: NDArray[np.bool_] = np.isin(self.status, _CODES_WITH_FEATURES)

        self.n_frames: int = ANY_NUMBER if self.ragged else self.shape("time_s")[1]  # of a clip
        if self.ragged:
            self._check_row_sizes()

    def _refuse_other_numbers_of_clips(self) -> None:
        """Raise an error if the arrays differ in their number of clips, or have more than the table can have.

        Each clip takes more than a byte of the table. So there cannot be more clips than the table has bytes:
        a larger number is damage, and is refused before memory is allocated for so many ids.
        """
        n_clips = self.shape("status")[0]
        with required_file(self._store.files, TABLE):
            max_clips = self._store.files.size(TABLE)
        lengths = [array.shape[0] for array in self._stored.values() if not array.ragged]
        differ_in_clips = any(length != n_clips for length in lengths)
        are_too_many = n_clips > max_clips
        if differ_in_clips or are_too_many:
            raise StoreError(
                f"{self._where}, group {self.name}: its arrays differ in clips, or have more than {TABLE}"
            )

    def _check_row_sizes(self) -> None:
        """Check the number of frames of each clip in a ragged group.

        Raises
        ------
        StoreError
            If a clip with features has no frames, one without features has some, a clip has more numbers than
            the format allows, or the frames of all clips are not as many as the arrays have.
        """
        sizes = self.row_size  # number of frames of each clip, [N]
        ragged_shapes = {name: array.shape for name, array in self._stored.items() if array.ragged}

        # Each clip has a possible number of frames, as its status demands.
        numbers_per_frame = max(math.prod(shape[1:]) for shape in ragged_shapes.values())
        max_frames = MAX_NUMBERS // numbers_per_frame  # of a clip
        has_frames = sizes > 0
        contradicts_status = has_frames != self.usable  # a clip has frames if and only if it has features
        is_impossible = (sizes < 0) | (sizes > max_frames)
        wrong_clips = np.flatnonzero(contradicts_status | is_impossible)
        if len(wrong_clips):
            clip = self.clip_ids[int(wrong_clips[0])]
            reason = "its number of frames does not go with its status, or is larger than any"
            raise damaged(f"{self._where}, group {self.name}, {ROW_SIZE}: clip {clip}: {reason}", self._where)

        # The arrays have as many frames as all clips together.
        n_frames = int(sizes.sum())
        for name, shape in ragged_shapes.items():
            if shape[0] != n_frames:
                reason = f"{counted(shape[0], 'frame')}, and its clips have {n_frames}"
                raise damaged(f"{self._where}, array {self.name}/{name}: {reason}", self._where)

    def __repr__(self) -> str:
        """Return a short description, such as Group('toy', 96 clips, 95 usable, pooled, frames)."""
        n_usable = int(self.usable.sum())
        clips = f"{counted(len(self), 'clip')}, {n_usable} usable"
        return f"Group({self.name!r}, {clips}, {', '.join(self.arrays)})"

    def __reduce__(self) -> tuple[Callable[[StoreOfGroups, str], Group], tuple[StoreOfGroups, str]]:
        """Pickle the store, which is opened again, and the group's name."""
        return operator.getitem, (self._store, self.name)

    def _repr_html_(self) -> str:
        """Return a table of the arrays as HTML, which notebooks show."""
        rows = []
        for name in self.arrays:
            dimensions_shown = " x ".join(self._dims(name))
            shape_shown = " x ".join(str(size) for size in self.shape(name))
            rows.append((name, dimensions_shown, shape_shown, self.dtype(name)))
        n_usable = int(self.usable.sum())
        title = f"{self.name}: {counted(len(self), 'clip')}, {n_usable} usable"
        return html_table(title, ("array", "dimensions", "shape", "data type"), rows)

    def __len__(self) -> int:
        """Return the number of clips, those without features among them."""
        return len(self.clip_ids)

    @checked
    def to_frame(self, manifest: LabelledManifest | None = None) -> pd.DataFrame:
        """Make a pandas table of the pooled features, one row per clip that has features.

        Parameters
        ----------
        manifest
            A manifest, for the column `level` and one column per concept of its codebook.

        Returns
        -------
        DataFrame
            Columns clip_id, movie, start_s, end_s, then level and concepts, then the features f0, f1, ...
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
        ['clip_id', 'movie', 'start_s', 'end_s', 'level', 'Type of shot']
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
            status, start_s, end_s. Rows of clips without features are NaN. In a ragged group, the frames of
            all clips follow each other along the dimension `row`: its coordinate `row_clip` has the clip's id
            of each frame, and the variable `row_size` the number of frames of each clip (CF conventions,
            contiguous ragged arrays).

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
        arrays = {}
        for name in (*self.arrays, *TIME_ARRAYS):
            read_rows = partial(self.stored_rows, name)  # is called when the values are used
            arrays[name] = LazyArray(self._dims(name), self.shape(name), self.dtype(name), read_rows)
        attributes = {"backbone": self.name, "store": self._where}
        frames_of_clips = self.row_size if self.ragged else None
        return dataset_of(arrays, self._clips, attributes, frames_of_clips)

    def pooled(self) -> NDArray[np.float32]:
        """Read one vector per clip: float32 [N, D], contiguous, NaN where not `usable`."""
        return self.rows("pooled")

    def frames(self) -> NDArray[np.float16 | np.float32]:
        """Read one vector per sampled frame: [N, F, D] for N clips, NaN where a clip is not `usable`.

        In a ragged group the shape is [R, D]: the R frames of all clips, one clip after the other.
        ``np.split(group.frames(), np.cumsum(group.row_size)[:-1])`` divides them into an array for each clip.
        """
        return self.rows("frames")

    def tokens(self) -> NDArray[np.float16]:
        """Read all tokens of the backbone: [N, T, D]; large, so consider `blocks`."""
        return self.rows("tokens")

    @cached_property
    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation, each [D], of the pooled vectors of all usable clips.

        They are computed in one reading, from sums of the vectors and of their squares. The first usable
        vector r is subtracted from all vectors x before they are summed, because otherwise the variance would
        lose digits where the mean is far from zero:

            mean(x) = r + mean(x - r),    var(x) = mean((x - r)^2) - mean(x - r)^2
        """
        first_usable = int(self.usable.argmax())  # the index of the first True
        first_vector = self.raw("pooled", slice(first_usable, first_usable + 1))[0]
        sums = np.zeros(len(first_vector))
        sums_of_squares = np.zeros(len(first_vector))
        for start, block in self.blocks("pooled"):
            is_usable = self.usable[start : start + len(block)]
            differences = block[is_usable] - first_vector
            sums += differences.sum(axis=0, dtype=np.float64)
            # The sum of squares of each column, without an array of the squares.
            sums_of_squares += np.einsum("ij,ij->j", differences, differences, dtype=np.float64)

        n_usable = max(int(self.usable.sum()), 1)
        mean_difference = sums / n_usable
        variance = sums_of_squares / n_usable - mean_difference**2
        variance = np.maximum(variance, 0)  # rounding may make it negative
        return first_vector + mean_difference, np.sqrt(variance)

    @cached_property
    def text(self) -> tuple[str, ...] | None:
        """The text of every row, whatever its status; None in a store of clips."""
        if "text" not in self._stored:
            return None
        return tuple(str(text) for text in self.raw("text"))

    @cached_property
    def time_s(self) -> NDArray[np.float64]:
        """Presentation times of the sampled frames in seconds: [N, F], NaN where a clip is not `usable`.

        In a ragged group the shape is [R]: the times of all clips, one clip after the other.
        """
        return self.raw("time_s")

    @cached_property
    def frame_index(self) -> NDArray[np.int64]:
        """Indices of the sampled frames in their video files: [N, F], -1 where a clip is not `usable`.

        In a ragged group the shape is [R]: the indices of all clips, one clip after the other.
        """
        return self.raw("frame_index")

    @cached_property
    def row_size(self) -> NDArray[np.int64]:
        """Number of frames of every clip, int64 [N]; 0 where not `usable`.

        The name is that of the CF conventions: in a ragged group these are rows.
        """
        return self.raw(ROW_SIZE) if self.ragged else np.where(self.usable, self.n_frames, 0)

    @cached_property
    def frame_ends(self) -> NDArray[np.int64]:
        """Number of frames of all clips up to and including each clip, int64 [N].

        In a ragged array the rows of clip i are those from `frame_ends[i - 1]` up to `frame_ends[i]`.
        """
        return np.cumsum(self.row_size)

    def is_ragged(self, array: str) -> bool:
        """Return whether an array has a row for each frame of each clip, rather than one a clip."""
        return self._array(array).ragged

    def clip_shape(self, array: str) -> tuple[int, ...]:
        """Return the shape of one clip's part of an array.

        The first size is `ANY_NUMBER` (0) in a ragged array, where clips differ in it.
        """
        shape = self.shape(array)
        return (ANY_NUMBER, *shape[1:]) if self.is_ragged(array) else shape[1:]

    def shown_shape(self, array: str) -> str:
        """Return the shape of an array for one clip as text: [3, 4], or [any number, 4]."""
        sizes = ["any number" if size == ANY_NUMBER else str(size) for size in self.clip_shape(array)]
        return f"[{', '.join(sizes)}]"

    def shape(self, array: str) -> tuple[int, ...]:
        """Return the shape of an array without reading it."""
        return self._array(array).shape

    def dtype(self, array: str) -> np.dtype[Any]:
        """Return the data type of an array without reading it."""
        return self._array(array).dtype

    def read(self, clip_id: str, array: str) -> NDArray[Any]:
        """Read the values of one clip in an array: [D] of `pooled`, [F, D] of `frames`, [T, D] of `tokens`.

        Raises
        ------
        StoreError
            If there is no such clip, it has no features (the message says why), or its bytes are damaged.
        """
        row = self._row_with_features(clip_id)
        values = self.rows(array, slice(row, row + 1))
        return values if self.is_ragged(array) else np.asarray(values[0])

    @checked
    def read_many(self, clip_ids: Sequence[str], array: str) -> NDArray[Any]:
        """Read the values of n clips in an array, in the order of their ids: [n, ...].

        Clips that lie in the same stored object are read together, whatever the order of the ids.

        Raises
        ------
        StoreError
            In the cases of `read`, or if the array is ragged.

        Examples
        --------
        >>> from obygaze_features import open_store
        >>> group = open_store("stores/films")["toy"]
        >>> group.read_many(["film1-c003", "film0-c000"], "pooled").shape
        (2, 8)
        """
        if self.is_ragged(array):
            raise StoreError(
                f"{self._where}: clips have frames of any number in {self.name}/{array}: read them one by one"
            )
        rows = np.array([self._row_with_features(clip_id) for clip_id in clip_ids], dtype=np.intp)
        values = np.empty((len(rows), *self.shape(array)[1:]), self.dtype(array))
        for positions in _positions_by_object(rows, self._array(array).rows_per_read):
            rows_of_object = rows[positions]  # rising
            first = rows_of_object[0]
            last = rows_of_object[-1]
            values_between = self.rows(array, slice(first, last + 1))  # also of rows that are not wanted
            values[positions] = values_between[rows_of_object - first]
        return values

    def _row_with_features(self, clip_id: str) -> int:
        """Return the row of a clip; raise an error that says why if the group has no features of it."""
        row = self._rows.get(known_spelling(clip_id, self._rows))
        if row is None:
            raise StoreError(f"{self._where}: no clip {clip_id}")
        has_features = self.usable[row]
        if has_features:
            return row

        status = GROUP_STATUSES[self.status[row]]
        # A damaged table may have fewer clips than the group.
        reason = self._clips[row].reason if row < len(self._clips) else ""
        why = f"{status}: {reason}" if reason else status
        raise StoreError(f"{self._where}: clip {clip_id} is {why}; it has no features of {self.name}")

    def blocks(self, array: str, start: int = 0) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield an array in blocks of rows: the number of the first row of each, and its values.

        A block has the rows that are stored together, so that memory stays bounded: the pooled vectors of
        1,024 clips, the frames of 64, or the tokens of 16. From a store in a folder, tokens come in blocks of
        at most 4 MB, or of one clip if it has more.

        Parameters
        ----------
        array
            Name of the array, which may not be ragged.
        start
            Row to begin with. The blocks before the one that holds this row are left out.

        Raises
        ------
        StoreError
            If bytes are damaged or gone, or the array is ragged (`rows_of` reads those).
        """
        self._refuse_unknown_array(array)
        if self.is_ragged(array):
            raise StoreError(
                f"{self._where}: clips have any number of {array} of {self.name}, not one: read them clip by "
                "clip (read, rows_of), or a vector a clip (pooled)"
            )
        n_clips = len(self.clip_ids)
        rows_per_block = block_rows(array, n_clips)
        first_block = start // rows_per_block
        for first in range(first_block * rows_per_block, n_clips, rows_per_block):
            rows = range(first, min(first + rows_per_block, n_clips))
            for row, values in self.read_slices(array, rows):
                self._refuse_lost_rows(array, row, values)
                yield row, values

    def pieces(self, array: str) -> list[slice]:
        """List the slices of rows that are cheapest to read at once, in order.

        For loaders that shuffle: they read the pieces with `rows`, in any order.

        Examples
        --------
        >>> from obygaze_features import open_store
        >>> group = open_store("stores/films")["toy"]
        >>> group.pieces("frames")
        [slice(0, 64, None), slice(64, 96, None)]
        >>> group.rows("frames", group.pieces("frames")[1]).shape
        (32, 2, 8)
        """
        if self.is_ragged(array):
            return self._ragged_pieces(array)

        n_clips = len(self.clip_ids)
        rows_per_object = block_rows(array, n_clips)  # of a chunk or shard
        rows_per_read = self._array(array).rows_per_read
        pieces = []
        for first in range(0, n_clips, rows_per_object):
            end = min(first + rows_per_object, n_clips)
            starts = range(first, end, rows_per_read)
            pieces += [slice(start, min(start + rows_per_read, end)) for start in starts]
        return pieces

    @checked
    def rows(self, array: str, rows: slice = slice(None), out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read the values of consecutive clips in a feature array, NaN where a clip is not `usable`.

        In a ragged array these are all frames of the clips, one clip after the other.

        Parameters
        ----------
        array
            `pooled`, `frames` or `tokens`.
        rows
            Rows of the clips; all by default.
        out
            Array of the right shape and type to read into, such as shared memory; None makes one.

        Raises
        ------
        StoreError
            If bytes are damaged or gone.
        ArgumentError
            If `out` is of another shape or type.

        Examples
        --------
        >>> import numpy as np
        >>> from obygaze_features import open_store
        >>> group, memory = open_store("stores/films")["toy"], np.empty((3, 2, 8), np.float32)
        >>> group.rows("frames", slice(3), out=memory) is memory
        True
        """
        if not self.is_ragged(array):
            return self.stored_rows(array, rows, out)
        clips = range(*rows.indices(len(self)))
        # All frames are stored one after the other: those of a clip begin where those of the clip before end.
        first_frame = int(self.frame_ends[clips.start - 1]) if clips.start > 0 else 0
        end_frame = int(self.frame_ends[clips.stop - 1]) if clips else first_frame
        return self.stored_rows(array, slice(first_frame, end_frame), out)

    def stored_rows(self, array: str, rows: slice, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read rows of an array: of clips, or, in a ragged array, of frames counted over all clips.

        Parameters
        ----------
        array
            Name of the array.
        rows
            Which rows.
        out
            Array to read into; None makes one.

        Raises
        ------
        StoreError
            If bytes are damaged or gone, or a clip that should have features has none.
        """
        first, _, _ = rows.indices(self.shape(array)[0])
        values = self._array(array).read(rows, out)
        self._refuse_lost_rows(array, first, values)
        return values

    def _ragged_pieces(self, array: str) -> list[slice]:
        """Divide the clips, whose frames are stored one after the other, into slices to read at once.

        The frames of all clips of a slice begin in the same stored object (a chunk).
        """
        frame_starts = self.frame_ends - self.row_size
        object_of_clip = frame_starts // self._array(array).rows_per_read
        # A slice begins with the first clip, and with each clip of another object than the clip before it.
        is_first = np.diff(object_of_clip, prepend=-1) != 0
        first_clips = np.flatnonzero(is_first).tolist()
        return [slice(first, end) for first, end in pairwise([*first_clips, len(self.clip_ids)])]

    def _frames_to_check(self, array: str, start: int, stop: int) -> NDArray[np.int64]:
        """Return which frames must be looked at to find out whether a range of frames is stored.

        The frames of all clips are stored one after the other, in objects (chunks) of many frames. If an
        object is lost, all its frames are NaN. So it is enough to look at the first frame that each clip has
        in each object.

        Parameters
        ----------
        array
            Name of the ragged array.
        start, stop
            The first of the frames, and the one after the last, counted over all clips.

        Returns
        -------
        NDArray
            Their numbers: `start`, and each frame before `stop` with which a clip or a stored object begins.
        """
        # A clip begins at the frame at which the clip before it ends.
        first_clip, end_clip = np.searchsorted(self.frame_ends, [start, stop])
        clip_starts = self.frame_ends[first_clip:end_clip]
        frames_per_object = self._array(array).rows_per_read
        next_object = start // frames_per_object + 1
        object_starts = np.arange(next_object * frames_per_object, stop, frames_per_object)
        return np.concatenate([[start], clip_starts, object_starts])

    def read_slices(self, array: str, rows: range) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield rows in slices: the number of the first row of each, and its values.

        All rows must lie in one stored object (a chunk or a shard). Unlike `blocks`, it does not check that
        clips with features have values. In a ragged array, rows are frames, counted over all clips.
        """
        return self._array(array).read_slices(rows)

    def raw(self, name: str, rows: slice = slice(None)) -> NDArray[Any]:
        """Read rows of an array as they are stored, also those of clips without features.

        In a ragged array a row is a frame, counted over all clips.
        """
        return self._array(name).read(rows)

    def _array(self, name: str) -> SealedArray:
        """Return one of the stored arrays; raise an error if the group does not have it."""
        self._refuse_unknown_array(name)
        return self._stored[name]

    def _refuse_unknown_array(self, name: str) -> None:
        """Raise an error if the group does not have an array."""
        if name not in self._stored:
            raise StoreError(f"{self._where}: group {self.name} has no {name}, but {', '.join(self.arrays)}")

    @property
    def _where(self) -> str:
        """Name of the store in messages."""
        return self._store.where

    def digests(self, array: str) -> tuple[str, ...]:
        """Return the SHA-256 of each clip's values in an array, N hexadecimal texts; "" without features."""
        name = f"{self.name}/{array}"  # as the table of clips names it
        return tuple(clip.digests.get(name, "") for clip in self._clips)

    @cached_property
    def _clips(self) -> tuple[StoredClip, ...]:
        """The clips, with their status and reason in this group."""
        return tuple(clip.within(self.name) for clip in self._store.clips)

    @cached_property
    def _rows(self) -> dict[str, int]:
        """Clip id -> its row."""
        return {clip: row for row, clip in enumerate(self.clip_ids)}

    def _dims(self, name: str) -> tuple[str, ...]:
        """Return the names of the dimensions of an array, such as ("clip", "frame", "feature")."""
        return dimensions(name, self.shape(name), self.n_frames)

    def _refuse_lost_rows(self, name: str, start: int, values: NDArray[Any]) -> None:
        """Raise a StoreError if a clip that should have features has NaN among values that were read.

        A lost chunk or shard is read as NaN. Only features are checked, because times may be unknown.

        Parameters
        ----------
        name
            Name of the array.
        start
            Number of the first row; in a ragged array, of the first frame, counted over all clips.
        values
            The values of consecutive rows.
        """
        if name not in FEATURE_ARRAYS or not len(values):
            return

        nan_clips = self._clips_with_nan(name, start, values)
        lost_clips = nan_clips[self.usable[nan_clips]]  # clips without features are NaN in any case
        if len(lost_clips):
            lost = f"nothing is stored for {counted(len(lost_clips), 'clip')} that should have features"
            first_lost = self.clip_ids[lost_clips[0]]
            raise damaged(
                f"{self._where}, array {self.name}/{name}: {lost}, the first is {first_lost}",
                self._where,
            )

    def _clips_with_nan(self, name: str, start: int, values: NDArray[Any]) -> NDArray[np.intp]:
        """Return the numbers of the clips with NaN in consecutive rows of an array.

        Stored features are finite; NaN stands where a clip has none, or where a stored object (chunk or
        shard) is lost. Then whole rows are NaN. So it is enough to look at the first number of each row, and
        in a ragged array at the first frame that a clip has in each stored object.

        Parameters
        ----------
        name
            Name of the array.
        start
            Number of the first row; in a ragged array, of the first frame, counted over all clips.
        values
            The values of the rows.
        """
        first_numbers = values.reshape(len(values), -1)[:, 0]
        is_nan = np.isnan(first_numbers)  # of each row
        if not self.is_ragged(name):  # a row is a clip
            return start + np.flatnonzero(is_nan)
        frames = self._frames_to_check(name, start, start + len(values))
        is_frame_nan = is_nan[frames - start]
        nan_frames = frames[is_frame_nan]
        # The clip of a frame is the first that ends behind it.
        clips = np.searchsorted(self.frame_ends, nan_frames, side="right")
        return np.unique(clips)


def spec_of(group: Group) -> GroupSpec:
    """Return the declaration with which a stage can store more features like those of a sealed group."""
    arrays = [ArraySpec(name, group.clip_shape(name), group.dtype(name).name) for name in group.arrays]
    provenance = dict(group.provenance)
    for field in FILLED_IN:  # data types and corpus, which sealing adds again
        provenance.pop(field, None)
    return GroupSpec(group.name, tuple(arrays), group.n_frames, provenance)


def rows_of(group: Group, array: str, rows: Sequence[int]) -> Iterator[NDArray[Any]]:
    """Yield the values of some clips in an array, one clip at a time.

    For a clip these are its row, or, in a ragged array, all its frames.

    Parameters
    ----------
    group
        The group with the array.
    array
        A feature array, `time_s` or `frame_index`.
    rows
        Rows of the clips, rising.

    Raises
    ------
    StoreError
        If bytes are damaged or gone.
    """
    if group.is_ragged(array):
        yield from frames_of(group, array, rows, partial(group.stored_rows, array))
        return

    n_yielded = 0
    for start, block in group.blocks(array):
        end = start + len(block)
        # Yield those of the rows that are in this block.
        while n_yielded < len(rows) and rows[n_yielded] < end:
            index_in_block = rows[n_yielded] - start
            yield block[index_in_block]
            n_yielded += 1
        if n_yielded == len(rows):  # the blocks behind the last row are not read
            return


def frames_of(
    group: Group, array: str, rows: Sequence[int], read: Callable[[slice], NDArray[Any]]
) -> Iterator[NDArray[Any]]:
    """Yield the frames of some clips in a ragged array, one array [T, ...] for each clip.

    In a ragged array the frames of all clips are stored one after the other, and each clip has its own number
    T of them. A stored object (a chunk) is read once for all clips in it.

    Parameters
    ----------
    group
        The group with the array.
    array
        Name of the array.
    rows
        Rows of the clips, rising.
    read
        Reads a slice of the frames of all clips: `Group.stored_rows`, or `Group.raw` for frames that may be
        damaged.
    """
    n_frames = group.shape(array)[0]
    no_frames = np.empty((0, *group.shape(array)[1:]), group.dtype(array))
    frames_per_object = block_rows(array, n_frames, ragged=True)
    reader = _FrameReader(read, n_frames, frames_per_object, no_frames)

    clips = np.asarray(rows, np.intp)
    ends = group.frame_ends[clips]
    starts = ends - group.row_size[clips]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield reader.frames(start, end)


class _FrameReader:
    """Reads frames of a ragged array by whole stored objects, and keeps the object that was read last.

    A stored object (a chunk) has frames of several clips. Clips are mostly read in order, so that the next
    clip's frames are often in the object that was read for the clip before.

    Parameters
    ----------
    read
        Reads a slice of the frames of all clips.
    n_frames
        Number of these frames.
    frames_per_object
        Number of frames in a stored object; the last object may have fewer.
    no_frames
        An array without frames, with the right type and further axes.
    """

    def __init__(
        self,
        read: Callable[[slice], NDArray[Any]],
        n_frames: int,
        frames_per_object: int,
        no_frames: NDArray[Any],
    ) -> None:
        """Begin without a stored object; the first one is read with the first frames."""
        self._read = read
        self._n_frames = n_frames
        self._frames_per_object = frames_per_object
        self._no_frames = no_frames  # what `frames` returns for a clip without frames
        # The object that was read last, and which frames it has, counted over all clips: none yet.
        self._object = no_frames
        self._object_start = 0
        self._object_end = 0

    def frames(self, start: int, end: int) -> NDArray[Any]:
        """Read the frames from `start` up to `end`, counted over all clips, from one object or several."""
        parts: list[NDArray[Any]] = []  # the frames of each object
        next_frame = start
        while next_frame < end:
            self._load_object_of(next_frame)
            part_end = min(end, self._object_end)
            part = self._object[next_frame - self._object_start : part_end - self._object_start]
            parts.append(part)
            next_frame = part_end

        if not parts:
            return self._no_frames
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _load_object_of(self, frame: int) -> None:
        """Read the stored object that holds a frame, and keep it; do nothing if it is kept already."""
        if self._object_start <= frame < self._object_end:
            return
        number = frame // self._frames_per_object
        self._object_start = number * self._frames_per_object
        self._object_end = min(self._object_start + self._frames_per_object, self._n_frames)
        self._object = self._read(slice(self._object_start, self._object_end))


def _positions_by_object(rows: NDArray[np.intp], rows_per_object: int) -> list[NDArray[np.intp]]:
    """Divide rows by the stored object (a chunk or shard) that holds them, so that each is read once.

    Parameters
    ----------
    rows
        Numbers of rows, [n], in any order.
    rows_per_object
        How many rows a stored object has.

    Returns
    -------
    list of ndarray
        For each object that holds some of the rows, their positions in `rows`, sorted by row.
    """
    if not len(rows):
        return []
    positions_by_row = np.argsort(rows, kind="stable")
    object_of_position = rows[positions_by_row] // rows_per_object
    first_of_objects = np.flatnonzero(np.diff(object_of_position)) + 1
    return np.split(positions_by_row, first_of_objects)
