"""Compare two models tested on the same clips, paired by movie."""

from dataclasses import dataclass

import pandas as pd

from obygaze_features.arguments import checked, made_by
from obygaze_features.text import counted
from obygaze_models.errors import CompareError
from obygaze_models.evaluation.intervals import difference_bounds, t_interval
from obygaze_models.evaluation.metrics import Metric, metrics_of
from obygaze_models.evaluation.paired_tests import corrected_t, in_family, sign_flip
from obygaze_models.evaluation.predictions import Predictions
from obygaze_models.evaluation.run_folder import SavedRun
from obygaze_models.evaluation.summary import UNVARYING_AUC, by_movie, constant_models

# Columns of `Comparison.metrics`, before the adjusted p-values.
COLUMNS = (
    *("metric", "a", "b", "difference", "low", "high", "p", "method_low", "method_high", "method_p"),
    *("n_movies", "n_patterns", "exact"),
)


@made_by("side(RUN)")
@dataclass(frozen=True, eq=False)
class Side:
    """One model of one run on one task.

    Attributes
    ----------
    run : SavedRun
    model : str
    task : str
        As ``train>test``.
    predictions : Predictions
        The run's rows of this model and task.
    """

    run: SavedRun
    model: str
    task: str
    predictions: Predictions


@made_by("compare(A, B)")
@dataclass(frozen=True, eq=False)
class Comparison:
    """Metrics of two models by movie.

    Attributes
    ----------
    a, b : Side
    movies : DataFrame
        A row for each metric and movie: ``a``, ``b`` and ``difference`` (a - b); NaN where the movie's clips
        don't define the metric. With several seeds each value is the mean over them.
    metrics : DataFrame
        A row for each metric: ``a`` and ``b``, the means over movies; their ``difference``; its 95 % t
        interval of these trained models (``low``, ``high``) and of the methods (``method_low``,
        ``method_high``); ``p`` of the sign-flip test with ``p_holm``, ``n_movies``, ``n_patterns`` and
        ``exact``; and ``method_p`` of the corrected t test with ``method_p_holm``. Holm's method adjusts
        over the metrics of `FAMILIES`.
    """

    a: Side
    b: Side
    movies: pd.DataFrame
    metrics: pd.DataFrame


@checked
def side(run: SavedRun, model: str | None = None, task: str | None = None) -> Side:
    """Select one model of a run on one task, as one side of a comparison.

    Parameters
    ----------
    run : SavedRun
    model : str, optional
        By default the run's first model.
    task : str, optional
        As ``train>test``; may be left out if the model has one task.

    Raises
    ------
    CompareError
        The run has no such model or task, or several tasks and none is named.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> run = om.saved(om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s"))
    >>> om.side(run, "linear").task
    'hn_s>hn_s'
    """
    table = run.predictions.table
    models = table["model"].unique().tolist()
    if not models:
        raise CompareError(f"{run.where}: the run has no predictions")
    # --- the model
    name = models[0] if model is None else model
    if name not in models:
        raise CompareError(f"{run.where}: no model {name!r} in this run, but {', '.join(models)}")

    # --- the task, of those that this model was tested on
    rows = table[table["model"] == name]
    tasks = rows["task"].unique().tolist()
    if task is not None and task not in tasks:
        raise CompareError(f"{run.where}: model {name} has no task {task!r}, but {', '.join(tasks)}")
    if task is None and len(tasks) > 1:
        raise CompareError(f"{run.where}: model {name} has several tasks ({', '.join(tasks)}): name one")
    chosen = tasks[0] if task is None else task
    kept = rows[rows["task"] == chosen].reset_index(drop=True)
    return Side(run, name, chosen, Predictions(kept, run.predictions.n_classes))


@checked
def compare(a: Side, b: Side) -> Comparison:
    """Compare two models metric by metric, paired by movie, with intervals and tests of the differences.

    They may be trained on different data, but must be tested on the same clips and labels. The metric ``auc``
    is the AUC within each movie.

    Raises
    ------
    CompareError
        The two were tested on different clips or labels, or under different protocols; the message names the
        first difference.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> run = om.saved(om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s"))
    >>> comparison = om.compare(om.side(run, "linear"), om.side(run, "movie_prior"))
    >>> list(comparison.metrics["metric"])[:2]
    ['average_precision', 'f1_pos']
    """
    _check_comparable(a, b)
    metrics = metrics_of(a.predictions.n_classes)
    values_a = by_movie(a.predictions, metrics)
    values_b = by_movie(b.predictions, metrics)
    movies = values_a[["metric", "movie"]].assign(a=values_a["value"], b=values_b["value"])
    movies["difference"] = movies["a"] - movies["b"]
    rows = []
    for name, movies_of_metric in movies.groupby("metric", sort=False):
        rows.append(_compare_by_metric(a, b, metrics[str(name)], movies_of_metric))
    table = pd.DataFrame(rows, columns=COLUMNS)
    # Holm's method adjusts p for the number of metrics that answer one question, a key of `FAMILIES`.
    family = "two classes" if a.predictions.n_classes == 2 else "levels"
    for column in ("p", "method_p"):
        table[f"{column}_holm"] = in_family(table["metric"].tolist(), table[column], family)
    return Comparison(a, b, movies, table)


