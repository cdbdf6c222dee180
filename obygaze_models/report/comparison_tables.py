"""Convert comparisons to reports."""

import math
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from obygaze_features.templates import sentences
from obygaze_models.evaluation.compare import Comparison
from obygaze_models.evaluation.intervals import CAPTIONS
from obygaze_models.evaluation.metrics import Metric, metrics_of
from obygaze_models.evaluation.paired_tests import detectable, smallest_p
from obygaze_models.evaluation.predictions import records
from obygaze_models.report.blocks import Column, Report, block, interval, number, p_value, signed

FEW = 30
"""Number of movies below which a comparison gets a warning."""

Row = Mapping[Any, Any]


def comparison_report(comparison: Comparison) -> Report:
    """Lay out a comparison: one row per metric, for these models and for the methods.

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
    rows, paired = tests.to_dict(orient="records"), int(tests["n_movies"].max())
    known = metrics_of(comparison.a.predictions.n_classes)
    name: Column = ("metric", "metric", lambda metric: known[metric].title)
    parts: list[list[Column]] = [
        [
            ("A - B [95 %]", ("difference", f"{of}low", f"{of}high"), signed),
            ("p", f"{of}p", p_value),
            ("p Holm", f"{of}p_holm", p_value),
        ]
        for of in ("", "method_")
    ]
    models, methods = parts
    record = _comparison_record(comparison, paired)
    sides: list[Column] = [name, ("A", "a", number), ("B", "b", number)]
    return Report(
        name="compare",
        title=f"A {comparison.a.model} against B {comparison.b.model}, movie by movie",
        notes=sentences(
            __package__,
            "assets/comparison_notes.txt.jinja",
            record=record,
            patterns=int(tests["n_patterns"].max()),
            exact=tests["exact"].all(),
            n_tests=tests["p_holm"].notna().sum(),
            caption=CAPTIONS["p"],
            paired=paired,
            few=FEW,
            detectable=detectable(paired),
        ),
        blocks=(
            block("do these trained models differ on movies like these?", [*sides, *models], rows),
            block(
                "do the methods differ, retrained on movies like these?",
                [name, *methods],
                rows,
                ("corrected resampled t test (Nadeau and Bengio 2003)",),
            ),
        ),
        data=tests,
        record=record,
        answers=(_verdict(rows, known),),
    )


def _verdict(rows: Sequence[Row], known: Mapping[str, Metric]) -> str:
    """Say whether the models differ in the first of their main metrics."""
    row = next((row for row in rows if known[row["metric"]].answers), rows[0])
    metric = known[row["metric"]]
    better = "A" if (row["difference"] > 0) == metric.higher_is_better else "B"
    claim = f"{better} is better" if row["p_holm"] < 0.05 else "no difference is shown"
    said = interval(row["difference"], row["low"], row["high"], signed=True)
    return (
        f"{claim} in {metric.title} by movie: A - B is {said} on {int(row['n_movies'])} movies, "
        f"p {p_value(row['p_holm'])} after Holm's correction (these trained models)"
    )


def _comparison_record(comparison: Comparison, paired: int) -> dict[str, object]:
    table, lowest = comparison.a.predictions.table, detectable(paired)
    return {
        **{
            letter: {
                "run": PurePath(side.run.where).name,  # the folders above it are this machine's
                "model": side.model,
                "task": side.task,
                "trained_on": side.run.record.get("train"),
                "store": side.predictions.table["store"].iloc[0],
                "seeds": sorted(set(side.predictions.table["seed"].tolist())),
            }
            for letter, side in (("a", comparison.a), ("b", comparison.b))
        },
        "protocol": comparison.a.run.record.get("protocol"),
        "n_clips": int(table["clip_id"].nunique()),
        "n_movies": int(table["movie"].nunique()),
        "smallest_p": smallest_p(paired),
        "detectable_sd": None if math.isnan(lowest) else lowest,
        "movies": records(comparison.movies),
    }
