"""Bring the axes of another tool's array into the order of the format: frames first, then their numbers."""

from typing import Any, Final, Literal

from numpy.typing import NDArray

from obygaze_features.errors import StoreError

Axes = Literal["TD", "DT", "T1D", "TD11"]
"""Order of the axes of a clip's array: T frames (or tokens), D numbers of each, axes of length one."""

AXES_OF_ONE: Final = {"TD": (0, 0), "DT": (0, 0), "T1D": (1, 1), "TD11": (2, 3)}
"""Fewest and most axes of length one beside T and D; networks for video have one more than for images."""


def in_order(values: NDArray[Any], n_axes: int, axes: Axes | None, where: str) -> NDArray[Any]:
    """Return a clip's array with the axes of the format.

    Parameters
    ----------
    values
        The array as it was saved.
    n_axes
        Number of its axes in the format: 1 for [D], 2 for [T, D].
    axes
        Their order in the file; used where `n_axes` is 2. None leaves out axes of length one, where it is
        clear which these are: as many as there are too many, or the first.
    where
        The file and the array, for messages.

    Raises
    ------
    StoreError
        If the array has other axes.

    Examples
    --------
    >>> import numpy as np
    >>> from obygaze_features.exchange.axes import in_order
    >>> in_order(np.zeros((16, 7)), 2, "DT", "a.npy").shape
    (7, 16)
    >>> in_order(np.zeros((7, 16, 1, 1)), 2, None, "a.npy").shape
    (7, 16)
    """
    if axes is None or n_axes != 2:
        return _without_axes_of_one(values, n_axes, where)
    plain = values
    if axes in ("TD", "DT") and values.ndim == 3 and len(values) == 1:
        plain = values[0]
    fewest, most = AXES_OF_ONE[axes]
    ones = plain.shape[1:2] if axes == "T1D" else plain.shape[2:]
    if not fewest <= plain.ndim - 2 <= most or any(size != 1 for size in ones):
        raise StoreError(f"{where}: its axes are {list(values.shape)}, which is not {_spelt(axes)} (--axes)")
    matrix = plain.reshape(len(plain), plain.shape[2] if axes == "T1D" else plain.shape[1])
    return matrix.T if axes == "DT" else matrix


def _without_axes_of_one(values: NDArray[Any], n_axes: int, where: str) -> NDArray[Any]:
    """Leave out the axes of length one that are too many."""
    longer = tuple(size for size in values.shape if size != 1)
    if values.ndim > n_axes and len(longer) == n_axes:
        return values.reshape(longer)
    if values.ndim == n_axes + 1 and len(values) == 1:
        return values.reshape(values.shape[1:])
    if values.ndim > n_axes and n_axes == 2:
        raise StoreError(
            f"{where}: its axes are {list(values.shape)}; expected frames and their numbers, [T, D]: say "
            f"which they are (--axes {'|'.join(AXES_OF_ONE)})"
        )
    return values


def _spelt(axes: Axes) -> str:
    """Write an order of axes as the shape of an array."""
    return f"[{', '.join(axes)}]"
