"""Convert comparisons to reports."""

import math
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from obygaze_features.arguments import checked
from obygaze_features.text import counted, visible
from obygaze_models.evaluation.compare import Comparison, Side
from obygaze_models.evaluation.intervals import CAPTIONS
from obygaze_models.evaluation.metrics import Metric, metrics_of
from obygaze_models.evaluation.paired_tests import detectable, smallest_p
from obygaze_models.evaluation.predictions import records
from obygaze_models.report.blocks import Block, Column, Report, block, interval, number, p_value, signed

LARGEST_P = 0.05
"""A difference is shown if its p-value is below this."""

FEW_MOVIES = 30
"""Number of movies below which a comparison gets a warning."""

Row = Mapping[Any, Any]


@checked
def comparison_report(comparison: Comparison) -> Report:
    """Make the report of a comparison of two models: a table for these models, and one for the methods.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> run = om.saved(om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s"))
    >>> comparison = om.compare(om.side(run, "linear"), om.side(run, "movie_prior"))
    >>> om.comparison_report(comparison).title
    'A linear against B movie_prior, movie by movie'
    """
    tests = comparison.metrics
    rows = tests.to_dict(orient="records")
    n_paired = int(tests["n_movies"].max())
    metrics = metrics_of(comparison.a.predictions.n_classes)
    record = _comparison_record(comparison, n_paired)
    return Report(
        name="compare",
        title=f"A {comparison.a.model} against B {comparison.b.model}, movie by movie",
        notes=_notes(comparison, record, n_paired),
        blocks=(_models_table(rows, metrics), _methods_table(rows, metrics)),
        data=tests,
        record=record,
        answers=(_verdict(rows, metrics),),
    )


def _models_table(rows: Sequence[Row], metrics: Mapping[str, Metric]) -> Block:
    """Make the table of the two trained models, A and B, from the rows of `Comparison.metrics`.

    A column is a heading, the keys of a row's values, and the function that writes these into a cell.
    """
    columns: list[Column] = [
        ("metric", "metric", lambda metric: metrics[metric].title),
        ("A", "a", number),
        ("B", "b", number),
        ("A - B [95 %]", ("difference", "low", "high"), signed),
        ("p", "p", p_value),
        ("p Holm", "p_holm", p_value),
    ]
    return block("do these trained models differ on movies like these?", columns, rows)


def _methods_table(rows: Sequence[Row], metrics: Mapping[str, Metric]) -> Block:
    """Make the table of the two methods, retrained, from the rows of `Comparison.metrics`.

    A column is a heading, the keys of a row's values, and the function that writes these into a cell.
    """
    columns: list[Column] = [
        ("metric", "metric", lambda metric: metrics[metric].title),
        ("A - B [95 %]", ("difference", "method_low", "method_high"), signed),
        ("p", "method_p", p_value),
        ("p Holm", "method_p_holm", p_value),
    ]
    note = "corrected resampled t test (Nadeau and Bengio 2003)"
    return block("do the methods differ, retrained on movies like these?", columns, rows, [note])


def _notes(comparison: Comparison, record: Mapping[str, Any], n_paired: int) -> tuple[str, ...]:
    """Write the notes of a comparison: what was compared, how it was tested, and what it can show.

    `record` is the comparison's record, and `n_paired` the number of movies that are paired.
    """
    tests = comparison.metrics
    exact = "exact " if tests["exact"].all() else ""
    n_patterns = int(tests["n_patterns"].max())
    n_tests = int(tests["p_holm"].notna().sum())
    clips = f"{counted(record['n_clips'], 'test clip')} of {counted(record['n_movies'], 'movie')}"
    lines = [
        _describe_side("A", record["a"]),
        _describe_side("B", record["b"]),
        f"{clips}; metrics are means over the movies that define them",
        f"p: {exact}sign-flip test over movies, {n_patterns} patterns; Holm over {n_tests} metrics",
        CAPTIONS["p"],  # what a p-value is about
        _power_note(n_paired),
    ]
    return tuple(visible(line, line_breaks=False) for line in lines)


def _power_note(n_paired: int) -> str:
    """Write the smallest p that so many paired movies allow, and the smallest difference that they show.

    With few movies even the most extreme result has a large p. `n_paired` is the number of movies.
    """
    if n_paired < FEW_MOVIES:
        movies = f"{counted(n_paired, 'movie is', 'movies are')} few"
    else:
        movies = f"with {counted(n_paired, 'movie')}"
    # "4 times of 5": a power of 80 %.
    return (
        f"{movies}: no exact p can be below {smallest_p(n_paired):.2g}; a difference must be "
        f"{detectable(n_paired):.2f} of its SD between movies to be found 4 times of 5"
    )


def _describe_side(letter: str, side: Mapping[str, Any]) -> str:
    """Write which model of which run is side A or B, and what it was trained on.

    `side` is the side's record, as `_side_record` makes it.
    """
    # The record of a run may lack its training target, and the target its title.
    trained_on = side["task"]
    if side["trained_on"] is not None:
        trained_on = side["trained_on"].get("title", trained_on)
    store = side["store"][:12]  # enough of the fingerprint to tell stores apart
    line = f"{letter}: {side['model']} of {side['run']}, trained on {trained_on}, store {store}"
    n_seeds = len(side["seeds"])
    if n_seeds > 1:
        line += f", mean of {n_seeds} seeds"
    return line


def _verdict(rows: Sequence[Row], metrics: Mapping[str, Metric]) -> str:
    """Write whether the models differ in the main metric by movie.

    `rows` are those of `Comparison.metrics`, one for each metric; `metrics` are the metrics by name.
    """
    main_rows = [row for row in rows if metrics[row["metric"]].is_main]
    row = main_rows[0] if main_rows else rows[0]
    metric = metrics[row["metric"]]

    # Of some metrics, such as errors, the lower value is better.
    a_is_higher = row["difference"] > 0
    a_is_better = a_is_higher == metric.higher_is_better
    verdict = "no difference is shown"
    if row["p_holm"] < LARGEST_P:
        verdict = "A is better" if a_is_better else "B is better"

    difference = interval(row["difference"], row["low"], row["high"], signed=True)
    return (
        f"{verdict} in {metric.title} by movie: A - B is {difference} on "
        f"{counted(int(row['n_movies']), 'movie')}, "
        f"p {p_value(row['p_holm'])} after Holm's correction (these trained models)"
    )


def _comparison_record(comparison: Comparison, n_paired: int) -> dict[str, Any]:
    """Make the record of a comparison as JSON values; `n_paired` is the number of paired movies."""
    table = comparison.a.predictions.table
    smallest_difference = detectable(n_paired)  # NaN for fewer than 3 movies
    return {
        "a": _side_record(comparison.a),
        "b": _side_record(comparison.b),
        "protocol": comparison.a.run.record.get("protocol"),
        "n_clips": int(table["clip_id"].nunique()),
        "n_movies": int(table["movie"].nunique()),
        "smallest_p": smallest_p(n_paired),
        "detectable_sd": None if math.isnan(smallest_difference) else smallest_difference,
        "movies": records(comparison.movies),
    }


def _side_record(side: Side) -> dict[str, Any]:
    """Describe one side of a comparison as JSON values."""
    table = side.predictions.table
    return {
        "run": PurePath(side.run.where).name,  # the folders above it are this machine's
        "model": side.model,
        "task": side.task,
        "trained_on": side.run.record.get("train"),
        "store": table["store"].iloc[0],
        "seeds": sorted(set(table["seed"].tolist())),
    }
