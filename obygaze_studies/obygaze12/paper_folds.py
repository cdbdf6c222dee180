"""Rebuild the folds of the `paper` protocol (Tores et al., CVPR 2024) from the released split files.

It reproduces published numbers, and it leaks: every split file drew its folds independently, so
a clip that one file tests may be trained on in another. `count_leaks` says how many.

All clips are named by id, in the order of the annotations; the training side of `classifier_folds` has one
class after the other, as the original code does. Clips without a video were in no fold, and are left out
before anything is counted.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import permutations
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.manifest import Clip, LabelPolicy, Manifest, Task, apply_policy
from obygaze_features.options import Answer
from obygaze_features.screen import table
from obygaze_models.dataset import Dataset
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation import COLUMNS, Predictions
from obygaze_models.models import ABOVE_ZERO
from obygaze_models.protocol import Fold, Target, labels_of, strict_folds
from obygaze_studies.errors import FoldsError
from obygaze_studies.obygaze12.corpus import TASKS, refuse_other_codebook

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


LEVELS: Mapping[Negatives, tuple[str, ...]] = {
    Negatives.EN: ("EN",),
    Negatives.ALL: (),
    Negatives.HN_S: ("HN", "S"),
}
"""Levels of the clips without a concept, sorted; empty for all of them."""


def count_leaks(fold: Fold, data: Dataset | None = None) -> tuple[int, int]:
    """Count the test clips of a fold, of those in some data, that are in its training and validation."""
    test = {name for name in fold.test if data is None or name in data.row_of}
    return len(test & set(fold.train)), len(test & set(fold.validation))


def leak_caption(folds: Sequence[Fold], data: Dataset | None = None) -> str:
    """Report the share of the test sides seen in training and validation, for the caption of every table."""
    leaks = [count_leaks(fold, data) for fold in folds]
    if not any(map(any, leaks)):
        return CLEAN
    trained, validated = zip(*leaks, strict=True)
    tested = [len(fold.test if data is None else data.rows(fold.test)) for fold in folds]
    return (
        f"LEAKS: {_span(trained)} of {_span(tested)} test clips are in training, "
        f"{_span(validated)} in validation"
    )


def _span(counts: Sequence[int]) -> str:
    low = min(counts)
    high = max(counts)
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
    folds = []
    for validation in VALIDATION_FOLDS:
        # The class seen first comes first.
        classes: dict[bool, list[tuple[Clip, int]]] = {}
        for clip, fold in from_train:
            if fold not in (TEST_FOLD, validation):
                classes.setdefault(clip.level in train.positives, []).append((clip, fold))
        smallest = min(map(len, classes.values()), default=0)
        chosen: tuple[str, ...] = ()
        for clips in classes.values():
            chosen += _ids(clips, *drawn_folds(len(clips), smallest, validation))
        folds.append(Fold(validation, chosen, _ids(from_train, validation), _ids(from_test, TEST_FOLD)))
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
    size = max(n_class // 10, 1)
    smallest = n_smallest // 10
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
    return tuple(
        Fold(
            name=f"test {tested} {movie_of[tested]}, validation {validated} {movie_of[validated]}",
            train=_all_but(from_train, tested, validated),
            validation=_ids(from_train, validated),
            test=_ids(from_test, tested),
        )
        for tested, validated in permutations(movies, 2)
    )


def concept_folds(manifest: Manifest, concept: str, negatives: Negatives) -> tuple[Fold, ...]:
    """Make the nine folds of a concept's CAV: fold 9 is tested, fold k validated on, all others trained on.

    Raises
    ------
    ProtocolError
        The manifest has not the folds of the released split file.
    """
    labels = concept_labels(manifest, concept, negatives)
    used = [(clip, fold) for clip, fold in _with_folds(manifest, CONCEPT_COLUMN) if clip.clip_id in labels]
    return tuple(
        Fold(validation, _all_but(used, TEST_FOLD, validation), _ids(used, validation), _ids(used, TEST_FOLD))
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
    trained = [pair for pair in clips if pair[0].level in train.levels]
    tested = [pair for pair in clips if pair[0].level in test.levels]
    return Fold(TEST_FOLD, _all_but(trained, TEST_FOLD), (), _ids(tested, TEST_FOLD))


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
    texts = [(clip, clip.extras[column]) for clip in manifest if clip.extras.get(column) and clip.video]
    if not texts:
        lacking = without_video(manifest, [column])
        raise ProtocolError(
            f"all {lacking} clips with a fold in column {column} lack a video, and the paper protocol "
            "leaves such clips out; import the manifest from ObyGaze12's folder again"
            if lacking
            else f"the manifest has no folds in a column {column}, "
            "and the paper protocol's are those of the released split files: "
            "import it with `obygaze manifest import obygaze12 FOLDER`, where FOLDER holds "
            "balanced_level/ and movieset/; or use the strict protocol (--protocol strict)"
        )
    for clip, text in texts:
        if not (text.isascii() and text.isdigit()):
            problem = f"column {column} holds {text!r}, expected a fold's number"
            raise ProtocolError(f"clip {clip.clip_id}: {problem}")
    return [(clip, int(text)) for clip, text in texts]


def _ids(clips: Sequence[tuple[Clip, int]], *folds: int) -> tuple[str, ...]:
    """Return the clips of some folds."""
    return tuple(clip.clip_id for clip, fold in clips if fold in folds)


def _all_but(clips: Sequence[tuple[Clip, int]], *folds: int) -> tuple[str, ...]:
    """Return the clips of all other folds."""
    return tuple(clip.clip_id for clip, fold in clips if fold not in folds)


def without_video(manifest: Manifest, columns: Sequence[str]) -> int:
    """Count the clips left out for want of a video though one of the columns gives them a fold."""

    def is_in_a_fold(clip: Clip) -> bool:
        return any(clip.extras.get(column, "") for column in columns)

    return sum(not clip.video and is_in_a_fold(clip) for clip in manifest)


def positive(data: Dataset) -> NDArray[np.int64]:
    """Assign 1 for S clips, 0 for the others [N]."""
    return TASKS["enhn_s"].labels(data.levels)


def labels_of_s(data: Dataset) -> dict[str, int]:
    """Return 1 for each S clip, 0 for the others, by clip id."""
    return dict(zip(data.clip_ids.tolist(), positive(data).tolist(), strict=True))


def check_sides(data: Dataset, fold: Fold, present: Mapping[str, int], subject: str) -> None:
    """Refuse a fold of which too few clips have features to train, to validate or to test.

    Parameters
    ----------
    present
        Clip id -> its label, 0 or 1.
    subject
        What the fold is of, for the message.

    Raises
    ------
    FoldsError
        A side has no clip with features, or the training side has one class only.
    """
    sides = {"training": fold.train, "validation": fold.validation, "test": fold.test}
    for side, clips in sides.items():
        clips_there = [clip_id for clip_id in clips if clip_id in data.row_of]
        if clips and not clips_there:
            lacks = "no clip"
        elif side == "training" and len({present[clip_id] for clip_id in clips_there}) < 2:
            lacks = "clips of one class only"
        else:
            continue
        raise FoldsError(
            f"the published folds need the features of more clips: {subject}, fold {fold.name}, has {lacks} "
            f"on its {side} side ({len(clips_there)} of {len(clips)} clips have features); extract the "
            "others, or use the strict protocol (--protocol strict)"
        )


def predicted(data: Dataset, rows: NDArray[np.intp], score: NDArray[np.floating], **about: Any) -> Rows:
    """Make the rows of one model tested on some clips; `about`: further columns, at least model and task."""
    columns: dict[str, Any] = {
        "fold": 0,
        "seed": 0,
        "clip_id": data.clip_ids[rows],
        "movie": data.movies[rows],
        "label": positive(data)[rows],
        "score": score.astype(np.float64),
        "threshold": ABOVE_ZERO,
        "store": data.store,
    } | about
    return {name: np.broadcast_to(columns[name], len(rows)) for name in COLUMNS}


def gather(blocks: list[Rows]) -> Predictions:
    """Stack blocks into one table, model by model and task by task, folds in the order given."""
    columns = {}
    for name in COLUMNS:
        columns[name] = np.concatenate([block[name] for block in blocks])
    stacked = pd.DataFrame(columns)
    rank = {name: rank_of for rank_of, name in enumerate(stacked["model"].unique())}
    order = np.lexsort((np.arange(len(stacked)), stacked["task"].to_numpy(str), stacked["model"].map(rank)))
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
    """List the folds in which models learn one target and are asked another.

    Under strict one movie is left out at a time; under paper they are those of the released split files, with
    the labels of those, and with `movies` there is one for each pair of movies.

    Raises
    ------
    ProtocolError
        The paper protocol has no such folds, or the manifest does not have them.
    """
    if protocol == "paper":
        labelled = clips
        published = published_folds(clips, trained, tested, movies=movies)
        folds = published.folds
        videoless = without_video(clips, published.columns)
        notes = [
            f"paper: {leak_caption(folds)}",
            f"{videoless} clips of the split files are left out, having no video",
        ]
    else:
        labelled = apply_policy(clips, policy)
        folds = strict_folds(labelled, trained, tested)
        notes = ["strict: no clip and no movie is on two sides of a fold; validation is an inner loop"]
    used = {clip_id for fold in folds for clip_id in fold.train + fold.validation + fold.test}
    if protocol == "strict":
        videoless = sum(not labelled.by_id[clip_id].video for clip_id in used)
        notes.append(
            f"{videoless} of {len(used)} clips have no video known; runs exclude clips without features"
        )
    labels = labels_of(labelled)
    codes = np.maximum(trained.of(labels), tested.of(labels)).tolist()
    code_of_clip = dict(zip(labels.clip_ids.tolist(), codes, strict=True))
    by_movie = movies or protocol == "strict"
    records = [_fold_record(fold, labelled, by_movie=by_movie) for fold in folds]
    document = {
        "protocol": protocol,
        "policy": str(policy),
        "manifest_sha256": clips.digest(),
        "codebook": {"name": clips.codebook.name, "digest": clips.codebook.digest()},
        "task": trained.name,
        "test": tested.name,
        "notes": notes,
        "folds": records,
        "labels": {clip_id: code for clip_id, code in code_of_clip.items() if clip_id in used},
    }
    rows = [_fold_row(record, protocol) for record in records]
    headers = ["fold", "train", "validation", "test", "test clips\nin training", "test clips\nin validation"]
    shown = table(rows, headers, right=range(1, 6))
    about = f"task {trained.name}, test {tested.name}\nprotocol {protocol}, label policy {policy}"
    return Answer(document, "\n".join([shown, "", about, *notes]))


def _fold_record(fold: Fold, manifest: Manifest, *, by_movie: bool) -> dict[str, Any]:
    """Return the clips of a fold's sides and its leaks, and where sides are films, those held out."""
    record: dict[str, Any] = {"fold": fold.name}
    sides = {"train": fold.train, "validation": fold.validation, "test": fold.test}
    if by_movie:
        for side in ("validation", "test"):
            if sides[side]:
                record[f"{side}_movie"] = manifest.by_id[sides[side][0]].movie
    in_training, in_validation = count_leaks(fold)
    leaks = {"test_in_training": in_training, "test_in_validation": in_validation}
    return {**record, **sides, "leaks": leaks}


