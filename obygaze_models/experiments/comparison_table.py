"""A comparison of two models as people and programs read it."""

import math

import pandas as pd
from tabulate import tabulate

from obygaze_models.evaluation import detectable, smallest_p
from obygaze_models.experiments.compare import ASKED, Comparison, Side

FEW = 30
"""Films below which a comparison is told how few they are."""


def comparison_table(found: Comparison) -> str:
    """Lay out a comparison as a plain table: a row a metric."""
    rows = [
        [
            str(row["metric"]),
            _number(row["a"]),
            _number(row["b"]),
            f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]",
            _number(row["p"], 4),
            _number(row["p_holm"], 4),
            str(row["n_movies"]),
        ]
        for row in found.metrics.to_dict(orient="records")
    ]
    headers = ["metric", "A", "B", "A - B by film [95 %]", "p", "p Holm", "n"]
    return tabulate(rows, headers=headers, tablefmt="simple", disable_numparse=True)


def _number(value: float, digits: int = 3) -> str:
    return "undefined" if math.isnan(value) else f"{value:.{digits}f}"


def caption(found: Comparison) -> list[str]:
    """Say under the table what was compared, how, and what so few films can't show."""
    about = document(found)
    movies = int(found.a.predictions.table["movie"].nunique())
    tests = found.metrics.to_dict(orient="records")
    patterns = max(int(test["n_patterns"]) for test in tests)
    kind = (
        "exact sign-flip test over films, all" if all(test["exact"] for test in tests) else "sign-flip test,"
    )
    paired = int(found.metrics["n_movies"].max())
    few = f"{paired} films are few" if paired < FEW else f"with {paired} films"
    lines = [
        f"{letter}: {one.model} of {one.run.folder}, "
        f"store {one.predictions.table['store'].iloc[0][:12]}{_seeds(one)}{_remedy(one)}"
        for letter, one in (("A", found.a), ("B", found.b))
    ]
    return [
        *lines,
        f"task {about['task']}; labels: {about['label_policy']} policy; protocol {about['protocol']}",
        f"{about['n_clips']} clips of {movies} films; metrics are means over the n films that define them",
        f"p: {kind} {patterns} patterns; Holm over the {len(tests)} metrics",
        f"{few}: no p can be below {smallest_p(paired):.2g}",
        f"a difference must be {detectable(paired):.2f} of its SD between films to be found 4 times of 5",
    ]


def _seeds(one: Side) -> str:
    """Say that a model's metrics are means, where they are."""
    n = one.predictions.table["seed"].nunique()
    return f", mean of {n} seeds" if n > 1 else ""


def _imbalance(one: Side) -> str:
    """Name what a model does about the larger class; only a probe can, and older runs did nothing."""
    settings = one.run.record.get("models", {}).get(one.model, {})
    return str(settings.get("imbalance", "none"))


def _remedy(one: Side) -> str:
    imbalance = _imbalance(one)
    return "" if imbalance == "none" else f", imbalance {imbalance}"


def document(found: Comparison) -> dict[str, object]:
    """Give a comparison as JSON values; undefined numbers are null."""
    record, table = found.a.run.record, found.a.predictions.table
    movies = int(table["movie"].nunique())
    paired = int(found.metrics["n_movies"].max())
    sides = {
        letter: {
            "run": str(one.run.folder),
            "model": one.model,
            "store": one.predictions.table["store"].iloc[0],
            "seeds": sorted(set(one.predictions.table["seed"].tolist())),
            "imbalance": _imbalance(one),
        }
        for letter, one in (("a", found.a), ("b", found.b))
    }
    return {
        **sides,
        "task": table["task"].iloc[0],
        **{name: record.get(name) for name in ASKED},
        "n_clips": int(table["clip_id"].nunique()),
        "n_movies": movies,
        "smallest_p": smallest_p(paired),
        "detectable_sd": _or_null(detectable(paired)),
        "metrics": _records(found.metrics),
        "films": _records(found.films),
    }


def _or_null(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


def _records(table: pd.DataFrame) -> list[dict[str, object]]:
    return [
        {str(name): _or_null(value) for name, value in row.items()} for row in table.to_dict(orient="records")
    ]
