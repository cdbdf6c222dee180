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
from obygaze_models.models.names import BASELINES, HOMES, OTHER_ANNOTATOR
from obygaze_models.report.blocks import (
    CHANCE_ROW,
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

NEAR_BOUND_AP = 0.9
"""A by-movie AP above which an interval covers less than its nominal level (docs/evaluation.md)."""


@checked
def run_report(run: Run) -> Report:
    """Make the report of a run: tables of metrics by movie and over all clips, answers, notes, and data.

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
    for task in _tasks_with_metrics(run):
        blocks += _tables_of_task(run, task, metrics)
    if len(run.record["seeds"]) > 1:
        blocks.append(_seed_spread_table(run, metrics))

    record = run.record
    tests = ", ".join(target["title"] for target in record["tests"])
    return Report(
        name="evaluate",
        title=f"{record['train']['title']}, tested on {tests}",
        notes=notes(run),
        blocks=tuple(_mark_yardsticks(table) for table in blocks),
        data=run.metrics,
        record=record,
        pictures=layer_pictures(run),
        titles=run.titles,
        answers=answers(run),
    )


def _tables_of_task(run: Run, task: "_Task", metrics: Mapping[str, Metric]) -> list[Block]:
    """Make a table by movie of each metric that some movie defines, and the table over all clips.

    A movie defines a metric if its clips allow to compute it; AUC, for example, needs clips of both classes.
    Controls whose scores do not vary within movies are left out of all tables: to compare with such a control
    shows nothing.
    """
    tested = _describe_tested_clips(run, task.name)
    tables = []
    for name in _metrics_by_movie(metrics, task.models):
        is_defined = _count_movies(task.models, name) > 0
        if is_defined:
            tables.append(_movie_table(task.models, metrics[name], task.prefix, tested))
    tables.append(_pooled_table(task.models, metrics, task.prefix, tested))

    constant = constant_controls(run, task.name)
    return [_drop_constant_controls(table, constant) for table in tables]


def _drop_constant_controls(block: Block, controls: Sequence[str]) -> Block:
    """Remove the rows of controls whose scores do not vary within movies, and add a note on each.

    To compare with such a control shows nothing. `controls` are their names, which are the first cells of
    their rows.
    """
    if not controls:
        return block
    rows = tuple(row for row in block.rows if row[0] not in controls)
    dots = tuple(dot for dot in block.dots if dot.name not in controls)  # what a page draws of the rows
    notes = [f"{name} is no control here: its scores do not vary within movies" for name in controls]
    return replace(block, rows=rows, dots=dots, notes=(*block.notes, *notes))


def _mark_yardsticks(block: Block) -> Block:
    """Mark the rows of a table that serve comparison only: baselines, controls and chance."""
    yardsticks = frozenset(row[0] for row in block.rows if is_yardstick(row[0]))
    return replace(block, yardsticks=yardsticks)


def short_report(run: Run) -> Report:
    """Make the short report of a run for a terminal: one table per task, and the answers.

    Tables have a row for each model that reads features. Of the notes only the limits are shown, and of the
    answers all but the sentences on what an AUC means.
    """
    metrics = metrics_of(run.predictions.n_classes, run.own_metrics)
    blocks = [_short_table_of_task(run, task, metrics) for task in _tasks_with_metrics(run)]
    full_report = run_report(run)
    # MEANING is what the sentences on an AUC have in common.
    short_answers = tuple(line for line in full_report.answers if MEANING not in line)
    return replace(full_report, notes=limits(run), blocks=tuple(blocks), answers=short_answers)


def _short_table_of_task(run: Run, task: "_Task", metrics: Mapping[str, Metric]) -> Block:
    """Make the table of a task in a short report: by movie or, if no movie defines metrics, of all clips."""
    tested = _describe_tested_clips(run, task.name)
    names = _metrics_by_movie(metrics, task.models)
    # The main metric first; the others stay in their order.
    names.sort(key=lambda name: not metrics[name].is_main)
    n_movies = _count_movies(task.models, names[0])
    if not n_movies:
        return _pooled_table(task.models, metrics, task.prefix, tested)

    title = f"{task.prefix}by movie, mean of {n_movies}; {tested}"
    table = _short_table(title, task.models, [metrics[name] for name in names])
    return _drop_constant_controls(table, constant_controls(run, task.name))


def _short_table(title: str, models: Mapping[str, Mapping[Any, Any]], metrics: Sequence[Metric]) -> Block:
    """Make the table of a short report: the mean over movies of each metric, for each model and for chance.

    Parameters
    ----------
    title : str
    models : mapping
        Model -> metric -> its row in the run's metrics.
    metrics : sequence of Metric
        The first one is shown with its interval.
    """
    baselines = HOMES[BASELINES]  # names of the zoo's baselines, which read no features
    shown_models = {model: values for model, values in models.items() if model not in baselines}
    if not shown_models:  # a run of baselines alone
        shown_models = dict(models)

    names = [metric.name for metric in metrics]
    rows = {}
    for model, values in shown_models.items():
        # The other annotators of a clip, with whom models are compared, have a row like a model.
        if model == OTHER_ANNOTATOR:
            rows[model] = _people_cells(values, metrics)
        else:
            rows[model] = _model_cells(values, names)
    # The chance level is the same for all models.
    any_model = next(iter(models.values()))
    rows[CHANCE_ROW] = _format_numbers(any_model, names, "movie_chance")

    first, *others = metrics
    headers = [f"{first.title} [95 %]", *_headers_beside(first, others, models)]
    return _models_table(title, headers, rows)


def _headers_beside(
    first: Metric, others: Sequence[Metric], models: Mapping[str, Mapping[Any, Any]]
) -> list[str]:
    """Write the headers of all metrics but the first in a short report's table.

    The table's title says over how many movies the first metric is averaged. The header of another metric
    that fewer movies define says its own number, such as "kappa (quadratic), of 4".
    """
    n_movies_of_first = _count_movies(models, first.name)
    headers = []
    for metric in others:
        n_movies = _count_movies(models, metric.name)
        has_as_many = n_movies == n_movies_of_first
        headers.append(metric.title if has_as_many else f"{metric.title}, of {n_movies}")
    return headers


def _model_cells(values: Mapping[Any, Any], names: Sequence[str]) -> list[str]:
    """Format the mean over movies of each metric of a model, the first with its interval.

    `values` maps the names of metrics to their rows in the run's metrics.
    """
    first, *others = names
    row = values[first]
    mean_with_interval = interval(row["movie_mean"], row["movie_low"], row["movie_high"])
    return [mean_with_interval, *_format_numbers(values, others, "movie_mean")]


def _people_cells(values: Mapping[Any, Any], metrics: Sequence[Metric]) -> list[str]:
    """Format the mean over movies of each metric of the other annotators, a dash if it does not apply.

    Annotators label clips, but give no scores, so that metrics of scores do not apply to them. `values` maps
    the names of metrics to their rows in the run's metrics.
    """
    cells = []
    for metric in metrics:
        needs_scores = metric.reads == "score"
        cells.append(NOTHING if needs_scores else number(values[metric.name]["movie_mean"]))
    return cells


class _Task(NamedTuple):
    """A task of a run.

    Attributes
    ----------
    name : str
    prefix : str
        Beginning of the titles of its tables.
    models : dict
        Model -> metric -> its row in the run's metrics, as a dict.
    """

    name: str
    prefix: str
    models: dict[str, dict[Any, Any]]


def _tasks_with_metrics(run: Run) -> Iterator[_Task]:
    """Yield each task of a run with its metrics, as model -> metric -> row."""
    for task, metrics in run.metrics.groupby("task", sort=False):
        models = {}
        for model, metrics_of_model in metrics.groupby("model", sort=False):
            models[str(model)] = metrics_of_model.set_index("metric").to_dict(orient="index")
        yield _Task(str(task), title_prefix(run, task), models)


def _metrics_by_movie(metrics: Mapping[str, Metric], models: Mapping[str, Mapping[Any, Any]]) -> list[str]:
    """List the names of the metrics that get a table by movie, in the order of the tables.

    Balanced accuracy is among them only if models are compared with the other annotators: these give no
    scores, which most metrics need.

    Parameters
    ----------
    metrics
        Name -> metric, of all that a run may have.
    models
        Model -> name of a metric -> its row in the run's metrics.
    """
    any_model = next(iter(models.values()))  # all models have the same metrics
    names = []
    for name, metric in metrics.items():
        if name == "balanced_accuracy" and OTHER_ANNOTATOR not in models:
            continue
        # `Metric.by_movie` is the position of a metric's table among the tables by movie; 0 if it has none.
        if metric.by_movie != 0 and metric.shown and name in any_model:
            names.append(name)
    return sorted(names, key=lambda name: metrics[name].by_movie)


def _describe_tested_clips(run: Run, task: str) -> str:
    """Write how many clips of how many films were tested in a task."""
    clips = run.predictions.table.loc[run.predictions.table["task"] == task, ["clip_id", "movie"]]
    n_clips = clips["clip_id"].nunique()
    n_movies = clips["movie"].nunique()
    return f"{counted(n_clips, 'clip')} of {counted(n_movies, 'film')} tested"


def _count_movies(models: Mapping[str, Mapping[Any, Any]], metric: str) -> int:
    """Return the number of movies that define a metric; it is the same for all models.

    `models` maps models to names of metrics, and these to their rows in the run's metrics.
    """
    return int(next(iter(models.values()))[metric]["n_movies"])


def _format_numbers(by_metric: Mapping[Any, Any], names: Sequence[str], key: str) -> list[str]:
    """Format one number of each metric in `names`, such as its ``movie_mean`` if that is the key."""
    return [number(by_metric[name][key]) for name in names]


def _pooled_table(
    models: Mapping[str, Mapping[Any, Any]], metrics: Mapping[str, Metric], prefix: str, tested: str
) -> Block:
    """Make the table of metrics over all clips, for each model and for chance.

    Metrics that compare scores are left out if the scores come from the models of different folds, since
    these are not comparable.

    Parameters
    ----------
    models
        Model -> name of a metric -> its row in the run's metrics.
    metrics
        Name -> metric.
    prefix, tested
        Beginning and end of the title; `tested` says which clips were tested.
    """
    any_model = next(iter(models.values()))  # metrics and chance are the same for all models of a task
    names = []
    for name, metric in metrics.items():
        if name not in any_model or not metric.shown:
            continue
        compares_scores_across_models = any_model[name]["across_models"]
        if not compares_scores_across_models:
            names.append(name)

    rows = {model: _format_numbers(by_metric, names, "pooled") for model, by_metric in models.items()}
    rows[CHANCE_ROW] = _format_numbers(any_model, names, "pooled_chance")
    return _models_table(f"{prefix}all clips pooled; {tested}", [metrics[name].title for name in names], rows)


def _models_table(title: str, headers: Sequence[str], rows: Mapping[str, Sequence[str]]) -> Block:
    """Make a table with a row for each model, given the cells of each."""
    cells_of_rows = tuple((model, *cells) for model, cells in rows.items())
    return Block(title, ("model", *headers), cells_of_rows)


def _movie_table(models: Mapping[str, Mapping[Any, Any]], metric: Metric, prefix: str, tested: str) -> Block:
    """Make the table of one metric: a row for each model with its mean over movies, and one for chance.

    The mean has two intervals: that of these trained models, and that of the method, were it trained anew.

    Parameters
    ----------
    models
        Model -> name of a metric -> its numbers, by name.
    metric
        The metric of the table.
    prefix, tested
        Beginning and end of the title; `tested` says which clips were tested.
    """
    rows = []
    for model, numbers_of_metrics in models.items():
        # `OTHER_ANNOTATOR` stands for the labels of a clip's other annotators: calls, without a score.
        needs_scores = metric.reads == "score"
        if model == OTHER_ANNOTATOR and needs_scores:
            continue
        rows.append({"model": model, **numbers_of_metrics[metric.name]})

    # The number of movies, and the chance level, are the same for all models.
    any_row = rows[0]
    n_movies = int(any_row["n_movies"])
    chance = float(any_row["movie_chance"])
    # Heading, the numbers of a row that the column shows, and the function that writes them into its cell.
    columns: list[Column] = [
        ("model", "model", str),
        ("these models [95 %]", ("movie_mean", "movie_low", "movie_high"), interval),
        ("method [95 %]", ("method_low", "method_high"), _format_ends),  # the mean is in the column before
    ]

    chance_row = (CHANCE_ROW, number(chance), NOTHING)  # chance has no interval of a method
    return block(
        f"{prefix}{metric.title} by movie, mean of {n_movies}; {tested}",
        columns,
        rows,
        notes=_movie_table_notes(metric, rows),
        last=[chance_row],
        reference=chance,
    )


def _movie_table_notes(metric: Metric, rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Write the notes of a table of one metric by movie, given the metric's row of each model."""
    notes = []
    n_undefined = int(rows[0]["n_undefined"])  # the same for all models
    if n_undefined:
        movies = counted(n_undefined, "movie")
        notes.append(f"left out: {movies} without both classes")
    # Intervals of an average precision near 1 cover less than they should.
    if metric.name == "average_precision" and any(row["movie_mean"] > NEAR_BOUND_AP for row in rows):
        notes.append(CAPTIONS["near bound"])
    return notes


def _format_ends(low: float, high: float) -> str:
    """Format the ends of an interval; a dash if it is undefined."""
    if math.isnan(low):
        return NOTHING
    return f"[{number(low)}, {number(high)}]"


def _seed_spread_table(run: Run, metrics: Mapping[str, Metric]) -> Block:
    """Make the table of standard deviations of pooled metrics between seeds, for each model.

    A model that was trained with several seeds has a value of each metric for each of them.
    """
    # A metric that compares scores across folds is left out, as these come from different models.
    is_comparable = ~run.metrics["across_models"]
    comparable = set(run.metrics.loc[is_comparable, "metric"])
    names = [name for name in metrics if metrics[name].shown and name in comparable]

    # Models that draw no random numbers have one seed, and no spread.
    rows_with_seeds = run.metrics[run.metrics["n_seeds"] > 1]
    rows = {}
    for (task, model), metrics_of_model in rows_with_seeds.groupby(["task", "model"], sort=False):
        values_by_metric = metrics_of_model.set_index("metric").to_dict("index")
        model_of_task = f"{title_prefix(run, task)}{model}"
        rows[model_of_task] = _format_numbers(values_by_metric, names, "seed_sd")
    title = f"standard deviation between {len(run.record['seeds'])} seeds, all clips pooled"
    return _models_table(title, [metrics[name].title for name in names], rows)
