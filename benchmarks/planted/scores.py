"""Intervals and tests of held-out scores, on planted corpora."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, ndtri

from benchmarks.planted.corpora import (
    DIFFERENT,
    KINDS,
    LINEAR,
    N_POPULATION,
    SERIAL,
    TRAINED,
    UNEVEN,
    Floats,
    Kind,
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
from benchmarks.planted.row import Cell, Column, Draw, Row
from obygaze_film.learning import change_of
from obygaze_models.errors import ConceptError, ProtocolError
from obygaze_models.evaluation import (
    LEVEL_METRICS,
    METRICS,
    Metric,
    corrected_t,
    holm,
    sign_flip,
    summarise,
    t_interval,
)
from obygaze_models.evaluation.metrics import auc
from obygaze_models.evaluation.significance import permutation_pvalues
from obygaze_models.models.fitted import fit

GROUPS = {
    "AP": ("average_precision",),
    "`f1_pos`": ("f1_pos",),
    "other F1, balanced accuracy": ("f1_weighted", "f1_macro", "balanced_accuracy"),
    "AUC": ("auc",),
}
"""Metrics that share a column."""
LEVEL_GROUPS = {"kappa": ("quadratic_kappa",), "Spearman, MAE": ("spearman", "mean_absolute_error")}
N_LEARNT = 6
N_JUDGED = 4
"""Films of the corpus, and judged ones, of `film learn`."""

Drawn = Callable[[np.random.Generator, int, Kind, float], Any]


def holds(low: float, truth: float, high: float) -> float:
    """Say whether an interval holds the truth; NaN if it is undefined."""
    return np.nan if np.isnan(low) else float(low <= truth <= high)


@lru_cache
def population(draw: Drawn, kind: Kind, rho: float) -> Mapping[str, tuple[float, float]]:
    """Compute each metric of many movies, pooled and as a mean over movies."""
    predictions = draw(np.random.default_rng(99), N_POPULATION, kind, rho)
    rows = predictions.table
    called = predictions.called
    y = rows["label"].to_numpy()
    score = rows["score"].to_numpy()
    members = list(rows.groupby("movie").indices.values())
    metrics = LEVEL_METRICS if draw is given_levels else METRICS
    truths = {}
    for name, metric in metrics.items():
        by_movie = [metric(y[movie], score[movie], called[movie]) for movie in members]
        truths[name] = (metric(y, score, called), float(np.nanmean(by_movie)))
    return truths


def of_given(rng: np.random.Generator, draw: Drawn, n_movies: int, kind: Kind, rho: float) -> Draw:
    """Ask `evaluate` for the intervals of models that are given: pooled, and by movie."""
    levels = draw is given_levels
    truth = population(draw, kind, rho)
    metrics: Mapping[str, Metric] = LEVEL_METRICS if levels else METRICS
    summary = summarise(draw(rng, n_movies, kind, rho), metrics).set_index("metric")
    groups = LEVEL_GROUPS if levels else GROUPS
    held: dict[str, list[float]] = {}
    for index, (which, key) in enumerate((("pooled", "pooled"), ("by film", "movie"))):
        for column, names in groups.items():
            of_group = held.setdefault(f"{which}: {column}", [])
            for name in names:
                if name in summary.index:
                    low = summary.loc[name, f"{key}_low"]
                    high = summary.loc[name, f"{key}_high"]
                    of_group.append(holds(low, truth[name][index], high))
    return held


def by_movie_auc(predicted: pd.DataFrame) -> Floats:
    """Compute the AUC of each movie."""
    parts = [part for _, part in predicted.groupby("movie")]
    return np.array([auc(part["label"].to_numpy(), part["score"].to_numpy()) for part in parts])


def findings(difference: Floats) -> Draw:
    """Ask each paired test, at .05, about a difference of movies' values that is none."""
    models = t_interval(difference)
    method = t_interval(difference, covers="method")
    return {
        "sign flip": sign_flip(difference).p <= 0.05,
        "corrected t": corrected_t(difference).p <= 0.05,
        "interval of the method without 0": not method.low <= 0 <= method.high,
        "interval of trained models without 0": not models.low <= 0 <= models.high,
    }


def of_given_pairs(rng: np.random.Generator, n_movies: int) -> Draw:
    """Compare two given models of equal AUC, as `compare` does."""
    drawn = corpus(rng, n_movies, 0.0, differ=True)
    reach = 1 + 0.4 * rng.normal(size=(2, n_movies))
    a, b = (
        by_movie_auc(
            table(drawn.y, drawn.movies, rows[drawn.movies] * drawn.y + rng.normal(size=len(drawn.y)), 0.0)
        )
        for rows in reach
    )
    return findings(a - b)


