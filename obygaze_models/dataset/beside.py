"""Read what else is known of clips: variables of a table, as of staging, and a machine's answers."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from obygaze_features.manifest import (
    FIELDS,
    OF_VARIABLES,
    PICTURES,
    Answered,
    Clip,
    Codebook,
    counted,
    modalities_of,
    read_answered,
    read_table,
    why_unperceived,
)
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
        The target is of ordered levels, or a concept that the machine cannot perceive, or no clip has an
        answer to what is asked.
    ManifestError
        The file holds no answers, or a level or concept is not in the codebook.
    """
    if target.kind == "ordinal":
        raise DatasetError("--answers is for two classes, and ordered levels are asked for")
    is_store = path.is_dir() or path.suffix == ".zip"
    values = np.full(len(data), np.nan)
    n_absent: Counter[str] = Counter()
    for clip in _of_store(path) if is_store else read_answered(path):
        row = data.row_of.get(clip.cells.get("clip_id", ""))
        if row is None or clip.reason:
            continue
        if target.concept:
            reason = why_unperceived(data.codebook.concept(target.concept), clip.perceives)
            if reason:
                n_absent[reason] += 1
                continue
        values[row] = _probability(clip, target, data.codebook)
    without = int(np.isnan(values).sum())
    absent = [f"{reason} ({counted(n, 'clip')})" for reason, n in n_absent.items()]
    if without == len(data):
        why = f": {'; '.join(absent)}" if absent else ""
        raise DatasetError(f"{path}: it answers {target.title} of no clip of the evaluation{why}")
    notes = []
    if without:
        notes.append(f"{path.name}: {counted(without, 'clip')} of {len(data):,} without an answer")
    notes += [f"{path.name}: {line}" for line in absent]
    return replace(data, answers=np.where(np.isnan(values), UNTOLD, values)[:, None]), notes


def _probability(clip: Answered, target: "Target", codebook: Codebook) -> float:
    """Read the probability of a target's positive class in a clip's answers; NaN where there is none."""
    if target.concept:
        concepts = {codebook.concept_spelled(name): p for name, p in clip.of("concept").items()}
        return concepts.get(target.concept, np.nan)
    levels = {codebook.level_spelled(name): p for name, p in clip.of("level").items()}
    negative_levels, positive_levels = target.classes
    negative = sum(levels.get(name, 0.0) for name in negative_levels)
    positive = sum(levels.get(name, 0.0) for name in positive_levels)
    return positive / (negative + positive) if negative + positive else np.nan


def _of_store(path: Path) -> Iterator[Answered]:
    """Yield the answers that a store holds, by the names of its questions."""
    store = open_store(path)
    if GROUP not in store.names:
        raise DatasetError(
            f"{path}: no group {GROUP!r}: extract with --backbone vlm, or give a file of answers"
        )
    group = store[GROUP]
    names = group.provenance["architecture"]["features"]
    perceives = modalities_of(group.provenance.get("perceives", PICTURES), f"{path}: provenance of {GROUP}")
    for clip_id, usable, row in zip(group.clip_ids, group.usable, group.pooled().tolist(), strict=True):
        answers = dict(zip(names, row, strict=True))
        reason = "" if usable else "no answer"
        yield Answered(
            clip_id, cells={"clip_id": clip_id}, answers=answers, reason=reason, perceives=perceives
        )


def with_variables(
    data: Dataset, path: Path, clips: Iterable[Clip] = (), target: "Target | None" = None
) -> tuple[Dataset, list[str]]:
    """Add the numbers of a table to a dataset's clips, and say what was used and what was not.

    Each column is used, unless it is one of a manifest, the same in every clip, or of `film variables` and
    measured of what does not convey the target's concept, or an account of the others. Cells may be empty.

    Parameters
    ----------
    data : Dataset
    path : Path
        A table with the column `clip_id`, as `obygaze film variables` writes it.
    clips : iterable of Clip
        With which films and times that it states must agree.
    target : Target, optional

    Raises
    ------
    DatasetError
        No clip or no column is left.
    ManifestError
        A clip has two rows, or another film or other times than it has; or a cell is no number.
    """
    table = read_table(path, needed=("clip_id",), known=FIELDS)
    absent = _unperceived_columns(table.columns, target, data.codebook)
    accounts = [name for name in table.columns if OF_VARIABLES.get(name) == ()]
    names = [name for name in table.columns if name not in {*FIELDS, *absent, *accounts}]
    values_of = table.numbers(names, clips)
    values = np.array([values_of.get(name, [np.nan] * len(names)) for name in data.clip_ids.tolist()])
    without = len(data.row_of.keys() - values_of)
    varies = [len(np.unique(column[np.isfinite(column)])) > 1 for column in values.T]
    if without == len(data) or not any(varies):
        reason = "no clip of the evaluation" if without == len(data) else "no column of numbers that vary"
        why = f" beside {'; '.join(absent.values())}" if absent else ""
        raise DatasetError(
            f"{path}: it has {reason}{why}: measure the clips by 'obygaze film variables --windows'"
        )
    used = [name for name, is_used in zip(names, varies, strict=True) if is_used]
    left_out = [name for name in table.columns if name not in {"clip_id", *used, *absent}]
    n_known = dict(zip(names, np.isfinite(values).sum(axis=0).tolist(), strict=True))
    titles = []
    for name in used:
        is_of_all = n_known[name] == len(data) - without
        titles.append(name if is_of_all else f"{name} (of {counted(n_known[name], 'clip')})")
    account = f"{path.name}: staging by {', '.join(titles)}"
    if left_out:
        account += f"; left out {', '.join(left_out)}"
    if absent:
        account += f"; absent: {'; '.join(absent.values())}"
    if without:
        account += f"; {counted(without, 'clip')} of {len(data):,} without a row"
    n_others = len(values_of.keys() - data.row_of)
    if n_others:
        account += f"; {counted(n_others, 'row')} of other clips"
    return replace(data, variables=values[:, varies], variable_names=tuple(used)), [account]


def _unperceived_columns(
    columns: Iterable[str], target: "Target | None", codebook: Codebook
) -> dict[str, str]:
    """List the measured variables that cannot know of the target's concept, each with the reason."""
    if target is None or not target.concept:
        return {}
    concept = codebook.concept(target.concept)
    absent = {}
    for name in columns:
        reason = why_unperceived(concept, OF_VARIABLES.get(name, ()))
        if reason:
            absent[name] = f"{name} ({reason})"
    return absent
