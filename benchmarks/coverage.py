"""Measure how often each interval holds the truth, and how often each test is wrong, on simulated corpora.

Run by hand: ``python benchmarks/coverage.py`` (some minutes on one core), ``--quick`` for a tenth of the
data sets. Every interval and every test that the zoo prints is here, through the functions that print it.
Seeds are fixed: the same command prints the same tables.

Corpora have 6 or 12 movies of 20 to 60 clips, a quarter of them positive, of movies that are alike or differ
(in their share of positives, and in an offset of all scores), of clips in no order or in one that matters
(labels and noise are first-order autoregressions). *null*: nothing is known of labels. *planted*: an AUC of
about .74. *strong*: about .97.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri
from tabulate import tabulate

from obygaze_models.blas import one_blas_thread
from obygaze_models.evaluation import (
    LEVEL_METRICS,
    METRICS,
    Metric,
    Predictions,
    corrected_t,
    sign_flip,
    summarise,
    t_interval,
)
from obygaze_models.evaluation.metrics import auc
from obygaze_models.evaluation.significance import permutation_pvalues
from obygaze_models.obygaze12.error_factors import error_factors
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


class Tally:
    """Counts of what held, by row and column of a table."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def add(self, row: tuple[str, ...], column: str, low: float, truth: float, high: float) -> None:
        """Note whether an interval holds the truth; an undefined interval is in no count."""
        self.held[row][column].append(np.nan if np.isnan(low) else float(low <= truth <= high))

    def print(self, title: str, names: tuple[str, ...]) -> None:
        """Print the share that held, and in brackets the share of intervals that are undefined, if any."""
        columns = list(dict.fromkeys(name for row in self.held.values() for name in row))
        cells = [[*row, *(share(held.get(name, [])) for name in columns)] for row, held in self.held.items()]
        print(f"\n## {title}\n")
        print(tabulate(cells, [*names, *columns], tablefmt="github", disable_numparse=True), flush=True)


def share(held: list[float]) -> str:
    """Print a share of the defined ones."""
    values = np.array(held)
    missing = float(np.isnan(values).mean()) if len(values) else 1.0
    if missing == 1:
        return ""
    return f"{np.nanmean(values):.3f}" + (f" ({missing:.2f} undefined)" if missing >= 0.005 else "")


def conditions(rhos: tuple[float, ...]) -> Iterator[tuple[str, Kind, int, float]]:
    """List kinds of corpora, numbers of movies and orders of clips."""
    for name, kind in KINDS.items():
        for n_movies in (6, 12):
            for rho in rhos:
                yield name, kind, n_movies, rho


Draw = Callable[[np.random.Generator, int, Kind, float], "Predictions | Levels"]


def of_models(n_sets: int, draw: Draw, metrics: Mapping[str, Metric], title: str) -> None:
    """Print the coverage of intervals of given models: pooled, and by movie; truth from many movies."""
    pooled, by_movie, chance = Tally(), Tally(), Tally()
    truth: dict[tuple[str, float], pd.DataFrame] = {}
    for name, kind, n_movies, rho in conditions((0.0, SERIAL)):
        if (name, rho) not in truth:
            population = draw(np.random.default_rng(99), N_POPULATION, kind, rho)
            truth[name, rho] = point_values(population, metrics)
        row = (name, str(n_movies), "serial" if rho else "none")
        for number in range(n_sets):
            rng = np.random.default_rng((number, n_movies, round(10 * rho)))
            found = summarise(draw(rng, n_movies, kind, rho), metrics).set_index("metric")  # type: ignore[arg-type]  # levels too
            for metric in metrics:
                one, true = found.loc[metric], truth[name, rho].loc[metric]
                pooled.add(row, metric, one["pooled_low"], true["pooled"], one["pooled_high"])
                by_movie.add(row, metric, one["movie_low"], true["movie"], one["movie_high"])
                if metric == "average_precision" and not kind.strength:
                    chance.add(row, "AP by movie", one["movie_low"], one["movie_chance"], one["movie_high"])
    names = ("corpus", "movies", "order")
    pooled.print(f"{title}: these trained models, pooled (jackknife, logit scale)", names)
    by_movie.print(f"{title}: these trained models, mean over movies (t, logit scale)", names)
    if chance.held:
        chance.print(f"{title}: null corpora whose interval holds `movie_chance`", names)


