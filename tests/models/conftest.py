"""Planted data: every fixture says what truth is in it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.store.testing import seal_arrays
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


@pytest.fixture(scope="session")
def make_store() -> Callable[..., Path]:
    return seal_arrays
