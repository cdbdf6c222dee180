"""Write what a run answers, in sentences: models that beat the baselines, what concepts hold, p of refits."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import pandas as pd

from obygaze_features.text import counted, visible
from obygaze_models.evaluation.best_layer import best_layer
from obygaze_models.evaluation.intervals import Interval, difference_bounds, ratio_interval, t_interval
from obygaze_models.evaluation.metrics import Metric, metrics_of
from obygaze_models.evaluation.run import Run
from obygaze_models.evaluation.summary import UNVARYING_AUC, by_movie, constant_models
from obygaze_models.models.layers import LAYER
from obygaze_models.models.names import BASELINES, HOMES, LENGTH, OTHER, STAGING
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.report.blocks import interval, number, p_value

ANNOTATED = "concept_labels"
"""The model of annotated concepts, with which completeness is measured."""

OF_FEATURES = ("attention", "linear")
"""Models of all features. Completeness is measured with the first of them that a run has."""

OF_CONCEPTS = ("pcbm_time", "pcbm_lr")
"""Models that decide by concepts. What they find beyond the concepts' labels has leaked into them."""

YARDSTICKS = {*HOMES[BASELINES], LENGTH, STAGING}
"""Baselines, which know no feature."""

MEANING = "of two clips of one movie, one positive and one negative, "
"""Begins the sentence on what an AUC means, which short reports leave out."""


def answers(run: Run) -> tuple[str, ...]:
    """Write for each task which models beat the baselines, and on how many movies the best of them does."""
    metrics = metrics_of(run.predictions.n_classes)
    metric = next(metric for metric in metrics.values() if metric.answers)
    on_models: list[str] = []
    on_concepts: list[str] = []
    layers = models_of_layers(run)
    for task in _tasks(run, metric):
        standing = _compared(task, metric)
        if layers:
            on_models += _on_layers(run, task, layers)
        elif standing is not None:
            on_models += _on_models(task.before, standing, metric)
        completeness = _completeness(task)
        if completeness is not None and metric.name == "auc":
            on_concepts.append(_on_concepts(task.before, completeness))
    lines = [*on_models, *on_concepts, *_on_refits(run, metrics)]
    return tuple(visible(line, lines=False) for line in lines)


def title_prefix(run: Run, task: object) -> str:
    """Begin a title or sentence with its task, where a run has several."""
    n_tasks = len(run.metrics["task"].unique())
    return f"{task}: " if n_tasks > 1 else ""


def is_yardstick(name: str) -> bool:
    """Tell whether a row only serves comparison: a baseline, a control, or chance."""
    if name == "(chance)" or name in YARDSTICKS:
        return True
    return name in BUILTIN_MODELS and BUILTIN_MODELS[name].control


def constant_controls(run: Run, task: str) -> list[str]:
    """List the controls whose scores are equal for all clips of a movie, so that they control nothing."""
    constant = constant_models(run.predictions, task)
    return [name for name in constant if name in BUILTIN_MODELS and BUILTIN_MODELS[name].control]


class _Task(NamedTuple):
    """A task of a run.

    Attributes
    ----------
    before : str
        Beginning of the sentences about the task.
    name : str
    values : mapping
        Model -> its values of a metric by movie.
    constant : list of str
        Models whose scores do not vary within movies.
    """

    before: str
    name: str
    values: "dict[str, pd.Series[float]]"
    constant: list[str]


def _tasks(run: Run, metric: Metric) -> Iterator[_Task]:
    """Yield the tasks of a run, with the values of one metric."""
    for task, of_task in by_movie(run.predictions, {"": metric}).groupby("task", sort=False):
        values = {}
        for model, of_model in of_task.groupby("model", sort=False):
            values[str(model)] = of_model.set_index("movie")["value"]
        yield _Task(title_prefix(run, task), str(task), values, constant_models(run.predictions, str(task)))


# --- which models beat the baselines
# ---------------------------------------------------------------------------
@dataclass(frozen=True)
class _Standing:
    """How the models of a task stand against the baselines.

    Attributes
    ----------
    n_models : int
        Number of models that are compared.
    baselines : list of str
        The baselines that they are compared with: all but random guesses.
    beating : list of str
        The models that beat every one of them.
    best, nearest : str
        The model with the largest mean difference, and the baseline nearest to it.
    difference : Interval
        Difference between these two by movie; above 0 the model is better.
    n_better : int
        Number of movies on which the model is better.
    mean : float
        Mean of the best model's metric by movie.
    """

    n_models: int
    baselines: list[str]
    beating: list[str]
    best: str
    nearest: str
    difference: Interval
    n_better: int
    mean: float