def point_values(predictions: "Predictions | Levels", metrics: Mapping[str, Metric]) -> pd.DataFrame:
    """Compute each metric pooled and as mean over movies, without intervals: the movies are thousands."""
    rows = predictions.table
    y, score, called = rows["label"].to_numpy(), rows["score"].to_numpy(), predictions.called
    members = list(rows.groupby("movie").indices.values())
    values = {
        name: {
            "pooled": metric(y, score, called),
            "movie": np.nanmean([metric(y[own], score[own], called[own]) for own in members]),
        }
        for name, metric in metrics.items()
    }
    return pd.DataFrame(values).T


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


def of_the_method(n_sets: int, draw: Draw, metrics: Mapping[str, Metric], title: str) -> None:
    """Print the coverage of both kinds of interval, of models trained anew in every data set.

    The truth is the mean of the same number over the data sets: what such a study gives on average.
    """
    models, method, other = Tally(), Tally(), Tally()
    for name, kind, n_movies, rho in conditions((0.0, SERIAL)):
        found = []
        for number in range(n_sets):
            rng = np.random.default_rng((number, n_movies, round(10 * rho), 1))
            found.append(summarise(draw(rng, n_movies, kind, rho), metrics).set_index("metric"))  # type: ignore[arg-type]  # levels too
        row = (name, str(n_movies), "serial" if rho else "none")
        for metric in metrics:
            truth = float(np.nanmean([one.loc[metric, "movie_mean"] for one in found]))
            for one in (each.loc[metric] for each in found):
                models.add(row, metric, one["movie_low"], truth, one["movie_high"])
                method.add(row, metric, one["method_low"], truth, one["method_high"])
        if metrics is METRICS and not kind.strength:
            for one in found:
                ap, pooled, own = (one.loc[n] for n in ("average_precision", "auc", "within_movie_auc"))
                chance = ap["movie_chance"]
                other.add(row, "AP by movie holds chance", ap["movie_low"], chance, ap["movie_high"])
                other.add(row, "of the method", ap["method_low"], chance, ap["method_high"])
                other.add(row, "within-movie AUC holds .5", own["movie_low"], 0.5, own["movie_high"])
                other.add(row, "of the method ", own["method_low"], 0.5, own["method_high"])
                other.add(row, "pooled AUC holds .5", pooled["pooled_low"], 0.5, pooled["pooled_high"])
                other.add(row, "is wholly below", -1, pooled["pooled_high"], 0.5)
    names = ("corpus", "movies", "order")
    method.print(f"{title}: this method, retrained, mean over movies (Nadeau-Bengio, logit scale)", names)
    models.print(f"{title}: the interval of these trained models, misread as one of the method", names)
    if other.held:
        other.print(f"{title}: null corpora", names)


def by_movie_auc(predicted: pd.DataFrame) -> Floats:
    """Compute the AUC of each movie."""
    parts = [part for _, part in predicted.groupby("movie")]
    return np.array([auc(part["label"].to_numpy(), part["score"].to_numpy()) for part in parts])


def tests(n_sets: int) -> None:
    """Print how often each paired test finds at 5 % what is not there."""
    tally = Tally()

    def add(row: tuple[str, ...], difference: Floats) -> None:
        held = tally.held[row]
        held["sign flip"].append(float(sign_flip(difference).p <= 0.05))
        held["corrected t"].append(float(corrected_t(difference).p <= 0.05))
        models, method = t_interval(difference), t_interval(difference, covers="method")
        held["interval of models without 0"].append(float(not models.low <= 0 <= models.high))
        held["interval of the method without 0"].append(float(not method.low <= 0 <= method.high))

    for name, n_movies in ((name, n) for name in ("planted", "strong") for n in (6, 12)):
        kind = KINDS[name]
        for number in range(n_sets):
            rng = np.random.default_rng((number, n_movies, 2))
            drawn = corpus(rng, n_movies, 0.0, differ=True, mean=30)
            a, b = (by_movie_auc(left_out(features(rng, drawn, kind, 0.0), drawn)) for _ in range(2))
            add((f"two equally good feature sets, {name}", str(n_movies)), a - b)
    for n_movies in (6, 12):
        for number in range(n_sets):
            rng = np.random.default_rng((number, n_movies, 3))
            drawn = corpus(rng, n_movies, 0.0, differ=True)
            scores = [
                (1 + 0.4 * rng.normal(size=n_movies))[drawn.movies] * drawn.y + rng.normal(size=len(drawn.y))
                for _ in range(2)
            ]
            a, b = (by_movie_auc(table(drawn.y, drawn.movies, score, 0.0)) for score in scores)
            add(("two given models of equal AUC, planted", str(n_movies)), a - b)
    tally.print("Two models compared, AUC by movie: share of false findings at .05", ("null", "movies"))


