"""Convert runs to reports."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from obygaze_features.templates import sentences
from obygaze_models.evaluation.intervals import CAPTIONS, Interval, t_interval
from obygaze_models.evaluation.metrics import Metric, metrics_of
from obygaze_models.evaluation.run import SEEN, Run
from obygaze_models.evaluation.summary import by_movie
from obygaze_models.models.fusion import ALONE
from obygaze_models.models.names import BASELINES, HOMES, LENGTH, OTHER, STAGING
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.models.training import N_TRIAL_EPOCHS
from obygaze_models.report.blocks import (
    NOTHING,
    Block,
    Column,
    Report,
    block,
    interval,
    number,
    p_value,
)

NEAR = 0.9
"""A by-movie AP above which an interval covers less than its nominal level (docs/evaluation.md)."""

ANNOTATED = "concept_labels"
"""The model of annotated concepts, with which completeness is measured."""

OF_FEATURES = ("attention", "linear")
"""Models of all features: of the first that there is completeness is said."""

OF_CONCEPTS = ("pcbm_time", "pcbm_lr")
"""Models that decide by concepts: what they find beyond the concepts' labels leaked."""

YARDSTICKS = {*HOMES[BASELINES], LENGTH, STAGING}
"""Baselines, which know no feature."""

MEANING = "of two clips of one movie, one positive and one negative, "
"""Of what an AUC means, which a whole report says and a short one does not."""


def run_report(run: Run) -> Report:
    """Lay out a run: metrics by movie with intervals, metrics over all clips, and the data behind them.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> report = om.run_report(om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s"))
    >>> report.blocks[0].title
    'AP by movie, mean of 6'
    """
    metrics = metrics_of(run.predictions.n_classes, run.own_metrics)
    blocks = []
    for before, models in _tasks(run):
        shown = [name for name in _with_table(metrics, models) if _n_movies(models, name)]
        blocks += [_by_movie(models, metrics[name], before) for name in shown]
        blocks.append(_pooled(models, metrics, before))
    if len(run.record["seeds"]) > 1:
        blocks.append(_spread(run, metrics))
    record = run.record
    tests = ", ".join(target["title"] for target in record["tests"])
    return Report(
        name="evaluate",
        title=f"{record['train']['title']}, tested on {tests}",
        notes=_notes(run, whole=True),
        blocks=tuple(
            replace(each, beside=frozenset(row[0] for row in each.rows if _beside(row[0]))) for each in blocks
        ),
        data=run.metrics,
        record=record,
        titles=run.titles,
        answers=_answers(run),
    )


def short_report(run: Run) -> Report:
    """Lay out what a run answers: a row for each model that looks at features, and one sentence."""
    metrics = metrics_of(run.predictions.n_classes, run.own_metrics)
    blocks = []
    for before, models in _tasks(run):
        first, *others = sorted(_with_table(metrics, models), key=lambda name: not metrics[name].answers)
        headers = [f"{metrics[first].title} [95 %]", *(metrics[name].title for name in others)]
        if not _n_movies(models, first):
            blocks.append(_pooled(models, metrics, before))
            continue
        shown = {name: values for name, values in models.items() if name not in HOMES[BASELINES]} or models
        rows = {
            name: [
                interval(*(values[first][f"movie_{key}"] for key in ("mean", "low", "high"))),
                *_numbers(values, others, "movie_mean"),
            ]
            for name, values in shown.items()
        }
        if OTHER in rows:
            calls = zip(
                (first, *others), _numbers(models[OTHER], [first, *others], "movie_mean"), strict=True
            )
            rows[OTHER] = [NOTHING if metrics[name].reads == "score" else text for name, text in calls]
        rows["(chance)"] = _numbers(next(iter(models.values())), [first, *others], "movie_chance")
        blocks.append(_table(f"{before}by movie, mean of {_n_movies(models, first)}", headers, rows))
    made = run_report(run)
    answers = tuple(line for line in made.answers if MEANING not in line)
    return replace(made, notes=_notes(run, whole=False), blocks=tuple(blocks), answers=answers)


def _tasks(run: Run) -> Iterator[tuple[str, dict[str, dict[Any, Any]]]]:
    """Yield the beginning of each task's titles, and its models' metrics by model and metric."""
    for task, own in run.metrics.groupby("task", sort=False):
        models = own.groupby("model", sort=False)
        yield (
            _before(run, task),
            {str(model): part.set_index("metric").to_dict(orient="index") for model, part in models},
        )


