"""Write what a run answers, in sentences: models that beat the baselines, what concepts hold, p of refits."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from obygaze_features.text import counted, visible
from obygaze_models.evaluation.best_layer import best_layer
from obygaze_models.evaluation.intervals import Interval, difference_bounds, ratio_interval, t_interval
from obygaze_models.evaluation.metrics import Metric, metrics_of
from obygaze_models.evaluation.run import Run
from obygaze_models.evaluation.summary import UNVARYING_AUC, by_movie, constant_models
from obygaze_models.models.layers import LAYER_PREFIX, LayerClassifier
from obygaze_models.models.names import BASELINES, HOMES, LENGTH, OTHER_ANNOTATOR, STAGING, name_in_zoo
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.report.blocks import CHANCE_ROW, interval, number, p_value

CONCEPT_LABELS = "concept_labels"
"""The model of annotated concepts, with which completeness is measured."""

MODELS_OF_FEATURES = ("attention", "linear")
"""Models of all features. Completeness is measured with the first of them that a run has."""

MODELS_OF_CONCEPTS = ("pcbm_time", "pcbm_lr")
"""Models that decide by concepts. If they are better than the concepts' labels, other information has leaked
into their concepts."""

YARDSTICKS = {*HOMES[BASELINES], LENGTH, STAGING}
"""Baselines, which read no features: what other models are compared with."""

MEANING = "of two clips of one movie, one positive and one negative, "
"""Beginning of the sentence on what an AUC means, by which short reports find and omit it."""


def answers(run: Run) -> tuple[str, ...]:
    """Write the answers of a run as sentences.

    For each task they say which models beat the baselines and, if clips are ranked by AUC, how much of the
    information on the label the concepts contain. Sentences on refits come last.
    """
    metrics = metrics_of(run.predictions.n_classes)
    main_metric = next(metric for metric in metrics.values() if metric.is_main)
    layers = models_of_layers(run)
    model_sentences: list[str] = []
    concept_sentences: list[str] = []
    for task in _tasks_by_movie(run, main_metric):
        # Models of single layers of a network are compared with each other, other models with baselines.
        if layers:
            model_sentences += _layer_sentences(run, task, layers)
        else:
            model_sentences += _baseline_sentences(task, main_metric)
        if main_metric.name == "auc":
            concept_sentences += _concept_sentences(task)
    lines = [*model_sentences, *concept_sentences, *_refit_sentences(run, metrics)]
    return tuple(visible(line, line_breaks=False) for line in lines)


def title_prefix(run: Run, task: object) -> str:
    """Return "TASK: " to begin a title or sentence with, if the run has several tasks; else ""."""
    n_tasks = len(run.metrics["task"].unique())
    return f"{task}: " if n_tasks > 1 else ""


def is_yardstick(name: str) -> bool:
    """Tell whether a row of a table only serves comparison: a baseline, a control, or the row of chance.

    `name` is the row's first cell, which is mostly the name of a model.
    """
    return name == CHANCE_ROW or _is_baseline(name) or _is_control(name)


def _is_baseline(name: str) -> bool:
    """Tell whether a model of a run is a baseline, whichever annotator's labels it is trained on."""
    return name_in_zoo(name) in YARDSTICKS


def _is_control(name: str) -> bool:
    """Tell whether a model of a run is a control of the zoo, whichever annotator's labels it is trained on.

    Models that are not the zoo's own are never controls.
    """
    model = name_in_zoo(name)
    return model in BUILTIN_MODELS and BUILTIN_MODELS[model].control


