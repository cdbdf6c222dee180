"""Compare the models of two runs, film by film: both must have been asked the same of the same clips."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from obygaze_features.errors import ObygazeError
from obygaze_models.evaluation import (
    METRICS,
    Predictions,
    sign_flip,
    t_interval,
)
from obygaze_models.evaluation.multiplicity import in_family
from obygaze_models.experiments.run_folder import SavedRun

ASKED = ("protocol", "label_policy")
"""What the records of two comparable runs must agree on, beside tasks and clips."""


class CompareError(ObygazeError):
    """Two runs can't be compared."""


@dataclass(frozen=True, eq=False)
class Side:
    """One model of one run: its rows of the table of predictions."""

    run: SavedRun
    model: str
    predictions: Predictions


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two models' metrics by film.

    Attributes
    ----------
    films : DataFrame
        A row for each metric and movie: ``a``, ``b`` and ``difference`` (a - b); NaN where the movie's clips
        don't define the metric. With several seeds each value is the mean over them.
    metrics : DataFrame
        A row for each metric: the means over movies ``a`` and ``b``, their ``difference`` with its 95 % t
        interval ``low``, ``high``, the sign-flip test's ``p``, ``p_holm`` over the metrics, and ``n_movies``,
        ``n_patterns`` and ``exact`` of the test.
    """

    a: Side
    b: Side
    films: pd.DataFrame
    metrics: pd.DataFrame


def side(run: SavedRun, model: str | None = None) -> Side:
    """Take one model of a run, the first when none is named.

    Raises
    ------
    CompareError
        The run has no such model, or several tasks.
    """
    table = run.predictions.table
    models = list(dict.fromkeys(table["model"]))
    if not models:
        raise CompareError(f"{run.folder}: the run has no predictions")
    name = models[0] if model is None else model
    if name not in models:
        raise CompareError(f"{run.folder}: no model {name!r} in this run, but {', '.join(models)}")
    rows = table[table["model"] == name]
    tasks = list(dict.fromkeys(rows["task"]))
    if len(tasks) > 1:
        raise CompareError(
            f"{run.folder}: model {name} has several tasks ({', '.join(tasks)}); compare runs of one"
        )
    return Side(run, name, Predictions(rows.reset_index(drop=True)))


def compare(a: Side, b: Side) -> Comparison:
    """Compare two models film by film.

    By film, auc is the within-movie AUC.

    Raises
    ------
    CompareError
        The two were not asked the same: names the first thing that differs.
    """
    _check_comparable(a, b)
    values_a, values_b = by_film(a.predictions), by_film(b.predictions)
    films = pd.DataFrame(
        {
            "metric": values_a["metric"],
            "movie": values_a["movie"],
            "a": values_a["value"],
            "b": values_b["value"],
            "difference": values_a["value"] - values_b["value"],
        }
    )
    rows = []
    for metric, part in films.groupby("metric", sort=False):
        interval, test = t_interval(part["difference"]), sign_flip(part["difference"])
        rows.append(
            {
                "metric": metric,
                "a": t_interval(part["a"]).mean,
                "b": t_interval(part["b"]).mean,
                "difference": interval.mean,
                "low": interval.low,
                "high": interval.high,
                "p": test.p,
                "n_movies": test.n_pairs,
                "n_patterns": test.n_patterns,
                "exact": test.exact,
            }
        )
    metrics = pd.DataFrame(rows)
    adjusted = in_family(metrics["metric"].tolist(), metrics["p"], "two classes")
    return Comparison(a, b, films, metrics.assign(p_holm=adjusted))


def by_film(predictions: Predictions) -> pd.DataFrame:
    """Compute every metric of every movie: columns metric, movie and value, the mean over seeds."""
    table = predictions.table.assign(called=predictions.called)
    rows: list[dict[str, object]] = []
    for name, metric in METRICS.items():
        for movie, part in table.groupby("movie"):
            values = [
                metric(seed["label"].to_numpy(), seed["score"].to_numpy(), seed["called"].to_numpy())
                for _, seed in part.groupby("seed")
            ]
            rows.append({"metric": name, "movie": movie, "value": float(np.mean(values))})
    return pd.DataFrame(rows)


def _check_comparable(a: Side, b: Side) -> None:
    what = f"{a.run.folder} and {b.run.folder} can't be compared"
    task_a, task_b = (one.predictions.table["task"].iloc[0] for one in (a, b))
    if task_a != task_b:
        raise CompareError(f"{what}: their tasks differ, {task_a} and {task_b}")
    for name in ASKED:
        found_a, found_b = a.run.record.get(name), b.run.record.get(name)
        if found_a != found_b:
            raise CompareError(f"{what}: {name} differs, {found_a!r} and {found_b!r}")
    clips_a, clips_b = (
        one.predictions.table.drop_duplicates("clip_id").set_index("clip_id") for one in (a, b)
    )
    for one, other, folder in ((clips_a, clips_b, a.run.folder), (clips_b, clips_a, b.run.folder)):
        alone = one.index.difference(other.index)
        if len(alone):
            raise CompareError(
                f"{what}: their clips differ, {len(alone)} are in {folder} alone, the first is {alone[0]}"
            )
    for column in ("movie", "label"):
        there = clips_b.loc[clips_a.index, column]
        if (strange := clips_a[column] != there).any():
            clip = clips_a.index[strange][0]
            raise CompareError(
                f"{what}: the {column} of {int(strange.sum())} clips differs, the first is {clip}: "
                f"{clips_a.loc[clip, column]} and {there[clip]}"
            )
