"""Find and read the features of one backbone in a store."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.same_pictures import GROUP as SIGNATURE
from obygaze_features.store import Group, Store
from obygaze_features.store.format import FEATURE_ARRAYS
from obygaze_features.store.group import rows_of
from obygaze_models.errors import DatasetError

Features = Literal["pooled", "frames", "tokens"]
Pool = Literal["max", "mean", "first", "last"]
"""How a clip's frames or tokens become one vector."""

REDUCTIONS: Mapping[Pool, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = MappingProxyType(
    {
        "max": lambda frames: np.max(frames, axis=-2),
        "mean": lambda frames: np.mean(frames, axis=-2),
        "first": lambda frames: frames[..., 0, :],
        "last": lambda frames: frames[..., -1, :],
    }
)
"""Pooling -> the function that makes one vector [..., D] of a clip's frames [..., T, D]."""

ARRAYS: tuple[Features, ...] = FEATURE_ARRAYS  # type: ignore[assignment]  # Features names the same


@checked
def find_group(store: Store, backbone: str | None) -> Group:
    """Find the group of a backbone in a store; the name may be left out if there is only one.

    The pictures' signature does not count as a backbone, unless it is the only group.

    Raises
    ------
    DatasetError
        The store has no such backbone, or several and none is named.
    """
    names = ", ".join(store.names)
    if backbone is not None:
        if backbone not in store.names:
            raise DatasetError(f"store {store.name} has no backbone {backbone!r}: it has {names}")
        return store[backbone]

    candidates = list(store.backbones)
    if len(candidates) > 1 and SIGNATURE in candidates:
        # A signature identifies films, and is rarely a model's input: it must be named.
        candidates.remove(SIGNATURE)
    if len(candidates) != 1:
        raise DatasetError(f"store {store.name} has several backbones ({names}): name one, STORE:BACKBONE")
    return store[candidates[0]]


@checked
def layer_groups(store: Store, backbone: str | None) -> dict[int, str]:
    """List the layers of a network that a store has: number -> group, in the order of the network.

    Parameters
    ----------
    backbone : str, optional
        The network's own group; may be left out if the store has one network with layers.

    Raises
    ------
    DatasetError
        The store has no layers, or those of several networks and none is named.
    """
    layers_of_networks = _layers_of_networks(store)
    if backbone is None and len(layers_of_networks) > 1:
        networks = ", ".join(layers_of_networks)
        raise DatasetError(
            f"store {store.name} has layers of several backbones ({networks}): name one, STORE:BACKBONE"
        )

    if backbone is None:
        layers = next(iter(layers_of_networks.values()), {})  # those of the only network, if there is any
    else:
        layers = layers_of_networks.get(backbone, {})

    if not layers:
        which = backbone if backbone is not None else "any backbone"
        remedy = "extract with --layers"
        if layers_of_networks:
            remedy = f"name a backbone with layers, STORE:{' or STORE:'.join(layers_of_networks)}"
        raise DatasetError(f"store {store.name} has no layers of {which}: {remedy}")
    return dict(sorted(layers.items()))


def _layers_of_networks(store: Store) -> dict[str, dict[int, str]]:
    """Find the groups of a store that are layers of a network: network -> number of a layer -> its group.

    The provenance of such a group names the network's group, under "beside", and the number of the layer.
    """
    layers_of: dict[str, dict[int, str]] = {}
    for name in store.names:
        provenance = store[name].provenance
        network = provenance.get("beside")
        layer = provenance.get("layer")
        if not isinstance(network, str) or not isinstance(layer, str):
            continue
        # The provenance of an imported store may hold anything.
        is_number = re.fullmatch("[1-9][0-9]{0,3}", layer, re.ASCII) is not None
        if is_number:
            layers_of.setdefault(network, {})[int(layer)] = name
    return layers_of


def why_unusable(store: Store, group: Group, row: int) -> str | None:
    """Return the reason why the clip in a row has no features of a group; None if it has features."""
    if group.usable[row]:
        return None
    clip = store.clips[row].within(group.name)  # with its status and reason in this group
    if clip.reason:
        return f"{clip.status}: {clip.reason}"
    return clip.status


def find_array(store: Store, group: Group, features: Features | None) -> Features:
    """Find the array of a group from which vectors are made: the named one, or the first that is stored.

    Raises
    ------
    DatasetError
        The store has no such array.
    """
    candidates = ARRAYS if features is None else (features,)
    for array in candidates:
        if array in group.arrays:
            return array
    names = " or ".join(candidates)
    raise DatasetError(
        f"backbone {group.name} of store {store.name} has no {names} features: "
        f"it has {', '.join(group.arrays)}"
    )


def lengths_of(store: Store, rows: Sequence[int]) -> NDArray[np.float64] | None:
    """Return the lengths [N] in seconds of the clips in some rows; None if one of them is not known."""
    lengths = np.array([store.clips[row].duration_s for row in rows], dtype=np.float64)  # None becomes NaN
    if not len(lengths) or not (lengths > 0).all():
        return None
    return lengths


def read_array(group: Group, array: str, rows: NDArray[np.intp]) -> NDArray[Any]:
    """Read some rows of an array, [N, ...], piece by piece, so that no second copy of them is in memory.

    If clips differ in their number of frames, the result is [N, T, D] with the T of the longest, and shorter
    clips end with NaN.
    """
    if group.is_ragged(array):
        return read_padded(group, array, rows)
    values = np.empty((len(rows), *group.shape(array)[1:]), group.dtype(array))
    for part in _read_by_piece(group, array, rows):
        values[part.indices] = part.values
    return values


class _Part(NamedTuple):
    """Values of an array for some of the clips that were requested, whose rows are in one piece.

    Attributes
    ----------
    indices : ndarray of int, shape [n]
        Where these clips are in the request: `values[0]` is that of the clip ``rows[indices[0]]``.
    values : ndarray, shape [n, ...]
    """

    indices: NDArray[np.intp]
    values: NDArray[Any]


def _read_by_piece(group: Group, array: str, rows: NDArray[np.intp]) -> Iterator[_Part]:
    """Yield the values of some rows [N] of an array, grouped by the piece in which they are stored.

    Each piece is read once, and pieces without any of the rows are not read. Rows may be in any order. For
    example, pieces start at the rows 0, 16 and 32, and the rows 20, 3, 40 and 17 are requested. Three parts
    are yielded: of the row 3 (index 1), of the rows 17 and 20 (indices 3 and 0), and of the row 40 (index 2).
    """
    if not len(rows):
        return
    starts = np.array([piece.start for piece in group.pieces(array)], np.intp)
    order = np.argsort(rows, kind="stable")  # in the example: 1, 3, 0, 2
    # The number of pieces that start at or before each row numbers its piece from 1: 1, 2, 2, 3.
    piece_of_row = np.searchsorted(starts, rows[order], side="right")
    first_of_next_piece = np.flatnonzero(np.diff(piece_of_row)) + 1  # 1, 3
    for indices in np.split(order, first_of_next_piece):
        rows_of_piece = rows[indices]
        first = int(rows_of_piece[0])
        last = int(rows_of_piece[-1])
        values = group.rows(array, slice(first, last + 1))
        yield _Part(indices, values[rows_of_piece - first])


def read_padded(
    group: Group, array: str, rows: NDArray[np.intp], n_frames: int | None = None
) -> NDArray[Any]:
    """Read the frames of some clips from a ragged array, padded with NaN to the same number: [N, T, D].

    Models of frames ignore frames that are NaN.

    Parameters
    ----------
    rows
        Rows of the clips [N], in any order.
    n_frames
        The number T; None for that of the longest of these clips.
    """
    if n_frames is None:
        n_frames = _max_frames(group, rows)
    width = group.shape(array)[1:]
    values = np.full((len(rows), n_frames, *width), np.nan, group.dtype(array))
    # The store is read in its own order, which is quicker.
    order = np.argsort(rows, kind="stable")
    frames_of_clips = rows_of(group, array, rows[order].tolist())
    for index, frames in zip(order.tolist(), frames_of_clips, strict=True):
        values[index, : len(frames)] = frames
    return values


def _max_frames(group: Group, rows: NDArray[np.intp]) -> int:
    """Return the number of frames of the longest of some clips; 1 without any clip."""
    return int(group.row_size[rows].max(initial=1))


@checked
def read_features(group: Group, array: Features, pool: Pool, rows: NDArray[np.intp]) -> NDArray[np.float32]:
    """Read one vector for each of some clips, [N, D], pooled from frames or tokens if need be.

    Clips are read piece by piece, so that their tokens need not fit in memory.

    Parameters
    ----------
    group : Group
    array : {"pooled", "frames", "tokens"}
    pool : {"max", "mean", "first", "last"}
        How frames or tokens become one vector; not used for pooled vectors.
    rows : ndarray of int, shape [N]
        The clips' rows in the group.

    Raises
    ------
    DatasetError
        A feature is not finite: the store was not written by obygaze, which refuses such features.
    """
    if array == "pooled" and not group.is_ragged(array):
        X = _read_vectors(group, rows)
    else:
        X = _pool_vectors(group, array, pool, rows)

    is_damaged = ~np.isfinite(X).all(axis=1)
    if is_damaged.any():
        first = int(np.flatnonzero(is_damaged)[0])
        clip_id = group.clip_ids[rows[first]]
        n_damaged = int(is_damaged.sum())
        raise DatasetError(
            f"backbone {group.name}, {array} of clip {clip_id}: a feature is not finite ({n_damaged} such "
            "clips); run: obygaze store verify --full"
        )
    return X


def _pool_vectors(group: Group, array: Features, pool: Pool, rows: NDArray[np.intp]) -> NDArray[np.float32]:
    """Read the frames or tokens of some clips, and pool them to vectors [N, D]."""
    to_vector = REDUCTIONS[pool]
    X = np.empty((len(rows), group.shape(array)[-1]), np.float32)
    if not group.is_ragged(array):
        for part in _read_by_piece(group, array, rows):
            X[part.indices] = to_vector(part.values.astype(np.float32))
        return X

    # Clips differ in their number of frames: they are read one by one, in the order of the store.
    order = np.argsort(rows, kind="stable")
    frames_of_clips = rows_of(group, array, rows[order].tolist())
    for index, frames in zip(order.tolist(), frames_of_clips, strict=True):
        X[index] = to_vector(frames.astype(np.float32))
    return X


def _read_vectors(group: Group, rows: NDArray[np.intp]) -> NDArray[np.float32]:
    """Read the pooled vectors [N, D] of some clips.

    If at least half of the rows from the first to the last are wanted, this whole range is read at once:
    pieces of a range on a server are requested at the same time, others one after another.
    """
    if not len(rows):
        return np.empty((0, group.shape("pooled")[1]), np.float32)
    first = int(rows.min())
    end = int(rows.max()) + 1
    share_of_range = len(rows) / (end - first)
    if share_of_range >= 0.5:
        whole_range = group.rows("pooled", slice(first, end))
        return np.ascontiguousarray(whole_range[rows - first], dtype=np.float32)
    return np.asarray(read_array(group, "pooled", rows), dtype=np.float32)


class StoredClips:
    """Frames or tokens of clips [N, T, D] in a store, which are read when they are needed.

    Indexing selects clips, still unread; `numpy.asarray` reads them. Where clips differ in their number of
    frames, T is that of the longest, and shorter ones end with NaN.

    Parameters
    ----------
    group : Group
    array : {"frames", "tokens"}
    rows : ndarray of int, shape [N]
        Rows of the clips in the store.
    n_frames : int, optional
        T of a ragged array; by default that of the longest of the clips.
    """

    def __init__(self, group: Group, array: str, rows: NDArray[np.intp], n_frames: int | None = None) -> None:
        """Compute the shape [N, T, D] of the clips of these rows; no feature is read yet."""
        self.group = group
        self.array = array
        self.rows = rows
        sizes = group.shape(array)[1:]
        if group.is_ragged(array):
            if n_frames is None:
                n_frames = _max_frames(group, rows)
            sizes = (n_frames, *sizes)
        self.n_frames = n_frames
        self.shape = (len(rows), *sizes)
        self.dtype = group.dtype(array)
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: slice | NDArray[Any]) -> "StoredClips":
        """Select some of the clips, of which nothing is read yet; they have as many frames as all of them."""
        return StoredClips(self.group, self.array, self.rows[index], self.n_frames)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Read the clips [N, T, D], for `numpy.asarray`."""
        del copy  # reading always makes an array of its own
        type_of_result = self.dtype if dtype is None else dtype
        if self.group.is_ragged(self.array):
            padded = read_padded(self.group, self.array, self.rows, self.n_frames)
            return padded.astype(type_of_result, copy=False)
        values = np.empty(self.shape, type_of_result)
        for index, row in enumerate(self.rows.tolist()):
            values[index] = self.group.read(self.group.clip_ids[row], self.array)
        return values
