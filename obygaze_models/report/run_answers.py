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
from obygaze_models.models.layers import LAYER_PREFIX
from obygaze_models.models.names import BASELINES, HOMES, LENGTH, OTHER, STAGING
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.report.blocks import interval, number, p_value

CONCEPT_LABELS = "concept_labels"
"""The model of annotated concepts, with which completeness is measured."""

MODELS_OF_FEATURES = ("attention", "linear")
"""Models of all features. Completeness is measured with the first of them that a run has."""

MODELS_OF_CONCEPTS = ("pcbm_time", "pcbm_lr")
"""Models that decide by concepts. If they are better than the concepts' labels, other information has leaked
into their concepts."""

YARDSTICKS = {*HOMES[BASELINES], LENGTH, STAGING}
"""Baselines, which read no features."""

MEANING = "of two clips of one movie, one positive and one negative, "
"""Begins the sentence on what an AUC means, which short reports leave out."""


def answers(run: Run) -> tuple[str, ...]:
    """Write the answers of a run as sentences: which models beat the baselines, and what concepts hold.

    There are sentences for each task; those on refits come last.
    """
    metrics = metrics_of(run.predictions.n_classes)
    metric = next(metric for metric in metrics.values() if metric.is_main)
    model_sentences: list[str] = []
    concept_sentences: list[str] = []
    layers = models_of_layers(run)
    for task in _iterate_tasks(run, metric):
        comparison = _compare_with_baselines(task, metric)
        if layers:
            model_sentences += _layer_sentences(run, task, layers)
        elif comparison is not None:
            model_sentences += _baseline_sentences(task.prefix, comparison, metric)
        completeness = _measure_completeness(task)
        if completeness is not None and metric.name == "auc":
            concept_sentences.append(_concepts_sentence(task.prefix, completeness))
    lines = [*model_sentences, *concept_sentences, *_refit_sentences(run, metrics)]
    return tuple(visible(line, lines=False) for line in lines)


def title_prefix(run: Run, task: object) -> str:
    """Return "TASK: " to begin a title or sentence with, if the run has several tasks; else ""."""
    n_tasks = len(run.metrics["task"].unique())
    return f"{task}: " if n_tasks > 1 else ""


def is_yardstick(name: str) -> bool:
    """Tell whether a row only serves comparison: a baseline, a control, or chance."""
    if name == "(chance)" or name in YARDSTICKS:
        return True
    return name in BUILTIN_MODELS and BUILTIN_MODELS[name].control


def constant_controls(run: Run, task: str) -> list[str]:
    """List the controls whose scores do not vary within movies, so that they control nothing."""
    constant = constant_models(run.predictions, task)
    return [name for name in constant if name in BUILTIN_MODELS and BUILTIN_MODELS[name].control]


class _Task(NamedTuple):
    """A task of a run.

    Attributes
    ----------
    prefix : str
        Beginning of the sentences about the task.
    name : str
    values : mapping
        Model -> its values of a metric by movie.
    constant : list of str
        Models whose scores do not vary within movies.
    """

    prefix: str
    name: str
    values: "dict[str, pd.Series[float]]"
    constant: list[str]


def _iterate_tasks(run: Run, metric: Metric) -> Iterator[_Task]:
    """Yield each task of a run, with the values by movie of one metric for each model."""
    for task, rows_of_task in by_movie(run.predictions, {"": metric}).groupby("task", sort=False):
        values = {}
        for model, rows_of_model in rows_of_task.groupby("model", sort=False):
            values[str(model)] = rows_of_model.set_index("movie")["value"]
        yield _Task(title_prefix(run, task), str(task), values, constant_models(run.predictions, str(task)))


# --- which models beat the baselines
# ---------------------------------------------------------------------------
@dataclass(frozen=True)
class _BaselineComparison:
    """Comparison of a task's models with the baselines.

    Attributes
    ----------
    n_models : int
        Number of models that are compared.
    baselines : list of str
        The baselines that they are compared with: all but random guesses.
    beating : list of str
        The models that beat every baseline.
    best, nearest : str
        The model with the largest mean difference, and the baseline nearest to it.
    difference : Interval
        Difference between these two by movie; above 0 the model is better.
    n_better : int
        Number of movies on which the model is better.
    mean : float
        Mean of the best model's metric by movie.
    is_moved_auc : bool
        Whether the difference is the model's AUC less .5, as the baseline's scores do not vary.
    """

    n_models: int
    baselines: list[str]
    beating: list[str]
    best: str
    nearest: str
    difference: Interval
    n_better: int
    mean: float
    is_moved_auc: bool


class _Lead(NamedTuple):
    """By how much a model is better than a baseline.

    Attributes
    ----------
    interval : Interval
        Of the difference by movie, which is above 0 if the model is better.
    baseline : str
    n_better : int
        Number of movies on which the model is better.
    """

    interval: Interval
    baseline: str
    n_better: int


