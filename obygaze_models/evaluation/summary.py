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
from obygaze_models.evaluation.intervals import NAN, Interval, jackknife_interval, t_interval
from obygaze_models.evaluation.metrics import METRICS, Metric, prevalence, rows_by_movie, within_movie_auc
from obygaze_models.evaluation.predictions import Predictions

Point = Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]], float]
"""Takes labels, scores and calls [N], and returns a number."""

UNVARYING_AUC = 0.5
"""AUC of scores that do not vary within movies, whatever movies are drawn."""

ROUNDING = 1e-9
"""Scores that differ by less than this share of the largest do not vary."""


@dataclass(frozen=True, eq=False)
class _Scored:
    """One model tested on one task.

    Attributes
    ----------
    model, task : str
    y : ndarray of int, shape [N]
        Labels.
    movies : ndarray of str, shape [N]
    seeds : dict of int to (scores, calls)
        For each seed, the clips' scores [N] and calls [N].
    several_folds : bool
        Whether the clips were tested in several folds.
    """

    model: str
    task: str
    y: NDArray[np.int64]
    movies: NDArray[np.str_]
    seeds: dict[int, tuple[NDArray[np.float64], NDArray[np.int64]]]
    several_folds: bool

    def mean(self, point: Point, rows: NDArray[Any]) -> float:
        """Compute a metric of some clips, and average it over seeds."""
        values = [point(self.y[rows], score[rows], called[rows]) for score, called in self.seeds.values()]
        return float(np.mean(values))

    def spread(self, metric: Callable[[NDArray[np.float64], NDArray[np.int64]], float]) -> float:
        """Compute the standard deviation of a metric of scores and calls between seeds; NaN of one seed."""
        values = [metric(score, called) for score, called in self.seeds.values()]
        if len(values) < 2:
            return NAN
        return float(np.std(values, ddof=1))


