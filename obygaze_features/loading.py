"""Hand the rows of a store to PyTorch's DataLoader, a piece at a time.

A piece is what a store reads at once. In a worker a piece is read into memory that the main process sees, so
that nothing is copied on the way: the copy costs as much as reading [4.8 MB: .5 to .9 ms of the CPU].
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked, made_by
from obygaze_features.errors import StoreError
from obygaze_features.store import Group
from obygaze_features.text import counted

if TYPE_CHECKING:
    import torch

LEFT_OUT = -1
"""Class of a row that is not used."""


@made_by("Pieces(open_store(PATH)[BACKBONE], ARRAY, CLASSES)")
class Pieces:
    """Batches of neighbouring clips for PyTorch's DataLoader: features, and the class of each clip.

    Each piece is a batch, so the loader takes `batch_size=None`, and `shuffle=True` shuffles pieces. It
    pickles as its group does, by place and fingerprint: workers may be started in any way, also from a
    notebook.

    Parameters
    ----------
    group
        Of a store in a folder, a zip or at a URL.
    array
        `pooled`, `frames` or `tokens`.
    y
        Class of each row of the store [N], whole numbers; -1 leaves a row out. Rows without features are left
        out too.

    Raises
    ------
    StoreError
        If there is no such array, not a class for each row, or each clip has its own number of frames.

    Examples
    --------
    >>> import obygaze_features as of
    >>> group = of.open_store("stores/films")["toy"]
    >>> pieces = of.Pieces(group, "frames", [0, 1] * 48)
    >>> X, y = pieces[0]
    >>> len(pieces), tuple(X.shape), tuple(y.shape)
    (2, (64, 2, 8), (64,))
    """

    @checked
    def __init__(self, group: Group, array: str, y: Sequence[int] | NDArray[np.integer]) -> None:
        """Check the classes and the array, and find the pieces; the class describes the parameters."""
        if len(y) != len(group):
            raise StoreError(
                f"y has {len(y)} classes, and {group.name} has {counted(len(group), 'row')}: give one each"
            )
        if group.is_ragged(array):
            raise StoreError(
                f"{array} of {group.name}: each clip has its own number, and a batch has one; read them with "
                "group.rows and group.row_size, or take pooled"
            )
        self.group = group
        self.array = array
        has_features = group.usable  # [N], False for failed clips
        self.y = np.where(has_features, np.asarray(y, np.int64), LEFT_OUT)
        self.pieces: list[slice] = []
        for rows in group.pieces(array):
            is_used = self.y[rows] != LEFT_OUT
            if is_used.any():
                self.pieces.append(rows)

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, number: int) -> "tuple[torch.Tensor, torch.Tensor]":
        """Read a piece: features [n, ...] and classes [n] of the rows that are used."""
        import torch  # noqa: PLC0415 - obygaze[extract]

        rows = self.pieces[number]
        n_rows = rows.stop - rows.start
        shape = (n_rows, *self.group.shape(self.array)[1:])
        X = _new_tensor(shape, self.group.dtype(self.array))
        self.group.rows(self.array, rows, out=X.numpy())  # the array shares the tensor's memory

        y = torch.from_numpy(self.y[rows])
        is_used = y != LEFT_OUT
        if bool(is_used.all()):  # nothing need be copied
            return X, y
        return X[is_used], y[is_used]


def _new_tensor(shape: tuple[int, ...], dtype: np.dtype[Any]) -> "torch.Tensor":
    """Make an uninitialised tensor; in a worker of a DataLoader, in memory shared with the main process.

    The worker then sends it without a copy, as PyTorch's own `default_collate` does.
    """
    import torch  # noqa: PLC0415 - obygaze[extract]
    from torch.utils.data import get_worker_info  # noqa: PLC0415 - the same

    torch_dtype = torch.from_numpy(np.empty(0, dtype)).dtype  # PyTorch has no function for this
    is_in_worker = get_worker_info() is not None
    if not is_in_worker:
        return torch.empty(shape, dtype=torch_dtype)
    # Private to PyTorch, and without types, but what `default_collate` calls.
    new_shared: Callable[[int], torch.UntypedStorage] = torch.UntypedStorage._new_shared
    n_bytes = math.prod(shape) * dtype.itemsize
    flat = torch.empty(0, dtype=torch_dtype).set_(new_shared(n_bytes))
    return flat.view(shape)
