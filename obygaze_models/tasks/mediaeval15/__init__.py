"""Run MediaEval 2015 Affective Impact of Movies (Sjöberg et al. 2015): violence and induced affect."""

from obygaze_models.errors import TaskError
from obygaze_models.tasks.mediaeval15.accuracy import accuracy, confusion
from obygaze_models.tasks.mediaeval15.annotations import Annotated, of_manifest, read_annotations
from obygaze_models.tasks.mediaeval15.checks import check_runs
from obygaze_models.tasks.mediaeval15.labels import AXES, CLASSES, discretise, pivot_class
from obygaze_models.tasks.mediaeval15.trec import average_precision, measures, ranked

__all__ = [
    "AXES",
    "CLASSES",
    "Annotated",
    "TaskError",
    "accuracy",
    "average_precision",
    "check_runs",
    "confusion",
    "discretise",
    "measures",
    "of_manifest",
    "pivot_class",
    "ranked",
    "read_annotations",
]
