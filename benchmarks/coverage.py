"""Measure how often each interval holds the truth, and how often each test is wrong, on simulated corpora.

Run by hand: ``python benchmarks/coverage.py`` (half an hour of CPU), ``--quick`` for a tenth of the data
sets, ``--part NAME`` for one part. Every
interval and every test that the zoo prints is here, through the functions that print it, and models that
are trained are the product's. Seeds are fixed: the same command prints the same tables.
`coverage_corpora.py` draws the corpora. A part of a module of its own has a function ``tables(n_sets)``
there and a line in `main`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import coverage_localise
import coverage_rate
import coverage_share
import numpy as np
import pandas as pd
from coverage_corpora import (
    KINDS,
    N_POPULATION,
    SERIAL,
    TRAINED,
    UNEVEN,
    Floats,
    Kind,
    Levels,
    corpus,
    given_levels,
    given_models,
    smooth,
    table,
    trained,
    trained_levels,
)
from measure import arguments, cpu_s, show
from scipy.special import expit, ndtri

from obygaze_models.blas import one_blas_thread
from obygaze_models.errors import ConceptError
from obygaze_models.evaluation import (
    LEVEL_METRICS,
    METRICS,
    Metric,
    Predictions,
    corrected_t,
    holm,
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
        show(cells, [*names, *columns], title)


def share(held: list[float]) -> str:
    """Print a share of the defined ones."""
    values = np.array(held)
    missing = float(np.isnan(values).mean()) if len(values) else 1.0
    if missing == 1:
        return ""
    return f"{np.nanmean(values):.3f}" + (f" ({missing:.2f} undefined)" if missing >= 0.005 else "")


def conditions(
    kinds: Mapping[str, Kind], rhos: tuple[float, ...], sizes: tuple[int, ...] = (6, 12)
) -> Iterator[tuple[str, Kind, int, float]]:
    """List kinds of corpora, numbers of movies and orders of clips."""
    for name, kind in kinds.items():
        for n_movies in sizes:
            for rho in rhos:
                yield name, kind, n_movies, rho


Draw = Callable[[np.random.Generator, int, Kind, float], "Predictions | Levels"]


def of_models(
    n_sets: int,
    draw: Draw,
    metrics: Mapping[str, Metric],
    title: str,
    *,
    kinds: Mapping[str, Kind] = KINDS,
    rhos: tuple[float, ...] = (0.0, SERIAL),
) -> None:
    """Print the coverage of intervals of given models: pooled, and by movie; truth from many movies."""
    pooled, by_movie, chance = Tally(), Tally(), Tally()
    truth: dict[tuple[str, float], pd.DataFrame] = {}
    for name, kind, n_movies, rho in conditions(kinds, rhos):
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


def of_the_method(
    n_sets: int,
    draw: Draw,
    metrics: Mapping[str, Metric],
    title: str,
    *,
    kinds: Mapping[str, Kind],
    sizes: tuple[int, ...] = (6, 12),
) -> None:
    """Print the coverage of all intervals, of models trained anew in every data set.

    The truth is the mean of the same number over the data sets: what such a study gives on average. Where a
    corpus has two equally good sets of features, both are counted, and compared as `compare` does.
    """
    method, models, pooled, null, compared = (Tally() for _ in range(5))
    for name, kind, n_movies, rho in conditions(kinds, (SERIAL,), sizes):
        row, found = (name, str(n_movies)), []
        for number in range(n_sets):
            rng = np.random.default_rng((number, n_movies, round(10 * rho), 1))
            drawn = draw(rng, n_movies, kind, rho)
            summary = summarise(drawn, metrics)  # type: ignore[arg-type]  # levels too
            found += [part.set_index("metric") for _, part in summary.groupby("model")]
            scores = [by_movie_auc(part) for _, part in drawn.table.groupby("model")]
            if len(scores) == 2:
                add_tests(compared, row, scores[0] - scores[1])
        for metric in metrics:
            values = pd.DataFrame([one.loc[metric] for one in found])
            by_movie, over_all = (float(np.nanmean(values[which])) for which in ("movie_mean", "pooled"))
            for one in values.to_dict(orient="records"):
                method.add(row, metric, one["method_low"], by_movie, one["method_high"])
                models.add(row, metric, one["movie_low"], by_movie, one["movie_high"])
                pooled.add(row, metric, one["pooled_low"], over_all, one["pooled_high"])
        if metrics is METRICS and not kind.strength:
            for one in found:
                add_null(null, row, one)
    names = ("corpus", "movies")
    method.print(f"{title}: this method, retrained, mean over movies (Nadeau-Bengio, logit scale)", names)
    models.print(f"{title}: the interval by movie of these trained models, misread as the method's", names)
    pooled.print(f"{title}: the pooled interval of these trained models, misread as the method's", names)
    if null.held:
        null.print(f"{title}: of null corpora, means, and shares of intervals", names)
    if compared.held:
        compared.print(f"{title}: two equally good feature sets, AUC by movie: false findings at .05", names)


def add_null(tally: Tally, row: tuple[str, ...], found: pd.DataFrame) -> None:
    """Note what a model that knows nothing of clips has, pooled and by movie."""
    ap, pooled, own = (found.loc[name] for name in ("average_precision", "auc", "within_movie_auc"))
    chance, held = ap["movie_chance"], tally.held[row]
    held["pooled AUC"].append(pooled["pooled"])
    tally.add(row, "wholly below .5", -1, pooled["pooled_high"], 0.5)
    held["AUC by movie"].append(own["pooled"])
    tally.add(row, "wholly below .5 ", -1, own["movie_high"], 0.5)
    tally.add(row, "holds .5", own["movie_low"], 0.5, own["movie_high"])
    tally.add(row, "holds .5, method", own["method_low"], 0.5, own["method_high"])
    held["pooled AP"].append(ap["pooled"])
    held["its chance"].append(ap["pooled_chance"])
    tally.add(row, "AP by movie holds chance", ap["movie_low"], chance, ap["movie_high"])
    tally.add(row, "holds chance, method", ap["method_low"], chance, ap["method_high"])


def by_movie_auc(predicted: pd.DataFrame) -> Floats:
    """Compute the AUC of each movie."""
    parts = [part for _, part in predicted.groupby("movie")]
    return np.array([auc(part["label"].to_numpy(), part["score"].to_numpy()) for part in parts])


def add_tests(tally: Tally, row: tuple[str, ...], difference: Floats) -> None:
    """Note which tests find a difference of movies' values that is none."""
    held = tally.held[row]
    held["sign flip"].append(float(sign_flip(difference).p <= 0.05))
    held["corrected t"].append(float(corrected_t(difference).p <= 0.05))
    models, method = t_interval(difference), t_interval(difference, covers="method")
    held["interval of models without 0"].append(float(not models.low <= 0 <= models.high))
    held["interval of the method without 0"].append(float(not method.low <= 0 <= method.high))


