"""Find the clips of the `paper` protocol's folds that have features; make the rows of its predictions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import COLUMNS, Predictions
from obygaze_models.protocol import Fold
from obygaze_studies.errors import FoldsError
from obygaze_studies.obygaze12.corpus import TASKS

Rows = dict[str, NDArray[Any]]
"""The columns of some rows of the table of predictions; a thousand of them cost less than as many tables."""


def positive(data: Dataset) -> NDArray[np.int64]:
    """Assign 1 for S clips, 0 for the others [N]."""
    return TASKS["enhn_s"].labels(data.levels)


def check_sides(data: Dataset, fold: Fold, present: Mapping[str, int], what: str) -> None:
    """Refuse a fold of which too few clips have features to train, to validate or to test.

    Parameters
    ----------
    present
        Clip id -> its label, 0 or 1.
    what
        What the fold is of, for the message.

    Raises
    ------
    FoldsError
        A side has no clip with features, or the training side has one class only.
    """
    sides = {"training": fold.train, "validation": fold.validation, "test": fold.test}
    for side, clips in sides.items():
        found = [clip_id for clip_id in clips if clip_id in data.row_of]
        if clips and not found:
            lacks = "no clip"
        elif side == "training" and len({present[clip_id] for clip_id in found}) < 2:
            lacks = "clips of one class only"
        else:
            continue
        raise FoldsError(
            f"the published folds need the features of more clips: {what}, fold {fold.name}, has {lacks} "
            f"on its {side} side ({len(found)} of {len(clips)} clips have features); extract the others, "
            "or use the strict protocol (--protocol strict)"
        )


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