def _before(run: Run, task: object) -> str:
    """Begin a title or sentence with its task, where a run has several."""
    return f"{task}: " if run.metrics["task"].nunique() > 1 else ""


def _with_table(metrics: Mapping[str, Metric], models: Mapping[str, Mapping[Any, Any]]) -> list[str]:
    """List the metrics shown by movie: balanced accuracy beside people, whose calls it compares."""
    some = next(iter(models.values()))
    listed = [name for name in metrics if name in some and metrics[name].shown and metrics[name].by_movie]
    names = sorted(listed, key=lambda name: metrics[name].by_movie)
    return [name for name in names if name != "balanced_accuracy" or OTHER in models]


def _n_movies(models: Mapping[str, Mapping[Any, Any]], metric: str) -> int:
    """Count the movies that define a metric of models tested on the same clips."""
    return int(next(iter(models.values()))[metric]["n_movies"])


def _beside(name: str) -> bool:
    """Whether a row is a yardstick and no model of features: a baseline, a control or chance."""
    return name in {"(chance)", *YARDSTICKS} or (name in BUILTIN_MODELS and BUILTIN_MODELS[name].control)


def _answers(run: Run) -> tuple[str, ...]:
    """Say of each task which models beat the baselines, and the best of them on how many movies."""
    metrics = metrics_of(run.predictions.n_classes)
    metric = next(metric for metric in metrics.values() if metric.answers)
    return sentences(
        __package__,
        "assets/answers.txt.jinja",
        {"number": number, "p": p_value},
        tasks=[
            {"before": before, **_beating(values, metric), **_completeness(values)}
            for before, values in _values(run, metric)
        ],
        refits=run.record.get("refits", {"models": []}),
        before=partial(_before, run),
        metric=metric,
        metrics=metrics,
        meaning=MEANING,
    )


def _beating(values: Mapping[str, Any], metric: Metric) -> dict[str, Any]:
    """Find the models of a task that beat the baselines; nothing where there are none to compare.

    A model beats them if the interval of its difference to each lies above 0. As the best of several models
    is named, intervals hold for all models together (Bonferroni); they are those of the methods, which are
    wider than those of the trained models.
    """
    models = [name for name in values if name != OTHER and not _beside(name)]
    # Guesses are left out: one draw's luck by movie would hide a gain; on average they reach no more.
    baselines = [name for name in values if name in YARDSTICKS and not name.startswith("random_")]
    found: dict[str, tuple[Interval, str, int]] = {}
    for name, other in product(models, baselines):
        difference = (values[name] - values[other]) * (1 if metric.higher_is_better else -1)
        above = t_interval(difference, 1 - 0.05 / len(models), covers="method")
        if name not in found or not above.low > found[name][0].low:
            found[name] = above, other, int((difference > 0).sum())
    if not found:
        return {}
    beating = [name for name in models if found[name][0].low > 0]
    best = max(beating or models, key=lambda name: found[name][0].mean)
    above, other, n_better = found[best]
    # The same lead on every movie has no interval.
    low, high = (above.low, above.high) if above.high > above.low else (math.nan, math.nan)
    is_ahead = above.mean >= 0
    return {
        "n_movies": above.n_movies,
        "n_models": len(models),
        "beating": beating,
        "best": best,
        "other": other,
        "is_ahead": is_ahead,
        "lead": interval(above.mean, low, high, signed=True)
        if is_ahead
        else interval(-above.mean, -high, -low),
        "n_better": n_better,
        "wins": 100 * values[best].mean(),
    }


