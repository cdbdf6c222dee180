"""A table of metrics from a table of predictions: pooled over all clips, and by movie with an interval."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.blas import one_blas_thread
from obygaze_models.evaluation import metrics
from obygaze_models.evaluation.bootstrap import (
    DRAWN_METRICS,
    N_DRAWS,
    Draws,
    bootstrap_interval,
    draw_clips,
    within_movie_auc,
)
from obygaze_models.evaluation.intervals import t_interval
from obygaze_models.evaluation.predictions import Predictions, PredictionsError

BOOTSTRAP_SEED = 0
"""The same for every table, so that a table's intervals follow from it alone."""

Metric = Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]], float]

METRICS: dict[str, Metric] = {
    "average_precision": lambda y, score, _: metrics.average_precision(y, score),
    "f1_pos": lambda y, _, called: metrics.f1_pos(y, called),
    "f1_weighted": lambda y, _, called: metrics.f1_weighted(y, called),
    "f1_macro": lambda y, _, called: metrics.f1_macro(y, called),
    "balanced_accuracy": lambda y, _, called: metrics.balanced_accuracy(y, called),
    "auc": lambda y, score, _: metrics.auc(y, score),
}
"""Metrics of labels, scores and calls, the headline first; `within_movie_auc` is the mean by movie of auc."""


def summarise(predictions: Predictions) -> pd.DataFrame:
    """Compute every metric of every model, over its seeds.

    A model of several seeds has the mean of each metric over them: pooled, in each movie, and in each
    bootstrap draw. Intervals are of that mean, over movies: all seeds have the same ones, so more seeds make
    them no narrower than movies allow. The spread between seeds stands apart (`by_seed` gives each).

    Returns
    -------
    DataFrame
        A row for each model, task and metric, in the order of the predictions and of `METRICS`:

        - ``n_seeds``, ``seed_sd``: the seeds, and the standard deviation of the pooled metric between them;
        - ``pooled``: the metric over all out-of-fold predictions. Scores of different folds come from
          different models; metrics that rank (average_precision, auc) compare them all the same;
        - ``pooled_low``, ``pooled_high``: its 95 % interval over `N_DRAWS` two-level bootstrap draws, the
          same draws for all models;
        - ``movie_mean``, ``movie_low``, ``movie_high``: mean over movies and its 95 % t interval, of the
          ``n_movies`` whose clips define the metric (``n_undefined`` do not);
        - ``best_constant``: the pooled metric of the better of the two constant predictors;
        - ``prevalence``, ``n_clips``.

        NaN stands for undefined. The pooled ``within_movie_auc`` is, by definition, its mean over movies.

    Raises
    ------
    PredictionsError
        A model's seeds were tested on different clips.
    """
    rows: list[dict[str, object]] = []
    drawn: dict[tuple[str, ...], Draws] = {}
    for model, task, parts in _models(predictions):
        first = parts[0]
        clips = (*first["clip_id"], *first["movie"])
        # Models of one run have the same clips of a task.
        if clips not in drawn:
            drawn[clips] = _draws(first)
        y, movies = first["label"].to_numpy(), first["movie"].to_numpy(dtype=str)
        seeds = [(part["score"].to_numpy(), part["called"].to_numpy()) for part in parts]
        name: dict[str, object] = {"model": model, "task": task, "n_seeds": len(parts)}
        counts = {"prevalence": metrics.prevalence(y), "n_clips": len(y)}
        # The products are too thin for threads to be worth their waking.
        with one_blas_thread():
            rows += [name | row | counts for row in _rows(y, seeds, movies, drawn[clips])]
    return pd.DataFrame(rows)


