"""Reduce a store's tokens by a rule to a small file beside the store, in one pass and bounded memory.

A rule is text: ``mean`` (over the patches of each frame or tubelet), ``top:K`` (the K tokens of the largest
norm), ``project:SIZE:SEED`` (a Gaussian random projection; Johnson and Lindenstrauss 1984), or one of the
first two, a plus sign and the third. The class token, where there is one, is left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from obygaze_features.door import open_regular
from obygaze_features.errors import ObygazeError
from obygaze_features.io import whole_file
from obygaze_features.lines import encode_line
from obygaze_features.screen import Progress, ShowProgress, shown_progress
from obygaze_features.store import Group, Store
from obygaze_features.store.arrays import CRC_BYTES, read_row, row_view, with_checksum
from obygaze_models.blas import one_blas_thread
from obygaze_models.errors import DatasetError

REDUCED_SUFFIX: Final = ".reduced"
HOW_TO_REPAIR: Final = "remove it, and the next run makes it anew"
"""Ends the messages on a file that cannot be used."""

TOKENS_OF_TILE = 200
"""Tokens converted at once, which fit a core's second cache."""

GRAMMAR = "mean, mean:STEPS, top:K, project:SIZE, project:SIZE:SEED, or mean+project:SIZE, top:K+project:SIZE"
_MEAN = r"(?P<take>mean)(:(?P<n>\d{1,6}))?"
_TOP = r"(?P<take>top):(?P<n>\d{1,6})"
_PROJECT = r"project:(?P<size>\d{1,6})(:(?P<seed>\d{1,9}))?"
_FORMS = (_MEAN, _TOP, _PROJECT, rf"{_MEAN}\+{_PROJECT}", rf"{_TOP}\+{_PROJECT}")
_RULES = tuple(re.compile(form) for form in _FORMS)
"""The forms of a rule, as `GRAMMAR` lists them."""

# --- rules
# ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TokenRule:
    """A rule by which a clip's tokens are reduced to fewer or shorter vectors.

    Attributes
    ----------
    take : {"all", "mean", "top"}
        Keep all tokens, the mean of each time step's tokens, or the `n` tokens with the largest norms, in
        their order.
    n : int, optional
        For "mean" the number of time steps (None: as many as the store has `frames`); for "top" the number of
        tokens.
    size : int, optional
        Dimensions of the random projection; None for no projection.
    seed : int
        Seed of the projection.
    """

    take: Literal["all", "mean", "top"]
    n: int | None = None
    size: int | None = None
    seed: int = 0

    @classmethod
    def parse(cls, text: str) -> "TokenRule":
        """Read a rule from its text, such as ``mean:16``, ``top:64`` or ``mean+project:256:0``.

        Raises
        ------
        DatasetError
            The text is not a rule (see `GRAMMAR`).
        """
        for form in _RULES:
            match = form.fullmatch(text)
            if match is None:
                continue
            fields: dict[str, Any] = match.groupdict()
            n = int(fields["n"]) if fields.get("n") else None
            size = int(fields["size"]) if fields.get("size") else None
            seed = int(fields.get("seed") or 0)
            has_zero = n == 0 or size == 0
            if has_zero:
                # 0 tokens or numbers are none: the text is refused below.
                continue
            return cls(fields.get("take", "all"), n, size, seed=seed)
        raise DatasetError(f"{text!r} is no rule to reduce tokens by: expected {GRAMMAR}")

    def __str__(self) -> str:
        """Write the rule as text that `parse` reads."""
        parts = []
        if self.take != "all":
            parts.append(self.take if self.n is None else f"{self.take}:{self.n}")
        if self.size is not None:
            parts.append(f"project:{self.size}:{self.seed}")
        return "+".join(parts)


