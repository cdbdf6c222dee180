"""Read, check and write the table of out-of-fold predictions, the source of every metric and figure."""

import io
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked, made_by
from obygaze_features.file_kinds import where_damaged
from obygaze_features.io import local_path, write_whole
from obygaze_features.text import counted
from obygaze_features.untrusted import read_text
from obygaze_models.errors import PredictionsError

COLUMNS: dict[str, str] = {
    "model": "str",
    "task": "str",  # train task > test task
    "fold": "int64",
    "seed": "int64",
    "clip_id": "str",
    "movie": "str",
    "label": "int64",  # 1 positive, 0 negative; of ordered levels the rank, from 0
    "score": "float64",  # higher for positive; comparable within a fold
    "threshold": "float64",  # a clip is called positive when its score reaches it
    "store": "str",  # fingerprint
}
"""Columns of the table, in order, with their types."""

MAX_TABLE_BYTES = 1 << 31
"""Largest table of predictions that is read, in bytes: some ten million rows."""

SHOWN_ROWS = 10
"""Rows that a notebook shows."""

KEY_COLUMNS = ["model", "task", "fold", "seed", "clip_id"]
"""Columns that together identify a row: no two rows have the same values in all of them.

The fold is among them, as under some protocols a clip is tested in several folds."""


@made_by("evaluate(DATA, MODELS).predictions")
@dataclass(frozen=True, eq=False)
class Predictions:
    """A checked table of predictions.

    Parameters
    ----------
    table : DataFrame
        Columns and types as in `COLUMNS`; columns of other types are converted if that loses nothing. Rows of
        the same model, seed and movie are in the order of the manifest, which is the order of the film:
        functions that compare neighbouring clips rely on it.
    n_classes : int
        2, or the number of ordered levels. Scores of levels are on the levels' scale: a clip is called level
        r if its score reaches r - 1 plus the threshold.

    Raises
    ------
    PredictionsError
        A column is missing, unknown, or of another type; a value is missing or not finite; a label is
        none of the classes; a row is there twice.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> run = om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s", test="enhn_s")
    >>> table = run.predictions.table
    >>> table[["model", "clip_id"]].iloc[0].tolist()
    ['linear', 'film0-c000']
    >>> run.predictions.called.shape == (len(table),)
    True
    """

    table: pd.DataFrame
    n_classes: int = 2

    def __post_init__(self) -> None:
        """Check the table, and convert its columns to the types of `COLUMNS`."""
        table = _validate_table(self.table, "the table of predictions", self.n_classes)
        object.__setattr__(self, "table", table)  # a frozen dataclass has no other way to set a field

    def __repr__(self) -> str:
        """Count rows and clips, and name the models."""
        models = ", ".join(self.table["model"].unique())
        return (
            f"Predictions({counted(len(self.table), 'row')} of {self.table['clip_id'].nunique()} "
            f"clips, {models})"
        )

    def _repr_html_(self) -> str:
        """Show the first rows in a notebook."""
        first_rows: str = self.table.head(SHOWN_ROWS).to_html(index=False)
        return f"<div><strong>{escape(repr(self))}</strong>{first_rows}</div>"

    @property
    def called(self) -> NDArray[np.int64]:
        """The predicted class of each row [N]: 1 if the score reaches the threshold, else 0; or a level."""
        score = self.table["score"].to_numpy()
        threshold = self.table["threshold"].to_numpy()
        if self.n_classes == 2:
            return np.asarray(score >= threshold, dtype=np.int64)
        # With the threshold .5, scores below .5 are level 0, from .5 to 1.5 level 1, from 1.5 to 2.5 level 2.
        ranks = np.clip(np.floor(score + 1 - threshold), 0, self.n_classes - 1)
        return np.asarray(ranks, dtype=np.int64)

    def to_csv(self) -> str:
        """Write the table as CSV text; floats in the shortest form that reads back as the same number."""
        return self.table.to_csv(index=False, lineterminator="\n")

    def write(self, path: Path | str) -> None:
        """Write the table to a CSV file, all of it or nothing."""
        write_whole(local_path(path), self.to_csv())

    @classmethod
    def read(cls, path: Path | str, n_classes: int = 2) -> Self:
        """Read a table from a CSV file.

        Raises
        ------
        PredictionsError
            The file is not such a table.
        """
        path = local_path(path)
        try:
            text = read_text(path, MAX_TABLE_BYTES)
            # All columns are read as texts; `_validate_table` converts them, and names the file in messages.
            table = pd.read_csv(io.StringIO(text), dtype="str", keep_default_na=False)
        except UnicodeDecodeError as error:
            raise PredictionsError(f"{path} is not UTF-8 text: byte {error.start} can't be read") from error
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            reason = where_damaged(error, text.encode(), "a CSV table of predictions")
            raise PredictionsError(f"{path}: {reason}") from None
        return cls(_validate_table(table, str(path), n_classes), n_classes)