def constant_controls(run: Run, task: str) -> list[str]:
    """List the controls whose scores do not vary within movies, so that comparing with them shows nothing."""
    return [name for name in constant_models(run.predictions, task) if _is_control(name)]


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
    variance_by_chance : float
        Variance of the metric of a movie whose clips are ranked by chance; NaN if it is not known.
    """

    prefix: str
    name: str
    values: "dict[str, pd.Series[float]]"
    constant: list[str]
    variance_by_chance: float


def _tasks_by_movie(run: Run, metric: Metric) -> Iterator[_Task]:
    """Yield each task of a run with what its answers need: the values by movie of one metric for each model.

    With them go the models whose scores do not vary within movies, and by how much an AUC varies by chance;
    the latter is not known of other metrics.
    """
    # `by_movie` gives a row for each task, model and movie, with columns of these names, and `value`.
    table = by_movie(run.predictions, {metric.name: metric})
    for task, rows_of_task in table.groupby("task", sort=False):
        values = {}
        for model, rows_of_model in rows_of_task.groupby("model", sort=False):
            values[str(model)] = rows_of_model.set_index("movie")["value"]
        yield _Task(
            prefix=title_prefix(run, task),
            name=str(task),
            values=values,
            constant=constant_models(run.predictions, str(task)),
            variance_by_chance=_auc_variance_by_chance(run, task) if metric.name == "auc" else math.nan,
        )


def _auc_variance_by_chance(run: Run, task: object) -> float:
    """Compute the variance of a movie's AUC if its clips were ranked by chance, as a mean over movies.

    Of p positive and q negative clips it is (p + q + 1) / (12 p q) (Mann and Whitney 1947).
    """
    table = run.predictions.table
    clips = table[table["task"] == task].drop_duplicates("clip_id")
    variances = []
    for _, clips_of_movie in clips.groupby("movie"):
        n_positive = int(clips_of_movie["label"].sum())
        n_negative = len(clips_of_movie) - n_positive
        if n_positive and n_negative:
            variances.append((n_positive + n_negative + 1) / (12 * n_positive * n_negative))
    return sum(variances) / len(variances) if variances else math.nan


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
    is_auc_above_half : bool
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
    is_auc_above_half: bool


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
    those of retrained models ("method"). They hold for all models together (Bonferroni), as the best of
    several models is named.
    """
    values = task.values
    # The other annotators of a clip are among the values, and are no model.
    models = [name for name in values if name != OTHER_ANNOTATOR and not is_yardstick(name)]
    # Random guesses are left out: the luck of one draw could hide a gain, and on average they are no better.
    baselines = [name for name in values if _is_baseline(name) and not name.startswith("random_")]
    if not models or not baselines:
        return None

    leads = {}
    for model in models:
        leads[model] = _lead_over_nearest(task, metric, model, baselines, n_models=len(models))
    beating = [model for model in models if leads[model].interval.low > 0]

    # The best of the models that beat all baselines or, if none does, of all models.
    best = max(beating or models, key=lambda model: leads[model].interval.mean)
    lead = leads[best]
    return _BaselineComparison(
        n_models=len(models),
        baselines=baselines,
        beating=beating,
        best=best,
        nearest=lead.baseline,
        difference=lead.interval,
        n_better=lead.n_better,
        mean=float(values[best].mean()),
        is_auc_above_half=_has_known_auc(task, metric, lead.baseline),
    )


def _lead_over_nearest(
    task: _Task, metric: Metric, model: str, baselines: Sequence[str], *, n_models: int
) -> _Lead:
    """Compute the lead of a model over the nearest baseline: that which it beats least certainly, if at all.

    The model beats a baseline if the whole interval of its lead is above 0. The nearest baseline is the one
    whose interval begins lowest: a model that beats it beats all baselines. An undefined interval, such as
    that of equal differences, begins lowest of all. Of intervals that begin equally low, the last is taken.
    """
    leads = [_lead_over(task, metric, model, baseline, n_models=n_models) for baseline in baselines]
    nearest = leads[0]
    for lead in leads[1:]:
        if _beginning(lead.interval) <= _beginning(nearest.interval):
            nearest = lead
    return nearest


def _beginning(interval_of_lead: Interval) -> float:
    """Return the lower end of an interval; if it is undefined, anything is possible."""
    return -math.inf if math.isnan(interval_of_lead.low) else interval_of_lead.low


def _lead_over(task: _Task, metric: Metric, model: str, baseline: str, *, n_models: int) -> _Lead:
    """Compute by how much a model is better than a baseline in a metric, on average over movies.

    The interval is that of retrained models. Its level is such that the intervals of `n_models` models hold
    together with 95 % (Bonferroni).
    """
    level = 1 - 0.05 / n_models
    differences = task.values[model] - task.values[baseline]  # one for each movie

    # Scores that do not vary within movies have an AUC of .5, so that fewer differences are possible: from
    # -.5 to .5 if one of the two is known to be .5, and 0 alone if both are.
    value_of_model = UNVARYING_AUC if _has_known_auc(task, metric, model) else None
    value_of_baseline = UNVARYING_AUC if _has_known_auc(task, metric, baseline) else None
    least, most = difference_bounds(metric.bounds, first=value_of_model, second=value_of_baseline)

    # A lead is above 0 if the model is better, also in a metric whose lower values are better.
    if metric.higher_is_better:
        leads = differences
        possible = (least, most)
    else:
        leads = -differences
        possible = (-most, -least)
    interval_of_lead = t_interval(
        leads, level, covers="method", possible=possible, variance_by_chance=task.variance_by_chance
    )
    n_movies_ahead = int((leads > 0).sum())
    return _Lead(interval_of_lead, baseline, n_movies_ahead)


def _has_known_auc(task: _Task, metric: Metric, model: str) -> bool:
    """Tell whether a model's metric is an AUC that is .5 in every movie, as its scores do not vary."""
    return metric.name == "auc" and model in task.constant


