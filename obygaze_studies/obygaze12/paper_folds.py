"""Rebuild the folds of the `paper` protocol (Tores et al., CVPR 2024) from the released split files.

It reproduces published numbers, and it leaks: every split file drew its folds independently, so
a clip that one file tests may be trained on in another. `count_leaks` says how many.

All clips are named by id, in the order of the annotations; the training side of `classifier_folds` has one
class after the other, as the original code does. Clips without a video were in no fold, and are left out
before anything is counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.manifest import Clip, Manifest, Task
from obygaze_models.dataset import Dataset
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation import COLUMNS, Predictions
from obygaze_models.protocol import Fold
from obygaze_studies.errors import FoldsError
from obygaze_studies.obygaze12.corpus import TASKS

TEST_FOLD = 9
"""The released folds are 0 to 9; the last one is tested."""

VALIDATION_FOLDS = tuple(range(8))
"""Folds that the classifiers are validated on, one after the other."""

CONCEPT_VALIDATION_FOLDS = tuple(range(9))
"""Folds that the CAVs are validated on."""

ALWAYS_TRAINED = (3, 7)
"""Films of the movie set that are never tested or validated on, by their number."""

MOVIE_SET_TASKS = ("hn_s", "enhn_s")

CONCEPT_COLUMN = "fold_en_hn_s"
"""Folds of the CAVs, and of the heads that read their projections."""

CLEAN = "no test clip is in training or validation"
"""What `leak_caption` gives for folds without a leak."""

Rows = dict[str, NDArray[Any]]
"""The columns of some rows of the table of predictions; a thousand of them cost less than as many tables."""


class Negatives(StrEnum):
    """Negatives of a concept, whose positives are the S and HN clips with it.

    EN: the EN clips (Figure 3, solid bars).
    ALL: the EN clips, and the S and HN clips without the concept (Figure 3, hatched bars).
    HN_S: the S and HN clips without the concept alone (in the original code, not in the papers).
    """

    EN = "en"
    ALL = "all"
    HN_S = "hn_s"


@dataclass(frozen=True, slots=True)
class Leaks:
    """How many of a fold's test clips were seen before: in training, and in validation."""

    in_training: int
    in_validation: int
    n_test: int


def count_leaks(fold: Fold) -> Leaks:
    """Count the test clips of a fold that are on its other sides too."""
    test = set(fold.test)
    return Leaks(len(test & set(fold.train)), len(test & set(fold.validation)), len(fold.test))


def leak_caption(folds: Sequence[Fold]) -> str:
    """Report the share of the test sides seen in training and validation, for the caption of every table."""
    leaks = [count_leaks(fold) for fold in folds]
    if not any(leak.in_training or leak.in_validation for leak in leaks):
        return CLEAN
    trained = [leak.in_training for leak in leaks]
    validated = [leak.in_validation for leak in leaks]
    tested = sorted({leak.n_test for leak in leaks})
    return (
        f"LEAKS: {_span(trained)} of {_span(tested)} test clips are in training, "
        f"{_span(validated)} in validation"
    )


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def classifier_folds(manifest: Manifest, train: Task, test: Task) -> tuple[Fold, ...]:
    """Make the eight folds of a cell of Table 2.

    Fold k is validated on fold k of the training task's file, and tested on fold 9 of the test task's file.
    Of the other clips of the training file, each class keeps the folds that `drawn_folds` gives it.

    Raises
    ------
    ProtocolError
        The manifest has not the folds of the released split files.
    """
    from_train = _released(manifest, train, f"fold_{train.name}")
    from_test = _released(manifest, test, f"fold_{test.name}")
    tested = tuple(clip.clip_id for clip, fold in from_test if fold == TEST_FOLD)
    folds = []
    for validation in VALIDATION_FOLDS:
        held_out = (TEST_FOLD, validation)
        rest = [(clip, fold) for clip, fold in from_train if fold not in held_out]
        # The class seen first comes first.
        classes: dict[bool, list[tuple[Clip, int]]] = {}
        for clip, fold in rest:
            classes.setdefault(clip.level in train.positives, []).append((clip, fold))
        sizes = {label: len(clips) for label, clips in classes.items()}
        chosen = []
        for label, clips in classes.items():
            drawn = drawn_folds(sizes[label], min(sizes.values()), validation)
            chosen += [clip.clip_id for clip, fold in clips if fold in drawn]
        validated = tuple(clip.clip_id for clip, fold in from_train if fold == validation)
        folds.append(Fold(validation, tuple(chosen), validated, tested))
    return tuple(folds)