def _compare_with_baselines(task: _Task, metric: Metric) -> _BaselineComparison | None:
    """Find the models of a task that beat all baselines; None if there are no models or no baselines.

    A model beats a baseline if the interval of their difference by movie lies above 0. The intervals are
    those of the methods, and hold for all models together (Bonferroni), as the best of several is named.
    """
    values = task.values
    models = [name for name in values if name != OTHER and not is_yardstick(name)]
    # Random guesses are left out: the luck of one draw could hide a gain, and on average they are no better.
    baselines = [name for name in values if name in YARDSTICKS and not name.startswith("random_")]
    # For each model its lead over the nearest baseline: the one with the lowest lower end of the interval.
    smallest_leads: dict[str, _Lead] = {}
    for model, baseline in product(models, baselines):
        lead = _lead_over(task, metric, model, baseline, n_models=len(models))
        smallest = smallest_leads.get(model)
        # A comparison with an undefined end (NaN) is False: the last baseline then counts as the nearest.
        if smallest is None or not lead.interval.low > smallest.interval.low:
            smallest_leads[model] = lead
    if not smallest_leads:
        return None
    beating = [model for model in models if smallest_leads[model].interval.low > 0]
    best = max(beating or models, key=lambda model: smallest_leads[model].interval.mean)
    difference, baseline, n_better = smallest_leads[best]
    return _BaselineComparison(
        n_models=len(models),
        baselines=baselines,
        beating=beating,
        best=best,
        nearest=baseline,
        difference=difference,
        n_better=n_better,
        mean=float(values[best].mean()),
        is_moved_auc=_has_known_auc(task, metric, baseline),
    )


def _lead_over(task: _Task, metric: Metric, model: str, baseline: str, *, n_models: int) -> _Lead:
    """Compute by how much a model is better than a baseline in a metric by movie.

    The interval is that of the methods, at a level at which it holds for `n_models` models together.
    """
    sign = 1 if metric.higher_is_better else -1
    differences = (task.values[model] - task.values[baseline]) * sign
    known_value = UNVARYING_AUC if _has_known_auc(task, metric, baseline) else None
    least, most = difference_bounds(metric.bounds, second=known_value)
    possible = (least, most) if sign > 0 else (-most, -least)
    interval_of_lead = t_interval(differences, 1 - 0.05 / n_models, covers="method", possible=possible)
    return _Lead(interval_of_lead, baseline, int((differences > 0).sum()))


def _has_known_auc(task: _Task, metric: Metric, baseline: str) -> bool:
    """Whether the metric of a baseline is an AUC that is .5 in every movie, as its scores do not vary."""
    return metric.name == "auc" and baseline in task.constant


def _baseline_sentences(prefix: str, comparison: _BaselineComparison, metric: Metric) -> list[str]:
    """Write which models beat all baselines, by how much the best one leads, and what its AUC means.

    `prefix` begins each sentence.
    """
    n_movies = comparison.difference.n_movies
    if n_movies == 0:
        line = (
            "no movie has clips of both classes, and scores of different movies come from different models: "
            "nothing can be ranked, and calls are shown over all clips"
        )
        return [prefix + line]
    baselines = ", ".join(comparison.baselines)
    sentence = f"no model is shown to be better than each of the baselines {baselines}"
    if comparison.beating:
        sentence = f"better than each of the baselines {baselines}: {', '.join(comparison.beating)}"
    together = f" for {comparison.n_models} models together" if comparison.n_models > 1 else ""
    scale = ""
    if comparison.is_moved_auc and comparison.difference.high > comparison.difference.low:
        # The table has an interval of the same quantity, on the logit scale: a reader sees two that differ.
        scale = "; on another scale than the AUC's own interval"
    where = f"on {comparison.n_better} of {counted(n_movies, 'movie')}"
    if comparison.difference.mean < 0:
        where = f"ahead {where}"
    line = (
        f"{prefix}{sentence}; {comparison.best} is {_describe_lead(comparison)} in {metric.title} by movie, "
        f"{where} (95 %{together}, retrained{scale})"
    )
    if metric.name != "auc":
        return [line]
    n_higher = f"{100 * comparison.mean:.0f}"
    meaning = (
        f"{prefix}{MEANING}{comparison.best} gives the positive one the higher score in {n_higher} of 100 "
        "draws; chance: 50"
    )
    return [line, meaning]


def _describe_lead(comparison: _BaselineComparison) -> str:
    """Write by how much the best model is ahead of the nearest baseline, or behind it, with the interval."""
    mean = comparison.difference.mean
    low = comparison.difference.low
    high = comparison.difference.high
    if not high > low:  # there is no interval if the lead is the same on every movie
        low = math.nan
        high = math.nan
    if mean >= 0:
        lead = interval(mean, low, high, signed=True)
        return f"ahead of the nearest of these, {comparison.nearest}, by {lead}"
    return f"behind the nearest of these, {comparison.nearest}, by {interval(-mean, -high, -low)}"


# --- which layer
# ---------------------------------------------------------------------------
def models_of_layers(run: Run) -> dict[str, dict[str, str]]:
    """Group the models of a run that are of single layers: model -> layer -> its name in the run."""
    by_model: dict[str, dict[str, str]] = {}
    for name, settings in run.record["models"].items():
        model, _, layer = name.rpartition(":")
        if model and settings.get("estimator") == "LayerClassifier":
            by_model.setdefault(model, {})[layer] = name
    return by_model


