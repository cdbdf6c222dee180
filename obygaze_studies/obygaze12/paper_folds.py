"""Rebuild the folds of the `paper` protocol (Tores et al., CVPR 2024) from the released split files.

The protocol reproduces published numbers, and it leaks: the folds of every split file were drawn
independently, so that a test clip of one file may be a training clip of another. `count_leaks` counts them.

Folds name clips by their ids, in the order of the annotations; only the training side of `classifier_folds`
has one class after the other, as in the original code. Clips without a video were in none of the original
folds, and are left out first.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import permutations
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.manifest import LabelPolicy, Manifest, Task, apply_policy
from obygaze_features.options import Answer
from obygaze_features.screen import table
from obygaze_features.text import counted
from obygaze_models.dataset import Dataset
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation import COLUMNS, Predictions
from obygaze_models.models import ABOVE_ZERO
from obygaze_models.protocol import NOT_ASKED, Fold, Target, labels_in_sight_note, labels_of, strict_folds
from obygaze_studies.errors import FoldsError
from obygaze_studies.obygaze12.corpus import TASKS, refuse_other_codebook

N_FOLDS = 10
"""Number of released folds of a split file: 0 to 9."""

TEST_FOLD = 9
"""The last of the released folds is tested."""

VALIDATION_FOLDS = tuple(range(8))
"""Folds that the classifiers are validated on, one after the other."""

CONCEPT_VALIDATION_FOLDS = tuple(range(9))
"""Folds that the CAVs are validated on."""

ALWAYS_TRAINED = (3, 7)
"""Films of the movie set that are never tested or validated on, by their number."""

MOVIE_SET_TASKS = ("hn_s", "enhn_s")
"""Tasks for which the movie set was released."""

CONCEPT_COLUMN = "fold_en_hn_s"
"""Column of the folds that the CAVs, and the heads on their projections, are trained on."""

CAPTION_WITHOUT_LEAK = "no test clip is in training or validation"
"""The caption of folds without a leak."""

Rows = dict[str, NDArray[Any]]
"""Rows of the table of predictions: name of a column -> its values.

