"""Make the rows of predictions of the `paper` protocol."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import COLUMNS, Predictions
from obygaze_models.obygaze12.corpus import TASKS

Rows = dict[str, NDArray[Any]]
"""The columns of some rows of the table of predictions; a thousand of them cost less than as many tables."""


def positive(data: Dataset) -> NDArray[np.int64]:
    """Assign 1 for S clips, 0 for the others [N]."""
    return TASKS["enhn_s"].labels(data.levels)


def predicted(
    data: Dataset,
    rows: NDArray[np.intp],
    *,
    model: str,
    task: str,
    fold: int,
    seed: int,
    score: NDArray[np.floating],
    threshold: float,
    label: NDArray[np.int64] | None = None,
) -> Rows:
    """Make the rows of one model tested on some clips; labels are those of S unless given."""
    columns: dict[str, Any] = {
        "model": model,
        "task": task,
        "fold": fold,
        "seed": seed,
        "clip_id": data.clip_ids[rows],
        "movie": data.movies[rows],
        "label": positive(data)[rows] if label is None else label,
        "score": score.astype(np.float64),
        "threshold": threshold,
        "store": data.store,
    }
    return {name: np.broadcast_to(columns[name], len(rows)) for name in COLUMNS}


def gather(blocks: list[Rows]) -> Predictions:
    """Stack blocks into one table, model by model and task by task, folds in the order given."""
    stacked = pd.DataFrame({name: np.concatenate([block[name] for block in blocks]) for name in COLUMNS})
    rank = {name: place for place, name in enumerate(dict.fromkeys(stacked["model"]))}
    order = np.lexsort((np.arange(len(stacked)), stacked["task"].to_numpy(str), stacked["model"].map(rank)))
    return Predictions(stacked.iloc[order].reset_index(drop=True))
