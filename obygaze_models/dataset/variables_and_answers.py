"""Add inputs of models to a dataset: variables of a table, such as of staging, and answers of a machine."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
    find_film,
    modalities_of,
    read_answered,
    read_table,
    why_unperceived,
)
from obygaze_features.store import open_store
from obygaze_features.store.store import names_store
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
        answer for the target; or the file has answers of several machines, or of a clip of another film.
    ManifestError
        The file holds no answers, or a level or concept is not in the codebook.
    """
    if target.kind == "ordinal":
        raise DatasetError("--answers is for two classes, and ordered levels are asked for")
    answers = list(_read_stored_answers(path) if names_store(path) else read_answered(path))
    _refuse_several_machines(answers, data, path)
    _refuse_other_films(answers, data, path)
    used = _use_answers(answers, data, target)

    # Why the machine cannot perceive the concept, each with its number of clips.
    reasons = [f"{reason} ({counted(n, 'clip')})" for reason, n in used.n_unperceived.items()]
    has_answer = ~np.isnan(used.p_positive)
    if not has_answer.any():
        why = f": {'; '.join(reasons)}" if reasons else ""
        raise DatasetError(f"{path}: it has no answer on {target.title} for any clip of the evaluation{why}")

    notes = []
    n_without = int((~has_answer).sum())
    if n_without:
        notes.append(f"{path.name}: {counted(n_without, 'clip')} of {len(data):,} without an answer")
    notes += [f"{path.name}: {reason}" for reason in reasons]

    p_positive = np.where(has_answer, used.p_positive, P_WITHOUT_ANSWER)
    return replace(data, answers=p_positive[:, None]), notes  # [N, 1]


def _refuse_several_machines(answers: Iterable[Answered], data: Dataset, path: Path) -> None:
    """Raise if a file has answers of several machines to the dataset's clips.

    The answers of a file are evaluated as the scores of one model, which so would be several.
    """
    n_clips_of_machine: Counter[str] = Counter()
    for answered in answers:
        is_of_dataset = answered.cells.get("clip_id", "") in data.row_of
        was_read = not answered.reason  # a line that is left out has the reason why
        if is_of_dataset and was_read:
            n_clips_of_machine[answered.model] += 1
    if len(n_clips_of_machine) > 1:
        counts = ", ".join(
            f"{name or 'without a name'} ({counted(n_clips, 'clip')})"
            for name, n_clips in sorted(n_clips_of_machine.items())
        )
        raise DatasetError(
            f"{path}: answers of several machines: {counts}: give a file of one, by its 'model'"
        )


def _refuse_other_films(answers: Iterable[Answered], data: Dataset, path: Path) -> None:
    """Raise if a clip of the dataset is of another film in a file of answers: they answer another clip."""
    for answered in answers:
        row = data.row_of.get(answered.cells.get("clip_id", ""))
        movie = answered.cells.get("movie", "")  # "" in a store, whose clips are those of the dataset
        if row is None or not movie:
            continue
        movie_of_dataset = str(data.movies[row])
        if find_film(movie, [movie_of_dataset]) is None:
            raise DatasetError(
                f"{path}: {answered.where}: clip {answered.cells['clip_id']!r} is of {movie!r}, and of "
                f"{movie_of_dataset!r} in the manifest: ask about the manifest's clips ('obygaze codebook "
                "questions')"
            )


class _UsedAnswers(NamedTuple):
    """What a machine's answers say of a target.

    Attributes
    ----------
    p_positive : ndarray, shape [N]
        Probability of the positive class of each clip of a dataset; NaN for clips without an answer.
    n_unperceived : Counter
        Reason why the machine cannot perceive the target's concept -> number of clips.
    """

    p_positive: NDArray[np.float64]
    n_unperceived: Counter[str]


def _use_answers(answers: Iterable[Answered], data: Dataset, target: "Target") -> _UsedAnswers:
    """Turn the answers on the clips of a dataset into probabilities of a target's positive class.

    Answers on a concept that the machine cannot perceive are not used, such as those of a machine that sees
    pictures on a concept that is heard. They are counted instead.
    """
    p_positive = np.full(len(data), np.nan)
    n_unperceived: Counter[str] = Counter()
    for answered in answers:
        row = data.row_of.get(answered.cells.get("clip_id", ""))
        if row is None:
            continue  # the clip is not in the dataset
        if answered.reason:
            continue  # the reason why the machine gave no answers on the clip

        why = ""
        if target.concept:
            why = why_unperceived(data.codebook.concept(target.concept), answered.perceives)
        if why:
            n_unperceived[why] += 1
        else:
            p_positive[row] = _probability_of_positive(answered, target, data.codebook)
    return _UsedAnswers(p_positive, n_unperceived)


