"""Find clips that look alike: re-encoded, cropped a little, mirrored, or shifted in time.

A clip's signature is the frames of the group `descriptors`: colour histogram, texture, and lightness of each,
which mirroring leaves alone and compression and cropping change little. Two clips look alike if the median
frame of each has one like it in the other, wherever in time that is.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.screen import Progress, progress_hook
from obygaze_features.store.group import rows_of
from obygaze_features.store.store import Store

GROUP = "descriptors"
"""Backbone whose frames are signatures."""

LIMIT = 0.25
"""Largest distance of clips that look alike. Measured on real clips: at most .16 for the same ones
re-encoded in three codecs, cropped by a tenth, mirrored or shifted by 2 s; at least .58 for 1,607 others."""

COARSE = 2 * LIMIT
"""Largest distance of clips' mean frames of which the frames are compared."""

LEAST_SPREAD = 3.0
"""Deviation of a frame's lightness (0 to 100) below which it shows nothing to compare: black, white, fog."""

LEAST_FRAMES = 4
"""Frames that show something which a clip must have; others are counted as plain."""

BLOCK = 512
"""Clips whose mean frames are compared at a time."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two clips that look alike; `distance` is 0 for the very same frames."""

    clip_a: str
    movie_a: str
    clip_b: str
    movie_b: str
    distance: float


@dataclass(frozen=True, slots=True)
class Duplicates:
    """What was found.

    Attributes
    ----------
    pairs : tuple of Duplicate
        The nearest first.
    clips : tuple of int
        Clips of each store that were compared.
    plain : tuple of int
        Clips of each that show too little to be compared, such as black.
    """

    pairs: tuple[Duplicate, ...]
    clips: tuple[int, int]
    plain: tuple[int, int]


@dataclass(frozen=True, eq=False)
class _Signatures:
    ids: list[str]
    movies: list[str]
    frames: list[Floats]
    means: Floats
    plain: int


def duplicates(
    store: Store,
    other: Store | None = None,
    *,
    limit: float = LIMIT,
    progress: Progress | bool | None = None,
) -> Duplicates:
    """Find the clips of a store that look like clips of another, or of its own other movies.

    Parameters
    ----------
    store
        Of clips, with the frames of `descriptors`.
    other
        None compares clips of different movies of the one store.
    limit
        Largest distance of clips that look alike.
    progress
        Called with the numbers of clips done and of all.

    Raises
    ------
    StoreError
        A store has no frames of `descriptors`.
    """
    first = _signatures(store)
    second = first if other is None else _signatures(other)
    show = progress_hook(progress, "comparing clips", "clip")
    pairs = []
    sizes = (second.means**2).sum(axis=1)
    for start in range(0, len(first.ids), BLOCK):
        rows = first.means[start : start + BLOCK]
        apart = (rows**2).sum(axis=1)[:, None] + sizes - 2 * rows @ second.means.T
        for place, j in np.argwhere(apart <= 2 * COARSE**2).tolist():
            i = start + place
            if other is None and (i >= j or first.movies[i] == second.movies[j]):
                continue
            if (far := distance(first.frames[i], second.frames[j])) <= limit:
                clips = first.ids[i], first.movies[i], second.ids[j], second.movies[j]
                pairs.append(Duplicate(*clips, round(far, 4)))
        if show is not None:
            show(min(start + BLOCK, len(first.ids)), len(first.ids))
    pairs.sort(key=lambda pair: (pair.distance, pair.clip_a, pair.clip_b))
    return Duplicates(tuple(pairs), (len(first.ids), len(second.ids)), (first.plain, second.plain))


def distance(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Compute the distance of signatures [F, S] and [G, S]: the larger median distance to the nearest frame.

    A frame is as far as the root of the half squared difference of its roots of shares (Hellinger's distance
    of the histograms) and of its lightness.
    """
    a, b = a.astype(np.float64), b.astype(np.float64)  # in which the same frames are 1e-8 apart
    squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * a @ b.T
    apart = np.sqrt(np.maximum(squares, 0) / 2)
    return float(max(np.median(apart.min(axis=1)), np.median(apart.min(axis=0))))


def has_signatures(store: Store) -> bool:
    """Whether a store has the frames by which pictures are compared."""
    return GROUP in store.names and "frames" in store[GROUP].arrays and "lightness_sd" in _columns(store)


def _columns(store: Store) -> list[str]:
    """List what the columns of the signatures are."""
    return list((store[GROUP].provenance.get("architecture") or {}).get("features") or ())


def _signatures(store: Store) -> _Signatures:
    """Read the signatures of all clips that show something."""
    if not has_signatures(store):
        raise StoreError(
            f"{store.where}: has no frames of {GROUP}, by which pictures are compared; extract them: "
            f"obygaze extract MANIFEST STORE --backbone {GROUP}"
        )
    group = store[GROUP]
    names = {name: place for place, name in enumerate(_columns(store))}
    shares = [place for name, place in names.items() if name.startswith(("hsv_", "lbp_"))]
    lightness = [place for name, place in names.items() if name.startswith("lightness_")]
    usable = np.flatnonzero(group.usable).tolist()
    ids, movies, frames, plain = [], [], [], 0
    for row, values in zip(usable, rows_of(group, "frames", usable), strict=True):
        shown = values[values[:, names["lightness_sd"]] >= LEAST_SPREAD].astype(np.float32)
        if len(shown) < min(LEAST_FRAMES, len(values)):
            plain += 1
            continue
        ids.append(group.clip_ids[row])
        movies.append(store.clips[row].movie)
        frames.append(np.hstack([np.sqrt(np.maximum(shown[:, shares], 0)), shown[:, lightness] / 50]))
    width = len(shares) + len(lightness)
    means = np.array([each.mean(axis=0) for each in frames], np.float32).reshape(len(ids), width)
    return _Signatures(ids, movies, frames, means, plain)