def tests(n_sets: int) -> None:
    """Print how often each paired test of two given models finds at 5 % what is not there."""
    tally = Tally()
    for n_movies in (6, 12):
        for number in range(n_sets):
            rng = np.random.default_rng((number, n_movies, 3))
            drawn = corpus(rng, n_movies, 0.0, differ=True)
            scores = [
                (1 + 0.4 * rng.normal(size=n_movies))[drawn.movies] * drawn.y + rng.normal(size=len(drawn.y))
                for _ in range(2)
            ]
            a, b = (by_movie_auc(table(drawn.y, drawn.movies, score, 0.0)) for score in scores)
            add_tests(tally, ("two given models of equal AUC, planted", str(n_movies)), a - b)
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


@dataclass(frozen=True)
class Course:
    """How features and presence run through a film.

    Attributes
    ----------
    features, presence : float
        Correlation with the next clip's, of features and of the latent presence.
    drift : float
        How many SD each rises or falls from a film's beginning to its end, films and columns each their way.
    """

    features: float
    presence: float
    drift: float = 0.0


COURSES = {
    "features in no order": Course(0.0, SERIAL),
    "smooth, .5": Course(0.5, SERIAL),
    "smooth, .9": Course(0.9, 0.75),
    "long memory, .98 and .95": Course(0.98, 0.95),
    "both drift by .8 SD": Course(0.9, 0.75, drift=0.8),
    "both drift by 2 SD": Course(0.9, 0.75, drift=2.0),
}


