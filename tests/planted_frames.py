"""Clips in whose frames an event is planted that leaves their mean as it is; and stores of films."""

from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

from obygaze_features.manifest import Clip, Manifest, builtin_codebook
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays


class PlantedFrames(NamedTuple):
    """Clips of numbered movies; in some frames of the positive ones there is an event."""

    X: np.ndarray
    """Frames, [N, F, D]."""
    y: np.ndarray
    """Labels, [N]: 1 for clips with an event, which are 3 in 10, and 0 for the others."""
    movies: np.ndarray
    """Numbers of movies, [N]."""
    is_event: np.ndarray
    """Whether a frame is one of the event, [N, F]."""


def planted_frames(
    n_movies=12,
    n_per_movie=120,
    n_frames=32,
    n_features=48,
    size=6.0,
    n_event=3,
    seed=0,
    correlation=0.0,
):
    """Plant an event in frames.

    In a positive clip `n_event` frames in a row are moved by `size` along one direction, and the others the
    other way, so that the clip's mean says nothing. `correlation` is that of a clip's neighbouring frames.
    """
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(n_movies), n_per_movie)
    y = (rng.random(movies.size) < 0.3).astype(np.int64)
    X = rng.normal(size=(movies.size, n_frames, n_features))
    X[:, 1:] *= np.sqrt(1 - correlation**2)
    X = lfilter([1.0], [1.0, -correlation], X, axis=1)
    X += rng.normal(size=(n_movies, n_features))[movies][:, None] * 0.5
    axis = rng.normal(size=n_features)
    axis /= np.linalg.norm(axis)
    start = rng.integers(n_frames - n_event + 1, size=movies.size)
    place = np.arange(n_frames)
    where = (place >= start[:, None]) & (place < start[:, None] + n_event) & (y[:, None] == 1)
    moved = np.where(where, size, -n_event * size / (n_frames - n_event)) * y[:, None]
    X += moved[..., None] * axis
    return PlantedFrames(X.astype(np.float32), y, movies, where)


def seal_films(folder, arrays, movies, y, *, n_frames, name="films", concepts=None):
    """Seal clips of numbered films, and label them S or HN; give the store and the manifest."""
    ids = [f"film{movie}-c{clip:03}" for clip, movie in enumerate(movies)]
    movie_of = {clip_id: clip_id[:5] for clip_id in ids}
    spans = {clip_id: (4.0 * index, 4.0 * index + 4) for index, clip_id in enumerate(ids)}
    path = seal_arrays(folder / name, movie_of, {"toy": arrays}, n_frames=n_frames, spans=spans)
    clips = tuple(
        Clip(
            clip_id, movie, f"{movie}.mp4", start_s=0.0, end_s=4.0, level="S" if label else "HN", concepts=own
        )
        for (clip_id, movie), label, own in zip(movie_of.items(), y, concepts or [()] * len(ids), strict=True)
    )
    return open_store(path), Manifest(clips, folder, builtin_codebook("obygaze12"))
