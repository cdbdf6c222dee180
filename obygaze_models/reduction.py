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

from obygaze_features.errors import ObygazeError
from obygaze_features.io import whole_file
from obygaze_features.lines import encode_line
from obygaze_features.screen import Progress, ShowProgress, shown_progress
from obygaze_features.store import Group, Store
from obygaze_features.store.arrays import CRC_BYTES, read_row, row_view, with_checksum
from obygaze_features.text import is_address
from obygaze_features.untrusted import open_regular
from obygaze_models.blas import one_blas_thread
from obygaze_models.errors import DatasetError

REDUCED_SUFFIX: Final = ".reduced"
HOW_TO_REPAIR: Final = "remove it, and the next run makes it anew"
"""Ends the messages on a file that cannot be used."""

BYTES_OF_NUMBER: Final = 4
"""Size of a float32 or int32 of the file."""

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
            if match is not None:
                # A form without a group, or a group that is optional and left out, has no value here.
                fields: dict[str, Any] = match.groupdict()
                n = int(fields["n"]) if fields.get("n") else None
                size = int(fields["size"]) if fields.get("size") else None
                seed = int(fields["seed"]) if fields.get("seed") else 0
                keeps_something = n != 0 and size != 0
                if keeps_something:
                    return cls(fields.get("take", "all"), n, size, seed)
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
        """Number of vectors of a reduced clip, T'.

        For "mean" it is the number of time steps, for "top" that of tokens; a plan's rule always has it. A
        rule that only projects keeps every token except the class token.
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
        vectors, first_tokens = self._take(patches)
        if self.rule.size is not None:
            # Values that are not finite stay so without a warning: the caller looks for NaN.
            with one_blas_thread(), np.errstate(invalid="ignore"):
                vectors = vectors @ _projection_matrix(self.n_features, self.rule.size, self.rule.seed)
        if self.n_steps is None:  # time steps are unknown
            return vectors, first_tokens.astype(np.int32)
        # Tokens are in the order of time, as many in each step.
        tokens_per_step = len(patches) // self.n_steps
        time_steps = first_tokens // tokens_per_step
        return vectors, time_steps.astype(np.int32)

    def _take(self, patches: NDArray[np.float16]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
        """Reduce one clip's tokens to fewer vectors of the same length: means, the largest ones, or all.

        The means are those of successive tokens, as many in each.

        Parameters
        ----------
        patches : ndarray of float16, shape [number of tokens without class token, D]

        Returns
        -------
        vectors : ndarray of float32, shape [T', D]
        first_tokens : ndarray of int, shape [T']
            The index in `patches` of the first token of each vector.
        """
        if self.rule.take == "mean":
            tokens_per_mean = len(patches) // self.n_vectors
            first_tokens = np.arange(self.n_vectors) * tokens_per_mean
            return _step_means(patches, tokens_per_mean), first_tokens
        if self.rule.take == "top":
            return _largest_tokens(patches, self.n_vectors)
        return patches.astype(np.float32), np.arange(len(patches))


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
    _, n_tokens, n_features = group.shape("tokens")
    stated_steps = _stated_steps(group, rule)
    n_steps, n_class_tokens = _divide_into_steps(n_tokens, stated_steps)

    # A mean over each time step needs the steps; the other rules do without.
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
    return ReductionPlan(rule, n_tokens, n_features, n_class_tokens, n_steps)


def _stated_steps(group: Group, rule: TokenRule) -> int | None:
    """Return the number of time steps that a rule states or, if it does not, the store; None if neither does.

    A store states it by its array `frames`, which has one vector for each step.
    """
    if rule.take == "mean" and rule.n:
        return rule.n
    if "frames" in group.arrays and not group.ragged:
        return group.shape("frames")[1]
    return None


def _divide_into_steps(n_tokens: int, stated_steps: int | None) -> tuple[int | None, int]:
    """Return the numbers of time steps and of class tokens that make up a clip's tokens.

    All steps have equally many tokens, and one token may be left over, which is the class token. For
    instance, 3137 tokens in 16 steps are 196 tokens for each step, and a class token. If no number of steps
    is stated, or tokens can't be divided in this way, the numbers are None and 0.
    """
    unknown_steps = (None, 0)
    if stated_steps is None or stated_steps > n_tokens:
        return unknown_steps
    n_left_over = n_tokens % stated_steps
    if n_left_over > 1:
        return unknown_steps
    n_class_tokens = n_left_over
    return stated_steps, n_class_tokens


# --- arithmetic
# ---------------------------------------------------------------------------
_UNDO_SCALE = np.float32(2.0**112)
"""The values of `_scaled_tiles` times this are those of the tokens.

Both formats store an exponent plus a constant, float16 plus 15 and float32 plus 127: the bits of a float16,
moved to their places in a float32, mean a value 2^(127 - 15) times smaller."""
_FIRST_NOT_FINITE = np.float32(65536 / 2.0**112)
"""Scaled values of finite tokens are below this: 65536 is where infinity and NaN begin."""
_WITHOUT_SIGN_COPIES = np.int32(-0x70000001)
"""Bits 0x8FFFFFFF: all but the three copies of the sign that a shift puts between sign and exponent."""


def _scaled_tiles(tokens: NDArray[np.float16]) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Convert tokens [T, D] to float32, `TOKENS_OF_TILE` at a time; all values are multiplied by 2^-112.

    numpy's own conversion would take most of the time of a reduction. `_shift_bits` is three times as fast:
    it moves the bits of a float16 to their places in a float32. The exponents of the two types count from
    different zeros, 15 and 127, which makes the value 2^(127 - 15) times smaller: callers undo it by
    `_UNDO_SCALE`. A tile that has an infinite value or NaN is set to NaN as a whole.

    Yields
    ------
    slice
        The tokens of the tile.
    ndarray of float32, shape [tokens of the tile, D]
        Their values, in memory that the next tile overwrites.
    """
    # One array for all tiles, which so stays in a core's cache.
    memory = np.empty((TOKENS_OF_TILE, tokens.shape[1]), np.int32)
    for start in range(0, len(tokens), TOKENS_OF_TILE):
        tokens_of_tile = tokens[start : start + TOKENS_OF_TILE]
        bits = memory[: len(tokens_of_tile)]
        _shift_bits(tokens_of_tile, bits)
        values = bits.view(np.float32)  # the same memory, read as float32
        # Shifted bits of infinity and NaN are ordinary numbers, but larger than those of all finite values:
        # `_FIRST_NOT_FINITE` and more.
        is_finite = values.max() < _FIRST_NOT_FINITE and values.min() > -_FIRST_NOT_FINITE
        if not is_finite:
            values[:] = np.nan
        yield slice(start, start + len(tokens_of_tile)), values


def _shift_bits(values: NDArray[np.float16], bits: NDArray[np.int32]) -> None:
    """Write the bits of float16 values to the positions that they have in a float32.

    Read as float32, the result is the value times 2^-112, also for subnormal numbers: both formats are sign,
    exponent and fraction, and the exponent is stored plus 15 in a float16, plus 127 in a float32. The same
    stored exponent thus means a value 2^(127 - 15) times smaller. For instance::

        -1.5 in float16     1 01111    1000000000
        the result          1 00001111 10000000000000000000000     -1.5 times 2^-112 in float32

    Shifting integers is three times as fast as numpy's conversion: .65 ms against 2.3 ms for a clip of
    3,137 x 768 values.
    """
    # As integers of 32 bits, the values keep their sign: the upper 16 bits are copies of it.
    np.copyto(bits, values.view(np.int16))
    # A float16 has 10 bits of fraction, a float32 has 23: move the fraction and the exponent up by 13 bits.
    np.left_shift(bits, 13, out=bits)
    # Of the copies of the sign only the uppermost bit stays; the others are where the exponent begins.
    np.bitwise_and(bits, _WITHOUT_SIGN_COPIES, out=bits)


def _step_means(patches: NDArray[np.float16], tokens_per_step: int) -> NDArray[np.float32]:
    """Compute the mean of the tokens of each time step: [T, D] -> [T', D], with T = T' * `tokens_per_step`.

    Tokens are in the order of time, so that those of a step follow each other. For speed, `_scaled_tiles`
    converts them to float32 by moving their bits, which makes all values 2^112 times smaller: these are
    summed, and the sums multiplied by 2^112 (`_UNDO_SCALE`). It converts a tile of them at a time, which fits
    into a core's cache.
    """
    n_steps = len(patches) // tokens_per_step
    scaled_sums = np.zeros((n_steps, patches.shape[1]), np.float32)
    for step in range(n_steps):
        first_token = step * tokens_per_step
        tokens_of_step = patches[first_token : first_token + tokens_per_step]
        for _, scaled_tile in _scaled_tiles(tokens_of_step):
            scaled_sums[step] += scaled_tile.sum(axis=0)
    # In one multiplication: undo the scale of the sums, and divide them by the number of tokens.
    factor = _UNDO_SCALE / np.float32(tokens_per_step)
    return scaled_sums * factor


def _largest_tokens(
    patches: NDArray[np.float16], n_tokens: int
) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Select the tokens with the largest norms, in their order: vectors [T', D] and their indices [T'].

    All vectors are NaN if the norm of a token is not finite, as NaN can't be sorted by size.
    """
    squared_norms = _squared_norms(patches)
    largest_first = np.argsort(-squared_norms, kind="stable")
    indices = np.sort(largest_first[:n_tokens])
    vectors = patches[indices].astype(np.float32)
    if not np.isfinite(squared_norms).all():
        vectors[:] = np.nan
    return vectors, indices


def _squared_norms(patches: NDArray[np.float16]) -> NDArray[np.float32]:
    """Compute the squared Euclidean norm of each token: [T, D] -> [T].

    Tokens are converted to float32 a tile at a time, in a fast way that makes all values 2^112 times smaller
    (`_scaled_tiles`).
    """
    squared_norms = np.empty(len(patches), np.float32)
    for rows, scaled_tile in _scaled_tiles(patches):
        # The squares of such small values would be 0 in float32, so that they are multiplied by 2^112 first.
        # This is done in place, as the next tile overwrites the memory in any case.
        values = np.multiply(scaled_tile, _UNDO_SCALE, out=scaled_tile)
        np.einsum("td,td->t", values, values, out=squared_norms[rows])
    return squared_norms


@lru_cache(maxsize=1)  # the same matrix for all clips
def _projection_matrix(width: int, size: int, seed: int) -> NDArray[np.float32]:
    """Draw the matrix of a Gaussian random projection from `width` to `size` dimensions [D, D'].

    Its entries are normal with the variance 1 / `size`, which keeps the lengths of vectors on average. The
    matrix cannot be written to, since all callers share it.
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
        return n_vectors * n_dimensions * BYTES_OF_NUMBER + CRC_BYTES

    @property
    def _bytes_of_row(self) -> int:
        """Bytes of the row of one clip: its vectors and its time steps, each with a checksum."""
        bytes_of_time_steps = self.plan.n_vectors * BYTES_OF_NUMBER + CRC_BYTES
        return self._bytes_of_vectors + bytes_of_time_steps

    @property
    def rule(self) -> str:
        """The rule by which tokens were reduced, as text, such as "mean+project:256:0".

        It states the number of time steps where the rule depends on it, also if the user left it open: the
        plan has found it in the store.
        """
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
        # Without a whole number of frames for each step, it is not known which frames a step is of.
        if n_steps is None or self.group.ragged or self.group.n_frames % n_steps:
            return np.full((len(rows), n_vectors), np.nan)

        step_of_vector = np.empty((len(rows), n_vectors), "<i4")  # little-endian int32
        self._fill_from_file(step_of_vector, rows, offset_in_row=self._bytes_of_vectors)
        is_invalid = (step_of_vector < 0) | (step_of_vector >= n_steps)
        if is_invalid.any():
            raise DatasetError(f"{self.path} is damaged (a time step that is none): {HOW_TO_REPAIR}")

        # The frames of a step follow each other: [N, steps, frames of a step].
        frame_times = self.group.time_s[rows].reshape(len(rows), n_steps, -1)
        step_times = frame_times.mean(axis=2)
        return np.take_along_axis(step_times, step_of_vector.astype(np.intp), axis=1)

    def _fill_from_file(
        self, array: NDArray[Any], rows: NDArray[np.intp], offset_in_row: int
    ) -> NDArray[Any]:
        """Read values of clips from the file: those of clip `rows[i]` into `array[i]`; return the array.

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
                        # The error that is raised below for it names the file.
                        raise DatasetError(f"clip {self.group.clip_ids[row]}")
        except (OSError, ObygazeError) as error:
            raise DatasetError(f"{self.path} is damaged ({error}): {HOW_TO_REPAIR}") from None
        return array


def reduce_tokens(
    store: Store, backbone: str, rule: str, *, progress: Progress | bool | None = None
) -> ReducedTokens:
    """Reduce the tokens of a store in one pass, or open the file in which an earlier call stored them.

    Tokens can take far more room than memory has, and every fit reads them again, so they are reduced once.
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
    if is_address(store.where):
        raise DatasetError(
            f"{store.where}: tokens are reduced beside a store: pull it first (obygaze store pull)"
        )

    # The first line says of what the file was made: a file that begins otherwise is not opened.
    path = _path_of_reduction(store, backbone, plan.rule)
    shape = [len(group), *plan.shape]
    first_line = encode_line(
        {"store": store.fingerprint, "backbone": backbone, "rule": str(plan.rule), "shape": shape}
    )
    if not path.exists():
        with shown_progress(progress, "reducing tokens", "clip") as show, whole_file(path) as partial:
            _write_reduced_tokens(partial, first_line, group, plan, show)

    # The file may be an earlier call's, of which only the name is known so far.
    try:
        with open_regular(path) as file:
            actual_first_line = file.read(len(first_line))
    except (OSError, ObygazeError):
        raise DatasetError(f"{path}: not a whole reduction of tokens: {HOW_TO_REPAIR}") from None
    if actual_first_line != first_line:
        raise DatasetError(f"{path} was not made of {backbone} of this store by {plan.rule}: {HOW_TO_REPAIR}")
    return ReducedTokens(path, plan, group, start=len(first_line))


def _path_of_reduction(store: Store, backbone: str, rule: TokenRule) -> Path:
    """Return the path of the file, beside a store, that holds its tokens of a backbone, reduced by a rule.

    For the rule mean+project:256:0 it is ``STORE.BACKBONE.mean_project-256-0.reduced``: not every system
    allows ":" in names.
    """
    store_path = Path(store.where)
    rule_in_name = str(rule).replace(":", "-").replace("+", "_")
    return store_path.with_name(f"{store_path.name}.{backbone}.{rule_in_name}{REDUCED_SUFFIX}")


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
    # For clips without features.
    no_vectors = np.full(plan.shape, np.nan, np.float32)
    no_positions = np.zeros(plan.n_vectors, np.int32)
    with path.open("wb") as file:
        file.write(first_line)
        for start, tokens_of_block in group.blocks("tokens"):
            for row, tokens in enumerate(tokens_of_block, start=start):
                vectors, positions = no_vectors, no_positions
                if group.usable[row]:
                    vectors, positions = plan.apply(tokens)
                    # If a token is not finite, some of the vectors are NaN.
                    if not np.isfinite(vectors).all():
                        raise DatasetError(
                            f"backbone {group.name}, tokens of clip {group.clip_ids[row]}: "
                            "a token is not finite; run: obygaze store verify --full"
                        )
                file.write(with_checksum(row_view(vectors)))
                file.write(with_checksum(row_view(positions)))
            show(start + len(tokens_of_block), len(group))
