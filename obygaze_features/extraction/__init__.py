"""Manifest + video + backbone -> store: what is to be done, and the engines that do it."""

from obygaze_features.errors import ExtractError
from obygaze_features.extraction.estimate import Estimate, estimate
from obygaze_features.extraction.job import Job, Recipe, array_shard
from obygaze_features.extraction.local import run_local
from obygaze_features.extraction.pool import usable_cores
from obygaze_features.extraction.report import RunReport
from obygaze_features.extraction.stop import Stop, stop_on_signals

__all__ = [
    "Estimate",
    "ExtractError",
    "Job",
    "Recipe",
    "RunReport",
    "Stop",
    "array_shard",
    "estimate",
    "run_local",
    "stop_on_signals",
    "usable_cores",
]
