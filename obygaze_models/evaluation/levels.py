"""Define metrics of ordered levels: labels and calls are 0-based ranks [N], scores rise with the level.

A metric that its clips don't define (say, a rank correlation of one level alone) is NaN.
"""

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from obygaze_models.evaluation.metrics import NAN, Labels, Metric, Scores, fixed


def quadratic_kappa(y: Labels, called: Labels) -> float:
    """Compute Cohen's kappa with quadratic weights; NaN where labels and calls are all of one level.

    1 minus the mean squared difference of label and call over the one of all pairs of a label with another
    clip's call (Cohen 1968). Calls that know nothing have 0, whatever level they prefer.
    """
    if not len(y):
        return NAN
    label, call = np.asarray(y, dtype=np.float64), np.asarray(called, dtype=np.float64)
    expected = label.var() + call.var() + (label.mean() - call.mean()) ** 2
    return float(1 - np.mean((label - call) ** 2) / expected) if expected > 0 else NAN


def spearman(y: Labels, scores: Scores) -> float:
    """Compute Spearman's rank correlation of levels and scores, ties at their mean rank.

    NaN with one level only, or where all scores are equal.
    """
    if not len(y):
        return NAN
    label, score = rankdata(y), rankdata(scores)
    label, score = label - label.mean(), score - score.mean()
    scale = float(np.sqrt((label @ label) * (score @ score)))
    return float(np.clip(label @ score / scale, -1.0, 1.0)) if scale > 0 else NAN


def mean_absolute_error(y: Labels, called: Labels) -> float:
    """Compute the mean absolute error in levels; NaN without clips. Lower is better."""
    return float(np.mean(np.abs(np.asarray(y) - np.asarray(called)))) if len(y) else NAN


def median_level(groups: Sequence[Labels]) -> float:
    """Compute the mean absolute error of always predicting the median level, averaged over groups."""
    if not groups:
        return NAN
    ordered = np.sort(np.concatenate(groups))
    # The lower of two middle levels, so that it is a level; the error over all clips is least either way.
    level = ordered[(len(ordered) - 1) // 2]
    return float(np.mean([mean_absolute_error(y, np.full(len(y), level)) for y in groups]))


LEVEL_METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "quadratic_kappa", "kappa (quadratic)", "called", quadratic_kappa, fixed(0.0), bounds=(-1.0, 1.0)
        ),
        Metric("spearman", "Spearman", "score", spearman, fixed(0.0), bounds=(-1.0, 1.0)),
        Metric(
            "mean_absolute_error",
            "MAE (levels)",
            "called",
            mean_absolute_error,
            median_level,
            bounds=(0.0, float("inf")),
            higher_is_better=False,
        ),
    )
}
"""Metrics of ordered levels, the headline first."""