def _fold_row(record: Mapping[str, Any], protocol: str) -> list[Any]:
    """Return a row of the printed table: the fold's name, the sizes of its sides, its leaks."""
    name = record["fold"] if protocol == "paper" else f"{record['fold']} {record['test_movie']}"
    sizes = [len(record[side]) for side in ("train", "validation", "test")]
    return [name, *sizes, *record["leaks"].values()]


class PublishedFolds(NamedTuple):
    """Folds of the released split files, and the columns of the manifest that they are in."""

    folds: tuple[Fold, ...]
    columns: Sequence[str]


def published_folds(
    manifest: Manifest, trained: Target, tested: Target, *, movies: bool = False
) -> PublishedFolds:
    """Make the paper's folds; with `movies` one for each pair of movies.

    Raises
    ------
    ProtocolError
        The paper has no such folds, or the manifest does not have them.
    """
    refuse_other_codebook(manifest.codebook, "the paper protocol")
    if trained.kind == "concept":
        if movies:
            raise ProtocolError("--movies pairs films to train on a task of levels, not on a concept")
        against = tuple(sorted(trained.against))
        negatives = next((choice for choice, levels in LEVELS.items() if levels == against), None)
        if negatives is None or tested != trained:
            raise ProtocolError(
                "the paper protocol tells a concept's clips from EN (--against EN), "
                "from HN and S, or from all of them"
            )
        return PublishedFolds(concept_folds(manifest, trained.concept, negatives), [CONCEPT_COLUMN])
    for target in (trained, tested):
        if target.name not in TASKS:
            raise ProtocolError(f"the paper protocol has the tasks {', '.join(TASKS)}, and no {target.name}")
    tasks = (TASKS[trained.name], TASKS[tested.name])
    if movies:
        return PublishedFolds(movie_folds(manifest, *tasks), [f"fold_movieset_{task.name}" for task in tasks])
    return PublishedFolds(classifier_folds(manifest, *tasks), [f"fold_{task.name}" for task in tasks])
