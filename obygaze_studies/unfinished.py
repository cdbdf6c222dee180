"""Keep what long studies have trained, and the tables they have made, until all is done: OUT.partial."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from obygaze_features.door import parse_json, read_bytes
from obygaze_features.io import PARTIAL_SUFFIX, empty, make_folder, remove_tree, write_whole
from obygaze_features.lines import json_bytes
from obygaze_features.locks import alone_in
from obygaze_models.evaluation import Predictions, Run
from obygaze_models.report import check_folder, new_folder

Result = TypeVar("Result", Predictions, Run)

INPUTS = "inputs.json"
TRAINED = "trained"
"""What unfinished tables are made from, and the folder of what was trained for them."""

VERSIONS = {name: version(name) for name in ("obygaze", "numpy", "scipy", "scikit-learn")}
"""What numbers depend on."""


class Work(NamedTuple):
    """Tables that take long to make.

    Attributes
    ----------
    inputs
        What they are made from and how, as JSON values.
    make
        Makes them, and returns the reports: a `Report`, or what has `reports` and `notes`. It is given
        `progress`, a function; `kept`, a folder for what is trained, in that of the tables, or None; and
        `made`, which is called with each report when it is made, and with the whole that it is a part of.
    said
        What to say before.
    """

    inputs: Mapping[str, object]
    make: Callable[..., Any]
    said: Sequence[str] = ()


def kept_result(folder: Path | None, name: str, compute: Callable[[], Result]) -> Result:
    """Read a result from its JSON file in a folder, or compute it and write the file."""
    if folder is None:
        return compute()
    path = folder / f"{name.replace(' ', '_')}.json"
    if path.is_file():
        result: Result = _read(parse_json(read_bytes(path)))
        return result
    computed = compute()
    write_whole(path, json.dumps(computed, default=_plain))
    return computed


def _plain(value: Any) -> Any:
    """Write what JSON has no form for: a table by the type and values of its columns, a result by field."""
    if isinstance(value, pd.DataFrame):
        return {name: (str(column.dtype), column.tolist()) for name, column in value.items()}
    content = {}
    for field in fields(value):
        if field.name != "specs":  # models, of which the names are kept
            content[field.name] = getattr(value, field.name)
    return content


def _table(columns: Mapping[str, tuple[str, list[Any]]]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=kind) for name, (kind, values) in columns.items()})


def _read(document: dict[str, Any]) -> Any:
    """Read predictions, or a run, as they are written."""
    if "table" in document:
        return Predictions(_table(document["table"]), document["n_classes"])
    tables = {name: _table(document[name]) for name in ("metrics", "selection", "curves")}
    return Run(**document | tables | {"predictions": _read(document["predictions"])})


@contextmanager
def unfinished_folder(folder: Path, inputs: Mapping[str, object], *, force: bool) -> Iterator[Path]:
    """Yield ``<folder>.partial`` to write tables into, with what an earlier run from the same inputs left.

    It becomes `folder` if the block succeeds, and otherwise stays, unless nothing was trained. What a run
    from other inputs left is removed.

    Raises
    ------
    OutputError
        `folder` exists, or what lies at ``<folder>.partial`` is something else.
    StoreError
        Another process writes it.
    """
    check_folder(folder, force=force)
    partial = folder.with_name(f"{folder.name}{PARTIAL_SUFFIX}")
    if not (partial / INPUTS).is_file():
        check_folder(partial, force=False)
    record = json_bytes({**inputs, "versions": VERSIONS})
    with alone_in(partial, "making these tables"):
        if not (partial / INPUTS).is_file() or read_bytes(partial / INPUTS) != record:
            empty(partial)
            write_whole(partial / INPUTS, record)
        make_folder(partial / TRAINED)
        try:
            yield partial
        except Exception:
            if not any((partial / TRAINED).iterdir()):
                remove_tree(partial)
            raise
        with new_folder(folder, force=force) as final:
            for path in sorted(partial.iterdir()):
                if path.name not in {INPUTS, TRAINED}:
                    path.replace(final / path.name)
        remove_tree(partial)