A thousand of these are made, and as data frames they would take much longer.
"""


class Negatives(StrEnum):
    """Which clips are the negatives of a concept; its positives are the S and HN clips with it.

    EN: the EN clips (Figure 3, solid bars).
    ALL: the EN clips, and the S and HN clips without the concept (Figure 3, hatched bars).
    HN_S: only the S and HN clips without the concept (in the original code, not in the papers).
    """

    EN = "en"
    ALL = "all"
    HN_S = "hn_s"


NEGATIVE_LEVELS: Mapping[Negatives, tuple[str, ...]] = {
    Negatives.EN: ("EN",),
    Negatives.ALL: (),
    Negatives.HN_S: ("HN", "S"),
}
"""The levels that the negatives are chosen from, sorted; empty for all levels, as in `concept_target`."""


class Leaks(NamedTuple):
    """How many test clips of a fold are in its training side, and how many in its validation side."""

    in_training: int
    in_validation: int


def count_leaks(fold: Fold, data: Dataset | None = None) -> Leaks:
    """Count the test clips of a fold that are also in its training or validation side.

    Parameters
    ----------
    fold
        The fold.
    data
        Features: test clips without any are not counted. By default all test clips are.
    """
    test = set(fold.test)
    if data is not None:
        test.intersection_update(data.row_of)  # ids of the clips with features
    return Leaks(
        in_training=len(test.intersection(fold.train)),
        in_validation=len(test.intersection(fold.validation)),
    )


def leak_caption(folds: Sequence[Fold], data: Dataset | None = None) -> str:
    """Write for the caption of a table how many test clips of its folds are seen in training and validation.

    Parameters
    ----------
    folds
        The folds of the table.
    data
        Features: test clips without any are not counted. By default all test clips are.
    """
    leaks = [count_leaks(fold, data) for fold in folds]
    n_in_training = [leak.in_training for leak in leaks]
    n_in_validation = [leak.in_validation for leak in leaks]
    if not any(n_in_training) and not any(n_in_validation):
        return CAPTION_WITHOUT_LEAK

    n_tested = []
    for fold in folds:
        tested_clips = fold.test if data is None else data.rows(fold.test)
        n_tested.append(len(tested_clips))

    return (
        f"LEAKS: {_format_range(n_in_training)} of {_format_range(n_tested)} test clips are in training, "
        f"{_format_range(n_in_validation)} in validation"
    )


def _format_range(counts: Sequence[int]) -> str:
    """Write the lowest and the highest of some counts, as "3 to 7", or "3" if they are equal."""
    low = min(counts)
    high = max(counts)
    if low == high:
        return str(low)
    return f"{low} to {high}"


def classifier_folds(manifest: Manifest, train: Task, test: Task) -> tuple[Fold, ...]:
    """Make the eight folds of a cell of Table 2: a task to train on and a task to test on.

    Fold k is validated on fold k of the training task's file, and tested on fold 9 of the test task's file.
    Its training side has the other clips of the training task's file, each class reduced to the folds that
    `draw_folds` draws for it, to make classes equally frequent.

    Raises
    ------
    ProtocolError
        The manifest does not have the folds of the released split files.
    """
    train_clips = _released_clips(manifest, train, f"fold_{train.name}")
    test_clips = _released_clips(manifest, test, f"fold_{test.name}")
    folds = []
    for validation in VALIDATION_FOLDS:
        fold = Fold(
            name=validation,
            train=_balanced_training_ids(train_clips, train, validation),
            validation=_ids_in_folds(train_clips, validation),
            test=_ids_in_folds(test_clips, TEST_FOLD),
        )
        folds.append(fold)
    return tuple(folds)


def _balanced_training_ids(clips: Sequence["ClipInFold"], task: Task, validation: int) -> tuple[str, ...]:
    """Choose the clips to train on, about equally many of each class; return their ids, class by class.

    Parameters
    ----------
    clips
        All clips of the task's split file.
    task
        The task, which says the levels of positive clips.
    validation
        The fold that is validated on. Its clips are left out, and so are those of the tested fold.
    """
    # Whether a clip is positive -> the clips of this class. The class of the first clip comes first.
    clips_of_class: dict[bool, list[ClipInFold]] = {}
    for clip in clips:
        if clip.fold not in (TEST_FOLD, validation):
            is_positive = clip.level in task.positives
            clips_of_class.setdefault(is_positive, []).append(clip)

    n_smallest = min(map(len, clips_of_class.values()), default=0)
    training_ids: tuple[str, ...] = ()
    for clips_of_one_class in clips_of_class.values():
        drawn_folds = draw_folds(len(clips_of_one_class), n_smallest, validation)
        training_ids += _ids_in_folds(clips_of_one_class, *drawn_folds)
    return training_ids


def draw_folds(n_class: int, n_smallest: int, validation: int) -> tuple[int, ...]:
    """Choose the folds whose clips of one class are trained on, so that classes have about equal numbers.

    The choice is that of the original code, mistake included. There are ten folds, and a class of n clips has
    about m = n // 10 clips in each. To be about as large as the smallest class, whose folds have m_smallest
    clips, it keeps round(8 m_smallest / m) of the eight folds that may be drawn. These are consecutive, and
    follow those that were drawn for validation fold k - 1; after the last fold comes the first again.

    The mistake: the original code numbers the validation fold from 1 here. So the draw avoids fold k + 1
    instead of k, and may draw fold k or fold 9, whose clips are held out. Their clips are not among the given
    n, so that classes become less balanced than intended.

    Parameters
    ----------
    n_class, n_smallest : int
        Clips of the class, and of the smallest class, that are not held out.
    validation : int
        The validation fold k, from 0.
    """
    clips_per_fold = max(n_class // N_FOLDS, 1)  # at least 1, since it divides below
    clips_per_fold_of_smallest = n_smallest // N_FOLDS
    avoided_fold = validation + 1  # the original's mistake: it means the validation fold
    allowed = [fold for fold in range(1, N_FOLDS) if fold != avoided_fold]

    n_kept = round(len(allowed) * clips_per_fold_of_smallest / clips_per_fold)
    start = validation * n_kept
    # After the last of the allowed folds comes the first again.
    return tuple(allowed[index % len(allowed)] for index in range(start, start + n_kept))


def movie_folds(manifest: Manifest, train: Task, test: Task) -> tuple[Fold, ...]:
    """Make the film pairs of Table 4: one film is tested, another validated on, all others are trained on.

    ObyGaze12's 12 films give 90 ordered pairs of 10 films, because films 3 and 7 are always trained on
    (`ALWAYS_TRAINED`). Training and validation clips are of the training task, test clips of the test task.

    Raises
    ------
    ProtocolError
        The manifest does not have the folds of the released movie set, or a task is not in this set, as en_s.
    """
    for task in (train, test):
        if task.name not in MOVIE_SET_TASKS:
            raise ProtocolError(
                f"the movie set was released for {' and '.join(MOVIE_SET_TASKS)} only: it has no {task.name}"
            )

    train_clips = _released_clips(manifest, train, f"fold_movieset_{train.name}")
    test_clips = _released_clips(manifest, test, f"fold_movieset_{test.name}")
    # A fold of the released movie set is a film. Below, folds are its numbers.
    movie_of_fold = {clip.fold: clip.movie for clip in train_clips + test_clips}
    held_out = [fold for fold in sorted(movie_of_fold) if fold not in ALWAYS_TRAINED]

    folds = []
    for tested, validated in permutations(held_out, 2):
        name = f"test {tested} {movie_of_fold[tested]}, validation {validated} {movie_of_fold[validated]}"
        fold = Fold(
            name=name,
            train=_ids_outside_folds(train_clips, tested, validated),
            validation=_ids_in_folds(train_clips, validated),
            test=_ids_in_folds(test_clips, tested),
        )
        folds.append(fold)
    return tuple(folds)


def concept_folds(manifest: Manifest, concept: str, negatives: Negatives) -> tuple[Fold, ...]:
    """Make the nine folds of a concept's CAV: fold 9 is tested, fold k validated on, all others trained on.

    Raises
    ------
    ProtocolError
        The manifest does not have the folds of the released split file.
    """
    labels = concept_labels(manifest, concept, negatives)
    # The column with the folds of the released split file of concepts.
    clips_of_file = _clips_with_fold(manifest, CONCEPT_COLUMN)
    clips = [clip for clip in clips_of_file if clip.clip_id in labels]
    folds = []
    for validation in CONCEPT_VALIDATION_FOLDS:
        fold = Fold(
            name=validation,
            train=_ids_outside_folds(clips, TEST_FOLD, validation),
            validation=_ids_in_folds(clips, validation),
            test=_ids_in_folds(clips, TEST_FOLD),
        )
        folds.append(fold)
    return tuple(folds)


def head_fold(manifest: Manifest, train: Task, test: Task) -> Fold:
    """Make the only fold of a PCBM's head: it is tested on the last fold and trained on all others.

    A head decides by concept values, as the last part of a concept bottleneck (PCBM). The fold has no
    validation side. Both sides come from one file and share no clip. But the head's inputs are distances from
    CAVs, and these CAVs are fitted on the same training clips.

    Raises
    ------
    ProtocolError
        The manifest does not have the folds of the released split file.
    """
    clips = _clips_with_fold(manifest, CONCEPT_COLUMN)
    train_clips = [clip for clip in clips if clip.level in train.levels]
    test_clips = [clip for clip in clips if clip.level in test.levels]
    return Fold(
        name=TEST_FOLD,
        train=_ids_outside_folds(train_clips, TEST_FOLD),
        validation=(),
        test=_ids_in_folds(test_clips, TEST_FOLD),
    )


def concept_labels(manifest: Manifest, concept: str, negatives: Negatives) -> Mapping[str, int]:
    """Label the clips that a concept's CAV is trained and tested on: clip id -> 1 if positive, 0 if negative.

    Positives are the S and HN clips with the concept. An EN clip is never a positive, even if the concept was
    marked in it. `negatives` says from which levels the negatives are; all other clips, among them all NS
    clips, are left out.
    """
    negative_levels = NEGATIVE_LEVELS[negatives]
    if negatives is Negatives.ALL:
        # The table has no levels here, which stands for all. NS clips are in no task of the papers.
        negative_levels = ("EN", "HN", "S")
    labels = {}
    for clip in manifest:
        is_positive = clip.level in ("HN", "S") and concept in clip.concepts
        if is_positive:
            labels[clip.clip_id] = 1
        elif clip.level in negative_levels:
            labels[clip.clip_id] = 0
    return labels


class ClipInFold(NamedTuple):
    """A clip with its fold in a split file."""

    clip_id: str
    movie: str
    level: str | None
    fold: int


def _released_clips(manifest: Manifest, task: Task, column: str) -> list[ClipInFold]:
    """List the clips of a task's split file.

    Importing ObyGaze12 wrote the fold that a clip has in this file to a column of the manifest, `column`.

    Raises
    ------
    ProtocolError
        The manifest does not have the folds of the file, or a clip has a level that the task does not have.
    """
    clips = _clips_with_fold(manifest, column)
    for clip in clips:
        if clip.level not in task.levels:
            raise ProtocolError(
                f"clip {clip.clip_id} has a fold in column {column}, "
                f"whose levels are {', '.join(task.levels)}, but its level is {clip.level or 'empty'}: "
                "import the manifest from ObyGaze12's folder again"
            )
    return clips


def _clips_with_fold(manifest: Manifest, column: str) -> list[ClipInFold]:
    """List the clips that have a video and a fold in a column, in the manifest's order.

    Columns hold the folds of the released split files, one file a column. Clips without a video were in none
    of the original folds.

    Raises
    ------
    ProtocolError
        There is no such clip, or a cell of the column is not the number of a fold.
    """
    clips: list[ClipInFold] = []
    for clip in manifest:
        text = clip.extras.get(column)
        if not text or not clip.video:
            continue
        if not (text.isascii() and text.isdigit()):
            problem = f"column {column} holds {text!r}, expected a fold's number"
            raise ProtocolError(f"clip {clip.clip_id}: {problem}")
        clips.append(ClipInFold(clip.clip_id, clip.movie, clip.level, int(text)))
    if not clips:
        raise _error_without_folds(manifest, column)
    return clips


def _error_without_folds(manifest: Manifest, column: str) -> ProtocolError:
    """Make the error for a manifest without a clip that has a video and a fold in a column.

    Either the clips with a fold lack a video, or none has a fold; the message says how to mend it.
    """
    n_without_video = count_without_video(manifest, [column])
    if n_without_video:
        return ProtocolError(
            f"all {counted(n_without_video, 'clip')} with a fold in column {column} lack a "
            "video, and the paper "
            "protocol leaves such clips out; import the manifest from ObyGaze12's folder again"
        )
    return ProtocolError(
        f"the manifest has no folds in a column {column}, "
        "and the paper protocol's are those of the released split files: "
        "import it with `obygaze manifest import obygaze12 FOLDER`, where FOLDER holds "
        "balanced_level/ and movieset/; or use the strict protocol (--protocol strict)"
    )


def _ids_in_folds(clips: Sequence[ClipInFold], *folds: int) -> tuple[str, ...]:
    """Return the ids of the clips of some folds."""
    return tuple(clip.clip_id for clip in clips if clip.fold in folds)


def _ids_outside_folds(clips: Sequence[ClipInFold], *folds: int) -> tuple[str, ...]:
    """Return the ids of the clips of all folds except some."""
    return tuple(clip.clip_id for clip in clips if clip.fold not in folds)


def count_without_video(manifest: Manifest, columns: Sequence[str]) -> int:
    """Count the clips that have a fold in one of the columns but are left out because they have no video."""
    n_clips = 0
    for clip in manifest:
        is_in_a_fold = any(clip.extras.get(column, "") for column in columns)
        if is_in_a_fold and not clip.video:
            n_clips += 1
    return n_clips


def s_labels(data: Dataset) -> NDArray[np.int64]:
    """Label the clips: 1 for S clips, 0 for the others [N].

    The labels are those of every task of the papers, since S is the positive level of all of them.
    """
    return TASKS["enhn_s"].labels(data.levels)


def s_label_of_clip(data: Dataset) -> dict[str, int]:
    """Label the clips by id: 1 for S clips, 0 for the others."""
    return dict(zip(data.clip_ids.tolist(), s_labels(data).tolist(), strict=True))


def check_sides(data: Dataset, fold: Fold, label_of_clip: Mapping[str, int], subject: str) -> None:
    """Check that enough clips of a fold have features to train, validate and test on.

    Parameters
    ----------
    data
        The features.
    fold
        The fold.
    label_of_clip
        Clip id -> its label, 0 or 1.
    subject
        What the fold is used for, for the message.

    Raises
    ------
    FoldsError
        A side has no clip with features, or the training side has one class only.
    """
    where = f"{subject}, fold {fold.name}"
    for side, clips in (("training", fold.train), ("validation", fold.validation), ("test", fold.test)):
        clips_with_features = [clip_id for clip_id in clips if clip_id in data.row_of]
        # A side may be empty by design, such as the validation side of a bottleneck's head.
        if clips and not clips_with_features:
            raise _error_of_side(where, side, "no clip", clips, clips_with_features)
        if side == "training":
            labels = {label_of_clip[clip_id] for clip_id in clips_with_features}
            if len(labels) < 2:
                raise _error_of_side(where, side, "clips of one class only", clips, clips_with_features)


def _error_of_side(
    location: str, side: str, problem: str, clips: Sequence[str], clips_with_features: Sequence[str]
) -> FoldsError:
    """Make the error for a side of a fold of which too few clips have features.

    Parameters
    ----------
    location
        What the fold is used for, and its name.
    side
        The side: training, validation or test.
    problem
        What the side has.
    clips, clips_with_features
        All its clips, and those with features.
    """
    return FoldsError(
        f"the published folds need the features of more clips: {location}, has {problem} on its {side} side "
        f"({len(clips_with_features)} of {counted(len(clips), 'clip')} have features); "
        "extract the others, or use the strict protocol (--protocol strict)"
    )


def prediction_rows(
    data: Dataset, rows: NDArray[np.intp], score: NDArray[np.floating], **columns: Any
) -> Rows:
    """Make the rows of the table of predictions for one model that is tested on some clips.

    Columns that are not given have the defaults of the published evaluations: labels of S against other
    levels, and a call of positive above a score of 0.

    Parameters
    ----------
    data
        The features.
    rows : ndarray of int, shape [n]
        Rows of the tested clips in `data`.
    score : ndarray, shape [n]
        Their scores.
    columns
        Further columns, at least `model` and `task`: one value for all rows, or one for each. They replace
        defaults of the same name.

    Returns
    -------
    Column -> values, [n] each.
    """
    all_columns: dict[str, Any] = {
        "fold": 0,
        "seed": 0,
        "clip_id": data.clip_ids[rows],
        "movie": data.movies[rows],
        "label": s_labels(data)[rows],
        "score": score.astype(np.float64),
        "threshold": ABOVE_ZERO,  # a score of 0 is called negative, any above it positive
        "store": data.store,
    }
    all_columns |= columns
    return {name: np.broadcast_to(all_columns[name], len(rows)) for name in COLUMNS}


def stack_predictions(blocks: list[Rows]) -> Predictions:
    """Stack rows of predictions into one table, sorted by model, in order of first appearance, and task.

    Rows of the same model and task stay in order.
    """
    columns = {}
    for name in COLUMNS:
        columns[name] = np.concatenate([block[name] for block in blocks])
    stacked = pd.DataFrame(columns)
    rank_of_model = {name: rank for rank, name in enumerate(stacked["model"].unique())}
    ranks = stacked["model"].map(rank_of_model)
    # lexsort sorts by its last key first, here the model, and keeps the order of equal rows.
    order = np.lexsort((stacked["task"].to_numpy(str), ranks))
    return Predictions(stacked.iloc[order].reset_index(drop=True))


# --- lists of folds
# ---------------------------------------------------------------------------
def list_folds(
    clips: Manifest,
    trained: Target,
    tested: Target,
    protocol: Literal["strict", "paper"],
    *,
    policy: LabelPolicy,
    movies: bool = False,
) -> Answer:
    """List the folds in which models are trained on one target and tested on another.

    Parameters
    ----------
    clips
        The manifest.
    trained, tested
        The target that models are trained on, and the one that they are tested on.
    protocol
        "strict" leaves out one movie at a time; "paper" has the folds of the released split files.
    policy
        Label policy of the strict protocol; the paper protocol has the labels of the split files.
    movies
        Under "paper", whether there is a fold for each pair of movies.

    Raises
    ------
    ProtocolError
        The paper protocol has no such folds, or the manifest does not have them.
    """
    if protocol == "paper":
        listing = _paper_listing(clips, trained, tested, movies=movies)
    else:
        listing = _strict_listing(apply_policy(clips, policy), trained, tested)
    by_movie = movies or protocol == "strict"
    records = [_fold_record(fold, listing.labelled, by_movie=by_movie) for fold in listing.folds]

    document = {
        "protocol": protocol,
        "policy": str(policy),
        "manifest_sha256": clips.digest(),
        "codebook": {"name": clips.codebook.name, "digest": clips.codebook.digest()},
        "task": trained.name,
        "test": tested.name,
        "notes": listing.notes,
        "folds": records,
        "labels": _labels_in_folds(listing, trained, tested),
    }

    rows = []
    for record in records:
        # A strict fold is named by the movie that it tests; released folds have names of their own.
        name = record["fold"]
        if protocol == "strict":
            name = f"{name} {record['test_movie']}"
        n_clips = [len(record[side]) for side in ("train", "validation", "test")]
        leaks = record["leaks"]  # a test clip leaks if it is in training or validation too
        rows.append([name, *n_clips, leaks["test_in_training"], leaks["test_in_validation"]])
    headers = ["fold", "train", "validation", "test", "test clips\nin training", "test clips\nin validation"]
    fold_table = table(rows, headers, right=range(1, 6))

    tasks = f"task {trained.name}, test {tested.name}"
    settings = f"protocol {protocol}, label policy {policy}"
    return Answer(document, "\n".join([fold_table, "", tasks, settings, *listing.notes]))


class _Listing(NamedTuple):
    """Folds to list.

    Attributes
    ----------
    labelled
        The manifest with the labels of the protocol.
    folds
        The folds.
    notes
        Notes on leaks and on clips without a video.
    """

    labelled: Manifest
    folds: Sequence[Fold]
    notes: list[str]


def _paper_listing(clips: Manifest, trained: Target, tested: Target, *, movies: bool) -> _Listing:
    """Make the folds of the paper protocol, with its notes; the parameters are those of `list_folds`."""
    published = published_folds(clips, trained, tested, movies=movies)
    n_without_video = count_without_video(clips, published.columns)
    notes = [
        f"paper: {leak_caption(published.folds)}",
        f"left out, having no video: {counted(n_without_video, 'clip')} of the split files",
    ]
    return _Listing(clips, published.folds, notes)


def _strict_listing(labelled: Manifest, trained: Target, tested: Target) -> _Listing:
    """Make the folds of the strict protocol from labelled clips, with its notes."""
    folds = strict_folds(labelled, trained, tested)
    clip_ids = _clips_of_folds(folds)
    n_without_video = sum(not labelled.by_id[clip_id].video for clip_id in clip_ids)
    without_video = f"{n_without_video} of {counted(len(clip_ids), 'clip')} have no video known"
    notes = [
        "strict: no clip and no movie is on two sides of a fold; validation is an inner loop",
        f"{without_video}; runs exclude clips without features",
        *_note_on_clips_in_sight(labelled, trained, tested),
    ]
    return _Listing(labelled, folds, notes)


def _note_on_clips_in_sight(labelled: Manifest, trained: Target, tested: Target) -> list[str]:
    """Write how many clips are not tested, as their annotators saw a model's score; nothing if none are."""
    labels = labels_of(labelled)
    if labels.seen_score is None:
        return []
    is_in_test_target = tested.of(labels) != NOT_ASKED
    n_clips = int((is_in_test_target & labels.seen_score).sum())
    return labels_in_sight_note(n_clips, trained.levels, tested.levels)


