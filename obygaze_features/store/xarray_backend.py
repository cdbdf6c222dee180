"""Let xarray read rows of a store when it needs them; this module needs xarray."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray.backends import BackendArray
from xarray.core import indexing


class RowsOfStore(BackendArray):
    """An array of a store, read by slices of clips; it can be pickled if `read` can."""

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], read: Callable[[slice], NDArray[Any]]
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.read = read

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple[Any, ...]) -> NDArray[Any]:
        """Read what an index asks for: its first part is of clips."""
        first, *axes = key
        places = np.atleast_1d(np.arange(self.shape[0])[first])
        if not len(places):
            return np.empty((0, *self.shape[1:]), self.dtype)[(slice(None), *axes)]
        rows = self.read(slice(places.min(), places.max() + 1))
        chosen = rows[places - places.min()]
        return np.asarray(chosen[(slice(None) if isinstance(first, slice) else 0, *axes)])
