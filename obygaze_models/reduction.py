"""Reduce a store's tokens to a small array beside the store, one pass, without holding them in memory."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BytesCodec, Crc32cCodec

from obygaze_features.io import empty, sha256_of, sync, sync_tree
from obygaze_features.locks import alone_in
from obygaze_features.screen import ShowProgress
from obygaze_features.store import Group, Store
from obygaze_models.errors import DatasetError
from obygaze_models.token_rules import Plan, TokenRule, plan

SUFFIX: Final = ".reduced"
ATTRIBUTE: Final = "obygaze_reduction"
VALUES, POSITIONS = "values", "position"
ANEW: Final = "remove it, and the next run makes it anew"
ROWS = 64
"""Clips in a chunk, which is also what is redone after a kill: whole shards of tokens."""


@dataclass(frozen=True, eq=False, slots=True)
class ReducedTokens:
    """The reduced tokens of one group of a store.

    Attributes
    ----------
    path : Path
        The folder beside the store.
    rule : str
    group : Group
        Row i is its clip i.
    """

    path: Path
    rule: str
    group: Group
    _arrays: zarr.Group

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of vectors of a clip and their dimensions [T', D']."""
        _, n_vectors, width = _array(self._arrays, VALUES).shape
        return n_vectors, width

    def read(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Read the vectors of some clips [N, T', D'].

        Raises
        ------
        DatasetError
            The folder's bytes are damaged.
        """
        values = np.empty((len(rows), *self.shape), np.float32)
        for place, block in self._blocks(VALUES, rows):
            values[place] = block
        return values

    def time_s(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Compute the time of each vector of some clips [N, T']: the mean time of its step's frames.

        NaN where the store does not tell the tokens' time steps.
        """
        found = np.full((len(rows), self.shape[0]), np.nan)
        n_steps = plan(self.group, TokenRule.parse(self.rule)).n_steps
        times = self.group.time_s[rows]
        if n_steps is None or times.shape[1] % n_steps:
            return found
        steps = times.reshape(len(rows), n_steps, -1).mean(axis=2)
        for place, positions in self._blocks(POSITIONS, rows):
            found[place] = np.take_along_axis(steps[place], positions.astype(np.intp), axis=1)
        return found

    def _blocks(self, name: str, rows: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
        """Yield places in `rows` and what is stored for them, chunk by chunk."""
        array = _array(self._arrays, name)
        for chunk in np.unique(rows // ROWS).tolist():
            places = np.flatnonzero(rows // ROWS == chunk)
            with _damage_named(self.path):
                stored = np.asarray(array[chunk * ROWS : (chunk + 1) * ROWS])
            yield places, stored[rows[places] - chunk * ROWS]


def reduce_tokens(
    store: Store, backbone: str, rule: str, *, progress: ShowProgress | None = None
) -> ReducedTokens:
    """Reduce the tokens of a store in one pass, or open what an earlier call made of it.

    The result is the folder ``STORE.BACKBONE.RULE.reduced`` beside the store, a Zarr group that carries the
    store's fingerprint and the rule. A stopped pass resumes; the folder has its name once it is whole.

    Parameters
    ----------
    store : Store
        In a folder or a zip; memory stays bounded by its shards.
    backbone : str
    rule : str
        See `token_rules`.
    progress : callable, optional
        Called with the numbers of clips done and of all.

    Raises
    ------
    DatasetError
        No such rule, the rule does not fit the tokens, the store is on a server, or the folder was made of
        another store or is damaged.
    """
    group = store[backbone]
    fitted = plan(group, TokenRule.parse(rule))
    if "://" in store.where:
        raise DatasetError(
            f"{store.where}: tokens are reduced beside a store: pull it first (obygaze store pull)"
        )
    said = str(fitted.rule)
    place = Path(store.where)
    path = place.with_name(f"{place.name}.{backbone}.{said.replace(':', '-').replace('+', '_')}{SUFFIX}")
    card: dict[str, Any] = {"number": 1, "store": store.fingerprint, "backbone": backbone, "rule": said}
    card["sha256"] = sha256_of(json.dumps(card, sort_keys=True).encode())
    if not path.exists():
        partial = path.with_name(f"{path.name}.partial")
        with alone_in(partial, "reducing these tokens"):
            if not path.exists():
                _make(partial, group, fitted, card, progress)
                sync_tree(partial)
                partial.replace(path)
        sync(path.parent)
    return _open(path, group, fitted, card)


def _make(
    folder: Path, group: Group, fitted: Plan, card: dict[str, Any], progress: ShowProgress | None
) -> None:
    """Reduce all clips into a folder, after those that an earlier pass left there."""
    shape = (len(group), fitted.n_vectors, fitted.rule.size or fitted.n_features)
    node = _unfinished(folder, shape, card)
    values, positions = _array(node, VALUES), _array(node, POSITIONS)
    done = _whole_chunks(values, positions) * ROWS
    block, places = np.full((ROWS, *shape[1:]), np.nan, np.float32), np.zeros((ROWS, shape[1]), np.int32)
    for start, tokens in group.blocks("tokens", done):
        for row, clip in enumerate(tokens, start=start):
            if group.usable[row]:
                block[row % ROWS], places[row % ROWS] = fitted.apply(clip)
                if not np.isfinite(block[row % ROWS]).all():
                    raise DatasetError(
                        f"backbone {group.name}, tokens of clip {group.clip_ids[row]}: "
                        "a token is not finite; run: obygaze store verify --full"
                    )
            if (row + 1) % ROWS == 0 or row + 1 == len(group):
                first, n = row // ROWS * ROWS, row % ROWS + 1
                positions[first : first + n] = places[:n]
                values[first : first + n] = block[:n]
                block[:], places[:] = np.nan, 0
        if progress is not None:
            progress(start + len(tokens), len(group))


def _unfinished(folder: Path, shape: tuple[int, ...], card: dict[str, Any]) -> zarr.Group:
    """Open the folder of a stopped pass, or begin anew."""
    try:
        node = zarr.open_group(folder, mode="r+", zarr_format=3)
        if node.attrs.asdict().get(ATTRIBUTE) == card and {VALUES, POSITIONS} <= set(node.array_keys()):
            return node
    except (OSError, ValueError, KeyError):
        pass
    empty(folder)
    node = zarr.open_group(folder, mode="w-", zarr_format=3, attributes={ATTRIBUTE: card})
    for name, dims, dtype, fill in (
        (VALUES, ("clip", "vector", "feature"), "float32", np.nan),
        (POSITIONS, ("clip", "vector"), "int32", 0),
    ):
        own = shape[: len(dims)]
        node.create_array(
            name,
            shape=own,
            dtype=dtype,
            chunks=(min(ROWS, own[0]), *own[1:]),
            serializer=BytesCodec(endian="little"),
            compressors=[Crc32cCodec()],
            fill_value=fill,
            dimension_names=dims,
            config={"write_empty_chunks": True},
        )
    return node


def _whole_chunks(values: "zarr.Array[Any]", positions: "zarr.Array[Any]") -> int:
    """Count the chunks that a stopped pass wrote whole, from the first on."""
    folder = Path(str(values.store_path).removeprefix("file://"))
    for chunk in range(values.nchunks):
        if not (folder / "c" / str(chunk) / "0" / "0").exists():
            return chunk
        try:
            for array in (values, positions):
                _ = array[chunk * ROWS : (chunk + 1) * ROWS]
        except (OSError, ValueError):
            return chunk
    return int(values.nchunks)


def _open(path: Path, group: Group, fitted: Plan, card: dict[str, Any]) -> ReducedTokens:
    """Open a whole folder; refuse it if it was made of something else."""
    try:
        node = zarr.open_group(path, mode="r", zarr_format=3)
        found: Any = node.attrs.asdict()[ATTRIBUTE]
        theirs = {field: str(found[field]) for field in card}
        shapes = {name: _array(node, name).shape for name in (VALUES, POSITIONS)}
    except (OSError, ValueError, LookupError, TypeError):
        raise DatasetError(f"{path}: not a whole reduction of tokens: {ANEW}") from None
    for field in ("store", "backbone", "rule"):
        if theirs[field] != card[field]:
            raise DatasetError(
                f"{path} was made of another {field} ({theirs[field][:12]}, not {card[field][:12]}): {ANEW}"
            )
    shape = (len(group), fitted.n_vectors, fitted.rule.size or fitted.n_features)
    if found != card or shapes != {VALUES: shape, POSITIONS: shape[:2]}:
        raise DatasetError(f"{path}: its metadata are not those of a reduction by {card['rule']}: {ANEW}")
    return ReducedTokens(path, card["rule"], group, node)


def _array(node: zarr.Group, name: str) -> "zarr.Array[Any]":
    array = node[name]
    if not isinstance(array, zarr.Array):
        raise KeyError(name)
    return array


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        raise DatasetError(f"{path} is damaged ({(str(error).splitlines() or ['?'])[0]}): {ANEW}") from error
