"""From one table of out-of-fold predictions to every metric and interval."""

from obygaze_models.evaluation.intervals import Interval, t_interval
from obygaze_models.evaluation.predictions import COLUMNS, Predictions, PredictionsError
from obygaze_models.evaluation.summary import METRICS, summarise

__all__ = ["COLUMNS", "METRICS", "Interval", "Predictions", "PredictionsError", "summarise", "t_interval"]
