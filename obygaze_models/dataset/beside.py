"""Read what else is known of clips: variables of a table, as of staging, and a machine's answers."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from obygaze_features.manifest import FIELDS, Answered, Clip, counted, read_answered, read_table
from obygaze_features.store import open_store
from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import DatasetError

if TYPE_CHECKING:
    from obygaze_models.protocol.targets import Target

GROUP = "answers"
"""Of a store: what the backbone `vlm` makes."""
UNTOLD = 0.5
"""Of a clip without an answer."""


def with_answers(data: Dataset, path: Path, target: "Target") -> tuple[Dataset, list[str]]:
    """Add a machine's answers to a dataset's clips, and say of which clips there are none.

    Parameters
    ----------
    data : Dataset
    path : Path
        Answers to `obygaze codebook questions`, as `manifest import spans --as answers` reads them; or a
        store with the group `answers`, of the backbone `vlm`.
    target : Target
        Of two classes: a concept, or levels, of which the probability of the positive ones is taken beside
        that of the negative ones.

    Raises
    ------
    DatasetError
        The target is of ordered levels, or no clip has an answer to what is asked.
    ManifestError
        The file holds no answers, or a level or concept is not in the codebook.
    """
    if target.kind == "ordinal":
        raise DatasetError("--answers is for two classes, and ordered levels are asked for")
    book, known = data.codebook, np.full(len(data), np.nan)
    for each in _of_store(path) if path.is_dir() or path.suffix == ".zip" else read_answered(path):
        row = data.row_of.get(each.cells.get("clip_id", ""))
        if row is None or each.reason:
            continue
        if target.concept:
            found = {book.concept_spelled(name): p for name, p in each.of("concept").items()}
            known[row] = found.get(target.concept, np.nan)
            continue
        levels = {book.level_spelled(name): p for name, p in each.of("level").items()}
        negative, positive = (sum(levels.get(name, 0.0) for name in side) for side in target.classes)
        known[row] = positive / (negative + positive) if negative + positive else np.nan
    without = int(np.isnan(known).sum())
    if without == len(data):
        raise DatasetError(f"{path}: it answers {target.title} of no clip of the evaluation")
    said = [f"{path.name}: {counted(without, 'clip')} of {len(data):,} without an answer"] if without else []
    return replace(data, answers=np.where(np.isnan(known), UNTOLD, known)[:, None]), said


def _of_store(path: Path) -> Iterator[Answered]:
    """Yield the answers that a store holds, by the names of its questions."""
    store = open_store(path)
    if GROUP not in store.names:
        raise DatasetError(
            f"{path}: no group {GROUP!r}: extract with --backbone vlm, or give a file of answers"
        )
    group = store[GROUP]
    names = group.provenance["architecture"]["features"]
    for clip_id, usable, row in zip(group.clip_ids, group.usable, group.pooled().tolist(), strict=True):
        answers = dict(zip(names, row, strict=True))
        reason = "" if usable else "no answer"
        yield Answered(clip_id, cells={"clip_id": clip_id}, answers=answers, reason=reason)


def with_variables(data: Dataset, path: Path, clips: Iterable[Clip] = ()) -> tuple[Dataset, list[str]]:
    """Add the numbers of a table to a dataset's clips, and say what was used and what was not.

    Each column is used, unless it is one of a manifest or the same in every clip. Cells may be empty.

    Parameters
    ----------
    data : Dataset
    path : Path
        A table with the column `clip_id`, as `obygaze film variables` writes it.
    clips : iterable of Clip
        With which films and times that it states must agree.

    Raises
    ------
    DatasetError
        No clip or no column is left.
    ManifestError
        A clip has two rows, or another film or other times than it has; or a cell is no number.
    """
    table = read_table(path, needed=("clip_id",), known=FIELDS)
    names = [name for name in table.columns if name not in FIELDS]
    known = table.numbers(names, clips)
    values = np.array([known.get(name, [np.nan] * len(names)) for name in data.clip_ids.tolist()])
    without = len(data.row_of.keys() - known)
    varies = [len(np.unique(own[np.isfinite(own)])) > 1 for own in values.T]
    if without == len(data) or not any(varies):
        what = "no clip of the evaluation" if without == len(data) else "no column of numbers that vary"
        raise DatasetError(f"{path}: it has {what}: measure the clips by 'obygaze film variables --windows'")
    used = [name for name, does in zip(names, varies, strict=True) if does]
    left_out = [name for name in table.columns if name not in {"clip_id", *used}]
    of = dict(zip(names, np.isfinite(values).sum(axis=0).tolist(), strict=True))
    told = [name + f" (of {counted(of[name], 'clip')})" * (of[name] < len(data) - without) for name in used]
    account = f"{path.name}: staging by {', '.join(told)}"
    account += f"; left out {', '.join(left_out)}" if left_out else ""
    account += f"; {counted(without, 'clip')} of {len(data):,} without a row" if without else ""
    others = len(known.keys() - data.row_of)
    account += f"; {counted(others, 'row')} of other clips" if others else ""
    return replace(data, variables=values[:, varies], variable_names=tuple(used)), [account]
