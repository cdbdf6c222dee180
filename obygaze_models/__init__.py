"""The zoo: small models on stored features, evaluated one movie left out at a time. CPU only.

Names are imported when they are first used, so that `import obygaze_models` costs nothing.

Examples
--------
>>> import obygaze_models as om
>>> om.linear_probe(C=0.01).named_steps["ridgelogistic"].C
0.01
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from obygaze_features.errors import ObygazeError
    from obygaze_models.concepts import ConceptBank, ConceptBottleneck, LinearCAV
    from obygaze_models.dataset import Dataset, load_dataset
    from obygaze_models.evaluation.compare import compare, side
    from obygaze_models.evaluation.evaluate import evaluate
    from obygaze_models.evaluation.localise import localise
    from obygaze_models.evaluation.predictions import Predictions
    from obygaze_models.evaluation.run import Run
    from obygaze_models.evaluation.run_folder import read_run, saved, write_run
    from obygaze_models.film.measure import evaluate_films
    from obygaze_models.film.score import score_film, score_films
    from obygaze_models.film.timeline import Timeline, read_films
    from obygaze_models.models import (
        AttentionPooling,
        ClippedScaler,
        GroupedSelection,
        MLPProbe,
        ModelSpec,
        MoviePrior,
        linear_probe,
    )
    from obygaze_models.obygaze12 import paper
    from obygaze_models.prediction.final import save_models
    from obygaze_models.prediction.frames import predict_frames
    from obygaze_models.prediction.model import load_model
    from obygaze_models.prediction.predict import predict
    from obygaze_models.protocol import find_target, leave_one_movie_out, splits
    from obygaze_models.report import Report, write_html, write_report
    from obygaze_models.report.evaluation import comparison_report, run_report

    __version__: str

__all__ = [
    "AttentionPooling",
    "ClippedScaler",
    "ConceptBank",
    "ConceptBottleneck",
    "Dataset",
    "GroupedSelection",
    "LinearCAV",
    "MLPProbe",
    "ModelSpec",
    "MoviePrior",
    "ObygazeError",
    "Predictions",
    "Report",
    "Run",
    "Timeline",
    "__version__",
    "compare",
    "comparison_report",
    "evaluate",
    "evaluate_films",
    "find_target",
    "leave_one_movie_out",
    "linear_probe",
    "load_dataset",
    "load_model",
    "localise",
    "paper",
    "predict",
    "predict_frames",
    "read_films",
    "read_run",
    "run_report",
    "save_models",
    "saved",
    "score_film",
    "score_films",
    "side",
    "splits",
    "write_html",
    "write_report",
    "write_run",
]

_HOMES = {
    "AttentionPooling": "models",
    "ClippedScaler": "models",
    "ConceptBank": "concepts",
    "ConceptBottleneck": "concepts",
    "Dataset": "dataset",
    "GroupedSelection": "models",
    "LinearCAV": "concepts",
    "MLPProbe": "models",
    "ModelSpec": "models",
    "MoviePrior": "models",
    "ObygazeError": "errors",
    "Predictions": "evaluation.predictions",
    "Report": "report",
    "Run": "evaluation.run",
    "Timeline": "film.timeline",
    "compare": "evaluation.compare",
    "comparison_report": "report.evaluation",
    "evaluate": "evaluation.evaluate",
    "evaluate_films": "film.measure",
    "find_target": "protocol",
    "leave_one_movie_out": "protocol",
    "linear_probe": "models",
    "load_dataset": "dataset",
    "load_model": "prediction.model",
    "paper": "obygaze12.paper",
    "localise": "evaluation.localise",
    "predict": "prediction.predict",
    "predict_frames": "prediction.frames",
    "read_films": "film.timeline",
    "read_run": "evaluation.run_folder",
    "run_report": "report.evaluation",
    "save_models": "prediction.final",
    "saved": "evaluation.run_folder",
    "score_film": "film.score",
    "score_films": "film.score",
    "side": "evaluation.compare",
    "splits": "protocol",
    "write_html": "report",
    "write_report": "report",
    "write_run": "evaluation.run_folder",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415  slow, and needed here alone

        return version("obygaze")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOMES[name]}")
    value: object = module if name == "paper" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
