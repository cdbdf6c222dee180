"""Simulate corpora with known truths, and predictions for them, for `coverage.py`.

Corpora have 6 or 12 movies of 20 to 60 clips, a quarter of them positive, of movies that are alike or differ
(in their share of positives, and in an offset of all scores), of clips in no order or in one that matters
(labels and noise are first-order autoregressions). *null*: nothing is known of labels. *planted*: an AUC of
about .74. *strong*: about .97.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from obygaze_models.evaluation import Predictions
from obygaze_models.protocol.selection import best_threshold

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SERIAL = 0.7
"""Autocorrelation of latent labels and of noise in corpora whose order matters; labels then have about .45 at
lag 1, as ObyGaze12's have."""

N_POPULATION = 3000
"""Movies of the corpus that gives the truth of a metric of given models."""

N_FEATURES = 8


@dataclass(frozen=True)
class Kind:
    """One kind of corpus.

    Attributes
    ----------
    strength, spread : float
        Mean and SD over movies of how far a given model's scores of positives lie above others.
    differ : bool
        Whether movies differ.
    shift : float
        How far the first feature of positives lies above others, for models that are trained.
    """

    strength: float
    spread: float
    differ: bool
    shift: float = 0.0


KINDS = {
    "null, alike": Kind(0.0, 0.0, differ=False),
    "null, differ": Kind(0.0, 0.0, differ=True),
    "planted": Kind(1.0, 0.4, differ=True, shift=1.2),
    "strong": Kind(3.0, 0.6, differ=True, shift=2.7),
}


@dataclass(frozen=True)
class Corpus:
    """Labels and movies [N] of clips in the order of their films."""

    y: Ints
    movies: Ints


def smooth(rng: np.random.Generator, n: int, rho: float, columns: int = 1) -> Floats:
    """Draw an autoregression [n, columns] of variance 1."""
    values = rng.normal(size=(n, columns))
    for row in range(1, n if rho else 1):
        values[row] = rho * values[row - 1] + np.sqrt(1 - rho**2) * values[row]
    return values


def corpus(rng: np.random.Generator, n_movies: int, rho: float, *, differ: bool, mean: float = 40) -> Corpus:
    """Draw movies of half to one and a half of the mean number of clips, and their labels."""
    sizes = np.maximum(8, (mean * rng.uniform(0.5, 1.5, n_movies)).astype(int))
    share = expit(logit(0.25) + (0.8 * rng.normal(size=n_movies) if differ else np.zeros(n_movies)))
    y = [smooth(rng, n, rho)[:, 0] < ndtri(p) for n, p in zip(sizes, share, strict=True)]
    return Corpus(np.concatenate(y).astype(np.int64), np.repeat(np.arange(n_movies), sizes))


def table(y: Ints, movies: Ints, score: Floats, threshold: float | Floats) -> pd.DataFrame:
    """Lay out predictions as the zoo does."""
    names = movies.astype(str)
    return pd.DataFrame(
        {
            "model": "m",
            "task": "t",
            "fold": movies,
            "seed": 0,
            "clip_id": [f"{movie}-{place}" for place, movie in enumerate(names)],
            "movie": names,
            "label": y,
            "score": score,
            "threshold": threshold,
            "store": "f",
        }
    )


class Levels:
    """Predictions of four ordered levels, for `summarise`."""

    def __init__(self, y: Ints, movies: Ints, score: Floats) -> None:
        self.table = table(y, movies, score, 0.0)
        self.called = np.clip(np.round(score), 0, 3).astype(np.int64)


def given_models(rng: np.random.Generator, n_movies: int, kind: Kind, rho: float) -> Predictions:
    """Draw the predictions of a model that is given: its scores of clips of any movies."""
    drawn = corpus(rng, n_movies, rho, differ=kind.differ)
    reach = kind.strength + kind.spread * rng.normal(size=n_movies)
    offset = 0.5 * rng.normal(size=n_movies) * kind.differ
    noise = np.concatenate([smooth(rng, n, rho)[:, 0] for n in np.bincount(drawn.movies)])
    score = offset[drawn.movies] + reach[drawn.movies] * drawn.y + noise
    return Predictions(table(drawn.y, drawn.movies, score, kind.strength / 2))