def of_method(rng: np.random.Generator, draw: Drawn, n_movies: int, kind: Kind) -> Draw:
    """Train models anew, of two equally good sets of features, and summarise them."""
    drawn = draw(rng, n_movies, kind, SERIAL)
    levels = draw is trained_levels
    summary = summarise(drawn, LEVEL_METRICS if levels else METRICS)
    scores = [] if levels else [by_movie_auc(part) for _, part in drawn.table.groupby("model")]
    tests = findings(scores[0] - scores[1]) if scores else {}
    return {"found": [part.set_index("metric") for _, part in summary.groupby("model")], **tests}


def method_held(draws: list[Draw]) -> Draw:
    """Count how often intervals hold what such studies give on average."""
    summaries = [summary for draw in draws for summary in draw["found"]]
    held: dict[str, list[float]] = {}
    for column, names in (GROUPS | LEVEL_GROUPS).items():
        for name in (name for name in names if name in summaries[0].index):
            values = pd.DataFrame([summary.loc[name] for summary in summaries])
            over_movies = float(np.nanmean(values["movie_mean"]))
            over_all = float(np.nanmean(values["pooled"]))
            for which, key, truth in (
                ("the method's", "method", over_movies),
                ("by film, misread", "movie", over_movies),
                ("pooled, misread", "pooled", over_all),
            ):
                held.setdefault(f"{which}: {column}", []).extend(
                    holds(low, truth, high)
                    for low, high in zip(values[f"{key}_low"], values[f"{key}_high"], strict=True)
                )
    return held


def null_of_method(draws: list[Draw]) -> Draw:
    """Say what models that know nothing of clips have, pooled and by movie."""
    summaries = [summary for draw in draws for summary in draw["found"]]
    pooled = [summary.loc["auc"] for summary in summaries]
    within_movies = [summary.loc["within_movie_auc"] for summary in summaries]
    ap = [summary.loc["average_precision"] for summary in summaries]
    return {
        "pooled AUC": [summary["pooled"] for summary in pooled],
        "its interval wholly below .5": [summary["pooled_high"] < 0.5 for summary in pooled],
        "AUC by film": [summary["pooled"] for summary in within_movies],
        "its interval holds .5": [
            holds(summary["movie_low"], truth=0.5, high=summary["movie_high"]) for summary in within_movies
        ],
        "pooled AP": [summary["pooled"] for summary in ap],
        "chance": [summary["pooled_chance"] for summary in ap],
        "AP by film holds chance": [
            holds(summary["movie_low"], summary["movie_chance"], summary["movie_high"]) for summary in ap
        ],
    }


def of_factors(rng: np.random.Generator, n_movies: int, rho: float) -> Draw:
    """Ask `paper all --only figure6` for error factors, two with an effect and two without."""
    from obygaze_studies.obygaze12.figure6 import error_factors  # it draws, too

    truth = np.array([0.8, -0.5, 0.0, 0.0])
    sizes = np.maximum(8, (40 * rng.uniform(0.5, 1.5, n_movies)).astype(int))
    movies = np.repeat(np.arange(n_movies), sizes)
    present = np.concatenate([smooth(rng, n, rho, 4) for n in sizes]) < ndtri(0.3)
    slopes = truth + 0.3 * rng.normal(size=(n_movies, 4))
    lean = -1.0 + 0.5 * rng.normal(size=n_movies)
    chance = expit(lean[movies] + np.sum(slopes[movies] * present, axis=1))
    errors = np.concatenate([smooth(rng, n, rho)[:, 0] for n in sizes]) < ndtri(chance)
    fitted = error_factors(present.astype(np.float64), errors, movies.astype(str))
    return {
        "interval holds the effect": [
            holds(*ends) for ends in zip(fitted.low, truth, fitted.high, strict=True)
        ],
        "p <= .05 without effect": fitted.p[2:] <= 0.05,
        "any of 2 after Holm": (fitted.p_holm[2:] <= 0.05).any(),
    }


