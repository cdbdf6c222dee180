"""Keep folds in one table by clip; a task filters it, so that all tasks agree on a clip's side.

Strict folds leave whole movies out. The others (`scene_blocks`) divide movies into blocks of scenes, so that
every movie is on both sides of every fold: what a model knows of a movie helps it on the movie's other clips,
and these folds show how much. Neighbouring clips look alike. Blocks are therefore contiguous, and the `GAP`
clips on either side of a tested block are neither trained on nor tested.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked, made_by
from obygaze_features.manifest import Manifest
from obygaze_models.errors import ProtocolError
from obygaze_models.protocol.targets import NOT_ASKED, Target, labels_of, without_seen_scores

MAX_SINGLE_MOVIE_FOLDS = 500
"""Most movies that are a fold each; with more, movies are grouped, as work grows with clips times folds."""

N_GROUPED_FOLDS = 20
"""Number of folds of whole movies, if there are more movies than `MAX_SINGLE_MOVIE_FOLDS`."""

NEVER_TESTED = -1
"""The fold of a clip that no fold tests, in a `FoldTable`."""

N_BLOCKS = 5
"""Blocks of scenes that each movie is divided into."""

GAP = 4
"""Clips before and after a tested block that are not trained on, as their labels resemble those of the block.

Labels of ObyGaze12 correlate .48 with those of the next clip, .27 at distance 2, .17 at 3 and .07 at 5."""


@made_by("leave_one_movie_out(CLIP_IDS, MOVIES)")
@dataclass(frozen=True, eq=False)
class FoldTable:
    """The fold in which each clip is tested.

    Attributes
    ----------
    clip_ids : tuple of str
        Each clip once.
    movies : tuple of str
        The movie of each clip.
    folds : ndarray of int64, shape [N]
        The fold that tests the clip; -1 for a clip that is never tested.
    by_movie : bool
        Whether a fold never trains on clips of a movie that it tests. Otherwise folds test blocks of scenes,
        and the `GAP` clips before and after a tested block are neither trained on nor tested.

    Raises
    ------
    ProtocolError
        A clip has two rows; or folds are by movie, and a movie has two folds.
    """

    clip_ids: tuple[str, ...]
    movies: tuple[str, ...]
    folds: NDArray[np.int64]
    by_movie: bool = True

    def __post_init__(self) -> None:
        """Check that each clip is in the table once and, if folds are by movie, each movie in one fold."""
        fold_of_clip: dict[str, int] = {}
        fold_of_movie: dict[str, int] = {}
        for clip_id, movie, fold in zip(self.clip_ids, self.movies, self.folds.tolist(), strict=True):
            if clip_id in fold_of_clip:
                raise ProtocolError(
                    f"clip {clip_id} is in the fold table twice: "
                    f"in fold {fold_of_clip[clip_id]} and in {fold}"
                )
            fold_of_clip[clip_id] = fold

            first_fold = fold_of_movie.setdefault(movie, fold)
            if self.by_movie and first_fold != fold:
                raise ProtocolError(f"movie {movie} is in two folds: {first_fold} and {fold}")


@dataclass(frozen=True, eq=False)
class Split:
    """The rows of one fold.

    Attributes
    ----------
    fold : int
        The fold's number.
    train : ndarray of int
        Rows to train on; model selection uses these rows too.
    test : ndarray of int
        Rows to test on.
    """

    fold: int
    train: NDArray[np.intp]
    test: NDArray[np.intp]


@checked
def leave_one_movie_out(clip_ids: Sequence[str], movies: Sequence[str]) -> FoldTable:
    """Make a fold table in which each movie is a fold of its own, numbered in the order of names.

    Raises
    ------
    ProtocolError
        There are fewer than 3 movies. One is tested, and inner selection needs two more: one to train on and
        one to hold out.

    Examples
    --------
    >>> import obygaze_models as om
    >>> om.leave_one_movie_out(["a", "b", "c"], ["film0", "film1", "film2"]).folds
    array([0, 1, 2])
    """
    names, folds = np.unique(np.array(movies, dtype=str), return_inverse=True)
    if len(names) < 3:
        present = f"{len(names)} ({', '.join(names)})" if len(names) else "none"
        raise ProtocolError(
            f"leaving one movie out needs at least 3 movies with clips of the task: found {present}"
        )
    return FoldTable(tuple(clip_ids), tuple(movies), folds)


def leave_movies_out(clip_ids: Sequence[str], movies: Sequence[str], n_folds: int | None = None) -> FoldTable:
    """Make folds of whole movies: one fold for each movie, or `n_folds` folds if there are more movies.

    By default there is one fold for each of up to 500 movies, and 20 folds for more movies.

    Folds of several movies get about the same number of clips: the movies with most clips are assigned first,
    each to the fold with the fewest clips so far. Labels are not used.

    Raises
    ------
    ProtocolError
        There are fewer than 3 movies, or fewer than 3 folds are asked for.

    Examples
    --------
    >>> from obygaze_models.protocol.folds import leave_movies_out
    >>> ids, movies = [f"c{i}" for i in range(240)], [f"film{i % 120}" for i in range(240)]
    >>> np.bincount(leave_movies_out(ids, movies, 20).folds).tolist() == [12] * 20
    True
    """
    if n_folds is not None and n_folds < 3:
        raise ProtocolError(f"leaving movies out needs at least 3 folds: found {n_folds}")

    table = leave_one_movie_out(clip_ids, movies)
    movie_of_clip = table.folds  # each movie is a fold, so that these are the numbers of movies
    n_clips_of_movie = np.bincount(movie_of_clip)
    n_movies = len(n_clips_of_movie)
    if n_folds is None:
        n_folds = n_movies if n_movies <= MAX_SINGLE_MOVIE_FOLDS else N_GROUPED_FOLDS
    if n_movies <= n_folds:
        return table

    fold_of_movie = np.empty(n_movies, dtype=np.int64)
    n_clips_of_fold = np.zeros(n_folds)
    most_clips_first = np.argsort(-n_clips_of_movie, kind="stable")
    for movie in most_clips_first:
        fold = int(np.argmin(n_clips_of_fold))
        fold_of_movie[movie] = fold
        n_clips_of_fold[fold] += n_clips_of_movie[movie]
    return FoldTable(table.clip_ids, table.movies, fold_of_movie[movie_of_clip])


@checked
def splits(table: FoldTable, train: NDArray[np.bool_], test: NDArray[np.bool_]) -> Iterator[Split]:
    """Yield the training rows and test rows of each fold, after checking that no clip or movie is in both.

    Clips that no fold tests (`NEVER_TESTED`) are trained on in every fold.

    Parameters
    ----------
    table : FoldTable
    train, test : ndarray of bool, shape [N]
        Mark the rows that can be trained on, and those that can be tested.

    Yields
    ------
    Split
        In the order of the folds; a fold without a test clip is skipped.

    Raises
    ------
    ProtocolError
        A clip, or with folds by movie a movie, is in training and in test.

    Examples
    --------
    >>> import numpy as np
    >>> import obygaze_models as om
    >>> table = om.leave_one_movie_out(["a", "b", "c"], ["film0", "film1", "film2"])
    >>> every = np.ones(3, dtype=bool)
    >>> [(split.train.tolist(), split.test.tolist()) for split in om.splits(table, every, every)]
    [([1, 2], [0]), ([0, 2], [1]), ([0, 1], [2])]
    """
    numbers_of_folds = sorted(set(table.folds.tolist()) - {NEVER_TESTED})
    for fold in numbers_of_folds:
        in_fold = table.folds == fold
        # Clips near a tested block of scenes resemble it, and are left out of training too.
        is_left_out = in_fold if table.by_movie else _mark_with_gap(in_fold, np.asarray(table.movies))
        split = Split(fold, train=np.flatnonzero(train & ~is_left_out), test=np.flatnonzero(test & in_fold))
        if split.test.size:
            check_split(split, table.clip_ids, table.movies, by_movie=table.by_movie)
            yield split


def _mark_with_gap(in_fold: NDArray[np.bool_], movies: NDArray[np.str_]) -> NDArray[np.bool_]:
    """Mark the clips [N] of a fold, and `GAP` clips before and after each of them in the same movie.

    `in_fold` [N] marks the clips of the fold; a movie's clips must be in the order of the film.
    """
    is_near = in_fold.copy()
    for movie in np.unique(movies):
        clips = np.flatnonzero(movies == movie)
        for distance in range(1, GAP + 1):
            # The pairs of clips of the movie that are `distance` apart.
            earlier = clips[:-distance]
            later = clips[distance:]
            # Each clip of a pair is near the fold if the other is in the fold.
            is_near[later] |= in_fold[earlier]
            is_near[earlier] |= in_fold[later]
    return is_near


@checked
def check_split(
    split: Split, clip_ids: Sequence[str], movies: Sequence[str], *, by_movie: bool = True
) -> None:
    """Raise if a clip or, with `by_movie`, a movie is both in training and in test.

    Raises
    ------
    ProtocolError
        There is such a clip or movie; the message names the first.
    """
    names_of_rows = {"clip": clip_ids}
    if by_movie:
        names_of_rows["movie"] = movies
    for noun, name_of_row in names_of_rows.items():
        in_training = {name_of_row[row] for row in split.train.tolist()}
        in_test = {name_of_row[row] for row in split.test.tolist()}
        leaking = in_training & in_test
        if leaking:
            raise ProtocolError(
                f"fold {split.fold} leaks: {noun} {min(leaking)} is in training and in test; "
                "the strict protocol allows neither a clip nor a movie on two sides"
            )


# --- movies on both sides
# ---------------------------------------------------------------------------


@checked
def scene_blocks(clip_ids: Sequence[str], movies: Sequence[str]) -> FoldTable:
    """Make a fold table of blocks of scenes: each movie is divided into `N_BLOCKS`, and fold k tests block k.

    Blocks of a movie have equal numbers of clips, so that they may begin or end within a scene. Folds are not
    by movie: each trains on other blocks of the movies that it tests. A movie's clips must be given in the
    order of the film, which is not checked.
    """
    folds = np.empty(len(clip_ids), dtype=np.int64)
    movie_of_clip = np.asarray(movies)
    for movie in np.unique(movie_of_clip):
        rows = np.flatnonzero(movie_of_clip == movie)
        for fold, block in enumerate(np.array_split(rows, N_BLOCKS)):
            folds[block] = fold
    return FoldTable(tuple(clip_ids), tuple(movies), folds, by_movie=False)


# --- for models outside of obygaze
# ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fold:
    """The clip ids of one fold, for evaluating models outside of obygaze.

    Attributes
    ----------
    name : int or str
        The fold's number, or the movie or block that it leaves out.
    train, validation, test : tuple of str
        In the manifest's order, unless the function that makes the fold says otherwise.
    """

    name: int | str
    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]


@checked
def strict_folds(manifest: Manifest, train: Target, test: Target) -> tuple[Fold, ...]:
    """List the clip ids of each leave-one-movie-out fold, for evaluating models outside of obygaze.

    A fold tests the clips of one movie that are in the target `test`, and trains on the clips of the other
    movies that are in the target `train`. Folds have no validation clips: models are selected by an inner
    loop over the training movies. As in `evaluate`, clips whose annotator saw a model's score are not tested,
    and are trained on if they are in the target `train`.

    Raises
    ------
    ProtocolError
        There are fewer than 3 movies with clips to train or test on.
    """
    labels = labels_of(manifest)
    in_train_target = train.of(labels) != NOT_ASKED
    in_test_target = without_seen_scores(test.of(labels), labels.seen_score) != NOT_ASKED
    used = np.flatnonzero(in_train_target | in_test_target)
    clip_ids = labels.clip_ids[used]
    table = leave_one_movie_out(clip_ids.tolist(), labels.movies[used].tolist())

    folds = []
    for split in splits(table, in_train_target[used], in_test_target[used]):
        fold = Fold(
            name=split.fold,
            train=tuple(clip_ids[split.train].tolist()),
            validation=(),
            test=tuple(clip_ids[split.test].tolist()),
        )
        folds.append(fold)
    return tuple(folds)
