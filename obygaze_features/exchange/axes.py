"""Bring the axes of another tool's array into the order of the format: frames first, then their numbers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from numpy.typing import NDArray

from obygaze_features.errors import StoreError

Axes = Literal["TD", "DT", "T1D", "TD11"]
"""Order of the axes of a clip's array: T frames (or tokens), D numbers of each, axes of length one."""

AXES_OF_ONE: Final[Mapping[Axes, tuple[int, int]]] = {
    "TD": (0, 0),
    "DT": (0, 0),
    "T1D": (1, 1),
    "TD11": (2, 3),
}
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
    if not _fits(values.shape, axes):
        raise StoreError(
            f"{where}: its axes are {list(values.shape)}, which is not {_spelt(axes)}; "
            f"{_how_to_read(values.shape)}"
        )
    plain = values
    if axes in ("TD", "DT") and values.ndim == 3:
        plain = values[0]
    matrix = plain.reshape(len(plain), plain.shape[2] if axes == "T1D" else plain.shape[1])
    return matrix.T if axes == "DT" else matrix


def refuse_other_axes(array: str, shape: Sequence[int], n_axes: int, where: str, *, named: bool) -> None:
    """Refuse an array with more or fewer axes than its kind has; say what reads it.

    Parameters
    ----------
    array
        The kind of array: `pooled` [D], `frames` or `tokens` [T, D].
    shape
        Its axes, without those of length one that are too many.
    n_axes
        Number of its axes in the format.
    where
        The file, for messages.
    named
        Whether the file itself calls the array so, which no option changes.

    Raises
    ------
    StoreError
        If it has another number of axes.
    """
    if len(shape) == n_axes:
        return
    other = "pooled" if n_axes > 1 else "frames"
    if named:
        remedy = f"save it under another name, such as {other}"
    elif n_axes > 1:
        remedy = f"one frame would be [1, {shape[0]}], one vector a clip is --array {other}"
    else:
        remedy = _how_to_read(shape, before=f"--array {other} ")
    expected = "[D]" if n_axes == 1 else "[T, D]"
    raise StoreError(f"{where}: the axes of {array} are {list(shape)}, expected {expected}; {remedy}")


def _fits(shape: Sequence[int], axes: Axes) -> bool:
    """Return whether axes can be of an order: two, and axes of length one where the order has them."""
    if axes in ("TD", "DT") and len(shape) == 3 and shape[0] == 1:
        shape = shape[1:]
    fewest, most = AXES_OF_ONE[axes]
    ones = shape[1:2] if axes == "T1D" else shape[2:]
    return fewest <= len(shape) - 2 <= most and all(size == 1 for size in ones)


def _how_to_read(shape: Sequence[int], before: str = "") -> str:
    """Say with which options an array of several axes is read as frames, or that none reads it.

    `before` is the option that is needed beside `--axes`.
    """
    if len(shape) == 1:
        return "one vector a clip is --array pooled"
    longer = [size for size in shape if size != 1]
    orders = [order for order in AXES_OF_ONE if _fits(shape, order)]
    if len(longer) > 2:
        return (
            "no --axes reads more than two: save [T, D], such as the mean over places, or all places one "
            "after another, values.reshape(-1, D)"
        )
    if not orders:
        return "no --axes reads these: save [T, D]"
    if len(longer) < 2:
        return f"say which are frames and which numbers: {before}--axes {'|'.join(orders)}"
    ways = []
    for order in orders:
        n_rows, n_numbers = reversed(longer) if order == "DT" else longer
        ways.append(f"{n_rows} frames of {n_numbers} numbers are {before}--axes {order}")
    return f"{', '.join(ways)}; tokens are --array tokens"


def _without_axes_of_one(values: NDArray[Any], n_axes: int, where: str) -> NDArray[Any]:
    """Leave out the axes of length one that are too many."""
    longer = tuple(size for size in values.shape if size != 1)
    if values.ndim > n_axes and len(longer) == n_axes:
        return values.reshape(longer)
    if values.ndim == n_axes + 1 and len(values) == 1:
        return values.reshape(values.shape[1:])
    if values.ndim > n_axes and n_axes == 2:
        raise StoreError(f"{where}: its axes are {list(values.shape)}; {_how_to_read(values.shape)}")
    return values


def _spelt(axes: Axes) -> str:
    """Write an order of axes as the shape of an array."""
    return f"[{', '.join(axes)}]"
