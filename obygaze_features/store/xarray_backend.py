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
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple[Any, ...]) -> NDArray[Any]:
        """Read the values that a key selects: a number or a slice for each axis, the axis of clips first.

        All rows from the first one requested to the last are read at once, and those between that are not
        requested are dropped.
        """
        key_of_clips, *other_keys = key
        clips = np.atleast_1d(np.arange(self.shape[0])[key_of_clips])  # numbers of the requested rows
        if not len(clips):
            return np.empty((0, *self.shape[1:]), self.dtype)[(slice(None), *other_keys)]
        first = clips.min()
        rows = self.read(slice(first, clips.max() + 1))
        requested = rows[clips - first]
        # As in numpy, a number removes the axis of clips, and a slice keeps it.
        all_or_only_row = slice(None) if isinstance(key_of_clips, slice) else 0
        return np.asarray(requested[(all_or_only_row, *other_keys)])