def _probability_of_positive(clip: Answered, target: "Target", codebook: Codebook) -> float:
    """Return the probability of a target's positive class by a clip's answers; NaN if there is no answer.

    For levels it is the probability of the positive levels, divided by that of positive and negative levels.
    """
    # Answers may spell a concept or level differently from the codebook: names are put in its spelling.
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
    if p_negative + p_positive == 0:
        # No level was answered, or those that were have no part in the target.
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

    probabilities = group.pooled().tolist()  # [N, questions]
    for row, clip_id in enumerate(group.clip_ids):
        yield Answered(
            clip_id,
            cells={"clip_id": clip_id},
            answers=dict(zip(questions, probabilities[row], strict=True)),
            reason="" if group.usable[row] else "no answer",
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

    # Columns that are no variables: those of a manifest (FIELDS), those of a medium that cannot convey the
    # concept (column -> why), and those that only describe other columns. OF_VARIABLES has the media of each
    # column that `film variables` writes.
    unperceived = _unperceived_columns(table.columns, target, data.codebook)
    descriptions = [name for name in table.columns if OF_VARIABLES.get(name) == DESCRIBES_ONLY]
    not_variables = {*FIELDS, *unperceived, *descriptions}
    names = [name for name in table.columns if name not in not_variables]

    values_of_clip = table.numbers(names, clips)
    variables = _varying_columns(names, values_of_clip, data.clip_ids.tolist())
    has_no_clip = data.row_of.keys().isdisjoint(values_of_clip)
    if has_no_clip or not variables.names:
        missing = "no clip of the evaluation" if has_no_clip else "no column of numbers that vary"
        beside = f" beside {'; '.join(unperceived.values())}" if unperceived else ""
        raise DatasetError(
            f"{path}: it has {missing}{beside}: measure the clips by 'obygaze film variables --windows'"
        )

    # Columns that are not used, beside those of a medium that cannot convey the concept.
    named_elsewhere = {"clip_id", *variables.names, *unperceived}
    other_columns = [name for name in table.columns if name not in named_elsewhere]
    note = _note_on_variables(
        path.name,
        variables,
        clips=data.row_of.keys(),
        clips_of_table=values_of_clip.keys(),
        left_out=other_columns,
        unperceived=unperceived.values(),
    )
    return replace(data, variables=variables.values, variable_names=tuple(variables.names)), [note]


class _Columns(NamedTuple):
    """Columns of a table, with their values for the clips of a dataset.

    Attributes
    ----------
    names : list of str
        Names of the V columns.
    values : ndarray, shape [N, V]
        NaN where a clip has none.
    """

    names: list[str]
    values: NDArray[np.float64]


def _varying_columns(
    names: Sequence[str], values_of_clip: Mapping[str, Sequence[float]], clip_ids: Iterable[str]
) -> _Columns:
    """Arrange a table's values by clip, and leave out columns that have the same value in every clip.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    values_of_clip : mapping of str to sequence of float
        Clip id -> its value in each column; NaN in an empty cell.
    clip_ids : iterable of str
        The clips to arrange, of which some may have no values.
    """
    no_values = [np.nan] * len(names)
    values = np.array([values_of_clip.get(clip_id, no_values) for clip_id in clip_ids])  # [N, V]
    is_varying = [len(np.unique(column[np.isfinite(column)])) > 1 for column in values.T]
    varying_names = [name for name, varies in zip(names, is_varying, strict=True) if varies]
    return _Columns(varying_names, values[:, is_varying])


def _note_on_variables(
    file_name: str,
    variables: _Columns,
    *,
    clips: Collection[str],
    clips_of_table: Collection[str],
    left_out: Sequence[str],
    unperceived: Collection[str],
) -> str:
    """Write one sentence on a table of variables: what was used of it, then what was not, if anything.

    The sentence calls the variables staging, which most of them measure: how clips are filmed and cut, and
    how they sound.

    Parameters
    ----------
    file_name
        Name of the table's file.
    variables
        The columns that are used.
    clips, clips_of_table
        Ids of the clips of the dataset, and of the clips that have a row in the table.
    left_out
        Names of other columns.
    unperceived
        Names, with the reason, of columns measured in a medium that cannot convey the target's concept.
    """
    n_with_row = len(set(clips) & set(clips_of_table))
    n_without_row = len(set(clips) - set(clips_of_table))
    n_rows_of_others = len(set(clips_of_table) - set(clips))

    titles = _titles_of_columns(variables.names, variables.values, n_with_row)
    parts = [f"{file_name}: staging by {', '.join(titles)}"]
    if left_out:
        parts.append(f"left out {', '.join(left_out)}")
    if unperceived:
        parts.append(f"absent: {'; '.join(unperceived)}")
    if n_without_row:
        parts.append(f"{counted(n_without_row, 'clip')} of {len(clips):,} without a row")
    if n_rows_of_others:
        parts.append(f"{counted(n_rows_of_others, 'row')} of other clips")
    return "; ".join(parts)


def _titles_of_columns(names: Sequence[str], values: NDArray[np.float64], n_with_row: int) -> list[str]:
    """Name columns in a note, and how many clips have a value if fewer do than have a row in the table.

    `values` [N, V] are those of the columns, NaN where a clip has none. `n_with_row` clips have a row.
    """
    n_known_of_columns = np.isfinite(values).sum(axis=0).tolist()
    titles = []
    for name, n_known in zip(names, n_known_of_columns, strict=True):
        titles.append(name if n_known == n_with_row else f"{name} (of {counted(n_known, 'clip')})")
    return titles


def _unperceived_columns(
    columns: Iterable[str], target: "Target | None", codebook: Codebook
) -> dict[str, str]:
    """Find the columns that were measured in a medium that cannot convey the target's concept.

    Loudness, for example, cannot tell whether something is seen. Columns whose medium is unknown are not
    among those that are found.

    Returns
    -------
    dict of str to str
        Name of a column -> "NAME (REASON)", to be shown. It is empty if the target is no concept.
    """
    if target is None or not target.concept:
        return {}
    concept = codebook.concept(target.concept)
    unperceived = {}
    for name in columns:
        media = OF_VARIABLES.get(name, ())  # in which `film variables` measures the column
        reason = why_unperceived(concept, media)
        if reason:
            unperceived[name] = f"{name} ({reason})"
    return unperceived
