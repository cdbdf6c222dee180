"""The one table of out-of-fold predictions, from which every metric, figure and ranking comes."""

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from obygaze_features.errors import ObygazeError

COLUMNS: dict[str, str] = {
    "model": "str",
    "task": "str",  # train task > test task
    "fold": "int64",
    "seed": "int64",
    "clip_id": "str",
    "movie": "str",
    "label": "int64",  # 1 positive, 0 negative
    "score": "float64",  # higher for positive; comparable within a fold
    "threshold": "float64",  # a clip is called positive when its score reaches it
    "store": "str",  # fingerprint
}
"""Columns of the table, in order, with their types."""

KEY = ["model", "task", "fold", "seed", "clip_id"]
"""What names a row: under some protocols a clip is tested in several folds."""


class PredictionsError(ObygazeError):
    """A table of predictions does not hold what it must."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """A checked table of predictions.

    Parameters
    ----------
    table : DataFrame
        Columns and types as in `COLUMNS`; converted where nothing is lost.

    Raises
    ------
    PredictionsError
        A column is missing, unknown, or of another type; a value is missing or not finite; a label is
        neither 0 nor 1; a row is there twice.
    """

    table: pd.DataFrame

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", _checked(self.table, "the table of predictions"))

    @property
    def called(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """1 for each row called positive, 0 for each other [N]."""
        called: np.ndarray[tuple[int], np.dtype[np.int64]] = (
            self.table["score"].to_numpy() >= self.table["threshold"].to_numpy()
        ).astype(np.int64)
        return called

    def to_csv(self) -> str:
        """Write the table as CSV text; floats in the shortest form that reads back as the same number."""
        return self.table.to_csv(index=False, lineterminator="\n")

    def write(self, path: Path) -> None:
        """Write the table to a CSV file, all of it or nothing."""
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        try:
            partial.write_text(self.to_csv(), encoding="utf-8", newline="")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a table from a CSV file.

        Raises
        ------
        PredictionsError
            The file is not such a table.
        """
        try:
            text = path.read_text(encoding="utf-8")
            table = pd.read_csv(io.StringIO(text), dtype="str", keep_default_na=False)
        except UnicodeDecodeError as error:
            raise PredictionsError(f"{path} is not UTF-8 text: byte {error.start} can't be read") from error
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            raise PredictionsError(f"{path} is not a CSV table of predictions: {error}") from error
        return cls(_checked(table, str(path)))


def _checked(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Check a table and give it with its columns typed."""
    found = list(table.columns)
    if found != list(COLUMNS):
        raise PredictionsError(
            f"{name}: expected the columns {', '.join(COLUMNS)}; found {', '.join(map(str, found))}"
        )
    columns = {}
    for column, kind in COLUMNS.items():
        if table[column].isna().any():
            raise PredictionsError(f"{name}: column {column} has missing values")
        try:
            # Python's own float: shortest form in, same number out.
            values = [float(value) for value in table[column]] if kind == "float64" else table[column]
            columns[column] = pd.Series(values, index=table.index).astype(
                np.dtype(kind) if kind != "str" else "str"
            )
        except ValueError as error:
            raise PredictionsError(f"{name}: column {column} must be {kind}: {error}") from error
    typed = pd.DataFrame(columns)
    for column in ("score", "threshold"):
        if not np.isfinite(typed[column]).all():
            first = int(np.flatnonzero(~np.isfinite(typed[column]))[0])
            raise PredictionsError(f"{name}: {column} of clip {typed['clip_id'].iloc[first]} is not finite")
    if not typed["label"].isin([0, 1]).all():
        strange = typed.loc[~typed["label"].isin([0, 1]), "label"].iloc[0]
        raise PredictionsError(f"{name}: a label must be 0 or 1, found {strange}")
    twice = typed.duplicated(KEY)
    if twice.any():
        row = typed.loc[twice, KEY].to_dict(orient="records")[0]
        raise PredictionsError(
            f"{name}: two rows for {', '.join(f'{key} {value}' for key, value in row.items())}"
        )
    return typed.reset_index(drop=True)