def of_concepts(n_sets: int) -> None:
    """Print how often the shift test finds concepts that features know nothing of, and the one they know."""
    tally, n_features, n_null = Tally(), 12, 4
    for (name, course), n_movies in product(COURSES.items(), (6, 12)):
        held = tally.held[name, str(n_movies)]
        for number in range(n_sets):
            rng = np.random.default_rng((number, n_movies, 5))
            sizes = rng.integers(12, 161, n_movies)
            movies = np.repeat(np.arange(n_movies), sizes)
            through = np.concatenate([np.linspace(-0.5, 0.5, n) for n in sizes])[:, None] * course.drift
            X, latent = (
                np.concatenate([smooth(rng, n, rho, columns) for n in sizes])
                + rng.choice([-1, 1], (n_movies, columns))[movies] * through
                for rho, columns in ((course.features, n_features), (course.presence, n_null + 1))
            )
            present = latent < ndtri(0.25)
            X[:, 0] += 0.5 * present[:, n_null]
            try:
                found = permutation_pvalues(X, present, movies, n_permutations=199, seed=number)
            except ConceptError:  # one of the five is in too few movies
                continue
            null = found.p[:n_null]
            held["p <= .05"] += (null <= 0.05).astype(float).tolist()
            held["p <= .01"] += (null <= 0.01).astype(float).tolist()
            held["any of 4 after Holm"].append(float((holm(null) <= 0.05).any()))
            held["lag 1 of presence"] += found.lag1.tolist()
            held["planted (0.5 SD): p <= .05"].append(float(found.p[n_null] <= 0.05))
    tally.print(
        "Concepts, circular shifts: share of false findings, and of planted ones found", ("null", "movies")
    )


def main() -> None:
    """Print every table."""
    asked = arguments(__doc__, quick=False, part="")
    few = 10 if asked.quick else 1
    parts: dict[str, Callable[[], None]] = {
        "models": lambda: of_models(300 // few, given_models, METRICS, "Two classes"),
        "uneven": lambda: of_models(
            150 // few, given_models, METRICS, "Two classes, uneven movies", kinds=UNEVEN, rhos=(SERIAL,)
        ),
        "levels": lambda: of_models(150 // few, given_levels, LEVEL_METRICS, "Levels"),
        "method": lambda: of_the_method(
            40 // few, trained, METRICS, "Two classes, trained anew", kinds=TRAINED
        ),
        "method-levels": lambda: of_the_method(
            30 // few, trained_levels, LEVEL_METRICS, "Levels, trained anew", kinds=TRAINED, sizes=(6,)
        ),
        "tests": lambda: tests(400 // few),
        "factors": lambda: of_error_factors(300 // few),
        "concepts": lambda: of_concepts(60 // few),
        "share": lambda: coverage_share.tables(60 // few),
        "rate": lambda: coverage_rate.tables(100 // few),
        "localise": lambda: coverage_localise.tables(400 // few),
    }
    if asked.part not in {"", *parts}:
        raise SystemExit(f"--part is one of {', '.join(parts)}")
    with one_blas_thread():
        for name in [asked.part] if asked.part else parts:
            start = cpu_s()
            parts[name]()
            print(f"\n({name}: {cpu_s() - start:.0f} s of CPU)", flush=True)


if __name__ == "__main__":
    main()
