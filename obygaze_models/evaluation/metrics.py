"""Define metrics of labels against calls or scores, each with its average in its name.

Labels and calls are arrays [N] of 0 and 1, or ranks of ordered levels from 0; scores are arrays [N] of
floats, higher for positive clips and higher levels. A metric that its clips don't define (say, AUC with one
class) is NaN: never 0, which would be a finding.

To add a metric, write its function here and one entry of `METRICS` or `LEVEL_METRICS`: chance levels,
intervals, the files of a run and the table of docs/evaluation.md follow from the entry, and no family of
tests changes (`FAMILIES` of `obygaze_models.evaluation.paired_tests`). Another package adds one by an entry
point of `obygaze.metrics` that names a `Metric`; a script gives it to `evaluate(metrics=...)`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from obygaze_features import plugins
from obygaze_features.arguments import checked
from obygaze_models.errors import ProtocolError

LabelArray = NDArray[Any]
ScoreArray = NDArray[np.floating[Any]]
NAN = float("nan")
ROUNDING = 1e-9
"""By so much a sum of rounded numbers may exceed the bounds of its metric."""


def prevalence(y: LabelArray) -> float:
    """Share of positive clips; NaN of no clips."""
    return float(np.mean(y)) if len(y) else NAN


class _Confusion(NamedTuple):
    """Numbers of true positives, false positives, false negatives and true negatives."""

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def positives(self) -> int:
        """Number of positive clips."""
        return self.true_positives + self.false_negatives

    @property
    def negatives(self) -> int:
        """Number of negative clips."""
        return self.true_negatives + self.false_positives

    def f1_of_positives(self) -> float:
        """Compute F1 of the positive class, 2 TP / (2 TP + FP + FN); NaN without a positive clip."""
        wrong = self.false_positives + self.false_negatives
        return 2 * self.true_positives / (2 * self.true_positives + wrong) if self.positives else NAN

    def f1_of_negatives(self) -> float:
        """Compute F1 of the negative class, 2 TN / (2 TN + FP + FN); NaN without a negative clip."""
        wrong = self.false_positives + self.false_negatives
        return 2 * self.true_negatives / (2 * self.true_negatives + wrong) if self.negatives else NAN


def _confusion(y: LabelArray, called: LabelArray) -> _Confusion:
    """Count true and false positives and negatives, given labels [N] and calls [N], 0 or 1 each."""
    is_positive = np.asarray(y, dtype=bool)
    is_called = np.asarray(called, dtype=bool)
    true_positives = int(np.count_nonzero(is_positive & is_called))
    false_positives = int(np.count_nonzero(is_called)) - true_positives
    false_negatives = int(np.count_nonzero(is_positive)) - true_positives
    true_negatives = len(is_positive) - true_positives - false_positives - false_negatives
    return _Confusion(true_positives, false_positives, false_negatives, true_negatives)


@checked
def f1_pos(y: LabelArray, called: LabelArray) -> float:
    """F1 of the positive class; NaN without a positive clip, where every model would get 0."""
    return _confusion(y, called).f1_of_positives()


def f1_macro(y: LabelArray, called: LabelArray) -> float:
    """Mean of the two classes' F1, whatever their sizes; NaN with one class only, whose F1 is then NaN."""
    counts = _confusion(y, called)
    return (counts.f1_of_positives() + counts.f1_of_negatives()) / 2


@checked
def f1_weighted(y: LabelArray, called: LabelArray) -> float:
    """Mean of the two classes' F1, each weighted by its number of clips; NaN with one class only."""
    counts = _confusion(y, called)
    # The F1 of a class without clips is NaN, and so is the sum.
    weighted_sum = counts.positives * counts.f1_of_positives() + counts.negatives * counts.f1_of_negatives()
    return weighted_sum / max(len(y), 1)


def balanced_accuracy(y: LabelArray, called: LabelArray) -> float:
    """Mean of the two classes' recalls; NaN with one class only."""
    counts = _confusion(y, called)
    if not counts.positives or not counts.negatives:
        return NAN
    recall_of_positives = counts.true_positives / counts.positives
    recall_of_negatives = counts.true_negatives / counts.negatives
    return (recall_of_positives + recall_of_negatives) / 2


