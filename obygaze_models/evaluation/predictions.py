"""Read, check and write the table of out-of-fold predictions, the source of every metric and figure."""

import io
import math
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked, made_by
from obygaze_features.door import read_text
from obygaze_features.file_kinds import where_damaged
from obygaze_features.io import local_path, write_whole
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

MOST_TABLE = 1 << 31
"""Bytes of a table of predictions that is read: some ten million rows."""

KEY = ["model", "task", "fold", "seed", "clip_id"]
"""What names a row: under some protocols a clip is tested in several folds."""


@made_by("evaluate(DATA, MODELS).predictions")
@dataclass(frozen=True, eq=False)
class Predictions:
    """A checked table of predictions.

    Parameters
    ----------
    table : DataFrame
        Columns and types as in `COLUMNS`; converted where nothing is lost. Within a model, seed and movie
        the rows stand in the order of the manifest, which is the order of the film: what uses neighbouring
        clips relies on it.
    n_classes : int
        2, or the number of ordered levels; then scores are on the levels' scale, and a score calls the level
        that it reaches less the threshold.

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
        object.__setattr__(self, "table", _checked(self.table, "the table of predictions", self.n_classes))

    def __repr__(self) -> str:
        models = ", ".join(self.table["model"].unique())
        return f"Predictions({len(self.table)} rows of {self.table['clip_id'].nunique()} clips, {models})"

    def _repr_html_(self) -> str:
        first: str = self.table.head(10).to_html(index=False)
        return f"<div><strong>{escape(repr(self))}</strong>{first}</div>"

    @property
    def called(self) -> NDArray[np.int64]:
        """The class that each row is called [N]: 1 for positive, 0 for negative; or a level's rank."""
        score, threshold = self.table["score"].to_numpy(), self.table["threshold"].to_numpy()
        if self.n_classes == 2:
            return np.asarray(score >= threshold, dtype=np.int64)
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
            text = read_text(path, MOST_TABLE)
            table = pd.read_csv(io.StringIO(text), dtype="str", keep_default_na=False)
        except UnicodeDecodeError as error:
            raise PredictionsError(f"{path} is not UTF-8 text: byte {error.start} can't be read") from error
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            reason = where_damaged(error, text.encode(), "a CSV table of predictions")
            raise PredictionsError(f"{path}: {reason}") from None
        return cls(_checked(table, str(path), n_classes), n_classes)


@checked
def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table's rows as JSON values; missing values and undefined numbers are null."""

    def plain(value: Any) -> Any:
        undefined = value is pd.NA or (isinstance(value, float) and not math.isfinite(value))
        return None if undefined else value

    rows = table.to_dict(orient="records")
    return [{str(name): plain(value) for name, value in row.items()} for row in rows]


def _fits(value: Any, kind: str) -> bool:
    """Return whether a cell is a number of a kind."""
    try:
        np.dtype(kind).type(value)
    except (ValueError, OverflowError):
        return False
    return True


def _checked(table: pd.DataFrame, name: str, n_classes: int) -> pd.DataFrame:
    """Check a table and give it with its columns typed."""
    names = list(table.columns)
    if names != list(COLUMNS):
        raise PredictionsError(
            f"{name}: expected the columns {', '.join(COLUMNS)}; found {', '.join(map(str, names))}"
        )
    columns = {}
    for column, kind in COLUMNS.items():
        if table[column].isna().any():
            raise PredictionsError(f"{name}: column {column} has missing values")
        try:
            values: Any = table[column]
            if kind == "float64" and values.dtype != kind:
                # Python's own float: shortest form in, same number out.
                values = [float(value) for value in values]
            columns[column] = pd.Series(values, index=table.index).astype(
                np.dtype(kind) if kind != "str" else "str"
            )
        except (ValueError, OverflowError):
            odd = [(row, value) for row, value in enumerate(table[column], 1) if not _fits(value, kind)]
            where = f", first in row {odd[0][0]}: {odd[0][1]!r:.80}" if odd else ""
            raise PredictionsError(f"{name}: column {column} holds what is no {kind}{where}") from None
    typed = pd.DataFrame(columns)
    for column in ("score", "threshold"):
        if not np.isfinite(typed[column]).all():
            first = int(np.flatnonzero(~np.isfinite(typed[column]))[0])
            raise PredictionsError(f"{name}: {column} of clip {typed['clip_id'].iloc[first]} is not finite")
    known = typed["label"].between(0, n_classes - 1)
    if not known.all():
        expected = "0 or 1" if n_classes == 2 else f"0 to {n_classes - 1}"
        strange = typed.loc[~known, "label"].iloc[0]
        raise PredictionsError(f"{name}: a label must be {expected}, found {strange}")
    twice = typed.duplicated(KEY)
    if twice.any():
        row = typed.loc[twice, KEY].to_dict(orient="records")[0]
        raise PredictionsError(
            f"{name}: two rows for {', '.join(f'{key} {value}' for key, value in row.items())}"
        )
    return typed.reset_index(drop=True)
