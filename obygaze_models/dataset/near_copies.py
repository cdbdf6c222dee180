"""Find films that are in a dataset under two names with features that differ in their last bits.

The same pictures, decoded by another build of a codec or run on another card, give nearly the same features:
digests differ, and the film is trained on and tested all the same. Distances tell the copies: a clip is far
nearer to its copy than any clip of a film is to another one of that film. Two films with similar shots are
not as near.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from obygaze_models.dataset.dataset import Dataset

LARGEST_DISTANCE = 0.03
"""Distance from a clip to its copy, as a share of its features' length, less what all clips have in common.

bfloat16 weights leave cosines of .9999 (docs/gpu.md), which are distances of .014; where half of the length
is common to all clips, they are .028 of the rest. A cosine of .9995 is a distance of .03."""

NEARER = 4.0
"""So many times nearer than to the next clip of its own film a clip must be to its copy: else the film stands
still there, or the features are so few that clips lie close by chance."""

COPIED_SHARE = 0.5
"""Films are one under two names if more than this share of the clips of the shorter one have copies."""

N_SAMPLED = 16
"""Clips of each film that are first compared with all others; only films in which one is found are compared
as a whole. Of a film of which half is copied, none is found once in 60,000 times."""

N_DIRECTIONS = 64
"""Random directions that stand for the features in this first comparison, as in Johnson and Lindenstrauss."""

SLACK = 2.0
"""By which factor distances along these directions may be larger than `LARGEST_DISTANCE`."""

ROWS_AT_ONCE = 256
"""Clips whose distances to all others are held at a time."""

Floats = NDArray[np.float32]


def nearly_equal_films(data: Dataset) -> list[tuple[str, str, float]]:
    """List pairs of a dataset's films whose clips have nearly equal features, the largest share first.

    Films whose features are equal to the last bit are among them. In a dataset of several modalities, the
    features of the first one are compared.

    Returns
    -------
    list of (film, other film, share)
        The share is that of clips with a copy, of the film that has fewer clips.
    """
    compared = data.parts[0] if data.parts else data
    features = np.asarray(compared.X, dtype=np.float32)
    # A black or silent clip, which may have one number throughout, is like those of other films.
    telling_rows = np.flatnonzero(np.ptp(features, axis=1) > 0)
    rows_of_film: dict[str, NDArray[np.intp]] = {}
    movies = np.asarray(compared.movies)
    for film in np.unique(movies[telling_rows]).tolist():
        rows_of_film[film] = telling_rows[movies[telling_rows] == film]
    if len(rows_of_film) < 2:
        return []

    common = features[telling_rows].mean(axis=0, dtype=np.float64).astype(np.float32)
    pairs = []
    for film, other in _candidates(features, common, rows_of_film):
        clips = features[rows_of_film[film]] - common
        others = features[rows_of_film[other]] - common
        share = _copied_share(clips, others)
        if share > COPIED_SHARE:
            pairs.append((film, other, share))
    return sorted(pairs, key=lambda pair: -pair[2])


def _candidates(
    features: Floats, common: Floats, rows_of_film: Mapping[str, NDArray[np.intp]]
) -> list[tuple[str, str]]:
    """List the pairs of films of which a sampled clip of one is near some clip of the other, in sorted order.

    Only such pairs are compared clip by clip later. To be quick, a few clips of each film are compared with
    all clips, by a few numbers that stand for all features (`N_DIRECTIONS`).

    Parameters
    ----------
    features : ndarray, shape [N, D]
    common : ndarray, shape [D]
        What all clips have in common.
    rows_of_film : mapping of str to ndarray
        Film -> its rows.
    """
    films = list(rows_of_film)
    rows = np.concatenate([rows_of_film[film] for film in films])
    film_of_clip = np.repeat(np.arange(len(films)), [len(rows_of_film[film]) for film in films])
    clips = _along_directions(features, common, rows)
    # A clip is near if its distance is a small share of the clip's length. Distances along the few directions
    # are not exact: twice that share counts as near, too. All are squared.
    largest_distances = (SLACK * LARGEST_DISTANCE) ** 2 * _squared_lengths(clips)
    first_clips = np.searchsorted(film_of_clip, np.arange(len(films)))  # of each film

    # Clips of each film, evenly spread over it.
    sampled = []
    for number in range(len(films)):
        places = np.flatnonzero(film_of_clip == number)
        spread = np.linspace(0, len(places) - 1, min(N_SAMPLED, len(places)))
        sampled.append(places[spread.astype(np.intp)])
    all_sampled = np.concatenate(sampled)

    pairs = set[tuple[int, int]]()  # of numbers of films, the lower one first
    for start in range(0, len(all_sampled), ROWS_AT_ONCE):
        some = all_sampled[start : start + ROWS_AT_ONCE]
        is_near = _squared_distances(clips[some], clips) <= largest_distances
        # Whether some clip of each film is near: clips are in the order of films. [ROWS_AT_ONCE, films]
        is_near_film = np.logical_or.reduceat(is_near, first_clips, axis=1)
        for place, other in np.argwhere(is_near_film).tolist():
            film = int(film_of_clip[some[place]])
            if film != other:
                pairs.add((min(film, other), max(film, other)))
    return [(films[film], films[other]) for film, other in sorted(pairs)]


def _along_directions(features: Floats, common: Floats, rows: NDArray[np.intp]) -> Floats:
    """Return some rows of features [N, D], less what is common, along few random directions [n, 64].

    Lengths and distances stay about the same. Features that are no more than the directions stay as they are.
    """
    n_features = features.shape[1]
    if n_features <= N_DIRECTIONS:
        return features[rows] - common
    directions = np.random.default_rng(0).standard_normal((n_features, N_DIRECTIONS), dtype=np.float32)
    directions /= np.float32(np.sqrt(N_DIRECTIONS))
    return np.asarray(features[rows] @ directions - common @ directions)


def _squared_lengths(clips: Floats) -> Floats:
    """Return the squared length [n] of the features [n, D] of each clip."""
    return np.asarray(np.einsum("nd,nd->n", clips, clips))


def _squared_distances(clips: Floats, others: Floats) -> Floats:
    """Return the squared distance [n, m] of each clip [n, D] from each other clip [m, D]."""
    products = clips @ others.T
    squared = _squared_lengths(clips)[:, None] + _squared_lengths(others) - 2 * products
    return np.maximum(squared, 0)


def _copied_share(clips: Floats, others: Floats) -> float:
    """Return the share of clips with a copy, of the film that has fewer clips.

    A clip and its copy are nearest to each other; their distance is at most the share `LARGEST_DISTANCE` of
    the shorter one's length; and each is `NEARER` times nearer to the other than to the next clip of its own
    film. Distances and lengths are computed squared.

    Parameters
    ----------
    clips, others : ndarray, shape [n, D] and [m, D]
        The features of two films, less what all clips have in common.
    """
    distances = _squared_distances(clips, others)  # [n, m]
    clip = np.arange(len(clips))
    nearest = distances.argmin(axis=1)  # the clip of the other film that may be the copy, [n]
    nearest_to_other = distances.argmin(axis=0)  # [m]
    is_mutual = nearest_to_other[nearest] == clip

    to_copy = distances[clip, nearest]
    length_of_shorter = np.minimum(_squared_lengths(clips), _squared_lengths(others)[nearest])
    is_near = to_copy <= LARGEST_DISTANCE**2 * length_of_shorter
    within_film = np.minimum(_to_next_clip(clips), _to_next_clip(others)[nearest])
    stands_apart = to_copy * NEARER**2 < within_film
    n_copied = np.count_nonzero(is_mutual & is_near & stands_apart)
    return float(n_copied / min(len(clips), len(others)))


def _to_next_clip(clips: Floats) -> Floats:
    """Return the squared distance [n] from each clip to the nearest other clip of its film; inf if alone."""
    distances = _squared_distances(clips, clips)
    np.fill_diagonal(distances, np.inf)
    return np.asarray(distances.min(axis=1))