def _baseline_sentences(task: _Task, metric: Metric) -> list[str]:
    """Write which models beat all baselines, by how much the best one leads, and what its AUC means.

    There are no sentences on a task without models or without baselines.
    """
    comparison = _compare_with_baselines(task, metric)
    if comparison is None:
        return []
    if comparison.difference.n_movies == 0:
        nothing_ranked = (
            "no movie has clips of both classes, and scores of different movies come from different models: "
            "nothing can be ranked, and calls are shown over all clips"
        )
        return [task.prefix + nothing_ranked]

    beating = (
        f"{_describe_beating(comparison)}; {comparison.best} is {_describe_lead(comparison)} in "
        f"{metric.title} by movie, {_describe_movies(comparison)} ({_describe_interval(comparison)})"
    )
    if metric.name != "auc":
        return [task.prefix + beating]

    n_higher = f"{100 * comparison.mean:.0f}"
    meaning_of_auc = (
        f"{MEANING}{comparison.best} gives the positive one the higher score in {n_higher} of 100 draws; "
        "chance: 50"
    )
    return [task.prefix + beating, task.prefix + meaning_of_auc]


def _describe_beating(comparison: _BaselineComparison) -> str:
    """Write which models are better than all baselines, or that none is shown to be."""
    baselines = ", ".join(comparison.baselines)
    if comparison.beating:
        return f"better than each of the baselines {baselines}: {', '.join(comparison.beating)}"
    return f"no model is shown to be better than each of the baselines {baselines}"


def _describe_lead(comparison: _BaselineComparison) -> str:
    """Write by how much the best model is ahead of the nearest baseline, or behind it, with the interval."""
    mean = comparison.difference.mean
    low = comparison.difference.low
    high = comparison.difference.high
    if mean >= 0:
        ahead = interval(mean, low, high, signed=True)
        return f"ahead of the nearest of these, {comparison.nearest}, by {ahead}"
    # How far the model is behind is the negative of the lead, so that the ends of the interval change places.
    behind = interval(-mean, low=-high, high=-low)
    return f"behind the nearest of these, {comparison.nearest}, by {behind}"


def _describe_movies(comparison: _BaselineComparison) -> str:
    """Write on how many movies the best model is better than the nearest baseline, as the end of a sentence.

    The sentence begins with how far the model is ahead or behind on average (`_describe_lead`). If ahead, it
    ends "on 7 of 12 movies". If behind, "ahead on 5 of 12 movies": without "ahead", 5 would be taken for the
    movies on which it is behind.
    """
    movies = f"on {comparison.n_better} of {counted(comparison.difference.n_movies, 'movie')}"
    is_behind = comparison.difference.mean < 0
    return f"ahead {movies}" if is_behind else movies


def _describe_interval(comparison: _BaselineComparison) -> str:
    """Write what the interval of the lead covers, and why it may differ from one in the table."""
    text = "95 %"
    if comparison.n_models > 1:
        text += f" for {comparison.n_models} models together"
    text += ", retrained"
    has_interval = not math.isnan(comparison.difference.low)
    if comparison.is_auc_above_half and has_interval:
        # The lead is the AUC less .5, with a symmetric interval. The table shows an interval of the AUC that
        # is symmetric on the logit scale. Less .5, its ends are other numbers.
        text += "; on another scale than the AUC's own interval"
    return text


# --- which layer
# ---------------------------------------------------------------------------
def models_of_layers(run: Run) -> dict[str, dict[str, str]]:
    """Group the models of a run that read a single layer: model -> layer -> name in the run.

    The model "linear" of layer 6 is named "linear:6" in the run, and "linear:6@ann" if it is trained on the
    labels of the annotator ann; the layers of "linear@ann" are then compared with each other.
    """
    name_of_layer: dict[str, dict[str, str]] = {}
    for name, settings in run.record["models"].items():
        without_annotator = name_in_zoo(name)
        annotator = name.removeprefix(without_annotator)
        model, _, layer = without_annotator.rpartition(":")
        if model and settings.get("estimator") == LayerClassifier.__name__:
            name_of_layer.setdefault(f"{model}{annotator}", {})[layer] = name
    return name_of_layer


