"""Rows of the table of out-of-fold predictions, from models and the clips that they are tested on."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.evaluation import COLUMNS, Predictions
from obygaze_models.experiments.material import Material, Source


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
) -> pd.DataFrame:
    """Make the rows of one model tested on some rows of the material; labels are those of S unless given."""
    return pd.DataFrame(
        {
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
        },
        columns=list(COLUMNS),
    )


def gather(blocks: list[pd.DataFrame]) -> Predictions:
    """Stack blocks into one table, model by model and task by task, folds in the order given."""
    stacked = pd.concat(blocks, ignore_index=True)
    rank = {name: place for place, name in enumerate(dict.fromkeys(stacked["model"]))}
    order = np.lexsort((np.arange(len(stacked)), stacked["task"].to_numpy(str), stacked["model"].map(rank)))
    return Predictions(stacked.iloc[order].reset_index(drop=True))
