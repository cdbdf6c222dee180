"""Keep folds in one table by clip; a task filters it, so that all tasks agree on a clip's side.

Strict folds leave whole movies out. The others (`scene_blocks`) split movies into blocks of
scenes, so that every movie is on both sides of every fold: what a model knows of a movie helps it on the
movie's other clips, and these splits show how much. Neighbouring clips look alike, so blocks are contiguous,
and the `GAP` clips on either side of a tested block are in neither side.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked, made_by
from obygaze_features.manifest import Manifest
from obygaze_models.errors import ProtocolError
from obygaze_models.protocol.targets import NOT_ASKED, Target, labels_of

MOVIES_ALONE = 500
"""Movies up to which each is a fold of its own: above, the work would grow with clips times movies."""

N_GROUPED = 20
"""Folds of whole movies above that."""

N_BLOCKS = 5
GAP = 4
"""Clips left out on either side of a tested block. Labels of ObyGaze12 correlate .48 with those of the next
clip, .27 at distance 2, .17 at 3 and .07 at 5."""


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
        The fold whose test side holds the clip; -1 for a clip that is never tested.
    by_movie : bool
        Whether the protocol promises that no movie is on both sides of a fold; otherwise the `GAP` clips on
        either side of a tested block are in neither.

    Raises
    ------
    ProtocolError
        A clip has two rows, or (``by_movie``) a movie two folds.
    """

    clip_ids: tuple[str, ...]
    movies: tuple[str, ...]
    folds: NDArray[np.int64]
    by_movie: bool = True

    def __post_init__(self) -> None:
        seen: dict[str, int] = {}
        fold_of: dict[str, int] = {}
        for clip_id, movie, fold in zip(self.clip_ids, self.movies, self.folds.tolist(), strict=True):
            if clip_id in seen:
                raise ProtocolError(
                    f"clip {clip_id} is in the fold table twice: in fold {seen[clip_id]} and in {fold}"
                )
            seen[clip_id] = fold
            if self.by_movie and fold_of.setdefault(movie, fold) != fold:
                raise ProtocolError(f"movie {movie} is in two folds: {fold_of[movie]} and {fold}")


@dataclass(frozen=True, eq=False)
class Split:
    """The rows of one fold, as indices: to train on, with what is selected in it, and to test on."""

    fold: int
    train: NDArray[np.intp]
    test: NDArray[np.intp]


@checked
def leave_one_movie_out(clip_ids: Sequence[str], movies: Sequence[str]) -> FoldTable:
    """Return each movie, in sorted order, a fold of its own.

    Raises
    ------
    ProtocolError
        Fewer than 3 movies: one is tested, and selection needs two more to learn from one and look at the
        other.

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
    """Return folds of whole movies: one each up to 500 movies, 20 of about as many clips above.

    Of more movies than `n_folds`, where it is given, so many folds of about as many clips are made.

    The movies with most clips are dealt first, each to the fold with the fewest clips so far; labels play no
    part.

    Raises
    ------
    ProtocolError
        Fewer than 3 movies, or than 3 folds.

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
    clips = np.bincount(table.folds)
    most = MOVIES_ALONE if n_folds is None else n_folds
    if len(clips) <= most:
        return table
    n_groups = N_GROUPED if n_folds is None else n_folds
    fold_of = np.empty(len(clips), dtype=np.int64)
    held = np.zeros(n_groups)
    for movie in np.argsort(-clips, kind="stable"):
        fold_of[movie] = np.argmin(held)
        held[fold_of[movie]] += clips[movie]
    return FoldTable(table.clip_ids, table.movies, fold_of[table.folds])


