"""Write and read the folder of a run; the same run gives the same bytes."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from obygaze_features.arguments import checked, made_by
from obygaze_features.errors import ObygazeError
from obygaze_features.file_kinds import where_damaged
from obygaze_features.io import local_folder, local_path, refuse_taken, whole_folder, write_whole
from obygaze_features.lines import json_bytes
from obygaze_features.untrusted import parse_json, read_text
from obygaze_models.errors import RunError
from obygaze_models.evaluation.metrics import metrics_of
from obygaze_models.evaluation.predictions import Predictions, records
from obygaze_models.evaluation.run import Run, check_document
from obygaze_models.evaluation.summary import by_seed

FILES = (
    *("predictions.csv", "metrics.csv", "selection.csv", "curves.csv", "seeds.csv", "excluded.csv"),
    *("run.json", "report.md", "report.tex"),
)
"""Files that a run's folder may hold beside models and figures. It has ``seeds.csv`` if the run has several
seeds, ``curves.csv`` if a model stops early, and ``excluded.csv`` if clips have no features."""

FIGURES = re.compile(r"layers-\d+\.(pdf|png|svg)")
"""Figures of the report: scores by layer."""


@made_by("read_run(FOLDER)")
@dataclass(frozen=True, eq=False)
class SavedRun:
    """A run as its folder holds it.

    Attributes
    ----------
    where : str
        The folder, or another name of the run, for messages.
    record : mapping
        JSON values (`RunRecord`).
    predictions : Predictions
    """

    where: str
    record: Mapping[str, Any]
    predictions: Predictions


@checked
def read_run(folder: Path | str) -> SavedRun:
    """Read a run's record and predictions.

    Raises
    ------
    RunError
        The folder holds no run, or a field of its record is missing or wrong.
    PredictionsError
        Its table of predictions is not one.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> om.write_run(om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s"), "runs/again")
    >>> run = om.read_run("runs/again")
    >>> run.record["backbone"]
    'toy'
    """
    folder = local_path(folder)
    for name in ("predictions.csv", "run.json"):
        if not (folder / name).is_file():
            raise RunError(f"{folder} is not the folder of a run: it has no {name}")

    path = folder / "run.json"
    try:
        document = parse_json(read_text(path))
    except ValueError as error:
        raise RunError(f"{path}: {where_damaged(error, path, 'the JSON document of a run')}") from None
    record = check_document(document, str(path))

    # The table of predictions does not say how many classes there are, so the record does.
    return SavedRun(str(folder), record, Predictions.read(folder / "predictions.csv", record["n_classes"]))


@checked
def saved(run: Run, where: str = "this run") -> SavedRun:
    """Convert a run to the form in which `read_run` returns it, without writing any file.

    Functions that compare runs take this form, whether a run was just made or read from its folder. `where`
    names the run in messages.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> run = om.saved(om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s"), where="linear")
    >>> run.where
    'linear'
    """
    return SavedRun(where, run.record, run.predictions)


def to_json(run: Run) -> str:
    """Write a run's record and metrics as JSON text; undefined metrics are null."""
    return json_bytes({"record": run.record, "metrics": records(run.metrics)}).decode()


def check_free(folder: Path, *, force: bool) -> None:
    """Raise if a run cannot be written to a folder, because it exists.

    With `force` a folder may exist, but may hold nothing except the files of a run.

    Raises
    ------
    RunError
        The folder is taken.
    """
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    foreign = [name for name in names if not _is_file_of_run(name)]
    refuse_taken(folder, names, foreign, "a run", force=force, error=RunError)


def _is_file_of_run(name: str) -> bool:
    """Tell whether a run's folder may hold a file of this name: one of `FILES`, a model, or a figure."""
    return name in FILES or name.endswith(".model") or FIGURES.fullmatch(name) is not None


@checked
def write_run(
    run: Run, folder: Path | str, texts: Mapping[str, str] | None = None, *, force: bool = False
) -> None:
    """Write a run's files atomically.

    Parameters
    ----------
    run : Run
    folder : Path or str
    texts : mapping of str to str, optional
        Texts of the report's files, by name.
    force : bool
        Whether to replace a run that is in the folder.

    Raises
    ------
    RunError
        The folder is taken.

    Examples
    --------
    >>> from pathlib import Path
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> om.write_run(om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s"), "runs/hn_s")
    >>> Path("runs/hn_s/predictions.csv").is_file()
    True
    """
    with new_run(run, local_folder(folder), texts or {}, force=force):
        pass  # nothing is added: the files are written when the block begins, and the folder named at its end


@contextmanager
def new_run(run: Run, folder: Path, texts: Mapping[str, str], *, force: bool) -> Iterator[Path]:
    """Write a run's files as `write_run` does, and yield the folder, where a caller may add files.

    The folder has a temporary name until the ``with`` block of the caller ends. If the block fails with an
    `ObygazeError`, for instance because a model cannot be saved, the run is kept without what the block would
    have added. The same error is then raised, and says that the run is kept.
    """
    # These may raise, and so come before the folder is begun.
    check_free(folder.resolve(), force=force)
    tables = _tables_of(run)

    failure = None
    with whole_folder(folder) as temporary_folder:
        write_whole(temporary_folder / "predictions.csv", run.predictions.to_csv())
        for name, table in tables.items():
            write_whole(temporary_folder / name, table.to_csv(index=False, lineterminator="\n"))
        write_whole(temporary_folder / "run.json", to_json(run))
        for name, text in texts.items():
            write_whole(temporary_folder / name, text)
        try:
            yield temporary_folder
        except ObygazeError as error:
            # Raised below, once the folder has its name: raised here, it would remove the folder.
            failure = error

    if failure is not None:
        raise type(failure)(f"{failure}; the run is kept in {folder}") from failure


def _tables_of(run: Run) -> dict[str, pd.DataFrame]:
    """Collect the tables of a run's folder, by the names of their files; `FILES` says when each is there."""
    tables = {"metrics.csv": run.metrics, "selection.csv": run.selection}
    if len(run.curves):
        tables["curves.csv"] = run.curves
    if len(run.record["seeds"]) > 1:
        metrics = metrics_of(run.predictions.n_classes, run.own_metrics)
        tables["seeds.csv"] = by_seed(run.predictions, metrics)
    if run.record["excluded"]:
        tables["excluded.csv"] = pd.DataFrame(run.record["excluded"])
    return tables