def of_concepts(
    rng: np.random.Generator, n_movies: int, smoothness: float, presence: float, drift: float
) -> Draw:
    """Ask the shift test about four concepts that features know nothing of, and one that they know."""
    sizes = rng.integers(12, 161, n_movies)
    movies = np.repeat(np.arange(n_movies), sizes)
    through = np.concatenate([np.linspace(-0.5, 0.5, n) for n in sizes])[:, None] * drift

    def drifting(rho: float, n_columns: int) -> Floats:
        values = np.concatenate([smooth(rng, n, rho, n_columns) for n in sizes])
        return values + rng.choice([-1, 1], (n_movies, n_columns))[movies] * through

    X = drifting(smoothness, 12)
    latent = drifting(presence, 5)
    present = latent < ndtri(0.25)
    X[:, 0] += 0.5 * present[:, 4]
    try:
        p = permutation_pvalues(X, present, movies, n_permutations=199, seed=int(rng.integers(2**31))).p
    except ConceptError:  # one of the five is in too few movies
        return {}
    return {
        "p <= .05": p[:4] <= 0.05,
        "any of 4 after Holm": (holm(p[:4]) <= 0.05).any(),
        "planted (0.5 SD): p <= .05": p[4] <= 0.05,
    }


def of_learning(rng: np.random.Generator, kind: Kind, is_useless: bool, in_sight: bool) -> Draw:
    """Ask `film learn` whether judgements of other films help: whose labels are dealt anew, or are right.

    In sight of the score, people judge what `film next` chooses without ``--blind``: two thirds are the clips
    nearest to the threshold, and the others random ones; 12 a film.
    """
    drawn = corpus(rng, N_LEARNT + N_JUDGED, SERIAL, differ=True, mean=30)
    X = features(rng, drawn, kind, SERIAL)
    is_corpus = drawn.movies < N_LEARNT
    labelled = type(drawn)(drawn.y[is_corpus], drawn.movies[is_corpus])
    try:
        before = left_out(X[is_corpus], labelled)
        is_trained_on = is_corpus.copy()
    except ProtocolError:  # positive clips are in too few movies
        return {}
    scorer = (
        fit(LINEAR, seed=0, X=X[is_corpus], y=labelled.y, movies=labelled.movies.astype(str))
        if in_sight
        else None
    )
    for movie in range(N_LEARNT, N_LEARNT + N_JUDGED):
        rows = np.flatnonzero(drawn.movies == movie)
        if is_useless:
            drawn.y[rows] = rng.permutation(drawn.y[rows])
        if scorer is not None:
            near = np.abs(scorer.scores(X[rows], drawn.movies[rows].astype(str)) - scorer.threshold)
            order = np.argsort(near)
            rows = rows[np.append(order[:8], rng.permutation(order[8:])[:4])]
        is_trained_on[rows] = True
    after = left_out(
        X[is_trained_on],
        type(drawn)(drawn.y[is_trained_on], drawn.movies[is_trained_on]),
        tested=range(N_LEARNT),
    )
    films = pd.DataFrame({"judged": 0, "before": by_movie_auc(before), "after": by_movie_auc(after)})
    change = change_of(films)
    return {"called better": change.low > 0, "called worse": change.high < 0, "AUC gained": change.mean}


def cells(kinds: Mapping[str, Kind], draw: Drawn, *rhos: float) -> list[Cell]:
    """Make a cell of each kind of corpus, number of movies and order of clips; a line is a kind."""
    return [
        Cell((name.replace(", alike", "").replace(", differ", ""),), (draw, n, kind, rho))
        for name, kind in kinds.items()
        for n in (6, 12)
        for rho in rhos
    ]


def named(which: Iterable[str], groups: Iterable[str], low: float = -np.inf) -> dict[str, Column]:
    """Make a column of each interval and group of metrics."""
    return {f"{measure}: {group}": Column(low, digits=2) for measure in which for group in groups}


RETRAINED = [
    Cell((name.replace(", differ", ""), str(n)), (trained, n, kind))
    for name, kind in TRAINED.items()
    for n in (6, 12)
]
COURSES = {
    "features in no order": (0.0, SERIAL, 0.0),
    "smooth, .5": (0.5, SERIAL, 0.0),
    "smooth, .9": (0.9, 0.75, 0.0),
    "long memory: features .98, presence .95": (0.98, 0.95, 0.0),
    "both drift through each film by .8 SD": (0.9, 0.75, 0.8),
    "both drift by 2 SD": (0.9, 0.75, 2.0),
}
PAGE = "docs/evaluation.md"
LEVEL = Column(high=0.05)
FREE = Column()

NOT_HELD = ("by film, misread", "pooled, misread")