def _values(run: Run, metric: Metric) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the beginning of each task's sentences, and its models' values of a metric by movie."""
    for task, own in by_movie(run.predictions, {"": metric}).groupby("task", sort=False):
        models = own.groupby("model", sort=False)
        yield _before(run, task), {str(name): each.set_index("movie")["value"] for name, each in models}


def _completeness(values: Mapping[str, Any]) -> dict[str, Any]:
    """Find how much of the label concepts' labels hold, and what is found beyond them.

    Completeness is the AUC above .5 of annotated concepts over that of all features (Yeh et al. 2020).
    """
    features = next((name for name in OF_FEATURES if name in values), "")
    if ANNOTATED not in values or not features:
        return {}
    labels, whole = float(values[ANNOTATED].mean()), float(values[features].mean())
    share = f"{(labels - 0.5) / (whole - 0.5):.2f}" if whole > 0.5 else "undefined"
    beyond = []
    for name in (features, *(name for name in OF_CONCEPTS if name in values)):
        more = t_interval(values[name] - values[ANNOTATED], covers="method")
        beyond.append(f"{name} {interval(more.mean, more.low, more.high, signed=True)}")
    return {"features": features, "labels": labels, "whole": whole, "share": share, "beyond": beyond}


def _numbers(by_metric: Mapping[Any, Any], names: Sequence[str], key: str) -> list[str]:
    """Write one number of each of some metrics."""
    return [number(by_metric[name][key]) for name in names]


def _pooled(models: Mapping[str, Mapping[Any, Any]], metrics: Mapping[str, Metric], before: str) -> Block:
    """Lay out metrics over all clips: of scores where one model gave them all."""
    some = next(iter(models.values()))
    names = [
        name for name in metrics if name in some and metrics[name].shown and not some[name]["across_models"]
    ]
    rows = {model: _numbers(by_metric, names, "pooled") for model, by_metric in models.items()}
    rows["(chance)"] = _numbers(some, names, "pooled_chance")
    return _table(f"{before}all clips pooled", [metrics[name].title for name in names], rows)


def _table(title: str, headers: Sequence[str], rows: Mapping[str, Sequence[str]]) -> Block:
    return Block(title, ("model", *headers), tuple((model, *cells) for model, cells in rows.items()))


def _by_movie(models: Mapping[str, Mapping[Any, Any]], metric: Metric, before: str) -> Block:
    rows = [
        {"model": model, **by_metric[metric.name]}
        for model, by_metric in models.items()
        if model != OTHER or metric.reads == "called"  # a call ranks nothing
    ]
    first = rows[0]
    undefined = int(first["n_undefined"])
    near = metric.name == "average_precision" and any(row["movie_mean"] > NEAR for row in rows)
    movies = "1 movie" if undefined == 1 else f"{undefined} movies"
    notes = [f"left out: {movies} without both classes"] if undefined else []
    notes += [CAPTIONS["near bound"]] if near else []
    columns: list[Column] = [
        ("model", "model", str),
        ("these models [95 %]", ("movie_mean", "movie_low", "movie_high"), interval),
        ("method [95 %]", ("method_low", "method_high"), _limits),
    ]
    title = f"{before}{metric.title} by movie, mean of {int(first['n_movies'])}"
    chance = float(first["movie_chance"])
    return block(title, columns, rows, notes, [("(chance)", number(chance), NOTHING)], reference=chance)


def _limits(low: float, high: float) -> str:
    return NOTHING if math.isnan(low) else f"[{low:.3f}, {high:.3f}]"


def _spread(run: Run, metrics: Mapping[str, Metric]) -> Block:
    shared = set(run.metrics.loc[~run.metrics["across_models"], "metric"])
    names = [name for name in metrics if metrics[name].shown and name in shared]
    drawn = run.metrics[run.metrics["n_seeds"] > 1].groupby(["task", "model"], sort=False)
    rows = {
        f"{_before(run, task)}{model}": _numbers(part.set_index("metric").to_dict("index"), names, "seed_sd")
        for (task, model), part in drawn
    }
    title = f"standard deviation between {len(run.record['seeds'])} seeds, all clips pooled"
    return _table(title, [metrics[name].title for name in names], rows)


def _notes(run: Run, *, whole: bool) -> tuple[str, ...]:
    """Say what limits all numbers of a run; of the whole report also how they came about, on which clips."""
    record, clips = run.record, run.record["clips"]
    counts = {
        "of other levels": clips["other_levels"],
        "of a level in no task": clips.get("in_no_task", 0),
        "without a level": clips.get("unlabelled", 0),
        "without features": len(record["excluded"]),
    }
    # Where the losses of a network's starts lie far apart, one start may fail.
    losses = ["start_loss_low", "start_loss_high"]
    trials = run.curves.dropna(subset=losses[0]).drop_duplicates(["model", "fold", "seed", "inner_fold"])
    alone = run.selection[run.selection["candidate"].astype(str).str.startswith(f"{ALONE} ")]
    return sentences(
        __package__,
        "assets/run_notes.txt.jinja",
        record=record,
        whole=whole,
        seen=SEEN,
        captions=CAPTIONS,
        shares=[f"{value:.3f}" for value in record["prevalence"].values() if value is not None],
        left_out=[f"{count} {what}" for what, count in counts.items() if count],
        starts=trials.groupby("model", sort=False)[losses].median().itertuples(),
        n_trial_epochs=N_TRIAL_EPOCHS,
        alone=alone["model"].value_counts(sort=False).items(),
        dropped=Counter(name for fold in record["folds"] for name in fold["concepts_left_out"]).items(),
    )