class _Difference(NamedTuple):
    """The difference between a model and a baseline by movie, and on how many movies the model is better."""

    interval: Interval
    baseline: str
    n_better: int


def _compared(task: _Task, metric: Metric) -> _Standing | None:
    """Find the models of a task that beat the baselines; None where there are none to compare.

    A model beats them if the interval of its difference to each lies above 0. As the best of several models
    is named, intervals hold for all models together (Bonferroni); they are those of the methods, which are
    wider than those of the trained models.
    """
    values = task.values
    models = [name for name in values if name != OTHER and not is_yardstick(name)]
    # Guesses are left out: one draw's luck by movie would hide a gain; on average they reach no more.
    baselines = [name for name in values if name in YARDSTICKS and not name.startswith("random_")]
    sign = 1 if metric.higher_is_better else -1
    nearest: dict[str, _Difference] = {}
    for model, baseline in product(models, baselines):
        by_film = (values[model] - values[baseline]) * sign
        has_known_auc = metric.name == "auc" and baseline in task.constant
        known_value = UNVARYING_AUC if has_known_auc else None
        least, most = difference_bounds(metric.bounds, second=known_value)
        possible = (least, most) if sign > 0 else (-most, -least)
        above = t_interval(by_film, 1 - 0.05 / len(models), covers="method", possible=possible)
        # The nearest baseline is the one with the lowest interval. Where an interval is undefined (NaN), the
        # last baseline counts.
        is_further = model in nearest and above.low > nearest[model].interval.low
        if not is_further:
            nearest[model] = _Difference(above, baseline, int((by_film > 0).sum()))
    if not nearest:
        return None
    beating = [model for model in models if nearest[model].interval.low > 0]
    best = max(beating or models, key=lambda model: nearest[model].interval.mean)
    difference, baseline, n_better = nearest[best]
    mean = float(values[best].mean())
    return _Standing(len(models), baselines, beating, best, baseline, difference, n_better, mean)


def _on_models(before: str, standing: _Standing, metric: Metric) -> list[str]:
    """Say which models are better than each baseline, by how much the best is, and what its AUC means."""
    n_movies = standing.difference.n_movies
    if n_movies == 0:
        line = (
            "no movie has clips of both classes, and scores of different movies come from different models: "
            "nothing can be ranked, and calls are shown over all clips"
        )
        return [before + line]
    baselines = ", ".join(standing.baselines)
    sentence = f"no model is shown to be better than each of the baselines {baselines}"
    if standing.beating:
        sentence = f"better than each of the baselines {baselines}: {', '.join(standing.beating)}"
    together = f" for {standing.n_models} models together" if standing.n_models > 1 else ""
    is_behind = standing.difference.mean < 0
    where = f"{'ahead on' if is_behind else 'on'} {standing.n_better} of {counted(n_movies, 'movie')}"
    line = (
        f"{before}{sentence}; {standing.best} is {_lead(standing)} in {metric.title} by movie, "
        f"{where} (95 %{together}, retrained)"
    )
    if metric.name != "auc":
        return [line]
    n_higher = f"{100 * standing.mean:.0f}"
    meaning = (
        f"{before}{MEANING}{standing.best} gives the positive one the higher score in {n_higher} of 100 "
        "draws; chance: 50"
    )
    return [line, meaning]


def _lead(standing: _Standing) -> str:
    """Say by how much the best model is ahead of the nearest baseline, or behind it."""
    mean = standing.difference.mean
    low = standing.difference.low
    high = standing.difference.high
    if not high > low:  # the same lead on every movie has no interval
        low = math.nan
        high = math.nan
    if mean >= 0:
        lead = interval(mean, low, high, signed=True)
        return f"ahead of the nearest of these, {standing.nearest}, by {lead}"
    return f"behind the nearest of these, {standing.nearest}, by {interval(-mean, -high, -low)}"


# --- which layer
# ---------------------------------------------------------------------------
def models_of_layers(run: Run) -> dict[str, dict[str, str]]:
    """List the models of which there is one for each layer: model -> layer -> its name in the run."""
    found: dict[str, dict[str, str]] = {}
    for name, settings in run.record["models"].items():
        model, _, layer = name.rpartition(":")
        if model and settings.get("estimator") == "LayerClassifier":
            found.setdefault(model, {})[layer] = name
    return found


