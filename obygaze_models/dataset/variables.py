"""Read variables of clips from a table, such as those of staging."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from obygaze_features.manifest import FIELDS, counted, read_table
from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import DatasetError


def with_variables(data: Dataset, path: Path) -> tuple[Dataset, list[str]]:
    """Add the numbers of a table to a dataset's clips, and say what was used and what was not.

    Each column is used, unless it is one of a manifest or the same in every clip. Cells may be empty.

    Parameters
    ----------
    data : Dataset
    path : Path
        A table with the column `clip_id`, as `obygaze film variables` writes it.

    Raises
    ------
    DatasetError
        A clip has two rows, or no clip or no column is left.
    ManifestError
        A cell is no number.
    """
    table = read_table(path, needed=("clip_id",))
    names = [name for name in table.columns if name not in FIELDS]
    values = np.full((len(data), len(names)), np.nan)
    seen: set[str] = set()
    for row in table.rows:
        if row.is_empty:
            continue
        clip_id = row.cells["clip_id"]
        if clip_id in seen:
            raise DatasetError(f"{path}: line {row.line}: clip {clip_id} has a row already")
        seen.add(clip_id)
        numbers = [row.number(name, path) for name in names]
        if clip_id in data.row_of:
            values[data.row_of[clip_id]] = numbers
    without = sum(clip_id not in seen for clip_id in data.row_of)
    varies = [len(np.unique(own[np.isfinite(own)])) > 1 for own in values.T]
    if without == len(data) or not any(varies):
        what = "no clip of the evaluation" if without == len(data) else "no column of numbers that vary"
        raise DatasetError(f"{path}: it has {what}: measure the clips by 'obygaze film variables --windows'")
    used = [name for name, does in zip(names, varies, strict=True) if does]
    left_out = [name for name in table.columns if name not in {"clip_id", *used}]
    account = f"{path.name}: staging by {', '.join(used)}"
    account += f"; left out {', '.join(left_out)}" if left_out else ""
    account += f"; {counted(without, 'clip')} of {len(data):,} without a row" if without else ""
    others = len(seen - data.row_of.keys())
    account += f"; {counted(others, 'row')} of other clips" if others else ""
    return replace(data, variables=values[:, varies]), [account]