@checked
def auc(y: LabelArray, scores: ScoreArray) -> float:
    """Area under the ROC curve; NaN with one class only.

    It is how often a positive clip outscores a negative one, ties counting half: the Mann-Whitney statistic
    over its maximum (Hanley and McNeil 1982). With the ranks of all scores from 1, the statistic is the sum
    of the ranks of the P positive clips, less the sum P (P + 1) / 2 that they have if all of them are lowest.
    Its maximum is P times the number of negative clips.
    """
    is_positive = np.asarray(y, dtype=bool)
    n_positive = int(np.count_nonzero(is_positive))
    n_negative = len(is_positive) - n_positive
    if not n_positive or not n_negative:
        return NAN
    ranks = rankdata(scores)
    min_rank_sum = n_positive * (n_positive + 1) / 2
    return float((ranks[is_positive].sum() - min_rank_sum) / (n_positive * n_negative))


@checked
def average_precision(y: LabelArray, scores: ScoreArray) -> float:
    """Compute average precision: the precision at each distinct score, weighted by the recall it adds.

    Clips with equal scores are counted together, so that the AP of a constant score is the prevalence. NaN
    without a positive clip.
    """
    is_positive = np.asarray(y, dtype=bool)
    if not is_positive.any():
        return NAN

    order = np.argsort(-np.asarray(scores), kind="stable")
    ranked_scores = np.asarray(scores)[order]
    # For each distinct score, the place of the last clip that has it: the next clip has another score, or is
    # missing.
    next_differs = np.append(ranked_scores[1:] != ranked_scores[:-1], True)
    last_places = np.flatnonzero(next_differs)
    n_ranked = last_places + 1  # clips down to each distinct score
    n_positive = np.cumsum(is_positive[order])[last_places]  # positive ones among them
    precision = n_positive / n_ranked

    # The recall that a score adds is its number of positive clips, divided by that of all.
    n_added = np.diff(n_positive, prepend=0)
    return float(np.sum(n_added * precision) / n_positive[-1])


@checked
def expected_average_precision(n: int, n_relevant: int) -> float:
    """Compute the expected average precision of a random ranking of `n` clips, `n_relevant` of them relevant.

    It is the chance level of AP on few clips, and 0 without a relevant clip. It exceeds the prevalence R / N
    of R = `n_relevant` clips among N = `n`, and approaches it as N grows.

    AP is the mean precision at the relevant clips. Take a relevant clip at rank k:

    - Each of the k - 1 clips before it is one of the N - 1 others, R - 1 of which are relevant: it is
      relevant with probability a = (R - 1) / (N - 1).
    - The expected precision at rank k is therefore (1 + (k - 1) a) / k, which is a + (1 - a) / k.
    - The rank is 1 to N with equal probability, and the mean of 1 / k is (1 + 1/2 + ... + 1/N) / N.

    The result is a + (1 - a) times that mean.

    Examples
    --------
    >>> round(expected_average_precision(20, 5), 4)
    0.3525
    """
    if not n_relevant:
        return 0.0
    if n == 1:
        return 1.0
    p_other_is_relevant = (n_relevant - 1) / (n - 1)  # a
    sum_of_inverse_ranks = float(np.sum(1 / np.arange(1, n + 1)))
    return p_other_is_relevant + (1 - p_other_is_relevant) * sum_of_inverse_ranks / n


def rows_by_movie(movies: LabelArray) -> list[NDArray[np.intp]]:
    """Return the rows of each movie, in the order of the movies' names.

    Examples
    --------
    >>> [rows.tolist() for rows in rows_by_movie(np.array(["b", "a", "b"]))]
    [[1], [0, 2]]
    """
    _, movie_of_row, n_rows = np.unique(movies, return_inverse=True, return_counts=True)
    sorted_by_movie = np.argsort(movie_of_row, kind="stable")
    ends = np.cumsum(n_rows)
    return np.split(sorted_by_movie, ends[:-1])


def within_movie_auc(y: LabelArray, scores: ScoreArray, movies: LabelArray) -> float:
    """Compute the AUC of each movie, and average it over movies; NaN if no movie has both classes.

    Clips are compared within movies only, so that telling movies apart gains nothing. Every movie weighs the
    same, as movies are the units of all intervals; weighted by pairs of clips, a few large movies would
    dominate.
    """
    values = np.array([auc(y[rows], scores[rows]) for rows in rows_by_movie(movies)])
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else NAN


