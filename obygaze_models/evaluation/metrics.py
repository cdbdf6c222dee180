"""Define metrics of labels against calls or scores, each with its average in its name.

Labels and calls are arrays [N] of 0 and 1, or ranks of ordered levels from 0; scores are arrays [N] of
floats, higher for positive clips and higher levels. A metric that its clips don't define (say, AUC with one
class) is NaN: never 0, which would be a finding.

To add a metric, write its function here and one entry of `METRICS` or `LEVEL_METRICS`: chance levels,
intervals and the files of a run follow from the entry, and no family of tests changes (`FAMILIES` of
`obygaze_models.evaluation.paired_tests`). Another package's is an entry point of
`obygaze.metrics` that names a `Metric`; one of a script goes to `evaluate(metrics=...)`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from obygaze_features import plugins
from obygaze_features.arguments import checked
from obygaze_models.errors import ProtocolError

LabelArray = NDArray[Any]
ScoreArray = NDArray[np.floating[Any]]
NAN = float("nan")


def prevalence(y: LabelArray) -> float:
    """Share of positive clips; NaN of no clips."""
    return float(np.mean(y)) if len(y) else NAN


def _counts(y: LabelArray, called: LabelArray) -> tuple[int, int, int, int]:
    """Count true positives, false positives, false negatives, true negatives."""
    positive, hit = np.asarray(y, dtype=bool), np.asarray(called, dtype=bool)
    hits = int(np.count_nonzero(positive & hit))
    false_alarms = int(np.count_nonzero(hit)) - hits
    missed = int(np.count_nonzero(positive)) - hits
    return hits, false_alarms, missed, len(positive) - hits - false_alarms - missed


def _f1_of_both(y: LabelArray, called: LabelArray) -> tuple[float, float]:
    """F1 of the positive and the negative class, 2 TP / (2 TP + FP + FN); NaN of a class without a clip."""
    hits, false_alarms, missed, rejected = _counts(y, called)
    wrong = false_alarms + missed
    of_positive = 2 * hits / (2 * hits + wrong) if hits + missed else NAN
    return of_positive, 2 * rejected / (2 * rejected + wrong) if rejected + false_alarms else NAN


@checked
def f1_pos(y: LabelArray, called: LabelArray) -> float:
    """F1 of the positive class; NaN without a positive clip, where no model could have any but 0."""
    return _f1_of_both(y, called)[0]


def f1_macro(y: LabelArray, called: LabelArray) -> float:
    """Mean of the two classes' F1; NaN with one class only."""
    return sum(_f1_of_both(y, called)) / 2


@checked
def f1_weighted(y: LabelArray, called: LabelArray) -> float:
    """Mean of the two classes' F1 weighted by their clips; NaN with one class only."""
    of_positive, of_negative = _f1_of_both(y, called)
    positives = int(np.count_nonzero(y))
    return (positives * of_positive + (len(y) - positives) * of_negative) / max(len(y), 1)


def balanced_accuracy(y: LabelArray, called: LabelArray) -> float:
    """Mean of the two classes' recalls; NaN with one class only."""
    hits, false_alarms, missed, rejected = _counts(y, called)
    if not hits + missed or not rejected + false_alarms:
        return NAN
    return (hits / (hits + missed) + rejected / (rejected + false_alarms)) / 2


@checked
def auc(y: LabelArray, scores: ScoreArray) -> float:
    """Area under the ROC curve; NaN with one class only.

    It is how often a positive clip outscores a negative one, ties counting half: the Mann-Whitney statistic
    over its maximum (Hanley and McNeil 1982).
    """
    positive = np.asarray(y, dtype=bool)
    positives = int(np.count_nonzero(positive))
    negatives = len(positive) - positives
    if not positives or not negatives:
        return NAN
    ranks = rankdata(scores)
    return float((ranks[positive].sum() - positives * (positives + 1) / 2) / (positives * negatives))


@checked
def average_precision(y: LabelArray, scores: ScoreArray) -> float:
    """Precision at each distinct score, weighted by the recall it adds; NaN without a positive clip.

    Clips of equal scores are taken in together, so that a constant score has the prevalence.
    """
    positive = np.asarray(y, dtype=bool)
    if not positive.any():
        return NAN
    order = np.argsort(-np.asarray(scores), kind="stable")
    ranked = np.asarray(scores)[order]
    last_of_tie = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    hits = np.cumsum(positive[order])[last_of_tie]
    precision = hits / (last_of_tie + 1)
    return float(np.sum(np.diff(hits, prepend=0) * precision) / hits[-1])


