"""Convert runs to reports."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from obygaze_features.arguments import checked
from obygaze_features.manifest import counted
from obygaze_models.evaluation.intervals import CAPTIONS
from obygaze_models.evaluation.metrics import Metric, metrics_of
from obygaze_models.evaluation.run import Run
from obygaze_models.models.names import BASELINES, HOMES, OTHER
from obygaze_models.report.blocks import (
    NOTHING,
    Block,
    Column,
    Report,
    block,
    interval,
    number,
)
from obygaze_models.report.layer_figure import layer_pictures
from obygaze_models.report.run_answers import MEANING, answers, constant_controls, is_yardstick, title_prefix
from obygaze_models.report.run_notes import limits, notes

NEAR = 0.9
"""A by-movie AP above which an interval covers less than its nominal level (docs/evaluation.md)."""


@checked
def run_report(run: Run) -> Report:
    """Lay out a run: metrics by movie with intervals, metrics over all clips, and the data behind them.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> report = om.run_report(om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s"))
    >>> report.blocks[0].title
    'AP by movie, mean of 6; 59 clips of 6 films tested'
    """
    metrics = metrics_of(run.predictions.n_classes, run.own_metrics)
    blocks: list[Block] = []
    for task, before, models in _tasks(run):
        tested = _tested(run, task)
        shown = [name for name in _with_table(metrics, models) if _n_movies(models, name)]
        tables_of_task = [_by_movie(models, metrics[name], before, tested) for name in shown]
        tables_of_task.append(_pooled(models, metrics, before, tested))
        constant = constant_controls(run, task)
        blocks += [_without_constant(table, constant) for table in tables_of_task]
    if len(run.record["seeds"]) > 1:
        blocks.append(_spread(run, metrics))
    record = run.record
    tests = ", ".join(target["title"] for target in record["tests"])
    return Report(
        name="evaluate",
        title=f"{record['train']['title']}, tested on {tests}",
        notes=notes(run),
        blocks=tuple(_with_yardsticks(table) for table in blocks),
        data=run.metrics,
        record=record,
        pictures=layer_pictures(run),
        titles=run.titles,
        answers=answers(run),
    )


def _without_constant(block: Block, controls: Sequence[str]) -> Block:
    """Leave out the rows of controls whose scores do not vary, and note that they control nothing."""
    if not controls:
        return block
    rows = tuple(row for row in block.rows if row[0] not in controls)
    dots = tuple(dot for dot in block.dots if dot[0] not in controls)
    notes = [f"{name} is no control here: its scores do not vary within movies" for name in controls]
    return replace(block, rows=rows, dots=dots, notes=(*block.notes, *notes))


def _with_yardsticks(block: Block) -> Block:
    """Mark the rows of a table that only serve comparison."""
    yardsticks = frozenset(row[0] for row in block.rows if is_yardstick(row[0]))
    return replace(block, beside=yardsticks)


def short_report(run: Run) -> Report:
    """Lay out what a run answers: one table a task, with a row for each model of features, and sentences."""
    metrics = metrics_of(run.predictions.n_classes, run.own_metrics)
    blocks = []
    for task, before, models in _tasks(run):
        names = sorted(_with_table(metrics, models), key=lambda name: not metrics[name].answers)
        if _n_movies(models, names[0]):
            title = f"{before}by movie, mean of {_n_movies(models, names[0])}; {_tested(run, task)}"
            table = _short_table(title, models, [metrics[name] for name in names])
            blocks.append(_without_constant(table, constant_controls(run, task)))
        else:
            blocks.append(_pooled(models, metrics, before, _tested(run, task)))
    full_report = run_report(run)
    short = tuple(line for line in full_report.answers if MEANING not in line)
    return replace(full_report, notes=limits(run), blocks=tuple(blocks), answers=short)


def _short_table(title: str, models: Mapping[str, Mapping[Any, Any]], metrics: Sequence[Metric]) -> Block:
    """Lay out means over movies of each model by metric, the first metric with its interval; and chance."""
    first, *more_metrics = metrics
    names = [metric.name for metric in metrics]
    shown = {model: values for model, values in models.items() if model not in HOMES[BASELINES]}
    if not shown:
        shown = dict(models)
    rows = {}
    for model, values in shown.items():
        if model == OTHER:
            # Calls of people rank no clips: metrics of scores do not apply.
            texts = _numbers(values, names, "movie_mean")
            rows[model] = [
                NOTHING if metric.reads == "score" else text
                for metric, text in zip(metrics, texts, strict=True)
            ]
            continue
        mean = values[first.name]
        with_interval = interval(mean["movie_mean"], mean["movie_low"], mean["movie_high"])
        rows[model] = [with_interval, *_numbers(values, names[1:], "movie_mean")]
    rows["(chance)"] = _numbers(next(iter(models.values())), names, "movie_chance")
    headers = [f"{first.title} [95 %]", *(metric.title for metric in more_metrics)]
    return _table(title, headers, rows)


class _Task(NamedTuple):
    """A task of a run: its name, the beginning of its tables' titles, its metrics by model and metric."""

    name: str
    before: str
    models: dict[str, dict[Any, Any]]


def _tasks(run: Run) -> Iterator[_Task]:
    """Yield the tasks of a run."""
    for task, metrics in run.metrics.groupby("task", sort=False):
        models = {}
        for model, metrics_of_model in metrics.groupby("model", sort=False):
            models[str(model)] = metrics_of_model.set_index("metric").to_dict(orient="index")
        yield _Task(str(task), title_prefix(run, task), models)


def _with_table(metrics: Mapping[str, Metric], models: Mapping[str, Mapping[Any, Any]]) -> list[str]:
    """List the metrics shown by movie; balanced accuracy only where people, who give calls, are compared."""
    first_model = next(iter(models.values()))
    listed = [
        name for name in metrics if name in first_model and metrics[name].shown and metrics[name].by_movie
    ]
    names = sorted(listed, key=lambda name: metrics[name].by_movie)
    return [name for name in names if name != "balanced_accuracy" or OTHER in models]


def _tested(run: Run, task: str) -> str:
    """Say how many clips of how many films were tested."""
    clips = run.predictions.table.loc[run.predictions.table["task"] == task, ["clip_id", "movie"]]
    n_clips = clips["clip_id"].nunique()
    n_movies = clips["movie"].nunique()
    return f"{counted(n_clips, 'clip')} of {counted(n_movies, 'film')} tested"


def _n_movies(models: Mapping[str, Mapping[Any, Any]], metric: str) -> int:
    """Count the movies that define a metric of models tested on the same clips."""
    return int(next(iter(models.values()))[metric]["n_movies"])


def _numbers(by_metric: Mapping[Any, Any], names: Sequence[str], key: str) -> list[str]:
    """Write one number of each of some metrics; `key` names the number."""
    return [number(by_metric[name][key]) for name in names]


def _pooled(
    models: Mapping[str, Mapping[Any, Any]], metrics: Mapping[str, Metric], before: str, tested: str
) -> Block:
    """Lay out metrics over all clips; metrics of scores only where one model gave all scores."""
    first_model = next(iter(models.values()))
    names = [
        name
        for name in metrics
        if name in first_model and metrics[name].shown and not first_model[name]["across_models"]
    ]
    rows = {model: _numbers(by_metric, names, "pooled") for model, by_metric in models.items()}
    rows["(chance)"] = _numbers(first_model, names, "pooled_chance")
    return _table(f"{before}all clips pooled; {tested}", [metrics[name].title for name in names], rows)


def _table(title: str, headers: Sequence[str], rows: Mapping[str, Sequence[str]]) -> Block:
    """Make a table of models: model -> its cells."""
    return Block(title, ("model", *headers), tuple((model, *cells) for model, cells in rows.items()))


def _by_movie(models: Mapping[str, Mapping[Any, Any]], metric: Metric, before: str, tested: str) -> Block:
    """Lay out one metric's mean over movies for each model, with both kinds of intervals."""
    rows = [
        {"model": model, **by_metric[metric.name]}
        for model, by_metric in models.items()
        if model != OTHER or metric.reads == "called"  # a call ranks nothing
    ]
    first = rows[0]
    n_undefined = int(first["n_undefined"])
    notes = []
    if n_undefined:
        movies = counted(n_undefined, "movie")
        notes.append(f"left out: {movies} without both classes")
    if metric.name == "average_precision" and any(row["movie_mean"] > NEAR for row in rows):
        notes.append(CAPTIONS["near bound"])
    columns: list[Column] = [
        ("model", "model", str),
        ("these models [95 %]", ("movie_mean", "movie_low", "movie_high"), interval),
        ("method [95 %]", ("method_low", "method_high"), _limits),
    ]
    title = f"{before}{metric.title} by movie, mean of {int(first['n_movies'])}; {tested}"
    chance = float(first["movie_chance"])
    return block(title, columns, rows, notes, [("(chance)", number(chance), NOTHING)], reference=chance)


def _limits(low: float, high: float) -> str:
    """Write the ends of an interval."""
    return NOTHING if math.isnan(low) else f"[{low:.3f}, {high:.3f}]"


def _spread(run: Run, metrics: Mapping[str, Metric]) -> Block:
    """Lay out how far the pooled metrics of each model differ between seeds."""
    pooled = set(run.metrics.loc[~run.metrics["across_models"], "metric"])
    names = [name for name in metrics if metrics[name].shown and name in pooled]
    of_several_seeds = run.metrics[run.metrics["n_seeds"] > 1]
    rows = {}
    for (task, model), metrics_of_model in of_several_seeds.groupby(["task", "model"], sort=False):
        values = metrics_of_model.set_index("metric").to_dict("index")
        rows[f"{title_prefix(run, task)}{model}"] = _numbers(values, names, "seed_sd")
    title = f"standard deviation between {len(run.record['seeds'])} seeds, all clips pooled"
    return _table(title, [metrics[name].title for name in names], rows)
