"""Compare signatures of pictures: signs of differences between neighbouring cells of a frame."""

from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MIN_FRAMES = 4
"""Least number of frames that show something; clips with fewer are not compared."""

SHIFTS = range(-3, 4)
"""Numbers of frames by which one clip may be later than the other."""

CLIPS_AT_ONCE = 64
"""Number of clips whose cosines are ranked at a time, so that they stay in the processor's cache."""

CELLS = 12
"""Number of cells across and down into which a frame is divided."""
SIGNS = 2 * CELLS * (CELLS - 1)
"""Number of signs of a view: of the [12, 11] differences across, then of the [11, 12] differences down."""
Signs = NDArray[np.int8]
Floats = NDArray[np.float32]


@np.errstate()
def likeness(a: Signs, inverse_lengths_a: Floats, b: Signs, inverse_lengths_b: Floats) -> Floats:
    """Compute how alike clips are to others in one view: 1 for clips with the same frames.

    The frames of two clips are compared at equal positions, and shifted against each other by `SHIFTS`. The
    cosine of two frames is their product divided by their lengths.

    Parameters
    ----------
    a, b
        Signatures [n, F, 264] and [m, F, 264].
    inverse_lengths_a, inverse_lengths_b
        1 / the length of each frame, [n, F] and [m, F]; NaN for frames that show too little.

    Returns
    -------
    ndarray
        Shape [n, m]: for each pair of clips, the median of the cosines of their frames, at the shift at
        which it is largest. Frames that show too little do not count. -1 if fewer than `MIN_FRAMES` frames
        of both can be compared.
    """
    # To scale products, numpy copies the factors to a buffer of its own first, which takes as long as the
    # products if the buffer is large. So it is made small here: numpy counts its size as a part of the
    # settings that `errstate` restores when the function returns.
    np.setbufsize(16)

    # Frame by frame, for products of all clips at once.
    frames_a = a.transpose(1, 0, 2).astype(np.float32, order="C")  # [F, n, 264]
    frames_b = b.transpose(1, 2, 0).astype(np.float32, order="C")  # [F, 264, m]
    factors_a = np.ascontiguousarray(inverse_lengths_a.T)  # [F, n]
    factors_b = np.ascontiguousarray(inverse_lengths_b.T)  # [F, m]

    is_shown_a = ~np.isnan(inverse_lengths_a)
    is_shown_b = ~np.isnan(inverse_lengths_b)
    are_all_shown = bool(is_shown_a.all() and is_shown_b.all())

    n_frames = len(frames_a)
    best = np.full((len(a), len(b)), np.float32(-1))
    cosines_of_shift = np.empty((n_frames, *best.shape), np.float32)  # one array for all shifts
    for shift in SHIFTS:
        compared = _compared_frames(n_frames, shift)  # slices of the frames of both clips
        if compared.n_frames < MIN_FRAMES:
            continue
        n_shown = None  # [n, m], the compared frames that both clips show; None if these are all
        if not are_all_shown:
            n_shown = is_shown_a[:, compared.a].astype(np.float32) @ is_shown_b[:, compared.b].T
            if n_shown.max(initial=0) < MIN_FRAMES:
                continue
        cosines = cosines_of_shift[: compared.n_frames]
        _fill_in_cosines(
            cosines, frames_a[compared.a], factors_a[compared.a], frames_b[compared.b], factors_b[compared.b]
        )
        _raise_to_medians(best, cosines, n_shown)  # changes `best` in place
    return best


class _ComparedFrames(NamedTuple):
    """The frames of two clips that are compared: `a` of the one with `b` of the other, as many of each."""

    a: slice
    b: slice
    n_frames: int


def _compared_frames(n_frames: int, shift: int) -> _ComparedFrames:
    """Return which frames are compared if frame k of a clip is compared with frame k + shift of the other.

    Frames that have no partner are left out: of 8 frames with a shift of 1, 0 to 6 are compared with 1 to 7.
    """
    n_compared = n_frames - abs(shift)
    first_a = max(0, -shift)
    first_b = first_a + shift
    return _ComparedFrames(
        a=slice(first_a, first_a + n_compared),
        b=slice(first_b, first_b + n_compared),
        n_frames=n_compared,
    )