@checked
def expected_average_precision(n: int, n_relevant: int) -> float:
    """Compute the mean AP over all orders of N clips, R of them relevant: the chance level of few clips.

    E[AP] = a + (1 - a) H_N / N with a = (R - 1) / (N - 1) and H_N the harmonic number: at a relevant clip's
    rank k the others are relevant with probability a, and k is uniform. It exceeds the prevalence R / N, and
    approaches it as N grows. 0 without a relevant clip.

    Examples
    --------
    >>> round(expected_average_precision(20, 5), 4)
    0.3525
    """
    if not n_relevant:
        return 0.0
    if n == 1:
        return 1.0
    others = (n_relevant - 1) / (n - 1)
    return others + (1 - others) * float(np.sum(1 / np.arange(1, n + 1))) / n


def rows_by_movie(movies: LabelArray) -> list[NDArray[np.intp]]:
    """Return the rows of each movie, in the order of the movies' names.

    Examples
    --------
    >>> [rows.tolist() for rows in rows_by_movie(np.array(["b", "a", "b"]))]
    [[1], [0, 2]]
    """
    _, movie_of, sizes = np.unique(movies, return_inverse=True, return_counts=True)
    return np.split(np.argsort(movie_of, kind="stable"), np.cumsum(sizes)[:-1])


def within_movie_auc(y: LabelArray, scores: ScoreArray, movies: LabelArray) -> float:
    """Mean over movies of each movie's AUC, every movie counting alike; NaN where no movie has both classes.

    Comparing clips of one movie only, it owes nothing to telling movies apart. Movies are not weighted by
    their pairs of clips: a movie is the unit of every interval here, and with pairs two or three large movies
    would speak for all.
    """
    values = np.array([auc(y[rows], scores[rows]) for rows in rows_by_movie(movies)])
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else NAN


# --- ordered levels
# ---------------------------------------------------------------------------


def quadratic_kappa(y: LabelArray, called: LabelArray) -> float:
    """Compute Cohen's kappa with quadratic weights; NaN where labels and calls are all of one level.

    1 minus the mean squared difference of label and call over the one of all pairs of a label with another
    clip's call (Cohen 1968). Calls that know nothing have 0, whatever level they prefer.
    """
    if not len(y):
        return NAN
    label, call = np.asarray(y, dtype=np.float64), np.asarray(called, dtype=np.float64)
    expected = label.var() + call.var() + (label.mean() - call.mean()) ** 2
    return float(1 - np.mean((label - call) ** 2) / expected) if expected > 0 else NAN


@checked
def spearman(y: LabelArray, scores: ScoreArray) -> float:
    """Compute Spearman's rank correlation of levels and scores, ties at their mean rank.

    NaN with one level only, or where all scores are equal.
    """
    if not len(y):
        return NAN
    label, score = rankdata(y), rankdata(scores)
    label, score = label - label.mean(), score - score.mean()
    scale = float(np.sqrt((label @ label) * (score @ score)))
    return float(np.clip(label @ score / scale, -1.0, 1.0)) if scale > 0 else NAN


def mean_absolute_error(y: LabelArray, called: LabelArray) -> float:
    """Compute the mean absolute error in levels; NaN without clips. Lower is better."""
    return float(np.mean(np.abs(np.asarray(y) - np.asarray(called)))) if len(y) else NAN


# --- chance levels
# ---------------------------------------------------------------------------

Chance = Callable[[Sequence[LabelArray]], float]
"""Labels of each group of clips -> mean over the groups of what a model without knowledge of clips has."""


def fixed(value: float) -> Chance:
    """Return a chance level that does not depend on the labels."""
    return lambda _: value


def random_ranking(groups: Sequence[LabelArray]) -> float:
    """Average over groups the expected AP of a random ranking; NaN without a group."""
    levels = [expected_average_precision(len(y), int(np.count_nonzero(y))) for y in groups]
    return float(np.mean(levels)) if levels else NAN


def best_constant(point: Callable[[LabelArray, LabelArray], float]) -> Chance:
    """Return the chance level of a metric of calls: the better of always positive and always negative."""

    def chance(groups: Sequence[LabelArray]) -> float:
        if not groups:
            return NAN
        never, always = (np.mean([point(y, np.full(len(y), call)) for y in groups]) for call in (False, True))
        return float(np.fmax(never, always))

    return chance


