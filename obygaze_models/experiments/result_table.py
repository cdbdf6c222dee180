"""The table that people read first: a row a model, with what its numbers stand on in the caption."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from tabulate import tabulate

from obygaze_models.experiments.evaluate import Run

COLUMNS: dict[str, tuple[str, bool]] = {
    "AP": ("average_precision", False),
    "f1_pos": ("f1_pos", False),
    "f1_pos by movie [95 %]": ("f1_pos", True),
    "f1_weighted": ("f1_weighted", False),
    "f1_macro": ("f1_macro", False),
    "balanced_accuracy": ("balanced_accuracy", False),
    "auc": ("auc", False),
    "within_movie_auc [95 %]": ("within_movie_auc", True),
}
"""Heading -> metric, and whether it is shown as its mean by movie with the interval."""


def result_table(run: Run) -> str:
    """Lay out a run's metrics as a plain table; the last row has each column's best constant predictor."""
    rows: list[list[str]] = []
    for model, part in run.metrics.groupby("model", sort=False):
        by_metric = part.set_index("metric").to_dict(orient="index")
        rows.append(
            [str(model), *(_cell(by_metric[metric], interval) for metric, interval in COLUMNS.values())]
        )
    rows.append(
        ["(best constant)", *(_number(by_metric[metric]["best_constant"]) for metric, _ in COLUMNS.values())]
    )
    return tabulate(rows, headers=["model", *COLUMNS], tablefmt="simple", disable_numparse=True)


def caption(run: Run, title: str) -> list[str]:
    """Say under a table how its numbers were made, on how many clips and movies, and what they don't tell."""
    record: Mapping[str, Any] = run.record
    clips = record["clips"]
    features = f"{record['backbone']}, {record['features']} ({record['pool']})"
    movies, prevalence = record["movies_tested"], f"{record['prevalence']:.3f}"
    others = f"{clips['other_levels']} are of other levels, {clips['unlabelled']} without one"
    left_out = f"{len(record['excluded'])} excluded for want of features"
    more = f"{clips['in_store_only']} more in the store"
    lines = [
        f"{title}; labels: {record['label_policy']} policy; features: {features}",
        f"protocol {record['protocol']}; seed {record['seed']}",
        f"{clips['tested']} clips of {movies} movies tested, prevalence {prevalence}; all clips pooled",
        f"of {clips['manifest']} clips in the manifest {others}, {left_out}; {more}",
    ]
    if clips["partial"]:
        lines.append(f"{clips['partial']} clips are partial: a part of their video could not be read")
    lines.append(
        f"by movie: mean and 95 % t interval; with {movies} films an interval is wide, and not cut at 0 or 1"
    )
    lines.append(_bootstrap(run.metrics))
    undefined = _undefined(run.metrics)
    if undefined:
        lines.append(undefined)
    return lines


def _cell(row: Mapping[Any, Any], interval: bool) -> str:
    if not interval:
        return _number(row["pooled"])
    if math.isnan(row["movie_low"]):
        return _number(row["movie_mean"])
    return f"{row['movie_mean']:.3f} [{row['movie_low']:.3f}, {row['movie_high']:.3f}]"


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.3f}"


def _bootstrap(metrics: pd.DataFrame) -> str:
    """Give the headline metrics of the first model, the probe, with their bootstrap intervals."""
    model = metrics["model"].iloc[0]
    rows = metrics[metrics["model"] == model].set_index("metric").to_dict(orient="index")
    shown = [
        f"{heading} {_number(row['pooled'])} [{_number(row['pooled_low'])}, {_number(row['pooled_high'])}]"
        for heading, row in (("AP", rows["average_precision"]), ("f1_pos", rows["f1_pos"]))
    ]
    return f"{model}, pooled, 95 % bootstrap of movies and of their clips: {', '.join(shown)}"


def _undefined(metrics: pd.DataFrame) -> str:
    """Name the shown intervals that some movies have no part in: which ones depends on labels alone."""
    shown = [metric for metric, interval in COLUMNS.values() if interval]
    first = metrics[metrics["model"] == metrics["model"].iloc[0]].set_index("metric")
    counts = [
        f"{metric} in {first.loc[metric, 'n_undefined']}"
        for metric in shown
        if first.loc[metric, "n_undefined"]
    ]
    return (
        f"movies without the classes that define it, left out of the mean: {', '.join(counts)}"
        if counts
        else ""
    )
