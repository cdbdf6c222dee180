"""Bring the axes of another tool's array into the order of the format: frames first, then their numbers."""

from collections.abc import Sequence
from typing import Any, Final, Literal

from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.text import counted

Axes = Literal["TD", "DT", "T1D", "TD11"]
"""Order of the axes of a clip's array: T frames (or tokens), D numbers of each, 1 for axes of length one.

TD11 is also the order of [T, D, 1, 1, 1], which networks for video give."""

ORDERS: Final[tuple[Axes, ...]] = ("TD", "DT", "T1D", "TD11")
"""All orders of axes that can be declared."""


def reorder_axes(values: NDArray[Any], n_axes: int, axes: Axes | None, location: str) -> NDArray[Any]:
    """Return a clip's array with the axes in the format's order: [D] or [T, D].

    Parameters
    ----------
    values
        The array as it was saved.
    n_axes
        Number of its axes in the format: 1 for [D], 2 for [T, D].
    axes
        Their order in the file, such as "DT" for [D, T] or "T1D" for [T, 1, D]; used where `n_axes` is 2.
        With None, superfluous axes of length one are removed.
    location
        The file and the array, for messages.

    Raises
    ------
    StoreError
        If the array has axes in no such order, or it is not clear which of them are superfluous.

    Examples
    --------
    >>> import numpy as np
    >>> from obygaze_features.exchange.axes import reorder_axes
    >>> reorder_axes(np.zeros((16, 7)), 2, "DT", "a.npy").shape
    (7, 16)
    >>> reorder_axes(np.zeros((7, 16, 1, 1)), 2, None, "a.npy").shape
    (7, 16)
    """
    is_vector = n_axes == 1  # a vector has but one order
    if axes is None or is_vector:
        return _without_axes_of_one(values, n_axes, location)
    if not _fits(values.shape, axes):
        raise StoreError(
            f"{location}: its axes are {list(values.shape)}, which is not {_as_shape(axes)}; "
            f"{_how_to_read(values.shape)}"
        )
    if axes == "T1D":
        return values[:, 0]
    if axes == "TD11":
        return values.reshape(values.shape[:2])
    matrix = values[0] if values.ndim == 3 else values  # [1, T, D] or [1, D, T] loses its first axis
    return matrix.T if axes == "DT" else matrix


def refuse_other_axes(
    array: str, shape: Sequence[int], n_axes: int, location: str, *, is_named_in_file: bool
) -> None:
    """Refuse an array with another number of axes than its kind has, in a message with the right option.

    Such an array is likely to be one of the other kind: a vector [D] where frames [T, D] are expected, or
    frames where a vector is.

    Parameters
    ----------
    array
        The kind of array: `pooled` [D], `frames` or `tokens` [T, D].
    shape
        Its shape, after superfluous axes of length one were removed.
    n_axes
        Number of its axes in the format.
    location
        The file, for messages.
    is_named_in_file
        Whether the array has this name in the file. Then no option can read it as another kind.

    Raises
    ------
    StoreError
        If it has another number of axes.
    """
    if len(shape) == n_axes:
        return
    is_pooled = n_axes == 1
    expected = "[D]" if is_pooled else "[T, D]"
    other_kind = "frames" if is_pooled else "pooled"  # which the array may be instead
    if is_named_in_file:
        remedy = f"save it under another name, such as {other_kind}"
    elif is_pooled:
        remedy = _how_to_read(shape, array_option="--array frames ")
    else:
        # Frames or tokens were expected. Arrays of more axes were refused before: this is a vector, [D].
        n_numbers = shape[0]
        remedy = f"one frame would be [1, {n_numbers}], one vector a clip is --array pooled"
    raise StoreError(f"{location}: the axes of {array} are {list(shape)}, expected {expected}; {remedy}")


def _fits(shape: Sequence[int], axes: Axes) -> bool:
    """Return whether an array of some shape can have its axes in the order that `axes` names.

    All axes except those of frames (T) and numbers (D) must have length one. For example, [7, 1, 16] fits T1D
    and [1, 7, 16] fits TD.
    """
    if axes in ("TD", "DT"):
        is_matrix = len(shape) == 2
        is_list_of_one_matrix = len(shape) == 3 and shape[0] == 1  # such as a batch of one clip
        return is_matrix or is_list_of_one_matrix
    if axes == "T1D":
        return len(shape) == 3 and shape[1] == 1
    has_axes_of_td11 = len(shape) in (4, 5)  # [T, D, 1, 1] or [T, D, 1, 1, 1]
    return has_axes_of_td11 and all(size == 1 for size in shape[2:])


def _how_to_read(shape: Sequence[int], array_option: str = "") -> str:
    """Return in words with which options an array can be read as frames, or that none reads it.

    For example, [16, 7] gives "16 frames of 7 numbers are --axes TD, 7 frames of 16 numbers are --axes DT;
    tokens are --array tokens".

    Parameters
    ----------
    shape
        Its shape.
    array_option
        What stands before `--axes`, with a blank at its end, such as "--array frames "; "" for nothing.
    """
    if len(shape) == 1:
        return "one vector a clip is --array pooled"
    # Axes of length one are superfluous. Two others can be those of frames and of numbers.
    lengths = [length for length in shape if length != 1]
    if len(lengths) > 2:
        return (
            "no --axes reads more than two: save [T, D], such as the mean over places, or all places one "
            "after another, values.reshape(-1, D)"
        )
    orders = [order for order in ORDERS if _fits(shape, order)]
    if not orders:
        return "no --axes reads these: save [T, D]"
    if len(lengths) < 2:  # the shape does not tell how many frames each order would give
        return f"say which are frames and which numbers: {array_option}--axes {'|'.join(orders)}"
    first_length, last_length = lengths
    readings = []
    for order in orders:
        numbers_are_first = order == "DT"  # in all other orders, frames are
        n_frames = last_length if numbers_are_first else first_length
        n_numbers = first_length if numbers_are_first else last_length
        frames = counted(n_frames, "frame")
        readings.append(f"{frames} of {counted(n_numbers, 'number')} are {array_option}--axes {order}")
    return f"{', '.join(readings)}; tokens are --array tokens"


def _without_axes_of_one(values: NDArray[Any], n_axes: int, location: str) -> NDArray[Any]:
    """Remove axes of length one until `n_axes` are left, if it is clear which these are.

    It is clear if all axes of length one must go, or if only the first one is too many. Otherwise a matrix is
    refused, and a vector is returned as it is: `refuse_other_axes` refuses it.
    """
    if values.ndim <= n_axes:
        return values
    long_axes = tuple(size for size in values.shape if size != 1)
    if len(long_axes) == n_axes:
        return values.reshape(long_axes)
    if values.ndim == n_axes + 1 and len(values) == 1:
        return values.reshape(values.shape[1:])
    if n_axes == 2:
        raise StoreError(f"{location}: its axes are {list(values.shape)}; {_how_to_read(values.shape)}")
    return values


def _as_shape(axes: Axes) -> str:
    """Return an order of axes as the shape of an array, such as `[T, 1, D]`."""
    return f"[{', '.join(axes)}]"