# --- ordered levels
# ---------------------------------------------------------------------------


def quadratic_kappa(y: LabelArray, called: LabelArray) -> float:
    """Compute Cohen's kappa with quadratic weights; NaN where labels and calls are all of one level.

    It is 1 minus the mean squared difference of a clip's label and call, divided by the mean over all pairs
    of a label and a random clip's call (Cohen 1968). The kappa of calls that are independent of the labels is
    0, whichever level they prefer.
    """
    if not len(y):
        return NAN
    labels = np.asarray(y, dtype=np.float64)
    calls = np.asarray(called, dtype=np.float64)
    observed = np.mean((labels - calls) ** 2)
    # The mean squared difference over all pairs of a label and a call. For independent a and b, the mean of
    # (a - b)^2 is the variance of a plus that of b plus the squared difference of their means.
    expected = labels.var() + calls.var() + (labels.mean() - calls.mean()) ** 2
    return float(1 - observed / expected) if expected > 0 else NAN


@checked
def spearman(y: LabelArray, scores: ScoreArray) -> float:
    """Compute Spearman's rank correlation of levels and scores, ties at their mean rank.

    NaN with one level only, or where all scores are equal.
    """
    if not len(y):
        return NAN
    label_ranks = rankdata(y)
    score_ranks = rankdata(scores)
    centred_labels = label_ranks - label_ranks.mean()
    centred_scores = score_ranks - score_ranks.mean()
    scale = float(np.sqrt((centred_labels @ centred_labels) * (centred_scores @ centred_scores)))
    if scale <= 0:
        return NAN
    correlation = centred_labels @ centred_scores / scale
    return float(np.clip(correlation, -1.0, 1.0))  # rounding may exceed 1


def mean_absolute_error(y: LabelArray, called: LabelArray) -> float:
    """Compute the mean absolute error in levels; NaN without clips. Lower is better."""
    if not len(y):
        return NAN
    return float(np.mean(np.abs(np.asarray(y) - np.asarray(called))))


# --- chance levels
# ---------------------------------------------------------------------------

Chance = Callable[[Sequence[LabelArray]], float]
"""Takes the labels of each of several groups of clips, and returns the chance level.

It is the mean, over groups, of the metric that a model without information on the clips has."""


def fixed(value: float) -> Chance:
    """Make the chance level of a metric whose chance level is the same for any labels, such as .5 for AUC."""
    return lambda _: value


def min_average_precision(n: int, n_relevant: int) -> float:
    """Compute the least possible AP of `n` clips: that of a ranking with the `n_relevant` clips at its end.

    Examples
    --------
    >>> min_average_precision(4, 1)
    0.25
    """
    n_others = n - n_relevant
    n_found = np.arange(1, n_relevant + 1)
    precisions = n_found / (n_others + n_found)
    return float(precisions.mean())


def ap_of_random_ranking(groups: Sequence[LabelArray]) -> float:
    """Compute the expected AP of a random ranking of each group of labels, and average it over groups.

    NaN without a group.
    """
    expected = [expected_average_precision(len(y), int(np.count_nonzero(y))) for y in groups]
    return float(np.mean(expected)) if expected else NAN


def chance_of_constant_calls(metric: Callable[[LabelArray, LabelArray], float]) -> Chance:
    """Make the chance level of a metric of calls: the better of calling all clips positive, and none.

    `metric` takes labels [N] and calls [N], and higher values of it are better.
    """

    def chance(groups: Sequence[LabelArray]) -> float:
        """Compute the mean over groups of the metric of either call, and return the better one."""
        if not groups:
            return NAN
        # The metric of each group if no clip is called positive, and if all are.
        none_positive = np.mean([metric(y, np.full(len(y), fill_value=False)) for y in groups])
        all_positive = np.mean([metric(y, np.full(len(y), fill_value=True)) for y in groups])
        # `fmax` returns the other value if one is NaN, undefined.
        return float(np.fmax(none_positive, all_positive))

    return chance


