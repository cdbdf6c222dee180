"""The tables that people read first, narrow enough for a terminal, with what they stand on in the caption."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
from tabulate import tabulate

from obygaze_models.experiments.captions import IMBALANCE
from obygaze_models.experiments.evaluate import Run
from obygaze_models.report import interval, number

POOLED: Mapping[str, str] = {
    "AP": "average_precision",
    "f1_pos": "f1_pos",
    "f1_weighted": "f1_weighted",
    "balanced_accuracy": "balanced_accuracy",
    "auc": "auc",
}
"""Heading -> metric of the tables of pooled metrics; f1_macro is in the run's files alone."""

BY_MOVIE: Mapping[str, str] = {"f1_pos [95 %]": "f1_pos", "within_movie_auc [95 %]": "within_movie_auc"}
"""Heading -> metric of the table of means by movie."""

Row = Mapping[Any, Any]


def result_tables(run: Run) -> list[tuple[str, str]]:
    """Lay out a run's metrics as plain tables, each with a title and at most 80 columns wide."""
    n_seeds = len(run.record["seeds"])  # type: ignore[arg-type]
    mean = f", mean of {n_seeds} seeds" if n_seeds > 1 else ""
    models = {
        str(model): part.set_index("metric").to_dict(orient="index")
        for model, part in run.metrics.groupby("model", sort=False)
    }
    constants = {"(best constant)": next(iter(models.values()))}
    tables = [
        (
            f"all clips pooled{mean}",
            [
                *_rows(models, POOLED, lambda row: number(row["pooled"])),
                *_rows(constants, POOLED, lambda row: number(row["best_constant"])),
            ],
            POOLED,
        ),
        (f"by movie{mean}", _rows(models, BY_MOVIE, _by_movie), BY_MOVIE),
    ]
    if n_seeds > 1:
        drawn = {name: rows for name, rows in models.items() if rows["auc"]["n_seeds"] > 1}
        tables.append(
            (
                f"standard deviation between {n_seeds} seeds, all clips pooled",
                _rows(drawn, POOLED, lambda row: number(row["seed_sd"])),
                POOLED,
            )
        )
    return [
        (title, tabulate(rows, ["model", *headings], tablefmt="simple", disable_numparse=True))
        for title, rows, headings in tables
    ]


def _rows(
    models: Mapping[str, Mapping[Any, Any]], headings: Mapping[str, str], cell: Callable[[Row], str]
) -> list[list[str]]:
    return [
        [name, *(cell(by_metric[metric]) for metric in headings.values())]
        for name, by_metric in models.items()
    ]


def _by_movie(row: Row) -> str:
    if math.isnan(row["movie_low"]):
        return number(row["movie_mean"])
    return interval(row["movie_mean"], row["movie_low"], row["movie_high"])


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
        f"protocol {record['protocol']}; {_seeds(record['seeds'])}",
        IMBALANCE[record["imbalance"]],
        f"{clips['tested']} clips of {movies} movies tested, prevalence {prevalence}",
        f"of {clips['manifest']} clips in the manifest {others}, {left_out}; {more}",
    ]
    if clips["partial"]:
        lines.append(f"{clips['partial']} clips are partial: a part of their video could not be read")
    lines.append(
        f"by movie: mean and 95 % t interval of these trained models; with {movies} films an interval is wide"
    )
    lines.append(_headline(run.metrics))
    undefined = _undefined(run.metrics)
    if undefined:
        lines.append(undefined)
    return lines


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    return (
        f"seeds {seeds[0]} to {seeds[-1]}; intervals are over movies and of the mean over seeds, whose own "
        "spread is apart"
    )


def _headline(metrics: pd.DataFrame) -> str:
    """Give the headline metrics of the first model, the probe, with their intervals."""
    model = metrics["model"].iloc[0]
    rows = metrics[metrics["model"] == model].set_index("metric").to_dict(orient="index")
    shown = [
        f"{heading} {interval(row['pooled'], row['pooled_low'], row['pooled_high'])}"
        for heading, row in (("AP", rows["average_precision"]), ("f1_pos", rows["f1_pos"]))
    ]
    return f"{model}, pooled, 95 % jackknife over movies, of these trained models: {', '.join(shown)}"


def _undefined(metrics: pd.DataFrame) -> str:
    """Name the shown intervals that some movies have no part in: which ones depends on labels alone."""
    first = metrics[metrics["model"] == metrics["model"].iloc[0]].set_index("metric")
    counts = [
        f"{metric} in {first.loc[metric, 'n_undefined']}"
        for metric in BY_MOVIE.values()
        if first.loc[metric, "n_undefined"]
    ]
    return (
        f"movies without the classes that define it, left out of the mean: {', '.join(counts)}"
        if counts
        else ""
    )