def _labels_in_folds(listing: _Listing, trained: Target, tested: Target) -> dict[str, int]:
    """Return the labels of the clips that are in a fold: clip id -> 1 for positive, 0 for negative."""
    labels = labels_of(listing.labelled)
    # Each target gives clips the codes 1, 0, or -1 for clips that it does not have. The larger of the two
    # codes is therefore the label, also of clips that one of the targets does not have.
    codes = np.maximum(trained.of(labels), tested.of(labels)).tolist()
    code_of_clip = zip(labels.clip_ids.tolist(), codes, strict=True)
    clips_in_folds = _clips_of_folds(listing.folds)
    return {clip_id: code for clip_id, code in code_of_clip if clip_id in clips_in_folds}


def _clips_of_folds(folds: Sequence[Fold]) -> set[str]:
    """Return the ids of all clips that are on a side of a fold."""
    clip_ids: set[str] = set()
    for fold in folds:
        clip_ids.update(fold.train, fold.validation, fold.test)
    return clip_ids


def _fold_record(fold: Fold, manifest: Manifest, *, by_movie: bool) -> dict[str, Any]:
    """Return a fold as JSON values: the clips of its sides, its leaks and, by movie, the films held out.

    Parameters
    ----------
    by_movie
        Whether the validation side and the test side consist of one film each.
    """
    record: dict[str, Any] = {"fold": fold.name}
    sides = {"train": fold.train, "validation": fold.validation, "test": fold.test}
    if by_movie:
        for side in ("validation", "test"):
            clip_ids = sides[side]
            if clip_ids:
                # All clips of the side are of the same film.
                record[f"{side}_movie"] = manifest.by_id[clip_ids[0]].movie
    leaks = count_leaks(fold)
    leak_record = {"test_in_training": leaks.in_training, "test_in_validation": leaks.in_validation}
    return {**record, **sides, "leaks": leak_record}


