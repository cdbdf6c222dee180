"""Worlds of corpora with known truths, and predictions for them.

Corpora have 6 or 12 movies of 20 to 60 clips (uneven ones: 8 to 260), a quarter of them positive, of movies
that are alike or differ (in their share of positives, and in an offset of all scores), of clips in no order
or in one that matters (labels and noise are first-order autoregressions). *null*: nothing is known of labels.
*planted*: an AUC of about .74. *strong*: about .97. Models are given, or trained anew: then they are the
product's linear probe, with its inner folds, trained by the function that `evaluate` calls.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.special import expit, logit, ndtri

from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation import Predictions
from obygaze_models.models.fitted import fit
from obygaze_models.models.linear import SPECS
from obygaze_models.models.ordinal import fit_ordinal

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Made = TypeVar("Made")

SERIAL = 0.7
"""Autocorrelation of latent labels and of noise in corpora whose order matters; labels then have about .45 at
lag 1, as ObyGaze12's have."""

N_POPULATION = 1000
"""Movies of the corpus that gives the truth of a metric of given models."""

N_FEATURES = 8

N_LEVELS = 4

(LINEAR,) = SPECS


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
    uneven : bool
        Whether movies have 8 to 260 clips.
    """

    strength: float
    spread: float
    differ: bool
    shift: float = 0.0
    uneven: bool = False


KINDS = {
    "null, alike": Kind(strength=0.0, spread=0.0, differ=False),
    "null, differ": Kind(strength=0.0, spread=0.0, differ=True),
    "planted": Kind(strength=1.0, spread=0.4, differ=True, shift=1.2),
    "strong": Kind(strength=3.0, spread=0.6, differ=True, shift=2.7),
}

DIFFERENT = {name: kind for name, kind in KINDS.items() if kind.differ}

TRAINED = {name: DIFFERENT[name] for name in ("null, differ", "planted")}

UNEVEN = {f"{name}, uneven": replace(kind, uneven=True) for name, kind in DIFFERENT.items()}


@dataclass(frozen=True)
class Corpus:
    """Labels and movies [N] of clips in the order of their films."""

    y: Ints
    movies: Ints


def smooth(rng: np.random.Generator, n: int, rho: float, columns: int = 1) -> Floats:
    """Draw an autoregression [n, columns] of variance 1."""
    values = rng.normal(size=(n, columns))
    values[1:] *= np.sqrt(1 - rho**2)
    run: Floats = lfilter([1.0], [1.0, -rho], values, axis=0)
    return run


def sizes_of(rng: np.random.Generator, n_movies: int, mean: float, *, uneven: bool = False) -> Ints:
    """Draw the clips of each movie: half to one and a half of the mean number, or 8 to 260."""
    if uneven:
        drawn: Ints = np.clip(60 * np.exp(0.9 * rng.normal(size=n_movies)), 8, 260).astype(int)
        return drawn
    return np.maximum(8, (mean * rng.uniform(0.5, 1.5, n_movies)).astype(int))


def corpus(
    rng: np.random.Generator,
    n_movies: int,
    rho: float,
    *,
    differ: bool,
    mean: float = 40,
    uneven: bool = False,
) -> Corpus:
    """Draw movies and the labels of their clips."""
    sizes = sizes_of(rng, n_movies, mean, uneven=uneven)
    share = expit(logit(0.25) + (0.8 * rng.normal(size=n_movies) if differ else np.zeros(n_movies)))
    y = [smooth(rng, n, rho)[:, 0] < ndtri(p) for n, p in zip(sizes, share, strict=True)]
    return Corpus(np.concatenate(y).astype(np.int64), np.repeat(np.arange(n_movies), sizes))


def table(y: Ints, movies: Ints, score: Floats, threshold: float | Floats, model: str = "m") -> pd.DataFrame:
    """Lay out predictions as the zoo does."""
    names = movies.astype(str)
    return pd.DataFrame(
        {
            "model": model,
            "task": "t",
            "fold": movies,
            "seed": 0,
            "clip_id": [f"{movie}-{index}" for index, movie in enumerate(names)],
            "movie": names,
            "label": y,
            "score": score,
            "threshold": threshold,
            "store": "f",
        }
    )


def levels(y: Ints, movies: Ints, score: Floats) -> Predictions:
    """Make predictions of ordered levels, each called by the level that its score is next to."""
    return Predictions(table(y, movies, score, threshold=0.5), N_LEVELS)


def given_models(rng: np.random.Generator, n_movies: int, kind: Kind, rho: float) -> Predictions:
    """Draw the predictions of a model that is given: its scores of clips of any movies."""
    drawn = corpus(rng, n_movies, rho, differ=kind.differ, uneven=kind.uneven)
    reach = kind.strength + kind.spread * rng.normal(size=n_movies)
    offset = 0.5 * rng.normal(size=n_movies) * kind.differ
    noise = np.concatenate([smooth(rng, n, rho)[:, 0] for n in np.bincount(drawn.movies)])
    score = offset[drawn.movies] + reach[drawn.movies] * drawn.y + noise
    return Predictions(table(drawn.y, drawn.movies, score, kind.strength / 2))


def level_corpus(
    rng: np.random.Generator, n_movies: int, rho: float, *, differ: bool, mean: float = 40
) -> Corpus:
    """Draw movies of four ordered levels."""
    sizes = sizes_of(rng, n_movies, mean)
    movies = np.repeat(np.arange(n_movies), sizes)
    latent = np.concatenate([smooth(rng, n, rho)[:, 0] for n in sizes])
    shift = 0.5 * rng.normal(size=n_movies) * differ
    return Corpus(np.clip(np.round(1.2 + shift[movies] + latent), 0, N_LEVELS - 1).astype(np.int64), movies)


def given_levels(rng: np.random.Generator, n_movies: int, kind: Kind, rho: float) -> Predictions:
    """Draw the predictions of a given model of four levels."""
    drawn = level_corpus(rng, n_movies, rho, differ=kind.differ)
    noise = np.concatenate([smooth(rng, n, rho)[:, 0] for n in np.bincount(drawn.movies)])
    offset = 0.2 * rng.normal(size=n_movies) * kind.differ
    score = 1.2 + kind.strength / 3 * (drawn.y - 1.2) + offset[drawn.movies] + 0.6 * noise
    return levels(drawn.y, drawn.movies, score)


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


def left_out(
    X: Floats, drawn: Corpus, model: str = "m", *, levels: bool = False, tested: Iterable[int] | None = None
) -> pd.DataFrame:
    """Predict each movie (or those tested) by the linear probe, trained on the others as `evaluate` does."""
    score, threshold = np.empty((2, len(X)))
    names = drawn.movies.astype(str)
    every = np.unique(drawn.movies) if tested is None else np.array([*tested])
    for movie in every:
        is_left_out = drawn.movies == movie
        training = (LINEAR, 0, X[~is_left_out], drawn.y[~is_left_out])
        learnt = (
            fit_ordinal(*training, n_levels=N_LEVELS, movies=names[~is_left_out])
            if levels
            else fit(*training, movies=names[~is_left_out])
        )
        score[is_left_out] = learnt.scores(X[is_left_out], names[is_left_out])
        threshold[is_left_out] = learnt.threshold
    is_left_out = np.isin(drawn.movies, every)
    return table(
        drawn.y[is_left_out], drawn.movies[is_left_out], score[is_left_out], threshold[is_left_out], model
    )


def accepted(make: Callable[[], Made]) -> Made:
    """Draw until the product accepts a corpus: it refuses one with a class or level in too few movies."""
    while True:
        try:
            return make()
        except ProtocolError:
            continue


def trained(rng: np.random.Generator, n_movies: int, kind: Kind, rho: float) -> Predictions:
    """Draw a corpus with two equally good feature sets, and predict each movie by models of the others."""

    def make() -> Predictions:
        drawn = corpus(rng, n_movies, rho, differ=kind.differ, mean=30)
        parts = [left_out(features(rng, drawn, kind, rho), drawn, model) for model in ("a", "b")]
        return Predictions(pd.concat(parts, ignore_index=True))

    return accepted(make)


def trained_levels(rng: np.random.Generator, n_movies: int, kind: Kind, rho: float) -> Predictions:
    """Draw a corpus of four levels, and predict each movie by a model of the others."""

    def make() -> Predictions:
        drawn = level_corpus(rng, n_movies, rho, differ=kind.differ, mean=30)
        predicted = left_out(features(rng, drawn, kind, rho), drawn, levels=True)
        return levels(drawn.y, drawn.movies, predicted["score"].to_numpy())

    return accepted(make)
