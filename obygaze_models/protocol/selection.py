"""Split training clips into inner folds of movies, and tune the threshold on their scores.

These functions are passed training clips alone, so that no selection can depend on the test fold.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from obygaze_features.arguments import checked
from obygaze_models.errors import ProtocolError


@checked
def inner_folds(y: ArrayLike, movies: ArrayLike, n_folds: int = 4) -> NDArray[np.int64]:
    """Deal whole movies into inner folds of similar numbers of positive clips, then of clips.

    Parameters
    ----------
    y : array-like of int, shape [N]
        1 for positive clips, 0 for negative.
    movies : array-like, shape [N]
    n_folds : int
        Fewer are made when there are fewer movies.

    Returns
    -------
    ndarray of int64, shape [N]
        The inner fold in which each clip is held out. The rest of every fold holds both classes.

    Raises
    ------
    ProtocolError
        One movie alone, or movies that leave some fold with one class to learn from.
    """
    labels = np.asarray(y)
    names, movie_of = np.unique(np.asarray(movies), return_inverse=True)
    if names.size < 2:
        raise ProtocolError(
            "at least 3 movies with labels are needed: "
            f"inner selection leaves movies out, so it needs at least 2 training movies, found {names.size}"
        )
    positives = np.bincount(movie_of, weights=labels, minlength=names.size)
    clips = np.bincount(movie_of, minlength=names.size)
    n = min(n_folds, names.size)
    held_positives = np.zeros(n)
    held_clips = np.zeros(n)
    fold_of_movie = np.empty(names.size, dtype=np.int64)
    # The movies hardest to place go first; lexsort's last key counts most, and names (sorted) settle ties.
    for movie in np.lexsort((-clips, -positives)):
        # Those without a positive clip are alike in positives: they would all go to one fold.
        order = (held_clips, held_positives) if positives[movie] else (held_positives, held_clips)
        fold = int(np.lexsort(order)[0])
        fold_of_movie[movie] = fold
        held_positives[fold] += positives[movie]
        held_clips[fold] += clips[movie]
    folds = fold_of_movie[movie_of]
    for fold in range(n):
        training = labels[folds != fold]
        if training.all() or not training.any():
            training_movies = ", ".join(str(name) for name in names[fold_of_movie != fold])
            raise ProtocolError(
                "inner selection needs both classes in at least 2 training movies: movies "
                f"{training_movies} alone hold {'no negative' if training.all() else 'no positive'} clip; "
                "label more films"
            )
    return folds


@checked
def best_threshold(y: ArrayLike, scores: ArrayLike) -> float:
    """Find the threshold with the highest f1_pos when scores at or above it are called positive.

    Parameters
    ----------
    y : array-like of int, shape [N]
        1 for positive clips, 0 for negative.
    scores : array-like of float, shape [N]
        Out-of-fold scores of training clips.

    Returns
    -------
    float
        Midway between two scores that occur, or the lowest score when calling all positive is best; of
        equals, the highest.

    Raises
    ------
    ProtocolError
        No positive clip.
    """
    labels = np.asarray(y)
    values = np.asarray(scores, dtype=np.float64)
    if not labels.any():
        raise ProtocolError("no threshold can be tuned without a positive clip")
    order = np.argsort(-values, kind="stable")
    ranked = values[order]
    hits = np.cumsum(labels[order])
    called = np.arange(1, ranked.size + 1)
    f1 = 2 * hits / (called + hits[-1])
    # A threshold can't part equal scores.
    f1[:-1][ranked[:-1] == ranked[1:]] = -1.0
    last = int(np.argmax(f1))
    if last == ranked.size - 1:
        return float(ranked[last])
    middle = ranked[last + 1] + (ranked[last] - ranked[last + 1]) / 2
    return float(middle if middle > ranked[last + 1] else ranked[last])