def level_corpus(
    rng: np.random.Generator, n_movies: int, rho: float, *, differ: bool, mean: float = 40
) -> Corpus:
    """Draw movies of four ordered levels."""
    sizes = np.maximum(8, (mean * rng.uniform(0.5, 1.5, n_movies)).astype(int))
    movies = np.repeat(np.arange(n_movies), sizes)
    latent = np.concatenate([smooth(rng, n, rho)[:, 0] for n in sizes])
    shift = 0.5 * rng.normal(size=n_movies) * differ
    return Corpus(np.clip(np.round(1.2 + shift[movies] + latent), 0, 3).astype(np.int64), movies)


def given_levels(rng: np.random.Generator, n_movies: int, kind: Kind, rho: float) -> Levels:
    """Draw the predictions of a given model of four levels."""
    drawn = level_corpus(rng, n_movies, rho, differ=kind.differ)
    noise = np.concatenate([smooth(rng, n, rho)[:, 0] for n in np.bincount(drawn.movies)])
    offset = 0.2 * rng.normal(size=n_movies) * kind.differ
    score = 1.2 + kind.strength / 3 * (drawn.y - 1.2) + offset[drawn.movies] + 0.6 * noise
    return Levels(drawn.y, drawn.movies, score)


def features(rng: np.random.Generator, drawn: Corpus, kind: Kind, rho: float) -> Floats:
    """Draw features [N, 8] that know of labels and differ between movies as the kind says.

    Each movie has its own direction beside the common one, so that one unlucky corpus misleads every fold.
    """
    sizes = np.bincount(drawn.movies)
    X = np.concatenate([smooth(rng, n, rho, N_FEATURES) for n in sizes])
    X += kind.differ * rng.normal(size=(len(sizes), N_FEATURES))[drawn.movies]
    if kind.strength:
        direction = 0.36 * rng.normal(size=(len(sizes), N_FEATURES))
        direction[:, 0] += kind.shift
        X += drawn.y[:, None] * direction[drawn.movies]
    return X


def left_out(X: Floats, drawn: Corpus, *, levels: bool = False) -> pd.DataFrame:
    """Predict each movie by a ridge regression on the others; its threshold is tuned on inner folds.

    Regressions on levels have no threshold: `Levels` calls the nearest one.
    """
    design = np.column_stack([X, np.ones(len(X))])
    n_movies = int(drawn.movies.max()) + 1
    rows = [np.flatnonzero(drawn.movies == movie) for movie in range(n_movies)]
    moments = np.stack([design[own].T @ design[own] for own in rows])
    targets = np.stack([design[own].T @ drawn.y[own] for own in rows])
    moments_left, targets_left = moments.sum(axis=0) - moments, targets.sum(axis=0) - targets
    penalty = np.eye(design.shape[1])
    score, threshold = np.empty(len(X)), np.zeros(len(X))
    for movie, own in enumerate(rows):
        score[own] = design[own] @ np.linalg.solve(moments_left[movie] + penalty, targets_left[movie])
        if levels:
            continue
        others = [other for other in range(n_movies) if other != movie]
        weights = np.linalg.solve(
            moments_left[movie] - moments[others] + penalty,
            (targets_left[movie] - targets[others])[..., None],
        )[..., 0]
        inner = [design[rows[other]] @ one for other, one in zip(others, weights, strict=True)]
        tuned = best_threshold(
            np.concatenate([drawn.y[rows[other]] for other in others]), np.concatenate(inner)
        )
        threshold[own] = tuned
    return table(drawn.y, drawn.movies, score, threshold)


def trained(rng: np.random.Generator, n_movies: int, kind: Kind, rho: float) -> Predictions:
    """Draw a corpus of two classes, and predict each movie by a model of the others."""
    drawn = corpus(rng, n_movies, rho, differ=kind.differ, mean=30)
    return Predictions(left_out(features(rng, drawn, kind, rho), drawn))


def trained_levels(rng: np.random.Generator, n_movies: int, kind: Kind, rho: float) -> Levels:
    """Draw a corpus of four levels, and predict each movie by a model of the others."""
    drawn = level_corpus(rng, n_movies, rho, differ=kind.differ, mean=30)
    predicted = left_out(features(rng, drawn, kind, rho), drawn, levels=True)
    return Levels(drawn.y, drawn.movies, predicted["score"].to_numpy())