def drawn_folds(n_class: int, n_smallest: int, validation: int) -> tuple[int, ...]:
    """Draw the folds that a class keeps so that classes are about balanced.

    With m = n // 10 clips a fold, the class keeps round(8 m_smallest / m) consecutive folds out of the eight
    that the draw allows. Such stretches are laid end to end, round and round, and validation fold k gets the
    k-th of them. The original code numbers the validation fold from 1 here: the draw avoids fold k + 1, not
    k, and may give the folds k and 9, whose clips are held out already. So classes are less balanced than
    meant.

    Parameters
    ----------
    n_class, n_smallest : int
        Clips of the class, and of the smallest class, that are not held out.
    validation : int
        The validation fold k, from 0.
    """
    size, smallest = max(n_class // 10, 1), n_smallest // 10
    allowed = [fold for fold in range(1, 10) if fold != validation + 1]
    n_kept = round(len(allowed) * smallest / size)
    start = validation * n_kept
    return tuple(allowed[index % len(allowed)] for index in range(start, start + n_kept))


def movie_folds(manifest: Manifest, train: Task, test: Task) -> tuple[Fold, ...]:
    """Make the film pairs of Table 4: film i tested, film j validated on, all the others trained on.

    There are 90 pairs of ObyGaze12's 12 films, for films 3 and 7 are trained on in all of them. Training and
    validation clips are of the training task, test clips of the test task.

    Raises
    ------
    ProtocolError
        The manifest has not the folds of the released movie set, which has none for en_s.
    """
    for task in (train, test):
        if task.name not in MOVIE_SET_TASKS:
            raise ProtocolError(
                f"the movie set was released for {' and '.join(MOVIE_SET_TASKS)} only: it has no {task.name}"
            )
    from_train = _released(manifest, train, f"fold_movieset_{train.name}")
    from_test = _released(manifest, test, f"fold_movieset_{test.name}")
    movie_of = {fold: clip.movie for clip, fold in from_train + from_test}
    movies = [movie for movie in sorted(movie_of) if movie not in ALWAYS_TRAINED]
    folds = []
    for tested in movies:
        for validated in movies:
            if tested == validated:
                continue
            folds.append(
                Fold(
                    name=f"test {tested} {movie_of[tested]}, validation {validated} {movie_of[validated]}",
                    train=tuple(clip.clip_id for clip, fold in from_train if fold not in (tested, validated)),
                    validation=tuple(clip.clip_id for clip, fold in from_train if fold == validated),
                    test=tuple(clip.clip_id for clip, fold in from_test if fold == tested),
                )
            )
    return tuple(folds)


def concept_folds(manifest: Manifest, concept: str, negatives: Negatives) -> tuple[Fold, ...]:
    """Make the nine folds of a concept's CAV: fold 9 is tested, fold k validated on, all others trained on.

    Raises
    ------
    ProtocolError
        The manifest has not the folds of the released split file.
    """
    wanted = concept_labels(manifest, concept, negatives)
    used = [(clip, fold) for clip, fold in _with_folds(manifest, CONCEPT_COLUMN) if clip.clip_id in wanted]
    return tuple(
        Fold(
            name=validation,
            train=tuple(clip.clip_id for clip, fold in used if fold not in (TEST_FOLD, validation)),
            validation=tuple(clip.clip_id for clip, fold in used if fold == validation),
            test=tuple(clip.clip_id for clip, fold in used if fold == TEST_FOLD),
        )
        for validation in CONCEPT_VALIDATION_FOLDS
    )


def head_fold(manifest: Manifest, train: Task, test: Task) -> Fold:
    """Make the one fold of a PCBM's head: all folds but the last trained on, the last tested.

    None is validated on. Both sides are of one file and share no clip; but the CAVs that give the head its
    inputs were fitted on the head's training clips.

    Raises
    ------
    ProtocolError
        The manifest has not the folds of the released split file.
    """
    clips = _with_folds(manifest, CONCEPT_COLUMN)
    return Fold(
        name=TEST_FOLD,
        train=tuple(clip.clip_id for clip, fold in clips if clip.level in train.levels and fold != TEST_FOLD),
        validation=(),
        test=tuple(clip.clip_id for clip, fold in clips if clip.level in test.levels and fold == TEST_FOLD),
    )


def concept_labels(manifest: Manifest, concept: str, negatives: Negatives) -> Mapping[str, int]:
    """Assign 1 to each clip in which a concept's CAV must find it, 0 to each in which it must not.

    Other clips are left out: NS clips always. An EN clip is a negative or nothing, whatever was marked in it.
    """
    labels = {}
    for clip in manifest:
        if clip.level in ("HN", "S"):
            if concept in clip.concepts:
                labels[clip.clip_id] = 1
            elif negatives is not Negatives.EN:
                labels[clip.clip_id] = 0
        elif clip.level == "EN" and negatives is not Negatives.HN_S:
            labels[clip.clip_id] = 0
    return labels


def _released(manifest: Manifest, task: Task, column: str) -> list[tuple[Clip, int]]:
    """List the clips of a task's split file, refusing one whose level is not of the task."""
    clips = _with_folds(manifest, column)
    for clip, _ in clips:
        if clip.level not in task.levels:
            raise ProtocolError(
                f"clip {clip.clip_id} has a fold in column {column}, "
                f"whose levels are {', '.join(task.levels)}, but its level is {clip.level or 'empty'}: "
                "import the manifest from ObyGaze12's folder again"
            )
    return clips


def _with_folds(manifest: Manifest, column: str) -> list[tuple[Clip, int]]:
    """List the clips that have a fold in a column and a video, with that fold, in the manifest's order."""
    texts_of = [(clip, clip.extras.get(column, "")) for clip in manifest]
    texts = [(clip, text) for clip, text in texts_of if text and clip.video]
    if not texts:
        without_video = sum(bool(text) for _, text in texts_of)
        raise ProtocolError(
            f"all {without_video} clips with a fold in column {column} lack a video, and the paper protocol "
            "leaves such clips out; import the manifest from ObyGaze12's folder again"
            if without_video
            else f"the manifest has no folds in a column {column}, "
            "and the paper protocol's are those of the released split files: "
            "import it with `obygaze manifest import obygaze12 FOLDER`, where FOLDER holds "
            "balanced_level/ and movieset/; or use the strict protocol (--protocol strict)"
        )
    return [(clip, _fold_number(clip, column, text)) for clip, text in texts]


def _fold_number(clip: Clip, column: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ProtocolError(f"clip {clip.clip_id}: column {column} holds {text!r}, expected a fold's number")
    return int(text)


def without_video(manifest: Manifest, columns: Sequence[str]) -> int:
    """Count the clips left out for want of a video though one of the columns gives them a fold."""
    return sum(not clip.video and any(clip.extras.get(column, "") for column in columns) for clip in manifest)


def positive(data: Dataset) -> NDArray[np.int64]:
    """Assign 1 for S clips, 0 for the others [N]."""
    return TASKS["enhn_s"].labels(data.levels)


def labels_of_s(data: Dataset) -> dict[str, int]:
    """Return 1 for each S clip, 0 for the others, by clip id."""
    return dict(zip(data.clip_ids.tolist(), positive(data).tolist(), strict=True))


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
        kept = [clip_id for clip_id in clips if clip_id in data.row_of]
        if clips and not kept:
            lacks = "no clip"
        elif side == "training" and len({present[clip_id] for clip_id in kept}) < 2:
            lacks = "clips of one class only"
        else:
            continue
        raise FoldsError(
            f"the published folds need the features of more clips: {what}, fold {fold.name}, has {lacks} "
            f"on its {side} side ({len(kept)} of {len(clips)} clips have features); extract the others, "
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
    rank = {name: rank_of for rank_of, name in enumerate(dict.fromkeys(stacked["model"]))}
    order = np.lexsort((np.arange(len(stacked)), stacked["task"].to_numpy(str), stacked["model"].map(rank)))
    return Predictions(stacked.iloc[order].reset_index(drop=True))