def median_level(groups: Sequence[LabelArray]) -> float:
    """Compute the mean absolute error of always predicting the median level, averaged over groups."""
    if not groups:
        return NAN
    ordered = np.sort(np.concatenate(groups))
    # The lower of two middle levels, so that it is a level; the error over all clips is least either way.
    level = ordered[(len(ordered) - 1) // 2]
    return float(np.mean([mean_absolute_error(y, np.full(len(y), level)) for y in groups]))


# --- lists of metrics
# ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric and its properties, as used by tables, intervals and tests.

    Attributes
    ----------
    name : str
        Its name in tables of metrics.
    title : str
        Its name in tables for people.
    reads : {"score", "called"}
        What it compares with the labels. A pooled metric of scores compares scores of different folds, which
        come from different models: where movies differ it can lie below chance for that reason alone.
    point : callable
        Labels and what it reads, both [N], to its value.
    chance : callable
        Labels of each of several groups of clips to the mean of its chance level over them.
    bounds : tuple of float
        Its least and greatest value; intervals stay between them.
    higher_is_better : bool
    method_interval : bool
        Whether the interval of the method on new movies covers what it says (`benchmarks/planted/scores.py`).
    shown : bool
        Whether printed tables have it; the files of a run always do.
    by_movie : int
        Place among the tables by movie; 0 for a metric that has none.
    answers : bool
        Whether models are called better by it.
    of_levels : bool
        Whether it is of ordered levels, and not of two classes.
    """

    name: str
    title: str
    reads: Literal["score", "called"]
    point: Callable[[LabelArray, LabelArray], float]
    chance: Chance
    bounds: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True
    method_interval: bool = True
    shown: bool = True
    by_movie: int = 9
    answers: bool = False
    of_levels: bool = False

    def __call__(self, y: LabelArray, score: ScoreArray, called: LabelArray) -> float:
        """Compute the metric of clips, given their labels, scores and calls [N]."""
        return self.point(y, score if self.reads == "score" else called)

    def of_movie(self, y: LabelArray, score: ScoreArray, called: LabelArray) -> float:
        """Compute the metric of a movie's clips: of two classes undefined where the movie has one alone.

        Where all clips are positive, as the clip of a movie of one, AP is 1 whatever the model.
        """
        if self.name in METRICS and not np.ptp(y):
            return NAN
        return self(y, score, called)


def _of_calls(name: str, title: str, point: Callable[[LabelArray, LabelArray], float], **how: Any) -> Metric:
    return Metric(name, title, "called", point, best_constant(point), **how)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("average_precision", "AP", "score", average_precision, random_ranking, by_movie=1),
        _of_calls("f1_pos", "F1 (positive)", f1_pos, by_movie=3),
        # Thresholds of different folds move together, and with them how many clips are called at all: an
        # interval from how movies differ covers .70 to .95 of what the method gives on average.
        _of_calls("f1_weighted", "F1 (weighted)", f1_weighted, method_interval=False, by_movie=0),
        _of_calls("f1_macro", "F1 (macro)", f1_macro, method_interval=False, shown=False, by_movie=0),
        _of_calls(
            "balanced_accuracy", "balanced accuracy", balanced_accuracy, method_interval=False, by_movie=4
        ),
        Metric("auc", "AUC", "score", auc, fixed(0.5), by_movie=2, answers=True),
    )
}
"""Metrics of two classes, the headline first; `within_movie_auc` is the mean by movie of auc."""

LEVEL_METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "quadratic_kappa",
            "kappa (quadratic)",
            "called",
            quadratic_kappa,
            fixed(0.0),
            bounds=(-1.0, 1.0),
            method_interval=False,
            by_movie=1,
        ),
        Metric("spearman", "Spearman", "score", spearman, fixed(0.0), bounds=(-1.0, 1.0), by_movie=2),
        Metric(
            "mean_absolute_error",
            "MAE (levels)",
            "called",
            mean_absolute_error,
            median_level,
            bounds=(0.0, float("inf")),
            higher_is_better=False,
            by_movie=3,
            answers=True,
        ),
    )
}
"""Metrics of ordered levels, the headline first."""


def metrics_of(n_classes: int, own: Sequence[Metric] = ()) -> dict[str, Metric]:
    """Return the metrics of two classes or of ordered levels: ours, those of installed packages, and `own`.

    Raises
    ------
    ProtocolError
        An entry point is no `Metric`, or two metrics have one name.
    """
    known = dict(METRICS if n_classes == 2 else LEVEL_METRICS)
    offered = [(f"entry point {point.name}", point.load()) for point in plugins.points(plugins.METRICS)]
    for where, metric in (*offered, *(("metrics=", metric) for metric in own)):
        if not isinstance(metric, Metric):
            raise ProtocolError(f"{where}: expected a Metric, found {type(metric).__name__}")
        if metric.of_levels == (n_classes == 2):
            continue
        if metric.name in known:
            raise ProtocolError(f"{where}: there is a metric {metric.name} already; give it another name")
        known[metric.name] = metric
    return known
