"""Extract features of videos and texts into stores: `extract`, its steps and its engines."""

from obygaze_features.cores import usable_cores
from obygaze_features.errors import ExtractError
from obygaze_features.extraction.estimate import Estimate, estimate_clips
from obygaze_features.extraction.extract import estimate, extract, prepare
from obygaze_features.extraction.job import Job, Recipe, array_shard
from obygaze_features.extraction.local import run_local
from obygaze_features.extraction.prepared import Extraction
from obygaze_features.extraction.report import RunReport
from obygaze_features.extraction.stop import Stop, stop_on_signals

__all__ = [
    "Estimate",
    "ExtractError",
    "Extraction",
    "Job",
    "Recipe",
    "RunReport",
    "Stop",
    "array_shard",
    "estimate",
    "estimate_clips",
    "extract",
    "prepare",
    "run_local",
    "stop_on_signals",
    "usable_cores",
]
