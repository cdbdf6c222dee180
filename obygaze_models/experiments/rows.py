"""Rows of the table of out-of-fold predictions, from models and the clips that they are tested on."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.evaluation import COLUMNS, Predictions
from obygaze_models.experiments.material import Material, Source

Rows = dict[str, NDArray[Any]]
"""The columns of some rows of the table; a thousand of them cost less than as many tables."""


def predicted(
    material: Material,
    source: Source,
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
    """Make the rows of one model tested on some rows of the material; labels are those of S unless given."""
    columns: dict[str, Any] = {
        "model": model,
        "task": task,
        "fold": fold,
        "seed": seed,
        "clip_id": material.clip_ids[rows],
        "movie": material.movies[rows],
        "label": material.y[rows] if label is None else label,
        "score": score.astype(np.float64),
        "threshold": threshold,
        "store": source.store,
    }
    return {name: np.broadcast_to(columns[name], len(rows)) for name in COLUMNS}


def gather(blocks: list[Rows]) -> Predictions:
    """Stack blocks into one table, model by model and task by task, folds in the order given."""
    stacked = pd.DataFrame({name: np.concatenate([block[name] for block in blocks]) for name in COLUMNS})
    rank = {name: place for place, name in enumerate(dict.fromkeys(stacked["model"]))}
    order = np.lexsort((np.arange(len(stacked)), stacked["task"].to_numpy(str), stacked["model"].map(rank)))
    return Predictions(stacked.iloc[order].reset_index(drop=True))
