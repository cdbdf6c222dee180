"""Summarise predictions as metrics: pooled over all clips and by movie, with intervals."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_models.errors import PredictionsError
from obygaze_models.evaluation.intervals import (
    FEWEST_MOVIES,
    NAN,
    Interval,
    jackknife_interval,
    t_interval,
)
from obygaze_models.evaluation.metrics import METRICS, Metric, prevalence, rows_by_movie, within_movie_auc
from obygaze_models.evaluation.predictions import Predictions

MetricFunction = Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]], float]
"""Computes a metric from labels, scores and calls, [N] each."""

UNVARYING_AUC = 0.5
"""AUC of scores that do not vary, whatever movies are drawn: within movies, or pooled over all clips."""

ROUNDING = 1e-9
"""Scores that differ by at most this share of the largest count as equal: they differ by rounding."""


class _SeedResult(NamedTuple):
    """What a model of one seed predicts: the score and the call of each clip, [N] each."""

    scores: NDArray[np.float64]
    calls: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _TestedModel:
    """One model tested on one task.

    Attributes
    ----------
    model, task : str
    y : ndarray of int, shape [N]
        Labels.
    movies : ndarray of str, shape [N]
    seeds : dict of int to _SeedResult
        What the model predicts with each seed.
    several_folds : bool
        Whether the clips were tested in several folds.
    """

    model: str
    task: str
    y: NDArray[np.int64]
    movies: NDArray[np.str_]
    seeds: dict[int, _SeedResult]
    several_folds: bool

    def mean_over_seeds(self, metric: MetricFunction, rows: NDArray[Any]) -> float:
        """Compute a metric of the clips `rows` with each seed, and average it over seeds."""
        labels = self.y[rows]
        values = [metric(labels, result.scores[rows], result.calls[rows]) for result in self.seeds.values()]
        return float(np.mean(values))

    def sd_over_seeds(self, metric: MetricFunction) -> float:
        """Compute the standard deviation over seeds of a metric of all clips; NaN with one seed."""
        values = [metric(self.y, result.scores, result.calls) for result in self.seeds.values()]
        if len(values) < 2:
            return NAN
        return float(np.std(values, ddof=1))


@checked
def summarise(predictions: Predictions, metrics: Mapping[str, Metric] = METRICS) -> pd.DataFrame:
    """Compute every metric of every model, over its seeds.

    A model of several seeds has the mean of each metric over them: pooled, and in each movie. Intervals are
    those of this mean over movies. As all seeds have the same movies, more seeds do not make them narrower
    than movies allow. The spread between seeds is a column of its own, and `by_seed` returns the metrics of
    each seed.

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
        - ``pooled``: the metric over all out-of-fold predictions;
        - ``across_models``: whether the pooled metric compares scores of different folds. These come from
          different models, so that a shift between the models may decide it, and no table prints it;
        - ``pooled_low``, ``pooled_high``: its 95 % jackknife interval over movies, of these trained models on
          movies like these;
        - ``pooled_chance``: its chance level, that of a random ranking or of the best constant;
        - ``movie_mean``: mean over the ``n_movies`` movies whose clips define the metric (``n_undefined`` do
          not);
        - ``movie_low``, ``movie_high``: its 95 % t interval, of these trained models on movies like these;
        - ``method_low``, ``method_high``: its 95 % interval of the method, retrained, on movies like these;
          NaN for metrics without an interval that covers as often as it says (`Metric.method_interval`);
        - ``movie_chance``: the mean over these movies of the chance level;
        - ``best_constant``: the pooled metric of the better of the constant predictors;
        - ``prevalence`` (NaN for levels), ``n_clips``.

        Undefined values are NaN. Intervals stay within a metric's bounds, and are undefined if the mean is
        equal to a bound. The pooled ``within_movie_auc`` is, by definition, its mean over movies.

    Raises
    ------
    PredictionsError
        A model's seeds were tested on different clips.
    """
    rows: list[dict[str, object]] = []
    for scored in _scored_models(predictions):
        model_columns: dict[str, object] = {
            "model": scored.model,
            "task": scored.task,
            "n_seeds": len(scored.seeds),
        }
        has_two_classes = scored.y.max(initial=0) <= 1
        counts = {
            "prevalence": prevalence(scored.y) if has_two_classes else NAN,
            "n_clips": len(scored.y),
        }
        rows += [model_columns | row | counts for row in _metric_rows(scored, metrics)]
    return pd.DataFrame(rows)


def by_movie(predictions: Predictions, metrics: Mapping[str, Metric]) -> pd.DataFrame:
    """Compute metrics of every model and movie, each the mean over seeds.

    Returns
    -------
    DataFrame
        Columns task, model, metric, movie and value.
    """
    values = []
    for scored in _scored_models(predictions):
        for name, metric in metrics.items():
            for rows in rows_by_movie(scored.movies):
                value = {
                    "task": scored.task,
                    "model": scored.model,
                    "metric": name,
                    "movie": scored.movies[rows[0]],
                    "value": scored.mean_over_seeds(metric.of_movie, rows),
                }
                values.append(value)
    return pd.DataFrame(values)


def constant_models(predictions: Predictions, task: str) -> list[str]:
    """List the models whose scores are constant within each movie, such as constant baselines.

    Their AUC within movies is `UNVARYING_AUC`. A model that gives one score to all clips of a fold, but
    another one in each fold, is among them only if each movie is tested in a single fold. Otherwise its
    scores vary within movies, and rank the clips of one fold above those of another.
    """
    table = predictions.table
    of_task = Predictions(table[table["task"] == task].reset_index(drop=True), predictions.n_classes)
    return [
        scored.model
        for scored in _scored_models(of_task)
        if _has_unvarying_scores(scored, rows_by_movie(scored.movies))
    ]


def by_seed(predictions: Predictions, metrics: Mapping[str, Metric] = METRICS) -> pd.DataFrame:
    """Compute every pooled metric of every model and seed.

    Beside the pooled ``auc`` there is ``within_movie_auc``, the mean of the AUC of each movie.

    Returns
    -------
    DataFrame
        Columns model, task, seed, metric, pooled.
    """
    rows: list[dict[str, object]] = []
    for scored in _scored_models(predictions):
        for seed, result in scored.seeds.items():
            values = {}
            for name, metric in metrics.items():
                values[name] = metric(scored.y, result.scores, result.calls)
            if "auc" in metrics:
                values["within_movie_auc"] = within_movie_auc(scored.y, result.scores, scored.movies)
            seed_columns = {"model": scored.model, "task": scored.task, "seed": seed}
            for name, value in values.items():
                rows.append({**seed_columns, "metric": name, "pooled": value})
    return pd.DataFrame(rows)


def _scored_models(predictions: Predictions) -> Iterator[_TestedModel]:
    """Yield the predictions of each model on each task, with the clips in the same order for all seeds.

    Raises
    ------
    PredictionsError
        A model's seeds were tested on different clips.
    """
    table = predictions.table.assign(called=predictions.called)
    for (model, task), rows in table.groupby(["model", "task"], sort=False):
        tables_by_seed: dict[Any, pd.DataFrame] = {}
        for seed, rows_of_seed in rows.groupby("seed", sort=False):
            # A clip may be tested in several folds.
            tables_by_seed[seed] = rows_of_seed.set_index(["fold", "clip_id"])
        first = next(iter(tables_by_seed.values()))
        n_folds = len(set(first.index.get_level_values("fold")))
        yield _TestedModel(
            model=str(model),
            task=str(task),
            y=first["label"].to_numpy(),
            movies=first["movie"].to_numpy(dtype=str),
            seeds=_results_in_one_order(tables_by_seed, str(model)),
            several_folds=n_folds > 1,
        )


def _results_in_one_order(tables_by_seed: Mapping[int, pd.DataFrame], model: str) -> dict[int, _SeedResult]:
    """Return what a model predicts with each seed, with the clips in the order of the first seed.

    The tables, by seed, have a row for each clip in each fold, by which they are indexed. `model` is the
    model's name, for the message.

    Raises
    ------
    PredictionsError
        The model's seeds were tested on different clips, or in different folds.
    """
    first = next(iter(tables_by_seed.values()))
    results: dict[int, _SeedResult] = {}
    for seed, table in tables_by_seed.items():
        has_as_many_clips = len(table) == len(first)
        has_all_clips = first.index.isin(table.index).all()
        if not has_as_many_clips or not has_all_clips:
            raise PredictionsError(f"model {model}: its seeds were tested on different clips")
        ordered = table.loc[first.index]
        results[seed] = _SeedResult(ordered["score"].to_numpy(), ordered["called"].to_numpy())
    return results


def _metric_rows(scored: _TestedModel, metrics: Mapping[str, Metric]) -> Iterator[dict[str, object]]:
    """Yield the row of `summarise` for every metric of one model on one task.

    A row has the metric of all clips together (pooled) and its mean over movies. The metric auc has a second
    row, ``within_movie_auc``, the AUC to which telling movies apart adds nothing: its pooled value is, by
    definition, the mean over movies.
    """

    def auc_within_movies(
        y: NDArray[np.int64], scores: NDArray[np.float64], _calls: NDArray[np.int64]
    ) -> float:
        """Compute the mean over movies of the AUC, of all clips."""
        return within_movie_auc(y, scores, scored.movies)

    for name, metric in metrics.items():
        chance = metric.chance([scored.y])
        # A metric of all clips together is no mean over movies, so that its interval is by the jackknife,
        # which computes the metric of many sets of clips: by a function of these clips.
        metric_of_clips = partial(scored.mean_over_seeds, metric)
        pooled = jackknife_interval(metric_of_clips, scored.movies, bounds=metric.bounds)
        all_clips = np.arange(len(scored.y))
        has_enough_movies = pooled.n_movies >= FEWEST_MOVIES
        if name == "auc" and has_enough_movies and _has_unvarying_scores(scored, [all_clips]):
            # Scores that are equal for all clips have an AUC of .5 whatever movies are drawn: no uncertainty.
            pooled = replace(pooled, low=pooled.mean, high=pooled.mean)
        over_movies = _metric_over_movies(scored, metric)
        # Scores of different folds come from different models.
        compares_models = scored.several_folds and metric.reads == "score"
        yield {
            "metric": name,
            "seed_sd": scored.sd_over_seeds(metric),
            **_pooled_columns(pooled, chance),
            "across_models": compares_models,
            **over_movies.columns,
        }
        if name == "auc":
            yield {
                "metric": "within_movie_auc",
                "seed_sd": scored.sd_over_seeds(auc_within_movies),
                **_pooled_columns(over_movies.interval, chance),
                "across_models": False,
                **over_movies.columns,
            }


def _has_unvarying_scores(scored: _TestedModel, groups_of_rows: Sequence[NDArray[np.intp]]) -> bool:
    """Tell whether a model gives all clips of a group one score, in every group and with every seed."""
    for result in scored.seeds.values():
        for rows in groups_of_rows:
            if not do_not_vary(result.scores[rows]):
                return False
    return True


def do_not_vary(scores: NDArray[np.float64]) -> bool:
    """Tell whether the scores of one clip or more are one number, but for rounding."""
    return bool(np.ptp(scores) <= ROUNDING * np.abs(scores).max())


def _pooled_columns(interval: Interval, chance: float) -> dict[str, object]:
    """Return the columns of a metric over all clips: value, interval and chance level; NaN if undefined."""
    return {
        "pooled": interval.mean,
        "pooled_low": interval.low,
        "pooled_high": interval.high,
        "pooled_chance": chance if not np.isnan(interval.mean) else NAN,
    }


class _OverMovies(NamedTuple):
    """The mean of a metric over movies with its interval, and the columns of `summarise` on movies."""

    interval: Interval
    columns: dict[str, object]


def _metric_over_movies(scored: _TestedModel, metric: Metric) -> _OverMovies:
    """Average a metric of one model over movies, with intervals and the chance level."""
    y = scored.y
    rows_of_movies = rows_by_movie(scored.movies)
    values = np.array([scored.mean_over_seeds(metric.of_movie, rows) for rows in rows_of_movies])

    # Intervals of these trained models, and of the method if it were retrained. The latter is given only for
    # metrics for which it was measured to cover what it says.
    possible = None  # the lowest and the highest value that the mean may have, if less than `bounds` allow
    if metric.name == "auc" and _has_unvarying_scores(scored, rows_of_movies):
        # Scores that are equal within each movie have this AUC in all movies.
        possible = (UNVARYING_AUC, UNVARYING_AUC)
    models_interval = t_interval(values, covers="models", bounds=metric.bounds, possible=possible)
    method_interval = t_interval(values, covers="method", bounds=metric.bounds, possible=possible)
    if not metric.method_interval:
        method_interval = replace(method_interval, low=NAN, high=NAN)

    # Chance is that of the movies whose clips define the metric.
    is_defined = ~np.isnan(values)
    labels_of_movies = [y[rows_of_movies[movie]] for movie in np.flatnonzero(is_defined)]
    columns: dict[str, object] = {
        "movie_mean": models_interval.mean,
        "movie_low": models_interval.low,
        "movie_high": models_interval.high,
        "method_low": method_interval.low,
        "method_high": method_interval.high,
        "movie_chance": metric.chance(labels_of_movies) if labels_of_movies else NAN,
        "n_movies": models_interval.n_movies,
        "n_undefined": models_interval.n_undefined,
        "best_constant": value_of_best_constant(metric, y),
    }
    return _OverMovies(models_interval, columns)


def value_of_best_constant(metric: Metric, y: NDArray[np.int64]) -> float:
    """Return the value of a metric for the best constant prediction: the same level for every clip."""
    highest = max(int(y.max(initial=0)), 1)  # of two classes the levels are 0 and 1
    values = []
    for level in range(highest + 1):
        scores = np.full(len(y), float(level))
        calls = np.full(len(y), level)
        values.append(metric(y, scores, calls))
    # Levels for which the metric is undefined (NaN) are ignored.
    best = np.fmax if metric.higher_is_better else np.fmin
    return float(best.reduce(values))
