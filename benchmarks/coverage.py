"""Measure how often each interval holds the truth, and how often each test is wrong, on simulated corpora.

Run by hand: ``python benchmarks/coverage.py`` (some minutes on one core), ``--quick`` for a tenth of the
data sets. Every interval and every test that the zoo prints is here, through the functions that print it.
Seeds are fixed: the same command prints the same tables. `coverage_corpora.py` draws the corpora.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd
from coverage_corpora import (
    KINDS,
    N_POPULATION,
    SERIAL,
    Floats,
    Kind,
    Levels,
    corpus,
    features,
    given_levels,
    given_models,
    left_out,
    smooth,
    table,
    trained,
    trained_levels,
)
from scipy.special import expit, ndtri
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
from obygaze_studies.obygaze12.figure6 import error_factors


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