def _fill_in_cosines(
    cosines: Floats, frames_a: Floats, factors_a: Floats, frames_b: Floats, factors_b: Floats
) -> None:
    """Compute the cosines of frames with frames of other clips at the same position.

    The cosine of two vectors is a * b / (|a| |b|). It is NaN where a frame shows too little, since then
    1 / its length is NaN.

    Parameters
    ----------
    cosines
        Array [F, n, m], which is filled in.
    frames_a, factors_a
        Frames of clips, [F, n, 264], and 1 / their lengths, [F, n]; NaN for frames that show too little.
    frames_b, factors_b
        The same of the other clips, [F, 264, m] and [F, m].
    """
    # Position by position, so that each table of products is scaled while it is in the cache.
    for position, cosine in enumerate(cosines):
        # Signs are whole numbers, so that sums of their products are exact in any order.
        np.matmul(frames_a[position], frames_b[position], out=cosine)  # a * b
        np.multiply(cosine, factors_a[position][:, None], out=cosine)  # / |a|, by row
        np.multiply(cosine, factors_b[position], out=cosine)  # / |b|, by column


def _raise_to_medians(best: Floats, cosines: Floats, n_shown: Floats | None) -> None:
    """Raise the likeness of clips to the median of their frames' cosines where that is larger.

    The median is the mean of the two cosines in the middle of their order. Which ranks these have depends on
    how many cosines of a pair are not NaN. So for all pairs at once, the cosines of every rank that is in the
    middle for some possible number are determined, and each pair takes those of its number.

    Parameters
    ----------
    best
        Largest likeness of each pair of clips so far, [n, m], which is changed.
    cosines
        Cosines of the compared frames, [frames, n, m], in which NaNs are overwritten. NaN if a frame shows
        too little.
    n_shown
        Number of cosines of each pair that are not NaN, [n, m]; None if no cosine is NaN. Pairs with fewer
        than `MIN_FRAMES` are left out.
    """
    # How many cosines of a pair may not be NaN: all, if none is; else as few as are enough, and more.
    possible_counts = [len(cosines)]
    if n_shown is not None:
        possible_counts = [*range(MIN_FRAMES, len(cosines) + 1)]
        np.copyto(cosines, np.inf, where=np.isnan(cosines))  # so that they are sorted to the end
    needed_ranks = frozenset(chain.from_iterable(map(_middle_ranks, possible_counts)))

    for start in range(0, len(best), CLIPS_AT_ONCE):
        clips = slice(start, start + CLIPS_AT_ONCE)
        best_of_clips = best[clips]  # a view: what is written to it is in `best`
        cosines_of_frames = list(cosines[:, clips])  # an array [clips, m] for each frame
        cosines_by_rank = _select_ranks(cosines_of_frames, needed_ranks)
        for count in possible_counts:
            lower, upper = _middle_ranks(count)
            median = (cosines_by_rank[lower] + cosines_by_rank[upper]) / 2
            if n_shown is None:
                np.maximum(best_of_clips, median, out=best_of_clips)
            else:
                has_count = n_shown[clips] == count
                np.maximum(best_of_clips, median, out=best_of_clips, where=has_count)


def _middle_ranks(count: int) -> tuple[int, int]:
    """Return the ranks, from 0, of the two numbers whose mean is the median: 2 and 3 of 6, twice 2 of 5."""
    return (count - 1) // 2, count // 2


