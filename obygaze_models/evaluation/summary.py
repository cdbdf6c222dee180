"""Summarise predictions as metrics: pooled over all clips and by movie, with intervals."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_models.errors import PredictionsError
from obygaze_models.evaluation.intervals import NAN, jackknife_interval, t_interval
from obygaze_models.evaluation.metrics import METRICS, Metric, prevalence, rows_by_movie, within_movie_auc
from obygaze_models.evaluation.predictions import Predictions

Point = Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]], float]
"""Labels, scores and calls [N] to a number."""


UNVARYING_AUC = 0.5
"""AUC of scores that do not vary within movies, whatever movies are drawn."""


@dataclass(frozen=True, eq=False)
class _Scored:
    """One model tested on one task: labels and movies [N], and of each seed the scores and calls [N]."""

    model: str
    task: str
    y: NDArray[np.int64]
    movies: NDArray[np.str_]
    seeds: dict[int, tuple[NDArray[np.float64], NDArray[np.int64]]]
    several_folds: bool

    def mean(self, point: Point, rows: NDArray[Any]) -> float:
        """Compute the mean over seeds of what `point` gives of some clips."""
        each = [point(self.y[rows], score[rows], called[rows]) for score, called in self.seeds.values()]
        return float(np.mean(each))

    def spread(self, metric: Callable[[NDArray[np.float64], NDArray[np.int64]], float]) -> float:
        """Compute the standard deviation of a metric of scores and calls between seeds; NaN of one seed."""
        each = [metric(*seed) for seed in self.seeds.values()]
        return float(np.std(each, ddof=1)) if len(each) > 1 else NAN


@checked
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
    for each in _models(predictions):
        name: dict[str, object] = {"model": each.model, "task": each.task, "n_seeds": len(each.seeds)}
        share = prevalence(each.y) if each.y.max(initial=0) <= 1 else NAN
        counts = {"prevalence": share, "n_clips": len(each.y)}
        rows += [name | row | counts for row in _rows(each, metrics)]
    return pd.DataFrame(rows)


def by_movie(predictions: Predictions, metrics: Mapping[str, Metric]) -> pd.DataFrame:
    """Compute metrics of every model and movie: columns task, model, metric, movie and value, over seeds."""
    return pd.DataFrame(
        {
            "task": each.task,
            "model": each.model,
            "metric": name,
            "movie": each.movies[rows[0]],
            "value": each.mean(metric.of_movie, rows),
        }
        for each in _models(predictions)
        for name, metric in metrics.items()
        for rows in rows_by_movie(each.movies)
    )


def constant_models(predictions: Predictions, task: str) -> list[str]:
    """List the models whose scores do not vary within movies: their AUC is `UNVARYING_AUC`."""
    table = predictions.table
    names = []
    for name, scores in table[table["task"] == task].groupby("model", sort=False):
        of_movies = scores.groupby(["movie", "seed", "fold"])["score"]
        spread = (of_movies.max() - of_movies.min()).max()
        if spread <= 1e-9 * scores["score"].abs().max():
            names.append(str(name))
    return names


def by_seed(predictions: Predictions, metrics: Mapping[str, Metric] = METRICS) -> pd.DataFrame:
    """Compute every pooled metric of every model and seed.

    Returns
    -------
    DataFrame
        Columns model, task, seed, metric, pooled.
    """
    rows: list[dict[str, object]] = []
    for each in _models(predictions):
        for seed, (score, called) in each.seeds.items():
            values = {name: metric(each.y, score, called) for name, metric in metrics.items()}
            if "auc" in metrics:
                values["within_movie_auc"] = within_movie_auc(each.y, score, each.movies)
            about = {"model": each.model, "task": each.task, "seed": seed}
            rows += [about | {"metric": metric, "pooled": value} for metric, value in values.items()]
    return pd.DataFrame(rows)


def _models(predictions: Predictions) -> Iterator[_Scored]:
    """Yield each model on each task; the clips of all its seeds are in one order."""
    table = predictions.table.assign(called=predictions.called)
    for (model, task), every in table.groupby(["model", "task"], sort=False):
        parts = [part.set_index(["fold", "clip_id"]) for _, part in every.groupby("seed", sort=False)]
        first, *others = parts
        for number, part in enumerate(others, 1):
            if len(part) != len(first) or not first.index.isin(part.index).all():
                raise PredictionsError(f"model {model}: its seeds were tested on different clips")
            parts[number] = part.loc[first.index]
        seeds = {
            part["seed"].iloc[0]: (part["score"].to_numpy(), part["called"].to_numpy()) for part in parts
        }
        y, movies = first["label"].to_numpy(), first["movie"].to_numpy(dtype=str)
        several_folds = len(set(first.index.get_level_values("fold"))) > 1
        yield _Scored(str(model), str(task), y, movies, seeds, several_folds)


def _rows(each: _Scored, metrics: Mapping[str, Metric]) -> Iterator[dict[str, object]]:
    """Compute every metric of one model's scores and calls, its intervals, and what they stand on."""
    y, members = each.y, rows_by_movie(each.movies)
    for name, metric in metrics.items():
        values = np.array([each.mean(metric.of_movie, rows) for rows in members])
        over_movies = t_interval(values, bounds=metric.bounds)
        method = t_interval(values, covers="method", bounds=metric.bounds)
        if not metric.method_interval:
            method = replace(method, low=NAN, high=NAN)
        defining = [y[rows] for rows, value in zip(members, values, strict=True) if not np.isnan(value)]
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
        pooled = jackknife_interval(partial(each.mean, metric), each.movies, bounds=metric.bounds)
        across = each.several_folds and metric.reads == "score"
        rows = [(name, each.spread(partial(metric, y)), pooled, across)]
        if name == "auc":
            within = each.spread(lambda score, _: within_movie_auc(y, score, each.movies))
            rows.append(("within_movie_auc", within, over_movies, False))
        for title, spread, interval, across_models in rows:
            yield {
                "metric": title,
                "seed_sd": spread,
                "pooled": interval.mean,
                "pooled_low": interval.low,
                "pooled_high": interval.high,
                "pooled_chance": chance if not np.isnan(interval.mean) else NAN,
                "across_models": across_models,
                **about,
            }


def best_constant(metric: Metric, y: NDArray[np.int64]) -> float:
    """Return the metric of the best of the predictors that give every clip the same level."""
    levels = np.arange(max(int(y.max(initial=0)), 1) + 1)
    values = [metric(y, np.full(len(y), float(level)), np.full(len(y), level)) for level in levels]
    best = np.fmax if metric.higher_is_better else np.fmin
    return float(best.reduce(values))