def of_error_factors(n_sets: int) -> None:
    """Print the coverage of intervals of error factors, and false findings of factors without effect."""
    tally, truth = Tally(), np.array([0.8, -0.5, 0.0, 0.0])
    for n_movies, rho in ((n, rho) for n in (6, 12) for rho in (0.0, SERIAL)):
        row = (str(n_movies), "serial" if rho else "none")
        for number in range(n_sets):
            rng = np.random.default_rng((number, n_movies, round(10 * rho), 4))
            sizes = np.maximum(8, (40 * rng.uniform(0.5, 1.5, n_movies)).astype(int))
            movies = np.repeat(np.arange(n_movies), sizes)
            present = np.concatenate([smooth(rng, n, rho, 4) for n in sizes]) < ndtri(0.3)
            slopes = truth + 0.3 * rng.normal(size=(n_movies, 4))
            lean = -1.0 + 0.5 * rng.normal(size=n_movies)
            chance = expit(lean[movies] + np.sum(slopes[movies] * present, axis=1))
            errors = np.concatenate([smooth(rng, n, rho)[:, 0] for n in sizes]) < ndtri(chance)
            found = error_factors(present.astype(np.float64), errors, movies.astype(str))
            for place, true in enumerate(truth):
                column = "with effect" if true else "without effect"
                tally.add(row, column, found.low[place], true, found.high[place])
            tally.held[row]["p <= .05 without effect"] += [float(p <= 0.05) for p in found.p[2:]]
            tally.held[row]["any of 2 false after Holm"].append(float((found.p_holm[2:] <= 0.05).any()))
    tally.print("Error factors: coverage, and false findings", ("movies", "order"))


def of_concepts(n_sets: int) -> None:
    """Print how often the shift test finds concepts in features that know nothing of them."""
    tally = Tally()
    for n_movies, rho in ((n, rho) for n in (6, 12) for rho in (0.0, 0.5, 0.9)):
        row = (str(n_movies), f"{rho}")
        for number in range(n_sets):
            rng = np.random.default_rng((number, n_movies, round(10 * rho), 5))
            sizes = (60 * rng.uniform(0.5, 1.5, n_movies)).astype(int)
            movies = np.repeat(np.arange(n_movies), sizes)
            X = np.concatenate([smooth(rng, n, rho, 16) for n in sizes])
            present = np.concatenate([smooth(rng, n, SERIAL, 4) for n in sizes]) < ndtri(0.25)
            found = permutation_pvalues(X, present, movies, n_permutations=199, seed=number)
            tally.held[row]["p <= .05"] += (found.p <= 0.05).astype(float).tolist()
            tally.held[row]["p <= .01"] += (found.p <= 0.01).astype(float).tolist()
            tally.held[row]["any of 4 after Holm"].append(float((found.p_holm <= 0.05).any()))
            tally.held[row]["lag 1 of presence"] += found.lag1.tolist()
            X[:, 0] += 0.5 * present[:, 0]
            planted = permutation_pvalues(X, present[:, :1], movies, n_permutations=199, seed=number)
            tally.held[row]["planted (0.5 SD): p <= .05"].append(float(planted.p[0] <= 0.05))
    tally.print(
        "Concepts, circular shifts: share of false findings, and of planted ones found",
        ("movies", "smoothness of features"),
    )


def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the data sets")
    parser.add_argument("--part", help="one part only")
    arguments = parser.parse_args()
    few = 10 if arguments.quick else 1
    parts: dict[str, Callable[[], None]] = {
        "models": lambda: of_models(300 // few, given_models, METRICS, "Two classes"),
        "levels": lambda: of_models(150 // few, given_levels, LEVEL_METRICS, "Levels"),
        "method": lambda: of_the_method(200 // few, trained, METRICS, "Two classes, trained anew"),
        "method-levels": lambda: of_the_method(
            100 // few, trained_levels, LEVEL_METRICS, "Levels, trained anew"
        ),
        "tests": lambda: tests(400 // few),
        "factors": lambda: of_error_factors(300 // few),
        "concepts": lambda: of_concepts(100 // few),
    }
    if arguments.part not in {None, *parts}:
        parser.error(f"--part is one of {', '.join(parts)}")
    began = time.process_time()
    with one_blas_thread():
        for name, part in parts.items():
            if arguments.part in (None, name):
                start = time.process_time()
                part()
                print(f"\n({name}: {time.process_time() - start:.0f} s of CPU)", flush=True)
    print(f"\n{time.process_time() - began:.0f} s of CPU")


if __name__ == "__main__":
    main()
