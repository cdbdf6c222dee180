"""Compare two models tested on the same clips, paired by movie."""

from dataclasses import dataclass

import pandas as pd

from obygaze_features.arguments import checked, made_by
from obygaze_models.errors import CompareError
from obygaze_models.evaluation.intervals import difference_bounds, t_interval
from obygaze_models.evaluation.metrics import metrics_of
from obygaze_models.evaluation.paired_tests import corrected_t, in_family, sign_flip
from obygaze_models.evaluation.predictions import Predictions
from obygaze_models.evaluation.run_folder import SavedRun
from obygaze_models.evaluation.summary import UNVARYING_AUC, by_movie, constant_models

COLUMNS = (
    *("metric", "a", "b", "difference", "low", "high", "p", "method_low", "method_high", "method_p"),
    *("n_movies", "n_patterns", "exact"),
)


@made_by("side(RUN)")
@dataclass(frozen=True, eq=False)
class Side:
    """One model of one run, on one task: its rows of the table of predictions."""

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
        A row for each metric: the means over movies ``a`` and ``b``, their ``difference``; its 95 % t
        intervals of these models (``low``, ``high``) and of the methods (``method_low``, ``method_high``);
        the sign-flip test's ``p`` with ``p_holm``, ``n_movies``, ``n_patterns`` and ``exact``; and the
        corrected test's ``method_p`` with ``method_p_holm``. Holm's families are `FAMILIES`.
    """

    a: Side
    b: Side
    movies: pd.DataFrame
    metrics: pd.DataFrame


@checked
def side(run: SavedRun, model: str | None = None, task: str | None = None) -> Side:
    """Take one model of a run on one task, by default the first of each.

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
    name = models[0] if model is None else model
    if name not in models:
        raise CompareError(f"{run.where}: no model {name!r} in this run, but {', '.join(models)}")
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
    """Compare two models, paired by movie; training data may differ, test clips and labels may not.

    By movie, auc is the within-movie AUC.

    Raises
    ------
    CompareError
        The two were not tested on the same clips and labels, or under another protocol: names the first
        thing that differs.

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
    known_metrics = metrics_of(a.predictions.n_classes)
    own, others = (by_movie(each.predictions, known_metrics) for each in (a, b))
    movies = own[["metric", "movie"]].assign(a=own["value"], b=others["value"])
    movies["difference"] = movies["a"] - movies["b"]
    rows = []
    for metric, part in movies.groupby("metric", sort=False):
        possible = difference_bounds(
            known_metrics[str(metric)].bounds,
            first=_known_value(a, str(metric)),
            second=_known_value(b, str(metric)),
        )
        models = t_interval(part["difference"], possible=possible)
        method = t_interval(part["difference"], covers="method", possible=possible)
        test = sign_flip(part["difference"])
        means = (t_interval(part[name]).mean for name in ("a", "b"))
        both = models.mean, models.low, models.high, test.p, method.low, method.high
        of_method = corrected_t(part["difference"]).p
        rows.append((metric, *means, *both, of_method, test.n_pairs, test.n_patterns, test.exact))
    metrics = pd.DataFrame(rows, columns=COLUMNS)
    family = "two classes" if a.predictions.n_classes == 2 else "levels"
    names = metrics["metric"].tolist()
    for p in ("p", "method_p"):
        metrics[f"{p}_holm"] = in_family(names, metrics[p], family)
    return Comparison(a, b, movies, metrics)


def _known_value(side: Side, metric: str) -> float | None:
    """Return the value that a side has whatever movies are drawn: the AUC of scores that do not vary."""
    is_constant = side.model in constant_models(side.predictions, side.task)
    return UNVARYING_AUC if metric == "auc" and is_constant else None


def _check_comparable(a: Side, b: Side) -> None:
    what = f"{a.run.where} and {b.run.where} can't be compared"
    for name in ("protocol", "codebook"):
        found_a, found_b = a.run.record.get(name), b.run.record.get(name)
        if found_a != found_b:
            raise CompareError(f"{what}: {name} differs, {found_a!r} and {found_b!r}")
    clips_a, clips_b = (
        clips.predictions.table.drop_duplicates("clip_id").set_index("clip_id") for clips in (a, b)
    )
    for clips, other, where in ((clips_a, clips_b, a.run.where), (clips_b, clips_a, b.run.where)):
        alone = clips.index.difference(other.index)
        if len(alone):
            raise CompareError(
                f"{what}: their test clips differ, {len(alone)} are in {where} alone, the first is {alone[0]}"
            )
    for column in ("movie", "label"):
        there = clips_b.loc[clips_a.index, column]
        if (strange := clips_a[column] != there).any():
            clip = clips_a.index[strange][0]
            raise CompareError(
                f"{what}: the {column} of {int(strange.sum())} clips differs, the first is {clip}: "
                f"{clips_a.loc[clip, column]} and {there[clip]}"
            )
