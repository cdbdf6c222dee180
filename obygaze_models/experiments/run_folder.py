"""The folder that keeps a run: the same run, the same bytes."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import Predictions, by_seed
from obygaze_models.experiments.evaluate import Run
from obygaze_features.io import whole_folder
from obygaze_models.report.write import records, to_csv

FILES = ("predictions.csv", "metrics.csv", "inner_curves.csv", "metrics.json", "seeds.csv")
"""What a run's folder may hold; the last only where a run has several seeds."""


class RunError(ValueError):
    """A run can't be kept where it was asked to be, or is not where it was looked for."""


@dataclass(frozen=True, eq=False)
class SavedRun:
    """What a run's folder holds of the run: its record (JSON values) and its predictions."""

    folder: Path
    record: Mapping[str, Any]
    predictions: Predictions


def read_run(folder: Path) -> SavedRun:
    """Read a run's record and predictions.

    Raises
    ------
    RunError
        The folder holds no run.
    PredictionsError
        Its table of predictions is not one.
    """
    for name in ("predictions.csv", "metrics.json"):
        if not (folder / name).is_file():
            raise RunError(f"{folder} is not the folder of a run: it has no {name}")
    path = folder / "metrics.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))["record"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunError(f"{path} is not the JSON document of a run: {error}") from error
    if not isinstance(record, dict):
        raise RunError(f"{path}: expected an object as record, found {type(record).__name__}")
    return SavedRun(folder, record, Predictions.read(folder / "predictions.csv"))


def document(run: Run) -> dict[str, object]:
    """Give a run's record and metrics as JSON values; undefined metrics are null."""
    return {"record": run.record, "metrics": records(run.metrics)}


def to_json(run: Run) -> str:
    """Write a run's record and metrics as JSON text."""
    return json.dumps(document(run), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def run_name(data: Dataset, *asked: str, manifest: str, imbalance: str) -> str:
    """Name a run's folder by what was asked of what, so that runs that differ have folders that do.

    Parameters
    ----------
    data : Dataset
        Its store's content, backbone, array and pooling are in the name's last part, six digits of a digest.
    *asked : str
        What people tell runs apart by: store, tasks, policy, seeds.
    manifest, imbalance : str
        The manifest's digest, and what is done about the larger class: in the last part too.
    """
    rest = f"{data.store}/{data.backbone}/{data.features}/{data.pool}/{manifest}/{imbalance}"
    return "-".join((*asked, hashlib.sha256(rest.encode("utf-8")).hexdigest()[:6]))


def check_free(folder: Path, *, force: bool) -> None:
    """Refuse a folder that exists, unless it is forced and holds a run and nothing else.

    Raises
    ------
    RunError
        The folder is taken.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RunError(f"{folder} is a file: a run needs a folder of its own")
    strangers = sorted(path.name for path in folder.iterdir() if path.name not in FILES)
    if strangers:
        raise RunError(f"{folder} holds what is not a run ({strangers[0]}): choose another folder with --out")
    if not force and any(folder.iterdir()):
        raise RunError(
            f"{folder} holds a run already: give --force to replace it, or another folder with --out"
        )


def write_run(run: Run, folder: Path, *, force: bool = False) -> None:
    """Write a run's files, all or none.

    Raises
    ------
    RunError
        The folder is taken.
    """
    check_free(folder.resolve(), force=force)
    with whole_folder(folder) as partial:
        texts = [run.predictions.to_csv(), to_csv(run.metrics), to_csv(run.inner_curves), to_json(run)]
        if run.predictions.table["seed"].nunique() > 1:
            texts.append(to_csv(by_seed(run.predictions)))
        for name, text in zip(FILES, texts, strict=False):
            (partial / name).write_text(text, encoding="utf-8", newline="")