def chosen_layers(run: Run) -> list[str]:
    """Say which layers inner folds chose, and in how many folds, of each model."""
    table = run.selection[run.selection["chosen"] == 1]
    layers = table["candidate"].astype(str).str.extract(rf"{LAYER}(\d+)$", expand=False)
    lines = []
    for model, of_model in layers.dropna().groupby(table["model"], sort=False):
        counts = of_model.value_counts()
        chosen = ", ".join(f"{layer} in {n}" for layer, n in counts.items())
        folds = counted(len(of_model), "fold")
        lines.append(f"{model}: layer chosen by inner folds: {chosen} of {folds}")
    return lines


def _on_layers(run: Run, task: _Task, layers: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Write for each model which layer is best, and what the best of as many layers reaches by chance."""
    lines = []
    for model, names in layers.items():
        best = best_layer(run.predictions, task.name, model, names)
        if best is None:
            lines.append(
                f"{task.before}{model}: no movie has clips of two classes, by which layers are ranked"
            )
            continue
        title = metrics_of(run.predictions.n_classes)[best.metric].title
        lines.append(
            f"{task.before}{model}: of {best.n_layers} layers {best.layer} is best, {title} by movie "
            f"{number(best.value)}; the best of {best.n_layers} reaches {number(best.chance)} by chance, and "
            f"{number(best.high)} in 1 of 20 (labels exchanged within films): p {p_value(best.p)}"
        )
    return lines


# --- what concepts hold
# ---------------------------------------------------------------------------
@dataclass(frozen=True)
class _Completeness:
    """How much of what features know of a label is in the labels of concepts.

    Attributes
    ----------
    features : str
        The model of all features.
    auc_labels, auc_features : float
        AUC by movie of the model of annotated concepts, and of the model of all features.
    share : Interval
        How far the first lies above .5, divided by how far the second does.
    beyond : list of str
        Names of models, each with how far its AUC lies above that of the concepts' labels.
    """

    features: str
    auc_labels: float
    auc_features: float
    share: Interval
    beyond: list[str]


def _completeness(task: _Task) -> _Completeness | None:
    """Measure completeness; None without a model of annotated concepts, or without one of all features.

    Completeness is the AUC above .5 of annotated concepts over that of all features (Yeh et al. 2020).
    """
    values = task.values
    features = next((name for name in OF_FEATURES if name in values), "")
    if ANNOTATED not in values or not features:
        return None
    labels = float(values[ANNOTATED].mean())
    mean_of_features = float(values[features].mean())
    share = ratio_interval(values[ANNOTATED] - 0.5, values[features] - 0.5, covers="method")
    beyond = []
    for name in (features, *OF_CONCEPTS):
        if name in values:
            possible = difference_bounds((0.0, 1.0))
            gain = t_interval(values[name] - values[ANNOTATED], covers="method", possible=possible)
            beyond.append(f"{name} {interval(gain.mean, gain.low, gain.high, signed=True)}")
    return _Completeness(features, labels, mean_of_features, share, beyond)


def _on_concepts(before: str, completeness: _Completeness) -> str:
    """Write how complete the concepts are."""
    share = completeness.share
    is_undefined = not completeness.auc_features > 0.5
    held = "undefined" if is_undefined else interval(share.mean, share.low, share.high)
    return (
        f"{before}concepts: AUC by movie of their labels alone {number(completeness.auc_labels)}, of all "
        f"features ({completeness.features}) {number(completeness.auc_features)}: completeness {held}; "
        f"found beyond the labels: {', '.join(completeness.beyond)} (95 %, retrained)"
    )


# --- p by refits
# ---------------------------------------------------------------------------
def _on_refits(run: Run, metrics: Mapping[str, Metric]) -> list[str]:
    """Say p of each model that was trained again with films' labels exchanged."""
    if "refits" not in run.record:
        return []
    refits: Mapping[str, Any] = run.record["refits"]
    title = metrics[refits["metric"]].title
    failed = f"; {refits['left_out']} could not be trained" if refits["left_out"] else ""
    lines = []
    for model in refits["models"]:
        before = title_prefix(run, model["task"])
        p = p_value(model["p"])
        observed = number(model["observed"])
        mean = number(model["refits"])
        lines.append(
            f"{before}{model['model']}: p {p} by {refits['n']} refits with films' sequences of labels "
            f"exchanged ({title} by movie {observed}, of refits {mean} on average{failed})"
        )
    return lines