def by_seed(predictions: Predictions) -> pd.DataFrame:
    """Compute every pooled metric of every model and seed.

    Returns
    -------
    DataFrame
        Columns model, task, seed, metric, pooled.
    """
    rows: list[dict[str, object]] = []
    for model, task, parts in _models(predictions):
        for part in parts:
            y, score, called = (part[name].to_numpy() for name in ("label", "score", "called"))
            values = {metric: function(y, score, called) for metric, function in METRICS.items()}
            values["within_movie_auc"] = metrics.within_movie_auc(y, score, part["movie"].to_numpy(dtype=str))
            seed = part["seed"].iloc[0]
            rows += [
                {"model": model, "task": task, "seed": seed, "metric": metric, "pooled": value}
                for metric, value in values.items()
            ]
    return pd.DataFrame(rows)


def _models(predictions: Predictions) -> Iterator[tuple[str, str, list[pd.DataFrame]]]:
    """Give the rows of each model on each task, calls beside, a part a seed and its clips in one order."""
    table = predictions.table.assign(called=predictions.called)
    for (model, task), every in table.groupby(["model", "task"], sort=False):
        parts = [part for _, part in every.groupby("seed", sort=False)]
        asked = pd.MultiIndex.from_frame(parts[0][["fold", "clip_id"]])
        for place, part in enumerate(parts[1:], 1):
            keyed = part.set_index(["fold", "clip_id"], drop=False)
            if len(keyed) != len(asked) or not asked.isin(keyed.index).all():
                raise PredictionsError(f"model {model}: its seeds were tested on different clips")
            parts[place] = keyed.loc[asked]
        yield str(model), str(task), parts


def _draws(part: pd.DataFrame) -> Draws:
    """Draw the clips of a part of the table; the rows of a clip tested in several folds go together."""
    ids, movies = part["clip_id"].to_numpy(dtype=str), part["movie"].to_numpy(dtype=str)
    _, first, clip_of = np.unique(ids, return_index=True, return_inverse=True)
    return draw_clips(movies[first], N_DRAWS, np.random.default_rng(BOOTSTRAP_SEED))[:, clip_of]


def _rows(
    y: NDArray[np.int64],
    seeds: Sequence[tuple[NDArray[np.float64], NDArray[np.int64]]],
    movies: NDArray[np.str_],
    draws: Draws,
) -> Iterator[dict[str, object]]:
    """Compute every metric of one model's scores and calls, its intervals, and what they stand on."""
    members = [np.flatnonzero(movies == movie) for movie in np.unique(movies)]
    positive = y.astype(bool)
    for metric, function in METRICS.items():
        by_movie = np.array(
            [[function(y[rows], score[rows], hits[rows]) for rows in members] for score, hits in seeds]
        )
        interval = t_interval(by_movie.mean(axis=0))
        about = {
            "movie_mean": interval.mean,
            "movie_low": interval.low,
            "movie_high": interval.high,
            "n_movies": interval.n_movies,
            "n_undefined": interval.n_undefined,
            "best_constant": best_constant(function, y),
        }
        drawn = DRAWN_METRICS[metric]
        each = [partial(drawn, positive, score, hits.astype(bool)) for score, hits in seeds]
        yield {"metric": metric, **_pooled([function(y, *one) for one in seeds], each, draws), **about}
        if metric == "auc":
            each = [partial(within_movie_auc, positive, score, movies) for score, _ in seeds]
            # Which movies define it depends on labels alone: the mean of means is the mean by movie.
            values = [t_interval(one).mean for one in by_movie]
            yield {"metric": "within_movie_auc", **_pooled(values, each, draws), **about}


def _pooled(
    values: list[float], each: Sequence[Callable[[Draws], NDArray[np.float64]]], draws: Draws
) -> dict[str, float]:
    """Average a metric over seeds, in truth and in every draw."""
    low, high = bootstrap_interval(lambda some: np.mean([one(some) for one in each], axis=0), draws)
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return {
        "seed_sd": spread,
        "pooled": float(np.mean(values)),
        "pooled_low": low,
        "pooled_high": high,
    }


def best_constant(metric: Metric, y: NDArray[np.int64]) -> float:
    """Give the metric of the better of always positive and always negative."""
    nothing, everything = np.zeros_like(y), np.ones_like(y)
    return float(
        np.fmax(metric(y, nothing.astype(float), nothing), metric(y, everything.astype(float), everything))
    )
