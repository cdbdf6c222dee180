"""Compute every metric and interval from one table of out-of-fold predictions."""

from obygaze_models.evaluation.intervals import Interval, jackknife_interval, t_interval
from obygaze_models.evaluation.levels import LEVEL_METRICS
from obygaze_models.evaluation.metrics import METRICS, Metric
from obygaze_models.evaluation.multiplicity import FAMILIES, holm
from obygaze_models.evaluation.paired import (
    CorrectedT,
    SignFlip,
    corrected_t,
    detectable,
    sign_flip,
    smallest_p,
)
from obygaze_models.evaluation.predictions import COLUMNS, Predictions
from obygaze_models.evaluation.summary import by_seed, summarise

__all__ = [
    "COLUMNS",
    "FAMILIES",
    "LEVEL_METRICS",
    "METRICS",
    "CorrectedT",
    "Interval",
    "Metric",
    "Predictions",
    "SignFlip",
    "by_seed",
    "corrected_t",
    "detectable",
    "holm",
    "jackknife_interval",
    "sign_flip",
    "smallest_p",
    "summarise",
    "t_interval",
]