@checked
def splits(table: FoldTable, train: NDArray[np.bool_], test: NDArray[np.bool_]) -> Iterator[Split]:
    """Cut a fold table into train and test sides, checking each before it is handed out.

    Parameters
    ----------
    table : FoldTable
    train, test : ndarray of bool, shape [N]
        The rows that belong to the task trained on and to the task tested on.

    Yields
    ------
    Split
        Fold by fold, those without a test clip skipped. Strict selection is an inner loop over the training
        movies.

    Raises
    ------
    ProtocolError
        A side leaks into another.

    Examples
    --------
    >>> import numpy as np
    >>> import obygaze_models as om
    >>> table = om.leave_one_movie_out(["a", "b", "c"], ["film0", "film1", "film2"])
    >>> every = np.ones(3, dtype=bool)
    >>> [(split.train.tolist(), split.test.tolist()) for split in om.splits(table, every, every)]
    [([1, 2], [0]), ([0, 2], [1]), ([0, 1], [2])]
    """
    movies = np.asarray(table.movies)
    for fold in sorted(set(table.folds.tolist()) - {-1}):
        in_fold = table.folds == fold
        near = in_fold.copy()
        for movie in () if table.by_movie else np.unique(movies):
            rows_of_movie = np.flatnonzero(movies == movie)
            near[rows_of_movie] = (
                np.convolve(in_fold[rows_of_movie], np.ones(2 * GAP + 1), mode="full")[
                    GAP : GAP + rows_of_movie.size
                ]
                > 0
            )
        split = Split(fold, np.flatnonzero(train & ~near), np.flatnonzero(test & in_fold))
        if split.test.size:
            check_split(split, table.clip_ids, table.movies, by_movie=table.by_movie)
            yield split


@checked
def check_split(
    split: Split, clip_ids: Sequence[str], movies: Sequence[str], *, by_movie: bool = True
) -> None:
    """Refuse a split with a clip, or (``by_movie``) a movie, on both of its sides.

    Raises
    ------
    ProtocolError
        Names the first clip or movie that leaks.
    """
    names = {"clip": clip_ids}
    if by_movie:
        names["movie"] = movies
    for noun, name_of in names.items():
        train = {name_of[row] for row in split.train.tolist()}
        test = {name_of[row] for row in split.test.tolist()}
        if train & test:
            raise ProtocolError(
                f"fold {split.fold} leaks: {noun} {min(train & test)} is in training and in test; "
                "the strict protocol allows neither a clip nor a movie on two sides"
            )


# --- movies on both sides
# ---------------------------------------------------------------------------


@checked
def scene_blocks(clip_ids: Sequence[str], movies: Sequence[str]) -> FoldTable:
    """Cut each movie's clips, in the order given, into blocks of about as many; fold k tests block k.

    The order must be that of the film, as in the manifest; it is not checked.
    """
    folds = np.empty(len(clip_ids), dtype=np.int64)
    movie_of = np.asarray(movies)
    for movie in np.unique(movie_of):
        for fold, block in enumerate(np.array_split(np.flatnonzero(movie_of == movie), N_BLOCKS)):
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
        Its number, or the movie or block left out.
    train, validation, test : tuple of str
        In the manifest's order, unless the function that makes the fold says otherwise.
    """

    name: int | str
    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]


@checked
def strict_folds(manifest: Manifest, train: Target, test: Target) -> tuple[Fold, ...]:
    """Leave one movie out: its clips that the test asks for against the others' clips to train on.

    No fold has a validation side: what is selected is selected by an inner loop over the training movies.

    Raises
    ------
    ProtocolError
        There are fewer than 3 movies with clips to train or test on, or a clip or a movie is on two sides.
    """
    labels = labels_of(manifest)
    learnt = train.of(labels) != NOT_ASKED
    tested = test.of(labels) != NOT_ASKED
    used = np.flatnonzero(learnt | tested)
    ids = labels.clip_ids[used]
    table = leave_one_movie_out(ids.tolist(), labels.movies[used].tolist())
    return tuple(
        Fold(split.fold, tuple(ids[split.train].tolist()), (), tuple(ids[split.test].tolist()))
        for split in splits(table, learnt[used], tested[used])
    )
