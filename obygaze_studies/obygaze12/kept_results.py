"""Keep trained results on disk while tables are made, so that a killed run resumes where it stopped."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from obygaze_features.io import PARTIAL_SUFFIX, empty, json_bytes, make_folder, remove_tree, write_whole
from obygaze_features.locks import alone_in
from obygaze_models.evaluation import Predictions, Run
from obygaze_models.report import check_folder, new_folder

INPUTS, TRAINED = "inputs.json", "trained"
"""What unfinished tables are made from, and the folder of what was trained for them."""


@dataclass(frozen=True, slots=True)
class KeptResults:
    """Results in a folder, one JSON file each: read where the file is there, else computed and written."""

    folder: Path

    def predictions(self, name: str, compute: Callable[[], Predictions]) -> Predictions:
        """Read or compute predictions."""
        path = self._path(name)
        if not path.is_file():
            computed = compute()
            write_whole(path, json.dumps([_columns(computed.table), computed.n_classes]))
            return computed
        columns, n_classes = json.loads(path.read_text(encoding="utf-8"))
        return Predictions(_table(columns), n_classes)

    def run(self, name: str, compute: Callable[[], Run]) -> Run:
        """Read or compute a run."""
        path = self._path(name)
        tables = ("metrics", "selection", "curves")
        if not path.is_file():
            computed = compute()
            document = {field.name: getattr(computed, field.name) for field in fields(Run)}
            document |= {table: _columns(document[table]) for table in tables}
            predictions = computed.predictions
            document["predictions"] = [_columns(predictions.table), predictions.n_classes]
            write_whole(path, json.dumps(document | {"titles": dict(computed.titles)}))
            return computed
        document = json.loads(path.read_text(encoding="utf-8"))
        columns, n_classes = document["predictions"]
        document |= {table: _table(document[table]) for table in tables}
        return Run(**document | {"predictions": Predictions(_table(columns), n_classes)})

    def _path(self, name: str) -> Path:
        return self.folder / f"{name.replace(' ', '_')}.json"


def _columns(table: pd.DataFrame) -> dict[str, tuple[str, list[Any]]]:
    """List a table's columns: type and values. JSON reads back the same numbers."""
    return {str(name): (str(values.dtype), values.tolist()) for name, values in table.items()}


def _table(columns: Mapping[str, tuple[str, list[Any]]]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=kind) for name, (kind, values) in columns.items()})


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
    record = json_bytes(inputs)
    with alone_in(partial, "making these tables"):
        if not (partial / INPUTS).is_file() or (partial / INPUTS).read_bytes() != record:
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
