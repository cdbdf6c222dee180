"""From one table of out-of-fold predictions to every metric and interval."""

from obygaze_models.evaluation.intervals import Interval, t_interval
from obygaze_models.evaluation.multiplicity import holm
from obygaze_models.evaluation.paired import SignFlip, detectable, sign_flip, smallest_p
from obygaze_models.evaluation.predictions import COLUMNS, Predictions, PredictionsError
from obygaze_models.evaluation.summary import METRICS, by_seed, summarise

__all__ = [
    "COLUMNS",
    "METRICS",
    "Interval",
    "Predictions",
    "PredictionsError",
    "SignFlip",
    "by_seed",
    "detectable",
    "holm",
    "sign_flip",
    "smallest_p",
    "summarise",
    "t_interval",
]