def chosen_layers(run: Run) -> list[str]:
    """Write for each model that chooses a layer which layers inner folds chose, and in how many folds.

    The table `run.selection` names the candidate that was chosen in each fold.
    """
    chosen = run.selection[run.selection["chosen"] == 1]  # a row for each model and fold
    # A candidate that is a layer is named "layer 6"; others, such as "C=0.1", have no layer.
    layers = chosen["candidate"].astype(str).str.extract(rf"{LAYER_PREFIX}(\d+)$", expand=False)
    rows_with_layer = chosen.assign(layer=layers).dropna(subset="layer")
    lines = []
    for model, rows in rows_with_layer.groupby("model", sort=False):
        n_folds_of_layer = rows["layer"].value_counts()
        counts = ", ".join(f"{layer} in {n_folds}" for layer, n_folds in n_folds_of_layer.items())
        lines.append(f"{model}: layer chosen by inner folds: {counts} of {counted(len(rows), 'fold')}")
    return lines


def _layer_sentences(run: Run, task: _Task, layers: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Write for each model which layer is best, and what the best of as many layers reaches by chance.

    The best of many layers is above chance by luck alone. `layers` is what `models_of_layers` returns.
    """
    lines = []
    for model, model_of_layer in layers.items():
        best = best_layer(run.predictions, task.name, model, model_of_layer)
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
    model_of_features : str
        The model of all features.
    auc_labels, auc_features : float
        AUC by movie of the model of annotated concepts, and of the model of all features.
    share : Interval
        Completeness (Yeh et al. 2020), (auc_labels - .5) / (auc_features - .5), with its interval.
    gain_of_model : dict of str to Interval
        By how much the AUC of a model of features or of learnt concepts exceeds that of the concepts' labels.
    """

    model_of_features: str
    auc_labels: float
    auc_features: float
    share: Interval
    gain_of_model: dict[str, Interval]


def _measure_completeness(task: _Task) -> _Completeness | None:
    """Measure the completeness of the annotated concepts, and how much models gain beyond their labels.

    It needs a model that decides by the concepts' labels and one that decides by all features; None if the
    task lacks one of them.
    """
    aucs = task.values  # model -> AUC by movie
    models_of_features = [name for name in MODELS_OF_FEATURES if name in aucs]
    if CONCEPT_LABELS not in aucs or not models_of_features:
        return None

    model_of_features = models_of_features[0]
    aucs_of_labels = aucs[CONCEPT_LABELS]
    aucs_of_features = aucs[model_of_features]
    possible = difference_bounds((0.0, 1.0))
    gain_of_model = {}
    for name in (model_of_features, *MODELS_OF_CONCEPTS):
        if name in aucs:
            gain_of_model[name] = t_interval(aucs[name] - aucs_of_labels, covers="method", possible=possible)

    return _Completeness(
        model_of_features=model_of_features,
        auc_labels=float(aucs_of_labels.mean()),
        auc_features=float(aucs_of_features.mean()),
        share=ratio_interval(aucs_of_labels - 0.5, aucs_of_features - 0.5, covers="method"),
        gain_of_model=gain_of_model,
    )


def _concept_sentences(task: _Task) -> list[str]:
    """Write the completeness of the concepts, and how much better models are than the concepts' labels.

    There is no sentence on a task whose completeness cannot be measured.
    """
    completeness = _measure_completeness(task)
    if completeness is None:
        return []

    share = completeness.share
    # Features that are no better than chance have no information, of which concepts could contain a share.
    is_defined = completeness.auc_features > 0.5
    share_text = interval(share.mean, share.low, share.high) if is_defined else "undefined"
    features = f"all features ({completeness.model_of_features})"

    gains = []
    for model, gain in completeness.gain_of_model.items():
        gains.append(f"{model} {interval(gain.mean, gain.low, gain.high, signed=True)}")

    sentence = (
        f"{task.prefix}concepts: AUC by movie of their labels alone {number(completeness.auc_labels)}, of "
        f"{features} {number(completeness.auc_features)}: completeness {share_text}; "
        f"found beyond the labels: {', '.join(gains)} (95 %, retrained)"
    )
    return [sentence]


# --- p by refits
# ---------------------------------------------------------------------------
def _refit_sentences(run: Run, metrics: Mapping[str, Metric]) -> list[str]:
    """Write the p-value of each model that was tested by refits with exchanged labels, if the run has any.

    A refit is a training anew with the labels of whole films exchanged; p is the share of results as good.
    """
    if "refits" not in run.record:
        return []

    record: Mapping[str, Any] = run.record["refits"]
    title = metrics[record["metric"]].title
    failed = f"; {record['left_out']} could not be trained" if record["left_out"] else ""
    lines = []
    for test in record["models"]:
        prefix = title_prefix(run, test["task"])
        p = p_value(test["p"])
        observed = number(test["observed"])
        mean_of_refits = number(test["refits"])
        lines.append(
            f"{prefix}{test['model']}: p {p} by {record['n']} refits with films' sequences of labels "
            f"exchanged ({title} by movie {observed}, of refits {mean_of_refits} on average{failed})"
        )
    return lines
