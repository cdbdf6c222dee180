"""Keep the trained models and finished tables of a long study in OUT.partial until all tables are made."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from obygaze_features.io import PARTIAL_SUFFIX, empty, make_folder, remove_tree, write_whole
from obygaze_features.lines import json_bytes
from obygaze_features.locks import alone_in
from obygaze_features.untrusted import parse_json, read_bytes
from obygaze_models.evaluation import Predictions, Run
from obygaze_models.report import check_folder, new_folder

Result = TypeVar("Result", Predictions, Run)

INPUTS_FILE = "inputs.json"
"""File in the unfinished folder that records which inputs the tables are made from."""

TRAINED_FOLDER = "trained"
"""Folder in the unfinished folder that holds the results trained for the tables."""

VERSIONS = {name: version(name) for name in ("obygaze", "numpy", "scipy", "scikit-learn")}
"""Versions of the packages that the tables' numbers depend on."""


class Study(NamedTuple):
    """A study whose tables take long to make.

    Attributes
    ----------
    inputs
        The study's inputs and options, as JSON values: a later run with the same ones resumes.
    make
        Function that makes the tables. It returns a `Report`, or an object with `reports` and `notes`. Its
        keyword arguments are `progress`, a function that shows progress; `results_folder`, a folder for
        trained results or None; and `on_report`, a function called with each report as soon as it is made
        and, where the report is part of a longer one, with the longer one.
    notices
        Notices to print before the work starts.
    """

    inputs: Mapping[str, object]
    make: Callable[..., Any]
    notices: Sequence[str] = ()


def load_or_compute(folder: Path | None, name: str, compute: Callable[[], Result]) -> Result:
    """Read a result from its JSON file in a folder, or else compute it and write the file.

    Without a folder it is computed and not written.
    """
    if folder is None:
        return compute()
    path = folder / f"{name.replace(' ', '_')}.json"
    if path.is_file():
        result: Result = _result_from_json(parse_json(read_bytes(path)))
        return result
    computed = compute()
    write_whole(path, json.dumps(computed, default=_to_json_value))
    return computed


def _to_json_value(value: Any) -> Any:
    """Convert a table or a result, which is a dataclass with tables in its fields, to JSON values.

    A table becomes a dict of column name -> (dtype, values); a result becomes a dict of its fields, whose
    tables `json.dumps` converts by another call.
    """
    if isinstance(value, pd.DataFrame):
        return {name: (str(column.dtype), column.tolist()) for name, column in value.items()}
    content = {}
    for field in fields(value):
        # The specifications of models are objects; the result's tables hold the models' names already.
        if field.name != "specs":
            content[field.name] = getattr(value, field.name)
    return content


def _table_from_json(columns: Mapping[str, tuple[str, list[Any]]]) -> pd.DataFrame:
    """Rebuild a table that `_to_json_value` has converted: column name -> (dtype, values)."""
    series_of = {}
    for name, (dtype, values) in columns.items():
        series_of[name] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(series_of)


def _result_from_json(document: dict[str, Any]) -> Any:
    """Rebuild a `Predictions` or a `Run` from the JSON document that `_to_json_value` has made of it.

    A `Predictions` has one table, a `Run` has several and a `Predictions`.
    """
    is_of_predictions = "table" in document  # a Run has several tables, by other names
    if is_of_predictions:
        return Predictions(_table_from_json(document["table"]), document["n_classes"])
    content = dict(document)
    for name in ("metrics", "selection", "curves"):
        content[name] = _table_from_json(document[name])
    content["predictions"] = _result_from_json(document["predictions"])
    return Run(**content)


@contextmanager
def unfinished_folder(folder: Path, inputs: Mapping[str, object], *, force: bool) -> Iterator[Path]:
    """Yield ``<folder>.partial`` to write tables into, so that an interrupted study can resume.

    If the block succeeds, the tables are moved to `folder`. If it fails, the partial folder stays for a later
    run from the same inputs, unless nothing has been trained yet. The files left by a run from other inputs
    or with other package versions are removed at the start.

    Raises
    ------
    OutputError
        `folder` exists, or ``<folder>.partial`` exists and was not made by a study.
    StoreError
        Another process is writing into ``<folder>.partial``.
    """
    check_folder(folder, force=force)
    partial_folder = folder.with_name(f"{folder.name}{PARTIAL_SUFFIX}")
    was_made_by_study = (partial_folder / INPUTS_FILE).is_file()
    if not was_made_by_study:
        check_folder(partial_folder, force=False)

    with alone_in(partial_folder, "making these tables"):  # no other process may write there
        _prepare_partial_folder(partial_folder, inputs)
        try:
            yield partial_folder
        except Exception:
            nothing_is_trained = not any((partial_folder / TRAINED_FOLDER).iterdir())
            if nothing_is_trained:
                remove_tree(partial_folder)
            raise

        # All tables are made.
        with new_folder(folder, force=force) as final:
            _move_tables(partial_folder, final)
        remove_tree(partial_folder)


def _prepare_partial_folder(folder: Path, inputs: Mapping[str, object]) -> None:
    """Prepare the partial folder of a study, and empty it if its files are of other inputs or versions."""
    inputs_file = folder / INPUTS_FILE
    record = json_bytes({**inputs, "versions": VERSIONS})
    has_same_inputs = inputs_file.is_file() and read_bytes(inputs_file) == record
    if not has_same_inputs:
        empty(folder)
        write_whole(inputs_file, record)
    make_folder(folder / TRAINED_FOLDER)


def _move_tables(folder: Path, target: Path) -> None:
    """Move the finished tables of a partial folder to another folder.

    Examples
    --------
    >>> partial, target = Path("partial"), Path("target")
    >>> for folder in (partial, target):
    ...     folder.mkdir()
    >>> for name in ("table.csv", INPUTS_FILE):
    ...     _ = (partial / name).write_text("")
    >>> _move_tables(partial, target)
    >>> [path.name for path in target.iterdir()]
    ['table.csv']
    """
    for path in sorted(folder.iterdir()):
        if path.name not in {INPUTS_FILE, TRAINED_FOLDER}:
            path.replace(target / path.name)
