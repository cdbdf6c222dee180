"""Let xarray read rows of a store when it needs them; this module needs xarray."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray.backends import BackendArray
from xarray.core import indexing


class RowsOfStore(BackendArray):
    """An array of a store that xarray reads by slices of clips; it can be pickled if `read` can."""

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], read: Callable[[slice], NDArray[Any]]
    ) -> None:
        """Hold shape and data type of the array, and the function that reads a slice of its rows."""
        self.shape = shape
        self.dtype = dtype
        self.read = read

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read the values that xarray selects, now that it needs them.

        xarray may select by lists of numbers. `_read` knows slices and single numbers alone (BASIC): xarray's
        adapter asks it for a part that holds the values, and selects them in it.
        """
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple[Any, ...]) -> NDArray[Any]:
        """Read the values that a key selects: a number or a slice for each axis, the axis of clips first.

        All rows from the first one requested to the last are read at once, and those between that are not
        requested are dropped.
        """
        key_of_clips, *other_keys = key
        n_clips = self.shape[0]
        all_clips = np.arange(n_clips)
        clips = np.atleast_1d(all_clips[key_of_clips])  # numbers of the requested rows
        if len(clips):
            first = clips.min()
            last = clips.max()
            rows = self.read(slice(first, last + 1))
            requested = rows[clips - first]
        else:
            requested = np.empty((0, *self.shape[1:]), self.dtype)
        values = requested[(slice(None), *other_keys)]

        # As in numpy, a slice keeps the axis of clips, and a number removes it.
        if isinstance(key_of_clips, slice):
            return np.asarray(values)
        return np.asarray(values[0])