ROWS = [
    Row(
        "intervals", PAGE, "evaluate",
        "These trained models: how often the 95 % interval holds the value in many films. Films alike "
        "or different, 6 or 12 of them, clips in no order or in one that matters; planted is an AUC of .74, "
        "strong of .97; "
        "uneven films have 8 to 260 clips.",
        ("corpus",),
        [*cells(KINDS, given_models, 0.0, SERIAL), *cells(UNEVEN, given_models, SERIAL)],
        of_given, named(("pooled", "by film"), GROUPS, 0.9), full=100, small=2, small_cells=2,
    ),
    Row(
        "intervals-levels", PAGE, "evaluate", "The same of ordered levels.", ("corpus",),
        cells(DIFFERENT, given_levels, 0.0, SERIAL),
        of_given, named(("pooled", "by film"), LEVEL_GROUPS, 0.9), full=100, small=2, small_cells=1,
    ),
    Row(
        "method", PAGE, "evaluate",
        "This method, retrained: how often its interval holds the mean of such studies, and how often the "
        "interval of trained models does, if it is misread so.",
        ("corpus", "films"), RETRAINED, of_method,
        named(("the method's",), ("AP", "`f1_pos`", "AUC"), 0.93) | named(NOT_HELD, GROUPS),
        full=30, small=2, small_cells=1, pooled=method_held,
    ),
    Row(
        "method-levels", PAGE, "evaluate", "The same of ordered levels.", ("corpus", "films"),
        [Cell((name.replace(", differ", ""), "6"), (trained_levels, 6, kind))
         for name, kind in TRAINED.items()],
        of_method,
        named(("the method's",), ("Spearman, MAE",), 0.9) | named(NOT_HELD, LEVEL_GROUPS),
        full=20, small=2, small_cells=1, pooled=method_held,
    ),
    Row(
        "pooled", PAGE, "evaluate", "What a model has that knows nothing of clips.",
        ("corpus", "films"), RETRAINED[:2], of_method,
        {"pooled AUC": FREE, "its interval wholly below .5": FREE, "AUC by film": Column(0.47, 0.53),
         "its interval holds .5": Column(0.9), "pooled AP": FREE, "chance": FREE,
         "AP by film holds chance": Column(0.93)},
        full=30, small=2, small_cells=1, pooled=null_of_method, corpora="method",
    ),
    Row(
        "tests", PAGE, "compare", "Two models of equal AUC by film: share of false findings at .05.",
        ("null", "films"),
        [Cell(("two given models", str(n)), (n,)) for n in (6, 12)],
        of_given_pairs,
        {"sign flip": Column(high=0.06), "corrected t": LEVEL, "interval of the method without 0": LEVEL,
         "interval of trained models without 0": Column(high=0.06)},
        full=200, small=10,
    ),
    Row(
        "tests-methods", PAGE, "compare",
        "Two equally good sets of features, of which models are trained: share of findings at .05.",
        ("null", "films"), RETRAINED, of_method,
        {"sign flip": FREE, "corrected t": LEVEL, "interval of the method without 0": LEVEL,
         "interval of trained models without 0": FREE},
        full=30, small=2, small_cells=1, corpora="method",
    ),
    Row(
        "learn", "docs/film-programmers.md", "film learn",
        "Six films and four judged ones, whose labels know nothing of the clips, or are right; windows "
        "drawn blindly, or those that `film next` chooses.",
        ("judgements", "windows", "corpus"),
        [Cell((name, windows, kind), (TRAINED[own], name == "useless", windows == "chosen"))
         for name in ("useless", "right") for windows in ("all, blindly", "chosen")
         for kind, own in (("null", "null, differ"), ("planted", "planted"))],
        of_learning,
        {"called better": Column(high=0.06), "called worse": FREE, "AUC gained": Column(signed=True)},
        full=15, small=2, small_cells=1,
    ),
    Row(
        "factors", PAGE, "paper all --only figure6", "Error factors.", ("clips", "films"),
        [Cell((name, str(n)), (n, rho))
         for name, rho in (("in no order", 0.0), ("serially dependent", SERIAL)) for n in (6, 12)],
        of_factors,
        {"interval holds the effect": Column(0.93), "p <= .05 without effect": Column(high=0.06),
         "any of 2 after Holm": LEVEL},
        full=120, small=5, small_cells=2,
    ),
    Row(
        "concepts", PAGE, "evaluate (concepts)",
        "Concepts: share of false findings, and of planted ones found.",
        ("features and presence", "films"),
        [Cell((name, str(n)), (n, *course)) for name, course in COURSES.items() for n in (6, 12)],
        of_concepts,
        {"p <= .05": Column(high=0.06), "any of 4 after Holm": LEVEL,
         "planted (0.5 SD): p <= .05": Column(digits=2)},
        full=100, small=2,
    ),
]  # fmt: skip
