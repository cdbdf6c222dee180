"""Metrics of labels against calls or scores, each with its average in its name.

Labels and calls are arrays [N] of 0 and 1, scores arrays [N] of floats, higher for positive. A metric that
its clips don't define (say, AUC with one class) is NaN: never 0, which would be a finding.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Labels = NDArray[Any]
Scores = NDArray[np.floating[Any]]

NAN = float("nan")


def prevalence(y: Labels) -> float:
    """Share of positive clips; NaN of no clips."""
    return float(np.mean(y)) if len(y) else NAN


def _counts(y: Labels, called: Labels) -> tuple[int, int, int, int]:
    """Count true positives, false positives, false negatives, true negatives."""
    positive, hit = np.asarray(y, dtype=bool), np.asarray(called, dtype=bool)
    found = int(np.count_nonzero(positive & hit))
    false_alarms = int(np.count_nonzero(hit)) - found
    missed = int(np.count_nonzero(positive)) - found
    return found, false_alarms, missed, len(positive) - found - false_alarms - missed


def _f1(hits: int, false_alarms: int, missed: int) -> float:
    """F1 of one class: 2 TP / (2 TP + FP + FN)."""
    return 2 * hits / (2 * hits + false_alarms + missed)


def f1_pos(y: Labels, called: Labels) -> float:
    """F1 of the positive class; NaN without a positive clip, where no model could have any but 0."""
    hits, false_alarms, missed, _ = _counts(y, called)
    return _f1(hits, false_alarms, missed) if hits + missed else NAN


def f1_macro(y: Labels, called: Labels) -> float:
    """Mean of the two classes' F1; NaN with one class only."""
    hits, false_alarms, missed, rejected = _counts(y, called)
    if not hits + missed or not rejected + false_alarms:
        return NAN
    return (_f1(hits, false_alarms, missed) + _f1(rejected, missed, false_alarms)) / 2


def f1_weighted(y: Labels, called: Labels) -> float:
    """Mean of the two classes' F1 weighted by their clips; NaN with one class only."""
    hits, false_alarms, missed, rejected = _counts(y, called)
    positives, negatives = hits + missed, rejected + false_alarms
    if not positives or not negatives:
        return NAN
    both = positives * _f1(hits, false_alarms, missed) + negatives * _f1(rejected, missed, false_alarms)
    return both / (positives + negatives)


def balanced_accuracy(y: Labels, called: Labels) -> float:
    """Mean of the two classes' recalls; NaN with one class only."""
    hits, false_alarms, missed, rejected = _counts(y, called)
    if not hits + missed or not rejected + false_alarms:
        return NAN
    return (hits / (hits + missed) + rejected / (rejected + false_alarms)) / 2


def auc(y: Labels, scores: Scores) -> float:
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


def average_precision(y: Labels, scores: Scores) -> float:
    """Precision at each distinct score, weighted by the recall it adds; NaN without a positive clip.

    Clips of equal scores are taken in together, so that a constant score has the prevalence.
    """
    positive = np.asarray(y, dtype=bool)
    if not positive.any():
        return NAN
    order = np.argsort(-np.asarray(scores), kind="stable")
    ranked = np.asarray(scores)[order]
    last_of_tie = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    found = np.cumsum(positive[order])[last_of_tie]
    precision = found / (last_of_tie + 1)
    return float(np.sum(np.diff(found, prepend=0) * precision) / found[-1])


def within_movie_auc(y: Labels, scores: Scores, movies: Labels) -> float:
    """Mean over movies of each movie's AUC, every movie counting alike; NaN where no movie has both classes.

    Comparing clips of one movie only, it owes nothing to telling movies apart. Movies are not weighted by
    their pairs of clips: a movie is the unit of every interval here, and with pairs two or three large movies
    would speak for all.
    """
    values = np.array([auc(y[movies == movie], scores[movies == movie]) for movie in np.unique(movies)])
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else NAN
