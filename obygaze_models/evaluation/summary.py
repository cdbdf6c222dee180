"""A table of metrics from a table of predictions: pooled over all clips, and by movie with an interval."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.evaluation import metrics
from obygaze_models.evaluation.intervals import t_interval
from obygaze_models.evaluation.predictions import Predictions

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
        - ``movie_mean``, ``movie_low``, ``movie_high``: mean over movies and its 95 % t interval, of the
          ``n_movies`` whose clips define the metric (``n_undefined`` do not);
        - ``best_constant``: the pooled metric of the better of the two constant predictors;
        - ``prevalence``, ``n_clips``.

        NaN stands for undefined. The pooled ``within_movie_auc`` is, by definition, its mean over movies.
    """
    rows: list[dict[str, object]] = []
    called = pd.Series(predictions.called, index=predictions.table.index)
    for (model, task, seed), part in predictions.table.groupby(["model", "task", "seed"], sort=False):
        y, score = part["label"].to_numpy(), part["score"].to_numpy()
        hits, movies = called.loc[part.index].to_numpy(), part["movie"].to_numpy()
        members = [np.flatnonzero(movies == movie) for movie in np.unique(movies)]
        name = {"model": model, "task": task, "seed": seed}
        counts = {"prevalence": metrics.prevalence(y), "n_clips": len(y)}
        for metric, function in METRICS.items():
            interval = t_interval([function(y[rows_], score[rows_], hits[rows_]) for rows_ in members])
            by_movie = {
                "movie_mean": interval.mean,
                "movie_low": interval.low,
                "movie_high": interval.high,
                "n_movies": interval.n_movies,
                "n_undefined": interval.n_undefined,
                "best_constant": best_constant(function, y),
            }
            rows.append(name | {"metric": metric, "pooled": function(y, score, hits)} | by_movie | counts)
            if metric == "auc":
                rows.append(
                    name | {"metric": "within_movie_auc", "pooled": interval.mean} | by_movie | counts
                )
    return pd.DataFrame(rows)


def best_constant(metric: Metric, y: NDArray[np.int64]) -> float:
    """Give the metric of the better of always positive and always negative."""
    nothing, everything = np.zeros_like(y), np.ones_like(y)
    return float(
        np.fmax(metric(y, nothing.astype(float), nothing), metric(y, everything.astype(float), everything))
    )
