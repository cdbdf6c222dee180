"""Add inputs of models to a dataset: variables of a table, such as of staging, and answers of a machine."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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

ANSWERS_GROUP = "answers"
"""Name of the group that the backbone `vlm` writes to a store."""

P_WITHOUT_ANSWER = 0.5
"""Probability of the positive class of a clip without an answer."""

DESCRIBES_ONLY: tuple[str, ...] = ()
"""The media of a column of `OF_VARIABLES` that was not measured in any: it only describes other columns."""


def with_answers(data: Dataset, path: Path, target: "Target") -> tuple[Dataset, list[str]]:
    """Add the probabilities that a machine's answers give to the positive class, for a dataset's clips.

    Parameters
    ----------
    data : Dataset
    path : Path
        Answers to `obygaze codebook questions`, as `manifest import spans --as answers` reads them; or a
        store with the group `answers`, of the backbone `vlm`.
    target : Target
        A target of two classes: a concept, or levels. For levels the probability is that of the positive
        levels, divided by that of the positive and negative levels together.

    Returns
    -------
    data : Dataset
    notes : list of str
        Sentences on the clips that have no answer.

    Raises
    ------
    DatasetError
        The target is of ordered levels, or a concept that the machine cannot perceive, or no clip has an
        answer for the target.
    ManifestError
        The file holds no answers, or a level or concept is not in the codebook.
    """
    if target.kind == "ordinal":
        raise DatasetError("--answers is for two classes, and ordered levels are asked for")
    is_store = path.is_dir() or path.suffix == ".zip"
    answers = _read_stored_answers(path) if is_store else read_answered(path)
    p_positive = np.full(len(data), np.nan)
    n_unperceived: Counter[str] = Counter()
    for clip in answers:
        row = data.row_of.get(clip.cells.get("clip_id", ""))
        # A clip with a reason has no answers.
        if row is None or clip.reason:
            continue
        if target.concept:
            reason = why_unperceived(data.codebook.concept(target.concept), clip.perceives)
            if reason:
                n_unperceived[reason] += 1
                continue
        p_positive[row] = _probability_of_positive(clip, target, data.codebook)
    unperceived = [f"{reason} ({counted(n, 'clip')})" for reason, n in n_unperceived.items()]
    has_answer = ~np.isnan(p_positive)
    n_without = int((~has_answer).sum())
    if n_without == len(data):
        why = f": {'; '.join(unperceived)}" if unperceived else ""
        raise DatasetError(f"{path}: it has no answer on {target.title} for any clip of the evaluation{why}")
    notes = []
    if n_without:
        notes.append(f"{path.name}: {counted(n_without, 'clip')} of {len(data):,} without an answer")
    notes += [f"{path.name}: {line}" for line in unperceived]
    column = np.where(has_answer, p_positive, P_WITHOUT_ANSWER)[:, None]  # [N, 1]
    return replace(data, answers=column), notes


def _probability_of_positive(clip: Answered, target: "Target", codebook: Codebook) -> float:
    """Return the probability of a target's positive class by a clip's answers; NaN if there is no answer.

    For levels it is the probability of the positive levels, divided by that of positive and negative levels.
    Answers may spell a concept or level differently from the codebook, by whose spelling they are looked up.
    """
    if target.concept:
        p_of_concept = {}
        for name, p in clip.probabilities("concept").items():
            p_of_concept[codebook.concept_spelled(name)] = p
        return p_of_concept.get(target.concept, np.nan)
    p_of_level = {}
    for name, p in clip.probabilities("level").items():
        p_of_level[codebook.level_spelled(name)] = p
    negative_levels, positive_levels = target.classes
    p_negative = sum(p_of_level.get(name, 0.0) for name in negative_levels)
    p_positive = sum(p_of_level.get(name, 0.0) for name in positive_levels)
    if not p_negative + p_positive:
        return np.nan
    return p_positive / (p_negative + p_positive)


def _read_stored_answers(path: Path) -> Iterator[Answered]:
    """Yield the answers of each clip in a store of a vision-language model: question -> probability."""
    store = open_store(path)
    if ANSWERS_GROUP not in store.names:
        raise DatasetError(
            f"{path}: no group {ANSWERS_GROUP!r}: extract with --backbone vlm, or give a file of answers"
        )
    group = store[ANSWERS_GROUP]
    # The features of such a store are probabilities, and the names of the features are the questions.
    questions = group.provenance["architecture"]["features"]
    perceives = modalities_of(
        group.provenance.get("perceives", PICTURES), f"{path}: provenance of {ANSWERS_GROUP}"
    )
    probabilities_of_clips = group.pooled().tolist()
    for clip_id, usable, probabilities in zip(
        group.clip_ids, group.usable, probabilities_of_clips, strict=True
    ):
        yield Answered(
            clip_id,
            cells={"clip_id": clip_id},
            answers=dict(zip(questions, probabilities, strict=True)),
            reason="" if usable else "no answer",
            perceives=perceives,
        )


def with_variables(
    data: Dataset, path: Path, clips: Iterable[Clip] = (), target: "Target | None" = None
) -> tuple[Dataset, list[str]]:
    """Add the numbers in a table's columns to a dataset, as variables of its clips.

    A column is left out if a manifest has a column of this name, if it has the same value in every clip, if
    `film variables` measured it in a medium that cannot convey the target's concept, or if it only describes
    other columns. Cells may be empty.

    Parameters
    ----------
    data : Dataset
    path : Path
        A table with the column `clip_id`, as `obygaze film variables` writes it.
    clips : iterable of Clip
        Clips of a manifest. If the table states films and times, they must agree with those of the manifest.
    target : Target, optional

    Returns
    -------
    data : Dataset
    notes : list of str
        One sentence, which lists the columns and clips that were used and those that were left out.

    Raises
    ------
    DatasetError
        No clip or no column is left.
    ManifestError
        A clip has two rows, its film or times differ from the manifest's, or a cell is no number.
    """
    table = read_table(path, needed=("clip_id",), known=FIELDS)
    unperceived = _unperceived_columns(table.columns, target, data.codebook)  # column -> why
    descriptions = [name for name in table.columns if OF_VARIABLES.get(name) == DESCRIBES_ONLY]
    are_no_variables = {*FIELDS, *unperceived, *descriptions}
    names = [name for name in table.columns if name not in are_no_variables]
    values_of_clip = table.numbers(names, clips)
    no_values = [np.nan] * len(names)
    values = np.array([values_of_clip.get(clip_id, no_values) for clip_id in data.clip_ids.tolist()])
    varies = [len(np.unique(column[np.isfinite(column)])) > 1 for column in values.T]
    n_without = len(data.row_of.keys() - values_of_clip)
    has_no_clip = n_without == len(data)
    if has_no_clip or not any(varies):
        reason = "no clip of the evaluation" if has_no_clip else "no column of numbers that vary"
        why = f" beside {'; '.join(unperceived.values())}" if unperceived else ""
        raise DatasetError(
            f"{path}: it has {reason}{why}: measure the clips by 'obygaze film variables --windows'"
        )
    used = [name for name, is_varying in zip(names, varies, strict=True) if is_varying]
    variables = values[:, varies]
    titles = _titles_of_columns(used, variables, len(data) - n_without)
    # The note: what was used, and then what was not, as far as there is any.
    parts = [f"{path.name}: staging by {', '.join(titles)}"]
    left_out = [name for name in table.columns if name not in {"clip_id", *used, *unperceived}]
    if left_out:
        parts.append(f"left out {', '.join(left_out)}")
    if unperceived:
        parts.append(f"absent: {'; '.join(unperceived.values())}")
    if n_without:
        parts.append(f"{counted(n_without, 'clip')} of {len(data):,} without a row")
    n_rows_of_others = len(values_of_clip.keys() - data.row_of)
    if n_rows_of_others:
        parts.append(f"{counted(n_rows_of_others, 'row')} of other clips")
    note = "; ".join(parts)
    return replace(data, variables=variables, variable_names=tuple(used)), [note]


def _titles_of_columns(names: Sequence[str], values: NDArray[np.float64], n_rows: int) -> list[str]:
    """Name columns in a note, with the number of clips that have a value unless all `n_rows` clips have one.

    `values` [N, V] are those of the columns, NaN where a clip has none.
    """
    n_known_of_columns = np.isfinite(values).sum(axis=0).tolist()
    titles = []
    for name, n_known in zip(names, n_known_of_columns, strict=True):
        titles.append(name if n_known == n_rows else f"{name} (of {counted(n_known, 'clip')})")
    return titles


def _unperceived_columns(
    columns: Iterable[str], target: "Target | None", codebook: Codebook
) -> dict[str, str]:
    """List the columns measured in a medium that cannot convey the target's concept: name -> text.

    The text has the name and the reason. Columns that are not measured in a known medium are not listed. The
    result is empty if the target is no concept.
    """
    if target is None or not target.concept:
        return {}
    concept = codebook.concept(target.concept)
    unperceived = {}
    for name in columns:
        reason = why_unperceived(concept, OF_VARIABLES.get(name, ()))
        if reason:
            unperceived[name] = f"{name} ({reason})"
    return unperceived
