"""A table of metrics from a table of predictions: pooled over all clips, and by movie with an interval."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

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
from obygaze_models.evaluation.predictions import Predictions

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
    """Compute every metric of every model.

    Returns
    -------
    DataFrame
        A row for each model, task, seed and metric, in the order of the predictions and of `METRICS`:

        - ``pooled``: the metric over all out-of-fold predictions. Scores of different folds come from
          different models; metrics that rank (average_precision, auc) compare them all the same;
        - ``pooled_low``, ``pooled_high``: its 95 % interval over `N_DRAWS` two-level bootstrap draws, the
          same draws for all models;
        - ``movie_mean``, ``movie_low``, ``movie_high``: mean over movies and its 95 % t interval, of the
          ``n_movies`` whose clips define the metric (``n_undefined`` do not);
        - ``best_constant``: the pooled metric of the better of the two constant predictors;
        - ``prevalence``, ``n_clips``.

        NaN stands for undefined. The pooled ``within_movie_auc`` is, by definition, its mean over movies.
    """
    rows: list[dict[str, object]] = []
    drawn: dict[tuple[str, ...], Draws] = {}
    called = pd.Series(predictions.called, index=predictions.table.index)
    for (model, task, seed), part in predictions.table.groupby(["model", "task", "seed"], sort=False):
        y, score = part["label"].to_numpy(), part["score"].to_numpy()
        hits, movies = called.loc[part.index].to_numpy(), part["movie"].to_numpy(dtype=str)
        clips = (*part["clip_id"], *part["movie"])
        # Models of one run have the same clips: only the last draws are worth their memory.
        drawn = {clips: drawn[clips] if clips in drawn else _draws(part)}
        name: dict[str, object] = {"model": model, "task": task, "seed": seed}
        counts = {"prevalence": metrics.prevalence(y), "n_clips": len(y)}
        # The products are too thin for threads to be worth their waking.
        with threadpool_limits(limits=1, user_api="blas"):
            rows += [name | row | counts for row in _rows(y, score, hits, movies, drawn[clips])]
    return pd.DataFrame(rows)


def _draws(part: pd.DataFrame) -> Draws:
    """Draw the clips of a part of the table; the rows of a clip tested in several folds go together."""
    ids, movies = part["clip_id"].to_numpy(dtype=str), part["movie"].to_numpy(dtype=str)
    _, first, clip_of = np.unique(ids, return_index=True, return_inverse=True)
    return draw_clips(movies[first], N_DRAWS, np.random.default_rng(BOOTSTRAP_SEED))[:, clip_of]


def _rows(
    y: NDArray[np.int64],
    score: NDArray[np.float64],
    hits: NDArray[np.int64],
    movies: NDArray[np.str_],
    draws: Draws,
) -> Iterator[dict[str, object]]:
    """Compute every metric of one model, its intervals, and what they stand on."""
    members = [np.flatnonzero(movies == movie) for movie in np.unique(movies)]
    positive, hit = y.astype(bool), hits.astype(bool)
    for metric, function in METRICS.items():
        interval = t_interval([function(y[rows], score[rows], hits[rows]) for rows in members])
        by_movie = {
            "movie_mean": interval.mean,
            "movie_low": interval.low,
            "movie_high": interval.high,
            "n_movies": interval.n_movies,
            "n_undefined": interval.n_undefined,
            "best_constant": best_constant(function, y),
        }
        low, high = bootstrap_interval(partial(DRAWN_METRICS[metric], positive, score, hit), draws)
        pooled = {"pooled": function(y, score, hits), "pooled_low": low, "pooled_high": high}
        yield {"metric": metric, **pooled, **by_movie}
        if metric == "auc":
            low, high = bootstrap_interval(partial(within_movie_auc, positive, score, movies), draws)
            pooled = {"pooled": interval.mean, "pooled_low": low, "pooled_high": high}
            yield {"metric": "within_movie_auc", **pooled, **by_movie}


def best_constant(metric: Metric, y: NDArray[np.int64]) -> float:
    """Give the metric of the better of always positive and always negative."""
    nothing, everything = np.zeros_like(y), np.ones_like(y)
    return float(
        np.fmax(metric(y, nothing.astype(float), nothing), metric(y, everything.astype(float), everything))
    )
