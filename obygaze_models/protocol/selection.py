"""Divide training clips into inner folds of movies, and tune the threshold on their scores.

These functions see training clips only, so that no selection can depend on the test fold.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from obygaze_features.arguments import checked
from obygaze_models.errors import ProtocolError


@checked
def inner_folds(y: ArrayLike, movies: ArrayLike, n_folds: int = 4) -> NDArray[np.int64]:
    """Assign whole movies to inner folds, which get similar numbers of positive clips and of all clips.

    Parameters
    ----------
    y : array-like of int, shape [N]
        1 for positive clips, 0 for negative.
    movies : array-like, shape [N]
    n_folds : int
        Number of folds; there are fewer if there are fewer movies.

    Returns
    -------
    ndarray of int64, shape [N]
        The inner fold in which each clip is held out. The rest of every fold holds both classes.

    Raises
    ------
    ProtocolError
        There is only one movie, or the training clips of some fold have one class only.
    """
    labels = np.asarray(y)
    names, movie_of = np.unique(np.asarray(movies), return_inverse=True)
    if names.size < 2:
        # With the movie that the outer fold tests, which is not among these, there must be three.
        raise ProtocolError(
            "at least 3 movies with labels are needed: "
            f"inner selection leaves movies out, so it needs at least 2 training movies, found {names.size}"
        )

    n_positive = np.bincount(movie_of, weights=labels, minlength=names.size)
    n_clips = np.bincount(movie_of, minlength=names.size)
    n_used_folds = min(n_folds, names.size)
    fold_of_movie = _distribute_movies(n_positive, n_clips, n_used_folds)
    folds = fold_of_movie[movie_of]

    for fold in range(n_used_folds):
        training = labels[folds != fold]
        if training.all() or not training.any():
            missing = "no negative" if training.all() else "no positive"
            training_movies = ", ".join(str(name) for name in names[fold_of_movie != fold])
            raise ProtocolError(
                "inner selection needs both classes in at least 2 training movies: movies "
                f"{training_movies} alone hold {missing} clip; label more films"
            )
    return folds


def _distribute_movies(
    n_positive: NDArray[np.number], n_clips: NDArray[np.number], n_folds: int
) -> NDArray[np.int64]:
    """Assign each of M movies to a fold; folds get similar numbers of positive clips and of all clips.

    The movies with the most positive clips are assigned first, each to the fold with the fewest so far.

    Parameters
    ----------
    n_positive, n_clips : ndarray, shape [M]
        Number of positive clips and of all clips of each movie.
    n_folds : int
        At most M.

    Returns
    -------
    ndarray of int64, shape [M]
    """
    positives_in_fold = np.zeros(n_folds)
    clips_in_fold = np.zeros(n_folds)
    fold_of_movie = np.empty(len(n_clips), dtype=np.int64)
    # `lexsort` sorts by its last key first. Movies with equal numbers stay in the order of their names.
    most_positive_first = np.lexsort((-n_clips, -n_positive))
    for movie in most_positive_first:
        if n_positive[movie]:
            fewest_first = np.lexsort((clips_in_fold, positives_in_fold))
        else:
            # By positives first, all movies without a positive clip would go to the same fold.
            fewest_first = np.lexsort((positives_in_fold, clips_in_fold))

        fold = int(fewest_first[0])
        fold_of_movie[movie] = fold
        positives_in_fold[fold] += n_positive[movie]
        clips_in_fold[fold] += n_clips[movie]
    return fold_of_movie


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
        The middle between two neighbouring scores, or the lowest score if calling all clips positive is best;
        of equally good thresholds, the highest.

    Raises
    ------
    ProtocolError
        There is no positive clip.
    """
    labels = np.asarray(y)
    values = np.asarray(scores, dtype=np.float64)
    if not labels.any():
        raise ProtocolError("no threshold can be tuned without a positive clip")

    # If the 1, 2, ... N clips with the highest scores are called positive: how many of them are positive, and
    # how many clips are called positive.
    highest_first = np.argsort(-values, kind="stable")
    ranked = values[highest_first]
    n_true_positive = np.cumsum(labels[highest_first])
    n_called = np.arange(1, ranked.size + 1)
    n_positive = n_true_positive[-1]
    f1 = 2 * n_true_positive / (n_called + n_positive)

    # A threshold can't lie between clips with equal scores: -1 is below any f1.
    is_tied_with_next = np.append(ranked[:-1] == ranked[1:], False)
    f1[is_tied_with_next] = -1.0

    last_called = int(np.argmax(f1))  # of equally good ones the first, which has the highest score
    all_are_called = last_called == ranked.size - 1
    if all_are_called:
        return float(ranked[last_called])
    return _middle(low=float(ranked[last_called + 1]), high=float(ranked[last_called]))


def _middle(*, low: float, high: float) -> float:
    """Return the middle between two numbers, which is above `low`.

    There is no float between two neighbouring ones: the middle may then be rounded to `low`, and `high` is
    returned in its place.
    """
    middle = low + (high - low) / 2
    return middle if middle > low else high
