"""Reduce a store's tokens by a rule to a small array beside the store, in one pass and bounded memory.

A rule is text: ``mean`` (over the patches of each frame or tubelet), ``top:K`` (the K tokens of the largest
norm), ``project:SIZE:SEED`` (a Gaussian random projection; Johnson and Lindenstrauss 1984), or one of the
first two, a plus sign and the third. The class token, where there is one, is left out.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from obygaze_features.door import parse_json, read_bytes
from obygaze_features.errors import ObygazeError
from obygaze_features.io import empty, sha256_of, sync, sync_tree
from obygaze_features.lines import json_bytes
from obygaze_features.locks import alone_in
from obygaze_features.screen import Progress, ShowProgress, shown_progress
from obygaze_features.store import Group, Store
from obygaze_features.store.arrays import CRC_BYTES, is_checked, with_checksum
from obygaze_models.blas import one_blas_thread
from obygaze_models.errors import DatasetError

SUFFIX: Final = ".reduced"
ATTRIBUTE: Final = "obygaze_reduction"
VALUES, POSITIONS = "values", "position"
ANEW: Final = "remove it, and the next run makes it anew"
ROWS = 64
"""Clips in a chunk: whole shards of tokens."""

TILE = 200
"""Tokens converted at once, which fit a core's second cache."""

GRAMMAR = "mean, mean:STEPS, top:K, project:SIZE, project:SIZE:SEED, or mean+project:SIZE, top:K+project:SIZE"
_RULE = re.compile(
    r"(?:(?P<take>mean(?=$|[:+])|top(?=:))(?::(?P<n>\d{1,6}))?)?"
    r"(?P<plus>\+)?(?:project:(?P<size>\d{1,6})(?::(?P<seed>\d{1,9}))?)?"
)

# --- rules
# ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TokenRule:
    """What is kept of a clip's tokens.

    Attributes
    ----------
    take : {"all", "mean", "top"}
        All tokens, the mean of each time step's tokens, or the `n` of the largest norm, in their order.
    n : int, optional
        Time steps of "mean" (None: as many as the store's `frames`), tokens of "top".
    size : int, optional
        Dimensions of the random projection; None for no projection.
    seed : int
        Of the projection.
    """

    take: Literal["all", "mean", "top"]
    n: int | None = None
    size: int | None = None
    seed: int = 0

    @classmethod
    def parse(cls, text: str) -> "TokenRule":
        """Read a rule.

        Raises
        ------
        DatasetError
            It is none.
        """
        match = _RULE.fullmatch(text)
        parts = match.groupdict() if match else {}
        first, second = bool(parts.get("take")), bool(parts.get("size"))
        n, size = (int(parts[name]) if parts.get(name) else None for name in ("n", "size"))
        if not (first or second) or bool(parts["plus"]) != (first and second) or 0 in (n, size):
            raise DatasetError(f"{text!r} is no rule to reduce tokens by: expected {GRAMMAR}")
        take: Any = parts["take"] or "all"
        return cls(take, n, size, int(parts["seed"] or 0))

    def __str__(self) -> str:
        first = "" if self.take == "all" else self.take if self.n is None else f"{self.take}:{self.n}"
        second = "" if self.size is None else f"project:{self.size}:{self.seed}"
        return "+".join(filter(None, (first, second)))