@dataclass(frozen=True, slots=True)
class ReductionPlan:
    """A rule applied to one group's tokens.

    Attributes
    ----------
    rule : TokenRule
        The rule, with the number of time steps filled in.
    n_tokens, n_features : int
        T and D of a clip's tokens.
    n_class_tokens : int
        1 if the first token is a class token, which is left out; otherwise 0.
    n_steps : int, optional
        Number of time steps of the other tokens, which are ordered by time; None if it is not known.
    """

    rule: TokenRule
    n_tokens: int
    n_features: int
    n_class_tokens: int
    n_steps: int | None

    @property
    def n_vectors(self) -> int:
        """Count the vectors of a reduced clip.

        A rule that only projects keeps every token except the class token. The other rules always have a
        number here: time steps for "mean", tokens for "top".
        """
        if self.rule.n is not None:
            return self.rule.n
        return self.n_tokens - self.n_class_tokens

    @property
    def shape(self) -> tuple[int, int]:
        """Number of the vectors of a reduced clip, and their dimensions: [T', D']."""
        n_dimensions = self.n_features if self.rule.size is None else self.rule.size
        return self.n_vectors, n_dimensions

    def apply(self, tokens: NDArray[np.float16]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Reduce one clip's tokens by the rule, to vectors and their time steps.

        Parameters
        ----------
        tokens : ndarray of float16, shape [T, D]
            All tokens of the clip, a class token included.

        Returns
        -------
        vectors : ndarray of float32, shape [T', D']
            At least one of them is NaN if a token is not finite.
        positions : ndarray of int32, shape [T']
            The time step of each vector. If time steps are unknown, it is the index of the vector's first
            token, not counting a class token.
        """
        patches = tokens[self.n_class_tokens :]
        # The index of each vector's first token comes first, and is turned into its time step at the end.
        if self.rule.take == "mean":
            tokens_per_mean = len(patches) // self.n_vectors
            vectors = _step_means(patches, tokens_per_mean)
            first_tokens = np.arange(self.n_vectors) * tokens_per_mean
        elif self.rule.take == "top":
            vectors, first_tokens = _largest_tokens(patches, self.n_vectors)
        else:
            vectors = patches.astype(np.float32)
            first_tokens = np.arange(len(patches))
        if self.rule.size is not None:
            # Values that are not finite are found by the caller.
            with one_blas_thread(), np.errstate(invalid="ignore"):
                vectors = vectors @ _projection_matrix(self.n_features, self.rule.size, self.rule.seed)
        if self.n_steps is None:
            return vectors, first_tokens.astype(np.int32)
        tokens_per_step = len(patches) // self.n_steps
        return vectors, (first_tokens // tokens_per_step).astype(np.int32)


def plan_reduction(group: Group, rule: TokenRule) -> ReductionPlan:
    """Find out how a rule applies to a group's tokens: whether there is a class token, and the time steps.

    Parameters
    ----------
    group : Group
        The features of one backbone in a store.
    rule : TokenRule

    Returns
    -------
    ReductionPlan
        The rule with its number of time steps filled in, and the numbers of tokens, features and time steps.

    Raises
    ------
    DatasetError
        The group has no tokens; or fewer than the rule keeps; or they can't be divided into time steps.
    """
    if "tokens" not in group.arrays:
        raise DatasetError(
            f"backbone {group.name} has no tokens in this store to reduce by {rule}, "
            f"but {', '.join(group.arrays)}"
        )
    _, n_tokens, width = group.shape("tokens")
    stated_steps = _stated_steps(group, rule)
    n_steps, n_class_tokens = _divide_into_steps(n_tokens, stated_steps)
    if rule.take == "mean":
        if stated_steps is None:
            raise DatasetError(
                f"backbone {group.name} has no frames in this store to tell which of its {n_tokens} tokens "
                "belong together in time: give their number of time steps, as in mean:16"
            )
        if n_steps is None:
            raise DatasetError(
                f"backbone {group.name}: {n_tokens} tokens are not {stated_steps} time steps of equally "
                "many, with or without a class token: give another number of steps, as in mean:16"
            )
        rule = replace(rule, n=stated_steps)
    n_patches = n_tokens - n_class_tokens
    if rule.n is not None and rule.n > n_patches:
        raise DatasetError(f"backbone {group.name}: {rule} of {n_patches} tokens: give fewer")
    return ReductionPlan(rule, n_tokens, width, n_class_tokens, n_steps)


def _stated_steps(group: Group, rule: TokenRule) -> int | None:
    """Return the number of time steps that a rule, or else the store, states; None if neither does."""
    if rule.take == "mean" and rule.n:
        return rule.n
    if "frames" in group.arrays and not group.ragged:
        return group.shape("frames")[1]
    return None


def _divide_into_steps(n_tokens: int, stated_steps: int | None) -> tuple[int | None, int]:
    """Return the numbers of time steps and of class tokens that make up a clip's tokens.

    For instance, 3137 tokens in 16 steps are 196 tokens for each step, and one more: a class token. The
    number of steps is None if no number is stated or tokens cannot be divided in this way.
    """
    if stated_steps is None or stated_steps > n_tokens:
        return None, 0
    n_left_over = n_tokens % stated_steps
    if n_left_over > 1:
        return None, 0
    return stated_steps, n_left_over


# --- arithmetic
# ---------------------------------------------------------------------------
_UNDO_SCALE = np.float32(2.0**112)
"""By this the values of `_scaled_tiles` are multiplied, to be those of the tokens.

A float16's exponent has a bias of 15, a float32's of 127: the same bits are 2^-112 times as large."""
_FIRST_NOT_FINITE = np.float32(65536 / 2.0**112)
"""Scaled values of finite tokens are below this: 65536 is where infinity and NaN begin."""
_WITHOUT_SIGN_COPIES = np.int32(-0x70000001)
"""Bits 0x8FFFFFFF: all but the three copies of the sign that a shift puts between sign and exponent."""


def _scaled_tiles(tokens: NDArray[np.float16]) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Convert tokens [T, D] to float32, `TOKENS_OF_TILE` at a time; all values are multiplied by 2^-112.

    The factor comes from a fast conversion of the bits (`_shift_bits`). It also turns infinity and NaN into
    ordinary numbers, which are larger than any converted finite value. A tile in which one value was not
    finite is therefore set to NaN.

    Yields
    ------
    slice
        The tokens of the tile.
    ndarray of float32, shape [tokens of the tile, D]
        Their values, in memory that the next tile overwrites.
    """
    memory = np.empty((TOKENS_OF_TILE, tokens.shape[1]), np.int32)
    for start in range(0, len(tokens), TOKENS_OF_TILE):
        part = tokens[start : start + TOKENS_OF_TILE]
        bits = memory[: len(part)]
        _shift_bits(part, bits)
        values = bits.view(np.float32)  # the same memory, read as float32
        is_finite = values.max() < _FIRST_NOT_FINITE and values.min() > -_FIRST_NOT_FINITE
        if not is_finite:
            values[:] = np.nan
        yield slice(start, start + len(part)), values


def _shift_bits(values: NDArray[np.float16], bits: NDArray[np.int32]) -> None:
    """Write the bits of float16 values to the positions that they have in a float32.

    Read as float32, the result is the value times 2^-112, also for subnormal numbers: both formats are sign,
    exponent and fraction, and the exponent is stored plus 15 in a float16, plus 127 in a float32. The same
    stored exponent thus means a value 2^(127 - 15) times smaller. For instance::

        -1.5 in float16     1 01111    1000000000
        the result          1 00001111 10000000000000000000000     -1.5 times 2^-112 in float32

    Shifting integers is three times as fast as numpy's conversion [a clip of 3,137 x 768: .65 ms, 2.3 ms].
    """
    # As integers of 32 bits, the values keep their sign: the upper 16 bits are copies of it.
    np.copyto(bits, values.view(np.int16))
    # A float16 has 10 bits of fraction, a float32 has 23: move the fraction and the exponent up by 13 bits.
    np.left_shift(bits, 13, out=bits)
    # Of the copies of the sign only the uppermost bit stays; the others are where the exponent begins.
    np.bitwise_and(bits, _WITHOUT_SIGN_COPIES, out=bits)


def _step_means(patches: NDArray[np.float16], per_step: int) -> NDArray[np.float32]:
    """Compute the mean of the tokens of each time step: [T, D] -> [T', D], with T = T' * `per_step`."""
    n_steps = len(patches) // per_step
    scaled_sums = np.zeros((n_steps, patches.shape[1]), np.float32)
    for step in range(n_steps):
        tokens_of_step = patches[step * per_step : (step + 1) * per_step]
        for _, scaled_tile in _scaled_tiles(tokens_of_step):
            scaled_sums[step] += scaled_tile.sum(axis=0)
    # The scale of the tiles is undone once, for the sums.
    sums_to_means = _UNDO_SCALE / np.float32(per_step)
    return scaled_sums * sums_to_means


def _largest_tokens(
    patches: NDArray[np.float16], n_tokens: int
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Select the tokens with the largest norms, in their order: vectors [T', D] and their indices [T'].

    The vectors are NaN if a norm is not finite, as such norms have no order.
    """
    norms = _squared_norms(patches)
    by_decreasing_norm = np.argsort(-norms, kind="stable")
    indices = np.sort(by_decreasing_norm[:n_tokens])
    vectors = patches[indices].astype(np.float32)
    if not np.isfinite(norms).all():
        vectors[:] = np.nan
    return vectors, indices


def _squared_norms(patches: NDArray[np.float16]) -> NDArray[np.float32]:
    """Compute the squared Euclidean norm of each token: [T, D] -> [T]."""
    norms = np.empty(len(patches), np.float32)
    for rows, scaled_tile in _scaled_tiles(patches):
        # In place, since the next tile overwrites this memory anyway. Scaled values are so small that their
        # squares would be 0 in float32.
        values = np.multiply(scaled_tile, _UNDO_SCALE, out=scaled_tile)
        np.einsum("td,td->t", values, values, out=norms[rows])
    return norms


@lru_cache(maxsize=1)  # every clip of a pass takes the same
def _projection_matrix(width: int, size: int, seed: int) -> NDArray[np.float32]:
    """Draw the matrix of a Gaussian random projection from `width` to `size` dimensions [D, D'].

    Its scale keeps the lengths of vectors on average.
    """
    drawn = np.random.default_rng(seed).standard_normal((width, size), dtype=np.float32)
    drawn /= np.float32(np.sqrt(size))
    drawn.flags.writeable = False
    return drawn


# --- the file beside a store
# ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class ReducedTokens:
    """The reduced tokens of one group of a store.

    Attributes
    ----------
    path : Path
        The file beside the store.
    plan : ReductionPlan
    group : Group
        The group whose tokens were reduced; row i of the file is of its clip i.
    start : int
        Number of bytes before the first row of the file. A row has the vectors as float32, then the time
        steps as int32, little-endian, each followed by a checksum.
    """

    path: Path
    plan: ReductionPlan
    group: Group
    start: int

    @property
    def _bytes_of_vectors(self) -> int:
        """Bytes of the vectors of one clip, with their checksum."""
        n_vectors, n_dimensions = self.plan.shape
        return 4 * n_vectors * n_dimensions + CRC_BYTES

    @property
    def _bytes_of_row(self) -> int:
        """Bytes of the row of one clip: its vectors, and their time steps."""
        return self._bytes_of_vectors + 4 * self.plan.n_vectors + CRC_BYTES

    @property
    def rule(self) -> str:
        """The rule as text, with the number of time steps filled in."""
        return str(self.plan.rule)

    def read(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Read the reduced vectors of the clips of some rows of the group [N, T', D'].

        Raises
        ------
        DatasetError
            The file's bytes are damaged.
        """
        vectors = np.empty((len(rows), *self.plan.shape), "<f4")  # little-endian float32
        return self._fill_from_file(vectors, rows, offset_in_row=0)

    def time_s(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Compute the time in seconds of each vector of some clips [N, T']: the mean of its step's frames.

        NaN if the tokens' time steps are not known.
        """
        n_steps = self.plan.n_steps
        n_vectors = self.plan.n_vectors
        # The frames must be a whole number for each step.
        if n_steps is None or self.group.ragged or self.group.n_frames % n_steps:
            return np.full((len(rows), n_vectors), np.nan)
        step_of = np.empty((len(rows), n_vectors), "<i4")  # little-endian int32
        self._fill_from_file(step_of, rows, offset_in_row=self._bytes_of_vectors)
        if ((step_of < 0) | (step_of >= n_steps)).any():
            raise DatasetError(f"{self.path} is damaged (a time step that is none): {HOW_TO_REPAIR}")
        step_times = self.group.time_s[rows].reshape(len(rows), n_steps, -1).mean(axis=2)
        return np.take_along_axis(step_times, step_of.astype(np.intp), axis=1)

    def _fill_from_file(
        self, array: NDArray[Any], rows: NDArray[np.intp], offset_in_row: int
    ) -> NDArray[Any]:
        """Read into `array[i]` what the file stores of clip `rows[i]`, and return the array.

        Parameters
        ----------
        array : ndarray
            Has one entry for each clip, whose type and shape are those of the values to read.
        rows : ndarray of int, shape [N]
            The clips.
        offset_in_row : int
            Number of bytes in a clip's row before the values to read.

        Raises
        ------
        DatasetError
            The file can't be read, or a checksum does not match.
        """
        try:
            with open_regular(self.path) as file:
                for row, values in zip(rows.tolist(), array, strict=True):
                    offset = self.start + row * self._bytes_of_row + offset_in_row
                    has_right_checksum = read_row(file, offset, row_view(values))
                    if not has_right_checksum:
                        raise DatasetError(f"clip {self.group.clip_ids[row]}")
        except (OSError, ObygazeError) as error:
            raise DatasetError(f"{self.path} is damaged ({error}): {HOW_TO_REPAIR}") from None
        return array


def reduce_tokens(
    store: Store, backbone: str, rule: str, *, progress: Progress | bool | None = None
) -> ReducedTokens:
    """Reduce the tokens of a store in one pass, or open the file in which an earlier call stored them.

    The file is ``STORE.BACKBONE.RULE.reduced``, in the folder that the store is in. Its first line states the
    store's fingerprint and the rule; then come each clip's vectors and their time steps, each with a
    checksum. The file gets its name when it is complete; after an interruption the pass begins anew.

    Parameters
    ----------
    store : Store
        A folder or a zip file. One shard at a time is read into memory.
    backbone : str
    rule : str
        Text of a rule (`TokenRule`).
    progress : callable, optional
        Called with the numbers of clips done and of all.

    Raises
    ------
    DatasetError
        There is no such rule; or it does not fit the tokens; or the store is on a server; or the file is of
        another store, or damaged.
    """
    group = store[backbone]
    plan = plan_reduction(group, TokenRule.parse(rule))
    if "://" in store.where:
        raise DatasetError(
            f"{store.where}: tokens are reduced beside a store: pull it first (obygaze store pull)"
        )
    text = str(plan.rule)
    rule_in_file_name = text.replace(":", "-").replace("+", "_")
    store_path = Path(store.where)
    path = store_path.with_name(f"{store_path.name}.{backbone}.{rule_in_file_name}{REDUCED_SUFFIX}")
    shape = [len(group), *plan.shape]
    first_line = encode_line({"store": store.fingerprint, "backbone": backbone, "rule": text, "shape": shape})
    if not path.exists():
        with shown_progress(progress, "reducing tokens", "clip") as show, whole_file(path) as partial:
            _write_reduced_tokens(partial, first_line, group, plan, show)
    try:
        with open_regular(path) as file:
            found = file.read(len(first_line))
    except (OSError, ObygazeError):
        raise DatasetError(f"{path}: not a whole reduction of tokens: {HOW_TO_REPAIR}") from None
    if found != first_line:
        raise DatasetError(f"{path} was not made of {backbone} of this store by {text}: {HOW_TO_REPAIR}")
    return ReducedTokens(path, plan, group, start=len(first_line))


def _write_reduced_tokens(
    path: Path, first_line: bytes, group: Group, plan: ReductionPlan, show: ShowProgress
) -> None:
    """Reduce the tokens of all clips of a group and write the file that `ReducedTokens` reads.

    Parameters
    ----------
    path : Path
    first_line : bytes
    group : Group
        Clips without features get vectors of NaN.
    plan : ReductionPlan
    show : callable
        Called with the numbers of clips done and of all.

    Raises
    ------
    DatasetError
        A token is not finite.
    """
    no_vectors = np.full(plan.shape, np.nan, np.float32)
    no_positions = np.zeros(plan.n_vectors, np.int32)
    with path.open("wb") as file:
        file.write(first_line)
        for start, tokens in group.blocks("tokens"):
            for row, clip in enumerate(tokens, start=start):
                vectors = no_vectors
                positions = no_positions
                if group.usable[row]:
                    vectors, positions = plan.apply(clip)
                    if not np.isfinite(vectors).all():
                        raise DatasetError(
                            f"backbone {group.name}, tokens of clip {group.clip_ids[row]}: "
                            "a token is not finite; run: obygaze store verify --full"
                        )
                file.write(with_checksum(row_view(vectors)))
                file.write(with_checksum(row_view(positions)))
            show(start + len(tokens), len(group))