@checked
def summarise(predictions: Predictions, metrics: Mapping[str, Metric] = METRICS) -> pd.DataFrame:
    """Compute every metric of every model, over its seeds.

    A model of several seeds has the mean of each metric over them: pooled, and in each movie. Intervals are
    those of this mean over movies. As all seeds have the same movies, more seeds do not make them narrower
    than movies allow. The spread between seeds stands apart, and `by_seed` returns the metrics of each seed.

    Parameters
    ----------
    predictions : Predictions
    metrics : mapping of str to Metric
        `METRICS` for two classes, `obygaze_models.evaluation.metrics.LEVEL_METRICS` for ordered levels.

    Returns
    -------
    DataFrame
        A row for each model, task and metric, in the order of the predictions and of `metrics`:

        - ``n_seeds``, ``seed_sd``: the number of seeds, and the standard deviation of the pooled metric
          between them;
        - ``pooled``: the metric over all out-of-fold predictions. Where ``across_models`` holds, it compares
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
    for scored in _models(predictions):
        of_model: dict[str, object] = {
            "model": scored.model,
            "task": scored.task,
            "n_seeds": len(scored.seeds),
        }
        has_two_classes = scored.y.max(initial=0) <= 1
        counts = {
            "prevalence": prevalence(scored.y) if has_two_classes else NAN,
            "n_clips": len(scored.y),
        }
        rows += [of_model | row | counts for row in _rows(scored, metrics)]
    return pd.DataFrame(rows)


def by_movie(predictions: Predictions, metrics: Mapping[str, Metric]) -> pd.DataFrame:
    """Compute metrics of every model and movie, each the mean over seeds.

    Returns
    -------
    DataFrame
        Columns task, model, metric, movie and value.
    """
    values = []
    for scored in _models(predictions):
        for name, metric in metrics.items():
            for rows in rows_by_movie(scored.movies):
                value = {
                    "task": scored.task,
                    "model": scored.model,
                    "metric": name,
                    "movie": scored.movies[rows[0]],
                    "value": scored.mean(metric.of_movie, rows),
                }
                values.append(value)
    return pd.DataFrame(values)


def constant_models(predictions: Predictions, task: str) -> list[str]:
    """List the models whose scores do not vary within movies: their AUC is `UNVARYING_AUC`."""
    table = predictions.table
    names = []
    for name, scores in table[table["task"] == task].groupby("model", sort=False):
        by_fold_and_movie = scores.groupby(["movie", "seed", "fold"])["score"]
        largest_range = (by_fold_and_movie.max() - by_fold_and_movie.min()).max()
        if largest_range <= ROUNDING * scores["score"].abs().max():
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
    for scored in _models(predictions):
        for seed, (score, called) in scored.seeds.items():
            values = {name: metric(scored.y, score, called) for name, metric in metrics.items()}
            if "auc" in metrics:
                values["within_movie_auc"] = within_movie_auc(scored.y, score, scored.movies)
            of_seed = {"model": scored.model, "task": scored.task, "seed": seed}
            rows += [of_seed | {"metric": name, "pooled": value} for name, value in values.items()]
    return pd.DataFrame(rows)


def _models(predictions: Predictions) -> Iterator[_Scored]:
    """Yield each model on each task; all seeds have the clips in the order of the first seed.

    Raises
    ------
    PredictionsError
        A model's seeds were tested on different clips.
    """
    table = predictions.table.assign(called=predictions.called)
    for (model, task), rows in table.groupby(["model", "task"], sort=False):
        of_seeds = [of_seed.set_index(["fold", "clip_id"]) for _, of_seed in rows.groupby("seed", sort=False)]
        first = of_seeds[0]
        seeds = {}
        for of_seed in of_seeds:
            if len(of_seed) != len(first) or not first.index.isin(of_seed.index).all():
                raise PredictionsError(f"model {model}: its seeds were tested on different clips")
            ordered = of_seed.loc[first.index]
            seeds[ordered["seed"].iloc[0]] = (ordered["score"].to_numpy(), ordered["called"].to_numpy())
        n_folds = len(set(first.index.get_level_values("fold")))
        yield _Scored(
            model=str(model),
            task=str(task),
            y=first["label"].to_numpy(),
            movies=first["movie"].to_numpy(dtype=str),
            seeds=seeds,
            several_folds=n_folds > 1,
        )


def _rows(scored: _Scored, metrics: Mapping[str, Metric]) -> Iterator[dict[str, object]]:
    """Yield the columns of every metric of one model: pooled, by movie, and their chance levels."""
    y = scored.y
    for name, metric in metrics.items():
        chance = metric.chance([y])
        pooled = jackknife_interval(partial(scored.mean, metric), scored.movies, bounds=metric.bounds)
        over_movies, columns_by_movie = _by_movie(scored, metric)
        seed_sd = scored.spread(partial(metric, y))
        across_models = scored.several_folds and metric.reads == "score"
        rows = [(name, seed_sd, pooled, across_models)]
        if name == "auc":
            within_sd = scored.spread(lambda score, _: within_movie_auc(y, score, scored.movies))
            rows.append(("within_movie_auc", within_sd, over_movies, False))
        for row_name, spread, interval, is_across_models in rows:
            yield {
                "metric": row_name,
                "seed_sd": spread,
                "pooled": interval.mean,
                "pooled_low": interval.low,
                "pooled_high": interval.high,
                "pooled_chance": chance if not np.isnan(interval.mean) else NAN,
                "across_models": is_across_models,
                **columns_by_movie,
            }


def _by_movie(scored: _Scored, metric: Metric) -> tuple[Interval, dict[str, object]]:
    """Compute the mean of a metric over movies with its interval, and the columns on movies."""
    y = scored.y
    rows_of_movies = rows_by_movie(scored.movies)
    values = np.array([scored.mean(metric.of_movie, rows) for rows in rows_of_movies])
    over_movies = t_interval(values, bounds=metric.bounds)
    method = t_interval(values, covers="method", bounds=metric.bounds)
    if not metric.method_interval:
        method = replace(method, low=NAN, high=NAN)
    labels_of_movies = [
        y[rows] for rows, value in zip(rows_of_movies, values, strict=True) if not np.isnan(value)
    ]
    columns: dict[str, object] = {
        "movie_mean": over_movies.mean,
        "movie_low": over_movies.low,
        "movie_high": over_movies.high,
        "method_low": method.low,
        "method_high": method.high,
        "movie_chance": metric.chance(labels_of_movies) if labels_of_movies else NAN,
        "n_movies": over_movies.n_movies,
        "n_undefined": over_movies.n_undefined,
        "best_constant": best_constant(metric, y),
    }
    return over_movies, columns


def best_constant(metric: Metric, y: NDArray[np.int64]) -> float:
    """Return the metric of the best of the predictors that give every clip the same level."""
    highest = max(int(y.max(initial=0)), 1)
    values = []
    for level in range(highest + 1):
        scores = np.full(len(y), float(level))
        calls = np.full(len(y), level)
        values.append(metric(y, scores, calls))
    # NaN, where a level leaves the metric undefined, counts for nothing.
    best = np.fmax if metric.higher_is_better else np.fmin
    return float(best.reduce(values))