@dataclass(frozen=True, slots=True)
class ReductionPlan:
    """A rule applied to one group's tokens.

    Attributes
    ----------
    rule : TokenRule
        With the number of time steps filled in.
    n_tokens, n_features : int
        T and D of a clip's tokens.
    first : int
        1 if the first is a class token, which is left out.
    n_steps : int, optional
        Time steps among the other tokens, time first; None if the store does not tell.
    """

    rule: TokenRule
    n_tokens: int
    n_features: int
    first: int
    n_steps: int | None

    @property
    def n_vectors(self) -> int:
        """Count the vectors that are left of a clip."""
        return self.rule.n or self.n_tokens - self.first

    def apply(self, tokens: NDArray[np.float16]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Reduce a clip's tokens [T, D]; some vector is NaN if a token is not finite.

        Returns
        -------
        vectors : ndarray of float32, shape [T', D']
        positions : ndarray of int32, shape [T']
            The time step of each vector; of tokens whose steps are unknown their place among all.
        """
        rule, patches = self.rule, tokens[self.first :]
        places = np.arange(len(patches))
        if rule.take == "mean":
            per_step = len(patches) // self.n_vectors
            kept, places = _means(patches, per_step), places[: self.n_vectors] * per_step
        else:
            finite = True
            if rule.take == "top":
                norms = _square_norms(patches)
                finite = bool(np.isfinite(norms).all())
                places = np.sort(np.argsort(-norms, kind="stable")[: self.n_vectors])
            kept = patches[places].astype(np.float32) * np.float32(1 if finite else np.nan)
        if rule.size is not None:
            with one_blas_thread(), np.errstate(invalid="ignore"):  # what is not finite is found below
                kept = kept @ _projection(self.n_features, rule.size, rule.seed)
        if self.n_steps is not None:
            places = places // ((self.n_tokens - self.first) // self.n_steps)
        return kept, places.astype(np.int32)


def plan_reduction(group: Group, rule: TokenRule) -> ReductionPlan:
    """Fit a rule to a group's tokens.

    Raises
    ------
    DatasetError
        The group has no tokens, too few of them, or does not tell which belong to one time step.
    """
    if "tokens" not in group.arrays:
        raise DatasetError(
            f"backbone {group.name} has no tokens in this store to reduce by {rule}, "
            f"but {', '.join(group.arrays)}"
        )
    _, n_tokens, width = group.shape("tokens")
    stored = group.shape("frames")[1] if "frames" in group.arrays else None
    steps = rule.n if rule.take == "mean" and rule.n else stored
    first, known = 0, None
    if steps is not None and steps <= n_tokens and n_tokens % steps <= 1:
        first, known = n_tokens % steps if steps > 1 else 0, steps
    if rule.take == "mean":
        if steps is None:
            raise DatasetError(
                f"backbone {group.name} has no frames in this store to tell which of its {n_tokens} tokens "
                "belong together in time: give their number of time steps, as in mean:16"
            )
        if known is None:
            raise DatasetError(
                f"backbone {group.name}: {n_tokens} tokens are not {steps} time steps of equally many, "
                "with or without a class token: give another number of steps, as in mean:16"
            )
        rule = replace(rule, n=steps)
    if rule.n is not None and rule.n > n_tokens - first:
        raise DatasetError(f"backbone {group.name}: {rule} of {n_tokens - first} tokens: give fewer")
    return ReductionPlan(rule, n_tokens, width, first, known)


# --- arithmetic
# ---------------------------------------------------------------------------
_SCALE = np.float32(2.0**112)
_LIMIT = np.float32(65536 / 2.0**112)


def _scaled(tokens: NDArray[np.float16]) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Yield tiles of tokens [T, D] as float32, all values times 2^-112; NaN where one is not finite.

    A float16's bits, shifted to a float32's places, are its value times 2^-112: subnormal ones too. Shifting
    integers is three times as fast as numpy's conversion [a clip of 3,137 x 768: .65 ms, 2.3 ms].
    """
    bits = np.empty((TILE, tokens.shape[1]), np.int32)
    for start in range(0, len(tokens), TILE):
        part = tokens[start : start + TILE]
        tile = bits[: len(part)]
        np.copyto(tile, part.view(np.int16))  # extends the sign
        np.left_shift(tile, 13, out=tile)
        np.bitwise_and(tile, np.int32(-0x70000001), out=tile)  # of the four signs, the first is kept
        values = tile.view(np.float32)
        if values.max() >= _LIMIT or values.min() <= -_LIMIT:
            values[:] = np.nan
        yield slice(start, start + len(part)), values


def _means(patches: NDArray[np.float16], per_step: int) -> NDArray[np.float32]:
    """Compute the mean of each run of `per_step` tokens [T, D] -> [T', D]."""
    sums = np.zeros((len(patches) // per_step, patches.shape[1]), np.float32)
    for step in range(len(sums)):
        for _, tile in _scaled(patches[step * per_step : (step + 1) * per_step]):
            sums[step] += tile.sum(axis=0)
    return sums * (_SCALE / np.float32(per_step))


def _square_norms(patches: NDArray[np.float16]) -> NDArray[np.float32]:
    """Compute the squared norm of each token [T]."""
    norms = np.empty(len(patches), np.float32)
    for rows, tile in _scaled(patches):
        np.multiply(tile, _SCALE, out=tile)
        np.einsum("td,td->t", tile, tile, out=norms[rows])
    return norms


@lru_cache(maxsize=1)  # every clip of a pass takes the same
def _projection(width: int, size: int, seed: int) -> NDArray[np.float32]:
    """Draw the matrix [D, D'] of a projection that keeps lengths on average."""
    drawn = np.random.default_rng(seed).standard_normal((width, size), dtype=np.float32)
    drawn /= np.float32(np.sqrt(size))
    drawn.flags.writeable = False
    return drawn


# --- the folder beside a store
# ---------------------------------------------------------------------------


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
    shape : tuple of int
        Number of vectors of a clip and their dimensions [T', D'].
    """

    path: Path
    rule: str
    group: Group
    shape: tuple[int, int]

    def read(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Read the vectors of some clips [N, T', D'].

        Raises
        ------
        DatasetError
            The folder's bytes are damaged.
        """
        values = np.empty((len(rows), *self.shape), np.float32)
        for rows_read, block in self._blocks(VALUES, rows):
            values[rows_read] = block
        return values

    def time_s(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Compute the time of each vector of some clips [N, T']: the mean time of its step's frames.

        NaN where the store does not tell the tokens' time steps.
        """
        times_of = np.full((len(rows), self.shape[0]), np.nan)
        n_steps = plan_reduction(self.group, TokenRule.parse(self.rule)).n_steps
        times = self.group.time_s[rows]
        if n_steps is None or times.shape[1] % n_steps:
            return times_of
        steps = times.reshape(len(rows), n_steps, -1).mean(axis=2)
        for rows_read, positions in self._blocks(POSITIONS, rows):
            if ((positions < 0) | (positions >= n_steps)).any():
                raise DatasetError(f"{self.path} is damaged (a time step that is none): {ANEW}")
            times_of[rows_read] = np.take_along_axis(steps[rows_read], positions.astype(np.intp), axis=1)
        return times_of

    def _blocks(self, name: str, rows: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
        """Yield places in `rows` and what is stored for them, chunk by chunk."""
        for chunk in np.unique(rows // ROWS).tolist():
            places = np.flatnonzero(rows // ROWS == chunk)
            yield places, self._chunk(name, chunk)[rows[places] - chunk * ROWS]

    def _chunk(self, name: str, number: int) -> NDArray[Any]:
        """Read a chunk, which is its rows and a checksum."""
        shape = (min(ROWS, len(self.group)), *self.shape[: 2 if name == VALUES else 1])
        size = math.prod(shape) * 4 + CRC_BYTES
        place = _chunk_place(self.path, name, number, len(shape))
        try:
            data = memoryview(read_bytes(place, size, within=self.path))
        except (OSError, ObygazeError) as error:
            raise DatasetError(f"{self.path} is damaged ({error}): {ANEW}") from None
        if len(data) != size or not is_checked(data):
            raise DatasetError(f"{self.path} is damaged ({place.relative_to(self.path)}): {ANEW}")
        return np.frombuffer(data[:-CRC_BYTES], "<f4" if name == VALUES else "<i4").reshape(shape)


def reduce_tokens(
    store: Store, backbone: str, rule: str, *, progress: Progress | bool | None = None
) -> ReducedTokens:
    """Reduce the tokens of a store in one pass, or open what an earlier call made of it.

    The result is the folder ``STORE.BACKBONE.RULE.reduced`` beside the store, a Zarr group that carries the
    store's fingerprint and the rule. It has its name once it is whole; a stopped pass begins anew.

    Parameters
    ----------
    store : Store
        In a folder or a zip; memory stays bounded by its shards.
    backbone : str
    rule : str
        See the module.
    progress : callable, optional
        Called with the numbers of clips done and of all.

    Raises
    ------
    DatasetError
        No such rule, the rule does not fit the tokens, the store is on a server, or the folder was made of
        another store or is damaged.
    """
    group = store[backbone]
    fitted = plan_reduction(group, TokenRule.parse(rule))
    if "://" in store.where:
        raise DatasetError(
            f"{store.where}: tokens are reduced beside a store: pull it first (obygaze store pull)"
        )
    text = str(fitted.rule)
    store_path = Path(store.where)
    path = store_path.with_name(
        f"{store_path.name}.{backbone}.{text.replace(':', '-').replace('+', '_')}{SUFFIX}"
    )
    card: dict[str, Any] = {"number": 1, "store": store.fingerprint, "backbone": backbone, "rule": text}
    card["sha256"] = sha256_of(json.dumps(card, sort_keys=True).encode())
    shape = (fitted.n_vectors, fitted.rule.size or fitted.n_features)
    documents = _metadata((len(group), *shape), card)
    if not path.exists():
        partial = path.with_name(f"{path.name}.partial")
        with alone_in(partial, "reducing these tokens"):
            if not path.exists():
                with shown_progress(progress, "reducing tokens", "clip") as show:
                    _make(partial, group, fitted, documents, show)
                sync_tree(partial)
                partial.replace(path)
        sync(path.parent)
    for name, document in documents.items():
        try:
            stored = parse_json(read_bytes(path.joinpath(name, "zarr.json"), within=path))
        except (OSError, ObygazeError, ValueError):
            raise DatasetError(f"{path}: not a whole reduction of tokens: {ANEW}") from None
        if stored != document:  # it was made of something else
            raise DatasetError(f"{path} was not made of {backbone} of this store by {text}: {ANEW}")
    return ReducedTokens(path, text, group, shape)


def _make(
    folder: Path, group: Group, fitted: ReductionPlan, documents: dict[str, Any], show: ShowProgress
) -> None:
    """Reduce all clips into a folder."""
    empty(folder)  # of a stopped pass
    for name, document in documents.items():
        folder.joinpath(name).mkdir(parents=True, exist_ok=True)
        folder.joinpath(name, "zarr.json").write_bytes(json_bytes(document))
    n_rows, shape = min(ROWS, len(group)), documents[VALUES]["shape"][1:]
    block, places = np.full((n_rows, *shape), np.nan, "<f4"), np.zeros((n_rows, shape[0]), "<i4")
    for start, tokens in group.blocks("tokens"):
        for row, clip in enumerate(tokens, start=start):
            if group.usable[row]:
                block[row % ROWS], places[row % ROWS] = fitted.apply(clip)
                if not np.isfinite(block[row % ROWS]).all():
                    raise DatasetError(
                        f"backbone {group.name}, tokens of clip {group.clip_ids[row]}: "
                        "a token is not finite; run: obygaze store verify --full"
                    )
            if (row + 1) % ROWS == 0 or row + 1 == len(group):
                for name, chunk in ((VALUES, block), (POSITIONS, places)):
                    place = _chunk_place(folder, name, row // ROWS, chunk.ndim)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(with_checksum(chunk.tobytes()))
                block[:], places[:] = np.nan, 0
        show(start + len(tokens), len(group))


def _chunk_place(folder: Path, name: str, number: int, ndim: int) -> Path:
    return folder.joinpath(name, "c", str(number), *"0" * (ndim - 1))


def _metadata(shape: tuple[int, ...], card: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the metadata of the folder and its arrays: chunks of rows, each with a checksum."""
    node = {"zarr_format": 3, "attributes": {}}
    arrays = {
        name: {
            **node,
            "node_type": "array",
            "shape": list(own),
            "data_type": kind,
            "chunk_grid": {
                "name": "regular",
                "configuration": {"chunk_shape": [min(ROWS, own[0]), *own[1:]]},
            },
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": fill,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
            "dimension_names": ["clip", "vector", "feature"][: len(own)],
        }
        for name, own, kind, fill in (
            (VALUES, shape, "float32", "NaN"), (POSITIONS, shape[:2], "int32", 0)
        )
    }  # fmt: skip
    return {"": {**node, "node_type": "group", "attributes": {ATTRIBUTE: card}}, **arrays}
