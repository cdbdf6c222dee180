"""Summarise predictions as metrics: pooled over all clips and by movie, with intervals."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.errors import PredictionsError
from obygaze_models.evaluation.intervals import NAN, Interval, jackknife_interval, t_interval
from obygaze_models.evaluation.metrics import METRICS, Metric, prevalence, rows_by_movie, within_movie_auc
from obygaze_models.evaluation.predictions import Predictions

Seeds = Sequence[tuple[NDArray[np.float64], NDArray[np.int64]]]
"""Scores and calls [N] of each seed."""

Point = Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]], float]
"""Labels, scores and calls [N] to a number."""


def summarise(predictions: Predictions, metrics: Mapping[str, Metric] = METRICS) -> pd.DataFrame:
    """Compute every metric of every model, over its seeds.

    A model of several seeds has the mean of each metric over them: pooled, and in each movie. Intervals are
    of that mean, over movies: all seeds have the same ones, so more seeds make them no narrower than movies
    allow. The spread between seeds stands apart (`by_seed` gives each).

    Parameters
    ----------
    predictions : Predictions
    metrics : mapping of str to Metric
        `METRICS` for two classes, `obygaze_models.evaluation.metrics.LEVEL_METRICS` for ordered levels.

    Returns
    -------
    DataFrame
        A row for each model, task and metric, in the order of the predictions and of `metrics`:

        - ``n_seeds``, ``seed_sd``: the seeds, and the standard deviation of the pooled metric between them;
        - ``pooled``: the metric over all out-of-fold predictions. Where ``across_models`` holds it compares
          scores of different folds, and a shift between their models decides it: no table prints it;
        - ``pooled_low``, ``pooled_high``: its 95 % jackknife interval over movies, of these trained models on
          movies like these;
        - ``pooled_chance``: its chance level, that of a random ranking or of the best constant;
        - ``movie_mean``: mean over the ``n_movies`` movies whose clips define the metric (``n_undefined`` do
          not);
        - ``movie_low``, ``movie_high``: its 95 % t interval, of these trained models on movies like these;
        - ``method_low``, ``method_high``: its 95 % interval of the method, retrained, on movies like these;
          NaN for metrics where none is known that covers (`Metric.method_interval`);
        - ``movie_chance``: the mean over these movies of the chance level;
        - ``best_constant``: the pooled metric of the better of the constant predictors;
        - ``prevalence`` (NaN for levels), ``n_clips``.

        NaN stands for undefined. Intervals stay within a metric's bounds and are undefined at them. The
        pooled ``within_movie_auc`` is, by definition, its mean over movies, with that interval.

    Raises
    ------
    PredictionsError
        A model's seeds were tested on different clips.
    """
    rows: list[dict[str, object]] = []
    for model, task, parts in _models(predictions):
        first = parts[0]
        y, movies = first["label"].to_numpy(), first["movie"].to_numpy(dtype=str)
        seeds = [(part["score"].to_numpy(), part["called"].to_numpy()) for part in parts]
        name: dict[str, object] = {"model": model, "task": task, "n_seeds": len(parts)}
        share = prevalence(y) if y.max(initial=0) <= 1 else NAN
        counts = {"prevalence": share, "n_clips": len(y)}
        several_folds = len(set(first["fold"])) > 1
        own = _rows(y, seeds, movies, metrics, several_folds=several_folds)
        rows += [name | row | counts for row in own]
    return pd.DataFrame(rows)


def by_seed(predictions: Predictions, metrics: Mapping[str, Metric] = METRICS) -> pd.DataFrame:
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
            values = {name: metric(y, score, called) for name, metric in metrics.items()}
            if "auc" in metrics:
                values["within_movie_auc"] = within_movie_auc(y, score, part["movie"].to_numpy(dtype=str))
            seed = part["seed"].iloc[0]
            rows += [
                {"model": model, "task": task, "seed": seed, "metric": metric, "pooled": value}
                for metric, value in values.items()
            ]
    return pd.DataFrame(rows)


def _models(predictions: Predictions) -> Iterator[tuple[str, str, list[pd.DataFrame]]]:
    """Return the rows of each model on each task with calls: one part per seed, clips in one order."""
    table = predictions.table.assign(called=predictions.called)
    for (model, task), every in table.groupby(["model", "task"], sort=False):
        parts = [part for _, part in every.groupby("seed", sort=False)]
        for number, part in enumerate(parts[1:], 1):
            keys = pd.MultiIndex.from_frame(parts[0][["fold", "clip_id"]])
            keyed = part.set_index(["fold", "clip_id"], drop=False)
            if len(keyed) != len(keys) or not keys.isin(keyed.index).all():
                raise PredictionsError(f"model {model}: its seeds were tested on different clips")
            parts[number] = keyed.loc[keys]
        yield str(model), str(task), parts


def _rows(
    y: NDArray[np.int64],
    seeds: Seeds,
    movies: NDArray[np.str_],
    metrics: Mapping[str, Metric],
    *,
    several_folds: bool,
) -> Iterator[dict[str, object]]:
    """Compute every metric of one model's scores and calls, its intervals, and what they stand on."""
    members = rows_by_movie(movies)
    for name, metric in metrics.items():

        def mean_of_seeds(rows: NDArray[Any], point: Point = metric) -> float:
            return float(np.mean([point(y[rows], score[rows], called[rows]) for score, called in seeds]))

        by_movie = np.array([mean_of_seeds(rows, metric.of_movie) for rows in members])
        over_movies = t_interval(by_movie, bounds=metric.bounds)
        method = t_interval(by_movie, covers="method", bounds=metric.bounds)
        if not metric.method_interval:
            method = replace(method, low=NAN, high=NAN)
        defining = [y[rows] for rows, value in zip(members, by_movie, strict=True) if not np.isnan(value)]
        about = {
            "movie_mean": over_movies.mean,
            "movie_low": over_movies.low,
            "movie_high": over_movies.high,
            "method_low": method.low,
            "method_high": method.high,
            "movie_chance": metric.chance(defining) if defining else NAN,
            "n_movies": over_movies.n_movies,
            "n_undefined": over_movies.n_undefined,
            "best_constant": best_constant(metric, y),
        }
        chance = metric.chance([y])
        pooled = jackknife_interval(mean_of_seeds, movies, bounds=metric.bounds)
        spread = _spread(seeds, partial(metric, y))
        across = several_folds and metric.reads == "score"
        yield {"metric": name, "seed_sd": spread, **_pooled(pooled, chance, across_models=across), **about}
        if name == "auc":
            spread = _spread(seeds, lambda score, _: within_movie_auc(y, score, movies))
            within = _pooled(over_movies, chance, across_models=False)
            yield {"metric": "within_movie_auc", "seed_sd": spread, **within, **about}


def _spread(seeds: Seeds, metric: Callable[[NDArray[np.float64], NDArray[np.int64]], float]) -> float:
    """Compute the standard deviation of a metric of scores and calls between seeds; NaN of one seed."""
    return float(np.std([metric(*seed) for seed in seeds], ddof=1)) if len(seeds) > 1 else NAN


def _pooled(interval: Interval, chance: float, *, across_models: bool) -> dict[str, object]:
    """Lay out a metric's interval and its chance level."""
    return {
        "pooled": interval.mean,
        "pooled_low": interval.low,
        "pooled_high": interval.high,
        "pooled_chance": chance if not np.isnan(interval.mean) else NAN,
        "across_models": across_models,
    }


def best_constant(metric: Metric, y: NDArray[np.int64]) -> float:
    """Return the metric of the best of the predictors that give every clip the same level."""
    levels = np.arange(max(int(y.max(initial=0)), 1) + 1)
    values = [metric(y, np.full(len(y), float(level)), np.full(len(y), level)) for level in levels]
    best = np.fmax if metric.higher_is_better else np.fmin
    return float(best.reduce(values))
