"""Planted data: every fixture says what truth is in it."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.store import (
    ArraySpec,
    ClipFeatures,
    ClipResult,
    GroupSpec,
    PlannedClip,
    Stage,
    seal,
    staging_path,
)
from obygaze_models.dataset import Dataset


def planted(
    *,
    direction: float = 0.0,
    film: float = 0.0,
    n_movies: int = 6,
    n_per_movie: int = 40,
    n_features: int = 12,
    seed: int = 0,
) -> Dataset:
    """Make clips of which about a quarter are S, the others EN and HN.

    `direction` is how far S clips are moved along one direction, the same in every movie; `film` how far
    each movie is moved in a direction of its own. Movies differ in their share of S clips.
    """
    rng = np.random.default_rng(seed)
    movie_of = np.repeat(np.arange(n_movies), n_per_movie)
    shares = np.linspace(0.1, 0.4, n_movies)
    y = (rng.random(movie_of.size) < shares[movie_of]).astype(np.int64)
    levels = np.where(y == 1, "S", np.where(rng.random(y.size) < 0.5, "EN", "HN"))
    axis = rng.normal(size=n_features)
    axis /= np.linalg.norm(axis)
    X = rng.normal(size=(y.size, n_features)) + direction * y[:, None] * axis
    X += film * rng.normal(size=(n_movies, n_features))[movie_of]
    return dataset(X, levels, np.array([f"tt{movie:07}" for movie in movie_of]))


def dataset(X: np.ndarray, levels: np.ndarray, movies: np.ndarray) -> Dataset:
    """Wrap arrays as a dataset in which nothing was left out."""
    return Dataset(
        X=X.astype(np.float32),
        y=(levels == "S").astype(np.int64),
        clip_ids=np.array([f"{movie}-{place:03}" for place, movie in enumerate(movies)]),
        movies=movies,
        levels=levels,
        backbone="planted",
        features="pooled",
        pool="as stored",
        store="f" * 64,
        n_manifest=len(levels),
        n_unlabelled=0,
        n_other_levels=0,
        excluded=(),
        n_unknown=0,
        n_partial=0,
    )


@pytest.fixture(scope="session")
def make_planted() -> Callable[..., Dataset]:
    return planted


@pytest.fixture(scope="session")
def wrap_arrays() -> Callable[..., Dataset]:
    return dataset


PROVENANCE = {
    "name": "planted",
    "head": None,
    "layer": None,
    "hub": None,
    "weights_sha256": None,
    "architecture": {},
    "preset": {"resize": None, "crop": None, "constants": None, "order": None},
    "sampling": {"policy": "uniform", "n": 2},
    "decoder": {"av": "0", "ffmpeg": "0", "on_damage": "fail"},
    "compute": {"dtype": "float32", "autocast": None, "attention": None, "tf32": False, "device": "cpu"},
    "software": {"obygaze": "0.1.0"},
    "commit": None,
    "licence": "CC0-1.0",
    "citation": "",
    "contact": "",
}
"""What a store demands to know of where features came from; here, nowhere."""


def seal_arrays(
    folder: Path,
    movie_of: Mapping[str, str],
    groups: Mapping[str, Mapping[str, np.ndarray]],
    *,
    failed: Mapping[str, str] | None = None,
    partial: Mapping[str, str] | None = None,
) -> Path:
    """Seal a store of given arrays: `groups[backbone][array]` has a row for each clip of `movie_of`."""
    failed, partial = failed or {}, partial or {}
    specs = [
        GroupSpec(
            name=name,
            arrays=tuple(ArraySpec(array, rows.shape[1:], rows.dtype.name) for array, rows in arrays.items()),
            n_frames=2,
            provenance=PROVENANCE | {"name": name},
        )
        for name, arrays in groups.items()
    ]
    results = []
    for row, clip_id in enumerate(movie_of):
        if clip_id in failed:
            results.append(ClipResult(clip_id, "failed", failed[clip_id]))
            continue
        features = {
            name: ClipFeatures(
                np.arange(2.0),
                np.arange(2),
                {array: rows[row] for array, rows in arrays.items()},
            )
            for name, arrays in groups.items()
        }
        status = "partial" if clip_id in partial else "ok"
        results.append(ClipResult(clip_id, status, partial.get(clip_id, ""), groups=features))
    planned = [PlannedClip(clip_id, movie) for clip_id, movie in movie_of.items()]
    stage = Stage.open(staging_path(folder), planned, specs, {"name": "planted"})
    with stage.writer() as writer:
        writer.commit(results)
    return seal(staging_path(folder), folder, licence="CC0-1.0", allow_missing=bool(failed))


@pytest.fixture(scope="session")
def make_store() -> Callable[..., Path]:
    return seal_arrays
