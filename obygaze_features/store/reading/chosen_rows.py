"""Walking through chosen rows of an array, one stored object at a time: memory stays bounded."""

from collections.abc import Iterator, Sequence
from typing import Any

from numpy.typing import NDArray

from obygaze_features.store.layout import FEATURE_ARRAYS, block_rows
from obygaze_features.store.reading.group import Group

TIME_ARRAYS = ("time_s", "frame_index")


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