@checked
def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table's rows as JSON values; missing values and undefined numbers are null."""
    return [_json_row(row) for row in table.to_dict(orient="records")]


def _json_row(row: Mapping[Hashable, Any]) -> dict[str, Any]:
    """Return a row of a table as JSON values."""
    return {str(name): _json_value(value) for name, value in row.items()}


def _json_value(value: Any) -> Any:
    """Return a cell of a data frame as a JSON value.

    JSON has neither NaN nor infinity: these become None, as do missing values.
    """
    if value is pd.NA:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _validate_table(table: pd.DataFrame, name: str, n_classes: int) -> pd.DataFrame:
    """Validate a table of predictions, and return it with its columns converted to the types of `COLUMNS`.

    `name` is the table's name in messages, `n_classes` the number of classes that labels may have.

    Raises
    ------
    PredictionsError
        The table is invalid, as `Predictions` says.
    """
    names = list(table.columns)
    if names != list(COLUMNS):
        raise PredictionsError(
            f"{name}: expected the columns {', '.join(COLUMNS)}; found {', '.join(map(str, names))}"
        )
    columns = {}
    for column, type_name in COLUMNS.items():
        columns[column] = _convert_column(table[column], type_name, name)
    typed = pd.DataFrame(columns)
    _refuse_infinite(typed, name)
    _refuse_unknown_labels(typed, name, n_classes)
    _refuse_repeated_rows(typed, name)
    return typed.reset_index(drop=True)


def _refuse_infinite(table: pd.DataFrame, name: str) -> None:
    """Raise if a score or threshold is not finite."""
    for column in ("score", "threshold"):
        is_finite = np.isfinite(table[column])
        if not is_finite.all():
            first = int(np.flatnonzero(~is_finite)[0])
            raise PredictionsError(f"{name}: {column} of clip {table['clip_id'].iloc[first]} is not finite")


def _refuse_unknown_labels(table: pd.DataFrame, name: str, n_classes: int) -> None:
    """Raise if a label is none of the classes, which are numbered from 0."""
    is_class = table["label"].between(0, n_classes - 1)
    if not is_class.all():
        expected = "0 or 1" if n_classes == 2 else f"0 to {n_classes - 1}"
        unknown = table.loc[~is_class, "label"].iloc[0]
        raise PredictionsError(f"{name}: a label must be {expected}, found {unknown}")


def _refuse_repeated_rows(table: pd.DataFrame, name: str) -> None:
    """Raise if two rows are of the same clip, model, task, fold and seed (`KEY_COLUMNS`)."""
    is_repeated = table.duplicated(KEY_COLUMNS)
    if is_repeated.any():
        key = table.loc[is_repeated, KEY_COLUMNS].to_dict(orient="records")[0]
        row = ", ".join(f"{column} {value}" for column, value in key.items())
        raise PredictionsError(f"{name}: two rows for {row}")


def _convert_column(cells: "pd.Series[Any]", type_name: str, table_name: str) -> "pd.Series[Any]":
    """Convert a column to the type "str", "int64" or "float64"; `table_name` is for messages.

    Raises
    ------
    PredictionsError
        A value is missing, or cannot be converted.
    """
    column = cells.name
    if cells.isna().any():
        raise PredictionsError(f"{table_name}: column {column} has missing values")
    try:
        if type_name == "str":
            return cells.astype("str")
        if type_name == "float64" and cells.dtype != type_name:
            # Not by pandas: Python's float reads back exactly the number whose shortest form was written.
            cells = pd.Series([float(value) for value in cells], index=cells.index)
        return cells.astype(np.dtype(type_name))
    except (ValueError, OverflowError):
        location = _first_inconvertible(cells, type_name)
        raise PredictionsError(
            f"{table_name}: column {column} holds what is no {type_name}{location}"
        ) from None


def _first_inconvertible(cells: "pd.Series[Any]", type_name: str) -> str:
    """Say where a column cannot be converted to a type: ", first in row 3: 'x'", to end a message.

    It is "" if each cell can be converted by itself.
    """
    for row, value in enumerate(cells, start=1):
        try:
            np.dtype(type_name).type(value)
        except (ValueError, OverflowError):
            return f", first in row {row}: {value!r:.80}"
    return ""
