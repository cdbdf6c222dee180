"""Compare signatures of pictures: signs of differences between neighbouring cells of a frame."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAST_FRAMES = 4
"""Frames that show something which a clip must have; others are counted as plain."""

SHIFTS = range(-3, 4)
"""Samples by which one clip may be later than the other."""

PART = 64
"""Clips whose cosines are ranked at a time, so that they stay in the processor's cache."""

CELLS = 12
SIGNS = 2 * CELLS * (CELLS - 1)
"""Of a view: differences of [12, 11] across, then [11, 12] down."""
Signs = NDArray[np.int8]
Floats = NDArray[np.float32]


@np.errstate()
def likeness(a: Signs, weight_a: Floats, b: Signs, weight_b: Floats) -> Floats:
    """Compute how alike clips are to others in one view: 1 for clips with the same frames.

    The frames of two clips are compared at equal positions, and shifted against each other by `SHIFTS`.

    Parameters
    ----------
    a, b
        Signatures [n, F, 264] and [m, F, 264].
    weight_a, weight_b
        Their `weights`, [n, F] and [m, F].

    Returns
    -------
    ndarray
        Shape [n, m]: for each pair of clips, the median of the cosines of their frames, at the shift at
        which it is largest. Frames that show too little do not count. -1 if fewer than `LEAST_FRAMES` frames
        of both can be compared.
    """
    np.setbufsize(16)  # until it returns: else numpy copies weights to buffers, which takes as long
    ours = a.transpose(1, 0, 2).astype(np.float32, order="C")
    theirs = b.transpose(1, 2, 0).astype(np.float32, order="C")
    shown_a, shown_b = (~np.isnan(each) for each in (weight_a, weight_b))
    columns, rows = (np.ascontiguousarray(each.T) for each in (weight_a, weight_b))
    n_frames, best = len(ours), np.full((len(a), len(b)), np.float32(-1))
    memory = np.empty((n_frames, *best.shape), np.float32)
    all_shown = bool(shown_a.all() and shown_b.all())
    for shift in SHIFTS:
        here = slice(max(0, -shift), min(n_frames, n_frames - shift))
        there = slice(here.start + shift, here.stop + shift)
        n_met = here.stop - here.start
        met = None if all_shown else shown_a[:, here].astype(np.float32) @ shown_b[:, there].T
        if (n_met if met is None else met.max(initial=0)) < LEAST_FRAMES:
            continue
        for frame, cosine in enumerate(memory[:n_met], start=here.start):  # while it is in the cache
            np.matmul(ours[frame], theirs[frame + shift], out=cosine)  # of whole numbers, so exact
            np.multiply(cosine, columns[frame][:, None], out=cosine)
            np.multiply(cosine, rows[frame + shift], out=cosine)
        if met is not None:
            np.copyto(memory, np.inf, where=np.isnan(memory))  # so that they are sorted to the end
        counts = range(n_met if met is None else LEAST_FRAMES, n_met + 1)
        ranks = {rank for count in counts for rank in ((count - 1) // 2, count // 2)}
        for part in (slice(top, top + PART) for top in range(0, len(a), PART)):
            ranked = _select_ranks(list(memory[:n_met, part]), ranks)
            for count in counts:
                median = (ranked[(count - 1) // 2] + ranked[count // 2]) / 2
                where = True if met is None else met[part] == count
                np.maximum(best[part], median, out=best[part], where=where)
    return best


def _select_ranks(arrays: list[Floats], ranks: set[int]) -> list[Floats]:
    """Sort several arrays elementwise, so that array k holds the k-th smallest element of each position.

    Parameters
    ----------
    arrays
        Arrays of the same shape, which are overwritten.
    ranks
        The ranks k that are needed, 0 for the smallest. Only these arrays of the result are valid.
    """
    spare = np.empty_like(arrays[0])
    for i, j in _exchanges(len(arrays), frozenset(ranks)):
        a, b = arrays[i], arrays[j]
        arrays[i], spare = np.minimum(a, b, out=spare), a
        np.maximum(a, b, out=b)
    return arrays


@cache
def _exchanges(n: int, ranks: frozenset[int]) -> list[tuple[int, int]]:
    """List the steps of a sorting network for n elements, as far as they are needed for some ranks.

    A step (i, j) puts the smaller of two elements at i and the larger at j. On whole arrays this is a minimum
    and a maximum, which takes a tenth of the time of sorting many short rows. The network is Batcher's merge
    exchange (Knuth, The Art of Computer Programming, 5.2.2, algorithm M), without the steps on which none of
    the wanted ranks depends.
    """
    network = []
    top = 1 << max(n - 1, 1).bit_length() - 1
    p = top  # p, q, r and d as Knuth names them
    while p:
        q, r, d = top, 0, p
        while d > 0:
            network += [(i, i + d) for i in range(n - d) if i & p == r]
            if q > p:
                q, r, d = q >> 1, p, q - p
            else:
                d = 0
        p >>= 1
    used = set(ranks)
    kept = []
    for i, j in reversed(network):
        if i in used or j in used:
            kept.append((i, j))
            used |= {i, j}
    return kept[::-1]


def weights(signs: Signs, shown: NDArray[np.bool_]) -> Floats:
    """Return the factors that scale frames [..., 264] to length 1; NaN for frames that show too little.

    Parameters
    ----------
    signs
        The frames.
    shown
        Whether a frame shows something, [...].
    """
    length = np.sqrt(np.abs(signs).sum(axis=-1, dtype=np.float32))
    inverse: Floats = np.divide(1, length, where=length > 0, out=np.zeros_like(length))
    return np.where(shown, inverse, np.float32(np.nan))


def mirrored(signs: NDArray[Any]) -> NDArray[Any]:
    """Mirror frames [..., 264] left to right: differences across change their sign and their order."""
    n = CELLS * (CELLS - 1)
    across = signs[..., :n].reshape(*signs.shape[:-1], CELLS, CELLS - 1)
    down = signs[..., n:].reshape(*signs.shape[:-1], CELLS - 1, CELLS)
    turned = [part[..., ::-1].reshape(*signs.shape[:-1], n) for part in (-across, down)]
    return np.concatenate(turned, axis=-1)


@cache
def mirror_halves() -> tuple[Floats, Floats]:
    """Compute an orthonormal basis of a view's 264 signs for which mirroring changes at most a sign.

    Returns
    -------
    stays : ndarray of float32, [264, 126]
        Basis vectors that mirroring left to right leaves unchanged.
    turns : ndarray of float32, [264, 138]
        Basis vectors that mirroring multiplies by -1.
    """
    signs = np.eye(SIGNS, dtype=np.float32)
    turned = mirrored(signs)
    halves = []
    for both in (signs + turned, signs - turned):
        # A sign and the one that mirroring exchanges it with give the same vector, so one of both is kept. A
        # sign that is its own partner gives a vector of length 2, or zero, which is left out.
        partner = np.abs(turned).argmax(axis=1)
        is_first = (np.arange(SIGNS) <= partner) & both.any(axis=1)
        kept = both[is_first]
        halves.append(np.ascontiguousarray((kept / np.linalg.norm(kept, axis=1, keepdims=True)).T))
    return halves[0], halves[1]


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

    Parameters
    ----------
    means
        Mean frames [n, 264].
    kept
        Sketches [m, 33], as `sketches` makes them.
    """
    signs = np.unpackbits(kept, axis=-1, count=SIGNS).astype(np.float32) * 2 - 1
    return np.asarray(means @ (signs.T / np.float32(SIGNS**0.5)))