class PublishedFolds(NamedTuple):
    """Folds of the released split files, and the columns of the manifest that hold them."""

    folds: tuple[Fold, ...]
    columns: Sequence[str]


def published_folds(
    manifest: Manifest, trained: Target, tested: Target, *, movies: bool = False
) -> PublishedFolds:
    """Make the paper's folds for models trained on one target and tested on another.

    There are three kinds: for a concept, the folds of its CAV (Figure 3); for tasks of levels, the folds of
    Table 2, or with `movies` those of Table 4, in which a model is trained on a pair of films. With the folds
    the result names the columns of the published annotations that they come from.

    Parameters
    ----------
    trained, tested
        The two targets. If one is a concept, it must be both.
    movies
        Whether there is a fold for each pair of movies.

    Raises
    ------
    ProtocolError
        The paper has no such folds, or the manifest does not have them.
    """
    refuse_other_codebook(manifest.codebook, "the paper protocol")
    if trained.kind == "concept":
        if movies:
            raise ProtocolError("--movies pairs films to train on a task of levels, not on a concept")
        negatives = _negatives_of(trained.against)
        if negatives is None or tested != trained:
            raise ProtocolError(
                "the paper protocol tells a concept's clips from EN (--against EN), "
                "from HN and S, or from all of them"
            )
        return PublishedFolds(concept_folds(manifest, trained.concept, negatives), [CONCEPT_COLUMN])

    for target in (trained, tested):
        if target.name not in TASKS:
            raise ProtocolError(f"the paper protocol has the tasks {', '.join(TASKS)}, and no {target.name}")
    train_task = TASKS[trained.name]
    test_task = TASKS[tested.name]

    if movies:
        columns = [f"fold_movieset_{task.name}" for task in (train_task, test_task)]
        return PublishedFolds(movie_folds(manifest, train_task, test_task), columns)
    columns = [f"fold_{task.name}" for task in (train_task, test_task)]
    return PublishedFolds(classifier_folds(manifest, train_task, test_task), columns)


def _negatives_of(levels: Sequence[str]) -> Negatives | None:
    """Return the papers' choice of a concept's negatives that takes them from these levels.

    No levels stand for all of them. None is returned if the papers have no such choice.
    """
    for choice, levels_of_choice in NEGATIVE_LEVELS.items():
        if set(levels_of_choice) == set(levels):
            return choice
    return None
