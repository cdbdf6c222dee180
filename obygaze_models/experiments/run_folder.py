"""The folder that keeps a run: the same run, the same bytes."""

import json
import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from obygaze_models.evaluation import Predictions
from obygaze_models.experiments.evaluate import Run

FILES = ("predictions.csv", "metrics.csv", "inner_curves.csv", "metrics.json")


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
    rows = [
        {
            str(key): None if isinstance(value, float) and math.isnan(value) else value
            for key, value in row.items()
        }
        for row in run.metrics.to_dict(orient="records")
    ]
    return {"record": run.record, "metrics": rows}


def to_json(run: Run) -> str:
    """Write a run's record and metrics as JSON text."""
    return json.dumps(document(run), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


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
    """Write a run's four files, all or none.

    Raises
    ------
    RunError
        The folder is taken.
    """
    folder = folder.resolve()
    check_free(folder, force=force)
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial, old = (folder.with_name(f".{folder.name}.{os.getpid()}.{state}") for state in ("partial", "old"))
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir()
        texts = (run.predictions.to_csv(), _csv(run.metrics), _csv(run.inner_curves), to_json(run))
        for name, text in zip(FILES, texts, strict=True):
            (partial / name).write_text(text, encoding="utf-8", newline="")
        if folder.exists():
            folder.replace(old)
        partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _csv(table: pd.DataFrame) -> str:
    return table.to_csv(index=False, lineterminator="\n")