def _select_ranks(arrays: list[Floats], ranks: frozenset[int]) -> list[Floats]:
    """Sort several arrays elementwise, so that array k holds the k-th smallest element of each position.

    Only the arrays of the ranks k that are needed are right in the result; the others hold anything. It is
    done in steps that compare two arrays as wholes, which is much faster than to sort the elements of each
    position.

    Parameters
    ----------
    arrays
        Arrays of the same shape. They are overwritten, and the list is changed.
    ranks
        The ranks k that are needed, 0 for the smallest.

    Returns
    -------
    list of ndarray
        The same list.
    """
    spare = np.empty_like(arrays[0])
    for i, j in _needed_exchanges(len(arrays), ranks):
        # The smaller elements of arrays i and j become array i, the larger ones array j. Both are still read
        # for the larger ones, so that the smaller ones are written to a spare array. It takes the place of
        # array i, which is the spare one of the next step.
        former = arrays[i]
        smaller = np.minimum(former, arrays[j], out=spare)
        np.maximum(former, arrays[j], out=arrays[j])
        arrays[i] = smaller
        spare = former
    return arrays


@cache
def _needed_exchanges(n: int, ranks: frozenset[int]) -> list[tuple[int, int]]:
    """List the steps by which n elements are sorted, without those that the wanted ranks do not depend on.

    A step (i, j) puts the smaller of two elements at place i and the larger at place j (`_merge_exchange`).
    After all steps, the element of rank k is at place k. If only some ranks are wanted, such as those in the
    middle, some steps can be left out.

    Parameters
    ----------
    n
        Number of elements.
    ranks
        The wanted ranks, from 0 for the smallest element.

    Examples
    --------
    >>> _needed_exchanges(4, frozenset({0, 1, 2, 3}))
    [(0, 2), (1, 3), (0, 1), (2, 3), (1, 2)]
    >>> _needed_exchanges(4, frozenset({0}))  # the smallest of all
    [(0, 2), (1, 3), (0, 1)]
    """
    used_places = set(ranks)
    needed = []
    # From the last step backwards: a step is needed if a later one, or the result, uses what it writes. Then
    # both places that it reads are used too.
    for i, j in reversed(_merge_exchange(n)):
        if i in used_places or j in used_places:
            needed.append((i, j))
            used_places |= {i, j}
    needed.reverse()
    return needed


def _merge_exchange(n: int) -> list[tuple[int, int]]:
    """List the steps of a sorting network for n elements: Batcher's merge exchange.

    A step (i, j) puts the smaller of two elements at i and the larger at j. Source: Knuth, The Art of
    Computer Programming, 5.2.2, algorithm M, whose names p and q are used here.
    """
    steps = []
    largest_power = 1 << (max(n - 1, 1).bit_length() - 1)  # the largest power of two below n
    p = largest_power
    while p > 0:
        # The elements whose index lacks the bit p are compared with those p behind them.
        steps += [(i, i + p) for i in range(n - p) if i & p == 0]
        # The other elements are compared over distances that become shorter.
        q = largest_power
        while q > p:
            distance = q - p
            steps += [(i, i + distance) for i in range(n - distance) if i & p == p]
            q //= 2
        p //= 2
    return steps


def inverse_lengths(signs: Signs, shown: NDArray[np.bool_]) -> Floats:
    """Return 1 / the length of frames, which are vectors [..., 264]; NaN for frames that show too little.

    A frame without any difference has the length 0; 0 is returned for it.

    Parameters
    ----------
    signs
        The frames.
    shown
        Whether a frame shows something, [...].
    """
    # Signs are -1, 0 or 1, so that the absolute value of each is also its square.
    squared_length = np.abs(signs).sum(axis=-1, dtype=np.float32)
    length = np.sqrt(squared_length)
    inverse: Floats = np.divide(1, length, where=length > 0, out=np.zeros_like(length))
    return np.where(shown, inverse, np.float32(np.nan))


def mirrored(signs: NDArray[Any]) -> NDArray[Any]:
    """Mirror frames [..., 264] left to right.

    A frame is a picture of 12 rows of 12 cells (`CELLS`). Its numbers are 132 differences between cells that
    are neighbours in a row, 11 in each of 12 rows, and behind these 132 between cells one below the other, 12
    in each of 11 rows. In the mirrored picture, each row of differences is read from right to left. A
    difference across is then also taken the other way round, so that its sign changes.
    """
    shape_of_frames = signs.shape[:-1]
    across, down = np.split(signs, 2, axis=-1)
    rows_across = across.reshape(*shape_of_frames, CELLS, CELLS - 1)
    rows_down = down.reshape(*shape_of_frames, CELLS - 1, CELLS)
    across_mirrored = -rows_across[..., ::-1]  # the last axis from right to left
    down_mirrored = rows_down[..., ::-1]
    return np.concatenate([across_mirrored.reshape(across.shape), down_mirrored.reshape(down.shape)], axis=-1)


