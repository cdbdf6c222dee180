"""Find and read the features of one backbone in a store."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.store import Group, Store
from obygaze_features.store.format import FEATURE_ARRAYS
from obygaze_features.store.group import rows_of
from obygaze_models.errors import DatasetError

Features = Literal["pooled", "frames", "tokens"]
Pool = Literal["max", "mean", "first", "last"]
"""How a clip's frames or tokens become one vector."""

REDUCE: Mapping[Pool, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = MappingProxyType(
    {
        "max": lambda frames: np.max(frames, axis=-2),
        "mean": lambda frames: np.mean(frames, axis=-2),
        "first": lambda frames: frames[..., 0, :],
        "last": lambda frames: frames[..., -1, :],
    }
)
"""What makes one vector [..., D] of a clip's frames [..., T, D]."""

ARRAYS: tuple[Features, ...] = FEATURE_ARRAYS  # type: ignore[assignment]  # Features names the same


@checked
def find_group(store: Store, backbone: str | None) -> Group:
    """Find a backbone of a store; the name is optional if there is only one.

    Raises
    ------
    DatasetError
        It is not there, or not named.
    """
    names = ", ".join(store.names)
    if backbone is None:
        if len(store.backbones) != 1:
            raise DatasetError(
                f"store {store.name} has several backbones ({names}): name one, STORE:BACKBONE"
            )
        return store[store.backbones[0]]
    if backbone not in store.names:
        raise DatasetError(f"store {store.name} has no backbone {backbone!r}: it has {names}")
    return store[backbone]


@checked
def layer_groups(store: Store, backbone: str | None) -> dict[int, str]:
    """List the layers of a network that a store has: number -> group, in the order of the network.

    Parameters
    ----------
    backbone : str, optional
        The network's own group; may be left out where the store has one network with layers.

    Raises
    ------
    DatasetError
        There are none, or those of several networks.
    """
    by_owner: dict[str, dict[int, str]] = {}
    for name in store.names:
        provenance = store[name].provenance
        owner, layer = provenance.get("beside"), provenance.get("layer")
        if not isinstance(owner, str) or not isinstance(layer, str):
            continue
        if re.fullmatch("[1-9][0-9]{0,3}", layer, re.ASCII):
            by_owner.setdefault(owner, {})[int(layer)] = name
    owners = [backbone] if backbone is not None else list(by_owner)
    if len(owners) > 1:
        raise DatasetError(
            f"store {store.name} has layers of several backbones ({', '.join(owners)}): name one, "
            "STORE:BACKBONE"
        )
    found = by_owner.get(owners[0], {}) if owners else {}
    if not found:
        of = f"of {backbone}" if backbone is not None else "of any backbone"
        raise DatasetError(f"store {store.name} has no layers {of}: extract with --layers")
    return dict(sorted(found.items()))


def unusable(store: Store, group: Group, row: int) -> str | None:
    """Explain why a clip has no features to use; None if it has."""
    if group.usable[row]:
        return None
    clip = store.clips[row].within(group.name)
    return f"{clip.status}: {clip.reason}" if clip.reason else clip.status


def find_array(store: Store, group: Group, features: Features | None) -> Features:
    """Find the array to make vectors of: the named one, or the first that is stored.

    Raises
    ------
    DatasetError
        It is not there.
    """
    for array in ARRAYS if features is None else (features,):
        if array in group.arrays:
            return array
    names = " or ".join(ARRAYS) if features is None else features
    raise DatasetError(
        f"backbone {group.name} of store {store.name} has no {names} features: "
        f"it has {', '.join(group.arrays)}"
    )


def lengths_of(store: Store, rows: Sequence[int]) -> NDArray[np.float64] | None:
    """Find the lengths of clips, spans or whole files, in seconds; None where one is not known."""
    lengths = np.array([store.clips[row].duration_s for row in rows], dtype=np.float64)  # None becomes NaN
    return lengths if len(lengths) and (lengths > 0).all() else None


def read_array(group: Group, array: str, rows: NDArray[np.intp]) -> NDArray[Any]:
    """Read some rows of an array [N, ...], block by block, so that it is in memory once.

    Where clips have frames of any number it is [N, T, D], T of the longest; NaN where a clip has fewer.
    """
    if group.is_ragged(array):
        return read_padded(group, array, rows)
    values = np.empty((len(rows), *group.shape(array)[1:]), group.dtype(array))
    for part in _stored_together(group, array, rows):
        values[part.places] = part.values
    return values


class _Part(NamedTuple):
    """Clips whose rows are stored together: their places among those asked for [n], and the rows [n, ...]."""

    places: NDArray[np.intp]
    values: NDArray[Any]


def _stored_together(group: Group, array: str, rows: NDArray[np.intp]) -> Iterator[_Part]:
    """Read what is stored together at once, of rows [N] in any order, and nothing without any of them."""
    starts = np.array([piece.start for piece in group.pieces(array)], np.intp)
    order = np.argsort(rows, kind="stable")
    piece = np.searchsorted(starts, rows[order], side="right")
    for places in np.split(order, np.flatnonzero(np.diff(piece)) + 1):
        if len(places):
            own = rows[places]
            values = group.rows(array, slice(int(own[0]), int(own[-1]) + 1))
            yield _Part(places, values[own - own[0]])


def read_padded(
    group: Group, array: str, rows: NDArray[np.intp], n_frames: int | None = None
) -> NDArray[Any]:
    """Read the frames of some clips in a ragged array [N, T, D], NaN where a clip has fewer than T.

    Models of frames leave out what is NaN, as with padding by hand and a mask.

    Parameters
    ----------
    rows
        Rows of the clips [N], in any order.
    n_frames
        T; None for that of the longest of them.
    """
    longest = int(group.row_size[rows].max(initial=1)) if n_frames is None else n_frames
    width = group.shape(array)[1:]
    values = np.full((len(rows), longest, *width), np.nan, group.dtype(array))
    order = np.argsort(rows, kind="stable")
    for place, frames in zip(order.tolist(), rows_of(group, array, rows[order].tolist()), strict=True):
        values[place, : len(frames)] = frames
    return values


@checked
def read_features(group: Group, array: Features, pool: Pool, rows: NDArray[np.intp]) -> NDArray[np.float32]:
    """Read one vector for each of the rows [N, D], block by block, so that tokens need not fit in memory.

    Raises
    ------
    DatasetError
        A feature is not finite, which sealing refuses: something else wrote the store.
    """
    if group.is_ragged(array):
        X = np.empty((len(rows), group.shape(array)[1]), np.float32)
        order = np.argsort(rows, kind="stable")
        for place, frames in zip(order.tolist(), rows_of(group, array, rows[order].tolist()), strict=True):
            X[place] = REDUCE[pool](frames.astype(np.float32))
    elif array == "pooled":
        X = _read_vectors(group, rows)
    else:
        X = np.empty((len(rows), group.shape(array)[-1]), np.float32)
        for part in _stored_together(group, array, rows):
            X[part.places] = REDUCE[pool](part.values.astype(np.float32))
    bad = ~np.isfinite(X).all(axis=1)
    if bad.any():
        clip = group.clip_ids[rows[int(np.flatnonzero(bad)[0])]]
        raise DatasetError(
            f"backbone {group.name}, {array} of clip {clip}: "
            f"a feature is not finite ({int(bad.sum())} such clips); run: obygaze store verify --full"
        )
    return X


def _read_vectors(group: Group, rows: NDArray[np.intp]) -> NDArray[np.float32]:
    """Read the pooled vectors of some clips [N, D]; of most clips of a range, the range at once."""
    if not len(rows):
        return np.empty((0, group.shape("pooled")[1]), np.float32)
    first, end = int(rows.min()), int(rows.max()) + 1
    if 2 * len(rows) >= end - first:  # several requests at once
        return np.ascontiguousarray(group.rows("pooled", slice(first, end))[rows - first], dtype=np.float32)
    return np.asarray(read_array(group, "pooled", rows), dtype=np.float32)


class StoredClips:
    """Frames or tokens of clips [N, T, D], read from a store clip by clip as they are asked for.

    An index of several clips gives those, still unread; `numpy.asarray` reads them. Where clips have frames
    of any number, T is that of the longest of all, and NaN stands where a clip has fewer.

    Parameters
    ----------
    group : Group
    array : {"frames", "tokens"}
    rows : ndarray of int, shape [N]
        Of the clips in the store.
    n_frames : int, optional
        T of a ragged array; by default that of the longest of the clips.
    """

    def __init__(self, group: Group, array: str, rows: NDArray[np.intp], n_frames: int | None = None) -> None:
        self.group = group
        self.array = array
        self.rows = rows
        self.n_frames = n_frames
        sizes = group.shape(array)[1:]
        if group.is_ragged(array):
            if n_frames is None:
                self.n_frames = int(group.row_size[rows].max(initial=1))
            sizes = (int(self.n_frames or 1), *sizes)
        self.shape = (len(rows), *sizes)
        self.dtype = group.dtype(array)
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, places: slice | NDArray[Any]) -> "StoredClips":
        return StoredClips(self.group, self.array, self.rows[places], self.n_frames)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Read the clips [N, T, D]."""
        del copy
        if self.group.is_ragged(self.array):
            padded = read_padded(self.group, self.array, self.rows, self.n_frames)
            return padded if dtype is None else padded.astype(dtype)
        values = np.empty(self.shape, self.dtype if dtype is None else dtype)
        for place, row in enumerate(self.rows.tolist()):
            values[place] = self.group.read(self.group.clip_ids[row], self.array)
        return values