def error_of_median_level(groups: Sequence[LabelArray]) -> float:
    """Compute the mean absolute error of always predicting the median level, averaged over groups."""
    if not groups:
        return NAN
    ordered = np.sort(np.concatenate(groups))
    # The lower of the two middle levels, not their mean, so that it is a level.
    level = ordered[(len(ordered) - 1) // 2]
    return float(np.mean([mean_absolute_error(y, np.full(len(y), level)) for y in groups]))


# --- lists of metrics
# ---------------------------------------------------------------------------

DEFINED_FOR_ONE_CLASS = {"mean_absolute_error"}
"""Built-in metrics that say something of a model also where all clips are of one class or level."""

AFTER_BUILT_IN = 9
"""Position of a metric's table by movie after those of all built-in metrics."""


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
        Whether it compares scores or calls with the labels. A pooled metric of scores compares scores of
        different folds, which come from different models: where movies differ it can lie below chance for
        that reason alone.
    point : callable
        Takes labels [N] and scores or calls [N], and returns the metric's value. Scores are the model's own:
        of any range, and no probabilities.
    chance : callable
        Takes the labels of each of several groups of clips, and returns the mean of the chance level over
        the groups.
    bounds : tuple of float
        Its least and greatest value, either of which may be infinite; intervals stay between them. A value
        outside them is refused, as no interval could hold it.
    higher_is_better : bool
        Whether a higher value is better.
    method_interval : bool
        Whether the interval of the method on new movies was measured to cover what it says
        (`benchmarks/planted/scores.py`); only then is it given.
    shown : bool
        Whether printed tables show it; the files of a run always have it.
    by_movie : int
        Its position among the tables by movie, from 1; by default `AFTER_BUILT_IN`. 0 for a metric without
        such a table.
    is_main : bool
        Whether models are compared by this metric, to decide which one is better. One metric of two classes,
        and one of ordered levels, is the main one.
    of_levels : bool
        Whether it is a metric of ordered levels rather than of two classes.
    meaning : str
        What it is, in a few words for people. With `chance_meaning` it is the metric's row of
        docs/evaluation.md.
    chance_meaning : str
        What its chance level is, in a few words for people.

    Raises
    ------
    ProtocolError
        It reads something else, its bounds are no interval, or a value lies outside them.
    """

    name: str
    title: str
    reads: Literal["score", "called"]
    point: Callable[[LabelArray, LabelArray], float]
    chance: Chance
    bounds: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True
    method_interval: bool = False
    shown: bool = True
    by_movie: int = AFTER_BUILT_IN
    is_main: bool = False
    of_levels: bool = False
    meaning: str = ""
    chance_meaning: str = ""

    def __post_init__(self) -> None:
        """Check the fields `reads` and `bounds`."""
        if self.reads not in {"score", "called"}:
            raise ProtocolError(f"metric {self.name}: reads {self.reads!r}: expected 'score' or 'called'")
        least, most = self.bounds
        if not least < most:
            raise ProtocolError(
                f"metric {self.name}: bounds {self.bounds}: expected the least value, then the greatest"
            )

    def __call__(self, y: LabelArray, score: ScoreArray, called: LabelArray) -> float:
        """Compute the metric of clips, given their labels, scores and calls [N]."""
        outputs = score if self.reads == "score" else called
        value = self.point(y, outputs)
        lowest, highest = self.bounds
        is_outside = value < lowest - ROUNDING or value > highest + ROUNDING  # not if the value is NaN
        if is_outside:
            raise ProtocolError(
                f"metric {self.name}: {value:.6g} is outside its bounds, {lowest:g} to {highest:g}: "
                "state them, as in Metric(..., bounds=(-1.0, 1.0)); either may be infinite"
            )
        return value

    def of_movie(self, y: LabelArray, score: ScoreArray, called: LabelArray) -> float:
        """Compute the metric of a movie's clips, given their labels, scores and calls [N].

        Where the movie's clips are all of one class or level, built-in metrics are undefined, but those of
        `DEFINED_FOR_ONE_CLASS`: whatever the model, AP is 1 if all clips are positive, and kappa is 0 unless
        all clips are called alike.
        """
        is_built_in = self.name in METRICS or self.name in LEVEL_METRICS
        has_one_class = np.min(y) == np.max(y)
        if is_built_in and has_one_class and self.name not in DEFINED_FOR_ONE_CLASS:
            return NAN
        return self(y, score, called)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "average_precision",
            "AP",
            "score",
            average_precision,
            ap_of_random_ranking,
            method_interval=True,
            by_movie=1,
            meaning="precision at each distinct score, weighted by the recall it adds",
            chance_meaning="expected AP of a random ranking",
        ),
        Metric(
            "f1_pos",
            "F1 (positive)",
            "called",
            f1_pos,
            chance_of_constant_calls(f1_pos),
            method_interval=True,
            by_movie=3,
            meaning="F1 of the positive class",
            chance_meaning="best constant: 2p / (1 + p) when all is called positive",
        ),
        # Thresholds of different folds move together, and with them the number of clips that are called. An
        # interval from how movies differ then covers the method's mean in .70 to .95 of corpora only: the
        # next three metrics of calls have none.
        Metric(
            "f1_weighted",
            "F1 (weighted)",
            "called",
            f1_weighted,
            chance_of_constant_calls(f1_weighted),
            by_movie=0,
            meaning="mean of both classes' F1 by their clips",
            chance_meaning="best constant: high when positives are rare and nothing is called",
        ),
        Metric(
            "f1_macro",
            "F1 (macro)",
            "called",
            f1_macro,
            chance_of_constant_calls(f1_macro),
            shown=False,
            by_movie=0,
            meaning="plain mean of both classes' F1",
            chance_meaning="best constant",
        ),
        Metric(
            "balanced_accuracy",
            "balanced accuracy",
            "called",
            balanced_accuracy,
            chance_of_constant_calls(balanced_accuracy),
            by_movie=4,
            meaning="mean of both recalls",
            chance_meaning="0.5",
        ),
        Metric(
            "auc",
            "AUC",
            "score",
            auc,
            fixed(0.5),
            method_interval=True,
            by_movie=2,
            is_main=True,
            meaning="how often a positive clip outscores a negative one",
            chance_meaning="0.5; pooled, it can be below ([why](#pooled-auc-and-ap))",
        ),
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
            by_movie=1,
            meaning="agreement of calls and levels beyond chance, disagreement squared (Cohen 1968)",
            chance_meaning="0, whatever level is preferred",
        ),
        Metric(
            "spearman",
            "Spearman",
            "score",
            spearman,
            fixed(0.0),
            bounds=(-1.0, 1.0),
            method_interval=True,
            by_movie=2,
            meaning="rank correlation of scores and levels",
            chance_meaning="0",
        ),
        Metric(
            "mean_absolute_error",
            "MAE (levels)",
            "called",
            mean_absolute_error,
            error_of_median_level,
            bounds=(0.0, float("inf")),
            higher_is_better=False,
            method_interval=True,
            by_movie=3,
            is_main=True,
            meaning="how many levels a call is off; lower is better",
            chance_meaning="always the median level",
        ),
    )
}
"""Metrics of ordered levels, the headline first."""


def metrics_of(n_classes: int, own: Sequence[Metric] = ()) -> dict[str, Metric]:
    """Return the metrics for a number of classes, by name: those of two classes, or those of ordered levels.

    They are the metrics of this module, of installed packages (entry points), and those that a script gives
    (`own`). The upper bound of the mean absolute error is the distance of the highest level from the lowest.

    Raises
    ------
    ProtocolError
        An entry point is no `Metric`, or two metrics have one name.
    """
    # --- the metrics of this module
    has_levels = n_classes != 2
    known = dict(LEVEL_METRICS if has_levels else METRICS)
    if has_levels:
        error = known["mean_absolute_error"]
        known[error.name] = replace(error, bounds=(0.0, n_classes - 1.0))

    # --- those of packages and of the script, each with where it comes from, for messages
    added = [(f"entry point {point.name}", point.load()) for point in plugins.points(plugins.METRICS)]
    added += [("metrics=", metric) for metric in own]
    for source, metric in added:
        if not isinstance(metric, Metric):
            raise ProtocolError(f"{source}: expected a Metric, found {type(metric).__name__}")
        if metric.of_levels != has_levels:
            continue
        if metric.name in known:
            raise ProtocolError(f"{source}: there is a metric {metric.name} already; give it another name")
        known[metric.name] = metric
    return known