@cache
def mirror_halves() -> tuple[Floats, Floats]:
    """Compute an orthonormal basis of a view's 264 signs, of symmetric and of antisymmetric vectors.

    A vector is symmetric if mirroring it left to right leaves it unchanged, and antisymmetric if mirroring
    multiplies it by -1. A frame plus its mirror image is symmetric, a frame minus its mirror image is
    antisymmetric.

    Returns
    -------
    symmetric : ndarray of float32, [264, 126]
        Mirroring exchanges the 132 differences down in 66 pairs, and the 132 across in 60 pairs. Each pair
        gives one symmetric and one antisymmetric vector.
    antisymmetric : ndarray of float32, [264, 138]
        Besides those of the 126 pairs, one for each of the 12 differences across in the middle, which
        mirroring only negates.
    """
    frames = np.eye(SIGNS, dtype=np.float32)  # row k is a frame whose only sign is at place k
    mirror_images = mirrored(frames)  # whose only sign, 1 or -1, is at another place, or at the same
    partner = np.abs(mirror_images).argmax(axis=1)  # that place: the partner with which k is exchanged
    # Both signs of a pair would give the same two vectors, so each pair is taken once.
    is_first_of_pair = np.arange(SIGNS) <= partner
    symmetric = _unit_columns((frames + mirror_images)[is_first_of_pair])
    antisymmetric = _unit_columns((frames - mirror_images)[is_first_of_pair])
    return symmetric, antisymmetric


def _unit_columns(vectors: Floats) -> Floats:
    """Return the rows that are not zero, scaled to length 1, as columns."""
    rows = vectors[vectors.any(axis=1)]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    columns: Floats = np.ascontiguousarray((rows / lengths).T)
    return columns


# --- sketches: of a clip's mean frame, small enough to be kept with a model
# ---------------------------------------------------------------------------
SKETCH_BYTES = SIGNS // 8


def mean_frames(signs: Signs, shown: NDArray[np.bool_]) -> Floats:
    """Compute the mean direction of the frames of a clip that show something, in each view.

    Parameters
    ----------
    signs
        Signatures [F, views, 264].
    shown
        Which frames show something [F].

    Returns
    -------
    ndarray
        [views, 264], of length 1; zeros where no frame shows anything.
    """
    total = signs[shown].sum(axis=0, dtype=np.float32)
    length = np.linalg.norm(total, axis=-1, keepdims=True)
    means: Floats = np.divide(total, length, where=length > 0, out=np.zeros_like(total))
    return means


def sketches(means: Floats) -> NDArray[np.uint8]:
    """Compress mean frames [..., 264] to the signs of their values, a bit each: [..., 33] bytes."""
    return np.packbits(means > 0, axis=-1)


def sketch_likeness(means: Floats, kept: NDArray[np.uint8]) -> Floats:
    """Compute the cosines [n, m] of mean frames with the approximate mean frames that sketches encode.

    A sketch says of each of the 264 numbers of a mean frame only whether it is positive, in a bit. It is
    compared as a vector of 1 and -1.

    Parameters
    ----------
    means
        Mean frames [n, 264], of length 1 (`mean_frames`), so that only the sketches are divided by theirs.
    kept
        Sketches [m, 33], as `sketches` makes them: 33 bytes have 264 bits.
    """
    bits = np.unpackbits(kept, axis=-1, count=SIGNS)  # [m, 264], 0 or 1
    signs = bits.astype(np.float32) * 2 - 1  # -1 or 1
    length_of_signs = np.float32(SIGNS**0.5)  # a sum of 264 squares that are all 1
    return np.asarray(means @ (signs.T / length_of_signs))