def chosen_layers(run: Run) -> list[str]:
    """Write for each model that chooses a layer which layers inner folds chose, and in how many folds."""
    table = run.selection[run.selection["chosen"] == 1]
    layers = table["candidate"].astype(str).str.extract(rf"{LAYER_PREFIX}(\d+)$", expand=False)
    lines = []
    for model, chosen in layers.dropna().groupby(table["model"], sort=False):
        n_folds_of = chosen.value_counts()
        counts = ", ".join(f"{layer} in {n}" for layer, n in n_folds_of.items())
        lines.append(f"{model}: layer chosen by inner folds: {counts} of {counted(len(chosen), 'fold')}")
    return lines


def _layer_sentences(run: Run, task: _Task, layers: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Write for each model which layer is best, and what the best of as many layers reaches by chance.

    `layers` maps a model to its layers, and these to the names of their models.
    """
    lines = []
    for model, names in layers.items():
        best = best_layer(run.predictions, task.name, model, names)
        if best is None:
            lines.append(
                f"{task.prefix}{model}: no movie has clips of two classes, by which layers are ranked"
            )
            continue
        title = metrics_of(run.predictions.n_classes)[best.metric].title
        lines.append(
            f"{task.prefix}{model}: of {best.n_layers} layers {best.layer} is best, {title} by movie "
            f"{number(best.value)}; the best of {best.n_layers} reaches {number(best.chance)} by chance, and "
            f"{number(best.high)} in 1 of 20 (labels exchanged within films): p {p_value(best.p)}"
        )
    return lines


# --- what concepts hold
# ---------------------------------------------------------------------------
@dataclass(frozen=True)
class _Completeness:
    """How much of the information on a label that is in the features is also in the concepts' labels.

    Attributes
    ----------
    features : str
        The model of all features.
    auc_labels, auc_features : float
        AUC by movie of the model of annotated concepts, and of the model of all features.
    share : Interval
        (auc_labels - .5) / (auc_features - .5), and its interval.
    beyond : list of str
        Texts: the name of a model, and by how much its AUC exceeds that of the concepts' labels.
    """

    features: str
    auc_labels: float
    auc_features: float
    share: Interval
    beyond: list[str]


def _measure_completeness(task: _Task) -> _Completeness | None:
    """Measure completeness: how much of the features' information on the label the annotated concepts have.

    It is the AUC of the concepts' labels less .5, divided by the AUC of all features less .5 (Yeh et al.
    2020). None if the task has no model of the concepts' labels, or none of all features.
    """
    values = task.values
    features = next((name for name in MODELS_OF_FEATURES if name in values), "")
    if CONCEPT_LABELS not in values or not features:
        return None
    auc_labels = float(values[CONCEPT_LABELS].mean())
    auc_features = float(values[features].mean())
    share = ratio_interval(values[CONCEPT_LABELS] - 0.5, values[features] - 0.5, covers="method")
    possible = difference_bounds((0.0, 1.0))
    beyond = []
    for name in (features, *MODELS_OF_CONCEPTS):
        if name in values:
            gain = t_interval(values[name] - values[CONCEPT_LABELS], covers="method", possible=possible)
            beyond.append(f"{name} {interval(gain.mean, gain.low, gain.high, signed=True)}")
    return _Completeness(features, auc_labels, auc_features, share, beyond)


def _concepts_sentence(prefix: str, completeness: _Completeness) -> str:
    """Write the completeness of the concepts, and how much better models are than the concepts' labels."""
    share = completeness.share
    is_defined = completeness.auc_features > 0.5
    measured = interval(share.mean, share.low, share.high) if is_defined else "undefined"
    return (
        f"{prefix}concepts: AUC by movie of their labels alone {number(completeness.auc_labels)}, of all "
        f"features ({completeness.features}) {number(completeness.auc_features)}: completeness {measured}; "
        f"found beyond the labels: {', '.join(completeness.beyond)} (95 %, retrained)"
    )


# --- p by refits
# ---------------------------------------------------------------------------
def _refit_sentences(run: Run, metrics: Mapping[str, Metric]) -> list[str]:
    """Write the p-value of each model that was tested by refits with exchanged labels, if the run has any."""
    if "refits" not in run.record:
        return []
    refits: Mapping[str, Any] = run.record["refits"]
    title = metrics[refits["metric"]].title
    failed = f"; {refits['left_out']} could not be trained" if refits["left_out"] else ""
    lines = []
    for model in refits["models"]:
        prefix = title_prefix(run, model["task"])
        p = p_value(model["p"])
        observed = number(model["observed"])
        mean = number(model["refits"])
        lines.append(
            f"{prefix}{model['model']}: p {p} by {refits['n']} refits with films' sequences of labels "
            f"exchanged ({title} by movie {observed}, of refits {mean} on average{failed})"
        )
    return lines