def _compare_by_metric(a: Side, b: Side, metric: Metric, movies: pd.DataFrame) -> dict[str, object]:
    """Compute the row of one metric in `Comparison.metrics`, whose docstring describes the columns.

    `movies` holds the values of both models by movie, and their differences.
    """
    differences = movies["difference"]
    # The smallest and the largest difference that is possible. The range is narrower if the value of a model
    # is known in advance, as the AUC of a baseline is .5.
    possible = difference_bounds(
        metric.bounds, first=_value_known_in_advance(a, metric), second=_value_known_in_advance(b, metric)
    )
    # The interval and test "models" are of these two trained models; "method" are of the two methods, if
    # their models are trained anew on other movies.
    models_interval = t_interval(differences, covers="models", possible=possible)
    method_interval = t_interval(differences, covers="method", possible=possible)
    models_test = sign_flip(differences)
    method_test = corrected_t(differences)
    return {
        "metric": metric.name,
        "a": t_interval(movies["a"]).mean,
        "b": t_interval(movies["b"]).mean,
        "difference": models_interval.mean,
        "low": models_interval.low,
        "high": models_interval.high,
        "p": models_test.p,
        "method_low": method_interval.low,
        "method_high": method_interval.high,
        "method_p": method_test.p,
        "n_movies": models_test.n_pairs,
        "n_patterns": models_test.n_patterns,
        "exact": models_test.exact,
    }


def _value_known_in_advance(side: Side, metric: Metric) -> float | None:
    """Return the value that a model's metric has on whatever movies: .5 for the AUC of constant scores.

    None for other metrics, and for a model whose scores vary within movies. With a known value, fewer
    differences from another model are possible.
    """
    if metric.name != "auc":
        return None
    has_constant_scores = side.model in constant_models(side.predictions, side.task)
    return UNVARYING_AUC if has_constant_scores else None


def _check_comparable(a: Side, b: Side) -> None:
    """Raise if two models were not tested on the same clips and labels under the same protocol.

    The differences of their metrics would otherwise be due to the clips as much as to the models. The message
    names the first thing that differs.
    """
    refusal = f"{a.run.where} and {b.run.where} can't be compared"
    for name in ("protocol", "codebook"):
        value_a = a.run.record.get(name)
        value_b = b.run.record.get(name)
        if value_a != value_b:
            raise CompareError(f"{refusal}: {name} differs, {value_a!r} and {value_b!r}")
    clips_a = _clips_of(a)
    clips_b = _clips_of(b)
    _refuse_more_clips(clips_a, clips_b, a.run.where, refusal)
    _refuse_more_clips(clips_b, clips_a, b.run.where, refusal)
    for column in ("movie", "label"):
        values_a = clips_a[column]
        values_b = clips_b.loc[clips_a.index, column]
        differs = values_a != values_b
        if differs.any():
            n_differing = counted(int(differs.sum()), "clip")
            clip_id = clips_a.index[differs][0]
            raise CompareError(
                f"{refusal}: the {column} of {n_differing} differs, the first is {clip_id}: "
                f"{values_a[clip_id]} and {values_b[clip_id]}"
            )


def _clips_of(side: Side) -> pd.DataFrame:
    """Return one row for each clip that a model was tested on, by clip id; predictions have one per seed."""
    return side.predictions.table.drop_duplicates("clip_id").set_index("clip_id")


def _refuse_more_clips(clips: pd.DataFrame, other_clips: pd.DataFrame, location: str, refusal: str) -> None:
    """Raise if one model was tested on clips that the other was not tested on.

    The error begins with `refusal`, and names the run (`location`) that has more clips.
    """
    only_here = clips.index.difference(other_clips.index)
    if len(only_here):
        raise CompareError(
            f"{refusal}: their test clips differ, {len(only_here)} are in {location} alone, "
            f"the first is {only_here[0]}"
        )
